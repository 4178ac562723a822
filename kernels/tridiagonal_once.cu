// One tridiagonal system, solved once, with partial pivoting, in two passes over memory.
//
// Of a piece of rows the first and the last unknown wait; the others are eliminated from top to bottom, the largest of the three
// rows that have an unknown being its pivot. Two rows remain, in the unknowns before the piece, its first, its last and the one
// behind it. Neighbours are merged in pairs: the two unknowns at the cut are eliminated, and again two rows remain, until one pair
// is left. Every row that has an unknown is a candidate when it goes, so that this is Gaussian elimination with partial pivoting on
// A with its columns in another order: a missing pivot proves A singular, to underflow, however it is cut. (H. H. Wang, ACM Trans.
// Math. Softw. 7 (1981), doi:10.1145/355945.355947, with two waiting unknowns and pivoting; two passes: C. Klein, R. Strzodka, ICPP
// 2021, doi:10.1145/3472456.3472484.) Rows are scaled by powers of two on the way in, which is scaled pivoting.
//
// A thread takes a piece, a thread block a tile of PIECES of them in shared memory; tiles are merged by further blocks. Each column
// of b is a system; blocks of a tile's columns are neighbours, so that the diagonals come from the cache but once.
//
// Traffic a row, s bytes a value: 4*s in the first pass, 5*s in the second, 0.04*s between them; 5*s where one tile is all. Flops a row: 4 and 22
// but for two of a piece in the first pass, the same and 21 in the second; 69 for each merge of two pieces, in both, and 18 on the way back: 75
// in double precision, where a piece has 15 rows, 74 in single.

#include "device.h"

constexpr u32 PIECES = 64;
// Rows of a piece, odd so that the threads' places in shared memory are in different banks.
template <class T> constexpr u32 ROWS = sizeof(T) == 8 ? 15 : 31;
// Rows that a thread reads at a time.
constexpr u32 AHEAD = 5;
// What a merge keeps for the way back: 6 ratios for the unknown eliminated first, 5 for the other.
constexpr u32 KEPT = 11;

// The rows of a tile; what remains of pieces, then of pairs and so on; what merges kept; unknowns on the way back.
template <class T> struct Tile {
    T rows[4][PIECES * ROWS<T>];
    T remains[10][PIECES];
    T kept[KEPT][PIECES];
    T ends[2 * PIECES + 2];
};

DEVICE float reciprocal(float v) { return 1.0f / v; }
DEVICE double reciprocal(double v) { return 1.0 / v; }

// 2^-e with 2^e <= v < 2^(e + 1), within the range of normal numbers.
DEVICE float scale_for(float v) {
    union { float f; u32 i; } u = {v};
    const u32 e = u.i >> 23;
    u.i = (254 - (e < 1 ? 1 : e > 253 ? 253 : e)) << 23;
    return u.f;
}
DEVICE double scale_for(double v) {
    union { double f; u64 i; } u = {v};
    const u64 e = u.i >> 52;
    u.i = (2046 - (e < 1 ? 1 : e > 2045 ? 2045 : e)) << 52;
    return u.f;
}

template <class T> DEVICE void exchange_if(bool wanted, T &a, T &b) {
    const T t = a;
    a = wanted ? b : a;
    b = wanted ? t : b;
}

// The rows of tile `tile`, scaled; behind the last of A rows of the identity, which couple to nothing.
template <class T>
DEVICE void load_rows(u32 n, u32 tile, const T *lower, const T *diag, const T *upper, const T *b, Tile<T> &s) {
    const u64 first = (u64)tile * PIECES * ROWS<T>;
    // Values of several rows are under way at once.
#pragma unroll 1
    for (u32 from = thread(); from < PIECES * ROWS<T>; from += AHEAD * PIECES) {
        T v[AHEAD][4];
#pragma unroll
        for (u32 j = 0; j < AHEAD; j++) {
            const u64 i = first + from + j * PIECES;
            const bool mine = i < n && from + j * PIECES < PIECES * ROWS<T>;
            v[j][0] = mine && i > 0 ? lower[i] : (T)0;
            v[j][1] = mine ? diag[i] : (T)1;
            v[j][2] = mine && i + 1 < n ? upper[i] : (T)0;
            v[j][3] = mine ? b[i] : (T)0;
        }
#pragma unroll
        for (u32 j = 0; j < AHEAD; j++) {
            const T l = magnitude(v[j][0]), d = magnitude(v[j][1]), u = magnitude(v[j][2]), two = l > d ? l : d;
            const T scale = scale_for(two > u ? two : u);
            const u32 k = from + j * PIECES;
            if (k < PIECES * ROWS<T>)
#pragma unroll
                for (u32 a = 0; a < 4; a++) s.rows[a][k] = v[j][a] * scale;
        }
    }
    barrier();
}

// p and q have unknowns j, j + 1; the row (l, d, u | f) has j, j + 1, j + 2. The one with the largest element in j is the pivot; p and
// q become the others, in j + 1, j + 2. Coefficients: before, first, j, j + 1 | right side; `WHOLE`: the first two are not known yet.
template <bool WHOLE, class T> DEVICE void eliminate(T (&p)[5], T (&q)[5], T l, T d, T u, T f, T (&ratios)[3]) {
    constexpr u32 FROM = WHOLE ? 0 : 2;
    const bool larger = magnitude(p[2]) > magnitude(q[2]);
#pragma unroll
    for (u32 k = FROM; k < 5; k++) exchange_if(larger, p[k], q[k]);
    T row[6] = {0, 0, l, d, u, f}, pivot[6] = {q[0], q[1], q[2], q[3], 0, q[4]};
    const bool fresh = magnitude(l) > magnitude(q[2]);
#pragma unroll
    for (u32 k = FROM; k < 6; k++) exchange_if(fresh, row[k], pivot[k]);
    const T r = reciprocal(pivot[2]), a = p[2] * r, c = row[2] * r;
#pragma unroll
    for (u32 k = FROM; k < 2; k++) {
        p[k] = fused(-a, pivot[k], p[k]);
        q[k] = fused(-c, pivot[k], row[k]);
    }
    p[2] = fused(-a, pivot[3], p[3]);
    p[3] = -a * pivot[4];
    p[4] = fused(-a, pivot[5], p[4]);
    q[2] = fused(-c, pivot[3], row[3]);
    q[3] = fused(-c, pivot[4], row[4]);
    q[4] = fused(-c, pivot[5], row[5]);
    ratios[0] = pivot[3] * r;
    ratios[1] = pivot[4] * r;
    ratios[2] = pivot[5] * r;
}

// The two rows that remain of the piece of this thread.
template <class T> DEVICE void reduce_piece(Tile<T> &s) {
    const u32 first = thread() * ROWS<T>;
    T p[5] = {s.rows[0][first], s.rows[1][first], s.rows[2][first], 0, s.rows[3][first]};
    T q[5] = {0, s.rows[0][first + 1], s.rows[1][first + 1], s.rows[2][first + 1], s.rows[3][first + 1]};
#pragma unroll 1
    for (u32 i = first + 2; i < first + ROWS<T>; i++) {
        T ratios[3];
        eliminate<true>(p, q, s.rows[0][i], s.rows[1][i], s.rows[2][i], s.rows[3][i], ratios);
    }
#pragma unroll
    for (u32 k = 0; k < 5; k++) {
        s.remains[k][thread()] = p[k];
        s.remains[5 + k][thread()] = q[k];
    }
}

// The unknowns of the piece of this thread into rows[3], once those at its ends are known. The pivots are the same again.
template <class T> DEVICE void solve_piece(Tile<T> &s) {
    const u32 first = thread() * ROWS<T>, last = first + ROWS<T> - 1;
    const T *ends = s.ends + 2 * thread();
    const T x0 = ends[1], f0 = fused(-s.rows[0][first], ends[0], fused(-s.rows[1][first], x0, s.rows[3][first]));
    T p[5] = {0, 0, s.rows[2][first], 0, f0};
    T q[5] = {0, 0, s.rows[1][first + 1], s.rows[2][first + 1], fused(-s.rows[0][first + 1], x0, s.rows[3][first + 1])};
#pragma unroll 1
    for (u32 i = first + 2; i <= last; i++) {
        T ratios[3];
        eliminate<false>(p, q, s.rows[0][i], s.rows[1][i], s.rows[2][i], s.rows[3][i], ratios);
#pragma unroll
        for (u32 k = 0; k < 3; k++) s.rows[k][i] = ratios[k];
    }
    // x[i-1] = y - b*x[i] - c*x[i+1] with what row i kept
    T one = ends[2], two = ends[3];
    s.rows[3][last] = one;
#pragma unroll 1
    for (u32 i = last; i > first + 1; i--) {
        const T x = fused(-s.rows[0][i], one, fused(-s.rows[1][i], two, s.rows[2][i]));
        s.rows[3][i - 1] = x;
        two = one;
        one = x;
    }
    s.rows[3][first] = x0;
}

// Nodes left and left + 1 merged. Columns: last of the left, first of the right; before, first of the left, last of the right, behind;
// the right side.
template <class T> DEVICE void merge(const Tile<T> &s, u32 left, T (&r)[4][7]) {
#pragma unroll
    for (u32 h = 0; h < 2; h++) {
        const u32 v = 5 * h;
        const T a[7] = {s.remains[v + 2][left], s.remains[v + 3][left], s.remains[v][left], s.remains[v + 1][left], 0, 0, s.remains[v + 4][left]};
        const u32 n = left + 1;
        const T b[7] = {s.remains[v][n], s.remains[v + 1][n], 0, 0, s.remains[v + 2][n], s.remains[v + 3][n], s.remains[v + 4][n]};
#pragma unroll
        for (u32 k = 0; k < 7; k++) {
            r[h][k] = a[k];
            r[2 + h][k] = b[k];
        }
    }
#pragma unroll
    for (u32 c = 0; c < 2; c++) {
#pragma unroll
        for (u32 k = c + 1; k < 4; k++) {
            const bool larger = magnitude(r[k][c]) > magnitude(r[c][c]);
#pragma unroll
            for (u32 j = c; j < 7; j++) exchange_if(larger, r[k][j], r[c][j]);
        }
        const T inverse = reciprocal(r[c][c]);
#pragma unroll
        for (u32 j = c + 1; j < 7; j++) r[c][j] *= inverse;
#pragma unroll
        for (u32 k = c + 1; k < 4; k++)
#pragma unroll
            for (u32 j = c + 1; j < 7; j++) r[k][j] = fused(-r[k][c], r[c][j], r[k][j]);
    }
}

// All pieces merged: node 0 remains.
template <class T> DEVICE void up(Tile<T> &s) {
    const u32 t = thread();
#pragma unroll 1
    for (u32 count = PIECES / 2, at = 0; count > 0; at += count, count /= 2) {
        T r[4][7];
        barrier();
        if (t < count) merge(s, 2 * t, r);
        barrier();
        if (t < count) {
#pragma unroll
            for (u32 k = 0; k < 6; k++) s.kept[k][at + t] = r[0][k + 1];
#pragma unroll
            for (u32 k = 0; k < 5; k++) {
                s.kept[6 + k][at + t] = r[1][k + 2];
                s.remains[k][t] = r[2][k + 2];
                s.remains[5 + k][t] = r[3][k + 2];
            }
        }
    }
    barrier();
}

// Unknowns at the ends of all pieces, from those around and at the ends of group `g` of `groups`; a group alone has but its own two.
// Those of node i of a level are at ends[2*i ..]: before, first, last, behind.
template <class T> DEVICE void down(Tile<T> &s, u32 g, u32 groups, const T *outer) {
    const u32 t = thread();
    if (t == 0 && groups == 1) {
        T a[3] = {s.remains[1][0], s.remains[2][0], s.remains[4][0]}, b[3] = {s.remains[6][0], s.remains[7][0], s.remains[9][0]};
        const bool larger = magnitude(b[0]) > magnitude(a[0]);
#pragma unroll
        for (u32 k = 0; k < 3; k++) exchange_if(larger, a[k], b[k]);
        const T f = b[0] / a[0], x = fused(-f, a[2], b[2]) / fused(-f, a[1], b[1]);
        s.ends[0] = s.ends[3] = 0;
        s.ends[1] = fused(-a[1], x, a[2]) / a[0];
        s.ends[2] = x;
    } else if (t < 4 && groups > 1) {
        const bool there = t == 0 ? g > 0 : t < 3 || g + 1 < groups;
        s.ends[t] = there ? outer[2 * (u64)g + t - 1] : (T)0;
    }
#pragma unroll 1
    for (u32 count = 1, at = PIECES - 2; count < PIECES; count *= 2, at -= count) {
        T first = 0, last = 0, left = 0, right = 0;
        barrier();
        if (t < count) {
            const T *e = s.ends + 2 * t;
            const u32 k = at + t;
            first = e[1];
            last = e[2];
            // right = y - a*before - b*first - c*last - d*behind, left = y - e*right - ...
            right = fused(-s.kept[6][k], e[0], fused(-s.kept[7][k], first, s.kept[10][k]));
            right = fused(-s.kept[8][k], last, fused(-s.kept[9][k], e[3], right));
            left = fused(-s.kept[1][k], e[0], fused(-s.kept[2][k], first, s.kept[5][k]));
            left = fused(-s.kept[3][k], last, fused(-s.kept[4][k], e[3], left));
            left = fused(-s.kept[0][k], right, left);
        }
        const T behind = t == 0 ? s.ends[2 * count + 1] : (T)0;
        barrier();
        if (t < count) {
            T *e = s.ends + 4 * t;
            e[1] = first;
            e[2] = left;
            e[3] = right;
            e[4] = last;
        }
        if (t == 0) s.ends[4 * count + 1] = behind;
    }
    barrier();
}

template <class T> DEVICE void store_remains(const Tile<T> &s, u64 place, T *remains) {
    if (thread() < 10) remains[10 * place + thread()] = s.remains[thread()][0];
}

// Pieces that earlier launches left; behind the last one pieces of the identity.
template <class T> DEVICE void load_remains(u32 count, u32 g, const T *remains, Tile<T> &s) {
    const u64 piece = (u64)g * PIECES + thread();
#pragma unroll
    for (u32 k = 0; k < 10; k++) s.remains[k][thread()] = piece < count ? remains[10 * piece + k] : (T)(k == 1 || k == 7);
}

template <class T>
DEVICE void reduce(u32 n, u32 tiles, u32 nrhs, const T *lower, const T *diag, const T *upper, const T *b, T *remains, Tile<T> &s) {
    const u32 tile = block() / nrhs, column = block() % nrhs;
    load_rows(n, tile, lower, diag, upper, b + (u64)column * n, s);
    reduce_piece(s);
    up(s);
    store_remains(s, (u64)column * tiles + tile, remains);
}

template <class T> DEVICE void merge_pieces(u32 count, u32 nrhs, const T *below, T *above, Tile<T> &s) {
    const u32 g = block() / nrhs, column = block() % nrhs, groups = (count + PIECES - 1) / PIECES;
    load_remains(count, g, below + (u64)column * count * 10, s);
    up(s);
    store_remains(s, (u64)column * groups + g, above);
}

template <class T> DEVICE void spread(u32 count, u32 nrhs, const T *remains, const T *outer, T *ends, Tile<T> &s) {
    const u32 g = block() / nrhs, column = block() % nrhs, groups = (count + PIECES - 1) / PIECES;
    load_remains(count, g, remains + (u64)column * count * 10, s);
    up(s);
    down(s, g, groups, outer + (u64)column * groups * 2);
#pragma unroll 1
    for (u32 k = thread(); k < 2 * PIECES; k += PIECES) {
        const u64 place = 2 * (u64)g * PIECES + k;
        if (place < 2 * (u64)count) ends[(u64)column * count * 2 + place] = s.ends[k + 1];
    }
}

template <class T>
DEVICE void solve(u32 n, u32 tiles, u32 nrhs, const T *lower, const T *diag, const T *upper, T *x, const T *ends, Tile<T> &s) {
    const u32 tile = block() / nrhs, column = block() % nrhs;
    T *mine = x + (u64)column * n;
    load_rows(n, tile, lower, diag, upper, mine, s);
    reduce_piece(s);
    up(s);
    down(s, tile, tiles, ends + (u64)column * tiles * 2);
    solve_piece(s);
    barrier();
    constexpr u32 COUNT = PIECES * ROWS<T>;
#pragma unroll 1
    for (u32 k = thread(); k < COUNT; k += PIECES) {
        const u64 i = (u64)tile * COUNT + k;
        if (i < n) mine[i] = s.rows[3][k];
    }
}

#define BOUNDS __attribute__((launch_bounds(PIECES, 4)))
#define KERNELS(T, S)                                                                                                  \
    extern "C" __global__ void BOUNDS tridiagonal_reduce_##S(                                                          \
        u32 n, u32 tiles, u32 nrhs, const T *lower, const T *diag, const T *upper, const T *b, T *remains) {           \
        __shared__ Tile<T> s;                                                                                          \
        reduce<T>(n, tiles, nrhs, lower, diag, upper, b, remains, s);                                                  \
    }                                                                                                                  \
    extern "C" __global__ void BOUNDS tridiagonal_merge_##S(u32 count, u32 nrhs, const T *below, T *above) {           \
        __shared__ Tile<T> s;                                                                                          \
        merge_pieces<T>(count, nrhs, below, above, s);                                                                 \
    }                                                                                                                  \
    extern "C" __global__ void BOUNDS tridiagonal_spread_##S(                                                          \
        u32 count, u32 nrhs, const T *remains, const T *outer, T *ends) {                                              \
        __shared__ Tile<T> s;                                                                                          \
        spread<T>(count, nrhs, remains, outer, ends, s);                                                               \
    }                                                                                                                  \
    extern "C" __global__ void BOUNDS tridiagonal_solve_##S(                                                           \
        u32 n, u32 tiles, u32 nrhs, const T *lower, const T *diag, const T *upper, T *x, const T *ends) {              \
        __shared__ Tile<T> s;                                                                                          \
        solve<T>(n, tiles, nrhs, lower, diag, upper, x, ends, s);                                                      \
    }

KERNELS(float, f32)
KERNELS(double, f64)
