//! The generic methods compiled for f64 and for the scalars that features name, in builds without optimization and with the feature
//! `compiled`.
//!
//! The crates above, test programs among them, link with what they find here and compile their own lines only. Builds without
//! optimization do so with every generic function; optimized ones with those that are `#[inline(never)]`, which is why functions
//! that do the work of a method are.

use std::hint::black_box;

use bt_formats::{Band, BlockTridiagonal, Csr, Matrix, Scalar, Tridiagonal};

#[cfg(feature = "batch")]
use crate::batch::{BandBatch, BatchLu, TridiagonalBatch};
#[cfg(feature = "batch")]
use crate::tridiagonal_once::TridiagonalOnce;
use crate::{
    BandCholesky, BandLu, BandLuNoPivot, BlockCholesky, BlockCyclicReduction, BlockLu, BlockLuAcross, BlockRbt,
    BorderedBlocks, Components, Cyclic, CyclicReduction, Diagonal, DiagonalPivoting, DoubledLu, ExactLu, Factorization,
    Inertia, NoPivotLu, ParallelCyclicReduction, PartialPivotLu, PeriodicTridiagonal, PermutedTriangular, Rbt,
    SelectedInverse, SparseCholesky, SparseLdl, SparseLu, SparseQr, Spike, Thomas, TridiagonalLu, TridiagonalSpike,
    condition, eigenvalues_below, error_bounds, inverse_diagonal, refine,
};

/// Mentions functions by address, so that they are compiled: for the crates above, too.
#[doc(hidden)]
#[macro_export]
macro_rules! compile {
    ($($function:expr),+ $(,)?) => { $(std::hint::black_box($function as *const ());)+ };
}

/// [`compile!`](crate::compile) of a function for f64 and for the scalars that features of the calling crate name.
#[doc(hidden)]
#[macro_export]
macro_rules! compile_scalars {
    ($function:ident) => {
        $crate::compile!($function::<f64>);
        #[cfg(feature = "c64")]
        $crate::compile!($function::<faer::c64>);
        #[cfg(feature = "f32")]
        $crate::compile!($function::<f32>);
        #[cfg(feature = "c32")]
        $crate::compile!($function::<faer::c32>);
    };
}

/// Mentions every method for every scalar; nobody calls it, and the linker drops what a program does not use.
#[inline(never)]
pub fn scalars() {
    compile_scalars!(of);
    #[cfg(feature = "single")]
    compile!(in_single::<f32>);
}

/// The methods that factor in single precision for matrices in double: those whose kernels gain by it.
#[cfg(feature = "single")]
fn in_single<T: Scalar>() {
    methods::<T, BandLu<T>>();
    compile!(BandLu::<T>::with_monitor);
    methods::<T, BlockLu<T>>();
    compile!(BlockLu::<T>::with_monitor);
    methods::<T, PartialPivotLu<T>>();
    compile!(PartialPivotLu::<T>::with_monitor);
    methods::<T, Rbt<T>>();
    compile!(Rbt::<T>::with_options);
    methods::<T, SparseLu<T>>();
    compile!(SparseLu::<T>::with_monitor);
}

/// All that `dyn Factorization` calls.
fn methods<T: Scalar, F: Factorization<T> + 'static>() {
    black_box(std::ptr::null::<F>() as *const dyn Factorization<T>);
    compile!(F::solve_in_place, F::solve_vec_in_place, condition::rcond::<T, F>);
}

fn of<T: Scalar>() {
    methods::<T, BandCholesky<T>>();
    compile!(BandCholesky::<T>::with_monitor, BandCholesky::<T>::refactor_with_monitor);
    methods::<T, BandLu<T>>();
    compile!(BandLu::<T>::with_monitor, BandLu::<T>::from_band, BandLu::<T>::refactor_with_monitor);
    methods::<T, BandLuNoPivot<T>>();
    compile!(BandLuNoPivot::<T>::with_options, BandLuNoPivot::<T>::refactor_with_monitor);
    methods::<T, BlockCholesky<T>>();
    compile!(BlockCholesky::<T>::with_monitor, BlockCholesky::<T>::refactor_with_monitor);
    methods::<T, BlockCyclicReduction<T>>();
    compile!(BlockCyclicReduction::<T>::with_monitor, BlockCyclicReduction::<T>::refactor_with_monitor);
    methods::<T, BlockLu<T>>();
    compile!(BlockLu::<T>::with_monitor, BlockLu::<T>::refactor_with_monitor, BlockLu::<T>::update_block);
    methods::<T, BlockLuAcross<T>>();
    compile!(BlockLuAcross::<T>::with_monitor, BlockLuAcross::<T>::refactor_with_monitor);
    methods::<T, BlockRbt<T>>();
    compile!(BlockRbt::<T>::with_options, BlockRbt::<T>::refactor_with_monitor);
    methods::<T, BorderedBlocks<T>>();
    compile!(BorderedBlocks::<T>::new, BorderedBlocks::<T>::refactor);
    methods::<T, Components<T>>();
    methods::<T, Diagonal<T>>();
    compile!(Diagonal::<T>::new, Diagonal::<T>::refactor);
    methods::<T, PermutedTriangular<T>>();
    compile!(PermutedTriangular::<T>::new, PermutedTriangular::<T>::refactor);
    methods::<T, DoubledLu<T>>();
    compile!(DoubledLu::<T>::with_monitor);
    methods::<T, ExactLu<T>>();
    compile!(ExactLu::<T>::with_monitor);
    methods::<T, CyclicReduction<T>>();
    compile!(CyclicReduction::<T>::with_options, CyclicReduction::<T>::refactor_with_monitor);
    methods::<T, DiagonalPivoting<T>>();
    compile!(DiagonalPivoting::<T>::new, DiagonalPivoting::<T>::refactor);
    methods::<T, NoPivotLu<T>>();
    compile!(NoPivotLu::<T>::with_monitor, NoPivotLu::<T>::refactor_with_monitor);
    methods::<T, ParallelCyclicReduction<T>>();
    compile!(ParallelCyclicReduction::<T>::with_monitor, ParallelCyclicReduction::<T>::refactor_with_monitor);
    methods::<T, PartialPivotLu<T>>();
    compile!(PartialPivotLu::<T>::with_monitor, PartialPivotLu::<T>::refactor_with_monitor);
    methods::<T, PeriodicTridiagonal<T>>();
    compile!(
        PeriodicTridiagonal::<T>::with_monitor,
        PeriodicTridiagonal::<T>::refactor_with_monitor,
        Cyclic::<T>::from_csr
    );
    methods::<T, Rbt<T>>();
    compile!(Rbt::<T>::with_options, Rbt::<T>::refactor_with_monitor);
    methods::<T, SparseCholesky<T>>();
    compile!(SparseCholesky::<T>::with_monitor, SparseCholesky::<T>::with_symbolic);
    compile!(SparseCholesky::<T>::refactor_with_monitor);
    methods::<T, SparseLdl<T>>();
    compile!(SparseLdl::<T>::with_monitor, SparseLdl::<T>::with_symbolic, SparseLdl::<T>::refactor_with_monitor);
    methods::<T, SparseLu<T>>();
    compile!(SparseLu::<T>::with_monitor, SparseLu::<T>::refactor_with_monitor);
    methods::<T, SparseQr<T>>();
    compile!(SparseQr::<T>::with_monitor, SparseQr::<T>::refactor_with_monitor);
    methods::<T, Spike<T>>();
    compile!(Spike::<T>::of_band, Spike::<T>::of_blocks, Spike::<T>::run, Spike::<T>::auto);
    methods::<T, Thomas<T>>();
    compile!(Thomas::<T>::new, Thomas::<T>::refactor);
    methods::<T, TridiagonalLu<T>>();
    compile!(TridiagonalLu::<T>::new, TridiagonalLu::<T>::refactor);
    methods::<T, TridiagonalSpike<T>>();
    compile!(TridiagonalSpike::<T>::with_options, TridiagonalSpike::<T>::refactor_with_monitor);

    #[cfg(feature = "batch")]
    batches::<T>();
    compile!(SelectedInverse::<T>::with_monitor, SelectedInverse::<T>::recompute_with_monitor, inverse_diagonal::<T>);
    compile!(
        Inertia::of_blocks_with_monitor::<T>,
        Inertia::of_band::<T>,
        Inertia::of_tridiagonal::<T>,
        eigenvalues_below::<T>
    );
    of_matrix::<T, Band<T>>();
    of_matrix::<T, BlockTridiagonal<T>>();
    of_matrix::<T, Csr<T>>();
    of_matrix::<T, Tridiagonal<T>>();
    of_matrix::<T, dyn Matrix<T>>();
}

/// One system solved once, and many small ones.
#[cfg(feature = "batch")]
fn batches<T: Scalar>() {
    compile!(TridiagonalOnce::<T>::new, TridiagonalOnce::<T>::solve_in_place);
    compile!(BatchLu::<T>::with_options, BatchLu::<T>::refactor, BatchLu::<T>::solve_in_place);
    compile!(BatchLu::<T>::solve_with, BatchLu::<T>::solve_into);
    compile!(BandBatch::<T>::new::<Band<T>>, BandBatch::<T>::new::<BlockTridiagonal<T>>, BandBatch::<T>::solve_with);
    compile!(TridiagonalBatch::<T>::from_systems, TridiagonalBatch::<T>::solve_with);
}

fn of_matrix<T: Scalar, A: Matrix<T> + ?Sized>() {
    compile!(refine::<T, A, dyn Factorization<T>>, error_bounds::<T, A, dyn Factorization<T>>);
}
