//! Why a factorization could not be made.

use std::fmt;

/// Result of a factorization.
pub type Result<T, E = FactorError> = std::result::Result<T, E>;

/// What kind of singularity was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SingularKind {
    /// No choice of values in this pattern is nonsingular.
    Structural,
    /// Elimination found a column without a pivot: every candidate is exactly zero.
    Numerical,
}

/// Where a matrix is singular. Indices count from 0 in the matrix that was factored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Singularity {
    /// Structural or numerical.
    pub kind: SingularKind,
    /// Column in which no pivot exists.
    pub column: usize,
    /// Block of that column, where the method works on blocks.
    pub block: Option<usize>,
}

impl fmt::Display for Singularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            SingularKind::Structural => "structurally singular",
            SingularKind::Numerical => "singular",
        };
        write!(f, "the matrix is {kind}: no pivot in column {} (from 0)", self.column)?;
        if let Some(block) = self.block {
            write!(f, ", block {block}")?;
        }
        Ok(())
    }
}

/// Where a method breaks down. Indices count from 0 in the matrix that was factored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A row, or the pivot of that row.
    Row(usize),
    /// A column, or the pivot of that column.
    Column(usize),
    /// A block on the diagonal.
    Block(usize),
    /// A partition or a subdomain.
    Partition(usize),
}

impl Place {
    /// What it is: `"row"`, `"column"`, `"block"` or `"partition"`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Row(_) => "row",
            Self::Column(_) => "column",
            Self::Block(_) => "block",
            Self::Partition(_) => "partition",
        }
    }

    /// Which one, from 0.
    pub fn index(self) -> usize {
        match self {
            Self::Row(index) | Self::Column(index) | Self::Block(index) | Self::Partition(index) => index,
        }
    }

    /// The same row or column by the numbers of another matrix, where it has one there. Blocks and partitions of one matrix are
    /// none of another.
    ///
    /// ```
    /// use bt_direct::Place;
    /// // Rows 4 to 6 of a matrix were factored by themselves.
    /// let whole = |i: usize| Some(4 + i);
    /// assert_eq!(Place::Row(1).renumbered(whole, whole), Some(Place::Row(5)));
    /// assert_eq!(Place::Block(1).renumbered(whole, whole), None);
    /// ```
    pub fn renumbered(
        self,
        row: impl FnOnce(usize) -> Option<usize>,
        column: impl FnOnce(usize) -> Option<usize>,
    ) -> Option<Self> {
        match self {
            Self::Row(i) => row(i).map(Self::Row),
            Self::Column(j) => column(j).map(Self::Column),
            Self::Block(_) | Self::Partition(_) => None,
        }
    }
}

/// Why a factorization could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FactorError {
    /// The matrix is singular.
    #[error("{0}")]
    Singular(Singularity),
    /// A pivot (block) is unusable for this method although the matrix may be nonsingular; another method is needed.
    #[error("{method} breaks down: {reason}")]
    Breakdown {
        /// Method, as the command spells it.
        method: &'static str,
        /// Where; none where it is no one place, or where the method orders the matrix in a way of its own.
        place: Option<Place>,
        /// What was met and where.
        reason: String,
    },
    /// The library beneath failed in a way it does not name (a panic or a garbage result), caught here.
    #[error("{method} failed: {reason}")]
    Failed {
        /// Method, as the command spells it.
        method: &'static str,
        /// What was caught.
        reason: String,
    },
    /// A monitor stopped the factorization.
    #[error("stopped by request during factorization")]
    Stopped,
    /// Unusable input.
    #[error(transparent)]
    Input(#[from] bt_formats::Error),
}

impl FactorError {
    /// A breakdown of `method`.
    ///
    /// ```
    /// use bt_direct::{FactorError, Place};
    /// let error = FactorError::breakdown("thomas", Place::Row(3), "the pivot of row 3 (from 0) is zero");
    /// assert_eq!(error.to_string(), "thomas breaks down: the pivot of row 3 (from 0) is zero");
    /// ```
    pub fn breakdown(method: &'static str, place: impl Into<Option<Place>>, reason: impl Into<String>) -> Self {
        Self::Breakdown { method, place: place.into(), reason: reason.into() }
    }

    /// Elimination overflows, at `place` where that is known.
    pub(crate) fn overflow(method: &'static str, place: Option<Place>) -> Self {
        let at = place.map_or(String::new(), |place| format!(" in {} {} (from 0)", place.name(), place.index()));
        Self::breakdown(method, place, format!("elimination overflows{at}; scale the matrix down"))
    }

    /// No pivot in a column, where elements have grown so far by `growth`: the matrix is singular, or rounding errors took the
    /// pivot of a regular one, where growth is beyond its `limit`.
    pub(crate) fn no_pivot(method: &'static str, column: usize, block: Option<usize>, growth: f64, limit: f64) -> Self {
        if growth > limit {
            let reason = format!(
                "elements have grown by {growth:.1e}, and rounding has left no pivot in column {column} (from 0); use \
                 sparse-qr"
            );
            return Self::breakdown(method, Place::Column(column), reason);
        }
        Self::Singular(Singularity { kind: SingularKind::Numerical, column, block })
    }

    /// This error with the place of a breakdown told in another matrix, of which the one that was factored is a part or a
    /// reordered form; the sentence stays.
    #[must_use]
    pub fn map_place(self, map: impl FnOnce(Place) -> Option<Place>) -> Self {
        match self {
            Self::Breakdown { method, place, reason } => Self::Breakdown { method, place: place.and_then(map), reason },
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_in_another_matrix_or_not_at_all() {
        let place = |error: FactorError| {
            let FactorError::Breakdown { place, .. } = error else { panic!("{error}") };
            place
        };
        let of = |place: Place| FactorError::breakdown("thomas", place, "");
        let order = [2, 0, 1];
        let told = |at: Place| at.renumbered(|i| order.get(i).copied(), |j| Some(j + 10));
        assert_eq!(place(of(Place::Row(0)).map_place(told)), Some(Place::Row(2)));
        assert_eq!(place(of(Place::Row(3)).map_place(told)), None);
        assert_eq!(place(of(Place::Column(0)).map_place(told)), Some(Place::Column(10)));
        assert_eq!(place(of(Place::Block(0)).map_place(told)), None);
        assert_eq!(place(of(Place::Partition(0)).map_place(told)), None);
        assert_eq!(place(FactorError::breakdown("thomas", None, "").map_place(told)), None);
    }

    #[test]
    fn places_have_names() {
        let all = [Place::Row(1), Place::Column(2), Place::Block(3), Place::Partition(4)];
        assert_eq!(all.map(|p| (p.name(), p.index())), [("row", 1), ("column", 2), ("block", 3), ("partition", 4)]);
    }
}
