//! Sparse QR of a square matrix: P·(R·A·C)·Q = H₀·H₁ ⋯ Hₙ₋₁·R by Householder reflections, in which elements cannot grow.
//!
//! Elimination with partial pivoting lets elements grow by 2ⁿ⁻¹ at worst, and does so for boundary value problems by multiple shooting:
//! S. J. Wright, SIAM J. Sci. Comput. 14 (1993) 231–238, doi:10.1137/0914013. Then no digit is left, or no pivot, of a system whose condition is
//! the best there is. Reflections preserve lengths: the backward error is a small multiple of n·u for every matrix (N. J. Higham,
//! Accuracy and Stability of Numerical Algorithms, 2nd ed., SIAM 2002, §19.3). They are what is left when elimination has failed.
//!
//! Steps: refuse NaN and infinity; scale rows and columns by powers of two; prove by a maximum matching that the pattern is not singular;
//! order the columns by COLAMD; count what the factors hold (`tree`), and ask for that memory; reflect column by column (`reflections`).
//!
//! R fills as the Cholesky factor of AᵀA, several times as much as L and U: a method for what elimination cannot do.
//!
//! Storage: the factors (see `reflections`) and A by columns, (4 + size of T)·nnz(A).

mod reflections;
mod tree;

use bt_formats::{Csr, Monitor, Op, RealScalar, Scalar, is_odd, memory, zero};
use faer::MatMut;

use self::reflections::Reflections;
use self::tree::Tree;
use crate::columns::for_each_column;
use crate::error::Result;
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::memory::zeros;
use crate::pool::Pool;
use crate::sparse_lu::{Csc, Scaled, match_rows};

const METHOD: &str = "sparse-qr";

/// A sparse matrix as a product of reflections and a triangle.
///
/// Growth and the smallest pivot in [`FactorStats`] are those of R and the equilibrated matrix, whose largest entries are near 1.
///
/// ```
/// use bt_direct::{Factorization, SparseQr};
/// use bt_formats::Csr;
/// // [ 3 1 ]
/// // [ 4 2 ]
/// let a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![3.0, 1.0, 4.0, 2.0])?;
/// let qr = SparseQr::new(&a)?;
/// let mut x = [4.0, 6.0];
/// qr.solve_vec_in_place(&mut x);
/// assert!((x[0] - 1.0f64).abs() < 1e-14 && (x[1] - 1.0).abs() < 1e-14);
/// assert!((qr.log_det().log_abs - 2f64.ln()).abs() < 1e-14);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
pub struct SparseQr<T: Scalar> {
    scaled: Scaled<T>,
    tree: Tree,
    factors: Reflections<T>,
    /// Work vectors of solves: one per thread that has solved at the same time.
    scratch: Pool<Vec<T>>,
}

impl<T: Scalar> SparseQr<T> {
    /// Factors a square matrix.
    ///
    /// # Errors
    /// [`crate::FactorError::Input`] when A is not square, not finite, or too large for memory; [`crate::FactorError::Singular`] naming a column of A
    /// without a row left for it, or one that is zero after those before it.
    ///
    /// # Cost
    /// Some 4·|vᵢ| operations for each entry of R in row i; the entries of R and of the reflections are counted, and their memory is asked
    /// for, before anything is reflected.
    pub fn new(a: &Csr<T>) -> Result<Self> {
        Self::with_monitor(a, &mut ())
    }

    /// Like [`SparseQr::new`], observed every 64 columns.
    ///
    /// # Errors
    /// Also [`crate::FactorError::Stopped`].
    #[inline(never)]
    pub fn with_monitor(a: &Csr<T>, monitor: &mut dyn Monitor) -> Result<Self> {
        let scaled = Scaled::of(a)?;
        let tree = analysed(&scaled.a)?;
        memory::ask(Reflections::<T>::bytes(&tree) as u64, "the factors of sparse-qr")?;
        let factors = Reflections::with_room(&tree)?;
        let mut qr = Self { scaled, tree, factors, scratch: Pool::new() };
        qr.factor(monitor)?;
        qr.scratch.put(zeros(qr.n())?);
        Ok(qr)
    }

    /// Operations of the factorization, counted from the pattern.
    ///
    /// # Errors
    /// As [`SparseQr::new`], but for memory.
    ///
    /// # Cost
    /// An order of the columns, and O(1) for each entry of R.
    pub fn flops(a: &Csr<T>) -> Result<f64> {
        Ok(analysed(&Scaled::of(a)?.a)?.flops)
    }

    /// Factors a matrix with the same pattern and new values, scaled anew, without taking memory.
    ///
    /// After an error the factors are unusable: solves give NaN until a refactorisation succeeds.
    ///
    /// # Errors
    /// As [`SparseQr::new`], and [`crate::FactorError::Input`] when the pattern is another one.
    pub fn refactor(&mut self, a: &Csr<T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// Like [`SparseQr::refactor`], observed every 64 columns.
    ///
    /// # Errors
    /// Also [`crate::FactorError::Stopped`].
    #[inline(never)]
    pub fn refactor_with_monitor(&mut self, a: &Csr<T>, monitor: &mut dyn Monitor) -> Result<()> {
        a.check_square()?;
        a.check_finite()?;
        self.scaled.check_pattern(a)?;
        self.scaled.load(a);
        self.factor(monitor)
    }

    fn factor(&mut self, monitor: &mut dyn Monitor) -> Result<()> {
        let done = self.factors.factor(&self.scaled.a, &self.tree, monitor);
        if done.is_err() {
            self.factors.invalidate(self.scaled.a.n());
        }
        done
    }

    /// A⁻¹ = C·Q·(P·R·A·C·Q)⁻¹·P·R, and A⁻ᵀ = R·Pᵀ·(P·R·A·C·Q)⁻ᵀ·Qᵀ·C.
    fn solve_column(&self, op: Op, x: &mut [T], y: &mut [T]) {
        let Scaled { row_factors, col_factors, .. } = &self.scaled;
        let Tree { col_order, position, .. } = &self.tree;
        let scaled = |v: T, factor: T::Real| v * T::from_real(factor);
        match op {
            Op::Identity => {
                (0..x.len()).for_each(|i| y[position[i] as usize] = scaled(x[i], row_factors[i]));
                self.factors.solve(y);
                col_order.iter().zip(&*y).for_each(|(&j, &y)| x[j as usize] = scaled(y, col_factors[j as usize]));
            }
            Op::Transpose | Op::Adjoint => {
                col_order.iter().zip(&mut *y).for_each(|(&j, y)| *y = scaled(x[j as usize], col_factors[j as usize]));
                self.factors.solve_transpose(op, y);
                (0..x.len()).for_each(|i| x[i] = scaled(y[position[i] as usize], row_factors[i]));
            }
        }
    }
}

/// The tree of a matrix whose pattern is not singular.
fn analysed<T: Scalar>(a: &Csc<T>) -> Result<Tree> {
    match_rows(a)?;
    Tree::of(a)
}

impl<T: Scalar> Factorization<T> for SparseQr<T> {
    fn n(&self) -> usize {
        self.scaled.a.n()
    }

    fn method(&self) -> &'static str {
        METHOD
    }

    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n(), "rows of the right-hand sides");
        let mut work = self.scratch.take(|| vec![zero(); self.n()]);
        for_each_column(x, |x| self.solve_column(op, x, &mut work));
        self.scratch.put(work);
    }

    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        self.refactor_with_monitor(&*a.csr()?, monitor)
    }

    fn stats(&self) -> FactorStats {
        let (f, &Scaled { norm_one, norm_max, .. }) = (&self.factors, &self.scaled);
        FactorStats {
            norm_one,
            growth: if norm_max > 0.0 { f.max_r / norm_max } else { 1.0 },
            min_pivot: f.diagonal.iter().map(|d| d.abs().to_f64()).fold(f64::INFINITY, f64::min_nan),
            boosted_pivots: 0,
            nnz: f.nnz(),
            bytes: Reflections::<T>::bytes(&self.tree) + self.scaled.bytes(),
            flops: f.flops,
        }
    }

    #[inline(never)]
    fn log_det(&self) -> LogDet<T> {
        // det Hₖ = −1; det A = det(R·A·C) / (∏rᵢ·∏cⱼ), whose exponents sum exactly.
        let mut det = LogDet::one();
        self.factors.diagonal.iter().for_each(|&d| det.multiply(d));
        det.log_abs -= self.scaled.log_of_factors();
        let is_odd_exchange = is_odd(&self.tree.position) != is_odd(&self.tree.col_order);
        if is_odd_exchange != (self.factors.count() % 2 == 1) {
            det.negate();
        }
        det
    }
}
