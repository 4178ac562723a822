//! Panels of narrow blocks, four columns at a time.
//!
//! ```text
//! [X; Y] ← [X; Y] − P·P₁ᴴ      four columns, less what they take from those before; P₁ the rows of X in P
//! X = L·Lᴴ      Y ← Y·L⁻ᴴ
//! ```
//!
//! Up to eight rows of four columns stand in registers while all columns before are taken from them. What stands above the diagonal of
//! a panel is not used: whole vectors are written there.

use std::array::from_fn;

use bt_formats::{RealScalar, Scalar, mul_add, one, zero};

/// Columns that are eliminated together.
const TOGETHER: usize = 4;

/// [D̃; A(t, j)] → [L; H]: `k` columns of `k` + `next` rows; the smallest pivot, or the row of the block whose pivot is not positive.
pub(super) struct Panel<'a, T> {
    pub values: &'a mut [T],
    pub k: usize,
    pub next: usize,
}

/// The lower half of D̃ ← D̃ − H·Hᴴ: H below the `from_k` rows of the panel `from`, D̃ the first `k` of `k` + `next` rows.
pub(super) struct Subtract<'a, T> {
    pub from: &'a [T],
    pub from_k: usize,
    pub to: &'a mut [T],
    pub k: usize,
    pub next: usize,
}

/// P: whole columns of `ld` values, of which row 0 is the value `first`.
#[derive(Clone, Copy)]
struct Before<'a, T> {
    values: &'a [T],
    ld: usize,
    first: usize,
}

/// L of C columns, and the reciprocals of its diagonal.
struct Corner<T, const C: usize> {
    l: [[T; C]; C],
    reciprocals: [T; C],
}

impl<T: Scalar> pulp::WithSimd for Panel<'_, T> {
    type Output = Result<f64, usize>;
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> Self::Output {
        if S::IS_SCALAR || cfg!(target_family = "wasm") { self.run::<false>() } else { self.run::<true>() }
    }
}

impl<T: Scalar> pulp::WithSimd for Subtract<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        if S::IS_SCALAR || cfg!(target_family = "wasm") { self.run::<false>() } else { self.run::<true>() }
    }
}

impl<T: Scalar> Panel<'_, T> {
    #[inline(always)]
    fn run<const FUSED: bool>(mut self) -> Result<f64, usize> {
        let mut smallest = f64::INFINITY;
        let in_fours = self.k - self.k % TOGETHER;
        for c in (0..in_fours).step_by(TOGETHER) {
            self.columns::<TOGETHER, FUSED>(c, &mut smallest)?;
        }
        for c in in_fours..self.k {
            self.columns::<1, FUSED>(c, &mut smallest)?;
        }
        Ok(smallest)
    }

    /// The columns c..c + C of L and H.
    #[inline(always)]
    fn columns<const C: usize, const FUSED: bool>(&mut self, c: usize, smallest: &mut f64) -> Result<(), usize> {
        let ld = self.k + self.next;
        let (before, own) = self.values.split_at_mut(c * ld);
        let mut columns = Columns::<T, C> { before: Before { values: before, ld, first: 0 }, top: c, own, ld };
        let corner = columns.corner::<FUSED>(smallest)?;
        columns.sweep::<FUSED>(c + C..ld, Some(&corner));
        Ok(())
    }
}

impl<T: Scalar> Subtract<'_, T> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { from, from_k, to, k, next } = self;
        let (before, ld) = (Before { values: from, ld: from_k + k, first: from_k }, k + next);
        let in_fours = k - k % TOGETHER;
        for top in (0..in_fours).step_by(TOGETHER) {
            let own = &mut to[top * ld..];
            Columns::<T, TOGETHER> { before, top, own, ld }.sweep::<FUSED>(top..k, None);
        }
        for top in in_fours..k {
            Columns::<T, 1> { before, top, own: &mut to[top * ld..], ld }.sweep::<FUSED>(top..k, None);
        }
    }
}

/// C columns of `ld` values, whose diagonal begins in row `top`, and those they take from.
struct Columns<'a, T, const C: usize> {
    before: Before<'a, T>,
    top: usize,
    own: &'a mut [T],
    ld: usize,
}

impl<T: Scalar, const C: usize> Columns<'_, T, C> {
    /// X = L·Lᴴ
    #[inline(always)]
    fn corner<const FUSED: bool>(&mut self, smallest: &mut f64) -> Result<Corner<T, C>, usize> {
        let mut l: [[T; C]; C] = self.reduced::<C, FUSED>(self.top);
        let mut reciprocals = [zero(); C];
        for p in 0..C {
            let pivot = l[p][p].re();
            if !(pivot > zero() && pivot.to_f64().is_finite()) {
                return Err(self.top + p);
            }
            *smallest = smallest.min(pivot.to_f64());
            // l ← √d;  the rest of the column ← itself/l. Roots are far from the ends of the range: they have reciprocals.
            let root = pivot.sqrt();
            reciprocals[p] = T::from_real(one::<T::Real>() / root);
            l[p][p] = T::from_real(root);
            for r in p + 1..C {
                l[p][r] *= reciprocals[p];
            }
            for q in p + 1..C {
                let minus = -Scalar::conj(l[p][q]);
                for r in q..C {
                    l[q][r] = mul_add::<T, FUSED>(minus, l[p][r], l[q][r]);
                }
            }
        }
        self.write(self.top, &l);
        Ok(Corner { l, reciprocals })
    }

    /// Other rows, and Y ← Y·L⁻ᴴ with a corner.
    #[inline(always)]
    fn sweep<const FUSED: bool>(&mut self, rows: std::ops::Range<usize>, corner: Option<&Corner<T, C>>) {
        let mut r = rows.start;
        while r + 8 <= rows.end {
            self.rows::<8, FUSED>(r, corner);
            r += 8;
        }
        if r + 4 <= rows.end {
            self.rows::<4, FUSED>(r, corner);
            r += 4;
        }
        for r in r..rows.end {
            self.rows::<1, FUSED>(r, corner);
        }
    }

    #[inline(always)]
    fn rows<const W: usize, const FUSED: bool>(&mut self, r: usize, corner: Option<&Corner<T, C>>) {
        let mut y: [[T; W]; C] = self.reduced::<W, FUSED>(r);
        if let Some(Corner { l, reciprocals }) = corner {
            for p in 0..C {
                let x = y[p].map(|v| v * reciprocals[p]);
                y[p] = x;
                for q in p + 1..C {
                    y[q] = minus_product::<T, W, FUSED>(l[p][q], &x, y[q]);
                }
            }
        }
        self.write(r, &y);
    }

    /// W rows from r on, less what they take from the columns before.
    #[inline(always)]
    fn reduced<const W: usize, const FUSED: bool>(&self, r: usize) -> [[T; W]; C] {
        let Before { values, ld, first } = self.before;
        let mut sums: [[T; W]; C] = from_fn(|q| numbers(self.own, q * self.ld + r));
        for column in values.chunks_exact(ld) {
            let (x, own): ([T; W], [T; C]) = (numbers(column, first + r), numbers(column, first + self.top));
            for q in 0..C {
                sums[q] = minus_product::<T, W, FUSED>(own[q], &x, sums[q]);
            }
        }
        sums
    }

    #[inline(always)]
    fn write<const W: usize>(&mut self, r: usize, values: &[[T; W]; C]) {
        for (q, values) in values.iter().enumerate() {
            self.own[q * self.ld + r..][..W].copy_from_slice(values);
        }
    }
}

/// The numbers from a place on.
#[inline(always)]
fn numbers<T: Scalar, const W: usize>(values: &[T], first: usize) -> [T; W] {
    *values[first..].first_chunk().expect("as many numbers")
}

/// y − x·conj(a)
#[inline(always)]
fn minus_product<T: Scalar, const W: usize, const FUSED: bool>(a: T, x: &[T; W], mut y: [T; W]) -> [T; W] {
    let minus = -Scalar::conj(a);
    for l in 0..W {
        y[l] = mul_add::<T, FUSED>(minus, x[l], y[l]);
    }
    y
}
