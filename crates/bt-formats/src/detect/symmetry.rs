//! Symmetry by exact comparison, in one pass without a transpose.
//!
//! Rows are scanned in order; the mirror images (j, i) of the entries (i, j), j > i, of one column stand in row j in the
//! order in which they are asked for, so that one cursor a row finds them all. Cost: O(nnz), 4n bytes.

use std::fmt;

use crate::csr::Csr;
use crate::error::Result;
use crate::operator::{LinearOperator, zero};
use crate::scalar::{Scalar, ScalarKind};

/// The strongest of these that holds exactly. Where two hold, a real matrix is called symmetric or skew-symmetric and
/// a complex one Hermitian or skew-Hermitian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symmetry {
    /// A = Aᵀ.
    Symmetric,
    /// A = −Aᵀ.
    SkewSymmetric,
    /// A = Aᴴ, complex.
    Hermitian,
    /// A = −Aᴴ, complex.
    SkewHermitian,
    /// aᵢⱼ ≠ 0 exactly where aⱼᵢ ≠ 0.
    StructurallySymmetric,
    /// None of these.
    Unsymmetric,
}

impl fmt::Display for Symmetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Symmetric => "symmetric",
            Self::SkewSymmetric => "skew-symmetric",
            Self::Hermitian => "Hermitian",
            Self::SkewHermitian => "skew-Hermitian",
            Self::StructurallySymmetric => "structurally symmetric",
            Self::Unsymmetric => "unsymmetric",
        })
    }
}

/// The symmetry of A, and the share of its off-diagonal non-zeros aᵢⱼ with aⱼᵢ ≠ 0 (1 when there are none).
///
/// # Errors
/// [`crate::Error::NotSquare`].
///
/// # Cost
/// O(nnz), 4n bytes.
pub fn symmetry<T: Scalar>(a: &Csr<T>) -> Result<(Symmetry, f64)> {
    a.check_square()?;
    let n = a.nrows();
    let mut holds = Relations::all();
    let mut cursor: Vec<u32> = a.row_ptr()[..n].to_vec();
    let (mut off_diagonal, mut mirrored) = (0usize, 0usize);
    for i in 0..n {
        let (cols, vals) = a.row(i);
        for (&j, &v) in cols.iter().zip(vals).filter(|e| *e.1 != zero()) {
            let j = j as usize;
            if j == i {
                holds.compare(v, v);
                continue;
            }
            off_diagonal += 1;
            if j < i {
                continue;
            }
            // Row j up to column i: entries passed over have no mirror image, unless they are zeros.
            let end = a.row_ptr()[j + 1];
            while cursor[j] < end && (a.col_idx()[cursor[j] as usize] as usize) < i {
                cursor[j] += 1;
            }
            if cursor[j] < end && a.col_idx()[cursor[j] as usize] as usize == i {
                let w = a.values()[cursor[j] as usize];
                if w != zero() {
                    mirrored += 2;
                    holds.compare(v, w);
                }
            }
        }
    }
    let share = if off_diagonal == 0 { 1.0 } else { mirrored as f64 / off_diagonal as f64 };
    if mirrored < off_diagonal {
        return Ok((Symmetry::Unsymmetric, share));
    }
    let complex = matches!(T::KIND, ScalarKind::C32 | ScalarKind::C64);
    Ok((holds.strongest(complex), share))
}

/// Which relations have held for all pairs so far: four independent facts.
#[allow(clippy::struct_excessive_bools)]
struct Relations {
    symmetric: bool,
    skew: bool,
    hermitian: bool,
    skew_hermitian: bool,
}

impl Relations {
    fn all() -> Self {
        Self { symmetric: true, skew: true, hermitian: true, skew_hermitian: true }
    }

    /// aᵢⱼ = v against aⱼᵢ = w.
    fn compare<T: Scalar>(&mut self, v: T, w: T) {
        self.symmetric &= v == w;
        self.skew &= v == -w;
        self.hermitian &= v == Scalar::conj(w);
        self.skew_hermitian &= v == -Scalar::conj(w);
    }

    fn strongest(&self, complex: bool) -> Symmetry {
        match self {
            Self { hermitian: true, .. } if complex => Symmetry::Hermitian,
            Self { symmetric: true, .. } => Symmetry::Symmetric,
            Self { skew_hermitian: true, .. } if complex => Symmetry::SkewHermitian,
            Self { skew: true, .. } => Symmetry::SkewSymmetric,
            _ => Symmetry::StructurallySymmetric,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::c64;

    fn two<T: Scalar>(values: [T; 4]) -> Symmetry {
        symmetry(&Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], values.to_vec()).unwrap()).unwrap().0
    }

    #[test]
    fn each_kind() {
        assert_eq!(two([1.0, 2.0, 2.0, 3.0]), Symmetry::Symmetric);
        assert_eq!(two([0.0, 2.0, -2.0, 0.0]), Symmetry::SkewSymmetric);
        assert_eq!(two([1.0, 2.0, -2.0, 1.0]), Symmetry::StructurallySymmetric);
        assert_eq!(two([1.0, 2.0, 0.0, 1.0]), Symmetry::Unsymmetric);
        let i = c64::i();
        let one = c64::new(1.0, 0.0);
        assert_eq!(two([one, i, -i, one]), Symmetry::Hermitian);
        assert_eq!(two([one, one, one, one]), Symmetry::Hermitian);
        assert_eq!(two([i, i, i, i]), Symmetry::Symmetric);
        assert_eq!(two([i, one, -one, i]), Symmetry::SkewHermitian);
        assert_eq!(two([i - i, i + one, -i - one, i - i]), Symmetry::SkewSymmetric);
        assert_eq!(two([i, one, i, i]), Symmetry::StructurallySymmetric);
    }

    #[test]
    fn share_of_the_pattern_and_cursors_over_gaps() {
        // (0, 2) and (2, 0) are a pair; (2, 1) and (0, 3) are alone; (3, 0) is a stored zero.
        let a = Csr::new(4, 4, vec![0, 2, 2, 4, 6], vec![2, 3, 0, 1, 0, 3], vec![1.0, 1.0, 1.0, 1.0, 0.0, 5.0]);
        assert_eq!(symmetry(&a.unwrap()).unwrap(), (Symmetry::Unsymmetric, 0.5));
        let diagonal = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![1.0, 2.0]).unwrap();
        assert_eq!(symmetry(&diagonal).unwrap(), (Symmetry::Symmetric, 1.0));
    }
}
