//! `blocktri-mpi`: `blocktri solve`, the chains of `blocktri queue` and experiments of `blocktri reproduce` over the ranks of
//! MPI. Arguments, signals, files and reports; no numerics.
//!
//! All ranks run the same lines, end with the same exit code, and rank 0 alone speaks. An error that one rank meets is agreed on
//! ([`bt_parallel::agree`]); one that it cannot tell the others ends them all by `MPI_Abort`, and so does a panic, which is a bug.

mod args;
mod device;
mod files;
mod model;
mod precond;
mod report;
mod reproduce;
mod signals;
mod solve;
mod stationary;
mod unread;
mod watch;

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration;

use bt_mpi::MpiComm;
use bt_parallel::{Comm, Error, FaultKind, agree};
use serde_json::{Value, json};

use crate::args::{Answer, Cli, Command};
use crate::report::Reply;

/// Exit codes, those of `blocktri`.
const USAGE: u8 = 2;
const NOT_CONVERGED: u8 = 3;
const SINGULAR: u8 = 4;
const NO_DEVICE: u8 = 5;
const BUG: u8 = 101;
const INTERRUPTED: u8 = 130;

/// How long a sentence takes.
const MOMENT: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    let comm = match MpiComm::start() {
        Ok(comm) => comm,
        Err(error) => {
            complain(&format!("error: {error}\n"));
            return USAGE.into();
        }
    };
    let first = comm.rank() == 0;
    let cli = match Cli::of_command_line() {
        Ok(cli) => cli,
        // The same on every rank.
        Err(error) => {
            if first {
                refuse(&error);
            }
            return if error.use_stderr() { USAGE.into() } else { ExitCode::SUCCESS };
        }
    };
    let command = cli.command;
    let done = catch_unwind(AssertUnwindSafe(|| {
        let (say, json) = (interrupted(&command), command.answer().json);
        let late = move || {
            if first {
                tell_error(say, None, json, json!({"rank": null, "exit_code": INTERRUPTED}));
            } else {
                // mpirun ends rank 0 when another has ended.
                std::thread::sleep(MOMENT);
            }
        };
        agree(&comm, signals::listen(late))?;
        match &command {
            Command::Solve(args) => solve::run(&comm, args),
            Command::Stationary(args) => stationary::run(&comm, args),
            Command::Reproduce(args) => reproduce::run(&comm, args),
        }
    }));
    match done {
        Ok(Ok(reply)) => {
            if first {
                answer(&reply, command.answer());
            }
            reply.code.into()
        }
        Ok(Err(error)) => fail(&comm, &error, &command),
        Err(_) => comm.abort(BUG),
    }
}

/// A command line that cannot be understood, or one that asks for help.
fn refuse(error: &clap::Error) {
    if error.use_stderr() && std::env::args_os().any(|arg| arg == "--json") {
        let text = error.to_string();
        let told = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect::<Vec<_>>().join(" ");
        let told = told.trim_start_matches("error: ");
        print(&format!("{}\n", json!({"schema": 1, "error": told, "help": null, "rank": null, "exit_code": USAGE})));
    }
    // Nobody is left to tell where that fails.
    let _ = error.print();
}

/// Prints a reply.
fn answer(reply: &Reply, Answer { json, quiet }: Answer) {
    for warning in &reply.warnings {
        complain(&format!("warning: {warning}\n"));
    }
    if json {
        print(&format!("{}\n", reply.json));
    } else if !quiet {
        print(&reply.text);
    }
}

/// Reports an error once and returns its code, or ends all ranks where the others do not know of it.
fn fail(comm: &MpiComm, error: &Error, command: &Command) -> ExitCode {
    signals::remove_temporary_file();
    let is_chain = matches!(command, Command::Stationary(_));
    let code = match error {
        Error::OnRank { kind: FaultKind::Input | FaultKind::Memory, .. } => USAGE,
        // Several closed classes are a proof. A part without a pivot proves nothing, but where the part is the whole.
        Error::OnRank { kind: FaultKind::Singular, .. } if is_chain || comm.size() == 1 => SINGULAR,
        Error::OnRank { kind: FaultKind::Singular | FaultKind::Breakdown, .. } => NOT_CONVERGED,
        Error::OnRank { kind: FaultKind::Device, .. } => NO_DEVICE,
        Error::OnRank { kind: FaultKind::Stopped, .. } => INTERRUPTED,
        _ => BUG,
    };
    let agreed = matches!(error, Error::OnRank { .. });
    if comm.rank() == 0 || !agreed {
        let (rank, known, help) = match error {
            Error::OnRank { rank, kind: FaultKind::Singular, .. } if is_chain => {
                (Some(*rank), None, Some(SEVERAL_CLASSES))
            }
            Error::OnRank { rank, kind, origin, .. } => (Some(*rank), origin.as_deref(), help(*kind, comm.size())),
            _ => (None, None, None),
        };
        let help = known.and_then(|known| known.help.as_deref()).or(help);
        let mut details = json!({"rank": rank, "exit_code": code});
        if let Some(file) = known.and_then(|known| known.file.as_deref()) {
            details["file"] = file.into();
        }
        if let Some(line) = known.and_then(|known| known.line) {
            details["line"] = line.into();
        }
        let json = command.answer().json;
        if code == INTERRUPTED {
            signals::tell_once(|| tell_error(interrupted(command), help, json, details));
        } else {
            tell_error(&error.to_string(), help, json, details);
        }
    }
    if agreed { code.into() } else { comm.abort(code) }
}

/// One error, for people and, where they asked for it, for programs.
fn tell_error(message: &str, help: Option<&str>, json: bool, mut details: Value) {
    complain(&format!("error: {message}\n"));
    if let Some(help) = help {
        complain(&format!("help: {help}\n"));
    }
    if json {
        details["schema"] = 1.into();
        details["error"] = message.into();
        details["help"] = help.into();
        print(&format!("{details}\n"));
    }
}

/// How a signal ends a command.
fn interrupted(command: &Command) -> &'static str {
    match command {
        Command::Reproduce(_) => "interrupted; the experiments that were done are kept",
        _ => "interrupted; nothing was written",
    }
}

const SEVERAL_CLASSES: &str = "where the chain ends depends on where it starts: restrict the generator to one class";

/// What to do about it.
fn help(kind: FaultKind, ranks: usize) -> Option<&'static str> {
    match kind {
        FaultKind::Singular if ranks > 1 => Some(
            "a part without a pivot does not make the matrix singular: take another number of ranks, or --local ilut",
        ),
        FaultKind::Singular => {
            Some("no unique solution exists: look for an equation or unknown that is missing or repeated")
        }
        FaultKind::Breakdown => Some("take another --local or --method, or another number of ranks"),
        FaultKind::Device => Some("take --device cpu, or fewer ranks for a GPU where its memory is short"),
        FaultKind::Memory => Some("take more ranks on more nodes, a method that needs less, or raise --memory"),
        _ => None,
    }
}

/// To stdout; a reader that has gone has seen enough.
fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// To stderr; nobody is left to tell when that fails.
fn complain(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
