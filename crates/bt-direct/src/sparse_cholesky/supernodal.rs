//! L·Lᴴ by supernodes, from the left (E. G. Ng & B. W. Peyton, SIAM J. Sci. Comput. 14 (1993) 1034–1056, doi:10.1137/0914063).
//!
//! For s each supernode with the rows Rₛ below its block, d those before it:
//!
//! ```text
//! N[s∪Rₛ, s] ← N[s∪Rₛ, s] − Σ_d L[s∪Rₛ, d]·L[s, d]ᴴ,  N[s, s] = L·Lᴴ,  L[Rₛ, s] = N[Rₛ, s]·L[s, s]⁻ᴴ
//! ```
//!
//! Storage: the largest block as work space for each thread, and the lists.

use bt_formats::{Csr, Monitor, RealScalar, Scalar, zero};
use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::cholesky::llt::factor::{LltError, LltRegularization, cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::{Conj, MatMut, Par, Spec};

use super::earlier::{Part, Target, subtract_product};
use super::numbers::{Numbers, Own};
use super::subtrees::Supernodes;
use super::supernode::node;
use super::tasks::{Ended, Room, Scratch, Sizes};
use crate::error::Result;
use crate::guard::worth;
use crate::pivot::divide_real;

/// Columns up to which a supernode is eliminated by plain loops.
const NARROW: usize = 8;

/// What factorizations work with.
pub(crate) struct Elimination<T: Scalar>(Scratch<T>);

/// What the kernels for dense blocks ask for.
fn kernels<T: Scalar>(s: &Supernodes, par: Par) -> StackReq {
    let columns = s.largest.1;
    if columns <= NARROW { StackReq::EMPTY } else { cholesky_in_place_scratch::<T>(columns, par, Spec::default()) }
}

impl<T: Scalar> Elimination<T> {
    pub fn new(s: &Supernodes, par: Par) -> Result<Self> {
        Scratch::new(s, kernels::<T>(s, par), 1, par).map(Self)
    }

    pub fn bytes(s: &Supernodes, par: Par) -> usize {
        Scratch::<T>::bytes(s, kernels::<T>(s, par), 1, par)
    }

    /// L of P·A·Pᵀ, for `order` and its inverse, observed between supernodes; its least diagonal entry.
    ///
    /// # Errors
    /// [`Ended`].
    #[inline(never)]
    pub fn factor(
        &mut self,
        s: &Supernodes,
        a: &Csr<T>,
        (order, position): (&[u32], &[u32]),
        values: &mut [T],
        par: Par,
        monitor: &mut dyn Monitor,
    ) -> Result<f64, Ended> {
        let numbers = Numbers::of_lower(values);
        let sizes = self.0.eliminate(s, numbers, monitor, &|k, numbers, links, room| {
            let Room { places, product, memory, .. } = room;
            let own = node(s, k);
            let (width, rows) = (own.columns(), own.rows());
            let (before, Own { block, .. }) = numbers.of(s, k);
            places.enter(&own);
            block.fill(zero());
            for (column, l) in block.chunks_exact_mut(rows).zip(own.begin..own.end) {
                // Column l is row l, conjugated.
                let (cols, row) = a.row(order[l] as usize);
                for (&j, &v) in cols.iter().zip(row) {
                    let i = position[j as usize] as usize;
                    if i >= l {
                        column[places.of(i)] = Scalar::conj(v);
                    }
                }
            }
            links.visit(k, places, |d| {
                let l = before.lower(&d);
                let factors = (l, (l.subrows(0, d.inside), Conj::Yes));
                let into = Target { values: &mut *block, rows, skipped: 0 };
                subtract_product(factors, Part::Lower, (d.places, &d.places[..d.inside]), into, product, par);
            });
            let done = if width <= NARROW {
                eliminate_narrow(block, width)
            } else {
                eliminate(block, width, MemStack::new(memory), par)
            };
            done.map_err(|c| Ended::NoPivot(own.begin + c))?;
            let mut pivot = f64::INFINITY;
            for c in 0..width {
                let d = block[c * rows + c].re().to_f64();
                if !d.is_finite() {
                    return Err(Ended::NoPivot(own.begin + c));
                }
                pivot = pivot.min(d);
            }
            // |lᵢⱼ|² ≤ aᵢᵢ: nothing grows.
            Ok(Sizes { product: 1.0, pivot })
        });
        sizes.map(|sizes| sizes.pivot)
    }
}

/// L of the block on top and below it, one column after the other; the column without a pivot.
fn eliminate_narrow<T: Scalar>(block: &mut [T], width: usize) -> Result<(), usize> {
    let rows = block.len() / width;
    for c in 0..width {
        let (own, later) = block[c * rows..].split_at_mut(rows);
        let pivot = own[c].re();
        // Not so of NaN.
        if !(pivot > zero() && pivot.to_f64().is_finite()) {
            return Err(c);
        }
        let root = pivot.sqrt();
        own[c] = T::from_real(root);
        for l in &mut own[c + 1..] {
            *l = divide_real(*l, root);
        }
        for (j, column) in (c + 1..).zip(later.chunks_exact_mut(rows)) {
            let factor = Scalar::conj(own[j]);
            column[j..].iter_mut().zip(&own[j..]).for_each(|(v, &l)| *v -= l * factor);
        }
    }
    Ok(())
}

/// The same by kernels for dense blocks.
fn eliminate<T: Scalar>(block: &mut [T], width: usize, stack: &mut MemStack, par: Par) -> Result<(), usize> {
    let rows = block.len() / width;
    let par = worth(par, (rows * width * width) as f64);
    let (mut top, bottom) = MatMut::from_column_major_slice_mut(block, rows, width).split_at_row_mut(width);
    cholesky_in_place(top.as_mut(), LltRegularization::default(), par, stack, Spec::default()).map_err(before)?;
    solve_lower_triangular_in_place(top.as_ref().conjugate(), bottom.transpose_mut(), par);
    Ok(())
}

/// Where faer found no pivot.
pub(super) fn before(error: LltError) -> usize {
    let LltError::NonPositivePivot { index } = error;
    index
}
