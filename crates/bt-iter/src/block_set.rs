//! Factors of diagonal blocks that are solved with together, all of them or those of a colour: tridiagonal ones side by side in lanes.
//!
//! Storage: that of [`BatchLu`], 3 values a row for blocks of eight, sixteen, … rows and up to twice as many for others; that of
//! [`BlockDiagonal`] for blocks that are not tridiagonal, or too few. The bits are those of the blocks one by one.

use bt_direct::batch::{BatchLu, Layout, Pivoting, Places, TridiagonalBatch};
use bt_direct::{Factorization, Result, TridiagonalLu};
use bt_formats::{BlockTridiagonal, DiagonalBlocks, Op, Par, Partition, RealScalar, Scalar, Tridiagonal, one, zero};

use crate::block_diagonal::{BlockDiagonal, GROWTH, check_finite, for_blocks, for_groups, in_block, tridiagonal_block};

/// Every block, or every other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    first: usize,
    step: usize,
}

impl Blocks {
    pub const ALL: Self = Self { first: 0, step: 1 };
    pub const EVEN: Self = Self { first: 0, step: 2 };
    pub const ODD: Self = Self { first: 1, step: 2 };

    /// The p-th of them.
    #[inline(always)]
    pub fn at(self, p: usize) -> usize {
        self.first + p * self.step
    }

    /// Which of them block j is.
    pub fn place(self, j: usize) -> Option<usize> {
        let steps = j.checked_sub(self.first)?;
        steps.is_multiple_of(self.step).then_some(steps / self.step)
    }

    /// Those among m blocks.
    pub fn of(self, m: usize) -> impl ExactSizeIterator<Item = usize> + Clone {
        (self.first.min(m)..m).step_by(self.step)
    }
}

/// Factors of a set of diagonal blocks. Their vectors hold the rows of these blocks, one block after the other.
pub(crate) struct BlockSet<T: Scalar> {
    blocks: Blocks,
    partition: Partition,
    factors: Factors<T>,
}

enum Factors<T: Scalar> {
    Lanes {
        /// Blocks that need row interchanges are the identity here.
        lanes: BatchLu<T>,
        /// Of the blocks among all.
        places: Places,
        pivoted: Vec<(usize, TridiagonalLu<T>)>,
    },
    Each(BlockDiagonal<T>),
}

impl<T: Scalar> BlockSet<T> {
    /// Factors these blocks of `a`, whose entries are finite; tridiagonal ones with interchanges where [`BlockDiagonal::new`] does it.
    #[inline(never)]
    pub fn new(a: &BlockTridiagonal<T>, blocks: Blocks) -> Result<Self> {
        let partition = Partition::from_sizes(blocks.of(a.n_blocks()).map(|j| a.partition().size(j)))?;
        let factors = match Factors::in_lanes(a, blocks, &partition)? {
            Some(lanes) => lanes,
            None => Factors::Each(BlockDiagonal::of(a, blocks.of(a.n_blocks()))?),
        };
        Ok(Self { blocks, partition, factors })
    }

    /// The even blocks and the odd ones.
    pub fn colours(a: &BlockTridiagonal<T>) -> Result<[Self; 2]> {
        Ok([Self::new(a, Blocks::EVEN)?, Self::new(a, Blocks::ODD)?])
    }

    /// As `new`, in the memory of the factors; the tridiagonal blocks are copied. After an error the factors are of no use.
    #[inline(never)]
    pub fn refactor(&mut self, a: &BlockTridiagonal<T>) -> Result<()> {
        match &mut self.factors {
            Factors::Each(each) => each.refactor_of(a, self.blocks.of(a.n_blocks())),
            Factors::Lanes { lanes, pivoted, .. } => {
                let DiagonalBlocks::Tridiagonal(t) = a.diagonal() else {
                    *self = Self::new(a, self.blocks)?;
                    return Ok(());
                };
                let batch = batch(t, a.partition(), self.blocks)?;
                lanes.refactor(&batch)?;
                *pivoted = with_interchanges(t, a.partition(), self.blocks, batch, lanes)?;
                Ok(())
            }
        }
    }

    /// Which blocks.
    pub fn blocks(&self) -> Blocks {
        self.blocks
    }
    /// Their rows.
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// z ← D⁻¹·z; the same bits for any number of threads.
    pub fn solve(&self, z: &mut [T], par: Par) {
        match &self.factors {
            Factors::Each(each) => each.solve(&self.partition, z, par),
            Factors::Lanes { lanes, pivoted, .. } => {
                lanes.solve_with(Op::Identity, z, Layout::Strided, par).expect("a right-hand side for each block");
                for (p, lu) in pivoted {
                    lu.solve_vec_in_place(&mut z[self.partition.range(*p)]);
                }
            }
        }
    }

    /// x ← D⁻¹·z in these blocks of x, of length n; the bits of `solve`.
    pub fn solve_into(&self, of: &Partition, z: &[T], x: &mut [T], par: Par) {
        match &self.factors {
            Factors::Each(each) => for_blocks(of, x, par, &|j, x| {
                if let Some(p) = self.blocks.place(j) {
                    x.copy_from_slice(&z[self.partition.range(p)]);
                    each.solve_block(p, x);
                }
            }),
            Factors::Lanes { lanes, places, pivoted } => {
                lanes.solve_into(Op::Identity, z, places, x, par).expect("a right-hand side for each block");
                for (p, lu) in pivoted {
                    lu.solve_vec_in_place(&mut x[of.range(self.blocks.at(*p))]);
                }
            }
        }
    }

    /// z ← b − (L + U)·x in these blocks, b and x of length n.
    pub fn couple(&self, a: &BlockTridiagonal<T>, b: &[T], x: &[T], z: &mut [T], par: Par) {
        for_groups(&self.partition, z, par, &|group, z| {
            a.couplings_residual(group.map(|p| self.blocks.at(p)), b, x, z);
        });
    }

    /// z ← x in these blocks, x of length n.
    pub fn gather(&self, of: &Partition, x: &[T], z: &mut [T]) {
        for p in 0..self.partition.n_blocks() {
            z[self.partition.range(p)].copy_from_slice(&x[of.range(self.blocks.at(p))]);
        }
    }

    /// x ← z in these blocks, x of length n.
    pub fn scatter(&self, of: &Partition, z: &[T], x: &mut [T]) {
        for p in 0..self.partition.n_blocks() {
            x[of.range(self.blocks.at(p))].copy_from_slice(&z[self.partition.range(p)]);
        }
    }

    /// Values of all factors.
    pub fn nnz(&self) -> usize {
        match &self.factors {
            Factors::Each(each) => each.nnz(),
            Factors::Lanes { pivoted, .. } => {
                let interchanged: usize = pivoted.iter().map(|(p, _)| 3 * self.partition.size(*p) - 2).sum();
                let with: usize = pivoted.iter().map(|(_, lu)| lu.stats().nnz).sum();
                3 * self.partition.n() - 2 * self.partition.n_blocks() - interchanged + with
            }
        }
    }

    /// Tridiagonal blocks that needed row interchanges.
    pub fn pivoted_blocks(&self) -> usize {
        match &self.factors {
            Factors::Each(each) => each.pivoted_blocks(),
            Factors::Lanes { pivoted, .. } => pivoted.len(),
        }
    }

    /// Bytes of all factors.
    pub fn bytes(&self) -> usize {
        match &self.factors {
            Factors::Each(each) => each.bytes(),
            Factors::Lanes { lanes, pivoted, .. } => {
                lanes.bytes() + pivoted.iter().map(|(_, lu)| lu.stats().bytes).sum::<usize>()
            }
        }
    }
}

impl<T: Scalar> Factors<T> {
    /// Where the blocks are tridiagonal, and many enough and of sizes so near that lanes are at least half full (or very short).
    fn in_lanes(a: &BlockTridiagonal<T>, blocks: Blocks, partition: &Partition) -> Result<Option<Self>> {
        let DiagonalBlocks::Tridiagonal(t) = a.diagonal() else { return Ok(None) };
        let batch = batch(t, a.partition(), blocks)?;
        if batch.padded_rows() > 2 * partition.n() + 8 * partition.n_blocks() {
            return Ok(None);
        }
        let mut lanes = BatchLu::with_options(&batch, Pivoting::None)?;
        let pivoted = with_interchanges(t, a.partition(), blocks, batch, &mut lanes)?;
        let places = lanes.places(blocks.of(a.n_blocks()).map(|j| a.partition().range(j)))?;
        Ok(Some(Self::Lanes { lanes, places, pivoted }))
    }
}

/// The blocks as a batch.
fn batch<T: Scalar>(t: &Tridiagonal<T>, of: &Partition, blocks: Blocks) -> Result<TridiagonalBatch<T>> {
    let ranges = || blocks.of(of.n_blocks()).map(|j| of.range(j));
    let part = |v: &[T]| -> Vec<T> { ranges().flat_map(|rows| v[rows].iter().copied()).collect() };
    let [lower, diag, upper] = [t.lower(), t.diag(), t.upper()].map(part);
    let sizes: Vec<usize> = ranges().map(|rows| rows.len()).collect();
    match sizes.first() {
        Some(&k) if sizes.iter().all(|&size| size == k) => {
            TridiagonalBatch::new(Layout::Strided, k, lower, diag, upper)
        }
        _ => TridiagonalBatch::with_sizes(&sizes, lower, diag, upper),
    }
}

/// Factors with interchanges for blocks that lanes break down in, or whose elements grow; they become the identity in the lanes.
fn with_interchanges<T: Scalar>(
    t: &Tridiagonal<T>,
    of: &Partition,
    blocks: Blocks,
    mut batch: TridiagonalBatch<T>,
    lanes: &mut BatchLu<T>,
) -> Result<Vec<(usize, TridiagonalLu<T>)>> {
    let mut pivoted = Vec::new();
    let mut ends = 0;
    let mut places = Vec::new();
    for p in 0..batch.n_systems() {
        let rows = ends..ends + batch.size(p);
        ends = rows.end;
        let (lower, diag, upper) = batch.parts();
        let of_a = rows
            .clone()
            .fold(zero::<T::Real>(), |m, i| [lower[i], diag[i], upper[i]].iter().fold(m, |m, v| m.max_nan(v.abs1())));
        let of_u = lanes.pivots(p).fold(zero::<T::Real>(), |m, d| m.max_nan(d.abs1()));
        // A block that broke down has NaN for pivots.
        if !(of_u.to_f64() <= GROWTH * of_a.to_f64()) {
            let j = blocks.at(p);
            let lu = TridiagonalLu::new(&tridiagonal_block(t, of.range(j))?);
            pivoted.push((p, lu.map_err(|e| in_block(e, of, j))?));
            places.push(rows);
        }
    }
    if !places.is_empty() {
        batch.update(|lower, diag, upper| {
            for rows in places {
                lower[rows.clone()].fill(zero());
                diag[rows.clone()].fill(one());
                upper[rows].fill(zero());
            }
        })?;
        lanes.refactor(&batch)?;
    }
    Ok(pivoted)
}

/// Factors of the diagonal blocks for a sweep: in order, all at once, or colour by colour.
#[allow(clippy::large_enum_variant)] // one a solver
pub(crate) enum SweepFactors<T: Scalar> {
    Each(BlockDiagonal<T>),
    All(BlockSet<T>),
    /// Even and odd ones.
    Colours([BlockSet<T>; 2]),
}

impl<T: Scalar> SweepFactors<T> {
    pub fn each(a: &BlockTridiagonal<T>) -> Result<Self> {
        Ok(Self::Each(BlockDiagonal::new(a)?))
    }
    pub fn all(a: &BlockTridiagonal<T>) -> Result<Self> {
        check_finite(a)?;
        Ok(Self::All(BlockSet::new(a, Blocks::ALL)?))
    }
    pub fn colours(a: &BlockTridiagonal<T>) -> Result<Self> {
        check_finite(a)?;
        Ok(Self::Colours(BlockSet::colours(a)?))
    }

    /// As they were made, in their memory.
    #[inline(never)]
    pub fn refactor(&mut self, a: &BlockTridiagonal<T>) -> Result<()> {
        check_finite(a)?;
        match self {
            Self::Each(each) => each.refactor_of(a, Blocks::ALL.of(a.n_blocks())),
            Self::All(all) => all.refactor(a),
            Self::Colours(colours) => colours.iter_mut().try_for_each(|set| set.refactor(a)),
        }
    }

    /// Values of one block, or the rows of the larger colour: what a sweep works in.
    pub fn work(&self, partition: &Partition) -> usize {
        match self {
            Self::Each(_) => partition.min_max_size().1,
            Self::All(_) => 0,
            Self::Colours([even, odd]) => even.partition().n().max(odd.partition().n()),
        }
    }

    fn total(&self, each: impl Fn(&BlockDiagonal<T>) -> usize, set: impl Fn(&BlockSet<T>) -> usize) -> usize {
        match self {
            Self::Each(blocks) => each(blocks),
            Self::All(all) => set(all),
            Self::Colours(colours) => colours.iter().map(set).sum(),
        }
    }
    pub fn nnz(&self) -> usize {
        self.total(BlockDiagonal::nnz, BlockSet::nnz)
    }
    pub fn bytes(&self) -> usize {
        self.total(BlockDiagonal::bytes, BlockSet::bytes)
    }
    pub fn pivoted_blocks(&self) -> usize {
        self.total(BlockDiagonal::pivoted_blocks, BlockSet::pivoted_blocks)
    }
}

#[cfg(test)]
mod tests {
    use bt_formats::{Coo, HybridLayout, c64};

    use super::*;

    /// Weak couplings between blocks of these sizes; the first pivot of the `broken` ones vanishes.
    fn matrix<T: Scalar>(sizes: &[usize], broken: &[usize], scale: f64, reach: usize) -> BlockTridiagonal<T> {
        let partition = Partition::from_sizes(sizes.iter().copied()).unwrap();
        let n = partition.n();
        let value = |i: usize, j: usize| {
            let wave = ((3 * i + 5 * j) as f64).sin();
            T::rounded(scale * if i == j { 3.0 + wave } else { wave }, 0.25 * wave)
        };
        let mut a = Coo::new(n, n).unwrap();
        for j in 0..partition.n_blocks() {
            let rows = partition.range(j);
            for i in rows.clone() {
                for c in rows.start.max(i.saturating_sub(reach))..rows.end.min(i + reach + 1) {
                    let vanishes = broken.contains(&j) && i == c && i == rows.start;
                    a.push(i, c, if vanishes { zero() } else { value(i, c) }).unwrap();
                }
                if j + 1 < partition.n_blocks() {
                    let c = partition.range(j + 1).start + i % partition.size(j + 1);
                    a.push(i, c, value(i, c) * T::rounded(0.125, 0.0)).unwrap();
                    a.push(c, i, value(c, i) * T::rounded(0.125, 0.0)).unwrap();
                }
            }
        }
        BlockTridiagonal::from_csr(&a.to_csr().unwrap(), partition, HybridLayout::default()).unwrap()
    }

    fn bits<T: Scalar>(v: &[T]) -> Vec<(u64, u64)> {
        v.iter().map(|v| (v.re().to_f64().to_bits(), v.im().to_f64().to_bits())).collect()
    }

    /// A set beside the blocks one by one, of `a` and of another matrix with its blocks.
    fn check<T: Scalar>(a: &BlockTridiagonal<T>, other: &BlockTridiagonal<T>, in_lanes: bool, pivoted: [usize; 2]) {
        let partition = a.partition();
        let n = a.n();
        let vector = |f: f64| -> Vec<T> { (0..n).map(|i| T::rounded((f * i as f64).cos(), 0.0)).collect() };
        let (b, x) = (vector(0.7), vector(1.3));
        for blocks in [Blocks::ALL, Blocks::EVEN, Blocks::ODD] {
            let mut set = BlockSet::new(a, blocks).unwrap();
            assert_eq!(matches!(set.factors, Factors::Lanes { .. }), in_lanes);
            for (a, pivoted) in [(a, pivoted[0]), (other, pivoted[1]), (a, pivoted[0])] {
                set.refactor(a).unwrap();
                let each = BlockDiagonal::new(a).unwrap();
                let among = blocks.of(partition.n_blocks()).filter(|&j| each.is_pivoted(j)).count();
                assert_eq!(set.pivoted_blocks(), among);
                if blocks == Blocks::ALL {
                    assert_eq!(among, pivoted);
                    assert_eq!(set.nnz(), each.nnz());
                }
                for par in [Par::Seq, Par::Rayon] {
                    let mut z = vec![zero(); set.partition().n()];
                    set.couple(a, &b, &x, &mut z, par);
                    let mut expected = b.clone();
                    for j in 0..partition.n_blocks() {
                        a.subtract_couplings(j, &x, &mut expected[partition.range(j)]);
                    }
                    let mut seen = x.clone();
                    set.scatter(partition, &z, &mut seen);
                    let mut of_set = x.clone();
                    for j in blocks.of(partition.n_blocks()) {
                        of_set[partition.range(j)].copy_from_slice(&expected[partition.range(j)]);
                    }
                    assert_eq!(bits(&seen), bits(&of_set), "coupled {blocks:?}");

                    for j in blocks.of(partition.n_blocks()) {
                        each.solve_block(j, &mut of_set[partition.range(j)]);
                    }
                    let mut solved = x.clone();
                    set.solve_into(partition, &z, &mut solved, par);
                    assert_eq!(bits(&solved), bits(&of_set), "solved into {blocks:?}");
                    set.solve(&mut z, par);
                    let mut gathered = vec![zero(); z.len()];
                    set.gather(partition, &of_set, &mut gathered);
                    assert_eq!(bits(&z), bits(&gathered), "solved {blocks:?}");
                }
            }
        }
    }

    fn all_sizes<T: Scalar>() {
        let near: Vec<usize> = (0..43).map(|j| 9 + j * j % 8).collect();
        let far: Vec<usize> = (0..37).map(|j| 1 + j * j % 23).collect();
        for (sizes, in_lanes) in [(vec![16; 40], true), (near, true), (far, false), (vec![7; 3], false)] {
            let broken: Vec<usize> = (2..sizes.len()).step_by(5).filter(|&j| sizes[j] > 1).collect();
            let [whole, with] = [&[][..], &broken].map(|broken| matrix::<T>(&sizes, broken, 1.0, 1));
            check(&whole, &with, in_lanes, [0, broken.len()]);
            check(&with, &matrix(&sizes, &[], 2.0, 1), in_lanes, [broken.len(), 0]);
            // Not tridiagonal.
            check(&matrix::<T>(&sizes, &[], 1.0, 2), &matrix(&sizes, &broken, 2.0, 2), false, [0, 0]);
        }
    }

    #[test]
    fn sets_have_the_bits_of_their_blocks() {
        all_sizes::<f64>();
        all_sizes::<f32>();
        all_sizes::<c64>();
    }

    #[test]
    fn singular_blocks_are_named_by_their_place_among_all() {
        let sizes = [5, 4, 6, 4, 1, 1, 1];
        let a = matrix::<f64>(&sizes, &[5], 1.0, 1);
        let error = BlockSet::new(&a, Blocks::ODD).err().expect("block 5 is zero").to_string();
        let column = 5 + 4 + 6 + 4 + 1;
        assert!(error.contains("block 5") && error.contains(&format!("column {column}")), "{error}");
        assert!(BlockSet::new(&a, Blocks::EVEN).is_ok());
    }

    #[test]
    fn one_block_leaves_the_odd_ones_empty() {
        let a = matrix::<f64>(&[9], &[], 1.0, 1);
        let [even, odd] = BlockSet::colours(&a).unwrap();
        assert_eq!((even.partition().n_blocks(), odd.partition().n_blocks(), odd.nnz()), (1, 0, 0));
        odd.solve(&mut [], Par::Seq);
        let mut x = [1.0; 9];
        odd.solve_into(a.partition(), &[], &mut x, Par::Rayon);
        assert_eq!(x, [1.0; 9]);
    }
}
