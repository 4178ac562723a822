//! Families of small systems in which solvers go wrong.

use blocktri::formats::ScalarKind;
use fastrand::Rng;

use crate::exact::Exact;
use crate::system::{System, is_complex, is_single};

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
    pub const ALL: [Self; 16] = [
        Self::Integers,
        Self::Powers,
        Self::Chain,
        Self::Band,
        Self::Arrow,
        Self::Kkt,
        Self::Units,
        Self::Edges,
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

/// A dense matrix under construction.
#[derive(Clone, Debug)]
struct Grid {
    n: usize,
    v: Vec<[f64; 2]>,
}

impl Grid {
    fn zeros(n: usize) -> Self {
        Self { n, v: vec![[0.0; 2]; n * n] }
    }

    fn at(&mut self, i: usize, j: usize) -> &mut [f64; 2] {
        &mut self.v[i * self.n + j]
    }

    fn get(&self, i: usize, j: usize) -> [f64; 2] {
        self.v[i * self.n + j]
    }

    /// Rows and columns in another order.
    fn shuffled(&self, rows: &[usize], columns: &[usize]) -> Self {
        let mut to = Self::zeros(self.n);
        for i in 0..self.n {
            for j in 0..self.n {
                *to.at(i, j) = self.get(rows[i], columns[j]);
            }
        }
        to
    }

    /// A·A of a real matrix.
    fn squared(&self) -> Self {
        let mut to = Self::zeros(self.n);
        for i in 0..self.n {
            for j in 0..self.n {
                *to.at(i, j) = [(0..self.n).map(|k| self.get(i, k)[0] * self.get(k, j)[0]).sum(), 0.0];
            }
        }
        to
    }

    fn scale(&mut self, i: usize, j: usize, factor: f64) {
        let v = self.at(i, j);
        *v = [v[0] * factor, v[1] * factor];
    }
}

/// Kinds of entries.
#[derive(Clone, Copy)]
enum Palette {
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

struct Draw {
    rng: Rng,
    kind: ScalarKind,
}

impl Draw {
    fn chance(&mut self, percent: u32) -> bool {
        self.rng.u32(..100) < percent
    }

    fn size(&mut self, largest: usize) -> usize {
        match self.rng.u32(..20) {
            0 => self.rng.usize(1..=2),
            1..=11 => self.rng.usize(2..=6.min(largest)),
            12..=17 => self.rng.usize(3..=12.min(largest)),
            _ => self.rng.usize(3..=largest),
        }
    }

    fn tiny(&mut self) -> f64 {
        if is_single(self.kind) {
            [1e-9, 1e-7, (-20f64).exp2(), (-26f64).exp2(), 1e-12, 1e-5][self.rng.usize(..6)]
        } else {
            [1e-20, (-60f64).exp2(), 1e-9, 1e-16, 1e-17, (-30f64).exp2(), 1e-12, (-52f64).exp2()][self.rng.usize(..8)]
        }
    }

    fn real(&mut self, palette: Palette) -> f64 {
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
    fn entry(&mut self, palette: Palette) -> [f64; 2] {
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

    fn palette(&mut self) -> Palette {
        [Palette::Integers, Palette::Powers, Palette::Signs, Palette::Mixed][self.rng.usize(..4)]
    }

    fn order(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        self.rng.shuffle(&mut order);
        order
    }

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

    fn scattered(&mut self, largest: usize, palette: Palette) -> Grid {
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
    fn dense(&mut self, largest: usize, palette: Palette) -> Grid {
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

    /// Blocks of 1 to 4 along the diagonal, each coupled to its neighbours.
    fn chain(&mut self) -> Grid {
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
                        0 => [0.0; 2],
                        1 => self.entry(Palette::Tiny),
                        // Rank one.
                        2 => [1.0, 0.0],
                        3 if i == j => self.entry(Palette::Tiny),
                        3 => [0.0; 2],
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

    fn band(&mut self) -> Grid {
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

    fn arrow(&mut self) -> Grid {
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

    fn kkt(&mut self) -> Grid {
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

    /// A matrix of another family, its rows and columns times powers of two or ten.
    fn units(&mut self) -> Grid {
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
    fn cells(&mut self) -> Grid {
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
    fn edges(&mut self) -> Grid {
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

    fn singular(&mut self) -> Grid {
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
    fn near(&mut self) -> Grid {
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

    fn triangle(&mut self) -> Grid {
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

    /// L·Lᴴ of a sparse L of small integers, or a dominant matrix.
    fn definite(&mut self) -> Grid {
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

    /// Dorr's matrix: diagonally dominant, and ill-conditioned for a small θ.
    fn dorr(&mut self) -> Grid {
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

    fn tridiagonal(&mut self) -> Grid {
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

    fn periodic(&mut self) -> Grid {
        let mut a = self.tridiagonal();
        let n = a.n;
        if n > 2 {
            let palette = self.palette();
            *a.at(0, n - 1) = self.entry(palette);
            *a.at(n - 1, 0) = self.entry(palette);
        }
        a
    }

    fn toeplitz(&mut self) -> Grid {
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
    fn laplacian(&mut self) -> Grid {
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
            assert!(system.n >= 1 && system.n <= 40);
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
