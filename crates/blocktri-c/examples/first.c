#include <stdio.h>

#include "blocktri.h"

int main(void) {
    /* [ 4 1   ]
       [ 2 5 1 ]
       [   3 6 ] */
    const double dl[] = {2, 3}, d[] = {4, 5, 6}, du[] = {1, 1}, b[] = {5, 8, 9}, c[] = {6, 9, 7};
    double x[3], y[3];
    blocktri_matrix *a = NULL;
    blocktri_solver *solver = NULL;
    blocktri_report *report = NULL;

    blocktri_status status = blocktri_matrix_from_tridiagonal_d(3, dl, d, du, &a);
    /* Factors to keep: A·x = b, and A'·y = c. A null pointer leaves the method to the library. */
    if (status == BLOCKTRI_OK) status = blocktri_solver_new(a, NULL, &solver);
    if (status == BLOCKTRI_OK) status = blocktri_solver_solve_d(solver, 'N', 1, b, 3, x, 3, &report);
    if (status == BLOCKTRI_OK) status = blocktri_solver_solve_d(solver, 'T', 1, c, 3, y, 3, NULL);
    if (status == BLOCKTRI_OK) {
        printf("x = %g %g %g, y = %g %g %g\n", x[0], x[1], x[2], y[0], y[1], y[2]);
        printf("%s, backward error %.0e\n", blocktri_report_method(report), blocktri_report_backward_error(report));
    } else {
        fprintf(stderr, "%s\n", blocktri_last_error());
    }
    blocktri_report_free(report);
    blocktri_solver_free(solver);
    blocktri_matrix_free(a);
    return (int)status;
}
