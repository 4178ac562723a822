//! Factors in single precision as the factors of a matrix in double: half the memory and traffic, refined afterwards.
//!
//! A = 2^e·F + E with F in single precision (see [`bt_formats::Rounded`]), factored there. A solve rounds the right-hand side, scaled,
//! solves with F, and widens the answer: about seven correct digits less those of the condition number. Refinement in
//! double regains the rest where the condition number is below 1/u₃₂ ≈ 10⁷, and stagnates beyond (N. J. Higham, Accuracy and
//! Stability of Numerical Algorithms, 2nd ed., §12.1, doi:10.1137/1.9780898718027; J. Langou et al., Proc. SC'06,
//! doi:10.1109/SC.2006.30): use [`crate::Refinement::Stagnation`].
//!
//! Storage: the factors in single precision, a buffer of some columns. Cost of a solve: the solve in single precision and two passes.

use std::sync::{Mutex, PoisonError};

use bt_formats::rounded::{round, widen};
use bt_formats::{Monitor, Op, Rounded, Scalar, zero};
use faer::MatMut;

use crate::error::Result;
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;

/// Columns that go through the buffer together, at most.
const COLUMNS: usize = 16;

/// The factors of 2^e·F for factors of F in the scalar L.
///
/// ```
/// use bt_direct::{BandLu, Factorization, Lowered, Refinement, refine};
/// use bt_formats::{Band, Csr, Op, Rounded};
/// let a = Csr::from_dense(faer::mat![[3e200, 1e200], [1e200, 3e200]].as_ref())?;
/// let f = Rounded::<f32>::new(&a)?;
/// let factors: Lowered<f32> = Lowered::new(Box::new(BandLu::new(&Band::from_csr(f.matrix())?)?), f.exponent());
/// let b = faer::mat![[4e200], [4e200]];
/// let mut x = b.clone();
/// factors.solve_in_place(x.as_mut());
/// assert!((x[(0, 0)] - 1.0f64).abs() < 1e-6);
/// let refined = refine(&a, &factors, Op::Identity, b.as_ref(), &mut x, Refinement::Stagnation);
/// assert!(refined.certificate.backward_error < 1e-15);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
pub struct Lowered<L: Scalar> {
    factors: Box<dyn Factorization<L>>,
    exponent: i32,
    columns: usize,
    buffers: Mutex<Vec<Vec<L>>>,
}

impl<L: Scalar> Lowered<L> {
    /// Of the factors of F, for A ≈ 2^`exponent`·F.
    pub fn new(factors: Box<dyn Factorization<L>>, exponent: i32) -> Self {
        let n = factors.n();
        // At most 8 MiB of f64, or one column.
        let columns = ((1 << 20) / n.max(1)).clamp(1, COLUMNS);
        Self { factors, exponent, columns, buffers: Mutex::new(vec![vec![zero(); n * columns]]) }
    }
}

impl<T: Scalar, L: Scalar> Factorization<T> for Lowered<L> {
    fn n(&self) -> usize {
        self.factors.n()
    }
    fn method(&self) -> &'static str {
        self.factors.method()
    }
    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, mut x: MatMut<'_, T>) {
        let n = self.factors.n();
        assert_eq!(x.nrows(), n, "rows of X");
        // A second thread that solves at the same time brings its own buffer, once.
        let lock = || self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = lock().pop().unwrap_or_else(|| vec![zero(); n * self.columns]);
        let mut exponents = [0; COLUMNS];
        for first in (0..if n == 0 { 0 } else { x.ncols() }).step_by(self.columns) {
            let width = self.columns.min(x.ncols() - first);
            let y = &mut buffer[..n * width];
            for (k, y) in y.chunks_exact_mut(n).enumerate() {
                exponents[k] = round(column(&mut x, first + k), y).unwrap_or(0);
            }
            self.factors.solve_op_in_place(op, MatMut::from_column_major_slice_mut(y, n, width));
            for (k, y) in y.chunks_exact(n).enumerate() {
                widen(exponents[k] - self.exponent, y, column(&mut x, first + k));
            }
        }
        lock().push(buffer);
    }
    /// Rounds the new matrix, which may have another exponent, and has the factors of F take it. What they refuse for its structure leaves
    /// them as they were.
    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        let f = Rounded::<L>::new(&*a.csr()?)?;
        self.factors.refactor(Given::Csr(f.matrix()), monitor)?;
        self.exponent = f.exponent();
        Ok(())
    }
    /// Norm and pivots are those of 2^e·F.
    fn stats(&self) -> FactorStats {
        let stats = self.factors.stats();
        let mut sizes = [0.0; 2];
        widen(self.exponent, &[stats.norm_one, stats.min_pivot], &mut sizes);
        FactorStats { norm_one: sizes[0], min_pivot: sizes[1], ..stats }
    }
    /// Of 2^e·F, to the accuracy of pivots in single precision.
    fn log_det(&self) -> LogDet<T> {
        let det = self.factors.log_det();
        let log_abs = det.log_abs + self.factors.n() as f64 * f64::from(self.exponent) * std::f64::consts::LN_2;
        LogDet { sign: det.sign.cast(), log_abs }
    }
}

fn column<'a, T: Scalar>(x: &'a mut MatMut<'_, T>, j: usize) -> &'a mut [T] {
    x.as_mut().col_mut(j).try_as_col_major_mut().expect("columns of X must be contiguous").as_slice_mut()
}
