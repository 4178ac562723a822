//! Special registers: where a thread stands in its block and grid (PTX ISA 6.3, chapter 10).

use super::interpret::Place;
use crate::op::{LaneMask, Special};

/// Sizes of the grid and of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) dynamic_shared: u32,
    pub(super) total_shared: u32,
    pub(super) multiprocessors: u32,
    /// Which launch this is.
    pub(super) number: u32,
}

impl Geometry {
    pub(super) fn threads(&self) -> usize {
        self.block.iter().map(|n| *n as usize).product()
    }

    pub(super) fn blocks(&self) -> u64 {
        self.grid.iter().map(|n| u64::from(*n)).product()
    }

    pub(super) fn block_index(&self, block: u64) -> [u32; 3] {
        let [x, y, _] = self.grid.map(u64::from);
        [(block % x) as u32, (block / x % y) as u32, (block / x / y) as u32]
    }

    pub(super) fn thread_index(&self, thread: usize) -> [u32; 3] {
        let ([x, y, _], thread) = (self.block, thread as u32);
        [thread % x, thread / x % y, thread / x / y]
    }

    pub(super) fn special(&self, special: Special, place: Place) -> u32 {
        let lane = (place.thread % 32) as u32;
        match special {
            Special::Tid(axis) => self.thread_index(place.thread)[usize::from(axis)],
            Special::Ntid(axis) => self.block[usize::from(axis)],
            Special::Ctaid(axis) => self.block_index(place.block)[usize::from(axis)],
            Special::Nctaid(axis) => self.grid[usize::from(axis)],
            Special::LaneId => lane,
            Special::WarpId => (place.thread / 32) as u32,
            Special::WarpCount => self.threads().div_ceil(32) as u32,
            Special::LaneMask(LaneMask::Eq) => 1 << lane,
            Special::LaneMask(LaneMask::Lt) => (1 << lane) - 1,
            Special::LaneMask(LaneMask::Le) => u32::MAX >> (31 - lane),
            Special::LaneMask(LaneMask::Ge) => u32::MAX << lane,
            Special::LaneMask(LaneMask::Gt) => !(u32::MAX >> (31 - lane)),
            Special::SmId => (place.block % u64::from(self.multiprocessors)) as u32,
            Special::SmCount => self.multiprocessors,
            Special::GridId => self.number,
            Special::DynamicShared => self.dynamic_shared,
            Special::TotalShared => self.total_shared,
        }
    }
}
