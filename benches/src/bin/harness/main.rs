//! The library in the peers' harness: reads the problem files under `PEERS_DATA`, prints the peers' JSON lines.
//!
//! `cargo run --release -p bt-benches --bin harness -- [--threads N] [--isa ISA] [--scalar T] [--method M] [--reps R] CASE…`
//!
//! A case is a folder of `meta.json` (kind, sizes, shapes of the arrays) and raw little-endian arrays. As among the
//! peers, repetitions are interleaved, a repetition is a burst of at least 10 ms, and copies of the input are made
//! outside the timed region.

use std::error::Error;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

mod band;
mod batch;
mod block;
mod dense;
mod facade;
mod factored;
mod krylov;
mod measure;
mod problem;
mod products;
mod queue;
mod spike;
mod tridiagonal;

use bt_simd::Isa;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The four scalars.
#[derive(Clone, Copy, ValueEnum)]
enum Number {
    F64,
    F32,
    C64,
    C32,
}

#[derive(Parser)]
struct Args {
    /// Names of folders under `PEERS_DATA` (default: ~/.cache/blocktri-peers/data).
    #[arg(required = true)]
    cases: Vec<String>,
    /// Threads of the pool.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Instruction set of our kernels: avx512, avx2, portable, or base128 with the feature of that name.
    #[arg(long)]
    isa: Option<Isa>,
    /// Scalar of bands, blocks and dense matrices; complex numbers get phases, which leave moduli and singular values as they are.
    #[arg(long, default_value = "f64")]
    scalar: Number,
    /// Only contestants whose name contains this.
    #[arg(long)]
    method: Option<String>,
    /// Least number of repetitions.
    #[arg(long, default_value_t = 7)]
    reps: usize,
    /// Seconds that repetitions go on for, at least.
    #[arg(long, default_value_t = 2.0)]
    min_time: f64,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(isa) = args.isa {
        isa.set()?;
    }
    rayon::ThreadPoolBuilder::new().num_threads(args.threads).build_global()?;
    let data = std::env::var_os("PEERS_DATA").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache/blocktri-peers/data"),
        PathBuf::from,
    );
    for case in &args.cases {
        let problem = problem::Problem::open(&data, case)?;
        match problem.kind() {
            _ if case.starts_with("q1") => queue::run(&problem, &args)?,
            "blocktri" => block::run(&problem, &args)?,
            "tridiag" if problem.size("batch")? > 1 => batch::run(&problem, &args)?,
            "band" => band::run(&problem, &args)?,
            "dense" => dense::run(&problem, &args)?,
            "csr" => products::run(&problem, &args)?,
            "tridiag" => tridiagonal::run(&problem, &args)?,
            kind => eprintln!("{case}: no contestant for kind {kind} yet"),
        }
    }
    Ok(())
}
