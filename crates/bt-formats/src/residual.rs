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
//! Storage: none where A is read by rows or by runs (`residual/runs.rs`) and all of them stay in the range; else
//! fourteen doubles a row and seven a column. Cost: one pass over A of about thirty flops an entry, twenty with fused products, whose
//! errors are the same numbers; two or three more where some row leaves the range.

pub(crate) mod runs;

use std::ops::Range;

use rayon::prelude::*;

use crate::csr::Csr;
use crate::doubled::{self, split, sum};
use crate::operator::{Matrix, Op, Par, zero};
use crate::rounded::{Power, exponent_of};
use crate::scalar::{self, RealScalar, Scalar, ScalarKind, c64};
use crate::scaled::Scaled;
use crate::sizes::Sizes;

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

/// p and e with p + e = a·x, of numbers that have been split.
#[inline(always)]
fn split_product(a: Split, x: Split) -> (f64, f64) {
    let p = a.value * x.value;
    (p, a.low * x.low - (((p - a.high * x.high) - a.low * x.high) - a.high * x.low))
}

/// The same, with a fused multiply-add where there is one.
#[inline(always)]
fn product(fused: bool, a: f64, x: f64) -> (f64, f64) {
    if !fused {
        return doubled::product(a, x);
    }
    let p = a * x;
    (p, a.mul_add(x, -p))
}

/// `high` + `low` ← `high` + `low` − v·x, and the moduli of what rounding took.
#[inline(always)]
fn subtract_part(fused: bool, v: f64, x: f64, high: &mut f64, low: &mut f64, taken: &mut f64) {
    let (p, e) = product(fused, -v, x);
    let (s, t) = sum(*high, p);
    *high = s;
    *low += e + t;
    *taken += e.abs() + t.abs();
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
        let (p, e) = split_product(Split::new(a), x);
        let (s, t) = sum(self.high, p);
        self.high = s;
        self.low += e + t;
        self.taken += e.abs() + t.abs();
    }

    /// The same, where a fused multiply-add gives e at once.
    #[inline(always)]
    fn add_fused(&mut self, a: f64, x: f64) {
        subtract_part(true, -a, x, &mut self.high, &mut self.low, &mut self.taken);
    }

    #[inline(always)]
    fn value(self) -> f64 {
        self.high + self.low
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
    #[inline(always)]
    fn modulus(&self) -> f64 {
        // u·(m + 2) for m terms, twice over.
        let resolution = (f64::from(self.entries) + 2.0) * f64::EPSILON * (self.re.taken + self.im.taken);
        let (re, im) = (self.re.value(), self.im.value());
        let modulus = if im == 0.0 { re.abs() } else { scalar::modulus(re, im) };
        modulus + resolution
    }

    #[inline(always)]
    fn subtract<T: Scalar>(&mut self, v: T, x: &Component) {
        let modulus = modulus(v);
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
        let modulus = modulus(v);
        self.sum += modulus;
        self.denominator += modulus * self::modulus(x);
        let (re, im) = (v.re().to_f64(), v.im().to_f64());
        let (xr, xi) = (x.re().to_f64(), x.im().to_f64());
        self.re.add_fused(-re, xr);
        if !T::IS_REAL {
            self.re.add_fused(im, xi);
            self.im.add_fused(-re, xi);
            self.im.add_fused(-im, xr);
        }
    }

    #[inline(always)]
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
    #[inline(always)]
    fn is_in_range(&self) -> bool {
        let limit = 2f64.powi(RANGE.1);
        self.modulus.is_finite() && self.sum <= limit && self.denominator <= limit
    }
}

/// What the certificate needs of the rows of a residual, all of them in the range of doubles.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    /// maxᵢ |rᵢ|
    pub norm_r: f64,
    /// Σᵢ |rᵢ|²
    pub squares: f64,
    /// ‖A‖∞
    pub norm_a: f64,
    /// maxᵢ |rᵢ| / dᵢ
    pub componentwise: f64,
}

impl Totals {
    #[inline(always)]
    fn add(&mut self, row: &Done) {
        self.norm_r = self.norm_r.max(row.modulus);
        self.squares += row.modulus * row.modulus;
        self.norm_a = self.norm_a.max(row.sum);
        // An exact row counts nothing, whatever it divides by.
        if row.modulus > 0.0 {
            self.componentwise = self.componentwise.max(row.modulus / row.denominator);
        }
    }

    /// Of these rows and those.
    fn and(self, those: Self) -> Self {
        Self {
            norm_r: self.norm_r.max(those.norm_r),
            squares: self.squares + those.squares,
            norm_a: self.norm_a.max(those.norm_a),
            componentwise: self.componentwise.max(those.componentwise),
        }
    }
}

/// Rows that one thread takes at a time: sums of squares are those of any number of threads.
const ROWS: usize = 4096;

/// r ← b − A·x, and the totals of its rows; nothing, and no r to rely on, where a number is not finite or a row may leave the range.
/// One pass over A, which stores nothing beside r.
#[inline(never)]
pub(crate) fn totals<T: Scalar>(a: &Csr<T>, x: &[T], b: &[T], r: Option<&mut [T]>) -> Option<Totals> {
    let survey = a.survey();
    if !survey.is_finite {
        return None;
    }
    let (smallest_x, largest_x) = finite_range(x)?;
    finite_range(b)?;
    // Numbers beyond cannot be split.
    if largest_x > largest_split() {
        return None;
    }
    let low = least_denominator::<T>(survey.sizes.0, smallest_x);
    let squares = squares_fit::<T>(survey.sizes.0.min(smallest_x));
    let mut pieces: Vec<Option<&mut [T]>> = match r {
        Some(r) => r.chunks_mut(ROWS).map(Some).collect(),
        None => (0..b.len().div_ceil(ROWS)).map(|_| None).collect(),
    };
    let piece = |(k, r): (usize, &mut Option<&mut [T]>)| {
        let mut totals = None;
        let rows = k * ROWS..((k + 1) * ROWS).min(b.len());
        bt_simd::dispatch(ByRows { a, x, b, rows, r: r.as_deref_mut(), low, squares, totals: &mut totals });
        totals
    };
    let parts: Option<Vec<Totals>> = match Par::auto(a.bytes()) {
        Par::Seq => pieces.iter_mut().enumerate().map(piece).collect(),
        Par::Rayon => pieces.par_iter_mut().enumerate().map(piece).collect(),
    };
    Some(parts?.into_iter().fold(Totals::default(), Totals::and))
}

/// The largest number that can be split.
fn largest_split() -> f64 {
    2f64.powi(RANGE.1)
}

/// Smallest nonzero and largest |re| + |im|; nothing where a number is not finite, or all of them together are not.
#[inline(never)]
fn finite_range<T: Scalar>(x: &[T]) -> Option<(f64, f64)> {
    let sizes = bt_simd::dispatch(bt_simd::Loops(
        #[inline(always)]
        || {
            let mut sizes = Sizes::default();
            sizes.add(x);
            sizes
        },
    ));
    sizes.are_finite().then(|| sizes.extent())
}

/// Smallest nonzero and largest modulus.
fn range<T: Scalar>(x: &[T]) -> (f64, f64) {
    x.iter().map(|&v| modulus(v)).fold((f64::INFINITY, 0.0), |(least, most), m| {
        (if m < least && m > 0.0 { m } else { least }, if m > most { m } else { most })
    })
}

/// Whether the squares of numbers of this size and more have all their digits; of too large ones no sums are left.
fn squares_fit<T: Scalar>(smallest: f64) -> bool {
    T::KIND != ScalarKind::C64 || smallest >= 2f64.powi(-480)
}

/// The denominator of a row below which products may have underflown, for the smallest nonzero numbers of A and x.
fn least_denominator<T: Scalar>(smallest: f64, smallest_x: f64) -> f64 {
    // Squares of single precision stay in the range of doubles.
    let double = matches!(T::KIND, ScalarKind::F64 | ScalarKind::C64);
    let least = if smallest.is_finite() && smallest_x.is_finite() {
        exponent_of(smallest) + exponent_of(smallest_x)
    } else {
        0
    };
    if double && least < RANGE.0 { 2f64.powi(RANGE.0) } else { 0.0 }
}

/// Some rows of A read one by one.
struct ByRows<'a, T: Scalar> {
    a: &'a Csr<T>,
    x: &'a [T],
    b: &'a [T],
    rows: Range<usize>,
    r: Option<&'a mut [T]>,
    low: f64,
    /// See [`squares_fit`].
    squares: bool,
    totals: &'a mut Option<Totals>,
}

impl<T: Scalar> pulp::WithSimd for ByRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        // Where there are vectors there is a fused multiply-add; without one the library's is slow.
        let fused = size_of::<S::f64s>() > size_of::<f64>();
        let Self { a, x, b, rows, mut r, low, squares, totals } = self;
        let mut t = Totals::default();
        for (k, i) in rows.enumerate() {
            let (cols, values) = a.row(i);
            let row = if squares && cols.len() >= LONG {
                long_row(fused, cols, values, x, b[i])
            } else {
                let mut row = starting_with(b[i]);
                for (&j, &v) in cols.iter().zip(values) {
                    let x = x[j as usize];
                    if fused {
                        row.subtract_fused(v, x);
                    } else {
                        row.subtract(v, &component(x));
                    }
                }
                row.entries = cols.len() as u32;
                row.finish()
            };
            if !row.is_in_range() || row.denominator < low {
                return;
            }
            if let Some(r) = &mut r {
                r[k] = T::rounded(row.re, row.im);
            }
            t.add(&row);
        }
        *totals = Some(t);
    }
}

/// Entries from which a row is summed in lanes, of complex numbers where their squares stay in the range.
const LONG: usize = 16;

/// Sums of a row side by side, as the vectors of any processor hold them, joined in one order.
const LANES: usize = 8;

/// The real or the imaginary part of eight sums.
#[derive(Default)]
struct Part {
    high: [f64; LANES],
    low: [f64; LANES],
    taken: [f64; LANES],
}

impl Part {
    /// Lane l − v·x
    #[inline(always)]
    fn subtract(&mut self, l: usize, fused: bool, v: f64, x: f64) {
        subtract_part(fused, v, x, &mut self.high[l], &mut self.low[l], &mut self.taken[l]);
    }

    /// Adds lane `from` to lane l.
    #[inline(always)]
    fn fold(&mut self, l: usize, from: usize) {
        let (s, t) = sum(self.high[l], self.high[from]);
        self.high[l] = s;
        self.low[l] += self.low[from] + t;
        self.taken[l] += self.taken[from] + t.abs();
    }

    /// Lane 0, added to a number.
    #[inline(always)]
    fn added_to(&self, start: f64) -> Sum {
        let (s, t) = sum(start, self.high[0]);
        Sum { high: s, low: self.low[0] + t, taken: self.taken[0] + t.abs() }
    }
}

/// Sums of eight parts of a row.
#[derive(Default)]
struct Lanes {
    re: Part,
    im: Part,
    sums: [f64; LANES],
    denominators: [f64; LANES],
}

impl Lanes {
    /// Adds an entry to each lane from `first` on.
    #[inline(always)]
    fn subtract<T: Scalar>(&mut self, fused: bool, places: &[u32; LANES], values: &[T; LANES], x: &[T], first: usize) {
        let numbers: [T; LANES] = if places[LANES - 1] - places[0] == LANES as u32 - 1 {
            // Columns without gaps.
            let x = &x[places[0] as usize..][..LANES];
            std::array::from_fn(|l| x[l])
        } else {
            std::array::from_fn(|l| x[places[l] as usize])
        };
        for l in 0..LANES {
            let v = if l >= first { values[l] } else { zero() };
            let (vr, vi) = (v.re().to_f64(), v.im().to_f64());
            let (xr, xi) = (numbers[l].re().to_f64(), numbers[l].im().to_f64());
            let (_, modulus) = scalar::size_and_modulus::<T>(vr, vi);
            self.sums[l] += modulus;
            self.denominators[l] += modulus * scalar::size_and_modulus::<T>(xr, xi).1;
            self.re.subtract(l, fused, vr, xr);
            if !T::IS_REAL {
                self.re.subtract(l, fused, -vi, xi);
                self.im.subtract(l, fused, vr, xi);
                self.im.subtract(l, fused, vi, xr);
            }
        }
    }

    /// Adds the upper half of the first `2·half` lanes to the lower.
    #[inline(always)]
    fn fold<T: Scalar>(&mut self, half: usize) {
        for l in 0..half {
            self.re.fold(l, l + half);
            if !T::IS_REAL {
                self.im.fold(l, l + half);
            }
            self.sums[l] += self.sums[l + half];
            self.denominators[l] += self.denominators[l + half];
        }
    }
}

/// A row of [`LONG`] numbers or more, whose squares have all their digits: eight entries at a time, the last eight again without those that have
/// been added, then the eight sums. The additions that a number goes through are fewer than in one sum.
#[inline(always)]
fn long_row<T: Scalar>(fused: bool, cols: &[u32], values: &[T], x: &[T], b: T) -> Done {
    let mut lanes = Lanes::default();
    let (groups, rest) = values.as_chunks::<LANES>();
    let (places, _) = cols.as_chunks::<LANES>();
    for (values, places) in groups.iter().zip(places) {
        lanes.subtract(fused, places, values, x, 0);
    }
    if !rest.is_empty()
        && let (Some(places), Some(values)) = (cols.last_chunk(), values.last_chunk())
    {
        lanes.subtract(fused, places, values, x, LANES - rest.len());
    }
    lanes.fold::<T>(4);
    lanes.fold::<T>(2);
    lanes.fold::<T>(1);
    let mut row = starting_with(b);
    row.re = lanes.re.added_to(row.re.high);
    if !T::IS_REAL {
        row.im = lanes.im.added_to(row.im.high);
    }
    row.sum = lanes.sums[0];
    row.denominator += lanes.denominators[0];
    row.entries = cols.len() as u32;
    row.finish()
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
    #[inline(never)]
    pub fn new<T: Scalar, A: Matrix<T> + ?Sized>(a: &A, op: Op, x: &[T], b: &[T]) -> Option<Self> {
        if x.iter().chain(b).any(|v| !Scalar::is_finite(*v)) {
            return None;
        }
        let mut smallest = f64::INFINITY;
        let components: Vec<Component> = x.iter().map(|&v| component(v)).collect();
        let mut open: Vec<Row> = b.iter().map(|&v| starting_with(v)).collect();
        for_each_of(a, op, |i, j, v| {
            open[i].subtract(v, &components[j]);
            let modulus = v.abs1().to_f64();
            if modulus < smallest && modulus > 0.0 {
                smallest = modulus;
            }
        });
        let rows: Vec<Done> = open.iter().map(Row::finish).collect();
        let (smallest_x, largest_x) = range(x);
        // Numbers beyond cannot be split.
        let splits = largest_x <= largest_split();
        let low = least_denominator::<T>(smallest, smallest_x);
        let outside: Vec<usize> =
            (0..rows.len()).filter(|&i| !splits || !rows[i].is_in_range() || rows[i].denominator < low).collect();
        let outside = sum_with_exponents(a, op, x, b, &outside)?;
        Some(Self { rows, outside })
    }

    /// r rounded to the scalar's type.
    pub fn store<T: Scalar>(&self, r: &mut [T]) {
        for (r, row) in r.iter_mut().zip(&self.rows) {
            *r = T::rounded(row.re, row.im);
        }
        for row in &self.outside {
            let scale = Power::of(row.exponent);
            r[row.row] = T::rounded(scale.times(row.re), scale.times(row.im));
        }
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

/// |v|, in double precision.
#[inline(always)]
fn modulus<T: Scalar>(v: T) -> f64 {
    let (re, im) = (v.re().to_f64(), v.im().to_f64());
    if T::IS_REAL { re.abs() } else { scalar::modulus(re, im) }
}

#[inline(always)]
fn component<T: Scalar>(v: T) -> Component {
    let (re, im) = (v.re().to_f64(), v.im().to_f64());
    Component { re: Split::new(re), im: Split::new(im), modulus: modulus(v) }
}

#[inline(always)]
fn starting_with<T: Scalar>(b: T) -> Row {
    let part = |high: f64| Sum { high, low: 0.0, taken: 0.0 };
    let (re, im) = (part(b.re().to_f64()), part(b.im().to_f64()));
    Row { re, im, denominator: modulus(b), sum: 0.0, entries: 0 }
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
#[inline(never)]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{c32, c64};
    use faer::Mat;

    /// Residuals and totals of long rows beside those of sums over one entry after the other.
    fn same<T: Scalar>(n: usize, scale: f64) {
        let entry = |i: usize, j: usize| {
            let part = |k: usize| ((i * 7 + j * k) % 11) as f64 - 5.5;
            if (i + j) % 6 == 5 { zero() } else { T::rounded(scale * part(3), scale * part(5)) }
        };
        let a = Csr::from_dense(Mat::from_fn(n, n, entry).as_ref()).unwrap();
        let x: Vec<T> = (0..n).map(|i| T::rounded(1.0 + i as f64 / 3.0, (i % 7) as f64)).collect();
        let b: Vec<T> = (0..n).map(|i| T::rounded(scale * i as f64, -0.3 * scale)).collect();
        let (mut by_lanes, mut expected) = (vec![zero(); n], vec![zero(); n]);
        let found = totals(&a, &x, &b, Some(&mut by_lanes)).unwrap();
        let general = Residual::new(&a, Op::Identity, &x, &b).unwrap();
        general.store(&mut expected);
        for (&r, &e) in by_lanes.iter().zip::<&Vec<T>>(&expected) {
            let distance: T = r - e;
            assert!(modulus(distance) <= T::Real::EPSILON.to_f64() * modulus(e), "{n}: {r} {e}");
        }
        let largest = |k: usize| general.moduli().map(|row| row[k].to_f64()).fold(0.0, f64::max);
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-13 * b;
        assert!(near(found.norm_r, largest(0)) && near(found.norm_a, largest(2)), "{n}: {found:?}");
    }

    #[test]
    fn long_rows_are_those_summed_one_by_one() {
        for n in [16, 20, 21, 27, 48] {
            same::<f64>(n, 1.0);
            same::<f32>(n, 1.0);
            same::<c32>(n, 1.0);
            // The squares of the last lose digits: their rows are not summed in lanes.
            for scale in [1.0, 1e100, 1e-145] {
                same::<c64>(n, scale);
            }
        }
    }
}
