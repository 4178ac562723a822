//! Solves: the passes over the partitions, and what each does in one of them.

use bt_formats::{Par, Scalar, zero};

use super::elimination::{Row, Step};
use crate::pivot::Pivot;
use crate::spike::sweep::join;

/// A pass of a solve over the partitions.
pub(super) struct Sweep<'a, T: Scalar, S> {
    pub(super) starts: &'a [usize],
    pub(super) rows: &'a [Row<T>],
    pub(super) steps: &'a [S],
    pub(super) par: Par,
}

impl<T: Scalar, S: Step<T>> Sweep<'_, T, S> {
    /// Calls `f` with each partition's number, rows, steps, part of `x`, and two values of `ends`.
    pub(super) fn partitions(
        &self,
        x: &mut [T],
        ends: &mut [T],
        f: &(impl Fn(usize, &[Row<T>], &[S], &mut [T], &mut [T]) + Sync),
    ) {
        self.some(0, self.starts, x, ends, f);
    }

    fn some(
        &self,
        j: usize,
        starts: &[usize],
        x: &mut [T],
        ends: &mut [T],
        f: &(impl Fn(usize, &[Row<T>], &[S], &mut [T], &mut [T]) + Sync),
    ) {
        let parts = starts.len() - 1;
        if parts == 1 {
            let range = starts[0]..starts[1];
            return f(j, &self.rows[range.clone()], &self.steps[range], x, ends);
        }
        let half = parts / 2;
        let (above, below) = x.split_at_mut(starts[half] - starts[0]);
        let (before, after) = ends.split_at_mut(2 * half);
        join(
            self.par,
            || self.some(j, &starts[..=half], above, before, f),
            || self.some(j + half, &starts[half..], below, after, f),
        );
    }
}

/// The steps in their order; the right-hand sides of the two rows that are left go to `ends`.
#[inline]
pub(super) fn forward<T: Scalar, S: Step<T>>(_: &[Row<T>], steps: &[S], x: &mut [T], ends: &mut [T]) {
    let m = x.len();
    if m < 2 {
        if let [only] = x {
            ends[0] = *only;
        }
        return;
    }
    let (mut a, mut b) = (x[0], x[1]);
    for k in 1..m - 1 {
        [x[k], a, b] = steps[k].apply(a, b, x[k + 1]);
    }
    (ends[0], ends[1]) = (a, b);
}

/// Interior unknowns from the last to the first; `reduced` has those beside the cuts.
#[inline]
pub(super) fn backward<T: Scalar>(rows: &[Row<T>], x: &mut [T], reduced: &[T], j: usize) {
    let m = x.len();
    let at = |c: Option<usize>| c.and_then(|c| reduced.get(c)).copied().unwrap_or_default();
    let (left, first, last, right) =
        (at((2 * j).checked_sub(1)), at(Some(2 * j)), at(Some(2 * j + 1)), at(Some(2 * j + 2)));
    if m == 0 {
        return;
    }
    x[0] = first;
    if m == 1 {
        return;
    }
    x[m - 1] = last;
    let (mut x1, mut x2) = (last, right);
    for k in (1..m - 1).rev() {
        let r = &rows[k];
        let known = x[k] - r.left * left - r.first * first;
        (x2, x1) = (x1, Pivot::new(r.d).divide(known - r.u2 * x2 - r.u1 * x1));
        x[k] = x1;
    }
}

/// Uᵀ·z = x inside; what the interior subtracts in the columns of the neighbours goes to `ends`, left and right.
#[inline]
pub(super) fn forward_transposed<T: Scalar>(rows: &[Row<T>], x: &mut [T], ends: &mut [T], map: impl Fn(T) -> T) {
    let m = x.len();
    let (mut to_left, mut to_right) = (zero::<T>(), zero::<T>());
    for k in 1..m.max(1) - 1 {
        let r = &rows[k];
        let z = Pivot::new(map(r.d)).divide(x[k]);
        x[k] = z;
        to_left -= map(r.left) * z;
        x[0] -= map(r.first) * z;
        x[k + 1] -= map(r.u1) * z;
        if k + 2 < m {
            x[k + 2] -= map(r.u2) * z;
        } else {
            to_right -= map(r.u2) * z;
        }
    }
    (ends[0], ends[1]) = (to_left, to_right);
}

/// The transposed steps in the opposite order.
#[inline]
pub(super) fn backward_transposed<T: Scalar, S: Step<T>>(steps: &[S], x: &mut [T], map: impl Fn(T) -> T + Copy) {
    let m = x.len();
    if m < 3 {
        return;
    }
    let (mut a, mut b) = (x[0], x[m - 1]);
    for k in (1..m - 1).rev() {
        [a, b, x[k + 1]] = steps[k].apply_transposed(x[k], a, b, map);
    }
    (x[0], x[1]) = (a, b);
}
