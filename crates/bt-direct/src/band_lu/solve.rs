//! Substitution with the factors, column by column of the right-hand sides.

use bt_formats::{Band, Op, Scalar};
use faer::MatMut;

use super::kernels::{axpy_minus, dot};
use crate::pivot::Pivot;
use crate::tridiagonal_lu::for_each_column;

pub(super) fn solve<T: Scalar>(lu: &Band<T>, pivots: &[u32], tops: &[u32], op: Op, x: MatMut<'_, T>) {
    let arch = pulp::Arch::new();
    for_each_column(x, |x| arch.dispatch(Column { lu, pivots, tops, op, x }));
}

/// One right-hand side, as work for a SIMD instruction set.
struct Column<'a, T: Scalar> {
    lu: &'a Band<T>,
    pivots: &'a [u32],
    tops: &'a [u32],
    op: Op,
    x: &'a mut [T],
}

impl<T: Scalar> pulp::WithSimd for Column<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        if S::IS_SCALAR || cfg!(target_family = "wasm") { self.run::<false>() } else { self.run::<true>() }
    }
}

impl<T: Scalar> Column<'_, T> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { lu, pivots, tops, op, x } = self;
        match op {
            Op::Identity => plain::<T, FUSED>(lu, pivots, tops, x),
            Op::Transpose => transposed::<T, FUSED>(lu, pivots, tops, x, |v| v),
            Op::Adjoint => transposed::<T, FUSED>(lu, pivots, tops, x, Scalar::conj),
        }
    }
}

#[inline(always)]
fn plain<T: Scalar, const FUSED: bool>(lu: &Band<T>, pivots: &[u32], tops: &[u32], x: &mut [T]) {
    let (n, kl, ldab, values) = (lu.n(), lu.kl(), lu.ldab(), lu.values());
    let kv = kl + lu.ku();
    // x ← L⁻¹·P·x
    for j in 0..n {
        let below = kl.min(n - 1 - j);
        let diagonal = j * ldab + kv;
        x.swap(j, pivots[j] as usize);
        let xj = x[j];
        axpy_minus::<T, FUSED>(xj, &values[diagonal + 1..=diagonal + below], &mut x[j + 1..=j + below]);
    }
    // x ← U⁻¹·x
    for j in (0..n).rev() {
        let (diagonal, top) = (j * ldab + kv, tops[j] as usize);
        let xj = Pivot::new(values[diagonal]).divide(x[j]);
        x[j] = xj;
        axpy_minus::<T, FUSED>(xj, &values[diagonal + top - j..diagonal], &mut x[top..j]);
    }
}

#[inline(always)]
fn transposed<T: Scalar, const FUSED: bool>(
    lu: &Band<T>,
    pivots: &[u32],
    tops: &[u32],
    x: &mut [T],
    map: impl Fn(T) -> T,
) {
    let (n, kl, ldab, values) = (lu.n(), lu.kl(), lu.ldab(), lu.values());
    let kv = kl + lu.ku();
    // x ← U⁻ᵀ·x
    for j in 0..n {
        let (diagonal, top) = (j * ldab + kv, tops[j] as usize);
        let sum = dot::<T, FUSED>(&values[diagonal + top - j..diagonal], &x[top..j], &map);
        x[j] = Pivot::new(map(values[diagonal])).divide(x[j] - sum);
    }
    // x ← Pᵀ·L⁻ᵀ·x, last step first
    for j in (0..n).rev() {
        let below = kl.min(n - 1 - j);
        let diagonal = j * ldab + kv;
        let sum = dot::<T, FUSED>(&values[diagonal + 1..=diagonal + below], &x[j + 1..=j + below], &map);
        x[j] -= sum;
        x.swap(j, pivots[j] as usize);
    }
}
