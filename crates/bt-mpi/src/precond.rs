//! Preconditioners and local solvers from the options.

use bt_direct::RbtOptions;
use bt_formats::{Csr, HybridLayout, LinearOperator, Partition};
use bt_iter::{
    ArmsOptions, BlockForm, BlockPreconditioner, IlutOptions, LastSolver, Overlap, Preconditioner,
    QuasiBlockTridiagonal,
};
use bt_parallel::{
    Comm, DistributedCsr, DistributedPreconditioner, Identity, LocalSolver, Result, Schur, SchurOptions, Schwarz,
};

use crate::args::{Local, Precond, SolveArgs};
use crate::device::{Gpu, Offload};

/// Where the parts of ranks are solved, and by which blocks, where a solver is by blocks.
pub struct Parts<'a> {
    pub args: &'a SolveArgs,
    pub gpu: Option<&'a Gpu>,
    pub blocks: Option<&'a Partition>,
}

/// The preconditioner of a matrix. A collective.
///
/// # Errors
/// With the rank and its part where it has no factors.
pub fn make<'a, 'c, T: Offload, C: Comm>(
    a: &'a DistributedCsr<'c, T, C>,
    parts: &Parts<'_>,
) -> Result<Box<dyn DistributedPreconditioner<T> + 'a>>
where
    'c: 'a,
{
    let args = parts.args;
    let solver = |part: &Csr<T>| solver(part, parts);
    let layers = args.overlap.unwrap_or(1);
    Ok(match args.precond {
        Precond::None => Box::new(Identity::new(a)),
        Precond::BlockJacobi => Box::new(Schwarz::new(a, 0, Overlap::Added, solver)?),
        Precond::Schwarz => Box::new(Schwarz::new(a, layers, Overlap::Added, solver)?),
        Precond::Ras => Box::new(Schwarz::new(a, layers, Overlap::Restricted, solver)?),
        Precond::Schur => {
            let options = SchurOptions { inner_steps: args.inner_steps, inner_rtol: args.inner_rtol };
            Box::new(Schur::with_options(a, options, solver)?)
        }
    })
}

/// The solver of a part.
fn solver<T: Offload>(
    part: &Csr<T>,
    &Parts { args, gpu, blocks }: &Parts<'_>,
) -> bt_direct::Result<Box<dyn Preconditioner<T>>> {
    match (gpu, named(args), blocks) {
        (Some(gpu), ..) if part.nrows() > 0 => T::solver(gpu, part, args, blocks),
        (_, None, Some(blocks)) if part.nrows() > 0 => {
            let quasi = QuasiBlockTridiagonal::new(part, blocks.clone(), HybridLayout::default())?;
            Ok(Box::new(BlockPreconditioner::new(quasi.into_blocks(), BlockForm::Jacobi)?))
        }
        (_, local, _) => local.unwrap_or(LocalSolver::SparseLu).of(part),
    }
}

/// Of its random numbers.
pub fn seed(local: LocalSolver) -> Option<u64> {
    match local {
        LocalSolver::Arms(ArmsOptions { last: LastSolver::Butterflies(rbt), .. }) => Some(rbt.seed),
        _ => None,
    }
}

/// The local solver that `--local` names; none for blocks, which are exact where there are any.
pub fn named(args: &SolveArgs) -> Option<LocalSolver> {
    let filled = |part: IlutOptions| IlutOptions {
        fill: args.fill.unwrap_or(part.fill),
        drop_tolerance: args.drop_tol.unwrap_or(part.drop_tolerance),
    };
    let arms = || {
        let arms = ArmsOptions::default();
        let arms = arms.with_dropping(filled(arms.schur));
        ArmsOptions { levels: args.levels.unwrap_or(arms.levels), ..arms }
    };
    Some(match args.local {
        Local::Blocks => return None,
        Local::Ilu0 => LocalSolver::Ilu0,
        Local::Iluk => LocalSolver::IluK { level: args.levels.unwrap_or(1) },
        Local::Ilut => LocalSolver::Ilut(filled(IlutOptions::default())),
        Local::Ic0 => LocalSolver::Ic0,
        Local::Arms => LocalSolver::Arms(arms()),
        Local::ArmsRbt => {
            let rbt = RbtOptions::default();
            let rbt = RbtOptions { seed: args.seed.unwrap_or(rbt.seed), ..rbt };
            LocalSolver::Arms(ArmsOptions { last: LastSolver::Butterflies(rbt), ..arms() })
        }
        Local::Direct => LocalSolver::SparseLu,
        Local::SparseQr => LocalSolver::SparseQr,
    })
}
