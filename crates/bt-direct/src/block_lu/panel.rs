//! One block: loading it, and eliminating it with its two couplings, by own loops or by faer's kernels.
//!
//! The own loops take eight columns at a time: these are eliminated column by column, then all others receive the
//! eight exchanges, a triangular solve in eight rows, and one product of depth eight whose result stays in registers.

use bt_formats::{BlockTridiagonal, RealScalar, Scalar, one, zero};
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_unit_lower_triangular_in_place};
use faer::{Accum, MatMut, MatRef, Par};

use super::job::{Dense, Done, Engine, Front};
use super::order::Order;
use crate::band_lu::kernels::{LANES, axpy_minus, index_of_max, max_lanes, mul_add, sum_and_max};
use crate::lines;
use crate::pivot::Pivot;

/// Blocks with more rows than this (and the next block too) are faster in faer's kernels than in own loops.
const BLOCKED_FROM: usize = 96;

/// Columns eliminated together, and columns updated together.
pub(super) const TILE: usize = 8;

/// Work space of faer's LU of a block of `k` rows.
pub(super) fn scratch<T: Scalar>(k: usize) -> StackReq {
    lu_in_place_scratch::<u32, T>(k, k, Par::Seq, faer::prelude::default())
}

/// Dⱼ and the coupling below or above it into the panel, the one beside it into G.
fn scatter<T: Scalar>(a: &BlockTridiagonal<T>, order: &Order, j: usize, front: &mut Front<'_, T>) {
    let (k, next) = (front.k, front.next);
    let ld = k + next;
    let panel = MatMut::from_column_major_slice_mut(&mut *front.panel, ld, k);
    let (own, below) = panel.split_at_row_mut(k);
    a.copy_diagonal_block(j, own);
    let Some(t) = order.toward(j) else { return };
    let beside = MatMut::from_column_major_slice_mut(&mut *front.g, k, next);
    if t > j {
        a.copy_lower_block(t, below);
        a.copy_upper_block(j, beside);
    } else {
        a.copy_upper_block(t, below);
        a.copy_lower_block(j, beside);
    }
}

/// Loads a block. Returns the largest modulus of what was loaded, and the largest column sum of |A| of the block with the
/// `incoming` ones added; the sums of the columns of G go to `outgoing`. Something not finite makes the second number so.
pub(super) fn load_block<T: Scalar, E: Engine<T>>(
    a: &BlockTridiagonal<T>,
    order: &Order,
    j: usize,
    front: &mut Front<'_, T>,
    incoming: &[&[f64]],
    outgoing: &mut [f64],
) -> (f64, f64) {
    if let Some(dense) = Dense::of(a, order, j) {
        return E::load(front, &dense, incoming, outgoing);
    }
    scatter(a, order, j, front);
    E::norms(front, incoming, outgoing)
}

/// Columns of `k` contiguous values to the head of columns of `ld`.
#[inline(always)]
fn copy_columns<T: Scalar>(from: &[T], k: usize, to: &mut [T], ld: usize) {
    for (from, to) in from.chunks_exact(k).zip(to.chunks_mut(ld)) {
        to[..k].copy_from_slice(from);
    }
}

/// Which kernels factor the blocks. The results agree to rounding. Tests alone choose them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernels {
    /// Whole blocks or tiles of them in registers for dense blocks of equal size up to 256, else loops for small blocks and faer for
    /// large ones.
    Auto,
    /// Plain column loops.
    #[cfg(any(test, feature = "forced-kernels"))]
    Loops,
    /// faer's blocked kernels.
    #[cfg(any(test, feature = "forced-kernels"))]
    Blocked,
}

fn blocked(kernels: Kernels, k: usize, next: usize) -> bool {
    match kernels {
        Kernels::Auto => k >= BLOCKED_FROM || next >= BLOCKED_FROM,
        #[cfg(any(test, feature = "forced-kernels"))]
        Kernels::Loops => false,
        #[cfg(any(test, feature = "forced-kernels"))]
        Kernels::Blocked => true,
    }
}

/// Plain loops over arrays, for every scalar.
pub(super) struct Plain;

impl<T: Scalar> Engine<T> for Plain {
    fn load(front: &mut Front<'_, T>, from: &Dense<'_, T>, incoming: &[&[f64]], outgoing: &mut [f64]) -> (f64, f64) {
        let ld = front.k + front.next;
        copy_columns(from.own, front.k, front.panel, ld);
        if front.next > 0 {
            copy_columns(from.below, front.next, &mut front.panel[front.k..], ld);
            front.g.copy_from_slice(from.beside);
        }
        Self::norms(front, incoming, outgoing)
    }
    fn norms(front: &Front<'_, T>, incoming: &[&[f64]], outgoing: &mut [f64]) -> (f64, f64) {
        bt_simd::dispatch_short(Norms { front, incoming, outgoing })
    }
    fn subtract(front: &mut Front<'_, T>, done: &Done<'_, T>) {
        bt_simd::dispatch_short(Subtract { front, done });
    }
    fn eliminate(front: &mut Front<'_, T>) -> Option<usize> {
        bt_simd::dispatch_short(Eliminate(front))
    }
    fn measure(front: &Front<'_, T>) -> (f64, f64) {
        bt_simd::dispatch_short(Measure(front))
    }
}

struct Norms<'f, 'a, T> {
    front: &'f Front<'a, T>,
    incoming: &'f [&'f [f64]],
    outgoing: &'f mut [f64],
}

impl<T: Scalar> pulp::WithSimd for Norms<'_, '_, T> {
    type Output = (f64, f64);
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> (f64, f64) {
        let (k, ld) = (self.front.k, self.front.k + self.front.next);
        let mut lanes = [zero::<T::Real>(); LANES];
        let mut norm = 0.0f64;
        for (c, column) in self.front.panel.chunks_exact(ld).enumerate() {
            let mut sum = sum_and_max(column, &mut lanes).to_f64();
            for sums in self.incoming {
                sum += sums[c];
            }
            norm = norm.max_nan(sum);
        }
        for (column, sum) in self.front.g.chunks_exact(k).zip(self.outgoing) {
            *sum = sum_and_max(column, &mut lanes).to_f64();
        }
        (largest(&lanes), norm)
    }
}

#[inline(always)]
fn largest<R: RealScalar>(lanes: &[R; LANES]) -> f64 {
    let mut max = 0.0f64;
    for lane in lanes {
        max = max.max_nan(lane.to_f64());
    }
    max
}

struct Measure<'f, 'a, T>(&'f Front<'a, T>);

impl<T: Scalar> pulp::WithSimd for Measure<'_, '_, T> {
    type Output = (f64, f64);
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> (f64, f64) {
        let front = self.0;
        let (k, ld) = (front.k, front.k + front.next);
        let [mut u, mut h, mut g] = [[zero::<T::Real>(); LANES]; 3];
        let mut min_pivot = f64::INFINITY;
        for (c, column) in front.panel.chunks_exact(ld).enumerate() {
            max_lanes(&column[..=c], &mut u);
            max_lanes(&column[k..], &mut h);
            min_pivot = min_pivot.min_nan(column[c].abs().to_f64());
        }
        max_lanes(front.g, &mut g);
        (largest(&u).max_nan(largest(&h) * largest(&g)), min_pivot)
    }
}

/// D ← D − H·G, as work for a SIMD instruction set.
struct Subtract<'f, 'a, 'd, T> {
    front: &'f mut Front<'a, T>,
    done: &'f Done<'d, T>,
}

impl<T: Scalar> pulp::WithSimd for Subtract<'_, '_, '_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, s: S) {
        let Self { front, done } = self;
        let (k, last) = (done.k, done.last);
        let (ldy, ldl, l, x) = (front.k + front.next, last + k, &done.panel[last..], done.g);
        lines::apart(s, Update { y: front.panel, ldy, rows: k, width: k, l, ldl, x, ldx: last, depth: last });
    }
}

/// The elimination of one front, as work for a SIMD instruction set.
struct Eliminate<'f, 'a, T>(&'f mut Front<'a, T>);

impl<T: Scalar> pulp::WithSimd for Eliminate<'_, '_, T> {
    type Output = Option<usize>;
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, s: S) -> Option<usize> {
        if S::IS_SCALAR || cfg!(target_family = "wasm") {
            self.0.eliminate_loops::<false, S>(s)
        } else {
            self.0.eliminate_loops::<true, S>(s)
        }
    }
}

/// Y ← Y − L·X for `rows` rows, `width` columns and inner dimension `depth`, all column-major.
///
/// X is read element by element and L by vectors of rows, so that the loops over columns are not taken for vectors.
struct Update<'a, T> {
    y: &'a mut [T],
    ldy: usize,
    rows: usize,
    width: usize,
    l: &'a [T],
    ldl: usize,
    x: &'a [T],
    ldx: usize,
    depth: usize,
}

impl<T: Scalar> pulp::WithSimd for Update<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        if S::IS_SCALAR || cfg!(target_family = "wasm") { self.run::<false>() } else { self.run::<true>() }
    }
}

impl<T: Scalar> Update<'_, T> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { y, ldy, rows, width, l, ldl, x, ldx, depth } = self;
        let mut c = 0;
        macro_rules! columns {
            ($($columns:literal)*) => {$(
                while width - c >= $columns {
                    let x: [&[T]; $columns] = std::array::from_fn(|i| &x[(c + i) * ldx..(c + i) * ldx + depth]);
                    update_columns::<T, $columns, FUSED>(&mut y[c * ldy..], ldy, rows, l, ldl, x);
                    c += $columns;
                }
            )*};
        }
        columns!(8 4 1);
    }
}

#[inline(always)]
fn update_columns<T: Scalar, const C: usize, const FUSED: bool>(
    y: &mut [T],
    ldy: usize,
    rows: usize,
    l: &[T],
    ldl: usize,
    x: [&[T]; C],
) {
    let mut r = 0;
    macro_rules! tiles {
        ($($vectors:literal)*) => {$(
            while r + $vectors * LANES <= rows {
                update_tile::<T, $vectors, C, FUSED>(&mut y[r..], ldy, &l[r..], ldl, x);
                r += $vectors * LANES;
            }
        )*};
    }
    tiles!(3 2 1);
    for r in r..rows {
        for c in 0..C {
            let mut sum = y[c * ldy + r];
            for (d, &x) in x[c].iter().enumerate() {
                sum = mul_add::<T, FUSED>(-x, l[d * ldl + r], sum);
            }
            y[c * ldy + r] = sum;
        }
    }
}

/// Y ← Y − L·X for V vectors of rows and C columns, which stay in registers.
#[inline(always)]
fn update_tile<T: Scalar, const V: usize, const C: usize, const FUSED: bool>(
    y: &mut [T],
    ldy: usize,
    l: &[T],
    ldl: usize,
    x: [&[T]; C],
) {
    let depth = x[0].len();
    let x = x.map(|x| &x[..depth]);
    let mut acc = [[[zero::<T>(); LANES]; V]; C];
    for c in 0..C {
        acc[c].copy_from_slice(&y[c * ldy..c * ldy + V * LANES].as_chunks().0[..V]);
    }
    for d in 0..depth {
        let mut column = [[zero::<T>(); LANES]; V];
        column.copy_from_slice(&l[d * ldl..d * ldl + V * LANES].as_chunks().0[..V]);
        for c in 0..C {
            let minus_x = -x[c][d];
            for v in 0..V {
                for i in 0..LANES {
                    acc[c][v][i] = mul_add::<T, FUSED>(minus_x, column[v][i], acc[c][v][i]);
                }
            }
        }
    }
    for c in 0..C {
        y[c * ldy..c * ldy + V * LANES].as_chunks_mut().0[..V].copy_from_slice(&acc[c]);
    }
}

impl<T: Scalar> Front<'_, T> {
    /// D ← D − H·G.
    pub(super) fn subtract<E: Engine<T>>(&mut self, done: &Done<'_, T>, kernels: Kernels) {
        let (k, last) = (done.k, done.last);
        if blocked(kernels, last, k) {
            let h = MatRef::from_column_major_slice(done.panel, last + k, last).subrows(last, k);
            let mut d = MatMut::from_column_major_slice_mut(&mut *self.panel, k + self.next, k).subrows_mut(0, k);
            let g = MatRef::from_column_major_slice(done.g, last, k);
            matmul(d.as_mut(), Accum::Add, h, g, -one::<T>(), Par::Seq);
        } else {
            E::subtract(self, done);
        }
    }

    /// P·D̃ = L̃·Ũ, H ← L·Ũ⁻¹, G ← L̃⁻¹·P·U; the row without a pivot if there is one.
    pub(super) fn eliminate<E: Engine<T>>(
        &mut self,
        kernels: Kernels,
        permutation: &mut [u32],
        memory: &mut MemBuffer,
    ) -> Option<usize> {
        if blocked(kernels, self.k, self.next) {
            self.eliminate_blocked(permutation, memory)
        } else {
            E::eliminate(self)
        }
    }

    #[inline(always)]
    fn eliminate_loops<const FUSED: bool, S: pulp::Simd>(&mut self, s: S) -> Option<usize> {
        let (k, ld) = (self.k, self.k + self.next);
        let mut first = 0;
        while first < k {
            let end = (first + TILE).min(k);
            if let Some(row) = self.eliminate_columns::<FUSED>(first, end) {
                return Some(row);
            }
            // The exchanges in the columns to the left; those to the right take them with their update.
            let (left, rest) = self.panel.split_at_mut(first * ld);
            let pivots = &self.pivots[first..end];
            for column in left.chunks_exact_mut(ld) {
                exchange(column, first, pivots);
            }
            let (tile, right) = rest.split_at_mut((end - first) * ld);
            for (right, rows) in [(right, ld), (&mut *self.g, k)] {
                update_right::<T, FUSED, S>(s, tile, first, end, ld, pivots, right, rows, rows);
            }
            first = end;
        }
        None
    }

    /// Columns `first..end` by one after the other, below row `first`.
    #[inline(always)]
    fn eliminate_columns<const FUSED: bool>(&mut self, first: usize, end: usize) -> Option<usize> {
        let (k, ld) = (self.k, self.k + self.next);
        for c in first..end {
            let (before, rest) = self.panel.split_at_mut(c * ld);
            let (column, rest) = rest.split_at_mut(ld);
            let p = c + index_of_max(&column[c..k]);
            self.pivots[c] = p as u32;
            if !usable(column[p]) {
                return Some(c);
            }
            column.swap(c, p);
            let (pivot, below) = column[c..].split_first_mut().expect("a pivot");
            divide(below, *pivot);
            for other in rest[..(end - c - 1) * ld].chunks_exact_mut(ld) {
                other.swap(c, p);
                axpy_minus::<_, FUSED>(other[c], &column[c + 1..], &mut other[c + 1..]);
            }
            if p != c {
                for left in before[first * ld..].chunks_exact_mut(ld) {
                    left.swap(c, p);
                }
            }
        }
        None
    }

    /// The same with faer's kernels.
    fn eliminate_blocked(&mut self, permutation: &mut [u32], memory: &mut MemBuffer) -> Option<usize> {
        let (k, next) = (self.k, self.next);
        let (forward, rest) = permutation.split_at_mut(k);
        let (inverse, rest) = rest.split_at_mut(k);
        let (mut d, mut h) = MatMut::from_column_major_slice_mut(&mut *self.panel, k + next, k).split_at_row_mut(k);
        let stack = MemStack::new(memory);
        lu_in_place(d.as_mut(), forward, inverse, Par::Seq, stack, faer::prelude::default());
        exchanges(forward, rest, self.pivots);
        // faer goes on through a zero pivot; what follows it is not finite, what precedes it is sound.
        if let Some(row) = (0..k).find(|&r| !usable(d[(r, r)])) {
            return Some(row);
        }
        // Hᵀ ← Ũ⁻ᵀ·Lᵀ
        solve_lower_triangular_in_place(d.as_ref().transpose(), h.as_mut().transpose_mut(), Par::Seq);
        for g in self.g.chunks_exact_mut(k) {
            exchange(g, 0, self.pivots);
        }
        let g = MatMut::from_column_major_slice_mut(&mut *self.g, k, next);
        solve_unit_lower_triangular_in_place(d.as_ref(), g, Par::Seq);
        None
    }
}

/// The columns of `right`, `ldr` apart with `rows` rows: exchanges, triangular solve in the rows of the tile, product
/// below them.
#[inline(always)]
fn update_right<T: Scalar, const FUSED: bool, S: pulp::Simd>(
    s: S,
    tile: &[T],
    first: usize,
    end: usize,
    ld: usize,
    pivots: &[u32],
    right: &mut [T],
    ldr: usize,
    rows: usize,
) {
    let depth = end - first;
    let mut x = [[zero::<T>(); TILE]; TILE];
    for group in right.chunks_mut(TILE * ldr) {
        let width = group.len() / ldr;
        for (i, column) in group.chunks_exact_mut(ldr).enumerate() {
            exchange(column, first, pivots);
            x[i][..depth].copy_from_slice(&column[first..end]);
        }
        // X ← L̃⁻¹·X in the rows of the tile
        for d in 0..depth {
            let mut l = [zero::<T>(); TILE];
            l[d + 1..depth].copy_from_slice(&tile[d * ld + first + d + 1..d * ld + end]);
            for x in &mut x {
                let above = -x[d];
                for r in 0..TILE {
                    x[r] = mul_add::<T, FUSED>(above, l[r], x[r]);
                }
            }
        }
        for (i, column) in group.chunks_exact_mut(ldr).enumerate() {
            column[first..end].copy_from_slice(&x[i][..depth]);
        }
        if end < rows {
            let x = x.as_flattened();
            let (y, l, ldx) = (&mut group[end..], &tile[end..], TILE);
            lines::apart(s, Update { y, ldy: ldr, rows: rows - end, width, l, ldl: ld, x, ldx, depth });
        }
    }
}

/// Exchanges row `first` + r with row `pivots[r]` for one r after the other.
#[inline(always)]
pub(super) fn exchange<T: Scalar>(column: &mut [T], first: usize, pivots: &[u32]) {
    for (r, &p) in pivots.iter().enumerate() {
        column.swap(first + r, p as usize);
    }
}

/// v ← v/p, by the reciprocal where that is as accurate: real p whose reciprocal is normal, with room to spare.
#[inline(always)]
fn divide<T: Scalar>(values: &mut [T], p: T) {
    let (size, tiny) = (p.abs1(), T::Real::MIN_POSITIVE * T::Real::from_f64(16.0));
    if T::IS_REAL && size >= tiny && size <= T::Real::from_f64(1.0) / tiny {
        let reciprocal = T::from_real(T::Real::from_f64(1.0) / p.re());
        for v in values {
            *v *= reciprocal;
        }
    } else {
        let pivot = Pivot::new(p);
        for v in values {
            *v = pivot.divide(*v);
        }
    }
}

/// Whether no row is exchanged.
#[inline(always)]
pub(super) fn in_order(first: usize, pivots: &[u32]) -> bool {
    pivots.iter().enumerate().all(|(r, &p)| first + r == p as usize)
}

/// A pivot that can be divided by.
#[inline(always)]
pub(crate) fn usable<T: Scalar>(p: T) -> bool {
    let size = p.abs1();
    size > T::Real::default() && Scalar::is_finite(p)
}

/// The row exchanges, one a column, that make the permutation `forward` (row i of P·D is row `forward[i]` of D).
pub(crate) fn exchanges(forward: &[u32], work: &mut [u32], pivots: &mut [u32]) {
    let k = forward.len();
    // `at[r]`: where row r stands now; `row[i]`: which row stands at i.
    let (at, row) = work.split_at_mut(k);
    for i in 0..k {
        (at[i], row[i]) = (i as u32, i as u32);
    }
    for i in 0..pivots.len() {
        let p = at[forward[i] as usize];
        pivots[i] = p;
        let moved = row[i];
        row[p as usize] = moved;
        at[moved as usize] = p;
        row[i] = forward[i];
    }
}
