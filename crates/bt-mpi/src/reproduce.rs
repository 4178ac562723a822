//! `reproduce parms`: the experiments of pARMS that are for as many ranks as there are, kept in one file for `blocktri reproduce --ranks`.
//!
//! The file is written anew after each of them, so that an interrupted run goes on where it was, and runs on other numbers of ranks add to it.
//! Machines may differ: each result names its processor. A file of another version or scale, or of anything else, is left as it is.

use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use bt_parallel::{Comm, Fault, Result, agree};
use bt_reproduce::{PROCESSOR, RankExperiment, RanksFileError, Results, Scale, processor, rank_experiments};
use serde_json::json;

use crate::args::ReproduceArgs;
use crate::report::{Reply, plural};
use crate::signals;

/// Runs the command.
///
/// # Errors
/// Those of the ranks, agreed on.
pub fn run(comm: &impl Comm, args: &ReproduceArgs) -> Result<Reply> {
    let started = Instant::now();
    // A rank is a core: seconds on several are compared with those on one.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build_global();
    agree(comm, pool.map_err(|e| Fault::input(format!("cannot start threads: {e}"))))?;
    let scale = if args.quick { Scale::Quick } else { Scale::Full };
    let all = rank_experiments(scale);
    let wanted = agree(comm, wanted(&all, comm.size(), &args.only))?;
    // One rank has the file.
    let first = comm.rank() == 0;
    let found = if first { kept(&args.output, scale) } else { Ok(Results::default()) };
    let mut results = agree(comm, found.map_err(Fault::input))?;
    let mut missing: Vec<u32> =
        (0..).zip(&wanted).filter(|(_, e)| first && !results.contains(&e.id())).map(|(place, _)| place).collect();
    comm.broadcast(0, &mut missing)?;
    for (done, &place) in missing.iter().enumerate() {
        let experiment = wanted[place as usize];
        if first && !args.answer.quiet {
            let told = format!("{} of {}: {}\n", done + 1, missing.len(), experiment.what());
            // Who does not listen needs no progress.
            let _ = io::stderr().lock().write_all(told.as_bytes());
        }
        let mut facts = experiment.run(comm, &signals::cancel())?;
        facts.insert("transport".into(), "mpi".into());
        facts.insert(PROCESSOR.into(), processor().into());
        results.insert(&experiment.id(), facts);
        let written = if first { results.to_ranks_file(&args.output, scale) } else { Ok(()) };
        agree(comm, written.map_err(Fault::from))?;
    }
    let seconds = started.elapsed().as_secs_f64();
    let (ran, kept) = (missing.len(), results.len());
    Ok(Reply {
        code: 0,
        json: json!({
            "schema": 1,
            "file": args.output.display().to_string(),
            "ranks": comm.size(),
            "ran": ran,
            "kept": kept,
            "seconds": seconds,
        }),
        text: format!(
            "{}: {} on {} in {seconds:.1} s, {kept} kept\n  to see them: blocktri reproduce parms{} --ranks {}\n",
            args.output.display(),
            plural(ran, "experiment"),
            plural(comm.size(), "rank"),
            if args.quick { " --quick" } else { "" },
            args.output.display()
        ),
        warnings: Vec::new(),
    })
}

/// The experiments for so many ranks that have one of the texts in their name.
fn wanted<'e>(
    all: &'e [RankExperiment],
    ranks: usize,
    only: &[String],
) -> std::result::Result<Vec<&'e RankExperiment>, Fault> {
    let mut counts: Vec<usize> = all.iter().map(RankExperiment::ranks).collect();
    counts.sort_unstable();
    counts.dedup();
    if !counts.contains(&ranks) {
        let counts = counts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        return Err(Fault::input(format!("the experiments are for {counts} ranks, not for {ranks}")));
    }
    let selected = |e: &&RankExperiment| only.is_empty() || only.iter().any(|text| e.id().contains(text));
    let found: Vec<_> = all.iter().filter(|e| e.ranks() == ranks).filter(selected).collect();
    if found.is_empty() {
        return Err(Fault::input(format!("no experiment for {ranks} ranks has '{}' in its name", only.join("' or '"))));
    }
    Ok(found)
}

/// Results of an earlier run in the same setting; none where there is no file.
fn kept(path: &Path, scale: Scale) -> std::result::Result<Results, String> {
    match Results::from_ranks_file(path, scale) {
        Ok(results) => Ok(results),
        Err(RanksFileError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(Results::default()),
        Err(why) => Err(format!("{why}; name another file, or remove it")),
    }
}
