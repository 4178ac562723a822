//! The ranges of options, asked for before anything is computed.

use bt_formats::StopCriterion;
use bt_iter::{ArmsOptions, IlutOptions, LastSolver, Relaxation, Sweep};

use crate::direct::Direct;
use crate::error::Error;
use crate::method::{Accuracy, Auto, BlockIteration, Krylov, KrylovMethod, Method};
use crate::options::{Blocks, SolveOptions};
use crate::preconditioners::{CentralBand, Local, Precond};

impl SolveOptions {
    /// Whether every option is in its range. Solves ask it before they compute anything.
    ///
    /// ```
    /// use blocktri::{KrylovMethod, Precision, SolveOptions};
    /// let endless = KrylovMethod::Gmres { restart: 0, basis: Precision::Working };
    /// let error = SolveOptions::by(endless).check().unwrap_err();
    /// assert_eq!(error.to_string(), "the restart of gmres is 0, and has to be 1 or more");
    /// ```
    ///
    /// # Errors
    /// [`Error::Usage`] naming the option, its value and its range.
    pub fn check(&self) -> Result<(), Error> {
        if let Blocks::Uniform(size) = self.blocks {
            at_least_one(size, || "the size of the blocks".into())?;
        }
        match &self.method {
            Method::Auto(Auto { accuracy: Accuracy::Residual(rtol), .. }) => not_negative(*rtol, || "rtol".into()),
            Method::Auto(_) => Ok(()),
            Method::Direct(direct, _) => check_direct(*direct),
            Method::Krylov(krylov) => check_krylov(krylov),
            Method::Blocks(BlockIteration { sweep, stop, .. }) => {
                if let Sweep::Sor(Relaxation::Fixed(omega)) = sweep {
                    relaxation(*omega, sweep.name())?;
                }
                check_stop(stop)
            }
        }
    }
}

fn check_direct(direct: Direct) -> Result<(), Error> {
    match direct {
        Direct::TridiagonalSpike { partitions: Some(count), .. }
        | Direct::Spike { partitions: Some(count) }
        | Direct::SpikeTruncated { partitions: Some(count) } => {
            at_least_one(count, || format!("the number of partitions of {direct}"))
        }
        _ => Ok(()),
    }
}

fn check_krylov(Krylov { method, precond, stop, .. }: &Krylov) -> Result<(), Error> {
    if let KrylovMethod::Gmres { restart, .. } | KrylovMethod::Fgmres { restart, .. } = *method {
        at_least_one(restart, || format!("the restart of {method}"))?;
    }
    check_precond(*precond)?;
    check_stop(stop)
}

/// As [`SolveOptions::check`] of one preconditioner.
pub(crate) fn check_precond(precond: Precond) -> Result<(), Error> {
    match precond {
        Precond::Ssor { omega, .. }
        | Precond::SsorAi { omega, .. }
        | Precond::SsorAiMasked { omega }
        | Precond::BlockSsorAi { omega } => relaxation(omega, precond.name()),
        Precond::Ilut { options, .. } => check_ilut(options, precond.name()),
        Precond::Schwarz { subdomains, local, .. } => {
            if let Some(count) = subdomains {
                at_least_one(count, || format!("the number of subdomains of {precond}"))?;
            }
            if let Local::Ilut(options) = local { check_ilut(options, precond.name()) } else { Ok(()) }
        }
        Precond::Arms(ArmsOptions {
            pivot_threshold, interior, coupling, schur, last, last_ilut, group_size, ..
        }) => {
            at_least_one(group_size, || format!("the size of the groups of {precond}"))?;
            not_negative(pivot_threshold, || format!("the pivot threshold of {precond}"))?;
            [interior, coupling, schur].into_iter().try_for_each(|part| check_ilut(part, precond.name()))?;
            if last == LastSolver::Ilut { check_ilut(last_ilut, precond.name()) } else { Ok(()) }
        }
        Precond::Spike(CentralBand { partitions: Some(count), .. })
        | Precond::SpikeTruncated(CentralBand { partitions: Some(count), .. }) => {
            at_least_one(count, || format!("the number of partitions of {precond}"))
        }
        _ => Ok(()),
    }
}

fn check_ilut(IlutOptions { drop_tolerance, .. }: IlutOptions, of: &str) -> Result<(), Error> {
    not_negative(drop_tolerance, || format!("the drop tolerance of {of}"))
}

fn check_stop(stop: &StopCriterion) -> Result<(), Error> {
    not_negative(stop.rtol, || "rtol".into())?;
    not_negative(stop.atol, || "atol".into())
}

fn relaxation(omega: f64, of: &str) -> Result<(), Error> {
    if omega > 0.0 && omega < 2.0 {
        return Ok(());
    }
    Err(Error::Usage { message: format!("ω of {of} is {omega}, and has to be between 0 and 2") })
}

fn at_least_one(value: usize, what: impl FnOnce() -> String) -> Result<(), Error> {
    if value > 0 {
        return Ok(());
    }
    Err(Error::Usage { message: format!("{} is 0, and has to be 1 or more", what()) })
}

fn not_negative(value: f64, what: impl FnOnce() -> String) -> Result<(), Error> {
    if (0.0..f64::INFINITY).contains(&value) {
        return Ok(());
    }
    Err(Error::Usage { message: format!("{} is {value}, and has to be a number from 0 on", what()) })
}

#[cfg(test)]
mod tests {
    use bt_iter::TriangularSolves;

    use super::*;
    use crate::direct::DIRECT;

    fn refused(method: impl Into<Method>) -> String {
        SolveOptions::by(method).check().unwrap_err().to_string()
    }

    #[test]
    fn every_method_and_preconditioner_is_in_range_by_default() {
        for method in Method::all() {
            assert_eq!(SolveOptions::by(method).check().map_err(|e| e.to_string()), Ok(()));
        }
        for precond in Precond::all() {
            let cg = Krylov::new(KrylovMethod::Cg, precond);
            assert_eq!(SolveOptions::by(cg).check().map_err(|e| e.to_string()), Ok(()));
        }
        assert_eq!(DIRECT.len(), 31);
    }

    #[test]
    fn values_beyond_their_range_are_named() {
        assert_eq!(
            refused(Direct::Spike { partitions: Some(0) }),
            "the number of partitions of spike is 0, and has to be 1 or more"
        );
        let of = |precond| Krylov::new(KrylovMethod::BiCgStab, precond);
        let ssor = |omega| of(Precond::Ssor { omega, solves: TriangularSolves::default() });
        for omega in [0.0, 2.0, -1.0, f64::NAN] {
            assert!(refused(ssor(omega)).contains("has to be between 0 and 2"));
            assert!(refused(Sweep::Sor(Relaxation::Fixed(omega))).contains("has to be between 0 and 2"));
        }
        let options = IlutOptions { drop_tolerance: f64::NAN, ..IlutOptions::default() };
        let ilut = Precond::Ilut { options, solves: TriangularSolves::default() };
        assert_eq!(refused(of(ilut)), "the drop tolerance of ilut is NaN, and has to be a number from 0 on");
        for rtol in [-1e-8, f64::NAN, f64::INFINITY] {
            let stop = StopCriterion { rtol, ..StopCriterion::default() };
            assert!(refused(Method::from(KrylovMethod::Cg).with_stop(stop).unwrap()).starts_with("rtol is "));
            assert!(refused(Method::from(Sweep::Jacobi).with_stop(stop).unwrap()).starts_with("rtol is "));
            assert!(
                refused(Method::default().with_accuracy(Accuracy::Residual(rtol)).unwrap()).starts_with("rtol is ")
            );
        }
        let blocks = SolveOptions { blocks: Blocks::Uniform(0), ..SolveOptions::default() };
        assert!(blocks.check().is_err());
    }
}
