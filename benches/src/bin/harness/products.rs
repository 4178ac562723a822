//! Cases of kind csr: y ← A·x, contestants `blocktri-csr`, `blocktri-dia` where diagonals are full, and, where blocks are
//! given, `blocktri-hybrid`; there band factorizations too, of the matrix in its own order; then the Krylov methods.

use bt_formats::{Band, BlockTridiagonal, Dia, HybridLayout, LinearOperator, Matrix, Op, Par, Partition};
use serde_json::{Map, Value};

use crate::facade;
use crate::factored::System;
use crate::measure::{Contestant, Floor, race};
use crate::problem::Problem;
use crate::{Args, Result, band, krylov};

struct Product<'a> {
    name: &'static str,
    matrix: &'a dyn Matrix<f64>,
    x: &'a [f64],
    y: Vec<f64>,
    par: Par,
}

impl Contestant for Product<'_> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn phases(&self) -> &'static [&'static str] {
        &["mv"]
    }
    fn run(&mut self, _: usize) -> Result<()> {
        self.matrix.apply_op(Op::Identity, 1.0, self.x, 0.0, &mut self.y, self.par);
        Ok(())
    }
    /// Largest difference from products summed entry by entry, over the largest modulus of y.
    fn error(&self) -> f64 {
        let mut reference = vec![0.0; self.y.len()];
        self.matrix.for_each_entry(&mut |i, j, v| reference[i] += v * self.x[j]);
        let largest = reference.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        self.y.iter().zip(&reference).fold(0.0f64, |m, (y, r)| m.max((y - r).abs())) / largest
    }
    fn runs_per_sample(&self) -> u32 {
        20
    }
    fn notes(&self) -> Map<String, Value> {
        Map::from_iter([("storage_bytes".to_owned(), self.matrix.bytes().into())])
    }
}

/// Races the formats.
pub fn run(problem: &Problem, args: &Args) -> Result<()> {
    let mut a = problem.csr()?;
    // As the peers do with `mkl_sparse_optimize`.
    a.index_by_diagonals()?;
    let (n, nnz) = (a.nrows(), a.nnz());
    let x = problem.reals("rhs")?;
    let x = x.get(..n).ok_or("rhs is shorter than n")?;
    let partition = problem.size("k").ok().map(|k| Partition::uniform(n, k)).transpose()?;
    let hybrid = match &partition {
        Some(p) => Some(BlockTridiagonal::from_csr(&a, p.clone(), HybridLayout::default())?),
        None => None,
    };
    // As the facade does.
    let diagonals = Dia::where_full(&a)?;
    let operator: &dyn Matrix<f64> = diagonals.as_ref().map_or(&a, |diagonals| diagonals);
    let par = if args.threads > 1 { Par::Rayon } else { Par::Seq };
    let product =
        |name, matrix| Box::new(Product { name, matrix, x, y: vec![0.0; n], par }) as Box<dyn Contestant + '_>;
    let mut contestants = vec![product("blocktri-csr", &a as &dyn Matrix<f64>)];
    contestants.extend(diagonals.as_ref().map(|d| product("blocktri-dia", d)));
    contestants.extend(hybrid.as_ref().map(|h| product("blocktri-hybrid", h)));
    let solvers = krylov::contestants(args, &a, operator, partition.as_ref(), x)?;
    let asked = |name: &str| args.method.as_deref().is_none_or(|m| name.contains(m));
    let bands = partition.as_ref().filter(|_| ["blocktri-band-lu", "blocktri-band-lu-nopivot"].into_iter().any(asked));
    // Where nothing is asked for by its name, this says so.
    if contestants.iter().any(|c| asked(c.name())) || solvers.is_empty() && bands.is_none() {
        let floor = Floor { flops: (2 * nnz) as f64, bytes: (12 * nnz + 20 * n) as f64 };
        race(&problem.case, n, floor, args, contestants)?;
    }
    if let Some(partition) = bands {
        let (k, band) = (partition.min_max_size().1, Band::from_csr(&a)?);
        // Band LU of half-bandwidth k: A is read, the factors are written and read.
        let floor = Floor { flops: (2 * n * k * k) as f64, bytes: (12 * nnz + 16 * n * (2 * k + 1)) as f64 };
        let plain = problem.csr()?;
        let system = System { given: (&band).into(), matrix: &band, sparse: Some(&a), rhs: x };
        let mut contestants = band::contestants(&problem.case, &band, system)?;
        contestants.extend(facade::contestants(&plain, (&band).into(), x));
        race(&problem.case, n, floor, args, contestants)?;
    }
    if !solvers.is_empty() {
        // Of no meaning without the number of iterations.
        race(&problem.case, n, Floor { flops: f64::NAN, bytes: f64::NAN }, args, solvers)?;
    }
    Ok(())
}
