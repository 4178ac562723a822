// What the kernels need of CUDA C++, for clang without a CUDA installation: keywords, places, shuffles, reductions, fences.
//
// Every reduction is a tree of fixed shape: the same bits on every chip, in every run. No floating-point atomics.
//
// The file of each family begins with its formulas: bytes of global memory, and flops, of which a fused product with its addition is two, a
// quotient or a root one, and a comparison none. What is read again, by other lanes or a little later, is said to be from the cache. The test
// `traffic` of bt-kernels holds them against what the stand-in driver counts, every access and every operation, with the sums of thread
// blocks (1039 flops where one thread wants to know, 2824 where all do) and the numbers of a state that stand beside them.

#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
// Three blocks of BLOCK threads fit on a multiprocessor at least: 85 registers a thread.
#define __bounds__(threads) __attribute__((launch_bounds(threads, 3)))
#define DEVICE static inline __device__ __attribute__((always_inline))

typedef unsigned int u32;
typedef unsigned long long u64;

// Threads of a block, in all kernels that reduce.
constexpr u32 BLOCK = 256;
constexpr u32 WARP = 32;
constexpr u32 ALL = 0xffffffffu;

DEVICE u32 thread() { return (u32)__nvvm_read_ptx_sreg_tid_x(); }
DEVICE u32 threads() { return (u32)__nvvm_read_ptx_sreg_ntid_x(); }
DEVICE u32 block() { return (u32)__nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE u32 blocks() { return (u32)__nvvm_read_ptx_sreg_nctaid_x(); }
// Which row of thread blocks this one is in: each row is a grid for itself, of a right-hand side. `place` and `blocks` are those of a row.
DEVICE u32 grid_row() { return (u32)__nvvm_read_ptx_sreg_ctaid_y(); }
// Of this thread among all of the grid, and their number.
DEVICE u64 place() { return (u64)block() * threads() + thread(); }
DEVICE u64 places() { return (u64)blocks() * threads(); }

DEVICE void barrier() { __syncthreads(); }

// The value of the lane whose number differs in the bits of `mask`, among the lanes of `members`.
DEVICE float across(float v, u32 mask, u32 members = ALL) { return __nvvm_shfl_sync_bfly_f32(members, v, mask, 31); }
DEVICE double across(double v, u32 mask, u32 members = ALL) {
    union { double d; int i[2]; } u = {v};
    u.i[0] = __nvvm_shfl_sync_bfly_i32(members, u.i[0], mask, 31);
    u.i[1] = __nvvm_shfl_sync_bfly_i32(members, u.i[1], mask, 31);
    return u.d;
}
// The value of another lane.
DEVICE float from_lane(float v, u32 lane) { return __nvvm_shfl_sync_idx_f32(ALL, v, lane, 31); }
DEVICE double from_lane(double v, u32 lane) {
    union { double d; int i[2]; } u = {v};
    u.i[0] = __nvvm_shfl_sync_idx_i32(ALL, u.i[0], lane, 31);
    u.i[1] = __nvvm_shfl_sync_idx_i32(ALL, u.i[1], lane, 31);
    return u.d;
}

DEVICE float magnitude(float v) { return __builtin_fabsf(v); }
DEVICE double magnitude(double v) { return __builtin_fabs(v); }
DEVICE float root(float v) { return __nvvm_sqrt_rn_f(v); }
DEVICE double root(double v) { return __nvvm_sqrt_rn_d(v); }
DEVICE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEVICE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
// The larger one; NaN if either is.
DEVICE double larger(double a, double b) { return a > b || a != a ? a : b; }

struct Sum {
    static inline __device__ double empty() { return 0.0; }
    static inline __device__ double of(double a, double b) { return a + b; }
};
struct Largest {
    static inline __device__ double empty() { return 0.0; }
    static inline __device__ double of(double a, double b) { return larger(a, b); }
};

// All values of `lanes` neighbouring lanes, a power of two at most 32, in every one of them. All lanes of `members` call.
template <class T> DEVICE T sum_lanes(T v, u32 lanes, u32 members = ALL) {
    for (u32 mask = lanes / 2; mask > 0; mask /= 2) v += across(v, mask, members);
    return v;
}

// store(i, sum) for every row i by the first of its LANES lanes: the sum of val*at(col) over the entries begin[i] + skip .. end[i], in
// one fixed order, whatever the grid. All threads call; rows are dealt out so that all lanes of a warp reach the shuffles.
template <class T, u32 LANES, class At, class Store>
DEVICE void sum_rows(u32 n, const u32 *begin, const u32 *end, const u32 *col, const T *val, At at, Store store, u32 skip = 0) {
    for (u64 first = place() / LANES - (place() % WARP) / LANES; first < n; first += places() / LANES) {
        const u64 i = first + (place() % WARP) / LANES;
        T sum = 0;
        if (i < n)
#pragma unroll 2
            for (u32 k = begin[i] + skip + thread() % LANES; k < end[i]; k += LANES) sum = fused(val[k], at(col[k]), sum);
        if (LANES > 1) sum = sum_lanes(sum, LANES);
        if (i < n && thread() % LANES == 0) store(i, sum);
    }
}

// The same where the entries are dense blocks of k x k, each by columns: block rows ptr, block columns col; a thread a row.
template <class T, class At, class Store>
DEVICE void sum_block_rows(u32 n, u32 k, const u32 *ptr, const u32 *col, const T *val, At at, Store store) {
#pragma unroll 1
    for (u64 i = place(); i < n; i += places()) {
        const u32 row = (u32)i / k, r = (u32)i % k;
        T sum = 0;
#pragma unroll 1
        for (u32 p = ptr[row]; p < ptr[row + 1]; p++) {
            const T *block = val + (u64)p * (k * k) + r;
            const u32 first = col[p] * k;
#pragma unroll 2
            for (u32 c = 0; c < k; c++) sum = fused(block[c * k], at(first + c), sum);
        }
        store(i, sum);
    }
}

// store(i, sum) for every row of the matrix of a system: compressed rows with LANES lanes each, or, where LANES is 0, blocks of s.block rows.
template <class T, u32 LANES, class System, class At, class Store> DEVICE void multiply(const System &s, At at, Store store) {
    if constexpr (LANES == 0) sum_block_rows<T>(s.n, s.block, s.ptr, s.col, s.val, at, store);
    else sum_rows<T, LANES>(s.n, s.ptr, s.ptr + 1, s.col, s.val, at, store);
}

// x[i] for i < k, where a[i]*x[i-1] + b[i]*x[i] + c[i]*x[i+1] = d[i]: parallel cyclic reduction in shared memory (R. W. Hockney,
// C. R. Jesshope, Parallel Computers, 1981), until rows at distance `largest` are apart. Thread i of those that share a, b, c and d takes row i;
// all threads of the block call, with one `largest`. After every step a row is divided by its diagonal, so that a step has one quotient.
template <class T> DEVICE T solve_block(u32 i, u32 k, u32 largest, T *a, const T *b, T *c, T *d) {
    const bool mine = i < k;
    T ai = 0, ci = 0, di = 0;
    const auto divide = [&](T diag) {
        const T inverse = (T)1 / diag;
        if (magnitude(inverse) < (T)__builtin_inf()) {
            ai *= inverse;
            ci *= inverse;
            di *= inverse;
        } else { // The inverse of a subnormal number may be too large.
            ai /= diag;
            ci /= diag;
            di /= diag;
        }
        a[i] = ai;
        c[i] = ci;
        d[i] = di;
    };
    if (mine) {
        ai = a[i];
        ci = c[i];
        di = d[i];
        divide(b[i]);
    }
    barrier();
    // Rows at distance `reach` are eliminated, which leaves rows at twice the distance.
#pragma unroll 1
    for (u32 reach = 1; reach < largest; reach *= 2) {
        T diag = 1, an = 0, cn = 0;
        if (mine && i >= reach) {
            an = -ai * a[i - reach];
            diag = fused(-ai, c[i - reach], diag);
            di = fused(-ai, d[i - reach], di);
        }
        if (mine && i + reach < k) {
            cn = -ci * c[i + reach];
            diag = fused(-ci, a[i + reach], diag);
            di = fused(-ci, d[i + reach], di);
        }
        ai = an;
        ci = cn;
        barrier();
        if (mine) divide(diag);
        barrier();
    }
    return di;
}

// The same by cyclic reduction (R. W. Hockney, J. ACM 12 (1965), doi:10.1145/321250.321259): of the rows left every other one is
// eliminated from its neighbours until one is left, and they are solved in the opposite order; x is in d. Fewer operations, twice the steps,
// and rows at distances that share banks of the memory.
template <class T> DEVICE T reduce_block(u32 t, u32 k, u32 largest, T *a, T *b, T *c, T *d) {
    u32 reach = 1;
#pragma unroll 1
    for (; reach < largest; reach *= 2) {
        const u32 i = (t + 1) * 2 * reach - 1;
        if (i < k) {
            const T f = -a[i] / b[i - reach];
            T bi = fused(f, c[i - reach], b[i]), di = fused(f, d[i - reach], d[i]);
            a[i] = f * a[i - reach];
            if (i + reach < k) {
                const T g = -c[i] / b[i + reach];
                bi = fused(g, a[i + reach], bi);
                di = fused(g, d[i + reach], di);
                c[i] = g * c[i + reach];
            }
            b[i] = bi;
            d[i] = di;
        }
        barrier();
    }
#pragma unroll 1
    for (; reach > 0; reach /= 2) {
        const u32 i = (2 * t + 1) * reach - 1;
        if (i < k) {
            T v = d[i];
            if (i >= reach) v = fused(-a[i], d[i - reach], v);
            if (i + reach < k) v = fused(-c[i], d[i + reach], v);
            d[i] = v / b[i];
        }
        barrier();
    }
    return t < k ? d[t] : (T)0;
}

// The same by Thomas's algorithm, in one thread.
template <class T> DEVICE T thomas_block(u32 t, u32 k, T *a, T *b, T *c, T *d) {
    if (t == 0) {
#pragma unroll 1
        for (u32 i = 1; i < k; i++) {
            const T f = -a[i] / b[i - 1];
            b[i] = fused(f, c[i - 1], b[i]);
            d[i] = fused(f, d[i - 1], d[i]);
        }
        T below = 0;
#pragma unroll 1
        for (u32 i = k; i-- > 0;) {
            below = (i + 1 < k ? fused(-c[i], below, d[i]) : d[i]) / b[i];
            d[i] = below;
        }
    }
    barrier();
    return t < k ? d[t] : (T)0;
}

// How a tridiagonal block is solved.
enum : u32 { PARALLEL_CYCLIC_REDUCTION, CYCLIC_REDUCTION, THOMAS };

// One of the three.
template <class T> DEVICE T solve_by(u32 solver, u32 i, u32 k, u32 largest, T *a, T *b, T *c, T *d) {
    switch (solver) {
    case CYCLIC_REDUCTION: return reduce_block(i, k, largest, a, b, c, d);
    case THOMAS: return thomas_block(i, k, a, b, c, d);
    default: return solve_block(i, k, largest, a, b, c, d);
    }
}

// All values of a block of BLOCK threads, in every thread. `scratch` holds BLOCK / WARP values and is free again on return.
template <class Op> DEVICE double reduce(double v, double *scratch) {
    for (u32 mask = WARP / 2; mask > 0; mask /= 2) v = Op::of(v, across(v, mask));
    if (thread() % WARP == 0) scratch[thread() / WARP] = v;
    barrier();
    v = scratch[0];
    for (u32 w = 1; w < BLOCK / WARP; w++) v = Op::of(v, scratch[w]);
    barrier();
    return v;
}

// All `count` values that the blocks of an earlier launch left, in every thread of a block of BLOCK threads.
template <class Op> DEVICE double reduce_all(const double *values, u32 count, double *scratch) {
    double v = Op::empty();
#pragma unroll 1
    for (u32 i = thread(); i < count; i += BLOCK) v = Op::of(v, values[i]);
    return reduce<Op>(v, scratch);
}

// First of the largest |p[0]| .. |p[count - 1]|, in every lane of one whole warp that calls.
template <class T> DEVICE u32 first_largest(const T *p, u32 count) {
    T best = -1;
    u32 at = 0;
#pragma unroll 1
    for (u32 r = thread() % WARP; r < count; r += WARP) {
        const T size = magnitude(p[r]);
        at = size > best ? r : at;
        best = size > best ? size : best;
    }
#pragma unroll
    for (u32 mask = WARP / 2; mask > 0; mask /= 2) {
        const T other = across(best, mask);
        const u32 there = (u32)__nvvm_shfl_sync_bfly_i32(ALL, (int)at, mask, 31);
        const bool better = other > best || (other == best && there < at);
        best = better ? other : best;
        at = better ? there : at;
    }
    return at;
}

// Waits until all blocks of a row of a cooperative launch are here. `arrived` is 0 before the launch; `round` counts from 1.
DEVICE void grid_barrier(u32 *arrived, u32 round) {
    barrier();
    if (thread() == 0) {
        __nvvm_membar_gl();
        __nvvm_atom_add_gen_i((int *)arrived, 1);
        while (*(volatile u32 *)arrived < round * blocks()) {
        }
        __nvvm_membar_gl();
    }
    barrier();
}

// Krylov methods: fields of the state, which holds two copies, of even and of odd steps; why a run stops; and how many residual norms
// are kept, that of step i at i % HISTORY.
enum : u32 { RHO, RR, BEST, STOP, STOP_LATER, ALPHA, AT, OMEGA, SHADOW, FIELDS };
enum : u32 { GO_ON, CLAIM, NON_FINITE, LIMIT, BAD_PRECONDITIONER, BAD_OPERATOR, ORTHOGONAL, NO_OMEGA };
constexpr u32 HISTORY = 64;

// Whether a run has stopped, by the state of its step; a null state has not.
DEVICE bool stopped(const double *now) { return now && (now[STOP] != GO_ON || now[STOP_LATER] != GO_ON); }

// What M is: z <- r and z <- r / diag(A) are made where r is, another M by launches of its own.
enum : u32 { IDENTITY, DIAGONAL, ELSEWHERE };

// Once a run has stopped, a step only hands the state on: true then. By one thread of the grid.
DEVICE bool handed_on(const double *old, double *now, bool fresh, bool first) {
    const double stopped = fresh ? (double)GO_ON : old[STOP] != GO_ON ? old[STOP] : old[STOP_LATER];
    if (stopped == GO_ON) return false;
    if (first) {
#pragma unroll 1
        for (u32 f = 0; f < FIELDS; f++) now[f] = old[f];
        now[STOP] = stopped;
        now[STOP_LATER] = GO_ON;
    }
    return true;
}

// Both copies of the state are that of `step`, as after more launches, which would change nothing. By one block.
DEVICE void settle(double *state, u32 step) {
    if (thread() < FIELDS) state[((step + 1) & 1) * FIELDS + thread()] = state[(step & 1) * FIELDS + thread()];
}

// The tests that come first in every method, on the residual norm of a step.
DEVICE u32 verdict(double norm, double threshold, u32 step, u32 limit) {
    return norm <= threshold ? CLAIM : !(norm < __builtin_inf()) ? NON_FINITE : step >= limit ? LIMIT : GO_ON;
}

// Sweeps over the rows of a triangle, or of a whole matrix: out <- F*(base - E*N*(G*x)), see sweep.cu.
template <class T> struct Rows {
    u32 n, skip;
    const u32 *begin, *end, *col;
    const T *val;
    // E, F and G; null where they are absent.
    const T *left, *factor, *right;
    // F is scale*factor.
    double scale;
};

// x null: out <- F*base. A run that has stopped is left as it is.
template <class T, u32 LANES> DEVICE void sweep(const Rows<T> &s, const T *base, const T *x, T *out, const double *now) {
    if (stopped(now)) return;
    const auto finish = [&](u64 i, T sum) {
        if (s.left) sum *= s.left[i];
        if (base) sum = base[i] - sum;
        out[i] = s.factor ? (T)s.scale * s.factor[i] * sum : sum;
    };
    if (x) {
        const auto at = [&](u64 c) { return s.right ? s.right[c] * x[c] : x[c]; };
        sum_rows<T, LANES>(s.n, s.begin, s.end, s.col, s.val, at, finish, s.skip);
    } else
#pragma unroll 1
        for (u64 i = place(); i < s.n; i += places()) finish(i, 0);
}

// Block Jacobi, z <- D^-1 * r: see block_jacobi.cu. Rows first[g] .. first[g + 1] are group g; lower, diag and upper of D one after another; no block has more than
// `largest` rows. `shared` has 4*room values.
template <class T>
DEVICE void solve_groups(u32 n, u32 groups, u32 largest, const u32 *first, const T *d, const T *r, T *z, u32 room, T *shared) {
    T *a = shared, *b = shared + room, *c = shared + 2 * room, *rhs = shared + 3 * room;
    const u32 i = thread();
#pragma unroll 1
    for (u32 g = block(); g < groups; g += blocks()) {
        const u32 low = first[g], k = first[g + 1] - low;
        const u64 row = (u64)low + i;
        if (i < k) {
            a[i] = d[row];
            b[i] = d[(u64)n + row];
            c[i] = d[2 * (u64)n + row];
            rhs[i] = r[row];
        }
        barrier();
        const T value = solve_block(i, k, largest < k ? largest : k, a, b, c, rhs);
        if (i < k) z[row] = value;
        barrier();
    }
}

// Row i is in block home[i], rows first[home] .. first[home + 1]; the inverse of block j from starts[j] on.
template <class T>
DEVICE void multiply_blocks(u32 n, const u32 *home, const u32 *first, const u64 *starts, const T *inverses, const T *r, T *z) {
#pragma unroll 1
    for (u64 i = place(); i < n; i += places()) {
        const u32 j = home[i], low = first[j], k = first[j + 1] - low;
        const T *row = inverses + starts[j] + (i - low);
        T sum = 0;
        for (u32 c = 0; c < k; c++) sum = fused(row[(u64)c * k], r[low + c], sum);
        z[i] = sum;
    }
}

// Diagonal blocks: tridiagonal in groups, with values their diagonals; or inverted, with a home for each row.
template <class T> struct Diagonal {
    u32 n, groups;
    u64 largest;
    const u32 *first, *home;
    const u64 *starts;
    const T *values;
};

// One of the steps that make z <- M*r: a sweep; or x to out by diagonal blocks where lanes is 0.
template <class T> struct Step {
    Rows<T> rows;
    Diagonal<T> blocks;
    const T *base, *x;
    T *out;
    u64 lanes;
};

// All of them in a cooperative launch, a barrier of the grid behind each: the rounds of `arrived` so far. `shared` has 4*BLOCK values.
template <class T>
DEVICE u32 apply_all(const Step<T> *steps, u32 count, const double *now, u32 *arrived, u32 round, T *shared) {
#pragma unroll 1
    for (u32 k = 0; k < count; k++) {
        const Step<T> &s = steps[k];
        if (s.lanes == 1) sweep<T, 1>(s.rows, s.base, s.x, s.out, now);
        else if (s.lanes == 8) sweep<T, 8>(s.rows, s.base, s.x, s.out, now);
        else if (s.lanes == 32) sweep<T, 32>(s.rows, s.base, s.x, s.out, now);
        else if (!stopped(now)) {
            const Diagonal<T> &d = s.blocks;
            if (d.home) multiply_blocks(d.n, d.home, d.first, d.starts, d.values, s.x, s.out);
            else solve_groups(d.n, d.groups, (u32)d.largest, d.first, d.values, s.x, s.out, BLOCK, shared);
        }
        grid_barrier(arrived, ++round);
    }
    return round;
}
