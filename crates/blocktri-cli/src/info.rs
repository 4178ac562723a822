//! `blocktri info`: what a matrix is, and how it would be solved.

use blocktri::{Analysis, AnyScalar, CancelToken, Csr, HybridSummary, Method, Partition, Scalar};
use bt_formats::detect::{Dominance, Places};
use bt_formats::{CouplingKind, DiagonalKind, FileMatrix, LinearOperator, Matrix, RhsInFile, System, memory};
use serde_json::{Map, Value, json};

use crate::args::{Global, InfoArgs};
use crate::exit::{Exit, Failure, Reply, Result};
use crate::explain;
use crate::load;
use crate::machine;
use crate::needs;
use crate::output;
use crate::plot::{self, Pattern, Picture};
use crate::progress::{Line, Watch};
use crate::report::{Page, bytes};

/// Runs the command.
///
/// # Errors
/// On unreadable input and unwritable pictures.
pub fn run(args: &InfoArgs, global: &Global, cancel: &CancelToken) -> Result<Reply> {
    let matrix = args.matrix.as_path();
    output::check_names(global, &[("the matrix", Some(matrix))], &[("--spy", args.spy.as_deref())])?;
    let picture = args.spy.as_deref().map(Picture::create).transpose()?;
    let line = Line::spinner(!global.quiet, format!("reading {}", args.matrix.display()));
    let mut watch = Watch::new(cancel.clone(), line, 1.0);
    let System { matrix, notes, .. } = load::system(matrix, RhsInFile::Skip, &mut watch, cancel)?;
    drop(watch);
    let mut notes = notes;
    notes.extend(machine::load());
    let line = Line::spinner(!global.quiet, format!("analysing {}", args.matrix.display()));
    let reply = match matrix {
        FileMatrix::Real(a) => describe(args, &a, picture, &notes),
        FileMatrix::Complex(a) => describe(args, &a, picture, &notes),
    };
    drop(line);
    reply
}

fn describe<T: AnyScalar>(args: &InfoArgs, a: &Csr<T>, picture: Option<Picture>, notes: &[String]) -> Result<Reply> {
    memory::ask(needs::of_analysis(a), "the analysis of the matrix").map_err(|e| Failure::input(&e, &args.matrix))?;
    // Only a square matrix with rows has a structure to speak of.
    let analysis = if a.nrows() == a.ncols() && a.nrows() > 0 {
        Some(T::analyze(a).map_err(|e| Failure::solve(&e, &args.matrix, &Method::default()))?)
    } else {
        None
    };
    if let Some(picture) = picture {
        draw(args, a, analysis.as_ref(), picture)?;
    }
    let file = args.matrix.display().to_string();
    let (nrows, ncols, nnz) = (a.nrows(), a.ncols(), a.nnz());
    let mut json = json!({
        "schema": 1, "file": file, "scalar": T::KIND.to_string(), "nrows": nrows, "ncols": ncols, "nnz": nnz,
        "notes": notes,
    });
    let mut page = Page::new(format!("{file}: {nrows} × {ncols}, {}, {}", entries(nnz), T::KIND));
    match &analysis {
        Some(analysis) => {
            if let Value::Object(object) = &mut json {
                object.insert("n".into(), nrows.into());
                object.extend(facts(analysis));
            }
            tell(analysis, &mut page);
        }
        None => page.line("note", "not a square matrix with rows: there is no system to solve"),
    }
    for note in notes {
        page.line("note", note);
    }
    Ok(Reply { exit: Exit::Done, json, text: page.finish(), warnings: Vec::new() })
}

fn entries(count: usize) -> String {
    if count == 1 { "1 entry".into() } else { format!("{count} entries") }
}

/// The names of the two kinds that hybrid storage would take.
fn hybrid(kinds: HybridSummary) -> (&'static str, &'static str) {
    let diagonal = match kinds.diagonal {
        DiagonalKind::Tridiagonal => "tridiagonal",
        DiagonalKind::Band => "band",
        DiagonalKind::Dense => "dense",
    };
    let couplings = match kinds.couplings {
        CouplingKind::Coo => "coo",
        CouplingKind::Csr => "csr",
        CouplingKind::Diagonals => "diagonals",
        CouplingKind::Dense => "dense",
    };
    (diagonal, couplings)
}

fn draw<T: Scalar>(args: &InfoArgs, a: &Csr<T>, analysis: Option<&Analysis>, picture: Picture) -> Result<()> {
    let title = args.matrix.file_name().unwrap_or(args.matrix.as_os_str()).to_string_lossy().into_owned();
    let structure = analysis.map(|analysis| {
        let (kl, ku) = (analysis.structure.kl, analysis.structure.ku);
        format!(", bandwidths {kl} below and {ku} above, {}", blocks_in_words(&analysis.structure.natural))
    });
    let subtitle = format!("{} × {}, {}{}", a.nrows(), a.ncols(), entries(a.nnz()), structure.unwrap_or_default());
    let blocks = analysis.map(|analysis| analysis.structure.natural.offsets());
    let pattern = Pattern { nrows: a.nrows(), ncols: a.ncols(), row_ptr: a.row_ptr(), col_idx: a.col_idx(), blocks };
    picture.draw(&plot::spy(&title, &subtitle, &pattern))?.finish()
}

/// More blocks than this are not listed one by one.
const MOST_LISTED: usize = 1000;

fn blocks_as_json(partition: &Partition) -> Value {
    let (min, max) = partition.min_max_size();
    let sizes = (partition.n_blocks() <= MOST_LISTED).then(|| partition.sizes().collect::<Vec<_>>());
    json!({ "count": partition.n_blocks(), "min": min, "max": max, "sizes": sizes })
}

fn places(places: &Places) -> Value {
    json!({ "count": places.count, "first": places.first })
}

fn dominance(d: &Dominance) -> Value {
    json!({ "kind": d.kind.to_string(), "fraction": d.fraction, "min_ratio": d.min_ratio, "worst": d.worst })
}

/// Counts beyond 64 bits (a dense matrix of 2³² rows) become floating-point numbers.
fn count(bytes: u128) -> Value {
    u64::try_from(bytes).map_or_else(|_| json!(bytes as f64), Value::from)
}

fn facts(analysis: &Analysis) -> Map<String, Value> {
    let s = &analysis.structure;
    let rcm = &analysis.rcm;
    let formats: Map<String, Value> =
        analysis.bytes.iter().map(|f| (f.format.to_owned(), f.bytes.map_or(Value::Null, count))).collect();
    let candidates = explain::as_json(&analysis.candidates);
    let value = json!({
        "nonzeros": s.nnz,
        "symmetry": s.symmetry.to_string(),
        "pattern_symmetry": s.pattern_symmetry,
        "definiteness": { "guess": s.definiteness.to_string(), "reason": s.definiteness_reason },
        "bandwidth": { "kl": s.kl, "ku": s.ku, "profile": s.profile },
        "bandwidth_rcm": { "kl": rcm.kl, "ku": rcm.ku },
        "dominance": { "rows": dominance(&s.row_dominance), "columns": dominance(&s.column_dominance) },
        "zero_diagonal": places(&s.zero_diagonal),
        "empty_rows": places(&s.empty_rows),
        "empty_columns": places(&s.empty_columns),
        "components": s.components,
        "corner": s.corner.to_string(),
        "blocks": blocks_as_json(&analysis.structure.natural),
        "blocks_finest": blocks_as_json(&s.finest),
        "blocks_rcm": { "count": rcm.blocks.count, "min": rcm.blocks.min, "max": rcm.blocks.max },
        "hybrid": analysis.hybrid.map(|kinds| {
            let (diagonal, couplings) = hybrid(kinds);
            json!({ "diagonal": diagonal, "couplings": couplings })
        }),
        "bytes": formats,
        "auto": {
            "method": analysis.candidates.first().map(|c| c.method.name()),
            "reorder": analysis.candidates.first().map(|c| c.reorder.name()),
            "reason": analysis.choice,
        },
        "candidates": candidates,
    });
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

fn tell(analysis: &Analysis, page: &mut Page) {
    let s = &analysis.structure;
    let rcm = &analysis.rcm;
    if s.nnz != s.stored {
        page.line("non-zeros", format_args!("{} ({} entries are stored zeros)", s.nnz, s.stored - s.nnz));
    }
    page.line("symmetry", format_args!("{}; pattern {:.1} % symmetric", s.symmetry, 100.0 * s.pattern_symmetry));
    page.line("definiteness", format_args!("{}: {}", s.definiteness, s.definiteness_reason));
    page.line("dominance", format_args!("rows: {}", dominance_in_words(&s.row_dominance)));
    page.line("", format_args!("columns: {}", dominance_in_words(&s.column_dominance)));
    for (name, what) in
        [("zero diagonal", s.zero_diagonal), ("empty rows", s.empty_rows), ("empty columns", s.empty_columns)]
    {
        if let Some(first) = what.first {
            page.line(name, format_args!("{}, the first is {first} (from 0)", what.count));
        }
    }
    page.line("components", s.components);
    page.line("bandwidths", format_args!("{} below and {} above the diagonal, profile {}", s.kl, s.ku, s.profile));
    page.line("  after RCM", format_args!("{} below and {} above", rcm.kl, rcm.ku));
    page.line("blocks", blocks_in_words(&analysis.structure.natural));
    page.line("  finest", blocks_in_words(&s.finest));
    let b = rcm.blocks;
    page.line("  after RCM", block_words(b.count, b.min, b.max));
    if let Some(kinds) = analysis.hybrid {
        let (diagonal, couplings) = hybrid(kinds);
        page.line("  hybrid storage", format_args!("{diagonal} diagonal blocks, {couplings} couplings"));
    }
    page.line("corners", s.corner);
    for (i, format) in analysis.bytes.iter().enumerate() {
        let name = if i == 0 { "bytes" } else { "" };
        let size = format.bytes.map_or("does not fit".into(), |b| bytes(usize::try_from(b).unwrap_or(usize::MAX)));
        page.line(name, format_args!("{:<30} {size:>12}", format.format));
    }
    page.line("auto", &analysis.choice);
    page.text(&explain::table(&analysis.candidates));
}

fn dominance_in_words(d: &Dominance) -> String {
    match d.worst {
        Some(worst) => format!(
            "{}, {:.1} % dominant, least ratio {:.3} at {worst} (from 0)",
            d.kind,
            100.0 * d.fraction,
            d.min_ratio
        ),
        None => d.kind.to_string(),
    }
}

fn blocks_in_words(partition: &Partition) -> String {
    let (min, max) = partition.min_max_size();
    block_words(partition.n_blocks(), min, max)
}

fn block_words(count: usize, min: usize, max: usize) -> String {
    match count {
        1 => format!("one block of {max}"),
        _ if min == max => format!("{count} blocks of {max}"),
        _ => format!("{count} blocks of {min} to {max}"),
    }
}
