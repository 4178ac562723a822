//! One partition: its factors, the couplings to its neighbours, and its spikes or their tips.
//!
//! The first partition is eliminated downwards, so that V's bottom tip needs the last rows of the factors only; the last
//! one upwards (LU of the matrix with rows and columns reversed, which is the UL factorization), so that W's top tip
//! does the same. A middle partition of the exact variants computes its two spikes in full, eight columns at a time; of
//! the truncated variant it is eliminated both ways, and no full spike is ever formed.

use std::ops::Range;

use bt_formats::{BlockTridiagonal, Error, Monitor, Op, RealScalar, Scalar, zero};
use faer::{Mat, MatMut, MatRef};

use super::partition::{Interface, Layout};
use super::scratch::Scratch;
use super::source::{SpikeMatrix, band_column, check_hermitian, measure_columns};
use super::{PartitionSolver, SpikeStorage};
use crate::band_cholesky::BandCholesky;
use crate::band_lu::BandLu;
use crate::band_lu::partial::{bound_above, solve_tail};
use crate::band_lu::triangles::Triangles;
use crate::band_nopivot::BandLuNoPivot;
use crate::block_lu::BlockLu;
use crate::columns::{check_size, for_each_column};
use crate::error::{FactorError, Place, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::memory::reserve;

/// Right-hand sides that share a buffer.
pub(super) const GROUP: usize = 8;

/// Factors of A_j.
enum Factors<T: Scalar> {
    Band(BandLu<T>),
    NoPivot(BandLuNoPivot<T>),
    Cholesky(BandCholesky<T>),
    /// A copy of the part, and its factors once there are any.
    Block {
        part: Box<BlockTridiagonal<T>>,
        first_block: usize,
        lu: Option<Box<BlockLu<T>>>,
    },
}

/// The factors of a diagonal part of A.
pub(super) struct Kernel<T: Scalar> {
    factors: Factors<T>,
    first: usize,
    n: usize,
    /// Eliminated from the last row to the first.
    up: bool,
}

impl<T: Scalar> Kernel<T> {
    /// Memory for the factors of the rows `rows` of `a`.
    #[inline(never)]
    fn empty(a: SpikeMatrix<'_, T>, rows: Range<usize>, solver: PartitionSolver, up: bool) -> Result<Self> {
        let (first, n) = (rows.start, rows.len());
        let factors = match a {
            SpikeMatrix::Band(a) => {
                let (kl, ku) = if up { (a.ku(), a.kl()) } else { (a.kl(), a.ku()) };
                match solver {
                    PartitionSolver::Pivoted => Factors::Band(BandLu::empty(n, kl, ku)?),
                    PartitionSolver::NoPivot(boosting) => Factors::NoPivot(BandLuNoPivot::empty(n, kl, ku, boosting)?),
                    PartitionSolver::Cholesky => {
                        check_size("super-diagonals", kl, ku)?;
                        Factors::Cholesky(BandCholesky::empty(n, kl)?)
                    }
                }
            }
            SpikeMatrix::Blocks(a) => {
                if solver != PartitionSolver::Pivoted {
                    let why = "block-tridiagonal partitions are factored by block-lu, PartitionSolver::Pivoted".into();
                    return Err(Error::InvalidStructure { what: "partition solver", why }.into());
                }
                let offsets = a.partition().offsets();
                let block = |row: usize| offsets.partition_point(|&o| (o as usize) < row);
                let blocks = block(rows.start)..block(rows.end);
                Factors::Block { part: Box::new(a.part(blocks.clone())?), first_block: blocks.start, lu: None }
            }
        };
        // BlockLu chooses its own direction.
        let up = up && !matches!(factors, Factors::Block { .. });
        Ok(Self { factors, first, n, up })
    }

    /// Places of breakdowns are told in the numbers of A.
    fn factor(&mut self, a: SpikeMatrix<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        self.eliminate(a, monitor).map_err(|e| e.map_place(|place| self.in_whole(place)))
    }

    fn in_whole(&self, place: Place) -> Option<Place> {
        let row = |i: usize| Some(self.first + if self.up { self.n - 1 - i } else { i });
        match (place, &self.factors) {
            (Place::Block(j), Factors::Block { first_block, .. }) => Some(Place::Block(first_block + j)),
            _ => place.renumbered(row, row),
        }
    }

    fn eliminate(&mut self, a: SpikeMatrix<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        let (first, n, up) = (self.first, self.n, self.up);
        match (&mut self.factors, a) {
            (Factors::Band(lu), SpikeMatrix::Band(a)) => {
                lu.refactor_from(|j, rows, out| band_column(a, first, n, up, j, rows, out), monitor)
            }
            (Factors::NoPivot(lu), SpikeMatrix::Band(a)) => {
                lu.refactor_from(|j, rows, out| band_column(a, first, n, up, j, rows, out), monitor)
            }
            (Factors::Cholesky(l), SpikeMatrix::Band(a)) => {
                l.refactor_from(|j, rows, out| band_column(a, first, n, up, j, rows, out), monitor)
            }
            (Factors::Block { part, first_block, lu }, SpikeMatrix::Blocks(a)) => {
                part.copy_part(a, *first_block)?;
                if let Some(lu) = lu {
                    return lu.refactor_with_monitor(part, monitor);
                }
                *lu = Some(Box::new(BlockLu::with_monitor(part, monitor)?));
                Ok(())
            }
            _ => unreachable!("the kind of the matrix was checked"),
        }
    }

    fn as_factorization(&self) -> &dyn Factorization<T> {
        match &self.factors {
            Factors::Band(lu) => lu,
            Factors::NoPivot(lu) => lu,
            Factors::Cholesky(l) => l,
            Factors::Block { lu, .. } => lu.as_deref().expect("factored on construction"),
        }
    }

    /// X ← op(A_j)⁻¹·X.
    pub(super) fn solve(&self, op: Op, mut x: MatMut<'_, T>) {
        // (J·A·J)⁻¹ = J·A⁻¹·J for the exchange matrix J, and Jᵀ = J.
        reverse(self.up, x.as_mut());
        self.as_factorization().solve_op_in_place(op, x.as_mut());
        reverse(self.up, x);
    }

    /// The factors as triangles, where tips can be had from their last rows; whether they are L·Lᴴ.
    fn triangles(&self) -> Option<(Triangles<'_, T>, bool)> {
        match &self.factors {
            Factors::Band(lu) => Some((lu.triangles(), false)),
            Factors::NoPivot(lu) => Some((lu.triangles(), false)),
            Factors::Cholesky(l) => Some((l.triangle(), true)),
            Factors::Block { .. } => None,
        }
    }

    /// How far up an exchange can move a row.
    fn exchange_reach(&self) -> usize {
        self.triangles().map_or(0, |(lu, _)| if lu.pivots.is_empty() { 0 } else { lu.below })
    }

    /// The last rows of A_j⁻¹·[0; X], or the first ones of A_j⁻¹·[X; 0] when eliminated upwards.
    fn tip(&self, mut x: MatMut<'_, T>) {
        let (lu, hermitian) = self.triangles().expect("asked for band factors only");
        reverse(self.up, x.as_mut());
        solve_tail(lu, hermitian, x.as_mut());
        reverse(self.up, x);
    }

    fn bytes(&self) -> usize {
        let copy = match &self.factors {
            Factors::Block { part, .. } => bt_formats::Matrix::bytes(&**part),
            _ => 0,
        };
        copy + self.as_factorization().stats().bytes
    }
}

fn reverse<T: Scalar>(up: bool, x: MatMut<'_, T>) {
    if up {
        for_each_column(x, <[T]>::reverse);
    }
}

/// The first and last rows of the spikes, V_j^(t), V_j^(b), W_j^(t), W_j^(b); 0 × 0 where they are not known.
pub(super) struct Tips<T> {
    pub(super) vt: Mat<T>,
    pub(super) vb: Mat<T>,
    pub(super) wt: Mat<T>,
    pub(super) wb: Mat<T>,
}

/// Which parts of the spikes the reduced system takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All four tips.
    All,
    /// V^(b) and W^(t) only.
    Near,
    /// None: the reduced system is applied, not formed.
    Nothing,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WhichSpike {
    V,
    W,
}

/// What was measured of one partition.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    /// Largest column sum of |A| among its columns of A.
    pub(super) norm_one: f64,
    /// Largest modulus met in the spikes: all of them, or their tips and one combination of their columns.
    pub(super) spike: f64,
    /// ‖V^(b)‖∞ and ‖W^(t)‖∞.
    pub(super) v_near: f64,
    pub(super) w_near: f64,
    /// max(‖V^(t)‖∞, ‖W^(b)‖∞) and ‖V‖∞ + ‖W‖∞, or bounds of them; not for an iterative reduced system.
    pub(super) far: f64,
    pub(super) interior: f64,
}

/// A partition.
pub(super) struct Part<T: Scalar> {
    pub(super) rows: Range<usize>,
    pub(super) left: Option<Interface>,
    pub(super) right: Option<Interface>,
    pub(super) kernel: Kernel<T>,
    /// The second factorization of a middle partition, where only tips are wanted.
    upward: Option<Kernel<T>>,
    /// B of the cut after, C of the cut before.
    pub(super) b: Mat<T>,
    pub(super) c: Mat<T>,
    pub(super) tips: Tips<T>,
    /// V_j and W_j, where they are kept.
    pub(super) spikes: Option<[Mat<T>; 2]>,
    pub(super) scratch: Scratch<T>,
    /// Bounds of the rows of a spike, where it is truncated.
    bounds: Vec<T::Real>,
    wanted: Wanted,
    pub(super) measured: Measured,
}

impl<T: Scalar> Part<T> {
    /// Memory for partition `j` of `layout`.
    #[inline(never)]
    pub(super) fn empty(
        a: SpikeMatrix<'_, T>,
        layout: &Layout,
        j: usize,
        solver: PartitionSolver,
        wanted: Wanted,
        storage: SpikeStorage,
    ) -> Result<Self> {
        let (rows, left, right) = (layout.rows(j), layout.left(j), layout.right(j));
        let n = rows.len();
        let is_last = left.is_some() && right.is_none();
        let is_middle = left.is_some() && right.is_some();
        let kernel = Kernel::empty(a, rows.clone(), solver, is_last)?;
        let both_ways = is_middle && wanted == Wanted::Near && kernel.triangles().is_some();
        let upward = if both_ways { Some(Kernel::empty(a, rows.clone(), solver, true)?) } else { None };
        let (l, r) = (left.unwrap_or(Interface::NONE), right.unwrap_or(Interface::NONE));
        let tips = Tips {
            vt: matrix(if is_middle { l.nt } else { 0 }, r.nt)?,
            vb: matrix(r.nb, r.nt)?,
            wt: matrix(l.nt, l.nb)?,
            wb: matrix(if is_middle { r.nb } else { 0 }, l.nb)?,
        };
        let keep = is_middle && wanted == Wanted::All && storage == SpikeStorage::Full;
        let spikes = if keep { Some([matrix(n, r.nt)?, matrix(n, l.nb)?]) } else { None };
        let needs_scratch = layout.p() > 1 && (spikes.is_none() || l.nb.max(r.nt) == 0);
        let scratch = Scratch::new(if needs_scratch { n.saturating_mul(GROUP) } else { 0 })?;
        let (b, c) = (matrix(r.rb, r.nt)?, matrix(l.rc, l.nb)?);
        let mut bounds = Vec::new();
        if wanted == Wanted::Near && layout.p() > 1 {
            reserve(&mut bounds, n)?;
            bounds.resize(n, zero());
        }
        let measured = Measured::default();
        Ok(Self { rows, left, right, kernel, upward, b, c, tips, spikes, scratch, bounds, wanted, measured })
    }

    fn n(&self) -> usize {
        self.rows.len()
    }

    /// Rows that belong to no tip.
    pub(super) fn interior(&self) -> Range<usize> {
        self.left.map_or(0, |i| i.nt)..self.n() - self.right.map_or(0, |i| i.nb)
    }

    /// Factors A_j and computes what is wanted of the spikes.
    pub(super) fn factor(&mut self, a: SpikeMatrix<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        self.measured = Measured::default();
        if let SpikeMatrix::Band(a) = a {
            self.measured.norm_one = measure_columns(a, self.rows.clone())?;
            if matches!(self.kernel.factors, Factors::Cholesky(_)) {
                check_hermitian(a, self.rows.clone())?;
            }
        }
        self.kernel.factor(a, monitor)?;
        if let Some(upward) = &mut self.upward {
            upward.factor(a, monitor)?;
        }
        if let Some(i) = self.left {
            a.coupling_before(&i, self.c.as_mut());
        }
        if let Some(i) = self.right {
            a.coupling_after(&i, self.b.as_mut());
        }
        let is_middle = self.left.is_some() && self.right.is_some();
        let near = self.wanted == Wanted::Near || (self.wanted == Wanted::All && !is_middle);
        if self.wanted == Wanted::Nothing {
            self.probe();
        } else if near && self.kernel.triangles().is_some() {
            self.near_tips();
            self.probe();
        } else {
            self.all_tips();
        }
        self.measured.v_near = norm_max(self.tips.vb.as_ref());
        self.measured.w_near = norm_max(self.tips.wt.as_ref());
        Ok(())
    }

    /// V^(b) from the end of the LU factors, W^(t) from the end of the UL factors; bounds of the rest.
    fn near_tips(&mut self) {
        let scratch = &self.scratch;
        let (n, truncated) = (self.rows.len(), self.wanted == Wanted::Near);
        for side in [WhichSpike::V, WhichSpike::W] {
            let (interface, kernel, coupling, tip) = match side {
                WhichSpike::V => (self.right, &self.kernel, &self.b, &mut self.tips.vb),
                WhichSpike::W => (self.left, self.upward.as_ref().unwrap_or(&self.kernel), &self.c, &mut self.tips.wt),
            };
            if interface.is_none() {
                continue;
            }
            let (r, kept) = (coupling.nrows(), tip.nrows());
            // Exchanges move rows of the window up by the sub-diagonals at most: they belong to it too.
            let w = (r.max(kept) + kernel.exchange_reach()).min(n);
            // B stands in the last rows of the window, C in the first ones; so do the tips.
            let place = |len: usize| if side == WhichSpike::V { w - len } else { 0 };
            self.bounds.fill(zero());
            for_groups(coupling.ncols(), |columns| {
                scratch.with(|buffer| {
                    let mut x = piece(buffer, w, columns.len());
                    x.fill(zero());
                    x.as_mut().subrows_mut(place(r), r).copy_from(cols(coupling, &columns));
                    kernel.tip(x.as_mut());
                    cols_mut(tip, &columns).copy_from(x.as_ref().subrows(place(kept), kept));
                    self.measured.spike = self.measured.spike.max_nan(largest(x.as_ref()));
                    // Sums of moduli of the window's rows, in the order of elimination.
                    if truncated {
                        for c in 0..x.ncols() {
                            for k in 0..w {
                                let row = if side == WhichSpike::V { k } else { w - 1 - k };
                                self.bounds[n - w + k] += x[(row, c)].abs();
                            }
                        }
                    }
                });
            });
            if truncated {
                let (lu, hermitian) = kernel.triangles().expect("asked for band factors only");
                bound_above(lu, hermitian, w, &mut self.bounds);
                let m = &mut self.measured;
                let all = maximum::<T>(&self.bounds);
                m.interior += all;
                // The tip on the other side, if there is a cut there.
                let far =
                    if side == WhichSpike::V { self.left.map_or(0, |l| l.nt) } else { self.right.map_or(0, |r| r.nb) };
                m.far = m.far.max_nan(maximum::<T>(&self.bounds[..far]));
            }
        }
    }

    /// Both spikes in full; kept, or only their tips.
    fn all_tips(&mut self) {
        let n = self.n();
        let (mut spike, mut interior) = (0.0f64, [0.0f64; 2]);
        let (top, bottom) = (self.left.map_or(0, |i| i.nt), self.right.map_or(0, |i| i.nb));
        let mut kept = self.spikes.take();
        for side in 0..2 {
            let (coupling, first) = if side == 0 { (&self.b, n - self.b.nrows()) } else { (&self.c, 0) };
            let (t, b) =
                if side == 0 { (&mut self.tips.vt, &mut self.tips.vb) } else { (&mut self.tips.wt, &mut self.tips.wb) };
            for_groups(coupling.ncols(), |columns| {
                let mut one_group = |mut x: MatMut<'_, T>| {
                    x.fill(zero());
                    x.as_mut().subrows_mut(first, coupling.nrows()).copy_from(cols(coupling, &columns));
                    self.kernel.solve(Op::Identity, x.as_mut());
                    if t.nrows() > 0 {
                        cols_mut(t, &columns).copy_from(x.as_ref().subrows(0, top));
                    }
                    if b.nrows() > 0 {
                        cols_mut(b, &columns).copy_from(x.as_ref().subrows(n - bottom, bottom));
                    }
                    spike = spike.max_nan(largest(x.as_ref()));
                    // ‖·‖∞ of the whole is at most the sum over the groups.
                    interior[side] += norm_max(x.as_ref());
                };
                match &mut kept {
                    Some(kept) => one_group(cols_mut(&mut kept[side], &columns)),
                    None => self.scratch.with(|buffer| one_group(piece(buffer, n, columns.len()))),
                }
            });
        }
        self.spikes = kept;
        let m = &mut self.measured;
        m.spike = spike;
        m.interior = interior[0] + interior[1];
        m.far = norm_max(self.tips.vt.as_ref()).max_nan(norm_max(self.tips.wb.as_ref()));
    }

    /// The size of the spikes' interiors, by one combination of their columns with signs: an interior much larger than
    /// the tips betrays an A_j nearer to singular than A.
    fn probe(&mut self) {
        if self.b.ncols() + self.c.ncols() == 0 {
            return;
        }
        let sign = |k: usize| T::rounded(if (k * k + k / 3).is_multiple_of(2) { 1.0 } else { -1.0 }, 0.0);
        let found = self.scratch.with(|buffer| {
            let mut x = piece(buffer, self.n(), 1);
            x.fill(zero());
            for (coupling, first) in [(&self.b, self.n() - self.b.nrows()), (&self.c, 0)] {
                for k in 0..coupling.ncols() {
                    for r in 0..coupling.nrows() {
                        x[(first + r, 0)] += sign(k) * coupling[(r, k)];
                    }
                }
            }
            self.kernel.solve(Op::Identity, x.as_mut());
            largest(x.as_ref())
        });
        self.measured.spike = self.measured.spike.max_nan(found);
    }

    /// Statistics of the factors, without A's norm.
    pub(super) fn stats(&self) -> FactorStats {
        let mut out = self.kernel.as_factorization().stats();
        out.bytes = self.kernel.bytes();
        if let Some(upward) = &self.upward {
            let other = upward.as_factorization().stats();
            out.growth = out.growth.max_nan(other.growth);
            out.min_pivot = out.min_pivot.min_nan(other.min_pivot);
            out.boosted_pivots += other.boosted_pivots;
            out.nnz += other.nnz;
            out.bytes += upward.bytes();
            out.flops += other.flops;
        }
        let tips = [&self.tips.vt, &self.tips.vb, &self.tips.wt, &self.tips.wb, &self.b, &self.c];
        let values = tips.into_iter().chain(self.spikes.iter().flatten()).map(|m| m.nrows() * m.ncols());
        let values: usize = values.sum();
        out.nnz += values;
        out.bytes += values * size_of::<T>() + self.scratch.bytes();
        out
    }

    pub(super) fn log_det(&self) -> LogDet<T> {
        self.kernel.as_factorization().log_det()
    }
}

/// A zero matrix, sizes checked.
pub(super) fn matrix<T: Scalar>(nrows: usize, ncols: usize) -> Result<Mat<T>> {
    let mut out = Mat::new();
    out.try_reserve(nrows, ncols).map_err(|_| {
        FactorError::Input(Error::TooLarge {
            what: "spikes",
            needed: format!("{nrows} × {ncols} values of {} bytes", size_of::<T>()),
            limit: "the memory there is".into(),
        })
    })?;
    out.resize_with(nrows, ncols, |_, _| zero());
    Ok(out)
}

/// The first `nrows`·`ncols` values of a buffer as a matrix.
pub(super) fn piece<T: Scalar>(buffer: &mut [T], nrows: usize, ncols: usize) -> MatMut<'_, T> {
    MatMut::from_column_major_slice_mut(&mut buffer[..nrows * ncols], nrows, ncols)
}

fn cols<'a, T>(m: &'a Mat<T>, columns: &Range<usize>) -> MatRef<'a, T> {
    m.as_ref().subcols(columns.start, columns.len())
}

fn cols_mut<'a, T>(m: &'a mut Mat<T>, columns: &Range<usize>) -> MatMut<'a, T> {
    m.as_mut().subcols_mut(columns.start, columns.len())
}

/// Calls `f` with at most GROUP columns at a time.
pub(super) fn for_groups(ncols: usize, mut f: impl FnMut(Range<usize>)) {
    for first in (0..ncols).step_by(GROUP) {
        f(first..(first + GROUP).min(ncols));
    }
}

fn maximum<T: Scalar>(values: &[T::Real]) -> f64 {
    values.iter().fold(0.0, |m, v| m.max_nan(v.to_f64()))
}

/// Largest |re| + |im|; NaN if there is one.
pub(super) fn largest<T: Scalar>(m: MatRef<'_, T>) -> f64 {
    let mut out = zero::<T::Real>();
    for j in 0..m.ncols() {
        for i in 0..m.nrows() {
            out = out.max_nan(m[(i, j)].abs1());
        }
    }
    out.to_f64()
}

/// ‖M‖∞.
pub(super) fn norm_max<T: Scalar>(m: MatRef<'_, T>) -> f64 {
    let mut out = 0.0f64;
    for i in 0..m.nrows() {
        let sum: f64 = (0..m.ncols()).map(|j| m[(i, j)].abs().to_f64()).sum();
        out = out.max_nan(sum);
    }
    out
}
