//! Random sizes, entries and orders.

use bt_formats::ScalarKind;
use fastrand::Rng;

use crate::system::{is_complex, is_single};

/// Kinds of entries.
#[derive(Clone, Copy)]
pub(super) enum Palette {
    /// −9 … 9 without 0.
    Integers,
    /// ±2^k, |k| ≤ 8.
    Powers,
    /// ±1.
    Signs,
    /// ±1, or ±1 times something tiny.
    Mixed,
    /// Something tiny.
    Tiny,
}

/// The generator of a case and the type it draws for.
pub(super) struct Draw {
    pub rng: Rng,
    pub kind: ScalarKind,
}

impl Draw {
    pub fn chance(&mut self, percent: u32) -> bool {
        self.rng.u32(..100) < percent
    }

    pub fn size(&mut self, largest: usize) -> usize {
        match self.rng.u32(..20) {
            0 => self.rng.usize(1..=2),
            1..=11 => self.rng.usize(2..=6.min(largest)),
            12..=17 => self.rng.usize(3..=12.min(largest)),
            _ => self.rng.usize(3..=largest),
        }
    }

    pub fn tiny(&mut self) -> f64 {
        if is_single(self.kind) {
            [1e-9, 1e-7, (-20f64).exp2(), (-26f64).exp2(), 1e-12, 1e-5][self.rng.usize(..6)]
        } else {
            [1e-20, (-60f64).exp2(), 1e-9, 1e-16, 1e-17, (-30f64).exp2(), 1e-12, (-52f64).exp2()][self.rng.usize(..8)]
        }
    }

    pub fn real(&mut self, palette: Palette) -> f64 {
        let sign = if self.rng.bool() { 1.0 } else { -1.0 };
        sign * match palette {
            Palette::Integers => self.rng.i32(1..=9) as f64,
            Palette::Powers => 2f64.powi(self.rng.i32(-8..=8)),
            Palette::Signs => 1.0,
            Palette::Mixed if self.chance(70) => 1.0,
            Palette::Mixed | Palette::Tiny => self.tiny(),
        }
    }

    /// An entry: real, or turned by a quarter, or with both parts.
    pub fn entry(&mut self, palette: Palette) -> [f64; 2] {
        let v = self.real(palette);
        if !is_complex(self.kind) {
            return [v, 0.0];
        }
        match self.rng.u32(..3) {
            0 => [v, 0.0],
            1 => [0.0, v],
            _ => [v, self.real(palette)],
        }
    }

    pub fn palette(&mut self) -> Palette {
        [Palette::Integers, Palette::Powers, Palette::Signs, Palette::Mixed][self.rng.usize(..4)]
    }

    pub fn order(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        self.rng.shuffle(&mut order);
        order
    }
}
