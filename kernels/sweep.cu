// One sweep over the rows of a triangle, or of a whole matrix: all that SSOR-AI and Jacobi sweeps for triangular factors are made of.
//
//   out <- F*(base - E*N*(G*x))     E, F, G diagonal, each of them absent or given; without base: out <- N*x
//
// N has the entries begin[i] + skip .. end[i] of row i, so that a triangle of A is read from A itself. Rows are summed in one fixed order.
//
// Traffic, s bytes a value and z entries of N: z(s + 4) + 4n (8n where begin and end are not one array) + gathers of x
// (and G) + s*n for each of base, E, F and out; every lane of a row reads its ends. Flops: 2z, z with G, n with E, n with base, 2n with F, and
// the sum of the lanes of a row.

#include "device.h"

#define KERNEL(T, S, LANES)                                                                                  \
    extern "C" __global__ void __bounds__(BLOCK)                                                             \
        sweep_##LANES##_##S(Rows<T> s, const T *base, const T *x, T *out, const double *now) {               \
        sweep<T, LANES>(s, base, x, out, now);                                                               \
    }

KERNEL(float, f32, 1)
KERNEL(float, f32, 8)
KERNEL(float, f32, 32)
KERNEL(double, f64, 1)
KERNEL(double, f64, 8)
KERNEL(double, f64, 32)
