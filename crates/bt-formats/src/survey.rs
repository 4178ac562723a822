//! What one pass over the entries of a matrix tells of all that choosing a method asks for.
//!
//! Each question alone would be such a pass, and a pass over a large matrix costs as much as eliminating a narrow one. Lengths of rows
//! and sizes of numbers are read eight at a time; the sums that decide about dominance are those of any processor.

use crate::csr::Csr;
use crate::operator::{LinearOperator, zero};
use crate::scalar::{RealScalar, Scalar};

/// The diagonal of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiagonalEntries {
    /// Some row has no nonzero on it.
    Broken,
    /// Every row has a nonzero on it.
    Full,
    /// All its real parts are positive.
    Positive,
}

/// Whether the diagonal weighs at least as much as all beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// In every row: A is weakly diagonally dominant by rows.
    ByRows,
    /// Not in every row, but in all taken together: A may be dominant by columns.
    InAll,
    /// Not even in all rows together.
    Less,
}

/// What [`Csr::survey`] found. Sizes are |re v| + |im v|; nonzeros are values that are not zero.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Survey {
    /// Whether all values are finite.
    pub is_finite: bool,
    /// Values stored that are zero.
    pub zeros: usize,
    /// Lower and upper bandwidths of the nonzeros.
    pub bandwidth: (usize, usize),
    /// What stands on the diagonal.
    pub diagonal: DiagonalEntries,
    /// The diagonal beside all else.
    pub weight: Weight,
    /// minᵢ (|aᵢᵢ| − Σ |aᵢⱼ|, j ≠ i) where A is dominant by rows, else 0: a lower bound of 1/‖A⁻¹‖∞ (J. M. Varah, Linear Algebra Appl. 11 (1975)
    /// 3–5, doi:10.1016/0024-3795(75)90112-3).
    pub margin: f64,
    /// Smallest and largest size of a nonzero; infinity and zero where there is none.
    pub sizes: (f64, f64),
    /// Smallest and largest of the largest sizes in a row, over the rows with nonzeros.
    pub row_sizes: (f64, f64),
    /// Rows with one nonzero.
    pub single_rows: usize,
    /// First and last column with a nonzero, by rows; of a row without one its own number twice.
    extents: Vec<[u32; 2]>,
}

impl Survey {
    #[inline(never)]
    pub(crate) fn of<T: Scalar>(a: &Csr<T>) -> Self {
        let mut survey = Self {
            is_finite: true,
            zeros: 0,
            bandwidth: (0, 0),
            diagonal: DiagonalEntries::Positive,
            weight: Weight::ByRows,
            margin: 0.0,
            sizes: (f64::INFINITY, 0.0),
            row_sizes: (f64::INFINITY, 0.0),
            single_rows: 0,
            extents: Vec::with_capacity(a.nrows()),
        };
        bt_simd::dispatch(Rows { a, survey: &mut survey });
        survey
    }

    /// First and last column of row `i` with a nonzero, `(i, i)` where there is none.
    ///
    /// # Panics
    /// When there is no row `i`.
    pub fn extent(&self, i: usize) -> (usize, usize) {
        let [first, last] = self.extents[i];
        (first as usize, last as usize)
    }
}

/// The pass.
struct Rows<'a, T> {
    a: &'a Csr<T>,
    survey: &'a mut Survey,
}

impl<T: Scalar> pulp::WithSimd for Rows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self { a, survey } = self;
        let (mut least, mut most) = (T::Real::MAX, zero::<T::Real>());
        let (mut least_row, mut most_row) = (T::Real::MAX, zero::<T::Real>());
        let (mut all, mut diagonal) = (0.0f64, 0.0f64);
        let mut margin = T::Real::MAX;
        let (mut kl, mut ku) = (0, 0);
        let (mut has_nonzeros, mut is_full, mut is_positive, mut is_dominant) = (false, true, true, true);
        for i in 0..a.nrows() {
            let (cols, values) = a.row(i);
            let sizes = Sizes::of(values);
            let [mut first, mut last] = match cols {
                [] => [i as u32; 2],
                [first, .., last] => [*first, *last],
                [only] => [*only; 2],
            };
            let mut smallest = sizes.smallest;
            let mut nonzeros = cols.len();
            if smallest == zero() {
                let of = |k: Option<usize>| k.map_or(i as u32, |k| cols[k]);
                first = of(values.iter().position(|v| *v != zero()));
                last = of(values.iter().rposition(|v| *v != zero()));
                let left = values.iter().map(|v| v.abs1()).filter(|m| *m > zero());
                (nonzeros, smallest) = left.fold((0, T::Real::MAX), |(n, s), m| (n + 1, if m < s { m } else { s }));
                survey.zeros += cols.len() - nonzeros;
            }
            survey.extents.push([first, last]);
            kl = kl.max(i.saturating_sub(first as usize));
            ku = ku.max((last as usize).saturating_sub(i));
            survey.single_rows += usize::from(nonzeros == 1);
            if nonzeros > 0 {
                has_nonzeros = true;
                least = if smallest < least { smallest } else { least };
                most = if sizes.largest > most { sizes.largest } else { most };
                least_row = if sizes.largest < least_row { sizes.largest } else { least_row };
                most_row = if sizes.largest > most_row { sizes.largest } else { most_row };
            }
            // NaN stays, infinity may be that of the sum.
            if !(sizes.sum < T::Real::INFINITY) {
                survey.is_finite &= values.iter().all(|v| Scalar::is_finite(*v));
            }
            let on_diagonal = diagonal_of(cols, i as u32).map_or(zero(), |k| values[k]);
            is_full &= on_diagonal != zero();
            is_positive &= on_diagonal.re() > zero();
            if is_dominant {
                let off = |j: u32, v: T| if i as u32 == j { -v.abs() } else { v.abs() };
                let sum = cols.iter().zip(values).fold(zero::<T::Real>(), |sum, (&j, &v)| sum + off(j, v));
                is_dominant = sum <= zero();
                margin = if -sum < margin { -sum } else { margin };
            }
            all += sizes.sum.to_f64();
            diagonal += on_diagonal.abs1().to_f64();
        }
        survey.bandwidth = (kl, ku);
        // A modulus is at least 1/√2 of |re| + |im|, and all of it for real numbers; sums round.
        let share = if T::IS_REAL { 1.0 } else { std::f64::consts::FRAC_1_SQRT_2 };
        survey.weight = if is_dominant {
            Weight::ByRows
        } else if share * (all - diagonal) > diagonal * (1.0 + 1e-3) {
            Weight::Less
        } else {
            Weight::InAll
        };
        if is_dominant && a.nrows() > 0 {
            survey.margin = margin.to_f64();
        }
        survey.diagonal = match (is_full, is_positive) {
            (_, true) => DiagonalEntries::Positive,
            (true, false) => DiagonalEntries::Full,
            (false, false) => DiagonalEntries::Broken,
        };
        if has_nonzeros {
            survey.sizes = (least.to_f64(), most.to_f64());
            survey.row_sizes = (least_row.to_f64(), most_row.to_f64());
        }
    }
}

/// Where the diagonal entry of row `i` stands among its columns.
#[inline(always)]
fn diagonal_of(cols: &[u32], i: u32) -> Option<usize> {
    // In a row without gaps it is as far from the first column as they are apart.
    let guess = i.wrapping_sub(*cols.first()?) as usize;
    if cols.get(guess) == Some(&i) { Some(guess) } else { cols.binary_search(&i).ok() }
}

/// Of the values of a row.
struct Sizes<R> {
    smallest: R,
    largest: R,
    sum: R,
}

impl<R: RealScalar> Sizes<R> {
    #[inline(always)]
    fn of<T: Scalar + faer::traits::ComplexField<Real = R>>(values: &[T]) -> Self {
        const LANES: usize = 8;
        let (mut smallest, mut largest, mut sums) = ([R::MAX; LANES], [zero::<R>(); LANES], [zero::<R>(); LANES]);
        let (groups, rest) = values.as_chunks::<LANES>();
        for group in groups {
            for l in 0..LANES {
                let size = group[l].abs1();
                smallest[l] = if size < smallest[l] { size } else { smallest[l] };
                largest[l] = if size > largest[l] { size } else { largest[l] };
                sums[l] += size;
            }
        }
        let mut done = Self { smallest: R::MAX, largest: zero(), sum: zero() };
        for v in rest {
            let size = v.abs1();
            done.take(size, size, size);
        }
        if !groups.is_empty() {
            for l in 0..LANES {
                done.take(smallest[l], largest[l], sums[l]);
            }
        }
        done
    }

    #[inline(always)]
    fn take(&mut self, smallest: R, largest: R, sum: R) {
        self.smallest = if smallest < self.smallest { smallest } else { self.smallest };
        self.largest = if largest > self.largest { largest } else { self.largest };
        self.sum += sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::c64;

    #[test]
    fn a_row_tells_of_itself() {
        // [  4  −1   ·  ]
        // [  0   2   1  ]   the zero is stored
        // [  ·   ·  −3  ]
        let a = Csr::new(3, 3, vec![0, 2, 5, 6], vec![0, 1, 0, 1, 2, 2], vec![4.0, -1.0, 0.0, 2.0, 1.0, -3.0]).unwrap();
        let s = a.survey();
        assert_eq!((s.zeros, s.bandwidth, s.single_rows), (1, (0, 1), 1));
        assert_eq!((s.is_finite, s.diagonal, s.weight), (true, DiagonalEntries::Full, Weight::ByRows));
        assert_eq!((s.sizes, s.row_sizes, s.margin), ((1.0, 4.0), (2.0, 4.0), 1.0));
        assert_eq!([0, 1, 2].map(|i| s.extent(i)), [(0, 1), (1, 2), (2, 2)]);
    }

    #[test]
    fn a_changed_value_is_seen_and_a_clone_keeps_what_is_known() {
        let mut a = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![1.0, 2.0]).unwrap();
        assert_eq!(a.survey().sizes, (1.0, 2.0));
        let before = a.clone();
        a.values_mut()[0] = f64::NAN;
        assert!(!a.survey().is_finite && before.survey().is_finite);
        a.row_mut(0).1[0] = 1e308;
        a.values_mut()[1] = -1e308;
        assert!(a.survey().is_finite && a.survey().diagonal == DiagonalEntries::Full);
        assert_eq!(before.values(), [1.0, 2.0]);
    }

    #[test]
    fn long_rows_are_read_as_short_ones() {
        for n in [1usize, 7, 8, 9, 23] {
            let dense = faer::Mat::from_fn(n, n, |i, j| c64::new(1.0 + (i * n + j) as f64, -0.5));
            let s = Csr::from_dense(dense.as_ref()).unwrap().survey().clone();
            assert_eq!(s.sizes, (1.5, (n * n) as f64 + 0.5));
            assert_eq!(s.row_sizes, (n as f64 + 0.5, (n * n) as f64 + 0.5));
            assert_eq!(s.bandwidth, (n - 1, n - 1));
            assert_eq!((s.diagonal, s.weight == Weight::ByRows), (DiagonalEntries::Positive, n == 1));
        }
    }

    #[test]
    fn dominance_by_columns_alone_is_not_denied() {
        // [ 4  −2 ]
        // [ −4  2 ]
        let a = Csr::from_dense(faer::mat![[4.0, -2.0], [-4.0, 2.0]].as_ref()).unwrap();
        assert_eq!((a.survey().weight, a.survey().margin), (Weight::InAll, 0.0));
        let a = Csr::from_dense(faer::mat![[4.0, -2.0], [-4.0, -1.0]].as_ref()).unwrap();
        assert_eq!(a.survey().weight, Weight::Less);
    }

    #[test]
    fn a_matrix_without_entries_has_neither_sizes_nor_a_diagonal() {
        let a = Csr::<f32>::new(2, 2, vec![0, 0, 0], vec![], vec![]).unwrap();
        let s = a.survey();
        assert_eq!((s.sizes, s.row_sizes, s.bandwidth), ((f64::INFINITY, 0.0), (f64::INFINITY, 0.0), (0, 0)));
        assert!(s.diagonal == DiagonalEntries::Broken && s.is_finite);
    }
}
