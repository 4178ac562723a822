//! `--model`: what an iteration would take on more ranks than there are, from exact counts. Each rank has its rows; no rank solves.

use std::fmt::Write as _;

use bt_formats::c64;
use bt_formats::matrix_market::Head;
use bt_parallel::{
    Comm, Counts, DistributedCsr, Fault, Machine, Method, Number, Result, RowRanges, Traffic, agree, is_complex,
    read_head_on_all,
};
use serde_json::{Value, json};

use crate::args::{Method as Name, SolveArgs, name_of};
use crate::report::{Reply, peak_memory, spread};
use crate::unread::unread;
use crate::watch::Watch;

/// Ranks at most.
const MOST: usize = 4096;

/// The table. A collective.
///
/// # Errors
/// For a method that the model does not know, and for a matrix that cannot be read.
pub fn run(comm: &impl Comm, args: &SolveArgs, machine: &Machine) -> Result<Reply> {
    let method = match args.method {
        Name::Cg => Ok(Method::Cg),
        Name::Bicgstab => Ok(Method::BiCgStab),
        Name::Gmres => Ok(Method::Gmres { restart: args.restart }),
        Name::Fgmres => Ok(Method::Fgmres { restart: args.restart }),
        other => Err(Fault::input(format!("--model knows cg, bicgstab, gmres and fgmres, not {}", name_of(other)))),
    };
    let method = agree(comm, method)?;
    let head = read_head_on_all(comm, &args.matrix)?;
    let (rows, mut notes) = if is_complex(&head) {
        table::<c64, _>(comm, args, &head, method, machine)?
    } else {
        table::<f64, _>(comm, args, &head, method, machine)?
    };
    let warnings = unread(args);
    notes.extend(warnings.iter().cloned());
    let mut text = format!(
        "{}: an iteration of {} without a preconditioner, counted; α = {:.1e} s, β = {:.1e} B/s, f = {:.1e} flop/s\n",
        args.matrix.display(),
        name_of(args.method),
        machine.latency,
        machine.bandwidth,
        machine.flop_rate
    );
    text.push_str(
        "  ranks    rows, most   entries, most      flops  messages      bytes  collectives  their bytes     seconds  against one rank\n",
    );
    let first = rows.first().map_or(0.0, |row| row.seconds);
    for row in &rows {
        let _ = writeln!(
            text,
            "{:>7} {:>13} {:>15} {:>10.3e} {:>9} {:>10} {:>12} {:>12} {:>11.3e} {:>10.1} times",
            row.ranks,
            row.rows,
            row.entries,
            row.flops,
            row.messages,
            row.bytes,
            row.collectives,
            row.collective_bytes,
            row.seconds,
            first / row.seconds
        );
    }
    for note in &notes {
        let _ = writeln!(text, "note: {note}");
    }
    let rows: Vec<Value> = rows.iter().map(Row::to_json).collect();
    let json = json!({
        "schema": 1,
        "file": args.matrix.display().to_string(),
        "method": name_of(args.method),
        "machine": {"latency": machine.latency, "bandwidth": machine.bandwidth, "flops": machine.flop_rate},
        "model": rows,
        "peak_memory": spread(peak_memory(comm)?),
        "notes": notes,
    });
    Ok(Reply { code: 0, json, text, warnings })
}

/// The largest of all ranks.
struct Row {
    ranks: usize,
    rows: u64,
    entries: u64,
    flops: f64,
    messages: u64,
    bytes: u64,
    collectives: u64,
    collective_bytes: u64,
    seconds: f64,
}

impl Row {
    fn to_json(&self) -> Value {
        json!({
            "ranks": self.ranks,
            "rows": self.rows,
            "entries": self.entries,
            "flops": self.flops,
            "messages": self.messages,
            "bytes": self.bytes,
            "collectives": self.collectives,
            "collective_bytes": self.collective_bytes,
            "seconds": self.seconds,
        })
    }
}

/// A row for each number of ranks, and notes on the file.
fn table<T: Number, C: Comm>(
    comm: &C,
    args: &SolveArgs,
    head: &Head,
    method: Method,
    machine: &Machine,
) -> Result<(Vec<Row>, Vec<String>)> {
    let ranges = RowRanges::even(head.header.nrows, comm.size(), 1);
    let mut watch = Watch::new(0.0, comm.rank() == 0 && !args.answer.quiet);
    let (a, notes) = DistributedCsr::<T, C>::read(comm, &args.matrix, head, &ranges, &mut watch)?;
    let ranks = std::iter::successors(Some(1), |p| Some(2 * p)).take_while(|p| *p <= MOST);
    let row = |p: usize| {
        let counts = Counts::of_contiguous(&a, p)?;
        let work = counts.iteration(method, size_of::<T>());
        let most = |f: &dyn Fn(&Traffic) -> u64| work.iter().map(|w| f(&w.traffic)).max().unwrap_or(0);
        Ok(Row {
            ranks: p,
            rows: counts.rows.iter().copied().max().unwrap_or(0),
            entries: counts.entries.iter().copied().max().unwrap_or(0),
            flops: work.iter().map(|w| w.flops).fold(0.0, f64::max),
            messages: most(&|t| t.messages),
            bytes: most(&|t| t.bytes),
            collectives: most(&|t| t.collectives),
            collective_bytes: most(&|t| t.collective_bytes),
            seconds: counts.seconds(method, size_of::<T>(), machine),
        })
    };
    Ok((ranks.map(row).collect::<Result<_>>()?, notes))
}
