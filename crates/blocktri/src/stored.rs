//! A matrix of its own, in the format that it was given in.
//!
//! Three diagonals, a band, blocks and full matrices stay what they are where more than half of the numbers that their format stores are not
//! zero: methods for the format then take them as they stand. Others become compressed rows, whose pattern tells more than the format does.

use std::ops::Range;
use std::sync::OnceLock;

use bt_direct::{Cyclic, DenseMatrix, Given};
use bt_formats::{
    Band, BlockTridiagonal, Csr, Error as InputError, LinearOperator, Matrix, Op, Par, Partition, Run, Scalar,
    Tridiagonal, memory, zero,
};
use faer::{Mat, MatRef};

use crate::error::Error;

/// A matrix in the format that it was given in, and by compressed rows once something asks for them.
///
/// ```
/// use blocktri::faer::mat;
/// use blocktri::{Given, SolveOptions, Solver, StoredMatrix};
/// // [ 4     ]
/// // [ 1 4   ]
/// // [ 1 1 4 ]
/// let a = StoredMatrix::from_band(2, 0, mat![[4.0, 4.0, 4.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]].as_ref())?;
/// assert!(matches!(a.given(), Given::Band(_)));
/// let solver = Solver::new(a.given(), &SolveOptions::default(), &mut ())?;
/// let answer = solver.solve(mat![[4.0], [5.0], [6.0f64]].as_ref())?;
/// assert!((0..3).all(|i| (answer.x[(i, 0)] - 1.0).abs() < 1e-15));
/// assert_eq!((a.nnz(), a.rows()?.row_ptr()), (6, &[0, 1, 3, 6][..]));
/// # Ok::<(), blocktri::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct StoredMatrix<T: Scalar>(Kept<T>);

#[derive(Clone, Debug)]
enum Kept<T: Scalar> {
    Rows(Csr<T>),
    Format { stored: Stored<T>, nonzeros: usize, rows: OnceLock<Csr<T>> },
}

/// The matrix in a format that methods work on.
#[derive(Clone, Debug)]
pub(crate) enum Stored<T: Scalar> {
    Tridiagonal(Tridiagonal<T>),
    Band(Band<T>),
    Blocks(BlockTridiagonal<T>),
    Periodic(Cyclic<T>),
    Full(Full<T>),
}

/// All numbers of a matrix.
#[derive(Clone, Debug)]
pub(crate) struct Full<T>(pub Mat<T>);

impl<T: Scalar> StoredMatrix<T> {
    /// From the three diagonals: `lower` and `upper` of n − 1 entries, `diag` of n.
    ///
    /// # Errors
    /// [`Error::Input`] when the lengths do not match.
    pub fn from_diagonals(lower: &[T], diag: &[T], upper: &[T]) -> Result<Self, Error> {
        let n = diag.len();
        for (what, found) in [("entries below the diagonal", lower.len()), ("entries above the diagonal", upper.len())]
        {
            let expected = n.saturating_sub(1);
            if expected != found {
                return Err(InputError::DimensionMismatch { what, expected, found }.into());
            }
        }
        let nonzeros = [lower, diag, upper].map(count).iter().sum();
        let (mut below, mut above) = (Vec::with_capacity(n), Vec::with_capacity(n));
        if n > 0 {
            below.push(zero());
        }
        below.extend_from_slice(lower);
        above.extend_from_slice(upper);
        above.resize(n, zero());
        Self::kept(Stored::Tridiagonal(Tridiagonal::new(below, diag.to_vec(), above)?), nonzeros)
    }

    /// From LAPACK's band storage without room for fill: `ab` is (kl + ku + 1) × n with A(i, j) at (ku + i − j, j). The corners outside
    /// the matrix are not read. A band with at most one diagonal on either side is three diagonals.
    ///
    /// # Errors
    /// [`Error::Input`] when `ab` has another number of rows, or there is no memory.
    pub fn from_band(kl: usize, ku: usize, ab: MatRef<'_, T>) -> Result<Self, Error> {
        if kl <= 1 && ku <= 1 && ab.nrows() == kl + ku + 1 && ab.ncols() > 0 {
            let n = ab.ncols();
            let numbers = |r: Option<usize>, columns: Range<usize>| -> Vec<T> {
                columns.map(|j| r.filter(|&r| r < ab.nrows()).map_or(zero(), |r| ab[(r, j)])).collect()
            };
            let lower = numbers(Some(ku + 1), 0..n - 1);
            return Self::from_diagonals(&lower, &numbers(Some(ku), 0..n), &numbers(ku.checked_sub(1), 1..n));
        }
        let band = Band::from_lapack(kl, ku, ab)?;
        // What is not of the band is zero in its storage.
        let nonzeros = count(band.values());
        Self::kept(Stored::Band(band), nonzeros)
    }

    /// From blocks: `diag` of m square ones, `lower` and `upper` of m − 1 with `lower[j]` in block row j + 1 and `upper[j]` in block row j.
    ///
    /// # Errors
    /// [`Error::Input`] when the numbers or shapes of the blocks do not fit, or there is no memory.
    pub fn from_blocks(
        lower: &[MatRef<'_, T>],
        diag: &[MatRef<'_, T>],
        upper: &[MatRef<'_, T>],
    ) -> Result<Self, Error> {
        let m = diag.len();
        for (what, found) in [("blocks below the diagonal", lower.len()), ("blocks above the diagonal", upper.len())] {
            let expected = m.saturating_sub(1);
            if expected != found {
                return Err(InputError::DimensionMismatch { what, expected, found }.into());
            }
        }
        let sizes: Vec<usize> = diag.iter().map(MatRef::nrows).collect();
        let partition = Partition::from_sizes(sizes.iter().copied())?;
        let fits = |what: &'static str, j: usize, block: MatRef<'_, T>, (nrows, ncols): (usize, usize)| {
            if block.shape() == (nrows, ncols) {
                return Ok(());
            }
            let why =
                format!("block {j} (from 0) is {} × {} and must be {nrows} × {ncols}", block.nrows(), block.ncols());
            Err(InputError::InvalidStructure { what, why })
        };
        for j in 0..m {
            fits("diagonal blocks", j, diag[j], (sizes[j], sizes[j]))?;
        }
        for j in 0..m.saturating_sub(1) {
            fits("lower blocks", j, lower[j], (sizes[j + 1], sizes[j]))?;
            fits("upper blocks", j, upper[j], (sizes[j], sizes[j + 1]))?;
        }
        let numbers = |blocks: &[MatRef<'_, T>]| blocks.iter().map(|b| b.nrows() * b.ncols()).sum::<usize>();
        let (squares, neighbours) = (numbers(diag), numbers(lower) + numbers(upper));
        memory::ask(((squares + neighbours) * size_of::<T>()) as u64, "the blocks")?;
        let (mut diagonal, mut couplings) = (Vec::with_capacity(squares), Vec::with_capacity(neighbours));
        for j in 0..m {
            append(&mut diagonal, diag[j]);
            // The columns of the block row's left neighbour, then those of its right one.
            j.checked_sub(1).into_iter().for_each(|left| append(&mut couplings, lower[left]));
            upper.get(j).into_iter().for_each(|right| append(&mut couplings, *right));
        }
        let nonzeros = count(&diagonal) + count(&couplings);
        Self::kept(Stored::Blocks(BlockTridiagonal::from_dense_blocks(partition, diagonal, couplings)?), nonzeros)
    }

    /// As it stands, or by rows where no more than half of its numbers are not zero.
    fn kept(stored: Stored<T>, nonzeros: usize) -> Result<Self, Error> {
        if 2 * nonzeros > stored.as_matrix().nnz() {
            return Ok(Self(Kept::Format { stored, nonzeros, rows: OnceLock::new() }));
        }
        Ok(Self(Kept::Rows(stored.given().csr()?.into_owned())))
    }

    /// What solvers take.
    pub fn given(&self) -> Given<'_, T> {
        match &self.0 {
            Kept::Rows(a) => a.into(),
            Kept::Format { stored, .. } => stored.given(),
        }
    }

    /// By compressed rows, which are made at the first call, of what is not zero.
    ///
    /// # Errors
    /// [`Error::Input`] when 32-bit pointers cannot count the entries, or there is no memory.
    pub fn rows(&self) -> Result<&Csr<T>, Error> {
        match &self.0 {
            Kept::Rows(a) => Ok(a),
            Kept::Format { stored, rows, .. } => {
                if let Some(a) = rows.get() {
                    return Ok(a);
                }
                let made = stored.given().csr()?.into_owned();
                Ok(rows.get_or_init(|| made))
            }
        }
    }

    /// For products.
    pub fn as_matrix(&self) -> &dyn Matrix<T> {
        match &self.0 {
            Kept::Rows(a) => a,
            Kept::Format { stored, .. } => stored.as_matrix(),
        }
    }

    /// Entries of compressed rows, and in other formats those that are not zero.
    pub fn nnz(&self) -> usize {
        match &self.0 {
            Kept::Rows(a) => a.nnz(),
            Kept::Format { nonzeros, .. } => *nonzeros,
        }
    }
}

impl<T: Scalar> From<Csr<T>> for StoredMatrix<T> {
    fn from(a: Csr<T>) -> Self {
        Self(Kept::Rows(a))
    }
}

impl<T: Scalar> TryFrom<Mat<T>> for StoredMatrix<T> {
    type Error = Error;
    /// All numbers, or by rows what is not zero where that is no more than half of them.
    fn try_from(a: Mat<T>) -> Result<Self, Error> {
        let nonzeros = (0..a.ncols()).map(|j| count(a.col_as_slice(j))).sum();
        Self::kept(Stored::Full(Full(a)), nonzeros)
    }
}

impl<T: Scalar> TryFrom<BlockTridiagonal<T>> for StoredMatrix<T> {
    type Error = Error;
    fn try_from(a: BlockTridiagonal<T>) -> Result<Self, Error> {
        let mut nonzeros = 0;
        a.for_each_entry(&mut |_, _, v| nonzeros += usize::from(v != zero()));
        Self::kept(Stored::Blocks(a), nonzeros)
    }
}

/// The columns of a block behind those of others.
fn append<T: Scalar>(to: &mut Vec<T>, block: MatRef<'_, T>) {
    block.col_iter().for_each(|column| to.extend(column.iter().copied()));
}

/// How many are not zero.
fn count<T: Scalar>(values: &[T]) -> usize {
    values.iter().filter(|v| **v != zero()).count()
}

impl<T: Scalar> Stored<T> {
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
}

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
    fn runs_of(&self, rows: Range<usize>) -> Option<Box<dyn Iterator<Item = Run<'_, T>> + '_>> {
        Some(Box::new(DenseMatrix::new(self.0.as_ref()).runs(rows)?))
    }
}

#[cfg(test)]
mod tests {
    use faer::mat;

    use super::*;

    #[test]
    fn blocks_of_different_sizes_stand_where_they_belong() {
        // [ 1 | 2 3 ]
        // [ 4 | 5 0 ]
        // [ 6 | 0 7 ]
        let (lower, upper) = (mat![[4.0], [6.0]], mat![[2.0, 3.0]]);
        let (one, two) = (mat![[1.0]], mat![[5.0, 0.0], [0.0, 7.0]]);
        let a = StoredMatrix::from_blocks(&[lower.as_ref()], &[one.as_ref(), two.as_ref()], &[upper.as_ref()]).unwrap();
        assert!(matches!(a.given(), Given::Blocks(_)));
        assert_eq!(a.rows().unwrap().to_dense(), mat![[1.0, 2.0, 3.0], [4.0, 5.0, 0.0], [6.0, 0.0, 7.0]]);
        assert_eq!((a.nnz(), a.rows().unwrap().nnz()), (7, 7));
    }

    #[test]
    fn shapes_that_do_not_fit_are_named() {
        let (square, flat) = (mat![[1.0, 0.0], [0.0, 1.0]], mat![[1.0, 2.0]]);
        let wrong = StoredMatrix::from_blocks(&[flat.as_ref()], &[square.as_ref(); 2], &[square.as_ref()]);
        let wrong = wrong.unwrap_err().to_string();
        assert!(wrong.contains("block 0 (from 0) is 1 × 2 and must be 2 × 2"), "{wrong}");
        assert!(StoredMatrix::from_blocks(&[], &[square.as_ref(); 2], &[square.as_ref()]).is_err());
    }

    #[test]
    fn what_is_mostly_zero_becomes_rows() {
        let n = 50;
        // Two diagonals, ten apart, of a band of eleven.
        let sparse = Mat::from_fn(11, n, |r, _| if r == 0 || r == 10 { 2.0 } else { 0.0 });
        let full = Mat::from_fn(11, n, |r, j| (1 + r + j) as f64);
        let made = |ab: &Mat<f64>| StoredMatrix::from_band(10, 0, ab.as_ref()).unwrap();
        assert!(matches!(made(&sparse).given(), Given::Csr(_)));
        assert!(matches!(made(&full).given(), Given::Band(_)));
        // [ 1 2   ]
        // [ 3 4 5 ]
        // [   6 7 ]
        let three = mat![[0.0, 2.0, 5.0], [1.0, 4.0, 7.0], [3.0, 6.0, 0.0]];
        for (kl, ku) in [(0, 1), (1, 0), (1, 1)] {
            let a = StoredMatrix::from_band(kl, ku, three.subrows(1 - ku, kl + ku + 1)).unwrap();
            assert!(matches!(a.given(), Given::Tridiagonal(_)));
            let expected = mat![[1.0, 2.0, 0.0], [3.0, 4.0, 5.0], [0.0, 6.0, 7.0]];
            let inside = |i: usize, j: usize| if i <= j + kl && j <= i + ku { expected[(i, j)] } else { 0.0 };
            assert_eq!(a.rows().unwrap().to_dense(), Mat::from_fn(3, 3, inside));
        }
        let dense = |fill: usize| Mat::from_fn(n, n, |i, j| if (i + j) % 4 < fill { 1.0 } else { 0.0 });
        assert!(matches!(StoredMatrix::try_from(dense(1)).unwrap().given(), Given::Csr(_)));
        assert!(matches!(StoredMatrix::try_from(dense(3)).unwrap().given(), Given::Dense(_)));
        let (none, some) = (vec![0.0; n - 1], vec![1.0; n]);
        let diagonal = StoredMatrix::from_diagonals(&none, &some, &none).unwrap();
        assert!(matches!(diagonal.given(), Given::Csr(_)));
        let bidiagonal = StoredMatrix::from_diagonals(&none, &some, &some[1..]).unwrap();
        assert!(matches!(bidiagonal.given(), Given::Tridiagonal(_)));
        assert_eq!((diagonal.nnz(), bidiagonal.nnz()), (n, 2 * n - 1));
    }
}
