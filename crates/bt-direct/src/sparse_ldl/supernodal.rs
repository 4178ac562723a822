//! L·D·Lᴴ by supernodes, from the left, with pivots of order 1 and 2 sought in the block of each.
//!
//! For s each supernode with the rows Rₛ below its block, d those before it, P the interchanges in its block:
//!
//! ```text
//! N[s∪Rₛ, s] ← N[s∪Rₛ, s] − Σ_d L[s∪Rₛ, d]·(L[s, d]·D[d])ᴴ,  P·N[s, s]·Pᵀ = L·D·Lᴴ,  L[Rₛ, s] = N[Rₛ, s]·Pᵀ·L[s, s]⁻ᴴ·D⁻¹
//! ```
//!
//! Storage: the largest block as work space, and the lists.

use bt_formats::{Monitor, Scalar, zero};
use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::cholesky::lblt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::triangular_solve::solve_unit_lower_triangular_in_place;
use faer::sparse::linalg::cholesky::supernodal::SymbolicSupernodalCholesky;
use faer::{ColMut, Conj, MatMut, MatRef, Par, Spec};

use crate::error::Result;
use crate::guard::worth;
use crate::memory::zeros;
use crate::pivot::divide_real;
use crate::sparse_cholesky::earlier::{Part, Scratch, Target, subtract_product};
use crate::sparse_cholesky::supernodal::{Ended, go_on};
use crate::sparse_cholesky::{Columns, Diagonal, largest_node, node};

use super::narrow;
use super::pivots::{Blocks, Pivot};

/// What factorizations work with.
pub struct Elimination<T: Scalar> {
    scratch: Scratch<T>,
    /// L[s, d]·D[d]
    scaled: Vec<T>,
    inverse: Vec<u32>,
}

/// L, with D on the diagonal, and what stands beside that: `beside[j]` = D[j + 1, j].
pub struct Factors<'a, T> {
    pub values: &'a mut [T],
    pub beside: &'a mut [T],
    /// Interchanges: row `exchange[k]` of a supernode's block comes as number k.
    pub exchange: &'a mut [u32],
}

/// What the kernels for dense blocks ask for.
fn kernels<T: Scalar>(s: &SymbolicSupernodalCholesky<u32>, par: Par) -> StackReq {
    let columns = largest_node(s).1;
    if columns <= narrow::COLUMNS {
        StackReq::EMPTY
    } else {
        cholesky_in_place_scratch::<u32, T>(columns, par, Spec::default())
    }
}

impl<T: Scalar> Elimination<T> {
    pub fn new(s: &SymbolicSupernodalCholesky<u32>, par: Par) -> Result<Self> {
        let (numbers, columns) = largest_node(s);
        Ok(Self { scratch: Scratch::new(s, kernels::<T>(s, par))?, scaled: zeros(numbers)?, inverse: zeros(columns)? })
    }

    pub fn bytes(s: &SymbolicSupernodalCholesky<u32>, par: Par) -> usize {
        let (numbers, columns) = largest_node(s);
        Scratch::<T>::bytes(s, kernels::<T>(s, par)) + numbers * size_of::<T>() + columns * size_of::<u32>()
    }

    /// L and D of a matrix that `load` shows column by column, observed between supernodes: it calls back with place and number of each
    /// entry on the diagonal and below.
    ///
    /// # Errors
    /// [`Ended::Stopped`]. Pivots of zero are left to be seen.
    #[inline(never)]
    pub fn factor(
        &mut self,
        s: &SymbolicSupernodalCholesky<u32>,
        mut load: impl FnMut(usize, &mut dyn FnMut(usize, T)),
        factors: &mut Factors<'_, T>,
        par: Par,
        monitor: &mut dyn Monitor,
    ) -> Result<(), Ended> {
        let Self { scratch: Scratch { lists, product, memory }, scaled, inverse } = self;
        let Factors { values, beside, exchange } = factors;
        lists.clear();
        for k in 0..s.n_supernodes() {
            go_on(monitor, k, s)?;
            let own = node(s, k);
            let (width, rows) = (own.columns(), own.rows());
            let (before, rest) = values.split_at_mut(own.values);
            let block = &mut rest[..rows * width];
            lists.enter(&own);
            block.fill(zero());
            for (column, l) in block.chunks_exact_mut(rows).zip(own.begin..own.end) {
                load(l, &mut |i, v| column[lists.place(i)] = v);
            }
            let (beside_before, rest) = beside.split_at_mut(own.begin);
            lists.visit(s, k, |d| {
                let l = d.rows(&before[d.node.values..], d.node.rows());
                let l_d = &mut scaled[..d.inside * d.node.columns()];
                Blocks::of(&d.node, &before[d.node.values..], beside_before).multiply(l.subrows(0, d.inside), l_d);
                let l_d = MatRef::from_column_major_slice(l_d, d.inside, d.node.columns());
                let into = Target { values: &mut *block, rows, skipped: 0 };
                let factors = (l, (l_d, Conj::Yes));
                subtract_product(factors, Part::Lower, (d.places, &d.places[..d.inside]), into, product, par);
            });
            let (beside, p) = (&mut rest[..width], &mut exchange[own.begin..own.end]);
            if width <= narrow::COLUMNS {
                narrow::eliminate(block, beside, p);
            } else {
                let inverse = &mut inverse[..width];
                eliminate(block, beside, (p, inverse), product, MemStack::new(memory), par);
            }
        }
        Ok(())
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
        for (c, pivot) in Blocks::of(&own, l.values, beside).pivots() {
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
