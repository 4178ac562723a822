//! What the choice of `auto` costs: every method that it weighed is run on every system, and the time of `auto` is set against the
//! fastest.
//!
//! Regret is chosen time / best time of one solve: choice, setup and solve, without reading and without the condition number that
//! a report has beside them, the least of some runs taken in turn. The gates
//! are those of the design: median at most 1.1, 95 % at most 1.5, none above 2, ties below a millisecond apart; and predicted within a
//! factor of 2 of actual for 90 % of the direct methods. Systems that are singular to working precision are shown apart: every method
//! looks closer at its answers there, by as much as no count of its work can tell, and `auto` in twice the precision. `auto` ends at rounding level, row by row: an iteration by
//! name, which ends with the residual that it was asked for, competes where its answer is as good. Constants are not fitted to these systems: `blocktri calibrate` has problems of
//! its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde_json::{Value, json};

use crate::process::{Failure, cargo, must_succeed, root};

#[derive(Args)]
pub struct Options {
    /// Folders with matrices, searched through
    #[arg(value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Families that are generated, too: grids, flows, clouds, random blocks and bands, disks, arrowheads, batches, optimal control
    #[arg(long)]
    families: bool,
    /// The largest of the families, in unknowns
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    largest: usize,
    /// Threads of the command
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Runs of each method, in turn
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: usize,
    /// Where the figures go, as JSON
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Reciprocal condition numbers below which `auto` looks closer.
const DOUBTFUL: f64 = 1e-13;
/// Componentwise backward errors up to which an answer is one of a direct method.
const DIRECT: f64 = 1e-14;
/// Seconds below which nobody feels a difference.
const TIE: f64 = 1e-3;
/// Seconds that a method is given, at most.
const LIMIT: f64 = 30.0;

/// # Errors
/// When a gate is not met, or the command does not run.
pub fn run(options: &Options) -> Result<(), Failure> {
    must_succeed(&mut cargo(["build", "--release", "-p", "blocktri-cli"]))?;
    let bench = Bench { command: root().join("target/release/blocktri"), threads: options.threads, runs: options.runs };
    let folder = tempfile::tempdir().map_err(|e| Failure(format!("no temporary folder: {e}")))?;
    let mut files = Vec::new();
    for given in &options.folders {
        find(given, &mut files)?;
    }
    if options.families {
        files.extend(bench.families(folder.path(), options.largest)?);
    }
    files.sort();
    println!(
        "{:<34} {:>9} {:<17} {:>10} {:<17} {:>10} {:>7}",
        "system", "n", "auto", "seconds", "best", "seconds", "regret"
    );
    let mut cases = Vec::new();
    for file in &files {
        // What is no square system, or not solved, has nothing to compare.
        let Some(case) = bench.case(file)? else { continue };
        println!("{}", case.line());
        cases.push(case);
    }
    let verdict = Verdict::of(&cases);
    println!("\n{}", verdict.text());
    if let Some(output) = &options.output {
        let all: Vec<Value> = cases.iter().map(Case::json).collect();
        let json = json!({ "schema": 1, "machine": machine(), "commit": commit(), "threads": options.threads, "runs": options.runs, "cases": all, "verdict": verdict.json() });
        std::fs::write(output, format!("{json:#}\n")).map_err(|e| Failure(format!("{}: {e}", output.display())))?;
    }
    if verdict.is_met() { Ok(()) } else { Err(Failure("a gate of regret is not met".into())) }
}

/// The processor's name, where the system tells it.
pub fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

/// The commit at hand and its date, where git tells them.
fn commit() -> Option<String> {
    let output = Command::new("git").args(["log", "-1", "--format=%h %cs"]).current_dir(root()).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned()).filter(|line| !line.is_empty())
}

/// Matrices below `folder`.
fn find(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let entries = std::fs::read_dir(folder).map_err(|e| Failure(format!("{}: {e}", folder.display())))?;
    for entry in entries.flatten() {
        let path = entry.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let side = ["_b.", "_xref.", "_x."].iter().any(|part| name.contains(part));
        if path.is_dir() {
            find(&path, files)?;
        } else if !side && name.trim_end_matches(".gz").rsplit_once('.').is_some_and(|(_, kind)| kind == "mtx") {
            files.push(path);
        }
    }
    Ok(())
}

struct Bench {
    command: PathBuf,
    threads: usize,
    runs: usize,
}

/// A method of the table, and what it took.
struct Run {
    method: String,
    predicted: f64,
    iterative: bool,
    actual: Option<f64>,
}

/// A system, `auto` on it, and all that it weighed.
struct Case {
    name: String,
    n: u64,
    auto: f64,
    chosen: String,
    doubtful: bool,
    runs: Vec<Run>,
}

/// What a solve took without reading, what solved, how near to singular it found the matrix, and how good the answer is row by row.
struct Solved {
    seconds: f64,
    method: String,
    is_doubtful: bool,
    componentwise: f64,
}

impl Bench {
    /// The JSON that the command prints; `None` where it has no answer.
    fn json(&self, args: &[&str]) -> Result<Option<Value>, Failure> {
        let threads = self.threads.to_string();
        let output = Command::new(&self.command)
            .args(args)
            .args(["--json", "--quiet", "--threads", &threads])
            .output()
            .map_err(|e| Failure(format!("{}: {e}", self.command.display())))?;
        Ok(serde_json::from_slice(&output.stdout).ok().filter(|_| output.status.success()))
    }

    fn solve(&self, file: &str, more: &[&str]) -> Result<Option<Solved>, Failure> {
        let limit = LIMIT.to_string();
        let args = [&["solve", file, "--time-limit", &limit, "--repeat", "2"], more].concat();
        let Some(json) = self.json(&args)? else { return Ok(None) };
        let seconds = |phase: &str| json["seconds"][phase]["min"].as_f64();
        // What is predicted: the condition number that a report has beside it takes five solves more.
        let Some(seconds) = ["reorder", "setup", "solve"].into_iter().map(seconds).sum::<Option<f64>>() else {
            return Ok(None);
        };
        let method = json["method"].as_str().unwrap_or_default().to_owned();
        // An iteration has no condition number, but tells what it sees.
        let mut notes = json["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let is_doubtful = json["rcond"].as_f64().is_some_and(|rcond| rcond < DOUBTFUL)
            || notes.any(|note| note.contains("singular to working precision"));
        let componentwise = json["componentwise_backward_error"].as_f64().unwrap_or(f64::INFINITY);
        Ok(Some(Solved { seconds, method, is_doubtful, componentwise }))
    }

    fn case(&self, file: &Path) -> Result<Option<Case>, Failure> {
        let path = file.display().to_string();
        let Some(table) = self.json(&["explain", &path])? else { return Ok(None) };
        let Some(list) = table["candidates"].as_array() else { return Ok(None) };
        // Not every method looks at the clock while it factors.
        let in_time = |c: &&Value| c["seconds"].as_f64().is_none_or(|s| s <= LIMIT);
        let possible = list.iter().filter(|c| c["refused"].is_null()).filter(in_time);
        let mut runs: Vec<(Run, Vec<String>)> = possible.map(planned).collect();
        let (mut auto, mut chosen, mut doubtful) = (f64::INFINITY, String::new(), false);
        for _ in 0..self.runs {
            let Some(solved) = self.solve(&path, &[])? else { return Ok(None) };
            doubtful |= solved.is_doubtful;
            if solved.seconds < auto {
                (auto, chosen) = (solved.seconds, solved.method);
            }
            for (run, args) in &mut runs {
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                if let Some(Solved { seconds, componentwise, .. }) = self.solve(&path, &args)?
                    && (!run.iterative || componentwise <= DIRECT)
                {
                    run.actual = Some(run.actual.map_or(seconds, |a| a.min(seconds)));
                }
            }
        }
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let n = table["n"].as_u64().unwrap_or(0);
        Ok(Some(Case { name, n, auto, chosen, doubtful, runs: runs.into_iter().map(|(run, _)| run).collect() }))
    }

    /// Files of generated systems of at most `largest` unknowns.
    fn families(&self, folder: &Path, largest: usize) -> Result<Vec<PathBuf>, Failure> {
        let mut files = Vec::new();
        let mut kinds: Vec<(String, usize, Vec<String>)> = Vec::new();
        let mut add = |name: String, n: usize, args: &str| {
            kinds.push((name, n, args.split_ascii_whitespace().map(str::to_owned).collect()));
        };
        for side in [30, 100, 300, 1000] {
            add(format!("poisson2d_{side}"), side * side, &format!("poisson2d --nx {side} --ny {side}"));
            add(format!("flow_{side}"), side * side, &format!("convection-diffusion --nx {side} --ny {side}"));
        }
        for side in [10, 20, 40, 60, 100] {
            let n = side * side * side;
            add(format!("poisson3d_{side}"), n, &format!("poisson3d --nx {side} --ny {side} --nz {side}"));
        }
        for n in [2000, 50_000] {
            add(format!("disk_{n}"), n, &format!("poisson-disk --n {n}"));
            add(format!("elastic_disk_{n}"), n, &format!("elasticity-disk --n {n}"));
        }
        for (k, levels) in [(4, 1000), (16, 500), (64, 100)] {
            add(
                format!("cloud_{k}x{levels}"),
                k * levels,
                &format!("cloud --block-size {k} --levels {levels} --seed 3"),
            );
        }
        for k in [2, 4, 8, 16, 32, 64, 128, 256] {
            let m = (40_000 / (k * k)).clamp(8, 20_000);
            add(format!("blocks_{k}x{m}"), k * m, &format!("block-random --n {} --blocks {k} --seed 3", k * m));
        }
        for k in [1, 2, 8, 32, 128, 512] {
            let n = (2_000_000 / (k * k + 20)).clamp(2000, 100_000);
            add(format!("band_{k}"), n, &format!("band-random --n {n} --kl {k} --ku {k} --seed 3"));
        }
        for (name, n, entries) in written().into_iter().filter(|(_, n, _)| *n <= largest) {
            let file = folder.join(format!("{name}.mtx"));
            let lines: Vec<String> = entries.iter().map(|(i, j, v)| format!("{} {} {v}\n", i + 1, j + 1)).collect();
            let heading = format!("%%MatrixMarket matrix coordinate real general\n{n} {n} {}\n", entries.len());
            let text = heading + &lines.concat();
            std::fs::write(&file, text).map_err(|e| Failure(format!("{}: {e}", file.display())))?;
            files.push(file);
        }
        for (name, _, args) in kinds.iter().filter(|(_, n, _)| *n <= largest) {
            let file = folder.join(format!("{name}.mtx"));
            let made = Command::new(&self.command).arg("generate").args(args).arg("-o").arg(&file).output();
            let made = made.map_err(|e| Failure(format!("{}: {e}", self.command.display())))?;
            if !made.status.success() {
                let why = String::from_utf8_lossy(&made.stderr).trim().to_owned();
                return Err(Failure(format!("generate {}: {why}", args.join(" "))));
            }
            files.push(file);
        }
        Ok(files)
    }
}

/// Name, rows and entries of a system.
type Written = (String, usize, Vec<(usize, usize, f64)>);

/// Families that the command does not generate: arrowheads, batches of tridiagonal systems, and the optimality conditions of a linear
/// quadratic control problem, min ½Σ(xₜ² + uₜ²) with xₜ₊₁ = xₜ + uₜ, multipliers last.
fn written() -> Vec<Written> {
    let mut all = Vec::new();
    for n in [1000, 100_000] {
        let beside = (1..n).flat_map(|i| [(i, i, 4.0), (0, i, 1.0), (i, 0, 1.0 + (i % 7) as f64 / 7.0)]);
        all.push((format!("arrowhead_{n}"), n, std::iter::once((0, 0, n as f64)).chain(beside).collect()));
    }
    for (systems, rows) in [(50, 40), (2000, 40)] {
        let n = systems * rows;
        let near = (0..n).flat_map(|i: usize| (i.saturating_sub(1)..(i + 2).min(n)).map(move |j| (i, j)));
        let same = near.filter(|(i, j)| i / rows == j / rows);
        let value = |i: usize, j: usize| if i == j { 2.5 } else { -1.0 + ((3 * i + j) % 5) as f64 / 10.0 };
        all.push((format!("batch_{systems}x{rows}"), n, same.map(|(i, j)| (i, j, value(i, j))).collect()));
    }
    for m in [300, 30_000] {
        // Unknowns: m states, m controls, m multipliers of xₜ₊₁ − xₜ − uₜ = 0 (x₀ given).
        let mut entries: Vec<(usize, usize, f64)> = (0..2 * m).map(|i| (i, i, 1.0)).collect();
        for t in 0..m {
            let row = 2 * m + t;
            let before = t.checked_sub(1).map(|state| (state, -1.0));
            for (unknown, v) in [Some((t, 1.0)), before, Some((m + t, -1.0))].into_iter().flatten() {
                entries.extend([(row, unknown, v), (unknown, row, v)]);
            }
        }
        all.push((format!("control_{m}"), 3 * m, entries));
    }
    all
}

/// A candidate of the table, and the options that ask for it by name.
fn planned(candidate: &Value) -> (Run, Vec<String>) {
    let text = |key: &str| candidate[key].as_str().unwrap_or_default().to_owned();
    let iterative = candidate["bound"] == "at least";
    let mut args = vec!["--method".into(), text("method"), "--reorder".into(), text("reorder")];
    if iterative {
        // The accuracy of a direct method, as near as a recurrence comes.
        args.extend(["--precond".into(), text("precond"), "--rtol".into(), "1e-13".into()]);
    }
    let predicted = candidate["seconds"].as_f64().unwrap_or(f64::NAN);
    (Run { method: text("method"), predicted, iterative, actual: None }, args)
}

impl Case {
    /// The fastest of all that were run, `auto` among them.
    fn best(&self) -> (f64, &str) {
        let runs = self.runs.iter().filter_map(|run| Some((run.actual?, run.method.as_str())));
        runs.fold((self.auto, self.chosen.as_str()), |best, run| if run.0 < best.0 { run } else { best })
    }

    fn regret(&self) -> f64 {
        let (best, _) = self.best();
        if self.auto - best < TIE { 1.0 } else { self.auto / best }
    }

    fn line(&self) -> String {
        let (seconds, method) = self.best();
        format!(
            "{:<34} {:>9} {:<17} {:>10.4} {:<17} {:>10.4} {:>7.2}{}",
            self.name,
            self.n,
            self.chosen,
            self.auto,
            method,
            seconds,
            self.regret(),
            if self.doubtful { " (singular to working precision)" } else { "" }
        )
    }

    fn json(&self) -> Value {
        let runs: Vec<Value> = self
            .runs
            .iter()
            .map(|r| json!({ "method": r.method, "predicted": r.predicted, "iterative": r.iterative, "actual": r.actual }))
            .collect();
        json!({
            "system": self.name, "n": self.n, "auto": self.auto, "chosen": self.chosen, "regret": self.regret(),
            "singular": self.doubtful, "runs": runs,
        })
    }
}

/// The gates.
struct Verdict {
    systems: usize,
    median: f64,
    percentile: f64,
    worst: f64,
    /// Share of direct runs of a millisecond and more that were predicted within a factor of two, and the same with singular systems.
    predicted: [f64; 2],
}

impl Verdict {
    fn of(cases: &[Case]) -> Self {
        let mut regrets: Vec<f64> = cases.iter().filter(|c| !c.doubtful).map(Case::regret).collect();
        regrets.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let last = regrets.len().saturating_sub(1);
            regrets.get((share * last as f64).ceil() as usize).copied().unwrap_or(1.0)
        };
        let predicted = [false, true].map(|all| {
            let runs = cases.iter().filter(|c| all || !c.doubtful).flat_map(|c| &c.runs).filter(|r| !r.iterative);
            let ratios: Vec<f64> = runs.filter_map(|r| Some(r.actual.filter(|a| *a >= TIE)? / r.predicted)).collect();
            let within = ratios.iter().filter(|r| **r >= 0.5 && **r <= 2.0).count();
            if ratios.is_empty() { 1.0 } else { within as f64 / ratios.len() as f64 }
        });
        Self { systems: regrets.len(), median: at(0.5), percentile: at(0.95), worst: at(1.0), predicted }
    }

    fn is_met(&self) -> bool {
        self.median <= 1.1 && self.percentile <= 1.5 && self.worst <= 2.0 && self.predicted[0] >= 0.9
    }

    fn text(&self) -> String {
        format!(
            "{} systems: regret {:.2} (median, at most 1.1), {:.2} (95 %, at most 1.5), {:.2} (worst, at most 2); {:.0} % of direct \
             methods predicted within a factor of 2 (at least 90 %), {:.0} % with singular systems",
            self.systems,
            self.median,
            self.percentile,
            self.worst,
            100.0 * self.predicted[0],
            100.0 * self.predicted[1]
        )
    }

    fn json(&self) -> Value {
        json!({
            "systems": self.systems, "median": self.median, "percentile_95": self.percentile, "worst": self.worst,
            "predicted_within_2": self.predicted[0], "predicted_within_2_with_singular": self.predicted[1], "met": self.is_met(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(auto: f64, actual: f64, predicted: f64) -> Case {
        let run = Run { method: "band-lu".into(), predicted, iterative: false, actual: Some(actual) };
        Case { name: "a".into(), n: 1, auto, chosen: "sparse-lu".into(), doubtful: false, runs: vec![run] }
    }

    #[test]
    fn regret_is_chosen_over_best_and_ties_are_none() {
        assert_eq!(case(0.4, 0.2, 0.1).regret(), 2.0);
        assert_eq!(case(0.1, 0.3, 0.1).regret(), 1.0);
        assert_eq!(case(1.5e-3, 1e-3, 0.1).regret(), 1.0);
        let verdict = Verdict::of(&[case(0.4, 0.2, 0.8), case(0.1, 0.1, 0.1)]);
        assert_eq!((verdict.worst, verdict.predicted, verdict.is_met()), (2.0, [0.5; 2], false));
        assert!(Verdict::of(&[case(0.1, 0.1, 0.06)]).is_met());
        let apart = Case { doubtful: true, ..case(9.0, 0.1, 0.01) };
        let verdict = Verdict::of(&[apart, case(0.1, 0.1, 0.06)]);
        assert_eq!((verdict.is_met(), verdict.predicted), (true, [1.0, 0.5]));
    }
}
