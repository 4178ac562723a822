//! Structure detection: what a matrix is, found in time linear in its non-zeros.
//!
//! Structure means the pattern of the **non-zero values**: entries stored as exact zeros do not count.

mod partition;

pub use partition::{finest_partition, is_block_tridiagonal, natural_partition};
