//! Cases of kind tridiag with one system: solved once. Contestants `blocktri-thomas`, `blocktri-tridiagonal-lu` (factors,
//! then solves), `blocktri-once-dominant`, `blocktri-once-pivoted` (in place, without factors).

use bt_direct::{Elimination, Factorization, Thomas, TridiagonalLu, TridiagonalOnce};
use bt_formats::{Op, Par, Tridiagonal, certify};
use faer::MatRef;
use serde_json::{Map, Value};

use crate::facade;
use crate::measure::{Contestant, Floor, race};
use crate::problem::Problem;
use crate::{Args, Result};

/// What runs, with its memory.
enum Method {
    Thomas(Thomas<f64>),
    Lu(TridiagonalLu<f64>),
    Once(Box<TridiagonalOnce<f64>>, Elimination, Par),
}

struct System<'a> {
    name: &'static str,
    method: Method,
    a: &'a Tridiagonal<f64>,
    b: &'a [f64],
    x: Vec<f64>,
}

impl Contestant for System<'_> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn phases(&self) -> &'static [&'static str] {
        match self.method {
            Method::Once(..) => &["solve"],
            _ => &["factor", "solve"],
        }
    }
    fn reset(&mut self) {
        self.x.copy_from_slice(self.b);
    }
    fn run(&mut self, phase: usize) -> Result<()> {
        match (&mut self.method, phase) {
            (Method::Thomas(f), 0) => f.refactor(self.a)?,
            (Method::Thomas(f), _) => f.solve_vec_in_place(&mut self.x),
            (Method::Lu(f), 0) => f.refactor(self.a)?,
            (Method::Lu(f), _) => f.solve_vec_in_place(&mut self.x),
            (Method::Once(solver, elimination, par), _) => {
                solver.solve_in_place(self.a, &mut self.x, *elimination, *par)?;
            }
        }
        Ok(())
    }
    fn error(&self) -> f64 {
        let column = |v| MatRef::from_column_major_slice(v, self.b.len(), 1);
        certify(self.a, Op::Identity, column(&self.x), column(self.b)).backward_error
    }
    fn notes(&self) -> Map<String, Value> {
        Map::new()
    }
}

/// Races the methods for one system.
pub fn run(problem: &Problem, args: &Args) -> Result<()> {
    let n = problem.size("n")?;
    if problem.size("batch")? != 1 {
        eprintln!("{}: no contestant for batches yet", problem.case);
        return Ok(());
    }
    let a = Tridiagonal::new(problem.reals("dl")?, problem.reals("d")?, problem.reals("du")?)?;
    let b = problem.reals("rhs")?;
    let par = if args.threads > 1 { Par::Rayon } else { Par::Seq };
    let once =
        |elimination| -> Result<Method> { Ok(Method::Once(Box::new(TridiagonalOnce::new(n)?), elimination, par)) };
    let methods = [
        ("blocktri-thomas", Method::Thomas(Thomas::new(&a)?)),
        ("blocktri-tridiagonal-lu", Method::Lu(TridiagonalLu::new(&a)?)),
        ("blocktri-once-dominant", once(Elimination::Dominant)?),
        ("blocktri-once-pivoted", once(Elimination::Pivoted)?),
    ];
    let sparse = a.to_csr()?;
    let mut contestants: Vec<_> = methods
        .into_iter()
        .map(|(name, method)| Box::new(System { name, method, a: &a, b: &b, x: b.clone() }) as Box<dyn Contestant + '_>)
        .collect();
    contestants.extend(facade::contestants(&sparse, (&a).into(), &b));
    // Each array once, and x.
    let floor = Floor { flops: 9.0 * n as f64, bytes: 40.0 * n as f64 };
    race(&problem.case, n, floor, args, contestants)
}
