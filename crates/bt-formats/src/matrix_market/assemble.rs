//! Entries in file order → compressed rows, in parallel, without a global sort.
//!
//! Rows are cut into at most 256 buckets of 2ˢ rows. Every piece of text orders its own entries by bucket (a
//! stable counting sort that stays in the cache); a bucket then collects its entries from the pieces in file
//! order and counting-sorts them by row into its own part of the output. Duplicates are therefore summed in file
//! order, and the result depends neither on the number of threads nor on where the text was cut.
//!
//! Memory: the entries (4 + 4 + size of T bytes each) beside the matrix. Time: O(nnz + nrows), and a sort for every
//! row whose columns do not arrive in order.

use rayon::prelude::*;

use crate::csr::Csr;
use crate::error::{Error, Result};
use crate::memory;
use crate::operator::zero;
use crate::scalar::Scalar;

/// (row, column, value), from 0.
pub(crate) type Entry<T> = (u32, u32, T);

/// How rows fall into buckets.
#[derive(Clone, Copy)]
pub(crate) struct Buckets {
    shift: u32,
    count: usize,
}

impl Buckets {
    /// At most 256 buckets of at least 1024 rows.
    pub(crate) fn of(nrows: usize) -> Self {
        let bits = usize::BITS - nrows.saturating_sub(1).leading_zeros();
        let shift = bits.saturating_sub(8).max(10);
        Self { shift, count: nrows.div_ceil(1 << shift) }
    }

    fn bucket(self, row: u32) -> usize {
        (row >> self.shift) as usize
    }
}

/// The entries of one piece of the file, ordered by bucket: bucket b is `entries[starts[b]..starts[b + 1]]`.
pub(crate) struct Piece<T> {
    entries: Vec<Entry<T>>,
    starts: Vec<u32>,
}

impl<T: Scalar> Piece<T> {
    /// Orders entries by bucket, keeping the order within. Fewer than 2³² entries.
    pub(crate) fn new(mut entries: Vec<Entry<T>>, buckets: Buckets) -> Self {
        let mut starts = vec![0u32; buckets.count + 1];
        let (mut ordered, mut last) = (true, 0);
        for e in &entries {
            let b = buckets.bucket(e.0);
            ordered &= b >= last;
            last = b;
            starts[b + 1] += 1;
        }
        for b in 0..buckets.count {
            starts[b + 1] += starts[b];
        }
        if !ordered {
            let mut next = starts.clone();
            let mut sorted = vec![(0, 0, zero()); entries.len()];
            for e in entries {
                let k = &mut next[buckets.bucket(e.0)];
                sorted[*k as usize] = e;
                *k += 1;
            }
            entries = sorted;
        } else if entries.capacity() > 2 * entries.len() {
            entries.shrink_to_fit();
        }
        Self { entries, starts }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// All entries; those of one row in file order.
    pub(crate) fn entries(&self) -> &[Entry<T>] {
        &self.entries
    }

    /// The entries by themselves.
    pub(crate) fn into_entries(self) -> Vec<Entry<T>> {
        self.entries
    }

    fn bucket(&self, b: usize) -> &[Entry<T>] {
        &self.entries[self.starts[b] as usize..self.starts[b + 1] as usize]
    }
}

/// Bytes of compressed rows.
pub(crate) fn assembled_bytes<T>(nrows: usize, nnz: usize) -> u64 {
    nrows as u64 * 4 + nnz as u64 * (4 + size_of::<T>() as u64)
}

/// A vector of `n` copies, or the error that the memory is not there.
pub(crate) fn try_filled<U: Clone>(n: usize, value: U, what: &'static str) -> Result<Vec<U>> {
    // The trial reservation is given back at once: `vec!` then takes untouched zero pages from the system.
    Vec::<U>::new().try_reserve_exact(n).map_err(|_| Error::TooLarge {
        what,
        needed: format!("{} bytes", n.saturating_mul(size_of::<U>())),
        limit: "the memory that could be had".into(),
    })?;
    Ok(vec![value; n])
}

/// The matrix whose entries the pieces hold, duplicates summed in the order of pieces.
pub(crate) fn assemble<T: Scalar>(nrows: usize, ncols: usize, pieces: &[Piece<T>]) -> Result<Csr<T>> {
    let buckets = Buckets::of(nrows);
    let nnz: usize = pieces.iter().map(Piece::len).sum();
    crate::csr::check_nnz(nnz)?;
    memory::ask(assembled_bytes::<T>(nrows, nnz), "the matrix in the file")?;
    let mut row_ptr = try_filled(nrows + 1, 0u32, "a matrix from file")?;
    let mut col_idx = try_filled(nnz, 0u32, "a matrix from file")?;
    let mut values = try_filled(nnz, zero::<T>(), "a matrix from file")?;

    // Every bucket owns its rows' pointers and its part of the entries.
    let mut jobs = Vec::with_capacity(buckets.count);
    let (mut rows, mut cols, mut vals) = (&mut row_ptr[1..], &mut col_idx[..], &mut values[..]);
    for b in 0..buckets.count {
        let len = pieces.iter().map(|p| p.bucket(b).len()).sum();
        let (r, c, v);
        (r, rows) = rows.split_at_mut(rows.len().min(1 << buckets.shift));
        (c, cols) = cols.split_at_mut(len);
        (v, vals) = vals.split_at_mut(len);
        jobs.push((b, r, c, v));
    }
    let sizes: Vec<(usize, usize)> = jobs
        .into_par_iter()
        .map(|(b, r, c, v)| {
            (c.len(), fill_rows((b << buckets.shift) as u32, pieces.iter().map(|p| p.bucket(b)), r, c, v))
        })
        .collect();

    // Pointers become global; where duplicates left gaps, the parts move together.
    let (mut from, mut to) = (0, 0);
    for (part, (len, kept)) in row_ptr[1..].chunks_mut(1 << buckets.shift).zip(sizes) {
        for p in &mut *part {
            *p += to as u32;
        }
        if from != to {
            col_idx.copy_within(from..from + kept, to);
            values.copy_within(from..from + kept, to);
        }
        (from, to) = (from + len, to + kept);
    }
    col_idx.truncate(to);
    values.truncate(to);
    Ok(Csr::from_valid_parts(nrows, ncols, row_ptr, col_idx, values))
}

/// Counting sort of one bucket by rows, then each row by columns; returns how many entries remain after summing
/// duplicates. `rows[k]` becomes the end of row `first + k` within the bucket.
fn fill_rows<'a, T: Scalar>(
    first: u32,
    parts: impl Iterator<Item = &'a [Entry<T>]> + Clone,
    rows: &mut [u32],
    cols: &mut [u32],
    vals: &mut [T],
) -> usize {
    for part in parts.clone() {
        for e in part {
            rows[(e.0 - first) as usize] += 1;
        }
    }
    let mut start = 0;
    for r in &mut *rows {
        (*r, start) = (start, start + *r);
    }
    for part in parts {
        for &(i, j, v) in part {
            let k = &mut rows[(i - first) as usize];
            (cols[*k as usize], vals[*k as usize]) = (j, v);
            *k += 1;
        }
    }
    // Now rows[k] is the end of row k. Sort where needed, then close gaps.
    let (mut start, mut out) = (0, 0);
    let mut line: Vec<(u32, T)> = Vec::new();
    for end in &mut *rows {
        let range = start..*end as usize;
        start = range.end;
        if out == range.start && cols[range.clone()].windows(2).all(|w| w[0] < w[1]) {
            out = range.end;
            continue;
        }
        line.clear();
        line.extend(range.clone().map(|k| (cols[k], vals[k])));
        line.sort_by_key(|e| e.0); // stable
        let row = out;
        for &(j, v) in &line {
            if out > row && cols[out - 1] == j {
                vals[out - 1] += v;
            } else {
                (cols[out], vals[out]) = (j, v);
                out += 1;
            }
        }
        *end = out as u32;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_buckets_and_duplicates() {
        // 5000 rows: 5 buckets. Entries in scrambled order over several pieces, against the serial path.
        let n = 5000u32;
        let mut entries = Vec::new();
        let mut state = 1u32;
        for k in 0..60_000u32 {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            entries.push((state >> 8 & 4095, (state >> 20) % 37, f64::from(k)));
        }
        entries.push((n - 1, 0, 1.0));
        let (rows, cols): (Vec<u32>, Vec<u32>) = entries.iter().map(|e| (e.0, e.1)).unzip();
        let vals: Vec<f64> = entries.iter().map(|e| e.2).collect();
        let expected = Csr::from_unsorted(n as usize, 37, &rows, &cols, &vals).unwrap();
        for size in [1 << 20, 7777, 100] {
            let pieces: Vec<_> =
                entries.chunks(size).map(|c| Piece::new(c.to_vec(), Buckets::of(n as usize))).collect();
            assert_eq!(assemble(n as usize, 37, &pieces).unwrap(), expected);
        }
    }

    #[test]
    fn nothing_to_assemble() {
        for n in [0, 1, 3] {
            assert_eq!(assemble::<f64>(n, 3, &[]).unwrap().row_ptr(), vec![0; n + 1]);
            assert_eq!(assemble(n, 3, &[Piece::<f64>::new(vec![], Buckets::of(n))]).unwrap().values().len(), 0);
        }
    }
}
