//! The order of elimination: from both ends towards a middle block.
//!
//! ```text
//! 0 → 1 → … → middle ← … ← m − 2 ← m − 1
//! ```
//!
//! The two chains touch different block rows and meet only in the middle, so two threads can run them; the flops are
//! those of one chain. Twisted factorization: van der Vorst, Parallel Comput. 5 (1987) 45–54,
//! doi:10.1016/0167-8191(87)90005-6. The middle depends on the block sizes alone.

use std::ops::Range;

use bt_formats::Partition;

/// Block sizes, and where each block goes.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) partition: Partition,
    /// The block eliminated last; 0 for an empty partition.
    pub(crate) middle: usize,
    /// Rows of the smallest block and of the largest; 0 for an empty partition.
    pub(crate) sizes: (usize, usize),
}

impl Order {
    pub(crate) fn new(partition: Partition) -> Self {
        let middle = middle_of(&partition);
        let sizes = partition.min_max_size();
        Self { partition, middle, sizes }
    }

    /// One chain, from the first block to the last.
    pub(crate) fn forwards(partition: Partition) -> Self {
        let middle = partition.n_blocks().saturating_sub(1);
        let sizes = partition.min_max_size();
        Self { partition, middle, sizes }
    }

    pub(crate) fn n_blocks(&self) -> usize {
        self.partition.n_blocks()
    }

    /// The neighbour that is eliminated after block j; none after the middle.
    pub(crate) fn toward(&self, j: usize) -> Option<usize> {
        match j.cmp(&self.middle) {
            std::cmp::Ordering::Less => Some(j + 1),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(j - 1),
        }
    }

    /// Rows of block j.
    pub(crate) fn size(&self, j: usize) -> usize {
        self.partition.size(j)
    }

    /// Rows of the neighbour eliminated after block j; 0 for the middle.
    pub(crate) fn next_size(&self, j: usize) -> usize {
        self.toward(j).map_or(0, |t| self.size(t))
    }

    /// First row of each block and n, as row numbers.
    pub(crate) fn rows(&self, j: usize) -> Range<usize> {
        self.partition.range(j)
    }

    /// Rows before the middle block, of it, after it.
    pub(crate) fn split_rows(&self) -> [usize; 3] {
        if self.n_blocks() == 0 {
            return [0; 3];
        }
        let middle = self.rows(self.middle);
        [middle.start, middle.len(), self.partition.n() - middle.end]
    }
}

/// The first block by whose end half of the work is done.
pub(crate) fn middle_of(partition: &Partition) -> usize {
    // Work of a block, up to a factor: ⅔k³ + 4k³ for neighbours of its size.
    let cube = |k: usize| (k as f64).powi(3);
    let total: f64 = partition.sizes().map(cube).sum();
    let mut sum = 0.0;
    let middle = partition.sizes().position(|k| {
        sum += cube(k);
        2.0 * sum > total
    });
    middle.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn middle(sizes: &[usize]) -> usize {
        Order::new(Partition::from_sizes(sizes.iter().copied()).unwrap()).middle
    }

    #[test]
    fn the_middle_halves_the_work() {
        assert_eq!(middle(&[]), 0);
        assert_eq!(middle(&[5]), 0);
        assert_eq!(middle(&[3, 3]), 1);
        assert_eq!(middle(&[3; 7]), 3);
        assert_eq!(middle(&[1, 1, 1, 9]), 3);
        assert_eq!(middle(&[9, 1, 1, 1]), 0);
    }

    #[test]
    fn both_ends_lead_to_the_middle() {
        let order = Order::new(Partition::from_sizes([2, 3, 4, 3, 1]).unwrap());
        let toward: Vec<_> = (0..5).map(|j| order.toward(j)).collect();
        assert_eq!(toward, [Some(1), Some(2), None, Some(2), Some(3)]);
        assert_eq!(order.next_size(4), 3);
        assert_eq!(order.split_rows(), [5, 4, 4]);
    }
}
