//! The CUDA driver API as symbols of this program, forwarded to a driver that is loaded on first use.
//!
//! `cust` links against `libcuda`; a program that does so starts only where a driver is installed. This crate defines the
//! functions instead: linked beside cust, it makes one binary that builds and starts without CUDA. Without a driver every
//! function returns [`NO_DRIVER`], and [`load`] says why.
//!
//! ```
//! if let Err(why) = bt_cuda_driver::load() {
//!     println!("no GPU: {why}");
//! }
//! ```

mod driver;
mod functions;

pub use driver::{
    Flops, NO_DRIVER, NOT_SUPPORTED, NoDriver, choose, flops, load, look_for_races, set_devices, set_launches,
    set_memory, set_seed, traffic,
};
pub use functions::describe;
