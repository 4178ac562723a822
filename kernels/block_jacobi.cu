// Block Jacobi: z <- D^-1 * r for the diagonal blocks D of A.
//
// tridiagonal: D as one tridiagonal matrix whose couplings vanish between blocks. A thread block takes whole blocks of at most
//              threads() rows together, a row a thread, into shared memory, and solves them side by side: as many steps as the
//              largest one needs. No row interchanges.
// dense:       D^-1 block after block, column-major; a thread a row. (Inverses of blocks: H. Anzt, J. Dongarra, G. Flegar, E. S.
//              Quintana-Orti, PMAM 2017, doi:10.1145/3026937.3026940.)
//
// Traffic, s bytes a value: tridiagonal 5*s*n, 14*log2(k) flops a row; dense s*k*n + 8n + 2*s*n for blocks of k rows.

#include "device.h"

constexpr u32 LARGEST = 1024;

// Rows first[g] .. first[g + 1] are group g; lower, diag and upper of D one after another; no block has more than `largest` rows.
template <class T>
DEVICE void tridiagonal(u32 n, u32 groups, u32 largest, const u32 *first, const T *d, const T *r, T *z, const double *now, T *shared) {
    if (stopped(now)) return;
    T *a = shared, *b = shared + LARGEST, *c = shared + 2 * LARGEST, *rhs = shared + 3 * LARGEST;
    const u32 i = thread();
#pragma unroll 1
    for (u32 g = block(); g < groups; g += blocks()) {
        const u32 low = first[g], k = first[g + 1] - low;
        const u64 row = (u64)low + i;
        if (i < k) {
            a[i] = d[row];
            b[i] = d[(u64)n + row];
            c[i] = d[2 * (u64)n + row];
            rhs[i] = r[row];
        }
        barrier();
        const T value = solve_block(k, largest < k ? largest : k, a, b, c, rhs);
        if (i < k) z[row] = value;
        barrier();
    }
}

// Row i is in block home[i], rows first[home] .. first[home + 1]; the inverse of block j from starts[j] on.
template <class T>
DEVICE void dense(u32 n, const u32 *home, const u32 *first, const u64 *starts, const T *inverses, const T *r, T *z, const double *now) {
    if (stopped(now)) return;
#pragma unroll 1
    for (u64 i = place(); i < n; i += places()) {
        const u32 j = home[i], low = first[j], k = first[j + 1] - low;
        const T *row = inverses + starts[j] + (i - low);
        T sum = 0;
        for (u32 c = 0; c < k; c++) sum = fused(row[(u64)c * k], r[low + c], sum);
        z[i] = sum;
    }
}

#define KERNELS(T, S)                                                                                                        \
    extern "C" __global__ void __attribute__((launch_bounds(LARGEST, 1))) block_jacobi_tridiagonal_##S(                     \
        u32 n, u32 groups, u32 largest, const u32 *first, const T *d, const T *r, T *z, const double *now) {                 \
        __shared__ T shared[4 * LARGEST];                                                                                    \
        tridiagonal<T>(n, groups, largest, first, d, r, z, now, shared);                                                     \
    }                                                                                                                        \
    extern "C" __global__ void __bounds__(BLOCK) block_jacobi_dense_##S(                                                    \
        u32 n, const u32 *home, const u32 *first, const u64 *starts, const T *inverses, const T *r, T *z, const double *now) { \
        dense<T>(n, home, first, starts, inverses, r, z, now);                                                               \
    }

KERNELS(float, f32)
KERNELS(double, f64)
