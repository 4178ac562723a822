//! P·R·A·C before the first level: rows matched with columns where the diagonal asks for it, entries near 1.
//!
//! Matching and its scaling are those of [`maximum_product_matching`]. Otherwise R makes the largest entry of every row,
//! then C that of every column, to lie in [1, 2); all factors are powers of two.

use bt_direct::{FactorError, Result, SingularKind, Singularity};
use bt_formats::reorder::{Matching, MatchingError, maximum_product_matching};
use bt_formats::{Csr, LinearOperator, Permutation, RealScalar, Scalar, one, zero};

use super::RowOrder;
use super::level::fill;

/// P, R and C.
pub(super) struct Scaling<T: Scalar> {
    matching: Matching<T::Real>,
    pub is_matched: bool,
}

impl<T: Scalar> Scaling<T> {
    /// # Errors
    /// [`FactorError::Input`], [`FactorError::Singular`] where no matching exists.
    pub fn new(a: &Csr<T>, order: RowOrder) -> Result<Self> {
        a.check_square()?;
        a.check_finite()?;
        let n = a.nrows();
        let is_matched = match order {
            RowOrder::Auto => (0..n).any(|i| a.get(i, i) == zero()),
            RowOrder::Matched => true,
            RowOrder::AsGiven => false,
        };
        if is_matched {
            let matching = maximum_product_matching(a).map_err(|e| match e {
                MatchingError::Input(input) => FactorError::Input(input),
                MatchingError::Singular(deficiency) => FactorError::Singular(Singularity {
                    kind: SingularKind::Structural,
                    column: deficiency.unmatched_cols[0] as usize,
                    block: None,
                }),
            })?;
            return Ok(Self { matching, is_matched });
        }
        let row_scale: Vec<_> = (0..n).map(|i| towards_one(largest(a.row(i).1.iter().copied()))).collect();
        let mut columns = vec![T::Real::default(); n];
        for (i, &r) in row_scale.iter().enumerate() {
            let (cols, vals) = a.row(i);
            for (&j, v) in cols.iter().zip(vals) {
                let column = &mut columns[j as usize];
                *column = column.max_nan(Scalar::abs(*v) * r);
            }
        }
        let col_scale = columns.into_iter().map(towards_one).collect();
        Ok(Self { matching: Matching { rows: Permutation::identity(n), row_scale, col_scale }, is_matched })
    }

    pub fn n(&self) -> usize {
        self.matching.rows.len()
    }

    /// P·R·A·C without stored zeros.
    pub fn apply(&self, a: &Csr<T>) -> Csr<T> {
        self.matching.apply(a).without_zeros()
    }

    /// v ← P·R·r
    pub fn load(&self, r: &[T], v: &mut [T]) {
        let Matching { rows, row_scale, .. } = &self.matching;
        fill(v, |p| {
            let i = rows.order()[p] as usize;
            r[i] * T::from_real(row_scale[i])
        });
    }

    /// v ← C·v
    pub fn finish(&self, v: &mut [T]) {
        for (v, c) in v.iter_mut().zip(&self.matching.col_scale) {
            *v *= T::from_real(*c);
        }
    }

    /// Every later v comes out as NaN.
    pub fn invalidate(&mut self) {
        self.matching.col_scale.fill(T::Real::from_f64(f64::NAN));
    }

    pub fn bytes(&self) -> usize {
        let Matching { rows, row_scale, col_scale } = &self.matching;
        2 * size_of_val(rows.order()) + size_of_val(&**row_scale) + size_of_val(&**col_scale)
    }
}

fn largest<T: Scalar>(values: impl Iterator<Item = T>) -> T::Real {
    values.fold(T::Real::default(), |m, v| m.max_nan(v.abs()))
}

/// 2^−⌊log₂ x⌋ within the normal numbers; 1 for x = 0.
fn towards_one<R: RealScalar>(x: R) -> R {
    if x == R::default() {
        return one();
    }
    let limit = -R::MIN_POSITIVE.to_f64().log2() - 1.0;
    R::from_f64((-x.to_f64().log2().floor()).clamp(-limit, limit).exp2())
}
