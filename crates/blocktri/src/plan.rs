//! The candidates of `Method::Auto`: methods in every order worth trying, with counts, predicted seconds and bytes, the fastest first.
//!
//! Band LU is counted without row interchanges where A is diagonally dominant, and elsewhere with those that the largest entries
//! of its columns ask for; block LU by its block sizes; sparse factors by the fill in their own order, which is that of
//! elimination with the pivots they prefer (exact for Cholesky; LU leaves them where they are small). Iterations are counted with
//! [`LEAST_STEPS`]: how many they take, a probe tells.
//!
//! Where an iteration may be faster than sparse factors [by far](CLEAR), it is tried for some times as long as their ordering
//! would take before that is made, but no longer than a fraction of what they are estimated to take. That is estimated by the
//! smallest level w of a breadth-first search that halves the graph. Nested dissection of a square grid, w unknowns wide, takes
//! some 10·w³ multiplications and 8·w² entries (A. George, SIAM J. Numer. Anal. 10 (1973) 345–363, doi:10.1137/0710032), and of a
//! cube about as many of its own w.
//!
//! The same level tells how narrow a band may become in reverse Cuthill–McKee order, which is not made where sparse factors are estimated to
//! be far faster.
//!
//! A reordering or a symbolic phase costs time itself, which may be more than the solve. It is done while a lower bound of what it can
//! reach, its own time included, is below the best candidate so far: half-bandwidths are at least half the entries of a row, and
//! factors hold at least the entries of A. And it is done where the best candidate takes [`WORTH`] times as long as the order itself: whether
//! an order is good is not known before: at worst half as much time again is spent in vain, or twice the least time is taken.

use std::cell::OnceCell;
use std::sync::Arc;

use bt_direct::{Components, Cyclic, SparseLdl, SymbolicCholesky, SymbolicLu};
use bt_formats::detect::{natural_partition, natural_partition_under, triangular_order};
use bt_formats::reorder::{bandwidth, bandwidth_under, rcm};
use bt_formats::{Csr, DiagonalEntries, LinearOperator, Matrix, Partition, Permutation, Scalar, memory};
use bt_iter::{DroppedFill, TriangularSolves};

use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::candidate::{Candidate, GAIN, LEAST_STEPS, rank, refusal};
use crate::cost::{Kernel, Machine, Work, arithmetic};
use crate::counts::{
    Fill, band_flops, band_nopivot_work, band_work, block_work, dense_work, elimination_products, half_band_work,
    half_block_work, iteration_work, pivoted_band_flops, sparse_ldl_work, sparse_lu_work, tridiagonal_work, work,
};
use crate::direct::{Direct, Family};
use crate::error::Error;
use crate::gpu::card::Gpu;
use crate::held::Format;
use crate::memory::{bytes_of, bytes_of_blocks};
use crate::method::{Krylov, KrylovMethod, Method};
use crate::options::{Blocks, DeviceChoice, Reorder};
use crate::partition::partition;
use crate::parts::Parts;
use crate::preconditioners::Precond;
use crate::stored::Stored;
use crate::structure::{Search, dominant, search};

/// What a method need not find out again once its matrix has been weighed.
#[derive(Clone, Default)]
pub(crate) struct Found {
    /// The symbolic phase of sparse LU.
    pub sparse_lu: Option<Arc<SymbolicLu>>,
    /// That of L·D·Lᴴ.
    pub sparse_ldl: Option<Arc<SymbolicCholesky>>,
    /// The components, each weighed.
    pub parts: Option<Arc<WeighedParts>>,
}

/// The parts of a matrix that nothing connects, each weighed by itself.
pub(crate) struct WeighedParts {
    pub parts: Parts,
    /// One for each part.
    pub plans: Vec<Plan>,
}

/// What the parts take together.
struct Weighed {
    /// Sums, and the kernel of the part that takes longest.
    work: Work,
    seconds: f64,
    bytes: u64,
    structure: String,
}

impl WeighedParts {
    /// With the methods for each of `parts`.
    pub fn new<T: Scalar>(a: &Csr<T>, parts: Parts) -> Result<Self, Error> {
        let of_part = |k: usize| -> Result<Plan, Error> {
            let part = Components::part(a, &parts.order, &parts.partition, k)?;
            plan(&part, Reorder::Auto, &Blocks::Detect, Depth::All)
        };
        let plans = (0..parts.len()).into_par_iter().map(of_part).collect::<Result<_, _>>()?;
        Ok(Self { parts, plans })
    }

    /// By the fastest direct method of each part. Their seconds are counted as if one followed the other, so that threads decide nothing.
    fn sum<T: Scalar>(&self, a: &Csr<T>) -> Weighed {
        let parts: Vec<&Candidate> =
            self.plans.iter().map(|plan| plan.first_direct().expect("a direct method for every matrix")).collect();
        let longest = parts.iter().max_by(|c, d| c.seconds.total_cmp(&d.seconds)).expect("more parts than one");
        let sum = |count: fn(&Candidate) -> f64| parts.iter().map(|c| count(c)).sum::<f64>();
        let machine = Machine::here();
        Weighed {
            work: Work {
                kernel: longest.work.kernel,
                steps: sum(|c| c.work.steps),
                flops: sum(|c| c.work.flops),
                moved: sum(|c| c.work.moved),
                ordered: sum(|c| c.work.ordered),
                paired: sum(|c| c.work.paired),
                analysed: sum(|c| c.work.analysed),
            },
            seconds: machine.entry * a.nnz() as f64 + self.parts.len() as f64 * machine.call + sum(|c| c.seconds),
            bytes: a.bytes() as u64 + parts.iter().map(|c| c.bytes).sum::<u64>(),
            structure: self.parts.in_words(parts.iter().map(|c| c.method.name())),
        }
    }
}

/// What was found out about the matrix while choosing.
pub(crate) struct Plan {
    /// The fastest first, those that are out of the question last.
    pub candidates: Vec<Candidate>,
    /// Reverse Cuthill–McKee order, when it was computed.
    pub rcm: Option<Permutation>,
    /// What the method chosen can begin with.
    pub found: Found,
    /// Orders were not tried yet: seconds for an iteration before they are.
    pub before_orders: Option<f64>,
    /// Which of them a GPU computes, where one was asked for.
    pub gpu: Gpu,
}

/// How far the choice goes.
pub(crate) enum Depth {
    /// To the end.
    All,
    /// Up to an iteration that is worth a try before sparse factors are ordered.
    UntilIterations,
    /// To the end after such a try, with the direct methods that were weighed before it, and the order that was made for them.
    AfterIterations { candidates: Vec<Candidate>, rcm: Option<Permutation> },
}

impl Plan {
    /// The fastest candidate that is a direct method, and which it is.
    pub fn direct(&self) -> Option<(&Candidate, Direct)> {
        self.direct_among(|_| true)
    }

    /// The fastest of these direct methods.
    pub fn direct_among(&self, these: impl Fn(Direct) -> bool) -> Option<(&Candidate, Direct)> {
        self.possible().filter_map(|c| Some((c, c.direct()?))).find(|&(_, direct)| these(direct))
    }

    /// The fastest direct method, or the first of those that are out of the question.
    pub fn first_direct(&self) -> Option<&Candidate> {
        self.candidates.iter().find(|c| c.direct().is_some())
    }

    /// How the choice goes on where an iteration was not the answer.
    pub fn after_iterations(&self) -> Depth {
        let direct = |c: &&Candidate| !c.method.is_iterative() && !c.device.is_gpu();
        let candidates = self.candidates.iter().filter(direct).cloned().collect();
        Depth::AfterIterations { candidates, rcm: self.rcm.clone() }
    }

    /// Seconds that an iteration may take: those of the fastest direct method, whose order has been made; before anything is
    /// ordered at most those that an order is worth.
    pub fn limit(&self) -> Option<f64> {
        self.direct().map(|(c, _)| c.seconds_after_order()).into_iter().chain(self.before_orders).reduce(f64::min)
    }

    /// Seconds of an iteration before its first step, and of each of them. On the processor all is counted with the steps.
    pub fn pace<T: Scalar>(&self, a: &Csr<T>, iteration: &Candidate, method: KrylovMethod) -> (f64, f64) {
        match &self.gpu {
            Gpu::Open(card, _) if iteration.device.is_gpu() => {
                let a_step = card.facts.step(a, method);
                (iteration.seconds - LEAST_STEPS * a_step, a_step)
            }
            _ => {
                let Work { kernel, steps, .. } = iteration.work;
                (0.0, Machine::here().rate(kernel).step * steps / LEAST_STEPS)
            }
        }
    }

    /// What the [`limit`](Self::limit) must be for an iteration to be tried with so many right-hand sides: what is done before its first step
    /// is paid once.
    pub fn least_limit<T: Scalar>(&self, a: &Csr<T>, iteration: &Candidate, method: KrylovMethod, columns: f64) -> f64 {
        // Before anything is ordered the plan has made sure of the gain.
        let gain = if self.before_orders.is_some() { 1.0 } else { GAIN };
        let (once, _) = self.pace(a, iteration, method);
        once + gain * columns * (iteration.seconds - once)
    }

    /// One more candidate, at its place.
    pub fn add(&mut self, candidate: Candidate) {
        self.candidates.push(candidate);
        rank(&mut self.candidates);
    }

    /// What is not out of the question, the fastest first.
    pub fn possible(&self) -> impl Iterator<Item = &Candidate> {
        self.candidates.iter().filter(|c| c.refused.is_none())
    }
}

/// What half of a matrix says about the other half.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Symmetry {
    /// Not Hermitian.
    None,
    /// A = Aᴴ.
    Hermitian,
    /// A = Aᴴ with a positive diagonal.
    PositiveDiagonal,
}

/// Numbers stored for an entry, up to which a structure is full.
const FULL: f64 = 1.5;

/// Operations an entry of A, up to which an elimination is cheap.
const CHEAP: f64 = 64.0;

/// What is worth a closer look at A: half of it must be predicted to gain as much before the other half is compared with it, rows that are not
/// exchanged before the largest entries of columns are looked for.
const SURE: f64 = 1.2;
/// How much faster two threads eliminate a band from both ends than one thread from one.
const BOTH_ENDS: f64 = 1.7;

/// Whether elimination of a band without row interchanges, which one thread does and only real matrices gain by, is predicted to take less
/// than so many seconds of band LU.
fn gains_without_interchanges<T: Scalar>(seconds: f64, of_band_lu: f64) -> bool {
    let both_ends = if rayon::current_num_threads() > 1 { BOTH_ENDS } else { 1.0 };
    T::IS_REAL && both_ends * seconds < of_band_lu
}

/// How much longer than an ordering an iteration may take before that is made.
const PATIENCE: f64 = 8.0;

/// How much longer than an order the best candidate must take for the order to be made.
const WORTH: f64 = 3.0;

/// What sparse factors must be estimated to take, in units of the setup and the least steps of an iteration, for that to be tried before
/// they are ordered: the estimate may be several times too high, and most iterations take several times the least steps.
const CLEAR: f64 = 16.0;

/// Rows below which iterations are not thought of: direct methods take milliseconds.
const SMALL: usize = 2000;

/// Ranks the methods for `a`. `reorder` restricts the orders that are tried; `blocks` are those of the given order.
pub(crate) fn plan<T: Scalar>(a: &Csr<T>, reorder: Reorder, blocks: &Blocks, depth: Depth) -> Result<Plan, Error> {
    let mut list = List::of(a);
    let is_natural = matches!(reorder, Reorder::None | Reorder::Auto);
    let (rcm, may_iterate) = match depth {
        Depth::All => list.push_without_fill(reorder, blocks, true)?,
        Depth::UntilIterations => {
            let (rcm, may_iterate) = list.push_without_fill(reorder, blocks, false)?;
            if may_iterate {
                let patience = if list.is_cheap() { None } else { list.patience() };
                if patience.is_some() {
                    return Ok(Plan { before_orders: patience, ..list.finish(rcm) });
                }
                list.push_components()?;
            }
            (rcm, may_iterate)
        }
        Depth::AfterIterations { candidates, rcm } => {
            list.candidates = candidates;
            list.push_components()?;
            (rcm, true)
        }
    };
    if is_natural && !list.is_cheap() && list.may_gain(list.least_of_sparse()) {
        list.push_sparse();
    }
    if may_iterate {
        list.push_iterations();
    }
    Ok(list.finish(rcm))
}

/// The reverse Cuthill–McKee order, where methods of a family are predicted to be faster in it than in the order given; methods for three diagonals
/// where they can do without it not at all. Other families than those of bands and blocks have orders of their own, or need none.
pub(crate) fn cheaper_order<T: Scalar>(a: &Csr<T>, family: Family) -> Result<Option<Permutation>, Error> {
    if family == Family::Tridiagonal {
        let is_of_three = |(kl, ku): (usize, usize)| kl.max(ku) <= 1;
        let p = if is_of_three(bandwidth(a)) { None } else { Some(rcm(a)?) };
        return Ok(p.filter(|p| is_of_three(bandwidth_under(a, p))));
    }
    let mut list = List::of(a);
    match family {
        Family::Band => list.push_band(None, bandwidth(a)),
        Family::Blocks => list.push_blocks(None, &natural_partition(a)?),
        _ => return Ok(None),
    }
    if list.is_cheap() || list.is_full || !list.may_gain_in_order(list.least_of_bands()) {
        return Ok(None);
    }
    let p = rcm(a)?;
    match family {
        Family::Blocks => list.push_blocks(Some(&p), &natural_partition_under(a, &p)?),
        _ => list.push_band(Some(&p), bandwidth_under(a, &p)),
    }
    rank(&mut list.candidates);
    Ok(list.candidates.first().is_some_and(|c| c.reorder == Reorder::Rcm).then_some(p))
}

/// Ranks the methods for a format as it stands.
pub(crate) fn plan_of_format<T: Scalar>(format: &Format<T>) -> Plan {
    let (machine, matrix) = (Machine::here(), format.as_matrix());
    let (n, nnz) = (matrix.nrows(), matrix.nnz());
    let mut candidates = Vec::new();
    let mut push = |method: Direct, work: Work, bytes: u64, structure: String| {
        let (seconds, refused) = (machine.seconds::<T>(nnz, &work), refusal(bytes, memory::allowed));
        let (method, device, reorder) = (method.into(), DeviceChoice::Cpu, Reorder::None);
        candidates.push(Candidate { method, device, reorder, work, seconds, bytes, structure, refused });
    };
    match &format.stored {
        Stored::Tridiagonal(_) => {
            let method = if format.is_dominant { Direct::Thomas } else { Direct::TridiagonalLu };
            push(method, tridiagonal_work::<T>(n), 16 * (n * size_of::<T>()) as u64, "tridiagonal".into());
        }
        Stored::Band(a) => {
            let (kl, ku) = (a.kl(), a.ku());
            let flops = band_flops(n, kl, if format.is_dominant { ku } else { kl + ku });
            let bytes = |method| bytes_of::<T>(n, (kl, ku), method);
            let structure = format!("{kl} sub- and {ku} super-diagonals");
            let (whole, half) = (band_work::<T>(n, (kl, ku), flops), half_band_work::<T>(n, kl));
            push(Direct::BandLu, whole, bytes(Direct::BandLu), structure.clone());
            let without = band_nopivot_work::<T>(n, (kl, ku));
            let seconds = |work| machine.seconds::<T>(nnz, work);
            if gains_without_interchanges::<T>(seconds(&without), seconds(&whole)) && format.is_dominant {
                push(Direct::BandLuNoPivot, without, bytes(Direct::BandLuNoPivot), format!("{structure}, dominant"));
            }
            let gains = SURE * machine.seconds::<T>(nnz, &half) < machine.seconds::<T>(nnz, &whole);
            if kl == ku && gains && format.stored.may_be_definite_band() {
                let structure = format!("{kl} sub-diagonals, Hermitian");
                push(Direct::BandCholesky, half, bytes(Direct::BandCholesky), structure);
            }
        }
        Stored::Blocks(a) => {
            let partition = a.partition();
            let bytes = bytes_of_blocks::<T>(partition, Direct::BlockLu);
            push(Direct::BlockLu, block_work::<T>(partition), bytes, in_words(partition));
        }
        Stored::Periodic(_) => {
            push(Direct::PeriodicLu, periodic_work::<T>(n), periodic_bytes::<T>(n), "periodic tridiagonal".into());
        }
        Stored::Full(_) => {
            let bytes = bytes_of::<T>(n, (n, n), Direct::DenseLu);
            push(Direct::DenseLu, dense_work::<T>(n), bytes, format!("all {n} × {n} numbers"));
        }
    }
    ranked(candidates, None)
}

/// "100 diagonal blocks of 3 to 4".
fn in_words(partition: &Partition) -> String {
    let (min, max) = partition.min_max_size();
    format!("{} diagonal blocks of {min} to {max}", partition.n_blocks())
}

/// "1.2e4 entries of L, Hermitian".
fn half_in_words(entries: f64) -> String {
    format!("{entries:.1e} entries of L, Hermitian")
}

/// Two eliminations of three diagonals.
fn periodic_work<T: Scalar>(n: usize) -> Work {
    Work { steps: 2.0 * n as f64, ..tridiagonal_work::<T>(n) }
}

fn periodic_bytes<T: Scalar>(n: usize) -> u64 {
    24 * (n * size_of::<T>()) as u64
}

fn order_of(order: Option<&Permutation>) -> Reorder {
    if order.is_some() { Reorder::Rcm } else { Reorder::None }
}

/// A plan of these.
fn ranked(mut candidates: Vec<Candidate>, rcm: Option<Permutation>) -> Plan {
    rank(&mut candidates);
    Plan { candidates, rcm, found: Found::default(), before_orders: None, gpu: Gpu::NotAsked }
}

/// Candidates while they are gathered.
struct List<'a, T: Scalar> {
    a: &'a Csr<T>,
    machine: &'static Machine,
    candidates: Vec<Candidate>,
    /// Bytes that may be taken, once somebody wants many.
    allowed: OnceCell<Option<u64>>,
    symmetry: OnceCell<Symmetry>,
    dominance: OnceCell<bool>,
    /// Made where it is needed.
    search: OnceCell<Search>,
    /// Whether a band or blocks hold little but entries of A: no order makes them narrower.
    is_full: bool,
    found: Found,
}

impl<'a, T: Scalar> List<'a, T> {
    fn of(a: &'a Csr<T>) -> Self {
        Self {
            a,
            machine: Machine::here(),
            candidates: Vec::new(),
            allowed: OnceCell::new(),
            symmetry: OnceCell::new(),
            dominance: OnceCell::new(),
            search: OnceCell::new(),
            is_full: false,
            found: Found::default(),
        }
    }

    fn finish(self, rcm: Option<Permutation>) -> Plan {
        Plan { found: self.found, ..ranked(self.candidates, rcm) }
    }

    /// Least seconds of the iteration, if there is one.
    fn fastest_iteration(&self) -> Option<f64> {
        let possible = self.candidates.iter().filter(|c| c.refused.is_none() && c.method.is_iterative());
        possible.map(|c| c.seconds).reduce(f64::min)
    }

    /// Seconds of a sparse factorization by nested dissection, its ordering included.
    fn estimate_of_sparse(&self) -> f64 {
        let (w, n, nnz) = (self.search().middle as f64, self.a.nrows() as f64, self.a.nnz() as f64);
        let halves = if self.is_definite() { 1.0 } else { 2.0 };
        let entries = halves * (8.0 * w * w + nnz / 2.0);
        let products = halves * 10.0 * w * w * w;
        let kernel = match self.is_definite() {
            true => Kernel::SparseCholesky,
            false if SymbolicLu::pays_by_columns(2.0 * products, entries) => Kernel::SparseColumns,
            false => Kernel::Sparse,
        };
        let flops = 2.0 * arithmetic::<T>() * products;
        self.seconds(&Work { kernel, steps: entries, flops, moved: 0.0, ordered: nnz, paired: 0.0, analysed: n + nnz })
    }

    fn longest_row(&self) -> usize {
        self.a.row_ptr().windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0) as usize
    }

    fn search(&self) -> &Search {
        self.search.get_or_init(|| search(self.a))
    }

    /// Whether sparse factors are estimated to take far less than elimination in a band that is as wide as the middle of the graph: in reverse
    /// Cuthill–McKee order, which numbers level by level, it is hardly narrower.
    fn is_for_sparse_factors(&self) -> bool {
        /// How much less.
        const FAR: f64 = 1.5;
        let (n, w) = (self.a.nrows(), self.search().middle.max(self.longest_row().saturating_sub(1) / 2));
        let half = self.seconds(&half_band_work::<T>(n, w));
        let whole = self.seconds(&band_nopivot_work::<T>(n, (w, w)));
        let band = if self.is_definite() { half.min(whole) } else { whole };
        FAR * self.estimate_of_sparse() < band
    }

    fn seconds(&self, work: &Work) -> f64 {
        self.machine.seconds::<T>(self.a.nnz(), work)
    }

    fn push(&mut self, method: impl Into<Method>, reorder: Reorder, work: Work, bytes: u64, structure: String) {
        let seconds = self.seconds(&work);
        self.push_weighed(method.into(), reorder, Weighed { work, seconds, bytes, structure });
    }

    fn push_weighed(&mut self, method: Method, reorder: Reorder, weighed: Weighed) {
        let Weighed { work, seconds, bytes, structure } = weighed;
        let refused = refusal(bytes, || *self.allowed.get_or_init(memory::allowed));
        let device = DeviceChoice::Cpu;
        self.candidates.push(Candidate { method, device, reorder, work, seconds, bytes, structure, refused });
    }

    /// Whether something that takes `least` seconds at least may be faster than all so far.
    fn may_gain(&self, least: f64) -> bool {
        self.candidates.iter().filter(|c| c.refused.is_none()).all(|c| least < c.seconds)
    }

    /// The same of what takes an order first, which must be worth its time.
    fn may_gain_in_order(&self, least: f64) -> bool {
        self.may_gain(least.max(WORTH * self.machine.ordering * self.a.nnz() as f64))
    }

    /// Whether some elimination costs no more than reading the matrix a few dozen times: then nothing else is looked for.
    fn is_cheap(&self) -> bool {
        let few = arithmetic::<T>() * CHEAP * self.a.nnz() as f64;
        self.candidates.iter().any(|c| c.refused.is_none() && c.work.flops <= few)
    }

    /// Seconds of a band or of blocks in the best order there may be.
    fn least_of_bands(&self) -> f64 {
        let (n, nnz) = (self.a.nrows() as f64, self.a.nnz() as f64);
        let longest = self.longest_row();
        // Rows of r entries on average reach at least (r − 1)/2 columns to a side, and few of them less; a band is as wide as its longest row
        // asks for, and of the three blocks that have a row one has at least a third of it.
        let reach = |entries: f64| (entries - 1.0).max(0.0) / 2.0;
        let (half, widest, block) = (reach(nnz / n), reach(longest as f64), longest as f64 / 3.0);
        let of_band = |half: f64| n * (2.0 * half * half + 6.0 * half);
        let least = |kernel, steps, flops: f64| {
            let flops = arithmetic::<T>() * flops;
            self.seconds(&Work { kernel, steps, flops, moved: 0.0, ordered: nnz, paired: 0.0, analysed: 0.0 })
        };
        let of_blocks = of_band(half).max(2.0 / 3.0 * block.powi(3));
        let blocks = [Kernel::Blocks, Kernel::EqualBlocks].map(|kernel| least(kernel, n / half.max(1.0), of_blocks));
        least(Kernel::Band, n, of_band(widest)).min(blocks[0]).min(blocks[1])
    }

    /// Seconds of sparse factors without fill, and what the best candidate must take for their symbolic phase to be worth a try.
    fn least_of_sparse(&self) -> f64 {
        let (n, nnz) = (self.a.nrows() as f64, self.a.nnz() as f64);
        let flops = arithmetic::<T>() * nnz * nnz / (2.0 * n).max(1.0);
        let (kernel, steps) = (Kernel::SparseCholesky, nnz / 2.0);
        let least = Work { kernel, steps, flops, moved: 0.0, ordered: nnz, paired: 0.0, analysed: 0.0 };
        if self.symmetry() != Symmetry::None {
            return self.seconds(&least).max(WORTH * self.machine.ordering * nnz);
        }
        // LU is analysed before it is weighed, and in another way where its pattern is not symmetric.
        let paired = if self.is_nearly_symmetric() { 0.0 } else { n + nnz };
        let symbolic = self.machine.ordering * nnz
            + self.machine.pairing * paired
            + self.machine.rate(Kernel::SparseColumns).analysis * (n + nnz);
        let least = Work { kernel: Kernel::SparseColumns, steps: nnz, paired, analysed: n + nnz, ..least };
        self.seconds(&least).max(WORTH * symbolic)
    }

    /// Whether half of the entries beside the diagonal in some rows have a mirror image.
    fn is_nearly_symmetric(&self) -> bool {
        let (mut entries, mut pairs) = (0, 0);
        for i in (0..self.a.nrows()).step_by(self.a.nrows().div_ceil(64).max(1)) {
            let cols = || self.a.row(i).0.iter().filter(|&&j| j as usize != i);
            entries += cols().count();
            pairs += cols().filter(|&&j| self.a.row(j as usize).0.binary_search(&(i as u32)).is_ok()).count();
        }
        2 * pairs >= entries
    }

    /// All that no fill is counted for: narrow structures in the order given and in that of reverse Cuthill–McKee, and full matrices. The order,
    /// if it was made, and whether iterations are thought of; parts are ordered to be weighed, which an iteration may spare: where one
    /// may be, they are not `parts_first`.
    fn push_without_fill(
        &mut self,
        reorder: Reorder,
        blocks: &Blocks,
        parts_first: bool,
    ) -> Result<(Option<Permutation>, bool), Error> {
        let a = self.a;
        let is_natural = matches!(reorder, Reorder::None | Reorder::Auto);
        if is_natural {
            let band = bandwidth(a);
            self.push_solved_at_sight(band)?;
            if self.candidates.is_empty() {
                self.push_narrow(None, band, || partition(a, blocks, true))?;
            }
        }
        if is_natural && !self.is_cheap() {
            self.push_dense();
        }
        let may_iterate = reorder == Reorder::Auto && a.nrows() > SMALL && !self.is_cheap();
        if is_natural && !self.is_cheap() && (parts_first || !may_iterate) {
            self.push_components()?;
        }
        let may_be_narrower = || {
            let worth =
                || self.may_gain_in_order(self.least_of_bands()) && !(may_iterate && self.is_for_sparse_factors());
            !self.is_cheap() && !self.is_full && worth()
        };
        if reorder == Reorder::Rcm || (reorder == Reorder::Auto && may_be_narrower()) {
            let p = rcm(a)?;
            let narrow = bandwidth_under(a, &p);
            self.push_narrow(Some(&p), narrow, || Ok(natural_partition_under(a, &p)?))?;
            return Ok((Some(p), may_iterate));
        }
        Ok((None, may_iterate))
    }

    /// Seconds that an iteration may take before anything is ordered for sparse factors, if one may be faster than those by far: then it is
    /// among the candidates.
    fn patience(&mut self) -> Option<f64> {
        self.push_iterations();
        let seconds = self.fastest_iteration()?;
        let estimate = self.estimate_of_sparse();
        if CLEAR * seconds < estimate {
            // The estimate may be far from what an order finds: a fraction of it is not much to lose.
            let patience = (PATIENCE * self.machine.ordering * self.a.nnz() as f64).min(estimate / GAIN);
            return Some(patience.max(seconds));
        }
        self.candidates.retain(|c| !c.method.is_iterative());
        None
    }

    /// Diagonal, triangular and periodic matrices, for which nothing else is looked for.
    fn push_solved_at_sight(&mut self, (kl, ku): (usize, usize)) -> Result<(), Error> {
        let (n, nnz, number) = (self.a.nrows(), self.a.nnz(), size_of::<T>());
        let sweep = |steps: usize| work::<T>(Kernel::Sweep, steps as f64, 0.0, 0.0);
        if (kl, ku) == (0, 0) && n > 1 {
            self.push(Direct::Diagonal, Reorder::None, sweep(2 * nnz), 2 * (n * number) as u64, "diagonal".into());
        } else if kl.max(ku) > 1 && kl.max(ku) + 1 == n && nnz <= 3 * n && Cyclic::from_csr(self.a).is_ok() {
            let (work, bytes) = (periodic_work::<T>(n), periodic_bytes::<T>(n));
            self.push(Direct::PeriodicLu, Reorder::None, work, bytes, "periodic tridiagonal".into());
        } else if kl.max(ku) > 1
            && let Some(order) = triangular_order(self.a)?
        {
            let given = order.rows.is_sorted() || order.rows.iter().rev().is_sorted();
            let structure = if given { "triangular" } else { "triangular in another order of rows and columns" };
            let bytes = (2 * nnz * (number + 4) + 16 * n) as u64;
            self.push(Direct::Triangular, Reorder::None, sweep(4 * nnz), bytes, structure.into());
        }
        Ok(())
    }

    /// Methods on three diagonals, on the band, and on blocks.
    fn push_narrow(
        &mut self,
        order: Option<&Permutation>,
        (kl, ku): (usize, usize),
        partition: impl FnOnce() -> Result<Partition, Error>,
    ) -> Result<(), Error> {
        let n = self.a.nrows();
        self.push_band(order, (kl, ku));
        if kl <= 1 && ku <= 1 {
            return Ok(());
        }
        let half = self.in_order(order, half_band_work::<T>(n, kl));
        if kl == ku && self.may_gain(SURE * self.seconds(&half)) && self.is_definite() {
            let bytes = bytes_of::<T>(n, (kl, ku), Direct::BandCholesky);
            self.push(Direct::BandCholesky, order_of(order), half, bytes, format!("{kl} sub-diagonals, Hermitian"));
        }
        let partition = partition()?;
        if partition.n_blocks() > 1 {
            self.push_blocks(order, &partition);
            let half = self.in_order(order, half_block_work::<T>(&partition));
            if self.may_gain(SURE * self.seconds(&half)) && self.is_definite() {
                let bytes = bytes_of_blocks::<T>(&partition, Direct::BlockCholesky);
                let structure = format!("{}, Hermitian", in_words(&partition));
                self.push(Direct::BlockCholesky, order_of(order), half, bytes, structure);
            }
        }
        Ok(())
    }

    /// A method on three diagonals, or LU on the band.
    fn push_band(&mut self, order: Option<&Permutation>, (kl, ku): (usize, usize)) {
        let n = self.a.nrows();
        if kl <= 1 && ku <= 1 {
            // Without pivoting half the work, but only where dominance makes the pivots safe.
            let method = if self.is_dominant() { Direct::Thomas } else { Direct::TridiagonalLu };
            let (work, bytes) = (self.in_order(order, tridiagonal_work::<T>(n)), 16 * (n * size_of::<T>()) as u64);
            self.push(method, order_of(order), work, bytes, "tridiagonal".into());
            return;
        }
        let band = self.in_order(order, band_work::<T>(n, (kl, ku), self.flops_of_band(order, (kl, ku))));
        self.is_full |= n as f64 * (kl + ku + 1) as f64 <= FULL * self.a.nnz() as f64;
        let bytes = |method| bytes_of::<T>(n, (kl, ku), method);
        let structure = format!("{kl} sub- and {ku} super-diagonals");
        let without = self.in_order(order, band_nopivot_work::<T>(n, (kl, ku)));
        let gains = gains_without_interchanges::<T>(self.seconds(&without), self.seconds(&band));
        self.push(Direct::BandLu, order_of(order), band, bytes(Direct::BandLu), structure.clone());
        // Dominance makes the pivots safe.
        if gains && self.is_dominant() {
            let structure = format!("{structure}, dominant");
            self.push(Direct::BandLuNoPivot, order_of(order), without, bytes(Direct::BandLuNoPivot), structure);
        }
    }

    /// LU on blocks.
    fn push_blocks(&mut self, order: Option<&Permutation>, partition: &Partition) {
        let held: f64 = partition.sizes().map(|k| 3.0 * (k * k) as f64).sum();
        self.is_full |= held <= FULL * self.a.nnz() as f64;
        let blocks = self.in_order(order, block_work::<T>(partition));
        let bytes = bytes_of_blocks::<T>(partition, Direct::BlockLu);
        self.push(Direct::BlockLu, order_of(order), blocks, bytes, in_words(partition));
    }

    /// With what it takes to make the order, if there is one.
    fn in_order(&self, order: Option<&Permutation>, work: Work) -> Work {
        Work { ordered: order.map_or(0.0, |_| self.a.nnz() as f64), ..work }
    }

    /// Of a band LU and one solve: where it matters, with the exchanges of rows that the largest entries of A ask for.
    fn flops_of_band(&self, order: Option<&Permutation>, (kl, ku): (usize, usize)) -> f64 {
        let n = self.a.nrows();
        let least = band_flops(n, kl, ku);
        if self.is_dominant() {
            return least;
        }
        let most = band_flops(n, kl, kl + ku);
        let seconds = |flops| self.seconds(&band_work::<T>(n, (kl, ku), flops));
        if seconds(most) <= SURE * seconds(least) {
            return most;
        }
        match order.map(Permutation::position) {
            Some(place) => pivoted_band_flops(self.a, |i| place[i] as usize, (kl, ku)),
            None => pivoted_band_flops(self.a, |i| i, (kl, ku)),
        }
    }

    fn push_components(&mut self) -> Result<(), Error> {
        if self.search.get().is_some_and(|search| search.reaches_all) {
            return Ok(());
        }
        let parts = Parts::of(self.a)?;
        // Where one part has nearly all entries, there is nothing to gain.
        let divided = parts.len() > 1 && 10 * parts.most_entries(self.a) <= 9 * self.a.nnz();
        if divided && self.may_gain(2.0 * self.machine.call * parts.len() as f64) {
            let parts = WeighedParts::new(self.a, parts)?;
            self.push_weighed(Direct::Components.into(), Reorder::None, parts.sum(self.a));
            self.found.parts = Some(Arc::new(parts));
        }
        Ok(())
    }

    fn push_dense(&mut self) {
        let n = self.a.nrows();
        let work = dense_work::<T>(n);
        // Where others are faster by far, nobody wants to read of it.
        if self.may_gain(0.1 * self.seconds(&work)) {
            let bytes = bytes_of::<T>(n, (n, n), Direct::DenseLu);
            self.push(Direct::DenseLu, Reorder::None, work, bytes, format!("all {n} × {n} numbers"));
        }
    }

    fn push_sparse(&mut self) {
        if self.symmetry() == Symmetry::None
            && let Ok(symbolic) = SymbolicLu::new(self.a)
            && let Ok(bytes) = symbolic.bytes::<T>()
        {
            let work = sparse_lu_work(self.a, &symbolic);
            let structure = format!("{:.1e} entries of factors", symbolic.fill() as f64);
            self.push(Direct::SparseLu, Reorder::None, work, bytes as u64, structure);
            self.found.sparse_lu = Some(Arc::new(symbolic));
            return;
        }
        // Where the diagonal has zeros LU looks for rows to put there, and for another order; a Hermitian matrix has L·D·Lᴴ for that.
        let zeros = self.a.survey().diagonal == DiagonalEntries::Broken;
        if !zeros || self.symmetry() == Symmetry::None {
            let Some(fill) = Fill::of(self.a) else { return };
            let structure = format!("{:.1e} entries of factors", fill.lu_entries());
            self.push(Direct::SparseLu, Reorder::None, fill.lu_work(self.a), fill.lu_bytes::<T>(), structure);
            if self.symmetry() == Symmetry::PositiveDiagonal {
                let (work, bytes) = (fill.half_work(self.a), fill.half_bytes::<T>());
                let structure = half_in_words(fill.half_entries());
                self.push(Direct::SparseCholesky, Reorder::None, work, bytes, structure);
            }
        }
        if self.symmetry() == Symmetry::Hermitian
            && let Ok(symbolic) = SparseLdl::analyse(self.a)
            && let Ok(bytes) = symbolic.ldl_bytes::<T>()
        {
            let work = sparse_ldl_work(self.a, &symbolic);
            self.push(Direct::SparseLdl, Reorder::None, work, bytes as u64, half_in_words(symbolic.fill() as f64));
            self.found.sparse_ldl = Some(Arc::new(symbolic));
        }
    }

    fn push_iterations(&mut self) {
        let (n, nnz, number) = (self.a.nrows(), self.a.nnz(), size_of::<T>());
        let passes = self.seconds(&work::<T>(Kernel::Sweep, 5.0 * nnz as f64, 0.0, 0.0));
        if !self.may_gain(GAIN * passes) {
            return;
        }
        let products = elimination_products(self.a);
        let least = self.seconds(&iteration_work(self.a, products, KrylovMethod::Cg, LEAST_STEPS));
        if !self.may_gain(GAIN * least) {
            return;
        }
        let definite = self.is_definite();
        let (method, precond) = iteration(definite);
        let work = iteration_work(self.a, products, method, LEAST_STEPS);
        let bytes = (3 * nnz * (number + 4) + 16 * n * number) as u64;
        let structure = if definite { "Hermitian, positive diagonal" } else { "probed" };
        self.push(Krylov::new(method, precond), Reorder::None, work, bytes, structure.into());
    }

    fn symmetry(&self) -> Symmetry {
        *self.symmetry.get_or_init(|| {
            // Where the first rows are not Hermitian, the others need not be read.
            let first = (0..self.a.nrows().min(64)).all(|i| {
                let (cols, values) = self.a.row(i);
                cols.iter().zip(values).all(|(&j, &v)| self.a.get(j as usize, i) == Scalar::conj(v))
            });
            if !first || bt_iter::asymmetry(self.a).is_some() {
                return Symmetry::None;
            }
            if self.a.survey().diagonal == DiagonalEntries::Positive {
                Symmetry::PositiveDiagonal
            } else {
                Symmetry::Hermitian
            }
        })
    }

    fn is_dominant(&self) -> bool {
        *self.dominance.get_or_init(|| dominant(self.a))
    }

    /// Hermitian with a positive diagonal: what elimination or an iteration has the last word on.
    fn is_definite(&self) -> bool {
        self.symmetry() == Symmetry::PositiveDiagonal
    }
}

/// The iteration for a matrix, which is `definite` or not.
pub(crate) fn iteration(definite: bool) -> (KrylovMethod, Precond) {
    let (fill, solves) = (DroppedFill::Forgotten, TriangularSolves::default());
    if definite {
        (KrylovMethod::Cg, Precond::Ic0 { fill, solves })
    } else {
        (KrylovMethod::BiCgStab, Precond::Ilu0 { fill, solves })
    }
}
