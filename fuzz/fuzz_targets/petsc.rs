//! Any bytes after the class of a matrix or a vector are a system, columns, or an error.
#![no_main]

use bt_formats::{RhsInFile, read_columns_from, read_system_from};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let matrix = [&1_211_216u32.to_be_bytes()[..], data].concat();
    let _ = read_system_from(&matrix[..], "fuzz", RhsInFile::Read, &mut ());
    let vector = [&1_211_214u32.to_be_bytes()[..], data].concat();
    let _ = read_columns_from(&vector[..], "fuzz", &|_, _| Ok(()), &mut ());
});
