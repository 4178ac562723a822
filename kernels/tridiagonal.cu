// Batches of tridiagonal systems without interchanges, each with its backward error.
//
// interleaved: equation i of system s at [i*m + s]; a thread takes a system (Thomas's algorithm), neighbours read neighbours.
// strided:     equation i of system s at [s*n + i], n <= 1024; a thread block takes a system (parallel cyclic reduction, or another one).
//
// The backward error max|b - A*x| / (|A|*max|x| + max|b|), |A| the largest row sum, is NaN or large where a pivot vanished or elements
// grew: the host looks at it and solves such systems again, with interchanges.
//
// Traffic a row, s bytes a value: interleaved 13*s (three diagonals and b twice, c' and x written and read again, x written once more);
// strided 5*s, and 4*s for the error from the cache. Flops a row: interleaved 16; strided at most 14*ceil(log2 n) + 4, 20 by cyclic reduction or 8 by
// Thomas's algorithm, and 6 for the error with 2 by every thread and 3 by one.

#include "device.h"

constexpr u32 LARGEST = 1024;

// NaN where the size overflows: nothing is known then.
DEVICE double backward(double residual, double size) {
    return residual == 0 && size == 0 ? 0 : size < __builtin_inf() ? residual / size : __builtin_nan("");
}

template <class T>
DEVICE void interleaved(u32 n, u32 m, const T *lower, const T *diag, const T *upper, const T *b, T *scratch, T *x, double *error) {
    for (u64 s = place(); s < m; s += places()) {
        // c'[i] = c[i] / pivot, x[i] = (b[i] - a[i]*x[i-1]) / pivot
        T pivot = diag[s], c = 0, d = b[s] / pivot;
        x[s] = d;
#pragma unroll 1
        for (u64 i = 1; i < n; i++) {
            const u64 k = i * m + s;
            c = upper[k - m] / pivot;
            scratch[k - m] = c;
            pivot = fused(-lower[k], c, diag[k]);
            d = fused(-lower[k], d, b[k]) / pivot;
            x[k] = d;
        }
        // x[i] <- x[i] - c'[i]*x[i+1], with the residual of the row below, which is complete then
        double residual = 0, norm = 0, largest_x = magnitude((double)d), largest_b = 0;
        T below = 0, here = d;
#pragma unroll 1
        for (u64 i = n; i-- > 0;) {
            const u64 k = i * m + s;
            const T above = i > 0 ? fused(-scratch[k - m], here, x[k - m]) : (T)0;
            if (i > 0) x[k - m] = above;
            const T lo = i > 0 ? lower[k] : (T)0, up = i + 1 < n ? upper[k] : (T)0;
            const T r = fused(-up, below, fused(-diag[k], here, fused(-lo, above, b[k])));
            residual = larger(residual, magnitude((double)r));
            norm = larger(norm, magnitude((double)lo) + magnitude((double)diag[k]) + magnitude((double)up));
            largest_x = larger(largest_x, magnitude((double)above));
            largest_b = larger(largest_b, magnitude((double)b[k]));
            below = here;
            here = above;
        }
        const double size = fused(norm, largest_x, largest_b);
        error[s] = backward(residual, size);
    }
}

// The largest of each of four values over a block of whole warps, in every thread. `scratch` holds four for each of WARP warps.
DEVICE void largest_of(double (&v)[4], double *scratch) {
    const u32 lane = thread() % WARP, warps = threads() / WARP;
    const auto over_lanes = [&] {
        for (u32 mask = WARP / 2; mask > 0; mask /= 2)
            for (u32 q = 0; q < 4; q++) v[q] = larger(v[q], across(v[q], mask));
    };
    over_lanes();
    for (u32 q = 0; q < 4; q++)
        if (lane == 0) scratch[thread() / WARP * 4 + q] = v[q];
    barrier();
    for (u32 q = 0; q < 4; q++) v[q] = lane < warps ? scratch[lane * 4 + q] : 0;
    over_lanes();
    barrier();
}

template <class T>
DEVICE void strided(u32 n, u32 m, const T *lower, const T *diag, const T *upper, const T *b, T *x, double *error, u32 solver, T *shared, double *scratch) {
    T *as = shared, *bs = shared + LARGEST, *cs = shared + 2 * LARGEST, *ds = shared + 3 * LARGEST;
    const u32 i = thread();
#pragma unroll 1
    for (u32 s = block(); s < m; s += blocks()) {
        const u64 k = (u64)s * n + i;
        const bool mine = i < n;
        if (mine) {
            as[i] = i > 0 ? lower[k] : (T)0;
            bs[i] = diag[k];
            cs[i] = i + 1 < n ? upper[k] : (T)0;
            ds[i] = b[k];
        }
        barrier();
        const T value = solve_by(solver, i, n, n, as, bs, cs, ds);
        if (mine) x[k] = ds[i] = value;
        barrier();
        // The equation again, from the cache: registers are scarce.
        const T lo = mine && i > 0 ? lower[k] : (T)0, di = mine ? diag[k] : (T)1, up = mine && i + 1 < n ? upper[k] : (T)0;
        const T rhs = mine ? b[k] : (T)0;
        T r = mine ? fused(-di, value, rhs) : (T)0;
        if (mine && i > 0) r = fused(-lo, ds[i - 1], r);
        if (mine && i + 1 < n) r = fused(-up, ds[i + 1], r);
        const double row = mine ? magnitude((double)lo) + magnitude((double)di) + magnitude((double)up) : 0.0;
        double most[4] = {magnitude((double)r), row, magnitude((double)value), magnitude((double)rhs)};
        largest_of(most, scratch);
        const double residual = most[0], size = fused(most[1], most[2], most[3]);
        if (i == 0) error[s] = backward(residual, size);
        barrier();
    }
}

#define KERNELS(T, S)                                                                                                    \
    extern "C" __global__ void __bounds__(BLOCK) tridiagonal_interleaved_##S(                                           \
        u32 n, u32 m, const T *lower, const T *diag, const T *upper, const T *b, T *scratch, T *x, double *error) {      \
        interleaved<T>(n, m, lower, diag, upper, b, scratch, x, error);                                                  \
    }                                                                                                                    \
    extern "C" __global__ void __attribute__((launch_bounds(LARGEST, 1))) tridiagonal_strided_##S(                      \
        u32 n, u32 m, const T *lower, const T *diag, const T *upper, const T *b, T *x, double *error, u32 solver) {      \
        __shared__ T shared[4 * LARGEST];                                                                                \
        __shared__ double scratch[4 * WARP];                                                                       \
        strided<T>(n, m, lower, diag, upper, b, x, error, solver, shared, scratch);                                      \
    }

KERNELS(float, f32)
KERNELS(double, f64)
