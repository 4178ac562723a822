//! Factors of partitions, see `band_lu/partial.rs`.

use std::ops::Range;

use super::{BandCholesky, Source};
use crate::error::Result;
use crate::memory::zeros;
use bt_formats::{Monitor, Scalar};

impl<T: Scalar> BandCholesky<T> {
    /// The memory for factors of any n × n matrix with this half-bandwidth; solves mean nothing before a factorization.
    pub(crate) fn empty(n: usize, k: usize) -> Result<Self> {
        Self::allocate(n, k, k + 1, 0, zeros(n.saturating_mul(k + 1))?)
    }

    /// Factors the Hermitian matrix whose columns, from the diagonal down, `fill(column, rows, values)` writes.
    pub(crate) fn refactor_from(
        &mut self,
        mut fill: impl FnMut(usize, Range<usize>, &mut [T]),
        monitor: &mut dyn Monitor,
    ) -> Result<()> {
        for j in 0..self.n {
            let rows = j..(j + self.k + 1).min(self.n);
            let start = self.at(j, j);
            fill(j, rows.clone(), &mut self.values[start..start + rows.len()]);
        }
        self.factor(Source::Here, monitor)
    }
}
