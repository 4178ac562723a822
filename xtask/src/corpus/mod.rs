//! `cargo xtask corpus DIR`: the command against a folder of systems with an index, and a judgement of every answer.
//!
//! Three kinds of index are known by their columns: systems with condition numbers ([`index`]), reports on solvers
//! ([`reports`]), reports on chains and files ([`chains`]); those of subfolders are read too.
//!
//! The chore knows the command only from outside: its options, its exit codes and its JSON. Forward errors are computed
//! here, from the solution file against the reference solution, so that no code under test judges itself.

mod chains;
mod decimal;
mod index;
mod judge;
mod reports;
mod residual;
mod vector;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use crate::process::{Context, Failure, Result, blocktri, cargo, must_succeed, root};
use index::System;
use judge::{Figures, Run, Verdict};

/// Options of the chore.
#[derive(Args)]
pub struct Options {
    /// Folder with an index.csv; indexes of its subfolders are read too
    dir: PathBuf,
    /// Method to run every system with; may be repeated
    #[arg(long = "method", value_name = "METHOD", default_value = "auto")]
    methods: Vec<String>,
    /// Also write the table as JSON, the command's reports included
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Run `info` on every .mtx file below the folder instead of solving
    #[arg(long)]
    info: bool,
    /// Only systems whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// The blocktri program to judge [default: built here]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// How it is built
    #[arg(long, value_name = "dev|release", default_value = "release", conflicts_with = "program")]
    profile: String,
    /// Leave out the large systems of reports
    #[arg(long)]
    quick: bool,
    /// Seconds that one run may take
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    limit: u64,
}

/// Runs the corpus and fails when a check does.
pub fn run(options: &Options) -> Result<()> {
    let bench = Bench::new(options)?;
    if options.info { info(options, &bench) } else { solve(options, &bench) }
}

fn solve(options: &Options, bench: &Bench) -> Result<()> {
    let mut table = Vec::new();
    for folder in index::folders_with(&options.dir, &reports::COLUMNS)? {
        reports::run(&folder, &options.only, options.quick, bench, &mut table)?;
    }
    for folder in index::folders_with(&options.dir, &chains::COLUMNS)? {
        chains::run(&folder, &options.only, bench, &mut table)?;
    }
    let mut systems = index::read(&options.dir)?;
    systems.retain(|s| s.name.contains(&options.only));
    if systems.is_empty() && table.is_empty() {
        return Err(Failure(format!("{}: nothing to judge", options.dir.display())));
    }
    for method in options.methods.iter().filter(|_| !systems.is_empty()) {
        println!(
            "\nmethod {method}\n{:<28} {:>7} {:>8} {:<15} {:<17} {:>8} {:>8} {:>8} {:>8} {:>8}  verdict",
            "system", "n", "nnz", "method", "outcome", "normwise", "compon.", "forward", "rcond", "seconds"
        );
        let mut worst = Worst::default();
        for system in &systems {
            let run = bench.solve(system, method)?;
            let (figures, verdict) = judge::judge(system, method, &run);
            println!(
                "{:<28} {:>7} {:>8} {:<15} {:<17} {} {} {} {} {}  {verdict}",
                system.name,
                figures.n.map_or("-".into(), |n| n.to_string()),
                figures.nnz.map_or("-".into(), |n| n.to_string()),
                figures.method,
                format!("{} ({})", figures.outcome, run.exit_name()),
                cell(figures.backward_error),
                cell(figures.componentwise),
                cell(figures.forward_error),
                cell(figures.rcond),
                cell(Some(run.wall.as_secs_f64())),
            );
            worst.add(system, &figures, &verdict, run.wall);
            table.push(json!({
                "name": system.name, "file": system.matrix, "method_requested": method, "exit": run.exit,
                "verdict": verdict.to_string(), "forward_error": figures.forward_error,
                "forward_error_bound": system.forward_error_bound(), "wall_seconds": run.wall.as_secs_f64(),
                "stderr": run.stderr, "report": run.report,
            }));
        }
        worst.print();
    }
    if let Some(file) = &options.json {
        fs::write(file, format!("{:#}\n", Value::Array(table.clone()))).context(file.display())?;
    }
    let failed = table.iter().filter(|row| row["verdict"].as_str().is_some_and(|v| v.starts_with("FAIL"))).count();
    if failed == 0 { Ok(()) } else { Err(Failure(format!("corpus: {failed} of {} runs failed", table.len()))) }
}

/// `info` on every matrix: 0 for matrices, 0 or a refusal (2) for vectors and hostile files.
fn info(options: &Options, bench: &Bench) -> Result<()> {
    let mut files = Vec::new();
    index::matrix_files(&options.dir, &mut files)?;
    files.retain(|f| f.to_string_lossy().contains(&options.only));
    let (mut refused, mut failed) = (0, 0);
    for file in &files {
        let run = bench.info(file)?;
        let may_refuse = index::is_vector(file) || file.parent().is_some_and(|d| d.ends_with("malformed"));
        let first = run.stderr.lines().next().unwrap_or_default();
        match run.exit {
            Some(0) if run.report.is_object() => {}
            Some(2) if may_refuse && !first.is_empty() => refused += 1,
            _ => {
                failed += 1;
                println!("{}: FAIL {}: {first}", file.display(), run.exit_name());
            }
        }
    }
    println!("info: {} files, {refused} refused as they may be, {failed} failed", files.len());
    match (files.is_empty(), failed) {
        (false, 0) => Ok(()),
        (true, _) => Err(Failure(format!("{}: no .mtx file", options.dir.display()))),
        _ => Err(Failure(format!("corpus: info failed on {failed} files"))),
    }
}

fn cell(value: Option<f64>) -> String {
    value.map_or_else(|| format!("{:>8}", "-"), |v| format!("{v:>8.1e}"))
}

/// The largest of each figure, and how many runs ended how.
#[derive(Default)]
struct Worst {
    backward: Option<(f64, String)>,
    componentwise: Option<(f64, String)>,
    /// Forward error over its bound.
    forward: Option<(f64, String)>,
    seconds: Option<(f64, String)>,
    passed: usize,
    refused: usize,
    failed: usize,
}

impl Worst {
    fn add(&mut self, system: &System, figures: &Figures, verdict: &Verdict, wall: Duration) {
        match verdict {
            Verdict::Pass => self.passed += 1,
            Verdict::Refused => self.refused += 1,
            Verdict::Fail(_) => self.failed += 1,
        }
        let keep = |slot: &mut Option<(f64, String)>, value: Option<f64>| {
            let Some(value) = value else { return };
            // NaN is worse than anything.
            if slot.as_ref().is_none_or(|s| value > s.0 || value.is_nan()) {
                *slot = Some((value, system.name.clone()));
            }
        };
        keep(&mut self.backward, figures.backward_error);
        keep(&mut self.componentwise, figures.componentwise);
        keep(&mut self.forward, figures.forward_error.zip(system.forward_error_bound()).map(|(e, bound)| e / bound));
        keep(&mut self.seconds, Some(wall.as_secs_f64()));
    }

    fn print(&self) {
        for (what, worst) in [
            ("normwise backward error", &self.backward),
            ("componentwise backward error", &self.componentwise),
            ("forward error / (10 cond 2^-53)", &self.forward),
            ("seconds", &self.seconds),
        ] {
            if let Some((value, name)) = worst {
                println!("worst {what}: {value:.2e} ({name})");
            }
        }
        println!("{} as they should be, {} refused by the method, {} failed", self.passed, self.refused, self.failed);
    }
}

/// The program under judgement and a place for its output.
struct Bench {
    program: PathBuf,
    scratch: PathBuf,
    limit: Duration,
}

impl Bench {
    fn new(options: &Options) -> Result<Self> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
        let folder = if options.profile == "dev" { "debug" } else { &options.profile };
        let program = options.program.clone().unwrap_or_else(|| target.join(folder).join("blocktri"));
        if options.program.is_none() {
            must_succeed(&mut cargo(["build", "--profile", &options.profile, "--package", "blocktri-cli"]))?;
        }
        // A folder of our own, so that two corpora may run at once.
        let scratch = target.join("corpus").join(std::process::id().to_string());
        fs::create_dir_all(&scratch).context(scratch.display())?;
        Ok(Self { program, scratch, limit: Duration::from_secs(options.limit) })
    }

    fn solve(&self, system: &System, method: &str) -> Result<Run> {
        let solution = self.scratch.join("x.mtx");
        let _ = fs::remove_file(&solution);
        let mut command = blocktri(&self.program);
        command.arg("solve").arg(&system.matrix).args(["--json", "--quiet", "--method", method]);
        command.arg("--output").arg(&solution);
        if let Some(rhs) = &system.rhs {
            command.arg("--rhs").arg(rhs);
        }
        // `auto` has to find the blocks by itself.
        if let Some(blocks) =
            system.blocks.as_ref().filter(|_| method.starts_with("block-") || method.starts_with("hbisa"))
        {
            command.arg("--blocks").arg(blocks);
        }
        let mut run = self.run(command)?;
        run.solution = solution.is_file().then(|| vector::read(&solution));
        Ok(run)
    }

    fn info(&self, file: &Path) -> Result<Run> {
        let mut command = blocktri(&self.program);
        command.arg("info").arg(file).args(["--json", "--quiet"]);
        self.run(command)
    }

    /// Runs to the end or the limit. Output goes to files: a pipe could fill up while we wait.
    fn run(&self, mut command: Command) -> Result<Run> {
        let [out, err] = ["stdout", "stderr"].map(|name| self.scratch.join(name));
        let start = Instant::now();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(File::create(&out).context(out.display())?)
            .stderr(File::create(&err).context(err.display())?)
            .spawn()
            .context(self.program.display())?;
        let status = loop {
            if let Some(status) = child.try_wait().context("waiting for the program")? {
                break Some(status);
            }
            if start.elapsed() > self.limit {
                child.kill().and_then(|()| child.wait()).context("stopping the program")?;
                break None;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let text = |path: &Path| fs::read(path).map(|b| String::from_utf8_lossy(&b).into_owned());
        Ok(Run {
            exit: status.and_then(|s| s.code()),
            timed_out: status.is_none(),
            wall: start.elapsed(),
            report: serde_json::from_str(&text(&out).context(out.display())?).unwrap_or(Value::Null),
            stderr: text(&err).context(err.display())?,
            solution: None,
        })
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.scratch);
    }
}
