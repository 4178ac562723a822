//! Elimination with partial pivoting: the interior columns of every piece, then the reduced system, then the pieces.
//!
//! Of a piece of r rows the unknowns of the first and the last column wait; the others are eliminated from top to
//! bottom. Every row that such a column reaches lies in the piece, so that the largest of its three candidates is the
//! pivot of Gaussian elimination with partial pivoting on A with its columns in another order: multipliers are at most
//! 1, and a column without a pivot proves A singular, however the pieces are cut.

use bt_formats::{RealScalar, Scalar, zero};

use super::Arrays;
use super::lanes::{C, Isa, PIECES, W};

/// A row that waits: coefficients of the unknowns before the piece, at its start, of two columns, and the right side.
type Waiting<V> = [V; 5];

/// Values kept for a column and piece: two ratios and the right side.
const KEPT: usize = 3;

/// One step: of the rows p, q (columns j, j + 1) and n (columns j, j + 1, j + 2) the one with the largest element in
/// column j is the pivot. Returns its ratios (b, c, y)/pivot; p and q become the two others, in columns j + 1, j + 2.
#[inline(always)]
fn step<T: Scalar, S: Isa<T>>(
    isa: S,
    p: &mut Waiting<S::V>,
    q: &mut Waiting<S::V>,
    [l, d, u, f]: [S::V; 4],
    whole: bool,
    good: &mut S::M,
) -> [S::V; KEPT] {
    let nothing = isa.splat(zero());
    // q ← the larger of the two that waited
    let m = isa.less(isa.abs1(q[2]), isa.abs1(p[2]));
    for k in if whole { 0..5 } else { 2..5 } {
        (p[k], q[k]) = (isa.select(m, q[k], p[k]), isa.select(m, p[k], q[k]));
    }
    let m = isa.less(isa.abs1(q[2]), isa.abs1(l));
    let pivot = isa.select(m, l, q[2]);
    let other = isa.select(m, q[2], l);
    let [b, b_other] = [isa.select(m, d, q[3]), isa.select(m, q[3], d)];
    let [c, c_other] = [isa.select(m, u, nothing), isa.select(m, nothing, u)];
    let [y, y_other] = [isa.select(m, f, q[4]), isa.select(m, q[4], f)];
    let size = isa.abs1(pivot);
    let largest = isa.splat(T::from_real(T::Real::MAX));
    *good = isa.and(*good, isa.and(isa.less(nothing, size), isa.less(size, largest)));
    let r = isa.reciprocal(pivot);
    let (first, second) = (isa.mul(p[2], r), isa.mul(other, r));
    if whole {
        for k in 0..2 {
            let (top, rest) = (isa.select(m, nothing, q[k]), isa.select(m, q[k], nothing));
            p[k] = isa.minus_mul(p[k], first, top);
            q[k] = isa.minus_mul(rest, second, top);
        }
    }
    p[2] = isa.minus_mul(p[3], first, b);
    p[3] = isa.minus_mul(nothing, first, c);
    p[4] = isa.minus_mul(p[4], first, y);
    q[2] = isa.minus_mul(b_other, second, b);
    q[3] = isa.minus_mul(c_other, second, c);
    q[4] = isa.minus_mul(y_other, second, y);
    [isa.mul(b, r), isa.mul(c, r), isa.mul(y, r)]
}

/// The two rows that remain of every piece of a tile, each (before, first, last, after | right side). False where a
/// column has no pivot or elements overflow.
#[inline(always)]
pub(super) fn reduce<T: Scalar, S: Isa<T>>(
    isa: S,
    a: Arrays<'_, T>,
    x: &[T],
    stride: usize,
    rows: &mut [[[T; 5]; 2]; PIECES],
) -> bool {
    let nothing = isa.splat(zero());
    let (mut p, mut q) = ([[nothing; 5]; C], [[nothing; 5]; C]);
    let mut good = [isa.truth(); C];
    for i in (0..stride).step_by(W) {
        let load = |v: &[T]| [isa.load_rows(v, i, stride), isa.load_rows(v, W * stride + i, stride)];
        let (l, d, u, f) = (load(a.lower), load(a.diag), load(a.upper), load(x));
        let from = if i == 0 { 2 } else { 0 };
        if i == 0 {
            for c in 0..C {
                p[c] = [l[c][0], d[c][0], u[c][0], nothing, f[c][0]];
                q[c] = [nothing, l[c][1], d[c][1], u[c][1], f[c][1]];
            }
        }
        for j in from..W {
            for c in 0..C {
                step(isa, &mut p[c], &mut q[c], [l[c][j], d[c][j], u[c][j], f[c][j]], true, &mut good[c]);
            }
        }
    }
    let mut lanes = [zero::<T>(); W];
    for c in 0..C {
        for (which, row) in [p[c], q[c]].iter().enumerate() {
            for k in 0..5 {
                isa.store(row[k], &mut lanes);
                for (piece, &v) in rows[c * W..].iter_mut().zip(&lanes) {
                    piece[which][k] = v;
                }
            }
        }
    }
    good.iter().all(|&m| isa.all(m))
}

/// Solves the pieces of a tile once the unknowns at their ends are known: `edges` holds those before, first, last and
/// after of every piece. The pivots are those of [`reduce`], computed again.
#[inline(always)]
pub(super) fn solve<T: Scalar, S: Isa<T>>(
    isa: S,
    a: Arrays<'_, T>,
    x: &mut [T],
    stride: usize,
    edges: &[[T; PIECES]; 4],
    scratch: &mut [[T; W]],
) {
    let nothing = isa.splat(zero());
    let ends = edges.map(|e| {
        let (chunks, _) = e.as_chunks::<W>();
        [isa.load(&chunks[0]), isa.load(&chunks[1])]
    });
    let [before, first, last, after] = ends;
    let (mut p, mut q) = ([[nothing; 5]; C], [[nothing; 5]; C]);
    let mut good = [isa.truth(); C];
    let (scratch, _) = scratch[..KEPT * C * stride].as_chunks_mut::<{ KEPT * C * W }>();
    for (block, kept) in scratch.iter_mut().enumerate() {
        let i = block * W;
        let load = |v: &[T]| [isa.load_rows(v, i, stride), isa.load_rows(v, W * stride + i, stride)];
        let (l, d, u, f) = (load(a.lower), load(a.diag), load(a.upper), load(x));
        let from = if block == 0 { 2 } else { 0 };
        if block == 0 {
            for c in 0..C {
                // The known unknowns go to the right side.
                let y = isa.minus_mul(isa.minus_mul(f[c][0], l[c][0], before[c]), d[c][0], first[c]);
                p[c] = [nothing, nothing, u[c][0], nothing, y];
                q[c] = [nothing, nothing, d[c][1], u[c][1], isa.minus_mul(f[c][1], l[c][1], first[c])];
            }
        }
        for j in from..W {
            for c in 0..C {
                let row = [l[c][j], d[c][j], u[c][j], f[c][j]];
                let ratios = step(isa, &mut p[c], &mut q[c], row, false, &mut good[c]);
                for (k, v) in ratios.into_iter().enumerate() {
                    isa.store(v, &mut kept[KEPT * C * j + KEPT * c + k]);
                }
            }
        }
    }
    // What row i kept belongs to column i − 1: xᵢ₋₁ ← y − b·xᵢ − c·xᵢ₊₁. The vectors of a block are stored when the
    // column that the block behind it kept is known.
    let (mut x1, mut x2) = (last, after);
    let mut out = [[nothing; W]; C];
    for c in 0..C {
        out[c][W - 1] = last[c];
    }
    for (block, kept) in scratch.iter().enumerate().rev() {
        for j in (0..W).rev() {
            for c in 0..C {
                let column = if block == 0 && j < 2 {
                    first[c]
                } else {
                    let at = KEPT * C * j + KEPT * c;
                    let [b, e, y] = [isa.load(&kept[at]), isa.load(&kept[at + 1]), isa.load(&kept[at + 2])];
                    isa.minus_mul(isa.minus_mul(y, e, x2[c]), b, x1[c])
                };
                (x2[c], x1[c]) = (x1[c], column);
                if j > 0 {
                    out[c][j - 1] = column;
                }
            }
        }
        for c in 0..C {
            isa.store_rows(out[c], x, c * W * stride + block * W, stride);
            // Column 8·block − 1 is the last of the block before.
            out[c][W - 1] = x1[c];
        }
    }
}
