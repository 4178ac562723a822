//! `cargo xtask mpi`: builds bt-mpi and runs its tests under mpirun with 1, 2, 3, 4 and 6 ranks, and its example with two, each run within a
//! limit of time.
//!
//! A machine without MPI or libclang says so in one line and goes on; nothing is installed there. In CI (`CI=true`), where the user is root, the packages
//! are asked for first.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cargo_metadata::Target;

use crate::process::{Context, Failure, Result, cargo, must_succeed, programs, root, show};
use crate::test::Tally;

/// What Debian calls an MPI and what its bindings are made with.
const PACKAGES: [&str; 4] = ["openmpi-bin", "libopenmpi-dev", "libclang-dev", "clang"];
const RANKS: [usize; 5] = [1, 2, 3, 4, 6];
/// A suite takes seconds.
const LIMIT: Duration = Duration::from_secs(300);
/// The program's tests start mpirun some dozens of times.
const LONG_LIMIT: Duration = Duration::from_secs(1200);
const FEATURES: [&str; 4] = ["--package", "bt-mpi", "--features", "mpi"];

/// Builds and runs all of it; counts into `counted` what ran.
///
/// # Errors
/// When something does not build, pass, or end in time.
pub fn run(counted: &mut Tally) -> Result<()> {
    if !is_there() {
        return Ok(());
    }
    must_succeed(&mut cargo(["clippy", "--all-targets"].into_iter().chain(FEATURES).chain(["--", "-D", "warnings"])))?;
    over_ranks(&FEATURES, counted)?;
    counting(&mut cargo(["test"].into_iter().chain(FEATURES)), LONG_LIMIT, counted)
}

/// The suite under mpirun, with all numbers of ranks, and the example with two, as a build of this selection makes them.
///
/// # Errors
/// As [`run`].
pub fn over_ranks(selection: &[&str], counted: &mut Tally) -> Result<()> {
    let made = programs(&mut cargo(["test", "--no-run"].into_iter().chain(selection.iter().copied())))?;
    let program = |name: &str, is_kind: fn(&Target) -> bool| {
        let found = made.iter().find(|(target, _)| target.name == name && is_kind(target));
        found.map(|found| &found.1).ok_or_else(|| Failure(format!("{name} is not among the programs built")))
    };
    let mut over = |ranks: usize, program: &Path, args: &[&str]| {
        let mut command = Command::new("mpirun");
        command.args(["--allow-run-as-root", "--oversubscribe", "-n"]).arg(ranks.to_string()).arg(program).args(args);
        counting(&mut command, LIMIT, counted)
    };
    let suite = program("suite", Target::is_test)?;
    for ranks in RANKS {
        over(ranks, suite, &[])?;
    }
    // It ends with an error where it does not converge.
    over(2, program("slabs", Target::is_example)?, &["12"])
}

/// Whether there is what bt-mpi needs; in CI it is asked for first. What is missing is told.
pub fn is_there() -> bool {
    if missing().is_some() && std::env::var_os("CI").is_some_and(|ci| ci == "true") {
        install();
    }
    let missing = missing();
    if let Some(what) = missing {
        println!("skipped: there is no {what} ({} on Debian)", PACKAGES.join(", "));
    }
    missing.is_none()
}

/// What is not there, if anything is not.
fn missing() -> Option<&'static str> {
    let starts = |program: &str| {
        let status = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    if !starts("mpirun") || !starts("mpicc") {
        return Some("MPI");
    }
    (!has_libclang()).then_some("libclang")
}

/// Where bindgen looks, but for what `llvm-config` may know.
fn has_libclang() -> bool {
    let named = std::env::var_os("LIBCLANG_PATH").map(PathBuf::from);
    let usual = ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];
    let llvm = (10..=30).rev().map(|version| PathBuf::from(format!("/usr/lib/llvm-{version}/lib")));
    named.into_iter().chain(usual.map(PathBuf::from)).chain(llvm).any(|folder| {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        entries.into_iter().any(|e| {
            let name = e.file_name().to_string_lossy().into_owned();
            name.starts_with("libclang.so") || name.starts_with("libclang-") && name.contains(".so")
        })
    })
}

/// Asks Debian's packages, as far as this user may; what is missing then is told by the caller.
fn install() {
    let steps: [&[&str]; 2] = [&["update", "--quiet"], &["install", "--yes", "--quiet"]];
    for (step, packages) in steps.into_iter().zip([&[][..], &PACKAGES]) {
        let mut command = Command::new("apt-get");
        command.args(step).args(packages).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
        println!("$ {}", show(&command));
        if !command.status().is_ok_and(|status| status.success()) {
            println!("{} did not succeed", show(&command));
            return;
        }
    }
}

/// Runs to the end or to the limit; its output is passed on, and libtest's results in it counted.
fn counting(command: &mut Command, limit: Duration, counted: &mut Tally) -> Result<()> {
    let shown = show(command);
    println!("$ {shown}");
    command.current_dir(root()).stdout(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let mut child = command.spawn().context(&shown)?;
    let output = child.stdout.take();
    let reader = std::thread::spawn(move || output.map_or(Ok(String::new()), std::io::read_to_string));
    let status = wait(&mut child, limit).context(&shown)?;
    let text = reader.join().ok().and_then(std::result::Result::ok).unwrap_or_default();
    print!("{text}");
    let mut own = Tally::default();
    for line in text.lines() {
        own.add_libtest(line);
    }
    let done = match status {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(Failure(format!("{shown}: {status}"))),
        None => Err(Failure(format!("{shown}: not done within {} s", limit.as_secs()))),
    };
    counted.passed += own.passed;
    counted.failed += own.failed.max(u64::from(done.is_err()));
    done
}

/// The end of a program, or none where it was ended here, with all that it had started.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<std::process::ExitStatus>> {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // mpirun passes the first on to its ranks.
    for (signal, patience) in [("TERM", 10), ("KILL", 1)] {
        let group = format!("-{}", child.id());
        Command::new("kill").args(["-s", signal, "--", &group]).status()?;
        std::thread::sleep(Duration::from_secs(patience));
    }
    child.wait()?;
    Ok(None)
}
