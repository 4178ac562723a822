//! Families by their pattern: chains, bands, arrows, saddle points, triangles, three diagonals (Dorr's, with corners, Toeplitz),
//! grids and definite matrices.

use super::draw::{Draw, Palette};
use super::grid::Grid;

impl Draw {
    /// Blocks of 1 to 4 along the diagonal, each coupled to its neighbours.
    pub(super) fn chain(&mut self) -> Grid {
        let uniform = self.rng.usize(1..=4);
        let ragged = self.chance(30);
        let count = self.rng.usize(2..=if uniform <= 2 { 8 } else { 4 });
        let sizes: Vec<usize> = (0..count).map(|_| if ragged { self.rng.usize(1..=4) } else { uniform }).collect();
        let starts: Vec<usize> = sizes.iter().scan(0, |s, k| Some(std::mem::replace(s, *s + k))).collect();
        let n = sizes.iter().sum();
        let palette = self.palette();
        let bonds = self.rng.u32(40..=100);
        let diagonal_only = self.chance(40);
        let mut a = Grid::zeros(n);
        for k in 0..count {
            let (start, size) = (starts[k], sizes[k]);
            let fill = self.rng.u32(..6);
            for i in start..start + size {
                for j in start..start + size {
                    *a.at(i, j) = match fill {
                        1 => self.entry(Palette::Tiny),
                        // Rank one.
                        2 => [1.0, 0.0],
                        3 if i == j => self.entry(Palette::Tiny),
                        0 | 3 => [0.0; 2],
                        4 => self.entry(palette),
                        _ => self.entry(Palette::Mixed),
                    };
                }
            }
            if k + 1 == count {
                continue;
            }
            let hermitian = self.chance(40);
            for i in start..start + size {
                for j in starts[k + 1]..starts[k + 1] + sizes[k + 1] {
                    let aligned = i - start == j - starts[k + 1];
                    if (diagonal_only && !aligned) || !self.chance(bonds) {
                        continue;
                    }
                    let v = self.entry(palette);
                    *a.at(i, j) = v;
                    *a.at(j, i) = if hermitian { [v[0], -v[1]] } else { self.entry(palette) };
                }
            }
        }
        a
    }

    pub(super) fn band(&mut self) -> Grid {
        let n = self.size(24);
        let (kl, ku) = (self.rng.usize(0..=3), self.rng.usize(0..=3));
        let palette = self.palette();
        let tiny = self.rng.u32(0..=100);
        let mut a = Grid::zeros(n);
        for i in 0..n {
            for j in i.saturating_sub(kl)..n.min(i + ku + 1) {
                *a.at(i, j) = match (i == j, self.chance(tiny)) {
                    (true, true) if self.chance(50) => [0.0; 2],
                    (true, true) => self.entry(Palette::Tiny),
                    (false, _) if self.chance(10) => [0.0; 2],
                    _ => self.entry(palette),
                };
            }
        }
        a
    }

    pub(super) fn arrow(&mut self) -> Grid {
        let n = self.size(16).max(2);
        let width = self.rng.usize(1..=2.min(n - 1));
        let palette = self.palette();
        let first = self.rng.bool();
        let border = |i: usize| if first { i < width } else { i + width >= n };
        let tiny = self.rng.u32(0..=60);
        let mut a = Grid::zeros(n);
        for i in 0..n {
            for j in 0..n {
                if i == j {
                    *a.at(i, j) = match self.chance(tiny) {
                        true if self.chance(30) => [0.0; 2],
                        true => self.entry(Palette::Tiny),
                        false => self.entry(palette),
                    };
                } else if (border(i) || border(j)) && self.chance(85) {
                    *a.at(i, j) = self.entry(palette);
                }
            }
        }
        a
    }

    pub(super) fn kkt(&mut self) -> Grid {
        let n = self.size(14).max(3);
        let constraints = self.rng.usize(1..=n / 2);
        let free = n - constraints;
        let palette = self.palette();
        let coupling = self.palette();
        let mut a = Grid::zeros(n);
        for i in 0..free {
            *a.at(i, i) = if self.chance(15) { [self.tiny(), 0.0] } else { [self.real(palette).abs(), 0.0] };
            if i + 1 < free && self.chance(30) {
                let v = self.entry(palette);
                *a.at(i, i + 1) = v;
                *a.at(i + 1, i) = [v[0], -v[1]];
            }
        }
        for i in free..n {
            for j in 0..free {
                if self.chance(50) || j == i - free {
                    let v = self.entry(coupling);
                    *a.at(i, j) = v;
                    *a.at(j, i) = [v[0], -v[1]];
                }
            }
            if self.chance(20) {
                *a.at(i, i) = [-self.tiny(), 0.0];
            }
        }
        a
    }

    pub(super) fn triangle(&mut self) -> Grid {
        let n = self.size(16);
        let palette = self.palette();
        let density = self.rng.u32(20..=100);
        let mut a = Grid::zeros(n);
        for i in 0..n {
            for j in 0..=i {
                if i == j || self.chance(density) {
                    *a.at(i, j) = self.entry(palette);
                }
            }
        }
        let rows = self.order(n);
        let columns = if self.chance(30) { rows.clone() } else { self.order(n) };
        a.shuffled(&rows, &columns)
    }

    /// Dorr's matrix: diagonally dominant, and ill-conditioned for a small θ.
    pub(super) fn dorr(&mut self) -> Grid {
        let n = self.size(32).max(2);
        let theta = 2f64.powi(-self.rng.i32(2..=10));
        let h = 1.0 / (n + 1) as f64;
        let term = theta / (h * h);
        let mut a = Grid::zeros(n);
        for i in 0..n {
            let slope = (0.5 - (i + 1) as f64 * h) / h;
            let (below, above) = if i < n.div_ceil(2) { (-term, -term - slope) } else { (-term + slope, -term) };
            *a.at(i, i) = [-(below + above), 0.0];
            if i > 0 {
                *a.at(i, i - 1) = [below, 0.0];
            }
            if i + 1 < n {
                *a.at(i, i + 1) = [above, 0.0];
            }
        }
        a
    }

    pub(super) fn tridiagonal(&mut self) -> Grid {
        if self.chance(8) {
            return self.dorr();
        }
        let n = self.size(32);
        let palette = self.palette();
        let diagonal = [Palette::Tiny, Palette::Integers, palette, palette][self.rng.usize(..4)];
        let (missing, zero) = (self.rng.u32(0..15), self.rng.u32(0..40));
        let mut a = Grid::zeros(n);
        for i in 0..n {
            if !self.chance(zero) {
                *a.at(i, i) = self.entry(diagonal);
            }
            if i + 1 < n && !self.chance(missing) {
                *a.at(i, i + 1) = self.entry(palette);
                *a.at(i + 1, i) = self.entry(palette);
            }
        }
        a
    }

    pub(super) fn periodic(&mut self) -> Grid {
        let mut a = self.tridiagonal();
        let n = a.n;
        if n > 2 {
            let palette = self.palette();
            *a.at(0, n - 1) = self.entry(palette);
            *a.at(n - 1, 0) = self.entry(palette);
        }
        a
    }

    pub(super) fn toeplitz(&mut self) -> Grid {
        let n = self.size(14);
        let palette = self.palette();
        let width = self.rng.usize(1..=3.max(n / 2));
        let symbol: Vec<[f64; 2]> = (0..2 * n)
            .map(|k| if k.abs_diff(n) <= width && self.chance(80) { self.entry(palette) } else { [0.0; 2] })
            .collect();
        let circulant = self.chance(30);
        let mut a = Grid::zeros(n);
        for i in 0..n {
            for j in 0..n {
                let k = n + i - j;
                let around = if k < n { k + n } else { k - n };
                let (u, v) = (symbol[k], symbol.get(around).copied().unwrap_or_default());
                *a.at(i, j) = if circulant && k != n { [u[0] + v[0], u[1] + v[1]] } else { u };
            }
        }
        a
    }

    /// A path or a grid with unit or random weights; a shift of zero, of ±1, or tiny.
    pub(super) fn laplacian(&mut self) -> Grid {
        let (rows, columns) =
            if self.rng.bool() { (1, self.rng.usize(2..=30)) } else { (self.rng.usize(2..=5), self.rng.usize(2..=6)) };
        let n = rows * columns;
        let shift = [0.0, 1.0, 1.0, -1.0, self.tiny()][self.rng.usize(..5)];
        let dirichlet = self.chance(70);
        let weights = [Palette::Signs, Palette::Powers][self.rng.usize(..2)];
        let skew = self.chance(30);
        let mut a = Grid::zeros(n);
        for i in 0..n {
            let mut sum = shift;
            for j in [i.wrapping_sub(columns), i.wrapping_sub(1), i + 1, i + columns] {
                let beside = i / columns == j / columns || i % columns == j % columns;
                if j < n && beside && j > i {
                    let w = self.real(weights).abs();
                    *a.at(i, j) = [-w, 0.0];
                    *a.at(j, i) = [if skew { -self.real(weights).abs() } else { -w }, 0.0];
                }
                if j >= n || !beside {
                    sum += if dirichlet { 1.0 } else { 0.0 };
                }
            }
            *a.at(i, i) = [sum, 0.0];
        }
        for i in 0..n {
            let sum: f64 = (0..n).filter(|&j| j != i).map(|j| -a.get(i, j)[0]).sum();
            a.at(i, i)[0] += sum;
        }
        if n <= 16 && self.chance(15) { a.squared() } else { a }
    }

    /// L·Lᴴ of a sparse L of small integers, or a dominant matrix.
    pub(super) fn definite(&mut self) -> Grid {
        let n = self.size(20);
        let mut l = Grid::zeros(n);
        let density = self.rng.u32(10..=60);
        for i in 0..n {
            for j in i.saturating_sub(4)..i {
                if self.chance(density) {
                    let v = self.entry(Palette::Integers);
                    *l.at(i, j) = [(v[0] / 3.0).trunc(), (v[1] / 3.0).trunc()];
                }
            }
            *l.at(i, i) = [self.rng.i32(1..=4) as f64, 0.0];
        }
        let mut a = Grid::zeros(n);
        for i in 0..n {
            for j in 0..n {
                for k in 0..n {
                    let (x, y) = (l.get(i, k), l.get(j, k));
                    let v = a.at(i, j);
                    // x·ȳ
                    *v = [v[0] + x[0] * y[0] + x[1] * y[1], v[1] + x[1] * y[0] - x[0] * y[1]];
                }
            }
        }
        a
    }
}
