//! What is eliminated: A by columns, scaled to rows and columns of one size; and what its elimination may take.

use bt_formats::{Csr, LinearOperator, Matrix, RealScalar, Scalar, equilibrate, one};

use crate::error::Result;
use crate::sparse_cholesky::vectors::WIDE;

pub(super) const METHOD: &str = "sparse-lu";

/// Compressed sparse columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Csc<T> {
    pub(crate) col_ptr: Vec<u32>,
    pub(crate) row_idx: Vec<u32>,
    pub(crate) values: Vec<T>,
}

impl<T: Copy> Csc<T> {
    pub(crate) fn n(&self) -> usize {
        self.col_ptr.len() - 1
    }
    pub(crate) fn range(&self, j: usize) -> std::ops::Range<usize> {
        self.col_ptr[j] as usize..self.col_ptr[j + 1] as usize
    }
    pub(crate) fn starts(&self) -> impl Iterator<Item = usize> + '_ {
        self.col_ptr[..self.n()].iter().map(|&p| p as usize)
    }
    pub(crate) fn col(&self, j: usize) -> impl Iterator<Item = (usize, T)> + '_ {
        self.row_idx[self.range(j)].iter().zip(&self.values[self.range(j)]).map(|(&i, &v)| (i as usize, v))
    }
}

/// R·A·C by columns, with largest entries near 1 in all rows and columns.
pub(crate) struct Scaled<T: Scalar> {
    pub(crate) a: Csc<T>,
    pub(crate) row_factors: Vec<T::Real>,
    pub(crate) col_factors: Vec<T::Real>,
    /// ‖A‖₁
    pub(crate) norm_one: f64,
    /// max |R·A·C|
    pub(crate) norm_max: f64,
    /// Where the next entry of each column stands, while entries come row by row.
    next: Vec<u32>,
}

impl<T: Scalar> Scaled<T> {
    #[inline(never)]
    pub(crate) fn of(a: &Csr<T>) -> Result<Self> {
        a.check_square()?;
        a.check_finite()?;
        let n = a.nrows();
        check_size(n, a.nnz())?;
        let (col_ptr, row_idx, values) = a.transpose().into_parts();
        let (a_by_columns, ones) = (Csc { col_ptr, row_idx, values }, vec![one(); n]);
        let (row_factors, col_factors) = (ones.clone(), ones);
        let mut scaled = Self {
            a: a_by_columns,
            row_factors,
            col_factors,
            norm_one: 0.0,
            norm_max: 0.0,
            next: Vec::with_capacity(n),
        };
        scaled.load(a);
        Ok(scaled)
    }

    pub(crate) fn bytes(&self) -> usize {
        let Csc { col_ptr, row_idx, values } = &self.a;
        let factors = size_of_val(&*self.row_factors) + size_of_val(&*self.col_factors) + 4 * self.next.capacity();
        size_of_val(&**col_ptr) + size_of_val(&**row_idx) + size_of_val(&**values) + factors
    }

    /// ln(∏rᵢ·∏cⱼ), by which log|det(R·A·C)| is more than log|det A|; the exponents sum exactly.
    pub(crate) fn log_of_factors(&self) -> f64 {
        let exponents: f64 = self.row_factors.iter().chain(&self.col_factors).map(|f| f.to_f64().log2()).sum();
        exponents * std::f64::consts::LN_2
    }

    /// That `a` has the pattern of the matrix there was.
    pub(crate) fn check_pattern(&mut self, a: &Csr<T>) -> Result<()> {
        let Csc { col_ptr, row_idx, .. } = &self.a;
        let n = self.a.n();
        let other = |why: String| bt_formats::Error::InvalidStructure { what: "matrix for refactorisation", why };
        if a.nrows() != n || a.nnz() != row_idx.len() {
            let found = format!("{} rows and {} entries", a.nrows(), a.nnz());
            return Err(other(format!("{found}, but {n} and {} were factored", row_idx.len())).into());
        }
        self.next.clear();
        self.next.extend(&col_ptr[..n]);
        for i in 0..n {
            for &j in a.row(i).0 {
                let (next, end) = (&mut self.next[j as usize], col_ptr[j as usize + 1]);
                // As many entries as there were, each of them among those: all of them.
                while *next < end && (row_idx[*next as usize] as usize) < i {
                    *next += 1;
                }
                if *next == end || row_idx[*next as usize] as usize != i {
                    return Err(other(format!("the entry at row {i}, column {j} (from 0) is new")).into());
                }
            }
        }
        Ok(())
    }

    /// Takes the values of `a`, scaled, into the columns.
    pub(crate) fn load(&mut self, a: &Csr<T>) {
        let (rows, cols) = (&mut self.row_factors, &mut self.col_factors);
        equilibrate(a, rows, cols);
        // Rows come in order, so the entries of a column do too.
        let Csc { col_ptr, values, .. } = &mut self.a;
        self.norm_max = 0.0;
        self.next.clear();
        self.next.extend(&col_ptr[..a.nrows()]);
        a.for_each_entry(&mut |i, j, v| {
            let scaled = v * T::from_real(rows[i]) * T::from_real(cols[j]);
            self.norm_max = self.norm_max.max_nan(scaled.abs1().to_f64());
            values[self.next[j] as usize] = scaled;
            self.next[j] += 1;
        });
        self.norm_one = (0..a.nrows())
            .map(|j| {
                let c = cols[j].to_f64();
                self.a.col(j).map(|(i, v)| v.abs().to_f64() / rows[i].to_f64() / c).sum()
            })
            .fold(0.0, f64::max_nan);
    }
}

/// Bytes of A by columns, its scaling, its pattern and order, and what a solve needs.
pub(super) fn held<T: Scalar>(n: usize, nnz: usize) -> usize {
    (5 * n + 2 + 2 * nnz) * size_of::<u32>() + (nnz + 2 * WIDE * n) * size_of::<T>() + 2 * n * size_of::<T::Real>()
}

/// Indices of the orderings are signed 32-bit numbers.
fn check_size(n: usize, nnz: usize) -> Result<()> {
    if n.max(nnz) > i32::MAX as usize / 4 {
        return Err(bt_formats::Error::TooLarge {
            what: "sparse LU",
            needed: format!("{n} columns and {nnz} entries"),
            limit: format!("the {} of its 32-bit orderings", i32::MAX / 4),
        }
        .into());
    }
    Ok(())
}
