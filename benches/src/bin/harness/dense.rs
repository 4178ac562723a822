//! Cases of kind dense: A·x = b, factored and solved. Contestants `blocktri-rbt`, `blocktri-genp`, `blocktri-dense-lu`
//! and, timed beside them, `faer-lu`.

use bt_direct::{DenseMatrix, Factorization, NoPivotLu, PartialPivotLu, Rbt};
use bt_formats::{Op, Scalar, c32, c64, certify};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::lu::partial_pivoting::{factor, solve};
use faer::perm::PermRef;
use faer::prelude::default;
use faer::{Conj, Mat, MatMut, MatRef, Par};
use serde_json::{Map, Value};

use crate::measure::{Contestant, Floor, race};
use crate::problem::{Problem, number};
use crate::{Args, Number, Result};

/// What a contestant does with its own factors.
trait Solver<T> {
    fn factor(&mut self, a: MatRef<'_, T>) -> Result<()>;
    fn solve(&self, x: &mut [T]);
    fn notes(&self) -> Map<String, Value> {
        Map::new()
    }
}

struct Dense<'a, T> {
    name: &'static str,
    a: MatRef<'a, T>,
    b: &'a [T],
    x: Vec<T>,
    solver: Box<dyn Solver<T>>,
}

impl<T: Scalar> Contestant for Dense<'_, T> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn phases(&self) -> &'static [&'static str] {
        &["factor", "solve"]
    }
    fn reset(&mut self) {
        self.x.copy_from_slice(self.b);
    }
    fn run(&mut self, phase: usize) -> Result<()> {
        if phase == 0 {
            return self.solver.factor(self.a);
        }
        self.solver.solve(&mut self.x);
        Ok(())
    }
    fn error(&self) -> f64 {
        let column = |v| MatRef::from_column_major_slice(v, self.b.len(), 1);
        certify(&DenseMatrix::new(self.a), Op::Identity, column(&self.x), column(self.b)).backward_error
    }
    fn notes(&self) -> Map<String, Value> {
        let mut notes = self.solver.notes();
        notes.insert("scalar".to_owned(), T::KIND.to_string().into());
        notes
    }
}

struct Own<F> {
    factors: F,
    notes: fn(&F) -> Map<String, Value>,
}

impl<T: Scalar, F: Factorization<T>> Solver<T> for Own<F> {
    fn factor(&mut self, a: MatRef<'_, T>) -> Result<()> {
        Ok(self.factors.refactor(a.into(), &mut ())?)
    }
    fn solve(&self, x: &mut [T]) {
        self.factors.solve_vec_in_place(x);
    }
    fn notes(&self) -> Map<String, Value> {
        let mut notes = (self.notes)(&self.factors);
        notes.insert("growth".into(), self.factors.stats().growth.into());
        notes
    }
}

/// faer's own, in memory kept from one repetition to the next.
struct Faer<T> {
    lu: Mat<T>,
    forward: Vec<usize>,
    inverse: Vec<usize>,
    memory: MemBuffer,
    par: Par,
}

impl<T: Scalar> Faer<T> {
    fn new(n: usize, threads: usize) -> Self {
        let par = if threads > 1 { Par::rayon(threads) } else { Par::Seq };
        let memory = MemBuffer::new(factor::lu_in_place_scratch::<usize, T>(n, n, par, default()));
        Self { lu: Mat::zeros(n, n), forward: vec![0; n], inverse: vec![0; n], memory, par }
    }
}

impl<T: Scalar> Solver<T> for Faer<T> {
    fn factor(&mut self, a: MatRef<'_, T>) -> Result<()> {
        self.lu.copy_from(a);
        let stack = MemStack::new(&mut self.memory);
        factor::lu_in_place(self.lu.as_mut(), &mut self.forward, &mut self.inverse, self.par, stack, default());
        Ok(())
    }
    fn solve(&self, x: &mut [T]) {
        let n = x.len();
        let p = PermRef::new_checked(&self.forward, &self.inverse, n);
        let mut memory = MemBuffer::new(solve::solve_in_place_scratch::<usize, T>(n, 1, self.par));
        let x = MatMut::from_column_major_slice_mut(x, n, 1);
        let lu = self.lu.as_ref();
        solve::solve_in_place_with_conj(lu, lu, p, Conj::No, x, self.par, MemStack::new(&mut memory));
    }
}

/// Races the methods.
pub fn run(problem: &Problem, args: &Args) -> Result<()> {
    match args.scalar {
        Number::F64 => race_in::<f64>(problem, args),
        Number::F32 => race_in::<f32>(problem, args),
        Number::C64 => race_in::<c64>(problem, args),
        Number::C32 => race_in::<c32>(problem, args),
    }
}

fn race_in<T: Scalar>(problem: &Problem, args: &Args) -> Result<()> {
    let n = problem.size("n")?;
    let values: Vec<T> =
        problem.reals("a")?.into_iter().enumerate().map(|(e, x)| number(x, (e % n) as f64, (e / n) as f64)).collect();
    let b = problem.numbers("rhs")?;
    let a = MatRef::from_column_major_slice(values.get(..n * n).ok_or("a is shorter than n²")?, n, n);
    let b = b.get(..n).ok_or("rhs is shorter than n")?;
    let mut contestants: Vec<Box<dyn Contestant + '_>> = Vec::new();
    let mut add = |name, solver| contestants.push(Box::new(Dense { name, a, b, x: b.to_vec(), solver }));
    let fallback = |f: &Rbt<T>| match f.fallback() {
        Some(reason) => Map::from_iter([("fallback".to_owned(), reason.to_string().into())]),
        None => Map::new(),
    };
    add("blocktri-rbt", Box::new(Own { factors: Rbt::new(a)?, notes: fallback }) as Box<dyn Solver<T>>);
    // Not every matrix can be factored without pivoting.
    if let Ok(factors) = NoPivotLu::new(a) {
        add("blocktri-genp", Box::new(Own { factors, notes: |_| Map::new() }));
    }
    add("blocktri-dense-lu", Box::new(Own { factors: PartialPivotLu::new(a)?, notes: |_| Map::new() }));
    add("faer-lu", Box::new(Faer::new(n, args.threads)));
    let floor = Floor { flops: 2.0 / 3.0 * (n as f64).powi(3), bytes: (16 * n * n) as f64 };
    race(&problem.case, n, floor.of::<T>(), args, contestants)
}
