//! The functions of the header as C calls them: every constructor, every scalar, and every way to be wrong.

#![allow(unsafe_code)] // calls functions of C
#![allow(clippy::borrow_as_ptr)] // as C does

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};

use blocktri::{c32, c64};
use blocktri_c::matrix::*;
use blocktri_c::options::*;
use blocktri_c::report::*;
use blocktri_c::solver::*;
use blocktri_c::status::blocktri_status::*;
use blocktri_c::status::*;

const N: c_char = b'N' as c_char;
const T: c_char = b'T' as c_char;

/// A text of the library.
fn text(at: *const c_char) -> String {
    // SAFETY: texts of the library end with a zero.
    unsafe { CStr::from_ptr(at) }.to_str().unwrap().to_owned()
}

fn last_error() -> String {
    text(blocktri_last_error())
}

#[track_caller]
fn refused(status: blocktri_status, expected: blocktri_status, why: &str) {
    let message = last_error();
    assert_eq!(status, expected, "{message}");
    assert!(message.contains(why), "{message}");
}

/// [ 4 1   ]
/// [ 2 5 1 ]
/// [   3 6 ] by three diagonals.
fn tridiagonal() -> *mut blocktri_matrix {
    let mut a = null_mut();
    // SAFETY: arrays of these lengths.
    let status = unsafe {
        blocktri_matrix_from_tridiagonal_d(
            3,
            [2.0, 3.0].as_ptr(),
            [4.0, 5.0, 6.0].as_ptr(),
            [1.0, 1.0].as_ptr(),
            &raw mut a,
        )
    };
    assert_eq!(status, BLOCKTRI_OK);
    a
}

#[test]
fn all_constructors_make_one_matrix() {
    let (dl, d, du) = ([2.0, 3.0], [4.0, 5.0, 6.0], [1.0, 1.0]);
    let band = [0.0, 4.0, 2.0, 9.0, 1.0, 5.0, 3.0, 9.0, 1.0, 6.0, 0.0];
    let (row_ptr, col_idx) = ([0i32, 2, 5, 7], [1i32, 0, 0, 1, 2, 2, 1]);
    let values = [1.0, 4.0, 2.0, 5.0, 1.0, 6.0, 3.0];
    let (wide_ptr, wide_idx) = (row_ptr.map(i64::from), col_idx.map(i64::from));
    let mut made = [null_mut(); 5];
    // SAFETY: arrays of the lengths that the functions ask for.
    unsafe {
        assert_eq!(
            blocktri_matrix_from_tridiagonal_d(3, dl.as_ptr(), d.as_ptr(), du.as_ptr(), &raw mut made[0]),
            BLOCKTRI_OK
        );
        assert_eq!(blocktri_matrix_from_band_d(3, 1, 1, band.as_ptr(), 4, &raw mut made[1]), BLOCKTRI_OK);
        let (p, i) = (row_ptr.as_ptr(), col_idx.as_ptr());
        assert_eq!(blocktri_matrix_from_csr_d(3, p, i, values.as_ptr(), &raw mut made[2]), BLOCKTRI_OK);
        let (p, i) = (wide_ptr.as_ptr(), wide_idx.as_ptr());
        assert_eq!(blocktri_matrix_from_csr64_d(3, p, i, values.as_ptr(), &raw mut made[3]), BLOCKTRI_OK);
        let layout = b'C' as c_char;
        assert_eq!(
            blocktri_matrix_from_blocks_d(3, 1, layout, dl.as_ptr(), d.as_ptr(), du.as_ptr(), &raw mut made[4]),
            BLOCKTRI_OK
        );
        for a in made {
            assert_eq!((blocktri_matrix_n(a), blocktri_matrix_nnz(a)), (3, 7));
            let (b, mut x) = ([5.0, 8.0, 9.0], [0.0; 3]);
            assert_eq!(blocktri_solve_d(a, null(), 1, b.as_ptr(), 3, x.as_mut_ptr(), 3, null_mut()), BLOCKTRI_OK);
            assert!(x.iter().all(|x: &f64| (x - 1.0).abs() < 1e-14), "{x:?}");
            blocktri_matrix_free(a);
        }
    }
}

#[test]
fn blocks_by_rows_and_by_columns() {
    // [ 1 2 | 5 0 ]
    // [ 3 4 | 0 6 ]
    // [ 7 0 | 1 0 ]
    // [ 8 9 | 2 1 ]
    let (diag, lower, upper) = ([1.0, 2.0, 3.0, 4.0, 1.0, 0.0, 2.0, 1.0], [7.0, 0.0, 8.0, 9.0], [5.0, 0.0, 0.0, 6.0]);
    let by_columns = |rows: &[f64]| -> Vec<f64> { rows.chunks(4).flat_map(|b| [b[0], b[2], b[1], b[3]]).collect() };
    let solved = |layout: u8, lower: &[f64], diag: &[f64], upper: &[f64]| {
        let (mut a, mut x) = (null_mut(), [8.0, 13.0, 8.0, 20.0]);
        // SAFETY: arrays of these lengths; x in the place of b.
        unsafe {
            let made = blocktri_matrix_from_blocks_d(
                2,
                2,
                layout as c_char,
                lower.as_ptr(),
                diag.as_ptr(),
                upper.as_ptr(),
                &raw mut a,
            );
            assert_eq!(made, BLOCKTRI_OK);
            assert_eq!(blocktri_solve_d(a, null(), 1, x.as_ptr(), 4, x.as_mut_ptr(), 4, null_mut()), BLOCKTRI_OK);
            blocktri_matrix_free(a);
        }
        x
    };
    for x in [
        solved(b'R', &lower, &diag, &upper),
        solved(b'c', &by_columns(&lower), &by_columns(&diag), &by_columns(&upper)),
    ] {
        assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-13), "{x:?}");
    }
}

#[test]
fn factors_solve_transposed_many_and_in_place() {
    let (a, mut solver, mut report) = (tridiagonal(), null_mut(), null_mut());
    // SAFETY: handles and arrays of this test.
    unsafe {
        assert_eq!(blocktri_solver_new(a, null(), &raw mut solver), BLOCKTRI_OK);
        assert_eq!(blocktri_solver_n(solver), 3);
        assert_eq!(text(blocktri_solver_method(solver)), text(blocktri_solver_method(solver)));
        // Aᵀ·(1, 1, 1) = (6, 9, 7), and twice that; columns 4 apart in b, 3 apart in x.
        let b = [6.0, 9.0, 7.0, f64::NAN, 12.0, 18.0, 14.0];
        let mut x = [0.0; 6];
        assert_eq!(
            blocktri_solver_solve_d(solver, T, 2, b.as_ptr(), 4, x.as_mut_ptr(), 3, &raw mut report),
            BLOCKTRI_OK
        );
        assert!((0..6).all(|i| (x[i] - if i < 3 { 1.0 } else { 2.0 }).abs() < 1e-14), "{x:?}");
        assert_eq!(
            (text(blocktri_report_outcome(report)), blocktri_report_iterations(report) >= 0),
            ("converged".into(), true)
        );
        assert!(blocktri_report_backward_error(report) < 1e-15 && blocktri_report_relative_residual(report) < 1e-15);
        let json: serde_json::Value = serde_json::from_str(&text(blocktri_report_json(report))).unwrap();
        assert_eq!(
            (&json["n"], &json["nnz"], &json["nrhs"], &json["scalar"]),
            (&3.into(), &7.into(), &2.into(), &"f64".into())
        );
        assert_eq!(json["method"], text(blocktri_report_method(report)));
        assert_eq!(json["notes"].as_array().unwrap().len() as i64, blocktri_report_notes(report));
        assert_eq!(json["notes"][0], text(blocktri_report_note(report, 0)));
        assert!(blocktri_report_note(report, 1000).is_null() && blocktri_report_note(report, -1).is_null());
        blocktri_report_free(report);

        let (mut log_abs, mut sign, mut rcond) = (0.0, 0.0, 0.0);
        assert_eq!(blocktri_solver_log_det(solver, &raw mut log_abs, &raw mut sign, null_mut()), BLOCKTRI_OK);
        // det A = 4(30 − 3) − 2·6 = 96
        assert!((log_abs - 96f64.ln()).abs() < 1e-14 && sign == 1.0);
        assert_eq!(blocktri_solver_rcond(solver, &raw mut rcond), BLOCKTRI_OK);
        assert!(rcond > 0.1 && rcond < 1.0, "{rcond}");
        let mut inverse = [0.0; 3];
        assert_eq!(blocktri_solver_inverse_diagonal_d(solver, inverse.as_mut_ptr()), BLOCKTRI_OK);
        assert!((inverse[0] - 27.0 / 96.0).abs() < 1e-15, "{inverse:?}");
        refused(
            blocktri_solver_inertia(solver, null_mut(), null_mut(), null_mut()),
            BLOCKTRI_INVALID_ARGUMENT,
            "Hermitian",
        );

        let mut other = null_mut();
        assert_eq!(
            blocktri_matrix_from_tridiagonal_d(
                3,
                [0.0; 2].as_ptr(),
                [1.0, -2.0, 4.0].as_ptr(),
                [0.0; 2].as_ptr(),
                &raw mut other
            ),
            BLOCKTRI_OK
        );
        assert_eq!(blocktri_solver_refactor(solver, other), BLOCKTRI_OK);
        let (mut negative, mut positive) = (0, 0);
        assert_eq!(blocktri_solver_inertia(solver, &raw mut negative, null_mut(), &raw mut positive), BLOCKTRI_OK);
        assert_eq!((negative, positive), (1, 2));
        let mut x = [1.0, 2.0, 4.0];
        assert_eq!(blocktri_solver_solve_d(solver, N, 1, x.as_ptr(), 3, x.as_mut_ptr(), 3, null_mut()), BLOCKTRI_OK);
        assert_eq!(x, [1.0, -1.0, 1.0]);
        blocktri_solver_free(solver);
        blocktri_matrix_free(other);
        blocktri_matrix_free(a);
    }
}

#[test]
fn every_scalar_solves() {
    // i·x = 1 + i in complex numbers, 2x = 4 in real ones.
    let (i, mut s, mut z, mut c, nothing) =
        (c64::new(0.0, 1.0), [4f32], [c64::new(1.0, 1.0)], [c32::new(1.0, 1.0)], null_mut());
    let [mut a, mut b, mut d] = [null_mut(); 3];
    let mut solver = null_mut();
    // SAFETY: matrices and vectors of one row.
    unsafe {
        assert_eq!(blocktri_matrix_from_band_s(1, 0, 0, [2f32].as_ptr(), 1, &raw mut a), BLOCKTRI_OK);
        assert_eq!(blocktri_solve_s(a, null(), 1, s.as_ptr(), 1, s.as_mut_ptr(), 1, nothing), BLOCKTRI_OK);
        assert_eq!(
            blocktri_matrix_from_csr64_z(1, [0, 1].as_ptr(), [0].as_ptr(), &raw const i, &raw mut b),
            BLOCKTRI_OK
        );
        assert_eq!(blocktri_solver_new(b, null(), &raw mut solver), BLOCKTRI_OK);
        assert_eq!(
            blocktri_solver_solve_z(solver, b'C' as c_char, 1, z.as_ptr(), 1, z.as_mut_ptr(), 1, nothing),
            BLOCKTRI_OK
        );
        let single = [c32::new(0.0, 1.0)];
        let empty = null();
        assert_eq!(
            blocktri_matrix_from_blocks_c(1, 1, b'R' as c_char, empty, single.as_ptr(), empty, &raw mut d),
            BLOCKTRI_OK
        );
        assert_eq!(blocktri_solve_c(d, null(), 1, c.as_ptr(), 1, c.as_mut_ptr(), 1, nothing), BLOCKTRI_OK);
        // −i·x = 1 + i of the adjoint
        assert_eq!((s, z, c), ([2.0], [c64::new(-1.0, 1.0)], [c32::new(1.0, -1.0)]));
        refused(
            blocktri_solve_d(a, null(), 1, [1.0].as_ptr(), 1, [0.0].as_mut_ptr(), 1, nothing),
            BLOCKTRI_INVALID_ARGUMENT,
            "of f32, this function for f64",
        );
        refused(
            blocktri_solver_inverse_diagonal_c(solver, c.as_mut_ptr()),
            BLOCKTRI_INVALID_ARGUMENT,
            "of c64, this function for c32",
        );
        refused(blocktri_solver_refactor(solver, a), BLOCKTRI_INVALID_ARGUMENT, "of f32");
        blocktri_solver_free(solver);
        for a in [a, b, d] {
            blocktri_matrix_free(a);
        }
    }
}

#[test]
fn wrong_matrices_are_refused_with_the_place() {
    let mut a = null_mut();
    let csr = |row_ptr: &[i32], col_idx: &[i32], values: &[f64], a: &mut *mut blocktri_matrix| {
        // SAFETY: n of two, arrays as long as the pointers say.
        unsafe { blocktri_matrix_from_csr_d(2, row_ptr.as_ptr(), col_idx.as_ptr(), values.as_ptr(), a) }
    };
    let wrong = BLOCKTRI_INVALID_ARGUMENT;
    refused(csr(&[0, 2, 1], &[0, 1], &[1.0, 1.0], &mut a), wrong, "row_ptr[2] is 1 and must be at least 2");
    refused(csr(&[1, 2, 3], &[0, 1, 1], &[1.0; 3], &mut a), wrong, "row_ptr[0] is 1 and must be 0");
    refused(csr(&[0, 1, 2], &[0, -1], &[1.0; 2], &mut a), wrong, "col_idx[1] is -1");
    refused(csr(&[0, 1, 2], &[0, 2], &[1.0; 2], &mut a), wrong, "column");
    assert!(a.is_null());
    // SAFETY: what is wrong is found before it is read.
    unsafe {
        let (one, none) = ([1.0], null::<f64>());
        refused(blocktri_matrix_from_csr_d(2, null(), null(), null(), &raw mut a), wrong, "row_ptr is a null pointer");
        refused(blocktri_matrix_from_band_d(2, 0, 0, one.as_ptr(), 0, &raw mut a), wrong, "ldab is 0");
        refused(blocktri_matrix_from_band_d(-2, 0, 0, one.as_ptr(), 1, &raw mut a), wrong, "n is -2");
        refused(
            blocktri_matrix_from_band_d(1 << 40, 0, 0, one.as_ptr(), 1, &raw mut a),
            BLOCKTRI_OUT_OF_MEMORY,
            "32-bit",
        );
        refused(
            blocktri_matrix_from_band_d(1 << 31, i64::MAX - 1, 0, one.as_ptr(), i64::MAX, &raw mut a),
            wrong,
            "more than any memory",
        );
        refused(blocktri_matrix_from_blocks_d(2, 0, N, none, none, none, &raw mut a), wrong, "block_size is 0");
        refused(blocktri_matrix_from_blocks_d(2, 1, N, none, none, none, &raw mut a), wrong, "layout is 'N'");
        refused(
            blocktri_matrix_from_blocks_d(1 << 31, 1 << 31, b'C' as c_char, none, none, none, &raw mut a),
            BLOCKTRI_OUT_OF_MEMORY,
            "32-bit",
        );
        refused(blocktri_matrix_from_tridiagonal_d(1, none, none, none, &raw mut a), wrong, "d is a null pointer");
        refused(
            blocktri_matrix_from_tridiagonal_d(1, none, one.as_ptr(), none, null_mut()),
            wrong,
            "matrix is a null pointer",
        );
        assert_eq!((blocktri_matrix_n(null()), blocktri_matrix_nnz(null()), blocktri_solver_n(null())), (-1, -1, -1));
        blocktri_matrix_free(null_mut());
        blocktri_solver_free(null_mut());
        blocktri_report_free(null_mut());
        assert!(blocktri_report_rcond(null()).is_nan() && text(blocktri_report_json(null())).is_empty());
    }
}

#[test]
fn wrong_solves_are_refused_before_x_is_touched() {
    let (a, mut solver, mut report) = (tridiagonal(), null_mut(), null_mut());
    let (b, mut x) = ([1.0, 2.0, f64::NAN], [7.0; 3]);
    // SAFETY: handles and arrays of this test.
    unsafe {
        refused(
            blocktri_solve_d(a, null(), 1, b.as_ptr(), 3, x.as_mut_ptr(), 3, &raw mut report),
            BLOCKTRI_NOT_FINITE,
            "row 2",
        );
        assert!(report.is_null());
        refused(
            blocktri_solve_d(a, null(), 1, null(), 3, x.as_mut_ptr(), 3, null_mut()),
            BLOCKTRI_INVALID_ARGUMENT,
            "b is a null pointer",
        );
        refused(
            blocktri_solve_d(a, null(), 1, b.as_ptr(), 3, null_mut(), 3, null_mut()),
            BLOCKTRI_INVALID_ARGUMENT,
            "x is a null pointer",
        );
        refused(
            blocktri_solve_d(a, null(), 2, b.as_ptr(), 2, x.as_mut_ptr(), 3, null_mut()),
            BLOCKTRI_INVALID_ARGUMENT,
            "leading dimension of b is 2",
        );
        refused(
            blocktri_solve_d(a, null(), -1, b.as_ptr(), 3, x.as_mut_ptr(), 3, null_mut()),
            BLOCKTRI_INVALID_ARGUMENT,
            "nrhs is -1",
        );
        refused(
            blocktri_solve_d(null(), null(), 1, b.as_ptr(), 3, x.as_mut_ptr(), 3, null_mut()),
            BLOCKTRI_INVALID_ARGUMENT,
            "matrix is a null",
        );
        assert_eq!(blocktri_solver_new(a, null(), &raw mut solver), BLOCKTRI_OK);
        refused(
            blocktri_solver_solve_d(solver, b'X' as c_char, 1, b.as_ptr(), 3, x.as_mut_ptr(), 3, null_mut()),
            BLOCKTRI_INVALID_ARGUMENT,
            "op is 'X'",
        );
        refused(
            blocktri_solver_solve_d(null(), N, 1, b.as_ptr(), 3, x.as_mut_ptr(), 3, null_mut()),
            BLOCKTRI_INVALID_ARGUMENT,
            "solver is a null",
        );
        blocktri_solver_free(solver);

        let mut bad = null_mut();
        let inf = [1.0, f64::INFINITY, 1.0];
        assert_eq!(
            blocktri_matrix_from_tridiagonal_d(3, [0.0; 2].as_ptr(), inf.as_ptr(), [0.0; 2].as_ptr(), &raw mut bad),
            BLOCKTRI_OK
        );
        refused(blocktri_solver_new(bad, null(), &raw mut solver), BLOCKTRI_NOT_FINITE, "row 1, column 1");
        assert!(solver.is_null());
        blocktri_matrix_free(bad);
        let zero = [1.0, 0.0, 1.0];
        assert_eq!(
            blocktri_matrix_from_tridiagonal_d(3, [0.0; 2].as_ptr(), zero.as_ptr(), [0.0; 2].as_ptr(), &raw mut bad),
            BLOCKTRI_OK
        );
        refused(blocktri_solver_new(bad, null(), &raw mut solver), BLOCKTRI_SINGULAR, "singular: no pivot in column 1");
        blocktri_matrix_free(bad);
        blocktri_matrix_free(a);
    }
    assert_eq!(x, [7.0; 3]);
}

fn options(method: &CStr) -> blocktri_options {
    let mut made = blocktri_options::default();
    // SAFETY: a structure of this version.
    assert_eq!(unsafe { blocktri_options_init(&raw mut made, size_of::<blocktri_options>()) }, BLOCKTRI_OK);
    made.method = method.as_ptr();
    made
}

/// The five-point Laplacian of a k × k grid.
fn grid(k: i32) -> *mut blocktri_matrix {
    let (n, mut row_ptr, mut col_idx, mut values, mut a) = (k * k, vec![0], Vec::new(), Vec::new(), null_mut());
    for i in 0..n {
        for (j, v, there) in [
            (i - k, -1.0, i >= k),
            (i - 1, -1.0, i % k > 0),
            (i, 4.0, true),
            (i + 1, -1.0, i % k + 1 < k),
            (i + k, -1.0, i + k < n),
        ] {
            if there {
                col_idx.push(j);
                values.push(v);
            }
        }
        row_ptr.push(col_idx.len() as i32);
    }
    // SAFETY: arrays of these lengths.
    let made = unsafe {
        blocktri_matrix_from_csr_d(n as i64, row_ptr.as_ptr(), col_idx.as_ptr(), values.as_ptr(), &raw mut a)
    };
    assert_eq!(made, BLOCKTRI_OK);
    a
}

#[test]
fn an_iteration_that_ends_early_leaves_its_best_x_and_a_report() {
    let (a, n) = (grid(30), 900usize);
    let (b, mut x, mut report) = (vec![1.0; n], vec![0.0; n], null_mut());
    let mut few = options(c"cg");
    few.max_iters = 3;
    // SAFETY: handles and arrays of this test.
    unsafe {
        let mut solve = |options: &blocktri_options, report: &mut *mut blocktri_report| {
            blocktri_solve_d(a, options, 1, b.as_ptr(), n as i64, x.as_mut_ptr(), n as i64, report)
        };
        refused(solve(&few, &mut report), BLOCKTRI_NOT_ACCURATE, "cg ended with iteration-limit");
        assert_eq!(
            (blocktri_report_iterations(report), text(blocktri_report_outcome(report))),
            (3, "iteration-limit".into())
        );
        blocktri_report_free(report);
        few.max_iters = 0;
        few.rtol = 1e-12;
        few.threads = 2;
        assert_eq!(solve(&few, &mut report), BLOCKTRI_OK);
        assert!(blocktri_report_relative_residual(report) <= 1e-12);
        blocktri_report_free(report);
        let mut solver = null_mut();
        refused(
            blocktri_solver_new(a, &few, &raw mut solver),
            BLOCKTRI_INVALID_ARGUMENT,
            "cg is iterative and has no factors",
        );
        blocktri_matrix_free(a);
    }
    assert!(x.iter().all(|&x| x > 0.0));
}

/// Counts its calls, and says stop from the third on.
unsafe extern "C" fn third(context: *mut c_void, _done: i64, _total: i64, _residual: f64) -> i32 {
    // SAFETY: the counter of the test below.
    let count = unsafe { &mut *context.cast::<i32>() };
    *count += 1;
    i32::from(*count >= 3)
}

#[test]
fn monitors_and_time_limits_end_the_work() {
    let (a, n) = (grid(30), 900usize);
    let (b, mut x, mut count, mut report) = (vec![1.0; n], vec![0.0; n], 0i32, null_mut());
    let mut watched = options(c"cg");
    watched.monitor = Some(third);
    watched.monitor_context = (&raw mut count).cast();
    // SAFETY: handles and arrays of this test; the counter lives as long as the calls.
    unsafe {
        let status =
            blocktri_solve_d(a, &raw const watched, 1, b.as_ptr(), n as i64, x.as_mut_ptr(), n as i64, &raw mut report);
        refused(status, BLOCKTRI_INTERRUPTED, "cg ended with stopped");
        assert_eq!((count, text(blocktri_report_outcome(report))), (3, "stopped".into()));
        blocktri_report_free(report);
        let mut solver = null_mut();
        let mut hurried = options(c"band-lu");
        hurried.time_limit = 1e-9;
        refused(blocktri_solver_new(a, &raw const hurried, &raw mut solver), BLOCKTRI_TIME_LIMIT, "time limit");
        let status =
            blocktri_solve_d(a, &raw const hurried, 1, b.as_ptr(), n as i64, x.as_mut_ptr(), n as i64, null_mut());
        refused(status, BLOCKTRI_TIME_LIMIT, "time-limit");
        blocktri_matrix_free(a);
    }
}

#[test]
fn options_of_another_length_are_refused() {
    let mut made = blocktri_options::default();
    // SAFETY: the sizes are refused before anything is written.
    unsafe {
        refused(blocktri_options_init(&raw mut made, 8), BLOCKTRI_INVALID_ARGUMENT, "options of 8 bytes");
        refused(blocktri_options_init(&raw mut made, 4096), BLOCKTRI_INVALID_ARGUMENT, "older than the header");
        refused(
            blocktri_options_init(null_mut(), size_of::<blocktri_options>()),
            BLOCKTRI_INVALID_ARGUMENT,
            "options is a null",
        );
    }
}

#[test]
fn threads_share_a_solver_that_is_factored_anew() {
    struct Shared(*mut blocktri_solver);
    // SAFETY: the header says so.
    unsafe impl Sync for Shared {}
    let (one, mut two, mut solver) = (tridiagonal(), null_mut(), null_mut());
    // SAFETY: handles and arrays of this test.
    unsafe {
        let made = blocktri_matrix_from_tridiagonal_d(
            3,
            [4.0, 6.0].as_ptr(),
            [8.0, 10.0, 12.0].as_ptr(),
            [2.0; 2].as_ptr(),
            &raw mut two,
        );
        assert_eq!(made, BLOCKTRI_OK);
        assert_eq!(blocktri_solver_new(one, null(), &raw mut solver), BLOCKTRI_OK);
    }
    let shared = Shared(solver);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let shared = &shared;
                for _ in 0..50 {
                    let (b, mut x) = ([10.0, 16.0, 18.0], [0.0; 3]);
                    // SAFETY: arrays of this thread.
                    let status = unsafe {
                        blocktri_solver_solve_d(shared.0, N, 1, b.as_ptr(), 3, x.as_mut_ptr(), 3, null_mut())
                    };
                    assert_eq!(status, BLOCKTRI_OK);
                    assert!(
                        x.iter()
                            .all(|v: &f64| (v - x[0]).abs() < 1e-13
                                && ((v - 1.0).abs() < 1e-13 || (v - 2.0).abs() < 1e-13)),
                        "{x:?}"
                    );
                }
            });
        }
        for round in 0..20 {
            // SAFETY: handles of this test.
            let status = unsafe { blocktri_solver_refactor(shared.0, if round % 2 == 0 { two } else { one }) };
            assert_eq!(status, BLOCKTRI_OK);
        }
    });
    // SAFETY: no thread uses them any more.
    unsafe {
        blocktri_solver_free(solver);
        blocktri_matrix_free(one);
        blocktri_matrix_free(two);
    }
}
