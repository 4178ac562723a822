//! What a sparse LU will do and cost, told before anything is eliminated.

use std::sync::{Arc, OnceLock};

use bt_formats::{Csr, Scalar, zero};

use super::ordering::{Counted, Ordering, order};
use super::scaled::{Csc, Scaled, held};
use super::{blocked, fill, matching};
use crate::error::Result;
use crate::sparse_cholesky::{SymbolicCholesky, too_large};

/// Flops an entry of the factors from which supernodes of a symmetric pattern are faster than columns, order and structure included.
const SUPERNODAL_FLOPS: f64 = 12.0;

/// Flops that elimination by columns may take in any case, and per non-zero of A: what supernodes take before their first operation.
const COLUMN_FLOPS: (f64, f64) = (3e6, 100.0);

/// Counted flops up to which elimination by columns takes a few tenths of a second.
const COUNTED_FLOPS: f64 = 1e8;

/// The symbolic phase of [`SparseLu`](crate::SparseLu): the order of the columns, a preferred pivot for each, and what elimination with
/// these pivots fills.
///
/// Where the pattern is nearly symmetric with the preferred pivots on the diagonal, they are left only as far as small ones demand:
/// elimination by columns may then fill more, by supernodes it does not. Other patterns take the largest entry of a column as its
/// pivot, in an order that keeps fill low whichever that is: for them the counts are a guess.
///
/// ```
/// use bt_direct::SymbolicLu;
/// use bt_formats::Csr;
/// // [ 4 1   ]
/// // [ 2 4 1 ]
/// // [   2 4 ]
/// let a = Csr::new(3, 3, vec![0, 2, 5, 7], vec![0, 1, 0, 1, 2, 1, 2], vec![4.0, 1.0, 2.0, 4.0, 1.0, 2.0, 4.0])?;
/// let symbolic = SymbolicLu::new(&a)?;
/// // Two quotients, and two products that are taken from a pivot.
/// assert_eq!((symbolic.fill(), symbolic.flops()), (7, 6.0));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Debug)]
pub struct SymbolicLu {
    ordering: Ordering,
    /// The entries of A.
    pattern: Csc<()>,
    /// `None` where L has no room in memory.
    counted: Option<Counted>,
    /// The structure of L + U by supernodes, where it has been asked for.
    blocks: OnceLock<Option<Arc<SymbolicCholesky>>>,
}

impl SymbolicLu {
    /// Of a square matrix. Values decide which rows are preferred as pivots: large entries are, zeros are not.
    ///
    /// # Errors
    /// [`crate::FactorError::Input`] when A is not square, not finite or too large; [`crate::FactorError::Singular`] naming a column without a row
    /// left for it, whatever the values; [`crate::FactorError::Failed`] when faer's ordering does.
    ///
    /// # Cost
    /// The ordering, O(n·nnz) at worst and little more than O(nnz) on grids; a maximum matching, which is O(nnz) in practice; and where the
    /// pattern is not symmetric an elimination without numbers, which is a part of one with them.
    pub fn new<T: Scalar>(a: &Csr<T>) -> Result<Self> {
        Self::of(&Scaled::of(a)?.a, a)
    }

    /// Of a matrix that is scaled and given by columns, and by rows.
    #[inline(never)]
    pub(super) fn of<T: Scalar>(scaled: &Csc<T>, a: &Csr<T>) -> Result<Self> {
        let row_of = matching::match_rows(scaled)?;
        let (ordering, blocks) = order(scaled, a, &row_of)?;
        let Csc { col_ptr, row_idx, values } = scaled;
        let pattern = Csc { col_ptr: col_ptr.clone(), row_idx: row_idx.clone(), values: vec![(); values.len()] };
        let counted = match &blocks {
            Some(blocks) => {
                let entries = blocks.fill() as usize - blocks.n();
                Some(Counted { lower: entries, upper: entries, flops: blocks.lu_flops() })
            }
            None => fill::count(&pattern, &ordering),
        };
        let symbolic = Self { ordering, pattern, counted, blocks: OnceLock::new() };
        // What holds for stored zeros, too, is kept where it will be needed.
        if let Some(blocks) = blocks.filter(|_| a.values().iter().all(|&v| v != zero()) && !symbolic.is_by_columns()) {
            let _ = symbolic.blocks.set(Some(Arc::new(blocks)));
        }
        Ok(symbolic)
    }

    /// Whether [`SparseLu`](crate::SparseLu) eliminates a symmetric pattern by columns, not by supernodes, for which so many flops and entries
    /// of the factors are counted.
    pub fn pays_by_columns(flops: f64, fill: f64) -> bool {
        flops <= SUPERNODAL_FLOPS * fill
    }

    /// Whether [`SparseLu`](crate::SparseLu) begins by columns, not by supernodes.
    pub fn is_by_columns(&self) -> bool {
        if self.ordering.is_symmetric {
            Self::pays_by_columns(self.flops(), self.fill() as f64)
        } else {
            self.may_be_by_columns()
        }
    }

    /// Whether elimination by columns is carried through if flops were counted well.
    pub(super) fn may_be_by_columns(&self) -> bool {
        self.flops() <= COUNTED_FLOPS.max(COLUMN_FLOPS.1 * self.pattern.row_idx.len() as f64)
    }

    /// Flops that elimination by columns is given: some times as many as were counted without interchanges.
    pub(super) fn column_budget(&self) -> f64 {
        let (always, per_entry) = COLUMN_FLOPS;
        let trusted = if self.flops() <= COUNTED_FLOPS { 4.0 * self.flops() } else { 0.0 };
        always.max(per_entry * self.pattern.row_idx.len() as f64).max(trusted)
    }

    /// Whether the pattern is nearly symmetric with the preferred pivots on the diagonal. Of others a matching, an order of columns and an
    /// elimination without numbers are made, which take several times as long.
    pub fn is_symmetric(&self) -> bool {
        self.ordering.is_symmetric
    }

    /// Entries of L and U, the diagonal once; `u64::MAX` where not even the pattern of L has room in memory.
    pub fn fill(&self) -> u64 {
        self.counted.map_or(u64::MAX, |c| (c.lower + c.upper + self.pattern.n()) as u64)
    }

    /// Operations of the factorization, infinitely many where `fill` is beyond memory: of a symmetric pattern Σⱼ bⱼ(2bⱼ + 1) for bⱼ
    /// entries below the diagonal of column j of L.
    pub fn flops(&self) -> f64 {
        self.counted.map_or(f64::INFINITY, |c| c.flops)
    }

    /// Operations of a right-hand side.
    pub fn solve_flops(&self) -> f64 {
        2.0 * self.fill() as f64
    }

    /// Bytes of a factorization with all that it holds on to, which is also the most that its making takes, but for orders of
    /// matrices that hardly fill. A guess where the pattern is not symmetric, and too little where it is then not eliminated by columns.
    ///
    /// # Errors
    /// As [`SymbolicCholesky::bytes`](crate::SymbolicCholesky::bytes).
    pub fn bytes<T: Scalar>(&self) -> Result<usize> {
        let (n, nnz) = (self.pattern.n(), self.pattern.row_idx.len());
        let held = held::<T>(n, nnz);
        if self.ordering.is_symmetric && !self.is_by_columns() {
            return Ok(held + blocked::bytes::<T>(self.blocks()?.as_ref())?);
        }
        // L and U by columns, and work arrays: see `Simplicial`.
        let Some(Counted { lower, upper, .. }) = self.counted else { return Ok(usize::MAX) };
        let columns = (lower + upper) * (size_of::<T>() + size_of::<u32>()) + 2 * (n + 1) * size_of::<usize>();
        Ok(held + columns + n * (2 * size_of::<T>() + 4 * size_of::<u32>() + size_of::<(u32, usize)>()))
    }

    /// The structure of L + U by supernodes.
    pub(super) fn blocks(&self) -> Result<&Arc<SymbolicCholesky>> {
        let made = self.blocks.get_or_init(|| blocked::symbolic(&self.pattern, &self.ordering).ok().map(Arc::new));
        made.as_ref().ok_or_else(|| too_large(self.pattern.n(), self.pattern.row_idx.len()))
    }

    pub(super) fn counted(&self) -> Option<Counted> {
        self.counted
    }

    pub(super) fn ordering(&self) -> &Ordering {
        &self.ordering
    }

    /// That A, given by columns, has the pattern that was analysed.
    pub(super) fn check_pattern<T: Scalar>(&self, a: &Csc<T>) -> Result<()> {
        let known = &self.pattern;
        if known.col_ptr == a.col_ptr && known.row_idx == a.row_idx {
            return Ok(());
        }
        let why = if a.n() == known.n() {
            let other = (0..a.n()).find(|&j| a.row_idx[a.range(j)] != known.row_idx[known.range(j)]);
            format!("column {} (from 0) has entries in other rows", other.unwrap_or_default())
        } else {
            format!("{} rows, but {} were analysed", a.n(), known.n())
        };
        Err(bt_formats::Error::InvalidStructure { what: "matrix for a symbolic phase", why }.into())
    }
}
