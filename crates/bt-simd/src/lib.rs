//! Instruction sets: which one loops run on.
//!
//! Every loop in vectors asks here, so that one decision holds for all of them: [`Isa::in_use`], the best that the processor has, unless
//! the environment variable `BLOCKTRI_ISA` names a lesser one (`avx512`, `avx2`, `base128`, `portable`). A loop written over
//! [`pulp::Simd`] runs by [`dispatch`]; one written for registers of a certain length asks for its token, [`avx512`] or [`avx2`], and is
//! not run where there is none.
//!
//! Dense products and factorizations of faer choose for themselves.
#![cfg_attr(not(target_arch = "x86_64"), allow(unused, reason = "vectors of a certain length are of x86-64 only"))]

mod dispatch;
mod eight;
mod isa;

pub use dispatch::{Loops, dispatch, dispatch_base, dispatch_short};
#[cfg(target_arch = "x86_64")]
pub use dispatch::{avx2, avx512};
pub use eight::{Eight, LANES};
pub use isa::{Isa, UnknownIsa, VARIABLE, for_each_isa};
pub use pulp;
