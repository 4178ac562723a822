//! What reports say: options that nothing reads, notes, the model, memory.

use serde_json::Value;

use crate::common::{code, error, grid, json, matrix, run, write};

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
