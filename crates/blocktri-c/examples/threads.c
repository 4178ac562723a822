/* Several threads that solve with one solver while another factors new values: every answer is of the old matrix or of the new one. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "blocktri.h"

enum { N = 1000, THREADS = 4, ROUNDS = 25 };

static blocktri_solver *solver;

/* n equations s·(4xᵢ − xᵢ₋₁ − xᵢ₊₁) = 1. */
static blocktri_matrix *matrix(double s) {
    static double d[N], beside[N - 1];
    blocktri_matrix *a;
    for (int i = 0; i < N; i++) {
        d[i] = 4 * s;
    }
    for (int i = 0; i + 1 < N; i++) {
        beside[i] = -s;
    }
    if (blocktri_matrix_from_tridiagonal_d(N, beside, d, beside, &a) != BLOCKTRI_OK) {
        fprintf(stderr, "the matrix: %s\n", blocktri_last_error());
        exit(1);
    }
    return a;
}

/* In the middle x = 1/(2s): with s = 1 and s = 2 that is 1/2 and 1/4. */
static void *solve(void *unused) {
    (void)unused;
    double *b = malloc(N * sizeof *b), *x = malloc(N * sizeof *x);
    long wrong = 0;
    for (int i = 0; i < N; i++) {
        b[i] = 1;
    }
    for (int round = 0; round < ROUNDS; round++) {
        blocktri_status status = blocktri_solver_solve_d(solver, 'N', 1, b, N, x, N, NULL);
        double middle = x[N / 2];
        wrong += status != BLOCKTRI_OK || !(fabs(middle - 0.5) < 1e-12 || fabs(middle - 0.25) < 1e-12);
        /* Each thread has its own failure to read. */
        wrong += blocktri_solver_solve_d(solver, '?', 1, b, N, x, N, NULL) != BLOCKTRI_INVALID_ARGUMENT;
    }
    free(b);
    free(x);
    return (void *)wrong;
}

int main(void) {
    blocktri_matrix *one = matrix(1), *two = matrix(2);
    if (blocktri_solver_new(one, NULL, &solver) != BLOCKTRI_OK) {
        fprintf(stderr, "factor: %s\n", blocktri_last_error());
        return 1;
    }
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++) {
        if (pthread_create(&threads[t], NULL, solve, NULL) != 0) {
            return 1;
        }
    }
    long wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        wrong += blocktri_solver_refactor(solver, round % 2 == 0 ? two : one) != BLOCKTRI_OK;
    }
    for (int t = 0; t < THREADS; t++) {
        void *found;
        pthread_join(threads[t], &found);
        wrong += (long)found;
    }
    printf("%d solves in %d threads, %d refactorizations, %ld wrong\n", THREADS * ROUNDS, THREADS, ROUNDS, wrong);
    blocktri_solver_free(solver);
    blocktri_matrix_free(one);
    blocktri_matrix_free(two);
    return wrong != 0;
}
