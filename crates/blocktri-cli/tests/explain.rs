//! `explain`, `calibrate`, `solve --explain` and `--time-limit` from the outside.

mod common;

use common::{SMALL, Sandbox};

fn in_sandbox(sandbox: &Sandbox, line: &str, code: i32) -> common::Run {
    let cache = sandbox.path("cache").display().to_string();
    sandbox.run_with(line, &[("XDG_CACHE_HOME", &cache)]).expect(code)
}

#[test]
fn candidates_are_listed_the_fastest_first() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson3d --nx 16 --ny 16 --nz 16 -o A.mtx").expect(0);
    let json = in_sandbox(&sandbox, "explain A.mtx --json --plot A.svg", 0).json();
    let candidates = json["candidates"].as_array().unwrap();
    assert!(candidates.len() >= 4 && json["choice"] == candidates[0]["method"], "{json}");
    let seconds: Vec<f64> = candidates.iter().map(|c| c["seconds"].as_f64().unwrap()).collect();
    assert!(seconds.windows(2).all(|w| w[0] <= w[1]), "{seconds:?}");
    assert!(candidates.iter().any(|c| c["bound"] == "at least" && c["precond"] == "ic0"), "{json}");
    assert!(sandbox.read("A.svg").contains("seconds predicted"));
    let text = in_sandbox(&sandbox, "explain A.mtx", 0).stdout;
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.contains("sparse-cholesky") && text.contains("≥"), "{text}");
    let report = in_sandbox(&sandbox, "solve A.mtx --explain", 0).stdout;
    assert!(report.contains("weighed by auto") && report.contains(" taken; "), "{report}");
    let json = in_sandbox(&sandbox, "solve A.mtx --explain --json", 0).json();
    // An iteration may be tried before anything is ordered; then fewer are weighed.
    let weighed = json["candidates"].as_array().unwrap();
    let known =
        |c: &serde_json::Value| candidates.iter().any(|k| k["method"] == c["method"] && k["bytes"] == c["bytes"]);
    assert!(weighed.len() >= 2 && weighed.iter().all(known), "{json}");
    let run = in_sandbox(&sandbox, "solve A.mtx --method cg --explain", 0);
    assert!(run.stderr.contains("--explain is not read by --method cg"), "{}", run.stderr);
}

#[test]
fn a_limit_below_what_any_method_needs_is_told_with_the_least() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson3d --nx 24 --ny 24 --nz 24 -o A.mtx").expect(0);
    let text = in_sandbox(&sandbox, "explain A.mtx --memory 150M", 0).stdout;
    assert!(text.contains("refused: no more than"), "{text}");
    let run = in_sandbox(&sandbox, "solve A.mtx --memory 4M", 2);
    assert!(run.stderr.contains("memory") && run.stderr.contains("--memory"), "{}", run.stderr);
}

#[test]
fn accuracy_and_time_are_limits_of_auto() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson3d --nx 20 --ny 20 --nz 20 -o A.mtx").expect(0);
    let full = in_sandbox(&sandbox, "solve A.mtx --json", 0).json();
    let less = in_sandbox(&sandbox, "solve A.mtx --json --rtol 1e-4", 0).json();
    let iterations = |json: &serde_json::Value| json["iterations"].as_u64().unwrap();
    assert!(iterations(&less) < iterations(&full), "{less}");
    assert!(full["backward_error"].as_f64().unwrap() < 4e-15 && less["relative_residual"].as_f64().unwrap() <= 1e-4);
    let run = in_sandbox(&sandbox, "solve A.mtx --json --time-limit 1e-9 -o x.mtx", 3);
    assert_eq!(run.json()["outcome"], "time-limit");
    assert!(sandbox.path("x.mtx").exists());
    in_sandbox(&sandbox, "solve A.mtx --time-limit 0", 2);
}

#[test]
fn constants_are_measured_shown_kept_and_removed() {
    let sandbox = Sandbox::new();
    sandbox.write("A.mtx", SMALL);
    let shown = in_sandbox(&sandbox, "calibrate --show --json", 0).json();
    let file = sandbox.path("cache").join("blocktri").join("machine.json");
    assert!(!file.exists() && shown["constants"]["band.step"].as_f64().unwrap() > 0.0, "{shown}");
    let machine = shown["machine"].as_str().unwrap().to_owned();
    // A file of this machine is used; measuring takes seconds, and minutes in a build without optimizations.
    let keep = |machine: &str, constants: &serde_json::Value| {
        let json = serde_json::json!({ "schema": 2, "measured": { machine: constants, "a third": {} } });
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, json.to_string()).unwrap();
    };
    let mut constants = shown["constants"].clone();
    constants["call"] = 0.5.into();
    keep(&machine, &constants);
    let json = in_sandbox(&sandbox, "explain A.mtx --json", 0).json();
    assert!(json["candidates"][0]["seconds"].as_f64().unwrap() > 0.5, "{json}");
    // Of before there was such a constant.
    let mut older = constants.clone();
    older.as_object_mut().unwrap().remove("sparse.analysis");
    for (machine, constants, told) in [
        ("another", &constants, "measured on another and a third, and not on "),
        (machine.as_str(), &serde_json::json!({ "call": 1.0 }), "is missing"),
        (machine.as_str(), &serde_json::json!([]), "is missing"),
        (machine.as_str(), &older, "'sparse.analysis' of the machine is missing"),
    ] {
        keep(machine, constants);
        let json = in_sandbox(&sandbox, "explain A.mtx --json", 0).json();
        assert!(json["notes"][0].as_str().unwrap().contains(told), "{json}");
        assert!(json["candidates"][0]["seconds"].as_f64().unwrap() < 0.5, "{json}");
    }
    constants["band.flops"] = 0.0.into();
    keep(&machine, &constants);
    let text = in_sandbox(&sandbox, "solve A.mtx", 0).stdout;
    assert!(text.contains("'band.flops' of the machine is 0"), "{text}");
    std::fs::write(&file, "{ \"schema\": 2 }").unwrap();
    assert!(in_sandbox(&sandbox, "solve A.mtx", 0).stdout.contains("does not name its machines"));
    std::fs::write(&file, "{ \"schema\": 1, \"mach").unwrap();
    assert!(in_sandbox(&sandbox, "solve A.mtx", 0).stdout.contains("cut or no JSON"));
    assert_eq!(in_sandbox(&sandbox, "calibrate --reset --json", 0).json()["removed"], true);
    assert_eq!(in_sandbox(&sandbox, "calibrate --reset --json", 0).json()["removed"], false);
    assert!(!file.exists());
}
