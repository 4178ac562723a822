//! SPIKE over ranks beside band LU on one: the same backward error, the counts of the header, faults.

use crate::common::{RANKS, run, succeed};
use bt_direct::{BandLu, BlockLu, Factorization};
use bt_formats::{Band, BlockTridiagonal, Csr, LinearOperator, Op, Partition, c64, certify};
use bt_parallel::{Comm, Coupling, DistributedCsr, Division, Error, FaultKind, Number, Spike, SpikeOptions, Traffic};
use faer::{Mat, MatMut};
use proptest::prelude::*;

/// A band of random entries with `diagonal` added on the diagonal.
fn band<T: Number>(n: usize, kl: usize, ku: usize, diagonal: f64, seed: u64) -> Csr<T> {
    let random: Vec<T> = crate::common::vector(n * (kl + ku + 1), seed);
    bt_testkit::csr(n, |i, j| {
        if i > j + kl || j > i + ku {
            return T::default();
        }
        let v = random[i * (kl + ku + 1) + j + kl - i];
        if i == j { v + T::rounded(diagonal, 0.0) } else { v }
    })
}

fn right_hand_sides<T: Number>(n: usize, nrhs: usize) -> Mat<T> {
    let values: Vec<T> = crate::common::vector(n * nrhs, 7);
    Mat::from_fn(n, nrhs, |i, j| values[j * n + i])
}

/// Backward errors of SPIKE over the ranks of the division, and of band LU.
fn backward_errors<T: Number>(a: &Csr<T>, division: &Division, options: SpikeOptions, nrhs: usize) -> (f64, f64) {
    let n = a.nrows();
    let b = right_hand_sides::<T>(n, nrhs);
    let mut x = b.clone();
    BandLu::new(&Band::from_csr(a).unwrap()).unwrap().solve_in_place(x.as_mut());
    let serial = certify(a, Op::Identity, x.as_ref(), b.as_ref()).backward_error;
    let found = succeed(division.n_ranks(), |comm| {
        let d = DistributedCsr::from_replicated(comm, a, division)?;
        let spike = Spike::with_options(&d, options)?;
        let own = d.rows().own().to_vec();
        let mut x = Mat::from_fn(own.len(), nrhs, |i, j| b[(own[i] as usize, j)]);
        spike.solve_in_place(x.as_mut())?;
        (0..nrhs).map(|j| d.whole(x.col_as_slice(j))).collect::<bt_parallel::Result<Vec<_>>>()
    });
    for x in &found {
        assert_eq!(x, &found[0]);
    }
    let x = Mat::from_fn(n, nrhs, |i, j| found[0][j][i]);
    (certify(a, Op::Identity, x.as_ref(), b.as_ref()).backward_error, serial)
}

#[test]
fn backward_errors_are_those_of_band_lu() {
    for p in RANKS {
        for (n, kl, ku, diagonal) in
            [(40, 1, 1, 4.0), (61, 2, 4, 0.0), (50, 5, 1, 1.0), (30, 0, 2, 3.0), (7, 0, 0, 2.0)]
        {
            let k = usize::max(kl, ku);
            let division = Division::contiguous_of_at_least(n, p, k);
            let (found, serial) =
                backward_errors::<f64>(&band(n, kl, ku, diagonal, 3), &division, SpikeOptions::default(), 3);
            assert!(found <= 4.0 * serial + 4.0 * f64::EPSILON, "{p} ranks, n {n}, {kl} + {ku}: {found:e}, {serial:e}");
        }
        let division = Division::contiguous_of_at_least(33, p, 3);
        let (found, serial) = backward_errors::<c64>(&band(33, 3, 2, 2.0, 5), &division, SpikeOptions::default(), 2);
        assert!(found <= 4.0 * serial + 4.0 * f64::EPSILON, "{p}: {found:e}, {serial:e}");
        let (found, serial) = backward_errors::<f32>(&band(33, 3, 2, 8.0, 5), &division, SpikeOptions::default(), 1);
        assert!(found <= 4.0 * serial + 4.0 * f64::from(f32::EPSILON), "{p}: {found:e}, {serial:e}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_band_on_any_ranks(n in 1usize..60, kl in 0usize..4, ku in 0usize..4, p in 1usize..8, seed in 0u64..1000) {
        let a = band::<f64>(n, kl, ku, 1.5, seed);
        let division = Division::contiguous_of_at_least(n, p, kl.max(ku).max(1));
        let (found, serial) = backward_errors(&a, &division, SpikeOptions { refinements: 2, ..SpikeOptions::default() }, 1);
        prop_assert!(found <= 1e2 * serial + 1e2 * f64::EPSILON, "{found:e} {serial:e}");
    }
}

#[test]
fn truncation_is_exact_where_spikes_decay() {
    let truncated = SpikeOptions { coupling: Coupling::Truncated, refinements: 0 };
    // |spikes| ≤ 2⁻⁴⁰ and less after some forty rows of a diagonal of 8.
    let a = band::<f64>(400, 1, 1, 8.0, 1);
    for p in [1, 2, 4, 7] {
        let (found, _) = backward_errors(&a, &Division::contiguous(400, p), truncated, 2);
        assert!(found <= 8.0 * f64::EPSILON, "{p}: {found:e}");
        let neglected = succeed(p, |comm| {
            let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(400, p))?;
            Ok(Spike::with_options(&d, truncated)?.neglected())
        });
        assert!(neglected.iter().all(|v| *v == neglected[0] && *v < 1e-16 && (*v > 0.0 || p < 3)), "{neglected:?}");
    }
    // Where they do not decay the measure says so.
    let a = bt_testkit::chain::<f64>(24, 2.0, -1.0);
    let neglected = succeed(4, |comm| {
        let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(24, 4))?;
        let exact = Spike::new(&d)?;
        assert_eq!((exact.neglected(), exact.k()), (0.0, 1));
        assert!(exact.bytes() > 0);
        Ok(Spike::with_options(&d, truncated)?.neglected())
    });
    // The far tip of a spike over m rows of −1 2 −1 is 1/(m + 1).
    assert!((neglected[0] - 1.0 / 7.0).abs() < 1e-14, "{neglected:?}");
    let (found, _) = backward_errors(&a, &Division::contiguous(24, 4), truncated, 1);
    assert!(found > 1e-6);
}

#[test]
fn blocks_are_factored_by_blocks() {
    // Couplings reach to the far end of a neighbouring block: 4 rows.
    for sizes in [&[3, 2, 4, 1, 3, 3, 2][..], &[4, 1, 4, 1, 4, 1]] {
        let blocks = Partition::from_sizes(sizes.iter().copied()).unwrap();
        let n = blocks.n();
        let a = bt_testkit::csr(n, |i, j| {
            let (p, q) = (blocks.block_of(i), blocks.block_of(j));
            match i == j {
                true => 9.0,
                false if p.abs_diff(q) > 1 => 0.0,
                false => ((3 * i + 5 * j) % 7) as f64 / 7.0 - 0.4,
            }
        });
        let b = right_hand_sides::<f64>(n, 1);
        for p in RANKS {
            let division = Division::by_blocks_of_at_least(&blocks, p, 4);
            assert!(p == 1 || (1..p).any(|rank| !division.rows(rank).is_empty()), "{sizes:?} on {p}");
            let found = succeed(p, |comm| {
                let d = DistributedCsr::from_replicated(comm, &a, &division)?;
                let own = d.rows().own().to_vec();
                let starts = |&j: &usize| own.contains(&(blocks.range(j).start as u32));
                let own_sizes = (0..blocks.n_blocks()).filter(starts).map(|j| blocks.size(j));
                let own_blocks = Partition::from_sizes(own_sizes).expect("no block is empty");
                let spike = Spike::with_factors(&d, SpikeOptions::default(), |local| {
                    let layout = BlockLu::<f64>::layout(&own_blocks);
                    Ok(Box::new(BlockLu::new(&BlockTridiagonal::from_csr(local, own_blocks.clone(), layout)?)?))
                })?;
                let mut x: Vec<f64> = own.iter().map(|&i| b[(i as usize, 0)]).collect();
                let rows = x.len();
                spike.solve_in_place(MatMut::from_column_major_slice_mut(&mut x, rows, 1))?;
                d.certify(&x, &own.iter().map(|&i| b[(i as usize, 0)]).collect::<Vec<_>>())
            });
            assert!(found.iter().all(|c| c.backward_error <= 4.0 * f64::EPSILON), "{sizes:?} on {p}: {found:?}");
        }
    }
}

#[test]
fn messages_and_bytes_are_those_of_the_header() {
    let (n, k, nrhs) = (70, 3, 2);
    let a = band::<f64>(n, k, 2, 6.0, 2);
    let b = right_hand_sides::<f64>(n, nrhs);
    for p in RANKS {
        for coupling in [Coupling::Exact, Coupling::Truncated] {
            let options = SpikeOptions { coupling, refinements: 0 };
            let counts = succeed(p, |comm| {
                let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(n, p))?;
                let spike = Spike::with_options(&d, options)?;
                let before = spike.traffic();
                let own = d.rows().own().to_vec();
                let mut x = Mat::from_fn(own.len(), nrhs, |i, j| b[(own[i] as usize, j)]);
                let elsewhere = comm.traffic();
                spike.solve_in_place(x.as_mut())?;
                assert_eq!(comm.traffic().since(elsewhere), Traffic::default());
                Ok((before, spike.traffic().since(before)))
            });
            let sum = |f: &dyn Fn(&(Traffic, Traffic)) -> u64| counts.iter().map(f).sum::<u64>();
            let joints = p as u64 - 1;
            let (tips, of_factors) = match coupling {
                Coupling::Exact => (2 * k, 4 * k * k),
                Coupling::Truncated => (k, k * k),
            };
            assert_eq!(sum(&|c| c.0.messages), joints);
            assert_eq!(sum(&|c| c.0.bytes), joints * 8 * of_factors as u64);
            assert_eq!(sum(&|c| c.1.messages), 2 * joints);
            assert_eq!(sum(&|c| c.1.bytes), 2 * joints * 8 * (tips * nrhs) as u64);
            assert_eq!(sum(&|c| c.1.collectives), 0);
            // No rank sends more than one message up and one down a level.
            let levels = u64::from(p.next_power_of_two().trailing_zeros());
            assert!(counts.iter().all(|c| c.1.messages <= 1 + levels.max(1)), "{counts:?}");
        }
    }
}

#[test]
fn faults_are_one_error_on_all_ranks() {
    let fault = |a: &Csr<f64>, division: &Division, rank: usize, kind: FaultKind, says: &str| {
        let results = run(division.n_ranks(), |comm| {
            let d = DistributedCsr::from_replicated(comm, a, division)?;
            Spike::new(&d).map(|_| ())
        });
        for result in &results {
            assert_eq!(result, &results[0]);
            match result {
                Err(Error::OnRank { rank: found, kind: of, message, .. }) => {
                    assert!((*found, *of) == (rank, kind) && message.contains(says), "{message}");
                }
                other => panic!("{says}: {other:?}"),
            }
        }
    };
    // A singular part of a nonsingular matrix: rows 3 to 5 have a zero diagonal and 5 couples with 6.
    let a = bt_testkit::csr(9, |i, j| match (i, j) {
        (4, 4) | (5, 5) | (3, 3) => 0.0,
        _ if i == j => 2.0,
        _ if i.abs_diff(j) == 1 => 1.0,
        _ => 0.0,
    });
    fault(
        &a,
        &Division::contiguous(9, 3),
        1,
        FaultKind::Singular,
        "its part of 3 rows: the matrix is singular: no pivot in column 5",
    );
    // Too few rows for the band.
    let a = band::<f64>(10, 3, 1, 4.0, 1);
    fault(&a, &Division::contiguous(10, 5), 0, FaultKind::Input, "2 rows, fewer than the 3 that couplings reach");
    // Rows in another order.
    let a = band::<f64>(32, 1, 1, 4.0, 1);
    let division = Division::site_expansion(&a, 4).unwrap();
    assert!(!division.owner().is_sorted());
    let results = run(4, |comm| {
        let d = DistributedCsr::from_replicated(comm, &a, &division)?;
        Spike::new(&d).map(|_| ())
    });
    assert!(
        results
            .iter()
            .all(|r| matches!(r, Err(Error::OnRank { message, .. }) if message.contains("order of the ranks")))
    );
}

#[test]
fn a_singular_joint_names_its_leader_only() {
    // Four parts of two rows; the unknowns 5 and 6, on either side of where ranks 2 and 3 meet, have equal rows.
    let a = bt_testkit::csr(8, |i, j| match (i, j) {
        (5, 6) | (6, 5) => 1.0,
        _ if i == j => 1.0,
        _ if i.min(j) % 2 == 1 && i.abs_diff(j) == 1 => 0.25,
        _ => 0.0,
    });
    for coupling in [Coupling::Exact, Coupling::Truncated] {
        let results = run(4, |comm| {
            let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(8, 4))?;
            Spike::with_options(&d, SpikeOptions { coupling, ..SpikeOptions::default() }).map(|_| ())
        });
        assert!(
            results.iter().all(|r| matches!(r, Err(Error::OnRank { rank: 2, kind: FaultKind::Breakdown, .. }))),
            "{results:?}"
        );
    }
}

#[test]
fn two_regular_parts_may_meet_singularly() {
    // [1 0 | 0 0; 0 1 | 1 0; 0 1 | 1 0; 0 0 | 0 1]: rows 1 and 2 are equal.
    let a = bt_testkit::csr(4, |i, j| match (i, j) {
        (1, 2) | (2, 1) => 1.0,
        _ if i == j => 1.0,
        _ => 0.0,
    });
    let results = run(2, |comm| {
        let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(4, 2))?;
        Spike::new(&d).map(|_| ())
    });
    assert!(
        results.iter().all(|r| matches!(r, Err(Error::OnRank { rank: 0, kind: FaultKind::Breakdown, .. }))),
        "{results:?}"
    );
}
