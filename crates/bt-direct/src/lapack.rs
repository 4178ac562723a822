//! LAPACK's drivers `gbsv`, `gtsv` and `pbsv` on LAPACK's own arrays: factors and solutions take the place of what was given.
//!
//! What is left in the arrays is what LAPACK's documentation says, so that its routines `gbtrs`, `gbcon`, `pbtrs`, … go on from there
//! (E. Anderson et al., LAPACK Users' Guide, 3rd ed., §5.3, doi:10.1137/1.9780898719604). Band matrices are factored by [`BandLu`] and
//! [`BandCholesky`] in a copy, whose factors are in LAPACK's layout. Where these refuse a matrix (a column without a pivot, a NaN,
//! elimination that overflows, no memory for the copy), the same elimination goes over LAPACK's arrays entry by entry and to the end,
//! as LAPACK promises, and what is not a number spreads.
//!
//! Storage: n(2kl + ku + 1) values for `gbsv`, n(2k + 1) for `pbsv`, none for `gtsv`. Cost: as [`BandLu`], [`BandCholesky`] and
//! [`TridiagonalLu`](crate::TridiagonalLu) from one end.

use bt_formats::{Band, RealScalar, Scalar, zero};
use faer::{MatMut, MatRef};

use crate::band_cholesky::BandCholesky;
use crate::band_lu::BandLu;
use crate::factorization::Factorization;
use crate::pivot::Pivot;

/// The first column without a usable pivot, from 0: LAPACK's `info` − 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPivot {
    /// The column.
    pub column: usize,
}

/// Which half of a Hermitian matrix is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The diagonal and above, `uplo = 'U'`: A = Uᴴ·U.
    Upper,
    /// The diagonal and below, `uplo = 'L'`: A = L·Lᴴ.
    Lower,
}

/// Solves A·X = B by P·A = L·U of a band matrix.
///
/// `ab` is ldab × n, ldab ≥ 2kl + ku + 1, A(i, j) at (kl + ku + i − j, j), and holds L and U afterwards: U with its kl + ku
/// super-diagonals, the multipliers below. At step j the rows j and `ipiv[j]` − 1 were exchanged. `b`, n × nrhs, becomes X.
///
/// ```
/// use bt_direct::lapack::gbsv;
/// use faer::{MatMut, mat};
/// // [ 0 2 ]   one row for fill, one above the diagonal, one below
/// // [ 1 3 ]
/// let mut ab = [f64::NAN, f64::NAN, 0.0, 1.0, f64::NAN, 2.0, 3.0, f64::NAN];
/// let (mut ipiv, mut b) = ([0; 2], mat![[2.0], [4.0]]);
/// gbsv((1, 1), MatMut::from_column_major_slice_mut(&mut ab, 4, 2), &mut ipiv, b.as_mut()).unwrap();
/// assert_eq!((b[(0, 0)], b[(1, 0)], ipiv), (1.0, 1.0, [2, 2]));
/// assert_eq!(ab[2], 1.0); // U(0, 0)
/// ```
///
/// # Errors
/// [`NoPivot`] with the first column of U whose diagonal is exactly zero. The factorization is complete and `b` as it was.
///
/// # Panics
/// On arrays of other shapes.
///
/// # Cost
/// At most 2n·kl(kl + ku + 1) flops, and 2(2kl + ku + 1) a row and right-hand side.
pub fn gbsv<T: Scalar>(
    (kl, ku): (usize, usize),
    mut ab: MatMut<'_, T>,
    ipiv: &mut [i32],
    mut b: MatMut<'_, T>,
) -> Result<(), NoPivot> {
    let n = ab.ncols();
    assert!(ab.nrows() > 2 * kl + ku && ipiv.len() == n && b.nrows() == n, "arrays of one size");
    if let Some(lu) = band_lu((kl, ku), ab.as_ref())
        && let Some((values, pivots)) = lu.in_lapack_layout()
    {
        let ld = 2 * kl + ku + 1;
        for j in 0..n {
            for r in rows_inside(n, (kl, kl + ku), j) {
                ab[(r, j)] = values[j * ld + r];
            }
            ipiv[j] = pivots[j] as i32 + 1;
        }
        lu.solve_in_place(b);
        return Ok(());
    }
    let mut band = PlainBand { kl, kv: kl + ku, ab };
    band.factor(ku, ipiv)?;
    for c in 0..b.ncols() {
        band.solve(ipiv, b.as_mut().subcols_mut(c, 1));
    }
    Ok(())
}

/// Rows of the storage in column j that lie in the matrix: those of U and its fill, and `below` sub-diagonals.
fn rows_inside(n: usize, (below, above): (usize, usize), j: usize) -> std::ops::Range<usize> {
    above.saturating_sub(j)..above + 1 + below.min(n - 1 - j)
}

/// The factors of a copy.
fn band_lu<T: Scalar>((kl, ku): (usize, usize), ab: MatRef<'_, T>) -> Option<BandLu<T>> {
    let n = ab.ncols();
    let mut a = Band::zeros(n, kl, ku).ok()?;
    let ld = a.ldab();
    let values = a.values_mut();
    for j in 0..n {
        // The room for fill stays zero.
        for r in rows_inside(n, (kl, kl + ku), j).filter(|&r| r >= kl) {
            values[j * ld + r] = ab[(r, j)];
        }
    }
    BandLu::from_band(a).ok()
}

/// Elimination entry by entry in LAPACK's storage.
struct PlainBand<'a, T: Scalar> {
    kl: usize,
    /// Super-diagonals of U, kl + ku.
    kv: usize,
    ab: MatMut<'a, T>,
}

impl<T: Scalar> PlainBand<'_, T> {
    fn at(&mut self, i: usize, j: usize) -> &mut T {
        &mut self.ab[(self.kv + i - j, j)]
    }

    /// P·A = L·U, to the end even where a pivot is zero.
    fn factor(&mut self, ku: usize, ipiv: &mut [i32]) -> Result<(), NoPivot> {
        let (n, kl, kv) = (ipiv.len(), self.kl, self.kv);
        for j in 0..n {
            for r in kv.saturating_sub(j)..kl {
                self.ab[(r, j)] = zero();
            }
        }
        let (mut reach, mut singular) = (0, None);
        for j in 0..n {
            let below = kl.min(n - 1 - j);
            // The first of the largest candidates; a NaN is larger than none.
            let mut p = j;
            for i in j + 1..=j + below {
                if self.at(i, j).abs1() > self.at(p, j).abs1() {
                    p = i;
                }
            }
            ipiv[j] = p as i32 + 1;
            let pivot = *self.at(p, j);
            if pivot == zero() {
                singular = singular.or(Some(NoPivot { column: j }));
                continue;
            }
            reach = (p + ku).min(n - 1).max(reach);
            for c in j..=reach {
                let (upper, lower) = (*self.at(j, c), *self.at(p, c));
                (*self.at(j, c), *self.at(p, c)) = (lower, upper);
            }
            let divisor = Pivot::new(pivot);
            for i in j + 1..=j + below {
                // l ← aᵢⱼ/pivot;  aᵢ ← aᵢ − l·aⱼ
                let l = divisor.divide(*self.at(i, j));
                *self.at(i, j) = l;
                for c in j + 1..=reach {
                    let u = *self.at(j, c);
                    *self.at(i, c) -= l * u;
                }
            }
        }
        singular.map_or(Ok(()), Err)
    }

    /// x ← U⁻¹·L⁻¹·P·x, a column.
    fn solve(&mut self, ipiv: &[i32], mut x: MatMut<'_, T>) {
        let n = ipiv.len();
        for j in 0..n {
            let (p, below) = (ipiv[j] as usize - 1, self.kl.min(n - 1 - j));
            let pivot = x[(p, 0)];
            x[(p, 0)] = x[(j, 0)];
            x[(j, 0)] = pivot;
            for i in j + 1..=j + below {
                x[(i, 0)] -= *self.at(i, j) * pivot;
            }
        }
        for j in (0..n).rev() {
            let value = Pivot::new(*self.at(j, j)).divide(x[(j, 0)]);
            x[(j, 0)] = value;
            for i in j.saturating_sub(self.kv)..j {
                x[(i, 0)] -= *self.at(i, j) * value;
            }
        }
    }
}

/// Solves A·X = B of a tridiagonal matrix by elimination with partial pivoting, B along with it.
///
/// `dl` and `du` have n − 1 entries, `d` has n. Afterwards `d`, `du` and the first n − 2 of `dl` are the diagonal and the two
/// super-diagonals of U; L is not kept. `b`, n × nrhs, becomes X.
///
/// ```
/// use bt_direct::lapack::gtsv;
/// use faer::mat;
/// let (mut dl, mut d, mut du) = ([1.0], [0.0, 3.0], [2.0]);
/// let mut b = mat![[2.0], [4.0]];
/// gtsv(&mut dl, &mut d, &mut du, b.as_mut()).unwrap();
/// assert_eq!((b[(0, 0)], b[(1, 0)], d), (1.0, 1.0, [1.0, 2.0]));
/// ```
///
/// # Errors
/// [`NoPivot`] with the first column whose pivot is exactly zero, at which elimination ends: X is not there then.
///
/// # Panics
/// On arrays of other lengths.
///
/// # Cost
/// 5n flops and n divisions, 7n flops and n divisions a right-hand side.
pub fn gtsv<T: Scalar>(dl: &mut [T], d: &mut [T], du: &mut [T], mut b: MatMut<'_, T>) -> Result<(), NoPivot> {
    let (n, nrhs) = (d.len(), b.ncols());
    assert!(dl.len() == n.saturating_sub(1) && du.len() == dl.len() && b.nrows() == n, "arrays of one size");
    for i in 0..n.saturating_sub(1) {
        if d[i].abs1() >= dl[i].abs1() {
            if d[i] == zero() {
                return Err(NoPivot { column: i });
            }
            // Row i + 1 ← row i + 1 − l·row i
            let l = Pivot::new(d[i]).divide(dl[i]);
            d[i + 1] -= l * du[i];
            for c in 0..nrhs {
                let above = b[(i, c)];
                b[(i + 1, c)] -= l * above;
            }
            if i + 2 < n {
                dl[i] = zero();
            }
        } else {
            // The rows change places, and row i gets a second super-diagonal.
            let l = Pivot::new(dl[i]).divide(d[i]);
            d[i] = dl[i];
            let below = d[i + 1];
            d[i + 1] = du[i] - l * below;
            if i + 2 < n {
                dl[i] = du[i + 1];
                du[i + 1] = -l * dl[i];
            }
            du[i] = below;
            for c in 0..nrhs {
                let (above, below) = (b[(i, c)], b[(i + 1, c)]);
                b[(i, c)] = below;
                b[(i + 1, c)] = above - l * below;
            }
        }
    }
    if n > 0 && d[n - 1] == zero() {
        return Err(NoPivot { column: n - 1 });
    }
    for c in 0..nrhs {
        // xᵢ ← (bᵢ − uᵢ·xᵢ₊₁ − sᵢ·xᵢ₊₂)/dᵢ
        for i in (0..n).rev() {
            let mut sum = b[(i, c)];
            if i + 1 < n {
                sum -= du[i] * b[(i + 1, c)];
            }
            if i + 2 < n {
                sum -= dl[i] * b[(i + 2, c)];
            }
            b[(i, c)] = Pivot::new(d[i]).divide(sum);
        }
    }
    Ok(())
}

/// Solves A·X = B by the Cholesky factorization of a Hermitian positive definite band matrix of half-bandwidth k.
///
/// `ab` is ldab × n, ldab ≥ k + 1: the upper half with A(i, j) at (k + i − j, j), or the lower one with A(i, j) at (i − j, j). Imaginary
/// parts on the diagonal are taken for zero. U or L takes its place, and X that of `b`, n × nrhs.
///
/// ```
/// use bt_direct::lapack::{Half, pbsv};
/// use faer::mat;
/// // [ 4 2 ]  by its lower half
/// // [ 2 5 ]
/// let (mut ab, mut b) = (mat![[4.0, 5.0], [2.0, 0.0]], mat![[6.0], [7.0]]);
/// pbsv(Half::Lower, 1, ab.as_mut(), b.as_mut()).unwrap();
/// assert_eq!((b[(0, 0)], b[(1, 0)]), (1.0, 1.0));
/// assert_eq!(ab, mat![[2.0, 2.0], [1.0, 0.0]]); // L
/// ```
///
/// # Errors
/// [`NoPivot`] with the first column whose pivot is not positive: the leading minor that ends there is not positive definite. `b` is as it
/// was, `ab` is spoilt.
///
/// # Panics
/// On arrays of other shapes.
///
/// # Cost
/// n·k(k + 2) flops and n roots, 4n(k + ½) flops a right-hand side.
pub fn pbsv<T: Scalar>(half: Half, k: usize, ab: MatMut<'_, T>, mut b: MatMut<'_, T>) -> Result<(), NoPivot> {
    let n = ab.ncols();
    assert!(ab.nrows() > k && b.nrows() == n, "arrays of one size");
    let mut lower = PlainLower { half, k, ab };
    if let Some(cholesky) = lower.cholesky() {
        for j in 0..n {
            for (i, &l) in (j..).zip(cholesky.column(j)) {
                lower.set(i, j, l);
            }
        }
        cholesky.solve_in_place(b);
        return Ok(());
    }
    lower.factor()?;
    for c in 0..b.ncols() {
        lower.solve(b.as_mut().subcols_mut(c, 1));
    }
    Ok(())
}

/// The lower half of a Hermitian matrix in LAPACK's storage, whichever half that is of.
struct PlainLower<'a, T: Scalar> {
    half: Half,
    k: usize,
    ab: MatMut<'a, T>,
}

impl<T: Scalar> PlainLower<'_, T> {
    /// Entry (i, j), i ≥ j.
    fn get(&self, i: usize, j: usize) -> T {
        match self.half {
            Half::Lower => self.ab[(i - j, j)],
            Half::Upper => Scalar::conj(self.ab[(self.k + j - i, i)]),
        }
    }

    fn set(&mut self, i: usize, j: usize, value: T) {
        match self.half {
            Half::Lower => self.ab[(i - j, j)] = value,
            Half::Upper => self.ab[(self.k + j - i, i)] = Scalar::conj(value),
        }
    }

    /// One past the last row of column j.
    fn end(&self, j: usize) -> usize {
        (j + self.k + 1).min(self.ab.ncols())
    }

    /// The factors of a copy.
    fn cholesky(&self) -> Option<BandCholesky<T>> {
        let n = self.ab.ncols();
        let mut a = Band::zeros(n, self.k, 0).ok()?;
        // Column j has its diagonal at `kl + ku`.
        let ldab = a.ldab();
        for (j, column) in a.values_mut().chunks_exact_mut(ldab).enumerate() {
            let lower = &mut column[self.k..];
            lower[0] = T::from_real(self.get(j, j).re());
            for i in j + 1..self.end(j) {
                lower[i - j] = self.get(i, j);
            }
        }
        BandCholesky::from_lower(a).ok()
    }

    /// A = L·Lᴴ.
    fn factor(&mut self) -> Result<(), NoPivot> {
        for j in 0..self.ab.ncols() {
            let pivot = self.get(j, j).re();
            if !(pivot > zero()) {
                return Err(NoPivot { column: j });
            }
            let root = RealScalar::sqrt(pivot);
            self.set(j, j, T::from_real(root));
            let divisor = Pivot::new(T::from_real(root));
            for i in j + 1..self.end(j) {
                self.set(i, j, divisor.divide(self.get(i, j)));
            }
            // aᵢₖ ← aᵢₖ − lᵢⱼ·conj(lₖⱼ)
            for k in j + 1..self.end(j) {
                for i in k..self.end(j) {
                    self.set(i, k, self.get(i, k) - self.get(i, j) * Scalar::conj(self.get(k, j)));
                }
            }
        }
        Ok(())
    }

    /// x ← L⁻ᴴ·L⁻¹·x, a column.
    fn solve(&self, mut x: MatMut<'_, T>) {
        for j in 0..self.ab.ncols() {
            let value = Pivot::new(self.get(j, j)).divide(x[(j, 0)]);
            x[(j, 0)] = value;
            for i in j + 1..self.end(j) {
                x[(i, 0)] -= self.get(i, j) * value;
            }
        }
        for j in (0..self.ab.ncols()).rev() {
            let mut sum = x[(j, 0)];
            for i in j + 1..self.end(j) {
                sum -= Scalar::conj(self.get(i, j)) * x[(i, 0)];
            }
            x[(j, 0)] = Pivot::new(self.get(j, j)).divide(sum);
        }
    }
}

#[cfg(test)]
mod tests;
