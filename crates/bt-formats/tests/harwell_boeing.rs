//! Harwell–Boeing files: our own small ones, broken ones, and those of `../shared` against their contents.

use std::path::{Path, PathBuf};

use bt_formats::{AnyMatrix, Error, ParseKind, c64, harwell_boeing, matrix_market, read_matrix};

fn ours(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

#[test]
fn skew_under_a_scale_factor_with_right_hand_side() {
    let Ok(AnyMatrix::Real(a)) = harwell_boeing::read(ours("skew_scaled.rza")) else { panic!() };
    let expected = [[0.0, -5.0, 0.0], [5.0, 0.0, 7.0], [0.0, -7.0, 0.0]];
    for (i, row) in expected.iter().enumerate() {
        for (j, v) in row.iter().enumerate() {
            assert_eq!(a.get(i, j), *v, "({i}, {j})");
        }
    }
}

#[test]
fn hermitian_with_implied_decimals() {
    let Ok(AnyMatrix::Complex(a)) = harwell_boeing::read(ours("hermitian.cha")) else { panic!() };
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
    let Ok(AnyMatrix::Real(a)) = harwell_boeing::read_from(SMALL.as_bytes(), "case") else { panic!() };
    assert_eq!((a.get(0, 0), a.get(1, 0), a.get(1, 1), a.get(0, 1)), (1.0, 2.0, 3.0, 0.0));
    let pattern = SMALL.replace("RUA", "PUA").replace("  1.0  2.0  3.0\n", "");
    let Ok(AnyMatrix::Real(a)) = harwell_boeing::read_from(pattern.as_bytes(), "case") else { panic!() };
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
