//! Methods and preconditioners by their names.

use blocktri::{Factoring, Krylov, Method, Precision, Precond, SolveOptions};

/// The method of this name, with default options.
pub fn named(name: &str) -> Method {
    name.parse().unwrap()
}

/// The preconditioner of this name, with default options.
pub fn preconditioner(name: &str) -> Precond {
    name.parse().unwrap()
}

/// A Krylov method with a preconditioner.
pub fn krylov(name: &str, precond: &str) -> Krylov {
    let Method::Krylov(krylov) = named(name) else { panic!("{name} is no Krylov method") };
    Krylov { precond: preconditioner(precond), ..krylov }
}

/// By a method of this name, its factors in single precision.
pub fn in_single(name: &str) -> SolveOptions {
    let single = Factoring { precision: Precision::Single, ..Factoring::default() };
    SolveOptions::by(named(name).with_factoring(single))
}
