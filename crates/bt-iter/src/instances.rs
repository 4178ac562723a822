//! The generic methods compiled for the scalars that features name, as `bt_direct::instances` are: whoever uses them links, and compiles its own
//! lines only.

use std::hint::black_box;
use std::sync::Arc;

use bt_direct::{Result, compile, compile_scalars};
use bt_formats::{BlockTridiagonal, Csr, Matrix, Scalar};

use crate::{
    Arms, BandSpike, BiCgStab, BlockForm, BlockPreconditioner, BlockSsorAi, Cg, CyclicallyReduced, Gmres, Hbisa,
    Identity, IncompleteLu, Jacobi, Lockstep, Preconditioner, QuasiBlockTridiagonal, Refactor, SsorAi, SsorAiMasked,
    ic0, ilu0, iluk, ilut, ssor,
};

/// Mentions every method for every scalar; nobody calls it, and the linker drops what a program does not use.
#[inline(never)]
pub fn scalars() {
    compile_scalars!(of);
    #[cfg(feature = "single")]
    compile!(in_single::<f32>);
}

/// The preconditioners that are made in single precision for matrices in double.
#[cfg(feature = "single")]
fn in_single<T: Scalar>() {
    preconditioner::<T, BlockPreconditioner<T>>();
    refactored::<T, IncompleteLu<T>>();
    compile!(ic0::<T>, ilu0::<T>, iluk::<T>, ilut::<T>, blocks::<T>);
}

/// All that `dyn Preconditioner` calls.
fn preconditioner<T: Scalar, P: Preconditioner<T> + 'static>() {
    black_box(std::ptr::null::<P>() as *const dyn Preconditioner<T>);
}

/// And `dyn Refactor`.
fn refactored<T: Scalar, P: Refactor<T> + 'static>() {
    black_box(std::ptr::null::<P>() as *const dyn Refactor<T>);
    preconditioner::<T, P>();
}

fn of<T: Scalar>() {
    compile!(Cg::<T>::new, Cg::<T>::flexible, Cg::<T>::solve, BiCgStab::<T>::new, BiCgStab::<T>::solve);
    compile!(Gmres::<T>::new, Gmres::<T>::solve, Gmres::<T, T::Single>::single_basis, Gmres::<T, T::Single>::solve);
    compile!(Lockstep::<T>::cg, Lockstep::<T>::bicgstab, Lockstep::<T>::gmres, Lockstep::<T>::gmres_single_basis);
    compile!(Lockstep::<T>::solve, Hbisa::<T>::with_options, Hbisa::<T>::solve, QuasiBlockTridiagonal::<T>::new);
    compile!(reduced::<T>, CyclicallyReduced::<T>::solve);

    preconditioner::<T, Identity>();
    preconditioner::<T, BlockPreconditioner<T>>();
    refactored::<T, Arms<T>>();
    refactored::<T, BandSpike<T>>();
    refactored::<T, BlockSsorAi<T>>();
    refactored::<T, IncompleteLu<T>>();
    refactored::<T, Jacobi<T>>();
    refactored::<T, SsorAi<'static, T>>();
    refactored::<T, SsorAiMasked<T>>();
    compile!(Arms::<T>::with_options, BandSpike::<T>::with_options, BlockSsorAi::<T>::with_options);
    compile!(SsorAi::<T>::with_options, SsorAiMasked::<T>::with_options);
    compile!(ic0::<T>, ilu0::<T>, iluk::<T>, ilut::<T>, ssor::<T>);
    compile!(blocks::<T>);
    compile!(Jacobi::<T>::new::<Csr<T>>, Jacobi::<T>::new::<dyn Matrix<T>>);
}

fn reduced<T: Scalar>(a: Arc<BlockTridiagonal<T>>) -> Result<CyclicallyReduced<T>> {
    CyclicallyReduced::new(a)
}

fn blocks<T: Scalar>(a: Arc<BlockTridiagonal<T>>, form: BlockForm) -> Result<BlockPreconditioner<T>> {
    BlockPreconditioner::new(a, form)
}
