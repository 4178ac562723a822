//! The matrix of a solver, in the format that it was given in.
//!
//! Three diagonals, with corners or without, a band, blocks and full matrices are kept, multiplied and factored as they stand.
//! Compressed rows are made of them once something needs rows: an estimate of the condition number, a matching, another method.

use std::sync::OnceLock;

use bt_direct::{DenseMatrix, Given};
use bt_formats::{Csr, Error as InputError, Extremes, LinearOperator, Matrix, Scalar, memory, zero};
use faer::{ColRef, MatRef};

use crate::direct::{Direct, Family};
use crate::equilibrated::{are_alike, are_in_the_middle, extents_are_alike, need_no_scaling};
use crate::error::Error;
use crate::stored::{Full, Stored};

/// A matrix of its own in a format that methods work on.
#[derive(Clone)]
pub(crate) struct Format<T: Scalar> {
    pub stored: Stored<T>,
    /// Weakly diagonally dominant by rows: elimination without interchanges has growth at most 2.
    pub is_dominant: bool,
    /// A lower bound of 1/(‖A‖∞‖A⁻¹‖∞), which dominance tells; 0 or less where it tells nothing.
    pub rcond: f64,
}

/// The matrix of a solver.
pub(crate) enum Held<T: Scalar> {
    Rows(Csr<T>),
    Format { format: Box<Format<T>>, rows: OnceLock<Csr<T>> },
}

impl<T: Scalar> Format<T> {
    /// The same, with values that are shared but for full matrices; `None` where methods work on rows: in other formats, for a dense matrix
    /// that is half zeros, whose structure rows tell, or where rows and columns differ so
    /// much in size that pivots depend on their units, or products leave the range (see [`scaling`](crate::equilibrated::scaling)).
    ///
    /// # Errors
    /// [`InputError::NonFinite`], and [`InputError::InvalidStructure`] where rows cannot hold the entries.
    pub fn of(given: Given<'_, T>) -> Result<Option<Self>, Error> {
        let stored = match given {
            Given::Tridiagonal(a) => Stored::Tridiagonal(a.clone()),
            Given::Band(a) => Stored::Band(a.clone()),
            Given::Blocks(a) => Stored::Blocks(a.clone()),
            Given::Periodic(a) => Stored::Periodic(a.clone()),
            Given::Dense(a) if is_full(a) => {
                memory::ask(DenseMatrix::new(a).bytes() as u64, "a copy of the matrix")?;
                Stored::Full(Full(a.to_owned()))
            }
            _ => return Ok(None),
        };
        let entries = stored.as_matrix().nnz();
        if entries > u32::MAX as usize - 1 {
            let why = format!("{entries} entries are more than 32-bit indices have numbers for");
            return Err(InputError::InvalidStructure { what: "matrix", why }.into());
        }
        let found = Extremes::of(stored.as_matrix());
        if !found.are_finite
            && let Some(error) = stored.not_finite()
        {
            return Err(error);
        }
        let in_good_units = are_in_the_middle::<T>(found.sizes)
            && (are_alike(found.sizes)
                || extents_are_alike(found.row_sizes, || found.column_sizes)
                || need_no_scaling(stored.as_matrix()));
        let (is_dominant, rcond) = (found.margin >= 0.0, rcond_of(found.margin, found.row_sizes.1));
        Ok(in_good_units.then_some(Self { stored, is_dominant, rcond }))
    }

    pub fn given(&self) -> Given<'_, T> {
        self.stored.given()
    }

    pub fn as_matrix(&self) -> &dyn Matrix<T> {
        self.stored.as_matrix()
    }
}

impl<T: Scalar> Stored<T> {
    /// The first entry that is not finite.
    fn not_finite(&self) -> Option<Error> {
        let mut first = None;
        self.as_matrix().for_each_entry(&mut |row, col, v| {
            if !Scalar::is_finite(v) && first.is_none() {
                first = Some(InputError::NonFinite { what: "matrix", row, col, value: v.to_string() });
            }
        });
        first.map(Error::Input)
    }

    /// Whether factors of `other` have room for those of this.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tridiagonal(a), Self::Tridiagonal(b)) => a.nrows() == b.nrows(),
            (Self::Band(a), Self::Band(b)) => (a.n(), a.kl(), a.ku()) == (b.n(), b.kl(), b.ku()),
            (Self::Blocks(a), Self::Blocks(b)) => a.partition() == b.partition(),
            (Self::Periodic(a), Self::Periodic(b)) => a.nrows() == b.nrows(),
            (Self::Full(a), Self::Full(b)) => a.nrows() == b.nrows(),
            _ => false,
        }
    }

    /// Whether a band with kl = ku seems Hermitian with a positive diagonal. Cholesky looks at all of it, and has the last word: here it is the
    /// columns next to the ends, where boundary conditions are, and a few between.
    pub fn may_be_definite_band(&self) -> bool {
        /// Between two columns that are looked at.
        const STEP: usize = 64;
        let Self::Band(a) = self else { return false };
        let (values, ldab, k, n) = (a.values(), a.ldab(), a.ku(), a.n());
        // a(j, j), then a(j + 1, j) and so on; a(j, j + d) is d columns further and d rows above the diagonal.
        let place = |j: usize| j * ldab + 2 * k;
        let is_mirrored = |j: usize, d: usize| values[place(j) + d] == Scalar::conj(values[place(j) + d * (ldab - 1)]);
        let positive = |v: T| v.re() > zero() && v.im() == zero();
        let mut columns = (0..n).filter(|&j| j.is_multiple_of(STEP) || j <= k || j + k >= n.saturating_sub(2));
        let is_of_definite =
            |j: usize| positive(values[place(j)]) && (1..(k + 1).min(n - j)).all(|d| is_mirrored(j, d));
        k == a.kl() && columns.all(is_of_definite)
    }
}

/// A row of a dominant matrix sums to twice its largest number at most.
fn rcond_of(margin: f64, largest: f64) -> f64 {
    margin / (2.0 * largest)
}

/// Whether more than half of the numbers are not zero.
fn is_full<T: Scalar>(a: MatRef<'_, T>) -> bool {
    let in_column = |column: ColRef<'_, T>| column.iter().filter(|v| **v != zero()).count();
    2 * a.col_iter().map(in_column).sum::<usize>() > a.nrows() * a.ncols()
}

/// Whether a method takes a format as it stands.
pub(crate) fn takes<T>(given: Given<'_, T>, method: Direct) -> bool {
    matches!(
        (given, method.row().family),
        (Given::Tridiagonal(_), Family::Tridiagonal)
            | (Given::Blocks(_), Family::Blocks)
            | (Given::Band(_), Family::Band)
            | (Given::Periodic(_), Family::Periodic)
            | (Given::Dense(_), Family::Dense)
    )
}

impl<T: Scalar> Held<T> {
    pub fn in_format(format: Format<T>) -> Self {
        Self::Format { format: Box::new(format), rows: OnceLock::new() }
    }

    /// By compressed rows.
    pub fn rows(&self) -> &Csr<T> {
        match self {
            Self::Rows(a) => a,
            Self::Format { format, rows } => rows.get_or_init(|| {
                let made = format.given().csr().expect("Format::of lets no more entries in than rows can have");
                made.into_owned()
            }),
        }
    }

    /// For products and certificates.
    pub fn as_matrix(&self) -> &dyn Matrix<T> {
        match self {
            Self::Rows(a) => a,
            Self::Format { format, .. } => format.as_matrix(),
        }
    }

    /// A lower bound of 1/(‖A‖∞‖A⁻¹‖∞), which dominance tells; 0 or less where it tells nothing.
    pub fn rcond_bound(&self) -> f64 {
        match self {
            Self::Rows(a) => rcond_of(a.survey().margin, a.survey().row_sizes.1),
            Self::Format { format, .. } => format.rcond,
        }
    }

    pub fn n(&self) -> usize {
        self.as_matrix().nrows()
    }
}
