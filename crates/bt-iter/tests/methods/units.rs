//! Units and the order of unknowns decide nothing: every preconditioner and every method under the suites of the test kit.

use bt_direct::spike::{Partitions, SpikeOptions};
use bt_direct::{RbtOptions, SparseLu};
use bt_formats::{
    BlockTridiagonal, Csr, HybridLayout, LinearOperator, Outcome, Partition, Scalar, SolveReport, StopCriterion, c64,
    zero,
};
use bt_iter::{
    Arms, ArmsOptions, BandSpike, BandSpikeOptions, BiCgStab, BlockForm, BlockPreconditioner, CyclicallyReduced,
    DroppedFill, Factored, Gmres, Hbisa, Identity, IlutOptions, Jacobi, LastSolver, Lockstep, Overlap, Preconditioner,
    Relaxation, Schwarz, Series, SsorAi, SsorAiMasked, Sweep, Triangles, ic0, ilu0, iluk, ilut, ssor,
};
use bt_testkit::contract::{
    Answer, Apply, Units, method_twins_contract, method_units_contract, preconditioner_adjoint_contract,
    preconditioner_units_contract,
};
use bt_testkit::{csr, stencil};

type Made<T> = bt_direct::Result<Box<dyn Preconditioner<T>>>;

/// A preconditioner, the units it follows, and whether that of Aᴴ is its adjoint.
struct Entry<T: Scalar> {
    name: &'static str,
    units: Units,
    adjoint: bool,
    make: fn(&Csr<T>) -> Made<T>,
}

fn blocks<T: Scalar>(a: &Csr<T>) -> BlockTridiagonal<T> {
    BlockTridiagonal::from_csr(a, Partition::uniform(a.nrows(), 6).unwrap(), HybridLayout::default()).unwrap()
}

fn block<T: Scalar>(a: &Csr<T>, form: BlockForm) -> Made<T> {
    Ok(Box::new(BlockPreconditioner::new(blocks(a), form)?))
}

fn schwarz<T: Scalar>(a: &Csr<T>, overlap: Overlap, solver: fn(&Csr<T>) -> Made<T>) -> Made<T> {
    Ok(Box::new(Schwarz::new(a, &Partition::uniform(a.nrows(), 12).unwrap(), 1, overlap, solver)?))
}

fn boxed<T: Scalar, P: Preconditioner<T> + 'static>(made: bt_direct::Result<P>) -> Made<T> {
    made.map(|m| Box::new(m) as _)
}

/// Of any matrix, then of Hermitian ones alone.
fn all<T: Scalar>() -> [Vec<Entry<T>>; 2] {
    let entry = |name, units, adjoint, make| Entry { name, units, adjoint, make };
    let general = vec![
        entry("none", Units::None, true, |a| boxed(Ok(Identity::new(a.nrows())))),
        entry("jacobi", Units::Both, true, |a| boxed(Jacobi::new(a))),
        entry("ilu0", Units::Both, true, |a| boxed(ilu0(a, DroppedFill::Forgotten))),
        entry("milu0", Units::Rows, false, |a| boxed(ilu0(a, DroppedFill::ToDiagonal))),
        entry("iluk", Units::Both, true, |a| boxed(iluk(a, 2, DroppedFill::Forgotten))),
        entry("ilut", Units::Rows, false, |a| boxed(ilut(a, IlutOptions { fill: 4, drop_tolerance: 0.02 }))),
        entry("ssor", Units::Both, true, |a| boxed(ssor(a, 1.25))),
        entry("block-jacobi", Units::Whole, true, |a| block(a, BlockForm::Jacobi)),
        entry("block-gs", Units::Whole, false, |a| block(a, BlockForm::GaussSeidel)),
        entry("block-sgs", Units::Whole, true, |a| block(a, BlockForm::Symmetric)),
        entry("block-redblack", Units::Whole, true, |a| block(a, BlockForm::RedBlack)),
        entry("schwarz ilu0", Units::Both, true, |a| {
            schwarz(a, Overlap::Added, |local| boxed(ilu0(local, DroppedFill::Forgotten)))
        }),
        entry("ras ilut", Units::Rows, false, |a| {
            schwarz(a, Overlap::Restricted, |local| boxed(ilut(local, IlutOptions::default())))
        }),
        entry("ras iluk", Units::Both, false, |a| {
            schwarz(a, Overlap::Restricted, |local| boxed(iluk(local, 1, DroppedFill::Forgotten)))
        }),
        entry("ras direct", Units::Whole, false, |a| {
            schwarz(a, Overlap::Restricted, |local| Ok(Box::new(Factored::new(SparseLu::new(local)?))))
        }),
        entry("arms", Units::Whole, false, |a| boxed(Arms::with_options(a, arms(LastSolver::Dense)))),
        entry("arms ilut", Units::Whole, false, |a| boxed(Arms::with_options(a, arms(LastSolver::Ilut)))),
        entry("arms-rbt", Units::Whole, false, |a| {
            boxed(Arms::with_options(a, arms(LastSolver::Butterflies(RbtOptions::default()))))
        }),
        entry("spike", Units::Whole, false, |a| boxed(BandSpike::new(a))),
        entry("spike-truncated", Units::Whole, false, |a| boxed(BandSpike::with_options(a, &truncated()))),
    ];
    let ssor_ai = |name, units, make| entry(name, units, true, make);
    let hermitian = vec![
        entry("ic0", Units::Symmetric, true, |a| boxed(ic0(a, DroppedFill::Forgotten).map(|m| m.factors))),
        entry("mic0", Units::Whole, true, |a| boxed(ic0(a, DroppedFill::ToDiagonal).map(|m| m.factors))),
        ssor_ai("ssor-ai", Units::Symmetric, |a| boxed(SsorAiOwned::new(a, Series::First, Triangles::Stored))),
        ssor_ai("ssor-ai-free", Units::Symmetric, |a| boxed(SsorAiOwned::new(a, Series::First, Triangles::OfMatrix))),
        ssor_ai("ssor-ai2", Units::Symmetric, |a| boxed(SsorAiOwned::new(a, Series::Second, Triangles::Stored))),
        ssor_ai("ip", Units::None, |a| boxed(SsorAiOwned::new(a, Series::IncompletePoisson, Triangles::Stored))),
        ssor_ai("ssor-ai-masked", Units::Symmetric, |a| boxed(SsorAiMasked::new(a))),
        entry("schwarz ic0", Units::Symmetric, true, |a| {
            schwarz(a, Overlap::Added, |local| boxed(ic0(local, DroppedFill::Forgotten).map(|m| m.factors)))
        }),
    ];
    [general, hermitian]
}

fn arms(last: LastSolver) -> ArmsOptions {
    let options = ArmsOptions { last_size: 6, group_size: 4, last, ..ArmsOptions::default() };
    options.with_dropping(IlutOptions { fill: 6, drop_tolerance: 0.01 })
}

fn truncated() -> BandSpikeOptions {
    let options = BandSpikeOptions::truncated();
    BandSpikeOptions { spike: SpikeOptions { partitions: Partitions::Even(3), ..options.spike.clone() }, ..options }
}

/// `SsorAi` with the matrix that it borrows, made at every application.
struct SsorAiOwned<T: Scalar> {
    a: Csr<T>,
    series: Series,
    triangles: Triangles,
}

impl<T: Scalar> SsorAiOwned<T> {
    fn new(a: &Csr<T>, series: Series, triangles: Triangles) -> bt_direct::Result<Self> {
        SsorAi::with_options(a, 1.25, series, triangles)?;
        Ok(Self { a: a.clone(), series, triangles })
    }
}

impl<T: Scalar> Preconditioner<T> for SsorAiOwned<T> {
    fn n(&self) -> usize {
        self.a.nrows()
    }
    fn name(&self) -> &'static str {
        "ssor-ai"
    }
    fn kind(&self) -> bt_iter::PreconditionerKind {
        bt_iter::PreconditionerKind::Spd
    }
    fn apply(&mut self, r: &[T], z: &mut [T]) {
        SsorAi::with_options(&self.a, 1.25, self.series, self.triangles).unwrap().apply(r, z);
    }
    fn nnz(&self) -> usize {
        0
    }
    fn bytes(&self) -> usize {
        0
    }
}

/// A grid with wind, its diagonal raised unevenly; Hermitian without wind.
fn sample<T: Scalar>(wind: f64) -> Csr<T> {
    let real = stencil::<f64>(6, wind);
    csr(36, |i, j| {
        let (v, sign) = (real.get(i, j), f64::from(i32::from(j > i) - i32::from(j < i)));
        if i == j { T::rounded(v + 0.25 + (i % 5) as f64, 0.0) } else { T::rounded(v, 0.3 * v * sign) }
    })
}

#[test]
fn preconditioners_follow_the_units_of_the_system() {
    fn check<T: Scalar>() {
        for (entries, wind) in all::<T>().into_iter().zip([0.4, 0.0]) {
            let a = sample::<T>(wind);
            for Entry { name, units, adjoint, make } in entries {
                let mut applied = |a: &Csr<T>| {
                    let mut m = make(a).map_err(|e| e.to_string())?;
                    Ok(Box::new(move |r: &[T], z: &mut [T]| m.apply(r, z)) as Apply<T>)
                };
                assert_eq!(preconditioner_units_contract(&a, units, &mut applied), Ok(()), "{name} in {}", T::KIND);
                if adjoint {
                    assert_eq!(preconditioner_adjoint_contract(&a, &mut applied), Ok(()), "{name} in {}", T::KIND);
                }
            }
        }
    }
    check::<f64>();
    check::<f32>();
    check::<c64>();
}

type Run<T> = fn(&Csr<T>, &[T], &mut [T], &StopCriterion) -> SolveReport;

fn krylov<T: Scalar>(a: &Csr<T>, mut machine: Lockstep<T>, b: &[T], x: &mut [T], stop: &StopCriterion) -> SolveReport {
    let mut m = Jacobi::new(a).unwrap();
    machine.solve_one(a, &mut m, b, x, stop, &mut ()).unwrap()
}

fn hbisa<T: Scalar>(a: &Csr<T>, sweep: Sweep, b: &[T], x: &mut [T], stop: &StopCriterion) -> SolveReport {
    Hbisa::new(&blocks(a), sweep).unwrap().solve(b, x, stop, &mut ())
}

/// For every matrix, and for Hermitian ones.
fn methods<T: Scalar>() -> [Vec<(&'static str, Run<T>)>; 2] {
    let general: Vec<(&'static str, Run<T>)> = vec![
        ("bicgstab", |a, b, x, stop| krylov(a, Lockstep::bicgstab(b.len(), 1), b, x, stop)),
        ("gmres", |a, b, x, stop| krylov(a, Lockstep::gmres(b.len(), 1, 8), b, x, stop)),
        ("fgmres", |a, b, x, stop| krylov(a, Lockstep::fgmres(b.len(), 1, 8), b, x, stop)),
        ("gmres single", |a, b, x, stop| krylov(a, Lockstep::gmres_single_basis(b.len(), 1, 8), b, x, stop)),
        ("fgmres single", |a, b, x, stop| krylov(a, Lockstep::fgmres_single_basis(b.len(), 1, 8), b, x, stop)),
        ("hbisa", |a, b, x, stop| hbisa(a, Sweep::Jacobi, b, x, stop)),
        ("hbisa-gs", |a, b, x, stop| hbisa(a, Sweep::GaussSeidel, b, x, stop)),
        ("hbisa-sgs", |a, b, x, stop| hbisa(a, Sweep::Symmetric, b, x, stop)),
        ("hbisa-redblack", |a, b, x, stop| hbisa(a, Sweep::RedBlack, b, x, stop)),
        ("hbisa-sor", |a, b, x, stop| hbisa(a, Sweep::Sor(Relaxation::Tuned), b, x, stop)),
        ("hbisa-chebyshev", |a, b, x, stop| hbisa(a, Sweep::Chebyshev, b, x, stop)),
        ("reduced bicgstab", |a, b, x, stop| {
            let mut reduced = CyclicallyReduced::new(blocks(a)).unwrap();
            let mut method = BiCgStab::new(reduced.order());
            let solved = reduced.solve(b, x, stop, &mut |operator, g, u, stop| {
                method.solve(operator, &mut Identity::new(g.len()), g, u, stop, &mut ())
            });
            solved.unwrap()
        }),
    ];
    let hermitian: Vec<(&'static str, Run<T>)> = vec![
        ("cg", |a, b, x, stop| krylov(a, Lockstep::cg(b.len(), 1), b, x, stop)),
        ("fcg", |a, b, x, stop| krylov(a, Lockstep::flexible_cg(b.len(), 1), b, x, stop)),
    ];
    [general, hermitian]
}

#[test]
fn methods_follow_the_units_of_the_system_and_solve_its_twins() {
    fn check<T: Scalar>(rtol: f64) {
        for (runs, wind) in methods::<T>().into_iter().zip([0.4, 0.0]) {
            let a = sample::<T>(wind);
            let b: Vec<T> = (0..36).map(|i| T::rounded(1.0 + ((7 * i) % 11) as f64, 0.0)).collect();
            for (name, run) in runs {
                let stop = StopCriterion { rtol, ..StopCriterion::default() };
                let mut solve = |a: &Csr<T>, b: &[T]| {
                    let mut x = vec![zero(); b.len()];
                    let report = run(a, b, &mut x, &stop);
                    Ok(Answer { x, iterations: report.iterations, outcome: report.outcome })
                };
                let what = format!("{name} in {}", T::KIND);
                assert_eq!(solve(&a, &b).unwrap().outcome, Outcome::Converged, "{what}");
                assert_eq!(method_units_contract(&a, &b, &mut solve), Ok(()), "{what}");
                // A random order has no block-tridiagonal form.
                if !name.starts_with("hbisa") && !name.starts_with("reduced") {
                    assert_eq!(method_twins_contract(&a, &b, rtol, 30.0 * rtol, &mut solve), Ok(()), "{what}");
                }
            }
        }
    }
    check::<f64>(1e-9);
    check::<c64>(1e-9);
    check::<f32>(1e-4);
}

/// Columns in units of 1e-11 and 1e5: pivots are small beside their rows, and none has been cancelled.
#[test]
fn pivots_in_small_units_are_kept() {
    let line = csr(40, |i: usize, j: usize| match i.abs_diff(j) {
        0 => 4.0,
        1 => -1.0,
        _ => 0.0,
    });
    let unit = |j: usize| [1e-11, 1.0, 1e5, 1e-7][j % 4];
    let a = csr(40, |i, j| line.get(i, j) * unit(j));
    let b = vec![1.0; 40];
    let made: [(&str, bt_iter::IncompleteLu<f64>); 4] = [
        ("ilu0", ilu0(&a, DroppedFill::Forgotten).unwrap()),
        ("iluk", iluk(&a, 1, DroppedFill::Forgotten).unwrap()),
        ("milu0", ilu0(&a, DroppedFill::ToDiagonal).unwrap()),
        ("ilut", ilut(&a, IlutOptions::default()).unwrap()),
    ];
    for (name, mut m) in made {
        assert_eq!(m.replaced_pivots(), 0, "{name}");
        let mut x = vec![0.0; 40];
        let report = Gmres::new(40, 30).solve(&a, &mut m, &b, &mut x, &StopCriterion::default(), &mut ()).unwrap();
        assert!(report.outcome == Outcome::Converged && report.iterations <= 3, "{name}: {}", report.iterations);
    }
    // What has been cancelled is replaced: two equal rows, in whatever unit.
    for size in [1e-200, 1.0, 1e200] {
        let twice = csr(3, |i, j| {
            if i == j && i == 2 {
                size
            } else if i < 2 && j < 2 {
                size * 3.0
            } else {
                0.0
            }
        });
        assert_eq!(ilu0(&twice, DroppedFill::Forgotten).unwrap().replaced_pivots(), 1, "{size}");
        assert_eq!(ilut(&twice, IlutOptions::default()).unwrap().replaced_pivots(), 1, "{size}");
    }
}

/// Poisson's equation in other units: as many steps, and as many entries kept.
#[test]
fn ilut_drops_the_same_in_any_unit() {
    let plain = stencil::<f64>(20, 0.0);
    let b = vec![1.0; 400];
    let run = |factor: f64| {
        let mut a = plain.clone();
        a.values_mut().iter_mut().for_each(|v| *v *= factor);
        let mut m = ilut(&a, IlutOptions::default()).unwrap();
        let mut x = vec![0.0; 400];
        let report = Gmres::new(400, 50).solve(&a, &mut m, &b, &mut x, &StopCriterion::default(), &mut ()).unwrap();
        assert_eq!(report.outcome, Outcome::Converged);
        (report.iterations, m.nnz())
    };
    let reference = run(1.0);
    assert!(reference.0 <= 8, "{reference:?}");
    for factor in [1e3, 1e-12, 1e12] {
        assert_eq!(run(factor), reference, "{factor}");
    }
}

#[test]
fn empty_rows_of_subdomains_have_the_unit_of_the_matrix() {
    // Parts of one row, the last two without an entry inside.
    let a: Csr<f64> =
        csr(4, |i, j| if (i < 2) != (j < 2) || (i == j && i < 2) { 1.0 + (i + 2 * j) as f64 } else { 0.0 });
    let r = [3.0, -1.0, 2.0, 7.0];
    let applied = |a: &Csr<f64>| {
        let parts = Partition::uniform(4, 1).unwrap();
        let local = |local: &Csr<f64>| ilu0(local, DroppedFill::Forgotten);
        let (mut m, mut z) = (Schwarz::new(a, &parts, 0, Overlap::Restricted, local).unwrap(), [0.0; 4]);
        m.apply(&r, &mut z);
        z
    };
    let plain = applied(&a);
    for unit in [60f64.exp2(), (-60f64).exp2(), (-900f64).exp2()] {
        assert_eq!(applied(&csr(4, |i, j| a.get(i, j) * unit)).map(|z| z * unit), plain);
    }
}
