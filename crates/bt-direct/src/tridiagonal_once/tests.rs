//! Small pieces, so that small matrices have many cuts.

use super::*;
use bt_formats::{LinearOperator, c32, c64};
use proptest::prelude::*;

struct Random(u64);
impl Random {
    fn real(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
    fn vector<T: Scalar>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| T::rounded(self.real(), self.real())).collect()
    }
    /// Entries in (−1, 1), `shift` added to the diagonal, and one off-diagonal entry in `every` zero.
    fn matrix<T: Scalar>(&mut self, n: usize, scale: f64, shift: f64, every: usize) -> Tridiagonal<T> {
        let (mut l, mut d, mut u) = (self.vector::<T>(n), self.vector::<T>(n), self.vector::<T>(n));
        for i in 0..n {
            d[i] = d[i] * T::rounded(scale, 0.0) + T::rounded(shift, 0.0);
            if i % every == 1 {
                l[i] = zero();
            }
            if i % every == 2 {
                u[i] = zero();
            }
        }
        if n > 0 {
            (l[0], u[n - 1]) = (zero(), zero());
        }
        Tridiagonal::new(l, d, u).unwrap()
    }
}

/// ‖b − A·x‖∞ / (‖A‖∞‖x‖∞ + ‖b‖∞), within √2 for complex scalars.
fn backward_error<T: Scalar>(a: &Tridiagonal<T>, x: &[T], b: &[T]) -> f64 {
    let max = |v: &[T]| v.iter().fold(0.0f64, |m, v| m.max_nan(v.abs1().to_f64()));
    let mut r = b.to_vec();
    a.apply(-one::<T>(), x, one(), &mut r);
    let norm = (0..x.len())
        .map(|i| (a.lower()[i].abs1() + a.diag()[i].abs1() + a.upper()[i].abs1()).to_f64())
        .fold(0.0, f64::max);
    max(&r) / (norm * max(x) + max(b)).max(f64::MIN_POSITIVE)
}

fn check<T: Scalar>(n: usize, piece: usize, seed: u64, elimination: Elimination, a: &Tridiagonal<T>) -> Option<Solved> {
    let b = Random(seed ^ 0xABCD).vector::<T>(n);
    let mut solver = TridiagonalOnce::with_piece_rows(n, piece).unwrap();
    let mut x = b.clone();
    let solved = match solver.solve_in_place(a, &mut x, elimination, Par::Seq) {
        Ok(solved) => solved,
        Err(FactorError::Breakdown { .. }) if elimination == Elimination::Dominant => return None,
        Err(FactorError::Singular(_)) if TridiagonalLu::new(a).is_err() => return None,
        Err(e) => panic!("n = {n}, pieces of {piece}, seed {seed}: {e}"),
    };
    let error = backward_error(a, &x, &b);
    assert!(error <= 40.0 * T::Real::EPSILON.to_f64(), "n = {n}, pieces of {piece}, seed {seed}: {error:e}");
    let mut again = b;
    assert_eq!(solver.solve_in_place(a, &mut again, elimination, Par::Rayon).unwrap(), solved);
    assert!(again == x, "threads change the bits");
    Some(solved)
}

fn all<T: Scalar>(n: usize, piece: usize, seed: u64) {
    let mut r = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    // Wild, zero diagonal, tiny diagonal; with and without decoupled rows.
    for (scale, every) in [(1.0, usize::MAX), (0.0, usize::MAX), (1e-8, usize::MAX), (0.0, 5), (1.0, 3)] {
        let a = r.matrix::<T>(n, scale, 0.0, every);
        check(n, piece, seed, Elimination::Pivoted, &a);
        check(n, piece, seed, Elimination::Dominant, &a);
    }
    let a = r.matrix::<T>(n, 1.0, 8.0, usize::MAX);
    assert!(check(n, piece, seed, Elimination::Dominant, &a).is_some());
    assert!(check(n, piece, seed, Elimination::Pivoted, &a).is_some_and(|s| !s.sequential));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn small(n in 0usize..70, seed: u32) { all::<f64>(n, 8, u64::from(seed)); }
    #[test]
    fn pieces_f64(n in 128usize..1500, piece in 8usize..70, seed: u32) { all::<f64>(n, piece, u64::from(seed)); }
    #[test]
    fn pieces_f32(n in 100usize..700, piece in 8usize..40, seed: u32) { all::<f32>(n, piece, u64::from(seed)); }
    #[test]
    fn pieces_c64(n in 100usize..700, piece in 8usize..40, seed: u32) { all::<c64>(n, piece, u64::from(seed)); }
    #[test]
    fn pieces_c32(n in 100usize..700, piece in 8usize..40, seed: u32) { all::<c32>(n, piece, u64::from(seed)); }
}

#[test]
fn layouts_cover_all_rows() {
    for n in 0..3000 {
        for wanted in [8, 24, 1032] {
            let layout = Layout::new(n, wanted);
            assert!(n - layout.tail() < 128, "{layout:?}");
            assert!(layout.long <= layout.tiles && layout.rows <= wanted, "{layout:?}");
            for t in 0..layout.tiles {
                assert_eq!(layout.start(t + 1) - layout.start(t), PIECES * layout.stride(t));
            }
        }
    }
}

#[test]
fn no_decay_is_refused_and_pivoting_solves_it() {
    // The Laplacian: dominant, and yet every unknown is felt everywhere.
    let n = 3000;
    let mut off = vec![-1.0; n];
    off[0] = 0.0;
    let a = Tridiagonal::new(off.clone(), vec![2.0; n], off.iter().rev().copied().collect()).unwrap();
    let mut solver = TridiagonalOnce::with_piece_rows(n, 64).unwrap();
    let b = Random(7).vector::<f64>(n);
    let mut x = b.clone();
    let error = solver.solve_in_place(&a, &mut x, Elimination::Dominant, Par::Seq).unwrap_err();
    assert!(error.to_string().contains("does not decay"), "{error}");
    assert!(x.iter().all(|v| v.is_nan()));
    assert!(!check(n, 64, 1, Elimination::Pivoted, &a).unwrap().sequential);
}

#[test]
fn the_singular_column_is_named_and_non_finite_entries_too() {
    let n = 1000;
    let mut r = Random(3);
    let a = r.matrix::<f64>(n, 1.0, 0.0, usize::MAX);
    let (mut l, mut d, mut u) = a.into_parts();
    // Column 500 is empty.
    (d[500], l[501], u[499]) = (0.0, 0.0, 0.0);
    let a = Tridiagonal::new(l.clone(), d.clone(), u.clone()).unwrap();
    let mut solver = TridiagonalOnce::with_piece_rows(n, 16).unwrap();
    let mut x = vec![1.0; n];
    match solver.solve_in_place(&a, &mut x, Elimination::Pivoted, Par::Seq) {
        Err(FactorError::Singular(place)) => assert_eq!(place.column, 500),
        other => panic!("{other:?}"),
    }
    assert!(x.iter().all(|v| v.is_nan()));
    for bad in [f64::NAN, f64::INFINITY] {
        for i in [0, 1, 77, 501, n - 1] {
            let mut d = d.clone();
            d[500] = 1.0;
            d[i] = bad;
            let a = Tridiagonal::new(l.clone(), d, u.clone()).unwrap();
            for elimination in [Elimination::Dominant, Elimination::Pivoted] {
                let mut x = vec![1.0; n];
                let error = solver.solve_in_place(&a, &mut x, elimination, Par::Seq).unwrap_err();
                assert!(error.to_string().contains(&format!("row {i}, column {i}")), "{error}");
            }
        }
    }
}

#[test]
fn extreme_scales() {
    for scale in [1e-300, 1e300] {
        let mut r = Random(11);
        let (l, d, u) = r.matrix::<f64>(900, 1.0, 8.0, usize::MAX).into_parts();
        let scaled = |v: Vec<f64>| v.into_iter().map(|x| x * scale / 16.0).collect::<Vec<_>>();
        let a = Tridiagonal::new(scaled(l), scaled(d), scaled(u)).unwrap();
        for elimination in [Elimination::Dominant, Elimination::Pivoted] {
            let mut x: Vec<f64> = r.vector::<f64>(900).into_iter().map(|v| v * scale).collect();
            let b = x.clone();
            TridiagonalOnce::with_piece_rows(900, 16)
                .unwrap()
                .solve_in_place(&a, &mut x, elimination, Par::Seq)
                .unwrap();
            let exact = TridiagonalLu::new(&a).unwrap();
            let mut y = b;
            exact.solve_vec_in_place(&mut y);
            assert!(x.iter().zip(&y).all(|(x, y)| (x - y).abs() < 1e-13), "{scale}");
        }
    }
}
