//! Why a chain has no stationary distribution to give, or a model is none.

use std::fmt;

use crate::seems::Seems;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What is wrong with a model, a generator or a request. States count from 0.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Sizes, indices, entries that are not finite.
    #[error(transparent)]
    Input(#[from] bt_formats::Error),
    /// A parameter of a model outside its range.
    #[error("{name} is {value}: {why}")]
    BadParameter {
        /// Which.
        name: &'static str,
        /// What was given.
        value: f64,
        /// What it must be.
        why: &'static str,
    },
    /// A rate from one state to another below zero.
    #[error("the rate from state {from} to state {to} (from 0) is {}: rates are not negative", Short(*.rate, 12))]
    NegativeRate {
        /// Source.
        from: usize,
        /// Target.
        to: usize,
        /// The entry.
        rate: f64,
    },
    /// The rates out of a state sum to more than there are numbers for.
    #[error(
        "the rates out of state {state} (from 0) sum to more than the largest number: divide all rates by one factor"
    )]
    RatesOverflow {
        /// The state.
        state: usize,
    },
    /// A row of rates that does not sum to zero beyond rounding.
    #[error("row {row} (from 0) sums to {}, not to zero: not a generator", Short(*.sum, 6))]
    RowSum {
        /// Row from 0.
        row: usize,
        /// Its sum.
        sum: f64,
        /// What the matrix seems to be instead.
        seems: Option<Seems>,
    },
    /// A transition probability below zero.
    #[error(
        "the probability of going from state {from} to state {to} (from 0) is {}: probabilities are not negative",
        Short(*.value, 12)
    )]
    NegativeProbability {
        /// Source.
        from: usize,
        /// Target.
        to: usize,
        /// The entry.
        value: f64,
        /// What the matrix seems to be instead.
        seems: Option<Seems>,
    },
    /// A row of transition probabilities that does not sum to 1 beyond rounding.
    #[error("row {row} (from 0) sums to {}, not to 1: these are no transition probabilities", Short(*.sum, 12))]
    ProbabilitySum {
        /// Row from 0.
        row: usize,
        /// Its sum.
        sum: f64,
        /// What the matrix seems to be instead.
        seems: Option<Seems>,
    },
    /// A row of transition probabilities without an entry.
    #[error("row {row} (from 0) is empty: no probability leads out of state {row}")]
    EmptyRow {
        /// Row from 0.
        row: usize,
        /// What the matrix seems to be instead.
        seems: Option<Seems>,
    },
    /// More than one closed class: the stationary distribution is not unique.
    #[error("the chain has {}: its stationary distribution is not unique", Classes(.classes, *.count))]
    SeveralClosedClasses {
        /// How many.
        count: usize,
        /// Smallest state and number of states of the first few.
        classes: Vec<(usize, usize)>,
    },
    /// A monitor stopped the work.
    #[error("stopped")]
    Stopped,
    /// A method ended without an answer.
    #[error("{method}: {reason}")]
    Failed {
        /// The method.
        method: &'static str,
        /// Why.
        reason: String,
    },
}

/// A number in so many digits at most: the rounding of a sum does not show, nor what its cancellation left.
struct Short(f64, usize);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounded: f64 = format!("{:.*e}", self.1 - 1, self.0).parse().unwrap_or(self.0);
        if rounded == 0.0 || (1e-4..1e12).contains(&rounded.abs()) {
            write!(f, "{rounded}")
        } else {
            write!(f, "{rounded:e}")
        }
    }
}

/// How many closed classes, and the first of them in words.
struct Classes<'a>(&'a [(usize, usize)], usize);

impl fmt::Display for Classes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} closed classes (", self.1)?;
        for (k, (first, size)) in self.0.iter().enumerate() {
            let comma = if k > 0 { "; " } else { "" };
            match size {
                1 => write!(f, "{comma}state {first}, absorbing")?,
                _ => write!(f, "{comma}{size} states from {first} on")?,
            }
        }
        f.write_str(if self.0.len() < self.1 { "; …)" } else { ")" })
    }
}

impl Error {
    /// What the matrix seems to be, where it is not what it was taken for.
    pub fn seems(&self) -> Option<Seems> {
        match self {
            Self::RowSum { seems, .. }
            | Self::NegativeProbability { seems, .. }
            | Self::ProbabilitySum { seems, .. }
            | Self::EmptyRow { seems, .. } => *seems,
            _ => None,
        }
    }

    /// What the user can do about it, where something is known.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Input(e) => e.help(),
            Self::EmptyRow { seems: None, .. } => Some("a state that is never left has a 1 on the diagonal"),
            Self::RowSum { .. }
            | Self::NegativeProbability { .. }
            | Self::ProbabilitySum { .. }
            | Self::EmptyRow { .. } => self.seems().map(Seems::in_words),
            Self::SeveralClosedClasses { .. } => {
                Some("where the chain ends depends on where it starts: restrict the generator to one class")
            }
            Self::Failed { .. } => Some("take the method gth: it has no tolerance and cannot diverge"),
            _ => None,
        }
    }
}
