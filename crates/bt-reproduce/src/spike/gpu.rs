//! SPIKE on a GPU: the exact variant over numbers of partitions. Truncation, boosting and the tridiagonal solvers of this study are not
//! there.

use bt_formats::CancelToken;

use super::{DOMINANCE, HALF, PARTITIONS, STABLE, order, random_band, worst};
use crate::Scale;
use crate::document::{Claim, Item, Origin, Section, Table, Verdict};
use crate::experiment::{Error, Experiment, Facts, Results};
use crate::gpu::Gpu;
use crate::measure::{count, ratio, rhs, seconds, small};

fn id(dominance: usize, p: usize) -> String {
    format!("spike/partitions/{dominance}/{p}/gpu")
}

pub fn experiments(scale: Scale, gpu: &Gpu) -> Vec<Experiment> {
    let cases = DOMINANCE.into_iter().enumerate().flat_map(|(i, delta)| PARTITIONS.map(|p| (i, delta, p)));
    cases
        .map(|(i, delta, p)| {
            let device = gpu.clone();
            let what = format!("dominance {delta}, {p} partitions on the GPU");
            Experiment::new(id(i, p), what, move |cancel| solve(&device, order(scale), delta, p, cancel))
        })
        .collect()
}

fn solve(gpu: &Gpu, n: usize, delta: f64, p: usize, _: &CancelToken) -> Result<Facts, Error> {
    let a = random_band(n, HALF, delta)?;
    let solved = gpu.solvers().spike(&a, p, &rhs(&a))?;
    Ok(Facts::from_iter([("spike".to_owned(), solved)]))
}

fn at(results: &Results, (i, p): (usize, usize), field: &str) -> Option<f64> {
    results.number(&id(i, p), &format!("/spike/{field}"))
}

/// What the results of the device say.
pub fn section(gpu: &str, results: &Results) -> Section {
    let mut table = Table::new(
        format!("Bands of half-bandwidth {HALF}: SPIKE on the processor (explicit) and on the GPU, refined."),
        [
            "dominance",
            "partitions",
            "setup",
            "on the GPU",
            "solve",
            "on the GPU, copies and checks included",
            "setup, processor ÷ GPU",
            "steps of refinement",
            "backward error",
            "answer by",
        ],
    );
    for (i, p) in run(results) {
        let there = |field: &str| at(results, (i, p), field);
        let here = |field: &str| results.number(&format!("spike/partitions/{i}/{p}"), &format!("/explicit/{field}"));
        let by = match (results.text(&id(i, p), "/spike/error"), results.text(&id(i, p), "/spike/solved_by")) {
            (Some(why), _) => format!("refused: {why}"),
            (None, by) => by.unwrap_or("–").into(),
        };
        table.row([
            if DOMINANCE[i] > 0.0 { DOMINANCE[i].to_string() } else { "random".into() },
            p.to_string(),
            seconds(here("setup_seconds")),
            seconds(there("setup_seconds")),
            seconds(here("solve_seconds")),
            seconds(there("solve_seconds")),
            ratio(here("setup_seconds").zip(there("setup_seconds")).map(|(h, t)| h / t)),
            count(there("steps")),
            small(there("backward_error")),
            by,
        ]);
    }
    Section {
        title: "On the GPU".into(),
        items: vec![
            Item::Text(format!(
                "Computed on {gpu}: the exact reduced system alone, factored on the host; nothing else of this study is on the GPU. Each \
                 partition is a thread block, so that few partitions leave most of the device idle. Setup is the factorization with the \
                 copy of A; a solve is refined and checked on the host."
            )),
            Item::Claims(vec![exact(results)]),
            Item::Table(table),
        ],
    }
}

/// Those that have a result.
fn run(results: &Results) -> Vec<(usize, usize)> {
    let all = (0..DOMINANCE.len()).flat_map(|i| PARTITIONS.map(|p| (i, p)));
    all.filter(|&(i, p)| results.contains(&id(i, p))).collect()
}

fn exact(results: &Results) -> Claim {
    let all = run(results);
    let solved: Vec<_> = all.iter().filter(|&&(i, p)| results.text(&id(i, p), "/spike/error").is_none()).collect();
    let host = solved.iter().filter(|&&&(i, p)| results.text(&id(i, p), "/spike/solved_by") != Some("GPU")).count();
    let error = worst(solved.iter().map(|&&place| at(results, place, "backward_error")));
    let ours = || {
        let refused = all.len() - solved.len();
        format!("≤ {}; {host} of {} by the processor, {refused} refused", small(Some(error)), solved.len())
    };
    Claim {
        what: "On the GPU, too, the exact variant gives the same answer to working accuracy for any number of partitions".into(),
        origin: Origin::Paper,
        paper: "backward error near u".into(),
        ours: if all.is_empty() { "–".into() } else { ours() },
        verdict: if solved.is_empty() { Verdict::NotRun } else { Verdict::of(error <= STABLE && host == 0) },
        why: "After refinement, over all matrices and numbers of partitions. Rule: working accuracy, without the processor's factors."
            .into(),
    }
}
