//! The same chain in six formats: factored, factored anew, solved with, and with its transpose.

use blocktri::faer::{Mat, mat};
use blocktri::faer::sparse::{SparseColMat, Triplet};
use blocktri::interop::{copy_faer_columns, from_sprs};
use blocktri::{Band, BlockTridiagonal, Csr, Given, InputError, Outcome, Partition, SolveOptions, Solver, Tridiagonal};

/// l on the lower, d on the main, u on the upper diagonal.
fn chain(n: usize, l: f64, d: f64, u: f64) -> Mat<f64> {
    Mat::from_fn(n, n, |i, j| match i as isize - j as isize {
        0 => d,
        1 => l,
        -1 => u,
        _ => 0.0,
    })
}

/// The chain, and later its new values, by the solver of one format.
fn check<'a>(
    name: &str,
    (first, second): (&Mat<f64>, &Mat<f64>),
    old: impl Into<Given<'a, f64>>,
    new: impl Into<Given<'a, f64>>,
) -> Result<(), blocktri::Error> {
    let x = Mat::from_fn(first.nrows(), 2, |i, j| (1 + i + j) as f64);
    let mut solver = Solver::new(old, &SolveOptions::default(), &mut ())?;
    let mut new = Some(new);
    for dense in [first, second] {
        let (b, transposed) = (dense * &x, dense.transpose() * &x);
        for answer in [solver.solve(b.as_ref())?, solver.solve_transposed(transposed.as_ref())?] {
            assert_eq!(answer.report.outcome, Outcome::Converged, "{name}");
            assert!((answer.x - &x).norm_max() < 1e-13, "{name}");
        }
        if let Some(new) = new.take() {
            solver.refactor(new, &mut ())?;
        }
    }
    println!("{name}: {}, log|det A| = {:.6}", solver.method(), solver.log_det().log_abs);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let n = 12;
    let dense = (&chain(n, -1.0, 4.0, 2.0), &chain(n, 1.0, 5.0, -2.0));
    let diagonals = |l, d, u| {
        let (mut lower, mut upper) = (vec![l; n], vec![u; n]);
        (lower[0], upper[n - 1]) = (0.0, 0.0);
        Tridiagonal::new(lower, vec![d; n], upper)
    };
    check("tridiagonal", dense, &diagonals(-1.0, 4.0, 2.0)?, &diagonals(1.0, 5.0, -2.0)?)?;
    let band = |l: f64, d: f64, u: f64| {
        let mut band = Band::zeros(n, 1, 1)?;
        for i in 0..n {
            *band.get_mut(i, i) = d;
            if i > 0 {
                (*band.get_mut(i, i - 1), *band.get_mut(i - 1, i)) = (l, u);
            }
        }
        Ok::<_, InputError>(band)
    };
    check("band", dense, &band(-1.0, 4.0, 2.0)?, &band(1.0, 5.0, -2.0)?)?;
    // Blocks by columns; of the couplings of a block row the columns of the block before, then those of the block after.
    let blocks = |a: &Mat<f64>| {
        let columns = |rows: std::ops::Range<usize>, cols: std::ops::Range<usize>| {
            cols.flat_map(move |j| rows.clone().map(move |i| a[(i, j)])).collect::<Vec<_>>()
        };
        let rows = |k: usize| 3 * k..3 * k + 3;
        let diagonal = (0..n / 3).flat_map(|k| columns(rows(k), rows(k))).collect();
        let beside = |k: usize| [k.checked_sub(1), Some(k + 1).filter(|&k| k < n / 3)].into_iter().flatten();
        let couplings = (0..n / 3).flat_map(|k| beside(k).flat_map(move |j| columns(rows(k), rows(j)))).collect();
        BlockTridiagonal::from_dense_blocks(Partition::uniform(n, 3)?, diagonal, couplings)
    };
    check("blocks", dense, &blocks(dense.0)?, &blocks(dense.1)?)?;
    let triplets = |a: &Mat<f64>| {
        let mut triplets = sprs::TriMatI::<f64, u32>::new((n, n));
        for i in 0..n {
            for j in i.saturating_sub(1)..(i + 2).min(n) {
                triplets.add_triplet(i, j, a[(i, j)]);
            }
        }
        from_sprs(triplets.to_csr())
    };
    check("sprs", dense, &triplets(dense.0)?, &triplets(dense.1)?)?;
    let by_columns = |a: &Mat<f64>| {
        let beside = |i: usize| i.saturating_sub(1)..(i + 2).min(n);
        let entries: Vec<_> = (0..n).flat_map(|i| beside(i).map(move |j| Triplet::new(i, j, a[(i, j)]))).collect();
        let by_columns = SparseColMat::<usize, f64>::try_new_from_triplets(n, n, &entries).expect("places inside");
        copy_faer_columns(by_columns.as_ref())
    };
    check("faer, sparse", dense, &by_columns(dense.0)?, &by_columns(dense.1)?)?;
    check("faer", dense, dense.0.as_ref(), dense.1.as_ref())?;
    let singular = Csr::from_dense(mat![[1.0, 2.0], [2.0, 4.0]].as_ref())?;
    assert!(Solver::new(&singular, &SolveOptions::default(), &mut ()).is_err());
    Ok(())
}
