//! Where an end takes A from: the place of its factors, a band, or compressed rows. Of rows it writes some columns at a time, shortly before
//! their steps, where they stay in a cache: no copy of A is made.

use std::ops::Range;

use bt_formats::{Band, Csr, Scalar, zero};

use super::end::{Direction, End};
use crate::error::Result;
use crate::memory::reserve;

/// Numbers written at a time, about: they stay in a second-level cache.
const NUMBERS: usize = 1 << 16;
/// Columns behind those that steps reach which are measured before, at most.
pub(crate) const AHEAD: usize = 96;

/// A, as an elimination is given it.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a, T: Scalar> {
    /// In the place of the factors.
    Here,
    /// Columns in LAPACK's layout.
    Band(&'a [T]),
    Rows(&'a Csr<T>),
}

impl<T: Scalar> Source<'_, T> {
    /// Columns eliminated at a time, whole strips of so many.
    pub(crate) fn columns_at_once(self, bandwidths: usize, strip: usize) -> usize {
        match self {
            Self::Here | Self::Band(_) => usize::MAX,
            // Many more than are written again for the steps that come next.
            Self::Rows(_) => (NUMBERS / (bandwidths + 1)).max(4 * (bandwidths + AHEAD)).next_multiple_of(strip),
        }
    }
}

impl<T: Scalar> End<T> {
    /// Does `work` with a source that has these columns, counted from this end, and those that steps in them reach.
    pub(super) fn with_columns(
        &mut self,
        source: Source<'_, T>,
        columns: Range<usize>,
        work: impl FnOnce(&mut Self, Option<&[T]>) -> Result<()>,
    ) -> Result<()> {
        let stored = match source {
            Source::Here => None,
            Source::Band(a) => Some(a),
            Source::Rows(a) => {
                self.write_columns(a, columns, source.columns_at_once(self.shape.kv(), 1))?;
                let own = std::mem::take(&mut self.own_columns);
                let done = work(self, Some(&own));
                self.own_columns = own;
                return done;
            }
        };
        self.shape.source_first = 0;
        work(self, stored)
    }

    /// Has these columns of `a` and those that steps in them reach; where they are not written yet, at least so many.
    fn write_columns(&mut self, a: &Csr<T>, columns: Range<usize>, some: usize) -> Result<()> {
        let (n, kl, ku, ld) = (self.shape.n, self.shape.kl, self.shape.ku, self.shape.source_ld());
        let (start, reach) = (columns.start, kl + ku + AHEAD);
        let forward = self.shape.direction == Direction::Forward;
        let from_first = |end: usize| if forward { start..end.min(n) } else { n - end.min(n)..n - start };
        let (needed, written) = (from_first(columns.end + reach), self.shape.source_first);
        if written <= needed.start && needed.end <= written + self.own_columns.len() / ld {
            return Ok(());
        }
        let columns = from_first(columns.end.max(start + some) + reach);
        self.shape.source_first = columns.start;
        let bandwidths = if forward { (kl, ku) } else { (ku, kl) };
        write(a, bandwidths, bandwidths.0, columns, &mut self.own_columns)
    }
}

/// These columns of `a` replace what `own` has, each with `room` numbers before it.
pub(crate) fn write<T: Scalar>(
    a: &Csr<T>,
    bandwidths: (usize, usize),
    room: usize,
    columns: Range<usize>,
    own: &mut Vec<T>,
) -> Result<()> {
    let len = columns.len() * (room + bandwidths.0 + bandwidths.1 + 1);
    own.clear();
    reserve(own, len)?;
    own.resize(len, zero());
    Ok(Band::write_columns(a, bandwidths, room, columns, own)?)
}
