//! Substitution in a supernode, whose columns are stored one after the other, for W interleaved vectors.

use bt_formats::{Scalar, zero};
use faer::sparse::linalg::cholesky::supernodal::SymbolicSupernodalCholesky;

use crate::pivot::Pivot;

/// The sizes of a supernode.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    pub begin: usize,
    pub end: usize,
    pub below: &'a [u32],
    pub values: usize,
}

impl Node<'_> {
    pub fn columns(&self) -> usize {
        self.end - self.begin
    }
    pub fn rows(&self) -> usize {
        self.columns() + self.below.len()
    }
    /// s∪Rₛ
    pub fn rows_of(&self) -> impl Iterator<Item = usize> {
        (self.begin..self.end).chain(self.below.iter().map(|&i| i as usize))
    }
    /// y[s] ← P·y[s], where row `exchange[k]` of s comes as number k.
    pub fn exchange<T: Copy, const W: usize>(&self, exchange: &[u32], y: &mut [[T; W]], work: &mut [[T; W]]) {
        let (own, z) = (&mut y[self.begin..self.end], &mut work[..self.columns()]);
        z.copy_from_slice(own);
        own.iter_mut().zip(&exchange[self.begin..self.end]).for_each(|(y, &i)| *y = z[i as usize]);
    }
    /// y[s] ← Pᵀ·y[s], with P as in [`Self::exchange`].
    pub fn exchange_back<T: Copy, const W: usize>(&self, exchange: &[u32], y: &mut [[T; W]], work: &mut [[T; W]]) {
        let (own, z) = (&mut y[self.begin..self.end], &mut work[..self.columns()]);
        z.copy_from_slice(own);
        z.iter().zip(&exchange[self.begin..self.end]).for_each(|(z, &i)| own[i as usize] = *z);
    }
    /// z ← y[Rₛ]
    pub fn take_below<T: Copy, const W: usize>(&self, y: &[[T; W]], z: &mut [[T; W]]) {
        z.iter_mut().zip(self.below).for_each(|(z, &i)| *z = y[i as usize]);
    }
    /// y[Rₛ] ← y[Rₛ] + z
    pub fn add<T: Scalar, const W: usize>(&self, z: &[[T; W]], y: &mut [[T; W]]) {
        for (z, &i) in z.iter().zip(self.below) {
            (0..W).for_each(|w| y[i as usize][w] += z[w]);
        }
    }
}

/// Numbers of the largest block, and columns of the widest, of some supernodes.
pub(crate) fn largest_node(s: &SymbolicSupernodalCholesky<u32>, some: impl Iterator<Item = usize>) -> (usize, usize) {
    some.map(|k| node(s, k))
        .fold((0, 0), |(numbers, columns), n| (numbers.max(n.rows() * n.columns()), columns.max(n.columns())))
}

pub(crate) fn node(s: &SymbolicSupernodalCholesky<u32>, k: usize) -> Node<'_> {
    Node {
        begin: s.supernode_begin()[k] as usize,
        end: s.supernode_end()[k] as usize,
        below: s.supernode(k).pattern(),
        values: s.col_ptr_for_val()[k] as usize,
    }
}

/// A matrix of so many rows, by columns.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a, T> {
    pub values: &'a [T],
    pub rows: usize,
}

/// The diagonal of a triangle.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Diagonal {
    /// Ones, which are not stored.
    One,
    Stored,
}

impl<'a, T: Scalar> Columns<'a, T> {
    /// Column `c` from row `first` on.
    fn below(self, c: usize, first: usize) -> &'a [T] {
        &self.values[c * self.rows + first..(c + 1) * self.rows]
    }

    /// Column `c` of a triangle, above its diagonal, and the diagonal.
    fn above(self, c: usize) -> (&'a [T], T) {
        (&self.values[c * self.rows..][..c], self.values[c * self.rows + c])
    }

    /// (x, z) ← ((map L)⁻¹·x, z − (map B)·(map L)⁻¹·x) where `xz` has x in its first `width` entries and then z, for the triangle
    /// L on top and B below it.
    pub fn lower<const W: usize>(
        self,
        width: usize,
        diagonal: Diagonal,
        xz: &mut [[T; W]],
        map: impl Fn(T) -> T + Copy,
    ) {
        for first in (0..width).step_by(4) {
            let end = width.min(first + 4);
            for c in first..end {
                if diagonal == Diagonal::Stored {
                    xz[c] = divided(xz[c], map(self.values[c * self.rows + c]));
                }
                for i in c + 1..end {
                    xz[i] = minus(xz[i], map(self.values[c * self.rows + i]), xz[c]);
                }
            }
            let (x, rest) = xz.split_at_mut(end);
            self.subtract_four(first, &x[first..], rest, map);
        }
    }

    /// x ← (map L)⁻ᵀ·(x − (map B)ᵀ·z), with `xz`, L and B as in [`Self::lower`].
    pub fn lower_transposed<const W: usize>(
        self,
        width: usize,
        diagonal: Diagonal,
        xz: &mut [[T; W]],
        map: impl Fn(T) -> T + Copy,
    ) {
        for c in (0..width).rev() {
            let (x, rest) = xz.split_at_mut(c + 1);
            x[c] = minus_products(x[c], self.below(c, c + 1), rest, map);
            if diagonal == Diagonal::Stored {
                x[c] = divided(x[c], map(self.values[c * self.rows + c]));
            }
        }
    }

    /// y[s] ← (map L)⁻¹·y[s], y[Rₛ] ← y[Rₛ] − (map B)·y[s] for the triangle L on top and B below it.
    pub fn lower_in<const W: usize>(
        self,
        own: &Node<'_>,
        diagonal: Diagonal,
        y: &mut [[T; W]],
        work: &mut [[T; W]],
        map: impl Fn(T) -> T + Copy,
    ) {
        match own.columns() {
            1 => return self.lower_of_few::<W, 1>(own, diagonal, y, map),
            2 => return self.lower_of_few::<W, 2>(own, diagonal, y, map),
            3 => return self.lower_of_few::<W, 3>(own, diagonal, y, map),
            4 => return self.lower_of_few::<W, 4>(own, diagonal, y, map),
            _ => {}
        }
        let z = &mut work[..own.rows()];
        z[..own.columns()].copy_from_slice(&y[own.begin..own.end]);
        z[own.columns()..].fill([zero(); W]);
        self.lower(own.columns(), diagonal, z, map);
        y[own.begin..own.end].copy_from_slice(&z[..own.columns()]);
        own.add(&z[own.columns()..], y);
    }

    /// y[s] ← (map L)⁻ᵀ·(y[s] − (map B)ᵀ·y[Rₛ]), with L and B as in [`Self::lower_in`].
    pub fn lower_transposed_in<const W: usize>(
        self,
        own: &Node<'_>,
        diagonal: Diagonal,
        y: &mut [[T; W]],
        work: &mut [[T; W]],
        map: impl Fn(T) -> T + Copy,
    ) {
        match own.columns() {
            1 => return self.lower_transposed_of_few::<W, 1>(own, diagonal, y, map),
            2 => return self.lower_transposed_of_few::<W, 2>(own, diagonal, y, map),
            3 => return self.lower_transposed_of_few::<W, 3>(own, diagonal, y, map),
            4 => return self.lower_transposed_of_few::<W, 4>(own, diagonal, y, map),
            _ => {}
        }
        let z = &mut work[..own.rows()];
        z[..own.columns()].copy_from_slice(&y[own.begin..own.end]);
        own.take_below(y, &mut z[own.columns()..]);
        self.lower_transposed(own.columns(), diagonal, z, map);
        y[own.begin..own.end].copy_from_slice(&z[..own.columns()]);
    }

    /// As [`Self::lower_in`], of N columns, which work space would slow down.
    fn lower_of_few<const W: usize, const N: usize>(
        self,
        own: &Node<'_>,
        diagonal: Diagonal,
        y: &mut [[T; W]],
        map: impl Fn(T) -> T + Copy,
    ) {
        let columns: [&[T]; N] = std::array::from_fn(|c| self.below(c, 0));
        let mut x: [[T; W]; N] = std::array::from_fn(|c| y[own.begin + c]);
        for c in 0..N {
            if diagonal == Diagonal::Stored {
                x[c] = divided(x[c], map(columns[c][c]));
            }
            for i in c + 1..N {
                x[i] = minus(x[i], map(columns[c][i]), x[c]);
            }
            y[own.begin + c] = x[c];
        }
        let columns = columns.map(|column| &column[N..][..own.below.len()]);
        for (k, &i) in own.below.iter().enumerate() {
            let y = &mut y[i as usize];
            (0..N).for_each(|c| *y = minus(*y, map(columns[c][k]), x[c]));
        }
    }

    /// As [`Self::lower_transposed_in`], of N columns.
    fn lower_transposed_of_few<const W: usize, const N: usize>(
        self,
        own: &Node<'_>,
        diagonal: Diagonal,
        y: &mut [[T; W]],
        map: impl Fn(T) -> T + Copy,
    ) {
        let columns: [&[T]; N] = std::array::from_fn(|c| self.below(c, 0));
        let below = columns.map(|column| &column[N..][..own.below.len()]);
        let mut x: [[T; W]; N] = std::array::from_fn(|c| y[own.begin + c]);
        for (k, &i) in own.below.iter().enumerate() {
            let y = y[i as usize];
            (0..N).for_each(|c| x[c] = minus(x[c], map(below[c][k]), y));
        }
        for c in (0..N).rev() {
            for i in c + 1..N {
                x[c] = minus(x[c], map(columns[c][i]), x[i]);
            }
            if diagonal == Diagonal::Stored {
                x[c] = divided(x[c], map(columns[c][c]));
            }
            y[own.begin + c] = x[c];
        }
    }

    /// x ← U⁻¹·x for the upper triangle on top.
    pub fn upper<const W: usize>(self, x: &mut [[T; W]]) {
        for c in (0..x.len()).rev() {
            let (column, diagonal) = self.above(c);
            let own = divided(x[c], diagonal);
            x[c] = own;
            x.iter_mut().zip(column).for_each(|(x, &u)| *x = minus(*x, u, own));
        }
    }

    /// x ← (map U)⁻ᵀ·x for the upper triangle on top.
    pub fn upper_transposed<const W: usize>(self, x: &mut [[T; W]], map: impl Fn(T) -> T + Copy) {
        for c in 0..x.len() {
            let (column, diagonal) = self.above(c);
            x[c] = divided(minus_products(x[c], column, &x[..c], map), map(diagonal));
        }
    }

    /// z ← z − (map B)·x
    pub fn subtract<const W: usize>(self, x: &[[T; W]], z: &mut [[T; W]], map: impl Fn(T) -> T + Copy) {
        for (group, x) in x.chunks(4).enumerate() {
            self.subtract_four(4 * group, x, z, map);
        }
    }

    /// x ← x − (map B)ᵀ·z
    pub fn subtract_transposed<const W: usize>(self, z: &[[T; W]], x: &mut [[T; W]], map: impl Fn(T) -> T + Copy) {
        for (c, x) in x.iter_mut().enumerate() {
            *x = minus_products(*x, self.below(c, 0), z, map);
        }
    }

    /// z ← z − (map B)·x for at most four columns from `first` on, of which `z` has the last rows.
    fn subtract_four<const W: usize>(self, first: usize, x: &[[T; W]], z: &mut [[T; W]], map: impl Fn(T) -> T) {
        let from = self.rows - z.len();
        let column = |c: usize| self.below(first + c, from);
        if let &[x0, x1, x2, x3] = x {
            let columns = column(0).iter().zip(column(1)).zip(column(2)).zip(column(3));
            for (z, (((&b0, &b1), &b2), &b3)) in z.iter_mut().zip(columns) {
                *z = minus(minus(minus(minus(*z, map(b0), x0), map(b1), x1), map(b2), x2), map(b3), x3);
            }
        } else {
            for (c, &x) in x.iter().enumerate() {
                z.iter_mut().zip(column(c)).for_each(|(z, &b)| *z = minus(*z, map(b), x));
            }
        }
    }
}

/// Y ← (map L)⁻ᴴ·(map L)⁻¹·Y for W interleaved vectors in the order of L; `map` is the identity or the conjugate.
pub(crate) fn solve_cholesky<T: Scalar, const W: usize>(
    (s, values): (&SymbolicSupernodalCholesky<u32>, &[T]),
    y: &mut [[T; W]],
    work: &mut [[T; W]],
    map: impl Fn(T) -> T + Copy,
) {
    let conjugated = |v: T| Scalar::conj(map(v));
    let columns =
        |own: &Node<'_>| Columns { values: &values[own.values..][..own.rows() * own.columns()], rows: own.rows() };
    for own in (0..s.n_supernodes()).map(|k| node(s, k)) {
        columns(&own).lower_in(&own, Diagonal::Stored, y, work, map);
    }
    for own in (0..s.n_supernodes()).rev().map(|k| node(s, k)) {
        columns(&own).lower_transposed_in(&own, Diagonal::Stored, y, work, conjugated);
    }
}

/// x − Σ (map bᵢ)·zᵢ, in four sums that need not wait for each other.
fn minus_products<T: Scalar, const W: usize>(x: [T; W], b: &[T], z: &[[T; W]], map: impl Fn(T) -> T) -> [T; W] {
    let mut sums = [[zero::<T>(); W]; 4];
    let ((rows, last), (columns, ends)) = (z.as_chunks::<4>(), b.as_chunks::<4>());
    for (z, b) in rows.iter().zip(columns) {
        for k in 0..4 {
            sums[k] = minus(sums[k], map(b[k]), z[k]);
        }
    }
    for ((sum, z), &b) in sums.iter_mut().zip(last).zip(ends) {
        *sum = minus(*sum, map(b), *z);
    }
    std::array::from_fn(|w| x[w] + ((sums[0][w] + sums[1][w]) + (sums[2][w] + sums[3][w])))
}

/// z − a·x
#[inline(always)]
fn minus<T: Scalar, const W: usize>(z: [T; W], a: T, x: [T; W]) -> [T; W] {
    std::array::from_fn(|w| z[w] - a * x[w])
}

fn divided<T: Scalar, const W: usize>(x: [T; W], pivot: T) -> [T; W] {
    let pivot = Pivot::new(pivot);
    x.map(|x| pivot.divide(x))
}
