//! The ten cloud matrices against the reference numbers in `../shared/reference/golden_cloud.json`.

use bt_formats::{BlockTridiagonal, Csr, HybridLayout, Matrix, StopCriterion};
use bt_iter::{Hbisa, StopRule, Sweep};
use bt_queue::{CloudCase, CloudVariant};

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

/// Sweeps of a variant under the paper's rule, ‖Δx‖∞ ≤ 1e-7 from zero with b = 1; and x.
fn sweeps(case: &CloudCase, sweep: Sweep) -> (usize, Vec<f64>) {
    let a = case.matrix().unwrap();
    let a = BlockTridiagonal::from_csr(&a, case.partition().unwrap(), HybridLayout::default()).unwrap();
    let stop = StopCriterion { rtol: 0.0, atol: 1e-7, ..StopCriterion::default() };
    let mut x = vec![0.0; a.n()];
    let mut hbisa = Hbisa::with_options(&a, sweep, StopRule::Update).unwrap();
    let report = hbisa.solve(&vec![1.0; a.n()], &mut x, &stop, &mut ());
    (report.iterations, x)
}

/// Norms, sums and iteration counts (±1) of the variants S and M in the two tables. The specification does not say so, but the
/// counts of M are those without noise.
#[test]
fn variants_match_the_tables() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/reference/");
    let (Ok(smooth), Ok(m_matrix)) = (
        std::fs::read_to_string(format!("{folder}tables_S_N.csv")),
        std::fs::read_to_string(format!("{folder}tables_G1_M.csv")),
    ) else {
        println!("skipped: ../shared is absent");
        return;
    };
    let mut seen = 0;
    for (table, letter, variant) in [(smooth, 'S', CloudVariant::Smooth), (m_matrix, 'M', CloudVariant::MMatrix)] {
        for row in table.lines().filter(|l| l.starts_with(letter) && !l.contains("A*ones")) {
            let numbers: Vec<&str> = row.split([',', '"', '[', ']', ' ']).filter(|f| !f.is_empty()).collect();
            let case = CloudCase::by_name(numbers[1]).unwrap().variant(variant);
            // S: n, k, m, nnz, rhs, three counts of Jacobi, three of Gauss–Seidel, …; M: nnz and the same counts.
            let first = if letter == 'S' { 5 } else { 2 };
            let count = |k: usize| numbers[k].parse::<usize>().unwrap();
            let a = case.matrix().unwrap();
            assert_eq!(a.nnz(), count(first));
            let counts = if letter == 'S' { 7 } else { 3 };
            let (gauss_seidel, x) = sweeps(&case, Sweep::GaussSeidel);
            // Twice the sweeps: the small ones will do.
            if a.row_ptr().len() < 8_000 {
                let (jacobi, _) = sweeps(&case, Sweep::Jacobi);
                assert!(jacobi.abs_diff(count(counts)) <= 1, "{}: {jacobi} sweeps, {row}", case.name());
            }
            assert!(gauss_seidel.abs_diff(count(counts + 3)) <= 1, "{}: {gauss_seidel} sweeps, {row}", case.name());
            if letter == 'S' {
                let number = |from_end: usize| numbers[numbers.len() - from_end].parse::<f64>().unwrap();
                close("Frobenius norm", fro2(&a).sqrt(), number(2));
                close("sum", a.values().iter().sum(), number(1));
                let largest = x.iter().fold(0.0f64, |m, x| m.max(x.abs()));
                assert!((largest - number(4)).abs() < 1e-5, "{}: {largest}", case.name());
            }
            seen += 1;
        }
    }
    assert_eq!(seen, 20);
}
