//! The C library of blocktri: matrices, factors and reports as opaque handles over the erased layer of the facade
//! ([`AnyMatrix`](blocktri::AnyMatrix), [`AnySolver`](blocktri::AnySolver)), and LAPACK's band drivers on LAPACK's arrays. No numerics here.
//!
//! `include/blocktri.h` is made of this crate's items and their documentation by `cargo xtask c`. The names are those of C.
//!
//! Every function that can fail returns a [`blocktri_status`](status::blocktri_status) and leaves a sentence for `blocktri_last_error`.
//! Panics end there as `BLOCKTRI_INTERNAL`. What can be checked of a pointer (null, alignment, the size of what it points to) is checked;
//! what cannot is the caller's: it points to as much memory as the documentation of the argument says, and nobody writes there meanwhile.
//! That one sentence is the `# Safety` of all functions.

#![allow(non_camel_case_types)] // the names of C
#![allow(clippy::missing_safety_doc)] // said above, once
#![allow(clippy::missing_errors_doc)] // a status, not a `Result`

pub mod lapack;
pub mod matrix;
pub mod options;
mod raw;
pub mod report;
mod run;
pub mod solver;
pub mod status;
