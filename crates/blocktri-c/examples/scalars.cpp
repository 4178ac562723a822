// The header from C++: std::complex, and LAPACK's band solver under the name that a program already calls.
#include <complex>
#include <cstdio>
#include <vector>

#include "blocktri.h"

#define zgbsv_ blocktri_zgbsv

int main() {
    using number = std::complex<double>;
    // [ 0 2i ]
    // [ 1 3  ], one row for fill above.
    std::vector<number> ab = {0, 0, 0, 1, 0, number(0, 2), 3, 0};
    std::vector<number> b = {number(0, 2), 4};
    const int32_t n = 2, one = 1, ldab = 4;
    int32_t ipiv[2], info = -1;
    zgbsv_(&n, &one, &one, &one, ab.data(), &ldab, ipiv, b.data(), &n, &info);
    std::printf("info %d, x = (%g, %g)\n", info, b[0].real(), b[1].real());
    if (info != 0 || b[0] != 1.0 || b[1] != 1.0 || ipiv[0] != 2) {
        return 1;
    }
    const int64_t row_ptr[] = {0, 1, 3}, col_idx[] = {1, 1, 0};
    const number values[] = {number(0, 2), 3, 1};
    blocktri_matrix *a = nullptr;
    if (blocktri_matrix_from_csr64_z(2, row_ptr, col_idx, values, &a) != BLOCKTRI_OK) {
        return 1;
    }
    number x[] = {number(0, 2), 4};
    const bool solved = blocktri_solve_z(a, nullptr, 1, x, 2, x, 2, nullptr) == BLOCKTRI_OK;
    blocktri_matrix_free(a);
    return solved && std::abs(x[0] - 1.0) < 1e-14 && std::abs(x[1] - 1.0) < 1e-14 ? 0 : 1;
}
