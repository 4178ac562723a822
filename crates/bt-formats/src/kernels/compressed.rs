//! Compressed rows in two phases: products of entries into a small buffer, then sums of rows from it.
//!
//! The first phase knows nothing of rows and has no branch that could be mispredicted. The second masks each row's
//! products out of the buffer, in the first-level cache. Rows longer than the buffer are summed at once, with the same
//! roundings: lane l holds v(l)·x + v(l + 8)·x + …, and the lanes are added by pairs.

use std::mem::MaybeUninit;

use super::avx512::{Rows, same};
use super::lanes::{Job, Lanes, W, Writer, fetch, low};
use crate::csr::Csr;
use crate::scalar::Scalar;

/// Products in the buffer: 8 KiB of the first-level cache.
const BUFFER: usize = 1024;

/// Rows of a pass. More would let the hardware's look-ahead run dry in the second phase (measured: 64 rows take 0.85 of
/// the time of 256).
const PASS: usize = 8 * W;

/// Entries that memory is asked for in advance: two arrays at uneven rates are more than the hardware looks ahead for.
const AHEAD: usize = 256;

/// A matrix as pointers.
pub(super) struct CompressedRows<R> {
    row_ptr: *const u32,
    cols: *const u32,
    values: *const R,
}

impl<R: 'static> CompressedRows<R> {
    /// When T is R.
    pub(super) fn new<T: Scalar>(a: &Csr<T>) -> Option<Self> {
        Some(Self { row_ptr: a.row_ptr().as_ptr(), cols: a.col_idx().as_ptr(), values: same(a.values())? })
    }
}

impl<R: Copy + PartialEq + 'static> Rows for CompressedRows<R> {
    type Real = R;

    #[inline(always)]
    unsafe fn run<L: Lanes<Real = R>, const STREAM: bool>(&self, job: &Job<R>) {
        unsafe {
            let mut buffer = [MaybeUninit::<R>::uninit(); BUFFER + W];
            let products = buffer.as_mut_ptr().cast::<R>();
            let nnz = self.pointer(job.n);
            let mut writer = Writer::<L, STREAM>::new(job.y);
            let mut i = job.first;
            while i < job.end {
                let mut last = (i + PASS).min(job.end);
                while self.entries(i, last) > BUFFER && last - i > W {
                    last = i + ((last - i) / 2).next_multiple_of(W);
                }
                let start = self.pointer(i);
                let is_buffered = self.entries(i, last) <= BUFFER;
                if is_buffered {
                    self.multiply::<L>(start, self.pointer(last), nnz, job.x, products);
                }
                while i + W <= last {
                    let mut sums = [L::zero(); W];
                    if is_buffered {
                        for q in 0..W {
                            sums[q] = self.buffered_row::<L>(i + q, start, products);
                        }
                    } else {
                        for q in 0..W {
                            sums[q] = self.long_row::<L>(i + q, job.x);
                        }
                    }
                    writer.put(job.y_of(i), job.finish::<L>(i, 0xff, 0xff, L::reduce(&sums)));
                    i += W;
                }
                if i < last {
                    // Only at the end of y.
                    let mut sums = [L::zero(); W];
                    for q in 0..last - i {
                        sums[q] = if is_buffered {
                            self.buffered_row::<L>(i + q, start, products)
                        } else {
                            self.long_row::<L>(i + q, job.x)
                        };
                    }
                    let m = low(last - i);
                    L::store(m, job.y_of(i), job.finish::<L>(i, m, m, L::reduce(&sums)));
                    i = last;
                }
            }
            writer.close();
        }
    }
}

// SAFETY of all: as `Rows::run`, for rows and entries of the matrix.
impl<R: Copy + PartialEq + 'static> CompressedRows<R> {
    #[inline(always)]
    unsafe fn pointer(&self, i: usize) -> usize {
        unsafe { *self.row_ptr.add(i) as usize }
    }

    #[inline(always)]
    unsafe fn entries(&self, i: usize, last: usize) -> usize {
        unsafe { self.pointer(last) - self.pointer(i) }
    }

    /// Products of the entries `k..end`, and of up to seven more where the matrix has them.
    #[inline(always)]
    unsafe fn multiply<L: Lanes<Real = R>>(&self, k: usize, end: usize, nnz: usize, x: *const R, products: *mut R) {
        unsafe {
            let (mut k, mut products) = (k, products);
            while k < end && k + W <= nnz {
                fetch(self.values.wrapping_add(k), AHEAD);
                fetch(self.cols.wrapping_add(k), AHEAD);
                let v = L::load(0xff, self.values.add(k));
                L::store(0xff, products, L::mul(v, L::collect(self.cols.add(k), x)));
                (k, products) = (k + W, products.add(W));
            }
            while k < end {
                *products = L::scalar_mul(*self.values.add(k), *x.add(*self.cols.add(k) as usize));
                (k, products) = (k + 1, products.add(1));
            }
        }
    }

    /// Row i summed W apart from the `products` of the entries from `start`.
    #[inline(always)]
    unsafe fn buffered_row<L: Lanes<Real = R>>(&self, i: usize, start: usize, products: *const R) -> L {
        unsafe {
            let (k, end) = (self.pointer(i), self.pointer(i + 1));
            let products = products.add(k - start);
            let mut len = end - k;
            if len <= W {
                return L::load(low(len), products);
            }
            let mut s = L::load(0xff, products);
            let mut products = products;
            while len > W {
                (products, len) = (products.add(W), len - W);
                s = L::add(s, L::load(low(len.min(W)), products));
            }
            s
        }
    }

    /// Row i summed W apart.
    #[inline(always)]
    unsafe fn long_row<L: Lanes<Real = R>>(&self, i: usize, x: *const R) -> L {
        unsafe {
            let (k, end) = (self.pointer(i), self.pointer(i + 1));
            let mut products = [MaybeUninit::<R>::uninit(); W];
            let products = products.as_mut_ptr().cast::<R>();
            let mut s = L::zero();
            let mut at = k;
            while at < end {
                let stop = end.min(at + W);
                self.multiply::<L>(at, stop, end, x, products);
                let terms = L::load(low(stop - at), products);
                s = if at == k { terms } else { L::add(s, terms) };
                at = stop;
            }
            s
        }
    }
}
