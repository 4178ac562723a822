//! Floor 3 of blocktri: the M/M/n+k cloud queue. So far: the block-tridiagonal matrices made from it.

pub mod cases;

pub use cases::{CloudCase, CloudParameters};
