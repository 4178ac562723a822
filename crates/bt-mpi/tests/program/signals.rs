//! A rank that is killed, and signals.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{LIMIT, band, code, end, grid, names, path, signal, start, write};

/// A solve that takes long, as steepest descent does, with an output; mpirun and the file.
fn long_solve(folder: &TempDir, ranks: usize) -> (Child, PathBuf) {
    let a = write(folder, "a.mtx", &grid(24, 0.0));
    let x = path(folder, "x.mtx");
    fs::write(&x, "old").unwrap();
    let options =
        ["--method", "gmres", "--precond", "none", "--rtol", "0", "--max-iters", "100000000", "--restart", "1"];
    let child = start(ranks, &[&[a.as_str(), "-o", &x], &options[..]].concat());
    // The temporary file is made before anything is read.
    let started = Instant::now();
    while names(folder).len() < 3 && started.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(1500));
    (child, PathBuf::from(x))
}

/// The ranks below mpirun.
fn ranks_of(mpirun: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)).and_then(|p| p.parse().ok());
        if parent == Some(mpirun) {
            found.push(pid);
        }
    }
    found
}

#[test]
fn a_rank_that_is_killed_ends_all() {
    let folder = tempfile::tempdir().unwrap();
    let (child, x) = long_solve(&folder, 3);
    let ranks = ranks_of(child.id());
    assert_eq!(ranks.len(), 3);
    signal(ranks[1], "KILL");
    let output = end(child);
    assert_ne!(code(&output), 0);
    assert_eq!(fs::read(&x).unwrap(), b"old");
    let left = || ranks.iter().any(|pid| Path::new(&format!("/proc/{pid}")).exists());
    let started = Instant::now();
    while left() && started.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!left(), "no rank is left");
}

#[test]
fn a_signal_ends_all_and_leaves_nothing() {
    for name in ["TERM", "INT"] {
        let folder = tempfile::tempdir().unwrap();
        let (child, x) = long_solve(&folder, 2);
        signal(child.id(), name);
        let output = end(child);
        assert_ne!(code(&output), 0, "{name}");
        assert_eq!(fs::read(&x).unwrap(), b"old");
        assert_eq!(names(&folder), ["a.mtx", "x.mtx"], "{name}");
    }
    // One that a scheduler sends to a rank.
    let folder = tempfile::tempdir().unwrap();
    let (child, _) = long_solve(&folder, 2);
    signal(ranks_of(child.id())[1], "TERM");
    let output = end(child);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(code(&output), 130, "{err}");
    assert!(err.contains("error: interrupted; nothing was written"), "{err}");
    assert_eq!(names(&folder), ["a.mtx", "x.mtx"]);
}

/// SPIKE hears no request to stop: its ranks end without having agreed, rank 0 with a sentence.
#[test]
fn a_signal_that_nobody_hears_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let a = write(&folder, "a.mtx", &band(60, 2));
    let x = path(&folder, "x.mtx");
    let child = start(2, &[&a, "-o", &x, "--method", "spike", "--refine", "1000000000", "--json"]);
    let started = Instant::now();
    while names(&folder).len() < 2 && started.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(1500));
    // As a scheduler does it: all ranks at a time.
    for rank in ranks_of(child.id()) {
        signal(rank, "TERM");
    }
    let output = end(child);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(code(&output), 130, "{err}");
    assert_eq!(err.matches("error: interrupted; nothing was written").count(), 1, "{err}");
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&told["error"], &told["exit_code"]), (&"interrupted; nothing was written".into(), &130.into()));
    assert_eq!(names(&folder), ["a.mtx"]);
}
