//! The block partition that methods and preconditioners work on.

use bt_formats::detect::{line_partition, natural_partition};
use bt_formats::{Csr, Error as InputError, LinearOperator, Partition, Scalar};

use crate::error::Error;
use crate::options::{Blocks, SolveOptions};

/// The blocks a method worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSummary {
    /// Number of blocks.
    pub count: usize,
    /// Smallest block.
    pub min: usize,
    /// Largest block.
    pub max: usize,
}

impl BlockSummary {
    pub(crate) fn of(partition: &Partition) -> Self {
        let (min, max) = partition.min_max_size();
        Self { count: partition.n_blocks(), min, max }
    }
}

/// The partition asked for. Given blocks are those of the matrix as given, so they exclude a reordering.
pub(crate) fn partition<T: Scalar>(a: &Csr<T>, blocks: &Blocks, identity: bool) -> Result<Partition, Error> {
    if *blocks != Blocks::Detect && !identity {
        return Err(Error::Usage {
            message: "given blocks belong to the given order; use them with the order none".into(),
        });
    }
    match blocks {
        Blocks::Detect => Ok(natural_partition(a)?),
        Blocks::Uniform(k) => Ok(Partition::uniform(a.nrows(), *k)?),
        Blocks::Sizes(sizes) => {
            let partition = Partition::from_sizes(sizes.iter().copied())?;
            if partition.n() != a.nrows() {
                return Err(InputError::DimensionMismatch {
                    what: "sum of the block sizes",
                    expected: a.nrows(),
                    found: partition.n(),
                }
                .into());
            }
            Ok(partition)
        }
    }
}

/// The blocks given or found. Lines first: their tridiagonal blocks are large and cheap, and large blocks make the iteration
/// converge.
pub(crate) fn blocks_of<T: Scalar>(
    work: &Csr<T>,
    options: &SolveOptions,
    natural_order: bool,
) -> Result<Partition, Error> {
    let lines = if options.blocks == Blocks::Detect { line_partition(work)? } else { None };
    match lines {
        Some(lines) => Ok(lines),
        None => partition(work, &options.blocks, natural_order),
    }
}
