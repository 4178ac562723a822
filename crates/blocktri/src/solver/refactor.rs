//! New values for a factored system, in the memory of its factors where that makes the same answers.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bt_direct::{FactorError, Given};
use bt_formats::{Csr, Error as InputError, Monitor, Note, PhaseTimes, Scalar};

use crate::check::check_matrix;
use crate::error::Error;
use crate::factoring::factor;
use crate::factors::Factored;
use crate::held::{Format, Held};
use crate::method::Precision;
use crate::prepare::{prepared, transform};
use crate::reordered::{Ordered, Transform};
use crate::solver::Solver;

impl<T: Scalar> Solver<T> {
    /// Factors new values: the same method, in the same order where the pattern has not changed; then also in the same memory, with all
    /// that was found from the pattern (`sparse-lu` keeps the order of its columns), unless values decide more than the factors: where
    /// rows and columns are scaled, factors are in single precision, or the method chooses for each component, is SPIKE or has butterflies. Of
    /// [`Method::Auto`](crate::Method::Auto) a method that the new values break down leads to another choice.
    ///
    /// # Errors
    /// As [`Solver::new`], and [`Error::Input`] when the size has changed. The solver stays as it was then: its answers have the same
    /// bits.
    ///
    /// # Cost
    /// The elimination, and after an error in the same memory once more, for the values before.
    ///
    /// # Example
    /// ```
    /// use blocktri::{Csr, SolveOptions, Solver, faer::mat};
    /// let mut solver = Solver::new(&Csr::from_dense(mat![[2.0, 1.0], [1.0, 2.0]].as_ref())?, &SolveOptions::default(), &mut ())?;
    /// solver.refactor(&Csr::from_dense(mat![[4.0, 1.0], [1.0, 2.0]].as_ref())?, &mut ())?;
    /// assert!((solver.log_det().log_abs - 7f64.ln()).abs() < 1e-15);
    /// # Ok::<(), blocktri::Error>(())
    /// ```
    pub fn refactor<'a>(&mut self, a: impl Into<Given<'a, T>>, monitor: &mut dyn Monitor) -> Result<(), Error> {
        let a = a.into();
        let (expected, (rows, cols)) = (self.a.n(), a.shape());
        if rows == cols && rows != expected {
            return Err(InputError::DimensionMismatch { what: "rows of the matrix", expected, found: rows }.into());
        }
        match (a, &self.a) {
            (Given::Csr(a), Held::Rows(_)) => self.refactor_rows(a, monitor),
            (_, Held::Rows(_)) => self.refactor_rows(&*a.csr()?, monitor),
            (_, Held::Format { .. }) => self.refactor_format(a, monitor),
        }
    }

    /// In the same format in the same memory; anything else is a new beginning.
    fn refactor_format(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<(), Error> {
        let start = Instant::now();
        let Held::Format { format: old, .. } = &self.a else { unreachable!("rows have another way") };
        let new = Format::of(a)?.filter(|new| new.stored.is_like(&old.stored));
        if let Some(new) = new.filter(|_| !self.factored.chooses_by_values()) {
            match self.factored.refactor(new.given(), monitor) {
                Ok(()) => {
                    self.times = PhaseTimes { reorder: Duration::ZERO, setup: start.elapsed(), ..self.times };
                    self.a = Held::in_format(new);
                    (self.doubt, self.regular) = (OnceLock::new(), OnceLock::new());
                    return Ok(());
                }
                Err(failure) => {
                    let old = old.given();
                    // What was factored once fails only where memory has become short; then the factors are void.
                    let _ = self.factored.refactor(old, &mut ());
                    if matches!(failure, Error::Factor(FactorError::Stopped)) {
                        return Err(failure);
                    }
                }
            }
        }
        Self::new(a, &self.options, monitor).map(|other| *self = other)
    }

    fn refactor_rows(&mut self, a: &Csr<T>, monitor: &mut dyn Monitor) -> Result<(), Error> {
        check_matrix(a)?;
        let start = Instant::now();
        let mut notes = Vec::new();
        let new = prepared(a, &mut notes)?;
        let same_pattern = new.has_pattern_of(self.a.rows());
        let in_place = same_pattern && self.factoring.precision == Precision::Working && self.factored.can_take(&new);
        let reorder;
        let done = if in_place {
            reorder = start.elapsed();
            self.factored.refactor((&new).into(), monitor)
        } else {
            let transform = self.transform_of(&new, same_pattern, &mut notes)?;
            reorder = start.elapsed();
            let (method, precision) = (self.factored.method, self.factoring.precision);
            let made = factor(&new, method, transform, precision, &self.options, monitor);
            made.map(|factored| self.factored = factored)
        };
        let done = match done {
            Ok(()) => {
                let setup = start.elapsed().saturating_sub(reorder);
                self.times = PhaseTimes { reorder, setup, ..self.times };
                (self.a, self.notes) = (Held::Rows(new), notes);
                (self.doubt, self.regular) = (OnceLock::new(), OnceLock::new());
                return Ok(());
            }
            Err(Error::Singular(_) | Error::Factor(FactorError::Breakdown { .. } | FactorError::Failed { .. }))
                if self.options.method.is_auto() =>
            {
                Self::by_rows(a, &self.options, monitor).map(|other| *self = other)
            }
            Err(other) => Err(other),
        };
        if done.is_err() && in_place {
            self.restore();
        }
        done
    }

    /// The order of the factors for a matrix of their pattern, if rows and columns have one, and otherwise what was asked for.
    fn transform_of(&self, a: &Csr<T>, same_pattern: bool, notes: &mut Vec<Note>) -> Result<Ordered<T>, Error> {
        let Factored { method, reorder, ref factors, .. } = self.factored;
        match factors.symmetric_order().filter(|_| same_pattern) {
            Some(order) => Ok((Transform::symmetric(order), reorder)),
            None => transform(a, Some(method), reorder, notes),
        }
    }

    /// The factors of A in the place of void ones. What was factored once fails only where memory has become short; then the factors stay
    /// void, and their answers are NaN.
    fn restore(&mut self) {
        let a = self.a.rows();
        if self.factored.refactor(a.into(), &mut ()).is_ok() {
            return;
        }
        let precision = self.factoring.precision;
        if let Ok(transform) = self.transform_of(a, true, &mut Vec::new())
            && let Ok(factored) = factor(a, self.factored.method, transform, precision, &self.options, &mut ())
        {
            self.factored = factored;
        }
    }
}

#[cfg(test)]
mod tests {
    use bt_formats::CancelToken;
    use faer::Mat;

    use super::*;
    use crate::direct::{DIRECT, Direct, DirectRow, Family};
    use crate::options::SolveOptions;

    const N: usize = 40;

    /// A chain with this diagonal, from the first row to the last; of it what a method takes.
    fn chain(row: &DirectRow, diagonal: impl Fn(usize) -> f64) -> Csr<f64> {
        let beside = match row.family {
            Family::Diagonal => [0.0; 2],
            Family::Triangular => [-1.0, 0.0],
            _ => [-1.0; 2],
        };
        let value = |i: usize, j: usize| match (i, j) {
            _ if i == j => diagonal(i),
            _ if i == j + 1 => beside[0],
            _ if j == i + 1 => beside[1],
            _ => 0.0,
        };
        Csr::from_dense(Mat::from_fn(N, N, value).as_ref()).unwrap()
    }

    /// All that a solver tells, bit for bit.
    fn told(solver: &Solver<f64>) -> (Vec<u64>, Vec<Note>, Option<u64>) {
        let b = Mat::from_fn(N, 2, |i, j| 1.0 + ((3 * i + j) % 5) as f64);
        let found = solver.solve(b.as_ref()).unwrap();
        let x = (0..2).flat_map(|j| found.x.col_as_slice(j).iter().map(|v| v.to_bits()).collect::<Vec<_>>()).collect();
        (x, found.report.notes, found.rcond.map(f64::to_bits))
    }

    fn made(row: &DirectRow, a: &Csr<f64>) -> Solver<f64> {
        Solver::new(a, &SolveOptions::by(row.method), &mut ()).unwrap_or_else(|e| panic!("{}: {e}", row.name))
    }

    #[test]
    fn new_values_make_what_a_new_solver_is() {
        for row in DIRECT {
            let (first, second) = (chain(row, |i| 4.0 + (i % 3) as f64), chain(row, |i| 3.0 + (i % 7) as f64));
            let mut solver = made(row, &first);
            let in_place = solver.factored.can_take(&second);
            let chooses = matches!(row.name, "components" | "spike" | "spike-truncated" | "block-rbt" | "rbt");
            assert_eq!(in_place, !chooses, "{}", row.name);
            solver.rcond();
            solver.refactor(&second, &mut ()).unwrap();
            assert_eq!(told(&solver), told(&made(row, &second)), "{}", row.name);
            assert_eq!(solver.rcond(), made(row, &second).rcond(), "{}", row.name);
        }
    }

    #[test]
    fn what_fails_leaves_the_answers_that_there_were() {
        let mut failed = 0;
        for row in DIRECT {
            let first = chain(row, |i| 4.0 + (i % 3) as f64);
            // Singular: rows sum to zero, and every pivot but the last is 1.
            let singular = chain(row, |i| if i == 0 || i == N - 1 { 1.0 } else { 2.0 });
            let mut solver = made(row, &first);
            // What was factored in place has to come back as well as what was factored at first.
            for values in [first, chain(row, |i| 3.0 + (i % 7) as f64)] {
                solver.refactor(&values, &mut ()).unwrap();
                let before = told(&solver);
                let cancelled = CancelToken::new();
                cancelled.cancel();
                let monitors: [&mut dyn Monitor; 2] = [&mut { cancelled }, &mut ()];
                for monitor in monitors {
                    // Some methods are not observed, and some do not see that the matrix is singular.
                    match solver.refactor(&singular, monitor) {
                        Ok(()) => solver.refactor(&values, &mut ()).unwrap(),
                        Err(_) => failed += 1,
                    }
                    assert_eq!(told(&solver), before, "{}", row.name);
                }
            }
        }
        assert!(failed >= 2 * 30, "only {failed} refactorisations failed");
    }

    #[test]
    fn what_scales_chooses_or_is_in_single_precision_is_factored_anew() {
        let row = Direct::BandLu.row();
        let plain = chain(row, |i| 4.0 + (i % 3) as f64);
        let units = |by: f64| {
            plain.scale(&std::array::from_fn::<_, N, _>(|i| if i.is_multiple_of(2) { by } else { 1.0 }), &[1.0; N])
        };
        let mut solver = made(row, &plain);
        assert!(solver.factored.can_take(&units(2.0)) && !solver.factored.can_take(&units(1e12)));
        for values in [units(1e12), plain.clone()] {
            solver.refactor(&values, &mut ()).unwrap();
            assert_eq!(told(&solver), told(&made(row, &values)));
        }
        let options = SolveOptions::by(crate::method::Method::Direct(
            Direct::BandLu,
            crate::method::Factoring { precision: Precision::Single, ..Default::default() },
        ));
        let mut single = Solver::new(&plain, &options, &mut ()).unwrap();
        assert!(!single.factored.can_take(&units(2.0)));
        single.refactor(&units(2.0), &mut ()).unwrap();
        assert_eq!(told(&single), told(&Solver::new(&units(2.0), &options, &mut ()).unwrap()));
    }

    #[test]
    fn factors_behind_an_order_take_new_values_and_name_places_as_given() {
        // The chain from every second row, then the others.
        let place = |i: usize| if i.is_multiple_of(2) { i / 2 } else { N / 2 + i / 2 };
        let shuffled = |diagonal: &dyn Fn(usize) -> f64| {
            let mut a = Mat::zeros(N, N);
            for i in 0..N {
                a[(place(i), place(i))] = diagonal(i);
                if i > 0 {
                    (a[(place(i), place(i - 1))], a[(place(i - 1), place(i))]) = (-1.0, -1.0);
                }
            }
            Csr::from_dense(a.as_ref()).unwrap()
        };
        let (first, second) = (shuffled(&|i| 4.0 + (i % 3) as f64), shuffled(&|i| 3.0 + (i % 7) as f64));
        let options = SolveOptions { reorder: crate::options::Reorder::Rcm, ..SolveOptions::by(Direct::Thomas) };
        let mut solver = Solver::new(&first, &options, &mut ()).unwrap();
        assert!(solver.factored.can_take(&second));
        solver.refactor(&second, &mut ()).unwrap();
        let before = told(&solver);
        assert_eq!(before, told(&Solver::new(&second, &options, &mut ()).unwrap()));
        assert_eq!(solver.factors().stats().norm_one, 11.0);
        let broken = shuffled(&|i| if i == 0 || i == N - 1 { 1e-9 } else { 2.0 });
        let error = solver.refactor(&broken, &mut ()).unwrap_err().to_string();
        assert_eq!(error, Solver::new(&broken, &options, &mut ()).err().unwrap().to_string());
        assert_eq!(told(&solver), before);
    }
}
