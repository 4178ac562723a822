// ILUT(p, tau) by parallel sweeps: which entries L and U have.
//
// H. Anzt, E. Chow, J. Dongarra, SIAM J. Sci. Comput. 40 (2018) C503-C519, doi:10.1137/16M1079506. With a pattern S and values of L and U on it,
// a step computes row by row, all rows at once, from the values of the step before (a Jacobi step, the same bits in every run),
//
//   w(i,j) = a(i,j) - sum over k < min(i,j) of l(i,k)*u(k,j),     l(i,j) <- w(i,j)/u(j,j) left of the diagonal,  u(i,j) <- w(i,j) elsewhere
//
// for all (i,j) of S, of A and of the product L*U, which are the candidates; keeps of each row the p largest left and the p largest right
// of the diagonal that change the row by tau of its norm at least; and repeats the sweep on what is kept. The threshold is a row's, as in
// ILUT (Y. Saad, doi:10.1002/nla.1680010405), and not one of the whole matrix as in the paper, so that p and tau mean what they mean on the
// processor. Sizes are relative to the rows of A, see bt-iter's ilut.rs: |l(i,k)|*|u(k,:)|/|a(i,:)| and |u(i,j)|/|a(i,:)|, or those of A*C.
//
// A warp a row: each lane holds some of the rows k of U that row i of L names, and the warp takes the smallest column of all of them, as
// in a merge of lists. Reads of a merge: 16 + s bytes an entry of L, and (4 + s) bytes for each of the products l(i,k)*u(k,j). From the cache: for every
// candidate 24 to 32 bytes of each entry of L in the row, where it is in its row of U, and 256 bytes. Flops: 2 a product, 129 a candidate, which
// is the sum over the warp; then a few for its size. Norms of U take 258 flops a row. A step has three merges; the choice of what stays reads 8
// bytes of all candidates on the same side of the diagonal for each of them, and 4 of all before it.

#include "device.h"

constexpr u32 NONE = ~0u;

template <class T> struct Search {
    u32 n, fill;
    // A; units of its columns, null where all are one; |a(i,:)| at norm[i], |a(i,:)*C| at norm[n + i].
    const u32 *a_ptr, *a_col;
    const T *a_val, *unit;
    const double *norm;
    // L and U of the step before: row i at ptr[i] .. ptr[i + 1], its diagonal at diag[i]; 1 / diagonal; |u(i,:)| and |u(i,:)*C|.
    const u32 *ptr, *col, *diag;
    T *val, *reciprocal;
    double *reach;
    // Where each entry of L is in its row of U.
    u32 *cursor;
    // What is made: rows, their diagonals, sizes and which are kept, and how many of a row.
    u32 *to_ptr, *to_col, *to_diag;
    T *to_val;
    double *to_size;
    u32 *keep, *counts, *left;
    double tolerance;
};

DEVICE u32 smallest_of_warp(u32 v) {
    for (u32 mask = WARP / 2; mask > 0; mask /= 2) {
        const u32 other = (u32)__nvvm_shfl_sync_bfly_i32(ALL, (int)v, mask, 31);
        v = other < v ? other : v;
    }
    return v;
}
DEVICE u32 sum_of_warp(u32 v) {
    for (u32 mask = WARP / 2; mask > 0; mask /= 2) v += (u32)__nvvm_shfl_sync_bfly_i32(ALL, (int)v, mask, 31);
    return v;
}

// body(i) for all rows, a warp each.
template <class Body> DEVICE void by_warps(u32 n, Body body) {
#pragma unroll 1
    for (u64 i = place() / WARP; i < n; i += places() / WARP) body((u32)i);
}

// entry(j, w) by all lanes for every column j of row i of A and of the strict products, and for i, in order.
template <class T, class Entry> DEVICE void merge(const Search<T> &s, u32 i, Entry entry) {
    const u32 lane = thread() % WARP, diag = s.diag[i], end = s.a_ptr[i + 1];
    for (u32 e = s.ptr[i] + lane; e < diag; e += WARP) s.cursor[e] = s.diag[s.col[e]] + 1;
    u32 at = s.a_ptr[i];
    bool passed = false;
    for (;;) {
        u32 j = NONE;
        if (lane == 0) {
            if (at < end) j = s.a_col[at];
            if (!passed && i < j) j = i;
        }
#pragma unroll 1
        for (u32 e = s.ptr[i] + lane; e < diag; e += WARP) {
            const u32 f = s.cursor[e];
            if (f < s.ptr[s.col[e] + 1] && s.col[f] < j) j = s.col[f];
        }
        j = smallest_of_warp(j);
        if (j == NONE) return;
        T w = 0;
        if (lane == 0) {
            if (at < end && s.a_col[at] == j) w = s.a_val[at++];
            passed |= j == i;
        }
#pragma unroll 1
        for (u32 e = s.ptr[i] + lane; e < diag; e += WARP) {
            const u32 f = s.cursor[e];
            if (f == s.ptr[s.col[e] + 1] || s.col[f] != j) continue;
            // In two roundings.
            const T product = s.val[e] * s.val[f];
            w -= product;
            s.cursor[e] = f + 1;
        }
        entry(j, sum_lanes(w, WARP));
    }
}

// What belongs in column j of row i of the factors; 0 for what has left the range.
template <class T> DEVICE T element(const Search<T> &s, u32 i, u32 j, T w) {
    const T v = j < i ? w * s.reciprocal[j] : w;
    return magnitude(v) < __builtin_inf() ? v : (T)0;
}

// How much of row i it is.
template <class T> DEVICE double size_of(const Search<T> &s, u32 i, u32 j, T v) {
    const double size = (double)magnitude(v), unit = s.unit ? (double)s.unit[j] : 1;
    const double plain = (j < i ? size * s.reach[j] : size) / s.norm[i];
    const double scaled = (j < i ? size * s.reach[(u64)s.n + j] : size * unit) / s.norm[(u64)s.n + i];
    return scaled > plain ? scaled : plain;
}

// Entries of each row with all candidates.
template <class T> DEVICE void count(const Search<T> &s) {
    by_warps(s.n, [&](u32 i) {
        u32 entries = 0;
        merge(s, i, [&](u32, T) { entries++; });
        if (thread() % WARP == 0) s.counts[i] = entries;
    });
}

// The candidates, their values and sizes.
template <class T> DEVICE void expand(const Search<T> &s) {
    by_warps(s.n, [&](u32 i) {
        u32 to = s.to_ptr[i];
        merge(s, i, [&](u32 j, T w) {
            if (thread() % WARP == 0) {
                const T v = element(s, i, j, w);
                s.to_col[to] = j;
                s.to_val[to] = v;
                s.to_size[to] = size_of(s, i, j, v);
                if (j == i) s.to_diag[i] = to;
            }
            to++;
        });
    });
}

// Which of them stay: the diagonal; on either side of it the `fill` largest of those that are not too small, of equal ones the first.
template <class T> DEVICE void select(const Search<T> &s) {
    by_warps(s.n, [&](u32 i) {
        const u32 first = s.to_ptr[i], diag = s.to_diag[i], end = s.to_ptr[i + 1];
        u32 kept = 0, left = 0;
#pragma unroll 1
        for (u32 e = first + thread() % WARP; e < end; e += WARP) {
            const double own = s.to_size[e];
            bool keep = e == diag;
            if (!keep && own >= s.tolerance && s.to_val[e] != 0) {
                const u32 from = e < diag ? first : diag + 1, until = e < diag ? diag : end;
                u32 before = 0;
#pragma unroll 1
                for (u32 f = from; f < until; f++) before += s.to_size[f] > own || (s.to_size[f] == own && f < e);
                keep = before < s.fill;
            }
            s.keep[e] = keep;
            kept += keep;
            left += keep && e < diag;
        }
        kept = sum_of_warp(kept);
        left = sum_of_warp(left);
        if (thread() % WARP == 0) {
            s.counts[i] = kept;
            s.left[i] = left;
        }
    });
}

// Only they, as L and U: now ptr and col are what is written.
template <class T> DEVICE void compact(const Search<T> &s, const u32 *ptr, u32 *col, u32 *diag, T *val) {
    by_warps(s.n, [&](u32 i) {
        const u32 first = s.to_ptr[i], end = s.to_ptr[i + 1];
        if (thread() % WARP == 0) diag[i] = ptr[i] + s.left[i];
#pragma unroll 1
        for (u32 e = first + thread() % WARP; e < end; e += WARP) {
            if (!s.keep[e]) continue;
            u32 to = ptr[i];
#pragma unroll 1
            for (u32 f = first; f < e; f++) to += s.keep[f];
            col[to] = s.to_col[e];
            val[to] = s.to_val[e];
        }
    });
}

// The same values by one more sweep, into to_val; and of each row what A - L*U is left with: the sum of squares of all its entries, and
// of those in the pattern, relative to that of A.
template <class T> DEVICE void sweep_row(const Search<T> &s, double *left_over) {
    by_warps(s.n, [&](u32 i) {
        u32 to = s.ptr[i];
        const u32 end = s.ptr[i + 1];
        double all = 0, inside = 0;
        merge(s, i, [&](u32 j, T w) {
            if (thread() % WARP > 0) return;
            // No product and no entry of A is where these are.
            for (; to < end && s.col[to] < j; to++) s.to_val[to] = 0;
            double rest = (double)w;
            const bool mine = to < end && s.col[to] == j;
            if (mine) {
                rest -= (double)(j < i ? s.val[to] * s.val[s.diag[j]] : s.val[to]);
                s.to_val[to++] = element(s, i, j, w);
            }
            rest /= s.norm[i];
            all += rest * rest;
            if (mine) inside += rest * rest;
        });
        if (thread() % WARP > 0) return;
        for (; to < end; to++) s.to_val[to] = 0;
        left_over[i] = all;
        left_over[(u64)s.n + i] = inside;
    });
}

// 1 / diagonal and the norms of the rows of U. A diagonal of less than `least` of the row of A is taken for 1e-4 of it.
template <class T> DEVICE void measure(const Search<T> &s, double least) {
    by_warps(s.n, [&](u32 i) {
        const u32 diag = s.diag[i], end = s.ptr[i + 1];
        double largest = 0, largest_scaled = 0;
        const auto unit = [&](u32 f) { return s.unit ? (double)s.unit[s.col[f]] : 1; };
#pragma unroll 1
        for (u32 f = diag + thread() % WARP; f < end; f += WARP) {
            const double v = (double)magnitude(s.val[f]);
            largest = larger(v, largest);
            largest_scaled = larger(v * unit(f), largest_scaled);
        }
        for (u32 mask = WARP / 2; mask > 0; mask /= 2) {
            largest = larger(largest, across(largest, mask));
            largest_scaled = larger(largest_scaled, across(largest_scaled, mask));
        }
        double sum = 0, sum_scaled = 0;
        // Of squares that neither over- nor underflow.
#pragma unroll 1
        for (u32 f = diag + thread() % WARP; f < end; f += WARP) {
            const double v = (double)magnitude(s.val[f]), one = v / largest, other = v * unit(f) / largest_scaled;
            if (largest > 0) sum += one * one;
            if (largest_scaled > 0) sum_scaled += other * other;
        }
        sum = sum_lanes(sum, WARP);
        sum_scaled = sum_lanes(sum_scaled, WARP);
        if (thread() % WARP > 0) return;
        s.reach[i] = largest * root(sum);
        s.reach[(u64)s.n + i] = largest_scaled * root(sum_scaled);
        const T d = s.val[diag];
        const double norm = s.norm[i] > 0 ? s.norm[i] : 1;
        const bool usable = (double)magnitude(d) > least * norm;
        const T pivot = usable ? d : (T)(d < 0 ? -1e-4 * norm : 1e-4 * norm);
        s.reciprocal[i] = (T)1 / pivot;
    });
}

// ptr[i] <- counts[0] + .. + counts[i - 1] for i <= n, by one block; *total is the whole sum, which may need more than 32 bits.
extern "C" __global__ void __bounds__(BLOCK) ilut_scan(u32 n, const u32 *counts, u32 *ptr, u64 *total) {
    __shared__ u64 sums[BLOCK];
    u64 before = 0;
#pragma unroll 1
    for (u64 first = 0; first < n; first += BLOCK) {
        const u64 i = first + thread();
        const u32 own = i < n ? counts[i] : 0;
        sums[thread()] = own;
        barrier();
#pragma unroll 1
        for (u32 reach = 1; reach < BLOCK; reach *= 2) {
            const u64 v = thread() >= reach ? sums[thread() - reach] : 0;
            barrier();
            sums[thread()] += v;
            barrier();
        }
        if (i < n) ptr[i] = (u32)(before + sums[thread()] - own);
        before += sums[BLOCK - 1];
        barrier();
    }
    if (thread() == 0) {
        ptr[n] = (u32)before;
        *total = before;
    }
}

// Rows whose patterns differ, added to *differing.
extern "C" __global__ void __bounds__(BLOCK)
    ilut_compare(u32 n, const u32 *ptr, const u32 *col, const u32 *other_ptr, const u32 *other_col, u32 *differing) {
#pragma unroll 1
    for (u64 i = place(); i < n; i += places()) {
        const u32 count = ptr[i + 1] - ptr[i];
        bool same = other_ptr[i + 1] - other_ptr[i] == count;
        for (u32 e = 0; same && e < count; e++) same = col[ptr[i] + e] == other_col[other_ptr[i] + e];
        if (!same) __nvvm_atom_add_gen_i((int *)differing, 1);
    }
}

#define FAMILY(T, S)                                                                                                        \
    extern "C" __global__ void __bounds__(BLOCK) ilut_count_##S(Search<T> s) { count(s); }                                  \
    extern "C" __global__ void __bounds__(BLOCK) ilut_expand_##S(Search<T> s) { expand(s); }                                \
    extern "C" __global__ void __bounds__(BLOCK) ilut_select_##S(Search<T> s) { select(s); }                                \
    extern "C" __global__ void __bounds__(BLOCK)                                                                            \
        ilut_compact_##S(Search<T> s, const u32 *ptr, u32 *col, u32 *diag, T *val) {                                        \
        compact(s, ptr, col, diag, val);                                                                                    \
    }                                                                                                                       \
    extern "C" __global__ void __bounds__(BLOCK) ilut_sweep_##S(Search<T> s, double *left_over) { sweep_row(s, left_over); } \
    extern "C" __global__ void __bounds__(BLOCK) ilut_measure_##S(Search<T> s, double least) { measure(s, least); }

FAMILY(float, f32)
FAMILY(double, f64)
