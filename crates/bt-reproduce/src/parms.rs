//! The experiments of A. Jamal, M. Baboulin, A. Khabou, M. Sosonkina, "A hybrid CPU/GPU approach for the parallel algebraic
//! recursive multilevel solver pARMS": ARMS with and without random butterflies on its last level beside ILU(0), time by phase.
//!
//! The matrices are those of [`bt_queue::meshes`]: sizes and non-zeros of the published ones, values and where need be structure of our
//! own. Copies along the diagonal are independent systems side by side; boxes of the same numbers of unknowns are one system. There is one
//! process here, whose threads are ranks where the paper has processes, and no accelerator unless a GPU is asked for, so that what the paper claims
//! for those is not comparable.

mod gpu;
mod ranks;

pub use ranks::{RankExperiment, rank_experiments};

use std::time::Instant;

use bt_direct::RbtOptions;
use bt_formats::{CancelToken, Csr, LinearOperator, Matrix, StopCriterion};
use bt_iter::{Arms, ArmsOptions, DroppedFill, IlutOptions, LastSolver, Preconditioner, ilu0, ilut};
use bt_queue::meshes::Mesh;
use serde_json::{Value, json};

use crate::Scale;
use crate::document::{Axis, Claim, Curve, Figure, Item, Origin, Report, Scaling, Section, Stroke, Table, Verdict};
use crate::experiment::{Error, Experiment, Facts, Results};
use crate::gpu::Gpu;
use crate::measure::{Krylov, Runs, count, iterations, krylov, ratio, rhs, seconds};
use crate::spread::{Spread, Work, list, quotients, rounds};

/// A system by its name and size.
#[derive(Clone, Copy, PartialEq)]
enum System {
    Edf(usize),
    Flame(usize),
    Epb3(usize),
    Box([usize; 3]),
}

impl System {
    fn name(self) -> String {
        match self {
            Self::Edf(copies) => format!("edf-x{copies}"),
            Self::Flame(copies) => format!("flame-x{copies}"),
            Self::Epb3(copies) => format!("epb3-x{copies}"),
            Self::Box([x, y, z]) => format!("box-{x}x{y}x{z}"),
        }
    }
    fn mesh(self) -> Mesh {
        match self {
            Self::Edf(copies) => Mesh::Edf(copies),
            Self::Flame(copies) => Mesh::Flame(copies),
            Self::Epb3(copies) => Mesh::Epb3(copies),
            Self::Box(size) => Mesh::Laplacian(size),
        }
    }
    fn matrix(self) -> Result<Csr<f64>, Error> {
        Ok(self.mesh().matrix()?)
    }
}

/// Copies of edf and boxes are paired by unknowns: 16 384 a copy, which is itself a box.
fn systems(scale: Scale) -> Vec<System> {
    use System::{Box, Edf, Epb3, Flame};
    match scale {
        Scale::Quick => vec![Edf(1), Edf(4), Box([32, 32, 64]), Epb3(1)],
        Scale::Full => vec![
            Edf(1),
            Edf(16),
            Edf(32),
            Edf(64),
            Edf(128),
            Box([64, 64, 64]),
            Box([64, 64, 128]),
            Box([64, 128, 128]),
            Box([128, 128, 128]),
            Epb3(1),
            Epb3(16),
            Epb3(64),
            Flame(1),
            Flame(4),
        ],
    }
}

/// ILU(0); ARMS as it comes, down to a hundred rows; ARMS down to the size of the paper's last Schur complement, by dense LU with
/// partial pivoting and by butterflies.
const PRECONDITIONERS: [&str; 4] = ["ilu0", "arms", "arms-lu", "arms-rbt"];
/// Rows of the paper's last Schur complements, at most.
const LAST_SIZE: usize = 3724;
/// Of all solves.
const RTOL: f64 = 1e-8;
const MAX_ITERS: usize = 1000;
/// The share of the solve that the paper gives for applications of the preconditioner.
const SHARE: [f64; 2] = [0.2, 0.5];

fn id(system: System, precond: &str) -> String {
    format!("parms/{}/{precond}", system.name())
}

fn rounds_id(system: System) -> String {
    format!("parms/{}/rounds", system.name())
}

/// Whether all preconditioners are run five times in turn: on the largest systems once must do.
fn in_turn(system: System) -> bool {
    match system {
        System::Edf(copies) => copies <= 16,
        System::Flame(copies) | System::Epb3(copies) => copies == 1,
        System::Box(size) => size.iter().product::<usize>() <= 300_000,
    }
}

/// Copies of edf a thread in the weak scaling.
fn copies_a_thread(scale: Scale) -> usize {
    match scale {
        Scale::Quick => 2,
        Scale::Full => 16,
    }
}

/// 1, 2, 4, … threads, and all of them.
fn threads() -> Vec<usize> {
    let all = rayon::current_num_threads();
    let mut counts: Vec<_> = std::iter::successors(Some(1), |p| Some(2 * p)).take_while(|&p| p < all).collect();
    counts.push(all);
    counts
}

fn weak_id(threads: usize, precond: &str) -> String {
    format!("parms/weak/{threads}/{precond}")
}

pub fn experiments(scale: Scale, gpu: Option<&Gpu>) -> Vec<Experiment> {
    let solves = systems(scale).into_iter().flat_map(|system| {
        PRECONDITIONERS.map(|precond| {
            let what = format!("{}, {precond}", system.name());
            Experiment::new(id(system, precond), what, move |cancel| {
                solve(&system.matrix()?, precond, Runs::Fastest, cancel)
            })
        })
    });
    let weak = threads().into_iter().flat_map(|threads| {
        PRECONDITIONERS.map(|precond| {
            let system = System::Edf(copies_a_thread(scale) * threads);
            let what = format!("{}, {precond}, {threads} threads", system.name());
            Experiment::new(weak_id(threads, precond), what, move |cancel| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                pool.map_err(|e| Error::Failed(e.to_string()))?
                    .install(|| solve(&system.matrix()?, precond, Runs::Fastest, cancel))
            })
        })
    });
    let turns = systems(scale).into_iter().filter(|s| in_turn(*s)).map(|system| {
        let what = format!("{}, all preconditioners in turn", system.name());
        Experiment::new(rounds_id(system), what, move |cancel| {
            let a = system.matrix()?;
            let work = PRECONDITIONERS.map(|precond| -> Work<'_> {
                (precond, Box::new(|| Ok(flat(solve(&a, precond, Runs::One, cancel)?))))
            });
            rounds(work.into())
        })
    });
    let there = gpu.into_iter().flat_map(|gpu| gpu::experiments(scale, gpu));
    solves.chain(weak).chain(turns).chain(ranks::experiments(scale)).chain(there).collect()
}

/// Of all solves.
fn rule() -> StopCriterion {
    StopCriterion { rtol: RTOL, max_iters: MAX_ITERS, ..StopCriterion::default() }
}

/// ARMS down to the size of the paper's last Schur complement, by butterflies.
fn butterflies() -> ArmsOptions {
    let last = LastSolver::Butterflies(RbtOptions::default());
    ArmsOptions { last_size: LAST_SIZE, last, ..ArmsOptions::default() }
}

/// The system and what became of it in a preconditioner made in `setup` seconds.
fn facts_of(a: &Csr<f64>, arms: &Arms<f64>, setup: f64) -> Facts {
    let level = arms.last_level();
    let fell_back = level.fallback.is_some();
    Facts::from_iter([
        ("n".to_owned(), json!(a.nrows())),
        ("nnz".to_owned(), json!(a.nnz())),
        ("levels".to_owned(), json!(arms.levels().len())),
        (
            "last".to_owned(),
            json!({ "n": level.n, "method": level.method, "fell_back": fell_back, "shift": level.shift }),
        ),
        ("setup_seconds".to_owned(), json!(setup)),
        ("fill".to_owned(), json!(arms.nnz() as f64 / a.nnz() as f64)),
    ])
}

/// GMRES(30) with a preconditioner: time by phase, and what the preconditioner is.
fn solve(a: &Csr<f64>, precond: &str, runs: Runs, cancel: &CancelToken) -> Result<Facts, Error> {
    let b = rhs(a);
    let start = Instant::now();
    let arms = match precond {
        "ilu0" | "ilut" => None,
        "arms" => Some(ArmsOptions::default()),
        "arms-lu" => Some(ArmsOptions { last_size: LAST_SIZE, ..ArmsOptions::default() }),
        _ => Some(butterflies()),
    };
    let seconds = || start.elapsed().as_secs_f64();
    let (mut facts, mut m): (Facts, Box<dyn Preconditioner<f64>>) = if let Some(options) = arms {
        let arms = Arms::with_options(a, options)?;
        (facts_of(a, &arms, seconds()), Box::new(arms))
    } else {
        let factors =
            if precond == "ilut" { ilut(a, IlutOptions::default())? } else { ilu0(a, DroppedFill::Forgotten)? };
        let facts = [
            ("n".to_owned(), json!(a.nrows())),
            ("nnz".to_owned(), json!(a.nnz())),
            ("setup_seconds".to_owned(), json!(seconds())),
            ("fill".to_owned(), json!(factors.nnz() as f64 / a.nnz() as f64)),
        ];
        (Facts::from_iter(facts), Box::new(factors))
    };
    facts.insert("solve".into(), krylov(Krylov::Gmres(30), a, &mut *m, &b, &rule(), runs, cancel)?);
    Ok(facts)
}

/// The times of a solve beside its outcome, and the share of the preconditioner in them.
fn flat(mut facts: Facts) -> Value {
    let mut solve = facts.remove("solve").unwrap_or_default();
    solve["setup_seconds"] = facts["setup_seconds"].clone();
    solve
}

/// Setup, products, preconditioner, the rest; seconds.
fn phases(results: &Results, id: &str) -> Option<[f64; 4]> {
    let at = |pointer: &str| results.number(id, pointer);
    let (products, applications) = (at("/solve/products_seconds")?, at("/solve/preconditioner_seconds")?);
    Some([at("/setup_seconds")?, products, applications, at("/solve/seconds")? - products - applications])
}

fn total(results: &Results, id: &str) -> Option<f64> {
    (results.text(id, "/solve/outcome")? == "converged").then(|| phases(results, id).map(|p| p.iter().sum()))?
}

pub fn report(scale: Scale, gpu: Option<&str>, results: &Results) -> Report {
    let mut sections = vec![
        claims(scale, results),
        solves(scale, results),
        breakdown(scale, results),
        weak(scale, results),
        ranks::section(scale, results),
    ];
    sections.extend(gpu.map(|gpu| gpu::section(scale, gpu, results)));
    Report {
        title: "ARMS, butterflies and ILU(0)".into(),
        source: "Jamal, Baboulin, Khabou & Sosonkina, A hybrid CPU/GPU approach for the parallel algebraic recursive multilevel solver \
                 pARMS"
            .into(),
        scope: match scale {
            Scale::Quick => "One and four copies of edf, one of epb3; the full run has ×16 to ×128, ×64, boxes as large, and flame2p3d80.".into(),
            Scale::Full => "All published sizes.".into(),
        },
        sections,
    }
}

/// Time with one preconditioner over time with another: in turn where that was done, else of one run each.
fn factor(results: &Results, system: System, keys: [&'static str; 2]) -> Option<Spread> {
    let [over, under] = keys.map(|key| total(results, &id(system, key)).and_then(|t| Spread::of([t])));
    quotients(results, &rounds_id(system), keys).or_else(|| Some(over?.quotient(under?)))
}

/// Time of ARMS over time of ARMS with butterflies, less 1.
fn gain(results: &Results, system: System) -> Option<Spread> {
    let Spread { low, median, high } = factor(results, system, ["arms-lu", "arms-rbt"])?;
    Some(Spread { low: low - 1.0, median: median - 1.0, high: high - 1.0 })
}

/// Of the solve that applications of a preconditioner take: of five runs, or of one.
fn share(results: &Results, system: System, precond: &str) -> Option<Spread> {
    let runs = list(results, &rounds_id(system), &format!("/{precond}/shares"));
    Spread::of(runs).or_else(|| {
        let [_, products, applications, rest] = phases(results, &id(system, precond))?;
        Spread::of([applications / (products + applications + rest)])
    })
}

fn claims(scale: Scale, results: &Results) -> Section {
    let headline = |what: &str, paper: &str, of: &dyn Fn(System) -> bool| {
        let gains: Vec<_> =
            systems(scale).into_iter().filter(|s| of(*s)).filter_map(|s| Some((s.name(), gain(results, s)?))).collect();
        Claim {
            what: what.into(),
            origin: Origin::Paper,
            paper: paper.into(),
            ours: if gains.is_empty() {
                "–".into()
            } else {
                gains.iter().map(|(name, g)| format!("{name}: {}", g.percent())).collect::<Vec<_>>().join(", ")
            },
            verdict: if gains.is_empty() { Verdict::NotRun } else { Verdict::NotComparable },
            why: "Published for an accelerator that factors the last Schur complement (2828 to 3724 rows a process) against LAPACK on \
                  the CPU. Here both are on the CPU, in one process, on a last level of at most 3724 rows: what is compared is pivoting \
                  against butterflies alone (arms-lu, arms-rbt), setup and solve."
                .into(),
        }
    };
    let shares: Vec<_> =
        systems(scale).into_iter().flat_map(|s| PRECONDITIONERS.map(|p| share(results, s, p))).flatten().collect();
    let verdicts: Vec<_> = shares.iter().map(|s| s.within(SHARE)).collect();
    let count_of = |verdict: Verdict| verdicts.iter().filter(|v| **v == verdict).count();
    let (inside, open) = (count_of(Verdict::Reproduced), count_of(Verdict::NotDecided));
    let (low, high) = shares.iter().fold((f64::INFINITY, 0.0f64), |(l, h), s| (l.min(s.median), h.max(s.median)));
    let mut claims = vec![
        headline("ARMS with butterflies is 30 % faster than ARMS alone on edf", "30 %, 12 processes, GPU", &|s| {
            matches!(s, System::Edf(_))
        }),
        headline("… and 25 % on epb3 ×64", "25 %, GPU", &|s| matches!(s, System::Epb3(_))),
        Claim {
            what: "Figure 2: applications of the preconditioner take 20 to 50 % of the solve".into(),
            origin: Origin::Paper,
            paper: "20 to 50 %".into(),
            ours: if shares.is_empty() {
                "–".into()
            } else {
                let all = shares.len();
                format!("{:.0} to {:.0} %, inside for {inside} of {all}, open for {open}", 100.0 * low, 100.0 * high)
            },
            verdict: Verdict::of_all(verdicts.iter().copied()),
            why:
                "Rule: inside for every solve, by the quartiles of five runs; the largest systems have one run, known up to a factor of two. Fill, number of iterations and the speed of the products move the share."
                    .into(),
        },
    ];
    claims.push(same_answers(scale, results));
    claims.push(fewer_iterations(scale, results));
    Section {
        title: "What holds".into(),
        items: vec![
            Item::Text(format!(
                "GMRES(30) preconditioned from the right, b = A·x*, x⁰ = 0, ‖r‖/‖b‖ ≤ {RTOL:.0e}. edf is the 7-point stencil on 16 × 32 × 32 \
                 points as published; flame2p3d80 has the published pattern with values of our own, epb3 sizes and non-zeros only: its \
                 structure is invented. ARMS: at most 10 levels, groups of 50, 50 \
                 entries and 1e-3 kept; arms ends at 100 rows, arms-lu and arms-rbt at {LAST_SIZE}, the size of the paper's last level."
            )),
            Item::Claims(claims),
        ],
    }
}

fn same_answers(scale: Scale, results: &Results) -> Claim {
    let pairs: Vec<_> = systems(scale)
        .into_iter()
        .filter_map(|s| {
            let steps = |p: &str| results.number(&id(s, p), "/solve/iterations");
            Some((s, steps("arms-lu")?, steps("arms-rbt")?))
        })
        .collect();
    let off: Vec<_> = pairs.iter().filter(|(_, a, b)| (a - b).abs() > 1.0).map(|(s, ..)| s.name()).collect();
    Claim {
        what: "Butterflies and no pivoting lose no quality: as many iterations as with pivoting, ±1".into(),
        origin: Origin::Ours,
        paper: "implied".into(),
        ours: if pairs.is_empty() {
            "–".into()
        } else {
            format!("{} of {} systems", pairs.len() - off.len(), pairs.len())
        },
        verdict: if pairs.is_empty() { Verdict::NotRun } else { Verdict::of(off.is_empty()) },
        why: if off.is_empty() {
            "A last level whose growth is bad would fall back on pivoting, and the table would say so.".into()
        } else {
            format!("Not on {}.", off.join(", "))
        },
    }
}

fn fewer_iterations(scale: Scale, results: &Results) -> Claim {
    let pairs: Vec<_> =
        systems(scale).into_iter().filter_map(|s| Some((s, factor(results, s, ["ilu0", "arms"])?))).collect();
    let with = |verdict: Verdict| -> Vec<String> {
        pairs.iter().filter(|(_, f)| f.above(1.0) == verdict).map(|(s, _)| s.name()).collect()
    };
    let [faster, slower, open] = [Verdict::Reproduced, Verdict::NotReproduced, Verdict::NotDecided].map(with);
    Claim {
        what: "Not in the paper: which of ARMS and ILU(0) takes less time, setup included".into(),
        origin: Origin::Ours,
        paper: "–".into(),
        ours: if pairs.is_empty() {
            "–".into()
        } else {
            let sides = [("ARMS", faster), ("ILU(0)", slower), ("not decided", open)];
            let some = sides.iter().filter(|(_, systems)| !systems.is_empty());
            some.map(|(name, systems)| format!("{name}: {}", systems.join(", "))).collect::<Vec<_>>().join("; ")
        },
        verdict: if pairs.is_empty() { Verdict::NotRun } else { Verdict::NotComparable },
        why: "These systems are easy: dominant or nearly so. The paper's gain of ILU(0) on flame2p3d80 ×4, up to 30 %, is one of the \
              accelerator's triangular solves over the CPU's, and has no counterpart here."
            .into(),
    }
}

fn solves(scale: Scale, results: &Results) -> Section {
    let mut table = Table::new(
        "Setup and solve by preconditioner. Fill is stored values over those of A.",
        ["system", "n", "preconditioner", "iterations", "setup", "solve", "total", "fill", "levels", "last level"],
    );
    for (system, precond) in systems(scale).into_iter().flat_map(|s| PRECONDITIONERS.map(|p| (s, p))) {
        let id = id(system, precond);
        if !results.contains(&id) {
            continue;
        }
        let at = |pointer: &str| results.number(&id, pointer);
        let last = results.text(&id, "/last/method").map_or_else(
            || "–".into(),
            |method| {
                let fell_back = results.at(&id, "/last/fell_back").and_then(Value::as_bool) == Some(true);
                format!("{} rows, {method}{}", count(at("/last/n")), if fell_back { " (fell back)" } else { "" })
            },
        );
        table.row([
            system.name(),
            count(at("/n")),
            precond.into(),
            iterations(results, &id, "/solve"),
            seconds(at("/setup_seconds")),
            seconds(at("/solve/seconds")),
            seconds(total(results, &id)),
            ratio(at("/fill")),
            count(at("/levels")),
            last,
        ]);
    }
    let against_n = |of: fn(System) -> bool, precond: &str| -> Vec<(f64, f64)> {
        let systems = systems(scale).into_iter().filter(|s| of(*s));
        systems
            .filter_map(|s| Some((results.number(&id(s, precond), "/n")?, total(results, &id(s, precond))?)))
            .collect()
    };
    let curves = ["ilu0", "arms", "arms-rbt"]
        .iter()
        .flat_map(|p| {
            let curve = |name: &str, stroke, points| Curve { name: format!("{p}, {name}"), stroke, points };
            [
                curve("copies of edf", Stroke::Solid, against_n(|s| matches!(s, System::Edf(_)), p)),
                curve("one box", Stroke::Dashed, against_n(|s| matches!(s, System::Box(_)), p)),
            ]
        })
        .collect();
    let figure = Figure {
        name: "parms-seconds".into(),
        title: "Setup and solve: copies of edf, and one box".into(),
        x: Axis::new("unknowns", Scaling::Logarithmic),
        y: Axis::new("seconds", Scaling::Logarithmic),
        curves,
    };
    Section {
        title: "Solves".into(),
        items: vec![
            Item::Text(
                "Copies along the diagonal do not interact: their number of iterations does not grow. A box does what a larger problem \
                 does."
                    .into(),
            ),
            Item::Table(table),
            Item::Figure(figure),
        ],
    }
}

fn breakdown(scale: Scale, results: &Results) -> Section {
    let mut table = Table::new(
        "Time by phase, seconds and percent of the whole; the share is that of the preconditioner in the solve alone.",
        [
            "system",
            "preconditioner",
            "setup",
            "products with A",
            "applications of M⁻¹",
            "vectors",
            "share of M⁻¹ in the solve",
        ],
    );
    for (system, precond) in systems(scale).into_iter().flat_map(|s| PRECONDITIONERS.map(|p| (s, p))) {
        let Some(parts) = phases(results, &id(system, precond)) else { continue };
        let whole: f64 = parts.iter().sum();
        let share = parts[2] / (whole - parts[0]);
        let cells = parts.map(|p| format!("{}, {:.0} %", seconds(Some(p)), 100.0 * p / whole));
        table.row(
            [system.name(), precond.to_owned()].into_iter().chain(cells).chain([format!("{:.0} %", 100.0 * share)]),
        );
    }
    Section { title: "Figure 2: time by phase".into(), items: vec![Item::Table(table)] }
}

fn weak(scale: Scale, results: &Results) -> Section {
    let copies = copies_a_thread(scale);
    let mut table = Table::new(
        format!("Weak scaling: {copies} copies of edf a thread. Efficiency is the time on one thread over that on p."),
        ["threads", "n", "preconditioner", "iterations", "setup", "solve", "efficiency"],
    );
    let efficiency =
        |p: usize, precond: &str| Some(total(results, &weak_id(1, precond))? / total(results, &weak_id(p, precond))?);
    for (p, precond) in threads().into_iter().flat_map(|p| PRECONDITIONERS.map(|m| (p, m))) {
        let id = weak_id(p, precond);
        if results.contains(&id) {
            table.row([
                p.to_string(),
                count(results.number(&id, "/n")),
                precond.into(),
                iterations(results, &id, "/solve"),
                seconds(results.number(&id, "/setup_seconds")),
                seconds(results.number(&id, "/solve/seconds")),
                ratio(efficiency(p, precond)),
            ]);
        }
    }
    let curves = PRECONDITIONERS
        .iter()
        .map(|m| Curve {
            name: (*m).into(),
            stroke: Stroke::Solid,
            points: threads().into_iter().filter_map(|p| Some((p as f64, efficiency(p, m)?))).collect(),
        })
        .collect();
    Section {
        title: "Weak scaling over threads".into(),
        items: vec![
            Item::Text(
                "The paper scales over processes with a distributed matrix, as the next section does over ranks; this is one matrix \
                 that threads share."
                    .into(),
            ),
            Item::Table(table),
            Item::Figure(Figure {
                name: "parms-weak".into(),
                title: "Efficiency at constant work a thread".into(),
                x: Axis::new("threads", Scaling::Linear),
                y: Axis::new("efficiency", Scaling::Linear),
                curves,
            }),
        ],
    }
}
