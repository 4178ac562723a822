//! Reports of results that a GPU might have given: they are made up here, and no device is needed.

use bt_reproduce::{Claim, Item, Report, Results, Scale, Study, Table, Verdict, experiments, report};
use serde_json::{Value, json};

const GPU: &str = "GPU 0, made up, with 2 multiprocessors";

fn solve(iterations: u32, seconds: f64) -> Value {
    json!({
        "outcome": "converged", "iterations": iterations, "relative_residual": 1e-8,
        "seconds": seconds, "copies_seconds": 1e-4, "setup_seconds": 2e-3,
    })
}

/// The section of the device.
fn section(report: &Report) -> Option<&[Item]> {
    report.sections.iter().find(|s| s.title == "On the GPU").map(|s| s.items.as_slice())
}

fn claim<'r>(report: &'r Report, words: &str) -> &'r Claim {
    report.claims().find(|c| c.what.contains(words)).unwrap_or_else(|| panic!("no claim '{words}'"))
}

fn table(report: &Report) -> &Table {
    let mut tables = section(report).into_iter().flatten().filter_map(|item| match item {
        Item::Table(table) => Some(table),
        _ => None,
    });
    tables.next_back().expect("a table")
}

#[test]
fn without_a_gpu_there_is_no_section_and_no_experiment() {
    for study in Study::ALL {
        assert!(experiments(study, Scale::Full, None).iter().all(|e| !e.id().ends_with("/gpu")));
        let without = report(study, Scale::Full, None, &Results::default());
        assert!(section(&without).is_none());
        let with = report(study, Scale::Full, Some(GPU), &Results::default());
        assert!(table(&with).rows.is_empty());
        assert!(section(&with).into_iter().flatten().any(|item| matches!(item, Item::Text(t) if t.contains(GPU))));
        let there = with.claims().count() - without.claims().count();
        let not_run = |r: &Report| r.claims().filter(|c| c.verdict == Verdict::NotRun).count();
        assert!(there > 0 && not_run(&with) == not_run(&without) + there, "{study:?}");
    }
}

#[test]
fn sweeps_are_compared_with_those_of_the_processor() {
    let made = |redblack: u32| {
        Results::from_json(&json!({
            "hbisa/Cloud16-100": {
                "hbisa": solve(136, 8e-3), "redblack": solve(71, 6e-3), "bicgstab": solve(121, 1e-2),
            },
            "hbisa/Cloud16-100/gpu": {
                "hbisa": solve(136, 2e-3), "redblack": solve(redblack, 3e-3), "split": solve(137, 4e-3),
                "bicgstab": { "error": "12 bytes are needed on the GPU, 8 are free" },
            },
        }))
    };
    let good = report(Study::Hbisa, Scale::Quick, Some(GPU), &made(72));
    let counts = claim(&good, "as many iterations on the GPU as on the processor");
    assert_eq!((counts.verdict, counts.ours.as_str()), (Verdict::Reproduced, "3 of 3"));
    // The device refused BiCGSTAB: the comparison with it has no figures.
    assert_eq!(claim(&good, "on the GPU HBISA takes less time than BiCGSTAB").verdict, Verdict::NotRun);
    let faster = claim(&good, "less time on the GPU than on the processor");
    assert_eq!(
        (faster.verdict, faster.ours.as_str()),
        (Verdict::NotComparable, "on 1 of 1; 4.00 to 4.00 times as fast")
    );
    let rows = &table(&good).rows;
    assert_eq!(
        rows[0],
        ["Cloud16-100", "HBISA", "136", "136", "8.00 ms", "2.00 ms", "14.7 µs", "100.0 µs", "2.00 ms", "4.00"]
    );
    assert_eq!(rows[3][3], "refused: 12 bytes are needed on the GPU, 8 are free");
    assert_eq!(rows[3][5], "–");

    let bad = report(Study::Hbisa, Scale::Quick, Some(GPU), &made(74));
    let counts = claim(&bad, "as many iterations on the GPU as on the processor");
    assert_eq!(counts.verdict, Verdict::NotReproduced);
    assert_eq!(counts.ours, "2 of 3; not Cloud16-100 red–black");
}

#[test]
fn a_time_that_drowned_in_the_copies_is_no_time() {
    let results = Results::from_json(&json!({
        "hbisa/B": { "hbisa": solve(407, 1e-4) },
        "hbisa/B/gpu": { "hbisa": solve(407, -1e-6) },
    }));
    let made = report(Study::Hbisa, Scale::Quick, Some(GPU), &results);
    assert_eq!(table(&made).rows[0][5..7], ["–", "–"]);
    assert_eq!(claim(&made, "less time on the GPU than on the processor").verdict, Verdict::NotRun);
}

#[test]
fn the_papers_own_comparison_is_made_on_one_device() {
    let with = |setup: f64| {
        let five = |mut facts: Value| {
            facts["runs"] =
                json!([facts["seconds"], facts["seconds"], facts["seconds"], facts["seconds"], facts["seconds"]]);
            facts
        };
        let mut masked = five(solve(801, 0.5));
        masked["setup_seconds"] = json!(2e-3 + setup);
        Results::from_json(&json!({
            "ssor-ai/265345/cg1": { "solve": solve(1467, 8.0) },
            "ssor-ai/265345/cg": { "solve": solve(1467, 5.0) },
            "ssor-ai/265345/cg/gpu": { "solve": five(solve(1480, 1.0)) },
            "ssor-ai/265345/masked/gpu": { "solve": masked },
        }))
    };
    let fast = report(Study::SsorAi, Scale::Quick, Some(GPU), &with(0.3));
    let gain = claim(&fast, "on the GPU PCG with M̄_A is faster than CG");
    assert_eq!((gain.verdict, gain.ours.as_str()), (Verdict::Reproduced, "1.25 to 1.25 times (1 sizes)"));
    assert_eq!(gain.paper, "1.28 to 1.42 times (8 threads a row)");
    let speedup = claim(&fast, "CG on the GPU is faster than on one core");
    assert_eq!((speedup.verdict, speedup.paper.as_str()), (Verdict::Reproduced, "4.7 to 7.2 times (Tesla T10, Xeon)"));
    // Within 1 %; the masked form has no result of the processor to stand beside.
    let counts = claim(&fast, "every form takes as many iterations");
    assert_eq!((counts.verdict, counts.ours.as_str()), (Verdict::Reproduced, "1 of 1"));
    // Forming M̄_A counts.
    let slow = report(Study::SsorAi, Scale::Quick, Some(GPU), &with(0.6));
    assert_eq!(claim(&slow, "on the GPU PCG with M̄_A is faster than CG").verdict, Verdict::NotReproduced);
}

#[test]
fn the_last_level_and_partitions_have_rows() {
    let arms = |iterations, setup: f64| {
        let mut solve = solve(iterations, 0.1);
        (solve["products_seconds"], solve["preconditioner_seconds"]) = (json!(0.02), json!(0.05));
        json!({
            "n": 16384, "nnz": 100_000, "levels": 2, "setup_seconds": setup, "fill": 4.0, "solve": solve,
            "last": { "n": 1968, "method": "rbt", "fell_back": false, "shift": 0.0 },
        })
    };
    let with = |lu_setup: f64| {
        let results = Results::from_json(&json!({
            "parms/edf-x1/arms-lu": arms(11, lu_setup), "parms/edf-x1/arms-rbt": arms(11, 0.4),
            "parms/edf-x1/arms-rbt/gpu": arms(11, 0.2),
        }));
        report(Study::Parms, Scale::Quick, Some(GPU), &results)
    };
    let headline = |made: &Report| {
        let claim = claim(made, "with butterflies on the GPU is faster than with LU on the processor");
        (claim.verdict, claim.ours.clone())
    };
    // Each time is of one run, and known up to a factor of two.
    assert_eq!(headline(&with(2.9)), (Verdict::Reproduced, "edf-x1: +900 %".to_owned()));
    let made = with(0.5);
    assert_eq!(headline(&made), (Verdict::NotDecided, "edf-x1: +100 %".to_owned()));
    assert_eq!(table(&made).rows[0][..4], ["edf-x1", "1968 rows, rbt", "11", "11"]);
    assert_eq!(table(&made).rows[0][10], "2.00");

    let spike = |by: &str| {
        let times = json!({ "setup_seconds": 1e-3, "solve_seconds": 1e-3, "backward_error": 2e-16, "steps": 1 });
        let mut facts = json!({ "spike": times });
        facts["spike"]["solved_by"] = json!(by);
        Results::from_json(&json!({ "spike/partitions/0/4/gpu": facts }))
    };
    for (by, verdict) in [("GPU", Verdict::Reproduced), ("processor", Verdict::NotReproduced)] {
        let made = report(Study::Spike, Scale::Quick, Some(GPU), &spike(by));
        assert_eq!(claim(&made, "On the GPU, too, the exact variant").verdict, verdict, "{by}");
        assert_eq!(table(&made).rows[0][9], by);
    }
}

#[cfg(not(feature = "cuda"))]
#[test]
fn a_build_without_the_feature_says_so() {
    let why = bt_reproduce::Gpu::open(3).expect_err("no GPU").to_string();
    assert_eq!(why, "no GPU 3: this build of the library is without the feature cuda");
}
