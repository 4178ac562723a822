//! How many servers should be on? From a load trace to a plan for each hour, by the cloud model of `bt-queue`.
//!
//! ```text
//! λ̂ = arrivals of an hour     μ̂ = completions / hours of work     K tasks a server, η and ν from turning on and off
//! Q(λ̂, μ̂, η, ν) → π with πQ = 0 → servers in advance ⌈M/K⌉, their mean and 95 % quantile, who waits, what it costs
//! ```
//!
//! The trace is synthetic (`examples/data/load-trace.csv`). `cargo run -p blocktri --example servers_on [picture.svg]`. The book walks
//! through it. Checked: no plan serves more than its servers can, and four hours bring the chain nine tenths of the way to a new π.

#[path = "support/svg.rs"]
mod svg;

use std::error::Error;

use bt_queue::{Capacity, CloudModel, Costs, Form, Marginals, Order, Rates, Stationary, TimeUnit, sweep, transient};
use svg::{Curve, plot};

const TRACE: &str = include_str!("../../../examples/data/load-trace.csv");
/// Servers there are, and tasks that one may hold.
const SERVERS: usize = 40;
const TASKS: usize = 8;
/// A server takes 15 seconds to turn on, and is turned off within a minute without need of it: rates per hour.
const TURN_ON: f64 = 240.0;
const TURN_OFF: f64 = 60.0;
const COSTS: Costs = Costs { resource_hour: 1.0, switch: 0.05, waiting_task_hour: 2.0 };

/// Quarters of an hour: arrivals, completions, hours of work.
fn trace() -> Result<Vec<[f64; 3]>, Box<dyn Error>> {
    let rows = TRACE.lines().filter(|l| !l.starts_with('#')).skip(1);
    rows.map(|row| {
        let numbers: Vec<f64> = row.split(',').map(str::parse).collect::<Result<_, _>>()?;
        let [_, arrivals, completions, busy] = numbers[..] else { return Err("four columns are needed".into()) };
        Ok([arrivals, completions, busy])
    })
    .collect()
}

fn model(arrival: f64, service: f64) -> bt_queue::Result<CloudModel> {
    let rates = Rates { arrival, service, turn_on: TURN_ON, turn_off: TURN_OFF };
    CloudModel::new(SERVERS, TASKS, rates, Form::Repaired)
}

fn main() -> Result<(), Box<dyn Error>> {
    let quarters = trace()?;
    let hours: Vec<f64> = quarters.chunks(4).map(|h| h.iter().map(|q| q[0]).sum()).collect();
    // Poisson arrivals have a variance equal to their mean: Σ(a − ā)²/ā over the quarters of an hour, 3 degrees of freedom each.
    let dispersion: f64 = quarters
        .chunks(4)
        .zip(&hours)
        .map(|(h, n)| h.iter().map(|q| (q[0] - n / 4.0).powi(2) / (n / 4.0)).sum::<f64>())
        .sum();
    let (completions, busy) = quarters.iter().fold((0.0, 0.0), |(c, b), q| (c + q[1], b + q[2]));
    let mu = completions / busy;
    println!("service rate       {mu:.1} tasks an hour ± {:.1}", 1.96 * mu / completions.sqrt());
    println!("index of dispersion {:.2} (1 for Poisson arrivals)", dispersion / (3 * hours.len()) as f64);

    // Plans for λ̂ and for the upper end of its 95 % interval, N + 1.96·√N.
    let upper: Vec<f64> = hours.iter().map(|n| n + 1.96 * n.sqrt()).collect();
    let plans = sweep(&hours, &mut (), |arrival| model(arrival, mu))?;
    let careful = sweep(&upper, &mut (), |arrival| model(arrival, mu))?;
    println!(
        "hour  arrivals  least  in advance  mean on  95 %  95 %, upper λ  waiting     lost  cost/h  cheapest fixed"
    );
    for (hour, ((n, plan), safe)) in hours.iter().zip(&plans).zip(&careful).enumerate() {
        let on = &plan.marginals.level;
        // Servers that are on cannot finish less than what is served.
        assert!(on.mean() >= plan.throughput / mu * (1.0 - 1e-12), "hour {hour}");
        println!(
            "{hour:4}  {n:8.0}  {:5.1}  {:10}  {:7.2}  {:4}  {:13}  {:6.1}%  {:7.0e}  {:6.2}  {:14}",
            n / mu,
            plan.in_advance(),
            on.mean(),
            on.quantile(0.95),
            safe.marginals.level.quantile(0.95),
            100.0 * plan.waiting,
            plan.loss,
            plan.cost_per_hour(&COSTS, TimeUnit::Hour),
            plan.cheapest_in_advance(&COSTS).0
        );
    }
    settles(&hours, &plans, mu)?;

    let over_hours =
        |value: &dyn Fn(&Capacity) -> f64| plans.iter().enumerate().map(|(h, p)| (h as f64, value(p))).collect();
    let curves = [
        Curve {
            name: "95 % quantile of servers on",
            colour: "#c4432b",
            points: over_hours(&|p| p.marginals.level.quantile(0.95) as f64),
        },
        Curve { name: "mean on", colour: "#1f5fa8", points: over_hours(&|p| p.marginals.level.mean()) },
        Curve {
            name: "λ/μ, the least that would do",
            colour: "#5f6b7a",
            points: hours.iter().enumerate().map(|(h, n)| (h as f64, n / mu)).collect(),
        },
    ];
    plot("servers_on", "Servers on by the hour of a synthetic day", ["hour of the day", "servers"], &curves);
    Ok(())
}

/// At the steepest rise, from π of the hour before: how much of the way to the new π is done, and when. A plan by the hour takes
/// the long run for granted.
fn settles(hours: &[f64], plans: &[Capacity], mu: f64) -> Result<(), Box<dyn Error>> {
    let steepest =
        (1..hours.len()).max_by(|&a, &b| (hours[a] - hours[a - 1]).total_cmp(&(hours[b] - hours[b - 1]))).unwrap_or(1);
    let order = Order::TaskMajor;
    let before = Stationary::gth(&model(hours[steepest - 1], mu)?.generator(order)?)?.to_f64();
    let now = model(hours[steepest], mu)?;
    let times = [0.25, 0.5, 1.0, 2.0, 4.0];
    let path = transient(&now.generator(order)?, &before, &times, 1e-9, &mut ())?;
    let mean = |p: &[f64]| Marginals::new(now.space(), order, p).level.mean();
    let stationary = plans[steepest].marginals.level.mean();
    let start = mean(&before);
    println!("steepest rise at {steepest} h: mean on {start:.2} before, {stationary:.2} in the long run");
    let mut way = 0.0;
    for (t, p) in times.iter().zip(&path) {
        way = (mean(p) - start) / (stationary - start);
        println!("  after {:3.0} minutes {:.2}, {:.0} % of the way", 60.0 * t, mean(p), 100.0 * way);
    }
    assert!(way > 0.9 && way < 1.0 + 1e-9, "{way}");
    Ok(())
}
