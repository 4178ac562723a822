//! Stationary distributions, cases q1 and q1-dense. Contestant `blocktri-gth`.
//!
//! One phase: everything from the checked generator to π with its residual. The error is the largest relative imbalance of a
//! state.

use bt_formats::Coo;
use bt_queue::{Generator, Stationary};

use crate::measure::{Contestant, Floor, race};
use crate::problem::Problem;
use crate::{Args, Result};

struct Gth {
    q: Generator,
    pi: Option<Stationary>,
}

impl Contestant for Gth {
    fn name(&self) -> &'static str {
        "blocktri-gth"
    }
    fn phases(&self) -> &'static [&'static str] {
        &["solve"]
    }
    fn run(&mut self, _: usize) -> Result<()> {
        self.pi = Some(Stationary::gth(&self.q)?);
        Ok(())
    }
    fn error(&self) -> f64 {
        self.pi.as_ref().map_or(f64::NAN, Stationary::balance)
    }
}

/// Times the stationary distribution.
pub fn run(problem: &Problem, args: &Args) -> Result<()> {
    let n = problem.size("n")?;
    let mut coo = Coo::new(n, n)?;
    let mut push = |i: usize, j: usize, rate: f64| coo.push(i, j, rate);
    let floor = if problem.kind() == "dense" {
        for (at, rate) in problem.reals("q")?.into_iter().enumerate() {
            push(at / n, at % n, rate)?;
        }
        Floor { flops: 2.0 / 3.0 * (n as f64).powi(3), bytes: 8.0 * (n as f64).powi(2) }
    } else {
        let (k, m) = (problem.size("k")?, problem.size("m")?);
        // Blocks [level, from, to].
        for (name, from, to) in [("q_local", 0, 0), ("q_up", 0, 1), ("q_down", 1, 0)] {
            for (at, rate) in problem.reals(name)?.into_iter().enumerate() {
                let (level, i, j) = (at / (k * k), at / k % k, at % k);
                push((level + from) * k + i, (level + to) * k + j, rate)?;
            }
        }
        let blocks = (m * k * k) as f64;
        Floor { flops: blocks * (14.0 / 3.0 * k as f64 + 6.0), bytes: 48.0 * blocks }
    };
    let q = Generator::new(coo.to_csr()?)?;
    race(&problem.case, n, floor, args, vec![Box::new(Gth { q, pi: None })])
}
