//! What the reports of `queue` say, for scripts and for people.

use blocktri::Outcome;
use bt_queue::{Capacity, Costs, Distribution, Generator, Stationary, TimeUnit};
use serde_json::{Map, Value, json};

use super::words::{elapsed, number, tiny};
use crate::args::{Parameters, QueueArgs, SweepArg};
use crate::exit::Exit;
use crate::report::{Page, bytes, plural};

/// Levels of the quantiles shown.
const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];

/// The code, and what stderr has to say.
pub fn verdict(pi: &Stationary, args: &QueueArgs) -> (Exit, Vec<String>) {
    let unread = args.unread_options();
    let mut warnings: Vec<String> = unread.iter().map(|option| format!("{option} is not read here")).collect();
    if pi.outcome() == Outcome::Converged {
        return (Exit::Done, warnings);
    }
    warnings.push(format!(
        "{} ended as {}{} with a relative residual of {}: {}; --method gth has no tolerance and cannot diverge",
        pi.method(),
        pi.outcome().name(),
        after(pi),
        tiny(pi.relative_residual()),
        certified(pi),
    ));
    (Exit::NotConverged, warnings)
}

/// ` after 7 iterations`; nothing for a direct method.
fn after(pi: &Stationary) -> String {
    match pi.iterations() {
        0 => String::new(),
        count => format!(" after {}", plural(count, "iteration")),
    }
}

/// What is known of the error of each probability.
pub fn certified(pi: &Stationary) -> String {
    match (pi.error_bound(), pi.outcome()) {
        (Some(bound), Outcome::Converged) => format!("every probability to a relative error of at most {bound:.1e}"),
        (Some(bound), _) if bound < 1.0 => {
            format!("not certified, probabilities may be wrong by up to {} %", number(100.0 * bound))
        }
        (Some(_), _) => "not certified, there are probabilities without a correct digit".into(),
        (None, _) => "not certified, the error of single probabilities is not known".into(),
    }
}

/// Facts about π whatever the chain.
pub fn facts(q: &Generator, pi: &Stationary, seconds: f64) -> Map<String, Value> {
    let value = json!({
        "n": q.n(),
        "nnz": q.matrix().values().len(),
        "recurrent": pi.recurrent(),
        "method": pi.method(),
        "outcome": pi.outcome().name(),
        "iterations": pi.iterations(),
        "residual": pi.residual(),
        "relative_residual": pi.relative_residual(),
        "balance": pi.balance(),
        "error_bound": pi.error_bound(),
        "certified": pi.outcome() == Outcome::Converged,
        "log10_min": pi.least().log10(),
        "seconds": { "solve": seconds },
        "bytes": { "factors": pi.bytes() },
        "notes": pi.notes(),
    });
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// The end of the page, the same for every chain.
pub fn accuracy(page: &mut Page, pi: &Stationary, seconds: f64) {
    page.line("method, outcome", format_args!("{}, {}{}", pi.method(), pi.outcome().name(), after(pi)));
    let least = pi.least();
    match least.to_f64() {
        0.0 => page.line("least probable", format_args!("10^{:.2}", least.log10())),
        p => page.line("least probable", number(p)),
    }
    page.line(
        "residual",
        format_args!("{}   ‖πQ‖₁; worst balance of one state {}", tiny(pi.residual()), tiny(pi.balance())),
    );
    page.line("accuracy", certified(pi));
    page.line("time, memory", format_args!("{}, {}", elapsed(seconds), bytes(pi.bytes())));
    for note in pi.notes() {
        page.line("note", note);
    }
}

pub fn distribution(d: &Distribution) -> Value {
    let quantiles: Map<String, Value> = QUANTILES.iter().map(|&q| (q.to_string(), d.quantile(q).into())).collect();
    json!({ "mean": d.mean(), "standard_deviation": d.variance().sqrt(), "most_probable": d.mode(), "quantiles": quantiles })
}

pub fn in_words(d: &Distribution) -> String {
    let quantiles: Vec<String> = QUANTILES.iter().map(|&q| format!("{} % ≤ {}", 100.0 * q, d.quantile(q))).collect();
    format!("mean {}, most probable {}, {}", number(d.mean()), d.mode(), quantiles.join(", "))
}

/// What a sweep goes over is null.
pub fn model_as_json(p: &Parameters, over: Option<&SweepArg>, unit: TimeUnit) -> Value {
    let mut model = json!({
        "resources": p.resources, "threshold": p.threshold, "lambda": p.rates.arrival, "mu": p.rates.service,
        "eta": p.rates.turn_on, "nu": p.rates.turn_off, "form": p.form_name(), "time_unit": unit.name(),
    });
    if let Some(over) = over {
        model[&over.name] = Value::Null;
    }
    model
}

/// `2 resources of 8 tasks`.
pub fn size_in_words(p: &Parameters) -> String {
    format!("{} of {}", plural(p.resources, "resource"), plural(p.threshold, "task"))
}

/// The files written, and what is in them.
pub fn written(page: &mut Page, args: &QueueArgs, contents: &str, picture: &str) {
    if let Some(output) = &args.output {
        page.line("written", format_args!("{}: {contents}", output.display()));
    }
    if let Some(plot) = &args.plot {
        page.line("written", format_args!("{}: {picture}", plot.display()));
    }
}

/// A number that JSON can hold.
pub fn finite(x: f64) -> Value {
    if x.is_finite() { x.into() } else { Value::Null }
}

pub fn plan(c: &Capacity, costs: Option<&Costs>, unit: TimeUnit) -> Value {
    let costs = costs.map(|costs| {
        let (resources, cost) = c.cheapest_in_advance(costs);
        json!({ "per_hour": c.cost_per_hour(costs, unit), "cheapest_in_advance": resources, "its_cost_per_hour": cost })
    });
    json!({
        "in_advance": c.in_advance(), "mean_on": c.marginals.level.mean(), "on_95": c.marginals.level.quantile(0.95),
        "utilisation": c.utilisation, "waiting": c.waiting, "waiting_tasks": c.waiting_tasks, "loss": c.loss,
        "log10_loss": finite(c.log10_loss()),
        "throughput": c.throughput, "time_in_system": c.time, "turn_on_rate": c.turn_on_rate,
        "turn_off_rate": c.turn_off_rate, "cost": costs,
    })
}
