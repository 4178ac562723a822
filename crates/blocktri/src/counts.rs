//! Counted work of the methods: operations, bytes and steps by structure, which [`Machine`](crate::cost::Machine) makes seconds of.
//!
//! Direct methods are counted with a factorization and one solve, iterations with a setup and so many steps. The counts of bands,
//! blocks and dense matrices are closed sums over their sizes; those of sparse factors are what a symbolic phase found.

use bt_direct::{BlockLu, SymbolicCholesky, SymbolicLu};
use bt_formats::reorder::minimum_degree;
use bt_formats::{Csr, HybridLayout, LinearOperator, Matrix, Partition, Scalar, zero};

use crate::cost::{Kernel, Work, arithmetic};
use crate::method::KrylovMethod;

/// Work of `flops` real operations in all that writes `values` numbers once and reads them once, without a symbolic phase.
pub(crate) fn work<T: Scalar>(kernel: Kernel, steps: f64, flops: f64, values: f64) -> Work {
    let moved = 2.0 * values * size_of::<T>() as f64;
    Work { kernel, steps, flops: arithmetic::<T>() * flops, moved, ordered: 0.0, paired: 0.0, analysed: 0.0 }
}

pub(crate) fn tridiagonal_work<T: Scalar>(n: usize) -> Work {
    let n = n as f64;
    work::<T>(Kernel::Tridiagonal, n, 10.0 * n, 4.0 * n)
}

/// Of a band LU, whose factorization and one solve take `flops`.
pub(crate) fn band_work<T: Scalar>(n: usize, (kl, ku): (usize, usize), flops: f64) -> Work {
    work::<T>(Kernel::Band, n as f64, flops, n as f64 * (2 * kl + ku + 1) as f64)
}

/// Of a band LU without row interchanges and one solve.
pub(crate) fn band_nopivot_work<T: Scalar>(n: usize, (kl, ku): (usize, usize)) -> Work {
    work::<T>(Kernel::BandNoPivot, n as f64, band_flops(n, kl, ku), n as f64 * (kl + ku + 1) as f64)
}

pub(crate) fn half_band_work<T: Scalar>(n: usize, k: usize) -> Work {
    let flops = products(n, k, k) + 4.0 * products(n, k, 1) + n as f64;
    work::<T>(Kernel::BandCholesky, n as f64, flops, n as f64 * (k as f64 + 1.0))
}

pub(crate) fn block_work<T: Scalar>(partition: &Partition) -> Work {
    let values = BlockLu::<f64>::bytes(partition) / 8.0;
    // Where it stores blocks otherwise, it has registers for them.
    let is_default = BlockLu::<T>::layout(partition) == HybridLayout::default();
    let kernel = if is_default { Kernel::Blocks } else { Kernel::EqualBlocks };
    work::<T>(kernel, partition.n_blocks() as f64, block_flops(partition), values)
}

pub(crate) fn half_block_work<T: Scalar>(partition: &Partition) -> Work {
    let values = BlockLu::<f64>::bytes(partition) / 16.0;
    work::<T>(Kernel::BlockCholesky, partition.n_blocks() as f64, block_flops(partition) / 2.0, values)
}

pub(crate) fn dense_work<T: Scalar>(n: usize) -> Work {
    let n = n as f64;
    work::<T>(Kernel::Dense, n, 2.0 / 3.0 * n.powi(3) + 2.0 * n * n, n * n)
}

/// Σ min(p, m)·min(q, m) over m = 0 … n − 1: products of the columns below and the rows right of the diagonal, which the last rows cut short.
fn products(n: usize, p: usize, q: usize) -> f64 {
    let last = n.saturating_sub(1);
    let (p, q) = (p.min(q).min(last) as f64, p.max(q).min(last) as f64);
    let (sum, squares) = (|k: f64| k * (k + 1.0) / 2.0, |k: f64| k * (k + 1.0) * (2.0 * k + 1.0) / 6.0);
    squares(p) + p * (sum(q) - sum(p)) + (last as f64 - q) * p * q
}

/// Flops of a band LU, whose U has `upper` super-diagonals, and one solve.
pub(crate) fn band_flops(n: usize, kl: usize, upper: usize) -> f64 {
    2.0 * products(n, kl, upper) + 3.0 * products(n, kl, 1) + 2.0 * products(n, upper, 1) + n as f64
}

/// The same where the pivot of a column is its largest entry on or below the diagonal in A itself, row i and column j of which are row `place(i)` and
/// column `place(j)` of the band. Rows exchanged reach further: U has a column as long as the farthest of the pivots so far. O(nnz).
pub(crate) fn pivoted_band_flops<T: Scalar>(
    a: &Csr<T>,
    place: impl Fn(usize) -> usize,
    (kl, ku): (usize, usize),
) -> f64 {
    let n = a.nrows();
    let mut pivots: Vec<(T::Real, usize)> = (0..n).map(|j| (zero(), j)).collect();
    for row in 0..n {
        let i = place(row);
        let (cols, values) = a.row(row);
        for (&col, v) in cols.iter().zip(values) {
            let j = place(col as usize);
            let size = v.abs1();
            // Among equals the diagonal, which is in place.
            if i > j && size > pivots[j].0 || i == j && size >= pivots[j].0 {
                pivots[j] = (size, i);
            }
        }
    }
    let (mut reach, mut flops) = (0, 0.0);
    for (j, (_, pivot)) in pivots.into_iter().enumerate() {
        reach = reach.max((pivot + ku + 1).min(n));
        let (below, right) = (kl.min(n - 1 - j), reach - j - 1);
        flops += (below * (2 * right + 3) + 2 * right + 1) as f64;
    }
    flops
}

/// Flops of a block LU and one solve.
pub(crate) fn block_flops(partition: &Partition) -> f64 {
    let solve: f64 = partition.sizes().map(|k| 6.0 * (k * k) as f64).sum();
    BlockLu::<f64>::flops(partition) + solve
}

/// Of an elimination and one solve in the order of sparse LU.
pub(crate) fn sparse_lu_work<T: Scalar>(a: &Csr<T>, symbolic: &SymbolicLu) -> Work {
    let kernel = if symbolic.is_by_columns() { Kernel::SparseColumns } else { Kernel::Sparse };
    let paired = if symbolic.is_symmetric() { 0.0 } else { paired(a, symbolic) };
    let flops = symbolic.flops() + symbolic.solve_flops();
    Work { paired, ..sparse_work(a, kernel, symbolic.fill() as f64, flops) }
}

/// Of L·D·Lᴴ: where rows are paired, they are matched first, as rows and columns of a pattern are that is not symmetric.
pub(crate) fn sparse_ldl_work<T: Scalar>(a: &Csr<T>, symbolic: &SymbolicCholesky) -> Work {
    let paired = if symbolic.has_pairs() { (a.nrows() + a.nnz()) as f64 } else { 0.0 };
    let flops = symbolic.flops() + symbolic.solve_flops();
    Work { paired, ..sparse_work(a, Kernel::SparseLdl, symbolic.fill() as f64, flops) }
}

/// Of a sparse factorization and one solve: its order and its symbolic phase. Bytes go with the entries of the factors, which are the steps.
fn sparse_work<T: Scalar>(a: &Csr<T>, kernel: Kernel, entries: f64, flops: f64) -> Work {
    let (n, nnz) = (a.nrows() as f64, a.nnz() as f64);
    Work { ordered: nnz, analysed: n + nnz, ..work::<T>(kernel, entries, flops, 0.0) }
}

/// Rows and entries of A, whose pattern is not symmetric, and entries of its factors, each of which elimination without numbers goes over
/// in a fifth of the time that matching and ordering take for one of A (of generated circuits with 6·10³ and 1.5·10⁵ of them).
pub(crate) fn paired<T: Scalar>(a: &Csr<T>, symbolic: &SymbolicLu) -> f64 {
    (a.nrows() + a.nnz()) as f64 + symbolic.fill() as f64 / 5.0
}

/// What elimination without interchanges fills in approximate minimum degree order of A + Aᵀ.
#[derive(Clone, Copy)]
pub(crate) struct Fill {
    n: f64,
    /// Entries of A.
    nnz: f64,
    /// Entries of L below its diagonal.
    below: f64,
    lu_flops: f64,
    half_flops: f64,
}

impl Fill {
    /// `None` when it cannot be told.
    pub fn of<T: Scalar>(a: &Csr<T>) -> Option<Self> {
        // Kept with the pattern: the factorization finds it there.
        let found = minimum_degree(a).ok()?;
        let flops = |products: f64| found.below + 2.0 * products;
        let (lu_flops, half_flops) = (flops(found.lu_products), flops(found.ldl_products));
        Some(Self { n: a.nrows() as f64, nnz: a.nnz() as f64, below: found.below, lu_flops, half_flops })
    }

    pub fn lu_entries(&self) -> f64 {
        2.0 * self.below + self.n
    }

    pub fn lu_work<T: Scalar>(&self, a: &Csr<T>) -> Work {
        let by_columns = SymbolicLu::pays_by_columns(self.lu_flops, self.lu_entries());
        let kernel = if by_columns { Kernel::SparseColumns } else { Kernel::Sparse };
        sparse_work(a, kernel, self.lu_entries(), self.lu_flops + 2.0 * self.lu_entries())
    }

    pub fn half_work<T: Scalar>(&self, a: &Csr<T>) -> Work {
        let entries = self.half_entries();
        sparse_work(a, Kernel::SparseCholesky, entries, self.half_flops + 4.0 * entries)
    }

    /// Entries of L.
    pub fn half_entries(&self) -> f64 {
        self.below + self.n
    }

    /// Of Cholesky factors with all that makes them, which [`SymbolicCholesky::bytes`] counts.
    pub fn half_bytes<T: Scalar>(&self) -> u64 {
        let (number, entries, Self { n, nnz, half_flops, .. }) = (size_of::<T>() as f64, self.half_entries(), *self);
        // The order, A's pattern, and vectors side by side.
        let kept = n * (8.0 * number + 16.0) + 4.0 * nnz;
        let factors = if SymbolicCholesky::pays_by_rows(half_flops, entries) {
            // And one half of A.
            (entries + f64::midpoint(n, nnz)) * (number + 4.0) + n * (number + 24.0)
        } else {
            number * (0.93 * entries + 1.65 * block_of(half_flops) + 9.9 * n)
        };
        (kept + factors) as u64
    }

    /// Of LU factors with all that makes them, which [`SymbolicLu::bytes`] counts.
    pub fn lu_bytes<T: Scalar>(&self) -> u64 {
        let (number, entries, Self { n, nnz, lu_flops, .. }) = (size_of::<T>() as f64, self.lu_entries(), *self);
        // The order, factors of units, A by columns, and vectors side by side.
        let kept = n * (10.0 * number + 20.0) + nnz * (number + 8.0);
        let factors = if SymbolicLu::pays_by_columns(lu_flops, entries) {
            (entries - n) * (number + 4.0) + n * (2.0 * number + 48.0)
        } else {
            number * (0.97 * entries + 0.72 * block_of(lu_flops) + 19.8 * n)
        };
        (kept + factors) as u64
    }
}

/// Numbers of a full block that takes so many operations, in units: what work by supernodes has room for beside the factors grows with
/// it. Its share, and that of rows (zeros inside supernodes, indices), are those of grids and of disks in two dimensions and in three.
fn block_of(flops: f64) -> f64 {
    flops.powf(2.0 / 3.0)
}

/// Incomplete factors on the pattern of A, some five passes over it and the products of their elimination, and so many steps: a product
/// with A and a solve with the factors once or twice each, and vectors.
pub(crate) fn iteration_work<T: Scalar>(a: &Csr<T>, products: f64, method: KrylovMethod, count: f64) -> Work {
    let (n, nnz) = (a.nrows() as f64, a.nnz() as f64);
    let visits = if method.is_symmetric() { 1.0 } else { 2.0 };
    // A product reads and writes what it meets in other rows: four visits.
    let steps = 5.0 * nnz + 4.0 * products + count * visits * (2.0 * nnz + 6.0 * n);
    work::<T>(Kernel::Sweep, steps, 0.0, 0.0)
}

/// Products of an elimination on the pattern of A: Σₖ (entries below aₖₖ)·(entries right of it), which one full row and column make n².
pub(crate) fn elimination_products<T: Scalar>(a: &Csr<T>) -> f64 {
    let n = a.nrows();
    let (mut below, mut right) = (vec![0u32; n], vec![0u32; n]);
    for i in 0..n {
        for &j in a.row(i).0 {
            let (j, left) = (j as usize, (j as usize) < i);
            below[j] += u32::from(left);
            right[i] += u32::from(j > i);
        }
    }
    below.iter().zip(&right).map(|(b, r)| f64::from(*b) * f64::from(*r)).sum()
}

#[cfg(test)]
mod tests {
    use bt_direct::{BandLu, Factorization};
    use bt_formats::Band;

    use super::*;

    /// Σ over the columns of a band, one after the other.
    fn one_by_one(n: usize, kl: usize, upper: usize) -> f64 {
        let steps = (0..n).map(|j| (kl.min(n - 1 - j), upper.min(n - 1 - j)));
        steps.map(|(below, right)| (below * (2 * right + 3) + 2 * right + 1) as f64).sum()
    }

    #[test]
    fn flops_of_a_band_are_those_of_its_columns() {
        for (n, kl, upper) in [(1, 0, 0), (1, 3, 5), (7, 2, 3), (7, 3, 2), (10, 9, 9), (10, 20, 30), (50, 4, 60)] {
            assert_eq!(band_flops(n, kl, upper), one_by_one(n, kl, upper), "{n} {kl} {upper}");
        }
    }

    /// A band of n rows with `value(i, j)` where that is not zero.
    fn band(n: usize, k: usize, value: impl Fn(usize, usize) -> f64) -> Csr<f64> {
        let mut band = Band::zeros(n, k, k).unwrap();
        for j in 0..n {
            (j.saturating_sub(k)..(j + k + 1).min(n)).for_each(|i| *band.get_mut(i, j) = value(i, j));
        }
        band.to_csr().unwrap()
    }

    #[test]
    fn pivots_are_counted_where_they_are_found() {
        let (n, k) = (40, 3);
        let dominant = band(n, k, |i, j| if i == j { 10.0 } else { 1.0 });
        assert_eq!(pivoted_band_flops(&dominant, |i| i, (k, k)), band_flops(n, k, k));
        // The last entry of a column is its largest: each row is exchanged with the farthest.
        let far = band(n, k, |i, j| if i == j + k { 10.0 } else { 1.0 });
        assert_eq!(pivoted_band_flops(&far, |i| i, (k, k)), band_flops(n, k, 2 * k));
        let reversed = pivoted_band_flops(&far, |i| n - 1 - i, (k, k));
        assert_eq!(reversed, band_flops(n, k, k), "from the other end those are above the diagonal");
        // What band LU itself counts of the factorization, where elimination leaves the largest entries in their places.
        for a in [dominant, far] {
            let counted = BandLu::new(&Band::from_csr(&a).unwrap()).unwrap().stats().flops;
            let predicted = pivoted_band_flops(&a, |i| i, (k, k));
            assert!(counted < predicted && predicted < 2.5 * counted, "{predicted} for {counted}, the solve apart");
        }
    }

    #[test]
    fn bytes_of_sparse_factors_are_foreseen() {
        let squares: [&[usize]; 3] = [&[40, 40], &[90, 90], &[160, 160]];
        let others: [&[usize]; 5] = [&[4, 3000], &[12, 12, 12], &[20, 20, 20], &[3, 3, 1500], &[8, 8, 100]];
        for sides in squares.into_iter().chain(others) {
            let a = crate::calibrate::grid(sides);
            let fill = Fill::of(&a).unwrap();
            let half = SymbolicCholesky::new(&a).unwrap().bytes::<f64>().unwrap() as f64;
            let whole = SymbolicLu::new(&a).unwrap().bytes::<f64>().unwrap() as f64;
            for (what, foreseen, counted) in
                [("L", fill.half_bytes::<f64>(), half), ("L and U", fill.lu_bytes::<f64>(), whole)]
            {
                let ratio = foreseen as f64 / counted;
                assert!((0.95..1.05).contains(&ratio), "{what} of {sides:?}: {foreseen} for {counted}");
            }
        }
    }
}
