//! From a name and flags of the command line to a method with its settings.

use blocktri::{HostBlocks, Local, Method, Precision, Precond, Refinement, Setting, StopRule};

use super::{SolveArgs, Stop};

/// A flag that is a setting of a method: its name, a setting of its kind, and the one given.
type Flag = (&'static str, Setting, fn(&SolveArgs) -> Option<Setting>);

/// These flags, each before those that its value decides on: a preconditioner before what it reads.
const FLAGS: [Flag; 21] = [
    ("--refine", Setting::Refinement(Refinement::Auto), |a| a.refine.map(Refinement::Steps).map(Setting::Refinement)),
    ("--precond", Setting::Precond(Precond::Auto), |a| other(a.precond).map(Setting::Precond)),
    ("--precision", Setting::Precision(Precision::Working), |a| other(a.precision).map(Setting::Precision)),
    ("--rtol", Setting::RelativeTolerance(0.0), |a| a.rtol.map(Setting::RelativeTolerance)),
    ("--atol", Setting::AbsoluteTolerance(0.0), |a| a.atol.map(Setting::AbsoluteTolerance)),
    ("--max-iters", Setting::Iterations(0), |a| a.max_iters.map(Setting::Iterations)),
    ("--stop", Setting::StopRule(StopRule::Residual), |a| a.stop.map(Stop::rule).map(Setting::StopRule)),
    ("--restart", Setting::Restart(1), |a| a.restart.map(Setting::Restart)),
    ("--basis", Setting::Basis(Precision::Working), |a| other(a.basis).map(Setting::Basis)),
    ("--partitions", Setting::Partitions(1), |a| a.partitions.map(Setting::Partitions)),
    ("--overlap", Setting::Layers(0), |a| a.overlap.map(Setting::Layers)),
    ("--local", Setting::Local(Local::Ilu0), |a| a.local.map(Setting::Local)),
    ("--omega", Setting::Omega(1.0), |a| a.omega.map(Setting::Omega)),
    ("--sweeps", Setting::Sweeps(0), |a| a.sweeps.map(Setting::Sweeps)),
    ("--levels", Setting::Levels(0), |a| a.levels.map(Setting::Levels)),
    ("--fill", Setting::Fill(1), |a| a.fill.map(Setting::Fill)),
    ("--drop-tol", Setting::DropTolerance(0.0), |a| a.drop_tol.map(Setting::DropTolerance)),
    ("--inner", Setting::InnerSteps(0), |a| a.inner.map(Setting::InnerSteps)),
    ("--bandwidth", Setting::Bandwidth(0), |a| a.bandwidth.map(Setting::Bandwidth)),
    ("--seed", Setting::Seed(0), |a| a.seed.map(Setting::Seed)),
    ("--host-blocks", Setting::HostBlocks(HostBlocks::None), |a| other(a.host_blocks).map(Setting::HostBlocks)),
];

/// A value where it is not the default, which nobody need have given.
fn other<V: Default + PartialEq>(value: V) -> Option<V> {
    Some(value).filter(|value| *value != V::default())
}

/// The method with the settings given, and the flags of those that it does not read.
fn set(args: &SolveArgs) -> (Method, Vec<&'static str>) {
    let mut method = args.method.clone();
    let mut unread = Vec::new();
    for (flag, _, given) in FLAGS {
        if given(args).is_some_and(|setting| !method.set(setting)) {
            unread.push(flag);
        }
    }
    (method, unread)
}

/// The method with the settings given.
pub fn with_settings(args: &SolveArgs) -> Method {
    set(args).0
}

/// Flags given that the method does not read.
pub fn unread(args: &SolveArgs) -> Vec<&'static str> {
    let (method, mut unread) = set(args);
    let given = [args.blocks.is_some(), args.fallback, args.explain];
    let others = others(&method).into_iter().zip(given);
    unread.extend(others.filter(|&((_, read), given)| given && !read).map(|((flag, _), _)| flag));
    unread
}

/// Flags that are not settings of a method, and whether this one reads them.
fn others(method: &Method) -> [(&'static str, bool); 3] {
    let has_fallback = matches!(method, Method::Direct(direct, _) if direct.fallback().is_some());
    [("--blocks", method.reads_blocks()), ("--fallback", has_fallback), ("--explain", method.is_auto())]
}

/// The flags that a method reads.
fn reads(method: &Method) -> Vec<&'static str> {
    let others = others(method).into_iter().filter(|(_, read)| *read).map(|(flag, _)| flag);
    let settings = FLAGS.into_iter().filter(|&(_, setting, _)| method.clone().set(setting)).map(|(flag, ..)| flag);
    ["--reorder"].into_iter().chain(others).chain(settings).collect()
}

/// One line for help texts: what it is, and which flags it reads.
pub fn summary(method: &Method) -> String {
    let more = if matches!(method, Method::Krylov(_)) { ", and what its preconditioner does" } else { "" };
    format!("{}; reads {}{more}", method.summary(), reads(method).join(", "))
}
