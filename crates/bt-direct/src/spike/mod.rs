//! SPIKE: a banded or block-tridiagonal matrix divided into partitions that are factored independently.
//!
//! A = D·S with D = diag(A_1, …, A_p) and S the identity plus the *spikes* V_j = A_j⁻¹·[0; B_j] and W_j = A_j⁻¹·[C_j; 0],
//! B_j and C_j the couplings of partition j to its neighbours. Three stages: factor the A_j, solve a reduced system in the
//! rows next to the cuts (the tips), correct the interiors.
//!
//! E. Polizzi and A. Sameh, Parallel Comput. 32 (2006) 177–194, doi:10.1016/j.parco.2005.07.005, and Comput. Fluids 36
//! (2007) 113–141, doi:10.1016/j.compfluid.2005.07.005; truncation: C. C. K. Mikkelsen and M. Manguoglu, SIAM J. Matrix
//! Anal. Appl. 30 (2008) 1500–1519, doi:10.1137/080719571.
//!
//! Departures: tips of kl and ku rows instead of max(kl, ku) each, so that the reduced system has kl + ku unknowns a cut;
//! the last partition is eliminated upwards, so that two partitions need no spike but its tip; what truncation drops is
//! bounded, not assumed; the size of the spikes is measured, because rounding is relative to it: the elimination of a
//! partition may be worse conditioned than A, and beyond 1/√u the factorization breaks down instead of answering.
//!
//! Storage: the factors of the partitions (a second time for the middle ones when truncated), the spikes of middle
//! partitions, n_j(kl + ku) values each, where they are kept, else 8 vectors a partition; tips and reduced system,
//! O(p·(kl + ku)²). Cost for p ≤ 2: that of the partitions' factorizations; each middle partition adds n_j·2(kl + ku)²
//! flops for its spikes, or a second factorization when truncated.
//!
//! | file | case |
//! |---|---|
//! | `partition.rs`, `source.rs` | how rows are cut; the band or the blocks that are cut, and what is read of them |
//! | `factor.rs` | one partition: its factors, its couplings, its spikes or their tips |
//! | `reduced/` | the reduced system in the tips, a file for each way to solve it |
//! | `sweep.rs` | what solves do in the partitions, before and after the reduced system |
//! | `scratch.rs` | buffers for solves that run side by side |
//! | `auto.rs` | which variant and how many partitions, for a band |
//! | `tridiagonal/` | tridiagonal matrices: partitions eliminated without spikes |

mod auto;
mod factor;
mod partition;
mod reduced;
pub(crate) mod scratch;
mod source;
pub(crate) mod sweep;
mod tridiagonal;

use bt_formats::{
    Band, BlockTridiagonal, Error, HybridLayout, Monitor, Op, Par, Partition, Progress, RealScalar, Scalar,
};
use faer::MatMut;

use crate::band_nopivot::Boosting;
use crate::columns::{check_size, for_each_column};
use crate::error::{FactorError, Place, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::refine::{growth_limit, unit_roundoff};
pub use auto::Choice;
use factor::Part;
pub use partition::Partitions;
use partition::{Interface, Layout};
pub use reduced::IterationCounts;
use reduced::Reduced;
pub use source::SpikeMatrix;
pub use tridiagonal::{TridiagonalSolver, TridiagonalSpike};

const METHOD: &str = "spike";
const TRUNCATED: &str = "spike-truncated";

/// How the partitions are factored.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum PartitionSolver {
    /// With row exchanges: band LU, or block LU for block-tridiagonal matrices.
    #[default]
    Pivoted,
    /// Band LU without exchanges, small pivots boosted if so wished. Boosted factors are inexact: refine.
    NoPivot(Option<Boosting>),
    /// Band Cholesky, for a Hermitian positive definite matrix with kl = ku.
    Cholesky,
}

/// How the reduced system is solved.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ReducedSystem {
    /// Partitions are merged in pairs.
    #[default]
    Recursive,
    /// Formed, and factored by block LU.
    Explicit,
    /// The far tips V^(t) and W^(b) are dropped. The factors are inexact by what was dropped: refine.
    Truncated {
        /// Bound of ‖x̂ − x‖∞/‖x‖∞ above which the factorization breaks down. u^¼ is regained in three steps of
        /// refinement; 0 allows nothing to be dropped.
        tolerance: f64,
    },
    /// BiCGSTAB with products on the fly. No spike is formed, a solve costs two solves with all partitions an iteration.
    Iterative {
        /// Relative residual at which a solve of the reduced system ends; √u is the most that is accepted.
        rtol: f64,
        /// Iterations of one solve, at most.
        max_iters: usize,
    },
}

impl ReducedSystem {
    /// Truncated with the tolerance u^¼.
    pub fn truncated<T: Scalar>() -> Self {
        Self::Truncated { tolerance: unit_roundoff::<T>().powf(0.25) }
    }
    /// Iterative to 8u in at most 500 iterations.
    pub fn iterative<T: Scalar>() -> Self {
        Self::Iterative { rtol: 8.0 * unit_roundoff::<T>(), max_iters: 500 }
    }
}

/// Whether the spikes of middle partitions are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpikeStorage {
    /// Kept: a solve corrects interiors by a product.
    #[default]
    Full,
    /// Their tips only: a solve corrects interiors by a second solve in the partition.
    Tips,
}

/// What [`Spike`] does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpikeOptions {
    /// Number and sizes of the partitions.
    pub partitions: Partitions,
    /// How they are factored.
    pub solver: PartitionSolver,
    /// How the reduced system is solved.
    pub reduced: ReducedSystem,
    /// What is kept of the spikes. Truncated and iterative reduced systems never keep them.
    pub storage: SpikeStorage,
}

/// What a factorization chose and found.
#[derive(Clone, Debug, PartialEq)]
pub struct SpikeReport {
    /// Rows of the partitions.
    pub partitions: Vec<usize>,
    /// Largest modulus in the spikes, as far as they are formed; their combination with signs where only tips are.
    pub spike_size: f64,
    /// Bound of ‖x̂ − x‖∞/‖x‖∞ for what truncation dropped; 0 for the exact variants.
    pub dropped: f64,
    /// Pivots that were boosted.
    pub boosted_pivots: usize,
    /// Work of the iterative reduced system since the factorization.
    pub iterations: Option<IterationCounts>,
    /// What `auto` chose and why.
    pub choice: Option<Choice>,
}

/// Which matrices a factorization can be redone for.
#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Band { kl: usize, ku: usize },
    Blocks(Partition),
}

/// A factored band or block-tridiagonal matrix, in partitions.
///
/// ```
/// use bt_direct::{Factorization, Spike, SpikeOptions};
/// use bt_direct::spike::Partitions;
/// use bt_formats::Band;
/// let mut a = Band::zeros(6, 1, 1)?;
/// for i in 0..6 {
///     *a.get_mut(i, i) = 4.0;
///     if i > 0 {
///         *a.get_mut(i, i - 1) = 1.0;
///         *a.get_mut(i - 1, i) = 1.0;
///     }
/// }
/// let options = SpikeOptions { partitions: Partitions::Balanced(3), ..SpikeOptions::default() };
/// let spike = Spike::with_options(&a, &options, &mut ())?;
/// let mut x = [5.0, 6.0, 6.0, 6.0, 6.0, 5.0];
/// spike.solve_vec_in_place(&mut x);
/// assert!(x.iter().all(|v| (v - 1.0f64).abs() < 1e-15));
/// assert_eq!(spike.report().partitions, [2, 2, 2]);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[allow(clippy::struct_field_names)] // spike_size is the name in the report
pub struct Spike<T: Scalar> {
    layout: Layout,
    shape: Shape,
    options: SpikeOptions,
    parts: Vec<Part<T>>,
    reduced: Reduced<T>,
    /// Column sums of |A| of a block-tridiagonal matrix.
    sums: Vec<f64>,
    stats: FactorStats,
    spike_size: f64,
    choice: Option<Choice>,
    /// The last factorization failed: solves give NaN.
    failed: bool,
}

impl<T: Scalar> std::fmt::Debug for Spike<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spike")
            .field("partitions", &self.layout.starts)
            .field("options", &self.options)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

impl<T: Scalar> Spike<T> {
    /// Factors a [`Band`] or a [`BlockTridiagonal`] matrix with the default options: exact, in as many partitions as there are threads for.
    ///
    /// # Errors
    /// As [`Spike::with_options`].
    pub fn new<'a>(a: impl Into<SpikeMatrix<'a, T>>) -> Result<Self> {
        Self::with_options(a, &SpikeOptions::default(), &mut ())
    }

    /// Factors a [`Band`] or a [`BlockTridiagonal`] matrix, observed between the stages, and within the factorization when there is one
    /// partition. Partitions of blocks are counted in blocks, two at least in each.
    ///
    /// ```
    /// use bt_direct::{Factorization, Spike, SpikeOptions};
    /// use bt_direct::spike::Partitions;
    /// use bt_formats::{BlockTridiagonal, Coo, HybridLayout, Partition};
    /// let mut a = Coo::new(8, 8)?;
    /// for i in 0..8 {
    ///     a.push(i, i, 4.0)?;
    ///     if i >= 2 {
    ///         a.push(i, i - 2, 1.0)?;
    ///     }
    /// }
    /// let a = BlockTridiagonal::from_csr(&a.to_csr()?, Partition::uniform(8, 2)?, HybridLayout::default())?;
    /// let options = SpikeOptions { partitions: Partitions::Even(2), ..SpikeOptions::default() };
    /// let mut x = [4.0, 4.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0];
    /// Spike::with_options(&a, &options, &mut ())?.solve_vec_in_place(&mut x);
    /// assert_eq!(x, [1.0; 8]);
    /// # Ok::<(), bt_direct::FactorError>(())
    /// ```
    ///
    /// # Errors
    /// [`FactorError::Breakdown`] naming the partition or the cut when a partition is singular (A need not be), when the
    /// spikes or the elements grow beyond 1/√u, when truncation drops too much or an iterative reduced system does not
    /// converge, and when the reduced system has no pivot: never [`FactorError::Singular`], since the cuts would decide it;
    /// [`FactorError::Input`] for NaN and infinity, for unusable partition sizes (each must have at least 2·max(kl, ku) rows), for blocks
    /// and a partition solver other than [`PartitionSolver::Pivoted`], and when memory is short; [`FactorError::Stopped`] when the
    /// monitor says so.
    ///
    /// # Cost
    /// See the [module](self).
    #[inline(never)]
    pub fn with_options<'a>(
        a: impl Into<SpikeMatrix<'a, T>>,
        options: &SpikeOptions,
        monitor: &mut dyn Monitor,
    ) -> Result<Self> {
        match a.into() {
            SpikeMatrix::Band(a) => Self::of_band(a, options, monitor),
            SpikeMatrix::Blocks(a) => Self::of_blocks(a, options, monitor),
        }
    }

    pub(crate) fn of_band(a: &Band<T>, options: &SpikeOptions, monitor: &mut dyn Monitor) -> Result<Self> {
        let (n, kl, ku) = (a.n(), a.kl(), a.ku());
        let m = kl.max(ku);
        // Work of a middle row against one at an end: 2·kl·(ku + 1) flops for its elimination, more for two spikes.
        let eliminate = (2 * kl * (ku + 1)).max(1) as f64;
        let weight = match options.reduced {
            ReducedSystem::Truncated { .. } => 2.0,
            ReducedSystem::Iterative { .. } => 1.0,
            _ => 1.0 + 2.0 * ((kl + ku) as f64).powi(2) / eliminate,
        };
        let sizes = partition::sizes(&options.partitions, n, 2 * m, 64 * m, weight)?;
        let mut starts = vec![0];
        starts.extend(sizes.iter().scan(0, |row, k| {
            *row += k;
            Some(*row)
        }));
        let cut = |&split: &usize| Interface { split, nb: kl, nt: ku, rb: ku, rc: kl };
        let interfaces = starts[1..starts.len() - 1].iter().map(cut).collect();
        let layout = Layout { starts, interfaces };
        Self::build(SpikeMatrix::Band(a), layout, Shape::Band { kl, ku }, options, monitor)
    }

    pub(crate) fn of_blocks(
        a: &BlockTridiagonal<T>,
        options: &SpikeOptions,
        monitor: &mut dyn Monitor,
    ) -> Result<Self> {
        let partition = a.partition();
        // 14/3·k² flops a row to eliminate, 6k² for one spike, which the ends have, 12k² for two.
        let weight = match options.reduced {
            ReducedSystem::Iterative { .. } => 1.0,
            _ => (14.0 / 3.0 + 12.0) / (14.0 / 3.0 + 6.0),
        };
        let sizes = partition::sizes(&options.partitions, a.n_blocks(), 2, 8, weight)?;
        let (mut starts, mut interfaces, mut block) = (vec![0], Vec::new(), 0);
        for (j, k) in sizes.iter().enumerate() {
            block += k;
            let split = partition.offsets()[block] as usize;
            starts.push(split);
            if j + 1 < sizes.len() {
                let (nb, nt) = (partition.size(block - 1), partition.size(block));
                interfaces.push(Interface { split, nb, nt, rb: nb, rc: nt });
            }
        }
        let layout = Layout { starts, interfaces };
        Self::build(SpikeMatrix::Blocks(a), layout, Shape::Blocks(partition.clone()), options, monitor)
    }

    #[inline(never)]
    fn build(
        a: SpikeMatrix<'_, T>,
        layout: Layout,
        shape: Shape,
        options: &SpikeOptions,
        monitor: &mut dyn Monitor,
    ) -> Result<Self> {
        let wanted = reduced::wanted(options.reduced);
        let part = |j| Part::empty(a, &layout, j, options.solver, wanted, options.storage);
        let parts = (0..layout.p()).map(part).collect::<Result<Vec<_>>>()?;
        let reduced = Reduced::empty(options.reduced, &layout)?;
        let mut sums = Vec::new();
        if matches!(shape, Shape::Blocks(_)) {
            crate::memory::reserve(&mut sums, layout.n())?;
            sums.resize(layout.n(), 0.0);
        }
        let mut out = Self {
            layout,
            shape,
            options: options.clone(),
            parts,
            reduced,
            sums,
            stats: FactorStats::default(),
            spike_size: 0.0,
            choice: None,
            failed: true,
        };
        out.run(a, monitor)?;
        Ok(out)
    }

    /// Factors another matrix of the same kind, size and bandwidths or blocks, in the same partitions and memory. After an error
    /// solves give NaN until a refactorisation succeeds.
    ///
    /// # Errors
    /// As [`Spike::with_options`]; [`FactorError::Input`] on another kind, size, bandwidth or other blocks.
    pub fn refactor<'a>(&mut self, a: impl Into<SpikeMatrix<'a, T>>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// As [`Spike::refactor`], observed as in [`Spike::with_options`].
    ///
    /// # Errors
    /// As [`Spike::refactor`]; [`FactorError::Stopped`] when the monitor says so.
    pub fn refactor_with_monitor<'a>(
        &mut self,
        a: impl Into<SpikeMatrix<'a, T>>,
        monitor: &mut dyn Monitor,
    ) -> Result<()> {
        let a = a.into();
        match (&self.shape, a) {
            (Shape::Band { kl, ku }, SpikeMatrix::Band(band)) => {
                check_size("size of the matrix", self.layout.n(), band.n())?;
                check_size("sub-diagonals", *kl, band.kl())?;
                check_size("super-diagonals", *ku, band.ku())?;
            }
            (Shape::Blocks(partition), SpikeMatrix::Blocks(blocks)) if partition == blocks.partition() => {}
            _ => return Err(other_kind()),
        }
        self.run(a, monitor)
    }

    /// Partitions, sizes of the spikes, what was dropped or boosted, and why.
    #[inline(never)]
    pub fn report(&self) -> SpikeReport {
        SpikeReport {
            partitions: (0..self.layout.p()).map(|j| self.layout.rows(j).len()).collect(),
            spike_size: self.spike_size,
            dropped: self.reduced.dropped(),
            boosted_pivots: self.stats.boosted_pivots,
            iterations: self.reduced.iterations(),
            choice: self.choice.clone(),
        }
    }

    /// Whether solutions are those of A itself to rounding: nothing was dropped and no pivot boosted. If not, refine.
    pub fn is_exact(&self) -> bool {
        self.reduced.dropped() == 0.0 && self.stats.boosted_pivots == 0
    }

    #[inline(never)]
    pub(crate) fn run(&mut self, a: SpikeMatrix<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        self.failed = true;
        self.stats = self.stats.void();
        let mut norm_one = 0.0f64;
        if matches!(a, SpikeMatrix::Blocks(_)) {
            norm_one = a.norm_one(&mut self.sums)?;
        }
        let p = self.layout.p();
        if let [part] = &mut self.parts[..] {
            part.factor(a, monitor)?;
        } else {
            observe(monitor, 0, p + 1)?;
            factor_all(&mut self.parts, 0, a, par(a.bytes()))?;
            observe(monitor, p, p + 1)?;
        }
        let merged = self.reduced.factor(&self.layout, &self.parts)?;
        let mut stats = FactorStats { growth: 1.0, min_pivot: f64::INFINITY, ..FactorStats::default() };
        let mut size = merged;
        for part in &self.parts {
            let s = part.stats();
            stats.growth = stats.growth.max_nan(s.growth);
            stats.min_pivot = stats.min_pivot.min_nan(s.min_pivot);
            stats.boosted_pivots += s.boosted_pivots;
            stats.nnz += s.nnz;
            stats.bytes += s.bytes;
            stats.flops += s.flops;
            norm_one = norm_one.max_nan(part.measured.norm_one);
            size = size.max_nan(part.measured.spike);
        }
        if p == 1 {
            stats.growth = self.parts[0].stats().growth;
        }
        self.reduced.add_stats(&mut stats);
        stats.norm_one = norm_one;
        // Rounding in a partition is relative to |D|·|S|, not to |A|.
        stats.growth *= size.max_nan(1.0);
        if !(stats.growth <= growth_limit(unit_roundoff::<T>())) && stats.boosted_pivots == 0 && p > 1 {
            return Err(self.too_large(size, stats.growth));
        }
        self.stats = stats;
        self.spike_size = size;
        self.failed = false;
        Ok(())
    }

    fn too_large(&self, size: f64, growth: f64) -> FactorError {
        let worst = (0..self.parts.len())
            .max_by(|&i, &j| self.parts[i].measured.spike.total_cmp(&self.parts[j].measured.spike));
        let j = worst.unwrap_or(0);
        let rows = self.layout.rows(j);
        let reason = format!(
            "spikes of size {size:.1e}, elements growing by {growth:.1e}, largest in partition {j} (rows {} to {}, from \
             0): it is nearer to singular than the matrix; band-lu pivots across partitions",
            rows.start,
            rows.end - 1
        );
        FactorError::breakdown(self.method(), Place::Partition(j), reason)
    }
}

fn other_kind() -> FactorError {
    let why = "it is not of the kind, or has not the blocks, of the matrix that was factored".into();
    Error::InvalidStructure { what: "matrix for refactorisation", why }.into()
}

fn observe(monitor: &mut dyn Monitor, done: usize, total: usize) -> Result<()> {
    if monitor.observe(Progress::Step { phase: "setup", done, total }).is_break() {
        return Err(FactorError::Stopped);
    }
    Ok(())
}

/// Threads where the matrix is worth them.
fn par(bytes: usize) -> Par {
    Par::auto(bytes.saturating_mul(4))
}

/// Factors all partitions; of several errors the first partition's counts.
fn factor_all<T: Scalar>(parts: &mut [Part<T>], first: usize, a: SpikeMatrix<'_, T>, par: Par) -> Result<()> {
    if let [part] = parts {
        return part.factor(a, &mut ()).map_err(|e| in_partition(e, first, &part.rows));
    }
    let half = parts.len() / 2;
    let (left, right) = parts.split_at_mut(half);
    let done = sweep::join(par, || factor_all(left, first, a, par), || factor_all(right, first + half, a, par));
    done.0.and(done.1)
}

/// A partition without a pivot says nothing about A.
fn in_partition(error: FactorError, j: usize, rows: &std::ops::Range<usize>) -> FactorError {
    let rows = format!("partition {j} (from 0), rows {} to {}", rows.start, rows.end.max(1) - 1);
    match error {
        FactorError::Singular(_) => {
            let reason = format!("{rows} is singular, the whole matrix need not be; band-lu pivots across partitions");
            FactorError::breakdown(METHOD, Place::Partition(j), reason)
        }
        FactorError::Breakdown { method, place, reason } => {
            let reason = format!("in {rows}, {method} (rows counted in the order of elimination): {reason}");
            FactorError::breakdown(METHOD, place.unwrap_or(Place::Partition(j)), reason)
        }
        other => other,
    }
}

impl<T: Scalar> Factorization<T> for Spike<T> {
    fn n(&self) -> usize {
        self.layout.n()
    }
    fn method(&self) -> &'static str {
        if matches!(self.options.reduced, ReducedSystem::Truncated { .. }) { TRUNCATED } else { METHOD }
    }
    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, mut x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n(), "rows of X");
        if self.failed {
            for_each_column(x, |x| x.fill(T::nan_impl()));
            return;
        }
        // Contiguous columns, or a panic before anything is written.
        for_each_column(x.as_mut(), |_| ());
        let par = par(self.stats.bytes / 8);
        if op == Op::Identity {
            sweep::partitions(&self.parts, op, x.as_mut(), par);
            self.reduced.solve(op, &self.layout, &self.parts, x.as_mut());
            if self.parts.len() > 1 {
                sweep::interiors(&self.parts, None, x, None, par);
            }
        } else {
            if self.parts.len() > 1 {
                sweep::tips(&self.parts, op, None, x.as_mut(), None, par);
            }
            self.reduced.solve(op, &self.layout, &self.parts, x.as_mut());
            sweep::partitions(&self.parts, op, x, par);
        }
    }
    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        match &self.shape {
            Shape::Band { kl, ku } => self.refactor_with_monitor(&*a.band(*kl, *ku)?, monitor),
            Shape::Blocks(partition) => {
                let a = a.blocks(partition, HybridLayout::default())?;
                self.refactor_with_monitor(&*a, monitor)
            }
        }
    }
    fn stats(&self) -> FactorStats {
        self.stats
    }
    /// Of A − D·E, E what was dropped, when truncated; NaN with an iterative reduced system, which is never factored.
    fn log_det(&self) -> LogDet<T> {
        let mut det = LogDet::one();
        if self.failed {
            return LogDet { sign: T::nan_impl(), log_abs: f64::NAN };
        }
        for d in self.parts.iter().map(Part::log_det) {
            det.sign *= d.sign;
            det.log_abs += d.log_abs;
        }
        self.reduced.multiply_det(&mut det);
        det
    }
}
