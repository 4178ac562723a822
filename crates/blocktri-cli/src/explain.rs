//! `blocktri explain`: the methods that `auto` weighs, with what each is predicted to take; also the table of `solve --explain`.

use std::fmt::Write;
use std::path::Path;

use blocktri::{
    AnyScalar, CancelToken, Candidate, Csr, DeviceChoice, Error, Explanation, Method, Reorder, SolveOptions,
};
use bt_formats::{FileMatrix, RhsInFile, System};
use serde_json::{Value, json};

use crate::args::{ExplainArgs, Global};
use crate::exit::{Exit, Failure, Reply, Result};
use crate::load;
use crate::machine;
use crate::output;
use crate::plot::{Axis, Chart, Picture, Scale, Series, Shape, chart};
use crate::progress::{Line, Watch};
use crate::report::{bytes, duration};

/// Runs the command.
///
/// # Errors
/// On unreadable input, a structurally singular matrix, and unwritable pictures.
pub fn run(args: &ExplainArgs, global: &Global, cancel: &CancelToken) -> Result<Reply> {
    let matrix = args.matrix.as_path();
    output::check_names(global, &[("the matrix", Some(matrix))], &[("--plot", args.plot.as_deref())])?;
    let picture = args.plot.as_deref().map(Picture::create).transpose()?;
    let mut notes = machine::load();
    let line = Line::spinner(!global.quiet, format!("reading {}", matrix.display()));
    let mut watch = Watch::new(cancel.clone(), line, 1.0);
    let System { matrix: a, notes: more, .. } = load::system(matrix, RhsInFile::Skip, &mut watch, cancel)?;
    drop(watch);
    notes.extend(more);
    let line = Line::spinner(!global.quiet, format!("analysing {}", matrix.display()));
    let Explanation { candidates, notes: found } = match &a {
        FileMatrix::Real(a) => weighed(a, args.device, matrix),
        FileMatrix::Complex(a) => weighed(a, args.device, matrix),
    }?;
    drop(line);
    notes.extend(found.iter().map(ToString::to_string));
    let file = matrix.display().to_string();
    if let Some(picture) = picture {
        picture.draw(&bars(&file, &candidates))?.finish()?;
    }
    let chosen = candidates.iter().find(|c| c.refused.is_none());
    let json = json!({
        "schema": 1, "file": file, "n": a.nrows(), "nnz": a.nnz(),
        "choice": chosen.map(|c| c.method.name()),
        "candidates": as_json(&candidates),
        "notes": notes,
    });
    let mut text = format!("{file}: n = {}, nnz = {}\n{}", a.nrows(), a.nnz(), table(&candidates));
    for note in &notes {
        let _ = writeln!(text, "  note: {note}");
    }
    let warnings =
        if chosen.is_some() { Vec::new() } else { vec!["no method fits memory; allow more with --memory".into()] };
    Ok(Reply { exit: Exit::Done, json, text, warnings })
}

fn weighed<T: AnyScalar>(a: &Csr<T>, device: DeviceChoice, file: &Path) -> Result<Explanation> {
    T::explain(a, &SolveOptions { device, ..SolveOptions::default() }).map_err(|e| match e {
        Error::Input(e) => Failure::input(&e, file),
        other => Failure::solve(&other, file, &Method::default()),
    })
}

/// One object a candidate, in the order of the choice.
pub fn as_json(candidates: &[Candidate]) -> Value {
    let one = |c: &Candidate| {
        json!({
            "method": c.method.name(),
            "precond": precond(c),
            "device": c.device.to_string(),
            "reorder": c.reorder.name(),
            "seconds": c.seconds,
            "seconds_after_order": c.seconds_after_order(),
            "bound": if c.method.is_iterative() { "at least" } else { "predicted" },
            "bytes": c.bytes,
            "flops": c.work.flops,
            "steps": c.work.steps,
            "kernel": c.work.kernel.name(),
            "structure": c.structure,
            "refused": c.refused,
        })
    };
    candidates.iter().map(one).collect()
}

fn precond(c: &Candidate) -> Option<&'static str> {
    match &c.method {
        Method::Krylov(krylov) => Some(krylov.precond.name()),
        _ => None,
    }
}

/// Columns of the table; what is longer is cut.
const WIDTH: usize = 100;

/// The candidates as a table, of at most 100 columns.
pub fn table(candidates: &[Candidate]) -> String {
    let mut text = format!("  {:<18} {:<6} {:>12} {:>11} {:>8}  why\n", "method", "order", "seconds", "bytes", "flops");
    for c in candidates {
        let name = match precond(c) {
            Some(precond) => format!("{} + {precond}", c.method),
            None => c.method.to_string(),
        };
        let least = if c.method.is_iterative() { "≥ " } else { "" };
        let why = c.refused.as_ref().map_or(c.structure.clone(), |why| format!("refused: {why}"));
        let seconds = format!("{least}{}", duration(c.seconds));
        let flops = format!("{:.1e}", c.work.flops.max(c.work.steps));
        let order = c.reorder.name();
        let size = bytes(usize::try_from(c.bytes).unwrap_or(usize::MAX));
        let line = format!("  {name:<18} {order:<6} {seconds:>12} {size:>11} {flops:>8}  {why}");
        let cut: String = line.chars().take(WIDTH).collect();
        let _ = writeln!(text, "{cut}");
    }
    let possible: Vec<f64> = candidates.iter().filter(|c| c.refused.is_none()).map(|c| c.seconds).collect();
    if !possible.is_sorted() {
        let _ = writeln!(text, "  (ranked without the time of their orders, which have been made to weigh them)");
    }
    text
}

/// What was predicted for the method that solved the system, beside what it took.
pub fn predicted_and_actual(
    candidates: &[Candidate],
    (method, device): (&str, DeviceChoice),
    seconds: f64,
    held: usize,
) -> Option<String> {
    let c = candidates.iter().find(|c| c.method.name() == method && c.device == device)?;
    let least = if c.method.is_iterative() { "at least " } else { "" };
    Some(format!(
        "{method}: {least}{} predicted, {} taken; {} predicted, {} held",
        duration(c.seconds),
        duration(seconds),
        bytes(usize::try_from(c.bytes).unwrap_or(usize::MAX)),
        bytes(held)
    ))
}

/// Bars of what can be solved with.
fn bars(file: &str, candidates: &[Candidate]) -> String {
    let name = |c: &Candidate| match precond(c) {
        Some(precond) if c.device == DeviceChoice::Cpu => format!("{} + {precond}", c.method),
        Some(precond) => format!("{} + {precond} ({})", c.method, c.device),
        None if c.reorder == Reorder::None => c.method.to_string(),
        None => format!("{} ({})", c.method, c.reorder),
    };
    let possible: Vec<_> = candidates.iter().filter(|c| c.refused.is_none()).collect();
    let file = Path::new(file);
    let points = possible.iter().enumerate().map(|(k, c)| (k as f64, c.seconds));
    let refused = candidates.len() - possible.len();
    chart(&Chart {
        title: file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned(),
        subtitle: format!("what auto weighs, iterations by a lower bound; {refused} refused"),
        x: Axis { names: possible.iter().map(|c| name(c)).collect(), ..Axis::new("method", Scale::Whole) },
        y: Axis::new("seconds predicted", Scale::Logarithmic),
        series: vec![Series { name: String::new(), shape: Shape::Bars, points: points.collect() }],
    })
}
