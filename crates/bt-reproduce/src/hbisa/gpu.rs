//! The study's sweeps on a GPU beside those of the processor: experiments, claims, a table.

use std::cell::RefCell;

use bt_formats::{BlockTridiagonal, CancelToken, Csr, HybridLayout, LinearOperator, StopCriterion};
use bt_iter::{StopRule, Sweep};
use bt_queue::{Capacity, CloudModel, Form, Rates, sweep, sweep_by};
use serde_json::json;

use super::report::{excess, readings};
use super::{MAX_ITERS, PAPER, example_matrix, facts, small_first, update_rule};
use crate::Scale;
use crate::document::{Claim, Item, Origin, Section, Verdict};
use crate::experiment::{Error, Experiment, Facts, Results};
use crate::gpu::{Gpu, Inverse, Pair, Share, preface, same_counts, table};
use crate::measure::{Krylov, converged, fastest, mean, seconds};
use crate::spread::{ROUNDS, Spread, list};

/// What is run: key, heading, and the key of its counterpart on the processor.
const METHODS: [(&str, &str, &str); 5] = [
    ("hbisa", "HBISA", "hbisa"),
    ("redblack", "red–black", "redblack"),
    ("split", "HBISA on both", "hbisa"),
    ("bicgstab", "BiCGSTAB", "bicgstab"),
    ("gmres", "GMRES(30)", "gmres"),
];

fn id(name: &str) -> String {
    format!("hbisa/{name}/gpu")
}

pub fn experiments(scale: Scale, gpu: &Gpu) -> Vec<Experiment> {
    let [device, other] = [gpu.clone(), gpu.clone()];
    let mut all = vec![
        Experiment::new(id("B"), "the 9 × 9 matrix B on the GPU", move |cancel| {
            let (a, blocks) = example_matrix()?;
            solve(&device, scale, &a, &blocks, cancel)
        }),
        Experiment::new(id("rates"), "plans by arrival rate, their chains on the GPU", move |cancel| {
            rates(&other, scale, cancel)
        }),
    ];
    all.extend(small_first().into_iter().map(|case| {
        let device = gpu.clone();
        Experiment::new(id(case.name()), format!("{} on the GPU", case.name()), move |cancel| {
            let a = case.matrix()?;
            let blocks = BlockTridiagonal::from_csr(&a, case.partition()?, HybridLayout::default())?;
            solve(&device, scale, &a, &blocks, cancel)
        })
    }));
    all
}

/// The methods of the study that the device has, b = ones, x⁰ = 0; GMRES only where it is quick, if that is asked for.
fn solve(
    gpu: &Gpu,
    scale: Scale,
    a: &Csr<f64>,
    blocks: &BlockTridiagonal<f64>,
    cancel: &CancelToken,
) -> Result<Facts, Error> {
    let gpu = gpu.solvers();
    let b = vec![1.0; a.nrows()];
    let stop = update_rule(MAX_ITERS);
    let by = |sweep, share| gpu.hbisa(blocks, &b, sweep, StopRule::Update, share, &stop, cancel);
    let residual = StopCriterion { atol: 0.0, rtol: super::TOLERANCE, ..stop };
    let plain = |method| gpu.krylov(method, a, Inverse::Identity, 1.0, &b, &residual, cancel);
    let mut found = facts(json!({
        "hbisa": by(Sweep::Jacobi, Share::None)?,
        "redblack": by(Sweep::RedBlack, Share::None)?,
        "split": by(Sweep::Jacobi, Share::Measured)?,
        "bicgstab": plain(Krylov::BiCgStab)?,
    }));
    if scale == Scale::Full || a.nrows() <= 2000 {
        found.insert("gmres".into(), plain(Krylov::Gmres(30))?);
    }
    Ok(found)
}

/// Arrival rates of a batch of chains, resources and tasks a resource.
fn grid(scale: Scale) -> (Vec<f64>, [usize; 2]) {
    let (count, step, model) = match scale {
        Scale::Quick => (40, 0.1, [6, 3]),
        Scale::Full => (2901, 0.01, [40, 16]),
    };
    ((0..count).map(|k| 1.0 + step * f64::from(k)).collect(), model)
}

/// Plans over the grid, their chains eliminated one by one on the processor and together on the device.
fn rates(gpu: &Gpu, scale: Scale, cancel: &CancelToken) -> Result<Facts, Error> {
    let (arrivals, [resources, tasks]) = grid(scale);
    let model = |arrival| {
        let rates = Rates { arrival, service: 1.0, turn_on: 1.0, turn_off: 1.0 };
        CloudModel::new(resources, tasks, rates, Form::Repaired)
    };
    let (seconds, expected) = fastest(|| sweep(&arrivals, &mut cancel.clone(), model))?;
    let refused = RefCell::new(None);
    let there = || {
        sweep_by(&arrivals, &mut cancel.clone(), model, |chains| {
            Ok::<_, Error>(gpu.solvers().stationary(chains)?.unwrap_or_else(|why| {
                refused.replace(Some(why));
                vec![None; chains.len()]
            }))
        })
    };
    // The first one compiles the kernels.
    there()?;
    let (seconds_there, swept) = fastest(there)?;
    let same = |(ours, theirs): (&Capacity, &Capacity)| {
        let [mean, other] = [ours, theirs].map(|plan| plan.marginals.level.mean());
        ours.in_advance() == theirs.in_advance() && (mean - other).abs() <= 1e-12 * other
    };
    let gpu = match refused.into_inner() {
        Some(why) => json!({ "error": why }),
        None => json!({ "seconds": seconds_there, "on_processor": swept.on_host.len() }),
    };
    Ok(facts(json!({
        "chains": arrivals.len(),
        "states": model(1.0)?.space().n(),
        "processor": { "seconds": seconds },
        "gpu": gpu,
        "same": swept.plans.iter().zip(&expected).filter(|plans| same(*plans)).count(),
    })))
}

fn pairs(keys: &[&str]) -> Vec<Pair> {
    let names = ["B"].into_iter().chain(PAPER.iter().map(|c| c.name));
    names
        .flat_map(|name| {
            METHODS.into_iter().filter(|(key, ..)| keys.contains(key)).map(move |(key, heading, beside)| Pair {
                names: [name.to_owned(), heading.to_owned()],
                processor: (format!("hbisa/{name}"), format!("/{beside}")),
                gpu: (id(name), format!("/{key}")),
            })
        })
        .collect()
}

/// What the results of the device say.
pub fn section(gpu: &str, results: &Results) -> Section {
    let sweeps = pairs(&["hbisa", "redblack", "split"]);
    let all = pairs(&METHODS.map(|(key, ..)| key));
    let counts = same_counts(
        "Not in the paper: HBISA takes as many iterations on the GPU as on the processor, Jacobi and red–black, alone or with the \
         processor, ±1",
        "Eq. (6) and (7) by the same stopping rule; only rounding differs. BiCGSTAB's count depends on the last bits of every sum and \
         is not compared. What the device refuses is counted apart.",
        results,
        &sweeps,
        |_| 1.0,
    );
    let items = vec![
        Item::Text(format!(
            "{} HBISA on both: the processor sweeps a part of the blocks, chosen by the time of one sweep on each. Textbook CG is not \
             on the GPU: the library's ends on these matrices, which are not symmetric.",
            preface(gpu)
        )),
        Item::Claims(vec![counts, reduction(results), faster(results), both(results), gmres(results), plans(results)]),
        Item::Table(table("HBISA, BiCGSTAB and GMRES on the GPU.", "matrix", results, &all)),
    ];
    Section { title: "On the GPU".into(), items }
}

/// Seconds of the iterations of a converged solve on the device.
fn seconds_of(results: &Results, name: &str, key: &str) -> Option<f64> {
    let pointer = format!("/{key}");
    converged(results, &id(name), &pointer)?;
    results.number(&id(name), &format!("{pointer}/seconds")).filter(|s| *s > 0.0)
}

fn reduction(results: &Results) -> Claim {
    let published = excess(PAPER.iter().map(|c| (c.seconds[0], c.seconds[2])));
    let ours =
        excess(PAPER.iter().map(|c| (seconds_of(results, c.name, "hbisa"), seconds_of(results, c.name, "bicgstab"))));
    let both =
        PAPER.iter().filter(|c| ["hbisa", "bicgstab"].iter().all(|key| seconds_of(results, c.name, key).is_some()));
    let cases: Vec<_> =
        both.map(|c| ["hbisa", "bicgstab"].map(|key| list(results, &id(c.name), &format!("/{key}/runs")))).collect();
    let saving = |k: usize| mean(cases.iter().filter_map(|[h, b]| Some(1.0 - h.get(k)? / b.get(k)?)));
    let spread = Spread::of((0..ROUNDS).filter_map(saving));
    Claim {
        what: "Table 4: on the GPU HBISA takes less time than BiCGSTAB, by 11.52 %".into(),
        origin: Origin::Paper,
        paper: readings(published),
        ours: readings(ours),
        verdict: spread.map_or(Verdict::NotRun, |s| s.above(0.0)),
        why: "Both on one GPU, as in the paper. The printed 11.52 % is an increase of the other's time; the second mean is the reduction. \
              Rule: it is positive, by the quartiles of five runs. Iterations alone, by the rules of each method."
            .into(),
    }
}

/// How many of `pairs` gain, and between which factors.
fn gains(results: &Results, pairs: &[Pair]) -> (Vec<f64>, String) {
    let gains: Vec<_> = pairs.iter().filter_map(|p| p.gain(results)).collect();
    let (low, high) = gains.iter().fold((f64::INFINITY, 0.0f64), |(l, h), &g| (l.min(g), h.max(g)));
    let faster = gains.iter().filter(|g| **g > 1.0).count();
    let words = if gains.is_empty() {
        "–".into()
    } else {
        format!("on {faster} of {}; {low:.2} to {high:.2} times as fast", gains.len())
    };
    (gains, words)
}

fn faster(results: &Results) -> Claim {
    let ten: Vec<_> = pairs(&["hbisa"]).into_iter().filter(|p| p.names[0] != "B").collect();
    let (gains, ours) = gains(results, &ten);
    Claim {
        what: "Not in the paper: on which matrices HBISA takes less time on the GPU than on the processor".into(),
        origin: Origin::Ours,
        paper: "–".into(),
        ours,
        verdict: if gains.is_empty() { Verdict::NotRun } else { Verdict::NotComparable },
        why: "The paper times its GPU alone. The factor is one of two chips, and of the size: ten matrices of at most 32,000 rows stay in \
              the caches of a processor."
            .into(),
    }
}

fn gmres(results: &Results) -> Claim {
    same_counts(
        "Not in the paper: GMRES(30) takes as many iterations on the GPU as on the processor, within 5 % and ±1",
        "The same cycles; the device makes every vector orthogonal twice, the processor where it pays.",
        results,
        &pairs(&["gmres"]),
        |count| (0.05 * count).max(1.0),
    )
}

/// Plans by arrival rate.
fn plans(results: &Results) -> Claim {
    let id = id("rates");
    let at = |pointer: &str| results.number(&id, pointer);
    let ours = at("/chains").zip(at("/same")).map(|(chains, same)| {
        let alone = at("/gpu/on_processor").filter(|count| *count > 0.0);
        let alone = alone.map_or(String::new(), |count| format!("; {count} chains left to the processor"));
        let times = at("/processor/seconds").zip(at("/gpu/seconds"));
        let times = times
            .map_or(String::new(), |(cpu, gpu)| format!("; {} there, {} here", seconds(Some(gpu)), seconds(Some(cpu))));
        (same == chains, format!("{same} of {chains}{alone}{times}"))
    });
    let refused = results.text(&id, "/gpu/error").map(|why| format!("refused: {why}"));
    let good = if refused.is_some() { None } else { ours.as_ref().map(|(good, _)| *good) };
    Claim {
        what: "Not in the paper: plans over a grid of arrival rates, their chains eliminated together on the GPU, are those of the processor"
            .into(),
        origin: Origin::Ours,
        paper: "–".into(),
        ours: refused.or(ours.map(|(_, words)| words)).unwrap_or_else(|| "–".into()),
        verdict: good.map_or(Verdict::NotRun, Verdict::of),
        why: "Rule: the same resources to turn on in advance, and means of the resources on that agree to 12 digits, at every rate. The chains \
              are eliminated without a subtraction on both. Seconds are of whole sweeps, models and plans included."
            .into(),
    }
}

/// Sweeps on both against sweeps on the device alone.
fn both(results: &Results) -> Claim {
    let times = PAPER
        .iter()
        .filter_map(|c| Some((seconds_of(results, c.name, "hbisa")?, seconds_of(results, c.name, "split")?)));
    let gains: Vec<f64> = times.map(|(alone, split)| alone / split).collect();
    let faster = gains.iter().filter(|g| **g > 1.0).count();
    Claim {
        what: "Not in the paper: on which matrices it pays to leave a part of the blocks to the processor".into(),
        origin: Origin::Ours,
        paper: "–".into(),
        ours: if gains.is_empty() { "–".into() } else { format!("{faster} of {}", gains.len()) },
        verdict: if gains.is_empty() { Verdict::NotRun } else { Verdict::NotComparable },
        why: "Iterations alone. Every sweep on both waits for an exchange, so that it pays where sweeps are long."
            .into(),
    }
}
