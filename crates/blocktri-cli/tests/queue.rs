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

/// Rows of a plan, right to 1e-12: losses far below the rounding of what is admitted.
#[test]
fn losses_are_not_differences() {
    let sandbox = Sandbox::new();
    for (options, loss, waiting) in [
        ("--resources 4 --threshold 8 --lambda 0.1", 2.94682619935458e-19, 9.46124297670112e-9),
        (
            "--resources 40 --threshold 8 --lambda 5 --mu 20.1 --eta 240 --nu 60",
            1.81590167704992e-19,
            1.12267557484855e-5,
        ),
        ("--resources 6 --threshold 8 --lambda 0.05 --eta 2", 2.04420013161137e-25, 3.77312814442625e-11),
    ] {
        let json = sandbox.run(&format!("queue {options} --json")).expect(0).json();
        for (key, right) in [("loss", loss), ("waiting", waiting)] {
            let ours = json["plan"][key].as_f64().unwrap();
            assert!((ours - right).abs() <= 1e-12 * right, "{options} {key}: {ours:e} for {right:e}");
        }
    }
}

/// Two pairs of states that hardly lead to each other: any weights of the pairs leave a residual of 1e-9, and (1, 1, 2, 2)/6 is
/// right. What ends with 0 is right to its bound, and the rest says that it is not certified.
#[test]
fn nothing_wrong_is_converged() {
    let sandbox = Sandbox::new();
    sandbox.write("pairs.mtx", format!("{HEADER}4 4 6\n1 2 1\n2 1 1\n2 3 2e-9\n3 2 1e-9\n3 4 1\n4 3 1\n"));
    for (method, code) in [("gth", 0), ("block-lu", 0), ("hbisa", 0), ("power", 3)] {
        let line = format!("queue --generator pairs.mtx --diagonal missing --method {method} -o pi.mtx --json");
        let run = sandbox.run(&line).expect(code);
        let json = run.json();
        assert_eq!(json["certified"], code == 0, "{method}");
        if code == 0 {
            let bound = json["error_bound"].as_f64().unwrap();
            for (ours, right) in numbers(&sandbox.read("pi.mtx")).iter().zip([1.0, 1.0, 2.0, 2.0]) {
                assert!((ours * 6.0 / right - 1.0).abs() <= bound, "{method}: {ours}");
            }
        } else {
            assert!(run.stderr.contains("not certified") && run.stderr.contains("gth"), "{}", run.stderr);
        }
    }
    // Plans of 2 resources for 7, and the model of the README.
    let slow = "queue --resources 12 --threshold 5 --lambda 6 --eta 1e-10 --nu 1e-10 --json --method";
    sandbox.run(&format!("{slow} power")).expect(3);
    for line in [format!("{slow} block-lu"), format!("{slow} hbisa"), format!("{slow} gth")] {
        let json = sandbox.run(&line).expect(0).json();
        assert_eq!((&json["plan"]["in_advance"], &json["plan"]["on_95"]), (&7.into(), &9.into()), "{line}");
    }
    let json = sandbox.run(&format!("{CLOUD} --method block-lu --json")).expect(0).json();
    let loss = json["plan"]["loss"].as_f64().unwrap();
    assert!((loss / 0.000_308_370_432_464_575 - 1.0).abs() < 1e-10, "{loss}");
}

/// A ring of 64 states, all of them as probable: no state is the most probable one.
#[test]
fn block_lu_of_a_ring() {
    let sandbox = Sandbox::new();
    let mut ring = format!("{HEADER}64 64 128\n");
    for i in 0..64 {
        let (a, b) = (i + 1, (i + 1) % 64 + 1);
        ring.extend([format!("{a} {b} 1\n"), format!("{b} {a} 1\n")]);
    }
    sandbox.write("ring.mtx", ring);
    sandbox.run("queue --generator ring.mtx --diagonal missing --method block-lu -o pi.mtx").expect(0);
    for p in numbers(&sandbox.read("pi.mtx")) {
        assert!((64.0 * p - 1.0).abs() < 1e-13, "{p}");
    }
}

const HEADER: &str = "%%MatrixMarket matrix coordinate real general\n";

/// Small files of several kinds.
fn kinds(sandbox: &Sandbox) {
    for (name, text) in [
        ("half.mtx", "2 2 3\n1 2 0.5\n2 1 0.4\n2 2 0.6\n"),
        ("million.mtx", "2 2 4\n1 1 0.500001\n1 2 0.5\n2 1 0.5\n2 2 0.5\n"),
        ("counts.mtx", "3 3 6\n1 1 10\n1 2 5\n2 1 3\n2 3 7\n3 1 4\n3 3 6\n"),
        ("empty.mtx", "3 3 3\n1 2 1\n2 1 0.5\n2 3 0.5\n"),
        ("negative.mtx", "2 2 4\n1 1 1.1\n1 2 -0.1\n2 1 0.5\n2 2 0.5\n"),
        ("columns.mtx", "2 2 4\n1 1 0.5\n2 1 0.5\n1 2 0.25\n2 2 0.75\n"),
        ("rates.mtx", "3 3 4\n1 2 2\n2 1 1\n2 3 3\n3 1 0.5\n"),
        ("digits.mtx", "2 2 4\n1 1 -0.666667\n1 2 0.666666\n2 1 0.111111\n2 2 -0.111112\n"),
        ("q.mtx", "2 2 4\n1 1 -1\n1 2 1\n2 1 2\n2 2 -2\n"),
        ("p.mtx", "2 2 3\n1 1 0.5\n1 2 0.5\n2 1 1\n"),
    ] {
        sandbox.write(name, format!("{HEADER}{text}"));
    }
}

/// What a file is refused for, with the true sum and the option that takes it.
#[test]
fn files_of_another_kind_name_the_way_out() {
    let sandbox = Sandbox::new();
    kinds(&sandbox);
    for (line, words) in [
        ("--transitions half.mtx", vec!["half.mtx", "row 0", "sums to 0.5, not to 1", "--normalize"]),
        ("--transitions million.mtx", vec!["sums to 1.000001, not to 1", "--normalize"]),
        ("--transitions counts.mtx", vec!["sums to 15, not to 1", "counts", "--normalize"]),
        ("--transitions empty.mtx", vec!["row 2 (from 0) is empty"]),
        ("--transitions empty.mtx --normalize", vec!["row 2 (from 0) is empty"]),
        ("--transitions negative.mtx", vec!["the probability of going from state 0 to state 1", "-0.1"]),
        ("--transitions columns.mtx", vec!["the columns sum to 1", "transpose"]),
        ("--transitions columns.mtx --normalize", vec!["the columns sum to 1", "transpose"]),
        ("--transitions q.mtx", vec!["--generator"]),
        ("--transitions q.mtx --normalize", vec!["--generator"]),
        ("--generator p.mtx", vec!["--transitions"]),
        ("--generator p.mtx --normalize", vec!["--transitions"]),
        ("--generator rates.mtx", vec!["sums to 2, not to zero", "diagonal is missing", "--diagonal missing"]),
        ("--generator digits.mtx", vec!["sums to -1e-6, not to zero", "--normalize"]),
        ("--generator counts.mtx", vec!["sums to 15, not to zero", "counts"]),
    ] {
        let run = sandbox.run(&format!("queue {line} -o x.mtx")).expect(2);
        for word in words {
            assert!(run.stderr.contains(word), "{line}: {word} in {}", run.stderr);
        }
        if line.starts_with("--transitions") && !line.contains("q.mtx") {
            assert!(!run.stderr.contains("rate"), "{line}: {}", run.stderr);
        }
        assert!(!sandbox.path("x.mtx").exists());
    }
}

#[test]
fn options_take_rates_alone_counts_and_few_digits() {
    let sandbox = Sandbox::new();
    kinds(&sandbox);
    for (line, right) in [
        // 2π₀ = π₁ + π₂/2, 4π₁ = 2π₀
        ("--generator rates.mtx --diagonal missing", vec![2.0 / 9.0, 1.0 / 9.0, 6.0 / 9.0]),
        ("--generator rates.mtx --diagonal auto", vec![2.0 / 9.0, 1.0 / 9.0, 6.0 / 9.0]),
        ("--generator q.mtx --diagonal auto", vec![2.0 / 3.0, 1.0 / 3.0]),
        ("--generator q.mtx --diagonal given", vec![2.0 / 3.0, 1.0 / 3.0]),
        ("--generator digits.mtx --normalize", vec![0.111_111 / 0.777_777, 0.666_666 / 0.777_777]),
        // π₀/3 = 0.3π₁ + 0.4π₂, 0.7π₁ = 0.4π₂
        ("--transitions counts.mtx --normalize", vec![12.0 / 23.0, 4.0 / 23.0, 7.0 / 23.0]),
        ("--transitions million.mtx --normalize", vec![1.000_001 / 2.000_001, 1.0 / 2.000_001]),
    ] {
        let run = sandbox.run(&format!("queue {line} -o pi.mtx")).expect(0);
        for (ours, right) in numbers(&sandbox.read("pi.mtx")).iter().zip(right) {
            assert!((ours / right - 1.0).abs() < 1e-14, "{line}: {ours} {right}");
        }
        let changed = !line.contains("q.mtx");
        assert_eq!(
            run.stdout.contains("was made from the rates") || run.stdout.contains("was divided"),
            changed,
            "{line}"
        );
    }
}

#[test]
fn options_have_messages_of_their_own() {
    let sandbox = Sandbox::new();
    kinds(&sandbox);
    let model = "--resources 4 --threshold 2";
    for (line, word) in [
        (format!("{model} --lambda -1"), "a rate is a finite number of at least 0"),
        (format!("{model} --lambda 1 --mu -2e3"), "a rate is a finite number of at least 0"),
        (format!("{model} --lambda 1 --times -1"), "a time is a finite number of at least 0"),
        (format!("{model} --lambda 1 --rtol -1"), "at least 0"),
        (model.to_owned(), "without --lambda"),
        ("--sweep lambda=1:2:1".to_owned(), "without --resources M and --threshold K"),
        (format!("{model} --lambda 1 --diagonal missing"), "--diagonal"),
        (format!("{model} --lambda 1 --normalize"), "--normalize"),
        (format!("{model} --lambda 1 --times 1 --start 1"), "--start"),
        ("--generator q.mtx --lambda 1".to_owned(), "--lambda"),
        ("--transitions p.mtx --diagonal missing".to_owned(), "--diagonal"),
        ("--generator q.mtx --times 1 --start 2".to_owned(), "--start 2: the chain has 2 states, 0 to 1"),
        ("--generator q.mtx --times 1 --start 0.5".to_owned(), "a state is a whole number"),
        ("--generator q.mtx --start 1".to_owned(), "--times"),
    ] {
        let run = sandbox.run(&format!("queue {line}")).expect(2);
        assert!(run.stderr.contains(word), "{line}: {}", run.stderr);
    }
    // What is swept need not be given.
    for (name, sweep) in [
        ("lambda", "lambda=1:3:1 --resources 4 --threshold 2"),
        ("resources", "resources=2:4:1 --threshold 2 --lambda 1"),
        ("threshold", "threshold=1:3:1 --resources 2 --lambda 1"),
    ] {
        let json = sandbox.run(&format!("queue --sweep {sweep} --json")).expect(0).json();
        assert!(json["plans"].as_array().unwrap().len() == 3 && json["model"][name].is_null(), "{json}");
    }
}

/// Two states, rates 1 and 2: p₁(t) = 1/3 + (p₁(0) − 1/3)e^{−3t}.
#[test]
fn times_of_a_given_chain() {
    let sandbox = Sandbox::new();
    kinds(&sandbox);
    sandbox.write("start.mtx", "%%MatrixMarket matrix array real general\n2 1\n0.25\n0.75\n");
    sandbox.write("half_start.mtx", "%%MatrixMarket matrix array real general\n2 1\n0.25\n0.25\n");
    for (start, p1) in [("", 0.0), (" --start 1", 1.0), (" --start start.mtx", 0.75)] {
        let line = format!("queue --generator q.mtx --times 0,0.5,3e7{start} --blocks 1 --json");
        let json = sandbox.run(&line).expect(0).json();
        for (k, t) in [0.0, 0.5, 3e7].into_iter().enumerate() {
            let exact = 1.0 / 3.0 + (p1 - 1.0 / 3.0) * f64::exp(-3.0 * t);
            let ours = json["times"][k]["probabilities"][1].as_f64().unwrap();
            assert!((ours - exact).abs() < 1e-11, "{start} {t}: {ours} {exact}");
            assert!((json["times"][k]["levels"]["mean"].as_f64().unwrap() - exact).abs() < 1e-11);
        }
    }
    // As continuous time with the rates P − I: 1/2 and 1.
    let json = sandbox.run("queue --transitions p.mtx --times 2 --json").expect(0).json();
    let exact = (1.0 - f64::exp(-3.0)) / 3.0;
    assert!((json["times"][0]["probabilities"][1].as_f64().unwrap() - exact).abs() < 1e-11, "{json}");
    assert!(sandbox.run("queue --generator q.mtx --times 1").expect(0).stdout.contains("at 1 second "));
    let run = sandbox.run("queue --generator q.mtx --times 1 --start half_start.mtx").expect(2);
    assert!(run.stderr.contains("half_start.mtx") && run.stderr.contains("sum to 0.5"), "{}", run.stderr);
    let run = sandbox.run("queue --generator q.mtx --times 1 --start q.mtx").expect(2);
    assert!(run.stderr.contains("2 × 2"), "{}", run.stderr);
}

/// A fair game for 4 from 1: no stationary distribution, and ruined with probability 3/4 all the same.
#[test]
fn times_of_a_chain_with_several_ends() {
    let sandbox = Sandbox::new();
    sandbox.write("game.mtx", format!("{HEADER}5 5 6\n2 1 1\n2 3 1\n3 2 1\n3 4 1\n4 3 1\n4 5 1\n"));
    let line = "queue --generator game.mtx --diagonal missing --start 1 --times 1e6 -o pi.mtx";
    let run = sandbox.run(&format!("{line} --json")).expect(4);
    let ruined = run.json()["times"][0]["probabilities"][0].as_f64().unwrap();
    assert!((ruined - 0.75).abs() < 1e-11 && run.json()["closed_classes"]["count"] == 2, "{run:?}");
    let run = sandbox.run(line).expect(4);
    assert!(run.stdout.contains("most probable state 0: 0.7500") && run.stderr.contains("2 closed classes"), "{run:?}");
    assert!(!sandbox.path("pi.mtx").exists());
}

/// 1e8 events: the chain has long been steady.
#[test]
fn many_events_take_no_time() {
    let sandbox = Sandbox::new();
    let started = std::time::Instant::now();
    let json = sandbox.run("queue --resources 6 --threshold 4 --lambda 2 --times 1e7 --json").expect(0).json();
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    let (at, mean) = (&json["times"][0]["mean_tasks"], &json["tasks"]["mean"]);
    assert!((at.as_f64().unwrap() / mean.as_f64().unwrap() - 1.0).abs() < 1e-9, "{at} {mean}");
}

#[test]
fn reports_are_for_people() {
    let sandbox = Sandbox::new();
    let line = "queue --resources 1 --threshold 1 --lambda 0.5 --time-unit hour --times 1,2 -o pi.csv --plot pi.svg";
    let text = sandbox.run(line).expect(0).stdout;
    for word in [
        "1 resource of 1 task,",
        "per hour",
        "hours from empty",
        "at 1 hour ",
        "at 2 hours",
        "pi.csv",
        "pi.svg",
        "14.29 %",
    ] {
        assert!(text.contains(word), "{word} in {text}");
    }
    for word in ["10^", "1 resources", "1 tasks", "e0", "1 states"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
    let model = "queue --resources 40 --threshold 8 --lambda 20 --mu 20.1 --eta 240 --nu 60 --time-unit hour";
    let text = sandbox.run(model).expect(0).stdout;
    assert!(text.contains("minutes from empty") && text.contains("6.968e-11 of all are lost"), "{text}");
    let text = sandbox.run("queue --resources 3 --threshold 100 --lambda 0.01").expect(0).stdout;
    assert!(text.contains("years from empty") && text.contains("10^-4"), "{text}");
}
