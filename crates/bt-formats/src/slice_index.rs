//! A second index of compressed rows: which diagonals eight rows have entries on.
//!
//! Where neighbouring rows resemble each other, eight of them have entries on few diagonals. One offset a diagonal and
//! one bit an entry then say what four bytes an entry and four a row say in compressed rows, and x is read in consecutive
//! pieces. The values stay where they are. Masks and expansion as in Bramas, Kus, *Computing the sparse matrix vector
//! product using block-based kernels without zero padding on processors with AVX-512 instructions*, PeerJ Comput. Sci. 4
//! (2018), <https://doi.org/10.7717/peerj-cs.151>; departure: blocks of eight rows on eight diagonals, not on eight columns.
//!
//! Storage: 40 bytes for each eight diagonals of eight rows, and 4(⌈n/8⌉ + 1).

use crate::convert::too_large;
use crate::error::Result;

/// Rows of a slice, and diagonals of a chunk.
const SLICE: usize = 8;

/// Slices from which on one of [`SAMPLED`] is looked at before all are.
const MANY: usize = 512;
const SAMPLED: usize = 16;

/// Eight diagonals of eight rows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chunk {
    /// Column less row, increasing.
    pub offsets: [i32; SLICE],
    /// Bit t of byte q: row q has an entry on diagonal t.
    pub rows: [u8; SLICE],
}

/// The diagonals of all slices of eight rows.
#[derive(Clone, Debug)]
pub(crate) struct SliceIndex {
    /// First chunk of each slice, and their number.
    chunk_ptr: Vec<u32>,
    chunks: Vec<Chunk>,
}

impl SliceIndex {
    /// The index of compressed rows, if it takes at most `limit` bytes; of many rows, if a sample of them promises it, too.
    ///
    /// # Errors
    /// [`crate::Error::TooLarge`] when the storage cannot be had.
    pub(crate) fn new(row_ptr: &[u32], cols: &[u32], limit: usize) -> Result<Option<Self>> {
        let n = row_ptr.len() - 1;
        let n_slices = n.div_ceil(SLICE);
        let most = limit.saturating_sub(4 * (n_slices + 1)) / size_of::<Chunk>();
        let mut entries = Vec::new();
        // Rows that do not resemble each other show it in a few slices of many.
        if n_slices > MANY {
            let mut chunks_of = |slice: usize| {
                by_diagonals(row_ptr, cols, slice * SLICE, &mut entries);
                entries.chunk_by(|a, b| a.0 == b.0).count().div_ceil(SLICE)
            };
            let sampled: usize = (0..n_slices).step_by(SAMPLED).map(&mut chunks_of).sum();
            if 4 * SAMPLED * sampled > 5 * most {
                return Ok(None);
            }
        }
        let mut out = Self { chunk_ptr: Vec::new(), chunks: Vec::new() };
        out.chunk_ptr.try_reserve_exact(n_slices + 1).map_err(|_| too_large("an index by diagonals", n_slices))?;
        out.chunk_ptr.push(0);
        for first in (0..n).step_by(SLICE) {
            by_diagonals(row_ptr, cols, first, &mut entries);
            for (d, same) in entries.chunk_by(|a, b| a.0 == b.0).enumerate() {
                let Ok(offset) = i32::try_from(same[0].0) else { return Ok(None) };
                let t = d % SLICE;
                if t == 0 {
                    if out.chunks.len() == most {
                        return Ok(None);
                    }
                    out.chunks.try_reserve(1).map_err(|_| too_large("an index by diagonals", most))?;
                    out.chunks.push(Chunk::default());
                }
                if let Some(chunk) = out.chunks.last_mut() {
                    chunk.offsets[t] = offset;
                    for e in same {
                        chunk.rows[e.1 as usize] |= 1 << t;
                    }
                }
            }
            out.chunk_ptr.push(out.chunks.len() as u32);
        }
        out.chunks.shrink_to_fit();
        Ok(Some(out))
    }

    /// First chunk of each slice, and their number.
    pub(crate) fn chunk_ptr(&self) -> &[u32] {
        &self.chunk_ptr
    }

    pub(crate) fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.chunk_ptr) + size_of_val(&*self.chunks)
    }
}

/// The entries of the eight rows from `first` on: column less row, increasing, and which of the rows.
fn by_diagonals(row_ptr: &[u32], cols: &[u32], first: usize, entries: &mut Vec<(i64, u8)>) {
    entries.clear();
    let last = (row_ptr.len() - 1).min(first + SLICE);
    for (q, p) in row_ptr[first..=last].windows(2).enumerate() {
        let row = (first + q) as i64;
        entries.extend(cols[p[0] as usize..p[1] as usize].iter().map(|&c| (c as i64 - row, q as u8)));
    }
    // Stable sorting finds the sorted rows and merges them.
    entries.sort_by_key(|e| e.0);
}

#[cfg(test)]
mod tests {
    use super::SliceIndex;

    #[test]
    fn nine_rows_by_hand() {
        // Row 0: columns 0 and 3, row 1: 1, row 8: 0 to 8; the others are empty.
        let row_ptr = [0, 2, 3, 3, 3, 3, 3, 3, 3, 12];
        let cols = [0, 3, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        let index = SliceIndex::new(&row_ptr, &cols, usize::MAX).unwrap().unwrap();
        assert_eq!(index.chunk_ptr(), &[0, 1, 3]);
        let [a, b, c] = index.chunks() else { panic!("three chunks") };
        assert_eq!((a.offsets, a.rows), ([0, 3, 0, 0, 0, 0, 0, 0], [0b11, 0b01, 0, 0, 0, 0, 0, 0]));
        assert_eq!((b.offsets, b.rows), ([-8, -7, -6, -5, -4, -3, -2, -1], [0xff, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!((c.offsets[0], c.rows), (0, [1, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(index.bytes(), 3 * 40 + 3 * 4);
        assert!(SliceIndex::new(&row_ptr, &cols, 132).unwrap().is_some());
        assert!(SliceIndex::new(&row_ptr, &cols, 131).unwrap().is_none());
    }

    #[test]
    fn a_sample_of_many_rows_decides_as_all_of_them() {
        // Two entries a row, on one pair of diagonals, or on others in each row.
        let n = 9000u32;
        let row_ptr: Vec<u32> = (0..=n).map(|i| 2 * i).collect();
        let limit = 6 * n as usize;
        let indexed = |far: &dyn Fn(u32) -> u32| {
            let cols: Vec<u32> = (0..n).flat_map(|i| [i, i + 1 + far(i)]).collect();
            SliceIndex::new(&row_ptr, &cols, limit).unwrap()
        };
        assert_eq!(indexed(&|_| 40).unwrap().chunks().len(), n as usize / 8);
        assert!(indexed(&|i| i * 7919 % 1000).is_none());
    }
}
