//! A chain from a file, and where it starts.

use std::path::Path;

use blocktri::CancelToken;
use bt_formats::FileMatrix;
use bt_queue::{Error, Generator, Seems, has_no_diagonal};

use super::failure;
use crate::args::{DiagonalArg, QueueArgs, StartArg};
use crate::exit::{Failure, Result};
use crate::load;
use crate::report::plural;

/// What the file is taken for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Rates.
    Generator,
    /// Probabilities.
    Transitions,
}

/// Reads the chain in `file`; a sentence where it was changed.
///
/// # Errors
/// With file, line or row, and what to do.
pub fn chain(file: &Path, kind: Kind, args: &QueueArgs, cancel: &CancelToken) -> Result<(Generator, Option<String>)> {
    let FileMatrix::Real(a) = load::matrix(file, cancel)? else {
        return Err(Failure::io(file, &"rates are real numbers: the file is complex"));
    };
    let missing = match args.diagonal {
        DiagonalArg::Given => false,
        DiagonalArg::Missing => true,
        DiagonalArg::Auto => has_no_diagonal(&a),
    };
    let (q, note) = match (kind, missing, args.normalize) {
        (Kind::Generator, true, _) => {
            (Generator::from_rates_alone(a), Some("the diagonal was made from the rates; none was read"))
        }
        (Kind::Generator, false, true) => {
            (Generator::from_rounded(a), Some("--normalize: the diagonal was made from the rates"))
        }
        (Kind::Transitions, _, true) => {
            (Generator::from_weights(a), Some("--normalize: each row was divided by its sum"))
        }
        (Kind::Generator, false, false) => (Generator::new(a), None),
        (Kind::Transitions, _, false) => (Generator::from_stochastic(&a), None),
    };
    let q = q.map_err(|e| {
        let told = failure(&e, Some(file));
        match (e.seems().and_then(|seems| remedy(seems, kind)), e) {
            (Some(help), _) => told.help(help),
            (None, Error::ProbabilitySum { .. }) => {
                told.help("each row must sum to 1; --normalize divides it by its sum")
            }
            (None, _) => told,
        }
    })?;
    Ok((q, note.map(str::to_owned)))
}

/// What is seen, and the option that takes it.
fn remedy(seems: Seems, kind: Kind) -> Option<String> {
    let option = match (seems, kind) {
        (Seems::Transitions, _) => "--transitions takes it",
        (Seems::Generator, _) => "--generator takes it",
        (Seems::TransposedGenerator | Seems::TransposedTransitions, _) => {
            "rows must hold what leads out of a state: transpose the file"
        }
        (Seems::RatesAlone, Kind::Generator) => "--diagonal missing takes the rates alone",
        (Seems::RatesAlone, Kind::Transitions) => "--generator with --diagonal missing takes rates",
        (Seems::Counts, Kind::Generator) => "--transitions with --normalize divides each row by its sum",
        (Seems::Counts | Seems::Rounded, Kind::Transitions) => "--normalize divides each row by its sum",
        (Seems::Rounded, Kind::Generator) => "--normalize makes the diagonal from the rates, which are all that counts",
        _ => return None,
    };
    Some(format!("{}; {option}", seems.seen()))
}

/// The distribution that the chain starts with.
///
/// # Errors
/// On a state that is none, and on files, with their line.
pub fn start(args: &QueueArgs, n: usize, cancel: &CancelToken) -> Result<Vec<f64>> {
    let file = match &args.start {
        Some(StartArg::File(file)) => file,
        state => {
            let state = match state {
                Some(StartArg::State(state)) => *state,
                _ => 0,
            };
            let mut start = vec![0.0; n];
            let Some(p) = start.get_mut(state) else {
                let last = n.saturating_sub(1);
                return Err(Failure::usage(format!(
                    "--start {state}: the chain has {}, 0 to {last}",
                    plural(n, "state")
                )));
            };
            *p = 1.0;
            return Ok(start);
        }
    };
    let start = load::column(file, n, cancel)?;
    if let Some(i) = start.iter().position(|p| !(*p >= 0.0 && p.is_finite())) {
        return Err(Failure::io(file, &format_args!("the probability of state {i} (from 0) is {}", start[i])));
    }
    let sum: f64 = start.iter().sum();
    if !((sum - 1.0).abs() <= 1e-9) {
        return Err(Failure::io(file, &format_args!("the probabilities sum to {sum}, not to 1")));
    }
    Ok(start)
}
