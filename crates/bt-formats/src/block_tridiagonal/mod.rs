//! Hybrid block-tridiagonal storage: diagonal blocks and couplings each in the format that suits them.
//!
//! Yang, Li, Li, *A parallel solving method for block-tridiagonal equations on CPU–GPU heterogeneous computing
//! systems*, J. Supercomput. 73 (2017), <https://doi.org/10.1007/s11227-016-1881-x>, §3: tridiagonal diagonal blocks
//! as three diagonals without offsets, dense ones column-major, the very sparse couplings by coordinates or rows.
//! Departures: blocks of any sizes, banded diagonal blocks, couplings dense or by short diagonals, and all L and U of one
//! matrix in one array each, so that a product is one stream.
//!
//! Storage, s = size of T, m blocks of k₁ … k_m rows, z coupling entries on d diagonals of eight rows (and 4(m + 1)
//! bytes of partition):
//!
//! ```text
//! diagonal    tridiagonal 3·s·n       band (kl + ku + 1)·s·n      dense s·Σkⱼ² + 8(m + 1)
//! couplings   COO (8 + s)·z + 4(m+1)  CSR (4 + s)·z + 4(n + 1)    dense s·Σkⱼ(kⱼ₋₁ + kⱼ₊₁) + 8(m + 1)
//!             diagonals s·z + 5·d + 8(⌈n/8⌉ + 1)
//! ```
//!
//! | file | case |
//! |---|---|
//! | `build.rs` | from compressed rows or dense blocks, with new values, and back to compressed rows |
//! | `product.rs` | products with the whole matrix, and with the couplings of block rows |
//! | `short_diagonals.rs` | couplings by diagonals of eight rows |
//! | `part.rs` | consecutive blocks as a matrix of their own, all dense |

mod build;
mod part;
mod product;
mod short_diagonals;

use std::ops::Range;
use std::sync::Arc;

use faer::{MatMut, MatRef};

use crate::coo::Coo;
use crate::csr::Csr;
use crate::operator::{LinearOperator, Matrix, Op, Par, zero};
use crate::partition::Partition;
use crate::products::{product, product_many};
use crate::run::Run;
use crate::scalar::{RealScalar, Scalar};
use crate::tridiagonal::{Tridiagonal, groups_of};
use crate::verify::max_abs;

pub use short_diagonals::ShortDiagonals;

/// How the diagonal blocks are stored, all of one matrix alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiagonalKind {
    /// Three diagonals.
    Tridiagonal,
    /// The widest band found in any block, for all blocks.
    Band,
    /// All kⱼ² values of every block.
    Dense,
}

/// How the couplings Lⱼ and Uⱼ are stored, all of one matrix alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CouplingKind {
    /// Triplets.
    Coo,
    /// Compressed rows.
    Csr,
    /// Diagonals of eight rows.
    Diagonals,
    /// All values of every block.
    Dense,
}

/// A choice of formats. `None` (the default) takes the one of fewest bytes, counted exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HybridLayout {
    /// Format of the diagonal blocks.
    pub diagonal: Option<DiagonalKind>,
    /// Format of the couplings.
    pub couplings: Option<CouplingKind>,
}

/// Values of the diagonal blocks. Places outside a block or outside the matrix are padding and hold zeros.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DiagonalBlocks<T> {
    /// One global triple: the three diagonals of D₁, D₂, … one after another, `lower` zero in the first row of each
    /// block and `upper` zero in its last.
    Tridiagonal(Tridiagonal<T>),
    /// Diagonal after diagonal, each aligned by rows as in [`crate::Dia`]: A(i, c) at `[(kl + c − i)·n + i]`.
    Band {
        /// Sub-diagonals.
        kl: usize,
        /// Super-diagonals.
        ku: usize,
        /// kl + ku + 1 diagonals of n values.
        values: Vec<T>,
    },
    /// Column-major blocks one after another.
    Dense {
        /// Where each block begins in `values`, and the end: m + 1 places.
        starts: Vec<usize>,
        /// Σkⱼ² values.
        values: Vec<T>,
    },
}

/// Values of the couplings, in global row and column numbers: row i of block j holds columns of block j − 1 (that is
/// Lⱼ), then columns of block j + 1 (that is Uⱼ).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Couplings<T> {
    /// Triplets sorted by row, then column.
    Coo {
        /// The triplets.
        entries: Coo<T>,
        /// First triplet of each block row, and their number: m + 1.
        block_ptr: Vec<u32>,
    },
    /// Compressed rows, n × n.
    Csr(Csr<T>),
    /// Diagonals of eight rows.
    Diagonals(ShortDiagonals<T>),
    /// For each block row the kⱼ × (kⱼ₋₁ + kⱼ₊₁) matrix [Lⱼ Uⱼ], column-major.
    Dense {
        /// Where each block row begins in `values`, and the end: m + 1 places.
        starts: Vec<usize>,
        /// The matrices [Lⱼ Uⱼ] one after another.
        values: Vec<T>,
    },
}

/// A block-tridiagonal matrix over a [`Partition`]: uniform or variable block sizes. Clones share the values until one is written to.
///
/// ```text
/// [ D₀ U₀       ]     block row j:  Lⱼ xⱼ₋₁ + Dⱼ xⱼ + Uⱼ xⱼ₊₁
/// [ L₁ D₁ U₁    ]     Lⱼ is kⱼ × kⱼ₋₁,  Dⱼ is kⱼ × kⱼ,  Uⱼ is kⱼ × kⱼ₊₁
/// [    L₂ D₂    ]
/// ```
///
/// ```
/// use bt_formats::{BlockTridiagonal, Csr, DiagonalKind, HybridLayout, LinearOperator, Partition};
/// let a = Csr::new(4, 4, vec![0, 2, 5, 7, 9], vec![0, 1, 0, 1, 2, 2, 3, 2, 3], vec![4., 1., 1., 4., 2., 4., 1., 1., 4.])?;
/// let h = BlockTridiagonal::from_csr(&a, Partition::uniform(4, 2)?, HybridLayout::default())?;
/// assert_eq!((h.diagonal_kind(), h.nnz_diagonal(), h.nnz_couplings()), (DiagonalKind::Dense, 8, 1));
/// let mut y = [0.0; 4];
/// h.apply(1.0, &[1.0; 4], 0.0, &mut y);
/// assert_eq!(y, [5.0, 7.0, 5.0, 5.0]);
/// # Ok::<(), bt_formats::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BlockTridiagonal<T> {
    partition: Partition,
    diagonal: Arc<DiagonalBlocks<T>>,
    couplings: Arc<Couplings<T>>,
}

/// Columns that block row j may touch: block j − 1 is `lo..start`, block j `start..end`, block j + 1 `end..hi`.
#[derive(Clone, Copy)]
struct Window {
    lo: usize,
    start: usize,
    end: usize,
    hi: usize,
    /// Rows of the whole matrix.
    n: usize,
}

impl Window {
    fn new(partition: &Partition, j: usize) -> Self {
        let offsets = partition.offsets();
        Self {
            lo: offsets[j.saturating_sub(1)] as usize,
            start: offsets[j] as usize,
            end: offsets[j + 1] as usize,
            hi: offsets[(j + 2).min(offsets.len() - 1)] as usize,
            n: partition.n(),
        }
    }
    /// Rows of block j.
    fn size(self) -> usize {
        self.end - self.start
    }
    /// Columns of [Lⱼ Uⱼ].
    fn coupling_cols(self) -> usize {
        self.start - self.lo + self.hi - self.end
    }
    /// Place of global column `c` among the columns of [Lⱼ Uⱼ].
    fn coupling_col(self, c: usize) -> usize {
        if c < self.start { c - self.lo } else { self.start - self.lo + c - self.end }
    }
    /// Global column of place `k` of [Lⱼ Uⱼ].
    fn global_col(self, k: usize) -> usize {
        let left = self.start - self.lo;
        if k < left { self.lo + k } else { self.end + k - left }
    }
}

/// Which of Lⱼ and Uⱼ.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Coupling {
    Lower,
    Upper,
}

impl<T: Scalar> BlockTridiagonal<T> {
    /// The blocks.
    pub fn partition(&self) -> &Partition {
        &self.partition
    }
    /// Size n.
    pub fn n(&self) -> usize {
        self.partition.n()
    }
    /// Number of blocks m.
    pub fn n_blocks(&self) -> usize {
        self.partition.n_blocks()
    }
    /// The diagonal blocks as stored.
    pub fn diagonal(&self) -> &DiagonalBlocks<T> {
        &self.diagonal
    }
    /// The couplings as stored.
    pub fn couplings(&self) -> &Couplings<T> {
        &self.couplings
    }
    /// Format of the diagonal blocks.
    pub fn diagonal_kind(&self) -> DiagonalKind {
        match *self.diagonal {
            DiagonalBlocks::Tridiagonal(_) => DiagonalKind::Tridiagonal,
            DiagonalBlocks::Band { .. } => DiagonalKind::Band,
            DiagonalBlocks::Dense { .. } => DiagonalKind::Dense,
        }
    }
    /// Format of the couplings.
    pub fn coupling_kind(&self) -> CouplingKind {
        match *self.couplings {
            Couplings::Coo { .. } => CouplingKind::Coo,
            Couplings::Csr(_) => CouplingKind::Csr,
            Couplings::Diagonals(_) => CouplingKind::Diagonals,
            Couplings::Dense { .. } => CouplingKind::Dense,
        }
    }

    /// Sub- and super-diagonals that the format of the diagonal blocks holds inside a block of `k` rows.
    fn bandwidths(&self, k: usize) -> (usize, usize) {
        match *self.diagonal {
            DiagonalBlocks::Tridiagonal(_) => (1.min(k - 1), 1.min(k - 1)),
            DiagonalBlocks::Band { kl, ku, .. } => (kl.min(k - 1), ku.min(k - 1)),
            DiagonalBlocks::Dense { .. } => (k - 1, k - 1),
        }
    }

    /// Places inside the diagonal blocks, padding not counted.
    pub fn nnz_diagonal(&self) -> usize {
        let count = |k: usize| {
            let (kl, ku) = self.bandwidths(k);
            // A band loses 1 + 2 + … + kl places at one corner, 1 + 2 + … + ku at the other.
            k * (kl + ku + 1) - kl * (kl + 1) / 2 - ku * (ku + 1) / 2
        };
        self.partition.sizes().map(count).sum()
    }

    /// Values stored for the diagonal blocks, padding counted.
    pub fn len_diagonal(&self) -> usize {
        match &*self.diagonal {
            DiagonalBlocks::Tridiagonal(t) => 3 * t.diag().len(),
            DiagonalBlocks::Band { values, .. } | DiagonalBlocks::Dense { values, .. } => values.len(),
        }
    }

    /// Values stored for the couplings.
    pub fn nnz_couplings(&self) -> usize {
        match &*self.couplings {
            Couplings::Coo { entries, .. } => entries.values().len(),
            Couplings::Csr(a) => a.values().len(),
            Couplings::Diagonals(a) => a.values().len(),
            Couplings::Dense { values, .. } => values.len(),
        }
    }

    /// `out` ← Dⱼ, every element written.
    ///
    /// # Panics
    /// When `out` is not kⱼ × kⱼ.
    #[inline(never)]
    pub fn copy_diagonal_block(&self, j: usize, mut out: MatMut<'_, T>) {
        let range = self.partition.range(j);
        let k = range.len();
        assert_eq!((out.nrows(), out.ncols()), (k, k), "shape of a diagonal block");
        if let DiagonalBlocks::Dense { starts, values } = &*self.diagonal {
            out.copy_from(MatRef::from_column_major_slice(&values[starts[j]..starts[j + 1]], k, k));
            return;
        }
        out.fill(zero());
        self.for_each_diagonal(j, |i, c, v| out[(i - range.start, c - range.start)] = v);
    }

    /// `out` ← Lⱼ, every element written.
    ///
    /// # Panics
    /// When j = 0 or `out` is not kⱼ × kⱼ₋₁.
    pub fn copy_lower_block(&self, j: usize, out: MatMut<'_, T>) {
        assert!(j > 0, "block row 0 has no lower block");
        self.copy_coupling(j, Coupling::Lower, out);
    }

    /// `out` ← Uⱼ, every element written.
    ///
    /// # Panics
    /// When j = m − 1 or `out` is not kⱼ × kⱼ₊₁.
    pub fn copy_upper_block(&self, j: usize, out: MatMut<'_, T>) {
        assert!(j + 1 < self.n_blocks(), "the last block row has no upper block");
        self.copy_coupling(j, Coupling::Upper, out);
    }

    #[inline(never)]
    fn copy_coupling(&self, j: usize, side: Coupling, mut out: MatMut<'_, T>) {
        let w = Window::new(&self.partition, j);
        let cols = if side == Coupling::Lower { w.lo..w.start } else { w.end..w.hi };
        assert_eq!((out.nrows(), out.ncols()), (w.size(), cols.len()), "shape of a coupling block");
        out.fill(zero());
        // Entries are scattered in the order they are stored: one pass over the block row.
        match &*self.couplings {
            Couplings::Coo { entries, block_ptr } => {
                for e in block_ptr[j] as usize..block_ptr[j + 1] as usize {
                    let c = entries.cols()[e] as usize;
                    if cols.contains(&c) {
                        out[(entries.rows()[e] as usize - w.start, c - cols.start)] = entries.values()[e];
                    }
                }
            }
            Couplings::Csr(a) => {
                for i in w.start..w.end {
                    let (columns, values) = a.row(i);
                    for (&c, &v) in columns.iter().zip(values) {
                        let c = c as usize;
                        if cols.contains(&c) {
                            out[(i - w.start, c - cols.start)] = v;
                        }
                    }
                }
            }
            Couplings::Diagonals(a) => {
                for i in w.start..w.end {
                    a.for_each_place(i, |c, k| {
                        if cols.contains(&c) {
                            out[(i - w.start, c - cols.start)] = a.values()[k];
                        }
                    });
                }
            }
            Couplings::Dense { starts, values } => {
                let first = starts[j] + w.coupling_col(cols.start) * w.size();
                let block = MatRef::from_column_major_slice(
                    &values[first..first + w.size() * cols.len()],
                    w.size(),
                    cols.len(),
                );
                out.copy_from(block);
            }
        }
    }

    /// Visits the places of Dⱼ row by row as (global row, global column, value).
    fn for_each_diagonal(&self, j: usize, mut visit: impl FnMut(usize, usize, T)) {
        let range = self.partition.range(j);
        let (kl, ku) = self.bandwidths(range.len());
        for i in range.clone() {
            for c in i.saturating_sub(kl).max(range.start)..(i + ku + 1).min(range.end) {
                visit(i, c, self.diagonal.get(&range, j, i, c));
            }
        }
    }

    /// Visits the coupling entries of row i of block j as (global column, value), columns increasing.
    fn for_each_coupling(&self, j: usize, i: usize, mut visit: impl FnMut(usize, T)) {
        match &*self.couplings {
            Couplings::Coo { entries, block_ptr } => {
                let block = block_ptr[j] as usize..block_ptr[j + 1] as usize;
                let rows = &entries.rows()[block.clone()];
                let first = rows.partition_point(|&r| (r as usize) < i);
                let count = rows[first..].partition_point(|&r| r as usize == i);
                for k in block.start + first..block.start + first + count {
                    visit(entries.cols()[k] as usize, entries.values()[k]);
                }
            }
            Couplings::Csr(a) => {
                let (cols, vals) = a.row(i);
                for (&c, &v) in cols.iter().zip(vals) {
                    visit(c as usize, v);
                }
            }
            Couplings::Diagonals(a) => a.for_each_place(i, |c, k| visit(c, a.values()[k])),
            Couplings::Dense { starts, values } => {
                let w = Window::new(&self.partition, j);
                for k in 0..w.coupling_cols() {
                    visit(w.global_col(k), values[starts[j] + k * w.size() + i - w.start]);
                }
            }
        }
    }
}

impl<T: Scalar> Couplings<T> {
    /// The entries of some rows, side by side where they are stored so; of dense couplings none.
    #[inline(never)]
    fn runs_of(&self, rows: Range<usize>) -> std::vec::IntoIter<Run<'_, T>> {
        let single = |row, column, values| Run::Diagonal { row, column, values };
        let runs: Vec<Run<'_, T>> = match self {
            Self::Coo { entries, .. } => {
                let first = |i| entries.rows().partition_point(|&r| (r as usize) < i);
                let of_entry =
                    |k: usize| single(entries.rows()[k] as usize, entries.cols()[k] as usize, &entries.values()[k..=k]);
                (first(rows.start)..first(rows.end)).map(of_entry).collect()
            }
            Self::Csr(a) => rows
                .flat_map(|i| {
                    let (cols, values) = a.row(i);
                    cols.iter().zip(values.chunks_exact(1)).map(move |(&c, v)| single(i, c as usize, v))
                })
                .collect(),
            Self::Diagonals(a) => a.runs_of(rows),
            Self::Dense { .. } => Vec::new(),
        };
        runs.into_iter()
    }
}

/// Blocks by columns.
#[derive(Clone, Copy)]
struct DenseBlocks<'a, T> {
    partition: &'a Partition,
    starts: &'a [usize],
    values: &'a [T],
    coupling_starts: &'a [usize],
    couplings: &'a [T],
}

impl<'a, T: Scalar> DenseBlocks<'a, T> {
    fn runs_of(self, rows: Range<usize>) -> impl Iterator<Item = Run<'a, T>> {
        let blocks = if rows.is_empty() {
            0..0
        } else {
            self.partition.block_of(rows.start)..self.partition.block_of(rows.end - 1) + 1
        };
        blocks.flat_map(move |j| {
            let w = Window::new(self.partition, j);
            let (first, last) = (w.start.max(rows.start), w.end.min(rows.end));
            let columns = move |column, values: &'a [T]| {
                let (row, rows, stride) = (first, last - first, w.size());
                // `values` ends with the last row of the block.
                let inside = || first - w.start..values.len() - (w.end - last);
                (!values.is_empty()).then(|| Run::Columns { row, rows, column, stride, values: &values[inside()] })
            };
            let own = &self.values[self.starts[j]..self.starts[j + 1]];
            let beside = &self.couplings[self.coupling_starts[j]..self.coupling_starts[j + 1]];
            let (lower, upper) = beside.split_at((w.start - w.lo) * w.size());
            [columns(w.start, own), columns(w.lo, lower), columns(w.end, upper)].into_iter().flatten()
        })
    }
}

impl<T: Scalar> DiagonalBlocks<T> {
    /// Value at (i, c) of block j, which covers `range`; the place must be one the format holds.
    fn get(&self, range: &Range<usize>, j: usize, i: usize, c: usize) -> T {
        match self {
            Self::Tridiagonal(t) => match c as isize - i as isize {
                -1 => t.lower()[i],
                0 => t.diag()[i],
                _ => t.upper()[i],
            },
            Self::Band { kl, ku, values } => values[(kl + c - i) * (values.len() / (kl + ku + 1)) + i],
            Self::Dense { starts, values } => values[starts[j] + (c - range.start) * range.len() + i - range.start],
        }
    }
}

impl<T: Scalar> BlockTridiagonal<T> {
    /// Calls `visit(row, col, value)` in the order of storage, padding of three diagonals inside the matrix included.
    #[inline(always)]
    fn for_each_value(&self, mut visit: impl FnMut(usize, usize, T)) {
        let n = self.n();
        let windows = || (0..self.n_blocks()).map(|j| Window::new(&self.partition, j));
        match &*self.diagonal {
            DiagonalBlocks::Tridiagonal(t) => {
                for (i, &v) in t.lower().iter().enumerate().skip(1) {
                    visit(i, i - 1, v);
                }
                for (i, &v) in t.diag().iter().enumerate() {
                    visit(i, i, v);
                }
                for (i, &v) in t.upper().iter().enumerate().take(n.saturating_sub(1)) {
                    visit(i, i + 1, v);
                }
            }
            DiagonalBlocks::Band { kl, ku, values } => {
                for w in windows() {
                    for i in w.start..w.end {
                        for c in i.saturating_sub(*kl).max(w.start)..(i + ku + 1).min(w.end) {
                            visit(i, c, values[(kl + c - i) * n + i]);
                        }
                    }
                }
            }
            DiagonalBlocks::Dense { starts, values } => {
                for (w, &start) in windows().zip(starts) {
                    for (c, column) in (w.start..w.end).zip(values[start..].chunks_exact(w.size())) {
                        (w.start..w.end).zip(column).for_each(|(i, &v)| visit(i, c, v));
                    }
                }
            }
        }
        match &*self.couplings {
            Couplings::Coo { entries, .. } => {
                for ((&i, &c), &v) in entries.rows().iter().zip(entries.cols()).zip(entries.values()) {
                    visit(i as usize, c as usize, v);
                }
            }
            Couplings::Csr(a) => {
                for i in 0..n {
                    let (cols, values) = a.row(i);
                    cols.iter().zip(values).for_each(|(&c, &v)| visit(i, c as usize, v));
                }
            }
            Couplings::Diagonals(a) => a.for_each_value(visit),
            Couplings::Dense { starts, values } => {
                for (w, &start) in windows().zip(starts) {
                    for (k, column) in values[start..].chunks_exact(w.size()).take(w.coupling_cols()).enumerate() {
                        (w.start..w.end).zip(column).for_each(|(i, &v)| visit(i, w.global_col(k), v));
                    }
                }
            }
        }
    }
}

impl<T: Scalar> LinearOperator<T> for BlockTridiagonal<T> {
    fn nrows(&self) -> usize {
        self.n()
    }
    fn ncols(&self) -> usize {
        self.n()
    }
    fn apply(&self, alpha: T, x: &[T], beta: T, y: &mut [T]) {
        self.apply_op(Op::Identity, alpha, x, beta, y, Par::auto(self.bytes()));
    }
}

impl<T: Scalar> Matrix<T> for BlockTridiagonal<T> {
    fn nnz(&self) -> usize {
        self.nnz_diagonal() + self.nnz_couplings()
    }

    fn bytes(&self) -> usize {
        let diagonal = match &*self.diagonal {
            DiagonalBlocks::Tridiagonal(t) => t.bytes(),
            DiagonalBlocks::Band { values, .. } => size_of_val(&**values),
            DiagonalBlocks::Dense { starts, values } => size_of_val(&**starts) + size_of_val(&**values),
        };
        let couplings = match &*self.couplings {
            Couplings::Coo { entries, block_ptr } => {
                entries.values().len() * (8 + size_of::<T>()) + size_of_val(&**block_ptr)
            }
            Couplings::Csr(a) => a.bytes(),
            Couplings::Diagonals(a) => a.bytes(),
            Couplings::Dense { starts, values } => size_of_val(&**starts) + size_of_val(&**values),
        };
        size_of_val(self.partition.offsets()) + diagonal + couplings
    }

    fn apply_op(&self, op: Op, alpha: T, x: &[T], beta: T, y: &mut [T], par: Par) {
        product(self, op, alpha, x, beta, y, par);
    }

    fn apply_many(&self, op: Op, alpha: T, x: MatRef<'_, T>, beta: T, y: MatMut<'_, T>, par: Par) {
        product_many(self, op, alpha, x, beta, y, par);
    }

    #[inline(never)]
    fn accumulate_abs(&self, op: Op, x: &[T::Real], y: &mut [T::Real]) {
        assert_eq!((x.len(), y.len()), (self.n(), self.n()), "lengths of x and y");
        match op {
            Op::Identity => self.for_each_value(|i, c, v| y[i] += v.abs() * x[c]),
            Op::Transpose | Op::Adjoint => self.for_each_value(|i, c, v| y[c] += v.abs() * x[i]),
        }
    }

    fn norm_max(&self) -> T::Real {
        let diagonal = match &*self.diagonal {
            DiagonalBlocks::Tridiagonal(t) => [t.lower(), t.diag(), t.upper()],
            DiagonalBlocks::Band { values, .. } | DiagonalBlocks::Dense { values, .. } => [&values[..], &[], &[]],
        };
        let couplings = match &*self.couplings {
            Couplings::Coo { entries, .. } => entries.values(),
            Couplings::Csr(a) => a.values(),
            Couplings::Diagonals(a) => a.values(),
            Couplings::Dense { values, .. } => values,
        };
        let max = diagonal.into_iter().chain([couplings]).fold(0.0, |m: f64, values| m.max_nan(max_abs(values)));
        T::Real::from_f64(max)
    }

    #[inline(never)]
    fn runs_of(&self, rows: Range<usize>) -> Option<Box<dyn Iterator<Item = Run<'_, T>> + '_>> {
        match (&*self.diagonal, &*self.couplings) {
            (
                DiagonalBlocks::Dense { starts, values },
                Couplings::Dense { starts: coupling_starts, values: couplings },
            ) => {
                let dense = DenseBlocks { partition: &self.partition, starts, values, coupling_starts, couplings };
                Some(Box::new(dense.runs_of(rows)))
            }
            (_, Couplings::Dense { .. }) | (DiagonalBlocks::Band { .. } | DiagonalBlocks::Dense { .. }, _) => None,
            (DiagonalBlocks::Tridiagonal(t), couplings) => Some(Box::new(
                groups_of(rows)
                    .flat_map(move |rows| std::iter::once(t.run_of(rows.clone())).chain(couplings.runs_of(rows))),
            )),
        }
    }

    #[inline(never)]
    fn for_each_entry(&self, visit: &mut dyn FnMut(usize, usize, T)) {
        for j in 0..self.n_blocks() {
            let range = self.partition.range(j);
            let (kl, ku) = self.bandwidths(range.len());
            for i in range.clone() {
                let mut diagonal = Some(i.saturating_sub(kl).max(range.start)..(i + ku + 1).min(range.end));
                // Lⱼ, Dⱼ, Uⱼ: the diagonal part goes before the first column of Uⱼ.
                self.for_each_coupling(j, i, |c, v| {
                    if c >= range.end {
                        for d in diagonal.take().into_iter().flatten() {
                            visit(i, d, self.diagonal.get(&range, j, i, d));
                        }
                    }
                    visit(i, c, v);
                });
                for d in diagonal.into_iter().flatten() {
                    visit(i, d, self.diagonal.get(&range, j, i, d));
                }
            }
        }
    }
}
