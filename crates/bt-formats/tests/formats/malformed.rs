//! Files that are not what Matrix Market demands: every one is read as the verdict says, or refused with the right
//! kind and line. The same cases live in `../shared/data/malformed`, whose index is followed where it is present.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use bt_formats::matrix_market::{read, read_csr, read_dense, read_from, read_header};
use bt_formats::{Error, FileMatrix, ParseKind, Result, RhsInFile, c64, read_columns_from, read_system_from};

/// Rows of a dense real matrix, or why not.
fn rows(text: &[u8]) -> Result<Vec<Vec<f64>>> {
    Ok(match read_from(text, "case")? {
        FileMatrix::Real(a) => {
            let d = a.to_dense();
            (0..d.nrows()).map(|i| (0..d.ncols()).map(|j| d[(i, j)]).collect()).collect()
        }
        FileMatrix::Complex(_) => panic!("complex"),
    })
}

/// Kind, line and message of a refusal.
fn refusal(text: &[u8]) -> (ParseKind, u64, String) {
    match read_from(text, "case") {
        Err(Error::Parse { kind, line, message, file }) => {
            assert_eq!(file, Path::new("case"));
            (kind, line, message)
        }
        other => panic!("{}: {other:?}", String::from_utf8_lossy(text)),
    }
}

fn real(body: &str) -> String {
    format!("%%MatrixMarket matrix coordinate real general\n{body}")
}

#[test]
fn accepted_without_complaint() {
    let diag = vec![vec![1.0, 0.0], vec![0.0, 2.0]];
    let plain = real("2 2 2\n1 1 1\n2 2 2\n");
    for (case, text) in [
        ("plain", plain.clone()),
        ("crlf", plain.replace('\n', "\r\n")),
        ("no last line end", plain.trim_end().into()),
        ("comments and blanks", real("% c\n%\n\n   \n%%x\n2 2 2\n1 1 1\n2 2 2\n")),
        ("blank lines in the body", real("2 2 2\n\n1 1 1\n  \t\n2 2 2\n\n\n")),
        ("comments in the body", real("2 2 2\n% a\n1 1 1\n2 2 2\n  %b\n")),
        ("spaces and tabs", real("  2\t2   2  \n\t1  1\t1.0\n 2 2 2.0  \n")),
        ("banner case", plain.replace("matrix coordinate real general", "MATRIX Coordinate REAL General")),
        ("byte order mark", format!("\u{feff}{plain}")),
        ("plus signs", real("+2 2 2\n+1 1 +1e+0\n2 +2 +2\n")),
        ("leading zeros", real("02 2 0000000000000000000000002\n0000000000000000001 1 1\n2 2 0002\n")),
        ("Fortran exponents", real("2 2 2\n1 1 0.1D1\n2 2 2d+0\n")),
        ("duplicates are summed", real("2 2 3\n1 1 3\n2 2 2\n1 1 -2\n")),
        ("integer", "%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 1 1\n2 2 +2\n".into()),
        ("array", "%%MatrixMarket matrix array real general\n2 2\n1\n0\n 0 \n2".into()),
        ("array with blank lines", "%%MatrixMarket matrix array integer general\n\n2 2\n\n1\n0\n\n0\n2\n\n".into()),
    ] {
        assert_eq!(rows(text.as_bytes()).unwrap_or_else(|e| panic!("{case}: {e}")), diag, "{case}");
    }
}

#[test]
fn accepted_with_their_meaning() {
    let read = |text: &str| rows(text.as_bytes()).unwrap();
    let pattern = read("%%MatrixMarket matrix coordinate pattern general\n2 3 2\n1 1\n1 3\n");
    assert_eq!(pattern, [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]);
    let symmetric = read("%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 4\n2 1 -1\n2 2 4\n3 3 4\n");
    assert_eq!(symmetric, [[4.0, -1.0, 0.0], [-1.0, 4.0, 0.0], [0.0, 0.0, 4.0]]);
    let skew = read("%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 5\n3 2 -7\n");
    assert_eq!(skew, [[0.0, -5.0, 0.0], [5.0, 0.0, 7.0], [0.0, -7.0, 0.0]]);
    let columns = read("%%MatrixMarket matrix array real general\n2 3\n1\n2\n3\n4\n5\n6\n");
    assert_eq!(columns, [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]);
    let triangle = read("%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n");
    assert_eq!(triangle, [[1.0, 2.0], [2.0, 3.0]]);
    let strict = read("%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n");
    assert_eq!(strict, [[0.0, -1.0, -2.0], [1.0, 0.0, -3.0], [2.0, 3.0, 0.0]]);
    let big = read("%%MatrixMarket matrix coordinate integer general\n1 2 2\n1 1 -3\n1 2 9007199254740993\n");
    assert_eq!(big, [[-3.0, 9007199254740992.0]]);
    assert_eq!(read(&real("0 0 0\n")), Vec::<Vec<f64>>::new());
    assert_eq!(read(&real("3 3 0\n")), vec![vec![0.0; 3]; 3]);
    assert_eq!(read("%%MatrixMarket matrix array real general\n0 3\n"), Vec::<Vec<f64>>::new());
}

#[test]
fn complex_files() {
    let text = b"%%MatrixMarket matrix coordinate complex hermitian\n2 2 3\n1 1 1 0\n2 1 2 3\n2 2 4 0\n";
    let Ok(FileMatrix::Complex(a)) = read_from(&text[..], "case") else { panic!() };
    assert_eq!((a.get(1, 0), a.get(0, 1)), (c64::new(2.0, 3.0), c64::new(2.0, -3.0)));
    let text = b"%%MatrixMarket matrix array complex skew-symmetric\n2 2\n2 3\n";
    let Ok(FileMatrix::Complex(a)) = read_from(&text[..], "case") else { panic!() };
    assert_eq!((a.get(1, 0), a.get(0, 1)), (c64::new(2.0, 3.0), c64::new(-2.0, -3.0)));

    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, text).unwrap();
    let refused = [read_csr::<f64>(&file).map(drop), read_dense::<f32>(&file).map(drop)];
    for r in refused {
        assert!(matches!(r, Err(Error::Parse { kind: ParseKind::Unsupported, line: 1, .. })), "{r:?}");
    }
    assert_eq!(read_dense::<c64>(&file).unwrap()[(0, 1)], c64::new(-2.0, -3.0));
}

#[test]
fn refused_with_kind_and_line() {
    use ParseKind::{
        BadBanner, BadEntry, BadNumber, BadSize, IndexOutOfRange, NonFinite, TooFewEntries, TooLarge, TooManyEntries,
        Unsupported,
    };
    let with = |banner: &str, body: &str| format!("%%MatrixMarket {banner}\n{body}");
    let coordinate = |symmetry: &str, body: &str| with(&format!("matrix coordinate {symmetry}"), body);
    for (case, text, kind, line, word) in [
        ("missing banner", "2 2 1\n1 1 1\n".into(), BadBanner, 1, "%%MatrixMarket"),
        ("one percent sign", "%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n".into(), BadBanner, 1, "%M"),
        ("vector", with("vector coordinate real general", "2 1\n1 1\n"), Unsupported, 1, "vector"),
        ("object", with("tensor coordinate real general", "2 1\n1 1\n"), BadBanner, 1, "tensor"),
        ("no field", coordinate("general", "1 1 1\n1 1 1\n"), BadBanner, 1, "4 words"),
        ("field", coordinate("float general", "1 1 1\n1 1 1\n"), BadBanner, 1, "float"),
        ("symmetry", coordinate("real triangular", "1 1 1\n1 1 1\n"), BadBanner, 1, "triangular"),
        ("layout", with("matrix dense real general", "1 1\n1\n"), BadBanner, 1, "dense"),
        ("a sixth word", coordinate("real general x", "1 1 1\n1 1 1\n"), BadBanner, 1, "6 words"),
        ("array pattern", with("matrix array pattern general", "1 1\n"), BadBanner, 1, "pattern"),
        ("skew pattern", coordinate("pattern skew-symmetric", "1 1 0\n"), BadBanner, 1, "pattern"),
        ("real hermitian", coordinate("real hermitian", "1 1 0\n"), BadBanner, 1, "hermitian"),
        ("empty file", String::new(), BadBanner, 1, "empty"),
        ("banner only", with("matrix coordinate real general", ""), BadSize, 1, "size line"),
        ("comments only", real("% x\n\n"), BadSize, 3, "size line"),
        ("two sizes", real("2 2\n1 1 1\n"), BadSize, 2, "3 numbers"),
        ("four sizes", real("% x\n2 2 1 1\n1 1 1\n"), BadSize, 3, "3 numbers"),
        ("size not a number", real("2 x 1\n1 1 1\n"), BadSize, 2, "\"x\""),
        ("negative size", real("2 -2 1\n1 1 1\n"), BadSize, 2, "negative"),
        ("size beyond 64 bits", real("99999999999999999999999 2 1\n1 1 1\n"), BadSize, 2, "64 bits"),
        ("symmetric rectangle", coordinate("real symmetric", "2 3 1\n1 1 4\n"), BadSize, 2, "square"),
        ("huge sizes", real("999999999999 999999999999 1\n1 1 1\n"), TooLarge, 2, "999999999999"),
        ("empty giant", real("4000000000 4000000000 1\n1 1 1\n"), TooLarge, 2, "4000000000"),
        ("huge array", with("matrix array real general", "4000000000 4000000000\n1\n"), TooFewEntries, 3, "1 of"),
        ("huge count", real("2 2 999999999999\n1 1 1\n2 2 1\n"), TooFewEntries, 4, "2 of 999999999999"),
        ("pattern with values", coordinate("pattern general", "2 2 2\n1 1 1\n2 2 1\n"), BadEntry, 3, "2 numbers"),
        ("above the diagonal", coordinate("real symmetric", "2 2 3\n1 1 4\n1 2 -1\n2 2 4\n"), BadEntry, 4, "(1, 2)"),
        ("both triangles", coordinate("real symmetric", "2 2 2\n2 1 -1\n1 2 -1\n"), BadEntry, 4, "(1, 2)"),
        ("skew diagonal", coordinate("real skew-symmetric", "2 2 2\n1 1 3\n2 1 5\n"), BadEntry, 3, "(1, 1)"),
        ("hermitian diagonal", coordinate("complex hermitian", "1 1 1\n1 1 1 2\n"), BadEntry, 3, "(1, 1)"),
        ("too few values", with("matrix array real general", "2 2\n1\n2\n3\n"), TooFewEntries, 5, "3 of 4"),
        ("too many values", with("matrix array real general", "1 2\n1\n2\n\n3\n"), TooManyEntries, 6, "2 values"),
        ("two values a line", with("matrix array real general", "1 2\n1 2\n"), BadEntry, 3, "1 numbers"),
        ("index zero", real("2 2 1\n0 1 1\n"), IndexOutOfRange, 3, "row 0"),
        ("index beyond", real("2 2 2\n1 1 1\n3 1 1\n"), IndexOutOfRange, 4, "row 3"),
        ("column beyond", real("2 2 1\n1 3 1\n"), IndexOutOfRange, 3, "column 3"),
        ("index negative", real("2 2 1\n-1 1 1\n"), IndexOutOfRange, 3, "row -1"),
        ("index of 30 digits", real("2 2 1\n1 111111111111111111111111111111 1\n"), IndexOutOfRange, 3, "column 1111"),
        ("index with a fraction", real("2 2 1\n1.5 1 1\n"), BadNumber, 3, "1.5"),
        ("truncated", real("3 3 5\n1 1 1\n2 2 2\n3 3 3\n"), TooFewEntries, 5, "3 of 5"),
        ("cut in a line", real("2 2 2\n1 1 1\n2 2"), BadEntry, 4, "2 2"),
        ("too many entries", real("2 2 1\n1 1 1\n\n2 2 2\n"), TooManyEntries, 5, "1 entries"),
        ("garbage after the end", real("2 2 1\n1 1 1\nx\n"), TooManyEntries, 4, "1 entries"),
        ("none declared", real("2 2 0\n1 1 1\n"), TooManyEntries, 3, "0 entries"),
        ("extra token", real("2 2 1\n1 1 1 1\n"), BadEntry, 3, "3 numbers"),
        ("bad number", real("2 2 1\n1 1 1.2.3\n"), BadNumber, 3, "1.2.3"),
        ("hexadecimal", real("2 2 1\n1 1 0x10\n"), BadNumber, 3, "0x10"),
        ("decimal comma", real("2 2 1\n1 1 1,5\n"), BadNumber, 3, "1,5"),
        ("fraction in integer", coordinate("integer general", "1 1 1\n1 1 1.5\n"), BadNumber, 3, "integer"),
        ("NaN", real("2 2 2\n1 1 nan\n2 2 1\n"), NonFinite, 3, "nan"),
        ("infinity", real("2 2 2\n1 1 1\n2 2 -Inf\n"), NonFinite, 4, "-Inf"),
        ("overflow", real("1 1 1\n1 1 1e400\n"), NonFinite, 3, "1e400"),
        ("integer overflow", coordinate("integer general", &format!("1 1 1\n1 1 1{:0400}\n", 0)), NonFinite, 3, "f64"),
        ("imaginary NaN", coordinate("complex general", "1 1 1\n1 1 1 NaN\n"), NonFinite, 3, "NaN"),
    ] {
        let (found, at, message) = refusal(text.as_bytes());
        assert_eq!((found, at), (kind, line), "{case}: {message}");
        assert!(message.contains(word), "{case}: {message}");
    }
}

#[test]
fn bytes_that_are_not_text() {
    let garbage: Vec<u8> = (0..1024u32).map(|k| k as u8).collect();
    assert_eq!(refusal(&garbage).0, ParseKind::BadBanner);
    let mut text = real("% comment \n1 1 1\n1 1 1").into_bytes();
    text[55] = 0xff;
    assert!(read_from(&text[..], "case").is_ok());
    text.extend_from_slice(b"\xff\xfe");
    assert_eq!(refusal(&text).0, ParseKind::BadNumber);
    let (kind, _, message) = refusal(b"\xff\xfe%\0%\0M\0");
    assert!(kind == ParseKind::Unsupported && message.contains("UTF-16"), "{message}");
    assert_eq!(refusal(&vec![0u8; 100_000]).0, ParseKind::BadBanner);
}

#[test]
fn the_first_fault_counts_wherever_the_text_is_cut() {
    // Two faults many pieces apart, among blank lines; the second is reached first by another thread.
    let n = 200_000;
    let mut text = real(&format!("{n} {n} {n}\n"));
    let mut line = 2;
    let (mut first, mut second) = (0, 0);
    for k in 1..=n {
        line += 1;
        match k {
            60_001 => {
                first = line;
                writeln!(text, "{k} {k} 1.2.3").unwrap();
            }
            190_000 => {
                second = line;
                writeln!(text, "{k} 0 1").unwrap();
            }
            _ => writeln!(text, "{k} {k} {}", f64::from(k).sqrt()).unwrap(),
        }
        if k % 1000 == 0 {
            text.push('\n');
            line += 1;
        }
    }
    assert!(text.len() > 4_000_000);
    assert_eq!(refusal(text.as_bytes()), (ParseKind::BadNumber, first, "\"1.2.3\" is not a number".into()));
    let text = text.replace("1.2.3", "1.23");
    let (kind, at, _) = refusal(text.as_bytes());
    assert_eq!((kind, at), (ParseKind::IndexOutOfRange, second));
    let text = text.replace("190000 0 1", "190000 1 1");
    assert!(read_from(text.as_bytes(), "case").is_ok());
    // More or fewer declared: the count decides before or after the faults.
    let fewer = text.replacen(&format!("{n} {n} {n}\n"), &format!("{n} {n} 100000\n"), 1);
    let (kind, at, _) = refusal(fewer.as_bytes());
    assert_eq!((kind, at), (ParseKind::TooManyEntries, 2 + 100_000 + 100 + 1));
    let more = text.replacen(&format!("{n} {n} {n}\n"), &format!("{n} {n} {}\n", n + 1), 1);
    assert_eq!(refusal(more.as_bytes()).0, ParseKind::TooFewEntries);
}

#[test]
fn integers_that_are_rounded_are_counted() {
    let notes = |text: &str| read_system_from(text.as_bytes(), "case", RhsInFile::Skip, &mut ()).unwrap().notes;
    let head = "%%MatrixMarket matrix coordinate integer general\n";
    assert!(notes(&format!("{head}1 2 2\n1 1 9007199254740992\n1 2 -9007199254740994\n")).is_empty());
    let one = notes(&format!("{head}% c\n2 2 2\n1 1 5\n2 2 9007199254740993\n"));
    assert_eq!(one, ["an integer beyond 2^53, in line 5, was rounded to the nearest double"]);
    // Over several pieces of text; the first is in the second half.
    let mut text = format!("{head}100000 1 100000\n");
    for k in 1..=100_000u64 {
        let value = if k % 30_000 == 0 { (1 << 60) + 1 } else { k };
        writeln!(text, "{k} 1 {value}").unwrap();
    }
    let three = "3 integers beyond 2^53 were rounded to the nearest doubles, the first of them in line 30002";
    assert_eq!(notes(&text), [three]);
    let array = "%%MatrixMarket matrix array integer general\n2 1\n18014398509481985\n1\n";
    let columns = read_columns_from(array.as_bytes(), "case", &|_, _| Ok(()), &mut ()).unwrap();
    assert_eq!(columns.notes.len(), 1);
}

#[test]
fn numbers_below_the_range_are_counted() {
    let notes = |text: &str| read_system_from(text.as_bytes(), "case", RhsInFile::Skip, &mut ()).unwrap().notes;
    let real = "%%MatrixMarket matrix coordinate real general\n";
    // The least double, zeros with an exponent, and a number that is rounded up to the least double.
    assert!(notes(&format!("{real}1 4 4\n1 1 4.9e-324\n1 2 0.000e-400\n1 3 -0E5\n1 4 3e-324\n")).is_empty());
    let note = "a number below the range of doubles, in line 5, was read as 0";
    assert_eq!(notes(&format!("{real}% 1e-400 is none\n2 2 2\n1 1 5\n2 2 -1.5D-400\n")), [note]);
    let complex = "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1e-400 2e-330\n";
    let two = "2 numbers below the range of doubles were read as 0, the first of them in line 3";
    assert_eq!(notes(complex), [two]);
    let array = "%%MatrixMarket matrix array real general\n2 1\n% 1e-400 is none\n1\n1e-400\n";
    let columns = read_columns_from(array.as_bytes(), "case", &|_, _| Ok(()), &mut ()).unwrap();
    assert_eq!(columns.notes, [note]);
}

#[test]
fn arrays_with_a_triangle_too_many_are_explained() {
    let skew = "%%MatrixMarket matrix array real skew-symmetric\n3 3\n0\n1\n2\n0\n3\n0\n";
    let (kind, line, message) = refusal(skew.as_bytes());
    assert_eq!((kind, line), (ParseKind::TooManyEntries, 6));
    assert!(message.contains("the 3 values: a skew-symmetric array has those below the diagonal"), "{message}");
    let full = "%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n2\n3\n";
    let (_, _, message) = refusal(full.as_bytes());
    assert!(message.contains("on and below the diagonal"), "{message}");
}

#[test]
fn comments_cost_no_memory_and_have_an_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    let banner = "%%MatrixMarket matrix coordinate real general\n";
    std::fs::write(&path, format!("{banner}% first\n{}1 1 1\n1 1 2\n", "%\n".repeat(200_000))).unwrap();
    let comments = read_header(&path).unwrap().comments;
    assert!((40_000..50_000).contains(&comments.len()), "{}: they fill 1 MiB with their places", comments.len());
    assert_eq!(comments[0], "first");
    // 70 MiB of comments are no header.
    let line = format!("%{}\n", "x".repeat((1 << 16) - 2));
    let (kind, _, message) = refusal(format!("{banner}{}1 1 1\n1 1 2\n", line.repeat(1120)).as_bytes());
    assert_eq!(kind, ParseKind::BadSize);
    assert!(message.contains("no size line within 64 MiB"), "{message}");
}

#[test]
fn files_of_other_kinds_are_named() {
    let (kind, line, message) = refusal(b"PK\x03\x04\x14\0\0\0\x08\0");
    assert_eq!((kind, line), (ParseKind::Unsupported, 0));
    assert!(message.contains("a zip archive") && message.contains("unzip"), "{message}");
    // Packed once more.
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, b"\xFD7zXZ\0 and so on").unwrap();
    assert!(refusal(&packed.finish().unwrap()).2.contains("xz"));
}

#[test]
fn files_that_cannot_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().to_owned(), folder.path().join("missing.mtx")] {
        let Err(e @ Error::Io { .. }) = read(&path) else { panic!("{}", path.display()) };
        assert!(e.to_string().starts_with(&path.display().to_string()), "{e}");
    }
    let cut = folder.path().join("cut.mtx.gz");
    std::fs::write(&cut, [0x1f, 0x8b, 8, 0, 0]).unwrap();
    assert!(matches!(read(&cut), Err(Error::Io { .. })));
}

#[test]
fn the_shared_index() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/malformed");
    let Ok(mut index) = csv::Reader::from_path(folder.join("index.csv")) else {
        println!("skipped: ../shared is absent");
        return;
    };
    let mut seen = 0;
    for record in index.records() {
        let record = record.unwrap();
        let (name, verdict, expected, tolerated) = (&record[0], &record[2], &record[3], &record[4]);
        let path: PathBuf = folder.join(name);
        seen += 1;
        match read(&path) {
            Ok(_) => assert!(verdict == "accept" || tolerated.contains("accept"), "{name} was accepted: {expected}"),
            Err(e @ Error::Parse { kind, .. }) => {
                assert!(verdict == "reject", "{name}: {e}; expected {expected}");
                let kind = format!("{kind:?}");
                assert!(expected.starts_with(&kind) || tolerated.contains(&kind), "{name}: {e}; expected {expected}");
                assert!(e.to_string().contains(name), "{e}");
            }
            Err(e) => panic!("{name}: {e}"),
        }
        if name.starts_with("17_") || name.starts_with("18_") {
            let real = read_csr::<f64>(&path);
            assert!(matches!(real, Err(Error::Parse { kind: ParseKind::Unsupported, .. })), "{name}");
        }
    }
    assert!(seen >= 53);
}
