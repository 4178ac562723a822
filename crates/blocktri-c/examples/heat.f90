! The heat equation on a rod by implicit steps, whose length changes: one factorization for each length, and LAPACK's solver beside it.
!
! (I + h·L)·u_new = u_old with L = tridiag(-1, 2, -1)/dx**2, u = 0 at both ends. A sine keeps its shape and shrinks by 1/(1 + h·l) a step,
! l = 4·sin(pi·dx/2)**2/dx**2: the program stops with an error where u is anything else.
program heat
  use, intrinsic :: iso_c_binding
  use blocktri
  implicit none
  integer, parameter :: n = 199
  integer(c_int64_t), parameter :: size = n
  real(c_double), parameter :: pi = acos(-1.0_c_double), dx = 1.0_c_double/(n + 1)
  real(c_double), parameter :: l = 4*sin(pi*dx/2)**2/dx**2
  real(c_double) :: u(n), next(n), start(n), d(n), beside(n - 1), shrunk, h, log_abs
  character(kind=c_char), target :: name(14) = [character(kind=c_char) :: "t", "r", "i", "d", "i", "a", "g", "o", "n", "a", "l", &
      "-", "l", "u"]
  character(kind=c_char), target :: method(15)
  type(blocktri_options) :: options
  type(c_ptr) :: a, solver, report
  integer :: i, step

  start = [(sin(pi*i*dx), i=1, n)]
  u = start
  method = [name, c_null_char]
  call must(blocktri_options_init(options, c_sizeof(options)), "options")
  options%method = c_loc(method)

  h = 1.0e-2_c_double
  a = matrix(h)
  call must(blocktri_solver_new(a, options, solver), "factor")
  call blocktri_matrix_free(a)
  shrunk = 1
  do step = 1, 10
    if (step == 6) then
      ! Longer steps: new values, the factors' memory.
      h = 5.0e-2_c_double
      a = matrix(h)
      call must(blocktri_solver_refactor(solver, a), "refactor")
      call blocktri_matrix_free(a)
    end if
    call must(blocktri_solver_solve_d(solver, "N", 1_c_int64_t, u, size, next, size, report), "step")
    u = next
    if (step == 10) then
      print "(a, a, es8.1)", blocktri_text(blocktri_report_method(report)), ": backward error of the last step ", &
          blocktri_report_backward_error(report)
    end if
    call blocktri_report_free(report)
    shrunk = shrunk/(1 + h*l)
  end do
  print "(a, es8.1)", "ten steps: relative error ", maxval(abs(u - shrunk*start))/shrunk
  if (maxval(abs(u - shrunk*start)) > 1e-12_c_double*shrunk) error stop "the rod is not as warm as it should be"
  call must(blocktri_solver_log_det(solver, log_abs), "determinant")
  print "(a, f0.3)", "log det = ", log_abs
  call blocktri_solver_free(solver)

  ! One step back and forth by LAPACK's arguments.
  block
    real(c_double) :: dl(n - 1), du(n - 1), b(n, 2)
    integer(c_int32_t) :: info
    d = 1 + 2*h/dx**2
    dl = -h/dx**2
    du = dl
    b(:, 1) = (1 + h*l)*start
    b(:, 2) = -b(:, 1)
    call blocktri_dgtsv(n, 2, dl, d, du, b, n, info)
    print "(a, es8.1)", "dgtsv: error ", maxval(abs(b(:, 1) - start))
    if (info /= 0 .or. maxval(abs(b(:, 1) - start)) > 1e-12_c_double) error stop "dgtsv"
    if (maxval(abs(b(:, 1) + b(:, 2))) > 0) error stop "dgtsv: the second right-hand side"
  end block

contains

  ! I + h·L
  function matrix(h) result(a)
    real(c_double), intent(in) :: h
    type(c_ptr) :: a
    d = 1 + 2*h/dx**2
    beside = -h/dx**2
    call must(blocktri_matrix_from_tridiagonal_d(size, beside, d, beside, a), "the matrix")
  end function

  ! Stops where a call failed.
  subroutine must(status, what)
    integer(c_int), intent(in) :: status
    character(len=*), intent(in) :: what
    if (status /= blocktri_ok) error stop what//": "//blocktri_text(blocktri_last_error())
  end subroutine
end program
