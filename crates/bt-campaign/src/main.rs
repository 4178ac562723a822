//! The campaign as a program; `cargo xtask campaign` runs it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bt_campaign::campaign::{Pools, Until, campaign, run_case};
use bt_campaign::run::keep_panics;
use clap::Parser;

#[derive(Parser)]
#[command(
    name = "bt-campaign",
    about = "Random small systems with exact answers, every method and preconditioner judged"
)]
struct Args {
    /// Time to spend
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
    /// Number of cases instead of a time
    #[arg(long, value_name = "N")]
    cases: Option<u64>,
    /// Seed of the systems
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Run this case alone, and print how every run of it ended
    #[arg(long, value_name = "K")]
    case: Option<u64>,
    /// Number of the first case
    #[arg(long, value_name = "K", default_value_t = 0)]
    first: u64,
    /// Write the systems with findings to this folder, as Matrix Market files
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Cases at a time [default: the number of cores]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    keep_panics();
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

/// Whether nothing was found.
fn run(args: &Args) -> Result<bool, Box<dyn std::error::Error>> {
    if let Some(folder) = &args.keep {
        std::fs::create_dir_all(folder)?;
    }
    if let Some(case) = args.case {
        return replay(args, case);
    }
    let until = match args.cases {
        Some(count) => Until::Cases(count),
        None => Until::Time(Instant::now() + Duration::from_secs(args.seconds)),
    };
    let jobs = args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let tally = campaign(args.seed, args.first, &until, jobs, args.keep.as_deref())?;
    println!("\nseed {}: {}", args.seed, tally.report().trim_end());
    Ok(tally.is_clean())
}

fn replay(args: &Args, case: u64) -> Result<bool, Box<dyn std::error::Error>> {
    let pools = Pools::new()?;
    let mut ends = Vec::new();
    let (system, singular, runs, sightings) =
        run_case(args.seed, case, &pools, &mut |label, end| ends.push(format!("{label}: {}", end.text())));
    println!(
        "seed {} case {case}: {}, {}, n = {}, {} entries{}",
        args.seed,
        system.family.name(),
        system.kind,
        system.n,
        system.entries.len(),
        if singular { ", singular" } else { "" }
    );
    for (i, j, [re, im]) in &system.entries {
        println!("  a[{i}, {j}] = {re:e}{}", imaginary(*im));
    }
    for (i, j) in &system.zeros {
        println!("  a[{i}, {j}] = 0, stored");
    }
    for (i, [re, im]) in system.b.iter().enumerate() {
        println!("  b[{i}] = {re:e}{}", imaginary(*im));
    }
    ends.iter().for_each(|end| println!("{end}"));
    println!("\n{runs} runs, {} findings", sightings.len());
    for s in &sightings {
        println!("{}: {}: {}", s.finding.kind, s.label, s.finding.detail);
    }
    if let Some(folder) = &args.keep {
        system.write(folder, &format!("seed{}_case{case}", args.seed), &[])?;
    }
    Ok(sightings.is_empty())
}

fn imaginary(im: f64) -> String {
    if im == 0.0 { String::new() } else { format!(" + {im:e} i") }
}
