//! One elimination step: a panel [L̃\Ũ; Hₐ; H꜀] and [Gₐ G꜀], in loops for small blocks and with faer's kernels for large.

use bt_formats::{RealScalar, Scalar, one, zero};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_unit_lower_triangular_in_place};
use faer::{Accum, MatMut, MatRef, Par};

use crate::band_lu::kernels::{LANES, axpy_minus, index_of_max, max_lanes};
use crate::error::Result;
use crate::lines;
use crate::memory::reserve;
use crate::pivot::Pivot;

/// Blocks with fewer rows than this (and the neighbours too) are faster in plain loops than in faer's kernels.
const BLOCKED_FROM: usize = 16;

/// What faer's LU needs beside the matrix.
pub(crate) struct Workspace {
    permutation: Vec<u32>,
    memory: MemBuffer,
}

impl Workspace {
    /// For blocks of up to `k` rows.
    pub(crate) fn new<T: Scalar>(k: usize) -> Result<Self> {
        let mut permutation = Vec::new();
        reserve(&mut permutation, 4 * k)?;
        permutation.resize(4 * k, 0);
        Ok(Self {
            permutation,
            memory: MemBuffer::new(lu_in_place_scratch::<u32, T>(k, k, Par::Seq, faer::prelude::default())),
        })
    }
}

/// A finished front.
#[derive(Clone, Copy)]
pub(crate) struct Front<'a, T> {
    pub(crate) k: usize,
    pub(crate) ka: usize,
    pub(crate) kc: usize,
    /// (k + kₐ + k꜀) × k.
    panel: &'a [T],
    /// k × (kₐ + k꜀).
    g: &'a [T],
}

impl<'a, T: Scalar> Front<'a, T> {
    #[inline(always)]
    pub(crate) fn new(k: usize, ka: usize, kc: usize, values: &'a [T]) -> Self {
        let ld = k + ka + kc;
        let (panel, rest) = values.split_at(ld * k);
        Self { k, ka, kc, panel, g: &rest[..(ka + kc) * k] }
    }
    /// Column `i` of the panel.
    #[inline(always)]
    pub(crate) fn column(&self, i: usize) -> &'a [T] {
        let ld = self.k + self.ka + self.kc;
        &self.panel[i * ld..(i + 1) * ld]
    }
    /// Column `i` of [Gₐ G꜀].
    #[inline(always)]
    pub(crate) fn coupling(&self, i: usize) -> &'a [T] {
        &self.g[i * self.k..(i + 1) * self.k]
    }
    /// Hₐ or H꜀: its rows in the panel.
    fn h(&self, side: Neighbour) -> MatRef<'a, T> {
        let ld = self.k + self.ka + self.kc;
        let panel = MatRef::from_column_major_slice(self.panel, ld, self.k);
        match side {
            Neighbour::A => panel.subrows(self.k, self.ka),
            Neighbour::C => panel.subrows(self.k + self.ka, self.kc),
        }
    }
    /// Gₐ or G꜀.
    fn g(&self, side: Neighbour) -> MatRef<'a, T> {
        let g = MatRef::from_column_major_slice(self.g, self.k, self.ka + self.kc);
        match side {
            Neighbour::A => g.subcols(0, self.ka),
            Neighbour::C => g.subcols(self.ka, self.kc),
        }
    }
}

/// Which neighbour.
#[derive(Clone, Copy)]
pub(crate) enum Neighbour {
    /// The one before.
    A,
    /// The one after.
    C,
}

/// Y ← Y − H·G with H of one side of a front and G of another.
pub(crate) fn subtract<T: Scalar>(mut y: MatMut<'_, T>, front: Front<'_, T>, row: Neighbour, col: Neighbour) {
    let (h, g) = (front.h(row), front.g(col));
    if blocked(front.k, h.nrows().max(g.ncols())) {
        matmul(y, Accum::Add, h, g, -one::<T>(), Par::Seq);
        return;
    }
    lines::dispatch::<T, _>(bt_simd::Loops(
        #[inline(always)]
        || {
            let ld = front.k + front.ka + front.kc;
            let rows = match row {
                Neighbour::A => front.k..front.k + front.ka,
                Neighbour::C => front.k + front.ka..ld,
            };
            let first = match col {
                Neighbour::A => 0,
                Neighbour::C => front.ka,
            };
            for c in 0..y.ncols() {
                let y = y.as_mut().col_mut(c).try_as_col_major_mut().expect("columns are contiguous").as_slice_mut();
                for (r, &v) in front.coupling(first + c).iter().enumerate() {
                    axpy_minus::<_, false>(v, &front.column(r)[rows.clone()], y);
                }
            }
        },
    ));
}

fn blocked(k: usize, around: usize) -> bool {
    k >= BLOCKED_FROM || around >= BLOCKED_FROM
}

/// What elimination saw.
#[derive(Clone, Copy)]
pub(crate) struct Measured {
    /// max(|Ũ|, |H|·|G|).
    pub(crate) growth: f64,
    /// max |H|: large where D̃ⱼ is nearly singular.
    pub(crate) multiplier: f64,
    pub(crate) min_pivot: f64,
}

/// A front in the making: D̃, Aₐⱼ, A꜀ⱼ in the panel, Aⱼₐ and Aⱼ꜀ in g.
pub(crate) struct FrontMut<'a, T> {
    pub(crate) k: usize,
    /// kₐ + k꜀.
    pub(crate) around: usize,
    pub(crate) panel: &'a mut [T],
    pub(crate) g: &'a mut [T],
    pub(crate) pivots: &'a mut [u32],
}

impl<T: Scalar> FrontMut<'_, T> {
    /// Eliminates; the row without a pivot if there is one.
    pub(crate) fn eliminate(&mut self, workspace: &mut Workspace) -> std::result::Result<Measured, usize> {
        if blocked(self.k, self.around) {
            self.eliminate_blocked(workspace)?;
        } else {
            lines::dispatch::<T, _>(bt_simd::Loops(
                #[inline(always)]
                || self.eliminate_in_loops(),
            ))?;
        }
        Ok(lines::dispatch::<T, _>(bt_simd::Loops(
            #[inline(always)]
            || self.measure(),
        )))
    }

    /// P·D̃ = L̃·Ũ, H ← A·Ũ⁻¹, G ← L̃⁻¹·P·A, column by column.
    #[inline(always)]
    fn eliminate_in_loops(&mut self) -> std::result::Result<(), usize> {
        let (k, ld) = (self.k, self.k + self.around);
        for c in 0..k {
            let (done, rest) = self.panel.split_at_mut((c + 1) * ld);
            let column = &mut done[c * ld..];
            let p = c + index_of_max(&column[c..k]);
            self.pivots[c] = p as u32;
            if !usable(column[p]) {
                return Err(c);
            }
            column.swap(c, p);
            let pivot = Pivot::new(column[c]);
            for v in &mut column[c + 1..] {
                *v = pivot.divide(*v);
            }
            for other in rest.chunks_exact_mut(ld) {
                other.swap(c, p);
                axpy_minus::<_, false>(other[c], &column[c + 1..], &mut other[c + 1..]);
            }
            // The columns to the left take part in the exchange.
            if p != c {
                for left in done[..c * ld].chunks_exact_mut(ld) {
                    left.swap(c, p);
                }
            }
        }
        for g in self.g.chunks_exact_mut(k) {
            for c in 0..k {
                g.swap(c, self.pivots[c] as usize);
            }
            for c in 0..k {
                axpy_minus::<_, false>(g[c], &self.panel[c * ld + c + 1..c * ld + k], &mut g[c + 1..]);
            }
        }
        Ok(())
    }

    /// The same with faer's kernels.
    fn eliminate_blocked(&mut self, workspace: &mut Workspace) -> std::result::Result<(), usize> {
        let (k, ld) = (self.k, self.k + self.around);
        let (forward, rest) = workspace.permutation.split_at_mut(k);
        let (inverse, rest) = rest.split_at_mut(k);
        let (mut d, mut h) = MatMut::from_column_major_slice_mut(&mut *self.panel, ld, k).split_at_row_mut(k);
        let stack = MemStack::new(&mut workspace.memory);
        lu_in_place(d.as_mut(), forward, inverse, Par::Seq, stack, faer::prelude::default());
        exchanges(forward, rest, self.pivots);
        // faer goes on through a zero pivot; what follows it is not finite, what precedes it is sound.
        if let Some(row) = (0..k).find(|&r| !usable(d[(r, r)])) {
            return Err(row);
        }
        // Hᵀ ← Ũ⁻ᵀ·Aᵀ
        solve_lower_triangular_in_place(d.as_ref().transpose(), h.as_mut().transpose_mut(), Par::Seq);
        for g in self.g.chunks_exact_mut(k) {
            for (r, &p) in self.pivots.iter().enumerate() {
                g.swap(r, p as usize);
            }
        }
        let g = MatMut::from_column_major_slice_mut(&mut *self.g, k, self.around);
        solve_unit_lower_triangular_in_place(d.as_ref(), g, Par::Seq);
        Ok(())
    }

    #[inline(always)]
    fn measure(&self) -> Measured {
        let (k, ld) = (self.k, self.k + self.around);
        let (mut u, mut h, mut min_pivot) = (0.0f64, 0.0f64, f64::INFINITY);
        for (c, column) in self.panel.chunks_exact(ld).enumerate() {
            u = u.max_nan(largest(&column[..=c]));
            h = h.max_nan(largest(&column[k..]));
            min_pivot = min_pivot.min_nan(column[c].abs().to_f64());
        }
        let g = largest(self.g);
        // 0·∞ would be NaN; infinite factors are caught as such.
        let product = if h == 0.0 || g == 0.0 { h.max_nan(g) * 0.0 } else { h * g };
        Measured { growth: u.max_nan(product), multiplier: h, min_pivot }
    }
}

/// The largest |re vᵢ| + |im vᵢ|; NaN when one is.
#[inline(always)]
pub(crate) fn largest<T: Scalar>(values: &[T]) -> f64 {
    let mut lanes = [zero::<T::Real>(); LANES];
    max_lanes(values, &mut lanes);
    lanes.iter().fold(0.0, |m, lane| m.max_nan(lane.to_f64()))
}

/// The largest modulus in columns 0 … `last` of an upper triangle, in columns of `ld` numbers: what elimination has met when it finds no pivot
/// in column `last`.
pub(crate) fn met_up_to<T: Scalar>(last: usize, panel: &[T], ld: usize) -> f64 {
    panel.chunks_exact(ld).take(last + 1).enumerate().fold(0.0, |met, (c, column)| met.max_nan(largest(&column[..=c])))
}

/// A pivot that can be divided by.
#[inline(always)]
fn usable<T: Scalar>(p: T) -> bool {
    p.abs1() > T::Real::default() && Scalar::is_finite(p)
}

/// The row exchanges that make the permutation `forward` (row i of P·D is row `forward[i]` of D).
fn exchanges(forward: &[u32], work: &mut [u32], pivots: &mut [u32]) {
    let k = forward.len();
    // `at[r]`: where row r stands now; `row[i]`: which row stands at i.
    let (at, row) = work.split_at_mut(k);
    for i in 0..k {
        (at[i], row[i]) = (i as u32, i as u32);
    }
    for i in 0..k {
        let p = at[forward[i] as usize];
        pivots[i] = p;
        let moved = row[i];
        row[p as usize] = moved;
        at[moved as usize] = p;
        row[i] = forward[i];
    }
}
