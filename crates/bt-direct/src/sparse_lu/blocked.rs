//! Supernodal LU of a matrix whose pattern is nearly symmetric: on the pattern of A + Aᵀ, in minimum degree order, with
//! interchanges inside the diagonal blocks of supernodes only.
//!
//! With N = L·U in supernodes s, each holding the rows and columns of its block and the rows Rₛ below it, from the left
//! (E. G. Ng & B. W. Peyton, SIAM J. Sci. Comput. 14 (1993) 1034–1056, doi:10.1137/0914063, with U as L):
//!
//! ```text
//! N[s∪Rₛ, s] ← N[s∪Rₛ, s] − Σ_d L[s∪Rₛ, d]·U[d, s],  N[s, Rₛ] ← N[s, Rₛ] − Σ_d L[s, d]·U[d, Rₛ],  d before s
//! P·N[s, s] = L·U,  L[Rₛ, s] = N[Rₛ, s]·U⁻¹,  U[s, Rₛ] = L⁻¹·P·N[s, Rₛ]
//! ```
//!
//! No row leaves its block, so that fill, work and memory are those that were counted; what this restriction costs is measured,
//! column by column, as max|L|·max|U| / max|A|, and where it is too much another elimination has to do it (O. Schenk & K.
//! Gärtner, Future Gener. Comput. Syst. 20 (2004) 475–487, doi:10.1016/j.future.2003.07.011, perturb such pivots instead).
//!
//! Storage: the blocks of L and U, zeros inside supernodes included, and one block as work space. Cost:
//! Σⱼ bⱼ(2bⱼ + 1) flops for bⱼ entries below the diagonal of column j, but for zeros inside supernodes.

use std::sync::Arc;

use bt_formats::{Monitor, Op, RealScalar, Scalar, zero};
use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};
use faer::linalg::triangular_solve as triangular;
use faer::{Conj, MatMut, Par};

use super::narrow;
use super::ordering::Ordering;
use super::scaled::Csc;
use crate::error::Result;
use crate::factorization::LogDet;
use crate::guard::{quietly, worth};
use crate::memory::zeros;
use crate::sparse_cholesky::earlier::{Part, Target, subtract_product};
use crate::sparse_cholesky::numbers::{Numbers, Own};
use crate::sparse_cholesky::subtrees::Supernodes;
use crate::sparse_cholesky::tasks::{Ended, Room, Scratch, Sizes};
use crate::sparse_cholesky::{Columns, Diagonal, Node, Pattern, Structure, SymbolicCholesky, inverse, largest, node};

/// L and U by supernodes.
pub struct Blocked<T: Scalar> {
    symbolic: Arc<SymbolicCholesky>,
    /// Row of A for each place, and its column.
    rows: Vec<u32>,
    cols: Vec<u32>,
    /// Place of each row of A, and of each column.
    row_place: Vec<u32>,
    /// Of each supernode its block of L over its rows, the factored diagonal block on top; and Uᵀ of the rows below.
    lower: Vec<T>,
    upper: Vec<T>,
    upper_ptr: Vec<usize>,
    /// Interchanges in the diagonal blocks: row `exchange[k]` of the block comes as number k.
    exchange: Vec<u32>,
    scratch: Scratch<T>,
    growth: f64,
    min_pivot: f64,
}

/// How an elimination ended that met no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With factors.
    Sound,
    /// A block without a pivot, or too much growth.
    Unsound,
    /// The monitor said so.
    Stopped,
}

/// Bytes of the numbers of L and U for a structure, with work space.
pub fn bytes<T: Scalar>(symbolic: &SymbolicCholesky) -> Result<usize> {
    let Structure::Supernodal(s) = symbolic.structure()? else { return Ok(0) };
    let upper: usize = (0..s.n_supernodes()).map(|k| node(s, k)).map(|n| n.below.len() * n.columns()).sum();
    let numbers = (s.len_val() + upper) * size_of::<T>();
    // Five places a row, two for a supernode.
    let places = 20 * symbolic.n() + 8 * s.n_supernodes();
    let work = Scratch::<T>::bytes(s, kernels::<T>(s), 1, symbolic.par());
    Ok(numbers + places + work + symbolic.structure_bytes()?)
}

/// What the kernels for dense blocks ask for.
fn kernels<T: Scalar>(s: &Supernodes) -> StackReq {
    let columns = s.largest.1;
    lu_in_place_scratch::<u32, T>(columns, columns, Par::Seq, faer::prelude::default())
}

impl<T: Scalar> Blocked<T> {
    /// Room for factors of this structure; `None` when memory or indices do not suffice.
    pub fn new(symbolic: Arc<SymbolicCholesky>, ordering: &Ordering) -> Option<Self> {
        let need = bytes::<T>(&symbolic).ok()?;
        bt_formats::memory::ask(need as u64, "the factors of sparse-lu").ok()?;
        let n = symbolic.n();
        let cols = symbolic.order().to_vec();
        let rows: Vec<u32> = cols.iter().map(|&j| ordering.row_of[j as usize]).collect();
        let mut upper_ptr = vec![0];
        let Ok(Structure::Supernodal(s)) = symbolic.structure() else { return None };
        for k in 0..s.n_supernodes() {
            let own = node(s, k);
            upper_ptr.push(upper_ptr[k] + own.below.len() * own.columns());
        }
        Some(Self {
            row_place: inverse(&rows),
            rows,
            cols,
            lower: zeros(s.len_val()).ok()?,
            upper: zeros(upper_ptr[s.n_supernodes()]).ok()?,
            upper_ptr,
            exchange: vec![0; n],
            scratch: Scratch::new(s, kernels::<T>(s), 1, symbolic.par()).ok()?,
            growth: f64::NAN,
            min_pivot: f64::NAN,
            symbolic,
        })
    }

    /// Factors a matrix of this pattern without taking memory, observed between supernodes.
    pub fn factor(&mut self, a: &Csc<T>, norm_max: f64, growth_limit: f64, monitor: &mut dyn Monitor) -> Outcome {
        self.load_upper(a);
        match quietly(|| self.eliminate(a, norm_max, monitor)) {
            Some(Outcome::Sound) if self.growth <= growth_limit => Outcome::Sound,
            Some(Outcome::Stopped) => Outcome::Stopped,
            _ => Outcome::Unsound,
        }
    }

    /// The entries of A right of the diagonal blocks, at their places among zeros.
    fn load_upper(&mut self, a: &Csc<T>) {
        let Self { symbolic, cols, row_place, upper, upper_ptr, .. } = self;
        let Ok(Structure::Supernodal(s)) = symbolic.structure() else { return };
        upper.fill(zero());
        for (l, &j) in cols.iter().enumerate() {
            let own_begin = node(s, s.of_rows[l] as usize).begin;
            for (i, v) in a.col(j as usize).map(|(i, v)| (row_place[i] as usize, v)).filter(|&(i, _)| i < own_begin) {
                let k = s.of_rows[i] as usize;
                let row = node(s, k);
                let at = row.below.binary_search(&(l as u32)).expect("an entry of A");
                upper[upper_ptr[k] + (i - row.begin) * row.below.len() + at] = v;
            }
        }
    }

    #[inline(never)]
    fn eliminate(&mut self, a: &Csc<T>, norm_max: f64, monitor: &mut dyn Monitor) -> Outcome {
        let par = self.symbolic.par();
        let Self { symbolic, cols, row_place, lower, upper, upper_ptr, exchange, scratch, .. } = self;
        let Ok(Structure::Supernodal(s)) = symbolic.structure() else { return Outcome::Unsound };
        let numbers = Numbers { upper, upper_ptr, exchange, ..Numbers::of_lower(lower) };
        let sizes = scratch.eliminate(s, numbers, monitor, &|k, numbers, links, room| {
            let Room { places, product, inverse, memory } = room;
            let own = node(s, k);
            let (width, rows, below) = (own.columns(), own.rows(), own.below.len());
            let (before, Own { block, right, exchange, .. }) = numbers.of(s, k);
            places.enter(&own);
            block.fill(zero());
            for (column, &j) in block.chunks_exact_mut(rows).zip(&cols[own.begin..own.end]) {
                for (i, v) in
                    a.col(j as usize).map(|(i, v)| (row_place[i] as usize, v)).filter(|&(i, _)| i >= own.begin)
                {
                    column[places.of(i)] = v;
                }
            }
            links.visit(k, places, |d| {
                let (l, u) = (before.lower(&d), before.upper(&d));
                let (columns, others) = d.places.split_at(d.inside);
                // N[s∪Rₛ, s] ← N − L[·, d]·U[d, s]
                let factors = (l, (u.subrows(0, d.inside), Conj::No));
                let into = Target { values: &mut *block, rows, skipped: 0 };
                subtract_product(factors, Part::All, (d.places, columns), into, product, par);
                // N[s, Rₛ]ᵀ ← N[s, Rₛ]ᵀ − U[d, Rₛ]ᵀ·L[s, d]ᵀ
                let factors = (u.subrows(d.inside, others.len()), (l.subrows(0, d.inside), Conj::No));
                let into = Target { values: &mut *right, rows: below, skipped: width };
                subtract_product(factors, Part::All, (others, columns), into, product, par);
            });
            if width <= narrow::COLUMNS {
                narrow::eliminate(block, right, exchange);
            } else {
                eliminate(block, right, (exchange, &mut inverse[..width]), product, MemStack::new(memory), par);
            }
            let (mut product, mut pivot) = (0.0f64, f64::INFINITY);
            for c in 0..width {
                let size = |v: &T| v.abs1().to_f64();
                let l = largest(block[c * rows + c + 1..][..rows - c - 1].iter().map(size));
                let u = (c..width).map(|j| &block[j * rows + c]).chain(&right[c * below..][..below]);
                product = product.max_nan(l.max_nan(1.0) * largest(u.map(size)));
                pivot = pivot.min_nan(Scalar::abs(block[c * rows + c]).to_f64());
            }
            Ok(Sizes { product, pivot })
        });
        match sizes {
            Err(Ended::Stopped) => Outcome::Stopped,
            Err(Ended::NoPivot(_)) => Outcome::Unsound,
            Ok(Sizes { product, pivot }) => {
                (self.growth, self.min_pivot) = ((product / norm_max).max_nan(1.0), pivot);
                Outcome::Sound
            }
        }
    }

    /// Rows of A, or its columns for the transpose, in the order of the right-hand sides of [`Blocked::solve`]; and of its solutions.
    pub fn orders(&self, op: Op) -> (&[u32], &[u32]) {
        if op == Op::Identity { (&self.rows, &self.cols) } else { (&self.cols, &self.rows) }
    }

    /// Y ← op(P·A·Q)⁻¹·Y for W interleaved vectors, with as much work space.
    pub fn solve<const W: usize>(&self, op: Op, y: &mut [[T; W]], work: &mut [[T; W]]) {
        match op {
            Op::Identity => self.substitute(y, work),
            Op::Adjoint if !T::IS_REAL => self.substitute_transposed(y, work, Scalar::conj),
            Op::Transpose | Op::Adjoint => self.substitute_transposed(y, work, |v| v),
        }
    }

    /// y ← U⁻¹·L⁻¹·P·y
    fn substitute<const W: usize>(&self, y: &mut [[T; W]], work: &mut [[T; W]]) {
        let Ok(Structure::Supernodal(s)) = self.symbolic.structure() else { return };
        for k in 0..s.n_supernodes() {
            let (own, left, _) = self.blocks(s, k);
            own.exchange(&self.exchange, y, work);
            left.lower_in(&own, Diagonal::One, y, work, |v| v);
        }
        for k in (0..s.n_supernodes()).rev() {
            let (own, left, right) = self.blocks(s, k);
            let z = &mut work[..own.below.len()];
            own.take_below(y, z);
            let own_y = &mut y[own.begin..own.end];
            right.subtract_transposed(z, own_y, |v| v);
            left.upper(own_y);
        }
    }

    /// y ← Pᵀ·(map L)⁻ᵀ·(map U)⁻ᵀ·y; `map` is the identity or the conjugate.
    fn substitute_transposed<const W: usize>(
        &self,
        y: &mut [[T; W]],
        work: &mut [[T; W]],
        map: impl Fn(T) -> T + Copy,
    ) {
        let Ok(Structure::Supernodal(s)) = self.symbolic.structure() else { return };
        for k in 0..s.n_supernodes() {
            let (own, left, right) = self.blocks(s, k);
            let own_y = &mut y[own.begin..own.end];
            left.upper_transposed(own_y, map);
            let z = &mut work[..own.below.len()];
            z.fill([zero(); W]);
            right.subtract(own_y, z, map);
            own.add(z, y);
        }
        for k in (0..s.n_supernodes()).rev() {
            let (own, left, _) = self.blocks(s, k);
            left.lower_transposed_in(&own, Diagonal::One, y, work, map);
            own.exchange_back(&self.exchange, y, work);
        }
    }

    /// A supernode: its block of L with U on top, and Uᵀ of the rows below.
    fn blocks<'a>(&'a self, s: &'a Supernodes, k: usize) -> (Node<'a>, Columns<'a, T>, Columns<'a, T>) {
        let own = node(s, k);
        let (rows, below) = (own.rows(), own.below.len());
        let left = Columns { values: &self.lower[own.values..][..rows * own.columns()], rows };
        let right = Columns { values: &self.upper[self.upper_ptr[k]..][..below * own.columns()], rows: below };
        (own, left, right)
    }

    /// det of P·A·Q as it stands in L·U, and whether the rows and columns of A came to their places by an odd permutation.
    pub fn log_det(&self) -> LogDet<T> {
        let mut det = LogDet::one();
        if let Ok(structure) = self.symbolic.structure() {
            structure.diagonal().for_each(|at| det.multiply(self.lower[at]));
        }
        let Ok(Structure::Supernodal(s)) = self.symbolic.structure() else { return det };
        for k in 0..s.n_supernodes() {
            let own = node(s, k);
            if bt_formats::is_odd(&self.exchange[own.begin..own.end]) {
                det.negate();
            }
        }
        if bt_formats::is_odd(&self.rows) != bt_formats::is_odd(&self.cols) {
            det.negate();
        }
        det
    }

    /// Growth of elements and the smallest pivot.
    pub fn measured(&self) -> (f64, f64) {
        (self.growth, self.min_pivot)
    }

    /// Entries of L and U, bytes of all that is held, flops.
    pub fn counts(&self) -> (usize, usize, f64) {
        let n = self.cols.len();
        let nnz = 2 * self.symbolic.fill() as usize - n;
        (nnz, bytes::<T>(&self.symbolic).unwrap_or(0), self.symbolic.lu_flops())
    }
}

/// A block of more columns: P·N[s, s] = L·U, then U[s, Rₛ] ← L⁻¹·P·N[s, Rₛ] and L[Rₛ, s] ← N[Rₛ, s]·U⁻¹.
fn eliminate<T: Scalar>(
    block: &mut [T],
    right: &mut [T],
    (p, q): (&mut [u32], &mut [u32]),
    work: &mut [T],
    stack: &mut MemStack,
    par: Par,
) {
    let width = p.len();
    let (rows, below) = (block.len() / width, right.len() / width);
    let par = worth(par, 2.0 * (rows * width * width) as f64);
    let block = MatMut::from_column_major_slice_mut(block, rows, width);
    let mut right = MatMut::from_column_major_slice_mut(right, below, width);
    let (mut top, mut bottom) = block.split_at_row_mut(width);
    lu_in_place(top.as_mut(), p, q, par, stack, faer::prelude::default());
    let mut t = MatMut::from_column_major_slice_mut(&mut work[..below * width], below, width);
    t.copy_from(right.as_ref());
    for (c, &from) in p.iter().enumerate() {
        right.as_mut().col_mut(c).copy_from(t.as_ref().col(from as usize));
    }
    let top = top.as_ref();
    triangular::solve_unit_lower_triangular_in_place(top, right.as_mut().transpose_mut(), par);
    triangular::solve_lower_triangular_in_place(top.transpose(), bottom.as_mut().transpose_mut(), par);
}

/// The structure of L + U with the preferred rows on the diagonal, stored zeros included.
pub fn symbolic<T: Copy>(a: &Csc<T>, ordering: &Ordering) -> Result<SymbolicCholesky> {
    let place = inverse(&ordering.row_of);
    let mut pattern = Pattern { ptr: vec![0], idx: Vec::with_capacity(a.row_idx.len()) };
    for j in 0..a.n() {
        let start = pattern.idx.len();
        pattern.idx.extend(a.col(j).map(|(i, _)| place[i]));
        pattern.idx[start..].sort_unstable();
        pattern.ptr.push(pattern.idx.len() as u32);
    }
    let sum = pattern.of_sum();
    SymbolicCholesky::in_order(sum, None, &ordering.col_order, 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse_lu::ordering;
    use bt_formats::{Csr, Progress};

    /// A full matrix of a symmetric pattern on a ring with chords, dominant unless `weak`.
    fn ring(n: usize, weak: f64) -> Csc<f64> {
        let mut a = Csc { col_ptr: vec![0], row_idx: vec![], values: vec![] };
        for j in 0..n {
            for i in 0..n {
                let d = i.abs_diff(j);
                let v = match d.min(n - d) {
                    0 => 4.0 * weak,
                    1 => 1.0 + ((3 * i + 5 * j) % 7) as f64 / 7.0,
                    5 => -1.0 + ((i + 2 * j) % 3) as f64 / 4.0,
                    _ => continue,
                };
                a.row_idx.push(i as u32);
                a.values.push(v);
            }
            a.col_ptr.push(a.row_idx.len() as u32);
        }
        a
    }

    fn residual(a: &Csc<f64>, op: Op, x: &[f64], b: &[f64]) -> f64 {
        let mut r = b.to_vec();
        for j in 0..a.n() {
            a.col(j).for_each(|(i, v)| if op == Op::Identity { r[i] -= v * x[j] } else { r[j] -= v * x[i] });
        }
        r.iter().fold(0.0, |m, r| m.max(r.abs()))
    }

    /// The transpose, which is ordered alike.
    fn by_rows(a: &Csc<f64>) -> Csr<f64> {
        Csr::new(a.n(), a.n(), a.col_ptr.clone(), a.row_idx.clone(), a.values.clone()).unwrap()
    }

    #[test]
    fn solves_with_interchanges_inside_blocks() {
        for (n, weak) in [(11, 1.0), (40, 1.0), (40, 0.3), (90, 0.05)] {
            let a = ring(n, weak);
            let order = ordering::order(&a, &by_rows(&a), &(0..n as u32).collect::<Vec<_>>()).unwrap().0;
            let mut lu = Blocked::new(Arc::new(symbolic(&a, &order).unwrap()), &order).unwrap();
            assert_eq!(lu.factor(&a, 2.0, 1e9, &mut ()), Outcome::Sound, "{n} {weak}");
            let growth = lu.measured().0;
            for op in [Op::Identity, Op::Transpose, Op::Adjoint] {
                let b: Vec<f64> = (0..3 * n).map(|i| ((i * 31) % 17) as f64 - 8.0).collect();
                // Places of the permuted system, three vectors side by side.
                let (from, to) = lu.orders(op);
                let mut y: Vec<[f64; 3]> = from.iter().map(|&i| [0, 1, 2].map(|c| b[c * n + i as usize])).collect();
                lu.solve(op, &mut y, &mut vec![[0.0; 3]; n]);
                let mut x = vec![0.0; 3 * n];
                to.iter().zip(&y).for_each(|(&i, y)| (0..3).for_each(|c| x[c * n + i as usize] = y[c]));
                for (x, b) in x.chunks(n).zip(b.chunks(n)) {
                    let size = x.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
                    let error = residual(&a, op, x, b);
                    assert!(error <= 1e-14 * n as f64 * growth * size, "{n} {weak} {op:?}: {error:e}, growth {growth}");
                }
            }
        }
    }

    #[test]
    fn the_determinant_is_that_of_elimination_by_columns() {
        let a = ring(30, 0.2);
        let order = ordering::order(&a, &by_rows(&a), &(0..30).collect::<Vec<_>>()).unwrap().0;
        let mut lu = Blocked::new(Arc::new(symbolic(&a, &order).unwrap()), &order).unwrap();
        assert_eq!(lu.factor(&a, 2.0, 1e9, &mut ()), Outcome::Sound);
        let mut columns = super::super::Simplicial::default();
        columns.factor(&a, &order.col_order, &order.row_of, 0.1, (f64::INFINITY, None), &mut ()).unwrap();
        let mut det = LogDet::one();
        columns.pivots.iter().for_each(|&p| det.multiply(p));
        if bt_formats::is_odd(&columns.row_order) != bt_formats::is_odd(&order.col_order) {
            det.negate();
        }
        let found = lu.log_det();
        assert_eq!(found.sign, det.sign);
        assert!((found.log_abs - det.log_abs).abs() < 1e-10, "{found:?} {det:?}");
    }

    #[test]
    fn blocks_without_pivots_are_unsound_and_monitors_stop() {
        let mut a = ring(20, 1.0);
        let order = ordering::order(&a, &by_rows(&a), &(0..20).collect::<Vec<_>>()).unwrap().0;
        let mut lu = Blocked::new(Arc::new(symbolic(&a, &order).unwrap()), &order).unwrap();
        let good = a.clone();
        a.values.fill(0.0);
        assert_eq!(lu.factor(&a, 1.0, 1e9, &mut ()), Outcome::Unsound);
        assert_eq!(lu.factor(&good, 2.0, 1e9, &mut ()), Outcome::Sound);
        assert_eq!(lu.factor(&good, 2.0, 0.5, &mut ()), Outcome::Unsound);
        let mut stop = |_: Progress| std::ops::ControlFlow::Break(());
        assert_eq!(lu.factor(&good, 2.0, 1e9, &mut stop), Outcome::Stopped);
    }
}
