//! Block Jacobi on the device: z ← D⁻¹·r, D the diagonal blocks of A (`kernels/block_jacobi.cu`).
//!
//! Tridiagonal blocks of at most 1024 rows are solved by parallel cyclic reduction in shared memory, small ones side by side in groups,
//! unless one needs row interchanges, which the reduction does not make. Then, and where blocks are wider or larger, the host inverts
//! all of them by factors with interchanges ([`BlockDiagonal`]), and an application multiplies by the inverses.
//!
//! Storage: 3n values and the groups; or Σ kⱼ² values, 4n bytes and 12 a block. Traffic: 5s·n bytes, at most 14·⌈log₂k⌉ + 4 flops a row; or s·Σ kⱼ² +
//! 8n + 2s·n bytes, 2·Σ kⱼ² flops.

use bt_formats::{Csr, DiagonalBlocks, Error as InputError, HybridLayout, LinearOperator, Partition, one, zero};
use bt_iter::{BlockDiagonal, QuasiBlockTridiagonal};

use crate::device::{Arg, Device, DeviceScalar, DeviceVec, Family, Kernel, Result, Shape};
use crate::preconditioner::{Apply, InverseFacts};
use crate::sweep::Step;

/// Rows of a block that a thread block solves, at most.
const LARGEST: usize = 1024;

pub(crate) struct BlockJacobi<T: DeviceScalar> {
    n: usize,
    form: Form<T>,
    kernel: Kernel,
    shape: Shape,
}

enum Form<T: DeviceScalar> {
    /// First rows of groups and the end; rows of the largest block; the diagonals, without what leaves a block.
    Tridiagonal { groups: DeviceVec<u32>, largest: u32, diagonals: DeviceVec<T> },
    /// The block of each row, first rows of blocks, where the inverse of each begins, and the inverses.
    Dense { home: DeviceVec<u32>, first: DeviceVec<u32>, starts: DeviceVec<u64>, inverses: DeviceVec<T> },
}

impl<T: DeviceScalar> BlockJacobi<T> {
    /// Of the diagonal blocks of `a`.
    ///
    /// # Errors
    /// As [`BlockDiagonal::new`]; [`InputError::DimensionMismatch`] for blocks of another matrix, [`InputError::TooLarge`] for inverses
    /// beyond the memory of the device; errors of the device.
    pub fn new(device: &Device, a: &Csr<T>, partition: &Partition) -> Result<Self> {
        let n = a.nrows();
        let blocks = QuasiBlockTridiagonal::new(a, partition.clone(), HybridLayout::default())?.into_blocks();
        let factors = BlockDiagonal::new(&blocks)?;
        let largest = partition.min_max_size().1;
        let kernel = |name| device.kernel(Family::BlockJacobi, &format!("block_jacobi_{name}_{}", T::SUFFIX));
        if let DiagonalBlocks::Tridiagonal(t) = blocks.diagonal()
            && largest <= LARGEST
            && factors.pivoted_blocks() == 0
        {
            let mut diagonals = [t.lower(), t.diag(), t.upper()].concat();
            for range in (0..partition.n_blocks()).map(|j| partition.range(j)).filter(|range| !range.is_empty()) {
                (diagonals[range.start], diagonals[2 * n + range.end - 1]) = (zero(), zero());
            }
            let threads = largest.max(Shape::BLOCK as usize).next_multiple_of(32);
            let groups = groups(partition, threads);
            let shape = Shape { threads: threads as u32, ..Shape::blocks(groups.len() as u32 - 1) };
            let (groups, diagonals) =
                (DeviceVec::from_slice(device, &groups)?, DeviceVec::from_slice(device, &diagonals)?);
            let form = Form::Tridiagonal { groups, largest: largest as u32, diagonals };
            return Ok(Self { n, form, kernel: kernel("tridiagonal")?, shape });
        }
        let mut starts = vec![0u64];
        for k in partition.sizes() {
            starts.push(starts[starts.len() - 1] + (k as u64).pow(2));
        }
        let values = starts[partition.n_blocks()];
        if values.saturating_mul(size_of::<T>() as u64) > device.memory() as u64 {
            let limit = format!("{} bytes of the device", device.memory());
            return Err(InputError::TooLarge {
                what: "inverses of diagonal blocks",
                needed: format!("{values} values"),
                limit,
            }
            .into());
        }
        let mut inverses = vec![zero::<T>(); values as usize];
        for j in 0..partition.n_blocks() {
            let (k, from) = (partition.size(j), starts[j] as usize);
            for (c, column) in inverses[from..from + k * k].chunks_exact_mut(k.max(1)).enumerate() {
                column[c] = one();
                factors.solve_block(j, column);
            }
        }
        let home: Vec<u32> =
            (0..partition.n_blocks()).flat_map(|j| partition.range(j).map(move |_| j as u32)).collect();
        let form = Form::Dense {
            home: DeviceVec::from_slice(device, &home)?,
            first: DeviceVec::from_slice(device, partition.offsets())?,
            starts: DeviceVec::from_slice(device, &starts)?,
            inverses: DeviceVec::from_slice(device, &inverses)?,
        };
        Ok(Self { n, form, kernel: kernel("dense")?, shape: Shape::over(n as u64) })
    }
}

/// First rows of groups of whole blocks with at most `rows` rows, and the end.
fn groups(partition: &Partition, rows: usize) -> Vec<u32> {
    let mut first = vec![0];
    for pair in partition.offsets().windows(2) {
        if (pair[1] - first[first.len() - 1]) as usize > rows {
            first.push(pair[0]);
        }
    }
    first.push(partition.n() as u32);
    first
}

impl<T: DeviceScalar> Apply<T> for BlockJacobi<T> {
    fn enqueue(&self, r: u64, z: u64, now: u64) -> Result<()> {
        let n = Arg::from(self.n as u32);
        let vectors = [Arg::Word(r), Arg::Word(z), Arg::Word(now)];
        let matrix = match &self.form {
            Form::Tridiagonal { groups, largest, diagonals } => {
                vec![n, Arg::from(groups.len() as u32 - 1), Arg::from(*largest), groups.arg(), diagonals.arg()]
            }
            Form::Dense { home, first, starts, inverses } => {
                vec![n, home.arg(), first.arg(), starts.arg(), inverses.arg()]
            }
        };
        self.kernel.launch(self.shape, &[&matrix[..], &vectors].concat())
    }

    fn parts(&self, r: u64, z: u64) -> Option<Vec<Step>> {
        let n = self.n as u64;
        let words = match &self.form {
            // The groups are those of a thread block that the methods have not.
            Form::Tridiagonal { .. } if self.shape.threads > Shape::BLOCK => return None,
            Form::Tridiagonal { groups, largest, diagonals } => {
                let count = groups.len() as u64 - 1;
                [n | count << 32, u64::from(*largest), groups.address(), 0, 0, diagonals.address()]
            }
            Form::Dense { home, first, starts, inverses } => {
                [n, 0, first.address(), home.address(), starts.address(), inverses.address()]
            }
        };
        Some(vec![Step::Blocks { words, x: r, out: z }])
    }

    fn facts(&self) -> InverseFacts {
        let nnz = match &self.form {
            Form::Tridiagonal { diagonals, .. } => diagonals.len(),
            Form::Dense { inverses, .. } => inverses.len(),
        };
        InverseFacts { nnz, launches: 1, ..InverseFacts::default() }
    }

    fn bytes(&self) -> usize {
        match &self.form {
            Form::Tridiagonal { groups, diagonals, .. } => groups.bytes() + diagonals.bytes(),
            Form::Dense { home, first, starts, inverses } => {
                home.bytes() + first.bytes() + starts.bytes() + inverses.bytes()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_hold_whole_blocks() {
        let of = |sizes: &[usize], rows| groups(&Partition::from_sizes(sizes.iter().copied()).unwrap(), rows);
        assert_eq!(of(&[3], 4), [0, 3]);
        assert_eq!(of(&[2, 2, 1, 4, 1], 4), [0, 4, 5, 9, 10]);
        assert_eq!(of(&[1; 5], 4), [0, 4, 5]);
    }
}
