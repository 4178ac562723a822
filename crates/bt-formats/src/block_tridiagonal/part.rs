//! Consecutive blocks of a block-tridiagonal matrix as a matrix of their own.

use std::ops::Range;
use std::sync::Arc;

use faer::MatMut;

use super::{BlockTridiagonal, Couplings, DiagonalBlocks, Window};
use crate::convert::try_zeros;
use crate::error::{Error, Result};
use crate::partition::Partition;
use crate::scalar::Scalar;

impl<T: Scalar> BlockTridiagonal<T> {
    /// The blocks `blocks` with the couplings between them, all dense.
    ///
    /// ```
    /// use bt_formats::{BlockTridiagonal, Csr, HybridLayout, Partition};
    /// let a = Csr::new(3, 3, vec![0, 2, 4, 6], vec![0, 1, 1, 2, 1, 2], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    /// let a = BlockTridiagonal::from_csr(&a, Partition::uniform(3, 1)?, HybridLayout::default())?;
    /// let tail = a.part(1..3)?.to_csr()?;
    /// assert_eq!(tail.values(), [3.0, 4.0, 5.0, 6.0]);
    /// # Ok::<(), bt_formats::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TooLarge`] when memory is short.
    ///
    /// # Panics
    /// When there are no such blocks.
    #[inline(never)]
    pub fn part(&self, blocks: Range<usize>) -> Result<Self> {
        let partition = Partition::from_sizes(blocks.clone().map(|j| self.partition.size(j)))?;
        let (mut squares, mut pairs) = (vec![0usize], vec![0usize]);
        for j in 0..blocks.len() {
            let w = Window::new(&partition, j);
            squares.push(squares[j].saturating_add(w.size().saturating_mul(w.size())));
            pairs.push(pairs[j].saturating_add(w.size().saturating_mul(w.coupling_cols())));
        }
        let diagonal = try_zeros(squares[blocks.len()], "diagonal blocks")?;
        let couplings = try_zeros(pairs[blocks.len()], "couplings")?;
        let mut out = Self {
            partition,
            diagonal: Arc::new(DiagonalBlocks::Dense { starts: squares, values: diagonal }),
            couplings: Arc::new(Couplings::Dense { starts: pairs, values: couplings }),
        };
        out.copy_part(self, blocks.start)?;
        Ok(out)
    }

    /// Takes over the values of the blocks of `a` from block `first` on, as many as this matrix has. Allocates nothing where no
    /// clone shares the values.
    ///
    /// # Errors
    /// [`Error::InvalidStructure`] when the sizes differ, or this matrix does not store dense blocks as
    /// [`BlockTridiagonal::part`] makes them.
    pub fn copy_part(&mut self, a: &Self, first: usize) -> Result<()> {
        let m = self.partition.n_blocks();
        let fits = first + m <= a.n_blocks() && (0..m).all(|j| self.partition.size(j) == a.partition.size(first + j));
        let (
            true,
            DiagonalBlocks::Dense { starts: squares, values: diagonal },
            Couplings::Dense { starts: pairs, values: couplings },
        ) = (fits, Arc::make_mut(&mut self.diagonal), Arc::make_mut(&mut self.couplings))
        else {
            let why = "other blocks, or not dense ones".into();
            return Err(Error::InvalidStructure { what: "target of a part", why });
        };
        for j in 0..m {
            let w = Window::new(&self.partition, j);
            let k = w.size();
            let (left, right) = (w.start - w.lo, w.hi - w.end);
            a.copy_diagonal_block(
                first + j,
                MatMut::from_column_major_slice_mut(&mut diagonal[squares[j]..squares[j + 1]], k, k),
            );
            let (lower, upper) = couplings[pairs[j]..pairs[j + 1]].split_at_mut(k * left);
            if left > 0 {
                a.copy_lower_block(first + j, MatMut::from_column_major_slice_mut(lower, k, left));
            }
            if right > 0 {
                a.copy_upper_block(first + j, MatMut::from_column_major_slice_mut(upper, k, right));
            }
        }
        Ok(())
    }
}
