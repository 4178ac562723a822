//! `queue` from the outside.

mod common;

use common::{Sandbox, numbers, shared};

const CLOUD: &str = "queue --resources 40 --threshold 16 --lambda 10";

#[test]
fn a_plan_of_the_cloud_model() {
    let sandbox = Sandbox::new();
    let json = sandbox.run(&format!("{CLOUD} --json")).expect(0).json();
    assert_eq!((&json["schema"], &json["n"], &json["recurrent"]), (&1.into(), &1320.into(), &1320.into()));
    assert_eq!(
        (&json["method"], &json["method_requested"], &json["outcome"]),
        (&"gth".into(), &"auto".into(), &"converged".into())
    );
    assert_eq!((&json["plan"]["in_advance"], &json["plan"]["on_95"]), (&10.into(), &12.into()));
    assert!((json["plan"]["mean_on"].as_f64().unwrap() - 10.93).abs() < 0.005);
    assert!(json["balance"].as_f64().unwrap() < 1e-14 && json["error_bound"].as_f64().unwrap() < 1e-10);
    assert!(json["plan"]["cost"].is_null());
    let text = sandbox.run(CLOUD).expect(0).stdout;
    for word in ["1320 states", "most probable", "turn on in advance 10", "95 % ≤ 12", "residual", "accuracy"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let json = sandbox.run(&format!("{CLOUD} --cost-resource 2 --time-unit minute --json")).expect(0).json();
    let cost = json["plan"]["cost"]["per_hour"].as_f64().unwrap();
    assert!((cost - 2.0 * json["plan"]["mean_on"].as_f64().unwrap()).abs() < 1e-9);
    assert_eq!(json["model"]["time_unit"], "minute");
}

#[test]
fn the_model_and_its_file_agree() {
    let sandbox = Sandbox::new();
    let model = "--resources 6 --threshold 4 --lambda 2";
    sandbox.run(&format!("generate queue {model} -o Q.mtx")).expect(0);
    sandbox.run(&format!("queue {model} -o a.mtx")).expect(0);
    let json = sandbox.run("queue --generator Q.mtx --blocks 9 -o b.mtx --json").expect(0).json();
    let (a, b) = (numbers(&sandbox.read("a.mtx")), numbers(&sandbox.read("b.mtx")));
    assert_eq!(a.len(), 54);
    for (a, b) in a.iter().zip(&b) {
        assert!((a - b).abs() <= 1e-14 * a, "{a} {b}");
    }
    assert!((a[0] - 0.0019015315501979368).abs() < 1e-16);
    sandbox.run(&format!("generate queue {model} --matrix P -o P.mtx")).expect(0);
    sandbox.run("queue --transitions P.mtx -o b.mtx").expect(0);
    for (a, b) in a.iter().zip(numbers(&sandbox.read("b.mtx"))) {
        assert!((a - b).abs() <= 1e-13 * a, "{a} {b}");
    }
    let on: f64 = json["levels"]["mean"].as_f64().unwrap() + 1.0;
    let plan = sandbox.run(&format!("queue {model} --json")).expect(0).json();
    assert!((on - plan["resources"]["mean"].as_f64().unwrap()).abs() < 1e-12);
    sandbox.run(&format!("queue {model} -o a.csv --plot pi.svg")).expect(0);
    let table = sandbox.read("a.csv");
    assert!(
        table.starts_with("tasks,level,probability,log10\n0,1,1.90153155019") && table.lines().count() == 55,
        "{table}"
    );
    assert!(sandbox.read("pi.svg").contains("tasks"));
}

#[test]
fn sweeps_give_a_table_and_a_picture() {
    let sandbox = Sandbox::new();
    let line = format!("{CLOUD} --sweep lambda=2:5:3 --cost-resource 1 -o plan.csv --plot plan.svg");
    let json = sandbox.run(&format!("{line} --json")).expect(0).json();
    let plans = json["plans"].as_array().unwrap();
    assert_eq!(plans.iter().map(|p| p["in_advance"].as_u64().unwrap()).collect::<Vec<_>>(), [2, 5]);
    let table = sandbox.read("plan.csv");
    assert_eq!(table.lines().count(), 3);
    assert!(table.starts_with("lambda,in_advance,") && table.contains("\n5,5,"), "{table}");
    assert!(sandbox.read("plan.svg").contains("95 % quantile"));
    let text = sandbox.run(&format!("{CLOUD} --sweep resources=20:24:2")).expect(0).stdout;
    assert!(text.contains("22") && text.contains("in advance"), "{text}");
}

#[test]
fn chains_without_an_answer_end_with_a_code() {
    let sandbox = Sandbox::new();
    let run = sandbox.run("queue --resources 3 --threshold 2 --lambda 1 --eta 0 --nu 0 -o x.mtx --json").expect(4);
    assert_eq!(run.json()["closed_classes"]["count"], 3);
    assert!(run.stderr.contains("3 closed classes"), "{}", run.stderr);
    let header = "%%MatrixMarket matrix coordinate real general\n";
    sandbox.write("negative.mtx", format!("{header}2 2 2\n1 1 1\n1 2 -1\n"));
    sandbox.write("stochastic.mtx", format!("{header}2 2 3\n1 1 0.5\n1 2 0.5\n2 1 1\n"));
    let run = sandbox.run("queue --generator negative.mtx -o x.mtx").expect(2);
    assert!(run.stderr.contains("the rate from state 0 to state 1"), "{}", run.stderr);
    let run = sandbox.run("queue --generator stochastic.mtx -o x.mtx").expect(2);
    assert!(run.stderr.contains("transition probabilities"), "{}", run.stderr);
    let json = sandbox.run("queue --transitions stochastic.mtx --json").expect(0).json();
    assert!((json["mode"]["probability"].as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-15);
    assert_eq!(sandbox.names(), ["negative.mtx", "stochastic.mtx"]);
}

#[test]
fn the_other_methods() {
    let sandbox = Sandbox::new();
    let model = "queue --resources 6 --threshold 4 --lambda 2";
    sandbox.run(&format!("{model} -o gth.mtx")).expect(0);
    let gth = numbers(&sandbox.read("gth.mtx"));
    for method in ["gth", "block-lu", "hbisa --rtol 1e-13", "power --rtol 1e-13"] {
        let json = sandbox.run(&format!("{model} --method {method} -o pi.mtx --json")).expect(0).json();
        assert!(method.starts_with(json["method"].as_str().unwrap()) && json["method"] == json["method_requested"]);
        assert_eq!(json["outcome"], "converged");
        for (a, b) in gth.iter().zip(numbers(&sandbox.read("pi.mtx"))) {
            assert!((a - b).abs() <= 1e-11, "{method}: {a} {b}");
        }
    }
    let slow = format!("{model} --eta 1e-6 --nu 1e-6 --method power --max-iters 50 -o slow.mtx --json");
    let run = sandbox.run(&slow).expect(3);
    assert!(run.stderr.contains("iteration-limit") && run.stderr.contains("gth"), "{}", run.stderr);
    assert_eq!((&run.json()["outcome"], run.json()["iterations"].as_u64()), (&"iteration-limit".into(), Some(50)));
    assert!(sandbox.path("slow.mtx").exists());
    let run = sandbox.run(&format!("{model} --rtol 1e-3")).expect(0);
    assert!(run.stderr.contains("--rtol is not read"), "{}", run.stderr);
}

#[test]
fn times_and_first_waits() {
    let sandbox = Sandbox::new();
    let model = "queue --resources 6 --threshold 4 --lambda 2";
    let json = sandbox.run(&format!("{model} --times 0,1,500 --json")).expect(0).json();
    let at = |k: usize, key: &str| json["times"][k][key].as_f64().unwrap();
    assert_eq!((at(0, "mean_tasks"), at(0, "mean_on")), (0.0, 1.0));
    assert!(at(1, "mean_tasks") > 0.5 && at(1, "mean_tasks") < at(2, "mean_tasks"));
    assert!((at(2, "mean_tasks") - json["tasks"]["mean"].as_f64().unwrap()).abs() < 1e-9);
    let mean = json["first_wait"]["mean"].as_f64().unwrap();
    assert!(mean > 2.0 && (mean.log10() - json["first_wait"]["log10"].as_f64().unwrap()).abs() < 1e-12);
    let text = sandbox.run(&format!("{model} --times 1")).expect(0).stdout;
    assert!(text.contains("at 1") && text.contains("first wait"), "{text}");
    sandbox.run(&format!("{model} --times 2,1")).expect(2);
    sandbox.run(&format!("{model} --times 1e300")).expect(2);
}

/// The collection of chains, through files.
#[test]
fn the_collection_through_files() {
    let Some(folder) = shared("markov") else { return };
    let sandbox = Sandbox::new();
    for name in ["courtois_8", "mm1k_rho0.2_300", "tandem_c5", "transient_states", "absorbing_state"] {
        let file = folder.join(format!("{name}.mtx"));
        sandbox.run(&format!("queue --generator {} -o pi.mtx", file.display())).expect(0);
        let exact = numbers(&std::fs::read_to_string(folder.join(format!("{name}_pi.mtx"))).unwrap());
        let ours = numbers(&sandbox.read("pi.mtx"));
        assert_eq!(ours.len(), exact.len());
        for (a, b) in ours.iter().zip(&exact) {
            assert!((a - b).abs() <= 1e-13 * b, "{name}: {a} {b}");
        }
    }
    sandbox.run(&format!("queue --generator {}", folder.join("reducible_two_classes.mtx").display())).expect(4);
}
