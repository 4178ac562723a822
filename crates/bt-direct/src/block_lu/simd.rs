//! Kernels of real blocks in explicit vectors: products whose result stays in registers, and the steps of elimination.
//!
//! All are generic over the instruction set, which `pulp` picks at run time, and over `f32` and `f64`.

use bt_formats::{RealScalar, Scalar};
use pulp::Simd;
use pulp::bytemuck::cast;

/// Places in a small array: at least a vector of any type and instruction set.
pub(crate) const PADDED: usize = 16;

/// On the boundary of a cache line, so that no vector crosses one.
#[repr(align(64))]
pub(crate) struct Aligned<T>(pub(crate) T);

/// Masks of zeros and ones, a row for each place where they change.
#[repr(align(64))]
pub(crate) struct Table<L>(pub(crate) [[L; PADDED]; PADDED + 1]);

/// See [`Lanes::RANKS`].
#[repr(align(64))]
pub(crate) struct Ranks<L>(pub(crate) [L; 64]);

/// A real number and its vectors.
pub(crate) trait Lanes: Scalar<Real = Self> + RealScalar {
    /// `FROM[i]`: ones from place i on, zeros before.
    const FROM: &'static Table<Self>;
    /// `BEFORE[i]`: ones before place i, then zeros.
    const BEFORE: &'static Table<Self>;
    /// Numbers whose bits are 63 − i: they rank candidates, the first ones higher.
    const RANKS: &'static Ranks<Self>;
    /// Each of them twice, for complex numbers in pairs of their parts.
    const PAIR_RANKS: &'static Ranks<Self>;
    /// A vector of the instruction set.
    type V<S: Simd>: Copy;
    /// Numbers in a vector.
    fn lanes<S: Simd>() -> usize;
    /// The first numbers of a slice that has at least a vector of them.
    fn load<S: Simd>(x: &[Self]) -> Self::V<S>;
    /// To the first numbers of a slice that has at least a vector of them.
    fn store<S: Simd>(x: &mut [Self], v: Self::V<S>);
    /// Fewer numbers than a vector, then zeros.
    fn load_part<S: Simd>(s: S, x: &[Self]) -> Self::V<S>;
    /// As many numbers as the slice has, at most a vector.
    fn store_part<S: Simd>(s: S, x: &mut [Self], v: Self::V<S>);
    /// One number in all places.
    fn splat<S: Simd>(s: S, x: Self) -> Self::V<S>;
    /// c − a·b, fused where the instruction set can.
    fn minus_product<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>, c: Self::V<S>) -> Self::V<S>;
    /// c + a·b, fused where the instruction set can.
    fn plus_product<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>, c: Self::V<S>) -> Self::V<S>;
    /// √a
    fn square_root<S: Simd>(s: S, a: Self::V<S>) -> Self::V<S>;
    /// 1/a
    fn reciprocal<S: Simd>(s: S, a: Self::V<S>) -> Self::V<S>;
    /// a·b
    fn times<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>) -> Self::V<S>;
    /// |a|. (`pulp`'s own is not always inlined, and a call costs more than what is done with the result.)
    fn modulus<S: Simd>(s: S, a: Self::V<S>) -> Self::V<S>;
    /// a + |b|
    fn plus_modulus<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>) -> Self::V<S>;
    /// max(a, |b|) place by place; a NaN in b may be lost.
    fn max_modulus<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>) -> Self::V<S>;
    /// |a| with its last six bits replaced by those of `rank`.
    fn ranked<S: Simd>(s: S, a: Self::V<S>, rank: Self::V<S>) -> Self::V<S>;
    /// The i of a ranked number; none when it has nothing but its rank.
    fn rank(a: Self) -> Option<usize>;
    /// max(a, b) place by place; b where one of them is NaN.
    fn larger<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>) -> Self::V<S>;
    /// `then` where a = b, elsewhere `otherwise`.
    fn where_equal<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>, then: Self::V<S>, otherwise: Self::V<S>) -> Self::V<S>;
    /// The numbers of each pair in turn: 1 0 3 2 …
    fn swapped<S: Simd>(s: S, a: Self::V<S>) -> Self::V<S>;
    /// Largest number of a vector.
    fn largest<S: Simd>(s: S, a: Self::V<S>) -> Self;
    /// Sum of a vector.
    fn total<S: Simd>(s: S, a: Self::V<S>) -> Self;
}

macro_rules! lanes {
    ($t:ident, $v:ident, $n:ident, $as_simd:ident, $as_mut_simd:ident, $load:ident, $store:ident, $splat:ident,
     $fused:ident, $plus:ident, $sqrt:ident, $div:ident, $mul:ident, $add:ident, $and:ident, $or:ident, $max:ident, $equal:ident, $select:ident, $swap:ident,
     $reduce_max:ident, $reduce_sum:ident, $bits:ident) => {
        impl Lanes for $t {
            const FROM: &'static Table<$t> = &{
                let mut table = [[0.0; PADDED]; PADDED + 1];
                let mut at = 0;
                while at < PADDED * PADDED {
                    let (i, place) = (at / PADDED, at % PADDED);
                    table[i][place] = if place >= i { 1.0 } else { 0.0 };
                    at += 1;
                }
                Table(table)
            };
            const BEFORE: &'static Table<$t> = &{
                let mut table = [[1.0; PADDED]; PADDED + 1];
                let mut at = 0;
                while at < PADDED * PADDED {
                    let (i, place) = (at / PADDED, at % PADDED);
                    table[i][place] = if place >= i { 0.0 } else { 1.0 };
                    at += 1;
                }
                Table(table)
            };
            const RANKS: &'static Ranks<$t> = &{
                let mut ranks = [0.0; 64];
                let mut i = 0;
                while i < 64 {
                    ranks[i] = $t::from_bits(63 - i as $bits);
                    i += 1;
                }
                Ranks(ranks)
            };
            const PAIR_RANKS: &'static Ranks<$t> = &{
                let mut ranks = [0.0; 64];
                let mut i = 0;
                while i < 64 {
                    ranks[i] = $t::from_bits(63 - i as $bits / 2);
                    i += 1;
                }
                Ranks(ranks)
            };
            type V<S: Simd> = S::$v;
            #[inline(always)]
            fn lanes<S: Simd>() -> usize {
                S::$n
            }
            #[inline(always)]
            fn load<S: Simd>(x: &[Self]) -> S::$v {
                S::$as_simd(&x[..S::$n]).0[0]
            }
            #[inline(always)]
            fn store<S: Simd>(x: &mut [Self], v: S::$v) {
                S::$as_mut_simd(&mut x[..S::$n]).0[0] = v;
            }
            #[inline(always)]
            fn load_part<S: Simd>(s: S, x: &[Self]) -> S::$v {
                s.$load(x)
            }
            #[inline(always)]
            fn store_part<S: Simd>(s: S, x: &mut [Self], v: S::$v) {
                s.$store(x, v);
            }
            #[inline(always)]
            fn splat<S: Simd>(s: S, x: Self) -> S::$v {
                s.$splat(x)
            }
            #[inline(always)]
            fn minus_product<S: Simd>(s: S, a: S::$v, b: S::$v, c: S::$v) -> S::$v {
                s.$fused(a, b, c)
            }
            #[inline(always)]
            fn plus_product<S: Simd>(s: S, a: S::$v, b: S::$v, c: S::$v) -> S::$v {
                s.$plus(a, b, c)
            }
            #[inline(always)]
            fn square_root<S: Simd>(s: S, a: S::$v) -> S::$v {
                s.$sqrt(a)
            }
            #[inline(always)]
            fn reciprocal<S: Simd>(s: S, a: S::$v) -> S::$v {
                s.$div(s.$splat(1.0), a)
            }
            #[inline(always)]
            fn times<S: Simd>(s: S, a: S::$v, b: S::$v) -> S::$v {
                s.$mul(a, b)
            }
            #[inline(always)]
            fn modulus<S: Simd>(s: S, a: S::$v) -> S::$v {
                // all bits but the sign
                s.$and(s.$splat($t::from_bits(!(-0.0 as $t).to_bits())), a)
            }
            #[inline(always)]
            fn plus_modulus<S: Simd>(s: S, a: S::$v, b: S::$v) -> S::$v {
                s.$add(a, Self::modulus(s, b))
            }
            #[inline(always)]
            fn max_modulus<S: Simd>(s: S, a: S::$v, b: S::$v) -> S::$v {
                s.$max(Self::modulus(s, b), a)
            }
            #[inline(always)]
            fn ranked<S: Simd>(s: S, a: S::$v, rank: S::$v) -> S::$v {
                s.$or(s.$and(s.$splat($t::from_bits(!(-0.0 as $t).to_bits() & !63)), a), rank)
            }
            #[inline(always)]
            fn rank(a: Self) -> Option<usize> {
                let bits = a.to_bits();
                (bits >= 64).then_some(63 - (bits & 63) as usize)
            }
            #[inline(always)]
            fn larger<S: Simd>(s: S, a: S::$v, b: S::$v) -> S::$v {
                s.$max(a, b)
            }
            #[inline(always)]
            fn where_equal<S: Simd>(s: S, a: S::$v, b: S::$v, then: S::$v, otherwise: S::$v) -> S::$v {
                s.$select(s.$equal(a, b), then, otherwise)
            }
            #[inline(always)]
            fn swapped<S: Simd>(s: S, a: S::$v) -> S::$v {
                // As complex numbers, whose parts change places.
                cast(s.$swap(cast(a)))
            }
            #[inline(always)]
            fn largest<S: Simd>(s: S, a: S::$v) -> Self {
                s.$reduce_max(a)
            }
            #[inline(always)]
            fn total<S: Simd>(s: S, a: S::$v) -> Self {
                s.$reduce_sum(a)
            }
        }
    };
}

lanes!(
    f32,
    f32s,
    F32_LANES,
    as_simd_f32s,
    as_mut_simd_f32s,
    partial_load_f32s,
    partial_store_f32s,
    splat_f32s,
    negate_mul_add_e_f32s,
    mul_add_e_f32s,
    sqrt_f32s,
    div_f32s,
    mul_f32s,
    add_f32s,
    and_f32s,
    or_f32s,
    max_f32s,
    equal_f32s,
    select_f32s,
    swap_re_im_c32s,
    reduce_max_f32s,
    reduce_sum_f32s,
    u32
);
lanes!(
    f64,
    f64s,
    F64_LANES,
    as_simd_f64s,
    as_mut_simd_f64s,
    partial_load_f64s,
    partial_store_f64s,
    splat_f64s,
    negate_mul_add_e_f64s,
    mul_add_e_f64s,
    sqrt_f64s,
    div_f64s,
    mul_f64s,
    add_f64s,
    and_f64s,
    or_f64s,
    max_f64s,
    equal_f64s,
    select_f64s,
    swap_re_im_c64s,
    reduce_max_f64s,
    reduce_sum_f64s,
    u64
);

/// Runs `job` on the widest vectors that k numbers fill: a block of half a vector's length is a case for vectors of
/// that length.
pub(crate) fn dispatch_for<L: Lanes, J: pulp::WithSimd>(k: usize, job: J) -> J::Output {
    #[cfg(target_arch = "x86_64")]
    if !k.is_multiple_of(L::lanes::<pulp::x86::V4>())
        && let Some(simd) = bt_simd::avx2()
    {
        return Simd::vectorize(simd, job);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = k;
    bt_simd::dispatch(job)
}

/// Runs `job`, which works on k numbers in whole vectors, on the widest ones unless those of half their length leave less of a small
/// number empty.
pub(crate) fn dispatch_padded<L: Lanes, J: pulp::WithSimd>(k: usize, job: J) -> J::Output {
    #[cfg(target_arch = "x86_64")]
    {
        const SMALL: usize = 96;
        let (wide, half) = (L::lanes::<pulp::x86::V4>(), L::lanes::<pulp::x86::V3>());
        if k <= SMALL
            && k.next_multiple_of(half) < k.next_multiple_of(wide)
            && let Some(simd) = bt_simd::avx2()
        {
            return Simd::vectorize(simd, job);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = k;
    bt_simd::dispatch(job)
}

/// Columns of X, which multiply those of L.
pub(crate) trait Multipliers<L, const C: usize>: Copy {
    /// Rows of X.
    fn depth(self) -> usize;
    /// Row d.
    fn row(self, d: usize) -> [L; C];
}

/// Column by column.
impl<L: Copy, const C: usize> Multipliers<L, C> for [&[L]; C] {
    #[inline(always)]
    fn depth(self) -> usize {
        self[0].len()
    }
    #[inline(always)]
    fn row(self, d: usize) -> [L; C] {
        let mut row = [self[0][d]; C];
        for c in 0..C {
            row[c] = self[c][d];
        }
        row
    }
}

/// The columns from `first` on of rows of W numbers.
#[derive(Clone, Copy)]
pub(crate) struct RowsOf<'a, L, const W: usize> {
    pub(crate) rows: &'a [[L; W]],
    pub(crate) first: usize,
}

impl<L: Copy, const W: usize, const C: usize> Multipliers<L, C> for RowsOf<'_, L, W> {
    #[inline(always)]
    fn depth(self) -> usize {
        self.rows.len()
    }
    #[inline(always)]
    fn row(self, d: usize) -> [L; C] {
        *self.rows[d][self.first..].first_chunk().expect("C columns")
    }
}

/// Y ← Y − L·X for `rows` rows, `width` columns and inner dimension `depth`, all column-major.
pub(crate) struct Update<'a, L> {
    pub(crate) y: &'a mut [L],
    pub(crate) ldy: usize,
    pub(crate) rows: usize,
    pub(crate) width: usize,
    pub(crate) l: &'a [L],
    pub(crate) ldl: usize,
    pub(crate) x: &'a [L],
    pub(crate) ldx: usize,
    pub(crate) depth: usize,
}

impl<L: Lanes> pulp::WithSimd for Update<'_, L> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { y, ldy, rows, width, l, ldl, x, ldx, depth } = self;
        let mut c = 0;
        macro_rules! columns {
            ($columns:literal) => {
                while width - c >= $columns {
                    let mut xs: [&[L]; $columns] = [&[]; $columns];
                    for (i, part) in xs.iter_mut().enumerate() {
                        *part = &x[(c + i) * ldx..(c + i) * ldx + depth];
                    }
                    update_columns::<L, S, $columns>(s, &mut y[c * ldy..], ldy, rows, l, ldl, xs);
                    c += $columns;
                }
            };
        }
        if S::REGISTER_COUNT >= 32 {
            columns!(8);
        }
        columns!(4);
        columns!(1);
    }
}

/// As [`Update`] for the first `width` of eight columns, X by rows.
#[inline(always)]
pub(crate) fn update_eight<L: Lanes, S: Simd>(
    s: S,
    y: &mut [L],
    ldy: usize,
    rows: usize,
    width: usize,
    l: &[L],
    ldl: usize,
    x: &[[L; 8]],
) {
    let mut c = 0;
    macro_rules! columns {
        ($columns:literal) => {
            while width - c >= $columns {
                let x = RowsOf { rows: x, first: c };
                update_columns::<L, S, $columns>(s, &mut y[c * ldy..], ldy, rows, l, ldl, x);
                c += $columns;
            }
        };
    }
    if S::REGISTER_COUNT >= 32 {
        columns!(8);
    }
    columns!(4);
    columns!(1);
}

#[inline(always)]
fn update_columns<L: Lanes, S: Simd, const C: usize>(
    s: S,
    y: &mut [L],
    ldy: usize,
    rows: usize,
    l: &[L],
    ldl: usize,
    x: impl Multipliers<L, C>,
) {
    let lanes = L::lanes::<S>();
    let mut r = 0;
    while r + 3 * lanes <= rows {
        update_tile::<L, S, 3, C, false>(s, &mut y[r..], ldy, 3 * lanes, &l[r..], ldl, x);
        r += 3 * lanes;
    }
    let left = rows - r;
    if left == 0 {
        return;
    }
    let (y, l) = (&mut y[r..], &l[r..]);
    if left == 2 * lanes {
        update_tile::<L, S, 2, C, false>(s, y, ldy, left, l, ldl, x);
    } else if left == lanes {
        update_tile::<L, S, 1, C, false>(s, y, ldy, left, l, ldl, x);
    } else if left > 2 * lanes {
        update_tile::<L, S, 3, C, true>(s, y, ldy, left, l, ldl, x);
    } else if left > lanes {
        update_tile::<L, S, 2, C, true>(s, y, ldy, left, l, ldl, x);
    } else {
        update_tile::<L, S, 1, C, true>(s, y, ldy, left, l, ldl, x);
    }
}

/// Y ← Y − L·X for V vectors of rows, the last one partly filled if `PART`, and C columns, which stay in registers.
#[inline(always)]
fn update_tile<L: Lanes, S: Simd, const V: usize, const C: usize, const PART: bool>(
    s: S,
    y: &mut [L],
    ldy: usize,
    rows: usize,
    l: &[L],
    ldl: usize,
    x: impl Multipliers<L, C>,
) {
    let mut acc = [[L::splat(s, L::default()); V]; C];
    for c in 0..C {
        acc[c] = load_column::<L, S, V, PART>(s, &y[c * ldy..c * ldy + rows]);
    }
    for d in 0..x.depth() {
        let column = load_column::<L, S, V, PART>(s, &l[d * ldl..d * ldl + rows]);
        let row = x.row(d);
        for c in 0..C {
            let x = L::splat(s, row[c]);
            for v in 0..V {
                acc[c][v] = L::minus_product(s, column[v], x, acc[c][v]);
            }
        }
    }
    for c in 0..C {
        store_column::<L, S, V, PART>(s, &mut y[c * ldy..c * ldy + rows], acc[c]);
    }
}

#[inline(always)]
fn load_column<L: Lanes, S: Simd, const V: usize, const PART: bool>(s: S, x: &[L]) -> [L::V<S>; V] {
    let lanes = L::lanes::<S>();
    let mut out = [L::splat(s, L::default()); V];
    for v in 0..V {
        let x = &x[v * lanes..];
        out[v] = if PART && v + 1 == V { L::load_part(s, x) } else { L::load(x) };
    }
    out
}

#[inline(always)]
fn store_column<L: Lanes, S: Simd, const V: usize, const PART: bool>(s: S, x: &mut [L], values: [L::V<S>; V]) {
    let lanes = L::lanes::<S>();
    for v in 0..V {
        let x = &mut x[v * lanes..];
        if PART && v + 1 == V {
            L::store_part(s, x, values[v]);
        } else {
            L::store(x, values[v]);
        }
    }
}

/// Σ|xᵢ|; `max` ← max(`max`, |xᵢ|) place by place. The sum has as many lanes as the longest registers, whatever S has, and so the same
/// bits.
#[inline(always)]
pub(crate) fn sum_and_max<L: Lanes, S: Simd>(s: S, x: &[L], max: &mut L::V<S>) -> L {
    moduli::<L, S, false>(s, x, &mut [], max)
}

/// y ← x, and what [`sum_and_max`] does with x.
#[inline(always)]
pub(crate) fn copy_sum_and_max<L: Lanes, S: Simd>(s: S, x: &[L], y: &mut [L], max: &mut L::V<S>) -> L {
    moduli::<L, S, true>(s, x, y, max)
}

#[inline(always)]
fn moduli<L: Lanes, S: Simd, const COPY: bool>(s: S, x: &[L], y: &mut [L], max: &mut L::V<S>) -> L {
    const LONGEST: usize = size_of::<[f64; 8]>();
    let (lanes, vectors) = (L::lanes::<S>(), const { LONGEST / size_of::<L::V<S>>() });
    let mut sums = [L::splat(s, L::default()); LONGEST / size_of::<f32>()];
    let whole = x.len() - x.len() % (lanes * vectors);
    for at in (0..whole).step_by(lanes * vectors) {
        for v in 0..vectors {
            let part = at + v * lanes..at + (v + 1) * lanes;
            let x = L::load(&x[part.clone()]);
            if COPY {
                L::store(&mut y[part], x);
            }
            sums[v] = L::plus_modulus(s, sums[v], x);
            *max = L::max_modulus(s, *max, x);
        }
    }
    for (v, rest) in x[whole..].chunks(lanes).enumerate() {
        let x = L::load_part(s, rest);
        if COPY {
            y[whole + v * lanes..][..rest.len()].copy_from_slice(rest);
        }
        sums[v] = L::plus_modulus(s, sums[v], x);
        *max = L::max_modulus(s, *max, x);
    }
    let mut half = vectors / 2;
    while half > 0 {
        for v in 0..half {
            sums[v] = L::plus_modulus(s, sums[v], sums[v + half]);
        }
        half /= 2;
    }
    L::total(s, sums[0])
}

/// `max` ← max(`max`, |xᵢ|) place by place; `sum` ← `sum` + |xᵢ|, which is NaN or infinite when some xᵢ is.
#[inline(always)]
pub(crate) fn max_and_total<L: Lanes, S: Simd>(s: S, x: &[L], max: &mut L::V<S>, sum: &mut L::V<S>) {
    let xs = x.chunks_exact(L::lanes::<S>());
    let rest = xs.remainder();
    for x in xs {
        let x = L::load(x);
        *sum = L::plus_modulus(s, *sum, x);
        *max = L::max_modulus(s, *max, x);
    }
    if !rest.is_empty() {
        let x = L::load_part(s, rest);
        *sum = L::plus_modulus(s, *sum, x);
        *max = L::max_modulus(s, *max, x);
    }
}
