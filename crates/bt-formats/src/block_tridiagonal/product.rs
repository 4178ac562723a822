//! Products with hybrid storage.

use super::{BlockTridiagonal, Couplings, Window};
use crate::operator::{Matrix, Op, Par, zero};
use crate::scalar::Scalar;

impl<T: Scalar> BlockTridiagonal<T> {
    /// r ← r − Lⱼ·xⱼ₋₁ with the whole vector `x` (length n) and the `r` of block j (length kⱼ). Nothing for j = 0.
    ///
    /// # Panics
    /// When a length is wrong.
    pub fn subtract_lower(&self, j: usize, x: &[T], r: &mut [T]) {
        self.subtract(j, x, r, |w, c| c < w.start);
    }

    /// r ← r − Uⱼ·xⱼ₊₁ with the whole vector `x` (length n) and the `r` of block j (length kⱼ). Nothing for j = m − 1.
    ///
    /// # Panics
    /// When a length is wrong.
    pub fn subtract_upper(&self, j: usize, x: &[T], r: &mut [T]) {
        self.subtract(j, x, r, |w, c| c >= w.end);
    }

    /// r ← r − Lⱼ·xⱼ₋₁ − Uⱼ·xⱼ₊₁ in one pass over the couplings of block row j. Allocates nothing.
    ///
    /// # Panics
    /// When a length is wrong.
    ///
    /// # Cost
    /// Two flops a coupling entry.
    pub fn subtract_couplings(&self, j: usize, x: &[T], r: &mut [T]) {
        self.subtract(j, x, r, |_, _| true);
    }

    /// r ← r − Σ v·x(c) over the coupling entries of block row j whose column is wanted.
    #[inline(always)]
    fn subtract(&self, j: usize, x: &[T], r: &mut [T], wanted: impl Fn(Window, usize) -> bool) {
        let w = Window::new(&self.partition, j);
        assert_eq!((x.len(), r.len()), (self.n(), w.size()), "lengths of x and r");
        match &self.couplings {
            Couplings::Coo { entries, block_ptr } => {
                let range = block_ptr[j] as usize..block_ptr[j + 1] as usize;
                let (rows, cols) = (&entries.rows()[range.clone()], &entries.cols()[range.clone()]);
                for ((&i, &c), &v) in rows.iter().zip(cols).zip(&entries.values()[range]) {
                    if wanted(w, c as usize) {
                        r[i as usize - w.start] -= v * x[c as usize];
                    }
                }
            }
            Couplings::Csr(a) => {
                for (i, ri) in (w.start..w.end).zip(r) {
                    let (cols, vals) = a.row(i);
                    let mut sum = zero::<T>();
                    for (&c, &v) in cols.iter().zip(vals) {
                        if wanted(w, c as usize) {
                            sum += v * x[c as usize];
                        }
                    }
                    *ri -= sum;
                }
            }
            Couplings::Dense { starts, values } => {
                let block = &values[starts[j]..starts[j + 1]];
                for (k, column) in block.chunks_exact(w.size()).enumerate() {
                    let c = w.global_col(k);
                    if wanted(w, c) {
                        let xc = x[c];
                        for (ri, &v) in r.iter_mut().zip(column) {
                            *ri -= v * xc;
                        }
                    }
                }
            }
        }
    }

    pub(super) fn product(&self, op: Op, alpha: T, x: &[T], beta: T, y: &mut [T], _par: Par) {
        assert_eq!((x.len(), y.len()), (self.n(), self.n()), "lengths of x and y");
        if beta == zero() {
            y.fill(zero());
        } else {
            y.iter_mut().for_each(|v| *v *= beta);
        }
        self.for_each_entry(&mut |i, c, v| match op {
            Op::Identity => y[i] += v * (alpha * x[c]),
            Op::Transpose => y[c] += v * (alpha * x[i]),
            Op::Adjoint => y[c] += Scalar::conj(v) * (alpha * x[i]),
        });
    }
}
