//! L·D·Lᴴ by supernodes, from the left, with pivots of order 1 and 2 sought in the block of each.
//!
//! For s each supernode with the rows Rₛ below its block, d those before it, P the interchanges in its block:
//!
//! ```text
//! N[s∪Rₛ, s] ← N[s∪Rₛ, s] − Σ_d L[s∪Rₛ, d]·(L[s, d]·D[d])ᴴ,  P·N[s, s]·Pᵀ = L·D·Lᴴ,  L[Rₛ, s] = N[Rₛ, s]·Pᵀ·L[s, s]⁻ᴴ·D⁻¹
//! ```
//!
//! Storage: the largest block twice as work space for each thread, and the lists.

use bt_formats::{Monitor, RealScalar, Scalar, zero};
use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::cholesky::lblt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::triangular_solve::solve_unit_lower_triangular_in_place;
use faer::sparse::linalg::cholesky::supernodal::SymbolicSupernodalCholesky;
use faer::{ColMut, Conj, MatMut, MatRef, Par, Spec};

use crate::error::Result;
use crate::guard::worth;
use crate::pivot::divide_real;
use crate::sparse_cholesky::earlier::{Part, Target, subtract_product};
use crate::sparse_cholesky::numbers::{Numbers, Own};
use crate::sparse_cholesky::subtrees::Supernodes;
use crate::sparse_cholesky::tasks::{Ended, Room, Scratch, Sizes};
use crate::sparse_cholesky::{Columns, Diagonal, largest, node};

use super::narrow;
use super::pivots::{Blocks, Pivot, sizes};

/// What factorizations work with.
pub struct Elimination<T: Scalar>(Scratch<T>);

/// What the kernels for dense blocks ask for.
fn kernels<T: Scalar>(s: &Supernodes, par: Par) -> StackReq {
    let columns = s.largest.1;
    if columns <= narrow::COLUMNS {
        StackReq::EMPTY
    } else {
        cholesky_in_place_scratch::<u32, T>(columns, par, Spec::default())
    }
}

impl<T: Scalar> Elimination<T> {
    pub fn new(s: &Supernodes, par: Par) -> Result<Self> {
        Scratch::new(s, kernels::<T>(s, par), 2, par).map(Self)
    }

    pub fn bytes(s: &Supernodes, par: Par) -> usize {
        Scratch::<T>::bytes(s, kernels::<T>(s, par), 2, par)
    }

    /// L and D of a matrix that `load` shows column by column, observed between supernodes: it calls back with place and number of each
    /// entry on the diagonal and below. Their sizes.
    ///
    /// # Errors
    /// [`Ended`].
    #[inline(never)]
    pub fn factor(
        &mut self,
        s: &Supernodes,
        load: impl Fn(usize, &mut dyn FnMut(usize, T)) + Sync,
        numbers: Numbers<'_, T>,
        par: Par,
        monitor: &mut dyn Monitor,
    ) -> Result<Sizes, Ended> {
        self.0.eliminate(s, numbers, monitor, &|k, numbers, links, room| {
            let Room { places, product, inverse, memory } = room;
            // The product, and L[s, d]·D[d].
            let half = product.len() / 2;
            let (product, scaled) = product.split_at_mut(half);
            let own = node(s, k);
            let (width, rows) = (own.columns(), own.rows());
            let (before, Own { block, beside, exchange, .. }) = numbers.of(s, k);
            places.enter(&own);
            block.fill(zero());
            for (column, l) in block.chunks_exact_mut(rows).zip(own.begin..own.end) {
                load(l, &mut |i, v| column[places.of(i)] = v);
            }
            links.visit(k, places, |d| {
                let l = before.lower(&d);
                let l_d = &mut scaled[..d.inside * d.node.columns()];
                let blocks = Blocks::of(&d.node, before.values(&d.node), before.beside(&d.node));
                blocks.multiply(l.subrows(0, d.inside), l_d);
                let l_d = MatRef::from_column_major_slice(l_d, d.inside, d.node.columns());
                let into = Target { values: &mut *block, rows, skipped: 0 };
                let factors = (l, (l_d, Conj::Yes));
                subtract_product(factors, Part::Lower, (d.places, &d.places[..d.inside]), into, product, par);
            });
            if width <= narrow::COLUMNS {
                narrow::eliminate(block, beside, exchange);
            } else {
                eliminate(block, beside, (exchange, &mut inverse[..width]), product, MemStack::new(memory), par);
            }
            let size = |c: usize| largest(block[c * rows + c + 1..(c + 1) * rows].iter().map(|l| l.abs().to_f64()));
            let d = Blocks::of(&own, block, beside);
            Ok(sizes(d.pivots().map(|(_, pivot)| pivot.into()), (0..width).map(size)))
        })
    }
}

/// A block of more columns by kernels for dense blocks.
fn eliminate<T: Scalar>(
    block: &mut [T],
    beside: &mut [T],
    (p, inverse): (&mut [u32], &mut [u32]),
    work: &mut [T],
    stack: &mut MemStack,
    par: Par,
) {
    let width = p.len();
    let rows = block.len() / width;
    let (below, par) = (rows - width, worth(par, (rows * width * width) as f64));
    let (mut top, mut bottom) = MatMut::from_column_major_slice_mut(&mut *block, rows, width).split_at_row_mut(width);
    let diagonal = ColMut::from_slice_mut(&mut *beside).as_diagonal_mut();
    cholesky_in_place(top.as_mut(), diagonal, p, inverse, par, stack, Spec::default());
    let mut t = MatMut::from_column_major_slice_mut(&mut work[..below * width], below, width);
    t.copy_from(bottom.as_ref());
    for (c, &from) in p.iter().enumerate() {
        bottom.as_mut().col_mut(c).copy_from(t.as_ref().col(from as usize));
    }
    solve_unit_lower_triangular_in_place(top.as_ref().conjugate(), bottom.transpose_mut(), par);
    let mut c = 0;
    while c < width {
        let d = block[c * rows + c].re();
        if beside[c] == zero() {
            block[c * rows + width..][..below].iter_mut().for_each(|l| *l = divide_real(*l, d));
            c += 1;
            continue;
        }
        let e = block[(c + 1) * rows + c + 1].re();
        let divide = Pivot::divide_two((d, beside[c], e));
        let (x, y) = block[c * rows..].split_at_mut(rows);
        for (x, y) in x[width..].iter_mut().zip(&mut y[width..rows]) {
            (*x, *y) = divide(*x, *y);
        }
        c += 2;
    }
}

/// Y ← (map L)⁻ᴴ·(map D)⁻¹·(map L)⁻¹·Y for W interleaved vectors in the order of L without interchanges, which are made on the way;
/// `map` is the identity or the conjugate.
pub fn solve<T: Scalar, const W: usize>(
    s: &SymbolicSupernodalCholesky<u32>,
    (values, beside, exchange): (&[T], &[T], &[u32]),
    y: &mut [[T; W]],
    work: &mut [[T; W]],
    map: impl Fn(T) -> T + Copy,
) {
    let conjugated = |v: T| Scalar::conj(map(v));
    let block = |k: usize| {
        let own = node(s, k);
        (own, Columns { values: &values[own.values..][..own.rows() * own.columns()], rows: own.rows() })
    };
    for k in 0..s.n_supernodes() {
        let (own, l) = block(k);
        own.exchange(exchange, y, work);
        l.lower_in(&own, Diagonal::One, y, work, map);
        for (c, pivot) in Blocks::of(&own, l.values, &beside[own.begin..own.end]).pivots() {
            let c = own.begin + c;
            match pivot {
                Pivot::One(d) => y[c] = y[c].map(|y| divide_real(y, d)),
                Pivot::Two(d, b, e) => {
                    // A column here, a row there: D⁻¹·y = (yᵀ·D⁻ᵀ)ᵀ with D̄ for Dᵀ.
                    let divide = Pivot::divide_two((d, Scalar::conj(map(b)), e));
                    for w in 0..W {
                        (y[c][w], y[c + 1][w]) = divide(y[c][w], y[c + 1][w]);
                    }
                }
            }
        }
    }
    for k in (0..s.n_supernodes()).rev() {
        let (own, l) = block(k);
        l.lower_transposed_in(&own, Diagonal::One, y, work, conjugated);
        own.exchange_back(exchange, y, work);
    }
}
