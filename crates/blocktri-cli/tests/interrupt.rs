//! Ctrl-C: the program ends within a second, nothing is written.

#![cfg(unix)]

mod common;

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Run, Sandbox};

/// Far more than the grace time, far less than the work.
const SOON: Duration = Duration::from_secs(5);

fn start(sandbox: &Sandbox, line: &str) -> Child {
    sandbox.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Sends SIGINT and waits.
fn interrupt(mut child: Child) -> Run {
    assert!(child.try_wait().unwrap().is_none(), "the work was over before the signal");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let sent = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if sent.elapsed() > SOON {
            child.kill().unwrap();
            panic!("still running {SOON:?} after the signal");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    Run { code: child.wait().unwrap().code().unwrap_or(-1), stdout, stderr }
}

fn wait_for_temporary_file(sandbox: &Sandbox) {
    let started = Instant::now();
    while !sandbox.names().iter().any(|name| name.starts_with(".blocktri-")) {
        assert!(started.elapsed() < SOON, "no output was prepared: {:?}", sandbox.names());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_iteration_stops() {
    let sandbox = Sandbox::new();
    // Point Jacobi: the spectral radius is 1 − 10⁻⁸, some 10⁹ iterations.
    sandbox.run("generate tridiagonal --n 20000 -o A.mtx").expect(0);
    let line =
        "solve A.mtx --method hbisa --blocks 1 --rtol 1e-12 --max-iters 1000000000 -o x.mtx --history r.csv --json";
    let child = start(&sandbox, line);
    wait_for_temporary_file(&sandbox);
    std::thread::sleep(Duration::from_millis(300));
    let run = interrupt(child).expect(130);
    assert_eq!(run.json()["exit_code"], 130);
    assert!(run.stderr.contains("interrupted"), "{}", run.stderr);
    assert_eq!(sandbox.names(), ["A.mtx"]);
}

#[test]
fn work_that_does_not_listen_is_left() {
    let sandbox = Sandbox::new();
    assert!(Command::new("mkfifo").arg(sandbox.path("A.mtx")).status().unwrap().success());
    // Nobody ever writes into the pipe: the reader waits for ever.
    let child = start(&sandbox, "solve A.mtx -o x.mtx");
    wait_for_temporary_file(&sandbox);
    std::thread::sleep(Duration::from_millis(100));
    let run = interrupt(child).expect(130);
    assert_eq!(run.stdout, "");
    assert_eq!(sandbox.names(), ["A.mtx"]);
}
