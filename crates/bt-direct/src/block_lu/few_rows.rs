//! Blocks of two to four rows of numbers that are not doubles (those have `registers.rs`): the size is a constant, so that the elimination
//! of a block is code without loops, and nothing is called for it.
//!
//! ```text
//! ⎡ D̃ⱼ       A(j, t) ⎤      ⎡ L̃ⱼ\Ũⱼ  Gⱼ ⎤
//! ⎣ A(t, j)          ⎦  →   ⎣ Hⱼ        ⎦        D̃ⱼ = Dⱼ − H₋·G₋
//! ```
//!
//! As in `tiles.rs`, whatever is out of the ordinary ends the kernel with nothing done that counts.

use bt_formats::{RealScalar, Scalar, mul_add, zero};
use pulp::Simd;

use super::job::{Chain, Dense, Record};
use crate::band_lu::kernels::{by_squares, squares_fit};
use crate::lines;
use crate::pivot::inverse;

/// Rows from and to which there are such kernels.
pub(super) const ROWS: std::ops::RangeInclusive<usize> = 2..=4;

/// Steps between two questions whether to go on.
const CHECKED: usize = 32;

/// Steps that memory is asked for ahead.
const AHEAD: usize = 4;

/// See [`Engine::chains`](super::job::Engine::chains).
#[inline(never)]
pub(super) fn eliminate_chains<T: Scalar>(chains: &mut [Chain<'_, T>], go_on: &mut dyn FnMut(usize) -> bool) -> usize {
    match chains[0].k {
        2 => lines::dispatch::<T, _>(InTurn::<T, 2> { chains, go_on }),
        3 => lines::dispatch::<T, _>(InTurn::<T, 3> { chains, go_on }),
        4 => lines::dispatch::<T, _>(InTurn::<T, 4> { chains, go_on }),
        _ => 0,
    }
}

/// Blocks of every chain in turn: while one waits for its pivots, the processor goes on with the other.
struct InTurn<'k, 'c, T, const K: usize> {
    chains: &'k mut [Chain<'c, T>],
    go_on: &'k mut dyn FnMut(usize) -> bool,
}

impl<T: Scalar, const K: usize> pulp::WithSimd for InTurn<'_, '_, T, K> {
    type Output = usize;
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        if S::IS_SCALAR || cfg!(target_family = "wasm") { self.run::<false>() } else { self.run::<true>() }
    }
}

impl<T: Scalar, const K: usize> InTurn<'_, '_, T, K> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) -> usize {
        let Self { chains, go_on } = self;
        let (width, steps) = (chains.len(), chains.iter().map(|chain| chain.blocks).min().unwrap_or(0));
        let mut step = 0;
        while step < steps && (!step.is_multiple_of(CHECKED) || go_on(width * CHECKED.min(steps - step))) {
            let before: [f64; K] = *chains[0].incoming.first_chunk().expect("a sum a column");
            for at in 0..width {
                let chain = &mut chains[at];
                chain.fetch(step + AHEAD);
                let mut columns = Columns::<T, K>::load(&chain.block(step));
                let incoming: [f64; K] = *chain.incoming.first_chunk().expect("a sum a column");
                let done = columns.measure(incoming).and_then(
                    #[inline(always)]
                    |measured| {
                        if let Some((panel, g)) = chain.last(step) {
                            columns.subtract::<FUSED>(panel.as_chunks().0, g.as_chunks().0);
                        }
                        columns.eliminate::<FUSED>(&measured)
                    },
                );
                let Some(Eliminated { outgoing, pivots: exchanged, record: found }) = done else {
                    // The first chain goes back to where the second one is.
                    chains[0].incoming[..K].copy_from_slice(&before);
                    return step;
                };
                let (panel, g, pivots, record) = chain.factors(step);
                columns.store(panel, g);
                pivots.copy_from_slice(&exchanged);
                *record = found;
                chain.incoming[..K].copy_from_slice(&outgoing);
            }
            step += 1;
        }
        step
    }
}

/// Columns of D̃, A(t, j) and A(j, t), which become L̃\Ũ, H and G.
struct Columns<T, const K: usize> {
    d: [[T; K]; K],
    h: [[T; K]; K],
    g: [[T; K]; K],
}

/// What is known of a block before it is eliminated: the largest |re| + |im|, and sums of columns, see [`Chain`].
struct Measured<const K: usize> {
    max_a: f64,
    norm_one: f64,
    outgoing: [f64; K],
}

/// What else there is of a block that has been eliminated.
struct Eliminated<const K: usize> {
    outgoing: [f64; K],
    pivots: [u32; K],
    record: Record,
}

impl<T: Scalar, const K: usize> Columns<T, K> {
    #[inline(always)]
    fn load(from: &Dense<'_, T>) -> Self {
        let mut out = Self { d: [[zero(); K]; K], h: [[zero(); K]; K], g: [[zero(); K]; K] };
        let (own, below, beside) = (from.own.as_chunks().0, from.below.as_chunks().0, from.beside.as_chunks().0);
        out.d.copy_from_slice(&own[..K]);
        out.h.copy_from_slice(&below[..K]);
        out.g.copy_from_slice(&beside[..K]);
        out
    }

    #[inline(always)]
    fn store(&self, panel: &mut [T], g: &mut [T]) {
        let (panel, g) = (&mut panel.as_chunks_mut().0[..2 * K], &mut g.as_chunks_mut().0[..K]);
        for c in 0..K {
            (panel[2 * c], panel[2 * c + 1], g[c]) = (self.d[c], self.h[c], self.g[c]);
        }
    }

    /// None where a number is not finite, or sums of moduli leave the range of squares.
    #[inline(always)]
    fn measure(&self, incoming: [f64; K]) -> Option<Measured<K>> {
        let (mut max_a, mut norm_one, mut outgoing) = (zero::<T::Real>(), 0.0f64, [0.0; K]);
        let mut within = true;
        for c in 0..K {
            let (mut sum, mut beside) = (zero::<T::Real>(), zero::<T::Real>());
            let (mut size, mut size_beside) = (zero::<T::Real>(), zero::<T::Real>());
            for i in 0..K {
                let (d, h, g) = (self.d[c][i], self.h[c][i], self.g[c][i]);
                sum += by_squares(d) + by_squares(h);
                beside += by_squares(g);
                size = size.max_of_moduli(d.abs1()).max_of_moduli(h.abs1());
                size_beside = size_beside.max_of_moduli(g.abs1());
            }
            max_a = max_a.max_of_moduli(size).max_of_moduli(size_beside);
            within &= (size == zero() || squares_fit::<T>(sum)) && (size_beside == zero() || squares_fit::<T>(beside));
            norm_one = norm_one.max(incoming[c] + sum.to_f64());
            outgoing[c] = beside.to_f64();
        }
        let measured = Measured { max_a: max_a.to_f64(), norm_one, outgoing };
        (within && measured.max_a.is_finite() && norm_one.is_finite()).then_some(measured)
    }

    /// D̃ ← D − H₋·G₋
    #[inline(always)]
    fn subtract<const FUSED: bool>(&mut self, panel: &[[T; K]], g: &[[T; K]]) {
        let (panel, g) = (&panel[..2 * K], &g[..K]);
        for c in 0..K {
            for q in 0..K {
                self.d[c] = minus_product::<T, K, FUSED>(self.d[c], &panel[2 * q + 1], g[c][q], 0);
            }
        }
    }

    /// P·D̃ = L̃·Ũ, H ← A(t, j)·Ũ⁻¹, G ← L̃⁻¹·P·A(j, t). None where a pivot has no normal reciprocal, or a number is not finite.
    #[inline(always)]
    fn eliminate<const FUSED: bool>(&mut self, measured: &Measured<K>) -> Option<Eliminated<K>> {
        let Self { d, h, g } = self;
        let tiny = T::Real::MIN_POSITIVE * T::Real::from_f64(16.0);
        let (mut pivots, mut min_pivot) = ([0; K], T::Real::INFINITY);
        for i in 0..K {
            let mut p = i;
            for r in i + 1..K {
                p = if d[i][r].abs1() > d[i][p].abs1() { r } else { p };
            }
            pivots[i] = p as u32;
            if p != i {
                for c in 0..K {
                    d[c].swap(i, p);
                    g[c].swap(i, p);
                }
            }
            let (pivot, size) = (d[i][i], d[i][i].abs1());
            if !(size >= tiny && size * tiny <= T::Real::from_f64(1.0)) {
                return None;
            }
            min_pivot = min_pivot.min_nan(Scalar::abs(pivot));
            let r = inverse(pivot);
            for t in 0..K {
                d[i][t] = if t > i { d[i][t] * r } else { d[i][t] };
                h[i][t] *= r;
            }
            let (l, below) = (d[i], h[i]);
            for c in i + 1..K {
                let x = d[c][i];
                d[c] = minus_product::<T, K, FUSED>(d[c], &l, x, i + 1);
                h[c] = minus_product::<T, K, FUSED>(h[c], &below, x, 0);
            }
            for c in 0..K {
                g[c] = minus_product::<T, K, FUSED>(g[c], &l, g[c][i], i + 1);
            }
        }
        let [mut of_u, mut of_h, mut of_g] = [zero::<T::Real>(); 3];
        for c in 0..K {
            for i in 0..K {
                of_u = if i <= c { of_u.max_of_moduli(d[c][i].abs1()) } else { of_u };
                of_h = of_h.max_of_moduli(h[c][i].abs1());
                of_g = of_g.max_of_moduli(g[c][i].abs1());
            }
        }
        let growth = of_u.to_f64().max_nan(of_h.to_f64() * of_g.to_f64());
        let Measured { max_a, norm_one, outgoing } = *measured;
        let record = Record { max_a, norm_one, growth, min_pivot: min_pivot.to_f64() };
        growth.is_finite().then_some(Eliminated { outgoing, pivots, record })
    }
}

/// y − l·x in the places from `first` on.
#[inline(always)]
fn minus_product<T: Scalar, const K: usize, const FUSED: bool>(
    mut y: [T; K],
    l: &[T; K],
    x: T,
    first: usize,
) -> [T; K] {
    for i in 0..K {
        y[i] = if i >= first { mul_add::<T, FUSED>(-x, l[i], y[i]) } else { y[i] };
    }
    y
}
