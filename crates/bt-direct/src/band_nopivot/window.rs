//! Bands that fit in a fast cache: eight columns and eight rows at a time, in a window of dense columns.
//!
//! A column enters the window as a whole and leaves it as a whole, so that A is read once and its factors are written once. All
//! columns of a group of eight begin at the same row, a multiple of eight: a vector of the window is read where it was written.
//! Rows outside the band are zero there. Columns enter before they are worked on, when the rows that a step looks at have to be
//! known in full.
//!
//! ```text
//! A₁₁ = L₁₁·U₁₁,  L₂₁ = A₂₁·U₁₁⁻¹;   for each group of columns: U₁ = L₁₁⁻¹·A₁,  A₂ ← A₂ − L₂₁·U₁
//! ```
//!
//! The operations on an element and their order are those of elimination column by column.

use std::array::from_fn;
use std::ops::Range;

use bt_formats::{RealScalar, Scalar, one, zero};
use pulp::Simd;

use super::{Stop, Strip, boost, plus_product};
use crate::band_lu::end::reciprocal;
use crate::band_lu::kernels::{LANES, reduce};
use crate::error::Result;
use crate::lines;
use crate::pivot::Pivot;
use crate::tridiagonal_lu::zeros;

/// A step for each lane k, a constant in each: arrays of vectors stay in registers.
macro_rules! each_lane {
    (|$k:ident| $step:block) => {
        each_lane!(|$k| $step 0 1 2 3 4 5 6 7)
    };
    (|$k:ident| $step:block $($lane:literal)*) => {
        $({
            const $k: usize = $lane;
            $step
        })*
    };
}

/// Bytes of a window, at most: with larger ones panels are as fast.
const LARGEST: usize = 1 << 22;

/// Memory for a window, and its shape.
#[derive(Clone, Debug)]
pub(super) struct Workspace<T> {
    /// Vectors of U in a column, above the diagonal's; of L with the diagonal's.
    above: usize,
    below: usize,
    /// One vector more than the window has, to begin at a cache line.
    values: Vec<T>,
}

impl<T: Scalar> Workspace<T> {
    /// For a band, unless it is too wide.
    pub(super) fn new(kl: usize, ku: usize) -> Result<Option<Self>> {
        let (above, below) = (ku.div_ceil(LANES), 1 + kl.div_ceil(LANES));
        let height = above + below;
        let len = height.saturating_mul(height).saturating_mul(LANES * LANES).saturating_add(LANES);
        let narrow = len.saturating_mul(size_of::<T>()) <= LARGEST;
        Ok(if narrow { Some(Self { above, below, values: zeros(len)? }) } else { None })
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.values)
    }

    fn window(&mut self) -> Window<'_, T> {
        let Self { above, below, values } = self;
        let start = values.as_ptr().align_offset(64).min(LANES);
        Window { above: *above, below: *below, columns: values[start..].as_chunks_mut().0 }
    }
}

/// As many groups of eight columns as a column has vectors, `above` + `below`.
struct Window<'a, T> {
    above: usize,
    below: usize,
    /// The group of columns 8g to 8g + 7 in place g modulo `above` + `below`.
    columns: &'a mut [[T; LANES]],
}

impl<T> Window<'_, T> {
    /// Vectors of a column.
    fn height(&self) -> usize {
        self.above + self.below
    }

    /// Where group g is.
    #[inline(always)]
    fn place(&self, g: usize) -> Range<usize> {
        let len = LANES * self.height();
        let start = g % self.height() * len;
        start..start + len
    }

    /// The columns of group g.
    #[inline(always)]
    fn group(&mut self, g: usize) -> &mut [[T; LANES]] {
        let place = self.place(g);
        &mut self.columns[place]
    }
}

impl<T: Scalar> Strip<'_, T> {
    /// Eliminates the strip, which begins with a group of columns, in the window.
    #[inline(always)]
    pub(super) fn eliminate_in_window<const FUSED: bool, S: Simd>(
        &mut self,
        workspace: &mut Workspace<T>,
    ) -> Option<Stop> {
        let window = &mut workspace.window();
        let last = window.height() - 1;
        if self.first == 0 {
            for g in 0..last {
                if let stopped @ Some(_) = self.enter(window, g) {
                    return stopped;
                }
            }
        }
        for b in self.first / LANES..self.last.div_ceil(LANES) {
            if let stopped @ Some(_) = self.enter(window, b + last) {
                return stopped;
            }
            // Where this group and the columns after those that have just come in are.
            let group = |g: usize, ld: usize| g * LANES * ld..(g + 1) * LANES * ld;
            lines::fetch(&self.lu.values, group(b, self.lu.ld));
            lines::fetch(&self.lu.lower, group(b, self.lu.kl));
            if let Some(a) = self.source {
                lines::fetch(a.values(), group(b + last + 1, a.ldab()));
            }
            let (done, mut largest, stopped) = self.factor_group::<FUSED>(window, b);
            for g in b + 1..=b + window.above {
                // As many sums as there are registers for.
                if size_of::<S::f64s>() == size_of::<[f64; LANES]>() {
                    apply_group::<T, FUSED, 8>(window, b, g, &mut largest);
                } else {
                    apply_group::<T, FUSED, 4>(window, b, g, &mut largest);
                }
            }
            self.leave(window, b);
            let stopped = self.check_group(window, b, done, largest).or(stopped);
            if stopped.is_some() {
                return stopped;
            }
        }
        None
    }

    /// The columns of group g come into the window, and are measured if they have not been before.
    #[inline(always)]
    fn enter(&mut self, window: &mut Window<'_, T>, g: usize) -> Option<Stop> {
        let (height, above, first) = (window.height(), window.above, g * LANES);
        let (group, lu) = (window.group(g), &mut *self.lu);
        for (j, column) in (first..).zip(group.chunks_exact_mut(height)) {
            column.fill([zero(); LANES]);
            if j < lu.n {
                let (top, values) = lu.column(self.source, j);
                let at = top + above * LANES - first;
                copy(values, &mut column.as_flattened_mut()[at..at + values.len()]);
            }
        }
        let found = &mut *self.found;
        if first < found.measured || first >= lu.n {
            return None;
        }
        for column in group.chunks_exact(height) {
            let mut sums = [zero::<T::Real>(); LANES];
            for values in column {
                for i in 0..LANES {
                    sums[i] += values[i].abs();
                }
            }
            found.norm = found.norm.max_nan(reduce(sums, |a, b| a + b));
        }
        let rows = lu.rows.as_chunks_mut::<LANES>().0;
        let mut max_a = found.max_a;
        for v in above.saturating_sub(g)..height {
            let mut maxima = rows[g + v - above];
            for c in 0..LANES {
                let values = group[c * height + v];
                for i in 0..LANES {
                    maxima[i] = maxima[i].max_nan(values[i].abs1());
                }
            }
            rows[g + v - above] = maxima;
            for i in 0..LANES {
                max_a[i] = max_a[i].max_nan(maxima[i]);
            }
        }
        found.max_a = max_a;
        if !Scalar::is_finite(reduce(max_a, RealScalar::max_nan).to_f64()) {
            return Some(Stop::Overflow);
        }
        found.measured = first + LANES;
        None
    }

    /// The columns of group b go back into the band.
    #[inline(always)]
    fn leave(&mut self, window: &mut Window<'_, T>, b: usize) {
        let (lu, height, above) = (&mut *self.lu, window.height(), window.above);
        for (c, column) in window.group(b).chunks_exact_mut(height).enumerate() {
            let j = b * LANES + c;
            if j >= lu.n {
                break;
            }
            let rows = lu.rows_of(j);
            let from = rows.start + above * LANES - b * LANES;
            let from = &column.as_flattened()[from..from + rows.len()];
            let [u, l] = lu.split(j, rows);
            let (of_u, of_l) = from.split_at(u.len());
            copy(of_u, u);
            copy(of_l, l);
        }
    }

    /// Factors group b. The number of columns that have pivots, the largest |u| in each row among the group's columns, and why
    /// the next column has no pivot.
    #[inline(always)]
    fn factor_group<const FUSED: bool>(
        &mut self,
        window: &mut Window<'_, T>,
        b: usize,
    ) -> (usize, [T::Real; LANES], Option<Stop>) {
        let (above, below, height) = (window.above, window.below, window.height());
        let columns = LANES.min(self.lu.n - b * LANES);
        let group = window.group(b);
        // A₁₁ = L₁₁·U₁₁. The window has zeros behind the last column of the matrix: ones on the diagonal there change nothing.
        let mut head: [[T; LANES]; LANES] = from_fn(|k| group[k * height + above]);
        for k in columns..LANES {
            head[k][k] = one();
        }
        let (mut done, mut stopped) = (columns, None);
        let mut divisors = [Divisor { pivot: one(), reciprocal: Some(one()) }; LANES];
        each_lane!(|K| {
            let mut pivot = head[K][K];
            if let Some(threshold) = self.threshold
                && K < columns
            {
                pivot = boost(pivot, threshold, &mut self.found.boosted);
                head[K][K] = pivot;
            }
            if K < done && (pivot == zero() || !Scalar::is_finite(pivot)) {
                (done, stopped) = (K, Some(Stop::pivot(b * LANES + K, pivot)));
            }
            divisors[K] = Divisor { pivot, reciprocal: reciprocal(pivot) };
            let l = divisors[K].divide(head[K]);
            for i in 0..LANES {
                head[K][i] = if i > K { l[i] } else { head[K][i] };
            }
            for c in (0..LANES).skip(K + 1) {
                head[c] = plus_product_below::<T, FUSED>(K, head[c], &l, -head[c][K]);
            }
        });
        let mut largest = [zero::<T::Real>(); LANES];
        for k in 0..columns {
            group[k * height + above] = head[k];
            if k < done {
                self.found.min_pivot = self.found.min_pivot.min_nan(head[k][k].abs());
            }
            for i in 0..LANES {
                let u = if i <= k { head[k][i] } else { zero() };
                largest[i] = largest[i].max_nan(u.abs1());
            }
        }
        // L₂₁ = A₂₁·U₁₁⁻¹
        for v in above + 1..above + below {
            let mut rows: [[T; LANES]; LANES] = from_fn(|k| group[k * height + v]);
            each_lane!(|K| {
                let l = divisors[K].divide(rows[K]);
                rows[K] = l;
                for c in (0..LANES).skip(K + 1) {
                    rows[c] = plus_product::<T, FUSED>(rows[c], &l, -head[c][K]);
                }
            });
            for k in 0..columns {
                group[k * height + v] = rows[k];
            }
        }
        // Nothing is subtracted from the column without a pivot on.
        for column in group.chunks_exact_mut(height).skip(done) {
            column[above..].fill([zero(); LANES]);
        }
        (done, largest, stopped)
    }

    /// Notes the largest elements of the rows of U, and whether rows below lose half their digits.
    #[inline(always)]
    fn check_group(
        &mut self,
        window: &mut Window<'_, T>,
        b: usize,
        done: usize,
        largest: [T::Real; LANES],
    ) -> Option<Stop> {
        // All rows at once first, those outside the band too: zeros there.
        let (above, height, first) = (window.above, window.height(), b * LANES);
        let limit = T::Real::EPSILON.sqrt();
        let rows = self.lu.rows[first..].as_chunks::<LANES>().0;
        let mut fine = true;
        for (k, column) in window.group(b).chunks_exact(height).take(done).enumerate() {
            let shrunk = largest[k] * limit;
            let column = &column[above..];
            let within = |l: &[T; LANES], rows: &[T::Real; LANES]| {
                let mut within = true;
                for i in 0..LANES {
                    within &= l[i].abs1() * shrunk <= rows[i];
                }
                within
            };
            fine &= within(&below_diagonal(column[0], k), &rows[0]);
            for (l, rows) in column[1..].iter().zip(&rows[1..]) {
                fine &= within(l, rows);
            }
        }
        let u = reduce(largest, RealScalar::max_nan);
        if Scalar::is_finite(u.to_f64()) && (fine || self.threshold.is_some()) {
            self.found.max_u = self.found.max_u.max_nan(u);
            return None;
        }
        (0..done).find_map(|k| self.check(first + k, largest[k]))
    }
}

/// A pivot and its reciprocal, where there is one.
#[derive(Clone, Copy)]
struct Divisor<T> {
    pivot: T,
    reciprocal: Option<T>,
}

impl<T: Scalar> Divisor<T> {
    /// v/pivot
    #[inline(always)]
    fn divide(self, mut v: [T; LANES]) -> [T; LANES] {
        let Some(r) = self.reciprocal else { return self.quotients(v) };
        for i in 0..LANES {
            v[i] *= r;
        }
        v
    }

    #[cold]
    fn quotients(self, v: [T; LANES]) -> [T; LANES] {
        let divisor = Pivot::new(self.pivot);
        v.map(|v| divisor.divide(v))
    }
}

/// Applies group b to group g, so many columns at once; `largest` ← the largest |u| in each row.
#[inline(always)]
fn apply_group<T: Scalar, const FUSED: bool, const COLUMNS: usize>(
    window: &mut Window<'_, T>,
    b: usize,
    g: usize,
    largest: &mut [T::Real; LANES],
) {
    let (above, height, vectors) = (window.above, window.height(), window.below);
    let [l, y] = window.columns.get_disjoint_mut([window.place(b), window.place(g)]).expect("two groups");
    let l: [&[[T; LANES]]; LANES] = from_fn(|k| &l[k * height + above..][..vectors]);
    let head: [[T; LANES]; LANES] = from_fn(|k| l[k][0]);
    for y in y.chunks_exact_mut(COLUMNS * height) {
        // U₁ = L₁₁⁻¹·A₁
        let mut minus_u = [[zero::<T>(); LANES]; COLUMNS];
        for c in 0..COLUMNS {
            let at = c * height + above - (g - b);
            let u = solve_head::<T, FUSED>(&head, y[at]);
            y[at] = u;
            let mut negative = u;
            for k in 0..LANES {
                largest[k] = largest[k].max_nan(u[k].abs1());
                negative[k] = -u[k];
            }
            minus_u[c] = negative;
        }
        // A₂ ← A₂ − L₂₁·U₁
        for v in 1..vectors {
            let at = |c: usize| c * height + above - (g - b) + v;
            let mut sums: [[T; LANES]; COLUMNS] = from_fn(|c| y[at(c)]);
            for k in 0..LANES {
                let l = &l[k][v];
                for c in 0..COLUMNS {
                    sums[c] = plus_product::<T, FUSED>(sums[c], l, minus_u[c][k]);
                }
            }
            for c in 0..COLUMNS {
                y[at(c)] = sums[c];
            }
        }
    }
}

/// L⁻¹·y for the unit lower triangle of eight columns.
#[inline(always)]
fn solve_head<T: Scalar, const FUSED: bool>(l: &[[T; LANES]; LANES], mut y: [T; LANES]) -> [T; LANES] {
    for k in 0..LANES - 1 {
        y = plus_product_below::<T, FUSED>(k, y, &l[k], -y[k]);
    }
    y
}

/// y + l·u in the places behind k. What is in place up to k stays, also where u is not finite.
#[inline(always)]
fn plus_product_below<T: Scalar, const FUSED: bool>(k: usize, y: [T; LANES], l: &[T; LANES], u: T) -> [T; LANES] {
    let mut sum = plus_product::<T, FUSED>(y, l, u);
    for i in 0..LANES {
        sum[i] = if i > k { sum[i] } else { y[i] };
    }
    sum
}

/// Zeros in the places up to k.
#[inline(always)]
fn below_diagonal<T: Scalar>(mut l: [T; LANES], k: usize) -> [T; LANES] {
    for i in 0..LANES {
        l[i] = if i > k { l[i] } else { zero() };
    }
    l
}

/// to ← from, as long, in whole vectors where that is possible.
#[inline(always)]
fn copy<T: Copy>(from: &[T], to: &mut [T]) {
    let Some(&last) = from.last_chunk::<LANES>() else {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = from;
        }
        return;
    };
    for (to, from) in to.as_chunks_mut::<LANES>().0.iter_mut().zip(from.as_chunks::<LANES>().0) {
        *to = *from;
    }
    if !to.len().is_multiple_of(LANES)
        && let Some(end) = to.last_chunk_mut::<LANES>()
    {
        *end = last;
    }
}
