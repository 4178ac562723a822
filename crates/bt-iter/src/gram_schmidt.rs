//! Classical Gram–Schmidt with re-orthogonalisation, which reads the basis two to four times whatever its size.
//!
//! ```text
//! h ← Vᴴw;   w ← w − V·h,  g ← Vᴴw;   w ← w − V·g,  h ← h + g   only where ‖w‖₂ fell below a tenth of what it was
//! ```
//!
//! Done twice, it leaves V orthonormal to a few unit roundoffs as long as the vectors are numerically independent, which modified
//! Gram–Schmidt done once does not (L. Giraud, J. Langou, M. Rozložník, J. van den Eshof, Numer. Math. 101 (2005) 87–100,
//! doi:10.1007/s00211-005-0615-4). The second time is left out where w keeps a tenth of its norm: what is left in it of the
//! directions of V, a few roundoffs of the norm before, is then at most ten times as much of the one after (J. W. Daniel, W. B.
//! Gragg, L. Kaufman, G. W. Stewart, Math. Comp. 30 (1976) 772–795, doi:10.1090/S0025-5718-1976-0431641-8).
//!
//! Where the vector before had to be made orthogonal again, g is computed along with the first w − V·h, on strips of rows that stay in the
//! second-level cache, so that V is read once for both; elsewhere g is not computed before it is known to be needed. Both give the same bits.
//! Modified Gram–Schmidt reads each vector twice, and w and writes it for each of them.
//!
//! V may be kept in single precision: its numbers are widened as they are read, and w stays in double.
//!
//! Sums are taken strip by strip in pieces of rows that depend on n alone, then over the pieces: the same bits for any number
//! of threads. Storage: p(m + 1) scalars for p ≤ 64 pieces and m vectors, 2m + 1 more. Cost for k vectors: 4kn flops (6kn where g
//! was computed for nothing) or 8kn, V read twice, or three or four times.

use std::array::from_fn;

use bt_formats::{Scalar, mul_add, zero};

use crate::blas1::{ConjValue, LANES, join, leaf, square};
use crate::system::System;

/// Rows of a strip: 1 MiB of 32 vectors of f64. In shorter ones the hardware hardly begins to read ahead.
const STRIP: usize = 4096;
/// Pieces of rows, at most.
const PIECES: usize = 64;
/// Vectors that a strip is passed over with at once.
const GROUP: usize = 4;
/// What w has to keep of its norm, or it is made orthogonal again.
const KEPT: f64 = 0.1;

/// Workspace for bases of at most m vectors.
pub(crate) struct GramSchmidt<T> {
    /// Rows of a piece.
    rows: usize,
    /// Of each piece: Vᴴw and wᴴw.
    sums: Vec<T>,
    /// −Vᴴw
    coefficients: Vec<T>,
    /// Vᴴw and wᴴw over all pieces.
    totals: Vec<T>,
    /// Whether the vector before was made orthogonal twice.
    twice: bool,
}

impl<T: Scalar> GramSchmidt<T> {
    pub fn new(n: usize, m: usize) -> Self {
        let rows = n.div_ceil(PIECES).next_multiple_of(STRIP).max(STRIP);
        Self {
            rows,
            sums: vec![zero(); n.div_ceil(rows) * (m + 1)],
            coefficients: vec![zero(); m],
            totals: vec![zero(); m + 1],
            twice: false,
        }
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&*self.sums) + size_of_val(&*self.coefficients) + size_of_val(&*self.totals)
    }

    /// w ← w − V·h, h ← Vᴴw for the k columns of `basis`, as long as w; ‖w‖₂ before and after. Sums are those of `system`.
    pub fn orthogonalize<V: Scalar>(
        &mut self,
        system: &System<'_, T>,
        basis: &[V],
        k: usize,
        w: &mut [T],
        h: &mut [T],
    ) -> (f64, f64) {
        let Self { rows, sums, coefficients, totals, twice } = self;
        let (c, pieces) = (&mut coefficients[..k], w.len().div_ceil(*rows));
        // w ← w + V·c;  the first `dots` of Vᴴw, and wᴴw, which are summed over all rows;  ‖w‖₂
        let mut sweep = |c: &[T], dots, w: &mut [T], totals: &mut [T]| {
            Sweep { basis, n: w.len(), rows: *rows, c, dots }.pieces(0, w, sums);
            let totals = &mut totals[..=dots];
            totals.iter_mut().enumerate().for_each(|(i, t)| *t = total(sums, dots + 1, pieces, i));
            system.on.sum(totals);
            system.norm_of(totals[dots], w)
        };
        // h ← Vᴴw
        let before = sweep(&[], k, w, totals);
        for i in 0..k {
            h[i] = totals[i];
            c[i] = -h[i];
        }
        // w ← w − V·h, and g ← Vᴴw where that is likely to be needed
        let ahead = if *twice { k } else { 0 };
        let mut after = sweep(c, ahead, w, totals);
        *twice = after < KEPT * before;
        if *twice {
            if ahead == 0 {
                // g ← Vᴴw
                sweep(&[], k, w, totals);
            }
            // w ← w − V·g;  h ← h + g
            for i in 0..k {
                h[i] += totals[i];
                c[i] = -totals[i];
            }
            after = sweep(c, 0, w, totals);
        }
        (before, after)
    }

    /// x ← x + V·y for the columns of `basis`, as long as x.
    pub fn add<V: Scalar>(&mut self, basis: &[V], y: &[T], x: &mut [T]) {
        Sweep { basis, n: x.len(), rows: self.rows, c: y, dots: 0 }.pieces(0, x, &mut self.sums);
    }
}

/// Sum i of all pieces, which have `each`.
fn total<T: Scalar>(sums: &[T], each: usize, pieces: usize, i: usize) -> T {
    (0..pieces).map(|p| sums[p * each + i]).sum()
}

/// w ← w + V·c, where there is a c; then the first `dots` of Vᴴw, and wᴴw.
struct Sweep<'a, T, V> {
    basis: &'a [V],
    n: usize,
    rows: usize,
    c: &'a [T],
    dots: usize,
}

impl<T: Scalar, V: Scalar> Sweep<'_, T, V> {
    /// The pieces of w from row `first` on, and their sums.
    #[inline(never)]
    fn pieces(&self, first: usize, w: &mut [T], sums: &mut [T]) {
        if w.len() <= self.rows {
            let sums = &mut sums[..w.len().min(1) * (self.dots + 1)];
            sums.fill(zero());
            bt_simd::dispatch(Piece { sweep: self, first, w, sums });
            return;
        }
        let half = w.len().div_ceil(self.rows) / 2;
        let (w0, w1) = w.split_at_mut(half * self.rows);
        let (s0, s1) = sums.split_at_mut(half * (self.dots + 1));
        join(self.n, || self.pieces(first, w0, s0), || self.pieces(first + half * self.rows, w1, s1));
    }

    /// The rows `first..` of one strip; products and sums are fused where that is one instruction.
    #[inline(always)]
    fn strip<const FUSED: bool>(&self, first: usize, w: &mut [T], sums: &mut [T]) {
        let len = w.len();
        let v = |j: usize| &self.basis[j * self.n + first..][..len];
        let mut groups = self.c.chunks_exact(GROUP);
        let mut j = 0;
        for y in &mut groups {
            // Plain iterators: a pass over an array of vectors was compiled to gathers.
            let [a, b, c, d] = from_fn(|q| v(j + q).iter());
            for ((((w, a), b), c), d) in w.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                let (a, b, c, d): (T, T, T, T) = (a.cast(), b.cast(), c.cast(), d.cast());
                let pair = mul_add::<T, FUSED>(y[3], d, y[2] * c);
                *w = mul_add::<T, FUSED>(y[1], b, mul_add::<T, FUSED>(y[0], a, *w)) + pair;
            }
            j += GROUP;
        }
        for (q, &y) in groups.remainder().iter().enumerate() {
            w.iter_mut().zip(v(j + q)).for_each(|(w, v)| *w = mul_add::<T, FUSED>(y, v.cast(), *w));
        }
        let mut j = 0;
        while j + GROUP <= self.dots {
            let terms = dots::<T, V, FUSED, GROUP>(from_fn(|q| v(j + q)), w);
            (0..GROUP).for_each(|q| sums[j + q] += terms[q]);
            j += GROUP;
        }
        for j in j..self.dots {
            let [term] = dots::<T, V, FUSED, 1>([v(j)], w);
            sums[j] += term;
        }
        let [term] = leaf(len, [&*w], [], &|[w], []| ([], [square(w)]));
        sums[self.dots] += term;
    }
}

/// The strips of a piece of w, from row `first` on, as work for a SIMD instruction set.
struct Piece<'a, 'b, T, V> {
    sweep: &'a Sweep<'b, T, V>,
    first: usize,
    w: &'a mut [T],
    sums: &'a mut [T],
}

impl<T: Scalar, V: Scalar> pulp::WithSimd for Piece<'_, '_, T, V> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self { sweep, first, w, sums } = self;
        for (s, strip) in w.chunks_mut(STRIP).enumerate() {
            if S::IS_SCALAR || cfg!(target_family = "wasm") {
                sweep.strip::<false>(first + s * STRIP, strip, sums);
            } else {
                sweep.strip::<true>(first + s * STRIP, strip, sums);
            }
        }
    }
}

/// vᴴw for each v, as long as w.
#[inline(always)]
fn dots<T: Scalar, V: Scalar, const FUSED: bool, const N: usize>(v: [&[V]; N], w: &[T]) -> [T; N] {
    let whole = w.len() / LANES * LANES;
    let mut sums = [[zero::<T>(); LANES]; N];
    for i in (0..whole).step_by(LANES) {
        let w: &[T; LANES] = w[i..].first_chunk().expect("whole lanes");
        for n in 0..N {
            let v: &[V; LANES] = v[n][i..].first_chunk().expect("as long as w");
            for l in 0..LANES {
                sums[n][l] = mul_add::<T, FUSED>(v[l].cast::<T>().conj_value(), w[l], sums[n][l]);
            }
        }
    }
    let mut sums = sums.map(|lanes| lanes.into_iter().sum::<T>());
    for i in whole..w.len() {
        (0..N).for_each(|n| sums[n] += v[n][i].cast::<T>().conj_value() * w[i]);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::here;
    use bt_formats::{RealScalar, c64, norm2};

    /// The columns (j, …) ↦ 1/(i + j + 1) of the Hilbert matrix made orthonormal, and ‖VᴴV − I‖ in the largest entry.
    fn loss<T: Scalar>(n: usize, k: usize) -> f64 {
        let mut gram_schmidt = GramSchmidt::<T>::new(n, k);
        let mut v = vec![zero::<T>(); n * k];
        for j in 0..k {
            let (basis, rest) = v.split_at_mut(j * n);
            let w = &mut rest[..n];
            (0..n).for_each(|i| w[i] = T::rounded(1.0 / (i + j + 1) as f64, 1.0 / (i + 2 * j + 1) as f64));
            let mut h = vec![zero(); k];
            let before = w.to_vec();
            let (norm_before, norm) = here(n, |system| gram_schmidt.orthogonalize(system, basis, j, w, &mut h));
            // w before = V·h + w
            let mut sum = w.to_vec();
            gram_schmidt.add(basis, &h[..j], &mut sum);
            sum.iter_mut().zip(&before).for_each(|(s, b)| *s -= *b);
            let error = norm2(&sum);
            assert!(error <= 1e-14 * norm_before, "{j}: {error}");
            crate::blas1::scale(T::rounded(1.0 / norm, 0.0), w);
        }
        let mut loss = 0.0f64;
        for i in 0..k {
            for j in 0..k {
                let inner: T = (0..n).map(|r| v[i * n + r].conj_value() * v[j * n + r]).sum();
                loss = loss.max((inner - T::rounded(f64::from(i == j), 0.0)).abs().to_f64());
            }
        }
        loss
    }

    #[test]
    fn nearly_dependent_vectors_become_orthogonal() {
        // Of the condition 10¹² and more: once is not enough.
        for n in [9, 200, 1500] {
            assert!(loss::<f64>(n, 9) <= 1e-14, "{n}: {:e}", loss::<f64>(n, 9));
            assert!(loss::<c64>(n, 9) <= 1e-14, "{n}: {:e}", loss::<c64>(n, 9));
        }
    }

    #[test]
    fn bits_do_not_depend_on_what_was_expected() {
        let n = 9000;
        // Unit vectors along i mod 3; w nearly in their span, and not at all.
        let basis: Vec<f64> = (0..3 * n).map(|i| f64::from(i % n % 3 == i / n) / 3000f64.sqrt()).collect();
        for outside in [1e-9, 1.0] {
            let run = |twice: bool| {
                let mut w: Vec<f64> = (0..n).map(|i| (i % 3) as f64 + outside * ((i * 29) % 31) as f64).collect();
                let (mut h, mut made) = ([0.0; 3], GramSchmidt { twice, ..GramSchmidt::new(n, 3) });
                let norms = here(n, |system| made.orthogonalize(system, &basis, 3, &mut w, &mut h));
                assert_eq!(made.twice, outside < 1.0);
                (w, h, norms)
            };
            assert_eq!(run(true), run(false), "{outside}");
        }
    }

    #[test]
    fn bits_do_not_depend_on_the_pool() {
        let n = 140_000;
        let basis: Vec<f64> = (0..6 * n).map(|i| ((i * 37) % 101) as f64 / 3e4).collect();
        let run = |threads: usize| {
            let mut w: Vec<f64> = (0..n).map(|i| 1.0 / (1 + i % 7) as f64).collect();
            let mut h = [0.0; 6];
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let norms = pool
                .install(|| here(n, |system| GramSchmidt::new(n, 6).orthogonalize(system, &basis, 6, &mut w, &mut h)));
            (w, h, norms)
        };
        assert_eq!(run(1), run(3));
    }
}
