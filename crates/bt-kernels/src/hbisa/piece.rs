//! Blocks of a matrix on a device, all of them or some that follow each other, with the vectors of the iteration.
//!
//! Blocks couple to their neighbours alone. Beside its own rows a piece has those of the block on either side, of which only x is there;
//! rows and columns are numbered from the first of them on.

use std::ops::Range;

use bt_formats::{BlockTridiagonal, DiagonalBlocks, Matrix, Scalar};
use bt_iter::{BlockDiagonal, StopRule, Sweep};
use faer::{Mat, MatRef};

use super::colours;
use super::run::{ATOL, NORM, STATE, Vectors};
use crate::device::{Arg, Device, DeviceScalar, DeviceVec, Family, Kernel, Result, Shape};
use crate::krylov::FIELDS;
use crate::scaled::Exponents;
use crate::spmv::couplings;
use crate::tridiagonal::BlockSolver;

/// What all pieces of a matrix are made from, on the host.
pub(super) struct Source<T: DeviceScalar> {
    /// Finite entries, regular blocks, and whether they can do without interchanges.
    checked: BlockDiagonal<T>,
    couplings: (Vec<u32>, Vec<u32>, Vec<T>),
    pub exponents: Exponents,
    /// Rows of the largest block.
    pub largest: usize,
    /// Whether blocks of it have factors: the kernels of all pieces are then the same.
    factored: bool,
}

impl<T: DeviceScalar> Source<T> {
    pub fn new(a: &BlockTridiagonal<T>) -> Result<Self> {
        let checked = BlockDiagonal::new(a)?;
        let mut largest = vec![T::default()];
        a.for_each_entry(&mut |_, _, v| largest[0] = larger(largest[0], v));
        Ok(Self {
            factored: !is_tridiagonal(a) || checked.pivoted_blocks() > 0,
            checked,
            couplings: couplings(a),
            exponents: Exponents::of(&largest),
            largest: a.partition().min_max_size().1,
        })
    }

    /// The kernel of that name.
    pub fn kernel(&self, device: &Device, name: &str) -> Result<Kernel> {
        let kind = if self.factored { "_factored" } else { "" };
        device.kernel(Family::Hbisa, &format!("hbisa_{name}{kind}_{}", T::SUFFIX))
    }

    /// Whether block j is factored.
    fn is_factored(&self, a: &BlockTridiagonal<T>, j: usize) -> bool {
        !is_tridiagonal(a) || self.checked.is_pivoted(j)
    }
}

/// Blocks on a device.
pub(super) struct Piece<T: DeviceScalar> {
    pub blocks: Range<usize>,
    /// Rows of A that x has here.
    pub rows: Range<usize>,
    /// Where its own rows begin among them.
    own: usize,
    first: DeviceVec<u32>,
    diagonal: DeviceVec<T>,
    row_ptr: DeviceVec<u32>,
    col_idx: DeviceVec<u32>,
    values: DeviceVec<T>,
    factored: Option<Factored<T>>,
    pub vectors: Vectors<T>,
    half: Kernel,
    /// Of one right-hand side.
    pub shape: Shape,
    /// Blocks that a thread block takes at a time, and threads of each.
    together: [u32; 2],
}

/// Dense factors of diagonal blocks: see struct Blocks of the kernels.
struct Factored<T: DeviceScalar> {
    starts: DeviceVec<u64>,
    factors: DeviceVec<T>,
    order: DeviceVec<u32>,
    count: usize,
}

/// The place of a block without factors.
const NONE: u64 = u64::MAX;

impl<T: DeviceScalar> Factored<T> {
    /// Factors, by partial pivoting, of those of the blocks that have them, behind `before` rows without.
    fn new(
        device: &Device,
        a: &BlockTridiagonal<T>,
        source: &Source<T>,
        blocks: Range<usize>,
        before: usize,
    ) -> Result<Self> {
        let size = |j| a.partition().size(j);
        let chosen = |j| source.is_factored(a, j);
        let total: usize = blocks.clone().filter(|&j| chosen(j)).map(|j| size(j) * size(j)).sum();
        // Before the work: whether it fits.
        let mut on_device = DeviceVec::uninitialized(device, total)?;
        let (mut starts, mut factors) = (Vec::new(), Vec::with_capacity(total));
        let mut order: Vec<u32> = (0..before as u32).collect();
        for j in blocks {
            let k = size(j);
            if !chosen(j) {
                starts.push(NONE);
                order.extend(0..k as u32);
                continue;
            }
            let mut block = Mat::zeros(k, k);
            a.copy_diagonal_block(j, block.as_mut());
            let scaled = source.exponents.matrix(&columns_of(&block));
            let lu = MatRef::from_column_major_slice(&scaled, k, k).to_owned().partial_piv_lu();
            let (l, u) = (lu.L(), lu.U());
            starts.push(factors.len() as u64);
            factors.extend((0..k * k).map(|at| {
                let (i, c) = (at % k, at / k);
                if i > c { l[(i, c)] } else { u[(i, c)] }
            }));
            order.extend(lu.P().arrays().0.iter().map(|&i| i as u32));
        }
        on_device.copy_from(&factors)?;
        Ok(Self {
            count: starts.iter().filter(|&&s| s != NONE).count(),
            starts: DeviceVec::from_slice(device, &starts)?,
            factors: on_device,
            order: DeviceVec::from_slice(device, &order)?,
        })
    }

    fn bytes(&self) -> usize {
        self.starts.bytes() + self.factors.bytes() + self.order.bytes()
    }
}

/// What blocks of a few rows share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// Thread blocks, which have as much to do then as with large ones.
    ThreadBlocks,
    /// Nothing: each has sums of its own, whatever lies beside it.
    Nothing,
}

impl<T: DeviceScalar> Piece<T> {
    /// Copies the blocks to the device, and takes the memory for the vectors of one right-hand side.
    pub fn new(
        device: &Device,
        a: &BlockTridiagonal<T>,
        source: &Source<T>,
        blocks: Range<usize>,
        sweep: Sweep,
        share: Share,
    ) -> Result<Self> {
        let (offsets, m) = (a.partition().offsets(), a.n_blocks());
        let (first, end) = (blocks.start.saturating_sub(1), m.min(blocks.end + 1));
        let at = |j: usize| offsets[j] as usize;
        let (rows, own) = (at(first)..at(end), at(blocks.start)..at(blocks.end));
        let e = source.exponents;
        let (ptr, col, val) = &source.couplings;
        let entries = ptr[own.start] as usize..ptr[own.end] as usize;
        let before = rows.start as u32;
        let row_ptr: Vec<u32> =
            (rows.start..=rows.end).map(|i| ptr[i.clamp(own.start, own.end)] - ptr[own.start]).collect();
        let col_idx: Vec<u32> = col[entries.clone()].iter().map(|c| c - before).collect();
        let starts: Vec<u32> = offsets[first..=end].iter().map(|o| o - before).collect();
        let diagonals = match a.diagonal() {
            DiagonalBlocks::Tridiagonal(d) => [d.lower(), d.diag(), d.upper()].map(|d| &d[rows.clone()]).concat(),
            _ => Vec::new(),
        };
        let left = own.start - rows.start;
        let factored =
            if source.factored { Some(Factored::new(device, a, source, blocks.clone(), left)?) } else { None };
        let largest = (source.largest as u32).max(1);
        let (pitch, together) = match share {
            // One with factors takes whole warps for its triangles.
            Share::ThreadBlocks if !source.factored => (largest, (Shape::BLOCK / largest).max(1)),
            _ => (largest.next_multiple_of(32), 1),
        };
        let threads = (pitch * together).next_multiple_of(32);
        let count = (blocks.len() as u32).div_ceil(colours(sweep)).div_ceil(together);
        let shape = Shape { threads, ..Shape::blocks(count) };
        Ok(Self {
            own: blocks.start - first,
            first: DeviceVec::from_slice(device, &starts)?,
            diagonal: DeviceVec::from_slice(device, &e.matrix(&diagonals))?,
            row_ptr: DeviceVec::from_slice(device, &row_ptr)?,
            col_idx: DeviceVec::from_slice(device, &col_idx)?,
            values: DeviceVec::from_slice(device, &e.matrix(&val[entries]))?,
            factored,
            vectors: Vectors::new(device, rows.len(), is_tridiagonal(a), shape, 1)?,
            half: source.kernel(device, "half")?,
            shape,
            together: [together, pitch],
            blocks,
            rows,
        })
    }

    pub fn device(&self) -> &Device {
        self.first.device()
    }

    /// Bytes of the matrix and of factors.
    pub fn bytes(&self) -> [usize; 2] {
        let matrix = [&self.first, &self.row_ptr, &self.col_idx].map(DeviceVec::bytes).iter().sum::<usize>();
        [matrix + self.diagonal.bytes() + self.values.bytes(), self.factored.as_ref().map_or(0, Factored::bytes)]
    }

    /// Tridiagonal blocks that are factored because they need interchanges.
    pub fn interchanged(&self) -> usize {
        self.factored.as_ref().filter(|_| self.vectors.image.is_none()).map_or(0, |f| f.count)
    }

    /// struct Blocks of the kernels.
    pub fn words(&self, sweep: Sweep, rule: StopRule, solver: BlockSolver) -> [u64; 18] {
        let v = &self.vectors;
        let [starts, factors, order] =
            self.factored.as_ref().map_or([0; 3], |f| [f.starts.address(), f.factors.address(), f.order.address()]);
        [
            self.rows.len() as u64 | (self.blocks.len() as u64) << 32,
            self.first.address() + 4 * self.own as u64,
            self.diagonal.address(),
            self.row_ptr.address(),
            self.col_idx.address(),
            self.values.address(),
            v.b.address(),
            v.x.address(),
            v.best.address(),
            starts,
            factors,
            order,
            v.image.as_ref().map_or(0, DeviceVec::address),
            v.parts.address(),
            v.state.address(),
            u64::from(colours(sweep)) | u64::from(rule == StopRule::Update) << 32,
            v.columns as u64 | u64::from(solver.code()) << 32,
            u64::from(self.together[0]) | u64::from(self.together[1]) << 32,
        ]
    }

    /// Of all right-hand sides.
    pub fn grid(&self) -> Shape {
        Shape { blocks: self.shape.blocks * self.vectors.columns as u32, ..self.shape }
    }

    /// A half of a sweep (of Jacobi, a whole one) by these words.
    pub fn half_sweep(&self, words: &[u64], [step, colour, limit]: [u32; 3]) -> Result<()> {
        let [step, colour, limit] = [step, colour, limit].map(Arg::from);
        self.half.launch(self.grid(), &[Arg::Struct(words), step, colour, limit])
    }

    /// Where row i of A is in iterate `step` of one right-hand side.
    pub fn place(&self, step: u32, i: usize) -> usize {
        step as usize % 3 * self.rows.len() + i - self.rows.start
    }

    /// b and iterate 0 of A's rows, and a state that never stops the device.
    pub fn load_alone(&mut self, e: Exponents, b: &[T], x: &[T], norm_r0: f64) -> Result<()> {
        self.vectors.b.copy_range_from(0, &e.rhs(&b[self.rows.clone()]))?;
        let mut iterates = e.to_scaled(&x[self.rows.clone()]);
        iterates.resize(3 * self.rows.len(), T::default());
        self.vectors.x.copy_range_from(0, &iterates)?;
        let mut state = [0.0; STATE];
        state[FIELDS + NORM] = e.scaled_norm(norm_r0);
        // No norm reaches a negative tolerance.
        state[ATOL] = -1.0;
        self.vectors.state.copy_range_from(0, &state)
    }
}

/// The values of a matrix, column after column.
fn columns_of<T: DeviceScalar>(a: &Mat<T>) -> Vec<T> {
    (0..a.ncols()).flat_map(|j| a.col_as_slice(j).iter().copied()).collect()
}

/// The one of the larger modulus.
fn larger<T: DeviceScalar>(a: T, b: T) -> T {
    if Scalar::abs(b) > Scalar::abs(a) { b } else { a }
}

fn is_tridiagonal<T: DeviceScalar>(a: &BlockTridiagonal<T>) -> bool {
    matches!(a.diagonal(), DiagonalBlocks::Tridiagonal(_))
}
