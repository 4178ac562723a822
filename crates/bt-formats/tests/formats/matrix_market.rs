//! What is written is read back bit by bit, by any path, in any scalar; long files, compressed files, progress.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use bt_formats::matrix_market::{
    Field, Header, Layout, Symmetry, read, read_csr, read_dense, read_from, read_header, read_with, write_csr,
    write_csr_file, write_dense, write_dense_file,
};
use bt_formats::{Coo, Csr, Error, FileMatrix, Matrix, Progress, Scalar, c32, c64, read_matrix, write_atomically};
use faer::Mat;
use proptest::prelude::*;

/// Bits of both parts, so that −0 and 0 differ.
fn bits<T: Scalar>(values: &[T]) -> Vec<(u64, u64)> {
    let part = |x: f64| x.to_bits();
    values.iter().map(|v| v.cast::<c64>()).map(|v| (part(v.re), part(v.im))).collect()
}

fn round_trip<T: Scalar>(entries: Vec<(usize, usize, T)>) {
    let mut coo = Coo::new(40, 30).unwrap();
    let mut seen = std::collections::HashSet::new();
    for (i, j, v) in entries {
        if seen.insert((i, j)) {
            coo.push(i, j, v).unwrap();
        }
    }
    let a = coo.to_csr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.mtx", "a.mtx.gz"] {
        let path = folder.path().join(name);
        write_csr_file(&path, &a, &["round trip".into(), "two\nlines".into()]).unwrap();
        let b = read_csr::<T>(&path).unwrap();
        assert_eq!((a.row_ptr(), a.col_idx(), bits(a.values())), (b.row_ptr(), b.col_idx(), bits(b.values())));
        assert_eq!(read_header(&path).unwrap().comments, ["round trip", "two", "lines"]);
    }
    let dense = a.to_dense();
    let path = folder.path().join("d.mtx.gz");
    write_dense_file(&path, dense.as_ref(), &[]).unwrap();
    let back = read_dense::<T>(&path).unwrap();
    for j in 0..30 {
        for i in 0..40 {
            assert_eq!(bits(&[dense[(i, j)]]), bits(&[back[(i, j)]]));
        }
    }
    // The coordinate file as a right-hand side, up to the sign of zeros.
    assert_eq!(read_dense::<T>(folder.path().join("a.mtx")).unwrap(), dense);
}

fn places<V: Strategy>(value: V) -> impl Strategy<Value = Vec<(usize, usize, V::Value)>> {
    prop::collection::vec((0..40usize, 0..30usize, value), 0..60)
}

fn finite64() -> impl Strategy<Value = f64> {
    any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |x| x.is_finite())
}

fn finite32() -> impl Strategy<Value = f32> {
    any::<u32>().prop_map(f32::from_bits).prop_filter("finite", |x| x.is_finite())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn f64_round_trip(e in places(finite64())) { round_trip(e) }
    #[test]
    fn f32_round_trip(e in places(finite32())) { round_trip(e) }
    #[test]
    fn c64_round_trip(e in places((finite64(), finite64()).prop_map(|(re, im)| c64::new(re, im)))) { round_trip(e) }
    #[test]
    fn c32_round_trip(e in places((finite32(), finite32()).prop_map(|(re, im)| c32::new(re, im)))) { round_trip(e) }

    /// Whatever the bytes, the answer is a matrix or an error.
    #[test]
    fn no_text_panics(
        banner in "(%%MatrixMarket matrix (coordinate|array) (real|integer|complex|pattern) (general|symmetric|skew-symmetric|hermitian)\n)?",
        body in prop::collection::vec("[0-9]{1,2}|-|\\.|[eEdD]|nan|inf|%|\t|\r| | |\n|\n|\\PC", 0..40),
    ) {
        let text = banner + &body.concat();
        let _ = read_from(text.as_bytes(), "case");
        let _ = bt_formats::harwell_boeing::read_from(text.as_bytes(), "case");
    }
}

#[test]
fn written_numbers_are_short() {
    let mut a = Coo::new(2, 2).unwrap();
    for (i, j, v) in [(0, 0, 0.1f32), (0, 1, 16777216.0), (1, 1, 1e-30)] {
        a.push(i, j, v).unwrap();
    }
    let mut text = Vec::new();
    write_csr(&a.to_csr().unwrap(), &mut text, &[]).unwrap();
    let expected = "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 0.1\n1 2 16777216\n2 2 1e-30\n";
    assert_eq!(String::from_utf8(text).unwrap(), expected);

    let mut text = Vec::new();
    write_dense(Mat::<c64>::from_fn(1, 2, |_, j| c64::new(j as f64, -0.5)).as_ref(), &mut text, &[]).unwrap();
    let expected = "%%MatrixMarket matrix array complex general\n1 2\n0 -0.5\n1 -0.5\n";
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}

#[test]
fn nan_is_not_written() {
    let a = Mat::from_fn(2, 1, |i, _| if i == 1 { f64::NAN } else { 1.0 });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.mtx");
    let e = write_dense_file(&path, a.as_ref(), &[]).unwrap_err();
    assert!(e.to_string().contains("(2, 1)"), "{e}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A banded matrix of `n` rows as text in column order, some entries twice, and as triplets.
fn long_file(n: u32, symmetry: &str) -> (String, Coo<f64>) {
    let mut text = String::new();
    let mut coo = Coo::new(n as usize, n as usize).unwrap();
    let mut count = 0;
    for j in 0..n {
        for i in [j, j + 1, j + 7, j + 7, (j * 7919) % n] {
            if i >= n || (symmetry != "general" && i < j) {
                continue;
            }
            let v = f64::from(i) / f64::from(j + 3);
            writeln!(text, "{} {} {v}", i + 1, j + 1).unwrap();
            count += 1;
            coo.push(i as usize, j as usize, v).unwrap();
            if symmetry != "general" && i != j {
                coo.push(j as usize, i as usize, v).unwrap();
            }
        }
    }
    (format!("%%MatrixMarket matrix coordinate real {symmetry}\n{n} {n} {count}\n{text}"), coo)
}

#[test]
fn long_files_by_any_number_of_threads() {
    for symmetry in ["general", "symmetric"] {
        let (text, coo) = long_file(150_000, symmetry);
        assert!(text.len() > 9 << 20, "several chunks, {}", text.len());
        let expected = coo.to_csr().unwrap();
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let FileMatrix::Real(a) = pool.install(|| read_from(text.as_bytes(), "case")).unwrap() else { panic!() };
            assert_eq!((a.row_ptr(), a.col_idx()), (expected.row_ptr(), expected.col_idx()));
            assert_eq!(bits(a.values()), bits(expected.values()));
        }
    }
}

#[test]
fn progress_reaches_the_end_and_can_stop() {
    let (text, _) = long_file(150_000, "general");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, &text).unwrap();
    let mut steps = Vec::new();
    let mut watch = |p: Progress| {
        let Progress::Step { phase: "read", done, total } = p else { panic!("{p:?}") };
        steps.push((done, total));
        ControlFlow::Continue(())
    };
    read_with(&file, &mut watch).unwrap();
    assert!(steps.len() > 1 && steps.is_sorted());
    assert_eq!(steps.last(), Some(&(text.len(), text.len())));

    let mut stop = |_: Progress| ControlFlow::Break(());
    let Err(Error::Io { file: named, source }) = read_with(&file, &mut stop) else { panic!() };
    assert_eq!((named.as_path(), source.kind()), (file.path(), std::io::ErrorKind::Interrupted));
}

#[test]
fn headers() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, "%%MatrixMarket matrix array complex hermitian\n% one\n\n%two \n3 3\n1 0\n").unwrap();
    let expected = Header {
        layout: Layout::Array,
        field: Field::Complex,
        symmetry: Symmetry::Hermitian,
        nrows: 3,
        ncols: 3,
        entries: 6,
        comments: vec!["one".into(), "two".into()],
    };
    assert_eq!(read_header(&file).unwrap(), expected);
}

#[test]
fn compressed_files_need_no_name() {
    // Two gzip members, one after the other, under a name that says nothing.
    use std::io::Write as _;
    let mut packed = Vec::new();
    for part in ["%%MatrixMarket matrix coordinate pattern gen", "eral\n2 2 1\n2 1\n"] {
        let mut z = flate2::write::GzEncoder::new(&mut packed, flate2::Compression::fast());
        z.write_all(part.as_bytes()).unwrap();
        z.finish().unwrap();
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, &packed).unwrap();
    let FileMatrix::Real(a) = read(&file).unwrap() else { panic!() };
    assert_eq!((a.nnz(), a.get(1, 0)), (1, 1.0));
    assert_eq!(read_matrix(&file).unwrap(), FileMatrix::Real(a));
}

#[test]
fn a_sparse_giant_is_no_right_hand_side() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, "%%MatrixMarket matrix coordinate real general\n1000000 1000000 1\n1 1 1\n").unwrap();
    assert!(matches!(read_dense::<f64>(&file), Err(Error::TooLarge { .. })));
    assert_eq!(read_csr::<f64>(&file).unwrap().nnz(), 1);
}

fn content(path: &std::path::Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn output_is_complete_or_absent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.txt");
    let fail = |out: &mut dyn std::io::Write| {
        out.write_all(&vec![b'x'; 100_000])?;
        Err(std::io::Error::other("no more"))
    };
    assert!(write_atomically(&path, fail).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    write_atomically(&path, |out| out.write_all(b"old")).unwrap();
    let e = write_atomically(&path, fail).unwrap_err();
    assert!(e.to_string().contains("x.txt") && e.to_string().contains("no more"), "{e}");
    assert_eq!(content(&path), "old");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    write_atomically(&path, |out| out.write_all(b"new")).unwrap();
    assert_eq!(content(&path), "new");
    let missing = folder.path().join("none/x.txt");
    assert!(matches!(write_atomically(&missing, |_| Ok(())), Err(Error::Io { file, .. }) if file == missing));
    assert!(write_atomically(folder.path(), |_| Ok(())).is_err());
}

#[cfg(unix)]
#[test]
fn links_permissions_and_devices() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let (file, link, dangling) = (folder.path().join("f"), folder.path().join("l"), folder.path().join("d"));
    std::fs::write(&file, "old").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
    symlink("f", &link).unwrap();
    write_atomically(&link, |out| out.write_all(b"new")).unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(content(&file), "new");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);

    symlink("target", &dangling).unwrap();
    write_atomically(&dangling, |out| out.write_all(b"made")).unwrap();
    assert_eq!(content(&folder.path().join("target")), "made");

    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o440)).unwrap();
    assert!(write_atomically(&file, |out| out.write_all(b"no")).is_err());
    assert_eq!(content(&file), "new");

    write_atomically("/dev/null", |out| out.write_all(b"gone")).unwrap();
    let full = std::path::Path::new("/dev/full");
    if full.exists() {
        // One byte fails at the flush, many while writing.
        for n in [1, 1 << 20] {
            let e = write_atomically(full, |out| out.write_all(&vec![b'x'; n])).unwrap_err();
            let Error::Io { file, source } = e else { panic!() };
            assert_eq!((file.as_path(), source.raw_os_error()), (full, Some(28)));
        }
        let a = Csr::<f64>::new(1, 1, vec![0, 1], vec![0], vec![1.0]).unwrap();
        assert!(write_csr_file(full, &a, &[]).is_err());
    }
}
