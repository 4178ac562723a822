//! Substitution in one real right-hand side or two, blocks of equal size, by the tiles of [`super::tiles`].
//!
//! Every factor is read once and in its order. What a block waits for is one number after the other of its own
//! triangles; a thread takes a block of each of its chains in turn, of both sides where it has them and of each right-hand side, so that
//! they wait together.
//! In a tile of w columns, with r the reciprocals of the pivots:
//!
//! ```text
//! inwards    z ← T⁻¹·z            below ← below − S·z        next ← next − H·z
//! outwards   x ← x − G·next       z ← r∘(z − strict(Ũₚₚ)·z)    above ← above − U·z
//! ```

use std::ops::Range;

use bt_formats::{Par, Scalar};
use pulp::Simd;

use super::panel::{exchange, in_order};
use super::pass::{Direction, join, pair};
use super::simd::{Aligned, Lanes, PADDED, dispatch_for};
use super::{BlockLu, Place};
use crate::lines;

/// x ← A⁻¹·x before or after the middle, in one of the two directions.
pub(super) struct Chain<'a, T: Scalar> {
    pub(super) lu: &'a BlockLu<T>,
    pub(super) k: usize,
    pub(super) down: bool,
    pub(super) direction: Direction,
    /// The rows of this side.
    pub(super) x: &'a mut [T],
    /// The solution in the middle, for the way outwards.
    pub(super) middle: &'a [T],
}

/// Runs the chains of both sides. Returns whether there are vectors for blocks of this size; otherwise nothing has been done.
pub(super) fn run<L: Lanes, const G: usize>(par: Par, chains: &mut [[Chain<'_, L>; G]; 2]) -> bool {
    let k = chains[0][0].k;
    if par == Par::Rayon {
        let [first, second] = chains;
        let (mut left, mut right) = (true, true);
        join(par, || left = run_together(k, first), || right = run_together(k, second));
        left && right
    } else {
        run_together(k, chains.as_flattened_mut())
    }
}

#[inline(never)]
fn run_together<L: Lanes>(k: usize, chains: &mut [Chain<'_, L>]) -> bool {
    dispatch_for::<L, _>(k, Steps(chains))
}

/// Chains that one thread runs side by side, as work for a SIMD instruction set.
struct Steps<'c, 'a, L: Lanes>(&'c mut [Chain<'a, L>]);

impl<L: Lanes> pulp::WithSimd for Steps<'_, '_, L> {
    type Output = bool;
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> bool {
        let Self(chains) = self;
        if const { size_of::<L::V<S>>() < 4 * size_of::<L>() } {
            return false;
        }
        let (k, w) = (chains[0].k, L::lanes::<S>());
        if !k.is_multiple_of(w) {
            return false;
        }
        // The sizes as constants: loops over the tiles of small blocks vanish.
        match k / w {
            1 => all_steps::<L, S, 1>(s, chains, w),
            2 => all_steps::<L, S, 2>(s, chains, 2 * w),
            _ => all_steps::<L, S, ANY>(s, chains, k),
        }
        true
    }
}

/// Vectors that a block may have, as a constant: any number.
const ANY: usize = usize::MAX;

/// All steps with blocks of at most `MOST` vectors.
#[inline(always)]
fn all_steps<L: Lanes, S: Simd, const MOST: usize>(s: S, chains: &mut [Chain<'_, L>], k: usize) {
    let longest = chains.iter().map(|c| c.x.len() / k).max().unwrap_or(0);
    for step in 0..longest {
        for chain in chains.iter_mut() {
            if step < chain.x.len() / k {
                chain.step::<S, MOST>(s, k, step);
            }
        }
    }
}

impl<'a, T: Scalar> Chain<'a, T> {
    /// The rows of each column before the middle and those after it.
    pub(super) fn both<'x, const G: usize>(
        lu: &'a BlockLu<T>,
        k: usize,
        direction: Direction,
        top: &'a mut [&'x mut [T]; G],
        bottom: &'a mut [&'x mut [T]; G],
        middle: &'a [&mut [T]; G],
    ) -> [[Self; G]; 2] {
        [(true, top), (false, bottom)].map(|(down, x)| {
            let mut columns = x.iter_mut().zip(middle);
            [(); G].map(|()| {
                let (x, middle) = columns.next().expect("G columns");
                Chain { lu, k, down, direction, x, middle }
            })
        })
    }
}

impl<L: Lanes> Chain<'_, L> {
    #[inline(always)]
    fn step<S: Simd, const MOST: usize>(&mut self, s: S, k: usize, step: usize) {
        let Self { lu, down, direction, .. } = *self;
        let (blocks, m) = (lu.side(down).0, self.x.len() / k);
        // Position of the block among those of this side, counted in the direction of the rows.
        let at = if down == (direction == Direction::Inwards) { step } else { m - 1 - step };
        let j = blocks.start + at;
        let Place { panel, g } = lu.places[j];
        let (panel, g) = (&lu.panels[panel..panel + 2 * k * k], &lu.g[g..g + k * k]);
        let ahead = Ahead::of(lu, k, &blocks, at, down == (direction == Direction::Inwards));
        let rows = at * k..(at + 1) * k;
        let next = if down { rows.end..rows.end + k } else { rows.start.saturating_sub(k)..rows.start };
        if direction == Direction::Inwards {
            let pivots = &lu.pivots[(lu.side_start(down) + at) * k..][..k];
            if !in_order(0, pivots) {
                exchange(&mut self.x[rows.clone()], 0, pivots);
            }
            let (x, next) = if step + 1 < m { pair_mut(self.x, rows, next) } else { (&mut self.x[rows], &mut [][..]) };
            inwards::<L, S, MOST>(s, panel, ahead, k, x, next);
        } else {
            let (next, x) = if step > 0 { pair(self.x, next, rows) } else { (self.middle, &mut self.x[rows]) };
            outwards::<L, S, MOST>(s, panel, g, ahead, k, x, next);
        }
    }
}

/// Two disjoint pieces of `x`.
#[inline(always)]
fn pair_mut<L>(x: &mut [L], first: Range<usize>, second: Range<usize>) -> (&mut [L], &mut [L]) {
    if first.start < second.start {
        let (a, b) = x.split_at_mut(second.start);
        (&mut a[first], &mut b[..second.len()])
    } else {
        let (a, b) = x.split_at_mut(first.start);
        (&mut b[..first.len()], &mut a[second])
    }
}

/// The factors of a block that its chain comes to later, fetched tile by tile as those of the present one are used: the
/// hardware does not look ahead along tiles that go down and along the columns in turn.
#[derive(Clone, Copy)]
struct Ahead<'l, L> {
    panel: &'l [L],
    g: &'l [L],
}

impl<'l, L: Lanes> Ahead<'l, L> {
    /// Bytes between the factors in use and those asked for, at least; a whole number of blocks.
    const DISTANCE: usize = 8 << 10;

    #[inline(always)]
    fn of(lu: &'l BlockLu<L>, k: usize, blocks: &Range<usize>, at: usize, rising: bool) -> Self {
        let distance = Self::DISTANCE.div_ceil(3 * k * k * size_of::<L>());
        let at = if rising { at + distance } else { at.wrapping_sub(distance) };
        if at < blocks.len() {
            let Place { panel, g } = lu.places[blocks.start + at];
            Self { panel: &lu.panels[panel..], g: &lu.g[g..] }
        } else {
            Self { panel: &[], g: &[] }
        }
    }
}

/// `rows` values from the head of each of `columns` columns that begin at `first` and are `ld` apart.
#[inline(always)]
fn fetch<L>(from: &[L], first: usize, ld: usize, columns: usize, rows: usize) {
    for c in 0..columns {
        lines::fetch(from, first + c * ld..first + c * ld + rows);
    }
}

/// x ← L̃⁻¹·x, `next` ← `next` − H·x; an empty `next` takes nothing.
#[inline(always)]
fn inwards<L: Lanes, S: Simd, const MOST: usize>(
    s: S,
    panel: &[L],
    ahead: Ahead<'_, L>,
    k: usize,
    x: &mut [L],
    next: &mut [L],
) {
    let (w, ld) = (L::lanes::<S>(), 2 * k);
    let mut z = Aligned([L::default(); PADDED]);
    for first in (0..k).step_by(w) {
        fetch(ahead.panel, first * ld, ld, w, ld);
        let tile = &panel[first * ld..(first + w) * ld];
        let mut v = L::load(&x[first..]);
        for c in 0..w - 1 {
            L::store(&mut z.0, v);
            let l = L::times(s, L::load(&tile[c * ld + first..]), L::load(&L::FROM.0[c + 1]));
            v = L::minus_product(s, l, L::splat(s, z.0[c]), v);
        }
        L::store(&mut z.0, v);
        L::store(&mut x[first..], v);
        if const { MOST > 1 } {
            let below = first + w;
            subtract_product::<L, S, MOST>(s, &mut x[below..k], &tile[below.min(tile.len())..], ld, &z.0[..w]);
        }
        subtract_product::<L, S, MOST>(s, next, &tile[k..], ld, &z.0[..w]);
    }
}

/// x ← Ũ⁻¹·(x − G·`next`).
#[inline(always)]
fn outwards<L: Lanes, S: Simd, const MOST: usize>(
    s: S,
    panel: &[L],
    g: &[L],
    ahead: Ahead<'_, L>,
    k: usize,
    x: &mut [L],
    next: &[L],
) {
    let (w, ld) = (L::lanes::<S>(), 2 * k);
    subtract_product::<L, S, MOST>(s, &mut x[..k], g, k, &next[..k]);
    let (mut z, mut diagonal) = (Aligned([L::default(); PADDED]), Aligned([L::default(); PADDED]));
    for first in (0..k).step_by(w).rev() {
        fetch(ahead.g, first * k, k, w, k);
        fetch(ahead.panel, first * ld, ld, w, first + w);
        let tile = &panel[first * ld..(first + w) * ld];
        for c in 0..w {
            diagonal.0[c] = tile[c * ld + first + c];
        }
        let r = L::reciprocal(s, L::load(&diagonal.0));
        let mut v = L::load(&x[first..]);
        for c in (1..w).rev() {
            L::store(&mut z.0, L::times(s, v, r));
            let u = L::times(s, L::load(&tile[c * ld + first..]), L::load(&L::BEFORE.0[c]));
            v = L::minus_product(s, u, L::splat(s, z.0[c]), v);
        }
        v = L::times(s, v, r);
        L::store(&mut z.0, v);
        L::store(&mut x[first..], v);
        if const { MOST > 1 } {
            subtract_product::<L, S, MOST>(s, &mut x[..first], tile, ld, &z.0[..w]);
        }
    }
}

/// y ← y − A·x, the columns of A `lda` apart; y in whole vectors, at most `MOST`.
#[inline(always)]
fn subtract_product<L: Lanes, S: Simd, const MOST: usize>(s: S, y: &mut [L], a: &[L], lda: usize, x: &[L]) {
    let w = L::lanes::<S>();
    let mut r = 0;
    macro_rules! tiles {
        ($($vectors:literal)*) => {$(
            if const { $vectors <= MOST } {
                while r + $vectors * w <= y.len() {
                    subtract_tile::<L, S, $vectors>(s, &mut y[r..], &a[r..], lda, x);
                    r += $vectors * w;
                }
            }
        )*};
    }
    tiles!(8 4 2 1);
}

/// The same for R vectors of rows, which stay in registers.
#[inline(always)]
fn subtract_tile<L: Lanes, S: Simd, const R: usize>(s: S, y: &mut [L], a: &[L], lda: usize, x: &[L]) {
    let w = L::lanes::<S>();
    let mut acc = [L::splat(s, L::default()); R];
    for v in 0..R {
        acc[v] = L::load(&y[v * w..]);
    }
    for (d, &x) in x.iter().enumerate() {
        let (column, x) = (&a[d * lda..d * lda + R * w], L::splat(s, x));
        for v in 0..R {
            acc[v] = L::minus_product(s, L::load(&column[v * w..]), x, acc[v]);
        }
    }
    for v in 0..R {
        L::store(&mut y[v * w..], acc[v]);
    }
}
