//! From a name and options of the command line to a method with its options; which options each reads.

use blocktri::{
    Accuracy, BlockIteration, CentralBand, Direct, Factoring, Family, IlutOptions, Krylov, KrylovMethod, LastSolver,
    Local, Method, Precision, Precond, Refinement, Relaxation, StopRule, Sweep, TriangularSolves,
};

use super::{SolveArgs, Stop};

/// The options of `solve` that a method reads.
pub fn reads(method: &Method) -> Vec<&'static str> {
    const ITERATED: [&str; 3] = ["--rtol", "--atol", "--max-iters"];
    let mut options = vec!["--reorder"];
    match method {
        Method::Auto(_) => options.extend(["--blocks", "--refine", "--precision", "--rtol", "--explain"]),
        Method::Direct(direct, _) => {
            options.extend(["--refine", "--precision"]);
            let row = direct.row();
            let spike = matches!(direct, Direct::Spike { .. } | Direct::SpikeTruncated { .. });
            if row.family == Family::Blocks || spike {
                options.push("--blocks");
            }
            if spike || matches!(direct, Direct::TridiagonalSpike { .. }) {
                options.push("--partitions");
            }
            options.extend(direct.seed().map(|_| "--seed"));
            options.extend(row.stronger.map(|_| "--fallback"));
        }
        Method::Krylov(krylov) => {
            options.extend(["--precond", "--precision"]);
            options.extend(ITERATED);
            if matches!(krylov.method, KrylovMethod::Gmres { .. } | KrylovMethod::Fgmres { .. }) {
                options.extend(["--restart", "--basis"]);
            }
            options.extend(read_by(krylov.precond));
        }
        Method::Blocks(blocks) => {
            options.push("--blocks");
            options.extend(ITERATED);
            options.push("--stop");
            match blocks.sweep {
                Sweep::Sor(_) => options.push("--omega"),
                Sweep::Jacobi | Sweep::RedBlack => options.push("--host-blocks"),
                _ => {}
            }
        }
        _ => {}
    }
    options
}

/// Those that a preconditioner reads.
fn read_by(precond: Precond) -> Vec<&'static str> {
    let filled = ["--fill", "--drop-tol"];
    match precond {
        Precond::Blocks(_) | Precond::BlockReduced => vec!["--blocks"],
        Precond::Ssor { .. } => vec!["--omega", "--sweeps"],
        Precond::SsorAi { .. } | Precond::SsorAiMasked { .. } => vec!["--omega"],
        Precond::BlockSsorAi { .. } => vec!["--blocks", "--omega"],
        Precond::Ilu0 { .. } | Precond::Ic0 { .. } => vec!["--sweeps"],
        Precond::Iluk { .. } => vec!["--levels", "--sweeps"],
        Precond::Ilut { .. } => [&filled[..], &["--sweeps"]].concat(),
        Precond::Schwarz { local, .. } => {
            let mut options = vec!["--partitions", "--overlap", "--local"];
            match local {
                Local::Iluk(_) => options.push("--levels"),
                Local::Ilut(_) => options.extend(filled),
                _ => {}
            }
            options
        }
        Precond::Arms(_) => {
            [&filled[..], &["--levels", "--inner"], precond.seed().map_or(&[][..], |_| &["--seed"])].concat()
        }
        Precond::Spike(_) | Precond::SpikeTruncated(_) => vec!["--bandwidth", "--partitions"],
        _ => Vec::new(),
    }
}

/// One line for help texts: what it is, and which options it reads.
pub fn summary(method: &Method) -> String {
    let more = if matches!(method, Method::Krylov(_)) { ", and what its preconditioner does" } else { "" };
    format!("{}; reads {}{more}", method.summary(), reads(method).join(", "))
}

/// The method with the options given.
pub fn with_options(args: &SolveArgs) -> Method {
    let factoring =
        Factoring { precision: args.precision, refinement: args.refine.map_or(Refinement::Auto, Refinement::Steps) };
    let mut method = args.method.clone().with_factoring(factoring);
    if let Some(rtol) = args.rtol {
        method = method.with_accuracy(Accuracy::Residual(rtol));
    }
    if let Some(mut stop) = method.stop().copied() {
        stop.rtol = args.rtol.unwrap_or(stop.rtol);
        stop.atol = args.atol.unwrap_or(stop.atol);
        stop.max_iters = args.max_iters.unwrap_or(stop.max_iters);
        method = method.with_stop(stop);
    }
    match &mut method {
        Method::Direct(direct, _) => set_direct(direct, args),
        Method::Krylov(krylov) => set_krylov(krylov, args),
        Method::Blocks(blocks) => set_blocks(blocks, args),
        _ => {}
    }
    method
}

fn set_direct(direct: &mut Direct, args: &SolveArgs) {
    match direct {
        Direct::Spike { partitions }
        | Direct::SpikeTruncated { partitions }
        | Direct::TridiagonalSpike { partitions, .. } => *partitions = args.partitions,
        Direct::BlockRbt { seed } | Direct::Rbt { seed } => *seed = args.seed.unwrap_or(*seed),
        _ => {}
    }
}

fn set_blocks(blocks: &mut BlockIteration, args: &SolveArgs) {
    if let (Sweep::Sor(relaxation), Some(omega)) = (&mut blocks.sweep, args.omega) {
        *relaxation = Relaxation::Fixed(omega);
    }
    blocks.rule = match args.stop {
        None | Some(Stop::Residual) => StopRule::Residual,
        Some(Stop::Update) => StopRule::Update,
    };
    blocks.host_blocks = args.host_blocks;
}

fn set_krylov(krylov: &mut Krylov, args: &SolveArgs) {
    if let KrylovMethod::Gmres { restart, basis } | KrylovMethod::Fgmres { restart, basis } = &mut krylov.method {
        *restart = args.restart.unwrap_or(*restart);
        *basis = args.basis;
    }
    krylov.precision = args.precision;
    krylov.precond = precond_with_options(args);
}

/// The preconditioner with the options given.
pub fn precond_with_options(args: &SolveArgs) -> Precond {
    let mut precond = args.precond;
    let sweeps = args.sweeps.map_or(TriangularSolves::Levels, TriangularSolves::Sweeps);
    let filled = |part: IlutOptions| IlutOptions {
        fill: args.fill.unwrap_or(part.fill),
        drop_tolerance: args.drop_tol.unwrap_or(part.drop_tolerance),
    };
    match &mut precond {
        Precond::Ssor { omega, solves } => {
            *omega = args.omega.unwrap_or(*omega);
            *solves = sweeps;
        }
        Precond::SsorAi { omega, .. } | Precond::SsorAiMasked { omega } | Precond::BlockSsorAi { omega } => {
            *omega = args.omega.unwrap_or(*omega);
        }
        Precond::Ilu0 { solves, .. } | Precond::Ic0 { solves, .. } => *solves = sweeps,
        Precond::Iluk { levels, solves } => {
            *levels = args.levels.unwrap_or(*levels);
            *solves = sweeps;
        }
        Precond::Ilut { options, solves } => {
            *options = filled(*options);
            *solves = sweeps;
        }
        Precond::Schwarz { layers, subdomains, local, .. } => {
            *layers = args.overlap.unwrap_or(*layers);
            *subdomains = args.partitions;
            *local = args.local.unwrap_or(*local);
            match local {
                Local::Iluk(levels) => *levels = args.levels.unwrap_or(*levels),
                Local::Ilut(options) => *options = filled(*options),
                _ => {}
            }
        }
        Precond::Arms(arms) => {
            *arms = arms.with_dropping(filled(arms.schur));
            arms.levels = args.levels.unwrap_or(arms.levels);
            arms.inner_steps = args.inner.unwrap_or(arms.inner_steps);
            if let LastSolver::Butterflies(rbt) = &mut arms.last {
                rbt.seed = args.seed.unwrap_or(rbt.seed);
            }
        }
        Precond::Spike(band) | Precond::SpikeTruncated(band) => {
            *band = CentralBand { bandwidth: args.bandwidth, partitions: args.partitions };
        }
        _ => {}
    }
    precond
}

/// Options given that the method does not read.
pub fn unread(args: &SolveArgs) -> Vec<&'static str> {
    let reads = reads(&with_options(args));
    [
        ("--reorder", !matches!(args.reorder, blocktri::Reorder::Auto | blocktri::Reorder::None)),
        ("--blocks", args.blocks.is_some()),
        ("--rtol", args.rtol.is_some()),
        ("--atol", args.atol.is_some()),
        ("--max-iters", args.max_iters.is_some()),
        ("--stop", args.stop.is_some()),
        ("--refine", args.refine.is_some()),
        ("--precond", args.precond != Precond::Auto),
        ("--precision", args.precision != Precision::Working),
        ("--fill", args.fill.is_some()),
        ("--drop-tol", args.drop_tol.is_some()),
        ("--omega", args.omega.is_some()),
        ("--levels", args.levels.is_some()),
        ("--inner", args.inner.is_some()),
        ("--restart", args.restart.is_some()),
        ("--basis", args.basis != Precision::Working),
        ("--overlap", args.overlap.is_some()),
        ("--local", args.local.is_some()),
        ("--sweeps", args.sweeps.is_some()),
        ("--bandwidth", args.bandwidth.is_some()),
        ("--partitions", args.partitions.is_some()),
        ("--seed", args.seed.is_some()),
        ("--fallback", args.fallback),
        ("--explain", args.explain),
    ]
    .into_iter()
    .filter(|(name, given)| *given && !reads.contains(name))
    .map(|(name, _)| name)
    .collect()
}
