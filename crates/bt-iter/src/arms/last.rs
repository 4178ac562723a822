//! The last level: the Schur complement that is not reduced any further, by dense factors or by ILUT.
//!
//! Dense factors that have no pivot somewhere, or a reciprocal condition number below 8ε, are made again from S + σI with
//! σ = √ε·max|sᵢⱼ|; ILUT replaces pivots by its own rule. Both are counted in [`LastLevel`].

use bt_direct::{FactorError, Factorization, FallbackReason, PartialPivotLu, Rbt, Result};
use bt_formats::{Csr, Error, LinearOperator, Matrix, RealScalar, Scalar, StopCriterion, zero};
use faer::Mat;

use super::{ArmsOptions, LastFactors, LastSolver};
use crate::gmres::Gmres;
use crate::ilut::ilut;
use crate::preconditioner::Preconditioner;
use crate::schwarz::Factored;

/// Reciprocal condition number, in units of ε, below which S counts as singular.
const SINGULAR: f64 = 8.0;
/// Residual at which an inner iteration ends early.
const INNER_RTOL: f64 = 1e-2;

/// What became of the last level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LastLevel {
    /// Rows of the last Schur complement.
    pub n: usize,
    /// Its entries.
    pub nnz: usize,
    /// What solves with it: `ilut`, `dense-lu` or `rbt`.
    pub method: &'static str,
    /// Why butterflies gave way to partial pivoting, if they did.
    pub fallback: Option<FallbackReason>,
    /// σ where S was singular to working precision and S + σI was factored; 0 elsewhere.
    pub shift: f64,
    /// Pivots that ILUT replaced.
    pub replaced_pivots: usize,
    /// Values of its factors.
    pub nnz_factors: usize,
}

pub(super) struct Last<T: Scalar> {
    solver: Box<dyn Preconditioner<T>>,
    work: Vec<T>,
    inner: Option<Inner<T>>,
    pub facts: LastLevel,
}

/// An inner iteration with S.
struct Inner<T: Scalar> {
    s: Csr<T>,
    gmres: Gmres<T>,
    stop: StopCriterion,
}

impl<T: Scalar> Last<T> {
    pub fn new(s: Csr<T>, options: &ArmsOptions, given: &mut Option<LastFactors<T>>) -> Result<Self> {
        let n = s.nrows();
        let mut facts = LastLevel {
            n,
            nnz: s.nnz(),
            method: "ilut",
            fallback: None,
            shift: 0.0,
            replaced_pivots: 0,
            nnz_factors: 0,
        };
        let solver: Box<dyn Preconditioner<T>> = match (given, options.last) {
            (Some(given), _) if n <= options.dense_limit => {
                let fallback = &mut facts.fallback;
                let factors = dense(&s, &mut facts.shift, |d| {
                    let (factors, reason) = given(d)?;
                    *fallback = reason;
                    Ok(factors)
                })?;
                facts.method = factors.method();
                Box::new(Factored::new(factors))
            }
            (None, LastSolver::Butterflies(rbt)) if n <= options.dense_limit => {
                let factors = dense(&s, &mut facts.shift, |d| Rbt::with_options(d.as_ref(), rbt, &mut ()))?;
                facts.fallback = factors.fallback();
                facts.method = factors.method();
                Box::new(Factored::new(factors))
            }
            (None, LastSolver::Dense) if n <= options.dense_limit => {
                let factors = dense(&s, &mut facts.shift, |d| PartialPivotLu::new(d.as_ref()))?;
                facts.method = factors.method();
                Box::new(Factored::new(factors))
            }
            _ => {
                let factors = ilut(&s, options.last_ilut).map_err(nowhere)?;
                facts.replaced_pivots = factors.replaced_pivots();
                Box::new(factors)
            }
        };
        facts.nnz_factors = solver.nnz();
        let inner = (options.inner_steps > 0).then(|| Inner {
            gmres: Gmres::new(n, options.inner_steps),
            stop: StopCriterion { rtol: INNER_RTOL, max_iters: options.inner_steps, ..StopCriterion::default() },
            s,
        });
        Ok(Self { solver, work: vec![zero(); n], inner, facts })
    }

    /// v ← S⁻¹·v as far as the factors, or the inner iteration, go.
    pub fn solve(&mut self, v: &mut [T]) {
        self.work.copy_from_slice(v);
        let Some(Inner { s, gmres, stop }) = &mut self.inner else { return self.solver.apply(&self.work, v) };
        v.fill(zero());
        gmres.solve(s, &mut *self.solver, &self.work, v, stop, &mut ()).expect("vectors of one length");
    }

    pub fn bytes(&self) -> usize {
        let inner = self.inner.as_ref().map_or(0, |inner| inner.s.bytes() + inner.gmres.bytes());
        self.solver.bytes() + size_of_val(&*self.work) + inner
    }
}

/// Factors of S, or of S + σI where S is singular to working precision.
fn dense<T: Scalar, F: Factorization<T>>(
    s: &Csr<T>,
    shift: &mut f64,
    mut factor: impl FnMut(&Mat<T>) -> Result<F>,
) -> Result<F> {
    let n = s.nrows();
    let mut d = Mat::new();
    d.try_reserve(n, n).map_err(|_| Error::TooLarge {
        what: "the last level of arms",
        needed: format!("{n} × {n} values"),
        limit: "the memory there is".into(),
    })?;
    d.resize_with(n, n, |_, _| zero());
    s.for_each_entry(&mut |i, j, v| d[(i, j)] = v);
    let epsilon = T::Real::EPSILON.to_f64();
    match factor(&d) {
        Ok(factors) if n == 0 || factors.rcond() > SINGULAR * epsilon => return Ok(factors),
        Ok(_) | Err(FactorError::Singular(_)) => {}
        Err(other) => return Err(nowhere(other)),
    }
    let largest = s.values().iter().fold(zero::<T::Real>(), |m, v| m.max_nan(v.abs())).to_f64();
    *shift = epsilon.sqrt() * if largest > 0.0 { largest } else { 1.0 };
    for i in 0..n {
        d[(i, i)] += T::rounded(*shift, 0.0);
    }
    factor(&d).map_err(|e| match e {
        // A itself may be regular.
        FactorError::Singular(place) => {
            let column = place.column;
            let reason = format!(
                "the last Schur complement, of {n} rows, has no pivot in its column {column} (from 0), even with a shift; drop less"
            );
            FactorError::breakdown("arms", None, reason)
        }
        other => nowhere(other),
    })
}

/// An error without its place in S, whose rows and columns have an order of their own.
fn nowhere(error: FactorError) -> FactorError {
    error.map_place(|_| None)
}
