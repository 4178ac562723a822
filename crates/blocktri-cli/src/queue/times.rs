//! Distributions of a given chain at the times asked for.

use blocktri::{CancelToken, Partition};
use bt_queue::{Distribution, Generator, TimeUnit, transient};
use serde_json::{Value, json};

use super::report::distribution;
use super::words::{given_time, number};
use super::{LEFT_OUT, failure, given};
use crate::args::QueueArgs;
use crate::exit::Result;
use crate::progress::Watch;
use crate::report::Page;

/// Distributions of more states are not listed.
const MOST_LISTED: usize = 1000;

/// A time, the distribution of the states, and that of the levels where there are any.
pub struct Times(Vec<(f64, Vec<f64>, Option<Distribution>)>);

impl Times {
    /// From the start asked for.
    ///
    /// # Errors
    /// On a start that is none, times that do not increase, and when stopped.
    pub fn new(
        q: &Generator,
        levels: Option<&Partition>,
        args: &QueueArgs,
        watch: &mut Watch,
        cancel: &CancelToken,
    ) -> Result<Self> {
        if args.times.is_empty() {
            return Ok(Self(Vec::new()));
        }
        let start = given::start(args, q.n(), cancel)?;
        let all = transient(q, &start, &args.times, LEFT_OUT, watch).map_err(|e| failure(&e, None))?;
        let row = |(&t, p): (&f64, Vec<f64>)| {
            let levels = levels.map(|levels| by_level(levels, |i| p[i]));
            (t, p, levels)
        };
        Ok(Self(args.times.iter().zip(all).map(row).collect()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A row for each time.
    pub fn to_json(&self) -> Value {
        let row = |(t, p, levels): &(f64, Vec<f64>, Option<Distribution>)| {
            let (mode, levels) = (largest(p), levels.as_ref().map(distribution));
            let all = (p.len() <= MOST_LISTED).then_some(p);
            json!({ "time": t, "mode": { "state": mode, "probability": p[mode] }, "levels": levels, "probabilities": all })
        };
        self.0.iter().map(row).collect()
    }

    /// A line for each time.
    pub fn lines(&self, page: &mut Page, unit: TimeUnit) {
        for (t, p, levels) in &self.0 {
            let mode = largest(p);
            let levels = levels.as_ref().map_or(String::new(), |l| format!(", mean level {}", number(l.mean())));
            let name = format!("at {}", given_time(*t, unit));
            page.line(&name, format_args!("most probable state {mode}: {}{levels}", number(p[mode])));
        }
    }
}

/// Probabilities summed by level.
pub fn by_level(levels: &Partition, probability: impl Fn(usize) -> f64) -> Distribution {
    Distribution::new(0, (0..levels.n_blocks()).map(|j| levels.range(j).map(&probability).sum()).collect())
}

/// The first of the largest.
fn largest(p: &[f64]) -> usize {
    (1..p.len()).fold(0, |m, i| if p[i] > p[m] { i } else { m })
}
