//! Every preconditioner that takes new values gives the bits of a fresh one, allocates nothing for it, and survives bad input.

use bt_direct::spike::{PartitionSolver, Partitions};
use bt_direct::{FactorError, Place, Result, SparseLu, SpikeOptions};
use bt_formats::{
    BlockTridiagonal, Csr, DiagonalKind, Error, HybridLayout, LinearOperator, Partition, Rounded, Scalar, c32, c64,
};
use bt_iter::{
    BandOrder, BandSpike, BandSpikeOptions, BlockForm, BlockPreconditioner, Diagonal, DroppedFill, Factored,
    IlutOptions, Jacobi, MixedPrecision, Overlap, Preconditioner, Refactor, Schwarz, Series, SsorAi, SsorAiMasked,
    Triangles, TriangularSolves, ic0, ilu0, iluk, ilut, ssor,
};
use bt_testkit::alloc::count_allocations;
use bt_testkit::{csr, random_vector, stencil};

/// Whether a refactorisation takes memory.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Memory {
    None,
    Some,
}

type Make<T> = for<'a> fn(&'a Csr<T>) -> Result<Box<dyn Refactor<T> + 'a>>;

fn all<T: Scalar>() -> Vec<(Memory, Make<T>)> {
    vec![
        (Memory::None, |a| Ok(Box::new(Jacobi::new(a)?))),
        (Memory::None, |a| Ok(Box::new(ssor(a, 1.3)?))),
        (Memory::None, |a| Ok(Box::new(ilu0(a, DroppedFill::Forgotten)?))),
        (Memory::None, |a| Ok(Box::new(ilu0(a, DroppedFill::Forgotten)?.solved_by(TriangularSolves::Sweeps(2))))),
        (Memory::None, |a| Ok(Box::new(ilu0(a, DroppedFill::ToDiagonal)?))),
        (Memory::None, |a| Ok(Box::new(iluk(a, 2, DroppedFill::Forgotten)?))),
        (Memory::None, |a| Ok(Box::new(ic0(a, DroppedFill::Forgotten)?.factors))),
        (Memory::None, |a| Ok(Box::new(ic0(a, DroppedFill::ToDiagonal)?.factors))),
        (Memory::Some, |a| Ok(Box::new(ilut(a, IlutOptions { fill: 4, drop_tolerance: 1e-3 })?))),
        (Memory::Some, |a| Ok(Box::new(ilut(a, IlutOptions::default())?.solved_by(TriangularSolves::Sweeps(2))))),
        (Memory::Some, |a| {
            let order = (Diagonal::Given, BandOrder::Given);
            let options = BandSpikeOptions { diagonal: order.0, order: order.1, ..BandSpikeOptions::default() };
            Ok(Box::new(BandSpike::with_options(a, &options)?))
        }),
        (Memory::None, |a| Ok(Box::new(SsorAi::with_options(a, 1.2, Series::First, Triangles::Stored)?))),
        (Memory::None, |a| Ok(Box::new(SsorAi::with_options(a, 1.2, Series::Second, Triangles::Stored)?))),
        (Memory::None, |a| Ok(Box::new(SsorAi::with_options(a, 1.2, Series::IncompletePoisson, Triangles::Stored)?))),
        (Memory::Some, |a| Ok(Box::new(SsorAiMasked::with_options(a, 1.1)?))),
        (Memory::Some, |a| {
            let local = |a: &Csr<T>| ilu0(a, DroppedFill::Forgotten);
            Ok(Box::new(Schwarz::new(a, &Partition::uniform(a.nrows(), 14)?, 1, Overlap::Restricted, local)?))
        }),
        (Memory::Some, |a| {
            let exact = |a: &Csr<T>| Ok(Factored::new(SparseLu::new(a)?));
            Ok(Box::new(Schwarz::new(a, &Partition::uniform(a.nrows(), 14)?, 1, Overlap::Added, exact)?))
        }),
    ]
}

/// The grid Laplacian with `shift` on the diagonal, Hermitian imaginary parts in a complex type.
fn grid<T: Scalar>(shift: f64) -> Csr<T> {
    let real = stencil::<f64>(7, 0.0);
    csr(49, |i, j| {
        let (v, sign) = (real.get(i, j), f64::from(i32::from(j > i) - i32::from(j < i)));
        if i == j {
            T::rounded(v + shift * (1.0 + i as f64 / 49.0), 0.0)
        } else {
            T::rounded(v, 0.1 * shift * v * sign)
        }
    })
}

fn apply<T: Scalar>(m: &mut (dyn Refactor<T> + '_)) -> Vec<T> {
    let r = random_vector::<T>(m.n(), 4);
    let mut z = vec![T::default(); r.len()];
    m.apply(&r, &mut z);
    z
}

fn contract<T: Scalar>() {
    let (first, second) = (grid::<T>(0.3), grid::<T>(1.7));
    // An entry that no pattern of the grid has, also not with two levels of fill.
    let wider = csr(49, |i, j| if i + j == 48 && i.abs_diff(j) == 48 { T::rounded(0.1, 0.0) } else { first.get(i, j) });
    let nan = csr(49, |i, j| if (i, j) == (3, 3) { T::rounded(f64::NAN, 0.0) } else { first.get(i, j) });
    let no_pivot = csr(49, |i, j| if (i, j) == (5, 5) { T::default() } else { first.get(i, j) });
    for (memory, make) in all::<T>() {
        let mut m = make(&first).unwrap();
        let name = m.name();
        let (old, new) = (apply(&mut *m), apply(&mut *make(&second).unwrap()));
        assert!(old != new, "{name}");
        let (done, count) = count_allocations(|| m.refactor(&second));
        done.unwrap();
        assert_eq!((apply(&mut *m) == new, memory == Memory::Some || count == 0), (true, true), "{name}: {count}");
        // Back to the first: nothing of the second is left.
        m.refactor(&first).unwrap();
        assert!(apply(&mut *m) == old, "{name} in {}", T::KIND);

        let too_small = stencil::<f64>(3, 0.0).cast::<T>();
        for (wrong, a) in [("size", &too_small), ("value", &nan)] {
            let error = m.refactor(a).unwrap_err();
            assert!(matches!(error, FactorError::Input(_)), "{name}, {wrong}: {error}");
            assert!(apply(&mut *m).iter().all(|z| !Scalar::is_finite(*z)), "{name}, {wrong}");
        }
        // Whatever there was before, it is gone after success.
        m.refactor(&second).unwrap();
        assert!(apply(&mut *m) == new, "{name}");
        // Patterns with no place for an entry say where it is.
        if memory == Memory::None && name != "jacobi" {
            let error = m.refactor(&wider).unwrap_err();
            let place = matches!(error, FactorError::Input(Error::OutsideStructure { row: 0, col: 48, .. }));
            assert!(place && !Scalar::is_finite(apply(&mut *m)[0]), "{name}: {error}");
        }
        if ["jacobi", "ssor", "ic0", "mic0"].contains(&name) {
            let error = m.refactor(&no_pivot).unwrap_err().to_string();
            assert!(error.contains("row 5") && !Scalar::is_finite(apply(&mut *m)[0]), "{name}: {error}");
        }
        m.refactor(&first).unwrap();
        assert!(apply(&mut *m) == old, "{name}");
    }
}

#[test]
fn new_values_give_the_bits_of_a_fresh_preconditioner() {
    contract::<f32>();
    contract::<f64>();
    contract::<c32>();
    contract::<c64>();
}

#[test]
fn entries_that_are_no_more_count_as_zeros() {
    let full = csr(4, |i: usize, j: usize| if i == j { 4.0 } else { 1.0 / (1 + i + j) as f64 });
    let less = csr(4, |i: usize, j: usize| {
        if i == j {
            5.0
        } else if i.abs_diff(j) == 1 {
            -1.0
        } else {
            0.0
        }
    });
    for (_, make) in all::<f64>().into_iter().filter(|(memory, _)| *memory == Memory::None) {
        let (mut m, mut fresh) = (make(&full).unwrap(), make(&less).unwrap());
        m.refactor(&less).unwrap();
        let off: f64 = apply(&mut *m).iter().zip(apply(&mut *fresh)).map(|(x, y)| (x - y).abs()).sum();
        assert!(off < 1e-15, "{}: {off:e}", m.name());
    }
}

#[test]
fn block_sweeps_take_new_blocks() {
    // Tridiagonal blocks, by lines, one of which needs interchanges; bands; dense ones.
    let grid = |shift: f64| stencil::<f64>(7, shift);
    let weak = csr(49, |i: usize, j: usize| if i == j && i == 7 { 0.0 } else { grid(0.2).get(i, j) });
    let wide = |v: f64| csr(49, move |i: usize, j: usize| if i == j { 9.0 } else { v / (1 + i + 2 * j) as f64 });
    let blocks = |a: &Csr<f64>, size: usize, diagonal| {
        let layout = HybridLayout { diagonal: Some(diagonal), ..HybridLayout::default() };
        let near = csr(49, |i: usize, j: usize| if (i / size).abs_diff(j / size) < 2 { a.get(i, j) } else { 0.0 });
        BlockTridiagonal::from_csr(&near, Partition::uniform(49, size).unwrap(), layout).unwrap()
    };
    let apply = |m: &mut BlockPreconditioner<f64>| {
        let mut z = vec![0.0; 49];
        m.apply(&random_vector(49, 4), &mut z);
        z
    };
    for form in [BlockForm::Jacobi, BlockForm::GaussSeidel, BlockForm::Symmetric, BlockForm::RedBlack] {
        for (diagonal, size, matrices) in [
            (DiagonalKind::Tridiagonal, 7, [grid(0.3), weak.clone(), grid(0.1)]),
            (DiagonalKind::Band, 14, [grid(0.3), grid(0.6), grid(0.1)]),
            (DiagonalKind::Dense, 10, [wide(1.0), wide(-2.0), grid(0.1)]),
        ] {
            let [first, second, third] = matrices.map(|a| blocks(&a, size, diagonal));
            let mut m = BlockPreconditioner::new(first.clone(), form).unwrap();
            for next in [&second, &third, &first, &second] {
                let mut fresh = BlockPreconditioner::new((*next).clone(), form).unwrap();
                m.refactor((*next).clone()).unwrap();
                assert!(apply(&mut m) == apply(&mut fresh), "{form:?} {diagonal:?}");
                assert_eq!(m.pivoted_blocks(), fresh.pivoted_blocks());
            }
            assert_eq!(m.pivoted_blocks(), usize::from(diagonal == DiagonalKind::Tridiagonal));
            let other =
                BlockTridiagonal::from_csr(&grid(0.1), Partition::uniform(49, 49).unwrap(), HybridLayout::default());
            assert!(matches!(m.refactor(other.unwrap()), Err(FactorError::Input(_))));
            assert!(apply(&mut m).iter().all(|z| z.is_nan()));
            if diagonal == DiagonalKind::Dense {
                let zero = csr(49, |i, j| if i == j && i != 12 { 1.0 } else { 0.0 });
                let error = m.refactor(blocks(&zero, size, diagonal)).unwrap_err().to_string();
                assert!(error.contains("block 1"), "{error}");
            }
            m.refactor(first).unwrap();
            assert!(apply(&mut m).iter().all(|z| z.is_finite()));
        }
    }
}

#[test]
fn the_shift_of_incomplete_cholesky_is_found_anew() {
    // Kershaw's matrix needs one; with a heavier diagonal it does not.
    let kershaw = |diagonal: f64| {
        csr(4, move |i: usize, j: usize| match i.abs_diff(j) {
            0 => diagonal,
            1 => -2.0,
            3 => 2.0,
            _ => 0.0,
        })
    };
    let mut m = ic0(&kershaw(3.0), DroppedFill::Forgotten).unwrap();
    let (shift, breakdowns) = (m.shift, m.breakdowns);
    assert!(shift > 0.0 && breakdowns > 0);
    m.refactor(&kershaw(9.0)).unwrap();
    assert_eq!((m.shift, m.breakdowns), (0.0, 0));
    m.refactor(&kershaw(3.0)).unwrap();
    assert_eq!((m.shift, m.breakdowns), (shift, breakdowns));
    assert!(m.refactor(&csr(4, |i, j| f64::from(u8::from(i == j)) + if i < j { 0.5 } else { 0.0 })).is_err());
}

#[test]
fn the_masked_inverse_keeps_its_pattern() {
    let full = csr(4, |i: usize, j: usize| if i == j { 4.0 } else { 1.0 / (1 + i + j) as f64 });
    let less = csr(4, |i: usize, j: usize| [5.0, -1.0, 0.0, 0.0][i.abs_diff(j)]);
    let (mut m, fresh) =
        (SsorAiMasked::with_options(&full, 1.1).unwrap(), SsorAiMasked::with_options(&less, 1.1).unwrap());
    m.refactor(&less).unwrap();
    assert!((0..4).all(|i| (0..4).all(|j| m.matrix().get(i, j) == fresh.matrix().get(i, j))));
    // Entries outside, and values that leave no definite product.
    let mut narrow = SsorAiMasked::with_options(&less, 1.1).unwrap();
    assert!(matches!(narrow.refactor(&full), Err(FactorError::Input(Error::OutsideStructure { row: 0, col: 2, .. }))));
    assert!(apply(&mut narrow).iter().all(|z| z.is_nan()));
    narrow.refactor(&less).unwrap();
    assert_eq!(apply(&mut narrow), apply(&mut m));
    // A Laplacian, whose masked product is not definite for this ω.
    let mut m = SsorAiMasked::with_options(&grid::<f64>(9.0), 1.7).unwrap();
    assert!(matches!(m.refactor(&stencil(7, 0.0)), Err(FactorError::Breakdown { .. })));
    assert!(apply(&mut m).iter().all(|z| z.is_nan()));
}

#[test]
fn triangles_of_the_matrix_are_not_taken_from_another() {
    let (first, second) = (grid::<f64>(0.3), grid::<f64>(1.7));
    let mut m = SsorAi::with_options(&first, 1.1, Series::First, Triangles::OfMatrix).unwrap();
    let error = m.refactor(&second).unwrap_err().to_string();
    assert!(error.contains("make a new one") && apply(&mut m)[0].is_nan(), "{error}");
}

#[test]
fn single_precision_takes_values_of_any_size() {
    let (first, second) = (grid::<f64>(0.3), grid::<f64>(1.7));
    let scaled = csr(49, |i, j| 1e200 * second.get(i, j));
    let make = |a: &Csr<f64>| {
        let f = Rounded::<f32>::new(a)?;
        Ok::<_, FactorError>(MixedPrecision::new(ilu0(f.matrix(), DroppedFill::Forgotten)?, f.exponent()))
    };
    let mut m = make(&first).unwrap();
    for a in [&scaled, &second, &first] {
        m.refactor(a).unwrap();
        assert_eq!(apply::<f64>(&mut m), apply::<f64>(&mut make(a).unwrap()));
    }
    // A row that vanishes in f32.
    let vanishing = csr(49, |i, j| if i == 3 { 1e-100 * first.get(i, j) } else { first.get(i, j) });
    let error = Refactor::<f64>::refactor(&mut m, &vanishing).unwrap_err().to_string();
    assert!(error.contains("row 3") && apply::<f64>(&mut m)[0].is_nan(), "{error}");
    m.refactor(&second).unwrap();
    assert_eq!(apply::<f64>(&mut m), apply::<f64>(&mut make(&second).unwrap()));
}

#[test]
fn errors_of_subdomains_name_rows_of_the_matrix() {
    let grid = grid::<f64>(0.3);
    let parts = Partition::uniform(49, 14).unwrap();
    let mut m =
        Schwarz::new(&grid, &parts, 1, Overlap::Restricted, |a: &Csr<f64>| ilu0(a, DroppedFill::Forgotten)).unwrap();
    // Rows 30 and 34 are in the third subdomain alone; 0 and 48 share none, so that their entry plays no part.
    let with = |row, col| csr(49, |i, j| if (i, j) == (row, col) { 0.1 } else { grid.get(i, j) });
    let error = m.refactor(&with(30, 34)).unwrap_err();
    assert!(matches!(error, FactorError::Input(Error::OutsideStructure { row: 30, col: 34, .. })), "{error}");
    m.refactor(&with(0, 48)).unwrap();
    // Singular in the last column of the second subdomain's own part.
    let singular = csr(49, |i, j| if j == 27 { 0.0 } else { grid.get(i, j) });
    let exact = |a: &Csr<f64>| Ok(Factored::new(SparseLu::new(a)?));
    let error = Schwarz::new(&singular, &parts, 0, Overlap::Added, exact).map(|_| ()).unwrap_err();
    assert!(matches!(error, FactorError::Singular(s) if (s.column, s.block) == (27, Some(1))), "{error}");
    let no_diagonal = csr(49, |i, j| if (i, j) == (27, 27) { 0.0 } else { grid.get(i, j) });
    let local = |a: &Csr<f64>| ic0(a, DroppedFill::Forgotten).map(|m| m.factors);
    let error = Schwarz::new(&no_diagonal, &parts, 0, Overlap::Added, local).map(|_| ()).unwrap_err();
    assert!(matches!(error, FactorError::Breakdown { place: Some(Place::Row(27)), .. }), "{error:?}");
    assert!(error.to_string().contains("subdomain 1, rows within 14..=27"), "{error}");
    // With overlap row 13 is the seventh of its own subdomain's neighbour too; the first that fails is told.
    let jacobi = |a: &Csr<f64>| Jacobi::new(a);
    let error = Schwarz::new(&no_diagonal, &parts, 1, Overlap::Added, jacobi).map(|_| ()).unwrap_err();
    assert!(matches!(error, FactorError::Breakdown { place: Some(Place::Row(27)), .. }), "{error:?}");
    // A solver that knows no place.
    let nowhere = |_: &Csr<f64>| -> Result<Jacobi<f64>> { Err(FactorError::breakdown("local", None, "no")) };
    let error = Schwarz::new(&grid, &parts, 0, Overlap::Added, nowhere).map(|_| ()).unwrap_err();
    assert!(matches!(error, FactorError::Breakdown { place: Some(Place::Partition(0)), .. }), "{error:?}");
}

#[test]
fn breakdowns_of_preconditioners_have_their_row() {
    let grid = grid::<f64>(0.3);
    let with = |diagonal: f64| csr(49, |i, j| if (i, j) == (30, 30) { diagonal } else { grid.get(i, j) });
    let row = |made: Result<Box<dyn Refactor<f64>>>| match made.map(|_| ()) {
        Err(FactorError::Breakdown { place, .. }) => place,
        other => panic!("{other:?}"),
    };
    let (zero, tiny) = (with(0.0), csr(49, |i, j| if i == j { if i == 30 { 1e-320 } else { 1.0 } } else { 0.0 }));
    // 1e-300 beside 1: d̄ + |n|²·d̄ overflows.
    let coupled = csr(49, |i, j| match (i, j) {
        (30 | 31, 30 | 31) if i == j => 1e-300,
        (30, 31) | (31, 30) => 1.0,
        _ => f64::from(u8::from(i == j)),
    });
    let makes: [(&Csr<f64>, Make<f64>); 7] = [
        (&zero, |a| Ok(Box::new(Jacobi::new(a)?))),
        (&zero, |a| Ok(Box::new(ssor(a, 1.3)?))),
        (&zero, |a| Ok(Box::new(ic0(a, DroppedFill::Forgotten)?.factors))),
        (&tiny, |a| Ok(Box::new(ilu0(a, DroppedFill::Forgotten)?))),
        (&tiny, |a| Ok(Box::new(ilut(a, IlutOptions::default())?))),
        (&tiny, |a| Ok(Box::new(SsorAiMasked::with_options(a, 1.1)?))),
        (&coupled, |a| Ok(Box::new(SsorAiMasked::with_options(a, 1.1)?))),
    ];
    for (k, (a, make)) in makes.into_iter().enumerate() {
        assert_eq!(row(make(a)), Some(Place::Row(30)), "{k}");
    }
}

/// The band of SPIKE has an order of its own.
#[test]
fn breakdowns_of_the_band_preconditioner_are_told_in_the_given_order() {
    // A chain in another order, and with a row by itself that has no pivot.
    let chain = |row: usize| {
        csr(49, move |i, j| {
            let distance = (i * 19 % 49).abs_diff(j * 19 % 49);
            if row == i { 0.0 } else { [4.0, -1.0].get(distance).copied().unwrap_or(0.0) }
        })
    };
    let mut spike = SpikeOptions { solver: PartitionSolver::NoPivot(None), ..SpikeOptions::default() };
    spike.partitions = Partitions::Even(3);
    let options = BandSpikeOptions { diagonal: Diagonal::Given, order: BandOrder::Rcm, spike, ..Default::default() };
    let mut m = BandSpike::with_options(&chain(49), &options).unwrap();
    for row in [0, 3, 20, 48] {
        let error = m.refactor(&chain(row)).unwrap_err();
        assert!(matches!(error, FactorError::Breakdown { place: Some(at), .. } if at == Place::Row(row)), "{error:?}");
    }
}
