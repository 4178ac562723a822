//! What every solve asks of its matrix and its right-hand sides.

use bt_direct::refine::unit_roundoff;
use bt_formats::{Csr, Error as InputError, LinearOperator, Note, RealScalar, Scalar};
use bt_iter::{Asymmetry, asymmetry};
use faer::{Mat, MatRef};

use crate::error::Error;
use crate::method::KrylovMethod;

pub(crate) fn check_matrix<T: Scalar>(a: &Csr<T>) -> Result<(), Error> {
    a.check_square()?;
    if a.nrows() == 0 {
        return Err(Error::Usage { message: "the matrix is 0 × 0: there is nothing to solve".into() });
    }
    if !a.survey().is_finite {
        a.check_finite()?;
    }
    Ok(())
}

/// Right-hand sides with contiguous columns.
pub(crate) enum Rhs<'b, T> {
    /// As they were given.
    Given(MatRef<'b, T>),
    /// Copied, since they were given by rows.
    Copied(Mat<T>),
}

impl<T> Rhs<'_, T> {
    pub fn as_ref(&self) -> MatRef<'_, T> {
        match self {
            Self::Given(b) => *b,
            Self::Copied(b) => b.as_ref(),
        }
    }
}

/// Checks the right-hand sides, and copies those whose columns are not contiguous.
pub(crate) fn check_rhs<T: Scalar>(n: usize, b: MatRef<'_, T>) -> Result<Rhs<'_, T>, Error> {
    if b.nrows() != n {
        let (what, found) = ("rows of the right-hand side", b.nrows());
        return Err(InputError::DimensionMismatch { what, expected: n, found }.into());
    }
    if b.ncols() == 0 {
        return Err(Error::Usage { message: "there is no right-hand side".into() });
    }
    let b = if b.try_as_col_major().is_some() { Rhs::Given(b) } else { Rhs::Copied(b.to_owned()) };
    for col in 0..b.as_ref().ncols() {
        let values = column(b.as_ref(), col);
        if let Some(row) = values.iter().position(|v| !Scalar::is_finite(*v)) {
            let value = values[row].to_string();
            return Err(InputError::NonFinite { what: "right-hand side", row, col, value }.into());
        }
    }
    Ok(b)
}

/// Column j of right-hand sides that have been checked.
pub(crate) fn column<T>(b: MatRef<'_, T>, j: usize) -> &[T] {
    b.col(j).try_as_col_major().expect("checked right-hand sides have contiguous columns").as_slice()
}

/// Before a band or blocks are made of A, which may be far larger.
///
/// # Errors
/// [`InputError::InvalidStructure`] with the entry farthest from its mirror, unless rounding can have moved it there.
pub(crate) fn check_hermitian<T: Scalar>(a: &Csr<T>) -> Result<(), Error> {
    match asymmetry(a) {
        Some(worst) if worst.relative > 64.0 * unit_roundoff::<T>() => Err(InputError::InvalidStructure {
            what: "matrix",
            why: format!(
                "it is not Hermitian: row {}, column {} is {}, its mirror {}",
                worst.row, worst.col, worst.entry, worst.mirror
            ),
        }
        .into()),
        _ => Ok(()),
    }
}

/// Conjugate gradients take half of A for granted: what is off by more than rounding and printing explain is refused.
pub(crate) fn check_hermitian_for<T: Scalar>(
    a: &Csr<T>,
    method: KrylovMethod,
    notes: &mut Vec<Note>,
) -> Result<(), Error> {
    let Some(worst) = asymmetry(a) else { return Ok(()) };
    let epsilon = T::Real::EPSILON.to_f64();
    let Asymmetry { row, col, entry, mirror, relative } = worst;
    let pair = if row == col {
        format!("a({row}, {row}) = {} (from 0) is not real", number(entry))
    } else {
        format!("a({row}, {col}) = {} and a({col}, {row}) = {} (from 0)", number(entry), number(mirror))
    };
    if relative > epsilon.sqrt() {
        let why = format!("{method} needs a Hermitian matrix, but {pair}; use bicgstab, gmres, or auto");
        return Err(InputError::InvalidStructure { what: "matrix", why }.into());
    }
    if relative > 8.0 * epsilon {
        notes.push(Note::TakenAsHermitian { method: method.name(), relative, entries: pair });
    }
    Ok(())
}

/// A number at any end of the range, in few characters.
fn number<T: Scalar>(v: T) -> String {
    let (re, im) = (v.re().to_f64(), v.im().to_f64());
    if im == 0.0 { format!("{re:e}") } else { format!("{re:e}{im:+e}i") }
}
