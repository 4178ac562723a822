//! Block iterations over ranks: each has whole blocks, and sweeps exchange the edges of neighbours.
//!
//! With D the diagonal blocks, r = b − A·x:
//!
//! ```text
//! Jacobi      x ← x + D⁻¹·r                                               one exchange
//! red–black   x_e ← x_e + ω·D_e⁻¹·r_e;  x_o ← x_o + ω·D_o⁻¹·r_o           even blocks, then odd ones: two exchanges
//! ```
//!
//! ω = 1 is block Gauss–Seidel in red–black order. Blocks are counted over all ranks, so that iterates do not depend on where the
//! ranks meet. Z. Yang, K. Li, K. Li, J. Supercomput. 73 (2017) 1760–1781, doi:10.1007/s11227-016-1881-x, Eq. (6) and (7), as
//! [`bt_iter::Hbisa`]; its tuned ω and Chebyshev acceleration are not here.
//!
//! The residual at the start of a sweep is the true one, which is what is held against the tolerance.
//!
//! Counted, a sweep on a rank: one exchange of the halo of A for Jacobi and two for red–black, and one sum of two numbers. Flops:
//! one product, half a one more for red–black, and one solve with D. Storage: the factors of D, 3 vectors, for red–black the rows
//! of the odd blocks once more. Solvers of the caller's in place of the factors ([`BlockIteration::with_solver`]) change neither
//! count.

mod solves;

use bt_formats::{
    BlockTridiagonal, Breakdown, Bytes, Csr, HybridLayout, LinearOperator, Matrix, Monitor, Outcome, Partition,
    SolveReport, StopCriterion, norm2, one, zero,
};
use bt_iter::{BlockDiagonal, Preconditioner, Rate, Watch};

use crate::agreement::{Agreement, Told};
use crate::comm::{Comm, Number};
use crate::csr::DistributedCsr;
use crate::error::{Fault, Result, agree};
use solves::Solves;

/// Which sweep is iterated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum BlockSweep {
    /// All blocks from the last iterate.
    #[default]
    Jacobi,
    /// Even blocks, then odd ones, relaxed by ω, 0 < ω < 2.
    RedBlack {
        /// ω; 1 is Gauss–Seidel.
        omega: f64,
    },
}

/// The iteration on a matrix, with the rows of one rank.
///
/// ```
/// use bt_formats::{Outcome, Partition, StopCriterion};
/// use bt_parallel::{BlockIteration, BlockSweep, Comm, DistributedCsr, Division, thread_comm};
/// let a = bt_testkit::chain::<f64>(6, 4.0, -1.0);
/// let blocks = Partition::uniform(6, 2)?;
/// let solved = thread_comm::run(2, |comm| {
///     let a = DistributedCsr::from_replicated(comm, &a, &Division::by_blocks(&blocks, 2))?;
///     let sizes = [vec![2], vec![2, 2]][comm.rank()].clone();
///     let own = Partition::from_sizes(sizes).expect("no block is empty");
///     let mut hbisa = BlockIteration::new(&a, own, BlockSweep::RedBlack { omega: 1.0 })?;
///     let (b, mut x) = (a.own_entries(&[3.0, 2.0, 2.0, 2.0, 2.0, 3.0]), a.own_entries(&[0.0; 6]));
///     let report = hbisa.solve(&b, &mut x, &StopCriterion::default(), &mut ())?;
///     Ok((report.outcome, a.whole(&x)?))
/// });
/// let (outcome, x) = solved[0].clone().unwrap();
/// assert_eq!(outcome, Outcome::Converged);
/// assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-7));
/// # Ok::<(), bt_formats::Error>(())
/// ```
pub struct BlockIteration<'a, 'c, T: Number, C: Comm> {
    a: &'a DistributedCsr<'c, T, C>,
    blocks: Partition,
    /// Blocks of the ranks before.
    first_block: usize,
    sweep: BlockSweep,
    solves: Solves<T>,
    /// The rows of odd blocks, and A₀ and X of them alone.
    odd: Vec<u32>,
    odd_local: Csr<T>,
    odd_external: Csr<T>,
    r: Vec<T>,
    before: Vec<T>,
    best: Vec<T>,
}

impl<'a, 'c, T: Number, C: Comm> BlockIteration<'a, 'c, T, C> {
    /// With the blocks of this rank, in the order of its rows; a rank without rows has none. A collective.
    ///
    /// # Errors
    /// [`crate::Error::OnRank`] where blocks and rows disagree, A₀ has entries beyond the neighbours of a block, a diagonal block
    /// is singular, or ω is not between 0 and 2; those of the communicator.
    pub fn new(a: &'a DistributedCsr<'c, T, C>, blocks: Partition, sweep: BlockSweep) -> Result<Self> {
        Self::made(a, blocks, sweep, |split, _| Ok(Solves::Factors(BlockDiagonal::new(split)?)))
    }

    /// The same with solvers of the diagonal blocks in place of their factors. `solver` is given a matrix of diagonal blocks
    /// alone, one after the other, and their sizes: for Jacobi all of this rank, for red–black the even ones and then the odd
    /// ones; none where there are no rows. A collective.
    ///
    /// # Errors
    /// As [`BlockIteration::new`], with what `solver` refuses, by rows of the system; for a solver of another number of rows.
    ///
    /// # Cost
    /// The matrices that `solver` is given, while it is.
    ///
    /// ```
    /// use bt_direct::SparseLu;
    /// use bt_formats::{Outcome, Partition, StopCriterion};
    /// use bt_iter::Factored;
    /// use bt_parallel::{BlockIteration, BlockSweep, DistributedCsr, Division, SelfComm};
    /// let a = bt_testkit::chain::<f64>(6, 4.0, -1.0);
    /// let a = DistributedCsr::from_replicated(&SelfComm, &a, &Division::contiguous(6, 1))?;
    /// let blocks = Partition::uniform(6, 2).expect("a block has rows");
    /// let mut hbisa = BlockIteration::with_solver(&a, blocks, BlockSweep::Jacobi, |d, _| {
    ///     Ok(Box::new(Factored::new(SparseLu::new(d)?)))
    /// })?;
    /// let mut x = [0.0; 6];
    /// let report = hbisa.solve(&[3.0, 2.0, 2.0, 2.0, 2.0, 3.0], &mut x, &StopCriterion::default(), &mut ())?;
    /// assert_eq!(report.outcome, Outcome::Converged);
    /// assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-7));
    /// # Ok::<(), bt_parallel::Error>(())
    /// ```
    pub fn with_solver(
        a: &'a DistributedCsr<'c, T, C>,
        blocks: Partition,
        sweep: BlockSweep,
        solver: impl FnMut(&Csr<T>, &Partition) -> bt_direct::Result<Box<dyn Preconditioner<T>>>,
    ) -> Result<Self> {
        Self::made(a, blocks, sweep, |split, first_block| {
            Solves::by(a, (split.partition(), first_block), sweep, solver)
        })
    }

    /// With what `solves` makes of the own rows and the number of blocks on the ranks before.
    fn made(
        a: &'a DistributedCsr<'c, T, C>,
        blocks: Partition,
        sweep: BlockSweep,
        solves: impl FnOnce(&BlockTridiagonal<T>, usize) -> Result<Solves<T>, Fault>,
    ) -> Result<Self> {
        let (comm, m) = (a.comm(), a.rows().own().len());
        let counts = comm.all_gather(&[blocks.n_blocks() as u64])?;
        let first_block = counts.values()[..comm.rank()].iter().sum::<u64>() as usize;
        let solves = match sweep {
            BlockSweep::RedBlack { omega } if !(omega > 0.0 && omega < 2.0) => {
                Err(Fault::input(format!("relaxation by {omega}, which is not between 0 and 2")))
            }
            _ => BlockTridiagonal::from_csr(a.local(), blocks.clone(), HybridLayout::default())
                .map_err(Fault::from)
                .and_then(|split| solves(&split, first_block)),
        };
        let solves = agree(comm, solves)?;
        let odd: Vec<u32> = match sweep {
            BlockSweep::Jacobi => Vec::new(),
            BlockSweep::RedBlack { .. } => (0..blocks.n_blocks())
                .filter(|j| (first_block + j) % 2 == 1)
                .flat_map(|j| blocks.range(j))
                .map(|i| i as u32)
                .collect(),
        };
        let external = |i: u32| a.boundary.binary_search(&i).map(|k| a.external.row(k)).unwrap_or_default();
        let parts = rows_of(odd.iter().map(|&i| a.local().row(i as usize)), m)
            .and_then(|local| Ok((local, rows_of(odd.iter().map(|&i| external(i)), a.halo().len())?)));
        let (odd_local, odd_external) = agree(comm, parts)?;
        let vector = || vec![zero::<T>(); m];
        let (r, before, best) = (vector(), vector(), vector());
        Ok(Self { a, blocks, first_block, sweep, solves, odd, odd_local, odd_external, r, before, best })
    }

    /// Sweeps from the `x` given until ‖b − A·x‖₂ meets the criterion; exits as [`crate::Krylov::solve`] does, and with the breakdown `Diverged`. A
    /// collective.
    ///
    /// # Errors
    /// [`crate::Error::OnRank`] for vectors of another length than the own rows; those of the communicator.
    pub fn solve(
        &mut self,
        b: &[T],
        x: &mut [T],
        stop: &StopCriterion,
        monitor: &mut dyn Monitor,
    ) -> Result<SolveReport> {
        let (comm, m) = (self.a.comm(), self.r.len());
        let lengths = if (b.len(), x.len()) == (m, m) {
            Ok(())
        } else {
            Err(Fault::input(format!("{} and {} entries of b and x for {m} rows", b.len(), x.len())))
        };
        agree(comm, lengths)?;
        let (agreement, mut stop) = (Agreement::default(), *stop);
        let mut told = Told::new(comm, monitor, &agreement, &mut stop);
        let norm_b = global_norm(comm, &agreement, b)?;
        let mut norm = self.residual(b, x, &agreement)?;
        let mut watch = Watch::new(&stop, &mut told, norm_b, norm);
        watch.epsilon = bt_formats::RealScalar::to_f64(<T::Real as bt_formats::RealScalar>::EPSILON);
        let (mut rate, mut best) = (Rate::default(), f64::INFINITY);
        let outcome = loop {
            if let Some(outcome) = watch.verdict(norm) {
                break outcome;
            }
            if rate.diverges(norm) {
                break Outcome::Breakdown(Breakdown::Diverged);
            }
            self.before.copy_from_slice(x);
            self.step(b, x)?;
            watch.iterations += 1;
            watch.operator_applications += 1;
            watch.preconditioner_applications += 1;
            let next = self.residual(b, x, &agreement)?;
            // The best iterate is set aside when the next one is worse.
            if !(next <= norm) && norm < best {
                self.best.copy_from_slice(&self.before);
                best = norm;
            }
            norm = next;
        };
        let believed = norm;
        if best < norm || norm.is_nan() && best.is_finite() {
            x.copy_from_slice(&self.best);
            norm = best;
        }
        let name = match self.sweep {
            BlockSweep::Jacobi => "hbisa",
            BlockSweep::RedBlack { omega: 1.0 } => "hbisa-redblack",
            BlockSweep::RedBlack { .. } => "hbisa-sor",
        };
        let workspace = 3 * size_of_val(&*self.r) + Matrix::bytes(&self.odd_local) + Matrix::bytes(&self.odd_external);
        let matrix = Matrix::bytes(&self.a.local) + Matrix::bytes(&self.a.external);
        let bytes = Bytes { matrix, factors: self.solves.bytes(), workspace };
        let mut report = watch.report(name, outcome, believed, norm, bytes);
        report.outcome = agreement.outcome(comm, report.outcome)?;
        report.certificate = self.a.certify(x, b)?;
        Ok(report)
    }

    /// r ← b − A·x; ‖r‖₂
    fn residual(&mut self, b: &[T], x: &[T], agreement: &Agreement) -> Result<f64> {
        self.r.copy_from_slice(b);
        self.a.apply(-one::<T>(), x, one(), &mut self.r)?;
        global_norm(self.a.comm(), agreement, &self.r)
    }

    /// One sweep, from the residual of x.
    fn step(&mut self, b: &[T], x: &mut [T]) -> Result<()> {
        let Self { a, blocks, first_block, sweep, solves, odd, odd_local, odd_external, r, .. } = self;
        let BlockSweep::RedBlack { omega } = *sweep else {
            // x ← x + D⁻¹·r
            solves.relax_all(blocks, r, x);
            return Ok(());
        };
        let (blocks, omega) = ((&*blocks, *first_block), T::rounded(omega, 0.0));
        // x_e ← x_e + ω·D_e⁻¹·r_e
        solves.relax(blocks, 0, omega, r, x);
        // r_o ← b_o − (A·x)_o
        let mut halo = a.received.borrow_mut();
        let mut product = vec![zero(); odd.len()];
        a.halo().exchange(a.comm(), x, &mut halo, || odd_local.apply(one(), x, zero(), &mut product))?;
        odd_external.apply(one(), &halo, one(), &mut product);
        odd.iter().zip(&product).for_each(|(&i, &v)| r[i as usize] = b[i as usize] - v);
        // x_o ← x_o + ω·D_o⁻¹·r_o
        solves.relax(blocks, 1, omega, r, x);
        Ok(())
    }
}

fn rows_of<'r, T: Number>(rows: impl Iterator<Item = (&'r [u32], &'r [T])>, ncols: usize) -> Result<Csr<T>, Fault> {
    let (mut ptr, mut cols, mut values) = (vec![0u32], Vec::new(), Vec::new());
    for (js, vs) in rows {
        cols.extend_from_slice(js);
        values.extend_from_slice(vs);
        ptr.push(cols.len() as u32);
    }
    Ok(Csr::new(ptr.len() - 1, ncols, ptr, cols, values)?)
}

/// ‖v‖₂ over all ranks, by one sum where squares stay in the range of doubles.
fn global_norm<T: Number>(comm: &impl Comm, agreement: &Agreement, v: &[T]) -> Result<f64> {
    let own = norm2(v);
    let mut square = [own * own];
    agreement.all_sum(comm, &mut square, &mut Vec::new())?;
    if square[0].is_finite() && square[0] > 1e-280 {
        return Ok(if comm.size() == 1 { own } else { square[0].sqrt() });
    }
    let mut largest = [own];
    comm.all_max(&mut largest)?;
    let [largest] = largest;
    if largest == 0.0 || !largest.is_finite() {
        return Ok(largest);
    }
    let part = own / largest;
    let mut square = [part * part];
    agreement.all_sum(comm, &mut square, &mut Vec::new())?;
    Ok(largest * square[0].sqrt())
}
