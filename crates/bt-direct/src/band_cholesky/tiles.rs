//! Wide bands of doubles by tiles of 8 × 8 in eight lanes (AVX-512 or AVX2), k ≥ 9.
//!
//! ```text
//! L₁₁ ← a panel's own tile     X ← X·L₁₁⁻ᵀ for the tiles below it     C ← C − X_r·X_gᵀ for the tiles behind it, r ≥ g
//! ```
//!
//! A tile is eight registers, one a column. Columns begin and end within tiles: what a tile has above a diagonal or behind the
//! end of a column belongs to the columns beside it, and is kept. The operations on an element and their order are those of
//! `panels.rs`, which does the last panels, where columns are shorter.

use std::ops::Range;

use bt_formats::{Numbers, NumbersMut, RealScalar, Scalar, ScalarKind};
use bt_simd::Eight;
use pulp::bytemuck::cast;

use super::halves::Halves;
use super::panels::WIDTH;
use super::registers::doubles;
use super::{BandCholesky, Pivots};
use crate::band_lu::kernels::LANES;
use crate::eight::{Work, are_there, run};
use crate::lines;

/// Whether bands of this scalar and half-bandwidth are worked on here.
pub(super) fn fit<T: Scalar>(k: usize) -> bool {
    k > LANES && lines::is::<T>(ScalarKind::F64) && are_there()
}

/// Eliminates panels, as far as there are whole tiles; only for what fits. Returns the first column that is left; or a row
/// without a positive pivot, and the pivot. Meanwhile the memory is asked for `next`: what is loaded after these columns, and how
/// many numbers of it a column has.
pub(super) fn eliminate<T: Scalar>(
    cholesky: &mut BandCholesky<T>,
    panel: &mut [[T; WIDTH]],
    columns: Range<usize>,
    min_pivot: &mut T::Real,
    next: (&[T], usize),
) -> Result<usize, (usize, f64)> {
    let NumbersMut::F64(panel) = T::numbers_mut(panel.as_flattened_mut()) else { unreachable!("doubles") };
    let (panel, mut least) = (panel.as_chunks_mut().0, f64::INFINITY);
    let Numbers::F64(values) = T::numbers(next.0) else { unreachable!("doubles") };
    let done = run(Panels { cholesky: doubles(cholesky), panel, columns, least: &mut least, next: (values, next.1) });
    *min_pivot = min_pivot.min_nan(T::Real::from_f64(least));
    done
}

/// Copies columns of the lower half, compares them with the upper half and measures them; as far as there are whole tiles, and only for what fits.
/// Returns the first column that is left, which may have been found unusable.
pub(super) fn load<T: Scalar>(cholesky: &mut BandCholesky<T>, halves: Halves<'_, T>, columns: Range<usize>) -> usize {
    let Numbers::F64(values) = T::numbers(halves.values) else { unreachable!("doubles") };
    run(Load { cholesky: doubles(cholesky), halves: halves.with(values), columns })
}

#[inline(always)]
fn get<E: Eight>(_: E, values: &[f64], at: usize) -> E::V {
    cast(*values[at..].first_chunk::<LANES>().expect("a whole tile"))
}

/// Eight columns, each `step` behind the one before. Written out: a loop would keep them in memory.
#[inline(always)]
fn get_tile<E: Eight>(simd: E, values: &[f64], at: usize, step: usize) -> [E::V; LANES] {
    macro_rules! columns {
        ($($c:literal)*) => { [$(get(simd, values, at + $c * step)),*] };
    }
    columns!(0 1 2 3 4 5 6 7)
}

/// A mask of the lanes before this one, from a table: where the compiler can see how a mask was made, it makes a masked store of
/// the selection, which with AVX2 takes AMD's processors some twenty steps.
#[inline(always)]
fn before<E: Eight>(_: E, lane: usize) -> E::I {
    cast(BEFORE[lane.min(LANES)])
}

static BEFORE: [[u64; LANES]; LANES + 1] = {
    let mut masks = [[0; LANES]; LANES + 1];
    let mut lane = 1;
    while lane <= LANES {
        masks[lane] = masks[lane - 1];
        masks[lane][lane - 1] = u64::MAX;
        lane += 1;
    }
    masks
};

/// Lanes of a tile that a column has.
#[derive(Clone, Copy)]
enum Part {
    All,
    From(usize),
    Before(usize),
}

impl Part {
    /// Column c of eight, in the r-th tile from that of their first diagonal on: k rows below a diagonal.
    #[inline(always)]
    fn of(r: usize, c: usize, k: usize) -> Self {
        if r == 0 {
            Self::From(c)
        } else if (r + 1) * LANES <= k + 1 {
            Self::All
        } else {
            Self::Before((c + k + 1).saturating_sub(r * LANES))
        }
    }

    /// These lanes of v, zeros elsewhere.
    #[inline(always)]
    fn keep<E: Eight>(self, simd: E, v: E::V) -> E::V {
        match self {
            Self::All => v,
            Self::From(lane) => cast(simd.and_not(before(simd, lane), cast(v))),
            Self::Before(lane) => cast(simd.and(before(simd, lane), cast(v))),
        }
    }

    /// These lanes of v go to `values`; the others of it stay.
    #[inline(always)]
    fn put<E: Eight>(self, simd: E, values: &mut [f64], at: usize, v: E::V) {
        let place = values[at..].first_chunk_mut::<LANES>().expect("a whole tile");
        let others = match self {
            Self::All => {
                *place = cast(v);
                return;
            }
            Self::From(lane) => Self::Before(lane),
            Self::Before(lane) => Self::From(lane),
        };
        let there = others.keep(simd, cast(*place));
        *place = cast(simd.or(cast(self.keep(simd, v)), cast(there)));
    }
}

struct Panels<'a> {
    cholesky: &'a mut BandCholesky<f64>,
    panel: &'a mut [[f64; WIDTH]],
    columns: Range<usize>,
    least: &'a mut f64,
    next: (&'a [f64], usize),
}

impl Work for Panels<'_> {
    type Output = Result<usize, (usize, f64)>;
    #[inline(always)]
    fn work<E: Eight>(self, simd: E) -> Self::Output {
        let Self { cholesky, panel, columns, least, next } = self;
        let &mut BandCholesky { n, k, ld, .. } = cholesky;
        // Tiles of a panel, its own first.
        let tiles = 1 + k.div_ceil(LANES);
        let mut first = columns.start;
        while first + WIDTH <= columns.end && first + (tiles + 1) * LANES <= n {
            let start = cholesky.at(first, first);
            let values = &mut cholesky.values[start..];
            own_tile(simd, values, ld, &mut panel[..WIDTH], least).map_err(|(p, pivot)| (first + p, pivot))?;
            below(simd, values, (k, ld), &mut panel[..tiles * WIDTH]);
            let next_panel = (first - columns.start) * next.1;
            let share = (WIDTH * next.1).div_ceil(tiles - 1);
            for g in 1..tiles {
                let ahead = next_panel + (g - 1) * share;
                lines::fetch(next.0, ahead..ahead + share);
                let (values, panel) = (&mut values[g * LANES * ld..], &panel[g * WIDTH..tiles * WIDTH]);
                if E::VALUES > WIDTH {
                    behind::<E, 8>(simd, values, ld, panel);
                } else {
                    behind::<E, 4>(simd, values, ld, panel);
                }
            }
            first += WIDTH;
        }
        Ok(first)
    }
}

/// L₁₁ of a panel whose first diagonal is `values[0]`, into its place and into `own`, zeros above the diagonal.
#[inline(always)]
fn own_tile<E: Eight>(
    simd: E,
    values: &mut [f64],
    ld: usize,
    own: &mut [[f64; WIDTH]],
    least: &mut f64,
) -> Result<(), (usize, f64)> {
    let mut tile = get_tile(simd, values, 0, ld - 1);
    for p in 0..WIDTH {
        tile[p] = Part::From(p).keep(simd, tile[p]);
    }
    for p in 0..WIDTH {
        let column: [f64; WIDTH] = cast(tile[p]);
        let pivot = column[p];
        let Some(Pivots { root, .. }) = Pivots::<f64>::of(pivot) else { return Err((p, pivot)) };
        *least = least.min(pivot);
        let l = simd.mul(tile[p], simd.splat(1.0 / root));
        let mut column: [f64; WIDTH] = cast(Part::From(p + 1).keep(simd, l));
        column[p] = root;
        own[p] = column;
        Part::From(p).put(simd, values, p * (ld - 1), cast(column));
        for q in p + 1..WIDTH {
            tile[q] = simd.minus_mul(tile[q], l, simd.splat(column[q]));
        }
    }
    Ok(())
}

/// The tiles below it: X ← X·L₁₁⁻ᵀ, into their places and behind L₁₁ in `panel`, zeros where columns have ended.
#[inline(always)]
fn below<E: Eight>(simd: E, values: &mut [f64], (k, ld): (usize, usize), panel: &mut [[f64; WIDTH]]) {
    let (own, tiles) = panel.split_at_mut(WIDTH);
    let mut reciprocals = [0.0; WIDTH];
    for p in 0..WIDTH {
        reciprocals[p] = 1.0 / own[p][p];
    }
    for (r, tile) in tiles.as_chunks_mut::<WIDTH>().0.iter_mut().enumerate() {
        let r = r + 1;
        let mut x = get_tile(simd, values, r * LANES, ld - 1);
        for p in 0..WIDTH {
            x[p] = Part::of(r, p, k).keep(simd, x[p]);
        }
        for p in 0..WIDTH {
            let mut v = x[p];
            for q in 0..p {
                v = simd.minus_mul(v, x[q], simd.splat(own[q][p]));
            }
            x[p] = simd.mul(v, simd.splat(reciprocals[p]));
        }
        for p in 0..WIDTH {
            tile[p] = cast(x[p]);
            Part::of(r, p, k).put(simd, values, p * (ld - 1) + r * LANES, x[p]);
        }
    }
}

/// Eight columns behind a panel, of which `values[0]` is the first diagonal: C ← C − X_r·X_gᵀ, where X_g is the first tile of
/// `panel`. SIDE columns of a tile are updated together.
#[inline(always)]
fn behind<E: Eight, const SIDE: usize>(simd: E, values: &mut [f64], ld: usize, panel: &[[f64; WIDTH]]) {
    let tiles = panel.as_chunks::<WIDTH>().0;
    let factors = &tiles[0];
    for (r, x) in tiles.iter().enumerate() {
        for side in (0..WIDTH).step_by(SIDE) {
            let mut y = [simd.splat(0.0); SIDE];
            for q in 0..SIDE {
                let c = side + q;
                y[q] = get(simd, values, c * (ld - 1) + r * LANES);
            }
            for p in 0..WIDTH {
                let x: E::V = cast(x[p]);
                for q in 0..SIDE {
                    y[q] = simd.minus_mul(y[q], x, simd.splat(factors[p][side + q]));
                }
            }
            for q in 0..SIDE {
                let c = side + q;
                // A column begins with its diagonal, and zeros are subtracted behind its end.
                let part = if r == 0 { Part::From(c) } else { Part::All };
                part.put(simd, values, c * (ld - 1) + r * LANES, y[q]);
            }
        }
    }
}

struct Load<'a> {
    cholesky: &'a mut BandCholesky<f64>,
    halves: Halves<'a, f64>,
    columns: Range<usize>,
}

impl Work for Load<'_> {
    type Output = usize;
    #[inline(always)]
    fn work<E: Eight>(self, simd: E) -> usize {
        let Self { cholesky, halves, columns } = self;
        let (k, Halves { values: from, ld, .. }) = (cholesky.k, halves);
        let tiles = 1 + k.div_ceil(LANES);
        let mut j = columns.start;
        while j + WIDTH <= columns.end && j + (tiles + 1) * LANES <= halves.end {
            let start = cholesky.at(j, j);
            let (to, sums) = (&mut cholesky.values[start..], &mut cholesky.sums[j..]);
            let to_ld = cholesky.ld;
            let mut own = [simd.splat(0.0); WIDTH];
            let mut unequal = simd.splat_bits(0);
            for r in 0..tiles {
                // Rows j + 8r … of eight columns, and of their mirrors.
                let place = halves.at(j);
                let lower = get_tile(simd, from, place + r * LANES, ld - 1);
                let upper = get_tile(simd, from, place + r * LANES * (ld - 1), ld - 1);
                let upper = simd.transpose(upper);
                let mut reached: E::V = get(simd, sums, r * LANES);
                for c in 0..WIDTH {
                    let part = Part::of(r, c, k);
                    part.put(simd, to, c * (to_ld - 1) + r * LANES, lower[c]);
                    // Zero, if both are the same and finite.
                    let difference = simd.minus_mul(lower[c], upper[c], simd.splat(1.0));
                    let difference = simd.abs(part.keep(simd, difference));
                    let others = if r == 0 { Part::From(c + 1) } else { part };
                    let moduli = others.keep(simd, simd.abs(lower[c]));
                    unequal = simd.or(unequal, cast(difference));
                    own[c] = simd.add(own[c], moduli);
                    reached = simd.add(reached, moduli);
                }
                Part::All.put(simd, sums, r * LANES, reached);
            }
            if simd.largest_bits(unequal) != 0 {
                return j;
            }
            for c in 0..WIDTH {
                sums[c] += to[c * to_ld].abs() + simd.sum(own[c]);
            }
            j += WIDTH;
        }
        j
    }
}
