//! Preconditioners on a device for vectors of the host: what a method of the processor, or a rank, applies there.
//!
//! ```text
//! r to the device,  z ← M⁻¹·r there,  z back
//! ```
//!
//! Of [`arms`] only the last level is there, dense factors after random butterflies (Jamal, Baboulin, Khabou & Sosonkina, "A hybrid
//! CPU/GPU approach for the parallel algebraic recursive multilevel solver pARMS"): its levels, and what couples them, are the host's.
//!
//! Storage beside that of M: 2n values on the device. An application copies 2n values of s bytes, 2s·n bytes, and waits for them; of
//! [`arms`] as many as the last level has rows.

use std::sync::{Arc, Mutex, PoisonError};

use bt_direct::{FactorError, RbtOptions};
use bt_formats::{Csr, LinearOperator};
use bt_iter::{Arms, ArmsOptions, LastFactors, Preconditioner, PreconditionerKind};

use crate::cg::Schedule;
use crate::device::{Device, DeviceError, DeviceScalar, DeviceVec, Result};
use crate::preconditioner::{DeviceInverse, DevicePreconditioner, InverseFacts};
use crate::rbt::DeviceRbt;

/// M on a device, applied to vectors of the host.
///
/// An application that the device does not do leaves NaN in z; [`Device::check`] tells why.
///
/// ```
/// use bt_formats::Csr;
/// use bt_iter::{Preconditioner, TriangularSolves};
/// use bt_kernels::{Device, DevicePreconditioner, Offloaded};
/// let a = Csr::from_dense(faer::mat![[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]].as_ref())?;
/// if let Ok(device) = Device::open(0) {
///     let mut m = Offloaded::new(&device, &a, &DevicePreconditioner::Ilu0(TriangularSolves::Levels))?;
///     let mut z = [0.0; 3];
///     m.apply(&[3.0, 4.0, 3.0], &mut z);
///     assert!(z.iter().all(|z: &f64| (z - 1.0).abs() < 1e-15));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Offloaded<T: DeviceScalar> {
    inverse: DeviceInverse<T>,
    name: &'static str,
    kind: PreconditionerKind,
    r: DeviceVec<T>,
    z: DeviceVec<T>,
}

impl<T: DeviceScalar> Offloaded<T> {
    /// Makes M from `a` on the device.
    ///
    /// # Errors
    /// Those of [`DeviceInverse::new`].
    pub fn new(device: &Device, a: &Csr<T>, wanted: &DevicePreconditioner) -> Result<Self> {
        let inverse = DeviceInverse::new(device, a, wanted)?;
        let vector = || DeviceVec::zeros(device, a.nrows());
        let (r, z) = (vector()?, vector()?);
        Ok(Self { inverse, name: wanted.name(), kind: wanted.kind(), r, z })
    }

    /// What it is made of.
    pub fn facts(&self) -> InverseFacts {
        self.inverse.facts()
    }
}

impl<T: DeviceScalar> Preconditioner<T> for Offloaded<T> {
    fn n(&self) -> usize {
        self.r.len()
    }
    fn name(&self) -> &'static str {
        self.name
    }
    fn kind(&self) -> PreconditionerKind {
        self.kind
    }
    fn apply(&mut self, r: &[T], z: &mut [T]) {
        let n = self.r.len();
        assert_eq!((r.len(), z.len()), (n, n), "lengths of r and z");
        let applied = self.r.copy_from(r).and_then(|()| self.inverse.apply(&self.r, &mut self.z));
        if let Err(error) = applied.and_then(|()| self.z.copy_to(z)) {
            self.r.device().keep(error);
            z.fill(T::nan_impl());
        }
    }
    fn nnz(&self) -> usize {
        self.inverse.facts().nnz
    }
    fn bytes(&self) -> usize {
        self.inverse.bytes() + self.r.bytes() + self.z.bytes()
    }
}

impl DevicePreconditioner {
    /// Name, as the command spells it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Identity => "none",
            Self::Jacobi => "jacobi",
            Self::BlockJacobi(_) => "block-jacobi",
            Self::Ilu0(_) => "ilu0",
            Self::Ic0(_) => "ic0",
            Self::Ilut(..) | Self::Ict(..) => "ilut",
            Self::SsorAi { .. } => "ssor-ai",
            Self::SsorAiMasked { .. } => "ssor-ai-masked",
            Self::BlockSsorAi { .. } => "block-ssor-ai",
        }
    }

    /// What a method may assume of it, as of the one of the same name in `bt_iter`.
    fn kind(&self) -> PreconditionerKind {
        match self {
            Self::Identity => PreconditionerKind::Identity,
            Self::Ic0(_) | Self::Ict(..) | Self::SsorAi { .. } | Self::BlockSsorAi { .. } => PreconditionerKind::Spd,
            _ => PreconditionerKind::General,
        }
    }
}

/// ARMS on the host with random butterflies and dense LU without pivoting for its last level on the device.
///
/// ```
/// use bt_direct::RbtOptions;
/// use bt_formats::Csr;
/// use bt_iter::{ArmsOptions, Preconditioner};
/// use bt_kernels::{Device, arms};
/// let a = Csr::from_dense(faer::mat![[4.0, 1.0], [1.0, 3.0]].as_ref())?;
/// if let Ok(device) = Device::open(0) {
///     let mut z = [0.0; 2];
///     arms(&device, &a, ArmsOptions::default(), RbtOptions::default())?.apply(&[5.0, 4.0], &mut z);
///     assert!(z.iter().all(|z: &f64| (z - 1.0).abs() < 1e-14));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Those of [`Arms::with_options`] and of [`DeviceRbt::with_options`].
pub fn arms<T: DeviceScalar>(
    device: &Device,
    a: &Csr<T>,
    options: ArmsOptions,
    butterflies: RbtOptions,
) -> Result<Arms<T>> {
    // What is no error of a factorization goes round it.
    let fault = Arc::new(Mutex::new(None));
    let (noted, device) = (Arc::clone(&fault), device.clone());
    let factors: LastFactors<T> =
        Box::new(move |s| match DeviceRbt::with_options(&device, s.as_ref(), butterflies, Schedule::Auto) {
            Ok(rbt) => {
                let fallback = rbt.fallback();
                Ok((Box::new(rbt), fallback))
            }
            Err(DeviceError::Factor(error)) => Err(error),
            Err(other) => {
                let reason = other.to_string();
                *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(other);
                Err(FactorError::Failed { method: "rbt", reason })
            }
        });
    Arms::with_last(a, options, factors).map_err(|error| {
        let noted = fault.lock().unwrap_or_else(PoisonError::into_inner).take();
        noted.unwrap_or(DeviceError::Factor(error))
    })
}
