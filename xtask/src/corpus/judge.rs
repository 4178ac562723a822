//! What each run must have done.
//!
//! | matrix | `auto` | a method by name |
//! |---|---|---|
//! | nonsingular | exit 0, backward error ≤ 1e-14, forward error ≤ 10·cond·2⁻⁵³ | the same, or an honest refusal: exit 2, 3 or 4 |
//! | singular | exit 4 | exit 4, or exit 2 or 3; exit 0 with a warning from methods in which rounding hides a zero pivot |
//!
//! An iterative method is held to its tolerance in the place of the two errors, and may meet it on a singular system that has
//! solutions. A method with partial pivoting may
//! refuse a structure (exit 2) and nothing else.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::index::System;
use super::vector::{self, Dense};
use crate::process::Result;

/// Backward error allowed to a direct method.
const BACKWARD_ERROR: f64 = 1e-14;
/// The command's default `--rtol`, which the relative residual of an iterative method has to meet.
pub(super) const RELATIVE_RESIDUAL: f64 = 1e-8;

/// Methods that find a pivot whenever there is one: nothing but the wrong structure excuses them.
const PIVOTED: [&str; 7] =
    ["tridiagonal-lu", "diagonal-pivoting", "g-spike", "band-lu", "block-lu-across", "dense-lu", "sparse-lu"];

/// Methods whose last pivots are sums of rounded numbers even for matrices of small integers, so that an exact zero does
/// not show: they warn that the matrix is singular to working precision.
const ROUNDED: [&str; 3] = ["g-spike", "spike-lu", "spike-diagonal-pivoting"];

/// Methods that stop at a tolerance.
pub(super) fn is_iterative(method: &str) -> bool {
    method.starts_with("hbisa") || ["cg", "fcg", "bicgstab", "gmres", "fgmres"].contains(&method)
}

/// What a run left behind.
pub(super) struct Run {
    /// Exit code; none after a signal.
    pub exit: Option<i32>,
    /// Whether it was stopped at the time limit.
    pub timed_out: bool,
    /// Wall time of the process.
    pub wall: Duration,
    /// Standard output as JSON, null when it is none.
    pub report: Value,
    /// Standard error.
    pub stderr: String,
    /// The solution file, when there is one.
    pub solution: Option<Result<Dense>>,
}

impl Run {
    /// The exit code for the table.
    pub fn exit_name(&self) -> String {
        match (self.exit, self.timed_out) {
            (_, true) => "time limit".into(),
            (Some(code), _) => code.to_string(),
            (None, _) => "signal".into(),
        }
    }
}

/// Columns of the table.
pub(super) struct Figures {
    pub n: Option<u64>,
    pub nnz: Option<u64>,
    pub method: String,
    pub outcome: String,
    pub backward_error: Option<f64>,
    pub componentwise: Option<f64>,
    pub forward_error: Option<f64>,
    pub rcond: Option<f64>,
}

/// Whether the run did what it must.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// It did.
    Pass,
    /// A method chosen by name declined a system that is not for it.
    Refused,
    /// It did not; all reasons.
    Fail(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass => f.write_str("ok"),
            Self::Refused => f.write_str("refused"),
            Self::Fail(why) => write!(f, "FAIL {why}"),
        }
    }
}

/// Figures and verdict of one run.
pub(super) fn judge(system: &System, method: &str, run: &Run) -> (Figures, Verdict) {
    let (forward_error, mut complaints) = match forward_error(system, run) {
        Ok(error) => (error, Vec::new()),
        Err(why) => (None, vec![why]),
    };
    let text = |key: &str| run.report[key].as_str().unwrap_or("-").to_owned();
    let number = |key: &str| run.report[key].as_f64();
    let figures = Figures {
        n: run.report["n"].as_u64(),
        nnz: run.report["nnz"].as_u64(),
        method: text("method"),
        outcome: text("outcome"),
        backward_error: number("backward_error"),
        componentwise: number("componentwise_backward_error"),
        forward_error,
        rcond: number("rcond"),
    };
    let may_refuse = match method {
        "auto" => false,
        pivoted if PIVOTED.contains(&pivoted) => run.exit == Some(2),
        _ => true,
    };
    match (system.singular, run.exit) {
        _ if run.timed_out => complaints.push("time limit".into()),
        (true, Some(4)) => {}
        (true, Some(0)) if ROUNDED.contains(&method) && run.stderr.contains("singular to working precision") => {}
        (true, Some(0)) if is_iterative(method) => complaints.extend(check_answer(system, method, run, &figures)),
        (true, Some(2 | 3)) | (false, Some(2..=4)) if may_refuse => {
            if run.stderr.trim().is_empty() {
                complaints.push("refused without a word on stderr".into());
            } else if complaints.is_empty() {
                return (figures, Verdict::Refused);
            }
        }
        (true, _) => complaints.push(format!("exit {} for a singular matrix, not 4", run.exit_name())),
        (false, Some(0)) => complaints.extend(check_answer(system, method, run, &figures)),
        (false, _) => {
            let said = run.stderr.lines().find(|l| l.starts_with("error")).unwrap_or_default();
            complaints.push(format!("exit {}: {said}", run.exit_name()));
        }
    }
    let verdict = if complaints.is_empty() { Verdict::Pass } else { Verdict::Fail(complaints.join("; ")) };
    (figures, verdict)
}

fn check_answer(system: &System, method: &str, run: &Run, figures: &Figures) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut at_most = |what: &str, value: Option<f64>, bound: f64| match value {
        Some(v) if v <= bound => {}
        Some(v) => complaints.push(format!("{what} {v:.1e} > {bound:.1e}")),
        None => complaints.push(format!("no {what}")),
    };
    if is_iterative(method) {
        at_most("relative residual", run.report["relative_residual"].as_f64(), RELATIVE_RESIDUAL);
    } else {
        at_most("backward error", figures.backward_error, BACKWARD_ERROR);
        if let (Some(bound), true) = (system.forward_error_bound(), figures.forward_error.is_some()) {
            at_most("forward error", figures.forward_error, bound);
        }
    }
    if run.solution.is_none() {
        complaints.push("no solution file".into());
    }
    complaints
}

/// Against the reference solution where there is one; else the command's own, for the x* it made b from.
fn forward_error(system: &System, run: &Run) -> Result<Option<f64>, String> {
    match (&run.solution, &system.reference) {
        (Some(Err(why)), _) => Err(format!("solution: {}", why.0)),
        (Some(Ok(x)), Some(reference)) => {
            let reference = vector::read(reference).map_err(|why| why.0)?;
            Ok(Some(vector::relative_difference(x, &reference)))
        }
        (Some(Ok(_)), None) if system.rhs.is_none() => Ok(run.report["forward_error"].as_f64()),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;

    fn system(singular: bool) -> System {
        let matrix = PathBuf::from("a.mtx");
        let condition = Some(1e3);
        System { name: "a".into(), matrix, rhs: None, reference: None, blocks: None, condition, singular }
    }

    fn run(exit: i32, backward_error: f64, forward_error: f64) -> Run {
        let solution = vector::parse("%%MatrixMarket matrix array real general\n1 1\n1\n").unwrap();
        Run {
            exit: Some(exit),
            timed_out: false,
            wall: Duration::ZERO,
            report: json!({
                "backward_error": backward_error, "forward_error": forward_error, "relative_residual": 1e-9,
            }),
            stderr: "error: no".into(),
            solution: (exit == 0).then_some(Ok(solution)),
        }
    }

    fn verdict(singular: bool, method: &str, run: &Run) -> Verdict {
        judge(&system(singular), method, run).1
    }

    #[test]
    fn good_answers_pass_and_bad_ones_do_not() {
        assert_eq!(verdict(false, "auto", &run(0, 1e-16, 1e-13)), Verdict::Pass);
        // 10·cond·2⁻⁵³ = 1.1e-12
        assert_eq!(
            verdict(false, "auto", &run(0, 1e-16, 1e-11)),
            Verdict::Fail("forward error 1.0e-11 > 1.1e-12".into())
        );
        assert_eq!(
            verdict(false, "auto", &run(0, 1e-13, 1e-13)),
            Verdict::Fail("backward error 1.0e-13 > 1.0e-14".into())
        );
        // serde_json has no NaN: it arrives as null.
        assert_eq!(verdict(false, "auto", &run(0, f64::NAN, 1e-13)), Verdict::Fail("no backward error".into()));
        let mut silent = run(0, 1e-16, 1e-13);
        silent.solution = None;
        assert_eq!(verdict(false, "auto", &silent), Verdict::Fail("no solution file".into()));
    }

    #[test]
    fn singular_matrices_exit_with_4() {
        assert_eq!(verdict(true, "auto", &run(4, 0.0, 0.0)), Verdict::Pass);
        for exit in [0, 2, 3, 101] {
            assert!(matches!(verdict(true, "auto", &run(exit, 1e-16, 0.0)), Verdict::Fail(_)), "{exit}");
        }
        assert!(matches!(verdict(false, "auto", &run(4, 0.0, 0.0)), Verdict::Fail(_)));
    }

    #[test]
    fn a_method_by_name_may_refuse_but_not_panic() {
        assert_eq!(verdict(false, "thomas", &run(2, 0.0, 0.0)), Verdict::Refused);
        assert_eq!(verdict(true, "hbisa", &run(3, 0.0, 0.0)), Verdict::Refused);
        assert_eq!(verdict(false, "band-lu", &run(2, 0.0, 0.0)), Verdict::Refused);
        assert!(matches!(verdict(false, "band-lu", &run(3, 0.0, 0.0)), Verdict::Fail(_)));
        assert!(matches!(verdict(true, "tridiagonal-lu", &run(3, 0.0, 0.0)), Verdict::Fail(_)));
        assert!(matches!(verdict(false, "thomas", &run(101, 0.0, 0.0)), Verdict::Fail(_)));
        assert!(matches!(verdict(true, "thomas", &run(0, 1e-16, 0.0)), Verdict::Fail(_)));
        assert!(matches!(verdict(true, "g-spike", &run(0, 1e-16, 0.0)), Verdict::Fail(_)));
        let mut warned = run(0, 1e-16, 0.0);
        warned.stderr = "warning: the matrix is singular to working precision (rcond 3.5e-18)".into();
        assert_eq!(verdict(true, "g-spike", &warned), Verdict::Pass);
        assert!(matches!(verdict(true, "auto", &warned), Verdict::Fail(_)));
        let mut mute = run(2, 0.0, 0.0);
        mute.stderr.clear();
        assert!(matches!(verdict(false, "thomas", &mute), Verdict::Fail(_)));
        // An iterative method is held to its tolerance only.
        assert_eq!(verdict(false, "hbisa-gs", &run(0, 1e-10, 1.0)), Verdict::Pass);
        assert_eq!(verdict(false, "cg", &run(0, 1e-10, 1.0)), Verdict::Pass);
        assert_eq!(verdict(true, "gmres", &run(0, 1e-10, 1.0)), Verdict::Pass);
    }
}
