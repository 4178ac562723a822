//! The matrix a factorization reads: a band or blocks.

use std::ops::Range;

use bt_formats::{Band, BlockTridiagonal, Error, Matrix, RealScalar, Scalar, zero};
use faer::MatMut;

use super::partition::Interface;
use crate::band_lu::kernels::{LANES, reduce, sum_and_max};
use crate::error::{FactorError, Place, Result};
use crate::lines;

/// A matrix that SPIKE cuts into partitions.
#[derive(Clone, Copy, Debug)]
pub enum SpikeMatrix<'a, T> {
    /// Partitions of rows.
    Band(&'a Band<T>),
    /// Partitions of blocks, two blocks at least in each.
    Blocks(&'a BlockTridiagonal<T>),
}

impl<'a, T> From<&'a Band<T>> for SpikeMatrix<'a, T> {
    fn from(a: &'a Band<T>) -> Self {
        Self::Band(a)
    }
}

impl<'a, T> From<&'a BlockTridiagonal<T>> for SpikeMatrix<'a, T> {
    fn from(a: &'a BlockTridiagonal<T>) -> Self {
        Self::Blocks(a)
    }
}

impl<T: Scalar> SpikeMatrix<'_, T> {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Band(a) => a.bytes(),
            Self::Blocks(a) => a.bytes(),
        }
    }

    /// ‖A‖₁ from column sums of |A|, for which there is room in `sums`; the place of the first NaN or infinity.
    pub(super) fn norm_one(&self, sums: &mut [f64]) -> Result<f64> {
        sums.fill(0.0);
        let mut largest = 0.0f64;
        self.for_each_entry(&mut |_, j, v| {
            sums[j] += v.abs().to_f64();
            largest = largest.max_nan(v.abs1().to_f64());
        });
        let norm = sums.iter().copied().fold(0.0, f64::max_nan);
        if largest.is_finite() && norm.is_finite() { Ok(norm) } else { Err(self.unusable()) }
    }

    fn for_each_entry(&self, visit: &mut dyn FnMut(usize, usize, T)) {
        match self {
            Self::Band(a) => {
                // By columns, as they are stored.
                for j in 0..a.n() {
                    for i in a.column_range(j) {
                        visit(i, j, a.get(i, j));
                    }
                }
            }
            Self::Blocks(a) => a.for_each_entry(visit),
        }
    }

    /// B of a cut, rb × nt.
    pub(super) fn coupling_after(&self, i: &Interface, b: MatMut<'_, T>) {
        match self {
            Self::Band(a) => copy_corner(a, i.split - i.rb, i.split, b),
            Self::Blocks(a) => a.copy_upper_block(a.partition().block_of(i.split) - 1, b),
        }
    }

    /// C of a cut, rc × nb.
    pub(super) fn coupling_before(&self, i: &Interface, c: MatMut<'_, T>) {
        match self {
            Self::Band(a) => copy_corner(a, i.split, i.split - i.nb, c),
            Self::Blocks(a) => a.copy_lower_block(a.partition().block_of(i.split), c),
        }
    }

    /// Names the first NaN or infinity.
    fn unusable(&self) -> FactorError {
        let (mut found, mut place) = (None, None);
        self.for_each_entry(&mut |row, col, v| {
            if found.is_none() && !Scalar::is_finite(v) {
                found = Some(Error::NonFinite { what: "matrix", row, col, value: v.to_string() });
            }
            if place.is_none() && !v.abs1().to_f64().is_finite() {
                place = Some(Place::Column(col));
            }
        });
        // Both parts of a complex entry are finite, their sum is not; or that of the moduli of a column is not.
        let overflow = || FactorError::breakdown("spike", place, "the moduli of the matrix overflow; scale it down");
        found.map_or_else(overflow, FactorError::Input)
    }
}

/// The largest column sum of |A| among some columns; the place of the first NaN or infinity if they have one.
pub(super) fn measure_columns<T: Scalar>(a: &Band<T>, columns: Range<usize>) -> Result<f64> {
    let (norm, largest) = lines::dispatch::<T, _>(bt_simd::Loops(
        #[inline(always)]
        || {
            let (mut norm, mut lanes) = (zero::<T::Real>(), [zero::<T::Real>(); LANES]);
            for j in columns.clone() {
                let rows = a.column_range(j);
                let start = j * a.ldab() + a.kl() + a.ku() + rows.start - j;
                norm = norm.max_nan(sum_and_max(&a.values()[start..start + rows.len()], &mut lanes));
            }
            (norm, reduce(lanes, RealScalar::max_nan))
        },
    ));
    if largest.to_f64().is_finite() { Ok(norm.to_f64()) } else { Err(SpikeMatrix::Band(a).unusable()) }
}

/// aᵢⱼ = conj(aⱼᵢ) in some columns, in every bit.
pub(super) fn check_hermitian<T: Scalar>(a: &Band<T>, columns: Range<usize>) -> Result<()> {
    for j in columns {
        for i in a.column_range(j) {
            let (value, mirrored) = (a.get(i, j), a.get(j, i));
            if value != Scalar::conj(mirrored) {
                let why = format!("it is not Hermitian: row {i}, column {j} is {value}, its mirror {mirrored}");
                return Err(Error::InvalidStructure { what: "matrix", why }.into());
            }
        }
    }
    Ok(())
}

fn copy_corner<T: Scalar>(a: &Band<T>, row: usize, col: usize, mut out: MatMut<'_, T>) {
    for j in 0..out.ncols() {
        for i in 0..out.nrows() {
            out[(i, j)] = a.get(row + i, col + j);
        }
    }
}

/// Column `j` of the n × n diagonal part of `a` that begins at `first`, restricted to `rows`; with rows and columns in
/// the opposite order when it is to be eliminated upwards.
pub(super) fn band_column<T: Scalar>(
    a: &Band<T>,
    first: usize,
    n: usize,
    up: bool,
    j: usize,
    rows: Range<usize>,
    out: &mut [T],
) {
    let (j, rows) = if up { (n - 1 - j, n - rows.end..n - rows.start) } else { (j, rows) };
    let col = first + j;
    let start = col * a.ldab() + a.kl() + a.ku() + first + rows.start - col;
    out.copy_from_slice(&a.values()[start..start + rows.len()]);
    if up {
        out.reverse();
    }
}
