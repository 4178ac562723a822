//! Periodic (cyclic) tridiagonal systems: two corner entries couple the first unknown with the last.
//!
//! The unknowns are folded, 0, n−1, 1, n−2, 2, …: neighbours on the ring stand at most two places apart, so that the matrix
//! has two sub- and two super-diagonals, which are factored with partial pivoting.
//!
//! ```text
//! [ d0 u0 .  .  c ]           0: [ d0 c  u0       ]
//! [ l1 d1 u1 .  . ]           4: [ c' d4 .  l4    ]
//! [ .  l2 d2 u2 . ]    →      1: [ l1 .  d1 .  u1 ]
//! [ .  .  l3 d3 u3]           3: [    u3 .  d3 l3 ]
//! [ c' .  .  l4 d4]           2: [       l2 u2 d2 ]
//! ```
//!
//! The usual way, a tridiagonal solver and the Sherman–Morrison formula (Press et al., Numerical Recipes, 3rd ed., §2.7.2;
//! M. Batista & A. A. I. Karawia, Appl. Math. Comput. 210 (2009) 558–563, doi:10.1016/j.amc.2009.01.003), or bordering of a
//! tridiagonal part, is not taken: both divide by a tridiagonal matrix that may be singular or ill-conditioned where A is
//! neither, and then lose digits without a sign. Partial pivoting on the folded band is backward stable for every A, and A is
//! singular exactly where it finds no pivot.
//!
//! Storage: 7n values and 2n indices for the factors, n values a solving thread. Cost: at most 20n flops and n divisions to
//! factor; at most 12n flops and n divisions a right-hand side, and a pass that folds and one that unfolds it.

use std::sync::{Mutex, PoisonError};

use bt_formats::{Band, Error, LinearOperator, Matrix, Monitor, Op, Scalar, zero};
use faer::MatMut;

use crate::band_lu::BandLu;
use crate::columns::{check_size, for_each_column};
use crate::cyclic::Cyclic;
use crate::error::{FactorError, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::memory::zeros;

/// Place of unknown i of n in the folded order.
fn folded(i: usize, n: usize) -> usize {
    if i < n.div_ceil(2) { 2 * i } else { 2 * (n - i) - 1 }
}

/// The unknown at a place of the folded order.
fn unfolded(place: usize, n: usize) -> usize {
    if place.is_multiple_of(2) { place / 2 } else { n - place.div_ceil(2) }
}

/// A periodic tridiagonal matrix in factors with partial pivoting.
///
/// ```
/// use bt_direct::{Cyclic, Factorization, PeriodicTridiagonal};
/// use bt_formats::Tridiagonal;
/// // The periodic second difference, shifted: 3 on the diagonal, −1 beside it and in the corners.
/// let t = Tridiagonal::new(vec![0.0, -1.0, -1.0, -1.0], vec![3.0; 4], vec![-1.0, -1.0, -1.0, 0.0])?;
/// let a = Cyclic::new(t, -1.0, -1.0)?;
/// let mut x = [1.0; 4];
/// PeriodicTridiagonal::new(&a)?.solve_vec_in_place(&mut x);
/// assert!(x.iter().all(|v| (v - 1.0f64).abs() < 1e-15));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Debug)]
pub struct PeriodicTridiagonal<T: Scalar> {
    /// The folded matrix, kept for refactorisation.
    band: Band<T>,
    lu: BandLu<T>,
    /// Vectors of the threads that solve at the same time.
    scratch: Mutex<Vec<Vec<T>>>,
}

impl<T: Scalar> PeriodicTridiagonal<T> {
    /// Factors `a`.
    ///
    /// # Errors
    /// [`FactorError::Singular`] with the column of A without a pivot, in the folded order of elimination;
    /// [`FactorError::Input`] on a NaN or infinity or when memory is short; [`FactorError::Breakdown`] when elimination
    /// overflows.
    ///
    /// # Cost
    /// At most 20n flops and n divisions; 14n values.
    pub fn new(a: &Cyclic<T>) -> Result<Self> {
        Self::with_monitor(a, &mut ())
    }

    /// As [`PeriodicTridiagonal::new`], reporting `Progress::Step { phase: "setup", .. }` in columns.
    ///
    /// # Errors
    /// As [`PeriodicTridiagonal::new`]; [`FactorError::Stopped`] when the monitor says so.
    #[inline(never)]
    pub fn with_monitor(a: &Cyclic<T>, monitor: &mut dyn Monitor) -> Result<Self> {
        let n = a.nrows();
        check_finite(a)?;
        let mut band = Band::zeros(n, 2.min(n.saturating_sub(1)), 2.min(n.saturating_sub(1)))?;
        fold(a, &mut band);
        let lu = BandLu::with_monitor(&band, monitor).map_err(|e| in_order_of_a(e, n))?;
        let mut scratch = Vec::with_capacity(64);
        scratch.push(zeros(n)?);
        Ok(Self { band, lu, scratch: Mutex::new(scratch) })
    }

    /// Factors another matrix of the same size in the same memory. After an error the factors are void: solves
    /// return NaN until a later refactorisation succeeds.
    ///
    /// # Errors
    /// As [`PeriodicTridiagonal::new`], and [`FactorError::Input`] on another size.
    pub fn refactor(&mut self, a: &Cyclic<T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// As [`PeriodicTridiagonal::refactor`], observed as in [`PeriodicTridiagonal::with_monitor`].
    ///
    /// # Errors
    /// As [`PeriodicTridiagonal::refactor`]; [`FactorError::Stopped`] when the monitor says so.
    #[inline(never)]
    pub fn refactor_with_monitor(&mut self, a: &Cyclic<T>, monitor: &mut dyn Monitor) -> Result<()> {
        let n = self.band.n();
        check_size("size of the matrix", n, a.nrows())?;
        fold(a, &mut self.band);
        let outcome = self.lu.refactor_with_monitor(&self.band, monitor).map_err(|e| in_order_of_a(e, n));
        // The same refusal as that of the folded matrix, with the place in A.
        check_finite(a)?;
        outcome
    }

    fn solve_column(&self, op: Op, x: &mut [T]) {
        let n = x.len();
        let pooled = self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut y = pooled.unwrap_or_else(|| vec![zero(); n]);
        for (place, y) in y.iter_mut().enumerate() {
            *y = x[unfolded(place, n)];
        }
        self.lu.solve_op_in_place(op, MatMut::from_column_major_slice_mut(&mut y, n, 1));
        for (place, y) in y.iter().enumerate() {
            x[unfolded(place, n)] = *y;
        }
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).push(y);
    }
}

/// The band ← A in the folded order.
fn fold<T: Scalar>(a: &Cyclic<T>, band: &mut Band<T>) {
    let (n, stride, diagonal) = (band.n(), band.ldab() - 1, band.kl() + band.ku());
    let values = band.values_mut();
    a.for_each_entry(&mut |i, j, v| values[diagonal + folded(j, n) * stride + folded(i, n)] = v);
}

fn check_finite<T: Scalar>(a: &Cyclic<T>) -> Result<()> {
    let mut found = None;
    a.for_each_entry(&mut |row, col, v| {
        if found.is_none() && !Scalar::is_finite(v) {
            found = Some(Error::NonFinite { what: "matrix", row, col, value: v.to_string() });
        }
    });
    found.map_or(Ok(()), |e| Err(e.into()))
}

fn in_order_of_a(error: FactorError, n: usize) -> FactorError {
    match error {
        FactorError::Singular(mut place) => {
            place.column = unfolded(place.column, n);
            FactorError::Singular(place)
        }
        FactorError::Breakdown { place, reason, .. } => {
            let row = |i: usize| Some(unfolded(i, n));
            FactorError::breakdown(METHOD, place.and_then(|place| place.renumbered(row, row)), reason)
        }
        other => other,
    }
}

const METHOD: &str = "periodic-lu";

impl<T: Scalar> Factorization<T> for PeriodicTridiagonal<T> {
    fn n(&self) -> usize {
        self.band.n()
    }
    fn method(&self) -> &'static str {
        METHOD
    }
    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n(), "rows of X");
        for_each_column(x, |x| self.solve_column(op, x));
    }
    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        self.refactor_with_monitor(&*a.periodic()?, monitor)
    }
    fn stats(&self) -> FactorStats {
        let stats = self.lu.stats();
        FactorStats { bytes: stats.bytes + self.band.bytes(), ..stats }
    }
    fn log_det(&self) -> LogDet<T> {
        // Rows and columns were permuted alike.
        self.lu.log_det()
    }
}

#[cfg(test)]
mod tests {
    use bt_formats::Tridiagonal;

    use super::*;

    #[test]
    fn the_folded_order_is_a_permutation_of_bandwidth_two() {
        for n in 1..12 {
            for i in 0..n {
                assert_eq!(unfolded(folded(i, n), n), i);
                assert!(folded(i, n) < n && folded(i, n).abs_diff(folded((i + 1) % n, n)) <= 2);
            }
        }
        assert_eq!([0, 1, 2, 3, 4].map(|place| unfolded(place, 5)), [0, 4, 1, 3, 2]);
    }

    #[test]
    fn a_singular_tridiagonal_part_is_no_obstacle() {
        // [. 1 . 1; 1 . 1 .; . 1 . -1; 1 . -1 .]: every leading tridiagonal part of odd size is singular, A is not.
        let t = Tridiagonal::new(vec![0.0, 1.0, 1.0, -1.0], vec![0.0; 4], vec![1.0, 1.0, -1.0, 0.0]).unwrap();
        let a = Cyclic::new(t, 1.0, 1.0).unwrap();
        let lu = PeriodicTridiagonal::new(&a).unwrap();
        let mut b = [0.0; 4];
        a.apply(1.0, &[1.0, 2.0, 3.0, 4.0], 0.0, &mut b);
        lu.solve_vec_in_place(&mut b);
        assert_eq!(b, [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn the_periodic_second_difference_is_singular() {
        let t = Tridiagonal::new(vec![0.0, -1.0, -1.0], vec![2.0; 3], vec![-1.0, -1.0, 0.0]).unwrap();
        let a = Cyclic::new(t, -1.0, -1.0).unwrap();
        let Err(FactorError::Singular(place)) = PeriodicTridiagonal::new(&a) else {
            panic!("the constants are solutions")
        };
        // The folded order is 0, 2, 1.
        assert_eq!(place.column, 1);
    }
}
