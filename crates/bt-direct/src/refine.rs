//! Iterative refinement of a direct solution, with the residual in twice the working precision, until the backward error
//! stops improving.
//!
//! Refinement makes a solve backward stable even when the factors are not quite (Skeel, Math. Comp. 35, 1980,
//! doi:10.1090/S0025-5718-1980-0572859-4), componentwise too. The residual is the one that the certificate was computed
//! from, so that a step costs a solve and one pass over A. A step that does not improve is undone. Several right-hand sides
//! are refined together and judged by the worst. Memory: the residual, as large as B, and as much when a step is made; a caller may
//! keep both ([`RefinementVectors`]).

use bt_formats::{Certificate, Matrix, Op, RealScalar, Scalar, certify_with_residual};
use faer::{Mat, MatMut, MatRef};

use crate::factorization::Factorization;

/// How many steps at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refinement {
    /// Until the backward error is a few units of roundoff, normwise and componentwise, or stops improving; at most three steps.
    Auto,
    /// As `Auto` with no other limit than fifty steps, for factors that are far from those of A: in lower precision, boosted.
    /// Where a row says nothing yet (a componentwise error near 1: its unknowns are far below the others), as long as some
    /// unknown's correction is half of the one before.
    Stagnation,
    /// Exactly this many, each kept only if it improves.
    Steps(usize),
}

/// What refinement did.
#[derive(Clone, Copy, Debug)]
pub struct Refined {
    /// Steps that were kept.
    pub steps: usize,
    /// The certificate of the x returned.
    pub certificate: Certificate,
    /// Products with A, the certificate's included.
    pub operator_applications: usize,
    /// Solves with the factors.
    pub solves: usize,
}

/// Improves `x` as a solution of op(A)·X = B with the factors of (a neighbour of) A: r ← B − op(A)·X, X ← X + op(F)⁻¹r.
///
/// # Panics
/// When shapes disagree or columns are not contiguous.
#[inline(never)]
pub fn refine<T: Scalar, A: Matrix<T> + ?Sized, F: Factorization<T> + ?Sized>(
    a: &A,
    factors: &F,
    op: Op,
    b: MatRef<'_, T>,
    x: &mut Mat<T>,
    refinement: Refinement,
) -> Refined {
    refine_in(a, factors, op, b, x.as_mut(), refinement, &mut RefinementVectors::default())
}

/// The vectors that refinement works in: kept for the next right-hand sides, they are taken once for all that have one shape.
#[derive(Debug)]
pub struct RefinementVectors<T> {
    residual: Mat<T>,
    /// X with the correction of a step, once there was one.
    stepped: Mat<T>,
}

impl<T: Scalar> Default for RefinementVectors<T> {
    fn default() -> Self {
        Self { residual: Mat::new(), stepped: Mat::new() }
    }
}

impl<T: Scalar> RefinementVectors<T> {
    /// The last residual: that of X, or of what the last step made of it where that was not kept.
    pub fn residual(&self) -> MatRef<'_, T> {
        self.residual.as_ref()
    }

    /// The same, to be written.
    pub fn residual_mut(&mut self) -> MatMut<'_, T> {
        self.residual.as_mut()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        [&self.residual, &self.stepped].map(|m| m.nrows() * m.ncols() * size_of::<T>()).iter().sum()
    }
}

/// `m` with so many rows and columns.
fn fit<T: Scalar>(m: &mut Mat<T>, rows: usize, cols: usize) {
    if (m.nrows(), m.ncols()) != (rows, cols) {
        *m = Mat::zeros(rows, cols);
    }
}

/// As [`refine`], in vectors of the caller's.
///
/// # Panics
/// As there.
#[inline(never)]
pub fn refine_in<T: Scalar, A: Matrix<T> + ?Sized, F: Factorization<T> + ?Sized>(
    a: &A,
    factors: &F,
    op: Op,
    b: MatRef<'_, T>,
    mut x: MatMut<'_, T>,
    refinement: Refinement,
    vectors: &mut RefinementVectors<T>,
) -> Refined {
    let max_steps = match refinement {
        Refinement::Auto => 3,
        Refinement::Stagnation => 50,
        Refinement::Steps(n) => n,
    };
    // Below a few units of roundoff nothing is left to improve; what is nearly there is not worth a step.
    let u = unit_roundoff::<T>();
    let goal = 2.0 * u;
    let good = |c: &Certificate| match refinement {
        Refinement::Auto => c.backward_error <= 8.0 * u && c.componentwise_backward_error <= 32.0 * u,
        Refinement::Stagnation => c.backward_error <= goal && c.componentwise_backward_error <= 8.0 * goal,
        Refinement::Steps(_) => false,
    };
    // r ← B − op(A)·X
    let RefinementVectors { residual: r, stepped } = vectors;
    fit(r, b.nrows(), b.ncols());
    let certificate = certify_with_residual(a, op, x.as_ref(), b, r.as_mut());
    let mut done = Refined { steps: 0, certificate, operator_applications: b.ncols(), solves: 0 };
    let auto = !matches!(refinement, Refinement::Steps(_));
    let mut corrections = (refinement == Refinement::Stagnation).then(|| Corrections::new(x.as_ref()));
    for _ in 0..max_steps {
        let c = done.certificate;
        if good(&c) {
            break;
        }
        // d ← op(F)⁻¹·r;  X' ← X + d;  r ← B − op(A)·X'
        fit(stepped, b.nrows(), b.ncols());
        stepped.copy_from(&*r);
        factors.solve_op_in_place(op, stepped.as_mut());
        let shrinks = corrections.as_mut().is_some_and(|before| before.replace(stepped.as_ref(), x.as_ref()));
        *stepped += x.as_ref();
        let certificate = certify_with_residual(a, op, stepped.as_ref(), b, r.as_mut());
        done.operator_applications += b.ncols();
        done.solves += b.ncols();
        let silent =
            c.componentwise_backward_error > SILENT && certificate.backward_error <= c.backward_error.max(goal);
        let blind = silent && shrinks;
        if !blind && !better(&certificate, &c, goal) {
            break;
        }
        x.copy_from(&*stepped);
        done.steps += 1;
        done.certificate = certificate;
        // Progress by less than a factor two is the end of it.
        let slow = |new: f64, old: f64| new > 0.5 * old;
        let normwise = refinement == Refinement::Auto || slow(certificate.backward_error, c.backward_error);
        if auto && !blind && normwise && slow(certificate.componentwise_backward_error, c.componentwise_backward_error)
        {
            break;
        }
    }
    done
}

/// A componentwise backward error that tells nothing about progress: an unknown far below the others has no digit yet.
const SILENT: f64 = 0.1;

/// |dᵢ| of the step before, by columns.
struct Corrections(Vec<f64>);

impl Corrections {
    fn new<T: Scalar>(x: MatRef<'_, T>) -> Self {
        Self(vec![f64::INFINITY; x.nrows() * x.ncols()])
    }

    /// Takes the corrections `d` of `x`. Whether one of them that still changes its unknown is half of the one before.
    fn replace<T: Scalar>(&mut self, d: MatRef<'_, T>, x: MatRef<'_, T>) -> bool {
        let settled = 4.0 * unit_roundoff::<T>();
        let mut shrinks = false;
        for (k, before) in self.0.iter_mut().enumerate() {
            let (i, j) = (k % x.nrows(), k / x.nrows());
            let size = d[(i, j)].abs1().to_f64();
            shrinks |= size > settled * x[(i, j)].abs1().to_f64() && size <= 0.5 * *before;
            *before = size;
        }
        shrinks
    }
}

/// Better in the componentwise sense without being worse in the normwise sense, beyond the noise of rounding.
fn better(new: &Certificate, old: &Certificate, noise: f64) -> bool {
    if !old.backward_error.is_finite() {
        return new.backward_error.is_finite();
    }
    new.backward_error < 0.5 * old.backward_error
        || (new.componentwise_backward_error < old.componentwise_backward_error
            && new.backward_error <= old.backward_error.max(noise))
}

/// u: half the distance from 1 to the next number.
pub fn unit_roundoff<T: Scalar>() -> f64 {
    <T::Real as RealScalar>::EPSILON.to_f64() / 2.0
}

/// 1/√u: growth of elements beyond which factors are worth nothing, since rounding errors of the size u·growth may be half the digits of
/// an entry.
pub fn growth_limit(u: f64) -> f64 {
    u.sqrt().recip()
}
