//! What one pass tells of a matrix that has no rows to read, of all that choosing a method for it asks for.

use std::ops::Range;

use rayon::prelude::*;

use crate::operator::{Matrix, Par};
use crate::run::Run;
use crate::scalar::{RealScalar, Scalar};

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
/// assert!(found.are_finite && found.is_dominant);
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
    /// Weakly diagonally dominant by rows.
    pub is_dominant: bool,
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
        let mut columns = vec![0.0f64; ncols];
        let mut sums = 0.0;
        let (mut sizes, mut rows, mut is_dominant) = (NONE, NONE, true);
        for piece in pieces {
            sums += piece.sum;
            sizes = both(sizes, piece.sizes);
            rows = both(rows, piece.rows);
            is_dominant &= piece.is_dominant;
            let columns = &mut columns[piece.first_column..];
            columns.iter_mut().zip(&piece.columns).for_each(|(most, &size)| *most = larger(*most, size));
        }
        let column_sizes = extent(&columns);
        Self { are_finite: sums.is_finite(), sizes, row_sizes: rows, column_sizes, is_dominant }
    }
}

/// What holds of no number.
const NONE: (f64, f64) = (f64::INFINITY, 0.0);

fn both((least, most): (f64, f64), (also_least, also_most): (f64, f64)) -> (f64, f64) {
    (least.min(also_least), most.max(also_most))
}

fn extent(sizes: &[f64]) -> (f64, f64) {
    sizes.iter().fold(NONE, |found, &size| both(found, (size, size)))
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
    is_dominant: bool,
    first_column: usize,
    /// The largest sizes, from that column on.
    columns: Vec<f64>,
}

fn found_in<T: Scalar>(rows: Range<usize>, runs: &[Run<'_, T>]) -> Piece {
    let columns = runs.iter().map(columns_of).fold(usize::MAX..0, |all, c| all.start.min(c.start)..all.end.max(c.end));
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
        // NaN is not.
        is_dominant: beyond.iter().all(|sum| *sum <= 0.0),
        first_column: columns.start.min(columns.end),
        columns: open.columns,
    }
}

fn columns_of<T>(run: &Run<'_, T>) -> Range<usize> {
    match run {
        Run::Columns { column, stride, values, .. } => *column..column + values.len().div_ceil(*stride),
        Run::Diagonal { column, values, .. } => *column..column + values.len(),
        Run::Band { rows, n, kl, ku, .. } => rows.start.saturating_sub(*kl)..(rows.end + ku).min(*n),
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
    let is_dominant = beyond.iter().all(|sum| *sum <= 0.0);
    vec![Piece { sum, sizes: (least, rows.1), rows, is_dominant, first_column: 0, columns }]
}

/// |re v| + |im v|, and |v|, which may leave the range where the other is near an end of it.
#[inline(always)]
fn sizes_of<T: Scalar>(v: T) -> (f64, f64) {
    let (re, im) = (v.re().to_f64(), v.im().to_f64());
    if T::IS_REAL { (re.abs(), re.abs()) } else { (re.abs() + im.abs(), (re * re + im * im).sqrt()) }
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
            if let Run::Diagonal { row, column, values } = run {
                open.read_diagonal(*row, *column, values);
            } else {
                run.for_each_column(
                    #[inline(always)]
                    |row, column, values| open.read_column(row, column, values),
                );
            }
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
        let (mut sums, mut least) = (*lanes::<N>(&self.sums, 0), *lanes::<N>(&self.least, 0));
        let (mut rows, mut beyond) = (*lanes::<N>(&self.rows, at), *lanes::<N>(&self.beyond, at));
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

/// N numbers from `at` on.
#[inline(always)]
fn lanes<const N: usize>(numbers: &[f64], at: usize) -> &[f64; N] {
    numbers[at..].first_chunk().expect("the rows of a run")
}

#[inline(always)]
fn lanes_mut<const N: usize>(numbers: &mut [f64], at: usize) -> &mut [f64; N] {
    numbers[at..].first_chunk_mut().expect("the rows of a run")
}
