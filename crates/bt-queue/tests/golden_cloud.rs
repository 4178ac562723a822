//! The ten cloud matrices against the reference numbers in `../shared/reference/golden_cloud.json`.

use bt_formats::{Csr, Matrix};
use bt_queue::CloudCase;

fn close(what: &str, ours: f64, golden: f64) {
    assert!((ours - golden).abs() <= 1e-12 * golden.abs().max(1.0), "{what}: {ours} against {golden}");
}

fn fro2(a: &Csr<f64>) -> f64 {
    a.values().iter().map(|v| v * v).sum()
}

#[test]
fn values_match_the_reference() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/reference/golden_cloud.json");
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("skipped: ../shared is absent");
        return;
    };
    let golden: serde_json::Value = serde_json::from_str(&text).unwrap();
    for (case, golden) in CloudCase::all().iter().zip(golden.as_array().unwrap()) {
        assert_eq!(case.name(), golden["name"]);
        let a = case.matrix().unwrap();
        let number = |key: &str| golden[key].as_f64().unwrap();
        assert_eq!(a.nnz() as u64, golden["nnz"].as_u64().unwrap());
        let trace: f64 = (0..a.row_ptr().len() - 1).map(|i| a.get(i, i)).sum();
        close("trace", trace, number("trace"));
        close("sum", a.values().iter().sum(), number("sum"));
        close("squared Frobenius norm", fro2(&a), number("fro2"));
        close("a01", a.get(0, 1), number("a01"));
        close("a10", a.get(1, 0), number("a10"));
        for entry in golden["row1"].as_array().unwrap() {
            close("row 1", a.get(1, entry[0].as_u64().unwrap() as usize), entry[1].as_f64().unwrap());
        }
    }
}
