//! Bad conditions: too little memory, pipes, files that inflate, signals, limits of the system, killed runs.

#![cfg(unix)]

mod common;

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Run, SMALL, SMALL_RHS, Sandbox, program};

const SOON: Duration = Duration::from_secs(20);

/// A command of the shell in the sandbox, in which `"$BT"` is the program.
fn shell(sandbox: &Sandbox, script: &str) -> Command {
    let mut command = Command::new("sh");
    command.current_dir(sandbox.path("")).env("BT", program()).args(["-c", script]);
    command
}

/// Runs a script under a limit of the shell; `None`, with a line, where the shell or the limit is not there.
fn limited(sandbox: &Sandbox, limit: &str, script: &str) -> Option<Run> {
    if !shell(sandbox, &format!("ulimit {limit}")).stderr(Stdio::null()).status().is_ok_and(|s| s.success()) {
        println!("skipped: no sh that knows ulimit {limit}");
        return None;
    }
    let output = shell(sandbox, &format!("ulimit {limit}; exec {script}")).output().expect("sh starts");
    assert_eq!(output.status.signal(), None, "{script} died: {}", String::from_utf8_lossy(&output.stderr));
    Some(output.into())
}

/// A solve that goes on for hours and writes x.mtx at its end.
fn endless(sandbox: &Sandbox) -> &'static str {
    sandbox.run("generate tridiagonal --n 20000 -o A.mtx").expect(0);
    "\"$BT\" solve A.mtx --method hbisa --blocks 1 --rtol 1e-12 --max-iters 1000000000 -o x.mtx"
}

fn start(sandbox: &Sandbox, script: &str) -> Child {
    let child = shell(sandbox, script).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    while temporary_files(sandbox) == 0 {
        assert!(started.elapsed() < SOON, "no output was prepared: {:?}", sandbox.names());
        std::thread::sleep(Duration::from_millis(10));
    }
    // It is created before signals matter less than a moment later.
    std::thread::sleep(Duration::from_millis(200));
    child
}

fn temporary_files(sandbox: &Sandbox) -> usize {
    sandbox.names().iter().filter(|name| name.starts_with(".blocktri-")).count()
}

fn send(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

/// The code of a child that is about to end, `None` if a signal killed it.
fn ended(mut child: Child) -> Option<i32> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if started.elapsed() > SOON {
            child.kill().unwrap();
            panic!("still running");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn too_little_memory_is_an_error() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson2d --nx 300 -o A.mtx").expect(0);
    // The basis of gmres alone takes more than the rest of 40 MB.
    let run = sandbox.run("solve A.mtx --method gmres --precond jacobi --memory 40M --json -o x.mtx").expect(2);
    assert!(run.stderr.contains("not enough memory: gmres with --precond jacobi needs about "), "{}", run.stderr);
    assert!(run.stderr.contains("help: ") && run.stderr.contains("--memory"), "{}", run.stderr);
    let json = run.json();
    assert!(json["needed_bytes"].as_u64() > json["available_bytes"].as_u64(), "{json}");
    let run = sandbox.run("generate poisson3d --nx 1000 --memory 100M -o B.mtx").expect(2);
    assert!(run.stderr.contains("memory") || run.stderr.contains("32-bit"), "{}", run.stderr);
    let run = sandbox.run("generate poisson2d --nx 3000 --memory 100M -o B.mtx").expect(2);
    assert!(run.stderr.contains("not enough memory: the matrix needs about "), "{}", run.stderr);
    // With enough of it the same goes through; two iterations do not converge.
    sandbox.run("solve A.mtx --method gmres --precond jacobi --max-iters 2 --memory 90% --quiet").expect(3);
    assert_eq!(sandbox.names(), ["A.mtx"]);
}

#[test]
fn a_limited_address_space_is_no_crash() {
    let sandbox = Sandbox::new();
    sandbox.run("generate tridiagonal --n 200000 -o A.mtx").expect(0);
    for precond in ["jacobi", "ilu0", "ilut"] {
        let script =
            format!("\"$BT\" solve A.mtx --method gmres --restart 500 --precond {precond} --threads 1 -o x.mtx");
        let Some(run) = limited(&sandbox, "-v 700000", &script) else { return };
        let run = run.expect(2);
        assert!(run.stderr.contains("not enough memory: gmres with --precond "), "{}", run.stderr);
    }
    assert_eq!(sandbox.names(), ["A.mtx"]);
}

#[test]
fn buffers_of_libraries_end_no_program() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson2d --nx 60 -o A.mtx").expect(0);
    for kilobytes in [120_000, 160_000, 220_000, 300_000, 420_000, 700_000] {
        // The first three go without a buffer; the others have nothing else to multiply with.
        let first = ["sparse-lu", "sparse-cholesky", "fgmres --precond arms"];
        let others = ["sparse-ldl", "block-cholesky", "block-rbt", "block-cyclic-reduction", "block-lu-across", "rbt"];
        for method in first.into_iter().chain(others) {
            let script = format!("\"$BT\" solve A.mtx --method {method} --quiet");
            let Some(run) = limited(&sandbox, &format!("-v {kilobytes}"), &script) else { return };
            assert!([0, 2].contains(&run.code), "-v {kilobytes}, {method}: {run:?}");
            let told = run.stderr.contains("memory") || run.stderr.contains("address space");
            assert!(run.code == 0 || told, "-v {kilobytes}, {method}: {run:?}");
            // What the standard library says where it ends the program.
            assert!(!run.stderr.contains("memory allocation of"), "-v {kilobytes}, {method}: {run:?}");
            let may_fail = kilobytes < 700_000 || others.contains(&method);
            assert!(run.code == 0 || may_fail, "-v {kilobytes}, {method}: {run:?}");
        }
    }
}

#[test]
fn pipes_are_read_once() {
    let sandbox = Sandbox::new();
    sandbox.write("A.mtx", SMALL);
    sandbox.write("b.mtx", SMALL_RHS);
    sandbox.write("q.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 4\n1 1 -1\n1 2 1\n2 1 2\n2 2 -2\n");
    sandbox.write("start.mtx", "%%MatrixMarket matrix array real general\n2 1\n0.25\n0.75\n");
    let start = "\"$BT\" queue --generator q.mtx --times 1 --quiet -o pi.mtx --start";
    for script in [&format!("cat start.mtx | {start} -"), &format!("mkfifo p && {{ cat start.mtx > p & {start} p; }}")]
    {
        let run = Run::from(shell(&sandbox, script).output().unwrap()).expect(0);
        assert_eq!(run.stderr, "", "{script}");
    }
    for script in [
        "mkfifo pipe && { cat b.mtx > pipe & \"$BT\" solve A.mtx -b pipe --quiet; }",
        "{ cat A.mtx > pipe & \"$BT\" solve pipe -b b.mtx --quiet; }",
        "cat b.mtx | \"$BT\" solve A.mtx -b /dev/stdin --quiet",
        "gzip -c A.mtx | \"$BT\" solve - -b b.mtx --quiet",
    ] {
        let run = Run::from(shell(&sandbox, script).output().unwrap()).expect(0);
        assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""), "{script}");
    }
}

#[test]
fn small_files_that_inflate_are_refused_at_once() {
    let sandbox = Sandbox::new();
    let pack = |name: &str, head: &str, line: &[u8], mebibytes: usize| {
        let file = std::fs::File::create(sandbox.path(name)).unwrap();
        let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::best());
        packed.write_all(head.as_bytes()).unwrap();
        let block = line.repeat((1 << 20) / line.len());
        (0..mebibytes).for_each(|_| packed.write_all(&block).unwrap());
        packed.finish().unwrap();
    };
    let banner = "%%MatrixMarket matrix coordinate real general\n";
    pack("long.mtx.gz", &format!("{banner}2 2 3\n"), b"1 1 1\n", 200);
    let run = sandbox.run("info long.mtx.gz --memory 200M").expect(2);
    assert!(run.stderr.contains("long.mtx.gz:6: data after the 3 entries declared"), "{}", run.stderr);
    let comment = [b"%".repeat(127), b"\n".to_vec()].concat();
    pack("comments.mtx.gz", banner, &comment, 80);
    let run = sandbox.run("info comments.mtx.gz --memory 200M").expect(2);
    assert!(run.stderr.contains("no size line within 64 MiB"), "{}", run.stderr);
    // More entries than there is memory for.
    pack("many.mtx.gz", &format!("{banner}2 2 4000000000\n"), b"1 1 1\n", 60);
    let run = sandbox.run("info many.mtx.gz --memory 150M").expect(2);
    assert!(run.stderr.contains("not enough memory: the matrix in the file"), "{}", run.stderr);
}

#[test]
fn signals_that_are_ignored_at_the_start_stay_ignored() {
    let sandbox = Sandbox::new();
    let work = endless(&sandbox);
    for (ignored, ending) in [("HUP", "-INT"), ("INT", "-TERM"), ("INT", "-HUP")] {
        let mut child = start(&sandbox, &format!("trap '' {ignored}; exec {work}"));
        send(&child, &format!("-{ignored}"));
        std::thread::sleep(Duration::from_millis(700));
        assert!(child.try_wait().unwrap().is_none(), "{ignored} ended it");
        send(&child, ending);
        assert_eq!(ended(child), Some(130), "{ending}");
        assert_eq!(sandbox.names(), ["A.mtx"], "{ending}");
    }
}

#[test]
fn every_signal_but_kill_leaves_nothing() {
    let sandbox = Sandbox::new();
    let work = endless(&sandbox);
    for signal in ["-HUP", "-TERM", "-QUIT", "-USR1", "-XCPU", "-ALRM"] {
        let child = start(&sandbox, &format!("exec {work}"));
        send(&child, signal);
        assert_eq!(ended(child), Some(130), "{signal}");
        assert_eq!(sandbox.names(), ["A.mtx"], "{signal}");
    }
}

#[test]
fn what_a_killed_run_leaves_the_next_removes() {
    let sandbox = Sandbox::new();
    let work = endless(&sandbox);
    let killed = start(&sandbox, &format!("exec {work}"));
    send(&killed, "-KILL");
    assert_eq!(ended(killed), None);
    assert_eq!(temporary_files(&sandbox), 1);
    let left = sandbox.names()[0].clone();
    let living = start(&sandbox, &format!("exec {work}"));
    let started = Instant::now();
    while temporary_files(&sandbox) != 1 || sandbox.names().contains(&left) {
        assert!(started.elapsed() < SOON, "{:?}", sandbox.names());
        std::thread::sleep(Duration::from_millis(10));
    }
    // What is being written is not left over.
    sandbox.run("generate tridiagonal --n 5 -o B.mtx").expect(0);
    assert_eq!(temporary_files(&sandbox), 1);
    send(&living, "-INT");
    assert_eq!(ended(living), Some(130));
    assert_eq!(sandbox.names(), ["A.mtx", "B.mtx"]);
}

#[test]
fn a_file_beyond_its_limit_is_an_error() {
    let sandbox = Sandbox::new();
    let Some(run) = limited(&sandbox, "-f 8", "\"$BT\" generate poisson2d --nx 60 -o x.mtx") else { return };
    let run = run.expect(2);
    assert!(run.stderr.contains("x.mtx: File too large"), "{}", run.stderr);
    assert_eq!(sandbox.names(), [""; 0]);
}
