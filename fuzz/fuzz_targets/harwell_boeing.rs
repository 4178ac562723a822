//! Any bytes are a matrix or an error.
#![no_main]

use bt_formats::harwell_boeing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = harwell_boeing::read_from(data, "fuzz");
});
