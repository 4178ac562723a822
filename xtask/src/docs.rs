//! `cargo xtask docs`: the book into target/book, the API documentation into target/doc; with `--check` or `--write` the output
//! that README.md and the book show beside what the programs print.
//!
//! mdBook is a library here: `docs/builder` is a package outside the workspace, so that neither a build nor a test of
//! the workspace ever compiles it.

mod blocks;
mod check;
mod compare;

use std::path::PathBuf;

use clap::Args;

use crate::process::{Failure, Result, cargo, must_succeed, programs};
use check::Mode;

/// Options of the chore.
#[derive(Args)]
pub struct Options {
    /// Build nothing but the command and the examples: fail where README.md or the book shows other output than they print
    #[arg(long)]
    check: bool,
    /// As --check, and write the blocks and pictures that differ
    #[arg(long, conflicts_with = "check")]
    write: bool,
    /// With --check and --write: the programs in the folder of this one, as they are
    #[arg(long)]
    built: bool,
}

/// Arguments of the API documentation's build, beside a selection of packages. The command is left out: its binary has the library's name.
pub const RUSTDOC: [&str; 3] = ["doc", "--no-deps", "--lib"];

/// Runs the chore.
pub fn run(options: &Options) -> Result<()> {
    let mode = match options {
        Options { write: true, .. } => Mode::Write,
        Options { check: true, .. } => Mode::Check,
        _ => return book(),
    };
    if !options.built {
        return check::run(mode, &built(&["--workspace"])?);
    }
    let own = std::env::current_exe().map_err(|e| Failure(e.to_string()))?;
    check::run(mode, own.parent().unwrap_or(&own))
}

/// Fails where a page shows other output than the programs print, which `selection` of packages and features has built.
pub fn check(selection: [&str; 2]) -> Result<()> {
    check::run(Mode::Check, &built(&selection)?)
}

/// The folder of the command, built with the examples as tests have them.
fn built(selection: &[&str]) -> Result<PathBuf> {
    let made = programs(cargo(["build", "--bins", "--examples"]).args(selection))?;
    let command = made.into_iter().find(|(target, _)| target.name == "blocktri" && target.is_bin());
    let folder = command.and_then(|(_, program)| Some(program.parent()?.to_owned()));
    folder.ok_or_else(|| Failure("cargo built no program `blocktri`".into()))
}

/// Builds the book and the API documentation.
fn book() -> Result<()> {
    let builder = ["run", "--quiet", "--release", "--manifest-path", "docs/builder/Cargo.toml"];
    must_succeed(cargo(builder).args(["--target-dir", "target/docs-builder", "--", "docs", "target/book"]))?;
    must_succeed(cargo(RUSTDOC).arg("--workspace").env("RUSTDOCFLAGS", "-D warnings"))?;
    println!("target/book/index.html\ntarget/doc/blocktri/index.html");
    Ok(())
}
