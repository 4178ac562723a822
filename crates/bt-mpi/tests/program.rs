//! `blocktri-mpi` under mpirun: answers beside those of one rank or by hand, exit codes, faults, what is left on the disk, and memory.
//!
//! Every run has a limit of time: nobody hangs.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// No run takes longer.
const LIMIT: Duration = Duration::from_secs(120);
const RANKS: [usize; 5] = [1, 2, 3, 4, 6];

/// `mpirun -n RANKS blocktri-mpi ARGS`, of `solve` unless the first says another command.
fn command(ranks: usize, args: &[&str]) -> Command {
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
fn start(ranks: usize, args: &[&str]) -> Child {
    command(ranks, args).spawn().expect("mpirun starts")
}

/// Its end, or a panic after the limit.
fn end(mut child: Child) -> Output {
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

fn run(ranks: usize, args: &[&str]) -> Output {
    end(start(ranks, args))
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or(0))
}

/// The JSON object of a run that ends with this code.
fn json(ranks: usize, expected: i32, args: &[&str]) -> Value {
    let output = run(ranks, &[args, &["--json"]].concat());
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(code(&output), expected, "{ranks} ranks, {args:?}: {out}\n{err}");
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}\n{err}"))
}

/// The one message of a run that fails with this code.
fn error(ranks: usize, expected: i32, args: &[&str]) -> String {
    let output = run(ranks, args);
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(code(&output), expected, "{ranks} ranks, {args:?}: {err}");
    let told: Vec<&str> = err.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(told.len(), 1, "{ranks} ranks, {args:?}: {err}");
    told[0].to_owned()
}

fn write(folder: &TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

/// Entries as a file.
fn matrix(n: usize, entries: &[(usize, usize, f64)]) -> String {
    let mut text = format!("%%MatrixMarket matrix coordinate real general\n{n} {n} {}\n", entries.len());
    for (i, j, v) in entries {
        let _ = writeln!(text, "{} {} {v}", i + 1, j + 1);
    }
    text
}

/// Seven points on a grid of k³ points, with wind along the fastest index.
fn grid(k: usize, wind: f64) -> String {
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
fn band(n: usize, k: usize) -> String {
    let near = |i: usize| i.saturating_sub(k)..(i + k + 1).min(n);
    let value = |i: usize, j: usize| if i == j { 3.0 * k as f64 } else { -1.0 + ((i + 2 * j) % 3) as f64 / 3.0 };
    matrix(n, &(0..n).flat_map(|i| near(i).map(move |j| (i, j, value(i, j)))).collect::<Vec<_>>())
}

fn names(folder: &TempDir) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn every_method_solves_on_any_number_of_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let wind = write(&folder, "wind.mtx", &grid(8, 0.3));
    let poisson = write(&folder, "poisson.mtx", &grid(8, 0.0));
    let narrow = write(&folder, "band.mtx", &band(240, 4));
    let cases: [(&str, &[&str]); 14] = [
        (&poisson, &["--method", "cg", "--precond", "none"]),
        (&poisson, &["--method", "cg", "--precond", "schwarz", "--local", "ic0", "--overlap", "1"]),
        (&wind, &["--method", "bicgstab", "--precond", "block-jacobi", "--local", "ilu0"]),
        (&wind, &["--method", "gmres", "--precond", "ras", "--local", "iluk", "--levels", "1", "--overlap", "2"]),
        (&wind, &["--method", "fgmres", "--precond", "schur", "--local", "arms", "--partition", "dse"]),
        (&wind, &["--method", "fgmres", "--precond", "schur", "--local", "ilut"]),
        (&wind, &["--method", "gmres", "--local", "arms-rbt", "--restart", "50"]),
        (&wind, &["--method", "gmres", "--local", "direct", "--partition", "dse"]),
        (&narrow, &["--method", "spike"]),
        (&narrow, &["--method", "spike", "--blocks", "5"]),
        (&narrow, &["--method", "spike-truncated"]),
        (&narrow, &["--method", "hbisa", "--blocks", "9"]),
        (&narrow, &["--method", "hbisa-redblack", "--blocks", "9"]),
        (&narrow, &["--method", "hbisa-sor", "--blocks", "9", "--omega", "1.05"]),
    ];
    for (file, options) in cases {
        for ranks in RANKS {
            let found = json(ranks, 0, &[&[file], options].concat());
            let told = format!("{options:?} on {ranks}: {found}");
            assert_eq!(
                (found["outcome"].as_str(), found["ranks"].as_u64()),
                (Some("converged"), Some(ranks as u64)),
                "{told}"
            );
            assert!(found["relative_residual"].as_f64().unwrap() <= 1.1e-8, "{told}");
            assert!(found["forward_error"].as_f64().unwrap() <= 1e-5, "{told}");
            let (dse, quality) = (options.contains(&"dse"), &found["quality"]);
            assert_eq!(quality["row_balance"].as_f64().is_some_and(|most| (1.0..1.1).contains(&most)), dse, "{told}");
            assert_eq!(quality["cut"].as_u64().is_some_and(|cut| (cut > 0) == (ranks > 1)), dse, "{told}");
            let messages = found["per_rank"]["messages"]["most"].as_f64().unwrap();
            assert!((messages > 0.0) == (ranks > 1), "{told}");
        }
    }
}

/// Ranks with fewer rows than couplings reach have none: their blocks are joined to others.
#[test]
fn spike_joins_small_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = [4, 1, 4, 1, 4, 1];
    let block: Vec<usize> = sizes.iter().enumerate().flat_map(|(b, &size)| vec![b; size]).collect();
    let value = |i: usize, j: usize| if i == j { 12.0 } else { ((3 * i + 5 * j) % 7) as f64 / 7.0 - 0.4 };
    let near = |&(i, j): &(usize, usize)| block[i].abs_diff(block[j]) < 2;
    let entries = (0..15).flat_map(|i| (0..15).map(move |j| (i, j))).filter(near).map(|(i, j)| (i, j, value(i, j)));
    let a = write(&folder, "a.mtx", &matrix(15, &entries.collect::<Vec<_>>()));
    let blocks = write(&folder, "sizes.txt", &sizes.map(|size| size.to_string()).join("\n"));
    for ranks in RANKS {
        for options in [&[][..], &["--blocks", &blocks]] {
            let found = json(ranks, 0, &[&[a.as_str(), "--method", "spike"], options].concat());
            assert!(found["backward_error"].as_f64().unwrap() <= 1e-15, "{ranks} ranks, {options:?}: {found}");
        }
    }
}

/// The blocks are exact: as many as the parts of ranks, and the answer does not depend on who has which.
#[test]
fn local_solvers_by_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let a = write(&folder, "a.mtx", &grid(6, 0.3));
    let by_blocks = ["--method", "gmres", "--local", "blocks", "--blocks", "36", "--rtol", "1e-10"];
    let found = RANKS.map(|ranks| json(ranks, 0, &[&[a.as_str()], &by_blocks[..]].concat()));
    // Two blocks for six ranks.
    let few = json(6, 0, &[&a, "--method", "gmres", "--local", "blocks", "--blocks", "108", "--rtol", "1e-10"]);
    assert!(few["forward_error"].as_f64().unwrap() <= 1e-8, "{few}");
    for other in &found {
        assert_eq!((&other["local"], &other["blocks"]["count"]), (&"blocks".into(), &6.into()), "{other}");
        assert_eq!(other["iterations"], found[0]["iterations"], "{other}");
        assert!(other["forward_error"].as_f64().unwrap() <= 1e-8, "{other}");
    }
    for (bad, told) in [
        (&["--local", "blocks"][..], "--local blocks needs --blocks"),
        (&["--local", "blocks", "--blocks", "4", "--precond", "ras"], "it is for --precond block-jacobi"),
        (&["--local", "blocks", "--blocks", "4", "--partition", "dse"], "and --partition contiguous"),
    ] {
        assert!(error(2, 2, &[&[a.as_str()], bad].concat()).contains(told), "{told}");
    }
}

/// The stand-in driver, which cargo builds beside this program, with so many devices.
#[cfg(feature = "cuda")]
fn on_stand_in(devices: usize, ranks: usize, args: &[&str]) -> Command {
    let program = std::env::current_exe().unwrap();
    let name = format!("{}bt_ptx_emulator{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let mut command = command(ranks, args);
    command.env("BLOCKTRI_CUDA_DRIVER", program.with_file_name(name));
    command.env("BLOCKTRI_EMULATOR_DEVICES", devices.to_string());
    command
}

#[cfg(feature = "cuda")]
fn with_devices(devices: usize, ranks: usize, args: &[&str]) -> Output {
    end(on_stand_in(devices, ranks, args).spawn().expect("mpirun starts"))
}

/// Every local solver of a GPU takes the steps of the processor's, one GPU for all ranks or two in turn.
#[test]
#[cfg(feature = "cuda")]
fn a_gpu_for_each_rank() {
    let folder = tempfile::tempdir().unwrap();
    let wind = write(&folder, "wind.mtx", &grid(6, 0.3));
    let poisson = write(&folder, "poisson.mtx", &grid(6, 0.0));
    let cases: [(&str, &[&str]); 9] = [
        (&wind, &["--method", "gmres", "--local", "ilu0"]),
        (&wind, &["--method", "bicgstab", "--precond", "ras", "--local", "ilu0", "--partition", "dse"]),
        (&poisson, &["--method", "cg", "--precond", "schwarz", "--local", "ic0"]),
        (&wind, &["--method", "fgmres", "--precond", "schur", "--local", "arms-rbt"]),
        (&wind, &["--method", "gmres", "--local", "ilut", "--fill", "5"]),
        (&wind, &["--method", "gmres", "--local", "blocks", "--blocks", "36"]),
        (&wind, &["--method", "hbisa-redblack", "--blocks", "36"]),
        // Of three ranks each has blocks of one colour only.
        (&wind, &["--method", "hbisa-sor", "--omega", "1.05", "--blocks", "72"]),
        // Of three ranks one has none.
        (&wind, &["--method", "hbisa", "--blocks", "108"]),
    ];
    for (file, options) in cases {
        for (devices, ranks) in [(1, 1), (1, 3), (2, 3)] {
            let args = [&[file], options].concat();
            let expected = json(ranks, 0, &args);
            let output = with_devices(devices, ranks, &[&args[..], &["--device", "gpu", "--json"]].concat());
            let told =
                format!("{options:?}, {ranks} ranks, {devices} GPUs: {}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(code(&output), 0, "{told}");
            let found: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!((&found["device"], &expected["device"]), (&"gpu".into(), &"cpu".into()), "{told}");
            let numbers: Vec<&str> =
                found["gpus"].as_array().unwrap().iter().map(|g| &g.as_str().unwrap()[..1]).collect();
            assert_eq!(numbers, (0..ranks).map(|r| ["0", "1"][r % devices]).collect::<Vec<_>>(), "{told}");
            let steps = |json: &Value| json["iterations"].as_i64().unwrap();
            // The search for the pattern of ILUT is another one there.
            let slack = if options.contains(&"ilut") { 3 } else { 0 };
            assert!(steps(&found).abs_diff(steps(&expected)) <= slack, "{told}: {found} {expected}");
            assert!(found["forward_error"].as_f64().unwrap() <= 1e-5, "{told}: {found}");
        }
    }
}

/// A launch that is refused loses nothing on the GPU, but the answer: it is an error of the device, and no breakdown of the method.
#[test]
#[cfg(feature = "cuda")]
fn a_launch_that_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let a = write(&folder, "a.mtx", &grid(6, 0.3));
    let cases: [(&[&str], &str, &str); 2] = [
        // Those of the factorization, and of two applications.
        (&["--method", "gmres", "--local", "ilu0"], "12", "ilu0_"),
        // Those of five sweeps.
        (&["--method", "hbisa", "--blocks", "36"], "5", "block_jacobi_"),
    ];
    for (options, launches, kernel) in cases {
        for ranks in [1, 3] {
            let args = [&[a.as_str(), "--device", "gpu"][..], options].concat();
            let mut command = on_stand_in(1, ranks, &args);
            let output = end(command.env("BLOCKTRI_EMULATOR_LAUNCHES", launches).spawn().expect("mpirun starts"));
            let err = String::from_utf8_lossy(&output.stderr);
            assert_eq!((code(&output), err.matches("error: ").count()), (5, 1), "{options:?}, {ranks} ranks: {err}");
            assert!(err.contains(&format!("the GPU did not start {kernel}")), "{err}");
        }
    }
}

/// What there is none of is told once, with the exit code of all ranks.
#[test]
#[cfg(feature = "cuda")]
fn gpus_that_are_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let a = write(&folder, "a.mtx", &grid(4, 0.3));
    for ranks in [1, 3] {
        for (bad, told) in [
            (&["--method", "cg", "--precond", "none"][..], "--precond none has none"),
            (&["--method", "spike"], "--method spike has none"),
            (&["--local", "direct"], "has no --local direct"),
        ] {
            let error = error(ranks, 2, &[&[a.as_str(), "--device", "gpu"], bad].concat());
            assert!(error.contains(told), "{error}");
        }
        let mut command = command(ranks, &[&a, "--device", "gpu"]);
        let output = end(command.env("BLOCKTRI_CUDA_DRIVER", path(&folder, "none.so")).spawn().unwrap());
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!((code(&output), err.matches("error: ").count()), (5, 1), "{err}");
        assert!(err.contains("error: rank 0: no GPU: "), "{err}");
        assert!(err.contains("help: take --device cpu"), "{err}");
    }
    let complex = write(&folder, "c.mtx", "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 2 1\n");
    for options in [&[][..], &["--method", "hbisa", "--blocks", "1"]] {
        let output = with_devices(1, 2, &[&[complex.as_str(), "--device", "gpu"], options].concat());
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(code(&output) == 2 && err.contains("real numbers only"), "{options:?}: {err}");
    }
}

/// Processes send and iterate as threads do; runs on other numbers of ranks add to the file, and no other file is touched.
#[test]
fn experiments_over_processes_are_those_over_threads() {
    use bt_reproduce::{Scale, Study, experiments, processor};
    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder, "ranks.json");
    let ids = ["parms/edf-x1/1-ranks/block-jacobi/ilu0", "parms/box-32x32x32/2-ranks/block-jacobi/ilu0"];
    let run = |ranks, id: &str| json(ranks, 0, &["reproduce", "parms", "--quick", "--only", id, "-o", &file]);
    for (id, ranks) in ids.into_iter().zip([1, 2]) {
        assert_eq!((run(ranks, id)["ran"].as_u64(), run(ranks, id)["ran"].as_u64()), (Some(1), Some(0)));
    }
    let kept: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    for id in ids {
        let of_processes = &kept["experiments"][id];
        assert_eq!((&of_processes["transport"], &of_processes["processor"]), (&"mpi".into(), &processor().into()));
        let all = experiments(Study::Parms, Scale::Quick, None);
        let over_threads = all.iter().find(|e| e.id() == id).unwrap();
        let of_threads = over_threads.run(&bt_formats::CancelToken::new()).unwrap();
        for count in ["messages", "bytes", "collectives", "cut", "n", "ranks"] {
            assert_eq!(of_processes[count], of_threads[count], "{id}: {count}");
        }
        for number in ["iterations", "relative_residual", "outcome"] {
            assert_eq!(of_processes["solve"][number], of_threads["solve"][number], "{id}: {number}");
        }
    }
    let told = error(3, 2, &["reproduce", "parms", "--quick", "-o", &file]);
    assert!(told.contains("for 1, 2, 4 ranks, not for 3"), "{told}");
    let other = write(&folder, "other.json", "{}");
    let told = error(1, 2, &["reproduce", "parms", "--quick", "--only", ids[0], "-o", &other]);
    assert!(told.contains("other.json: its schema is missing, not 2; name another file, or remove it"), "{told}");
    assert_eq!(fs::read_to_string(&other).unwrap(), "{}");
    let told = error(1, 2, &["reproduce", "parms", "--only", "parms/edf-x16/1-ranks/ras", "-o", &file]);
    assert!(told.contains("ranks.json: its scale is \"quick\", not \"full\"; name another file"), "{told}");
}

#[test]
fn the_solution_is_written_by_all_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let a = write(&folder, "a.mtx", &grid(5, 0.2));
    let mut text = String::from("%%MatrixMarket matrix array real general\n125 2\n");
    for k in 0..250 {
        let _ = writeln!(text, "{}", k % 7);
    }
    let b = write(&folder, "b.mtx", &text);
    let solution = |ranks, name: &str, options: &[&str]| {
        let x = path(&folder, name);
        let found = json(ranks, 0, &[&[a.as_str(), "-b", &b, "-o", &x, "--rtol", "1e-12"], options].concat());
        assert_eq!(found["nrhs"], 2);
        bt_formats::matrix_market::read_dense::<f64>(&x).unwrap()
    };
    let one = solution(1, "x1.mtx", &[]);
    for ranks in [2, 4] {
        for options in [&[][..], &["--partition", "dse", "--precond", "schur"]] {
            let x = solution(ranks, "x.mtx", options);
            assert!((0..125).all(|i| (0..2).all(|j| (x[(i, j)] - one[(i, j)]).abs() < 1e-9)));
        }
    }
    assert_eq!(names(&folder), ["a.mtx", "b.mtx", "x.mtx", "x1.mtx"]);
}

/// A table has the numbers of the array to the last digit, whoever owns which rows, and is no input.
#[test]
fn solutions_as_tables() {
    let folder = tempfile::tempdir().unwrap();
    let real = write(&folder, "a.mtx", &grid(5, 0.2));
    let text = "%%MatrixMarket matrix coordinate complex hermitian\n4 4 6\n1 1 4 0\n2 2 5 0\n3 3 6 0\n4 4 7 0\n2 1 1 -1\n4 3 0 1\n";
    let complex = write(&folder, "c.mtx", text);
    let (array, table) = (path(&folder, "x.mtx"), path(&folder, "x.csv"));
    let written = |ranks, a: &str, options: &[&str]| {
        for output in [&array, &table] {
            json(ranks, 0, &[&[a, "-o", output][..], options].concat());
        }
        fs::read_to_string(&table).unwrap()
    };
    for ranks in [1, 3, 6] {
        for options in [&["--method", "gmres"][..], &["--partition", "dse", "--precond", "schur"]] {
            let found = written(ranks, &real, options);
            let x = bt_formats::matrix_market::read_dense::<f64>(&array).unwrap();
            let mut expected = String::from("row,x1\n");
            for i in 0..125 {
                let _ = writeln!(expected, "{i},{:e}", x[(i, 0)]);
            }
            assert_eq!(found, expected, "{options:?} on {ranks}");
        }
        let found = written(ranks, &complex, &["--method", "cg", "--precond", "none"]);
        let x = bt_formats::matrix_market::read_dense::<bt_formats::c64>(&array).unwrap();
        let mut expected = String::from("row,x1_re,x1_im\n");
        for i in 0..4 {
            let _ = writeln!(expected, "{i},{:e},{:e}", x[(i, 0)].re, x[(i, 0)].im);
        }
        assert_eq!(found, expected, "complex on {ranks}");
    }
    let b = write(&folder, "b.csv", "rows");
    let told = error(3, 2, &[&real, "-b", &b, "-o", &b]);
    assert!(told.contains("b.csv: --rhs and --output name the same file"), "{told}");
    assert_eq!(fs::read_to_string(&b).unwrap(), "rows");
    let told = error(3, 2, &[&real, "-o", &path(&folder, "x.csv.gz")]);
    assert!(told.contains("x.csv.gz: ranks write .mtx and .csv files, not packed"), "{told}");
    assert_eq!(names(&folder), ["a.mtx", "b.csv", "c.mtx", "x.csv", "x.mtx"]);
}

#[test]
fn complex_and_packed_files() {
    let folder = tempfile::tempdir().unwrap();
    let text = "%%MatrixMarket matrix coordinate complex hermitian\n4 4 6\n1 1 4 0\n2 2 5 0\n3 3 6 0\n4 4 7 0\n2 1 1 -1\n4 3 0 1\n";
    let a = write(&folder, "c.mtx", text);
    let found = json(3, 0, &[&a, "--method", "cg", "--precond", "none"]);
    assert_eq!(found["scalar"], "c64");
    let status = Command::new("gzip").arg("--keep").arg(&a).status();
    if status.is_ok_and(|s| s.success()) {
        let packed = json(3, 0, &[&format!("{a}.gz"), "--method", "cg", "--precond", "none"]);
        assert_eq!(packed["iterations"], found["iterations"]);
    }
}

#[test]
fn exit_codes_and_messages() {
    let folder = tempfile::tempdir().unwrap();
    let a = write(&folder, "a.mtx", &grid(6, 0.3));
    let short = write(&folder, "short.mtx", &grid(6, 0.3)[..4000]);
    let b = write(&folder, "b.mtx", "%%MatrixMarket matrix array real general\n3 1\n1\n2\n3\n");
    let wide = write(&folder, "wide.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1.0\n");
    let sizes = write(&folder, "sizes.txt", "3\nthree\n");
    let x = path(&folder, "x.mtx");
    for ranks in [1, 3] {
        let told = error(ranks, 2, &[&path(&folder, "none.mtx"), "-o", &x]);
        assert!(told.contains("none.mtx: No such file"), "{told}");
        let told = error(ranks, 2, &[&short, "-o", &x]);
        assert!(told.contains("short.mtx:") && told.contains("rank "), "{told}");
        let found = json(ranks, 2, &[&short, "-o", &x]);
        assert_eq!((&found["file"], found["line"].is_u64()), (&short.as_str().into(), true), "{found}");
        assert!(found["help"].is_null() || found["help"].is_string(), "{found}");
        let found = json(ranks, 2, &[&wide, "-o", &x]);
        assert_eq!(found["help"], "least-squares problems are not solved here", "{found}");
        let found = json(ranks, 2, &[&a, "--method", "hbisa", "--blocks", &sizes]);
        assert_eq!((&found["file"], &found["line"]), (&sizes.as_str().into(), &2.into()), "{found}");
        let told = error(ranks, 2, &[&a, "-b", &b]);
        assert!(told.contains("b.mtx: the right-hand side has 3 rows, the matrix has 216"), "{told}");
        let told = error(ranks, 2, &[&a, "-o", &a]);
        assert!(told.contains("the matrix and --output name the same file"), "{told}");
        for bad in [
            &["--method", "gmres", "--precond", "schur"][..],
            &["--method", "hbisa"],
            &["--overlap", "4"],
            &["-o", "x.txt"],
        ] {
            error(ranks, 2, &[&[a.as_str()], bad].concat());
        }
        let found = json(ranks, 3, &[&a, "-o", &x, "--method", "gmres", "--precond", "none", "--max-iters", "3"]);
        assert_eq!((found["outcome"].as_str(), found["iterations"].as_u64()), (Some("iteration-limit"), Some(3)));
        assert!(fs::remove_file(&x).is_ok(), "the best x is written");
        // Below rounding: what happened is a value beside its sentence.
        let found = json(ranks, 3, &[&a, "--method", "bicgstab", "--rtol", "1e-30"]);
        assert_eq!(found["events"][0]["kind"], "attainable-accuracy", "{found}");
        assert!(found["events"][0]["relative_residual"].as_f64().is_some_and(|r| r < 1e-14), "{found}");
    }
    assert_eq!(names(&folder), ["a.mtx", "b.mtx", "short.mtx", "sizes.txt", "wide.mtx"]);
}

#[test]
fn parts_without_rows_or_factors() {
    let folder = tempfile::tempdir().unwrap();
    let small =
        write(&folder, "small.mtx", &matrix(3, &[(0, 0, 4.0), (1, 1, 5.0), (2, 2, 6.0), (0, 2, 1.0), (2, 0, 1.0)]));
    for options in [
        &["--method", "cg", "--precond", "none"][..],
        &["--method", "fgmres", "--precond", "schur", "--local", "direct"],
        &["--method", "gmres", "--precond", "ras", "--partition", "dse"],
        &["--method", "spike"],
        &["--method", "hbisa-redblack", "--blocks", "3"],
    ] {
        let found = json(6, 0, &[&[small.as_str()], options].concat());
        assert_eq!(found["outcome"], "converged", "{options:?}");
    }
    // Rank 1 of 3 has the rows 3, 4, 5, whose own columns are singular; A is not.
    let entries: Vec<(usize, usize, f64)> =
        (0..9).filter(|i| *i != 4).map(|i| (i, i, 2.0)).chain([(4, 0, 1.0), (0, 4, 1.0)]).collect();
    let a = write(&folder, "singular.mtx", &matrix(9, &entries));
    let x = path(&folder, "x.mtx");
    let told = error(3, 3, &[&a, "-o", &x, "--local", "direct"]);
    assert!(told.contains("rank 1") && told.contains("column 4"), "{told}");
    let told = error(3, 3, &[&a, "-o", &x, "--method", "spike"]);
    assert!(told.contains("rank "), "{told}");
    // Rank 1 of 2 has the rows 3, 4, 5: regular, but for those that no other rank is coupled with, 4 and 5.
    let entries = [(0, 0), (1, 1), (2, 2), (3, 3), (5, 5)].map(|(i, j)| (i, j, 2.0)).into_iter();
    let entries = entries.chain([(2, 3), (3, 2), (3, 4), (4, 3)].map(|(i, j)| (i, j, 1.0)));
    let interior = write(&folder, "interior.mtx", &matrix(6, &entries.collect::<Vec<_>>()));
    let told = error(2, 3, &[&interior, "-o", &x, "--precond", "schur", "--local", "direct"]);
    assert!(told.contains("rank 1: its interior of 2 rows") && told.contains("column 4"), "{told}");
    let singular = write(&folder, "zero.mtx", &matrix(2, &[(0, 0, 1.0), (1, 0, 1.0)]));
    error(1, 4, &[&singular, "--local", "direct"]);
    assert_eq!(names(&folder), ["interior.mtx", "singular.mtx", "small.mtx", "zero.mtx"]);
}

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

fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap().success());
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

/// Options that nothing reads are named with what does not read them, once; those that are read are not.
#[test]
fn options_that_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let a = write(&folder, "a.mtx", &grid(4, 0.0));
    let machine = "latency=1e-6,bandwidth=1e10,flops=1e9";
    let cases: [(&[&str], &[&str]); 5] = [
        (
            &["--method", "spike", "--overlap", "2", "--local", "ilut", "--seed", "3"],
            &[
                "--overlap is not read by --method spike",
                "--local is not read by --method spike",
                "--seed is not read by --method spike",
            ],
        ),
        (&["--method", "cg", "--local", "ic0", "--overlap", "1"], &["--overlap is not read by --precond block-jacobi"]),
        (&["--precond", "ras", "--drop-tol", "0.1"], &["--drop-tol is not read by --local ilu0"]),
        (
            &["--local", "arms-rbt", "--seed", "7", "--fill", "9", "--rtol", "1e-6", "--restart", "9", "--blocks", "8"],
            &[],
        ),
        (
            &["--method", "gmres", "--restart", "9", "--rtol", "0.1", "--model", machine],
            &["--rtol is not read by --model"],
        ),
    ];
    for (options, expected) in cases {
        let output = run(2, &[&[a.as_str(), "--json"], options].concat());
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let mut told: Vec<&str> = err.lines().filter_map(|line| line.strip_prefix("warning: ")).collect();
        told.sort_unstable();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(told, expected, "{options:?}: {err}");
        let found: Value = serde_json::from_str(&out).unwrap();
        for sentence in &expected {
            assert!(found["notes"].as_array().unwrap().contains(&(*sentence).into()), "{found}");
        }
        let seed = if options.contains(&"arms-rbt") { 7.into() } else { Value::Null };
        assert_eq!(found["seed"], seed, "{options:?}");
    }
    // What blocks that are too small are told is read by the method.
    let weak = write(
        &folder,
        "weak.mtx",
        &matrix(12, &(0..12).flat_map(|i| [(i, i, 1.0), (i, (i + 1) % 12, 3.0)]).collect::<Vec<_>>()),
    );
    let output = run(2, &[&weak, "--method", "hbisa", "--blocks", "2"]);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(code(&output), 3, "{err}");
    assert!(err.contains("to try: take larger --blocks, or --method spike with these"), "{err}");
}

#[test]
fn the_model_counts_without_running() {
    let folder = tempfile::tempdir().unwrap();
    let a = write(&folder, "a.mtx", &grid(16, 0.0));
    let found = json(1, 0, &[&a, "--method", "cg", "--model", "latency=1e-6,bandwidth=1e10,flops=1e9"]);
    let rows = found["model"].as_array().unwrap();
    assert_eq!((rows.len(), rows[12]["ranks"].as_u64()), (13, Some(4096)));
    // 2·nnz + 10·n flops; two sums of two numbers.
    let flops = 2 * (7 * 4096 - 6 * 256) + 10 * 4096;
    assert_eq!((rows[0]["flops"].as_f64(), rows[1]["collective_bytes"].as_u64()), (Some(f64::from(flops)), Some(32)));
    assert!(rows[2]["seconds"].as_f64().unwrap() < rows[0]["seconds"].as_f64().unwrap() / 2.0);
    // Latency takes over.
    assert!(rows[12]["seconds"].as_f64().unwrap() > rows[6]["seconds"].as_f64().unwrap());
    error(2, 2, &[&a, "--method", "spike", "--model", "latency=1e-6,bandwidth=1e10,flops=1e9"]);
    // The table is the same whoever counts.
    let counted = json(3, 0, &[&a, "--method", "cg", "--model", "latency=1e-6,bandwidth=1e10,flops=1e9"]);
    assert_eq!(counted["model"], found["model"]);
}

#[test]
fn notes_on_the_files_are_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        "%%MatrixMarket matrix coordinate integer general\n3 3 3\n1 1 9007199254740993\n2 2 5\n3 3 9007199254740995\n";
    let a = write(&folder, "a.mtx", text);
    let b = write(&folder, "b.mtx", "%%MatrixMarket matrix array real general\n3 1\n1\n2\n1e-400\n");
    for ranks in [1, 3] {
        let found = json(ranks, 0, &[&a, "-b", &b]);
        let notes: Vec<&str> = found["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(notes[0], "2 integers beyond 2^53 were rounded to the nearest doubles, the first of them in line 3");
        assert_eq!(notes[1], "a number below the range of doubles, in line 5, was read as 0");
        let text = String::from_utf8(run(ranks, &[&a, "-b", &b]).stdout).unwrap();
        assert_eq!(text.matches("2 integers beyond").count(), 1, "{text}");
    }
}

#[test]
fn memory_of_a_rank_falls_with_their_number() {
    let folder = tempfile::tempdir().unwrap();
    let a = write(&folder, "a.mtx", &grid(60, 0.0));
    // What a program with MPI takes before it reads anything does not fall.
    let idle = {
        let small = write(&folder, "small.mtx", &matrix(1, &[(0, 0, 1.0)]));
        json(4, 0, &[&small])["peak_memory"]["most"].as_f64().unwrap()
    };
    let solve: (i32, &[&str]) = (3, &["--method", "cg", "--precond", "none", "--max-iters", "2"]);
    let dse: (i32, &[&str]) = (3, &["--method", "cg", "--precond", "none", "--max-iters", "2", "--partition", "dse"]);
    let model: (i32, &[&str]) = (0, &["--method", "cg", "--model", "latency=1e-6,bandwidth=1e10,flops=1e9"]);
    for (code, options) in [solve, dse, model] {
        let peak = |ranks| {
            let found = json(ranks, code, &[&[a.as_str()], options].concat());
            found["peak_memory"]["most"].as_f64().unwrap()
        };
        let (one, two, four) = (peak(1), peak(2), peak(4));
        let share = |peak: f64| (peak - idle) / (one - idle);
        println!("{options:?}: {one:.3e} B on one rank, {two:.3e} on two, {four:.3e} on four, {idle:.3e} idle");
        assert!(share(two) < 0.65 && share(four) < 0.4, "{} and {} of one rank", share(two), share(four));
    }
}

/// A queue with room for n − 1: arrivals at rate 1, departures at rate 2; πᵢ = 2⁻ⁱ/(2 − 2¹⁻ⁿ).
fn queue(n: usize) -> Vec<(usize, usize, f64)> {
    let mut entries = Vec::new();
    for i in 0..n {
        let up = if i + 1 < n { 1.0 } else { 0.0 };
        let down = if i > 0 { 2.0 } else { 0.0 };
        entries.push((i, i, -up - down));
        if i + 1 < n {
            entries.push((i, i + 1, up));
        }
        if i > 0 {
            entries.push((i, i - 1, down));
        }
    }
    entries
}

#[test]
fn stationary_distributions_are_written_by_all_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let n = 1200;
    let q = write(&folder, "q.mtx", &matrix(n, &queue(n)));
    let (pi, table) = (path(&folder, "pi.mtx"), path(&folder, "pi.csv"));
    for ranks in RANKS {
        let found = json(ranks, 0, &["stationary", &q, "-o", &pi]);
        let told = format!("{ranks} ranks: {found}");
        assert_eq!(
            (found["outcome"].as_str(), found["certified"].as_bool()),
            (Some("converged"), Some(true)),
            "{told}"
        );
        assert_eq!((found["n"].as_u64(), found["recurrent"].as_u64()), (Some(1200), Some(1200)), "{told}");
        assert!(found["balance"].as_f64().unwrap() < 1e-14 && found["error_bound"].as_f64().unwrap() < 1e-10, "{told}");
        // 2⁻¹²⁰⁰, far below what doubles hold.
        assert!((found["log10_min"].as_f64().unwrap() + 1200.0 * 2f64.log10()).abs() < 1e-9, "{told}");
        assert_eq!(found["mode"]["state"].as_u64(), Some(0), "{told}");
        let x = bt_formats::matrix_market::read_dense::<f64>(&pi).unwrap();
        assert_eq!((x.nrows(), x.ncols()), (n, 1));
        assert!((0..1000).all(|i| (x[(i, 0)] * 2f64.powi(i as i32 + 1) - 1.0).abs() < 1e-12));
        assert_eq!(x[(n - 1, 0)], 0.0);
        json(ranks, 0, &["stationary", &q, "-o", &table]);
        let text = fs::read_to_string(&table).unwrap();
        assert_eq!((text.lines().next(), text.lines().count()), (Some("state,probability,log10"), n + 1));
        for (i, line) in text.lines().skip(1).enumerate() {
            let (front, log10) = line.rsplit_once(',').unwrap();
            assert_eq!(front, format!("{i},{:e}", x[(i, 0)]), "{ranks} ranks");
            // 2⁻ⁱ⁻¹, but for what is beyond the last state.
            let log10: f64 = log10.parse().unwrap();
            assert!((log10 + (i + 1) as f64 * 2f64.log10()).abs() < 1e-9, "{ranks} ranks: {line}");
        }
        fs::remove_file(&pi).unwrap();
        fs::remove_file(&table).unwrap();
    }
    // More reach than a rank has rows: the file is dealt out to fewer.
    let far = matrix(8, &(0..8).flat_map(|i| [(i, (i + 3) % 8, 1.0), (i, (i + 5) % 8, 1.0)]).collect::<Vec<_>>());
    let far = write(&folder, "far.mtx", &far);
    let found = json(4, 0, &["stationary", &far, "--diagonal", "missing"]);
    assert!((found["mode"]["probability"].as_f64().unwrap() - 0.125).abs() < 1e-15, "{found}");
    // Counts of transitions: from 0 to 1 one time in four, back every time.
    let counts = write(&folder, "counts.mtx", &matrix(2, &[(0, 0, 3.0), (0, 1, 1.0), (1, 0, 5.0)]));
    let found = json(2, 0, &["stationary", &counts, "--transitions", "--normalize"]);
    assert!((found["mode"]["probability"].as_f64().unwrap() - 0.8).abs() < 1e-15, "{found}");
    let text = String::from_utf8(run(2, &["stationary", &q]).stdout).unwrap();
    assert!(text.contains("1200 states, all recurrent") && text.contains("every probability to a relative"), "{text}");
    assert_eq!(names(&folder), ["counts.mtx", "far.mtx", "q.mtx"]);
}

/// One entry of the diagonal, on one rank, is enough for all of them; without any the entries are rates.
#[test]
fn the_diagonal_is_looked_for_by_all_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let n = 9;
    let keeping = |name: &str, kept: &dyn Fn(usize) -> Option<f64>| {
        let on_diagonal = |e: (usize, usize, f64)| if e.0 == e.1 { kept(e.0).map(|v| (e.0, e.1, v)) } else { Some(e) };
        write(&folder, name, &matrix(n, &queue(n).into_iter().filter_map(on_diagonal).collect::<Vec<_>>()))
    };
    let generator = write(&folder, "q.mtx", &matrix(n, &queue(n)));
    let rates = keeping("rates.mtx", &|_| None);
    let zeros = keeping("zeros.mtx", &|_| Some(0.0));
    let last = keeping("last.mtx", &|i| (i + 1 == n).then_some(-2.0));
    for ranks in [1, 3] {
        let notes = |file: &str, options: &[&str]| {
            let found = json(ranks, 0, &[&["stationary", file, "--diagonal", "auto"], options].concat());
            let expected = 0.5 / (1.0 - 0.5f64.powi(n as i32));
            assert!((found["mode"]["probability"].as_f64().unwrap() - expected).abs() < 1e-15, "{found}");
            found["notes"].clone()
        };
        let made = "the diagonal was made from the rates";
        assert_eq!(notes(&generator, &[]), serde_json::json!([]));
        assert_eq!(notes(&generator, &["--normalize"]), serde_json::json!([format!("--normalize: {made}")]));
        for file in [&rates, &zeros] {
            assert_eq!(notes(file, &[]), serde_json::json!([format!("{made}; none was read")]));
        }
        let told = error(ranks, 2, &["stationary", &last, "--diagonal", "auto"]);
        assert!(told.contains("row 0 (from 0) sums to 1, not to zero"), "{told}");
        // It is not looked for unasked.
        error(ranks, 2, &["stationary", &rates]);
    }
}

#[test]
fn chains_without_a_stationary_distribution() {
    let folder = tempfile::tempdir().unwrap();
    let pi = path(&folder, "pi.mtx");
    let file = |name: &str, n: usize, entries: &[(usize, usize, f64)]| write(&folder, name, &matrix(n, entries));
    // State 0 and state 5 are absorbing.
    let mut traps = queue(6);
    traps.retain(|e| e.0 != 0 && e.0 != 5);
    let traps = file("traps.mtx", 6, &traps);
    // State 0 alone is absorbing, and the last state is transient.
    let mut trap = queue(6);
    trap.retain(|e| e.0 != 0);
    let trap = file("trap.mtx", 6, &trap);
    let mut negative = queue(6);
    negative.iter_mut().filter(|e| e.0 + 1 == e.1 && e.0 == 3).for_each(|e| e.2 = -1.0);
    let negative = file("negative.mtx", 6, &negative);
    let no_generator = file("p.mtx", 2, &[(0, 1, 1.0), (1, 0, 1.0)]);
    let wide = write(&folder, "wide.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1.0\n");
    let complex = write(&folder, "c.mtx", "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1.0 0.0\n");
    for ranks in [1, 3] {
        let told = error(ranks, 4, &["stationary", &traps, "-o", &pi]);
        assert!(told.contains("2 closed classes (that of state 0, that of state 5;"), "{told}");
        let found = json(ranks, 4, &["stationary", &traps]);
        assert_eq!(found["exit_code"], 4, "{found}");
        assert!(found["help"].as_str().unwrap().contains("restrict the generator to one class"), "{found}");
        let found = json(ranks, 0, &["stationary", &trap]);
        assert_eq!(
            (found["recurrent"].as_u64(), found["mode"]["probability"].as_f64()),
            (Some(1), Some(1.0)),
            "{found}"
        );
        assert!(found["notes"][0].as_str().unwrap().contains("5 of 6 states are transient"), "{found}");
        let told = error(ranks, 2, &["stationary", &negative, "-o", &pi]);
        assert!(told.contains("the rate from state 3 to state 4 (from 0) is -1"), "{told}");
        let told = error(ranks, 2, &["stationary", &no_generator]);
        assert!(told.contains("not a generator; the rows sum to 1"), "{told}");
        let told = error(ranks, 2, &["stationary", &wide]);
        assert!(told.contains("wide.mtx: ") && told.contains("2 × 3"), "{told}");
        let told = error(ranks, 2, &["stationary", &complex]);
        assert!(told.contains("c.mtx: rates are real numbers"), "{told}");
        let told = error(ranks, 2, &["stationary", &trap, "-o", &trap]);
        assert!(told.contains("the chain and --output name the same file"), "{told}");
    }
    assert!(!Path::new(&pi).exists());
    assert_eq!(names(&folder).len(), 6);
}
