//! `cargo xtask test`: all tests and doctests of the workspace, by cargo-nextest where it is there, else by `cargo test`.
//!
//! `cargo test` runs one test program after another, and a core waits for the last test of each; nextest runs the tests of all programs side
//! by side. Both build the same programs.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;

use clap::Args;

use crate::process::{Context, Failure, Result, cargo, show};

/// Options of the chore.
#[derive(Args)]
pub struct Options {
    /// What cargo is to test, in its words, instead of --workspace: `-p bt-direct`, `--workspace --features=…`
    #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
    selection: Vec<String>,
}

/// Tests that ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: u64,
    pub failed: u64,
}

/// The chore: what ran is printed.
pub fn run(options: &Options) -> Result<()> {
    let mut selection: Vec<&str> = options.selection.iter().map(String::as_str).collect();
    if selection.is_empty() {
        selection.push("--workspace");
    }
    let mut tally = Tally::default();
    let done = all(&selection, &mut tally);
    println!("{} passed, {} failed", tally.passed, tally.failed);
    done
}

/// All tests of a selection, counted into `tally`. Everything is run, also where something failed.
pub fn all(selection: &[&str], tally: &mut Tally) -> Result<()> {
    if !nextest_is_there() {
        return counted(cargo(["test", "--no-fail-fast"]).args(selection), tally);
    }
    let quiet = ["--no-fail-fast", "--status-level", "fail", "--final-status-level", "fail", "--show-progress", "none"];
    let tests = counted(cargo(["nextest", "run"]).args(quiet).args(selection), tally);
    let examples = counted(cargo(["test", "--doc", "--no-fail-fast"]).args(selection), tally);
    tests.and(examples)
}

fn nextest_is_there() -> bool {
    let mut command = cargo(["nextest", "--version"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Runs a command to its end, its output passed on line by line, and the tests that it tells of counted.
fn counted(command: &mut Command, tally: &mut Tally) -> Result<()> {
    let shown = show(command);
    println!("$ {shown}");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().context(&shown)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let of_stderr = thread::spawn(move || stderr.map(|from| passed_on(from, |line| eprintln!("{line}"))));
    let of_stdout = stdout.map(|from| passed_on(from, |line| println!("{line}")));
    for found in [of_stdout, of_stderr.join().ok().flatten()].into_iter().flatten() {
        let found = found.context(&shown)?;
        tally.passed += found.passed;
        tally.failed += found.failed;
    }
    let status = child.wait().context(&shown)?;
    if status.success() {
        return Ok(());
    }
    // A test program that did not build or was killed prints no result; it failed all the same.
    tally.failed = tally.failed.max(1);
    Err(Failure(format!("{shown}: {status}")))
}

/// Hands on every line: what the results among them say.
fn passed_on(from: impl std::io::Read, hand: impl Fn(&str)) -> std::io::Result<Tally> {
    let mut tally = Tally::default();
    for line in BufReader::new(from).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        hand(&line);
        tally.add(&line);
    }
    Ok(tally)
}

impl Tally {
    /// Adds a line of libtest, "test result: ok. 12 passed; 0 failed; 1 ignored; …", or the last one of nextest,
    /// "Summary [ 9.1s] 12 tests run: 10 passed (2 slow), 1 failed, 1 timed out, 3 skipped".
    pub fn add(&mut self, line: &str) {
        let line = line.trim_start();
        let parts = match line.strip_prefix("test result: ") {
            Some(parts) => parts,
            None if line.starts_with("Summary [") => line.split_once(" run: ").map_or("", |(_, parts)| parts),
            None => return,
        };
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

    fn of(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        for line in lines {
            tally.add(line);
        }
        tally
    }

    #[test]
    fn results_are_summed() {
        let tally = of(&[
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s",
            "test result_is_not_this ... ok",
            "running 5 tests",
        ]);
        assert_eq!(tally, Tally { passed: 15, failed: 2 });
    }

    #[test]
    fn the_summary_of_nextest_is_counted() {
        let tally = of(&[
            "        PASS [   0.740s] ( 684/1714) bt-direct::contracts catalogue",
            "     Summary [  61.226s] 1714 tests run: 1710 passed (2 slow), 3 failed, 1 timed out, 5 skipped",
        ]);
        assert_eq!(tally, Tally { passed: 1710, failed: 4 });
        assert_eq!(of(&["     Summary [   0.005s] 2 tests run: 2 passed, 0 skipped"]), Tally { passed: 2, failed: 0 });
    }
}
