//! Preconditioners and local solvers from the options.

use bt_direct::RbtOptions;
use bt_iter::{ArmsOptions, IlutOptions, LastSolver, Overlap};
use bt_parallel::{
    Comm, DistributedCsr, DistributedPreconditioner, Identity, LocalSolver, Number, Result, Schur, SchurOptions,
    Schwarz,
};

use crate::args::{Local, Precond, SolveArgs};

/// The preconditioner of a matrix. A collective.
///
/// # Errors
/// With the rank and its part where it has no factors.
pub fn make<'a, 'c, T: Number, C: Comm>(
    a: &'a DistributedCsr<'c, T, C>,
    args: &SolveArgs,
) -> Result<Box<dyn DistributedPreconditioner<T> + 'a>>
where
    'c: 'a,
{
    let local = local(args);
    let layers = args.overlap.unwrap_or(1);
    Ok(match args.precond {
        Precond::None => Box::new(Identity::new(a)),
        Precond::BlockJacobi => Box::new(Schwarz::new(a, 0, Overlap::Added, |part| local.of(part))?),
        Precond::Schwarz => Box::new(Schwarz::new(a, layers, Overlap::Added, |part| local.of(part))?),
        Precond::Ras => Box::new(Schwarz::new(a, layers, Overlap::Restricted, |part| local.of(part))?),
        Precond::Schur => {
            let options = SchurOptions { inner_steps: args.inner_steps, inner_rtol: args.inner_rtol };
            Box::new(Schur::new(a, options, |part| local.of(part))?)
        }
    })
}

fn local(args: &SolveArgs) -> LocalSolver {
    let filled = |part: IlutOptions| IlutOptions {
        fill: args.fill.unwrap_or(part.fill),
        drop_tolerance: args.drop_tol.unwrap_or(part.drop_tolerance),
    };
    let arms = || {
        let arms = ArmsOptions::default();
        let arms = arms.with_dropping(filled(arms.schur));
        ArmsOptions { levels: args.levels.unwrap_or(arms.levels), ..arms }
    };
    match args.local {
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
    }
}
