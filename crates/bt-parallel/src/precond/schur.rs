//! The Schur complement of the interface, never assembled, as a preconditioner of the whole system.
//!
//! With the internal unknowns u and the interface unknowns y of a rank, A₀ = [B F; E C] and X the couplings with other ranks (`csr.rs`), an
//! application solves
//!
//! ```text
//! f' ← B⁻¹·f                       each rank alone
//! g' ← g − E·f'
//! S·y = g'                         by GMRES over all ranks, started at 0, to a loose tolerance:
//!                                  (S·y)ᵢ = Cᵢ·yᵢ − Eᵢ·Bᵢ⁻¹·(Fᵢ·yᵢ) + Xᵢ·y_halo
//! u ← f' − B⁻¹·(F·y)               each rank alone
//! ```
//!
//! S is preconditioned by block Jacobi with Sᵢ⁻¹ = (0 I)·Aᵢ⁻¹·(0; I), the interface part of a solve with A₀: no factors of Sᵢ are
//! made. B⁻¹ and Aᵢ⁻¹ are local solvers of any kind. Y. Saad, M. Sosonkina, SIAM J. Sci. Comput. 21 (1999) 1337–1356,
//! doi:10.1137/S1064827597328996; as the global preconditioner of pARMS: Z. Li, Y. Saad, M. Sosonkina, Numer. Linear Algebra
//! Appl. 10 (2003) 485–509, doi:10.1002/nla.325.
//!
//! GMRES makes it another operator at every application: it is for flexible methods ([`PreconditionerKind::Variable`]).
//!
//! Counted, an application with k inner steps on a rank: k + 2 exchanges of the halo of A, 2k + 5 sums of k(k + 5)/2 + 5 numbers together,
//! k + 2 products with C, E, F and X, k + 4 solves with B, k + 1 with A₀; without an interface on any rank one solve with B.

use std::cell::RefCell;

use bt_formats::{Csr, LinearOperator, StopCriterion, one, zero};
use bt_iter::{Gmres, KrylovSystem, Preconditioner, PreconditionerKind};

use super::{DistributedPreconditioner, check_lengths};
use crate::comm::{Comm, Number};
use crate::csr::DistributedCsr;
use crate::error::{Error, Fault, Result, agree};
use crate::krylov::keep;

/// How well the interface is solved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SchurOptions {
    /// GMRES steps on the interface at most; default 5.
    pub inner_steps: usize,
    /// Reduction of the interface's residual that is enough; default 10⁻².
    pub inner_rtol: f64,
}

impl Default for SchurOptions {
    fn default() -> Self {
        Self { inner_steps: 5, inner_rtol: 1e-2 }
    }
}

/// The preconditioner.
///
/// ```
/// use bt_formats::{Csr, Outcome, StopCriterion};
/// use bt_parallel::{DistributedCsr, Division, Krylov, LocalSolver, Method, Schur, SchurOptions, thread_comm};
/// let a = Csr::from_dense(
///     faer::mat![[4.0, 1.0, 0.0, 0.0], [1.0, 4.0, 1.0, 0.0], [0.0, 1.0, 4.0, 1.0], [0.0, 0.0, 1.0, 4.0]].as_ref(),
/// )?;
/// let solved = thread_comm::run(2, |comm| {
///     let a = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(4, 2))?;
///     let mut m = Schur::new(&a, |local| LocalSolver::SparseLu.of(local))?;
///     let (b, mut x) = (a.own_entries(&[5.0, 6.0, 6.0, 5.0]), a.own_entries(&[0.0; 4]));
///     let mut fgmres = Krylov::new(&a, Method::Fgmres { restart: 10 });
///     let report = fgmres.solve(&a, &mut m, &b, &mut x, &StopCriterion::default(), &mut ())?;
///     Ok((report.outcome, a.whole(&x)?))
/// });
/// let (outcome, x) = solved[0].clone().unwrap();
/// assert_eq!(outcome, Outcome::Converged);
/// assert!(x.iter().all(|v| (v - 1.0f64).abs() < 1e-7));
/// # Ok::<(), bt_formats::Error>(())
/// ```
pub struct Schur<'a, 'c, T: Number, C: Comm> {
    parts: RefCell<Parts<'a, 'c, T, C>>,
    gmres: Gmres<T>,
    stop: StopCriterion,
    /// Interface unknowns of all ranks.
    n_interface: usize,
    /// f', g', y.
    internal: Vec<T>,
    interface: Vec<T>,
    y: Vec<T>,
}

/// The blocks and the local solvers.
struct Parts<'a, 'c, T: Number, C: Comm> {
    a: &'a DistributedCsr<'c, T, C>,
    internal: Vec<u32>,
    interface: Vec<u32>,
    e: Csr<T>,
    f: Csr<T>,
    c: Csr<T>,
    solve_b: Box<dyn Preconditioner<T>>,
    solve_a: Box<dyn Preconditioner<T>>,
    /// Of the internal rows.
    work: [Vec<T>; 2],
    /// Of all own rows.
    full: [Vec<T>; 2],
    halo: Vec<T>,
}

impl<'a, 'c, T: Number, C: Comm> Schur<'a, 'c, T, C> {
    /// Like [`Schur::with_options`], with [`SchurOptions::default`].
    ///
    /// # Errors
    /// As [`Schur::with_options`].
    pub fn new(
        a: &'a DistributedCsr<'c, T, C>,
        solver: impl FnMut(&Csr<T>) -> bt_direct::Result<Box<dyn Preconditioner<T>>>,
    ) -> Result<Self> {
        Self::with_options(a, SchurOptions::default(), solver)
    }

    /// With `solver` for B and for A₀, called in this order on each rank, also for matrices without rows. A collective.
    ///
    /// # Errors
    /// [`Error::OnRank`] with the first rank whose B or A₀ cannot be factored, and why; those of the communicator.
    pub fn with_options(
        a: &'a DistributedCsr<'c, T, C>,
        options: SchurOptions,
        mut solver: impl FnMut(&Csr<T>) -> bt_direct::Result<Box<dyn Preconditioner<T>>>,
    ) -> Result<Self> {
        let (internal, interface) = a.internal_and_interface();
        let made = split(a, &internal, &interface).and_then(|[b, f, e, c]| {
            let own = a.rows().own();
            let numbers = internal.iter().map(|&i| own[i as usize]);
            let solve_b = solver(&b).map_err(|error| Fault::in_part(error, "interior", numbers))?;
            let solve_a = solver(a.local()).map_err(|error| Fault::in_part(error, "part", own.iter().copied()))?;
            for (solver, rows) in [(&solve_b, b.nrows()), (&solve_a, a.local().nrows())] {
                if solver.n() != rows {
                    return Err(Fault::input(format!("{} is for {} rows, not {rows}", solver.name(), solver.n())));
                }
            }
            Ok((f, e, c, solve_b, solve_a))
        });
        let (f, e, c, solve_b, solve_a) = agree(a.comm(), made)?;
        let sizes = a.comm().all_gather(&[interface.len() as u64])?;
        let n_interface = sizes.values().iter().sum::<u64>() as usize;
        let vector = |n| vec![zero::<T>(); n];
        let (ni, nf, m) = (internal.len(), interface.len(), a.rows().own().len());
        let halo = vector(a.halo().len());
        let (work, full) = ([vector(ni), vector(ni)], [vector(m), vector(m)]);
        let stop =
            StopCriterion { rtol: options.inner_rtol, max_iters: options.inner_steps, ..StopCriterion::default() };
        Ok(Self {
            parts: RefCell::new(Parts { a, internal, interface, e, f, c, solve_b, solve_a, work, full, halo }),
            gmres: Gmres::of_rows(nf, n_interface, options.inner_steps),
            stop,
            n_interface,
            internal: vector(ni),
            interface: vector(nf),
            y: vector(nf),
        })
    }

    /// Interface unknowns of all ranks.
    pub fn n_interface(&self) -> usize {
        self.n_interface
    }
}

/// B, F, E and C.
fn split<T: Number, C: Comm>(
    a: &DistributedCsr<'_, T, C>,
    internal: &[u32],
    interface: &[u32],
) -> Result<[Csr<T>; 4], Fault> {
    let block = |rows: &[u32], cols: &[u32]| -> Result<Csr<T>, Fault> {
        let (mut ptr, mut idx, mut val) = (vec![0u32], Vec::new(), Vec::new());
        for &i in rows {
            let (js, values) = a.local().row(i as usize);
            for (j, &v) in js.iter().zip(values) {
                // Places increase with columns: both lists do.
                if let Ok(place) = cols.binary_search(j) {
                    idx.push(place as u32);
                    val.push(v);
                }
            }
            ptr.push(idx.len() as u32);
        }
        Ok(Csr::new(rows.len(), cols.len(), ptr, idx, val)?)
    };
    Ok([
        block(internal, internal)?,
        block(internal, interface)?,
        block(interface, internal)?,
        block(interface, interface)?,
    ])
}

impl<T: Number, C: Comm> Parts<'_, '_, T, C> {
    /// out ← B⁻¹·F·y, in `work[1]`.
    fn solve_coupling(&mut self, y: &[T]) {
        let [w0, w1] = &mut self.work;
        self.f.apply(one(), y, zero(), w0);
        self.solve_b.apply(w0, w1);
    }

    /// out ← α·S·y + β·out
    fn product(&mut self, alpha: T, y: &[T], beta: T, out: &mut [T]) -> Result<()> {
        // The interface rows at their places, for the halo.
        let x = &mut self.full[0];
        self.interface.iter().zip(y).for_each(|(&i, &v)| x[i as usize] = v);
        let (a, c, f, e) = (self.a, &self.c, &self.f, &self.e);
        let (solve_b, [w0, w1]) = (&mut self.solve_b, &mut self.work);
        a.halo().exchange(a.comm(), x, &mut self.halo, || {
            // α·C·y + β·out − α·E·B⁻¹·F·y
            c.apply(alpha, y, beta, out);
            f.apply(one(), y, zero(), w0);
            solve_b.apply(w0, w1);
            e.apply(-alpha, w1, one(), out);
        })?;
        // + α·X·y_halo
        for (k, &i) in a.boundary.iter().enumerate() {
            let (cols, values) = a.external.row(k);
            let sum: T = cols.iter().zip(values).map(|(&j, &v)| v * self.halo[j as usize]).sum();
            if let Ok(place) = self.interface.binary_search(&i) {
                out[place] += alpha * sum;
            }
        }
        Ok(())
    }

    /// z ← (0 I)·A₀⁻¹·(0; r)
    fn precondition(&mut self, r: &[T], z: &mut [T]) {
        let [from, to] = &mut self.full;
        from.fill(zero());
        self.interface.iter().zip(r).for_each(|(&i, &v)| from[i as usize] = v);
        self.solve_a.apply(from, to);
        self.interface.iter().zip(z).for_each(|(&i, z)| *z = to[i as usize]);
    }
}

impl<T: Number, C: Comm> DistributedPreconditioner<T> for Schur<'_, '_, T, C> {
    fn rows(&self) -> usize {
        self.parts.borrow().full[0].len()
    }
    fn name(&self) -> &'static str {
        "schur"
    }
    fn kind(&self) -> PreconditionerKind {
        PreconditionerKind::Variable
    }
    fn apply(&mut self, r: &[T], z: &mut [T]) -> Result<()> {
        check_lengths(self.rows(), r, z);
        let Self { parts, gmres, stop, n_interface, internal, interface, y } = self;
        {
            // f' ← B⁻¹·f;  g' ← g − E·f'
            let parts = &mut *parts.borrow_mut();
            parts.work[0].iter_mut().zip(&parts.internal).for_each(|(w, &i)| *w = r[i as usize]);
            parts.solve_b.apply(&parts.work[0], internal);
            interface.iter_mut().zip(&parts.interface).for_each(|(w, &i)| *w = r[i as usize]);
            parts.e.apply(-one::<T>(), internal, one(), interface);
        }
        y.fill(zero());
        if *n_interface > 0 {
            // S·y = g'
            let failure = RefCell::new(None);
            let mut system = Interface { parts, failure: &failure };
            let solved = gmres.solve_on(&mut system, interface, y, stop, &mut ());
            if let Some(error) = failure.into_inner() {
                return Err(error);
            }
            // The vectors are of the interface: only a broken contract of this file is refused.
            let rank = parts.borrow().a.comm().rank();
            solved.map_err(|error| Error::OutOfStep { rank, message: error.to_string() })?;
        }
        let parts = &mut *parts.borrow_mut();
        if *n_interface == 0 {
            parts.internal.iter().zip(&*internal).for_each(|(&i, &f)| z[i as usize] = f);
            return Ok(());
        }
        // u ← f' − B⁻¹·(F·y)
        parts.solve_coupling(y);
        for ((&i, &f), &w) in parts.internal.iter().zip(&*internal).zip(&parts.work[1]) {
            z[i as usize] = f - w;
        }
        parts.interface.iter().zip(&*y).for_each(|(&i, &y)| z[i as usize] = y);
        Ok(())
    }
    fn nnz(&self) -> usize {
        let parts = self.parts.borrow();
        parts.solve_b.nnz() + parts.solve_a.nnz()
    }
    fn bytes(&self) -> usize {
        let parts = self.parts.borrow();
        let blocks: usize = [&parts.e, &parts.f, &parts.c].map(|a| bt_formats::Matrix::bytes(a)).iter().sum();
        parts.solve_b.bytes() + parts.solve_a.bytes() + blocks + self.gmres.bytes()
    }
}

/// The interface as GMRES sees it.
struct Interface<'p, 'a, 'c, T: Number, C: Comm> {
    parts: &'p RefCell<Parts<'a, 'c, T, C>>,
    failure: &'p RefCell<Option<Error>>,
}

impl<T: Number, C: Comm> Interface<'_, '_, '_, T, C> {
    /// Does it unless the communicator has failed, and says whether it is done.
    fn attempt<V>(&self, f: impl FnOnce(&C) -> Result<V>) -> Option<V> {
        if self.failure.borrow().is_some() {
            return None;
        }
        let comm = self.parts.borrow().a.comm();
        keep(self.failure, f(comm))
    }
}

impl<T: Number, C: Comm> KrylovSystem<T> for Interface<'_, '_, '_, T, C> {
    fn nrows(&self) -> usize {
        self.parts.borrow().interface.len()
    }
    fn ncols(&self) -> usize {
        self.nrows()
    }
    fn apply(&self, alpha: T, x: &[T], beta: T, y: &mut [T]) {
        if self.attempt(|_| self.parts.borrow_mut().product(alpha, x, beta, y)).is_none() {
            y.fill(T::rounded(f64::NAN, 0.0));
        }
    }
    fn precondition(&mut self, r: &[T], z: &mut [T]) {
        self.parts.borrow_mut().precondition(r, z);
    }
    fn kind(&self) -> PreconditionerKind {
        PreconditionerKind::General
    }
    fn name(&self) -> &'static str {
        "block-jacobi"
    }
    fn preconditioner_rows(&self) -> usize {
        self.nrows()
    }
    fn bytes(&self) -> usize {
        self.parts.borrow().solve_a.bytes()
    }
    fn sum(&self, terms: &mut [T]) {
        if self.attempt(|comm| comm.all_sum(terms)).is_none() {
            terms.fill(T::rounded(f64::NAN, 0.0));
        }
    }
    fn max(&self, own: f64) -> f64 {
        let mut largest = [own];
        let done = self.attempt(|comm| comm.all_max(&mut largest));
        if done.is_some() { largest[0] } else { f64::NAN }
    }
}
