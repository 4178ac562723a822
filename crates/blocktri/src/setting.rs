//! Options one at a time, as a command or a binding is given them: each goes to its place in the method that reads it.

use bt_direct::Refinement;
use bt_formats::StopCriterion;
use bt_iter::{IlutOptions, LastSolver, Relaxation, StopRule, Sweep, TriangularSolves};

use crate::direct::{Direct, Family};
use crate::method::{Accuracy, Auto, BlockIteration, Factoring, HostBlocks, Krylov, KrylovMethod, Method, Precision};
use crate::preconditioners::{Local, Precond};

/// One option of a method with its value. [`Method::set`] knows which methods read it.
///
/// ```
/// use blocktri::{Krylov, KrylovMethod, Method, Precond, Setting};
/// let mut method: Method = "cg".parse()?;
/// assert!(method.set(Setting::Precond("ssor".parse()?)));
/// assert!(method.set(Setting::Omega(1.5)));
/// assert!(!method.set(Setting::Restart(20))); // CG has no restarts
/// let Method::Krylov(Krylov { method: KrylovMethod::Cg, precond, .. }) = method else { unreachable!() };
/// assert!(matches!(precond, Precond::Ssor { omega: 1.5, .. }));
/// # Ok::<(), blocktri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Setting {
    /// Precision of factors, or of a preconditioner.
    Precision(Precision),
    /// Refinement of what factors answer.
    Refinement(Refinement),
    /// Tolerance relative to what the stop rule says; of `auto` the accuracy.
    RelativeTolerance(f64),
    /// Absolute tolerance.
    AbsoluteTolerance(f64),
    /// Iterations at most.
    Iterations(usize),
    /// What the tolerances of a block iteration are held against.
    StopRule(StopRule),
    /// The processor's part of a block iteration on a GPU.
    HostBlocks(HostBlocks),
    /// Steps between two restarts of GMRES.
    Restart(usize),
    /// Precision in which GMRES keeps its basis.
    Basis(Precision),
    /// The preconditioner of a Krylov method; settings of the preconditioner come after it.
    Precond(Precond),
    /// Relaxation, 0 < ω < 2.
    Omega(f64),
    /// Jacobi sweeps in place of the triangular solves of a preconditioner.
    Sweeps(usize),
    /// Level of fill of ILU(k), levels of ARMS above the last.
    Levels(usize),
    /// Entries that ILUT keeps in a row of L, and of U; ARMS in a row of every part.
    Fill(usize),
    /// Size, relative to its row, below which ILUT and ARMS drop an entry.
    DropTolerance(f64),
    /// Steps of an inner iteration on the last level of ARMS.
    InnerSteps(usize),
    /// Layers of overlap of a Schwarz preconditioner.
    Layers(usize),
    /// Solver of a subdomain of a Schwarz preconditioner; its settings come after it.
    Local(Local),
    /// Half-bandwidth of the band that SPIKE preconditions by.
    Bandwidth(usize),
    /// Partitions of SPIKE, subdomains of a Schwarz preconditioner.
    Partitions(usize),
    /// Seed of what is random.
    Seed(u64),
}

/// Puts a value in its place.
fn put<V>(place: &mut V, value: V) -> bool {
    *place = value;
    true
}

impl Method {
    /// Puts a setting in its place; `false`, and nothing changes, where the method does not read it.
    #[must_use = "a setting that is not read is lost"]
    pub fn set(&mut self, setting: Setting) -> bool {
        match self {
            Self::Auto(auto) => auto.set(setting),
            Self::Direct(direct, factoring) => factoring.set(setting) || direct.set(setting),
            Self::Krylov(krylov) => krylov.set(setting),
            Self::Blocks(iteration) => iteration.set(setting),
        }
    }

    /// Whether it works on given [`Blocks`](crate::Blocks).
    pub fn reads_blocks(&self) -> bool {
        match self {
            Self::Auto(_) | Self::Blocks(_) => true,
            Self::Direct(direct, _) => {
                let spike = matches!(direct, Direct::Spike { .. } | Direct::SpikeTruncated { .. });
                spike || direct.row().family == Family::Blocks
            }
            Self::Krylov(krylov) => {
                matches!(krylov.precond, Precond::Blocks(_) | Precond::BlockReduced | Precond::BlockSsorAi { .. })
            }
        }
    }
}

impl Auto {
    fn set(&mut self, setting: Setting) -> bool {
        match setting {
            Setting::RelativeTolerance(rtol) => put(&mut self.accuracy, Accuracy::Residual(rtol)),
            setting => self.factoring.set(setting),
        }
    }
}

impl Factoring {
    fn set(&mut self, setting: Setting) -> bool {
        match setting {
            Setting::Precision(precision) => put(&mut self.precision, precision),
            Setting::Refinement(refinement) => put(&mut self.refinement, refinement),
            _ => false,
        }
    }
}

impl Direct {
    fn set(&mut self, setting: Setting) -> bool {
        match (self, setting) {
            (
                Self::Spike { partitions }
                | Self::SpikeTruncated { partitions }
                | Self::TridiagonalSpike { partitions, .. },
                Setting::Partitions(number),
            ) => put(partitions, Some(number)),
            (Self::BlockRbt { seed } | Self::Rbt { seed }, Setting::Seed(new)) => put(seed, new),
            _ => false,
        }
    }
}

impl Krylov {
    fn set(&mut self, setting: Setting) -> bool {
        match setting {
            Setting::Precond(precond) => put(&mut self.precond, precond),
            Setting::Precision(precision) => put(&mut self.precision, precision),
            Setting::Restart(_) | Setting::Basis(_) => self.method.set(setting),
            setting => set_stop(&mut self.stop, setting) || self.precond.set(setting),
        }
    }
}

impl KrylovMethod {
    fn set(&mut self, setting: Setting) -> bool {
        match (self, setting) {
            (Self::Gmres { restart, .. } | Self::Fgmres { restart, .. }, Setting::Restart(steps)) => {
                put(restart, steps)
            }
            (Self::Gmres { basis, .. } | Self::Fgmres { basis, .. }, Setting::Basis(precision)) => {
                put(basis, precision)
            }
            _ => false,
        }
    }
}

impl BlockIteration {
    fn set(&mut self, setting: Setting) -> bool {
        match (&mut self.sweep, setting) {
            (Sweep::Sor(relaxation), Setting::Omega(omega)) => put(relaxation, Relaxation::Fixed(omega)),
            (Sweep::Jacobi | Sweep::RedBlack, Setting::HostBlocks(share)) => put(&mut self.host_blocks, share),
            (_, Setting::StopRule(rule)) => put(&mut self.rule, rule),
            (_, setting) => set_stop(&mut self.stop, setting),
        }
    }
}

fn set_stop(stop: &mut StopCriterion, setting: Setting) -> bool {
    match setting {
        Setting::RelativeTolerance(rtol) => put(&mut stop.rtol, rtol),
        Setting::AbsoluteTolerance(atol) => put(&mut stop.atol, atol),
        Setting::Iterations(most) => put(&mut stop.max_iters, most),
        _ => false,
    }
}

fn set_dropping(options: &mut IlutOptions, setting: Setting) -> bool {
    match setting {
        Setting::Fill(entries) => put(&mut options.fill, entries),
        Setting::DropTolerance(tolerance) => put(&mut options.drop_tolerance, tolerance),
        _ => false,
    }
}

impl Precond {
    /// Puts a setting in its place; `false`, and nothing changes, where the preconditioner does not read it.
    #[must_use = "a setting that is not read is lost"]
    pub fn set(&mut self, setting: Setting) -> bool {
        match (self, setting) {
            (
                Self::Ssor { omega, .. }
                | Self::SsorAi { omega, .. }
                | Self::SsorAiMasked { omega }
                | Self::BlockSsorAi { omega },
                Setting::Omega(new),
            ) => put(omega, new),
            (
                Self::Ssor { solves, .. }
                | Self::Ilu0 { solves, .. }
                | Self::Ic0 { solves, .. }
                | Self::Iluk { solves, .. }
                | Self::Ilut { solves, .. },
                Setting::Sweeps(sweeps),
            ) => put(solves, TriangularSolves::Sweeps(sweeps)),
            (Self::Iluk { levels, .. } | Self::Schwarz { local: Local::Iluk(levels), .. }, Setting::Levels(new)) => {
                put(levels, new)
            }
            (Self::Schwarz { layers, .. }, Setting::Layers(new)) => put(layers, new),
            (Self::Schwarz { subdomains, .. }, Setting::Partitions(number)) => put(subdomains, Some(number)),
            (Self::Schwarz { local, .. }, Setting::Local(new)) => put(local, new),
            (Self::Ilut { options, .. } | Self::Schwarz { local: Local::Ilut(options), .. }, setting) => {
                set_dropping(options, setting)
            }
            (Self::Arms(arms), Setting::Levels(levels)) => put(&mut arms.levels, levels),
            (Self::Arms(arms), Setting::InnerSteps(steps)) => put(&mut arms.inner_steps, steps),
            (Self::Arms(arms), Setting::Seed(seed)) => match &mut arms.last {
                LastSolver::Butterflies(rbt) => put(&mut rbt.seed, seed),
                _ => false,
            },
            (Self::Arms(arms), setting) => {
                let mut dropping = arms.schur;
                let read = set_dropping(&mut dropping, setting);
                *arms = arms.with_dropping(dropping);
                read
            }
            (Self::Spike(band) | Self::SpikeTruncated(band), Setting::Bandwidth(rows)) => {
                put(&mut band.bandwidth, Some(rows))
            }
            (Self::Spike(band) | Self::SpikeTruncated(band), Setting::Partitions(number)) => {
                put(&mut band.partitions, Some(number))
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each, with a value that no default has.
    const OTHERS: [Setting; 21] = [
        Setting::Precision(Precision::Single),
        Setting::Refinement(Refinement::Steps(7)),
        Setting::RelativeTolerance(0.25),
        Setting::AbsoluteTolerance(0.25),
        Setting::Iterations(7),
        Setting::StopRule(StopRule::Update),
        Setting::HostBlocks(HostBlocks::Measured),
        Setting::Restart(7),
        Setting::Basis(Precision::Single),
        Setting::Precond(Precond::Jacobi),
        Setting::Omega(0.25),
        Setting::Sweeps(7),
        Setting::Levels(7),
        Setting::Fill(7),
        Setting::DropTolerance(0.25),
        Setting::InnerSteps(7),
        Setting::Layers(7),
        Setting::Local(Local::Direct),
        Setting::Bandwidth(7),
        Setting::Partitions(7),
        Setting::Seed(7),
    ];

    #[test]
    fn a_setting_changes_a_method_where_it_is_read_and_only_there() {
        for method in Method::all() {
            for setting in OTHERS {
                let mut changed = method.clone();
                let read = changed.set(setting);
                assert_eq!(read, changed != method, "{method} and {setting:?}");
            }
        }
        for precond in Precond::all() {
            for setting in OTHERS {
                let mut changed = precond;
                let read = changed.set(setting);
                assert_eq!(read, changed != precond, "{precond} and {setting:?}");
            }
        }
    }

    #[test]
    fn every_setting_is_read_by_something() {
        for setting in OTHERS {
            let by_method = Method::all().into_iter().any(|mut method| method.set(setting));
            let by_precond = Precond::all().into_iter().any(|mut precond| precond.set(setting));
            assert!(by_method || by_precond, "{setting:?}");
        }
    }

    #[test]
    fn settings_of_a_local_solver_reach_it() {
        let mut ras: Precond = "ras".parse().unwrap();
        assert!(!ras.set(Setting::Levels(3)), "ilu0 has no levels");
        assert!(ras.set(Setting::Local(Local::Iluk(1))) && ras.set(Setting::Levels(3)));
        assert!(matches!(ras, Precond::Schwarz { local: Local::Iluk(3), .. }));
    }
}
