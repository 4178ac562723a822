// BiCGSTAB with right preconditioning in five launches an iteration, and those of p^ <- M*p, s^ <- M*s where M is not diagonal. Where all
// rows fit on the device at once and M is diagonal or made of sweeps or blocks, many iterations are one cooperative launch, with a barrier
// of the grid in place of a launch.
//
//   direction:  p <- r + beta*(p - omega*v),  p^ <- M*p;   x <- x + alpha*p^ + omega*s^ of the step before
//   first:      v <- A*p^,  (r*, v), (v, v)
//   half:       s <- r - alpha*v,  s^ <- M*s,  (s, s)
//   second:     t <- A*s^,  (t, s), (t, t)
//   residual:   r <- s - omega*t,  (r, r), (r*, r)
//
// (H. A. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992), doi:10.1137/0913035; omega after Sleijpen and van der Vorst, Numer.
// Algorithms 10 (1995), doi:10.1007/BF02140769.) Scalars are made of sums that the blocks left, as in cg.cu; x is one step late there
// and here. s is in the place of r.
//
// Traffic of an iteration, s bytes a value: 2*nnz(s + 4) + 8n + two gathers + 23*s*n with a diagonal M, 21*s*n with M = I. Flops: 4*nnz + 28n, 26n
// with M = I.

#include "device.h"

template <class T> struct System {
    u32 n, precond;
    const u32 *ptr, *col;
    const T *val;
    // 1 / diagonal
    const T *inverse;
    T *x, *r, *shadow, *p, *p_hat, *v, *s_hat, *t, *best;
    // Sums of the blocks: (r, r), (r*, r); (r*, v), (v, v); (s, s); (t, s), (t, t).
    double *part_r, *part_v, *part_s, *part_t, *state, *history;
    u32 blocks;
    // Rows of a block where A is of blocks.
    u32 block;
    // Below this part of the product of the norms an inner product is zero.
    double negligible;
};

// hat <- M*v in row i, unless that is done elsewhere.
template <class T> DEVICE void precondition(const System<T> &s, u64 i, T v, T *hat) {
    if (s.precond != ELSEWHERE) hat[i] = s.precond == DIAGONAL ? s.inverse[i] * v : v;
}

DEVICE void leave(double *part, u32 blocks, double a, double b, double *scratch) {
    a = reduce<Sum>(a, scratch);
    b = reduce<Sum>(b, scratch);
    if (thread() == 0) {
        part[block()] = a;
        part[blocks + block()] = b;
    }
}

// to <- A*from, and the sums of to*with and to*to.
template <class T, u32 LANES>
DEVICE void product(const System<T> &s, const T *from, T *to, const T *with, double *part, double *scratch) {
    double a = 0, b = 0;
    const auto store = [&](u64 i, T sum) {
        to[i] = sum;
        a = fused((double)sum, (double)with[i], a);
        b = fused((double)sum, (double)sum, b);
    };
    multiply<T, LANES>(s, [&](u32 c) { return from[c]; }, store);
    leave(part, s.blocks, a, b, scratch);
}

template <class T> DEVICE bool stopped(const System<T> &s, u32 step) { return stopped(s.state + (step & 1) * FIELDS); }

// r <- b - A*x, (r, r) and (r, r) again, for the shadow residual is r.
template <class T, u32 LANES> DEVICE void start(const System<T> &s, const T *b, double *scratch) {
    double rr = 0;
    const auto store = [&](u64 i, T sum) {
        const T r = s.r[i] = s.shadow[i] = b[i] - sum;
        rr = fused((double)r, (double)r, rr);
    };
    multiply<T, LANES>(s, [&](u32 c) { return s.x[c]; }, store);
    leave(s.part_r, s.blocks, rr, rr, scratch);
}

// True when the run has stopped; the same in all blocks.
template <class T> DEVICE bool direction(const System<T> &s, u32 step, u32 limit, bool fresh, double threshold, double *scratch) {
    const double *old = s.state + ((step + 1) & 1) * FIELDS;
    double *now = s.state + (step & 1) * FIELDS;
    const bool first = block() == 0 && thread() == 0;
    if (handed_on(old, now, fresh, first)) return true;
    const double rr = reduce_all<Sum>(s.part_r, s.blocks, scratch), rho = reduce_all<Sum>(s.part_r + s.blocks, s.blocks, scratch);
    const double norm = root(rr), shadow = fresh ? norm : old[SHADOW];
    u32 stop = verdict(norm, threshold, step, limit);
    if (stop == GO_ON && !fresh && old[OMEGA] == 0) stop = NO_OMEGA;
    if (stop == GO_ON && !(__builtin_fabs(rho) > s.negligible * shadow * norm)) stop = ORTHOGONAL;
    // The iterate that x still is was better than the one it becomes, and than all before.
    const bool keep = !fresh && !(rr <= old[RR]) && old[RR] < old[BEST];
    const T alpha = fresh ? (T)0 : (T)old[ALPHA], omega = fresh ? (T)0 : (T)old[OMEGA];
    const T beta = fresh ? (T)0 : (T)((rho / old[RHO]) * (old[ALPHA] / old[OMEGA]));
#pragma unroll 1
    for (u64 i = place(); i < s.n; i += places()) {
        if (!fresh) {
            const T x = s.x[i];
            if (keep) s.best[i] = x;
            s.x[i] = fused(omega, s.s_hat[i], fused(alpha, s.p_hat[i], x));
        }
        if (stop != GO_ON) continue;
        const T p = fresh ? s.r[i] : fused(beta, fused(-omega, s.v[i], s.p[i]), s.r[i]);
        s.p[i] = p;
        precondition(s, i, p, s.p_hat);
    }
    if (first) {
        now[RHO] = rho;
        now[RR] = rr;
        now[BEST] = keep ? old[RR] : old[BEST];
        now[STOP] = stop;
        now[STOP_LATER] = GO_ON;
        now[AT] = step;
        now[SHADOW] = shadow;
        s.history[step % HISTORY] = norm;
    }
    return stop != GO_ON;
}

// True when the run stops here; the same in all blocks.
template <class T> DEVICE bool half(const System<T> &s, u32 step, double *scratch) {
    double *now = s.state + (step & 1) * FIELDS;
    const double sigma = reduce_all<Sum>(s.part_v, s.blocks, scratch), vv = reduce_all<Sum>(s.part_v + s.blocks, s.blocks, scratch);
    const bool first = block() == 0 && thread() == 0;
    if (!(__builtin_fabs(sigma) > s.negligible * now[SHADOW] * root(vv))) {
        if (first) now[STOP_LATER] = sigma != sigma ? NON_FINITE : ORTHOGONAL;
        return true;
    }
    const double ratio = now[RHO] / sigma;
    if (first) now[ALPHA] = ratio;
    const T alpha = (T)ratio;
    double ss = 0;
#pragma unroll 1
    for (u64 i = place(); i < s.n; i += places()) {
        const T next = fused(-alpha, s.v[i], s.r[i]);
        s.r[i] = next;
        precondition(s, i, next, s.s_hat);
        ss = fused((double)next, (double)next, ss);
    }
    ss = reduce<Sum>(ss, scratch);
    if (thread() == 0) s.part_s[block()] = ss;
    return false;
}

template <class T> DEVICE void residual(const System<T> &s, u32 step, double *scratch) {
    const double ss = reduce_all<Sum>(s.part_s, s.blocks, scratch);
    const double ts = reduce_all<Sum>(s.part_t, s.blocks, scratch), tt = reduce_all<Sum>(s.part_t + s.blocks, s.blocks, scratch);
    // omega <- (t, s) / (t, t), enlarged to a cosine of 0.7
    const double norms = root(ss) * root(tt), cosine = norms > 0 ? __builtin_fabs(ts) / norms : 0;
    const double stretch = cosine < 0.7 && cosine > s.negligible ? 0.7 / cosine : 1;
    const double ratio = norms == 0 ? 0 : ts * stretch / tt;
    const T omega = (T)ratio;
    if (block() == 0 && thread() == 0) s.state[(step & 1) * FIELDS + OMEGA] = ratio;
    double rr = 0, rho = 0;
#pragma unroll 1
    for (u64 i = place(); i < s.n; i += places()) {
        const T r = fused(-omega, s.t[i], s.r[i]);
        s.r[i] = r;
        rr = fused((double)r, (double)r, rr);
        rho = fused((double)r, (double)s.shadow[i], rho);
    }
    leave(s.part_r, s.blocks, rr, rho, scratch);
}

// At most `count` steps from `step` on. p^ <- M*p by `parts` steps where M is not diagonal, and s^ <- M*s by as many behind them.
template <class T, u32 LANES>
DEVICE void all(const System<T> &s, u32 step, u32 count, u32 limit, bool fresh, double threshold, u32 *arrived, const Step<T> *m, u32 parts,
                T *shared, double *scratch) {
    u32 round = 0;
    for (u32 end = step + count; step < end; step++) {
        const bool over = direction<T>(s, step, limit, fresh, threshold, scratch);
        grid_barrier(arrived, ++round);
        if (over) {
            if (block() == 0) settle(s.state, step);
            return;
        }
        fresh = false;
        const double *now = s.state + (step & 1) * FIELDS;
        round = apply_all(m, parts, now, arrived, round, shared);
        product<T, LANES>(s, s.p_hat, s.v, s.shadow, s.part_v, scratch);
        grid_barrier(arrived, ++round);
        const bool breaks = half<T>(s, step, scratch);
        grid_barrier(arrived, ++round);
        // The next direction hands the end on.
        if (breaks) continue;
        round = apply_all(m + parts, parts, now, arrived, round, shared);
        product<T, LANES>(s, s.s_hat, s.t, s.r, s.part_t, scratch);
        grid_barrier(arrived, ++round);
        residual<T>(s, step, scratch);
        grid_barrier(arrived, ++round);
    }
}

#define PRODUCTS(T, S, LANES)                                                                                        \
    extern "C" __global__ void __bounds__(BLOCK) bicgstab_start_##LANES##_##S(System<T> s, const T *b) {             \
        __shared__ double scratch[BLOCK / WARP];                                                                     \
        start<T, LANES>(s, b, scratch);                                                                              \
    }                                                                                                                \
    extern "C" __global__ void __bounds__(BLOCK) bicgstab_first_##LANES##_##S(System<T> s, u32 step) {               \
        __shared__ double scratch[BLOCK / WARP];                                                                     \
        if (!stopped(s, step)) product<T, LANES>(s, s.p_hat, s.v, s.shadow, s.part_v, scratch);                      \
    }                                                                                                                \
    extern "C" __global__ void __bounds__(BLOCK) bicgstab_second_##LANES##_##S(System<T> s, u32 step) {              \
        __shared__ double scratch[BLOCK / WARP];                                                                     \
        if (!stopped(s, step)) product<T, LANES>(s, s.s_hat, s.t, s.r, s.part_t, scratch);                           \
    }
// Without launches between: of compressed rows.
#define KERNELS(T, S, LANES)                                                                                         \
    PRODUCTS(T, S, LANES)                                                                                            \
    extern "C" __global__ void __bounds__(BLOCK)                                                                     \
        bicgstab_all_##LANES##_##S(System<T> s, u32 step, u32 count, u32 limit, u32 fresh, double threshold, u32 *arrived) { \
        __shared__ double scratch[BLOCK / WARP];                                                                     \
        all<T, LANES>(s, step, count, limit, fresh != 0, threshold, arrived, (const Step<T> *)nullptr, 0, (T *)nullptr, scratch); \
    }                                                                                                                \
    extern "C" __global__ void __attribute__((launch_bounds(BLOCK, 2))) bicgstab_swept_##LANES##_##S(                  \
        System<T> s, u32 step, u32 count, u32 limit, u32 fresh, double threshold, u32 *arrived, const Step<T> *m, u32 parts) { \
        __shared__ T shared[4 * BLOCK];                                                                              \
        __shared__ double scratch[BLOCK / WARP];                                                                     \
        all<T, LANES>(s, step, count, limit, fresh != 0, threshold, arrived, m, parts, shared, scratch);                    \
    }
#define VECTORS(T, S)                                                                                                \
    extern "C" __global__ void __bounds__(BLOCK)                                                                     \
        bicgstab_direction_##S(System<T> s, u32 step, u32 limit, u32 fresh, double threshold) {                      \
        __shared__ double scratch[BLOCK / WARP];                                                                     \
        direction<T>(s, step, limit, fresh != 0, threshold, scratch);                                                \
    }                                                                                                                \
    extern "C" __global__ void __bounds__(BLOCK) bicgstab_half_##S(System<T> s, u32 step) {                          \
        __shared__ double scratch[BLOCK / WARP];                                                                     \
        if (s.state[(step & 1) * FIELDS + STOP] == GO_ON) half<T>(s, step, scratch);                                 \
    }                                                                                                                \
    extern "C" __global__ void __bounds__(BLOCK) bicgstab_residual_##S(System<T> s, u32 step) {                      \
        __shared__ double scratch[BLOCK / WARP];                                                                     \
        if (!stopped(s, step)) residual<T>(s, step, scratch);                                                        \
    }

KERNELS(float, f32, 1)
KERNELS(float, f32, 8)
KERNELS(float, f32, 32)
KERNELS(double, f64, 1)
KERNELS(double, f64, 8)
KERNELS(double, f64, 32)
PRODUCTS(float, f32, 0)
PRODUCTS(double, f64, 0)
VECTORS(float, f32)
VECTORS(double, f64)
