//! Couplings by diagonals of eight rows, with or without the three diagonals: consecutive loads only.

use super::avx512::{Rows, same};
use super::lanes::{Job, Lanes, W, Writer, fetch, low};
use crate::block_tridiagonal::ShortDiagonals;
use crate::scalar::Scalar;

/// Values that memory is asked for in advance: six streams are more than the hardware looks ahead for (measured: 0.95
/// of the time without).
const AHEAD: usize = 512;

/// The slices as pointers.
pub(super) struct DiagonalSlices<R> {
    slice_ptr: *const u32,
    value_ptr: *const u32,
    offsets: *const i32,
    masks: *const u8,
    values: *const R,
}

impl<R: 'static> DiagonalSlices<R> {
    /// When T is R.
    pub(super) fn new<T: Scalar>(a: &ShortDiagonals<T>) -> Option<Self> {
        Some(Self {
            slice_ptr: a.slice_ptr().as_ptr(),
            value_ptr: a.value_ptr().as_ptr(),
            offsets: a.offsets().as_ptr(),
            masks: a.masks().as_ptr(),
            values: same(a.values())?,
        })
    }
}

impl<R: Copy + PartialEq + 'static> Rows for DiagonalSlices<R> {
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
            for i in full.clone().step_by(W) {
                if let Some([lower, diag, upper]) = job.diagonals {
                    fetch(lower.wrapping_add(i), AHEAD);
                    fetch(diag.wrapping_add(i), AHEAD);
                    fetch(upper.wrapping_add(i), AHEAD);
                }
                fetch(job.x.wrapping_add(i), AHEAD);
                let s = self.slice::<L>(i / W, job.x);
                writer.put(job.y_of(i), job.finish::<L>(i, 0xff, 0xff, s));
            }
            writer.close();
            self.part::<L>(job, full.end, end);
        }
    }
}

// SAFETY of both: as `Rows::run`.
impl<R: Copy + PartialEq + 'static> DiagonalSlices<R> {
    /// The rows `from..to` of one slice.
    #[inline(always)]
    unsafe fn part<L: Lanes<Real = R>>(&self, job: &Job<R>, from: usize, to: usize) {
        unsafe {
            if from < to {
                let i = from / W * W;
                let wanted = low(to - i) & !low(from - i);
                let s = self.slice::<L>(i / W, job.x);
                let s = job.finish::<L>(i, low(W.min(job.n - i)), wanted, s);
                L::store(wanted, job.y_of(i), s);
            }
        }
    }

    /// The couplings of eight rows times x.
    #[inline(always)]
    unsafe fn slice<L: Lanes<Real = R>>(&self, slice: usize, x: *const R) -> L {
        unsafe {
            let x = x.wrapping_add(slice * W);
            let mut v = self.values.add(*self.value_ptr.add(slice) as usize);
            for line in 0..3 {
                fetch(v.cast::<[u8; 64]>().wrapping_add(line).cast::<R>(), AHEAD);
            }
            let mut s = L::zero();
            for d in *self.slice_ptr.add(slice) as usize..*self.slice_ptr.add(slice + 1) as usize {
                let m = *self.masks.add(d);
                // s ← s + v·x(i + offset), in the rows that have this diagonal
                s = L::fma(L::expand(m, v), L::load(m, x.wrapping_offset(*self.offsets.add(d) as isize)), s);
                v = v.add(m.count_ones() as usize);
            }
            s
        }
    }
}
