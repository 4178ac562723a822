//! Substitution in one right-hand side or two, equal blocks of two to eight rows.
//!
//! Their size is a constant, so that a block is code without loops. That is what Aᵀ needs, whose sums run down the columns, and A where
//! a block is no whole number of vectors. Chains wait together as in [`super::substitution`]. With r the reciprocals of the pivots:
//!
//! ```text
//! A   inwards   z ← L̃⁻¹·P·z       next ← next − H·z      outwards   x ← x − G·next      x ← Ũ⁻¹·x
//! Aᵀ  inwards   z ← Ũ⁻ᵀ·z         next ← next − Gᵀ·z     outwards   x ← x − Hᵀ·next     x ← Pᵀ·L̃⁻ᵀ·x
//! ```

use bt_formats::{Op, Par, Scalar, mul_add};
use pulp::Simd;

use super::Place;
use super::panel::{exchange, in_order};
use super::pass::{Direction, join};
use super::substitution::Chain;
use crate::pivot::inverse;

/// Runs the chains of both sides. Returns whether blocks of this size are dealt with here; otherwise nothing has been done.
pub(super) fn run<T: Scalar, const G: usize>(op: Op, par: Par, chains: &mut [[Chain<'_, T>; G]; 2]) -> bool {
    if !(2..=8).contains(&chains[0][0].k) {
        return false;
    }
    if par == Par::Rayon {
        let [first, second] = chains;
        join(par, || run_together(op, first), || run_together(op, second));
    } else {
        run_together(op, chains.as_flattened_mut());
    }
    true
}

#[inline(never)]
fn run_together<T: Scalar>(op: Op, chains: &mut [Chain<'_, T>]) {
    if op == Op::Identity {
        bt_simd::dispatch_short(Steps::<_, true>(chains));
    } else {
        bt_simd::dispatch_short(Steps::<_, false>(chains));
    }
}

/// Chains that one thread runs side by side, with A itself or its transpose, as work for a SIMD instruction set.
struct Steps<'c, 'a, T: Scalar, const ITSELF: bool>(&'c mut [Chain<'a, T>]);

impl<T: Scalar, const ITSELF: bool> pulp::WithSimd for Steps<'_, '_, T, ITSELF> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        if S::IS_SCALAR || cfg!(target_family = "wasm") { self.run::<false>() } else { self.run::<true>() }
    }
}

impl<T: Scalar, const ITSELF: bool> Steps<'_, '_, T, ITSELF> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        match self.0[0].k {
            2 => all_steps::<T, 2, ITSELF, FUSED>(self.0),
            3 => all_steps::<T, 3, ITSELF, FUSED>(self.0),
            4 => all_steps::<T, 4, ITSELF, FUSED>(self.0),
            5 => all_steps::<T, 5, ITSELF, FUSED>(self.0),
            6 => all_steps::<T, 6, ITSELF, FUSED>(self.0),
            7 => all_steps::<T, 7, ITSELF, FUSED>(self.0),
            _ => all_steps::<T, 8, ITSELF, FUSED>(self.0),
        }
    }
}

#[inline(always)]
fn all_steps<T: Scalar, const K: usize, const ITSELF: bool, const FUSED: bool>(chains: &mut [Chain<'_, T>]) {
    let longest = chains.iter().map(|c| c.x.len() / K).max().unwrap_or(0);
    for step in 0..longest {
        for chain in chains.iter_mut() {
            if step < chain.x.len() / K {
                one_step::<T, K, ITSELF, FUSED>(chain, step);
            }
        }
    }
}

#[inline(always)]
fn one_step<T: Scalar, const K: usize, const ITSELF: bool, const FUSED: bool>(chain: &mut Chain<'_, T>, step: usize) {
    let Chain { lu, down, direction, ref mut x, middle, .. } = *chain;
    let (blocks, first_row) = lu.side(down);
    let m = x.len() / K;
    let rising = down == (direction == Direction::Inwards);
    let at = if rising { step } else { m - 1 - step };
    let Place { panel, g } = lu.places[blocks.start + at];
    let block = Block::<T, K> {
        panel: chunks(&lu.panels[panel..panel + 2 * K * K]),
        g: chunks(&lu.g[g..g + K * K]),
        pivots: lu.pivots[first_row + at * K..].first_chunk().expect("a pivot a row"),
    };
    let (own, is_last) = (at * K, step + 1 == m);
    // The neighbour towards the middle: the next block inwards, the one before outwards.
    let next = if down { own + K } else { own.saturating_sub(K) };
    match direction {
        Direction::Inwards => {
            if ITSELF && !in_order(0, block.pivots) {
                exchange(&mut x[own..own + K], 0, block.pivots);
            }
            let mut v = *part(x, own);
            block.inwards::<ITSELF, FUSED>(&mut v);
            *part_mut(x, own) = v;
            if !is_last {
                let mut after = *part(x, next);
                block.hand_over::<ITSELF, FUSED>(&v, &mut after);
                *part_mut(x, next) = after;
            }
        }
        Direction::Outwards => {
            let after: [T; K] = if step == 0 { *part(middle, 0) } else { *part(x, next) };
            let mut v = *part(x, own);
            block.take::<ITSELF, FUSED>(&mut v, &after);
            block.outwards::<ITSELF, FUSED>(&mut v);
            *part_mut(x, own) = v;
            if !ITSELF && !in_order(0, block.pivots) {
                let x = &mut x[own..own + K];
                block.pivots.iter().enumerate().rev().for_each(|(r, &p)| x.swap(r, p as usize));
            }
        }
    }
}

#[inline(always)]
fn part<T, const K: usize>(x: &[T], first: usize) -> &[T; K] {
    x[first..].first_chunk().expect("the rows of a block")
}

#[inline(always)]
fn part_mut<T, const K: usize>(x: &mut [T], first: usize) -> &mut [T; K] {
    x[first..].first_chunk_mut().expect("the rows of a block")
}

#[inline(always)]
fn chunks<T, const K: usize>(values: &[T]) -> &[[T; K]] {
    values.as_chunks().0
}

/// The factors of a block of K rows.
struct Block<'a, T, const K: usize> {
    /// Columns of L̃\Ũ and of H in turn.
    panel: &'a [[T; K]],
    /// Columns of G.
    g: &'a [[T; K]],
    pivots: &'a [u32; K],
}

impl<T: Scalar, const K: usize> Block<'_, T, K> {
    /// v ← L̃⁻¹·v;  of Aᵀ: v ← Ũ⁻ᵀ·v
    #[inline(always)]
    fn inwards<const ITSELF: bool, const FUSED: bool>(&self, v: &mut [T; K]) {
        let r = self.reciprocals();
        for c in 0..K {
            let column = &self.panel[2 * c];
            if ITSELF {
                for i in c + 1..K {
                    v[i] = mul_add::<T, FUSED>(-column[i], v[c], v[i]);
                }
            } else {
                for i in 0..c {
                    v[c] = mul_add::<T, FUSED>(-column[i], v[i], v[c]);
                }
                v[c] *= r[c];
            }
        }
    }

    /// `after` ← `after` − H·v;  of Aᵀ: `after` ← `after` − Gᵀ·v
    #[inline(always)]
    fn hand_over<const ITSELF: bool, const FUSED: bool>(&self, v: &[T; K], after: &mut [T; K]) {
        for c in 0..K {
            for i in 0..K {
                if ITSELF {
                    after[i] = mul_add::<T, FUSED>(-self.panel[2 * c + 1][i], v[c], after[i]);
                } else {
                    after[c] = mul_add::<T, FUSED>(-self.g[c][i], v[i], after[c]);
                }
            }
        }
    }

    /// v ← v − G·`after`;  of Aᵀ: v ← v − Hᵀ·`after`
    #[inline(always)]
    fn take<const ITSELF: bool, const FUSED: bool>(&self, v: &mut [T; K], after: &[T; K]) {
        for c in 0..K {
            for i in 0..K {
                if ITSELF {
                    v[i] = mul_add::<T, FUSED>(-self.g[c][i], after[c], v[i]);
                } else {
                    v[c] = mul_add::<T, FUSED>(-self.panel[2 * c + 1][i], after[i], v[c]);
                }
            }
        }
    }

    /// v ← Ũ⁻¹·v;  of Aᵀ: v ← L̃⁻ᵀ·v
    #[inline(always)]
    fn outwards<const ITSELF: bool, const FUSED: bool>(&self, v: &mut [T; K]) {
        let r = self.reciprocals();
        for c in (0..K).rev() {
            let column = &self.panel[2 * c];
            if ITSELF {
                v[c] *= r[c];
                for i in 0..c {
                    v[i] = mul_add::<T, FUSED>(-column[i], v[c], v[i]);
                }
            } else {
                for i in c + 1..K {
                    v[c] = mul_add::<T, FUSED>(-column[i], v[i], v[c]);
                }
            }
        }
    }

    #[inline(always)]
    fn reciprocals(&self) -> [T; K] {
        let mut r = [T::default(); K];
        for c in 0..K {
            r[c] = inverse(self.panel[2 * c][c]);
        }
        r
    }
}
