//! Products with the exchange against those of the part that a rank has for itself, seven points on slabs of a grid, 10⁶ rows a rank; and what
//! the memory gives to all ranks together, by copies of vectors that no cache holds.
//!
//! `cargo build --release -p bt-mpi --features mpi --benches`, then `mpirun -n 2 target/release/deps/product-…`; by itself it is one rank.
//! Of each the least of 30 rounds in turns, a barrier and ten products or a copy, for the slowest rank.

use std::time::Instant;

use bt_formats::{LinearOperator, Matrix};
use bt_mpi::MpiComm;
use bt_parallel::{Comm, DistributedCsr, Result};

/// Points along x and y of a slab, and planes of a rank.
const SIDE: usize = 100;
const ROUNDS: usize = 30;
const PRODUCTS: usize = 10;
/// Numbers that a rank copies.
const COPIED: usize = 16 << 20;

fn main() -> Result<()> {
    let comm = MpiComm::start()?;
    let (p, rank, plane) = (comm.size(), comm.rank(), SIDE * SIDE);
    let (m, n) = (plane * SIDE, plane * SIDE * p);
    let own: Vec<u32> = (rank * m..(rank + 1) * m).map(|i| i as u32).collect();
    let rows: Vec<(Vec<u32>, Vec<f64>)> = own.iter().map(|&i| row(i as usize, n)).collect();
    let a = DistributedCsr::from_rows(&comm, n, own, rows.iter().map(|(cols, values)| (&cols[..], &values[..])))?;
    drop(rows);
    let (x, mut y) = (vec![1.0; m], vec![0.0; m]);
    let (from, mut to) = (vec![1.0; COPIED], vec![0.0; COPIED]);
    let mut least = [f64::INFINITY; 3];
    for _ in 0..ROUNDS {
        comm.barrier()?;
        let start = Instant::now();
        for _ in 0..PRODUCTS {
            a.apply(1.0, &x, 0.0, &mut y)?;
        }
        let whole = start.elapsed().as_secs_f64();
        comm.barrier()?;
        let start = Instant::now();
        for _ in 0..PRODUCTS {
            a.local().apply(1.0, &x, 0.0, &mut y);
        }
        let local = start.elapsed().as_secs_f64();
        comm.barrier()?;
        let start = Instant::now();
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&to);
        let copy = start.elapsed().as_secs_f64();
        let mut slowest = [whole / PRODUCTS as f64, local / PRODUCTS as f64, copy];
        comm.all_max(&mut slowest)?;
        for (least, seconds) in least.iter_mut().zip(slowest) {
            *least = least.min(seconds);
        }
    }
    // Couplings with other ranks are no part of the local product: rates, not times, are compared.
    let mut entries = [(a.nnz() as f64) / p as f64, a.local().nnz() as f64];
    comm.all_max(&mut entries)?;
    if rank == 0 {
        let rate = [entries[0] / least[0], entries[1] / least[1]];
        println!(
            "{p} ranks of {m} rows: product {:.3} ms, of the own part {:.3} ms, rate {:.3} of the local one; copies {:.1} GB/s in all",
            1e3 * least[0],
            1e3 * least[1],
            rate[0] / rate[1],
            // Read once and written once.
            16e-9 * (p * COPIED) as f64 / least[2]
        );
    }
    Ok(())
}

/// Row i of the scheme on a grid of 100 · 100 · (n / 10⁴) points.
fn row(i: usize, n: usize) -> (Vec<u32>, Vec<f64>) {
    let (place, sizes) = ([i % SIDE, i / SIDE % SIDE, i / SIDE / SIDE], [SIDE, SIDE, n / SIDE / SIDE]);
    let mut entries = vec![(i, 6.0)];
    for (d, step) in [1, SIDE, SIDE * SIDE].into_iter().enumerate() {
        if place[d] > 0 {
            entries.push((i - step, -1.0));
        }
        if place[d] + 1 < sizes[d] {
            entries.push((i + step, -1.0));
        }
    }
    entries.into_iter().map(|(j, v)| (j as u32, v)).unzip()
}
