//! A matrix that falls into parts which nothing connects: each part has factors of its own.
//!
//! P·A·Pᵀ = diag(A₁, …, Aₘ) for the connected components of the graph of A + Aᵀ ([`components`]). Parts are factored and
//! solved by themselves, on several threads where there is work for them; parts may also be unions of components.
//!
//! Storage: the factors of the parts, and n numbers for each thread that solves. Cost: the sum of the parts.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bt_formats::detect::components;
use bt_formats::{Csr, Error, LinearOperator, Monitor, Op, Partition, Permutation, Progress, RealScalar, Scalar, zero};
use faer::MatMut;
use rayon::prelude::{IndexedParallelIterator, IntoParallelIterator, IntoParallelRefMutIterator, ParallelIterator};

use crate::columns::{check_size, for_each_column};
use crate::error::{FactorError, Result, Singularity};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::memory::zeros;
use crate::pool::Pool;

/// Stored values of all factors from which a solve is worth several threads.
const MANY_VALUES: usize = 200_000;

/// Rows that one thread solves for then.
const FEW_ROWS: usize = 2000;

/// The factors of the parts of a matrix.
///
/// ```
/// use bt_direct::{Components, Factorization, SparseLu};
/// use bt_formats::Csr;
/// // [ 2   1 ]
/// // [   4   ]
/// // [ 1   1 ]
/// let a = Csr::new(3, 3, vec![0, 2, 3, 5], vec![0, 2, 1, 0, 2], vec![2.0, 1.0, 4.0, 1.0, 1.0])?;
/// let parts = Components::new(&a, |part| Ok(Box::new(SparseLu::new(part)?)))?;
/// assert_eq!(parts.partition().sizes().collect::<Vec<_>>(), [2, 1]);
/// let mut x = [3.0, 4.0, 2.0];
/// parts.solve_vec_in_place(&mut x);
/// assert_eq!(x, [1.0, 1.0, 1.0]);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
pub struct Components<T: Scalar> {
    order: Permutation,
    partition: Partition,
    parts: Vec<Box<dyn Factorization<T>>>,
    scratch: Pool<Vec<T>>,
    stats: FactorStats,
    /// Whether the last refactorisation failed.
    failed: bool,
}

impl<T: Scalar> std::fmt::Debug for Components<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Components")
            .field("partition", &self.partition)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

impl<T: Scalar> Components<T> {
    /// Finds the parts of `a` and has `factor` factor each: it is given the rows and columns of the part in their order.
    ///
    /// # Errors
    /// [`FactorError::Input`] when A is not square; the first error of a part, its column named as that of A.
    ///
    /// # Cost
    /// Near O(nnz), and the parts; the parts on several threads.
    pub fn new(a: &Csr<T>, factor: impl Fn(&Csr<T>) -> Result<Box<dyn Factorization<T>>> + Sync) -> Result<Self> {
        let (order, partition) = components(a)?;
        Self::with_options(a, order, partition, |_, part, _| factor(part), &mut ())
    }

    /// With parts that are known, as [`components`] finds them, or unions of them; the rows of each in their order, and `factor` is given
    /// the number of each part too. The largest part is factored on this thread and has the monitor, the others beside it; what the
    /// monitor stops ends all. It is asked until the last part is done.
    ///
    /// # Errors
    /// As [`Components::new`]; [`FactorError::Input`] naming an entry between two parts; [`FactorError::Stopped`].
    pub fn with_options(
        a: &Csr<T>,
        order: Permutation,
        partition: Partition,
        factor: impl Fn(usize, &Csr<T>, &mut dyn Monitor) -> Result<Box<dyn Factorization<T>>> + Sync,
        monitor: &mut dyn Monitor,
    ) -> Result<Self> {
        a.check_square()?;
        check_size("rows of all parts", a.nrows(), partition.n())?;
        let (stopped, finished) = (AtomicBool::new(false), AtomicBool::new(false));
        let make = |k: usize, monitor: &mut dyn Monitor| {
            let own = Self::part(a, &order, &partition, k)?;
            factor(k, &own, monitor).map_err(|e| in_whole(e, &order.order()[partition.range(k)]))
        };
        let all = 0..partition.n_blocks();
        let largest = all.clone().max_by_key(|&k| partition.size(k));
        let (mut made, mut first) = (Vec::new(), None);
        rayon::in_place_scope(|scope| {
            scope.spawn(|_| {
                let go_on = |_| {
                    let stop = stopped.load(Ordering::Relaxed);
                    if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                made = all.into_par_iter().map(|k| (Some(k) != largest).then(|| make(k, &mut &go_on))).collect();
                finished.store(true, Ordering::Release);
            });
            first = largest.map(|k| make(k, monitor));
            stopped.store(matches!(first, Some(Err(FactorError::Stopped))), Ordering::Relaxed);
            // The others may take longer.
            while !finished.load(Ordering::Acquire) {
                if monitor.observe(Progress::Step { phase: "setup", done: 1, total: partition.n_blocks() }).is_break() {
                    stopped.store(true, Ordering::Relaxed);
                }
                if rayon::yield_now() != Some(rayon::Yield::Executed) {
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        });
        let done = partition.n_blocks();
        let stop = monitor.observe(Progress::Step { phase: "setup", done, total: done }).is_break();
        if stop || stopped.into_inner() {
            return Err(FactorError::Stopped);
        }
        if let Some(k) = largest {
            made[k] = first;
        }
        // The first error in the order of the parts, whatever thread met one first.
        let parts = made.into_iter().flatten().collect::<Result<Vec<_>>>()?;
        let scratch = Pool::new();
        let stats = FactorStats::default();
        let mut out = Self { order, partition, parts, scratch, stats, failed: false };
        out.stats = out.sum();
        out.scratch.put(zeros(a.nrows())?);
        Ok(out)
    }

    /// Part k of A by itself; zeros that are stored in other parts are left out.
    ///
    /// # Errors
    /// [`FactorError::Input`] naming an entry that connects it to another part.
    pub fn part(a: &Csr<T>, order: &Permutation, partition: &Partition, k: usize) -> Result<Csr<T>> {
        let range = partition.range(k);
        let (mut ptr, mut idx, mut values) = (vec![0], Vec::new(), Vec::new());
        for &i in &order.order()[range.clone()] {
            let (cols, row) = a.row(i as usize);
            for (&j, &v) in cols.iter().zip(row) {
                // The order of rows in a part is theirs in A, and so is that of columns.
                let at = order.position()[j as usize] as usize;
                if range.contains(&at) {
                    idx.push((at - range.start) as u32);
                    values.push(v);
                } else if v != zero() {
                    let why = "connects two parts of the matrix".into();
                    return Err(Error::OutsideStructure { row: i as usize, col: j as usize, why }.into());
                }
            }
            ptr.push(idx.len() as u32);
        }
        Ok(Csr::new(range.len(), range.len(), ptr, idx, values)?)
    }

    /// Factors another matrix that falls into the same parts, each by its own [`Factorization::refactor`]. After an error the factors
    /// are void: solves give NaN until a refactorisation succeeds.
    ///
    /// # Errors
    /// [`FactorError::Input`] on another size, and naming an entry between two parts; the first error of a part, its column named as that
    /// of A.
    ///
    /// # Cost
    /// O(nnz), and the parts; the parts on several threads.
    pub fn refactor(&mut self, a: &Csr<T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// Like [`Components::refactor`], observed before and after.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    #[inline(never)]
    pub fn refactor_with_monitor(&mut self, a: &Csr<T>, monitor: &mut dyn Monitor) -> Result<()> {
        check_size("size of the matrix", self.partition.n(), a.nrows())?;
        a.check_square()?;
        self.failed = true;
        self.stats = self.stats.void();
        let total = self.parts.len();
        let mut observe = |done| {
            let step = Progress::Step { phase: "setup", done, total };
            if monitor.observe(step).is_break() { Err(FactorError::Stopped) } else { Ok(()) }
        };
        observe(0)?;
        let Self { order, partition, parts, .. } = self;
        let remake = |(k, factors): (usize, &mut Box<dyn Factorization<T>>)| {
            let own = Self::part(a, order, partition, k)?;
            factors.refactor(Given::Csr(&own), &mut ()).map_err(|e| in_whole(e, &order.order()[partition.range(k)]))
        };
        let done: Vec<_> = parts.par_iter_mut().enumerate().map(remake).collect();
        done.into_iter().collect::<Result<()>>()?;
        observe(total)?;
        self.failed = false;
        self.stats = self.sum();
        Ok(())
    }

    /// Of all parts.
    fn sum(&self) -> FactorStats {
        let mut stats = FactorStats { growth: 1.0, min_pivot: f64::INFINITY, ..FactorStats::default() };
        for part in &self.parts {
            let s = part.stats();
            stats.norm_one = stats.norm_one.max_nan(s.norm_one);
            stats.growth = stats.growth.max_nan(s.growth);
            stats.min_pivot = stats.min_pivot.min_nan(s.min_pivot);
            stats.boosted_pivots += s.boosted_pivots;
            stats.nnz += s.nnz;
            stats.bytes += s.bytes;
            stats.flops += s.flops;
        }
        if self.parts.is_empty() {
            stats.min_pivot = 0.0;
        }
        stats.bytes += self.partition.n() * (2 * size_of::<u32>() + size_of::<T>());
        stats
    }

    /// The rows of A by parts.
    pub fn order(&self) -> &Permutation {
        &self.order
    }

    /// The sizes of the parts.
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// The factors of each part.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = &dyn Factorization<T>> {
        self.parts.iter().map(|part| &**part)
    }

    /// Solves for some parts, whose rows are `y`; more than `few` rows in two halves, on two threads.
    fn solve_parts(&self, op: Op, parts: Range<usize>, y: &mut [T], few: usize) {
        if parts.len() > 1 && y.len() > few {
            let middle = parts.start + parts.len() / 2;
            let offset = |k: usize| self.partition.offsets()[k] as usize;
            let (head, tail) = y.split_at_mut(offset(middle) - offset(parts.start));
            let (first, second) = (parts.start..middle, middle..parts.end);
            bt_formats::join(|| self.solve_parts(op, first, head, few), || self.solve_parts(op, second, tail, few));
            return;
        }
        let mut rest = y;
        for k in parts {
            let size = self.partition.size(k);
            let (head, tail) = rest.split_at_mut(size);
            self.parts[k].solve_op_in_place(op, MatMut::from_column_major_slice_mut(head, size, 1));
            rest = tail;
        }
    }
}

/// The error of a part, whose rows and columns are the `rows` of A.
fn in_whole(e: FactorError, rows: &[u32]) -> FactorError {
    match e {
        FactorError::Singular(place) => {
            FactorError::Singular(Singularity { column: rows[place.column] as usize, block: None, ..place })
        }
        FactorError::Breakdown { method, place, reason } => {
            let row = |i: usize| rows.get(i).map(|&row| row as usize);
            let place = place.and_then(|place| place.renumbered(row, row));
            // The sentence has the numbers of the part.
            let given = place.map(|place| format!("; {} {} of the matrix given", place.name(), place.index()));
            let reason = format!("in a part of {} rows, {reason}{}", rows.len(), given.unwrap_or_default());
            FactorError::Breakdown { method, place, reason }
        }
        FactorError::Failed { method, reason } => {
            FactorError::Failed { method, reason: format!("in a part of {} rows, {reason}", rows.len()) }
        }
        other => other,
    }
}

impl<T: Scalar> Factorization<T> for Components<T> {
    fn n(&self) -> usize {
        self.partition.n()
    }

    fn method(&self) -> &'static str {
        "components"
    }

    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        let n = self.partition.n();
        assert_eq!(x.nrows(), n, "rows of X");
        if self.failed {
            for_each_column(x, |x| x.fill(T::nan_impl()));
            return;
        }
        let mut y = self.scratch.take(|| vec![zero(); n]);
        let order = self.order.order();
        let parallel = self.stats.nnz >= MANY_VALUES && rayon::current_num_threads() > 1;
        for_each_column(x, |x| {
            y.iter_mut().zip(order).for_each(|(y, &i)| *y = x[i as usize]);
            self.solve_parts(op, 0..self.parts.len(), &mut y, if parallel { FEW_ROWS } else { n });
            y.iter().zip(order).for_each(|(&y, &i)| x[i as usize] = y);
        });
        self.scratch.put(y);
    }

    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        self.refactor_with_monitor(&*a.csr()?, monitor)
    }

    fn stats(&self) -> FactorStats {
        self.stats
    }

    fn log_det(&self) -> LogDet<T> {
        if self.failed {
            return LogDet::void();
        }
        // Rows and columns change places alike.
        let mut det = LogDet::one();
        for part in &self.parts {
            let own = part.log_det();
            det.multiply(own.sign);
            det.log_abs += own.log_abs;
        }
        det
    }
}
