//! The methods behind `solve` and `Solver` compiled for the scalars that features name, as `bt_direct::instances` are.

use bt_direct::compile;
use bt_formats::Scalar;

use crate::factors::factor_in_order;
use crate::iterate::iterate;

/// Mentions every method for every scalar; nobody calls it, and the linker drops what a program does not use.
#[inline(never)]
pub fn scalars() {
    compile!(of::<f64>);
    #[cfg(feature = "c64")]
    compile!(of::<bt_formats::c64>);
    #[cfg(feature = "f32")]
    compile!(of::<f32>);
    #[cfg(feature = "c32")]
    compile!(of::<bt_formats::c32>);
}

fn of<T: Scalar>() {
    compile!(factor_in_order::<T>, iterate::<T>);
}
