//! HBISA, the hybrid block iteration for block-tridiagonal systems, in its Jacobi and Gauss–Seidel forms.
//!
//! With A = L + D + U (block lower, diagonal, upper part):
//!
//! ```text
//! Eq. (6)  D·xⁱ⁺¹ = b − L·xⁱ − U·xⁱ         block Jacobi, all blocks independent
//! Eq. (7)  (D + L)·xⁱ⁺¹ = b − U·xⁱ          block Gauss–Seidel, blocks in order
//! ```
//!
//! Source: Yang, Li & Li, J. Supercomput. 73 (2017) 1760–1781, doi:10.1007/s11227-016-1881-x. Departures: the paper's
//! Algorithm 1 as printed updates the residual from the previous x and stops after one step; the equations are what is
//! implemented. The paper stops on ‖xⁱ⁺¹ − xⁱ‖∞; here that is one of two rules.
//!
//! The residual comes for free: with tⁱ = b − (L + U)·xⁱ, Eq. (6) gives b − A·xⁱ⁺¹ = tⁱ⁺¹ − tⁱ, and Eq. (7) gives
//! b − A·xⁱ⁺¹ = U·(xⁱ − xⁱ⁺¹).
//!
//! Jacobi converges iff ρ(D⁻¹(L+U)) < 1, Gauss–Seidel iff ρ((D+L)⁻¹U) < 1.
//!
//! Storage: the factors of D, four vectors and one block, 4n + max kⱼ scalars. An iteration costs one product with L + U and one solve
//! with D. Jacobi runs its blocks in parallel and gives the same bits for any number of threads.

use std::ops::ControlFlow;
use std::time::Instant;

use bt_direct::Result;
use bt_formats::{
    Baseline, BlockTridiagonal, Breakdown, Bytes, LinearOperator, Matrix, Monitor, Op, Outcome, Par, Partition,
    PhaseTimes, Progress, RealScalar, Scalar, SolveReport, StopCriterion, certify, norm2, one, zero,
};
use faer::MatRef;

use crate::block_diagonal::BlockDiagonal;

/// Which of the two equations is iterated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Eq. (6): every block from the previous iterate.
    Jacobi,
    /// Eq. (7): the block above from the current iterate.
    GaussSeidel,
}

/// What the tolerance is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StopRule {
    /// ‖b − A·x‖₂ ≤ max(atol, rtol·baseline), the library's rule.
    #[default]
    Residual,
    /// ‖xⁱ⁺¹ − xⁱ‖∞ ≤ max(atol, rtol·‖xⁱ⁺¹‖∞), the paper's rule when rtol = 0. A small update does not bound the
    /// residual: the report's certificate says what the answer is worth.
    Update,
}

/// The iteration on one matrix: factors of D and workspace. `solve` allocates nothing but its report.
pub struct Hbisa<'a, T: Scalar> {
    a: &'a BlockTridiagonal<T>,
    factors: BlockDiagonal<T>,
    sweep: Sweep,
    rule: StopRule,
    previous: Vec<T>,
    t: Vec<T>,
    t_previous: Vec<T>,
    best: Vec<T>,
    block: Vec<T>,
    setup: std::time::Duration,
}

impl<'a, T: Scalar> Hbisa<'a, T> {
    /// Factors the diagonal blocks of `a` and allocates the vectors.
    ///
    /// # Errors
    /// [`bt_direct::FactorError::Singular`] naming the diagonal block that is singular.
    ///
    /// # Example
    /// ```
    /// use bt_formats::{BlockTridiagonal, HybridLayout, Outcome, StopCriterion};
    /// use bt_iter::{Hbisa, StopRule, Sweep};
    /// use bt_queue::CloudCase;
    /// let case = CloudCase::by_name("Cloud16-100")?;
    /// let a = BlockTridiagonal::from_csr(&case.matrix()?, case.partition()?, HybridLayout::default())?;
    /// let mut x = vec![0.0; 1600];
    /// let report = Hbisa::new(&a, Sweep::GaussSeidel, StopRule::Residual)?
    ///     .solve(&vec![1.0; 1600], &mut x, &StopCriterion::default(), &mut ());
    /// assert_eq!(report.outcome, Outcome::Converged);
    /// assert!(report.certificate.relative_residual <= 1e-8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(a: &'a BlockTridiagonal<T>, sweep: Sweep, rule: StopRule) -> Result<Self> {
        let start = Instant::now();
        let factors = BlockDiagonal::new(a)?;
        let n = a.nrows();
        let vector = || vec![zero::<T>(); n];
        let (previous, t, t_previous, best) = (vector(), vector(), vector(), vector());
        let block = vec![zero::<T>(); a.partition().min_max_size().1];
        Ok(Self { a, factors, sweep, rule, previous, t, t_previous, best, block, setup: start.elapsed() })
    }

    /// Bytes of the workspace: 4n + max kⱼ scalars.
    pub fn bytes(&self) -> usize {
        (4 * self.t.len() + self.block.len()) * size_of::<T>()
    }

    /// Iterates from the `x` given (zero is a good start) towards the solution of A·x = b.
    ///
    /// On every exit `x` is the best iterate: the one with the smallest norm that the rule saw.
    ///
    /// # Panics
    /// When a length is not n.
    pub fn solve(&mut self, b: &[T], x: &mut [T], stop: &StopCriterion, monitor: &mut dyn Monitor) -> SolveReport {
        let n = self.t.len();
        assert_eq!((b.len(), x.len()), (n, n), "lengths of b and x");
        let start = Instant::now();
        let par = Par::auto(self.a.bytes());
        // t⁰ and ‖b − A·x⁰‖
        self.previous.copy_from_slice(b);
        self.a.apply_op(Op::Identity, -one::<T>(), x, one(), &mut self.previous, par);
        let norm_r0 = norm2(&self.previous);
        let threshold = stop.threshold(norm2(b), norm_r0);
        // Residuals are reported relative to what rtol is relative to, updates as they are.
        let baseline = match (self.rule, stop.baseline) {
            (StopRule::Residual, Baseline::Rhs) if norm2(b) > 0.0 => norm2(b),
            (StopRule::Residual, Baseline::InitialResidual) if norm_r0 > 0.0 => norm_r0,
            _ => 1.0,
        };
        self.right_hand_side(b, x, par);

        let mut rate = Rate::default();
        let mut norm = match self.rule {
            StopRule::Residual => norm_r0,
            StopRule::Update => f64::INFINITY,
        };
        let mut best_norm = f64::INFINITY;
        let mut iterations = 0;
        let outcome = loop {
            let target = match self.rule {
                StopRule::Residual => threshold,
                StopRule::Update => stop.atol.max(stop.rtol * bt_formats::max_abs(x)),
            };
            let progress = Progress::Iteration { index: iterations, residual: norm / baseline };
            let flow = monitor.observe(progress);
            if norm <= target {
                break Outcome::Converged;
            }
            if norm.is_nan() || (iterations > 0 && norm.is_infinite()) {
                break Outcome::Breakdown(Breakdown::NonFinite);
            }
            if let ControlFlow::Break(()) = flow {
                break Outcome::Stopped;
            }
            if rate.diverges(norm) {
                break Outcome::Breakdown(Breakdown::Diverged);
            }
            if iterations == stop.max_iters {
                break Outcome::IterationLimit;
            }
            if stop.time_limit.is_some_and(|limit| start.elapsed() >= limit) {
                break Outcome::TimeLimit;
            }
            let next = self.step(b, x, par);
            iterations += 1;
            // The best iterate is set aside only when the next one is worse: a convergent run never copies.
            if !(next <= norm) && norm < best_norm {
                self.best.copy_from_slice(&self.previous);
                best_norm = norm;
            }
            norm = next;
        };
        if !(norm <= best_norm) {
            x.copy_from_slice(&self.best);
            norm = best_norm;
        }
        let elapsed = start.elapsed();
        self.report(b, x, outcome, iterations, norm, threshold, &rate, elapsed)
    }

    /// One sweep: x ← next iterate. Returns the norm that the rule looks at.
    fn step(&mut self, b: &[T], x: &mut [T], par: Par) -> f64 {
        self.previous.copy_from_slice(x);
        match self.sweep {
            Sweep::Jacobi => {
                // xⁱ⁺¹ ← D⁻¹·tⁱ
                x.copy_from_slice(&self.t);
                for_blocks(self.a.partition(), x, par, &|j, xj| self.factors.solve_block(j, xj));
            }
            Sweep::GaussSeidel => {
                // t holds b − U·xⁱ:  xⱼⁱ⁺¹ ← Dⱼ⁻¹·(tⱼ − Lⱼ·xⱼ₋₁ⁱ⁺¹)
                let partition = self.a.partition();
                for j in 0..partition.n_blocks() {
                    let z = &mut self.block[..partition.size(j)];
                    z.copy_from_slice(&self.t[partition.range(j)]);
                    self.a.subtract_lower(j, x, z);
                    self.factors.solve_block(j, z);
                    x[partition.range(j)].copy_from_slice(z);
                }
            }
        }
        std::mem::swap(&mut self.t, &mut self.t_previous);
        self.right_hand_side(b, x, par);
        match self.rule {
            // b − A·xⁱ⁺¹ = tⁱ⁺¹ − tⁱ
            StopRule::Residual => distance2(&self.t, &self.t_previous),
            // ‖xⁱ⁺¹ − xⁱ‖∞
            StopRule::Update => {
                x.iter().zip(&self.previous).fold(0.0, |m: f64, (&new, &old)| m.max_nan((new - old).abs().to_f64()))
            }
        }
    }

    /// t ← b − (L + U)·x for Jacobi, t ← b − U·x for Gauss–Seidel.
    fn right_hand_side(&mut self, b: &[T], x: &[T], par: Par) {
        self.t.copy_from_slice(b);
        for_blocks(self.a.partition(), &mut self.t, par, &|j, tj| match self.sweep {
            Sweep::Jacobi => self.a.subtract_couplings(j, x, tj),
            Sweep::GaussSeidel => self.a.subtract_upper(j, x, tj),
        });
    }

    fn report(
        &self,
        b: &[T],
        x: &[T],
        mut outcome: Outcome,
        iterations: usize,
        norm: f64,
        threshold: f64,
        rate: &Rate,
        elapsed: std::time::Duration,
    ) -> SolveReport {
        let n = x.len();
        let certificate = certify(
            self.a,
            Op::Identity,
            MatRef::from_column_major_slice(x, n, 1),
            MatRef::from_column_major_slice(b, n, 1),
        );
        let true_residual = certificate.relative_residual * norm2(b);
        let mut notes = vec![match self.rule {
            StopRule::Residual => "stopping rule: 2-norm of the true residual b − A·x".to_owned(),
            StopRule::Update => {
                format!("stopping rule: ∞-norm of the update xⁱ⁺¹ − xⁱ, last {norm:.3e}; not a bound on the residual")
            }
        }];
        if self.rule == StopRule::Residual && outcome == Outcome::Converged && !(true_residual <= 10.0 * threshold) {
            outcome = Outcome::FalseConvergence;
            notes.push(format!("the recurrence claimed {norm:.3e}, the recomputed residual is {true_residual:.3e}"));
        }
        if let Some(rho) = rate.estimate() {
            notes.push(format!("estimated spectral radius of the iteration: {rho:.6}"));
            if outcome == Outcome::IterationLimit && rho < 1.0 && norm > threshold && threshold > 0.0 {
                let left = ((threshold / norm).ln() / rho.ln()).ceil();
                notes.push(format!("about {left} more iterations would reach the tolerance"));
            }
        }
        if let Outcome::Breakdown(reason) = outcome {
            notes.push(format!("{reason}; a direct method will do (block-lu, band-lu)"));
        }
        if self.factors.pivoted_blocks() > 0 {
            notes.push(format!(
                "{} diagonal blocks have a zero pivot and were factored with row interchanges",
                self.factors.pivoted_blocks()
            ));
        }
        SolveReport {
            method: match self.sweep {
                Sweep::Jacobi => "hbisa",
                Sweep::GaussSeidel => "hbisa-gs",
            },
            outcome,
            iterations,
            recurrence_residual: (self.rule == StopRule::Residual).then_some(norm),
            certificate,
            operator_applications: iterations + 2,
            preconditioner_applications: iterations,
            times: PhaseTimes { setup: self.setup, solve: elapsed, ..PhaseTimes::default() },
            bytes: Bytes { matrix: self.a.bytes(), factors: self.factors.bytes(), workspace: self.bytes() },
            notes,
        }
    }
}

/// ‖x − y‖₂; NaN and infinities show.
fn distance2<T: Scalar>(x: &[T], y: &[T]) -> f64 {
    let largest = x.iter().zip(y).fold(0.0, |m: f64, (&a, &b)| m.max_nan((a - b).abs().to_f64()));
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    let sum: f64 = x.iter().zip(y).map(|(&a, &b)| ((a - b).abs().to_f64() / largest).powi(2)).sum();
    largest * sum.sqrt()
}

/// Calls `body(j, block j of v)` for every block, in parallel over contiguous groups of blocks.
fn for_blocks<T: Scalar>(partition: &Partition, v: &mut [T], par: Par, body: &(impl Fn(usize, &mut [T]) + Sync)) {
    // Blocks are halved down to groups that are worth a task.
    fn recurse<T: Scalar>(
        partition: &Partition,
        blocks: std::ops::Range<usize>,
        v: &mut [T],
        body: &(impl Fn(usize, &mut [T]) + Sync),
        grain: usize,
    ) {
        if v.len() <= grain || blocks.len() <= 1 {
            let mut rest = v;
            for j in blocks {
                let (block, tail) = rest.split_at_mut(partition.size(j));
                body(j, block);
                rest = tail;
            }
        } else {
            let middle = usize::midpoint(blocks.start, blocks.end);
            let cut = partition.offsets()[middle] as usize - partition.offsets()[blocks.start] as usize;
            let (left, right) = v.split_at_mut(cut);
            rayon::join(
                || recurse(partition, blocks.start..middle, left, body, grain),
                || recurse(partition, middle..blocks.end, right, body, grain),
            );
        }
    }
    let grain = match par {
        Par::Seq => usize::MAX,
        Par::Rayon => (v.len() / (4 * rayon::current_num_threads())).max(2048),
    };
    recurse(partition, 0..partition.n_blocks(), v, body, grain);
}

/// The decrease of a norm over the last iterations: an estimate of the spectral radius, and the alarm for divergence.
#[derive(Default)]
struct Rate {
    count: usize,
    smallest: f64,
    window: [f64; Rate::WINDOW],
}

impl Rate {
    const WINDOW: usize = 16;
    /// Growth over the smallest norm seen that no convergent iteration of practical interest shows.
    const HOPELESS: f64 = 1e8;

    /// Takes the next norm; true once the norm has grown hopelessly.
    fn diverges(&mut self, norm: f64) -> bool {
        if norm.is_infinite() {
            return false; // no update has been seen yet
        }
        self.smallest = if self.count == 0 { norm } else { self.smallest.min(norm) };
        self.window[self.count % Self::WINDOW] = norm;
        self.count += 1;
        norm > Self::HOPELESS * self.smallest && self.smallest > 0.0
    }

    /// (norm now / norm WINDOW − 1 iterations ago)^(1/(WINDOW − 1)), the geometric mean that smooths oscillation.
    fn estimate(&self) -> Option<f64> {
        if self.count < Self::WINDOW {
            return None;
        }
        let (newest, oldest) = (self.window[(self.count - 1) % Self::WINDOW], self.window[self.count % Self::WINDOW]);
        (oldest > 0.0 && newest > 0.0).then(|| (newest / oldest).powf(1.0 / (Self::WINDOW - 1) as f64))
    }
}
