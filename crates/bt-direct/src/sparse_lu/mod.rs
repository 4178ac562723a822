//! Sparse LU with partial pivoting of a matrix without narrow structure: R·A·C equilibrated, P·(R·A·C)·Q = L·U.
//!
//! Steps: refuse NaN and infinity; scale rows and columns by powers of two ([`bt_formats::equilibrate`]); prove by a maximum matching
//! (`matching`) that the pattern is not singular; order the columns by AMD or COLAMD (`ordering`); eliminate
//! column by column with threshold pivoting (`simplicial`) as long as there is little fill; as soon as the flops
//! exceed a multiple of the non-zeros, by supernodes: of a pattern that is nearly symmetric in the AMD order, with interchanges inside
//! diagonal blocks, as long as elements do not grow (`blocked`); otherwise by faer's supernodal LU (`faer_supernodal`), whose factors are
//! accepted only after a trial solve. Where faer fails (it may panic or return NaN on singular matrices), the elimination by
//! columns is carried through and gives factors or names the singular column: every failure is a typed error. What the first two
//! cost is known before anything is eliminated ([`SymbolicLu`]).
//!
//! faer does not show its factors: with those [`Factorization::log_det`] eliminates once more by columns, and [`FactorStats`] has NaN
//! for growth, smallest pivot and flops, and estimates the entries of the factors.
//!
//! Only an exactly zero column is reported as singular. Rounding usually leaves a tiny pivot instead; then
//! [`Factorization::rcond`] tells.
//!
//! Storage: the factors (see `simplicial`) and A by columns, (4 + size of T)·nnz(A).
//!
//! | file | case |
//! |---|---|
//! | `scaled.rs` | what is eliminated: A by columns, scaled |
//! | `matching.rs` | a row with a nonzero for every column, or the first column left without one |
//! | `ordering.rs` | the order of the columns, and the pivots preferred |
//! | `fill.rs` | entries and flops of an elimination with these pivots, counted where no symmetric pattern tells them |
//! | `symbolic.rs` | what is known before anything is eliminated: the above, what it costs, and which way comes first |
//! | `simplicial.rs` | column by column: where there is little fill, and where all else fails |
//! | `blocked.rs`, `narrow.rs` | supernodes of a nearly symmetric pattern; those of up to eight columns |
//! | `faer_supernodal.rs` | all others: faer's supernodes, after a trial solve |

mod blocked;
mod faer_supernodal;
mod fill;
mod matching;
mod narrow;
mod ordering;
mod scaled;
mod simplicial;
mod symbolic;

use std::sync::Arc;

use bt_formats::{Csr, Monitor, Op, Progress, RealScalar, Scalar, buffers, is_odd, one, zero};
use faer::MatMut;
use faer::dyn_stack::StackReq;

use self::blocked::{Blocked, Outcome};
use self::faer_supernodal::Supernodal;
pub(crate) use self::matching::match_rows;
pub(crate) use self::ordering::colamd_order;
pub(crate) use self::scaled::{Csc, Scaled};
use self::scaled::{METHOD, held};
use self::simplicial::{Elimination, Simplicial};
pub use self::symbolic::SymbolicLu;
use crate::error::{FactorError, Result, Singularity};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::refine::{growth_limit, unit_roundoff};
use crate::sparse_cholesky::vectors::{Buffers, Route, Substitution, WIDE};

/// Growth beyond which the preferred pivots are given up for plain partial pivoting.
const GROWTH_LIMIT: f64 = 1e6;

/// A factored sparse matrix.
///
/// Growth and the smallest pivot in [`FactorStats`] are those of the equilibrated matrix, whose largest entries are
/// near 1.
///
/// ```
/// use bt_direct::{Factorization, SparseLu};
/// use bt_formats::Csr;
/// // [ 0 2 ]
/// // [ 1 4 ]
/// let a = Csr::new(2, 2, vec![0, 1, 3], vec![1, 0, 1], vec![2.0, 1.0, 4.0])?;
/// let lu = SparseLu::new(&a)?;
/// let mut x = [2.0, 5.0];
/// lu.solve_vec_in_place(&mut x);
/// assert_eq!(x, [1.0, 1.0]);
/// assert_eq!(lu.log_det().sign, -1.0);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
pub struct SparseLu<T: Scalar> {
    scaled: Scaled<T>,
    symbolic: Arc<SymbolicLu>,
    factors: Simplicial<T>,
    /// Supernodal factors on the symmetric pattern, or else faer's, where fill makes them worth it; then `factors` is empty.
    blocked: Option<Blocked<T>>,
    supernodal: Option<Supernodal<T>>,
    /// How the last elimination that succeeded began, and whether none has since.
    began: Way,
    failed: bool,
    buffers: Buffers<T>,
}

/// What the factors of the matrix before decide for the next one of its pattern.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// Nothing: by columns if that is cheap, else by supernodes.
    Open,
    /// By columns.
    Columns,
    /// By supernodes of the symmetric pattern, while growth allows it.
    Blocked,
    /// By faer's supernodes.
    Supernodal,
}

impl<T: Scalar> SparseLu<T> {
    /// Factors a square matrix.
    ///
    /// # Errors
    /// [`FactorError::Input`] when A is not square, not finite or too large; [`FactorError::Singular`] naming a column
    /// of A without a pivot; [`FactorError::Breakdown`] when elimination overflows, or leaves no pivot where elements have grown beyond 1/√u.
    ///
    /// # Cost
    /// Proportional to the flops of the elimination, which the fill decides ([`FactorStats::flops`] counts them).
    pub fn new(a: &Csr<T>) -> Result<Self> {
        Self::with_monitor(a, &mut ())
    }

    /// Like [`SparseLu::new`], observed every 64 columns.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    #[inline(never)]
    pub fn with_monitor(a: &Csr<T>, monitor: &mut dyn Monitor) -> Result<Self> {
        let scaled = Scaled::of(a)?;
        let symbolic = Arc::new(SymbolicLu::of(&scaled.a, a)?);
        Self::factored(scaled, symbolic, monitor)
    }

    /// Like [`SparseLu::with_monitor`], with the symbolic phase of a matrix of the same pattern.
    ///
    /// # Errors
    /// As there, and [`FactorError::Input`] when the pattern is another one.
    pub fn with_symbolic(a: &Csr<T>, symbolic: Arc<SymbolicLu>, monitor: &mut dyn Monitor) -> Result<Self> {
        let scaled = Scaled::of(a)?;
        symbolic.check_pattern(&scaled.a)?;
        Self::factored(scaled, symbolic, monitor)
    }

    #[inline(never)]
    fn factored(scaled: Scaled<T>, symbolic: Arc<SymbolicLu>, monitor: &mut dyn Monitor) -> Result<Self> {
        let n = scaled.a.n();
        let mut lu = Self {
            scaled,
            symbolic,
            factors: Simplicial::default(),
            blocked: None,
            supernodal: None,
            began: Way::Open,
            failed: false,
            buffers: Buffers::new(n, StackReq::EMPTY)?,
        };
        lu.eliminate(monitor)?;
        Ok(lu)
    }

    /// Order, preferred pivots and counts, for matrices of the same pattern.
    pub fn symbolic(&self) -> &Arc<SymbolicLu> {
        &self.symbolic
    }

    /// Factors a matrix with the same pattern and new values. Scaling and pivots are chosen anew, the order of the
    /// columns is kept. Memory is taken only where the new pivots cause more fill than before.
    ///
    /// After an error the factors are unusable: solves give NaN until a refactorisation succeeds.
    ///
    /// # Errors
    /// As [`SparseLu::new`], and [`FactorError::Input`] when the pattern is another one.
    pub fn refactor(&mut self, a: &Csr<T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// Like [`SparseLu::refactor`], observed every 64 columns.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    #[inline(never)]
    pub fn refactor_with_monitor(&mut self, a: &Csr<T>, monitor: &mut dyn Monitor) -> Result<()> {
        a.check_square()?;
        a.check_finite()?;
        self.scaled.check_pattern(a)?;
        self.scaled.load(a);
        self.eliminate(monitor)
    }

    fn eliminate(&mut self, monitor: &mut dyn Monitor) -> Result<()> {
        // After a failure as before it, so that the matrix before has its factors again, bit for bit.
        let way = match (&self.blocked, &self.supernodal) {
            _ if self.failed => self.began,
            (Some(_), _) => Way::Blocked,
            (_, Some(_)) => Way::Supernodal,
            (None, None) if self.factors.pivots.is_empty() => Way::Open,
            (None, None) => Way::Columns,
        };
        let outcome = self.eliminate_in_some_way(way, monitor);
        self.failed = outcome.is_err();
        if self.failed {
            self.blocked = None;
            self.supernodal = None;
            self.factors.invalidate(self.n());
        } else {
            self.began = way;
        }
        outcome
    }

    fn eliminate_in_some_way(&mut self, way: Way, monitor: &mut dyn Monitor) -> Result<()> {
        let symbolic = Arc::clone(&self.symbolic);
        let is_symmetric = symbolic.ordering().is_symmetric;
        let by_columns_first = way == Way::Columns || way == Way::Open && symbolic.is_by_columns();
        if by_columns_first && self.by_columns(symbolic.column_budget(), monitor)? == Elimination::Done {
            return Ok(());
        }
        if is_symmetric && way != Way::Supernodal && self.by_blocks(monitor)? {
            return Ok(());
        }
        // Pivots that supernodes do not find are cheap to look for where little was counted.
        let is_cheap = is_symmetric && way != Way::Supernodal && !by_columns_first && symbolic.may_be_by_columns();
        if is_cheap && self.by_columns(symbolic.column_budget(), monitor)? == Elimination::Done {
            return Ok(());
        }
        if self.by_supernodes() {
            return observed(monitor, self.scaled.a.n());
        }
        self.by_columns(f64::INFINITY, monitor).map(|_| ())
    }

    fn by_columns(&mut self, budget: f64, monitor: &mut dyn Monitor) -> Result<Elimination> {
        by_columns(&mut self.factors, &self.scaled, &self.symbolic, budget, monitor)
    }

    /// By supernodes of the symmetric pattern; not where these let elements grow, or faer's products have no room for their buffer.
    fn by_blocks(&mut self, monitor: &mut dyn Monitor) -> Result<bool> {
        let (a, norm_max) = (&self.scaled.a, self.scaled.norm_max);
        let limit = GROWTH_LIMIT.min(growth_limit(unit_roundoff::<T>()));
        let symbolic = &self.symbolic;
        let made = || Blocked::new(Arc::clone(symbolic.blocks().ok()?), symbolic.ordering());
        let made = || buffers::is_at_hand().then(made).flatten();
        let mut blocked = self.blocked.take().or_else(made);
        match blocked.as_mut().map(|b| b.factor(a, norm_max, limit, monitor)) {
            Some(Outcome::Sound) => {
                self.factors = Simplicial::default();
                self.blocked = blocked;
                Ok(true)
            }
            Some(Outcome::Stopped) => Err(FactorError::Stopped),
            Some(Outcome::Unsound) | None => Ok(false),
        }
    }

    /// By faer's supernodes; not where its factors do not solve, or its products have no room for their buffer.
    fn by_supernodes(&mut self) -> bool {
        let a = &self.scaled.a;
        self.supernodal = match self.supernodal.take() {
            Some(mut lu) => lu.factor(a).then_some(lu),
            None => buffers::is_at_hand().then(|| Supernodal::new(a, WIDE)).flatten(),
        };
        if self.supernodal.is_some() {
            self.factors = Simplicial::default();
        }
        self.supernodal.is_some()
    }

    /// The diagonal that stands on the right of op(A) in op(A)⁻¹ = C·op(R·A·C)⁻¹·R, and the one on its left.
    fn scaling(&self, op: Op) -> (&[T::Real], &[T::Real]) {
        let Scaled { row_factors, col_factors, .. } = &self.scaled;
        if op == Op::Identity { (row_factors, col_factors) } else { (col_factors, row_factors) }
    }

    /// P·(R·A·C)·Q = L·U: the order of right-hand sides, and of solutions.
    fn orders(&self, op: Op) -> (&[u32], &[u32]) {
        match &self.blocked {
            Some(lu) => lu.orders(op),
            None if op == Op::Identity => (&self.factors.row_order, &self.symbolic.ordering().col_order),
            None => (&self.symbolic.ordering().col_order, &self.factors.row_order),
        }
    }
}

/// L and U of own elimination.
struct OwnFactors<'a, T: Scalar> {
    lu: &'a SparseLu<T>,
    op: Op,
}

impl<T: Scalar> Substitution<T> for OwnFactors<'_, T> {
    fn substitute<const W: usize>(&self, y: &mut [[T; W]], work: &mut [[T; W]]) {
        let columns = &self.lu.factors;
        match (&self.lu.blocked, self.op) {
            (Some(lu), op) => lu.solve(op, y, work),
            (None, Op::Identity) => columns.solve(y),
            (None, Op::Adjoint) if !T::IS_REAL => columns.solve_transpose(y, Scalar::conj),
            (None, Op::Transpose | Op::Adjoint) => columns.solve_transpose(y, |v| v),
        }
    }
}

/// X ← diag(factors)·X
fn scale<T: Scalar>(mut x: MatMut<'_, T>, factors: &[T::Real]) {
    for k in 0..x.ncols() {
        let x = x.as_mut().col_mut(k).try_as_col_major_mut().expect("columns must be contiguous");
        x.as_slice_mut().iter_mut().zip(factors).for_each(|(v, &f)| *v *= T::from_real(f));
    }
}

/// The end of an elimination that runs to its end.
fn observed(monitor: &mut dyn Monitor, n: usize) -> Result<()> {
    if monitor.observe(Progress::Step { phase: "setup", done: n, total: n }).is_break() {
        return Err(FactorError::Stopped);
    }
    Ok(())
}

/// Elimination by columns with the ordering's preferred pivots, and with plain partial pivoting if elements grow.
fn by_columns<T: Scalar>(
    factors: &mut Simplicial<T>,
    scaled: &Scaled<T>,
    symbolic: &SymbolicLu,
    budget: f64,
    monitor: &mut dyn Monitor,
) -> Result<Elimination> {
    let (a, norm_max, ordering) = (&scaled.a, scaled.norm_max, symbolic.ordering());
    let threshold = ordering.threshold::<T::Real>();
    // What will not be carried through gets no room for all of it.
    let expected = symbolic.counted().filter(|counted| counted.flops <= budget).map(|c| (c.lower, c.upper));
    let mut factor = |factors: &mut Simplicial<T>, threshold| {
        factors.factor(a, &ordering.col_order, &ordering.row_of, threshold, (budget, expected), monitor)
    };
    let mut outcome = factor(factors, threshold);
    let grown = match &outcome {
        Ok(Elimination::Done) => factors.max_u > GROWTH_LIMIT * norm_max,
        Ok(Elimination::TooCostly) => false,
        Err(FactorError::Singular(_)) => factors.max_u > norm_max * growth_limit(unit_roundoff::<T>()),
        Err(e) => matches!(e, FactorError::Breakdown { .. }),
    };
    // Preferred pivots that let elements grow or overflow are not worth their sparsity.
    if grown && threshold < one() {
        outcome = factor(factors, one());
    }
    if let Ok(Elimination::TooCostly) = outcome {
        *factors = Simplicial::default();
    }
    outcome.map_err(|error| match error {
        FactorError::Singular(Singularity { column, block, .. }) => {
            FactorError::no_pivot(METHOD, column, block, factors.max_u / norm_max, growth_limit(unit_roundoff::<T>()))
        }
        FactorError::Breakdown { method, place, reason } => {
            FactorError::breakdown(method, place, format!("{reason}; use sparse-qr"))
        }
        other => other,
    })
}

impl<T: Scalar> Factorization<T> for SparseLu<T> {
    fn n(&self) -> usize {
        self.scaled.a.n()
    }

    fn method(&self) -> &'static str {
        METHOD
    }

    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, mut x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n(), "rows of the right-hand sides");
        let (before, after) = self.scaling(op);
        if let Some(lu) = &self.supernodal {
            scale(x.as_mut(), before);
            for j in (0..x.ncols()).step_by(WIDE) {
                let count = WIDE.min(x.ncols() - j);
                lu.solve(op, x.as_mut().subcols_mut(j, count));
            }
            return scale(x, after);
        }
        let (from, to) = self.orders(op);
        let there = Route(from, |i: usize, v: T| v * T::from_real(before[i]));
        let back = Route(to, |i: usize, v: T| v * T::from_real(after[i]));
        self.buffers.solve(&there, &back, x, |y| y.substitute(&OwnFactors { lu: self, op }));
    }

    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        self.refactor_with_monitor(&*a.csr()?, monitor)
    }

    fn stats(&self) -> FactorStats {
        let (f, &Scaled { ref a, norm_one, norm_max, .. }) = (&self.factors, &self.scaled);
        let held = held::<T>(a.n(), a.row_idx.len());
        if let Some(lu) = &self.blocked {
            let ((growth, min_pivot), (nnz, bytes, flops)) = (lu.measured(), lu.counts());
            let bytes = bytes + held;
            return FactorStats { norm_one, growth, min_pivot, boosted_pivots: 0, nnz, bytes, flops };
        }
        if let Some(lu) = &self.supernodal {
            let ((nnz, bytes), unknown) = (lu.counts(), f64::NAN);
            return FactorStats {
                norm_one,
                growth: unknown,
                min_pivot: unknown,
                boosted_pivots: 0,
                nnz,
                bytes: bytes + held,
                flops: unknown,
            };
        }
        FactorStats {
            norm_one,
            growth: if norm_max > 0.0 { f.max_u / norm_max } else { 1.0 },
            min_pivot: f.pivots.iter().map(|p| p.abs().to_f64()).fold(f64::INFINITY, f64::min_nan),
            boosted_pivots: 0,
            nnz: f.nnz(),
            bytes: f.bytes() + held,
            flops: f.flops,
        }
    }

    #[inline(never)]
    fn log_det(&self) -> LogDet<T> {
        // det A = det(R·A·C) / (∏rᵢ·∏cⱼ)
        if let Some(lu) = &self.blocked {
            let mut det = lu.log_det();
            det.log_abs -= self.scaled.log_of_factors();
            return det;
        }
        let mut det = LogDet::one();
        let again;
        let factors = if self.supernodal.is_none() {
            &self.factors
        } else {
            let mut columns = Simplicial::default();
            match by_columns(&mut columns, &self.scaled, &self.symbolic, f64::INFINITY, &mut ()) {
                Ok(_) => again = columns,
                // Singular after all, by another order of operations.
                Err(_) => return LogDet { sign: zero(), log_abs: f64::NEG_INFINITY },
            }
            &again
        };
        factors.pivots.iter().for_each(|&p| det.multiply(p));
        det.log_abs -= self.scaled.log_of_factors();
        if is_odd(&factors.row_order) != is_odd(&self.symbolic.ordering().col_order) {
            det.negate();
        }
        det
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::SingularKind;
    use bt_formats::Error;

    fn dense(n: usize, rows: &[f64]) -> Csr<f64> {
        let (mut ptr, mut idx, mut val) = (vec![0], vec![], vec![]);
        for row in rows.chunks(n.max(1)) {
            for (j, &v) in row.iter().enumerate().filter(|e| *e.1 != 0.0) {
                idx.push(j as u32);
                val.push(v);
            }
            ptr.push(idx.len() as u32);
        }
        Csr::new(n, n, ptr, idx, val).unwrap()
    }

    fn singularity(a: &Csr<f64>) -> Singularity {
        match SparseLu::new(a) {
            Err(FactorError::Singular(s)) => s,
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("factored"),
        }
    }

    #[test]
    fn zero_diagonal_needs_a_row_exchange() {
        let lu = SparseLu::new(&dense(2, &[0.0, 1.0, 1.0, 0.0])).unwrap();
        let mut x = [3.0, 5.0];
        lu.solve_vec_in_place(&mut x);
        assert_eq!(x, [5.0, 3.0]);
        assert_eq!(lu.log_det(), LogDet { sign: -1.0, log_abs: 0.0 });
    }

    #[test]
    fn singular_matrices_are_named() {
        let structural = |column| Singularity { kind: SingularKind::Structural, column, block: None };
        // A zero column, an empty row (some column is left over), a zero 2 × 2 block, a stored zero.
        assert_eq!(singularity(&dense(2, &[1.0, 0.0, 1.0, 0.0])), structural(1));
        assert_eq!(singularity(&dense(2, &[1.0, 1.0, 0.0, 0.0])).kind, SingularKind::Structural);
        let block = [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0];
        assert_eq!(singularity(&dense(3, &block)).kind, SingularKind::Structural);
        let stored_zero = Csr::new(1, 1, vec![0, 1], vec![0], vec![0.0]).unwrap();
        assert_eq!(singularity(&stored_zero), structural(0));
        // Numerically: rank one, and the 3 × 3 zero-sum matrix.
        assert_eq!(singularity(&dense(2, &[1.0; 4])).kind, SingularKind::Numerical);
        let zero_sums = [1.0, -1.0, 0.0, 0.0, 1.0, -1.0, -1.0, 0.0, 1.0];
        assert_eq!(singularity(&dense(3, &zero_sums)).kind, SingularKind::Numerical);
    }

    #[test]
    fn smallest_sizes() {
        let empty = SparseLu::new(&dense(0, &[])).unwrap();
        empty.solve_vec_in_place(&mut []);
        assert_eq!((empty.log_det(), empty.rcond()), (LogDet::one(), 1.0));
        let lu = SparseLu::new(&dense(1, &[-4.0])).unwrap();
        let mut x = [8.0];
        lu.solve_vec_in_place(&mut x);
        assert_eq!(x, [-2.0]);
        assert_eq!(lu.log_det().sign, -1.0);
        assert!((lu.log_det().log_abs - 4f64.ln()).abs() < 1e-15);
    }

    #[test]
    fn extreme_scales() {
        let a = dense(3, &[1e300, 2e300, 0.0, 3e-300, -1e-300, 1e-300, 0.0, 5.0, 1e200]);
        let lu = SparseLu::new(&a).unwrap();
        // b = A·(1, 1, 1)
        let mut x = [3e300, 3e-300, 1e200 + 5.0];
        lu.solve_vec_in_place(&mut x);
        for v in x {
            assert!((v - 1.0).abs() < 1e-14, "{x:?}");
        }
        // det = 1e300·(−1e−300·1e200 − 5e−300) − 2e300·3e−300·1e200 = −7e200
        let det = lu.log_det();
        assert_eq!(det.sign, -1.0);
        assert!((det.log_abs - (7f64.ln() + 200.0 * 10f64.ln())).abs() < 1e-10);
    }

    #[test]
    fn input_is_refused_by_name() {
        let nan = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![1.0, f64::NAN]).unwrap();
        assert!(matches!(SparseLu::new(&nan), Err(FactorError::Input(Error::NonFinite { row: 1, col: 1, .. }))));
        let wide = Csr::new(1, 2, vec![0, 1], vec![0], vec![1.0]).unwrap();
        assert!(matches!(SparseLu::new(&wide), Err(FactorError::Input(Error::NotSquare { .. }))));
    }

    #[test]
    fn a_failed_refactorisation_gives_nan_and_the_next_one_recovers() {
        let good = dense(2, &[1.0, 2.0, 3.0, 4.0]);
        let bad = dense(2, &[1.0; 4]);
        let mut lu = SparseLu::new(&good).unwrap();
        assert!(lu.refactor(&bad).is_err());
        let mut x = [1.0, 1.0];
        lu.solve_vec_in_place(&mut x);
        assert!(x.iter().all(|v| v.is_nan()));
        lu.refactor(&good).unwrap();
        let mut x = [3.0, 7.0];
        lu.solve_vec_in_place(&mut x);
        assert!((x[0] - 1.0).abs() < 1e-15 && (x[1] - 1.0).abs() < 1e-15);
        let other = dense(2, &[1.0, 2.0, 0.0, 4.0]);
        assert!(matches!(lu.refactor(&other), Err(FactorError::Input(_))));
    }
}
