//! What the tests of HBISA share.

use bt_formats::{BlockTridiagonal, Csr, Scalar, SolveReport, StopCriterion, one, zero};
use bt_iter::{Hbisa, StopRule, Sweep};
use bt_testkit::PAPER_B;

/// The 9 × 9 example B: tridiagonal blocks of 3, det B = −5 831 448, indefinite.
pub fn nine() -> Csr<f64> {
    Csr::from_dense(faer::Mat::from_fn(9, 9, |i, j| PAPER_B[i][j]).as_ref()).unwrap()
}

/// The answer for b = (1, …, 1) from a zero start, and the report.
pub fn run<T: Scalar>(
    a: &BlockTridiagonal<T>,
    sweep: Sweep,
    rule: StopRule,
    stop: &StopCriterion,
) -> (Vec<T>, SolveReport) {
    let n = a.partition().n();
    let mut x = vec![zero(); n];
    let report = Hbisa::with_options(a, sweep, rule).unwrap().solve(&vec![one(); n], &mut x, stop, &mut ());
    (x, report)
}
