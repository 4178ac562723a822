//! `reproduce` from the outside: files, resumption, interruption, and the page in a browser.

mod common;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{Run, Sandbox};
use serde_json::Value;

/// Experiments that are quick without optimisation too.
const SMALL: &str = "--quick --only hbisa/B --only hbisa/plans";

fn results(sandbox: &Sandbox, folder: &str) -> Value {
    serde_json::from_str(&sandbox.read(&format!("{folder}/results.json"))).expect("whole JSON")
}

/// Results over processes are taken in place of those over threads, and the report says which they are; other versions and scales are refused.
#[test]
fn results_over_processes_are_taken_in() {
    let sandbox = Sandbox::new();
    let id = "parms/box-32x32x64/4-ranks/schur/arms-rbt";
    let file = |program: &str, scale: &str| {
        let steps = serde_json::json!({"distribute": 0.5, "factor": 0.25, "apply": 2.0, "outer": 0.25});
        let solve = serde_json::json!({"outcome": "converged", "iterations": 17, "seconds": 2.25});
        let facts = serde_json::json!({
            "transport": "mpi", "processor": "Another", "ranks": 4, "cores": 2, "messages": 170, "bytes": 1700, "collectives": 34, "cut": 8,
            "communication": 0.125, "steps": steps, "solve": solve,
        });
        let setting = serde_json::json!({"program": program, "scale": scale});
        serde_json::json!({"schema": 2, "setting": setting, "experiments": {id: facts, "parms/unknown": {}}})
            .to_string()
    };
    let program = format!("blocktri-mpi {}", env!("CARGO_PKG_VERSION"));
    std::fs::write(sandbox.path("ranks.json"), file(&program, "quick")).unwrap();
    let line = format!("reproduce parms --quick --only {id} -o r --json --ranks");
    let json = sandbox.run(&format!("{line} ranks.json")).expect(0).json();
    assert_eq!((&json["ran"], &json["finished"]), (&0.into(), &1.into()));
    assert_eq!(results(&sandbox, "r")["experiments"][id]["transport"], "mpi");
    let page = sandbox.read("r/report.md");
    assert!(
        page.contains("which are processes of MPI:") && page.contains("Seconds are of Another (ranks: 4)."),
        "{page}"
    );
    assert!(page.contains("| box-32x32x64 | schur/arms-rbt | 4 | 17 | 10 | 100 | 2 | 8 |"), "{page}");
    for (program, scale, told) in [
        (program.as_str(), "full", "its scale is \"full\", not \"quick\""),
        ("blocktri-mpi 0.0.1", "quick", "its program is \"blocktri-mpi 0.0.1\""),
    ] {
        std::fs::write(sandbox.path("other.json"), file(program, scale)).unwrap();
        let run = sandbox.run(&format!("{line} other.json")).expect(2);
        assert!(run.stderr.contains(told) || run.stdout.contains(told), "{} {}", run.stdout, run.stderr);
    }
}

#[test]
fn a_report_is_a_folder_and_goes_on() {
    let sandbox = Sandbox::new();
    let line = format!("reproduce hbisa {SMALL} -o r --json");
    let json = sandbox.run(&line).expect(0).json();
    assert_eq!(
        (&json["schema"], &json["ran"], &json["finished"], &json["of"]),
        (&2.into(), &2.into(), &2.into(), &12.into())
    );
    assert_eq!((&json["setting"]["scale"], &json["failed"]), (&"quick".into(), &Value::Array(Vec::new())));
    let claims = json["claims"].as_array().unwrap();
    for claim in claims {
        let verdict = claim["verdict"].as_str().unwrap();
        let is_example = claim["what"].as_str().unwrap().contains("9 × 9");
        assert_eq!(verdict, if is_example { "reproduced" } else { "not run" }, "{claim}");
        assert!(
            ["study", "origin", "paper", "ours", "why"].iter().all(|key| !claim[key].as_str().unwrap().is_empty()),
            "{claim}"
        );
    }
    assert_eq!(claims.iter().filter(|c| c["verdict"] == "reproduced").count(), 1);

    let kept = results(&sandbox, "r");
    assert_eq!((&kept["schema"], &kept["claims"]), (&2.into(), &json["claims"]));
    // When, and how busy the machine was.
    let session = &kept["sessions"][0];
    assert!(session["ran"] == 2 && session["from"].as_str().unwrap().ends_with(" UTC"), "{session}");
    let plans = &kept["experiments"]["hbisa/plans"]["rows"];
    let in_advance: Vec<_> = plans.as_array().unwrap().iter().map(|r| r["in_advance"].as_u64().unwrap()).collect();
    assert_eq!(in_advance, [2, 5, 10, 21, 33]);
    assert_eq!(kept["experiments"]["hbisa/B"]["hbisa"]["iterations"], 407);
    let html = sandbox.read("r/report.html");
    assert!(html.starts_with("<!doctype html>") && html.contains("prefers-color-scheme"));
    for absent in ["<script", "http:", "src=", "NaN"] {
        assert!(!html.replace("http://www.w3.org/2000/svg", "").contains(absent), "{absent}");
    }
    let markdown = sandbox.read("r/report.md");
    assert!(markdown.contains("| 10 | 10 | 10.93 | 12 |"), "{markdown}");
    // Tables of what was not run say so.
    assert!(markdown.contains("No results yet.") && html.contains("No results yet."));
    assert!(sandbox.path("r/hbisa-seconds.svg").exists() && markdown.contains("(hbisa-seconds.svg)"));

    // What is finished is not run again, unless the setting is another, or it is asked for.
    assert_eq!(sandbox.run(&line).expect(0).json()["ran"], 0);
    assert_eq!(sandbox.run(&format!("{line} --fresh")).expect(0).json()["ran"], 2);
    let run = sandbox.run(&format!("{line} --threads 3")).expect(0);
    assert!(run.stderr.contains("not taken over, made with other threads"), "{}", run.stderr);
    assert_eq!(run.json()["ran"], 2);
    // What is not in the papers is counted apart.
    let of_our_own = claims.iter().filter(|c| c["origin"] == "ours").count();
    assert!(of_our_own >= 3 && claims.iter().all(|c| (c["origin"] == "ours") || c["paper"] != "–"), "{of_our_own}");
    assert!(html.contains("claims of papers") && markdown.contains("claims of our own: 1 holds"), "{markdown}");
    // Files of an earlier schema are left alone, and said to be.
    let old = sandbox.read("r/results.json").replace("\"schema\": 2", "\"schema\": 1");
    sandbox.write("r/results.json", &old);
    let run = sandbox.run(&format!("{line} --threads 3")).expect(0);
    assert!(run.stderr.contains("its schema is 1") && run.json()["ran"] == 2, "{}", run.stderr);
    sandbox.write("r/results.json", "{");
    let run = sandbox.run(&format!("{line} --threads 3")).expect(0);
    assert!(run.stderr.contains("not taken over") && run.json()["ran"] == 2, "{}", run.stderr);
    assert!(
        std::fs::read_dir(sandbox.path("r")).unwrap().all(|e| !e
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with('.'))
    );
}

#[test]
fn a_report_is_written_anew_from_results_of_another_build() {
    let sandbox = Sandbox::new();
    sandbox.run(&format!("reproduce hbisa {SMALL} -o r")).expect(0);
    let old = sandbox.read("r/results.json").replace("\"build\": \"", "\"build\": \"of another ");
    sandbox.write("r/results.json", &old);
    std::fs::remove_file(sandbox.path("r/report.md")).unwrap();
    let json = sandbox.run("reproduce hbisa --quick --render -o r --json").expect(0).json();
    assert_eq!((&json["ran"], &json["finished"]), (&0.into(), &2.into()));
    assert!(json["setting"]["build"].as_str().unwrap().starts_with("of another "), "{json}");
    assert!(sandbox.read("r/report.md").contains("| 10 | 10 | 10.93 | 12 |"));
    // The scale must be that of the results, and there must be some.
    let run = sandbox.run("reproduce hbisa --render -o r").expect(2);
    assert!(run.stderr.contains("scale"), "{}", run.stderr);
    sandbox.run("reproduce hbisa --quick --render -o nothing").expect(2);
    assert!(!sandbox.path("nothing").exists());
}

#[test]
fn wrong_words_are_usage_errors() {
    let sandbox = Sandbox::new();
    let run = sandbox.run("reproduce hbisa --only Cloud17 -o r").expect(2);
    assert!(run.stderr.contains("Cloud17") && run.stderr.contains("hbisa/Cloud16-100"), "{}", run.stderr);
    sandbox.run("reproduce nothing").expect(2);
    assert!(sandbox.names().is_empty());
    sandbox.write("file", "");
    sandbox.run(&format!("reproduce hbisa {SMALL} -o file")).expect(2);
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_keeps_what_is_finished() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command("reproduce hbisa --quick -o r");
    let mut child = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    while !sandbox.path("r/results.json").exists() {
        assert!(started.elapsed() < Duration::from_secs(60), "no results");
        assert!(child.try_wait().unwrap().is_none(), "ended before its first result");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let run = Run::from(child.wait_with_output().unwrap()).expect(130);
    assert!(run.stderr.contains("interrupted") && run.stderr.contains("results.json"), "{}", run.stderr);
    let finished = results(&sandbox, "r")["finished"].as_u64().unwrap();
    assert!((1..12).contains(&finished), "{finished}");
    // The first experiment is among them.
    let json = sandbox.run("reproduce hbisa --quick --only hbisa/B -o r --json").expect(0).json();
    assert_eq!((&json["ran"], &json["finished"]), (&0.into(), &finished.into()));
}

/// What a page says of itself in a frame as wide as a phone: width of its contents, colour of its ground.
fn in_a_browser(sandbox: &Sandbox, page: &Path, scheme: &str) -> String {
    let text = std::fs::read_to_string(page).unwrap();
    let source = text.replace('&', "&amp;").replace('"', "&quot;");
    sandbox.write(
        "frame.html",
        format!(
            "<!doctype html><p id=\"said\"></p><iframe style=\"width:390px;height:800px;border:0\" srcdoc=\"{source}\"></iframe>\
             <script>const f=document.querySelector('iframe');f.onload=()=>{{const d=f.contentDocument,r=d.documentElement;\
             document.querySelector('#said').textContent='said '+r.clientWidth+' '+r.scrollWidth+' '+\
             getComputedStyle(d.body).backgroundColor+' '+getComputedStyle(d.querySelector('svg text')).fill;}}</script>"
        ),
    );
    let dom = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--virtual-time-budget=5000",
        ])
        .arg(format!("--user-data-dir={}", sandbox.path(&format!("profile-{scheme}")).display()))
        .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(scheme == "light")))
        .args(["--dump-dom", &format!("file://{}", sandbox.path("frame.html").display())])
        .output()
        .expect("the browser starts");
    let dom = String::from_utf8_lossy(&dom.stdout).into_owned();
    let said = dom.split("said ").nth(1).and_then(|rest| rest.split('<').next());
    said.unwrap_or_else(|| panic!("the page said nothing: {}", &dom[..dom.len().min(500)])).to_owned()
}

#[test]
fn the_page_fits_a_phone_in_both_colour_schemes() {
    if Command::new("chromium").arg("--version").output().is_err() {
        println!("skipped: chromium is absent");
        return;
    }
    let sandbox = Sandbox::new();
    // One experiment at least of every study.
    let only = "--only hbisa/B --only Cloud16-100 --only ssor-ai/1105 --only edf-x1/ilu0 --only tridiagonal \
                --only boosting";
    sandbox.run(&format!("reproduce all --quick {only} -o r")).expect(0);
    let page = sandbox.path("r/report.html");
    for (scheme, colours) in
        [("light", "rgb(255, 255, 255) rgb(31, 41, 51)"), ("dark", "rgb(20, 24, 29) rgb(228, 232, 236)")]
    {
        let said = in_a_browser(&sandbox, &page, scheme);
        let mut words = said.splitn(3, ' ');
        let [width, contents]: [u32; 2] = [(); 2].map(|()| words.next().unwrap().parse().unwrap());
        // A scroll bar may take some of the 390 pixels.
        assert!((360..=390).contains(&width) && contents == width, "{said}");
        assert_eq!(words.next(), Some(colours), "{scheme}");
    }
}
