//! Before a method: zeros left out, the order made, what `auto` may do weighed.

use bt_direct::{SingularKind, Singularity};
use bt_formats::detect::has_transversal;
use bt_formats::reorder::{Matching, MatchingError, maximum_product_matching, rcm, spectral};
use bt_formats::{Csr, DiagonalEntries, LinearOperator, Matrix, Note, Scalar};

use crate::direct::Direct;
use crate::equilibrated;
use crate::error::Error;
use crate::options::{Blocks, Reorder, SolveOptions};
use crate::plan::{Depth, Plan, cheaper_order, plan};
use crate::reordered::{Ordered, Transform};

/// # Errors
/// [`Error::Singular`] naming a column that no matching of rows and columns covers.
pub(crate) fn matching<T: Scalar>(a: &Csr<T>) -> Result<Matching<T::Real>, Error> {
    maximum_product_matching(a).map_err(|e| match e {
        MatchingError::Singular(deficiency) => Error::Singular(Singularity {
            kind: SingularKind::Structural,
            column: deficiency.unmatched_cols[0] as usize,
            block: None,
        }),
        MatchingError::Input(input) => Error::Input(input),
    })
}

/// The transform that `reorder` asks for, and which reordering that is when it was left to a direct method.
pub(crate) fn transform<T: Scalar>(
    a: &Csr<T>,
    method: Option<Direct>,
    reorder: Reorder,
    notes: &mut Vec<Note>,
) -> Result<(Transform<T>, Reorder), Error> {
    let n = a.nrows();
    let matched = || -> Result<Transform<T>, Error> {
        let m = matching(a)?;
        let scaling = equilibrated::of_matching(a, m.rows.order(), &m);
        Ok(Transform { rows: m.rows, scaling: Some(scaling), ..Transform::identity(n) })
    };
    Ok(match reorder {
        Reorder::None => (Transform::identity(n), Reorder::None),
        Reorder::Rcm => (Transform::symmetric(rcm(a)?), Reorder::Rcm),
        Reorder::Spectral => (Transform::symmetric(spectral(a)?), Reorder::Spectral),
        Reorder::Matching => (matched()?, Reorder::Matching),
        Reorder::MatchingRcm => {
            let first = matched()?;
            let p = rcm(&first.apply(a))?;
            (first.then(&p), Reorder::MatchingRcm)
        }
        // A named method with the order left open: the cheaper of the given and the RCM order, where it is one of those that an order serves.
        Reorder::Auto => {
            let family = method.map(|method| method.row().family);
            match family.map_or(Ok(None), |family| cheaper_order(a, family))? {
                Some(p) => {
                    notes.push(Note::RcmIsCheaper);
                    (Transform::symmetric(p), Reorder::Rcm)
                }
                None => (Transform::identity(n), Reorder::None),
            }
        }
    })
}

/// A without stored zeros, which must not widen the structure; structurally regular.
pub(crate) fn prepared<T: Scalar>(a: &Csr<T>, notes: &mut Vec<Note>) -> Result<Csr<T>, Error> {
    let kept = if a.survey().zeros > 0 {
        let kept = a.without_zeros();
        notes.push(Note::ZerosLeftOut { entries: a.nnz() - kept.nnz() });
        kept
    } else {
        a.clone()
    };
    if a.survey().diagonal == DiagonalEntries::Broken && has_transversal(&kept) != Some(true) {
        // It names the place.
        matching(&kept)?;
    }
    Ok(kept)
}

/// The reordering that direct methods are asked for: given blocks are blocks of the given order.
pub(crate) fn order_asked(options: &SolveOptions) -> Reorder {
    match (&options.blocks, options.reorder) {
        (Blocks::Uniform(_) | Blocks::Sizes(_), Reorder::Auto) => Reorder::None,
        (_, reorder) => reorder,
    }
}

/// What `auto` may do, in the order given where one is, which comes with the plan.
pub(crate) fn planned<T: Scalar>(
    a: &Csr<T>,
    reorder: Reorder,
    options: &SolveOptions,
    depth: Depth,
    notes: &mut Vec<Note>,
) -> Result<(Plan, Option<Ordered<T>>), Error> {
    if let Reorder::None | Reorder::Rcm | Reorder::Auto = reorder {
        return Ok((plan(a, reorder, &options.blocks, depth)?, None));
    }
    let (transform, given) = transform(a, None, reorder, notes)?;
    let mut plan = plan(&transform.apply(a), Reorder::None, &Blocks::Detect, depth)?;
    plan.candidates.iter_mut().for_each(|c| c.reorder = given);
    Ok((plan, Some((transform, given))))
}
