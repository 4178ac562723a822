//! Substitution with many right-hand sides: rows of them side by side, in a window that moves along the band. Four columns
//! of a factor pass over a row of the window while it is in registers.
//!
//! The exchanges of four steps are done first, which exchanges multipliers as well: L⁻¹P of the four is then
//! one unit lower trapezoid after one permutation. Traffic: X once in each direction for each factor, the factor once
//! for 32 right-hand sides.

use std::ops::Range;

use bt_formats::{Op, Scalar, zero};
use faer::MatMut;

use super::end::Direction;
use super::kernels::LANES;
use super::triangles::{Factor, Step, Triangles};
use super::window::{Order, ROWS, Row, Window, columns_of, load, store};
use crate::pivot::Pivot;
use crate::tridiagonal_once::lanes::{Isa, Kernel};

/// Columns of a factor at a time.
const BLOCK: usize = 4;

/// Some columns of a factor; zeros outside the factor.
type Panel<T> = [[T; ROWS]; BLOCK];

/// A step for V·8 columns, as work for a SIMD instruction set.
pub(super) struct Packed<'a, 'x, T: Scalar, const V: usize> {
    pub(super) lu: Triangles<'a, T>,
    pub(super) step: Step,
    pub(super) x: MatMut<'x, T>,
    /// From which end the rows of x count.
    pub(super) direction: Direction,
}

/// Whether the rows that a step reaches from a column leave the window room to move.
pub(super) fn fits(reach: usize) -> bool {
    reach <= ROWS / 2
}

impl<T: Scalar, const V: usize> Kernel<T> for Packed<'_, '_, T, V> {
    type Output = ();
    #[inline(always)]
    fn with<S: Isa<T>>(self, isa: S) {
        let (lu, step, rows) = (self.lu, self.step, self.x.nrows());
        let (before, after) = match step {
            Step::Lower | Step::LowerTransposed(_) => (0, lu.below),
            Step::Upper | Step::UpperTransposed(_) => (lu.above, 0),
        };
        let chunk = (ROWS - before - after) / LANES * LANES;
        let mut x = columns_of::<T, V>(self.x);
        let mut window = Window::<T, V>::new(Order(self.direction));
        let mut panel = [[zero::<T>(); ROWS]; BLOCK];
        let mut done = 0;
        while done < lu.cols {
            let count = chunk.min(lu.cols - done);
            let forward = matches!(step, Step::Lower | Step::UpperTransposed(_));
            let first = if forward { done } else { lu.cols - done - count };
            let wanted = first.saturating_sub(before)..(first + count + after).min(rows);
            window.slide(isa, &mut x, wanted.clone());
            let mut at = 0;
            while at < count {
                let whole = at + BLOCK <= count;
                let width = if whole { BLOCK } else { 1 };
                let j = if forward { first + at } else { first + count - at - width };
                if whole {
                    block::<T, S, V, BLOCK>(isa, &lu, step, j, wanted.start, &mut window.rows, &mut panel);
                } else {
                    let (window, panel) = (&mut window.rows, &mut panel);
                    isa.apart(Last { lu: &lu, step, j, start: wanted.start, window, panel });
                }
                at += width;
            }
            done += count;
        }
        window.slide(isa, &mut x, 0..0);
    }
}

/// A column by itself: one of those left over.
struct Last<'a, 'f, T: Scalar, const V: usize> {
    lu: &'a Triangles<'f, T>,
    step: Step,
    j: usize,
    start: usize,
    window: &'a mut [Row<T, V>; ROWS],
    panel: &'a mut Panel<T>,
}

impl<T: Scalar, const V: usize> Kernel<T> for Last<'_, '_, T, V> {
    type Output = ();
    #[inline(always)]
    fn with<S: Isa<T>>(self, isa: S) {
        let Self { lu, step, j, start, window, panel } = self;
        block::<T, S, V, 1>(isa, lu, step, j, start, window, panel);
    }
}

/// The columns j .. j + N of a step; the window starts at row `start`.
#[inline(always)]
fn block<T: Scalar, S: Isa<T>, const V: usize, const N: usize>(
    isa: S,
    lu: &Triangles<'_, T>,
    step: Step,
    j: usize,
    start: usize,
    window: &mut [Row<T, V>; ROWS],
    panel: &mut Panel<T>,
) {
    let conjugate = matches!(step, Step::UpperTransposed(Op::Adjoint) | Step::LowerTransposed(Op::Adjoint));
    let map = |v: T| if conjugate { v.conj() } else { v };
    let pivot = |q: usize| Pivot::new(map(lu.pivot(j + q)));
    let is_lower = matches!(step, Step::Lower | Step::LowerTransposed(_));
    let rows = if is_lower { lower_panel::<T, N>(lu, j, map, panel) } else { upper_panel::<T, N>(lu, j, map, panel) };
    let window = &mut window[rows.start - start..rows.end - start];
    let divides = !is_lower || lu.diagonal_of == Factor::Lower;
    // The square part of the panel, the rest of it, and their rows of the window.
    let at = if is_lower { N } else { rows.len() - N };
    if step == Step::Lower {
        for q in 0..N {
            window.swap(q, lu.exchanged(j + q) - j);
        }
    }
    let (first, second) = window.split_at_mut(at);
    let (inner, outer) = if is_lower { (&mut *first, second) } else { (second, first) };
    let (square, rest) = if is_lower { (0..N, N..rows.len()) } else { (at..rows.len(), 0..at) };
    let square = |r: usize, q: usize| panel[q][square.start + r];
    let mut columns = [&panel[0][rest.clone()]; N];
    for q in 0..N {
        columns[q] = &panel[q][rest.clone()];
    }
    let mut x = [[isa.splat(zero()); V]; N];
    for q in 0..N {
        x[q] = load(isa, &inner[q]);
    }
    match step {
        Step::Lower => {
            for q in 0..N {
                if divides {
                    x[q] = divide(isa, x[q], pivot(q));
                }
                for r in q + 1..N {
                    x[r] = minus(isa, x[r], x[q], square(r, q));
                }
            }
        }
        Step::Upper => {
            for q in (0..N).rev() {
                x[q] = divide(isa, x[q], pivot(q));
                for r in 0..q {
                    x[r] = minus(isa, x[r], x[q], square(r, q));
                }
            }
        }
        Step::UpperTransposed(_) | Step::LowerTransposed(_) => {
            for (i, y) in outer.iter().enumerate() {
                let y = load(isa, y);
                for q in 0..N {
                    x[q] = minus(isa, x[q], y, columns[q][i]);
                }
            }
        }
    }
    match step {
        Step::Lower | Step::Upper => {
            for (i, out) in outer.iter_mut().enumerate() {
                let mut y = load(isa, out);
                for q in 0..N {
                    y = minus(isa, y, x[q], columns[q][i]);
                }
                store(isa, y, out);
            }
        }
        Step::UpperTransposed(_) => {
            for q in 0..N {
                for r in 0..q {
                    x[q] = minus(isa, x[q], x[r], square(r, q));
                }
                x[q] = divide(isa, x[q], pivot(q));
            }
        }
        Step::LowerTransposed(_) => {
            for q in (0..N).rev() {
                for r in q + 1..N {
                    x[q] = minus(isa, x[q], x[r], square(r, q));
                }
                if divides {
                    x[q] = divide(isa, x[q], pivot(q));
                }
            }
        }
    }
    for q in 0..N {
        store(isa, x[q], &mut inner[q]);
    }
    if let Step::LowerTransposed(_) = step {
        for q in (0..N).rev() {
            window.swap(q, lu.exchanged(j + q) - j);
        }
    }
}

/// The multipliers of steps j .. j + N, in the rows where the exchanges of all N leave them. Its rows.
#[inline(always)]
fn lower_panel<T: Scalar, const N: usize>(
    lu: &Triangles<'_, T>,
    j: usize,
    map: impl Fn(T) -> T,
    panel: &mut Panel<T>,
) -> Range<usize> {
    let rows = j..(j + N + lu.below).min(lu.rows);
    for q in 0..N {
        let exchanged = lu.exchanged(j + q) - j;
        for done in &mut panel[..q] {
            done.swap(q, exchanged);
        }
        fill(&mut panel[q][..rows.len()], q + 1, lu.l(j + q), &map);
    }
    rows
}

/// Columns j .. j + N of U above the diagonal. Its rows.
#[inline(always)]
fn upper_panel<T: Scalar, const N: usize>(
    lu: &Triangles<'_, T>,
    j: usize,
    map: impl Fn(T) -> T,
    panel: &mut Panel<T>,
) -> Range<usize> {
    let mut first = j;
    for q in 0..N {
        first = first.min(lu.u(j + q).0);
    }
    for q in 0..N {
        let (top, u) = lu.u(j + q);
        fill(&mut panel[q][..j + N - first], top - first, u, &map);
    }
    first..j + N
}

/// The values from element `at` on, zeros around them.
#[inline(always)]
fn fill<T: Scalar>(column: &mut [T], at: usize, values: &[T], map: impl Fn(T) -> T) {
    let (before, rest) = column.split_at_mut(at);
    let (inside, after) = rest.split_at_mut(values.len());
    before.fill(zero());
    for (out, &v) in inside.iter_mut().zip(values) {
        *out = map(v);
    }
    after.fill(zero());
}

/// y/p.
#[inline(always)]
fn divide<T: Scalar, S: Isa<T>, const V: usize>(isa: S, mut y: [S::V; V], p: Pivot<T>) -> [S::V; V] {
    for v in 0..V {
        y[v] = isa.divide(y[v], p);
    }
    y
}

/// y − a·x.
#[inline(always)]
fn minus<T: Scalar, S: Isa<T>, const V: usize>(isa: S, mut y: [S::V; V], x: [S::V; V], a: T) -> [S::V; V] {
    let a = isa.splat(a);
    for v in 0..V {
        y[v] = isa.minus_mul(y[v], x[v], a);
    }
    y
}
