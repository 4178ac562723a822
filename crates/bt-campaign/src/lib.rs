//! A random campaign: small systems whose answers are known exactly, every method and preconditioner on each, and a judge
//! that knows no rounding.
//!
//! - [`family`]: where systems come from.
//! - [`exact`]: dyadic arithmetic, elimination without fractions, exact residuals and condition numbers.
//! - [`run`]: what is run; [`judge`]: what it must do; [`campaign`]: all of it, counted.

pub mod campaign;
pub mod exact;
pub mod family;
pub mod judge;
pub mod run;
pub mod system;
