//! Couplings by diagonals of eight rows: one offset and one mask for up to eight entries, values without gaps.
//!
//! The couplings of cloud matrices are shifted diagonals, one shift for a whole block or a few. Over eight rows such a
//! diagonal is a consecutive piece of x times consecutive values, with no index an entry. Bit masks for blocks whose
//! values are stored without zeros and expanded by AVX-512 are those of Bramas, Kus, *Computing the sparse matrix vector
//! product using block-based kernels without zero padding on processors with AVX-512 instructions*, PeerJ Comput. Sci.
//! 4 (2018), <https://doi.org/10.7717/peerj-cs.151>. Departure: a block lies along a diagonal, not along rows.
//!
//! Storage, s = size of T, z entries, d diagonals of slices: s·z + 5·d + 8(⌈n/8⌉ + 1) bytes.

use std::ops::Range;

use super::Window;
use crate::convert::{too_large, try_zeros};
use crate::csr::Csr;
use crate::error::{Error, Result};
use crate::kernels::tridiagonal_row;
use crate::operator::{Op, zero};
use crate::partition::Partition;
use crate::products::conj_if;
use crate::run::Run;
use crate::scalar::Scalar;
use crate::tridiagonal::Tridiagonal;

/// Rows of a slice.
const SLICE: usize = 8;

/// Coupling entries by slices of eight rows (rows 8s … 8s + 7 of the whole matrix) and, within one, by diagonals.
///
/// ```text
/// row 0  [ · · · · a · · · ]    slice 0:  offset 4, rows 0 2 3 (mask 0b1101), values a b c
/// row 1  [ · · · · · · · · ]              offset 5, row 2      (mask 0b0100), value  d
/// row 2  [ · · · · · · b d ]
/// row 3  [ · · · · · · · c ]
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ShortDiagonals<T> {
    n: usize,
    slice_ptr: Vec<u32>,
    value_ptr: Vec<u32>,
    offsets: Vec<i32>,
    masks: Vec<u8>,
    values: Vec<T>,
}

/// Bytes for `nnz` entries of type T on `diagonals` diagonals of slices.
pub(super) fn bytes_for<T>(n: usize, nnz: usize, diagonals: usize) -> usize {
    nnz.saturating_mul(size_of::<T>()) + 5 * diagonals + 8 * (n.div_ceil(SLICE) + 1)
}

/// Fewest diagonals that `nnz` entries can lie on.
pub(super) fn fewest_diagonals(nnz: usize) -> usize {
    nnz.div_ceil(SLICE)
}

/// The (offset, mask) of the diagonals of a slice, offsets increasing.
#[derive(Default)]
struct Slice {
    diagonals: Vec<(i64, u8)>,
    /// Room for merging.
    merged: Vec<(i64, u8)>,
}

impl Slice {
    /// Entries of one more row, offsets increasing: O(diagonals).
    fn add(&mut self, row: u8, offsets: impl Iterator<Item = i64>) {
        let Self { diagonals, merged } = self;
        merged.clear();
        // The diagonals before this one have been passed.
        let mut at = 0;
        for offset in offsets {
            let passed = diagonals[at..].iter().take_while(|d| d.0 < offset).count();
            merged.extend_from_slice(&diagonals[at..at + passed]);
            at += passed;
            let mask = diagonals.get(at).filter(|d| d.0 == offset).map(|d| d.1);
            at += usize::from(mask.is_some());
            merged.push((offset, mask.unwrap_or(0) | row));
        }
        merged.extend_from_slice(&diagonals[at..]);
        std::mem::swap(diagonals, merged);
    }
}

/// Where a walk along a row has come to.
#[derive(Clone, Copy, Default)]
pub(super) struct Cursor {
    row: Option<usize>,
    diagonal: usize,
    /// First value of the diagonal.
    value: usize,
}

impl<T: Scalar> ShortDiagonals<T> {
    /// The pattern of the `nnz` couplings of `a`, values zero, if it takes fewer bytes than this.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the storage cannot be had or an offset needs more than 32 bits.
    ///
    /// # Cost
    /// O(rows × diagonals of a slice), until there are too many.
    #[inline(never)]
    pub(super) fn below(bytes: usize, a: &Csr<T>, partition: &Partition, nnz: usize) -> Result<Option<Self>> {
        let n = partition.n();
        let slices = n.div_ceil(SLICE);
        let mut out = Self {
            n,
            slice_ptr: reserved(slices + 1)?,
            value_ptr: reserved(slices + 1)?,
            offsets: Vec::new(),
            masks: Vec::new(),
            values: Vec::new(),
        };
        out.slice_ptr.push(0);
        out.value_ptr.push(0);
        let (mut count, mut farthest) = (0u32, 0i64);
        let mut slice = Slice::default();
        for j in 0..partition.n_blocks() {
            let w = Window::new(partition, j);
            for i in w.start..w.end {
                let is_coupling = |c: usize| (w.lo..w.start).contains(&c) || (w.end..w.hi).contains(&c);
                let couplings = a.row(i).0.iter().filter(|&&c| is_coupling(c as usize));
                slice.add(1 << (i % SLICE), couplings.map(|&c| i64::from(c) - i as i64));
                if i % SLICE != SLICE - 1 && i + 1 != n {
                    continue;
                }
                let more = slice.diagonals.len();
                if bytes_for::<T>(n, nnz, out.offsets.len() + more) >= bytes {
                    return Ok(None);
                }
                let room = [out.offsets.try_reserve(more), out.masks.try_reserve(more)];
                if room.iter().any(Result::is_err) {
                    return Err(too_large("couplings", out.offsets.len() + more));
                }
                for (offset, mask) in slice.diagonals.drain(..) {
                    farthest = farthest.max(offset.abs());
                    out.offsets.push(offset as i32);
                    out.masks.push(mask);
                    count += mask.count_ones();
                }
                out.slice_ptr.push(out.offsets.len() as u32);
                out.value_ptr.push(count);
            }
        }
        if farthest > i64::from(i32::MAX) {
            return Err(Error::TooLarge {
                what: "couplings by diagonals",
                needed: format!("an offset of {farthest}"),
                limit: format!("the {} of 32 bits", i32::MAX),
            });
        }
        out.values = try_zeros(nnz, "couplings")?;
        Ok(Some(out))
    }

    /// Rows and columns of the whole matrix.
    pub fn n(&self) -> usize {
        self.n
    }
    /// First diagonal of each slice, and their number: ⌈n/8⌉ + 1.
    pub fn slice_ptr(&self) -> &[u32] {
        &self.slice_ptr
    }
    /// First value of each slice, and their number: ⌈n/8⌉ + 1.
    pub fn value_ptr(&self) -> &[u32] {
        &self.value_ptr
    }
    /// Column less row of each diagonal, increasing within a slice.
    pub fn offsets(&self) -> &[i32] {
        &self.offsets
    }
    /// Rows that have an entry on each diagonal: bit q for row q of the slice.
    pub fn masks(&self) -> &[u8] {
        &self.masks
    }
    /// Values, diagonal after diagonal, by rows within one.
    pub fn values(&self) -> &[T] {
        &self.values
    }
    /// Values for overwriting; the pattern stays.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }
    /// Bytes of the arrays.
    pub fn bytes(&self) -> usize {
        bytes_for::<T>(self.n, self.values.len(), self.offsets.len())
    }

    /// The diagonals of a slice as (offset, mask, place of the first value).
    #[inline(always)]
    fn slice(&self, slice: usize) -> impl Iterator<Item = (isize, u8, usize)> {
        let range = self.slice_ptr[slice] as usize..self.slice_ptr[slice + 1] as usize;
        let mut k = self.value_ptr[slice] as usize;
        self.offsets[range.clone()].iter().zip(&self.masks[range]).map(move |(&offset, &mask)| {
            let first = k;
            k += mask.count_ones() as usize;
            (offset as isize, mask, first)
        })
    }

    /// Calls `visit(row, column, value)` in the order of storage.
    #[inline(always)]
    pub(super) fn for_each_value(&self, mut visit: impl FnMut(usize, usize, T)) {
        for slice in 0..self.slice_ptr.len() - 1 {
            for (offset, mask, first) in self.slice(slice) {
                for (q, &v) in rows_of(mask).zip(&self.values[first..]) {
                    let i = slice * SLICE + q;
                    visit(i, i.wrapping_add_signed(offset), v);
                }
            }
        }
    }

    /// The entries of some rows that begin a slice, a run for neighbours on a diagonal.
    pub(super) fn runs_of(&self, rows: Range<usize>) -> Vec<Run<'_, T>> {
        let mut runs = Vec::new();
        for slice in rows.start / SLICE..rows.end.div_ceil(SLICE) {
            for (offset, mut mask, mut first) in self.slice(slice) {
                let mut row = slice * SLICE;
                while mask != 0 {
                    let (gap, rest) = (mask.trailing_zeros(), mask >> mask.trailing_zeros());
                    let len = rest.trailing_ones();
                    row += gap as usize;
                    let values = &self.values[first..][..len as usize];
                    runs.push(Run::Diagonal { row, column: row.wrapping_add_signed(offset), values });
                    (row, first) = (row + len as usize, first + len as usize);
                    mask = rest.checked_shr(len).unwrap_or(0);
                }
            }
        }
        runs
    }

    /// Visits row i as (column, place of the value), columns increasing.
    #[inline(always)]
    pub(super) fn for_each_place(&self, i: usize, mut visit: impl FnMut(usize, usize)) {
        let bit = 1u8 << (i % SLICE);
        for (offset, mask, first) in self.slice(i / SLICE) {
            if mask & bit != 0 {
                visit(i.wrapping_add_signed(offset), first + (mask & (bit - 1)).count_ones() as usize);
            }
        }
    }

    /// Where (i, c) is kept, if it is. Entries of a row are asked for by increasing columns, so that each diagonal is passed once a row.
    pub(super) fn place(&mut self, i: usize, c: usize, cursor: &mut Cursor) -> Option<&mut T> {
        let slice = i / SLICE;
        if cursor.row != Some(i) {
            let (diagonal, value) = (self.slice_ptr[slice] as usize, self.value_ptr[slice] as usize);
            *cursor = Cursor { row: Some(i), diagonal, value };
        }
        let (bit, wanted) = (1u8 << (i % SLICE), c.wrapping_sub(i) as isize);
        let end = self.slice_ptr[slice + 1] as usize;
        while cursor.diagonal < end && (self.offsets[cursor.diagonal] as isize) < wanted {
            cursor.value += self.masks[cursor.diagonal].count_ones() as usize;
            cursor.diagonal += 1;
        }
        let mask =
            self.masks[cursor.diagonal..end].first().filter(|_| self.offsets[cursor.diagonal] as isize == wanted)?;
        (mask & bit != 0).then(|| &mut self.values[cursor.value + (mask & (bit - 1)).count_ones() as usize])
    }

    /// Calls `work(slice, mask of the rows wanted, first row)` for the slices that `rows` lie in.
    #[inline(always)]
    fn for_each_part(rows: Range<usize>, mut work: impl FnMut(usize, u8, usize)) {
        let mut i = rows.start;
        while i < rows.end {
            let (slice, start) = (i / SLICE, i / SLICE * SLICE);
            let end = rows.end.min(start + SLICE);
            let wanted = (((1u32 << (end - start)) - 1) & !((1u32 << (i - start)) - 1)) as u8;
            work(slice, wanted, start);
            i = end;
        }
    }

    /// y ← α·((A + T)·x)[first..] + β·y, the same sums as the kernel's up to rounding.
    #[inline(never)]
    pub(crate) fn plain_rows(&self, t: Option<&Tridiagonal<T>>, first: usize, alpha: T, x: &[T], beta: T, y: &mut [T]) {
        Self::for_each_part(first..first + y.len(), |slice, wanted, start| {
            let sums = self.slice_times(slice, x, |_| true);
            for (q, &sum) in sums.iter().enumerate().filter(|(q, _)| wanted >> q & 1 != 0) {
                let i = start + q;
                let sum = t.map_or(sum, |t| sum + tridiagonal_row(t, i, x));
                let y = &mut y[i - first];
                *y = if beta == zero() { alpha * sum } else { alpha * sum + beta * *y };
            }
        });
    }

    /// r ← r − Σ v·x(c) over the entries of `rows` whose offset is wanted.
    #[inline(always)]
    pub(super) fn subtract(&self, rows: Range<usize>, x: &[T], r: &mut [T], is_wanted: impl Fn(isize) -> bool + Copy) {
        let first = rows.start;
        Self::for_each_part(rows, |slice, wanted, start| {
            let sums = self.slice_times(slice, x, is_wanted);
            for (q, &sum) in sums.iter().enumerate().filter(|(q, _)| wanted >> q & 1 != 0) {
                r[start + q - first] -= sum;
            }
        });
    }

    /// The diagonals of a slice with wanted offsets times x.
    #[inline(always)]
    fn slice_times(&self, slice: usize, x: &[T], is_wanted: impl Fn(isize) -> bool) -> [T; SLICE] {
        let start = slice * SLICE;
        let mut sums = [zero::<T>(); SLICE];
        for (offset, mask, mut k) in self.slice(slice).filter(|d| is_wanted(d.0)) {
            let c = start.wrapping_add_signed(offset);
            if mask == u8::MAX {
                let (v, x) = (&self.values[k..k + SLICE], &x[c..c + SLICE]);
                for q in 0..SLICE {
                    sums[q] += v[q] * x[q];
                }
                continue;
            }
            for q in rows_of(mask) {
                sums[q] += self.values[k] * x[c.wrapping_add(q)];
                k += 1;
            }
        }
        sums
    }

    /// y ← y + α·(op(A)·x)[first..] from `rows` of A, which is transposed by op.
    #[inline(never)]
    pub(super) fn scatter(&self, op: Op, rows: Range<usize>, first: usize, alpha: T, x: &[T], y: &mut [T]) {
        Self::for_each_part(rows, |slice, wanted, start| {
            for (offset, mask, k) in self.slice(slice) {
                // Wraps around for rows before the first column; those are not in the mask, or c − first is too large.
                let c = start.wrapping_add_signed(offset).wrapping_sub(first);
                if mask & wanted == u8::MAX && c < y.len() && y.len() - c >= SLICE {
                    let (v, x, y) = (&self.values[k..k + SLICE], &x[start..start + SLICE], &mut y[c..c + SLICE]);
                    for q in 0..SLICE {
                        y[q] += conj_if(op, v[q]) * (alpha * x[q]);
                    }
                    continue;
                }
                for (k, q) in (k..).zip(rows_of(mask)) {
                    let place = if wanted >> q & 1 != 0 { y.get_mut(c.wrapping_add(q)) } else { None };
                    if let Some(y) = place {
                        *y += conj_if(op, self.values[k]) * (alpha * x[start + q]);
                    }
                }
            }
        });
    }
}

/// The set bits.
#[inline(always)]
fn rows_of(mut mask: u8) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let q = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (q < SLICE).then_some(q)
    })
}

fn reserved<U>(len: usize) -> Result<Vec<U>> {
    let mut out = Vec::new();
    out.try_reserve_exact(len).map_err(|_| too_large("couplings", len))?;
    Ok(out)
}
