//! Cases of kind dense: A·x = b, factored and solved. Contestants `blocktri-rbt`, `blocktri-genp`, `blocktri-dense-lu`
//! and, timed beside them, `faer-lu`.

use bt_direct::{Factorization, NoPivotLu, PartialPivotLu, Rbt};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::lu::partial_pivoting::{factor, solve};
use faer::perm::PermRef;
use faer::prelude::default;
use faer::{Conj, Mat, MatMut, MatRef, Par};
use serde_json::{Map, Value};

use crate::measure::{Contestant, Floor, race};
use crate::problem::Problem;
use crate::{Args, Result};

/// What a contestant does with its own factors.
trait Solver {
    fn factor(&mut self, a: MatRef<'_, f64>) -> Result<()>;
    fn solve(&self, x: &mut [f64]);
    fn notes(&self) -> Map<String, Value> {
        Map::new()
    }
}

struct Dense<'a> {
    name: &'static str,
    a: MatRef<'a, f64>,
    b: &'a [f64],
    x: Vec<f64>,
    solver: Box<dyn Solver>,
}

impl Contestant for Dense<'_> {
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
    /// ‖b − A·x‖∞ / (‖A‖∞‖x‖∞ + ‖b‖∞).
    fn error(&self) -> f64 {
        let largest = |v: &[f64]| v.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let (mut residual, mut sums) = (self.b.to_vec(), vec![0.0; self.b.len()]);
        for (column, x) in self.a.col_iter().zip(&self.x) {
            for ((r, s), a) in residual.iter_mut().zip(&mut sums).zip(column.iter()) {
                *r -= a * x;
                *s += a.abs();
            }
        }
        largest(&residual) / (largest(&sums) * largest(&self.x) + largest(self.b))
    }
    fn notes(&self) -> Map<String, Value> {
        self.solver.notes()
    }
}

struct Own<F> {
    factors: F,
    refactor: fn(&mut F, MatRef<'_, f64>) -> bt_direct::Result<()>,
    notes: fn(&F) -> Map<String, Value>,
}

impl<F: Factorization<f64>> Solver for Own<F> {
    fn factor(&mut self, a: MatRef<'_, f64>) -> Result<()> {
        Ok((self.refactor)(&mut self.factors, a)?)
    }
    fn solve(&self, x: &mut [f64]) {
        self.factors.solve_vec_in_place(x);
    }
    fn notes(&self) -> Map<String, Value> {
        let mut notes = (self.notes)(&self.factors);
        notes.insert("growth".into(), self.factors.stats().growth.into());
        notes
    }
}

/// faer's own, in memory kept from one repetition to the next.
struct Faer {
    lu: Mat<f64>,
    forward: Vec<usize>,
    inverse: Vec<usize>,
    memory: MemBuffer,
    par: Par,
}

impl Faer {
    fn new(n: usize, threads: usize) -> Self {
        let par = if threads > 1 { Par::rayon(threads) } else { Par::Seq };
        let memory = MemBuffer::new(factor::lu_in_place_scratch::<usize, f64>(n, n, par, default()));
        Self { lu: Mat::zeros(n, n), forward: vec![0; n], inverse: vec![0; n], memory, par }
    }
}

impl Solver for Faer {
    fn factor(&mut self, a: MatRef<'_, f64>) -> Result<()> {
        self.lu.copy_from(a);
        let stack = MemStack::new(&mut self.memory);
        factor::lu_in_place(self.lu.as_mut(), &mut self.forward, &mut self.inverse, self.par, stack, default());
        Ok(())
    }
    fn solve(&self, x: &mut [f64]) {
        let n = x.len();
        let p = PermRef::new_checked(&self.forward, &self.inverse, n);
        let mut memory = MemBuffer::new(solve::solve_in_place_scratch::<usize, f64>(n, 1, self.par));
        let x = MatMut::from_column_major_slice_mut(x, n, 1);
        let lu = self.lu.as_ref();
        solve::solve_in_place_with_conj(lu, lu, p, Conj::No, x, self.par, MemStack::new(&mut memory));
    }
}

/// Races the methods.
pub fn run(problem: &Problem, args: &Args) -> Result<()> {
    let n = problem.size("n")?;
    let (values, b) = (problem.reals("a")?, problem.reals("rhs")?);
    let a = MatRef::from_column_major_slice(values.get(..n * n).ok_or("a is shorter than n²")?, n, n);
    let b = b.get(..n).ok_or("rhs is shorter than n")?;
    let mut contestants: Vec<Box<dyn Contestant + '_>> = Vec::new();
    let mut add = |name, solver| contestants.push(Box::new(Dense { name, a, b, x: b.to_vec(), solver }));
    let fallback = |f: &Rbt<f64>| match f.fallback() {
        Some(reason) => Map::from_iter([("fallback".to_owned(), reason.to_string().into())]),
        None => Map::new(),
    };
    let rbt = Own { factors: Rbt::new(a)?, refactor: Rbt::refactor, notes: fallback };
    add("blocktri-rbt", Box::new(rbt) as Box<dyn Solver>);
    // Not every matrix can be factored without pivoting.
    if let Ok(factors) = NoPivotLu::new(a) {
        add("blocktri-genp", Box::new(Own { factors, refactor: NoPivotLu::refactor, notes: |_| Map::new() }));
    }
    let pivoted = Own { factors: PartialPivotLu::new(a)?, refactor: PartialPivotLu::refactor, notes: |_| Map::new() };
    add("blocktri-dense-lu", Box::new(pivoted));
    add("faer-lu", Box::new(Faer::new(n, args.threads)));
    let floor = Floor { flops: 2.0 / 3.0 * (n as f64).powi(3), bytes: (16 * n * n) as f64 };
    race(&problem.case, n, floor, args, contestants)
}
