//! Preconditioners without factors: sweep, block_jacobi, and the products of bcsr in the approximate inverse by blocks.

use bt_formats::{Csr, LinearOperator, Matrix, Partition};
use bt_iter::{Series, Triangles};
use bt_kernels::{Device, DeviceInverse, DevicePreconditioner, DeviceScalar, DeviceVec};
use bt_testkit::{chain, csr, stencil};

use crate::support::Numbers;
use crate::support::long_rows;
use crate::{Count, alone, counted, exactly, parallel_cyclic_reduction, tree};

/// An application.
pub fn applied<T: DeviceScalar>(device: &Device, a: &Csr<T>, wanted: &DevicePreconditioner) -> Option<Count> {
    let mut m = DeviceInverse::new(device, a, wanted).unwrap();
    let r = DeviceVec::from_slice(device, &Numbers(4).vector::<T>(a.nrows())).unwrap();
    let mut z = DeviceVec::zeros(device, a.nrows()).unwrap();
    counted(|| m.apply(&r, &mut z).unwrap())
}

fn approximate_inverses<T: DeviceScalar>(device: &Device, a: &Csr<T>, lanes: u64) {
    let (n, nnz, s) = (a.nrows() as u64, a.nnz() as u64, size_of::<T>() as u64);
    // Entries off the diagonal, as many on each side; a sweep over so many of them: entries, gathers, ends of rows, and the tree.
    let z = nnz - n;
    let sweep = |entries: u64| entries * (2 * s + 4) + 8 * lanes * n;
    let tree = tree(n, lanes);
    let ssor = |series, triangles| DevicePreconditioner::SsorAi { omega: 1.2, series, triangles };
    let check = |name: &str, wanted, bytes, flops| {
        exactly(format!("{name}, n = {n}, {lanes} lanes"), applied(device, a, &wanted), bytes, flops);
    };
    let two = 2 * sweep(z / 2);
    check("first", ssor(Series::First, Triangles::Stored), two + 5 * s * n, 2 * z + 4 * n + 2 * tree);
    // D^-1 for every entry of one triangle and every row of the other.
    let more = (s * (z / 2 + n), z / 2 + n);
    let (bytes, flops) = (two + 5 * s * n + more.0, 2 * z + 4 * n + 2 * tree + more.1);
    check("first, free", ssor(Series::First, Triangles::OfMatrix), bytes, flops);
    check("second", ssor(Series::Second, Triangles::Stored), 2 * two + 9 * s * n, 4 * z + 6 * n + 4 * tree);
    let (bytes, flops) = (2 * two + 9 * s * n + 2 * more.0, 4 * z + 6 * n + 4 * tree + 2 * more.1);
    check("second, free", ssor(Series::Second, Triangles::OfMatrix), bytes, flops);
    check("ip", ssor(Series::IncompletePoisson, Triangles::Stored), two + 4 * s * n, 2 * z + 2 * n + 2 * tree);
    let masked = DevicePreconditioner::SsorAiMasked { omega: 1.0 };
    check("masked", masked, sweep(nnz) + s * n, 2 * nnz + tree);
    check("jacobi", DevicePreconditioner::Jacobi, 3 * s * n, 3 * n);
}

fn diagonal_blocks<T: DeviceScalar>(device: &Device) {
    let (s, n) = (size_of::<T>() as u64, 400);
    let a = chain::<T>(400, T::rounded(3.0, 0.0), T::rounded(-1.0, 0.0));
    // Blocks lie side by side in groups of at most as many rows as there are threads; what is left of a row of another block is multiplied by
    // zero.
    for (size, threads, groups) in [(20, 256, &[240, 160][..]), (5, 256, &[255, 145]), (400, 416, &[400])] {
        let partition = Partition::uniform(400, size).unwrap();
        let found = applied(device, &a, &DevicePreconditioner::BlockJacobi(partition));
        let flops = |&rows: &u64| parallel_cyclic_reduction(rows, size as u64);
        let bytes = 5 * s * n + 8 * threads * groups.len() as u64;
        exactly(format!("block jacobi, {size}"), found, bytes, groups.iter().map(flops).sum());
    }
    // Wide blocks: inverses.
    let a = csr::<T>(60, |i, j| T::rounded(if i == j { 9.0 } else { 1.0 / (1.0 + i.abs_diff(j) as f64) }, 0.0));
    for size in [10u64, 15] {
        let partition = Partition::uniform(60, size as usize).unwrap();
        let found = applied(device, &a, &DevicePreconditioner::BlockJacobi(partition));
        let values = 60 * size;
        // Places of a block and of its rows, for every row.
        exactly(format!("inverses, {size}"), found, 2 * s * values + s * 60 + 20 * 60, 2 * values);
    }
}

fn blocks_of_nodes<T: DeviceScalar>(device: &Device) {
    let s = size_of::<T>() as u64;
    for k in [2u64, 3, 6] {
        let n = 60 * k;
        let a = csr::<T>(n as usize, |i, j| {
            let beside = (i as u64 / k).abs_diff(j as u64 / k) <= 1;
            T::rounded(
                if i == j {
                    9.0 * k as f64
                } else if beside {
                    1.0
                } else {
                    0.0
                },
                0.0,
            )
        });
        let found = applied(device, &a, &DevicePreconditioner::BlockSsorAi { omega: 1.2, block_size: k as usize });
        let p = 2 * 59;
        let product = |p: u64| p * (2 * s * k * k + 4 * k) + 8 * n + s * n;
        // Two products with each triangle, one with the diagonal blocks.
        let bytes = 4 * product(p / 2) + 4 * s * n + product(60);
        exactly(format!("block ssor-ai, k = {k}"), found, bytes, 4 * p * k * k + 4 * 3 * n + 2 * 60 * k * k + n);
    }
}

#[test]
fn applications_take_what_their_headers_say() {
    let Some((device, _guard)) = alone() else { return };
    approximate_inverses::<f64>(&device, &stencil(20, 0.0), 1);
    approximate_inverses::<f32>(&device, &stencil(20, 0.0), 1);
    approximate_inverses::<f64>(&device, &long_rows(300, 9, -1.0, -1.0), 8);
    approximate_inverses::<f64>(&device, &long_rows(160, 80, -1.0, -1.0), 32);
    diagonal_blocks::<f64>(&device);
    diagonal_blocks::<f32>(&device);
    blocks_of_nodes::<f64>(&device);
    blocks_of_nodes::<f32>(&device);
}
