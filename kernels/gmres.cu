// Steps of GMRES(m) and FGMRES(m) in six launches, with those of z <- M*v where M is not diagonal; or, where all rows fit on the device at
// once and M is diagonal or made of sweeps or blocks, many steps in one cooperative launch, with a barrier of the grid in place of a launch.
//
//   product:      w <- A*z
//   project:      V'w, w'w
//   totals:       h, the sums of the blocks of these
//   project:      w <- w - V*h,  V'w, w'w
//   totals:       g, the sums of the blocks of these
//   extend:       v <- (w - V*g) / norm;  h + g to R by Givens rotations, the residual norm
//
// (Y. Saad, M. H. Schultz, SIAM J. Sci. Stat. Comput. 7 (1986), doi:10.1137/0907058; Y. Saad, SIAM J. Sci. Comput. 14 (1993),
// doi:10.1137/0914028.) Classical Gram-Schmidt done twice (L. Giraud, J. Langou, M. Rozloznik, J. van den Eshof, Numer. Math. 101 (2005),
// doi:10.1007/s00211-005-0615-4) takes two reductions: the norm of w - V*g is that of w less that of g, which is exact enough
// as long as g is small beside w; where it is not, w was rounding.
//
// w is where the next column of V will be. A cycle begins with start and begin, V(:,0) <- (b - A*x) / norm, and ends with solve, R*y = g, and
// combine, x <- x + M*(V*y) or x + Z*y.
//
// Several right-hand sides have a row of thread blocks each, and everything but A and M to themselves: rows do not wait for each other.
//
// Traffic of the step with k columns so far, s bytes a value, with M diagonal: nnz(s + 4) + 4n + gathers (two with diag(A)) + 3*s*k*n + 6*s*n
// bytes, and (k + 2)*s*n from the cache. Flops: 2*nnz (3*nnz with diag(A)) + 6*k*n + 3n, and 16n for every four of the k + 1 sums, twice, since all
// lanes of a warp add them up; 2k by every thread for the norm of g. Another M: its own beside it. The end of a cycle: s*n bytes and 2n flops a
// column, and 3*s*n; the product with A of its start.

#include "device.h"

template <class T> struct System {
    u32 n, precond;
    const u32 *ptr, *col;
    const T *val;
    // 1 / diagonal
    const T *inverse;
    const T *b;
    // V, n x (m + 1), and the z that are made elsewhere: column j from z + j*z_step on.
    T *x, *before, *v, *z;
    u64 z_step;
    // Sums of the blocks of all columns and w'w; h and g with them; R, cosines, sines, the right-hand side, y, and the norm that is small
    // enough.
    double *part, *total, *small, *state, *history;
    u32 blocks, restart;
    // Below this part of the norm before a vector is zero.
    double negligible;
    // Several right-hand sides: the one that each row of thread blocks of the grid has, and the values of V and z that one has. Null where
    // there is one.
    const u32 *columns;
    u64 vectors;
    // Rows of a block where A is of blocks.
    u64 block;
};

// What the row of this thread block has to itself.
template <class T> DEVICE System<T> own(System<T> s) {
    if (!s.columns) return s;
    const u64 c = s.columns[grid_row()], m = s.restart, numbers = m * m + 6 * m + 6, record = 2 * FIELDS + HISTORY;
    s.b += c * s.n;
    s.x += c * s.n;
    s.before += c * s.n;
    s.v += c * s.vectors;
    s.z += c * s.vectors;
    s.part += c * (m + 1) * s.blocks;
    s.total += c * numbers;
    s.small += c * numbers;
    s.state += c * record;
    s.history += c * record;
    return s;
}

// Why a cycle ends, beside what device.h has: there is no next direction; A*M maps the space into itself and is singular there.
enum : u32 { EXHAUSTED = 8, SINGULAR = 9 };
// Sums that a warp keeps at once, and those of a block.
constexpr u32 PANEL = 128, SCRATCH = PANEL * (BLOCK / WARP);
// Products that are read before the first of them is summed.
constexpr u32 GROUP = 4;
// What the second projection has to leave of the square of a norm.
constexpr double KEPT = 0.01;

template <class T> DEVICE double *state_of(const System<T> &s, u32 step) { return s.state + (step & 1) * FIELDS; }
template <class T> DEVICE double *totals_of(const System<T> &s, u32 again) { return s.total + (u64)again * (s.restart + 2); }
template <class T> DEVICE double *cosines_of(const System<T> &s) { return s.small + (u64)s.restart * s.restart; }
template <class T> DEVICE double *rhs_of(const System<T> &s) { return cosines_of(s) + 2 * (u64)s.restart; }
template <class T> DEVICE double *y_of(const System<T> &s) { return rhs_of(s) + s.restart + 1; }
// The norm that is small enough.
template <class T> DEVICE double threshold_of(const System<T> &s) { return y_of(s)[s.restart]; }

// V(:,0) <- b - A*x, and its square.
template <class T, u32 LANES> DEVICE void start(const System<T> &s, double *scratch) {
    double rr = 0;
    const auto store = [&](u64 i, T sum) {
        const T r = s.v[i] = s.b[i] - sum;
        rr = fused((double)r, (double)r, rr);
    };
    multiply<T, LANES>(s, [&](u32 c) { return s.x[c]; }, store);
    rr = reduce<Sum>(rr, scratch);
    if (thread() == 0) s.part[block()] = rr;
}

// V(:,0) of norm 1; the state before the first step.
template <class T> DEVICE void begin(const System<T> &s, double *scratch) {
    const double rr = reduce_all<Sum>(s.part, s.blocks, scratch), norm = root(rr);
    const bool usable = norm > 0 && norm < __builtin_inf();
    if (usable)
#pragma unroll 1
        for (u64 i = place(); i < s.n; i += places()) s.v[i] = (T)(s.v[i] * (1 / norm));
    if (block() == 0 && thread() == 0) {
        double *now = state_of(s, 0);
        rhs_of(s)[0] = norm;
        now[RR] = rr;
        now[STOP] = usable ? GO_ON : norm == 0 ? EXHAUSTED : NON_FINITE;
        now[STOP_LATER] = GO_ON;
        now[AT] = 0;
    }
}

// w <- A*z
template <class T, u32 LANES> DEVICE void product(const System<T> &s, u32 j) {
    const T *v = s.v + (u64)j * s.n, *z = s.z + j * s.z_step;
    T *w = s.v + (u64)(j + 1) * s.n;
    const auto at = [&](u64 c) { return s.precond == IDENTITY ? v[c] : s.precond == DIAGONAL ? s.inverse[c] * v[c] : z[c]; };
    multiply<T, LANES>(s, at, [&](u64 i, T sum) { w[i] = sum; });
}

// Again: w <- w - V*h. Then V'w for the k columns of V, and w'w behind them. A row of V is read once and then, for the sums, from the
// cache.
template <class T> DEVICE void project(const System<T> &s, u32 k, u32 again, double *scratch) {
    const double *h = totals_of(s, 0);
    T *w = s.v + (u64)k * s.n;
    const u32 lane = thread() % WARP;
    double *mine = scratch + thread() / WARP * PANEL;
#pragma unroll 1
    for (u32 low = 0; low <= k; low += PANEL) {
        const u32 high = k + 1 < low + PANEL ? k + 1 : low + PANEL;
        if (lane == 0)
#pragma unroll 1
            for (u32 q = low; q < high; q++) mine[q - low] = 0;
        // All lanes of a warp reach the shuffles.
#pragma unroll 1
        for (u64 first = place() - lane; first < s.n; first += places()) {
            const u64 i = first + lane;
            T next = i < s.n ? w[i] : (T)0;
            if (again && low == 0 && i < s.n) {
#pragma unroll 4
                for (u32 q = 0; q < k; q++) next = fused(-(T)h[q], s.v[(u64)q * s.n + i], next);
                w[i] = next;
            }
#pragma unroll 1
            for (u32 q = low; q < high; q += GROUP) {
                double terms[GROUP];
#pragma unroll
                for (u32 e = 0; e < GROUP; e++)
                    terms[e] = i < s.n && q + e < high ? (double)s.v[(u64)(q + e) * s.n + i] * (double)next : 0.0;
#pragma unroll
                for (u32 e = 0; e < GROUP; e++) {
                    const double sum = sum_lanes(terms[e], WARP);
                    if (lane == 0 && q + e < high) mine[q + e - low] += sum;
                }
            }
        }
        barrier();
#pragma unroll 1
        for (u32 q = low + thread(); q < high; q += BLOCK) {
            double sum = 0;
            for (u32 warp = 0; warp < BLOCK / WARP; warp++) sum += scratch[warp * PANEL + q - low];
            s.part[(u64)q * s.blocks + block()] = sum;
        }
        barrier();
    }
}

// The sums of the blocks, `count` of them.
template <class T> DEVICE void totals(const System<T> &s, u32 again, u32 count, double *scratch) {
#pragma unroll 1
    for (u32 q = block(); q < count; q += blocks()) {
        const double v = reduce_all<Sum>(s.part + (u64)q * s.blocks, s.blocks, scratch);
        if (thread() == 0) totals_of(s, again)[q] = v;
    }
}

// Column j of R from h + g, with `left` below, and what follows for the residual; the state of step j + 1. By one block.
template <class T> DEVICE void rotate(const System<T> &s, u32 j, double length, double left, double *scratch) {
    const double *h = totals_of(s, 0), *again = totals_of(s, 1);
    double *r = s.small + (u64)j * s.restart, *cosines = cosines_of(s), *sines = cosines + s.restart, *rhs = rhs_of(s);
    double *c = scratch, *sn = scratch + PANEL, *column = scratch + 2 * PANEL;
    double top = h[0] + again[0], largest = 0;
#pragma unroll 1
    for (u32 low = 0; low < j; low += PANEL) {
        const u32 i = low + thread();
        const bool mine = thread() < PANEL && i < j;
        if (mine) {
            c[thread()] = cosines[i];
            sn[thread()] = sines[i];
            column[thread()] = h[i + 1] + again[i + 1];
        }
        barrier();
        if (thread() == 0)
#pragma unroll 1
            for (u32 q = 0; q < PANEL && q < j - low; q++) {
                const double below = column[q];
                column[q] = fused(c[q], top, sn[q] * below);
                top = fused(c[q], below, -sn[q] * top);
                largest = larger(largest, magnitude(column[q]));
            }
        barrier();
        if (mine) r[i] = column[thread()];
        barrier();
    }
    if (thread() != 0) return;
    const double size = root(fused(top, top, left * left)), sign = top < 0 ? -1.0 : 1.0;
    const double cosine = top == 0 ? 0 : magnitude(top) / size, sine = top == 0 ? 1 : sign * left / size, corner = sign * size;
    const double norm = magnitude(sine * rhs[j]);
    r[j] = corner;
    cosines[j] = cosine;
    sines[j] = sine;
    rhs[j + 1] = -sine * rhs[j];
    rhs[j] = cosine * rhs[j];
    u32 stop = GO_ON;
    if (!(length < __builtin_inf())) stop = NON_FINITE;
    else if (!(size > s.negligible * larger(largest, size))) stop = SINGULAR;
    else stop = verdict(norm, threshold_of(s), 0, 1);
    if (stop == GO_ON && left == 0) stop = EXHAUSTED;
    double *now = state_of(s, j + 1);
    now[RR] = norm * norm;
    now[STOP] = stop;
    now[STOP_LATER] = GO_ON;
    now[AT] = j + 1;
    s.history[(j + 1) % HISTORY] = norm;
}

// V(:,j+1) <- (w - V*g) / norm
template <class T> DEVICE void extend(const System<T> &s, u32 j, double *scratch) {
    if (handed_on(state_of(s, j), state_of(s, j + 1), false, block() == 0 && thread() == 0)) return;
    const u32 k = j + 1;
    const double *h = totals_of(s, 0), *again = totals_of(s, 1);
    double removed = 0;
#pragma unroll 4
    for (u32 q = 0; q < k; q++) removed = fused(again[q], again[q], removed);
    const double length = root(h[k]), kept = again[k] - removed;
    double left = kept > KEPT * again[k] ? root(kept) : 0;
    // What rounding leaves of a vector of the space is not a direction.
    if (!(left > s.negligible * length)) left = 0;
    T *w = s.v + (u64)k * s.n;
    if (left > 0)
#pragma unroll 1
        for (u64 i = place(); i < s.n; i += places()) {
            T next = w[i];
#pragma unroll 4
            for (u32 q = 0; q < k; q++) next = fused(-(T)again[q], s.v[(u64)q * s.n + i], next);
            w[i] = (T)(next * (1 / left));
        }
    if (block() == 0) rotate(s, j, length, left, scratch);
}

// y with R*y = g for k columns, by one block.
template <class T> DEVICE void solve(const System<T> &s, u32 k) {
    const double *rhs = rhs_of(s);
    double *y = y_of(s);
#pragma unroll 1
    for (u32 i = thread(); i < k; i += BLOCK) y[i] = rhs[i];
    barrier();
#pragma unroll 1
    for (u32 j = k; j-- > 0;) {
        const double *r = s.small + (u64)j * s.restart;
        const double value = y[j] / r[j];
        barrier();
        if (thread() == 0) y[j] = value;
#pragma unroll 1
        for (u32 i = thread(); i < j; i += BLOCK) y[i] -= r[i] * value;
        barrier();
    }
}

// x <- x + d, before <- x, in row i.
template <class T> DEVICE void move(const System<T> &s, u64 i, T d) {
    const T x = s.x[i];
    s.before[i] = x;
    s.x[i] = x + d;
}

// The k columns of a basis times y: to `to`, or M*that to x.
template <class T> DEVICE void combine(const System<T> &s, u32 k, const T *basis, T *to) {
    const double *y = y_of(s);
#pragma unroll 1
    for (u64 i = place(); i < s.n; i += places()) {
        T sum = 0;
#pragma unroll 4
        for (u32 q = 0; q < k; q++) sum = fused((T)y[q], basis[(u64)q * s.n + i], sum);
        if (to) to[i] = sum;
        else move(s, i, s.precond == DIAGONAL ? s.inverse[i] * sum : sum);
    }
}

// Steps j .. j + count. z <- M*v by `parts` steps where M is not diagonal, those of column 0 first. What a row has to itself is found again in
// every phase, so that no register holds it in the others.
template <class T, u32 LANES>
DEVICE void all(const System<T> &s, u32 j, u32 count, u32 *arrived, const Step<T> *m, u32 parts, T *shared, double *scratch) {
    u32 round = 0;
#pragma unroll 1
    for (u32 end = j + count; j < end; j++) {
        const double *now = state_of(own(s), j);
        if (stopped(now)) {
            if (block() == 0) settle(own(s).state, j);
            return;
        }
        round = apply_all(m + (u64)j * parts, parts, now, arrived, round, shared);
        product<T, LANES>(own(s), j);
        grid_barrier(arrived, ++round);
#pragma unroll 1
        for (u32 again = 0; again < 2; again++) {
            project(own(s), j + 1, again, scratch);
            grid_barrier(arrived, ++round);
            totals(own(s), again, j + 2, scratch);
            grid_barrier(arrived, ++round);
        }
        extend(own(s), j, scratch);
        grid_barrier(arrived, ++round);
    }
}

#define PRODUCTS(T, S, LANES)                                                                                               \
    extern "C" __global__ void __bounds__(BLOCK) gmres_start_##LANES##_##S(System<T> s) {                                   \
        __shared__ double scratch[BLOCK / WARP];                                                                            \
        start<T, LANES>(own(s), scratch);                                                                                   \
    }                                                                                                                       \
    extern "C" __global__ void __bounds__(BLOCK) gmres_product_##LANES##_##S(System<T> all, u32 j) {                        \
        const System<T> s = own(all);                                                                                       \
        if (!stopped(state_of(s, j))) product<T, LANES>(s, j);                                                              \
    }
// Without launches between: of compressed rows.
#define KERNELS(T, S, LANES)                                                                                                \
    PRODUCTS(T, S, LANES)                                                                                                   \
    extern "C" __global__ void __attribute__((launch_bounds(BLOCK, 2)))                                                     \
        gmres_all_##LANES##_##S(System<T> s, u32 j, u32 count, u32 *arrived) {                                              \
        __shared__ double scratch[SCRATCH];                                                                                 \
        all<T, LANES>(s, j, count, arrived + grid_row(), (const Step<T> *)nullptr, 0, (T *)nullptr, scratch);          \
    }                                                                                                                       \
    extern "C" __global__ void __attribute__((launch_bounds(BLOCK, 2)))                                                     \
        gmres_swept_##LANES##_##S(System<T> s, u32 j, u32 count, u32 *arrived, const Step<T> *m, u32 parts) {               \
        __shared__ T shared[4 * BLOCK];                                                                                     \
        __shared__ double scratch[SCRATCH];                                                                                 \
        all<T, LANES>(s, j, count, arrived, m, parts, shared, scratch);                                                     \
    }

#define VECTORS(T, S)                                                                                                       \
    extern "C" __global__ void __bounds__(BLOCK) gmres_begin_##S(System<T> s) {                                             \
        __shared__ double scratch[BLOCK / WARP];                                                                            \
        begin(own(s), scratch);                                                                                             \
    }                                                                                                                       \
    extern "C" __global__ void __bounds__(BLOCK) gmres_project_##S(System<T> all, u32 j, u32 again) {                       \
        __shared__ double scratch[SCRATCH];                                                                                 \
        const System<T> s = own(all);                                                                                       \
        if (!stopped(state_of(s, j))) project(s, j + 1, again, scratch);                                                    \
    }                                                                                                                       \
    extern "C" __global__ void __bounds__(BLOCK) gmres_totals_##S(System<T> all, u32 j, u32 again) {                        \
        __shared__ double scratch[BLOCK / WARP];                                                                            \
        const System<T> s = own(all);                                                                                       \
        if (!stopped(state_of(s, j))) totals(s, again, j + 2, scratch);                                                     \
    }                                                                                                                       \
    extern "C" __global__ void __bounds__(BLOCK) gmres_extend_##S(System<T> s, u32 j) {                                     \
        __shared__ double scratch[3 * PANEL];                                                                               \
        extend(own(s), j, scratch);                                                                                         \
    }                                                                                                                       \
    extern "C" __global__ void __bounds__(BLOCK) gmres_solve_##S(System<T> s, u32 k) { solve(s, k); }                       \
    extern "C" __global__ void __bounds__(BLOCK) gmres_combine_##S(System<T> s, u32 k, const T *basis, T *to) {             \
        combine(s, k, basis, to);                                                                                           \
    }                                                                                                                       \
    extern "C" __global__ void __bounds__(BLOCK) gmres_move_##S(System<T> s, const T *d) {                                  \
        for (u64 i = place(); i < s.n; i += places()) move(s, i, d[i]);                                                     \
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
