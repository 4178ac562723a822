//! Diagonal dominance by rows and by columns.
//!
//! Sums of moduli are formed in double precision. A sum of m terms is known to (m + 2)·2⁻⁵² of itself; within that, the
//! two sides count as equal: strict dominance is certain, weak dominance holds to rounding.

use std::fmt;

use crate::csr::Csr;
use crate::operator::{LinearOperator, zero};
use crate::scalar::{RealScalar, Scalar, modulus};

/// How |aᵢᵢ| compares with the sum of the other moduli.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DominanceKind {
    /// Larger in every row (column).
    Strict,
    /// At least as large in every row (column).
    Weak,
    /// Smaller in some row (column).
    None,
}

impl fmt::Display for DominanceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Strict => "strictly diagonally dominant",
            Self::Weak => "weakly diagonally dominant",
            Self::None => "not diagonally dominant",
        })
    }
}

/// Diagonal dominance over all rows, or over all columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dominance {
    /// The verdict.
    pub kind: DominanceKind,
    /// Share of the rows (columns) that are at least weakly dominant; 1 when n = 0.
    pub fraction: f64,
    /// Least |aᵢᵢ| / Σⱼ≠ᵢ |aᵢⱼ|; +∞ when no row (column) has an off-diagonal non-zero.
    pub min_ratio: f64,
    /// Row (column) where the least ratio stands.
    pub worst: Option<usize>,
}

/// |aᵢᵢ| and the sums of the other moduli.
pub(super) struct Sums {
    pub diagonal: Vec<f64>,
    rows: Vec<Sum>,
    columns: Vec<Sum>,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    value: f64,
    terms: u32,
}

impl Sum {
    fn add(&mut self, modulus: f64) {
        self.value += modulus;
        self.terms += 1;
    }

    /// Strict, weak or no dominance of a diagonal entry over the sum.
    fn compare(self, diagonal: f64) -> DominanceKind {
        let slack = (self.terms as f64 + 2.0) * f64::EPSILON;
        if diagonal > self.value * (1.0 + slack) {
            DominanceKind::Strict
        } else if diagonal >= self.value * (1.0 - slack) {
            DominanceKind::Weak
        } else {
            DominanceKind::None
        }
    }
}

impl Sums {
    pub fn of<T: Scalar>(a: &Csr<T>) -> Self {
        let n = a.nrows();
        let mut s = Self { diagonal: vec![0.0; n], rows: vec![Sum::default(); n], columns: vec![Sum::default(); n] };
        for i in 0..n {
            let (cols, vals) = a.row(i);
            for (&j, &v) in cols.iter().zip(vals).filter(|e| *e.1 != zero()) {
                let (j, modulus) = (j as usize, modulus(v.re().to_f64(), v.im().to_f64()));
                if i == j {
                    s.diagonal[i] = modulus;
                } else {
                    s.rows[i].add(modulus);
                    s.columns[j].add(modulus);
                }
            }
        }
        s
    }

    pub fn by_rows(&self) -> Dominance {
        judge(&self.diagonal, &self.rows)
    }

    pub fn by_columns(&self) -> Dominance {
        judge(&self.diagonal, &self.columns)
    }

    /// Dominance of row `i` alone.
    pub fn row(&self, i: usize) -> DominanceKind {
        self.rows[i].compare(self.diagonal[i])
    }
}

fn judge(diagonal: &[f64], sums: &[Sum]) -> Dominance {
    let (mut strict, mut weak) = (0, 0);
    let (mut min_ratio, mut worst) = (f64::INFINITY, None);
    for (i, (&d, &sum)) in diagonal.iter().zip(sums).enumerate() {
        match sum.compare(d) {
            DominanceKind::Strict => strict += 1,
            DominanceKind::Weak => weak += 1,
            DominanceKind::None => {}
        }
        if sum.value > 0.0 && d / sum.value < min_ratio {
            (min_ratio, worst) = (d / sum.value, Some(i));
        }
    }
    let n = diagonal.len();
    let kind = match n {
        _ if strict == n => DominanceKind::Strict,
        _ if strict + weak == n => DominanceKind::Weak,
        _ => DominanceKind::None,
    };
    Dominance { kind, fraction: if n == 0 { 1.0 } else { (strict + weak) as f64 / n as f64 }, min_ratio, worst }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_differ() {
        // [ 2 −1  1 ]   rows: weak, strict, strict
        // [ 0  3  1 ]   columns: strict, weak, strict
        // [ 0  2  4 ]
        let a = Csr::new(3, 3, vec![0, 3, 5, 7], vec![0, 1, 2, 1, 2, 1, 2], vec![2.0, -1.0, 1.0, 3.0, 1.0, 2.0, 4.0]);
        let s = Sums::of(&a.unwrap());
        let weak = Dominance { kind: DominanceKind::Weak, fraction: 1.0, min_ratio: 1.0, worst: Some(0) };
        assert_eq!(s.by_rows(), weak);
        assert_eq!(s.by_columns(), Dominance { worst: Some(1), ..weak });
        // 0.1 + 0.2 rounds above 0.3, which must not make the row less than weakly dominant.
        let b = Csr::new(1, 3, vec![0, 3], vec![0, 1, 2], vec![0.3, 0.1, 0.2]).unwrap();
        assert_eq!(Sums::of(&square(&b)).row(0), DominanceKind::Weak);
        assert_eq!(Sums::of(&square(&b)).by_rows().kind, DominanceKind::Weak);
    }

    /// The rows of `a` followed by empty ones.
    fn square(a: &Csr<f64>) -> Csr<f64> {
        let mut ptr = a.row_ptr().to_vec();
        ptr.resize(a.ncols() + 1, ptr[a.nrows()]);
        Csr::new(a.ncols(), a.ncols(), ptr, a.col_idx().to_vec(), a.values().to_vec()).unwrap()
    }

    #[test]
    fn a_diagonal_matrix_has_no_ratio() {
        let a = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![1.0, -2.0]).unwrap();
        let strict = Dominance { kind: DominanceKind::Strict, fraction: 1.0, min_ratio: f64::INFINITY, worst: None };
        assert_eq!(Sums::of(&a).by_rows(), strict);
    }
}
