//! A factorization in a race, for any scalar: `factor` is a refactorisation in memory taken before, which leaves the matrix as it is;
//! then come a `solve` with one right-hand side and, where there are several, `+solve64` with all of them.

use std::hint::black_box;

use bt_direct::{Factorization, Given};
use bt_formats::{Band, Csr, Matrix, Op, Scalar, certify};
use faer::{MatMut, MatRef};
use serde_json::{Map, Value};

use crate::Result;
use crate::measure::Contestant;

/// A·x = b.
#[derive(Clone, Copy)]
pub struct System<'a, T> {
    /// A in the format that is factored.
    pub given: Given<'a, T>,
    /// A as certificates read it.
    pub matrix: &'a dyn Matrix<T>,
    /// What a band was made from: that takes a phase `+setup`.
    pub sparse: Option<&'a Csr<T>>,
    /// b, one column after the other; 64 of them or one.
    pub rhs: &'a [T],
}

struct Factored<'a, T> {
    name: &'static str,
    factors: Box<dyn Factorization<T>>,
    system: System<'a, T>,
    /// The solution for the first column, and that for all.
    x: Vec<T>,
    xs: Vec<T>,
}

/// The contestant `name`.
pub fn contestant<'a, T: Scalar>(
    name: &'static str,
    factors: Box<dyn Factorization<T>>,
    system: System<'a, T>,
) -> Box<dyn Contestant + 'a> {
    let (x, xs) = (vec![bt_formats::zero(); factors.n()], vec![bt_formats::zero(); system.rhs.len()]);
    Box::new(Factored { name, factors, system, x, xs })
}

impl<T: Scalar> Contestant for Factored<'_, T> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn phases(&self) -> &'static [&'static str] {
        match (self.system.sparse, self.xs.len() > self.x.len()) {
            (Some(_), _) => &["factor", "solve", "+setup"],
            (None, true) => &["factor", "solve", "+solve64"],
            (None, false) => &["factor", "solve"],
        }
    }
    fn reset(&mut self) {
        self.x.copy_from_slice(&self.system.rhs[..self.factors.n()]);
        self.xs.copy_from_slice(self.system.rhs);
    }
    fn run(&mut self, phase: usize) -> Result<()> {
        match (phase, self.system.sparse) {
            // As among the peers, the copy of the matrix that LAPACK overwrites is made outside; ours is part of it.
            (0, _) => self.factors.refactor(self.system.given, &mut ())?,
            (1, _) => self.factors.solve_vec_in_place(&mut self.x),
            (_, Some(a)) => drop(black_box(Band::from_csr(a)?)),
            (_, None) => {
                let (n, columns) = (self.x.len(), self.xs.len() / self.x.len());
                self.factors.solve_in_place(MatMut::from_column_major_slice_mut(&mut self.xs, n, columns));
            }
        }
        Ok(())
    }
    /// Largest normwise backward error of the solutions.
    fn error(&self) -> f64 {
        let n = self.x.len();
        let column = |v| MatRef::from_column_major_slice(v, n, 1);
        let error = |x, b| certify(self.system.matrix, Op::Identity, column(x), column(b)).backward_error;
        let all = self.xs.chunks(n).zip(self.system.rhs.chunks(n)).skip(usize::from(self.phases().len() < 3));
        all.map(|(x, b)| error(x, b)).fold(error(&self.x, &self.system.rhs[..n]), f64::max)
    }
    fn notes(&self) -> Map<String, Value> {
        let stats = self.factors.stats();
        Map::from_iter([
            ("scalar".to_owned(), T::KIND.to_string().into()),
            ("storage_bytes".to_owned(), stats.bytes.into()),
            ("growth".to_owned(), stats.growth.into()),
        ])
    }
}
