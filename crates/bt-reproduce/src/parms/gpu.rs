//! The last level of ARMS on a GPU: experiments, claims, a table.

use bt_direct::RbtOptions;
use bt_formats::CancelToken;

use super::{LAST_SIZE, System, butterflies, facts_of, id, phases, rule, systems, total};
use crate::Scale;
use crate::document::{Claim, Item, Origin, Section, Table, Verdict};
use crate::experiment::{Error, Experiment, Facts, Results};
use crate::gpu::{Gpu, Inverse, Pair, same_counts, table as gpu_table};
use crate::measure::{Krylov, Runs, count, iterations, krylov, ratio, rhs, seconds};
use crate::spread::Spread;

/// Butterflies on the last level, there.
const KEY: &str = "arms-rbt/gpu";

/// Incomplete factors of GMRES(30) that is there as a whole.
const FACTORS: [(&str, Inverse); 2] = [("ilu0", Inverse::Ilu0), ("ilut", Inverse::Ilut)];

/// Systems of that: those of the paper, and a small box where it must be quick.
fn whole(scale: Scale) -> Vec<System> {
    match scale {
        Scale::Quick => vec![System::Box([6, 6, 6])],
        Scale::Full => systems(scale),
    }
}

pub fn experiments(scale: Scale, gpu: &Gpu) -> Vec<Experiment> {
    let mut all: Vec<Experiment> = systems(scale)
        .into_iter()
        .map(|system| {
            let device = gpu.clone();
            let what = format!("{}, the last level of arms-rbt on the GPU", system.name());
            Experiment::new(id(system, KEY), what, move |cancel| solve(&device, system, cancel))
        })
        .collect();
    for (system, (key, inverse)) in whole(scale).into_iter().flat_map(|s| FACTORS.map(|factors| (s, factors))) {
        let what = format!("{}, GMRES(30) with {key}", system.name());
        // What the tables of the processor leave out.
        if key == "ilut" || !systems(scale).contains(&system) {
            all.push(Experiment::new(id(system, key), what.clone(), move |cancel| {
                super::solve(&system.matrix()?, key, Runs::Fastest, cancel)
            }));
        }
        let device = gpu.clone();
        all.push(Experiment::new(format!("{}/gpu", id(system, key)), format!("{what} on the GPU"), move |cancel| {
            let a = system.matrix()?;
            let solve = device.solvers().krylov(Krylov::Gmres(30), &a, inverse, 1.0, &rhs(&a), &rule(), cancel)?;
            Ok(Facts::from_iter([("solve".to_owned(), solve)]))
        }));
    }
    all
}

/// GMRES(30) with these factors on both.
fn on_both(scale: Scale, keys: &[&str]) -> Vec<Pair> {
    let place = |id: String| (id, "/solve".to_owned());
    let of = |system: System| {
        keys.iter().map(move |key| Pair {
            names: [system.name(), format!("GMRES(30), {key}")],
            processor: place(id(system, key)),
            gpu: place(format!("{}/gpu", id(system, key))),
        })
    };
    whole(scale).into_iter().flat_map(of).collect()
}

/// As on the processor, the last level but for its factors included.
fn solve(gpu: &Gpu, system: System, cancel: &CancelToken) -> Result<Facts, Error> {
    let a = system.matrix()?;
    let b = rhs(&a);
    let make = || gpu.solvers().arms(&a, butterflies(), RbtOptions::default());
    // The first one compiles the kernels.
    drop(make()?);
    let start = std::time::Instant::now();
    let mut arms = match make()? {
        Ok(arms) => arms,
        Err(why) => return Ok(Facts::from_iter([("solve".to_owned(), serde_json::json!({ "error": why }))])),
    };
    let setup = start.elapsed().as_secs_f64();
    let mut facts = facts_of(&a, &arms, setup);
    let solved = krylov(Krylov::Gmres(30), &a, &mut arms, &b, &rule(), Runs::Fastest, cancel)?;
    gpu.solvers().check()?;
    facts.insert("solve".into(), solved);
    Ok(facts)
}

fn pair(system: System) -> Pair {
    Pair {
        names: [system.name(), "arms-rbt".into()],
        processor: (id(system, "arms-rbt"), "/solve".into()),
        gpu: (id(system, KEY), "/solve".into()),
    }
}

/// What the results of the device say.
pub fn section(scale: Scale, gpu: &str, results: &Results) -> Section {
    let pairs: Vec<_> = systems(scale).into_iter().map(pair).collect();
    let counts = same_counts(
        "Butterflies on the GPU are those of the processor: as many iterations, ±1",
        "The same random numbers and checks. What the device refuses is counted apart.",
        results,
        &pairs,
        |_| 1.0,
    );
    let incomplete = same_counts(
        "Not in the paper: GMRES(30) with ILU(0) takes as many iterations on the GPU as on the processor, within 5 % and ±1",
        "The same factors but for roundings. The device makes every vector orthogonal twice, the processor where it pays.",
        results,
        &on_both(scale, &["ilu0"]),
        |count| (0.05 * count).max(1.0),
    );
    let searched = same_counts(
        "The paper's future work: GMRES(30) with ILUT whose pattern is searched on the GPU takes 1.3 times the iterations of the processor's at most",
        "The same p, τ and sizes; the pattern is found by sweeps over all rows at once, and not by an elimination.",
        results,
        &on_both(scale, &["ilut"]),
        |count| 0.3 * count + 1.0,
    );
    let of_both = gpu_table(
        "GMRES(30) with incomplete factors on the GPU.",
        "system",
        results,
        &on_both(scale, &["ilu0", "ilut"]),
    );
    let mut table = Table::new(
        "ARMS by what solves with its last level: partial pivoting and butterflies on the processor, butterflies on the GPU.",
        [
            "system",
            "last level",
            "iterations, butterflies",
            "on the GPU",
            "setup, LU",
            "butterflies",
            "on the GPU",
            "solve, LU",
            "butterflies",
            "on the GPU",
            "LU ÷ GPU",
        ],
    );
    for (system, pair) in systems(scale).into_iter().zip(&pairs).filter(|(_, p)| p.was_run(results)) {
        let ids = ["arms-lu", "arms-rbt", KEY].map(|key| id(system, key));
        let at = |k: usize, pointer: &str| results.number(&ids[k], pointer);
        let found = pair
            .refusal(results)
            .map_or_else(|| iterations(results, &ids[2], "/solve"), |why| format!("refused: {why}"));
        let [setups, solves] =
            ["/setup_seconds", "/solve/seconds"].map(|pointer| [0, 1, 2].map(|k| seconds(at(k, pointer))));
        let head = [system.name(), last(results, &ids[2]), iterations(results, &ids[1], "/solve"), found];
        let gain = gain(results, system).map(|g| g + 1.0);
        table.row(head.into_iter().chain(setups).chain(solves).chain([ratio(gain)]));
    }
    Section {
        title: "On the GPU".into(),
        items: vec![
            Item::Text(format!(
                "The dense factors of the last level, at most {LAST_SIZE} rows, are made and applied on {gpu}; levels and GMRES are the \
                 processor's. Every application copies the last level's part of the vector there and back, which counts in the solve; \
                 compiling the kernels does not."
            )),
            Item::Claims(vec![counts, headline(scale, results), incomplete, searched]),
            Item::Table(of_both),
            Item::Table(table),
        ],
    }
}

/// Rows and solver of the last level.
fn last(results: &Results, id: &str) -> String {
    let Some(method) = results.text(id, "/last/method") else { return "–".into() };
    let fell_back = results.at(id, "/last/fell_back").and_then(serde_json::Value::as_bool) == Some(true);
    let rows = count(results.number(id, "/last/n"));
    format!("{rows} rows, {method}{}", if fell_back { " (fell back)" } else { "" })
}

/// Time of ARMS with pivoting on the processor over time of ARMS with butterflies on the device, less 1; none where the last level
/// was too large for dense factors.
fn gain(results: &Results, system: System) -> Option<f64> {
    (results.text(&id(system, KEY), "/last/method")? != "ilut").then_some(())?;
    phases(results, &id(system, KEY))?;
    Some(total(results, &id(system, "arms-lu"))? / total(results, &id(system, KEY))? - 1.0)
}

/// The same, each time known up to a factor of two: neither is repeated with its setup.
fn spread(results: &Results, system: System) -> Option<Spread> {
    let gain = gain(results, system)?;
    Spread::of([gain + 1.0]).map(|s| Spread { low: s.low / 2.0, high: 2.0 * s.high, ..s })
}

fn headline(scale: Scale, results: &Results) -> Claim {
    let published = |s: &System| matches!(s, System::Edf(_) | System::Epb3(_));
    let gains: Vec<_> =
        systems(scale).into_iter().filter(published).filter_map(|s| Some((s.name(), gain(results, s)?))).collect();
    let words = gains.iter().map(|(name, g)| format!("{name}: {:+.0} %", 100.0 * g)).collect::<Vec<_>>().join(", ");
    Claim {
        what: "ARMS with butterflies on the GPU is faster than with LU on the processor, on edf and epb3".into(),
        origin: Origin::Paper,
        paper: "30 % (edf), 25 % (epb3 ×64)".into(),
        ours: if gains.is_empty() { "–".into() } else { words },
        verdict: Verdict::of_all(systems(scale).into_iter().filter(published).filter_map(|s| Some(spread(results, s)?.above(1.0)))),
        why: "Rule: faster on every system run, setup and solve, by more than times of one run may be off, a factor of two each. By how much depends on the two chips, and on the number of processes: \
              the 30 % are of twelve, here there is one."
            .into(),
    }
}
