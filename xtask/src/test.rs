//! `cargo xtask test`: all tests and doctests of the workspace, by cargo-nextest where it is there, else by `cargo test`.
//!
//! `cargo test` runs one test program after another, and a core waits for the last test of each; nextest runs the tests of all programs side
//! by side. Both build the same programs.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;

use cargo_metadata::MetadataCommand;
use clap::Args;

use crate::process::{Context, Failure, Result, cargo, root, show};

/// Options of the chore.
#[derive(Args)]
pub struct Options {
    /// Tests of this package alone; may be given several times
    #[arg(short, long, value_name = "NAME")]
    package: Vec<String>,
    /// Features, as cargo takes them
    #[arg(long, value_name = "LIST")]
    features: Option<String>,
}

/// Tests that ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: u64,
    pub failed: u64,
}

/// The chore: what ran is printed.
pub fn run(options: &Options) -> Result<()> {
    let mut selection: Vec<&str> = options.package.iter().flat_map(|name| ["--package", name]).collect();
    if selection.is_empty() {
        selection.push("--workspace");
    }
    selection.extend(options.features.iter().flat_map(|list| ["--features", list]));
    let mut tally = Tally::default();
    let documented = options.package.is_empty() || has_library(&options.package)?;
    let done = if documented { all(&selection, &mut tally) } else { tests(&selection, &mut tally) };
    println!("{} passed, {} failed", tally.passed, tally.failed);
    done
}

/// Whether one of these packages has a library: of others there are no doctests, and cargo says so as an error.
fn has_library(names: &[String]) -> Result<bool> {
    let manifest = root().join("Cargo.toml");
    let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec().context("cargo metadata")?;
    let named = metadata.packages.iter().filter(|package| names.iter().any(|name| *name == *package.name));
    Ok(named.flat_map(|package| &package.targets).any(|target| target.doctest))
}

/// All tests of a selection with its doctests, counted into `tally`. Everything is run, also where something failed.
pub fn all(selection: &[&str], tally: &mut Tally) -> Result<()> {
    let done = tests(selection, tally);
    // Without nextest they have run with the tests.
    if !nextest_is_there() {
        return done;
    }
    let mut examples = cargo(["test", "--doc", "--no-fail-fast", "--color=never"]);
    done.and(counted(examples.args(selection), Tally::add_libtest, tally))
}

fn tests(selection: &[&str], tally: &mut Tally) -> Result<()> {
    if !nextest_is_there() {
        let mut command = cargo(["test", "--no-fail-fast", "--color=never"]);
        return counted(command.args(selection), Tally::add_libtest, tally);
    }
    counted(nextest().args(selection), Tally::add_nextest, tally)
}

fn nextest() -> Command {
    let mut command = cargo(["nextest", "run", "--no-fail-fast", "--no-tests=pass", "--color=never"]);
    command.args(["--status-level=fail", "--final-status-level=fail", "--show-progress=none"]);
    command
}

/// The tests of a selection that a filter of nextest names, with a variable of the environment. Without nextest nothing is run, said so:
/// cargo would build each crate's tests with other features.
pub fn filtered(variable: (&str, &str), filter: &str, selection: &[&str], tally: &mut Tally) -> Result<()> {
    if !nextest_is_there() {
        println!("skipped: no cargo-nextest");
        return Ok(());
    }
    let mut command = nextest();
    command.args(selection).args(["-E", filter]).env(variable.0, variable.1);
    counted(&mut command, Tally::add_nextest, tally)
}

fn nextest_is_there() -> bool {
    let mut command = cargo(["nextest", "--version"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Runs a command to its end, its output passed on line by line, and the tests that it tells of counted.
fn counted(command: &mut Command, add: fn(&mut Tally, &str), tally: &mut Tally) -> Result<()> {
    let shown = show(command);
    println!("$ {shown}");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().context(&shown)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let of_stderr = thread::spawn(move || stderr.map(|from| passed_on(from, add, |line| eprintln!("{line}"))));
    let of_stdout = stdout.map(|from| passed_on(from, add, |line| println!("{line}")));
    let mut own = Tally::default();
    for found in [of_stdout, of_stderr.join().ok().flatten()].into_iter().flatten() {
        let found = found.context(&shown)?;
        own.passed += found.passed;
        own.failed += found.failed;
    }
    let status = child.wait().context(&shown)?;
    // A test program that did not build or was killed prints no result; it failed all the same.
    own.failed = own.failed.max(u64::from(!status.success()));
    tally.passed += own.passed;
    tally.failed += own.failed;
    if status.success() { Ok(()) } else { Err(Failure(format!("{shown}: {status}"))) }
}

/// Hands on every line: what the results among them say.
fn passed_on(from: impl std::io::Read, add: fn(&mut Tally, &str), hand: impl Fn(&str)) -> std::io::Result<Tally> {
    let mut tally = Tally::default();
    for line in BufReader::new(from).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        hand(&line);
        add(&mut tally, &line);
    }
    Ok(tally)
}

impl Tally {
    /// Adds a line of libtest, "test result: ok. 12 passed; 0 failed; 1 ignored; …".
    pub fn add_libtest(&mut self, line: &str) {
        self.add(line.strip_prefix("test result: ").unwrap_or_default());
    }

    /// Adds the last line of nextest, "Summary [ 9.1s] 12 tests run: 10 passed (2 slow), 1 failed, 1 timed out, 3 skipped". What a test that failed
    /// has printed stands above it, libtest's own result too.
    fn add_nextest(&mut self, line: &str) {
        let summary = line.trim_start().strip_prefix("Summary [").and_then(|line| line.split_once(" run: "));
        self.add(summary.map_or("", |(_, parts)| parts));
    }

    fn add(&mut self, parts: &str) {
        for part in parts.split([';', '.', ',']) {
            match part.split_whitespace().collect::<Vec<_>>()[..] {
                [n, "passed", ..] => self.passed += n.parse().unwrap_or(0),
                [n, "failed" | "timed" | "exec", ..] => self.failed += n.parse().unwrap_or(0),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(add: fn(&mut Tally, &str), lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        for line in lines {
            add(&mut tally, line);
        }
        tally
    }

    #[test]
    fn results_are_summed() {
        let lines = [
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s",
            "test result_is_not_this ... ok",
            "running 5 tests",
        ];
        assert_eq!(of(Tally::add_libtest, &lines), Tally { passed: 15, failed: 2 });
    }

    #[test]
    fn the_summary_of_nextest_is_counted_and_nothing_else() {
        let lines = [
            "        PASS [   0.740s] ( 684/1714) bt-direct::contracts catalogue",
            "    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.00s",
            "     Summary [  61.226s] 1714 tests run: 1710 passed (2 slow), 3 failed, 1 timed out, 5 skipped",
        ];
        assert_eq!(of(Tally::add_nextest, &lines), Tally { passed: 1710, failed: 4 });
        let line = "     Summary [   0.005s] 2 tests run: 2 passed, 0 skipped";
        assert_eq!(of(Tally::add_nextest, &[line]), Tally { passed: 2, failed: 0 });
    }
}
