//! Linear operators and explicit matrices: everything that can form y ← α·op(A)·x + β·y.
//!
//! [`LinearOperator`] is what a Krylov method needs; [`Matrix`] is what a certificate needs: products with
//! the transpose and the adjoint, with several vectors, |A|·|x|, and norms. All products are deterministic:
//! the same bits for any number of threads.

use std::ops::Range;

use faer::{MatMut, MatRef};

use crate::csr::Csr;
use crate::run::Run;
use crate::scalar::{RealScalar, Scalar};

/// Which of A, Aᵀ, Aᴴ takes part in a product or a solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A itself.
    Identity,
    /// Aᵀ.
    Transpose,
    /// Aᴴ = conj(A)ᵀ.
    Adjoint,
}

impl Op {
    /// (rows, columns) of op(A) for an A of the given shape.
    pub fn shape(self, nrows: usize, ncols: usize) -> (usize, usize) {
        match self {
            Self::Identity => (nrows, ncols),
            Self::Transpose | Self::Adjoint => (ncols, nrows),
        }
    }
}

/// How a product is carried out. The result has the same bits either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Par {
    /// On the calling thread.
    Seq,
    /// On the current rayon pool.
    Rayon,
}

impl Par {
    /// Rayon when the pool has more than one thread and `bytes` of traffic outweigh waking it, else serial.
    pub fn auto(bytes: usize) -> Self {
        // A thread that sleeps between the products of an iteration costs more to wake than it saves in some 50 µs: 1 MiB took less
        // time on two threads one product after the other, and up to 1.6 times as long among other work.
        const WORTHWHILE: usize = 4 << 20;
        if bytes >= WORTHWHILE && rayon::current_num_threads() > 1 { Self::Rayon } else { Self::Seq }
    }
}

/// A linear map given by its action.
pub trait LinearOperator<T: Scalar>: Sync {
    /// Rows.
    fn nrows(&self) -> usize;
    /// Columns.
    fn ncols(&self) -> usize;
    /// y ← α·A·x + β·y, with `x` of length `ncols` and `y` of length `nrows`.
    ///
    /// With β = 0, `y` is never read: it may hold NaN.
    ///
    /// # Panics
    /// When a length is wrong (a broken contract, not bad data).
    fn apply(&self, alpha: T, x: &[T], beta: T, y: &mut [T]);
}

/// A matrix whose entries are stored.
pub trait Matrix<T: Scalar>: LinearOperator<T> {
    /// Stored entries (explicit zeros included, padding not).
    fn nnz(&self) -> usize;
    /// Bytes of the arrays that hold it.
    fn bytes(&self) -> usize;
    /// y ← α·op(A)·x + β·y with the given parallelism. β = 0 never reads `y`.
    ///
    /// # Panics
    /// When a length is wrong.
    fn apply_op(&self, op: Op, alpha: T, x: &[T], beta: T, y: &mut [T], par: Par);
    /// Y ← α·op(A)·X + β·Y for several vectors, columns of `x` and `y`. β = 0 never reads `y`.
    ///
    /// # Panics
    /// When a shape is wrong or the columns are not contiguous.
    #[inline(never)]
    fn apply_many(&self, op: Op, alpha: T, x: MatRef<'_, T>, beta: T, mut y: MatMut<'_, T>, par: Par) {
        assert_eq!(x.ncols(), y.ncols(), "X and Y must have as many columns");
        for j in 0..x.ncols() {
            let xj = x.col(j).try_as_col_major().expect("columns of X must be contiguous").as_slice();
            let yj = y.as_mut().col_mut(j).try_as_col_major_mut().expect("columns of Y must be contiguous");
            self.apply_op(op, alpha, xj, beta, yj.as_slice_mut(), par);
        }
    }
    /// Calls `visit(row, col, value)` for every stored entry, row by row, columns increasing in a row.
    fn for_each_entry(&self, visit: &mut dyn FnMut(usize, usize, T));

    /// The matrix itself, where its rows can be read one by one.
    fn as_rows(&self) -> Option<&Csr<T>> {
        None
    }

    /// All stored entries of some rows as runs, where the format stores columns or diagonals in one piece; zeros that pad a diagonal may be
    /// among them. The rows begin at a multiple of eight, and end at one or with the matrix.
    fn runs_of(&self, _rows: Range<usize>) -> Option<Box<dyn Iterator<Item = Run<'_, T>> + '_>> {
        None
    }

    /// y ← |op(A)|·x + y for a real non-negative `x`: the denominator of the componentwise backward error.
    fn accumulate_abs(&self, op: Op, x: &[T::Real], y: &mut [T::Real]) {
        let (nrows, ncols) = op.shape(self.nrows(), self.ncols());
        assert_eq!((x.len(), y.len()), (ncols, nrows), "lengths of x and y");
        self.for_each_entry(&mut |i, j, v| match op {
            Op::Identity => y[i] += v.abs() * x[j],
            Op::Transpose | Op::Adjoint => y[j] += v.abs() * x[i],
        });
    }
    /// ‖A‖∞, the largest row sum of moduli. NaN when an entry is NaN.
    fn norm_inf(&self) -> T::Real {
        row_sum_norm(self, Op::Identity)
    }
    /// ‖A‖₁, the largest column sum of moduli. NaN when an entry is NaN.
    fn norm_one(&self) -> T::Real {
        row_sum_norm(self, Op::Transpose)
    }
    /// max |aᵢⱼ|. NaN when an entry is NaN.
    fn norm_max(&self) -> T::Real {
        let mut max = zero::<T::Real>();
        self.for_each_entry(&mut |_, _, v| max = max.max_nan(v.abs()));
        max
    }
}

#[inline(never)]
fn row_sum_norm<T: Scalar, A: Matrix<T> + ?Sized>(a: &A, op: Op) -> T::Real {
    let (nrows, ncols) = op.shape(a.nrows(), a.ncols());
    let mut sums = vec![zero::<T::Real>(); nrows];
    a.accumulate_abs(op, &vec![one::<T::Real>(); ncols], &mut sums);
    sums.into_iter().fold(zero(), RealScalar::max_nan)
}

/// 0 of any number type.
#[inline(always)]
pub fn zero<T: num_traits::Zero>() -> T {
    T::zero()
}

/// 1 of any number type.
#[inline(always)]
pub fn one<T: num_traits::One>() -> T {
    T::one()
}

/// a·b + c, rounded once where `FUSED` (complex numbers: every product). That is for functions compiled for instruction sets that
/// have it, as under `bt_simd::dispatch`: elsewhere a library does it in software. For complex scalars the order of the factors
/// shows in the last bit.
///
/// ```
/// assert_eq!(bt_formats::mul_add::<f64, true>(1.0 + 1e-16, 3.0, -1.0), 2.0);
/// ```
#[inline(always)]
pub fn mul_add<T: Scalar, const FUSED: bool>(a: T, b: T, c: T) -> T {
    if !FUSED {
        return a * b + c;
    }
    let (ar, ai, br, bi) = (a.re(), a.im(), b.re(), b.im());
    if T::IS_REAL {
        return T::from_real(ar.fused(br, c.re()));
    }
    T::from_parts(ar.fused(br, (-ai).fused(bi, c.re())), ar.fused(bi, ai.fused(br, c.im())))
}
