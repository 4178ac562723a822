// Block Jacobi: z <- D^-1 * r for the diagonal blocks D of A.
//
// tridiagonal: D as one tridiagonal matrix whose couplings vanish between blocks. A thread block takes whole blocks of at most
//              threads() rows together, a row a thread, into shared memory, and solves them side by side: as many steps as the
//              largest one needs. No row interchanges.
// dense:       D^-1 block after block, column-major; a thread a row. (Inverses of blocks: H. Anzt, J. Dongarra, G. Flegar, E. S.
//              Quintana-Orti, PMAM 2017, doi:10.1145/3026937.3026940.)
//
// Traffic, s bytes a value: tridiagonal 5*s*n; dense s*k*n + 8n + 2*s*n for blocks of k rows, with the places of blocks and r for every value
// from the cache. Flops a row: tridiagonal at most 14*ceil(log2 k) + 4; dense 2k.

#include "device.h"

constexpr u32 LARGEST = 1024;

#define KERNELS(T, S)                                                                                                        \
    extern "C" __global__ void __attribute__((launch_bounds(LARGEST, 1))) block_jacobi_tridiagonal_##S(                     \
        u32 n, u32 groups, u32 largest, const u32 *first, const T *d, const T *r, T *z, const double *now) {                 \
        __shared__ T shared[4 * LARGEST];                                                                                    \
        if (!stopped(now)) solve_groups<T>(n, groups, largest, first, d, r, z, LARGEST, shared);                             \
    }                                                                                                                        \
    extern "C" __global__ void __bounds__(BLOCK) block_jacobi_dense_##S(                                                    \
        u32 n, const u32 *home, const u32 *first, const u64 *starts, const T *inverses, const T *r, T *z, const double *now) { \
        if (!stopped(now)) multiply_blocks<T>(n, home, first, starts, inverses, r, z);                                       \
    }

KERNELS(float, f32)
KERNELS(double, f64)
