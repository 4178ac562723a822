//! Launches: threads that interpret, blocks that wait at barriers, the order in which they run.
//!
//! | file | case |
//! |---|---|
//! | `launch.rs` | a launch: which blocks are resident, and whose turn it is |
//! | `block.rs` | a block: the order of its threads, and what they wait for |
//! | `warp.rs` | shuffles, votes, matches and barriers of a warp |
//! | `thread.rs`, `interpret.rs` | a thread: its registers and memory; its operations, one after the other |
//! | `geometry.rs` | where a thread stands: special registers |
//! | `access.rs` | loads, stores and atomics in every state space |
//! | `shared.rs` | shared memory of a block |
//! | `shadow.rs`, `global_races.rs` | races in shared memory; in global memory |

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
