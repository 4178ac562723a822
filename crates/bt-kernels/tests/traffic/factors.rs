//! Incomplete factors: ilu0, ilut.

use bt_formats::{Csr, LinearOperator, Matrix};
use bt_iter::{IlutOptions, TriangularSolves};
use bt_kernels::{Device, DeviceInverse, DevicePreconditioner, DeviceScalar, DeviceVec};
use bt_testkit::{csr, stencil};

use crate::support::Numbers;
use crate::{alone, beyond, counted, within};

const ILU0: DevicePreconditioner = DevicePreconditioner::Ilu0(TriangularSolves::Levels);

/// The stencil with the even points before the odd ones: two levels.
fn two_levels<T: DeviceScalar>(k: usize) -> Csr<T> {
    let mut order: Vec<usize> = (0..k * k).collect();
    order.sort_by_key(|i| ((i % k + i / k) % 2, *i));
    let a = stencil::<T>(k, 0.3);
    csr(k * k, |i, j| a.get(order[i], order[j]))
}

/// Where rows are waited for, the reads of what is not there yet come on top: how many is a matter of the order of threads. In two levels
/// and threads that run in order nothing is waited for.
fn solves<T: DeviceScalar>(device: &Device, a: &Csr<T>, waits: fn(u64) -> u64) {
    let (n, nnz, s) = (a.nrows() as u64, a.nnz() as u64, size_of::<T>() as u64);
    let z = nnz - n;
    let mut m = DeviceInverse::new(device, a, &ILU0).unwrap();
    let r = DeviceVec::from_slice(device, &Numbers(4).vector::<T>(a.nrows())).unwrap();
    let mut y = DeviceVec::zeros(device, a.nrows()).unwrap();
    let blocks = n.div_ceil(256);
    let found = counted(|| m.apply(&r, &mut y).unwrap());
    // Values of z for every entry, both ends of rows; tickets of 256 rows and a last one of every thread block, the other's put back.
    let bytes = z * (2 * s + 4) + 28 * n + 8 * s * n + 2 * (16 * blocks + 4);
    within(format!("solves, n = {n}, {s}"), found, bytes..=waits(bytes), 2 * z + n..=2 * z + n);

    let found = counted(|| m.refactor(a).unwrap());
    // Marks of factors and of both x; copies of both triangles and of the reciprocals, where they are taken from.
    let copies = s * (nnz + n) + 2 * s * n + (4 + 2 * s) * (z + n);
    // Row, its ends and its diagonal, the diagonal in and out and in again and what it becomes; entries, for the largest of them.
    let rows = n * (16 + 5 * s) + nnz * s + 16 * blocks;
    // An entry of L, what it waits for, both ends of the row of U that it names, what it finds there and changes; an entry of U handed on.
    let entries = z / 2 * (12 + 6 * s) + z / 2 * 2 * s;
    let bytes = copies + rows + entries + 4 * looks(a);
    // Every entry of L meets one of U that has a place, on the diagonal, whose terms are added up too.
    let flops = z / 2 * (1 + 2 + 1) + 7 * n;
    within(format!("factors, n = {n}, {s}"), found, bytes..=waits(bytes), flops..=flops);
}

/// Columns that are read to find the places of entries of U in the rows that they change.
fn looks<T: DeviceScalar>(a: &Csr<T>) -> u64 {
    let mut looks = 0;
    for i in 0..a.nrows() {
        let row = a.row(i).0;
        for (e, &k) in row.iter().enumerate().take_while(|(_, k)| (**k as usize) < i) {
            let mut at = e + 1;
            for &j in a.row(k as usize).0.iter().filter(|j| **j > k) {
                let behind = row[at..].iter().take_while(|c| **c < j).count();
                at += behind;
                // The entry of U, those before its place, and the place twice, if there is one.
                looks += 1 + behind as u64 + if at < row.len() { 2 } else { 0 };
                if at == row.len() {
                    break;
                }
            }
        }
    }
    looks
}

/// A full matrix: one step finds its pattern, and the next finds it again. A merge goes through the candidates of a row, n of them, and looks
/// at each entry of L each time.
fn search<T: DeviceScalar>(device: &Device, n: usize) {
    let a = csr(n, |i, j| T::rounded(if i == j { n as f64 } else { 1.0 / (1 + i + j) as f64 }, 0.0));
    let wanted = DevicePreconditioner::Ilut(IlutOptions { fill: n, drop_tolerance: 0.0 }, TriangularSolves::Levels);
    let mut facts = None;
    let of_both = counted(|| facts = Some(DeviceInverse::new(device, &a, &wanted).unwrap().facts()));
    // The factors are those of ILU(0), made in the same order.
    let found = beyond(of_both, counted(|| drop(DeviceInverse::new(device, &a, &ILU0).unwrap())));
    assert_eq!(facts.and_then(|facts| facts.search).map(|search| search.steps), Some(2));
    let (n, s) = (n as u64, size_of::<T>() as u64);
    let (entries, products) = (n * (n - 1) / 2, (0..n).map(|i| (0..i).map(|k| n - k - 1).sum::<u64>()).sum::<u64>());
    // Two counts and two lists of candidates, the first of each with U diagonal; two sweeps on their pattern, and one for what is left over.
    let (merges, with_products) = (7, 5);
    // Each of them looks at every entry of L for every candidate and once more, twice: 12 bytes, and four where its row of U is not at its end.
    let looks = 2 * with_products * (n + 1) * entries;
    // Where a row begins, by every lane, as often; candidates that are compared with each other, and counted before they are moved, in both steps.
    let rows = merges * n * (n + 1) * 256;
    let chosen = 2 * (0..n).map(|i| 8 * (i * i + (n - i - 1) * (n - i - 1))).sum::<u64>() + 2 * 4 * n * entries;
    let others = rows + chosen + with_products * products * (4 + 2 * s);
    // The sum over a warp of every candidate, of the rows of U in five measures of their norms; sizes and what is left over: a few for an entry.
    let flops = merges * n * n * 129 + with_products * 2 * products + 5 * 258 * n;
    within(
        format!("ilut, n = {n}, {s}"),
        found,
        12 * looks + others..=16 * looks + others + 100 * n * n,
        flops..=flops + 70 * n * n,
    );
}

#[test]
fn factors_take_what_their_headers_say() {
    let Some((device, _guard)) = alone() else { return };
    bt_cuda_driver::set_seed(0);
    for k in [4, 16, 20] {
        solves::<f64>(&device, &two_levels(k), |bytes| bytes);
        solves::<f32>(&device, &two_levels(k), |bytes| bytes);
        solves::<f64>(&device, &stencil(k, 0.3), |_| u64::MAX);
    }
    for n in [20, 30, 40] {
        search::<f64>(&device, n);
        search::<f32>(&device, n);
    }
}
