//! `cargo xtask build-budget`: what building costs, from nothing and after a change, beside what it may cost.
//!
//! Wall seconds and bytes of the command, on this machine with nothing else running; limits are for two cores. The first and the last line
//! are the README's two commands. The table of single crates comes from cargo's own timings, that of functions from cargo-llvm-lines.

use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Instant, SystemTime};

use clap::Args;
use serde_json::Value;

use crate::outside::{Scratch, Source};
use crate::process::{Context, Failure, Result, cargo, must_succeed, root, show};

/// Options of the chore.
#[derive(Args)]
pub struct Options {
    /// Leave out what takes longest: the tests of the workspace
    #[arg(long)]
    quick: bool,
    /// Rows in the tables of crates and of functions
    #[arg(long, default_value_t = 16)]
    rows: usize,
}

/// Something measured, and its limit.
struct Line {
    what: &'static str,
    measured: f64,
    limit: f64,
    unit: &'static str,
}

impl Line {
    fn seconds(what: &'static str, limit: f64, work: impl FnOnce() -> Result<()>) -> Result<Self> {
        println!("\n==> {what}");
        let start = Instant::now();
        work()?;
        Ok(Self { what, measured: start.elapsed().as_secs_f64(), limit, unit: "s" })
    }

    fn is_over(&self) -> bool {
        self.measured > self.limit
    }
}

/// Measures all of it in a target folder of its own.
///
/// # Errors
/// When something does not build, and when a limit is passed.
pub fn run(options: &Options) -> Result<()> {
    let target = root().join("target/budget");
    let of = |mut command: Command| {
        // As a release is: without symbols. As cargo builds by default: incrementally where it does not optimize.
        command.env("CARGO_TARGET_DIR", &target).env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
        command.env_remove("CARGO_INCREMENTAL");
        command
    };
    let emptied = || match fs::remove_dir_all(&target) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Failure(format!("{}: {e}", target.display()))),
        _ => Ok(()),
    };
    emptied()?;
    let mut lines = Vec::new();
    lines.push(Line::seconds("a system solved by the command, from nothing", 300.0, || {
        let solve = ["--", "solve", "examples/data/cloud16-100.mtx"];
        must_succeed(of(cargo(["run", "--release", "--timings"])).args(solve))
    })?);
    let program = target.join("release").join(format!("blocktri{}", std::env::consts::EXE_SUFFIX));
    let bytes = fs::metadata(&program).context("the command")?.len() as f64;
    lines.push(Line { what: "the command, without symbols", measured: bytes / 1e6, limit: 20.0, unit: "MB" });
    let table = slowest(&target.join("cargo-timings/cargo-timing.html"), options.rows)?;
    // The profile for work on a method, whose first build is as long as that of a release.
    let quick = ["build", "--profile", "quick"];
    must_succeed(&mut of(cargo(quick)))?;
    let changed = Changed::new(root().join("crates/bt-direct/src/band_lu/two_steps.rs"))?;
    let seconds =
        Line::seconds("the command, after a change in a direct method", 90.0, || must_succeed(&mut of(cargo(quick))));
    drop(changed);
    lines.push(seconds?);
    let tests = ["test", "--package", "bt-direct"];
    must_succeed(of(cargo(tests)).arg("--no-run"))?;
    lines.push(Line::seconds("cargo test -p bt-direct, after a change in it", 60.0, || {
        touch(&root().join("crates/bt-direct/src/thomas.rs"))?;
        must_succeed(&mut of(cargo(tests)))
    })?);
    for (what, limit, scratch) in [
        ("a program that solves by the facade, from nothing", 120.0, Scratch::Facade),
        ("a program that solves by bt-direct alone, from nothing", 60.0, Scratch::Direct),
    ] {
        let program = scratch.create(Source::Checkout)?;
        lines.push(Line::seconds(what, limit, || must_succeed(&mut program.cargo(&["build", "--release"])))?);
    }
    if !options.quick {
        emptied()?;
        lines.push(Line::seconds("cargo xtask test, from nothing", 720.0, || {
            must_succeed(&mut of(cargo(["run", "--package", "xtask", "--", "test"])))
        })?);
    }
    let verdict = report(&lines, &table);
    print_llvm_lines(of(cargo(["llvm-lines", "--release", "--package", "bt-direct", "--lib"])), options.rows)?;
    verdict
}

/// The functions of `bt-direct` that bring most lines of LLVM's language, of all their instances together: there the seconds go.
fn print_llvm_lines(mut command: Command, functions: usize) -> Result<()> {
    if !cargo(["llvm-lines", "--version"]).output().is_ok_and(|output| output.status.success()) {
        println!("\nfunctions of bt-direct: left out without cargo-llvm-lines (`cargo install cargo-llvm-lines`)");
        return Ok(());
    }
    let shown = show(&command);
    let output = command.stderr(Stdio::inherit()).output().context(&shown)?;
    if !output.status.success() {
        return Err(Failure(format!("{shown}: {}", output.status)));
    }
    println!("\nfunctions of bt-direct:");
    // Two lines of heading and one of the sum.
    for line in String::from_utf8_lossy(&output.stdout).lines().take(functions + 3) {
        println!("{line}");
    }
    Ok(())
}

fn report(lines: &[Line], table: &[(f64, String)]) -> Result<()> {
    println!("\nthe command by crates, wall seconds, several at a time:");
    for (seconds, name) in table {
        println!("  {seconds:>7.1} s  {name}");
    }
    println!("\n{:<56} {:>10} {:>10}", "", "measured", "limit");
    for line in lines {
        let verdict = if line.is_over() { "OVER" } else { "" };
        println!(
            "{:<56} {:>7.1} {:<2} {:>7.0} {:<2} {verdict}",
            line.what, line.measured, line.unit, line.limit, line.unit
        );
    }
    let over: Vec<_> = lines.iter().filter(|line| line.is_over()).map(|line| line.what).collect();
    if over.is_empty() { Ok(()) } else { Err(Failure(format!("over the budget: {}", over.join("; ")))) }
}

/// A source file with a line more at its beginning, so that all code of the file is compiled again; the file as it was, when dropped.
struct Changed {
    file: PathBuf,
    was: String,
}

impl Changed {
    fn new(file: PathBuf) -> Result<Self> {
        let was = fs::read_to_string(&file).context(file.display())?;
        fs::write(&file, format!("//\n{was}")).context(file.display())?;
        Ok(Self { file, was })
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        if let Err(e) = fs::write(&self.file, &self.was) {
            eprintln!("{}: could not be written as it was: {e}", self.file.display());
        }
    }
}

/// As an editor leaves a file that was saved.
fn touch(file: &Path) -> Result<()> {
    let name = || file.display().to_string();
    let opened = File::options().append(true).open(file).context(name())?;
    opened.set_times(FileTimes::new().set_modified(SystemTime::now())).context(name())
}

/// The crates that took longest, from the page that cargo writes.
fn slowest(page: &Path, count: usize) -> Result<Vec<(f64, String)>> {
    let text = fs::read_to_string(page).context(page.display())?;
    let mut units = units_of(&text).ok_or_else(|| Failure(format!("{}: no timings of crates", page.display())))?;
    units.sort_by(|a, b| b.0.total_cmp(&a.0));
    units.truncate(count);
    Ok(units)
}

/// Seconds and names: `const UNIT_DATA = [{"name": …, "duration": …}, …];`
fn units_of(page: &str) -> Option<Vec<(f64, String)>> {
    let list = page.split_once("UNIT_DATA = ")?.1;
    let list: Vec<Value> = serde_json::Deserializer::from_str(list).into_iter().next()?.ok()?;
    let unit = |u: &Value| Some((u["duration"].as_f64()?, format!("{}{}", u["name"].as_str()?, u["target"].as_str()?)));
    list.iter().map(unit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_of_crates_are_read_from_the_page() {
        let page = r#"<script>const UNIT_DATA = [
            {"i": 0, "name": "faer", "target": "", "duration": 37.5},
            {"i": 1, "name": "bt-direct", "target": " lib", "duration": 90.25}
        ];
        const CONCURRENCY_DATA = [];</script>"#;
        assert_eq!(units_of(page), Some(vec![(37.5, "faer".into()), (90.25, "bt-direct lib".into())]));
        assert_eq!(units_of("<html>"), None);
    }

    #[test]
    fn a_file_that_was_changed_is_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.rs");
        fs::write(&file, "//! It.\n").unwrap();
        let changed = Changed::new(file.clone()).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "//\n//! It.\n");
        drop(changed);
        assert_eq!(fs::read_to_string(&file).unwrap(), "//! It.\n");
    }

    #[test]
    fn what_is_over_its_limit_is_an_error() {
        let line = |measured| Line { what: "the command", measured, limit: 20.0, unit: "MB" };
        assert!(report(&[line(19.9)], &[]).is_ok());
        assert!(report(&[line(20.1)], &[]).unwrap_err().0.contains("the command"));
    }
}
