/* blocktri: tridiagonal, banded, block-tridiagonal and sparse linear systems A·X = B, solved with a certificate.
 *
 * Matrices, solvers and reports are opaque handles, made and freed by functions of this header. What can fail returns a blocktri_status
 * and leaves a sentence for blocktri_last_error(). Suffixes name the scalar: _d double, _s float, _z and _c complex of these. Sizes are
 * int64_t, indices count from 0, matrices of right-hand sides and solutions are stored by columns.
 *
 * A pointer must point to as much as the documentation of the argument says, and nobody may write there while the call runs. Null pointers,
 * misaligned ones, sizes below 0 and sizes beyond memory are BLOCKTRI_INVALID_ARGUMENT.
 *
 * Threads: a matrix and a report may be read, and a solver solved with, by any number of threads at a time. Freeing is for one thread, when
 * the others are done.
 *
 * This file is made by `cargo xtask c --write` from crates/blocktri-c/src. */

#ifndef BLOCKTRI_H
#define BLOCKTRI_H

#include <stddef.h>
#include <stdint.h>

/* Complex numbers: those of C99 and of C++, whose real and imaginary parts lie side by side. Elsewhere define BLOCKTRI_NO_COMPLEX for
 * structures of that layout. */
#if defined(BLOCKTRI_NO_COMPLEX)
typedef struct { float re, im; } blocktri_complex_float;
typedef struct { double re, im; } blocktri_complex_double;
#elif defined(__cplusplus)
#include <complex>
typedef std::complex<float> blocktri_complex_float;
typedef std::complex<double> blocktri_complex_double;
#else
typedef float _Complex blocktri_complex_float;
typedef double _Complex blocktri_complex_double;
#endif

/**
 * How a call ended.
 */
typedef enum blocktri_status {
  /**
   * All is well.
   */
  BLOCKTRI_OK = 0,
  /**
   * A null pointer, a size below 0, an unknown name, indices that contradict each other, options that do not fit the method.
   */
  BLOCKTRI_INVALID_ARGUMENT = 1,
  /**
   * A NaN or infinity in a matrix or right-hand side; the message has row and column.
   */
  BLOCKTRI_NOT_FINITE = 2,
  /**
   * The matrix is singular; the message has the column.
   */
  BLOCKTRI_SINGULAR = 3,
  /**
   * The method cannot factor this matrix, or the iteration cannot go on; another method may do.
   */
  BLOCKTRI_BREAKDOWN = 4,
  /**
   * More memory is needed than there is, or more than 32-bit indices can count.
   */
  BLOCKTRI_OUT_OF_MEMORY = 5,
  /**
   * x is the best that was found, and weaker than asked for: the report says how weak.
   */
  BLOCKTRI_NOT_ACCURATE = 6,
  /**
   * The monitor ended it. x is the best so far where the call has one.
   */
  BLOCKTRI_INTERRUPTED = 7,
  /**
   * The time limit ended it. x is the best so far where the call has one.
   */
  BLOCKTRI_TIME_LIMIT = 8,
  /**
   * A bug in this library.
   */
  BLOCKTRI_INTERNAL = 9,
} blocktri_status;

/**
 * A square sparse matrix of one of the four scalars. It never changes, and any number of threads may read it.
 */
typedef struct blocktri_matrix blocktri_matrix;

/**
 * What a solve did and how good its answer is, recomputed from A, x and b. It never changes, and any number of threads may read it.
 */
typedef struct blocktri_report blocktri_report;

/**
 * A factored matrix. Any number of threads may solve with it at the same time; `blocktri_solver_refactor` waits until they are done, and
 * they until it is.
 */
typedef struct blocktri_solver blocktri_solver;

/**
 * Called now and then while a method works, on the calling thread or one of this library's, never on two at once.
 *
 * `done` of `total` columns or blocks are factored and `residual` is NaN; or `done` iterations are over, `total` is 0, and `residual` is the
 * norm that their rule looks at, relative to its baseline. Another return value than 0 ends the work: `BLOCKTRI_INTERRUPTED`. It must
 * return, without `longjmp` or exception, and not call functions with the solver that it watches.
 */
typedef int32_t (*blocktri_monitor)(void *context, int64_t done, int64_t total, double residual);

/**
 * Options of a solve, filled by `blocktri_options_init` before any is set. Where the options of a call are a null pointer they are as that
 * leaves them. Texts are read during the call and not kept.
 */
typedef struct blocktri_options {
  /**
   * Bytes of the structure, set by `blocktri_options_init`.
   */
  size_t size;
  /**
   * The method by its name in the book, `"band-lu"`; null or `"auto"` for the one predicted to be fastest, verified, and replaced by a
   * stronger one where it is too weak.
   */
  const char *method;
  /**
   * The preconditioner of a Krylov method, `"ilut"`; null for the method's own choice.
   */
  const char *precond;
  /**
   * The order, `"none"`, `"rcm"`, `"spectral"`, `"matching"` or `"matching+rcm"`; null or `"auto"` for the cheapest.
   */
  const char *reorder;
  /**
   * Precision of factors and preconditioners: null or `"working"` for that of the matrix; `"single"`.
   */
  const char *precision;
  /**
   * Whether another method may take the place of a named one that breaks down: null or `"never"`; `"stronger"`.
   */
  const char *fallback;
  /**
   * Size of the blocks for methods on blocks; 0 to find them.
   */
  int64_t block_size;
  /**
   * Steps of iterative refinement of direct methods; below 0 for as many as help, three at most.
   */
  int64_t refine;
  /**
   * Iterations at most; 0 for the method's own limit.
   */
  int64_t max_iters;
  /**
   * ‖b − A·x‖₂ ≤ max(atol, rtol·‖b‖₂) ends an iteration; below 0 for the method's own.
   */
  double rtol;
  /**
   * As of `rtol`, of named iterative methods.
   */
  double atol;
  /**
   * Seconds at most for a factorization or a solve in one call; 0 for any.
   */
  double time_limit;
  /**
   * Threads; 0 for as many as the machine has. The bits of an answer do not depend on it.
   */
  int64_t threads;
  /**
   * Called while a method works; null for nothing.
   */
  blocktri_monitor monitor;
  /**
   * The monitor's first argument. A solver calls the monitor in `blocktri_solver_refactor`, too: both must live as long as it.
   */
  void *monitor_context;
} blocktri_options;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Why the last call of this thread failed, in a sentence that names row, column or block where there is one; empty before the first
 * failure. Calls that succeed leave it alone. The text is this library's and stands until the thread's next failure.
 */
const char *blocktri_last_error(void);

/**
 * The name of a status: `"singular"`, ….
 */
const char *blocktri_status_name(int32_t status);

/**
 * The version of this library: `"0.1.0"`.
 */
const char *blocktri_version(void);

/**
 * Fills `options` with the defaults: `blocktri_options_init(&options, sizeof options)`.
 *
 * `size` tells this library which version of the structure the program was compiled with. A structure longer than this library's is
 * refused: the library is older than the header.
 */
enum blocktri_status blocktri_options_init(struct blocktri_options *options, size_t size);

/**
 * Bytes that the whole process may hold for all that this library does, less what is available; 0 for 80 % of what is available when it is
 * asked for. What would need more is `BLOCKTRI_OUT_OF_MEMORY` before it takes any.
 */
void blocktri_set_memory_limit(uint64_t bytes);

/**
 * The size n of a matrix; −1 of a null pointer.
 */
int64_t blocktri_matrix_n(const struct blocktri_matrix *matrix);

/**
 * The entries of a matrix in compressed rows, and of others those that are not zero; −1 of a null pointer.
 */
int64_t blocktri_matrix_nnz(const struct blocktri_matrix *matrix);

/**
 * Frees a matrix; solvers made of it keep their own copy. Nothing happens to a null pointer.
 */
void blocktri_matrix_free(struct blocktri_matrix *matrix);

/**
 * A matrix in compressed rows, of double precision: row i has the columns `col_idx[row_ptr[i]]` to
 * `col_idx[row_ptr[i + 1] - 1]`, and values beside them.
 *
 * `row_ptr` has n + 1 entries from 0 on. Indices count from 0; the columns of a row may be in any order, entries of one place are added,
 * zeros may be stored. The arrays are copied. On failure `*matrix` is null.
 *
 * Errors: `BLOCKTRI_INVALID_ARGUMENT` with the index that is wrong; `BLOCKTRI_OUT_OF_MEMORY`. Cost: one pass over the entries.
 */
enum blocktri_status blocktri_matrix_from_csr_d(int64_t n,
                                                const int32_t *row_ptr,
                                                const int32_t *col_idx,
                                                const double *values,
                                                struct blocktri_matrix **matrix);

/**
 * As `blocktri_matrix_from_csr_d`, of single precision.
 */
enum blocktri_status blocktri_matrix_from_csr_s(int64_t n,
                                                const int32_t *row_ptr,
                                                const int32_t *col_idx,
                                                const float *values,
                                                struct blocktri_matrix **matrix);

/**
 * As `blocktri_matrix_from_csr_d`, of complex double precision.
 */
enum blocktri_status blocktri_matrix_from_csr_z(int64_t n,
                                                const int32_t *row_ptr,
                                                const int32_t *col_idx,
                                                const blocktri_complex_double *values,
                                                struct blocktri_matrix **matrix);

/**
 * As `blocktri_matrix_from_csr_d`, of complex single precision.
 */
enum blocktri_status blocktri_matrix_from_csr_c(int64_t n,
                                                const int32_t *row_ptr,
                                                const int32_t *col_idx,
                                                const blocktri_complex_float *values,
                                                struct blocktri_matrix **matrix);

/**
 * As `blocktri_matrix_from_csr_d`, with indices of 64 bits, whose values fit 32.
 */
enum blocktri_status blocktri_matrix_from_csr64_d(int64_t n,
                                                  const int64_t *row_ptr,
                                                  const int64_t *col_idx,
                                                  const double *values,
                                                  struct blocktri_matrix **matrix);

/**
 * As `blocktri_matrix_from_csr_s`, with indices of 64 bits, whose values fit 32.
 */
enum blocktri_status blocktri_matrix_from_csr64_s(int64_t n,
                                                  const int64_t *row_ptr,
                                                  const int64_t *col_idx,
                                                  const float *values,
                                                  struct blocktri_matrix **matrix);

/**
 * As `blocktri_matrix_from_csr_z`, with indices of 64 bits, whose values fit 32.
 */
enum blocktri_status blocktri_matrix_from_csr64_z(int64_t n,
                                                  const int64_t *row_ptr,
                                                  const int64_t *col_idx,
                                                  const blocktri_complex_double *values,
                                                  struct blocktri_matrix **matrix);

/**
 * As `blocktri_matrix_from_csr_c`, with indices of 64 bits, whose values fit 32.
 */
enum blocktri_status blocktri_matrix_from_csr64_c(int64_t n,
                                                  const int64_t *row_ptr,
                                                  const int64_t *col_idx,
                                                  const blocktri_complex_float *values,
                                                  struct blocktri_matrix **matrix);

/**
 * A band matrix of double precision from LAPACK's storage: kl sub-diagonals, ku super-diagonals, A(i, j) at `ab[ku + i - j + j*ldab]`.
 *
 * ldab ≥ kl + ku + 1. For an array with room for fill, as `dgbsv` takes, pass `ab + kl`. The corners outside the matrix are not used. The
 * array is copied. On failure `*matrix` is null.
 *
 * Errors: `BLOCKTRI_INVALID_ARGUMENT`; `BLOCKTRI_OUT_OF_MEMORY`. Cost: one pass over the band.
 */
enum blocktri_status blocktri_matrix_from_band_d(int64_t n,
                                                 int64_t kl,
                                                 int64_t ku,
                                                 const double *ab,
                                                 int64_t ldab,
                                                 struct blocktri_matrix **matrix);

/**
 * As `blocktri_matrix_from_band_d`, of single precision.
 */
enum blocktri_status blocktri_matrix_from_band_s(int64_t n,
                                                 int64_t kl,
                                                 int64_t ku,
                                                 const float *ab,
                                                 int64_t ldab,
                                                 struct blocktri_matrix **matrix);

/**
 * As `blocktri_matrix_from_band_d`, of complex double precision.
 */
enum blocktri_status blocktri_matrix_from_band_z(int64_t n,
                                                 int64_t kl,
                                                 int64_t ku,
                                                 const blocktri_complex_double *ab,
                                                 int64_t ldab,
                                                 struct blocktri_matrix **matrix);

/**
 * As `blocktri_matrix_from_band_d`, of complex single precision.
 */
enum blocktri_status blocktri_matrix_from_band_c(int64_t n,
                                                 int64_t kl,
                                                 int64_t ku,
                                                 const blocktri_complex_float *ab,
                                                 int64_t ldab,
                                                 struct blocktri_matrix **matrix);

/**
 * A tridiagonal matrix of double precision: `dl[i]` = A(i + 1, i), `d[i]` = A(i, i), `du[i]` = A(i, i + 1).
 *
 * `dl` and `du` have n − 1 entries, `d` has n. They are copied. On failure `*matrix` is null.
 *
 * Errors: `BLOCKTRI_INVALID_ARGUMENT`; `BLOCKTRI_OUT_OF_MEMORY`. Cost: one pass over the diagonals.
 */
enum blocktri_status blocktri_matrix_from_tridiagonal_d(int64_t n,
                                                        const double *dl,
                                                        const double *d,
                                                        const double *du,
                                                        struct blocktri_matrix **matrix);

/**
 * As `blocktri_matrix_from_tridiagonal_d`, of single precision.
 */
enum blocktri_status blocktri_matrix_from_tridiagonal_s(int64_t n,
                                                        const float *dl,
                                                        const float *d,
                                                        const float *du,
                                                        struct blocktri_matrix **matrix);

/**
 * As `blocktri_matrix_from_tridiagonal_d`, of complex double precision.
 */
enum blocktri_status blocktri_matrix_from_tridiagonal_z(int64_t n,
                                                        const blocktri_complex_double *dl,
                                                        const blocktri_complex_double *d,
                                                        const blocktri_complex_double *du,
                                                        struct blocktri_matrix **matrix);

/**
 * As `blocktri_matrix_from_tridiagonal_d`, of complex single precision.
 */
enum blocktri_status blocktri_matrix_from_tridiagonal_c(int64_t n,
                                                        const blocktri_complex_float *dl,
                                                        const blocktri_complex_float *d,
                                                        const blocktri_complex_float *du,
                                                        struct blocktri_matrix **matrix);

/**
 * A block-tridiagonal matrix of double precision, of m = `n_blocks` block rows, each of k = `block_size` rows.
 *
 * `diag` has m blocks, `lower` and `upper` have m − 1, one behind the other: block j of `lower` stands in block row j + 1 and block column j,
 * that of `upper` in block row j and block column j + 1. A block is k × k, by columns where `layout` is `'C'`, by rows where it is `'R'`.
 * The arrays are copied. On failure `*matrix` is null.
 *
 * Errors: `BLOCKTRI_INVALID_ARGUMENT`; `BLOCKTRI_OUT_OF_MEMORY`. Cost: one pass over the blocks.
 */
enum blocktri_status blocktri_matrix_from_blocks_d(int64_t n_blocks,
                                                   int64_t block_size,
                                                   char layout,
                                                   const double *lower,
                                                   const double *diag,
                                                   const double *upper,
                                                   struct blocktri_matrix **matrix);

/**
 * As `blocktri_matrix_from_blocks_d`, of single precision.
 */
enum blocktri_status blocktri_matrix_from_blocks_s(int64_t n_blocks,
                                                   int64_t block_size,
                                                   char layout,
                                                   const float *lower,
                                                   const float *diag,
                                                   const float *upper,
                                                   struct blocktri_matrix **matrix);

/**
 * As `blocktri_matrix_from_blocks_d`, of complex double precision.
 */
enum blocktri_status blocktri_matrix_from_blocks_z(int64_t n_blocks,
                                                   int64_t block_size,
                                                   char layout,
                                                   const blocktri_complex_double *lower,
                                                   const blocktri_complex_double *diag,
                                                   const blocktri_complex_double *upper,
                                                   struct blocktri_matrix **matrix);

/**
 * As `blocktri_matrix_from_blocks_d`, of complex single precision.
 */
enum blocktri_status blocktri_matrix_from_blocks_c(int64_t n_blocks,
                                                   int64_t block_size,
                                                   char layout,
                                                   const blocktri_complex_float *lower,
                                                   const blocktri_complex_float *diag,
                                                   const blocktri_complex_float *upper,
                                                   struct blocktri_matrix **matrix);

/**
 * The name of the method that gave the answer. The text stands as long as the process.
 */
const char *blocktri_report_method(const struct blocktri_report *report);

/**
 * How it ended: `"converged"`, `"loose"`, `"false-convergence"`, `"iteration-limit"`, `"time-limit"`, `"breakdown"`, `"stopped"` or
 * `"inaccurate"`. The text stands as long as the process.
 */
const char *blocktri_report_outcome(const struct blocktri_report *report);

/**
 * Iterations, or steps of refinement; −1 of a null pointer.
 */
int64_t blocktri_report_iterations(const struct blocktri_report *report);

/**
 * ‖b − A·x‖₂/‖b‖₂ of the worst right-hand side; NaN of a null pointer.
 */
double blocktri_report_relative_residual(const struct blocktri_report *report);

/**
 * ‖b − A·x‖∞/(‖A‖∞·‖x‖∞ + ‖b‖∞) of the worst right-hand side; NaN of a null pointer.
 */
double blocktri_report_backward_error(const struct blocktri_report *report);

/**
 * max |b − A·x|/(|A|·|x| + |b|) over rows and right-hand sides; NaN of a null pointer.
 */
double blocktri_report_componentwise_backward_error(const struct blocktri_report *report);

/**
 * An estimate of 1/(‖A‖₁·‖A⁻¹‖₁), of direct methods; NaN where the answer is not in doubt and nothing was estimated.
 */
double blocktri_report_rcond(const struct blocktri_report *report);

/**
 * How many sentences the report has: what was chosen and why, and what happened on the way.
 */
int64_t blocktri_report_notes(const struct blocktri_report *report);

/**
 * The sentence of that number, from 0; null beyond the last. The text stands as long as the report.
 */
const char *blocktri_report_note(const struct blocktri_report *report, int64_t index);

/**
 * All of it as JSON, with the names of `blocktri solve --json`. The text stands as long as the report; empty of a null pointer.
 */
const char *blocktri_report_json(const struct blocktri_report *report);

/**
 * Frees a report. Nothing happens to a null pointer.
 */
void blocktri_report_free(struct blocktri_report *report);

/**
 * Factors a matrix by the method of `options` (a direct one, or the fastest), for solves with `blocktri_solver_solve_d` and its siblings.
 *
 * The solver keeps a copy of the matrix, from which every answer is certified. `options` may be null. On failure `*solver` is null.
 *
 * Errors: `BLOCKTRI_INVALID_ARGUMENT`, also for an iterative method; `BLOCKTRI_NOT_FINITE`; `BLOCKTRI_SINGULAR`; `BLOCKTRI_BREAKDOWN`;
 * `BLOCKTRI_OUT_OF_MEMORY`; `BLOCKTRI_INTERRUPTED` and `BLOCKTRI_TIME_LIMIT`. Cost: a factorization.
 */
enum blocktri_status blocktri_solver_new(const struct blocktri_matrix *matrix,
                                         const struct blocktri_options *options,
                                         struct blocktri_solver **solver);

/**
 * Factors new values of the same size and scalar: the same method, in the same order where the pattern has not changed.
 *
 * It waits for solves of other threads with this solver; those that begin meanwhile wait for it. On failure the factors stay as they were.
 *
 * Errors: as `blocktri_solver_new`; `BLOCKTRI_INVALID_ARGUMENT` on another size or scalar. Cost: a factorization, less the search for an
 * order.
 */
enum blocktri_status blocktri_solver_refactor(struct blocktri_solver *solver, const struct blocktri_matrix *matrix);

/**
 * Frees a solver that no thread uses any more. Nothing happens to a null pointer.
 */
void blocktri_solver_free(struct blocktri_solver *solver);

/**
 * The size n; −1 of a null pointer.
 */
int64_t blocktri_solver_n(const struct blocktri_solver *solver);

/**
 * The name of the method that factored, `"block-lu"`; empty of a null pointer. The text stands as long as the process.
 */
const char *blocktri_solver_method(const struct blocktri_solver *solver);

/**
 * det A = sign·exp(`log_abs`), the sign a number of modulus 1 (±1 of real matrices) in two parts. Each of the three pointers may be null.
 */
enum blocktri_status blocktri_solver_log_det(const struct blocktri_solver *solver, double *log_abs, double *sign_re, double *sign_im);

/**
 * An estimate of 1/(‖A‖₁·‖A⁻¹‖₁); NaN where factors in single precision, or with large growth, cannot tell. Cost: some five
 * solves, once per factorization.
 */
enum blocktri_status blocktri_solver_rcond(const struct blocktri_solver *solver, double *rcond);

/**
 * How many eigenvalues of a Hermitian A are negative, zero to rounding, and positive. Each of the three pointers may be null.
 *
 * Errors: `BLOCKTRI_INVALID_ARGUMENT` when A is not Hermitian; `BLOCKTRI_BREAKDOWN`. Cost: a factorization.
 */
enum blocktri_status blocktri_solver_inertia(const struct blocktri_solver *solver, int64_t *negative, int64_t *zero, int64_t *positive);

/**
 * Solves A·X = B of a matrix of double precision in one call: the structure is found, the method of `options` taken, the answer refined and
 * certified. `options` may be null.
 *
 * `b` and `x` are n × nrhs by columns, ldb and ldx apart, both at least n. `x` may be `b`, with the same leading dimension. Where `report` is
 * not null, `*report` becomes a report to be freed by `blocktri_report_free`; null where there is no x.
 *
 * Errors: as `blocktri_solver_new`, before x is touched. With x written, the best there is, and a report: `BLOCKTRI_NOT_ACCURATE`,
 * `BLOCKTRI_BREAKDOWN`, `BLOCKTRI_INTERRUPTED`, `BLOCKTRI_TIME_LIMIT`. Cost: a factorization and nrhs solves, or an iteration.
 */
enum blocktri_status blocktri_solve_d(const struct blocktri_matrix *matrix,
                                      const struct blocktri_options *options,
                                      int64_t nrhs,
                                      const double *b,
                                      int64_t ldb,
                                      double *x,
                                      int64_t ldx,
                                      struct blocktri_report **report);

/**
 * As `blocktri_solve_d`, of single precision.
 */
enum blocktri_status blocktri_solve_s(const struct blocktri_matrix *matrix,
                                      const struct blocktri_options *options,
                                      int64_t nrhs,
                                      const float *b,
                                      int64_t ldb,
                                      float *x,
                                      int64_t ldx,
                                      struct blocktri_report **report);

/**
 * As `blocktri_solve_d`, of complex double precision.
 */
enum blocktri_status blocktri_solve_z(const struct blocktri_matrix *matrix,
                                      const struct blocktri_options *options,
                                      int64_t nrhs,
                                      const blocktri_complex_double *b,
                                      int64_t ldb,
                                      blocktri_complex_double *x,
                                      int64_t ldx,
                                      struct blocktri_report **report);

/**
 * As `blocktri_solve_d`, of complex single precision.
 */
enum blocktri_status blocktri_solve_c(const struct blocktri_matrix *matrix,
                                      const struct blocktri_options *options,
                                      int64_t nrhs,
                                      const blocktri_complex_float *b,
                                      int64_t ldb,
                                      blocktri_complex_float *x,
                                      int64_t ldx,
                                      struct blocktri_report **report);

/**
 * Solves A·X = B (`op` is `'N'`), Aᵀ·X = B (`'T'`) or Aᴴ·X = B (`'C'`) by factors of a matrix of double precision, refines and certifies.
 *
 * The other arguments are those of `blocktri_solve_d`. Any number of threads may call it with one solver.
 *
 * Errors: `BLOCKTRI_INVALID_ARGUMENT` and `BLOCKTRI_NOT_FINITE` before x is touched; with x written, `BLOCKTRI_NOT_ACCURATE`. Cost: nrhs
 * solves, as many products with A, and again for each step of refinement.
 */
enum blocktri_status blocktri_solver_solve_d(const struct blocktri_solver *solver,
                                             char op,
                                             int64_t nrhs,
                                             const double *b,
                                             int64_t ldb,
                                             double *x,
                                             int64_t ldx,
                                             struct blocktri_report **report);

/**
 * As `blocktri_solver_solve_d`, of single precision.
 */
enum blocktri_status blocktri_solver_solve_s(const struct blocktri_solver *solver,
                                             char op,
                                             int64_t nrhs,
                                             const float *b,
                                             int64_t ldb,
                                             float *x,
                                             int64_t ldx,
                                             struct blocktri_report **report);

/**
 * As `blocktri_solver_solve_d`, of complex double precision.
 */
enum blocktri_status blocktri_solver_solve_z(const struct blocktri_solver *solver,
                                             char op,
                                             int64_t nrhs,
                                             const blocktri_complex_double *b,
                                             int64_t ldb,
                                             blocktri_complex_double *x,
                                             int64_t ldx,
                                             struct blocktri_report **report);

/**
 * As `blocktri_solver_solve_d`, of complex single precision.
 */
enum blocktri_status blocktri_solver_solve_c(const struct blocktri_solver *solver,
                                             char op,
                                             int64_t nrhs,
                                             const blocktri_complex_float *b,
                                             int64_t ldb,
                                             blocktri_complex_float *x,
                                             int64_t ldx,
                                             struct blocktri_report **report);

/**
 * The diagonal of A⁻¹, n numbers of double precision: where A is the inverse of a covariance, the variances.
 *
 * Errors: `BLOCKTRI_BREAKDOWN` where block LU meets a singular block. Cost: a factorization by block LU, and about as much again.
 */
enum blocktri_status blocktri_solver_inverse_diagonal_d(const struct blocktri_solver *solver, double *diagonal);

/**
 * As `blocktri_solver_inverse_diagonal_d`, of single precision.
 */
enum blocktri_status blocktri_solver_inverse_diagonal_s(const struct blocktri_solver *solver, float *diagonal);

/**
 * As `blocktri_solver_inverse_diagonal_d`, of complex double precision.
 */
enum blocktri_status blocktri_solver_inverse_diagonal_z(const struct blocktri_solver *solver, blocktri_complex_double *diagonal);

/**
 * As `blocktri_solver_inverse_diagonal_d`, of complex single precision.
 */
enum blocktri_status blocktri_solver_inverse_diagonal_c(const struct blocktri_solver *solver, blocktri_complex_float *diagonal);

/**
 * LAPACK's `dgbsv`: A·X = B of a band matrix by P·A = L·U, in place. `#define dgbsv_ blocktri_dgbsv` puts it in LAPACK's place.
 *
 * `ab` is ldab × n, ldab ≥ 2·kl + ku + 1, with A(i, j) at `ab[kl + ku + i - j + j*ldab]`; its first kl rows are room for fill. L and U take the
 * place of A, and `ipiv`, n integers from 1, tells the exchanges, for `dgbtrs`, `dgbcon`, `dgbrfs` to go on from. `b`, n × nrhs with ldb ≥ n,
 * becomes X.
 *
 * `info`: 0; −i where argument i is wrong; i where U(i, i) is exactly zero: then the factorization is complete and X is not computed.
 * Cost: at most 2n·kl(kl + ku + 1) flops on one thread, and memory for a copy of the band where it can be had.
 */
void blocktri_dgbsv(const int32_t *n,
                    const int32_t *kl,
                    const int32_t *ku,
                    const int32_t *nrhs,
                    double *ab,
                    const int32_t *ldab,
                    int32_t *ipiv,
                    double *b,
                    const int32_t *ldb,
                    int32_t *info);

/**
 * As `blocktri_dgbsv`, of single precision.
 */
void blocktri_sgbsv(const int32_t *n,
                    const int32_t *kl,
                    const int32_t *ku,
                    const int32_t *nrhs,
                    float *ab,
                    const int32_t *ldab,
                    int32_t *ipiv,
                    float *b,
                    const int32_t *ldb,
                    int32_t *info);

/**
 * As `blocktri_dgbsv`, of complex double precision.
 */
void blocktri_zgbsv(const int32_t *n,
                    const int32_t *kl,
                    const int32_t *ku,
                    const int32_t *nrhs,
                    blocktri_complex_double *ab,
                    const int32_t *ldab,
                    int32_t *ipiv,
                    blocktri_complex_double *b,
                    const int32_t *ldb,
                    int32_t *info);

/**
 * As `blocktri_dgbsv`, of complex single precision.
 */
void blocktri_cgbsv(const int32_t *n,
                    const int32_t *kl,
                    const int32_t *ku,
                    const int32_t *nrhs,
                    blocktri_complex_float *ab,
                    const int32_t *ldab,
                    int32_t *ipiv,
                    blocktri_complex_float *b,
                    const int32_t *ldb,
                    int32_t *info);

/**
 * LAPACK's `dgtsv`: A·X = B of a tridiagonal matrix by elimination with partial pivoting, in place.
 *
 * `dl` and `du` have n − 1 entries, `d` has n. Afterwards `d`, `du` and the first n − 2 of `dl` are the diagonal and the two super-diagonals
 * of U; L is not kept. `b`, n × nrhs with ldb ≥ n, becomes X.
 *
 * `info`: 0; −i where argument i is wrong; i where U(i, i) is exactly zero: then elimination ended there and X is not computed.
 * Cost: 5n flops and n divisions, 7n flops and n divisions a right-hand side; no memory.
 */
void blocktri_dgtsv(const int32_t *n,
                    const int32_t *nrhs,
                    double *dl,
                    double *d,
                    double *du,
                    double *b,
                    const int32_t *ldb,
                    int32_t *info);

/**
 * As `blocktri_dgtsv`, of single precision.
 */
void blocktri_sgtsv(const int32_t *n, const int32_t *nrhs, float *dl, float *d, float *du, float *b, const int32_t *ldb, int32_t *info);

/**
 * As `blocktri_dgtsv`, of complex double precision.
 */
void blocktri_zgtsv(const int32_t *n,
                    const int32_t *nrhs,
                    blocktri_complex_double *dl,
                    blocktri_complex_double *d,
                    blocktri_complex_double *du,
                    blocktri_complex_double *b,
                    const int32_t *ldb,
                    int32_t *info);

/**
 * As `blocktri_dgtsv`, of complex single precision.
 */
void blocktri_cgtsv(const int32_t *n,
                    const int32_t *nrhs,
                    blocktri_complex_float *dl,
                    blocktri_complex_float *d,
                    blocktri_complex_float *du,
                    blocktri_complex_float *b,
                    const int32_t *ldb,
                    int32_t *info);

/**
 * LAPACK's `dpbsv`: A·X = B of a Hermitian positive definite band matrix by Cholesky's factorization, in place.
 *
 * `ab` is ldab × n, ldab ≥ kd + 1: where `uplo` is `'U'` the upper half with A(i, j) at `ab[kd + i - j + j*ldab]`, where it is `'L'` the lower one
 * with A(i, j) at `ab[i - j + j*ldab]`. Imaginary parts on the diagonal are taken for zero. The factor U (A = Uᴴ·U) or L (A = L·Lᴴ) takes its
 * place, for `dpbtrs`, `dpbcon`, `dpbrfs` to go on from. `b`, n × nrhs with ldb ≥ n, becomes X.
 *
 * `info`: 0; −i where argument i is wrong; i where the leading minor of order i is not positive definite: then X is not computed and `ab` is
 * spoilt. Cost: n·kd(kd + 2) flops on one thread, and memory for a copy of the band where it can be had.
 */
void blocktri_dpbsv(const char *uplo,
                    const int32_t *n,
                    const int32_t *kd,
                    const int32_t *nrhs,
                    double *ab,
                    const int32_t *ldab,
                    double *b,
                    const int32_t *ldb,
                    int32_t *info);

/**
 * As `blocktri_dpbsv`, of single precision.
 */
void blocktri_spbsv(const char *uplo,
                    const int32_t *n,
                    const int32_t *kd,
                    const int32_t *nrhs,
                    float *ab,
                    const int32_t *ldab,
                    float *b,
                    const int32_t *ldb,
                    int32_t *info);

/**
 * As `blocktri_dpbsv`, of complex double precision.
 */
void blocktri_zpbsv(const char *uplo,
                    const int32_t *n,
                    const int32_t *kd,
                    const int32_t *nrhs,
                    blocktri_complex_double *ab,
                    const int32_t *ldab,
                    blocktri_complex_double *b,
                    const int32_t *ldb,
                    int32_t *info);

/**
 * As `blocktri_dpbsv`, of complex single precision.
 */
void blocktri_cpbsv(const char *uplo,
                    const int32_t *n,
                    const int32_t *kd,
                    const int32_t *nrhs,
                    blocktri_complex_float *ab,
                    const int32_t *ldab,
                    blocktri_complex_float *b,
                    const int32_t *ldb,
                    int32_t *info);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BLOCKTRI_H */
