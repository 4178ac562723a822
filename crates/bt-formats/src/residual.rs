//! r = b − op(A)·x in twice the precision of a double, with d = |op(A)|·|x| + |b| and the row sums s of |op(A)| beside it.
//!
//! T. Ogita, S. M. Rump & S. Oishi, SIAM J. Sci. Comput. 26 (2005) 1955–1988, doi:10.1137/030601818, Algorithm 5.3 (Dot2), row
//! by row, real and imaginary parts apart; products are split as T. J. Dekker does (Numer. Math. 18 (1971),
//! doi:10.1007/BF01397083), so that the bits are those of any processor:
//!
//! ```text
//! |rᵢ − (b − op(A)·x)ᵢ| ≤ u·|rᵢ| + γ²·dᵢ,   γ = mu/(1 − mu), m entries in the row, u = 2⁻⁵³
//! ```
//!
//! so that a residual is right in its first digits down to 10⁻³⁰ of dᵢ, and the second term, bounded by what rounding took, is added
//! to its modulus. Rows whose sums overflow, or whose products may
//! underflow, are summed a second time with an exponent of their own.
//!
//! Storage: five doubles a row; where A is not read by rows, or transposed, nine a row more and seven a column. Cost: one pass over A
//! of about thirty flops an entry, twenty with fused products, whose errors are the same numbers; two more passes where some row
//! leaves the range.

use crate::csr::Csr;
use crate::doubled::split;
use crate::operator::{Matrix, Op};
use crate::rounded::{Power, exponent_of};
use crate::scalar::{RealScalar, Scalar, ScalarKind, c64};
use crate::scaled::Scaled;

/// Sums below this may have lost products to underflow, sums above the other one digits to overflow.
const RANGE: (i32, i32) = (-900, 990);

/// A number as the sum of two of 26 bits, so that products of their parts are exact.
#[derive(Clone, Copy, Default)]
struct Split {
    value: f64,
    high: f64,
    low: f64,
}

impl Split {
    #[inline(always)]
    fn new(value: f64) -> Self {
        let (high, low) = split(value);
        Self { value, high, low }
    }
}

/// A sum and what rounding took from it.
#[derive(Clone, Copy, Default)]
struct Sum {
    high: f64,
    low: f64,
    /// Σ|what was taken|: the sum of that rounds, too.
    taken: f64,
}

impl Sum {
    /// + a·x
    #[inline(always)]
    fn add_product(&mut self, a: f64, x: Split) {
        let a = Split::new(a);
        // p + e = a·x
        let p = a.value * x.value;
        let e = a.low * x.low - (((p - a.high * x.high) - a.low * x.high) - a.high * x.low);
        // s + t = high + p
        let s = self.high + p;
        let z = s - self.high;
        let t = (self.high - (s - z)) + (p - z);
        self.high = s;
        self.low += e + t;
        self.taken += e.abs() + t.abs();
    }

    fn value(self) -> f64 {
        self.high + self.low
    }
}

/// The same product and sum with a fused multiply-add, which gives e at once.
impl Sum {
    #[inline(always)]
    fn add_fused(&mut self, a: f64, x: f64) {
        let p = a * x;
        let e = a.mul_add(x, -p);
        let s = self.high + p;
        let z = s - self.high;
        let t = (self.high - (s - z)) + (p - z);
        self.high = s;
        self.low += e + t;
        self.taken += e.abs() + t.abs();
    }
}

/// A number of x: its parts and its modulus.
#[derive(Clone, Copy, Default)]
struct Component {
    re: Split,
    im: Split,
    modulus: f64,
}

/// One row of the result.
#[derive(Clone, Copy, Default)]
struct Row {
    re: Sum,
    im: Sum,
    denominator: f64,
    sum: f64,
    entries: u32,
}

impl Row {
    /// At least |r|: with what the evaluation cannot resolve, nothing where every step of it was exact.
    fn modulus(&self) -> f64 {
        // u·(m + 2) for m terms, twice over.
        let resolution = (f64::from(self.entries) + 2.0) * f64::EPSILON * (self.re.taken + self.im.taken);
        let (re, im) = (self.re.value(), self.im.value());
        let modulus = if im == 0.0 { re.abs() } else { re.hypot(im) };
        modulus + resolution
    }

    #[inline(always)]
    fn subtract<T: Scalar>(&mut self, v: T, x: &Component) {
        let modulus = v.abs().to_f64();
        self.sum += modulus;
        self.entries += 1;
        self.denominator += modulus * x.modulus;
        let (re, im) = (v.re().to_f64(), v.im().to_f64());
        self.re.add_product(-re, x.re);
        if !T::IS_REAL {
            self.re.add_product(im, x.im);
            self.im.add_product(-re, x.im);
            self.im.add_product(-im, x.re);
        }
    }

    #[inline(always)]
    fn subtract_fused<T: Scalar>(&mut self, v: T, x: T) {
        let modulus = v.abs().to_f64();
        self.sum += modulus;
        self.denominator += modulus * x.abs().to_f64();
        let (re, im) = (v.re().to_f64(), v.im().to_f64());
        let (xr, xi) = (x.re().to_f64(), x.im().to_f64());
        self.re.add_fused(-re, xr);
        if !T::IS_REAL {
            self.re.add_fused(im, xi);
            self.im.add_fused(-re, xi);
            self.im.add_fused(-im, xr);
        }
    }

    fn finish(&self) -> Done {
        let (re, im) = (self.re.value(), self.im.value());
        Done { re, im, modulus: self.modulus(), denominator: self.denominator, sum: self.sum }
    }
}

/// A row whose sums are complete.
#[derive(Clone, Copy, Default)]
struct Done {
    re: f64,
    im: f64,
    modulus: f64,
    denominator: f64,
    sum: f64,
}

impl Done {
    /// With sums that split numbers cannot have spoilt either.
    fn is_in_range(&self) -> bool {
        let limit = 2f64.powi(RANGE.1);
        self.modulus.is_finite() && self.sum <= limit && self.denominator <= limit
    }
}

/// The rows of A read one by one, and the least modulus above zero.
struct ByRows<'a, T: Scalar> {
    a: &'a Csr<T>,
    x: &'a [T],
    b: &'a [T],
    rows: &'a mut Vec<Done>,
    smallest: &'a mut f64,
}

impl<T: Scalar> pulp::WithSimd for ByRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        // Where there are vectors there is a fused multiply-add; without one the library's is slow.
        let fused = size_of::<S::f64s>() > size_of::<f64>();
        let mut smallest = f64::INFINITY;
        for (i, &b) in self.b.iter().enumerate() {
            let (cols, values) = self.a.row(i);
            let mut row = starting_with(b);
            for (&j, &v) in cols.iter().zip(values) {
                let x = self.x[j as usize];
                if fused {
                    row.subtract_fused(v, x);
                } else {
                    row.subtract(v, &component(x));
                }
                let modulus = v.abs1().to_f64();
                smallest = if modulus < smallest && modulus > 0.0 { modulus } else { smallest };
            }
            row.entries = cols.len() as u32;
            self.rows.push(row.finish());
        }
        *self.smallest = smallest;
    }
}

/// A row outside the range of doubles: 2^`exponent`·(`re` + i·`im`), and the two sums.
struct Outside {
    row: usize,
    re: f64,
    im: f64,
    modulus: f64,
    exponent: i32,
    denominator: Scaled,
    sum: Scaled,
}

/// Residual, denominators and row sums of one right-hand side.
pub(crate) struct Residual {
    rows: Vec<Done>,
    /// Those of the rows that doubles cannot hold, in order.
    outside: Vec<Outside>,
}

impl Residual {
    /// Nothing when an entry of A, x or b is not finite.
    pub fn new<T: Scalar, A: Matrix<T> + ?Sized>(a: &A, op: Op, x: &[T], b: &[T]) -> Option<Self> {
        let mut smallest = f64::INFINITY;
        let mut rows = Vec::with_capacity(b.len());
        if let Some(a) = a.as_rows().filter(|_| op == Op::Identity) {
            bt_simd::dispatch(ByRows { a, x, b, rows: &mut rows, smallest: &mut smallest });
        } else {
            let components: Vec<Component> = x.iter().map(|&v| component(v)).collect();
            let mut open: Vec<Row> = b.iter().map(|&v| starting_with(v)).collect();
            for_each_of(a, op, |i, j, v| {
                open[i].subtract(v, &components[j]);
                let modulus = v.abs1().to_f64();
                if modulus < smallest && modulus > 0.0 {
                    smallest = modulus;
                }
            });
            rows.extend(open.iter().map(Row::finish));
        }
        if x.iter().chain(b).any(|v| !Scalar::is_finite(*v)) {
            return None;
        }
        let moduli = || x.iter().map(|v| v.abs().to_f64());
        let smallest_x = moduli().filter(|&m| m > 0.0).fold(f64::INFINITY, f64::min);
        // Numbers beyond cannot be split.
        let splits = moduli().fold(0.0, f64::max) <= 2f64.powi(RANGE.1);
        // Squares of single precision stay in the range of doubles.
        let double = matches!(T::KIND, ScalarKind::F64 | ScalarKind::C64);
        let least = if smallest.is_finite() && smallest_x.is_finite() {
            exponent_of(smallest) + exponent_of(smallest_x)
        } else {
            0
        };
        let low = if double && least < RANGE.0 { 2f64.powi(RANGE.0) } else { 0.0 };
        let outside: Vec<usize> =
            (0..rows.len()).filter(|&i| !splits || !rows[i].is_in_range() || rows[i].denominator < low).collect();
        let outside = sum_with_exponents(a, op, x, b, &outside)?;
        Some(Self { rows, outside })
    }

    /// r rounded to the scalar's type.
    pub fn store<T: Scalar>(&self, r: &mut [T]) {
        for (r, row) in r.iter_mut().zip(&self.rows) {
            *r = T::from_parts(row.re, row.im);
        }
        for row in &self.outside {
            let scale = Power::of(row.exponent);
            r[row.row] = T::from_parts(scale.times(row.re), scale.times(row.im));
        }
    }

    /// |rᵢ|, dᵢ and sᵢ of every row, where doubles hold them all.
    pub fn plain(&self) -> Option<impl Iterator<Item = [f64; 3]> + Clone + '_> {
        let rows = || self.rows.iter().map(|row| [row.modulus, row.denominator, row.sum]);
        self.outside.is_empty().then(rows)
    }

    /// |rᵢ|, dᵢ and sᵢ of every row.
    pub fn moduli(&self) -> impl Iterator<Item = [Scaled; 3]> + '_ {
        let mut outside = self.outside.iter().peekable();
        self.rows.iter().enumerate().map(move |(i, row)| match outside.next_if(|o| o.row == i) {
            Some(o) => {
                let modulus = Scaled::with_exponent(o.modulus, i64::from(o.exponent));
                [modulus, o.denominator, o.sum]
            }
            None => [row.modulus, row.denominator, row.sum].map(Scaled::new),
        })
    }
}

fn component<T: Scalar>(v: T) -> Component {
    let (re, im) = (v.re().to_f64(), v.im().to_f64());
    Component { re: Split::new(re), im: Split::new(im), modulus: v.abs().to_f64() }
}

fn starting_with<T: Scalar>(b: T) -> Row {
    let part = |high: f64| Sum { high, low: 0.0, taken: 0.0 };
    let (re, im) = (part(b.re().to_f64()), part(b.im().to_f64()));
    Row { re, im, denominator: b.abs().to_f64(), sum: 0.0, entries: 0 }
}

/// Entries of op(A).
fn for_each_of<T: Scalar, A: Matrix<T> + ?Sized>(a: &A, op: Op, mut visit: impl FnMut(usize, usize, T)) {
    a.for_each_entry(&mut |i, j, v| match op {
        Op::Identity => visit(i, j, v),
        Op::Transpose => visit(j, i, v),
        Op::Adjoint => visit(j, i, Scalar::conj(v)),
    });
}

/// The larger part's exponent of a nonzero number.
fn exponent<T: Scalar>(v: T) -> Option<i32> {
    let largest = v.re().to_f64().abs().max(v.im().to_f64().abs());
    (largest > 0.0).then(|| exponent_of(largest))
}

/// 2^`exponent`·v with the parts as doubles.
fn times_power<T: Scalar>(v: T, exponent: i32) -> c64 {
    let scale = Power::of(exponent);
    c64::new(scale.times(v.re().to_f64()), scale.times(v.im().to_f64()))
}

/// The given rows, with the largest of their terms in [1, 4). Terms too small to be added are part of the bound on |r|.
fn sum_with_exponents<T: Scalar, A: Matrix<T> + ?Sized>(
    a: &A,
    op: Op,
    x: &[T],
    b: &[T],
    which: &[usize],
) -> Option<Vec<Outside>> {
    /// A term this far below the largest is nothing beside its last digit squared.
    const LEAST: i32 = -300;
    /// Numbers of lower exponents may lose digits, or be nothing.
    const UNDERFLOWS: i32 = -960;
    // A bound, above zero, on a product of numbers whose larger parts have exponents of this sum.
    let bound = |exponent: i32| 2f64.powi((exponent + 3).max(-1000));
    if which.is_empty() {
        return Some(Vec::new());
    }
    let mut place = vec![usize::MAX; b.len()];
    for (k, &i) in which.iter().enumerate() {
        place[i] = k;
    }
    // Exponents of the largest term and of the largest entry.
    let mut largest: Vec<(Option<i32>, Option<i32>)> = which.iter().map(|&i| (exponent(b[i]), None)).collect();
    let mut finite = true;
    for_each_of(a, op, |i, j, v| {
        finite &= Scalar::is_finite(v);
        if let (Some(largest), Some(ev)) = (largest.get_mut(place[i]), exponent(v)) {
            largest.1 = largest.1.max(Some(ev));
            largest.0 = largest.0.max(exponent(x[j]).map(|ex| ev + ex));
        }
    });
    if !finite {
        return None;
    }
    let largest: Vec<(i32, i32)> = largest.into_iter().map(|(t, e)| (t.unwrap_or(0), e.unwrap_or(0))).collect();
    // Beside each row, what its sum leaves out: a b that underflows, and terms below the least.
    let mut rows: Vec<(Row, f64)> = which
        .iter()
        .zip(&largest)
        .map(|(&i, &(term, _))| {
            let below = exponent(b[i]).map_or(0, |e| e - term);
            (starting_with(times_power(b[i], -term)), if below < UNDERFLOWS { bound(below) } else { 0.0 })
        })
        .collect();
    for_each_of(a, op, |i, j, v| {
        let k = place[i];
        let (Some((row, left_out)), Some(ev)) = (rows.get_mut(k), exponent(v)) else { return };
        let (term, entry) = largest[k];
        let m = times_power(v, -ev);
        if ev - entry >= LEAST {
            row.sum += m.norm() * 2f64.powi(ev - entry);
        }
        let Some(ex) = exponent(x[j]) else { return };
        if ev + ex - term < LEAST {
            *left_out += bound(ev + ex - term);
        } else {
            let sum = row.sum;
            row.subtract(m, &component(times_power(x[j], ev - term)));
            row.sum = sum;
            debug_assert!(ev + ex <= term);
        }
    });
    let scaled = |value: f64, exponent: i32| Scaled::with_exponent(value, i64::from(exponent));
    let outside = rows.iter().zip(which).zip(&largest).map(|(((row, left_out), &i), &(term, entry))| Outside {
        row: i,
        re: row.re.value(),
        im: row.im.value(),
        modulus: row.modulus() + left_out,
        exponent: term,
        denominator: scaled(row.denominator, term),
        sum: scaled(row.sum, entry),
    });
    Some(outside.collect())
}
