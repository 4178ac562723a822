//! The drop-in symbols on the matrix types of LAPACK's own tests (xCHKGB, xCHKGT, xCHKPB), judged by LAPACK's ratios, and beside LAPACK
//! itself where liblapack.so.3 can be loaded.

#![allow(unsafe_code)] // calls functions of C
#![allow(clippy::borrow_as_ptr)] // all arguments of LAPACK are addresses

mod drivers;
mod gb;
mod gt;
mod pb;
mod types;
