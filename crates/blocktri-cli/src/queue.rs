//! `blocktri queue`: stationary distributions, what they say about capacity, and sweeps of plans.

use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use blocktri::faer::MatRef;
use blocktri::formats::AnyMatrix;
use blocktri::queue::{
    Capacity, CloudModel, Costs, Distribution, Error, Generator, Marginals, Order, Scaled, State, Stationary, TimeUnit,
    mean_first_passage, sweep, transient,
};
use blocktri::{CancelToken, Csr, Outcome, Partition};
use serde_json::{Map, Value, json};

use crate::args::{BlocksArg, Global, MethodArg, Parameters, QueueArgs, SweepArg};
use crate::exit::{Exit, Failure, Reply, Result};
use crate::load;
use crate::output::{self, Format, Output};
use crate::plot::{self, Picture, Series};
use crate::progress::{Line, Watch};
use crate::report::{Page, bytes};

/// Levels of the quantiles shown.
const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];

/// Runs the command.
///
/// # Errors
/// On parameters and files that make no chain, on several closed classes, and on unwritable outputs.
pub fn run(args: &QueueArgs, global: &Global, cancel: &CancelToken) -> Result<Reply> {
    let blocks = match &args.blocks {
        Some(BlocksArg::File(file)) => Some(file.as_path()),
        _ => None,
    };
    let inputs = [
        ("--generator", args.generator.as_deref()),
        ("--transitions", args.transitions.as_deref()),
        ("--blocks", blocks),
    ];
    output::check_names(global, &inputs, &[("--output", args.output.as_deref()), ("--plot", args.plot.as_deref())])?;
    let formats = if args.sweep.is_some() { &FORMATS[1..] } else { &FORMATS[..] };
    args.output.as_deref().map(|name| Format::of(name, formats)).transpose()?;
    let output = args.output.as_deref().map(Output::create).transpose()?;
    let picture = args.plot.as_deref().map(Picture::create).transpose()?;
    let targets = Targets { output, picture };
    let unit = args.time_unit.into();
    match (&args.generator, &args.transitions, &args.sweep) {
        (None, None, Some(over)) => swept(args.model.parameters()?, over, args, unit, (global, cancel), targets),
        (None, None, None) => cloud(args.model.parameters()?, args, unit, (global, cancel), targets),
        (Some(file), ..) => chain(file, Generator::new, args, (global, cancel), targets),
        (None, Some(file), _) => chain(file, |p| Generator::from_stochastic(&p), args, (global, cancel), targets),
    }
}

/// An error of the library; `file` is named where one was read.
pub fn failure(error: &Error, file: Option<&Path>) -> Failure {
    let message = file.map_or_else(|| error.to_string(), |file| format!("{}: {error}", file.display()));
    let failure = match error {
        Error::Stopped => return Failure::interrupted(),
        Error::Input(input) if file.is_some() => return Failure::input(input, file.unwrap_or(Path::new(""))),
        Error::Failed { .. } => Failure::new(Exit::NotConverged, message),
        Error::SeveralClosedClasses { count, classes } => {
            let classes: Vec<_> =
                classes.iter().map(|&(state, size)| json!({ "state": state, "size": size })).collect();
            Failure::new(Exit::Singular, message)
                .detail("outcome", "singular")
                .detail("closed_classes", json!({ "count": count, "first": classes }))
        }
        Error::NegativeRate { from, to, .. } => Failure::usage(message).detail("row", *from).detail("column", *to),
        Error::RowSum { row, .. } => Failure::usage(message).detail("row", *row),
        _ => Failure::usage(message),
    };
    match error.help() {
        Some(help) => failure.help(help),
        None => failure,
    }
}

/// Formats of distributions; of tables the last.
const FORMATS: [Format; 2] = [Format::MatrixMarket, Format::Csv];

/// Files to write.
struct Targets {
    output: Option<Output>,
    picture: Option<Picture>,
}

impl Targets {
    fn is_table(&self) -> bool {
        self.output.as_ref().is_some_and(|o| Format::of(o.name(), &FORMATS).is_ok_and(|f| f == Format::Csv))
    }

    /// Writes both, and only then lets them appear.
    fn write(self, fill: impl FnOnce(&mut Output) -> Result<()>, svg: impl FnOnce() -> String) -> Result<()> {
        let mut written = Vec::new();
        if let Some(mut output) = self.output {
            fill(&mut output)?;
            written.push(output);
        }
        if let Some(picture) = self.picture {
            written.push(picture.draw(&svg())?);
        }
        written.into_iter().try_for_each(Output::finish)
    }
}

/// π by the method asked for, and the seconds it took.
fn stationary(
    q: &Generator,
    levels: Option<&Partition>,
    args: &QueueArgs,
    watch: &mut Watch,
    file: Option<&Path>,
) -> Result<(Stationary, f64)> {
    let started = Instant::now();
    let pi = match args.method {
        MethodArg::Auto | MethodArg::Gth => Stationary::gth(q),
        MethodArg::BlockLu => Stationary::block_lu(q, levels),
        MethodArg::Hbisa => Stationary::hbisa(q, levels, &args.stop(), watch),
        MethodArg::Power => Stationary::power(q, &args.stop(), watch),
    };
    let pi = pi.map_err(|e| failure(&e, file))?;
    if pi.outcome() == Outcome::Stopped {
        return Err(Failure::interrupted());
    }
    Ok((pi, started.elapsed().as_secs_f64()))
}

/// The code, and what stderr has to say.
fn verdict(pi: &Stationary, args: &QueueArgs) -> (Exit, Vec<String>) {
    let unread = args.unread_options();
    let mut warnings: Vec<String> = unread.iter().map(|option| format!("{option} is not read here")).collect();
    if pi.outcome() == Outcome::Converged {
        return (Exit::Done, warnings);
    }
    warnings.push(format!(
        "{} ended as {} with a relative residual of {:.2e}; --method gth has no tolerance and cannot diverge",
        pi.method(),
        pi.outcome().name(),
        pi.relative_residual()
    ));
    (Exit::NotConverged, warnings)
}

/// Facts about π whatever the chain.
fn facts(q: &Generator, pi: &Stationary, seconds: f64) -> Map<String, Value> {
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
fn accuracy(page: &mut Page, pi: &Stationary, seconds: f64) {
    let iterations = match pi.iterations() {
        0 => String::new(),
        count => format!(" after {count} iterations"),
    };
    page.line("method, outcome", format_args!("{}, {}{iterations}", pi.method(), pi.outcome().name()));
    page.line("least probable", format_args!("10^{:.2}", pi.least().log10()));
    page.line(
        "residual",
        format_args!("{:.2e}   ‖πQ‖₁; worst balance of one state {:.1e}", pi.residual(), pi.balance()),
    );
    if let Some(bound) = pi.error_bound() {
        page.line("accuracy", format_args!("every probability to a relative error of at most {bound:.1e}"));
    }
    page.line("time, memory", format_args!("{seconds:.3} s, {}", bytes(pi.bytes())));
    for note in pi.notes() {
        page.line("note", note);
    }
}

fn distribution(d: &Distribution) -> Value {
    let quantiles: Map<String, Value> = QUANTILES.iter().map(|&q| (q.to_string(), d.quantile(q).into())).collect();
    json!({ "mean": d.mean(), "standard_deviation": d.variance().sqrt(), "most_probable": d.mode(), "quantiles": quantiles })
}

fn in_words(d: &Distribution) -> String {
    let quantiles: Vec<String> = QUANTILES.iter().map(|&q| format!("{} % ≤ {}", 100.0 * q, d.quantile(q))).collect();
    format!("mean {:.4}, most probable {}, {}", d.mean(), d.mode(), quantiles.join(", "))
}

/// log₁₀ of the probabilities as a curve.
fn picture(title: &str, subtitle: &str, what: &str, d: &Distribution) -> String {
    let points = d.iter().map(|(k, p)| (k as f64, p.log10())).collect();
    let series = [Series { name: format!("log₁₀ P({what})"), points }];
    plot::curves(title, subtitle, [what, "log₁₀ of the probability"], &series)
}

fn model_as_json(p: &Parameters, unit: TimeUnit) -> Value {
    json!({
        "resources": p.resources, "threshold": p.threshold, "lambda": p.rates.arrival, "mu": p.rates.service,
        "eta": p.rates.turn_on, "nu": p.rates.turn_off, "form": p.form_name(), "time_unit": unit.name(),
    })
}

fn cloud(
    p: Parameters,
    args: &QueueArgs,
    unit: TimeUnit,
    (global, cancel): (&Global, &CancelToken),
    targets: Targets,
) -> Result<Reply> {
    let order = args.method.order();
    let line = Line::spinner(!global.quiet, format!("{} resources of {} tasks", p.resources, p.threshold));
    let mut watch = Watch::new(cancel.clone(), line, args.stop().rtol);
    let wrong = |e: Error| failure(&e, None);
    let model = p.model().map_err(wrong)?;
    let q = model.generator(order).map_err(wrong)?;
    let levels = model.space().partition(order).map_err(wrong)?;
    let (pi, seconds) = stationary(&q, Some(&levels), args, &mut watch, None)?;
    let capacity = Capacity::new(&model, order, &pi);
    let at_times = at_times(&model, &q, args, &mut watch)?;
    // From empty until a task finds no free place.
    let crowded = |s: usize| {
        let State { tasks, level } = model.space().state(s, order);
        tasks >= level * p.threshold
    };
    let waits = mean_first_passage(&q, crowded).map_err(wrong)?;
    let first_wait = model.space().index(EMPTY, order).and_then(|empty| waits[empty]);
    drop(watch);
    let Capacity { marginals, .. } = &capacity;
    let mode = model.space().state(pi.mode(), order);
    let title = format!("cloud model, {} resources of {} tasks, {}", p.resources, p.threshold, p.form_name());

    let table = targets.is_table();
    let comment = format!("stationary distribution by level: blocktri queue {}", p.as_options());
    targets.write(
        |output| write_pi(output, table, &comment, &in_level_order(&model, order, &pi)),
        || {
            picture(
                &title,
                &format!("λ = {}, mean {:.2}", p.rates.arrival, marginals.tasks.mean()),
                "tasks",
                &marginals.tasks,
            )
        },
    )?;

    let costs = args.costs();
    let mut json = json!({ "schema": 1, "model": model_as_json(&p, unit) });
    if let Value::Object(object) = &mut json {
        object.extend(facts(&q, &pi, seconds));
        object.insert("method_requested".into(), args.method.name().into());
        let probability = pi.probability(pi.mode()).to_f64();
        object.insert("mode".into(), json!({ "tasks": mode.tasks, "level": mode.level, "probability": probability }));
        object.insert("tasks".into(), distribution(&marginals.tasks));
        object.insert("resources".into(), distribution(&marginals.level));
        object.insert("plan".into(), plan(&capacity, costs.as_ref(), unit));
        let time = first_wait.map(|t| json!({ "mean": finite(t.to_f64()), "log10": t.log10() }));
        object.insert("first_wait".into(), time.unwrap_or_default());
        let rows = at_times.iter().map(|(t, m)| {
            json!({ "time": t, "mean_tasks": m.tasks.mean(), "mean_on": m.level.mean(), "on_95": m.level.quantile(0.95) })
        });
        object.insert("times".into(), rows.collect());
    }
    let mut page = Page::new(format!("{title}: {} states", q.n()));
    let State { tasks, level } = mode;
    page.line("rates", format_args!("{} per {}", p.as_options(), unit.name()));
    page.line(
        "most probable",
        format_args!("{tasks} tasks, {level} resources on: {:.4}", pi.probability(pi.mode()).to_f64()),
    );
    page.line("tasks", in_words(&marginals.tasks));
    page.line("resources on", in_words(&marginals.level));
    page.line(
        "turn on in advance",
        format_args!("{} (the most probable tasks over {}, rounded up)", capacity.in_advance(), p.threshold),
    );
    page.line(
        "waiting, lost",
        format_args!("{:.3e} of the tasks wait, {:.3e} are lost", capacity.waiting, capacity.loss),
    );
    page.line("utilisation", format_args!("{:.4}", capacity.utilisation));
    page.line("time in system", format_args!("{:.4} {}s", capacity.time, unit.name()));
    page.line(
        "switches",
        format_args!("{:.4} on and {:.4} off per {}", capacity.turn_on_rate, capacity.turn_off_rate, unit.name()),
    );
    match first_wait {
        Some(t) => page.line("first wait", format_args!("10^{:.3} {}s from empty, on average", t.log10(), unit.name())),
        None => page.line("first wait", "perhaps never"),
    }
    if let Some(costs) = &costs {
        let (cheapest, cost) = capacity.cheapest_in_advance(costs);
        page.line("cost per hour", format_args!("{:.4}", capacity.cost_per_hour(costs, unit)));
        page.line(
            "cheapest fixed",
            format_args!("{cheapest} resources in advance, {cost:.4} per hour with these tasks"),
        );
    }
    for (time, m) in &at_times {
        page.line(
            &format!("at {time}"),
            format_args!("tasks {:.4}, resources on {:.4}", m.tasks.mean(), m.level.mean()),
        );
    }
    accuracy(&mut page, &pi, seconds);
    let (exit, warnings) = verdict(&pi, args);
    Ok(Reply { exit, json, text: page.finish(), warnings })
}

/// The state that a cloud starts in.
const EMPTY: State = State { tasks: 0, level: 1 };
/// Probability left out of a distribution at a time.
const LEFT_OUT: f64 = 1e-12;

/// Marginals at the times asked for, from empty.
fn at_times(model: &CloudModel, q: &Generator, args: &QueueArgs, watch: &mut Watch) -> Result<Vec<(f64, Marginals)>> {
    if args.times.is_empty() {
        return Ok(Vec::new());
    }
    let order = args.method.order();
    let mut start = vec![0.0; q.n()];
    if let Some(empty) = model.space().index(EMPTY, order) {
        start[empty] = 1.0;
    }
    let distributions = transient(q, &start, &args.times, LEFT_OUT, watch).map_err(|e| failure(&e, None))?;
    let marginals = distributions.iter().map(|p| Marginals::new(model.space(), order, p));
    Ok(args.times.iter().copied().zip(marginals).collect())
}

/// A number that JSON can hold.
fn finite(x: f64) -> Value {
    if x.is_finite() { x.into() } else { Value::Null }
}

fn plan(c: &Capacity, costs: Option<&Costs>, unit: TimeUnit) -> Value {
    let costs = costs.map(|costs| {
        let (resources, cost) = c.cheapest_in_advance(costs);
        json!({ "per_hour": c.cost_per_hour(costs, unit), "cheapest_in_advance": resources, "its_cost_per_hour": cost })
    });
    json!({
        "in_advance": c.in_advance(), "mean_on": c.marginals.level.mean(), "on_95": c.marginals.level.quantile(0.95),
        "utilisation": c.utilisation, "waiting": c.waiting, "waiting_tasks": c.waiting_tasks, "loss": c.loss,
        "throughput": c.throughput, "time_in_system": c.time, "turn_on_rate": c.turn_on_rate,
        "turn_off_rate": c.turn_off_rate, "cost": costs,
    })
}

/// States with their probabilities, by level.
fn in_level_order(model: &CloudModel, order: Order, pi: &Stationary) -> Vec<(Option<State>, Scaled)> {
    let space = model.space();
    let probability = |state| space.index(state, order).map_or(Scaled::ZERO, |i| pi.probability(i));
    space.states(Order::LevelMajor).map(|state| (Some(state), probability(state))).collect()
}

/// π as an array, or as a table with logarithms.
fn write_pi(output: &mut Output, table: bool, comment: &str, states: &[(Option<State>, Scaled)]) -> Result<()> {
    if !table {
        let x: Vec<f64> = states.iter().map(|s| s.1.to_f64()).collect();
        return load::write_dense(output, MatRef::from_column_major_slice(&x, x.len(), 1), &[comment.to_owned()]);
    }
    output.write(|w| {
        let model = states.first().is_some_and(|s| s.0.is_some());
        writeln!(w, "{}probability,log10", if model { "tasks,level," } else { "state," })?;
        for (i, (state, p)) in states.iter().enumerate() {
            match state {
                Some(State { tasks, level }) => write!(w, "{tasks},{level},")?,
                None => write!(w, "{i},")?,
            }
            writeln!(w, "{:e},{}", p.to_f64(), p.log10())?;
        }
        Ok(())
    })
}

/// A chain from a file.
fn chain(
    file: &Path,
    check: impl FnOnce(Csr<f64>) -> Result<Generator, Error>,
    args: &QueueArgs,
    (global, cancel): (&Global, &CancelToken),
    targets: Targets,
) -> Result<Reply> {
    let line = Line::spinner(!global.quiet, format!("reading {}", file.display()));
    let AnyMatrix::Real(q) = load::matrix(file, cancel)? else {
        return Err(Failure::io(file, &"rates are real numbers: the file is complex"));
    };
    let q = check(q).map_err(|e| failure(&e, Some(file)))?;
    let levels = match &args.blocks {
        None => None,
        Some(BlocksArg::Uniform(k)) => Some(Partition::uniform(q.n(), *k)),
        Some(BlocksArg::File(sizes)) => Some(Partition::from_sizes(load::block_sizes(sizes, Some(q.n()))?)),
    };
    let levels = levels.transpose().map_err(|e| Failure::usage(e.to_string()))?;
    let mut watch = Watch::new(cancel.clone(), line, args.stop().rtol);
    let (pi, seconds) = stationary(&q, levels.as_ref(), args, &mut watch, Some(file))?;
    drop(watch);
    let of = |p: &Partition| {
        let sums = (0..p.n_blocks()).map(|j| p.range(j).map(|i| pi.probability(i).to_f64()).sum());
        Distribution::new(0, sums.collect())
    };
    let levels = levels.as_ref().map(of);

    let name = file.display().to_string();
    let table = targets.is_table();
    targets.write(
        |output| {
            let states: Vec<_> = pi.probabilities().iter().map(|&p| (None, p)).collect();
            write_pi(output, table, &format!("stationary distribution of {name}"), &states)
        },
        || {
            if let Some(levels) = &levels {
                return picture(&name, &format!("mean level {:.2}", levels.mean()), "level (from 0)", levels);
            }
            let points = pi.probabilities().iter().enumerate().map(|(i, p)| (i as f64, p.log10())).collect();
            let series = [Series { name: "log₁₀ π".into(), points }];
            let labels = ["state (from 0)", "log₁₀ of the probability"];
            plot::curves(&name, &format!("{} states", q.n()), labels, &series)
        },
    )?;

    let mode = pi.mode();
    let mut json = json!({ "schema": 1, "file": name });
    if let Value::Object(object) = &mut json {
        object.extend(facts(&q, &pi, seconds));
        object.insert("method_requested".into(), args.method.name().into());
        object.insert("mode".into(), json!({ "state": mode, "probability": pi.probability(mode).to_f64() }));
        object.insert("levels".into(), levels.as_ref().map_or(Value::Null, distribution));
    }
    let mut page = Page::new(format!("{name}: {} states, {} recurrent", q.n(), pi.recurrent()));
    page.line("most probable", format_args!("state {mode} (from 0): {:.6}", pi.probability(mode).to_f64()));
    if let Some(levels) = &levels {
        page.line("levels (from 0)", in_words(levels));
    }
    accuracy(&mut page, &pi, seconds);
    let (exit, warnings) = verdict(&pi, args);
    Ok(Reply { exit, json, text: page.finish(), warnings })
}

/// A plan for each value of one parameter.
fn swept(
    p: Parameters,
    over: &SweepArg,
    args: &QueueArgs,
    unit: TimeUnit,
    (global, cancel): (&Global, &CancelToken),
    targets: Targets,
) -> Result<Reply> {
    let started = Instant::now();
    let line = Line::spinner(!global.quiet, format!("{} plans", over.values.len()));
    let mut watch = Watch::new(cancel.clone(), line, 1.0);
    let plans = sweep(&over.values, &mut watch, |value| over.apply(p, value).model()).map_err(|e| failure(&e, None))?;
    drop(watch);
    let seconds = started.elapsed().as_secs_f64();
    let costs = args.costs();
    let rows = || over.values.iter().zip(&plans);

    let table = |w: &mut dyn Write| -> io::Result<()> {
        write!(w, "{},in_advance,mean_on,on_95,utilisation,waiting,loss,time_in_system,switches", over.name)?;
        writeln!(w, "{}", if costs.is_some() { ",cost_per_hour,cheapest_in_advance" } else { "" })?;
        for (value, c) in rows() {
            let level = &c.marginals.level;
            write!(w, "{value},{},{},{}", c.in_advance(), level.mean(), level.quantile(0.95))?;
            let switches = c.turn_on_rate + c.turn_off_rate;
            write!(w, ",{},{},{},{},{switches}", c.utilisation, c.waiting, c.loss, c.time)?;
            if let Some(costs) = &costs {
                write!(w, ",{},{}", c.cost_per_hour(costs, unit), c.cheapest_in_advance(costs).0)?;
            }
            writeln!(w)?;
        }
        Ok(())
    };
    let title = format!("resources to have on, by {}", over.name);
    targets.write(
        |output| output.write(table),
        || {
            let curve = |name: &str, y: &dyn Fn(&Capacity) -> f64| Series {
                name: name.into(),
                points: rows().map(|(&x, c)| (x, y(c))).collect(),
            };
            let series = [
                curve("most probable need", &|c| c.in_advance() as f64),
                curve("mean", &|c| c.marginals.level.mean()),
                curve("95 % quantile", &|c| c.marginals.level.quantile(0.95) as f64),
            ];
            plot::curves(&title, &p.as_options(), [&over.name, "resources"], &series)
        },
    )?;

    let json_rows: Vec<Value> = rows()
        .map(|(&value, c)| {
            let mut row = plan(c, costs.as_ref(), unit);
            row[&over.name] = value.into();
            row
        })
        .collect();
    let json = json!({
        "schema": 1, "model": model_as_json(&p, unit), "sweep": over.name, "plans": json_rows,
        "seconds": { "total": seconds },
    });
    let mut page = Page::new(format!("{title}: {}", p.as_options()));
    page.line(
        &over.name,
        format_args!(
            "{:>10} {:>10} {:>10} {:>12} {:>12} {:>12}",
            "in advance", "mean on", "95 % on", "waiting", "lost", "cost/hour"
        ),
    );
    for (value, c) in rows() {
        let level = &c.marginals.level;
        let cost = costs.as_ref().map_or("–".into(), |costs| format!("{:.4}", c.cost_per_hour(costs, unit)));
        let (in_advance, quantile) = (c.in_advance(), level.quantile(0.95));
        page.line(
            &format!("{}", (value * 1e9).round() / 1e9),
            format_args!(
                "{in_advance:>10} {:>10.2} {quantile:>10} {:>12.3e} {:>12.3e} {cost:>12}",
                level.mean(),
                c.waiting,
                c.loss
            ),
        );
    }
    page.line("time", format_args!("{seconds:.3} s"));
    let warnings = args.unread_options().iter().map(|option| format!("{option} is not read here")).collect();
    Ok(Reply { exit: Exit::Done, json, text: page.finish(), warnings })
}
