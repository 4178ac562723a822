//! Quasi-block-tridiagonal matrices: a block-tridiagonal part and a sparse remainder outside its three block diagonals.
//!
//! Named as future work by Yang, Li & Li, J. Supercomput. 73 (2017) 1760–1781, doi:10.1007/s11227-016-1881-x. The
//! remainder R goes into the off-diagonal products of the block iterations, split by blocks into the part below, R_L, and
//! the part above, R_U:
//!
//! ```text
//! A = D + (L + R_L) + (U + R_U)
//! ```
//!
//! Storage: the hybrid storage of the block-tridiagonal part; two times 4(n + 1) bytes and 4 + s bytes an entry of R.

use bt_formats::{BlockTridiagonal, Csr, Error, HybridLayout, LinearOperator, Matrix, Partition, Scalar};

/// A sparse matrix seen as a block-tridiagonal one and a remainder.
///
/// ```
/// use bt_formats::{Csr, HybridLayout, Partition};
/// use bt_iter::QuasiBlockTridiagonal;
/// let a = Csr::from_dense(faer::mat![[4.0, 1.0, 2.0], [1.0, 4.0, 1.0], [0.0, 1.0, 4.0]].as_ref())?;
/// let quasi = QuasiBlockTridiagonal::new(&a, Partition::uniform(3, 1)?, HybridLayout::default())?;
/// assert_eq!((quasi.blocks().nnz_couplings(), quasi.nnz_remainder()), (4, 1));
/// # Ok::<(), bt_formats::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct QuasiBlockTridiagonal<'a, T: Scalar> {
    a: &'a Csr<T>,
    blocks: BlockTridiagonal<T>,
    below: Csr<T>,
    above: Csr<T>,
}

impl<'a, T: Scalar> QuasiBlockTridiagonal<'a, T> {
    /// Splits `a` by the blocks of `partition`; `layout` is that of the block-tridiagonal part.
    ///
    /// # Errors
    /// [`Error::NotSquare`], [`Error::NonFinite`], [`Error::DimensionMismatch`] when the blocks do not sum to n, and those of
    /// [`BlockTridiagonal::from_csr`].
    ///
    /// # Cost
    /// O(nnz + values stored).
    #[inline(never)]
    pub fn new(a: &'a Csr<T>, partition: Partition, layout: HybridLayout) -> Result<Self, Error> {
        a.check_square()?;
        a.check_finite()?;
        if partition.n() != a.nrows() {
            return Err(Error::DimensionMismatch {
                what: "sum of the block sizes",
                expected: a.nrows(),
                found: partition.n(),
            });
        }
        let last = partition.n_blocks().saturating_sub(1);
        // Columns that the three block diagonals cover in block row j.
        let window = |j: usize| partition.range(j.saturating_sub(1)).start..partition.range((j + 1).min(last)).end;
        let inside = select(a, &partition, |j, c| window(j).contains(&c))?;
        let below = select(a, &partition, |j, c| c < window(j).start)?;
        let above = select(a, &partition, |j, c| c >= window(j).end)?;
        Ok(Self { a, blocks: BlockTridiagonal::from_csr(&inside, partition, layout)?, below, above })
    }

    /// The matrix itself.
    pub fn matrix(&self) -> &'a Csr<T> {
        self.a
    }

    /// The block-tridiagonal part.
    pub fn blocks(&self) -> &BlockTridiagonal<T> {
        &self.blocks
    }

    /// The block-tridiagonal part alone.
    pub fn into_blocks(self) -> BlockTridiagonal<T> {
        self.blocks
    }

    /// Entries outside the three block diagonals.
    pub fn nnz_remainder(&self) -> usize {
        self.below.nnz() + self.above.nnz()
    }

    /// Bytes of both parts.
    pub fn bytes(&self) -> usize {
        self.blocks.bytes() + self.below.bytes() + self.above.bytes()
    }

    /// r ← r − R_L·x in block row j.
    pub(crate) fn subtract_below(&self, j: usize, x: &[T], r: &mut [T]) {
        subtract(&self.below, self.blocks.partition().range(j), x, r);
    }

    /// r ← r − R_U·x in block row j.
    pub(crate) fn subtract_above(&self, j: usize, x: &[T], r: &mut [T]) {
        subtract(&self.above, self.blocks.partition().range(j), x, r);
    }
}

fn subtract<T: Scalar>(part: &Csr<T>, rows: std::ops::Range<usize>, x: &[T], r: &mut [T]) {
    for (i, r) in rows.zip(r) {
        let (cols, vals) = part.row(i);
        for (&c, &v) in cols.iter().zip(vals) {
            *r -= v * x[c as usize];
        }
    }
}

/// The entries of A that `keep(block row, column)` holds for.
fn select<T: Scalar>(a: &Csr<T>, partition: &Partition, keep: impl Fn(usize, usize) -> bool) -> Result<Csr<T>, Error> {
    let n = a.nrows();
    let (mut ptr, mut idx, mut val) = (Vec::with_capacity(n + 1), Vec::new(), Vec::new());
    ptr.push(0);
    for j in 0..partition.n_blocks() {
        for i in partition.range(j) {
            let (cols, vals) = a.row(i);
            for (&c, &v) in cols.iter().zip(vals).filter(|(c, _)| keep(j, **c as usize)) {
                idx.push(c);
                val.push(v);
            }
            ptr.push(idx.len() as u32);
        }
    }
    Csr::new(n, n, ptr, idx, val)
}
