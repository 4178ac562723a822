//! The experiments of Yang, Li & Li, "A parallel solving method for block-tridiagonal equations on CPU–GPU heterogeneous
//! computing systems", J. Supercomput. 73 (2017) 1760–1781, doi:10.1007/s11227-016-1881-x: tables 2, 3 and 4, figure 5.
//!
//! The paper publishes sizes, non-zeros and iteration counts of ten matrices, not the matrices; those of [`bt_queue::cases`] have the
//! sizes and non-zeros by construction, and rates that were calibrated to the counts. So agreement of counts says that such
//! matrices exist, and what can be tested is how the methods stand to one another on them.

mod gpu;
mod report;

use bt_direct::{BandLu, BlockLu, SparseLu};
use bt_formats::{
    Band, BlockTridiagonal, CancelToken, Csr, HybridLayout, LinearOperator, Matrix, Partition, Permutation,
    StopCriterion, norm2,
};
use bt_iter::{BlockForm, BlockPreconditioner, Hbisa, Identity, Relaxation, StopRule, Sweep};
use bt_queue::{Capacity, CloudCase, CloudModel, Form, Order, Rates, Stationary};
use faer::mat;
use serde_json::{Value, json};

use crate::Scale;
use crate::experiment::{Error, Experiment, Facts};
use crate::gpu::Gpu;
use crate::measure::{Krylov, Runs, direct, krylov, outcome, stopped};
use crate::spread::rounds;
pub use report::report;

/// A row of the paper: name, n as printed, k, NNZ; iterations of HBISA, CG, BiCGSTAB; seconds of these on a K20c, and of cuSolverSP.
struct Published {
    name: &'static str,
    n: usize,
    k: usize,
    nnz: usize,
    iterations: [Option<f64>; 3],
    seconds: [Option<f64>; 4],
}

const fn row(
    name: &'static str,
    n: usize,
    k: usize,
    nnz: usize,
    [h, c, b]: [u16; 3],
    [th, tc, tb, ts]: [f64; 4],
) -> Published {
    // 0 stands for "No".
    let cg = if c == 0 { None } else { Some(c as f64) };
    let cg_seconds = if c == 0 { None } else { Some(tc) };
    Published {
        name,
        n,
        k,
        nnz,
        iterations: [Some(h as f64), cg, Some(b as f64)],
        seconds: [Some(th), cg_seconds, Some(tb), Some(ts)],
    }
}

const PAPER: [Published; 10] = [
    row("Cloud16-100", 1600, 16, 7231, [120, 154, 175], [0.196, 0.267, 0.297, 0.263]),
    row("Cloud16-500", 8000, 16, 35431, [128, 956, 150], [0.354, 0.733, 0.401, 0.428]),
    row("Cloud16-800", 12000, 16, 56331, [127, 971, 164], [0.525, 0.754, 0.622, 0.598]),
    row("Cloud16-1000", 16000, 16, 70931, [125, 959, 157], [0.698, 0.913, 0.731, 0.719]),
    row("Cloud16-2000", 32000, 16, 135931, [131, 836, 159], [0.960, 1.186, 0.962, 0.965]),
    row("Cloud32-100", 3200, 32, 14196, [162, 163, 165], [0.284, 0.286, 0.288, 0.297]),
    row("Cloud32-500", 16000, 32, 66196, [186, 195, 217], [0.460, 0.462, 0.469, 0.489]),
    row("Cloud32-1000", 32000, 32, 136696, [181, 0, 203], [0.509, 0.0, 0.595, 0.566]),
    row("Cloud64-100", 6400, 64, 25215, [309, 333, 356], [0.324, 0.336, 0.350, 0.334]),
    row("Cloud64-500", 32000, 64, 127915, [371, 334, 365], [0.703, 0.682, 0.696, 0.667]),
];

/// Where CG and its like give up: three times the largest published count.
const MAX_ITERS: usize = 3000;
/// The paper's tolerance.
const TOLERANCE: f64 = 1e-7;
/// Levels and rates of the table of resources to turn on in advance.
const ARRIVALS: [f64; 5] = [2.0, 5.0, 10.0, 20.0, 30.0];

/// The methods of Table 3: key, heading.
const ITERATIVE: [(&str, &str); 5] =
    [("hbisa", "HBISA"), ("gs", "block Gauss–Seidel"), ("cg", "CG"), ("bicgstab", "BiCGSTAB"), ("gmres", "GMRES(30)")];
const DIRECT: [(&str, &str); 3] =
    [("band-lu", "band LU, by tasks"), ("block-lu", "block LU, by levels"), ("sparse-lu", "sparse LU")];

pub fn experiments(scale: Scale, gpu: Option<&Gpu>) -> Vec<Experiment> {
    let mut all = vec![
        Experiment::new("hbisa/B", "the 9 × 9 matrix B", example),
        Experiment::new("hbisa/plans", "resources to turn on in advance", plans),
    ];
    all.extend(small_first().into_iter().map(|case| {
        Experiment::new(format!("hbisa/{}", case.name()), case.name().to_owned(), move |cancel| cloud(&case, cancel))
    }));
    all.extend(gpu.into_iter().flat_map(|gpu| gpu::experiments(scale, gpu)));
    all
}

/// The ten cases, small ones first.
fn small_first() -> Vec<CloudCase> {
    let mut cases = CloudCase::all();
    cases.sort_by_key(|c| c.parameters().block_size * c.parameters().levels);
    cases
}

fn facts(value: Value) -> Facts {
    match value {
        Value::Object(facts) => facts,
        other => Facts::from_iter([("value".to_owned(), other)]),
    }
}

/// ‖Δx‖∞ ≤ 1e-7
fn update_rule(max_iters: usize) -> StopCriterion {
    StopCriterion { rtol: 0.0, atol: TOLERANCE, max_iters, ..StopCriterion::default() }
}

/// HBISA by a rule; `rtol` for residuals, absolute for updates.
fn sweeps(
    a: &BlockTridiagonal<f64>,
    b: &[f64],
    sweep: Sweep,
    rule: StopRule,
    (max_iters, runs): (usize, Runs),
    cancel: &CancelToken,
) -> Result<Value, Error> {
    let stop = match rule {
        StopRule::Update => update_rule(max_iters),
        StopRule::Residual => StopCriterion { rtol: TOLERANCE, max_iters, ..StopCriterion::default() },
    };
    let mut hbisa = Hbisa::with_options(a, sweep, rule)?;
    let mut x = vec![0.0; b.len()];
    let (seconds, report) = runs.of(|| {
        x.fill(0.0);
        let report = hbisa.solve(b, &mut x, &stop, &mut cancel.clone());
        stopped(&report).map(|()| report)
    })?;
    let mut facts = outcome(&report, seconds);
    facts["setup_seconds"] = json!(report.times.setup.as_secs_f64());
    facts["x_first"] = json!(x[0]);
    Ok(facts)
}

/// Conjugate gradients as textbooks have them, without the check of pᵀAp > 0 that the library's make: the paper ran them on
/// matrices that are not symmetric. What they call converged is so only by the true residual.
fn textbook_cg(a: &Csr<f64>, b: &[f64], max_iters: usize, cancel: &CancelToken) -> Result<Value, Error> {
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let n = b.len();
    let (seconds, (x, steps)) = Runs::One.of(|| {
        let (mut x, mut r, mut p, mut q) = (vec![0.0; n], b.to_vec(), b.to_vec(), vec![0.0; n]);
        let mut rho = dot(&r, &r);
        let target = TOLERANCE * rho.sqrt();
        let mut steps = 0;
        while steps < max_iters && rho.sqrt() > target {
            if cancel.is_cancelled() {
                return Err(Error::Stopped);
            }
            // q = A·p;  α = ρ/pᵀq;  x ← x + αp;  r ← r − αq;  p ← r + (ρ'/ρ)·p
            a.apply(1.0, &p, 0.0, &mut q);
            let alpha = rho / dot(&p, &q);
            for i in 0..n {
                x[i] += alpha * p[i];
                r[i] -= alpha * q[i];
            }
            let next = dot(&r, &r);
            for (p, r) in p.iter_mut().zip(&r) {
                *p = r + next / rho * *p;
            }
            rho = next;
            steps += 1;
        }
        Ok((x, steps))
    })?;
    // r = b − A·x
    let mut r = b.to_vec();
    a.apply(-1.0, &x, 1.0, &mut r);
    let residual = norm2(&r) / norm2(b);
    let outcome = match steps < max_iters {
        false => "iteration-limit",
        true if residual <= 10.0 * TOLERANCE => "converged",
        true => "false-convergence",
    };
    Ok(json!({ "outcome": outcome, "iterations": steps, "relative_residual": residual, "seconds": seconds }))
}

/// One of the ten: all methods, b = ones, x⁰ = 0.
fn cloud(case: &CloudCase, cancel: &CancelToken) -> Result<Facts, Error> {
    let a = case.matrix()?;
    let n = a.nrows();
    let blocks = BlockTridiagonal::from_csr(&a, case.partition()?, HybridLayout::default())?;
    let b = vec![1.0; n];
    let stop = StopCriterion { rtol: TOLERANCE, max_iters: MAX_ITERS, ..StopCriterion::default() };
    let by = |sweep| sweeps(&blocks, &b, sweep, StopRule::Update, (MAX_ITERS, Runs::One), cancel);
    let plain = |method| krylov(method, &a, &mut Identity::new(n), &b, &stop, Runs::One, cancel);
    let with_blocks = |method| {
        let mut d = BlockPreconditioner::new(blocks.clone(), BlockForm::Jacobi)?;
        krylov(method, &a, &mut d, &b, &stop, Runs::One, cancel)
    };
    let (order, by_tasks) = by_tasks(case, &a)?;
    let half = half_bandwidth(&by_tasks);
    let mut permuted = vec![0.0; n];
    order.gather(&b, &mut permuted);
    let mut found = rounds(vec![
        ("hbisa", Box::new(|| by(Sweep::Jacobi))),
        ("gs", Box::new(|| by(Sweep::GaussSeidel))),
        ("cg", Box::new(|| textbook_cg(&a, &b, MAX_ITERS, cancel))),
        ("bicgstab", Box::new(|| plain(Krylov::BiCgStab))),
        ("gmres", Box::new(|| plain(Krylov::Gmres(30)))),
        ("band-lu", Box::new(|| direct(&by_tasks, &permuted, Runs::One, || BandLu::new(&Band::from_csr(&by_tasks)?)))),
        ("block-lu", Box::new(|| direct(&a, &b, Runs::One, || BlockLu::new(&blocks)))),
        ("sparse-lu", Box::new(|| direct(&a, &b, Runs::One, || SparseLu::new(&a)))),
    ])?;
    found.append(&mut facts(json!({
        "n": n,
        "nnz": a.nnz(),
        "half_bandwidth": half,
        "redblack": by(Sweep::RedBlack)?,
        "sor": by(Sweep::Sor(Relaxation::Tuned))?,
        "chebyshev": by(Sweep::Chebyshev)?,
        "cg_checked": plain(Krylov::Cg)?,
        "bicgstab_d": with_blocks(Krylov::BiCgStab)?,
        "gmres_d": with_blocks(Krylov::Gmres(30))?,
    })));
    Ok(found)
}

/// The states ordered by tasks, then level. State (j, r) has s_j + r tasks, s_j = ⌊j·S/(m−1)⌋ (see [`bt_queue::cases`]).
fn by_tasks(case: &CloudCase, a: &Csr<f64>) -> Result<(Permutation, Csr<f64>), Error> {
    let p = case.parameters();
    let (k, m) = (p.block_size, p.levels);
    let drift = ((5 * k - 2) * m - 2 * k - p.nnz) / 2;
    let mut order: Vec<u32> = (0..(k * m) as u32).collect();
    order.sort_by_key(|&state| {
        let (level, place) = (state as usize / k, state as usize % k);
        (level * drift / (m - 1) + place, level)
    });
    let order = Permutation::from_order(order)?;
    let permuted = a.permute(&order, &order);
    Ok((order, permuted))
}

fn half_bandwidth(a: &Csr<f64>) -> usize {
    let mut half = 0;
    a.for_each_entry(&mut |i, j, _| half = half.max(i.abs_diff(j)));
    half
}

/// The paper's 9 × 9 example.
fn example_matrix() -> Result<(Csr<f64>, BlockTridiagonal<f64>), Error> {
    let a = Csr::from_dense(
        mat![
            [1.0, -4.0, 0.0, -2.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [-3.0, 7.0, -4.0, 0.0, -2.0, 0.0, 0.0, 0.0, 0.0],
            [0.0, -3.0, 5.0, -4.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [-1.0, 0.0, 0.0, 5.0, -4.0, 0.0, -2.0, 0.0, 0.0],
            [0.0, 0.0, -3.0, -3.0, 9.0, -4.0, 0.0, -1.0, 0.0],
            [0.0, -1.0, 0.0, 0.0, -2.0, 9.0, 0.0, -2.0, 0.0],
            [0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 5.0, -3.0, 0.0],
            [0.0, 0.0, 0.0, 0.0, 0.0, -2.0, -4.0, 9.0, -4.0],
            [0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, -3.0, 12.0]
        ]
        .as_ref(),
    )?;
    let blocks = BlockTridiagonal::from_csr(&a, Partition::uniform(9, 3)?, HybridLayout::default())?;
    Ok((a, blocks))
}

/// The same, b = ones.
fn example(cancel: &CancelToken) -> Result<Facts, Error> {
    let (a, blocks) = example_matrix()?;
    let b = vec![1.0; 9];
    let stop = StopCriterion { rtol: TOLERANCE, max_iters: 500, ..StopCriterion::default() };
    let by = |sweep, rule| sweeps(&blocks, &b, sweep, rule, (MAX_ITERS, Runs::One), cancel);
    let plain = |method| krylov(method, &a, &mut Identity::new(9), &b, &stop, Runs::One, cancel);
    Ok(facts(json!({
        "hbisa": by(Sweep::Jacobi, StopRule::Update)?,
        "hbisa_residual": by(Sweep::Jacobi, StopRule::Residual)?,
        "gs": by(Sweep::GaussSeidel, StopRule::Update)?,
        "gs_residual": by(Sweep::GaussSeidel, StopRule::Residual)?,
        "redblack": by(Sweep::RedBlack, StopRule::Update)?,
        "sor_0.838": by(Sweep::Sor(Relaxation::Fixed(0.838)), StopRule::Update)?,
        "sor_1.2": by(Sweep::Sor(Relaxation::Fixed(1.2)), StopRule::Update)?,
        "sor": by(Sweep::Sor(Relaxation::Tuned), StopRule::Update)?,
        "cg": textbook_cg(&a, &b, 500, cancel)?,
        "cg_checked": plain(Krylov::Cg)?,
        "bicgstab": plain(Krylov::BiCgStab)?,
        "gmres": plain(Krylov::Gmres(30))?,
    })))
}

/// ⌈M/K⌉ for the most probable number of tasks M, with the mean and the 95 % quantile of the resources on.
fn plans(_: &CancelToken) -> Result<Facts, Error> {
    let rows = ARRIVALS.map(|arrival| {
        let rates = Rates { arrival, service: 1.0, turn_on: 1.0, turn_off: 1.0 };
        let model = CloudModel::new(40, 16, rates, Form::Repaired)?;
        let pi = Stationary::gth(&model.generator(Order::TaskMajor)?)?;
        let capacity = Capacity::new(&model, Order::TaskMajor, &pi);
        let level = &capacity.marginals.level;
        Ok::<_, Error>(json!({
            "arrival": arrival,
            "in_advance": capacity.in_advance(),
            "mean_on": level.mean(),
            "on_95": level.quantile(0.95),
            "error_bound": pi.error_bound(),
        }))
    });
    Ok(facts(json!({ "rows": rows.into_iter().collect::<Result<Vec<_>, _>>()? })))
}
