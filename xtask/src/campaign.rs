//! `cargo xtask campaign`: random small systems with exact answers, see `crates/bt-campaign`.

use std::path::PathBuf;

use clap::Args;

use crate::process::{Result, cargo, must_succeed};

/// Options of the chore; those of the program itself are in `crates/bt-campaign/src/main.rs`.
#[derive(Args)]
pub struct Options {
    /// Time to spend
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub seconds: u64,
    /// Seed of the systems
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Number of cases instead of a time
    #[arg(long, value_name = "N")]
    pub cases: Option<u64>,
    /// Run this case alone, and print how every run of it ended
    #[arg(long, value_name = "K")]
    pub case: Option<u64>,
    /// Write the systems with findings to this folder, as Matrix Market files
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Build it in release mode
    #[arg(long)]
    pub release: bool,
}

/// Builds the campaign and runs it; fails when it finds anything.
pub fn run(options: &Options) -> Result<()> {
    let mut command = cargo(["run", "--quiet", "--package", "bt-campaign"]);
    if options.release {
        command.arg("--release");
    }
    command.arg("--").arg(format!("--seconds={}", options.seconds)).arg(format!("--seed={}", options.seed));
    for (name, value) in [("cases", options.cases), ("case", options.case)] {
        command.args(value.map(|v| format!("--{name}={v}")));
    }
    if let Some(folder) = &options.keep {
        // The program runs in the workspace root.
        command.arg("--keep").arg(std::path::absolute(folder).unwrap_or_else(|_| folder.clone()));
    }
    must_succeed(&mut command)
}
