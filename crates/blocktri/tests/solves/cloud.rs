//! The ten cloud matrices solved by `auto`, b = ones, against the reference solutions in
//! `../shared/reference/golden_cloud.json`.

use blocktri::{Outcome, SolveOptions, faer::Mat, solve};
use bt_queue::CloudCase;

#[test]
fn solutions_match_the_reference() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/reference/golden_cloud.json");
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("skipped: ../shared is absent");
        return;
    };
    let golden: serde_json::Value = serde_json::from_str(&text).unwrap();
    for (case, golden) in CloudCase::all().iter().zip(golden.as_array().unwrap()) {
        let a = case.matrix().unwrap();
        let n = golden["n"].as_u64().unwrap() as usize;
        let b = Mat::from_fn(n, 1, |_, _| 1.0);
        let answer = solve(&a, b.as_ref(), &SolveOptions::default(), &mut ()).unwrap();
        assert_eq!(answer.report.outcome, Outcome::Converged, "{}", case.name());
        assert!(answer.report.certificate.backward_error < 1e-15, "{}", case.name());
        let x: Vec<f64> = (0..n).map(|i| answer.x[(i, 0)]).collect();
        let close = |what: &str, ours: f64| {
            let reference = golden[what].as_f64().unwrap();
            assert!((ours - reference).abs() <= 1e-10 * reference.abs(), "{} {what}: {ours}", case.name());
        };
        close("x_first", x[0]);
        close("x_sum", x.iter().sum());
        close("x_inf", x.iter().fold(0.0, |m, v| v.abs().max(m)));
    }
}
