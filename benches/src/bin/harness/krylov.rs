//! Krylov methods with preconditioners, on cases of kind csr. Phases `setup`, of the preconditioner, and `iterate`;
//! tolerances and limits are the peers'. A solve of the large Laplacians takes many seconds: `--reps 1`.

use std::sync::Arc;

use bt_formats::detect::{Symmetry, symmetry};
use bt_formats::{BlockTridiagonal, Csr, HybridLayout, Matrix, Partition};
use bt_formats::{SolveReport, StopCriterion};
use bt_iter::{
    BiCgStab, BlockForm, BlockPreconditioner, Cg, CyclicallyReduced, DroppedFill, Gmres, Identity, Jacobi,
    Preconditioner, Series, SsorAi, Triangles, ic0, ilu0, ssor,
};
use serde_json::{Map, Value};

use crate::measure::Contestant;
use crate::{Args, Result};

/// BiCGSTAB on the system without every other block.
struct Reduced<'a> {
    a: &'a Csr<f64>,
    partition: &'a Partition,
    b: &'a [f64],
    x: Vec<f64>,
    made: Option<(CyclicallyReduced<f64>, BiCgStab<f64>, Identity)>,
    stop: StopCriterion,
    report: Option<SolveReport>,
    seconds: f64,
}

impl Contestant for Reduced<'_> {
    fn name(&self) -> &'static str {
        "blocktri-bicgstab-block-reduced"
    }
    fn phases(&self) -> &'static [&'static str] {
        &["setup", "iterate"]
    }
    fn reset(&mut self) {
        self.made = None;
    }
    fn run(&mut self, phase: usize) -> Result<()> {
        if phase == 0 {
            let blocks = BlockTridiagonal::from_csr(self.a, self.partition.clone(), HybridLayout::default())?;
            let reduced = CyclicallyReduced::new(blocks)?;
            let order = reduced.order();
            self.made = Some((reduced, BiCgStab::new(order), Identity::new(order)));
            return Ok(());
        }
        let start = std::time::Instant::now();
        let (reduced, bicgstab, one) = self.made.as_mut().ok_or("no reduced system")?;
        let report = reduced.solve(self.b, &mut self.x, &self.stop, &mut |operator, g, u, stop| {
            bicgstab.solve(operator, one, g, u, stop, &mut ())
        });
        self.report = Some(report?);
        self.seconds = start.elapsed().as_secs_f64();
        Ok(())
    }
    fn error(&self) -> f64 {
        residual(self.report.as_ref())
    }
    fn notes(&self) -> Map<String, Value> {
        notes(self.report.as_ref(), self.seconds)
    }
}

/// ‖b − A·x‖₂/‖b‖₂, recomputed.
fn residual(report: Option<&SolveReport>) -> f64 {
    report.map_or(f64::NAN, |r| r.certificate.relative_residual)
}

fn notes(report: Option<&SolveReport>, seconds: f64) -> Map<String, Value> {
    let Some(report) = report else { return Map::new() };
    let per_iteration = seconds * 1e3 / report.iterations.max(1) as f64;
    Map::from_iter([
        ("iters".to_owned(), report.iterations.into()),
        ("outcome".to_owned(), format!("{:?}", report.outcome).into()),
        ("rel_residual".to_owned(), report.certificate.relative_residual.into()),
        ("ms_per_iter".to_owned(), per_iteration.into()),
    ])
}

/// A method with its workspace.
enum Method {
    Cg(Cg<f64>),
    BiCgStab(BiCgStab<f64>),
    Gmres(Gmres<f64>),
    /// With its basis in single precision.
    GmresSingle(Gmres<f64, f32>),
}

/// A preconditioner still to be made.
#[derive(Clone, Copy)]
enum Recipe {
    None,
    Jacobi,
    Ssor(f64),
    SsorAi(f64),
    Ilu0,
    Ic0(DroppedFill),
    Block(BlockForm),
}

struct Krylov<'a> {
    name: &'static str,
    a: &'a Csr<f64>,
    /// A in the format of its products.
    operator: &'a dyn Matrix<f64>,
    partition: Option<&'a Partition>,
    /// A by the blocks of the preconditioner, for the products.
    blocks: Option<Arc<BlockTridiagonal<f64>>>,
    b: &'a [f64],
    x: Vec<f64>,
    method: Method,
    recipe: Recipe,
    made: Option<Box<dyn Preconditioner<f64> + 'a>>,
    stop: StopCriterion,
    report: Option<SolveReport>,
    seconds: f64,
}

impl<'a> Krylov<'a> {
    fn make(&mut self) -> Result<Box<dyn Preconditioner<f64> + 'a>> {
        let a = self.a;
        Ok(match self.recipe {
            Recipe::None => Box::new(Identity::new(self.b.len())),
            Recipe::Jacobi => Box::new(Jacobi::new(a)?),
            Recipe::Ssor(omega) => Box::new(ssor(a, omega)?),
            Recipe::SsorAi(omega) => Box::new(SsorAi::with_options(a, omega, Series::First, Triangles::Stored)?),
            Recipe::Ilu0 => Box::new(ilu0(a, DroppedFill::Forgotten)?),
            Recipe::Ic0(dropped) => Box::new(ic0(a, dropped)?.factors),
            Recipe::Block(form) => {
                let partition = self.partition.ok_or("the case has no blocks")?.clone();
                let blocks = BlockTridiagonal::from_csr(a, partition, HybridLayout::default())?;
                let blocks = Arc::new(blocks);
                self.blocks = Some(Arc::clone(&blocks));
                Box::new(BlockPreconditioner::new(blocks, form)?)
            }
        })
    }
}

impl Contestant for Krylov<'_> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn phases(&self) -> &'static [&'static str] {
        &["setup", "iterate"]
    }
    fn reset(&mut self) {
        self.x.fill(0.0);
        (self.made, self.blocks) = (None, None);
    }
    fn run(&mut self, phase: usize) -> Result<()> {
        if phase == 0 {
            self.made = Some(self.make()?);
            return Ok(());
        }
        let start = std::time::Instant::now();
        let m = self.made.as_mut().ok_or("no preconditioner")?.as_mut();
        // As the facade does.
        let a = self.blocks.as_deref().map_or(self.operator, |blocks| blocks as &dyn Matrix<f64>);
        let (b, x, stop) = (self.b, &mut self.x, &self.stop);
        let report = match &mut self.method {
            Method::Cg(cg) => cg.solve(a, m, b, x, stop, &mut ()),
            Method::BiCgStab(bicgstab) => bicgstab.solve(a, m, b, x, stop, &mut ()),
            Method::Gmres(gmres) => gmres.solve(a, m, b, x, stop, &mut ()),
            Method::GmresSingle(gmres) => gmres.solve(a, m, b, x, stop, &mut ()),
        };
        self.report = Some(report?);
        self.seconds = start.elapsed().as_secs_f64();
        Ok(())
    }
    fn error(&self) -> f64 {
        residual(self.report.as_ref())
    }
    fn notes(&self) -> Map<String, Value> {
        notes(self.report.as_ref(), self.seconds)
    }
}

/// The methods for a case: CG for a symmetric matrix, BiCGSTAB and GMRES(30) for others.
///
/// # Errors
/// When A is not square.
pub fn contestants<'a>(
    args: &Args,
    a: &'a Csr<f64>,
    operator: &'a dyn Matrix<f64>,
    partition: Option<&'a Partition>,
    b: &'a [f64],
) -> Result<Vec<Box<dyn Contestant + 'a>>> {
    let n = b.len();
    let stop = |rtol, max_iters| StopCriterion { rtol, max_iters, ..StopCriterion::default() };
    let cg = || Method::Cg(Cg::new(n));
    let bicgstab = || Method::BiCgStab(BiCgStab::new(n));
    let gmres = || Method::Gmres(Gmres::new(n, 30));
    let gmres_single = || Method::GmresSingle(Gmres::single_basis(n, 30));
    let mut out: Vec<Box<dyn Contestant + 'a>> = Vec::new();
    let mut add = |name: &'static str, method: &dyn Fn() -> Method, recipe, stop| {
        // Workspaces and solves of large cases take long: only what is asked for.
        if args.method.as_deref().is_none_or(|m| name.contains(m)) {
            let (method, x) = (method(), vec![0.0; n]);
            let (made, report, seconds) = (None, None, 0.0);
            out.push(Box::new(Krylov {
                name,
                a,
                operator,
                partition,
                blocks: None,
                b,
                x,
                method,
                recipe,
                made,
                stop,
                report,
                seconds,
            }));
        }
    };
    if matches!(symmetry(a)?.0, Symmetry::Symmetric | Symmetry::Hermitian) {
        add("blocktri-cg-none-100it", &cg, Recipe::None, stop(0.0, 100));
        for (name, recipe) in [
            ("blocktri-cg-none", Recipe::None),
            ("blocktri-cg-jacobi", Recipe::Jacobi),
            ("blocktri-cg-ssor", Recipe::Ssor(1.0)),
            ("blocktri-cg-ssor-ai", Recipe::SsorAi(1.1)),
            ("blocktri-cg-ic0", Recipe::Ic0(DroppedFill::Forgotten)),
            ("blocktri-cg-mic0", Recipe::Ic0(DroppedFill::ToDiagonal)),
        ] {
            add(name, &cg, recipe, stop(1e-6, 5000));
        }
    } else {
        let stop = if partition.is_some() { stop(1e-7, 2000) } else { stop(1e-6, 3000) };
        add("blocktri-bicgstab-jacobi", &bicgstab, Recipe::Jacobi, stop);
        add("blocktri-bicgstab-ilu0", &bicgstab, Recipe::Ilu0, stop);
        add("blocktri-gmres-ilu0", &gmres, Recipe::Ilu0, stop);
        add("blocktri-gmres-ilu0-single-basis", &gmres_single, Recipe::Ilu0, stop);
        if let Some(partition) = partition {
            add("blocktri-bicgstab-block-jacobi", &bicgstab, Recipe::Block(BlockForm::Jacobi), stop);
            add("blocktri-bicgstab-block-redblack", &bicgstab, Recipe::Block(BlockForm::RedBlack), stop);
            add("blocktri-bicgstab-block-gs", &bicgstab, Recipe::Block(BlockForm::GaussSeidel), stop);
            let (made, report, seconds, x) = (None, None, 0.0, vec![0.0; n]);
            let reduced = Reduced { a, partition, b, x, made, stop, report, seconds };
            if args.method.as_deref().is_none_or(|m| reduced.name().contains(m)) {
                out.push(Box::new(reduced));
            }
        }
    }
    Ok(out)
}
