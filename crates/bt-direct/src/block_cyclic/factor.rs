//! Elimination, level by level; the blocks of a level in parallel.

use std::ops::Range;

use bt_formats::{BlockTridiagonal, Monitor, Par, Progress, RealScalar, Scalar, zero};
use faer::MatMut;

use super::front::{Front, FrontMut, Neighbour, Workspace, met_up_to, subtract};
use super::{
    BlockCyclicReduction, METHOD, Place, block_at, count, front_len, halves, levels, non_finite, sizes, sum_len_of,
};
use crate::band_lu::kernels::{LANES, sum_and_max};
use crate::error::{self, FactorError, Result};
use crate::factorization::FactorStats;
use crate::lines;
use crate::refine::{growth_limit, unit_roundoff};

/// Observations a factorization, about.
const OBSERVATIONS: usize = 64;

/// What the blocks of a level have in common.
struct Level<'a, T: Scalar> {
    matrix: &'a BlockTridiagonal<T>,
    /// The fronts of all earlier levels.
    before: &'a [T],
    starts: &'a [usize],
    workspaces: &'a std::sync::Mutex<Vec<Workspace>>,
    number: u32,
    par: Par,
}

/// What the blocks are to write, one contiguous piece each for a range of blocks.
struct Pieces<'a, T> {
    values: &'a mut [T],
    pivots: &'a mut [u32],
    sums: &'a mut [f64],
}

impl<'a, T> Pieces<'a, T> {
    /// The first so many values, pivots and sums, and what comes after them.
    fn split(self, [values, pivots, sums]: [usize; 3]) -> (Pieces<'a, T>, Pieces<'a, T>) {
        let (v, v_rest) = self.values.split_at_mut(values);
        let (p, p_rest) = self.pivots.split_at_mut(pivots);
        let (s, s_rest) = self.sums.split_at_mut(sums);
        (Pieces { values: v, pivots: p, sums: s }, Pieces { values: v_rest, pivots: p_rest, sums: s_rest })
    }
}

/// What was measured on some blocks.
#[derive(Clone, Copy)]
struct Extremes {
    max_a: f64,
    growth: f64,
    /// The largest multiplier and its block, the one to blame for growth.
    multiplier: f64,
    worst: usize,
    min_pivot: f64,
}

impl Extremes {
    const NONE: Self = Self { max_a: 0.0, growth: 0.0, multiplier: 0.0, worst: 0, min_pivot: f64::INFINITY };

    fn and(self, other: Self) -> Self {
        let larger = other.multiplier.is_nan() || other.multiplier > self.multiplier;
        let (multiplier, worst) = if larger { (other.multiplier, other.worst) } else { (self.multiplier, self.worst) };
        Self {
            max_a: self.max_a.max_nan(other.max_a),
            growth: self.growth.max_nan(other.growth),
            multiplier,
            worst,
            min_pivot: self.min_pivot.min_nan(other.min_pivot),
        }
    }
}

/// Block and row without a pivot.
struct NoPivot {
    block: usize,
    row: usize,
    /// How far elements of the block had grown.
    growth: f64,
}

impl<T: Scalar> BlockCyclicReduction<T> {
    pub(super) fn factor(&mut self, a: &BlockTridiagonal<T>, monitor: &mut dyn Monitor) -> Result<()> {
        self.run(a, monitor).map_err(|e| match e {
            FactorError::Stopped => e,
            // A NaN or an infinity in A shows in many ways: it is named first.
            e => non_finite(a).unwrap_or(e),
        })
    }

    #[inline(never)]
    fn run(&mut self, a: &BlockTridiagonal<T>, monitor: &mut dyn Monitor) -> Result<()> {
        let Self { partition, values, starts, pivots, sums, workspaces, .. } = &mut *self;
        let m = partition.n_blocks();
        let flops = Self::flops(partition);
        // A join costs about a microsecond, some 10⁴ flops.
        let par = if flops > 1e6 && rayon::current_num_threads() > 1 { Par::Rayon } else { Par::Seq };
        let batch = m.div_ceil(OBSERVATIONS).max(1);
        let (mut extremes, mut done) = (Extremes::NONE, 0);
        let (mut first_value, mut first_pivot, mut first_sum) = (0, 0, 0);
        for level in 0..levels(m) {
            for from in (0..count(level, m)).step_by(batch) {
                if monitor.observe(Progress::Step { phase: "setup", done, total: m }).is_break() {
                    return Err(FactorError::Stopped);
                }
                let blocks = from..(from + batch).min(count(level, m));
                // A later batch of a level reads no more than the first one.
                let (before, after) = values.split_at_mut(first_value);
                let mut context = Level { matrix: a, before, starts, workspaces, number: level, par };
                let (mut len, mut pivot_len, mut sum_len) = (0, 0, 0);
                for i in blocks.clone() {
                    let [v, p, s] = context.lens(i);
                    (len, pivot_len, sum_len) = (len + v, pivot_len + p, sum_len + s);
                }
                if blocks.len() == 1 {
                    context.par = Par::Seq;
                }
                done += blocks.len();
                let pieces = Pieces {
                    values: &mut after[..len],
                    pivots: &mut pivots[first_pivot..first_pivot + pivot_len],
                    sums: &mut sums[first_sum..first_sum + sum_len],
                };
                extremes = extremes.and(context.eliminate(blocks, pieces).map_err(|e| no_pivot(a, &e))?);
                (first_value, first_pivot, first_sum) =
                    (first_value + len, first_pivot + pivot_len, first_sum + sum_len);
            }
        }
        let Extremes { max_a, growth, worst, min_pivot, .. } = extremes;
        let growth = if m == 0 || max_a == 0.0 { 1.0 } else { growth / max_a };
        if !(growth <= growth_limit(unit_roundoff::<T>())) {
            return Err(too_much_growth(worst, growth));
        }
        let norm_one = self.norm_one();
        if !norm_one.is_finite() {
            return Err(FactorError::Failed {
                method: METHOD,
                reason: "the norm of the matrix overflows; scale it".into(),
            });
        }
        self.stats = FactorStats {
            norm_one,
            growth,
            min_pivot: if m == 0 { 0.0 } else { min_pivot },
            boosted_pivots: 0,
            nnz: self.values.len(),
            bytes: size_of_val(&*self.values)
                + size_of_val(&*self.pivots)
                + size_of_val(&*self.starts)
                + size_of_val(&*self.pivot_starts),
            flops,
        };
        Ok(())
    }

    /// ‖A‖₁ from the column sums as they were loaded: those of an odd block are complete, those of an even block j lie
    /// with block j and with its neighbours j − 1 and j + 1.
    fn norm_one(&self) -> f64 {
        let m = self.partition.n_blocks();
        let mut norm = 0.0f64;
        for j in 0..m {
            let k = self.partition.size(j);
            let own = self.sum_starts[j];
            // Of the block row before: the sums of its U. Of the block row after: the sums of its L.
            let above = (j % 2 == 0 && j > 0).then(|| {
                let (k, ka, _) = sizes(&self.partition, Place::of(j - 1, m));
                self.sum_starts[j - 1] + k + ka
            });
            let below = (j % 2 == 0 && j + 1 < m).then(|| self.sum_starts[j + 1] + self.partition.size(j + 1));
            for c in 0..k {
                let at = |start: Option<usize>| start.map_or(0.0, |s| self.sums[s + c]);
                norm = norm.max_nan(self.sums[own + c] + at(above) + at(below));
            }
        }
        norm
    }
}

impl<T: Scalar> Level<'_, T> {
    fn place(&self, i: usize) -> Place {
        let m = self.matrix.n_blocks();
        Place::of(block_at(self.number, i, m), m)
    }

    /// Values, pivots and sums of block number `i` of the level.
    fn lens(&self, i: usize) -> [usize; 3] {
        let (k, ka, kc) = sizes(self.matrix.partition(), self.place(i));
        [front_len(k, ka + kc).expect("allocated"), k, sum_len_of(k, ka + kc, self.number)]
    }

    fn eliminate(&self, blocks: Range<usize>, mut pieces: Pieces<'_, T>) -> std::result::Result<Extremes, NoPivot> {
        if blocks.len() > 1 && self.par == Par::Rayon {
            let (left, right) = halves(&blocks);
            let mut lens = [0; 3];
            for i in left.clone() {
                self.lens(i).iter().zip(&mut lens).for_each(|(l, sum)| *sum += l);
            }
            let (first, second) = pieces.split(lens);
            let (left, right) = bt_formats::join(|| self.eliminate(left, first), || self.eliminate(right, second));
            return Ok(left?.and(right?));
        }
        let lock = || self.workspaces.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let pooled = lock().pop();
        let mut workspace = match pooled {
            Some(workspace) => workspace,
            None => Workspace::new::<T>(self.matrix.partition().min_max_size().1).expect("20 bytes a row of one block"),
        };
        let mut extremes = Extremes::NONE;
        let mut failed = None;
        for i in blocks {
            let (piece, rest) = pieces.split(self.lens(i));
            pieces = rest;
            match self.eliminate_one(self.place(i), piece, &mut workspace) {
                Ok(e) => extremes = extremes.and(e),
                Err(e) => {
                    failed = Some(e);
                    break;
                }
            }
        }
        lock().push(workspace);
        failed.map_or(Ok(extremes), Err)
    }

    /// A front of an earlier level.
    fn front(&self, j: usize) -> Front<'_, T> {
        let (k, ka, kc) = sizes(self.matrix.partition(), Place::of(j, self.matrix.n_blocks()));
        Front::new(k, ka, kc, &self.before[self.starts[j]..])
    }

    fn eliminate_one(
        &self,
        place: Place,
        pieces: Pieces<'_, T>,
        workspace: &mut Workspace,
    ) -> std::result::Result<Extremes, NoPivot> {
        let a = self.matrix;
        let m = a.n_blocks();
        let (k, ka, kc) = sizes(a.partition(), place);
        let (j, around) = (place.j, ka + kc);
        let ld = k + around;
        let (panel, g) = pieces.values.split_at_mut(ld * k);
        let mut max_a = 0.0f64;
        {
            let mut panel = MatMut::from_column_major_slice_mut(&mut *panel, ld, k);
            let mut g = MatMut::from_column_major_slice_mut(&mut *g, k, around);
            a.copy_diagonal_block(j, panel.as_mut().subrows_mut(0, k));
            panel.as_mut().subrows_mut(k, around).fill(zero());
            if self.number == 0 && j > 0 {
                a.copy_upper_block(j - 1, panel.as_mut().subrows_mut(k, ka));
                a.copy_lower_block(j, g.as_mut().subcols_mut(0, ka));
                if kc > 0 {
                    a.copy_lower_block(j + 1, panel.as_mut().subrows_mut(k + ka, kc));
                    a.copy_upper_block(j, g.as_mut().subcols_mut(ka, kc));
                }
            } else {
                g.fill(zero());
            }
        }
        lines::dispatch::<T, _>(
            #[inline(always)]
            || {
                let columns = panel.chunks_exact(ld).chain(g.chunks_exact(k));
                for (column, sum) in columns.zip(pieces.sums) {
                    let mut lanes = [zero::<T::Real>(); LANES];
                    *sum = sum_and_max(column, &mut lanes).to_f64();
                    max_a = lanes.iter().fold(max_a, |m, lane| m.max_nan(lane.to_f64()));
                }
            },
        );
        // D̃ⱼ ← Dⱼ − H·G of all blocks eliminated next to it, level after level.
        let mut s = 1usize;
        while s < m && (j == 0 || j % (2 * s) == 0) {
            let (p, q) = (j.checked_sub(s), Some(j + s).filter(|&q| q < m));
            let mut panel = MatMut::from_column_major_slice_mut(&mut *panel, ld, k);
            let mut g = MatMut::from_column_major_slice_mut(&mut *g, k, around);
            // Only the last of them stand between j and the neighbours it has now.
            let last = j > 0 && j % (4 * s) != 0;
            if let Some(p) = p.map(|p| self.front(p)) {
                subtract(panel.as_mut().subrows_mut(0, k), p, Neighbour::C, Neighbour::C);
                if last && ka > 0 {
                    subtract(panel.as_mut().subrows_mut(k, ka), p, Neighbour::A, Neighbour::C);
                    subtract(g.as_mut().subcols_mut(0, ka), p, Neighbour::C, Neighbour::A);
                }
            }
            if let Some(q) = q.map(|q| self.front(q)) {
                subtract(panel.as_mut().subrows_mut(0, k), q, Neighbour::A, Neighbour::A);
                if last && kc > 0 {
                    subtract(panel.as_mut().subrows_mut(k + ka, kc), q, Neighbour::C, Neighbour::A);
                    subtract(g.as_mut().subcols_mut(ka, kc), q, Neighbour::A, Neighbour::C);
                }
            }
            s *= 2;
        }
        let mut front = FrontMut { k, around, panel, g, pivots: pieces.pivots };
        let measured = front.eliminate(workspace).map_err(|row| {
            let growth = met_up_to(row, front.panel, ld) / max_a;
            NoPivot { block: j, row, growth }
        })?;
        let super::front::Measured { growth, multiplier, min_pivot } = measured;
        Ok(Extremes { max_a, growth, multiplier, worst: j, min_pivot })
    }
}

fn no_pivot<T: Scalar>(a: &BlockTridiagonal<T>, at: &NoPivot) -> FactorError {
    let NoPivot { block, row, growth } = *at;
    let column = a.partition().range(block).start + row;
    // Rows are not exchanged across blocks: without a pivot in the root of several, A may still be regular.
    if a.n_blocks() == 1 {
        return FactorError::no_pivot(METHOD, column, Some(block), growth, growth_limit(unit_roundoff::<T>()));
    }
    let reason = format!(
        "no pivot inside block {block} for its column {row}, column {column} of the matrix (from 0); pivoting across \
         blocks is needed: band-lu"
    );
    FactorError::breakdown(METHOD, error::Place::Column(column), reason)
}

fn too_much_growth(block: usize, growth: f64) -> FactorError {
    let reason = format!(
        "elements grow by {growth:.1e} in block {block}: what elimination left of it is nearly singular; pivoting across \
         blocks is needed: band-lu"
    );
    FactorError::breakdown(METHOD, error::Place::Block(block), reason)
}
