//! `blocktri solve` from the outside: reports, outputs, outcomes.

mod common;

use common::{Run, SMALL, SMALL_RHS, Sandbox, numbers, shared};
use serde_json::Value;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("A.mtx", SMALL);
    sandbox.write("b.mtx", SMALL_RHS);
    sandbox
}

fn generated(line: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run(&format!("generate {line} -o A.mtx")).expect(0);
    sandbox
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn the_report_has_the_keys_of_the_contract() {
    let run = sandbox().run("solve A.mtx -b b.mtx --json --threads 2").expect(0);
    let json = run.json();
    for key in [
        "schema",
        "file",
        "n",
        "nnz",
        "nrhs",
        "blocks",
        "method",
        "method_requested",
        "precond",
        "reorder",
        "device",
        "threads",
        "outcome",
        "breakdown",
        "iterations",
        "relative_residual",
        "backward_error",
        "componentwise_backward_error",
        "forward_error",
        "rcond",
        "seconds",
        "bytes",
        "seed",
        "notes",
        "events",
    ] {
        assert!(json.get(key).is_some(), "{key} is missing: {json}");
    }
    assert_eq!(keys(&json["seconds"]), ["read", "reorder", "setup", "solve", "total"]);
    assert_eq!(keys(&json["bytes"]), ["matrix", "factors", "workspace"]);
    let expected: [(&str, Value); 11] = [
        ("schema", 1.into()),
        ("file", "A.mtx".into()),
        ("n", 4.into()),
        ("nnz", 10.into()),
        ("nrhs", 1.into()),
        ("method_requested", "auto".into()),
        ("precond", "none".into()),
        ("device", "cpu".into()),
        ("threads", 2.into()),
        ("outcome", "converged".into()),
        ("forward_error", Value::Null),
    ];
    for (key, value) in expected {
        assert_eq!(json[key], value, "{key}");
    }
    assert!(json["backward_error"].as_f64().is_some_and(|e| e < 1e-15), "{json}");
    assert!(json["rcond"].as_f64().is_some_and(|r| r > 0.1 && r <= 1.0), "{json}");
    assert!(json["seconds"]["total"].as_f64().is_some_and(|s| s > 0.0));
    let notes = json["notes"].as_array().unwrap();
    assert!(notes.iter().all(Value::is_string), "{json}");
    // The same as data.
    let events = json["events"].as_array().unwrap();
    assert_eq!(events.len(), notes.len());
    assert_eq!(events[0]["kind"], "chosen");
    assert!(events[0]["seconds"].as_f64().is_some_and(|s| s > 0.0), "{json}");
    assert!(events.contains(&serde_json::json!({ "kind": "refined", "steps": 0 })), "{json}");
}

#[test]
fn the_solution_is_written_and_right() {
    let sandbox = sandbox();
    let run = sandbox.run("solve A.mtx -b b.mtx -o x.mtx").expect(0);
    let x = numbers(&sandbox.read("x.mtx"));
    assert_eq!(x.len(), 4);
    assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-14), "{x:?}");
    assert!(run.stdout.contains("backward error") && run.stdout.contains("x.mtx"), "{}", run.stdout);
    assert_eq!(run.stderr, "");
    assert_eq!(sandbox.names(), ["A.mtx", "b.mtx", "x.mtx"]);
    // What it wrote, it reads: A·x with b = x.
    sandbox.run("solve A.mtx -b x.mtx").expect(0);
}

#[test]
fn several_right_hand_sides() {
    let sandbox = sandbox();
    // Coordinate format: columns 1 and 3 are A·e, column 2 is zero.
    sandbox.write(
        "b.mtx",
        "%%MatrixMarket matrix coordinate real general\n4 3 8\n1 1 3\n2 1 2\n3 1 2\n4 1 3\n1 3 6\n2 3 4\n3 3 4\n4 3 6\n",
    );
    let json = sandbox.run("solve A.mtx -b b.mtx -o x.mtx --json").expect(0).json();
    assert_eq!(json["nrhs"], 3);
    let x = numbers(&sandbox.read("x.mtx"));
    for (x, expected) in x.iter().zip([1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 2.0, 2.0, 2.0, 2.0]) {
        assert!((x - expected).abs() < 1e-14, "{x} for {expected}");
    }
}

#[test]
fn the_forward_error_is_known_without_a_right_hand_side() {
    let sandbox = generated("cloud --case Cloud16-100");
    let json = sandbox.run("solve A.mtx --json").expect(0).json();
    assert_eq!(json["n"], 1600);
    assert!(json["forward_error"].as_f64().is_some_and(|e| e < 1e-9), "{json}");
    assert!(json["backward_error"].as_f64().is_some_and(|e| e < 1e-14), "{json}");
}

#[test]
fn every_method_solves() {
    let sandbox = generated("tridiagonal --n 60 --lower -1 --diag 3 --upper -1");
    let help = sandbox.run("solve --help").expect(0).stdout;
    let methods: Vec<_> = help
        .lines()
        .skip_while(|line| !line.contains("--method <"))
        .take_while(|line| !line.contains("--precond"))
        .filter_map(|line| line.trim().strip_prefix("- ")?.split_once(':'))
        .map(|(name, _)| name.to_owned())
        .collect();
    assert!(methods.len() >= 8, "{methods:?}");
    for method in methods {
        let line = format!("solve A.mtx --json --method {method} --blocks 4");
        if ["diagonal", "triangular"].contains(&&*method) {
            let json = sandbox.run(&line).expect(2).json();
            assert!(json["error"].as_str().unwrap().contains(&format!("needs a {method} matrix")), "{json}");
            continue;
        }
        let json = sandbox.run(&line).expect(0).json();
        assert_eq!(json["method_requested"], method.as_str());
        assert_eq!(json["outcome"], "converged", "{method}");
        let iterative = method.starts_with("hbisa") || ["cg", "fcg", "bicgstab", "gmres", "fgmres"].contains(&&*method);
        let limit = if iterative { 1e-7 } else { 1e-14 };
        assert!(json["relative_residual"].as_f64().is_some_and(|r| r < limit), "{method}: {json}");
    }
}

#[test]
fn complex_systems() {
    let sandbox = Sandbox::new();
    sandbox.write("A.mtx", "%%MatrixMarket matrix coordinate complex general\n2 2 3\n1 1 0 2\n2 1 1 0\n2 2 1 -1\n");
    // x = (1, i): A·x = (2i, 1 + (1 − i)·i) = (2i, 2 + i)
    sandbox.write("b.mtx", "%%MatrixMarket matrix array complex general\n2 1\n0 2\n2 1\n");
    sandbox.run("solve A.mtx -b b.mtx -o x.mtx").expect(0);
    let text = sandbox.read("x.mtx");
    let x: Vec<f64> = text
        .lines()
        .filter(|line| !line.starts_with('%'))
        .skip(1)
        .flat_map(str::split_whitespace)
        .map(|t| t.parse().unwrap())
        .collect();
    for (x, expected) in x.iter().zip([1.0, 0.0, 0.0, 1.0]) {
        assert!((x - expected).abs() < 1e-14, "{text}");
    }
    // A real right-hand side of a complex matrix, and a complex one of a real matrix.
    sandbox.write("real.mtx", "%%MatrixMarket matrix array real general\n2 1\n1\n2\n");
    sandbox.write("R.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 2\n2 2 4\n");
    for line in ["A.mtx -b real.mtx", "A.mtx", "R.mtx -b b.mtx"] {
        let json = sandbox.run(&format!("solve {line} --json")).expect(0).json();
        assert_eq!((&json["scalar"], &json["outcome"]), (&"c64".into(), &"converged".into()), "{line}");
    }
}

#[test]
fn one_unknown() {
    let sandbox = Sandbox::new();
    sandbox.write("A.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 4\n");
    sandbox.write("b.mtx", "%%MatrixMarket matrix array real general\n1 1\n8\n");
    sandbox.run("solve A.mtx -b b.mtx -o x.mtx").expect(0);
    assert_eq!(numbers(&sandbox.read("x.mtx")), [2.0]);
}

#[test]
fn singular_matrices_say_where() {
    let sandbox = Sandbox::new();
    let header = "%%MatrixMarket matrix coordinate real general\n";
    sandbox.write("column.mtx", format!("{header}3 3 4\n1 1 1\n2 1 1\n2 3 2\n3 3 1\n"));
    sandbox.write("rank.mtx", format!("{header}2 2 4\n1 1 1\n1 2 2\n2 1 2\n2 2 4\n"));
    sandbox.write("zero.mtx", format!("{header}3 3 0\n"));
    for name in ["column", "rank", "zero"] {
        let run = sandbox.run(&format!("solve {name}.mtx --json -o x.mtx")).expect(4);
        let json = run.json();
        assert_eq!(json["outcome"], "singular", "{name}");
        assert!(json["singular"]["column"].is_u64(), "{json}");
        assert!(run.stderr.contains("singular") && run.stderr.contains("column"), "{}", run.stderr);
    }
    assert_eq!(sandbox.run("solve column.mtx --json").json()["singular"]["column"], 1);
    assert_eq!(sandbox.names(), ["column.mtx", "rank.mtx", "zero.mtx"]);
}

#[test]
fn an_ill_conditioned_matrix_is_solved_with_a_warning() {
    let sandbox = Sandbox::new();
    // [1 1; 1 1 + 2⁻⁵²]: rcond is about 2⁻⁵⁴.
    sandbox.write(
        "A.mtx",
        "%%MatrixMarket matrix coordinate real general\n2 2 4\n1 1 1\n1 2 1\n2 1 1\n2 2 1.0000000000000002220446049250313\n",
    );
    let run = sandbox.run("solve A.mtx --json").expect(0);
    assert!(run.stderr.starts_with("warning: "), "{}", run.stderr);
    assert!(run.json()["rcond"].as_f64().is_some_and(|r| r < 2.3e-16), "{}", run.stdout);
}

fn slow_iteration(sandbox: &Sandbox, more: &str) -> Run {
    sandbox.run(&format!("solve A.mtx --method hbisa --blocks 1 --max-iters 50 {more}"))
}

#[test]
fn no_convergence_is_code_3_with_x_and_report() {
    let sandbox = generated("tridiagonal --n 300");
    let run = slow_iteration(&sandbox, "--json -o x.mtx").expect(3);
    let json = run.json();
    assert_eq!((&json["outcome"], &json["iterations"]), (&"iteration-limit".into(), &50.into()));
    assert!(json["relative_residual"].as_f64().is_some_and(|r| r > 1e-8 && r < 1.0), "{json}");
    assert!(run.stderr.contains("not converged") && run.stderr.contains("--max-iters"), "{}", run.stderr);
    assert_eq!(run.stderr.matches("warning: ").count(), 1, "{}", run.stderr);
    let notes = json["notes"].as_array().unwrap();
    assert!(notes.iter().any(|n| n.as_str().is_some_and(|n| n.starts_with("not converged"))), "{json}");
    assert_eq!(numbers(&sandbox.read("x.mtx")).len(), 300);
}

#[test]
fn history_and_plot() {
    let sandbox = generated("tridiagonal --n 300");
    slow_iteration(&sandbox, "--history r.csv --plot r.svg").expect(3);
    slow_iteration(&sandbox, "--plot r.png --quiet").expect(3);
    let mut reader = csv::Reader::from_path(sandbox.path("r.csv")).unwrap();
    assert_eq!(reader.headers().unwrap(), &["iteration", "relative_residual", "rhs"][..]);
    let rows: Vec<(usize, f64, usize)> = reader
        .records()
        .map(|row| {
            let row = row.unwrap();
            (row[0].parse().unwrap(), row[1].parse().unwrap(), row[2].parse().unwrap())
        })
        .collect();
    assert!(rows.len() >= 50, "{}", rows.len());
    assert_eq!(rows.last().unwrap().0, 50);
    assert!(rows.last().unwrap().1 < rows[0].1);
    assert!(rows.iter().all(|row| row.2 == 0));
    let svg = sandbox.read("r.svg");
    assert!(svg.starts_with("<svg") && svg.contains("relative residual") && svg.contains("tolerance 1e-8"));
    assert_eq!(&std::fs::read(sandbox.path("r.png")).unwrap()[1..4], b"PNG");
    assert_eq!(sandbox.names(), ["A.mtx", "r.csv", "r.png", "r.svg"]);
}

#[test]
fn every_iterative_method_has_a_history() {
    let sandbox = generated("poisson2d --nx 9");
    for method in blocktri::Method::all().into_iter().filter(blocktri::Method::is_iterative) {
        // Short cycles: the count of gmres goes on across them.
        let krylov =
            if method.name().starts_with("hbisa") { "" } else { "--precond ilu0 --sweeps 2 --precision single" };
        let restart = if method.name().ends_with("gmres") { "--restart 4 --basis single" } else { "" };
        let line = format!("solve A.mtx --method {method} {krylov} {restart} --history r.csv --plot r.svg --json");
        let json = sandbox.run(line.split_whitespace().collect::<Vec<_>>().join(" ").as_str()).expect(0).json();
        let text = sandbox.read("r.csv");
        let rows: Vec<(usize, f64)> = text
            .lines()
            .skip(1)
            .map(|line| {
                let mut fields = line.split(',');
                (fields.next().unwrap().parse().unwrap(), fields.next().unwrap().parse().unwrap())
            })
            .collect();
        let counts: Vec<usize> = rows.iter().map(|row| row.0).collect();
        assert_eq!(counts, (0..=json["iterations"].as_u64().unwrap() as usize).collect::<Vec<_>>(), "{method}");
        let (first, last) = (rows[0].1, rows[rows.len() - 1].1);
        assert!((first - 1.0).abs() < 1e-12 && last <= 1e-8 && rows.len() > 5, "{method}: {first:e} {last:e}");
        assert!(sandbox.read("r.svg").contains(method.name()), "{method}");
    }
}

#[test]
fn right_hand_sides_side_by_side_have_their_own_histories() {
    let sandbox = generated("poisson2d --nx 5");
    let value = |i: usize, j: usize| if j == 1 { f64::from(u8::from(i == 12)) } else { (1 + i * (j + 1)) as f64 };
    // More columns than go together.
    let values: Vec<String> = (0..18).flat_map(|j| (0..25).map(move |i| value(i, j).to_string())).collect();
    sandbox.write("b.mtx", format!("%%MatrixMarket matrix array real general\n25 18\n{}\n", values.join("\n")));
    for method in ["cg", "bicgstab", "gmres", "hbisa-gs"] {
        let line = format!("solve A.mtx -b b.mtx --method {method} --history r.csv --json");
        let json = sandbox.run(&line).expect(0).json();
        assert!(json["relative_residual"].as_f64().unwrap() <= 1e-8, "{method}");
        let text = sandbox.read("r.csv");
        let fields: Vec<Vec<f64>> =
            text.lines().skip(1).map(|line| line.split(',').map(|t| t.parse().unwrap()).collect()).collect();
        let mut most = 0;
        for j in 0..18 {
            let curve: Vec<&Vec<f64>> = fields.iter().filter(|row| row[2] as usize == j).collect();
            assert!(curve.len() > 2 && curve.iter().enumerate().all(|(k, row)| row[0] as usize == k), "{method} {j}");
            assert!(curve[0][1] == 1.0 && curve[curve.len() - 1][1] <= 1e-8, "{method} {j}");
            most = most.max(curve.len() - 1);
        }
        assert_eq!(json["iterations"], most, "{method}");
        let together = json["notes"].to_string().contains("18 right-hand sides, 16 at a time");
        assert_eq!(together, !method.starts_with("hbisa"), "{method}");
    }
}

#[test]
fn the_spike_preconditioner_says_what_it_took() {
    let sandbox = generated("convection-diffusion --nx 14 --peclet 4");
    let line = "solve A.mtx --method bicgstab --precond spike-truncated --bandwidth 14 --partitions 3 --json";
    let json = sandbox.run(line).expect(0).json();
    let notes = json["notes"].to_string();
    assert_eq!((&json["outcome"], &json["precond"]), (&"converged".into(), &"spike-truncated".into()));
    for said in
        ["14 sub- and 14 super-diagonals", "0.0e0 of the Frobenius norm", "3 partitions", "truncated reduced system"]
    {
        assert!(notes.contains(said), "{said}: {notes}");
    }
    let run = sandbox.run("solve A.mtx --method block-lu --bandwidth 3 --sweeps 2").expect(0);
    assert!(run.stderr.contains("--bandwidth is not read") && run.stderr.contains("--sweeps"), "{}", run.stderr);
}

#[test]
fn the_update_can_be_the_rule() {
    let sandbox = generated("tridiagonal --n 30 --diag 3");
    let line = "solve A.mtx --method hbisa --blocks 1 --stop update --rtol 0 --atol 1e-6 --history r.csv --plot r.svg";
    let json = sandbox.run(&format!("{line} --json")).expect(0).json();
    assert!(json["notes"].to_string().contains("norm of the update"), "{json}");
    let text = sandbox.read("r.csv");
    let rows: Vec<Vec<f64>> =
        text.lines().skip(1).map(|line| line.split(',').map(|t| t.parse().unwrap()).collect()).collect();
    assert!(text.starts_with("iteration,update,rhs\n1,"), "{text}");
    // Stopped at the first update below the tolerance, which is the last line.
    let (last, before) = rows.split_last().unwrap();
    assert!(last[1] <= 1e-6 && before.iter().all(|row| row[1] > 1e-6 && row[1].is_finite()), "{text}");
    assert_eq!(json["iterations"], rows.len());
    let svg = sandbox.read("r.svg");
    assert!(svg.contains("update") && svg.contains("tolerance 1e-6") && !svg.contains(">relative residual<"));
    let run = sandbox.run("solve A.mtx --stop update").expect(0);
    assert_eq!(run.stderr, "warning: --stop is not read by --method auto\n");
}

#[test]
fn a_singular_diagonal_block_is_no_singular_matrix() {
    let sandbox = Sandbox::new();
    // [0 1; 1 0]: regular, with a zero diagonal.
    sandbox.write("A.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n2 1 1\n");
    for method in ["hbisa", "hbisa-gs", "hbisa-sgs", "hbisa-redblack", "hbisa-sor", "hbisa-chebyshev"] {
        let run = sandbox.run(&format!("solve A.mtx --method {method} --blocks 1 --json -o x.mtx")).expect(3);
        let json = run.json();
        assert_eq!(json["outcome"], "breakdown");
        assert!(json["breakdown"].as_str().is_some_and(|b| b.contains("block 0")), "{json}");
        assert_eq!((&json["block"], &json["row"]), (&0.into(), &Value::Null), "{json}");
        assert!(run.stderr.contains("help: "), "{}", run.stderr);
    }
    for (method, by) in [("thomas", "tridiagonal-lu"), ("block-lu", "band-lu")] {
        let named = sandbox.run(&format!("solve A.mtx --method {method} --blocks 1 --json")).expect(3);
        assert!(named.stderr.contains("breaks down") && named.stderr.contains("--fallback"), "{}", named.stderr);
        let run = sandbox.run(&format!("solve A.mtx --method {method} --blocks 1 --fallback --json")).expect(0);
        let json = run.json();
        assert_eq!((&json["method"], &json["method_requested"]), (&by.into(), &method.into()));
        assert!(run.stderr.contains(&format!("{method} could not factor")), "{}", run.stderr);
    }
    assert_eq!(sandbox.names(), ["A.mtx"]);
}

#[test]
fn a_breakdown_says_where_in_fields() {
    let sandbox = Sandbox::new();
    // The last two rows are [0 1; 1 0].
    sandbox.write("A.mtx", "%%MatrixMarket matrix coordinate real symmetric\n4 4 3\n1 1 1\n2 2 1\n4 3 1\n");
    for (method, field, index) in [
        ("thomas", "row", 2),
        ("band-lu-nopivot", "row", 2),
        ("block-lu --blocks 1", "column", 3),
        ("hbisa --blocks 1", "block", 2),
        ("bicgstab --precond jacobi", "row", 2),
    ] {
        let json = sandbox.run(&format!("solve A.mtx --method {method} --json")).expect(3).json();
        let fields = ["row", "column", "block", "partition"].map(|name| json[name].as_u64().map(|at| (name, at)));
        let found: Vec<_> = fields.into_iter().flatten().collect();
        assert_eq!(found, [(field, index)], "{method}: {json}");
    }
}

#[test]
fn given_blocks_work_whatever_the_order_would_be() {
    // RCM would be cheaper than the given order.
    let sandbox = generated("poisson2d --nx 30 --ny 8");
    let json = sandbox.run("solve A.mtx --method block-lu --blocks 30 --json").expect(0).json();
    assert_eq!((&json["reorder"], &json["blocks"]["count"]), (&"none".into(), &8.into()));
    let json = sandbox.run("solve A.mtx --blocks 30 --json").expect(0).json();
    assert_eq!(json["reorder"], "none");
}

#[test]
fn repetition_gives_minimum_and_median() {
    let json = sandbox().run("solve A.mtx --json --repeat 3").expect(0).json();
    for phase in ["read", "reorder", "setup", "solve", "total"] {
        let seconds = &json["seconds"][phase];
        assert_eq!(keys(seconds), ["min", "median"], "{phase}");
        assert!(seconds["min"].as_f64() <= seconds["median"].as_f64(), "{phase}");
    }
}

#[test]
fn blocks_from_a_size_and_from_a_file() {
    let sandbox = sandbox();
    sandbox.write("blocks.txt", "# sizes\n1\n2\n1\n");
    for (blocks, count, min, max) in [("2", 2, 2, 2), ("3", 2, 1, 3), ("blocks.txt", 3, 1, 2)] {
        let json = sandbox.run(&format!("solve A.mtx --json --method block-lu --blocks {blocks}")).expect(0).json();
        let found = &json["blocks"];
        assert_eq!((&found["count"], &found["min"], &found["max"]), (&count.into(), &min.into(), &max.into()));
    }
}

#[test]
fn couplings_outside_the_blocks_are_named() {
    let sandbox = generated("poisson2d --nx 5");
    let run = sandbox.run("solve A.mtx --method block-lu --reorder none --blocks 2").expect(2);
    assert!(run.stderr.contains("row") && run.stderr.contains("column"), "{}", run.stderr);
}

#[test]
fn options_that_are_not_read_are_said() {
    let run = sandbox().run("solve A.mtx --method band-lu --rtol 1e-3 --json").expect(0);
    assert_eq!(run.stderr, "warning: --rtol is not read by --method band-lu\n");
    let json = run.json();
    let notes = json["notes"].as_array().unwrap();
    assert!(notes.iter().any(|n| n.as_str().is_some_and(|n| n.contains("--rtol is not read"))), "{json}");
}

#[test]
fn quiet_is_quiet() {
    let run = sandbox().run("solve A.mtx --quiet").expect(0);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
    assert!(!sandbox().run("solve A.mtx --quiet --json").expect(0).stdout.is_empty());
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_is_no_error() {
    let sandbox = sandbox();
    let mut child = sandbox
        .command("solve A.mtx")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let run: Run = child.wait_with_output().unwrap().into();
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
}

#[test]
fn the_block_collection() {
    let Some(folder) = shared("block") else { return };
    let sandbox = Sandbox::new();
    for row in csv::Reader::from_path(folder.join("index.csv")).unwrap().records() {
        let name = row.unwrap()[0].trim_end_matches(".mtx").to_owned();
        let file = |ending: &str| folder.join(format!("{name}{ending}")).display().to_string();
        let line = format!("solve {} -b {} --json", file(".mtx"), file("_b.mtx"));
        let code = if name.starts_with("structurally_singular") { 4 } else { 0 };
        let json = sandbox.run(&line).expect(code).json();
        if code == 0 {
            assert!(json["backward_error"].as_f64().is_some_and(|e| e <= 1e-14), "{name}: {json}");
        }
    }
}

#[test]
fn large_banded_blocks_stay_banded() {
    // As dense blocks they would take 80 GB each.
    let sandbox = generated("band-random --n 200000 --kl 2 --ku 1 --dominance 2");
    let json = sandbox.run("solve A.mtx --method hbisa --blocks 100000 --json").expect(0).json();
    assert_eq!((&json["outcome"], &json["blocks"]["count"]), (&"converged".into(), &2.into()));
    assert!(json["bytes"]["factors"].as_u64().is_some_and(|b| b < 1 << 25), "{json}");
}

#[test]
fn blocks_of_the_nodes_of_an_elastic_disk() {
    let sandbox = Sandbox::new();
    sandbox.run("generate elasticity-disk --n 602 -o A.mtx --rhs b.mtx").expect(0);
    let solve = |options: &str| sandbox.run(&format!("solve A.mtx -b b.mtx --method cg --rtol 1e-8 --json {options}"));
    let steps = |options: &str, note: &str| {
        let json = solve(options).expect(0).json();
        assert!(json["notes"].as_array().unwrap().iter().any(|n| n == note) || note.is_empty(), "{json}");
        json["iterations"].as_u64().unwrap()
    };
    let scalar = steps("--precond ssor-ai2", "");
    let natural = steps("--precond block-ssor-ai2", "preconditioner: block-ssor-ai2 on 301 blocks of 2 rows");
    assert!(natural <= scalar, "{natural} {scalar}");
    // Products with A are by the same blocks, and for a preconditioner by entries by rows.
    let by_blocks = "products with the matrix by blocks of 2 rows";
    assert_eq!(steps("--precond block-ssor-ai2", by_blocks), natural);
    let by_rows = solve("--precond ssor-ai2").expect(0).json();
    assert!(by_rows["notes"].as_array().unwrap().iter().all(|n| n != by_blocks), "{by_rows}");
    let one = "preconditioner: block-ssor-ai2 on 602 blocks of 1 row, as ssor-ai2";
    assert!(steps("--precond block-ssor-ai2 --blocks 1", one).abs_diff(scalar) <= 1);
    assert!(steps("--precond block-ssor-ai2 --omega 1.6", "") != natural);
    // 602 = 2·7·43
    let refused = solve("--precond block-ssor-ai2 --blocks 4").expect(2);
    assert!(refused.stderr.contains("one size that divides the 602 rows, not of 2 to 4"), "{}", refused.stderr);
    let refused = solve("--precond block-ssor-ai2 --blocks 7").expect(2);
    assert!(refused.stderr.contains("7 is not between 1 and 6"), "{}", refused.stderr);
}

#[test]
fn the_disk_and_its_preconditioners() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson-disk --n 1105 -o A.mtx --rhs b.mtx").expect(0);
    // Counts of the specification, ±3 %.
    for (precond, counts) in [("none", 93..=99), ("ssor-ai-masked --omega 1.1", 49..=51)] {
        let line = format!("solve A.mtx -b b.mtx --method cg --rtol 1e-6 --json --precond {precond}");
        let json = sandbox.run(&line).expect(0).json();
        assert!(counts.contains(&json["iterations"].as_u64().unwrap()), "{json}");
    }
    let levels = |k: usize| {
        let line = format!("solve A.mtx -b b.mtx --method bicgstab --precond iluk --levels {k} --json");
        sandbox.run(&line).expect(0).json()["iterations"].as_u64().unwrap()
    };
    assert!(levels(3) < levels(0));
    for local in ["ilu0", "iluk", "ilut", "ic0", "direct"] {
        let line = format!(
            "solve A.mtx -b b.mtx --method gmres --precond ras --partitions 3 --overlap 2 --local {local} --json"
        );
        let json = sandbox.run(&line).expect(0).json();
        assert_eq!((&json["outcome"], &json["precond"]), (&"converged".into(), &"ras".into()), "{local}");
    }
    let run = sandbox.run("solve A.mtx -b b.mtx --method cg --precond ssor-ai-masked --omega 1.9").expect(3);
    assert!(run.stderr.contains("not positive definite"), "{}", run.stderr);
}

#[test]
fn arms_and_butterflies_on_its_last_level() {
    let sandbox = generated("convection-diffusion --nx 40 --peclet 1.5");
    let solve = |options: &str| {
        let line = format!("solve A.mtx --json --method fgmres {options}");
        let json = sandbox.run(&line).expect(0).json();
        assert_eq!(json["outcome"], "converged", "{json}");
        let notes: Vec<_> = json["notes"].as_array().unwrap().iter().map(|n| n.as_str().unwrap().to_owned()).collect();
        (json["iterations"].as_u64().unwrap() as f64, notes.join("; "), json)
    };
    let (dense, notes, json) = solve("--precond arms --levels 1 --drop-tol 1e-2");
    assert!(notes.contains("levels of 1600, ") && notes.contains("by dense-lu"), "{notes}");
    assert_eq!((&json["precond"], json["seed"].is_null()), (&"arms".into(), true));
    let (butterflies, notes, json) = solve("--precond arms-rbt --levels 1 --drop-tol 1e-2 --seed 5");
    assert!(notes.contains("arms-rbt") && notes.contains("by rbt"), "{notes}");
    assert_eq!((&json["precond"], &json["seed"]), (&"arms-rbt".into(), &5.into()));
    assert!(dense > 1.0 && (butterflies / dense - 1.0).abs() <= 0.1, "{dense} {butterflies}");
    assert!(solve("--precond arms").0 < dense);
    let (_, notes, _) = solve("--precond arms --levels 0 --fill 8");
    assert!(notes.contains("levels of 1600 rows, the last"), "{notes}");
    solve("--precond arms --inner 5");
    let run = sandbox.run("solve A.mtx --method gmres --precond arms --inner 5").expect(2);
    assert!(run.stderr.contains("use fgmres"), "{}", run.stderr);
    let run = sandbox.run("solve A.mtx --method gmres --precond arms --seed 5").expect(0);
    assert!(run.stderr.contains("--seed"), "{}", run.stderr);
    let run = sandbox.run("solve A.mtx --method gmres --precond arms-rbt --seed 5").expect(0);
    assert!(!run.stderr.contains("--seed"), "{}", run.stderr);
}
