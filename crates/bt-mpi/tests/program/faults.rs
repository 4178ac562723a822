//! Exit codes and messages; parts without rows or factors.

use std::fs;

use crate::common::{error, grid, json, matrix, names, path, write};

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

/// Multiple shooting over steps of 0.3 (S. J. Wright, SIAM J. Sci. Comput. 14 (1993) 231–238): elements of L·U grow by 1.28 a block.
#[test]
fn elements_grow_in_a_part() {
    let (blocks, decay, step) = (3000, (-0.05f64).exp(), 0.3f64);
    let couples = [-decay * step.cosh(), -decay * step.sinh()];
    let entries = (0..2 * blocks).flat_map(|i| {
        let (block, own) = (i / 2, i % 2);
        if block == 0 {
            return vec![(i, i, 1.0), (i, 2 * blocks - 2 + i, 1.0)];
        }
        let before = 2 * block - 2;
        vec![(i, before, couples[own]), (i, before + 1, couples[1 - own]), (i, i, 1.0)]
    });
    let folder = tempfile::tempdir().unwrap();
    let a = write(&folder, "a.mtx", &matrix(2 * blocks, &entries.collect::<Vec<_>>()));
    let told = error(1, 3, &[&a, "--local", "direct"]);
    assert!(told.contains("sparse-qr"), "{told}");
    let found = json(1, 0, &[&a, "--method", "gmres", "--local", "sparse-qr", "--rtol", "1e-12"]);
    assert_eq!(found["outcome"], "converged", "{found}");
}
