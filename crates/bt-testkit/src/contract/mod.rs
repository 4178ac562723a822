//! Suites that every implementation of a trait has to pass.
//!
//! Each returns the first breach as a sentence that names the property, the operation and the figures. Data are fixed:
//! the same object gives the same verdict.
//!
//! | file | case |
//! |---|---|
//! | `operator.rs` | matrices: entries, products and norms |
//! | `factorization.rs` | factorizations: solves, determinant, condition; made again for other matrices |
//! | `preconditioner.rs` | preconditioners, seen as maps z ← M⁻¹r |
//! | `units.rs` | methods and preconditioners of scaled, permuted and adjoint matrices |

mod factorization;
mod operator;
mod preconditioner;
mod units;

pub use factorization::{dyn_refactor_contract, factorization_contract, refactor_contract};
pub use operator::operator_contract;
pub use preconditioner::{Claim, preconditioner_contract, preconditioner_contract_to};
pub use units::{
    Answer, Apply, Make, Solve, Units, method_twins_contract, method_units_contract, preconditioner_adjoint_contract,
    preconditioner_units_contract,
};

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use bt_formats::{Op, RealScalar, Scalar};

const OPS: [Op; 3] = [Op::Identity, Op::Transpose, Op::Adjoint];

/// u: half the distance from 1 to the next number.
fn unit_roundoff<T: Scalar>() -> f64 {
    <T::Real as RealScalar>::EPSILON.to_f64() / 2.0
}

/// `Err(message)` unless `holds`.
fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message()) }
}

/// Whether two vectors hold the same bits (NaN equals the same NaN, 0 differs from −0).
fn same_bits<T: Scalar>(x: &[T], y: &[T]) -> bool {
    let bits = |v: &T| (v.re().to_f64().to_bits(), v.im().to_f64().to_bits());
    x.len() == y.len() && x.iter().zip(y).all(|(x, y)| bits(x) == bits(y))
}

/// Runs `f` in rayon pools of 1, 2 and 3 threads.
fn in_pools(mut f: impl FnMut(usize) -> Result<(), String> + Send) -> Result<(), String> {
    for threads in 1..=3 {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|e| e.to_string())?;
        pool.install(|| f(threads))?;
    }
    Ok(())
}

thread_local! {
    /// Whether a panic of this thread is expected and need not be shown.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// A call with wrong sizes has to panic rather than read or write out of bounds.
fn must_panic(what: &str, f: impl FnOnce()) -> Result<(), String> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let show = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !EXPECTED.get() {
                show(info);
            }
        }));
    });
    EXPECTED.set(true);
    let panicked = catch_unwind(AssertUnwindSafe(f)).is_err();
    EXPECTED.set(false);
    ensure(panicked, || format!("{what} was accepted"))
}
