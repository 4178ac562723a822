//! The solvers of `bt-kernels` behind [`Solvers`].

use std::time::Instant;

use bt_direct::{FactorError, RbtOptions};
use bt_formats::{Band, BlockTridiagonal, CancelToken, Csr, Monitor, SolveReport, StopCriterion};
use bt_iter::{Arms, ArmsOptions, IlutOptions, Series, StopRule, Sweep, Triangles, TriangularSolves};
use bt_kernels::{
    Device, DeviceBiCgStab, DeviceCg, DeviceError, DeviceGmres, DeviceHbisa, DevicePreconditioner, DeviceSpike, Place,
    Schedule, Shares, SolvedBy, SplitHbisa,
};
use faer::Mat;
use serde_json::{Value, json};

use super::{Distributions, Inverse, Share, Solvers};
use crate::experiment::Error;
use crate::measure::{Krylov, fastest, outcome, stopped};
use crate::spread::{ROUNDS, Spread};

/// Why a solve has no numbers.
enum Fault {
    /// The device does not take it on; the next may go well.
    Refused(String),
    Ended(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Ended(error)
    }
}

impl From<DeviceError> for Fault {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::Factor(FactorError::Stopped) => Self::Ended(Error::Stopped),
            DeviceError::OutOfMemory { .. }
            | DeviceError::Launch { .. }
            | DeviceError::Input(_)
            | DeviceError::Factor(_) => Self::Refused(error.to_string()),
            _ => Self::Ended(Error::Failed(error.to_string())),
        }
    }
}

impl Fault {
    /// A refusal as a result.
    fn into_value(self) -> Result<Value, Error> {
        match self {
            Self::Refused(why) => Ok(json!({ "error": why })),
            Self::Ended(error) => Err(error),
        }
    }
}

/// Makes a solver twice, since the first time compiles its kernels, and times it; the solver is given back with its facts.
fn timed<S>(
    make: impl Fn() -> Result<S, DeviceError>,
    solve: impl Fn(&mut S, &[f64], &mut [f64], &StopCriterion, &mut dyn Monitor) -> Result<SolveReport, DeviceError>,
    b: &[f64],
    stop: &StopCriterion,
    cancel: &CancelToken,
) -> Result<(Value, S), Fault> {
    drop(make()?);
    let start = Instant::now();
    let mut solver = make()?;
    let setup = start.elapsed().as_secs_f64();
    let mut x = vec![0.0; b.len()];
    let mut run = |stop: &StopCriterion| -> Result<(f64, SolveReport), Fault> {
        x.fill(0.0);
        let start = Instant::now();
        let report = solve(&mut solver, b, &mut x, stop, &mut cancel.clone())?;
        let seconds = start.elapsed().as_secs_f64();
        stopped(&report)?;
        Ok((seconds, report))
    };
    let without = StopCriterion { max_iters: 0, ..*stop };
    let (mut runs, mut copies, mut first) = (Vec::new(), Vec::new(), None);
    for _ in 0..ROUNDS {
        let (whole, report) = run(stop)?;
        let (copied, _) = run(&without)?;
        runs.push(whole - copied);
        copies.push(copied);
        first.get_or_insert(report);
    }
    let median = |runs: &[f64]| Spread::of(runs.iter().copied()).map_or(f64::NAN, |s| s.median);
    let mut facts = first.map_or_else(Value::default, |report| outcome(&report, median(&runs)));
    facts["copies_seconds"] = json!(median(&copies));
    facts["setup_seconds"] = json!(setup);
    facts["runs"] = json!(runs);
    Ok((facts, solver))
}

impl Solvers for Device {
    fn name(&self) -> String {
        format!("GPU {}, {}, with {} multiprocessors", self.ordinal(), Device::name(self), self.multiprocessors())
    }

    fn hbisa(
        &self,
        a: &BlockTridiagonal<f64>,
        b: &[f64],
        sweep: Sweep,
        rule: StopRule,
        share: Share,
        stop: &StopCriterion,
        cancel: &CancelToken,
    ) -> Result<Value, Error> {
        let of_host = |facts: Value, blocks: usize| {
            let mut facts = facts;
            facts["host_blocks"] = json!(blocks);
            facts
        };
        let timed = match share {
            Share::None => {
                let make = || DeviceHbisa::new(self, a, sweep, rule, Schedule::Auto);
                timed(make, DeviceHbisa::solve, b, stop, cancel).map(|(facts, _)| of_host(facts, 0))
            }
            Share::Measured => {
                let places = [Place::Device(self.clone()), Place::Host];
                let make = || SplitHbisa::new(&places, &Shares::Measured, a, sweep, rule);
                timed(make, SplitHbisa::solve, b, stop, cancel).map(|(facts, made)| of_host(facts, made.counts()[1]))
            }
        };
        timed.or_else(Fault::into_value)
    }

    fn krylov(
        &self,
        method: Krylov,
        a: &Csr<f64>,
        inverse: Inverse,
        omega: f64,
        b: &[f64],
        stop: &StopCriterion,
        cancel: &CancelToken,
    ) -> Result<Value, Error> {
        let approximate = |series, triangles| DevicePreconditioner::SsorAi { omega, series, triangles };
        let wanted = match inverse {
            Inverse::Identity => DevicePreconditioner::Identity,
            Inverse::Jacobi => DevicePreconditioner::Jacobi,
            Inverse::Ic0 => DevicePreconditioner::Ic0(TriangularSolves::Levels),
            Inverse::Stored => approximate(Series::First, Triangles::Stored),
            Inverse::Free => approximate(Series::First, Triangles::OfMatrix),
            Inverse::Second => approximate(Series::Second, Triangles::Stored),
            Inverse::Ip => approximate(Series::IncompletePoisson, Triangles::Stored),
            Inverse::Masked => DevicePreconditioner::SsorAiMasked { omega },
            Inverse::Nodes(block_size) => DevicePreconditioner::BlockSsorAi { omega, block_size },
            Inverse::Ilu0 => DevicePreconditioner::Ilu0(TriangularSolves::Levels),
            Inverse::Ilut => DevicePreconditioner::Ilut(IlutOptions::default(), TriangularSolves::Levels),
        };
        let solved = match method {
            Krylov::Cg => {
                let make = || DeviceCg::new(self, a, &wanted, Schedule::Auto);
                timed(make, DeviceCg::solve, b, stop, cancel).map(|(facts, _)| facts)
            }
            Krylov::BiCgStab => {
                let make = || DeviceBiCgStab::new(self, a, &wanted, Schedule::Auto);
                timed(make, DeviceBiCgStab::solve, b, stop, cancel).map(|(facts, _)| facts)
            }
            Krylov::Gmres(restart) => {
                let make = || DeviceGmres::new(self, a, &wanted, restart, Schedule::Auto);
                timed(make, DeviceGmres::solve, b, stop, cancel).map(|(facts, _)| facts)
            }
        };
        solved.or_else(Fault::into_value)
    }

    fn stationary(&self, chains: &[&BlockTridiagonal<f64>]) -> Result<Result<Distributions, String>, Error> {
        match bt_kernels::stationary(self, chains).map_err(Fault::from) {
            Ok(found) => Ok(Ok(found.into_iter().map(Result::ok).collect())),
            Err(Fault::Refused(why)) => Ok(Err(why)),
            Err(Fault::Ended(error)) => Err(error),
        }
    }

    fn arms(
        &self,
        a: &Csr<f64>,
        options: ArmsOptions,
        butterflies: RbtOptions,
    ) -> Result<Result<Arms<f64>, String>, Error> {
        bt_kernels::arms(self, a, options, butterflies).map(Ok).or_else(|error| match Fault::from(error) {
            Fault::Refused(why) => Ok(Err(why)),
            Fault::Ended(error) => Err(error),
        })
    }

    fn spike(&self, a: &Band<f64>, partitions: usize, b: &[f64]) -> Result<Value, Error> {
        let solved = || -> Result<Value, Fault> {
            let make = || DeviceSpike::band(self, a, Some(partitions));
            drop(make()?);
            let start = Instant::now();
            let spike = make()?;
            let setup = start.elapsed().as_secs_f64();
            let (solve, report) = fastest(|| {
                let mut x = Mat::from_fn(b.len(), 1, |i, _| b[i]);
                spike.solve_in_place(x.as_mut())
            })?;
            Ok(json!({
                "setup_seconds": setup,
                "solve_seconds": solve,
                "backward_error": report.certificate.backward_error,
                "steps": report.steps,
                "solved_by": match report.solved_by {
                    SolvedBy::Device => "GPU",
                    SolvedBy::Host => "processor",
                },
            }))
        };
        solved().or_else(Fault::into_value)
    }

    fn check(&self) -> Result<(), Error> {
        Device::check(self, "solving with its factors").map_err(|e| Error::Failed(e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use bt_formats::{HybridLayout, LinearOperator, Partition};
    use bt_iter::Preconditioner;
    use bt_queue::meshes;

    use super::*;

    /// The stand-in driver, which cargo builds beside this program.
    fn stand_in() -> Device {
        let program = std::env::current_exe().expect("the path of this program");
        let name = format!("{}bt_ptx_emulator{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        bt_cuda_driver::choose(&program.with_file_name(name)).expect("the stand-in is chosen first");
        Device::open(0).expect("the stand-in has a device")
    }

    #[test]
    fn the_device_answers_as_the_processor_and_says_what_it_refuses() {
        let (device, cancel) = (stand_in(), CancelToken::default());
        let a = meshes::laplacian([8, 6, 1]).expect("a grid");
        let n = a.nrows();
        let b = vec![1.0; n];

        // The whole of a matrix this small is the last level.
        let butterflies = RbtOptions::default();
        let mut arms = device.arms(&a, ArmsOptions::default(), butterflies).expect("a device").expect("no refusal");
        assert_eq!((arms.last_level().n, arms.last_level().method), (n, "rbt"));
        let (mut x, mut r) = (vec![0.0; n], b.clone());
        arms.apply(&b, &mut x);
        // r = b − A·x
        a.apply(-1.0, &x, 1.0, &mut r);
        assert!(r.iter().all(|r| r.abs() < 1e-12), "{r:?}");
        Solvers::check(&device).expect("still there");

        let band = Band::from_csr(&a).expect("a band");
        let spike = device.spike(&band, 2, &b).expect("a device");
        assert_eq!(spike["solved_by"], "GPU");
        assert!(spike["backward_error"].as_f64().is_some_and(|e| e < 1e-15), "{spike}");

        let stop = StopCriterion::default();
        for inverse in [Inverse::Identity, Inverse::Jacobi, Inverse::Ic0, Inverse::Masked, Inverse::Nodes(2)] {
            let cg = device.krylov(Krylov::Cg, &a, inverse, 1.1, &b, &stop, &cancel).expect("a device");
            assert_eq!(cg["outcome"], "converged", "{inverse:?}: {cg}");
        }
        for (method, inverse) in [(Krylov::BiCgStab, Inverse::Ilu0), (Krylov::Gmres(30), Inverse::Ilut)] {
            let solved = device.krylov(method, &a, inverse, 1.1, &b, &stop, &cancel).expect("a device");
            assert_eq!(solved["outcome"], "converged", "{inverse:?}: {solved}");
        }
        let levels = Partition::uniform(3, 1).expect("three levels");
        let chain =
            |rate| BlockTridiagonal::from_dense_blocks(levels.clone(), vec![0.0; 3], vec![1.0, rate, 1.0, rate]);
        let [chain, cut] = [2.0, 0.0].map(|rate| chain(rate).expect("a chain"));
        let found = device.stationary(&[&chain, &cut]).expect("a device").expect("no refusal");
        let sevenths: Vec<f64> = found[0].iter().flatten().map(|p| 7.0 * p.to_f64()).collect();
        assert!(sevenths.iter().zip([4.0, 2.0, 1.0]).all(|(p, right)| (p - right).abs() < 1e-14), "{sevenths:?}");
        assert!(found[1].is_none());
        let partition = Partition::uniform(n, 8).expect("six blocks");
        let blocks = BlockTridiagonal::from_csr(&a, partition, HybridLayout::default()).expect("blocks of lines");
        let sweeps = |sweep| device.hbisa(&blocks, &b, sweep, StopRule::Residual, Share::None, &stop, &cancel);
        assert_eq!(sweeps(Sweep::Jacobi).expect("a device")["outcome"], "converged");
        let refused = sweeps(Sweep::GaussSeidel).expect("a refusal is a result");
        assert!(
            refused["error"].as_str().is_some_and(|why| why.contains("hbisa-gs is not on the device")),
            "{refused}"
        );
        assert!(refused.get("iterations").is_none());

        cancel.cancel();
        assert_eq!(sweeps(Sweep::Jacobi), Err(Error::Stopped));
    }
}
