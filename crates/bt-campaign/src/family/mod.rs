//! Families of small systems in which solvers go wrong.
//!
//! | file | case |
//! |---|---|
//! | `draw.rs` | random sizes, entries and orders, for all families |
//! | `grid.rs` | a small dense matrix under construction |
//! | `structured.rs` | families by their pattern, from chains and bands to Laplacians; positive definite ones |
//! | `hostile.rs` | families by their values, from units to singular ones; matrices of no structure |

mod draw;
mod grid;
mod hostile;
mod structured;

use bt_formats::ScalarKind;
use fastrand::Rng;

use draw::{Draw, Palette};
use grid::Grid;

use crate::exact::Exact;
use crate::system::{System, is_single};

/// Where a system comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Small integers, dense or sparse.
    Integers,
    /// Powers of two.
    Powers,
    /// Block chains: zero, tiny and singular diagonal blocks, missing bonds.
    Chain,
    /// Bands with tiny or zero diagonals.
    Band,
    /// Arrows: a diagonal and a border.
    Arrow,
    /// Saddle points [H Bᴴ; B 0].
    Kkt,
    /// Rows and columns in units of their own.
    Units,
    /// Entries, sums or norms at the ends of the range.
    Edges,
    /// Elements grow in elimination, beyond the digits that there are.
    Growing,
    /// Exactly singular, by pattern or by values.
    Singular,
    /// Integers and a tiny part: condition numbers of every size.
    Near,
    /// A triangular matrix whose rows and columns are shuffled.
    Shuffled,
    /// Hermitian positive definite.
    Definite,
    /// Tridiagonal.
    Tridiagonal,
    /// Tridiagonal with two corners.
    Periodic,
    /// Constant along diagonals.
    Toeplitz,
    /// Laplacians of paths and grids, shifted or not.
    Laplacian,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 17] = [
        Self::Integers,
        Self::Powers,
        Self::Chain,
        Self::Band,
        Self::Arrow,
        Self::Kkt,
        Self::Units,
        Self::Edges,
        Self::Growing,
        Self::Singular,
        Self::Near,
        Self::Shuffled,
        Self::Definite,
        Self::Tridiagonal,
        Self::Periodic,
        Self::Toeplitz,
        Self::Laplacian,
    ];

    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Integers => "integers",
            Self::Powers => "powers",
            Self::Chain => "chain",
            Self::Band => "band",
            Self::Arrow => "arrow",
            Self::Kkt => "kkt",
            Self::Units => "units",
            Self::Edges => "edges",
            Self::Growing => "growing",
            Self::Singular => "singular",
            Self::Near => "near",
            Self::Shuffled => "shuffled",
            Self::Definite => "definite",
            Self::Tridiagonal => "tridiagonal",
            Self::Periodic => "periodic",
            Self::Toeplitz => "toeplitz",
            Self::Laplacian => "laplacian",
        }
    }
}

/// The system of a case: the same for the same seed and number.
pub fn system(seed: u64, case: u64) -> System {
    let mut rng = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ case.wrapping_mul(0xd134_2543_de82_ef95));
    // Chains, units of their own and the ends of the range have found most: they are drawn three times as often.
    let often = [Family::Chain, Family::Units, Family::Edges];
    let place = rng.usize(..Family::ALL.len() + 2 * often.len());
    let family = Family::ALL.get(place).copied().unwrap_or_else(|| often[place % often.len()]);
    let kinds = [ScalarKind::F64, ScalarKind::F64, ScalarKind::F64, ScalarKind::C64, ScalarKind::F32, ScalarKind::C32];
    let kind = kinds[rng.usize(..kinds.len())];
    let mut draw = Draw { rng, kind };
    let mut a = draw.matrix(family);
    draw.finish(family, &mut a)
}

impl Draw {
    fn matrix(&mut self, family: Family) -> Grid {
        match family {
            Family::Integers => self.dense(16, Palette::Integers),
            Family::Powers => self.dense(12, Palette::Powers),
            Family::Chain => self.chain(),
            Family::Band => self.band(),
            Family::Arrow => self.arrow(),
            Family::Kkt => self.kkt(),
            Family::Units => self.units(),
            Family::Edges => self.edges(),
            Family::Growing => self.growing(),
            Family::Singular => self.singular(),
            Family::Near => self.near(),
            Family::Shuffled => self.triangle(),
            Family::Definite => self.definite(),
            Family::Tridiagonal => self.tridiagonal(),
            Family::Periodic => self.periodic(),
            Family::Toeplitz => self.toeplitz(),
            Family::Laplacian => self.laplacian(),
        }
    }

    /// Rounds to the scalar type, turns some matrices over, adds a right-hand side.
    fn finish(&mut self, family: Family, a: &mut Grid) -> System {
        let n = a.n;
        if self.chance(15) {
            let mut turned = Grid::zeros(n);
            for i in 0..n {
                for j in 0..n {
                    *turned.at(j, i) = a.get(i, j);
                }
            }
            *a = turned;
        }
        if self.chance(15) {
            let order = self.order(n);
            *a = a.shuffled(&order, &order);
        }
        let kind = self.kind;
        a.v.iter_mut().flatten().for_each(|v| *v = rounded(kind, *v));
        let mut entries = Vec::new();
        for i in 0..n {
            for j in 0..n {
                let v = a.get(i, j);
                if v != [0.0; 2] {
                    entries.push((i, j, v));
                }
            }
        }
        let mut zeros = Vec::new();
        if self.chance(8) {
            for _ in 0..self.rng.usize(1..=n) {
                let (i, j) = (self.rng.usize(..n), self.rng.usize(..n));
                if a.get(i, j) == [0.0; 2] && !zeros.contains(&(i, j)) {
                    zeros.push((i, j));
                }
            }
        }
        let mut system = System { family, kind, n, entries, zeros, b: vec![[0.0; 2]; n] };
        self.right_hand_side(&mut system);
        system
    }

    /// A·x* of small integers or fractions, or numbers of the size of the rows.
    fn right_hand_side(&mut self, system: &mut System) {
        let kind = self.kind;
        let made = self.chance(70);
        let wild = self.chance(20);
        if made {
            let x: Vec<[f64; 2]> = (0..system.n)
                .map(|_| match self.rng.u32(..10) {
                    0 => [0.0; 2],
                    1 if wild => self.entry(Palette::Tiny),
                    2 | 3 => self.entry(Palette::Powers),
                    _ => self.entry(Palette::Integers),
                })
                .collect();
            let mut b = vec![Exact::default(); system.n];
            for &(i, j, v) in &system.entries {
                b[i] = b[i].add(&Exact::new(v).mul(&Exact::new(x[j])));
            }
            system.b = b.iter().map(Exact::to_f64).collect();
        } else {
            let mut sizes = vec![0.0f64; system.n];
            for &(i, _, v) in &system.entries {
                sizes[i] = sizes[i].max(v[0].abs()).max(v[1].abs());
            }
            for i in 0..system.n {
                let v = if self.chance(20) { [0.0; 2] } else { self.entry(Palette::Integers) };
                let size = if sizes[i] == 0.0 { 1.0 } else { sizes[i] };
                system.b[i] = [v[0] / 16.0 * size, v[1] / 16.0 * size];
            }
        }
        system.b.iter_mut().flatten().for_each(|v| *v = rounded(kind, *v));
        // At an end of the range.
        if system.family == Family::Edges && self.chance(40) {
            let largest = system.b.iter().flatten().fold(0.0f64, |m, v| m.max(v.abs()));
            let (top, bottom) = if is_single(kind) { (127, -140) } else { (1023, -1060) };
            let exponent = if self.rng.bool() { top } else { bottom };
            if largest > 0.0 {
                let shift = exponent - largest.log2().ceil() as i32;
                for v in system.b.iter_mut().flatten() {
                    *v = *v * 2f64.powi(shift / 3) * 2f64.powi(shift / 3) * 2f64.powi(shift - 2 * (shift / 3));
                }
            }
        }
        system.b.iter_mut().flatten().for_each(|v| *v = rounded(kind, *v));
        if self.chance(2) {
            system.b.fill([0.0; 2]);
        } else if system.b.iter().all(|v| *v == [0.0; 2]) {
            let i = self.rng.usize(..system.n);
            system.b[i] = [1.0, 0.0];
        }
    }
}

/// Rounded to the type; what would overflow becomes the largest number.
fn rounded(kind: ScalarKind, v: f64) -> f64 {
    if is_single(kind) {
        v.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32 as f64
    } else {
        v.clamp(f64::MIN, f64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::exact::Truth;
    use crate::system::is_complex;

    #[test]
    fn cases_are_what_their_number_says() {
        for case in 0..50 {
            let (one, other) = (system(7, case), system(7, case));
            assert_eq!(one.entries, other.entries);
            assert_eq!(one.b, other.b);
        }
        assert_ne!(system(7, 1).entries, system(8, 1).entries);
    }

    #[test]
    fn every_family_is_drawn_and_fits_its_type() {
        let mut singular: BTreeMap<Family, (u32, u32)> = BTreeMap::new();
        for case in 0..400 {
            let system = system(1, case);
            let largest = if system.family == Family::Growing { 71 } else { 40 };
            assert!((1..=largest).contains(&system.n));
            for v in system.entries.iter().flat_map(|e| e.2).chain(system.b.iter().copied().flatten()) {
                assert!(v.is_finite());
                assert!(!is_single(system.kind) || f64::from(v as f32) == v);
            }
            assert!(is_complex(system.kind) || system.entries.iter().all(|e| e.2[1] == 0.0));
            let counts = singular.entry(system.family).or_default();
            counts.0 += 1;
            counts.1 += u32::from(Truth::of(&system).solution.is_none());
        }
        assert_eq!(singular.len(), Family::ALL.len());
        let (drawn, none) = singular[&Family::Singular];
        assert!(none * 10 >= drawn * 8, "{none} of {drawn}");
        let (drawn, none) = singular[&Family::Definite];
        assert!(drawn > 0 && none == 0);
    }
}
