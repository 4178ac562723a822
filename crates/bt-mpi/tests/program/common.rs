//! What the tests share: mpirun with a limit of time, what it leaves, small files.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// No run takes longer.
pub const LIMIT: Duration = Duration::from_secs(120);
pub const RANKS: [usize; 5] = [1, 2, 3, 4, 6];

/// `mpirun -n RANKS blocktri-mpi ARGS`, of `solve` unless the first says another command.
pub fn command(ranks: usize, args: &[&str]) -> Command {
    let named = args.first().is_some_and(|first| ["stationary", "reproduce"].contains(first));
    let mut command = Command::new("mpirun");
    command
        .args(["--allow-run-as-root", "--oversubscribe", "-n", &ranks.to_string()])
        .arg(env!("CARGO_BIN_EXE_blocktri-mpi"))
        .args((!named).then_some("solve"))
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    command
}

/// The same, started.
pub fn start(ranks: usize, args: &[&str]) -> Child {
    command(ranks, args).spawn().expect("mpirun starts")
}

/// Its end, or a panic after the limit.
pub fn end(mut child: Child) -> Output {
    let started = Instant::now();
    let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let out = std::thread::spawn(move || std::io::read_to_string(out).unwrap_or_default());
    let err = std::thread::spawn(move || std::io::read_to_string(err).unwrap_or_default());
    while started.elapsed() < LIMIT {
        if let Some(status) = child.try_wait().unwrap() {
            let (stdout, stderr) = (out.join().unwrap().into_bytes(), err.join().unwrap().into_bytes());
            return Output { status, stdout, stderr };
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // mpirun ends its ranks.
    signal(child.id(), "TERM");
    std::thread::sleep(Duration::from_secs(5));
    child.kill().unwrap();
    panic!("mpirun did not end within {} s", LIMIT.as_secs());
}

pub fn run(ranks: usize, args: &[&str]) -> Output {
    end(start(ranks, args))
}

pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or(0))
}

/// The JSON object of a run that ends with this code.
pub fn json(ranks: usize, expected: i32, args: &[&str]) -> Value {
    let output = run(ranks, &[args, &["--json"]].concat());
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(code(&output), expected, "{ranks} ranks, {args:?}: {out}\n{err}");
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}\n{err}"))
}

/// The one message of a run that fails with this code.
pub fn error(ranks: usize, expected: i32, args: &[&str]) -> String {
    let output = run(ranks, args);
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(code(&output), expected, "{ranks} ranks, {args:?}: {err}");
    let told: Vec<&str> = err.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(told.len(), 1, "{ranks} ranks, {args:?}: {err}");
    told[0].to_owned()
}

pub fn write(folder: &TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

pub fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

/// Entries as a file.
pub fn matrix(n: usize, entries: &[(usize, usize, f64)]) -> String {
    let mut text = format!("%%MatrixMarket matrix coordinate real general\n{n} {n} {}\n", entries.len());
    for (i, j, v) in entries {
        let _ = writeln!(text, "{} {} {v}", i + 1, j + 1);
    }
    text
}

/// Seven points on a grid of k³ points, with wind along the fastest index.
pub fn grid(k: usize, wind: f64) -> String {
    let mut entries = Vec::new();
    for i in 0..k * k * k {
        let place = [i % k, i / k % k, i / k / k];
        entries.push((i, i, 6.0));
        for (d, step) in [1, k, k * k].into_iter().enumerate() {
            let w = if d == 0 { wind } else { 0.0 };
            if place[d] > 0 {
                entries.push((i, i - step, -1.0 - w));
            }
            if place[d] + 1 < k {
                entries.push((i, i + step, -1.0 + w));
            }
        }
    }
    matrix(k * k * k, &entries)
}

/// A dominant band.
pub fn band(n: usize, k: usize) -> String {
    let near = |i: usize| i.saturating_sub(k)..(i + k + 1).min(n);
    let value = |i: usize, j: usize| if i == j { 3.0 * k as f64 } else { -1.0 + ((i + 2 * j) % 3) as f64 / 3.0 };
    matrix(n, &(0..n).flat_map(|i| near(i).map(move |j| (i, j, value(i, j)))).collect::<Vec<_>>())
}

pub fn names(folder: &TempDir) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap().success());
}
