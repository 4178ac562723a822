//! Partitions of 0..n into consecutive blocks of any sizes.

use crate::error::{Error, Result};

/// Consecutive blocks: block j holds the rows `offsets[j]..offsets[j + 1]`. No block is empty.
///
/// ```
/// use bt_formats::Partition;
/// let p = Partition::from_sizes([2, 3])?;
/// assert_eq!((p.n(), p.n_blocks(), p.range(1), p.block_of(4)), (5, 2, 2..5, 1));
/// # Ok::<(), bt_formats::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    offsets: Vec<u32>,
}

impl Partition {
    /// From block sizes.
    ///
    /// # Errors
    /// [`Error::InvalidStructure`] naming an empty block; [`Error::TooLarge`] when they sum beyond 32 bits.
    pub fn from_sizes(sizes: impl IntoIterator<Item = usize>) -> Result<Self> {
        let mut offsets = vec![0u32];
        let mut sum = 0usize;
        for (j, k) in sizes.into_iter().enumerate() {
            if k == 0 {
                return Err(Error::InvalidStructure {
                    what: "block sizes",
                    why: format!("block {j} (from 0) is empty"),
                });
            }
            sum = sum.saturating_add(k);
            crate::coo::check_shape(sum, sum)?;
            offsets.push(sum as u32);
        }
        Ok(Self { offsets })
    }

    /// Blocks of `block_size` rows, the last one smaller when it does not divide `n`.
    ///
    /// # Errors
    /// [`Error::InvalidStructure`] when `block_size` is 0.
    pub fn uniform(n: usize, block_size: usize) -> Result<Self> {
        if block_size == 0 {
            return Err(Error::InvalidStructure { what: "block size", why: "it must be at least 1".into() });
        }
        Self::from_sizes((0..n).step_by(block_size).map(|i| block_size.min(n - i)))
    }

    /// Rows in all.
    #[inline]
    pub fn n(&self) -> usize {
        self.offsets[self.offsets.len() - 1] as usize
    }
    /// Number of blocks.
    #[inline]
    pub fn n_blocks(&self) -> usize {
        self.offsets.len() - 1
    }
    /// First row of each block, and n.
    pub fn offsets(&self) -> &[u32] {
        &self.offsets
    }
    /// Rows of block `j`.
    #[inline]
    pub fn range(&self, j: usize) -> std::ops::Range<usize> {
        self.offsets[j] as usize..self.offsets[j + 1] as usize
    }
    /// Rows of block `j`, counted.
    #[inline]
    pub fn size(&self, j: usize) -> usize {
        self.range(j).len()
    }
    /// All block sizes.
    pub fn sizes(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.offsets.windows(2).map(|w| (w[1] - w[0]) as usize)
    }
    /// Smallest and largest block; (0, 0) when there is none.
    pub fn min_max_size(&self) -> (usize, usize) {
        (self.sizes().min().unwrap_or(0), self.sizes().max().unwrap_or(0))
    }
    /// Block that row `i` belongs to. O(log of the number of blocks).
    pub fn block_of(&self, i: usize) -> usize {
        self.offsets.partition_point(|&o| o as usize <= i) - 1
    }
}
