//! Solves: partitions, reduced system, interiors; for Aᵀ the same in the opposite order. And what a partition's tips are to its
//! neighbours, in both directions.
//!
//! ```text
//! A = D·S                          Aᵀ = Sᵀ·Dᵀ
//! 1  G_j ← A_j⁻¹·F_j               1  tips ← tips − (interior rows of the spikes)ᵀ·(interior of F)
//! 2  S̃·z = tips of G               2  S̃ᵀ·z = tips
//! 3  X_j ← G_j − V_j·t − W_j·b     3  X_j ← A_j⁻ᵀ·[interior of F_j, z]
//! ```
//!
//! All of it happens in X: the tips of neighbours are adjacent rows, z_i = [b_i; t_i], and a reduced system is solved in
//! these rows. Without stored spikes V_j·t + W_j·b = A_j⁻¹·[C·b; 0; B·t] is one more solve, and its transpose too.

use bt_formats::{Op, Par, Scalar, one, zero};
use faer::linalg::matmul::matmul;
use faer::prelude::IntoConst;
use faer::{Accum, MatMut, MatRef};

use super::factor::{Part, for_groups, piece};

/// Both, on two threads where that pays.
pub(crate) fn join<A: Send, B: Send>(
    par: Par,
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> (A, B) {
    if par == Par::Rayon { bt_formats::join(first, second) } else { (first(), second()) }
}

/// Y ← Y − op(M)·X.
pub(super) fn subtract<T: Scalar>(op: Op, m: MatRef<'_, T>, x: MatRef<'_, T>, y: MatMut<'_, T>) {
    let (minus, par) = (-one::<T>(), faer::Par::Seq);
    if m.nrows() == 0 || m.ncols() == 0 {
        return;
    }
    match op {
        Op::Identity => matmul(y, Accum::Add, m, x, minus, par),
        Op::Transpose => matmul(y, Accum::Add, m.transpose(), x, minus, par),
        Op::Adjoint => matmul(y, Accum::Add, m.adjoint(), x, minus, par),
    }
}

/// X_j ← op(A_j)⁻¹·X_j in all partitions.
pub(super) fn partitions<T: Scalar>(parts: &[Part<T>], op: Op, x: MatMut<'_, T>, par: Par) {
    let [part] = parts else {
        let (left, right) = parts.split_at(parts.len() / 2);
        let (above, below) = x.split_at_row_mut(right[0].rows.start - parts[0].rows.start);
        join(par, || partitions(left, op, above, par), || partitions(right, op, below, par));
        return;
    };
    part.kernel.solve(op, x);
}

/// X_j ← X_j − V_j·t − W_j·b in the interiors of consecutive partitions. `x` has the rows from the first interior to the
/// end of the last, `b` and `t` are the tips next to them.
pub(super) fn interiors<T: Scalar>(
    parts: &[Part<T>],
    b: Option<MatRef<'_, T>>,
    x: MatMut<'_, T>,
    t: Option<MatRef<'_, T>>,
    par: Par,
) {
    let [part] = parts else {
        let (left, right) = parts.split_at(parts.len() / 2);
        let first = parts[0].rows.start + parts[0].left.map_or(0, |i| i.nt);
        let cut = right[0].left.expect("not the first partition");
        let (above, rest) = x.split_at_row_mut(cut.rows().start - first);
        let (z, below) = rest.split_at_row_mut(cut.order());
        let (own_b, own_t) = z.into_const().split_at_row(cut.nb);
        join(par, || interiors(left, b, above, Some(own_t), par), || interiors(right, Some(own_b), below, t, par));
        return;
    };
    part.correct(x, b, t);
}

/// b ← b − W_jᴴ·F, t ← t − V_jᴴ·F (or ᵀ) with the interiors F of consecutive partitions. Rows as in [`interiors`].
pub(super) fn tips<T: Scalar>(
    parts: &[Part<T>],
    op: Op,
    b: Option<MatMut<'_, T>>,
    x: MatMut<'_, T>,
    t: Option<MatMut<'_, T>>,
    par: Par,
) {
    let [part] = parts else {
        let (left, right) = parts.split_at(parts.len() / 2);
        let first = parts[0].rows.start + parts[0].left.map_or(0, |i| i.nt);
        let cut = right[0].left.expect("not the first partition");
        let (above, rest) = x.split_at_row_mut(cut.rows().start - first);
        let (own_b, rest) = rest.split_at_row_mut(cut.nb);
        let (own_t, below) = rest.split_at_row_mut(cut.nt);
        join(par, || tips(left, op, b, above, Some(own_t), par), || tips(right, op, Some(own_b), below, t, par));
        return;
    };
    part.project(op, x.into_const(), b, t);
}

impl<T: Scalar> Part<T> {
    /// X ← X − V·t − W·b in the interior rows `x`.
    fn correct(&self, mut x: MatMut<'_, T>, b: Option<MatRef<'_, T>>, t: Option<MatRef<'_, T>>) {
        let interior = self.interior();
        if let Some([v, w]) = &self.spikes {
            for (spike, tip) in [(v, t), (w, b)] {
                if let Some(tip) = tip {
                    let spike = spike.as_ref().subrows(interior.start, interior.len());
                    subtract(Op::Identity, spike, tip, x.as_mut());
                }
            }
            return;
        }
        if self.b.ncols() + self.c.ncols() == 0 {
            return;
        }
        for_groups(x.ncols(), |columns| {
            let [b, t] = [b, t].map(|m| m.map(|m| m.subcols(columns.start, columns.len())));
            self.scratch.with(|buffer| {
                // Y ← −A_j⁻¹·[C·b; 0; B·t]
                let mut y = piece(buffer, self.rows.len(), columns.len());
                self.couple(b, y.as_mut(), t);
                self.kernel.solve(Op::Identity, y.as_mut());
                let mut x = x.as_mut().subcols_mut(columns.start, columns.len());
                x += y.as_ref().subrows(interior.start, interior.len());
            });
        });
    }

    /// Y ← −[C·b; 0; B·t].
    pub(super) fn couple(&self, b: Option<MatRef<'_, T>>, mut y: MatMut<'_, T>, t: Option<MatRef<'_, T>>) {
        let n = self.rows.len();
        y.fill(zero());
        if let Some(t) = t {
            let r = self.b.nrows();
            subtract(Op::Identity, self.b.as_ref(), t, y.as_mut().subrows_mut(n - r, r));
        }
        if let Some(b) = b {
            subtract(Op::Identity, self.c.as_ref(), b, y.as_mut().subrows_mut(0, self.c.nrows()));
        }
    }

    /// b ← b − op(C)·(first rows of Y), t ← t − op(B)·(last rows of Y): the transpose of [`Part::couple`].
    pub(super) fn uncouple(&self, op: Op, b: Option<MatMut<'_, T>>, y: MatRef<'_, T>, t: Option<MatMut<'_, T>>) {
        let n = self.rows.len();
        if let Some(t) = t {
            let r = self.b.nrows();
            subtract(op, self.b.as_ref(), y.subrows(n - r, r), t);
        }
        if let Some(b) = b {
            subtract(op, self.c.as_ref(), y.subrows(0, self.c.nrows()), b);
        }
    }

    /// b ← b − op(W)·F, t ← t − op(V)·F with the interior rows of W, V and F.
    fn project(&self, op: Op, f: MatRef<'_, T>, mut b: Option<MatMut<'_, T>>, mut t: Option<MatMut<'_, T>>) {
        let interior = self.interior();
        if let Some([v, w]) = &self.spikes {
            for (spike, tip) in [(v, t), (w, b)] {
                if let Some(tip) = tip {
                    subtract(op, spike.as_ref().subrows(interior.start, interior.len()), f, tip);
                }
            }
            return;
        }
        if self.b.ncols() + self.c.ncols() == 0 {
            return;
        }
        for_groups(f.ncols(), |columns| {
            self.scratch.with(|buffer| {
                // Y ← A_j⁻ᵀ·[0; F; 0]
                let mut y = piece(buffer, self.rows.len(), columns.len());
                y.fill(zero());
                y.as_mut()
                    .subrows_mut(interior.start, interior.len())
                    .copy_from(f.subcols(columns.start, columns.len()));
                self.kernel.solve(op, y.as_mut());
                let b = b.as_mut().map(|b| b.as_mut().subcols_mut(columns.start, columns.len()));
                let t = t.as_mut().map(|t| t.as_mut().subcols_mut(columns.start, columns.len()));
                self.uncouple(op, b, y.as_ref(), t);
            });
        });
    }
}
