//! Whether a matrix is regular, where a method finds no pivot.
//!
//! A matrix is called singular when no pattern of pivots exists, or when elimination with pivoting over all rows finds no
//! pivot and the strongest method does not contradict. That is elimination in exact integers where it takes no more than a second or so; else,
//! of the matched and scaled matrix, dense LU in twice the precision up to 512 rows, which must find no pivot either; beyond, sparse
//! LU, whose reciprocal condition number must be at most n·u. Where elements of either have grown beyond 1/√u, what they say may be rounding
//! errors: then reflections have the last word, as far as they are a matter of minutes.

use bt_direct::{FactorError, Place, SingularKind, Singularity};
use bt_formats::{Csr, LinearOperator, Monitor, Scalar};

use crate::direct::Direct;
use crate::error::Error;
use crate::factoring::factor;
use crate::factors::Factored;
use crate::method::Precision;
use crate::options::{Reorder, SolveOptions};
use crate::prepare::{matching, transform};
use crate::reordered::Transform;
use crate::stronger::{DOUBLED_ROWS, is_soon_exact, is_soon_reflected};

/// What follows when a method, or a part of one, found no pivot at `place`: the matrix is singular, or the method breaks down
/// on it.
pub(crate) fn no_pivot<T: Scalar>(
    a: &Csr<T>,
    method: &'static str,
    place: Singularity,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Error {
    if place.kind == SingularKind::Structural
        && let Err(proof) = matching(a)
    {
        return proof;
    }
    let place = Singularity { kind: SingularKind::Numerical, ..place };
    let found = match strongest(a, options, monitor) {
        Ok(factored) if factored.proves_singular(a) => return Error::Singular(place),
        Ok(factored) => format!(
            "by {} it is regular, with a reciprocal condition number of {:.1e} after scaling",
            factored.method,
            factored.scaled_rcond(a)
        ),
        Err(Error::Singular(_)) => return Error::Singular(place),
        Err(stopped @ Error::Factor(FactorError::Stopped)) => return stopped,
        Err(other) => format!("whether the matrix is regular could not be found out: {other}"),
    };
    let reason = format!("no pivot is left for column {} (from 0) after rounding; {found}", place.column);
    Error::Factor(FactorError::breakdown(method, Place::Column(place.column), reason))
}

/// The strongest factorization: the exact one, or that of the matrix matched and scaled.
fn strongest<T: Scalar>(a: &Csr<T>, options: &SolveOptions, monitor: &mut dyn Monitor) -> Result<Factored<T>, Error> {
    if is_soon_exact(a) {
        let as_given = (Transform::identity(a.nrows()), Reorder::None);
        return factor(a, Direct::ExactLu, as_given, Precision::Working, options, monitor);
    }
    strongest_rounded(a, options, monitor)
}

/// The strongest that rounds: that of the matrix matched and scaled, up to [`DOUBLED_ROWS`] in twice the precision; by reflections where
/// elements grow in it.
fn strongest_rounded<T: Scalar>(
    a: &Csr<T>,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Factored<T>, Error> {
    let method = if a.nrows() <= DOUBLED_ROWS { Direct::DenseLuDoubled } else { Direct::SparseLu };
    let transform = transform(a, None, Reorder::Matching, &mut Vec::new())?;
    let eliminated = factor(a, method, transform, Precision::Working, options, monitor);
    let is_defeated = match &eliminated {
        Ok(factored) => factored.have_grown() && factored.proves_singular(a),
        Err(why) => matches!(why, Error::Factor(FactorError::Breakdown { .. } | FactorError::Failed { .. })),
    };
    if is_defeated && is_soon_reflected(a) {
        let as_given = (Transform::identity(a.nrows()), Reorder::None);
        return factor(a, Direct::SparseQr, as_given, Precision::Working, options, monitor);
    }
    eliminated
}

/// Whether the strongest factorization that rounds finds A singular; not where it cannot be made.
pub(crate) fn is_singular_after_rounding<T: Scalar>(a: &Csr<T>, options: &SolveOptions) -> bool {
    match strongest_rounded(a, options, &mut ()) {
        Ok(factored) => factored.proves_singular(a),
        Err(failure) => matches!(failure, Error::Singular(_)),
    }
}
