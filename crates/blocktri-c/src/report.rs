//! The report of a solve: numbers one by one, or all of it as JSON.

#![allow(unsafe_code)] // functions for C

use std::ffi::{CString, c_char};

use blocktri::{AnyScalar, Note, Outcome, Solution};
use serde_json::{Value, json};

use crate::raw;
use crate::solver::lasting;
use crate::status::guard_value;

/// What a solve did and how good its answer is, recomputed from A, x and b. It never changes, and any number of threads may read it.
pub struct blocktri_report {
    method: &'static str,
    outcome: Outcome,
    iterations: usize,
    relative_residual: f64,
    backward_error: f64,
    componentwise_backward_error: f64,
    rcond: f64,
    notes: Vec<CString>,
    json: CString,
}

impl blocktri_report {
    /// Of an answer to a matrix of so many entries.
    pub(crate) fn new<T: AnyScalar>(solution: &Solution<T>, nnz: usize) -> Self {
        let (report, certificate) = (&solution.report, solution.report.certificate);
        let (n, nrhs) = solution.x.shape();
        // The names of the command's JSON.
        let system = json!({
            "schema": 1,
            "scalar": T::KIND.to_string(),
            "n": n,
            "nnz": nnz,
            "nrhs": nrhs,
            "blocks": solution.blocks.map(|b| json!({ "count": b.count, "min": b.min, "max": b.max })),
            "precond": solution.precond.name(),
            "reorder": solution.reorder.name(),
            "device": solution.device.to_string(),
            "rcond": solution.rcond,
            "warnings": sentences(&solution.warnings),
        });
        let json = report.to_json(system, Value::Null);
        let text = |text: &str| CString::new(text.replace('\0', " ")).unwrap_or_default();
        Self {
            method: report.method,
            outcome: report.outcome,
            iterations: report.iterations,
            relative_residual: certificate.relative_residual,
            backward_error: certificate.backward_error,
            componentwise_backward_error: certificate.componentwise_backward_error,
            rcond: solution.rcond.unwrap_or(f64::NAN),
            notes: report.notes.iter().map(|note| text(&note.to_string())).collect(),
            json: text(&json.to_string()),
        }
    }
}

/// A value of a report; `otherwise` of a null pointer.
///
/// # Safety
/// A handle, or null.
unsafe fn of<R>(report: *const blocktri_report, otherwise: R, value: impl FnOnce(&blocktri_report) -> R) -> R
where
    R: Copy,
{
    // SAFETY: the caller's word.
    guard_value(otherwise, || unsafe { raw::reference("report", report) }.map_or(otherwise, value))
}

/// The name of the method that gave the answer. The text stands as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_report_method(report: *const blocktri_report) -> *const c_char {
    // SAFETY: a handle, by the caller's word.
    unsafe { of(report, c"".as_ptr(), |r| lasting(r.method)) }
}

/// How it ended: `"converged"`, `"loose"`, `"false-convergence"`, `"iteration-limit"`, `"time-limit"`, `"breakdown"`, `"stopped"` or
/// `"inaccurate"`. The text stands as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_report_outcome(report: *const blocktri_report) -> *const c_char {
    // SAFETY: a handle, by the caller's word.
    unsafe { of(report, c"".as_ptr(), |r| lasting(r.outcome.name())) }
}

/// Iterations, or steps of refinement; −1 of a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_report_iterations(report: *const blocktri_report) -> i64 {
    // SAFETY: a handle, by the caller's word.
    unsafe { of(report, -1, |r| r.iterations as i64) }
}

/// ‖b − A·x‖₂/‖b‖₂ of the worst right-hand side; NaN of a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_report_relative_residual(report: *const blocktri_report) -> f64 {
    // SAFETY: a handle, by the caller's word.
    unsafe { of(report, f64::NAN, |r| r.relative_residual) }
}

/// ‖b − A·x‖∞/(‖A‖∞·‖x‖∞ + ‖b‖∞) of the worst right-hand side; NaN of a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_report_backward_error(report: *const blocktri_report) -> f64 {
    // SAFETY: a handle, by the caller's word.
    unsafe { of(report, f64::NAN, |r| r.backward_error) }
}

/// max |b − A·x|/(|A|·|x| + |b|) over rows and right-hand sides; NaN of a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_report_componentwise_backward_error(report: *const blocktri_report) -> f64 {
    // SAFETY: a handle, by the caller's word.
    unsafe { of(report, f64::NAN, |r| r.componentwise_backward_error) }
}

/// An estimate of 1/(‖A‖₁·‖A⁻¹‖₁), of direct methods; NaN where the answer is not in doubt and nothing was estimated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_report_rcond(report: *const blocktri_report) -> f64 {
    // SAFETY: a handle, by the caller's word.
    unsafe { of(report, f64::NAN, |r| r.rcond) }
}

/// How many sentences the report has: what was chosen and why, and what happened on the way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_report_notes(report: *const blocktri_report) -> i64 {
    // SAFETY: a handle, by the caller's word.
    unsafe { of(report, 0, |r| r.notes.len() as i64) }
}

/// The sentence of that number, from 0; null beyond the last. The text stands as long as the report.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_report_note(report: *const blocktri_report, index: i64) -> *const c_char {
    let null = std::ptr::null();
    // SAFETY: a handle, by the caller's word.
    unsafe {
        of(report, null, |r| usize::try_from(index).ok().and_then(|i| r.notes.get(i)).map_or(null, |n| n.as_ptr()))
    }
}

/// All of it as JSON, with the names of `blocktri solve --json`. The text stands as long as the report; empty of a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_report_json(report: *const blocktri_report) -> *const c_char {
    // SAFETY: a handle, by the caller's word.
    unsafe { of(report, c"".as_ptr(), |r| r.json.as_ptr()) }
}

/// Frees a report. Nothing happens to a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_report_free(report: *mut blocktri_report) {
    // SAFETY: made by this library and freed once, by the caller's word.
    guard_value((), || unsafe { raw::release(report) });
}

fn sentences(notes: &[Note]) -> Vec<String> {
    notes.iter().map(ToString::to_string).collect()
}
