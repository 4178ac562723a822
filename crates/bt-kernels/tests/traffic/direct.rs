//! Direct methods: tridiagonal, tridiagonal_once, block_lu, band_lu, spike, dense.

use bt_direct::batch::Layout;
use bt_direct::{Factorization, RbtOptions};
use bt_formats::{Band, BlockTridiagonal, Partition, Scalar, Tridiagonal};
use bt_kernels::{
    BlockSolver, Device, DeviceBandLu, DeviceBlockLu, DeviceRbt, DeviceScalar, DeviceSpike, DeviceTridiagonal,
    DeviceTridiagonalBatch, DeviceVec, Schedule,
};
use faer::Mat;

use crate::support::Numbers;
use crate::{Count, alone, counted, cyclic_reduction, exactly, parallel_cyclic_reduction, within};

fn line<T: Scalar>(n: usize) -> [Vec<T>; 3] {
    let value = |v: f64| T::rounded(v, 0.0);
    [vec![value(-1.0); n], vec![value(3.0); n], vec![value(-0.5); n]]
}

fn batches<T: DeviceScalar>(device: &Device, n: usize, m: usize) {
    let s = size_of::<T>() as u64;
    let [lower, diag, upper] = line::<T>(n * m);
    let of = |layout, solver| {
        let batch = DeviceTridiagonalBatch::new(device, layout, n, &lower, &diag, &upper).unwrap();
        let mut batch = batch.with_solver(solver).unwrap();
        batch.vectors().0.copy_from(&Numbers(6).vector::<T>(n * m)).unwrap();
        counted(|| batch.solve_on_device().unwrap())
    };
    let (n, m) = (n as u64, m as u64);
    let found = of(Layout::Interleaved, BlockSolver::Thomas);
    exactly(format!("interleaved, {m} of {n}"), found, m * (13 * s * n - 8 * s + 8), m * (16 * n - 4));
    let threads = n.next_multiple_of(32);
    // The residual, whose first term idle threads have too in double precision; row sums and two numbers by all.
    let error = 6 * n - 4 + 2 * threads + 3 + if s == 8 { 2 * (threads - n) } else { 0 };
    for (solver, flops) in [
        (BlockSolver::ParallelCyclicReduction, parallel_cyclic_reduction(n, n)),
        (BlockSolver::CyclicReduction, cyclic_reduction(n)),
        (BlockSolver::Thomas, 8 * n - 7),
    ] {
        let found = of(Layout::Strided, solver);
        exactly(format!("strided, {m} of {n}, {solver:?}"), found, m * (9 * s * n - 4 * s + 8), m * (flops + error));
    }
}

fn once<T: DeviceScalar>(device: &Device, n: usize, nrhs: usize) {
    let s = size_of::<T>() as u64;
    let [mut lower, diag, mut upper] = line::<T>(n);
    (lower[0], upper[n - 1]) = (T::default(), T::default());
    let a = Tridiagonal::new(lower, diag, upper).unwrap();
    let mut method = DeviceTridiagonal::new(device, &a).unwrap();
    let mut x = DeviceVec::from_slice(device, &Numbers(7).vector::<T>(n * nrhs)).unwrap();
    let found = counted(|| method.solve_on_device(&mut x).unwrap());
    let (n, rows) = (n as u64, if s == 8 { 15 } else { 31 });
    let (tile, inner) = (64 * rows, 64 * (rows - 2));
    // Rows scaled; the first elimination; merges in pairs, 69 operations each; the way back through them and at its top; the second
    // elimination and the way back.
    let (down, top) = (63 * 18, 9);
    let (reduce, up, solve) = (4 * tile + 22 * inner, 63 * 69, 64 * 6 + 21 * inner);
    let mut counts = vec![n.div_ceil(tile)];
    while let Some(&count) = counts.last().filter(|count| **count > 64) {
        counts.push(count.div_ceil(64));
    }
    let (tiles, last) = (counts[0], counts.len() - 1);
    // What remains of pieces, ten values, and what is known at their ends, two and one beside them on either side.
    let around = |groups: u64| if groups > 1 { 4 * groups - 2 } else { 0 };
    let (mut values, mut flops) = (5 * n - 2, reduce + up + down + top + solve);
    if tiles > 1 {
        values = 9 * n - 4 + 10 * tiles + around(tiles);
        flops = tiles * (2 * (reduce + up) + down + solve);
        for (k, &count) in counts.iter().enumerate() {
            let groups = count.div_ceil(64);
            if k < last {
                values += 10 * (count + groups);
                flops += groups * up;
            }
            values += 10 * count + 2 * count + around(groups);
            flops += groups * (up + down) + if groups == 1 { top } else { 0 };
        }
    }
    exactly(format!("once, n = {n}, {nrhs}"), found, nrhs as u64 * values * s, nrhs as u64 * flops);
}

fn blocks<T: DeviceScalar>(device: &Device, sizes: &[usize]) {
    let (mut numbers, s) = (Numbers(8), size_of::<T>() as u64);
    let (d, c) = (sizes.iter().map(|k| k * k).sum(), sizes.windows(2).map(|k| 2 * k[0] * k[1]).sum());
    let partition = Partition::from_sizes(sizes.iter().copied()).unwrap();
    let a = BlockTridiagonal::from_dense_blocks(partition, numbers.vector::<T>(d), numbers.vector(c)).unwrap();
    let mut lu = None;
    let found = counted(|| lu = Some(DeviceBlockLu::new(device, &[&a]).unwrap()));
    let blocks: Vec<[u64; 2]> =
        (0..sizes.len()).map(|j| [sizes[j] as u64, sizes.get(j + 1).map_or(0, |&k| k as u64)]).collect();
    let threads = blocks.iter().map(|[k, below]| k + below).max().unwrap().next_power_of_two().clamp(32, 256);
    let (mut values, mut exchanged, mut flops) = (0, 0, 0);
    for &[k, below] in &blocks {
        for c0 in (0..k).step_by(16) {
            let (nb, rows) = ((k - c0).min(16), k + below - c0);
            let width = k - c0 - nb + below;
            // The panel in and out; rows of U in and out, and the rest.
            values += 2 * nb * rows + 2 * nb * width + 2 * (rows - nb) * width;
            // What exchanges move, to the right and to the left.
            exchanged += 4 * nb * (width + c0);
            flops += (0..nb).map(|c| (rows - c - 1) * (1 + 2 * (nb - c - 1))).sum::<u64>();
            // Updates are as deep as a panel may be.
            flops += nb * (nb - 1) * width + 32 * (rows - nb) * width;
        }
    }
    // Places of blocks by every thread, of its own and of the next; what pivoting has put where.
    let n = blocks.iter().map(|[k, _]| k).sum::<u64>();
    let bytes = s * (values + exchanged) + 4 * n + 4;
    within(
        format!("block lu, {sizes:?}, {s}"),
        found,
        bytes..=bytes + 64 * threads * blocks.len() as u64,
        flops..=flops,
    );
    for nrhs in [1u64, 8, 9] {
        let mut x = Mat::from_fn(a.n(), nrhs as usize, |_, _| numbers.real::<T>());
        let found = counted(|| lu.as_ref().unwrap().solve_once(x.as_mut()).unwrap());
        let (together, groups) = if nrhs == 1 { (1, 1) } else { (8, nrhs.div_ceil(8)) };
        let (mut values, mut vectors, mut flops) = (0, blocks[0][0], 0);
        for &[k, below] in &blocks {
            // L and H; G; U, and a pivot for each of its values and for its own row.
            values += (0..k).map(|c| k + below - c - 1).sum::<u64>() + below * k + k * (k - 1) + k;
            vectors += k + below + 2 * k;
            flops += 2 * (0..k).map(|c| k + below - c - 1).sum::<u64>() + 2 * below * k + 3 * k * (k - 1) / 2 + k;
        }
        let bytes = s * (groups * values + nrhs * vectors) + groups * 4 * n;
        within(
            format!("block lu, {sizes:?}, {s}, {nrhs} columns"),
            found,
            bytes..=bytes + groups * 64 * threads * blocks.len() as u64,
            groups * together * flops..=groups * together * flops,
        );
    }
}

fn band<T: Scalar>(n: usize, kl: usize, ku: usize, diagonal: f64) -> Band<T> {
    let mut numbers = Numbers(9);
    let mut a = Band::zeros(n, kl, ku).unwrap();
    for j in 0..n {
        for i in a.column_range(j) {
            *a.get_mut(i, j) = numbers.real::<T>() + T::rounded(if i == j { diagonal } else { 0.0 }, 0.0);
        }
    }
    a
}

/// A solve for so many columns, of systems of these rows and bandwidths.
fn band_solve(systems: &[[u64; 3]], nrhs: u64, s: u64) -> Count {
    let (mut bytes, mut flops) = (0, 0);
    for &[n, kl, ku] in systems {
        // What a system is, by every lane.
        bytes += 28 * 32;
        for j in 0..n {
            let (below, above) = (kl.min(n - 1 - j), (kl + ku).min(j));
            // The exchange of a row and its pivot by every lane, columns of L and of U, x in and out on both ways.
            bytes += 32 * (4 + s) + s * (below + above) + 4 * s;
            flops += 2 * below + 2 * above + 32;
        }
    }
    Count { bytes: nrhs * bytes, flops: nrhs * flops }
}

fn bands<T: DeviceScalar>(device: &Device, n: usize, kl: usize, ku: usize) {
    let (a, s) = (band::<T>(n, kl, ku, 0.0), size_of::<T>() as u64);
    let mut lu = None;
    let found = counted(|| lu = Some(DeviceBandLu::new(device, &[&a]).unwrap()));
    let shape @ [n, kl, ku] = [n, kl, ku].map(|v| v as u64);
    let (kv, ld, width) = (kl + ku, 2 * kl + ku + 1, kl + ku + 1);
    let threads = (kl * width).max(1).next_power_of_two().clamp(32, 256);
    // What the system is, by every thread; exchanges; the status.
    let (places, mut flops) = (24 * threads + 4 * n + 4, 0);
    let (mut least, mut exchanged) = (0, 0);
    for j in 0..n {
        let (below, right) = (kl.min(n - 1 - j), kv.min(n - 1 - j));
        flops += below + 2 * below * right;
        // Where the window is not in shared memory: the search, two elements by every thread, the column, and its update by whole warps.
        least += (below + 1) + 2 * threads + below + right * (32 + 2 * below) + ld;
        exchanged += 4 * right;
    }
    let what = format!("band lu, n = {n}, kl = {kl}, ku = {ku}, {s}");
    if (width * ld + kl + 1) * s <= 49152 - 1024 {
        exactly(&what, found, 2 * s * n * ld + places, flops);
    } else {
        let least = s * least + places;
        within(&what, found, least..=least + s * exchanged, flops..=flops);
    }
    for nrhs in [1u64, 3] {
        let mut x = Mat::from_fn(n as usize, nrhs as usize, |_, _| Numbers(nrhs).real::<T>());
        let found = counted(|| lu.as_ref().unwrap().solve_once(x.as_mut()).unwrap());
        let Count { bytes, flops } = band_solve(&[shape], nrhs, s);
        exactly(format!("{what}, {nrhs} columns"), found, bytes, flops);
    }
}

fn spike<T: DeviceScalar>(device: &Device) {
    let (a, s) = (band::<T>(60, 2, 1, 5.0), size_of::<T>() as u64);
    let spike = DeviceSpike::band(device, &a, Some(3)).unwrap();
    assert_eq!(spike.partitions(), [20; 3]);
    let mut x = Mat::from_fn(60, 4, |_, _| T::rounded(1.0, 0.0));
    let found = counted(|| spike.solve_once(x.as_mut()).unwrap());
    // Two solves of the partitions, and the rows next to the cuts out of every column.
    let (solve, tips) = (band_solve(&[[20, 2, 1]; 3], 4, s), 2 * 3 * 4);
    exactly(format!("spike, {s}"), found, 2 * solve.bytes + (2 * s + 4) * tips, 2 * solve.flops);
}

/// One triangle of n rows, w right-hand sides, `wide` of them at once: panels of 32.
fn substitution(n: u64, nrhs: u64, s: u64, division: u64) -> Count {
    let (mut bytes, mut flops) = (0, 0);
    for panel in 0..n / 32 {
        // Rows that come later; the forward and the backward triangle have as many.
        let rest = n - 32 * (panel + 1);
        let blocks = rest.div_ceil(256).max(1);
        // Every thread block solves with the diagonal block.
        bytes += blocks * (s * 1024 + s * 32 * nrhs) + s * 32 * nrhs + s * rest * (32 + 2 * nrhs);
        flops += blocks * nrhs * (992 + 32 * division) + 64 * rest * nrhs;
    }
    Count { bytes, flops }
}

fn dense_solve(n: u64, depth: u64, nrhs: u64, s: u64) -> Count {
    let [lower, upper] = [0, 1].map(|division| substitution(n, nrhs, s, division));
    let (values, flops) = if depth == 0 { (0, 0) } else { (2 * (2 + depth) * n * nrhs, 4 * depth * n * nrhs) };
    Count { bytes: lower.bytes + upper.bytes + s * values, flops: lower.flops + upper.flops + flops }
}

fn dense<T: DeviceScalar>(device: &Device, n: usize, depth: usize) {
    let (mut numbers, s) = (Numbers(11), size_of::<T>() as u64);
    let a = Mat::from_fn(n, n, |_, _| numbers.real::<T>());
    let options = RbtOptions { depth, ..RbtOptions::default() };
    let mut lu = None;
    let made = || DeviceRbt::with_options(device, a.as_ref(), options, Schedule::Launches).unwrap();
    let found = counted(|| lu = Some(made()));
    let (n, depth) = (n as u64, depth as u64);
    // The butterflies of both sides; a trial solve; the diagonal blocks put back; pivots and the largest elements.
    let trial = dense_solve(n, depth, 1, s);
    let mut bytes = trial.bytes + 2 * s * 32 * n + s * n * n + s * n + 24 * n;
    let mut flops = trial.flops + 4 * depth * n * n;
    bytes += if depth == 0 { 0 } else { 2 * (2 + depth) * s * n * n };
    for first in (0..n).step_by(128) {
        let outer = (first + 128).min(n);
        for k in (first..outer).step_by(32) {
            let low = k + 32;
            let (rest, groups) = (n - low, (n - low).div_ceil(256));
            let blocks = (2 * groups).max(1);
            // Every thread block factors the diagonal block; a row of L or a column of U a thread, of U in whole thread blocks.
            bytes += blocks * s * 1024 + s * 1024 + 4 + if k > 0 { blocks * 1024 } else { 0 } + 4 * s * 32 * rest;
            flops += blocks * (32 * 256 + 8 * 496 + 2 * 10416 + 496) + 1024 * rest + groups * 256 * 992;
            if rest == 0 {
                break;
            }
            let (from, high) = if low < outer { (k, outer) } else { (first, n) };
            let (across, strip) = (rest.div_ceil(64), (high - low).div_ceil(64));
            let tiles = across * across - (across - strip) * (across - strip);
            // Rows and columns of all tiles, to the depth of the update; what it changes.
            let (mut rows, changed) = (0, rest * rest - (n - high) * (n - high));
            for tile in (0..across * across).filter(|t| t / across < strip || t % across < strip) {
                rows += [tile / across, tile % across].map(|t| (rest - 64 * t).min(64)).iter().sum::<u64>();
            }
            bytes += tiles * 1024 + s * rows * (low - from) + 2 * s * changed;
            flops += tiles * 8192 * (low - from) + changed;
        }
    }
    exactly(format!("dense, n = {n}, depth {depth}, {s}"), found, bytes, flops);
    for nrhs in [1, 3, 8] {
        let mut x = Mat::from_fn(n as usize, nrhs, |_, _| numbers.real::<T>());
        let found = counted(|| lu.as_ref().unwrap().solve_in_place(x.as_mut()));
        let Count { bytes, flops } = dense_solve(n, depth, nrhs as u64, s);
        exactly(format!("dense, n = {n}, depth {depth}, {nrhs} columns"), found, bytes, flops);
    }
}

#[test]
fn direct_methods_take_what_their_headers_say() {
    let Some((device, _guard)) = alone() else { return };
    for (n, m) in [(1, 3), (20, 40), (33, 7), (64, 2)] {
        batches::<f64>(&device, n, m);
        batches::<f32>(&device, n, m);
    }
    for (n, nrhs) in [(100, 1), (960, 1), (961, 1), (3000, 2), (62_000, 1)] {
        once::<f64>(&device, n, nrhs);
    }
    once::<f32>(&device, 100, 1);
    once::<f32>(&device, 2000, 1);
    for sizes in [&[1][..], &[4, 4], &[16, 16], &[20, 17, 5], &[40, 40, 40]] {
        blocks::<f64>(&device, sizes);
        blocks::<f32>(&device, sizes);
    }
    for (n, kl, ku) in [(1, 0, 0), (50, 3, 2), (70, 16, 16), (60, 40, 40)] {
        bands::<f64>(&device, n, kl, ku);
        bands::<f32>(&device, n, kl, ku);
    }
    spike::<f64>(&device);
    spike::<f32>(&device);
    for (n, depth) in [(32, 0), (64, 0), (64, 1), (64, 2), (256, 2), (320, 2)] {
        dense::<f64>(&device, n, depth);
    }
    dense::<f32>(&device, 64, 2);
}
