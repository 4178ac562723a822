// What SPIKE needs beside the factors of its partitions: a few rows of all columns, out of a matrix by columns and into it.
//
// Traffic 2*s*count*nrhs bytes, scattered, and 4*count*nrhs of the rows, from the cache. No flops.

#include "device.h"

// x[rows[i]][c] <- values[i][c]
template <class T> DEVICE void spread(u64 n, u32 count, u32 nrhs, const u32 *rows, const T *values, T *x) {
    for (u64 k = place(); k < (u64)count * nrhs; k += places()) x[k / count * n + rows[k % count]] = values[k];
}

// values[i][c] <- x[rows[i]][c]
template <class T> DEVICE void gather(u64 n, u32 count, u32 nrhs, const u32 *rows, const T *x, T *values) {
    for (u64 k = place(); k < (u64)count * nrhs; k += places()) values[k] = x[k / count * n + rows[k % count]];
}

#define KERNELS(T, S)                                                                                                  \
    extern "C" __global__ void __bounds__(BLOCK) spike_spread_##S(                                                     \
        u64 n, u32 count, u32 nrhs, const u32 *rows, const T *values, T *x) {                                          \
        spread<T>(n, count, nrhs, rows, values, x);                                                                    \
    }                                                                                                                  \
    extern "C" __global__ void __bounds__(BLOCK) spike_gather_##S(                                                     \
        u64 n, u32 count, u32 nrhs, const u32 *rows, const T *x, T *values) {                                          \
        gather<T>(n, count, nrhs, rows, x, values);                                                                    \
    }

KERNELS(float, f32)
KERNELS(double, f64)
