//! All tests of this crate in one program: each program compiles anew what it calls of generic code.

mod bcsr;
mod contracts;
mod conversions;
mod detect;
mod harwell_boeing;
mod hybrid;
mod interop;
mod malformed;
mod matching;
mod matrix_market;
mod products;
mod rcm;
mod shared_data;
mod spectral;
