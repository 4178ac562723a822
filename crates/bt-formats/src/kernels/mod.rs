//! Kernels of y ← α·A·x + β·y with AVX-512, each beside plain code for every machine and scalar, and memory in huge pages.
//!
//! A matrix with a handful of entries a row costs a loop in plain code one mispredicted branch a row, some 20 cycles,
//! and gathers cost four times more on some machines than on others. None of the three kernels does either:
//!
//! * `compressed`: compressed rows. Products of entries go to a small buffer, eight loads of x at a time; then each row
//!   is one masked load from it, and eight rows are transposed and summed together.
//! * `slices`: compressed rows with an index by diagonals ([`Csr::index_by_diagonals`]). Eight rows of values are spread
//!   to the lanes of their diagonals and transposed; x is then read in consecutive pieces.
//! * `short_diagonals`: the couplings of hybrid storage by diagonals of eight rows, with the three diagonals.
//!
//! The sum of a row is a fixed tree that depends on the row alone, not on where in y it stands.
//!
//! Traffic of a product, s = size of T: 2·s·n bytes for x and y (3·s·n where y is short enough to be read into the
//! caches before it is written), 3·s·n for three diagonals, and the bytes of the sparse storage.
//!
//! | file | case |
//! |---|---|
//! | `compressed.rs` | compressed rows |
//! | `slices.rs` | compressed rows with an index by diagonals |
//! | `short_diagonals.rs` | couplings by diagonals of eight rows |
//! | `lanes.rs` | what these share: vectors of eight numbers, and how the sums of eight rows get into y |
//! | `memory.rs` | no kernel: large arrays in huge pages |

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod compressed;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod memory;
#[cfg(target_arch = "x86_64")]
mod short_diagonals;
#[cfg(target_arch = "x86_64")]
mod slices;

use std::iter::once;

pub(crate) use memory::give_back;
pub use memory::{HugePages, ask_for_huge_pages, zeros};

use crate::block_tridiagonal::ShortDiagonals;
use crate::csr::Csr;
use crate::operator::{LinearOperator, zero};
use crate::scalar::Scalar;
use crate::tridiagonal::Tridiagonal;

/// Asks for the cache line of `values[at]`, where there is such a value, into the second-level cache, and does not wait for
/// it. For sweeps along more streams than the hardware looks ahead on.
#[inline(always)]
pub fn prefetch<T>(values: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(v) = values.get(at) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch neither faults nor changes anything that can be seen, and SSE is in every x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(v).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, at);
}

/// Consecutive rows of a product.
pub(crate) struct Part<'a, T> {
    /// The first one.
    pub first: usize,
    /// What β multiplies, where that is not y.
    pub b: Option<&'a [T]>,
    pub y: &'a mut [T],
}

impl<T: Scalar> Part<'_, T> {
    fn check(&self, rows: usize) {
        assert!(self.first + self.y.len() <= rows, "length of y");
        assert!(self.b.is_none_or(|b| b.len() == self.y.len()), "length of b");
    }

    /// b in the place of y.
    pub fn in_place(self) -> Self {
        if let Some(b) = self.b {
            self.y.copy_from_slice(b);
        }
        Self { b: None, ..self }
    }
}

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
    sparse_parts(a, t, alpha, x, beta, once(Part { first, b: None, y }));
}

/// The same for several y, α·(…)·x + β·b where there is a b.
pub(crate) fn sparse_parts<'y, T: Scalar>(
    a: &Csr<T>,
    t: Option<&Tridiagonal<T>>,
    alpha: T,
    x: &[T],
    beta: T,
    parts: impl Iterator<Item = Part<'y, T>>,
) {
    assert!(x.len() == a.ncols(), "length of x");
    assert!(t.is_none_or(|t| t.nrows() == a.nrows() && a.nrows() == a.ncols()), "size of the three diagonals");
    let parts = parts.inspect(|part| part.check(a.nrows()));
    #[cfg(target_arch = "x86_64")]
    if avx512::knows::<T>() {
        return avx512::sparse_parts(a, t, alpha, x, beta, parts);
    }
    for Part { first, y, .. } in parts.map(Part::in_place) {
        plain(a, t, first, alpha, x, beta, y);
    }
}

/// The same for every scalar and every machine.
fn plain<T: Scalar>(a: &Csr<T>, t: Option<&Tridiagonal<T>>, first: usize, alpha: T, x: &[T], beta: T, y: &mut [T]) {
    let (cols, vals) = (a.col_idx(), a.values());
    for ((i, yi), p) in (first..).zip(y.iter_mut()).zip(a.row_ptr()[first..].windows(2)) {
        let row = p[0] as usize..p[1] as usize;
        let mut sum = zero::<T>();
        for (&j, &v) in cols[row.clone()].iter().zip(&vals[row]) {
            sum += v * x[j as usize];
        }
        if let Some(t) = t {
            sum += tridiagonal_row(t, i, x);
        }
        *yi = if beta == zero() { alpha * sum } else { alpha * sum + beta * *yi };
    }
}

/// y ← α·((A + T)·x)[first .. first + y.len()] + β·y for an A by short diagonals and, perhaps, a tridiagonal T.
/// β = 0 never reads y.
///
/// # Panics
/// When a length is wrong.
#[inline(never)]
pub(crate) fn short_diagonal_rows<T: Scalar>(
    a: &ShortDiagonals<T>,
    t: Option<&Tridiagonal<T>>,
    first: usize,
    alpha: T,
    x: &[T],
    beta: T,
    y: &mut [T],
) {
    short_diagonal_parts(a, t, alpha, x, beta, once(Part { first, b: None, y }));
}

/// The same for several y, α·(…)·x + β·b where there is a b.
pub(crate) fn short_diagonal_parts<'y, T: Scalar>(
    a: &ShortDiagonals<T>,
    t: Option<&Tridiagonal<T>>,
    alpha: T,
    x: &[T],
    beta: T,
    parts: impl Iterator<Item = Part<'y, T>>,
) {
    assert!(x.len() == a.n(), "length of x");
    assert!(t.is_none_or(|t| t.nrows() == a.n()), "size of the three diagonals");
    let parts = parts.inspect(|part| part.check(a.n()));
    #[cfg(target_arch = "x86_64")]
    if avx512::knows::<T>() {
        return avx512::short_diagonal_parts(a, t, alpha, x, beta, parts);
    }
    for Part { first, y, .. } in parts.map(Part::in_place) {
        a.plain_rows(t, first, alpha, x, beta, y);
    }
}

/// Row i of T times x.
#[inline(always)]
pub(crate) fn tridiagonal_row<T: Scalar>(t: &Tridiagonal<T>, i: usize, x: &[T]) -> T {
    let below = if i > 0 { t.lower()[i] * x[i - 1] } else { zero() };
    let above = if i + 1 < x.len() { t.upper()[i] * x[i + 1] } else { zero() };
    below + t.diag()[i] * x[i] + above
}

/// The way from checked slices of any scalar to the kernels.
#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::any::TypeId;
    use std::arch::x86_64::{__m256, __m512d};
    use std::sync::LazyLock;

    use bt_simd::Isa;

    use super::Part;
    use super::compressed::CompressedRows;
    use super::lanes::{Job, Lanes};
    use super::short_diagonals::DiagonalSlices;
    use super::slices::IndexedRows;
    use crate::block_tridiagonal::ShortDiagonals;
    use crate::csr::Csr;
    use crate::operator::LinearOperator;
    use crate::scalar::Scalar;
    use crate::tridiagonal::Tridiagonal;

    /// Some sparse rows as pointers.
    pub(super) trait Rows {
        type Real: Copy + PartialEq + 'static;
        /// The product. SAFETY: the features of `has_features`; the pointers are those of a checked matrix of at least
        /// `job.end` rows whose columns lie inside `job.x`, and the job's those of checked slices.
        unsafe fn run<L: Lanes<Real = Self::Real>, const STREAM: bool>(&self, job: &Job<Self::Real>);
    }

    /// A pointer to the same slice when T is U.
    pub(super) fn same<T: 'static, U: 'static>(s: &[T]) -> Option<*const U> {
        (TypeId::of::<T>() == TypeId::of::<U>()).then(|| s.as_ptr().cast::<U>())
    }

    /// Asked for once: short rows are many.
    fn has_features() -> bool {
        static FOUND: LazyLock<bool> = LazyLock::new(|| {
            is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt")
        });
        *FOUND && Isa::in_use() == Isa::Avx512
    }

    /// Whether the machine has the instructions, and the scalar goes into them.
    pub(super) fn knows<T: 'static>() -> bool {
        let is = |id| TypeId::of::<T>() == id;
        (is(TypeId::of::<f64>()) || is(TypeId::of::<f32>())) && has_features()
    }

    /// y ← α·((A + T)·x)[first..] + β·y.
    #[derive(Clone, Copy)]
    struct Term<'a, T> {
        t: Option<&'a Tridiagonal<T>>,
        n: usize,
        alpha: T,
        x: &'a [T],
        beta: T,
    }

    impl<T: Scalar> Term<'_, T> {
        /// As pointers, when T is R.
        #[inline(always)]
        fn job<R: Copy + 'static>(&self, Part { first, b, y }: Part<'_, T>) -> Option<Job<R>> {
            let diagonals = match self.t {
                None => None,
                Some(t) => Some([same(t.lower())?, same(t.diag())?, same(t.upper())?]),
            };
            // SAFETY: T is R where `same` gives a pointer.
            let value = |v: T| same::<T, R>(&[v]).map(|p| unsafe { *p });
            let length = y.len();
            let y = y.as_mut_ptr();
            Some(Job {
                n: self.n,
                first,
                end: first + length,
                alpha: value(self.alpha)?,
                x: same(self.x)?,
                beta: value(self.beta)?,
                b: b.map_or(y.cast_const(), <[T]>::as_ptr).cast(),
                y: y.cast(),
                diagonals,
            })
        }

        /// The products, where [`knows`] says that they can be had.
        fn run<'y, A, B>(&self, double: Option<A>, single: Option<B>, parts: impl Iterator<Item = Part<'y, T>>)
        where
            A: Rows<Real = f64>,
            B: Rows<Real = f32>,
        {
            // SAFETY: the features are there, and the callers have checked the lengths.
            if let Some(rows) = double {
                unsafe { f64_rows(&rows, parts.filter_map(|part| self.job(part))) }
            } else if let Some(rows) = single {
                unsafe { f32_rows(&rows, parts.filter_map(|part| self.job(part))) }
            }
        }
    }

    // SAFETY of both: as `Rows::run`.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,fma,bmi2,popcnt")]
    unsafe fn f64_rows<A: Rows<Real = f64>>(rows: &A, jobs: impl Iterator<Item = Job<f64>>) {
        for job in jobs {
            unsafe { if job.streams() { rows.run::<__m512d, true>(&job) } else { rows.run::<__m512d, false>(&job) } }
        }
    }
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,fma,bmi2,popcnt")]
    unsafe fn f32_rows<A: Rows<Real = f32>>(rows: &A, jobs: impl Iterator<Item = Job<f32>>) {
        for job in jobs {
            unsafe { if job.streams() { rows.run::<__m256, true>(&job) } else { rows.run::<__m256, false>(&job) } }
        }
    }

    pub(super) fn sparse_parts<'y, T: Scalar>(
        a: &Csr<T>,
        t: Option<&Tridiagonal<T>>,
        alpha: T,
        x: &[T],
        beta: T,
        parts: impl Iterator<Item = Part<'y, T>>,
    ) {
        let term = Term { t, n: a.nrows(), alpha, x, beta };
        match a.slice_index() {
            Some(index) => term.run(IndexedRows::new(a, index), IndexedRows::new(a, index), parts),
            None => term.run(CompressedRows::new(a), CompressedRows::new(a), parts),
        }
    }

    pub(super) fn short_diagonal_parts<'y, T: Scalar>(
        a: &ShortDiagonals<T>,
        t: Option<&Tridiagonal<T>>,
        alpha: T,
        x: &[T],
        beta: T,
        parts: impl Iterator<Item = Part<'y, T>>,
    ) {
        let term = Term { t, n: a.n(), alpha, x, beta };
        term.run(DiagonalSlices::new(a), DiagonalSlices::new(a), parts);
    }
}

#[cfg(test)]
mod tests {
    use super::{plain, short_diagonal_rows, sparse_rows};
    use crate::block_tridiagonal::{BlockTridiagonal, CouplingKind, Couplings, HybridLayout};
    use crate::coo::Coo;
    use crate::csr::Csr;
    use crate::partition::Partition;
    use crate::scalar::{RealScalar, Scalar};
    use crate::tridiagonal::Tridiagonal;

    /// Rows of `length(i)` entries each.
    fn matrix<T: Scalar>(n: usize, length: impl Fn(usize) -> usize) -> Csr<T> {
        let mut a = Coo::new(n, n).unwrap();
        for i in 0..n {
            for k in 0..length(i) {
                a.push(i, (7 * i + 3 * k) % n, T::rounded((i + k) as f64 / 8.0 - 3.0, 0.0)).unwrap();
            }
        }
        a.to_csr().unwrap()
    }

    /// The two kernels agree at every row length, and from any first row: a wrong mask shows at some of them.
    fn agrees<T: Scalar>() {
        let n = 61;
        let x: Vec<T> = (0..n).map(|i| T::rounded(1.0 / (i + 1) as f64, 0.0)).collect();
        let diagonal = |d: usize, zero_at: usize| -> Vec<T> {
            (0..n).map(|i| T::rounded(if i == zero_at { 0.0 } else { (i + d) as f64 / 4.0 }, 0.0)).collect()
        };
        let t = Tridiagonal::new(diagonal(1, 0), diagonal(2, n), diagonal(3, n - 1)).unwrap();
        for a in [matrix::<T>(n, |i| i % 20), matrix(n, |i| i % 6)] {
            for t in [None, Some(&t)] {
                for (first, end) in [(0, n), (0, 3), (1, 30), (5, 5), (50, n), (n - 1, n)] {
                    let start: Vec<T> = x[first..end].to_vec();
                    let (mut y, mut expected) = (start.clone(), start);
                    let (alpha, beta) = (T::rounded(0.5, 0.0), T::rounded(-1.5, 0.0));
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

    /// As above, for the couplings of blocks of 1 to 13 rows by short diagonals: a wrong mask, cut or value pointer shows.
    fn diagonals_agree<T: Scalar>() {
        let partition = Partition::from_sizes((0..12).map(|j| 1 + j * 7 % 13)).unwrap();
        let n = partition.n();
        let number = |k: usize| T::rounded((k % 64) as f64 / 8.0 - 3.0, 0.0);
        let mut a = Coo::new(n, n).unwrap();
        for i in 0..n {
            for c in 0..n {
                let coupled = partition.block_of(i).abs_diff(partition.block_of(c)) == 1;
                if i == c || coupled && (c + 2 * i) % 5 < 2 {
                    a.push(i, c, number(17 * i + c)).unwrap();
                }
            }
        }
        let layout = HybridLayout { diagonal: None, couplings: Some(CouplingKind::Diagonals) };
        let a = BlockTridiagonal::from_csr(&a.to_csr().unwrap(), partition, layout).unwrap();
        let Couplings::Diagonals(d) = a.couplings() else { panic!("diagonals were demanded") };
        let x: Vec<T> = (0..n).map(|i| T::rounded(1.0 / (i + 1) as f64, 0.0)).collect();
        let diagonal = |k: usize, zero_at: usize| -> Vec<T> {
            (0..n).map(|i| if i == zero_at { T::zero() } else { number(i + k) }).collect()
        };
        let t = Tridiagonal::new(diagonal(1, 0), diagonal(2, n), diagonal(3, n - 1)).unwrap();
        for t in [None, Some(&t)] {
            for first in 0..n {
                for end in first..=n {
                    let (mut y, mut expected) = (x[first..end].to_vec(), x[first..end].to_vec());
                    let (alpha, beta) = (T::rounded(0.5, 0.0), T::rounded(-1.5, 0.0));
                    short_diagonal_rows(d, t, first, alpha, &x, beta, &mut y);
                    d.plain_rows(t, first, alpha, &x, beta, &mut expected);
                    for (i, (&u, &v)) in y.iter().zip(&expected).enumerate() {
                        let bound = T::Real::from_f64(400.0) * T::Real::EPSILON;
                        assert!((u - v).abs() <= bound, "{first}..{end}, row {}: {u} and {v}", first + i);
                    }
                }
            }
        }
    }

    #[test]
    fn agrees_with_plain_code() {
        agrees::<f64>();
        agrees::<f32>();
        diagonals_agree::<f64>();
        diagonals_agree::<f32>();
    }
}
