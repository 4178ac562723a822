//! What one pass tells of a matrix that has no rows to read, of all that choosing a method for it asks for.

use std::ops::Range;

use rayon::prelude::*;

use crate::operator::{Matrix, Par};
use crate::run::{Run, lanes, lanes_mut};
use crate::scalar::{RealScalar, Scalar, size_and_modulus};

/// Rows that are open at a time: what is known of them stays in a cache.
const ROWS: usize = 512;
const LANES: usize = 8;

/// Sizes |re v| + |im v| of the entries of a matrix; a smallest is infinite where there is none.
///
/// ```
/// use bt_formats::{Extremes, Tridiagonal};
/// // [ 4 −1    ]
/// // [ 2  2  0 ]
/// // [    1 −3 ]
/// let a = Tridiagonal::new(vec![0.0, 2.0, 1.0], vec![4.0, 2.0, -3.0], vec![-1.0, 0.0, 0.0])?;
/// let found = Extremes::of(&a);
/// assert!(found.are_finite && found.margin == 0.0);
/// assert_eq!((found.sizes, found.row_sizes, found.column_sizes), ((1.0, 4.0), (2.0, 4.0), (2.0, 4.0)));
/// # Ok::<(), bt_formats::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Extremes {
    /// Whether all entries are finite, and all of them together are.
    pub are_finite: bool,
    /// Smallest and largest size of a nonzero.
    pub sizes: (f64, f64),
    /// Smallest and largest of the largest sizes in a row.
    pub row_sizes: (f64, f64),
    /// Smallest and largest of the largest sizes in a column.
    pub column_sizes: (f64, f64),
    /// minᵢ (|aᵢᵢ| − Σ |aᵢⱼ|, j ≠ i), −∞ where that is no number: at least 0 where the diagonal dominates by rows, weakly, and then a lower bound of
    /// 1/‖A⁻¹‖∞ (J. M. Varah, Linear Algebra Appl. 11 (1975) 3–5, doi:10.1016/0024-3795(75)90112-3).
    pub margin: f64,
}

impl Extremes {
    /// One pass over the storage of `a`, on all threads where it is long.
    #[inline(never)]
    pub fn of<T: Scalar, A: Matrix<T> + ?Sized>(a: &A) -> Self {
        let n = a.nrows();
        let piece = |first: usize| {
            let rows = first..(first + ROWS).min(n);
            let runs: Vec<Run<'_, T>> = a.runs_of(rows.clone())?.collect();
            Some(found_in(rows, &runs))
        };
        let pieces: Option<Vec<Piece>> = match Par::auto(a.bytes()) {
            Par::Seq => (0..n).step_by(ROWS).map(piece).collect(),
            Par::Rayon => (0..n.div_ceil(ROWS)).into_par_iter().map(|k| piece(k * ROWS)).collect(),
        };
        Self::joined(a.ncols(), &pieces.unwrap_or_else(|| by_entries(a)))
    }

    fn joined(ncols: usize, pieces: &[Piece]) -> Self {
        let mut sums = 0.0;
        let (mut sizes, mut rows, mut margin) = (NONE, NONE, f64::INFINITY);
        for piece in pieces {
            sums += piece.sum;
            sizes = both(sizes, piece.sizes);
            rows = both(rows, piece.rows);
            margin = margin.min(piece.margin);
        }
        Self { are_finite: sums.is_finite(), sizes, row_sizes: rows, column_sizes: column_sizes(ncols, pieces), margin }
    }
}

/// Smallest and largest of the largest sizes in a column, of which pieces have parts. Those of a column that no later piece has
/// are put together once: only the others are kept.
fn column_sizes(ncols: usize, pieces: &[Piece]) -> (f64, f64) {
    let (mut found, mut first) = (NONE, 0);
    // Of columns `first`, `first` + 1 and so on.
    let mut open: Vec<f64> = Vec::new();
    // Where the columns of the pieces after each begin.
    let mut later: Vec<usize> = vec![ncols; pieces.len()];
    for k in (1..pieces.len()).rev() {
        later[k - 1] = later[k].min(pieces[k].first_column);
    }
    for (piece, &next) in pieces.iter().zip(&later) {
        let end = (piece.first_column + piece.columns.len()).max(next);
        open.resize(open.len().max(end - first), 0.0);
        let part = &mut open[piece.first_column - first..];
        part.iter_mut().zip(&piece.columns).for_each(|(most, &size)| *most = larger(*most, size));
        let done = open.drain(..next - first);
        found = both(found, extent(done.as_slice()));
        first = next;
    }
    found
}

/// What holds of no number.
const NONE: (f64, f64) = (f64::INFINITY, 0.0);

fn both((least, most): (f64, f64), (also_least, also_most): (f64, f64)) -> (f64, f64) {
    (least.min(also_least), most.max(also_most))
}

fn extent(sizes: &[f64]) -> (f64, f64) {
    let (mut least, mut most) = ([NONE.0; LANES], [NONE.1; LANES]);
    let (eights, rest) = sizes.as_chunks::<LANES>();
    for eight in eights {
        for l in 0..LANES {
            least[l] = if eight[l] < least[l] { eight[l] } else { least[l] };
            most[l] = larger(most[l], eight[l]);
        }
    }
    let lanes = least.into_iter().zip(most).chain(rest.iter().map(|&size| (size, size)));
    lanes.fold(NONE, both)
}

#[inline(always)]
fn larger(a: f64, b: f64) -> f64 {
    if b > a { b } else { a }
}

/// What some rows tell.
struct Piece {
    sum: f64,
    sizes: (f64, f64),
    rows: (f64, f64),
    margin: f64,
    first_column: usize,
    /// The largest sizes, from that column on.
    columns: Vec<f64>,
}

fn found_in<T: Scalar>(rows: Range<usize>, runs: &[Run<'_, T>]) -> Piece {
    let columns = runs.iter().map(Run::columns);
    let columns = columns.reduce(|all, c| all.start.min(c.start)..all.end.max(c.end)).unwrap_or_default();
    let mut open = Open {
        first_row: rows.start,
        first_column: columns.start,
        rows: [0.0; ROWS],
        beyond: [0.0; ROWS],
        columns: vec![0.0; columns.len()],
        sums: [0.0; LANES],
        least: [f64::INFINITY; LANES],
    };
    bt_simd::dispatch(Reading { open: &mut open, runs });
    let (largest, beyond) = (&open.rows[..rows.len()], &open.beyond[..rows.len()]);
    let rows = extent(largest);
    Piece {
        sum: open.sums.iter().sum(),
        sizes: (open.least.iter().copied().fold(f64::INFINITY, f64::min), rows.1),
        rows,
        margin: margin_of(beyond),
        first_column: columns.start,
        columns: open.columns,
    }
}

/// The same of a matrix without runs: entry by entry.
fn by_entries<T: Scalar, A: Matrix<T> + ?Sized>(a: &A) -> Vec<Piece> {
    let (mut rows, mut columns) = (vec![0.0f64; a.nrows()], vec![0.0f64; a.ncols()]);
    let mut beyond = vec![0.0f64; a.nrows()];
    let (mut sum, mut least) = (0.0, f64::INFINITY);
    a.for_each_entry(&mut |i, j, v| {
        let (size, modulus) = sizes_of(v);
        sum += size;
        least = if size < least && size > 0.0 { size } else { least };
        rows[i] = larger(rows[i], size);
        columns[j] = larger(columns[j], size);
        beyond[i] += if i == j { -modulus } else { modulus };
    });
    let rows = extent(&rows);
    vec![Piece { sum, sizes: (least, rows.1), rows, margin: margin_of(&beyond), first_column: 0, columns }]
}

/// The least |aᵢᵢ| − Σ |aᵢⱼ|, of the negatives; −∞ where there is a NaN.
fn margin_of(beyond: &[f64]) -> f64 {
    beyond.iter().fold(f64::INFINITY, |least, &sum| if sum.is_nan() { f64::NEG_INFINITY } else { least.min(-sum) })
}

/// |re v| + |im v|, and |v|.
#[inline(always)]
fn sizes_of<T: Scalar>(v: T) -> (f64, f64) {
    size_and_modulus::<T>(v.re().to_f64(), v.im().to_f64())
}

/// What is known of the rows so far.
struct Open {
    first_row: usize,
    first_column: usize,
    /// Largest sizes.
    rows: [f64; ROWS],
    /// Σ |aᵢⱼ| beside the diagonal, less |aᵢᵢ|.
    beyond: [f64; ROWS],
    columns: Vec<f64>,
    sums: [f64; LANES],
    /// Of nonzeros.
    least: [f64; LANES],
}

struct Reading<'a, T> {
    open: &'a mut Open,
    runs: &'a [Run<'a, T>],
}

impl<T: Scalar> pulp::WithSimd for Reading<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self { open, runs } = self;
        for run in runs {
            for (row, column, values) in run.diagonals() {
                open.read_diagonal(row, column, values);
            }
            run.for_each_column(
                #[inline(always)]
                |row, column, values| open.read_column(row, column, values),
            );
        }
    }
}

impl Open {
    #[inline(always)]
    fn read_column<T: Scalar>(&mut self, row: usize, column: usize, values: &[T]) {
        let mut at = row - self.first_row;
        let mut largest = [0.0f64; LANES];
        let (eights, rest) = values.as_chunks::<LANES>();
        for eight in eights {
            self.read(at, eight, 1.0, &mut largest);
            at += LANES;
        }
        let (fours, ones) = rest.as_chunks::<4>();
        let [first, second] = largest.as_chunks_mut::<4>().0 else { unreachable!("eight lanes") };
        for four in fours {
            self.read(at, four, 1.0, first);
            at += 4;
        }
        let mut most: [f64; 4] = std::array::from_fn(|l| larger(first[l], second[l]));
        for one in ones {
            self.read(at, std::array::from_ref(one), 1.0, most.first_chunk_mut().expect("four lanes"));
            at += 1;
        }
        let of_column = &mut self.columns[column - self.first_column];
        *of_column = larger(*of_column, larger(larger(most[0], most[1]), larger(most[2], most[3])));
        if let Some(&v) = column.checked_sub(row).and_then(|k| values.get(k)) {
            self.beyond[column - self.first_row] -= 2.0 * sizes_of(v).1;
        }
    }

    #[inline(always)]
    fn read_diagonal<T: Scalar>(&mut self, row: usize, column: usize, values: &[T]) {
        let at = row - self.first_row;
        let sign = if row == column { -1.0 } else { 1.0 };
        let mut columns = std::mem::take(&mut self.columns);
        let of_values = &mut columns[column - self.first_column..][..values.len()];
        let (eights, rest) = values.as_chunks::<LANES>();
        let (columns_eights, columns_rest) = of_values.as_chunks_mut::<LANES>();
        for (k, (eight, largest)) in eights.iter().zip(columns_eights).enumerate() {
            self.read(at + LANES * k, eight, sign, largest);
        }
        let at = at + LANES * eights.len();
        for (k, (&v, largest)) in rest.iter().zip(columns_rest).enumerate() {
            self.read(at + k, &[v], sign, std::array::from_mut(largest));
        }
        self.columns = columns;
    }

    /// Entries of N rows from `at` on; `largest` are those of their columns, or of parts of one.
    #[inline(always)]
    fn read<T: Scalar, const N: usize>(&mut self, at: usize, values: &[T; N], sign: f64, largest: &mut [f64; N]) {
        // Copies, which no store below can change: that keeps them in vectors.
        let (mut sums, mut least) = (*lanes::<_, N>(&self.sums, 0), *lanes::<_, N>(&self.least, 0));
        let (mut rows, mut beyond) = (*lanes::<_, N>(&self.rows, at), *lanes::<_, N>(&self.beyond, at));
        let mut most = *largest;
        for l in 0..N {
            let (size, modulus) = sizes_of(values[l]);
            sums[l] += size;
            least[l] = if size < least[l] && size > 0.0 { size } else { least[l] };
            rows[l] = larger(rows[l], size);
            most[l] = larger(most[l], size);
            beyond[l] += sign * modulus;
        }
        *lanes_mut(&mut self.sums, 0) = sums;
        *lanes_mut(&mut self.least, 0) = least;
        *lanes_mut(&mut self.rows, at) = rows;
        *lanes_mut(&mut self.beyond, at) = beyond;
        *largest = most;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Band, BlockTridiagonal, Csr, HybridLayout, Partition, Tridiagonal, c32, c64};
    use faer::Mat;

    /// Entry (i, j) of a matrix whose rows and columns have sizes of their own, with zeros among its numbers.
    fn number<T: Scalar>(i: usize, j: usize) -> T {
        let of = |k: usize| ((k * 37 + i * 11 + j * 5) % 23) as f64 - 11.0;
        let unit = 2f64.powi((i % 7) as i32 - (j % 5) as i32);
        T::rounded(unit * of(1), unit * of(2)) + if i == j { T::rounded(20.0 * unit, 0.0) } else { T::default() }
    }

    fn check<T: Scalar>(name: &str, a: &impl Matrix<T>) {
        let n = a.nrows();
        let Piece { sum, sizes, rows, columns, .. } = by_entries(a).pop().unwrap();
        let found = Extremes::of(a);
        assert_eq!(found.are_finite, sum.is_finite(), "{name}, n = {n}");
        assert_eq!((found.sizes, found.row_sizes), (sizes, rows), "{name}, n = {n}");
        assert_eq!(found.column_sizes, extent(&columns), "{name}, n = {n}");
    }

    fn check_all<T: Scalar>(n: usize) {
        let banded = |kl: usize, ku: usize| {
            let full = Mat::from_fn(n, n, |i, j| if i <= j + kl && j <= i + ku { number(i, j) } else { T::default() });
            Csr::<T>::from_dense(full.as_ref()).unwrap()
        };
        check("tridiagonal", &Tridiagonal::from_csr(&banded(1, 1)).unwrap());
        for (kl, ku) in [(0, 0), (1, 2), (3, 9), (20, 17)] {
            check("band", &Band::from_csr(&banded(kl, ku)).unwrap());
        }
        for (k, layout) in [(3, HybridLayout::DENSE), (8, HybridLayout::DENSE), (5, HybridLayout::default())] {
            let sizes = std::iter::repeat_n(k, n / k).chain((!n.is_multiple_of(k)).then_some(n % k));
            let partition = Partition::from_sizes(sizes).unwrap();
            check("blocks", &BlockTridiagonal::from_csr(&banded(k / 2, k / 2), partition, layout).unwrap());
        }
    }

    #[test]
    fn runs_tell_what_entries_tell() {
        for n in [1, 2, 9, 33] {
            check_all::<f64>(n);
            check_all::<f32>(n);
            check_all::<c64>(n);
            check_all::<c32>(n);
        }
        // More than the rows that are open at a time.
        check_all::<f64>(1100);
    }

    #[test]
    fn a_row_is_dominant_or_not() {
        let with = |diagonal: f64| {
            let mut a = Band::zeros(600, 2, 1).unwrap();
            (0..600).for_each(|j| a.column_range(j).for_each(|i| *a.get_mut(i, j) = if i == j { -3.0 } else { 1.0 }));
            *a.get_mut(555, 555) = diagonal;
            Extremes::of(&a).margin
        };
        assert!(with(-3.0) == 0.0 && with(3.0) == 0.0);
        assert_eq!(with(2.75), -0.25);
        // |3 + 4i| = 5, whose parts sum to 7.
        let complex = |beside: f64| {
            let off = c64::new(beside, 0.0);
            let a = Tridiagonal::new(vec![c64::default(), off], vec![c64::new(3.0, 4.0); 2], vec![off, c64::default()]);
            Extremes::of(&a.unwrap()).margin
        };
        assert_eq!((complex(4.5), complex(5.5)), (0.5, -0.5));
    }

    #[test]
    fn numbers_that_are_not_finite_are_seen_wherever_they_stand() {
        for at in [(0, 0), (1, 0), (7, 8), (599, 598), (599, 599)] {
            for value in [f64::NAN, f64::INFINITY] {
                let mut a = Band::zeros(600, 1, 1).unwrap();
                (0..600).for_each(|i| *a.get_mut(i, i) = 1.0);
                *a.get_mut(at.0, at.1) = value;
                assert!(!Extremes::of(&a).are_finite, "{value} at {at:?}");
            }
        }
    }
}
