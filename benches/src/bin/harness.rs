//! The library in the peers' harness: reads the problem files under `PEERS_DATA`, prints the peers' JSON lines.
//!
//! `cargo run --release -p bt-benches --bin harness -- [--threads N] [--reps R] CASE…`
//!
//! A case is a folder of `meta.json` (kind, sizes, shapes of the arrays) and raw little-endian arrays. Peers:
//! `blocktri-csr`, `blocktri-hybrid` (products, phase `mv`, on cases of kind csr). As among the peers, repetitions are
//! interleaved, a repetition is a burst of at least 10 ms, and copies of the input are made outside the timed region.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use blocktri::formats::{BlockTridiagonal, Csr, HybridLayout, Matrix, Op, Par, Partition};
use clap::Parser;
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Parser)]
struct Args {
    /// Names of folders under `PEERS_DATA` (default: ~/.cache/blocktri-peers/data).
    #[arg(required = true)]
    cases: Vec<String>,
    /// Threads of the pool.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Least number of repetitions.
    #[arg(long, default_value_t = 7)]
    reps: usize,
    /// Seconds that repetitions go on for, at least.
    #[arg(long, default_value_t = 2.0)]
    min_time: f64,
}

fn main() -> Result<()> {
    let args = Args::parse();
    rayon::ThreadPoolBuilder::new().num_threads(args.threads).build_global()?;
    let data = std::env::var_os("PEERS_DATA").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache/blocktri-peers/data"),
        PathBuf::from,
    );
    for case in &args.cases {
        let problem = Problem::open(&data.join(case))?;
        if problem.meta["kind"] == "csr" {
            products(case, &problem, &args)?;
        }
    }
    Ok(())
}

/// One case: `meta.json`, and arrays by name.
struct Problem {
    folder: PathBuf,
    meta: Value,
}

impl Problem {
    fn open(folder: &Path) -> Result<Self> {
        let file = folder.join("meta.json");
        let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(Self { folder: folder.to_owned(), meta: serde_json::from_str(&text)? })
    }

    fn size(&self, name: &str) -> Result<usize> {
        Ok(self.meta[name].as_u64().ok_or_else(|| format!("meta.json has no size {name}"))? as usize)
    }

    /// Numbers of N bytes each from `name.extension`.
    fn array<T, const N: usize>(&self, name: &str, extension: &str, from: fn([u8; N]) -> T) -> Result<Vec<T>> {
        let file = self.folder.join(format!("{name}.{extension}"));
        let bytes = std::fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let (numbers, rest) = bytes.as_chunks::<N>();
        if !rest.is_empty() {
            return Err(format!("{}: not a whole number of {N}-byte numbers", file.display()).into());
        }
        Ok(numbers.iter().map(|&b| from(b)).collect())
    }

    fn csr(&self) -> Result<Csr<f64>> {
        let n = self.size("n")?;
        let row_ptr = self.array("indptr", "i32", u32::from_le_bytes)?;
        let col_idx = self.array("indices", "i32", u32::from_le_bytes)?;
        Ok(Csr::new(n, n, row_ptr, col_idx, self.array("data", "f64", f64::from_le_bytes)?)?)
    }
}

/// Seconds of wall and of processor time of one repetition.
type Sample = (f64, f64);

/// One contestant: its name, its samples, its last result.
struct Peer<'a> {
    name: &'static str,
    matrix: &'a dyn Matrix<f64>,
    samples: Vec<Sample>,
    y: Vec<f64>,
}

fn products(case: &str, problem: &Problem, args: &Args) -> Result<()> {
    /// Products per sample, as the peers do.
    const COUNT: u32 = 20;
    let a = problem.csr()?;
    let (n, nnz) = (problem.size("n")?, a.nnz());
    let x = problem.array("rhs", "f64", f64::from_le_bytes)?;
    let x = x.get(..n).ok_or("rhs is shorter than n")?;
    let hybrid = match problem.size("k") {
        Ok(k) => Some(BlockTridiagonal::from_csr(&a, Partition::uniform(n, k)?, HybridLayout::default())?),
        Err(_) => None,
    };
    let peer = |name, matrix| Peer { name, matrix, samples: Vec::new(), y: vec![0.0; n] };
    let mut peers = vec![peer("blocktri-csr", &a as &dyn Matrix<f64>)];
    peers.extend(hybrid.as_ref().map(|h| peer("blocktri-hybrid", h)));

    let par = if args.threads > 1 { Par::Rayon } else { Par::Seq };
    let started = Instant::now();
    let mut rep = 0;
    while rep < args.reps || (rep < 100 && started.elapsed().as_secs_f64() < args.min_time) {
        for peer in &mut peers {
            peer.matrix.apply_op(Op::Identity, 1.0, x, 0.0, &mut peer.y, par);
            let burst = Instant::now();
            while burst.elapsed() < Duration::from_millis(10) {
                let (wall, cpu) = (Instant::now(), cpu_seconds());
                for _ in 0..COUNT {
                    peer.matrix.apply_op(Op::Identity, 1.0, x, 0.0, &mut peer.y, par);
                }
                let wall = wall.elapsed().as_secs_f64();
                peer.samples.push((wall / f64::from(COUNT), (cpu_seconds() - cpu) / f64::from(COUNT)));
            }
        }
        rep += 1;
    }

    let mut reference = vec![0.0; n];
    a.for_each_entry(&mut |i, j, v| reference[i] += v * x[j]);
    let largest = reference.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    for peer in peers {
        let error = peer.y.iter().zip(&reference).fold(0.0f64, |m, (y, r)| m.max((y - r).abs()));
        let times = statistics(&peer.samples);
        let fastest = times["min"].as_f64().unwrap_or(f64::NAN);
        // The peers' floor of a product: 2·nnz flops, 12·nnz + 20·n bytes.
        let (flops, bytes) = (2 * nnz, 12 * nnz + 20 * n);
        let line = json!({
            "case": case, "peer": peer.name, "threads": args.threads, "n": n, "load1": load(), "reps": peer.samples.len(),
            "total": times, "phases": { "mv": times },
            "gflops": flops as f64 / fastest * 1e-9, "gbs": bytes as f64 / fastest * 1e-9, "err": error / largest,
            "storage_bytes": peer.matrix.bytes(),
        });
        println!("{line}");
    }
    Ok(())
}

/// Wall minimum and median, processor minimum.
fn statistics(samples: &[Sample]) -> Value {
    let sorted = |pick: fn(&Sample) -> f64| {
        let mut v: Vec<f64> = samples.iter().map(pick).collect();
        v.sort_by(f64::total_cmp);
        v
    };
    let (wall, cpu) = (sorted(|s| s.0), sorted(|s| s.1));
    let median = f64::midpoint(wall[(wall.len() - 1) / 2], wall[wall.len() / 2]);
    json!({ "min": wall[0], "med": median, "cpu": cpu[0] })
}

/// Processor seconds of all threads; NaN where the system does not tell.
fn cpu_seconds() -> f64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return f64::NAN };
    let nanoseconds: u64 = tasks
        .filter_map(|t| std::fs::read_to_string(t.ok()?.path().join("schedstat")).ok())
        .filter_map(|s| s.split_whitespace().next()?.parse::<u64>().ok())
        .sum();
    nanoseconds as f64 * 1e-9
}

/// Load of the last minute.
fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}
