//! Matrices of a given bandwidth and condition, scale, or columns of zeros, as LAPACK's tests have them; norms and its ratios.
//!
//! A diagonal of singular values from 1 down to 1/κ, each the same multiple of the one before, is turned by layers of plane rotations from
//! the left and from the right: each layer widens the band by one diagonal on both sides, and changes no singular value.

use blocktri::Scalar;
use blocktri::faer::{Mat, MatRef};
use bt_formats::RealScalar;

/// Below this a ratio is good: LAPACK's own threshold.
pub const THRESHOLD: f64 = 30.0;
/// Sizes of its tests.
pub const SIZES: [usize; 7] = [0, 1, 2, 3, 5, 10, 50];
/// Right-hand sides of its tests.
pub const COLUMNS: [usize; 3] = [1, 2, 15];

/// ε, half of the distance from 1 to the next number, as LAPACK's `xLAMCH('E')`.
pub fn epsilon<T: Scalar>() -> f64 {
    if size_of::<T::Real>() == 4 { f64::from(f32::EPSILON) / 2.0 } else { f64::EPSILON / 2.0 }
}

/// Which columns are zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Zeros {
    None,
    First,
    Last,
    SecondHalf,
}

impl Zeros {
    /// The first column of zeros, from 0.
    pub fn first(self, n: usize) -> Option<usize> {
        match self {
            _ if n == 0 => None,
            Self::None => None,
            Self::First => Some(0),
            Self::Last => Some(n - 1),
            Self::SecondHalf => Some(n / 2),
        }
    }
    pub fn contains(self, n: usize, j: usize) -> bool {
        match self {
            Self::SecondHalf => j >= n / 2,
            other => other.first(n) == Some(j),
        }
    }
}

/// A type of matrix.
#[derive(Clone, Copy, Debug)]
pub struct Type {
    pub number: usize,
    /// Condition number; below 1 for random entries.
    pub condition: f64,
    /// Of the largest singular value.
    pub scale: f64,
    pub zeros: Zeros,
    /// Diagonal whatever the bandwidth is.
    pub diagonal: bool,
}

/// The numbers near the ends of the range.
fn small_and_large<T: Scalar>() -> (f64, f64) {
    let least = if size_of::<T::Real>() == 4 { f64::from(f32::MIN_POSITIVE) } else { f64::MIN_POSITIVE };
    let small = 0.25 * (least / epsilon::<T>());
    (small, 1.0 / small)
}

/// The eight types of band matrices.
pub fn band_types<T: Scalar>() -> [Type; 8] {
    let (small, large) = small_and_large::<T>();
    let bad = 0.1 / epsilon::<T>();
    let of = |number, condition, scale, zeros| Type { number, condition, scale, zeros, diagonal: false };
    [
        of(1, 2.0, 1.0, Zeros::None),
        of(2, 2.0, 1.0, Zeros::First),
        of(3, 2.0, 1.0, Zeros::Last),
        of(4, 2.0, 1.0, Zeros::SecondHalf),
        of(5, bad.sqrt(), 1.0, Zeros::None),
        of(6, bad, 1.0, Zeros::None),
        of(7, 2.0, small, Zeros::None),
        of(8, 2.0, large, Zeros::None),
    ]
}

/// The twelve types of tridiagonal matrices.
pub fn tridiagonal_types<T: Scalar>() -> [Type; 12] {
    let (small, large) = small_and_large::<T>();
    let bad = 0.1 / epsilon::<T>();
    let of = |number, condition, scale, zeros| Type { number, condition, scale, zeros, diagonal: number == 1 };
    [
        of(1, 2.0, 1.0, Zeros::None),
        of(2, 2.0, 1.0, Zeros::None),
        of(3, bad.sqrt(), 1.0, Zeros::None),
        of(4, bad, 1.0, Zeros::None),
        of(5, 2.0, small, Zeros::None),
        of(6, 2.0, large, Zeros::None),
        of(7, 0.0, 1.0, Zeros::None),
        of(8, 0.0, 1.0, Zeros::First),
        of(9, 0.0, 1.0, Zeros::Last),
        of(10, 0.0, 1.0, Zeros::SecondHalf),
        of(11, 0.0, small, Zeros::None),
        of(12, 0.0, large, Zeros::None),
    ]
}

/// Numbers in (−1, 1), the same for the same seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x1234_5678_9ABC_DEF1)
    }
    pub fn real(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
    pub fn scalar<T: Scalar>(&mut self) -> T {
        let re = self.real();
        T::rounded(re, self.real())
    }
}

impl Type {
    /// A dense matrix with at most these diagonals.
    pub fn general<T: Scalar>(&self, n: usize, kl: usize, ku: usize, random: &mut Random) -> Mat<T> {
        let (kl, ku) = if self.diagonal { (0, 0) } else { (kl, ku) };
        let inside = |i: usize, j: usize| i <= j + kl && j <= i + ku;
        let mut a = Mat::<T>::zeros(n, n);
        if self.condition < 1.0 {
            a = Mat::from_fn(n, n, |i, j| if inside(i, j) { random.scalar() } else { T::zero_impl() });
        } else {
            let values = self.singular_values(n);
            (0..n).for_each(|i| a[(i, i)] = T::rounded(values[i], 0.0));
            for layer in 0..kl.min(ku).min(n) {
                rotate(&mut a, layer / 2, layer % 2 == 0, random);
            }
            // The diagonals that one side has more: as small as the smallest singular value.
            let least = 1.0 / self.condition / (n.max(1) as f64);
            for j in 0..n {
                for i in 0..n {
                    if inside(i, j) && i.abs_diff(j) > kl.min(ku) {
                        a[(i, j)] = random.scalar::<T>() * T::rounded(least, 0.0);
                    }
                }
            }
        }
        self.finished(&a)
    }

    /// A Hermitian positive definite one.
    pub fn definite<T: Scalar>(&self, n: usize, k: usize, random: &mut Random) -> Mat<T> {
        let values = self.singular_values(n);
        let mut a = Mat::<T>::zeros(n, n);
        (0..n).for_each(|i| a[(i, i)] = T::rounded(values[i], 0.0));
        for layer in 0..(k / 2).min(n) {
            let seed = random.real().to_bits();
            // Rows, then columns by the same rotations: Q·A·Qᴴ.
            rotate(&mut a, layer, true, &mut Random::new(seed));
            a = a.adjoint().to_owned();
            rotate(&mut a, layer, true, &mut Random::new(seed));
        }
        // What the layers leave empty gets entries that no eigenvalue feels much.
        let least = 0.1 / self.condition / (n.max(1) as f64);
        for j in 0..n {
            a[(j, j)] = T::from_real(a[(j, j)].re());
            for i in j + 1..(j + k + 1).min(n) {
                a[(i, j)] += random.scalar::<T>() * T::rounded(least, 0.0);
            }
        }
        self.finished(&Mat::from_fn(n, n, |i, j| if i >= j { a[(i, j)] } else { Scalar::conj(a[(j, i)]) }))
    }

    fn singular_values(&self, n: usize) -> Vec<f64> {
        let step = |i: usize| if n > 1 { i as f64 / (n - 1) as f64 } else { 0.0 };
        // The largest in the middle, so that pivots are exchanged.
        let mut values: Vec<f64> = (0..n).map(|i| self.condition.powf(-step(i))).collect();
        values.reverse();
        values.rotate_left(n / 3);
        values
    }

    /// With its zeros, to its scale.
    fn finished<T: Scalar>(&self, a: &Mat<T>) -> Mat<T> {
        let n = a.nrows();
        let scale = T::rounded(self.scale, 0.0);
        Mat::from_fn(n, n, |i, j| if self.zeros.contains(n, j) { T::zero_impl() } else { a[(i, j)] * scale })
    }
}

/// A layer of rotations of neighbouring rows (or columns), the even pairs and the odd ones in turn.
fn rotate<T: Scalar>(a: &mut Mat<T>, layer: usize, rows: bool, random: &mut Random) {
    let n = a.nrows();
    let mut first = layer % 2;
    while first + 1 < n {
        let angle = 3.0 * random.real();
        let phase = if T::IS_REAL {
            T::rounded(1.0, 0.0)
        } else {
            let t = 3.0 * random.real();
            T::rounded(t.cos(), t.sin())
        };
        let (c, s) = (T::rounded(angle.cos(), 0.0), T::rounded(angle.sin(), 0.0) * phase);
        for k in 0..n {
            let (p, q) = if rows { ((first, k), (first + 1, k)) } else { ((k, first), (k, first + 1)) };
            let (x, y) = (a[p], a[q]);
            a[p] = c * x + s * y;
            a[q] = c * y - Scalar::conj(s) * x;
        }
        first += 2;
    }
}

/// ‖A‖₁.
pub fn norm_one<T: Scalar>(a: MatRef<'_, T>) -> f64 {
    (0..a.ncols()).map(|j| (0..a.nrows()).map(|i| a[(i, j)].abs().to_f64()).sum()).fold(0.0, f64::max)
}

/// A·B, column by column.
pub fn product<T: Scalar>(a: &Mat<T>, b: &Mat<T>) -> Mat<T> {
    let mut c = Mat::zeros(a.nrows(), b.ncols());
    for j in 0..b.ncols() {
        for k in 0..a.ncols() {
            let by = b[(k, j)];
            for i in 0..a.nrows() {
                c[(i, j)] += a[(i, k)] * by;
            }
        }
    }
    c
}

/// max ‖b − A·x‖₁/(‖A‖₁·‖x‖₁·ε) over the columns, LAPACK's xGBT02.
pub fn solve_ratio<T: Scalar>(a: &Mat<T>, x: &Mat<T>, b: &Mat<T>) -> f64 {
    let (norm, ax) = (norm_one(a.as_ref()), product(a, x));
    let ratio = |j: usize| {
        let residual: f64 = (0..b.nrows()).map(|i| (b[(i, j)] - ax[(i, j)]).abs().to_f64()).sum();
        let size: f64 = (0..b.nrows()).map(|i| x[(i, j)].abs().to_f64()).sum();
        // One by one: the product of norms may leave the range.
        if residual == 0.0 { 0.0 } else { residual / norm / size / epsilon::<T>() }
    };
    (0..b.ncols()).map(ratio).fold(0.0, |worst, ratio| if ratio > worst || ratio.is_nan() { ratio } else { worst })
}

/// ‖A − F‖₁/(n·‖A‖₁·ε), LAPACK's xGBT01.
pub fn factor_ratio<T: Scalar>(a: &Mat<T>, product: &Mat<T>) -> f64 {
    let difference = Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)] - product[(i, j)]);
    let (difference, norm) = (norm_one(difference.as_ref()), norm_one(a.as_ref()));
    if difference == 0.0 { 0.0 } else { difference / norm / a.nrows() as f64 / epsilon::<T>() }
}

/// The largest |xᵢ − yᵢ| over the largest |xᵢ|.
pub fn distance<T: Scalar>(x: &[T], y: &[T]) -> f64 {
    let largest = x.iter().map(|v| v.abs().to_f64()).fold(0.0, f64::max);
    let apart = x.iter().zip(y).map(|(x, y)| (*x - *y).abs().to_f64()).fold(0.0, f64::max);
    if apart == 0.0 { 0.0 } else { apart / largest }
}

/// No column of the solutions is further apart than `limit`.
pub fn same_columns<T: Scalar>(what: &str, theirs: &Mat<T>, ours: &Mat<T>, limit: f64) {
    for c in 0..ours.ncols() {
        let apart = distance(theirs.col_as_slice(c), ours.col_as_slice(c));
        assert!(apart <= limit, "{what}: column {c} of X is {apart:e} apart");
    }
}
