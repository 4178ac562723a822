//! The Python packages: their wheels are built with maturin and inspected, and pytest, mypy and stubtest run on what is installed from the
//! first. Then an empty environment gets what a reader types, `pip install ./python`, and runs the first example of the page and the command.
//!
//! All of it happens in target/python and target/python-reader, environments of their own with tools from PyPI. A machine without Python
//! says so and goes on.

mod wheel;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;

use crate::process::{Context, Failure, Result, must_succeed, root};
use crate::test::Tally;

/// Options of the chore.
#[derive(Args)]
pub struct Options {
    /// Build as `pip install` does, with all optimizations, and hold the wheels to the size at which they are published: minutes
    #[arg(long)]
    optimized: bool,
}

impl Options {
    /// How the wheels are built.
    pub fn build(&self) -> Build {
        if self.optimized { Build::Published } else { Build::Quick }
    }
}

/// How wheels are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// From what the other checks build: the extension without optimizations, the command without a GPU.
    Quick,
    /// By the profile of `pyproject.toml`.
    Published,
}

impl Build {
    /// What maturin is told for the extension.
    fn of_extension(self) -> &'static [&'static str] {
        match self {
            Self::Quick => &["--profile", "dev"],
            Self::Published => &[],
        }
    }

    /// What maturin is told for the command.
    fn of_command(self) -> &'static [&'static str] {
        match self {
            // Features that are named take the place of those in pyproject.toml.
            Self::Quick => &["--features", "png"],
            Self::Published => &[],
        }
    }
}

/// What the tests and the build need.
const TOOLS: [&str; 9] = [
    "auditwheel>=6",
    "maturin>=1.9,<2",
    "numpy>=2",
    "scipy>=1.15",
    "pytest>=8",
    "hypothesis>=6",
    "mypy>=1.15",
    "scipy-stubs",
    "matplotlib",
];

/// Builds, inspects and tests; counts into `counted` what ran.
///
/// # Errors
/// When a wheel is not what it should be, or something does not build, install or pass.
pub fn run(build: Build, counted: &mut Tally) -> Result<()> {
    let Some(python) = interpreter() else {
        println!("skipped: there is no Python of version 3.10 or later with venv");
        return Ok(());
    };
    let venv = Environment(root().join("target/python"));
    if !venv.program("python").exists() {
        must_succeed(Command::new(&python).args(["-m", "venv"]).arg(&venv.0))?;
    }
    must_succeed(venv.pip().args(TOOLS))?;
    let reader = Environment(root().join("target/python-reader"));
    must_succeed(Command::new(&python).args(["-m", "venv", "--clear"]).arg(&reader.0))?;
    // For one interpreter cargo builds the extension once.
    let package = wheel::build(&venv, wheel::Kind::Extension(&reader.program("python")), build)?;
    must_succeed(venv.pip().args(["--force-reinstall", "--no-deps"]).arg(&package))?;
    // Of what is installed, not of the sources beside the tests.
    must_succeed(venv.command("mypy").args(["--strict", "tests", "examples"]))?;
    must_succeed(venv.command("python").args(["-m", "mypy.stubtest", "blocktri._blocktri"]))?;
    pytest(&mut venv.command("python"), counted)?;
    let command = wheel::build(&venv, wheel::Kind::Command, build)?;
    read(&reader, build, &command)
}

/// An environment of Python.
pub struct Environment(PathBuf);

impl Environment {
    fn program(&self, name: &str) -> PathBuf {
        let folder = if cfg!(windows) { "Scripts" } else { "bin" };
        self.0.join(folder).join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
    }

    /// A program of the environment, in the folder of the package.
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.program(name));
        command.current_dir(root().join("python")).env("VIRTUAL_ENV", &self.0);
        command
    }

    fn pip(&self) -> Command {
        let mut pip = self.command("python");
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip
    }
}

/// What a reader of the book does: both packages into an empty environment, the first example of the page, the command on a file.
fn read(venv: &Environment, build: Build, command: &Path) -> Result<()> {
    println!("$ pip install ./python");
    let mut pip = venv.pip();
    pip.arg("./python").current_dir(root()).env("MATURIN_PEP517_ARGS", build.of_extension().join(" "));
    must_succeed(&mut pip)?;
    let page = root().join("docs/src/python.md");
    let page = fs::read_to_string(&page).context(page.display())?;
    let example =
        first_example(&page).ok_or_else(|| Failure("docs/src/python.md: no fenced block is of Python".into()))?;
    // Beside the sources, that they are not what is imported.
    must_succeed(venv.command("python").args(["-c", &format!("{example}print(x, report)\n")]).current_dir(&venv.0))?;
    must_succeed(venv.pip().arg("--no-deps").arg(command))?;
    // The name of the package is a command where there is a shell.
    for name in if cfg!(unix) { &["blocktri", "blocktri-cli"][..] } else { &["blocktri"] } {
        println!("$ {name} solve examples/data/cloud16-100.mtx");
        must_succeed(venv.command(name).args(["solve", "examples/data/cloud16-100.mtx"]).current_dir(root()))?;
    }
    Ok(())
}

/// The first fenced block of Python.
fn first_example(markdown: &str) -> Option<&str> {
    let (_, rest) = markdown.split_once("```python\n")?;
    rest.split_once("```").map(|(block, _)| block)
}

/// pytest, its output passed on line by line and its last line counted.
fn pytest(command: &mut Command, counted: &mut Tally) -> Result<()> {
    command.args(["-m", "pytest", "--quiet", "tests", "--pyargs", "blocktri"]).stdout(Stdio::piped());
    let mut child = command.spawn().context("pytest")?;
    let mut own = Tally::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.context("output of pytest")?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            own = count(&line).unwrap_or(own);
        }
    }
    let status = child.wait().context("pytest")?;
    let passed = status.success() && own.passed > 0;
    counted.passed += own.passed;
    counted.failed += if passed { own.failed } else { own.failed.max(1) };
    if passed { Ok(()) } else { Err(Failure(format!("pytest: {status}, {} tests passed", own.passed))) }
}

/// Of a line such as "2 failed, 31 passed, 1 skipped in 3.20s".
fn count(line: &str) -> Option<Tally> {
    let (counts, time) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
    let mut found = Tally::default();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_pytest_is_counted() {
        let counted = |passed, failed| Some(Tally { passed, failed });
        assert_eq!(count("31 passed in 3.20s"), counted(31, 0));
        assert_eq!(count("== 2 failed, 31 passed, 1 skipped in 70.20s (0:01:10) =="), counted(31, 2));
        assert_eq!(count("1 error in 0.20s"), counted(0, 1));
        assert_eq!(count("tests/test_solve.py ..... in the middle"), None);
        assert_eq!(count("no tests ran in 0.01s"), None);
    }

    #[test]
    fn the_first_block_of_python_is_the_example() {
        let page = "# From Python\n```sh\npip install x\n```\n\n```python\nx = 1\n```\n```python\ny = 2\n```\n";
        assert_eq!(first_example(page), Some("x = 1\n"));
        assert_eq!(first_example("```sh\npip install x\n```\n"), None);
    }
}
