//! `--model`: what an iteration would take on more ranks than there are, from exact counts. Rank 0 reads the matrix; no rank solves.

use std::fmt::Write as _;

use bt_formats::{AnyMatrix, Csr, Scalar};
use bt_parallel::{Comm, Counts, Division, Fault, Machine, Method, Result, agree};
use serde_json::{Value, json};

use crate::args::{Method as Name, SolveArgs, name_of};
use crate::report::Reply;

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
    let told = if comm.rank() == 0 {
        bt_formats::matrix_market::read(&args.matrix).map_err(Fault::from).and_then(|a| match &a {
            AnyMatrix::Real(a) => table(a, method, machine),
            AnyMatrix::Complex(a) => table(a, method, machine),
        })
    } else {
        Ok(Vec::new())
    };
    let rows = agree(comm, told)?;
    let mut text = format!(
        "{}: an iteration of {} without a preconditioner, counted; α = {:.1e} s, β = {:.1e} B/s, f = {:.1e} flop/s\n",
        args.matrix.display(),
        name_of(args.method),
        machine.latency,
        machine.bandwidth,
        machine.flop_rate
    );
    text.push_str(
        "  ranks    rows, most   entries, most  messages      bytes  collectives     seconds  against one rank\n",
    );
    let first = rows.first().map_or(0.0, |row| row.seconds);
    for row in &rows {
        let _ = writeln!(
            text,
            "{:>7} {:>13} {:>15} {:>9} {:>10} {:>12} {:>11.3e} {:>10.1} times",
            row.ranks,
            row.rows,
            row.entries,
            row.messages,
            row.bytes,
            row.collectives,
            row.seconds,
            first / row.seconds
        );
    }
    let rows: Vec<Value> = rows.iter().map(Row::to_json).collect();
    let json = json!({
        "schema": 1,
        "file": args.matrix.display().to_string(),
        "method": name_of(args.method),
        "machine": {"latency": machine.latency, "bandwidth": machine.bandwidth, "flops": machine.flop_rate},
        "model": rows,
    });
    Ok(Reply { code: 0, json, text, warnings: Vec::new() })
}

/// The largest of all ranks.
struct Row {
    ranks: usize,
    rows: u64,
    entries: u64,
    messages: u64,
    bytes: u64,
    collectives: u64,
    seconds: f64,
}

impl Row {
    fn to_json(&self) -> Value {
        json!({
            "ranks": self.ranks,
            "rows": self.rows,
            "entries": self.entries,
            "messages": self.messages,
            "bytes": self.bytes,
            "collectives": self.collectives,
            "seconds": self.seconds,
        })
    }
}

fn table<T: Scalar>(a: &Csr<T>, method: Method, machine: &Machine) -> Result<Vec<Row>, Fault> {
    a.check_square()?;
    let n = bt_formats::LinearOperator::nrows(a);
    let ranks = std::iter::successors(Some(1), |p| Some(2 * p)).take_while(|p| *p <= MOST);
    let row = |p: usize| {
        let counts = Counts::new(a, &Division::contiguous(n, p));
        let work = counts.iteration(method, size_of::<T>());
        let most = |f: &dyn Fn(&bt_parallel::Traffic) -> u64| work.iter().map(|w| f(&w.traffic)).max().unwrap_or(0);
        Row {
            ranks: p,
            rows: counts.rows.iter().copied().max().unwrap_or(0),
            entries: counts.entries.iter().copied().max().unwrap_or(0),
            messages: most(&|t| t.messages),
            bytes: most(&|t| t.bytes),
            collectives: most(&|t| t.collectives),
            seconds: counts.seconds(method, size_of::<T>(), machine),
        }
    };
    Ok(ranks.map(row).collect())
}
