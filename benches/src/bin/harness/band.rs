//! Cases of kind band: factor, solve, and all right-hand sides at once; sparse ones in their own order, with the copy into the
//! band as `+setup`. Contestants `blocktri-band-lu`; where elimination without interchanges keeps its digits, `blocktri-band-lu-nopivot`;
//! of Hermitian positive definite matrices `blocktri-band-cholesky`.

use std::hint::black_box;

use bt_direct::{BandCholesky, BandLu, BandLuNoPivot, Factorization, Given};
use bt_formats::{Band, Csr, Op, certify};
use faer::{Mat, MatMut};
use serde_json::{Map, Value};

use crate::facade;
use crate::measure::{Contestant, Floor, race};
use crate::problem::Problem;
use crate::{Args, Result};

struct Solver<'a> {
    name: &'static str,
    lu: Box<dyn Factorization<f64>>,
    matrix: &'a Band<f64>,
    /// What the band was made from.
    sparse: Option<&'a Csr<f64>>,
    rhs: &'a [f64],
    x: Vec<f64>,
    xs: Vec<f64>,
}

impl Contestant for Solver<'_> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn phases(&self) -> &'static [&'static str] {
        match (self.sparse, self.rhs.len() / self.matrix.n()) {
            (Some(_), _) => &["factor", "solve", "+setup"],
            (None, 64) => &["factor", "solve", "+solve64"],
            (None, _) => &["factor", "solve"],
        }
    }
    fn reset(&mut self) {
        let n = self.matrix.n();
        self.x.copy_from_slice(&self.rhs[..n]);
        let several = &self.rhs[..self.xs.len()];
        self.xs.copy_from_slice(several);
    }
    fn run(&mut self, phase: usize) -> Result<()> {
        let n = self.matrix.n();
        match (phase, self.sparse) {
            // As among the peers, the copy of the matrix that LAPACK overwrites is made outside; ours is part of it.
            (0, _) => self.lu.refactor(Given::Band(self.matrix), &mut ())?,
            (1, _) => self.lu.solve_vec_in_place(&mut self.x),
            (_, Some(a)) => drop(black_box(Band::from_csr(a)?)),
            (_, None) => {
                self.lu.solve_in_place(MatMut::from_column_major_slice_mut(&mut self.xs, n, self.rhs.len() / n));
            }
        }
        Ok(())
    }
    /// Largest normwise backward error of the solutions.
    fn error(&self) -> f64 {
        let n = self.matrix.n();
        let column = |v: &[f64]| Mat::from_fn(n, 1, |i, _| v[i]);
        let error = |x: &[f64], b: &[f64]| {
            certify(self.matrix, Op::Identity, column(x).as_ref(), column(b).as_ref()).backward_error
        };
        let all = self.xs.chunks(n).zip(self.rhs.chunks(n)).map(|(x, b)| error(x, b));
        all.fold(error(&self.x, &self.rhs[..n]), f64::max)
    }
    fn notes(&self) -> Map<String, Value> {
        Map::from_iter([("storage_bytes".to_owned(), self.lu.stats().bytes.into())])
    }
}

/// The matrix of a case of kind band, from LAPACK's layout without room for fill.
fn matrix(problem: &Problem) -> Result<Band<f64>> {
    let (n, kl, ku) = (problem.size("n")?, problem.size("kl")?, problem.size("ku")?);
    let values = problem.reals("ab")?;
    let mut a = Band::zeros(n, kl, ku)?;
    if values.len() != n * (kl + ku + 1) {
        return Err("ab has not kl + ku + 1 values a column".into());
    }
    let ldab = a.ldab();
    for (to, from) in a.values_mut().chunks_exact_mut(ldab).zip(values.chunks_exact(kl + ku + 1)) {
        to[kl..].copy_from_slice(from);
    }
    Ok(a)
}

/// Band LU with and, where that keeps its digits, without pivoting; Cholesky where it factors. For a band made from `sparse`, one right-hand side.
pub fn contestants<'a>(
    case: &str,
    a: &'a Band<f64>,
    sparse: Option<&'a Csr<f64>>,
    rhs: &'a [f64],
) -> Result<Vec<Box<dyn Contestant + 'a>>> {
    let solver = |name, lu| contestant(name, lu, a, sparse, rhs);
    let mut contestants = vec![solver("blocktri-band-lu", Box::new(BandLu::new(a)?))];
    match BandLuNoPivot::new(a) {
        Ok(lu) => contestants.push(solver("blocktri-band-lu-nopivot", Box::new(lu))),
        Err(why) => eprintln!("{case}: {why}"),
    }
    if let Ok(cholesky) = BandCholesky::new(a) {
        contestants.push(solver("blocktri-band-cholesky", Box::new(cholesky)));
    }
    Ok(contestants)
}

fn contestant<'a>(
    name: &'static str,
    lu: Box<dyn Factorization<f64>>,
    matrix: &'a Band<f64>,
    sparse: Option<&'a Csr<f64>>,
    rhs: &'a [f64],
) -> Box<dyn Contestant + 'a> {
    // From a sparse matrix one right-hand side is solved for.
    let several = if sparse.is_some() { 0 } else { rhs.len() };
    let (x, xs) = (vec![0.0; matrix.n()], vec![0.0; several]);
    Box::new(Solver { name, lu, matrix, sparse, rhs, x, xs })
}

/// Races the factorizations.
pub fn run(problem: &Problem, args: &Args) -> Result<()> {
    let a = matrix(problem)?;
    let (n, b) = (a.n(), a.kl() as f64);
    let rhs = problem.reals("rhs")?;
    let sparse = a.to_csr()?;
    let mut contestants = contestants(&problem.case, &a, None, &rhs)?;
    for (name, lu) in crate::spike::contestants(&problem.case, &a) {
        contestants.push(contestant(name, lu, &a, None, &rhs));
    }
    contestants.extend(facade::contestants(&sparse, (&a).into(), &rhs[..n]));
    let rows = n as f64;
    let floor = Floor {
        flops: 4.0 * rows * b * b + 6.0 * rows * b,
        bytes: 8.0 * rows * (2.0 * b + 1.0) + 16.0 * rows * (3.0 * b + 1.0),
    };
    race(&problem.case, n, floor, args, contestants)
}
