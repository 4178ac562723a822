//! Tridiagonal lines that cross the ranks: 1024 of them, of 2048 unknowns each, however many ranks have them.
//!
//! `cargo build --release -p bt-mpi --features mpi --benches`, then `mpirun -n 2 target/release/deps/lines-…`; by itself it is one rank.
//! One JSON object for the slowest rank, the least of 20 rounds, with the time in communication of that round: `two_ranks.py` reads it.

use bt_mpi::MpiComm;
use bt_parallel::{Comm, Lines, Result, RowRanges, Timed};

const LINES: usize = 1024;
const UNKNOWNS: usize = 2048;
const ROUNDS: usize = 20;

fn main() -> Result<()> {
    let mpi = MpiComm::start()?;
    let comm = Timed::new(&mpi);
    let rows = RowRanges::even(UNKNOWNS, comm.size(), 1).of(comm.rank()).len();
    let (beside, own) = (vec![-1.0; rows * LINES], vec![2.5; rows * LINES]);
    // Setup and solve: seconds, of them in communication.
    let mut least = [[f64::INFINITY, 0.0]; 2];
    let mut x = vec![0.0; rows * LINES];
    for _ in 0..ROUNDS {
        comm.barrier()?;
        let meter = comm.meter();
        let lines = Lines::new(&comm, LINES, &beside, &own, &beside)?;
        let setup = meter.stop(&comm).over_ranks(&comm)?;
        x.fill(1.0);
        comm.barrier()?;
        let meter = comm.meter();
        lines.solve_in_place(&mut x)?;
        let solve = meter.stop(&comm).over_ranks(&comm)?;
        for (least, costs) in least.iter_mut().zip([setup, solve]) {
            if costs.seconds.most < least[0] {
                *least = [costs.seconds.most, costs.communication.most];
            }
        }
    }
    if comm.rank() == 0 {
        let [[setup, sent], [solve, sent_back]] = least;
        println!(
            "{{\"seconds\":{{\"setup\":{setup:e},\"solve\":{solve:e}}},\"per_rank\":{{\"communication\":{{\"most\":{:e}}}}},\"iterations\":null}}",
            sent + sent_back
        );
    }
    Ok(())
}
