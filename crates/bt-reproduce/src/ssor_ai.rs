//! The experiments of R. Helfenstein, J. Koko, "Parallel preconditioned conjugate gradient algorithm on GPU", J. Comput. Appl.
//! Math. 236 (2012) 3584–3590, doi:10.1016/j.cam.2011.04.025: figures 1 and 2, tables 1 to 3.
//!
//! Poisson's equation on the unit disk with the published numbers of unknowns; the meshes are our own ([`bt_queue::UnitDisk`]).
//! Condition numbers are κ₁(B) = ‖B‖₁‖B⁻¹‖₁ of B = A·M⁻¹: B is formed and its norm is exact, that of B⁻¹ is an estimate
//! ([`bt_direct::condition`]), with triangular solves for M since M̄ = (2−ω)(I − Nᵀ)D̄⁻¹(I − N).

mod gpu;

use std::time::Instant;

use bt_direct::condition::norm_one_estimate;
use bt_direct::{Factorization, SparseLu};
use bt_formats::{Baseline, CancelToken, Coo, Csr, LinearOperator, Matrix, Op, StopCriterion};
use bt_iter::{DroppedFill, Identity, Jacobi, Preconditioner, Series, SsorAi, SsorAiMasked, Triangles, ic0};
use bt_queue::UnitDisk;
use serde_json::{Value, json};

use crate::Scale;
use crate::document::{Axis, Claim, Curve, Figure, Item, Origin, Report, Scaling, Section, Stroke, Table, Verdict};
use crate::experiment::{Error, Experiment, Facts, Results};
use crate::gpu::Gpu;
use crate::measure::{Krylov, Runs, converged, count, iterations, krylov, ratio, seconds};
use crate::spread::{quotients, rounds};

/// ω of the tables.
const OMEGA: f64 = 1.1;
/// Sizes of figures 1 and 2.
const FIGURES: [usize; 2] = [1105, 8047];
/// n of tables 1 to 3; seconds of CG on one core of a Xeon, of CG and of PCG in two ways on a Tesla T10.
const TABLE: [(usize, [f64; 4]); 5] = [
    (265_345, [25.22, 5.38, 4.09, 2.86]),
    (525_849, [64.53, 10.80, 8.46, 7.79]),
    (755_581, [118.06, 18.48, 13.59, 13.90]),
    (1_063_159, [201.37, 29.27, 20.63, 22.57]),
    (2_105_137, [516.73, 71.37, 50.37, 62.05]),
];
/// Iterations of an independent implementation on the same meshes: n, CG, PCG with the masked inverse.
const REFERENCE: [(usize, f64, f64); 7] = [
    (1105, 96.0, 50.0),
    (8047, 247.0, 136.0),
    (265_345, 1468.0, 801.0),
    (525_849, 2087.0, 1119.0),
    (755_581, 2509.0, 1262.0),
    (1_063_159, 2973.0, 1642.0),
    (2_105_137, 4212.0, 2315.0),
];
/// κ(A) and κ(A·D⁻¹) of the paper for n = 8047.
const PAPER_KAPPA: [f64; 2] = [7607.0, 6430.0];

/// What is run: key, heading.
const SOLVERS: [(&str, &str); 4] = [
    ("cg1", "CG, one thread"),
    ("cg", "CG"),
    ("masked", "PCG, one product (M̄_A)"),
    ("stored", "PCG, two products (M̄)"),
];
/// Preconditioners of the figures: key, heading.
const CURVES: [(&str, &str); 3] = [("masked", "A·M̄_A"), ("full", "A·M̄"), ("second", "M̄ of order 2")];

fn omegas() -> impl Iterator<Item = f64> {
    (1..20).map(|k| f64::from(k) / 10.0)
}

fn sizes(scale: Scale) -> &'static [(usize, f64, f64)] {
    match scale {
        Scale::Quick => &REFERENCE[..3],
        Scale::Full => &REFERENCE,
    }
}

fn figure_id(n: usize) -> String {
    format!("ssor-ai/condition-{n}")
}

fn solve_id(n: usize, key: &str) -> String {
    format!("ssor-ai/{n}/{key}")
}

fn rounds_id(n: usize) -> String {
    format!("ssor-ai/{n}/rounds")
}

/// The quick run has the two sides of the paper's comparison alone at the first of its sizes.
fn wanted(scale: Scale, n: usize, key: &str) -> bool {
    scale == Scale::Full || n < TABLE[0].0 || key == "cg" || key == "masked"
}

pub fn experiments(scale: Scale, gpu: Option<&Gpu>) -> Vec<Experiment> {
    let figures = FIGURES.map(|n| {
        Experiment::new(figure_id(n), format!("condition numbers, n = {n}"), move |cancel| conditions(n, cancel))
    });
    let solves = sizes(scale).iter().flat_map(|&(n, ..)| {
        SOLVERS.into_iter().filter(move |(key, _)| wanted(scale, n, key)).map(move |(key, name)| {
            Experiment::new(solve_id(n, key), format!("{name}, n = {n}"), move |cancel| solve(n, key, cancel))
        })
    });
    let in_turn = TABLE.iter().filter(|(n, _)| sizes(scale).iter().any(|size| size.0 == *n)).map(|&(n, _)| {
        Experiment::new(rounds_id(n), format!("CG and PCG in turn, n = {n}"), move |cancel| in_turn(n, cancel))
    });
    let there = gpu.into_iter().flat_map(|gpu| gpu::experiments(scale, gpu));
    figures.into_iter().chain(solves).chain(in_turn).chain(there).collect()
}

/// The paper's rule: ‖r‖/‖r⁰‖ < 1e-6, x⁰ = 0.
fn rule() -> StopCriterion {
    StopCriterion { rtol: 1e-6, baseline: Baseline::InitialResidual, max_iters: 20_000, ..StopCriterion::default() }
}

/// A size by one solver on the processor.
fn solve(n: usize, key: &'static str, cancel: &CancelToken) -> Result<Facts, Error> {
    let (a, b) = UnitDisk::new(n)?.into_parts();
    let start = Instant::now();
    let mut m: Box<dyn Preconditioner<f64> + '_> = match key {
        "masked" => Box::new(SsorAiMasked::with_options(&a, OMEGA)?),
        "stored" => Box::new(SsorAi::with_options(&a, OMEGA, Series::First, Triangles::Stored)?),
        "free" => Box::new(SsorAi::with_options(&a, OMEGA, Series::First, Triangles::OfMatrix)?),
        "second" => Box::new(SsorAi::with_options(&a, OMEGA, Series::Second, Triangles::Stored)?),
        "ip" => Box::new(SsorAi::with_options(&a, 1.0, Series::IncompletePoisson, Triangles::Stored)?),
        "jacobi" => Box::new(Jacobi::new(&a)?),
        "ic0" => Box::new(ic0(&a, DroppedFill::Forgotten)?.factors),
        _ => Box::new(Identity::new(n)),
    };
    let setup = start.elapsed().as_secs_f64();
    let mut run = || krylov(Krylov::Cg, &a, &mut *m, &b, &rule(), Runs::Fastest, cancel);
    let mut solve = match key {
        "cg1" => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
            pool.map_err(|e| Error::Failed(e.to_string()))?.install(run)?
        }
        _ => run()?,
    };
    solve["setup_seconds"] = json!(setup);
    Ok(Facts::from_iter([("solve".to_owned(), solve)]))
}

/// CG and PCG with M̄_A in turn, five times; forming M̄_A is PCG's setup.
fn in_turn(n: usize, cancel: &CancelToken) -> Result<Facts, Error> {
    let (a, b) = UnitDisk::new(n)?.into_parts();
    let run = |m: &mut dyn Preconditioner<f64>| krylov(Krylov::Cg, &a, m, &b, &rule(), Runs::One, cancel);
    rounds(vec![
        ("cg", Box::new(|| run(&mut Identity::new(n)))),
        (
            "masked",
            Box::new(|| {
                let start = Instant::now();
                let mut m = SsorAiMasked::with_options(&a, OMEGA)?;
                let setup = start.elapsed().as_secs_f64();
                let mut facts = run(&mut m)?;
                facts["setup_seconds"] = json!(setup);
                Ok(facts)
            }),
        ),
    ])
}

/// κ₁ of A, A·D⁻¹ and A·M⁻¹ for M⁻¹ = M̄_A, M̄ of both orders over ω, and IP; iterations of PCG beside them.
fn conditions(n: usize, cancel: &CancelToken) -> Result<Facts, Error> {
    let (a, b) = UnitDisk::new(n)?.into_parts();
    let inverse = SparseLu::new(&a)?;
    let pcg = |m: &mut dyn Preconditioner<f64>| krylov(Krylov::Cg, &a, m, &b, &rule(), Runs::One, cancel);
    let mut rows = Vec::new();
    for omega in omegas() {
        if cancel.is_cancelled() {
            return Err(Error::Stopped);
        }
        let mut row = Facts::from_iter([("omega".to_owned(), json!(omega))]);
        let mut full = SsorAi::with_options(&a, omega, Series::First, Triangles::Stored)?;
        let explicit = neumann(&a, omega, Series::First)?;
        let kappa = condition(&a, &inverse, &explicit, &|x| neumann_solve(&a, omega, Series::First, x))?;
        row.insert("full".into(), with(kappa, pcg(&mut full)?));
        let mut second = SsorAi::with_options(&a, omega, Series::Second, Triangles::Stored)?;
        row.insert("second".into(), with(f64::NAN, pcg(&mut second)?));
        // An indefinite M̄_A is no preconditioner for conjugate gradients: the constructor or the iteration says so.
        let masked = match SsorAiMasked::with_options(&a, omega) {
            Err(why) => json!({ "error": why.to_string() }),
            Ok(mut masked) => {
                let lu = SparseLu::new(masked.matrix())?;
                let kappa = condition(&a, &inverse, masked.matrix(), &|x| lu.solve_vec_in_place(x))?;
                with(kappa, pcg(&mut masked)?)
            }
        };
        row.insert("masked".into(), masked);
        rows.push(Value::Object(row));
    }
    let mut ip = SsorAi::with_options(&a, 1.0, Series::IncompletePoisson, Triangles::Stored)?;
    let explicit = neumann(&a, 1.0, Series::IncompletePoisson)?;
    let kappa_ip = condition(&a, &inverse, &explicit, &|x| neumann_solve(&a, 1.0, Series::IncompletePoisson, x))?;
    let diagonal: Vec<f64> = (0..n).map(|i| a.get(i, i)).collect();
    let mut jacobi = Jacobi::new(&a)?;
    let scaling = from_entries(n, diagonal.iter().enumerate().map(|(i, d)| (i, i, 1.0 / d)))?;
    let kappa_d = condition(&a, &inverse, &scaling, &|x| x.iter_mut().zip(&diagonal).for_each(|(x, d)| *x *= d))?;
    let identity = from_entries(n, (0..n).map(|i| (i, i, 1.0)))?;
    let kappa = condition(&a, &inverse, &identity, &|_| ())?;
    Ok(Facts::from_iter([
        ("none".into(), with(kappa, pcg(&mut Identity::new(n))?)),
        ("jacobi".into(), with(kappa_d, pcg(&mut jacobi)?)),
        ("ip".into(), with(kappa_ip, pcg(&mut ip)?)),
        ("rows".into(), Value::Array(rows)),
    ]))
}

fn with(kappa: f64, mut solve: Value) -> Value {
    solve["kappa"] = json!(kappa);
    solve
}

/// κ₁(A·M⁻¹) for M⁻¹ stored and symmetric; `unapply` is x ← M·x.
fn condition(a: &Csr<f64>, inverse: &SparseLu<f64>, m: &Csr<f64>, unapply: &dyn Fn(&mut [f64])) -> Result<f64, Error> {
    let norm_inverse = norm_one_estimate::<f64>(a.nrows(), |op, columns| {
        for x in columns.chunks_exact_mut(a.nrows()) {
            match op {
                // x ← M·A⁻¹·x
                Op::Identity => {
                    inverse.solve_vec_in_place(x);
                    unapply(x);
                }
                // x ← A⁻¹·M·x
                Op::Transpose | Op::Adjoint => {
                    unapply(x);
                    inverse.solve_vec_in_place(x);
                }
            }
        }
    });
    Ok(product(a, m)?.norm_one() * norm_inverse)
}

/// A·B, row by row.
fn product(a: &Csr<f64>, b: &Csr<f64>) -> Result<Csr<f64>, Error> {
    let (mut row_ptr, mut col_idx, mut values) = (vec![0], Vec::new(), Vec::new());
    let mut sums = vec![0.0; b.ncols()];
    let mut seen = vec![false; b.ncols()];
    for i in 0..a.nrows() {
        let first = col_idx.len();
        let (cols, vals) = a.row(i);
        for (&k, v) in cols.iter().zip(vals) {
            let (inner, entries) = b.row(k as usize);
            for (&j, w) in inner.iter().zip(entries) {
                if !std::mem::replace(&mut seen[j as usize], true) {
                    col_idx.push(j);
                }
                sums[j as usize] += v * w;
            }
        }
        col_idx[first..].sort_unstable();
        for &j in &col_idx[first..] {
            seen[j as usize] = false;
            values.push(std::mem::take(&mut sums[j as usize]));
        }
        row_ptr.push(col_idx.len() as u32);
    }
    Ok(Csr::new(a.nrows(), b.ncols(), row_ptr, col_idx, values)?)
}

/// A matrix of some entries.
fn from_entries(n: usize, entries: impl Iterator<Item = (usize, usize, f64)>) -> Result<Csr<f64>, Error> {
    let mut coo = Coo::new(n, n)?;
    for (i, j, v) in entries {
        coo.push(i, j, v)?;
    }
    Ok(coo.to_csr()?)
}

/// M̄ = (2−ω)(I − Nᵀ)D̄⁻¹(I − N) with all its entries, or (I − N)(I − Nᵀ) with ω = 1 for IP; N = L·D̄⁻¹.
fn neumann(a: &Csr<f64>, omega: f64, series: Series) -> Result<Csr<f64>, Error> {
    let n = a.nrows();
    let d = |i: usize| a.get(i, i) / omega;
    let mut lower = Vec::new();
    a.for_each_entry(&mut |i, j, v| match i.cmp(&j) {
        std::cmp::Ordering::Greater => lower.push((i, j, -v / d(j))),
        std::cmp::Ordering::Equal => lower.push((i, i, 1.0)),
        std::cmp::Ordering::Less => {}
    });
    let p = from_entries(n, lower.into_iter())?;
    if series == Series::IncompletePoisson {
        return product(&p, &p.transpose());
    }
    let scaled = p.scale(&(0..n).map(|i| (2.0 - omega) / d(i)).collect::<Vec<_>>(), &vec![1.0; n]);
    product(&p.transpose(), &scaled)
}

/// x ← M·x for M⁻¹ = (2−ω)(I − Nᵀ)D̄⁻¹(I − N), or (I − N)(I − Nᵀ) with ω = 1 for IP; N = L·D̄⁻¹.
fn neumann_solve(a: &Csr<f64>, omega: f64, series: Series, x: &mut [f64]) {
    let n = a.nrows();
    let d = |i: usize| a.get(i, i) / omega;
    // x ← (I − N)⁻¹·x: xᵢ ← xᵢ + Σ_{j<i} aᵢⱼ/d̄ⱼ·xⱼ
    let forward = |x: &mut [f64]| {
        for i in 0..n {
            let (cols, vals) = a.row(i);
            let below = cols.iter().zip(vals).take_while(|(j, _)| (**j as usize) < i);
            x[i] += below.map(|(&j, v)| v / d(j as usize) * x[j as usize]).sum::<f64>();
        }
    };
    // x ← (I − Nᵀ)⁻¹·x: xᵢ ← xᵢ + Σ_{j>i} aᵢⱼ·xⱼ/d̄ᵢ
    let backward = |x: &mut [f64]| {
        for i in (0..n).rev() {
            let (cols, vals) = a.row(i);
            let above = cols.iter().zip(vals).rev().take_while(|(j, _)| **j as usize > i);
            x[i] += above.map(|(&j, v)| v * x[j as usize]).sum::<f64>() / d(i);
        }
    };
    if series == Series::IncompletePoisson {
        forward(x);
        backward(x);
        return;
    }
    backward(x);
    for (i, x) in x.iter_mut().enumerate() {
        *x *= d(i) / (2.0 - omega);
    }
    forward(x);
}

pub fn report(scale: Scale, gpu: Option<&str>, results: &Results) -> Report {
    let mut sections = vec![claims(results)];
    sections.extend(FIGURES.iter().enumerate().map(|(k, &n)| figure(k + 1, n, results)));
    sections.push(tables(scale, results));
    sections.extend(gpu.map(|gpu| gpu::section(scale, gpu, results)));
    Report {
        title: "The SSOR approximate inverse on the unit disk".into(),
        source: "Helfenstein & Koko, J. Comput. Appl. Math. 236 (2012) 3584–3590, doi:10.1016/j.cam.2011.04.025".into(),
        scope: match scale {
            Scale::Quick => {
                "Figures 1 and 2, and the smallest of the five sizes of tables 1 to 3; the full run has all.".into()
            }
            Scale::Full => "All published sizes.".into(),
        },
        sections,
    }
}

/// κ of a preconditioner at ω.
fn kappa_at(results: &Results, n: usize, key: &str, omega: f64) -> Option<f64> {
    let k = omegas().position(|w| (w - omega).abs() < 1e-9)?;
    results.number(&figure_id(n), &format!("/rows/{k}/{key}/kappa"))
}

/// The smallest κ over ω, and where.
fn best(results: &Results, n: usize, key: &str) -> Option<(f64, f64)> {
    omegas().filter_map(|w| Some((kappa_at(results, n, key, w)?, w))).min_by(|a, b| a.0.total_cmp(&b.0))
}

fn claims(results: &Results) -> Section {
    let at = |key: &str| results.number(&figure_id(8047), &format!("/{key}/kappa"));
    let near = |what: &str, ours: Option<f64>, paper: f64, why: &str| Claim {
        what: what.into(),
        origin: Origin::Paper,
        paper: count(Some(paper)),
        ours: count(ours),
        verdict: ours.map_or(Verdict::NotRun, |o| Verdict::of((o / paper - 1.0).abs() <= 0.05)),
        why: why.into(),
    };
    let mut claims = vec![
        near(
            "κ(A) for n = 8047, within 5 %",
            at("none"),
            PAPER_KAPPA[0],
            "The mesh is ours; κ₁, the norm of the inverse estimated.",
        ),
        near(
            "κ(A·D⁻¹) for n = 8047, within 5 %",
            at("jacobi"),
            PAPER_KAPPA[1],
            "The diagonal follows the angles and sizes of the triangles near the boundary, which differ from those of the unpublished \
             mesh; κ(A) hardly does.",
        ),
    ];
    claims.extend(FIGURES.map(|n| below(results, n)));
    claims.push(table_claim(results));
    claims.push(ratio_claim(results));
    claims.push(indefinite(results));
    Section {
        title: "What holds".into(),
        items: vec![
            Item::Text(
                "Poisson's equation on the unit disk, linear finite elements, as many unknowns as the paper has on meshes of our own \
                 (theirs are not published); load eˣ(1 + sin 3y + xy). Rule: x⁰ = 0, ‖r‖/‖r⁰‖ < 1e-6, ω = 1.1."
                    .into(),
            ),
            Item::Claims(claims),
        ],
    }
}

fn below(results: &Results, n: usize) -> Claim {
    let whole = |key: &str| results.number(&figure_id(n), &format!("/{key}/kappa"));
    let found = (|| {
        Some((best(results, n, "full")?, best(results, n, "masked")?, whole("none")?, whole("jacobi")?, whole("ip")?))
    })();
    Claim {
        what: format!(
            "Figure {}: κ(A·M̄) and κ(A·M̄_A) are below κ(A), κ(A·D⁻¹) and that of IP for a suitable ω, n = {n}",
            if n == 1105 { 1 } else { 2 }
        ),
        origin: Origin::Paper,
        paper: "both below".into(),
        ours: found.map_or_else(
            || "–".into(),
            |(full, masked, none, jacobi, ip)| {
                format!(
                    "M̄ {:.0} (ω = {:.1}), M̄_A {:.0} (ω = {:.1}); A {none:.0}, A·D⁻¹ {jacobi:.0}, IP {ip:.0}",
                    full.0, full.1, masked.0, masked.1
                )
            },
        ),
        verdict: found.map_or(Verdict::NotRun, |(full, masked, none, jacobi, ip)| {
            Verdict::of(full.0.max(masked.0) < none.min(jacobi).min(ip))
        }),
        why: "Over ω = 0.1, 0.2, …, 1.9; where M̄_A is not definite it has no point.".into(),
    }
}

fn table_claim(results: &Results) -> Claim {
    let rows: Vec<_> = REFERENCE
        .iter()
        .filter_map(|&(n, cg, pcg)| {
            let ours = |key| converged(results, &solve_id(n, key), "/solve");
            Some((n, ours("cg")? / cg, ours("masked")? / pcg))
        })
        .collect();
    let off: Vec<_> = rows
        .iter()
        .filter(|(_, cg, pcg)| (cg - 1.0).abs() > 0.03 || (pcg - 1.0).abs() > 0.03)
        .map(|(n, ..)| n.to_string())
        .collect();
    Claim {
        what: "Iterations of CG and of PCG with M̄_A, within 3 % of an independent implementation".into(),
        origin: Origin::Ours,
        paper: "not given".into(),
        ours: match (rows.len(), off.len()) {
            (0, _) => "–".into(),
            (all, 0) => format!("{all} of {all} sizes"),
            (all, bad) => format!("{} of {all} sizes; not n = {}", all - bad, off.join(", ")),
        },
        verdict: if rows.is_empty() { Verdict::NotRun } else { Verdict::of(off.is_empty()) },
        why: "The paper gives seconds only. The counts are in the last table.".into(),
    }
}

/// Seconds of CG ÷ seconds of PCG, both on all threads, setup included.
fn gain(results: &Results, n: usize, key: &str) -> Option<f64> {
    let at = |key: &str, field: &str| results.number(&solve_id(n, key), &format!("/solve/{field}"));
    Some(at("cg", "seconds")? / (at(key, "seconds")? + at(key, "setup_seconds")?))
}

fn ratio_claim(results: &Results) -> Claim {
    let gains: Vec<_> =
        TABLE.iter().filter_map(|&(n, _)| Some((n, quotients(results, &rounds_id(n), ["cg", "masked"])?))).collect();
    let words: Vec<_> = gains.iter().map(|(n, spread)| format!("{} at n = {n}", spread.factor())).collect();
    Claim {
        what: "Tables 1 to 3: PCG with M̄_A is faster than CG on the same device".into(),
        origin: Origin::Paper,
        paper: "1.28 to 1.42 times".into(),
        ours: if words.is_empty() { "–".into() } else { words.join(", ") },
        verdict: Verdict::of_all(gains.iter().map(|(_, spread)| spread.above(1.0))),
        why: "Rule: faster at every size run, forming M̄_A included, by the quartiles of five rounds in turn. One more product an iteration for little more than half the \
              iterations: the gain depends on what the vectors cost beside the products, which differs between a GPU and a CPU."
            .into(),
    }
}

fn indefinite(results: &Results) -> Claim {
    let first = |n: usize| {
        omegas().enumerate().find_map(|(k, w)| {
            let at = |field: &str| results.text(&figure_id(n), &format!("/rows/{k}/masked/{field}"));
            (at("error").is_some() || at("outcome").is_some_and(|o| o != "converged")).then_some(w)
        })
    };
    let from = FIGURES.map(|n| first(n).map_or_else(|| "none".into(), |w| format!("ω = {w:.1} (n = {n})")));
    Claim {
        what: "Not in the paper: M̄_A, cut to the pattern of A, loses definiteness for large ω".into(),
        origin: Origin::Ours,
        paper: "–".into(),
        ours: format!("first refused or broken down: {}", from.join(", ")),
        verdict: if FIGURES.iter().all(|&n| results.contains(&figure_id(n))) {
            Verdict::of(FIGURES.iter().any(|&n| first(n).is_some()))
        } else {
            Verdict::NotRun
        },
        why: "M̄ itself is definite for every ω. Loss is reported by name, never silent.".into(),
    }
}

fn figure(number: usize, n: usize, results: &Results) -> Section {
    let curve = |(key, name): (&str, &str), field: &str| Curve {
        name: name.into(),
        stroke: Stroke::Solid,
        points: omegas()
            .enumerate()
            .filter_map(|(k, w)| Some((w, results.number(&figure_id(n), &format!("/rows/{k}/{key}/{field}"))?)))
            .collect(),
    };
    // What has no ω is a level line.
    let level = |key: &str, name: &str, field: &str| Curve {
        name: name.into(),
        stroke: Stroke::Dashed,
        points: results
            .number(&figure_id(n), &format!("/{key}/{field}"))
            .map(|v| vec![(0.1, v), (1.9, v)])
            .unwrap_or_default(),
    };
    let mut levels = Table::new(
        format!("κ₁ without ω, n = {n}, and iterations of CG with the preconditioner."),
        ["", "κ₁ ours", "κ paper", "iterations"],
    );
    for (key, name, paper) in [("none", "A", 0), ("jacobi", "A·D⁻¹", 1), ("ip", "IP", 2)] {
        let published = if n == 8047 { PAPER_KAPPA.get(paper).copied() } else { None };
        levels.row([
            name.into(),
            count(results.number(&figure_id(n), &format!("/{key}/kappa"))),
            count(published),
            iterations(results, &figure_id(n), &format!("/{key}")),
        ]);
    }
    let mut table = Table::new(
        format!("κ₁ and iterations over ω, n = {n}."),
        ["ω", "κ₁(A·M̄)", "iterations", "κ₁(A·M̄_A)", "iterations", "iterations, order 2"],
    );
    for (k, omega) in omegas().enumerate() {
        let id = figure_id(n);
        let kappa = |key: &str| count(results.number(&id, &format!("/rows/{k}/{key}/kappa")));
        let steps = |key: &str| match results.at(&id, &format!("/rows/{k}/{key}/error")) {
            Some(_) => "not definite".into(),
            None => iterations(results, &id, &format!("/rows/{k}/{key}")),
        };
        if results.contains(&id) {
            let cells = [kappa("full"), steps("full"), kappa("masked"), steps("masked"), steps("second")];
            table.row([format!("{omega:.1}")].into_iter().chain(cells));
        }
    }
    let axis = || Axis::new("ω", Scaling::Linear);
    Section {
        title: format!("Figure {number}: condition numbers, n = {n}"),
        items: vec![
            Item::Figure(Figure {
                name: format!("ssor-ai-condition-{n}"),
                title: format!("Condition number κ₁, n = {n}"),
                x: axis(),
                y: Axis::new("κ₁", Scaling::Logarithmic),
                curves: vec![
                    curve(CURVES[0], "kappa"),
                    curve(CURVES[1], "kappa"),
                    level("none", "A", "kappa"),
                    level("jacobi", "A·D⁻¹", "kappa"),
                    level("ip", "IP", "kappa"),
                ],
            }),
            Item::Figure(Figure {
                name: format!("ssor-ai-iterations-{n}"),
                title: format!("Iterations of preconditioned CG, n = {n}"),
                x: axis(),
                y: Axis::new("iterations", Scaling::Linear),
                curves: CURVES
                    .iter()
                    .map(|&c| curve(c, "iterations"))
                    .chain([level("none", "A", "iterations"), level("ip", "IP", "iterations")])
                    .collect(),
            }),
            Item::Table(levels),
            Item::Table(table),
        ],
    }
}

fn tables(scale: Scale, results: &Results) -> Section {
    let mut times = Table::new(
        "Tables 1 to 3: seconds. Ours on this machine's CPU; the paper's on one core of a Xeon and on a Tesla T10.",
        [
            "n",
            "CG, one thread",
            "CG, Xeon",
            "CG",
            "CG, T10",
            "PCG M̄_A",
            "forming M̄_A",
            "PCG, T10 (8 threads a row)",
            "PCG, T10 (split)",
            "CG ÷ PCG",
            "CG ÷ PCG, T10",
        ],
    );
    for (n, paper) in TABLE {
        let at = |key: &str, field: &str| results.number(&solve_id(n, key), &format!("/solve/{field}"));
        if SOLVERS.iter().all(|(key, _)| !results.contains(&solve_id(n, key))) {
            continue;
        }
        times.row([
            n.to_string(),
            seconds(at("cg1", "seconds")),
            seconds(Some(paper[0])),
            seconds(at("cg", "seconds")),
            seconds(Some(paper[1])),
            seconds(at("masked", "seconds")),
            seconds(at("masked", "setup_seconds")),
            seconds(Some(paper[2])),
            seconds(Some(paper[3])),
            ratio(gain(results, n, "masked")),
            ratio(Some(paper[1] / paper[2])),
        ]);
    }
    let mut steps = Table::new(
        "Iterations, and seconds of PCG with two products; the reference is an independent implementation on the same meshes.",
        ["n", "CG", "CG, reference", "PCG M̄_A", "PCG M̄_A, reference", "PCG M̄", "seconds, M̄"],
    );
    for &(n, cg, pcg) in sizes(scale) {
        let ours = |key| iterations(results, &solve_id(n, key), "/solve");
        let two = results.number(&solve_id(n, "stored"), "/solve/seconds");
        if SOLVERS.iter().any(|(key, _)| results.contains(&solve_id(n, key))) {
            steps.row([
                n.to_string(),
                ours("cg"),
                count(Some(cg)),
                ours("masked"),
                count(Some(pcg)),
                ours("stored"),
                seconds(two),
            ]);
        }
    }
    Section {
        title: "Tables 1 to 3: seconds and iterations".into(),
        items: vec![
            Item::Text(
                "The paper's largest n took 0.169 s to form M̄_A. Its ways of multiplying on the GPU (a thread, a warp or 8 threads a row, \
                 split) have no counterpart on a CPU and are not run."
                    .into(),
            ),
            Item::Table(times),
            Item::Table(steps),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_solves_are_those_of_the_preconditioner() {
        let (a, b) = UnitDisk::new(19).unwrap().into_parts();
        for (series, omega) in [(Series::First, 1.3), (Series::IncompletePoisson, 1.0)] {
            let (mut z, mut w) = (vec![0.0; 19], vec![0.0; 19]);
            SsorAi::with_options(&a, omega, series, Triangles::Stored).unwrap().apply(&b, &mut z);
            neumann(&a, omega, series).unwrap().apply(1.0, &b, 0.0, &mut w);
            assert!(z.iter().zip(&w).all(|(z, w)| (z - w).abs() < 1e-13), "{series:?}: {z:?} {w:?}");
            neumann_solve(&a, omega, series, &mut z);
            assert!(z.iter().zip(&b).all(|(z, b)| (z - b).abs() < 1e-13), "{series:?}: {z:?} {b:?}");
        }
    }

    #[test]
    fn condition_of_a_diagonal_is_exact() {
        let a = from_entries(2, [(0, 0, 1.0), (1, 1, 8.0)].into_iter()).unwrap();
        let identity = from_entries(2, [(0, 0, 1.0), (1, 1, 1.0)].into_iter()).unwrap();
        let lu = SparseLu::new(&a).unwrap();
        assert!((condition(&a, &lu, &identity, &|_| ()).unwrap() - 8.0).abs() < 1e-14);
        let inverse = from_entries(2, [(0, 0, 1.0), (1, 1, 0.125)].into_iter()).unwrap();
        assert!((condition(&a, &lu, &inverse, &|x| x[1] *= 8.0).unwrap() - 1.0).abs() < 1e-14);
    }
}
