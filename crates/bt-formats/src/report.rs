//! The report of a solve: what was done, how it ended, and how good the answer is, recomputed from A.

use std::fmt;
use std::time::Duration;

#[cfg(feature = "serde")]
use serde::ser::SerializeMap;
#[cfg(feature = "serde")]
use serde_json::{Value, json};

use crate::Note;

/// How a solve ended. Everything but `Converged` still leaves the best iterate in x.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The true residual meets the criterion (iterative), or the backward error is at rounding level (direct).
    Converged,
    /// The attainable accuracy is reached, and the target is not: the true residual is within 10 times of it, or at the level that
    /// rounding in b − A·x leaves.
    Loose,
    /// The recurrence claimed convergence, the recomputed residual is more than 10 times the target.
    FalseConvergence,
    /// `max_iters` reached.
    IterationLimit,
    /// `time_limit` reached.
    TimeLimit,
    /// The method cannot go on; the reason says why.
    Breakdown(Breakdown),
    /// A monitor stopped it.
    Stopped,
    /// A direct method could not bring the backward error to rounding level.
    Inaccurate,
}

/// Why an iteration cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Breakdown {
    /// The iterates grow: the spectral radius of the iteration is at least 1.
    Diverged,
    /// The residual or update stopped decreasing far above the target.
    Stagnated,
    /// A NaN or infinity appeared.
    NonFinite,
    /// A direction p with pᴴAp ≤ 0: A is not positive definite.
    IndefiniteOperator,
    /// A residual r with rᴴM⁻¹r ≤ 0: M is not positive definite.
    IndefinitePreconditioner,
    /// The residual became orthogonal to the shadow residual (ρ = 0).
    RhoZero,
    /// A·s is zero or orthogonal to s (ω = 0).
    OmegaZero,
    /// The Krylov space is exhausted without a solution in it: A (or A·M⁻¹) is singular to working precision.
    SingularOperator,
}

impl fmt::Display for Breakdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Diverged => "the iterates diverge: the spectral radius of the iteration is at least 1",
            Self::Stagnated => "the residual stopped decreasing above the target",
            Self::NonFinite => "a NaN or infinity appeared in the iterates",
            Self::IndefiniteOperator => "a direction of non-positive curvature: the matrix is not positive definite",
            Self::IndefinitePreconditioner => "the preconditioner is not positive definite",
            Self::RhoZero => "rho = 0: the residual became orthogonal to the shadow residual, also after restarts",
            Self::OmegaZero => "omega = 0: the stabilizing step vanished",
            Self::SingularOperator => "the Krylov space is exhausted without a solution in it: A, or A with its preconditioner, is singular to working precision",
        })
    }
}

impl Outcome {
    /// The name in JSON reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::Loose => "loose",
            Self::FalseConvergence => "false-convergence",
            Self::IterationLimit => "iteration-limit",
            Self::TimeLimit => "time-limit",
            Self::Breakdown(_) => "breakdown",
            Self::Stopped => "stopped",
            Self::Inaccurate => "inaccurate",
        }
    }
}

/// Measures of an answer, recomputed from A, x and b; the worst column counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Certificate {
    /// ‖b − Ax‖₂ / ‖b‖₂
    pub relative_residual: f64,
    /// ‖b − Ax‖∞ / (‖A‖∞‖x‖∞ + ‖b‖∞)
    pub backward_error: f64,
    /// maxᵢ |b − Ax|ᵢ / (|A||x| + |b|)ᵢ
    pub componentwise_backward_error: f64,
}

/// Wall time of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PhaseTimes {
    /// Detection and reordering.
    pub reorder: Duration,
    /// Extraction of the format and factorization.
    pub setup: Duration,
    /// Substitution, refinement or iteration.
    pub solve: Duration,
}

/// Memory in bytes, counted from the arrays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// A in the format the method worked on.
    pub matrix: usize,
    /// Factors or preconditioner.
    pub factors: usize,
    /// Vectors of the method.
    pub workspace: usize,
}

/// What a solve did. x is returned beside it.
#[derive(Clone, Debug)]
pub struct SolveReport {
    /// Name of the method that produced x, as the command spells it.
    pub method: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// Iterations (iterative) or refinement steps (direct) done.
    pub iterations: usize,
    /// The residual norm that the method itself believed in at the end, if it keeps one.
    pub recurrence_residual: Option<f64>,
    /// How good x is, recomputed from A.
    pub certificate: Certificate,
    /// Products with A.
    pub operator_applications: usize,
    /// Applications of the preconditioner or of the factors.
    pub preconditioner_applications: usize,
    /// Wall time by phase.
    pub times: PhaseTimes,
    /// Memory.
    pub bytes: Bytes,
    /// What was chosen and why, what was boosted, dropped or handed over.
    pub notes: Vec<Note>,
}

#[cfg(feature = "serde")]
impl SolveReport {
    /// The report as JSON, with the feature `serde`, between the fields of two objects that only the caller knows: of the system before it, of the
    /// run after it. Of two fields of a name the last counts.
    pub fn to_json(&self, system: Value, run: Value) -> Value {
        let fields = |object| if let Value::Object(fields) = object { Some(fields) } else { None };
        [system, json!(self), run].into_iter().filter_map(fields).flatten().collect()
    }
}

/// A map with the names of the command's JSON, with the feature `serde`: whoever writes it adds what only he knows, such as the file. Seconds
/// are those of the phases, `breakdown` is a sentence or null, `notes` are sentences and `events` the same as data.
#[cfg(feature = "serde")]
impl serde::Serialize for SolveReport {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let breakdown = match self.outcome {
            Outcome::Breakdown(reason) => Some(reason.to_string()),
            _ => None,
        };
        let Certificate { relative_residual, backward_error, componentwise_backward_error } = self.certificate;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("method", self.method)?;
        map.serialize_entry("outcome", self.outcome.name())?;
        map.serialize_entry("breakdown", &breakdown)?;
        map.serialize_entry("iterations", &self.iterations)?;
        map.serialize_entry("relative_residual", &relative_residual)?;
        map.serialize_entry("backward_error", &backward_error)?;
        map.serialize_entry("componentwise_backward_error", &componentwise_backward_error)?;
        map.serialize_entry("seconds", &self.times)?;
        map.serialize_entry("bytes", &self.bytes)?;
        map.serialize_entry("notes", &self.notes.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        map.serialize_entry("events", &self.notes)?;
        map.end()
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for PhaseTimes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        for (name, time) in [("reorder", self.reorder), ("setup", self.setup), ("solve", self.solve)] {
            map.serialize_entry(name, &time.as_secs_f64())?;
        }
        map.end()
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        for (name, bytes) in [("matrix", self.matrix), ("factors", self.factors), ("workspace", self.workspace)] {
            map.serialize_entry(name, &bytes)?;
        }
        map.end()
    }
}
