//! Small named systems that solvers get wrong, and what is expected of a solver on each.

use bt_formats::{Coo, Csr, Op, Partition, Scalar, ScalarKind, one, zero};
use faer::Mat;

use crate::oracle::{self, Oracle};
use crate::vectors::x_star;

/// The 9 × 9 example B of Yang, Li, Li, J. Supercomput. 73 (2017), <https://doi.org/10.1007/s11227-016-1881-x>: tridiagonal
/// diagonal blocks of 3 rows, 12 coupling entries, det B = −5 831 448, indefinite.
pub const PAPER_B: [[f64; 9]; 9] = [
    [1., -4., 0., -2., 0., 0., 0., 0., 0.],
    [-3., 7., -4., 0., -2., 0., 0., 0., 0.],
    [0., -3., 5., -4., 0., 0., 0., 0., 0.],
    [-1., 0., 0., 5., -4., 0., -2., 0., 0.],
    [0., 0., -3., -3., 9., -4., 0., -1., 0.],
    [0., -1., 0., 0., -2., 9., 0., -2., 0.],
    [0., 0., 0., 0., -1., 0., 5., -3., 0.],
    [0., 0., 0., 0., 0., -2., -4., 9., -4.],
    [0., 0., 0., 0., 0., -1., 0., -3., 12.],
];

/// What a solver has to do with a system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expect {
    /// Solve it with a backward error at rounding level.
    Solvable {
        /// ‖A‖₁‖A⁻¹‖₁, computed from the inverse.
        condition: f64,
        /// Growth max|U|/max|A| that partial pivoting suffers, by construction: 1 unless the system is made to grow.
        growth: f64,
    },
    /// Report that A is singular.
    Singular {
        /// The column in which elimination with partial pivoting, in the given order, finds no pivot, where rounding
        /// cannot hide it.
        column: Option<usize>,
    },
    /// Refuse it because the entry of A at this place is not a finite number.
    NotFinite {
        /// Row from 0.
        row: usize,
        /// Column from 0.
        col: usize,
    },
}

/// A system A·X = B with its expectation.
#[derive(Clone, Debug)]
pub struct System<T: Scalar> {
    /// Unique name.
    pub name: &'static str,
    /// The matrix.
    pub a: Csr<T>,
    /// Right-hand side, n × 1.
    pub b: Mat<T>,
    /// The solution that `b` was made from; `b` itself is rounded.
    pub x: Vec<T>,
    /// A block-tridiagonal partition of A, for systems made of blocks.
    pub blocks: Option<Partition>,
    /// What a solver has to do.
    pub expect: Expect,
}

/// All systems. Complex scalars get those with complex entries on top.
pub fn catalogue<T: Scalar>() -> Vec<System<T>> {
    let mut systems = Vec::new();
    definite(&mut systems);
    pivoting(&mut systems);
    shapes(&mut systems);
    scales(&mut systems);
    singular(&mut systems);
    not_finite(&mut systems);
    if matches!(T::KIND, ScalarKind::C32 | ScalarKind::C64) {
        complex(&mut systems);
    }
    systems
}

/// Symmetric positive definite and indefinite model problems.
fn definite<T: Scalar>(out: &mut Vec<System<T>>) {
    out.push(solvable("laplacian-1d", toeplitz(20, -1.0, 2.0, -1.0), None));
    out.push(solvable("laplacian-1d-long", toeplitz(150, -1.0, 2.0, -1.0), None));
    out.push(solvable("poisson-2d", poisson_2d(6, 7), uniform(42, 6)));
    // 2 − 2cos θ runs through (0, 4): the shift 1.1 leaves eigenvalues on both sides of 0.
    out.push(solvable("shifted-laplacian", toeplitz(30, -1.0, 0.9, -1.0), None));
    out.push(solvable("convection-diffusion", toeplitz(40, -1.9, 2.0, -0.1), None));
    let mut zero_rhs = solvable("zero-right-hand-side", toeplitz(12, -1.0, 2.5, -1.0), None);
    zero_rhs.b.fill(zero());
    zero_rhs.x.fill(zero());
    out.push(zero_rhs);
}

/// Nonsingular systems on which elimination without (enough) pivoting fails.
fn pivoting<T: Scalar>(out: &mut Vec<System<T>>) {
    out.push(solvable("exchange", from_rows(&[&[0.0, 1.0], &[1.0, 0.0]]), None));
    // Zero diagonal throughout; nonsingular because n is even.
    out.push(solvable("zero-diagonal-tridiagonal", toeplitz(10, 1.0, 0.0, 2.0), None));
    out.push(solvable("tiny-pivot", from_rows(&[&[1e-18, 1.0], &[1.0, 1.0]]), None));
    out.push(solvable("cyclic-shift", entries(7, (0..7).map(|i| (i, (i + 1) % 7, 1.0))), None));
    // D = [[1, 1], [1, 1]] in every block is singular; with couplings I and an even number of blocks A is not:
    // its eigenvalues are those of tridiag(1, 2, 1) and of tridiag(1, 0, 1).
    let block = |j: usize| (0..4).map(move |k| (2 * j + k / 2, 2 * j + k % 2, 1.0));
    let coupling =
        |j: usize| (0..2).flat_map(move |k| [(2 * j + k, 2 * j + 2 + k, 1.0), (2 * j + 2 + k, 2 * j + k, 1.0)]);
    let a = entries(12, (0..6).flat_map(block).chain((0..5).flat_map(coupling)));
    out.push(solvable("singular-diagonal-blocks", a, uniform(12, 2)));
    // Wilkinson's matrix: 1 on the diagonal and in the last column, −1 below; U's last entry is 2^(n−1).
    let n = if is_double::<T>() { 20 } else { 8 };
    let below = (0..n).flat_map(|i| (0..i).map(move |j| (i, j, -1.0)));
    let rest = (0..n).flat_map(|i| [Some((i, i, 1.0)), (i + 1 < n).then_some((i, n - 1, 1.0))]).flatten();
    let mut wilkinson = solvable("wilkinson-growth", entries(n, below.chain(rest)), None);
    if let Expect::Solvable { growth, .. } = &mut wilkinson.expect {
        *growth = (n as f64 - 1.0).exp2();
    }
    out.push(wilkinson);
}

/// Sizes and patterns at the edges of what a format stores.
fn shapes<T: Scalar>(out: &mut Vec<System<T>>) {
    out.push(solvable("one-by-one", from_rows(&[&[-4.0]]), uniform(1, 1)));
    out.push(solvable("two-by-two", from_rows(&[&[3.0, -1.0], &[2.0, 5.0]]), uniform(2, 1)));
    let dense =
        (0..25usize).map(|k| (k / 5, k % 5, 1.0 / (1.0 + (k / 5).abs_diff(k % 5) as f64) - f64::from(k % 3 == 0)));
    out.push(solvable("one-block", entries(5, dense), uniform(5, 5)));
    out.push(solvable("uneven-last-block", block_dense(&[3, 3, 3, 2]), uniform(11, 3)));
    out.push(solvable("variable-blocks", block_dense(&[1, 4, 2, 1, 3]), Partition::from_sizes([1, 4, 2, 1, 3]).ok()));
    out.push(solvable("blocks-of-one", toeplitz(9, 1.0, -3.0, 0.5), uniform(9, 1)));
    out.push(solvable("diagonal", entries(6, (0..6).map(|i| (i, i, i as f64 - 2.5))), uniform(6, 1)));
    out.push(solvable("lower-bidiagonal", toeplitz(8, 0.5, 1.0, 0.0).without_zeros(), None));
    let band = (0..16usize).flat_map(|i| (i.saturating_sub(3)..(i + 2).min(16)).map(move |j| (i, j)));
    let band = band.map(|(i, j)| (i, j, if i == j { 0.1 } else { 1.0 + ((3 * i + 5 * j) % 7) as f64 / 7.0 }));
    out.push(solvable("band-3-1", entries(16, band), None));
    let arrow =
        (0..15).flat_map(|i| [Some((i, i, 4.0)), (i > 0).then_some((i, 0, 1.0)), (i > 0).then_some((0, i, -1.0))]);
    out.push(solvable("arrowhead", entries(15, arrow.flatten()), None));
    let ring = (0..13).flat_map(|i| [(i, i, 3.0), (i, (i + 1) % 13, -1.0), ((i + 1) % 13, i, -1.0)]);
    out.push(solvable("periodic", entries(13, ring), None));
    // Explicit zeros are entries of the pattern.
    out.push(solvable("stored-zeros", entries(6, (0..6).flat_map(|i| [(i, i, 2.0), (i, (i + 1) % 6, 0.0)])), None));
    let two = (0..4).flat_map(|i| [(i, i, 2.0), (i, i ^ 1, 1.0)]);
    out.push(solvable("two-components", entries(4, two), uniform(4, 2)));
}

/// Entries near the ends of the range, and condition numbers near the end of the precision.
fn scales<T: Scalar>(out: &mut Vec<System<T>>) {
    let (far, u) = if is_double::<T>() { (1e300, 1e-16) } else { (1e30, 1e-7) };
    out.push(solvable("huge-entries", toeplitz(9, far, -3.0 * far, far / 2.0), None));
    out.push(solvable("tiny-entries", toeplitz(9, 1.0 / far, -3.0 / far, 0.5 / far), None));
    let hilbert = (0..16).map(|k| (k / 4, k % 4, 1.0 / (1 + k / 4 + k % 4) as f64));
    out.push(solvable("hilbert-4", entries(4, hilbert), None));
    let nearly = from_rows(&[&[1.0, 1.0], &[1.0, 1.0 + 1e4 * u]]);
    out.push(solvable("nearly-singular", nearly, None));
}

/// Exactly singular matrices whose elimination meets an exact zero.
fn singular<T: Scalar>(out: &mut Vec<System<T>>) {
    let mut push = |name, a: Csr<T>, column, blocks| out.push(system(name, a, blocks, Expect::Singular { column }));
    push("all-ones", from_rows(&[&[1.0, 1.0], &[1.0, 1.0]]), Some(1), None);
    push("one-zero", from_rows(&[&[0.0]]), Some(0), uniform(1, 1));
    push("no-entries", entries(3, []), Some(0), uniform(3, 1));
    // Neumann's Laplacian: all pivots are exactly 1 and the last one exactly 0; the constants are its null space.
    let n = 8;
    let ends = |i: usize| if i == 0 || i == n - 1 { 1.0 } else { 2.0 };
    let neumann = (0..n).flat_map(|i| {
        [
            Some((i, i, ends(i))),
            (i > 0).then_some((i, i.wrapping_sub(1), -1.0)),
            (i + 1 < n).then_some((i, i + 1, -1.0)),
        ]
    });
    push("neumann", entries(n, neumann.flatten()), Some(n - 1), uniform(n, 1));
    let without = |skip: usize| {
        let near = (0..6usize).flat_map(|i| (i.saturating_sub(1)..(i + 2).min(6)).map(move |j| (i, j)));
        near.filter(move |e| e.1 != skip).map(|(i, j)| (i, j, if i == j { 4.0 } else { 1.0 }))
    };
    push("empty-column", entries(6, without(3)), Some(3), uniform(6, 1));
    push("empty-row", entries(6, without(3).map(|(i, j, v)| (j, i, v))), None, uniform(6, 1));
    // Zero diagonal and an odd size: det = 0 by expansion, and the elimination is exact.
    push("odd-zero-diagonal", toeplitz(7, 1.0, 0.0, 1.0), Some(6), uniform(7, 1));
}

/// NaN and infinity.
fn not_finite<T: Scalar>(out: &mut Vec<System<T>>) {
    for (name, value, row, col) in
        [("nan", f64::NAN, 2, 1), ("infinity", f64::INFINITY, 0, 0), ("minus-infinity", f64::NEG_INFINITY, 4, 4)]
    {
        let mut a = toeplitz::<T>(5, -1.0, 2.0, -1.0);
        let (start, cols) = (a.row_ptr()[row] as usize, a.row(row).0);
        let at = start + cols.iter().position(|&j| j as usize == col).unwrap_or_default();
        a.values_mut()[at] = T::rounded(value, 0.0);
        let b = Mat::from_fn(5, 1, |_, _| one());
        let expect = Expect::NotFinite { row, col };
        out.push(System { name, a, b, x: vec![one(); 5], blocks: uniform(5, 1), expect });
    }
}

/// Complex entries: hermitian, complex symmetric, and with pivots whose real part vanishes.
fn complex<T: Scalar>(out: &mut Vec<System<T>>) {
    let tridiagonal = |n: usize, lower: (f64, f64), diag: (f64, f64), upper: (f64, f64)| {
        let near = (0..n).flat_map(move |i| (i.saturating_sub(1)..(i + 2).min(n)).map(move |j| (i, j)));
        let values = near.map(move |(i, j)| (i, j, [lower, diag, upper][j + 1 - i]));
        complex_entries(n, values)
    };
    out.push(solvable("hermitian-definite", tridiagonal(14, (-0.6, 0.8), (2.5, 0.0), (-0.6, -0.8)), uniform(14, 1)));
    out.push(solvable("hermitian-indefinite", tridiagonal(14, (0.6, 0.8), (0.3, 0.0), (0.6, -0.8)), None));
    out.push(solvable("helmholtz", tridiagonal(25, (-1.0, 0.0), (1.2, 0.1), (-1.0, 0.0)), None));
    out.push(solvable("imaginary-diagonal", tridiagonal(10, (1.0, 0.0), (0.0, 2.0), (0.0, -1.0)), None));
    out.push(solvable("imaginary-exchange", complex_entries(2, [(0, 1, (0.0, 1.0)), (1, 0, (0.0, -2.0))]), None));
    out.push(system(
        "complex-rank-one",
        complex_entries(2, [(0, 0, (1.0, 0.0)), (0, 1, (0.0, 1.0)), (1, 0, (0.0, 1.0)), (1, 1, (-1.0, 0.0))]),
        None,
        Expect::Singular { column: Some(1) },
    ));
}

fn is_double<T: Scalar>() -> bool {
    matches!(T::KIND, ScalarKind::F64 | ScalarKind::C64)
}

fn solvable<T: Scalar>(name: &'static str, a: Csr<T>, blocks: Option<Partition>) -> System<T> {
    let condition = Oracle::new(&a).condition();
    system(name, a, blocks, Expect::Solvable { condition, growth: 1.0 })
}

fn system<T: Scalar>(name: &'static str, a: Csr<T>, blocks: Option<Partition>, expect: Expect) -> System<T> {
    let x = x_star::<T>(a.row_ptr().len() - 1);
    let product = oracle::product(&a, Op::Identity, &x);
    let b = Mat::from_fn(x.len(), 1, |i, _| product[i]);
    System { name, a, b, x, blocks, expect }
}

fn uniform(n: usize, block_size: usize) -> Option<Partition> {
    Partition::uniform(n, block_size).ok()
}

/// Real entries (i, j, value); the catalogue is fixed, so a bad index is a mistake here.
fn entries<T: Scalar>(n: usize, values: impl IntoIterator<Item = (usize, usize, f64)>) -> Csr<T> {
    complex_entries(n, values.into_iter().map(|(i, j, v)| (i, j, (v, 0.0))))
}

fn complex_entries<T: Scalar>(n: usize, values: impl IntoIterator<Item = (usize, usize, (f64, f64))>) -> Csr<T> {
    let mut coo = Coo::new(n, n).expect("small sizes");
    for (i, j, (re, im)) in values {
        coo.push(i, j, T::rounded(re, im)).expect("indices below n");
    }
    coo.to_csr().expect("few entries")
}

fn from_rows<T: Scalar>(rows: &[&[f64]]) -> Csr<T> {
    entries(rows.len(), rows.iter().enumerate().flat_map(|(i, r)| r.iter().enumerate().map(move |(j, &v)| (i, j, v))))
}

/// tridiag(lower, diag, upper) of size n.
pub fn toeplitz<T: Scalar>(n: usize, lower: f64, diag: f64, upper: f64) -> Csr<T> {
    let near = (0..n).flat_map(|i| (i.saturating_sub(1)..(i + 2).min(n)).map(move |j| (i, j)));
    entries(n, near.map(|(i, j)| (i, j, [lower, diag, upper][j + 1 - i])))
}

/// The five-point Laplacian on an nx × ny grid, x running fastest: block tridiagonal with ny blocks of nx.
pub fn poisson_2d<T: Scalar>(nx: usize, ny: usize) -> Csr<T> {
    let points = (0..nx * ny).map(move |p| (p, p % nx, p / nx));
    let stencil = points.flat_map(move |(p, x, y)| {
        let neighbours = [
            (x > 0).then(|| p - 1),
            (x + 1 < nx).then_some(p + 1),
            (y > 0).then(|| p - nx),
            (y + 1 < ny).then_some(p + nx),
        ];
        std::iter::once((p, p, 4.0)).chain(neighbours.into_iter().flatten().map(move |q| (p, q, -1.0)))
    });
    entries(nx * ny, stencil)
}

/// Full diagonal blocks and full couplings of the given sizes, with a diagonal that keeps it nonsingular.
pub fn block_dense<T: Scalar>(sizes: &[usize]) -> Csr<T> {
    let owner: Vec<usize> = sizes.iter().enumerate().flat_map(|(j, &k)| std::iter::repeat_n(j, k)).collect();
    let n = owner.len();
    let pairs = (0..n * n).map(|k| (k / n, k % n)).filter(|&(i, j)| owner[i].abs_diff(owner[j]) <= 1);
    entries(n, pairs.map(|(i, j)| (i, j, ((5 * i + 3 * j) % 7) as f64 / 7.0 - 0.4 + if i == j { 4.0 } else { 0.0 })))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use bt_formats::{RealScalar, c32, c64};

    use super::*;
    use crate::DenseLu;
    use bt_direct::{FactorError, Factorization};

    fn check<T: Scalar>() {
        let systems = catalogue::<T>();
        let names: HashSet<_> = systems.iter().map(|s| s.name).collect();
        assert_eq!(names.len(), systems.len(), "names repeat");
        let u = <T::Real as RealScalar>::EPSILON.to_f64() / 2.0;
        for s in &systems {
            let n = s.b.nrows();
            assert_eq!(s.x.len(), n, "{}", s.name);
            if let Some(blocks) = &s.blocks {
                assert_eq!(blocks.n(), n, "{}", s.name);
                for i in 0..n {
                    for &j in s.a.row(i).0 {
                        assert!(blocks.block_of(i).abs_diff(blocks.block_of(j as usize)) <= 1, "{} ({i}, {j})", s.name);
                    }
                }
            }
            match s.expect {
                Expect::Solvable { condition, growth } => {
                    assert!(condition >= 1.0 - 1e-12 && condition < 1e-2 / u, "{}: condition {condition:e}", s.name);
                    let f = DenseLu::new(&s.a).unwrap();
                    assert!(f.stats().growth <= 8.0 * growth, "{}: growth {}", s.name, f.stats().growth);
                }
                Expect::Singular { column } => match DenseLu::new(&s.a) {
                    Err(FactorError::Singular(place)) => {
                        assert!(column.is_none_or(|c| c == place.column), "{}: {place}", s.name);
                    }
                    other => panic!("{}: {other:?}", s.name),
                },
                Expect::NotFinite { row, col } => {
                    let error = s.a.check_finite().unwrap_err();
                    assert!(
                        matches!(error, bt_formats::Error::NonFinite { row: r, col: c, .. } if (r, c) == (row, col)),
                        "{}: {error}",
                        s.name
                    );
                }
            }
        }
    }

    #[test]
    fn systems_are_what_they_say() {
        check::<f32>();
        check::<f64>();
        check::<c32>();
        check::<c64>();
    }

    #[test]
    fn complex_scalars_have_more() {
        assert!(catalogue::<c64>().len() > catalogue::<f64>().len());
    }

    #[test]
    fn condition_of_the_laplacian() {
        // ‖A‖₁ = 4; ‖A⁻¹‖₁ = (n + 1)²/8 for odd n
        let s = solvable("l", toeplitz::<f64>(19, -1.0, 2.0, -1.0), None);
        let Expect::Solvable { condition, .. } = s.expect else { panic!() };
        assert!((condition - 200.0).abs() < 1e-10);
    }
}
