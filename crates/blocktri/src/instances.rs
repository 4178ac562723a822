//! The methods behind `solve` and `Solver` compiled for the scalars that features name, as `bt_direct::instances` are.

use bt_direct::{compile, compile_scalars};
use bt_formats::Scalar;

use crate::factoring::factor_in_order;
use crate::iterate::iterate;

/// Mentions every method for every scalar; nobody calls it, and the linker drops what a program does not use.
#[inline(never)]
pub fn scalars() {
    compile_scalars!(of);
}

fn of<T: Scalar>() {
    compile!(factor_in_order::<T>, iterate::<T>);
}
