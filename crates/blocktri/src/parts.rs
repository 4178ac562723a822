//! The rows of a matrix by its connected components.
//!
//! P·A·Pᵀ = diag(A₁, …, Aₘ) for the components of the graph of A + Aᵀ (R. E. Tarjan, J. ACM 22 (1975) 215–225,
//! doi:10.1145/321879.321884). Weighing takes some microseconds a part, which a few rows do not: the components of fewer than [`FEW`] rows
//! are one part together, whose reverse Cuthill–McKee order is a band narrower than that.
//!
//! Cost: near O(nnz).

use std::collections::BTreeMap;

use bt_formats::{Csr, Partition, Permutation, Scalar, detect};

use crate::error::Error;

/// Rows up to which components are taken together.
const FEW: usize = 32;

/// The rows of A by parts.
pub(crate) struct Parts {
    pub order: Permutation,
    pub partition: Partition,
    pub components: usize,
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
        Ok(Self { order, partition, components: found.n_blocks() })
    }

    pub fn len(&self) -> usize {
        self.partition.n_blocks()
    }

    /// Entries of the part that has most.
    pub fn most_entries<T: Scalar>(&self, a: &Csr<T>) -> usize {
        let of_part = |k| self.order.order()[self.partition.range(k)].iter().map(|&i| a.row(i as usize).0.len()).sum();
        (0..self.len()).map(of_part).max().unwrap_or(0)
    }

    /// "3 components: dense-lu, thomas (2)".
    pub fn in_words(&self, methods: impl Iterator<Item = &'static str>) -> String {
        let taken_together =
            if self.len() == self.components { String::new() } else { format!(" in {} parts", self.len()) };
        format!("{} components{taken_together}: {}", self.components, counted(methods))
    }
}

/// Names, each with how often it is there.
pub(crate) fn counted(names: impl Iterator<Item = &'static str>) -> String {
    let mut counts = BTreeMap::new();
    names.for_each(|name| *counts.entry(name).or_insert(0) += 1);
    let told = |(name, count): (&str, usize)| if count == 1 { name.to_owned() } else { format!("{name} ({count})") };
    counts.into_iter().map(told).collect::<Vec<_>>().join(", ")
}
