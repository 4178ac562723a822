//! Why a chain has no stationary distribution to give, or a model is none.

use std::fmt;

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
    #[error("the rate from state {from} to state {to} (from 0) is {rate}: rates are not negative")]
    NegativeRate {
        /// Source.
        from: usize,
        /// Target.
        to: usize,
        /// The entry.
        rate: f64,
    },
    /// A row that does not sum to zero beyond rounding.
    #[error("row {row} (from 0) sums to {sum:e}, not to zero: not a generator")]
    RowSum {
        /// Row from 0.
        row: usize,
        /// Its sum.
        sum: f64,
        /// What the matrix seems to be instead.
        seems: Option<&'static str>,
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
    /// What the user can do about it, where something is known.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Input(e) => e.help(),
            Self::RowSum { seems, .. } => *seems,
            Self::SeveralClosedClasses { .. } => {
                Some("where the chain ends depends on where it starts: restrict the generator to one class")
            }
            Self::Failed { .. } => Some("take the method gth: it has no tolerance and cannot diverge"),
            _ => None,
        }
    }
}
