// y = alpha*A*x + beta*y for compressed rows, diagonals, and block-tridiagonal matrices with banded or dense diagonal blocks.
//
// Traffic, s bytes a value: compressed rows nnz(s + 4) + 4(n + 1) + reads of x + s*n; diagonals d*n*s + reads of x + s*n;
// block-tridiagonal the values, s + 4 bytes a coupling, 20 a row (28 with dense blocks) + reads of x + s*n.
// beta = 0 never reads y. Both ends of a row are read by each of its lanes, x once for every entry, from the cache where they are near each other.
// Flops: 2*nnz + n, and 2n where y is read; of several lanes a row their sum. A row is summed in one fixed order, whatever the grid.

#include "device.h"

template <class T> DEVICE void store(T *y, u64 i, T alpha, T sum, T beta) {
    y[i] = beta == (T)0 ? alpha * sum : fused(beta, y[i], alpha * sum);
}

// LANES neighbouring lanes a row; rows are dealt out in groups so that all lanes of a warp reach the shuffles.
template <class T, u32 LANES>
DEVICE void csr_rows(u32 n, const u32 *ptr, const u32 *col, const T *val, T alpha, const T *x, T beta, T *y) {
    const u64 step = places() / LANES;
    for (u64 first = place() / LANES - (place() % WARP) / LANES; first < n; first += step) {
        const u64 i = first + (place() % WARP) / LANES;
        T sum = 0;
        if (i < n)
            for (u32 k = ptr[i] + thread() % LANES; k < ptr[i + 1]; k += LANES) sum = fused(val[k], x[col[k]], sum);
        if (LANES > 1) sum = sum_lanes(sum, LANES);
        if (i < n && thread() % LANES == 0) store(y, i, alpha, sum, beta);
    }
}

// Entries that a block takes at once, 16 KiB of them in double precision.
constexpr u32 TILE = 2048;

template <class T, u32 LANES>
DEVICE void tile_rows(u32 low, u32 high, const u32 *ptr, const T *product, T alpha, T beta, T *y) {
    const u32 start = ptr[low];
    for (u32 first = low; first < high; first += BLOCK / LANES) {
        const u32 i = first + thread() / LANES;
        T sum = 0;
        if (i < high)
            for (u32 k = ptr[i] - start + thread() % LANES; k < ptr[i + 1] - start; k += LANES) sum += product[k];
        if (LANES > 1) sum = sum_lanes(sum, LANES);
        if (i < high && thread() % LANES == 0) store(y, i, alpha, sum, beta);
    }
}

// Products in shared memory, then sums of segments: block g takes rows group[g] .. group[g + 1], TILE entries in all at most, or
// one longer row. (J. L. Greathouse, M. Daga, SC14, doi:10.1109/SC.2014.68, their CSR-Stream and CSR-Vector.)
template <class T>
DEVICE void csr_groups(u32 groups, const u32 *group, const u32 *ptr, const u32 *col, const T *val, T alpha, const T *x, T beta,
                       T *y) {
    __shared__ T product[TILE];
    for (u32 g = block(); g < groups; g += blocks()) {
        const u32 low = group[g], high = group[g + 1], start = ptr[low], end = ptr[high];
        if (end - start > TILE) {
            T sum = 0;
            for (u32 k = start + thread(); k < end; k += BLOCK) sum = fused(val[k], x[col[k]], sum);
            sum = sum_lanes(sum, WARP);
            if (thread() % WARP == 0) product[thread() / WARP] = sum;
            barrier();
            if (thread() == 0) {
                for (u32 w = 1; w < BLOCK / WARP; w++) sum += product[w];
                store(y, low, alpha, sum, beta);
            }
        } else {
            for (u32 k = start + thread(); k < end; k += BLOCK) product[k - start] = val[k] * x[col[k]];
            barrier();
            // As many lanes a row as the rows leave.
            if (high - low <= BLOCK / 32) tile_rows<T, 32>(low, high, ptr, product, alpha, beta, y);
            else if (high - low <= BLOCK / 8) tile_rows<T, 8>(low, high, ptr, product, alpha, beta, y);
            else tile_rows<T, 1>(low, high, ptr, product, alpha, beta, y);
        }
        barrier();
    }
}

// Diagonal d holds A(i, i + offset[d]) at [d*n + i]; places outside A are not read.
template <class T>
DEVICE void dia_rows(u32 nrows, u32 ncols, u32 diagonals, const int *offset, const T *val, T alpha, const T *x, T beta, T *y) {
    for (u64 i = place(); i < nrows; i += places()) {
        T sum = 0;
        for (u32 d = 0; d < diagonals; d++) {
            const long long c = (long long)i + offset[d];
            if (c >= 0 && c < ncols) sum = fused(val[(u64)d * nrows + i], x[c], sum);
        }
        store(y, i, alpha, sum, beta);
    }
}

// Row i is in block home[i], rows first[home] .. first[home + 1]. The diagonal blocks: kl + 1 + ku diagonals aligned by rows where
// starts is null, else dense blocks, column-major, block j from starts[j] on. The couplings: compressed rows.
template <class T>
DEVICE void hybrid_rows(u32 n, const u32 *home, const u32 *first, u32 kl, u32 ku, const u64 *starts, const T *diagonal,
                        const u32 *ptr, const u32 *col, const T *val, T alpha, const T *x, T beta, T *y) {
    for (u64 i = place(); i < n; i += places()) {
        const u32 j = home[i], low = first[j], high = first[j + 1];
        T sum = 0;
        if (starts) {
            const T *dense = diagonal + starts[j] + (i - low);
            for (u32 c = low; c < high; c++) sum = fused(dense[(u64)(c - low) * (high - low)], x[c], sum);
        } else {
            const u64 from = i > (u64)low + kl ? i - kl : low, to = i + ku + 1 < high ? i + ku + 1 : high;
            for (u64 c = from; c < to; c++) sum = fused(diagonal[(kl + c - i) * n + i], x[c], sum);
        }
        for (u32 k = ptr[i]; k < ptr[i + 1]; k++) sum = fused(val[k], x[col[k]], sum);
        store(y, i, alpha, sum, beta);
    }
}

#define KERNELS(T, S)                                                                                                       \
    extern "C" __global__ void __bounds__(BLOCK) csr_thread_##S(u32 n, const u32 *ptr, const u32 *col, const T *val, T alpha, \
                                                               const T *x, T beta, T *y) {                                 \
        csr_rows<T, 1>(n, ptr, col, val, alpha, x, beta, y);                                                                \
    }                                                                                                                       \
    extern "C" __global__ void __bounds__(BLOCK) csr_eight_##S(u32 n, const u32 *ptr, const u32 *col, const T *val, T alpha, \
                                                              const T *x, T beta, T *y) {                                  \
        csr_rows<T, 8>(n, ptr, col, val, alpha, x, beta, y);                                                                \
    }                                                                                                                       \
    extern "C" __global__ void __bounds__(BLOCK) csr_warp_##S(u32 n, const u32 *ptr, const u32 *col, const T *val, T alpha, \
                                                             const T *x, T beta, T *y) {                                   \
        csr_rows<T, 32>(n, ptr, col, val, alpha, x, beta, y);                                                               \
    }                                                                                                                       \
    extern "C" __global__ void __bounds__(BLOCK) csr_segments_##S(u32 groups, const u32 *group, const u32 *ptr,            \
                                                                 const u32 *col, const T *val, T alpha, const T *x,        \
                                                                 T beta, T *y) {                                           \
        csr_groups<T>(groups, group, ptr, col, val, alpha, x, beta, y);                                                     \
    }                                                                                                                       \
    extern "C" __global__ void __bounds__(BLOCK) dia_##S(u32 nrows, u32 ncols, u32 diagonals, const int *offset,           \
                                                        const T *val, T alpha, const T *x, T beta, T *y) {                 \
        dia_rows<T>(nrows, ncols, diagonals, offset, val, alpha, x, beta, y);                                               \
    }                                                                                                                       \
    extern "C" __global__ void __bounds__(BLOCK) hybrid_##S(u32 n, const u32 *home, const u32 *first, u32 kl, u32 ku,      \
                                                           const u64 *starts, const T *diagonal, const u32 *ptr,           \
                                                           const u32 *col, const T *val, T alpha, const T *x, T beta,      \
                                                           T *y) {                                                         \
        hybrid_rows<T>(n, home, first, kl, ku, starts, diagonal, ptr, col, val, alpha, x, beta, y);                         \
    }

KERNELS(float, f32)
KERNELS(double, f64)
