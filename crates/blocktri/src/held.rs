//! The matrix of a solver, in the format that it was given in.
//!
//! Three diagonals, with corners or without, a band, blocks and full matrices are kept, multiplied and factored as they stand. Compressed rows are made of them once something needs
//! rows: an estimate of the condition number, a matching, another method.

use std::sync::OnceLock;

use bt_direct::{Cyclic, DenseMatrix, Given};
use bt_formats::{
    Along, Band, BlockTridiagonal, Csr, Error as InputError, LinearOperator, Matrix, Op, Par, RealScalar, Run, Scalar,
    Sizes, Tridiagonal, memory, zero,
};
use faer::{ColRef, Mat, MatRef};

use crate::direct::{Direct, Family};
use crate::equilibrated::{are_alike, are_in_the_middle, extents_are_alike};
use crate::error::Error;

/// A matrix of its own in a format that methods work on.
#[derive(Clone)]
pub(crate) enum Format<T: Scalar> {
    Tridiagonal(Tridiagonal<T>),
    Band(Band<T>),
    Blocks(BlockTridiagonal<T>),
    Periodic(Cyclic<T>),
    Full(Full<T>),
}

/// All numbers of a matrix.
#[derive(Clone)]
pub(crate) struct Full<T>(Mat<T>);

impl<T: Scalar> LinearOperator<T> for Full<T> {
    fn nrows(&self) -> usize {
        self.0.nrows()
    }
    fn ncols(&self) -> usize {
        self.0.ncols()
    }
    fn apply(&self, alpha: T, x: &[T], beta: T, y: &mut [T]) {
        DenseMatrix::new(self.0.as_ref()).apply(alpha, x, beta, y);
    }
}

impl<T: Scalar> Matrix<T> for Full<T> {
    fn nnz(&self) -> usize {
        self.0.nrows() * self.0.ncols()
    }
    fn bytes(&self) -> usize {
        DenseMatrix::new(self.0.as_ref()).bytes()
    }
    fn apply_op(&self, op: Op, alpha: T, x: &[T], beta: T, y: &mut [T], par: Par) {
        DenseMatrix::new(self.0.as_ref()).apply_op(op, alpha, x, beta, y, par);
    }
    fn for_each_entry(&self, visit: &mut dyn FnMut(usize, usize, T)) {
        DenseMatrix::new(self.0.as_ref()).for_each_entry(visit);
    }
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
        let format = match given {
            Given::Tridiagonal(a) => Self::Tridiagonal(a.clone()),
            Given::Band(a) => Self::Band(a.clone()),
            Given::Blocks(a) => Self::Blocks(a.clone()),
            Given::Periodic(a) => Self::Periodic(a.clone()),
            Given::Dense(a) if is_full(a) => {
                memory::ask(DenseMatrix::new(a).bytes() as u64, "a copy of the matrix")?;
                Self::Full(Full(a.to_owned()))
            }
            _ => return Ok(None),
        };
        let entries = format.as_matrix().nnz();
        if entries > u32::MAX as usize - 1 {
            let why = format!("{entries} entries are more than 32-bit indices have numbers for");
            return Err(InputError::InvalidStructure { what: "matrix", why }.into());
        }
        let mut sizes = Sizes::default();
        format.for_each_run(|run| sizes.add(run.values));
        if !sizes.are_finite()
            && let Some(error) = format.not_finite()
        {
            return Err(error);
        }
        let extent = sizes.extent();
        let in_good_units = are_in_the_middle::<T>(extent) && (are_alike(extent) || format.lines_are_alike());
        Ok(Some(format).filter(|_| in_good_units))
    }

    /// Calls `visit` for all entries, side by side where the format stores them so.
    fn for_each_run(&self, mut visit: impl FnMut(Run<'_, T>)) {
        match self.as_matrix().runs_of(0..self.as_matrix().nrows()) {
            Some(runs) => runs.for_each(visit),
            None => self.as_matrix().for_each_entry(&mut |row, col, v| {
                visit(Run { row, along: Along::Column(col), values: &[v] });
            }),
        }
    }

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

    /// Whether the largest numbers of all rows differ little, and those of all columns.
    fn lines_are_alike(&self) -> bool {
        let n = self.as_matrix().nrows();
        let (mut rows, mut cols) = (vec![0.0f64; n], vec![0.0f64; n]);
        self.for_each_run(|run| {
            for (k, v) in run.values.iter().enumerate() {
                let (i, size) = (run.row + k, v.abs1().to_f64());
                let j = column(run.along, k);
                rows[i] = rows[i].max(size);
                cols[j] = cols[j].max(size);
            }
        });
        let extent = |sizes: &[f64]| sizes.iter().fold((f64::INFINITY, 0.0f64), |(l, m), &s| (l.min(s), m.max(s)));
        extents_are_alike(extent(&rows), || extent(&cols))
    }

    pub fn given(&self) -> Given<'_, T> {
        match self {
            Self::Tridiagonal(a) => a.into(),
            Self::Band(a) => a.into(),
            Self::Blocks(a) => a.into(),
            Self::Periodic(a) => a.into(),
            Self::Full(a) => a.0.as_ref().into(),
        }
    }

    pub fn as_matrix(&self) -> &dyn Matrix<T> {
        match self {
            Self::Tridiagonal(a) => a,
            Self::Band(a) => a,
            Self::Blocks(a) => a,
            Self::Periodic(a) => a,
            Self::Full(a) => a,
        }
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

    /// Weakly diagonally dominant by rows: elimination without interchanges has growth at most 2.
    pub fn is_dominant(&self) -> bool {
        let mut beyond = vec![zero::<T::Real>(); self.as_matrix().nrows()];
        self.for_each_run(|run| {
            let rows = &mut beyond[run.row..];
            if run.along == Along::Diagonal(run.row) {
                rows.iter_mut().zip(run.values).for_each(|(sum, v)| *sum -= v.abs());
                return;
            }
            rows.iter_mut().zip(run.values).for_each(|(sum, v)| *sum += v.abs());
            // In a column the diagonal is one entry.
            if let Along::Column(j) = run.along
                && let Some(diagonal) = j.checked_sub(run.row).and_then(|k| run.values.get(k))
            {
                rows[j - run.row] -= diagonal.abs() + diagonal.abs();
            }
        });
        beyond.iter().all(|sum| *sum <= zero())
    }

    /// Whether a band with kl = ku is Hermitian with a positive diagonal: what Cholesky has the last word on.
    pub fn is_definite_band(&self) -> bool {
        let Self::Band(a) = self else { return false };
        let (values, ldab, k) = (a.values(), a.ldab(), a.ku());
        let positive = |v: T| v.re() > zero() && v.im() == zero();
        k == a.kl()
            && (0..a.n()).all(|j| {
                // a(j + d, j) and a(j, j + d)
                let diagonal = j * ldab + 2 * k;
                let mut below = 1..(k + 1).min(a.n() - j);
                positive(values[diagonal])
                    && below.all(|d| values[diagonal + d] == Scalar::conj(values[diagonal + d * (ldab - 1)]))
            })
    }
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

    pub fn n(&self) -> usize {
        self.as_matrix().nrows()
    }
}

/// The column of entry k of a run.
fn column(along: Along, k: usize) -> usize {
    match along {
        Along::Column(j) => j,
        Along::Diagonal(first) => first + k,
    }
}
