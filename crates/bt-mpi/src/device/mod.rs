//! Where a rank solves its own part, or its blocks: its cores, or a GPU.
//!
//! The ranks of a node take its GPUs in turn: rank r of the node has GPU r mod g of g. Ranks that share one are processes that the driver lets
//! have it one after the other. Messages leave from memory of the host.

#[cfg(feature = "cuda")]
mod with_cuda;
#[cfg(not(feature = "cuda"))]
mod without_cuda;

use bt_parallel::{Comm, Result, agree};
#[cfg(feature = "cuda")]
pub use with_cuda::{Gpu, Offload};
#[cfg(not(feature = "cuda"))]
pub use without_cuda::{Gpu, Offload};

use crate::args::Device;

/// The GPU of this rank, where one is asked for. A collective.
///
/// # Errors
/// [`bt_parallel::FaultKind::Device`] where there is none; those of the communicator.
pub fn open(comm: &impl Comm, wanted: Device) -> Result<Option<Gpu>> {
    match wanted {
        Device::Cpu => Ok(None),
        Device::Gpu => {
            let rank = rank_on_node(comm)?;
            agree(comm, Gpu::open(rank)).map(Some)
        }
    }
}

/// How many ranks before this one are on its node. A collective.
fn rank_on_node(comm: &impl Comm) -> Result<u32> {
    let name = std::fs::read("/proc/sys/kernel/hostname").unwrap_or_default();
    let names = comm.all_gather(&name)?;
    Ok((0..comm.rank()).filter(|&rank| names.part(rank) == name).count() as u32)
}
