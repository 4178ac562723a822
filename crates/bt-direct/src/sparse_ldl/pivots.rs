//! D of a supernode: its blocks of order 1 and 2, products with them, and their inverses.

use bt_formats::{RealScalar, Scalar, zero};
use faer::MatRef;

use crate::pivot::divide_real;
use crate::sparse_cholesky::Node;
use crate::sparse_cholesky::tasks::Sizes;

/// D of a supernode.
pub struct Blocks<'a, T> {
    /// Its diagonal, so far apart.
    diagonal: &'a [T],
    stride: usize,
    beside: &'a [T],
}

impl<'a, T: Scalar> Blocks<'a, T> {
    /// Of a supernode, whose numbers begin with `values`, with those beside its diagonal.
    pub fn of(own: &Node<'_>, values: &'a [T], beside: &'a [T]) -> Self {
        Self { diagonal: values, stride: own.rows() + 1, beside }
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

/// A block of D.
#[derive(Clone, Copy)]
pub enum PivotBlock {
    One(f64),
    /// Its diagonal in units of the modulus beside it, and that modulus.
    Two(f64, f64, f64),
}

impl<T: Scalar> From<Pivot<T>> for PivotBlock {
    fn from(pivot: Pivot<T>) -> Self {
        match pivot {
            Pivot::One(d) => Self::One(d.to_f64()),
            Pivot::Two(d, b, e) => {
                let modulus = b.abs().to_f64();
                Self::Two(d.to_f64() / modulus, e.to_f64() / modulus, modulus)
            }
        }
    }
}

/// D of a diagonal and what stands beside it.
pub fn blocks<T: Scalar>(mut diagonal: impl Iterator<Item = T>, beside: &[T]) -> impl Iterator<Item = PivotBlock> {
    let mut k = 0;
    std::iter::from_fn(move || {
        let (d, beside) = (diagonal.next()?.re(), beside[k]);
        k += 1;
        if beside == zero() {
            return Some(Pivot::<T>::One(d).into());
        }
        k += 1;
        Some(Pivot::Two(d, beside, diagonal.next()?.re()).into())
    })
}

/// |L|·|D|·|Lᴴ| in the columns of `blocks`, whose largest moduli below the diagonal are `largest`, and the least modulus that the
/// inverse of a block stands for.
pub fn sizes(blocks: impl Iterator<Item = PivotBlock>, largest: impl Iterator<Item = f64>) -> Sizes {
    let mut largest = largest.map(|l| l.max_nan(1.0));
    let mut next = || largest.next().unwrap_or(1.0);
    let each = blocks.map(|block| match block {
        PivotBlock::One(d) => Sizes { product: d.abs() * next().powi(2), pivot: d.abs() },
        // The least singular value is above |det|/(|d| + |e| + 2|b|).
        PivotBlock::Two(d, e, b) => {
            let (l, m) = (next(), next());
            Sizes {
                product: b * (d.abs() * l * l + 2.0 * l * m + e.abs() * m * m),
                pivot: b * ((d * e - 1.0).abs() / (d.abs() + e.abs() + 2.0)),
            }
        }
    });
    each.fold(Sizes::NONE, Sizes::and)
}
