//! D of a supernode: its blocks of order 1 and 2, products with them, and their inverses.

use bt_formats::{RealScalar, Scalar, zero};
use faer::MatRef;

use crate::pivot::divide_real;
use crate::sparse_cholesky::Node;

/// D of a supernode.
pub struct Blocks<'a, T> {
    /// Its diagonal, so far apart.
    diagonal: &'a [T],
    stride: usize,
    beside: &'a [T],
}

impl<'a, T: Scalar> Blocks<'a, T> {
    /// Of a supernode, whose numbers begin with `values`.
    pub fn of(own: &Node<'_>, values: &'a [T], beside: &'a [T]) -> Self {
        Self { diagonal: values, stride: own.rows() + 1, beside: &beside[own.begin..own.end] }
    }

    /// Column by column: the pivot, or the pivot of order 2 that begins there.
    pub fn pivots(&self) -> impl Iterator<Item = (usize, Pivot<T>)> {
        let mut c = 0;
        std::iter::from_fn(move || {
            let beside = *self.beside.get(c)?;
            let first = self.diagonal[c * self.stride].re();
            let own = c;
            if beside == zero() {
                c += 1;
                return Some((own, Pivot::One(first)));
            }
            c += 2;
            Some((own, Pivot::Two(first, beside, self.diagonal[(own + 1) * self.stride].re())))
        })
    }

    /// `product` ← X·D
    pub fn multiply(&self, x: MatRef<'_, T>, product: &mut [T]) {
        let rows = x.nrows();
        if rows == 0 {
            return;
        }
        let column = |c: usize| x.col(c).try_as_col_major().expect("columns are contiguous").as_slice();
        for (c, pivot) in self.pivots() {
            let (to, rest) = product[c * rows..].split_at_mut(rows);
            match pivot {
                Pivot::One(d) => to.iter_mut().zip(column(c)).for_each(|(to, &x)| *to = x * T::from_real(d)),
                Pivot::Two(d, b, e) => {
                    let both = to.iter_mut().zip(&mut rest[..rows]).zip(column(c).iter().zip(column(c + 1)));
                    for ((to, next), (&x, &y)) in both {
                        *to = x * T::from_real(d) + y * b;
                        *next = x * Scalar::conj(b) + y * T::from_real(e);
                    }
                }
            }
        }
    }
}

/// A block of D: [d], or [d b̄; b e] as (d, b, e).
#[derive(Clone, Copy)]
pub enum Pivot<T: Scalar> {
    One(T::Real),
    Two(T::Real, T, T::Real),
}

impl<T: Scalar> Pivot<T> {
    /// [x y]·D⁻¹ for a pivot of order 2: with δ = d/|b|, ε = e/|b|, β = b/|b| it is [εx − βy, δy − β̄x]/(|b|(δε − 1)).
    pub fn divide_two((d, b, e): (T::Real, T, T::Real)) -> impl Fn(T, T) -> (T, T) {
        let modulus = b.abs();
        let (d, e, b) = (d / modulus, e / modulus, divide_real(b, modulus));
        let det = d * e - T::Real::from_f64(1.0);
        move |x, y| {
            let (x, y) = (divide_real(x, modulus), divide_real(y, modulus));
            let first = T::from_real(e) * x - b * y;
            let second = T::from_real(d) * y - Scalar::conj(b) * x;
            (divide_real(first, det), divide_real(second, det))
        }
    }
}
