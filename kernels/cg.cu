// The preconditioned conjugate gradient method in two launches an iteration, or all iterations in one cooperative launch.
//
//   direction:  p <- z + beta*p,  q <- A*p,  p'q;   x <- x + alpha*p of the step before
//   residual:   r <- r - alpha*q,  z <- M*r,  r'z, r'r
//   inner:      r'z, where z <- M*r are launches between
//
// beta and alpha are made of the sums that the blocks of the launch before left: every block adds them up again, in the same
// order, so no launch is needed for a scalar and none comes to the host. The direction is formed where it is gathered, z + beta*p
// for every entry of A, into the other one of two vectors.
//
// x is one step late, so that when a residual turns out worse than the one before, x is still the better iterate and is set aside.
//
// Traffic of an iteration, s bytes a value, with M diagonal: nnz(s + 4) + 4n + gathers of z and p + 10*s*n, 8*s*n with M = I, and z and p of
// each row once more from the cache; another M: its own and nnz(s + 4) + 4n + gathers + 10*s*n. Flops: 4*nnz + 13n, 12n with M = I: an entry of A
// costs its part of the direction, too. In blocks of k rows, p of them, A has p(s*k*k + 4) + 4n/k bytes, and p*k*k entries.

#include "device.h"

template <class T> struct System {
    u32 n, precond;
    const u32 *ptr, *col;
    const T *val;
    // 1 / diagonal
    const T *inverse;
    // z is r where M = I.
    T *x, *r, *z, *p, *q, *best;
    // Of r'z and r'r, and of p'q: sums of the blocks.
    double *part_r, *part_q, *state, *history;
    u32 blocks_r, blocks_q;
    // Rows of a block where A is of blocks.
    u64 block;
};

template <class T> DEVICE void leave(const System<T> &s, double rz, double rr, double *scratch) {
    rz = reduce<Sum>(rz, scratch);
    rr = reduce<Sum>(rr, scratch);
    if (thread() == 0) {
        s.part_r[block()] = rz;
        s.part_r[s.blocks_r + block()] = rr;
    }
}

// z <- M*r and the terms of r'z, r'r in row i.
template <class T> DEVICE void precondition(const System<T> &s, u64 i, T r, double &rz, double &rr) {
    const T z = s.precond == DIAGONAL ? s.z[i] = s.inverse[i] * r : r;
    rz = fused((double)r, (double)z, rz);
    rr = fused((double)r, (double)r, rr);
}

// r <- b - A*x
template <class T, u32 LANES> DEVICE void start(const System<T> &s, const T *b, double *scratch) {
    double rz = 0, rr = 0;
    const auto store = [&](u64 i, T sum) { precondition(s, i, s.r[i] = b[i] - sum, rz, rr); };
    multiply<T, LANES>(s, [&](u32 c) { return s.x[c]; }, store);
    leave(s, rz, rr, scratch);
}

// r'z in place of r'r, which stands there until M is applied.
template <class T> DEVICE void inner(const System<T> &s, const double *now, double *scratch) {
    if (stopped(now)) return;
    double rz = 0;
#pragma unroll 1
    for (u64 i = place(); i < s.n; i += places()) rz = fused((double)s.r[i], (double)s.z[i], rz);
    rz = reduce<Sum>(rz, scratch);
    if (thread() == 0) s.part_r[block()] = rz;
}

// True when the run has stopped; the same in all blocks.
template <class T, u32 LANES>
DEVICE bool direction(const System<T> &s, u32 step, u32 limit, bool fresh, double threshold, double *scratch) {
    const double *old = s.state + ((step + 1) & 1) * FIELDS;
    double *now = s.state + (step & 1) * FIELDS;
    const bool first = block() == 0 && thread() == 0;
    if (handed_on(old, now, fresh, first)) return true;
    const double rz = reduce_all<Sum>(s.part_r, s.blocks_r, scratch), rr = reduce_all<Sum>(s.part_r + s.blocks_r, s.blocks_r, scratch);
    const double norm = root(rr);
    const u32 early = verdict(norm, threshold, step, limit);
    const u32 stop = early != GO_ON || rz > 0 ? early : rz != rz ? NON_FINITE : BAD_PRECONDITIONER;
    // The iterate that x still is was better than the one it becomes, and than all before.
    const bool keep = !fresh && !(rr <= old[RR]) && old[RR] < old[BEST];
    const T alpha = fresh ? (T)0 : (T)old[ALPHA], beta = fresh ? (T)0 : (T)(rz / old[RHO]);
    const T *z = s.z, *p = s.p + (u64)((step + 1) & 1) * s.n;
    T *p_next = s.p + (u64)(step & 1) * s.n;
    double pq = 0;
    const auto behind = [&](u64 i) {
        if (fresh) return;
        const T x = s.x[i];
        if (keep) s.best[i] = x;
        s.x[i] = fused(alpha, p[i], x);
    };
    const auto at = [&](u64 c) { return fresh ? z[c] : fused(beta, p[c], z[c]); };
    const auto store = [&](u64 i, T sum) {
        behind(i);
        const T pi = p_next[i] = at(i);
        s.q[i] = sum;
        pq = fused((double)pi, (double)sum, pq);
    };
    if (stop == GO_ON) multiply<T, LANES>(s, at, store);
    else
#pragma unroll 1
        for (u64 i = place(); i < s.n; i += places()) behind(i);
    pq = reduce<Sum>(pq, scratch);
    if (thread() == 0) s.part_q[block()] = pq;
    if (first) {
        now[RHO] = rz;
        now[RR] = rr;
        now[BEST] = keep ? old[RR] : old[BEST];
        now[STOP] = stop;
        now[STOP_LATER] = GO_ON;
        now[AT] = step;
        s.history[step % HISTORY] = norm;
    }
    return stop != GO_ON;
}

template <class T> DEVICE void residual(const System<T> &s, u32 step, double *scratch) {
    double *now = s.state + (step & 1) * FIELDS;
    if (now[STOP] != GO_ON) return;
    const double pq = reduce_all<Sum>(s.part_q, s.blocks_q, scratch);
    const bool first = block() == 0 && thread() == 0;
    if (!(pq > 0)) {
        if (first) now[STOP_LATER] = pq != pq ? NON_FINITE : BAD_OPERATOR;
        return;
    }
    const double ratio = now[RHO] / pq;
    if (first) now[ALPHA] = ratio;
    const T alpha = (T)ratio;
    double rz = 0, rr = 0;
#pragma unroll 1
    for (u64 i = place(); i < s.n; i += places()) {
        const T r = s.r[i] = fused(-alpha, s.q[i], s.r[i]);
        precondition(s, i, r, rz, rr);
    }
    leave(s, rz, rr, scratch);
}

// At most `count` steps from `step` on, by as many blocks as left sums: blocks_r = blocks_q = the grid. z <- M*r by `parts` steps where
// M is not diagonal.
template <class T, u32 LANES>
DEVICE void all(const System<T> &s, u32 step, u32 count, u32 limit, bool fresh, double threshold, u32 *arrived, const Step<T> *m, u32 parts,
                T *shared, double *scratch) {
    u32 round = 0;
    for (u32 end = step + count; step < end; step++) {
        const bool stopped = direction<T, LANES>(s, step, limit, fresh, threshold, scratch);
        grid_barrier(arrived, ++round);
        if (stopped) {
            if (block() == 0) settle(s.state, step);
            return;
        }
        residual(s, step, scratch);
        grid_barrier(arrived, ++round);
        if (parts > 0) {
            const double *now = s.state + (step & 1) * FIELDS;
            round = apply_all(m, parts, now, arrived, round, shared);
            inner(s, now, scratch);
            grid_barrier(arrived, ++round);
        }
        fresh = false;
    }
}

// Directions are gathered twice for every entry: four thread blocks on a multiprocessor have more of that under way than three.
#define PRODUCTS(T, S, LANES)                                                                                               \
    extern "C" __global__ void __bounds__(BLOCK) cg_start_##LANES##_##S(System<T> s, const T *b) {                          \
        __shared__ double scratch[BLOCK / WARP];                                                                            \
        start<T, LANES>(s, b, scratch);                                                                                     \
    }                                                                                                                       \
    extern "C" __global__ void __attribute__((launch_bounds(BLOCK, 4)))                                                     \
        cg_direction_##LANES##_##S(System<T> s, u32 step, u32 limit, u32 fresh, double threshold) {                         \
        __shared__ double scratch[BLOCK / WARP];                                                                            \
        direction<T, LANES>(s, step, limit, fresh != 0, threshold, scratch);                                                \
    }

// Without launches between: of compressed rows.
#define KERNELS(T, S, LANES)                                                                                                \
    PRODUCTS(T, S, LANES)                                                                                                   \
    extern "C" __global__ void __bounds__(BLOCK)                                                                            \
        cg_all_##LANES##_##S(System<T> s, u32 step, u32 count, u32 limit, u32 fresh, double threshold, u32 *arrived) {      \
        __shared__ double scratch[BLOCK / WARP];                                                                            \
        all<T, LANES>(s, step, count, limit, fresh != 0, threshold, arrived, (const Step<T> *)nullptr, 0, (T *)nullptr, scratch); \
    }                                                                                                                       \
    extern "C" __global__ void __attribute__((launch_bounds(BLOCK, 2))) cg_swept_##LANES##_##S(System<T> s, u32 step, u32 count, u32 limit, u32 fresh, \
                                                                       double threshold, u32 *arrived, const Step<T> *m, u32 parts) { \
        __shared__ T shared[4 * BLOCK];                                                                                     \
        __shared__ double scratch[BLOCK / WARP];                                                                            \
        all<T, LANES>(s, step, count, limit, fresh != 0, threshold, arrived, m, parts, shared, scratch);                           \
    }

KERNELS(float, f32, 1)
KERNELS(float, f32, 8)
KERNELS(float, f32, 32)
KERNELS(double, f64, 1)
KERNELS(double, f64, 8)
KERNELS(double, f64, 32)
PRODUCTS(float, f32, 0)
PRODUCTS(double, f64, 0)

#define VECTORS(T, S)                                                                                                       \
    extern "C" __global__ void __bounds__(BLOCK) cg_residual_##S(System<T> s, u32 step) {                                   \
        __shared__ double scratch[BLOCK / WARP];                                                                            \
        residual(s, step, scratch);                                                                                         \
    }                                                                                                                       \
    extern "C" __global__ void __bounds__(BLOCK) cg_inner_##S(System<T> s, const double *now) {                             \
        __shared__ double scratch[BLOCK / WARP];                                                                            \
        inner(s, now, scratch);                                                                                             \
    }

VECTORS(float, f32)
VECTORS(double, f64)
