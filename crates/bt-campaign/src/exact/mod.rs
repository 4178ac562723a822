//! Arithmetic without rounding, and what it says about a system.
//!
//! | file | case |
//! |---|---|
//! | `dyadic.rs` | floating-point numbers, real or complex, added and multiplied without rounding |
//! | `adjugate.rs` | det(A) and det(A)·A⁻¹ of integers or Gaussian integers |
//! | `wide.rs` | moduli with an exponent of any size, in double precision |
//! | `truth.rs` | what is true of a system: singular or not, its solution, its condition |
//! | `measures.rs` | how good an answer to it is |

mod adjugate;
mod dyadic;
mod measures;
mod truth;
mod wide;

pub use dyadic::{Dyadic, Exact};
pub use measures::{Measures, measure};
pub use truth::{Known, Truth};
pub use wide::Wide;
