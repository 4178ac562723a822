//! What a report says beside its numbers: one value for each thing worth saying, with a sentence and a name of its own.
//!
//! Sentences are for people, and may change; [`Note::kind`] and [`Note::values`] are for programs. The table below has a line for
//! each: its name, its data, its sentence.

use std::fmt;

#[cfg(feature = "serde")]
use serde::ser::SerializeMap;

use crate::ScalarKind;

/// A datum of a note.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum NoteValue {
    /// Rows, entries, steps.
    Count(usize),
    /// A measure; finite or not.
    Number(f64),
    /// A name or the words of something.
    Text(String),
    /// There is none.
    Absent,
}

impl From<&usize> for NoteValue {
    fn from(count: &usize) -> Self {
        Self::Count(*count)
    }
}

impl From<&f64> for NoteValue {
    fn from(number: &f64) -> Self {
        Self::Number(*number)
    }
}

impl From<&String> for NoteValue {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<&&'static str> for NoteValue {
    fn from(text: &&'static str) -> Self {
        Self::Text((*text).to_owned())
    }
}

impl From<&ScalarKind> for NoteValue {
    fn from(scalar: &ScalarKind) -> Self {
        Self::Text(scalar.to_string())
    }
}

impl From<&Option<usize>> for NoteValue {
    fn from(count: &Option<usize>) -> Self {
        count.as_ref().map_or(Self::Absent, Self::from)
    }
}

impl From<&Option<f64>> for NoteValue {
    fn from(number: &Option<f64>) -> Self {
        number.as_ref().map_or(Self::Absent, Self::from)
    }
}

impl From<&Option<String>> for NoteValue {
    fn from(text: &Option<String>) -> Self {
        text.as_ref().map_or(Self::Absent, Self::from)
    }
}

/// Seconds in a unit that leaves few digits.
///
/// ```
/// assert_eq!(bt_formats::seconds_in_words(0.0123), "12.3 ms");
/// ```
pub fn seconds_in_words(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 100.0 => return format!("{s:.0} s"),
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s => (s * 1e6, "µs"),
    };
    format!("{value:.1} {unit}")
}

/// A map of its name and its data, with the feature `serde`.
#[cfg(feature = "serde")]
impl serde::Serialize for Note {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values = self.values();
        let mut map = serializer.serialize_map(Some(1 + values.len()))?;
        map.serialize_entry("kind", self.kind())?;
        for (name, value) in &values {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for NoteValue {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => count.serialize(serializer),
            Self::Number(number) => number.serialize(serializer),
            Self::Text(text) => text.serialize(serializer),
            Self::Absent => serializer.serialize_none(),
        }
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

macro_rules! notes {
    ($($(#[$about:meta])* $name:ident $({ $($field:ident: $type:ty),+ $(,)? })?, $kind:literal: $sentence:literal $(, $word:ident = $value:expr)*;)+) => {
        /// What was chosen and why, handed over, boosted, dropped or left out; what an answer is worth. `Display` gives the sentence.
        ///
        /// ```
        /// use bt_formats::{Note, NoteValue};
        ///
        /// let note = Note::BoostedPivots { pivots: 3 };
        /// assert_eq!(note.to_string(), "3 pivots were boosted");
        /// assert_eq!((note.kind(), note.values()), ("boosted-pivots", vec![("pivots", NoteValue::Count(3))]));
        /// ```
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        // The sentence of each says what its data are.
        #[allow(missing_docs)]
        pub enum Note {
            $($(#[$about])* #[doc = concat!("“", $sentence, "”")] $name $({ $($field: $type),+ })?),+
        }

        impl Note {
            /// Its name in JSON.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$name $({ $($field: _),+ })? => $kind),+
                }
            }

            /// Its data, by name.
            pub fn values(&self) -> Vec<(&'static str, NoteValue)> {
                match self {
                    $(Self::$name $({ $($field),+ })? => vec![$($((stringify!($field), $field.into())),+)?]),+
                }
            }
        }

        impl fmt::Display for Note {
            #[allow(unused_variables)]
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name $({ $($field),+ })? => write!(f, $sentence $(, $word = $value)*)),+
                }
            }
        }
    };
}

notes! {
    // The choice of `auto`, its steps, and methods handed over.
    AutoChose { method: String, order: &'static str, structure: String, seconds: f64, time: String, next: Option<String> },
        "chosen": "auto chose {method}{order}: {structure}, {time} predicted{next}",
        order = if *order == "none" { String::new() } else { format!(" in {order} order") },
        next = next.as_ref().map_or(String::new(), |next| format!("; next {next}"));
    IterationGivenUp { method: &'static str, preconditioner: String, why: String, direct_seconds: Option<f64> },
        "iteration-given-up": "{method} with {preconditioner} was given up: {why}{left}",
        left = direct_seconds.map_or(String::new(), |s| format!("; a direct method is predicted to take {}", seconds_in_words(s)));
    HandedOver { to: &'static str, why: String }, "handed-over": "{why}; handed over to {to}";
    StrongerTried { reached_by: &'static str, reached: String, tried: &'static str },
        "stronger-tried": "{reached_by} reached {reached} only, above rounding level: {tried} was tried";
    StrongerFailed { method: &'static str, why: String }, "stronger-failed": "{method}: {why}";
    AnswerKept { tried: &'static str, backward_error: f64, kept: &'static str },
        "answer-kept": "{tried} reached {backward_error:.1e}: the answer of {kept} is kept";
    NearlySingular { found_by: &'static str, factored_by: &'static str },
        "nearly-singular": "{found_by} found the matrix nearly singular: factored by {factored_by}";
    /// A method asked for by name was replaced, as `Fallback::Stronger` allows.
    MethodReplaced { asked: &'static str, by: &'static str }, "method-replaced": "{asked} could not factor the matrix: {by} solved the system";
    TimeLimit { seconds: f64, left: &'static str }, "time-limit": "the time limit of {seconds} s was reached: {left}";

    // What became of A on the way in.
    ZerosLeftOut { entries: usize }, "zeros-left-out": "{entries} stored entries are zero and were left out";
    RcmIsCheaper, "rcm-is-cheaper": "the rcm order is cheaper than the given one";
    Equilibrated, "equilibrated": "rows and columns were scaled by powers of two to one size";
    BlocksNotUsed { method: &'static str }, "blocks-not-used": "the given blocks were not used: {method} does not work on blocks";
    OneBlock, "one-block": "the whole matrix is one block: the iteration is a direct solve";
    TakenAsHermitian { method: &'static str, relative: f64, entries: String },
        "taken-as-hermitian": "{method} takes the matrix as Hermitian to a part of {relative:.1e}: {entries}";
    OutsideInProducts { entries: usize },
        "outside-in-products": "{entries} entries outside the three block diagonals went into the off-diagonal products";

    // Precision of what was made.
    SingleFactors, "single-factors": "factors in single precision";
    SinglePreconditioner, "single-preconditioner": "the preconditioner is in single precision";
    SingleBasis, "single-basis": "the basis is kept in single precision";
    SingleFailed { why: String, scalar: ScalarKind }, "single-failed": "factors in single precision {why}: factored in {scalar} instead";
    NotInSingle { method: &'static str, scalar: ScalarKind, those: String },
        "not-in-single": "{method} factors in {scalar}: in single precision there are {those}, for real matrices";

    // What an answer of a direct method is worth.
    Refined { steps: usize }, "refined": "{steps} step{s} of iterative refinement kept", s = plural(*steps);
    RefinedAround { corrections: usize, method: &'static str },
        "refined-around": "{corrections} corrections by iterative refinement around {method}";
    NoCondition, "no-condition": "an iteration has no estimate of the condition number";
    Growth { growth: f64 }, "growth": "element growth of the factorization: {growth:.1e}";
    ConditionBeyondFactors, "condition-beyond-factors":
        "the condition number is beyond what these factors can tell, and no digit of x is certain";
    ConditionOfUnits { rcond: f64, scaled_rcond: f64 }, "condition-of-units":
        "rcond {rcond:.1e} is that of the units of rows and columns: with them scaled away it is {scaled_rcond:.1e}";
    ConditionHardlyFelt { rcond: f64, forward_error: f64 }, "condition-hardly-felt":
        "rcond {rcond:.1e}, but this right-hand side hardly feels it: x is right to {forward_error:.0e}, by a componentwise bound";
    SingularButExact { rcond: f64 }, "singular-but-exact":
        "the matrix is singular to working precision (rcond {rcond:.1e}): x is the exact solution for the numbers given, rounded, but rounding in them may have changed every digit of it";
    SingularToPrecision { rcond: f64 }, "singular-to-precision":
        "the matrix is singular to working precision (rcond {rcond:.1e}): x solves a nearby system exactly, but may have no correct digit";
    SumsToZero { lines: &'static str }, "sums-to-zero":
        "all {lines} of the matrix sum to zero, to rounding: it is singular to working precision, and x is one of many solutions";
    RowNotSolved { componentwise_backward_error: f64 }, "row-not-solved":
        "a row far below the others is not solved (componentwise backward error {componentwise_backward_error:.1e}): its unknowns may have no correct digit; a direct method solves every row";
    Overflow, "overflow": "the solution is larger than the largest number of its type, and overflows";
    ZeroForOverflow, "zero-for-overflow": "the solution exceeds the largest number: x = 0 is returned";
    NotAtRoundingLevel { reached: String }, "not-at-rounding-level": "{reached} is not at rounding level";

    // Components, SPIKE and butterflies.
    Components { components: usize, parts: usize, methods: String },
        "components": "{components} connected component{s} in {parts} part{t}, by {methods}", s = plural(*components), t = plural(*parts);
    SpikePartitions { partitions: usize, least_rows: usize, most_rows: usize },
        "spike-partitions": "spike: {partitions} partitions of {least_rows} to {most_rows} rows";
    SpikeChose { reason: String }, "spike-chose": "spike: {reason}";
    SpikeDropped { bound: Option<f64> }, "spike-dropped": "what the truncated reduced system dropped {is}",
        is = bound.map_or("has no useful bound".to_owned(), |bound| format!("is at most {bound:.1e}"));
    BoostedPivots { pivots: usize }, "boosted-pivots": "{pivots} pivots were boosted";
    PivotedInstead { method: &'static str, how: &'static str, why: String },
        "pivoted-instead": "{method} factored with {how} instead: {why}";

    // Preconditioners.
    JacobiSinceFull, "jacobi-since-full": "preconditioner: jacobi, since no diagonal entry is zero";
    NoPreconditioner { why: String }, "no-preconditioner": "no preconditioner: {why}";
    PreconditionerEntries { name: String, entries: usize }, "preconditioner-entries": "preconditioner: {name} with {entries} entries";
    PreconditionerBlocks { name: String, blocks: usize, least_rows: usize, most_rows: usize },
        "preconditioner-blocks": "preconditioner: {name} on {blocks} blocks of {least_rows} to {most_rows} rows";
    PreconditionerNodes { name: String, blocks: usize, rows: usize },
        "preconditioner-nodes": "preconditioner: {name} on {blocks} blocks of {rows} {each}",
        each = if *rows == 1 { "row, as ssor-ai2" } else { "rows" };
    PreconditionerSubdomains { name: String, subdomains: usize, least_rows: usize, most_rows: usize, overlap: usize, local: &'static str },
        "preconditioner-subdomains": "preconditioner: {name} on {subdomains} subdomains of {least_rows} to {most_rows} rows, overlap {overlap}, each by {local}";
    PreconditionerLevels { name: String, entries: usize, rows: String, last_entries: usize, last: &'static str },
        "preconditioner-levels": "preconditioner: {name} with {entries} entries, levels of {rows} rows, the last ({last_entries} entries) by {last}";
    PreconditionerBand { name: String, kl: usize, ku: usize, matched: &'static str, order: &'static str, left_out: f64 },
        "preconditioner-band": "preconditioner: {name} on {kl} sub- and {ku} super-diagonals ({matched}{order} order), {left_out:.1e} of the Frobenius norm left out";
    LeftOutOfPreconditioner { name: String, entries: usize },
        "left-out-of-preconditioner": "{entries} entries outside the three block diagonals are left out of {name}";
    InterchangedBlocks { blocks: usize }, "interchanged-blocks": "{blocks} diagonal blocks were factored with row interchanges";
    ReplacedPivots { of: String, pivots: usize }, "replaced-pivots": "{pivots} small pivots of {of} were replaced";
    ShiftedDiagonal { name: String, breakdowns: usize, shift: f64 },
        "shifted-diagonal": "{name} met pivots that are not positive {breakdowns} times and was made from A + {shift}·diag(A)";
    SweepsForSolves { sweeps: usize, lower_levels: usize, upper_levels: usize },
        "sweeps-for-solves": "{sweeps} Jacobi sweeps in place of triangular solves on {lower_levels} and {upper_levels} levels";
    RowsMatched, "rows-matched": "its rows were matched with columns for a heavy diagonal";
    WentToNextLevel { unknowns: usize },
        "went-to-next-level": "{unknowns} unknowns had no good pivot in their group and went to the next level";
    LastLevelByIlut { most_rows: usize }, "last-level-by-ilut": "the last level went to ilut, since it has more than {most_rows} rows";
    LastLevelPivoted { place: &'static str, why: String },
        "last-level-pivoted": "the last level was factored with partial pivoting{place}: {why}";
    LastLevelShifted { shift: f64 },
        "last-level-shifted": "the last level is singular to working precision and was shifted by {shift:.1e}";
    WithoutInterchanges { why: String }, "without-interchanges": "{why}; factored without interchanges instead";
    SymmetricIlut, "symmetric-ilut": "ilut in its symmetric form: its pattern with the transpose, and positive pivots";
    PatternFound { steps: usize, missed: f64, missed_inside: f64 },
        "pattern-found": "{steps} steps found its pattern; L·U misses {missed:.1e} of a row of A in the mean, {missed_inside:.1e} of it in the pattern";

    // Iterations.
    RightHandSidesTogether { columns: usize, at_a_time: usize },
        "right-hand-sides-together": "{columns} right-hand sides, {at_a_time} at a time: one product with the matrix for all of them";
    ProductsByBlocks { rows: usize }, "products-by-blocks": "products with the matrix by blocks of {rows} rows";
    RightHandSidesInStep { columns: usize, at_a_time: usize },
        "right-hand-sides-in-step": "{columns} right-hand sides, {at_a_time} at a time: the launches of a step are for all of them";
    StoppedByResidual, "stopped-by-residual": "stopping rule: 2-norm of the true residual b − A·x";
    StoppedByUpdate { last: f64 },
        "stopped-by-update": "stopping rule: ∞-norm of the update xⁱ⁺¹ − xⁱ, last {last:.3e}; not a bound on the residual";
    ClaimedTooMuch { by: &'static str, claimed: f64, recomputed: f64 },
        "claimed-too-much": "the {by} claimed {claimed:.3e}, the recomputed residual is {recomputed:.3e}";
    AttainableAccuracy { relative_residual: f64 }, "attainable-accuracy":
        "the recurrence met the tolerance, the true residual stays at {relative_residual:.2e} of the baseline: the attainable accuracy";
    RelaxationTuned { omega: f64, spectrum: &'static str, radius: f64, a_sweep: f64 },
        "relaxation-tuned": "omega = {omega:.4}, tuned to a {spectrum} spectrum of the Jacobi iteration with radius {radius:.6}: {a_sweep:.4} a sweep";
    Relaxation { omega: f64 }, "relaxation": "omega = {omega}";
    ChebyshevTuned { spectrum: &'static str, radius: f64, a_sweep: f64 },
        "chebyshev-tuned": "Chebyshev polynomials for a {spectrum} spectrum of the Jacobi iteration with radius {radius:.6}: {a_sweep:.4} a sweep";
    SpectralRadius { radius: f64, low: f64, high: f64 },
        "spectral-radius": "estimated spectral radius of the iteration: {radius:.6} ({low:.6} to {high:.6})";
    IterationsPredicted { iterations: usize }, "iterations-predicted": "iterations predicted once the rate showed: {iterations}";
    IterationsLeft { about: usize, least: usize, most: Option<usize> },
        "iterations-left": "about {about} more iterations ({least} to {most}) would reach the tolerance",
        most = most.map_or("any number".to_owned(), |most| most.to_string());
    DirectWillDo { why: String, cure: &'static str }, "direct-will-do": "{why}; {cure} (block-lu, band-lu, sparse-lu)";
    ZeroPivotBlocks { blocks: usize },
        "zero-pivot-blocks": "{blocks} diagonal blocks have a zero pivot and were factored with row interchanges";
    ReducedSystem { order: usize, unknowns: usize },
        "reduced-system": "{order} of {unknowns} unknowns, those of the odd blocks, were iterated on";
    ReducedResidual { threshold: f64, residual: f64 },
        "reduced-residual": "the reduced system was to meet {threshold:.3e}, the residual of A·x = b is {residual:.3e}";

    /// Of a batch: each system has a status of its own.
    Batch { systems: usize, rows: usize, unsolved: usize }, "batch": "{systems} systems of {rows} rows; {unsolved} were not solved";

    // Devices.
    DeviceChosen { place: String, why: String }, "device-chosen": "device auto: {place}, since {why}";
    ComputedOn { device: String }, "computed-on": "computed on {device}";
    DenseFactorsOn { device: String }, "dense-factors-on": "for dense factors there was {device}";
    OneLaunch { rows: &'static str, steps: &'static str }, "one-launch": "all {rows} fit on the GPU at once: 32 {steps} are one launch";
    OneThreadBlock, "one-thread-block": "one system is one thread block: the method spike uses all multiprocessors";
    DeviceTooWeak { backward_error: f64, method: &'static str },
        "device-too-weak": "the GPU reached a backward error of {backward_error:.1e} only: {method} on the processor solved the system";
    SharedOut { what: &'static str, shares: String }, "shared-out": "{what} of each place: {shares}";
}
