// Stationary distributions of batches of small chains, by elimination without subtraction, level by level.
//
//   e = n-1 .. 1   s_e = sum of q_ej,  w_ie = q_ie / s_e,  q_ij <- q_ij + w_ie*q_ej    i, j < e
//   e = 0 .. n-1   x_0 = 1,  x_e = sum of x_i*w_ie                                     x a multiple of pi
//
// (W. K. Grassmann, M. I. Taksar, D. P. Heyman, Oper. Res. 33 (1985), doi:10.1287/opre.33.5.1107.) States lie in levels that are
// coupled with their neighbours only, so i and j stay in the level of e and the one before it. A thread block takes a chain: the rates
// among the two levels lie in shared memory, each level in the half of its parity, where it stays until it is eliminated. Every number
// is positive: a pivot is a sum of rates, never a difference, so that no digit is lost. x has exponents of its own.
//
// Flops 2*w*w - w a state e > 0 with w states before it in its level and in the level before, and its pivot, w by every warp; then 6*w a state and
// 130, which is a sum over a warp. Traffic 56*k*k + 16*k bytes a level of k states behind one of k: 24*k*k in, 32*k*k for w out and in again.

#include "device.h"

// What is where. Level l has the states row[l] .. row[l + 1] of all states of the batch, and from place[l] on its rates by columns: from
// the level before and from itself, C over D, and then B, those to the level before. Chain c has the levels first[c] .. first[c + 1].
struct Chains {
    const u32 *first, *row;
    const u64 *place;
    double *rates, *mantissa, *exponent;
    // For each chain two words: 0; or NO_WAY and 1 + the state; or RANGE and 1 + the level, both counted in the chain.
    u32 *status;
};
enum : u32 { NO_WAY = 1, RANGE = 2 };

// Smaller products could lose digits to underflow, and smaller quotients have lost them.
constexpr double SAFE = 1e-280, NORMAL = 0x1p-1022, INFINITE = __builtin_huge_val();
// The exponent of zero.
constexpr double NONE = -1e300;

union Bits {
    double number;
    u64 bits;
};
// v = mantissa*2^power, 1 <= mantissa < 2, of a normal number or 0.
DEVICE double mantissa(double v) {
    Bits b = {v};
    b.bits = (b.bits & 0x000fffffffffffffull) | 0x3ff0000000000000ull;
    return v > 0 ? b.number : 0.0;
}
DEVICE double power(double v) {
    const Bits b = {v};
    return v > 0 ? (double)((int)(b.bits >> 52) - 1023) : NONE;
}
// v*2^e for e <= 0; zero where that is below the normal numbers.
DEVICE double lowered(double v, double e) {
    Bits b;
    b.bits = e < -1022 ? 0 : (u64)(u32)((int)e + 1023) << 52;
    return v * b.number;
}

// Level l of a chain: k states, `before` in the level before, and their halves of the window.
struct Level {
    u32 k, before, state;
    double *rates;
    u32 mine, other;
    inline __device__ Level(const Chains &c, u32 l, u32 begin, u32 largest)
        : k(c.row[l + 1] - c.row[l]), before(l > begin ? c.row[l] - c.row[l - 1] : 0), state(c.row[l]), rates(c.rates + c.place[l]),
          mine((l - begin) % 2 * largest), other(largest - mine) {}
    // The place in the window of a state, those of the level before first.
    inline __device__ u32 at(u32 i) const { return i < before ? other + i : mine + i - before; }
    inline __device__ u32 rows() const { return before + k; }
};

// Eliminates the states of a level, from the last one; the state + 1 that has no pivot, or 0, and whether this thread has seen a number
// out of range.
DEVICE u32 eliminate(const Level &l, double *window, u32 ld, u32 lanes, bool &lost, bool &nothing) {
    const u32 t = thread(), groups = threads() / lanes;
#pragma unroll 1
    for (u32 e = l.k; e-- > (l.before == 0 ? 1u : 0u);) {
        const u32 width = l.before + e, column = l.mine + e;
        const double *row = window + column * ld;
        // s <- sum of q_ej, by every warp
        double s = 0;
#pragma unroll 1
        for (u32 j = t % WARP; j < width; j += WARP) s += row[l.at(j)];
        s = sum_lanes(s, WARP);
        if (!(s >= SAFE && s < INFINITE)) {
            nothing = s == 0;
            return e + 1;
        }
        // w_ie <- q_ie/s
#pragma unroll 1
        for (u32 i = t; i < width; i += threads()) {
            double *q = window + l.at(i) * ld + column;
            const double w = *q / s;
            lost = lost || (*q > 0 && !(w >= NORMAL && w < INFINITE));
            *q = w;
        }
        barrier();
        // q_ij <- q_ij + w_ie*q_ej
#pragma unroll 1
        for (u32 i = t / lanes; i < width; i += groups) {
            double *to = window + l.at(i) * ld;
            const double w = to[column];
#pragma unroll 1
            for (u32 j = t % lanes; j < width; j += lanes) {
                if (i == j) continue;
                const double q = row[l.at(j)], product = w * q;
                double *x = to + l.at(j);
                const double sum = *x + product;
                lost = lost || (w > 0 && q > 0 && !(product >= SAFE)) || !(sum < INFINITE);
                *x = sum;
            }
        }
        barrier();
    }
    return 0;
}

// x of a level's states, by one warp; w by columns in `w`. Numbers of x belong to the lane that wrote them.
DEVICE void substitute(const Chains &c, const Level &l, const double *w, double *x, double *powers) {
    const u32 lane = thread();
#pragma unroll 1
    for (u32 e = 0; e < l.k; e++) {
        const double *column = w + e * l.rows();
        const auto each = [&](auto visit) {
#pragma unroll 1
            for (u32 i = lane; i < l.before; i += WARP) visit(column[i], l.other + i);
#pragma unroll 1
            for (u32 i = lane; i < e; i += WARP) visit(column[l.before + i], l.mine + i);
        };
        double most = NONE, sum = 0;
        each([&](double v, u32 i) {
            const double p = powers[i] + power(v);
            most = p > most ? p : most;
        });
#pragma unroll
        for (u32 mask = WARP / 2; mask > 0; mask /= 2) {
            const double there = across(most, mask);
            most = there > most ? there : most;
        }
        // x_e <- sum of x_i*w_ie, relative to its largest term
        each([&](double v, u32 i) { sum += lowered(x[i] * mantissa(v), powers[i] + power(v) - most); });
        sum = sum_lanes(sum, WARP);
        if (l.before == 0 && e == 0) {
            sum = 1;
            most = 0;
        }
        const double m = mantissa(sum), p = sum > 0 ? most + power(sum) : NONE;
        if (lane == e % WARP) {
            x[l.mine + e] = m;
            powers[l.mine + e] = p;
            c.mantissa[l.state + e] = m;
            c.exponent[l.state + e] = p;
        }
    }
}

extern __shared__ double dynamic[];

// Levels of at most `largest` states: shared memory for 2*largest rows of 2*largest + 1 values, and 4*largest more.
extern "C" __global__ void __bounds__(BLOCK) stationary(Chains c, u32 m, u32 largest) {
    const u32 t = thread(), ld = 2 * largest + 1;
    double *window = dynamic, *x = window + 2 * largest * ld, *powers = x + 2 * largest;
    // Threads along a row, a power of two.
    u32 lanes = 4;
    while (lanes < 2 * largest && lanes < WARP) lanes *= 2;
#pragma unroll 1
    for (u32 chain = block(); chain < m; chain += blocks()) {
        const u32 begin = c.first[chain], end = c.first[chain + 1];
        u32 fault = 0, where = 0;
#pragma unroll 1
        for (u32 j = end; j-- > begin && fault == 0;) {
            const Level l(c, j, begin, largest);
            // C over D of this level, D only of the last one: the others were there, and have changed. Then B, and D of the level before.
            const double *in = l.rates;
#pragma unroll 1
            for (u32 e = 0; e < l.k; e++, in += l.rows())
                for (u32 i = t; i < (j + 1 == end ? l.rows() : l.before); i += threads()) window[l.at(i) * ld + l.mine + e] = in[i];
#pragma unroll 1
            for (u32 i = 0; i < l.before; i++, in += l.k)
                for (u32 e = t; e < l.k; e += threads()) window[(l.mine + e) * ld + l.other + i] = in[e];
            if (l.before > 0) {
                const Level b(c, j - 1, begin, largest);
#pragma unroll 1
                for (u32 e = 0; e < b.k; e++)
                    for (u32 i = t; i < b.k; i += threads())
                        window[(b.mine + i) * ld + b.mine + e] = b.rates[e * b.rows() + b.before + i];
            }
            barrier();
            bool lost = false, nothing = false;
            const u32 stuck = eliminate(l, window, ld, lanes, lost, nothing);
            if (__nvvm_bar0_or(lost || (stuck > 0 && !nothing))) {
                fault = RANGE;
                where = j + 1 - begin;
            } else if (stuck > 0) {
                fault = NO_WAY;
                where = l.state - c.row[begin] + stuck;
            }
            // C over D <- w
            double *out = l.rates;
#pragma unroll 1
            for (u32 e = 0; e < l.k; e++, out += l.rows())
                for (u32 i = t; i < l.rows(); i += threads()) out[i] = window[l.at(i) * ld + l.mine + e];
            barrier();
        }
#pragma unroll 1
        for (u32 j = begin; j < end && fault == 0; j++) {
            const Level l(c, j, begin, largest);
            for (u32 i = t; i < l.rows() * l.k; i += threads()) window[i] = l.rates[i];
            barrier();
            if (t < WARP) substitute(c, l, window, x, powers);
            barrier();
        }
        if (t == 0) {
            c.status[2 * chain] = fault;
            c.status[2 * chain + 1] = where;
        }
    }
}
