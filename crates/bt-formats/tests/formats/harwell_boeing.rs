//! Harwell–Boeing files: our own small ones, broken ones, and those of `../shared` against their contents.

use std::path::{Path, PathBuf};

use bt_formats::{
    Error, FileDense, FileMatrix, ParseKind, RhsInFile, System, c64, harwell_boeing, matrix_market, read_matrix,
    read_system_from,
};

fn ours(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

#[test]
fn skew_under_a_scale_factor_with_right_hand_side() {
    let Ok(FileMatrix::Real(a)) = harwell_boeing::read(ours("skew_scaled.rza")) else { panic!() };
    let expected = [[0.0, -5.0, 0.0], [5.0, 0.0, 7.0], [0.0, -7.0, 0.0]];
    for (i, row) in expected.iter().enumerate() {
        for (j, v) in row.iter().enumerate() {
            assert_eq!(a.get(i, j), *v, "({i}, {j})");
        }
    }
}

#[test]
fn hermitian_with_implied_decimals() {
    let Ok(FileMatrix::Complex(a)) = harwell_boeing::read(ours("hermitian.cha")) else { panic!() };
    assert_eq!((a.get(0, 0), a.get(1, 1)), (c64::new(1.0, 0.0), c64::new(4.0, 0.0)));
    assert_eq!((a.get(1, 0), a.get(0, 1)), (c64::new(2.0, 3.0), c64::new(2.0, -3.0)));
}

const SMALL: &str = "title
 3 1 1 1 0
RUA 2 2 3 0
(3I3) (3I3) (3F5.1)
  1  3  4
  1  2  2
  1.0  2.0  3.0
";

fn refusal(text: &str) -> (ParseKind, u64, String) {
    match harwell_boeing::read_from(text.as_bytes(), "case") {
        Err(Error::Parse { kind, line, message, .. }) => (kind, line, message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn general_pattern_and_refusals() {
    use ParseKind::{BadBanner, BadEntry, BadNumber, BadSize, IndexOutOfRange, NonFinite, TooFewEntries, Unsupported};
    let Ok(FileMatrix::Real(a)) = harwell_boeing::read_from(SMALL.as_bytes(), "case") else { panic!() };
    assert_eq!((a.get(0, 0), a.get(1, 0), a.get(1, 1), a.get(0, 1)), (1.0, 2.0, 3.0, 0.0));
    let pattern = SMALL.replace("RUA", "PUA").replace("  1.0  2.0  3.0\n", "");
    let Ok(FileMatrix::Real(a)) = harwell_boeing::read_from(pattern.as_bytes(), "case") else { panic!() };
    assert_eq!((a.get(0, 0), a.get(1, 0)), (1.0, 1.0));

    for (from, to, kind, line, word) in [
        ("RUA", "RUE", Unsupported, 3, "elemental"),
        ("RUA", "XYZ", BadBanner, 3, "XYZ"),
        (" 3 1 1 1 0", " 3 1 x", BadBanner, 2, "\"x\""),
        ("RUA 2 2 3 0", "RUA 2 2", BadSize, 3, "rows, columns"),
        ("RUA 2 2 3 0", "RSA 3 2 3 0", BadSize, 3, "symmetric"),
        ("RUA 2", "RUA -2", BadSize, 3, "negative"),
        ("RUA 2 2 3 0", "RUA 2 2 4294967296 0", ParseKind::TooLarge, 3, "4294967296"),
        ("RUA 2 2", "RUA 4000000000 2", ParseKind::TooLarge, 3, "4000000000"),
        ("(3F5.1)", "(3A5)", BadBanner, 4, "(3A5)"),
        ("(3F5.1)", "", BadBanner, 4, "values"),
        ("  1  3  4", "  1  3  5", BadEntry, 5, "pointer 5"),
        ("  1  3  4", "  1  3  3", BadEntry, 5, "last column pointer"),
        ("  1  3  4", "  2  3  4", BadEntry, 5, "pointer 2"),
        ("  1  3  4", "  1  4  3", BadEntry, 5, "pointer 3"),
        ("  1  2  2", "  1  0  2", IndexOutOfRange, 6, "row 0"),
        ("  1  2  2", "  1  3  2", IndexOutOfRange, 6, "row 3"),
        ("  1  2  2", "  1  x  2", BadNumber, 6, "x"),
        ("  1  2  2", "  1", BadEntry, 6, "blank"),
        ("RUA", "RSA", BadEntry, 6, "(1, 2)"),
        ("  2.0", "  nan", NonFinite, 7, "nan"),
        ("  2.0", "2..0 ", BadNumber, 7, "2..0"),
        ("  1.0  2.0  3.0\n", "", TooFewEntries, 6, "0 of 3 values"),
    ] {
        let mut text = SMALL.replace(from, to);
        if from == "RUA" && to == "RSA" {
            text = text.replace("  1  2  2", "  1  2  1");
        }
        let (found, at, message) = refusal(&text);
        assert_eq!((found, at), (kind, line), "{from} → {to}: {message}");
        assert!(message.contains(word), "{message}");
    }
    assert_eq!(refusal("").0, BadBanner);
    // A giant that the file does not hold costs nothing.
    let giant = SMALL.replace("RUA 2 2 3 0", "RUA 4000000000 4000000000 4000000000 0");
    assert!(matches!(refusal(&giant).0, BadEntry | TooFewEntries));
}

#[test]
fn recognised_without_a_name() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, SMALL).unwrap();
    assert_eq!(read_matrix(&file).unwrap().nnz(), 3);
    assert!(read_matrix(ours("hermitian.cha")).is_ok());
}

#[test]
fn shared_files_hold_what_is_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/other_formats");
    if !folder.exists() {
        println!("skipped: ../shared is absent");
        return;
    }
    for name in ["662_bus.rsa", "fs_183_4.rua", "impcol_d.rua"] {
        let stem = name.split('.').next().unwrap();
        let expected = matrix_market::read(folder.join(format!("{stem}.expected.mtx"))).unwrap();
        assert_eq!(read_matrix(folder.join(name)).unwrap(), expected, "{name}");
    }
}

fn system(text: &str, wanted: RhsInFile) -> Result<System, Error> {
    read_system_from(text.as_bytes(), "case.rua", wanted, &mut ())
}

/// Columns of the right-hand sides of a real file, and the notes.
fn right_hand_sides(text: &str) -> (Vec<Vec<f64>>, Vec<String>) {
    let System { rhs: Some(FileDense::Real(b)), notes, .. } = system(text, RhsInFile::Read).unwrap() else { panic!() };
    ((0..b.ncols()).map(|j| (0..b.nrows()).map(|i| b[(i, j)]).collect()).collect(), notes)
}

#[test]
fn full_right_hand_sides_are_read_and_what_follows_is_named() {
    let matrix = "  1  3  4\n  1  2  2\n  1.0  2.0  3.0\n";
    let head = |cards: usize, line: &str| {
        format!("title\n 9 1 1 1 {cards}\nRUA 2 2 3 0\n(3I3) (3I3) (3F5.1) (3F5.1)\n{line}\n")
    };
    let one = head(1, "F             1             0") + matrix + "  5.0  6.0\n";
    assert_eq!(right_hand_sides(&one), (vec![vec![5.0, 6.0]], vec![]));
    // Two vectors as one list over two lines, then guesses and solutions.
    let joined = head(6, "FGX           2             0")
        + matrix
        + "  5.0  6.0  7.0\n  8.0\n  0.1  0.2  0.3\n  0.4\n  0.5  0.6  0.7\n  0.8\n";
    let (b, notes) = right_hand_sides(&joined);
    assert_eq!(b, [[5.0, 6.0], [7.0, 8.0]]);
    assert_eq!(notes, ["starting guesses and exact solutions in the file not used"]);
    // Three vectors, each on a line of its own: three lines where a list would take two.
    let apart = head(3, "F             3             0") + matrix + "  5.0  6.0\n  7.0  8.0\n  9.0 10.0\n";
    assert_eq!(right_hand_sides(&apart).0, [[5.0, 6.0], [7.0, 8.0], [9.0, 10.0]]);
    let skipped = system(&one, RhsInFile::Skip).unwrap();
    assert_eq!((skipped.rhs, &skipped.notes[..]), (None, &["the right-hand side in the file not used".to_owned()][..]));
    // A file that ends too early is no file without right-hand sides.
    for end in [one.len() - 12, one.len() - 5] {
        assert!(system(&one[..end], RhsInFile::Read).is_err(), "{end}");
        assert!(system(&one[..end], RhsInFile::Skip).is_ok(), "{end}");
    }
    // Sizes that nothing can hold are refused, not multiplied.
    for line in ["Q  1 0", "F -1 0", "F 18446744073709551615 0", "M 1 18446744073709551615", "F 4000000000 0"] {
        assert!(system(&(head(1, line) + matrix + "  5.0  6.0\n"), RhsInFile::Read).is_err(), "{line}");
    }
    assert!(system(SMALL, RhsInFile::Read).unwrap().rhs.is_none());
}

#[test]
fn sparse_right_hand_sides_and_those_of_patterns_and_complex_matrices() {
    let sparse = "title\n 9 1 1 1 3\nRUA 2 2 3 0\n(3I3)           (3I3)           (3F5.1)             (3F5.1)\n\
        M                          2             3\n  1  3  4\n  1  2  2\n  1.0  2.0  3.0\n\
        \x20 1  2  4\n  2  1  2\n  7.0  8.0  9.0\n";
    assert_eq!(right_hand_sides(sparse).0, [[0.0, 7.0], [8.0, 9.0]]);
    let outside = sparse.replace("  2  1  2\n", "  2  3  2\n");
    assert!(system(&outside, RhsInFile::Read).unwrap_err().to_string().contains("row 3 lies outside 1 to 2"));
    // No values, so no format for them: that of the right-hand side is where it belongs, or the last.
    for formats in ["(3I3)           (3I3)                               (2F5.1)", "(3I3) (3I3) (2F5.1)"] {
        let pattern = format!("title\n 9 1 1 0 1\nPUA 2 2 3 0\n{formats}\nF 1 0\n  1  3  4\n  1  2  2\n  4.0  5.0\n");
        assert_eq!(right_hand_sides(&pattern).0, [[4.0, 5.0]], "{formats}");
    }
    let complex =
        "title\n 9 1 1 1 1\nCUA 1 1 1 0\n(3I3) (3I3) (2F5.1) (2F5.1)\nF 1 0\n  1  2\n  1\n  1.0  2.0\n  3.0 -4.0\n";
    let System { rhs: Some(FileDense::Complex(b)), .. } = system(complex, RhsInFile::Read).unwrap() else { panic!() };
    assert_eq!(b[(0, 0)], c64::new(3.0, -4.0));
}
