//! SPIKE on a band: the operator its documentation says, whatever order and scale the matrix comes in.

use bt_direct::SpikeOptions;
use bt_direct::spike::{Partitions, ReducedSystem};
use bt_formats::{Coo, Csr, FileMatrix, LinearOperator, Outcome, RealScalar, Scalar, StopCriterion, c64, read_matrix};
use bt_iter::{BandOrder, BandSpike, BandSpikeOptions, BandWidth, Diagonal, Gmres, Preconditioner};
use bt_testkit::{csr, random_vector, stencil};
use proptest::prelude::*;

fn apply<T: Scalar>(m: &mut BandSpike<T>, r: &[T]) -> Vec<T> {
    let mut z = vec![T::default(); r.len()];
    m.apply(r, &mut z);
    z
}

/// max |zᵢ − xᵢ|/|xᵢ| for r = A·x.
fn error<T: Scalar>(a: &Csr<T>, m: &mut BandSpike<T>) -> f64 {
    let n = a.nrows();
    let x: Vec<T> = (0..n).map(|i| T::rounded(1.0 + (i % 3) as f64, 0.5)).collect();
    let mut r = vec![T::default(); n];
    a.apply(bt_formats::one(), &x, T::default(), &mut r);
    let z = apply(m, &r);
    z.iter().zip(&x).map(|(&z, &x)| (Scalar::abs(z - x) / Scalar::abs(x)).to_f64()).fold(0.0, f64::max)
}

fn given(width: BandWidth) -> BandSpikeOptions {
    BandSpikeOptions { diagonal: Diagonal::Given, order: BandOrder::Given, width, ..BandSpikeOptions::default() }
}

#[test]
fn the_operator_is_the_band_within_k() {
    // Diagonals at distances 0, 1, 5: a band of 1 to 4 is the tridiagonal part.
    let part = |a: &Csr<c64>, k: usize| {
        csr(40, |i: usize, j: usize| if i.abs_diff(j) <= k { a.get(i, j) } else { c64::default() })
    };
    let a = csr(40, |i: usize, j: usize| match i.abs_diff(j) {
        0 => c64::new(4.0, 1.0),
        1 => c64::new(if i < j { 1.0 } else { -1.5 }, 0.0),
        5 => c64::new(0.1, 0.2),
        _ => c64::default(),
    });
    for partitions in [1, 3] {
        let spike = SpikeOptions { partitions: Partitions::Even(partitions), ..SpikeOptions::default() };
        for (k, extent) in [(1, 1), (4, 1), (5, 5), (1000, 5)] {
            let options = BandSpikeOptions { spike: spike.clone(), ..given(BandWidth::Half(k)) };
            let mut m = BandSpike::with_options(&a, &options).unwrap();
            assert_eq!((m.report().kl, m.report().ku, m.report().spike.partitions.len()), (extent, extent, partitions));
            assert!(error(&part(&a, k), &mut m) < 1e-14);
            let left_out = ((2.0 * 35.0 * 0.05) / (40.0 * 17.0 + 39.0 * 3.25 + 3.5f64)).sqrt();
            let expected = if k < 5 { left_out } else { 0.0 };
            assert!((m.report().left_out - expected).abs() < 1e-15, "{}", m.report().left_out);
        }
    }
    // The smallest width that keeps so much.
    let left = BandSpike::with_options(&a, &given(BandWidth::Half(1))).unwrap().report().left_out;
    let keeps = |f| BandSpike::with_options(&a, &given(BandWidth::Keeps(f))).unwrap().report().kl;
    let kept = (1.0 - left * left).sqrt();
    assert_eq!([kept * (1.0 - 1e-12), kept * (1.0 + 1e-12), 1.0].map(keeps), [1, 5, 5]);
    for f in [0.0, -1.0, 1.1, f64::NAN] {
        let error = BandSpike::with_options(&a, &given(BandWidth::Keeps(f))).err().unwrap().to_string();
        assert!(error.contains("(0, 1]"), "{error}");
    }
}

#[test]
fn rows_in_any_order_and_scale_come_back_to_their_band() {
    // A band of 1, rows reversed and both sides shuffled by strides, scaled over hundreds of powers of ten.
    let n = 101;
    let shuffled = |i: usize| (37 * i) % n;
    let mut coo = Coo::new(n, n).unwrap();
    for i in 0..n {
        for j in i.saturating_sub(1)..(i + 2).min(n) {
            let v = if i == j { 4.0 } else { 1.0 + (i + 2 * j) as f64 / 500.0 };
            let scale = 10f64.powi((i % 7) as i32 * 30 - 100) * 10f64.powi((j % 5) as i32 * -30 + 40);
            coo.push(n - 1 - shuffled(i), shuffled(j), v * scale).unwrap();
        }
    }
    let a = coo.to_csr().unwrap();
    let mut m = BandSpike::new(&a).unwrap();
    let report = m.report();
    assert_eq!((report.kl, report.ku, report.order, report.left_out), (1, 1, BandOrder::Rcm, 0.0));
    let x: Vec<f64> = (0..n).map(|i| 1.0 + i as f64).collect();
    let mut r = vec![0.0; n];
    a.apply(1.0, &x, 0.0, &mut r);
    let z = apply(&mut m, &r);
    let mut product = vec![0.0; n];
    a.apply(1.0, &z, 0.0, &mut product);
    // Row by row: Σ|aᵢⱼ||zⱼ| is what rounding is relative to.
    for (i, r) in r.iter().enumerate() {
        let (cols, vals) = a.row(i);
        let size: f64 = cols.iter().zip(vals).map(|(&j, v)| (v * z[j as usize]).abs()).sum();
        assert!((product[i] - r).abs() <= 1e-13 * size, "{i}");
    }
}

#[test]
fn values_choose_the_spectral_order() {
    // A path of strong couplings, and weak ones all over: no pattern is narrow, but the weight is.
    let n = 120;
    let at = |i: usize| (49 * i) % n;
    let mut coo = Coo::new(n, n).unwrap();
    for i in 0..n {
        coo.push(at(i), at(i), 3.0).unwrap();
        if i > 0 {
            coo.push(at(i), at(i - 1), -1.0).unwrap();
            coo.push(at(i - 1), at(i), -1.0).unwrap();
        }
        coo.push(at(i), at((i + 60) % n), 1e-3).unwrap();
    }
    let m = BandSpike::new(&coo.to_csr().unwrap()).unwrap();
    let report = m.report();
    assert!(report.order == BandOrder::Spectral && report.kl <= 2 && report.left_out < 1e-3, "{report:?}");
}

#[test]
fn a_singular_band_is_boosted_and_said_to_be() {
    // Regular by its corners alone: the band within 1 has a zero row.
    let a = csr(12, |i: usize, j: usize| match (i, j) {
        (0, 11) | (11, 0) => 1.0,
        (0 | 11, _) | (_, 0 | 11) => 0.0,
        _ if i == j => 3.0,
        _ if i.abs_diff(j) == 1 => 1.0,
        _ => 0.0,
    });
    let m = BandSpike::with_options(&a, &given(BandWidth::Half(1))).unwrap();
    assert!(m.report().replaced.as_ref().unwrap().contains("singular"), "{:?}", m.report());
    assert_eq!(m.report().spike.boosted_pivots, 2);
    // The matching brings the corners to the diagonal.
    let mut m = BandSpike::new(&a).unwrap();
    assert!(m.report().replaced.is_none() && error(&a, &mut m) < 1e-14);
    let structural = csr(3, |_, j| if j == 1 { 0.0 } else { 1.0 });
    let error = BandSpike::new(&structural).err().unwrap().to_string();
    assert!(error.contains("structurally singular") && error.contains("column 1"), "{error}");
    let none = csr::<f64>(0, |_, _| 0.0);
    assert_eq!(BandSpike::new(&none).unwrap().n(), 0);
    let nan = csr(3, |i, j| if (i, j) == (1, 2) { f64::NAN } else { 1.0 });
    assert!(BandSpike::new(&nan).err().unwrap().to_string().contains("row 1, column 2"));
}

#[test]
fn truncation_is_a_small_step_from_exact() {
    let a = stencil::<f64>(20, 0.3);
    let b = random_vector::<f64>(400, 3);
    let steps = |reduced| {
        let spike = SpikeOptions { partitions: Partitions::Even(4), reduced, ..SpikeOptions::default() };
        let mut m = BandSpike::with_options(&a, &BandSpikeOptions { spike, ..BandSpikeOptions::default() }).unwrap();
        assert_eq!(m.report().spike.partitions.len(), 4);
        let mut x = vec![0.0; 400];
        let report = Gmres::new(400, 40).solve(&a, &mut m, &b, &mut x, &StopCriterion::default(), &mut ()).unwrap();
        assert_eq!(report.outcome, Outcome::Converged);
        report.iterations
    };
    // The grid is its own band.
    assert_eq!(steps(ReducedSystem::Recursive), 1);
    let truncated = steps(ReducedSystem::Truncated { tolerance: f64::INFINITY });
    assert!((2..=12).contains(&truncated), "{truncated}");
}

/// Where incomplete LU without pivoting has nothing to divide by (zero diagonals), and on ill-conditioned systems.
#[test]
fn difficult_matrices_of_the_data_are_solved() {
    for name in ["west0479", "bp_200", "mahindas", "e05r0500", "orsirr_1", "sherman5"] {
        let file = format!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/matrices/{}.mtx"), name);
        if !std::path::Path::new(&file).exists() {
            println!("skipped: ../shared is absent");
            return;
        }
        let FileMatrix::Real(a) = read_matrix(&file).unwrap() else { panic!("{name} is complex") };
        let n = a.nrows();
        let mut b = vec![0.0; n];
        a.apply(1.0, &vec![1.0; n], 0.0, &mut b);
        let mut m = BandSpike::new(&a).unwrap();
        let mut x = vec![0.0; n];
        let report = Gmres::new(n, 50).solve(&a, &mut m, &b, &mut x, &StopCriterion::default(), &mut ()).unwrap();
        assert!(report.outcome == Outcome::Converged && report.iterations <= 100, "{name}: {}", report.iterations);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    /// With the whole matrix in the band, M is A up to rounding for dominant matrices, in any options.
    #[test]
    fn a_full_band_is_the_matrix(
        a in bt_testkit::strategies::square::<f64>(1..=24, 0.3).prop_map(|a| bt_testkit::strategies::dominant(&a)),
        matched in any::<bool>(),
        order in 0usize..4,
    ) {
        let options = BandSpikeOptions {
            diagonal: if matched { Diagonal::Matched } else { Diagonal::Given },
            order: [BandOrder::Given, BandOrder::Rcm, BandOrder::Spectral, BandOrder::Best][order],
            width: BandWidth::Keeps(1.0),
            ..BandSpikeOptions::default()
        };
        let mut m = BandSpike::with_options(&a, &options).unwrap();
        prop_assert_eq!(m.report().left_out, 0.0);
        prop_assert!(error(&a, &mut m) < 1e-10);
    }
}
