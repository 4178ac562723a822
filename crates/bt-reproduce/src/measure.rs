//! How experiments are timed and their numbers written: repeated solves, time by part, words for tables.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bt_direct::{Factorization, Refinement, refine};
use bt_formats::{CancelToken, LinearOperator, Matrix, Op, Outcome, SolveReport, StopCriterion};
use bt_iter::{BiCgStab, Cg, Gmres, Preconditioner, PreconditionerKind};
use faer::Mat;
use serde_json::{Value, json};

use crate::experiment::{Error, Results};

/// Solves are repeated until this much time has passed, at most [`RUNS`] times; the fastest counts.
const BUDGET: Duration = Duration::from_millis(100);
const RUNS: usize = 5;

/// How often a solve is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// Its time does not matter.
    One,
    /// A few times; the fastest counts.
    Fastest,
}

impl Runs {
    /// The seconds that count, and what that run gave.
    pub fn of<T, E>(self, mut run: impl FnMut() -> Result<T, E>) -> Result<(f64, T), E> {
        match self {
            Self::One => timed(&mut run),
            Self::Fastest => fastest(run),
        }
    }
}

/// The fastest of a few runs, in seconds, and what it gave.
pub fn fastest<T, E>(mut run: impl FnMut() -> Result<T, E>) -> Result<(f64, T), E> {
    let begin = Instant::now();
    let mut best = timed(&mut run)?;
    for _ in 1..RUNS {
        if begin.elapsed() >= BUDGET {
            break;
        }
        let next = timed(&mut run)?;
        if next.0 < best.0 {
            best = next;
        }
    }
    Ok(best)
}

fn timed<T, E>(run: &mut dyn FnMut() -> Result<T, E>) -> Result<(f64, T), E> {
    let start = Instant::now();
    let result = run()?;
    Ok((start.elapsed().as_secs_f64(), result))
}

/// A Krylov method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Krylov {
    Cg,
    BiCgStab,
    /// With this restart.
    Gmres(usize),
}

/// Its workspace.
enum Solver {
    Cg(Cg<f64>),
    BiCgStab(BiCgStab<f64>),
    Gmres(Gmres<f64>),
}

/// An operator or a preconditioner, and the time its applications took.
struct Timed<P> {
    inner: P,
    nanoseconds: AtomicU64,
}

impl<P> Timed<P> {
    fn new(inner: P) -> Self {
        Self { inner, nanoseconds: AtomicU64::new(0) }
    }
    fn add(&self, start: Instant) {
        // One application at a time: it takes less than 500 years.
        self.nanoseconds.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }
    fn seconds(&self) -> f64 {
        self.nanoseconds.load(Ordering::Relaxed) as f64 * 1e-9
    }
}

impl<A: LinearOperator<f64> + ?Sized> LinearOperator<f64> for Timed<&A> {
    fn nrows(&self) -> usize {
        self.inner.nrows()
    }
    fn ncols(&self) -> usize {
        self.inner.ncols()
    }
    fn apply(&self, alpha: f64, x: &[f64], beta: f64, y: &mut [f64]) {
        let start = Instant::now();
        self.inner.apply(alpha, x, beta, y);
        self.add(start);
    }
}

impl<P: Preconditioner<f64> + ?Sized> Preconditioner<f64> for Timed<&mut P> {
    fn n(&self) -> usize {
        self.inner.n()
    }
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn kind(&self) -> PreconditionerKind {
        self.inner.kind()
    }
    fn apply(&mut self, r: &[f64], z: &mut [f64]) {
        let start = Instant::now();
        self.inner.apply(r, z);
        self.add(start);
    }
    fn nnz(&self) -> usize {
        self.inner.nnz()
    }
    fn bytes(&self) -> usize {
        self.inner.bytes()
    }
}

/// A Krylov solve from zero, repeated: `outcome`, `iterations`, `relative_residual` recomputed from A, `seconds` of the fastest
/// run, and its seconds in products with A and in the preconditioner.
pub fn krylov(
    method: Krylov,
    a: &dyn LinearOperator<f64>,
    m: &mut dyn Preconditioner<f64>,
    b: &[f64],
    stop: &StopCriterion,
    runs: Runs,
    cancel: &CancelToken,
) -> Result<Value, Error> {
    let n = b.len();
    let mut x = vec![0.0; n];
    let mut solver = match method {
        Krylov::Cg => Solver::Cg(Cg::new(n)),
        Krylov::BiCgStab => Solver::BiCgStab(BiCgStab::new(n)),
        Krylov::Gmres(restart) => Solver::Gmres(Gmres::new(n, restart)),
    };
    let mut run = || {
        x.fill(0.0);
        let a = Timed::new(a);
        let mut m = Timed::new(&mut *m);
        let monitor = &mut cancel.clone();
        let report = match &mut solver {
            Solver::Cg(cg) => cg.solve(&a, &mut m, b, &mut x, stop, monitor),
            Solver::BiCgStab(bicgstab) => bicgstab.solve(&a, &mut m, b, &mut x, stop, monitor),
            Solver::Gmres(gmres) => gmres.solve(&a, &mut m, b, &mut x, stop, monitor),
        }?;
        stopped(&report)?;
        Ok::<_, Error>((report, a.seconds(), m.seconds()))
    };
    let (seconds, (report, products, applications)) = runs.of(&mut run)?;
    let mut facts = outcome(&report, seconds);
    facts["products_seconds"] = json!(products);
    facts["preconditioner_seconds"] = json!(applications);
    Ok(facts)
}

/// A cancelled solve is no result.
pub fn stopped(report: &SolveReport) -> Result<(), Error> {
    if report.outcome == Outcome::Stopped { Err(Error::Stopped) } else { Ok(()) }
}

/// `outcome`, `iterations`, `relative_residual`, `seconds`.
pub fn outcome(report: &SolveReport, seconds: f64) -> Value {
    json!({
        "outcome": report.outcome.name(),
        "iterations": report.iterations,
        "relative_residual": report.certificate.relative_residual,
        "seconds": seconds,
    })
}

/// A direct solve: `setup_seconds`, `solve_seconds`, the backward error of the plain solve, and after refinement `steps` and
/// `refined_backward_error`. A method that cannot factor the matrix gives `error`.
pub fn direct<F: Factorization<f64>, A: Matrix<f64>>(
    a: &A,
    b: &[f64],
    runs: Runs,
    mut factor: impl FnMut() -> bt_direct::Result<F>,
) -> Result<Value, Error> {
    let made = runs.of(|| match factor() {
        Ok(factors) => Ok(Ok(factors)),
        Err(bt_direct::FactorError::Stopped) => Err(Error::Stopped),
        Err(why) => Ok(Err(why.to_string())),
    })?;
    let (setup, factors) = match made {
        (setup, Ok(factors)) => (setup, factors),
        (_, Err(why)) => return Ok(json!({ "error": why })),
    };
    let mut x = vec![0.0; b.len()];
    let (solve, ()) = runs.of(|| {
        x.copy_from_slice(b);
        factors.solve_vec_in_place(&mut x);
        Ok::<_, Error>(())
    })?;
    let b = Mat::from_fn(b.len(), 1, |i, _| b[i]);
    let mut x = Mat::from_fn(x.len(), 1, |i, _| x[i]);
    let plain = bt_formats::certify(a, Op::Identity, x.as_ref(), b.as_ref());
    let refined = refine(a, &factors, Op::Identity, b.as_ref(), &mut x, Refinement::Stagnation);
    Ok(json!({
        "setup_seconds": setup,
        "solve_seconds": solve,
        "backward_error": plain.backward_error,
        "steps": refined.steps,
        "refined_backward_error": refined.certificate.backward_error,
    }))
}

/// b = A·x*, x*ᵢ = 1 + ((7i) mod 11)/11: no right-hand side that a method finds easy.
pub fn rhs(a: &dyn LinearOperator<f64>) -> Vec<f64> {
    let x: Vec<f64> = (0..a.ncols()).map(|i| 1.0 + (7 * i % 11) as f64 / 11.0).collect();
    let mut b = vec![0.0; a.nrows()];
    a.apply(1.0, &x, 0.0, &mut b);
    b
}

/// Seconds with three digits and a unit, "–" for none.
pub fn seconds(value: Option<f64>) -> String {
    match value {
        None => "–".into(),
        Some(s) if s >= 100.0 => format!("{s:.0} s"),
        Some(s) if s >= 10.0 => format!("{s:.1} s"),
        Some(s) if s >= 1.0 => format!("{s:.2} s"),
        Some(s) if s >= 0.1 => format!("{:.0} ms", s * 1e3),
        Some(s) if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        Some(s) => format!("{:.1} µs", s * 1e6),
    }
}

/// A whole number, "–" for none.
pub fn count(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |v| format!("{v:.0}"))
}

/// A small number such as 1.2e-16, "–" for none.
pub fn small(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |v| if v == 0.0 { "0".into() } else { format!("{v:.1e}") })
}

/// A ratio with two decimals, "–" for none.
pub fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |v| format!("{v:.2}"))
}

/// Iterations of the solve at `pointer`, "No (outcome)" where it did not converge.
pub fn iterations(results: &Results, id: &str, pointer: &str) -> String {
    match results.text(id, &format!("{pointer}/outcome")) {
        Some("converged") => count(results.number(id, &format!("{pointer}/iterations"))),
        Some(other) => format!("No ({other})"),
        None => "–".into(),
    }
}

/// Iterations of a converged solve.
pub fn converged(results: &Results, id: &str, pointer: &str) -> Option<f64> {
    (results.text(id, &format!("{pointer}/outcome"))? == "converged")
        .then(|| results.number(id, &format!("{pointer}/iterations")))?
}

/// The mean of some numbers, none for no numbers.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.into_iter().fold((0.0, 0), |(s, c), v| (s + v, c + 1));
    (count > 0).then(|| sum / f64::from(count))
}
