//! Elimination without exchanges, watched: what cyclic reduction and its parallel form may lose.

use bt_formats::{RealScalar, Scalar, zero};

use crate::error::{FactorError, Place, Result};

const ADVICE: &str = "without pivoting; the matrix may still be regular: use tridiagonal-lu, which pivots";

/// Watches the elimination: no pivot may vanish, no row outgrow the row of A it came from.
pub(crate) struct Watch {
    pub(crate) method: &'static str,
    largest: f64,
    pub(crate) min_pivot: f64,
    /// The largest term of a reduced row over the size of the row of A, at least 1.
    worst: f64,
    /// The largest size of a row of A over the diagonal that [`ParallelCyclicReduction`](crate::ParallelCyclicReduction) leaves of it, at least 1.
    spread: f64,
}

impl Watch {
    pub(crate) fn new(method: &'static str, max_a: f64) -> Self {
        Self { method, largest: max_a, min_pivot: f64::INFINITY, worst: 1.0, spread: 1.0 }
    }

    /// What the rounding errors are multiplied by, for a matrix whose largest modulus is `max_a`.
    pub(crate) fn growth(&self, max_a: f64) -> f64 {
        self.spread * self.worst.max(self.largest / max_a)
    }

    /// A row that stands alone: xᵢ = fᵢ/d has an error of about ε·size/|d|·‖x‖, unrelated to those of its neighbours, and
    /// its row of A has a residual of that size. (In an elimination such errors cancel: this is why parallel cyclic
    /// reduction is not backward stable on ill-conditioned matrices, and cyclic reduction is.)
    pub(crate) fn alone<T: Scalar>(&mut self, d: T, size: T::Real, row: usize) -> Result<()> {
        self.pivot(d, row)?;
        let spread = size.to_f64() / d.abs1().to_f64();
        if !(spread * self.worst * <T::Real as RealScalar>::EPSILON.to_f64().sqrt() <= 1.0) {
            let reason = format!("row {row} (from 0) of size {size:e} cancels to {:e}; {ADVICE}", d.abs1());
            return Err(FactorError::breakdown(self.method, Place::Row(row), reason));
        }
        self.spread = self.spread.max(spread);
        Ok(())
    }

    /// A pivot that divides; `row` is that of A.
    pub(crate) fn pivot<T: Scalar>(&mut self, pivot: T, row: usize) -> Result<()> {
        if pivot == zero() || !Scalar::is_finite(pivot) {
            let reason = format!("the pivot of row {row} (from 0) is {pivot}; {ADVICE}");
            return Err(FactorError::breakdown(self.method, Place::Row(row), reason));
        }
        self.min_pivot = self.min_pivot.min(pivot.abs().to_f64());
        Ok(())
    }

    /// The terms of a reduced row and its diagonal, against the size of the row of A.
    pub(crate) fn row<T: Scalar>(&mut self, terms: &[T; 4], d: T, size: T::Real, row: usize) -> Result<()> {
        let grown = terms.iter().fold(d.abs1(), |m, t| m.max_nan(t.abs1()));
        // Half the digits of a row: ε^(−1/2). Rounding errors of the size ε·grown are made in it.
        if !(grown * T::Real::EPSILON.sqrt() <= size) {
            let reason = format!("the terms of row {row} (from 0) grow from {size:e} to {grown:e}; {ADVICE}");
            return Err(FactorError::breakdown(self.method, Place::Row(row), reason));
        }
        self.largest = self.largest.max(grown.to_f64());
        if size > zero() {
            self.worst = self.worst.max(grown.to_f64() / size.to_f64());
        }
        Ok(())
    }
}
