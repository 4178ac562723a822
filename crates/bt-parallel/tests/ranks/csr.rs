//! Distributed rows: products and certificates against the serial ones, the counts of the headers, faults with rank and row.

use crate::common::{RANKS, distance, run, scattered, succeed, vector, wind};
use bt_formats::{Certificate, Csr, LinearOperator, Matrix, Op, RealScalar, Scalar, c64, certify};
use bt_parallel::{Comm, DistributedCsr, Division, Error, FaultKind, Number, Rows, Traffic};
use faer::MatRef;
use proptest::prelude::*;

/// y ← αAx + βy on p ranks beside the same on one, and the count.
fn product<T: Number>(a: &Csr<T>, division: &Division) {
    let (n, p) = (a.nrows(), division.n_ranks());
    let (x, y) = (vector::<T>(n, 1), vector::<T>(n, 2));
    let (alpha, beta) = (T::rounded(-0.5, 0.25), T::rounded(2.0, 1.0));
    let mut expected = y.clone();
    a.apply(alpha, &x, beta, &mut expected);
    let of_ranks = succeed(p, |comm| {
        let d = DistributedCsr::from_replicated(comm, a, division)?;
        let mut own = d.own_entries(&y);
        let before = comm.traffic();
        d.apply(alpha, &d.own_entries(&x), beta, &mut own)?;
        let (messages, sent) = (d.halo().n_sends() as u64, d.halo().n_sent() as u64);
        let bytes = size_of::<T>() as u64 * sent;
        assert_eq!(comm.traffic().since(before), Traffic { messages, bytes, ..Traffic::default() });
        // β = 0 reads no y.
        let mut fresh = vec![T::rounded(f64::NAN, 0.0); own.len()];
        d.apply(alpha, &d.own_entries(&x), T::default(), &mut fresh)?;
        assert!(fresh.iter().all(|v| Scalar::is_finite(*v)));
        assert_eq!(d.nnz() as usize, a.nnz());
        let norm = Matrix::norm_inf(a).to_f64();
        assert!((d.norm_inf() - norm).abs() <= 1e-5 * norm);
        d.whole(&own)
    });
    let tolerance = 1e2 * T::Real::EPSILON.to_f64() * bt_formats::max_abs(&expected).max(1.0);
    for y in &of_ranks {
        assert!(distance(y, &expected) <= tolerance, "{p} ranks");
        assert_eq!(y, &of_ranks[0]);
    }
    if p == 1 {
        assert_eq!(of_ranks[0], expected, "one rank has the bits of the serial product");
    }
}

#[test]
fn products_are_those_of_one_rank() {
    for p in RANKS {
        product(&wind::<f64>(6), &Division::contiguous(36, p));
        product(&wind::<f32>(6), &Division::site_expansion(&wind::<f32>(6), p).unwrap());
        product(&scattered::<c64>(23), &Division::contiguous(23, p));
        product(&scattered::<f64>(23), &Division::site_expansion(&scattered::<f64>(23), p).unwrap());
        // More ranks than rows, and no rows at all.
        product(&scattered::<f64>(4), &Division::contiguous(4, p));
        product(&Csr::<f64>::new(0, 0, vec![0], vec![], vec![]).unwrap(), &Division::contiguous(0, p));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_rows_on_any_rank(a in bt_testkit::strategies::square::<f64>(1..=20, 0.3), seed in 0usize..1000, p in 1usize..6) {
        let owner: Vec<usize> = (0..a.nrows()).map(|i| (i * 31 + seed * 17 + i * i) % p).collect();
        let mut expected = vec![0.0; a.nrows()];
        let x = vector::<f64>(a.nrows(), 3);
        a.apply(1.0, &x, 0.0, &mut expected);
        let found = succeed(p, |comm| {
            // Backwards, and columns in any order.
            let own: Vec<u32> = (0..a.nrows()).rev().filter(|&i| owner[i] == comm.rank()).map(|i| i as u32).collect();
            let rows: Vec<(Vec<u32>, Vec<f64>)> = own.iter().map(|&i| {
                let (cols, values) = a.row(i as usize);
                (cols.iter().rev().copied().collect(), values.iter().rev().copied().collect())
            }).collect();
            let d = DistributedCsr::from_rows(comm, a.nrows(), own, rows.iter().map(|(c, v)| (&c[..], &v[..])))?;
            let mut y = vec![0.0; d.rows().own().len()];
            d.apply(1.0, &d.own_entries(&x), 0.0, &mut y)?;
            d.whole(&y)
        });
        prop_assert!(found.iter().all(|y| distance(y, &expected) <= 1e-13 * (1.0 + bt_formats::max_abs(&expected))));
    }
}

#[test]
fn certificates_are_those_of_the_whole_system() {
    for p in RANKS {
        certificate::<f64>(p, &wind(5), 1.0, 1e-13);
        certificate::<c64>(p, &scattered(17), 1.0, 1e-13);
        certificate::<f32>(p, &wind(5), 1.0, 1e-5);
        certificate::<f64>(p, &wind(5), 1e300, 1e-13);
        certificate::<f64>(p, &scattered(3), 1e-300, 1e-13);
    }
}

fn certificate<T: Number>(p: usize, a: &Csr<T>, size: f64, tolerance: f64) {
    let n = a.nrows();
    let size = T::rounded(size, 0.0);
    let x: Vec<T> = vector::<T>(n, 5).into_iter().map(|v| v * size).collect();
    let b: Vec<T> = vector::<T>(n, 6).into_iter().map(|v| v * size).collect();
    let column = |v| MatRef::from_column_major_slice(v, n, 1);
    let serial = certify(a, Op::Identity, column(&x), column(&b));
    let close = |c: f64, s: f64| (c - s).abs() <= tolerance * s;
    let certificates = succeed(p, |comm| {
        let d = DistributedCsr::from_replicated(comm, a, &Division::contiguous(n, p))?;
        let certificate = d.certify(&d.own_entries(&x), &d.own_entries(&b))?;
        let mut bad = d.own_entries(&x);
        if comm.rank() == 0 {
            bad[0] = T::rounded(f64::NAN, 0.0);
        }
        assert_eq!(d.certify(&bad, &d.own_entries(&b))?.backward_error, f64::INFINITY);
        Ok(certificate)
    });
    for c in &certificates {
        assert_eq!(c, &certificates[0]);
        assert!(close(c.relative_residual, serial.relative_residual), "{p}: {c:?} {serial:?}");
        assert!(close(c.backward_error, serial.backward_error), "{p}: {c:?} {serial:?}");
        assert!(close(c.componentwise_backward_error, serial.componentwise_backward_error), "{p}: {c:?} {serial:?}");
    }
    if p == 1 {
        assert_eq!(certificates[0], serial);
    }
}

#[test]
fn an_exact_answer_has_no_error() {
    let a = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![2.0, 1.0, 4.0]).unwrap();
    let found = succeed(3, |comm| {
        let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(2, 3))?;
        d.certify(&d.own_entries(&[1.0, 2.0]), &d.own_entries(&[4.0, 8.0]))
    });
    assert_eq!(found, vec![Certificate::default(); 3]);
}

#[test]
fn the_first_rank_gives_to_all() {
    let a = scattered::<f64>(19);
    for p in RANKS {
        let division = Division::site_expansion(&a, p).unwrap();
        let both = succeed(p, |comm| {
            let given = (comm.rank() == 0).then_some((&a, &division));
            let (sent, kept) =
                (DistributedCsr::from_first_rank(comm, given)?, DistributedCsr::from_replicated(comm, &a, &division)?);
            assert_eq!(sent.rows().own(), kept.rows().own());
            Ok(sent.local() == kept.local())
        });
        assert!(both.into_iter().all(|same| same));
        let none = run(p, |comm| DistributedCsr::<f64, _>::from_first_rank(comm, None).map(|_| ()));
        assert!(none.iter().all(|r| matches!(r, Err(Error::OnRank { rank: 0, kind: FaultKind::Input, .. }))));
    }
}

/// What a rank gives.
struct Given {
    n: usize,
    own: Vec<u32>,
    rows: Vec<(Vec<u32>, Vec<f64>)>,
}

/// A row of one entry.
fn entry(j: u32, v: f64) -> (Vec<u32>, Vec<f64>) {
    (vec![j], vec![v])
}

/// The identity, two rows a rank, spoilt on some of three ranks, is one error on all: that of `rank`.
fn fault(spoilt: &[usize], rank: usize, says: &str, spoil: fn(&mut Given)) {
    let results = run(3, |comm| {
        let first = 2 * comm.rank() as u32;
        let mut given =
            Given { n: 6, own: vec![first, first + 1], rows: vec![entry(first, 1.0), entry(first + 1, 1.0)] };
        if spoilt.contains(&comm.rank()) {
            spoil(&mut given);
        }
        let Given { n, own, rows } = given;
        DistributedCsr::from_rows(comm, n, own, rows.iter().map(|(c, v)| (&c[..], &v[..]))).map(|_| ())
    });
    for result in &results {
        assert_eq!(result, &results[0]);
        match result {
            Err(error @ Error::OnRank { rank: found, .. }) => {
                assert!(*found == rank && error.to_string().contains(says), "{error}, not {says} on rank {rank}");
            }
            other => panic!("{says}: {other:?}"),
        }
    }
}

#[test]
fn bad_rows_are_one_error_on_all_ranks() {
    fault(&[1], 1, "row 3 has column 6, beyond the 6", |g| g.rows[1] = entry(6, 1.0));
    fault(&[2], 2, "row 4, column 4: NaN", |g| g.rows[0] = entry(4, f64::NAN));
    fault(&[0], 0, "row 0 has column 0 twice", |g| g.rows[0] = (vec![0, 5, 0], vec![1.0; 3]));
    fault(&[2], 2, "row 5 has 1 columns and 0 values", |g| g.rows[1].1.clear());
    fault(&[1], 1, "1 rows instead of the 2", |g| g.rows.truncate(1));
    fault(&[1], 1, "more rows than the 2", |g| g.rows.push(entry(0, 1.0)));
    fault(&[1], 1, "row 9 is beyond the 6", |g| g.own[0] = 9);
    // The directory of row 0 is on rank 0, that of row 6 on rank 2.
    fault(&[2], 0, "row 0 is owned by ranks 0 and 2", |g| g.own[0] = 0);
    fault(&[0, 1, 2], 2, "row 6 is owned by no rank", |g| g.n = 7);
    fault(&[1], 0, "a system of 6 rows here, and of 6 to 8 elsewhere", |g| g.n = 8);
    // The lowest of several.
    fault(&[1, 2], 1, "row 2 has column 9", |g| g.rows[0] = entry(9, 1.0));
}

#[test]
fn the_directory_knows_every_owner() {
    for p in RANKS {
        succeed(p, |comm| {
            let own: Vec<u32> = (0..10).rev().filter(|g| *g as usize % p == comm.rank()).collect();
            let rows = Rows::new(comm, 10, own)?;
            let wanted = [3, 9, 3, 0];
            let owners = rows.owners(comm, &wanted)?;
            for (g, owner) in wanted.iter().zip(owners) {
                assert_eq!(owner.rank as usize, *g as usize % p);
                let of_owner = (0..10u32).rev().filter(|h| h % p as u32 == g % p as u32);
                assert_eq!(of_owner.clone().nth(owner.place as usize), Some(*g));
            }
            assert!(matches!(rows.owners(comm, &[10]), Err(Error::OnRank { rank: 0, .. })));
            assert_eq!(rows.counts().iter().sum::<usize>(), 10);
            Ok(())
        });
    }
}

#[test]
fn sums_go_back_to_their_owners() {
    let a = wind::<f64>(4);
    for p in RANKS {
        succeed(p, |comm| {
            let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(16, p))?;
            let mut x = vec![1.0; d.rows().own().len()];
            d.halo().add_back(comm, &vec![1.0; d.halo().len()], &mut x)?;
            // One more from every rank that needs the row.
            let mut needed = vec![1.0; x.len()];
            d.halo().sends().iter().flat_map(|s| &s.1).for_each(|&i| needed[i as usize] += 1.0);
            assert_eq!(x, needed);
            let (internal, interface) = d.internal_and_interface();
            assert_eq!(internal.len() + interface.len(), x.len());
            assert!(internal.iter().all(|&i| x[i as usize] == 1.0));
            Ok(())
        });
    }
}
