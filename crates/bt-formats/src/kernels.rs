//! Row kernels with AVX-512: sparse rows of any lengths, with or without three diagonals, one pass over y.
//!
//! A matrix with a handful of entries a row costs a loop in plain code one mispredicted branch a row, some 20 cycles.
//! Here a row is one masked gather whatever its length up to the vector's, and W rows are transposed and summed
//! together; a product of 10⁶ rows then moves at the speed of memory (measured: 4 × the plain loop).
//! The sum of a row is a fixed tree that depends on its length alone, not on where in y it stands.
//!
//! Traffic of a product: 4(n + 1) + (4 + s)·nnz + 2·s·n bytes, and 3·s·n for the diagonals, s = size of T.

#![allow(unsafe_code)]

use crate::csr::Csr;
use crate::operator::{LinearOperator, zero};
use crate::scalar::Scalar;
use crate::tridiagonal::Tridiagonal;

/// y ← α·((A + T)·x)[first .. first + y.len()] + β·y for a sparse A and, perhaps, a tridiagonal T. β = 0 never reads y.
///
/// # Panics
/// When a length is wrong.
pub(crate) fn sparse_rows<T: Scalar>(
    a: &Csr<T>,
    t: Option<&Tridiagonal<T>>,
    first: usize,
    alpha: T,
    x: &[T],
    beta: T,
    y: &mut [T],
) {
    assert!(x.len() == a.ncols() && first + y.len() <= a.nrows(), "lengths of x and y");
    assert!(t.is_none_or(|t| t.nrows() == a.nrows() && a.nrows() == a.ncols()), "size of the three diagonals");
    #[cfg(target_arch = "x86_64")]
    if avx512::sparse_rows(a, t, first, alpha, x, beta, y) {
        return;
    }
    plain(a, t, first, alpha, x, beta, y);
}

/// The same for every scalar and every machine.
fn plain<T: Scalar>(a: &Csr<T>, t: Option<&Tridiagonal<T>>, first: usize, alpha: T, x: &[T], beta: T, y: &mut [T]) {
    let n = a.nrows();
    let (cols, vals) = (a.col_idx(), a.values());
    for ((i, yi), p) in (first..).zip(y.iter_mut()).zip(a.row_ptr()[first..].windows(2)) {
        let row = p[0] as usize..p[1] as usize;
        let mut sum = zero::<T>();
        for (&j, &v) in cols[row.clone()].iter().zip(&vals[row]) {
            sum += v * x[j as usize];
        }
        if let Some(t) = t {
            let below = if i > 0 { t.lower()[i] * x[i - 1] } else { zero() };
            let above = if i + 1 < n { t.upper()[i] * x[i + 1] } else { zero() };
            sum += below + t.diag()[i] * x[i] + above;
        }
        *yi = if beta == zero() { alpha * sum } else { alpha * sum + beta * *yi };
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::any::TypeId;
    use std::arch::x86_64::{
        __m256, __m256d, __m512d, _MM_HINT_T0, _mm_maskz_loadu_epi32, _mm_prefetch, _mm256_add_pd, _mm256_add_ps,
        _mm256_fmadd_pd, _mm256_fmadd_ps, _mm256_hadd_pd, _mm256_hadd_ps, _mm256_mask_storeu_pd, _mm256_mask_storeu_ps,
        _mm256_maskz_loadu_epi32, _mm256_maskz_loadu_pd, _mm256_maskz_loadu_ps, _mm256_mmask_i32gather_pd,
        _mm256_mmask_i32gather_ps, _mm256_mul_pd, _mm256_mul_ps, _mm256_permute2f128_pd, _mm256_permute2f128_ps,
        _mm256_set1_pd, _mm256_set1_ps, _mm256_setzero_pd, _mm256_setzero_ps, _mm512_add_pd, _mm512_fmadd_pd,
        _mm512_mask_i32gather_pd, _mm512_mask_storeu_pd, _mm512_maskz_loadu_pd, _mm512_mul_pd, _mm512_set1_pd,
        _mm512_setzero_pd, _mm512_shuffle_f64x2, _mm512_unpackhi_pd, _mm512_unpacklo_pd,
    };

    use crate::csr::Csr;
    use crate::operator::LinearOperator;
    use crate::scalar::Scalar;
    use crate::tridiagonal::Tridiagonal;

    /// The same slice when T is U.
    fn same<T: 'static, U: 'static>(s: &[T]) -> Option<&[U]> {
        // SAFETY: the two types are one, so the pointer, length and lifetime are those of the slice itself.
        (TypeId::of::<T>() == TypeId::of::<U>())
            .then(|| unsafe { std::slice::from_raw_parts(s.as_ptr().cast::<U>(), s.len()) })
    }

    /// Pointers into a validated matrix and its vectors.
    struct Rows<R> {
        row_ptr: *const u32,
        cols: *const u32,
        values: *const R,
        /// lower, diag, upper; null when there are none.
        diagonals: Option<[*const R; 3]>,
        n: usize,
        x: *const R,
        alpha: R,
        beta: R,
    }

    /// Does the product when the machine and the scalar allow it, and says whether it has.
    pub(super) fn sparse_rows<T: Scalar>(
        a: &Csr<T>,
        t: Option<&Tridiagonal<T>>,
        first: usize,
        alpha: T,
        x: &[T],
        beta: T,
        y: &mut [T],
    ) -> bool {
        let has_features = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi2");
        // Gathers take signed 32-bit indices.
        if !has_features || x.len() > i32::MAX as usize {
            return false;
        }
        // One width for the whole matrix, so that the sums do not depend on the piece of y.
        let short = a.values().len() <= 3 * a.nrows();
        let end = first + y.len();
        let out = y.as_mut_ptr();
        // SAFETY, of all three: the features are there. `sparse_rows` has checked the lengths of x, y and the three
        // diagonals; `Csr` can only be built with increasing row pointers up to the length of its arrays and with
        // columns below ncols = x.len(), and gives nobody write access to either.
        unsafe {
            if let Some(rows) = Rows::<f64>::new(a, t, alpha, x, beta) {
                if short {
                    four_f64(&rows, first, end, out.cast());
                } else {
                    eight_f64(&rows, first, end, out.cast());
                }
            } else if let Some(rows) = Rows::<f32>::new(a, t, alpha, x, beta) {
                eight_f32(&rows, first, end, out.cast());
            } else {
                return false;
            }
        }
        true
    }

    impl<R: Copy + 'static> Rows<R> {
        fn new<T: Scalar>(a: &Csr<T>, t: Option<&Tridiagonal<T>>, alpha: T, x: &[T], beta: T) -> Option<Self> {
            let pointer = |s: &[T]| same::<T, R>(s).map(<[R]>::as_ptr);
            let diagonals = match t {
                None => None,
                Some(t) => Some([pointer(t.lower())?, pointer(t.diag())?, pointer(t.upper())?]),
            };
            Some(Self {
                row_ptr: a.row_ptr().as_ptr(),
                cols: a.col_idx().as_ptr(),
                values: pointer(a.values())?,
                diagonals,
                n: a.nrows(),
                x: pointer(x)?,
                alpha: same::<T, R>(&[alpha])?[0],
                beta: same::<T, R>(&[beta])?[0],
            })
        }
    }

    // SAFETY of the three: as `all_rows`, with the features of their vectors.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,fma,bmi2")]
    unsafe fn four_f64(rows: &Rows<f64>, first: usize, end: usize, y: *mut f64) {
        unsafe { all_rows::<__m256d>(rows, first, end, y) }
    }
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,fma,bmi2")]
    unsafe fn eight_f64(rows: &Rows<f64>, first: usize, end: usize, y: *mut f64) {
        unsafe { all_rows::<__m512d>(rows, first, end, y) }
    }
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,fma,bmi2")]
    unsafe fn eight_f32(rows: &Rows<f32>, first: usize, end: usize, y: *mut f32) {
        unsafe { all_rows::<__m256>(rows, first, end, y) }
    }

    /// SAFETY: `y` points to `end − first` values; the pointers of `rows` are those of a matrix of at least `end` rows
    /// whose columns lie inside `x`; the features of `L` are there.
    #[inline(always)]
    unsafe fn all_rows<L: Lanes>(rows: &Rows<L::Real>, first: usize, end: usize, y: *mut L::Real) {
        unsafe {
            let mut i = first;
            while i + L::W <= end {
                group::<L>(rows, i, L::W, y.add(i - first));
                i += L::W;
            }
            if i < end {
                group::<L>(rows, i, end - i, y.add(i - first));
            }
        }
    }

    /// The low `count` bits.
    #[inline(always)]
    fn low(count: usize) -> u8 {
        ((1u32 << count) - 1) as u8
    }

    /// `count ≤ W` rows from row i. SAFETY: as `all_rows`.
    #[inline(always)]
    unsafe fn group<L: Lanes>(a: &Rows<L::Real>, i: usize, count: usize, y: *mut L::Real) {
        unsafe {
            if L::W == 8 {
                // Two arrays at uneven rates are more than the hardware looks ahead for. Addresses past the end do no
                // harm: a prefetch never faults.
                let ahead = *a.row_ptr.add(i) as usize + 256;
                for line in 0..5 {
                    _mm_prefetch::<_MM_HINT_T0>(a.values.wrapping_add(ahead).cast::<i8>().wrapping_add(64 * line));
                }
                for line in 0..3 {
                    _mm_prefetch::<_MM_HINT_T0>(a.cols.wrapping_add(ahead).cast::<i8>().wrapping_add(64 * line));
                }
            }
            let mut sums = [L::zero(); 8];
            for q in 0..count {
                let (k, end) = (*a.row_ptr.add(i + q) as usize, *a.row_ptr.add(i + q + 1) as usize);
                sums[q] = row::<L>(a, k, end);
            }
            let mut s = L::reduce(&sums);
            let m = low(count);
            if let Some([lower, diag, upper]) = a.diagonals {
                // Row 0 has no column to the left, row n − 1 none to the right: their lanes are not loaded.
                let left = if i == 0 { m & !1 } else { m };
                let right = if i + count == a.n { m & (m >> 1) } else { m };
                s = L::fma(L::load(left, lower.add(i)), L::load(left, a.x.wrapping_add(i).wrapping_sub(1)), s);
                s = L::fma(L::load(m, diag.add(i)), L::load(m, a.x.add(i)), s);
                s = L::fma(L::load(right, upper.add(i)), L::load(right, a.x.wrapping_add(i + 1)), s);
            }
            s = L::mul(L::splat(a.alpha), s);
            if a.beta != L::real_zero() {
                s = L::fma(L::splat(a.beta), L::load(m, y), s);
            }
            L::store(m, y, s);
        }
    }

    /// Products of the entries `k..end` of one row, summed W apart. SAFETY: as `all_rows`.
    #[inline(always)]
    unsafe fn row<L: Lanes>(a: &Rows<L::Real>, k: usize, end: usize) -> L {
        unsafe {
            let m = low((end - k).min(L::W));
            let mut s = L::mul(L::load(m, a.values.add(k)), L::gather(m, a.cols.add(k), a.x));
            let mut k = k + L::W;
            while k < end {
                let m = low((end - k).min(L::W));
                s = L::fma(L::load(m, a.values.add(k)), L::gather(m, a.cols.add(k), a.x), s);
                k += L::W;
            }
            s
        }
    }

    /// A vector of W numbers. SAFETY of all: the features of the implementation; masked lanes are not accessed, all
    /// others must be valid.
    trait Lanes: Copy {
        type Real: Copy + PartialEq;
        const W: usize;
        fn real_zero() -> Self::Real;
        unsafe fn zero() -> Self;
        unsafe fn splat(v: Self::Real) -> Self;
        unsafe fn load(m: u8, p: *const Self::Real) -> Self;
        unsafe fn store(m: u8, p: *mut Self::Real, v: Self);
        /// x[cols[l]] in lane l.
        unsafe fn gather(m: u8, cols: *const u32, x: *const Self::Real) -> Self;
        unsafe fn mul(a: Self, b: Self) -> Self;
        /// a·b + c.
        unsafe fn fma(a: Self, b: Self, c: Self) -> Self;
        /// Lane q of the result is the sum of the lanes of `rows[q]`, by pairs.
        unsafe fn reduce(rows: &[Self; 8]) -> Self;
    }

    macro_rules! lanes {
        ($v:ty, $r:ty, $w:literal, $zero:ident, $splat:ident, $load:ident, $store:ident, $mul:ident, $fma:ident,
         $gather:ident, $reduce:ident) => {
            impl Lanes for $v {
                type Real = $r;
                const W: usize = $w;
                #[inline(always)]
                fn real_zero() -> $r {
                    0.0
                }
                #[inline(always)]
                unsafe fn zero() -> Self {
                    unsafe { $zero() }
                }
                #[inline(always)]
                unsafe fn splat(v: $r) -> Self {
                    unsafe { $splat(v) }
                }
                #[inline(always)]
                unsafe fn load(m: u8, p: *const $r) -> Self {
                    unsafe { $load(m, p) }
                }
                #[inline(always)]
                unsafe fn store(m: u8, p: *mut $r, v: Self) {
                    unsafe { $store(p, m, v) }
                }
                #[inline(always)]
                unsafe fn gather(m: u8, cols: *const u32, x: *const $r) -> Self {
                    unsafe { $gather(m, cols.cast::<i32>(), x) }
                }
                #[inline(always)]
                unsafe fn mul(a: Self, b: Self) -> Self {
                    unsafe { $mul(a, b) }
                }
                #[inline(always)]
                unsafe fn fma(a: Self, b: Self, c: Self) -> Self {
                    unsafe { $fma(a, b, c) }
                }
                #[inline(always)]
                unsafe fn reduce(rows: &[Self; 8]) -> Self {
                    unsafe { $reduce(rows) }
                }
            }
        };
    }

    lanes!(
        __m512d,
        f64,
        8,
        _mm512_setzero_pd,
        _mm512_set1_pd,
        _mm512_maskz_loadu_pd,
        _mm512_mask_storeu_pd,
        _mm512_mul_pd,
        _mm512_fmadd_pd,
        gather_eight_f64,
        reduce_eight_f64
    );
    lanes!(
        __m256d,
        f64,
        4,
        _mm256_setzero_pd,
        _mm256_set1_pd,
        _mm256_maskz_loadu_pd,
        _mm256_mask_storeu_pd,
        _mm256_mul_pd,
        _mm256_fmadd_pd,
        gather_four_f64,
        reduce_four_f64
    );
    lanes!(
        __m256,
        f32,
        8,
        _mm256_setzero_ps,
        _mm256_set1_ps,
        _mm256_maskz_loadu_ps,
        _mm256_mask_storeu_ps,
        _mm256_mul_ps,
        _mm256_fmadd_ps,
        gather_eight_f32,
        reduce_eight_f32
    );

    // Plain functions and no closures below: a closure would not take over the caller's features and would not be
    // inlined. SAFETY of all: as the methods of `Lanes` that they implement.

    #[inline(always)]
    unsafe fn gather_eight_f64(m: u8, cols: *const i32, x: *const f64) -> __m512d {
        unsafe { _mm512_mask_i32gather_pd::<8>(_mm512_setzero_pd(), m, _mm256_maskz_loadu_epi32(m, cols), x) }
    }
    #[inline(always)]
    unsafe fn gather_four_f64(m: u8, cols: *const i32, x: *const f64) -> __m256d {
        unsafe { _mm256_mmask_i32gather_pd::<8>(_mm256_setzero_pd(), m, _mm_maskz_loadu_epi32(m, cols), x) }
    }
    #[inline(always)]
    unsafe fn gather_eight_f32(m: u8, cols: *const i32, x: *const f32) -> __m256 {
        unsafe { _mm256_mmask_i32gather_ps::<4>(_mm256_setzero_ps(), m, _mm256_maskz_loadu_epi32(m, cols), x) }
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
    #[inline(always)]
    unsafe fn reduce_eight_f64(r: &[__m512d; 8]) -> __m512d {
        unsafe {
            let first_four = halves(pairs(r[0], r[1]), pairs(r[2], r[3]));
            halves(first_four, halves(pairs(r[4], r[5]), pairs(r[6], r[7])))
        }
    }
    #[inline(always)]
    unsafe fn reduce_four_f64(r: &[__m256d; 8]) -> __m256d {
        unsafe {
            let (a, b) = (_mm256_hadd_pd(r[0], r[1]), _mm256_hadd_pd(r[2], r[3]));
            _mm256_add_pd(_mm256_permute2f128_pd::<0x20>(a, b), _mm256_permute2f128_pd::<0x31>(a, b))
        }
    }
    #[inline(always)]
    unsafe fn reduce_eight_f32(r: &[__m256; 8]) -> __m256 {
        unsafe {
            let a = _mm256_hadd_ps(_mm256_hadd_ps(r[0], r[1]), _mm256_hadd_ps(r[2], r[3]));
            let b = _mm256_hadd_ps(_mm256_hadd_ps(r[4], r[5]), _mm256_hadd_ps(r[6], r[7]));
            _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{plain, sparse_rows};
    use crate::coo::Coo;
    use crate::csr::Csr;
    use crate::scalar::{RealScalar, Scalar};
    use crate::tridiagonal::Tridiagonal;

    /// Rows of `length(i)` entries each.
    fn matrix<T: Scalar>(n: usize, length: impl Fn(usize) -> usize) -> Csr<T> {
        let mut a = Coo::new(n, n).unwrap();
        for i in 0..n {
            for k in 0..length(i) {
                a.push(i, (7 * i + 3 * k) % n, T::from_parts((i + k) as f64 / 8.0 - 3.0, 0.0)).unwrap();
            }
        }
        a.to_csr().unwrap()
    }

    /// The two kernels agree at every row length, and from any first row: a wrong mask shows at some of them.
    fn agrees<T: Scalar>() {
        let n = 61;
        let x: Vec<T> = (0..n).map(|i| T::from_parts(1.0 / (i + 1) as f64, 0.0)).collect();
        let diagonal = |d: usize, zero_at: usize| -> Vec<T> {
            (0..n).map(|i| T::from_parts(if i == zero_at { 0.0 } else { (i + d) as f64 / 4.0 }, 0.0)).collect()
        };
        let t = Tridiagonal::new(diagonal(1, 0), diagonal(2, n), diagonal(3, n - 1)).unwrap();
        for a in [matrix::<T>(n, |i| i % 20), matrix(n, |i| i % 6)] {
            for t in [None, Some(&t)] {
                for (first, end) in [(0, n), (0, 3), (1, 30), (5, 5), (50, n), (n - 1, n)] {
                    let start: Vec<T> = x[first..end].to_vec();
                    let (mut y, mut expected) = (start.clone(), start);
                    let (alpha, beta) = (T::from_parts(0.5, 0.0), T::from_parts(-1.5, 0.0));
                    sparse_rows(&a, t, first, alpha, &x, beta, &mut y);
                    plain(&a, t, first, alpha, &x, beta, &mut expected);
                    for (i, (&u, &v)) in y.iter().zip(&expected).enumerate() {
                        let error = (u - v).abs();
                        let bound = T::Real::from_f64(400.0) * T::Real::EPSILON;
                        assert!(error <= bound, "row {}: {u} and {v}", first + i);
                    }
                }
            }
        }
    }

    #[test]
    fn agrees_with_plain_code() {
        agrees::<f64>();
        agrees::<f32>();
    }
}
