//! Memory for factors, asked for before it is taken.

use bt_formats::{Error, ask_for_huge_pages};

use crate::error::{FactorError, Result};

/// Reserves exactly `n` elements.
pub(crate) fn reserve<V>(into: &mut Vec<V>, n: usize) -> Result<()> {
    into.try_reserve_exact(n).map_err(|_| no_memory::<V>(n))?;
    ask_for_huge_pages(into);
    Ok(())
}

fn no_memory<V>(n: usize) -> FactorError {
    FactorError::Input(Error::TooLarge {
        what: "a factorization",
        needed: format!("{n} values of {} bytes", size_of::<V>()),
        limit: "the memory there is".into(),
    })
}

/// n zeros.
pub(crate) fn zeros<T: Copy + Default>(n: usize) -> Result<Vec<T>> {
    bt_formats::zeros(n).map_err(|_| no_memory::<T>(n))
}
