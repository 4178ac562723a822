//! Kernels of the elimination without pivoting: the LU of a block of up to 32 rows and the two triangular solves with a
//! block of up to 64.
//!
//! A tile of V registers of rows and C columns stays in registers while all earlier columns (or rows) are subtracted
//! from it, so that a triangular solve runs at the speed of a matrix product; the triangle is packed once, in the order
//! it is read. Registers are `pulp`'s, dispatched at run time; sizes are multiples of [`lanes`]. Every element is summed
//! over increasing k: its bits depend neither on the tile nor on the strip it stands in.

use std::sync::atomic::{AtomicU64, Ordering};

use bt_formats::{RealScalar, Scalar, c32, c64, one, zero};
use faer::{MatMut, MatRef};
use pulp::Simd;

use crate::pivot::Pivot;

/// Largest triangle of the solves.
pub(crate) const LEAF: usize = 64;
/// Largest block of [`eliminate`].
pub(crate) const SMALL: usize = 32;
/// Rows of a packed triangle of [`LEAF`] columns in strips of 4: 4·(1 + 2 + … + 16). Strips of 8 need fewer.
const PACKED: usize = 2 * (LEAF / 4) * (LEAF / 4 + 1);

/// What sizes are multiples of: the widest register, and the columns of a tile.
pub(crate) const fn lanes<T>() -> usize {
    let widest = 64 / size_of::<T>();
    if widest > 8 { widest } else { 8 }
}

/// Largest |re| + |im| of every column of L and of every row of U, as they are made. Non-negative numbers are
/// ordered as their bits are and NaN comes last, so that a maximum of bits is one of values in which NaN sticks.
#[derive(Debug, Default)]
pub(crate) struct Maxima {
    l: Vec<AtomicU64>,
    u: Vec<AtomicU64>,
}

impl Maxima {
    /// For a matrix of `n` columns.
    pub(crate) fn new(n: usize) -> Self {
        let zeros = || (0..n).map(|_| AtomicU64::new(0)).collect();
        Self { l: zeros(), u: zeros() }
    }

    /// Columns of the matrix.
    pub(crate) fn n(&self) -> usize {
        self.u.len()
    }

    pub(crate) fn reset(&mut self) {
        self.l.iter_mut().chain(&mut self.u).for_each(|m| *m.get_mut() = 0);
    }

    fn note<R: RealScalar>(list: &[AtomicU64], column: usize, value: R) {
        list[column].fetch_max(value.to_f64().abs().to_bits(), Ordering::Relaxed);
    }

    /// max(|U|, |L|·|U|) and the column where it is: what rounding errors are relative to. A NaN of L
    /// or U need not show here: it reaches a later pivot.
    pub(crate) fn growth(&self) -> (f64, usize) {
        let value = |m: &AtomicU64| f64::from_bits(m.load(Ordering::Relaxed));
        let mut worst = (0.0f64, 0);
        for (k, (l, u)) in self.l.iter().zip(&self.u).enumerate() {
            let size = value(l).max_nan(1.0) * value(u);
            if size.is_nan() || size > worst.0 {
                worst = (size, k);
            }
            if size.is_nan() {
                break;
            }
        }
        worst
    }
}

/// The scalars by name: what `pulp` calls their registers.
pub(crate) trait Element: Scalar {
    /// A register of an instruction set.
    type V<S: Simd>: Copy;
    fn splat<S: Simd>(simd: S, value: Self) -> Self::V<S>;
    /// a·b + c, fused where the instruction set can.
    fn mul_add<S: Simd>(simd: S, a: Self::V<S>, b: Self::V<S>, c: Self::V<S>) -> Self::V<S>;
    fn times<S: Simd>(simd: S, a: Self::V<S>, b: Self::V<S>) -> Self::V<S>;
    /// maxima ← max(maxima, |re x| + |im x|), lane by lane; NaN may be passed over.
    fn enlarge<S: Simd>(simd: S, maxima: &mut [Self; 16], x: Self::V<S>);
    fn registers<S: Simd>(slice: &[Self]) -> &[Self::V<S>];
    fn registers_mut<S: Simd>(slice: &mut [Self]) -> &mut [Self::V<S>];
}

macro_rules! element {
    ($t:ty, $v:ident, $splat:ident, $mul_add:ident, $mul:ident, $as_simd:ident, $as_mut_simd:ident, $enlarge:item) => {
        impl Element for $t {
            type V<S: Simd> = S::$v;
            #[inline(always)]
            fn splat<S: Simd>(simd: S, value: Self) -> S::$v {
                simd.$splat(value)
            }
            #[inline(always)]
            fn mul_add<S: Simd>(simd: S, a: S::$v, b: S::$v, c: S::$v) -> S::$v {
                simd.$mul_add(a, b, c)
            }
            #[inline(always)]
            fn times<S: Simd>(simd: S, a: S::$v, b: S::$v) -> S::$v {
                simd.$mul(a, b)
            }
            #[inline(always)]
            $enlarge
            #[inline(always)]
            fn registers<S: Simd>(slice: &[Self]) -> &[S::$v] {
                S::$as_simd(slice).0
            }
            #[inline(always)]
            fn registers_mut<S: Simd>(slice: &mut [Self]) -> &mut [S::$v] {
                S::$as_mut_simd(slice).0
            }
        }
    };
}

element!(
    f32,
    f32s,
    splat_f32s,
    mul_add_e_f32s,
    mul_f32s,
    as_simd_f32s,
    as_mut_simd_f32s,
    fn enlarge<S: Simd>(simd: S, maxima: &mut [Self; 16], x: S::f32s) {
        let m = &mut S::as_mut_simd_f32s(maxima).0[0];
        *m = simd.max_f32s(simd.abs_f32s(x), *m);
    }
);
element!(
    f64,
    f64s,
    splat_f64s,
    mul_add_e_f64s,
    mul_f64s,
    as_simd_f64s,
    as_mut_simd_f64s,
    fn enlarge<S: Simd>(simd: S, maxima: &mut [Self; 16], x: S::f64s) {
        let m = &mut S::as_mut_simd_f64s(maxima).0[0];
        *m = simd.max_f64s(simd.abs_f64s(x), *m);
    }
);
element!(
    c32,
    c32s,
    splat_c32s,
    mul_add_e_c32s,
    mul_c32s,
    as_simd_c32s,
    as_mut_simd_c32s,
    fn enlarge<S: Simd>(_: S, maxima: &mut [Self; 16], x: S::c32s) {
        let mut values = [zero::<Self>(); 16];
        S::as_mut_simd_c32s(&mut values).0[0] = x;
        for (m, v) in maxima.iter_mut().zip(values) {
            m.re = if v.abs1() > m.re { v.abs1() } else { m.re };
        }
    }
);
element!(
    c64,
    c64s,
    splat_c64s,
    mul_add_e_c64s,
    mul_c64s,
    as_simd_c64s,
    as_mut_simd_c64s,
    fn enlarge<S: Simd>(_: S, maxima: &mut [Self; 16], x: S::c64s) {
        let mut values = [zero::<Self>(); 16];
        S::as_mut_simd_c64s(&mut values).0[0] = x;
        for (m, v) in maxima.iter_mut().zip(values) {
            m.re = if v.abs1() > m.re { v.abs1() } else { m.re };
        }
    }
);

/// Column j of a matrix whose columns are contiguous.
#[inline(always)]
fn column<'a, T: Scalar>(x: &'a mut MatMut<'_, T>, j: usize) -> &'a mut [T] {
    x.as_mut().col_mut(j).try_as_col_major_mut().expect("contiguous columns").as_slice_mut()
}

#[inline(always)]
fn column_ref<T: Scalar>(x: MatRef<'_, T>, j: usize) -> &[T] {
    x.col(j).try_as_col_major().expect("contiguous columns").as_slice()
}

/// A tile of V registers and C columns, as it stands in a matrix.
#[inline(always)]
fn load<E: Element, S: Simd, const V: usize, const C: usize>(
    simd: S,
    x: &mut MatMut<'_, E>,
    top: usize,
    left: usize,
) -> [[E::V<S>; V]; C] {
    let mut tile = [[E::splat(simd, zero()); V]; C];
    let height = V * size_of::<E::V<S>>() / size_of::<E>();
    for c in 0..C {
        tile[c].copy_from_slice(E::registers::<S>(&column(x, left + c)[top..top + height]));
    }
    tile
}

#[inline(always)]
fn store<E: Element, S: Simd, const V: usize, const C: usize>(
    x: &mut MatMut<'_, E>,
    top: usize,
    left: usize,
    tile: &[[E::V<S>; V]; C],
) {
    let height = V * size_of::<E::V<S>>() / size_of::<E>();
    for c in 0..C {
        E::registers_mut::<S>(&mut column(x, left + c)[top..top + height]).copy_from_slice(&tile[c]);
    }
}

/// How tiles fit the registers of an instruction set.
macro_rules! dispatched {
    ($work:ident) => {
        impl<E: Element> pulp::WithSimd for $work<'_, E> {
            type Output = ();
            #[inline(always)]
            fn with_simd<S: Simd>(self, simd: S) {
                if S::REGISTER_COUNT >= 32 {
                    self.run::<S, 3, 8>(simd);
                } else {
                    self.run::<S, 2, 4>(simd);
                }
            }
        }
    };
}

/// X ← L⁻¹·X with the unit lower triangle of `l`; `first` is the column of the whole matrix that `l` starts at.
pub(crate) fn solve_unit_lower<E: Element>(l: MatRef<'_, E>, x: MatMut<'_, E>, first: usize, maxima: &Maxima) {
    bt_simd::dispatch(UnitLower { l, x, first, maxima });
}

struct UnitLower<'a, E: Element> {
    l: MatRef<'a, E>,
    x: MatMut<'a, E>,
    first: usize,
    maxima: &'a Maxima,
}

dispatched!(UnitLower);

impl<E: Element> UnitLower<'_, E> {
    #[inline(always)]
    fn run<S: Simd, const V: usize, const C: usize>(mut self, simd: S) {
        let n = self.l.nrows();
        let lane = size_of::<E::V<S>>() / size_of::<E>();
        assert!(n <= LEAF && n.is_multiple_of(lane) && self.x.ncols().is_multiple_of(C), "sizes of a solve");
        // Tiles of V registers of rows, each with its columns up to the diagonal; zeros on and above the diagonal.
        let mut packed = [zero::<E>(); LEAF * LEAF];
        let mut at = 0;
        for top in (0..n).step_by(V * lane) {
            let height = (V * lane).min(n - top);
            for k in 0..top + height {
                let from = (k + 1).max(top);
                if from < top + height {
                    let source = &column_ref(self.l, k)[from..top + height];
                    packed[at + from - top..at + height].copy_from_slice(source);
                }
                at += height;
            }
        }
        let mut done = [[zero::<E>(); C]; LEAF];
        // One list a register of rows.
        let mut maxima = [[zero::<E>(); 16]; LEAF];
        for left in (0..self.x.ncols()).step_by(C) {
            let mut rest = &packed[..];
            for top in (0..n).step_by(V * lane) {
                let height = (V * lane).min(n - top);
                let (tile, after) = rest.split_at(height * (top + height));
                rest = after;
                let (x, maxima) = (&mut self.x, &mut maxima[top / lane..]);
                match height / lane {
                    3 => lower_tile::<E, S, 3, C>(simd, tile, &mut done, top, left, x, maxima),
                    2 => lower_tile::<E, S, 2, C>(simd, tile, &mut done, top, left, x, maxima),
                    _ => lower_tile::<E, S, 1, C>(simd, tile, &mut done, top, left, x, maxima),
                }
            }
        }
        for (k, list) in maxima[..n / lane].iter().enumerate() {
            for (r, m) in list[..lane].iter().enumerate() {
                Maxima::note(&self.maxima.u, self.first + k * lane + r, m.re());
            }
        }
    }
}

/// V registers of rows, from `top` on, and C columns of X ← L⁻¹·X; `done` holds the rows above and receives these.
#[inline(always)]
fn lower_tile<E: Element, S: Simd, const V: usize, const C: usize>(
    simd: S,
    packed: &[E],
    done: &mut [[E; C]; LEAF],
    top: usize,
    left: usize,
    x: &mut MatMut<'_, E>,
    maxima: &mut [[E; 16]],
) {
    let lane = size_of::<E::V<S>>() / size_of::<E>();
    let (l, _) = E::registers::<S>(packed).as_chunks::<V>();
    let mut acc = load::<E, S, V, C>(simd, x, top, left);
    for (l, above) in l[..top].iter().zip(&done[..top]) {
        for c in 0..C {
            let minus = E::splat(simd, -above[c]);
            for v in 0..V {
                acc[c][v] = E::mul_add(simd, minus, l[v], acc[c][v]);
            }
        }
    }
    // The triangle, a register of rows at a time; constant indices keep the tile in registers.
    let (l, done) = (&l[top..], &mut done[top..]);
    lower_triangle::<E, S, 0, V, C>(simd, &l[..lane], &mut acc, &mut done[..lane]);
    if V > 1 {
        lower_triangle::<E, S, 1, V, C>(simd, &l[lane..2 * lane], &mut acc, &mut done[lane..2 * lane]);
    }
    if V > 2 {
        lower_triangle::<E, S, 2, V, C>(simd, &l[2 * lane..3 * lane], &mut acc, &mut done[2 * lane..3 * lane]);
    }
    store::<E, S, V, C>(x, top, left, &acc);
    for v in 0..V {
        for c in 0..C {
            E::enlarge(simd, &mut maxima[v], acc[c][v]);
        }
    }
}

/// The rows of register R, each subtracted from the rows below it.
#[inline(always)]
fn lower_triangle<E: Element, S: Simd, const R: usize, const V: usize, const C: usize>(
    simd: S,
    l: &[[E::V<S>; V]],
    acc: &mut [[E::V<S>; V]; C],
    rows: &mut [[E; C]],
) {
    // At most 16 lanes.
    let mut current = [[zero::<E>(); 16]; C];
    for (r, (l, row)) in l.iter().zip(rows).enumerate() {
        for c in 0..C {
            E::registers_mut::<S>(&mut current[c])[0] = acc[c][R.min(V - 1)];
        }
        for c in 0..C {
            row[c] = current[c][r % 16];
            let minus = E::splat(simd, -row[c]);
            for v in R..V {
                acc[c][v] = E::mul_add(simd, minus, l[v], acc[c][v]);
            }
        }
    }
}

/// X ← X·U⁻¹ with the upper triangle of `u`; `first` is the column of the whole matrix that `u` starts at.
pub(crate) fn solve_upper_right<E: Element>(u: MatRef<'_, E>, x: MatMut<'_, E>, first: usize, maxima: &Maxima) {
    bt_simd::dispatch(UpperRight { u, x, first, maxima });
}

struct UpperRight<'a, E: Element> {
    u: MatRef<'a, E>,
    x: MatMut<'a, E>,
    first: usize,
    maxima: &'a Maxima,
}

dispatched!(UpperRight);

impl<E: Element> UpperRight<'_, E> {
    #[inline(always)]
    fn run<S: Simd, const V: usize, const C: usize>(mut self, simd: S) {
        let (n, m) = (self.u.ncols(), self.x.nrows());
        let lane = size_of::<E::V<S>>() / size_of::<E>();
        assert!(n <= LEAF && n.is_multiple_of(C) && m.is_multiple_of(lane), "sizes of a solve");
        // Strips of C columns, row by row down to the diagonal; reciprocals on the diagonal.
        let mut packed = [[zero::<E>(); C]; PACKED];
        let mut at = 0;
        for left in (0..n).step_by(C) {
            for c in 0..C {
                let source = column_ref(self.u, left + c);
                for k in 0..left + c {
                    packed[at + k][c] = source[k];
                }
                packed[at + left + c][c] = Pivot::new(source[left + c]).divide(one());
            }
            at += left + C;
        }
        let mut maxima = [[zero::<E>(); 16]; LEAF];
        let mut top = 0;
        while top < m {
            let height = (V * lane).min(m - top);
            let x = &mut self.x;
            match height / lane {
                3 => upper_tile::<E, S, 3, C>(simd, &packed, n, top, x, &mut maxima),
                2 => upper_tile::<E, S, 2, C>(simd, &packed, n, top, x, &mut maxima),
                _ => upper_tile::<E, S, 1, C>(simd, &packed, n, top, x, &mut maxima),
            }
            top += height;
        }
        for (k, list) in maxima[..n].iter().enumerate() {
            let largest = list.iter().fold(zero::<E::Real>(), |m, v| m.max_nan(v.re()));
            Maxima::note(&self.maxima.l, self.first + k, largest);
        }
    }
}

/// X ← X·U⁻¹ for V registers of rows.
#[inline(always)]
fn upper_tile<E: Element, S: Simd, const V: usize, const C: usize>(
    simd: S,
    packed: &[[E; C]],
    n: usize,
    top: usize,
    x: &mut MatMut<'_, E>,
    maxima: &mut [[E; 16]; LEAF],
) {
    let mut done = [[E::splat(simd, zero()); V]; LEAF];
    let mut rest = packed;
    for left in (0..n).step_by(C) {
        let (strip, after) = rest.split_at(left + C);
        rest = after;
        let (above, triangle) = strip.split_at(left);
        let mut acc = load::<E, S, V, C>(simd, x, top, left);
        for (u, before) in above.iter().zip(&done[..left]) {
            for c in 0..C {
                let minus = E::splat(simd, -u[c]);
                for v in 0..V {
                    acc[c][v] = E::mul_add(simd, minus, before[v], acc[c][v]);
                }
            }
        }
        // Column k of the strip: x ← x·(1/u), then off the columns to its right.
        for k in 0..C {
            let inverse = E::splat(simd, triangle[k][k]);
            for v in 0..V {
                acc[k][v] = E::times(simd, inverse, acc[k][v]);
            }
            for c in k + 1..C {
                let minus = E::splat(simd, -triangle[k][c]);
                for v in 0..V {
                    acc[c][v] = E::mul_add(simd, minus, acc[k][v], acc[c][v]);
                }
            }
        }
        done[left..left + C].copy_from_slice(&acc);
        store::<E, S, V, C>(x, top, left, &acc);
        for c in 0..C {
            for v in 0..V {
                E::enlarge(simd, &mut maxima[left + c], acc[c][v]);
            }
        }
    }
}

/// A ← L\U of up to [`SMALL`] rows without pivoting. The first column whose pivot cannot be divided by, if there is one.
pub(crate) fn eliminate<E: Element>(a: MatMut<'_, E>, first: usize, maxima: &Maxima) -> Option<usize> {
    bt_simd::dispatch(Small { a, first, maxima })
}

struct Small<'a, E: Element> {
    a: MatMut<'a, E>,
    first: usize,
    maxima: &'a Maxima,
}

impl<E: Element> pulp::WithSimd for Small<'_, E> {
    type Output = Option<usize>;
    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) -> Option<usize> {
        let n = self.a.nrows();
        let lane = size_of::<E::V<S>>() / size_of::<E>();
        assert!(n <= SMALL && n.is_multiple_of(lane), "size of a block");
        let mut a = [[zero::<E>(); SMALL]; SMALL];
        for j in 0..n {
            a[j][..n].copy_from_slice(column(&mut self.a, j));
        }
        for k in 0..n {
            let (done, rest) = a[..n].split_at_mut(k + 1);
            let pivot_column = &mut done[k];
            let size = pivot_column[k].abs1();
            // The reciprocal of a smaller one may overflow.
            if !(size >= E::Real::MIN_POSITIVE && size <= E::Real::MAX) {
                return Some(self.first + k);
            }
            let inverse = Pivot::new(pivot_column[k]).divide(one());
            // Whole registers from the one with the diagonal on: zeros stand for what is above it.
            let mut l = [zero::<E>(); SMALL];
            for (value, l) in pivot_column[k + 1..n].iter_mut().zip(&mut l[k + 1..]) {
                *value *= inverse;
                *l = *value;
            }
            let below = k / lane * lane..n;
            let l = E::registers::<S>(&l[below.clone()]);
            for column in rest {
                let minus = E::splat(simd, -column[k]);
                for (y, l) in E::registers_mut::<S>(&mut column[below.clone()]).iter_mut().zip(l) {
                    *y = E::mul_add(simd, minus, *l, *y);
                }
            }
        }
        let (mut l, mut u) = ([zero::<E::Real>(); SMALL], [zero::<E::Real>(); SMALL]);
        for j in 0..n {
            column(&mut self.a, j).copy_from_slice(&a[j][..n]);
            for i in 0..n {
                let largest = if i <= j { &mut u[i] } else { &mut l[j] };
                *largest = largest.max_nan(a[j][i].abs1());
            }
        }
        for k in 0..n {
            Maxima::note(&self.maxima.l, self.first + k, l[k]);
            Maxima::note(&self.maxima.u, self.first + k, u[k]);
        }
        None
    }
}
