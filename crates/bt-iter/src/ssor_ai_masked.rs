//! The SSOR approximate inverse M̄ = K̄ᴴ·K̄ of order 1, formed once and kept on the pattern of A: one product an application.
//!
//! ```text
//! M̄ = (2−ω)·(I − Nᴴ)·D̄⁻¹·(I − N),  N = L·D̄⁻¹;   M̄_A has the entries of M̄ at the places of A
//! ```
//!
//! R. Helfenstein, J. Koko, J. Comput. Appl. Math. 236 (2012) 3584–3590, doi:10.1016/j.cam.2011.04.025, with ω = 1.1. Unlike
//! M̄, M̄_A can lose definiteness as ω grows (from 1.3 on for the 5-point Laplacian), so that it is checked: by rows that
//! dominate, which proves it, or by the signs of 50 steps of conjugate gradients on M̄_A itself, which finds what an
//! iteration would find.
//!
//! Storage: the pattern of A and as many values. Cost: setup Σ (entries of a row)² over the rows of A; 2 flops an entry.

use bt_direct::{FactorError, Place, Result};
use bt_formats::{Breakdown, Csr, Error, LinearOperator, Matrix, Outcome, Scalar, StopCriterion, one, zero};

use crate::cg::Cg;
use crate::hermitian::{check_omega, positive_diagonal, relaxed_inverse};
use crate::incomplete_lu::{check_refactor, spread};
use crate::preconditioner::{Identity, Preconditioner, PreconditionerKind, Refactor, check_lengths};

/// Steps of conjugate gradients that look for a direction of negative curvature.
const PROBES: usize = 50;

/// The preconditioner.
///
/// ```
/// use bt_formats::Csr;
/// use bt_iter::{Preconditioner, SsorAiMasked};
/// let a = Csr::from_dense(faer::mat![[2.0, -1.0], [-1.0, 2.0]].as_ref())?;
/// // The pattern is full: M̄ = [5/8 1/4; 1/4 1/2] itself.
/// let mut z = [0.0; 2];
/// SsorAiMasked::new(&a)?.apply(&[8.0, 0.0], &mut z);
/// assert_eq!(z, [5.0, 2.0]);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SsorAiMasked<T> {
    omega: f64,
    product: Csr<T>,
    kind: PreconditionerKind,
    /// The last refactorisation failed: applications give NaN.
    failed: bool,
}

impl<T: Scalar> SsorAiMasked<T> {
    /// Like [`SsorAiMasked::with_options`], with ω = 1.
    ///
    /// # Errors
    /// As [`SsorAiMasked::with_options`].
    pub fn new(a: &Csr<T>) -> Result<Self> {
        Self::with_options(a, 1.0)
    }

    /// For `a` Hermitian with a positive diagonal. The kind is `Spd` where dominance proves it, else `General`.
    ///
    /// # Errors
    /// [`FactorError::Input`] when A is not square, not finite or not Hermitian, or ω is not between 0 and 2;
    /// [`FactorError::Breakdown`] naming a row whose diagonal entry is not positive, or when M̄_A is not definite.
    #[inline(never)]
    pub fn with_options(a: &Csr<T>, omega: f64) -> Result<Self> {
        check_omega(omega)?;
        let mut m = Self { omega, product: a.clone(), kind: PreconditionerKind::Spd, failed: false };
        m.fill(a)?;
        Ok(m)
    }

    /// M̄_A, of the matrix it was last made for.
    pub fn matrix(&self) -> &Csr<T> {
        &self.product
    }

    /// M̄_A from A, and what it is.
    fn fill(&mut self, a: &Csr<T>) -> Result<()> {
        let diagonal = positive_diagonal(a, "ssor-ai-masked")?;
        let inverse = |(i, d)| relaxed_inverse(self.omega, d, i, "ssor-ai-masked");
        let inverses = diagonal.into_iter().enumerate().map(inverse).collect::<Result<Vec<T>>>()?;
        masked(a, &inverses, T::rounded(2.0 - self.omega, 0.0), &mut self.product)?;
        self.product.check_finite().map_err(|error| {
            let row = if let Error::NonFinite { row, .. } = error { Some(Place::Row(row)) } else { None };
            let reason = "elements of the masked inverse overflow; use ssor-ai, or multiply A and b by a power of two";
            FactorError::breakdown("ssor-ai-masked", row, reason)
        })?;
        self.kind = if dominates(&self.product) { PreconditionerKind::Spd } else { PreconditionerKind::General };
        if self.kind == PreconditionerKind::General {
            probe(&self.product, self.omega)?;
        }
        Ok(())
    }
}

impl<T: Scalar> Refactor<T> for SsorAiMasked<T> {
    /// Keeps the pattern, of which A may have less but not more; 3n values of work are taken for the time of the call.
    #[inline(never)]
    fn refactor(&mut self, a: &Csr<T>) -> Result<()> {
        self.failed = true;
        check_refactor(self.product.nrows(), a)?;
        self.fill(a)?;
        self.failed = false;
        Ok(())
    }
}

/// Row i of M̄ on the pattern of row i of A: Σₖ conj(Pₖᵢ)·d̄ₖ·Pₖ, P = I − N, over the k ≥ i with an entry in column i. By
/// symmetry those are the columns of row i from the diagonal on.
fn masked<T: Scalar>(a: &Csr<T>, inverses: &[T], scale: T, out: &mut Csr<T>) -> Result<()> {
    let n = a.nrows();
    let (mut w, mut owner) = (vec![zero::<T>(); n], vec![u32::MAX; n]);
    for i in 0..n {
        let (cols, vals) = a.row(i);
        for &j in cols {
            (w[j as usize], owner[j as usize]) = (zero(), i as u32);
        }
        let from = cols.partition_point(|&k| (k as usize) < i);
        for (&k, &above) in cols[from..].iter().zip(&vals[from..]) {
            let k = k as usize;
            // conj(Pₖᵢ): a(i, k) is the conjugate of a(k, i).
            let left = if k == i { one() } else { -(above * inverses[i]) };
            let factor = scale * left * inverses[k];
            let (row, entries) = a.row(k);
            for (&j, &v) in row.iter().zip(entries).take_while(|(j, _)| **j as usize <= k) {
                let j = j as usize;
                if owner[j] == i as u32 {
                    let right = if j == k { one() } else { -(v * inverses[j]) };
                    w[j] += factor * right;
                }
            }
        }
        spread(i, cols.iter().map(|&j| (j, w[j as usize])), out.row_mut(i))?;
    }
    Ok(())
}

/// Whether every diagonal entry exceeds the other moduli of its row.
fn dominates<T: Scalar>(m: &Csr<T>) -> bool {
    (0..m.nrows()).all(|i| {
        let (cols, vals) = m.row(i);
        let others = cols.iter().zip(vals).filter(|(j, _)| **j as usize != i).map(|(_, v)| v.abs()).sum::<T::Real>();
        m.get(i, i).re() > others
    })
}

/// Conjugate gradients on M̄_A from a rough right-hand side: their pivots are those of the Lanczos matrix.
fn probe<T: Scalar>(m: &Csr<T>, omega: f64) -> Result<()> {
    let n = m.nrows();
    // Numbers in (−1, 1) without a pattern: fractional parts of multiples of the golden ratio.
    let rough: Vec<T> =
        (1..=n).map(|i| T::rounded((i as f64 * 0.618_033_988_749_895).fract() * 2.0 - 1.0, 0.0)).collect();
    let stop = StopCriterion { rtol: 1e-6, max_iters: PROBES.min(n), ..StopCriterion::default() };
    let mut x = vec![zero(); n];
    let report = Cg::new(n).solve(m, &mut Identity::new(n), &rough, &mut x, &stop, &mut ())?;
    if report.outcome == Outcome::Breakdown(Breakdown::IndefiniteOperator) {
        let reason =
            format!("the masked inverse is not positive definite for omega = {omega}; use a smaller one, or ssor-ai");
        return Err(FactorError::breakdown("ssor-ai-masked", None, reason));
    }
    Ok(())
}

impl<T: Scalar> Preconditioner<T> for SsorAiMasked<T> {
    fn n(&self) -> usize {
        self.product.nrows()
    }
    fn name(&self) -> &'static str {
        "ssor-ai-masked"
    }
    fn kind(&self) -> PreconditionerKind {
        self.kind
    }
    #[inline(never)]
    fn apply(&mut self, r: &[T], z: &mut [T]) {
        check_lengths(self.product.nrows(), r, z);
        if self.failed {
            z.fill(T::nan_impl());
            return;
        }
        self.product.apply(one(), r, zero(), z);
    }
    fn nnz(&self) -> usize {
        self.product.nnz()
    }
    fn bytes(&self) -> usize {
        self.product.bytes()
    }
}
