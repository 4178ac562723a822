//! What E. Polizzi, A. Sameh, Parallel Comput. 32 (2006) 177–194, doi:10.1016/j.parco.2005.07.005, and Comput. Fluids 36 (2007)
//! 113–141, doi:10.1016/j.compfluid.2005.07.005, state about SPIKE, with C. C. K. Mikkelsen, M. Manguoglu, SIAM J. Matrix Anal. Appl. 30
//! (2008) 1500–1519, doi:10.1137/080719571, on truncation: numbers of partitions, exact against truncated, boosted pivots, bands as
//! preconditioners, and tridiagonal partitions that are singular.
//!
//! Their statements are checked on matrices of our own; their machines and timings have no counterpart here.

mod gpu;

use bt_direct::spike::{PartitionSolver, Partitions, ReducedSystem, TridiagonalSolver};
use bt_direct::{BandLu, BandLuNoPivot, Boosting, Spike, SpikeOptions, TridiagonalSpike};
use bt_formats::{Band, CancelToken, Csr, LinearOperator, StopCriterion, Tridiagonal};
use bt_iter::{BandSpike, BandSpikeOptions, BandWidth, DroppedFill, Identity, Preconditioner, ilu0};
use bt_queue::{cases::uniform, meshes};
use serde_json::{Value, json};

use crate::Scale;
use crate::document::{Axis, Claim, Curve, Figure, Item, Origin, Report, Scaling, Section, Stroke, Table, Verdict};
use crate::experiment::{Error, Experiment, Facts, Results};
use crate::gpu::Gpu;
use crate::measure::{Krylov, Runs, count, direct, iterations, krylov, ratio, rhs, seconds, small};

/// Half-bandwidth of the partitions' experiments.
const HALF: usize = 10;
/// δ = minᵢ |aᵢᵢ|/Σ|aᵢⱼ|; 0 leaves the diagonal as random as the rest.
const DOMINANCE: [f64; 4] = [0.0, 0.5, 1.05, 2.0];
const PARTITIONS: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// Reduced systems: key, heading.
const VARIANTS: [(&str, &str); 4] =
    [("recursive", "recursive"), ("explicit", "explicit"), ("iterative", "on the fly"), ("truncated", "truncated")];
/// Boosts ε tried, relative to ‖A‖₁.
const BOOSTS: [f64; 5] = [1e-4, 1e-6, 1e-8, 1e-10, 1e-12];
/// Half-bandwidths of the bands used as preconditioners.
const WIDTHS: [usize; 6] = [1, 4, 16, 64, 128, 320];
/// Where a backward error counts as that of a stable method: 10·n·u is what the specification asks; this is far below it.
const STABLE: f64 = 1e-13;

pub fn experiments(scale: Scale, gpu: Option<&Gpu>) -> Vec<Experiment> {
    let n = order(scale);
    let mut all: Vec<_> = TRIDIAGONALS
        .iter()
        .map(|&(key, what)| {
            Experiment::new(format!("spike/tridiagonal/{key}"), what, move |cancel| tridiagonal(n / 4, key, cancel))
        })
        .collect();
    all.push(Experiment::new("spike/boosting", "boosted pivots", move |cancel| boosting(n / 10, cancel)));
    for (i, delta) in DOMINANCE.into_iter().enumerate() {
        all.extend(PARTITIONS.map(|p| {
            Experiment::new(
                format!("spike/partitions/{i}/{p}"),
                format!("dominance {delta}, {p} partitions"),
                move |cancel| partitions(n, delta, p, cancel),
            )
        }));
    }
    let systems = match scale {
        Scale::Quick => &SYSTEMS[..1],
        Scale::Full => &SYSTEMS,
    };
    all.extend(systems.iter().map(|&(key, what)| {
        Experiment::new(format!("spike/preconditioner/{key}"), what, move |cancel| preconditioner(key, cancel))
    }));
    all.extend(gpu.into_iter().flat_map(|gpu| gpu::experiments(scale, gpu)));
    all
}

/// Rows of the bands.
fn order(scale: Scale) -> usize {
    match scale {
        Scale::Quick => 20_000,
        Scale::Full => 400_000,
    }
}

/// A band with entries in (−1, 1) and the dominance δ in every row.
fn random_band(n: usize, half: usize, delta: f64) -> Result<Band<f64>, Error> {
    let mut a = Band::zeros(n, half, half)?;
    let mut sums = vec![0.0; n];
    for j in 0..n {
        for i in a.column_range(j) {
            let value = 2.0 * uniform(1, 7, j as u64, i as u64) - 1.0;
            *a.get_mut(i, j) = value;
            if i != j {
                sums[i] += value.abs();
            }
        }
    }
    if delta > 0.0 {
        (0..n).for_each(|i| *a.get_mut(i, i) = delta * sums[i]);
    }
    Ok(a)
}

/// One number of partitions: the band solver itself, and SPIKE with each reduced system.
fn partitions(n: usize, delta: f64, p: usize, cancel: &CancelToken) -> Result<Facts, Error> {
    let a = random_band(n, HALF, delta)?;
    let b = rhs(&a);
    let mut facts = Facts::new();
    facts.insert("band-lu".into(), direct(&a, &b, Runs::Fastest, || BandLu::with_monitor(&a, &mut cancel.clone()))?);
    for (key, _) in VARIANTS {
        let reduced = match key {
            "recursive" => ReducedSystem::Recursive,
            "explicit" => ReducedSystem::Explicit,
            "iterative" => ReducedSystem::iterative::<f64>(),
            _ => ReducedSystem::truncated::<f64>(),
        };
        let options = SpikeOptions { partitions: Partitions::Balanced(p), reduced, ..SpikeOptions::default() };
        let mut dropped = 0.0;
        let mut result = direct(&a, &b, Runs::Fastest, || {
            let spike = Spike::with_options(&a, &options, &mut cancel.clone())?;
            dropped = spike.report().dropped;
            Ok(spike)
        })?;
        result["dropped"] = json!(dropped);
        facts.insert(key.into(), result);
    }
    Ok(facts)
}

/// A band whose leading minors vanish here and there: every tenth row and the next are exchanged, so that a zero pivot is met.
fn boosting(n: usize, cancel: &CancelToken) -> Result<Facts, Error> {
    let mut a = random_band(n, 3, 1.5)?;
    for i in (0..n - 1).step_by(10) {
        let size = a.get(i, i);
        // [ 0 s; s 0 ] on the diagonal, and nothing else in its two rows and columns that is large
        (*a.get_mut(i, i), *a.get_mut(i + 1, i + 1)) = (0.0, 0.0);
        (*a.get_mut(i, i + 1), *a.get_mut(i + 1, i)) = (size, size);
        for j in a.column_range(i).filter(|&j| j < i) {
            *a.get_mut(i, j) = 0.0;
        }
    }
    let b = rhs(&a);
    let monitor = || cancel.clone();
    let mut facts = Facts::from_iter([
        ("pivoted".to_owned(), direct(&a, &b, Runs::Fastest, || BandLu::with_monitor(&a, &mut monitor()))?),
        ("plain".to_owned(), direct(&a, &b, Runs::Fastest, || BandLuNoPivot::with_options(&a, None, &mut monitor()))?),
    ]);
    let mut rows = Vec::new();
    for eps in BOOSTS {
        let boosting = Boosting { eps, ..Boosting::of::<f64>() };
        let options = SpikeOptions {
            partitions: Partitions::Balanced(4),
            solver: PartitionSolver::NoPivot(Some(boosting)),
            ..SpikeOptions::default()
        };
        let mut boosted = 0;
        let mut result = direct(&a, &b, Runs::Fastest, || {
            let spike = Spike::with_options(&a, &options, &mut monitor())?;
            boosted = spike.report().boosted_pivots;
            Ok(spike)
        })?;
        result["eps"] = json!(eps);
        result["boosted"] = json!(boosted);
        rows.push(result);
    }
    facts.insert("rows".into(), Value::Array(rows));
    Ok(facts)
}

const TRIDIAGONALS: [(&str, &str); 3] = [
    ("dominant", "tridiagonal, dominant"),
    ("random", "tridiagonal, random"),
    ("zero", "tridiagonal, zero diagonal: odd partitions are singular"),
];
const SOLVERS: [(&str, TridiagonalSolver); 3] = [
    ("spike-lu", TridiagonalSolver::Lu),
    ("spike-diagonal-pivoting", TridiagonalSolver::DiagonalPivoting),
    ("g-spike", TridiagonalSolver::Givens),
];

/// Three partition solvers on 2 … 32 partitions of odd sizes.
fn tridiagonal(n: usize, key: &str, cancel: &CancelToken) -> Result<Facts, Error> {
    // A zero diagonal needs an even order to be regular.
    let n = n / 2 * 2;
    let random = |kind: u64| -> Vec<f64> { (0..n as u64).map(|i| 2.0 * uniform(2, kind, i, 0) - 1.0).collect() };
    let (lower, upper) = (random(1), random(2));
    let diag = match key {
        "dominant" => lower.iter().zip(&upper).map(|(l, u)| 1.5 * (l.abs() + u.abs())).collect(),
        "random" => random(3),
        _ => vec![0.0; n],
    };
    let signs = |v: Vec<f64>| -> Vec<f64> {
        // Entries of modulus 1 keep the matrix with a zero diagonal well conditioned.
        if key == "zero" { v.into_iter().map(|v| 1f64.copysign(v)).collect() } else { v }
    };
    let (mut lower, mut upper) = (signs(lower), signs(upper));
    (lower[0], upper[n - 1]) = (0.0, 0.0);
    let a = Tridiagonal::new(lower, diag, upper)?;
    let csr = a.to_csr()?;
    let b = rhs(&csr);
    let mut facts = Facts::new();
    for p in PARTITIONS.into_iter().skip(1) {
        // Odd sizes, but for what is left over.
        let size = n / p - 1 + (n / p) % 2;
        let sizes = Partitions::Sizes((0..p).map(|k| if k + 1 < p { size } else { n - size * (p - 1) }).collect());
        let mut row = Facts::new();
        for (name, solver) in SOLVERS {
            row.insert(
                name.into(),
                direct(&csr, &b, Runs::Fastest, || {
                    TridiagonalSpike::with_options(&a, &sizes, solver, &mut cancel.clone())
                })?,
            );
        }
        facts.insert(p.to_string(), Value::Object(row));
    }
    Ok(facts)
}

const SYSTEMS: [(&str, &str); 2] =
    [("edf", "bands of edf as preconditioners"), ("epb3", "bands of the epb3 surrogate as preconditioners")];

/// BiCGSTAB with the central band of growing width, after matching and reordering; ILU(0) and nothing beside it.
fn preconditioner(key: &str, cancel: &CancelToken) -> Result<Facts, Error> {
    let a: Csr<f64> = if key == "edf" { meshes::edf(1)? } else { meshes::epb3(1)? };
    let b = rhs(&a);
    let stop = StopCriterion { rtol: 1e-8, max_iters: 2000, ..StopCriterion::default() };
    let solve = |m: &mut dyn Preconditioner<f64>| krylov(Krylov::BiCgStab, &a, m, &b, &stop, Runs::One, cancel);
    let mut facts = Facts::from_iter([
        ("none".to_owned(), solve(&mut Identity::new(a.nrows()))?),
        ("ilu0".to_owned(), solve(&mut ilu0(&a, DroppedFill::Forgotten)?)?),
    ]);
    let mut rows = Vec::new();
    for half in WIDTHS {
        let mut row = Facts::from_iter([("half".to_owned(), json!(half))]);
        for (name, options) in [("exact", BandSpikeOptions::default()), ("truncated", BandSpikeOptions::truncated())] {
            let mut options = BandSpikeOptions { width: BandWidth::Half(half), ..options };
            options.spike.partitions = Partitions::Balanced(4);
            let start = std::time::Instant::now();
            let mut m = BandSpike::with_options(&a, &options)?;
            let setup = start.elapsed().as_secs_f64();
            let mut result = solve(&mut m)?;
            result["setup_seconds"] = json!(setup);
            result["left_out"] = json!(m.report().left_out);
            result["order"] = json!(m.report().order.name());
            row.insert(name.into(), result);
        }
        rows.push(Value::Object(row));
    }
    facts.insert("rows".into(), Value::Array(rows));
    Ok(facts)
}

pub fn report(scale: Scale, gpu: Option<&str>, results: &Results) -> Report {
    let mut sections = vec![
        claims(results),
        partition_tables(results),
        boosting_table(results),
        tridiagonal_tables(results),
        preconditioner_tables(results),
    ];
    sections.extend(gpu.map(|gpu| gpu::section(gpu, results)));
    Report {
        title: "SPIKE".into(),
        source: "Polizzi & Sameh, Parallel Comput. 32 (2006) 177–194, doi:10.1016/j.parco.2005.07.005, and Comput. Fluids 36 (2007) 113–141, \
                 doi:10.1016/j.compfluid.2005.07.005"
            .into(),
        scope: format!(
            "Bands of {} rows, tridiagonal matrices of a quarter, boosted ones of a tenth of that{}.",
            order(scale),
            if scale == Scale::Quick { format!("; the full run has {} rows, and epb3", order(Scale::Full)) } else { String::new() }
        ),
        sections,
    }
}

fn at(results: &Results, dominance: usize, p: usize, pointer: &str) -> Option<f64> {
    results.number(&format!("spike/partitions/{dominance}/{p}"), pointer)
}

fn claims(results: &Results) -> Section {
    let claims = vec![
        exact(results),
        on_the_fly(results),
        truncated(results),
        not_dominant(results),
        boosted(results),
        givens(results),
        bands(results),
    ];
    Section {
        title: "What holds".into(),
        items: vec![
            Item::Text(format!(
                "The sources state what the method does and time it on machines of their day; their statements are what is checked, on \
                 random bands of half-bandwidth {HALF}, b = A·x*. A backward error up to {STABLE:.0e} counts as working accuracy."
            )),
            Item::Claims(claims),
        ],
    }
}

/// The largest of some errors; one that is missing where the experiment was run counts as infinite.
fn worst(values: impl IntoIterator<Item = Option<f64>>) -> f64 {
    values.into_iter().fold(0.0, |m, v| m.max(v.unwrap_or(f64::INFINITY)))
}

fn run_partitions(results: &Results, dominance: impl Fn(f64) -> bool) -> Vec<(usize, usize)> {
    (0..DOMINANCE.len())
        .filter(|&i| dominance(DOMINANCE[i]))
        .flat_map(|i| PARTITIONS.map(|p| (i, p)))
        .filter(|(i, p)| results.contains(&format!("spike/partitions/{i}/{p}")))
        .collect()
}

fn exact(results: &Results) -> Claim {
    let run = run_partitions(results, |_| true);
    let error = worst(run.iter().flat_map(|&(i, p)| {
        ["recursive", "explicit"].map(|key| at(results, i, p, &format!("/{key}/refined_backward_error")))
    }));
    Claim {
        what: "The exact variants give the same answer to working accuracy for any number of partitions".into(),
        origin: Origin::Paper,
        paper: "backward error near u".into(),
        ours: if run.is_empty() { "–".into() } else { format!("≤ {}", small(Some(error))) },
        verdict: if run.is_empty() { Verdict::NotRun } else { Verdict::of(error <= STABLE) },
        why: "After refinement, over all matrices and numbers of partitions, the reduced system solved recursively and formed.".into(),
    }
}

fn on_the_fly(results: &Results) -> Claim {
    let run = run_partitions(results, |_| true);
    let error = |&(i, p): &(usize, usize)| at(results, i, p, "/iterative/refined_backward_error");
    let dominant = worst(run.iter().filter(|(i, _)| DOMINANCE[*i] > 1.0).map(error));
    let wrong = run.iter().filter(|r| error(r).is_some_and(|e| e > STABLE)).count();
    let refused = run
        .iter()
        .filter(|(i, p)| results.text(&format!("spike/partitions/{i}/{p}"), "/iterative/error").is_some())
        .count();
    Claim {
        what: "The reduced system need not be formed: an iteration with products on the fly solves it".into(),
        origin: Origin::Paper,
        paper: "for large p".into(),
        ours: if run.is_empty() {
            "–".into()
        } else {
            format!("dominant: ≤ {}; over all {refused} of {} refused, {wrong} wrong", small(Some(dominant)), run.len())
        },
        verdict: if run.is_empty() { Verdict::NotRun } else { Verdict::of(dominant <= STABLE && wrong == 0) },
        why: "Rule: working accuracy for δ > 1, and never a wrong answer. BiCGSTAB may fail on the reduced system of a matrix without \
              dominance; the factorization tries it and refuses by name."
            .into(),
    }
}

fn truncated(results: &Results) -> Claim {
    let run = run_partitions(results, |delta| delta > 1.0);
    let error = worst(run.iter().map(|&(i, p)| at(results, i, p, "/truncated/refined_backward_error")));
    Claim {
        what: "For diagonally dominant matrices the far tips can be dropped (truncated SPIKE)".into(),
        origin: Origin::Paper,
        paper: "valid for dominant A".into(),
        ours: if run.is_empty() { "–".into() } else { format!("≤ {}", small(Some(error))) },
        verdict: if run.is_empty() { Verdict::NotRun } else { Verdict::of(error <= STABLE) },
        why: "δ = 1.05 and 2, after refinement; ∞ where the bound of what is dropped refuses the factorization.".into(),
    }
}

fn not_dominant(results: &Results) -> Claim {
    let run: Vec<_> = run_partitions(results, |delta| delta < 1.0).into_iter().filter(|(_, p)| *p > 2).collect();
    let silent = run
        .iter()
        .filter(|&&(i, p)| at(results, i, p, "/truncated/refined_backward_error").is_some_and(|error| error > STABLE))
        .count();
    let refused = run
        .iter()
        .filter(|&&(i, p)| results.text(&format!("spike/partitions/{i}/{p}"), "/truncated/error").is_some())
        .count();
    Claim {
        what: "Without dominance truncation has no ground; it must be refused or repaired, never silently wrong".into(),
        origin: Origin::Paper,
        paper: "assumes dominance".into(),
        ours: if run.is_empty() {
            "–".into()
        } else {
            format!("{refused} of {} refused, {silent} wrong", run.len())
        },
        verdict: if run.is_empty() { Verdict::NotRun } else { Verdict::of(silent == 0) },
        why: "δ = 0.5 and none, more than two partitions. What is dropped is bounded before it is dropped; the sources assume it is \
              small."
            .into(),
    }
}

fn boosted(results: &Results) -> Claim {
    let id = "spike/boosting";
    let row = |k: usize, field: &str| results.number(id, &format!("/rows/{k}/{field}"));
    let plain = worst((0..BOOSTS.len()).map(|k| row(k, "backward_error")));
    let refined = worst((0..BOOSTS.len()).map(|k| row(k, "refined_backward_error")));
    let count = row(0, "boosted");
    Claim {
        what: "Zero pivots are boosted instead of exchanged; the factors are inexact, and refinement repairs that"
            .into(),
        origin: Origin::Paper,
        paper: "boost, then iterate outside".into(),
        ours: count.map_or_else(
            || "–".into(),
            |count| {
                format!("{count:.0} boosted; {} before, {} after refinement", small(Some(plain)), small(Some(refined)))
            },
        ),
        verdict: count
            .map_or(Verdict::NotRun, |count| Verdict::of(count > 0.0 && refined <= STABLE && plain > refined)),
        why: "The worst over five boosts ε from 1e-4 to 1e-12; the table has each.".into(),
    }
}

fn givens(results: &Results) -> Claim {
    let id = "spike/tridiagonal/zero";
    let error = |name: &str| {
        worst(
            PARTITIONS.into_iter().skip(1).map(|p| results.number(id, &format!("/{p}/{name}/refined_backward_error"))),
        )
    };
    Claim {
        what: "g-Spike (Givens QR) survives singular partitions, LU in the partitions does not".into(),
        origin: Origin::Paper,
        paper: "doi:10.1016/j.parco.2015.03.008".into(),
        ours: if results.contains(id) {
            let lu = results.text(id, "/4/spike-lu/error").map_or("solves", |_| "breaks down by name");
            format!("g-Spike {}, LU {lu}", small(Some(error("g-spike"))))
        } else {
            "–".into()
        },
        verdict: if results.contains(id) {
            Verdict::of(error("g-spike") <= STABLE && results.text(id, "/4/spike-lu/error").is_some())
        } else {
            Verdict::NotRun
        },
        why: "A zero diagonal, partitions of odd size. The library needs no repair of a zero last pivot: see the book."
            .into(),
    }
}

fn bands(results: &Results) -> Claim {
    let run: Vec<_> =
        SYSTEMS.iter().map(|s| format!("spike/preconditioner/{}", s.0)).filter(|id| results.contains(id)).collect();
    let steps = |id: &str, k: usize| results.number(id, &format!("/rows/{k}/exact/iterations"));
    let text: Vec<_> = run
        .iter()
        .map(|id| {
            let name = id.rsplit('/').next().unwrap_or_default();
            format!("{name}: {} → {}", count(steps(id, 0)), count(steps(id, WIDTHS.len() - 1)))
        })
        .collect();
    let holds = run.iter().all(|id| {
        steps(id, WIDTHS.len() - 1).zip(steps(id, 0)).is_some_and(|(wide, narrow)| wide < narrow)
            && results.text(id, &format!("/rows/{}/exact/outcome", WIDTHS.len() - 1)) == Some("converged")
    });
    Claim {
        what: format!(
            "A wider band is a better preconditioner: iterations from half-bandwidth {} to {}",
            WIDTHS[0],
            WIDTHS[WIDTHS.len() - 1]
        ),
        origin: Origin::Paper,
        paper: "fewer (doi:10.1137/080713409)".into(),
        ours: if run.is_empty() { "–".into() } else { text.join(", ") },
        verdict: if run.is_empty() { Verdict::NotRun } else { Verdict::of(holds) },
        why: "Rule: fewer iterations at the widest than at the narrowest, on every system.".into(),
    }
}

/// "setup + solve, backward error" or why there is none.
fn cell(results: &Results, id: &str, key: &str) -> String {
    let number = |field: &str| results.number(id, &format!("/{key}/{field}"));
    match (number("setup_seconds"), number("solve_seconds")) {
        (Some(setup), Some(solve)) => {
            format!("{} + {}, {}", seconds(Some(setup)), seconds(Some(solve)), small(number("backward_error")))
        }
        _ if results.at(id, &format!("/{key}/error")).is_some() => "refused".into(),
        _ => "–".into(),
    }
}

fn partition_tables(results: &Results) -> Section {
    let mut items = vec![Item::Text(
        "Each cell: factorization + solve, then the backward error of that one solve, without refinement. Refused: the method says by \
         name why it does not answer. With one partition SPIKE is the band solver, with two it is the band solver from both ends."
            .into(),
    )];
    for (i, delta) in DOMINANCE.into_iter().enumerate() {
        let mut table = Table::new(
            if delta > 0.0 { format!("Dominance δ = {delta}.") } else { "A random diagonal.".into() },
            [
                "partitions",
                "band LU",
                VARIANTS[0].1,
                VARIANTS[1].1,
                VARIANTS[2].1,
                VARIANTS[3].1,
                "bound of what is dropped",
                "steps of refinement, truncated",
            ],
        );
        for p in PARTITIONS {
            let id = format!("spike/partitions/{i}/{p}");
            if results.contains(&id) {
                let cells = VARIANTS.map(|(key, _)| cell(results, &id, key));
                let bound = if results.at(&id, "/truncated/error").is_some() {
                    None
                } else {
                    at(results, i, p, "/truncated/dropped")
                };
                let steps = at(results, i, p, "/truncated/steps");
                table.row(
                    [p.to_string(), cell(results, &id, "band-lu")]
                        .into_iter()
                        .chain(cells)
                        .chain([small(bound), count(steps)]),
                );
            }
        }
        items.push(Item::Table(table));
    }
    let dominant = DOMINANCE.len() - 1;
    let curve = |(key, name): (&str, &str)| Curve {
        name: name.into(),
        stroke: Stroke::Solid,
        points: PARTITIONS
            .into_iter()
            .filter_map(|p| Some((p as f64, at(results, dominant, p, &format!("/{key}/setup_seconds"))?)))
            .collect(),
    };
    items.push(Item::Figure(Figure {
        name: "spike-factorization".into(),
        title: format!(
            "Factorization, δ = {}: seconds on {} threads",
            DOMINANCE[dominant],
            rayon::current_num_threads()
        ),
        x: Axis::new("partitions", Scaling::Logarithmic),
        y: Axis::new("seconds", Scaling::Logarithmic),
        curves: VARIANTS
            .into_iter()
            .map(curve)
            .chain([Curve { stroke: Stroke::Dashed, ..curve(("band-lu", "band LU")) }])
            .collect(),
    }));
    Section { title: "Partitions: exact against truncated".into(), items }
}

fn boosting_table(results: &Results) -> Section {
    let id = "spike/boosting";
    let mut table = Table::new(
        "A band with vanishing leading minors, four partitions without interchanges, pivots below u·‖A‖₁ moved by ε·‖A‖₁.",
        ["ε", "boosted", "backward error", "steps of refinement", "after refinement"],
    );
    for k in 0..BOOSTS.len() {
        let row = |field: &str| results.number(id, &format!("/rows/{k}/{field}"));
        if row("eps").is_some() {
            table.row([
                small(row("eps")),
                count(row("boosted")),
                small(row("backward_error")),
                count(row("steps")),
                small(row("refined_backward_error")),
            ]);
        }
    }
    let mut beside = Table::new("Beside it.", ["method", "setup + solve, backward error"]);
    for (key, name) in [("pivoted", "band LU with interchanges"), ("plain", "without interchanges, without boosting")] {
        if results.contains(id) {
            beside.row([name.into(), cell(results, id, key)]);
        }
    }
    Section { title: "Boosted pivots".into(), items: vec![Item::Table(table), Item::Table(beside)] }
}

fn tridiagonal_tables(results: &Results) -> Section {
    let mut items = Vec::new();
    for (key, what) in TRIDIAGONALS {
        let id = format!("spike/tridiagonal/{key}");
        if results.contains(&id) {
            let mut table = Table::new(
                format!("{}: setup + solve, backward error.", what.replacen('t', "T", 1)),
                ["partitions", SOLVERS[0].0, SOLVERS[1].0, SOLVERS[2].0],
            );
            for p in PARTITIONS.into_iter().skip(1) {
                let cells = SOLVERS.map(|(name, _)| cell(results, &id, &format!("{p}/{name}")));
                table.row([p.to_string()].into_iter().chain(cells));
            }
            items.push(Item::Table(table));
        }
    }
    Section { title: "Tridiagonal partitions".into(), items }
}

fn preconditioner_tables(results: &Results) -> Section {
    let mut items = Vec::new();
    let mut curves = Vec::new();
    for (key, _) in SYSTEMS {
        let id = format!("spike/preconditioner/{key}");
        if !results.contains(&id) {
            continue;
        }
        let mut table = Table::new(
            format!(
                "{key}: BiCGSTAB to 1e-8. Without a preconditioner {} iterations, with ILU(0) {}.",
                iterations(results, &id, "/none"),
                iterations(results, &id, "/ilu0")
            ),
            [
                "half-bandwidth",
                "order",
                "left out, ‖·‖_F",
                "iterations",
                "setup",
                "solve",
                "iterations, truncated",
                "solve, truncated",
            ],
        );
        for (k, half) in WIDTHS.into_iter().enumerate() {
            let at = |field: &str| results.number(&id, &format!("/rows/{k}/{field}"));
            table.row([
                half.to_string(),
                results.text(&id, &format!("/rows/{k}/exact/order")).unwrap_or("–").into(),
                ratio(at("exact/left_out")),
                iterations(results, &id, &format!("/rows/{k}/exact")),
                seconds(at("exact/setup_seconds")),
                seconds(at("exact/seconds")),
                iterations(results, &id, &format!("/rows/{k}/truncated")),
                seconds(at("truncated/seconds")),
            ]);
        }
        let points = |variant: &str| {
            let steps = |k: usize| results.number(&id, &format!("/rows/{k}/{variant}/iterations"));
            WIDTHS.into_iter().enumerate().filter_map(|(k, half)| Some((half as f64, steps(k)?))).collect()
        };
        curves.push(Curve { name: key.into(), stroke: Stroke::Solid, points: points("exact") });
        curves.push(Curve { name: format!("{key}, truncated"), stroke: Stroke::Dashed, points: points("truncated") });
        items.push(Item::Table(table));
    }
    items.push(Item::Figure(Figure {
        name: "spike-preconditioner".into(),
        title: "Iterations with the central band as preconditioner".into(),
        x: Axis::new("half-bandwidth", Scaling::Logarithmic),
        y: Axis::new("iterations", Scaling::Logarithmic),
        curves,
    }));
    Section { title: "Bands as preconditioners".into(), items }
}
