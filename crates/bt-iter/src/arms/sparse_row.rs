//! Sparse rows under construction, and many of them made in parallel.
//!
//! Rows are made in chunks of fixed size, each row by itself, and joined in order: the same bits for any number of threads.

use bt_direct::Result;
use bt_formats::{Error, RealScalar, Scalar, zero};
use rayon::prelude::*;

use crate::ilut::keep_largest;
use crate::triangular::Rows;

/// Values by column, and which columns there are.
pub(super) struct SparseRow<T> {
    value: Vec<T>,
    present: Vec<bool>,
    cols: Vec<u32>,
}

impl<T: Scalar> SparseRow<T> {
    /// An empty row of `ncols` columns.
    pub fn new(ncols: usize) -> Self {
        Self { value: vec![zero(); ncols], present: vec![false; ncols], cols: Vec::new() }
    }

    /// rⱼ ← rⱼ + v
    #[inline]
    pub fn add(&mut self, j: u32, v: T) {
        let k = j as usize;
        if !std::mem::replace(&mut self.present[k], true) {
            self.value[k] = zero();
            self.cols.push(j);
        }
        self.value[k] += v;
    }

    /// Appends what is kept: `diagonal`, and of the other entries of modulus at least `threshold` the `fill` largest. The
    /// row is empty then.
    pub fn store(&mut self, threshold: f64, fill: usize, diagonal: Option<u32>, into: &mut Rows<T>) {
        let diagonal = diagonal.filter(|d| self.present[*d as usize]);
        for &j in &self.cols {
            self.present[j as usize] = false;
        }
        let value = &self.value;
        self.cols.retain(|&j| {
            let size = value[j as usize].abs().to_f64();
            // A NaN stays, to be found.
            Some(j) != diagonal && size != 0.0 && !(size < threshold)
        });
        keep_largest(&mut self.cols, fill, value);
        if let Some(d) = diagonal {
            self.cols.insert(self.cols.partition_point(|&j| j < d), d);
        }
        into.val.extend(self.cols.iter().map(|&j| value[j as usize]));
        into.idx.append(&mut self.cols);
        into.ptr.push(into.idx.len() as u32);
    }
}

impl<T: Scalar> Rows<T> {
    /// No rows.
    pub(super) fn none() -> Self {
        Self { ptr: vec![0], ..Self::default() }
    }

    /// Columns and values of a row.
    #[inline]
    pub(super) fn row(&self, i: usize) -> impl Iterator<Item = (u32, T)> + '_ {
        let range = self.ptr[i] as usize..self.ptr[i + 1] as usize;
        self.idx[range.clone()].iter().copied().zip(self.val[range].iter().copied())
    }

    /// The rows of `next` behind these.
    ///
    /// # Errors
    /// [`Error::TooLarge`] beyond 32-bit pointers.
    pub(super) fn append(&mut self, mut next: Self) -> Result<()> {
        let start = self.idx.len();
        if start + next.idx.len() >= u32::MAX as usize {
            let needed = format!("{} entries", start + next.idx.len());
            return Err(Error::TooLarge { what: "a part of arms", needed, limit: "32-bit pointers".into() }.into());
        }
        self.ptr.extend(next.ptr[1..].iter().map(|p| p + start as u32));
        self.idx.append(&mut next.idx);
        self.val.append(&mut next.val);
        Ok(())
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.ptr) + size_of_val(&*self.idx) + size_of_val(&*self.val)
    }
}

/// Items of a chunk.
const CHUNK: usize = 32;

/// The chunks of `make` over 0..n, each on some thread with a workspace, in order.
pub(super) fn in_chunks<W, R: Send>(
    n: usize,
    workspace: impl Fn() -> W + Sync + Send,
    make: impl Fn(&mut W, std::ops::Range<usize>) -> R + Sync + Send,
) -> Vec<R> {
    let chunk = |w: &mut W, c: usize| make(w, c * CHUNK..((c + 1) * CHUNK).min(n));
    (0..n.div_ceil(CHUNK)).into_par_iter().map_init(workspace, chunk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_the_diagonal_and_the_largest() {
        let mut row = SparseRow::new(6);
        let mut out = Rows::none();
        let mut store = |entries: &[(u32, f64)], threshold, fill, diagonal| {
            for &(j, v) in entries {
                row.add(j, v);
            }
            row.store(threshold, fill, diagonal, &mut out);
            out.row(out.ptr.len() - 2).collect::<Vec<_>>()
        };
        // 5 of the two parts of column 4; column 1 cancels; column 3 is small, and of the rest two are kept.
        let entries = [(4, 2.0), (1, 1.0), (0, -4.0), (3, 0.1), (5, 3.0), (4, 3.0), (1, -1.0)];
        assert_eq!(store(&entries, 0.5, 2, None), [(0, -4.0), (4, 5.0)]);
        // The diagonal stays whatever its size, and beside the number.
        assert_eq!(store(&entries, 0.5, 1, Some(3)), [(3, 0.1), (4, 5.0)]);
        assert_eq!(store(&entries, 9.0, 1, Some(2)), []);
        assert_eq!(store(&[], 0.0, 1, None), []);
        let mut joined = Rows::none();
        joined.append(out.clone()).unwrap();
        joined.append(out).unwrap();
        assert_eq!(joined.ptr, [0, 2, 4, 4, 4, 6, 8, 8, 8]);
        assert_eq!(joined.row(5).collect::<Vec<_>>(), [(3, 0.1), (4, 5.0)]);
    }

    #[test]
    fn chunks_come_in_order() {
        let parts = in_chunks(70, || (), |(), range| range);
        assert_eq!(parts, [0..32, 32..64, 64..70]);
        assert!(in_chunks(0, || (), |(), range| range).is_empty());
    }
}
