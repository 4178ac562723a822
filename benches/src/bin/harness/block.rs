//! Cases of kind blocktri: dense blocks, one right-hand side, and 64 of them. Contestant `blocktri-block-lu`.
//!
//! The factorization is a refactorisation, in memory taken before; the matrix is not overwritten.

use bt_direct::{BlockLu, Factorization};
use bt_formats::{BlockTridiagonal, Op, Partition, ask_for_huge_pages, certify};
use faer::Mat;

use crate::facade;
use crate::measure::{Contestant, Floor, race};
use crate::problem::Problem;
use crate::{Args, Result};

/// Right-hand sides of the phase `+solve64`.
const MANY: usize = 64;

#[allow(clippy::struct_field_names)] // a block is what the field holds
struct Lu<'a> {
    matrix: &'a BlockTridiagonal<f64>,
    rhs: &'a [f64],
    lu: BlockLu<f64>,
    x: Vec<f64>,
    many: Mat<f64>,
}

impl Contestant for Lu<'_> {
    fn name(&self) -> &'static str {
        "blocktri-block-lu"
    }
    fn phases(&self) -> &'static [&'static str] {
        &["factor", "solve", "+solve64"]
    }
    fn reset(&mut self) {
        self.x.copy_from_slice(self.rhs);
        self.many = Mat::from_fn(self.rhs.len(), MANY, |i, j| self.rhs[i] + j as f64);
    }
    fn run(&mut self, phase: usize) -> Result<()> {
        match phase {
            0 => self.lu.refactor(self.matrix)?,
            1 => self.lu.solve_vec_in_place(&mut self.x),
            _ => self.lu.solve_in_place(self.many.as_mut()),
        }
        Ok(())
    }
    fn error(&self) -> f64 {
        let column = |v: &[f64]| Mat::from_fn(v.len(), 1, |i, _| v[i]);
        let (x, b) = (column(&self.x), column(self.rhs));
        certify(self.matrix, Op::Identity, x.as_ref(), b.as_ref()).backward_error
    }
}

/// Races the block methods.
pub fn run(problem: &Problem, args: &Args) -> Result<()> {
    let (n, k, m) = (problem.size("n")?, problem.size("k")?, problem.size("m")?);
    let (lower, upper) = (problem.reals("lower")?, problem.reals("upper")?);
    let square = k * k;
    let mut couplings = Vec::with_capacity(lower.len() + upper.len());
    // As NumPy does for the peers.
    ask_for_huge_pages(&couplings);
    for j in 0..m {
        if j > 0 {
            couplings.extend_from_slice(&lower[(j - 1) * square..j * square]);
        }
        if j + 1 < m {
            couplings.extend_from_slice(&upper[j * square..(j + 1) * square]);
        }
    }
    let matrix = BlockTridiagonal::from_dense_blocks(Partition::uniform(n, k)?, problem.reals("diag")?, couplings)?;
    let rhs = problem.reals("rhs")?;
    let rhs = rhs.get(..n).ok_or("rhs is shorter than n")?;
    let lu = BlockLu::new(&matrix)?;
    let sparse = matrix.to_csr()?;
    let contestant = Lu { matrix: &matrix, rhs, lu, x: vec![0.0; n], many: Mat::zeros(n, MANY) };
    let mut contestants: Vec<Box<dyn Contestant + '_>> = vec![Box::new(contestant)];
    contestants.extend(facade::contestants(&sparse, (&matrix).into(), rhs));
    let blocks = (m * square) as f64;
    let floor = Floor { flops: blocks * (14.0 / 3.0 * k as f64 + 6.0), bytes: 48.0 * blocks };
    race(&problem.case, n, floor, args, contestants)
}
