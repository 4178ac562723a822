//! From a sparse matrix to factors: order, scaling, format and factorization by one method, or by several in turn until one factors.

use bt_direct::{FactorError, Factorization, Given, Lowered, Place, SingularKind, Singularity};
use bt_formats::{Csr, LinearOperator, Matrix, Monitor, Note, RealScalar, Rounded, Scalar, ScalarKind, memory};

use crate::build::{Directions, Problem};
use crate::candidate::{Candidate, choice};
use crate::check::check_hermitian;
use crate::direct::{Direct, IN_SINGLE, Needs};
use crate::equilibrated;
use crate::error::Error;
use crate::factors::Factored;
use crate::made::Made;
use crate::memory::{ask_for, ask_for_band};
use crate::method::{Method, Precision};
use crate::options::{DeviceChoice, Reorder, SolveOptions};
use crate::plan::{Found, Plan};
use crate::prepare::transform;
use crate::reordered::{Factors, Ordered, Reordered, Transform};
use crate::stronger::{is_last_word, next_step};

/// Factors A behind `transform` by one method. What fails in single precision is factored in that of the matrix.
pub(crate) fn factor<T: Scalar>(
    a: &Csr<T>,
    method: Direct,
    transform: (Transform<T>, Reorder),
    precision: Precision,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Factored<T>, Error> {
    // Twice the precision of a rounded matrix would be that of another one.
    if precision == Precision::Working || method.is_beyond_rounding() {
        return factor_once(a, method, transform, Precision::Working, options, monitor);
    }
    match factor_once(a, method, transform.clone(), precision, options, monitor) {
        Err(failure @ (Error::Singular(_) | Error::Input(_) | Error::Factor(FactorError::Breakdown { .. }))) => {
            let mut made = factor_once(a, method, transform, Precision::Working, options, monitor)?;
            made.notes.push(Note::SingleFailed { why: format!("could not be made ({failure})"), scalar: T::KIND });
            Ok(made)
        }
        result => result,
    }
}

fn factor_once<T: Scalar>(
    a: &Csr<T>,
    method: Direct,
    (transform, reorder): (Transform<T>, Reorder),
    precision: Precision,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Factored<T>, Error> {
    let scaling = if transform.scaling.is_none() { equilibrated::scaling(a, method) } else { None };
    let equilibrated = scaling.is_some();
    let transform = if equilibrated { Transform { scaling, ..transform } } else { transform };
    let permuted;
    let work = if transform.is_identity() {
        a
    } else {
        permuted = transform.apply(a);
        &permuted
    };
    let SolveOptions { blocks, device, fallback, .. } = options;
    let (identity, found) = (transform.keeps_order(), transform.found.clone());
    let directions = Directions { blocks, identity, device: *device, fallback: *fallback, found };
    let mut made =
        in_precision(work, method, precision, directions, monitor).map_err(|e| transform.in_given_order(e))?;
    made.reorder = reorder;
    if equilibrated {
        made.notes.push(Note::Equilibrated);
    }
    made.factors = match made.factors {
        Factors::Plain(factors) if !transform.is_identity() => {
            Factors::Behind(Reordered::new(factors, transform, a.norm_one().to_f64()))
        }
        factors => factors,
    };
    Ok(made)
}

/// [`Problem::factor`] in the precision asked for.
fn in_precision<T: Scalar>(
    work: &Csr<T>,
    method: Direct,
    precision: Precision,
    directions: Directions<'_>,
    monitor: &mut dyn Monitor,
) -> Result<Factored<T>, Error> {
    if precision == Precision::Working || T::KIND == ScalarKind::F32 || T::KIND == ScalarKind::C32 {
        return factor_in_order(work, method, directions, monitor);
    }
    // By the constant alone, so that nothing is compiled for complex numbers.
    if T::IS_REAL && method.is_in_single() {
        let a = Rounded::<f32>::new(work)?;
        let made = in_single(a.matrix(), method, directions, monitor)?;
        let factors = Box::new(Lowered::new(made.factors, a.exponent()));
        let made = Made { factors, matrix_bytes: made.matrix_bytes, blocks: made.blocks, notes: made.notes };
        let mut factored = Factored::new(made, method);
        factored.precision = Precision::Single;
        return Ok(factored);
    }
    // A candidate of `auto`: a named one was refused.
    let mut made = factor_in_order(work, method, directions, monitor)?;
    made.notes.push(Note::NotInSingle { method: method.name(), scalar: T::KIND, those: those_in_single() });
    Ok(made)
}

fn those_in_single() -> String {
    IN_SINGLE.map(|m| m.name()).join(", ")
}

/// # Errors
/// [`Error::Usage`] where factors in single precision are asked for of a method that has none for matrices in double.
pub(crate) fn check_precision<T: Scalar>(method: &Method) -> Result<(), Error> {
    let single = method.factoring().is_some_and(|f| f.precision == Precision::Single);
    let there = match (T::KIND, method) {
        (ScalarKind::F64, Method::Direct(direct, _)) => direct.is_in_single(),
        (kind, _) => kind != ScalarKind::C64,
    };
    if !single || there {
        return Ok(());
    }
    let message = if T::IS_REAL {
        let those = those_in_single();
        format!("{method} has no factors in single precision; in single precision there are {those}, for real matrices")
    } else {
        "factors in single precision are those of real matrices, and this one is complex".into()
    };
    Err(Error::Usage { message })
}

/// The matrix, which was rounded, factored as it stands.
fn in_single(
    work: &Csr<f32>,
    method: Direct,
    directions: Directions<'_>,
    monitor: &mut dyn Monitor,
) -> Result<Made<f32>, Error> {
    ask_for(work, method)?;
    Problem { work: work.into(), method, directions }.factor_in_single(monitor)
}

/// Factors the matrix as it stands.
#[inline(never)]
pub(crate) fn factor_in_order<T: Scalar>(
    work: &Csr<T>,
    method: Direct,
    directions: Directions<'_>,
    monitor: &mut dyn Monitor,
) -> Result<Factored<T>, Error> {
    let room = ask_for(work, method);
    // Methods compare A with its mirror image themselves; where there is not the memory, that is to be known first.
    if method.row().needs != Needs::Nothing && room.is_err() {
        check_hermitian(work)?;
    }
    room?;
    let problem = Problem { work: work.into(), method, directions };
    Ok(Factored::new(problem.factor(factor_part, monitor)?, method))
}

/// Factors a matrix in the format that it was given in.
pub(crate) fn factor_in_format<T: Scalar>(
    work: Given<'_, T>,
    method: Direct,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Factored<T>, Error> {
    match work {
        Given::Tridiagonal(a) => ask_for_band::<T>(a.nrows(), (1, 1), method)?,
        Given::Band(a) => ask_for_band::<T>(a.n(), (a.kl(), a.ku()), method)?,
        Given::Periodic(a) => ask_for_band::<T>(a.nrows(), (1, 1), method)?,
        Given::Dense(a) => ask_for_band::<T>(a.nrows(), (a.nrows(), a.nrows()), method)?,
        // Blocks are asked for with their method.
        _ => {}
    }
    let SolveOptions { blocks, fallback, .. } = options;
    let (device, found) = (DeviceChoice::Cpu, Found::default());
    let directions = Directions { blocks, identity: true, device, fallback: *fallback, found };
    Ok(Factored::new(Problem { work, method, directions }.factor(factor_part, monitor)?, method))
}

/// The candidates of a plan in turn, then stronger methods, until one factors.
pub(crate) fn automatic<T: Scalar>(
    a: &Csr<T>,
    precision: Precision,
    options: &SolveOptions,
    plan: &Plan,
    mut fixed: Option<Ordered<T>>,
    notes: &mut Vec<Note>,
    monitor: &mut dyn Monitor,
) -> Result<Factored<T>, Error> {
    // Whoever asks for factors in single precision gets them where a method has them.
    let is_rounded = |direct: Direct| T::KIND == ScalarKind::F64 && direct.is_in_single();
    let rounded = (precision == Precision::Single).then(|| plan.direct_among(is_rounded)).flatten();
    let Some((chosen, mut method)) = rounded.or_else(|| plan.direct()) else {
        return Err(does_not_fit(&plan.candidates));
    };
    notes.push(choice(chosen, &plan.candidates));
    let mut reorder = chosen.reorder;
    let (mut order, mut found) = (plan.rcm.as_ref(), plan.found.clone());
    // Where elimination with pivoting over all rows found no pivot, before the strongest method has had its say.
    let mut suspected: Option<Singularity> = None;
    loop {
        let mut transform = match (&fixed, reorder, order.take()) {
            (Some(given), ..) => given.clone(),
            (None, Reorder::Rcm, Some(p)) => (Transform::symmetric(p.clone()), Reorder::Rcm),
            (None, reorder, _) => transform(a, Some(method), reorder, notes)?,
        };
        if fixed.is_some() || reorder == Reorder::None {
            transform.0.found = found.clone();
        }
        let failure = match factor(a, method, transform, precision, options, monitor) {
            Ok(factored) => match suspected.filter(|_| factored.proves_singular(a)) {
                None => return Ok(factored),
                Some(place) if is_last_word((method, reorder), a) && !factored.have_grown() => {
                    return Err(Error::Singular(place));
                }
                Some(_) => {
                    let reason = "the matrix seems singular to working precision";
                    Error::Factor(FactorError::breakdown(method.name(), None, reason))
                }
            },
            // Numbers that a scaling took out of the range leave another structure, which is bad usage of a method.
            Err(
                e @ (Error::Usage { .. } | Error::Factor(FactorError::Breakdown { .. } | FactorError::Failed { .. })),
            ) => e,
            Err(Error::Singular(place)) => {
                // The pattern has a matching: where scaling broke it, entries have left the range.
                if place.kind == SingularKind::Numerical {
                    let first = *suspected.get_or_insert(place);
                    if is_last_word((method, reorder), a) {
                        return Err(Error::Singular(first));
                    }
                }
                let reason = format!("there is no pivot in column {} (from 0)", place.column);
                Error::Factor(FactorError::breakdown(method.name(), Place::Column(place.column), reason))
            }
            Err(other) => return Err(other),
        };
        let Some((next, next_order)) = next_step((method, reorder), &plan.candidates, a) else {
            return Err(suspected.map_or(failure, Error::Singular));
        };
        notes.push(Note::HandedOver { to: next.name(), why: failure.to_string() });
        (method, reorder) = (next, next_order);
        // As it is given, where it had another order: what is known of that says nothing here.
        if method == Direct::SparseLu && fixed.take().is_some() {
            found = Found::default();
        }
    }
}

/// The factors of one of several components, as `auto` makes them.
fn factor_part<T: Scalar>(
    part: &Csr<T>,
    plan: &Plan,
    monitor: &mut dyn Monitor,
) -> Result<Box<dyn Factorization<T>>, Error> {
    let options = SolveOptions::default();
    let made = automatic(part, Precision::Working, &options, plan, None, &mut Vec::new(), monitor)?;
    Ok(made.factors.into_inner())
}

/// No method fits: how much each would take, the least first.
fn does_not_fit(candidates: &[Candidate]) -> Error {
    let mut candidates: Vec<_> = candidates.iter().filter(|c| c.device == DeviceChoice::Cpu).collect();
    candidates.sort_by_key(|c| c.bytes);
    let needs = |c: &&Candidate| format!("{} needs {}", c.method, memory::in_words(c.bytes));
    let listed: Vec<_> = candidates.iter().map(needs).collect();
    let why = candidates.iter().find_map(|c| c.refused.as_deref()).unwrap_or("no direct method is among them");
    Error::NothingFits { message: format!("no method fits memory, {why}: {}", listed.join("; ")) }
}
