//! `stationary`: read a chain, check it, eliminate, certify, write; every step by all ranks, on any communicator.

use std::fmt::Write as _;
use std::time::Instant;

use bt_formats::{Matrix, Outcome, memory};
use bt_parallel::{
    ChainEntries, Comm, DistributedCsr, Fault, Result, StationaryDistribution, Target, Timed, agree, is_complex,
    read_head_on_all,
};
use bt_queue::has_no_diagonal;

use crate::args::{Diagonal, StationaryArgs};
use crate::files::{Form, check_output, consecutive};
use crate::report::{self, ChainFacts, Reply, Seconds};
use crate::signals;
use crate::watch::Watch;

/// Runs the command.
///
/// # Errors
/// Those of the ranks, agreed on.
pub fn run(comm: &impl Comm, args: &StationaryArgs) -> Result<Reply> {
    let inputs = [("the chain", Some(args.chain.as_path()))];
    agree(comm, check_output(comm, args.output.as_deref(), &inputs).map_err(Fault::input))?;
    if let Some(limit) = args.memory {
        memory::set_limit(limit);
    }
    let target = args.output.as_deref().map(|path| Target::create(comm, path)).transpose()?;
    signals::set_temporary_file(target.as_ref().and_then(Target::temporary));
    let started = Instant::now();
    let head = read_head_on_all(comm, &args.chain)?;
    let complex = || Fault::input(format!("{}: rates are real numbers: the file is complex", args.chain.display()));
    agree(comm, if is_complex(&head) { Err(complex()) } else { Ok(()) })?;

    let comm = &Timed::new(comm);
    let mut watch = Watch::new(0.0, comm.rank() == 0 && !args.answer.quiet);
    let (a, mut notes) = consecutive::<f64, _>(comm, &args.chain, &head, &mut watch)?;
    let (n, nnz, matrix) = (a.rows().n(), a.nnz(), a.local().bytes() as f64);
    let (entries, note) = entries(args, missing(args.diagonal, &a)?);
    let read = started.elapsed().as_secs_f64();

    let meter = comm.meter();
    let solving = Instant::now();
    let q = entries.check(a)?;
    let pi = StationaryDistribution::new(&q)?;
    let solve = solving.elapsed().as_secs_f64();
    let costs = meter.stop(comm).over_ranks(comm)?;
    drop(watch);

    let mut slowest = [read, solve, started.elapsed().as_secs_f64()];
    comm.all_max(&mut slowest)?;
    let [read, solve, total] = slowest;
    let mut bytes = [matrix, pi.bytes() as f64];
    comm.all_sum(&mut bytes)?;
    notes.extend(note.map(str::to_owned));
    if pi.recurrent() < n as u64 {
        notes.push(format!("{} of {n} states are transient: their probability is zero", n as u64 - pi.recurrent()));
    }
    let facts = ChainFacts {
        file: &args.chain,
        n,
        nnz,
        pi: &pi,
        seconds: Seconds { read, solve, total, ..Seconds::default() },
        bytes: bytes.map(|b| b as u64),
        costs: &costs,
        peak: report::peak_memory(comm)?,
        notes,
        output: args.output.as_deref(),
    };
    if let Some(target) = target {
        if args.output.as_deref().and_then(Form::of) == Some(Form::Table) {
            // States are in the order of the ranks.
            let (states, own) = (q.rows().own(), pi.own());
            let finite = own.iter().position(|p| !p.to_f64().is_finite()).map_or(Ok(()), |i| {
                let (state, p) = (states[i], own[i].to_f64());
                Err(Fault::input(format!(
                    "the probability of state {state} (from 0) is {p}: only finite numbers are written"
                )))
            });
            agree(comm, finite)?;
            target.write_lines(comm, "state,probability,log10\n", own.len(), |i, text| {
                let _ = writeln!(text, "{},{:e},{}", states[i], own[i].to_f64(), own[i].log10());
            })?;
        } else {
            let comment = format!("stationary distribution of {}", args.chain.display());
            let own = pi.own().iter().map(|p| p.to_f64()).collect();
            target.write(comm, q.rows(), &[own], &comment)?;
        }
        signals::set_temporary_file(None);
    }
    let converged = pi.outcome() == Outcome::Converged;
    let warning = format!("gth ended as {}: the balance of a state is {:.1e}", pi.outcome().name(), pi.balance());
    Ok(Reply {
        code: if converged { 0 } else { crate::NOT_CONVERGED },
        json: facts.to_json(),
        text: facts.to_text(),
        warnings: if converged { Vec::new() } else { vec![warning] },
    })
}

/// Whether the entries are rates alone. A collective.
fn missing<C: Comm>(diagonal: Diagonal, a: &DistributedCsr<'_, f64, C>) -> Result<bool> {
    match diagonal {
        Diagonal::Given => Ok(false),
        Diagonal::Missing => Ok(true),
        Diagonal::Auto => {
            // One entry on one rank is enough.
            let mut found = [f64::from(u8::from(!has_no_diagonal(a.local())))];
            a.comm().all_max(&mut found)?;
            Ok(found == [0.0])
        }
    }
}

/// What the file holds, and a sentence where it is changed.
fn entries(args: &StationaryArgs, missing: bool) -> (ChainEntries, Option<&'static str>) {
    match (args.transitions, missing, args.normalize) {
        (true, _, true) => (ChainEntries::Weights, Some("--normalize: each row was divided by its sum")),
        (true, _, false) => (ChainEntries::Transitions, None),
        (false, true, _) => (ChainEntries::Rates, Some("the diagonal was made from the rates; none was read")),
        (false, false, true) => {
            (ChainEntries::RoundedGenerator, Some("--normalize: the diagonal was made from the rates"))
        }
        (false, false, false) => (ChainEntries::Generator, None),
    }
}
