//! Preconditioners on the device: what there is, how each is made from A, and z ← M⁻¹·r.

use std::sync::Arc;

use bt_formats::{Csr, Error as InputError, LinearOperator, Partition, one};
use bt_iter::{IlutOptions, Jacobi, Preconditioner, Series, Triangles, TriangularSolves};

use crate::bcsr::BlockInverse;
use crate::block_jacobi::BlockJacobi;
use crate::device::{Device, DeviceScalar, DeviceVec, Result};
use crate::ilu0::{Ilu0, Pivots};
use crate::ilut::ilut;
use crate::spmv::DeviceCsr;
use crate::ssor_ai::{Masked, SsorAi};
use crate::sweep::{Rows, Step, SweepKernel};

/// Preconditioners of device solvers; each is that of `bt_iter`.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum DevicePreconditioner {
    /// M = I.
    #[default]
    Identity,
    /// M = diag(A).
    Jacobi,
    /// The diagonal blocks of A. Tridiagonal ones of at most 1024 rows that need no row interchanges are solved by parallel cyclic
    /// reduction, 5n values of traffic; otherwise all blocks are inverted by the host, Σ kⱼ² values. One launch.
    BlockJacobi(Partition),
    /// ILU(0), factored on the device by [`bt_iter::ilu0`]'s rule for pivots. Two launches, or 2m + 1 for m Jacobi sweeps.
    Ilu0(TriangularSolves),
    /// IC(0) as [`bt_iter::ic0`], shifted where it breaks down; launches as of ILU(0).
    Ic0(TriangularSolves),
    /// ILUT(p, τ) on a pattern that parallel sweeps search on the device (H. Anzt, E. Chow, J. Dongarra, SIAM J. Sci. Comput. 40 (2018)
    /// C503–C519, doi:10.1137/16M1079506), with the p, τ and sizes of [`bt_iter::ilut`]; launches as of ILU(0).
    Ilut(IlutOptions, TriangularSolves),
    /// The same for symmetric positive definite matrices, on the pattern with its transpose, shifted as IC(0).
    Ict(IlutOptions, TriangularSolves),
    /// SSOR's approximate inverse as [`bt_iter::SsorAi`], for 0 < ω < 2: two launches, of order 2 four.
    SsorAi {
        /// ω
        omega: f64,
        /// Where the series ends.
        series: Series,
        /// Whether the triangles are copies or read from A.
        triangles: Triangles,
    },
    /// The same multiplied out on the pattern of A, as [`bt_iter::SsorAiMasked`], by the host: one launch.
    SsorAiMasked {
        /// ω
        omega: f64,
    },
    /// SSOR's approximate inverse of order 2 by blocks, as [`bt_iter::BlockSsorAi`], made by the host: five launches.
    BlockSsorAi {
        /// ω
        omega: f64,
        /// Rows of a block.
        block_size: usize,
    },
}

/// What a preconditioner on a device is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct InverseFacts {
    /// Values stored for it.
    pub nnz: usize,
    /// Launches of an application; none where the method does it along with its own work.
    pub launches: usize,
    /// Pivots that were too small and replaced.
    pub replaced_pivots: usize,
    /// α of the A + α·diag(A) that IC(0) factored, and the attempts before that met a pivot that was not positive.
    pub shift: f64,
    /// See `shift`.
    pub breakdowns: usize,
    /// Levels of L and of U.
    pub levels: Option<(usize, usize)>,
    /// How the pattern was found, where it was searched.
    pub search: Option<SearchFacts>,
}

/// A search for the pattern of incomplete factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchFacts {
    /// Steps, each of which brings a level of fill.
    pub steps: usize,
    /// √(Σ‖rᵢ‖²/‖aᵢ‖² / n) for the rows rᵢ of A − L·U, and for what of them lies in the pattern of L and U.
    pub left_over: [f64; 2],
}

/// z ← M⁻¹·r by launches on addresses.
pub(crate) trait Apply<T: DeviceScalar> {
    /// z ← M⁻¹·r, unless the run whose state is at `now` has stopped; 0 is no run.
    fn enqueue(&self, r: u64, z: u64, now: u64) -> Result<()>;
    /// The same as steps of a cooperative launch, where it is made of such.
    fn parts(&self, _r: u64, _z: u64) -> Option<Vec<Step>> {
        None
    }
    fn facts(&self) -> InverseFacts;
    fn bytes(&self) -> usize;
}

/// M as the methods know it.
pub(crate) enum Made<T: DeviceScalar> {
    Identity,
    /// 1 / diag(A)
    Diagonal(DeviceVec<T>),
    /// The one that takes new values.
    Incomplete(Box<Ilu0<T>>),
    Elsewhere(Box<dyn Apply<T> + Send>),
}

impl<T: DeviceScalar> Made<T> {
    /// From `a`, whose rows on the device `matrix` gives where they are read.
    ///
    /// # Errors
    /// Those of [`DeviceInverse::new`].
    pub fn new(
        device: &Device,
        a: &Csr<T>,
        matrix: impl FnOnce() -> Result<Arc<DeviceCsr<T>>>,
        wanted: &DevicePreconditioner,
    ) -> Result<Self> {
        let incomplete = |pivots, solves| Ok(Self::Incomplete(Box::new(Ilu0::new(device, a, pivots, solves)?)));
        Ok(Self::Elsewhere(match *wanted {
            DevicePreconditioner::Identity => return Ok(Self::Identity),
            DevicePreconditioner::Jacobi => {
                return Ok(Self::Diagonal(DeviceVec::from_slice(device, &reciprocals(a)?)?));
            }
            DevicePreconditioner::Ilu0(solves) => return incomplete(Pivots::Replaced, solves),
            DevicePreconditioner::Ic0(solves) => return incomplete(Pivots::Positive, solves),
            DevicePreconditioner::Ilut(options, solves) => {
                Box::new(ilut(device, a, options, Pivots::Replaced, solves)?)
            }
            DevicePreconditioner::Ict(options, solves) => Box::new(ilut(device, a, options, Pivots::Positive, solves)?),
            DevicePreconditioner::BlockJacobi(ref partition) => Box::new(BlockJacobi::new(device, a, partition)?),
            DevicePreconditioner::SsorAi { omega, series, triangles } => {
                let matrix = if triangles == Triangles::OfMatrix { Some(matrix()?) } else { None };
                Box::new(SsorAi::new(device, a, matrix, omega, series)?)
            }
            DevicePreconditioner::SsorAiMasked { omega } => Box::new(Masked::new(device, a, omega)?),
            DevicePreconditioner::BlockSsorAi { omega, block_size } => {
                Box::new(BlockInverse::new(device, a, block_size, omega)?)
            }
        }))
    }

    /// IDENTITY, DIAGONAL, ELSEWHERE of kernels/device.h.
    pub fn code(&self) -> u64 {
        match self {
            Self::Identity => 0,
            Self::Diagonal(_) => 1,
            Self::Incomplete(_) | Self::Elsewhere(_) => 2,
        }
    }

    /// Of 1 / diag(A); 0 without.
    pub fn diagonal(&self) -> u64 {
        if let Self::Diagonal(inverse) = self { inverse.address() } else { 0 }
    }

    /// M's own launches, if it has any.
    pub fn elsewhere(&self) -> Option<&dyn Apply<T>> {
        match self {
            Self::Identity | Self::Diagonal(_) => None,
            Self::Incomplete(m) => Some(&**m),
            Self::Elsewhere(m) => Some(&**m),
        }
    }

    pub fn facts(&self) -> InverseFacts {
        match self {
            Self::Identity => InverseFacts::default(),
            Self::Diagonal(inverse) => InverseFacts { nnz: inverse.len(), ..InverseFacts::default() },
            Self::Incomplete(m) => m.facts(),
            Self::Elsewhere(m) => m.facts(),
        }
    }

    pub fn bytes(&self) -> usize {
        match self {
            Self::Identity => 0,
            Self::Diagonal(inverse) => inverse.bytes(),
            Self::Incomplete(m) => m.bytes(),
            Self::Elsewhere(m) => m.bytes(),
        }
    }
}

/// 1 / diag(A)
pub(crate) fn reciprocals<T: DeviceScalar>(a: &Csr<T>) -> Result<Vec<T>> {
    let (ones, mut inverse) = (vec![one::<T>(); a.nrows()], vec![one::<T>(); a.nrows()]);
    Jacobi::new(a)?.apply(&ones, &mut inverse);
    Ok(inverse)
}

/// A preconditioner on a device, to apply on its own.
///
/// ```
/// use bt_formats::Csr;
/// use bt_iter::TriangularSolves;
/// use bt_kernels::{Device, DeviceInverse, DevicePreconditioner, DeviceVec};
/// // A tridiagonal matrix has no fill: M = A.
/// let a = Csr::from_dense(faer::mat![[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]].as_ref())?;
/// if let Ok(device) = Device::open(0) {
///     let mut m = DeviceInverse::new(&device, &a, &DevicePreconditioner::Ilu0(TriangularSolves::Levels))?;
///     let (r, mut z) = (DeviceVec::from_slice(&device, &[3.0, 4.0, 3.0])?, DeviceVec::zeros(&device, 3)?);
///     m.apply(&r, &mut z)?;
///     let mut host = [0.0; 3];
///     z.copy_to(&mut host)?;
///     assert!(host.iter().all(|z: &f64| (z - 1.0).abs() < 1e-15) && m.facts().replaced_pivots == 0);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DeviceInverse<T: DeviceScalar> {
    n: usize,
    device: Device,
    wanted: DevicePreconditioner,
    made: Made<T>,
    /// For I and diag(A).
    sweep: SweepKernel,
}

impl<T: DeviceScalar> DeviceInverse<T> {
    /// Makes M from `a`.
    ///
    /// # Errors
    /// [`InputError::NotSquare`], [`InputError::NonFinite`], and those of the constructor of the same name in `bt_iter`;
    /// [`InputError::DimensionMismatch`] for blocks of another size, [`InputError::TooLarge`] for inverses of blocks that the device
    /// cannot hold; errors of the device.
    ///
    /// # Cost
    /// O(nnz) on the host to look at the pattern. ILU(0) and IC(0): one launch an attempt, and six of marks and copies (one for sweeps).
    pub fn new(device: &Device, a: &Csr<T>, wanted: &DevicePreconditioner) -> Result<Self> {
        a.check_square()?;
        a.check_finite()?;
        let made = Made::new(device, a, || Ok(Arc::new(DeviceCsr::new(device, a)?)), wanted)?;
        let sweep = SweepKernel::new::<T>(device, 0, a.nrows())?;
        Ok(Self { n: a.nrows(), device: device.clone(), wanted: wanted.clone(), made, sweep })
    }

    /// M of another matrix of the same size. Incomplete factors keep pattern and memory, to the bits of new ones; after an error of
    /// theirs applications give NaN until a refactorisation succeeds. The others are made anew, and stay as they are after an error.
    ///
    /// # Errors
    /// As [`DeviceInverse::new`]; [`InputError::DimensionMismatch`] for another size, [`InputError::OutsideStructure`] naming an entry
    /// that the pattern has no place for.
    pub fn refactor(&mut self, a: &Csr<T>) -> Result<()> {
        if let Made::Incomplete(m) = &mut self.made {
            return m.refactor(a);
        }
        let (expected, found) = (self.n, a.nrows());
        if found != expected {
            return Err(InputError::DimensionMismatch { what: "size of the matrix", expected, found }.into());
        }
        *self = Self::new(&self.device, a, &self.wanted)?;
        Ok(())
    }

    /// z ← M⁻¹·r.
    ///
    /// # Errors
    /// [`InputError::DimensionMismatch`]; errors of the device.
    pub fn apply(&mut self, r: &DeviceVec<T>, z: &mut DeviceVec<T>) -> Result<()> {
        for (what, found) in [("length of r", r.len()), ("length of z", z.len())] {
            if found != self.n {
                return Err(InputError::DimensionMismatch { what, expected: self.n, found }.into());
            }
        }
        if let Some(m) = self.made.elsewhere() {
            return m.enqueue(r.address(), z.address(), 0);
        }
        let rows = Rows { factor: self.made.diagonal(), ..Rows::all(self.n, [0; 3]) };
        self.sweep.run(&[self.sweep.sweep(&rows, r.address(), 0, z.address())], 0)
    }

    /// What it is made of.
    pub fn facts(&self) -> InverseFacts {
        self.made.facts()
    }

    /// Bytes on the device, A not counted.
    pub fn bytes(&self) -> usize {
        self.made.bytes()
    }
}
