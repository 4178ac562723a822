//! Interleaved repetitions, and the peers' JSON lines.

use std::time::{Duration, Instant};

use bt_formats::Scalar;
use serde_json::{Map, Value, json};

use crate::{Args, Result};

/// One solver in one case.
pub trait Contestant {
    /// Name in the tables.
    fn name(&self) -> &'static str;
    /// Names of the phases in their order. One that starts with "+" is not part of the total.
    fn phases(&self) -> &'static [&'static str];
    /// Restores the inputs; not timed.
    fn reset(&mut self) {}
    /// Runs a phase.
    fn run(&mut self, phase: usize) -> Result<()>;
    /// Error of the last result, as the peers define it for the case (normwise backward error of solves).
    fn error(&self) -> f64;
    /// Runs of a phase that make a sample.
    fn runs_per_sample(&self) -> u32 {
        1
    }
    /// Further fields of the line.
    fn notes(&self) -> Map<String, Value> {
        Map::new()
    }
}

/// Least work of a case, as the peers count it.
#[derive(Clone, Copy)]
pub struct Floor {
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes to and from memory.
    pub bytes: f64,
}

impl Floor {
    /// Of numbers in T, for that of doubles.
    pub fn of<T: Scalar>(self) -> Self {
        // (a + bi)(c + di) added to a number: eight operations instead of two.
        let flops = if T::IS_REAL { self.flops } else { 4.0 * self.flops };
        Self { flops, bytes: self.bytes * size_of::<T>() as f64 / 8.0 }
    }
}

/// Seconds of wall and of processor time of one run.
type Sample = (f64, f64);

/// Times all contestants, a burst of at least 10 ms each in turn, and prints a line for each.
///
/// # Errors
/// When `--method` leaves none.
pub fn race(case: &str, n: usize, floor: Floor, args: &Args, contestants: Vec<Box<dyn Contestant + '_>>) -> Result<()> {
    let names: Vec<&str> = contestants.iter().map(|c| c.name()).collect();
    let wanted = |name: &str| args.method.as_deref().is_none_or(|m| name.contains(m));
    let mut peers: Vec<_> = contestants
        .into_iter()
        .filter(|c| wanted(c.name()))
        .map(|c| {
            let phases = vec![Vec::<Sample>::new(); c.phases().len() + 1];
            (c, phases, None)
        })
        .collect();
    if peers.is_empty() {
        return Err(format!("{case}: no contestant matches --method; there are {}", names.join(", ")).into());
    }
    let started = Instant::now();
    let mut rep = 0;
    while rep < args.reps || (rep < 100 && started.elapsed().as_secs_f64() < args.min_time) {
        for (peer, samples, failed) in &mut peers {
            let burst = Instant::now();
            while failed.is_none() && (samples[0].is_empty() || burst.elapsed() < Duration::from_millis(10)) {
                *failed = sample(&mut **peer, samples).err().map(|e| e.to_string());
            }
        }
        rep += 1;
    }
    for (peer, samples, failed) in peers {
        println!("{}", line(case, n, floor, args, &*peer, &samples, failed));
    }
    Ok(())
}

/// One run of every phase; the last list holds the totals.
fn sample(peer: &mut dyn Contestant, samples: &mut [Vec<Sample>]) -> Result<()> {
    peer.reset();
    let count = peer.runs_per_sample();
    let mut total = (0.0, 0.0);
    for (phase, name) in peer.phases().iter().enumerate() {
        let (wall, cpu) = (Instant::now(), cpu_seconds());
        for _ in 0..count {
            peer.run(phase)?;
        }
        let runs = f64::from(count);
        let one = (wall.elapsed().as_secs_f64() / runs, (cpu_seconds() - cpu) / runs);
        samples[phase].push(one);
        if !name.starts_with('+') {
            total = (total.0 + one.0, total.1 + one.1);
        }
    }
    samples[peer.phases().len()].push(total);
    Ok(())
}

fn line(
    case: &str,
    n: usize,
    floor: Floor,
    args: &Args,
    peer: &dyn Contestant,
    samples: &[Vec<Sample>],
    failed: Option<String>,
) -> Value {
    let isa = bt_simd::Isa::in_use().name();
    let mut line =
        json!({ "case": case, "peer": peer.name(), "isa": isa, "threads": args.threads, "n": n, "load1": load() });
    if let Some(why) = failed {
        line["failed"] = why.into();
        return line;
    }
    let (phases, total) = samples.split_at(samples.len() - 1);
    let total = statistics(&total[0]);
    let fastest = total["min"].as_f64().unwrap_or(f64::NAN);
    line["reps"] = samples[0].len().into();
    line["total"] = total;
    line["phases"] = peer.phases().iter().zip(phases).map(|(name, s)| ((*name).to_owned(), statistics(s))).collect();
    line["gflops"] = (floor.flops / fastest * 1e-9).into();
    line["gbs"] = (floor.bytes / fastest * 1e-9).into();
    line["err"] = peer.error().into();
    for (name, value) in peer.notes() {
        line[name] = value;
    }
    line
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
