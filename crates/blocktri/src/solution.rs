//! An answer and its report.

use bt_formats::{Note, SolveReport};
use faer::Mat;

use crate::candidate::Candidate;
use crate::method::Method;
use crate::options::{DeviceChoice, Reorder};
use crate::partition::BlockSummary;
use crate::preconditioners::Precond;

/// An answer and its report: X by columns of the kind `X`. [`Solution`] knows its scalar, [`AnySolution`](crate::AnySolution)
/// does not.
#[derive(Clone, Debug)]
pub struct Answer<X> {
    /// X, n × nrhs.
    pub x: X,
    /// What was done, how it ended, how good x is.
    pub report: SolveReport,
    /// The method that solved, with its options: never `Auto`, but where a limit of time ended the choice.
    pub method: Method,
    /// The reordering that was used.
    pub reorder: Reorder,
    /// The preconditioner that was used; `None` of them for methods without one.
    pub precond: Precond,
    /// The blocks that were used, for methods on blocks.
    pub blocks: Option<BlockSummary>,
    /// Reciprocal condition number of A in the 1-norm, direct methods only; `None` where the answer is not in doubt (see
    /// [`Condition`](crate::Condition)).
    pub rcond: Option<f64>,
    /// Where it was solved: never `Auto`.
    pub device: DeviceChoice,
    /// What the user must not overlook although the outcome is good (also among the notes): an ill-conditioned matrix, a
    /// method replaced by another.
    pub warnings: Vec<Note>,
    /// What `auto` weighed, in its order; empty for a method asked for by name.
    pub candidates: Vec<Candidate>,
}

/// The answer of a system in the scalar `T`.
pub type Solution<T> = Answer<Mat<T>>;

impl<X> Answer<X> {
    /// On the processor, in the given order, without preconditioner, blocks, condition number and warnings.
    pub(crate) fn of(x: X, report: SolveReport, method: impl Into<Method>) -> Self {
        Self {
            x,
            report,
            method: method.into(),
            reorder: Reorder::None,
            precond: Precond::None,
            blocks: None,
            rcond: None,
            device: DeviceChoice::Cpu,
            warnings: Vec::new(),
            candidates: Vec::new(),
        }
    }

    /// The same with X as `f` gives it.
    pub(crate) fn map<Y>(self, f: impl FnOnce(X) -> Y) -> Answer<Y> {
        Answer {
            x: f(self.x),
            report: self.report,
            method: self.method,
            reorder: self.reorder,
            precond: self.precond,
            blocks: self.blocks,
            rcond: self.rcond,
            device: self.device,
            warnings: self.warnings,
            candidates: self.candidates,
        }
    }
}
