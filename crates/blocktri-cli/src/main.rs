//! The `blocktri` command: arguments, files, reports and pictures around the library. No numerics here.
//!
//! The work runs on a thread of its own while the main thread waits for its end or for a signal, so that Ctrl-C ends
//! the program within a second even inside a long factorization. stdout has one writer, `print`.

mod args;
mod exit;
mod explain;
mod generate;
mod info;
mod load;
mod machine;
mod manual;
mod needs;
mod output;
mod plot;
mod progress;
mod queue;
mod report;
mod reproduce;
mod signals;
mod solve;

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use crate::args::{Cli, Command, Global};
use crate::exit::{Exit, Failure, Reply, Result};
use blocktri::CancelToken;
use bt_formats::{HugePages, buffers, memory};
use bt_simd::Isa;
use clap::CommandFactory;

/// How long a cancelled solve may take to return before the program ends without it.
const GRACE: Duration = Duration::from_millis(500);
/// Deep recursions of the libraries below get the room they would have on a main thread.
const STACK: usize = 16 << 20;

/// The last panic: message and place.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// What the waiting main thread can hear.
enum Event {
    Signal,
    Finished(Ending),
}

/// How the work ended.
enum Ending {
    Reply(Reply),
    Failure(Failure),
    Panic,
}

#[global_allocator]
static MEMORY: HugePages = HugePages;

fn main() -> ExitCode {
    HugePages::share_one_heap();
    // Libraries below may catch their own panics, so the hook only remembers; whoever ends the program reports.
    std::panic::set_hook(Box::new(|info| {
        *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = Some(info.to_string().replace('\n', " "));
    }));
    match catch_unwind(run) {
        Ok(exit) => exit.into(),
        Err(_) => fail(&internal_error(), json_wanted()).into(),
    }
}

fn run() -> Exit {
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let global = cli.global.clone();
    match work(cli) {
        Ok(reply) => answer(&reply, &global),
        Err(failure) => fail(&failure, global.json),
    }
}

/// Runs the command on a thread of its own and waits for its end or a signal.
fn work(cli: Cli) -> Result<Reply> {
    let Cli { global, command } = cli;
    // A wrong name is said, not passed over.
    Isa::requested().map_err(|e| Failure::usage(format!("{}: {e}", bt_simd::VARIABLE)))?;
    if let Some(limit) = global.memory {
        memory::set_limit(limit);
    }
    check_room()?;
    let mut pool = rayon::ThreadPoolBuilder::new();
    if let Some(threads) = global.threads.or_else(buffers::threads_with_room) {
        pool = pool.num_threads(threads);
    }
    pool.build_global().map_err(|e| without_thread(&e))?;

    // For work that does not end in time.
    let interrupted = match &command {
        Command::Reproduce(_) => Failure::interrupted_run("finished experiments are kept in results.json"),
        _ => Failure::interrupted(),
    };
    let cancel = CancelToken::new();
    let (sender, events) = mpsc::channel();
    let told = sender.clone();
    signals::listen(move || drop(told.send(Event::Signal))).map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => without_thread(&e),
        _ => Failure::usage(format!("cannot handle signals: {e}")),
    })?;
    let token = cancel.clone();
    std::thread::Builder::new()
        .name("blocktri".into())
        .stack_size(STACK)
        .spawn(move || {
            buffers::take();
            // The other threads have taken theirs.
            let work = || check_room().and_then(|()| dispatch(command, &global, &token));
            let ending = match catch_unwind(AssertUnwindSafe(work)) {
                Ok(Ok(reply)) => Ending::Reply(reply),
                Ok(Err(failure)) => Ending::Failure(failure),
                Err(_) => Ending::Panic,
            };
            drop(sender.send(Event::Finished(ending)));
        })
        .map_err(|e| without_thread(&e))?;

    let first = events.recv().unwrap_or(Event::Finished(Ending::Panic));
    let ending = match first {
        Event::Finished(ending) => ending,
        Event::Signal => {
            cancel.cancel();
            match events.recv_timeout(GRACE) {
                Ok(Event::Finished(ending)) => ending,
                Ok(Event::Signal) | Err(_) => Ending::Failure(interrupted),
            }
        }
    };
    // Whatever is still unfinished will never be finished.
    output::remove_temporary_files();
    match ending {
        Ending::Reply(reply) => Ok(reply),
        Ending::Failure(failure) => Err(failure),
        Ending::Panic => Err(internal_error()),
    }
}

/// A thread that cannot start is told of; one that starts and finds no room for what it keeps ends the program.
fn check_room() -> Result<()> {
    match memory::address_space() {
        Some(left) if left < 2 * STACK as u64 => Err(without_thread(&"there is no room for its stack")),
        _ => Ok(()),
    }
}

/// A thread that could not be started: under a limit of memory most often for want of it.
fn without_thread(error: &dyn std::fmt::Display) -> Failure {
    let failure = Failure::usage(format!("cannot start a thread: {error}"));
    match memory::address_space() {
        Some(left) => failure.help(format!(
            "each takes address space, of which the limits (ulimit -v, -d) leave {}: raise them, or take fewer --threads",
            memory::in_words(left)
        )),
        None => failure,
    }
}

fn dispatch(command: Command, global: &Global, cancel: &CancelToken) -> Result<Reply> {
    match command {
        Command::Solve(args) => solve::run(&args, global, cancel),
        Command::Info(args) => info::run(&args, global, cancel),
        Command::Explain(args) => explain::run(&args, global, cancel),
        Command::Calibrate(args) => machine::run(&args, global, cancel),
        Command::Queue(args) => queue::run(&args, global, cancel),
        Command::Generate(args) => generate::run(&args, global),
        Command::Reproduce(args) => reproduce::run(&args, global, cancel),
        Command::Completions { shell } => Ok(manual::completions(shell)),
        Command::Man { dir } => manual::man(dir.as_deref()),
    }
}

/// Prints a reply and returns its code.
fn answer(reply: &Reply, global: &Global) -> Exit {
    for warning in &reply.warnings {
        complain(&format!("warning: {warning}\n"));
    }
    let printed = if global.json {
        print(&format!("{}\n", reply.json))
    } else if global.quiet {
        Ok(())
    } else if output::stdout_is_taken() {
        complain(&reply.text);
        Ok(())
    } else {
        print(&reply.text)
    };
    match printed {
        // A reader that closed the pipe has seen enough.
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            complain(&format!("error: standard output: {e}\n"));
            Exit::Usage
        }
        _ => reply.exit,
    }
}

/// Reports a failure and returns its code.
fn fail(failure: &Failure, json: bool) -> Exit {
    complain(&failure.to_text());
    if json {
        // The code says it all to a reader that has gone.
        let _ = print(&format!("{}\n", failure.to_json()));
    }
    failure.exit
}

/// A command line that cannot be understood, or one that asks for help.
fn refuse(error: &clap::Error) -> Exit {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    if !error.use_stderr() {
        return match error.print() {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Exit::Usage,
            _ => Exit::Done,
        };
    }
    let mut message = error.to_string();
    if error.kind() == ErrorKind::InvalidSubcommand
        && !matches!(error.get(ContextKind::ValidSubcommand), Some(ContextValue::Strings(all)) if all.len() > 1)
    {
        let wanted = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
        let command = Cli::command();
        let (what, parent) = match command.find_subcommand("generate") {
            Some(generate) if wanted.contains("generate") => ("kinds", generate),
            _ => ("commands", &command),
        };
        let names = parent.get_subcommands().map(clap::Command::get_name).collect::<Vec<_>>().join(", ");
        message = format!("{message}\n{what}: {names}\n");
    }
    if json_wanted() {
        let first = message.lines().take_while(|line| !line.is_empty()).map(str::trim).collect::<Vec<_>>().join(" ");
        let failure = Failure::usage(first.trim_start_matches("error: "));
        let _ = print(&format!("{}\n", failure.to_json()));
    }
    complain(&message);
    Exit::Usage
}

/// Whether `--json` was given, for command lines that did not parse.
fn json_wanted() -> bool {
    std::env::args_os().take_while(|arg| arg != "--").any(|arg| arg == "--json")
}

fn internal_error() -> Failure {
    let panic = PANIC.lock().unwrap_or_else(PoisonError::into_inner).take();
    let what = panic.unwrap_or_else(|| "the work ended without a result".into());
    if is_lack_of_memory(&what) {
        return Failure::usage(format!("not enough memory: more was needed than was estimated ({what})"))
            .help("take a method that needs less, a smaller problem, fewer --threads, or more memory");
    }
    Failure::new(Exit::Bug, format!("internal error: {what}"))
        .help(format!("this is a bug, please report it with the input at {}/issues", env!("CARGO_PKG_REPOSITORY")))
}

/// Whether a panic of a library below says that memory, or a thread with its stack, could not be had.
fn is_lack_of_memory(panic: &str) -> bool {
    const WORDS: [&str; 5] =
        ["Cannot allocate memory", "memory alloc", "OutOfMemory", "AllocError", "Resource temporarily unavailable"];
    WORDS.iter().any(|word| panic.contains(word))
}

/// The only writer of stdout, save for clap's own help.
fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// To stderr; nobody is left to tell when that fails.
fn complain(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
