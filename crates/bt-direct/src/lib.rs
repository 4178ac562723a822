//! Floor 1 of blocktri: direct solvers. A factorization is a value that solves with A, Aᵀ and Aᴴ as often as wanted.
//!
//! All that one factorization serves for:
//!
//! ```
//! use bt_direct::{BlockLu, Factorization, Inertia, SelectedInverse, error_bounds};
//! use bt_formats::{BlockTridiagonal, Op, Partition};
//! use faer::{Mat, mat};
//! // [  2 −1       ]        1   [ 4 3 2 1 ]
//! // [ −1  2 −1    ]  A⁻¹ = — · [ 3 6 4 2 ]    blocks of two rows: diagonal ones by columns,
//! // [    −1  2 −1 ]        5   [ 2 4 6 3 ]    then the blocks beside and below them
//! // [       −1  2 ]            [ 1 2 3 4 ]
//! let matrix = |corner: f64| {
//!     let diagonal = vec![2.0, -1.0, -1.0, 2.0, 2.0, -1.0, -1.0, corner];
//!     let couplings = vec![0.0, -1.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0];
//!     BlockTridiagonal::from_dense_blocks(Partition::uniform(4, 2)?, diagonal, couplings)
//! };
//! let a = matrix(2.0)?;
//! let mut lu = BlockLu::new(&a)?;
//!
//! // 1. A·x = b
//! let b: Mat<f64> = mat![[1.0], [0.0], [0.0], [1.0]];
//! let mut x = b.clone();
//! lu.solve_in_place(x.as_mut());
//! assert!((0..4).all(|i| (x[(i, 0)] - 1.0).abs() < 1e-15));
//! // 2. Aᵀ·y = b, and Aᴴ alike
//! let mut y = b.clone();
//! lu.solve_transpose_in_place(y.as_mut());
//! assert!((&y - &x).norm_max() < 1e-15);
//! // 3. det A, and how well conditioned A is
//! assert!((lu.log_det().log_abs - 5f64.ln()).abs() < 1e-15 && lu.log_det().sign == 1.0);
//! assert!((lu.rcond() - 1.0 / 12.0).abs() < 1e-15);
//! // 4. how wrong x may be
//! let bounds = error_bounds(&a, &lu, Op::Identity, b.as_ref(), x.as_ref())[0];
//! assert!(bounds.backward < 1e-15 && bounds.forward < 1e-13);
//! // 5. the blocks of A⁻¹ on and beside the diagonal
//! let inverse = SelectedInverse::new(&lu)?;
//! assert!((inverse.diagonal(0)[(0, 0)] - 0.8).abs() < 1e-15 && (inverse.upper(0)[(1, 0)] - 0.8).abs() < 1e-15);
//! // 6. new values in one block row, without factoring the rest again; `refactor` takes new values everywhere
//! lu.update_block(1, &matrix(1.0)?)?;
//! assert!(lu.log_det().log_abs.abs() < 1e-15);
//! // The signs of the eigenvalues take a factorization of their own.
//! assert_eq!(Inertia::of_blocks(&a)?.positive, 4);
//! # Ok::<(), bt_direct::FactorError>(())
//! ```
//!
//! Feature `compiled`: the methods are compiled with this crate, once for the four scalars, and programs link with them. Without it optimized
//! builds compile what a program uses, with that program; with it this crate takes minutes.
// Before it inlines, the compiler follows calls in search of circles, by as many instances of a generic function as half of this (ADR 5).
#![recursion_limit = "32"]
#![cfg_attr(not(target_arch = "x86_64"), allow(unused, reason = "vectors of a certain length are of x86-64 only"))]

pub mod band_cholesky;
pub mod band_lu;
pub mod band_nopivot;
pub mod batch;
mod block_cholesky;
mod block_cyclic;
pub mod block_lu;
mod block_lu_across;
mod block_rbt;
mod bordered;
pub mod butterfly;
mod columns;
mod components;
pub mod condition;
mod cyclic;
pub mod cyclic_reduction;
pub mod dense;
pub mod dense_lu;
mod diagonal;
pub mod diagonal_pivoting;
mod doubled_lu;
mod eight;
mod error;
mod error_bounds;
mod estimate;
mod exact_lu;
mod factorization;
mod given;
mod guard;
mod inertia;
#[cfg(all(any(debug_assertions, feature = "compiled"), not(test)))]
#[doc(hidden)]
pub mod instances;
pub mod lapack;
mod lines;
mod lowered;
mod memory;
pub mod nopivot;
pub mod parallel_cyclic_reduction;
pub mod periodic;
mod permuted_triangular;
mod pivot;
mod pool;
pub mod rbt;
pub mod refine;
mod selected_inverse;
pub mod sparse_cholesky;
mod sparse_columns;
mod sparse_ldl;
pub mod sparse_lu;
mod sparse_qr;
pub mod spike;
pub mod thomas;
pub mod tridiagonal_lu;
pub mod tridiagonal_once;
mod watch;

pub use band_cholesky::BandCholesky;
pub use band_lu::BandLu;
pub use band_nopivot::{BandLuNoPivot, Boosting};
pub use block_cholesky::BlockCholesky;
pub use block_cyclic::BlockCyclicReduction;
pub use block_lu::BlockLu;
#[cfg(feature = "forced-kernels")]
pub use block_lu::Kernels;
pub use block_lu_across::BlockLuAcross;
pub use block_rbt::BlockRbt;
pub use bordered::{Bordered, BorderedBlocks};
pub use butterfly::Butterfly;
pub use components::Components;
pub use cyclic::Cyclic;
pub use cyclic_reduction::{CyclicReduction, Switch};
pub use dense::DenseMatrix;
pub use dense_lu::PartialPivotLu;
pub use diagonal::Diagonal;
pub use diagonal_pivoting::DiagonalPivoting;
pub use doubled_lu::DoubledLu;
pub use error::{FactorError, Place, Result, SingularKind, Singularity};
pub use error_bounds::{ErrorBounds, error_bounds};
pub use exact_lu::ExactLu;
pub use factorization::{FactorStats, Factorization, LogDet};
pub use given::Given;
pub use inertia::{Count, Inertia, eigenvalues_below};
pub use lowered::Lowered;
pub use nopivot::NoPivotLu;
pub use parallel_cyclic_reduction::ParallelCyclicReduction;
pub use periodic::PeriodicTridiagonal;
pub use permuted_triangular::PermutedTriangular;
pub use rbt::{Fallback, FallbackReason, Rbt, RbtOptions};
pub use refine::{Refined, Refinement, RefinementVectors, refine, refine_in};
pub use selected_inverse::{SelectedInverse, inverse_diagonal};
pub use sparse_cholesky::{SparseCholesky, SymbolicCholesky};
pub use sparse_ldl::SparseLdl;
pub use sparse_lu::{SparseLu, SymbolicLu};
pub use sparse_qr::SparseQr;
pub use spike::{Spike, SpikeOptions, TridiagonalSpike};
pub use thomas::Thomas;
pub use tridiagonal_lu::TridiagonalLu;
pub use tridiagonal_once::{Elimination, TridiagonalOnce};
