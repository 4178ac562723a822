//! Any bytes are a matrix or an error; what was read is read again after writing.
#![no_main]

use bt_formats::{FileMatrix, matrix_market};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(a) = matrix_market::read_from(data, "fuzz") else { return };
    // Sums of duplicates may overflow; such a matrix is not written.
    let mut text = Vec::new();
    let written = match &a {
        FileMatrix::Real(a) => matrix_market::write_csr(a, &mut text, &[]),
        FileMatrix::Complex(a) => matrix_market::write_csr(a, &mut text, &[]),
    };
    if written.is_ok() {
        assert_eq!(matrix_market::read_from(&text[..], "again").unwrap(), a);
    }
});
