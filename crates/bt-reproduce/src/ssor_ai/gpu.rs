//! The study's preconditioners on a GPU beside those of the processor: experiments, claims, a table.

use std::time::Instant;

use bt_formats::{Bcsr, CancelToken};
use bt_iter::{BlockSsorAi, Series, SsorAi, Triangles};
use bt_queue::{ElasticDisk, Plane, UnitDisk};
use serde_json::{Value, json};

use super::{OMEGA, SOLVERS, TABLE, rule, sizes, solve_id, wanted};
use crate::Scale;
use crate::document::{Claim, Item, Origin, Section, Verdict};
use crate::experiment::{Error, Experiment, Facts, Results};
use crate::gpu::{Gpu, Inverse, Pair, preface, same_counts, table};
use crate::measure::{Krylov, Runs, converged, krylov};
use crate::spread::{Spread, list};

/// What is run: key, heading, preconditioner, ω.
const FORMS: [(&str, &str, Inverse, f64); 8] = [
    ("cg", "CG", Inverse::Identity, OMEGA),
    ("jacobi", "PCG, Jacobi", Inverse::Jacobi, OMEGA),
    ("masked", "PCG, M̄_A", Inverse::Masked, OMEGA),
    ("stored", "PCG, M̄", Inverse::Stored, OMEGA),
    ("free", "PCG, M̄ from A", Inverse::Free, OMEGA),
    ("second", "PCG, M̄ of order 2", Inverse::Second, OMEGA),
    ("ip", "PCG, IP", Inverse::Ip, 1.0),
    ("ic0", "PCG, IC(0)", Inverse::Ic0, OMEGA),
];

fn id(n: usize, key: &str) -> String {
    format!("{}/gpu", solve_id(n, key))
}

/// Of every size, the forms that the device has, after those of them that the tables leave out on the processor.
pub fn experiments(scale: Scale, gpu: &Gpu) -> Vec<Experiment> {
    let mut all = Vec::new();
    for &(n, ..) in sizes(scale) {
        for (key, name, inverse, omega) in FORMS.into_iter().filter(|(key, ..)| wanted(scale, n, key)) {
            if SOLVERS.iter().all(|(known, _)| *known != key) {
                let what = format!("{name}, n = {n}");
                all.push(Experiment::new(solve_id(n, key), what, move |cancel| super::solve(n, key, cancel)));
            }
            let device = gpu.clone();
            let what = format!("{name}, n = {n}, on the GPU");
            all.push(Experiment::new(id(n, key), what, move |cancel| solve(&device, n, inverse, omega, cancel)));
        }
    }
    for (n, (key, name, inverse)) in elastic(scale).iter().flat_map(|&n| NODES.map(|form| (n, form))) {
        let what = format!("{name}, plane strain, n = {n}");
        all.push(Experiment::new(elastic_id(n, key), what.clone(), move |cancel| {
            solve_elastic(None, n, inverse, cancel)
        }));
        let (device, id) = (gpu.clone(), format!("{}/gpu", elastic_id(n, key)));
        let what = format!("{what}, on the GPU");
        all.push(Experiment::new(id, what, move |cancel| solve_elastic(Some(&device), n, inverse, cancel)));
    }
    all
}

/// Plane strain on the disk, two unknowns a node, by the approximate inverse of order 2: by entries, and by the blocks of nodes.
const NODES: [(&str, &str, Inverse); 2] =
    [("second", "PCG, M̄ of order 2", Inverse::Second), ("nodes", "PCG, M̄ of order 2 by nodes", Inverse::Nodes(2))];
/// Poisson's ratio of it.
const RATIO: f64 = 0.3;

/// Its unknowns; about those of the first table, and few where that must be quick.
fn elastic(scale: Scale) -> &'static [usize] {
    match scale {
        Scale::Quick => &[602],
        Scale::Full => &[602, 2210, 265_346],
    }
}

fn elastic_id(n: usize, key: &str) -> String {
    format!("ssor-ai/elastic-{n}/{key}")
}

/// On the device, or on the processor with products by blocks of nodes where the preconditioner has them, as on the device.
fn solve_elastic(gpu: Option<&Gpu>, n: usize, inverse: Inverse, cancel: &CancelToken) -> Result<Facts, Error> {
    let (a, b) = ElasticDisk::new(n, Plane::Strain, RATIO)?.into_parts();
    let solve = match (gpu, inverse) {
        (Some(gpu), _) => gpu.solvers().krylov(Krylov::Cg, &a, inverse, OMEGA, &b, &rule(), cancel)?,
        (None, Inverse::Nodes(size)) => {
            let start = Instant::now();
            let (blocks, mut m) = (Bcsr::from_csr(&a, size)?, BlockSsorAi::with_options(&a, size, OMEGA)?);
            let setup = start.elapsed().as_secs_f64();
            let mut solve = krylov(Krylov::Cg, &blocks, &mut m, &b, &rule(), Runs::Fastest, cancel)?;
            solve["setup_seconds"] = json!(setup);
            solve
        }
        (None, _) => {
            let start = Instant::now();
            let mut m = SsorAi::with_options(&a, OMEGA, Series::Second, Triangles::Stored)?;
            let setup = start.elapsed().as_secs_f64();
            let mut solve = krylov(Krylov::Cg, &a, &mut m, &b, &rule(), Runs::Fastest, cancel)?;
            solve["setup_seconds"] = json!(setup);
            solve
        }
    };
    Ok(Facts::from_iter([("solve".to_owned(), solve)]))
}

fn solve(gpu: &Gpu, n: usize, inverse: Inverse, omega: f64, cancel: &CancelToken) -> Result<Facts, Error> {
    let (a, b) = UnitDisk::new(n)?.into_parts();
    let solve: Value = gpu.solvers().krylov(Krylov::Cg, &a, inverse, omega, &b, &rule(), cancel)?;
    Ok(Facts::from_iter([("solve".to_owned(), solve)]))
}

fn pairs(scale: Scale) -> Vec<Pair> {
    let place = |id: String| (id, "/solve".to_owned());
    let poisson = sizes(scale).iter().flat_map(|&(n, ..)| {
        FORMS.map(|(key, name, ..)| Pair {
            names: [n.to_string(), name.to_owned()],
            processor: place(solve_id(n, key)),
            gpu: place(id(n, key)),
        })
    });
    let strain = elastic(scale).iter().flat_map(|&n| {
        NODES.map(|(key, name, _)| Pair {
            names: [format!("{n}, plane strain"), name.to_owned()],
            processor: place(elastic_id(n, key)),
            gpu: place(format!("{}/gpu", elastic_id(n, key))),
        })
    });
    poisson.chain(strain).collect()
}

/// What the results of the device say.
pub fn section(scale: Scale, gpu: &str, results: &Results) -> Section {
    let pairs = pairs(scale);
    let counts = same_counts(
        "Not in the paper: every form takes as many iterations on the GPU as on the processor, within 1 % and ±1",
        "The same recurrences, rule and preconditioners; sums are added in another order. What the device refuses is counted apart.",
        results,
        &pairs,
        |count| (0.01 * count).max(1.0),
    );
    Section {
        title: "On the GPU".into(),
        items: vec![
            Item::Text(preface(gpu)),
            Item::Claims(vec![counts, speedup(results), gain(results), nodes(scale, results)]),
            Item::Table(table("CG by preconditioner on the GPU.", "n", results, &pairs)),
        ],
    }
}

/// Steps with blocks of nodes beside those with entries, on the device.
fn nodes(scale: Scale, results: &Results) -> Claim {
    let steps = |n: usize, key: &str| converged(results, &format!("{}/gpu", elastic_id(n, key)), "/solve");
    let both = elastic(scale).iter().filter_map(|&n| Some((n, steps(n, "second")?, steps(n, "nodes")?)));
    let both: Vec<(usize, f64, f64)> = both.collect();
    let words = both.iter().map(|(n, entries, nodes)| format!("n = {n}: {nodes} of {entries}")).collect::<Vec<_>>();
    Claim {
        what: "The paper's future work: on elasticity M̄ of order 2 by blocks of nodes takes fewer iterations than by entries, on the GPU"
            .into(),
        origin: Origin::Ours,
        paper: "–".into(),
        ours: if both.is_empty() { "–".into() } else { words.join("; ") },
        verdict: Verdict::of_all(both.iter().map(|(_, entries, nodes)| Verdict::of(nodes < entries))),
        why: "Plane strain on the disk, Poisson's ratio 0.3, two unknowns a node; ω and rule are those of the tables. Products with A are by \
              blocks, too."
            .into(),
    }
}

/// A number of a converged solve on the device.
fn at(results: &Results, n: usize, key: &str, field: &str) -> Option<f64> {
    converged(results, &id(n, key), "/solve")?;
    results.number(&id(n, key), &format!("/solve/{field}"))
}

/// Five runs of a converged solve on the device, and so many seconds more.
fn runs(results: &Results, n: usize, key: &str, more: f64) -> Option<Spread> {
    converged(results, &id(n, key), "/solve")?;
    let runs = list(results, &id(n, key), "/solve/runs");
    Spread::of(runs.into_iter().map(|s| s + more)).filter(|s| s.low > 0.0)
}

/// A claim that a factor is above 1 at every size of the tables.
fn above_one(what: &str, paper: String, why: &str, factor: impl Fn(usize) -> Option<Spread>) -> Claim {
    let found: Vec<_> = TABLE.iter().filter_map(|&(n, _)| factor(n)).collect();
    let (low, high) = range(found.iter().map(|s| s.median));
    Claim {
        what: what.into(),
        origin: Origin::Paper,
        paper,
        ours: if found.is_empty() {
            "–".into()
        } else {
            format!("{low:.2} to {high:.2} times ({} sizes)", found.len())
        },
        verdict: Verdict::of_all(found.iter().map(|s| s.above(1.0))),
        why: why.into(),
    }
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(l, h), v| (l.min(v), f64::max(h, v)))
}

/// CG on one thread of the processor over CG on the device.
fn speedup(results: &Results) -> Claim {
    let (low, high) = range(TABLE.iter().map(|(_, [xeon, t10, ..])| xeon / t10));
    above_one(
        "Tables 1 to 3: CG on the GPU is faster than on one core",
        format!("{low:.1} to {high:.1} times (Tesla T10, Xeon)"),
        "Rule: faster at every size of the tables that was run, by the quartiles of five runs on the GPU and one on the processor, known up to a factor \
         of two. By how much is a ratio of two chips, ours of another time than the \
         paper's. Iterations alone on the GPU, one thread of this machine's processor.",
        |n| {
            let one = Spread::of([results.number(&solve_id(n, "cg1"), "/solve/seconds")?])?;
            Some(one.quotient(runs(results, n, "cg", 0.0)?))
        },
    )
}

/// CG over PCG with M̄_A, both on the device, forming M̄_A included: its setup less that of CG, which copies A too.
fn gain(results: &Results) -> Claim {
    let (low, high) = range(TABLE.iter().map(|(_, [_, cg, pcg, _])| cg / pcg));
    above_one(
        "Tables 1 to 3: on the GPU PCG with M̄_A is faster than CG",
        format!("{low:.2} to {high:.2} times (8 threads a row)"),
        "Rule: faster at every size of the tables that was run, by the quartiles of five runs, forming M̄_A on the processor and copying it included. This is the \
         paper's own comparison, on another GPU.",
        |n| {
            let forming = at(results, n, "masked", "setup_seconds")? - at(results, n, "cg", "setup_seconds")?;
            Some(runs(results, n, "cg", 0.0)?.quotient(runs(results, n, "masked", forming.max(0.0))?))
        },
    )
}
