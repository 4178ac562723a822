//! `blocktri queue`: stationary distributions, what they say about capacity, and sweeps of plans.
//!
//! | file | case |
//! |---|---|
//! | `given.rs` | a chain from a file, and where it starts |
//! | `times.rs` | its distributions at the times asked for; probabilities by level |
//! | `plans.rs` | the plans of a sweep, made by the processor or on a GPU |
//! | `report.rs` | what reports say, for scripts and for people |
//! | `words.rs` | numbers for people |

use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use blocktri::faer::MatRef;
use blocktri::{CancelToken, Outcome, Partition};
use bt_queue::{
    Capacity, CloudModel, Distribution, Error, Generator, Marginals, Order, Scaled, State, Stationary, TimeUnit,
    mean_first_passage, transient,
};
use serde_json::{Value, json};

use crate::args::{BlocksArg, Global, MethodArg, Parameters, QueueArgs, StartArg, SweepArg};
use crate::exit::{Exit, Failure, Reply, Result};
use crate::load;
use crate::output::{self, Format, Output};
use crate::plot::{self, Axis, Chart, Picture, Scale, Series, Shape};
use crate::progress::{Line, Watch};
use crate::report::{Page, plural};
use given::Kind;
use plans::Plans;
use report::{accuracy, distribution, facts, finite, in_words, model_as_json, plan, size_in_words, verdict, written};
use times::{Times, by_level};
use words::{elapsed, given_time, number, share, time};

mod given;
mod plans;
mod report;
mod times;
mod words;

/// Runs the command.
///
/// # Errors
/// On parameters and files that make no chain, on several closed classes, and on unwritable outputs.
pub fn run(args: &QueueArgs, global: &Global, cancel: &CancelToken) -> Result<Reply> {
    let blocks = match &args.blocks {
        Some(BlocksArg::File(file)) => Some(file.as_path()),
        _ => None,
    };
    let start = match &args.start {
        Some(StartArg::File(file)) => Some(file.as_path()),
        _ => None,
    };
    let inputs = [
        ("--generator", args.generator.as_deref()),
        ("--transitions", args.transitions.as_deref()),
        ("--blocks", blocks),
        ("--start", start),
    ];
    output::check_names(global, &inputs, &[("--output", args.output.as_deref()), ("--plot", args.plot.as_deref())])?;
    let formats = if args.sweep.is_some() { &TABLES[..] } else { &DISTRIBUTIONS[..] };
    args.output.as_deref().map(|name| Format::of(name, formats)).transpose()?;
    let output = args.output.as_deref().map(Output::create).transpose()?;
    let picture = args.plot.as_deref().map(Picture::create).transpose()?;
    let targets = Targets { output, picture };
    let unit = args.time_unit.into();
    match (&args.generator, &args.transitions, &args.sweep) {
        (None, None, Some(over)) => swept(model(args)?, over, args, unit, (global, cancel), targets),
        (None, None, None) => cloud(model(args)?, args, unit, (global, cancel), targets),
        (Some(file), ..) => chain(file, Kind::Generator, args, (global, cancel), targets),
        (None, Some(file), _) => chain(file, Kind::Transitions, args, (global, cancel), targets),
    }
}

/// The model asked for; what is not given may have been meant as a chain.
fn model(args: &QueueArgs) -> Result<Parameters> {
    let model = args.model.parameters(args.sweep.as_ref());
    model.map_err(|e| e.help("--resources M --threshold K --lambda RATE, or --generator Q.mtx, or --transitions P.mtx"))
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
        Error::NegativeRate { from, to, .. } | Error::NegativeProbability { from, to, .. } => {
            Failure::usage(message).detail("row", *from).detail("column", *to)
        }
        Error::RowSum { row, sum, .. } | Error::ProbabilitySum { row, sum, .. } => {
            Failure::usage(message).detail("row", *row).detail("sum", finite(*sum))
        }
        Error::EmptyRow { row, .. } | Error::RatesOverflow { state: row } => {
            Failure::usage(message).detail("row", *row)
        }
        _ => Failure::usage(message),
    };
    match error.help() {
        Some(help) => failure.help(help),
        None => failure,
    }
}

const DISTRIBUTIONS: [Format; 3] = [Format::MatrixMarket, Format::Csv, Format::Json];
const TABLES: [Format; 2] = [Format::Csv, Format::Json];

/// Files to write.
struct Targets {
    output: Option<Output>,
    picture: Option<Picture>,
}

impl Targets {
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

/// The probabilities as bars.
fn picture(title: &str, subtitle: &str, what: &str, d: &Distribution) -> String {
    let states: Vec<_> = d.iter().map(|(k, p)| (k, p.log10())).collect();
    plot::probabilities(title, subtitle, what, &states)
}

fn cloud(
    p: Parameters,
    args: &QueueArgs,
    unit: TimeUnit,
    (global, cancel): (&Global, &CancelToken),
    targets: Targets,
) -> Result<Reply> {
    let order = args.method.order();
    let line = Line::spinner(!global.quiet, size_in_words(&p));
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
    let title = format!("cloud model, {}, {}", size_in_words(&p), p.form_name());

    let comment = format!("stationary distribution by level: blocktri queue {}", p.as_options());
    targets.write(
        |output| write_pi(output, &comment, &in_level_order(&model, order, &pi)),
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
    let mut json = json!({ "schema": 1, "model": model_as_json(&p, None, unit) });
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
    let mut page = Page::new(format!("{title}: {}", plural(q.n(), "state")));
    let State { tasks, level } = mode;
    let rates = p.rates;
    page.line(
        "rates",
        format_args!(
            "arrivals λ = {}, service μ = {}, turning on η = {} and off ν = {} per {}",
            rates.arrival,
            rates.service,
            rates.turn_on,
            rates.turn_off,
            unit.name()
        ),
    );
    page.line(
        "most probable",
        format_args!(
            "{}, {} on: {}",
            plural(tasks, "task"),
            plural(level, "resource"),
            number(pi.probability(pi.mode()).to_f64())
        ),
    );
    page.line("tasks", in_words(&marginals.tasks));
    page.line("resources on", in_words(&marginals.level));
    page.line(
        "turn on in advance",
        format_args!("{} (the most probable tasks over {}, rounded up)", capacity.in_advance(), p.threshold),
    );
    page.line(
        "waiting, lost",
        format_args!(
            "{} of the tasks admitted wait, {} of all are lost",
            share(capacity.waiting, capacity.waiting.log10()),
            share(capacity.loss, capacity.log10_loss())
        ),
    );
    page.line("utilisation", format_args!("{} %", number(100.0 * capacity.utilisation)));
    page.line("time in system", time(Scaled::new(capacity.time), unit));
    page.line(
        "switches",
        format_args!(
            "{} on and {} off per {}",
            number(capacity.turn_on_rate),
            number(capacity.turn_off_rate),
            unit.name()
        ),
    );
    match first_wait {
        Some(t) => page.line("first wait", format_args!("{} from empty, on average", time(t, unit))),
        None => page.line("first wait", "perhaps never"),
    }
    if let Some(costs) = &costs {
        let (cheapest, cost) = capacity.cheapest_in_advance(costs);
        page.line("cost per hour", number(capacity.cost_per_hour(costs, unit)));
        page.line(
            "cheapest fixed",
            format_args!("{} in advance, {} per hour with these tasks", plural(cheapest, "resource"), number(cost)),
        );
    }
    for (t, m) in &at_times {
        page.line(
            &format!("at {}", given_time(*t, unit)),
            format_args!("tasks {}, resources on {}", number(m.tasks.mean()), number(m.level.mean())),
        );
    }
    written(&mut page, args, "π by level", "π by tasks");
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

/// States with their probabilities, by level.
fn in_level_order(model: &CloudModel, order: Order, pi: &Stationary) -> Vec<(Option<State>, Scaled)> {
    let space = model.space();
    let probability = |state| space.index(state, order).map_or(Scaled::ZERO, |i| pi.probability(i));
    space.states(Order::LevelMajor).map(|state| (Some(state), probability(state))).collect()
}

/// π as an array, or as a table with logarithms.
fn write_pi(output: &mut Output, comment: &str, states: &[(Option<State>, Scaled)]) -> Result<()> {
    match Format::of(output.name(), &DISTRIBUTIONS)? {
        Format::MatrixMarket => {
            let x: Vec<f64> = states.iter().map(|s| s.1.to_f64()).collect();
            load::write_dense(output, MatRef::from_column_major_slice(&x, x.len(), 1), &[comment.to_owned()])
        }
        Format::Csv => output.write(|w| {
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
        }),
        Format::Json => output.write(|w| {
            write!(w, "{{\"schema\":1,\"states\":[")?;
            for (i, (state, p)) in states.iter().enumerate() {
                let comma = if i > 0 { "," } else { "" };
                let (probability, log10) = (p.to_f64(), finite(p.log10()));
                let row = match state {
                    Some(State { tasks, level }) => {
                        json!({ "tasks": tasks, "level": level, "probability": probability, "log10": log10 })
                    }
                    None => json!({ "state": i, "probability": probability, "log10": log10 }),
                };
                write!(w, "{comma}\n{row}")?;
            }
            writeln!(w, "\n]}}")
        }),
    }
}

/// A chain from a file.
fn chain(
    file: &Path,
    kind: Kind,
    args: &QueueArgs,
    (global, cancel): (&Global, &CancelToken),
    targets: Targets,
) -> Result<Reply> {
    let line = Line::spinner(!global.quiet, format!("reading {}", file.display()));
    let (q, note) = given::chain(file, kind, args, cancel)?;
    drop(line);
    let levels = match &args.blocks {
        None => None,
        Some(BlocksArg::Uniform(k)) => Some(Partition::uniform(q.n(), *k)),
        Some(BlocksArg::File(sizes)) => Some(Partition::from_sizes(load::block_sizes(sizes, Some(q.n()))?)),
    };
    let levels = levels.transpose().map_err(|e| Failure::usage(e.to_string()))?;
    let line = Line::spinner(!global.quiet, format!("{}: {}", args.method.name(), plural(q.n(), "state")));
    let mut watch = Watch::new(cancel.clone(), line, args.stop().rtol);
    let times = Times::new(&q, levels.as_ref(), args, &mut watch, cancel)?;
    let (pi, seconds) = match stationary(&q, levels.as_ref(), args, &mut watch, Some(file)) {
        Err(failure) if failure.exit == Exit::Singular && !times.is_empty() => return Ok(only(&times, args, failure)),
        result => result?,
    };
    drop(watch);
    let levels = levels.as_ref().map(|levels| by_level(levels, |i| pi.probability(i).to_f64()));

    let name = file.display().to_string();
    let title = format!("π of {}", file.file_name().unwrap_or(file.as_os_str()).to_string_lossy());
    targets.write(
        |output| {
            let states: Vec<_> = pi.probabilities().iter().map(|&p| (None, p)).collect();
            write_pi(output, &format!("stationary distribution of {name}"), &states)
        },
        || {
            if let Some(levels) = &levels {
                return picture(&title, &format!("mean level {:.2}", levels.mean()), "level (from 0)", levels);
            }
            let states: Vec<_> = pi.probabilities().iter().map(|p| p.log10()).enumerate().collect();
            plot::probabilities(&title, &format!("{} states", q.n()), "state (from 0)", &states)
        },
    )?;

    let mode = pi.mode();
    let mut json = json!({ "schema": 1, "file": name });
    if let Value::Object(object) = &mut json {
        object.extend(facts(&q, &pi, seconds));
        if let (Some(note), Some(Value::Array(notes))) = (&note, object.get_mut("notes")) {
            notes.insert(0, note.clone().into());
        }
        object.insert("method_requested".into(), args.method.name().into());
        object.insert("mode".into(), json!({ "state": mode, "probability": pi.probability(mode).to_f64() }));
        object.insert("levels".into(), levels.as_ref().map_or(Value::Null, distribution));
        object.insert("times".into(), times.to_json());
    }
    let recurrent = if pi.recurrent() == q.n() { "all".into() } else { pi.recurrent().to_string() };
    let mut page = Page::new(format!("{name}: {}, {recurrent} recurrent", plural(q.n(), "state")));
    page.line("most probable", format_args!("state {mode} (from 0): {}", number(pi.probability(mode).to_f64())));
    if let Some(levels) = &levels {
        page.line("levels (from 0)", in_words(levels));
    }
    times.lines(&mut page, args.time_unit.into());
    if let Some(note) = &note {
        page.line("note", note);
    }
    written(&mut page, args, "π in the order of the file", if levels.is_some() { "π by level" } else { "π" });
    accuracy(&mut page, &pi, seconds);
    let (exit, warnings) = verdict(&pi, args);
    Ok(Reply { exit, json, text: page.finish(), warnings })
}

/// The times of a chain that has no stationary distribution to give; π is not written.
fn only(times: &Times, args: &QueueArgs, failure: Failure) -> Reply {
    let mut json = failure.to_json();
    json["times"] = times.to_json();
    let mut page = Page::new("the chain at the times asked for".into());
    times.lines(&mut page, args.time_unit.into());
    let help = failure.help.map_or(String::new(), |help| format!("; {help}"));
    Reply { exit: failure.exit, json, text: page.finish(), warnings: vec![format!("{}{help}", failure.message)] }
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
    let line = Line::spinner(!global.quiet, plural(over.values.len(), "plan"));
    let mut watch = Watch::new(cancel.clone(), line, 1.0);
    let made = Plans::new(p, over, args, &mut watch)?;
    drop(watch);
    let seconds = started.elapsed().as_secs_f64();
    let costs = args.costs();
    let rows = || over.values.iter().zip(&made.capacities);

    let json_rows: Vec<Value> = rows()
        .map(|(&value, c)| {
            let mut row = plan(c, costs.as_ref(), unit);
            row[&over.name] = value.into();
            row
        })
        .collect();
    let notes = [&made.notes[..], &made.warnings].concat();
    let json = json!({
        "schema": 1, "model": model_as_json(&p, Some(over), unit), "sweep": over.name, "plans": json_rows,
        "device": made.device.to_string(), "notes": notes,
        "seconds": { "total": seconds },
    });
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
        |output| match Format::of(output.name(), &TABLES)? {
            Format::Json => output.write(|w| writeln!(w, "{json}")),
            _ => output.write(table),
        },
        || {
            let curve = |k: usize, name: &str, y: &dyn Fn(&Capacity) -> f64| Series {
                name: name.into(),
                shape: Shape::line(k),
                points: rows().map(|(&x, c)| (x, y(c))).collect(),
            };
            let series = vec![
                curve(0, "to turn on in advance", &|c| c.in_advance() as f64),
                curve(1, "mean on", &|c| c.marginals.level.mean()),
                curve(2, "95 % quantile", &|c| c.marginals.level.quantile(0.95) as f64),
            ];
            let scale = if over.values.iter().all(|v| v.fract() == 0.0) { Scale::Whole } else { Scale::Linear };
            plot::chart(&Chart {
                title: title.clone(),
                subtitle: p.as_options_of(Some(over)),
                x: Axis::new(over.quantity(unit), scale),
                y: Axis::new("resources", Scale::FromZero),
                series,
            })
        },
    )?;

    let mut page = Page::new(format!("{title}: {}", p.as_options_of(Some(over))));
    page.line(
        &over.name,
        format_args!(
            "{:>10} {:>10} {:>10} {:>12} {:>12} {:>12}",
            "in advance", "mean on", "95 % on", "waiting", "lost", "cost/hour"
        ),
    );
    for (value, c) in rows() {
        let level = &c.marginals.level;
        let cost = costs.as_ref().map_or("–".into(), |costs| number(c.cost_per_hour(costs, unit)));
        let (in_advance, quantile) = (c.in_advance(), level.quantile(0.95));
        page.line(
            &format!("{}", (value * 1e9).round() / 1e9),
            format_args!(
                "{in_advance:>10} {:>10.2} {quantile:>10} {:>12} {:>12} {cost:>12}",
                level.mean(),
                share(c.waiting, c.waiting.log10()),
                share(c.loss, c.log10_loss())
            ),
        );
    }
    page.line("time", elapsed(seconds));
    for note in &made.notes {
        page.line("note", note);
    }
    written(&mut page, args, "the table of plans", "resources by the plans");
    let mut warnings: Vec<String> =
        args.unread_options().iter().map(|option| format!("{option} is not read here")).collect();
    warnings.extend(made.warnings);
    Ok(Reply { exit: Exit::Done, json, text: page.finish(), warnings })
}
