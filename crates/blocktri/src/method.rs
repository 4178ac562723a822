//! Methods as values: what solves, with all that it reads and nothing else.

use std::fmt;

use bt_direct::Refinement;
use bt_formats::StopCriterion;
use bt_iter::{Relaxation, StopRule, Sweep};

use crate::direct::{DIRECT, Direct};
use crate::error::Error;
use crate::names::by_name;
use crate::preconditioners::Precond;

/// A method of solution, with its options. A name parses into one with default options, and prints back.
///
/// ```
/// use blocktri::{Direct, Krylov, KrylovMethod, Method, Precond};
/// let spike = Method::from(Direct::Spike { partitions: Some(4) });
/// assert_eq!(spike.to_string(), "spike");
/// let gmres = Krylov::new(KrylovMethod::Gmres { restart: 50, basis: Default::default() }, "ilut".parse::<Precond>()?);
/// assert_eq!(Method::from(gmres).to_string(), "gmres");
/// assert_eq!("band-lu".parse::<Method>()?, Direct::BandLu.into());
/// # Ok::<(), blocktri::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Method {
    /// The method predicted to be fastest for the structure found, verified, replaced by a stronger one when it fails.
    Auto(Auto),
    /// A direct method.
    Direct(Direct, Factoring),
    /// A Krylov method.
    Krylov(Krylov),
    /// A hybrid block iteration (HBISA).
    Blocks(BlockIteration),
}

impl Default for Method {
    fn default() -> Self {
        Self::Auto(Auto::default())
    }
}

/// What `auto` aims at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Auto {
    /// How factors are made and used, where a direct method is chosen.
    pub factoring: Factoring,
    /// When an answer is good.
    pub accuracy: Accuracy,
}

/// When an answer of `auto` is good.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Accuracy {
    /// When its backward error, normwise and row by row, is that of rounding.
    #[default]
    Rounding,
    /// When ‖b − A·x‖₂ ≤ rtol·‖b‖₂, too: iterations may end there.
    Residual(f64),
}

/// How factors are made and used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factoring {
    /// Precision of the factors.
    pub precision: Precision,
    /// Refinement of what they answer.
    pub refinement: Refinement,
}

impl Default for Factoring {
    /// In the precision of the matrix, refined as long as that helps, at most three steps.
    fn default() -> Self {
        Self { precision: Precision::Working, refinement: Refinement::Auto }
    }
}

/// The precision of factors and preconditioners, or of a Krylov basis; matrices, residuals and answers keep that of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Precision {
    /// That of the matrix.
    #[default]
    Working,
    /// f32, for real matrices (of a basis: complex f32, too). Factors are refined until the backward error stagnates. `solve` replaces
    /// them by ones in the precision of the matrix where that is not at rounding level; a `Solver` reports
    /// [`Outcome::Inaccurate`](crate::Outcome::Inaccurate).
    Single,
}

impl Precision {
    /// Both, in the order of help texts.
    pub const ALL: [Self; 2] = [Self::Working, Self::Single];

    /// Name in commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Single => "single",
        }
    }
}

/// A Krylov method with its preconditioner.
#[derive(Clone, Debug, PartialEq)]
pub struct Krylov {
    /// The method.
    pub method: KrylovMethod,
    /// The preconditioner.
    pub precond: Precond,
    /// Precision of the preconditioner.
    pub precision: Precision,
    /// Tolerance and limits.
    pub stop: StopCriterion,
}

impl Krylov {
    /// To a relative residual of 10⁻⁸, the preconditioner in the precision of the matrix.
    pub fn new(method: KrylovMethod, precond: Precond) -> Self {
        Self { method, precond, precision: Precision::Working, stop: StopCriterion::default() }
    }
}

/// Which Krylov method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KrylovMethod {
    /// Conjugate gradients, for Hermitian positive definite matrices.
    Cg,
    /// Flexible conjugate gradients, for preconditioners that change from step to step.
    Fcg,
    /// Stabilized bi-conjugate gradients.
    BiCgStab,
    /// Restarted generalized minimal residuals.
    Gmres {
        /// Steps between two restarts.
        restart: usize,
        /// Precision in which V is kept: `Single` halves what orthogonalisation reads.
        basis: Precision,
    },
    /// GMRES for preconditioners that change from step to step.
    Fgmres {
        /// As of GMRES.
        restart: usize,
        /// As of GMRES.
        basis: Precision,
    },
}

/// Steps between two restarts where nothing else is said.
const RESTART: usize = 30;

impl KrylovMethod {
    /// All of them, with default options, in the order of help texts.
    pub const ALL: [Self; 5] = [
        Self::Cg,
        Self::Fcg,
        Self::BiCgStab,
        Self::Gmres { restart: RESTART, basis: Precision::Working },
        Self::Fgmres { restart: RESTART, basis: Precision::Working },
    ];

    /// Name in commands and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cg => "cg",
            Self::Fcg => "fcg",
            Self::BiCgStab => "bicgstab",
            Self::Gmres { .. } => "gmres",
            Self::Fgmres { .. } => "fgmres",
        }
    }

    /// Whether it takes A for Hermitian.
    pub fn is_symmetric(self) -> bool {
        matches!(self, Self::Cg | Self::Fcg)
    }

    /// What it is, in a line.
    fn summary(self) -> &'static str {
        match self {
            Self::Cg => "conjugate gradients, for Hermitian positive definite matrices",
            Self::Fcg => "flexible conjugate gradients",
            Self::BiCgStab => "stabilized bi-conjugate gradients",
            Self::Gmres { .. } => "generalized minimal residuals",
            Self::Fgmres { .. } => "flexible GMRES",
        }
    }
}

impl fmt::Display for KrylovMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A hybrid block iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockIteration {
    /// Which blocks a sweep takes from the current iterate, and how it is accelerated.
    pub sweep: Sweep,
    /// Tolerance and limits.
    pub stop: StopCriterion,
    /// What the tolerance is held against.
    pub rule: StopRule,
    /// The processor's part on a GPU, for Jacobi and red–black sweeps; anything but `None` is refused elsewhere.
    pub host_blocks: HostBlocks,
}

impl BlockIteration {
    /// To a relative residual of 10⁻⁸.
    pub fn new(sweep: Sweep) -> Self {
        Self { sweep, stop: StopCriterion::default(), rule: StopRule::Residual, host_blocks: HostBlocks::None }
    }
}

/// All sweeps, in the order of help texts.
const SWEEPS: [Sweep; 6] = [
    Sweep::Jacobi,
    Sweep::GaussSeidel,
    Sweep::Symmetric,
    Sweep::RedBlack,
    Sweep::Sor(Relaxation::Tuned),
    Sweep::Chebyshev,
];

fn sweep_summary(sweep: Sweep) -> &'static str {
    match sweep {
        Sweep::Jacobi => "block Jacobi iteration",
        Sweep::GaussSeidel => "block Gauss–Seidel iteration",
        Sweep::Symmetric => "symmetric block Gauss–Seidel iteration",
        Sweep::RedBlack => "block Gauss–Seidel in red–black order, parallel",
        Sweep::Sor(_) => "the same with over-relaxation, tuned unless ω is given",
        Sweep::Chebyshev => "the same with Chebyshev acceleration, tuned",
    }
}

impl Method {
    /// All methods there are, with default options, in the order of help texts.
    pub fn all() -> Vec<Self> {
        let direct = DIRECT.iter().map(|row| row.method.into());
        let blocks = SWEEPS.map(|sweep| BlockIteration::new(sweep).into());
        let krylov = KrylovMethod::ALL.map(|method| Krylov::new(method, Precond::Auto).into());
        [Self::default()].into_iter().chain(direct).chain(blocks).chain(krylov).collect()
    }

    /// Name in commands and reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Auto(_) => "auto",
            Self::Direct(direct, _) => direct.name(),
            Self::Krylov(krylov) => krylov.method.name(),
            Self::Blocks(blocks) => blocks.sweep.name(),
        }
    }

    /// What it is, in a line.
    pub fn summary(&self) -> &'static str {
        match self {
            Self::Auto(_) => "the method predicted to be fastest for the structure found",
            Self::Direct(direct, _) => direct.row().summary,
            Self::Krylov(krylov) => krylov.method.summary(),
            Self::Blocks(blocks) => sweep_summary(blocks.sweep),
        }
    }

    /// Whether it is [`Method::Auto`].
    pub fn is_auto(&self) -> bool {
        matches!(self, Self::Auto(_))
    }

    /// Whether it iterates to a tolerance.
    pub fn is_iterative(&self) -> bool {
        matches!(self, Self::Krylov(_) | Self::Blocks(_))
    }

    /// The seed that its result depends on.
    pub fn seed(&self) -> Option<u64> {
        match self {
            Self::Direct(direct, _) => direct.seed(),
            Self::Krylov(krylov) => krylov.precond.seed(),
            _ => None,
        }
    }

    /// How factors are made and used; `None` for methods without factors of A.
    pub fn factoring(&self) -> Option<Factoring> {
        match self {
            Self::Auto(Auto { factoring, .. }) | Self::Direct(_, factoring) => Some(*factoring),
            _ => None,
        }
    }

    /// The same with factors made in another way.
    ///
    /// # Errors
    /// [`Error::Usage`] for an iteration, which has no factors of A.
    pub fn with_factoring(mut self, new: Factoring) -> Result<Self, Error> {
        match &mut self {
            Self::Auto(Auto { factoring, .. }) | Self::Direct(_, factoring) => *factoring = new,
            _ => return Err(self.does_not_read("how factors are made", "a direct method or auto")),
        }
        Ok(self)
    }

    /// `auto` to another accuracy.
    ///
    /// # Errors
    /// [`Error::Usage`] for a method with a name: an iteration has a [stopping criterion](Self::with_stop), a direct method its own accuracy.
    pub fn with_accuracy(mut self, new: Accuracy) -> Result<Self, Error> {
        match &mut self {
            Self::Auto(Auto { accuracy, .. }) => *accuracy = new,
            _ => return Err(self.does_not_read("an accuracy", "auto")),
        }
        Ok(self)
    }

    /// Tolerance and limits of an iterative method.
    pub fn stop(&self) -> Option<&StopCriterion> {
        match self {
            Self::Krylov(krylov) => Some(&krylov.stop),
            Self::Blocks(blocks) => Some(&blocks.stop),
            _ => None,
        }
    }

    /// The same, for writing.
    pub fn stop_mut(&mut self) -> Option<&mut StopCriterion> {
        match self {
            Self::Krylov(Krylov { stop, .. }) | Self::Blocks(BlockIteration { stop, .. }) => Some(stop),
            _ => None,
        }
    }

    /// The method to another tolerance.
    ///
    /// # Errors
    /// [`Error::Usage`] for a method that does not iterate.
    ///
    /// ```
    /// use blocktri::{Direct, KrylovMethod, Method, StopCriterion};
    /// let tight = StopCriterion { rtol: 1e-12, ..StopCriterion::default() };
    /// assert!(Method::from(KrylovMethod::Cg).with_stop(tight).is_ok());
    /// let refused = Method::from(Direct::BandLu).with_stop(tight).unwrap_err();
    /// assert_eq!(refused.to_string(), "band-lu does not read a stopping criterion; an iteration does");
    /// ```
    pub fn with_stop(mut self, new: StopCriterion) -> Result<Self, Error> {
        match self.stop_mut() {
            Some(stop) => *stop = new,
            None => return Err(self.does_not_read("a stopping criterion", "an iteration")),
        }
        Ok(self)
    }

    fn does_not_read(&self, what: &str, who: &str) -> Error {
        Error::Usage { message: format!("{self} does not read {what}; {who} does") }
    }
}

impl From<Direct> for Method {
    fn from(direct: Direct) -> Self {
        Self::Direct(direct, Factoring::default())
    }
}

impl From<Krylov> for Method {
    fn from(krylov: Krylov) -> Self {
        Self::Krylov(krylov)
    }
}

impl From<KrylovMethod> for Method {
    /// With the preconditioner left to it.
    fn from(method: KrylovMethod) -> Self {
        Krylov::new(method, Precond::Auto).into()
    }
}

impl From<BlockIteration> for Method {
    fn from(blocks: BlockIteration) -> Self {
        Self::Blocks(blocks)
    }
}

impl From<Sweep> for Method {
    fn from(sweep: Sweep) -> Self {
        BlockIteration::new(sweep).into()
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Method {
    type Err = Error;
    fn from_str(name: &str) -> Result<Self, Error> {
        by_name("method", Self::all(), Self::name, name)
    }
}

/// The diagonal blocks that the processor sweeps while a GPU sweeps the others, for Jacobi and red–black sweeps with
/// [`DeviceChoice::Gpu`](crate::DeviceChoice::Gpu) or [`DeviceChoice::Gpus`](crate::DeviceChoice::Gpus). The iterates are those
/// of the undivided iteration, to rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostBlocks {
    /// None of them.
    #[default]
    None,
    /// By the time that one sweep over all blocks takes on each.
    Measured,
    /// The last so many.
    Count(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_into_its_method_and_prints_back() {
        let all = Method::all();
        assert_eq!(all.len(), 43);
        for method in all {
            let name = method.to_string();
            assert_eq!(name.parse::<Method>().unwrap(), method);
            assert!(!method.summary().is_empty());
        }
        let unknown = "band".parse::<Method>().unwrap_err();
        assert!(unknown.help().unwrap().contains("band-lu, band-lu-nopivot"), "{unknown}");
    }

    #[test]
    fn what_a_method_does_not_read_it_does_not_take() {
        let single = Factoring { precision: Precision::Single, ..Factoring::default() };
        assert_eq!(Method::from(Direct::BandLu).with_factoring(single).unwrap().factoring(), Some(single));
        assert!(Method::from(KrylovMethod::Cg).with_factoring(single).is_err());
        let tight = StopCriterion { rtol: 1e-12, ..StopCriterion::default() };
        assert_eq!(Method::from(Sweep::Jacobi).with_stop(tight).unwrap().stop().unwrap().rtol, 1e-12);
        assert!(Method::default().with_stop(tight).is_err());
        assert!(Method::default().with_accuracy(Accuracy::Residual(1e-6)).is_ok());
        assert!(Method::from(KrylovMethod::Cg).with_accuracy(Accuracy::Residual(1e-6)).is_err());
        assert_eq!(Method::from(Direct::Rbt { seed: 7 }).seed(), Some(7));
    }
}
