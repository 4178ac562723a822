//! A system as the campaign keeps it: entries as pairs of doubles that its scalar type holds exactly.

use blocktri::{Coo, Csr, Scalar, c32, c64, faer::Mat};
use bt_formats::matrix_market::{write_csr_file, write_dense_file};
use bt_formats::{Error, ScalarKind};
use std::path::Path;

use crate::family::Family;

/// A·x = b.
#[derive(Clone, Debug)]
pub struct System {
    /// Where it comes from.
    pub family: Family,
    /// Scalar type it is solved in.
    pub kind: ScalarKind,
    /// Unknowns.
    pub n: usize,
    /// Entries (row, column, [re, im]) that are not zero, sorted, each place once.
    pub entries: Vec<(usize, usize, [f64; 2])>,
    /// Places where a zero is stored.
    pub zeros: Vec<(usize, usize)>,
    /// Right-hand side.
    pub b: Vec<[f64; 2]>,
}

impl System {
    /// Of a real dense matrix by rows.
    pub fn dense(n: usize, a: &[f64], b: &[f64]) -> Self {
        let entries =
            a.iter().enumerate().filter(|(_, v)| **v != 0.0).map(|(k, &v)| (k / n, k % n, [v, 0.0])).collect();
        let b = b.iter().map(|&v| [v, 0.0]).collect();
        Self { family: Family::Integers, kind: ScalarKind::F64, n, entries, zeros: Vec::new(), b }
    }

    /// The matrix in a scalar type.
    ///
    /// # Errors
    /// Not for systems of the campaign, whose entries lie inside the matrix.
    pub fn matrix<T: Scalar>(&self) -> Result<Csr<T>, Error> {
        let mut a = Coo::new(self.n, self.n)?;
        for &(i, j, [re, im]) in &self.entries {
            a.push(i, j, T::rounded(re, im))?;
        }
        for &(i, j) in &self.zeros {
            a.push(i, j, T::rounded(0.0, 0.0))?;
        }
        a.to_csr()
    }

    /// The right-hand side in a scalar type.
    pub fn rhs<T: Scalar>(&self) -> Mat<T> {
        Mat::from_fn(self.n, 1, |i, _| T::rounded(self.b[i][0], self.b[i][1]))
    }

    /// The twin 2^alpha·A·y = 2^beta·b.
    pub fn twin(&self, alpha: i32, beta: i32) -> Self {
        let (a, b) = (2f64.powi(alpha), 2f64.powi(beta));
        let mut twin = self.clone();
        twin.entries.iter_mut().for_each(|(.., v)| *v = [v[0] * a, v[1] * a]);
        twin.b.iter_mut().for_each(|v| *v = [v[0] * b, v[1] * b]);
        twin
    }

    /// Writes `stem`.mtx and `stem`_b.mtx.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, folder: &Path, stem: &str, comments: &[String]) -> Result<(), Error> {
        match self.kind {
            ScalarKind::F32 => self.write_as::<f32>(folder, stem, comments),
            ScalarKind::F64 => self.write_as::<f64>(folder, stem, comments),
            ScalarKind::C32 => self.write_as::<c32>(folder, stem, comments),
            ScalarKind::C64 => self.write_as::<c64>(folder, stem, comments),
        }
    }

    fn write_as<T: Scalar>(&self, folder: &Path, stem: &str, comments: &[String]) -> Result<(), Error> {
        write_csr_file(folder.join(format!("{stem}.mtx")), &self.matrix::<T>()?, comments)?;
        write_dense_file(folder.join(format!("{stem}_b.mtx")), self.rhs::<T>().as_ref(), comments)
    }
}

/// Unit roundoff of a scalar type.
pub fn unit_roundoff(kind: ScalarKind) -> f64 {
    if is_single(kind) { (-24f64).exp2() } else { (-53f64).exp2() }
}

/// Whether its parts are in single precision.
pub fn is_single(kind: ScalarKind) -> bool {
    matches!(kind, ScalarKind::F32 | ScalarKind::C32)
}

/// Whether it is complex.
pub fn is_complex(kind: ScalarKind) -> bool {
    matches!(kind, ScalarKind::C32 | ScalarKind::C64)
}
