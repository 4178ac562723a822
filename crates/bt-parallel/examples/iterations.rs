//! Iterations of FGMRES(50) to 10⁻⁸ as functions of the number of ranks: block Jacobi, restricted Schwarz with overlap 1 to 3, and the Schur
//! complement, each with ILU(0) and with exact local solvers, on convection and diffusion on a square that is divided by site expansion.
//!
//! Run with `cargo run --release -p bt-parallel --example iterations -- 64`, 64 the points of a side.

use bt_formats::{Csr, Outcome, StopCriterion};
use bt_iter::Overlap;
use bt_parallel::{
    DistributedCsr, DistributedPreconditioner, Division, Krylov, LocalSolver, Method, Result, Schur, Schwarz,
    ThreadComm, thread_comm,
};

/// Which preconditioner.
#[derive(Clone, Copy)]
enum Global {
    Schwarz { layers: usize },
    Schur,
}

fn main() {
    let side = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(32);
    let a = convection(side);
    println!("| ranks | division | local | block Jacobi | RAS 1 | RAS 2 | RAS 3 | Schur |");
    println!("|---|---|---|---|---|---|---|---|");
    for p in [1, 2, 4, 8, 16, 32] {
        let division = Division::site_expansion(&a, p).expect("the matrix is square");
        let quality = division.quality(&a);
        for (name, solver) in [("ILU(0)", LocalSolver::Ilu0), ("sparse LU", LocalSolver::SparseLu)] {
            print!("| {p} | {} cut, balance {:.3} | {name} |", quality.cut, quality.row_balance);
            for global in (0..=3).map(|layers| Global::Schwarz { layers }).chain([Global::Schur]) {
                print!(" {} |", iterations(&a, &division, global, solver));
            }
            println!();
        }
    }
}

/// Iterations, or how the solve ended otherwise.
fn iterations(a: &Csr<f64>, division: &Division, global: Global, solver: LocalSolver) -> String {
    let on_rank = |comm: &ThreadComm| -> Result<(Outcome, usize)> {
        let a = DistributedCsr::from_replicated(comm, a, division)?;
        let mut m: Box<dyn DistributedPreconditioner<f64> + '_> = match global {
            Global::Schwarz { layers } => {
                Box::new(Schwarz::new(&a, layers, Overlap::Restricted, |local| solver.of(local))?)
            }
            Global::Schur => Box::new(Schur::new(&a, |local| solver.of(local))?),
        };
        let mut x = vec![0.0; a.rows().own().len()];
        let b = vec![1.0; x.len()];
        let mut fgmres = Krylov::new(&a, Method::Fgmres { restart: 50 });
        let report = fgmres.solve(&a, &mut *m, &b, &mut x, &StopCriterion::default(), &mut ())?;
        Ok((report.outcome, report.iterations))
    };
    match thread_comm::run(division.n_ranks(), on_rank).swap_remove(0) {
        Ok((Outcome::Converged, iterations)) => iterations.to_string(),
        Ok((outcome, iterations)) => format!("{} after {iterations}", outcome.name()),
        Err(error) => error.to_string(),
    }
}

/// −Δu + w·∇u by central differences, five points, w·h/2 = 0.4 in one direction.
fn convection(side: usize) -> Csr<f64> {
    let n = side * side;
    let (mut ptr, mut cols, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        let (x, y) = (i % side, i / side);
        let near = [
            (y > 0, i.wrapping_sub(side), -1.0),
            (x > 0, i.wrapping_sub(1), -1.4),
            (true, i, 4.0),
            (x + 1 < side, i + 1, -0.6),
            (y + 1 < side, i + side, -1.0),
        ];
        for (_, j, v) in near.into_iter().filter(|e| e.0) {
            cols.push(j as u32);
            values.push(v);
        }
        ptr.push(cols.len() as u32);
    }
    Csr::new(n, n, ptr, cols, values).expect("columns increase")
}
