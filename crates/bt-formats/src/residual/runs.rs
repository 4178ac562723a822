//! The residual of a matrix whose storage holds columns, or diagonals, in one piece: every run adds to consecutive rows at once.
//!
//! The sums of a row are those of `residual.rs`, in the order of the runs; those of so many rows lie side by side in arrays that stay in
//! a cache, so that vectors take several of them. Storage: none beside r. Cost: one pass over A of about twenty flops an entry, a piece of
//! rows after the other, or on all threads.

use std::ops::Range;

use rayon::prelude::*;

use super::{RANGE, Totals, finite_range, least_denominator, modulus, squares_fit, subtract_part};
use crate::operator::{Matrix, Par};
use crate::run::{AHEAD, Run, fetch, lanes, lanes_mut};
use crate::scalar::{self, RealScalar, Scalar, size_and_modulus};

/// Rows whose sums are open at a time.
const ROWS: usize = 512;
/// Diagonals beside the main one up to which eight rows of a band pass through all of their columns.
const NARROW: usize = 88;

/// r ← b − A·x, and the totals of its rows; nothing where A has no runs, a number is not finite, or a row may leave the range of
/// doubles.
#[inline(never)]
pub(crate) fn totals<T: Scalar, A: Matrix<T> + ?Sized>(a: &A, x: &[T], b: &[T], r: Option<&mut [T]>) -> Option<Totals> {
    drop(a.runs_of(0..0)?);
    let (smallest_x, largest_x) = finite_range(x)?;
    finite_range(b)?;
    if largest_x > super::largest_split() {
        return None;
    }
    let mut pieces: Vec<Option<&mut [T]>> = match r {
        Some(r) => r.chunks_mut(ROWS).map(Some).collect(),
        None => (0..b.len().div_ceil(ROWS)).map(|_| None).collect(),
    };
    let piece = |(k, r): (usize, &mut Option<&mut [T]>)| {
        let rows = k * ROWS..((k + 1) * ROWS).min(b.len());
        let runs: Vec<Run<'_, T>> = a.runs_of(rows.clone())?.collect();
        let mut found = None;
        bt_simd::dispatch(Piece { runs: &runs, x, b, rows, r: r.as_deref_mut(), found: &mut found });
        found
    };
    let found: Option<Vec<Found>> = match Par::auto(a.bytes()) {
        Par::Seq => pieces.iter_mut().enumerate().map(piece).collect(),
        Par::Rayon => pieces.par_iter_mut().enumerate().map(piece).collect(),
    };
    let mut all = Found::default();
    for found in found? {
        all.totals = all.totals.and(found.totals);
        all.smallest = all.smallest.min(found.smallest);
        all.least_denominator = all.least_denominator.min(found.least_denominator);
    }
    let in_range = squares_fit::<T>(all.smallest.min(smallest_x))
        && all.least_denominator >= least_denominator::<T>(all.smallest, smallest_x);
    in_range.then_some(all.totals)
}

/// What a piece of the rows has, all of them below the upper end of the range.
struct Found {
    totals: Totals,
    /// The smallest nonzero |re| + |im| of A.
    smallest: f64,
    least_denominator: f64,
}

impl Default for Found {
    fn default() -> Self {
        Self { totals: Totals::default(), smallest: f64::INFINITY, least_denominator: f64::INFINITY }
    }
}

/// Real and imaginary parts of some numbers; no look at the latter where numbers are real.
type Parts<const N: usize> = [[f64; N]; 2];

/// Entries of consecutive rows, what they are multiplied by, and the moduli of that.
struct Products<const N: usize> {
    v: Parts<N>,
    x: Parts<N>,
    moduli: [f64; N],
}

impl<const N: usize> Products<N> {
    /// Each by a number of its own.
    #[inline(always)]
    fn by_each<T: Scalar>(v: Parts<N>, x: &[T; N]) -> Self {
        Self {
            v,
            x: parts(x),
            moduli: std::array::from_fn(|l| size_and_modulus::<T>(x[l].re().to_f64(), x[l].im().to_f64()).1),
        }
    }

    /// All by the same.
    #[inline(always)]
    fn by<T: Scalar>(v: Parts<N>, x: T) -> Self {
        let (re, im) = (x.re().to_f64(), x.im().to_f64());
        Self { v, x: [[re; N], [im; N]], moduli: [size_and_modulus::<T>(re, im).1; N] }
    }
}

/// The sums of some rows, side by side.
struct Open {
    /// Of real parts, and of imaginary ones.
    high: [[f64; ROWS]; 2],
    low: [[f64; ROWS]; 2],
    taken: [f64; ROWS],
    sums: [f64; ROWS],
    denominators: [f64; ROWS],
    entries: [u32; ROWS],
    /// The smallest nonzero moduli of A so far, lane by lane.
    smallest: [f64; 8],
}

impl Open {
    /// r = b, and nothing else yet.
    #[inline(always)]
    fn start<T: Scalar>(&mut self, b: &[T]) {
        let [re, im] = &mut self.high;
        for (i, b) in b.iter().enumerate() {
            re[i] = b.re().to_f64();
            im[i] = b.im().to_f64();
            self.denominators[i] = modulus(*b);
        }
    }

    /// − v·x down a diagonal.
    #[inline(always)]
    fn subtract_diagonal<T: Scalar>(&mut self, fused: bool, at: usize, values: &[T], x: &[T]) {
        let (eights, rest) = values.as_chunks::<8>();
        let (x_eights, x_rest) = x.as_chunks::<8>();
        let mut row = at;
        for (v, x) in eights.iter().zip(x_eights) {
            self.subtract_from::<T, _>(
                fused,
                row,
                1,
                0..1,
                #[inline(always)]
                |_| Products::by_each(parts(v), x),
            );
            row += 8;
        }
        for (v, x) in rest.iter().zip(x_rest) {
            self.subtract_from::<T, _>(
                fused,
                row,
                1,
                0..1,
                #[inline(always)]
                |_| Products::by(parts(&[*v]), *x),
            );
            row += 1;
        }
    }

    /// − v·x for rows of three diagonals, eight at a time but for the first and the last of all.
    #[inline(always)]
    fn subtract_tridiagonal<T: Scalar>(&mut self, fused: bool, rows: &Range<usize>, diagonals: &[&[T]; 3], x: &[T]) {
        let mut row = rows.start;
        while row < rows.end {
            let at = row - rows.start;
            if row > 0 && row + 8 <= rows.end && row + 8 < x.len() {
                self.subtract_from::<T, _>(
                    fused,
                    at,
                    3,
                    0..3,
                    #[inline(always)]
                    |d| Products::by_each(parts::<_, 8>(lanes(diagonals[d], row)), lanes(x, row - 1 + d)),
                );
                row += 8;
            } else {
                let columns = row.saturating_sub(1)..(row + 2).min(x.len());
                self.subtract_from::<T, _>(
                    fused,
                    at,
                    columns.len() as u32,
                    columns,
                    #[inline(always)]
                    |j| Products::by(parts(&[diagonals[j + 1 - row][row]]), x[j]),
                );
                row += 1;
            }
        }
    }

    /// − v·x for columns that begin `stride` numbers after each other, as many of them at a time as streams are read from memory.
    #[inline(always)]
    fn subtract_columns<T: Scalar>(&mut self, fused: bool, rows: Range<usize>, stride: usize, values: &[T], x: &[T]) {
        const STREAMS: usize = 32;
        for (values, x) in values.chunks(STREAMS * stride).zip(x.chunks(STREAMS)) {
            let mut at = 0;
            while rows.len() - at >= 8 {
                self.subtract_tile::<T, 8>(fused, rows.start + at, stride, &values[at..], x);
                at += 8;
            }
            if rows.len() - at >= 4 {
                self.subtract_tile::<T, 4>(fused, rows.start + at, stride, &values[at..], x);
                at += 4;
            }
            if rows.len() - at >= 2 {
                self.subtract_tile::<T, 2>(fused, rows.start + at, stride, &values[at..], x);
                at += 2;
            }
            if rows.len() > at {
                self.subtract_tile::<T, 1>(fused, rows.start + at, stride, &values[at..], x);
            }
        }
    }

    #[inline(always)]
    fn subtract_tile<T: Scalar, const N: usize>(
        &mut self,
        fused: bool,
        at: usize,
        stride: usize,
        values: &[T],
        x: &[T],
    ) {
        self.subtract_from::<T, _>(
            fused,
            at,
            x.len() as u32,
            0..x.len(),
            #[inline(always)]
            |k| Products::by(parts::<_, N>(lanes(values, k * stride)), x[k]),
        );
    }

    /// − v·x for rows of a band: eight at a time pass through all of their columns, at both ends through those that some of them have.
    #[inline(always)]
    fn subtract_band<T: Scalar>(&mut self, fused: bool, rows: &Range<usize>, band: &BandRows<'_, T>, x: &[T]) {
        let eights = rows.len() / 8;
        for k in 0..eights {
            let (at, row) = (8 * k, rows.start + 8 * k);
            let columns = row.saturating_sub(band.kl)..(row + 8 + band.ku).min(band.n);
            (columns.end..columns.end + 8).for_each(|j| fetch(band.values, (band.kl, band.ku), j + AHEAD));
            let all = (row + 7).saturating_sub(band.kl)..(row + band.ku + 1).min(band.n);
            let all = if all.is_empty() { columns.end..columns.end } else { all };
            self.subtract_parts(fused, at, row, columns.start..all.start, band, x);
            self.subtract_from::<T, _>(
                fused,
                at,
                0,
                all.clone(),
                #[inline(always)]
                |j| Products::by(parts::<_, 8>(band.at(row, j)), x[j]),
            );
            self.subtract_parts(fused, at, row, all.end..columns.end, band, x);
        }
        for (at, row) in (8 * eights..rows.len()).zip(rows.start + 8 * eights..) {
            self.subtract_from::<T, _>(
                fused,
                at,
                0,
                band.columns(row),
                #[inline(always)]
                |j| Products::by(parts(band.at::<1>(row, j)), x[j]),
            );
        }
        for (row, entries) in rows.clone().zip(&mut self.entries) {
            *entries += band.columns(row).len() as u32;
        }
    }

    /// − v·x for eight rows of a band, and columns that some of them have.
    #[inline(always)]
    fn subtract_parts<T: Scalar>(
        &mut self,
        fused: bool,
        at: usize,
        row: usize,
        columns: Range<usize>,
        band: &BandRows<'_, T>,
        x: &[T],
    ) {
        self.subtract_from::<T, _>(
            fused,
            at,
            0,
            columns,
            #[inline(always)]
            |j| Products::by(band.part(row, j), x[j]),
        );
    }

    /// − v·x for N rows from `at` on, each of which has so many entries here.
    #[inline(always)]
    fn subtract_from<T: Scalar, const N: usize>(
        &mut self,
        fused: bool,
        at: usize,
        entries: u32,
        columns: Range<usize>,
        numbers: impl Fn(usize) -> Products<N>,
    ) {
        // Copies, which no store below can change: that keeps them in vectors.
        // (`map` over them is a call, and what it returns goes through memory.)
        let (mut re, mut re_low) = (*lanes::<_, N>(&self.high[0], at), *lanes::<_, N>(&self.low[0], at));
        let (mut im, mut im_low) = (*lanes::<_, N>(&self.high[1], at), *lanes::<_, N>(&self.low[1], at));
        let (mut taken, mut sums) = (*lanes::<_, N>(&self.taken, at), *lanes::<_, N>(&self.sums, at));
        let mut denominators = *lanes::<_, N>(&self.denominators, at);
        let mut least = *lanes::<_, N>(&self.smallest, 0);
        for j in columns {
            let Products { v, x, moduli } = numbers(j);
            for l in 0..N {
                let (size, modulus) = size_and_modulus::<T>(v[0][l], v[1][l]);
                let counts = size < least[l] && size > 0.0;
                least[l] = if counts { size } else { least[l] };
                sums[l] += modulus;
                denominators[l] += modulus * moduli[l];
                subtract_part(fused, v[0][l], x[0][l], &mut re[l], &mut re_low[l], &mut taken[l]);
                if !T::IS_REAL {
                    subtract_part(fused, -v[1][l], x[1][l], &mut re[l], &mut re_low[l], &mut taken[l]);
                    subtract_part(fused, v[0][l], x[1][l], &mut im[l], &mut im_low[l], &mut taken[l]);
                    subtract_part(fused, v[1][l], x[0][l], &mut im[l], &mut im_low[l], &mut taken[l]);
                }
            }
        }
        *lanes_mut(&mut self.high[0], at) = re;
        *lanes_mut(&mut self.low[0], at) = re_low;
        if !T::IS_REAL {
            *lanes_mut(&mut self.high[1], at) = im;
            *lanes_mut(&mut self.low[1], at) = im_low;
        }
        *lanes_mut(&mut self.taken, at) = taken;
        *lanes_mut(&mut self.sums, at) = sums;
        *lanes_mut(&mut self.denominators, at) = denominators;
        *lanes_mut(&mut self.smallest, 0) = least;
        self.entries[at..at + N].iter_mut().for_each(|count| *count += entries);
    }

    /// The residuals of `n` rows, and what they have together; nothing where one has left the range at its upper end.
    #[inline(always)]
    fn finish<T: Scalar>(&self, n: usize, mut r: Option<&mut [T]>) -> Option<Found> {
        let limit = 2f64.powi(RANGE.1);
        let zeros = [0.0; 8];
        let (mut norm_r, mut squares, mut norm_a, mut componentwise) = (zeros, zeros, zeros, zeros);
        let mut least = [1.0f64; 8];
        let mut inside = [true; 8];
        for at in (0..n).step_by(8) {
            let part = |p: usize| (lanes::<_, 8>(&self.high[p], at), lanes::<_, 8>(&self.low[p], at));
            let ((high, low), (im_high, im_low)) = (part(0), part(1));
            let (taken, sums) = (lanes::<_, 8>(&self.taken, at), lanes::<_, 8>(&self.sums, at));
            let denominators = lanes::<_, 8>(&self.denominators, at);
            let entries = lanes::<_, 8>(&self.entries, at);
            for l in 0..8 {
                // As `Row::modulus` has it.
                let (re, im) = (high[l] + low[l], im_high[l] + im_low[l]);
                let modulus = if T::IS_REAL { re.abs() } else { scalar::modulus(re, im) };
                let modulus = modulus + (f64::from(entries[l]) + 2.0) * f64::EPSILON * taken[l];
                let larger = |a: f64, b: f64| if b > a { b } else { a };
                inside[l] &= modulus < f64::INFINITY && sums[l] <= limit && denominators[l] <= limit;
                norm_r[l] = larger(norm_r[l], modulus);
                squares[l] += modulus * modulus;
                norm_a[l] = larger(norm_a[l], sums[l]);
                let quotient = modulus / denominators[l];
                // An exact row counts nothing, whatever it divides by.
                componentwise[l] = larger(componentwise[l], if modulus > 0.0 { quotient } else { 0.0 });
                least[l] = if denominators[l] < least[l] { denominators[l] } else { least[l] };
            }
            if let Some(r) = &mut r {
                for (l, r) in r[at..].iter_mut().take(8).enumerate() {
                    *r = T::rounded(high[l] + low[l], im_high[l] + im_low[l]);
                }
            }
        }
        let most = |lanes: [f64; 8]| lanes.into_iter().fold(0.0, f64::max);
        inside.iter().all(|inside| *inside).then(|| Found {
            totals: Totals {
                norm_r: most(norm_r),
                squares: squares.iter().sum(),
                norm_a: most(norm_a),
                componentwise: most(componentwise),
            },
            smallest: self.smallest.into_iter().fold(f64::INFINITY, f64::min),
            least_denominator: least.into_iter().fold(f64::INFINITY, f64::min),
        })
    }
}

/// Storage of a band.
struct BandRows<'a, T> {
    n: usize,
    kl: usize,
    ku: usize,
    values: &'a [T],
}

impl<T: Scalar> BandRows<'_, T> {
    #[inline(always)]
    fn columns(&self, row: usize) -> Range<usize> {
        row.saturating_sub(self.kl)..(row + self.ku + 1).min(self.n)
    }

    /// Column j from `row` on, as if the band were wider: it lies between room for fill and the next.
    #[inline(always)]
    fn at<const N: usize>(&self, row: usize, j: usize) -> &[T; N] {
        let place = (2 * self.kl + self.ku) * j + self.kl + self.ku + row;
        lanes(self.values, place)
    }

    /// Entries (row + l, j), l < 8, zeros outside the band.
    #[inline(always)]
    fn part(&self, row: usize, j: usize) -> Parts<8> {
        const UP_TO: [u64; 16] = [!0, !0, !0, !0, !0, !0, !0, !0, 0, 0, 0, 0, 0, 0, 0, 0];
        const FROM: [u64; 16] = [0, 0, 0, 0, 0, 0, 0, 0, !0, !0, !0, !0, !0, !0, !0, !0];
        // l from j − ku − row on, up to j + kl − row.
        let first = j.saturating_sub(self.ku + row).min(8);
        let count = (j + self.kl + 1).saturating_sub(row).min(8);
        let (up_to, from): (&[u64; 8], &[u64; 8]) = (lanes(&UP_TO, 8 - count), lanes(&FROM, 8 - first));
        let [re, im] = parts(self.at::<8>(row, j));
        let kept = |x: [f64; 8]| std::array::from_fn(|l| f64::from_bits(x[l].to_bits() & up_to[l] & from[l]));
        [kept(re), if T::IS_REAL { im } else { kept(im) }]
    }
}

/// Numbers by their parts, as doubles.
#[inline(always)]
fn parts<T: Scalar, const N: usize>(numbers: &[T; N]) -> Parts<N> {
    [std::array::from_fn(|l| numbers[l].re().to_f64()), std::array::from_fn(|l| numbers[l].im().to_f64())]
}

/// Some rows of A, by all runs that they have.
struct Piece<'a, T: Scalar> {
    runs: &'a [Run<'a, T>],
    x: &'a [T],
    b: &'a [T],
    rows: Range<usize>,
    r: Option<&'a mut [T]>,
    found: &'a mut Option<Found>,
}

impl<T: Scalar> pulp::WithSimd for Piece<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let fused = size_of::<S::f64s>() > size_of::<f64>();
        let Self { runs, x, b, rows, r, found } = self;
        // Here, since what a function returns is copied.
        let mut open = Open {
            high: [[0.0; ROWS]; 2],
            low: [[0.0; ROWS]; 2],
            taken: [0.0; ROWS],
            sums: [0.0; ROWS],
            // Rows that fill up the last eight have a denominator that is nowhere the least.
            denominators: [1.0; ROWS],
            entries: [0; ROWS],
            smallest: [f64::INFINITY; 8],
        };
        open.start(&b[rows.clone()]);
        for run in runs {
            match run {
                Run::Diagonal { row, column, values } => {
                    open.subtract_diagonal(fused, row - rows.start, values, &x[*column..][..values.len()]);
                }
                Run::Columns { row, rows: count, column, stride, values } => {
                    let x = &x[*column..][..values.len().div_ceil(*stride)];
                    open.subtract_columns(fused, row - rows.start..row - rows.start + count, *stride, values, x);
                }
                Run::Tridiagonal { rows: run_rows, diagonals } => {
                    debug_assert_eq!(*run_rows, rows);
                    open.subtract_tridiagonal(fused, &rows, diagonals, x);
                }
                Run::Band { rows: run_rows, n, kl, ku, values } if kl + ku <= NARROW => {
                    debug_assert_eq!(*run_rows, rows);
                    let band = BandRows { n: *n, kl: *kl, ku: *ku, values };
                    open.subtract_band(fused, &rows, &band, x);
                }
                Run::Band { .. } => run.for_each_column(
                    #[inline(always)]
                    |row, j, values| {
                        let at = row - rows.start;
                        open.subtract_columns(fused, at..at + values.len(), values.len(), values, &x[j..=j]);
                    },
                ),
            }
        }
        *found = open.finish(rows.len(), r);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Band, BlockTridiagonal, CouplingKind, Csr, DiagonalKind, HybridLayout, Op, Partition, Tridiagonal, c32, c64,
        certify_with_residual,
    };
    use faer::Mat;

    /// Halves of odd integers on three diagonals.
    fn tridiagonal(n: usize) -> Csr<f64> {
        let of = |i: usize, j: usize| ((i * 7 + j * 3) % 11) as f64 - 5.5;
        let full = Mat::from_fn(n, n, |i, j| if i.abs_diff(j) <= 1 { of(i, j) } else { 0.0 });
        Csr::from_dense(full.as_ref()).unwrap()
    }

    /// With imaginary parts, zeros among them.
    fn with_phases(a: &Csr<f64>) -> Csr<c64> {
        let n = a.row_ptr().len() - 1;
        let entry = |i, j| c64::new(a.get(i, j), a.get(i, j) * (i % 3) as f64);
        Csr::from_dense(Mat::from_fn(n, n, entry).as_ref()).unwrap()
    }

    fn same<T: Scalar, A: Matrix<T>>(a: &A, rows: &Csr<T>, scale: f64) {
        let n = rows.row_ptr().len() - 1;
        assert!(a.runs_of(0..n).is_some());
        let x = Mat::from_fn(n, 1, |i, _| T::rounded((1.0 + (i % 5) as f64 / 3.0) * scale, (i % 7) as f64 * scale));
        let b = Mat::from_fn(n, 1, |i, _| T::rounded(((i % 3) as f64 - 0.3) * scale, (i % 4) as f64 * scale));
        let (mut r, mut by_rows) = (Mat::zeros(n, 1), Mat::zeros(n, 1));
        let c = certify_with_residual(a, Op::Identity, x.as_ref(), b.as_ref(), r.as_mut());
        let expected = certify_with_residual(rows, Op::Identity, x.as_ref(), b.as_ref(), by_rows.as_mut());
        for i in 0..n {
            let (r, expected) = (r[(i, 0)], by_rows[(i, 0)]);
            assert!((r - expected).abs() <= T::Real::EPSILON * expected.abs(), "row {i}: {r} {expected}");
        }
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs();
        assert!(near(c.backward_error, expected.backward_error), "{c:?} {expected:?}");
        assert!(near(c.componentwise_backward_error, expected.componentwise_backward_error), "{c:?} {expected:?}");
        assert!(near(c.relative_residual, expected.relative_residual), "{c:?} {expected:?}");
    }

    #[test]
    fn runs_give_the_certificate_of_rows() {
        for n in [1, 2, 9, 60, 512, 700, 1100] {
            let a = tridiagonal(n);
            let single = a.cast::<f32>();
            same(&Tridiagonal::from_csr(&single).unwrap(), &single, 1.0);
            same(&Band::from_csr(&single).unwrap(), &single, 2f64.powi(40));
            let complex = with_phases(&a);
            for scale in [1.0, 2f64.powi(40), 1e-200] {
                same(&Tridiagonal::from_csr(&complex).unwrap(), &complex, scale);
                same(&Band::from_csr(&complex).unwrap(), &complex, scale);
                same(&Band::from_csr(&complex.cast::<c32>()).unwrap(), &complex.cast(), 1.0);
            }
            // 1e-200: norms whose squares underflow, and the rows are summed again with exponents.
            for scale in [1.0, 2f64.powi(40), 1e-200] {
                same(&Tridiagonal::from_csr(&a).unwrap(), &a, scale);
                same(&Band::from_csr(&a).unwrap(), &a, scale);
                let sizes = (0..n).map(|i| 1 + i % 4).scan(0, |sum, k| {
                    let size = k.min(n - *sum);
                    *sum += size;
                    (size > 0).then_some(size)
                });
                let partition = Partition::from_sizes(sizes).unwrap();
                let dense = HybridLayout::DENSE;
                same(&BlockTridiagonal::from_csr(&a, partition, dense).unwrap(), &a, scale);
            }
        }
    }

    #[test]
    fn couplings_beside_three_diagonals_are_runs_too() {
        // Some rows have no coupling, some one, some two; beyond the rows that are added together.
        for (size, blocks) in [(1, 9), (3, 4), (5, 7), (16, 40)] {
            let n = size * blocks;
            let of = |i: usize, j: usize| ((i * 7 + j * 3) % 11) as f64 - 5.5;
            let full = Mat::from_fn(n, n, |i, j| match i.abs_diff(j) {
                0 => of(i, j),
                1 if i / size == j / size => of(i, j),
                d if d == size && i % 3 != 1 => of(i, j),
                d if size > 2 && d == size - 1 && i / size != j / size && i % 5 == 0 => of(i, j),
                _ => 0.0,
            });
            let a = Csr::from_dense(full.as_ref()).unwrap();
            for couplings in [CouplingKind::Coo, CouplingKind::Csr, CouplingKind::Diagonals] {
                let layout = HybridLayout { diagonal: Some(DiagonalKind::Tridiagonal), couplings: Some(couplings) };
                let partition = Partition::uniform(n, size).unwrap();
                let hybrid = BlockTridiagonal::from_csr(&a, partition, layout).unwrap();
                for scale in [1.0, 2f64.powi(40), 1e-200] {
                    same(&hybrid, &a, scale);
                }
                let single = a.cast::<f32>();
                let hybrid = BlockTridiagonal::from_csr(&single, hybrid.partition().clone(), layout).unwrap();
                same(&hybrid, &single, 1.0);
            }
        }
    }

    /// Bands and blocks wider than the rows whose sums are open together.
    #[test]
    fn columns_are_cut_where_a_piece_of_rows_ends() {
        let (n, width) = (1300, 600);
        let inside = |i: usize, j: usize| i.abs_diff(j) <= width && (i + 2 * j).is_multiple_of(7);
        let full =
            Mat::from_fn(n, n, |i, j| if inside(i, j) || i == j { ((i * 5 + j) % 9) as f64 - 3.25 } else { 0.0 });
        let a = Csr::from_dense(full.as_ref()).unwrap();
        same(&Band::from_csr(&a).unwrap(), &a, 1.0);
        let dense = HybridLayout::DENSE;
        let partition = Partition::from_sizes([610, 601, 89]).unwrap();
        same(&BlockTridiagonal::from_csr(&a, partition, dense).unwrap(), &a, 1.0);
    }

    #[test]
    fn a_row_at_an_end_of_the_range_leaves_them_all_to_exponents() {
        // In the second piece of rows: one entry, and its x.
        let with = |entry: f64, x: f64| {
            let (mut lower, mut diag, upper) = (vec![0.0; 600], vec![1.0; 600], vec![0.0; 600]);
            (lower[4], diag[550]) = (0.5, entry);
            let a = Tridiagonal::new(lower, diag, upper).unwrap();
            let mut xs = vec![1.0; 600];
            xs[550] = x;
            totals(&a, &xs, &[0.0; 600], None)
        };
        let inside = with(1.0, 1.0).unwrap();
        assert_eq!((inside.norm_r, inside.norm_a, inside.componentwise), (1.5, 1.5, 1.0));
        assert_eq!(inside.squares, 599.0 + 2.25);
        assert!(with(2f64.powi(500), 2f64.powi(480)).is_some());
        assert!(with(2f64.powi(500), 2f64.powi(495)).is_none());
        assert!(with(2f64.powi(-450), 2f64.powi(-440)).is_some());
        assert!(with(2f64.powi(-450), 2f64.powi(-460)).is_none());
    }

    #[test]
    fn exact_rows_have_no_error_whatever_they_divide_by() {
        let a = Tridiagonal::new(vec![0.0; 9], vec![3.0; 9], vec![0.0; 9]).unwrap();
        let (mut x, mut b) = ([1.0; 9], [3.0; 9]);
        (x[4], b[4]) = (0.0, 0.0);
        let found = totals(&a, &x, &b, None).unwrap();
        assert_eq!((found.norm_r, found.componentwise, found.norm_a), (0.0, 0.0, 3.0));
    }

    #[test]
    fn what_is_not_finite_has_no_certificate() {
        let mut a = Band::from_csr(&tridiagonal(9)).unwrap();
        *a.get_mut(3, 4) = f64::NAN;
        let x = Mat::from_fn(9, 1, |_, _| 1.0);
        assert_eq!(crate::certify(&a, Op::Identity, x.as_ref(), x.as_ref()).backward_error, f64::INFINITY);
    }
}
