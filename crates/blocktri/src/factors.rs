//! From a sparse matrix to the factors of one method: order, scaling, format, factorization.

use std::sync::OnceLock;

use bt_direct::condition::{rcond_of_large, rcond_refined, rcond_scaled};
use bt_direct::refine::unit_roundoff;
use bt_direct::{FactorError, Given, Lowered, SingularKind, Singularity};
use bt_formats::detect::natural_partition;
use bt_formats::reorder::{Matching, MatchingError, maximum_product_matching, rcm, spectral};
use bt_formats::{
    Csr, Error as InputError, LinearOperator, Matrix, Monitor, Note, Partition, RealScalar, Rounded, Scalar, ScalarKind,
};
use bt_iter::asymmetry;

use crate::direct::{Direct, Directions, IN_SINGLE, Made, Needs, Problem};
use crate::equilibrated;
use crate::error::Error;
use crate::memory::{ask_for, ask_for_band};
use crate::method::{Method, Precision};
use crate::options::{Blocks, DeviceChoice, Reorder, SolveOptions};
use crate::plan::{Candidate, Depth, Found, plan};
use crate::reordered::{Factors, Reordered, Transform};
use crate::verdict::doubtful;

/// The blocks a method worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSummary {
    /// Number of blocks.
    pub count: usize,
    /// Smallest block.
    pub min: usize,
    /// Largest block.
    pub max: usize,
}

impl BlockSummary {
    pub(crate) fn of(partition: &Partition) -> Self {
        let (min, max) = partition.min_max_size();
        Self { count: partition.n_blocks(), min, max }
    }
}

/// Factors and what they were made from.
pub(crate) struct Factored<T: Scalar> {
    /// What happened while they were made.
    pub notes: Vec<Note>,
    pub method: Direct,
    pub reorder: Reorder,
    pub blocks: Option<BlockSummary>,
    pub factors: Factors<T>,
    pub matrix_bytes: usize,
    /// Of the factors.
    pub precision: Precision,
    /// Estimates, made when they are asked for: they depend on the factors alone.
    rcond: OnceLock<Option<f64>>,
    scaled_rcond: OnceLock<f64>,
}

impl<T: Scalar> Factored<T> {
    fn new(made: Made<T>, method: Direct) -> Self {
        let Made { factors, matrix_bytes, blocks, notes } = made;
        Self {
            notes,
            method,
            reorder: Reorder::None,
            blocks,
            factors: Factors::Plain(factors),
            matrix_bytes,
            precision: Precision::Working,
            rcond: OnceLock::new(),
            scaled_rcond: OnceLock::new(),
        }
    }

    /// Reciprocal condition number of A in the 1-norm; `None` where the factors cannot tell: in single precision, or grown.
    pub fn rcond(&self, a: &Csr<T>) -> Option<f64> {
        /// Growth that pivoting over all rows rarely reaches.
        const GROWN: f64 = 16.0;
        *self.rcond.get_or_init(|| match self.precision {
            Precision::Working if self.factors.stats().norm_one.is_infinite() => {
                Some(rcond_of_large(a, &*self.factors))
            }
            // The factors are those of A + E, ‖E‖ ≤ n·u·growth·‖A‖: an estimate within it may be that of E.
            Precision::Working => {
                let (found, growth) = (self.factors.rcond(), self.factors.stats().growth);
                let limit = doubtful::<T>(a.nrows());
                let within = growth > GROWN && found >= limit && found < limit * growth;
                if within { rcond_refined(a, &*self.factors) } else { Some(found) }
            }
            // Refinement contracts where the condition number, in some units, is below the precision of the factors: an
            // estimate beyond it is of the units, or of factors that lost what makes A nearly singular.
            Precision::Single => rcond_refined(a, &*self.factors).filter(|&rcond| {
                let limit = f64::from(f32::EPSILON);
                rcond > limit || self.scaled_rcond(a) > limit
            }),
        })
    }

    /// Whether [`Factored::rcond`] costs nothing any more.
    pub fn rcond_is_known(&self) -> bool {
        self.rcond.get().is_some()
    }

    /// That of A in the best units of rows and columns that are found, which are no fault of the matrix: those that bring a product of
    /// as large entries as can be to 1 and all others below (see [`maximum_product_matching`]), or the largest entry of each line
    /// there. No more are tried once A is regular to working precision in some.
    pub fn scaled_rcond(&self, a: &Csr<T>) -> f64 {
        *self.scaled_rcond.get_or_init(|| {
            let made;
            let (factored, factors) = match &self.factors {
                Factors::Plain(factors) => (a, &**factors),
                Factors::Behind(factors) => {
                    made = factors.transform().apply(a);
                    (&made, factors.inner())
                }
            };
            let Ok(m) = maximum_product_matching(factored) else { return factors.rcond() };
            let lines = equilibrated::of_matching(factored, m.rows.order(), &m);
            let in_double = |factors: &[T::Real]| factors.iter().map(|f| f.to_f64()).collect::<Vec<_>>();
            let scaled = |rows, cols| rcond_scaled(factored, factors, &in_double(rows), &in_double(cols));
            let mut best = scaled(&lines.rows, &lines.cols);
            if best <= doubtful::<T>(a.nrows()) && lines.rows != m.row_scale {
                best = best.max(scaled(&m.row_scale, &m.col_scale));
            }
            if best <= doubtful::<T>(a.nrows()) {
                let (rows, cols) = equilibrated::in_double(a);
                best = best.max(rcond_scaled(a, &*self.factors, &rows, &cols));
            }
            best
        })
    }

    /// Whether `a`, which has the pattern of the matrix that was factored, can take its place in these factors, and become what factors
    /// made anew would be.
    pub fn can_take(&self, a: &Csr<T>) -> bool {
        self.precision == Precision::Working
            && !self.chooses_by_values()
            && !self.factors.is_scaled()
            && (self.method.row().needs == Needs::Nothing || check_hermitian(a).is_ok())
            && equilibrated::scaling(a, self.method).is_none()
    }

    /// Whether the method looks at the values before it chooses methods or partitions or gives up its butterflies, and tells of it in notes.
    pub fn chooses_by_values(&self) -> bool {
        matches!(
            self.method,
            Direct::Components
                | Direct::Spike { .. }
                | Direct::SpikeTruncated { .. }
                | Direct::BlockRbt { .. }
                | Direct::Rbt { .. }
        )
    }

    /// Factors new values in the same memory. After an error the factors are void, and the estimates still those of the values before.
    pub fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<(), Error> {
        self.factors.refactor(a, monitor)?;
        (self.rcond, self.scaled_rcond) = (OnceLock::new(), OnceLock::new());
        Ok(())
    }
}

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
        // Parts have orders of their own.
        Reorder::Auto if method == Some(Direct::Components) => (Transform::identity(n), Reorder::None),
        // A named method with the order left open: the cheaper of the given and the RCM order.
        Reorder::Auto => {
            let best = plan(a, Reorder::Auto, &Blocks::Detect, Depth::All)?;
            let family = |c: &Candidate| c.direct().map(|direct| direct.row().family);
            let alike = |c: &&Candidate| method.is_some_and(|m| Some(m.row().family) == family(c));
            let chosen = best.candidates.iter().find(alike).map_or(Reorder::None, |c| c.reorder);
            match best.rcm {
                Some(p) if chosen == Reorder::Rcm => {
                    notes.push(Note::RcmIsCheaper);
                    (Transform::symmetric(p), Reorder::Rcm)
                }
                _ => (Transform { found: best.found, ..Transform::identity(n) }, Reorder::None),
            }
        }
    })
}

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
    let SolveOptions { blocks, device, .. } = options;
    let (identity, found) = (transform.keeps_order(), transform.found.clone());
    let directions = Directions { blocks, identity, device: *device, found };
    let made = in_precision(work, method, precision, directions, monitor).map_err(|e| transform.in_given_order(e))?;
    let mut made = Factored { reorder, ..made };
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
        return Ok(Factored { precision: Precision::Single, ..Factored::new(made, method) });
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
    if method.row().needs != Needs::Nothing {
        check_hermitian(work)?;
    }
    ask_for(work, method)?;
    let problem = Problem { work: work.into(), method, directions };
    Ok(Factored::new(problem.factor(monitor)?, method))
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
        // Blocks are asked for with their method.
        _ => {}
    }
    let blocks = &options.blocks;
    let directions = Directions { blocks, identity: true, device: DeviceChoice::Cpu, found: Found::default() };
    Ok(Factored::new(Problem { work, method, directions }.factor(monitor)?, method))
}

/// Before a band or blocks are made of A, which may be far larger.
///
/// # Errors
/// [`InputError::InvalidStructure`] with the entry farthest from its mirror, unless rounding can have moved it there.
fn check_hermitian<T: Scalar>(a: &Csr<T>) -> Result<(), Error> {
    match asymmetry(a) {
        Some(worst) if worst.relative > 64.0 * unit_roundoff::<T>() => Err(InputError::InvalidStructure {
            what: "matrix",
            why: format!(
                "it is not Hermitian: row {}, column {} is {}, its mirror {}",
                worst.row, worst.col, worst.entry, worst.mirror
            ),
        }
        .into()),
        _ => Ok(()),
    }
}

/// The partition asked for. Given blocks are those of the matrix as given, so they exclude a reordering.
pub(crate) fn partition<T: Scalar>(a: &Csr<T>, blocks: &Blocks, identity: bool) -> Result<Partition, Error> {
    if *blocks != Blocks::Detect && !identity {
        return Err(Error::Usage {
            message: "given blocks belong to the given order; use them with --reorder none".into(),
        });
    }
    match blocks {
        Blocks::Detect => Ok(natural_partition(a)?),
        Blocks::Uniform(k) => Ok(Partition::uniform(a.nrows(), *k)?),
        Blocks::Sizes(sizes) => {
            let partition = Partition::from_sizes(sizes.iter().copied())?;
            if partition.n() != a.nrows() {
                return Err(InputError::DimensionMismatch {
                    what: "sum of the block sizes",
                    expected: a.nrows(),
                    found: partition.n(),
                }
                .into());
            }
            Ok(partition)
        }
    }
}
