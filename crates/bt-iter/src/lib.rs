//! Floor 2 of blocktri: iterative solvers. So far the hybrid block iteration.

mod block_diagonal;
mod hbisa;

pub use block_diagonal::BlockDiagonal;
pub use hbisa::{Hbisa, StopRule, Sweep};
