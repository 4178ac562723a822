//! Test kit of blocktri: what every format and every solver is tested with.
//!
//! - [`mod@catalogue`]: named small systems, each with what a solver has to do with it.
//! - [`strategies`]: proptest strategies for matrices of every structure, dominant, well-conditioned or wild.
//! - [`oracle`]: dense answers in double precision, from faer.
//! - [`contract`]: suites that every operator and factorization has to pass. They return the first breach as a
//!   sentence, so that the suites themselves can be tested with objects that break one rule each.
//! - [`alloc`]: an allocator that counts.
//! - [`csr`], [`grid`], [`stencil`]: matrices from a function of the place, and from grids.
//! - [`DenseLu`]: the plainest factorization that keeps the contract.

pub mod alloc;
pub mod catalogue;
pub mod contract;
mod dense_lu;
mod matrices;
pub mod oracle;
pub mod strategies;
mod vectors;

pub use catalogue::{Expect, PAPER_B, System, catalogue};
pub use dense_lu::DenseLu;
pub use matrices::{chain, csr, grid, shooting, stencil};
pub use vectors::{random_vector, x_star};

/// The direct method that CONTRIBUTING.md writes as an example, and all else there.
#[cfg(doctest)]
#[doc = include_str!("../../../CONTRIBUTING.md")]
struct Contributing;
