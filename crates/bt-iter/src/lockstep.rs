//! Several right-hand sides side by side: each has its own recurrence, and every step is one product with A for all of them.
//!
//! A is read once for all columns that are still running, where one after the other would read it for each: what is saved is the
//! traffic of A, which bounds a sparse product. Scalars, claims, restarts and the best iterate belong to a column; M is applied to one
//! after the other. Each column takes the steps and has the bits that it would have alone.
//!
//! This is no block Krylov method: columns do not share their spaces (D. P. O'Leary, Linear Algebra Appl. 29 (1980) 293–322,
//! doi:10.1016/0024-3795(80)90247-5, has those), and so cannot break down by becoming dependent.
//!
//! Storage: that of the method for each column. Cost of a step: one product of A with k vectors, and the rest of the
//! method k times, k the columns still running.

use std::cell::RefCell;
use std::ops::ControlFlow;

use bt_formats::{
    Error, LinearOperator, Matrix, Monitor, Op, Par, Progress, Scalar, SolveReport, StopCriterion, observe_column, one,
    zero,
};
use faer::{Mat, MatMut, MatRef};

use crate::balanced::Balanced;
use crate::bicgstab;
use crate::cg::{self, Form};
use crate::gmres::{self, Basis};
use crate::krylov::Watch;
use crate::preconditioner::Preconditioner;
use crate::recurrence::{self, Recurrence};
use crate::system::{Local, System};

/// Workspace for nrhs columns of one method.
///
/// ```
/// use bt_formats::{Csr, Outcome, StopCriterion};
/// use bt_iter::{Jacobi, Lockstep};
/// let a = Csr::from_dense(faer::mat![[4.0, 1.0], [1.0, 3.0]].as_ref())?;
/// let (b, mut x) = (faer::mat![[5.0, 1.0], [4.0, 3.0]], faer::Mat::zeros(2, 2));
/// let reports =
///     Lockstep::cg(2, 2).solve(&a, &mut Jacobi::new(&a)?, b.as_ref(), x.as_mut(), &StopCriterion::default(), &mut ())?;
/// assert!(reports.iter().all(|r| r.outcome == Outcome::Converged));
/// assert!((x - faer::mat![[1.0, 0.0], [1.0, 1.0f64]]).norm_max() < 1e-7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Lockstep<T: Scalar> {
    n: usize,
    machines: Vec<Box<dyn Recurrence<T>>>,
    /// Columns still running, in the order of their places in the vectors of the products.
    running: Vec<usize>,
    input: Mat<T>,
    output: Mat<T>,
}

impl<T: Scalar> Lockstep<T> {
    /// Of conjugate gradients, [`crate::Cg::new`].
    pub fn cg(n: usize, nrhs: usize) -> Self {
        Self::of(n, nrhs, || Box::new(cg::Machine::new(n, Form::Fixed)))
    }

    /// Of flexible conjugate gradients, [`crate::Cg::flexible`].
    pub fn flexible_cg(n: usize, nrhs: usize) -> Self {
        Self::of(n, nrhs, || Box::new(cg::Machine::new(n, Form::Flexible)))
    }

    /// Of BiCGSTAB, [`crate::BiCgStab::new`].
    pub fn bicgstab(n: usize, nrhs: usize) -> Self {
        Self::of(n, nrhs, || Box::new(bicgstab::Machine::new(n)))
    }

    /// Of GMRES, [`crate::Gmres::new`].
    pub fn gmres(n: usize, nrhs: usize, restart: usize) -> Self {
        Self::of(n, nrhs, || Box::new(gmres::Machine::<T>::new(n, restart, Basis::Fixed)))
    }

    /// Of FGMRES, [`crate::Gmres::flexible`].
    pub fn fgmres(n: usize, nrhs: usize, restart: usize) -> Self {
        Self::of(n, nrhs, || Box::new(gmres::Machine::<T>::new(n, restart, Basis::Flexible)))
    }

    /// Of GMRES with its basis in single precision, [`crate::Gmres::single_basis`].
    pub fn gmres_single_basis(n: usize, nrhs: usize, restart: usize) -> Self {
        Self::of(n, nrhs, || Box::new(gmres::Machine::<T, T::Single>::new(n, restart, Basis::Fixed)))
    }

    /// Of FGMRES with V in single precision, [`crate::Gmres::flexible_single_basis`].
    pub fn fgmres_single_basis(n: usize, nrhs: usize, restart: usize) -> Self {
        Self::of(n, nrhs, || Box::new(gmres::Machine::<T, T::Single>::new(n, restart, Basis::Flexible)))
    }

    fn of(n: usize, nrhs: usize, machine: impl Fn() -> Box<dyn Recurrence<T>>) -> Self {
        let machines = (0..nrhs).map(|_| machine()).collect();
        let running = Vec::with_capacity(nrhs);
        Self { n, machines, running, input: Mat::zeros(n, nrhs), output: Mat::zeros(n, nrhs) }
    }

    /// Columns.
    pub fn nrhs(&self) -> usize {
        self.machines.len()
    }

    /// Bytes of the workspace.
    pub fn bytes(&self) -> usize {
        self.machines.iter().map(|m| m.bytes()).sum::<usize>() + 2 * size_of::<T>() * self.n * self.machines.len()
    }

    /// Iterates from the columns of `x` given towards the solutions of A·X = B, n × nrhs; one report a column, as of the method
    /// alone. The monitor is told the column by [`Progress::Column`] before each of its iterations; where it breaks, all end.
    ///
    /// # Errors
    /// Those of the method; [`Error::DimensionMismatch`] for another number of columns.
    ///
    /// # Panics
    /// When the columns of `b` or `x` are not contiguous.
    #[inline(never)]
    pub fn solve(
        &mut self,
        a: &dyn Matrix<T>,
        m: &mut dyn Preconditioner<T>,
        b: MatRef<'_, T>,
        mut x: MatMut<'_, T>,
        stop: &StopCriterion,
        monitor: &mut dyn Monitor,
    ) -> Result<Vec<SolveReport>, Error> {
        let nrhs = self.machines.len();
        for (what, found) in [("right-hand sides", b.ncols()), ("columns of X", x.ncols())] {
            if found != nrhs {
                return Err(Error::DimensionMismatch { what, expected: nrhs, found });
            }
        }
        let shared = RefCell::new(monitor);
        let mut monitors: Vec<_> = (0..nrhs).map(|column| ColumnMonitor::new(&shared, Some(column))).collect();
        let balanced: Vec<_> = (0..nrhs).map(|j| Balanced::new(column(b, j))).collect();
        let stops: Vec<_> = balanced.iter().map(|b| b.criterion(stop)).collect();
        let mut watches: Vec<Option<Watch<'_>>> = Vec::with_capacity(nrhs);
        for (j, (machine, monitor)) in self.machines.iter_mut().zip(&mut monitors).enumerate() {
            let system = System { on: &mut Local { a, m: &mut *m }, b: &balanced[j].b };
            let x = column_mut(&mut x, j);
            machine.check(&system, x)?;
            balanced[j].enter(x);
            watches.push(Some(machine.begin(&system, x, &stops[j], monitor)));
        }
        let workspace = self.bytes() / nrhs.max(1);
        let mut reports: Vec<Option<SolveReport>> = (0..nrhs).map(|_| None).collect();
        self.running.clear();
        self.running.extend(0..nrhs);
        let par = Par::auto(a.bytes());
        while !self.running.is_empty() {
            let mut place = 0;
            while place < self.running.len() {
                let j = self.running[place];
                let mut system = System { on: &mut Local { a, m: &mut *m }, b: &balanced[j].b };
                let (x, machine) = (column_mut(&mut x, j), &mut self.machines[j]);
                let (mut input, mut output) = (self.input.as_mut(), self.output.as_mut());
                let Some(watch) = &mut watches[j] else { unreachable!("a column that runs is watched") };
                let (into, from) = (column_mut(&mut input, place), column_mut(&mut output, place));
                match machine.advance(&mut system, watch, x, into, from) {
                    None => place += 1,
                    Some(outcome) => {
                        if let Some(watch) = watches[j].take() {
                            let mut report = machine.finish(outcome, watch, &system, x, workspace);
                            balanced[j].leave(x, &mut report);
                            reports[j] = Some(report);
                        }
                        // The last takes its place, with what its method left there.
                        self.running.swap_remove(place);
                        let last = self.running.len();
                        for products in [&mut self.input, &mut self.output] {
                            swap_columns(products, place, last);
                        }
                    }
                }
            }
            let k = self.running.len();
            let input = self.input.as_ref().subcols(0, k);
            a.apply_many(Op::Identity, one(), input, zero(), self.output.as_mut().subcols_mut(0, k), par);
        }
        Ok(reports.into_iter().flatten().collect())
    }

    /// The method of one column on an operator, which need not have entries. The monitor is told no column.
    ///
    /// # Errors
    /// As `solve`.
    pub fn solve_one(
        &mut self,
        a: &dyn LinearOperator<T>,
        m: &mut dyn Preconditioner<T>,
        b: &[T],
        x: &mut [T],
        stop: &StopCriterion,
        monitor: &mut dyn Monitor,
    ) -> Result<SolveReport, Error> {
        let [machine] = &mut *self.machines else {
            let found = self.machines.len();
            return Err(Error::DimensionMismatch { what: "right-hand sides", expected: 1, found });
        };
        let products = [self.input.col_as_slice_mut(0), self.output.col_as_slice_mut(0)];
        recurrence::solve(&mut **machine, System { on: &mut Local { a, m }, b }, products, x, stop, monitor)
    }
}

/// The monitor of several right-hand sides as that of one of them, whose number it hears before every observation.
///
/// ```
/// use std::cell::RefCell;
/// use std::ops::ControlFlow;
/// use bt_formats::{Monitor, Progress};
/// use bt_iter::ColumnMonitor;
/// let mut told = Vec::new();
/// let mut monitor = |p: Progress| {
///     told.push(p);
///     ControlFlow::Continue(())
/// };
/// let shared = RefCell::new(&mut monitor as &mut dyn Monitor);
/// let progress = Progress::Iteration { index: 0, residual: 1.0 };
/// assert!(ColumnMonitor::new(&shared, Some(2)).observe(progress).is_continue());
/// assert!(ColumnMonitor::new(&shared, None).observe(progress).is_continue());
/// assert_eq!(told, [Progress::Column(2), progress, progress]);
/// ```
pub struct ColumnMonitor<'a, 'm> {
    shared: &'a RefCell<&'m mut dyn Monitor>,
    column: Option<usize>,
}

impl<'a, 'm> ColumnMonitor<'a, 'm> {
    /// Of the column of that number; without one the monitor hears none.
    pub fn new(shared: &'a RefCell<&'m mut dyn Monitor>, column: Option<usize>) -> Self {
        Self { shared, column }
    }
}

impl Monitor for ColumnMonitor<'_, '_> {
    fn observe(&mut self, progress: Progress) -> ControlFlow<()> {
        let mut monitor = self.shared.borrow_mut();
        match self.column {
            Some(column) => observe_column(&mut **monitor, column, progress),
            None => monitor.observe(progress),
        }
    }
}

fn column<T: Scalar>(x: MatRef<'_, T>, j: usize) -> &[T] {
    x.col(j).try_as_col_major().expect("columns must be contiguous").as_slice()
}

fn column_mut<'a, T: Scalar>(x: &'a mut MatMut<'_, T>, j: usize) -> &'a mut [T] {
    x.as_mut().col_mut(j).try_as_col_major_mut().expect("columns must be contiguous").as_slice_mut()
}

fn swap_columns<T: Scalar>(x: &mut Mat<T>, i: usize, j: usize) {
    if i != j {
        let (mut left, mut right) = x.as_mut().split_at_col_mut(j);
        column_mut(&mut left, i).swap_with_slice(column_mut(&mut right, 0));
    }
}
