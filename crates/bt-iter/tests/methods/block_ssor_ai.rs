//! Block SSOR-AI: its formula, its contract in all four scalars and block sizes, new values, units, breakdowns, and its steps beside those
//! of the scalar one on plane elasticity.

use bt_direct::{FactorError, Place};
use bt_formats::detect::block_size;
use bt_formats::{Bcsr, Csr, Error, LinearOperator, Outcome, Scalar, StopCriterion, c32, c64, norm2};
use bt_iter::{BlockSsorAi, Cg, Preconditioner, PreconditionerKind, Refactor, Series, SsorAi, Triangles};
use bt_queue::{ElasticDisk, Plane};
use bt_testkit::alloc::count_allocations;
use bt_testkit::contract::{
    Apply, Claim, Units, preconditioner_adjoint_contract, preconditioner_contract, preconditioner_units_contract,
};
use bt_testkit::{csr, random_vector};
use faer::Mat;

/// Nodes in a row with k unknowns each, coupled with the next and the third next ones: Hermitian, and definite by dominance.
fn nodes<T: Scalar>(n: usize, k: usize, seed: u64) -> Csr<T> {
    let values = random_vector::<T>(n * n, seed);
    csr(n, |i, j| match (i / k).abs_diff(j / k) {
        _ if i == j => T::rounded(7.0 * k as f64 + (i % 5) as f64, 0.0),
        0 | 1 | 3 if i > j => values[i * n + j],
        0 | 1 | 3 => Scalar::conj(values[j * n + i]),
        _ => T::default(),
    })
}

fn apply<T: Scalar>(m: &mut dyn Preconditioner<T>) -> Vec<T> {
    let r = random_vector::<T>(m.n(), 4);
    let mut z = vec![T::default(); r.len()];
    m.apply(&r, &mut z);
    z
}

fn contract<T: Scalar>() {
    for k in 1..=6 {
        let a = nodes::<T>(60, k, 2);
        let mut m = BlockSsorAi::with_options(&a, k, 1.2).unwrap();
        assert_eq!((m.n(), m.block_size(), m.kind()), (60, k, PreconditionerKind::Spd));
        assert!(m.bytes() >= m.nnz() * size_of::<T>() && m.nnz() >= 60 * k);
        let verdict = preconditioner_contract(60, Claim::Definite, &mut |r, z| m.apply(r, z));
        assert_eq!(verdict, Ok(()), "{k} in {}", T::KIND);
    }
}

#[test]
fn all_block_sizes_keep_the_contract() {
    contract::<f32>();
    contract::<f64>();
    contract::<c32>();
    contract::<c64>();
    let nothing = Csr::<f64>::new(0, 0, vec![0], Vec::new(), Vec::new()).unwrap();
    BlockSsorAi::new(&nothing, 3).unwrap().apply(&[], &mut []);
}

#[test]
fn it_is_its_formula() {
    let omega = 1.3;
    let real = |v: f64| faer::Scale(c64::new(v, 0.0));
    for k in 1..=6 {
        let a = nodes::<c64>(60, k, 3);
        let dense = a.to_dense();
        let part = |keep: fn(usize, usize) -> bool| {
            Mat::from_fn(60, 60, |i, j| if keep(i / k, j / k) { dense[(i, j)] } else { c64::default() })
        };
        let (d, l) = (part(|i, j| i == j), part(|i, j| i > j));
        // D̄⁻¹ = ω·D⁻¹;  P = I − N + N²;  M⁻¹ = (2−ω)·Pᴴ·D̄⁻¹·P
        let inverse = faer::linalg::solvers::DenseSolveCore::inverse(&d.partial_piv_lu()) * real(omega);
        let n = &l * &inverse;
        let p = Mat::<c64>::identity(60, 60) - &n + &n * &n;
        let product = p.adjoint() * &inverse * &p * real(2.0 - omega);
        let r = random_vector::<c64>(60, 4);
        let z = apply(&mut BlockSsorAi::with_options(&a, k, omega).unwrap());
        let off: Vec<_> = (0..60).map(|i| (0..60).map(|j| product[(i, j)] * r[j]).sum::<c64>() - z[i]).collect();
        assert!(norm2(&off) <= 1e-13 * norm2(&z), "{k}: {:e}", norm2(&off));
    }
    // With one row a block the scalar one.
    let a = nodes::<f64>(60, 2, 5);
    let scalar = apply(&mut SsorAi::with_options(&a, omega, Series::Second, Triangles::Stored).unwrap());
    let block = apply(&mut BlockSsorAi::with_options(&a, 1, omega).unwrap());
    let off: Vec<_> = scalar.iter().zip(&block).map(|(x, y)| x - y).collect();
    assert!(norm2(&off) <= 1e-14 * norm2(&block), "{:e}", norm2(&off));
}

fn units<T: Scalar>() {
    for k in [2, 3, 5] {
        let a = nodes::<T>(60, k, 6);
        let mut make = |a: &Csr<T>| -> Result<Apply<T>, String> {
            let mut m = BlockSsorAi::with_options(a, k, 1.25).map_err(|e| e.to_string())?;
            Ok(Box::new(move |r, z| m.apply(r, z)))
        };
        // Powers of two, also of each unknown, leave all bits alone.
        assert_eq!(preconditioner_units_contract(&a, Units::Symmetric, &mut make), Ok(()), "{k}");
        assert_eq!(preconditioner_adjoint_contract(&a, &mut make), Ok(()), "{k}");
    }
}

#[test]
fn units_leave_the_bits_alone() {
    units::<f32>();
    units::<f64>();
    units::<c64>();
}

fn new_values<T: Scalar>() {
    for k in [2, 3, 4] {
        let (first, second) = (nodes::<T>(60, k, 7), nodes::<T>(60, k, 8));
        let mut m = BlockSsorAi::with_options(&first, k, 1.1).unwrap();
        let (old, new) = (apply(&mut m), apply(&mut BlockSsorAi::with_options(&second, k, 1.1).unwrap()));
        assert!(old != new);
        let (done, count) = count_allocations(|| m.refactor(&second));
        done.unwrap();
        assert_eq!((apply(&mut m) == new, count), (true, 0));
        // Less is zeros: what is not in the diagonal blocks.
        let less = csr(60, |i, j| if i / k == j / k { first.get(i, j) } else { T::default() });
        m.refactor(&less).unwrap();
        assert!(apply(&mut m) == apply(&mut BlockSsorAi::with_options(&less, k, 1.1).unwrap()));

        let with = |row: usize, col: usize, v: f64| {
            csr(
                60,
                |i, j| {
                    if [(row, col), (col, row)].contains(&(i, j)) { T::rounded(v, 0.0) } else { first.get(i, j) }
                },
            )
        };
        let error = m.refactor(&with(1, 58, 0.1)).unwrap_err();
        assert!(matches!(error, FactorError::Input(Error::OutsideStructure { row: 1, col: 58, .. })), "{error}");
        assert!(apply(&mut m).iter().all(|z| !Scalar::is_finite(*z)));
        for bad in [nodes(12, k, 1), with(3, 3, f64::NAN), with(3, 3, 0.0)] {
            assert!(m.refactor(&bad).is_err());
            assert!(apply(&mut m).iter().all(|z| !Scalar::is_finite(*z)));
        }
        m.refactor(&second).unwrap();
        assert!(apply(&mut m) == new);
    }
}

#[test]
fn new_values_give_the_bits_of_a_fresh_one() {
    new_values::<f32>();
    new_values::<f64>();
    new_values::<c32>();
    new_values::<c64>();
}

#[test]
fn what_it_is_not_for_is_refused_with_its_place() {
    let a = nodes::<f64>(12, 2, 9);
    let with = |row: usize, col: usize, v: f64| {
        csr(12, |i, j| if [(row, col), (col, row)].contains(&(i, j)) { v } else { a.get(i, j) })
    };
    let breakdown = |a: &Csr<f64>, word: &str| match BlockSsorAi::new(a, 2).unwrap_err() {
        error @ FactorError::Breakdown { place: Some(Place::Row(row)), .. } => {
            assert!(error.to_string().contains(word), "{error}");
            row
        }
        other => panic!("{other}"),
    };
    assert_eq!(breakdown(&with(5, 5, -1.0), "not positive: A is not definite"), 5);
    // [a c; c b] with c² > ab, and with c² = ab: both diagonal entries are positive.
    assert_eq!(breakdown(&with(6, 7, 40.0), "not positive beyond rounding"), 7);
    let singular = csr(12, |i, j| if i / 2 == j / 2 { 3.0 } else { 0.0 });
    assert_eq!(breakdown(&singular, "row 1"), 1);
    let tiny = csr(12, |i, j| if i == j { if i == 8 { 1e-320 } else { 1.0 } } else { 0.0 });
    assert_eq!(breakdown(&tiny, "no finite reciprocal"), 8);
    let refused = |a: &Csr<f64>, k, omega, word: &str| {
        let error = BlockSsorAi::with_options(a, k, omega).unwrap_err();
        assert!(matches!(error, FactorError::Input(_)) && error.to_string().contains(word), "{error}");
    };
    refused(&a, 5, 1.0, "blocks of 5 rows and columns do not divide");
    refused(&a, 7, 1.0, "7 is not between 1 and 6");
    refused(&a, 2, 2.0, "omega");
    refused(&a, 2, f64::NAN, "omega");
    let wind = csr(12, |i, j| if (i, j) == (2, 5) { 0.25 } else { a.get(i, j) });
    refused(&wind, 2, 1.0, "Hermitian");
    refused(&csr(12, |i, j| if i == j { f64::INFINITY } else { 0.0 }), 2, 1.0, "row 0, column 0");
    refused(&Csr::new(2, 4, vec![0; 3], Vec::new(), Vec::new()).unwrap(), 2, 1.0, "2 × 4");
}

#[test]
fn fewer_steps_than_the_scalar_one_on_plane_elasticity() {
    for (plane, nu) in [(Plane::Strain, 0.3), (Plane::Stress, 0.3), (Plane::Strain, 0.45)] {
        let disk = ElasticDisk::new(2210, plane, nu).unwrap();
        let (a, n) = (disk.matrix(), 2210);
        assert_eq!(block_size(a, 0.25), 2);
        let count = |a: &dyn LinearOperator<f64>, m: &mut dyn Preconditioner<f64>| {
            let stop = StopCriterion { rtol: 1e-6, ..StopCriterion::default() };
            let mut x = vec![0.0; n];
            let report = Cg::new(n).solve(a, m, disk.load(), &mut x, &stop, &mut ()).unwrap();
            assert_eq!(report.outcome, Outcome::Converged);
            report.iterations
        };
        let scalar = count(a, &mut SsorAi::with_options(a, 1.1, Series::Second, Triangles::Stored).unwrap());
        let mut m = BlockSsorAi::with_options(a, 2, 1.1).unwrap();
        let block = count(a, &mut m);
        assert!(block <= scalar, "{plane:?} {nu}: {block} {scalar}");
        // Products with A by blocks round otherwise.
        let all = count(&Bcsr::from_csr(a, 2).unwrap(), &mut m);
        assert!(all.abs_diff(block) <= 1, "{plane:?} {nu}: {all} {block}");
    }
}
