! blocktri from Fortran 2018: the functions of blocktri.h under their names, whose documentation is there.
!
! Handles are of type(c_ptr). Reports, options and what is marked optional may be left out. Matrices of right-hand sides and
! solutions are passed as to LAPACK, by columns; X may not be B here, for Fortran wants them apart. Indices count from 0.
module blocktri
  use, intrinsic :: iso_c_binding
  implicit none
  public

  ! How a call ended: blocktri_status.
  integer(c_int), parameter :: blocktri_ok = 0, blocktri_invalid_argument = 1, blocktri_not_finite = 2, blocktri_singular = 3, &
      blocktri_breakdown = 4, blocktri_out_of_memory = 5, blocktri_not_accurate = 6, blocktri_interrupted = 7, &
      blocktri_time_limit = 8, blocktri_internal = 9

  ! Options of a solve, filled by blocktri_options_init(options, c_sizeof(options)). Texts end with c_null_char: c_loc(name) of
  ! character(kind=c_char), target :: name(:).
  type, bind(c) :: blocktri_options
    integer(c_size_t) :: size
    type(c_ptr) :: method, precond, reorder, precision, fallback
    integer(c_int64_t) :: block_size, refine, max_iters
    real(c_double) :: rtol, atol, time_limit
    integer(c_int64_t) :: threads
    type(c_funptr) :: monitor
    type(c_ptr) :: monitor_context
  end type

  interface
    function blocktri_last_error() bind(c, name="blocktri_last_error") result(answer)
      import
      type(c_ptr) :: answer
    end function
    function blocktri_status_name(status) bind(c, name="blocktri_status_name") result(answer)
      import
      integer(c_int32_t), value, intent(in) :: status
      type(c_ptr) :: answer
    end function
    function blocktri_version() bind(c, name="blocktri_version") result(answer)
      import
      type(c_ptr) :: answer
    end function
    function blocktri_options_init(options, size) bind(c, name="blocktri_options_init") result(answer)
      import
      type(blocktri_options), intent(out) :: options
      integer(c_size_t), value, intent(in) :: size
      integer(c_int) :: answer
    end function
    subroutine blocktri_set_memory_limit(bytes) bind(c, name="blocktri_set_memory_limit")
      import
      integer(c_int64_t), value, intent(in) :: bytes
    end subroutine
    function blocktri_matrix_n(matrix) bind(c, name="blocktri_matrix_n") result(answer)
      import
      type(c_ptr), value, intent(in) :: matrix
      integer(c_int64_t) :: answer
    end function
    function blocktri_matrix_nnz(matrix) bind(c, name="blocktri_matrix_nnz") result(answer)
      import
      type(c_ptr), value, intent(in) :: matrix
      integer(c_int64_t) :: answer
    end function
    subroutine blocktri_matrix_free(matrix) bind(c, name="blocktri_matrix_free")
      import
      type(c_ptr), value, intent(in) :: matrix
    end subroutine
    function blocktri_matrix_from_csr_d(n, row_ptr, col_idx, values, matrix) &
        bind(c, name="blocktri_matrix_from_csr_d") result(answer)
      import
      integer(c_int64_t), value, intent(in) :: n
      integer(c_int32_t), intent(in) :: row_ptr(*), col_idx(*)
      real(c_double), intent(in) :: values(*)
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: answer
    end function
    function blocktri_matrix_from_csr64_d(n, row_ptr, col_idx, values, matrix) &
        bind(c, name="blocktri_matrix_from_csr64_d") result(answer)
      import
      integer(c_int64_t), value, intent(in) :: n
      integer(c_int64_t), intent(in) :: row_ptr(*), col_idx(*)
      real(c_double), intent(in) :: values(*)
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: answer
    end function
    function blocktri_matrix_from_band_d(n, kl, ku, ab, ldab, matrix) bind(c, name="blocktri_matrix_from_band_d") result(answer)
      import
      integer(c_int64_t), value, intent(in) :: n, kl, ku, ldab
      real(c_double), intent(in) :: ab(*)
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: answer
    end function
    function blocktri_matrix_from_tridiagonal_d(n, dl, d, du, matrix) &
        bind(c, name="blocktri_matrix_from_tridiagonal_d") result(answer)
      import
      integer(c_int64_t), value, intent(in) :: n
      real(c_double), intent(in) :: dl(*), d(*), du(*)
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: answer
    end function
    function blocktri_matrix_from_blocks_d(n_blocks, block_size, layout, lower, diag, upper, matrix) &
        bind(c, name="blocktri_matrix_from_blocks_d") result(answer)
      import
      integer(c_int64_t), value, intent(in) :: n_blocks, block_size
      character(kind=c_char), value, intent(in) :: layout
      real(c_double), intent(in) :: lower(*), diag(*), upper(*)
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: answer
    end function
    function blocktri_matrix_from_csr_s(n, row_ptr, col_idx, values, matrix) &
        bind(c, name="blocktri_matrix_from_csr_s") result(answer)
      import
      integer(c_int64_t), value, intent(in) :: n
      integer(c_int32_t), intent(in) :: row_ptr(*), col_idx(*)
      real(c_float), intent(in) :: values(*)
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: answer
    end function
    function blocktri_matrix_from_csr64_s(n, row_ptr, col_idx, values, matrix) &
        bind(c, name="blocktri_matrix_from_csr64_s") result(answer)
      import
      integer(c_int64_t), value, intent(in) :: n
      integer(c_int64_t), intent(in) :: row_ptr(*), col_idx(*)
      real(c_float), intent(in) :: values(*)
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: answer
    end function
    function blocktri_matrix_from_band_s(n, kl, ku, ab, ldab, matrix) bind(c, name="blocktri_matrix_from_band_s") result(answer)
      import
      integer(c_int64_t), value, intent(in) :: n, kl, ku, ldab
      real(c_float), intent(in) :: ab(*)
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: answer
    end function
    function blocktri_matrix_from_tridiagonal_s(n, dl, d, du, matrix) &
        bind(c, name="blocktri_matrix_from_tridiagonal_s") result(answer)
      import
      integer(c_int64_t), value, intent(in) :: n
      real(c_float), intent(in) :: dl(*), d(*), du(*)
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: answer
    end function
    function blocktri_matrix_from_blocks_s(n_blocks, block_size, layout, lower, diag, upper, matrix) &
        bind(c, name="blocktri_matrix_from_blocks_s") result(answer)
      import
      integer(c_int64_t), value, intent(in) :: n_blocks, block_size
      character(kind=c_char), value, intent(in) :: layout
      real(c_float), intent(in) :: lower(*), diag(*), upper(*)
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: answer
    end function
    function blocktri_matrix_from_csr_z(n, row_ptr, col_idx, values, matrix) &
        bind(c, name="blocktri_matrix_from_csr_z") result(answer)
      import
      integer(c_int64_t), value, intent(in) :: n
      integer(c_int32_t), intent(in) :: row_ptr(*), col_idx(*)
      complex(c_double_complex), intent(in) :: values(*)
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: answer
    end function
    function blocktri_matrix_from_csr64_z(n, row_ptr, col_idx, values, matrix) &
        bind(c, name="blocktri_matrix_from_csr64_z") result(answer)
      import
      integer(c_int64_t), value, intent(in) :: n
      integer(c_int64_t), intent(in) :: row_ptr(*), col_idx(*)
      complex(c_double_complex), intent(in) :: values(*)
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: answer
    end function
    function blocktri_matrix_from_band_z(n, kl, ku, ab, ldab, matrix) bind(c, name="blocktri_matrix_from_band_z") result(answer)
      import
      integer(c_int64_t), value, intent(in) :: n, kl, ku, ldab
      complex(c_double_complex), intent(in) :: ab(*)
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: answer
    end function
    function blocktri_matrix_from_tridiagonal_z(n, dl, d, du, matrix) &
        bind(c, name="blocktri_matrix_from_tridiagonal_z") result(answer)
      import
      integer(c_int64_t), value, intent(in) :: n
      complex(c_double_complex), intent(in) :: dl(*), d(*), du(*)
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: answer
    end function
    function blocktri_matrix_from_blocks_z(n_blocks, block_size, layout, lower, diag, upper, matrix) &
        bind(c, name="blocktri_matrix_from_blocks_z") result(answer)
      import
      integer(c_int64_t), value, intent(in) :: n_blocks, block_size
      character(kind=c_char), value, intent(in) :: layout
      complex(c_double_complex), intent(in) :: lower(*), diag(*), upper(*)
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: answer
    end function
    function blocktri_matrix_from_csr_c(n, row_ptr, col_idx, values, matrix) &
        bind(c, name="blocktri_matrix_from_csr_c") result(answer)
      import
      integer(c_int64_t), value, intent(in) :: n
      integer(c_int32_t), intent(in) :: row_ptr(*), col_idx(*)
      complex(c_float_complex), intent(in) :: values(*)
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: answer
    end function
    function blocktri_matrix_from_csr64_c(n, row_ptr, col_idx, values, matrix) &
        bind(c, name="blocktri_matrix_from_csr64_c") result(answer)
      import
      integer(c_int64_t), value, intent(in) :: n
      integer(c_int64_t), intent(in) :: row_ptr(*), col_idx(*)
      complex(c_float_complex), intent(in) :: values(*)
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: answer
    end function
    function blocktri_matrix_from_band_c(n, kl, ku, ab, ldab, matrix) bind(c, name="blocktri_matrix_from_band_c") result(answer)
      import
      integer(c_int64_t), value, intent(in) :: n, kl, ku, ldab
      complex(c_float_complex), intent(in) :: ab(*)
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: answer
    end function
    function blocktri_matrix_from_tridiagonal_c(n, dl, d, du, matrix) &
        bind(c, name="blocktri_matrix_from_tridiagonal_c") result(answer)
      import
      integer(c_int64_t), value, intent(in) :: n
      complex(c_float_complex), intent(in) :: dl(*), d(*), du(*)
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: answer
    end function
    function blocktri_matrix_from_blocks_c(n_blocks, block_size, layout, lower, diag, upper, matrix) &
        bind(c, name="blocktri_matrix_from_blocks_c") result(answer)
      import
      integer(c_int64_t), value, intent(in) :: n_blocks, block_size
      character(kind=c_char), value, intent(in) :: layout
      complex(c_float_complex), intent(in) :: lower(*), diag(*), upper(*)
      type(c_ptr), intent(out) :: matrix
      integer(c_int) :: answer
    end function
    function blocktri_solver_new(matrix, options, solver) bind(c, name="blocktri_solver_new") result(answer)
      import
      type(c_ptr), value, intent(in) :: matrix
      type(blocktri_options), intent(in), optional :: options
      type(c_ptr), intent(out) :: solver
      integer(c_int) :: answer
    end function
    function blocktri_solver_refactor(solver, matrix) bind(c, name="blocktri_solver_refactor") result(answer)
      import
      type(c_ptr), value, intent(in) :: solver, matrix
      integer(c_int) :: answer
    end function
    subroutine blocktri_solver_free(solver) bind(c, name="blocktri_solver_free")
      import
      type(c_ptr), value, intent(in) :: solver
    end subroutine
    function blocktri_solver_n(solver) bind(c, name="blocktri_solver_n") result(answer)
      import
      type(c_ptr), value, intent(in) :: solver
      integer(c_int64_t) :: answer
    end function
    function blocktri_solver_method(solver) bind(c, name="blocktri_solver_method") result(answer)
      import
      type(c_ptr), value, intent(in) :: solver
      type(c_ptr) :: answer
    end function
    function blocktri_solver_log_det(solver, log_abs, sign_re, sign_im) bind(c, name="blocktri_solver_log_det") result(answer)
      import
      type(c_ptr), value, intent(in) :: solver
      real(c_double), intent(out), optional :: log_abs, sign_re, sign_im
      integer(c_int) :: answer
    end function
    function blocktri_solver_rcond(solver, rcond) bind(c, name="blocktri_solver_rcond") result(answer)
      import
      type(c_ptr), value, intent(in) :: solver
      real(c_double), intent(out) :: rcond
      integer(c_int) :: answer
    end function
    function blocktri_solver_inertia(solver, negative, zero, positive) bind(c, name="blocktri_solver_inertia") result(answer)
      import
      type(c_ptr), value, intent(in) :: solver
      integer(c_int64_t), intent(out), optional :: negative, zero, positive
      integer(c_int) :: answer
    end function
    function blocktri_solve_d(matrix, options, nrhs, b, ldb, x, ldx, report) bind(c, name="blocktri_solve_d") result(answer)
      import
      type(c_ptr), value, intent(in) :: matrix
      type(blocktri_options), intent(in), optional :: options
      integer(c_int64_t), value, intent(in) :: nrhs, ldb, ldx
      real(c_double), intent(in) :: b(*)
      real(c_double), intent(inout) :: x(*)
      type(c_ptr), intent(out), optional :: report
      integer(c_int) :: answer
    end function
    function blocktri_solver_solve_d(solver, op, nrhs, b, ldb, x, ldx, report) &
        bind(c, name="blocktri_solver_solve_d") result(answer)
      import
      type(c_ptr), value, intent(in) :: solver
      character(kind=c_char), value, intent(in) :: op
      integer(c_int64_t), value, intent(in) :: nrhs, ldb, ldx
      real(c_double), intent(in) :: b(*)
      real(c_double), intent(inout) :: x(*)
      type(c_ptr), intent(out), optional :: report
      integer(c_int) :: answer
    end function
    function blocktri_solver_inverse_diagonal_d(solver, diagonal) &
        bind(c, name="blocktri_solver_inverse_diagonal_d") result(answer)
      import
      type(c_ptr), value, intent(in) :: solver
      real(c_double), intent(inout) :: diagonal(*)
      integer(c_int) :: answer
    end function
    function blocktri_solve_s(matrix, options, nrhs, b, ldb, x, ldx, report) bind(c, name="blocktri_solve_s") result(answer)
      import
      type(c_ptr), value, intent(in) :: matrix
      type(blocktri_options), intent(in), optional :: options
      integer(c_int64_t), value, intent(in) :: nrhs, ldb, ldx
      real(c_float), intent(in) :: b(*)
      real(c_float), intent(inout) :: x(*)
      type(c_ptr), intent(out), optional :: report
      integer(c_int) :: answer
    end function
    function blocktri_solver_solve_s(solver, op, nrhs, b, ldb, x, ldx, report) &
        bind(c, name="blocktri_solver_solve_s") result(answer)
      import
      type(c_ptr), value, intent(in) :: solver
      character(kind=c_char), value, intent(in) :: op
      integer(c_int64_t), value, intent(in) :: nrhs, ldb, ldx
      real(c_float), intent(in) :: b(*)
      real(c_float), intent(inout) :: x(*)
      type(c_ptr), intent(out), optional :: report
      integer(c_int) :: answer
    end function
    function blocktri_solver_inverse_diagonal_s(solver, diagonal) &
        bind(c, name="blocktri_solver_inverse_diagonal_s") result(answer)
      import
      type(c_ptr), value, intent(in) :: solver
      real(c_float), intent(inout) :: diagonal(*)
      integer(c_int) :: answer
    end function
    function blocktri_solve_z(matrix, options, nrhs, b, ldb, x, ldx, report) bind(c, name="blocktri_solve_z") result(answer)
      import
      type(c_ptr), value, intent(in) :: matrix
      type(blocktri_options), intent(in), optional :: options
      integer(c_int64_t), value, intent(in) :: nrhs, ldb, ldx
      complex(c_double_complex), intent(in) :: b(*)
      complex(c_double_complex), intent(inout) :: x(*)
      type(c_ptr), intent(out), optional :: report
      integer(c_int) :: answer
    end function
    function blocktri_solver_solve_z(solver, op, nrhs, b, ldb, x, ldx, report) &
        bind(c, name="blocktri_solver_solve_z") result(answer)
      import
      type(c_ptr), value, intent(in) :: solver
      character(kind=c_char), value, intent(in) :: op
      integer(c_int64_t), value, intent(in) :: nrhs, ldb, ldx
      complex(c_double_complex), intent(in) :: b(*)
      complex(c_double_complex), intent(inout) :: x(*)
      type(c_ptr), intent(out), optional :: report
      integer(c_int) :: answer
    end function
    function blocktri_solver_inverse_diagonal_z(solver, diagonal) &
        bind(c, name="blocktri_solver_inverse_diagonal_z") result(answer)
      import
      type(c_ptr), value, intent(in) :: solver
      complex(c_double_complex), intent(inout) :: diagonal(*)
      integer(c_int) :: answer
    end function
    function blocktri_solve_c(matrix, options, nrhs, b, ldb, x, ldx, report) bind(c, name="blocktri_solve_c") result(answer)
      import
      type(c_ptr), value, intent(in) :: matrix
      type(blocktri_options), intent(in), optional :: options
      integer(c_int64_t), value, intent(in) :: nrhs, ldb, ldx
      complex(c_float_complex), intent(in) :: b(*)
      complex(c_float_complex), intent(inout) :: x(*)
      type(c_ptr), intent(out), optional :: report
      integer(c_int) :: answer
    end function
    function blocktri_solver_solve_c(solver, op, nrhs, b, ldb, x, ldx, report) &
        bind(c, name="blocktri_solver_solve_c") result(answer)
      import
      type(c_ptr), value, intent(in) :: solver
      character(kind=c_char), value, intent(in) :: op
      integer(c_int64_t), value, intent(in) :: nrhs, ldb, ldx
      complex(c_float_complex), intent(in) :: b(*)
      complex(c_float_complex), intent(inout) :: x(*)
      type(c_ptr), intent(out), optional :: report
      integer(c_int) :: answer
    end function
    function blocktri_solver_inverse_diagonal_c(solver, diagonal) &
        bind(c, name="blocktri_solver_inverse_diagonal_c") result(answer)
      import
      type(c_ptr), value, intent(in) :: solver
      complex(c_float_complex), intent(inout) :: diagonal(*)
      integer(c_int) :: answer
    end function
    function blocktri_report_method(report) bind(c, name="blocktri_report_method") result(answer)
      import
      type(c_ptr), value, intent(in) :: report
      type(c_ptr) :: answer
    end function
    function blocktri_report_outcome(report) bind(c, name="blocktri_report_outcome") result(answer)
      import
      type(c_ptr), value, intent(in) :: report
      type(c_ptr) :: answer
    end function
    function blocktri_report_json(report) bind(c, name="blocktri_report_json") result(answer)
      import
      type(c_ptr), value, intent(in) :: report
      type(c_ptr) :: answer
    end function
    function blocktri_report_iterations(report) bind(c, name="blocktri_report_iterations") result(answer)
      import
      type(c_ptr), value, intent(in) :: report
      integer(c_int64_t) :: answer
    end function
    function blocktri_report_notes(report) bind(c, name="blocktri_report_notes") result(answer)
      import
      type(c_ptr), value, intent(in) :: report
      integer(c_int64_t) :: answer
    end function
    function blocktri_report_relative_residual(report) bind(c, name="blocktri_report_relative_residual") result(answer)
      import
      type(c_ptr), value, intent(in) :: report
      real(c_double) :: answer
    end function
    function blocktri_report_backward_error(report) bind(c, name="blocktri_report_backward_error") result(answer)
      import
      type(c_ptr), value, intent(in) :: report
      real(c_double) :: answer
    end function
    function blocktri_report_componentwise_backward_error(report) &
        bind(c, name="blocktri_report_componentwise_backward_error") result(answer)
      import
      type(c_ptr), value, intent(in) :: report
      real(c_double) :: answer
    end function
    function blocktri_report_rcond(report) bind(c, name="blocktri_report_rcond") result(answer)
      import
      type(c_ptr), value, intent(in) :: report
      real(c_double) :: answer
    end function
    function blocktri_report_note(report, index) bind(c, name="blocktri_report_note") result(answer)
      import
      type(c_ptr), value, intent(in) :: report
      integer(c_int64_t), value, intent(in) :: index
      type(c_ptr) :: answer
    end function
    subroutine blocktri_report_free(report) bind(c, name="blocktri_report_free")
      import
      type(c_ptr), value, intent(in) :: report
    end subroutine
    subroutine blocktri_dgbsv(n, kl, ku, nrhs, ab, ldab, ipiv, b, ldb, info) bind(c, name="blocktri_dgbsv")
      import
      integer(c_int32_t), intent(in) :: n, kl, ku, nrhs, ldab, ldb
      real(c_double), intent(inout) :: ab(ldab, *), b(ldb, *)
      integer(c_int32_t), intent(inout) :: ipiv(*)
      integer(c_int32_t), intent(out) :: info
    end subroutine
    subroutine blocktri_dgtsv(n, nrhs, dl, d, du, b, ldb, info) bind(c, name="blocktri_dgtsv")
      import
      integer(c_int32_t), intent(in) :: n, nrhs, ldb
      real(c_double), intent(inout) :: dl(*), d(*), du(*), b(ldb, *)
      integer(c_int32_t), intent(out) :: info
    end subroutine
    subroutine blocktri_dpbsv(uplo, n, kd, nrhs, ab, ldab, b, ldb, info) bind(c, name="blocktri_dpbsv")
      import
      character(kind=c_char), intent(in) :: uplo
      integer(c_int32_t), intent(in) :: n, kd, nrhs, ldab, ldb
      real(c_double), intent(inout) :: ab(ldab, *), b(ldb, *)
      integer(c_int32_t), intent(out) :: info
    end subroutine
    subroutine blocktri_sgbsv(n, kl, ku, nrhs, ab, ldab, ipiv, b, ldb, info) bind(c, name="blocktri_sgbsv")
      import
      integer(c_int32_t), intent(in) :: n, kl, ku, nrhs, ldab, ldb
      real(c_float), intent(inout) :: ab(ldab, *), b(ldb, *)
      integer(c_int32_t), intent(inout) :: ipiv(*)
      integer(c_int32_t), intent(out) :: info
    end subroutine
    subroutine blocktri_sgtsv(n, nrhs, dl, d, du, b, ldb, info) bind(c, name="blocktri_sgtsv")
      import
      integer(c_int32_t), intent(in) :: n, nrhs, ldb
      real(c_float), intent(inout) :: dl(*), d(*), du(*), b(ldb, *)
      integer(c_int32_t), intent(out) :: info
    end subroutine
    subroutine blocktri_spbsv(uplo, n, kd, nrhs, ab, ldab, b, ldb, info) bind(c, name="blocktri_spbsv")
      import
      character(kind=c_char), intent(in) :: uplo
      integer(c_int32_t), intent(in) :: n, kd, nrhs, ldab, ldb
      real(c_float), intent(inout) :: ab(ldab, *), b(ldb, *)
      integer(c_int32_t), intent(out) :: info
    end subroutine
    subroutine blocktri_zgbsv(n, kl, ku, nrhs, ab, ldab, ipiv, b, ldb, info) bind(c, name="blocktri_zgbsv")
      import
      integer(c_int32_t), intent(in) :: n, kl, ku, nrhs, ldab, ldb
      complex(c_double_complex), intent(inout) :: ab(ldab, *), b(ldb, *)
      integer(c_int32_t), intent(inout) :: ipiv(*)
      integer(c_int32_t), intent(out) :: info
    end subroutine
    subroutine blocktri_zgtsv(n, nrhs, dl, d, du, b, ldb, info) bind(c, name="blocktri_zgtsv")
      import
      integer(c_int32_t), intent(in) :: n, nrhs, ldb
      complex(c_double_complex), intent(inout) :: dl(*), d(*), du(*), b(ldb, *)
      integer(c_int32_t), intent(out) :: info
    end subroutine
    subroutine blocktri_zpbsv(uplo, n, kd, nrhs, ab, ldab, b, ldb, info) bind(c, name="blocktri_zpbsv")
      import
      character(kind=c_char), intent(in) :: uplo
      integer(c_int32_t), intent(in) :: n, kd, nrhs, ldab, ldb
      complex(c_double_complex), intent(inout) :: ab(ldab, *), b(ldb, *)
      integer(c_int32_t), intent(out) :: info
    end subroutine
    subroutine blocktri_cgbsv(n, kl, ku, nrhs, ab, ldab, ipiv, b, ldb, info) bind(c, name="blocktri_cgbsv")
      import
      integer(c_int32_t), intent(in) :: n, kl, ku, nrhs, ldab, ldb
      complex(c_float_complex), intent(inout) :: ab(ldab, *), b(ldb, *)
      integer(c_int32_t), intent(inout) :: ipiv(*)
      integer(c_int32_t), intent(out) :: info
    end subroutine
    subroutine blocktri_cgtsv(n, nrhs, dl, d, du, b, ldb, info) bind(c, name="blocktri_cgtsv")
      import
      integer(c_int32_t), intent(in) :: n, nrhs, ldb
      complex(c_float_complex), intent(inout) :: dl(*), d(*), du(*), b(ldb, *)
      integer(c_int32_t), intent(out) :: info
    end subroutine
    subroutine blocktri_cpbsv(uplo, n, kd, nrhs, ab, ldab, b, ldb, info) bind(c, name="blocktri_cpbsv")
      import
      character(kind=c_char), intent(in) :: uplo
      integer(c_int32_t), intent(in) :: n, kd, nrhs, ldab, ldb
      complex(c_float_complex), intent(inout) :: ab(ldab, *), b(ldb, *)
      integer(c_int32_t), intent(out) :: info
    end subroutine
  end interface

contains

  ! A text of the library as a string of Fortran.
  function blocktri_text(text) result(answer)
    type(c_ptr), intent(in) :: text
    character(len=:), allocatable :: answer
    character(kind=c_char), pointer :: letters(:)
    integer :: length, i
    interface
      pure function strlen(text) bind(c, name="strlen") result(length)
        import
        type(c_ptr), value, intent(in) :: text
        integer(c_size_t) :: length
      end function
    end interface
    length = 0
    if (c_associated(text)) length = int(strlen(text))
    allocate (character(len=length) :: answer)
    if (length == 0) return
    call c_f_pointer(text, letters, [length])
    do i = 1, length
      answer(i:i) = letters(i)
    end do
  end function
end module
