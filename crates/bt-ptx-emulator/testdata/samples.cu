// Kernels that exercise the interpreter; samples.ptx is what clang 19 makes of them:
//   clang-19 -x cuda samples.cu --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch=sm_70 \
//     --cuda-feature=+ptx63 -O3 -std=c++17 -ffp-contract=on -Werror -S -o samples.ptx
#define KERNEL extern "C" __attribute__((global)) void
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))
using u32 = unsigned;

DEVICE static u32 tid() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE static u32 block() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE static u32 threads() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE static u32 blocks() { return __nvvm_read_ptx_sreg_nctaid_x(); }
DEVICE static u32 self() { return block() * threads() + tid(); }

DEVICE static double shuffle_xor(double x, int lanes) {
  union { double value; int half[2]; } v{x};
  v.half[0] = __nvvm_shfl_sync_bfly_i32(~0u, v.half[0], lanes, 31);
  v.half[1] = __nvvm_shfl_sync_bfly_i32(~0u, v.half[1], lanes, 31);
  return v.value;
}

DEVICE static double warp_sum(double x) {
  for (int lanes = 16; lanes; lanes >>= 1) x += shuffle_xor(x, lanes);
  return x;
}

// y = A x, a thread for each row.
KERNEL csr_rows(u32 n, const u32 *__restrict__ start, const u32 *__restrict__ column, const double *__restrict__ value,
                const double *__restrict__ x, double *__restrict__ y) {
  u32 i = self();
  if (i >= n) return;
  double sum = 0;
  for (u32 j = start[i]; j < start[i + 1]; ++j) sum += value[j] * x[column[j]];
  y[i] = sum;
}

// y = A x, a warp for each row, values in single precision.
KERNEL csr_warps(u32 n, const u32 *start, const u32 *column, const float *value, const float *x, float *y) {
  u32 i = self() / 32, lane = tid() % 32;
  double sum = 0;
  if (i < n)
    for (u32 j = start[i] + lane; j < start[i + 1]; j += 32) sum += (double)value[j] * x[column[j]];
  sum = warp_sum(sum);
  if (i < n && lane == 0) y[i] = (float)sum;
}

// Partial sums of x.y, one for each block.
KERNEL dot(u32 n, const double *x, const double *y, double *partial) {
  SHARED static double sums[32];
  double sum = 0;
  for (u32 i = self(); i < n; i += blocks() * threads()) sum += x[i] * y[i];
  sum = warp_sum(sum);
  if (tid() % 32 == 0) sums[tid() / 32] = sum;
  __syncthreads();
  if (tid() < 32) {
    sum = warp_sum(tid() < threads() / 32 ? sums[tid()] : 0);
    if (tid() == 0) partial[block()] = sum;
  }
}

extern SHARED double dynamic_memory[];

// Parallel cyclic reduction of one tridiagonal system of as many rows as the block has threads.
KERNEL pcr(const double *lower, const double *diagonal, const double *upper, const double *right, double *x) {
  int n = threads(), i = tid();
  double *a = dynamic_memory, *b = a + n, *c = b + n, *r = c + n;
  a[i] = i > 0 ? lower[i] : 0, b[i] = diagonal[i], c[i] = i < n - 1 ? upper[i] : 0, r[i] = right[i];
  __syncthreads();
  for (int s = 1; s < n; s *= 2) {
    double ai = 0, bi = b[i], ci = 0, ri = r[i];
    if (i >= s) {
      double k = a[i] / b[i - s];
      ai = -k * a[i - s], bi -= k * c[i - s], ri -= k * r[i - s];
    }
    if (i + s < n) {
      double k = c[i] / b[i + s];
      ci = -k * c[i + s], bi -= k * a[i + s], ri -= k * r[i + s];
    }
    __syncthreads();
    a[i] = ai, b[i] = bi, c[i] = ci, r[i] = ri;
    __syncthreads();
  }
  x[i] = r[i] / b[i];
}

// Thomas' algorithm on interleaved systems, a thread for each; c and d are overwritten, d with the solution.
KERNEL thomas(u32 rows, u32 systems, const double *a, const double *b, double *c, double *d) {
  u32 s = self();
  if (s >= systems) return;
  double previous_c = 0, previous_d = 0;
  for (u32 i = 0; i < rows; ++i) {
    u32 k = i * systems + s;
    double pivot = b[k] - a[k] * previous_c;
    c[k] = previous_c = c[k] / pivot;
    d[k] = previous_d = (d[k] - a[k] * previous_d) / pivot;
  }
  for (u32 i = rows - 1; i-- > 0;) {
    u32 k = i * systems + s;
    d[k] = previous_d = d[k] - c[k] * previous_d;
  }
}

// LU with partial pivoting of 4 x 4 matrices in local memory, a thread for each.
KERNEL lu4(u32 count, double *matrices) {
  u32 i = self();
  if (i >= count) return;
  double m[16];
  for (int k = 0; k < 16; ++k) m[k] = matrices[16 * i + k];
  for (int k = 0; k < 4; ++k) {
    int p = k;
    for (int r = k + 1; r < 4; ++r)
      if (__builtin_fabs(m[4 * r + k]) > __builtin_fabs(m[4 * p + k])) p = r;
    for (int c = 0; c < 4; ++c) {
      double t = m[4 * k + c];
      m[4 * k + c] = m[4 * p + c], m[4 * p + c] = t;
    }
    for (int r = k + 1; r < 4; ++r) {
      m[4 * r + k] /= m[4 * k + k];
      for (int c = k + 1; c < 4; ++c) m[4 * r + c] -= m[4 * r + k] * m[4 * k + c];
    }
  }
  for (int k = 0; k < 16; ++k) matrices[16 * i + k] = m[k];
}

struct Axpy {
  double alpha;
  u32 n;
  const double *x;
  double *y;
};

// y = alpha x + y, its parameters in a structure.
KERNEL axpy(Axpy p) {
  u32 i = self();
  if (i < p.n) p.y[i] = p.alpha * p.x[i] + p.y[i];
}

// All blocks wait until `goal` blocks have come.
DEVICE static void grid_barrier(volatile u32 *arrived, u32 goal) {
  __syncthreads();
  if (tid() == 0) {
    __nvvm_membar_gl();
    __nvvm_atom_add_gen_i((int *)arrived, 1);
    while (*arrived < goal) {}
    __nvvm_membar_gl();
  }
  __syncthreads();
}

__attribute__((constant)) double thirds[3] = {1, 2, 3};

// Jacobi steps for -x[i-1] + 4 x[i] - x[i+1] = thirds[i % 3], all in one cooperative launch.
KERNEL jacobi(u32 n, u32 steps, double *x, double *y, u32 *arrived) {
  for (u32 k = 0; k < steps; ++k) {
    double *from = k % 2 ? y : x, *to = k % 2 ? x : y;
    for (u32 i = self(); i < n; i += blocks() * threads())
      to[i] = ((i > 0 ? from[i - 1] : 0) + (i + 1 < n ? from[i + 1] : 0) + thirds[i % 3]) * 0.25;
    grid_barrier(arrived, (k + 1) * blocks());
  }
}

// Conjugate gradients for tridiag(-1, 2.5, -1) x = b from x = 0, one cooperative launch. Work: r, p, q, and a partial sum
// for each block, twice.
KERNEL cg(u32 n, u32 steps, const double *b, double *x, double *r, double *p, double *q, double *partial, u32 *arrived) {
  SHARED static double sums[32];
  u32 goal = 0;
  auto total = [&](double mine, double *to) {
    double sum = warp_sum(mine);
    if (tid() % 32 == 0) sums[tid() / 32] = sum;
    __syncthreads();
    if (tid() == 0) {
      double block_sum = 0;
      for (u32 w = 0; w < threads() / 32; ++w) block_sum += sums[w];
      to[block()] = block_sum;
    }
    grid_barrier(arrived, goal += blocks());
    double all = 0;
    for (u32 k = 0; k < blocks(); ++k) all += ((volatile double *)to)[k];
    return all;
  };
  double rho = 0;
  for (u32 i = self(); i < n; i += blocks() * threads()) x[i] = 0, r[i] = p[i] = b[i], rho += b[i] * b[i];
  rho = total(rho, partial);
  for (u32 k = 0; k < steps && rho > 0; ++k) {
    double pq = 0;
    for (u32 i = self(); i < n; i += blocks() * threads()) {
      double qi = 2.5 * p[i] - (i > 0 ? p[i - 1] : 0) - (i + 1 < n ? p[i + 1] : 0);
      q[i] = qi, pq += p[i] * qi;
    }
    double alpha = rho / total(pq, partial + blocks()), next = 0;
    for (u32 i = self(); i < n; i += blocks() * threads()) {
      x[i] += alpha * p[i];
      double ri = r[i] - alpha * q[i];
      r[i] = ri, next += ri * ri;
    }
    next = total(next, partial);
    double beta = next / rho;
    for (u32 i = self(); i < n; i += blocks() * threads()) p[i] = r[i] + beta * p[i];
    rho = next;
    grid_barrier(arrived, goal += blocks());
  }
}

// Sums of segments in one block: head[i] starts a segment; every element gets the sum of its segment up to itself.
KERNEL segmented_sums(const u32 *head, const double *value, double *sum) {
  SHARED static double s[256];
  SHARED static u32 h[256];
  u32 i = tid();
  s[i] = value[i], h[i] = head[i];
  __syncthreads();
  for (u32 d = 1; d < threads(); d *= 2) {
    double add = i >= d && !h[i] ? s[i - d] : 0;
    u32 flag = i >= d ? h[i - d] : 1;
    __syncthreads();
    s[i] += add, h[i] |= flag;
    __syncthreads();
  }
  sum[i] = s[i];
}

__attribute__((noinline)) DEVICE double pick(double a, int n) {
  double table[8];
  for (int i = 0; i < 8; ++i) table[i] = a * i;
  return table[n & 7];
}

// Calls with frames of local memory.
KERNEL calls(double *x, int n) { x[tid()] = pick(x[tid()], n + (int)tid()) + pick(2, n + 1); }

// Votes, ballots, matches and counts of one warp.
KERNEL votes(u32 *out) {
  u32 t = tid();
  out[t] = __nvvm_vote_ballot_sync(~0u, t & 1);
  out[32 + t] = __nvvm_vote_any_sync(~0u, t == 3) + 2 * __nvvm_vote_all_sync(~0u, t < 32);
  out[64 + t] = __nvvm_match_any_sync_i32(~0u, t / 4);
  out[96 + t] = __nvvm_bar0_popc(t > 3) + 100 * (__nvvm_bar0_and(t > 3) != 0) + 200 * (__nvvm_bar0_or(t > 3) != 0);
}

// A histogram by atomics, in shared memory and then in global.
KERNEL histogram(u32 n, const u32 *value, u32 *count) {
  SHARED static int local[16];
  if (tid() < 16) local[tid()] = 0;
  __syncthreads();
  for (u32 i = self(); i < n; i += blocks() * threads()) __nvvm_atom_add_gen_i(&local[value[i] % 16], 1);
  __syncthreads();
  if (tid() < 16) __nvvm_atom_add_gen_i((int *)&count[tid()], local[tid()]);
}
