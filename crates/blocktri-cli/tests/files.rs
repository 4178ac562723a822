//! What may be named as a file, and what becomes of it: formats by their endings and by their bytes, `-`, right-hand
//! sides in the file of the matrix, outputs that are inputs.

mod common;

use std::io::Write;
use std::process::Stdio;

use common::{Run, SMALL, SMALL_RHS, Sandbox, numbers, shared};

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("A.mtx", SMALL);
    sandbox.write("b.mtx", SMALL_RHS);
    sandbox
}

/// Runs with a text on standard input.
fn run_with_input(sandbox: &Sandbox, line: &str, input: &str) -> Run {
    let mut child = sandbox
        .command(line)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    // A command that refuses its options reads nothing.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("the command ends").into()
}

fn notes(run: &Run) -> String {
    run.json()["notes"].to_string()
}

#[test]
fn an_output_is_no_input_and_no_other_output() {
    let sandbox = sandbox();
    std::fs::create_dir(sandbox.path("sub")).unwrap();
    std::fs::hard_link(sandbox.path("A.mtx"), sandbox.path("hard.mtx")).unwrap();
    sandbox.write("sizes.mtx", "2\n2\n");
    #[cfg(unix)]
    for (to, link) in [("A.mtx", "soft.mtx"), ("A.mtx", "A.svg"), ("later.csv", "ahead.csv")] {
        std::os::unix::fs::symlink(to, sandbox.path(link)).unwrap();
    }
    let before = sandbox.names();
    for line in [
        "solve A.mtx -o A.mtx",
        "solve A.mtx -o ./A.mtx",
        "solve A.mtx -o sub/../A.mtx",
        "solve A.mtx -o hard.mtx",
        "solve A.mtx -b b.mtx -o b.mtx",
        "solve A.mtx --method hbisa --blocks sizes.mtx -o sizes.mtx",
        "solve A.mtx --method hbisa -o h.csv --history ./h.csv",
        "solve A.mtx --method hbisa --history h.svg --plot sub/../h.svg",
        "generate poisson-disk --n 60 -o x.mtx --rhs ./x.mtx",
        "generate block-random --blocks sizes.mtx -o ./sizes.mtx",
        "queue --generator A.mtx -o ./A.mtx",
        #[cfg(unix)]
        "solve A.mtx -o soft.mtx",
        #[cfg(unix)]
        "info A.mtx --spy A.svg",
        #[cfg(unix)]
        "solve A.mtx --method hbisa -o later.csv --history ahead.csv",
    ] {
        let run = sandbox.run(line).expect(2);
        assert!(run.stderr.contains(" name the same file"), "{line}: {}", run.stderr);
    }
    #[cfg(target_os = "linux")]
    {
        let input = std::fs::File::open(sandbox.path("A.mtx")).unwrap();
        let run = Run::from(sandbox.command("solve - -o A.mtx").stdin(input).output().unwrap()).expect(2);
        assert!(run.stderr.contains("the matrix and --output name the same file"), "{}", run.stderr);
    }
    assert_eq!((sandbox.read("A.mtx"), sandbox.read("b.mtx")), (SMALL.into(), SMALL_RHS.into()));
    assert_eq!(sandbox.names(), before);
    // Two inputs may be one file, and no device is a file.
    sandbox.run("solve A.mtx --method hbisa -o /dev/null --history /dev/null").expect(0);
}

#[test]
fn a_dash_is_standard_input_and_output() {
    let sandbox = sandbox();
    let x = [1.0; 4];
    let close = |text: &str| numbers(text).iter().zip(x).all(|(a, b)| (a - b).abs() < 1e-14);
    let run = run_with_input(&sandbox, "solve - -b b.mtx -o -", SMALL).expect(0);
    assert!(close(&run.stdout), "{run:?}");
    assert!(run.stderr.contains("relative residual"), "the report goes to stderr: {run:?}");
    let run = run_with_input(&sandbox, "solve A.mtx -b - -o - --quiet", SMALL_RHS).expect(0);
    assert!(close(&run.stdout) && run.stderr.is_empty(), "{run:?}");
    let run = run_with_input(&sandbox, "info - --json", SMALL).expect(0);
    assert_eq!(run.json()["nnz"], 10);
    let made = sandbox.run("generate tridiagonal --n 3 -o -").expect(0);
    assert_eq!(run_with_input(&sandbox, "info - --json", &made.stdout).expect(0).json()["n"], 3);
    let run = run_with_input(&sandbox, "info -", "%%MatrixMarket matrix coordinate real general\n2 2 1\n9 1 1\n");
    assert!(run.expect(2).stderr.contains("standard input:3: "));
    for line in ["solve - -b -", "solve A.mtx -o - --json", "solve A.mtx --method hbisa -o - --history -"] {
        let run = run_with_input(&sandbox, line, SMALL).expect(2);
        assert!(run.stderr.contains("standard") || run.stderr.contains("same file"), "{line}: {}", run.stderr);
    }
    assert_eq!(sandbox.names(), ["A.mtx", "b.mtx"]);
}

#[test]
fn endings_decide_what_is_written() {
    let sandbox = sandbox();
    sandbox.run("solve A.mtx -b b.mtx -o x.csv").expect(0);
    let table = sandbox.read("x.csv");
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("row,x1"));
    let values: Vec<f64> = lines.map(|l| l.split(',').nth(1).unwrap().parse().unwrap()).collect();
    assert!(values.len() == 4 && values.iter().all(|x| (x - 1.0).abs() < 1e-14), "{table}");
    sandbox.run("solve A.mtx -b b.mtx -o x.json").expect(0);
    let object: serde_json::Value = serde_json::from_str(&sandbox.read("x.json")).unwrap();
    assert_eq!((&object["n"], object["x"][0].as_array().map(Vec::len)), (&4.into(), Some(4)));
    sandbox.run("solve A.mtx --method hbisa --blocks 1 --history h.json").expect(0);
    let history: serde_json::Value = serde_json::from_str(&sandbox.read("h.json")).unwrap();
    assert_eq!((&history["norm"], &history["curves"][0][0][0]), (&"relative_residual".into(), &0.into()));
    let model = "queue --resources 3 --threshold 2 --lambda 1";
    let read = |name: &str| serde_json::from_str::<serde_json::Value>(&sandbox.read(name)).unwrap();
    sandbox.run(&format!("{model} -o pi.json")).expect(0);
    let states = read("pi.json")["states"].as_array().unwrap().clone();
    let sum: f64 = states.iter().map(|state| state["probability"].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-14 && states[0]["tasks"] == 0 && states[0]["level"] == 1, "{states:?}");
    sandbox.run("queue --resources 3 --threshold 2 --sweep lambda=1:2:1 -o plans.json").expect(0);
    assert_eq!(read("plans.json")["plans"][1]["lambda"], 2.0);
    // Packed, and read again.
    sandbox.run("solve A.mtx -b b.mtx -o x.mtx.gz").expect(0);
    assert_eq!(std::fs::read(sandbox.path("x.mtx.gz")).unwrap()[..2], [0x1f, 0x8b]);
    sandbox.run("solve A.mtx -b x.mtx.gz --quiet").expect(0);
    sandbox.run("solve A.mtx --method hbisa --history h.csv.gz").expect(0);
    assert_eq!(std::fs::read(sandbox.path("h.csv.gz")).unwrap()[..2], [0x1f, 0x8b]);
    let before = sandbox.names();
    for (line, known) in [
        ("solve A.mtx -o x.txt", ".mtx, .csv, .json"),
        ("solve A.mtx -o x.mtx.xz", ".mtx, .csv, .json"),
        ("solve A.mtx --method hbisa --history h.txt", ".csv, .json"),
        ("generate tridiagonal --n 3 -o A.csv", ".mtx"),
        ("queue --resources 3 --threshold 2 --lambda 1 -o pi.txt", ".mtx, .csv, .json"),
        ("queue --resources 3 --threshold 2 --sweep lambda=1:2:1 -o plans.mtx", ".csv, .json"),
        ("info A.mtx --spy A.mtx.gif", ".svg or .png"),
    ] {
        let run = sandbox.run(line).expect(2);
        assert!(run.stderr.contains(known), "{line}: {}", run.stderr);
    }
    assert_eq!(sandbox.names(), before);
}

#[test]
fn man_pages_go_into_a_folder_that_is_made() {
    let sandbox = Sandbox::new();
    sandbox.run("man --dir share/man/man1").expect(0);
    assert!(sandbox.path("share/man/man1/blocktri.1").exists());
}

/// 4·I + tridiag(1, 0, 1) of order 3 as RSA, and A·(1, 2, 3) = (6, 12, 14).
const RSA: &str = "\
three with a right-hand side                                            three
             5             1             1             2             1
RSA                        3             3             5             0
(4I4)           (5I4)           (3F8.1)             (3F8.1)
F                          1             0
   1   3   5   6
   1   2   2   3   3
     4.0     1.0     4.0
     1.0     4.0
     6.0    12.0    14.0
";

#[test]
fn the_right_hand_side_in_the_file_of_the_matrix_is_used() {
    let sandbox = Sandbox::new();
    sandbox.write("three.rsa", RSA);
    let run = sandbox.run("solve three.rsa -o x.mtx --json").expect(0);
    assert!(notes(&run).contains("b is the 1 right-hand side in the file of the matrix"), "{run:?}");
    assert!(run.json()["forward_error"].is_null());
    let x = numbers(&sandbox.read("x.mtx"));
    assert!(x.iter().zip([1.0, 2.0, 3.0]).all(|(a, b)| (a - b).abs() < 1e-14), "{x:?}");
    sandbox.write("b.mtx", "%%MatrixMarket matrix array real general\n3 1\n5\n6\n5\n");
    let run = sandbox.run("solve three.rsa -b b.mtx -o x.mtx --json").expect(0);
    assert!(notes(&run).contains("the right-hand side in the file not used"), "{run:?}");
    assert!(numbers(&sandbox.read("x.mtx")).iter().all(|x| (x - 1.0).abs() < 1e-14));
    let text = sandbox.run("info three.rsa").expect(0).stdout;
    assert!(text.contains("the right-hand side in the file not used"), "{text}");
}

#[test]
fn binary_files_of_petsc_are_read() {
    let sandbox = Sandbox::new();
    let ints = |values: &[i32]| values.iter().flat_map(|v| v.to_be_bytes()).collect::<Vec<_>>();
    let reals = |values: &[f64]| values.iter().flat_map(|v| v.to_be_bytes()).collect::<Vec<_>>();
    // [[2, 1], [0, 4]] · (1, 2) = (4, 8)
    let matrix = [ints(&[1_211_216, 2, 2, 3, 2, 1, 0, 1, 1]), reals(&[2.0, 1.0, 4.0])].concat();
    let vector = [ints(&[1_211_214, 2]), reals(&[4.0, 8.0])].concat();
    sandbox.write("A.petsc", &matrix);
    sandbox.write("b.petsc", &vector);
    sandbox.write("both", [matrix, vector].concat());
    for line in ["solve A.petsc -b b.petsc -o x.mtx", "solve both -o x.mtx"] {
        sandbox.run(line).expect(0);
        assert_eq!(numbers(&sandbox.read("x.mtx")), [1.0, 2.0], "{line}");
    }
    let run = sandbox.run("solve b.petsc").expect(2);
    assert!(run.stderr.contains("a vector of PETSc"), "{}", run.stderr);
}

#[test]
fn rounded_integers_are_noted() {
    let sandbox = Sandbox::new();
    let head = "%%MatrixMarket matrix coordinate integer general\n";
    sandbox.write("A.mtx", format!("{head}2 2 2\n1 1 9007199254740993\n2 2 5\n"));
    let note = "an integer beyond 2^53, in line 3, was rounded";
    assert!(notes(&sandbox.run("solve A.mtx --json").expect(0)).contains(note));
    assert!(notes(&sandbox.run("info A.mtx --json").expect(0)).contains(note));
}

#[test]
fn an_x_beyond_the_largest_number_is_no_fault_of_the_output() {
    let sandbox = Sandbox::new();
    sandbox.write("A.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1e-310\n");
    sandbox.write("b.mtx", "%%MatrixMarket matrix array real general\n1 1\n1\n");
    for line in ["solve A.mtx -b b.mtx", "solve A.mtx -b b.mtx -o x.mtx"] {
        let run = sandbox.run(line).expect(3);
        assert!(run.stderr.contains("the solution itself exceeds the largest number, 1.8e308"), "{line}: {run:?}");
    }
    assert_eq!(sandbox.names(), ["A.mtx", "b.mtx"]);
}

#[test]
fn numbers_out_of_range_say_the_range() {
    let sandbox = sandbox();
    for (line, wanted) in [
        ("solve A.mtx --rtol -1", "a finite number of at least 0"),
        ("solve A.mtx --atol -1e-3", "a finite number of at least 0"),
        ("solve A.mtx --omega -1", "a number between 0 and 2"),
        ("solve A.mtx --max-iters -3", "a whole number from 0 to"),
        ("solve A.mtx --seed -1", "a whole number from 0 to 18446744073709551615"),
        ("solve A.mtx --overlap 18446744073709551615", "from 0 to 4294967294"),
        ("solve A.mtx --partitions 0", "from 1 to 4294967294"),
        ("solve A.mtx --memory much", "a size like 8G"),
        ("generate band-random --n 5 --kl 18446744073709551615 --ku 1 -o x.mtx", "from 0 to 4294967294"),
    ] {
        let run = sandbox.run(line).expect(2);
        assert!(run.stderr.contains(wanted), "{line}: {}", run.stderr);
    }
    // The largest that is in range is as good as any.
    sandbox.run("solve A.mtx --method gmres --precond ras --overlap 4294967294 --quiet").expect(0);
}

/// Rows of the collection of public reports on files.
#[test]
fn the_reported_files() {
    let Some(folder) = shared("reports-queue") else { return };
    let sandbox = Sandbox::new();
    let mut seen = 0;
    for row in csv::Reader::from_path(folder.join("index.csv")).unwrap().records() {
        let row = row.unwrap();
        let (name, command, must, right) = (&row[0], &row[1], &row[2], &row[3]);
        if !command.starts_with("blocktri info") {
            continue;
        }
        seen += 1;
        let run = sandbox.run(&format!("info {} --json", folder.join(name).display()));
        let accepted = right.split_whitespace().next().and_then(|word| word.parse::<usize>().ok());
        match run.code {
            0 => {
                assert!(!must.starts_with("exit 2"), "{name} was accepted: {must}");
                if let Some(entries) = accepted.filter(|_| !right.contains("expected")) {
                    assert_eq!(run.json()["nnz"], entries, "{name}");
                }
            }
            2 => assert!(!must.starts_with("accept") || must.contains("or"), "{name}: {run:?}; {must}"),
            code => panic!("{name}: exit {code}: {run:?}"),
        }
        if must.contains("tar archive") {
            assert!(run.stderr.contains("tar archive") && run.stderr.contains("unpack"), "{name}: {}", run.stderr);
        }
        if name.contains("skew_array") && run.code == 2 {
            assert!(run.stderr.contains("without its zeros"), "{name}: {}", run.stderr);
        }
    }
    assert!(seen >= 12, "{seen}");
    let strip = folder.join("strip24_rhs_m.rsa");
    let run = sandbox.run(&format!("solve {} -o x.mtx --json", strip.display())).expect(0);
    assert!(notes(&run).contains("right-hand side in the file of the matrix"));
    for (i, x) in numbers(&sandbox.read("x.mtx")).iter().enumerate() {
        assert!((x - (i + 1) as f64).abs() < 1e-9, "x_{} = {x}", i + 1);
    }
}
