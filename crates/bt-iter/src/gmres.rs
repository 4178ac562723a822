//! GMRES(m) and FGMRES(m), right preconditioned, for any nonsingular A.
//!
//! Y. Saad, M. H. Schultz, SIAM J. Sci. Stat. Comput. 7 (1986), doi:10.1137/0907058; flexible: Y. Saad, SIAM J. Sci.
//! Comput. 14 (1993), doi:10.1137/0914028. The basis is made by classical Gram–Schmidt, a second time where the first cancels
//! much (`gram_schmidt.rs`): as orthogonal as by modified Gram–Schmidt with re-orthogonalisation, in fewer passes over V.
//!
//! Non-standard: every cycle starts from the true residual, so that a claim of convergence is checked for free; an
//! exhausted Krylov space without a solution (a singular A) and a cycle without any progress end the iteration by name.
//!
//! ```text
//! x ∈ x₀ + span(Z),  A·Z = V·H̄,  zⱼ = M⁻¹vⱼ,  min ‖β·e₁ − H̄·y‖₂ by Givens rotations,  x = x₀ + Z·y
//! ```
//!
//! GMRES keeps V only and applies M once more for x; FGMRES keeps Z, so that M may change in every step.
//!
//! Either may keep V in single precision, which halves what orthogonalisation reads: J. I. Aliaga, H. Anzt, T. Grützmacher, E. S.
//! Quintana-Ortí, A. E. Tomás, Compressed basis GMRES on high performance GPUs, Int. J. High Perform. Comput. Appl. 37 (2023)
//! 82–100, doi:10.1177/10943420221115140. Vectors are rounded when they are stored and used as they are stored; all else stays in
//! double. A·M⁻¹·V = V·H̄ then holds to the roundings of V, so that a cycle gains a factor of 10⁷ at most, and what it claims
//! beyond that is left to the next one, which begins with the true residual. Storage: (m + 4)·n scalars, FGMRES (2m + 4)·n, of
//! which (m + 1)·n may be in single precision; m(m + 4) + 1 more and those of `gram_schmidt.rs`. Cost of step j: one product, one
//! application of M, 4(j + 1)·n flops and V read twice (8(j + 1)·n and up to four times where orthogonalised again), two copies,
//! FGMRES three.

use bt_formats::{
    Breakdown, Error, LinearOperator, Monitor, Outcome, RealScalar, Scalar, SolveReport, StopCriterion, one, zero,
};

use crate::blas1::{axpy, divide, over, scale, zeros};
use crate::gram_schmidt::GramSchmidt;
use crate::krylov::{Watch, meets, normalize};
use crate::preconditioner::Preconditioner;
use crate::recurrence::{self, Recurrence};
use crate::system::{KrylovSystem, Local, System};

/// Which basis the solution is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// M⁻¹·(V·y): GMRES.
    Fixed,
    /// Z·y: FGMRES.
    Flexible,
}

/// Workspace of the method; `solve` allocates nothing but its report.
///
/// ```
/// use bt_formats::{Csr, Outcome, StopCriterion};
/// use bt_iter::{Gmres, Identity};
/// let a = Csr::from_dense(faer::mat![[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]].as_ref())?;
/// let mut x = [0.0; 3];
/// let report =
///     Gmres::new(3, 30).solve(&a, &mut Identity::new(3), &[2.0, 3.0, 1.0], &mut x, &StopCriterion::default(), &mut ())?;
/// assert_eq!((report.outcome, report.iterations), (Outcome::Converged, 3));
/// assert!(x.iter().zip([1.0f64, 2.0, 3.0]).all(|(x, e)| (x - e).abs() < 1e-14));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Gmres<T: Scalar, V: Scalar = T> {
    machine: Machine<T, V>,
    input: Vec<T>,
    output: Vec<T>,
}

impl<T: Scalar> Gmres<T> {
    /// GMRES(`restart`) for systems of n unknowns.
    pub fn new(n: usize, restart: usize) -> Self {
        Self::with_basis(n, restart, Basis::Fixed)
    }

    /// GMRES(`restart`) for systems of n unknowns of which `rows` are here, for [`Gmres::solve_on`]: with another length of the vectors
    /// than of the space.
    #[inline(never)]
    pub fn of_rows(rows: usize, n: usize, restart: usize) -> Self {
        Self::of_machine(rows, Machine::of_rows(rows, n, restart, Basis::Fixed))
    }

    /// FGMRES(`restart`) for systems of n unknowns of which `rows` are here.
    pub fn flexible_of_rows(rows: usize, n: usize, restart: usize) -> Self {
        Self::of_machine(rows, Machine::of_rows(rows, n, restart, Basis::Flexible))
    }

    /// FGMRES(`restart`): the preconditioner may change in every step.
    pub fn flexible(n: usize, restart: usize) -> Self {
        Self::with_basis(n, restart, Basis::Flexible)
    }
}

impl<T: Scalar> Gmres<T, T::Single> {
    /// GMRES(`restart`) whose basis is kept in single precision.
    ///
    /// ```
    /// use bt_formats::{Csr, Outcome, StopCriterion};
    /// use bt_iter::{Gmres, Identity};
    /// let a = Csr::from_dense(faer::mat![[4.0, 1.0, 0.0], [1.0, 4.0, 1.0], [0.0, 1.0, 4.0]].as_ref())?;
    /// let (mut x, stop) = ([0.0; 3], StopCriterion { rtol: 1e-14, ..StopCriterion::default() });
    /// let report =
    ///     Gmres::single_basis(3, 30).solve(&a, &mut Identity::new(3), &[5.0, 6.0, 5.0], &mut x, &stop, &mut ())?;
    /// assert_eq!(report.outcome, Outcome::Converged);
    /// assert!(x.iter().all(|x: &f64| (x - 1.0).abs() < 1e-14));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn single_basis(n: usize, restart: usize) -> Self {
        Self::with_basis(n, restart, Basis::Fixed)
    }

    /// FGMRES(`restart`) whose basis V is kept in single precision. Z is not: its range is that of M⁻¹.
    pub fn flexible_single_basis(n: usize, restart: usize) -> Self {
        Self::with_basis(n, restart, Basis::Flexible)
    }
}

impl<T: Scalar, V: Scalar> Gmres<T, V> {
    fn with_basis(n: usize, restart: usize, basis: Basis) -> Self {
        Self::of_machine(n, Machine::new(n, restart, basis))
    }

    fn of_machine(rows: usize, machine: Machine<T, V>) -> Self {
        Self { machine, input: vec![zero(); rows], output: vec![zero(); rows] }
    }

    /// Bytes of the workspace.
    pub fn bytes(&self) -> usize {
        self.machine.bytes() + 2 * size_of_val(&*self.input)
    }

    /// Iterates from the `x` given towards the solution of A·x = b; exits as [`crate::Cg::solve`] does.
    ///
    /// # Errors
    /// [`Error::NotSquare`], [`Error::DimensionMismatch`], and for GMRES [`Error::InvalidStructure`] with a
    /// preconditioner of kind `Variable`.
    #[inline(never)]
    pub fn solve(
        &mut self,
        a: &dyn LinearOperator<T>,
        m: &mut dyn Preconditioner<T>,
        b: &[T],
        x: &mut [T],
        stop: &StopCriterion,
        monitor: &mut dyn Monitor,
    ) -> Result<SolveReport, Error> {
        self.solve_on(&mut Local { a, m }, b, x, stop, monitor)
    }

    /// The same for a system that is given by what the method asks of it; b and x are the rows that are here.
    ///
    /// # Errors
    /// As `solve`.
    #[inline(never)]
    pub fn solve_on(
        &mut self,
        system: &mut dyn KrylovSystem<T>,
        b: &[T],
        x: &mut [T],
        stop: &StopCriterion,
        monitor: &mut dyn Monitor,
    ) -> Result<SolveReport, Error> {
        let Self { machine, input, output } = self;
        recurrence::solve(machine, System { on: system, b }, [input, output], x, stop, monitor)
    }
}

/// The method but for the vectors of the products.
pub(crate) struct Machine<T: Scalar, V: Scalar = T> {
    n: usize,
    restart: usize,
    basis: Basis,
    /// V, n × (m + 1) by columns.
    v: Vec<V>,
    /// Z, n × m by columns, for FGMRES.
    z: Vec<T>,
    /// The true residual at the start of a cycle.
    residual: Vec<T>,
    gram_schmidt: GramSchmidt<T>,
    /// R, (m + 1) × m by columns: the Hessenberg matrix as the rotations leave it.
    r: Vec<T>,
    cosines: Vec<T::Real>,
    sines: Vec<T>,
    /// The rotated right-hand side, then y.
    g: Vec<T>,
    /// The true residual norm at the start of the cycle, and that of the recurrence.
    truth: f64,
    recurrence: f64,
    /// Steps of this cycle; none before the first product.
    steps: Option<usize>,
}

impl<T: Scalar, V: Scalar> Machine<T, V> {
    pub fn new(n: usize, restart: usize, basis: Basis) -> Self {
        Self::of_rows(n, n, restart, basis)
    }

    /// With `rows` of the n unknowns here.
    #[inline(never)]
    pub fn of_rows(rows: usize, n: usize, restart: usize, basis: Basis) -> Self {
        // More steps than unknowns there are not.
        let m = restart.clamp(1, n.max(1));
        let n = rows;
        Self {
            n,
            restart: m,
            basis,
            v: zeros(n * (m + 1)),
            z: zeros(if basis == Basis::Flexible { n * m } else { 0 }),
            residual: vec![zero(); n],
            gram_schmidt: GramSchmidt::new(n, m),
            r: zeros((m + 1) * m),
            cosines: vec![zero(); m],
            sines: zeros(m),
            g: zeros(m + 1),
            truth: 0.0,
            recurrence: 0.0,
            steps: None,
        }
    }

    fn method(&self) -> &'static str {
        match self.basis {
            Basis::Fixed => "gmres",
            Basis::Flexible => "fgmres",
        }
    }

    /// v₀ ← r/‖r‖₂ for the residual r, g ← ‖r‖₂·e₁
    fn start_cycle(&mut self, v0: &mut [T]) {
        v0.copy_from_slice(&self.residual);
        to_unit(self.truth, v0);
        keep(v0, &mut self.v[..self.n]);
        self.g.fill(zero());
        self.g[0] = T::rounded(self.truth, 0.0);
        self.recurrence = self.truth;
    }

    /// Step j with w = A·M⁻¹·vⱼ, w ← vⱼ₊₁: nothing, or the end of the cycle by why (if it is not full) and the steps whose columns are usable.
    fn step(
        &mut self,
        j: usize,
        w: &mut [T],
        system: &System<'_, T>,
        watch: &mut Watch<'_>,
    ) -> Option<(Option<Outcome>, usize)> {
        let (n, ld) = (self.n, self.restart + 1);
        let negligible = T::Real::EPSILON.to_f64();
        let (basis, rest) = self.v.split_at_mut((j + 1) * n);
        watch.operator_applications += 1;
        watch.preconditioner_applications += 1;
        let column = &mut self.r[j * ld..(j + 1) * ld];
        column.fill(zero());
        let (length, mut left) = self.gram_schmidt.orthogonalize(system, basis, j + 1, w, column);
        // What rounding leaves of a vector of the space is not a direction.
        let exhausted = !(left > negligible * length);
        if exhausted {
            left = 0.0;
        } else {
            to_unit(left, w);
            keep(w, &mut rest[..n]);
        }
        for i in 0..j {
            let (top, below) = (column[i], column[i + 1]);
            (column[i], column[i + 1]) = rotate(self.cosines[i], self.sines[i], top, below);
        }
        let (cosine, sine, corner) = rotation(column[j], T::Real::from_f64(left));
        (self.cosines[j], self.sines[j]) = (cosine, sine);
        column[j] = corner;
        watch.iterations += 1;
        let largest = column[..=j].iter().fold(0.0f64, |m, v| m.max(v.abs().to_f64()));
        if !length.is_finite() {
            return Some((Some(Outcome::Breakdown(Breakdown::NonFinite)), j));
        }
        if !(corner.abs().to_f64() > negligible * largest) {
            // A·M⁻¹ maps the space into itself and is singular there.
            return Some((Some(Outcome::Breakdown(Breakdown::SingularOperator)), j));
        }
        (self.g[j], self.g[j + 1]) = rotate(cosine, sine, self.g[j], zero());
        self.recurrence = self.g[j + 1].abs().to_f64();
        let verdict = watch.verdict(self.recurrence);
        (verdict.is_some() || exhausted || j + 1 == self.restart).then_some((verdict, j + 1))
    }

    /// The end of a cycle: x moves, and its residual is taken; whether to end there.
    fn end_cycle(
        &mut self,
        (ended, steps): (Option<Outcome>, usize),
        system: &mut System<'_, T>,
        watch: &mut Watch<'_>,
        x: &mut [T],
        [before_x, z]: [&mut [T]; 2],
    ) -> Option<Outcome> {
        let n = self.n;
        self.solve_for_y(steps);
        if self.basis == Basis::Fixed && steps > 0 {
            // z ← M⁻¹·(V·y)
            before_x.fill(zero());
            self.gram_schmidt.add(&self.v[..steps * n], &self.g[..steps], before_x);
            system.precondition(before_x, z);
            watch.preconditioner_applications += 1;
        }
        before_x.copy_from_slice(x);
        match self.basis {
            Basis::Fixed if steps > 0 => axpy(one(), z, x),
            Basis::Fixed => {}
            Basis::Flexible => self.gram_schmidt.add(&self.z[..steps * n], &self.g[..steps], x),
        }
        let before = self.truth;
        self.truth = system.residual(x, &mut self.residual);
        watch.operator_applications += 1;
        if !(self.truth <= before && system.finite(x)) {
            // R is singular to rounding: y was noise.
            x.copy_from_slice(before_x);
            self.truth = before;
            let reason = if ended == Some(Outcome::Converged) { None } else { ended };
            return Some(reason.unwrap_or(Outcome::Breakdown(Breakdown::Stagnated)));
        }
        match ended {
            Some(Outcome::Converged) => watch.claim(self.truth),
            Some(other) => Some(other),
            None if meets(self.truth, watch.threshold) => Some(Outcome::Converged),
            // The next cycle would start from the same residual and do the same.
            None if self.basis == Basis::Fixed && self.truth >= before * (1.0 - 1e-12) => {
                Some(Outcome::Breakdown(Breakdown::Stagnated))
            }
            None => None,
        }
    }

    /// R·y = g, y in the place of g.
    fn solve_for_y(&mut self, steps: usize) {
        let ld = self.restart + 1;
        for j in (0..steps).rev() {
            let y = divide(self.g[j], self.r[j * ld + j]);
            self.g[j] = y;
            for i in 0..j {
                self.g[i] -= self.r[j * ld + i] * y;
            }
        }
    }
}

impl<T: Scalar, V: Scalar> Recurrence<T> for Machine<T, V> {
    fn check(&self, system: &System<'_, T>, x: &[T]) -> Result<(), Error> {
        system.check(self.n, x)?;
        if self.basis == Basis::Fixed { system.refuse_variable(self.method()) } else { Ok(()) }
    }

    fn begin<'a>(
        &mut self,
        system: &System<'_, T>,
        x: &[T],
        stop: &'a StopCriterion,
        monitor: &'a mut dyn Monitor,
    ) -> Watch<'a> {
        // r ← b − A·x
        self.truth = system.residual(x, &mut self.residual);
        (self.recurrence, self.steps) = (self.truth, None);
        Watch::of::<T>(stop, monitor, system.norm(system.b), self.truth)
    }

    #[inline(never)]
    fn advance(
        &mut self,
        system: &mut System<'_, T>,
        watch: &mut Watch<'_>,
        x: &mut [T],
        input: &mut [T],
        output: &mut [T],
    ) -> Option<Outcome> {
        let j = match self.steps {
            None => {
                if let Some(outcome) = watch.verdict(self.truth) {
                    return Some(outcome);
                }
                self.start_cycle(output);
                0
            }
            Some(j) => match self.step(j, output, system, watch) {
                None => j + 1,
                Some(end) => {
                    if let Some(outcome) = self.end_cycle(end, system, watch, x, [output, input]) {
                        return Some(outcome);
                    }
                    self.start_cycle(output);
                    0
                }
            },
        };
        // zⱼ ← M⁻¹·vⱼ
        let n = self.n;
        system.precondition(output, input);
        if self.basis == Basis::Flexible {
            self.z[j * n..(j + 1) * n].copy_from_slice(input);
        }
        self.steps = Some(j);
        None
    }

    fn finish(
        &mut self,
        outcome: Outcome,
        watch: Watch<'_>,
        system: &System<'_, T>,
        _: &mut [T],
        workspace: usize,
    ) -> SolveReport {
        watch.report(self.method(), outcome, self.recurrence, self.truth, system.bytes(workspace))
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.v)
            + [&self.z, &self.residual, &self.r, &self.sines, &self.g].map(|v| size_of_val(&**v)).iter().sum::<usize>()
            + size_of_val(&*self.cosines)
            + self.gram_schmidt.bytes()
    }
}

/// v ← v/‖v‖₂ for the norm of v.
fn to_unit<T: Scalar>(norm: f64, v: &mut [T]) {
    // The reciprocal of a very small norm is not finite.
    let norm = norm * normalize(norm, v);
    scale(T::rounded(norm.recip(), 0.0), v);
}

/// place ← v, and v as it is kept there.
fn keep<T: Scalar, V: Scalar>(v: &mut [T], place: &mut [V]) {
    bt_simd::dispatch(
        #[inline(always)]
        move || {
            for (place, v) in place.iter_mut().zip(v) {
                *place = v.cast();
                if size_of::<V>() < size_of::<T>() {
                    *v = place.cast();
                }
            }
        },
    );
}

/// c, s and r of [c s; −s̄ c]·(f, g)ᵀ = (r, 0)ᵀ with real c and g ≥ 0.
fn rotation<T: Scalar>(f: T, g: T::Real) -> (T::Real, T, T) {
    let size = f.abs();
    if size == zero() {
        return (zero(), one(), T::from_real(g));
    }
    let length = size.to_f64().hypot(g.to_f64());
    let phase = over(f, size);
    let cosine = T::Real::from_f64(size.to_f64() / length);
    (cosine, phase * T::rounded(g.to_f64() / length, 0.0), phase * T::rounded(length, 0.0))
}

/// [c s; −s̄ c]·(top, below)ᵀ
fn rotate<T: Scalar>(cosine: T::Real, sine: T, top: T, below: T) -> (T, T) {
    let c = T::from_real(cosine);
    (c * top + sine * below, c * below - Scalar::conj(sine) * top)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bt_formats::c64;

    #[test]
    fn rotations_annihilate() {
        for f in [c64::new(3.0, -4.0), c64::new(0.0, 0.0), c64::new(1e200, 1e200)] {
            let (c, s, r) = rotation(f, 2.0);
            let (top, below) = rotate(c, s, f, c64::new(2.0, 0.0));
            assert!((top - r).norm() <= 1e-15 * r.norm() && below.norm() <= 1e-15 * r.norm(), "{f}");
        }
    }
}
