//! Files over ranks: the matrices and the errors of the serial reader, for any number of ranks; arrays and tables written whole or not at all.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::common::{RANKS, run, succeed, vector};
use bt_formats::{Csr, LinearOperator, Matrix, c64, matrix_market};
use bt_parallel::{
    Comm, DistributedCsr, Error, FaultKind, Number, Result, RowRanges, Rows, Target, entries_from_ranges,
    read_columns_on_all, read_head_on_all,
};
use tempfile::TempDir;

fn file(folder: &TempDir, name: &str, text: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(text).unwrap();
    out.finish().unwrap()
}

fn read<'c, T: Number, C: Comm>(comm: &'c C, path: &Path) -> Result<DistributedCsr<'c, T, C>> {
    let head = read_head_on_all(comm, path)?;
    let ranges = RowRanges::even(head.header.nrows, comm.size(), 1);
    Ok(DistributedCsr::read(comm, path, &head, &ranges, &mut ())?.0)
}

/// Every rank has its rows of what the serial reader reads, to the last bit.
fn same<T: Number>(path: &Path) {
    same_on::<T>(path, &RANKS);
}

fn same_on<T: Number>(path: &Path, ranks: &[usize]) {
    let expected: Csr<T> = matrix_market::read_csr(path).unwrap();
    let n = expected.nrows();
    let x = vector::<T>(n, 1);
    for &p in ranks {
        succeed(p, |comm| {
            let a = read::<T, _>(comm, path)?;
            assert_eq!(a.nnz() as usize, expected.nnz(), "{} on {p}", path.display());
            let ranges = RowRanges::even(n, p, 1);
            let rows = ranges.of(comm.rank()).map(|i| expected.row(i));
            let own: Vec<u32> = ranges.of(comm.rank()).map(|i| i as u32).collect();
            let b = DistributedCsr::from_rows(comm, n, own, rows)?;
            assert_eq!(a.local(), b.local());
            let (mut y, mut z) = (vec![T::default(); a.rows().own().len()], vec![T::default(); a.rows().own().len()]);
            a.apply(T::rounded(1.0, 0.0), &a.own_entries(&x), T::default(), &mut y)?;
            b.apply(T::rounded(1.0, 0.0), &b.own_entries(&x), T::default(), &mut z)?;
            assert_eq!(y, z);
            Ok(())
        });
    }
}

#[test]
fn matrices_are_those_of_the_serial_reader() {
    let folder = tempfile::tempdir().unwrap();
    let real = "%%MatrixMarket matrix coordinate real general\n% words\n\n5 5 8\n1 1 4\n5 2 -1.5e0\n% between\n2 1 0.1\n2 1 0.2\n\n2 1 0.3\n3 3 7\n4 5 1d2\n4 4 1";
    same::<f64>(&file(&folder, "a.mtx", real.as_bytes()));
    same::<f64>(&file(&folder, "crlf.mtx", real.replace('\n', "\r\n").as_bytes()));
    same::<f32>(&file(&folder, "single.mtx", real.as_bytes()));
    same::<f64>(&file(&folder, "bom.mtx", &[b"\xEF\xBB\xBF", real.as_bytes()].concat()));
    same::<f64>(&file(&folder, "a.mtx.gz", &packed(real.as_bytes())));
    let kinds = [
        ("real symmetric", "4 4 5\n1 1 4\n2 1 -1\n3 3 2\n4 1 5\n4 4 1\n"),
        ("integer general", "2 2 2\n1 2 3\n2 1 -7\n"),
        ("pattern symmetric", "3 3 2\n2 1\n3 3\n"),
        ("real skew-symmetric", "3 3 2\n2 1 4\n3 2 -1\n"),
        ("pattern general", "1 1 0\n"),
    ];
    for (kind, body) in kinds {
        let text = format!("%%MatrixMarket matrix coordinate {kind}\n{body}");
        same::<f64>(&file(&folder, "kind.mtx", text.as_bytes()));
        same::<c64>(&file(&folder, "kind.mtx", text.as_bytes()));
    }
    let complex = "%%MatrixMarket matrix coordinate complex hermitian\n3 3 3\n1 1 1 0\n2 1 1 -2\n3 3 4 0\n";
    same::<c64>(&file(&folder, "c.mtx", complex.as_bytes()));
    // Larger than several pieces of text: duplicates, in an order that only the file gives.
    let mut large = String::from("%%MatrixMarket matrix coordinate real general\n300 300 220000\n");
    let mut state = 1u32;
    for _ in 0..220_000 {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        let (i, j) = ((state >> 8) % 300 + 1, (state >> 20) % 300 + 1);
        let _ = writeln!(large, "{i} {j} {:.15e}", f64::from(state) / 7e9);
    }
    assert!(large.len() > 5 << 20);
    same_on::<f64>(&file(&folder, "large.mtx", large.as_bytes()), &[1, 3]);
    same_on::<f64>(&file(&folder, "large.mtx.gz", &packed(large.as_bytes())), &[3]);
}

/// The error of the serial reader, on every rank.
fn fails(path: &Path) {
    let expected = matrix_market::read_csr::<f64>(path).unwrap_err();
    for p in RANKS {
        for result in run(p, |comm| read::<f64, _>(comm, path).map(|_| ())) {
            match result {
                Err(Error::OnRank { kind: FaultKind::Input, message, .. }) => {
                    assert_eq!(message, expected.to_string(), "{p} ranks");
                }
                other => panic!("{p} ranks: {other:?}, not {expected}"),
            }
        }
    }
}

#[test]
fn errors_are_those_of_the_serial_reader() {
    let folder = tempfile::tempdir().unwrap();
    let bodies = [
        "3 3 4\n1 1 1\n2 2 1\n3 3 1\n",
        "3 3 2\n1 1 1\n2 2 1\n3 3 1\n",
        "3 3 2\n1 1 1\n2 2 1\n% a comment\n\n3 3 nonsense\n",
        "3 3 3\n1 1 1\n2 2 1\n3 4 1\n",
        "3 3 3\n1 1 1\n0 2 1\n3 3 1\n",
        "3 3 3\n1 1 nan\n2 2 1\n3 3 1\n",
        "3 3 3\n1 1 1\n2 2 1e999\n3 3 inf\n",
        "3 3 3\n1 1 1\n% here\n2 2\n3 3 1\n",
        "3 3 5\n1 1 1\n2 2 1\n3 3 1\n1 2 1\n1 3 x",
        "3 3 x\n",
        "3 3 3\n1 1 1\n2 2 1\n3 3",
    ];
    for body in bodies {
        let text = format!("%%MatrixMarket matrix coordinate real general\n{body}");
        fails(&file(&folder, "bad.mtx", text.as_bytes()));
        fails(&file(&folder, "bad.mtx.gz", &packed(text.as_bytes())));
    }
    fails(&file(&folder, "upper.mtx", b"%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 1\n1 2 1\n"));
    fails(&file(&folder, "empty.mtx", b""));
    fails(&file(&folder, "zip.mtx", b"PK\x03\x04 and more"));
    let cut = packed(b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 1\n");
    fails(&file(&folder, "cut.mtx.gz", &cut[..cut.len() - 6]));
    fails(&folder.path().join("none.mtx"));
    fails(&file(&folder, "complex.mtx", b"%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n"));
    let mut long = String::from("%%MatrixMarket matrix coordinate real general\n9 9 300000\n");
    (0..300_000).for_each(|k| long.push_str(if k == 250_000 { "9 10 1\n" } else { "9 9 0.123456789012345\n" }));
    fails(&file(&folder, "long.mtx", long.as_bytes()));
    let told = |text: &str, says: &str| {
        let path = file(&folder, "shape.mtx", text.as_bytes());
        for result in run(3, |comm| read::<f64, _>(comm, &path).map(|_| ())) {
            assert!(matches!(&result, Err(Error::OnRank { message, .. }) if message.contains(says)), "{result:?}");
        }
    };
    told("%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n", "shape.mtx: the matrix is 2 × 3");
    told("%%MatrixMarket matrix array real general\n1 1\n1\n", "ranks read coordinate files");
}

#[test]
fn a_monitor_that_breaks_ends_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 1\n");
    let results = run(3, |comm| {
        let head = read_head_on_all(comm, &path)?;
        let cancel = bt_formats::CancelToken::new();
        if comm.rank() == 2 {
            cancel.cancel();
        }
        DistributedCsr::<f64, _>::read(comm, &path, &head, &RowRanges::even(2, 3, 1), &mut cancel.clone()).map(|_| ())
    });
    assert!(
        results.iter().all(|r| matches!(r, Err(Error::OnRank { rank: 2, kind: FaultKind::Stopped, .. }))),
        "{results:?}"
    );
}

#[test]
fn right_hand_sides_are_those_of_the_serial_reader() {
    let folder = tempfile::tempdir().unwrap();
    let n = 7;
    let mut array = format!("%%MatrixMarket matrix array real general\n% b\n{n} 2\n");
    for k in 0..2 * n {
        let _ = write!(array, "{}\n{}", k as f64 / 3.0, if k % 3 == 0 { "% c\n\n" } else { "" });
    }
    let coordinate = format!("%%MatrixMarket matrix coordinate integer general\n{n} 2 3\n1 1 5\n7 2 -1\n1 1 2\n");
    for text in [array, coordinate] {
        for path in [file(&folder, "b.mtx", text.as_bytes()), file(&folder, "b.mtx.gz", &packed(text.as_bytes()))] {
            let expected = matrix_market::read_dense::<f64>(&path).unwrap();
            for p in RANKS {
                succeed(p, |comm| {
                    let head = read_head_on_all(comm, &path)?;
                    let ranges = RowRanges::even(n, p, 2);
                    let columns = read_columns_on_all::<f64>(comm, &path, &head, &ranges, &mut ())?.0;
                    for (j, column) in columns.iter().enumerate() {
                        let own: Vec<f64> = ranges.of(comm.rank()).map(|i| expected[(i, j)]).collect();
                        assert_eq!(*column, own);
                        let wanted: Vec<u32> = (0..n as u32).rev().filter(|g| *g as usize % p != comm.rank()).collect();
                        let found = entries_from_ranges(comm, &ranges, column, &wanted)?;
                        let expected: Vec<f64> = wanted.iter().map(|&g| expected[(g as usize, j)]).collect();
                        assert_eq!(found, expected);
                    }
                    Ok(())
                });
            }
        }
    }
    for body in ["3 1\n1\n2\n", "3 1\n1\n2\n3\n4\n", "3 1\n1\ntwo\n3\n"] {
        let path = file(&folder, "bad.mtx", format!("%%MatrixMarket matrix array real general\n{body}").as_bytes());
        let expected = matrix_market::read_dense::<f64>(&path).unwrap_err().to_string();
        for p in RANKS {
            let results = run(p, |comm| {
                let head = read_head_on_all(comm, &path)?;
                read_columns_on_all::<f64>(comm, &path, &head, &RowRanges::even(3, p, 1), &mut ()).map(|_| ())
            });
            for result in results {
                assert!(matches!(&result, Err(Error::OnRank { message, .. }) if *message == expected), "{result:?}");
            }
        }
    }
}

#[test]
fn what_ranks_write_is_what_they_have() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.mtx");
    for p in RANKS {
        let n = 11;
        let whole: [Vec<c64>; 2] = [vector(n, 1), vector(n, 2)];
        succeed(p, |comm| {
            // Rows anywhere, backwards.
            let own: Vec<u32> = (0..n as u32).rev().filter(|g| (g * 7) as usize % p == comm.rank()).collect();
            let rows = Rows::new(comm, n, own.clone())?;
            let columns: Vec<Vec<c64>> = whole.iter().map(|x| own.iter().map(|&g| x[g as usize]).collect()).collect();
            Target::create(comm, &path)?.write(comm, &rows, &columns, "by\nranks")?;
            let real: Vec<Vec<f64>> = columns.iter().map(|x| x.iter().map(|z| z.re).collect()).collect();
            Target::create(comm, &folder.path().join("re.mtx"))?.write(comm, &rows, &real, "")
        });
        let read = matrix_market::read_dense::<c64>(&path).unwrap();
        let real = matrix_market::read_dense::<f64>(folder.path().join("re.mtx")).unwrap();
        for (j, column) in whole.iter().enumerate() {
            assert!((0..n).all(|i| read[(i, j)] == column[i] && real[(i, j)] == column[i].re), "{p} ranks");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}

/// A table has the text of one process, with rows anywhere and ranks without any; lines too many for one piece follow one another.
#[test]
fn tables_are_those_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    let n = 11;
    let whole: [Vec<c64>; 2] = [vector(n, 1), vector(n, 2)];
    let (mut complex, mut real) = (String::from("row,x1_re,x1_im,x2_re,x2_im\n"), String::from("row,x1\n"));
    for (i, (x, y)) in whole[0].iter().zip(&whole[1]).enumerate() {
        let _ = writeln!(complex, "{i},{:e},{:e},{:e},{:e}", x.re, x.im, y.re, y.im);
        let _ = writeln!(real, "{i},{:e}", 1e-300 * x.re);
    }
    for p in RANKS {
        succeed(p, |comm| {
            let own: Vec<u32> = (0..n as u32).rev().filter(|g| (g * 7) as usize % p == comm.rank()).collect();
            let rows = Rows::new(comm, n, own.clone())?;
            let columns: Vec<Vec<c64>> = whole.iter().map(|x| own.iter().map(|&g| x[g as usize]).collect()).collect();
            Target::create(comm, &path)?.write_table(comm, &rows, &columns)?;
            let tiny: Vec<f64> = columns[0].iter().map(|z| 1e-300 * z.re).collect();
            Target::create(comm, &folder.path().join("re.csv"))?.write_table(comm, &rows, &[tiny])
        });
        assert_eq!(fs::read_to_string(&path).unwrap(), complex, "{p} ranks");
        assert_eq!(fs::read_to_string(folder.path().join("re.csv")).unwrap(), real, "{p} ranks");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
    let counts = [40_000, 0, 70_000];
    succeed(3, |comm| {
        let rank = comm.rank();
        Target::create(comm, &path)?.write_lines(comm, "rank,line\n", counts[rank], |i, text| {
            let _ = writeln!(text, "{rank},{i:>30}");
        })
    });
    let expected = counts.iter().enumerate().flat_map(|(rank, &count)| (0..count).map(move |i| (rank, i)));
    let text = fs::read_to_string(&path).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("rank,line"));
    assert!(lines.eq(expected.map(|(rank, i)| format!("{rank},{i:>30}"))));
}

#[test]
fn what_cannot_be_written_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "x.mtx", b"old");
    let results = run(3, |comm| {
        let rows = Rows::new(comm, 3, vec![comm.rank() as u32])?;
        let target = Target::create(comm, &path)?;
        assert_eq!(target.temporary().is_some(), comm.rank() == 0);
        target.write(comm, &rows, &[vec![if comm.rank() == 1 { f64::NAN } else { 1.0 }]], "")
    });
    let table = run(3, |comm| {
        let rows = Rows::new(comm, 3, vec![comm.rank() as u32])?;
        Target::create(comm, &path)?.write_table(comm, &rows, &[vec![if comm.rank() == 1 { f64::NAN } else { 1.0 }]])
    });
    for result in results.into_iter().chain(table) {
        assert!(
            matches!(&result, Err(Error::OnRank { rank: 1, message, .. }) if message.contains("row 1 (from 0) of x is NaN")),
            "{result:?}"
        );
    }
    assert_eq!((fs::read(&path).unwrap(), fs::read_dir(folder.path()).unwrap().count()), (b"old".to_vec(), 1));
    for bad in [folder.path().to_owned(), folder.path().join("none/x.mtx"), PathBuf::from("/dev/null")] {
        let results = run(2, |comm| Target::create(comm, &bad).map(|_| ()));
        assert!(results.iter().all(|r| matches!(r, Err(Error::OnRank { rank: 0, .. }))), "{results:?}");
    }
}

#[test]
fn notes_on_a_file_are_those_of_the_serial_reader() {
    let folder = tempfile::tempdir().unwrap();
    let mut integers = String::from("%%MatrixMarket matrix coordinate integer general\n% words\n40 40 40\n");
    let mut tiny = String::from("%%MatrixMarket matrix coordinate real symmetric\n40 40 40\n");
    let mut vector = String::from("%%MatrixMarket matrix array real general\n40 1\n");
    for i in 1..=40 {
        let _ = writeln!(integers, "{i} {i} {}", if i % 7 == 5 { "9007199254740993" } else { "9007199254740992" });
        let _ = writeln!(tiny, "{i} {i} {}", if i == 23 { "1e-400" } else { "1" });
        let _ = writeln!(vector, "{}", if i > 30 { "1e-330" } else { "2" });
    }
    let plain = "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1e-300\n";
    let told = |name: &str, text: &str, count: usize| {
        let path = file(&folder, name, text.as_bytes());
        let wanted = bt_formats::RhsInFile::Skip;
        let expected = bt_formats::read_system(&path, wanted, &mut ()).unwrap().notes;
        assert_eq!(expected.len(), count, "{expected:?}");
        for p in RANKS {
            for notes in succeed(p, |comm| {
                let head = read_head_on_all(comm, &path)?;
                let ranges = RowRanges::even(head.header.nrows, p, 1);
                Ok(DistributedCsr::<f64, _>::read(comm, &path, &head, &ranges, &mut ())?.1)
            }) {
                assert_eq!(notes, expected, "{name} on {p}");
            }
        }
    };
    told("integers.mtx", &integers, 1);
    told("tiny.mtx", &tiny, 1);
    told("plain.mtx", plain, 0);
    let path = file(&folder, "b.mtx", vector.as_bytes());
    let accept = |_: usize, _: usize| Ok(());
    let expected = bt_formats::read_columns(&path, &accept, &mut ()).unwrap().notes;
    assert_eq!(expected.len(), 1);
    for p in RANKS {
        for notes in succeed(p, |comm| {
            let head = read_head_on_all(comm, &path)?;
            Ok(read_columns_on_all::<f64>(comm, &path, &head, &RowRanges::even(40, p, 1), &mut ())?.1)
        }) {
            assert_eq!(notes, expected, "on {p}");
        }
    }
}
