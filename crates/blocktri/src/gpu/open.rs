//! A GPU that is held open, and what it solves at one call: batches of stationary distributions. Without the feature `cuda` none can be opened.

use bt_formats::{BlockTridiagonal, Scaled};

use crate::error::Error;

/// A GPU held open: solves on it need not open it again.
#[allow(missing_debug_implementations)]
pub struct OpenDevice(
    /// Closes it when dropped.
    #[cfg(feature = "cuda")]
    pub(super) bt_kernels::Device,
);

impl OpenDevice {
    /// The NVIDIA GPU of this number, from 0.
    ///
    /// # Errors
    /// [`Error::Device`] when it is not there, and always without the feature `cuda`.
    pub fn open(ordinal: u32) -> Result<Self, Error> {
        #[cfg(feature = "cuda")]
        return Ok(Self(bt_kernels::Device::open(ordinal)?));
        #[cfg(not(feature = "cuda"))]
        return Err(absent(ordinal));
    }

    /// π with πQ = 0, Σπ = 1 for each of many small chains whose blocks are levels of at most 38 states, by elimination without
    /// subtraction; in words why the GPU has none for one, which disturbs no other. Entries off the diagonal are rates, the
    /// diagonal is not read.
    ///
    /// ```
    /// use blocktri::{BlockTridiagonal, OpenDevice, Partition};
    /// // 0 ⇄ 1, up at rate 1 and down at rate 3
    /// let levels = Partition::from_sizes([1, 1])?;
    /// let q = BlockTridiagonal::from_dense_blocks(levels, vec![-1.0, -3.0], vec![1.0, 3.0])?;
    /// if let Ok(gpu) = OpenDevice::open(0) {
    ///     let pi = gpu.stationary(&[&q])?.remove(0).expect("an irreducible chain");
    ///     assert_eq!([pi[0].to_f64(), pi[1].to_f64()], [0.75, 0.25]);
    /// }
    /// # Ok::<(), blocktri::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Input`] for a rate that is negative or not finite, and chains without states; [`Error::Device`].
    ///
    /// # Cost
    /// 2Σwₑ² flops a chain, wₑ the states before e in its level and in the level before; one launch for as many as fit on the device.
    pub fn stationary(&self, chains: &[&BlockTridiagonal<f64>]) -> Result<Vec<Result<Vec<Scaled>, String>>, Error> {
        #[cfg(feature = "cuda")]
        {
            let found = bt_kernels::stationary(&self.0, chains)?;
            Ok(found.into_iter().map(|pi| pi.map_err(|fault| fault.to_string())).collect())
        }
        #[cfg(not(feature = "cuda"))]
        {
            let _ = chains;
            Err(absent(0))
        }
    }
}

/// What a build without CUDA says.
#[cfg(not(feature = "cuda"))]
pub(super) fn absent(ordinal: u32) -> Error {
    Error::Device(format!("no GPU {ordinal}: this build is without the feature cuda"))
}
