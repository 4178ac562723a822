//! Reordering: permutations and scalings that make a matrix narrow or its diagonal heavy.
//!
//! - [`rcm`]: reverse Cuthill–McKee, a narrow band around the diagonal;
//! - [`spectral`]: order by the Fiedler vector of |A| + |A|ᵀ, large entries close to the diagonal;
//! - [`minimum_degree`]: approximate minimum degree of A + Aᵀ, for sparse factors with little fill, and its counts;
//! - [`maximum_product_matching`]: a row permutation and scalings for a zero-free, heavy diagonal.
//!
//! Patterns are those of the **non-zero values**: an entry stored as an exact zero couples nothing, but in
//! `minimum_degree`, whose order may serve other values. Whether an order
//! is worth taking is the caller's choice; [`bandwidth_under`] and [`profile_under`] measure it without building the
//! permuted matrix.
//!
//! | file | case |
//! |---|---|
//! | `rcm.rs` | a narrow band: reverse Cuthill–McKee |
//! | `spectral.rs`, `fiedler.rs` | large entries close to the diagonal; the Fiedler vector for it |
//! | `graph.rs` | the graph of A + Aᵀ, for both |
//! | `minimum_degree.rs` | little fill: approximate minimum degree |
//! | `matching.rs` | a heavy diagonal: rows matched with columns, and scaled |

mod fiedler;
mod graph;
mod matching;
mod minimum_degree;
mod rcm;
mod spectral;

pub(crate) use graph::Graph;
pub use matching::{Matching, MatchingError, StructuralDeficiency, maximum_product_matching};
pub use minimum_degree::{MinimumDegree, minimum_degree, minimum_degree_of_pattern};
pub use rcm::rcm;
pub use spectral::spectral;

use crate::csr::Csr;
use crate::operator::{LinearOperator, zero};
use crate::permutation::Permutation;
use crate::scalar::Scalar;

/// Lower and upper bandwidths (kl, ku): every aᵢⱼ ≠ 0 has i − j ≤ kl and j − i ≤ ku. Any shape.
///
/// # Cost
/// That of [`Csr::survey`], once.
///
/// ```
/// use bt_formats::{Csr, reorder::bandwidth};
/// let a = Csr::new(3, 3, vec![0, 2, 4, 5], vec![0, 2, 0, 1, 2], vec![6.0, 2.0, 1.0, 9.0, 4.0])?;
/// assert_eq!(bandwidth(&a), (1, 2));
/// # Ok::<(), bt_formats::Error>(())
/// ```
pub fn bandwidth<T: Scalar>(a: &Csr<T>) -> (usize, usize) {
    a.survey().bandwidth
}

/// Bandwidths (kl, ku) that P A Pᵀ would have: entry (i, j) of it is A(order\[i\], order\[j\]).
///
/// # Panics
/// When A is not square of the permutation's length.
///
/// # Cost
/// O(nnz), nothing allocated.
pub fn bandwidth_under<T: Scalar>(a: &Csr<T>, order: &Permutation) -> (usize, usize) {
    assert_eq!((a.nrows(), a.ncols()), (order.len(), order.len()), "shape of A and length of the permutation");
    let position = order.position();
    let (mut kl, mut ku) = (0, 0);
    for_each_nonzero(a, |i, j| {
        let (i, j) = (position[i] as usize, position[j] as usize);
        kl = kl.max(i.saturating_sub(j));
        ku = ku.max(j.saturating_sub(i));
    });
    (kl, ku)
}

/// Profile of the pattern of A + Aᵀ: Σᵢ (i − fᵢ), where fᵢ ≤ i is the smallest index coupled with i.
///
/// It is what an envelope (skyline) factor stores off the diagonal. Any shape. O(nnz).
pub fn profile<T: Scalar>(a: &Csr<T>) -> u64 {
    sum_of_profile(a, |i| i)
}

/// Profile that P A Pᵀ would have; see [`profile`].
///
/// # Panics
/// When A is not square of the permutation's length.
pub fn profile_under<T: Scalar>(a: &Csr<T>, order: &Permutation) -> u64 {
    assert_eq!((a.nrows(), a.ncols()), (order.len(), order.len()), "shape of A and length of the permutation");
    sum_of_profile(a, |i| order.position()[i] as usize)
}

fn sum_of_profile<T: Scalar>(a: &Csr<T>, place: impl Fn(usize) -> usize) -> u64 {
    let mut reach = vec![0u32; a.nrows().max(a.ncols())];
    for_each_nonzero(a, |i, j| {
        let (i, j) = (place(i), place(j));
        let r = &mut reach[i.max(j)];
        *r = (*r).max(i.abs_diff(j) as u32);
    });
    reach.into_iter().map(u64::from).sum()
}

/// Calls `visit(row, col)` for every non-zero value.
pub(crate) fn for_each_nonzero<T: Scalar>(a: &Csr<T>, mut visit: impl FnMut(usize, usize)) {
    for i in 0..a.nrows() {
        let (cols, vals) = a.row(i);
        for (&j, _) in cols.iter().zip(vals).filter(|e| *e.1 != zero()) {
            visit(i, j as usize);
        }
    }
}
