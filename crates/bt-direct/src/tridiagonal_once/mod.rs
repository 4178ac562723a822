//! A tridiagonal system solved once, in the place of its right-hand side, without storing factors.
//!
//! The rows are cut into pieces that lie across the lanes of vectors and among threads. First the unknowns at the cuts
//! are found, then every piece is solved between them; what the second pass needs of the first it computes again, since
//! on today's machines arithmetic is cheaper than memory. Two ways to the unknowns at the cuts:
//!
//! - [`Elimination::Dominant`], without pivoting: from a short window around each cut, of the cuts in a tile of 16 pieces while the
//!   tile is in the cache. This is the truncated SPIKE of
//!   C. C. K. Mikkelsen and M. Manguoglu, SIAM J. Matrix Anal. Appl. 30 (2008), doi:10.1137/080719571, with two
//!   differences: what is dropped is measured at every cut and must be below rounding, and the equations at the cuts are
//!   checked afterwards. A matrix that is not dominant enough is refused.
//! - [`Elimination::Pivoted`]: all columns but two of each piece are eliminated with partial pivoting, and the rows that
//!   remain make a system with bandwidths 2 and 2 for [`BandLu`]. The idea is H. H. Wang's, ACM Trans. Math. Softw. 7
//!   (1981), doi:10.1145/355945.355947; that two columns wait and not one makes it Gaussian elimination with partial
//!   pivoting in another order of the columns, for which no piece can be singular unless A is.
//!
//! Memory: some 400 KiB a thread and 0.2 % of the matrix. Traffic with values of s bytes: 5·s·n, or 9·s·n.
//! Flops a row: 8 and a division, or 26 and 2 divisions. The cuts depend on n alone, the bits not on the threads.
//!
//! | file | case |
//! |---|---|
//! | `dominant.rs` | without pivoting: the unknowns at the cuts from windows, then the pieces and the rows behind them |
//! | `pivoted.rs` | with partial pivoting: the rows that remain of the pieces, then the pieces |
//! | `lanes.rs` | eight numbers side by side: doubles in registers of AVX-512 or AVX2, all else in arrays |

mod dominant;
pub(crate) mod lanes;
mod pivoted;

use std::sync::Mutex;

use bt_formats::{Band, Par, RealScalar, Scalar, Tridiagonal, one, zero};
use rayon::prelude::*;

use crate::band_lu::BandLu;
use crate::columns::check_size;
use crate::error::{FactorError, Result};
use crate::factorization::Factorization;
use crate::lines;
use crate::memory::{reserve, zeros};
use crate::tridiagonal_lu::{TridiagonalLu, input_norms};
use lanes::{C, Isa, Kernel, PIECES, W};

/// How [`TridiagonalOnce`] eliminates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elimination {
    /// Without pivoting, for matrices in which the influence of an unknown decays: diagonally dominant ones.
    Dominant,
    /// With partial pivoting, for every regular matrix.
    Pivoted,
}

/// What a solve tells about itself.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Solved {
    /// Pieces that were solved side by side.
    pub pieces: usize,
    /// Rows that the longest window took on each side of a cut; 0 when pivoting or when nothing was cut.
    pub reach: usize,
    /// Largest |xᵢ − x̂ᵢ| / max|x| at the cuts, x̂ from the window: the part of the backward error due to cutting.
    pub mismatch: f64,
    /// Elimination in pieces overflowed or met a column without a pivot, and sequential elimination solved the system.
    pub sequential: bool,
}

/// The unknowns before and behind a cut.
type Edge<T> = [T; 2];

/// The three diagonals, or some rows of them.
#[derive(Clone, Copy)]
struct Arrays<'a, T> {
    lower: &'a [T],
    diag: &'a [T],
    upper: &'a [T],
}

impl<'a, T> Arrays<'a, T> {
    fn rows(self, from: usize, count: usize) -> Self {
        let cut = |v: &'a [T]| &v[from..from + count];
        Self { lower: cut(self.lower), diag: cut(self.diag), upper: cut(self.upper) }
    }
}

/// Tiles of 16 pieces; the first `long` of them have pieces 8 rows longer. Fewer than 128 rows are left for the tail.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Layout {
    n: usize,
    tiles: usize,
    long: usize,
    rows: usize,
}

impl Layout {
    /// Pieces of about `wanted` rows. An odd number of cache lines keeps the lanes of a vector in different sets.
    fn new(n: usize, wanted: usize) -> Self {
        let tiles = n.div_ceil(PIECES * wanted).min(n / (PIECES * W));
        if tiles == 0 {
            return Self { n, tiles, long: 0, rows: 0 };
        }
        let rows = n / (PIECES * W * tiles) * W;
        Self { n, tiles, long: (n - PIECES * rows * tiles) / (PIECES * W), rows }
    }
    fn stride(&self, tile: usize) -> usize {
        self.rows + if tile < self.long { W } else { 0 }
    }
    /// First row of a tile, or of the tail.
    fn start(&self, tile: usize) -> usize {
        PIECES * (tile * self.rows + tile.min(self.long) * W)
    }
    fn tail(&self) -> usize {
        self.start(self.tiles)
    }
    fn pieces(&self) -> usize {
        PIECES * self.tiles
    }
}

/// Reads a tile in order; it stays in the second-level cache.
fn fetch<T: Copy>(a: Arrays<'_, T>, x: &[T]) {
    for values in [a.lower, a.diag, a.upper, x] {
        lines::read(values);
    }
}

/// Rows of a piece: the elimination of sixteen of them stays in the second-level cache.
const PIECE_ROWS: usize = 1032;

/// Memory for solving tridiagonal systems of one size, each once.
///
/// ```
/// use bt_direct::tridiagonal_once::{Elimination, TridiagonalOnce};
/// use bt_formats::{Par, Tridiagonal};
/// let n = 1000;
/// let mut off = vec![-1.0; n];
/// off[0] = 0.0;
/// let upper = off.iter().rev().copied().collect();
/// let a = Tridiagonal::new(off, vec![3.0; n], upper)?;
/// let mut x = vec![1.0; n];
/// (x[0], x[n - 1]) = (2.0, 2.0);
/// TridiagonalOnce::new(n)?.solve_in_place(&a, &mut x, Elimination::Dominant, Par::Seq)?;
/// assert!(x.iter().all(|v| (v - 1.0f64).abs() < 1e-15));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Debug)]
pub struct TridiagonalOnce<T: Scalar> {
    layout: Layout,
    /// The cuts behind the tiles, and all cuts tile by tile.
    ends: Vec<Edge<T>>,
    edges: Vec<[Edge<T>; PIECES]>,
    rows: Vec<[[[T; 5]; 2]; PIECES]>,
    reduced: Band<T>,
    reduced_lu: BandLu<T>,
    reduced_x: Vec<T>,
    scratch: Mutex<Vec<Vec<[T; W]>>>,
}

impl<T: Scalar> TridiagonalOnce<T> {
    /// Memory for systems of n rows on as many threads as the current rayon pool has.
    ///
    /// # Errors
    /// [`FactorError::Input`] when memory is short.
    pub fn new(n: usize) -> Result<Self> {
        Self::with_piece_rows(n, PIECE_ROWS)
    }

    fn with_piece_rows(n: usize, wanted: usize) -> Result<Self> {
        let layout = Layout::new(n, wanted);
        let (mut ends, mut edges, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        reserve(&mut ends, layout.tiles)?;
        ends.resize(layout.tiles, [zero(); 2]);
        reserve(&mut edges, layout.tiles)?;
        edges.resize(layout.tiles, [[zero(); 2]; PIECES]);
        reserve(&mut rows, layout.tiles)?;
        rows.resize(layout.tiles, [[[zero(); 5]; 2]; PIECES]);
        let order = 2 * layout.pieces() + (n - layout.tail());
        let mut reduced = Band::zeros(order, 2, 2)?;
        for i in 0..order {
            *reduced.get_mut(i, i) = one();
        }
        let reduced_lu = BandLu::new(&reduced)?;
        let mut scratch = Vec::new();
        for _ in 0..rayon::current_num_threads().min(layout.tiles.max(1)) {
            scratch.push(scratch_for(layout)?);
        }
        let reduced_x = zeros(order)?;
        Ok(Self { layout, ends, edges, rows, reduced, reduced_lu, reduced_x, scratch: Mutex::new(scratch) })
    }

    /// x ← A⁻¹·x. Serial or parallel, the bits are the same. After an error x is NaN, or
    /// unchanged when a size is wrong.
    ///
    /// # Errors
    /// [`FactorError::Breakdown`] from [`Elimination::Dominant`] when the influence of an unknown does not decay within
    /// 384 rows, elements grow, or the equations at the cuts do not hold to rounding: use [`Elimination::Pivoted`].
    /// [`FactorError::Singular`] from [`Elimination::Pivoted`] with the column. [`FactorError::Input`] on another size, a
    /// NaN or an infinity.
    ///
    /// # Cost
    /// Allocates nothing unless more threads take part than the pool had at construction, or sequential elimination is
    /// called in ([`Solved::sequential`]).
    #[inline(never)]
    pub fn solve_in_place(
        &mut self,
        a: &Tridiagonal<T>,
        x: &mut [T],
        elimination: Elimination,
        par: Par,
    ) -> Result<Solved> {
        check_size("size of the matrix", self.layout.n, a.diag().len())?;
        check_size("length of the right-hand side", self.layout.n, x.len())?;
        let a = (a, Arrays { lower: a.lower(), diag: a.diag(), upper: a.upper() });
        let outcome = match elimination {
            Elimination::Dominant => self.dominant(a.1, x, par),
            Elimination::Pivoted => self.pivoted(a.0, a.1, x, par),
        };
        if outcome.is_err() {
            x.fill(T::nan_impl());
            // A NaN in A says more than what it did to the elimination.
            input_norms(a.0)?;
        }
        outcome
    }

    fn dominant(&mut self, a: Arrays<'_, T>, x: &mut [T], par: Par) -> Result<Solved> {
        let layout = self.layout;
        let tail = layout.tail();
        let b = &*x;
        let outer = |(group, ends): (usize, &mut [Edge<T>])| ends_of_tiles(layout, a, b, group * W, ends);
        let longest = |r: usize, s: usize| Ok(r.max(s));
        let outside = match par {
            Par::Seq => self.ends.chunks_mut(W).enumerate().map(outer).try_fold(0, |r, s| longest(r, s?)),
            Par::Rayon => self.ends.par_chunks_mut(W).enumerate().map(outer).try_reduce(|| 0, longest),
        }?;
        // The cuts inside a tile, then its pieces: all while it is in the cache. Windows that leave a tile must come first.
        let leave = layout.rows < dominant::REACHES[dominant::REACHES.len() - 1];
        let cuts = |(tile, edges)| cuts_in_tile(a, b, layout.start(tile), layout.stride(tile), edges);
        let tiles = if leave { &mut *self.edges } else { &mut [] };
        let outside = tiles.iter_mut().enumerate().map(cuts).try_fold(outside, |r, s| longest(r, s?))?;
        let (ends, scratch) = (&self.ends, &self.scratch);
        let solve = |tile: usize, x: &mut [T], edges: &mut [Edge<T>; PIECES]| {
            let (rows, stride) = (a.rows(layout.start(tile), x.len()), layout.stride(tile));
            fetch(rows, x);
            let reach = if leave { 0 } else { cuts_in_tile(rows, x, 0, stride, edges)? };
            edges[PIECES - 1] = ends[tile];
            let (mut before, mut after) = ([zero::<T>(); PIECES], [zero::<T>(); PIECES]);
            before[0] = tile.checked_sub(1).map_or(zero(), |t| ends[t][0]);
            for k in 0..PIECES {
                after[k] = edges[k][1];
                if k > 0 {
                    before[k] = edges[k - 1][0];
                }
            }
            let good = with_scratch(scratch, layout, |scratch| {
                Sweep { a: rows, x, stride, before: &before, after: &after, scratch }.run()
            });
            if good { Ok(reach) } else { Err(Refusal::Growth) }
        };
        let inside = for_tiles(layout, x, &mut self.edges, par, solve)?;
        let rest = a.rows(tail, layout.n - tail);
        let before = self.ends.last().map_or(zero(), |e| e[0]);
        if !dominant::sweep_tail(rest, &mut x[tail..], before, &mut self.reduced_x) {
            return Err(Refusal::Growth.into());
        }
        let mismatch = self.mismatch(x);
        let allowed = 16.0 * T::Real::EPSILON.to_f64();
        if !(mismatch <= allowed) {
            let reason = format!("at a cut the unknowns differ by {mismatch:e} of the largest, {allowed:e} is allowed");
            return Err(breakdown(reason));
        }
        Ok(Solved { pieces: layout.pieces(), reach: inside.max(outside), mismatch, sequential: false })
    }

    /// Largest difference of the unknowns beside the cuts from those of the windows, relative to max|x|.
    fn mismatch(&self, x: &[T]) -> f64 {
        let layout = self.layout;
        let mut difference = zero::<T::Real>();
        for (piece, edge) in self.edges.as_flattened().iter().enumerate() {
            let (tile, k) = (piece / PIECES, piece % PIECES);
            let cut = layout.start(tile) + (k + 1) * layout.stride(tile);
            difference = difference.max_nan((x[cut - 1] - edge[0]).abs1());
            if cut < layout.n {
                difference = difference.max_nan((x[cut] - edge[1]).abs1());
            }
        }
        let ratio = |largest: T::Real| if difference == zero() { 0.0 } else { (difference / largest).to_f64() };
        // The unknowns at the cuts are a sample of x; only when they do not suffice is all of it read.
        let sample = self
            .edges
            .as_flattened()
            .iter()
            .fold(zero::<T::Real>(), |m, e| m.max_nan(e[0].abs1()).max_nan(e[1].abs1()));
        let bound = ratio(sample);
        if bound <= 16.0 * T::Real::EPSILON.to_f64() {
            return bound;
        }
        ratio(x.iter().fold(zero::<T::Real>(), |m, v| m.max_nan(v.abs1())))
    }

    fn pivoted(&mut self, matrix: &Tridiagonal<T>, a: Arrays<'_, T>, x: &mut [T], par: Par) -> Result<Solved> {
        let layout = self.layout;
        let reduce = |tile: usize, rows: &mut [[[T; 5]; 2]; PIECES]| {
            let (start, stride) = (layout.start(tile), layout.stride(tile));
            let (a, x) = (a.rows(start, PIECES * stride), &x[start..start + PIECES * stride]);
            fetch(a, x);
            Reduce { a, x, stride, rows }.run()
        };
        let good = match par {
            Par::Seq => self.rows.iter_mut().enumerate().fold(true, |good, (t, r)| reduce(t, r) && good),
            Par::Rayon => {
                self.rows.par_iter_mut().enumerate().map(|(t, r)| reduce(t, r)).reduce(|| true, |a, b| a && b)
            }
        };
        if !good || !self.solve_reduced(a, x) {
            // Nothing has been written yet.
            let lu = TridiagonalLu::new(matrix)?;
            lu.solve_vec_in_place(x);
            return Ok(Solved { pieces: 1, reach: 0, mismatch: 0.0, sequential: true });
        }
        let (ends, scratch) = (&self.reduced_x, &self.scratch);
        let solve = |tile: usize, x: &mut [T], (): &mut ()| {
            let mut edges = [[zero::<T>(); PIECES]; 4];
            for k in 0..PIECES {
                let at = 2 * (tile * PIECES + k);
                edges[0][k] = if at == 0 { zero() } else { ends[at - 1] };
                edges[1][k] = ends[at];
                edges[2][k] = ends[at + 1];
                edges[3][k] = ends.get(at + 2).copied().unwrap_or_default();
            }
            let rows = a.rows(layout.start(tile), x.len());
            fetch(rows, x);
            with_scratch(scratch, layout, |scratch| {
                Solve { a: rows, x, stride: layout.stride(tile), edges: &edges, scratch }.run();
            });
            Ok(0)
        };
        for_tiles(layout, x, &mut vec![(); layout.tiles], par, solve)?;
        x[layout.tail()..].copy_from_slice(&self.reduced_x[2 * layout.pieces()..]);
        Ok(Solved { pieces: layout.pieces(), reach: 0, mismatch: 0.0, sequential: false })
    }

    /// The unknowns at the ends of the pieces and those of the tail.
    fn solve_reduced(&mut self, a: Arrays<'_, T>, x: &[T]) -> bool {
        let (layout, order) = (self.layout, self.reduced_x.len());
        self.reduced.values_mut().fill(zero());
        let mut put = |row: usize, first: usize, values: &[T]| {
            // Column `first` counts from one before the matrix.
            for (k, &v) in values.iter().enumerate() {
                if let Some(column) = (first + k).checked_sub(1).filter(|&c| c < order) {
                    *self.reduced.get_mut(row, column) = v;
                }
            }
        };
        for (piece, rows) in self.rows.as_flattened().iter().enumerate() {
            for (which, row) in rows.iter().enumerate() {
                let at = 2 * piece + which;
                put(at, 2 * piece, &row[..4]);
                self.reduced_x[at] = row[4];
            }
        }
        let tail = layout.tail();
        for i in tail..layout.n {
            let at = 2 * layout.pieces() + i - tail;
            put(at, at, &[a.lower[i], a.diag[i], a.upper[i]]);
            self.reduced_x[at] = x[i];
        }
        if self.reduced_lu.refactor(&self.reduced).is_err() {
            return false;
        }
        self.reduced_lu.solve_vec_in_place(&mut self.reduced_x);
        self.reduced_x.iter().all(|v| Scalar::is_finite(*v))
    }
}

#[allow(clippy::needless_pass_by_value)] // taken apart here
fn breakdown(reason: String) -> FactorError {
    let reason = format!("{reason}; the matrix may still be regular: eliminate with pivoting");
    FactorError::breakdown("tridiagonal-once", None, reason)
}

/// Why elimination without pivoting gives up.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    Reach,
    Growth,
}

impl From<Refusal> for FactorError {
    fn from(refusal: Refusal) -> Self {
        breakdown(match refusal {
            Refusal::Reach => "the influence of an unknown does not decay within 384 rows, or elements grow".into(),
            Refusal::Growth => "elements grow without pivoting, or a pivot is zero".into(),
        })
    }
}

/// The cuts behind tiles from `tile` on; the rows that the longest window took.
fn ends_of_tiles<T: Scalar>(
    layout: Layout,
    a: Arrays<'_, T>,
    b: &[T],
    tile: usize,
    ends: &mut [Edge<T>],
) -> Result<usize, Refusal> {
    let (first, stride) = (layout.start(tile + 1), PIECES * layout.stride(tile));
    // Where the tiles become shorter each cut goes by itself.
    let even = layout.start(tile + ends.len()) == first + (ends.len() - 1) * stride;
    reach_of(|reach| {
        if even {
            return windows(a, b, [first, stride], reach, ends);
        }
        let mut single = ends.iter_mut().enumerate();
        single.all(|(k, edge)| dominant::window_at(a, b, layout.start(tile + k + 1), reach, edge))
    })
}

/// The 15 cuts between the pieces of the tile from row `start` on; the rows that the longest window took.
fn cuts_in_tile<T: Scalar>(
    a: Arrays<'_, T>,
    b: &[T],
    start: usize,
    stride: usize,
    edges: &mut [Edge<T>; PIECES],
) -> Result<usize, Refusal> {
    // The eighth cut is in both groups.
    let reaches = [0, W - 1].map(|from| {
        let (edges, first) = (&mut edges[from..from + W], start + (from + 1) * stride);
        reach_of(|reach| windows(a, b, [first, stride], reach, edges))
    });
    Ok(reaches[0]?.max(reaches[1]?))
}

/// The cuts at `first`, `first + stride`, …, eight of them, from windows of `reach` rows on either side; false when a cut is
/// not accepted.
fn windows<T: Scalar>(
    a: Arrays<'_, T>,
    b: &[T],
    [first, stride]: [usize; 2],
    reach: usize,
    edges: &mut [Edge<T>],
) -> bool {
    if edges.len() == W && first >= reach && first + (W - 1) * stride + reach <= b.len() {
        Window { a, b, first, stride, reach, edges }.run()
    } else {
        edges.iter_mut().enumerate().all(|(k, edge)| dominant::window_at(a, b, first + k * stride, reach, edge))
    }
}

/// The first length of a window that is accepted.
fn reach_of(mut accepted: impl FnMut(usize) -> bool) -> Result<usize, Refusal> {
    dominant::REACHES.into_iter().find(|&reach| accepted(reach)).ok_or(Refusal::Reach)
}

/// Calls `solve` with all tiles of x and what belongs to `each`; the largest of the results.
fn for_tiles<T: Scalar, S: Send>(
    layout: Layout,
    x: &mut [T],
    each: &mut [S],
    par: Par,
    solve: impl Fn(usize, &mut [T], &mut S) -> Result<usize, Refusal> + Sync,
) -> Result<usize, Refusal> {
    let (long, rest) = x.split_at_mut(layout.start(layout.long));
    let (short, _) = rest.split_at_mut(layout.tail() - layout.start(layout.long));
    let (each_long, each_short) = each.split_at_mut(layout.long);
    let sizes = [PIECES * (layout.rows + W), PIECES * layout.rows.max(1)];
    let from = [0, layout.long];
    let mut largest = 0;
    for (k, (x, each)) in [(long, each_long), (short, each_short)].into_iter().enumerate() {
        let solve = |(t, (x, each)): (usize, (&mut [T], &mut S))| solve(from[k] + t, x, each);
        largest = largest.max(match par {
            Par::Seq => x.chunks_mut(sizes[k]).zip(each).enumerate().map(solve).try_fold(0, |r, s| Ok(r.max(s?)))?,
            Par::Rayon => {
                x.par_chunks_mut(sizes[k]).zip(each).enumerate().map(solve).try_reduce(|| 0, |r, s| Ok(r.max(s)))?
            }
        });
    }
    Ok(largest)
}

fn scratch_for<T: Scalar>(layout: Layout) -> Result<Vec<[T; W]>> {
    let mut out = Vec::new();
    let rows = 3 * C * (layout.rows + W);
    reserve(&mut out, rows)?;
    out.resize(rows, [zero(); W]);
    Ok(out)
}

/// Lends the scratch that was used last, which is still in the cache.
fn with_scratch<T: Scalar, R>(pool: &Mutex<Vec<Vec<[T; W]>>>, layout: Layout, f: impl FnOnce(&mut [[T; W]]) -> R) -> R {
    let lock = || pool.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let popped = lock().pop();
    let mut scratch = popped.unwrap_or_else(|| vec![[zero(); W]; 3 * C * (layout.rows + W)]);
    let out = f(&mut scratch);
    lock().push(scratch);
    out
}

struct Window<'a, T> {
    a: Arrays<'a, T>,
    b: &'a [T],
    first: usize,
    stride: usize,
    reach: usize,
    edges: &'a mut [Edge<T>],
}
impl<T: Scalar> Kernel<T> for Window<'_, T> {
    type Output = bool;
    #[inline(always)]
    fn with<S: Isa<T>>(self, isa: S) -> bool {
        dominant::window(isa, self.a, self.b, self.first, self.stride, self.reach, self.edges)
    }
}

struct Sweep<'a, T> {
    a: Arrays<'a, T>,
    x: &'a mut [T],
    stride: usize,
    before: &'a [T; PIECES],
    after: &'a [T; PIECES],
    scratch: &'a mut [[T; W]],
}
impl<T: Scalar> Kernel<T> for Sweep<'_, T> {
    type Output = bool;
    #[inline(always)]
    fn with<S: Isa<T>>(self, isa: S) -> bool {
        dominant::sweep(isa, self.a, self.x, self.stride, self.before, self.after, self.scratch)
    }
}

struct Reduce<'a, T> {
    a: Arrays<'a, T>,
    x: &'a [T],
    stride: usize,
    rows: &'a mut [[[T; 5]; 2]; PIECES],
}
impl<T: Scalar> Kernel<T> for Reduce<'_, T> {
    type Output = bool;
    #[inline(always)]
    fn with<S: Isa<T>>(self, isa: S) -> bool {
        pivoted::reduce(isa, self.a, self.x, self.stride, self.rows)
    }
}

struct Solve<'a, T> {
    a: Arrays<'a, T>,
    x: &'a mut [T],
    stride: usize,
    edges: &'a [[T; PIECES]; 4],
    scratch: &'a mut [[T; W]],
}
impl<T: Scalar> Kernel<T> for Solve<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with<S: Isa<T>>(self, isa: S) {
        pivoted::solve(isa, self.a, self.x, self.stride, self.edges, self.scratch);
    }
}

#[cfg(test)]
mod tests;
