//! Both halves of A as they are given, side by side in memory.

use bt_formats::{Band, Csr, LinearOperator, Scalar};

/// Columns `first..end` of A from one end of the band to the other, or its rows: for a Hermitian matrix they are each other's conjugates. In the same
/// way they stand `ld` numbers apart, their diagonals among them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Halves<'a, T> {
    pub values: &'a [T],
    pub ld: usize,
    pub diagonal: usize,
    pub first: usize,
    pub end: usize,
}

impl<'a, T: Scalar> Halves<'a, T> {
    /// Of a band whose halves are equally wide.
    pub(super) fn of_band(a: &'a Band<T>) -> Option<Self> {
        let (values, ld, diagonal) = (a.values(), a.ldab(), a.kl() + a.ku());
        (a.kl() == a.ku()).then_some(Self { values, ld, diagonal, first: 0, end: a.n() })
    }

    /// Of rows that have all entries of a band of half-bandwidth k: compressed, those without the first and the last k are stored as a band is.
    pub(super) fn of_rows(a: &'a Csr<T>, k: usize) -> Option<Self> {
        let (n, ptr) = (a.nrows(), a.row_ptr());
        (n > 2 * k && a.full_band() == Some(k)).then(|| {
            let values = &a.values()[ptr[k] as usize..ptr[n - k] as usize];
            Self { values, ld: 2 * k + 1, diagonal: k, first: k, end: n - k }
        })
    }

    /// The same of these values.
    pub(super) fn with<U>(&self, values: &'a [U]) -> Halves<'a, U> {
        let &Self { ld, diagonal, first, end, .. } = self;
        Halves { values, ld, diagonal, first, end }
    }

    /// Index of the diagonal of column j.
    #[inline(always)]
    pub(super) fn at(&self, j: usize) -> usize {
        (j - self.first) * self.ld + self.diagonal
    }

    /// From column j on, as far as there are columns.
    pub(super) fn from(&self, j: usize) -> &'a [T] {
        self.values.get((j - self.first) * self.ld..).unwrap_or_default()
    }
}

/// Number d of row i from the diagonal on, to the right or, where `left`, to the left: an index, where every row has all entries
/// of a band of half-bandwidth k.
#[inline(always)]
pub(super) fn beside(ptr: &[u32], k: usize, i: usize, d: isize) -> usize {
    (ptr[i] as usize + i.min(k)).wrapping_add_signed(d)
}
