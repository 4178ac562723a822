//! The reports, for scripts and for people: those of `blocktri solve` and `blocktri queue`, with what each rank did.

use std::fmt::Write as _;
use std::path::Path;

use bt_formats::{Outcome, ScalarKind, SolveReport, memory};
use bt_parallel::{Comm, Costs, Quality, Result, Spread, StationaryDistribution};
use serde_json::{Value, json};

/// What the program has to say.
pub struct Reply {
    /// Exit code.
    pub code: u8,
    /// For `--json`.
    pub json: Value,
    /// For people.
    pub text: String,
    /// For stderr, in any case.
    pub warnings: Vec<String>,
}

/// Everything the report says.
pub struct Facts<'a> {
    pub file: &'a Path,
    pub scalar: ScalarKind,
    pub n: usize,
    pub nnz: u64,
    pub nrhs: usize,
    pub blocks: Option<usize>,
    pub method_requested: String,
    pub precond: String,
    pub local: Option<String>,
    pub partition: String,
    /// How good the domains are that were grown.
    pub quality: Option<Quality>,
    /// Of the random numbers that the method took, where it took any.
    pub seed: Option<u64>,
    /// The GPU of each rank, where they have any: its number on the node and its name.
    pub gpus: Option<Vec<String>>,
    pub threads: usize,
    pub report: &'a SolveReport,
    pub forward_error: Option<f64>,
    /// Of the slowest rank.
    pub seconds: Seconds,
    pub costs: &'a Costs,
    /// Bytes that a rank has held at most: least, mean, most of the ranks.
    pub peak: Spread,
    pub notes: Vec<String>,
    pub output: Option<&'a Path>,
}

/// Bytes that each rank has held at most so far, as its system counts them; 0 where it does not. A collective.
///
/// # Errors
/// Those of the communicator.
pub fn peak_memory(comm: &impl Comm) -> Result<Spread> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let words = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let kib: f64 = words.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    let all = comm.all_gather(&[1024.0 * kib])?;
    let sum: f64 = all.values().iter().sum();
    Ok(Spread {
        least: all.values().iter().copied().fold(f64::INFINITY, f64::min),
        mean: sum / comm.size() as f64,
        most: all.values().iter().copied().fold(0.0, f64::max),
    })
}

/// Least, mean and most of the ranks.
pub fn spread(s: Spread) -> Value {
    json!({"least": s.least, "mean": s.mean, "most": s.most})
}

/// What each rank did.
fn per_rank(costs: &Costs) -> Value {
    json!({
        "seconds": spread(costs.seconds),
        "computation": spread(costs.computation),
        "communication": spread(costs.communication),
        "messages": spread(costs.messages),
        "bytes": spread(costs.bytes),
        "collectives": spread(costs.collectives),
        "collective_bytes": spread(costs.collective_bytes),
    })
}

/// What a division costs.
fn quality(q: Quality) -> Value {
    json!({
        "cut": q.cut,
        "interface": q.interface,
        "rows": {"least": q.rows.0, "most": q.rows.1},
        "row_balance": q.row_balance,
        "entry_balance": q.entry_balance,
    })
}

/// `1 state`, `2 states`.
pub fn plural(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Bytes of a rank in words: least, mean, most.
fn peak_in_words(peak: Spread) -> String {
    let [least, mean, most] = [peak.least, peak.mean, peak.most].map(|bytes| memory::in_words(bytes as u64));
    format!("least {least}, mean {mean}, most {most}")
}

/// Wall times in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seconds {
    pub read: f64,
    pub setup: f64,
    pub solve: f64,
    pub total: f64,
}

impl Facts<'_> {
    /// The JSON object: the fields of `blocktri solve`, and `ranks`, `partition`, `quality`, `local`, `per_rank`.
    pub fn to_json(&self) -> Value {
        let costs = self.costs;
        let system = json!({
            "schema": 1,
            "file": self.file.display().to_string(),
            "scalar": self.scalar.to_string(),
            "n": self.n,
            "nnz": self.nnz,
            "nrhs": self.nrhs,
            "blocks": self.blocks.map(|count| json!({"count": count})),
            "ranks": costs.n_ranks,
            "partition": self.partition,
            "quality": self.quality.map(quality),
            "method_requested": self.method_requested,
            "precond": self.precond,
            "local": self.local,
            "reorder": "none",
            "device": if self.gpus.is_some() { "gpu" } else { "cpu" },
            "gpus": self.gpus,
            "threads": self.threads,
            "seed": self.seed,
        });
        let run = json!({
            "forward_error": self.forward_error,
            "rcond": null,
            "seconds": {
                "read": self.seconds.read,
                "reorder": 0.0,
                "setup": self.seconds.setup,
                "solve": self.seconds.solve,
                "total": self.seconds.total,
            },
            "peak_memory": spread(self.peak),
            "per_rank": per_rank(costs),
            "notes": self.notes,
        });
        self.report.to_json(system, run)
    }

    /// A page for people.
    pub fn to_text(&self) -> String {
        let (report, certificate) = (self.report, self.report.certificate);
        let mut text = format!(
            "{}: n = {}, nnz = {}, {}, {}\n",
            self.file.display(),
            self.n,
            self.nnz,
            self.scalar,
            plural(self.nrhs, "right-hand side")
        );
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "  {name:<18} {value}");
        };
        line("ranks", format!("{}, {}, {} each", self.costs.n_ranks, self.partition, plural(self.threads, "thread")));
        if let Some(quality) = self.quality {
            line("partition", quality.to_string());
        }
        line("method", report.method.to_owned());
        if let Some(local) = &self.local {
            line("preconditioner", format!("{}, {local} on each rank", self.precond));
        }
        for (name, ranks) in self.gpus.iter().flat_map(|gpus| shared(gpus)) {
            line("GPU", format!("{name}: {ranks}"));
        }
        if let Some(blocks) = self.blocks {
            line("blocks", blocks.to_string());
        }
        line("outcome", format!("{}, {}", report.outcome.name(), plural(report.iterations, "iteration")));
        line("relative residual", format!("{:.2e}   ‖b − Ax‖₂ / ‖b‖₂", certificate.relative_residual));
        line("backward error", format!("{:.2e}   ‖b − Ax‖∞ / (‖A‖∞‖x‖∞ + ‖b‖∞)", certificate.backward_error));
        line(
            "  componentwise",
            format!("{:.2e}   max |b − Ax| / (|A||x| + |b|)", certificate.componentwise_backward_error),
        );
        if let Some(error) = self.forward_error {
            line("forward error", format!("{error:.2e}   ‖x − x*‖∞ / ‖x*‖∞, b = A·x*"));
        }
        let Seconds { read, setup, solve, total } = self.seconds;
        line("time", format!("read {read:.3} s, setup {setup:.3} s, solve {solve:.3} s, total {total:.3} s"));
        let bytes = |count: usize| memory::in_words(count as u64);
        line(
            "memory",
            format!(
                "matrix {}, factors {}, workspace {}, over all ranks",
                bytes(report.bytes.matrix),
                bytes(report.bytes.factors),
                bytes(report.bytes.workspace)
            ),
        );
        line("  peak of a rank", peak_in_words(self.peak));
        if let Some(output) = self.output {
            line("solution", output.display().to_string());
        }
        for note in &self.notes {
            line("note", note.clone());
        }
        // Setup and solve.
        text.push_str(&self.costs.to_string());
        text
    }
}

/// Each GPU once, and which ranks have one of that number and name.
fn shared(gpus: &[String]) -> Vec<(&str, String)> {
    let mut names: Vec<&str> = gpus.iter().map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let ranks = |name: &str| {
        let own: Vec<_> = (0..gpus.len()).filter(|&rank| gpus[rank] == name).map(|rank| rank.to_string()).collect();
        format!("rank{} {}", if own.len() == 1 { "" } else { "s" }, own.join(", "))
    };
    names.into_iter().map(|name| (name, ranks(name))).collect()
}

/// Everything the report of a chain says.
pub struct ChainFacts<'a> {
    pub file: &'a Path,
    pub n: usize,
    pub nnz: u64,
    pub pi: &'a StationaryDistribution,
    /// Of the slowest rank.
    pub seconds: Seconds,
    /// Of all ranks: the matrix, and what was eliminated.
    pub bytes: [u64; 2],
    pub costs: &'a Costs,
    /// Bytes that a rank has held at most: least, mean, most of the ranks.
    pub peak: Spread,
    pub notes: Vec<String>,
    pub output: Option<&'a Path>,
}

impl ChainFacts<'_> {
    /// What is known of the error of each probability.
    fn certified(&self) -> String {
        match self.pi.outcome() {
            Outcome::Converged => {
                format!("every probability to a relative error of at most {:.1e}", self.pi.error_bound())
            }
            _ => "not certified, the flows of a state do not balance".into(),
        }
    }

    /// The JSON object: the fields of `blocktri queue --generator`, and `ranks`, `peak_memory`, `per_rank`.
    pub fn to_json(&self) -> Value {
        let (pi, (state, probability)) = (self.pi, self.pi.mode());
        json!({
            "schema": 1,
            "file": self.file.display().to_string(),
            "n": self.n,
            "nnz": self.nnz,
            "ranks": self.costs.n_ranks,
            "recurrent": pi.recurrent(),
            "method": "gth",
            "outcome": pi.outcome().name(),
            "iterations": 0,
            "residual": pi.residual(),
            "relative_residual": pi.relative_residual(),
            "balance": pi.balance(),
            "error_bound": pi.error_bound(),
            "certified": pi.outcome() == Outcome::Converged,
            "log10_min": pi.least().log10(),
            "mode": {"state": state, "probability": probability.to_f64()},
            "seconds": {"read": self.seconds.read, "solve": self.seconds.solve, "total": self.seconds.total},
            "bytes": {"matrix": self.bytes[0], "factors": self.bytes[1]},
            "peak_memory": spread(self.peak),
            "per_rank": per_rank(self.costs),
            "notes": self.notes,
        })
    }

    /// A page for people.
    pub fn to_text(&self) -> String {
        let (pi, (state, probability)) = (self.pi, self.pi.mode());
        let recurrent = if pi.recurrent() == self.n as u64 { "all".into() } else { pi.recurrent().to_string() };
        let mut text = format!("{}: {}, {recurrent} recurrent\n", self.file.display(), plural(self.n, "state"));
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "  {name:<18} {value}");
        };
        line("ranks", self.costs.n_ranks.to_string());
        line("most probable", format!("state {state} (from 0): {:.6}", probability.to_f64()));
        line("least probable", format!("10^{:.2}", pi.least().log10()));
        line("method, outcome", format!("gth, {}", pi.outcome().name()));
        line("residual", format!("{:.2e}   ‖πQ‖₁; worst balance of one state {:.2e}", pi.residual(), pi.balance()));
        line("accuracy", self.certified());
        let Seconds { read, solve, total, .. } = self.seconds;
        line("time", format!("read {read:.3} s, solve {solve:.3} s, total {total:.3} s"));
        let [matrix, factors] = self.bytes.map(memory::in_words);
        line("memory", format!("matrix {matrix}, factors {factors}, over all ranks"));
        line("  peak of a rank", peak_in_words(self.peak));
        if let Some(output) = self.output {
            line("written", format!("{}: π in the order of the file", output.display()));
        }
        for note in &self.notes {
            line("note", note.clone());
        }
        text.push_str(&self.costs.to_string());
        text
    }
}
