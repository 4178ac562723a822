//! Factors with what is estimated of them: condition numbers, whether they prove A singular, whether they can take new values.

use std::sync::OnceLock;

use bt_direct::Given;
use bt_direct::condition::{rcond_of_large, rcond_refined, rcond_scaled};
use bt_direct::refine::{growth_limit, unit_roundoff};
use bt_formats::reorder::maximum_product_matching;
use bt_formats::{Csr, LinearOperator, Monitor, Note, RealScalar, Scalar};

use crate::check::check_hermitian;
use crate::direct::{Direct, Needs};
use crate::equilibrated;
use crate::error::Error;
use crate::made::Made;
use crate::method::Precision;
use crate::options::Reorder;
use crate::partition::BlockSummary;
use crate::reordered::Factors;
use crate::verdict::{doubtful, working_precision};

/// Factors and what they were made from.
pub(crate) struct Factored<T: Scalar> {
    /// What happened while they were made.
    pub notes: Vec<Note>,
    pub method: Direct,
    pub reorder: Reorder,
    pub blocks: Option<BlockSummary>,
    pub factors: Factors<T>,
    pub matrix_bytes: usize,
    /// Of the factors.
    pub precision: Precision,
    /// Estimates, made when they are asked for: they depend on the factors alone.
    rcond: OnceLock<Option<f64>>,
    scaled_rcond: OnceLock<f64>,
}

impl<T: Scalar> Factored<T> {
    pub fn new(made: Made<T>, method: Direct) -> Self {
        let Made { factors, matrix_bytes, blocks, notes } = made;
        Self {
            notes,
            method,
            reorder: Reorder::None,
            blocks,
            factors: Factors::Plain(factors),
            matrix_bytes,
            precision: Precision::Working,
            rcond: OnceLock::new(),
            scaled_rcond: OnceLock::new(),
        }
    }

    /// Reciprocal condition number of A in the 1-norm; `None` where the factors cannot tell: in single precision, or grown.
    pub fn rcond(&self, a: &Csr<T>) -> Option<f64> {
        /// Growth that pivoting over all rows rarely reaches.
        const GROWN: f64 = 16.0;
        *self.rcond.get_or_init(|| match self.precision {
            Precision::Working if self.factors.stats().norm_one.is_infinite() => {
                Some(rcond_of_large(a, &*self.factors))
            }
            // The factors are those of A + E, ‖E‖ ≤ n·u·growth·‖A‖: an estimate within it may be that of E.
            Precision::Working => {
                let (found, growth) = (self.factors.rcond(), self.factors.stats().growth);
                let limit = doubtful::<T>(a.nrows());
                let within = growth > GROWN && found >= limit && found < limit * growth;
                if within { rcond_refined(a, &*self.factors) } else { Some(found) }
            }
            // Refinement contracts where the condition number, in some units, is below the precision of the factors: an
            // estimate beyond it is of the units, or of factors that lost what makes A nearly singular.
            Precision::Single => rcond_refined(a, &*self.factors).filter(|&rcond| {
                let limit = f64::from(f32::EPSILON);
                rcond > limit || self.scaled_rcond(a) > limit
            }),
        })
    }

    /// Whether [`Factored::rcond`] costs nothing any more.
    pub fn rcond_is_known(&self) -> bool {
        self.rcond.get().is_some()
    }

    /// That of A in the best units of rows and columns that are found, which are no fault of the matrix: those that bring a product of
    /// as large entries as can be to 1 and all others below (see [`maximum_product_matching`]), or the largest entry of each line
    /// there. No more are tried once A is regular to working precision in some.
    pub fn scaled_rcond(&self, a: &Csr<T>) -> f64 {
        *self.scaled_rcond.get_or_init(|| {
            let made;
            let (factored, factors) = match &self.factors {
                Factors::Plain(factors) => (a, &**factors),
                Factors::Behind(factors) => {
                    made = factors.transform().apply(a);
                    (&made, factors.inner())
                }
            };
            let Ok(m) = maximum_product_matching(factored) else { return factors.rcond() };
            let lines = equilibrated::of_matching(factored, m.rows.order(), &m);
            let in_double = |factors: &[T::Real]| factors.iter().map(|f| f.to_f64()).collect::<Vec<_>>();
            let scaled = |rows, cols| rcond_scaled(factored, factors, &in_double(rows), &in_double(cols));
            let mut best = scaled(&lines.rows, &lines.cols);
            if best <= doubtful::<T>(a.nrows()) && lines.rows != m.row_scale {
                best = best.max(scaled(&m.row_scale, &m.col_scale));
            }
            if best <= doubtful::<T>(a.nrows()) {
                let (rows, cols) = equilibrated::in_double(a);
                best = best.max(rcond_scaled(a, &*self.factors, &rows, &cols));
            }
            best
        })
    }

    /// Whether these factors, the strongest there are, allow that A is singular. Where it has pivots in twice the precision or exactly, it is not.
    pub fn proves_singular(&self, a: &Csr<T>) -> bool {
        !self.method.is_beyond_rounding() && !(self.scaled_rcond(a) > working_precision::<T>(self.factors.n()))
    }

    /// Whether elements have grown so far that what these factors say of the matrix may be rounding errors.
    pub fn have_grown(&self) -> bool {
        self.factors.stats().growth > growth_limit(unit_roundoff::<T>())
    }

    /// Whether `a`, which has the pattern of the matrix that was factored, can take its place in these factors, and become what factors
    /// made anew would be.
    pub fn can_take(&self, a: &Csr<T>) -> bool {
        self.precision == Precision::Working
            && !self.chooses_by_values()
            && !self.factors.is_scaled()
            && (self.method.row().needs == Needs::Nothing || check_hermitian(a).is_ok())
            && equilibrated::scaling(a, self.method).is_none()
    }

    /// Whether the method looks at the values before it chooses methods or partitions or gives up its butterflies, and tells of it in notes.
    pub fn chooses_by_values(&self) -> bool {
        matches!(
            self.method,
            Direct::Components
                | Direct::Spike { .. }
                | Direct::SpikeTruncated { .. }
                | Direct::BlockRbt { .. }
                | Direct::Rbt { .. }
        )
    }

    /// Factors new values in the same memory. After an error the factors are void, and the estimates still those of the values before.
    pub fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<(), Error> {
        self.factors.refactor(a, monitor)?;
        (self.rcond, self.scaled_rcond) = (OnceLock::new(), OnceLock::new());
        Ok(())
    }
}
