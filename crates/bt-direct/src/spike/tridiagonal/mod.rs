//! SPIKE for tridiagonal matrices, with three partition solvers.
//!
//! The rows are cut into partitions. Each eliminates its interior unknowns, all but its first and last, which leaves two
//! of its equations, in the unknowns next to the two cuts. These 2p equations are a band of half-bandwidth 2, the reduced
//! system, which is factored with partial pivoting.
//!
//! ```text
//! x_ℓ | x_f  x x x x  x_l | x_r        n_j equations in n_j + 2 unknowns, n_j − 2 of which no other partition has
//! ```
//!
//! E. Polizzi and A. Sameh, Parallel Comput. 32 (2006) 177–194, doi:10.1016/j.parco.2005.07.005; Givens QR:
//! I. E. Venetis, A. Kouris, A. Sobczyk, E. Gallopoulos, A. Sameh, Parallel Comput. 49 (2015) 101–116,
//! doi:10.1016/j.parco.2015.03.008; diagonal pivoting: L.-W. Chang, J. A. Stratton, H.-S. Kim, W.-M. W. Hwu, SC'12,
//! doi:10.1109/SC.2012.12.
//!
//! Departures. The papers invert the whole matrix A_j of a partition, which may be singular where A is not (an odd
//! partition of a matrix with a zero diagonal is), and repair a zero last pivot of R. Here all n_j equations serve for
//! n_j − 2 unknowns: these columns of A have no other rows, so that a nonsingular A has them independent, and QR needs
//! neither a test for zero nor a repair: it is backward stable for every nonsingular matrix. Row interchanges among the
//! three candidates would not be: the rows carried through a partition keep their entries next to the left cut, as in
//! the almost block diagonal matrices on which partial pivoting grows exponentially (S. J. Wright, SIAM J. Sci. Comput.
//! 14 (1993) 231–238, doi:10.1137/0914013). The other two solvers take their pivots inside the interior, diagonal
//! pivoting the last of them also from the row after it, and break down where that is singular, or nearly so. No spike
//! is formed: pivot rows keep their entries next to the left cut, and a solve passes over the factors once down and once
//! up.
//!
//! Storage: 5 values a row, and 4 more with rotations, 2 and a flag with multipliers; 17 values a reduced unknown. Cost:
//! about 55n flops with rotations, 20n with multipliers; a solve takes 22n or 14n.

mod elimination;
mod passes;

use bt_formats::{Band, Monitor, Op, Par, Progress, RealScalar, Scalar, Tridiagonal, zero};
use faer::MatMut;

use self::elimination::{Diagonal, Givens, Multipliers, NoPivoting, Rotations, Row, Rule, Step, Wide};
use self::passes::{Sweep, backward, backward_transposed, forward, forward_transposed};
use super::partition::{self, Partitions};
use super::scratch::Scratch;
use super::sweep::join;
use crate::band_lu::BandLu;
use crate::columns::{check_size, for_each_column};
use crate::error::{FactorError, Place, Result, SingularKind, Singularity};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::memory::reserve;
use crate::tridiagonal_lu::input_norms;

/// How the interior of a partition is eliminated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TridiagonalSolver {
    /// Givens rotations (g-Spike): stable for every nonsingular matrix, whatever its partitions are.
    #[default]
    Givens,
    /// LU without pivoting, for dominant matrices.
    Lu,
    /// Pivots of order 1 and 2, no exchanges.
    DiagonalPivoting,
}

impl TridiagonalSolver {
    fn method(self) -> &'static str {
        match self {
            Self::Givens => "g-spike",
            Self::Lu => "spike-lu",
            Self::DiagonalPivoting => "spike-diagonal-pivoting",
        }
    }
}

/// A tridiagonal matrix factored in partitions.
///
/// [`Partitions::Auto`] makes one of every 4096 rows, at most 256, whatever the threads are: so do bits not depend on
/// their number.
///
/// ```
/// use bt_direct::spike::{Partitions, TridiagonalSolver};
/// use bt_direct::{Factorization, TridiagonalSpike};
/// use bt_formats::Tridiagonal;
/// // A zero diagonal: both partitions of three rows are singular, the matrix is not.
/// let a = Tridiagonal::new(vec![0.0, 1.0, 1.0, 1.0, 1.0, 1.0], vec![0.0; 6], vec![1.0, 1.0, 1.0, 1.0, 1.0, 0.0])?;
/// let mut x = [1.0, 2.0, 2.0, 2.0, 2.0, 1.0];
/// let f = TridiagonalSpike::with_options(&a, &Partitions::Even(2), TridiagonalSolver::Givens, &mut ())?;
/// f.solve_vec_in_place(&mut x);
/// assert!(x.iter().all(|v| (v - 1.0f64).abs() < 1e-15));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
pub struct TridiagonalSpike<T: Scalar> {
    /// First row of each partition, and n.
    starts: Vec<usize>,
    solver: TridiagonalSolver,
    rows: Vec<Row<T>>,
    steps: Steps<T>,
    band: Band<T>,
    reduced: BandLu<T>,
    scratch: Scratch<T>,
    state: Validity,
    stats: FactorStats,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Validity {
    Factored,
    Failed,
}

/// What made the pivot rows, a step a row (those of first and last rows are not used).
enum Steps<T: Scalar> {
    Rotations(Vec<Rotations<T>>),
    Multipliers(Vec<Multipliers<T>>),
}

/// Found in one or more partitions.
#[derive(Clone, Copy)]
struct Measured {
    largest: f64,
    min_pivot: f64,
}

impl<T: Scalar> std::fmt::Debug for TridiagonalSpike<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TridiagonalSpike")
            .field("starts", &self.starts)
            .field("solver", &self.solver)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

impl<T: Scalar> TridiagonalSpike<T> {
    /// Factors `a` by Givens rotations in partitions of about 4096 rows.
    ///
    /// # Errors
    /// [`FactorError::Singular`] with a column without pivot; [`FactorError::Breakdown`] when elimination overflows;
    /// [`FactorError::Input`] on a NaN or infinity, and when memory is short.
    ///
    /// # Cost
    /// About 55n flops and 9n values.
    pub fn new(a: &Tridiagonal<T>) -> Result<Self> {
        Self::with_options(a, &Partitions::Auto, TridiagonalSolver::default(), &mut ())
    }

    /// Factors `a` with the partitions (of two rows at least) and the solver given, observed between the two stages.
    ///
    /// # Errors
    /// As [`TridiagonalSpike::new`]. Except with [`TridiagonalSolver::Givens`] never [`FactorError::Singular`] but
    /// [`FactorError::Breakdown`] naming the row whose pivot is zero or, in its row or partition, has lost half the digits: the
    /// matrix may well be regular. [`FactorError::Input`] for unusable partition sizes; [`FactorError::Stopped`] when the monitor
    /// says so.
    #[inline(never)]
    pub fn with_options(
        a: &Tridiagonal<T>,
        partitions: &Partitions,
        solver: TridiagonalSolver,
        monitor: &mut dyn Monitor,
    ) -> Result<Self> {
        const ROWS: usize = 4096;
        let n = a.diag().len();
        let sizes = match partitions {
            Partitions::Auto => partition::sizes(&Partitions::Even((n / ROWS).clamp(1, 256)), n, 2, 2, 1.0)?,
            given => partition::sizes(given, n, 2, 2, 1.0)?,
        };
        let p = sizes.len();
        let (mut starts, mut rows) = (Vec::new(), Vec::new());
        reserve(&mut starts, p + 1)?;
        starts.push(0);
        starts.extend(sizes.iter().scan(0, |row, k| {
            *row += k;
            Some(*row)
        }));
        reserve(&mut rows, n)?;
        rows.resize(n, Row::default());
        let steps = match solver {
            TridiagonalSolver::Givens => Steps::Rotations(blank(n)?),
            _ => Steps::Multipliers(blank(n)?),
        };
        let order = sizes.iter().map(|&k| k.min(2)).sum();
        let mut band = Band::zeros(order, 2, 2)?;
        (0..order).for_each(|i| *band.get_mut(i, i) = bt_formats::one());
        let reduced = BandLu::new(&band)?;
        let scratch = Scratch::new(4 * p)?;
        let (state, stats) = (Validity::Failed, FactorStats::default());
        let mut out = Self { starts, solver, rows, steps, band, reduced, scratch, state, stats };
        out.refactor_with_monitor(a, monitor)?;
        Ok(out)
    }

    /// Factors another matrix of the same size in the same partitions and memory. After an error solves give NaN until a
    /// refactorisation succeeds.
    ///
    /// # Errors
    /// As [`TridiagonalSpike::with_options`], and [`FactorError::Input`] on another size.
    pub fn refactor(&mut self, a: &Tridiagonal<T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// As [`TridiagonalSpike::refactor`], observed between the two stages.
    ///
    /// # Errors
    /// As [`TridiagonalSpike::refactor`]; [`FactorError::Stopped`] when the monitor says so.
    #[inline(never)]
    pub fn refactor_with_monitor(&mut self, a: &Tridiagonal<T>, monitor: &mut dyn Monitor) -> Result<()> {
        check_size("size of the matrix", self.rows.len(), a.diag().len())?;
        self.state = Validity::Failed;
        self.stats = self.stats.void();
        let (norm_one, max_a) = input_norms(a)?;
        let parts = self.starts.len() - 1;
        let observe = |monitor: &mut dyn Monitor, done| {
            let step = Progress::Step { phase: "setup", done, total: parts + 1 };
            if monitor.observe(step).is_break() { Err(FactorError::Stopped) } else { Ok(()) }
        };
        observe(monitor, 0)?;
        let par = self.par();
        let rows = &mut self.rows[..];
        let run = Consecutive { a, starts: &self.starts, method: self.solver.method(), par };
        let found = match (self.solver, &mut self.steps) {
            (_, Steps::Rotations(steps)) => run.partitions::<Givens>(rows, steps),
            (TridiagonalSolver::Lu, Steps::Multipliers(steps)) => run.partitions::<NoPivoting>(rows, steps),
            (_, Steps::Multipliers(steps)) => run.partitions::<Diagonal>(rows, steps),
        }?;
        observe(monitor, parts)?;
        self.assemble();
        self.reduced.refactor(&self.band).map_err(|e| self.in_reduced(e))?;
        let reduced = self.reduced.stats();
        let n = self.rows.len();
        let max_m = self.band.values().iter().fold(0.0f64, |m, v| m.max(v.abs1().to_f64()));
        let growth = found.largest.max_nan(reduced.growth * max_m) / max_a;
        let interior = n - self.band.n();
        let step = match self.steps {
            Steps::Rotations(_) => size_of::<Rotations<T>>(),
            Steps::Multipliers(_) => size_of::<Multipliers<T>>(),
        };
        self.stats = FactorStats {
            norm_one,
            growth: if n == 0 { 1.0 } else { growth },
            min_pivot: found.min_pivot.min_nan(if n == 0 { 0.0 } else { reduced.min_pivot }),
            boosted_pivots: 0,
            nnz: 5 * interior + reduced.nnz,
            bytes: n * (size_of::<Row<T>>() + step)
                + size_of_val(&*self.starts)
                + size_of_val(self.band.values())
                + reduced.bytes
                + self.scratch.bytes(),
            flops: interior as f64 * if self.solver == TridiagonalSolver::Givens { 55.0 } else { 20.0 } + reduced.flops,
        };
        self.state = Validity::Factored;
        Ok(())
    }

    /// Rows of each partition.
    pub fn partitions(&self) -> impl Iterator<Item = usize> + '_ {
        self.starts.windows(2).map(|w| w[1] - w[0])
    }

    /// How interiors are eliminated.
    pub fn solver(&self) -> TridiagonalSolver {
        self.solver
    }

    fn par(&self) -> Par {
        Par::auto(size_of_val(&*self.rows) * 2)
    }

    /// The reduced system from the two rows that are left of each partition.
    fn assemble(&mut self) {
        self.band.values_mut().fill(zero());
        let order = self.band.n();
        for (j, w) in self.starts.windows(2).enumerate() {
            for (row, i) in [w[0], w[1].max(1) - 1].into_iter().take((w[1] - w[0]).min(2)).enumerate() {
                let Row { d, u1, left, first, .. } = self.rows[i];
                let (row, col) = (2 * j + row, 2 * j);
                // A partition of one row is the whole matrix, and its last unknown its first.
                let mut put = |col: Option<usize>, v| {
                    if let Some(col) = col.filter(|&col| col < order) {
                        *self.band.get_mut(row, col) = v;
                    }
                };
                put(col.checked_sub(1), left);
                put(Some(col), first);
                put(Some(col + 1), d);
                put(Some(col + 2), u1);
            }
        }
    }

    /// A column of the reduced system as one of A.
    fn in_reduced(&self, error: FactorError) -> FactorError {
        let row = |c: usize| if c.is_multiple_of(2) { self.starts[c / 2] } else { self.starts[c / 2 + 1] - 1 };
        match error {
            FactorError::Singular(place) if self.solver == TridiagonalSolver::Givens => {
                FactorError::Singular(Singularity { column: row(place.column), ..place })
            }
            FactorError::Singular(place) => {
                let column = row(place.column);
                let reason = format!(
                    "the reduced system has no pivot for column {column} of the matrix (from 0): tridiagonal-lu, which \
                     pivots across partitions, tells whether there is any"
                );
                FactorError::breakdown(self.solver.method(), Place::Column(column), reason)
            }
            FactorError::Breakdown { place, reason, .. } => {
                let place = place.and_then(|p| p.renumbered(|i| Some(row(i)), |j| Some(row(j))));
                FactorError::breakdown(self.solver.method(), place, format!("the reduced system: {reason}"))
            }
            other => other,
        }
    }

    fn solve_column<S: Step<T>>(&self, steps: &[S], op: Op, x: &mut [T], buffer: &mut [T]) {
        let sweep = Sweep { starts: &self.starts, rows: &self.rows, steps, par: self.par() };
        let (ends, reduced) = buffer.split_at_mut(2 * (self.starts.len() - 1));
        let reduced = &mut reduced[..self.band.n()];
        match op {
            Op::Identity => {
                sweep.partitions(x, ends, &|_, rows, steps, x, ends| forward(rows, steps, x, ends));
                reduced.copy_from_slice(&ends[..reduced.len()]);
                self.reduced.solve_vec_in_place(reduced);
                sweep.partitions(x, ends, &|j, rows, _, x, _| backward(rows, x, reduced, j));
            }
            Op::Adjoint if !T::IS_REAL => self.solve_transposed(&sweep, op, x, ends, reduced, Scalar::conj),
            Op::Transpose | Op::Adjoint => self.solve_transposed(&sweep, op, x, ends, reduced, |v| v),
        }
    }

    fn solve_transposed<S: Step<T>>(
        &self,
        sweep: &Sweep<'_, T, S>,
        op: Op,
        x: &mut [T],
        ends: &mut [T],
        reduced: &mut [T],
        map: impl Fn(T) -> T + Sync + Copy,
    ) {
        sweep.partitions(x, ends, &|_, rows, _, x, ends| forward_transposed(rows, x, ends, map));
        let parts = ends.len() / 2;
        let tips = |j: usize| [self.starts[j], self.starts[j + 1].max(1) - 1];
        for (c, r) in reduced.iter_mut().enumerate() {
            let (j, last) = (c / 2, c % 2);
            let across = match last {
                0 if j > 0 => ends[2 * (j - 1) + 1],
                1 if j + 1 < parts => ends[2 * (j + 1)],
                _ => zero(),
            };
            *r = x[tips(j)[last]] + across;
        }
        let n = reduced.len();
        self.reduced.solve_op_in_place(op, MatMut::from_column_major_slice_mut(&mut *reduced, n, 1));
        for (c, r) in reduced.iter().enumerate() {
            x[tips(c / 2)[c % 2]] = *r;
        }
        sweep.partitions(x, ends, &|_, _, steps, x, _| backward_transposed(steps, x, map));
    }
}

fn blank<V: Clone + Default>(n: usize) -> Result<Vec<V>> {
    let mut out = Vec::new();
    reserve(&mut out, n)?;
    out.resize(n, V::default());
    Ok(out)
}

/// A factorization of some consecutive partitions.
#[derive(Clone, Copy)]
struct Consecutive<'a, T> {
    a: &'a Tridiagonal<T>,
    starts: &'a [usize],
    method: &'static str,
    par: Par,
}

impl<T: Scalar> Consecutive<'_, T> {
    fn partitions<R: Rule<T>>(self, rows: &mut [Row<T>], steps: &mut [R::Step]) -> Result<Measured> {
        let &[first, .., end] = self.starts else { unreachable!("a partition has a first row and an end") };
        let parts = self.starts.len() - 1;
        if parts == 1 {
            return self.partition::<R>(first..end, rows, steps);
        }
        let half = parts / 2;
        let (left, right) =
            (Self { starts: &self.starts[..=half], ..self }, Self { starts: &self.starts[half..], ..self });
        let (above, below) = rows.split_at_mut(self.starts[half] - first);
        let (before, after) = steps.split_at_mut(self.starts[half] - first);
        let (a, b) = join(self.par, || left.partitions::<R>(above, before), || right.partitions::<R>(below, after));
        let (a, b) = (a?, b?);
        Ok(Measured { largest: a.largest.max_nan(b.largest), min_pivot: a.min_pivot.min_nan(b.min_pivot) })
    }

    fn partition<R: Rule<T>>(
        self,
        range: std::ops::Range<usize>,
        rows: &mut [Row<T>],
        steps: &mut [R::Step],
    ) -> Result<Measured> {
        let (lower, diag, upper) = (self.a.lower(), self.a.diag(), self.a.upper());
        let (n, start, m) = (diag.len(), range.start, range.len());
        let of_a = |i: usize| [zero(), zero(), lower[i], diag[i], upper[i]];
        let size = |row: &Wide<T>| row.iter().fold(zero::<T::Real>(), |m, v| m.max_nan(v.abs1()));
        let mut found = Measured { largest: 0.0, min_pivot: f64::INFINITY };
        if m == 0 {
            return Ok(found);
        }
        let next = |i: usize| if i < n { i } else { start };
        let mut a: Wide<T> = [lower[start], diag[start], upper[start], zero(), zero()];
        let after = next(start + 1);
        let mut b: Wide<T> = [zero(), lower[after], diag[after], upper[after], zero()];
        // Half the digits: ε^(−1/2).
        let limit = T::Real::EPSILON.sqrt();
        let mut scale = size(&a).max_nan(size(&b));
        let mut rule = R::default();
        for k in 1..m.max(1) - 1 {
            let i = start + k;
            let c = of_a(i + 1);
            let ahead = if i + 2 < n { lower[i + 2] } else { zero() };
            let mut three = [a, b, c];
            let own = size(&c);
            scale = scale.max_nan(own);
            let Some(step) = rule.eliminate(&mut three, ahead) else {
                if R::PROVES && [a, b, c].iter().all(|row| row[2] == zero()) {
                    let place = Singularity { kind: SingularKind::Numerical, column: i, block: None };
                    return Err(FactorError::Singular(place));
                }
                return Err(self.breakdown(i, "is zero"));
            };
            let [pivot, new_a, new_b] = three;
            // What was subtracted from a row and what is left of it, against the rows of A it is made of.
            let terms = |old: &Wide<T>, new: &Wide<T>| {
                (0..5).fold(zero::<T::Real>(), |m, k| m.max_nan((old[k] - new[k]).abs1()).max_nan(new[k].abs1()))
            };
            let grown = terms(&a, &new_a).max_nan(size(&pivot));
            let by_itself = if R::WATCHED { terms(&c, &new_b) } else { size(&new_b) };
            found.largest = found.largest.max_nan(grown.max_nan(by_itself).to_f64());
            if grown * limit > scale || (R::WATCHED && by_itself * limit > own) {
                return Err(self.breakdown(i, &format!("makes terms of {:e}", grown.max_nan(by_itself))));
            }
            if !found.largest.is_finite() {
                return Err(FactorError::overflow(self.method, Some(Place::Row(i))));
            }
            found.min_pivot = found.min_pivot.min_nan(pivot[2].abs().to_f64());
            (rows[k], steps[k]) = (Row::new(pivot), step);
            let shifted = |row: Wide<T>| [row[0], row[1], row[3], row[4], zero()];
            (a, b) = (shifted(new_a), shifted(new_b));
        }
        rows[0] = Row::new(a);
        if m > 1 {
            rows[m - 1] = Row::new(b);
        }
        Ok(found)
    }

    fn breakdown(&self, row: usize, what: &str) -> FactorError {
        let reason = format!(
            "the pivot of row {row} (from 0) inside its partition {what}; the matrix may still be regular: g-spike and \
             tridiagonal-lu need no more than that"
        );
        FactorError::breakdown(self.method, Place::Row(row), reason)
    }
}

impl<T: Scalar> Factorization<T> for TridiagonalSpike<T> {
    fn n(&self) -> usize {
        self.rows.len()
    }
    fn method(&self) -> &'static str {
        self.solver.method()
    }
    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n(), "rows of X");
        if self.state == Validity::Failed {
            for_each_column(x, |x| x.fill(T::nan_impl()));
            return;
        }
        self.scratch.with(|buffer| {
            for_each_column(x, |x| match &self.steps {
                Steps::Rotations(steps) => self.solve_column(steps, op, x, buffer),
                Steps::Multipliers(steps) => self.solve_column(steps, op, x, buffer),
            });
        });
    }
    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        self.refactor_with_monitor(&*a.tridiagonal()?, monitor)
    }
    fn stats(&self) -> FactorStats {
        self.stats
    }
    fn log_det(&self) -> LogDet<T> {
        if self.state == Validity::Failed {
            return LogDet { sign: T::nan_impl(), log_abs: f64::NAN };
        }
        let mut det = self.reduced.log_det();
        for w in self.starts.windows(2) {
            for i in w[0] + 1..w[1].max(1) - 1 {
                det.multiply(self.rows[i].d);
                let negative = match &self.steps {
                    Steps::Rotations(steps) => steps[i].is_negative(),
                    Steps::Multipliers(steps) => steps[i].is_negative(),
                };
                if negative {
                    det.negate();
                }
            }
        }
        det
    }
}
