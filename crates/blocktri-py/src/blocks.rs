//! Stacks of block-tridiagonal systems with dense blocks of one size: block LU, refined and certified, a system a thread. A system that
//! block LU does not solve to rounding level, or whose pivots say that it may be ill-conditioned, goes to the facade, which knows stronger
//! methods and what to warn of.
//!
//! Shapes: `lower` and `upper` batch × (m − 1) × k × k, `diag` batch × m × k × k, `b` batch × n × nrhs.

use std::time::Instant;

use blocktri::faer::{Mat, MatRef};
use blocktri::{
    BlockTridiagonal, Error, FactorError, Monitor, Op, Outcome, Partition, Refinement, Scalar, SolveOptions,
};
use bt_direct::{BlockLu, Factorization, refine};
use bt_formats::{Certificate, RealScalar};
use numpy::PyUntypedArray;
use numpy::ndarray::{ArrayView4, ArrayViewD, Axis, Ix4};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::arrays::{Number, kind_of, room, typed, with_scalar};
use crate::banded::{Answer, Certify, Failed, Finite, Solved, Systems, answer, failure, nan, overflow, right, systems};
use crate::errors::of_input;
use crate::run::run;

/// A backward error of more units of rounding than this, or a pivot that is smaller beside the matrix, calls for the facade.
const WEAK: f64 = 1e2;

fn stack<'a, T>(array: &'a ArrayViewD<'_, T>, what: &str) -> PyResult<ArrayView4<'a, T>> {
    let array = array.view().into_dimensionality::<Ix4>();
    array.map_err(|_| PyValueError::new_err(format!("{what} must be a stack of matrices")))
}

/// Solves the systems; X as of `solve_band`.
#[pyfunction]
#[pyo3(signature = (lower, diag, upper, b, certificate, threads=None))]
pub fn solve_blocks<'py>(
    py: Python<'py>,
    lower: &Bound<'py, PyUntypedArray>,
    diag: &Bound<'py, PyUntypedArray>,
    upper: &Bound<'py, PyUntypedArray>,
    b: &Bound<'py, PyUntypedArray>,
    certificate: bool,
    threads: Option<usize>,
) -> PyResult<(Answer<'py>, Vec<String>)> {
    let start = Instant::now();
    with_scalar!(kind_of(diag)?, T => {
        let (lower, diag, upper, b) = (typed::<T>(lower)?, typed::<T>(diag)?, typed::<T>(upper)?, typed::<T>(b)?);
        let (lower, diag, upper, b) = (lower.as_array(), diag.as_array(), upper.as_array(), b.as_array());
        let ndim = b.ndim();
        let (lower, diag, upper, b) = (stack(&lower, "L")?, stack(&diag, "D")?, stack(&upper, "U")?, right(&b)?);
        let (batch, m, k, _) = diag.dim();
        let beside = (batch, m.saturating_sub(1), k, k);
        if m == 0 || k == 0 || diag.dim().3 != k || lower.dim() != beside || upper.dim() != beside {
            return Err(PyValueError::new_err("L, D and U must be stacks of m − 1, m and m − 1 square matrices of one size"));
        }
        let n = m.saturating_mul(k);
        let asked = if certificate { Certify::Yes } else { Certify::No };
        let systems = systems::<T>(&b, batch, n, asked, Finite::Checked)?;
        let nrhs = systems.nrhs;
        let parts = py.detach(|| {
            let made = (0..batch).map(|s| one(&lower, &diag, &upper, s));
            made.collect::<Result<Vec<_>, bt_formats::Error>>()
        });
        let parts = parts.map_err(|e| of_input(&e))?;
        let size = batch.saturating_mul(n).saturating_mul(k.max(nrhs));
        let (solved, warnings) = run(py, threads, size, move |monitor| all(&parts, systems, monitor))?;
        Ok((answer::<T>(py, solved, (batch, nrhs, n), ndim, start, threads)?, warnings))
    })
}

/// System s: blocks by columns, and of the couplings of block row j the columns of block j − 1, then those of block j + 1.
fn one<T: Number>(
    lower: &ArrayView4<'_, T>,
    diag: &ArrayView4<'_, T>,
    upper: &ArrayView4<'_, T>,
    s: usize,
) -> Result<BlockTridiagonal<T>, bt_formats::Error> {
    let (_, m, k, _) = diag.dim();
    let size = m.saturating_mul(k).saturating_mul(k);
    let (mut diagonal, mut couplings) = (room(size, "the blocks")?, room(size.saturating_mul(2), "the blocks")?);
    let put = |into: &mut Vec<T>, of: &ArrayView4<'_, T>, j: usize| {
        let block = of.index_axis(Axis(0), s);
        let block = block.index_axis(Axis(0), j);
        match block.as_slice() {
            Some(rows) => (0..k).for_each(|j| into.extend(rows[j..].iter().step_by(k))),
            None => block.columns().into_iter().for_each(|column| into.extend(column)),
        }
    };
    for j in 0..m {
        put(&mut diagonal, diag, j);
        if j > 0 {
            put(&mut couplings, lower, j - 1);
        }
        if j + 1 < m {
            put(&mut couplings, upper, j);
        }
    }
    BlockTridiagonal::from_dense_blocks(Partition::uniform(m * k, k)?, diagonal, couplings)
}

/// What came of one system.
struct Done {
    method: &'static str,
    certificate: Certificate,
    warnings: Vec<String>,
}

fn all<T: Number>(
    parts: &[BlockTridiagonal<T>],
    systems: Systems<T>,
    monitor: &mut dyn Monitor,
) -> (Solved<T>, Vec<String>) {
    let Systems { n, nrhs, mut x, certify } = systems;
    let mut done: Vec<Result<Done, Failed>> = if let [a] = parts {
        vec![solve(0, a, &mut x, (n, nrhs), monitor)]
    } else {
        let chunks = x.par_chunks_mut((n * nrhs).max(1));
        parts.par_iter().zip(chunks).enumerate().map(|(s, (a, x))| solve(s, a, x, (n, nrhs), &mut ())).collect()
    };
    let (mut failed, mut warnings, mut worst) = (Vec::new(), Vec::new(), Certificate::default());
    let mut method = "block-lu";
    for one in done.drain(..) {
        match one {
            Ok(one) => {
                worst.relative_residual = worst.relative_residual.max(one.certificate.relative_residual);
                worst.backward_error = worst.backward_error.max(one.certificate.backward_error);
                worst.componentwise_backward_error =
                    worst.componentwise_backward_error.max(one.certificate.componentwise_backward_error);
                warnings.extend(one.warnings);
                method = if parts.len() == 1 { one.method } else { method };
            }
            Err(one) => failed.push(one),
        }
    }
    let entries = parts.first().map_or(0, bt_formats::Matrix::nnz);
    let certificate = (certify == Certify::Yes).then_some(worst);
    (Solved { x, failed, method, certificate, entries }, warnings)
}

fn solve<T: Number>(
    s: usize,
    a: &BlockTridiagonal<T>,
    x: &mut [T],
    (n, nrhs): (usize, usize),
    monitor: &mut dyn Monitor,
) -> Result<Done, Failed> {
    let b = MatRef::from_column_major_slice(&*x, n, nrhs).to_owned();
    if let Ok(lu) = BlockLu::with_monitor(a, monitor) {
        let (limit, stats) = (WEAK * <T::Real as RealScalar>::EPSILON.to_f64(), lu.stats());
        if stats.min_pivot > limit * stats.norm_one {
            let mut y = b.clone();
            lu.solve_in_place(y.as_mut());
            let refined = refine(a, &lu, Op::Identity, b.as_ref(), &mut y, Refinement::Auto);
            if refined.certificate.backward_error <= limit {
                put(x, &y);
                return Ok(Done { method: "block-lu", certificate: refined.certificate, warnings: Vec::new() });
            }
        }
    }
    let answer = a.to_csr().map_err(Error::from).and_then(|a| {
        let options = SolveOptions::default();
        blocktri::solve(&a, b.as_ref(), &options, monitor)
    });
    match answer {
        Ok(answer) => {
            put(x, &answer.x);
            if let Some(failed) = overflow(s, x, n) {
                return Err(failed);
            }
            let mut warnings: Vec<_> = answer.warnings.iter().map(ToString::to_string).collect();
            let report = answer.report;
            if report.outcome != Outcome::Converged {
                warnings.push(format!("{}: the answer is not at rounding level", report.method));
            }
            Ok(Done { method: report.method, certificate: report.certificate, warnings })
        }
        Err(e) => {
            x.fill(nan());
            Err(match e {
                Error::Singular(place) => failure(s, &FactorError::Singular(place)),
                Error::Factor(e) => failure(s, &e),
                Error::Input(e) => failure(s, &FactorError::Input(e)),
                other => (s, "breakdown", None, other.to_string()),
            })
        }
    }
}

fn put<T: Scalar>(x: &mut [T], y: &Mat<T>) {
    for (x, y) in x.chunks_exact_mut(y.nrows().max(1)).zip(y.col_iter()) {
        x.iter_mut().zip(y.iter()).for_each(|(x, y)| *x = *y);
    }
}
