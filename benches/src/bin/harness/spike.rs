//! SPIKE in the races of kind band: `blocktri-spike-P` with P partitions and a recursive reduced system,
//! `blocktri-spike-truncated-P`. What truncation drops shows in the error, which is that of one solve, not refined.

use bt_direct::spike::{PartitionSolver, Partitions, ReducedSystem};
use bt_direct::{Factorization, Spike, SpikeOptions};
use bt_formats::Band;

/// The variants that can factor the matrix.
pub fn contestants(case: &str, a: &Band<f64>) -> Vec<(&'static str, Box<dyn Factorization<f64>>)> {
    let truncated = ReducedSystem::truncated::<f64>();
    let variants = [
        ("blocktri-spike-1", 1, ReducedSystem::Recursive),
        ("blocktri-spike-2", 2, ReducedSystem::Recursive),
        ("blocktri-spike-4", 4, ReducedSystem::Recursive),
        ("blocktri-spike-truncated-2", 2, truncated),
        ("blocktri-spike-truncated-4", 4, truncated),
    ];
    let mut out: Vec<(&'static str, Box<dyn Factorization<f64>>)> = Vec::new();
    for (name, p, reduced) in variants {
        let partitions = Partitions::Balanced(p);
        let options = SpikeOptions { partitions, reduced, solver: PartitionSolver::Pivoted, ..SpikeOptions::default() };
        match Spike::with_options(a, &options, &mut ()) {
            Ok(spike) => out.push((name, Box::new(spike))),
            Err(why) => eprintln!("{case}, {name}: {why}"),
        }
    }
    out
}
