//! CG, flexible CG, BiCGSTAB, GMRES and FGMRES over distributed vectors: the recurrences of [`bt_iter`] with inner products over all ranks.
//!
//! A rank keeps its rows of every vector, and all ranks take the same steps, since all have the same sums ([`Comm::all_sum`] takes them in the
//! order of the ranks). With one rank the bits are those of [`bt_iter::Cg`] and its kin. Where the methods come from is said there.
//!
//! Counted, an iteration on a rank: the exchanges of its products and of M, and the reductions that [`bt_iter::KrylovSystem`] stands for, one
//! collective each:
//!
//! ```text
//! CG          1 product   3 sums of 1 number (2 without M)
//! FCG         1 product   4 sums of 1 number
//! BiCGSTAB    2 products  3 sums of 2 numbers and 1 of 1
//! (F)GMRES    1 product   step j: sums of j + 2 numbers and of 1; where made orthogonal again, of j + 2 numbers and of 1 once more
//! ```
//!
//! (after a step that was made orthogonal again the sum of 1 has j + 2 numbers and serves as the third), each with one number more, by which
//! ranks agree to stop: a monitor that breaks on one rank, or the time limit on rank 0, ends all of them after
//! the same iteration, the one after. Flops: those of [`bt_iter`], of the own rows.
//!
//! A communicator that fails ends the iteration: its sums are NaN from there on, and its error is returned.

use std::cell::RefCell;

use bt_formats::{Monitor, SolveReport, StopCriterion};
use bt_iter::{BiCgStab, Cg, Gmres, KrylovSystem, PreconditionerKind};

use crate::agreement::{Agreement, Told};
use crate::comm::{Comm, Number};
use crate::csr::DistributedCsr;
use crate::error::{Error, Fault, Result, agree};
use crate::precond::DistributedPreconditioner;

/// A Krylov method with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Conjugate gradients, for Hermitian positive definite A and M.
    Cg,
    /// The same with an M that may change.
    FlexibleCg,
    /// BiCGSTAB.
    BiCgStab,
    /// GMRES(`restart`).
    Gmres {
        /// Steps of a cycle.
        restart: usize,
    },
    /// FGMRES(`restart`): M may change.
    Fgmres {
        /// Steps of a cycle.
        restart: usize,
    },
}

/// Workspace of a method for the rows of one rank.
///
/// ```
/// use bt_formats::{Csr, Outcome, StopCriterion};
/// use bt_parallel::{DistributedCsr, Division, Identity, Krylov, Method, thread_comm};
/// let a = Csr::from_dense(faer::mat![[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]].as_ref())?;
/// let solved = thread_comm::run(2, |comm| {
///     let a = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(3, 2))?;
///     let (b, mut x) = (a.own_entries(&[5.0, 5.0, 3.0]), a.own_entries(&[0.0; 3]));
///     let report =
///         Krylov::new(&a, Method::Cg).solve(&a, &mut Identity::new(&a), &b, &mut x, &StopCriterion::default(), &mut ())?;
///     Ok((report.outcome, a.whole(&x)?))
/// });
/// for (outcome, x) in solved.into_iter().map(Result::unwrap) {
///     assert_eq!(outcome, Outcome::Converged);
///     assert!(x.iter().all(|v| (v - 1.0f64).abs() < 1e-7));
/// }
/// # Ok::<(), bt_formats::Error>(())
/// ```
pub struct Krylov<T: Number>(Workspace<T>);

enum Workspace<T: Number> {
    Cg(Cg<T>),
    BiCgStab(BiCgStab<T>),
    Gmres(Gmres<T>),
}

impl<T: Number> Krylov<T> {
    /// For systems with the rows of `a`.
    pub fn new<C: Comm>(a: &DistributedCsr<'_, T, C>, method: Method) -> Self {
        let (m, n) = (a.rows().own().len(), a.rows().n());
        Self(match method {
            Method::Cg => Workspace::Cg(Cg::new(m)),
            Method::FlexibleCg => Workspace::Cg(Cg::flexible(m)),
            Method::BiCgStab => Workspace::BiCgStab(BiCgStab::new(m)),
            Method::Gmres { restart } => Workspace::Gmres(Gmres::of_rows(m, n, restart)),
            Method::Fgmres { restart } => Workspace::Gmres(Gmres::flexible_of_rows(m, n, restart)),
        })
    }

    /// Bytes of the workspace of this rank.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Workspace::Cg(cg) => cg.bytes(),
            Workspace::BiCgStab(bicgstab) => bicgstab.bytes(),
            Workspace::Gmres(gmres) => gmres.bytes(),
        }
    }

    /// Iterates from the `x` given towards the solution of A·x = b, of which each rank has its rows. A collective.
    ///
    /// The outcome is decided by the true residual of the whole system, and the certificate is that of the whole system: both are the same on
    /// every rank. Times and bytes are those of this rank. Monitors of all ranks are told, and any of them may end the solve.
    ///
    /// # Errors
    /// [`Error::OnRank`] for vectors or an M of another length than the own rows, and for an M that changes under a method that relies on
    /// one; those of the communicator.
    pub fn solve<C: Comm>(
        &mut self,
        a: &DistributedCsr<'_, T, C>,
        m: &mut dyn DistributedPreconditioner<T>,
        b: &[T],
        x: &mut [T],
        stop: &StopCriterion,
        monitor: &mut dyn Monitor,
    ) -> Result<SolveReport> {
        let comm = a.comm();
        let rows = a.rows().own().len();
        let lengths = [("the right-hand side", b.len()), ("x", x.len()), ("the preconditioner", m.rows())];
        let fits = match lengths.into_iter().find(|(_, found)| *found != rows) {
            Some((what, found)) => Err(Fault::input(format!("{what} has {found} entries for {rows} rows"))),
            None => Ok(()),
        };
        agree(comm, fits)?;
        let (agreement, mut stop) = (Agreement::default(), *stop);
        let mut told = Told::new(comm, monitor, &agreement, &mut stop);
        let mut system =
            Distributed { a, m, failure: RefCell::new(None), agreement: &agreement, sums: RefCell::default() };
        let solved = match &mut self.0 {
            Workspace::Cg(cg) => cg.solve_on(&mut system, b, x, &stop, &mut told),
            Workspace::BiCgStab(bicgstab) => bicgstab.solve_on(&mut system, b, x, &stop, &mut told),
            Workspace::Gmres(gmres) => gmres.solve_on(&mut system, b, x, &stop, &mut told),
        };
        if let Some(failure) = system.failure.into_inner() {
            return Err(failure);
        }
        let mut report = agree(comm, solved.map_err(Fault::from))?;
        report.outcome = agreement.outcome(comm, report.outcome)?;
        report.certificate = a.certify(x, b)?;
        report.bytes.matrix = bt_formats::Matrix::bytes(&a.local) + bt_formats::Matrix::bytes(&a.external);
        Ok(report)
    }
}

/// The system as the recurrences see it.
struct Distributed<'a, 'c, T: Number, C: Comm> {
    a: &'a DistributedCsr<'c, T, C>,
    m: &'a mut dyn DistributedPreconditioner<T>,
    failure: RefCell<Option<Error>>,
    agreement: &'a Agreement,
    sums: RefCell<Vec<T>>,
}

impl<T: Number, C: Comm> Distributed<'_, '_, T, C> {
    /// Does it unless the communicator has failed, and fills `out` with NaN where it has.
    fn unless_failed(&self, out: &mut [T], f: impl FnOnce(&mut [T]) -> Result<()>) {
        let failed = self.failure.borrow().is_some();
        if failed || keep(&self.failure, f(out)).is_none() {
            out.fill(T::rounded(f64::NAN, 0.0));
        }
    }
}

/// The value, or none and the error kept.
pub(crate) fn keep<V>(failure: &RefCell<Option<Error>>, result: Result<V>) -> Option<V> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            *failure.borrow_mut() = Some(error);
            None
        }
    }
}

impl<T: Number, C: Comm> KrylovSystem<T> for Distributed<'_, '_, T, C> {
    fn nrows(&self) -> usize {
        self.a.rows().own().len()
    }
    fn ncols(&self) -> usize {
        self.nrows()
    }
    fn apply(&self, alpha: T, x: &[T], beta: T, y: &mut [T]) {
        self.unless_failed(y, |y| self.a.apply(alpha, x, beta, y));
    }
    fn precondition(&mut self, r: &[T], z: &mut [T]) {
        let failed = self.failure.borrow().is_some();
        if failed || keep(&self.failure, self.m.apply(r, z)).is_none() {
            z.fill(T::rounded(f64::NAN, 0.0));
        }
    }
    fn kind(&self) -> PreconditionerKind {
        self.m.kind()
    }
    fn name(&self) -> &'static str {
        self.m.name()
    }
    fn preconditioner_rows(&self) -> usize {
        self.m.rows()
    }
    fn bytes(&self) -> usize {
        self.m.bytes()
    }
    fn sum(&self, terms: &mut [T]) {
        let sum = |terms: &mut [T]| self.agreement.all_sum(self.a.comm(), terms, &mut self.sums.borrow_mut());
        self.unless_failed(terms, sum);
    }
    fn max(&self, own: f64) -> f64 {
        let mut largest = [own];
        let failed = self.failure.borrow().is_some();
        if failed || keep(&self.failure, self.a.comm().all_max(&mut largest)).is_none() {
            return f64::NAN;
        }
        largest[0]
    }
}
