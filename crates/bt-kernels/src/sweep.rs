//! Sweeps over the rows of a triangle or a matrix on the device: out ← F·(base − E·N·(G·x)), see `kernels/sweep.cu`.

use crate::device::{Arg, Device, DeviceScalar, Family, Kernel, Result, Shape};

/// Addresses of N and of the diagonals E, F and G, 0 where there is none. N has the entries `begin[i] + skip .. end[i]` of row i.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub n: u32,
    pub skip: u32,
    pub begin: u64,
    pub end: u64,
    pub col: u64,
    pub val: u64,
    pub left: u64,
    pub factor: u64,
    pub right: u64,
    /// Of the factor.
    pub scale: f64,
}

impl Rows {
    /// All entries of a matrix in compressed rows, without diagonals.
    pub fn all(n: usize, [ptr, col, val]: [u64; 3]) -> Self {
        let (left, factor, right) = (0, 0, 0);
        Self { n: n as u32, skip: 0, begin: ptr, end: ptr + 4, col, val, left, factor, right, scale: 1.0 }
    }

    /// struct Rows of the kernels.
    fn words(&self) -> [u64; 9] {
        let Self { n, skip, begin, end, col, val, left, factor, right, scale } = *self;
        [u64::from(n) | u64::from(skip) << 32, begin, end, col, val, left, factor, right, scale.to_bits()]
    }
}

/// out ← F·(base − E·N·(G·x)), of addresses; without x F·base, without base N·x.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sweep {
    rows: Rows,
    base: u64,
    x: u64,
    out: u64,
    lanes: u64,
}

/// One step of those that make z ← M⁻¹·r, on addresses: struct Step of the kernels.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Sweep(Sweep),
    /// By diagonal blocks: struct Diagonal of the kernels.
    Blocks {
        words: [u64; 6],
        x: u64,
        out: u64,
    },
}

impl Step {
    pub const WORDS: usize = 9 + 6 + 4;

    pub fn words(&self) -> Vec<u64> {
        match *self {
            Self::Sweep(Sweep { rows, base, x, out, lanes }) => {
                [&rows.words()[..], &[0; 6], &[base, x, out, lanes]].concat()
            }
            Self::Blocks { words, x, out } => [&[0; 9], &words[..], &[0, x, out, 0]].concat(),
        }
    }
}

/// The kernel for rows of a mean length.
pub(crate) struct SweepKernel {
    kernel: Kernel,
    lanes: u64,
    shape: Shape,
}

impl SweepKernel {
    /// For `entries` in `n` rows.
    pub fn new<T: DeviceScalar>(device: &Device, entries: usize, n: usize) -> Result<Self> {
        let lanes = match entries.div_ceil(n.max(1)) {
            0..=8 => 1,
            9..=48 => 8,
            _ => 32,
        };
        let kernel = device.kernel(Family::Sweep, &format!("sweep_{lanes}_{}", T::SUFFIX))?;
        Ok(Self { kernel, lanes, shape: Shape::over(n as u64 * lanes) })
    }

    /// A sweep by this kernel.
    pub fn sweep(&self, rows: &Rows, base: u64, x: u64, out: u64) -> Sweep {
        Sweep { rows: *rows, base, x, out, lanes: self.lanes }
    }

    /// One sweep after another. Nothing where the run whose state is at `now` has stopped.
    pub fn run(&self, sweeps: &[Sweep], now: u64) -> Result<()> {
        sweeps.iter().try_for_each(|Sweep { rows, base, x, out, .. }| {
            let vectors = [*base, *x, *out, now].map(Arg::Word);
            self.kernel.launch(self.shape, &[&[Arg::Struct(&rows.words())], &vectors[..]].concat())
        })
    }
}
