//! How a command ends: exit codes, failures with their place and remedy, and the reply that `main` prints.

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

use blocktri::{FactorError, Method, Singularity};
use serde_json::{Map, Value, json};

/// Exit codes of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done, to the tolerance asked.
    Done,
    /// Bad usage or bad input; nothing written.
    Usage,
    /// Did not converge; the best x and the report are written.
    NotConverged,
    /// The matrix is singular.
    Singular,
    /// Device not available.
    NoDevice,
    /// A panic: always a bug.
    Bug,
    /// Interrupted by a signal; no output file is left unfinished.
    Interrupted,
}

impl Exit {
    /// The number the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Usage => 2,
            Self::NotConverged => 3,
            Self::Singular => 4,
            Self::NoDevice => 5,
            Self::Bug => 101,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// Why a command has nothing to show.
#[derive(Debug)]
pub struct Failure {
    /// The code.
    pub exit: Exit,
    /// What is wrong, the place first.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The place, and what else a script may want to know.
    pub details: Box<Map<String, Value>>,
}

/// Result of a command.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// A failure with nothing but its message.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), help: None, details: Box::default() }
    }
    /// Bad usage or bad input.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }
    /// The system refused something with this file.
    pub fn io(file: &Path, reason: &dyn Display) -> Self {
        Self::usage(format!("{}: {reason}", file.display())).detail("file", file.display().to_string())
    }
    /// Adds what to do.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
    /// Adds a field of the JSON object.
    pub fn detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.into(), value.into());
        self
    }

    /// An input error; `file` is named where the error itself does not name one.
    pub fn input(error: &bt_formats::Error, file: &Path) -> Self {
        use bt_formats::Error;
        let failure = match error {
            Error::Parse { file: place, line, .. } => {
                let named = if place.as_os_str().is_empty() { file } else { place };
                let failure = Self::usage(if place.as_os_str().is_empty() {
                    format!("{}: {error}", file.display())
                } else {
                    error.to_string()
                })
                .detail("file", named.display().to_string());
                if *line > 0 { failure.detail("line", *line) } else { failure }
            }
            Error::Io { file: place, source } => {
                Self::io(if place.as_os_str().is_empty() { file } else { place }, source)
            }
            Error::NotEnoughMemory { needed, available, .. } => {
                return Self::io(file, error)
                    .detail("needed_bytes", *needed)
                    .detail("available_bytes", *available)
                    .help(
                        "take a method or preconditioner that needs less, a smaller problem, or raise the limit with --memory (80% of \
                         what is available by default)",
                    );
            }
            Error::NonFinite { row, col, .. } | Error::OutsideStructure { row, col, .. } => {
                Self::io(file, error).detail("row", *row).detail("column", *col)
            }
            _ => Self::io(file, error),
        };
        match error.help() {
            Some(help) => failure.help(help),
            None => failure,
        }
    }

    /// A GPU that is not there, or fails.
    pub fn no_device(reason: &dyn Display) -> Self {
        Self::new(Exit::NoDevice, reason.to_string()).help("use --device cpu")
    }

    /// A solve of the matrix in `file` by the method `asked` for that ended in an error.
    pub fn solve(error: &blocktri::Error, file: &Path, asked: &Method) -> Self {
        let failure = match error {
            blocktri::Error::Input(input) => return Self::input(input, file),
            blocktri::Error::Singular(place) => Self::singular(*place, file),
            blocktri::Error::Factor(FactorError::Stopped) => Self::interrupted(),
            blocktri::Error::Factor(reason) => {
                let next = if let Method::Direct(direct, _) = asked { direct.fallback() } else { None };
                Self::breakdown(reason, file).help(match next {
                    Some(next) => format!("use --method auto, or let {next} take its place with --fallback"),
                    None => advice(asked).to_owned(),
                })
            }
            blocktri::Error::NothingFits { .. } => Self::usage(error.to_string()).help("allow more with --memory"),
            blocktri::Error::Device(reason) => Self::no_device(reason),
            other => Self::usage(other.to_string()),
        };
        match error.help() {
            Some(_) if asked.is_auto() && matches!(error, blocktri::Error::Factor(_)) => failure.help(advice(asked)),
            Some(help) if failure.help.is_none() => failure.help(help),
            _ => failure,
        }
    }

    fn breakdown(reason: &FactorError, file: &Path) -> Self {
        let failure = Self { exit: Exit::NotConverged, ..Self::io(file, reason) }
            .detail("outcome", "breakdown")
            .detail("breakdown", reason.to_string());
        match reason {
            FactorError::Breakdown { place: Some(place), .. } => failure.detail(place.name(), place.index()),
            _ => failure,
        }
    }

    fn singular(place: Singularity, file: &Path) -> Self {
        let kind = match place.kind {
            blocktri::SingularKind::Structural => "structural",
            blocktri::SingularKind::Numerical => "numerical",
        };
        Self { exit: Exit::Singular, ..Self::io(file, &place) }
            .detail("outcome", "singular")
            .detail("singular", json!({ "kind": kind, "column": place.column, "block": place.block }))
            .help("no unique solution exists: look for an equation or unknown that is missing or repeated there")
    }

    /// Stopped by a signal.
    pub fn interrupted() -> Self {
        Self::new(Exit::Interrupted, "interrupted; nothing was written").detail("outcome", "stopped")
    }

    /// Stopped by a signal in a run that goes on from what is finished.
    pub fn interrupted_run(kept: &str) -> Self {
        Self::new(Exit::Interrupted, format!("interrupted; {kept}"))
            .detail("outcome", "stopped")
            .help("the same command goes on from there")
    }

    /// The JSON object of a failure.
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("schema".into(), 1.into());
        object.insert("error".into(), self.message.clone().into());
        object.insert("help".into(), self.help.clone().into());
        object.extend(self.details.as_ref().clone());
        object.insert("exit_code".into(), self.exit.code().into());
        Value::Object(object)
    }

    /// The message for people: `error: …` and, where something is known, `help: …`.
    pub fn to_text(&self) -> String {
        let help = self.help.as_ref().map(|help| format!("help: {help}\n")).unwrap_or_default();
        format!("error: {}\n{help}", self.message)
    }
}

/// What a command has to say. `main` prints it, so that stdout has one writer.
#[derive(Debug)]
pub struct Reply {
    /// The code.
    pub exit: Exit,
    /// For `--json`.
    pub json: Value,
    /// For people; not printed under `--quiet`.
    pub text: String,
    /// For stderr, in any case.
    pub warnings: Vec<String>,
}

/// What to try where a direct method did not do.
pub fn advice(asked: &Method) -> &'static str {
    if asked.is_auto() {
        "other units for rows or columns that differ by many powers of ten; every stronger method was tried"
    } else {
        "use --method auto, which goes to stronger methods"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blocktri::{Direct, Place, SingularKind};

    #[test]
    fn failures_carry_their_place() {
        let at = Singularity { kind: SingularKind::Numerical, column: 4, block: Some(1) };
        let failure = Failure::solve(&blocktri::Error::Singular(at), Path::new("A.mtx"), &Method::default());
        assert_eq!(failure.exit.code(), 4);
        assert!(failure.to_text().starts_with("error: A.mtx: the matrix is singular: no pivot in column 4"));
        let json = failure.to_json();
        assert_eq!(json["singular"], json!({ "kind": "numerical", "column": 4, "block": 1 }));
        assert_eq!(
            (&json["outcome"], &json["exit_code"], &json["file"]),
            (&json!("singular"), &json!(4), &json!("A.mtx"))
        );
    }

    #[test]
    fn a_method_that_breaks_down_is_not_a_usage_error() {
        let error = FactorError::breakdown("thomas", Place::Row(2), "zero pivot in row 2");
        let failure = Failure::solve(&error.into(), Path::new("A.mtx"), &Direct::Thomas.into());
        assert_eq!(failure.exit.code(), 3);
        let json = failure.to_json();
        assert_eq!((&json["outcome"], &json["row"]), (&json!("breakdown"), &json!(2)));
        assert!(failure.help.is_some_and(|h| h.contains("--method")));
    }
}
