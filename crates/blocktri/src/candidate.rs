//! A way to solve, as it is weighed.

use bt_formats::{Note, memory, seconds_in_words};

use crate::cost::{Machine, Work};
use crate::direct::Direct;
use crate::method::Method;
use crate::options::{DeviceChoice, Reorder};

/// A way to solve: method, order, and what it costs.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The method.
    pub method: Method,
    /// Where it computes.
    pub device: DeviceChoice,
    /// Order it works in.
    pub reorder: Reorder,
    /// Counted work; of an iteration that of its setup and of the least number of steps, of components sums, with the kernel of the one that
    /// takes longest.
    pub work: Work,
    /// Predicted seconds of one solve from end to end; of an iteration at least so many.
    pub seconds: f64,
    /// Bytes of the matrix in the method's format, of factors and of work vectors.
    pub bytes: u64,
    /// Structure that the count rests on, for reports: "half-bandwidths 4 and 4", "100 blocks of at most 16".
    pub structure: String,
    /// Why it is out of the question.
    pub refused: Option<String>,
}

impl Candidate {
    /// Those of [`seconds`](Self::seconds) that are left once its order has been made, rows matched with columns for it.
    /// Candidates are ranked by these: what was made to weigh them is spent.
    pub fn seconds_after_order(&self) -> f64 {
        let machine = Machine::here();
        self.seconds - machine.ordering * self.work.ordered - machine.pairing * self.work.paired
    }

    /// The direct method, if it is one.
    pub fn direct(&self) -> Option<Direct> {
        match self.method {
            Method::Direct(direct, _) => Some(direct),
            _ => None,
        }
    }
}

/// Steps that an iteration to rounding level takes at least.
pub(crate) const LEAST_STEPS: f64 = 12.0;

/// What the setup and the least number of steps of an iteration must be predicted to gain over a direct method, which is surer: to rounding level
/// it rarely takes fewer than four times as many steps, and a probe that fails costs a quarter of the direct method at most.
pub(crate) const GAIN: f64 = 6.0;

/// By what is left to do: orders have been made to weigh the candidates.
pub(crate) fn rank(candidates: &mut [Candidate]) {
    candidates.sort_by(|a, b| {
        let refused = a.refused.is_some().cmp(&b.refused.is_some());
        refused.then(a.seconds_after_order().total_cmp(&b.seconds_after_order()))
    });
}

/// Why so many bytes are too many, where they are.
pub(crate) fn refusal(bytes: u64, allowed: impl FnOnce() -> Option<u64>) -> Option<String> {
    let allowed = if bytes < memory::SMALL { None } else { allowed() };
    let allowed = allowed.filter(|allowed| bytes > *allowed)?;
    Some(format!("no more than {} may be taken", memory::in_words(allowed)))
}

/// The choice and its reason as a sentence.
pub(crate) fn choice(chosen: &Candidate, candidates: &[Candidate]) -> Note {
    let place = |c: &Candidate| if c.device.is_gpu() { c.device.to_string() } else { c.reorder.to_string() };
    let other = |c: &&Candidate| (&c.method, place(c)) != (&chosen.method, place(chosen));
    let others: Vec<String> =
        candidates.iter().filter(other).take(2).map(|c| format!("{} ({}) {}", c.method, place(c), time(c))).collect();
    Note::AutoChose {
        method: chosen.method.to_string(),
        order: chosen.reorder.name(),
        structure: chosen.structure.clone(),
        seconds: chosen.seconds,
        time: time(chosen),
        next: Some(others.join(", ")).filter(|others| !others.is_empty()),
    }
}

fn time(c: &Candidate) -> String {
    let bound = if c.method.is_iterative() { "at least " } else { "" };
    format!("{bound}{}", seconds_in_words(c.seconds))
}

/// Seconds that iterations were predicted to take when they were given up, by where they computed.
pub(crate) type Known = Vec<(DeviceChoice, f64)>;
