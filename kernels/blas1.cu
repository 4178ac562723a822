// Vector operations and deterministic inner products.
//
// Traffic, s bytes a value: dot 2*s*n, update 3*s*n with the square of the result's norm in the same pass, 2*s*n where y is not read.
// Flops: dot 2n; update 5n, 3n where y is not read.

#include "device.h"

// partial[block] <- sum of x*y; the sums are kept in double precision.
template <class T> DEVICE void dot_part(u64 n, const T *x, const T *y, double *partial) {
    __shared__ double scratch[BLOCK / WARP];
    double v = 0;
    for (u64 i = place(); i < n; i += places()) v = fused((double)x[i], (double)y[i], v);
    v = reduce<Sum>(v, scratch);
    if (thread() == 0) partial[block()] = v;
}

// y <- alpha*x + beta*y, partial[block] <- sum of y*y; beta = 0 never reads y.
template <class T> DEVICE void update(u64 n, T alpha, const T *x, T beta, T *y, double *partial) {
    __shared__ double scratch[BLOCK / WARP];
    double v = 0;
    for (u64 i = place(); i < n; i += places()) {
        const T next = beta == (T)0 ? alpha * x[i] : fused(beta, y[i], alpha * x[i]);
        y[i] = next;
        v = fused((double)next, (double)next, v);
    }
    v = reduce<Sum>(v, scratch);
    if (thread() == 0) partial[block()] = v;
}

// total <- sum of the parts, by one block.
extern "C" __global__ void __bounds__(BLOCK) sum_parts(u32 count, const double *partial, double *total) {
    __shared__ double scratch[BLOCK / WARP];
    const double v = reduce_all<Sum>(partial, count, scratch);
    if (thread() == 0) *total = v;
}

#define KERNELS(T, S)                                                                                                     \
    extern "C" __global__ void __bounds__(BLOCK) dot_##S(u64 n, const T *x, const T *y, double *partial) {               \
        dot_part<T>(n, x, y, partial);                                                                                    \
    }                                                                                                                     \
    extern "C" __global__ void __bounds__(BLOCK) update_##S(u64 n, T alpha, const T *x, T beta, T *y, double *partial) { \
        update<T>(n, alpha, x, beta, y, partial);                                                                         \
    }

KERNELS(float, f32)
KERNELS(double, f64)
