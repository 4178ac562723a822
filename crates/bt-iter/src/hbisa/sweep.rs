//! One sweep of each form, from the x before it to one elsewhere. After every sweep but Gauss–Seidel's, s = D·x and t = b − (L +
//! U)·x, so that b − A·x = t − s; Gauss–Seidel leaves t = b − U·xⁱ⁺¹ and s = b − U·xⁱ, whose difference is the same. With two
//! colours t and s hold the rows of the even blocks, then those of the odd ones; with ω = 1, t holds the even ones alone.

use std::ops::Range;

use bt_formats::{BlockTridiagonal, Matrix, Par, Scalar};

use super::{Hbisa, Phase};
use crate::block_diagonal::for_blocks;
use crate::block_set::{BlockSet, SweepFactors};
use crate::quasi::QuasiBlockTridiagonal;

/// A = D + L + U, with a remainder or without.
pub(super) struct Splitting<'a, T: Scalar> {
    pub blocks: &'a BlockTridiagonal<T>,
    pub quasi: Option<&'a QuasiBlockTridiagonal<'a, T>>,
}

impl<'a, T: Scalar> Splitting<'a, T> {
    /// The whole of A.
    pub fn matrix(&self) -> &'a dyn Matrix<T> {
        match self.quasi {
            Some(quasi) => quasi.matrix(),
            None => self.blocks,
        }
    }
    pub fn bytes(&self) -> usize {
        self.quasi.map_or(self.blocks.bytes(), QuasiBlockTridiagonal::bytes)
    }
    /// r ← r − L·x in block row j.
    fn subtract_lower(&self, j: usize, x: &[T], r: &mut [T]) {
        self.blocks.subtract_lower(j, x, r);
        if let Some(quasi) = self.quasi {
            quasi.subtract_below(j, x, r);
        }
    }
    /// r ← r − U·x in block row j.
    pub fn subtract_upper(&self, j: usize, x: &[T], r: &mut [T]) {
        self.blocks.subtract_upper(j, x, r);
        if let Some(quasi) = self.quasi {
            quasi.subtract_above(j, x, r);
        }
    }
    /// r ← b − (L + U)·x in consecutive block rows.
    pub fn couplings_residual(&self, blocks: Range<usize>, b: &[T], x: &[T], mut r: &mut [T]) {
        self.blocks.couplings_residual(blocks.clone(), b, x, r);
        if let Some(quasi) = self.quasi {
            for j in blocks {
                let (block, rest) = r.split_at_mut(self.blocks.partition().size(j));
                quasi.subtract_below(j, x, block);
                quasi.subtract_above(j, x, block);
                r = rest;
            }
        }
    }
}

impl<T: Scalar> Hbisa<'_, T> {
    /// Eq. (6): xⁱ⁺¹ ← D⁻¹·tⁱ
    pub(super) fn jacobi(&mut self, b: &[T], x: &mut [T], par: Par) {
        let SweepFactors::All(factors) = &self.factors else { unreachable!("Jacobi solves with all blocks at once") };
        factors.solve_into(self.a.blocks.partition(), &self.t, x, par);
        std::mem::swap(&mut self.t, &mut self.s);
        self.right_hand_side(b, x, par);
    }

    /// Eq. (7), with t = b − U·xⁱ: xⱼⁱ⁺¹ ← Dⱼ⁻¹·(tⱼ − Lⱼ·xⱼ₋₁ⁱ⁺¹)
    pub(super) fn gauss_seidel(&mut self, b: &[T], x: &mut [T], par: Par) {
        let SweepFactors::Each(factors) = &self.factors else {
            unreachable!("blocks in order are solved with one by one")
        };
        let partition = self.a.blocks.partition();
        for j in 0..partition.n_blocks() {
            let z = &mut self.work[..partition.size(j)];
            z.copy_from_slice(&self.t[partition.range(j)]);
            self.a.subtract_lower(j, x, z);
            factors.solve_block(j, z);
            x[partition.range(j)].copy_from_slice(z);
        }
        std::mem::swap(&mut self.t, &mut self.s);
        self.t.copy_from_slice(b);
        let Self { a, t, .. } = self;
        for_blocks(partition, t, par, &|j, t| a.subtract_upper(j, x, t));
    }

    /// Eq. (7) forwards, then backwards: xⱼ ← Dⱼ⁻¹·(bⱼ − Lⱼ·xⱼ₋₁ − Uⱼ·xⱼ₊₁) for j = 0 … m − 1 … 0
    pub(super) fn symmetric(&mut self, b: &[T], previous: &[T], x: &mut [T], par: Par) {
        x.copy_from_slice(previous);
        let SweepFactors::Each(factors) = &self.factors else {
            unreachable!("blocks in order are solved with one by one")
        };
        let partition = self.a.blocks.partition();
        let m = partition.n_blocks();
        for j in (0..m).chain((0..m).rev()) {
            let range = partition.range(j);
            let z = &mut self.work[..range.len()];
            self.a.couplings_residual(j..j + 1, b, x, z);
            // D·x
            self.s[range.clone()].copy_from_slice(z);
            factors.solve_block(j, z);
            x[range].copy_from_slice(z);
        }
        self.right_hand_side(b, x, par);
    }

    /// Even blocks, then odd ones from the new even ones, each relaxed. The rows of the even blocks come first in t and s.
    pub(super) fn red_black(&mut self, b: &[T], previous: &[T], x: &mut [T], par: Par) {
        let Self { a, factors, t, s, work, direction, phase, .. } = self;
        let SweepFactors::Colours([even, odd]) = &*factors else {
            unreachable!("two colours have factors of their own")
        };
        let rows = even.partition().n();
        let ((t_even, t_odd), (s_even, s_odd)) = (t.split_at_mut(rows), s.split_at_mut(rows));
        let mut half = Half { a: a.blocks, set: even, previous, work, par };
        let omega = match phase {
            Phase::Relaxed { omega, .. } => {
                half.relax(*omega, t_even, s_even, x);
                *omega
            }
            Phase::Chebyshev { polynomial, .. } => {
                half.accelerate(polynomial.next(), t_even, s_even, direction, x);
                1.0
            }
        };
        odd.couple(a.blocks, b, x, t_odd, par);
        half.set = odd;
        half.relax(omega, t_odd, s_odd, x);
        // D·x = t
        match phase {
            Phase::Relaxed { .. } if omega == 1.0 => std::mem::swap(t, s),
            Phase::Relaxed { .. } => {}
            Phase::Chebyshev { .. } => s_odd.copy_from_slice(t_odd),
        }
        even.couple(a.blocks, b, x, &mut t[..rows], par);
    }
}

/// The blocks of a colour, their x to be replaced.
struct Half<'a, T: Scalar> {
    a: &'a BlockTridiagonal<T>,
    set: &'a BlockSet<T>,
    /// x before the sweep.
    previous: &'a [T],
    work: &'a mut [T],
    par: Par,
}

impl<T: Scalar> Half<'_, T> {
    /// D⁻¹·t
    fn solve(&mut self, t: &[T]) {
        let z = &mut self.work[..t.len()];
        z.copy_from_slice(t);
        self.set.solve(z, self.par);
    }

    /// x ← x + ω(D⁻¹·t − x) and, unless ω = 1, s = D·x with it: s ← s + ω(t − s).
    fn relax(&mut self, omega: f64, t: &[T], s: &mut [T], x: &mut [T]) {
        if omega == 1.0 {
            return self.set.solve_into(self.a.partition(), t, x, self.par);
        }
        let w = T::rounded(omega, 0.0);
        self.solve(t);
        self.combine(|z, x| x + w * (z - x));
        s.iter_mut().zip(t).for_each(|(s, t)| *s += w * (*t - *s));
        self.set.scatter(self.a.partition(), self.work, x);
    }

    /// A step on the even blocks after the odd ones are eliminated: d ← k·d + c·(D⁻¹·t − x), x ← x + d, and s = D·x. `direction` is
    /// d, then D·d, which goes along with it.
    fn accelerate(&mut self, (keep, add): (f64, f64), t: &[T], s: &mut [T], direction: &mut [T], x: &mut [T]) {
        let (k, c) = (T::rounded(keep, 0.0), T::rounded(add, 0.0));
        let (d, image) = direction.split_at_mut(t.len());
        self.solve(t);
        let mut d = d.iter_mut();
        self.combine(|z, x| {
            let d = d.next().expect("as many as rows");
            *d = k * *d + c * (z - x);
            x + *d
        });
        for ((image, s), t) in image.iter_mut().zip(s).zip(t) {
            *image = k * *image + c * (*t - *s);
            *s += *image;
        }
        self.set.scatter(self.a.partition(), self.work, x);
    }

    /// z ← f(z, x), with x before the sweep.
    fn combine(&mut self, mut f: impl FnMut(T, T) -> T) {
        let (set, of) = (self.set, self.a.partition());
        for p in 0..set.partition().n_blocks() {
            let x = &self.previous[of.range(set.blocks().at(p))];
            for (z, &x) in self.work[set.partition().range(p)].iter_mut().zip(x) {
                *z = f(*z, x);
            }
        }
    }
}
