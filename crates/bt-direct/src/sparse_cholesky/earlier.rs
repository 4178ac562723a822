//! What earlier supernodes take from one, where L is formed from the left: as many products of dense blocks as there are earlier
//! supernodes with rows in it.
//!
//! Storage: 12 bytes a supernode, and 8 a row for each thread.

use bt_formats::{Scalar, one};
use faer::linalg::matmul::{matmul_with_conj, triangular};
use faer::{Accum, Conj, MatMut, MatRef, Par};

use super::subtrees::Supernodes;
use super::supernode::{Node, node};
use crate::error::Result;
use crate::guard::worth;
use crate::memory::zeros;

const NONE: u32 = u32::MAX;

/// Rows of a product from which its upper triangle is worth leaving out.
const TRIANGULAR: usize = 32;

/// Which supernodes come next in the rows of each, while they are eliminated.
pub(crate) struct Links {
    head: Vec<u32>,
    link: Vec<u32>,
    /// Where each stands in its own rows.
    at: Vec<u32>,
}

/// Links of supernodes that follow each other, which lead to each other as long as the next is among them.
pub(crate) struct LinksOf<'a> {
    s: &'a Supernodes,
    begin: usize,
    head: &'a mut [u32],
    link: &'a mut [u32],
    at: &'a mut [u32],
}

/// The place of each row among those of the present supernode, and those of the rows of an earlier one.
pub(crate) struct Places {
    place: Vec<u32>,
    places: Vec<u32>,
}

/// A supernode with rows in the present one.
pub(crate) struct Earlier<'a> {
    pub number: usize,
    pub node: Node<'a>,
    /// The places of its rows from the first in the present supernode on among the rows of that.
    pub places: &'a [u32],
    /// How many of them are in it.
    pub inside: usize,
}

impl Earlier<'_> {
    /// Those rows of a matrix that has all rows of the supernode, or those below.
    pub fn rows<'b, T>(&self, values: &'b [T], rows: usize) -> MatRef<'b, T> {
        let (columns, skipped) = (self.node.columns(), rows - self.places.len());
        MatRef::from_column_major_slice(&values[..rows * columns], rows, columns).subrows(skipped, self.places.len())
    }
}

impl Links {
    pub fn new(s: &Supernodes) -> Result<Self> {
        let of_nodes = || zeros(s.n_supernodes());
        Ok(Self { head: of_nodes()?, link: of_nodes()?, at: of_nodes()? })
    }

    pub fn bytes(s: &Supernodes) -> usize {
        12 * s.n_supernodes()
    }

    /// Nothing is eliminated.
    pub fn clear(&mut self) {
        self.head.fill(NONE);
        self.at.fill(NONE);
    }

    /// Supernodes that are eliminated are linked to the next in their rows, wherever that is.
    pub fn join(&mut self, s: &Supernodes) {
        let Self { head, link, at } = self;
        head.fill(NONE);
        for (d, (&at, link)) in at.iter().zip(link).enumerate() {
            // None of one that is not eliminated.
            if let Some(&row) = s.supernode(d).pattern().get(at as usize) {
                *link = std::mem::replace(&mut head[s.of_rows[row as usize] as usize], d as u32);
            }
        }
    }

    /// Those of all supernodes.
    pub fn all<'a>(&'a mut self, s: &'a Supernodes) -> LinksOf<'a> {
        let Self { head, link, at } = self;
        LinksOf { s, begin: 0, head, link, at }
    }
}

impl LinksOf<'_> {
    /// Those before supernode `k`, and from it on.
    pub fn split_at(self, k: usize) -> (Self, Self) {
        let count = k - self.begin;
        let (head, link, at) =
            (self.head.split_at_mut(count), self.link.split_at_mut(count), self.at.split_at_mut(count));
        let before = Self { s: self.s, begin: self.begin, head: head.0, link: link.0, at: at.0 };
        (before, Self { s: self.s, begin: k, head: head.1, link: link.1, at: at.1 })
    }

    /// Shows `update` all earlier supernodes with rows in number `k`, whose rows have their places and which counts as an earlier one itself then.
    pub fn visit(&mut self, k: usize, Places { place, places }: &mut Places, mut update: impl FnMut(Earlier<'_>)) {
        let s = self.s;
        let own = node(s, k);
        let mut d = std::mem::replace(&mut self.head[k - self.begin], NONE);
        while d != NONE {
            let number = d as usize;
            let (node, first) = (node(s, number), self.at[number - self.begin] as usize);
            d = self.link[number - self.begin];
            let below = &node.below[first..];
            let inside = below.partition_point(|&i| (i as usize) < own.end);
            places.clear();
            places.extend(below.iter().map(|&i| place[i as usize]));
            update(Earlier { number, node, places, inside });
            self.advance(number, first + inside, node.below);
        }
        self.advance(k, 0, own.below);
    }

    /// Supernode `d` is done with its rows before `at`: it goes to the list of the supernode of the next.
    fn advance(&mut self, d: usize, at: usize, below: &[u32]) {
        self.at[d - self.begin] = at as u32;
        if let Some(&row) = below.get(at) {
            let next = self.s.of_rows[row as usize] as usize - self.begin;
            if let Some(head) = self.head.get_mut(next) {
                self.link[d - self.begin] = std::mem::replace(head, d as u32);
            }
        }
    }
}

impl Places {
    pub fn new(n: usize) -> Result<Self> {
        let mut places = Vec::new();
        crate::memory::reserve(&mut places, n)?;
        Ok(Self { place: zeros(n)?, places })
    }

    pub fn bytes(n: usize) -> usize {
        8 * n
    }

    /// Rows of supernode `own` have their places from now on.
    pub fn enter(&mut self, own: &Node<'_>) {
        (0..).zip(own.rows_of()).for_each(|(place, row)| self.place[row] = place);
    }

    /// The place of a row among those of the supernode that was entered.
    pub fn of(&self, row: usize) -> usize {
        self.place[row] as usize
    }
}

/// Where a product is taken from: so many rows a column, without the first of them.
pub(crate) struct Target<'a, T> {
    pub values: &'a mut [T],
    pub rows: usize,
    pub skipped: usize,
}

/// Which of its numbers are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    All,
    /// Those on the diagonal and below: others may come out as anything.
    Lower,
}

impl Part {
    /// The first row that is wanted of column `j`.
    fn first(self, j: usize) -> usize {
        if self == Self::Lower { j } else { 0 }
    }
}

/// N[places[i], j] ← N[places[i], j] − Σ a[i, ·]·b[j, ·] over the columns of a and b, for j the columns named; b conjugated or not.
pub(crate) fn subtract_product<T: Scalar>(
    (a, b): (MatRef<'_, T>, (MatRef<'_, T>, Conj)),
    part: Part,
    (places, columns): (&[u32], &[u32]),
    into: Target<'_, T>,
    work: &mut [T],
    par: Par,
) {
    match a.ncols() {
        _ if places.is_empty() => {}
        1 => few::<T, 1>((a, b), part, (places, columns), into),
        2 => few::<T, 2>((a, b), part, (places, columns), into),
        3 => few::<T, 3>((a, b), part, (places, columns), into),
        4 => few::<T, 4>((a, b), part, (places, columns), into),
        _ => {
            let (rows, count) = (places.len(), columns.len());
            let work = &mut work[..rows * count];
            let product = MatMut::from_column_major_slice_mut(&mut *work, rows, count);
            multiply(product, a, (b.0.transpose(), b.1), part, par);
            for (j, (t, &column)) in work.chunks_exact(rows).zip(columns).enumerate() {
                let first = part.first(j);
                let column = &mut into.values[column as usize * into.rows..][..into.rows];
                t[first..].iter().zip(&places[first..]).for_each(|(&t, &i)| column[i as usize - into.skipped] -= t);
            }
        }
    }
}

/// `product` ← a·b, or its lower part.
fn multiply<T: Scalar>(
    product: MatMut<'_, T>,
    a: MatRef<'_, T>,
    (b, conj): (MatRef<'_, T>, Conj),
    part: Part,
    par: Par,
) {
    use triangular::BlockStructure::{Rectangular, TriangularLower};
    let (replace, one) = (Accum::Replace, one::<T>());
    let count = product.ncols();
    let par = worth(par, 2.0 * (a.nrows() * a.ncols() * count) as f64);
    if part == Part::All || count < TRIANGULAR {
        return matmul_with_conj(product, replace, a, Conj::No, b, conj, one, par);
    }
    let ((top, rest), (a_top, a_rest)) = (product.split_at_row_mut(count), a.split_at_row(count));
    triangular::matmul_with_conj(
        top,
        TriangularLower,
        replace,
        a_top,
        Rectangular,
        Conj::No,
        b,
        Rectangular,
        conj,
        one,
        par,
    );
    matmul_with_conj(rest, replace, a_rest, Conj::No, b, conj, one, par);
}

/// As [`subtract_product`], of N columns by plain loops: a call of faer's kernels takes longer there than what they do.
fn few<T: Scalar, const N: usize>(
    (a, (b, conj)): (MatRef<'_, T>, (MatRef<'_, T>, Conj)),
    part: Part,
    (places, columns): (&[u32], &[u32]),
    Target { values, rows, skipped }: Target<'_, T>,
) {
    fn slices<T: Scalar, const N: usize>(a: MatRef<'_, T>) -> [&[T]; N] {
        std::array::from_fn(|c| a.col(c).try_as_col_major().expect("columns are contiguous").as_slice())
    }
    let (a, b) = (slices::<T, N>(a), slices::<T, N>(b));
    for (j, &column) in columns.iter().enumerate() {
        let b = b.map(|b| if conj == Conj::Yes { Scalar::conj(b[j]) } else { b[j] });
        let places = &places[part.first(j)..];
        let a = a.map(|a| &a[part.first(j)..][..places.len()]);
        let column = &mut values[column as usize * rows..][..rows];
        for (i, &place) in places.iter().enumerate() {
            let mut sum = a[0][i] * b[0];
            for c in 1..N {
                sum += a[c][i] * b[c];
            }
            column[place as usize - skipped] -= sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bt_formats::c64;

    #[test]
    fn products_of_any_width_are_taken_from_their_places() {
        let number = |i: usize, j: usize| c64::new((i * 5 + j * 3) as f64 % 7.0 - 3.0, (i + 2 * j) as f64 % 5.0 - 2.0);
        let (rows, columns, target) = (TRIANGULAR + 9, TRIANGULAR + 2, 2 * TRIANGULAR + 20);
        let places: Vec<u32> = (0..rows as u32).map(|i| 2 * i + 1).collect();
        for width in [1, 2, 3, 4, 5, 9] {
            let a = faer::Mat::from_fn(rows, width, number);
            let b = a.as_ref().subrows(0, columns);
            for (part, conj) in [(Part::All, Conj::No), (Part::Lower, Conj::Yes)] {
                let mut into = vec![c64::default(); target * target];
                let to = Target { values: &mut into, rows: target, skipped: 1 };
                let mut work = vec![c64::default(); rows * columns];
                subtract_product((a.as_ref(), (b, conj)), part, (&places, &places[..columns]), to, &mut work, Par::Seq);
                for (j, i) in (0..columns).flat_map(|j| (part.first(j)..rows).map(move |i| (j, i))) {
                    let term = |c: usize| a[(i, c)] * if conj == Conj::Yes { b[(j, c)].conj() } else { b[(j, c)] };
                    let sum: c64 = (0..width).map(term).sum();
                    let found = into[places[j] as usize * target + places[i] as usize - 1];
                    assert!((found + sum).norm() < 1e-12, "{width} {i} {j}: {found} {sum}");
                }
            }
        }
    }
}
