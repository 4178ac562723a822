//! Connected components, each weighed, ordered, scaled and factored by itself, as `auto` does with a matrix.
//!
//! P·A·Pᵀ = diag(A₁, …, Aₘ) for the components of the graph of A + Aᵀ (R. E. Tarjan, J. ACM 22 (1975) 215–225,
//! doi:10.1145/321879.321884). Weighing takes some microseconds a part, which a few rows do not: the components of fewer than [`FEW`] rows
//! are one part together, whose reverse Cuthill–McKee order is a band narrower than that.
//!
//! Storage: the factors of the parts, two permutations. Cost: near O(nnz) to find the components, and the sum of the parts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use bt_direct::{Components, FactorError, Factorization};
use bt_formats::{Csr, Matrix, Monitor, Note, Partition, Permutation, Scalar, detect, memory};
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::auto::automatic;
use crate::cost::{Machine, Work};
use crate::direct::{Direct, Made};
use crate::error::Error;
use crate::method::Precision;
use crate::options::{Blocks, Reorder, SolveOptions};
use crate::plan::{Candidate, Depth, Plan, plan};

/// Rows up to which components are taken together.
const FEW: usize = 32;

/// The rows of A by parts, and what is known of each.
pub(crate) struct Parts {
    order: Permutation,
    partition: Partition,
    components: usize,
    /// One for each part once they are weighed.
    plans: Vec<Plan>,
}

/// What the parts take together.
pub(crate) struct Weighed {
    /// Sums, and the kernel of the part that takes longest.
    pub work: Work,
    pub seconds: f64,
    pub bytes: u64,
    pub structure: String,
}

impl Parts {
    /// The components of many rows, by their first rows, and one part of all others.
    pub fn of<T: Scalar>(a: &Csr<T>) -> Result<Self, Error> {
        let (order, found) = detect::components(a)?;
        let rows = |k: usize| &order.order()[found.range(k)];
        let (large, small): (Vec<_>, Vec<_>) = (0..found.n_blocks()).partition(|&k| found.size(k) >= FEW);
        let mut rest: Vec<u32> = small.into_iter().flat_map(rows).copied().collect();
        rest.sort_unstable();
        let sizes = large.iter().map(|&k| found.size(k)).chain(Some(rest.len()).filter(|&n| n > 0));
        let partition = Partition::from_sizes(sizes)?;
        let order = Permutation::from_order(large.iter().flat_map(|&k| rows(k)).copied().chain(rest).collect())?;
        Ok(Self { order, partition, components: found.n_blocks(), plans: Vec::new() })
    }

    pub fn len(&self) -> usize {
        self.partition.n_blocks()
    }

    /// Entries of the part that has most.
    pub fn most_entries<T: Scalar>(&self, a: &Csr<T>) -> usize {
        let of_part = |k| self.order.order()[self.partition.range(k)].iter().map(|&i| a.row(i as usize).0.len()).sum();
        (0..self.len()).map(of_part).max().unwrap_or(0)
    }

    /// With the methods for each part.
    pub fn weighed<T: Scalar>(self, a: &Csr<T>) -> Result<Self, Error> {
        let of_part = |k: usize| -> Result<Plan, Error> {
            let part = Components::part(a, &self.order, &self.partition, k)?;
            plan(&part, Reorder::Auto, &Blocks::Detect, Depth::All)
        };
        let plans = (0..self.len()).into_par_iter().map(of_part).collect::<Result<_, _>>()?;
        Ok(Self { plans, ..self })
    }

    /// By the fastest direct method of each part. Their seconds are counted as if one followed the other, so that threads decide nothing.
    pub fn sum<T: Scalar>(&self, a: &Csr<T>) -> Weighed {
        let parts: Vec<&Candidate> =
            self.plans.iter().map(|plan| plan.first_direct().expect("a direct method for every matrix")).collect();
        let longest = parts.iter().max_by(|c, d| c.seconds.total_cmp(&d.seconds)).expect("more parts than one");
        let sum = |count: fn(&Candidate) -> f64| parts.iter().map(|c| count(c)).sum::<f64>();
        let machine = Machine::here();
        Weighed {
            work: Work {
                kernel: longest.work.kernel,
                steps: sum(|c| c.work.steps),
                flops: sum(|c| c.work.flops),
                moved: sum(|c| c.work.moved),
                ordered: sum(|c| c.work.ordered),
                analysed: sum(|c| c.work.analysed),
            },
            seconds: machine.entry * a.nnz() as f64 + self.len() as f64 * machine.call + sum(|c| c.seconds),
            bytes: a.bytes() as u64 + parts.iter().map(|c| c.bytes).sum::<u64>(),
            structure: self.in_words(parts.iter().map(|c| c.method.name())),
        }
    }

    /// "3 components: dense-lu, thomas (2)".
    fn in_words(&self, methods: impl Iterator<Item = &'static str>) -> String {
        let taken_together =
            if self.len() == self.components { String::new() } else { format!(" in {} parts", self.len()) };
        format!("{} components{taken_together}: {}", self.components, counted(methods))
    }
}

/// Names, each with how often it is there.
fn counted(names: impl Iterator<Item = &'static str>) -> String {
    let mut counts = BTreeMap::new();
    names.for_each(|name| *counts.entry(name).or_insert(0) += 1);
    let told = |(name, count): (&str, usize)| if count == 1 { name.to_owned() } else { format!("{name} ({count})") };
    counts.into_iter().map(told).collect::<Vec<_>>().join(", ")
}

/// The factors of each part by the fastest method that factors it, the parts as they are `known` where they are.
pub(crate) fn factor<T: Scalar>(
    a: &Csr<T>,
    known: Option<&Parts>,
    monitor: &mut dyn Monitor,
) -> Result<Made<T>, Error> {
    let found;
    let Parts { order, partition, components, plans } = if let Some(parts) = known {
        parts
    } else {
        found = Parts::of(a)?.weighed(a)?;
        &found
    };
    let options = SolveOptions::default();
    let unseen = AtomicU64::new(0);
    let best = |k: usize, part: &Csr<T>, monitor: &mut dyn Monitor| {
        let made = ask_with_others(&plans[k], &unseen)
            .and_then(|()| automatic(part, Precision::Working, &options, &plans[k], None, &mut Vec::new(), monitor));
        Ok(made.map_err(of_part)?.factors.into_inner())
    };
    let made = Components::with_options(a, order.clone(), partition.clone(), best, monitor)?;
    let methods = counted(made.parts().map(Factorization::method));
    let note = Note::Components { components: *components, parts: made.parts().len(), methods };
    Ok(Made::new(made, a.bytes()).noted([note]))
}

/// Bytes of small parts at which memory is asked for them together: for each alone nobody looks.
const MANY: u64 = 64 << 20;

/// Asks for the memory of the factors that are made first, with those of parts that were not asked for yet.
fn ask_with_others(plan: &Plan, unseen: &AtomicU64) -> Result<(), Error> {
    let own = plan.first_direct().map_or(0, |c| c.bytes);
    let together = unseen.fetch_add(own, Ordering::Relaxed) + own;
    if together >= MANY {
        unseen.store(0, Ordering::Relaxed);
        memory::ask(together, "the factors of components")?;
    }
    Ok(())
}

/// As a factorization tells it.
fn of_part(error: Error) -> FactorError {
    match error {
        Error::Singular(place) => FactorError::Singular(place),
        Error::Factor(error) => error,
        Error::Input(error) => error.into(),
        other => FactorError::Failed { method: Direct::Components.name(), reason: other.to_string() },
    }
}
