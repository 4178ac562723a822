//! Floor 3 of blocktri: the M/M/n+k cloud queue, so far the block-tridiagonal matrices made from it; and the finite-element
//! disk.

pub mod cases;
mod disk;

pub use cases::{CloudCase, CloudParameters};
pub use disk::UnitDisk;
