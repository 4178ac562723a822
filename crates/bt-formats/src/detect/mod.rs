//! Structure detection: what a matrix is, found in time linear in its non-zeros.
//!
//! Structure means the pattern of the **non-zero values**: entries stored as exact zeros do not count, but in
//! `block_size`. Values are
//! compared exactly; only sums (diagonal dominance) allow for their own rounding.
//!
//! Cost of [`detect`]: some passes over the entries, O(nnz + n); about 60 bytes of memory a row, none an entry.
//!
//! | file | case |
//! |---|---|
//! | `symmetry.rs` | symmetric, Hermitian or skew, by exact comparison |
//! | `dominance.rs` | diagonal dominance by rows and by columns |
//! | `definiteness.rs` | self-adjoint matrices: what diagonal, 2 × 2 minors and dominance tell of the signs of eigenvalues |
//! | `components.rs` | connected components of A + Aᵀ |
//! | `partition.rs` | block-tridiagonal partitions in the given order: the finest, the natural one, lines |
//! | `corner.rs` | far entries in corners or in a border |
//! | `triangular.rs` | not in [`detect`]: diagonal matrices, and an order in which a matrix is triangular |
//! | `transversal.rs` | not in [`detect`]: whether rows and columns can be paired by nonzeros |
//! | `block_size.rs` | not in [`detect`]: blocks of one size that entries fill, as meshes have them |

mod block_size;
mod components;
mod corner;
mod definiteness;
mod dominance;
mod partition;
mod symmetry;
mod transversal;
mod triangular;

pub use block_size::block_size;
pub use components::components;
pub use corner::{Corner, Side, corner};
pub use definiteness::Definiteness;
pub use dominance::{Dominance, DominanceKind};
pub use partition::{
    finest_partition, is_block_tridiagonal, line_partition, natural_partition, natural_partition_under,
};
pub use symmetry::{Symmetry, symmetry};
pub use transversal::has_transversal;
pub use triangular::{TriangularOrder, is_diagonal, triangular_order};

use crate::csr::Csr;
use crate::error::Result;
use crate::operator::{LinearOperator, Matrix};
use crate::partition::Partition;
use crate::reorder::{bandwidth, for_each_nonzero, profile};
use crate::scalar::Scalar;

/// Rows or columns with some property: how many, and the first of them (from 0).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// How many.
    pub count: usize,
    /// The first one.
    pub first: Option<usize>,
}

impl Places {
    fn of(mut has: impl FnMut(usize) -> bool, n: usize) -> Self {
        let mut places = Self::default();
        for i in (0..n).filter(|&i| has(i)) {
            places.count += 1;
            places.first.get_or_insert(i);
        }
        places
    }
}

/// What [`detect`] found. Rows, columns and blocks count from 0.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Structure {
    /// Rows and columns.
    pub n: usize,
    /// Non-zero values.
    pub nnz: usize,
    /// Entries stored, exact zeros included.
    pub stored: usize,
    /// Lower bandwidth: i − j ≤ kl.
    pub kl: usize,
    /// Upper bandwidth: j − i ≤ ku.
    pub ku: usize,
    /// Σ over rows of the distance from the diagonal to the furthest non-zero before it, in A + Aᵀ.
    pub profile: u64,
    /// Relation of A to its transpose and adjoint.
    pub symmetry: Symmetry,
    /// Share of the off-diagonal non-zeros aᵢⱼ with aⱼᵢ ≠ 0; 1 when there are none.
    pub pattern_symmetry: f64,
    /// |aᵢᵢ| against Σⱼ≠ᵢ |aᵢⱼ|.
    pub row_dominance: Dominance,
    /// |aⱼⱼ| against Σᵢ≠ⱼ |aᵢⱼ|.
    pub column_dominance: Dominance,
    /// What the signs of the eigenvalues must be, where that can be told without a factorization.
    pub definiteness: Definiteness,
    /// The sentence that justifies `definiteness`.
    pub definiteness_reason: String,
    /// Diagonal entries that are zero or not stored.
    pub zero_diagonal: Places,
    /// Rows without a non-zero: each makes A singular.
    pub empty_rows: Places,
    /// Columns without a non-zero: each makes A singular.
    pub empty_columns: Places,
    /// Connected components of the graph of A + Aᵀ.
    pub components: usize,
    /// See [`finest_partition`].
    pub finest: Partition,
    /// See [`natural_partition`].
    pub natural: Partition,
    /// Far entries that are confined to corners or to a border.
    pub corner: Corner,
}

/// Everything about the structure of a square matrix that can be told in linear time.
///
/// # Errors
/// [`crate::Error::NotSquare`]; [`crate::Error::NonFinite`] with the place of a NaN or an infinity.
///
/// # Cost
/// O(nnz + n).
///
/// ```
/// use bt_formats::{Csr, detect::{Corner, Definiteness, Symmetry, detect}};
/// // [  3 −1    −1 ]
/// // [ −1  3 −1    ]    The Laplacian of a ring of four, and 1 on the diagonal.
/// // [    −1  3 −1 ]
/// // [ −1    −1  3 ]
/// let a = Csr::new(
///     4, 4, vec![0, 3, 6, 9, 12], vec![0, 1, 3, 0, 1, 2, 1, 2, 3, 0, 2, 3],
///     vec![3.0, -1.0, -1.0, -1.0, 3.0, -1.0, -1.0, 3.0, -1.0, -1.0, -1.0, 3.0],
/// )?;
/// let s = detect(&a)?;
/// assert_eq!((s.kl, s.ku, s.symmetry, s.components), (3, 3, Symmetry::Symmetric, 1));
/// assert_eq!(s.definiteness, Definiteness::Positive);
/// assert_eq!(s.corner, Corner::Periodic { width: 1, inner_bandwidth: 1 });
/// # Ok::<(), bt_formats::Error>(())
/// ```
#[inline(never)]
pub fn detect<T: Scalar>(a: &Csr<T>) -> Result<Structure> {
    a.check_square()?;
    a.check_finite()?;
    let n = a.nrows();
    let (kl, ku) = bandwidth(a);
    let (symmetry, pattern_symmetry) = symmetry(a)?;
    let components = components::Components::of(a);
    let sums = dominance::Sums::of(a);
    let (definiteness, definiteness_reason) = definiteness::hint(a, symmetry, &sums, &components);

    let (mut row, mut column) = (vec![false; n], vec![false; n]);
    let mut nnz = 0;
    for_each_nonzero(a, |i, j| {
        nnz += 1;
        row[i] = true;
        column[j] = true;
    });
    Ok(Structure {
        n,
        nnz,
        stored: a.nnz(),
        kl,
        ku,
        profile: profile(a),
        symmetry,
        pattern_symmetry,
        row_dominance: sums.by_rows(),
        column_dominance: sums.by_columns(),
        definiteness,
        definiteness_reason,
        zero_diagonal: Places::of(|i| sums.diagonal[i] == 0.0, n),
        empty_rows: Places::of(|i| !row[i], n),
        empty_columns: Places::of(|j| !column[j], n),
        components: components.count(),
        finest: finest_partition(a)?,
        natural: natural_partition(a)?,
        corner: corner(a)?,
    })
}
