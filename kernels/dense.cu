// Dense systems: random butterflies from both sides, LU without pivoting, substitutions.
//
//   A <- W1'*A*W2,   A = L*U by panels of PANEL columns, four of them before the rest of A is touched
//
// Panel:   [A11 A12]   A11 = L11*U11, L21 = A21*U11^-1, U12 = L11^-1*A12: one launch, every thread block factors A11 by itself.
//          [A21 A22]
// Update:  A22 <- A22 - L21*U12 by TILE x TILE tiles, 4 x 4 values a thread, factors through shared memory SLAB deep.
//
// (The blocks: G. H. Golub, C. F. Van Loan, Matrix Computations, 4th ed., section 3.2.11; register tiles on GPUs: V. Volkov, J. W.
// Demmel, SC08, doi:10.1109/SC.2008.5214359.) A is stored by columns, n apart; factored diagonal blocks wait in a buffer of their own,
// because other thread blocks read A11 meanwhile, and are put back at the end.
//
// Traffic, s bytes a value: butterflies of depth d 4*s*n^2, and 2*d*s*n^2 of their entries from the cache; a panel 4*s*PANEL values for every row
// below it; updates about n^3 * s * (2/3 / (4*PANEL) + 2/3 / TILE), the second part from the cache; a substitution s*n^2/2.
// Flops: butterflies 4*d*n^2, of a vector 2*d*n; the factorization 2/3 n^3, by whole tiles. A panel takes 33488 in every thread block, for the
// diagonal block, 1024 for every row below it and 253952 for every BLOCK columns to its right; an update 8192 for each of its depths and tiles. A
// substitution n^2 for each right-hand side; the triangle on the diagonal 992 (and 1024 quotients by all lanes) in every thread block.

#include "device.h"

constexpr u32 PANEL = 32, TILE = 64, SLAB = 16, PART = 8;
// Distances of rows and columns in shared memory, so that neighbours are in other banks.
constexpr u32 PITCH = PANEL + 1, STAGE = BLOCK + 4;
// A triangle, and whether it is transposed: what is solved with.
enum : u32 { LOWER, UPPER, UPPER_TRANSPOSED, LOWER_TRANSPOSED };

// Where a thread holds many values: at least so many thread blocks on a multiprocessor, 128 registers a thread where they are two.
#define __wide__(blocks) __attribute__((launch_bounds(BLOCK, blocks)))

template <class T> struct Matrix {
    u32 n;
    T *a;
    // Factored diagonal blocks, PANEL*PANEL values each.
    T *diagonal;
    // Of each panel: 0, or 1 + the column whose pivot cannot be divided by.
    u32 *status;
};

DEVICE float smallest(float) { return 0x1p-126f; }
DEVICE double smallest(double) { return 0x1p-1022; }

// Lines of n values, `along` apart, `across` from line to line: x <- W'*x (transposed) or x <- W*x. w: level l at l*n, see
// bt_direct::Butterfly, whose roundings these are. Section s of a line begins at s*q; a thread takes the places i + s*q of all s.
template <class T, u32 DEPTH>
DEVICE void butterfly(u32 n, const T *w, u32 lines, u64 along, u64 across, u32 transposed, T *x) {
    constexpr u32 SECTIONS = 1 << DEPTH;
    const u32 q = n / SECTIONS;
    for (u64 e = place(); e < (u64)q * lines; e += places()) {
        // Neighbouring threads take neighbouring values.
        const u64 i = along == 1 ? e % q : e / lines, line = along == 1 ? e / q : e % lines;
        T *at = x + i * along + line * across;
        T v[SECTIONS];
#pragma unroll
        for (u32 s = 0; s < SECTIONS; s++) v[s] = at[(u64)s * q * along];
        if (transposed) {
#pragma unroll
            for (u32 l = 0; l < DEPTH; l++) {
                const u32 level = DEPTH - 1 - l, half = SECTIONS >> (level + 1);
#pragma unroll
                for (u32 s = 0; s < SECTIONS; s++)
                    if (!(s & half)) {
                        const T *own = w + (u64)level * n + (u64)s * q + i;
                        const T sum = v[s] + v[s + half], difference = v[s] - v[s + half];
                        v[s] = sum * own[0];
                        v[s + half] = difference * own[(u64)half * q];
                    }
            }
        } else {
#pragma unroll
            for (u32 level = 0; level < DEPTH; level++) {
                const u32 half = SECTIONS >> (level + 1);
#pragma unroll
                for (u32 s = 0; s < SECTIONS; s++)
                    if (!(s & half)) {
                        const T *own = w + (u64)level * n + (u64)s * q + i;
                        const T first = v[s] * own[0], second = v[s + half] * own[(u64)half * q];
                        v[s] = first + second;
                        v[s + half] = first - second;
                    }
            }
        }
#pragma unroll
        for (u32 s = 0; s < SECTIONS; s++) at[(u64)s * q * along] = v[s];
    }
}

// m[p] <- row i of columns k .. k + w, zeros beyond. Neighbouring threads have neighbouring rows.
template <class T> DEVICE void own_row(const Matrix<T> &s, u64 i, bool mine, u32 k, u32 w, T *m) {
#pragma unroll
    for (u32 p = 0; p < PANEL; p++) m[p] = mine && p < w ? s.a[(u64)(k + p) * s.n + i] : (T)0;
}

// m[p] <- rows k .. k + w of column first + thread, zeros beyond `end`: PART rows of BLOCK columns at a time through `stage`.
template <class T> DEVICE void own_column(const Matrix<T> &s, u64 first, u64 end, u32 k, u32 w, T *m, T *stage) {
#pragma unroll
    for (u32 top = 0; top < PANEL; top += PART) {
        for (u32 e = thread(); e < PART * BLOCK; e += BLOCK) {
            const u32 r = e % PART;
            const u64 j = first + e / PART;
            stage[r * STAGE + e / PART] = j < end && top + r < w ? s.a[j * s.n + k + top + r] : (T)0;
        }
        barrier();
#pragma unroll
        for (u32 r = 0; r < PART; r++) m[top + r] = stage[r * STAGE + thread()];
        barrier();
    }
}

// d <- the diagonal block at k, by columns, bordered by the identity.
template <class T> DEVICE void load_diagonal(const Matrix<T> &s, u32 k, u32 w, T *d) {
    for (u32 e = thread(); e < PANEL * PANEL; e += BLOCK) {
        const u32 r = e % PANEL, c = e / PANEL;
        d[c * PITCH + r] = r < w && c < w ? s.a[(u64)(k + c) * s.n + k + r] : r == c ? (T)1 : (T)0;
    }
    barrier();
}

// The panel at column k. Thread blocks: rows below in groups of BLOCK, then columns to the right; one at least.
template <class T> DEVICE void panel(const Matrix<T> &s, u32 k, T *d, T *inverse, T *stage) {
    const u32 step = k / PANEL, w = s.n - k < PANEL ? s.n - k : PANEL, low = k + w;
    const u32 before = step > 0 ? s.status[step - 1] : 0;
    if (before) {
        if (block() == 0 && thread() == 0) s.status[step] = before;
        return;
    }
    load_diagonal(s, k, w, d);
    // A11 = L11*U11: a row a lane, every eighth column a warp. L11 is scaled at the end, so that a step is one barrier.
    const u32 r = thread() % PANEL;
    u32 bad = 0;
#pragma unroll 1
    for (u32 p = 0; p < PANEL; p++) {
        const T pivot = d[p * PITCH + p], size = magnitude(pivot);
        // The reciprocal of a smaller one may overflow.
        if (!bad && !(size >= smallest(pivot) && size < __builtin_inf())) bad = k + p + 1;
        const T over = (T)1 / pivot, l = d[p * PITCH + r] * over;
        if (thread() == 0) inverse[p] = over;
        if (r > p)
            for (u32 c = thread() / PANEL; c < PANEL; c += BLOCK / PANEL)
                if (c > p) d[c * PITCH + r] = fused(-l, d[c * PITCH + p], d[c * PITCH + r]);
        barrier();
    }
    for (u32 c = thread() / PANEL; c < PANEL; c += BLOCK / PANEL)
        if (r > c) d[c * PITCH + r] *= inverse[c];
    barrier();
    if (block() == 0) {
        for (u32 e = thread(); e < PANEL * PANEL; e += BLOCK)
            s.diagonal[(u64)step * PANEL * PANEL + e] = d[e / PANEL * PITCH + e % PANEL];
        if (thread() == 0) s.status[step] = bad;
    }
    if (bad || low == s.n) return;
    const u32 groups = (s.n - low + BLOCK - 1) / BLOCK;
    T x[PANEL];
    if (block() < groups) {
        // x <- x*U11^-1
        const u64 i = (u64)low + (u64)block() * BLOCK + thread();
        own_row(s, i, i < s.n, k, w, x);
#pragma unroll
        for (u32 p = 0; p < PANEL; p++) {
            x[p] *= inverse[p];
#pragma unroll
            for (u32 c = p + 1; c < PANEL; c++) x[c] = fused(-x[p], d[c * PITCH + p], x[c]);
        }
        if (i < s.n)
#pragma unroll
            for (u32 p = 0; p < PANEL; p++) s.a[(u64)(k + p) * s.n + i] = x[p];
    } else {
        // x <- L11^-1*x
        const u64 first = (u64)low + (u64)(block() - groups) * BLOCK;
        own_column(s, first, s.n, k, w, x, stage);
#pragma unroll
        for (u32 p = 0; p < PANEL; p++)
#pragma unroll
            for (u32 q = p + 1; q < PANEL; q++) x[q] = fused(-d[p * PITCH + q], x[p], x[q]);
#pragma unroll
        for (u32 top = 0; top < PANEL; top += PART) {
#pragma unroll
            for (u32 q = 0; q < PART; q++) stage[q * STAGE + thread()] = x[top + q];
            barrier();
            for (u32 e = thread(); e < PART * BLOCK; e += BLOCK) {
                const u64 j = first + e / PART;
                if (j < s.n) s.a[j * s.n + k + top + e % PART] = stage[e % PART * STAGE + e / PART];
            }
            barrier();
        }
    }
}

// A(i, j) <- A(i, j) - sum of A(i, k)*A(k, j) over from <= k < low, for i, j >= low with min(i, j) < high. Thread blocks: the first
// `strip` rows of tiles, then the first `strip` columns of the other rows.
template <class T> DEVICE void update(const Matrix<T> &s, u32 from, u32 low, u32 high, T *as, T *bs) {
    if (s.status[low / PANEL - 1]) return;
    const u32 across = (s.n - low + TILE - 1) / TILE, strip = (high - low + TILE - 1) / TILE, top = across * strip;
    const u32 rest = block() - top, other = across - strip;
    const u32 ti = block() < top ? block() % strip : strip + rest % other, tj = block() < top ? block() / strip : rest / other;
    const u64 i0 = (u64)low + (u64)ti * TILE, j0 = (u64)low + (u64)tj * TILE;
    const u32 tx = thread() % 16, ty = thread() / 16;
    // The next slab is on its way while this one is multiplied: 4 values of each factor a thread.
    T next_a[4], next_b[4];
    const u64 row = i0 + thread() % TILE;
    const u32 depth = thread() % SLAB;
    auto fetch = [&](u32 k) {
#pragma unroll
        for (u32 q = 0; q < 4; q++) {
            const u64 column = j0 + thread() / SLAB + q * (BLOCK / SLAB);
            next_a[q] = row < s.n ? s.a[(u64)(k + thread() / TILE + q * (BLOCK / TILE)) * s.n + row] : (T)0;
            next_b[q] = column < s.n ? s.a[column * s.n + k + depth] : (T)0;
        }
    };
    T sum[4][4] = {};
    fetch(from);
#pragma unroll 1
    for (u32 k = from; k < low; k += SLAB) {
#pragma unroll
        for (u32 q = 0; q < 4; q++) {
            as[(thread() / TILE + q * (BLOCK / TILE)) * TILE + thread() % TILE] = next_a[q];
            bs[depth * (TILE + 1) + thread() / SLAB + q * (BLOCK / SLAB)] = next_b[q];
        }
        barrier();
        if (k + SLAB < low) fetch(k + SLAB);
#pragma unroll
        for (u32 p = 0; p < SLAB; p++) {
            T x[4], y[4];
#pragma unroll
            for (u32 q = 0; q < 4; q++) {
                x[q] = as[p * TILE + tx + 16 * q];
                y[q] = bs[p * (TILE + 1) + ty + 16 * q];
            }
#pragma unroll
            for (u32 r = 0; r < 4; r++)
#pragma unroll
                for (u32 c = 0; c < 4; c++) sum[r][c] = fused(x[r], y[c], sum[r][c]);
        }
        barrier();
    }
#pragma unroll
    for (u32 c = 0; c < 4; c++)
#pragma unroll
        for (u32 r = 0; r < 4; r++) {
            const u64 i = i0 + tx + 16 * r, j = j0 + ty + 16 * c;
            if (i < s.n && j < s.n && (i < high || j < high)) s.a[j * s.n + i] -= sum[r][c];
        }
}

// The factored diagonal blocks back to A.
template <class T> DEVICE void settle(const Matrix<T> &s) {
    for (u64 e = place(); e < (u64)s.n * PANEL; e += places()) {
        const u64 j = e / PANEL, i = j / PANEL * PANEL + e % PANEL;
        if (i < s.n) s.a[j * s.n + i] = s.diagonal[e];
    }
}

// measured: pivots, then largest moduli of columns of L below them, then of rows of U. Thread blocks: a column each, then WARP rows.
template <class T> DEVICE void measure(const Matrix<T> &s, double *measured, double *scratch) {
    const u64 n = s.n;
    double v = 0;
    if (block() < n) {
        const u64 k = block();
        for (u64 i = k + 1 + thread(); i < n; i += BLOCK) v = larger(v, magnitude((double)s.a[k * n + i]));
        v = reduce<Largest>(v, scratch);
        if (thread() == 0) {
            measured[k] = s.a[k * n + k];
            measured[n + k] = v;
        }
        return;
    }
    const u64 i = (block() - n) * WARP + thread() % WARP;
    if (i < n)
#pragma unroll 4
        for (u64 j = i + thread() / WARP; j < n; j += BLOCK / WARP) v = larger(v, magnitude((double)s.a[j * n + i]));
    scratch[thread()] = v;
    barrier();
    if (thread() < WARP && i < n) {
        for (u32 part = 1; part < BLOCK / WARP; part++) v = larger(v, scratch[part * WARP + thread()]);
        measured[2 * n + i] = v;
    }
}

// One step of a substitution, at the diagonal block k: to(k) <- triangle^-1 * from(k), then from(i) <- from(i) - its part of to(k) for the
// rows i that come later. At most COLUMNS right-hand sides, a warp each in the triangle; a thread block takes BLOCK rows.
template <class T, u32 COLUMNS>
DEVICE void substitute(const Matrix<T> &s, u32 k, u32 form, u32 nrhs, T *from, T *to, T *d, T *solved, T *stage) {
    const u32 w = s.n - k < PANEL ? s.n - k : PANEL, lane = thread() % WARP, warp = thread() / WARP;
    const bool forward = form == LOWER || form == UPPER_TRANSPOSED, unit = form == LOWER || form == LOWER_TRANSPOSED;
    const bool transposed = form == UPPER_TRANSPOSED || form == LOWER_TRANSPOSED;
    const u64 first = forward ? (u64)k + w : 0, end = forward ? s.n : k;
    const u64 start = first + (u64)block() * BLOCK, i = start + thread();
    if (block() > 0 && start >= end) return;
    load_diagonal(s, k, w, d);
    if (warp < COLUMNS && warp < nrhs) {
        const u64 at = (u64)warp * s.n + k + lane;
        T v = lane < w ? from[at] : (T)0;
#pragma unroll 1
        for (u32 q = 0; q < PANEL; q++) {
            const u32 p = forward ? q : PANEL - 1 - q;
            if (!unit && lane == p) v /= d[p * PITCH + p];
            const T known = from_lane(v, p);
            const T factor = transposed ? d[lane * PITCH + p] : d[p * PITCH + lane];
            if (forward ? lane > p : lane < p) v = fused(-factor, known, v);
        }
        solved[warp * PANEL + lane] = v;
        if (block() == 0 && lane < w) to[at] = v;
    }
    barrier();
    if (start >= end) return;
    T m[PANEL];
    if (transposed) own_column(s, start, end, k, w, m, stage);
    else own_row(s, i, i < end, k, w, m);
    if (i < end)
        for (u32 c = 0; c < COLUMNS && c < nrhs; c++) {
            T v = from[(u64)c * s.n + i];
#pragma unroll
            for (u32 p = 0; p < PANEL; p++) v = fused(-m[p], solved[c * PANEL + p], v);
            from[(u64)c * s.n + i] = v;
        }
}

// `count` steps from `step` on; more than one in a cooperative launch only, after `round` rounds of its barrier.
template <class T, u32 COLUMNS>
DEVICE void steps(const Matrix<T> &s, u32 form, u32 step, u32 count, u32 nrhs, T *from, T *to, u32 *arrived, u32 round, T *d, T *solved,
                  T *stage) {
    const u32 last = (s.n - 1) / PANEL;
#pragma unroll 1
    for (u32 q = step; q < step + count; q++) {
        if (q > step) grid_barrier(arrived, ++round);
        const u32 panel = form == LOWER || form == UPPER_TRANSPOSED ? q : last - q;
        substitute<T, COLUMNS>(s, panel * PANEL, form, nrhs, from, to, d, solved, stage);
    }
}

#define BUTTERFLIES(T, S, DEPTH)                                                                                          \
    extern "C" __global__ void __wide__(2) dense_butterfly_##DEPTH##_##S(                                                \
        u32 n, const T *w, u32 lines, u64 along, u64 across, u32 transposed, T *x) {                                      \
        butterfly<T, DEPTH>(n, w, lines, along, across, transposed, x);                                                   \
    }

#define SUBSTITUTIONS(T, S, COLUMNS)                                                                                      \
    extern "C" __global__ void __wide__(2) dense_substitute_##COLUMNS##_##S(                                              \
        Matrix<T> s, u32 form, u32 step, u32 count, u32 nrhs, T *from, T *to, u32 *arrived, u32 round) {                  \
        __shared__ T d[PANEL * PITCH], solved[COLUMNS * PANEL], stage[PART * STAGE];                                      \
        steps<T, COLUMNS>(s, form, step, count, nrhs, from, to, arrived, round, d, solved, stage);                        \
    }

#define KERNELS(T, S)                                                                                                     \
    BUTTERFLIES(T, S, 1)                                                                                                  \
    BUTTERFLIES(T, S, 2)                                                                                                  \
    BUTTERFLIES(T, S, 3)                                                                                                  \
    BUTTERFLIES(T, S, 4)                                                                                                  \
    SUBSTITUTIONS(T, S, 1)                                                                                                \
    SUBSTITUTIONS(T, S, 8)                                                                                                \
    extern "C" __global__ void __wide__(1) dense_panel_##S(Matrix<T> s, u32 k) {                                          \
        __shared__ T d[PANEL * PITCH], inverse[PANEL], stage[PART * STAGE];                                               \
        panel<T>(s, k, d, inverse, stage);                                                                                \
    }                                                                                                                     \
    extern "C" __global__ void __wide__(2) dense_update_##S(Matrix<T> s, u32 from, u32 low, u32 high) {                  \
        __shared__ T as[SLAB * TILE], bs[SLAB * (TILE + 1)];                                                              \
        update<T>(s, from, low, high, as, bs);                                                                            \
    }                                                                                                                     \
    extern "C" __global__ void __bounds__(BLOCK) dense_settle_##S(Matrix<T> s) { settle<T>(s); }                         \
    extern "C" __global__ void __bounds__(BLOCK) dense_measure_##S(Matrix<T> s, double *measured) {                      \
        __shared__ double scratch[BLOCK];                                                                                 \
        measure<T>(s, measured, scratch);                                                                                 \
    }

KERNELS(float, f32)
KERNELS(double, f64)
