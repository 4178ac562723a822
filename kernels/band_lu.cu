// LU of band matrices with partial pivoting, as LAPACK's gbtrf and gbtrs have it: batches of systems of any sizes and bandwidths.
//
// Element (i, j) is at [j*ld + kl + ku + i - j], ld = 2*kl + ku + 1: U has up to kl + ku diagonals above its main one, and L stays where
// it was made, the exchanges as they came (E. Anderson et al., LAPACK Users' Guide, 3rd ed., section 5.3.3). A thread block takes a
// system. The kl + ku + 1 columns at work lie in shared memory where they fit (kl = ku <= 31 in double precision, 44 in single), and
// otherwise in the cache.
//
// Flops kl + 2*kl*(kl + ku) a column, fewer in the last ones. Traffic 2*s*n*ld bytes where the window is in shared memory; otherwise a column about
// 2*s*kl*(kl + ku), and 4*s*(kl + ku) where rows are exchanged, from the cache. A solve reads s*n*ld bytes, and x twice in and out; flops
// 2*(2*kl + ku) a row, and a quotient by each lane of the warp.

#include "device.h"

// System s: rows row[s] .. row[s + 1] of all rows of the batch, bandwidths, and where its columns begin.
template <class T> struct Systems {
    const u32 *row, *kl, *ku;
    const u64 *begin;
    T *values;
    // Row exchanged with each row, below it by; 0, or 1 + the column (counted in its system) without a pivot.
    u32 *pivots, *status;
};

// In shared memory the columns follow each other in a circle behind the multipliers; otherwise all are where they stay.
template <bool SHARED, class T>
DEVICE u32 factor(T *a, u32 n, u32 kl, u32 ku, u32 *pivots, T *l, T *window, u32 *chosen) {
    const u32 kv = kl + ku, ld = kl + kv + 1, size = kv + 1, t = thread();
    const u32 lane = t % WARP, warp = t / WARP, warps = threads() / WARP;
    const auto column = [&](u32 j) { return SHARED ? window + (j % size) * ld : a + (u64)j * ld; };
    u32 failed = 0;
    if (SHARED) {
        const u64 ahead = (u64)(n < size ? n : size) * ld;
#pragma unroll 1
        for (u64 e = t; e < ahead; e += threads()) window[e] = a[e];
        barrier();
    }
#pragma unroll 1
    for (u32 j = 0; j < n; j++) {
        const u32 below = kl < n - 1 - j ? kl : n - 1 - j, right = kv < n - 1 - j ? kv : n - 1 - j;
        T *own = column(j) + kv;
        if (t < WARP) {
            const u32 at = first_largest(own, below + 1);
            if (t == 0) {
                *chosen = at;
                pivots[j] = at;
            }
        }
        barrier();
        const u32 p = *chosen;
        const T pivot = own[p], top = own[0];
        if (pivot == 0 && failed == 0) failed = j + 1;
        // l = a/pivot with rows 0 and p exchanged, and the same exchange to the right
#pragma unroll 1
        for (u32 r = 1 + t; r <= below; r += threads()) l[r] = (r == p ? top : own[r]) / pivot;
        if (p > 0) {
#pragma unroll 1
            for (u32 c = 1 + t; c <= right; c += threads()) {
                T *rows = column(j + c) + kv - c;
                const T moved = rows[0];
                rows[0] = rows[p];
                rows[p] = moved;
            }
        }
        barrier();
        // a <- a - l*u
#pragma unroll 1
        for (u32 c = 1 + warp; c <= right; c += warps) {
            T *rows = column(j + c) + kv - c;
            const T u = rows[0];
#pragma unroll 1
            for (u32 r = 1 + lane; r <= below; r += WARP) rows[r] = fused(-l[r], u, rows[r]);
        }
        // Column j goes out, and in its place in the circle the next one comes in.
        T *out = a + (u64)j * ld;
#pragma unroll 1
        for (u32 e = t; e < ld; e += threads()) {
            const T value = e < kv ? own[(int)e - (int)kv] : e == kv ? pivot : e <= kv + below ? l[e - kv] : (T)0;
            if (SHARED || e >= kv) out[e] = value;
            if (SHARED && j + size < n) own[(int)e - (int)kv] = a[(u64)(j + size) * ld + e];
        }
        barrier();
    }
    return failed;
}

template <class T> DEVICE void factor_all(const Systems<T> &s, u32 m, u32 capacity, T *shared) {
    __shared__ u32 chosen;
#pragma unroll 1
    for (u32 system = block(); system < m; system += blocks()) {
        const u32 row = s.row[system], n = s.row[system + 1] - row, kl = s.kl[system], ku = s.ku[system];
        const u64 window = (u64)(kl + ku + 1) * (2 * kl + ku + 1);
        T *a = s.values + s.begin[system];
        const u32 failed = window + kl + 1 <= capacity
            ? factor<true>(a, n, kl, ku, s.pivots + row, shared, shared + kl + 1, &chosen)
            : factor<false>(a, n, kl, ku, s.pivots + row, shared, shared, &chosen);
        if (thread() == 0) s.status[system] = failed;
        barrier();
    }
}

// x <- A^-1*x for one column of one system by a warp. The kl + ku + 1 values at work are in shared memory, in a circle.
template <class T> DEVICE void solve(const Systems<T> &s, u32 n, u32 nrhs, T *x, T *window) {
    const u32 system = block() / nrhs, row = s.row[system], rows = s.row[system + 1] - row, t = thread();
    const u32 kl = s.kl[system], kv = kl + s.ku[system], ld = kl + kv + 1, size = kv + 1;
    const T *a = s.values + s.begin[system];
    T *mine = x + (u64)(block() % nrhs) * n + row;
    if (s.status[system] != 0) {
#pragma unroll 1
        for (u32 i = t; i < rows; i += WARP) mine[i] = (T)__builtin_nanf("");
        return;
    }
    // x <- L^-1*P*x, exchanges and multipliers in turn
#pragma unroll 1
    for (u32 i = t; i < size && i < rows; i += WARP) window[i] = mine[i];
#pragma unroll 1
    for (u32 j = 0; j < rows; j++) {
        const u32 below = kl < rows - 1 - j ? kl : rows - 1 - j, p = s.pivots[row + j];
        T *own = window + j % size;
        barrier();
        const T value = window[(j + p) % size], top = *own;
        barrier();
        const T *l = a + (u64)j * ld + kv;
#pragma unroll 1
        for (u32 r = 1 + t; r <= below; r += WARP) {
            T *at = window + (j + r) % size;
            *at = fused(-l[r], value, r == p ? top : *at);
        }
        if (t == 0) {
            mine[j] = value;
            if (j + size < rows) *own = mine[j + size];
        }
    }
    // x[j] <- x[j]/u[j][j], x[i] <- x[i] - u[i][j]*x[j]
    barrier();
#pragma unroll 1
    for (u32 i = t; i < size && i < rows; i += WARP) window[(rows - 1 - i) % size] = mine[rows - 1 - i];
#pragma unroll 1
    for (u32 j = rows; j-- > 0;) {
        const u32 above = kv < j ? kv : j;
        const T *u = a + (u64)j * ld + kv;
        T *own = window + j % size;
        barrier();
        const T value = *own / u[0];
        barrier();
#pragma unroll 1
        for (u32 r = 1 + t; r <= above; r += WARP) {
            T *at = window + (j - r) % size;
            *at = fused(-*(u - r), value, *at);
        }
        if (t == 0) {
            mine[j] = value;
            if (j >= size) *own = mine[j - size];
        }
    }
}

extern __shared__ double dynamic[];

#define KERNELS(T, S)                                                                                                  \
    extern "C" __global__ void __bounds__(BLOCK) band_lu_factor_##S(Systems<T> s, u32 m, u32 capacity) {               \
        factor_all<T>(s, m, capacity, (T *)dynamic);                                                                   \
    }                                                                                                                  \
    extern "C" __global__ void __bounds__(WARP) band_lu_solve_##S(Systems<T> s, u32 n, u32 nrhs, T *x) {               \
        solve<T>(s, n, nrhs, x, (T *)dynamic);                                                                         \
    }

KERNELS(float, f32)
KERNELS(double, f64)
