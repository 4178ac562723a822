//! A factorization behind a permutation and a scaling: A' = P_r·(R·A·C)·P_cᵀ is factored, A is solved with.
//!
//! Storage beside the inner factors: two permutations, two scalings, and one buffer of a few columns.

use std::sync::{Mutex, PoisonError};

use bt_direct::{FactorError, FactorStats, Factorization, Given, LogDet, Singularity};
use bt_formats::{
    Csr, Error as InputError, LinearOperator, Matrix, Monitor, Op, Permutation, RealScalar, Scalar, one, zero,
};
use faer::{Mat, MatMut, MatRef};

use crate::equilibrated::Scaling;
use crate::error::Error;
use crate::options::Reorder;
use crate::plan::Found;

/// How A became A' = P_r·(R·A·C)·P_cᵀ: row i of A' is row `rows.order()[i]` of A, scaled.
#[derive(Clone)]
pub(crate) struct Transform<T: Scalar> {
    pub rows: Permutation,
    pub cols: Permutation,
    /// `None` where nothing is scaled.
    pub scaling: Option<Scaling<T::Real>>,
    /// What is known of A'.
    pub found: Found,
}

impl<T: Scalar> Transform<T> {
    pub fn identity(n: usize) -> Self {
        Self::symmetric(Permutation::identity(n))
    }

    /// P·A·Pᵀ
    pub fn symmetric(p: Permutation) -> Self {
        Self { rows: p.clone(), cols: p, scaling: None, found: Found::default() }
    }

    pub fn is_identity(&self) -> bool {
        self.scaling.is_none() && self.rows.is_identity() && self.cols.is_identity()
    }

    /// Whether rows and columns stay where they are, scaled or not.
    pub fn keeps_order(&self) -> bool {
        self.rows.is_identity() && self.cols.is_identity()
    }

    pub fn apply(&self, a: &Csr<T>) -> Csr<T> {
        match &self.scaling {
            Some(s) => a.scale(&s.rows, &s.cols).permute(&self.rows, &self.cols),
            None => a.permute(&self.rows, &self.cols),
        }
    }

    /// An error of the factorization of A' with its place in A: rows and columns by their numbers there, blocks and partitions where
    /// the order is kept.
    pub fn in_given_order(&self, error: Error) -> Error {
        let of = |p: &Permutation, i: usize| p.order().get(i).map(|&old| old as usize);
        match error {
            Error::Singular(place) => {
                let column = of(&self.cols, place.column).unwrap_or(place.column);
                Error::Singular(Singularity { column, ..place })
            }
            Error::Factor(FactorError::Breakdown { method, place, reason }) if !self.keeps_order() => {
                let place = place.and_then(|place| place.renumbered(|i| of(&self.rows, i), |j| of(&self.cols, j)));
                // The sentence has the numbers of A'.
                let given = place.map(|place| format!("; {} {} of the matrix given", place.name(), place.index()));
                let reason = format!("in the order of elimination, {reason}{}", given.unwrap_or_default());
                Error::Factor(FactorError::Breakdown { method, place, reason })
            }
            other => other,
        }
    }

    /// The sides of op(A) as (permutation, scaling): what meets the right-hand side, and what meets the solution.
    fn sides(&self, op: Op) -> [(&Permutation, Option<&[T::Real]>); 2] {
        let (r, c) = match &self.scaling {
            Some(s) => (Some(&*s.rows), Some(&*s.cols)),
            None => (None, None),
        };
        match op {
            Op::Identity => [(&self.rows, r), (&self.cols, c)],
            Op::Transpose | Op::Adjoint => [(&self.cols, c), (&self.rows, r)],
        }
    }

    /// y ← P_r·R·b, the right-hand side of op(A') for that of op(A) (sides exchanged for the transpose).
    pub fn gather(&self, op: Op, b: &[T], y: &mut [T]) {
        let [(p, scale), _] = self.sides(op);
        for (y, &old) in y.iter_mut().zip(p.order()) {
            *y = scaled(b[old as usize], scale, old as usize);
        }
    }

    /// x ← C·P_cᵀ·z, the solution with op(A) from that with op(A').
    pub fn scatter(&self, op: Op, z: &[T], x: &mut [T]) {
        let [_, (p, scale)] = self.sides(op);
        for (&z, &old) in z.iter().zip(p.order()) {
            x[old as usize] = scaled(z, scale, old as usize);
        }
    }

    /// `gather` of the contiguous columns of B.
    pub fn gathered(&self, b: MatRef<'_, T>) -> Mat<T> {
        let mut y = Mat::zeros(b.nrows(), b.ncols());
        for (j, b) in b.col_iter().enumerate() {
            self.gather(Op::Identity, b.try_as_col_major().expect("an owned matrix").as_slice(), y.col_as_slice_mut(j));
        }
        y
    }

    /// `scatter` of the columns of Z to those of X, which are contiguous.
    pub fn scatter_columns(&self, z: &Mat<T>, mut x: MatMut<'_, T>) {
        for j in 0..z.ncols() {
            self.scatter(Op::Identity, z.col_as_slice(j), column(&mut x, j));
        }
    }

    /// Then `p` on both sides: P·A'·Pᵀ.
    pub fn then(&self, p: &Permutation) -> Self {
        let (rows, cols) = (p.after(&self.rows), p.after(&self.cols));
        Self { rows, cols, scaling: self.scaling.clone(), found: Found::default() }
    }
}

/// The factors of A, or of what a transform made of it.
pub(crate) enum Factors<T: Scalar> {
    Plain(Box<dyn Factorization<T>>),
    Behind(Reordered<T>),
}

impl<T: Scalar> Factors<T> {
    /// The order of rows and columns alike that A was factored in; `None` where they have orders of their own.
    pub fn symmetric_order(&self) -> Option<Permutation> {
        match self {
            Self::Plain(factors) => Some(Permutation::identity(factors.n())),
            Self::Behind(Reordered { transform: Transform { rows, cols, .. }, .. }) => {
                (rows.order() == cols.order()).then(|| rows.clone())
            }
        }
    }
}

impl<T: Scalar> Factors<T> {
    /// New values for A, which is scaled neither before nor now, with errors that name their places in A.
    pub fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<(), Error> {
        match self {
            Self::Plain(factors) => Ok(factors.refactor(a, monitor)?),
            Self::Behind(factors) => {
                let done = factors.refactor(a, monitor);
                done.map_err(|e| factors.transform.in_given_order(e.into()))
            }
        }
    }

    /// As a factorization among others.
    pub fn into_inner(self) -> Box<dyn Factorization<T>> {
        match self {
            Self::Plain(factors) => factors,
            Self::Behind(factors) => Box::new(factors),
        }
    }

    pub fn is_scaled(&self) -> bool {
        matches!(self, Self::Behind(Reordered { transform: Transform { scaling: Some(_), .. }, .. }))
    }
}

impl<T: Scalar> std::ops::Deref for Factors<T> {
    type Target = dyn Factorization<T>;
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Plain(factors) => &**factors,
            Self::Behind(factors) => factors,
        }
    }
}

/// Solves with A through factors of A'.
pub(crate) struct Reordered<T: Scalar> {
    inner: Box<dyn Factorization<T>>,
    transform: Transform<T>,
    norm_one: f64,
    columns: usize,
    buffers: Mutex<Vec<Vec<T>>>,
}

impl<T: Scalar> Reordered<T> {
    /// The factors of A'.
    pub fn inner(&self) -> &dyn Factorization<T> {
        &*self.inner
    }

    /// What made A' of A.
    pub fn transform(&self) -> &Transform<T> {
        &self.transform
    }

    /// `norm_one` is ‖A‖₁ of the matrix before the transform.
    pub fn new(inner: Box<dyn Factorization<T>>, transform: Transform<T>, norm_one: f64) -> Self {
        let n = inner.n();
        // Columns that go through the buffer together: enough for level-3 kernels, at most 8 MiB or one column.
        let columns = ((1 << 20) / n.max(1)).clamp(1, 16);
        let buffers = Mutex::new(vec![vec![zero(); n * columns]]);
        Self { inner, transform, norm_one, columns, buffers }
    }
}

impl<T: Scalar> Factorization<T> for Reordered<T> {
    fn n(&self) -> usize {
        self.inner.n()
    }

    fn method(&self) -> &'static str {
        self.inner.method()
    }

    fn solve_op_in_place(&self, op: Op, mut x: MatMut<'_, T>) {
        let n = self.n();
        assert_eq!(x.nrows(), n, "rows of X");
        // A second thread that solves at the same time brings its own buffer, once.
        let lock = || self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = lock().pop().unwrap_or_else(|| vec![zero(); n * self.columns]);
        for first in (0..x.ncols()).step_by(self.columns) {
            let width = self.columns.min(x.ncols() - first);
            let y = &mut buffer[..n * width];
            for (k, y) in y.chunks_exact_mut(n).enumerate() {
                self.transform.gather(op, column(&mut x, first + k), y);
            }
            self.inner.solve_op_in_place(op, MatMut::from_column_major_slice_mut(y, n, width));
            for (k, z) in y.chunks_exact(n).enumerate() {
                self.transform.scatter(op, z, column(&mut x, first + k));
            }
        }
        lock().push(buffer);
    }

    /// A' is made of the new A by the same transform.
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> bt_direct::Result<()> {
        let a = a.csr()?;
        if (a.nrows(), a.ncols()) != (self.n(), self.n()) {
            let (what, expected, found) = ("size of the matrix", self.n(), a.nrows().max(a.ncols()));
            return Err(InputError::DimensionMismatch { what, expected, found }.into());
        }
        self.inner.refactor(Given::Csr(&self.transform.apply(&a)), monitor)?;
        self.norm_one = a.norm_one().to_f64();
        Ok(())
    }

    fn stats(&self) -> FactorStats {
        let stats = self.inner.stats();
        FactorStats { norm_one: self.norm_one, bytes: stats.bytes + 4 * 4 * self.n(), ..stats }
    }

    fn log_det(&self) -> LogDet<T> {
        // det A' = sgn P_r · ΠR · det A · ΠC · sgn P_c
        let mut det = self.inner.log_det();
        if self.transform.rows.is_odd() != self.transform.cols.is_odd() {
            det.negate();
        }
        if let Some(s) = &self.transform.scaling {
            det.log_abs -= s.rows.iter().chain(&s.cols).map(|s| s.to_f64().ln()).sum::<f64>();
        }
        det
    }
}

fn column<'a, T: Scalar>(x: &'a mut MatMut<'_, T>, j: usize) -> &'a mut [T] {
    x.as_mut().col_mut(j).try_as_col_major_mut().expect("columns of X must be contiguous").as_slice_mut()
}

fn scaled<T: Scalar>(value: T, factors: Option<&[T::Real]>, i: usize) -> T {
    value * factors.map_or(one(), |f| T::from_real(f[i]))
}

/// What makes the matrix of a method of A, and the order that it stands for.
pub(crate) type Ordered<T> = (Transform<T>, Reorder);

#[cfg(test)]
mod tests {
    use bt_direct::Place;

    use super::*;

    #[test]
    fn places_of_errors_are_those_of_the_given_matrix_or_none() {
        let order = |order: [u32; 3]| Permutation::from_order(order.to_vec()).unwrap();
        let place = |transform: &Transform<f64>, place: Place| match transform
            .in_given_order(FactorError::breakdown("block-lu", place, "").into())
        {
            Error::Factor(FactorError::Breakdown { place, .. }) => place,
            other => panic!("{other}"),
        };
        let moved = Transform { rows: order([2, 0, 1]), cols: order([1, 2, 0]), ..Transform::identity(3) };
        assert_eq!(place(&moved, Place::Row(0)), Some(Place::Row(2)));
        let told =
            moved.in_given_order(FactorError::breakdown("thomas", Place::Row(0), "row 0 (from 0) is zero").into());
        let sentence = "in the order of elimination, row 0 (from 0) is zero; row 2 of the matrix given";
        assert!(told.to_string().contains(sentence), "{told}");
        assert_eq!(place(&moved, Place::Column(0)), Some(Place::Column(1)));
        assert_eq!(place(&moved, Place::Block(0)), None);
        assert_eq!(place(&moved, Place::Partition(0)), None);
        // Where only numbers change, blocks stay.
        let scaling = Some(Scaling { rows: vec![2.0; 3], cols: vec![1.0; 3] });
        let scaled = Transform { scaling, ..Transform::identity(3) };
        for kept in [Place::Row(1), Place::Column(2), Place::Block(0), Place::Partition(1)] {
            assert_eq!(place(&scaled, kept), Some(kept));
        }
    }
}
