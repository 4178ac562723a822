//! Definiteness of a self-adjoint matrix as far as Gershgorin's theorem and 2 × 2 minors tell it.
//!
//! Let A = Aᴴ. A diagonal entry aᵢᵢ is a value of xᴴAx, so that two signs on the diagonal make A indefinite; so does a
//! 2 × 2 principal minor aᵢᵢaⱼⱼ − |aᵢⱼ|² < 0. With a positive diagonal and diagonal dominance, Gershgorin's discs lie in
//! the closed right half plane: A is positive semidefinite, and definite when every component of its graph has a
//! strictly dominant row (Taussky, Amer. Math. Monthly 56 (1949), doi:10.2307/2305561). −A likewise.
//! Cost: one pass over the entries.

use std::fmt;

use super::components::Components;
use super::dominance::{DominanceKind, Sums};
use super::symmetry::Symmetry;
use crate::csr::Csr;
use crate::operator::{LinearOperator, zero};
use crate::scalar::{RealScalar, Scalar, modulus};

/// What is known of the signs of the eigenvalues without a factorization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Definiteness {
    /// All eigenvalues are positive.
    Positive,
    /// No eigenvalue is negative (to rounding).
    PositiveSemi,
    /// All eigenvalues are negative.
    Negative,
    /// No eigenvalue is positive (to rounding).
    NegativeSemi,
    /// There are eigenvalues of both signs.
    Indefinite,
    /// Self-adjoint, and neither proved nor refuted: a Cholesky factorization decides.
    Unknown,
    /// Not self-adjoint: definiteness means nothing here.
    NotSelfAdjoint,
}

impl fmt::Display for Definiteness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Positive => "positive definite",
            Self::PositiveSemi => "positive semidefinite",
            Self::Negative => "negative definite",
            Self::NegativeSemi => "negative semidefinite",
            Self::Indefinite => "indefinite",
            Self::Unknown => "unknown",
            Self::NotSelfAdjoint => "not self-adjoint",
        })
    }
}

/// The hint, and the sentence that justifies it.
#[inline(never)]
pub(super) fn hint<T: Scalar>(
    a: &Csr<T>,
    symmetry: Symmetry,
    sums: &Sums,
    components: &Components,
) -> (Definiteness, String) {
    let self_adjoint = match symmetry {
        Symmetry::Hermitian => true,
        // A complex symmetric matrix that is not Hermitian was called symmetric as well.
        Symmetry::Symmetric => a.values().iter().all(|v| v.im() == zero()),
        _ => false,
    };
    if !self_adjoint {
        return (Definiteness::NotSelfAdjoint, format!("the matrix is {symmetry}"));
    }
    let n = a.nrows();
    let diagonal: Vec<f64> = (0..n).map(|i| a.get(i, i).re().to_f64()).collect();
    let Some(&first) = diagonal.first() else {
        return (Definiteness::Positive, "there is no row".into());
    };

    if let Some(i) = diagonal.iter().position(|d| *d == 0.0) {
        let (cols, vals) = a.row(i);
        return match cols.iter().zip(vals).find(|e| *e.1 != zero()) {
            // [ 0 a; ā d ] has the determinant −|a|²
            Some((j, _)) => (
                Definiteness::Indefinite,
                format!("diagonal entry {i} is zero and ({i}, {j}) is not: a 2 × 2 minor is negative"),
            ),
            None => (Definiteness::Unknown, format!("row {i} is empty: the matrix is semidefinite at best")),
        };
    }
    if let Some(i) = diagonal.iter().position(|d| (*d > 0.0) != (first > 0.0)) {
        return (
            Definiteness::Indefinite,
            format!("diagonal entries 0 and {i} have opposite signs ({first:e} and {:e})", diagonal[i]),
        );
    }

    for i in 0..n {
        let (cols, vals) = a.row(i);
        for (&j, &v) in cols.iter().zip(vals).filter(|e| (*e.0 as usize) > i) {
            // |aᵢⱼ|² > aᵢᵢaⱼⱼ beyond rounding, without the products.
            let modulus = modulus(v.re().to_f64(), v.im().to_f64());
            let bound = diagonal[i].abs().sqrt() * diagonal[j as usize].abs().sqrt();
            if modulus > bound * (1.0 + 8.0 * f64::EPSILON) {
                return (
                    Definiteness::Indefinite,
                    format!(
                        "the 2 × 2 minor of rows {i} and {j} is negative: |a({i}, {j})|² > a({i}, {i})·a({j}, {j})"
                    ),
                );
            }
        }
    }

    let (definite, semidefinite, sign) = if first > 0.0 {
        (Definiteness::Positive, Definiteness::PositiveSemi, "positive")
    } else {
        (Definiteness::Negative, Definiteness::NegativeSemi, "negative")
    };
    let mut proved = vec![false; n];
    let (mut strict, mut weak) = (true, true);
    for i in 0..n {
        let kind = sums.row(i);
        strict &= kind == DominanceKind::Strict;
        weak &= kind != DominanceKind::None;
        proved[components.root(i)] |= kind == DominanceKind::Strict;
    }
    if strict {
        (definite, format!("{sign} diagonal and strictly diagonally dominant (Gershgorin)"))
    } else if weak && (0..n).all(|i| proved[components.root(i)]) {
        (definite, format!("{sign} diagonal and weakly diagonally dominant, strictly in a row of every component"))
    } else if weak {
        (semidefinite, format!("{sign} diagonal and weakly diagonally dominant (Gershgorin)"))
    } else {
        (Definiteness::Unknown, format!("self-adjoint with a {sign} diagonal, not diagonally dominant"))
    }
}
