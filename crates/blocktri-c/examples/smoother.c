/* A Kalman smoother: the states of a walk with position and velocity that fit noisy positions best.
 *
 * With xᵢ₊₁ = F·xᵢ + noise of covariance Q and yᵢ = pᵢ + noise of variance r, the best states solve a system with 2 × 2 blocks,
 *
 *     (H'H/r + Q⁻¹ + F'Q⁻¹F)·xᵢ − F'Q⁻¹·xᵢ₊₁ − Q⁻¹F·xᵢ₋₁ = H'yᵢ/r,
 *
 * symmetric positive definite. It is solved in one call, by factors, transposed, and again with another r; the diagonal of its inverse
 * holds the variances. Every answer is checked against the equations: the program ends with 1 where one does not solve them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blocktri.h"

enum { M = 400, K = 2, N = M * K };

/* Stops where a call failed. */
static void must(blocktri_status status, const char *what) {
    if (status != BLOCKTRI_OK) {
        fprintf(stderr, "%s: %s: %s\n", what, blocktri_status_name((int32_t)status), blocktri_last_error());
        exit(1);
    }
}

/* Blocks by rows: four numbers each, a, b, c, d of [a b; c d]. */
static double diag[M * K * K], lower[(M - 1) * K * K], upper[(M - 1) * K * K];

static void fill(double r) {
    const double h = 0.1, q = 0.5;
    /* Q = q·[h³/3 h²/2; h²/2 h], F = [1 h; 0 1]. */
    const double q11 = 12 / (q * h * h * h), q12 = -6 / (q * h * h), q22 = 4 / (q * h);
    /* Q⁻¹·F and F'·Q⁻¹·F */
    const double g[4] = {q11, q11 * h + q12, q12, q12 * h + q22};
    const double f[4] = {g[0], g[1], h * g[0] + g[2], h * g[1] + g[3]};
    const double inverse[4] = {q11, q12, q12, q22};
    for (int i = 0; i < M; i++) {
        for (int e = 0; e < 4; e++) {
            diag[4 * i + e] = (i > 0 ? inverse[e] : 0.0) + (i + 1 < M ? f[e] : 0.0);
        }
        diag[4 * i] += 1 / r;
        /* The first state is known roughly. */
        diag[4 * i + 3] += i == 0 ? 1e-2 : 0.0;
    }
    for (int i = 0; i + 1 < M; i++) {
        for (int e = 0; e < 4; e++) {
            lower[4 * i + e] = -g[e];
        }
        upper[4 * i] = -g[0];
        upper[4 * i + 1] = -g[2];
        upper[4 * i + 2] = -g[1];
        upper[4 * i + 3] = -g[3];
    }
}

/* max |b − A·x| over max |A|·max |x|. */
static double residual(const double *x, const double *b) {
    double worst = 0, largest_a = 0, largest_x = 0;
    for (int i = 0; i < M; i++) {
        for (int row = 0; row < K; row++) {
            double sum = b[K * i + row];
            for (int col = 0; col < K; col++) {
                int e = K * row + col;
                sum -= diag[4 * i + e] * x[K * i + col];
                sum -= i > 0 ? lower[4 * (i - 1) + e] * x[K * (i - 1) + col] : 0.0;
                sum -= i + 1 < M ? upper[4 * i + e] * x[K * (i + 1) + col] : 0.0;
                largest_a = fmax(largest_a, fabs(diag[4 * i + e]));
            }
            worst = fmax(worst, fabs(sum));
            largest_x = fmax(largest_x, fabs(x[K * i + row]));
        }
    }
    return worst / (largest_a * largest_x);
}

static void check(const char *what, double error, double most) {
    printf("%-34s %.1e\n", what, error);
    if (!(error <= most)) {
        fprintf(stderr, "%s: %g is more than %g\n", what, error, most);
        exit(1);
    }
}

static blocktri_matrix *matrix(double r) {
    blocktri_matrix *a;
    fill(r);
    must(blocktri_matrix_from_blocks_d(M, K, 'R', lower, diag, upper, &a), "the matrix");
    return a;
}

int main(void) {
    static double b[N], x[N], y[N], variance[N];
    for (int i = 0; i < M; i++) {
        /* Positions on a sine, with noise of a fixed pattern. */
        b[K * i] = (sin(0.05 * i) + 0.3 * sin(37.0 * i * i)) / 0.1;
        b[K * i + 1] = 0;
    }

    blocktri_matrix *a = matrix(0.1);
    blocktri_report *report = NULL;
    must(blocktri_solve_d(a, NULL, 1, b, N, x, N, &report), "solve");
    printf("%s, %s, backward error %.1e\n", blocktri_report_method(report), blocktri_report_outcome(report),
           blocktri_report_backward_error(report));
    check("one call: residual", residual(x, b), 1e-14);
    if (strstr(blocktri_report_json(report), "\"outcome\":\"converged\"") == NULL) {
        fprintf(stderr, "the report: %s\n", blocktri_report_json(report));
        return 1;
    }
    blocktri_report_free(report);

    /* Factors to keep, by a method of our choice. */
    blocktri_options options;
    must(blocktri_options_init(&options, sizeof options), "options");
    options.method = "block-cholesky";
    options.threads = 1;
    blocktri_solver *solver;
    must(blocktri_solver_new(a, &options, &solver), "factor");
    blocktri_matrix_free(a);
    must(blocktri_solver_solve_d(solver, 'T', 1, b, N, y, N, NULL), "solve transposed");
    check("A' = A: residual", residual(y, b), 1e-14);

    /* Other values, in the place of the right-hand sides. */
    a = matrix(0.2);
    must(blocktri_solver_refactor(solver, a), "refactor");
    memcpy(y, b, sizeof b);
    must(blocktri_solver_solve_d(solver, 'N', 1, y, N, y, N, NULL), "solve in place");
    check("refactored, in place: residual", residual(y, b), 1e-14);

    /* More is known in the middle than at the end. */
    int64_t negative, zero, positive;
    must(blocktri_solver_inertia(solver, &negative, &zero, &positive), "inertia");
    must(blocktri_solver_inverse_diagonal_d(solver, variance), "variances");
    printf("%d eigenvalues, all positive: %s; variance of the position %.3f, at the end %.3f\n", N, positive == N ? "yes" : "no",
           variance[N / 2], variance[N - 2]);
    if (positive != N || !(0 < variance[N / 2] && variance[N / 2] < variance[N - 2])) {
        return 1;
    }

    /* A wrong call says what is wrong. */
    options.method = "magic";
    blocktri_solver *none;
    if (blocktri_solver_new(a, &options, &none) != BLOCKTRI_INVALID_ARGUMENT || none != NULL) {
        return 1;
    }
    blocktri_matrix_free(a);
    printf("%.60s...\n", blocktri_last_error());
    blocktri_solver_free(solver);
    return 0;
}
