//! The methods behind `solve` and `Solver` compiled for the four scalars, as `bt_direct::instances` are.

use bt_direct::compile;
use bt_formats::{Scalar, c32, c64};

use crate::factors::factor_in_order;
use crate::iterate::iterate;

/// Mentions every method for every scalar; nobody calls it, and the linker drops what a program does not use.
#[inline(never)]
pub fn scalars() {
    compile!(of::<f32>, of::<f64>, of::<c32>, of::<c64>);
}

fn of<T: Scalar>() {
    compile!(factor_in_order::<T>, iterate::<T>);
}
