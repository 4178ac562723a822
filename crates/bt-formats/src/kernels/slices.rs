//! Compressed rows with an index by diagonals: values of eight rows are spread to the lanes of their diagonals and
//! transposed, x is read in consecutive pieces.

use super::avx512::{Rows, same};
use super::lanes::{Job, Lanes, W, Writer, column_mask, fetch, low};
use crate::csr::Csr;
use crate::scalar::Scalar;
use crate::slice_index::{Chunk, SliceIndex};

/// Values that memory is asked for in advance.
const AHEAD: usize = 512;

/// A matrix and its index as pointers.
pub(super) struct IndexedRows<R> {
    row_ptr: *const u32,
    values: *const R,
    chunk_ptr: *const u32,
    chunks: *const Chunk,
}

impl<R: 'static> IndexedRows<R> {
    /// When T is R.
    pub(super) fn new<T: Scalar>(a: &Csr<T>, index: &SliceIndex) -> Option<Self> {
        Some(Self {
            row_ptr: a.row_ptr().as_ptr(),
            values: same(a.values())?,
            chunk_ptr: index.chunk_ptr().as_ptr(),
            chunks: index.chunks().as_ptr(),
        })
    }
}

impl<R: Copy + PartialEq + 'static> Rows for IndexedRows<R> {
    type Real = R;

    #[inline(always)]
    unsafe fn run<L: Lanes<Real = R>, const STREAM: bool>(&self, job: &Job<R>) {
        unsafe {
            let (first, end) = (job.first, job.end);
            let full = first.next_multiple_of(W)..end / W * W;
            if full.start >= full.end {
                // Less than a slice, or parts of two.
                let cut = full.start.min(end);
                self.part::<L>(job, first, cut);
                return self.part::<L>(job, cut, end);
            }
            self.part::<L>(job, first, full.start);
            let mut writer = Writer::<L, STREAM>::new(job.y_of(full.start));
            // Row pointers are not read on the way: the masks say where the values of the next row begin.
            let mut v = self.values.add(*self.row_ptr.add(full.start) as usize);
            let mut chunk = *self.chunk_ptr.add(full.start / W) as usize;
            for i in full.clone().step_by(W) {
                let last = *self.chunk_ptr.add(i / W + 1) as usize;
                fetch(self.chunks.wrapping_add(chunk), AHEAD / 32);
                fetch(job.x.wrapping_add(i), AHEAD);
                let s = if last == chunk + 1 {
                    for line in 0..6 {
                        fetch(v.cast::<[u8; 64]>().wrapping_add(line).cast::<R>(), AHEAD);
                    }
                    one_chunk::<L>(&*self.chunks.add(chunk), &mut v, job.x.wrapping_add(i))
                } else {
                    v = self.values.add(*self.row_ptr.add(i + W) as usize);
                    self.slice::<L>(i / W, W, job.x)
                };
                chunk = last;
                writer.put(job.y_of(i), job.finish::<L>(i, 0xff, 0xff, s));
            }
            writer.close();
            self.part::<L>(job, full.end, end);
        }
    }
}

/// A slice of at most eight diagonals times x, which points to the element of its first row; `v`, the value of its first
/// entry, moves on to the next slice's. SAFETY: as `Rows::run`.
#[inline(always)]
unsafe fn one_chunk<L: Lanes>(chunk: &Chunk, v: &mut *const L::Real, x: *const L::Real) -> L {
    unsafe {
        let mut rows = [L::zero(); W];
        for q in 0..W {
            let m = chunk.rows[q];
            rows[q] = L::expand(m, *v);
            *v = v.add(m.count_ones() as usize);
        }
        times::<L>(chunk, &rows, x, L::zero())
    }
}

/// s + the values of `rows`, lane t of which lies on diagonal t, times x. SAFETY: as `Rows::run`.
#[inline(always)]
unsafe fn times<L: Lanes>(chunk: &Chunk, rows: &[L; W], x: *const L::Real, s: L) -> L {
    unsafe {
        let diagonals = L::transpose(rows);
        let masks = u64::from_le_bytes(chunk.rows);
        let (mut even, mut odd) = (s, L::zero());
        for t in (0..W).step_by(2) {
            even = L::fma(
                diagonals[t],
                L::load(column_mask(masks, t), x.wrapping_offset(chunk.offsets[t] as isize)),
                even,
            );
            let u = t + 1;
            odd =
                L::fma(diagonals[u], L::load(column_mask(masks, u), x.wrapping_offset(chunk.offsets[u] as isize)), odd);
        }
        L::add(even, odd)
    }
}

// SAFETY of both: as `Rows::run`.
impl<R: Copy + PartialEq + 'static> IndexedRows<R> {
    /// The rows `from..to` of one slice.
    #[inline(always)]
    unsafe fn part<L: Lanes<Real = R>>(&self, job: &Job<R>, from: usize, to: usize) {
        unsafe {
            if from < to {
                let i = from / W * W;
                let wanted = low(to - i) & !low(from - i);
                let inside = W.min(job.n - i);
                let s = self.slice::<L>(i / W, inside, job.x);
                L::store(wanted, job.y_of(i), job.finish::<L>(i, low(inside), wanted, s));
            }
        }
    }

    /// The `inside` rows of any slice times x, with the roundings of `one_chunk` where it has one chunk.
    #[inline(always)]
    unsafe fn slice<L: Lanes<Real = R>>(&self, slice: usize, inside: usize, x: *const R) -> L {
        unsafe {
            let i = slice * W;
            let mut v = [self.values; W];
            for q in 0..inside {
                v[q] = self.values.add(*self.row_ptr.add(i + q) as usize);
            }
            let mut s = L::zero();
            for k in *self.chunk_ptr.add(slice) as usize..*self.chunk_ptr.add(slice + 1) as usize {
                let chunk = &*self.chunks.add(k);
                let mut rows = [L::zero(); W];
                for q in 0..W {
                    let m = chunk.rows[q];
                    rows[q] = L::expand(m, v[q]);
                    v[q] = v[q].add(m.count_ones() as usize);
                }
                s = times::<L>(chunk, &rows, x.wrapping_add(i), s);
            }
            s
        }
    }
}
