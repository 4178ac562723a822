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
//! Two groups at a time are applied to those behind them, whose sums are read and written once for both.
//!
//! The operations on an element and their order are those of elimination column by column.

use std::array::from_fn;
use std::ops::Range;

use bt_formats::{RealScalar, Scalar, one, zero};
use pulp::Simd;

use super::{Found, Stop, Strip, boost, plus_product};
use crate::band_lu::end::reciprocal;
use crate::band_lu::kernels::{LANES, by_squares, reduce, sum_of_moduli};
use crate::error::Result;
use crate::lines;
use crate::memory::zeros;
use crate::pivot::Pivot;

/// Bytes of a window, at most: with larger ones panels are as fast.
const LARGEST: usize = 1 << 22;

/// Memory for a window, and its shape.
#[derive(Clone, Debug)]
pub(super) struct Workspace<T> {
    /// Vectors of U in a column, above the diagonal's; of L with the diagonal's.
    above: usize,
    below: usize,
    /// The window, then the tiles of L of two groups, and one vector more to begin at a cache line.
    values: Vec<T>,
}

impl<T: Scalar> Workspace<T> {
    /// For a band, unless it is too wide.
    pub(super) fn new(kl: usize, ku: usize) -> Result<Option<Self>> {
        let (above, below) = (ku.div_ceil(LANES), 1 + kl.div_ceil(LANES));
        let vectors = Self::vectors(above, below);
        let len = vectors.saturating_mul(LANES).saturating_add(LANES);
        let narrow = len.saturating_mul(size_of::<T>()) <= LARGEST;
        Ok(if narrow { Some(Self { above, below, values: zeros(len)? }) } else { None })
    }

    /// Those of the window, and of the tiles.
    fn vectors(above: usize, below: usize) -> usize {
        let height = above.saturating_add(below);
        let tiles = below.saturating_add(1).saturating_mul(2);
        height.saturating_mul(height.saturating_add(1)).saturating_add(tiles).saturating_mul(LANES)
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.values)
    }

    fn window(&mut self) -> Window<'_, T> {
        let Self { above, below, values } = self;
        let start = values.as_ptr().align_offset(64).min(LANES);
        let height = *above + *below;
        let (columns, tiles) = values[start..].as_chunks_mut().0.split_at_mut(LANES * height * (height + 1));
        let tiles = tiles.as_chunks_mut().0;
        Window { above: *above, below: *below, columns, tiles: &mut tiles[..=*below] }
    }
}

/// A group of columns more than a column has vectors, `above` + `below`.
struct Window<'a, T> {
    above: usize,
    below: usize,
    /// The group of columns 8g to 8g + 7 in place g modulo `above` + `below` + 1.
    columns: &'a mut [[T; LANES]],
    /// Eight rows of the columns of two groups, from the rows of the first on: L where they have it.
    tiles: &'a mut [[[T; LANES]; 2 * LANES]],
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
        let start = g % (self.height() + 1) * len;
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
    /// Eliminates the strip, which begins with an even group of columns and ends with the matrix or before one, in the window.
    #[inline(always)]
    pub(super) fn eliminate_in_window<const FUSED: bool, S: Simd>(
        &mut self,
        s: S,
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
        let groups = self.first / LANES..self.last.div_ceil(LANES);
        for b in groups.clone().step_by(2) {
            let two = b..groups.end.min(b + 2);
            for g in two.clone() {
                if let stopped @ Some(_) = self.enter(window, g + last) {
                    return stopped;
                }
            }
            if let stopped @ Some(_) = self.eliminate_groups::<FUSED, S>(s, window, two) {
                return stopped;
            }
        }
        None
    }

    /// Eliminates two groups, or the last one.
    #[inline(always)]
    fn eliminate_groups<const FUSED: bool, S: Simd>(
        &mut self,
        s: S,
        window: &mut Window<'_, T>,
        groups: Range<usize>,
    ) -> Option<Stop> {
        let (b, above) = (groups.start, window.above);
        let mut largest = [[zero::<T::Real>(); LANES]; 2];
        let mut done = [0; 2];
        let mut factored = 0;
        let mut stopped = None;
        let reached = b + 1..=b + groups.len() - 1 + above;
        let (steps, ahead) = (2 + reached.end() - reached.start(), b + window.height() + groups.len() - 1);
        // The second group is factored when the first has been applied to it, and both are applied to those that both reach.
        for (step, g) in std::iter::once(b).chain(reached).enumerate() {
            // Little by little: as many lines as these columns have would wait for each other.
            let columns = groups.len() * LANES;
            for c in columns * step / steps..columns * (step + 1) / steps {
                self.fetch(b * LANES + c, ahead * LANES + c);
            }
            if groups.contains(&g) && stopped.is_none() {
                if g > b && above > 0 {
                    window.apply::<FUSED, S>(s, b, g, 0..1, &mut largest);
                }
                (done[g - b], stopped) = self.factor_group::<FUSED>(window, b, g - b, &mut largest[g - b]);
                factored = g - b + 1;
            } else {
                let from = usize::from(g > b + above);
                window.apply::<FUSED, S>(s, b, g, from..factored, &mut largest);
            }
        }
        for h in 0..factored {
            self.leave(window, b + h);
            if let growth @ Some(_) = self.check_group(window, b + h, done[h], largest[h]) {
                return growth;
            }
        }
        stopped
    }

    /// Asks for the places of column `leaves`, and for column `enters` of A.
    #[inline(always)]
    fn fetch(&self, leaves: usize, enters: usize) {
        let lu = &*self.lu;
        let column = |j: usize, ld: usize| j * ld..(j + 1) * ld;
        lines::fetch(&lu.values, column(leaves, lu.ld));
        lines::fetch(&lu.lower, column(leaves, lu.kl));
        if let Some(a) = self.source {
            let diagonal = a.diagonal(enters);
            lines::fetch(a.values, diagonal - lu.ku..diagonal + lu.kl + LANES);
        }
    }

    /// The columns of group g come into the window, and are measured if they have not been before.
    #[inline(always)]
    fn enter(&mut self, window: &mut Window<'_, T>, g: usize) -> Option<Stop> {
        let (height, above, first) = (window.height(), window.above, g * LANES);
        let (group, lu, found) = (window.group(g), &mut *self.lu, &mut *self.found);
        for (j, column) in (first..).zip(group.chunks_exact_mut(height)) {
            column.fill([zero(); LANES]);
            if j < lu.n {
                let (top, values) = lu.column(self.source, j);
                let at = top + above * LANES - first;
                copy(values, &mut column.as_flattened_mut()[at..at + values.len()]);
            }
        }
        if first < found.measured || first >= lu.n {
            return None;
        }
        let rows = lu.rows.as_chunks_mut::<LANES>().0;
        let mut sums = [[zero::<T::Real>(); LANES]; LANES];
        let mut max_a = found.max_a;
        for v in above.saturating_sub(g)..height {
            let mut maxima = rows[g + v - above];
            for c in 0..LANES {
                let x = group[c * height + v];
                for i in 0..LANES {
                    sums[c][i] += by_squares(x[i]);
                    maxima[i] = maxima[i].max_of_moduli(x[i].abs1());
                }
            }
            rows[g + v - above] = maxima;
            for i in 0..LANES {
                max_a[i] = max_a[i].max_of_moduli(maxima[i]);
            }
        }
        for (sums, column) in sums.into_iter().zip(group.chunks_exact(height)) {
            found.norm = found.norm.max_nan(sum_of_moduli(reduce(sums, |a, b| a + b), column.as_flattened()));
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

    /// Factors group b + h, the h-th of two. The number of columns that have pivots, and why the next column has none;
    /// `largest` ← the largest |u| in each row among the group's columns.
    #[inline(always)]
    fn factor_group<const FUSED: bool>(
        &mut self,
        window: &mut Window<'_, T>,
        b: usize,
        h: usize,
        largest: &mut [T::Real; LANES],
    ) -> (usize, Option<Stop>) {
        let (above, below, height) = (window.above, window.below, window.height());
        let place = window.place(b + h);
        let (group, tiles) = (&mut window.columns[place], &mut window.tiles[h..]);
        let b = b + h;
        let columns = LANES.min(self.lu.n - b * LANES);
        let rows = above..above + below;
        let head = factor_tiles::<T, FUSED, false>(group, height, rows.clone(), columns, self.threshold)
            .or_else(|| with_quotients::<T, FUSED>(group, height, rows, columns, self.threshold))
            .expect("quotients by all pivots");
        let done = head.done;
        let stopped = (done < columns).then(|| Stop::pivot(b * LANES + done, head.lu[done][done]));
        head.note(columns, self.found, largest);
        // Nothing is subtracted from the column without a pivot on.
        if done < LANES {
            for column in group.chunks_exact_mut(height).skip(done) {
                column[above..].fill([zero(); LANES]);
            }
        }
        for (v, tile) in (above..above + below).zip(tiles) {
            for (k, l) in tile[h * LANES..(h + 1) * LANES].iter_mut().enumerate() {
                *l = group[k * height + v];
            }
        }
        (done, stopped)
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

/// L₁₁ and U₁₁, the columns that have pivots, and how many pivots were boosted.
pub(super) struct Head<T> {
    lu: [[T; LANES]; LANES],
    pub(super) done: usize,
    boosted: usize,
}

impl<T: Scalar> Head<T> {
    /// Notes the pivots; `largest` ← the largest |u| in each row, of which `columns` are in the matrix.
    #[inline(always)]
    pub(super) fn note(&self, columns: usize, found: &mut Found<T>, largest: &mut [T::Real; LANES]) {
        found.boosted += self.boosted;
        for k in 0..columns {
            if k < self.done {
                found.min_pivot = found.min_pivot.min_nan(self.lu[k][k].abs());
            }
            for i in 0..LANES {
                let u = if i <= k { self.lu[k][i] } else { zero() };
                largest[i] = largest[i].max_of_moduli(u.abs1());
            }
        }
    }
}

/// A₁₁ = L₁₁·U₁₁ and L₂₁ = A₂₁·U₁₁⁻¹ in these vectors of a group's columns, of which `columns` are in the matrix. None, and nothing
/// done, where a pivot has no reciprocal, unless quotients are taken.
#[inline(always)]
fn factor_tiles<T: Scalar, const FUSED: bool, const QUOTIENTS: bool>(
    group: &mut [[T; LANES]],
    height: usize,
    rows: Range<usize>,
    columns: usize,
    threshold: Option<(T::Real, T::Real)>,
) -> Option<Head<T>> {
    // The window has zeros behind the last column of the matrix: ones on the diagonal there change nothing.
    let mut head: [[T; LANES]; LANES] = from_fn(|k| group[k * height + rows.start]);
    for k in columns..LANES {
        head[k][k] = one();
    }
    let (mut done, mut boosted) = (columns, 0);
    let mut reciprocals = [Some(one()); LANES];
    // v/pivot
    let divide = |mut v: [T; LANES], pivot: T, reciprocal: Option<T>| match reciprocal {
        None if QUOTIENTS => v.map(|v| Pivot::new(pivot).divide(v)),
        _ => {
            let r = reciprocal.unwrap_or(pivot);
            for i in 0..LANES {
                v[i] *= r;
            }
            v
        }
    };
    each_lane!(|K| {
        let mut pivot = head[K][K];
        if let Some(threshold) = threshold
            && K < columns
        {
            pivot = boost(pivot, threshold, &mut boosted);
            head[K][K] = pivot;
        }
        if K < done && (pivot == zero() || !Scalar::is_finite(pivot)) {
            done = K;
        }
        reciprocals[K] = reciprocal(pivot);
        let l = divide(head[K], pivot, reciprocals[K]);
        for i in 0..LANES {
            head[K][i] = if i > K { l[i] } else { head[K][i] };
        }
        for c in (0..LANES).skip(K + 1) {
            head[c] = plus_product_below::<T, FUSED>(K, head[c], &l, -head[c][K]);
        }
    });
    if !QUOTIENTS && reciprocals.iter().any(Option::is_none) {
        return None;
    }
    for k in 0..columns {
        group[k * height + rows.start] = head[k];
    }
    for v in rows.skip(1) {
        let mut rows: [[T; LANES]; LANES] = from_fn(|k| group[k * height + v]);
        each_lane!(|K| {
            let l = divide(rows[K], head[K][K], reciprocals[K]);
            rows[K] = l;
            for c in (0..LANES).skip(K + 1) {
                rows[c] = plus_product::<T, FUSED>(rows[c], &l, -head[c][K]);
            }
        });
        for k in 0..columns {
            group[k * height + v] = rows[k];
        }
    }
    Some(Head { lu: head, done, boosted })
}

#[cold]
#[inline(never)]
pub(super) fn with_quotients<T: Scalar, const FUSED: bool>(
    group: &mut [[T; LANES]],
    height: usize,
    rows: Range<usize>,
    columns: usize,
    threshold: Option<(T::Real, T::Real)>,
) -> Option<Head<T>> {
    factor_tiles::<T, FUSED, true>(group, height, rows, columns, threshold)
}

/// Applies groups b + h, h in `halves`, to group g; `largest` ← the largest |u| in each of their rows.
struct Apply<'a, 'b, T: Scalar, const FUSED: bool, const COLUMNS: usize> {
    window: &'a mut Window<'b, T>,
    b: usize,
    g: usize,
    halves: Range<usize>,
    largest: &'a mut [[T::Real; LANES]; 2],
}

impl<T: Scalar, const FUSED: bool, const COLUMNS: usize> pulp::NullaryFnOnce for Apply<'_, '_, T, FUSED, COLUMNS> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        let Self { window, b, g, halves, largest } = self;
        window.apply_to::<FUSED, COLUMNS>(b, g, halves, largest);
    }
}

impl<T: Scalar> Window<'_, T> {
    /// A function of its own: the sums of its products stay in registers.
    #[inline(always)]
    fn apply<const FUSED: bool, S: Simd>(
        &mut self,
        s: S,
        b: usize,
        g: usize,
        halves: Range<usize>,
        largest: &mut [[T::Real; LANES]; 2],
    ) {
        // As many sums as there are registers for.
        if const { size_of::<S::f64s>() == size_of::<[f64; LANES]>() } {
            s.vectorize(Apply::<T, FUSED, 8> { window: self, b, g, halves, largest });
        } else {
            s.vectorize(Apply::<T, FUSED, 4> { window: self, b, g, halves, largest });
        }
    }

    /// So many columns at once.
    #[inline(always)]
    fn apply_to<const FUSED: bool, const COLUMNS: usize>(
        &mut self,
        b: usize,
        g: usize,
        halves: Range<usize>,
        largest: &mut [[T::Real; LANES]; 2],
    ) {
        let (height, place) = (self.height(), self.place(g));
        let Self { above, below, columns, tiles } = self;
        // Where rows of group b + r are.
        let at = |r: usize, c: usize| c * height + *above + r - (g - b);
        for y in columns[place].chunks_exact_mut(COLUMNS * height) {
            let mut minus_u = [[zero::<T>(); 2 * LANES]; COLUMNS];
            // U₁ = L₁₁⁻¹·A₁
            for h in halves.clone() {
                let sums = from_fn(|c| y[at(h, c)]);
                let sums =
                    plus_products::<T, FUSED, COLUMNS>(sums, &tiles[h], &minus_u, halves.start * LANES..h * LANES);
                let head = tiles[h].as_chunks().0[h];
                for c in 0..COLUMNS {
                    let u = solve_head::<T, FUSED>(&head, sums[c]);
                    y[at(h, c)] = u;
                    minus_u[c].as_chunks_mut().0[h] = u.map(|u| -u);
                    for k in 0..LANES {
                        largest[h][k] = largest[h][k].max_of_moduli(u[k].abs1());
                    }
                }
            }
            // A₂ ← A₂ − L₂₁·U₁; the first group does not reach the rows that the second reaches last.
            for r in halves.end..halves.end + *below - 1 {
                let from = halves.start.max((r + 1).saturating_sub(*below));
                let sums = from_fn(|c| y[at(r, c)]);
                let sums =
                    plus_products::<T, FUSED, COLUMNS>(sums, &tiles[r], &minus_u, from * LANES..halves.end * LANES);
                for c in 0..COLUMNS {
                    y[at(r, c)] = sums[c];
                }
            }
        }
    }
}

/// Y + L·U for so many columns of Y and U, and some columns of L.
#[inline(always)]
fn plus_products<T: Scalar, const FUSED: bool, const COLUMNS: usize>(
    mut y: [[T; LANES]; COLUMNS],
    l: &[[T; LANES]; 2 * LANES],
    u: &[[T; 2 * LANES]; COLUMNS],
    columns: Range<usize>,
) -> [[T; LANES]; COLUMNS] {
    assert!(columns.end <= 2 * LANES);
    for k in columns {
        for c in 0..COLUMNS {
            y[c] = plus_product::<T, FUSED>(y[c], &l[k], u[c][k]);
        }
    }
    y
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
pub(super) fn copy<T: Copy>(from: &[T], to: &mut [T]) {
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
