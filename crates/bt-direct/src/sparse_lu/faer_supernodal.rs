//! faer's supernodal sparse LU, held to its word.
//!
//! faer orders the columns by COLAMD, finds supernodes and eliminates them with dense kernels and partial pivoting: ten
//! times the rate of a column-by-column code once there is fill. But on a singular matrix it may panic, or return
//! infinities and NaN without an error. So its factors are only accepted after a trial solve whose backward error is
//! small, and panics inside faer are caught and kept from printing.

use std::sync::{Mutex, PoisonError};

use bt_formats::{Op, RealScalar, Scalar, zero};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::sparse::linalg::SupernodalThreshold;
use faer::sparse::linalg::lu::{LuRef, LuSymbolicParams, NumericLu, SymbolicLu, factorize_symbolic_lu};
use faer::sparse::{SparseColMatRef, SymbolicSparseColMatRef};
use faer::{Conj, MatMut, Par, Spec};

use super::scaled::Csc;
use crate::guard::{parallelism, quietly};
use crate::refine::unit_roundoff;
use crate::sparse_cholesky::{Pattern, count};

/// faer's symbolic and numeric factors of a matrix, with buffers for solves.
pub struct Supernodal<T: Scalar> {
    symbolic: SymbolicLu<u32>,
    numeric: NumericLu<u32, T>,
    /// One buffer per thread that has solved at the same time; each holds the scratch of `columns` columns.
    buffers: Mutex<Vec<MemBuffer>>,
    columns: usize,
    /// See [`Supernodal::counts`].
    nnz: usize,
}

impl<T: Scalar> Supernodal<T> {
    /// Factors A; `None` when faer fails in any way or its factors do not solve.
    pub fn new(a: &Csc<T>, columns: usize) -> Option<Self> {
        let params = LuSymbolicParams {
            supernodal_flop_ratio_threshold: SupernodalThreshold::FORCE_SUPERNODAL,
            ..Default::default()
        };
        let symbolic = quietly(|| factorize_symbolic_lu(pattern(a), params).ok())??;
        let buffers = Mutex::new(Vec::with_capacity(64));
        let mut lu = Self { symbolic, numeric: NumericLu::new(), buffers, columns, nnz: 0 };
        let buffer = lu.buffer()?;
        lu.give(buffer);
        lu.factor(a).then_some(lu)
    }

    /// Factors a matrix with the same pattern; false when faer fails or its factors do not solve.
    ///
    /// faer allocates its work space and, when pivots change, supernodes anew.
    pub fn factor(&mut self, a: &Csc<T>) -> bool {
        let par = parallelism();
        let Self { symbolic, numeric, .. } = self;
        let request = symbolic.factorize_numeric_lu_scratch::<T>(par, Spec::default());
        let Ok(mut memory) = MemBuffer::try_new(request) else { return false };
        let matrix = SparseColMatRef::new(pattern(a), &a.values[..]);
        let done = quietly(|| {
            symbolic.factorize_numeric_lu(numeric, matrix, par, MemStack::new(&mut memory), Spec::default()).is_ok()
        });
        let sound = done == Some(true) && self.solves(a);
        if sound {
            self.nnz = self.count(a);
        }
        sound
    }

    /// Entries of L and U, and their bytes. faer does not tell; these are the entries that elimination with its pivots fills where
    /// the pattern is that of A + Aᵀ in their order, too many for other patterns, without the zeros inside supernodes.
    pub fn counts(&self) -> (usize, usize) {
        (self.nnz, self.nnz * size_of::<T>())
    }

    fn count(&self, a: &Csc<T>) -> usize {
        let lu = LuRef::new_unchecked(&self.symbolic, &self.numeric);
        let (rows, cols) = (lu.row_perm(), lu.col_perm());
        let (place, order) = (rows.arrays().1, cols.arrays().0);
        let mut pattern = Pattern { ptr: vec![0], idx: Vec::with_capacity(a.row_idx.len()) };
        for &j in order {
            let start = pattern.idx.len();
            pattern.idx.extend(a.col(j as usize).map(|(i, _)| place[i]));
            pattern.idx[start..].sort_unstable();
            pattern.ptr.push(pattern.idx.len() as u32);
        }
        let n = a.n();
        let columns = count(&pattern.of_sum(), &(0..n as u32).collect::<Vec<_>>()).columns;
        2 * columns.iter().map(|&c| c as usize).sum::<usize>() - n
    }

    /// A trial: with x of ±1 (both signs in no simple order) and b = A·x, is b − A·(A⁻¹b) small?
    fn solves(&self, a: &Csc<T>) -> bool {
        let n = a.n();
        let x: Vec<T> = (0..n)
            .map(|j| T::rounded(if (j.wrapping_mul(0x9E37_79B9) >> 7) & 1 == 0 { 1.0 } else { -1.0 }, 0.0))
            .collect();
        let b = multiply(a, &x);
        let mut y = b.clone();
        if quietly(|| self.solve(Op::Identity, MatMut::from_column_major_slice_mut(&mut y, n, 1))).is_none() {
            return false;
        }
        let (ax, largest) = (multiply(a, &y), bt_formats::max_abs(&y));
        let residual = ax.iter().zip(&b).fold(0.0, |m: f64, (&u, &v)| m.max_nan((u - v).abs().to_f64()));
        let mut row_sums = vec![zero::<T::Real>(); n];
        for j in 0..n {
            a.col(j).for_each(|(i, v)| row_sums[i] += v.abs());
        }
        let norm_a = row_sums.iter().fold(0.0, |m: f64, s| m.max_nan(s.to_f64()));
        // What refinement can still mend: half of the digits.
        largest.is_finite() && residual <= unit_roundoff::<T>().sqrt() * (norm_a * largest + bt_formats::max_abs(&b))
    }

    /// X ← op(A)⁻¹·X for at most `columns` columns.
    pub fn solve(&self, op: Op, x: MatMut<'_, T>) {
        let lu = LuRef::new_unchecked(&self.symbolic, &self.numeric);
        let mut buffer = self.buffer().expect("memory for the work space of a solve");
        let stack = MemStack::new(&mut buffer);
        match op {
            Op::Identity => lu.solve_in_place_with_conj(Conj::No, x, Par::Seq, stack),
            Op::Transpose => lu.solve_transpose_in_place_with_conj(Conj::No, x, Par::Seq, stack),
            Op::Adjoint => lu.solve_transpose_in_place_with_conj(Conj::Yes, x, Par::Seq, stack),
        }
        self.give(buffer);
    }

    fn buffer(&self) -> Option<MemBuffer> {
        let pooled = self.buffers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        pooled.or_else(|| MemBuffer::try_new(self.symbolic.solve_in_place_scratch::<T>(self.columns, Par::Seq)).ok())
    }

    fn give(&self, buffer: MemBuffer) {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}

fn pattern<T>(a: &Csc<T>) -> SymbolicSparseColMatRef<'_, u32> {
    let n = a.col_ptr.len() - 1;
    SymbolicSparseColMatRef::new_checked(n, n, &a.col_ptr, None, &a.row_idx)
}

/// A·x
fn multiply<T: Scalar>(a: &Csc<T>, x: &[T]) -> Vec<T> {
    let mut y = vec![zero::<T>(); x.len()];
    for (j, &xj) in x.iter().enumerate() {
        a.col(j).for_each(|(i, v)| y[i] += v * xj);
    }
    y
}
