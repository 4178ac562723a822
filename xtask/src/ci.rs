//! `cargo xtask ci`: every check a change must pass. `.ci/run` runs exactly this.
//!
//! All steps run even when one fails; the last lines tell which did, and the tests counted over the whole workspace as
//! "N passed, N failed", alone on its line.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::c;
use crate::docs;
use crate::mpi;
use crate::outside;
use crate::process::{Context, Failure, Result, cargo, must_succeed, programs, root};
use crate::python;
use crate::test::{self, Tally};
use crate::tidy;

/// Everything there is: the command with a GPU, which the README's first command is built without, conversions
/// for nalgebra, and the ranks of MPI. One selection for
/// all steps that can have it, since another one is another build.
fn workspace(ranks: bool) -> [&'static str; 2] {
    let features = if ranks {
        "--features=blocktri-cli/cuda,bt-formats/nalgebra-sparse,bt-mpi/cuda"
    } else {
        "--features=blocktri-cli/cuda,bt-formats/nalgebra-sparse"
    };
    ["--workspace", features]
}

/// Runs all steps.
pub fn run() -> Result<()> {
    let mut steps = Steps::default();
    let mut tally = Tally::default();
    let mut ranks = false;
    steps.run("mpi", || {
        ranks = mpi::is_there();
        Ok(())
    });
    let all = workspace(ranks);
    steps.run("format", || must_succeed(&mut cargo(["fmt", "--all", "--", "--check"])));
    steps.run("clippy", || {
        must_succeed(cargo(["clippy", "--all-targets"]).args(all).args(["--", "-D", "warnings"]))?;
        must_succeed(&mut cargo(["clippy", "--package", "blocktri-cli", "--", "-D", "warnings"]))
    });
    steps.run("test", || test::all(&all, &mut tally));
    steps.run("sets", || instruction_sets(&all, &mut tally));
    steps.run("ranks", || if ranks { mpi::over_ranks(&all, &mut tally) } else { Ok(()) });
    steps.run("examples", || examples(all));
    steps.run("campaign", || campaign(all));
    steps.run("docs", || docs::check(all));
    steps.run("tidy", tidy::run);
    steps.run("rustdoc", || must_succeed(cargo(docs::RUSTDOC).args(all).env("RUSTDOCFLAGS", "-D warnings")));
    steps.run("readme", || readme(&all, &mut tally));
    steps.run("python", || python::run(python::Build::Quick, &mut tally));
    steps.run("c", || c::run_all(all));
    steps.run("outside", || outside::run(outside::Source::Packages));
    steps.finish(tally)
}

#[derive(Default)]
struct Steps(Vec<(&'static str, Duration, Result<()>)>);

impl Steps {
    fn run(&mut self, name: &'static str, step: impl FnOnce() -> Result<()>) {
        println!("\n==> {name}");
        let start = Instant::now();
        let done = step();
        if let Err(Failure(why)) = &done {
            eprintln!("error: {why}");
        }
        self.0.push((name, start.elapsed(), done));
    }

    fn finish(self, tally: Tally) -> Result<()> {
        println!();
        for (name, time, done) in &self.0 {
            let verdict = if done.is_ok() { "ok" } else { "FAILED" };
            println!("{name:<9} {verdict:<6} {:>6.1} s", time.as_secs_f64());
        }
        println!("{} passed, {} failed", tally.passed, tally.failed);
        let failed: Vec<&str> = self.0.iter().filter(|s| s.2.is_err()).map(|s| s.0).collect();
        if failed.is_empty() { Ok(()) } else { Err(Failure(format!("failed: {}", failed.join(", ")))) }
    }
}

/// The tests of the direct methods once more on the instruction sets that the processor has beside the best one, in the same programs.
fn instruction_sets(all: &[&str], tally: &mut Tally) -> Result<()> {
    let lesser: &[&str] = if has_avx512() { &["avx2", "base128", "portable"] } else { &["base128", "portable"] };
    // All of them, also where one fails.
    let done = lesser.iter().map(|set| {
        println!("$ BLOCKTRI_ISA={set}");
        test::filtered(("BLOCKTRI_ISA", set), "package(bt-direct) + package(bt-simd)", all, tally)
    });
    done.fold(Ok(()), Result::and)
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx512() -> bool {
    false
}

/// Every example of the facade, as `cargo test` has built it: each ends by checking a number.
fn examples(all: [&str; 2]) -> Result<()> {
    let made = programs(cargo(["build", "--examples"]).args(all))?;
    let mut facade: Vec<_> =
        made.into_iter().filter(|(target, _)| target.src_path.as_str().contains("crates/blocktri/examples")).collect();
    facade.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
    for (target, program) in facade {
        println!("$ {}", target.name);
        must_succeed(Command::new(program).current_dir(root()))?;
    }
    Ok(())
}

/// A minute of the random campaign, by the program built with the features that the tests were.
fn campaign(all: [&str; 2]) -> Result<()> {
    // With the examples, as tests and pages have it: without them features of development dependencies are off, which is another build.
    let made = programs(cargo(["build", "--bins", "--examples"]).args(all))?;
    let program = made.into_iter().find(|(target, _)| target.name == "bt-campaign");
    let (_, program) = program.ok_or_else(|| Failure("bt-campaign is not among the programs built".into()))?;
    must_succeed(Command::new(program).arg("--cases=600").current_dir(root()))
}

/// The first command that README.md shows, as a reader would type it; then the tests of the command with the program it built: optimized,
/// and without the GPU.
fn readme(all: &[&str], tally: &mut Tally) -> Result<()> {
    let text = fs::read_to_string(root().join("README.md")).context("README.md")?;
    let command = main_command(&text)
        .ok_or_else(|| Failure("README.md: no fenced block has a line that starts with `cargo run`".into()))?;
    println!("$ {command}");
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    must_succeed(&mut cargo(words))?;
    // The same program measures the machine, which a build without optimizations would take minutes for.
    let cache = root().join("target/calibrated");
    must_succeed(cargo(["run", "--release", "--quiet", "--", "calibrate"]).env("XDG_CACHE_HOME", cache))?;
    let program =
        programs(&mut cargo(["build", "--release"]))?.into_iter().find(|(target, _)| target.name == "blocktri");
    let (_, program) = program.ok_or_else(|| Failure("blocktri is not among the programs built".into()))?;
    let program = program.to_str().ok_or_else(|| Failure(format!("{}: not UTF-8", program.display())))?;
    test::filtered(("BLOCKTRI_COMMAND", program), "package(blocktri-cli) and kind(test) - binary(gpu)", all, tally)
}

/// The first line of a fenced block that runs the command: a program and words, no quotes or pipes.
fn main_command(markdown: &str) -> Option<&str> {
    let mut fenced = false;
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let line = line.trim().trim_start_matches("$ ");
        if fenced && line.starts_with("cargo run ") {
            return line.split(" #").next().map(str::trim_end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fenced_command_counts() {
        let text = "cargo run prose\n```sh\n$ cargo run --release -- solve a.mtx  # takes a second\ncargo run x\n```\n";
        assert_eq!(main_command(text), Some("cargo run --release -- solve a.mtx"));
        assert_eq!(main_command("cargo run prose\n```\ncargo build\n```\ncargo run more\n"), None);
    }
}
