//! Arithmetic without rounding, and what it says about a system.

mod adjugate;
mod dyadic;
mod measures;
mod truth;
mod wide;

pub use dyadic::{Dyadic, Exact};
pub use measures::{Measures, measure};
pub use truth::{Known, Truth};
pub use wide::Wide;
