// LU of block-tridiagonal matrices with partial pivoting inside the diagonal blocks: batches of systems of any sizes.
//
//   P*D = L*U,  H = B*U^-1,  G = L^-1*P*C,  D' <- D' - H*G       D, B below it, C right of it, D' the next diagonal block
//
// (G. H. Golub, C. F. Van Loan, Matrix Computations, 4th ed., section 4.5.1.) A thread block takes a system, and goes through its
// blocks in panels of 16 columns of [D; B], which lie in shared memory; a panel's update of the rest goes by chunks of 64 columns of
// [D C; B D'], in place: what is stored is what the host packed, [D; B] and C of every block by columns.
//
// A panel of p columns with r rows and w columns to its right: traffic 2*s*r*(p + w) bytes, from the cache where blocks are small enough, and
// 4*s*p bytes at most for each column that rows are exchanged in, left or right. Flops: (r - c - 1)*(2*(p - c) - 1) for its column c, p*(p - 1)*w, and
// 32*(r - p)*w, since updates go as deep as a whole panel: (14/3)*k^3 a block of k rows where 16 divides k. A solve reads the factors once for
// every 8 right-hand sides: 3*s*k^2 bytes a block, and s*k^2/2 of pivots from the cache. Flops of a solve of one of them 6*k^2, and k^2/2 quotients.

#include "device.h"

// Rows of a diagonal block at most, columns of a panel, columns updated at a time, right-hand sides at a time, values that a thread
// reads at a time.
constexpr u32 LARGEST = 128, PANEL = 16, CHUNK = 64, COLUMNS = 8, AHEAD = 4;

// What is where. Block j has rows row[j] .. row[j + 1] of all rows of the batch, [D; B] from panel[j] and C from coupling[j] on.
// System s has the blocks first[s] .. first[s + 1].
template <class T> struct Systems {
    const u32 *first, *row;
    const u64 *panel, *coupling;
    T *panels, *couplings;
    // Row of a block that pivoting put in the place of each; 0, or 1 + the block (counted in its system) without a pivot.
    u32 *order, *status;
};

// Block j: k rows, `below` in the next block of its system.
template <class T> struct Block {
    u32 k, below, ld;
    u64 row;
    T *panel, *coupling;
    inline __device__ Block(const Systems<T> &s, u32 j, u32 end)
        : k(s.row[j + 1] - s.row[j]), below(j + 1 < end ? s.row[j + 2] - s.row[j + 1] : 0), ld(k + below), row(s.row[j]),
          panel(s.panels + s.panel[j]), coupling(s.couplings + s.coupling[j]) {}
};

// The place of element (r, c) of [D C; B D'], c counted from column k on in the right half.
template <class T> DEVICE T *right_half(const Block<T> &b, T *next, u32 next_ld, u32 r, u32 c) {
    return r < b.k ? b.coupling + (u64)c * b.k + r : next + (u64)c * next_ld + (r - b.k);
}

// Columns c0 .. c0 + nb of [D; B] from row c0 on, in shared memory by columns of `rows` values: L below the diagonal, U on it and above.
// False where a column has no pivot.
template <class T> DEVICE bool factor_panel(T *p, u32 rows, u32 pivots, u32 nb, u32 *order, u32 *chosen) {
    bool regular = true;
#pragma unroll 1
    for (u32 c = 0; c < nb; c++) {
        T *column = p + c * rows;
        if (thread() < WARP) {
            const u32 at = c + first_largest(column + c, pivots - c);
            if (thread() == 0) {
                chosen[c] = at;
                const u32 moved = order[c];
                order[c] = order[at];
                order[at] = moved;
            }
        }
        barrier();
        const u32 at = chosen[c];
        if (at != c && thread() < nb) {
            T *a = p + thread() * rows;
            const T moved = a[c];
            a[c] = a[at];
            a[at] = moved;
        }
        barrier();
        const T pivot = column[c];
        regular = regular && pivot != 0;
        // Each row by a thread: l = a/pivot, a <- a - l*u
#pragma unroll 1
        for (u32 r = c + 1 + thread(); r < rows; r += threads()) {
            const T l = column[r] / pivot;
            column[r] = l;
#pragma unroll 1
            for (u32 j = c + 1; j < nb; j++) p[j * rows + r] = fused(-l, p[j * rows + c], p[j * rows + r]);
        }
        barrier();
    }
    return regular;
}

// The columns from c0 + nb on of [D C; B D']: rows exchanged, U = L^-1 * rows, and the rest less L*U.
template <class T>
DEVICE void update_rest(const Block<T> &b, T *next, u32 next_ld, u32 c0, u32 nb, const T *p, T *strip, const u32 *chosen) {
    const u32 rows = b.ld - c0, t = thread();
    const u32 inside = b.k - c0 - nb, width = inside + b.below;
    const auto place = [&](u32 r, u32 c) {
        return c < inside ? b.panel + (u64)(c0 + nb + c) * b.ld + c0 + r : right_half(b, next, next_ld, c0 + r, c - inside);
    };
    // Threads along the rows, a power of two.
    u32 lanes = 8;
    while (lanes < rows - nb && lanes < threads()) lanes *= 2;
    const u32 groups = threads() / lanes;
#pragma unroll 1
    for (u32 from = 0; from < width; from += CHUNK) {
        const u32 count = width - from < CHUNK ? width - from : CHUNK;
#pragma unroll 1
        for (u32 c = t; c < count; c += threads()) {
#pragma unroll 1
            for (u32 i = 0; i < nb; i++) {
                T *here = place(i, from + c), *there = place(chosen[i], from + c);
                const T moved = *here;
                *here = *there;
                *there = moved;
            }
            // u[i] = a[i] - l[i][0]*u[0] - ... - l[i][i-1]*u[i-1]
#pragma unroll 1
            for (u32 i = 0; i < PANEL; i++) {
                T u = 0;
                if (i < nb) {
                    T *at = place(i, from + c);
                    u = *at;
#pragma unroll 1
                    for (u32 m = 0; m < i; m++) u = fused(-p[m * rows + i], strip[m * CHUNK + c], u);
                    *at = u;
                }
                strip[i * CHUNK + c] = u;
            }
        }
        barrier();
#pragma unroll 1
        for (u32 r = nb + t % lanes; r < rows; r += lanes) {
            T l[PANEL];
#pragma unroll
            for (u32 m = 0; m < PANEL; m++) l[m] = m < nb ? p[m * rows + r] : (T)0;
#pragma unroll 1
            for (u32 c = t / lanes; c < count; c += 2 * groups) {
                // Two columns at a time; without a second one the first twice.
                const u32 d = c + groups < count ? c + groups : c;
                T *first = place(r, from + c), *second = place(r, from + d), one = *first, two = *second;
#pragma unroll
                for (u32 m = 0; m < PANEL; m++) {
                    one = fused(-l[m], strip[m * CHUNK + c], one);
                    two = fused(-l[m], strip[m * CHUNK + d], two);
                }
                *first = one;
                if (d != c) *second = two;
            }
        }
        barrier();
    }
}

template <class T> DEVICE void factor(const Systems<T> &s, u32 m, T *shared) {
    __shared__ u32 order[LARGEST], chosen[PANEL];
    T *strip = shared, *p = shared + PANEL * CHUNK;
    const u32 t = thread();
#pragma unroll 1
    for (u32 system = block(); system < m; system += blocks()) {
        const u32 begin = s.first[system], end = s.first[system + 1];
        u32 failed = 0;
#pragma unroll 1
        for (u32 j = begin; j < end && failed == 0; j++) {
            const Block<T> b(s, j, end);
            T *next = b.panel;
            u32 next_ld = 0;
            if (j + 1 < end) {
                const Block<T> n(s, j + 1, end);
                next = n.panel;
                next_ld = n.ld;
            }
            for (u32 i = t; i < b.k; i += threads()) order[i] = i;
#pragma unroll 1
            for (u32 c0 = 0; c0 < b.k; c0 += PANEL) {
                const u32 nb = b.k - c0 < PANEL ? b.k - c0 : PANEL, rows = b.ld - c0;
#pragma unroll 1
                for (u32 c = 0; c < nb; c += AHEAD)
                    for (u32 r = t; r < rows; r += threads()) {
                        T v[AHEAD];
#pragma unroll
                        for (u32 i = 0; i < AHEAD; i++) v[i] = c + i < nb ? b.panel[(u64)(c0 + c + i) * b.ld + c0 + r] : (T)0;
#pragma unroll
                        for (u32 i = 0; i < AHEAD; i++)
                            if (c + i < nb) p[(c + i) * rows + r] = v[i];
                    }
                barrier();
                if (!factor_panel(p, rows, b.k - c0, nb, order + c0, chosen)) failed = j + 1 - begin;
#pragma unroll 1
                for (u32 c = 0; c < nb; c++)
                    for (u32 r = t; r < rows; r += threads()) b.panel[(u64)(c0 + c) * b.ld + c0 + r] = p[c * rows + r];
                // The rows of L that stand left of the panel change places, too.
#pragma unroll 1
                for (u32 c = t; c < c0; c += threads()) {
                    T *column = b.panel + (u64)c * b.ld + c0;
#pragma unroll 1
                    for (u32 i = 0; i < nb; i++) {
                        const T moved = column[i];
                        column[i] = column[chosen[i]];
                        column[chosen[i]] = moved;
                    }
                }
                update_rest(b, next, next_ld, c0, nb, p, strip, chosen);
                barrier();
            }
            for (u32 i = t; i < b.k; i += threads()) s.order[b.row + i] = order[i];
            barrier();
        }
        if (t == 0) s.status[system] = failed;
    }
}

// X <- A^-1 * X for Q columns from `column` on, of systems that have factors; NaN for the others.
template <u32 Q, class T> DEVICE void solve(const Systems<T> &s, u32 n, u32 nrhs, T *x) {
    __shared__ T v[Q][2 * LARGEST], w[Q][LARGEST];
    const u32 groups = (nrhs + Q - 1) / Q, system = block() / groups, column = block() % groups * Q, t = thread();
    const u32 count = nrhs - column < Q ? nrhs - column : Q, begin = s.first[system], end = s.first[system + 1];
    const auto mine = [&](u32 q, u64 i) -> T & { return x[(u64)(column + q) * n + i]; };
    if (begin == end) return;
    if (s.status[system] != 0) {
        for (u32 q = 0; q < count; q++)
            for (u64 i = s.row[begin] + t; i < s.row[end]; i += threads()) mine(q, i) = (T)__builtin_nanf("");
        return;
    }
    // y <- L^-1*P*b, and from the right side below H*y
    for (u32 i = t; i < s.row[begin + 1] - s.row[begin]; i += threads())
        for (u32 q = 0; q < Q; q++) w[q][i] = q < count ? mine(q, s.row[begin] + i) : (T)0;
    barrier();
#pragma unroll 1
    for (u32 j = begin; j < end; j++) {
        const Block<T> b(s, j, end);
#pragma unroll 1
        for (u32 i = t; i < b.ld; i += threads())
            for (u32 q = 0; q < Q; q++)
                v[q][i] = i < b.k ? w[q][s.order[b.row + i]] : q < count ? mine(q, b.row + i) : (T)0;
        barrier();
#pragma unroll 1
        for (u32 c = 0; c < b.k; c++) {
#pragma unroll 1
            for (u32 r = c + 1 + t; r < b.ld; r += threads()) {
                const T l = b.panel[(u64)c * b.ld + r];
#pragma unroll
                for (u32 q = 0; q < Q; q++) v[q][r] = fused(-l, v[q][c], v[q][r]);
            }
            barrier();
        }
#pragma unroll 1
        for (u32 i = t; i < b.ld; i += threads())
            for (u32 q = 0; q < Q; q++) {
                if (i >= b.k) w[q][i - b.k] = v[q][i];
                else if (q < count) mine(q, b.row + i) = v[q][i];
            }
        barrier();
    }
    // x <- U^-1*(y - G*x'), x' of the next block
#pragma unroll 1
    for (u32 j = end; j-- > begin;) {
        const Block<T> b(s, j, end);
#pragma unroll 1
        for (u32 i = t; i < b.k; i += threads()) {
            T sum[Q];
#pragma unroll
            for (u32 q = 0; q < Q; q++) sum[q] = q < count ? mine(q, b.row + i) : (T)0;
#pragma unroll 1
            for (u32 c = 0; c < b.below; c++) {
                const T g = b.coupling[(u64)c * b.k + i];
#pragma unroll
                for (u32 q = 0; q < Q; q++) sum[q] = fused(-g, w[q][c], sum[q]);
            }
#pragma unroll
            for (u32 q = 0; q < Q; q++) v[q][i] = sum[q];
        }
        barrier();
#pragma unroll 1
        for (u32 c = b.k; c-- > 0;) {
            const T *u = b.panel + (u64)c * b.ld;
            const T pivot = u[c];
#pragma unroll 1
            for (u32 r = t; r < c; r += threads()) {
                const T above = u[r];
#pragma unroll
                for (u32 q = 0; q < Q; q++) v[q][r] = fused(-above, v[q][c] / pivot, v[q][r]);
            }
            barrier();
        }
#pragma unroll 1
        for (u32 i = t; i < b.k; i += threads()) {
            const T pivot = b.panel[(u64)i * b.ld + i];
#pragma unroll
            for (u32 q = 0; q < Q; q++) {
                w[q][i] = v[q][i] / pivot;
                if (q < count) mine(q, b.row + i) = w[q][i];
            }
        }
        barrier();
    }
}

extern __shared__ double dynamic[];

#define KERNELS(T, S)                                                                                                  \
    extern "C" __global__ void __bounds__(BLOCK) block_lu_factor_##S(Systems<T> s, u32 m) {                            \
        factor<T>(s, m, (T *)dynamic);                                                                                 \
    }                                                                                                                  \
    extern "C" __global__ void __bounds__(BLOCK) block_lu_solve_one_##S(Systems<T> s, u32 n, u32 nrhs, T *x) {         \
        solve<1, T>(s, n, nrhs, x);                                                                                    \
    }                                                                                                                  \
    extern "C" __global__ void __bounds__(BLOCK) block_lu_solve_##S(Systems<T> s, u32 n, u32 nrhs, T *x) {             \
        solve<COLUMNS, T>(s, n, nrhs, x);                                                                              \
    }

KERNELS(float, f32)
KERNELS(double, f64)
