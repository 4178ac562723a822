//! Factors of the diagonal blocks D_j of a block-tridiagonal matrix: z_j ← D_j⁻¹·z_j, each block on its own.
//!
//! The solver of a block follows from how D is stored: tridiagonal blocks by the Thomas algorithm (by its pivoted twin
//! where a pivot vanishes or elements grow a thousandfold), banded ones by band LU, dense ones by dense LU with partial pivoting.

use std::ops::Range;

use bt_direct::{
    BandLu, BlockLu, FactorError, Factorization, Place, Result, SingularKind, Singularity, Thomas, TridiagonalLu,
};
use bt_formats::{
    Band, BlockTridiagonal, Csr, DiagonalBlocks, HybridLayout, Matrix, Par, Partition, Scalar, Tridiagonal,
};
use faer::{Mat, MatMut};

/// Growth of the elements beyond which a tridiagonal block is factored with interchanges.
pub(crate) const GROWTH: f64 = 1e3;

/// Factors of D = diag(D_1, …, D_m).
pub struct BlockDiagonal<T: Scalar> {
    blocks: Vec<Factors<T>>,
}

impl<T: Scalar> BlockDiagonal<T> {
    /// Factors every diagonal block of `a`.
    ///
    /// # Errors
    /// [`FactorError::Singular`] naming the block and the column of A when a diagonal block is singular. A itself need
    /// not be singular then, but no iteration with D exists. [`FactorError::Input`] naming an entry of A, couplings included,
    /// that is not finite.
    ///
    /// # Cost
    /// Σ k_j for tridiagonal blocks, Σ k_j³ for dense ones.
    #[inline(never)]
    pub fn new(a: &BlockTridiagonal<T>) -> Result<Self> {
        check_finite(a)?;
        Self::of(a, 0..a.partition().n_blocks())
    }

    /// Factors these blocks, whose entries are finite.
    pub(crate) fn of(a: &BlockTridiagonal<T>, blocks: impl Iterator<Item = usize>) -> Result<Self> {
        let factor = |j| Factors::new(&Block::of(a, j)?).map_err(|e| in_block(e, a.partition(), j));
        Ok(Self { blocks: blocks.map(factor).collect::<Result<_>>()? })
    }

    /// As `of`, in the memory of the factors; a copy of one block at a time is taken. After an error the factors are of no use.
    pub(crate) fn refactor_of(&mut self, a: &BlockTridiagonal<T>, blocks: impl Iterator<Item = usize>) -> Result<()> {
        for (j, factors) in blocks.zip(&mut self.blocks) {
            factors.refactor(&Block::of(a, j)?).map_err(|e| in_block(e, a.partition(), j))?;
        }
        Ok(())
    }

    /// z ← D_j⁻¹·z for one block, `z` of length k_j.
    pub fn solve_block(&self, j: usize, z: &mut [T]) {
        let k = z.len();
        self.blocks[j].any().solve_in_place(MatMut::from_column_major_slice_mut(z, k, 1));
    }

    /// z ← D⁻¹·z, blocks in parallel; the same bits for any number of threads. `z` is of length n.
    pub fn solve(&self, partition: &Partition, z: &mut [T], par: Par) {
        for_blocks(partition, z, par, &|j, zj| self.solve_block(j, zj));
    }

    /// Values of all factors.
    pub fn nnz(&self) -> usize {
        self.blocks.iter().map(|f| f.any().stats().nnz).sum()
    }

    /// Tridiagonal blocks that needed row interchanges because a pivot vanished.
    pub fn pivoted_blocks(&self) -> usize {
        self.blocks.iter().filter(|f| matches!(f, Factors::Pivoted(_))).count()
    }

    /// Whether block j is one of those.
    pub fn is_pivoted(&self, j: usize) -> bool {
        matches!(self.blocks[j], Factors::Pivoted(_))
    }

    /// Bytes of all factors.
    pub fn bytes(&self) -> usize {
        self.blocks.iter().map(|f| f.any().stats().bytes).sum()
    }
}

/// The first entry that is not finite, by its place.
pub(crate) fn check_finite<T: Scalar>(a: &BlockTridiagonal<T>) -> Result<()> {
    if Scalar::is_finite(T::from_real(a.norm_max())) {
        return Ok(());
    }
    let mut found = None;
    a.for_each_entry(&mut |row, col, v| {
        if found.is_none() && !Scalar::is_finite(v) {
            found = Some(bt_formats::Error::NonFinite { what: "matrix", row, col, value: v.to_string() });
        }
    });
    found.map_or(Ok(()), |error| Err(error.into()))
}

/// One diagonal block, as it is stored.
enum Block<T: Scalar> {
    Tridiagonal(Tridiagonal<T>),
    Band(Band<T>),
    Dense(BlockTridiagonal<T>),
}

impl<T: Scalar> Block<T> {
    /// Block j of `a`.
    #[inline(never)]
    fn of(a: &BlockTridiagonal<T>, j: usize) -> Result<Self> {
        let range = a.partition().range(j);
        Ok(match a.diagonal() {
            DiagonalBlocks::Tridiagonal(t) => Self::Tridiagonal(tridiagonal_block(t, range)?),
            DiagonalBlocks::Band { kl, ku, values } => {
                let (n, k) = (a.n(), range.len());
                let mut block = Band::zeros(k, (*kl).min(k - 1), (*ku).min(k - 1))?;
                for c in 0..k {
                    for i in block.column_range(c) {
                        // Diagonal after diagonal, aligned by rows.
                        *block.get_mut(i, c) = values[(kl + c - i) * n + range.start + i];
                    }
                }
                Self::Band(block)
            }
            _ => {
                let k = range.len();
                let mut dense = Mat::new();
                dense.try_reserve(k, k).map_err(|_| bt_formats::Error::TooLarge {
                    what: "a diagonal block",
                    needed: format!("{k} × {k} values"),
                    limit: "the memory there is".into(),
                })?;
                dense.resize_with(k, k, |_, _| bt_formats::zero());
                a.copy_diagonal_block(j, dense.as_mut());
                let block = Csr::from_dense(dense.as_ref())?;
                let whole = Partition::from_sizes([k])?;
                Self::Dense(BlockTridiagonal::from_csr(&block, whole, HybridLayout::default())?)
            }
        })
    }
}

/// A copy of the block of these rows.
pub(crate) fn tridiagonal_block<T: Scalar>(t: &Tridiagonal<T>, rows: Range<usize>) -> Result<Tridiagonal<T>> {
    let part = |v: &[T]| v[rows.clone()].to_vec();
    Ok(Tridiagonal::new(part(t.lower()), part(t.diag()), part(t.upper()))?)
}

/// The factors of one block.
enum Factors<T: Scalar> {
    Thomas(Thomas<T>),
    Pivoted(TridiagonalLu<T>),
    Band(Box<BandLu<T>>),
    Dense(Box<BlockLu<T>>),
}

impl<T: Scalar> Factors<T> {
    #[inline(never)]
    fn new(block: &Block<T>) -> Result<Self> {
        Ok(match block {
            Block::Tridiagonal(t) => match Thomas::new(t) {
                Ok(factors) if factors.stats().growth <= GROWTH => Self::Thomas(factors),
                Ok(_) | Err(FactorError::Breakdown { .. }) => Self::Pivoted(TridiagonalLu::new(t)?),
                Err(other) => return Err(other),
            },
            Block::Band(band) => Self::Band(Box::new(BandLu::new(band)?)),
            Block::Dense(dense) => Self::Dense(Box::new(BlockLu::new(dense)?)),
        })
    }

    /// As `new`, in the memory there is where the same method and storage do.
    fn refactor(&mut self, block: &Block<T>) -> Result<()> {
        let done = match (&mut *self, block) {
            (Self::Thomas(factors), Block::Tridiagonal(t)) => {
                factors.refactor(t).is_ok() && factors.stats().growth <= GROWTH
            }
            (Self::Band(factors), Block::Band(band)) => (**factors).refactor(band).is_ok(),
            (Self::Dense(factors), Block::Dense(dense)) => (**factors).refactor(dense).is_ok(),
            _ => false,
        };
        if !done {
            *self = Self::new(block)?;
        }
        Ok(())
    }

    fn any(&self) -> &dyn Factorization<T> {
        match self {
            Self::Thomas(factors) => factors,
            Self::Pivoted(factors) => factors,
            Self::Band(factors) => &**factors,
            Self::Dense(factors) => &**factors,
        }
    }
}

/// Moves an error's place from the block to the whole matrix.
pub(crate) fn in_block(error: FactorError, partition: &Partition, j: usize) -> FactorError {
    match error {
        FactorError::Singular(place) => FactorError::Singular(Singularity {
            kind: SingularKind::Numerical,
            column: partition.range(j).start + place.column,
            block: Some(j),
        }),
        FactorError::Breakdown { method, place, reason } => {
            let row = |i: usize| Some(partition.range(j).start + i);
            let place = place.and_then(|place| place.renumbered(row, row)).unwrap_or(Place::Block(j));
            FactorError::breakdown(method, place, reason)
        }
        other => other,
    }
}

/// Calls `body(j, block j of v)` for every block, in parallel over contiguous groups of blocks.
///
/// ```
/// use bt_formats::{Par, Partition};
/// let mut v = [0, 0, 0].map(f64::from);
/// bt_iter::for_blocks(&Partition::from_sizes([1, 2])?, &mut v, Par::Seq, &|j, block| block.fill(j as f64));
/// assert_eq!(v, [0.0, 1.0, 1.0]);
/// # Ok::<(), bt_formats::Error>(())
/// ```
///
/// # Panics
/// When `v` has not n elements.
pub fn for_blocks<T: Scalar>(partition: &Partition, v: &mut [T], par: Par, body: &(impl Fn(usize, &mut [T]) + Sync)) {
    for_groups(partition, v, par, &|blocks, mut rest| {
        for j in blocks {
            let (block, tail) = rest.split_at_mut(partition.size(j));
            body(j, block);
            rest = tail;
        }
    });
}

/// Calls `body(blocks, their part of v)` for groups of consecutive blocks, in parallel.
pub(crate) fn for_groups<T: Scalar>(
    partition: &Partition,
    v: &mut [T],
    par: Par,
    body: &(impl Fn(Range<usize>, &mut [T]) + Sync),
) {
    // Blocks are halved down to groups that are worth a task.
    fn recurse<T: Scalar>(
        partition: &Partition,
        blocks: Range<usize>,
        v: &mut [T],
        body: &(impl Fn(Range<usize>, &mut [T]) + Sync),
        grain: usize,
    ) {
        if v.len() <= grain || blocks.len() <= 1 {
            body(blocks, v);
        } else {
            let middle = usize::midpoint(blocks.start, blocks.end);
            let cut = partition.offsets()[middle] as usize - partition.offsets()[blocks.start] as usize;
            let (left, right) = v.split_at_mut(cut);
            bt_formats::join(
                || recurse(partition, blocks.start..middle, left, body, grain),
                || recurse(partition, middle..blocks.end, right, body, grain),
            );
        }
    }
    let grain = match par {
        Par::Seq => usize::MAX,
        Par::Rayon => (v.len() / (4 * rayon::current_num_threads())).max(2048),
    };
    recurse(partition, 0..partition.n_blocks(), v, body, grain);
}
