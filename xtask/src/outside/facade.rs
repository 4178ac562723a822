//! The same chain in five formats: factored, factored anew, solved with, and with its transpose.

use blocktri::faer::{Mat, mat};
use blocktri::{Band, BlockTridiagonal, Csr, Outcome, Partition, SolveOptions, Solver, Tridiagonal};
use bt_formats::{HybridLayout, interop::from_sprs};

/// l on the lower, d on the main, u on the upper diagonal.
fn chain(n: usize, l: f64, d: f64, u: f64) -> Mat<f64> {
    Mat::from_fn(n, n, |i, j| match i as isize - j as isize {
        0 => d,
        1 => l,
        -1 => u,
        _ => 0.0,
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let n = 12;
    let (first, second) = (chain(n, -1.0, 4.0, 2.0), chain(n, 1.0, 5.0, -2.0));
    let x = Mat::from_fn(n, 2, |i, j| (1 + i + j) as f64);
    let of = |dense: &Mat<f64>| Csr::from_dense(dense.as_ref());
    let formats: [(&str, Csr<f64>); 5] = [
        ("tridiagonal", Tridiagonal::from_csr(&of(&first)?)?.to_csr()?),
        ("band", Band::from_csr(&of(&first)?)?.to_csr()?),
        ("blocks", {
            let partition = Partition::uniform(n, 3)?;
            BlockTridiagonal::from_csr(&of(&first)?, partition, HybridLayout::default())?.to_csr()?
        }),
        ("sprs", {
            let mut triplets = sprs::TriMatI::<f64, u32>::new((n, n));
            for i in 0..n {
                for j in i.saturating_sub(1)..(i + 2).min(n) {
                    triplets.add_triplet(i, j, first[(i, j)]);
                }
            }
            from_sprs(triplets.to_csr())?
        }),
        ("faer", of(&first)?),
    ];
    for (name, a) in formats {
        let mut solver = Solver::new(&a, &SolveOptions::default(), &mut ())?;
        for (dense, new) in [(&first, None), (&second, Some(of(&second)?))] {
            if let Some(new) = new {
                solver.refactor(&new, &mut ())?;
            }
            let (b, transposed) = (dense * &x, dense.transpose() * &x);
            for answer in [solver.solve(b.as_ref())?, solver.solve_transposed(transposed.as_ref())?] {
                assert_eq!(answer.report.outcome, Outcome::Converged, "{name}");
                assert!((answer.x - &x).norm_max() < 1e-13, "{name}");
            }
        }
        println!("{name}: {}, log|det A| = {:.6}", solver.method(), solver.log_det().log_abs);
    }
    let singular = Csr::from_dense(mat![[1.0, 2.0], [2.0, 4.0]].as_ref())?;
    assert!(Solver::new(&singular, &SolveOptions::default(), &mut ()).is_err());
    Ok(())
}
