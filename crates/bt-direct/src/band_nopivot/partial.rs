//! Factors of partitions, see `band_lu/partial.rs`.

use std::ops::Range;

use super::{BandLuNoPivot, Boosting, Storage};
use crate::band_lu::source::Source;
use crate::error::Result;
use bt_formats::{Monitor, Scalar};

impl<T: Scalar> BandLuNoPivot<T> {
    /// The memory for factors of any n × n matrix with these bandwidths; solves mean nothing before a factorization.
    pub(crate) fn empty(n: usize, kl: usize, ku: usize, boosting: Option<Boosting>) -> Result<Self> {
        Self::allocate(n, kl, ku, Some(Storage::zeros(n, kl, ku)?), boosting)
    }

    /// Factors the matrix whose columns `fill(column, rows, values)` writes.
    pub(crate) fn refactor_from(
        &mut self,
        mut fill: impl FnMut(usize, Range<usize>, &mut [T]),
        monitor: &mut dyn Monitor,
    ) -> Result<()> {
        for j in 0..self.n {
            let rows = self.rows_of(j);
            let start = self.at(rows.start, j);
            fill(j, rows.clone(), &mut self.values[start..start + rows.len()]);
        }
        self.factor(Source::Here, monitor)
    }
}
