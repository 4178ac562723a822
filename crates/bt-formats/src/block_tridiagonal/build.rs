//! Building hybrid storage from compressed rows, and refreshing its values: O(nnz + values stored), and merging eight rows
//! at a time where diagonals are considered for the couplings.

use std::sync::Arc;

use super::short_diagonals::{self, bytes_for, fewest_diagonals};
use super::{
    BlockTridiagonal, CouplingKind, Couplings, DiagonalBlocks, DiagonalKind, HybridLayout, ShortDiagonals, Window,
};
use crate::convert::{nonzeros, too_large, try_zeros};
use crate::coo::Coo;
use crate::csr::Csr;
use crate::error::{Error, Result};
use crate::operator::{LinearOperator, zero};
use crate::partition::Partition;
use crate::scalar::Scalar;
use crate::scatter::{Entries, Place, ROWS, is_large, write_columns};
use crate::tridiagonal::Tridiagonal;

/// What the pattern of a matrix needs.
#[derive(Default)]
struct Pattern {
    /// Bandwidths of the widest diagonal block.
    kl: usize,
    ku: usize,
    /// Coupling entries of each row, summed: row pointers.
    row_ptr: Vec<u32>,
}

/// Σkⱼ² and Σkⱼ(kⱼ₋₁ + kⱼ₊₁); saturating, since they are only compared and reserved.
fn dense_lengths(partition: &Partition) -> (usize, usize) {
    (0..partition.n_blocks()).map(|j| Window::new(partition, j)).fold((0, 0), |(d, c), w| {
        let (k, l) = (w.size(), w.coupling_cols());
        (usize::saturating_add(d, k.saturating_mul(k)), usize::saturating_add(c, k.saturating_mul(l)))
    })
}

impl HybridLayout {
    /// Every place of every block.
    pub const DENSE: Self = Self { diagonal: Some(DiagonalKind::Dense), couplings: Some(CouplingKind::Dense) };

    /// This layout, but [`HybridLayout::DENSE`] instead of the smallest where entries fill at least a quarter of the places. An elimination
    /// copies whole blocks: that takes longer from diagonals, and sorting triangular couplings into them longer still (63 blocks of 32
    /// rows of a band, `blocktri solve --method block-lu`: 3.0 ms, dense 0.8).
    ///
    /// ```
    /// use bt_formats::{Csr, HybridLayout, Partition};
    /// let a = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![1.0, 2.0, 3.0])?;
    /// let layout = HybridLayout::default().unless_full(&a, &Partition::uniform(2, 1)?);
    /// assert_eq!(layout, HybridLayout::DENSE);
    /// # Ok::<(), bt_formats::Error>(())
    /// ```
    pub fn unless_full<T: Scalar>(self, a: &Csr<T>, partition: &Partition) -> Self {
        let (squares, neighbours) = dense_lengths(partition);
        let is_full = a.values().len() >= squares.saturating_add(neighbours).div_ceil(4);
        if is_full && self == Self::default() { Self::DENSE } else { self }
    }
}

/// Where a walk along the rows has come to in sparse couplings.
#[derive(Default)]
struct Cursor {
    entry: usize,
    diagonal: short_diagonals::Cursor,
}

/// What to do with the values of a matrix whose places have been found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Check,
    Write,
}

impl<T: Scalar> BlockTridiagonal<T> {
    /// From a sparse matrix. Stored zeros inside the three block diagonals keep their places in sparse couplings;
    /// those outside the structure are dropped.
    ///
    /// # Errors
    /// [`Error::NotSquare`]; [`Error::DimensionMismatch`] when the blocks do not sum to n;
    /// [`Error::OutsideStructure`] naming the first non-zero outside the three block diagonals, or one that the
    /// demanded diagonal format cannot hold; [`Error::TooLarge`] when the storage cannot be had.
    ///
    /// # Cost
    /// O(nnz + values stored).
    #[inline(never)]
    pub fn from_csr(a: &Csr<T>, partition: Partition, layout: HybridLayout) -> Result<Self> {
        a.check_square()?;
        check_size(a, &partition)?;
        // Where all blocks are to be dense, nothing of the pattern needs to be known before.
        let pattern = if layout == HybridLayout::DENSE { Pattern::default() } else { analyse(a, &partition)? };
        let diagonal = empty_diagonal(&partition, &pattern, layout.diagonal)?;
        let couplings = empty_couplings(a, &partition, pattern, layout.couplings)?;
        let mut out = Self { partition, diagonal: Arc::new(diagonal), couplings: Arc::new(couplings) };
        out.walk(a, Pass::Write)?;
        Ok(out)
    }

    /// From dense blocks, without a copy: `diagonal` holds D₀, D₁, … and `couplings` the matrices [Lⱼ Uⱼ] of the block
    /// rows, kⱼ × (kⱼ₋₁ + kⱼ₊₁), all column-major and one after another, as [`DiagonalBlocks::Dense`] and
    /// [`Couplings::Dense`] keep them.
    ///
    /// ```
    /// use bt_formats::{BlockTridiagonal, LinearOperator, Partition};
    /// // [ 4 1 | 2 ]
    /// // [ 1 4 | 0 ]
    /// // [ 0 3 | 5 ]
    /// let (diagonal, couplings) = (vec![4.0, 1.0, 1.0, 4.0, 5.0], vec![2.0, 0.0, 0.0, 3.0]);
    /// let a = BlockTridiagonal::from_dense_blocks(Partition::from_sizes([2, 1])?, diagonal, couplings)?;
    /// let mut y = [0.0; 3];
    /// a.apply(1.0, &[1.0; 3], 0.0, &mut y);
    /// assert_eq!(y, [7.0, 5.0, 8.0]);
    /// # Ok::<(), bt_formats::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`] when a length is not Σkⱼ², or Σkⱼ(kⱼ₋₁ + kⱼ₊₁).
    ///
    /// # Cost
    /// O(m): the values are not looked at.
    pub fn from_dense_blocks(partition: Partition, diagonal: Vec<T>, couplings: Vec<T>) -> Result<Self> {
        let (squares, neighbours) = dense_lengths(&partition);
        for (what, expected, found) in [
            ("values of the diagonal blocks", squares, diagonal.len()),
            ("values of the couplings", neighbours, couplings.len()),
        ] {
            if expected != found {
                return Err(Error::DimensionMismatch { what, expected, found });
            }
        }
        let lengths =
            (0..partition.n_blocks()).map(|j| Window::new(&partition, j)).map(|w| w.size() * w.coupling_cols());
        let coupling_starts = prefix_sums(lengths);
        let diagonal_starts = prefix_sums(partition.sizes().map(|k| k * k));
        Ok(Self {
            diagonal: Arc::new(DiagonalBlocks::Dense { starts: diagonal_starts, values: diagonal }),
            couplings: Arc::new(Couplings::Dense { starts: coupling_starts, values: couplings }),
            partition,
        })
    }

    /// The non-zeros by rows.
    ///
    /// # Errors
    /// [`Error::TooLarge`] beyond 32-bit pointers.
    pub fn to_csr(&self) -> Result<Csr<T>> {
        nonzeros(self)
    }

    /// Takes over the values of a matrix whose non-zeros lie in the places this one has; places that `a` does not
    /// store become zero. Allocates nothing where no clone shares the values. On an error nothing has changed.
    ///
    /// # Errors
    /// As [`BlockTridiagonal::from_csr`]; [`Error::OutsideStructure`] also for a coupling that is not in the pattern.
    pub fn update_values(&mut self, a: &Csr<T>) -> Result<()> {
        a.check_square()?;
        check_size(a, &self.partition)?;
        self.walk(a, Pass::Check)?;
        match Arc::make_mut(&mut self.diagonal) {
            DiagonalBlocks::Tridiagonal(t) => t.parts_mut().into_iter().for_each(|d| d.fill(zero())),
            DiagonalBlocks::Band { values, .. } | DiagonalBlocks::Dense { values, .. } => values.fill(zero()),
        }
        match Arc::make_mut(&mut self.couplings) {
            Couplings::Coo { entries, .. } => entries.values_mut().fill(zero()),
            Couplings::Csr(c) => c.values_mut().fill(zero()),
            Couplings::Diagonals(d) => d.values_mut().fill(zero()),
            Couplings::Dense { values, .. } => values.fill(zero()),
        }
        self.walk(a, Pass::Write)
    }

    /// Finds the place of every entry of `a` and, in a writing pass, stores its value there.
    fn walk(&mut self, a: &Csr<T>, pass: Pass) -> Result<()> {
        let Self { partition, diagonal, couplings } = self;
        let (diagonal, couplings) = (Arc::make_mut(diagonal), Arc::make_mut(couplings));
        if pass == Pass::Write
            && let (DiagonalBlocks::Dense { values: d, .. }, Couplings::Dense { values: c, .. }) =
                (&mut *diagonal, &mut *couplings)
        {
            return write_dense(a, partition, d, c);
        }
        let mut cursor = Cursor::default();
        let mut diagonal = diagonal.places();
        for j in 0..partition.n_blocks() {
            let w = Window::new(partition, j);
            for i in w.start..w.end {
                let (cols, vals) = a.row(i);
                for (&c, &v) in cols.iter().zip(vals) {
                    let c = c as usize;
                    let place = if (w.start..w.end).contains(&c) {
                        diagonal.of(w, j, i, c)
                    } else if (w.lo..w.hi).contains(&c) {
                        couplings.place(w, j, i, c, &mut cursor)
                    } else {
                        None
                    };
                    match place {
                        Some(place) if pass == Pass::Write => *place = v,
                        None if v != zero() => return Err(outside(partition, i, c)),
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }
}

/// Rows in runs left of the diagonal block, in it, and right of it.
#[inline(never)]
fn write_dense<T: Scalar>(
    a: &Csr<T>,
    partition: &Partition,
    mut diagonal: &mut [T],
    mut couplings: &mut [T],
) -> Result<()> {
    for j in 0..partition.n_blocks() {
        let w = Window::new(partition, j);
        let k = w.size();
        let (block, coupling);
        (block, diagonal) = diagonal.split_at_mut(k * k);
        (coupling, couplings) = couplings.split_at_mut(k * w.coupling_cols());
        if is_large(k) {
            write_block_row::<T, ROWS>(a, partition, w, block, coupling)?;
        } else {
            write_block_row::<T, 1>(a, partition, w, block, coupling)?;
        }
    }
    Ok(())
}

/// The rows of a block, R at a time.
fn write_block_row<T: Scalar, const R: usize>(
    a: &Csr<T>,
    partition: &Partition,
    w: Window,
    block: &mut [T],
    coupling: &mut [T],
) -> Result<()> {
    let k = w.size();
    for first in (w.start..w.end).step_by(R) {
        let mut runs = [[Entries::default(); R]; 3];
        for i in first..(first + R).min(w.end) {
            let (cols, values) = inside(a, partition, &w, i)?;
            let (left, right) =
                (cols.partition_point(|&c| (c as usize) < w.start), cols.partition_point(|&c| (c as usize) < w.end));
            for (run, part) in runs.iter_mut().zip([0..left, left..right, right..cols.len()]) {
                run[i - first] = (&cols[part.clone()], &values[part]);
            }
        }
        let [left, within, right] = &mut runs;
        let place = |before: usize| Place { first: first - w.start, before, stride: k };
        write_columns(coupling, place(w.lo), left);
        write_columns(block, place(w.start), within);
        // Columns of the right neighbour follow those of the left one.
        write_columns(coupling, place(w.lo + k), right);
    }
    Ok(())
}

/// What row i has in the window.
///
/// # Errors
/// [`Error::OutsideStructure`] when it has a non-zero beside it.
fn inside<'a, T: Scalar>(a: &'a Csr<T>, partition: &Partition, w: &Window, i: usize) -> Result<Entries<'a, T>> {
    let (cols, values) = a.row(i);
    let is_inside = |c: u32| (w.lo..w.hi).contains(&(c as usize));
    if cols.first().is_none_or(|&c| is_inside(c)) && cols.last().is_none_or(|&c| is_inside(c)) {
        return Ok((cols, values));
    }
    let stray = cols.iter().zip(values).find(|&(&c, &v)| !is_inside(c) && v != zero());
    if let Some((&c, _)) = stray {
        return Err(outside(partition, i, c as usize));
    }
    let kept = cols.partition_point(|&c| (c as usize) < w.lo)..cols.partition_point(|&c| (c as usize) < w.hi);
    Ok((&cols[kept.clone()], &values[kept]))
}

fn check_size<T: Scalar>(a: &Csr<T>, partition: &Partition) -> Result<()> {
    if partition.n() != a.nrows() {
        return Err(Error::DimensionMismatch {
            what: "sum of the block sizes",
            expected: a.nrows(),
            found: partition.n(),
        });
    }
    Ok(())
}

/// The error for an entry without a place, which says why it has none.
fn outside(partition: &Partition, row: usize, col: usize) -> Error {
    let (bi, bj) = (partition.block_of(row), partition.block_of(col));
    let why = match bi.abs_diff(bj) {
        0 => format!("lies outside the band kept of diagonal block {bi} (from 0)"),
        1 => format!("couples block {bi} with block {bj} (from 0) where the pattern has no entry"),
        _ => format!("couples block {bi} with block {bj} (from 0); only neighbouring blocks may couple"),
    };
    Error::OutsideStructure { row, col, why }
}

/// Entries of a short row.
const SHORT: usize = 16;

#[inline(never)]
fn analyse<T: Scalar>(a: &Csr<T>, partition: &Partition) -> Result<Pattern> {
    let (mut kl, mut ku, mut count) = (0, 0, 0u32);
    let mut row_ptr = Vec::new();
    row_ptr.try_reserve_exact(a.nrows() + 1).map_err(|_| too_large("couplings", a.nrows() + 1))?;
    row_ptr.push(0);
    for j in 0..partition.n_blocks() {
        let w = Window::new(partition, j);
        for i in w.start..w.end {
            let (cols, vals) = a.row(i);
            // Columns increase; few of them are counted faster than they are sought.
            let before = |end: usize| match cols.len() {
                0..=SHORT => cols.iter().filter(|&&c| (c as usize) < end).count(),
                _ => cols.partition_point(|&c| (c as usize) < end),
            };
            let (lo, hi, own) = (before(w.lo), before(w.hi), before(w.start)..before(w.end));
            let stray = (0..lo).chain(hi..cols.len()).find(|&e| vals[e] != zero());
            if let Some(e) = stray {
                return Err(outside(partition, i, cols[e] as usize));
            }
            if let [first, .., last] | [first @ last] = cols[own.clone()] {
                kl = kl.max(i.saturating_sub(first as usize));
                ku = ku.max((last as usize).saturating_sub(i));
            }
            count += (hi - lo - own.len()) as u32;
            row_ptr.push(count);
        }
    }
    Ok(Pattern { kl, ku, row_ptr })
}

#[inline(never)]
fn empty_diagonal<T: Scalar>(
    p: &Partition,
    pattern: &Pattern,
    kind: Option<DiagonalKind>,
) -> Result<DiagonalBlocks<T>> {
    let n = p.n();
    let width = pattern.kl + pattern.ku + 1;
    let dense = dense_lengths(p).0;
    let kind = kind.unwrap_or_else(|| {
        let s = size_of::<T>();
        let tridiagonal = if pattern.kl.max(pattern.ku) <= 1 { n.saturating_mul(3 * s) } else { usize::MAX };
        let band = n.saturating_mul(width).saturating_mul(s);
        let dense = dense.saturating_mul(s).saturating_add(8 * (p.n_blocks() + 1));
        if tridiagonal <= band.min(dense) {
            DiagonalKind::Tridiagonal
        } else if band <= dense {
            DiagonalKind::Band
        } else {
            DiagonalKind::Dense
        }
    });
    Ok(match kind {
        DiagonalKind::Tridiagonal => DiagonalBlocks::Tridiagonal(Tridiagonal::zeros(n)?),
        DiagonalKind::Band => {
            let values = try_zeros(n.saturating_mul(width), "banded diagonal blocks")?;
            DiagonalBlocks::Band { kl: pattern.kl, ku: pattern.ku, values }
        }
        DiagonalKind::Dense => {
            let values = try_zeros(dense, "dense diagonal blocks")?;
            let starts = prefix_sums(p.sizes().map(|k| k * k));
            DiagonalBlocks::Dense { starts, values }
        }
    })
}

#[inline(never)]
fn empty_couplings<T: Scalar>(
    a: &Csr<T>,
    p: &Partition,
    pattern: Pattern,
    kind: Option<CouplingKind>,
) -> Result<Couplings<T>> {
    let (n, m) = (p.n(), p.n_blocks());
    let nnz = pattern.row_ptr.last().map_or(0, |&end| end as usize);
    let dense = dense_lengths(p).1;
    let kind = match kind {
        Some(CouplingKind::Diagonals) => {
            let diagonals = ShortDiagonals::below(usize::MAX, a, p, nnz)?;
            return Ok(Couplings::Diagonals(diagonals.ok_or_else(|| too_large("couplings", nnz))?));
        }
        Some(kind) => kind,
        None => {
            let s = size_of::<T>();
            let coo = (8 + s) * nnz + 4 * (m + 1);
            let csr = (4 + s) * nnz + 4 * (n + 1);
            let dense = dense.saturating_mul(s).saturating_add(8 * (m + 1));
            let (least, kind) = if csr <= coo.min(dense) {
                (csr, CouplingKind::Csr)
            } else if coo <= dense {
                (coo, CouplingKind::Coo)
            } else {
                (dense, CouplingKind::Dense)
            };
            // Looked for only where they may win, which dense couplings exclude without a look at the pattern.
            if bytes_for::<T>(n, nnz, fewest_diagonals(nnz)) < least
                && let Some(diagonals) = ShortDiagonals::below(least, a, p, nnz)?
            {
                return Ok(Couplings::Diagonals(diagonals));
            }
            kind
        }
    };
    if kind == CouplingKind::Dense {
        let values = try_zeros(dense, "dense couplings")?;
        let lengths = (0..m).map(|j| Window::new(p, j)).map(|w| w.size() * w.coupling_cols());
        return Ok(Couplings::Dense { starts: prefix_sums(lengths), values });
    }
    let mut cols: Vec<u32> = Vec::new();
    cols.try_reserve_exact(nnz).map_err(|_| too_large("couplings", nnz))?;
    for j in 0..m {
        let w = Window::new(p, j);
        for i in w.start..w.end {
            let inside = |c: usize| (w.lo..w.start).contains(&c) || (w.end..w.hi).contains(&c);
            cols.extend(a.row(i).0.iter().filter(|&&c| inside(c as usize)));
        }
    }
    let values = try_zeros(nnz, "couplings")?;
    if kind == CouplingKind::Csr {
        return Ok(Couplings::Csr(Csr::new(n, n, pattern.row_ptr, cols, values)?));
    }
    let mut rows: Vec<u32> = Vec::new();
    rows.try_reserve_exact(nnz).map_err(|_| too_large("couplings", nnz))?;
    for (i, w) in pattern.row_ptr.windows(2).enumerate() {
        rows.extend((w[0]..w[1]).map(|_| i as u32));
    }
    let block_ptr = p.offsets().iter().map(|&i| pattern.row_ptr[i as usize]).collect();
    Ok(Couplings::Coo { entries: Coo::from_triplets(n, n, rows, cols, values)?, block_ptr })
}

fn prefix_sums(lengths: impl Iterator<Item = usize>) -> Vec<usize> {
    let sums = lengths.scan(0, |sum, len| {
        *sum += len;
        Some(*sum)
    });
    std::iter::once(0).chain(sums).collect()
}

/// Diagonal blocks that are written to.
enum Places<'a, T> {
    Tridiagonal([&'a mut [T]; 3]),
    Band { kl: usize, ku: usize, values: &'a mut [T] },
    Dense { starts: &'a [usize], values: &'a mut [T] },
}

impl<T: Scalar> DiagonalBlocks<T> {
    fn places(&mut self) -> Places<'_, T> {
        match self {
            Self::Tridiagonal(t) => Places::Tridiagonal(t.parts_mut()),
            Self::Band { kl, ku, values } => Places::Band { kl: *kl, ku: *ku, values },
            Self::Dense { starts, values } => Places::Dense { starts, values },
        }
    }
}

impl<T: Scalar> Places<'_, T> {
    /// Where (i, c) of block j is kept, if it is.
    fn of(&mut self, w: Window, j: usize, i: usize, c: usize) -> Option<&mut T> {
        match self {
            Self::Tridiagonal([lower, diag, upper]) => match c as isize - i as isize {
                -1 => Some(&mut lower[i]),
                0 => Some(&mut diag[i]),
                1 => Some(&mut upper[i]),
                _ => None,
            },
            Self::Band { kl, ku, values } if i <= c + *kl && c <= i + *ku => Some(&mut values[(*kl + c - i) * w.n + i]),
            Self::Band { .. } => None,
            Self::Dense { starts, values } => Some(&mut values[starts[j] + (c - w.start) * w.size() + i - w.start]),
        }
    }
}

impl<T: Scalar> Couplings<T> {
    /// Where (i, c) of block row j is kept, if it is. `cursor` moves along the sparse entries: places must be asked
    /// for in the order of rows and columns.
    fn place(&mut self, w: Window, j: usize, i: usize, c: usize, cursor: &mut Cursor) -> Option<&mut T> {
        let Cursor { entry, diagonal } = cursor;
        match self {
            Self::Coo { entries, .. } => {
                let (rows, cols) = (entries.rows(), entries.cols());
                let at = |k: usize| (rows[k] as usize, cols[k] as usize);
                while *entry < rows.len() && at(*entry) < (i, c) {
                    *entry += 1;
                }
                let found = *entry < rows.len() && at(*entry) == (i, c);
                found.then(|| &mut entries.values_mut()[*entry])
            }
            Self::Csr(a) => {
                let (start, end) = (a.row_ptr()[i] as usize, a.row_ptr()[i + 1] as usize);
                *entry = start.max(*entry);
                while *entry < end && (a.col_idx()[*entry] as usize) < c {
                    *entry += 1;
                }
                let found = *entry < end && a.col_idx()[*entry] as usize == c;
                found.then(|| &mut a.values_mut()[*entry])
            }
            Self::Diagonals(a) => a.place(i, c, diagonal),
            Self::Dense { starts, values } => Some(&mut values[starts[j] + w.coupling_col(c) * w.size() + i - w.start]),
        }
    }
}
