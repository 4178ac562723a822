//! Bad command lines, bad files, unwritable outputs: the code is 2, the place is named, nothing is written.

mod common;

use common::{SMALL, SMALL_RHS, Sandbox, shared};

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("A.mtx", SMALL);
    sandbox.write("b.mtx", SMALL_RHS);
    sandbox
}

#[test]
fn names_that_do_not_exist_list_those_that_do() {
    let sandbox = sandbox();
    for (line, listed) in [
        ("solve A.mtx --method qmr", "block-lu"),
        ("solve A.mtx --method", "auto"),
        ("solve A.mtx --reorder best", "matching+rcm"),
        ("solve A.mtx --precond gamg", "none"),
        ("generate cue -o x.mtx", "convection-diffusion"),
        ("generate", "tridiagonal"),
        ("frobnicate", "solve, info, explain, calibrate, queue, generate"),
        ("", "solve"),
        ("completions klingon", "bash"),
    ] {
        let run = sandbox.run(line).expect(2);
        assert!(run.stderr.contains(listed), "{line}: {}", run.stderr);
        assert_eq!(run.stdout, "", "{line}");
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    let sandbox = sandbox();
    for line in [
        "solve A.mtx --threads 0",
        "solve A.mtx --threads 100000000",
        "solve A.mtx --repeat 0",
        "solve A.mtx --rtol -1",
        "solve A.mtx --rtol nan",
        "solve A.mtx --atol inf",
        "solve A.mtx --blocks 0",
        "solve A.mtx --blocks 5",
        "solve A.mtx --max-iters -3",
        "solve A.mtx --method hbisa-sor --omega 2",
        "solve A.mtx --refine many",
        "generate tridiagonal --n 0 -o x.mtx",
        "generate poisson3d --nx 100000 -o x.mtx",
        "generate poisson3d --nx 18446744073709551615 -o x.mtx",
        "generate band-random --n 10 --kl 1 --ku 1 --density 2 -o x.mtx",
        "generate block-random --blocks 3 -o x.mtx",
        "generate cloud --case Cloud1-1 -o x.mtx",
        "generate cloud -o x.mtx",
        "generate cloud --case Cloud16-100 --variant eq8 -o x.mtx",
        "generate queue -o x.mtx",
        "generate queue --resources 4294967295 --threshold 4294967295 --lambda 1 -o x.mtx",
        "queue",
        "queue --resources 3 --threshold 2",
        "queue --resources 3 --threshold 2 --lambda -1",
        "queue --resources 3 --threshold 2 --lambda nan",
        "queue --resources 3 --threshold 2 --lambda 1 --mu 0",
        "queue --resources 3 --threshold 2 --lambda 1 --sweep lambda=2:1:1",
        "queue --resources 3 --threshold 2 --lambda 1 --generator A.mtx",
        "queue --generator A.mtx",
        "queue --generator none.mtx",
        "queue --generator A.mtx --lambda 1",
        "generate poisson-disk --n 6 -o x.mtx",
        "generate poisson-disk --n 60 -o x.mtx --rhs x.mtx",
        "generate cloud --block-size 4294967295 --levels 4294967295 -o x.mtx",
    ] {
        let run = sandbox.run(line).expect(2);
        assert!(run.stderr.starts_with("error: "), "{line}: {}", run.stderr);
    }
    assert_eq!(sandbox.names(), ["A.mtx", "b.mtx"]);
}

#[test]
fn failures_are_json_objects_when_asked() {
    let sandbox = sandbox();
    sandbox.write("bad.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 x 3\n");
    for (line, code) in [("solve bad.mtx --json", 2), ("solve A.mtx --json --method qmr", 2), ("--json frobnicate", 2)]
    {
        let run = sandbox.run(line).expect(code);
        let json = run.json();
        assert_eq!((&json["schema"], &json["exit_code"]), (&1.into(), &code.into()), "{line}");
        assert!(json["error"].as_str().is_some_and(|e| !e.is_empty()), "{line}");
        assert_eq!(run.stdout.lines().count(), 1);
    }
    let json = sandbox.run("info bad.mtx --json").expect(2).json();
    assert_eq!((&json["file"], &json["line"]), (&"bad.mtx".into(), &3.into()));
}

#[test]
fn a_gpu_is_not_available() {
    let sandbox = sandbox();
    let nowhere = [("BLOCKTRI_CUDA_DRIVER", "/no/such/driver.so")];
    let version = sandbox.run("--version").expect(0).stdout;
    assert!(version.contains("\nfeatures: "), "{version}");
    let why = if version.contains("cuda") {
        "error: no GPU: the CUDA driver /no/such/driver.so cannot be loaded: "
    } else {
        "error: no GPU 0: this build "
    };
    let run = sandbox.run_with("solve A.mtx --device gpu", &nowhere).expect(5);
    assert!(run.stderr.starts_with(why), "{run:?}");
    assert!(run.stderr.contains("help: use --device cpu"), "{run:?}");
    // Before anything is run or written.
    let run = sandbox.run_with("reproduce hbisa --only hbisa/B -o r --device gpu", &nowhere).expect(5);
    assert!(run.stderr.starts_with(why), "{run:?}");
    assert!(!sandbox.path("r").exists());
    // Whatever the file is.
    let json = sandbox.run_with("solve none.mtx --json --device gpu:0", &nowhere).expect(5).json();
    assert_eq!((&json["schema"], &json["exit_code"]), (&1.into(), &5.into()));
    sandbox.run("solve A.mtx --device tpu").expect(2);
}

#[test]
fn bad_files_are_named_with_their_line() {
    let sandbox = sandbox();
    let header = "%%MatrixMarket matrix coordinate real general\n";
    for (name, text, wanted) in [
        ("empty.mtx", String::new(), "empty.mtx"),
        ("index.mtx", format!("{header}2 2 2\n1 1 1\n3 1 1\n"), "index.mtx:4: "),
        ("nan.mtx", format!("{header}2 2 2\n1 1 1\n2 2 nan\n"), "nan.mtx:4: "),
        ("wide.mtx", format!("{header}2 3 2\n1 1 1\n2 2 1\n"), "wide.mtx: the matrix is 2 × 3"),
        ("none.mtx", format!("{header}0 0 0\n"), "none.mtx: the matrix is 0 × 0"),
        ("huge.mtx", format!("{header}4000000000 4000000000 4000000000000\n1 1 1\n"), "huge.mtx"),
    ] {
        sandbox.write(name, text);
        let run = sandbox.run(&format!("solve {name} -o x.mtx")).expect(2);
        assert!(run.stderr.starts_with("error: ") && run.stderr.contains(wanted), "{name}: {}", run.stderr);
    }
    for name in ["missing.mtx", "."] {
        let run = sandbox.run(&format!("info {name}")).expect(2);
        assert!(run.stderr.contains(&format!("error: {name}: ")), "{}", run.stderr);
    }
    assert!(!sandbox.names().iter().any(|n| n.starts_with("x.mtx") || n.starts_with('.')), "{:?}", sandbox.names());
}

#[test]
fn right_hand_sides_must_fit() {
    let sandbox = sandbox();
    let header = "%%MatrixMarket matrix array real general\n";
    sandbox.write("short.mtx", format!("{header}3 1\n1\n2\n3\n"));
    sandbox.write("nocolumn.mtx", format!("{header}4 0\n"));
    sandbox.write("inf.mtx", format!("{header}4 1\n1\n2\ninf\n4\n"));
    for (b, wanted) in [
        ("short.mtx", "short.mtx: the right-hand side has 3 rows, the matrix has 4"),
        ("nocolumn.mtx", "0 columns"),
        ("inf.mtx", "inf.mtx:5: "),
        ("nofile.mtx", "nofile.mtx: "),
    ] {
        let run = sandbox.run(&format!("solve A.mtx -b {b}")).expect(2);
        assert!(run.stderr.contains(wanted), "{b}: {}", run.stderr);
    }
}

#[test]
fn block_files_must_fit() {
    let sandbox = sandbox();
    for (text, wanted) in [
        ("2\n", "blocks.txt: the block sizes sum to 2, but the matrix has 4 rows"),
        ("2\n3\n", "blocks.txt:2: the block sizes up to here sum to 5, but the matrix has 4 rows"),
        ("2\n0\n2\n", "blocks.txt:2: '0' is not a block size"),
        ("two\n", "blocks.txt:1: 'two' is not a block size"),
    ] {
        sandbox.write("blocks.txt", text);
        let run = sandbox.run("solve A.mtx --method block-lu --blocks blocks.txt").expect(2);
        assert!(run.stderr.contains(wanted), "{}", run.stderr);
    }
    let run = sandbox.run("solve A.mtx --blocks nofile.txt").expect(2);
    assert!(run.stderr.contains("nofile.txt: ") && run.stderr.contains("help: --blocks takes"), "{}", run.stderr);
}

#[test]
fn a_direct_method_has_no_history() {
    let sandbox = sandbox();
    for line in ["solve A.mtx --plot r.svg", "solve A.mtx --method band-lu --history r.csv"] {
        let run = sandbox.run(line).expect(2);
        assert!(run.stderr.contains("is direct") && run.stderr.contains("hbisa"), "{}", run.stderr);
    }
    sandbox.run("solve A.mtx --method hbisa --plot r.jpg").expect(2);
    assert_eq!(sandbox.names(), ["A.mtx", "b.mtx"]);
}

#[test]
fn outputs_that_cannot_be_written_stop_before_the_work() {
    let sandbox = sandbox();
    std::fs::create_dir(sandbox.path("folder")).unwrap();
    // The matrix does not even exist: the output is looked at first.
    for output in ["none/x.mtx", "folder"] {
        for line in [format!("solve nofile.mtx -o {output}"), format!("generate tridiagonal --n 5 -o {output}")] {
            let run = sandbox.run(&line).expect(2);
            assert!(run.stderr.contains(&format!("error: {output}: ")), "{}", run.stderr);
        }
    }
    sandbox.write("old.mtx", "old");
    let mut permissions = std::fs::metadata(sandbox.path("old.mtx")).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(sandbox.path("old.mtx"), permissions).unwrap();
    let run = sandbox.run("solve A.mtx -o old.mtx").expect(2);
    assert!(run.stderr.contains("read-only"), "{}", run.stderr);
    assert_eq!(sandbox.read("old.mtx"), "old");
    assert_eq!(sandbox.names(), ["A.mtx", "b.mtx", "folder", "old.mtx"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_with_the_systems_reason() {
    let sandbox = sandbox();
    for line in
        ["solve A.mtx -o /dev/full", "generate poisson2d --nx 50 -o /dev/full", "solve A.mtx -o /proc/none/x.mtx"]
    {
        let run = sandbox.run(line).expect(2);
        assert!(run.stderr.contains("No space left") || run.stderr.contains("No such file"), "{line}: {}", run.stderr);
        assert_eq!(run.stdout, "", "{line}");
    }
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let status =
        sandbox.command("info A.mtx --json").stdout(full).stderr(std::process::Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(2));
    assert_eq!(sandbox.names(), ["A.mtx", "b.mtx"]);
}

/// Every hostile file: refused where the index says so, never a panic, and no file left behind.
#[test]
fn the_malformed_collection() {
    let Some(folder) = shared("malformed") else { return };
    let sandbox = Sandbox::new();
    let mut files = 0;
    for row in csv::Reader::from_path(folder.join("index.csv")).unwrap().records() {
        let row = row.unwrap();
        let (name, verdict, tolerated) = (&row[0], &row[2], &row[4]);
        let file = folder.join(name);
        let info = sandbox.run(&format!("info {} --json", file.display()));
        match verdict {
            "reject" if tolerated.is_empty() => assert_eq!(info.code, 2, "{name}: {info:?}"),
            "accept" if tolerated.is_empty() => assert_eq!(info.code, 0, "{name}: {info:?}"),
            _ => assert!([0, 2].contains(&info.code), "{name}: {info:?}"),
        }
        let json = info.json();
        if info.code == 2 {
            assert!(info.stderr.contains(name), "{name}: {}", info.stderr);
            assert_eq!(json["exit_code"], 2, "{name}");
        }
        let solve = sandbox.run(&format!("solve {} --json -o x.mtx", file.display()));
        assert!([0, 2, 4].contains(&solve.code), "{name}: {solve:?}");
        assert_eq!(solve.code == 0, sandbox.path("x.mtx").exists(), "{name}");
        let _ = std::fs::remove_file(sandbox.path("x.mtx"));
        assert_eq!(sandbox.names(), [""; 0], "{name}");
        files += 1;
    }
    assert!(files >= 53);
}

#[test]
fn two_outputs_need_two_names() {
    let sandbox = Sandbox::new();
    sandbox.write("A.mtx", SMALL);
    let run = sandbox.run("solve A.mtx --method hbisa -o y --history y").expect(2);
    assert!(run.stderr.contains("y: --output and --history name the same file"), "{}", run.stderr);
    assert_eq!(sandbox.names(), ["A.mtx"]);
    sandbox.run("solve A.mtx --method hbisa -o /dev/null --history /dev/null").expect(0);
}
