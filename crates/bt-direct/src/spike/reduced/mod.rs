//! The reduced system S̃·z = g in the tips, z_i = [b_i; t_i]:
//!
//! ```text
//! b_i + V_i^(b)·t_i + W_i^(b)·b_{i−1}             = bottom tip of G_i
//! W_{i+1}^(t)·b_i + t_i + V_{i+1}^(t)·t_{i+1}     = top tip of G_{i+1}
//! ```
//!
//! | file | case |
//! |---|---|
//! | `recursive.rs` | neighbouring partitions merged until one is left: the default |
//! | `explicit.rs` | S̃ formed, a block for each cut, and factored by block LU |
//! | `truncated.rs` | truncated: the far tips dropped, a small system for each cut |
//! | `iterative.rs` | BiCGSTAB without S̃, by solves in the partitions |

mod explicit;
mod iterative;
mod recursive;
mod truncated;

use bt_formats::{Op, Scalar};
use faer::MatMut;

use super::factor::{Part, Wanted};
use super::partition::{Interface, Layout};
use super::{METHOD, ReducedSystem};
use crate::band_lu::BandLu;
use crate::error::{FactorError, Place, Result, Singularity};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::refine::unit_roundoff;
use explicit::Explicit;
pub use iterative::IterationCounts;
use iterative::Iterative;
use recursive::Recursive;
use truncated::Truncated;

/// A way to solve the reduced system.
#[allow(clippy::large_enum_variant)] // one value a factorization
pub(super) enum Reduced<T: Scalar> {
    /// There are no tips: one partition, or a diagonal matrix.
    Empty,
    Recursive(Recursive<T>),
    Explicit(Explicit<T>),
    Truncated(Truncated<T>),
    Iterative(Iterative<T>),
}

/// What [`ReducedSystem`] needs of the spikes.
pub(super) fn wanted(kind: ReducedSystem) -> Wanted {
    match kind {
        ReducedSystem::Recursive | ReducedSystem::Explicit => Wanted::All,
        ReducedSystem::Truncated { .. } => Wanted::Near,
        ReducedSystem::Iterative { .. } => Wanted::Nothing,
    }
}

impl<T: Scalar> Reduced<T> {
    /// Memory for the reduced system of `layout`.
    #[inline(never)]
    pub(super) fn empty(kind: ReducedSystem, layout: &Layout) -> Result<Self> {
        if layout.reduced_order() == 0 {
            return Ok(Self::Empty);
        }
        Ok(match kind {
            ReducedSystem::Recursive => Self::Recursive(Recursive::empty(layout)?),
            ReducedSystem::Explicit => Self::Explicit(Explicit::empty(layout)?),
            ReducedSystem::Truncated { tolerance } => Self::Truncated(Truncated::empty(layout, tolerance)?),
            ReducedSystem::Iterative { rtol, max_iters } => Self::Iterative(Iterative::empty(layout, rtol, max_iters)?),
        })
    }

    /// Factors S̃. Returns the largest modulus of the spikes of merged partitions, 0 where none are formed.
    pub(super) fn factor(&mut self, layout: &Layout, parts: &[Part<T>]) -> Result<f64> {
        match self {
            Self::Empty => Ok(0.0),
            Self::Recursive(r) => r.factor(layout, parts),
            Self::Explicit(r) => r.factor(layout, parts),
            Self::Truncated(r) => r.factor(layout, parts),
            Self::Iterative(r) => r.probe(parts),
        }
    }

    /// z ← op(S̃)⁻¹·z in the tip rows of `x`.
    pub(super) fn solve(&self, op: Op, layout: &Layout, parts: &[Part<T>], x: MatMut<'_, T>) {
        match self {
            Self::Empty => {}
            Self::Recursive(r) => r.solve(op, layout, parts, x),
            Self::Explicit(r) => r.solve(op, layout, x),
            Self::Truncated(r) => r.solve(op, layout, x),
            Self::Iterative(r) => r.solve(op, layout, parts, x),
        }
    }

    /// Multiplies by det S̃. Unknown, hence NaN, when S̃ is never formed.
    pub(super) fn multiply_det(&self, det: &mut LogDet<T>) {
        let factors: &mut dyn Iterator<Item = LogDet<T>> = match self {
            Self::Empty => return,
            Self::Recursive(r) => &mut r.factors().map(Factorization::log_det),
            Self::Explicit(r) => &mut std::iter::once(r.log_det()),
            Self::Truncated(r) => &mut r.factors().map(Factorization::log_det),
            Self::Iterative(_) => {
                *det = LogDet { sign: T::nan_impl(), log_abs: f64::NAN };
                return;
            }
        };
        for d in factors {
            det.sign *= d.sign;
            det.log_abs += d.log_abs;
        }
    }

    /// Adds values, bytes and flops.
    pub(super) fn add_stats(&self, stats: &mut FactorStats) {
        let mut add = |s: FactorStats| {
            stats.nnz += s.nnz;
            stats.bytes += s.bytes;
            stats.flops += s.flops;
        };
        match self {
            Self::Empty => {}
            Self::Recursive(r) => r.stats().for_each(add),
            Self::Explicit(r) => add(r.stats()),
            Self::Truncated(r) => r.factors().map(Factorization::stats).for_each(add),
            Self::Iterative(r) => add(FactorStats { bytes: r.bytes(), ..FactorStats::default() }),
        }
    }

    /// The bound of what was dropped, 0 when nothing was.
    pub(super) fn dropped(&self) -> f64 {
        if let Self::Truncated(r) = self { r.dropped } else { 0.0 }
    }

    pub(super) fn iterations(&self) -> Option<IterationCounts> {
        match self {
            Self::Iterative(r) => Some(r.counts()),
            _ => None,
        }
    }
}

/// Memory for the factors of [I V; W I] at a cut.
fn pair<T: Scalar>(cut: &Interface) -> Result<BandLu<T>> {
    let k = cut.order();
    BandLu::empty(k, k.saturating_sub(1), k.saturating_sub(1))
}

/// Factors [I V; W I] with pivoting across all its rows: `v` is V^(b) before the cut, `w` W^(t) after it.
fn factor_pair<T: Scalar>(
    lu: &mut BandLu<T>,
    cut: &Interface,
    v: faer::MatRef<'_, T>,
    w: faer::MatRef<'_, T>,
) -> Result<()> {
    lu.refactor_from(
        |j, _, column| {
            column.fill(bt_formats::zero());
            column[j] = bt_formats::one();
            let (from, at) = if j < cut.nb { (w.col(j), cut.nb) } else { (v.col(j - cut.nb), 0) };
            for i in 0..from.nrows() {
                column[at + i] = from[i];
            }
        },
        &mut (),
    )
}

/// Refuses a reduced system that is singular to working precision: its entries carry the rounding of all partitions, so
/// that a pivot of that size says nothing, and a singular A seldom shows as an exact zero here.
fn check_pivots<T: Scalar>(stats: FactorStats, n: usize, cut: Option<usize>) -> Result<()> {
    // Large spikes are judged by the growth they mean; here they would only hide the scale of the other rows.
    let rounding = 4.0 * n.min(64) as f64 * stats.norm_one.min(16.0) * unit_roundoff::<T>();
    if stats.min_pivot > rounding {
        return Ok(());
    }
    let at = cut.map_or(String::new(), |cut| format!(", at or near the cut after partition {cut} (from 0),"));
    let reason = format!(
        "a pivot of {:.1e} in the reduced system{at} is no more than rounding: band-lu, which pivots across partitions, \
         tells whether A is regular",
        stats.min_pivot
    );
    Err(FactorError::breakdown(METHOD, cut.map(Place::Partition), reason))
}

/// An error of the reduced system. Rows were no candidates for pivots across cuts before, so that a system without a pivot
/// does not prove that A is singular.
fn named(error: FactorError, cut: usize, interface: &Interface) -> FactorError {
    let row = |i: usize| interface.rows().nth(i);
    let place = match error {
        FactorError::Singular(Singularity { column, .. }) => row(column).map(Place::Column),
        FactorError::Breakdown { place, .. } => place.and_then(|place| place.renumbered(row, row)),
        other => return other,
    };
    let place = place.or(Some(Place::Partition(cut)));
    let reason = format!(
        "the reduced system has no usable pivot at the cut after partition {cut} (from 0): band-lu, which pivots \
         across partitions, tells whether there is any"
    );
    FactorError::breakdown(METHOD, place, reason)
}
