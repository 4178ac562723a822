//! Substitution with the factors, several right-hand sides at a time: a column of the factors is read once for a group
//! of them, whose windows stay in the first-level cache.

use bt_formats::{Band, Op, Scalar};
use faer::MatMut;

use super::kernels::{axpy_minus, dot};
use crate::pivot::Pivot;

/// Right-hand sides that pass through the factors together.
const GROUP: usize = 8;

pub(super) fn solve<T: Scalar>(lu: &Band<T>, pivots: &[u32], tops: &[u32], op: Op, x: MatMut<'_, T>) {
    let arch = pulp::Arch::new();
    let mut rest = x;
    while rest.ncols() >= GROUP {
        let (group, after) = rest.split_at_col_mut(GROUP);
        arch.dispatch(Group { lu, pivots, tops, op, x: columns::<T, GROUP>(group) });
        rest = after;
    }
    while rest.ncols() > 0 {
        let (column, after) = rest.split_at_col_mut(1);
        arch.dispatch(Group { lu, pivots, tops, op, x: columns::<T, 1>(column) });
        rest = after;
    }
}

/// The G columns of `x` as slices.
fn columns<T: Scalar, const G: usize>(x: MatMut<'_, T>) -> [&mut [T]; G] {
    let mut rest = Some(x);
    std::array::from_fn(|_| {
        let (column, after) = rest.take().expect("G columns").split_at_col_mut(1);
        rest = Some(after);
        column.col_mut(0).try_as_col_major_mut().expect("columns of X must be contiguous").as_slice_mut()
    })
}

/// A group of right-hand sides, as work for a SIMD instruction set.
struct Group<'a, 'x, T: Scalar, const G: usize> {
    lu: &'a Band<T>,
    pivots: &'a [u32],
    tops: &'a [u32],
    op: Op,
    x: [&'x mut [T]; G],
}

impl<T: Scalar, const G: usize> pulp::WithSimd for Group<'_, '_, T, G> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        if S::IS_SCALAR || cfg!(target_family = "wasm") { self.run::<false>() } else { self.run::<true>() }
    }
}

impl<T: Scalar, const G: usize> Group<'_, '_, T, G> {
    #[inline(always)]
    fn run<const FUSED: bool>(mut self) {
        match self.op {
            Op::Identity => self.plain::<FUSED>(),
            Op::Transpose => self.transposed::<FUSED>(|v| v),
            Op::Adjoint => self.transposed::<FUSED>(Scalar::conj),
        }
    }

    #[inline(always)]
    fn plain<const FUSED: bool>(&mut self) {
        let (n, kl, ldab, values) = (self.lu.n(), self.lu.kl(), self.lu.ldab(), self.lu.values());
        let kv = kl + self.lu.ku();
        // x ← L⁻¹·P·x
        for j in 0..n {
            let below = kl.min(n - 1 - j);
            let diagonal = j * ldab + kv;
            let l = &values[diagonal + 1..=diagonal + below];
            for x in &mut self.x {
                x.swap(j, self.pivots[j] as usize);
                axpy_minus::<T, FUSED>(x[j], l, &mut x[j + 1..=j + below]);
            }
        }
        // x ← U⁻¹·x
        for j in (0..n).rev() {
            let (diagonal, top) = (j * ldab + kv, self.tops[j] as usize);
            let u = &values[diagonal + top - j..diagonal];
            let pivot = Pivot::new(values[diagonal]);
            for x in &mut self.x {
                let xj = pivot.divide(x[j]);
                x[j] = xj;
                axpy_minus::<T, FUSED>(xj, u, &mut x[top..j]);
            }
        }
    }

    #[inline(always)]
    fn transposed<const FUSED: bool>(&mut self, map: impl Fn(T) -> T) {
        let (n, kl, ldab, values) = (self.lu.n(), self.lu.kl(), self.lu.ldab(), self.lu.values());
        let kv = kl + self.lu.ku();
        // x ← U⁻ᵀ·x
        for j in 0..n {
            let (diagonal, top) = (j * ldab + kv, self.tops[j] as usize);
            let u = &values[diagonal + top - j..diagonal];
            let pivot = Pivot::new(map(values[diagonal]));
            for x in &mut self.x {
                x[j] = pivot.divide(x[j] - dot::<T, FUSED>(u, &x[top..j], &map));
            }
        }
        // x ← Pᵀ·L⁻ᵀ·x, last step first
        for j in (0..n).rev() {
            let below = kl.min(n - 1 - j);
            let diagonal = j * ldab + kv;
            let l = &values[diagonal + 1..=diagonal + below];
            for x in &mut self.x {
                let sum = dot::<T, FUSED>(l, &x[j + 1..=j + below], &map);
                x[j] -= sum;
                x.swap(j, self.pivots[j] as usize);
            }
        }
    }
}
