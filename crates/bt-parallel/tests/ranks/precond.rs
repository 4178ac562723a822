//! Preconditioners over ranks: block Jacobi and Schwarz as those of bt-iter, the Schur complement as its exact counterpart, and their counts.

use crate::common::{RANKS, distance, run, scattered, succeed, vector, wind};
use bt_direct::{BandLu, Factorization, SparseLu};
use bt_formats::{Band, Csr, LinearOperator, Outcome, Partition, StopCriterion, c64};
use bt_iter::{ArmsOptions, Factored, IlutOptions, Overlap, Preconditioner, PreconditionerKind};
use bt_parallel::{
    Comm, DistributedCsr, DistributedPreconditioner, Division, Error, FaultKind, Krylov, LocalSolver, Method, Number,
    Schur, SchurOptions, Schwarz, Traffic,
};

const LOCAL: [LocalSolver; 6] = [
    LocalSolver::Ilu0,
    LocalSolver::IluK { level: 2 },
    LocalSolver::Ilut(IlutOptions { fill: 10, drop_tolerance: 1e-3 }),
    LocalSolver::SparseLu,
    LocalSolver::SparseQr,
    LocalSolver::Ic0,
];

/// M⁻¹r over p ranks beside bt-iter's with the same parts.
fn schwarz<T: Number>(a: &Csr<T>, p: usize, layers: usize, overlap: Overlap, solver: LocalSolver) {
    let n = a.nrows();
    let r = vector::<T>(n, 4);
    let division = Division::contiguous(n, p);
    let parts = Partition::from_sizes((0..p).map(|rank| division.rows(rank).len()).filter(|rows| *rows > 0)).unwrap();
    let mut serial = bt_iter::Schwarz::new(a, &parts, layers, overlap, |local| solver.of(local)).unwrap();
    let mut expected = vec![T::default(); n];
    serial.apply(&r, &mut expected);
    let spd = serial.kind() == PreconditionerKind::Spd;
    let found = succeed(p, |comm| {
        let d = DistributedCsr::from_replicated(comm, a, &division)?;
        let mut m = Schwarz::new(&d, layers, overlap, |local| solver.of(local))?;
        let mut z = d.own_entries(&expected);
        let before = comm.traffic();
        m.apply(&d.own_entries(&r), &mut z)?;
        let (sends, sent) = (m.halo().n_sends() as u64, m.halo().n_sent() as u64);
        let back = sent_back(&m, overlap, layers);
        let traffic = comm.traffic().since(before);
        let bytes = size_of::<T>() as u64 * (sent + back.1);
        let exchanged = if layers == 0 { (0, 0) } else { (sends + back.0, bytes) };
        assert_eq!((traffic.messages, traffic.bytes, traffic.collectives), (exchanged.0, exchanged.1, 0));
        assert_eq!(DistributedPreconditioner::<T>::kind(&m) == PreconditionerKind::Spd, spd);
        assert!(m.local_rows() >= d.rows().own().len() && m.bytes() > 0 || d.rows().own().is_empty());
        d.whole(&z)
    });
    let scale = bt_formats::max_abs(&expected).max(1.0);
    for z in &found {
        assert!(distance(z, &expected) <= 1e-12 * scale, "{p} ranks, {layers} layers, {overlap:?}, {solver:?}");
    }
}

/// Messages and entries sent back by the additive form: what is received going forth.
fn sent_back<T: Number, C: Comm>(m: &Schwarz<'_, T, C>, overlap: Overlap, layers: usize) -> (u64, u64) {
    if overlap == Overlap::Restricted || layers == 0 {
        return (0, 0);
    }
    let mut owners: Vec<u32> = m.halo().owners().iter().map(|o| o.rank).collect();
    owners.dedup();
    (owners.len() as u64, m.halo().len() as u64)
}

#[test]
fn subdomains_are_those_of_one_process() {
    for p in RANKS {
        for layers in 0..=3 {
            for overlap in [Overlap::Added, Overlap::Restricted] {
                schwarz(&wind::<f64>(5), p, layers, overlap, LocalSolver::Ilu0);
                schwarz(&scattered::<c64>(17), p, layers, overlap, LocalSolver::SparseLu);
            }
        }
        // More ranks than rows.
        schwarz(&scattered::<f64>(4), p, 1, Overlap::Restricted, LocalSolver::SparseLu);
    }
    for solver in LOCAL {
        schwarz(&bt_testkit::stencil::<f64>(5, 0.0), 3, 1, Overlap::Added, solver);
    }
    schwarz(&wind::<f64>(6), 3, 2, Overlap::Restricted, LocalSolver::Arms(ArmsOptions::default()));
}

/// Iterations, the same on every rank.
fn iterations<T: Number>(
    a: &Csr<T>,
    division: &Division,
    method: Method,
    solver: LocalSolver,
    (layers, overlap): (usize, Overlap),
) -> usize {
    let n = a.nrows();
    let reports = succeed(division.n_ranks(), |comm| {
        let d = DistributedCsr::from_replicated(comm, a, division)?;
        let mut m = Schwarz::new(&d, layers, overlap, |local| solver.of(local))?;
        let (b, mut x) = (d.own_entries(&vector(n, 1)), vec![T::default(); d.rows().own().len()]);
        Krylov::new(&d, method).solve(&d, &mut m, &b, &mut x, &StopCriterion::default(), &mut ())
    });
    for report in &reports {
        assert_eq!(report.outcome, Outcome::Converged);
        assert!(report.certificate.relative_residual <= 1.1e-8);
        assert_eq!(report.iterations, reports[0].iterations);
    }
    reports[0].iterations
}

/// A row without entries of its own rank gets a pivot in the unit of the part: M of s·A is s·M to the bit, for a power of two s.
#[test]
fn the_unit_of_the_system_decides_nothing() {
    let entries = faer::mat![[4.0, 1.0, 5.0, 0.0], [1.0, 4.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0]];
    for solver in [LocalSolver::Ilu0, LocalSolver::Ilut(IlutOptions { fill: 3, drop_tolerance: 1e-3 })] {
        let applied = |exponent: i32| {
            let s = f64::from(exponent).exp2();
            let a = Csr::from_dense(faer::Mat::from_fn(4, 4, |i, j| entries[(i, j)] * s).as_ref()).unwrap();
            succeed(2, |comm| {
                let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(4, 2))?;
                let mut m = Schwarz::new(&d, 0, Overlap::Added, |local| solver.of(local))?;
                let mut z = d.own_entries(&[0.0; 4]);
                m.apply(&d.own_entries(&[1.0, 2.0, 3.0, 5.0]), &mut z)?;
                let z: Vec<f64> = d.whole(&z)?.into_iter().map(|z| z * s).collect();
                Ok(z)
            })
        };
        let expected = applied(0);
        for exponent in [-60, -1, 40] {
            assert_eq!(applied(exponent), expected, "{solver:?}, 2^{exponent}");
        }
    }
}

/// Nor does it with rows of other ranks in the parts: every iterate of s·A is s⁻¹ times that of A to the bit.
#[test]
fn nor_does_it_with_overlap() {
    // Rank 0 of two takes in row 3, which has no entry in the columns of its part: the pivot is in the unit of the part.
    let without_entries = faer::mat![
        [4.0, 1.0, 0.0, 0.0, 0.0, 0.0],
        [1.0, 4.0, 1.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 4.0, 2.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 1.0, 3.0],
        [0.0, 0.0, 0.0, 1.0, 4.0, 1.0],
        [0.0, 0.0, 0.0, 5.0, 1.0, 2.0]
    ];
    let without_entries: Csr<f64> = Csr::from_dense(without_entries.as_ref()).unwrap();
    let (gmres, ilut) =
        (Method::Gmres { restart: 30 }, LocalSolver::Ilut(IlutOptions { fill: 3, drop_tolerance: 1e-3 }));
    let cases = [
        (without_entries.clone(), 2, gmres, LocalSolver::Ilu0, Overlap::Added),
        (without_entries.clone(), 2, gmres, ilut, Overlap::Added),
        (without_entries, 2, gmres, LocalSolver::Ilu0, Overlap::Restricted),
        (wind(6), 3, Method::BiCgStab, LocalSolver::Ilu0, Overlap::Restricted),
        (wind(6), 3, gmres, LocalSolver::SparseLu, Overlap::Added),
        (bt_testkit::stencil(6, 0.0), 3, Method::Cg, LocalSolver::Ic0, Overlap::Added),
    ];
    for (a, p, method, solver, overlap) in cases {
        let n = a.nrows();
        for layers in [1, 2] {
            let iterates = |exponent: i32| {
                let s = f64::from(exponent).exp2();
                let values = a.values().iter().map(|v| v * s).collect();
                let a = Csr::new(n, n, a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap();
                succeed(p, |comm| {
                    let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(n, p))?;
                    let mut m = Schwarz::new(&d, layers, overlap, |local| solver.of(local))?;
                    let b = d.own_entries(&vector(n, 1));
                    let mut found: Vec<Vec<f64>> = Vec::new();
                    for max_iters in [1, 2, 3, 6] {
                        let stop = StopCriterion { rtol: 0.0, max_iters, ..StopCriterion::default() };
                        let mut x = vec![0.0; b.len()];
                        Krylov::new(&d, method).solve(&d, &mut m, &b, &mut x, &stop, &mut ())?;
                        found.push(d.whole(&x)?.into_iter().map(|x| x * s).collect());
                    }
                    Ok(found)
                })
            };
            let expected = iterates(0);
            assert!(expected[0][3].iter().any(|x| *x != 0.0), "{method:?}, {solver:?}: it does not move");
            for exponent in [-60, -1, 40] {
                let told = format!("{method:?}, {solver:?}, {overlap:?}, {layers} layers, 2^{exponent}");
                assert_eq!(iterates(exponent), expected, "{told}");
            }
        }
    }
}

/// Entries far apart, real and complex: none of them is rounded to nothing by the unit of the part.
#[test]
fn entries_at_both_ends_of_the_range_are_kept() {
    fn solved<T: Number>(diagonal: [f64; 2], of: impl Fn(f64) -> T + Sync, tolerance: f64) {
        let a = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], diagonal.map(&of).to_vec()).unwrap();
        for layers in [0, 1] {
            let z = succeed(1, |comm| {
                let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(2, 1))?;
                let mut m = Schwarz::new(&d, layers, Overlap::Added, |local| LocalSolver::SparseLu.of(local))?;
                let mut z = d.own_entries(&[of(0.0), of(0.0)]);
                m.apply(&d.own_entries(a.values()), &mut z)?;
                Ok(z)
            });
            let one = T::rounded(1.0, 0.0);
            assert!(z[0].iter().all(|&z| bt_formats::max_abs(&[z - one]) <= tolerance), "{diagonal:?}: {z:?}");
        }
    }
    for diagonal in [[1e200, 1e-200], [1e160, 1e160], [1e-170, 1e-170], [1e300, 1e300]] {
        solved::<f64>(diagonal, |v| v, 1e-15);
        solved::<c64>(diagonal, |v| c64::new(v, 0.0), 1e-15);
    }
}

#[test]
fn overlap_and_better_local_solvers_save_iterations() {
    let a = wind::<f64>(12);
    let division = Division::site_expansion(&a, 6).unwrap();
    let gmres = Method::Gmres { restart: 50 };
    let of = |solver, layers| iterations(&a, &division, gmres, solver, (layers, Overlap::Restricted));
    let exact: Vec<usize> = (0..=3).map(|layers| of(LocalSolver::SparseLu, layers)).collect();
    assert!(exact.is_sorted_by(|a, b| a >= b) && exact[3] < exact[0], "{exact:?}");
    assert!(of(LocalSolver::Ilu0, 0) > exact[0]);
    // One rank with an exact solver: M = A.
    let one = iterations(&a, &Division::contiguous(144, 1), gmres, LocalSolver::SparseLu, (0, Overlap::Added));
    assert_eq!(one, 1);
    let spd = bt_testkit::stencil::<f64>(8, 0.0);
    iterations(&spd, &Division::contiguous(64, 4), Method::Cg, LocalSolver::Ic0, (1, Overlap::Added));
    iterations(
        &wind::<f64>(8),
        &Division::contiguous(64, 4),
        Method::BiCgStab,
        LocalSolver::Ilu0,
        (1, Overlap::Restricted),
    );
}

#[test]
fn a_local_matrix_without_factors_is_one_error_on_all_ranks() {
    // Rank 1 has the rows 3, 4, 5, of which 4 couples with other ranks only.
    let a = bt_testkit::csr(9, |i, j| match (i, j) {
        (4, 0) | (0, 4) => 1.0,
        (4, _) | (_, 4) => 0.0,
        _ if i == j => 2.0,
        _ => 0.0,
    });
    let results = run(3, |comm| {
        let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(9, 3))?;
        Schwarz::new(&d, 0, Overlap::Added, |local| LocalSolver::SparseLu.of(local)).map(|_| ())
    });
    for result in &results {
        assert!(
            matches!(result, Err(Error::OnRank { rank: 1, kind: FaultKind::Singular, message, .. }) if message.contains("subdomain of 3 rows: the matrix is structurally singular: no pivot in column 4")),
            "{result:?}"
        );
    }
    let schur = run(3, |comm| {
        let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(9, 3))?;
        Schur::new(&d, |local| LocalSolver::SparseLu.of(local)).map(|_| ())
    });
    assert!(schur.iter().all(|r| matches!(r, Err(Error::OnRank { rank: 1, .. })) && *r == schur[0]), "{schur:?}");
}

/// The part of rank 1 is regular, and what of it no other rank is coupled with is not.
#[test]
fn an_interior_without_factors_is_one_error_on_all_ranks() {
    // Rows 2 and 3 are coupled across the ranks; rows 3 and 4, as 4 has nothing on the diagonal, need one another.
    let a = bt_testkit::csr(6, |i, j| match (i.min(j), i.max(j)) {
        (4, 4) => 0.0,
        (i, j) if i == j => 2.0,
        (2, 3) | (3, 4) => 1.0,
        _ => 0.0,
    });
    let solver = LocalSolver::SparseLu;
    let made = |schur: bool| {
        run(2, |comm| {
            let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(6, 2))?;
            assert_eq!(d.internal_and_interface().0.len(), 2);
            if schur {
                Schur::new(&d, |local| solver.of(local)).map(|_| ())
            } else {
                Schwarz::new(&d, 0, Overlap::Added, |local| solver.of(local)).map(|_| ())
            }
        })
    };
    assert!(made(false).iter().all(Result::is_ok), "the part is regular");
    for result in made(true) {
        assert!(
            matches!(&result, Err(Error::OnRank { rank: 1, kind: FaultKind::Singular, message, .. })
                    if message.contains("interior of 2 rows") && message.contains("no pivot in column 4")),
            "{result:?}"
        );
    }
}

/// Messages, bytes and collectives of one iteration more, and those of the exchanges of A and of M.
#[test]
fn an_iteration_with_a_preconditioner_has_its_exchanges_and_no_more_sums() {
    let a = bt_testkit::stencil::<f64>(8, 0.0);
    for p in [2, 3, 5, 12] {
        let division = Division::contiguous(64, p);
        // Sums of an iteration.
        for (method, overlap, solver, sums) in [
            (Method::Cg, Overlap::Added, LocalSolver::Ic0, 3),
            (Method::BiCgStab, Overlap::Restricted, LocalSolver::Ilu0, 4),
            (Method::Gmres { restart: 20 }, Overlap::Restricted, LocalSolver::Ilu0, 2),
        ] {
            // BiCGSTAB has two products and two applications.
            let times = if method == Method::BiCgStab { 2 } else { 1 };
            for layers in [0, 1] {
                let spent = |max_iters| {
                    succeed(p, |comm| {
                        let d = DistributedCsr::from_replicated(comm, &a, &division)?;
                        let mut m = Schwarz::new(&d, layers, overlap, |local| solver.of(local))?;
                        let stop = StopCriterion { rtol: 0.0, max_iters, ..StopCriterion::default() };
                        let (b, mut x) = (d.own_entries(&vector(64, 1)), vec![0.0; d.rows().own().len()]);
                        let before = comm.traffic();
                        Krylov::new(&d, method).solve(&d, &mut m, &b, &mut x, &stop, &mut ())?;
                        let traffic = comm.traffic().since(before);
                        let back = sent_back(&m, overlap, layers);
                        let forth = if layers == 0 { (0, 0) } else { (m.halo().n_sends(), m.halo().n_sent()) };
                        let (sends, sent) = (d.halo().n_sends(), d.halo().n_sent());
                        let messages = (sends + forth.0) as u64 + back.0;
                        Ok((traffic, times * messages, times * 8 * ((sent + forth.1) as u64 + back.1)))
                    })
                };
                for (long, short) in spent(4).into_iter().zip(spent(3)) {
                    let one = long.0.since(short.0);
                    assert_eq!((one.messages, one.bytes), (long.1, long.2), "{method:?}, {layers} layers on {p}");
                    assert_eq!(one.collectives, sums, "{method:?}, {layers} layers on {p}");
                }
            }
        }
    }
}

/// Relative error of the Schur preconditioner with exact parts as A⁻¹.
fn schur_error<T: Number>(a: &Csr<T>, division: &Division) -> f64 {
    let n = a.nrows();
    let b = vector::<T>(n, 1);
    let mut x = b.clone();
    SparseLu::new(a).unwrap().solve_vec_in_place(&mut x);
    let found = succeed(division.n_ranks(), |comm| {
        let d = DistributedCsr::from_replicated(comm, a, division)?;
        let options = SchurOptions { inner_steps: 200, inner_rtol: 1e-12 };
        let mut m = Schur::with_options(&d, options, |local| LocalSolver::SparseLu.of(local))?;
        assert_eq!(m.kind(), PreconditionerKind::Variable);
        let mut z = vec![T::default(); d.rows().own().len()];
        m.apply(&d.own_entries(&b), &mut z)?;
        assert!(m.n_interface() > 0 || comm.size() == 1);
        d.whole(&z)
    });
    found.iter().map(|z| distance(z, &x)).fold(0.0, f64::max) / bt_formats::max_abs(&x)
}

#[test]
fn the_schur_complement_with_exact_parts_is_exact() {
    for p in RANKS {
        let (real, complex) = (wind::<f64>(6), scattered::<c64>(21));
        assert!(schur_error(&real, &Division::contiguous(36, p)) <= 1e-10);
        assert!(schur_error(&real, &Division::site_expansion(&real, p).unwrap()) <= 1e-10);
        assert!(schur_error(&complex, &Division::contiguous(21, p)) <= 1e-10);
        // More ranks than rows: no interior at all.
        assert!(schur_error(&scattered::<f64>(5), &Division::contiguous(5, p)) <= 1e-10);
    }
}

#[test]
fn schur_under_fgmres() {
    let a = wind::<f64>(12);
    for p in [1, 3, 6] {
        let division = Division::site_expansion(&a, p).unwrap();
        for solver in [
            LocalSolver::SparseLu,
            LocalSolver::Ilut(IlutOptions::default()),
            LocalSolver::Arms(ArmsOptions::default()),
        ] {
            let solved = succeed(p, |comm| {
                let d = DistributedCsr::from_replicated(comm, &a, &division)?;
                let mut m = Schur::new(&d, |local| solver.of(local))?;
                let (b, mut x) = (d.own_entries(&vector(144, 1)), vec![0.0; d.rows().own().len()]);
                let mut krylov = Krylov::new(&d, Method::Fgmres { restart: 30 });
                let report = krylov.solve(&d, &mut m, &b, &mut x, &StopCriterion::default(), &mut ())?;
                // GMRES relies on one M.
                let mut gmres = Krylov::new(&d, Method::Gmres { restart: 30 });
                let refused = gmres.solve(&d, &mut m, &b, &mut x, &StopCriterion::default(), &mut ());
                assert!(
                    matches!(refused, Err(Error::OnRank { rank: 0, message, .. }) if message.contains("use fgmres"))
                );
                Ok(report)
            });
            for report in &solved {
                assert_eq!((report.outcome, report.iterations), (Outcome::Converged, solved[0].iterations));
                assert!(report.certificate.relative_residual <= 1.1e-8 && report.iterations <= 12, "{solver:?} on {p}");
            }
        }
    }
}

#[test]
fn an_application_of_the_schur_complement_costs_what_the_header_says() {
    let a = wind::<f64>(8);
    for (p, steps) in [2, 3, 6].into_iter().flat_map(|p| [1, 4, 6].map(|steps| (p, steps))) {
        succeed(p, |comm| {
            let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(64, p))?;
            let options = SchurOptions { inner_steps: steps, inner_rtol: 0.0 };
            let mut m = Schur::with_options(&d, options, |local| LocalSolver::SparseLu.of(local))?;
            let mut z = vec![0.0; d.rows().own().len()];
            let before = comm.traffic();
            m.apply(&d.own_entries(&vector(64, 1)), &mut z)?;
            let k = steps as u64;
            let (sends, sent) = (d.halo().n_sends() as u64, d.halo().n_sent() as u64);
            let expected = Traffic {
                messages: (k + 2) * sends,
                bytes: (k + 2) * 8 * sent,
                collectives: 2 * k + 5,
                collective_bytes: 8 * (k * (k + 5) / 2 + 5),
            };
            assert_eq!(comm.traffic().since(before), expected, "{steps} steps on {p}");
            Ok(())
        });
    }
}

#[test]
fn any_factors_are_a_local_solver() {
    let a = wind::<f64>(6);
    let iterations = succeed(3, |comm| {
        let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(36, 3))?;
        let mut m = Schwarz::new(&d, 1, Overlap::Restricted, |local| {
            Ok(Box::new(Factored::new(BandLu::new(&Band::from_csr(local)?)?)))
        })?;
        let (b, mut x) = (d.own_entries(&vector(36, 1)), vec![0.0; d.rows().own().len()]);
        let mut krylov = Krylov::new(&d, Method::Gmres { restart: 20 });
        Ok(krylov.solve(&d, &mut m, &b, &mut x, &StopCriterion::default(), &mut ())?.iterations)
    });
    assert!(iterations[0] <= 12, "{iterations:?}");
    // One of the wrong size is refused by all.
    let results = run(2, |comm| {
        let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(36, 2))?;
        Schwarz::new(&d, 0, Overlap::Added, |local| {
            let n = if comm.rank() == 1 { 3 } else { local.nrows() };
            Ok(Box::new(bt_iter::Identity::new(n)))
        })
        .map(|_| ())
    });
    assert!(results.iter().all(|r| matches!(r, Err(Error::OnRank { rank: 1, .. }))), "{results:?}");
}
