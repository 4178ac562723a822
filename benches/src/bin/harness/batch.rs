//! Cases of kind tridiag with more than one system: x ← A⁻¹·b for all of them. Contestants `blocktri-batch` (Thomas in
//! lanes), `blocktri-batch-pivoted` (the semantics of gtsv), and the same with factors kept: `blocktri-batch-lu`.

use bt_direct::batch::{BatchLu, Layout, Pivoting, TridiagonalBatch};
use bt_formats::{Op, certify};
use faer::MatRef;

use crate::measure::{Contestant, Floor, race};
use crate::problem::Problem;
use crate::{Args, Result};

/// What is timed.
enum Work {
    /// Elimination and substitution in one go.
    Once(Pivoting),
    /// Refactorisation in the same memory, then a solve.
    Kept(Box<BatchLu<f64>>),
}

struct Batch<'a> {
    name: &'static str,
    work: Work,
    a: &'a TridiagonalBatch<f64>,
    b: &'a [f64],
    x: Vec<f64>,
}

impl Contestant for Batch<'_> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn phases(&self) -> &'static [&'static str] {
        match self.work {
            Work::Once(_) => &["solve"],
            Work::Kept(_) => &["factor", "solve"],
        }
    }
    fn reset(&mut self) {
        self.x.copy_from_slice(self.b);
    }
    fn run(&mut self, phase: usize) -> Result<()> {
        let solved = match (&mut self.work, phase) {
            (Work::Once(pivoting), _) => self.a.solve_in_place(&mut self.x, *pivoting)?.all_solved(),
            (Work::Kept(lu), 0) => {
                lu.refactor(self.a)?;
                lu.verdict().all_solved()
            }
            (Work::Kept(lu), _) => {
                lu.solve_in_place(&mut self.x, Layout::Strided)?;
                true
            }
        };
        if solved { Ok(()) } else { Err("a system was not solved".into()) }
    }
    /// The largest normwise backward error of any system.
    fn error(&self) -> f64 {
        let n = self.a.size(0);
        (0..self.a.n_systems())
            .map(|s| {
                let Ok(a) = self.a.system(s) else { return f64::NAN };
                let column = |v| MatRef::from_column_major_slice(v, n, 1);
                let at = s * n..(s + 1) * n;
                certify(&a, Op::Identity, column(&self.x[at.clone()]), column(&self.b[at])).backward_error
            })
            .fold(0.0, f64::max)
    }
}

/// Races one go against factors kept, with and without pivoting.
pub fn run(problem: &Problem, args: &Args) -> Result<()> {
    let n = problem.size("n")?;
    let a = TridiagonalBatch::new(Layout::Strided, n, problem.reals("dl")?, problem.reals("d")?, problem.reals("du")?)?;
    let b = problem.reals("rhs")?;
    let contestant =
        |name, work| Box::new(Batch { name, work, a: &a, b: &b, x: b.clone() }) as Box<dyn Contestant + '_>;
    let wanted = |name: &str| args.method.as_deref().is_none_or(|m| name.contains(m));
    let mut contestants = vec![
        contestant("blocktri-batch", Work::Once(Pivoting::None)),
        contestant("blocktri-batch-pivoted", Work::Once(Pivoting::Partial)),
    ];
    for (name, pivoting) in [("blocktri-batch-lu", Pivoting::None), ("blocktri-batch-lu-pivoted", Pivoting::Partial)] {
        if wanted(name) {
            contestants.push(contestant(name, Work::Kept(Box::new(BatchLu::with_options(&a, pivoting)?))));
        }
    }
    // As the peers count: 8 operations a row; the diagonals and b read, x written.
    let rows = a.n_rows() as f64;
    race(&problem.case, n, Floor { flops: 8.0 * rows, bytes: 40.0 * rows }, args, contestants)
}
