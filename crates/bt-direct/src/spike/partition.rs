//! How the rows are cut, and what stands at the cuts.
//!
//! ```text
//! rows of partition i      | interior ........ | b |
//!                                                    ← split
//! rows of partition i + 1                          | t | interior ........ |
//!
//!         B: the last rb rows of partition i, in the columns of t     C: the first rc rows of partition i + 1, in the
//!                                                                        columns of b
//! ```
//!
//! Bands: t = rb = ku rows, b = rc = kl rows. Block-tridiagonal matrices: b = rb is the last block of a partition,
//! t = rc the first block of the next.
//!
//! The first and the last partition have one spike, the others two and more work; balanced sizes even that out. All of
//! it follows from the sizes alone, so that results do not depend on the number of threads.

use std::ops::Range;

use bt_formats::Error;

use crate::error::Result;

/// How many partitions there are, and how long they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Partitions {
    /// Two where both are long enough to be worth it (64 half-bandwidths or 8 blocks each), else one: with two
    /// partitions SPIKE does the work of the plain solver once, from both ends.
    #[default]
    Auto,
    /// That many, of sizes that even out the work of the factorization; fewer when they would be too short.
    Balanced(usize),
    /// That many of equal sizes (to within a row, or a block); fewer when they would be too short.
    Even(usize),
    /// One for each thread of the current rayon pool, balanced. The only choice under which results depend on the number
    /// of threads, in their last bits.
    PerThread,
    /// These sizes, in rows (bands) or in blocks.
    Sizes(Vec<usize>),
}

/// A cut between two partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    /// First row after it.
    pub(super) split: usize,
    /// Rows of b and t.
    pub(super) nb: usize,
    pub(super) nt: usize,
    /// Rows of B and C.
    pub(super) rb: usize,
    pub(super) rc: usize,
}

impl Interface {
    /// Beside the first partition and the last.
    pub(super) const NONE: Self = Self { split: 0, nb: 0, nt: 0, rb: 0, rc: 0 };

    /// Unknowns of the reduced system here: b, then t.
    pub(super) fn order(&self) -> usize {
        self.nb + self.nt
    }
    pub(super) fn rows(&self) -> Range<usize> {
        self.split - self.nb..self.split + self.nt
    }
    pub(super) fn b(&self) -> Range<usize> {
        self.split - self.nb..self.split
    }
    pub(super) fn t(&self) -> Range<usize> {
        self.split..self.split + self.nt
    }
}

/// Partitions and the cuts between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// First row of each partition, and n.
    pub(super) starts: Vec<usize>,
    pub(super) interfaces: Vec<Interface>,
}

impl Layout {
    pub(super) fn p(&self) -> usize {
        self.starts.len() - 1
    }
    pub(super) fn rows(&self, j: usize) -> Range<usize> {
        self.starts[j]..self.starts[j + 1]
    }
    pub(super) fn n(&self) -> usize {
        self.starts[self.p()]
    }
    /// The cut before partition j.
    pub(super) fn left(&self, j: usize) -> Option<Interface> {
        j.checked_sub(1).map(|i| self.interfaces[i])
    }
    /// The cut after partition j.
    pub(super) fn right(&self, j: usize) -> Option<Interface> {
        self.interfaces.get(j).copied()
    }
    /// Unknowns of the reduced system.
    pub(super) fn reduced_order(&self) -> usize {
        self.interfaces.iter().map(Interface::order).sum()
    }
}

/// Sizes of the partitions of `units` rows (or blocks), each at least `least`; one partition may have any size.
/// `weight`: work of a row in a middle partition, in units of that of a row in the first or last.
pub(super) fn sizes(how: &Partitions, units: usize, least: usize, worth: usize, weight: f64) -> Result<Vec<usize>> {
    let least = least.max(1);
    let most = (units / least).max(1);
    let count = |p: usize| p.clamp(1, most);
    Ok(match how {
        Partitions::Auto => balanced(units, if units >= 2 * worth.max(least) { 2 } else { 1 }, least, weight),
        Partitions::Balanced(p) => balanced(units, count(*p), least, weight),
        Partitions::Even(p) => balanced(units, count(*p), least, 1.0),
        Partitions::PerThread => balanced(units, count(rayon::current_num_threads()), least, weight),
        Partitions::Sizes(sizes) => {
            let sum = sizes.iter().try_fold(0usize, |sum, &k| sum.checked_add(k));
            let short = sizes.iter().position(|&k| k < least).filter(|_| sizes.len() > 1);
            let why = match short {
                _ if sum != Some(units) => format!("they do not sum to {units}"),
                Some(j) => format!("partition {j} (from 0) has {}, at least {least} are needed", sizes[j]),
                None => return Ok(if sizes.is_empty() { vec![0] } else { sizes.clone() }),
            };
            return Err(Error::InvalidStructure { what: "partition sizes", why }.into());
        }
    })
}

/// Sizes in proportion 1 for the ends and 1/weight between them, none below `least`.
fn balanced(units: usize, p: usize, least: usize, weight: f64) -> Vec<usize> {
    let share = |j: usize| if j == 0 || j + 1 == p { 1.0 } else { 1.0 / weight };
    let total: f64 = (0..p).map(share).sum();
    // What exceeds the least sizes is dealt out, rounded on the running sum so that nothing is lost.
    let wanted = |j: usize| units as f64 * share(j) / total;
    let extra: f64 = (0..p).map(|j| (wanted(j) - least as f64).max(0.0)).sum();
    let spare = (units - if p > 1 { p * least } else { 0 }) as f64;
    let (mut sum, mut dealt) = (0.0, 0usize);
    (0..p)
        .map(|j| {
            if p == 1 {
                return units;
            }
            sum += if extra > 0.0 { (wanted(j) - least as f64).max(0.0) / extra } else { 1.0 / p as f64 };
            let now = if j + 1 == p { spare as usize } else { ((spare * sum).round() as usize).min(spare as usize) };
            let size = least + now - dealt;
            dealt = now;
            size
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_by_hand() {
        // Ends twice as long as the middle: 2 + 1 + 1 + 2 shares of 10 rows.
        assert_eq!(sizes(&Partitions::Balanced(4), 60, 4, 100, 2.0).unwrap(), [20, 10, 10, 20]);
        assert_eq!(sizes(&Partitions::Even(4), 61, 4, 100, 2.0).unwrap(), [15, 16, 15, 15]);
        // Never below the least, never more than fit.
        assert_eq!(sizes(&Partitions::Even(9), 10, 4, 100, 1.0).unwrap(), [5, 5]);
        assert_eq!(sizes(&Partitions::Balanced(3), 12, 4, 100, 5.0).unwrap(), [4, 4, 4]);
        assert_eq!(sizes(&Partitions::Even(3), 3, 4, 100, 1.0).unwrap(), [3]);
        assert_eq!(sizes(&Partitions::Auto, 199, 4, 100, 1.0).unwrap(), [199]);
        assert_eq!(sizes(&Partitions::Auto, 200, 4, 100, 1.0).unwrap(), [100, 100]);
        assert_eq!(sizes(&Partitions::Sizes(vec![4, 8]), 12, 4, 100, 1.0).unwrap(), [4, 8]);
        assert_eq!(sizes(&Partitions::Even(2), 0, 4, 100, 1.0).unwrap(), [0]);
    }

    #[test]
    fn unusable_sizes_are_refused() {
        for (wrong, why) in [(vec![4, 7], "sum"), (vec![3, 9], "partition 0"), (vec![9, 3], "partition 1")] {
            let error = sizes(&Partitions::Sizes(wrong), 12, 4, 100, 1.0).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn every_count_fits() {
        for units in 0..50 {
            for p in 1..12 {
                for weight in [1.0, 2.0, 5.0] {
                    let found = sizes(&Partitions::Balanced(p), units, 3, 100, weight).unwrap();
                    assert_eq!(found.iter().sum::<usize>(), units);
                    assert_eq!(found.len(), p.min((units / 3).max(1)));
                    assert!(found.len() == 1 || found.iter().all(|&k| k >= 3), "{found:?}");
                }
            }
        }
    }
}
