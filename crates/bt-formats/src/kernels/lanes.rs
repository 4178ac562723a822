//! Vectors of eight numbers, and how eight rows of a product leave them for y.

use std::arch::x86_64::{
    __m256, __m256i, __m512d, __m512i, _MM_HINT_T0, _mm_prefetch, _mm_sfence, _mm256_add_ps, _mm256_fmadd_ps,
    _mm256_hadd_ps, _mm256_loadu_si256, _mm256_mask_storeu_ps, _mm256_maskz_expand_ps, _mm256_maskz_loadu_ps,
    _mm256_mul_ps, _mm256_permute2f128_ps, _mm256_permutex2var_ps, _mm256_set_ps, _mm256_set1_ps, _mm256_setzero_ps,
    _mm256_shuffle_ps, _mm256_stream_ps, _mm256_unpackhi_ps, _mm256_unpacklo_ps, _mm512_add_pd, _mm512_fmadd_pd,
    _mm512_loadu_si512, _mm512_mask_storeu_pd, _mm512_maskz_expand_pd, _mm512_maskz_loadu_pd, _mm512_mul_pd,
    _mm512_permutex2var_pd, _mm512_set_pd, _mm512_set1_pd, _mm512_setzero_pd, _mm512_shuffle_f64x2, _mm512_stream_pd,
    _mm512_unpackhi_pd, _mm512_unpacklo_pd, _pext_u64,
};

/// Numbers in a vector, and rows in a group.
pub(super) const W: usize = 8;

/// A vector of eight numbers. SAFETY of all: the features of `has_features`; masked lanes are not accessed, all
/// others must be valid.
pub(super) trait Lanes: Copy {
    type Real: Copy + PartialEq;
    /// Eight lane numbers.
    type Index: Copy;
    fn real_zero() -> Self::Real;
    unsafe fn zero() -> Self;
    unsafe fn splat(v: Self::Real) -> Self;
    unsafe fn load(m: u8, p: *const Self::Real) -> Self;
    /// Consecutive values into the lanes of `m` one after another. A masked load and a permutation: with the
    /// instruction that does both, products of matrices in the caches took 1.5 times as long on Zen 4.
    unsafe fn expand(m: u8, p: *const Self::Real) -> Self;
    unsafe fn store(m: u8, p: *mut Self::Real, v: Self);
    /// Past the caches; `p` must be aligned to the vector.
    unsafe fn stream(p: *mut Self::Real, v: Self);
    /// x[cols[l]] in lane l: eight loads, which cost the same everywhere; gathers are four times slower on some
    /// machines than on others.
    unsafe fn collect(cols: *const u32, x: *const Self::Real) -> Self;
    unsafe fn add(a: Self, b: Self) -> Self;
    unsafe fn mul(a: Self, b: Self) -> Self;
    unsafe fn scalar_mul(a: Self::Real, b: Self::Real) -> Self::Real;
    /// a·b + c.
    unsafe fn fma(a: Self, b: Self, c: Self) -> Self;
    /// Lane numbers h, h + 1, … h + 7 for [`Lanes::window`].
    unsafe fn index(h: usize) -> Self::Index;
    /// Eight lanes of (a, b) put together.
    unsafe fn window(index: Self::Index, a: Self, b: Self) -> Self;
    /// Lane q of the result is the sum of the lanes of `rows[q]`, by pairs.
    unsafe fn reduce(rows: &[Self; W]) -> Self;
    /// Lane q of `result[t]` is lane t of `rows[q]`.
    unsafe fn transpose(rows: &[Self; W]) -> [Self; W];
}

// Plain functions and no closures below: a closure would not take over the caller's features and would not be inlined.

impl Lanes for __m512d {
    type Real = f64;
    type Index = __m512i;
    #[inline(always)]
    fn real_zero() -> f64 {
        0.0
    }
    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { _mm512_setzero_pd() }
    }
    #[inline(always)]
    unsafe fn splat(v: f64) -> Self {
        unsafe { _mm512_set1_pd(v) }
    }
    #[inline(always)]
    unsafe fn load(m: u8, p: *const f64) -> Self {
        unsafe { _mm512_maskz_loadu_pd(m, p) }
    }
    #[inline(always)]
    unsafe fn expand(m: u8, p: *const f64) -> Self {
        unsafe { _mm512_maskz_expand_pd(m, _mm512_maskz_loadu_pd(low(m.count_ones() as usize), p)) }
    }
    #[inline(always)]
    unsafe fn store(m: u8, p: *mut f64, v: Self) {
        unsafe { _mm512_mask_storeu_pd(p, m, v) }
    }
    #[inline(always)]
    unsafe fn stream(p: *mut f64, v: Self) {
        unsafe { _mm512_stream_pd(p, v) }
    }
    #[inline(always)]
    unsafe fn collect(c: *const u32, x: *const f64) -> Self {
        unsafe {
            let [a, b, c, d, e, f, g, h] = *c.cast::<[u32; W]>();
            _mm512_set_pd(at(x, h), at(x, g), at(x, f), at(x, e), at(x, d), at(x, c), at(x, b), at(x, a))
        }
    }
    #[inline(always)]
    unsafe fn add(a: Self, b: Self) -> Self {
        unsafe { _mm512_add_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn mul(a: Self, b: Self) -> Self {
        unsafe { _mm512_mul_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn scalar_mul(a: f64, b: f64) -> f64 {
        a * b
    }
    #[inline(always)]
    unsafe fn fma(a: Self, b: Self, c: Self) -> Self {
        unsafe { _mm512_fmadd_pd(a, b, c) }
    }
    #[inline(always)]
    unsafe fn index(h: usize) -> __m512i {
        let lanes = [0, 1, 2, 3, 4, 5, 6, 7].map(|l: i64| l + h as i64);
        unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
    }
    #[inline(always)]
    unsafe fn window(index: __m512i, a: Self, b: Self) -> Self {
        unsafe { _mm512_permutex2var_pd(a, index, b) }
    }
    #[inline(always)]
    unsafe fn reduce(r: &[Self; W]) -> Self {
        unsafe {
            let first_four = halves(pairs(r[0], r[1]), pairs(r[2], r[3]));
            halves(first_four, halves(pairs(r[4], r[5]), pairs(r[6], r[7])))
        }
    }
    #[inline(always)]
    unsafe fn transpose(r: &[Self; W]) -> [Self; W] {
        unsafe {
            let mut out = *r;
            // Pairs of rows to pairs of columns, then 128-bit parts within four rows, then across the two fours.
            let mut pairs = *r;
            for q in 0..4 {
                pairs[2 * q] = _mm512_unpacklo_pd(r[2 * q], r[2 * q + 1]);
                pairs[2 * q + 1] = _mm512_unpackhi_pd(r[2 * q], r[2 * q + 1]);
            }
            let mut fours = *r;
            for h in [0, 4] {
                for odd in 0..2 {
                    fours[h + odd] = _mm512_shuffle_f64x2::<0x88>(pairs[h + odd], pairs[h + 2 + odd]);
                    fours[h + 2 + odd] = _mm512_shuffle_f64x2::<0xdd>(pairs[h + odd], pairs[h + 2 + odd]);
                }
            }
            for c in 0..4 {
                out[c] = _mm512_shuffle_f64x2::<0x88>(fours[c], fours[4 + c]);
                out[4 + c] = _mm512_shuffle_f64x2::<0xdd>(fours[c], fours[4 + c]);
            }
            out
        }
    }
}

impl Lanes for __m256 {
    type Real = f32;
    type Index = __m256i;
    #[inline(always)]
    fn real_zero() -> f32 {
        0.0
    }
    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { _mm256_setzero_ps() }
    }
    #[inline(always)]
    unsafe fn splat(v: f32) -> Self {
        unsafe { _mm256_set1_ps(v) }
    }
    #[inline(always)]
    unsafe fn load(m: u8, p: *const f32) -> Self {
        unsafe { _mm256_maskz_loadu_ps(m, p) }
    }
    #[inline(always)]
    unsafe fn expand(m: u8, p: *const f32) -> Self {
        unsafe { _mm256_maskz_expand_ps(m, _mm256_maskz_loadu_ps(low(m.count_ones() as usize), p)) }
    }
    #[inline(always)]
    unsafe fn store(m: u8, p: *mut f32, v: Self) {
        unsafe { _mm256_mask_storeu_ps(p, m, v) }
    }
    #[inline(always)]
    unsafe fn stream(p: *mut f32, v: Self) {
        unsafe { _mm256_stream_ps(p, v) }
    }
    #[inline(always)]
    unsafe fn collect(c: *const u32, x: *const f32) -> Self {
        unsafe {
            let [a, b, c, d, e, f, g, h] = *c.cast::<[u32; W]>();
            _mm256_set_ps(at(x, h), at(x, g), at(x, f), at(x, e), at(x, d), at(x, c), at(x, b), at(x, a))
        }
    }
    #[inline(always)]
    unsafe fn add(a: Self, b: Self) -> Self {
        unsafe { _mm256_add_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn mul(a: Self, b: Self) -> Self {
        unsafe { _mm256_mul_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn scalar_mul(a: f32, b: f32) -> f32 {
        a * b
    }
    #[inline(always)]
    unsafe fn fma(a: Self, b: Self, c: Self) -> Self {
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    unsafe fn index(h: usize) -> __m256i {
        let lanes = [0, 1, 2, 3, 4, 5, 6, 7].map(|l: i32| l + h as i32);
        unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) }
    }
    #[inline(always)]
    unsafe fn window(index: __m256i, a: Self, b: Self) -> Self {
        unsafe { _mm256_permutex2var_ps(a, index, b) }
    }
    #[inline(always)]
    unsafe fn reduce(r: &[Self; W]) -> Self {
        unsafe {
            let a = _mm256_hadd_ps(_mm256_hadd_ps(r[0], r[1]), _mm256_hadd_ps(r[2], r[3]));
            let b = _mm256_hadd_ps(_mm256_hadd_ps(r[4], r[5]), _mm256_hadd_ps(r[6], r[7]));
            _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b))
        }
    }
    #[inline(always)]
    unsafe fn transpose(r: &[Self; W]) -> [Self; W] {
        unsafe {
            let mut out = *r;
            let mut pairs = *r;
            for q in 0..4 {
                pairs[2 * q] = _mm256_unpacklo_ps(r[2 * q], r[2 * q + 1]);
                pairs[2 * q + 1] = _mm256_unpackhi_ps(r[2 * q], r[2 * q + 1]);
            }
            // Columns c (low half) and c + 4 (high half) of four rows.
            let mut fours = *r;
            for h in [0, 4] {
                for high in 0..2 {
                    fours[h + 2 * high] = _mm256_shuffle_ps::<0x44>(pairs[h + high], pairs[h + 2 + high]);
                    fours[h + 2 * high + 1] = _mm256_shuffle_ps::<0xee>(pairs[h + high], pairs[h + 2 + high]);
                }
            }
            for c in 0..4 {
                out[c] = _mm256_permute2f128_ps::<0x20>(fours[c], fours[4 + c]);
                out[4 + c] = _mm256_permute2f128_ps::<0x31>(fours[c], fours[4 + c]);
            }
            out
        }
    }
}

/// x[c]. SAFETY: inside x.
#[inline(always)]
unsafe fn at<R: Copy>(x: *const R, c: u32) -> R {
    unsafe { *x.add(c as usize) }
}

/// Sums of neighbouring lanes, of `a` and `b` in turn.
#[inline(always)]
unsafe fn pairs(a: __m512d, b: __m512d) -> __m512d {
    unsafe { _mm512_add_pd(_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b)) }
}

/// Sums of neighbouring 128-bit parts, those of `a` first.
#[inline(always)]
unsafe fn halves(a: __m512d, b: __m512d) -> __m512d {
    unsafe { _mm512_add_pd(_mm512_shuffle_f64x2::<0x88>(a, b), _mm512_shuffle_f64x2::<0xdd>(a, b)) }
}

/// Bit t of each byte of `rows`, byte q to bit q. SAFETY: the machine has bmi2, which is among the features of `has_features`.
#[inline(always)]
pub(super) unsafe fn column_mask(rows: u64, t: usize) -> u8 {
    // SAFETY: as the function's.
    unsafe { _pext_u64(rows, 0x0101_0101_0101_0101 << t) as u8 }
}

/// The low `count ≤ 8` bits.
#[inline(always)]
pub(super) fn low(count: usize) -> u8 {
    ((1u32 << count) - 1) as u8
}

/// Asks for the cache line `ahead` values after `p`. Addresses past the end do no harm: a prefetch never faults.
#[inline(always)]
pub(super) unsafe fn fetch<R>(p: *const R, ahead: usize) {
    unsafe { _mm_prefetch::<_MM_HINT_T0>(p.wrapping_add(ahead).cast::<i8>()) }
}

/// y ← α·(…)[first..end] + β·b: pointers to checked slices.
pub(super) struct Job<R> {
    /// Rows of the matrix.
    pub n: usize,
    pub first: usize,
    pub end: usize,
    pub alpha: R,
    pub x: *const R,
    pub beta: R,
    /// b of row `first`; y itself may be.
    pub b: *const R,
    /// y of row `first`.
    pub y: *mut R,
    /// lower, diag, upper, when the product has them.
    pub diagonals: Option<[*const R; 3]>,
}

impl<R: Copy + PartialEq> Job<R> {
    /// The y of row i; a pointer outside y for rows of the same group that are not wanted.
    #[inline(always)]
    pub fn y_of(&self, i: usize) -> *mut R {
        self.y.wrapping_add(i).wrapping_sub(self.first)
    }

    /// α·(s + rows i.. of the three diagonals times x) + β·b for the rows `inside` the matrix; b is read where `wanted`.
    /// SAFETY: lane l of `inside` is row i + l of the matrix; `wanted` rows lie in b.
    #[inline(always)]
    pub unsafe fn finish<L: Lanes<Real = R>>(&self, i: usize, inside: u8, wanted: u8, mut s: L) -> L {
        unsafe {
            if let Some([lower, diag, upper]) = self.diagonals {
                // Row 0 has no column to the left, row n − 1 none to the right: their lanes are not loaded.
                let left = if i == 0 { inside & !1 } else { inside };
                let right = if i + W >= self.n { inside & !(1 << (self.n - 1 - i)) } else { inside };
                s = L::fma(L::load(left, lower.add(i)), L::load(left, self.x.wrapping_add(i).wrapping_sub(1)), s);
                s = L::fma(L::load(inside, diag.add(i)), L::load(inside, self.x.add(i)), s);
                s = L::fma(L::load(right, upper.add(i)), L::load(right, self.x.wrapping_add(i + 1)), s);
            }
            s = L::mul(L::splat(self.alpha), s);
            if self.beta != L::real_zero() {
                let b = self.b.wrapping_add(i).wrapping_sub(self.first);
                s = L::fma(L::splat(self.beta), L::load(wanted, b), s);
            }
            s
        }
    }

    /// Whether y should go past the caches: it is not read, and too long to be in the second-level cache when the
    /// caller reads it. A plain store would read every line of y first.
    pub fn streams(&self) -> bool
    where
        R: Default,
    {
        const MUCH: usize = 4 << 20;
        self.beta == R::default() && self.n * size_of::<R>() >= MUCH
    }
}

/// Writes consecutive full groups of y, past the caches when STREAM: then whole aligned lines, each made of the end of
/// one group and the beginning of the next.
pub(super) struct Writer<L: Lanes, const STREAM: bool> {
    /// The last group and its place; null before the first.
    previous: L,
    place: *mut L::Real,
    /// Elements from a group's beginning to the next aligned address.
    head: usize,
    index: L::Index,
}

impl<L: Lanes, const STREAM: bool> Writer<L, STREAM> {
    /// For groups that begin at `y`, `y` + 8, … SAFETY of all: the features; the groups lie inside y.
    #[inline(always)]
    pub unsafe fn new(y: *mut L::Real) -> Self {
        let size = size_of::<L::Real>();
        let head = (y as usize).wrapping_neg() % size_of::<L>() / size;
        unsafe { Self { previous: L::zero(), place: std::ptr::null_mut(), head, index: L::index(head) } }
    }

    #[inline(always)]
    pub unsafe fn put(&mut self, place: *mut L::Real, group: L) {
        unsafe {
            if !STREAM {
                return L::store(0xff, place, group);
            }
            if self.place.is_null() {
                L::store(low(self.head), place, group);
            } else {
                L::stream(self.place.add(self.head), L::window(self.index, self.previous, group));
            }
            (self.previous, self.place) = (group, place);
        }
    }

    /// Writes what is left of the last group.
    #[inline(always)]
    pub unsafe fn close(self) {
        if STREAM && !self.place.is_null() {
            unsafe {
                L::store(!low(self.head), self.place, self.previous);
                // Streamed stores are seen by other threads in order only after a fence.
                _mm_sfence();
            }
        }
    }
}
