// ILU(0) and IC(0): the factorization on a pattern, and the solves with its triangles.
//
// Row i waits for the rows k < i that it names. Rows are taken in the order of their levels (E. Anderson, Y. Saad, Int. J. High Speed
// Comput. 1 (1989), doi:10.1142/S0129053389000056), so that neighbours seldom wait for each other, and no level waits for all of the
// one before: a value is a mark until it is known, and who needs it reads it until it is no mark. (Such solves without barriers: W. Liu,
// A. Li, J. Hogg, I. S. Duff, B. Vinter, Euro-Par 2016, doi:10.1007/978-3-319-43659-3_45.) A block takes the next rows by a ticket, so
// that all it waits for is done or on its way, whatever order blocks start in. A value is one word, written and read whole: it needs
// no fence.
//
//   factor:  l(i,k) <- w(k) / u(k,k),  w(j) <- w(j) - l(i,k)*u(k,j) on the pattern of row i, k in order
//   lower:   y <- L^-1 * r             upper:  z <- U^-1 * y
//
// (Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., Algorithm 10.4, doi:10.1137/1.9780898718003.) The processor divides
// the rows of U by the diagonal first, and fuses products with differences where it can: its values differ by roundings.
//
// Traffic of an application, s bytes a value, z entries in both strict triangles: z(s + 4) + 20n + 8*s*n, and gathers of z values; 8n for the
// ends of rows from the cache, and what is read again while it is waited for. Flops: 2z + n. The factorization: s + 4 bytes for every entry right of the
// diagonal in row k that is looked at, for every entry (i,k) of L, and 8 or 12 to find its place; where there is one 3*s more and 2 flops, on the
// diagonal 3; 6*s + 12 bytes and one flop an entry of L, 2*s one of U, s each for the largest of a row; a row 16 + 5*s bytes and 7 flops.

#include "device.h"

DEVICE u64 bits(double v) { return __builtin_bit_cast(u64, v); }
DEVICE u32 bits(float v) { return __builtin_bit_cast(u32, v); }
DEVICE double not_a_number(double) { return __builtin_nan(""); }
DEVICE float not_a_number(float) { return __builtin_nanf(""); }

// All bits set: a NaN that no operation gives.
template <class T> DEVICE bool is_mark(T v) { return !~bits(v); }
DEVICE void mark(double *to) { *to = __builtin_bit_cast(double, ~0ull); }
DEVICE void mark(float *to) { *to = __builtin_bit_cast(float, ~0u); }

template <class T> DEVICE void publish(T *to, T v) { *(volatile T *)to = is_mark(v) ? not_a_number(v) : v; }
template <class T> DEVICE T await(const T *from) {
    for (;;) {
        const T v = *(const volatile T *)from;
        if (!is_mark(v)) return v;
    }
}

// body(p) for all p < n by LANES neighbouring lanes each, in the order of the tickets. `ticket` is 0 before the launch.
template <u32 LANES, class Body> DEVICE void by_ticket(u32 n, u32 *ticket, Body body) {
    __shared__ u32 next;
    for (;;) {
        barrier();
        if (thread() == 0) next = (u32)__nvvm_atom_add_gen_i((int *)ticket, 1);
        barrier();
        const u64 first = (u64)next * (BLOCK / LANES), p = first + thread() / LANES;
        if (first >= n) return;
        if (p < n) body(p);
    }
}
// The lanes that share a row with this one.
template <u32 LANES> DEVICE u32 members() { return LANES == WARP ? ALL : ((1u << LANES % WARP) - 1) << thread() % WARP / LANES * LANES; }

// What a factorization leaves, beside the factors: pivots that were replaced; the first row without a positive pivot, where that is
// asked for; the first row that overflows; the ticket.
struct Status { u32 replaced, stopped, overflowed, ticket; };

template <class T> struct Pattern {
    u32 n, positive;
    // Entries of row i: ptr[i] .. ptr[i + 1], columns increasing, the diagonal at diag[i]. Rows in the order of their levels.
    const u32 *ptr, *col, *diag, *order;
    // A, overwritten; L and U at the same places, and 1 / the diagonal of U, all marks before.
    T *w, *lu, *reciprocal;
    Status *status;
    // A + shift*diag(A) is factored. Pivots of at most `cancelled` of the terms that made them are replaced.
    double shift, cancelled;
};

// A pivot that can be divided by: one that terms |a(i,i)| + sum |l(i,k)*u(k,i)| have cancelled to rounding becomes 1e-4 of them, with its
// sign; without terms 1e-4 of the largest of its row of A.
template <class T> DEVICE T usable(T pivot, T terms, T largest, double cancelled, bool &replaced) {
    const T size = magnitude(pivot);
    const double scale = terms > 0 ? (double)terms : largest > 0 ? (double)largest : 1;
    replaced = !((double)size > cancelled * (double)terms);
    const T sign = size == 0 ? (T)1 : pivot / size;
    return replaced ? sign * (T)(1e-4 * scale) : pivot;
}

template <class T, u32 LANES> DEVICE void eliminate(const Pattern<T> &s, u32 i) {
    const u32 lane = thread() % LANES, same = members<LANES>(), diag = s.diag[i], end = s.ptr[i + 1];
    T largest = 0;
    for (u32 e = s.ptr[i] + lane; e < end; e += LANES) {
        const T size = magnitude(s.w[e]);
        largest = size > largest ? size : largest;
    }
    for (u32 mask = LANES / 2; mask > 0; mask /= 2) {
        const T other = across(largest, mask, same);
        largest = other > largest ? other : largest;
    }
    if (LANES > 1) __nvvm_bar_warp_sync(same);
    // What this lane adds to the diagonal, in moduli.
    T terms = 0;
    if (lane == 0) {
        const T own = s.w[diag] * (T)(1 + s.shift);
        s.w[diag] = own;
        terms = magnitude(own);
    }
    if (LANES > 1) __nvvm_bar_warp_sync(same);
#pragma unroll 1
    for (u32 e = s.ptr[i]; e < diag; e++) {
        const u32 k = s.col[e];
        const T l = s.w[e] * await(s.reciprocal + k);
        u32 at = e + 1;
#pragma unroll 1
        for (u32 f = s.diag[k] + 1 + lane; f < s.ptr[k + 1]; f += LANES) {
            const u32 j = s.col[f];
            while (at < end && s.col[at] < j) at++;
            if (at == end) break;
            if (s.col[at] == j) {
                // In two roundings.
                const T product = l * await(s.lu + f);
                s.w[at] -= product;
                if (at == diag) terms += magnitude(product);
            }
        }
        if (lane == 0) publish(s.lu + e, l);
        if (LANES > 1) __nvvm_bar_warp_sync(same);
    }
    for (u32 mask = LANES / 2; mask > 0; mask /= 2) terms += across(terms, mask, same);
    for (u32 e = diag + 1 + lane; e < end; e += LANES) publish(s.lu + e, s.w[e]);
    if (lane > 0) return;
    bool replaced;
    const T found = s.w[diag], pivot = usable(found, terms, largest, s.cancelled, replaced), reciprocal = (T)1 / pivot;
    if (replaced) __nvvm_atom_add_gen_i((int *)&s.status->replaced, 1);
    if (s.positive && (replaced || !(found > 0))) __nvvm_atom_min_gen_ui(&s.status->stopped, i);
    if (!(magnitude(reciprocal) < __builtin_inf())) __nvvm_atom_min_gen_ui(&s.status->overflowed, i);
    publish(s.lu + diag, pivot);
    publish(s.reciprocal + i, reciprocal);
}

// A triangle without its diagonal, rows by position: levels one after another.
template <class T> struct Triangle {
    u32 n;
    // Columns as positions, in the order in which the processor adds.
    const u32 *ptr, *idx;
    const T *val;
    // 1 / diagonal by position; not of L.
    const T *reciprocal;
    // Where the right-hand side of a position lies, and where z goes.
    const u32 *source, *target;
    // By position: marks before the launch.
    T *x;
    u32 *ticket, *other_ticket;
};

// x[p] <- (rhs - N*x) / diagonal. Each launch makes marks of what the other one is going to write.
template <class T, u32 LANES, bool UPPER> DEVICE void solve(const Triangle<T> &s, T *rhs, T *out, const double *now) {
    if (stopped(now)) return;
    if (place() == 0) *s.other_ticket = 0;
    by_ticket<LANES>(s.n, s.ticket, [&](u64 p) {
        const u32 lane = thread() % LANES;
        T sum = 0;
        if (lane == 0) {
            T *const from = rhs + s.source[p];
            sum = *from;
            if (UPPER) mark(from);
            else mark(out + p);
        }
        for (u32 k = s.ptr[p] + lane; k < s.ptr[p + 1]; k += LANES) {
            const T product = s.val[k] * await(s.x + s.idx[k]);
            sum = sum - product;
        }
        if (LANES > 1) sum = sum_lanes(sum, LANES, members<LANES>());
        if (lane > 0) return;
        if (UPPER) out[s.target[p]] = sum *= s.reciprocal[p];
        publish(s.x + p, sum);
    });
}

#define FAMILY(T, S, LANES)                                                                                                 \
    extern "C" __global__ void __bounds__(BLOCK) ilu0_factor_##LANES##_##S(Pattern<T> s) {                                  \
        by_ticket<LANES>(s.n, &s.status->ticket, [&](u64 p) { eliminate<T, LANES>(s, s.order[p]); });                       \
    }                                                                                                                       \
    extern "C" __global__ void __bounds__(BLOCK)                                                                            \
        ilu0_lower_##LANES##_##S(Triangle<T> s, T *rhs, T *out, const double *now) {                                        \
        solve<T, LANES, false>(s, rhs, out, now);                                                                           \
    }                                                                                                                       \
    extern "C" __global__ void __bounds__(BLOCK)                                                                            \
        ilu0_upper_##LANES##_##S(Triangle<T> s, T *rhs, T *out, const double *now) {                                        \
        solve<T, LANES, true>(s, rhs, out, now);                                                                            \
    }
// to[i] <- from[where[i]], and all marks.
#define MOVES(T, S)                                                                                                         \
    extern "C" __global__ void __bounds__(BLOCK) ilu0_gather_##S(u64 n, const u32 *where, const T *from, T *to) {           \
        for (u64 i = place(); i < n; i += places()) to[i] = from[where[i]];                                                 \
    }                                                                                                                       \
    extern "C" __global__ void __bounds__(BLOCK) ilu0_mark_##S(u64 n, T *to) {                                              \
        for (u64 i = place(); i < n; i += places()) mark(to + i);                                                           \
    }

FAMILY(float, f32, 1)
FAMILY(float, f32, 8)
FAMILY(float, f32, 32)
FAMILY(double, f64, 1)
FAMILY(double, f64, 8)
FAMILY(double, f64, 32)
MOVES(float, f32)
MOVES(double, f64)
