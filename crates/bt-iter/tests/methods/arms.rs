//! ARMS: exact where nothing is dropped, whatever the pivots; its levels; its last level; the class `hard` of the shared data.

use std::path::Path;

use bt_direct::{FactorError, Fallback, RbtOptions, SingularKind};
use bt_formats::reorder::maximum_product_matching;
use bt_formats::{
    Csr, LinearOperator, Matrix, Outcome, Permutation, RealScalar, Scalar, SolveReport, StopCriterion, c32, c64,
    matrix_market, norm2, one, zero,
};
use bt_iter::{
    Arms, ArmsOptions, Gmres, IlutOptions, LastSolver, Preconditioner, PreconditionerKind, Refactor, RowOrder,
};
use bt_testkit::alloc::count_allocations;
use bt_testkit::contract::{Claim, preconditioner_contract};
use bt_testkit::strategies::{self, dominant};
use bt_testkit::{csr, random_vector, stencil, x_star};
use proptest::prelude::*;

const SOLVERS: [LastSolver; 3] = [
    LastSolver::Ilut,
    LastSolver::Dense,
    LastSolver::Butterflies(RbtOptions { depth: 2, seed: 7, fallback: Fallback::Pivoted }),
];

/// Small groups and a small last level, so that small matrices have several levels.
fn small() -> ArmsOptions {
    ArmsOptions { last_size: 4, group_size: 4, ..ArmsOptions::default() }
}

/// The same without dropping.
fn exact() -> ArmsOptions {
    small().with_dropping(IlutOptions { fill: usize::MAX, drop_tolerance: 0.0 })
}

fn fgmres(a: &Csr<f64>, m: &mut dyn Preconditioner<f64>, b: &[f64]) -> (Vec<f64>, SolveReport) {
    let mut x = vec![0.0; b.len()];
    let stop = StopCriterion { max_iters: 1000, ..StopCriterion::default() };
    let report = Gmres::flexible(b.len(), 30).solve(a, m, b, &mut x, &stop, &mut ()).unwrap();
    (x, report)
}

fn apply<T: Scalar>(m: &mut Arms<T>, r: &[T]) -> Vec<T> {
    let mut z = vec![zero(); r.len()];
    m.apply(r, &mut z);
    z
}

/// ‖M⁻¹·A·x − x‖/‖x‖ for a random x.
fn error<T: Scalar>(a: &Csr<T>, m: &mut Arms<T>) -> f64 {
    let x = random_vector::<T>(a.nrows(), 3);
    let mut b = vec![zero(); a.nrows()];
    a.apply(one(), &x, zero(), &mut b);
    let off: Vec<T> = apply(m, &b).iter().zip(&x).map(|(&z, &x)| z - x).collect();
    norm2(&off) / norm2(&x).max(1e-300)
}

/// A k × k grid with first-order terms, from the definition and not from a dense loop.
fn large_grid(k: usize) -> Csr<f64> {
    let (mut ptr, mut idx, mut val) = (vec![0], Vec::new(), Vec::new());
    for i in 0..k * k {
        let (x, y) = (i % k, i / k);
        let row = [(y > 0, i.wrapping_sub(k), -1.0), (x > 0, i.wrapping_sub(1), -1.3), (true, i, 4.0)];
        for (there, j, v) in row.into_iter().chain([(x + 1 < k, i + 1, -0.7), (y + 1 < k, i + k, -1.0)]) {
            if there {
                idx.push(j as u32);
                val.push(v);
            }
        }
        ptr.push(idx.len() as u32);
    }
    Csr::new(k * k, k * k, ptr, idx, val).unwrap()
}

fn contract<T: Scalar>() {
    let real = stencil::<f64>(7, 0.3);
    let a = csr(49, |i, j| T::rounded(real.get(i, j), 0.2 * real.get(i, j) * f64::from(i32::from(j > i))));
    for last in SOLVERS {
        let mut m = Arms::with_options(&a, ArmsOptions { last, ..small() }).unwrap();
        assert!(m.levels().len() >= 2 && m.n() == 49 && m.kind() == PreconditionerKind::General);
        assert!(m.nnz() >= 49 && m.bytes() >= m.nnz() * size_of::<T>());
        let verdict = preconditioner_contract(49, Claim::Linear, &mut |r, z| m.apply(r, z));
        assert_eq!(verdict, Ok(()), "{last:?} in {}", T::KIND);
    }
}

#[test]
fn keeps_the_contract() {
    contract::<f32>();
    contract::<f64>();
    contract::<c32>();
    contract::<c64>();
}

#[test]
fn threads_change_no_bits() {
    // Large enough for groups, products and copies to be shared.
    let a = large_grid(190);
    let options = ArmsOptions { group_size: 20, ..ArmsOptions::default() }
        .with_dropping(IlutOptions { fill: 5, drop_tolerance: 1e-2 });
    let r = random_vector::<f64>(a.nrows(), 1);
    let solution = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| apply(&mut Arms::with_options(&a, options).unwrap(), &r))
    };
    let first = solution(1);
    assert_eq!(first, solution(2));
    assert_eq!(first, solution(3));
}

#[test]
fn a_line_is_reduced_level_by_level() {
    // Groups of four and one unknown between: 100 → 20 → 4, and no fill beyond the three diagonals.
    let line = csr(100, |i: usize, j| [2.5, -1.0].get(i.abs_diff(j)).copied().unwrap_or(0.0));
    let mut m = Arms::with_options(&line, exact()).unwrap();
    let sizes: Vec<_> = m.levels().iter().map(|l| (l.n, l.interior, l.groups, l.rejected)).collect();
    assert_eq!(sizes, [(100, 80, 20, 0), (20, 16, 4, 0)]);
    let last = m.last_level();
    assert_eq!((last.n, last.nnz, last.method, last.shift), (4, 10, "dense-lu", 0.0));
    // L and U of a group: 3 + 7 values; an unknown between has two neighbours, but the last one.
    assert_eq!(m.levels()[0].nnz, 20 * 10 + 2 * 39);
    assert_eq!(m.nnz(), 278 + 4 * 10 + 2 * 7 + 16);
    assert!(error(&line, &mut m) < 1e-14);
    for (levels, left) in [(0, 100), (1, 20), (2, 4)] {
        let m = Arms::with_options(&line, ArmsOptions { levels, ..exact() }).unwrap();
        assert_eq!((m.levels().len(), m.last_level().n), (levels, left));
    }
    // Nothing is left when there are no couplings.
    let diagonal = csr(30, |i, j| if i == j { 1.0 + i as f64 } else { 0.0 });
    let mut m = Arms::with_options(&diagonal, exact()).unwrap();
    assert_eq!((m.levels().len(), m.levels()[0].groups, m.last_level().n), (1, 30, 0));
    assert!(error(&diagonal, &mut m) < 1e-15);
    // A full matrix has no independent groups but one of four: not a tenth of its rows.
    let full = csr(60, |i, j| f64::from(i32::from(i == j)) * 60.0 + 1.0);
    let m = Arms::with_options(&full, exact()).unwrap();
    assert_eq!((m.levels().len(), m.last_level().n), (0, 60));
}

#[test]
fn edges() {
    for last in SOLVERS {
        let options = ArmsOptions { last, last_size: 0, ..ArmsOptions::default() };
        let mut none = Arms::with_options(&csr(0, |_, _| 0.0f64), options).unwrap();
        none.apply(&[], &mut []);
        for a in [-4.0, 1e300, 1e-300] {
            let mut one = Arms::with_options(&csr(1, |_, _| a), options).unwrap();
            let z: f64 = apply(&mut one, &[a])[0];
            assert!(f64::abs(z - 1.0) < 1e-15, "{last:?}");
            assert_eq!(
                Arms::with_options(&csr(1, |_, _| a), ArmsOptions { levels: 0, ..options }).unwrap().last_level().n,
                1
            );
        }
    }
    let options = ArmsOptions::default;
    let grid = stencil::<f64>(4, 0.1);
    let dropping = IlutOptions { fill: 3, drop_tolerance: f64::NAN };
    for (wrong, what) in [
        (ArmsOptions { group_size: 0, ..options() }, "size of groups"),
        (ArmsOptions { pivot_threshold: 0.0, ..options() }, "threshold"),
        (ArmsOptions { pivot_threshold: f64::NAN, ..options() }, "threshold"),
        (ArmsOptions { interior: dropping, ..options() }, "drop tolerance"),
        (ArmsOptions { coupling: dropping, ..options() }, "drop tolerance"),
        (ArmsOptions { schur: dropping, ..options() }, "drop tolerance"),
        (ArmsOptions { last_ilut: dropping, ..options() }, "drop tolerance"),
    ] {
        let error = Arms::with_options(&grid, wrong).err().unwrap().to_string();
        assert!(error.contains(what), "{error}");
    }
    let nan = csr(3, |i, j| if (i, j) == (1, 2) { f64::NAN } else { 1.0 });
    let error = Arms::with_options(&nan, options()).err().unwrap().to_string();
    assert!(error.contains("row 1, column 2"), "{error}");
    let tall = Csr::new(2, 1, vec![0, 1, 1], vec![0], vec![1.0]).unwrap();
    assert!(matches!(Arms::with_options(&tall, options()), Err(FactorError::Input(_))));
}

#[test]
fn poor_pivots_go_to_the_complement() {
    // Every third row cannot be eliminated as it stands: its diagonal entry is 0 or tiny.
    for tiny in [0.0, 1e-9] {
        let a = csr(40, |i: usize, j| match i.abs_diff(j) {
            0 if i.is_multiple_of(3) => tiny,
            0 => 3.0,
            1 => 1.0,
            3 if i > j => 0.3,
            _ => 0.0,
        });
        let mut m = Arms::with_options(&a, ArmsOptions { rows: RowOrder::AsGiven, ..exact() }).unwrap();
        assert!(m.levels()[0].rejected > 0 && !m.is_matched());
        assert!(error(&a, &mut m) < 1e-12, "{tiny}: {:e}", error(&a, &mut m));
        let matched = Arms::with_options(&a, exact()).unwrap();
        assert_eq!(matched.is_matched(), tiny == 0.0);
    }
    // Rows far apart in size are none of its business.
    let scaled =
        csr(49, |i, j| stencil::<f64>(7, 0.2).get(i, j) * 10f64.powi(20 * (i as i32 % 5) - 7 * (j as i32 % 3)));
    let mut m = Arms::with_options(&scaled, exact()).unwrap();
    let x = apply(&mut m, &(0..49).map(|i| (0..49).map(|j| scaled.get(i, j)).sum()).collect::<Vec<_>>());
    assert_eq!(m.levels()[0].rejected, 0);
    assert!((0..49).all(|i| {
        let (cols, vals) = scaled.row(i);
        let (sum, size) = cols
            .iter()
            .zip(vals)
            .fold((0.0, 0.0f64), |(s, m), (&j, v)| (s + v * (x[j as usize] - 1.0), m + v.abs() * x[j as usize].abs()));
        sum.abs() <= 1e-13 * size
    }));
}

#[test]
fn a_singular_last_level_is_shifted_and_said() {
    // Two rows the same: the last pivot is exactly zero.
    let singular = csr(12, |i: usize, j: usize| match (i.min(10), j) {
        (10, 9..) => 1.0,
        (i, j) if i == j => 2.0,
        (i, j) if i.abs_diff(j) == 1 => 1.0,
        _ => 0.0,
    });
    for last in SOLVERS {
        let mut m = Arms::with_options(&singular, ArmsOptions { last, ..exact() }).unwrap();
        let facts = m.last_level();
        match last {
            LastSolver::Ilut => assert!(facts.replaced_pivots == 1 && facts.shift == 0.0, "{facts:?}"),
            _ => assert!(facts.shift > 0.0 && facts.replaced_pivots == 0, "{facts:?}"),
        }
        assert!(apply(&mut m, &[1.0; 12]).iter().all(|z| z.is_finite()));
    }
    // Singular to working precision: the graph Laplacian of a ring.
    let ring = csr(10, |i: usize, j| match (i + 10 - j) % 10 {
        0 => 2.0,
        1 | 9 => -1.0,
        _ => 0.0,
    });
    for last in [LastSolver::Dense, SOLVERS[2]] {
        assert!(Arms::with_options(&ring, ArmsOptions { last, ..exact() }).unwrap().last_level().shift > 0.0);
    }
    // Nothing at all: M = σ·I.
    let empty = Csr::new(3, 3, vec![0; 4], vec![], Vec::<f64>::new()).unwrap();
    let error = Arms::with_options(&empty, exact()).err().unwrap();
    assert!(
        matches!(error, FactorError::Singular(s) if s.kind == SingularKind::Structural && s.column == 0),
        "{error}"
    );
    let mut m = Arms::with_options(&empty, ArmsOptions { rows: RowOrder::AsGiven, ..exact() }).unwrap();
    assert!(apply(&mut m, &[f64::EPSILON.sqrt(); 3]).iter().all(|z| f64::abs(z - 1.0) < 1e-15));
}

#[test]
fn a_last_level_too_large_for_dense_factors_goes_to_ilut() {
    let a = stencil::<f64>(12, 0.2);
    for last in SOLVERS {
        let options = ArmsOptions { last, levels: 1, ..ArmsOptions::default() };
        let left = Arms::with_options(&a, options).unwrap().last_level().n;
        let method =
            |dense_limit| Arms::with_options(&a, ArmsOptions { dense_limit, ..options }).unwrap().last_level().method;
        let asked = ["ilut", "dense-lu", "rbt"][SOLVERS.iter().position(|s| *s == last).unwrap()];
        assert_eq!((method(left), method(left - 1)), (asked, "ilut"));
    }
}

#[test]
fn butterflies_take_the_steps_that_pivoting_takes() {
    let a = large_grid(40);
    let b = vec![1.0; 1600];
    let counts = SOLVERS.map(|last| {
        let options = ArmsOptions { last, levels: 1, ..ArmsOptions::default() };
        let mut m =
            Arms::with_options(&a, options.with_dropping(IlutOptions { fill: 20, drop_tolerance: 1e-2 })).unwrap();
        assert!(m.last_level().n > 200 && m.last_level().fallback.is_none());
        assert_eq!(m.name(), if matches!(last, LastSolver::Butterflies(_)) { "arms-rbt" } else { "arms" });
        let report = fgmres(&a, &mut m, &b).1;
        assert_eq!(report.outcome, Outcome::Converged);
        report.iterations as f64
    });
    assert!((counts[2] / counts[1] - 1.0).abs() <= 0.1 && counts[1] <= counts[0], "{counts:?}");
}

#[test]
fn an_inner_iteration_needs_a_flexible_method() {
    let a = large_grid(30);
    let coarse = ArmsOptions { levels: 1, last: LastSolver::Ilut, ..ArmsOptions::default() };
    let coarse = ArmsOptions { last_ilut: IlutOptions { fill: 1, drop_tolerance: 0.1 }, ..coarse };
    let b = vec![1.0; 900];
    let mut plain = Arms::with_options(&a, coarse).unwrap();
    let mut inner = Arms::with_options(&a, ArmsOptions { inner_steps: 8, ..coarse }).unwrap();
    assert_eq!((plain.kind(), inner.kind()), (PreconditionerKind::General, PreconditionerKind::Variable));
    assert!(inner.bytes() > plain.bytes());
    let (without, with) = (fgmres(&a, &mut plain, &b).1, fgmres(&a, &mut inner, &b).1);
    assert_eq!((without.outcome, with.outcome), (Outcome::Converged, Outcome::Converged));
    assert!(2 * with.iterations < without.iterations, "{} {}", with.iterations, without.iterations);
    let mut x = vec![0.0; 900];
    let refused = Gmres::new(900, 30).solve(&a, &mut inner, &b, &mut x, &StopCriterion::default(), &mut ());
    assert!(refused.unwrap_err().to_string().contains("use fgmres"));
    assert_eq!(count_allocations(|| inner.apply(&b, &mut x)).1, 0);
    // M⁻¹·0 = 0 here too.
    assert!(apply(&mut inner, &vec![0.0; 900]).iter().all(|z| *z == 0.0));
}

#[test]
fn every_part_drops_by_its_own_rule() {
    let a = large_grid(30);
    let base = ArmsOptions { levels: 2, group_size: 20, ..exact() };
    let iterations = |options| {
        let mut m = Arms::with_options(&a, options).unwrap();
        let report = fgmres(&a, &mut m, &vec![1.0; 900]).1;
        assert_eq!(report.outcome, Outcome::Converged);
        (report.iterations, m.levels()[0].nnz, m.last_level().nnz)
    };
    let whole = iterations(base);
    assert_eq!(whole.0, 1);
    for part in [IlutOptions { fill: usize::MAX, drop_tolerance: 0.03 }, IlutOptions { fill: 3, drop_tolerance: 0.0 }] {
        let interior = iterations(ArmsOptions { interior: part, ..base });
        let coupling = iterations(ArmsOptions { coupling: part, ..base });
        let schur = iterations(ArmsOptions { schur: part, ..base });
        let last = iterations(ArmsOptions { last: LastSolver::Ilut, last_ilut: part, ..base });
        assert!(interior.1 < whole.1 && [coupling, schur, last].iter().all(|c| c.1 == whole.1));
        assert!(coupling.2 < whole.2 && schur.2 < whole.2 && last.2 == whole.2);
        assert!([interior, coupling, schur, last].iter().all(|c| (2..60).contains(&c.0)), "{interior:?} {schur:?}");
    }
}

#[test]
fn refactorisation_has_the_bits_of_a_fresh_one_and_recovers() {
    let r = random_vector::<f64>(81, 2);
    let fresh = |a: &Csr<f64>| apply(&mut Arms::with_options(a, small()).unwrap(), &r);
    // Other values; other rows to match; another pattern.
    let shifted = csr(81, |i, j| stencil::<f64>(9, 0.2).get((i + 1) % 81, j));
    let a = stencil::<f64>(9, 0.2);
    let mut m = Arms::with_options(&a, small()).unwrap();
    for other in [&stencil(9, -0.4), &shifted, &csr(81, |i, j| if i == j { 3.0 } else { 0.0 }), &a] {
        m.refactor(other).unwrap();
        assert_eq!(apply(&mut m, &r), fresh(other));
        assert_eq!(m.is_matched(), std::ptr::eq(other, &raw const shifted));
    }
    let nan = csr(81, |i, j| if i == j { f64::NAN } else { 0.0 });
    for bad in [&nan, &stencil(8, 0.2)] {
        assert!(matches!(m.refactor(bad), Err(FactorError::Input(_))));
        assert!(apply(&mut m, &r).iter().all(|z| z.is_nan()));
        m.refactor(&a).unwrap();
        assert_eq!(apply(&mut m, &r), fresh(&a));
    }
}

/// Names of a class of difficulty in the index of the shared matrices.
fn names(index: &str, class: &str) -> Vec<String> {
    let fields = |line: &str| {
        // Commas inside quotes are no separators.
        let mut quoted = false;
        let separates = |c: char| {
            quoted ^= c == '"';
            c == ',' && !quoted
        };
        line.split(separates).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut lines = index.lines();
    let place = fields(lines.next().unwrap()).iter().position(|f| f == "difficulty").unwrap();
    lines.map(fields).filter(|f| f[place] == class).map(|f| f[0].clone()).collect()
}

#[test]
fn the_class_hard_is_solved() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    if !folder.is_dir() {
        println!("skipped: ../shared is absent");
        return;
    }
    let index = std::fs::read_to_string(folder.join("index.csv")).unwrap();
    let hard = [names(&index, "hard"), names(&index, "very hard")].concat();
    assert_eq!(hard.len(), 9, "{hard:?}");
    for name in hard {
        let read = |end: &str| folder.join(format!("matrices/{name}{end}.mtx"));
        let a: Csr<f64> = matrix_market::read_csr(read("")).unwrap();
        let n = a.nrows();
        let mut b = vec![0.0; n];
        if read("_b").is_file() {
            b = matrix_market::read_dense(read("_b")).unwrap().col(0).iter().copied().collect();
        } else {
            a.apply(1.0, &x_star::<f64>(n), 0.0, &mut b);
        }
        for last in [LastSolver::Dense, SOLVERS[2]] {
            // A small last level, for the levels to do the work.
            let mut m = Arms::with_options(&a, ArmsOptions { last, last_size: 40, ..ArmsOptions::default() }).unwrap();
            let (x, report) = fgmres(&a, &mut m, &b);
            let mut r = b.clone();
            a.apply(-1.0, &x, 1.0, &mut r);
            assert!(report.outcome == Outcome::Converged && norm2(&r) <= 1e-8 * norm2(&b), "{name}: {report:?}");
            assert!(report.iterations <= 30 && !m.levels().is_empty(), "{name}: {}", report.iterations);
            assert!(m.nnz() <= 5 * a.nnz(), "{name}: {} of {}", m.nnz(), a.nnz());
        }
    }
}

/// Exact, to rounding, with every solver of the last level.
fn is_exact<T: Scalar>(a: &Csr<T>, rows: RowOrder) -> Result<(), TestCaseError> {
    for last in SOLVERS {
        let mut m = Arms::with_options(a, ArmsOptions { last, rows, ..exact() }).unwrap();
        prop_assert!(a.nrows() <= 4 || !m.levels().is_empty() || a.nnz() > 3 * a.nrows());
        let e = error(a, &mut m);
        prop_assert!(e <= 1e4 * T::Real::EPSILON.to_f64(), "{:?} in {}: {:e}", last, T::KIND, e);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_dropped_is_exact(
        a in strategies::square::<f64>(1..=40, 0.06).prop_map(|a| dominant(&a)),
        b in strategies::square::<c64>(1..=30, 0.08).prop_map(|a| dominant(&a)),
        c in strategies::square::<c32>(1..=20, 0.1).prop_map(|a| dominant(&a)),
        d in strategies::square::<f32>(1..=20, 0.1).prop_map(|a| dominant(&a)),
    ) {
        is_exact(&a, RowOrder::Auto)?;
        is_exact(&b, RowOrder::AsGiven)?;
        is_exact(&c, RowOrder::Auto)?;
        is_exact(&d, RowOrder::Auto)?;
    }

    /// Rows in a wild order: matched back, or eliminated as they stand by sending poor pivots down.
    #[test]
    fn permuted_rows_are_matched(
        (a, order) in strategies::square::<f64>(2..=30, 0.08)
            .prop_map(|a| dominant(&a))
            .prop_flat_map(|a| { let n = a.nrows(); (Just(a), strategies::permutation(n)) }),
    ) {
        let shuffled = a.permute(&order, &Permutation::identity(a.ncols()));
        prop_assert!(maximum_product_matching(&shuffled).is_ok());
        for last in [LastSolver::Dense, SOLVERS[2]] {
            for rows in [RowOrder::Matched, RowOrder::AsGiven] {
                let mut m = Arms::with_options(&shuffled, ArmsOptions { last, rows, ..exact() }).unwrap();
                prop_assert!(m.is_matched() == (rows == RowOrder::Matched) && m.last_level().shift == 0.0);
                let e = error(&shuffled, &mut m);
                prop_assert!(e <= 1e-10, "{:?} {:?}: {:e}", last, rows, e);
            }
        }
    }

    /// Any matrix, singular ones among them, and any options: a preconditioner or an error, and finite values.
    #[test]
    fn anything_goes(
        a in strategies::square::<c64>(0..=24, 0.12),
        (levels, last_size, group_size, dense_limit) in (0..4usize, 0..8usize, 1..9usize, 0..12usize),
        (fill, tolerance, threshold) in (0..6usize, 0.0..1.5f64, 0.01..1.0f64),
        (last, rows, inner_steps) in (0..3usize, 0..3usize, 0..3usize),
    ) {
        let options = ArmsOptions {
            levels,
            last_size,
            group_size,
            dense_limit,
            pivot_threshold: threshold,
            last: SOLVERS[last],
            rows: [RowOrder::Auto, RowOrder::Matched, RowOrder::AsGiven][rows],
            inner_steps,
            ..ArmsOptions::default()
        };
        let n = a.nrows();
        match Arms::with_options(&a, options.with_dropping(IlutOptions { fill, drop_tolerance: tolerance })) {
            Ok(mut m) => {
                prop_assert!(m.levels().len() <= levels && apply(&mut m, &random_vector(n, 4)).iter().all(|z| z.is_finite()));
            }
            Err(FactorError::Singular(s)) => {
                prop_assert!(rows != 2 && s.kind == SingularKind::Structural && s.column < n);
                prop_assert!(maximum_product_matching(&a).is_err());
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}
