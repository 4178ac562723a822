//! Bands of doubles on AVX-512 that are too wide for `registers.rs`: eight columns at a time, from the left. On AVX2 `window.rs` is as
//! fast.
//!
//! A group of eight columns takes all that the groups before it subtract while its sums are in registers, and is written once. Rows
//! are taken eight at a time too, from a multiple of eight on: L is kept in tiles of eight rows and eight columns, as far back as a
//! column of U reaches.
//!
//! ```text
//! for each eight rows r above:    U_rg = L_rr⁻¹·(A_rg − Σ_h L_rh·U_hg)        h < r
//! L_gg·U_gg = A_gg − Σ_h L_gh·U_hg
//! for each eight rows r below:    L_rg = (A_rg − Σ_h L_rh·U_hg)·U_gg⁻¹        h < g
//! ```
//!
//! A row of U is whole when the last group that it reaches has it, and only then held against the rows of A. A column leaves for the
//! band a group later, when its numbers have reached the cache and can be read across their lines; it is measured as many groups
//! before its turn as L has tiles below the diagonal.
//!
//! The operations on an element and their order are those of elimination column by column.

use std::array::from_fn;
use std::hint::black_box;
use std::ops::Range;

use bt_formats::{RealScalar, Scalar, ScalarKind};
use bt_simd::Eight;
use pulp::bytemuck::{Pod, cast};

use super::registers::{REGISTERS, doubles};
use super::window::{copy, with_quotients};
use super::{Columns, Stop, Strip, boost};
use crate::band_lu::end::Place;
use crate::band_lu::kernels::LANES;
use crate::band_lu::two_steps::larger;
use crate::eight::eight;
use crate::error::Result;
use crate::lines::{self, Lines};

/// Bytes of a workspace, at most: tiles come from the second-level cache.
const LARGEST: usize = 1 << 19;

/// A step for each lane or column behind k.
macro_rules! each_behind {
    ($k:ident, |$c:ident| $step:block) => {
        each_lane!(|LATER| {
            const $c: usize = LATER + 1;
            if LATER + 1 > $k {
                $step
            }
        } 0 1 2 3 4 5 6)
    };
}

type Vector = [f64; LANES];
type Sums<E> = [<E as Eight>::V; LANES];
/// Eight rows of eight columns.
type Tile = [Vector; LANES];

/// What a group needs of those before it.
#[derive(Clone, Debug)]
pub(super) struct Workspace {
    /// Vectors of U in a column, above the diagonal's; of L, below it.
    above: usize,
    below: usize,
    /// The columns of the last two groups and their rows of U, then the tiles of the last `above` + 1.
    numbers: Lines<f64>,
    /// The largest |u| in the rows of those, so far.
    largest: Vec<Vector>,
    /// The largest |l| in the rows of the tiles.
    largest_l: Vec<Vector>,
    /// The rows of each column that are in the band, a bit each.
    masks: Vec<[u8; LANES]>,
    /// Whether they are those of a group that has no end of the matrix nearby.
    inner: bool,
    /// A column on its way to the band.
    column: Vec<Vector>,
}

impl Workspace {
    /// For a band of this scalar and width, if it is eliminated here.
    pub(super) fn new<T: Scalar>(kl: usize, ku: usize) -> Result<Option<Self>> {
        let doubles = lines::is::<T>(ScalarKind::F64);
        let (above, below) = (ku.div_ceil(LANES), kl.div_ceil(LANES));
        let vectors = (above + 1).saturating_mul(below + 1) + 2 * (2 * above + below + 1);
        let len = vectors.saturating_mul(LANES * LANES);
        if !doubles || kl == 0 || ku == 0 || len > LARGEST / size_of::<f64>() || bt_simd::avx512().is_none() {
            return Ok(None);
        }
        let (largest, masks) = (vec![[0.0; LANES]; above + 1], vec![[0; LANES]; above + below + 1]);
        let largest_l = vec![[0.0; LANES]; (above + 1) * (below + 1)];
        let column = vec![[0.0; LANES]; above + below + 1];
        Ok(Some(Self { above, below, numbers: Lines::zeros(len)?, largest, largest_l, masks, column, inner: false }))
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.numbers)
            + size_of_val(&*self.largest)
            + size_of_val(&*self.largest_l)
            + size_of_val(&*self.masks)
            + size_of_val(&*self.column)
    }
}

/// Eliminates the strip, which begins with a group of columns and ends with the matrix or before one.
pub(super) fn eliminate<T: Scalar>(strip: &mut Strip<'_, T>, workspace: &mut Workspace) -> Option<Stop> {
    let (simd, mut strip) = (bt_simd::avx512().expect(REGISTERS), doubles(strip));
    let Workspace { above, below, numbers, largest, largest_l, masks, column, inner } = workspace;
    let tiles: &mut [Tile] = numbers.as_chunks_mut().0.as_chunks_mut().0;
    let (columns, tiles) = tiles.split_at_mut(2 * (*above + *below + 1));
    let (rows, tiles) = tiles.split_at_mut(2 * *above);
    let lines = [strip.lu.ld, strip.lu.kl, LANES].map(|all| all.div_ceil(*above + *below + 1));
    Groups {
        simd,
        strip: &mut strip,
        lines,
        above: *above,
        below: *below,
        columns,
        rows,
        tiles,
        largest,
        largest_l,
        masks,
        column,
        inner,
        reciprocals: None,
        indices: black_box(from_fn(|k| [k as u64; LANES])),
        slot: (0, 0),
    }
    .run()
}

/// Work on the groups of a strip.
struct Groups<'a, 'b, E> {
    simd: E,
    strip: &'a mut Strip<'b, f64>,
    above: usize,
    below: usize,
    columns: &'a mut [Tile],
    rows: &'a mut [Tile],
    tiles: &'a mut [Tile],
    largest: &'a mut [Vector],
    largest_l: &'a mut [Vector],
    masks: &'a mut [[u8; LANES]],
    column: &'a mut [Vector],
    inner: &'a mut bool,
    /// Of the pivots of the last group, unless it has quotients.
    reciprocals: Option<Vector>,
    /// Lane K in all lanes of the K-th.
    indices: [[u64; LANES]; LANES],
    /// Lines of the factors' columns, those of L apart, and columns of A that are asked for with eight rows.
    lines: [usize; 3],
    /// The group that is worked on, and its place.
    slot: (usize, usize),
}

/// These lanes.
fn lanes(from: isize, to: isize) -> u8 {
    (from.max(0)..to.min(LANES as isize)).fold(0, |mask, lane| mask | 1 << lane)
}

impl<E: Eight> Groups<'_, '_, E> {
    /// Vectors of a column.
    #[inline(always)]
    fn height(&self) -> usize {
        self.above + self.below + 1
    }

    /// Where the columns of group g are.
    #[inline(always)]
    fn place(&self, g: usize) -> usize {
        (g & 1) * self.height()
    }

    /// The place of group h, of the last `above` + 1 before the one that is worked on.
    #[inline(always)]
    fn slot(&self, h: usize) -> usize {
        let (last, slot) = self.slot;
        if last - h <= slot { slot + h - last } else { slot + h + self.above + 1 - last }
    }

    /// Where tiles of group h begin, from its own rows on.
    #[inline(always)]
    fn tiles_of(&self, h: usize) -> usize {
        self.slot(h) * (self.below + 1)
    }

    /// Group g is the one that is worked on.
    fn begin(&mut self, g: usize) {
        self.slot = (g, g % (self.above + 1));
        self.set_masks(g);
    }

    fn run(mut self) -> Option<Stop> {
        let n = self.strip.lu.n;
        let groups = self.strip.first / LANES..self.strip.last.div_ceil(LANES);
        if groups.start == 0 {
            for g in 0..self.below {
                if let stopped @ Some(_) = self.measure(g) {
                    return stopped;
                }
            }
        }
        for g in groups.clone() {
            if let stopped @ Some(_) = self.measure(g + self.below) {
                return stopped;
            }
            // What waits for nothing of the group before has been done beside it.
            self.begin(g);
            if g > 0 {
                self.simd.vectorize(Upper { groups: &mut self, g, rows: g - 1..g });
                self.leave(g - 1);
            }
            if g >= self.above
                && let growth @ Some(_) = self.check(g - self.above, LANES)
            {
                return growth;
            }
            let columns = LANES.min(n - g * LANES);
            let done = if self.strip.threshold.is_some() {
                self.simd.vectorize(Head::<E, true> { groups: &mut self, g, columns })
            } else {
                self.simd.vectorize(Head::<E, false> { groups: &mut self, g, columns })
            };
            if done < columns {
                let pivot = self.columns[self.place(g) + self.above][done][done];
                return self.finish(g, done).or(Some(Stop::pivot(g * LANES + done, pivot)));
            }
            self.begin(g + 1);
            let rows = (g + 1).saturating_sub(self.above)..g;
            self.simd.vectorize(Upper { groups: &mut self, g: g + 1, rows });
            self.begin(g);
            self.simd.vectorize(Lower { groups: &mut self, g });
        }
        if self.strip.last == n { self.finish(groups.end - 1, n - (groups.end - 1) * LANES) } else { None }
    }

    /// The rows of U that end behind the last group g, of which `done` columns have pivots.
    #[cold]
    fn finish(&mut self, g: usize, done: usize) -> Option<Stop> {
        self.leave(g);
        for reached in g + 1..=g + self.above {
            self.begin(reached);
            let rows = reached.saturating_sub(self.above)..g + 1;
            self.simd.vectorize(Upper { groups: self, g: reached, rows });
            if let Some(h) = reached.checked_sub(self.above)
                && let growth @ Some(_) = self.check(h, if h < g { LANES } else { done })
            {
                return growth;
            }
        }
        None
    }

    /// Measures the columns of group g if they have not been before.
    fn measure(&mut self, g: usize) -> Option<Stop> {
        if g * LANES < self.strip.found.measured || g * LANES >= self.strip.lu.n {
            return None;
        }
        self.set_masks(g);
        self.simd.vectorize(Measure { groups: self, g });
        let found = &mut *self.strip.found;
        if !found.max_a().is_finite() {
            return Some(Stop::Overflow);
        }
        found.measured = (g + 1) * LANES;
        None
    }

    /// The rows of the columns of group g that are in the band and in the matrix.
    #[inline(always)]
    fn set_masks(&mut self, g: usize) {
        let lu = &*self.strip.lu;
        let inner = g >= self.above && (g + self.below + 1) * LANES <= lu.n;
        if inner && *self.inner {
            return;
        }
        *self.inner = inner;
        let (n, first) = (lu.n as isize, (g * LANES) as isize);
        for (v, masks) in self.masks.iter_mut().enumerate() {
            let top = (v as isize - self.above as isize) * LANES as isize;
            for (c, mask) in masks.iter_mut().enumerate() {
                let c = c as isize;
                let rows = (c - lu.ku as isize).max(-first)..(c + lu.kl as isize + 1).min(n - first);
                *mask = if first + c < n { lanes(rows.start - top, rows.end - top) } else { 0 };
            }
        }
    }

    /// Rows of A in the columns of group g, the v-th eight of them.
    #[inline(always)]
    fn sums(&self, a: Columns<'_, f64>, g: usize, v: usize) -> Sums<E> {
        let simd = self.simd;
        // May be before the first column of the matrix, or behind the last.
        let at = (a.diagonal(g * LANES) + v * LANES).wrapping_sub(self.above * LANES);
        let mut sums = [cast([0.0; LANES]); LANES];
        let masks = self.masks[v];
        let step = a.ld - 1;
        if let Some(values) = a.values.get(at..).and_then(|values| values.get(..(LANES - 1) * step + LANES)) {
            each_lane!(|C| {
                let column: &Vector = values[C * step..].first_chunk().expect("as many were taken");
                sums[C] = simd.keep(masks[C], cast(*column));
            });
        } else {
            each_lane!(|C| {
                sums[C] = simd.keep(masks[C], eight(a.values, at.wrapping_add(C * step)));
            });
        }
        sums
    }

    /// The groups whose tiles reach row r and whose rows of U reach group g, each with the first of its columns that does both.
    #[inline(always)]
    fn reaching(&self, g: usize, r: usize) -> impl Iterator<Item = (usize, usize)> + use<E> {
        let (above, below) = (self.above, self.below);
        let (by_l, by_u) = (below * LANES - self.strip.lu.kl, above * LANES - self.strip.lu.ku);
        (r.saturating_sub(below).max(g.saturating_sub(above))..r.min(g)).map(move |h| {
            let by_l = if r - h == below { by_l } else { 0 };
            (h, if g - h == above { by_u.max(by_l) } else { by_l })
        })
    }

    /// Rows of U of group g in its row r, in lanes.
    #[inline(always)]
    fn rows(&self, g: usize, r: usize) -> usize {
        (g & 1) * self.above + r + self.above - g
    }

    /// sums ← sums − Σ_h L_rh·U_hg, by columns.
    #[inline(always)]
    fn subtract(&self, mut sums: Sums<E>, g: usize, r: usize) -> Sums<E> {
        for (h, from) in self.reaching(g, r) {
            let (tile, u) = (&self.tiles[self.tiles_of(h) + r - h], &self.rows[self.rows(g, h)]);
            sums = minus_products(self.simd, sums, tile, u, from);
        }
        sums
    }

    /// With the v-th eight rows of group g, asks for some lines of what is measured and what leaves after it: all at once they would
    /// wait for each other.
    #[inline(always)]
    fn fetch(&self, g: usize, v: usize) {
        let lu = &*self.strip.lu;
        // A group's columns of so many numbers are as many lines.
        let some = |values: &[f64], ld: usize, lines: usize| {
            let first = (g + 1) * LANES * ld + v * lines * LANES;
            lines::fetch(values, first..first + lines * LANES);
        };
        some(&lu.values, lu.ld, self.lines[0]);
        some(&lu.lower, lu.kl, self.lines[1]);
        if let Some(a) = self.strip.source {
            for c in v * self.lines[2]..LANES.min((v + 1) * self.lines[2]) {
                let diagonal = a.diagonal((g + self.below + 2) * LANES + c);
                lines::fetch(a.values, diagonal - lu.ku..diagonal + lu.kl + LANES);
            }
        }
    }

    /// The columns of group g go back into the band.
    fn leave(&mut self, g: usize) {
        let (place, height, above) = (self.place(g), self.height(), self.above);
        if self.strip.lu.place == Place::Apart && (g + 2) * LANES <= self.strip.lu.n {
            self.simd.vectorize(Leave { groups: self, g });
            return;
        }
        let lu = &mut *self.strip.lu;
        for (c, j) in (g * LANES..lu.n).take(LANES).enumerate() {
            for (to, row) in self.column.iter_mut().zip(&self.columns[place..place + height]) {
                *to = row[c];
            }
            let rows = lu.rows_of(j);
            let from = rows.start + above * LANES - g * LANES;
            let from = &self.column.as_flattened()[from..from + rows.len()];
            let [u, l] = lu.split(j, rows);
            let (of_u, of_l) = from.split_at(u.len());
            copy(of_u, u);
            copy(of_l, l);
        }
    }

    /// Factors group g where not all pivots have reciprocals. The number of columns that have pivots.
    #[cold]
    #[inline(never)]
    fn with_quotients(&mut self, g: usize, columns: usize) -> usize {
        let (above, below, height) = (self.above, self.below, self.height());
        let (place, tiles) = (self.place(g), self.tiles_of(g));
        self.reciprocals = None;
        let source = self.strip.lu.columns(self.strip.source);
        for r in g..=g + below {
            let sums = self.subtract(self.sums(source, g, r + above - g), g, r);
            self.columns[place + r + above - g] = sums.map(cast);
        }
        // By columns.
        let rows = &mut self.columns[place + above..place + height];
        let mut group: Vec<Vector> = (0..LANES).flat_map(|c| rows.iter().map(move |row| row[c])).collect();
        let head = with_quotients::<f64, true>(&mut group, below + 1, 0..below + 1, columns, self.strip.threshold)
            .expect("quotients by all pivots");
        for (v, row) in rows.iter_mut().enumerate() {
            *row = from_fn(|c| group[c * (below + 1) + v]);
        }
        let mut largest = [0.0; LANES];
        head.note(columns, self.strip.found, &mut largest);
        self.largest[self.slot.1] = largest;
        for (v, (tile, largest)) in
            (self.tiles[tiles..].iter_mut().zip(&mut self.largest_l[tiles..])).take(below + 1).enumerate()
        {
            *largest = [0.0; LANES];
            for (k, l) in tile.iter_mut().enumerate() {
                // Nothing is subtracted from the column without a pivot on.
                *l = if k < head.done { group[k * (below + 1) + v] } else { [0.0; LANES] };
                if v == 0 {
                    l[..=k].fill(0.0);
                }
                for (largest, l) in largest.iter_mut().zip(l) {
                    *largest = largest.max_of_moduli(l.abs());
                }
            }
        }
        head.done
    }

    /// Holds the rows of U of group h, `done` of them, against those of A.
    #[inline(always)]
    fn check(&mut self, h: usize, done: usize) -> Option<Stop> {
        let largest = self.largest[self.slot(h)];
        let fine = done == LANES && self.simd.vectorize(Check { groups: self, h });
        if fine {
            let found = &mut *self.strip.found;
            found.max_u = largest.into_iter().fold(found.max_u, RealScalar::max_of_moduli);
            return None;
        }
        (0..done).find_map(|k| self.strip.check(h * LANES + k, largest[k]))
    }
}

/// sumsᵢ ← sumsᵢ − Σ_k vₖ·xₖᵢ from the k-th vector on.
#[inline(always)]
fn minus_products<E: Eight>(simd: E, mut sums: Sums<E>, v: &Tile, x: &Tile, from: usize) -> Sums<E> {
    for k in from..LANES {
        let v = cast(v[k]);
        each_lane!(|I| {
            sums[I] = simd.minus_mul(sums[I], v, simd.splat(x[k][I]));
        });
    }
    sums
}

/// to ← column c from row `top` on: two vectors side by side have eight of its rows.
#[inline(always)]
fn piece<E: Eight>(simd: E, group: &[Tile], c: usize, top: usize, to: &mut [f64]) {
    let from = cast(from_fn::<_, LANES, _>(|i| (top % LANES + i) as u64));
    let mut v = top / LANES;
    let mut next: E::V = cast(group[v][c]);
    for to in to.as_chunks_mut::<LANES>().0 {
        let this = next;
        v = (v + 1).min(group.len() - 1);
        next = cast(group[v][c]);
        *to = cast(simd.gather([this, next], from));
    }
}

/// The columns of group g go into factors apart, where others follow them.
struct Leave<'a, 'b, 'c, E> {
    groups: &'a mut Groups<'b, 'c, E>,
    g: usize,
}

impl<E: Eight> pulp::NullaryFnOnce for Leave<'_, '_, '_, E> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        let Self { groups, g } = self;
        let (above, height) = (groups.above, groups.height());
        let group = &groups.columns[groups.place(g)..][..height];
        let (lu, first) = (&mut *groups.strip.lu, g * LANES);
        // What goes over into the next column is overwritten by it.
        for c in 0..LANES {
            let (ku, to) = (lu.ku, (first + c) * lu.ld);
            let len = (ku + 1).next_multiple_of(LANES);
            piece(groups.simd, group, c, above * LANES + c - ku, &mut lu.values[to..to + len]);
            let (kl, to) = (lu.kl, (first + c) * lu.kl);
            let len = kl.next_multiple_of(LANES);
            piece(groups.simd, group, c, above * LANES + c + 1, &mut lu.lower[to..to + len]);
        }
    }
}

/// Norms of the columns of a group, and maxima of rows.
struct Measure<'a, 'b, 'c, E> {
    groups: &'a mut Groups<'b, 'c, E>,
    g: usize,
}

impl<E: Eight> pulp::NullaryFnOnce for Measure<'_, '_, '_, E> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        let Self { groups, g } = self;
        let simd = groups.simd;
        let mut sums: Sums<E> = [simd.splat(0.0); LANES];
        let mut max_a: E::I = cast(groups.strip.found.max_a);
        for v in groups.above.saturating_sub(g)..groups.height() {
            let source = groups.strip.lu.columns(groups.strip.source);
            let columns = groups.sums(source, g, v);
            let rows = &mut groups.strip.lu.rows[(g + v - groups.above) * LANES..];
            let rows = rows.first_chunk_mut::<LANES>().expect("zeros behind the last row");
            let mut maxima: E::I = cast(*rows);
            each_lane!(|C| {
                let moduli = simd.abs(columns[C]);
                sums[C] = simd.add(sums[C], moduli);
                maxima = simd.max_bits(maxima, cast(moduli));
            });
            *rows = cast(maxima);
            max_a = simd.max_bits(max_a, maxima);
        }
        let found = &mut *groups.strip.found;
        for sum in sums {
            found.norm = found.norm.max_nan(simd.sum(sum));
        }
        found.max_a = cast(max_a);
    }
}

/// U of group g in these rows.
struct Upper<'a, 'b, 'c, E> {
    groups: &'a mut Groups<'b, 'c, E>,
    g: usize,
    rows: Range<usize>,
}

impl<E: Eight> pulp::NullaryFnOnce for Upper<'_, '_, '_, E> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        let Self { groups, g, rows } = self;
        let simd = groups.simd;
        let source = groups.strip.lu.columns(groups.strip.source);
        for r in rows {
            let v = r + groups.above - g;
            groups.fetch(g, v);
            // By rows: one of U meets numbers of L.
            let mut u = simd.transpose(groups.sums(source, g, v));
            for (h, from) in groups.reaching(g, r) {
                let (tile, of_h) = (&groups.tiles[groups.tiles_of(h) + r - h], &groups.rows[groups.rows(g, h)]);
                u = minus_products(simd, u, of_h, tile, from);
            }
            // U_rg = L_rr⁻¹·(…)
            let tile = &groups.tiles[groups.tiles_of(r)];
            each_lane!(|K| {
                each_behind!(K, |I| {
                    u[I] = simd.minus_mul(u[I], simd.splat(tile[K][I]), u[K]);
                });
            });
            let at = groups.rows(g, r);
            let row = &mut groups.rows[at];
            each_lane!(|I| {
                row[I] = cast(u[I]);
            });
            let u = simd.transpose(u);
            let (slot, at) = (groups.slot(r), groups.place(g) + v);
            let columns = &mut groups.columns[at];
            let mut largest: E::I = cast(groups.largest[slot]);
            each_lane!(|C| {
                largest = larger(simd, largest, u[C]);
                columns[C] = cast(u[C]);
            });
            groups.largest[slot] = cast(largest);
        }
    }
}

/// L and U of group g in its own rows. The number of columns that have pivots.
struct Head<'a, 'b, 'c, E, const BOOSTING: bool> {
    groups: &'a mut Groups<'b, 'c, E>,
    g: usize,
    columns: usize,
}

impl<E: Eight, const BOOSTING: bool> pulp::NullaryFnOnce for Head<'_, '_, '_, E, BOOSTING> {
    type Output = usize;
    #[inline(always)]
    fn call(self) -> usize {
        let Self { groups, g, columns } = self;
        let simd = groups.simd;
        let above = groups.above;
        let source = groups.strip.lu.columns(groups.strip.source);
        groups.fetch(g, above);
        let mut head = groups.subtract(groups.sums(source, g, above), g, g);
        if columns < LANES {
            head = with_ones(&head, columns);
        }
        let one = simd.splat(1.0);
        let (mut pivots, mut reciprocals) = (one, one);
        let mut boosted = 0;
        each_lane!(|K| {
            let lane: E::I = cast(groups.indices[K]);
            let (on, behind) = (simd.mask(1 << K), simd.mask(!0 << K << 1));
            let mut pivot = simd.spread::<K>(head[K], lane);
            if BOOSTING
                && K < columns
                && let Some(threshold) = groups.strip.threshold
            {
                let [p, ..]: Vector = cast(pivot);
                pivot = simd.splat(boost(p, threshold, &mut boosted));
                head[K] = simd.select(on, pivot, head[K]);
            }
            let r = simd.div(one, pivot);
            pivots = simd.select(on, pivot, pivots);
            reciprocals = simd.select(on, r, reciprocals);
            head[K] = simd.select(behind, simd.mul(head[K], r), head[K]);
            let l = head[K];
            each_behind!(K, |C| {
                let u = simd.spread::<K>(head[C], lane);
                head[C] = simd.select(behind, simd.minus_mul(head[C], l, u), head[C]);
            });
        });
        // Where there is a reciprocal: it neither overflows nor underflows.
        let moduli = simd.abs(pivots);
        let (least, most) = (simd.splat(f64::MIN_POSITIVE), simd.splat(0.5 / f64::MIN_POSITIVE));
        if simd.bits(simd.both(simd.at_least(moduli, least), simd.at_least(most, moduli))) != !0 {
            return groups.with_quotients(g, columns);
        }
        let (first, at) = (groups.tiles_of(g), groups.place(g) + above);
        let (tile, place) = (&mut groups.tiles[first], &mut groups.columns[at]);
        let (mut largest, mut largest_l) = (simd.splat_bits(0), simd.splat_bits(0));
        each_lane!(|C| {
            let l = simd.keep(!0 << C << 1, head[C]);
            place[C] = cast(head[C]);
            tile[C] = cast(l);
            largest_l = larger(simd, largest_l, l);
            largest = larger(simd, largest, simd.keep(!(!0 << C << 1), head[C]));
        });
        groups.largest[groups.slot.1] = cast(largest);
        groups.largest_l[first] = cast(largest_l);
        groups.reciprocals = Some(cast(reciprocals));
        let found = &mut *groups.strip.found;
        found.boosted += boosted;
        let pivots: Vector = cast(moduli);
        for &p in &pivots[..columns] {
            found.min_pivot = found.min_pivot.min(p);
        }
        columns
    }
}

/// Ones on the diagonal behind the last column of the matrix, where there are zeros: they change nothing.
#[cold]
#[inline(never)]
fn with_ones<V: Pod>(head: &[V; LANES], columns: usize) -> [V; LANES] {
    let mut head = (*head).map(cast::<_, Vector>);
    for (c, column) in head.iter_mut().enumerate().skip(columns) {
        column[c] = 1.0;
    }
    head.map(cast)
}

/// L of group g below its own rows.
struct Lower<'a, 'b, 'c, E> {
    groups: &'a mut Groups<'b, 'c, E>,
    g: usize,
}

impl<E: Eight> pulp::NullaryFnOnce for Lower<'_, '_, '_, E> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        let Self { groups, g } = self;
        let simd = groups.simd;
        // Without them these rows are there already.
        let Some(reciprocals) = groups.reciprocals else { return };
        let (above, place, tiles) = (groups.above, groups.place(g), groups.tiles_of(g));
        let source = groups.strip.lu.columns(groups.strip.source);
        for r in g + 1..=g + groups.below {
            let v = r + above - g;
            groups.fetch(g, v);
            let mut l = groups.subtract(groups.sums(source, g, v), g, r);
            let (head, rows) = groups.columns[place + above..].split_first_mut().expect("its own rows");
            let (rows, tile) = (&mut rows[r - g - 1], &mut groups.tiles[tiles + r - g]);
            each_lane!(|K| {
                l[K] = simd.mul(l[K], simd.splat(reciprocals[K]));
                each_behind!(K, |C| {
                    l[C] = simd.minus_mul(l[C], l[K], simd.splat(head[C][K]));
                });
            });
            let mut largest = simd.splat_bits(0);
            each_lane!(|C| {
                rows[C] = cast(l[C]);
                tile[C] = cast(l[C]);
                largest = larger(simd, largest, l[C]);
            });
            groups.largest_l[tiles + r - g] = cast(largest);
        }
    }
}

/// Whether no row loses half its digits in the steps of group h.
struct Check<'a, 'b, 'c, E> {
    groups: &'a Groups<'b, 'c, E>,
    h: usize,
}

impl<E: Eight> pulp::NullaryFnOnce for Check<'_, '_, '_, E> {
    type Output = bool;
    #[inline(always)]
    fn call(self) -> bool {
        let Self { groups, h } = self;
        let simd = groups.simd;
        let largest: E::V = cast(groups.largest[groups.slot(h)]);
        // Infinity and NaN are not below infinity.
        let finite = simd.bits(simd.less(largest, simd.splat(f64::INFINITY)));
        if groups.strip.threshold.is_some() {
            return finite == !0;
        }
        // |l_ik|·max|u_k| is at most the product of the largest of both.
        let limit = simd.splat(f64::EPSILON.sqrt());
        let most = simd.mul(simd.splat(f64::from_bits(simd.largest_bits(cast(largest)))), limit);
        let mut fine = finite;
        let first = groups.tiles_of(h);
        let rows = &groups.strip.lu.rows[h * LANES..].as_chunks::<LANES>().0[..=groups.below];
        for (l, rows) in groups.largest_l[first..].iter().zip(rows) {
            fine &= simd.bits(simd.at_least(cast(*rows), simd.mul(cast(*l), most)));
        }
        if fine == !0 || finite != !0 {
            return fine == !0;
        }
        // Rows of different sizes need every product by itself.
        fine = finite;
        let shrunk: Vector = cast(simd.mul(largest, limit));
        for (tile, rows) in groups.tiles[first..].iter().zip(rows) {
            let mut grown = simd.splat_bits(0);
            each_lane!(|K| {
                let product = simd.mul(cast(tile[K]), simd.splat(shrunk[K]));
                grown = larger(simd, grown, product);
            });
            fine &= simd.bits(simd.at_least(cast(*rows), cast(grown)));
        }
        fine == !0
    }
}
