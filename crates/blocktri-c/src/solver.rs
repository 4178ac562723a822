//! Solves: of a matrix in one call, or by factors that are kept.

#![allow(unsafe_code)] // functions for C

use std::collections::HashMap;
use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};

use blocktri::faer::MatRef;
use blocktri::{AnyScalar, AnySolver, Op, ScalarKind, Solution, c32, c64};

use crate::matrix::blocktri_matrix;
use crate::options::{CallMonitor, Options, TimeLimit, blocktri_options, read};
use crate::raw;
use crate::report::blocktri_report;
use crate::run::run;
use crate::status::{Failure, Result, blocktri_status, guard, guard_value, judged};

/// A factored matrix. Any number of threads may solve with it at the same time; `blocktri_solver_refactor` waits until they are done, and
/// they until it is.
pub struct blocktri_solver {
    held: RwLock<Held>,
    options: Options,
}

/// Factors, and the entries of the matrix.
struct Held {
    factors: AnySolver,
    nnz: usize,
}

impl blocktri_solver {
    /// The factors, to be read.
    fn held(&self) -> Result<RwLockReadGuard<'_, Held>> {
        self.held.read().map_err(|_| broken())
    }
}

fn broken() -> Failure {
    let message = "an earlier call met a bug in blocktri and left this solver without factors".into();
    Failure { status: blocktri_status::BLOCKTRI_INTERNAL, message }
}

fn of_another_scalar<T: AnyScalar>(what: &str, found: ScalarKind) -> Failure {
    Failure::argument(format!("the {what} is of {found}, this function for {}", T::KIND))
}

/// Where the columns of a system are: nrhs of them, `ldb` and `ldx` apart.
struct System<T> {
    nrhs: i64,
    b: *const T,
    ldb: i64,
    x: *mut T,
    ldx: i64,
}

impl<T: AnyScalar> System<T> {
    /// B.
    ///
    /// # Safety
    /// B and X are there, n × nrhs, and nobody writes them meanwhile.
    unsafe fn given<'a>(&self, n: usize) -> Result<MatRef<'a, T>> {
        let (nrhs, ldb, ldx) =
            (raw::size("nrhs", self.nrhs)?, raw::size("ldb", self.ldb)?, raw::size("ldx", self.ldx)?);
        // What is wrong with X is said before the work.
        // SAFETY: the caller's word; the view ends here.
        unsafe { raw::columns("x", self.x.cast_const(), (n, nrhs), ldx) }?;
        // SAFETY: the caller's word.
        unsafe { raw::columns("b", self.b, (n, nrhs), ldb) }
    }

    /// Writes X and the report, and judges them.
    ///
    /// # Safety
    /// X is there, n × nrhs, nobody looks at B any more, and `report` has room for a pointer or is null.
    unsafe fn answer(&self, solution: &Solution<T>, nnz: usize, report: *mut *mut blocktri_report) -> Result<()> {
        let ldx = raw::size("ldx", self.ldx)?;
        // SAFETY: the caller's word.
        unsafe { raw::columns_mut("x", self.x, solution.x.shape(), ldx) }?.copy_from(&solution.x);
        if !report.is_null() {
            // SAFETY: the caller's word.
            unsafe { raw::give(report, blocktri_report::new(solution, nnz)) };
        }
        judged(&solution.report)
    }
}

/// The time is over, where the facade says that it was stopped.
fn in_time<R>(done: Result<R>, monitor: &CallMonitor) -> Result<R> {
    done.map_err(|failure| match failure.status {
        blocktri_status::BLOCKTRI_INTERRUPTED if monitor.passed => Failure {
            status: blocktri_status::BLOCKTRI_TIME_LIMIT,
            message: "the time limit was reached during factorization".into(),
        },
        _ => failure,
    })
}

/// A·X = B in one call.
///
/// # Safety
/// Handles, options and arrays are what their documentation says.
unsafe fn solve_once<T: AnyScalar>(
    matrix: *const blocktri_matrix,
    options: *const blocktri_options,
    system: &System<T>,
    report: *mut *mut blocktri_report,
) -> blocktri_status {
    guard(|| {
        // SAFETY: the caller's word.
        unsafe { raw::write(report, ptr::null_mut()) };
        // SAFETY: the caller's word.
        let (matrix, options) = unsafe { (raw::reference("matrix", matrix)?, read(options)?) };
        let a = T::of_matrix(&matrix.of).ok_or_else(|| of_another_scalar::<T>("matrix", matrix.of.kind()))?;
        // SAFETY: the caller's word.
        let b = unsafe { system.given(matrix.of.nrows()) }?;
        let mut monitor = options.monitor(TimeLimit::Elsewhere);
        let size = b.nrows().saturating_mul(b.ncols());
        let solution = run(options.threads, size, || Ok(T::solve(a.given(), b, &options.of_solve, &mut monitor)?))?;
        // SAFETY: the caller's word; the solution has numbers of its own.
        unsafe { system.answer(&solution, matrix.of.nnz(), report) }
    })
}

/// op(A)·X = B by factors.
///
/// # Safety
/// As of [`solve_once`].
unsafe fn solve_again<T: AnyScalar>(
    solver: *const blocktri_solver,
    op: c_char,
    system: &System<T>,
    report: *mut *mut blocktri_report,
) -> blocktri_status {
    guard(|| {
        // SAFETY: the caller's word.
        unsafe { raw::write(report, ptr::null_mut()) };
        // SAFETY: the caller's word.
        let solver = unsafe { raw::reference("solver", solver) }?;
        let op = match op as u8 {
            b'N' | b'n' => Op::Identity,
            b'T' | b't' => Op::Transpose,
            b'C' | b'c' => Op::Adjoint,
            other => return Err(Failure::argument(format!("op is {:?} and must be 'N', 'T' or 'C'", other as char))),
        };
        let held = solver.held()?;
        let typed = T::of_solver(&held.factors).ok_or_else(|| of_another_scalar::<T>("solver", held.factors.kind()))?;
        // SAFETY: the caller's word.
        let b = unsafe { system.given(held.factors.n()) }?;
        let size = b.nrows().saturating_mul(b.ncols());
        let solution = run(solver.options.threads, size, || Ok(typed.solve_op(op, b)?))?;
        // SAFETY: the caller's word; the solution has numbers of its own.
        unsafe { system.answer(&solution, held.nnz, report) }
    })
}

/// The diagonal of A⁻¹.
///
/// # Safety
/// A handle, and room for n numbers.
unsafe fn inverse_diagonal<T: AnyScalar>(solver: *const blocktri_solver, diagonal: *mut T) -> blocktri_status {
    guard(|| {
        // SAFETY: the caller's word.
        let solver = unsafe { raw::reference("solver", solver) }?;
        let held = solver.held()?;
        let (factors, n) = (&held.factors, held.factors.n());
        let typed = T::of_solver(factors).ok_or_else(|| of_another_scalar::<T>("solver", factors.kind()))?;
        // SAFETY: the caller's word.
        let diagonal = unsafe { raw::slice_mut("diagonal", diagonal, n) }?;
        let inverse = run(solver.options.threads, n, || Ok(typed.selected_inverse()?))?;
        diagonal.copy_from_slice(&inverse.diagonal_values());
        Ok(())
    })
}

/// Factors a matrix by the method of `options` (a direct one, or the fastest), for solves with `blocktri_solver_solve_d` and its siblings.
///
/// The solver keeps a copy of the matrix, from which every answer is certified. `options` may be null. On failure `*solver` is null.
///
/// Errors: `BLOCKTRI_INVALID_ARGUMENT`, also for an iterative method; `BLOCKTRI_NOT_FINITE`; `BLOCKTRI_SINGULAR`; `BLOCKTRI_BREAKDOWN`;
/// `BLOCKTRI_OUT_OF_MEMORY`; `BLOCKTRI_INTERRUPTED` and `BLOCKTRI_TIME_LIMIT`. Cost: a factorization.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_solver_new(
    matrix: *const blocktri_matrix,
    options: *const blocktri_options,
    solver: *mut *mut blocktri_solver,
) -> blocktri_status {
    guard(|| {
        raw::check_out("solver", solver)?;
        // SAFETY: room for a pointer, by the caller's word.
        unsafe { raw::write(solver, ptr::null_mut()) };
        // SAFETY: a handle and options, by the caller's word.
        let (matrix, options) = unsafe { (raw::reference("matrix", matrix)?, read(options)?) };
        let mut monitor = options.monitor(TimeLimit::Watched);
        let (a, asked) = (&matrix.of, &options.of_solve);
        let made = run(options.threads, a.nrows(), || Ok(AnySolver::new(a, asked, &mut monitor)?));
        let held = RwLock::new(Held { factors: in_time(made, &monitor)?, nnz: a.nnz() });
        // SAFETY: room for a pointer, by the caller's word.
        unsafe { raw::give(solver, blocktri_solver { held, options }) };
        Ok(())
    })
}

/// Factors new values of the same size and scalar: the same method, in the same order where the pattern has not changed.
///
/// It waits for solves of other threads with this solver; those that begin meanwhile wait for it. On failure the factors stay as they were.
///
/// Errors: as `blocktri_solver_new`; `BLOCKTRI_INVALID_ARGUMENT` on another size or scalar. Cost: a factorization, less the search for an
/// order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_solver_refactor(
    solver: *mut blocktri_solver,
    matrix: *const blocktri_matrix,
) -> blocktri_status {
    guard(|| {
        // SAFETY: handles, by the caller's word; a shared reference, since solves of other threads may hold one.
        let (solver, matrix) =
            unsafe { (raw::reference("solver", solver.cast_const())?, raw::reference("matrix", matrix)?) };
        let mut monitor = solver.options.monitor(TimeLimit::Watched);
        let mut held = solver.held.write().map_err(|_| broken())?;
        let (a, factors) = (&matrix.of, &mut held.factors);
        in_time(run(solver.options.threads, a.nrows(), || Ok(factors.refactor(a, &mut monitor)?)), &monitor)?;
        held.nnz = a.nnz();
        Ok(())
    })
}

/// Frees a solver that no thread uses any more. Nothing happens to a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_solver_free(solver: *mut blocktri_solver) {
    // SAFETY: made by this library and freed once, by the caller's word.
    guard_value((), || unsafe { raw::release(solver) });
}

/// The size n; −1 of a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_solver_n(solver: *const blocktri_solver) -> i64 {
    guard_value(-1, || {
        // SAFETY: a handle, by the caller's word.
        let solver = unsafe { raw::reference("solver", solver) };
        solver.and_then(|solver| Ok(solver.held()?.factors.n() as i64)).unwrap_or(-1)
    })
}

/// The name of the method that factored, `"block-lu"`; empty of a null pointer. The text stands as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_solver_method(solver: *const blocktri_solver) -> *const c_char {
    guard_value(c"".as_ptr(), || {
        // SAFETY: a handle, by the caller's word.
        let solver = unsafe { raw::reference("solver", solver) };
        solver.and_then(|solver| Ok(lasting(solver.held()?.factors.method().name()))).unwrap_or(c"".as_ptr())
    })
}

/// A name with a zero behind it, made once for all calls; there are as many as methods and outcomes.
pub(crate) fn lasting(name: &'static str) -> *const c_char {
    static NAMES: Mutex<Option<HashMap<&'static str, CString>>> = Mutex::new(None);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    // The text of a `CString` stays where it is when the map moves it, and nothing is taken out.
    names.get_or_insert_default().entry(name).or_insert_with(|| CString::new(name).unwrap_or_default()).as_ptr()
}

/// What a solver says about its matrix.
///
/// # Safety
/// A handle, or null.
unsafe fn asked<R>(solver: *const blocktri_solver, say: impl FnOnce(&AnySolver) -> Result<R>) -> Result<R> {
    // SAFETY: the caller's word.
    let solver = unsafe { raw::reference("solver", solver) }?;
    say(&solver.held()?.factors)
}

/// det A = sign·exp(`log_abs`), the sign a number of modulus 1 (±1 of real matrices) in two parts. Each of the three pointers may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_solver_log_det(
    solver: *const blocktri_solver,
    log_abs: *mut f64,
    sign_re: *mut f64,
    sign_im: *mut f64,
) -> blocktri_status {
    guard(|| {
        // SAFETY: a handle, by the caller's word.
        let det = unsafe { asked(solver, |factors| Ok(factors.log_det())) }?;
        for (to, value) in [(log_abs, det.log_abs), (sign_re, det.sign.0), (sign_im, det.sign.1)] {
            // SAFETY: room for a number, or null.
            unsafe { raw::write(to, value) };
        }
        Ok(())
    })
}

/// An estimate of 1/(‖A‖₁·‖A⁻¹‖₁); NaN where factors in single precision, or with large growth, cannot tell. Cost: some five
/// solves, once per factorization.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_solver_rcond(solver: *const blocktri_solver, rcond: *mut f64) -> blocktri_status {
    guard(|| {
        raw::check_out("rcond", rcond)?;
        // SAFETY: a handle, by the caller's word.
        let found = unsafe { asked(solver, |factors| Ok(factors.rcond())) }?;
        // SAFETY: room for a number.
        unsafe { raw::write(rcond, found.unwrap_or(f64::NAN)) };
        Ok(())
    })
}

/// How many eigenvalues of a Hermitian A are negative, zero to rounding, and positive. Each of the three pointers may be null.
///
/// Errors: `BLOCKTRI_INVALID_ARGUMENT` when A is not Hermitian; `BLOCKTRI_BREAKDOWN`. Cost: a factorization.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_solver_inertia(
    solver: *const blocktri_solver,
    negative: *mut i64,
    zero: *mut i64,
    positive: *mut i64,
) -> blocktri_status {
    guard(|| {
        // SAFETY: a handle, by the caller's word.
        let found = unsafe { asked(solver, |factors| Ok(factors.inertia()?)) }?;
        for (to, count) in [(negative, found.negative), (zero, found.zero), (positive, found.positive)] {
            // SAFETY: room for a number, or null.
            unsafe { raw::write(to, count as i64) };
        }
        Ok(())
    })
}

/// Solves A·X = B of a matrix of double precision in one call: the structure is found, the method of `options` taken, the answer refined and
/// certified. `options` may be null.
///
/// `b` and `x` are n × nrhs by columns, ldb and ldx apart, both at least n. `x` may be `b`, with the same leading dimension. Where `report` is
/// not null, `*report` becomes a report to be freed by `blocktri_report_free`; null where there is no x.
///
/// Errors: as `blocktri_solver_new`, before x is touched. With x written, the best there is, and a report: `BLOCKTRI_NOT_ACCURATE`,
/// `BLOCKTRI_BREAKDOWN`, `BLOCKTRI_INTERRUPTED`, `BLOCKTRI_TIME_LIMIT`. Cost: a factorization and nrhs solves, or an iteration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_solve_d(
    matrix: *const blocktri_matrix,
    options: *const blocktri_options,
    nrhs: i64,
    b: *const f64,
    ldb: i64,
    x: *mut f64,
    ldx: i64,
    report: *mut *mut blocktri_report,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { solve_once(matrix, options, &System { nrhs, b, ldb, x, ldx }, report) }
}

/// As `blocktri_solve_d`, of single precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_solve_s(
    matrix: *const blocktri_matrix,
    options: *const blocktri_options,
    nrhs: i64,
    b: *const f32,
    ldb: i64,
    x: *mut f32,
    ldx: i64,
    report: *mut *mut blocktri_report,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { solve_once(matrix, options, &System { nrhs, b, ldb, x, ldx }, report) }
}

/// As `blocktri_solve_d`, of complex double precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_solve_z(
    matrix: *const blocktri_matrix,
    options: *const blocktri_options,
    nrhs: i64,
    b: *const c64,
    ldb: i64,
    x: *mut c64,
    ldx: i64,
    report: *mut *mut blocktri_report,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { solve_once(matrix, options, &System { nrhs, b, ldb, x, ldx }, report) }
}

/// As `blocktri_solve_d`, of complex single precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_solve_c(
    matrix: *const blocktri_matrix,
    options: *const blocktri_options,
    nrhs: i64,
    b: *const c32,
    ldb: i64,
    x: *mut c32,
    ldx: i64,
    report: *mut *mut blocktri_report,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { solve_once(matrix, options, &System { nrhs, b, ldb, x, ldx }, report) }
}

/// Solves A·X = B (`op` is `'N'`), Aᵀ·X = B (`'T'`) or Aᴴ·X = B (`'C'`) by factors of a matrix of double precision, refines and certifies.
///
/// The other arguments are those of `blocktri_solve_d`. Any number of threads may call it with one solver.
///
/// Errors: `BLOCKTRI_INVALID_ARGUMENT` and `BLOCKTRI_NOT_FINITE` before x is touched; with x written, `BLOCKTRI_NOT_ACCURATE`. Cost: nrhs
/// solves, as many products with A, and again for each step of refinement.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_solver_solve_d(
    solver: *const blocktri_solver,
    op: c_char,
    nrhs: i64,
    b: *const f64,
    ldb: i64,
    x: *mut f64,
    ldx: i64,
    report: *mut *mut blocktri_report,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { solve_again(solver, op, &System { nrhs, b, ldb, x, ldx }, report) }
}

/// As `blocktri_solver_solve_d`, of single precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_solver_solve_s(
    solver: *const blocktri_solver,
    op: c_char,
    nrhs: i64,
    b: *const f32,
    ldb: i64,
    x: *mut f32,
    ldx: i64,
    report: *mut *mut blocktri_report,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { solve_again(solver, op, &System { nrhs, b, ldb, x, ldx }, report) }
}

/// As `blocktri_solver_solve_d`, of complex double precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_solver_solve_z(
    solver: *const blocktri_solver,
    op: c_char,
    nrhs: i64,
    b: *const c64,
    ldb: i64,
    x: *mut c64,
    ldx: i64,
    report: *mut *mut blocktri_report,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { solve_again(solver, op, &System { nrhs, b, ldb, x, ldx }, report) }
}

/// As `blocktri_solver_solve_d`, of complex single precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_solver_solve_c(
    solver: *const blocktri_solver,
    op: c_char,
    nrhs: i64,
    b: *const c32,
    ldb: i64,
    x: *mut c32,
    ldx: i64,
    report: *mut *mut blocktri_report,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { solve_again(solver, op, &System { nrhs, b, ldb, x, ldx }, report) }
}

/// The diagonal of A⁻¹, n numbers of double precision: where A is the inverse of a covariance, the variances.
///
/// Errors: `BLOCKTRI_BREAKDOWN` where block LU meets a singular block. Cost: a factorization by block LU, and about as much again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_solver_inverse_diagonal_d(
    solver: *const blocktri_solver,
    diagonal: *mut f64,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { inverse_diagonal(solver, diagonal) }
}

/// As `blocktri_solver_inverse_diagonal_d`, of single precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_solver_inverse_diagonal_s(
    solver: *const blocktri_solver,
    diagonal: *mut f32,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { inverse_diagonal(solver, diagonal) }
}

/// As `blocktri_solver_inverse_diagonal_d`, of complex double precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_solver_inverse_diagonal_z(
    solver: *const blocktri_solver,
    diagonal: *mut c64,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { inverse_diagonal(solver, diagonal) }
}

/// As `blocktri_solver_inverse_diagonal_d`, of complex single precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_solver_inverse_diagonal_c(
    solver: *const blocktri_solver,
    diagonal: *mut c32,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { inverse_diagonal(solver, diagonal) }
}
