//! A code that has its rows: convection and diffusion in three dimensions, each rank with a slab of planes, assembled in place and
//! solved by FGMRES with the Schur complement; no file, and no rank that knows the whole matrix.
//!
//! ```text
//! −Δu + w·∂u/∂x = f   on the unit cube, u = 0 on its border       upwind differences on k³ points
//! ```
//!
//! `mpirun -n 4 cargo run --release -p bt-mpi --features mpi --example slabs -- 40`

use bt_formats::{Outcome, StopCriterion};
use bt_mpi::MpiComm;
use bt_parallel::{Comm, DistributedCsr, Error, Krylov, LocalSolver, Method, Result, RowRanges, Schur, Timed};

/// Wind along x, in units of the diffusion.
const WIND: f64 = 20.0;

fn main() -> Result<()> {
    let mpi = MpiComm::start()?;
    let comm = Timed::new(&mpi);
    let k: usize = std::env::args().nth(1).and_then(|k| k.parse().ok()).unwrap_or(24);
    // Planes z = constant are consecutive rows: a slab for each rank.
    let planes = RowRanges::even(k, comm.size(), 1).of(comm.rank());
    let own: Vec<u32> = (planes.start * k * k..planes.end * k * k).map(|i| i as u32).collect();
    let rows: Vec<(Vec<u32>, Vec<f64>)> = own.iter().map(|&i| row(i as usize, k)).collect();
    let a =
        DistributedCsr::from_rows(&comm, k * k * k, own, rows.iter().map(|(cols, values)| (&cols[..], &values[..])))?;
    let h = 1.0 / (k + 1) as f64;
    let b = vec![h * h; a.rows().own().len()];

    let meter = comm.meter();
    let mut m = Schur::new(&a, |local| LocalSolver::Ilu0.of(local))?;
    let mut x = vec![0.0; b.len()];
    let mut fgmres = Krylov::new(&a, Method::Fgmres { restart: 30 });
    let report = fgmres.solve(&a, &mut m, &b, &mut x, &StopCriterion::default(), &mut ())?;
    let costs = meter.stop(&comm).over_ranks(&comm)?;
    if comm.rank() == 0 {
        let (iterations, error) = (report.iterations, report.certificate.backward_error);
        println!("{} unknowns, {iterations} iterations, backward error {error:.1e}\n{costs}", a.rows().n());
    }
    match report.outcome {
        Outcome::Converged => Ok(()),
        other => Err(Error::OutOfStep { rank: comm.rank(), message: format!("it ended as {}", other.name()) }),
    }
}

/// Row i of the scheme, times h².
fn row(i: usize, k: usize) -> (Vec<u32>, Vec<f64>) {
    let h = 1.0 / (k + 1) as f64;
    let (place, steps) = ([i % k, i / k % k, i / k / k], [1, k, k * k]);
    let upwind = WIND * h;
    let mut entries = vec![(i, 6.0 + upwind)];
    for d in 0..3 {
        if place[d] > 0 {
            entries.push((i - steps[d], if d == 0 { -1.0 - upwind } else { -1.0 }));
        }
        if place[d] + 1 < k {
            entries.push((i + steps[d], -1.0));
        }
    }
    entries.into_iter().map(|(j, v)| (j as u32, v)).unzip()
}
