//! One sweep of each form. After every sweep but Gauss–Seidel's, s = D·x and t = b − (L + U)·x, so that b − A·x = t − s;
//! Gauss–Seidel leaves t = b − U·xⁱ⁺¹ and s = b − U·xⁱ, whose difference is the same.

use bt_formats::{BlockTridiagonal, Matrix, Par, Scalar};

use super::{Hbisa, Phase};
use crate::block_diagonal::for_blocks;
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
    /// r ← r − (L + U)·x in block row j.
    pub fn subtract_couplings(&self, j: usize, x: &[T], r: &mut [T]) {
        self.blocks.subtract_couplings(j, x, r);
        if let Some(quasi) = self.quasi {
            quasi.subtract_below(j, x, r);
            quasi.subtract_above(j, x, r);
        }
    }
}

/// Every other block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    Even,
    Odd,
}

impl Colour {
    fn has(self, j: usize) -> bool {
        j.is_multiple_of(2) == (self == Self::Even)
    }
}

impl<T: Scalar> Hbisa<'_, T> {
    /// Eq. (6): xⁱ⁺¹ ← D⁻¹·tⁱ
    pub(super) fn jacobi(&mut self, b: &[T], x: &mut [T], par: Par) {
        x.copy_from_slice(&self.t);
        self.factors.solve(self.a.blocks.partition(), x, par);
        std::mem::swap(&mut self.t, &mut self.s);
        self.right_hand_side(b, x, par);
    }

    /// Eq. (7), with t = b − U·xⁱ: xⱼⁱ⁺¹ ← Dⱼ⁻¹·(tⱼ − Lⱼ·xⱼ₋₁ⁱ⁺¹)
    pub(super) fn gauss_seidel(&mut self, b: &[T], x: &mut [T], par: Par) {
        let partition = self.a.blocks.partition();
        for j in 0..partition.n_blocks() {
            let z = &mut self.block[..partition.size(j)];
            z.copy_from_slice(&self.t[partition.range(j)]);
            self.a.subtract_lower(j, x, z);
            self.factors.solve_block(j, z);
            x[partition.range(j)].copy_from_slice(z);
        }
        std::mem::swap(&mut self.t, &mut self.s);
        self.t.copy_from_slice(b);
        let Self { a, t, .. } = self;
        for_blocks(partition, t, par, &|j, t| a.subtract_upper(j, x, t));
    }

    /// Eq. (7) forwards, then backwards: xⱼ ← Dⱼ⁻¹·(bⱼ − Lⱼ·xⱼ₋₁ − Uⱼ·xⱼ₊₁) for j = 0 … m − 1 … 0
    pub(super) fn symmetric(&mut self, b: &[T], x: &mut [T], par: Par) {
        let partition = self.a.blocks.partition();
        let m = partition.n_blocks();
        for j in (0..m).chain((0..m).rev()) {
            let range = partition.range(j);
            let z = &mut self.block[..range.len()];
            z.copy_from_slice(&b[range.clone()]);
            self.a.subtract_couplings(j, x, z);
            // D·x
            self.s[range.clone()].copy_from_slice(z);
            self.factors.solve_block(j, z);
            x[range].copy_from_slice(z);
        }
        self.right_hand_side(b, x, par);
    }

    /// Even blocks, then odd ones from the new even ones, each relaxed.
    pub(super) fn red_black(&mut self, b: &[T], x: &mut [T], par: Par) {
        match &mut self.phase {
            Phase::Relaxed { omega, .. } => {
                let omega = *omega;
                self.relax(Colour::Even, omega, x, par);
                self.couple(Colour::Odd, b, x, par);
                self.relax(Colour::Odd, omega, x, par);
            }
            Phase::Chebyshev { polynomial, .. } => {
                let coefficients = polynomial.next();
                self.accelerate(coefficients, x, par);
                self.couple(Colour::Odd, b, x, par);
                self.relax(Colour::Odd, 1.0, x, par);
            }
        }
        self.couple(Colour::Even, b, x, par);
    }

    /// t ← b − (L + U)·x in the blocks of a colour.
    fn couple(&mut self, colour: Colour, b: &[T], x: &[T], par: Par) {
        let (a, partition) = (&self.a, self.a.blocks.partition());
        for_blocks(partition, &mut self.t, par, &|j, t| {
            if colour.has(j) {
                t.copy_from_slice(&b[partition.range(j)]);
                a.subtract_couplings(j, x, t);
            }
        });
    }

    /// x ← x + ω(D⁻¹·t − x) and s = D·x with it: s ← s + ω(t − s), in the blocks of a colour.
    fn relax(&mut self, colour: Colour, omega: f64, x: &mut [T], par: Par) {
        let Self { a, factors, t, s, previous, .. } = self;
        let partition = a.blocks.partition();
        let w = T::from_parts(omega, 0.0);
        for_blocks(partition, x, par, &|j, x| {
            if colour.has(j) {
                let range = partition.range(j);
                x.copy_from_slice(&t[range.clone()]);
                factors.solve_block(j, x);
                if omega != 1.0 {
                    x.iter_mut().zip(&previous[range]).for_each(|(x, p)| *x = *p + w * (*x - *p));
                }
            }
        });
        for_blocks(partition, s, par, &|j, s| {
            if colour.has(j) {
                let t = &t[partition.range(j)];
                if omega == 1.0 {
                    s.copy_from_slice(t);
                } else {
                    s.iter_mut().zip(t).for_each(|(s, t)| *s += w * (*t - *s));
                }
            }
        });
    }

    /// A step on the even blocks after the odd ones are eliminated: d ← k·d + c·(D⁻¹·t − x), x ← x + d, and s = D·x.
    fn accelerate(&mut self, (keep, add): (f64, f64), x: &mut [T], par: Par) {
        let Self { a, factors, t, s, previous, direction, .. } = self;
        let partition = a.blocks.partition();
        let (k, c) = (T::from_parts(keep, 0.0), T::from_parts(add, 0.0));
        let (d, image) = direction.split_at_mut(previous.len());
        for_blocks(partition, x, par, &|j, x| {
            if Colour::Even.has(j) {
                x.copy_from_slice(&t[partition.range(j)]);
                factors.solve_block(j, x);
            }
        });
        for j in (0..partition.n_blocks()).step_by(2) {
            for i in partition.range(j) {
                // D·d goes along with d.
                d[i] = k * d[i] + c * (x[i] - previous[i]);
                image[i] = k * image[i] + c * (t[i] - s[i]);
                x[i] = previous[i] + d[i];
                s[i] += image[i];
            }
        }
    }
}
