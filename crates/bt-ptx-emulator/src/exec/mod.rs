//! Launches: threads that interpret, blocks that wait at barriers, the order in which they run.

mod access;
mod block;
mod geometry;
mod global_races;
mod interpret;
mod launch;
mod shadow;
mod shared;
mod thread;
mod warp;

pub(crate) use launch::{Launch, Tally, launch};
