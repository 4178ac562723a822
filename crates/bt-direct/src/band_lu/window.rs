//! Rows of many right-hand sides side by side, in a window that moves along them. In memory they are columns: tiles of
//! eight by eight are transposed on the way in and out.

use std::ops::Range;

use bt_formats::{Scalar, zero};
use faer::MatMut;

use super::end::{Direction, Lanes};
use super::kernels::LANES;
use crate::columns::columns;
use crate::tridiagonal_once::lanes::{Isa, Kernel};

/// Rows of the window, which lies on the stack.
pub(crate) const ROWS: usize = 512;

/// One row of V·8 right-hand sides.
pub(crate) type Row<T, const V: usize> = [Lanes<T>; V];

/// V·8 columns.
pub(crate) type Columns<X, const V: usize> = [[X; LANES]; V];

/// The columns of `x`, V·8 of them, as slices.
pub(crate) fn columns_of<T: Scalar, const V: usize>(x: MatMut<'_, T>) -> Columns<&mut [T], V> {
    let mut rest = Some(x);
    std::array::from_fn(|_| {
        let (eight, after) = rest.take().expect("V·8 columns").split_at_col_mut(LANES);
        rest = Some(after);
        columns::<T, LANES>(eight)
    })
}

/// Zeros.
#[inline(always)]
pub(crate) fn rows<T: Scalar, const V: usize, const N: usize>() -> [Row<T, V>; N] {
    [[Lanes([zero::<T>(); LANES]); V]; N]
}

/// Some rows of X.
pub(crate) struct Window<T, const V: usize> {
    pub(crate) rows: [Row<T, V>; ROWS],
    /// Which, counted from the end that `order` says.
    pub(crate) held: Range<usize>,
    pub(crate) order: Order,
}

impl<T: Scalar, const V: usize> Window<T, V> {
    /// Nothing is held yet.
    #[inline(always)]
    pub(crate) fn new(order: Order) -> Self {
        Self { rows: rows(), held: 0..0, order }
    }

    /// Rows that leave the window go back to x, new ones come from it.
    #[inline(always)]
    pub(crate) fn slide<S: Isa<T>>(&mut self, isa: S, x: &mut Columns<&mut [T], V>, wanted: Range<usize>) {
        let Self { rows: window, held, order } = self;
        let shared = held.start.max(wanted.start)..held.end.min(wanted.end);
        let shared = if shared.is_empty() { wanted.start..wanted.start } else { shared };
        for rows in [held.start..held.end.min(shared.start), held.start.max(shared.end)..held.end] {
            if !rows.is_empty() {
                isa.apart(Put { window: &window[rows.start - held.start..], x: &mut *x, rows, order: *order });
            }
        }
        if !shared.is_empty() {
            window.copy_within(shared.start - held.start..shared.end - held.start, shared.start - wanted.start);
        }
        for rows in [wanted.start..shared.start, shared.end..wanted.end] {
            if !rows.is_empty() {
                isa.apart(Take { window: &mut window[rows.start - wanted.start..], x: &*x, rows, order: *order });
            }
        }
        *held = wanted;
    }
}

/// The first rows of the window ← `rows` of x.
pub(crate) struct Take<'a, 'x, T, const V: usize> {
    pub(crate) window: &'a mut [Row<T, V>],
    pub(crate) x: &'a Columns<&'x mut [T], V>,
    pub(crate) rows: Range<usize>,
    pub(crate) order: Order,
}

impl<T: Scalar, const V: usize> Kernel<T> for Take<'_, '_, T, V> {
    type Output = ();
    #[inline(always)]
    fn with<S: Isa<T>>(self, isa: S) {
        let Self { window, x, rows, order } = self;
        let len = rows.len();
        let at = order.place(&rows, x[0][0].len());
        let (tiles, edge) = window[..len].as_chunks_mut::<LANES>();
        for v in 0..V {
            let x = x[v].each_ref().map(|x| &x[at.clone()]);
            for (t, tile) in tiles.iter_mut().enumerate() {
                let first = order.place(&(t * LANES..(t + 1) * LANES), len).start;
                let mut part = [isa.splat(zero()); LANES];
                for k in 0..LANES {
                    part[k] = isa.load(x[k][first..].first_chunk().expect("eight rows"));
                }
                let part = isa.transpose(part);
                for k in 0..LANES {
                    isa.store(part[k], &mut tile[order.index(k, LANES)][v].0);
                }
            }
            for (i, row) in (tiles.len() * LANES..).zip(edge.iter_mut()) {
                for k in 0..LANES {
                    row[v].0[k] = x[k][order.index(i, len)];
                }
            }
        }
    }
}

/// `rows` of x ← the first rows of the window.
pub(crate) struct Put<'a, 'x, T, const V: usize> {
    pub(crate) window: &'a [Row<T, V>],
    pub(crate) x: &'a mut Columns<&'x mut [T], V>,
    pub(crate) rows: Range<usize>,
    pub(crate) order: Order,
}

impl<T: Scalar, const V: usize> Kernel<T> for Put<'_, '_, T, V> {
    type Output = ();
    #[inline(always)]
    fn with<S: Isa<T>>(self, isa: S) {
        let Self { window, x, rows, order } = self;
        let len = rows.len();
        let at = order.place(&rows, x[0][0].len());
        let (tiles, edge) = window[..len].as_chunks::<LANES>();
        for v in 0..V {
            let x = x[v].each_mut().map(|x| &mut x[at.clone()]);
            for (t, tile) in tiles.iter().enumerate() {
                let first = order.place(&(t * LANES..(t + 1) * LANES), len).start;
                let mut part = [isa.splat(zero()); LANES];
                for k in 0..LANES {
                    part[k] = isa.load(&tile[order.index(k, LANES)][v].0);
                }
                let part = isa.transpose(part);
                for k in 0..LANES {
                    isa.store(part[k], x[k][first..].first_chunk_mut().expect("eight rows"));
                }
            }
            for (i, row) in (tiles.len() * LANES..).zip(edge) {
                for k in 0..LANES {
                    x[k][order.index(i, len)] = row[v].0[k];
                }
            }
        }
    }
}

/// Where rows that count from an end lie.
#[derive(Clone, Copy)]
pub(crate) struct Order(pub(crate) Direction);

impl Order {
    /// Row i of n.
    #[inline(always)]
    fn index(self, i: usize, n: usize) -> usize {
        match self.0 {
            Direction::Forward => i,
            Direction::Backward => n - 1 - i,
        }
    }
    /// Some rows of n.
    #[inline(always)]
    fn place(self, rows: &Range<usize>, n: usize) -> Range<usize> {
        match self.0 {
            Direction::Forward => rows.clone(),
            Direction::Backward => n - rows.end..n - rows.start,
        }
    }
}

#[inline(always)]
pub(crate) fn load<T: Scalar, S: Isa<T>, const V: usize>(isa: S, row: &Row<T, V>) -> [S::V; V] {
    let mut out = [isa.splat(zero()); V];
    for v in 0..V {
        out[v] = isa.load(&row[v].0);
    }
    out
}

#[inline(always)]
pub(crate) fn store<T: Scalar, S: Isa<T>, const V: usize>(isa: S, x: [S::V; V], row: &mut Row<T, V>) {
    for v in 0..V {
        isa.store(x[v], &mut row[v].0);
    }
}
