//! Diagonal and triangular matrices in any order, and matrices in parts, against the contract and by hand.

use std::ops::ControlFlow;

use bt_direct::{
    Components, Cyclic, DenseMatrix, Diagonal, FactorError, Factorization, PermutedTriangular, Place, SingularKind,
    SparseCholesky, SparseLu,
};
use bt_formats::detect::{components, triangular_order};
use bt_formats::{
    Coo, Csr, Error, Extremes, LinearOperator, Matrix, Monitor, Op, Partition, Permutation, Progress, RealScalar,
    Scalar, Tridiagonal, c64, certify, column_sizes,
};
use bt_testkit::contract::{factorization_contract, refactor_contract};
use bt_testkit::{csr, grid, random_vector};
use faer::Mat;
use proptest::prelude::*;

/// A lower triangle of random places and moderate values in a random order of rows and of columns.
fn shuffled<T: Scalar>(n: usize, density: f64, seed: u64) -> Csr<T> {
    let v = random_vector::<T>(2 * n * n + 4, seed);
    let own = |i: usize| T::rounded(1.5 + v[i].re().to_f64().abs(), 0.0);
    let l = csr(n, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Equal => own(i),
        std::cmp::Ordering::Greater if v[n * n + i * n + j].re().to_f64().abs() < density => v[i * n + j],
        _ => T::default(),
    });
    l.permute(&random_order(n, seed), &random_order(n, seed + 1))
}

fn random_order(n: usize, seed: u64) -> Permutation {
    let keys = random_vector::<f64>(n, seed ^ 0x55);
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.sort_by(|&a, &b| keys[a as usize].total_cmp(&keys[b as usize]));
    Permutation::from_order(order).unwrap()
}

fn check_triangular<T: Scalar>(n: usize, seed: u64) -> Result<(), TestCaseError> {
    let a = shuffled::<T>(n, 0.4, seed);
    let mut other = a.clone();
    other.values_mut().iter_mut().for_each(|v| *v += *v * T::rounded(0.25, 0.0));
    let mut zeros = a.clone();
    zeros.values_mut().fill(T::default());
    let t = PermutedTriangular::new(&a).map_err(|e| TestCaseError::fail(e.to_string()))?;
    factorization_contract(&t, &a).map_err(TestCaseError::fail)?;
    let (new, refactor) = (PermutedTriangular::new, PermutedTriangular::refactor);
    refactor_contract(&a, &other, Some(&zeros), new, refactor).map_err(TestCaseError::fail)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn triangles_in_any_order(n in 1usize..18, seed in 0u64..1000) {
        check_triangular::<f64>(n, seed)?;
        check_triangular::<c64>(n, seed)?;
        check_triangular::<f32>(n.min(9), seed)?;
    }

    #[test]
    fn diagonals(n in 1usize..20, seed in 0u64..1000) {
        let v = random_vector::<c64>(n, seed);
        let a = csr(n, |i, j| if i == j { v[i] + c64::new(1.5, 0.0) } else { c64::default() });
        let mut other = a.clone();
        other.values_mut().iter_mut().for_each(|v| *v *= c64::new(0.5, 2.0));
        let mut zeros = a.clone();
        zeros.values_mut().fill(c64::default());
        refactor_contract(&a, &other, Some(&zeros), Diagonal::new, Diagonal::refactor).map_err(TestCaseError::fail)?;
    }

    /// Parts found again after rows and columns were shuffled alike.
    #[test]
    fn parts_in_any_order(sizes in prop::collection::vec(1usize..6, 1..6), seed in 0u64..1000) {
        let n: usize = sizes.iter().sum();
        let of: Vec<usize> = sizes.iter().enumerate().flat_map(|(k, &s)| vec![k; s]).collect();
        let v = random_vector::<f64>(n * n, seed);
        let a = csr(n, |i, j| if of[i] != of[j] { 0.0 } else if i == j { 9.0 } else { v[i * n + j] + 1.5 });
        let p = random_order(n, seed);
        let a = a.permute(&p, &p);
        let parts = Components::new(&a, |part| Ok(Box::new(SparseLu::new(part)?))).unwrap();
        prop_assert_eq!(parts.partition().n_blocks(), sizes.len());
        let (order, partition) = components(&a).unwrap();
        let block_diagonal = a.permute(&order, &order);
        for i in 0..n {
            let block = partition.range(partition.block_of(i));
            prop_assert!(block_diagonal.row(i).0.iter().all(|&j| block.contains(&(j as usize))));
        }
        factorization_contract(&parts, &a).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn singular_diagonals_are_named() {
    let zero = Csr::new(3, 3, vec![0, 1, 2, 3], vec![0, 1, 2], vec![1.0, 0.0, 2.0]).unwrap();
    let missing = Csr::new(3, 3, vec![0, 1, 1, 2], vec![0, 2], vec![1.0, 2.0]).unwrap();
    for (a, kind) in [(zero, SingularKind::Numerical), (missing, SingularKind::Structural)] {
        let Err(FactorError::Singular(place)) = Diagonal::new(&a) else { panic!("factored") };
        assert_eq!((place.column, place.kind), (1, kind));
    }
    let elsewhere = grid::<f64>([2, 1, 1]);
    assert!(matches!(
        Diagonal::new(&elsewhere),
        Err(FactorError::Input(Error::OutsideStructure { row: 0, col: 1, .. }))
    ));
    assert_eq!(Diagonal::new(&csr(2, |i, j| if i == j { [1e-300, 1e300][i] } else { 0.0 })).unwrap().rcond(), 0.0);
    assert_eq!(Diagonal::new(&csr(2, |i, j| if i == j { [8.0, 2.0][i] } else { 0.0 })).unwrap().rcond(), 0.25);
}

#[test]
fn what_is_not_triangular_is_refused() {
    let a = grid::<f64>([3, 1, 1]);
    assert!(PermutedTriangular::new(&a).unwrap_err().to_string().contains("not triangular in any order"));
    // In the order of the first: a nonzero above the diagonal is named.
    let lower = csr(2, |i, j| if i >= j { 1.0 } else { 0.0 });
    let mut t = PermutedTriangular::with_order(&lower, triangular_order(&lower).unwrap().unwrap()).unwrap();
    let upper = csr(2, |i, j| if i <= j { 1.0 } else { 0.0 });
    let error = t.refactor(&upper).unwrap_err().to_string();
    assert!(error.contains("row 0, column 1"), "{error}");
    let mut x = [1.0f64, 1.0];
    t.solve_vec_in_place(&mut x);
    assert!(x.iter().all(|v| v.is_nan()));
    t.refactor(&lower).unwrap();
}

#[test]
fn large_parts_are_solved_on_several_threads_with_the_same_bits() {
    // Sixty grids of 1600 rows side by side.
    let one = grid::<f64>([40, 40, 1]);
    let (n, copies) = (one.nrows(), 60);
    let (mut ptr, mut idx, mut values) = (vec![0u32], Vec::new(), Vec::new());
    for k in 0..copies {
        for i in 0..n {
            let (cols, row) = one.row(i);
            idx.extend(cols.iter().map(|&j| j * copies as u32 + k as u32));
            values.extend_from_slice(row);
            ptr.push(idx.len() as u32);
        }
    }
    // Row k·n + i couples with columns j·60 + k: rows are put where their columns are.
    let rows = Permutation::from_order(
        (0..(n * copies) as u32).map(|r| r % copies as u32 * n as u32 + r / copies as u32).collect(),
    );
    let a = Csr::new(n * copies, n * copies, ptr, idx, values).unwrap();
    let a = a.permute(&rows.unwrap(), &Permutation::identity(n * copies));
    let parts = Components::new(&a, |part| Ok(Box::new(SparseCholesky::new(part)?))).unwrap();
    assert_eq!(parts.partition().n_blocks(), copies);
    let b = random_vector::<f64>(n * copies, 4);
    let solve = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut x = b.clone();
        pool.install(|| parts.solve_vec_in_place(&mut x));
        x
    };
    let x = solve(1);
    assert!(x.iter().zip(&solve(3)).all(|(a, b)| a.to_bits() == b.to_bits()));
    // The first part alone.
    let own = SparseCholesky::new(&one).unwrap();
    let mut y: Vec<f64> = (0..n).map(|i| b[i * copies]).collect();
    own.solve_vec_in_place(&mut y);
    assert!(y.iter().enumerate().all(|(i, y)| y.to_bits() == x[i * copies].to_bits()));
}

#[test]
fn a_singular_part_is_named_in_columns_of_the_whole() {
    // Columns 1 and 3 are a part of rank one.
    let a = csr::<f64>(4, |i, j| {
        if i % 2 != j % 2 {
            0.0
        } else if i % 2 == 1 {
            1.0
        } else {
            [[2.0, 1.0], [1.0, 2.0]][i / 2][j / 2]
        }
    });
    let outcome = Components::new(&a, |part| Ok(Box::new(SparseLu::new(part)?)));
    let Err(FactorError::Singular(place)) = outcome else { panic!("factored") };
    assert!([1, 3].contains(&place.column), "{place}");
}

#[test]
fn a_part_that_breaks_down_is_named_in_rows_of_the_whole() {
    let a = csr::<f64>(4, |i, j| match (i % 2 == j % 2, i == j, i) {
        (false, ..) => 0.0,
        (true, false, _) => 0.25,
        (true, true, 3) => -1.0,
        (true, true, _) => 1.0,
    });
    let outcome = Components::new(&a, |part| Ok(Box::new(SparseCholesky::new(part)?)));
    let Err(error @ FactorError::Breakdown { place, .. }) = &outcome else { panic!("factored") };
    assert_eq!(*place, Some(Place::Row(3)));
    // Row 1 of the part.
    let told = error.to_string();
    assert!(told.contains("in a part of 2 rows, ") && told.ends_with("; row 3 of the matrix given"), "{told}");
}

#[test]
fn parts_that_are_connected_are_refused_and_unions_of_components_are_not() {
    let a = csr::<f64>(6, |i, j| if i == j { 2.0 + i as f64 } else { f64::from(u8::from(i / 2 == j / 2)) });
    let sparse = |part: &Csr<f64>| -> Result<Box<dyn Factorization<f64>>, _> { Ok(Box::new(SparseLu::new(part)?)) };
    let of = |sizes: [usize; 2]| {
        Components::with_options(
            &a,
            Permutation::identity(6),
            Partition::from_sizes(sizes).unwrap(),
            |_, part, _| sparse(part),
            &mut (),
        )
    };
    assert_eq!(factorization_contract(&of([4, 2]).unwrap(), &a), Ok(()));
    match of([3, 3]) {
        Err(FactorError::Input(Error::OutsideStructure { row, col, .. })) => assert_eq!((row, col), (2, 3)),
        other => panic!("{other:?}"),
    }
    assert!(matches!(of([3, 2]), Err(FactorError::Input(Error::DimensionMismatch { expected: 6, found: 5, .. }))));
}

#[test]
fn a_monitor_that_stops_one_part_stops_all() {
    let a = csr::<f64>(6, |i, j| f64::from(u8::from(i == j)));
    let (order, partition) = components(&a).unwrap();
    let mut told = 0;
    let mut monitor = |_: Progress| {
        told += 1;
        ControlFlow::Break(())
    };
    let sparse = |_: usize, part: &Csr<f64>, monitor: &mut dyn Monitor| -> Result<Box<dyn Factorization<f64>>, _> {
        Ok(Box::new(SparseLu::with_monitor(part, monitor)?))
    };
    let outcome = Components::with_options(&a, order, partition, sparse, &mut monitor);
    assert!(matches!(outcome, Err(FactorError::Stopped)) && told > 0);
}

#[test]
fn the_monitor_is_asked_while_smaller_parts_take_longer() {
    // A pair, and one row by itself, which is not done before it is stopped.
    let a = csr::<f64>(3, |i, j| f64::from(u8::from(i == j || i + j == 1)) + f64::from(u8::from(i == j)));
    let (order, partition) = components(&a).unwrap();
    let begun = std::time::Instant::now();
    let slow = |_: usize, part: &Csr<f64>, monitor: &mut dyn Monitor| -> Result<Box<dyn Factorization<f64>>, _> {
        while part.nrows() == 1 && begun.elapsed().as_secs() < 20 {
            if monitor.observe(Progress::Step { phase: "setup", done: 0, total: 1 }).is_break() {
                return Err(FactorError::Stopped);
            }
        }
        Ok(Box::new(SparseLu::new(part)?))
    };
    let mut told = 0;
    let mut monitor = |_: Progress| {
        told += 1;
        if told < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let outcome = Components::with_options(&a, order, partition, slow, &mut monitor);
    assert!(matches!(outcome, Err(FactorError::Stopped)) && begun.elapsed().as_secs() < 20);
}

/// What one pass and the certificate tell of a matrix, and of its rows.
fn same_as_rows(a: &impl Matrix<f64>) {
    let n = a.nrows();
    assert!(a.runs_of(0..n).is_some());
    let mut entries = Coo::new(n, n).unwrap();
    a.for_each_entry(&mut |i, j, v| entries.push(i, j, v).unwrap());
    let rows = entries.to_csr().unwrap();
    let (found, survey) = (Extremes::of(a), rows.survey());
    assert_eq!((found.sizes, found.row_sizes), (survey.sizes, survey.row_sizes), "n = {n}");
    assert_eq!(found.column_sizes, column_sizes(&rows), "n = {n}");
    let x = Mat::from_fn(n, 1, |i, _| 1.0 + (i % 5) as f64 / 3.0);
    let b = Mat::from_fn(n, 1, |i, _| (i % 3) as f64 - 0.3);
    let [own, by_rows] = [a as &dyn Matrix<f64>, &rows].map(|a| certify(a, Op::Identity, x.as_ref(), b.as_ref()));
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b;
    assert!(near(own.backward_error, by_rows.backward_error), "n = {n}: {own:?} {by_rows:?}");
    assert!(near(own.componentwise_backward_error, by_rows.componentwise_backward_error), "n = {n}");
}

#[test]
fn periodic_and_dense_matrices_are_read_as_their_rows() {
    let number = |i: usize, j: usize| ((i * 7 + j * 3) % 11) as f64 - 5.5;
    for n in [1, 2, 3, 9, 16, 520, 1030] {
        let diagonal = |d: usize| (0..n).map(|i| number(i, d)).collect::<Vec<f64>>();
        let (mut lower, mut upper) = (diagonal(0), diagonal(2));
        (lower[0], upper[n - 1]) = (0.0, 0.0);
        let corners = if n < 3 { (0.0, 0.0) } else { (300.0, -0.125) };
        let tridiagonal = Tridiagonal::new(lower, diagonal(1), upper).unwrap();
        same_as_rows(&Cyclic::new(tridiagonal, corners.0, corners.1).unwrap());
        let dense = Mat::from_fn(n.min(520), n.min(520), number);
        same_as_rows(&DenseMatrix::new(dense.as_ref()));
    }
}
