//! Block LU without pivoting of a matrix whose blocks have sizes that are multiples of the kernels' lanes.

use std::any::Any;
use std::ops::Range;

use bt_formats::{Monitor, Op, Par, RealScalar, Scalar, ScalarKind, c32, c64, one, zero};
use faer::linalg::matmul::{matmul, matmul_with_conj};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place_with_conj, solve_unit_lower_triangular_in_place,
    solve_unit_upper_triangular_in_place_with_conj, solve_upper_triangular_in_place,
};
use faer::{Accum, Conj, MatMut, MatRef};

use crate::butterfly::Butterfly;
use crate::error::Result;
use crate::factorization::LogDet;
use crate::guard::parallelism_of;
use crate::memory::{reserve, zeros};
use crate::nopivot::kernels::{Element, Maxima};
use crate::nopivot::{self, Stop, times};

/// L̃ⱼ\Ũⱼ, Hⱼ and Gⱼ of every block.
#[derive(Debug)]
pub(super) struct Core<T> {
    shape: Places,
    values: Vec<T>,
    /// One block on its way, transposed.
    block: Vec<T>,
    maxima: Maxima,
}

/// A block of A' by the factors that take its place.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Diagonal(usize),
    /// Below this diagonal block.
    Below(usize),
    /// To its right.
    Beside(usize),
}

/// First row of each block and n; first value of each block and their number.
#[derive(Debug)]
struct Places {
    rows: Vec<usize>,
    starts: Vec<usize>,
}

impl Places {
    fn size(&self, j: usize) -> usize {
        if j + 1 < self.rows.len() { self.rows[j + 1] - self.rows[j] } else { 0 }
    }
    fn m(&self) -> usize {
        self.rows.len() - 1
    }

    /// D, H and G of block j.
    fn pieces<'a, T>(&self, j: usize, values: &'a mut [T]) -> [MatMut<'a, T>; 3] {
        let (k, next) = (self.size(j), self.size(j + 1));
        let (d, rest) = values[self.starts[j]..self.starts[j + 1]].split_at_mut(k * k);
        let (h, g) = rest.split_at_mut(next * k);
        [
            MatMut::from_column_major_slice_mut(d, k, k),
            MatMut::from_column_major_slice_mut(h, next, k),
            MatMut::from_column_major_slice_mut(g, k, next),
        ]
    }

    fn eliminate<E: Element>(
        &self,
        values: &mut dyn Any,
        par: Par,
        maxima: &Maxima,
        monitor: &mut dyn Monitor,
    ) -> Result<(), Stop> {
        let values = values.downcast_mut::<Vec<E>>().expect("the scalar by its name");
        for j in 0..self.m() {
            let first = self.rows[j];
            let (done, ahead) = values.split_at_mut(self.starts[j + 1]);
            let [mut d, mut h, mut g] = self.pieces(j, done);
            nopivot::eliminate(d.as_mut(), first, par, maxima, monitor)?;
            if j + 1 == self.m() {
                break;
            }
            // G ← L̃⁻¹·U';  H ← L'·Ũ⁻¹;  D̃ ← D' − H·G
            nopivot::lower(d.as_ref(), g.as_mut(), first, par, maxima);
            nopivot::upper(d.as_ref(), h.as_mut(), first, par, maxima);
            let next = self.size(j + 1);
            let below = MatMut::from_column_major_slice_mut(&mut ahead[..next * next], next, next);
            matmul(below, Accum::Add, h.as_ref(), g.as_ref(), -one::<E>(), parallelism_of(par));
        }
        Ok(())
    }
}

impl<T: Scalar> Core<T> {
    /// For `m` blocks of the sizes given.
    pub(super) fn new(m: usize, size: impl Fn(usize) -> usize) -> Result<Self> {
        let (mut rows, mut starts) = (Vec::new(), Vec::new());
        reserve(&mut rows, m + 1)?;
        reserve(&mut starts, m + 1)?;
        rows.push(0usize);
        starts.push(0usize);
        let mut largest = 0;
        for j in 0..m {
            let (k, next) = (size(j), if j + 1 < m { size(j + 1) } else { 0 });
            // Too much to count is too much to store.
            let len = k.checked_mul(k + 2 * next).and_then(|len| starts[j].checked_add(len));
            starts.push(len.unwrap_or(usize::MAX));
            rows.push(rows[j] + k);
            largest = largest.max(k * k.max(next));
        }
        let maxima = Maxima::new(rows[m]);
        Ok(Self { values: zeros(starts[m])?, block: zeros(largest)?, maxima, shape: Places { rows, starts } })
    }

    pub(super) fn n(&self) -> usize {
        self.shape.rows[self.shape.m()]
    }
    pub(super) fn rows(&self, j: usize) -> Range<usize> {
        self.shape.rows[j]..self.shape.rows[j + 1]
    }
    pub(super) fn nnz(&self) -> usize {
        self.values.len()
    }
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.values)
            + size_of_val(&*self.block)
            + size_of_val(&*self.shape.rows)
            + size_of_val(&*self.shape.starts)
            + 16 * self.n()
    }
    pub(super) fn invalidate(&mut self) {
        self.values.fill(T::nan_impl());
    }

    /// The block at `place` ← s·Wᵀ·B·V. `copy` writes Bᵀ over zeros.
    pub(super) fn load(
        &mut self,
        place: Place,
        left: &Butterfly<T>,
        right: &Butterfly<T>,
        scale: T::Real,
        copy: impl FnOnce(MatMut<'_, T>),
    ) {
        let (Place::Diagonal(j) | Place::Below(j) | Place::Beside(j)) = place;
        let [d, h, g] = self.shape.pieces(j, &mut self.values);
        let mut to = match place {
            Place::Diagonal(_) => d,
            Place::Below(_) => h,
            Place::Beside(_) => g,
        };
        let (rows, columns) = (to.nrows(), to.ncols());
        let block = &mut self.block[..rows * columns];
        block.fill(zero());
        copy(MatMut::from_column_major_slice_mut(&mut *block, columns, rows));
        for v in block.iter_mut() {
            *v = times(*v, scale);
        }
        // (s·B·V)ᵀ = Vᵀ·s·Bᵀ, then Wᵀ from the left.
        let mut transposed = MatMut::from_column_major_slice_mut(block, columns, rows);
        right.apply_many(Op::Transpose, transposed.as_mut());
        to.copy_from(transposed.as_ref().transpose());
        left.apply_many(Op::Transpose, to);
    }

    pub(super) fn eliminate(&mut self, par: Par, monitor: &mut dyn Monitor) -> Result<(), Stop> {
        self.maxima.reset();
        let Self { shape, values, maxima, .. } = self;
        // The kernels want the scalar by its name.
        let values: &mut dyn Any = values;
        match T::KIND {
            ScalarKind::F32 => shape.eliminate::<f32>(values, par, maxima, monitor),
            ScalarKind::F64 => shape.eliminate::<f64>(values, par, maxima, monitor),
            ScalarKind::C32 => shape.eliminate::<c32>(values, par, maxima, monitor),
            ScalarKind::C64 => shape.eliminate::<c64>(values, par, maxima, monitor),
        }
    }

    /// max(|U|, |L|·|U|).
    pub(super) fn growth(&self) -> f64 {
        self.maxima.growth().0
    }

    /// The smallest and the largest modulus of the pivots.
    pub(super) fn pivots(&self) -> (f64, f64) {
        let mut found = (f64::INFINITY, 0.0f64);
        self.for_each_pivot(|p| {
            let modulus = p.abs().to_f64();
            found = (found.0.min_nan(modulus), found.1.max_nan(modulus));
        });
        found
    }

    pub(super) fn log_det(&self) -> LogDet<T> {
        let mut det = LogDet::one();
        self.for_each_pivot(|p| det.multiply(p));
        det
    }

    fn for_each_pivot(&self, mut f: impl FnMut(T)) {
        for j in 0..self.shape.m() {
            let [d, _, _] = self.pieces(j);
            (0..d.nrows()).for_each(|r| f(d[(r, r)]));
        }
    }

    fn pieces(&self, j: usize) -> [MatRef<'_, T>; 3] {
        let (k, next) = (self.shape.size(j), self.shape.size(j + 1));
        let (d, rest) = self.values[self.shape.starts[j]..self.shape.starts[j + 1]].split_at(k * k);
        let (h, g) = rest.split_at(next * k);
        [
            MatRef::from_column_major_slice(d, k, k),
            MatRef::from_column_major_slice(h, next, k),
            MatRef::from_column_major_slice(g, k, next),
        ]
    }

    /// X ← op(A')⁻¹·X.
    pub(super) fn solve(&self, op: Op, mut x: MatMut<'_, T>) {
        let (m, minus, seq) = (self.shape.m(), -one::<T>(), faer::Par::Seq);
        let conj = if op == Op::Adjoint { Conj::Yes } else { Conj::No };
        let subtract = |y: MatMut<'_, T>, a: MatRef<'_, T>, x: MatRef<'_, T>| {
            if a.nrows() > 0 && a.ncols() > 0 {
                matmul_with_conj(y, Accum::Add, a, conj, x, Conj::No, minus, seq);
            }
        };
        for j in 0..m {
            let [d, h, g] = self.pieces(j);
            let [mut own, below] = self.two(j, x.as_mut());
            if op == Op::Identity {
                solve_unit_lower_triangular_in_place(d, own.as_mut(), seq);
                subtract(below, h, own.as_ref());
            } else {
                solve_lower_triangular_in_place_with_conj(d.transpose(), conj, own.as_mut(), seq);
                subtract(below, g.transpose(), own.as_ref());
            }
        }
        for j in (0..m).rev() {
            let [d, h, g] = self.pieces(j);
            let [mut own, below] = self.two(j, x.as_mut());
            if op == Op::Identity {
                subtract(own.as_mut(), g, below.as_ref());
                solve_upper_triangular_in_place(d, own, seq);
            } else {
                subtract(own.as_mut(), h.transpose(), below.as_ref());
                solve_unit_upper_triangular_in_place_with_conj(d.transpose(), conj, own, seq);
            }
        }
    }

    /// The rows of block j and of the next one.
    fn two<'x>(&self, j: usize, x: MatMut<'x, T>) -> [MatMut<'x, T>; 2] {
        let (k, next) = (self.shape.size(j), self.shape.size(j + 1));
        let (own, below) = x.subrows_mut(self.shape.rows[j], k + next).split_at_row_mut(k);
        [own, below]
    }
}
