//! Options of a solve as a structure of C that later versions may lengthen, and what the facade makes of them.

#![allow(unsafe_code)] // functions for C

use std::ffi::{c_char, c_void};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use blocktri::{
    Blocks, Fallback, Method, Monitor, Precision, Precond, Progress, Refinement, Reorder, Setting, SolveOptions,
};
use bt_formats::memory::{Limit, set_limit};

use crate::raw;
use crate::status::{Failure, Result, blocktri_status, guard};

/// Called now and then while a method works, on the calling thread or one of this library's, never on two at once.
///
/// `done` of `total` columns or blocks are factored and `residual` is NaN; or `done` iterations are over, `total` is 0, and `residual` is the
/// norm that their rule looks at, relative to its baseline. Another return value than 0 ends the work: `BLOCKTRI_INTERRUPTED`. It must
/// return, without `longjmp` or exception, and not call functions with the solver that it watches.
pub type blocktri_monitor =
    Option<unsafe extern "C" fn(context: *mut c_void, done: i64, total: i64, residual: f64) -> i32>;

/// Options of a solve, filled by `blocktri_options_init` before any is set. Where the options of a call are a null pointer they are as that
/// leaves them. Texts are read during the call and not kept.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct blocktri_options {
    /// Bytes of the structure, set by `blocktri_options_init`.
    pub size: usize,
    /// The method by its name in the book, `"band-lu"`; null or `"auto"` for the one predicted to be fastest, verified, and replaced by a
    /// stronger one where it is too weak.
    pub method: *const c_char,
    /// The preconditioner of a Krylov method, `"ilut"`; null for the method's own choice.
    pub precond: *const c_char,
    /// The order, `"none"`, `"rcm"`, `"spectral"`, `"matching"` or `"matching+rcm"`; null or `"auto"` for the cheapest.
    pub reorder: *const c_char,
    /// Precision of factors and preconditioners: null or `"working"` for that of the matrix; `"single"`.
    pub precision: *const c_char,
    /// Whether another method may take the place of a named one that breaks down: null or `"never"`; `"stronger"`.
    pub fallback: *const c_char,
    /// Size of the blocks for methods on blocks; 0 to find them.
    pub block_size: i64,
    /// Steps of iterative refinement of direct methods; below 0 for as many as help, three at most.
    pub refine: i64,
    /// Iterations at most; 0 for the method's own limit.
    pub max_iters: i64,
    /// ‖b − A·x‖₂ ≤ max(atol, rtol·‖b‖₂) ends an iteration; below 0 for the method's own.
    pub rtol: f64,
    /// As of `rtol`, of named iterative methods.
    pub atol: f64,
    /// Seconds at most for a factorization or a solve in one call; 0 for any.
    pub time_limit: f64,
    /// Threads; 0 for as many as the machine has. The bits of an answer do not depend on it.
    pub threads: i64,
    /// Called while a method works; null for nothing.
    pub monitor: blocktri_monitor,
    /// The monitor's first argument. A solver calls the monitor in `blocktri_solver_refactor`, too: both must live as long as it.
    pub monitor_context: *mut c_void,
}

impl Default for blocktri_options {
    fn default() -> Self {
        let null = std::ptr::null();
        Self {
            size: size_of::<Self>(),
            method: null,
            precond: null,
            reorder: null,
            precision: null,
            fallback: null,
            block_size: 0,
            refine: -1,
            max_iters: 0,
            rtol: -1.0,
            atol: -1.0,
            time_limit: 0.0,
            threads: 0,
            monitor: None,
            monitor_context: std::ptr::null_mut(),
        }
    }
}

/// Fills `options` with the defaults: `blocktri_options_init(&options, sizeof options)`.
///
/// `size` tells this library which version of the structure the program was compiled with. A structure longer than this library's is
/// refused: the library is older than the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_options_init(options: *mut blocktri_options, size: usize) -> blocktri_status {
    guard(|| {
        raw::check_out("options", options)?;
        check_size(size)?;
        let defaults = blocktri_options { size, ..blocktri_options::default() };
        // SAFETY: not null, and of `size` bytes by the caller's word.
        unsafe { raw::write_prefix(options, &defaults, size) };
        Ok(())
    })
}

/// Bytes that the whole process may hold for all that this library does, less what is available; 0 for 80 % of what is available when it is
/// asked for. What would need more is `BLOCKTRI_OUT_OF_MEMORY` before it takes any.
#[unsafe(no_mangle)]
pub extern "C" fn blocktri_set_memory_limit(bytes: u64) {
    set_limit(if bytes == 0 { Limit::DEFAULT } else { Limit::Bytes(bytes) });
}

/// The structure of the first version.
const FIRST_SIZE: usize = size_of::<blocktri_options>();

fn check_size(size: usize) -> Result<()> {
    if (FIRST_SIZE..=size_of::<blocktri_options>()).contains(&size) {
        return Ok(());
    }
    let known = size_of::<blocktri_options>();
    let why = if size > known { "this library is older than the header" } else { "call blocktri_options_init first" };
    Err(Failure::argument(format!("options of {size} bytes, where this library knows {FIRST_SIZE} to {known}: {why}")))
}

/// What a call works by.
#[derive(Clone)]
pub(crate) struct Options {
    pub of_solve: SolveOptions,
    pub threads: usize,
    watch: Watch,
}

/// The monitor of C.
#[derive(Clone, Copy)]
struct Watch {
    call: blocktri_monitor,
    context: *mut c_void,
}

// SAFETY: the context is only handed back to the caller's function, whose documentation says on which threads it runs.
unsafe impl Send for Watch {}
// SAFETY: as above; calls are one at a time, each from the one monitor of a call.
unsafe impl Sync for Watch {}

/// Options of C, or the defaults.
///
/// # Safety
/// A pointer that is not null points to what `blocktri_options_init` filled, its texts are texts.
pub(crate) unsafe fn read(options: *const blocktri_options) -> Result<Options> {
    let mut given = blocktri_options::default();
    if !options.is_null() {
        raw::check_out("options", options.cast_mut())?;
        // SAFETY: the caller's word; the size is the first field of every version.
        let size = *unsafe { raw::reference("options", options.cast::<usize>()) }?;
        check_size(size)?;
        // SAFETY: of `size` bytes, as `blocktri_options_init` noted.
        unsafe { raw::read_prefix(&mut given, options, size) };
    }
    // SAFETY: texts, by the caller's word.
    let text = |what, at| unsafe { raw::text(what, at) };
    let mut method: Method = text("method", given.method)?.unwrap_or("auto").parse()?;
    let reorder = named("reorder", text("reorder", given.reorder)?, &Reorder::ALL, |r| r.name(), Reorder::Auto)?;
    let precision =
        named("precision", text("precision", given.precision)?, &Precision::ALL, |p| p.name(), Precision::Working)?;
    let fallbacks = [Fallback::Never, Fallback::Stronger];
    let name_of = |f: &Fallback| if *f == Fallback::Never { "never" } else { "stronger" };
    let fallback = named("fallback", text("fallback", given.fallback)?, &fallbacks, name_of, Fallback::Never)?;
    let blocks = match raw::size("block_size", given.block_size)? {
        0 => Blocks::Detect,
        size => Blocks::Uniform(size),
    };
    let precond = text("precond", given.precond)?.map(str::parse::<Precond>).transpose()?;
    for (what, tolerance) in [("rtol", given.rtol), ("atol", given.atol)] {
        if !tolerance.is_finite() {
            return Err(Failure::argument(format!("{what} is {tolerance}")));
        }
    }
    let at_least_zero = |tolerance: f64| Some(tolerance).filter(|&t| t >= 0.0);
    let iterations = Some(raw::size("max_iters", given.max_iters)?).filter(|&most| most > 0);
    let refinement = usize::try_from(given.refine).ok().map(Refinement::Steps);
    for (what, setting) in [
        ("refine", refinement.map(Setting::Refinement)),
        ("precond", precond.map(Setting::Precond)),
        ("precision", Some(precision).filter(|p| *p != Precision::Working).map(Setting::Precision)),
        ("rtol", at_least_zero(given.rtol).map(Setting::RelativeTolerance)),
        ("atol", at_least_zero(given.atol).map(Setting::AbsoluteTolerance)),
        ("max_iters", iterations.map(Setting::Iterations)),
    ] {
        if setting.is_some_and(|setting| !method.set(setting)) {
            return Err(Failure::argument(format!("{what} is not read by method {method}")));
        }
    }
    let time_limit = match given.time_limit {
        0.0 => None,
        seconds => Some(Duration::try_from_secs_f64(seconds).map_err(|_| {
            Failure::argument(format!("time_limit is {seconds} and must be a number of seconds, or 0 for none"))
        })?),
    };
    Ok(Options {
        of_solve: SolveOptions { method, reorder, blocks, fallback, time_limit, ..SolveOptions::default() },
        threads: raw::size("threads", given.threads)?,
        watch: Watch { call: given.monitor, context: given.monitor_context },
    })
}

/// One of a few values by its name.
fn named<T: Copy>(
    what: &str,
    given: Option<&str>,
    all: &[T],
    name: impl Fn(&T) -> &'static str,
    otherwise: T,
) -> Result<T> {
    let Some(given) = given else { return Ok(otherwise) };
    all.iter().find(|value| name(value) == given).copied().ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(&name).collect();
        Failure::argument(format!("{what} is '{given}' and must be one of {}", known.join(", ")))
    })
}

impl Options {
    /// The monitor of one call, with the time limit where the facade does not watch it.
    pub fn monitor(&self, limit: TimeLimit) -> CallMonitor {
        let limit = if limit == TimeLimit::Watched { self.of_solve.time_limit } else { None };
        // A limit beyond the end of the clock is none.
        CallMonitor { watch: self.watch, end: limit.and_then(|limit| Instant::now().checked_add(limit)), passed: false }
    }
}

/// Who ends a call when its time is over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeLimit {
    /// The monitor.
    Watched,
    /// The facade, which does not need it.
    Elsewhere,
}

/// Tells C, and ends the work when the time is over.
pub(crate) struct CallMonitor {
    watch: Watch,
    end: Option<Instant>,
    /// Whether the time is over.
    pub passed: bool,
}

impl Monitor for CallMonitor {
    fn observe(&mut self, progress: Progress) -> ControlFlow<()> {
        if self.end.is_some_and(|end| Instant::now() >= end) {
            self.passed = true;
            return ControlFlow::Break(());
        }
        let (Some(call), Some((done, total, residual))) = (self.watch.call, told(progress)) else {
            return ControlFlow::Continue(());
        };
        // SAFETY: the caller's function and its own argument.
        let answer = unsafe { call(self.watch.context, done, total, residual) };
        if answer == 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

/// Progress as three numbers; which column it is of is not told.
fn told(progress: Progress) -> Option<(i64, i64, f64)> {
    match progress {
        Progress::Iteration { index, residual } => Some((index as i64, 0, residual)),
        Progress::Step { done, total, .. } => Some((done as i64, total as i64, f64::NAN)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_back(given: &blocktri_options) -> Result<SolveOptions> {
        // SAFETY: a structure of this version, with texts.
        unsafe { read(given) }.map(|options| options.of_solve)
    }

    fn by(method: &std::ffi::CStr) -> blocktri_options {
        blocktri_options { method: method.as_ptr(), ..blocktri_options::default() }
    }

    #[test]
    fn nothing_given_is_the_default() {
        // SAFETY: a null pointer is allowed.
        let options = unsafe { read(std::ptr::null()) }.unwrap();
        assert_eq!(options.of_solve, SolveOptions::default());
        assert_eq!(read_back(&blocktri_options::default()).unwrap(), SolveOptions::default());
    }

    #[test]
    fn names_become_methods() {
        let given = blocktri_options { precond: c"ilut".as_ptr(), max_iters: 7, rtol: 1e-3, ..by(c"gmres") };
        let options = read_back(&given).unwrap();
        let stop = options.method.stop().unwrap();
        assert_eq!((options.method.name(), stop.max_iters, stop.rtol), ("gmres", 7, 1e-3));
        let Method::Krylov(krylov) = &options.method else { unreachable!("gmres") };
        assert_eq!(krylov.precond.name(), "ilut");
        let given = blocktri_options { reorder: c"rcm".as_ptr(), refine: 2, time_limit: 0.5, ..by(c"band-lu") };
        let options = read_back(&given).unwrap();
        assert_eq!((options.reorder, options.time_limit), (Reorder::Rcm, Some(Duration::from_millis(500))));
        assert_eq!(options.method.factoring().unwrap().refinement, Refinement::Steps(2));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let wrong = |given: blocktri_options, expected: &str| {
            let message = read_back(&given).unwrap_err().message;
            assert!(message.contains(expected), "{message}");
        };
        wrong(by(c"magic"), "unknown method 'magic'; there are");
        wrong(
            blocktri_options { precond: c"ilut".as_ptr(), ..by(c"band-lu") },
            "precond is not read by method band-lu",
        );
        wrong(blocktri_options { max_iters: 3, ..by(c"band-lu") }, "max_iters is not read by method band-lu");
        wrong(blocktri_options { refine: 1, ..by(c"cg") }, "refine is not read by method cg");
        wrong(blocktri_options { reorder: c"none of them".as_ptr(), ..by(c"auto") }, "one of none, rcm");
        wrong(blocktri_options { time_limit: -1.0, ..by(c"auto") }, "time_limit is -1");
        wrong(blocktri_options { rtol: f64::NAN, ..by(c"cg") }, "rtol is NaN");
        wrong(blocktri_options { threads: -1, ..by(c"auto") }, "threads is -1");
        wrong(blocktri_options { size: 8, ..by(c"auto") }, "call blocktri_options_init first");
        wrong(blocktri_options { size: 1000, ..by(c"auto") }, "older than the header");
    }
}
