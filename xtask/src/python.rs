//! The Python package: its wheel is built with maturin, and pytest, mypy and stubtest run on what is installed from it.
//!
//! All of it happens in target/python, an environment of its own with tools from PyPI. A machine without Python says so and goes on.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::{Context, Failure, Result, must_succeed, root};

/// What the tests and the build need.
const TOOLS: [&str; 8] = [
    "maturin>=1.9,<2",
    "numpy>=2",
    "scipy>=1.15",
    "pytest>=8",
    "hypothesis>=6",
    "mypy>=1.15",
    "scipy-stubs",
    "matplotlib",
];

/// Tests that pytest ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    pub passed: u64,
    pub failed: u64,
}

/// Builds and tests; counts into `counted` what ran.
pub fn run(counted: &mut Counted) -> Result<()> {
    let Some(python) = interpreter() else {
        println!("skipped: there is no Python of version 3.10 or later with venv");
        return Ok(());
    };
    let venv = root().join("target/python");
    let programs = venv.join(if cfg!(windows) { "Scripts" } else { "bin" });
    if !programs.join("python").exists() {
        must_succeed(Command::new(&python).args(["-m", "venv"]).arg(&venv))?;
    }
    let program = |name: &str| {
        let mut command = Command::new(programs.join(name));
        command.current_dir(root().join("python")).env("VIRTUAL_ENV", &venv);
        command
    };
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    must_succeed(program("python").args(pip).args(TOOLS))?;
    let wheels = root().join("target/python-wheels");
    if wheels.exists() {
        fs::remove_dir_all(&wheels).context("wheels of another run")?;
    }
    must_succeed(
        program("maturin").args(["build", "--profile", "dev", "--interpreter", "python", "--out"]).arg(&wheels),
    )?;
    let wheel = only_file(&wheels)?;
    must_succeed(program("python").args(pip).args(["--force-reinstall", "--no-deps"]).arg(&wheel))?;
    // Of what is installed, not of the sources beside the tests.
    must_succeed(program("mypy").args(["--strict", "tests", "examples"]))?;
    must_succeed(program("python").args(["-m", "mypy.stubtest", "blocktri._blocktri"]))?;
    pytest(&mut program("python"), counted)
}

/// pytest, its output passed on line by line and its last line counted.
fn pytest(command: &mut Command, counted: &mut Counted) -> Result<()> {
    command.args(["-m", "pytest", "--quiet", "tests", "--pyargs", "blocktri"]).stdout(Stdio::piped());
    let mut child = command.spawn().context("pytest")?;
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.context("output of pytest")?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            if let Some(found) = count(&line) {
                *counted = found;
            }
        }
    }
    let status = child.wait().context("pytest")?;
    if status.success() && counted.passed > 0 {
        return Ok(());
    }
    counted.failed = counted.failed.max(1);
    Err(Failure(format!("pytest: {status}, {} tests passed", counted.passed)))
}

/// Of a line such as "2 failed, 31 passed, 1 skipped in 3.20s".
fn count(line: &str) -> Option<Counted> {
    let (counts, time) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
    let mut found = Counted::default();
    if !time.contains('s') {
        return None;
    }
    for part in counts.split(", ") {
        match part.split_whitespace().collect::<Vec<_>>()[..] {
            [n, "passed"] => found.passed = n.parse().ok()?,
            [n, "failed" | "error" | "errors"] => found.failed += n.parse::<u64>().ok()?,
            [n, _] => {
                n.parse::<u64>().ok()?;
            }
            _ => return None,
        }
    }
    Some(found)
}

/// A Python that can make an environment.
fn interpreter() -> Option<PathBuf> {
    ["python3", "python"].into_iter().map(PathBuf::from).find(|python| {
        let check = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
        let status = Command::new(python).args(["-c", check]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    })
}

/// The one file of a folder.
fn only_file(folder: &Path) -> Result<PathBuf> {
    let found = fs::read_dir(folder).context("wheels")?.next();
    let file = found.ok_or_else(|| Failure("maturin made no wheel".into()))?.context("wheels")?;
    Ok(file.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_pytest_is_counted() {
        let counted = |passed, failed| Some(Counted { passed, failed });
        assert_eq!(count("31 passed in 3.20s"), counted(31, 0));
        assert_eq!(count("== 2 failed, 31 passed, 1 skipped in 70.20s (0:01:10) =="), counted(31, 2));
        assert_eq!(count("1 error in 0.20s"), counted(0, 1));
        assert_eq!(count("tests/test_solve.py ..... in the middle"), None);
        assert_eq!(count("no tests ran in 0.01s"), None);
    }
}
