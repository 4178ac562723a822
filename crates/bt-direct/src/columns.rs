//! Right-hand sides as slices: column by column or several at once, and sizes that must agree.

use bt_formats::{Error, NumbersMut, Scalar};
use faer::MatMut;

use crate::error::Result;

/// Calls `f` with every column of `x`.
pub(crate) fn for_each_column<T: Scalar>(mut x: MatMut<'_, T>, mut f: impl FnMut(&mut [T])) {
    for j in 0..x.ncols() {
        let column = x.as_mut().col_mut(j).try_as_col_major_mut().expect("columns of X must be contiguous");
        f(column.as_slice_mut());
    }
}

/// [`Error::DimensionMismatch`] unless the two agree.
pub(crate) fn check_size(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected != found {
        return Err(Error::DimensionMismatch { what, expected, found }.into());
    }
    Ok(())
}

/// The G columns of `x` as slices.
pub(crate) fn columns<T: Scalar, const G: usize>(x: MatMut<'_, T>) -> [&mut [T]; G] {
    let mut rest = Some(x);
    std::array::from_fn(|_| {
        let (column, after) = rest.take().expect("G columns").split_at_col_mut(1);
        rest = Some(after);
        column.col_mut(0).try_as_col_major_mut().expect("columns of X must be contiguous").as_slice_mut()
    })
}

/// Columns of the numbers that `pick` takes, which T is known to be.
pub(crate) fn numbers_of<'a, T: Scalar, R, const G: usize>(
    x: &'a mut [&mut [T]; G],
    pick: impl Fn(NumbersMut<'a>) -> Option<&'a mut [R]>,
) -> [&'a mut [R]; G] {
    x.each_mut().map(|x| pick(T::numbers_mut(x)).expect("numbers of the kind found"))
}
