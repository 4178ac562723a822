//! Beside the kernels, what a program calls: contestants `blocktri-facade-once`, one call of [`solve`], and `blocktri-facade`, a
//! [`Solver`] made, asked, and asked again. Both choose their method and certify their answers. A is given by compressed rows, or, to
//! those named `…-as-given`, in the format of the case.

use blocktri::{Given, SolveOptions, Solver, solve};
use bt_formats::{Csr, Op, Scalar, certify};
use faer::{Mat, MatRef};
use serde_json::{Map, Value};

use crate::Result;
use crate::measure::Contestant;

/// Two for the rows of a system, two for it as it is given.
pub fn contestants<'a, T: Scalar>(rows: &'a Csr<T>, given: Given<'a, T>, b: &'a [T]) -> [Box<dyn Contestant + 'a>; 4] {
    let x = || Mat::zeros(b.len(), 1);
    let once = |name, a| Box::new(Once { name, a, rows, b, x: x(), method: "" });
    let reused = |name, a| Box::new(Reused { name, a, rows, b, x: x(), solver: None });
    [
        once("blocktri-facade-once", rows.into()),
        reused("blocktri-facade", rows.into()),
        once("blocktri-facade-once-as-given", given),
        reused("blocktri-facade-as-given", given),
    ]
}

fn column<T>(b: &[T]) -> MatRef<'_, T> {
    MatRef::from_column_major_slice(b, b.len(), 1)
}

struct Once<'a, T: Scalar> {
    name: &'static str,
    a: Given<'a, T>,
    rows: &'a Csr<T>,
    b: &'a [T],
    x: Mat<T>,
    method: &'static str,
}

impl<T: Scalar> Contestant for Once<'_, T> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn phases(&self) -> &'static [&'static str] {
        &["call"]
    }
    fn run(&mut self, _: usize) -> Result<()> {
        let answer = solve(self.a, column(self.b), &SolveOptions::default(), &mut ())?;
        (self.x, self.method) = (answer.x, answer.report.method);
        Ok(())
    }
    fn error(&self) -> f64 {
        certify(self.rows, Op::Identity, self.x.as_ref(), column(self.b)).backward_error
    }
    fn notes(&self) -> Map<String, Value> {
        Map::from_iter([("method".to_owned(), self.method.into()), ("scalar".to_owned(), T::KIND.to_string().into())])
    }
}

struct Reused<'a, T: Scalar> {
    name: &'static str,
    a: Given<'a, T>,
    rows: &'a Csr<T>,
    b: &'a [T],
    x: Mat<T>,
    solver: Option<Solver<T>>,
}

impl<T: Scalar> Contestant for Reused<'_, T> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn phases(&self) -> &'static [&'static str] {
        &["setup", "solve", "+again"]
    }
    fn reset(&mut self) {
        self.solver = None;
    }
    fn run(&mut self, phase: usize) -> Result<()> {
        match (phase, &self.solver) {
            (0, _) => self.solver = Some(Solver::new(self.a, &SolveOptions::default(), &mut ())?),
            (_, Some(solver)) => drop(solver.solve_into(column(self.b), self.x.as_mut())?),
            (_, None) => return Err("solved before it was factored".into()),
        }
        Ok(())
    }
    fn error(&self) -> f64 {
        certify(self.rows, Op::Identity, self.x.as_ref(), column(self.b)).backward_error
    }
    fn notes(&self) -> Map<String, Value> {
        let method = self.solver.as_ref().map(|s| s.method().name());
        Map::from_iter([("method".to_owned(), method.into()), ("scalar".to_owned(), T::KIND.to_string().into())])
    }
}
