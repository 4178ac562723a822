//! Methods and preconditioners by their names, matrices by their entries, and what is expected of an answer.

use blocktri::faer::Mat;
use blocktri::{
    Coo, Csr, Error, Factoring, Krylov, Method, Outcome, Precision, Precond, Scalar, Solution, SolveOptions, solve,
};

/// The method of this name, with default options.
pub fn named(name: &str) -> Method {
    name.parse().unwrap()
}

/// The preconditioner of this name, with default options.
pub fn preconditioner(name: &str) -> Precond {
    name.parse().unwrap()
}

/// A Krylov method with a preconditioner.
pub fn krylov(name: &str, precond: &str) -> Krylov {
    let Method::Krylov(krylov) = named(name) else { panic!("{name} is no Krylov method") };
    Krylov { precond: preconditioner(precond), ..krylov }
}

/// By a method of this name, its factors in single precision.
pub fn in_single(name: &str) -> SolveOptions {
    let single = Factoring { precision: Precision::Single, ..Factoring::default() };
    SolveOptions::by(named(name).with_factoring(single).unwrap())
}

/// The n × n matrix of these entries: row, column, value, in any order, and sums where a place comes twice.
pub fn csr<T: Scalar>(n: usize, entries: impl IntoIterator<Item = (usize, usize, T)>) -> Csr<T> {
    let mut coo = Coo::new(n, n).unwrap();
    for (i, j, v) in entries {
        coo.push(i, j, v).unwrap();
    }
    coo.to_csr().unwrap()
}

pub fn by<T: Scalar>(a: &Csr<T>, b: &[T], method: &str) -> Result<Solution<T>, Error> {
    let b = Mat::from_fn(b.len(), 1, |i, _| b[i]);
    solve(a, b.as_ref(), &SolveOptions::by(named(method)), &mut ())
}

/// By `auto`: converged, and right to `digits` in every component.
pub fn solved(a: &Csr<f64>, b: &[f64], x: &[f64]) -> Solution<f64> {
    let s = by(a, b, "auto").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(s.report.outcome, Outcome::Converged, "{:?}", s.report);
    for (i, x) in x.iter().enumerate() {
        assert!(
            (s.x[(i, 0)] - x).abs() <= 1e-13 * x.abs(),
            "x[{i}] = {:e} for {x:e}: {:?}",
            s.x[(i, 0)],
            s.report.notes
        );
    }
    s
}

/// Entries "row column value", from 1, between bars.
pub fn entries_of(text: &str) -> Vec<(usize, usize, f64)> {
    let entries = text.split('|').map(|entry| {
        let parts: Vec<&str> = entry.split_whitespace().collect();
        (parts[0].parse::<usize>().unwrap() - 1, parts[1].parse::<usize>().unwrap() - 1, parts[2].parse().unwrap())
    });
    entries.collect()
}
