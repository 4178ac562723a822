// HBISA, the hybrid block iteration for block-tridiagonal matrices: Jacobi and red-black sweeps.
//
//   t <- b - (L + U)*x,   D*x' = t,   each matrix block by one thread block, or several small ones together, a row a thread
//
// (Yang, Li & Li, J. Supercomput. 73 (2017), doi:10.1007/s11227-016-1881-x, Eq. (6) and (7).) A block is solved in shared memory by
// parallel cyclic reduction, ceil(log2 k) steps (R. W. Hockney, C. R. Jesshope, Parallel Computers, 1981), by cyclic reduction or Thomas's
// algorithm, or, where it is dense or needs
// row interchanges, with its factors L*U = P*D: panels of 32 columns, a warp in each triangle. The residual of x, t - D*x, is summed in
// the same pass (with D*x = t of the sweep before where D is not tridiagonal); a norm is known one sweep later, from the sums that the
// thread blocks left.
//
// Several right-hand sides are swept at once: the thread blocks of a grid are shared out evenly, those of the first column first. A column
// that has stopped waits for the others.
//
// Three vectors take turns: iterate i is in number i % 3. Before one is overwritten, its content is set aside if it was better than
// what came next and than all before.
//
// Traffic of a sweep of one column, s bytes a value: z coupling entries z(s + 4) + 4n + 3*s*n + gathers + 3*s*n, the neighbours in x of the rows of
// the first colour from the cache; where D is not tridiagonal s*n less (2*s*n for rows of the second colour), and s*k*k + 4k more for a factored block
// of k rows. Flops: 2z + n, 8n for the residual of the rows of the first colour (3n where D is not tridiagonal), and for a block at most
// 14*k*ceil(log2 K) + 4k by parallel cyclic reduction, K rows of the largest block (32 at least where blocks stay alone), 20k by cyclic reduction,
// 8k by Thomas's algorithm; factors 2*k*k, and 5120 for every 32 columns in place of the two triangles' 2048, since all lanes go along.

#include "device.h"

// Fields of its state, beside STOP, AT and BEST: the norms of the last iterate and of the one before.
constexpr u32 NORM = RR, BEFORE = RHO;
constexpr u64 NONE = ~0ull;
// Rows of a block at most; in one launch for all sweeps, where registers are scarcer, at most half of that.
constexpr u32 LARGEST = 1024;

template <class T> struct Blocks {
    u32 n, m;
    // Rows first[j] .. first[j + 1] of block j; lower, diag and upper of D one after another; the couplings.
    const u32 *first;
    const T *diagonal;
    const u32 *ptr, *col;
    const T *val, *b;
    T *x, *best;
    // Factored blocks: where the k*k values of block j begin, by columns, or NONE; row i of P*D is row order[i] of D, in the block. Null
    // where no block is factored.
    const u64 *starts;
    const T *factors;
    const u32 *order;
    // D*x where D is not tridiagonal, else null.
    T *image;
    // Sums, largest changes, largest values of the thread blocks: of even and odd steps, of both colours. Two copies of the state of a
    // run, its norms, and what they are held against.
    double *part, *state;
    // Colours: 1 for Jacobi, 2 for red-black. Rule: 0 the residual, 1 the update. Right-hand sides. How
    // tridiagonal blocks are solved. Blocks that a thread block takes at a time, one if any is factored, and the threads of each.
    u32 colours, rule, columns, solver, together, pitch;
};

// Values of the state of a column: two copies, norms, rtol, atol.
constexpr u32 RTOL = 2 * FIELDS + HISTORY, ATOL = RTOL + 1, STATE = ATOL + 1;

// One column of it, and which of its thread blocks this is.
template <class T> struct Column : Blocks<T> {
    u32 slot, slots;
    __device__ explicit Column(const Blocks<T> &all) : Blocks<T>(all), slots(blocks() / all.columns) {
        const u32 c = block() / slots;
        slot = block() % slots;
        this->b += (u64)c * all.n;
        this->x += (u64)c * 3 * all.n;
        this->best += (u64)c * all.n;
        if (all.image) this->image += (u64)c * all.n;
        this->part += (u64)c * 12 * slots;
        this->state += (u64)c * STATE;
    }
};

// What is known of some rows of an iterate: the sum of squares of their residual, the largest change, the largest value.
struct Norms {
    double sum = 0, change = 0, size = 0;

    __device__ __attribute__((always_inline)) void join(double sum2, double change2, double size2) {
        sum += sum2;
        change = larger(change, change2);
        size = larger(size, size2);
    }
    __device__ __attribute__((always_inline)) void over_lanes() {
        for (u32 mask = WARP / 2; mask > 0; mask /= 2) join(across(sum, mask), across(change, mask), across(size, mask));
    }
    // Of all threads of a block of whole warps, in every one. `scratch` holds three values for each of WARP warps.
    __device__ __attribute__((always_inline)) void over_block(double *scratch) {
        const u32 lane = thread() % WARP;
        double *of_warp = scratch + thread() / WARP * 3;
        over_lanes();
        if (lane == 0) {
            of_warp[0] = sum;
            of_warp[1] = change;
            of_warp[2] = size;
        }
        barrier();
        const bool there = lane < threads() / WARP;
        sum = there ? scratch[lane * 3] : 0;
        change = there ? scratch[lane * 3 + 1] : 0;
        size = there ? scratch[lane * 3 + 2] : 0;
        over_lanes();
        barrier();
    }
};

template <class T> DEVICE double *parts(const Column<T> &s, u32 step, u32 colour) {
    return s.part + (u64)((step & 1) * 2 + colour) * 3 * s.slots;
}

// What the sweep before has shown: true to stop. `keep`: iterate step - 2 is to be set aside.
template <class T> DEVICE bool judge(const Column<T> &s, u32 step, u32 limit, bool &keep, double *scratch) {
    const double *old = s.state + ((step + 1) & 1) * FIELDS;
    double *now = s.state + (step & 1) * FIELDS;
    const bool first = s.slot == 0 && thread() == 0;
    keep = false;
    if (step == 0) {
        if (first) {
            // NORM of iterate 0 comes from the host, in the other copy.
            now[NORM] = old[NORM];
            now[BEFORE] = now[BEST] = __builtin_inf();
            now[STOP] = GO_ON;
            now[AT] = 0;
        }
        return false;
    }
    if (old[STOP] != GO_ON) {
        if (first)
#pragma unroll 1
            for (u32 f = 0; f < FIELDS; f++) now[f] = old[f];
        return true;
    }
    Norms all;
#pragma unroll 1
    for (u32 c = 0; c < s.colours; c++) {
        const double *part = parts(s, step + 1, c);
#pragma unroll 1
        for (u32 k = thread(); k < s.slots; k += threads()) all.join(part[k], part[s.slots + k], part[2 * s.slots + k]);
    }
    all.over_block(scratch);
    // The newest norm that is known: of iterate `at`.
    const u32 at = s.rule == 0 ? step - 1 : step;
    const double norm = s.rule == 1 ? all.change : at == 0 ? old[NORM] : root(all.sum);
    const double target = s.rule == 1 ? larger(s.state[ATOL], s.state[RTOL] * all.size) : s.state[ATOL];
    const u32 stop = at > 0 && norm <= target ? CLAIM : !(norm < __builtin_inf()) ? NON_FINITE : at >= limit ? LIMIT : GO_ON;
    // By the residual old[NORM] is of iterate step - 2; by the update that is old[BEFORE], and old[NORM] of the next.
    const double candidate = s.rule == 0 ? old[NORM] : old[BEFORE], next = s.rule == 0 ? norm : old[NORM];
    // Where the run stops nothing is overwritten.
    keep = stop == GO_ON && step >= 2 && !(next <= candidate) && candidate < old[BEST];
    if (first) {
        now[BEFORE] = old[NORM];
        now[NORM] = norm;
        now[BEST] = keep ? candidate : old[BEST];
        now[STOP] = stop;
        now[AT] = at;
        s.state[2 * FIELDS + at % HISTORY] = norm;
    }
    return stop != GO_ON;
}

// L*U*x = P*t for i < k: x[i]. `y` holds t on entry; what a warp has solved passes through it.
template <class T> DEVICE T substitute(u32 k, const T *lu, const u32 *order, T *y) {
    const u32 i = thread(), lane = i % WARP;
    T v = i < k ? y[order[i]] : (T)0;
    barrier();
#pragma unroll 1
    for (u32 c = 0; c < k; c += WARP) {
        const u32 w = k - c < WARP ? k - c : WARP;
        if (i / WARP == c / WARP) {
#pragma unroll 2
            for (u32 p = 0; p < WARP; p++) {
                const T l = lane > p && lane < w ? lu[(u64)(c + p) * k + i] : (T)0, known = from_lane(v, p);
                v = fused(-l, known, v);
            }
            if (lane < w) y[i] = v;
        }
        barrier();
        if (i >= c + WARP && i < k)
#pragma unroll 2
            for (u32 p = 0; p < w; p++) v = fused(-lu[(u64)(c + p) * k + i], y[c + p], v);
    }
#pragma unroll 1
    for (u32 c = (k - 1) / WARP * WARP + WARP; c > 0;) {
        c -= WARP;
        const u32 w = k - c < WARP ? k - c : WARP;
        if (i / WARP == c / WARP) {
#pragma unroll 2
            for (u32 p = WARP; p-- > 0;) {
                const T u = lane <= p && p < w ? lu[(u64)(c + p) * k + i] : (T)0;
                if (lane == p && p < w) v /= u;
                const T known = from_lane(v, p);
                if (lane < p) v = fused(-u, known, v);
            }
            if (lane < w) y[i] = v;
        }
        barrier();
        if (i < c)
#pragma unroll 2
            for (u32 p = 0; p < w; p++) v = fused(-lu[(u64)(c + p) * k + i], y[c + p], v);
    }
    return v;
}

// Blocks of one colour, `together` of them at a time: iterate step + 1 from the one before, and from its own other colour in the second half of a sweep.
template <class T, bool FACTORED> DEVICE void sweep(const Column<T> &s, u32 step, u32 colour, bool keep, T *shared, double *scratch) {
    const u32 i = thread() % s.pitch, which = thread() / s.pitch, at = which * s.pitch;
    T *a = shared + at, *b = a + LARGEST, *c = b + LARGEST, *d = c + LARGEST;
    const T *before = s.x + (u64)(step % 3) * s.n;
    T *after = s.x + (u64)((step + 1) % 3) * s.n;
    const T *coupled = colour == 0 ? before : after;
    Norms own;
    const u32 count = (s.m - colour + s.colours - 1) / s.colours;
    for (u32 p = s.slot * s.together; p < count; p += s.slots * s.together) {
        const bool mine = which < s.together && p + which < count;
        const u32 j = mine ? (p + which) * s.colours + colour : 0;
        const u32 low = s.first[j], k = mine ? s.first[j + 1] - low : 0;
        const u64 row = (u64)low + i;
        T t = 0, x = 0, lower = 0, diag = 0, upper = 0;
        if (i < k) {
            t = s.b[row];
#pragma unroll 1
            for (u32 e = s.ptr[row]; e < s.ptr[row + 1]; e++) t = fused(-s.val[e], coupled[s.col[e]], t);
            x = before[row];
            if (!FACTORED || !s.image) {
                lower = s.diagonal[row];
                diag = s.diagonal[s.n + row];
                upper = s.diagonal[2 * (u64)s.n + row];
                a[i] = lower;
                b[i] = diag;
                c[i] = upper;
            }
            d[i] = t;
        }
        // The odd blocks of an iterate were solved with its even ones: their residual is rounding.
        if (i < k && colour == 0) {
            T r;
            if (FACTORED && s.image) {
                r = t - s.image[row];
                s.image[row] = t;
            } else {
                r = fused(-diag, x, t);
                if (i > 0) r = fused(-lower, before[row - 1], r);
                if (i + 1 < k) r = fused(-upper, before[row + 1], r);
            }
            own.sum = fused((double)r, (double)r, own.sum);
        }
        barrier();
        const u64 from = FACTORED ? s.starts[j] : NONE;
        const T next = from != NONE ? substitute(k, s.factors + from, s.order + low, d) : solve_by(s.solver, i, k, s.pitch, a, b, c, d);
        if (i < k) {
            if (keep) s.best[row] = after[row];
            after[row] = next;
            own.change = larger(own.change, magnitude((double)next - (double)x));
            own.size = larger(own.size, magnitude((double)next));
        }
        barrier();
    }
    own.over_block(scratch);
    if (thread() == 0) {
        double *part = parts(s, step, colour);
        part[s.slot] = own.sum;
        part[s.slots + s.slot] = own.change;
        part[2 * s.slots + s.slot] = own.size;
    }
}

// One half of a sweep (a whole one for Jacobi). The second half does what the first has judged.
template <class T, bool FACTORED> DEVICE void half(const Column<T> &s, u32 step, u32 colour, u32 limit, T *shared, double *scratch) {
    bool keep;
    if (colour == 0) {
        if (judge(s, step, limit, keep, scratch)) return;
    } else {
        const double *now = s.state + (step & 1) * FIELDS, *old = s.state + ((step + 1) & 1) * FIELDS;
        if (now[STOP] != GO_ON) return;
        keep = step >= 2 && now[BEST] < old[BEST];
    }
    sweep<T, FACTORED>(s, step, colour, keep, shared, scratch);
}

// `states`: that of the first column.
template <class T, bool FACTORED>
DEVICE void all(const Column<T> &s, double *states, u32 step, u32 count, u32 limit, u32 *arrived, T *shared, double *scratch) {
    u32 round = 0;
    for (u32 end = step + count; step < end; step++) {
        bool keep;
        const bool over = judge(s, step, limit, keep, scratch);
#pragma unroll 1
        for (u32 colour = 0; colour < s.colours; colour++) {
            if (!over) sweep<T, FACTORED>(s, step, colour, keep, shared, scratch);
            grid_barrier(arrived, ++round);
        }
        // Behind the barrier everyone knows of every column.
        bool all_over = true;
#pragma unroll 1
        for (u32 c = 0; c < s.columns; c++) all_over &= states[c * STATE + (step & 1) * FIELDS + STOP] != GO_ON;
        if (all_over) {
            if (s.slot == 0) settle(s.state, step);
            return;
        }
    }
}

#define KERNELS(T, S, NAME, FACTORED)                                                                                  \
    extern "C" __global__ void __attribute__((launch_bounds(LARGEST, 1)))                                              \
        hbisa_half##NAME##_##S(Blocks<T> s, u32 step, u32 colour, u32 limit) {                                         \
        __shared__ T shared[4 * LARGEST];                                                                              \
        __shared__ double scratch[3 * WARP];                                                                     \
        half<T, FACTORED>(Column<T>(s), step, colour, limit, shared, scratch);                                         \
    }                                                                                                                  \
    extern "C" __global__ void __attribute__((launch_bounds(LARGEST / 2, 1)))                                          \
        hbisa_all##NAME##_##S(Blocks<T> s, u32 step, u32 count, u32 limit, u32 *arrived) {                             \
        __shared__ T shared[4 * LARGEST];                                                                              \
        __shared__ double scratch[3 * WARP];                                                                     \
        all<T, FACTORED>(Column<T>(s), s.state, step, count, limit, arrived, shared, scratch);                         \
    }

KERNELS(float, f32, , false)
KERNELS(double, f64, , false)
KERNELS(float, f32, _factored, true)
KERNELS(double, f64, _factored, true)
