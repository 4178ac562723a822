//! Recursive: neighbouring partitions are merged in pairs until one is left, p a power of two or not.
//!
//! Merging a and b at a cut solves the 2-partition system with K = [I V_a^(b); W_b^(t) I] for the spikes of the union,
//!
//! ```text
//! K·[V̂_b; V̂_t] = [0; V_b^(t)]     V̂^(t) = −V_a^(t)·V̂_t           V̂^(b) = V_b^(b) − W_b^(b)·V̂_b
//! K·[Ŵ_b; Ŵ_t] = [W_a^(b); 0]     Ŵ^(t) = W_a^(t) − V_a^(t)·Ŵ_t   Ŵ^(b) = −W_b^(b)·Ŵ_b
//! ```
//!
//! of which the tips go up and the rows at the cut stay for the way back. E. Polizzi and A. Sameh, Comput. Fluids 36
//! (2007) 113–141, doi:10.1016/j.compfluid.2005.07.005, §3. Departure: K is factored with pivoting across its rows
//! instead of as [I; W I][I V; 0 I − WV], so that large spikes on one side do no harm.

use bt_formats::{Op, RealScalar, Scalar, zero};
use faer::prelude::IntoConst;
use faer::{Mat, MatMut};

use super::super::factor::{Part, Tips, largest, matrix};
use super::super::partition::Layout;
use super::super::sweep::subtract;
use super::{check_pivots, factor_pair, named, pair};
use crate::band_lu::BandLu;
use crate::error::Result;
use crate::factorization::{FactorStats, Factorization};

/// The union of the partitions lo..hi, cut after partition `cut`.
struct Merge<T: Scalar> {
    lu: BandLu<T>,
    /// Rows at the cut of the union's spikes: [V̂_b; V̂_t] and [Ŵ_b; Ŵ_t].
    v: Mat<T>,
    w: Mat<T>,
    tips: Tips<T>,
}

pub(in super::super) struct Recursive<T: Scalar> {
    /// By cut.
    merges: Vec<Merge<T>>,
}

/// The cut at which lo..hi is divided.
fn cut(lo: usize, hi: usize) -> usize {
    lo.midpoint(hi) - 1
}

impl<T: Scalar> Recursive<T> {
    pub(super) fn empty(layout: &Layout) -> Result<Self> {
        let mut merges: Vec<Option<Merge<T>>> = layout.interfaces.iter().map(|_| None).collect();
        Self::allocate(layout, 0, layout.p(), &mut merges)?;
        Ok(Self { merges: merges.into_iter().map(|m| m.expect("every cut is one merge")).collect() })
    }

    #[inline(never)]
    fn allocate(layout: &Layout, lo: usize, hi: usize, merges: &mut [Option<Merge<T>>]) -> Result<()> {
        if hi - lo < 2 {
            return Ok(());
        }
        let i = cut(lo, hi);
        let own = layout.interfaces[i];
        let (left, right) = (layout.left(lo), layout.right(hi - 1));
        let (lt, lb) = left.map_or((0, 0), |c| (c.nt, c.nb));
        let (rt, rb) = right.map_or((0, 0), |c| (c.nt, c.nb));
        merges[i] = Some(Merge {
            lu: pair(&own)?,
            v: matrix(own.order(), rt)?,
            w: matrix(own.order(), lb)?,
            tips: Tips { vt: matrix(lt, rt)?, vb: matrix(rb, rt)?, wt: matrix(lt, lb)?, wb: matrix(rb, lb)? },
        });
        Self::allocate(layout, lo, i + 1, merges)?;
        Self::allocate(layout, i + 1, hi, merges)
    }

    /// Tips of the union lo..hi.
    fn tips<'a>(merges: &'a [Merge<T>], parts: &'a [Part<T>], lo: usize, hi: usize) -> &'a Tips<T> {
        if hi - lo == 1 { &parts[lo].tips } else { &merges[cut(lo, hi)].tips }
    }

    pub(super) fn factor(&mut self, layout: &Layout, parts: &[Part<T>]) -> Result<f64> {
        self.merge(layout, parts, 0, layout.p())
    }

    fn merge(&mut self, layout: &Layout, parts: &[Part<T>], lo: usize, hi: usize) -> Result<f64> {
        if hi - lo < 2 {
            return Ok(0.0);
        }
        let i = cut(lo, hi);
        let own = layout.interfaces[i];
        let size = self.merge(layout, parts, lo, i + 1)?;
        let size = size.max_nan(self.merge(layout, parts, i + 1, hi)?);
        // The merge at this cut out of the way of its neighbours, from which it reads.
        let (before, rest) = self.merges.split_at_mut(i);
        let (merge, after) = rest.split_first_mut().expect("a merge for every cut");
        let a = if i == lo { &parts[lo].tips } else { &before[cut(lo, i + 1)].tips };
        let b = if i + 2 == hi { &parts[i + 1].tips } else { &after[cut(i + 1, hi) - i - 1].tips };
        factor_pair(&mut merge.lu, &own, a.vb.as_ref(), b.wt.as_ref()).map_err(|e| named(e, i, &own))?;
        check_pivots::<T>(merge.lu.stats(), layout.n(), Some(i))?;
        let Merge { lu, v, w, tips } = merge;
        v.as_mut().subrows_mut(0, own.nb).fill(zero());
        w.as_mut().subrows_mut(own.nb, own.nt).fill(zero());
        if v.ncols() > 0 {
            v.as_mut().subrows_mut(own.nb, own.nt).copy_from(&b.vt);
            lu.solve_in_place(v.as_mut());
        }
        if w.ncols() > 0 {
            w.as_mut().subrows_mut(0, own.nb).copy_from(&a.wb);
            lu.solve_in_place(w.as_mut());
        }
        let minus = |base: Option<&Mat<T>>, m: &Mat<T>, x: &Mat<T>, rows: std::ops::Range<usize>, out: &mut Mat<T>| {
            match base {
                Some(base) if out.nrows() * out.ncols() > 0 => out.copy_from(base),
                _ => out.fill(zero()),
            }
            if out.nrows() * out.ncols() > 0 {
                subtract(Op::Identity, m.as_ref(), x.as_ref().subrows(rows.start, rows.len()), out.as_mut());
            }
        };
        let (rows_b, rows_t) = (0..own.nb, own.nb..own.order());
        minus(None, &a.vt, v, rows_t.clone(), &mut tips.vt);
        minus(Some(&b.vb), &b.wb, v, rows_b.clone(), &mut tips.vb);
        minus(Some(&a.wt), &a.vt, w, rows_t, &mut tips.wt);
        minus(None, &b.wb, w, rows_b, &mut tips.wb);
        Ok(size.max_nan(largest(v.as_ref())).max_nan(largest(w.as_ref())))
    }

    pub(super) fn solve(&self, op: Op, layout: &Layout, parts: &[Part<T>], mut x: MatMut<'_, T>) {
        let p = layout.p();
        let sweep = Sweep { merges: &self.merges, layout, parts, op };
        if op == Op::Identity {
            sweep.up(0, p, x.as_mut());
            sweep.down(0, p, x);
        } else {
            sweep.down(0, p, x.as_mut());
            sweep.up(0, p, x);
        }
    }

    pub(super) fn factors(&self) -> impl Iterator<Item = &BandLu<T>> {
        self.merges.iter().map(|m| &m.lu)
    }

    pub(super) fn stats(&self) -> impl Iterator<Item = FactorStats> + '_ {
        self.merges.iter().map(|m| {
            let t = &m.tips;
            let values: usize = [&m.v, &m.w, &t.vt, &t.vb, &t.wt, &t.wb].iter().map(|m| m.nrows() * m.ncols()).sum();
            let lu = m.lu.stats();
            FactorStats { nnz: lu.nnz + values, bytes: lu.bytes + values * size_of::<T>(), ..lu }
        })
    }
}

/// A solve in the tip rows of x.
struct Sweep<'a, T: Scalar> {
    merges: &'a [Merge<T>],
    layout: &'a Layout,
    parts: &'a [Part<T>],
    op: Op,
}

impl<T: Scalar> Sweep<'_, T> {
    /// From the partitions to their union. Of the transpose: the same steps transposed, in the opposite order.
    fn up(&self, lo: usize, hi: usize, mut x: MatMut<'_, T>) {
        if hi - lo < 2 {
            return;
        }
        let i = cut(lo, hi);
        let own = self.layout.interfaces[i];
        let (a, b) =
            (Recursive::tips(self.merges, self.parts, lo, i + 1), Recursive::tips(self.merges, self.parts, i + 1, hi));
        let plain = self.op == Op::Identity;
        if plain {
            self.up(lo, i + 1, x.as_mut());
            self.up(i + 1, hi, x.as_mut());
            self.solve_pair(i, x.as_mut());
        }
        // g^(t) of the union ← g^(t) − V_a^(t)·t;  g^(b) ← g^(b) − W_b^(b)·b
        if let Some(left) = self.layout.left(lo) {
            self.subtract(&a.vt, own.t(), left.t(), x.as_mut());
        }
        if let Some(right) = self.layout.right(hi - 1) {
            self.subtract(&b.wb, own.b(), right.b(), x.as_mut());
        }
        if !plain {
            self.solve_pair(i, x.as_mut());
            self.up(lo, i + 1, x.as_mut());
            self.up(i + 1, hi, x);
        }
    }

    /// z ← z − V̂·t − Ŵ·b with the tips outside the union, then the same inside.
    fn down(&self, lo: usize, hi: usize, mut x: MatMut<'_, T>) {
        if hi - lo < 2 {
            return;
        }
        let i = cut(lo, hi);
        let (own, merge) = (self.layout.interfaces[i], &self.merges[i]);
        let plain = self.op == Op::Identity;
        if !plain {
            self.down(lo, i + 1, x.as_mut());
            self.down(i + 1, hi, x.as_mut());
        }
        if let Some(right) = self.layout.right(hi - 1) {
            self.subtract(&merge.v, right.t(), own.rows(), x.as_mut());
        }
        if let Some(left) = self.layout.left(lo) {
            self.subtract(&merge.w, left.b(), own.rows(), x.as_mut());
        }
        if plain {
            self.down(lo, i + 1, x.as_mut());
            self.down(i + 1, hi, x);
        }
    }

    fn solve_pair(&self, i: usize, x: MatMut<'_, T>) {
        let rows = self.layout.interfaces[i].rows();
        self.merges[i].lu.solve_op_in_place(self.op, x.subrows_mut(rows.start, rows.len()));
    }

    /// x[to] ← x[to] − M·x[from]; of the transpose x[from] ← x[from] − op(M)·x[to].
    fn subtract(&self, m: &Mat<T>, from: std::ops::Range<usize>, to: std::ops::Range<usize>, x: MatMut<'_, T>) {
        let (from, to) = if self.op == Op::Identity { (from, to) } else { (to, from) };
        let (source, target) = if from.start < to.start {
            let (above, below) = x.split_at_row_mut(to.start);
            (above.into_const().subrows(from.start, from.len()), below.subrows_mut(0, to.len()))
        } else {
            let (above, below) = x.split_at_row_mut(from.start);
            (below.into_const().subrows(0, from.len()), above.subrows_mut(to.start, to.len()))
        };
        subtract(self.op, m.as_ref(), source, target);
    }
}
