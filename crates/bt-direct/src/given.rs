//! A matrix in any of the formats, borrowed: what [`Factorization::refactor`](crate::Factorization::refactor) takes.
//!
//! Every method works on one format. Conversions to it stand here, once: what is in the format already is borrowed, of anything else
//! the entries that are not zero take their places, and an entry that has none is an error that names it.

use std::borrow::Cow;

use bt_formats::{
    Band, BlockTridiagonal, Coo, Csr, Error, HybridLayout, LinearOperator, Matrix, Partition, Scalar, Tridiagonal,
    memory, zero,
};
use faer::{Mat, MatRef};

use crate::cyclic::Cyclic;
use crate::dense::DenseMatrix;
use crate::error::Result;

/// A borrowed matrix.
///
/// ```
/// use bt_direct::{BandLu, Factorization, Given, SparseLu};
/// use bt_formats::{Band, Csr};
/// let old = Csr::from_dense(faer::mat![[2.0, 1.0], [1.0, 2.0]].as_ref())?;
/// let new = Csr::from_dense(faer::mat![[4.0, 1.0], [1.0, 2.0]].as_ref())?;
/// // One line for all methods, whatever they work on.
/// let methods: [Box<dyn Factorization<f64>>; 2] =
///     [Box::new(SparseLu::new(&old)?), Box::new(BandLu::new(&Band::from_csr(&old)?)?)];
/// for mut factors in methods {
///     factors.refactor(Given::Csr(&new), &mut ())?;
///     assert!((factors.log_det().log_abs - 7f64.ln()).abs() < 1e-15);
/// }
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Given<'a, T> {
    /// Compressed rows.
    Csr(&'a Csr<T>),
    /// Three diagonals.
    Tridiagonal(&'a Tridiagonal<T>),
    /// A band.
    Band(&'a Band<T>),
    /// Block-tridiagonal.
    Blocks(&'a BlockTridiagonal<T>),
    /// All numbers, with any strides.
    Dense(MatRef<'a, T>),
    /// Three diagonals and two corners.
    Periodic(&'a Cyclic<T>),
}

impl<'a, T> From<&'a Csr<T>> for Given<'a, T> {
    fn from(a: &'a Csr<T>) -> Self {
        Self::Csr(a)
    }
}

impl<'a, T> From<&'a Tridiagonal<T>> for Given<'a, T> {
    fn from(a: &'a Tridiagonal<T>) -> Self {
        Self::Tridiagonal(a)
    }
}

impl<'a, T> From<&'a Band<T>> for Given<'a, T> {
    fn from(a: &'a Band<T>) -> Self {
        Self::Band(a)
    }
}

impl<'a, T> From<&'a BlockTridiagonal<T>> for Given<'a, T> {
    fn from(a: &'a BlockTridiagonal<T>) -> Self {
        Self::Blocks(a)
    }
}

impl<'a, T> From<MatRef<'a, T>> for Given<'a, T> {
    fn from(a: MatRef<'a, T>) -> Self {
        Self::Dense(a)
    }
}

impl<'a, T> From<&'a Cyclic<T>> for Given<'a, T> {
    fn from(a: &'a Cyclic<T>) -> Self {
        Self::Periodic(a)
    }
}

impl<'a, T: Scalar> Given<'a, T> {
    /// Rows and columns.
    pub fn shape(self) -> (usize, usize) {
        match self {
            Self::Csr(a) => (a.nrows(), a.ncols()),
            Self::Tridiagonal(a) => (a.nrows(), a.ncols()),
            Self::Band(a) => (a.nrows(), a.ncols()),
            Self::Blocks(a) => (a.nrows(), a.ncols()),
            Self::Dense(a) => a.shape(),
            Self::Periodic(a) => (a.nrows(), a.ncols()),
        }
    }

    /// Calls `visit(row, col, value)` for every stored entry, row by row, columns increasing in a row.
    #[inline(never)]
    pub fn for_each_entry(self, visit: &mut dyn FnMut(usize, usize, T)) {
        match self {
            Self::Csr(a) => a.for_each_entry(visit),
            Self::Tridiagonal(a) => a.for_each_entry(visit),
            Self::Band(a) => a.for_each_entry(visit),
            Self::Blocks(a) => a.for_each_entry(visit),
            Self::Dense(a) => DenseMatrix::new(a).for_each_entry(visit),
            Self::Periodic(a) => a.for_each_entry(visit),
        }
    }

    /// By compressed rows: as they are stored, zeros and all, or else the entries that are not zero.
    ///
    /// # Errors
    /// [`FactorError::Input`](crate::FactorError::Input) beyond 32-bit indices.
    ///
    /// # Cost
    /// Two passes over the entries, and their memory.
    #[inline(never)]
    pub fn csr(self) -> Result<Cow<'a, Csr<T>>> {
        Ok(Cow::Owned(match self {
            Self::Csr(a) => return Ok(Cow::Borrowed(a)),
            Self::Tridiagonal(a) => a.to_csr()?,
            Self::Band(a) => a.to_csr()?,
            Self::Blocks(a) => a.to_csr()?,
            Self::Dense(a) => Csr::from_dense(a)?,
            Self::Periodic(a) => {
                let mut entries = Coo::new(a.nrows(), a.ncols())?;
                let mut done = Ok(());
                a.for_each_entry(&mut |i, j, v| {
                    if v != zero() && done.is_ok() {
                        done = entries.push(i, j, v);
                    }
                });
                done?;
                entries.to_csr()?
            }
        }))
    }

    /// As three diagonals.
    ///
    /// # Errors
    /// [`FactorError::Input`](crate::FactorError::Input) when it is not square, and naming an entry beyond them.
    pub fn tridiagonal(self) -> Result<Cow<'a, Tridiagonal<T>>> {
        match self {
            Self::Tridiagonal(a) => Ok(Cow::Borrowed(a)),
            other => Ok(Cow::Owned(Tridiagonal::from_csr(&*other.csr()?)?)),
        }
    }

    /// As three diagonals and two corners.
    ///
    /// # Errors
    /// [`FactorError::Input`](crate::FactorError::Input) when it is not square, and naming an entry beyond them.
    pub fn periodic(self) -> Result<Cow<'a, Cyclic<T>>> {
        match self {
            Self::Periodic(a) => Ok(Cow::Borrowed(a)),
            other => Ok(Cow::Owned(Cyclic::from_csr(&*other.csr()?)?)),
        }
    }

    /// As a band of `kl` sub- and `ku` super-diagonals.
    ///
    /// ```
    /// use bt_direct::Given;
    /// use bt_formats::Tridiagonal;
    /// let t = Tridiagonal::new(vec![0.0, 3.0], vec![1.0, 2.0], vec![4.0, 0.0])?;
    /// let band = Given::from(&t).band(1, 1)?;
    /// assert_eq!((band.get(1, 0), band.get(0, 1)), (3.0, 4.0));
    /// let refused = Given::from(&t).band(1, 0).unwrap_err();
    /// assert!(refused.to_string().contains("row 0, column 1"));
    /// # Ok::<(), bt_direct::FactorError>(())
    /// ```
    ///
    /// # Errors
    /// [`FactorError::Input`](crate::FactorError::Input) when it is not square, naming the first entry outside, and when there is not
    /// the memory.
    #[inline(never)]
    pub fn band(self, kl: usize, ku: usize) -> Result<Cow<'a, Band<T>>> {
        if let Self::Band(a) = self
            && (a.kl(), a.ku()) == (kl, ku)
        {
            return Ok(Cow::Borrowed(a));
        }
        self.check_square()?;
        let mut band = Band::zeros(self.shape().0, kl, ku)?;
        if let Self::Csr(a) = self {
            Band::write_columns(a, (kl, ku), kl, 0..a.ncols(), band.values_mut())?;
            return Ok(Cow::Owned(band));
        }
        let (diagonal, stride) = (kl + ku, 2 * kl + ku);
        let values = band.values_mut();
        let mut outside = None;
        let mut put = |i: usize, j: usize, v: T| {
            if i <= j + kl && j <= i + ku {
                values[diagonal + i + j * stride] = v;
            } else if v != zero() && outside.is_none() {
                outside = Some((i, j));
            }
        };
        self.for_each_entry(&mut put);
        match outside {
            None => Ok(Cow::Owned(band)),
            Some((row, col)) => {
                let why = format!("lies outside the band of {kl} sub- and {ku} super-diagonals");
                Err(Error::OutsideStructure { row, col, why }.into())
            }
        }
    }

    /// In the blocks of `partition`; `layout` is that of blocks which are made, [unless they are full](HybridLayout::unless_full).
    ///
    /// # Errors
    /// [`FactorError::Input`](crate::FactorError::Input) on another size, naming the first entry beyond three block diagonals, and
    /// when there is not the memory.
    #[inline(never)]
    pub fn blocks(self, partition: &Partition, layout: HybridLayout) -> Result<Cow<'a, BlockTridiagonal<T>>> {
        match self {
            Self::Blocks(a) if a.partition() == partition => Ok(Cow::Borrowed(a)),
            other => {
                let rows = other.csr()?;
                let layout = layout.unless_full(&rows, partition);
                Ok(Cow::Owned(BlockTridiagonal::from_csr(&rows, partition.clone(), layout)?))
            }
        }
    }

    /// With all its zeros, in `own` if it is not dense already.
    ///
    /// ```
    /// use bt_direct::Given;
    /// use bt_formats::Csr;
    /// let a = Csr::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![5.0, 6.0])?;
    /// let mut own = faer::Mat::new();
    /// assert_eq!(Given::from(&a).dense(&mut own)?, faer::mat![[0.0, 5.0], [6.0, 0.0]]);
    /// # Ok::<(), bt_direct::FactorError>(())
    /// ```
    ///
    /// # Errors
    /// [`FactorError::Input`](crate::FactorError::Input) when it is not square, and when there is not the memory.
    #[inline(never)]
    pub fn dense<'b>(self, own: &'b mut Mat<T>) -> Result<MatRef<'b, T>>
    where
        'a: 'b,
    {
        self.check_square()?;
        if let Self::Dense(a) = self {
            return Ok(a);
        }
        let n = self.shape().0;
        let bytes = (n as u64).saturating_mul(n as u64).saturating_mul(size_of::<T>() as u64);
        memory::ask(bytes, "a dense matrix")?;
        *own = Mat::zeros(n, n);
        self.for_each_entry(&mut |i, j, v| own[(i, j)] = v);
        Ok(own.as_ref())
    }

    fn check_square(self) -> Result<()> {
        let (nrows, ncols) = self.shape();
        if nrows == ncols { Ok(()) } else { Err(Error::NotSquare { nrows, ncols }.into()) }
    }
}

#[cfg(test)]
mod tests {
    use faer::mat;

    use super::*;

    /// [ 2 1 . . ]
    /// [ 3 2 1 . ]
    /// [ . 3 2 1 ]
    /// [ . . 3 2 ]
    fn sample() -> Tridiagonal<f64> {
        Tridiagonal::new(vec![0.0, 3.0, 3.0, 3.0], vec![2.0; 4], vec![1.0, 1.0, 1.0, 0.0]).unwrap()
    }

    #[test]
    fn every_format_becomes_every_other() {
        let t = sample();
        let csr = t.to_csr().unwrap();
        let band = Band::from_csr(&csr).unwrap();
        let partition = Partition::uniform(4, 2).unwrap();
        let blocks = BlockTridiagonal::from_csr(&csr, partition.clone(), HybridLayout::default()).unwrap();
        let dense = csr.to_dense();
        let cyclic = Cyclic::new(t.clone(), 0.0, 0.0).unwrap();
        let all: [Given<'_, f64>; 6] =
            [(&csr).into(), (&t).into(), (&band).into(), (&blocks).into(), dense.as_ref().into(), (&cyclic).into()];
        for a in all {
            assert_eq!(a.shape(), (4, 4), "{a:?}");
            assert_eq!(*a.csr().unwrap(), csr, "{a:?}");
            assert_eq!(*a.tridiagonal().unwrap(), t, "{a:?}");
            assert_eq!(*a.band(1, 1).unwrap(), band, "{a:?}");
            assert_eq!(a.band(2, 1).unwrap().to_csr().unwrap(), csr, "{a:?}");
            assert_eq!(a.blocks(&partition, HybridLayout::default()).unwrap().to_csr().unwrap(), csr, "{a:?}");
            assert_eq!(*a.periodic().unwrap(), cyclic, "{a:?}");
            let mut own = Mat::new();
            assert_eq!(a.dense(&mut own).unwrap(), dense, "{a:?}");
        }
    }

    #[test]
    fn what_is_in_the_format_is_not_copied() {
        let t = sample();
        assert!(matches!(Given::from(&t).tridiagonal(), Ok(Cow::Borrowed(_))));
        let csr = t.to_csr().unwrap();
        assert!(matches!(Given::from(&csr).csr(), Ok(Cow::Borrowed(_))));
        let band = Band::from_csr(&csr).unwrap();
        assert!(matches!(Given::from(&band).band(1, 1), Ok(Cow::Borrowed(_))));
        assert!(matches!(Given::from(&band).band(1, 2), Ok(Cow::Owned(_))));
    }

    #[test]
    fn an_entry_without_a_place_is_named_and_zeros_are_looked_over() {
        let corner = mat![[1.0, 0.0, 5.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let told = |refused: crate::FactorError| {
            let told = refused.to_string();
            assert!(told.contains("row 0, column 2"), "{told}");
        };
        let csr = Csr::from_dense(corner.as_ref()).unwrap();
        for a in [Given::from(corner.as_ref()), Given::from(&csr)] {
            told(a.tridiagonal().unwrap_err());
            told(a.band(1, 1).unwrap_err());
            told(a.blocks(&Partition::uniform(3, 1).unwrap(), HybridLayout::default()).unwrap_err());
            assert!(a.periodic().is_ok());
        }
        let stored = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![1.0, 0.0, 1.0]).unwrap();
        assert!(Given::from(&stored).band(0, 0).is_ok());
    }

    #[test]
    fn only_square_matrices_have_factors() {
        let wide = Mat::<f64>::zeros(1, 2);
        let a = Given::from(wide.as_ref());
        let mut own = Mat::new();
        assert!(a.dense(&mut own).is_err() && a.band(1, 1).is_err() && a.tridiagonal().is_err());
        assert!(
            a.periodic().is_err() && a.blocks(&Partition::uniform(1, 1).unwrap(), HybridLayout::default()).is_err()
        );
    }
}
