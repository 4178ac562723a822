//! Families without a pattern of their own (scattered, full, cells), and those by their values: growth, units, ends of the range,
//! singular and nearly so.

use super::draw::{Draw, Palette};
use super::grid::Grid;
use crate::system::is_single;

impl Draw {
    pub(super) fn scattered(&mut self, largest: usize, palette: Palette) -> Grid {
        let n = self.size(largest);
        let density = self.rng.u32(20..=100);
        let mut a = Grid::zeros(n);
        for i in 0..n {
            for j in 0..n {
                if self.chance(density) || (i == j && self.chance(70)) {
                    *a.at(i, j) = self.entry(palette);
                }
            }
        }
        a
    }

    /// Of no structure, Hermitian, skew-Hermitian, or Wilkinson's example of growth.
    pub(super) fn dense(&mut self, largest: usize, palette: Palette) -> Grid {
        let mut a = self.scattered(largest, palette);
        let n = a.n;
        let sign = match self.rng.u32(..20) {
            0..=12 => return a,
            13 => {
                for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
                    let v = if i == j || j + 1 == n {
                        1.0
                    } else if i > j {
                        -1.0
                    } else {
                        0.0
                    };
                    *a.at(i, j) = [v, 0.0];
                }
                return a;
            }
            14..=17 => 1.0,
            _ => -1.0,
        };
        for i in 0..n {
            for j in 0..=i {
                let v = a.get(i, j);
                *a.at(j, i) = [sign * v[0], -sign * v[1]];
            }
            // What is its own mirror.
            let v = a.at(i, i);
            *v = if sign > 0.0 { [v[0], 0.0] } else { [0.0, v[1]] };
        }
        a
    }

    /// J. H. Wilkinson's example with one last column or more, in which elements double from row to row; they differ in the last rows
    /// only, where the difference is lost.
    pub(super) fn growing(&mut self) -> Grid {
        let n = self.rng.usize(24..72);
        let last = n - self.rng.usize(1..4);
        let mut a = Grid::zeros(n);
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            *a.at(i, j) = match (i >= last, j >= last) {
                (true, true) => self.entry(Palette::Integers),
                (false, true) => [1.0, 0.0],
                _ if i == j => [1.0, 0.0],
                _ if i > j => [-1.0, 0.0],
                _ => [0.0; 2],
            };
        }
        a
    }

    /// A matrix of another family, its rows and columns times powers of two or ten.
    pub(super) fn units(&mut self) -> Grid {
        let mut a = match self.rng.u32(..6) {
            0 => self.kkt(),
            1 => self.tridiagonal(),
            2 => self.scattered(8, Palette::Integers),
            3 => self.definite(),
            _ => self.cells(),
        };
        let reach = if is_single(self.kind) { 7.0 } else { 20.0 };
        let n = a.n;
        // Powers of ten are no small integers times a power of two: exact arithmetic takes long with them.
        let tens = n <= 16 && self.chance(60);
        let mut units = |percent: u32| -> Vec<f64> {
            let per = [1, 2, 3][self.rng.usize(..3)];
            let choices: Vec<f64> =
                (0..per.max(2)).map(|_| (self.rng.f64() * 2.0 - 1.0) * reach).map(f64::round).collect();
            let unit = |e: f64| if tens { 10f64.powi(e as i32) } else { (e * 10f64.log2()).round().exp2() };
            let random = self.rng.bool();
            (0..n)
                .map(|i| {
                    if self.rng.u32(..100) >= percent {
                        0.0
                    } else if random {
                        choices[self.rng.usize(..choices.len())]
                    } else {
                        choices[i % choices.len()]
                    }
                })
                .map(unit)
                .collect()
        };
        let (rows, mut columns) = (units(100), units(80));
        if self.rng.bool() {
            columns.fill(1.0);
        }
        for i in 0..n {
            for j in 0..n {
                a.scale(i, j, rows[i] * columns[j]);
            }
        }
        a
    }

    /// Cells of 2 to 4 unknowns coupled to their neighbours, well conditioned as a rule.
    pub(super) fn cells(&mut self) -> Grid {
        let size = self.rng.usize(2..=4);
        let count = if self.chance(10) { 9 } else { self.rng.usize(2..=4) };
        let n = size * count;
        let mut a = Grid::zeros(n);
        for i in 0..n {
            for j in 0..n {
                let (ci, cj) = (i / size, j / size);
                if i == j {
                    let v = self.real(Palette::Integers);
                    *a.at(i, j) = [v + v.signum() * 4.0, 0.0];
                } else if (ci == cj && self.chance(60))
                    || (ci.abs_diff(cj) == 1 && self.chance(if i % size == j % size { 90 } else { 20 }))
                {
                    *a.at(i, j) = self.entry(Palette::Integers);
                }
            }
        }
        a
    }

    /// Entries near the largest and the smallest numbers.
    pub(super) fn edges(&mut self) -> Grid {
        let mut a = match self.rng.u32(..5) {
            0 => self.tridiagonal(),
            1 => self.definite(),
            2 => self.laplacian(),
            3 => self.chain(),
            _ => self.scattered(6, Palette::Integers),
        };
        let largest = a.v.iter().flatten().fold(1.0f64, |m, v| m.max(v.abs()));
        let (top, bottom) = if is_single(self.kind) { (127, -149) } else { (1023, -1074) };
        let head = top - largest.log2().ceil() as i32;
        match self.rng.u32(..4) {
            // All of it as large as can be.
            0 => a.v.iter_mut().flatten().for_each(|v| *v *= 2f64.powi(head)),
            // All of it among the smallest.
            1 => {
                let exponent = bottom + self.rng.i32(0..60);
                a.v.iter_mut()
                    .flatten()
                    .for_each(|v| *v = *v * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2));
            }
            // A row or a column at an end.
            2 => {
                let (k, by_row) = (self.rng.usize(..a.n), self.rng.bool());
                let exponent = if self.rng.bool() { head } else { bottom + 55 };
                let (half, rest) = (2f64.powi(exponent / 2), 2f64.powi(exponent - exponent / 2));
                for l in 0..a.n {
                    let (i, j) = if by_row { (k, l) } else { (l, k) };
                    a.scale(i, j, half);
                    a.scale(i, j, rest);
                }
            }
            // The matrix stays: the right-hand side is at an end.
            _ => {}
        }
        a
    }

    pub(super) fn singular(&mut self) -> Grid {
        let mut a = match self.rng.u32(..5) {
            0 => self.tridiagonal(),
            1 => self.chain(),
            2 => self.band(),
            _ => self.scattered(10, Palette::Integers),
        };
        let n = a.n;
        let (i, j) = (self.rng.usize(..n), self.rng.usize(..n));
        match self.rng.u32(..5) {
            0 => (0..n).for_each(|k| *a.at(i, k) = [0.0; 2]),
            1 => (0..n).for_each(|k| *a.at(k, i) = [0.0; 2]),
            // One row is another, or twice it.
            2 => (0..n).for_each(|k| {
                let v = a.get(j, k);
                *a.at(i, k) = if i == j { [0.0; 2] } else { [2.0 * v[0], 2.0 * v[1]] };
            }),
            // Row sums of zero.
            3 => {
                for i in 0..n {
                    *a.at(i, i) = [0.0; 2];
                    let sum = (0..n).map(|k| a.get(i, k)).fold([0.0; 2], |s, v| [s[0] + v[0], s[1] + v[1]]);
                    *a.at(i, i) = [-sum[0], -sum[1]];
                }
            }
            // Rows that live in too few columns.
            _ => {
                let rows = n.div_ceil(2) + 1;
                for i in 0..rows.min(n) {
                    for k in n / 2..n {
                        *a.at(i, k) = [0.0; 2];
                    }
                }
            }
        }
        a
    }

    /// A singular matrix of integers and a small part.
    pub(super) fn near(&mut self) -> Grid {
        let mut a = self.scattered(8, Palette::Integers);
        let n = a.n;
        if n > 1 {
            let (i, j) = (self.rng.usize(1..n), 0);
            for k in 0..n {
                *a.at(i, k) = a.get(j, k);
            }
        }
        let size = 2f64.powi(-self.rng.i32(5..=if is_single(self.kind) { 30 } else { 65 }));
        for i in 0..n {
            let j = self.rng.usize(..n);
            let add = self.real(Palette::Integers) * size;
            let v = a.at(i, j);
            *v = [v[0] + add, v[1]];
        }
        a
    }
}
