//! Answers of the methods and the files they are written to, on any number of ranks.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use crate::common::{RANKS, band, error, grid, json, matrix, names, path, write};

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
