//! Reports on solvers: an index with the columns `id`, `file`, `rhs`, `must`, `reference`, `source`, `note`.
//!
//! | must | `auto` | a method that the note names |
//! |---|---|---|
//! | `solve` | exit 0, x right | the same, or a refusal (2), or not converged (3) with an x that is not right; an iteration to its tolerance |
//! | `singular` | exit 4 | exit 4, 2 or 3 |
//! | `singular_or_warn` | exit 4, or 0 with a warning | as `auto`, or a refusal (2), or not converged (3) |
//! | `overflow` | exit 3 with or without `--output`, and a message that says so | |
//!
//! x is right when it is within [`NORMWISE`] of the reference in the largest entry, and every entry within [`COMPONENTWISE`] of
//! its own: the systems have condition numbers below 10⁶ after scaling, or the command says that they have not. Without a
//! right-hand side the command's x*_i = 1 + (7i mod 11)/11 is the reference; without a reference the residual decides. A relative
//! residual reported at less than half of what it is in doubled precision is a failure whatever the row.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Bench;
use super::index::records;
use super::judge::{RELATIVE_RESIDUAL, Run, is_iterative};
use super::residual;
use super::vector::{self, Dense};
use crate::process::{Context, Result, blocktri};

/// Columns that such an index has.
pub(super) const COLUMNS: [&str; 3] = ["file", "must", "reference"];
/// Error allowed in x relative to its largest entry, where the condition number does not allow more.
const NORMWISE: f64 = 1e-9;
/// Error allowed in an entry relative to itself.
const COMPONENTWISE: f64 = 1e-5;
/// A relative residual that is as good as zero.
const RESOLVED: f64 = 4e-15;
/// Files beyond this many bytes are left out by `--quick`.
const QUICK: u64 = 64 << 10;

const DIRECT: [&str; 10] = [
    "band-lu",
    "band-lu-nopivot",
    "sparse-lu",
    "dense-lu",
    "genp",
    "rbt",
    "block-lu",
    "block-lu-across",
    "block-cyclic-reduction",
    "spike",
];
const ITERATIVE: [&str; 11] = [
    "cg",
    "fcg",
    "bicgstab",
    "gmres",
    "fgmres",
    "hbisa",
    "hbisa-gs",
    "hbisa-sgs",
    "hbisa-redblack",
    "hbisa-sor",
    "hbisa-chebyshev",
];
const PRECONDITIONERS: [&str; 9] = ["ilu0", "milu0", "iluk", "ilut", "ic0", "mic0", "ras", "schwarz", "jacobi"];

struct Row {
    id: String,
    file: PathBuf,
    rhs: Option<PathBuf>,
    must: String,
    reference: Option<PathBuf>,
    note: String,
}

/// A method, the preconditioner the note gives it, and the iterations it may take.
#[derive(Clone, Debug, PartialEq)]
struct Named {
    method: &'static str,
    precond: Option<&'static str>,
    iterations: Option<u64>,
}

impl Named {
    fn plain(method: &'static str) -> Self {
        Self { method, precond: None, iterations: None }
    }

    fn label(&self) -> String {
        self.precond.map_or_else(|| self.method.to_owned(), |p| format!("{}+{p}", self.method))
    }
}

/// Judges the folder's index.
pub(super) fn run(dir: &Path, only: &str, quick: bool, bench: &Bench, table: &mut Vec<Value>) -> Result<()> {
    println!(
        "\n{}\n{:<5} {:<32} {:<24} {:>10} {:>8} {:>8} {:>8} {:>6} {:>8}  verdict",
        dir.display(),
        "id",
        "file",
        "method",
        "exit",
        "backward",
        "forward",
        "entry",
        "steps",
        "seconds"
    );
    let mut before = Vec::new();
    for row in read(dir)? {
        let mut named = named(&row.note);
        if row.note.contains("as above") {
            named.extend(before.iter().cloned());
        }
        before.clone_from(&named);
        let name = row.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let size = fs::metadata(&row.file).context(row.file.display())?.len();
        // A packed file says little of what is in it.
        let large = size > QUICK || row.note.contains("MB");
        if !name.contains(only) || (quick && large) {
            continue;
        }
        let runs = std::iter::once(Named::plain("auto")).chain(named);
        for asked in runs {
            let (run, error, complaints) = judge(&row, &asked, bench)?;
            let verdict = if complaints.is_empty() { "ok".into() } else { format!("FAIL {}", complaints.join("; ")) };
            let figure = |v: Option<f64>| super::cell(v);
            println!(
                "{:<5} {name:<32} {:<24} {:>10} {} {} {} {:>6} {}  {verdict}",
                row.id,
                asked.label(),
                run.exit_name(),
                figure(run.report["backward_error"].as_f64()),
                figure(error.map(|e| e.0)),
                figure(error.map(|e| e.1)),
                run.report["iterations"].as_u64().map_or("-".into(), |n| n.to_string()),
                figure(Some(run.wall.as_secs_f64())),
            );
            table.push(json!({
                "name": name, "method": asked.label(), "must": row.must, "exit": run.exit, "verdict": verdict,
                "forward_error": error.map(|e| e.0), "entry_error": error.map(|e| e.1),
                "wall_seconds": run.wall.as_secs_f64(), "stderr": run.stderr, "report": run.report,
            }));
        }
    }
    Ok(())
}

fn read(dir: &Path) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for row in records(dir)? {
        let field = |name: &str| row.get(name).map(|v| v.trim()).filter(|v| !v.is_empty());
        let text = |name: &str| field(name).unwrap_or_default().to_owned();
        let file = |name: &str| field(name).map(|f| dir.join(f));
        rows.push(Row {
            id: text("id"),
            file: dir.join(text("file")),
            rhs: file("rhs"),
            must: text("must"),
            reference: file("reference"),
            note: text("note"),
        });
    }
    Ok(rows)
}

/// Methods of a note: `gmres+ilu0`, names alone, `--method M --precond P`, "direct methods", "all iterative ones"; a
/// preconditioner alone goes with the method before it. "must take N iteration" binds what stands before it.
fn named(note: &str) -> Vec<Named> {
    let find = |list: &[&'static str], word: &str| list.iter().copied().find(|name| *name == word);
    let method = |word: &str| find(&DIRECT, word).or_else(|| find(&ITERATIVE, word));
    let mut found: Vec<Named> = Vec::new();
    let mut current = None;
    let words: Vec<&str> = note.split([' ', ',', ';', ':', '(', ')']).filter(|w| !w.is_empty()).collect();
    for (k, word) in words.iter().enumerate() {
        let (first, second) = word.split_once('+').map_or((*word, None), |(m, p)| (m, Some(p)));
        let precond = find(&PRECONDITIONERS, second.unwrap_or(first));
        match (method(first), precond) {
            (Some(m), _) => {
                current = Some(m);
                found.push(Named { method: m, precond: second.and(precond), iterations: None });
            }
            // "--precond P" belongs to the method before; in "gmres+ilu0, iluk" the method is meant again.
            (None, Some(p)) => {
                if let Some(m) = current {
                    match found.last_mut().filter(|last| last.precond.is_none()) {
                        Some(last) => last.precond = Some(p),
                        None => found.push(Named { method: m, precond: Some(p), iterations: None }),
                    }
                }
            }
            _ => {}
        }
        let next = |by: usize| words.get(k + by).copied().unwrap_or_default();
        let bound = match *word {
            "few" => Some(10),
            "of" if next(1).starts_with("fc_") => next(2).parse().ok(),
            number if next(1).starts_with("iteration") && k > 0 => number.parse().ok(),
            _ => None,
        };
        if let (Some(bound), Some(last)) = (bound, found.last_mut())
            && last.iterations.is_none()
        {
            last.iterations = Some(bound);
        }
        let all: &[&'static str] = match (*word, next(1)) {
            ("direct", "methods") => &DIRECT,
            ("iterative", "ones" | "methods") | ("…", _) => &ITERATIVE,
            _ => &[],
        };
        found.extend(all.iter().map(|m| Named::plain(m)));
    }
    let mut once: Vec<Named> = Vec::new();
    for named in found {
        if !once.iter().any(|n| n.method == named.method && n.precond == named.precond) {
            once.push(named);
        }
    }
    once
}

type Judged = (Run, Option<(f64, f64)>, Vec<String>);

fn judge(row: &Row, asked: &Named, bench: &Bench) -> Result<Judged> {
    let solution = bench.scratch.join("x.mtx");
    let _ = fs::remove_file(&solution);
    let solve = |output: bool| {
        let mut command = blocktri(&bench.program);
        command.arg("solve").arg(&row.file).args(["--json", "--quiet", "--method", asked.method]);
        command.args(asked.precond.into_iter().flat_map(|p| ["--precond", p]));
        if let Some(rhs) = &row.rhs {
            command.arg("--rhs").arg(rhs);
        }
        if output {
            command.arg("--output").arg(&solution);
        }
        command
    };
    let run = bench.run(solve(true))?;
    let x = if solution.is_file() { Some(vector::read(&solution)?) } else { None };
    let mut complaints = Vec::new();
    let mut error = None;
    if let Some(x) = &x {
        let reference = match &row.reference {
            Some(file) => Some(vector::read(file)?),
            None if row.rhs.is_none() => Some(known_solution(x.nrows())),
            None => None,
        };
        error = reference.map(|r| (vector::relative_difference(x, &r), vector::entrywise_difference(x, &r)));
    }
    let true_residual = match (&x, &row.rhs, residual::entries(&row.file)) {
        (Some(x), Some(rhs), Some(a)) => Some(residual::relative(&a, x, &vector::read(rhs)?)),
        _ => None,
    };
    if let (Some(truth), Some(reported)) = (true_residual, run.report["relative_residual"].as_f64())
        && truth > 2.0 * reported + RESOLVED
    {
        complaints.push(format!("relative residual reported as {reported:.1e} is {truth:.1e}"));
    }
    // Without a reference a small residual has to do.
    let error = error.or(true_residual.filter(|r| *r < RESOLVED).map(|r| (r, r)));
    if run.timed_out {
        complaints.push("time limit".into());
    } else if row.must == "overflow" {
        let without = bench.run(solve(false))?;
        complaints.extend(overflow(&run, &without));
    } else {
        complaints.extend(verdict(&row.must, asked, &run, error));
    }
    // What the notes ask of resources.
    let factors = run.report["bytes"]["factors"].as_u64();
    if row.note.contains("factors are reported as 0 B") && factors == Some(0) {
        complaints.push("factors of 0 B".into());
    }
    if row.note.contains("MB") && factors.is_some_and(|bytes| bytes > 64 << 20) {
        complaints.push(format!("{} MB of factors", factors.unwrap_or(0) >> 20));
    }
    Ok((run, error, complaints))
}

/// x*_i = 1 + (7i mod 11)/11.
fn known_solution(n: usize) -> Dense {
    Dense::column((0..n).map(|i| 1.0 + (7 * i % 11) as f64 / 11.0).collect())
}

fn verdict(must: &str, asked: &Named, run: &Run, error: Option<(f64, f64)>) -> Vec<String> {
    let mut complaints = Vec::new();
    let auto = asked.method == "auto";
    let iterative = is_iterative(asked.method);
    let warned = run.stderr.contains("warning");
    let said = run.stderr.lines().next().unwrap_or_default();
    let residual = run.report["relative_residual"].as_f64().unwrap_or(f64::INFINITY);
    let right = error.is_some_and(|e| is_right(e, run));
    match (must, run.exit) {
        ("solve", Some(0)) if iterative => {
            if !(residual <= RELATIVE_RESIDUAL) {
                complaints.push(format!("relative residual {residual:.1e} with exit 0"));
            }
            // A residual below the tolerance that belongs to x = 0 would be none.
            if let Some((normwise, _)) = error.filter(|e| !(e.0 < 1.0)) {
                complaints.push(format!("forward error {normwise:.1e} with exit 0"));
            }
        }
        ("solve", Some(0)) if !right => {
            let (normwise, entry) = error.unwrap_or((f64::NAN, f64::NAN));
            complaints.push(format!("forward error {normwise:.1e}, of one entry {entry:.1e}"));
        }
        // Not converged, and a good x: a method that disowns it. An iteration may be close.
        ("solve", Some(3)) if !auto && (iterative || !right) => {}
        ("solve", Some(3)) if !auto => complaints.push("exit 3 although x is right".into()),
        ("singular" | "singular_or_warn", Some(4)) | ("solve", Some(0)) => {}
        ("solve", Some(2)) | ("singular" | "singular_or_warn", Some(2 | 3)) if !auto && !said.is_empty() => {}
        ("singular_or_warn", Some(0)) if warned || (iterative && residual <= RELATIVE_RESIDUAL) => {}
        _ => complaints.push(format!("exit {} for '{must}': {said}", run.exit_name())),
    }
    if let Some(bound) = asked.iterations {
        match run.report["iterations"].as_u64() {
            Some(steps) if steps <= bound + bound / 4 => {}
            steps => complaints.push(format!("{steps:?} iterations, {bound} expected")),
        }
    }
    complaints
}

/// Right to the digits that the system has: an x whose every row has a small residual may be off by what the reported condition
/// number makes of rounding.
fn is_right((normwise, entry): (f64, f64), run: &Run) -> bool {
    let figure = |key: &str| run.report[key].as_f64();
    let share = figure("rcond").map_or(0.0, |rcond| 100.0 * (-53f64).exp2() / rcond.max(1e-300));
    let by_rows = figure("componentwise_backward_error").is_some_and(|error| error < 1e-14);
    (normwise <= NORMWISE && entry <= COMPONENTWISE) || (by_rows && normwise <= share)
}

/// x is beyond the range: the same code with and without an output file, and a word of it.
fn overflow(with: &Run, without: &Run) -> Vec<String> {
    let mut complaints = Vec::new();
    for (what, run) in [("with", with), ("without", without)] {
        if run.exit != Some(3) {
            complaints.push(format!("exit {} {what} --output, not 3", run.exit_name()));
        }
        let words = ["overflow", "range", "infinite", "is inf", "is -inf"];
        if !words.iter().any(|w| run.stderr.contains(w)) {
            complaints.push(format!("{what} --output the message has none of {words:?}: {}", run.stderr.trim()));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn labels(note: &str) -> Vec<String> {
        named(note).iter().map(Named::label).collect()
    }

    #[test]
    fn methods_of_notes() {
        assert_eq!(labels("FAILS: auto and block-lu say singular (exit 4); condition number 5.4"), ["block-lu"]);
        assert_eq!(labels("auto fine; gmres+ilu0, iluk, ilut break down"), ["gmres+ilu0", "gmres+iluk", "gmres+ilut"]);
        assert_eq!(labels("FAILS: --method cg --precond milu0 ends with 0"), ["cg+milu0"]);
        assert_eq!(labels("cg, gmres, bicgstab, hbisa … end with 0").len(), ITERATIVE.len());
        assert_eq!(
            labels("direct methods exit 3; cg and all iterative ones exit 0").len(),
            DIRECT.len() + ITERATIVE.len()
        );
        assert!(labels("").is_empty());
    }

    #[test]
    fn iterations_of_notes() {
        let steps = |note: &str| named(note).iter().map(|n| n.iterations).collect::<Vec<_>>();
        assert_eq!(steps("baseline: gmres+ilut 8 iterations"), [Some(8)]);
        assert_eq!(steps("gmres+ilut must take the iterations of fc_poisson20_x1 (8; takes 59: all)"), [Some(8)]);
        assert_eq!(steps("gmres+ilu0 must take 1 iteration, gmres+ilut few (27 and 621)"), [Some(1), Some(10)]);
    }

    fn run(exit: i32, report: Value, stderr: &str) -> Run {
        let stderr = stderr.into();
        Run { exit: Some(exit), timed_out: false, wall: Duration::ZERO, report, stderr, solution: None }
    }

    fn judged(must: &str, method: &'static str, exit: i32, error: Option<(f64, f64)>) -> bool {
        let run = run(exit, json!({ "relative_residual": 1e-9, "rcond": 0.1, "iterations": 3 }), "error: no");
        verdict(must, &Named::plain(method), &run, error).is_empty()
    }

    #[test]
    fn auto_solves_and_names_singular_systems() {
        assert!(judged("solve", "auto", 0, Some((1e-16, 1e-15))));
        assert!(!judged("solve", "auto", 0, Some((1e-16, 1.0))));
        assert!(!judged("solve", "auto", 0, Some((1e-3, 1e-3))));
        assert!(!judged("solve", "auto", 0, None));
        let ill = |componentwise: f64| {
            let report = json!({ "rcond": 1e-13, "componentwise_backward_error": componentwise });
            verdict("solve", &Named::plain("auto"), &run(0, report, ""), Some((1e-3, 1.0))).is_empty()
        };
        assert!(ill(1e-16));
        assert!(!ill(1e-3));
        for exit in [2, 3, 4, 101] {
            assert!(!judged("solve", "auto", exit, Some((1e-16, 1e-16))), "{exit}");
        }
        assert!(judged("singular", "auto", 4, None));
        assert!(!judged("singular", "auto", 0, None));
        assert!(!judged("singular_or_warn", "auto", 0, None));
        let warned = run(0, json!({}), "warning: singular to working precision");
        assert!(verdict("singular_or_warn", &Named::plain("auto"), &warned, None).is_empty());
    }

    #[test]
    fn methods_by_name_may_refuse_but_not_lie() {
        assert!(judged("solve", "block-lu", 3, Some((1.0, 1.0))));
        assert!(!judged("solve", "block-lu", 3, Some((1e-16, 1e-16))));
        assert!(!judged("solve", "block-lu", 4, None));
        assert!(judged("solve", "gmres", 0, Some((1e-7, 1e-2))));
        assert!(!judged("solve", "gmres", 0, Some((1.0, 1.0))));
        let many = Named { iterations: Some(2), ..Named::plain("gmres") };
        let run = run(0, json!({ "relative_residual": 1e-9, "iterations": 3 }), "");
        assert_eq!(verdict("solve", &many, &run, Some((1e-9, 1e-9))).len(), 1);
    }

    #[test]
    fn an_overflow_is_the_same_with_and_without_a_file() {
        let good = run(3, json!({}), "error: x[0] is beyond the range of f64");
        assert!(overflow(&good, &good).is_empty());
        assert_eq!(overflow(&run(2, json!({}), "error: overflow"), &good).len(), 1);
        assert_eq!(overflow(&run(3, json!({}), "error: not converged"), &good).len(), 1);
    }
}
