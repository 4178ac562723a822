//! Lines across ranks beside dense solves of each, the count of the header, and faults.

use crate::common::{RANKS, run, succeed};
use bt_direct::{BandLu, Factorization};
use bt_formats::{Band, c64};
use bt_parallel::{Comm, Division, Error, FaultKind, Lines, Number, Traffic};
use proptest::prelude::*;

/// Three diagonals and a right-hand side of L lines of n rows, entry l of row i at i·L + l.
struct System<T> {
    n: usize,
    n_lines: usize,
    diagonals: [Vec<T>; 3],
    rhs: Vec<T>,
}

impl<T: Number> System<T> {
    fn new(n: usize, n_lines: usize, diagonal: f64, seed: u64) -> Self {
        let random = |k: u64| crate::common::vector::<T>(n * n_lines, seed + k);
        let own = random(1).into_iter().map(|v| v + T::rounded(diagonal, 0.0)).collect();
        Self { n, n_lines, diagonals: [random(0), own, random(2)], rhs: random(3) }
    }

    /// By band LU with pivoting, line by line.
    fn solution(&self) -> Vec<T> {
        let (n, lines) = (self.n, self.n_lines);
        let mut x = vec![T::default(); n * lines];
        for l in 0..lines {
            let a = bt_testkit::csr(n, |i, j| match j as isize - i as isize {
                -1 => self.diagonals[0][i * lines + l],
                0 => self.diagonals[1][i * lines + l],
                1 => self.diagonals[2][i * lines + l],
                _ => T::default(),
            });
            let mut line: Vec<T> = (0..n).map(|i| self.rhs[i * lines + l]).collect();
            BandLu::new(&Band::from_csr(&a).unwrap()).unwrap().solve_vec_in_place(&mut line);
            (0..n).for_each(|i| x[i * lines + l] = line[i]);
        }
        x
    }

    /// By the ranks, each with its range of rows.
    fn distributed(&self, division: &Division) -> Vec<Vec<T>> {
        let lines = self.n_lines;
        succeed(division.n_ranks(), |comm| {
            let rows = division.rows(comm.rank());
            let range =
                rows.first().map_or(0..0, |&first| first as usize * lines..(first as usize + rows.len()) * lines);
            let [lower, own, upper] = [0, 1, 2].map(|d| &self.diagonals[d][range.clone()]);
            let factors = Lines::new(comm, lines, lower, own, upper)?;
            let mut x = self.rhs[range.clone()].to_vec();
            factors.solve_in_place(&mut x)?;
            // Factors are kept.
            let mut again = self.rhs[range].to_vec();
            factors.solve_in_place(&mut again)?;
            assert_eq!(x, again);
            Ok(comm.all_gather(&x)?.values().to_vec())
        })
    }
}

fn check<T: Number>(n: usize, n_lines: usize, p: usize, tolerance: f64) {
    let system = System::<T>::new(n, n_lines, 3.0, 11);
    let expected = system.solution();
    for x in system.distributed(&Division::contiguous(n, p)) {
        assert!(crate::common::distance(&x, &expected) <= tolerance, "{n} rows of {n_lines} lines on {p}");
    }
}

#[test]
fn lines_are_solved_as_one_by_one() {
    for p in RANKS {
        for (n, n_lines) in [(1, 1), (2, 3), (5, 2), (6, 1), (13, 5), (40, 9)] {
            check::<f64>(n, n_lines, p, 1e-13);
        }
        check::<c64>(17, 4, p, 1e-13);
        check::<f32>(17, 4, p, 1e-5);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_ranges(sizes in proptest::collection::vec(0usize..6, 1..6), n_lines in 1usize..8, seed in 0u64..1000) {
        let n: usize = sizes.iter().sum();
        let system = System::<f64>::new(n, n_lines, 3.5, seed);
        let expected = if n > 0 { system.solution() } else { Vec::new() };
        let mut start = 0;
        let ranges: Vec<_> = sizes.iter().map(|m| { start += m; (start - m) * n_lines..start * n_lines }).collect();
        let found = succeed(sizes.len(), |comm| {
            let range = ranges[comm.rank()].clone();
            let [lower, own, upper] = [0, 1, 2].map(|d| &system.diagonals[d][range.clone()]);
            let mut x = system.rhs[range.clone()].to_vec();
            Lines::new(comm, n_lines, lower, own, upper)?.solve_in_place(&mut x)?;
            Ok(comm.all_gather(&x)?.values().to_vec())
        });
        prop_assert!(found.iter().all(|x| crate::common::distance(x, &expected) <= 1e-12));
    }
}

#[test]
fn a_solve_takes_two_all_to_alls() {
    let (n, n_lines) = (23, 10);
    let system = System::<f64>::new(n, n_lines, 3.0, 1);
    for p in [2, 3, 7] {
        let division = Division::contiguous(n, p);
        succeed(p, |comm| {
            let rows = division.rows(comm.rank());
            let range = rows[0] as usize * n_lines..(rows[0] as usize + rows.len()) * n_lines;
            let [lower, own, upper] = [0, 1, 2].map(|d| &system.diagonals[d][range.clone()]);
            let factors = Lines::new(comm, n_lines, lower, own, upper)?;
            assert_eq!(factors.rows(), rows.len());
            let before = comm.traffic();
            factors.solve_in_place(&mut system.rhs[range].to_vec())?;
            let rank = comm.rank();
            let own_lines = (rank + 1) * n_lines / p - rank * n_lines / p;
            let reduced: usize = (0..p).filter(|r| *r != rank).map(|r| division.rows(r).len().min(2)).sum();
            let collective_bytes = 8 * (rows.len().min(2) * (n_lines - own_lines) + reduced * own_lines) as u64;
            let expected = Traffic { collectives: 2, collective_bytes, ..Traffic::default() };
            assert_eq!(comm.traffic().since(before), expected);
            Ok(())
        });
    }
}

#[test]
fn faults_are_one_error_on_all_ranks() {
    let fault =
        |rank: usize, kind: FaultKind, says: &str, own: &(dyn Fn(usize) -> (usize, Vec<f64>, Vec<f64>) + Sync)| {
            let results = run(3, |comm| {
                let (n_lines, beside, own) = own(comm.rank());
                Lines::new(comm, n_lines, &beside, &own, &beside).map(|_| ())
            });
            for result in &results {
                assert_eq!(result, &results[0]);
                let found = matches!(result, Err(Error::OnRank { rank: r, kind: k, message, .. })
                if *r == rank && *k == kind && message.contains(says));
                assert!(found, "{says}: {result:?}");
            }
        };
    let good = |_| (2, vec![-1.0; 6], vec![3.0; 6]);
    let spoil = |rank, at: usize, v: f64| {
        move |r| {
            let (lines, beside, mut own) = good(r);
            if r == rank {
                own[at] = v;
            }
            (lines, beside, own)
        }
    };
    fault(2, FaultKind::Input, "main diagonal: row 1 of line 0 is NaN", &spoil(2, 2, f64::NAN));
    fault(1, FaultKind::Breakdown, "no pivot in its row 0 of line 1", &spoil(1, 1, 0.0));
    fault(1, FaultKind::Input, "not rows of 2 lines", &|r| (2, vec![-1.0; 6], vec![3.0; if r == 1 { 5 } else { 6 }]));
    fault(0, FaultKind::Input, "2 lines, and rank 1 has 3", &|r| {
        (if r == 1 { 3 } else { 2 }, vec![-1.0; 6], vec![3.0; 6])
    });
    // Rows of one unknown each, the first two of them equal; the last rank has the only line whole.
    fault(2, FaultKind::Breakdown, "reduced row 1 of line 0", &|_| (1, vec![1.0], vec![1.0]));
}
