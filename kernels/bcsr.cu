// y = alpha*A*x + beta*base for rows of dense K x K blocks, each by columns: block rows ptr, block columns col.
//
// A thread a row: K neighbouring threads read the K values of a column side by side, and the same elements of x. A row is summed in
// one fixed order, blocks and their columns increasing. beta = 0 never reads base.
//
// Traffic for p blocks of values of s bytes: p(s*K^2 + 4) + 4(n/K + 1) + reads of x + s*n, and s*n of base. The K threads of a row of blocks
// read its ends and columns each, from the cache. Flops: 2*p*K^2 + n, and 2n with base.

#include "device.h"

// A run that has stopped is left as it is.
template <class T, u32 K>
DEVICE void bcsr_rows(u32 n, const u32 *ptr, const u32 *col, const T *val, T alpha, const T *x, T beta, const T *base, T *y,
                      const double *now) {
    if (stopped(now)) return;
    for (u64 i = place(); i < n; i += places()) {
        const u64 row = i / K, r = i % K;
        T sum = 0;
        for (u32 p = ptr[row]; p < ptr[row + 1]; p++) {
            const T *block = val + (u64)p * (K * K) + r, *part = x + (u64)col[p] * K;
#pragma unroll
            for (u32 c = 0; c < K; c++) sum = fused(block[c * K], part[c], sum);
        }
        y[i] = beta == (T)0 ? alpha * sum : fused(beta, base[i], alpha * sum);
    }
}

#define KERNEL(T, S, K)                                                                                              \
    extern "C" __global__ void __bounds__(BLOCK)                                                                     \
        bcsr_##K##_##S(u32 n, const u32 *ptr, const u32 *col, const T *val, T alpha, const T *x, T beta, const T *base, \
                       T *y, const double *now) {                                                                    \
        bcsr_rows<T, K>(n, ptr, col, val, alpha, x, beta, base, y, now);                                             \
    }
#define KERNELS(T, S)                                                                                                \
    KERNEL(T, S, 1) KERNEL(T, S, 2) KERNEL(T, S, 3) KERNEL(T, S, 4) KERNEL(T, S, 5) KERNEL(T, S, 6)

KERNELS(float, f32)
KERNELS(double, f64)
