//! Elimination without subtraction: the method of Grassmann, Taksar & Heyman on the envelope of Q.
//!
//! W. K. Grassmann, M. I. Taksar, D. P. Heyman, Oper. Res. 33 (1985) 1107–1116, doi:10.1287/opre.33.5.1107. State e is censored
//! after all states above it; the pivot is the sum of the rates that are left, not a difference:
//!
//! ```text
//! e = n−1 … 1   sₑ = Σ_{j<e} q_ej      w_ie = q_ie/sₑ,   q_ij ← q_ij + w_ie·q_ej     i, j < e
//! e = 0 … n−1   x₀ = 1,                xₑ = Σ_{i<e} x_i·w_ie;   π = x/Σx
//! ```
//!
//! **Accuracy of every entry.** All operations are on positive numbers. One stage computes each new rate with a relative error
//! of at most (wₑ+2)u, wₑ the entries left of the diagonal in row e, in at most wₑ rows; the stationary vector of a chain is a
//! sum over spanning trees with one rate out of every state but one, so this changes ratios of its entries by at most
//! 2wₑ(wₑ+2)u, and the sums of the second line by 2wₑu more. To first order in u, whatever Q:
//!
//! ```text
//! |π̂_i − π_i| ≤ π_i·u·(4 + Σₑ 2wₑ(wₑ+3))
//! ```
//!
//! and usually far less. C. A. O'Cinneide, Numer. Math. 65 (1993) 109–120, doi:10.1007/BF01385743, has such bounds for dense Q.
//!
//! **Departures.** Rates are eliminated inside the monotone envelope lₑ = min over g ≥ e of the first state coupled with g,
//! which is the band of a banded Q and the blocks of a block-tridiagonal one of any block sizes. Wide envelopes are eliminated
//! four or sixteen states at a time, with the same bits. x carries a running exponent. Where a product of rates could underflow,
//! everything is done again with an exponent at each rate.
//!
//! Storage: 8·Σ(hᵢ−lᵢ+1) + 40n bytes, hᵢ the last state with l ≤ i; twice the first part with exponents. Cost: 2Σwₑ² flops.

use bt_formats::{Matrix, Partition, Permutation};

use crate::error::{Error, Result};
use crate::generator::Generator;
use crate::scaled::Scaled;

/// States eliminated at a time, by the mean of entries left of the diagonal: wider rows leave the nearer caches.
const PANELS: [(f64, usize); 3] = [(256.0, 16), (8.0, 4), (0.0, 1)];
/// Columns of a panel updated at a time.
const TILE: usize = 192;
/// Products below it could lose digits to underflow.
const SAFE: f64 = 1e-280;

/// A number to eliminate with.
pub(crate) trait Rate: Copy + Sized {
    const ZERO: Self;
    /// Whether products must be watched.
    const WATCH: bool;
    fn new(x: f64) -> Self;
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    fn scaled(self) -> Scaled;
    /// Flushed to zero where it is too small.
    fn from_scaled(x: Scaled) -> Self;
    fn approximately(self) -> f64;
    /// [`eliminate`], with the vector instructions that there are.
    fn eliminate(envelope: &Envelope, values: &mut [Self], border: Option<&mut Border<Self>>) -> Result<(), Underflow>;
}

impl Rate for f64 {
    const ZERO: Self = 0.0;
    const WATCH: bool = true;
    #[inline(always)]
    fn new(x: f64) -> Self {
        x
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self + other
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self * other
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self / other
    }
    #[inline(always)]
    fn scaled(self) -> Scaled {
        Scaled::new(self)
    }
    #[inline(always)]
    fn from_scaled(x: Scaled) -> Self {
        x.to_f64()
    }
    #[inline(always)]
    fn approximately(self) -> f64 {
        self
    }
    fn eliminate(envelope: &Envelope, values: &mut [Self], border: Option<&mut Border<Self>>) -> Result<(), Underflow> {
        bt_simd::dispatch(Vectorised { envelope, values, border })
    }
}

struct Vectorised<'a> {
    envelope: &'a Envelope,
    values: &'a mut [f64],
    border: Option<&'a mut Border<f64>>,
}

impl pulp::WithSimd for Vectorised<'_> {
    type Output = Result<(), Underflow>;
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> Self::Output {
        eliminate(self.envelope, self.values, self.border)
    }
}

impl Rate for Scaled {
    const ZERO: Self = Self::ZERO;
    const WATCH: bool = false;
    fn new(x: f64) -> Self {
        Self::new(x)
    }
    fn add(self, other: Self) -> Self {
        self + other
    }
    fn mul(self, other: Self) -> Self {
        self * other
    }
    fn div(self, other: Self) -> Self {
        self / other
    }
    fn scaled(self) -> Scaled {
        self
    }
    fn from_scaled(x: Scaled) -> Self {
        x
    }
    fn approximately(self) -> f64 {
        self.to_f64()
    }
    fn eliminate(envelope: &Envelope, values: &mut [Self], border: Option<&mut Border<Self>>) -> Result<(), Underflow> {
        eliminate(envelope, values, border)
    }
}

/// Where the rates of each row lie during the elimination.
#[derive(Clone, Debug)]
pub(crate) struct Envelope {
    /// First column of each row, not decreasing.
    low: Vec<u32>,
    /// Place of each row's first column, and the number of places.
    start: Vec<usize>,
    /// States eliminated at a time.
    panel: usize,
}

impl Envelope {
    /// The first state that each state is coupled with, itself at the latest, made monotone; states in `order`.
    fn low(q: &Generator, order: Option<&Permutation>) -> Vec<u32> {
        let place = |i: usize| order.map_or(i as u32, |p| p.position()[i]);
        let mut low: Vec<u32> = (0..q.n() as u32).collect();
        for i in 0..q.n() {
            let pi = place(i);
            for (j, _) in q.rates(i) {
                let pj = place(j);
                let low = &mut low[pi.max(pj) as usize];
                *low = (*low).min(pi.min(pj));
            }
        }
        for e in (1..low.len()).rev() {
            low[e - 1] = low[e - 1].min(low[e]);
        }
        low
    }

    fn flops(low: &[u32]) -> f64 {
        low.iter().zip(0u32..).map(|(&l, e)| 2.0 * f64::from(e - l).powi(2)).sum()
    }

    pub(crate) fn new(low: Vec<u32>) -> Self {
        let mean = low.iter().zip(0u32..).map(|(&l, e)| f64::from(e - l)).sum::<f64>() / low.len().max(1) as f64;
        let panel = PANELS.iter().find(|p| mean >= p.0).map_or(1, |p| p.1);
        Self::with_panel(low, panel)
    }

    fn with_panel(mut low: Vec<u32>, panel: usize) -> Self {
        let n = low.len();
        for states in low.chunks_mut(panel) {
            let first = states[0];
            states.fill(first);
        }
        // hᵢ + 1 is the first e with lₑ > i.
        let (mut start, mut places, mut high) = (Vec::with_capacity(n + 1), 0usize, 0);
        for (i, &l) in low.iter().enumerate() {
            start.push(places);
            while high < n && low[high] as usize <= i {
                high += 1;
            }
            places = places.saturating_add(high - l as usize);
        }
        start.push(places);
        Self { low, start, panel }
    }

    pub(crate) fn n(&self) -> usize {
        self.low.len()
    }
    /// First column of a row.
    pub(crate) fn first(&self, i: usize) -> usize {
        self.low[i] as usize
    }
    fn places(&self) -> usize {
        self.start[self.n()]
    }
    #[inline(always)]
    pub(crate) fn at(&self, i: usize, j: usize) -> usize {
        self.start[i] + j - self.low[i] as usize
    }
    /// Entries left of the diagonal.
    #[inline(always)]
    fn width(&self, e: usize) -> usize {
        e - self.low[e] as usize
    }
    /// The state after the last that row i has a place for.
    #[inline(always)]
    pub(crate) fn end(&self, i: usize) -> usize {
        self.low[i] as usize + self.start[i + 1] - self.start[i]
    }

    /// The bound of the header, in units of u.
    fn error_bound(&self) -> f64 {
        (1..self.n()).map(|e| self.width(e) as f64).fold(4.0, |sum, w| sum + 2.0 * w * (w + 3.0))
    }
}

/// The bound of the header where rows are eliminated from the first state of the level before on, and one division more.
pub(super) fn error_bound_on_levels(levels: &Partition) -> f64 {
    let before = |j: usize| if j > 0 { levels.size(j - 1) } else { 0 };
    let widths = (0..levels.n_blocks()).flat_map(|j| (0..levels.size(j)).map(move |e| (before(j) + e) as f64));
    widths.fold(5.0, |sum, w| sum + 2.0 * w * (w + 3.0)) * f64::EPSILON / 2.0
}

/// Why f64 will not do.
pub(crate) struct Underflow;

/// What is eliminated along with the rates where states may leave for good: exitᵢ ← exitᵢ + w_ie·exitₑ, and likewise the rewards,
/// with pivots sₑ = exitₑ + Σ_{j<e} q_ej.
pub(crate) struct Border<T> {
    pub(crate) exit: Vec<T>,
    pub(crate) reward: Vec<T>,
    pub(crate) pivots: Vec<T>,
}

impl<T: Rate> Border<T> {
    #[inline(always)]
    fn add(&mut self, i: usize, w: T, e: usize) {
        self.exit[i] = self.exit[i].add(w.mul(self.exit[e]));
        self.reward[i] = self.reward[i].add(w.mul(self.reward[e]));
    }
}

/// Order, envelope and eliminated rates of an irreducible chain.
#[derive(Clone, Debug)]
pub(crate) struct Elimination {
    order: Option<Permutation>,
    envelope: Envelope,
    rates: AnyRates,
}

#[derive(Clone, Debug)]
enum AnyRates {
    Plain(Vec<f64>),
    Scaled(Vec<Scaled>),
}

impl Elimination {
    /// Eliminates the states of an irreducible chain, in the cheapest of its own order, reverse Cuthill–McKee, and both
    /// backwards.
    pub(crate) fn new(q: &Generator) -> Result<Self> {
        let (order, low) = cheapest_order(q)?;
        Self::on_envelope(q, order, low)
    }

    /// The same where it takes no more than so many flops.
    pub(crate) fn within(q: &Generator, flops: f64) -> Result<Option<Self>> {
        let (order, low) = cheapest_order(q)?;
        if Envelope::flops(&low) > flops {
            return Ok(None);
        }
        Self::on_envelope(q, order, low).map(Some)
    }

    fn on_envelope(q: &Generator, order: Option<Permutation>, low: Vec<u32>) -> Result<Self> {
        let envelope = Envelope::new(low);
        let mut plain = filled::<f64>(q, order.as_ref(), &envelope)?;
        let done = f64::eliminate(&envelope, &mut plain, None);
        let rates = if done.is_ok() {
            AnyRates::Plain(plain)
        } else {
            drop(plain);
            let mut scaled = filled::<Scaled>(q, order.as_ref(), &envelope)?;
            Scaled::eliminate(&envelope, &mut scaled, None)
                .map_err(|Underflow| Error::Failed { method: "gth", reason: "the chain is not irreducible".into() })?;
            AnyRates::Scaled(scaled)
        };
        Ok(Self { order, envelope, rates })
    }

    /// x with xQ = 0, x of the first state in the order of elimination being 1, in the order of the states.
    pub(crate) fn substitute(&self) -> Vec<Scaled> {
        let x = match &self.rates {
            AnyRates::Plain(rates) => substitute(&self.envelope, rates),
            AnyRates::Scaled(rates) => substitute(&self.envelope, rates),
        };
        match &self.order {
            None => x,
            Some(order) => order.position().iter().map(|&p| x[p as usize]).collect(),
        }
    }

    /// Bound of the relative error of every probability, to first order.
    pub(crate) fn error_bound(&self) -> f64 {
        self.envelope.error_bound() * f64::EPSILON / 2.0
    }

    /// Flops and widest row left of the diagonal.
    pub(crate) fn work(&self) -> (f64, usize) {
        let widths = (0..self.envelope.n()).map(|e| self.envelope.width(e));
        (Envelope::flops(&self.envelope.low), widths.max().unwrap_or(0))
    }

    /// Whether every rate carries an exponent.
    pub(crate) fn is_scaled(&self) -> bool {
        matches!(self.rates, AnyRates::Scaled(_))
    }

    pub(crate) fn bytes(&self) -> usize {
        let rates = match &self.rates {
            AnyRates::Plain(r) => size_of_val(&**r),
            AnyRates::Scaled(r) => size_of_val(&**r),
        };
        rates + size_of_val(&*self.envelope.low) + size_of_val(&*self.envelope.start)
    }
}

/// The order of fewest flops and its envelope.
pub(crate) fn cheapest_order(q: &Generator) -> Result<(Option<Permutation>, Vec<u32>)> {
    /// A given order this cheap, in flops an entry of Q, is not worth a search.
    const CHEAP: f64 = 256.0;
    let n = q.n();
    let own = Envelope::low(q, None);
    let mut best = (Envelope::flops(&own), None, own);
    if best.0 <= CHEAP * q.matrix().nnz() as f64 {
        return Ok((best.1, best.2));
    }
    let rcm = bt_formats::reorder::rcm(q.matrix())?;
    let backwards = |p: &Permutation| Permutation::from_order(p.order().iter().rev().copied().collect());
    let candidates = [backwards(&Permutation::identity(n))?, backwards(&rcm)?, rcm];
    for order in candidates {
        let low = Envelope::low(q, Some(&order));
        let flops = Envelope::flops(&low);
        if flops < best.0 {
            best = (flops, Some(order), low);
        }
    }
    Ok((best.1, best.2))
}

/// The rates of Q in their places.
pub(crate) fn filled<T: Rate>(q: &Generator, order: Option<&Permutation>, envelope: &Envelope) -> Result<Vec<T>> {
    filled_where(q, order, envelope, |_, _| true)
}

/// Those rates of Q in their places that are `kept`, by source and target.
pub(crate) fn filled_where<T: Rate>(
    q: &Generator,
    order: Option<&Permutation>,
    envelope: &Envelope,
    kept: impl Fn(usize, usize) -> bool,
) -> Result<Vec<T>> {
    let places = envelope.places();
    let mut values = Vec::new();
    values.try_reserve_exact(places).map_err(|_| bt_formats::Error::TooLarge {
        what: "the elimination",
        needed: format!("{places} rates of {} bytes", size_of::<T>()),
        limit: "the memory there is".into(),
    })?;
    values.resize(places, T::ZERO);
    let place = |i: usize| order.map_or(i, |p| p.position()[i] as usize);
    for i in 0..q.n() {
        let pi = place(i);
        for (j, rate) in q.rates(i).filter(|e| kept(i, e.0)) {
            values[envelope.at(pi, place(j))] = T::new(rate);
        }
    }
    Ok(values)
}

/// Overwrites q_ie, i < e, by w_ie. Places of the diagonal are written and mean nothing.
#[inline(always)]
fn eliminate<T: Rate>(
    envelope: &Envelope,
    values: &mut [T],
    mut border: Option<&mut Border<T>>,
) -> Result<(), Underflow> {
    let n = envelope.n();
    for first in (0..n).step_by(envelope.panel).rev() {
        let (last, low) = ((first + envelope.panel).min(n), envelope.low[first] as usize);
        let (above, panel) = values.split_at_mut(envelope.start[first]);
        let row = |e: usize| envelope.start[e] - envelope.start[first];
        for e in (first.max(1)..last).rev() {
            let (rows, rest) = panel.split_at_mut(row(e));
            let q_e = &rest[..e - low];
            // sₑ = Σ_{j<e} q_ej
            let exit = border.as_ref().map_or(T::ZERO, |b| b.exit[e]);
            let s = q_e.iter().fold(exit, |s, &q| s.add(q));
            if let Some(border) = &mut border {
                border.pivots[e] = s;
            }
            let mut least = f64::INFINITY;
            // Columns of the panel at once, those before it after the whole panel.
            for i in low..first {
                let at = envelope.at(i, first);
                let (columns, w) = above[at..=at + e - first].split_at_mut(e - first);
                w[0] = divided::<T>(w[0], s, &mut least);
                add_product(columns, w[0], &q_e[first - low..]);
                if let Some(border) = &mut border {
                    border.add(i, w[0], e);
                }
            }
            for i in first..e {
                let (columns, w) = rows[row(i)..=row(i) + e - low].split_at_mut(e - low);
                w[0] = divided::<T>(w[0], s, &mut least);
                add_product(columns, w[0], q_e);
                if let Some(border) = &mut border {
                    border.add(i, w[0], e);
                }
            }
            if T::WATCH {
                let pivot = s.approximately();
                let mut least_rate = f64::INFINITY;
                if let Some(border) = &border {
                    watch::<T>(&mut least_rate, border.exit[e]);
                    watch::<T>(&mut least_rate, border.reward[e]);
                }
                for &q in q_e {
                    watch::<T>(&mut least_rate, q);
                }
                // A pivot of zero fails here as well: w is infinite or NaN.
                // Below the normal numbers w itself has lost digits.
                let is_normal = least >= f64::MIN_POSITIVE;
                if !(pivot >= SAFE && pivot.is_finite() && is_normal && least * least_rate >= SAFE) {
                    return Err(Underflow);
                }
            } else if s.scaled().is_zero() {
                return Err(Underflow);
            }
        }
        // q_ij ← q_ij + Σ w_ie·q_ej over the panel, from its last state down, by tiles of columns that stay in the nearest cache
        for left in (low..first).step_by(TILE) {
            let right = (left + TILE).min(first);
            let q = |k: usize| &panel[row(first + k)..][left - low..right - low];
            for i in low..first {
                let at = envelope.at(i, left);
                let (q_i, w) = above[at..at + last - left].split_at_mut(first - left);
                let q_i = &mut q_i[..right - left];
                let mut k = w.len();
                for w in w.rchunks(4) {
                    k -= w.len();
                    if let [w0, w1, w2, w3] = *w {
                        let [q0, q1, q2, q3] = [q(k), q(k + 1), q(k + 2), q(k + 3)];
                        for ((((x, &q0), &q1), &q2), &q3) in q_i.iter_mut().zip(q0).zip(q1).zip(q2).zip(q3) {
                            *x = x.add(w3.mul(q3)).add(w2.mul(q2)).add(w1.mul(q1)).add(w0.mul(q0));
                        }
                    } else {
                        for (c, &w) in w.iter().enumerate().rev() {
                            add_product(q_i, w, q(k + c));
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

/// x ← x + w·q
#[inline(always)]
fn add_product<T: Rate>(x: &mut [T], w: T, q: &[T]) {
    for (x, &q) in x.iter_mut().zip(q) {
        *x = x.add(w.mul(q));
    }
}

/// The least of the positive rates; a NaN or infinite one counts as zero.
#[inline(always)]
fn watch<T: Rate>(least: &mut f64, rate: T) {
    if T::WATCH {
        let rate = rate.approximately();
        let counted = if rate < f64::INFINITY { rate } else { 0.0 };
        let counted = if rate == 0.0 { f64::INFINITY } else { counted };
        *least = if counted < *least { counted } else { *least };
    }
}

/// w/s, watched; a positive number that underflows counts as the least there can be.
#[inline(always)]
fn divided<T: Rate>(w: T, s: T, least: &mut f64) -> T {
    let quotient = w.div(s);
    watch::<T>(least, quotient);
    if T::WATCH && quotient.approximately() == 0.0 && w.approximately() > 0.0 {
        *least = 0.0;
    }
    quotient
}

/// xₑ = Σ_{i<e} x_i·w_ie from x₀ = 1.
///
/// The sums run ahead: x_i·w_ie goes into the sums of all e that i leads to, relative to a common power of two. A sum that
/// leaves the range where no digit can be lost is formed again with exponents, and the power follows it.
fn substitute<T: Rate>(envelope: &Envelope, w: &[T]) -> Vec<Scaled> {
    /// Sums in between have lost no more than n·2⁻¹⁰²²·max w.
    const RANGE: std::ops::RangeInclusive<f64> = 1e-150..=1e150;
    let n = envelope.n();
    let largest = w.iter().fold(1.0, |m: f64, w| m.max(w.approximately()));
    let always_exact = !T::WATCH || largest > 1e100;
    let (mut x, mut sums) = (Vec::with_capacity(n), vec![0.0; n]);
    let mut power = 0i64;
    for e in 0..n {
        let mut sum: f64 = if e == 0 { 1.0 } else { sums[e] };
        if always_exact || !RANGE.contains(&sum) {
            let low = envelope.low[e] as usize;
            let exact = (low..e).fold(Scaled::ZERO, |s, i| s + x[i] * w[envelope.at(i, e)].scaled());
            let exact = if e == 0 { Scaled::ONE } else { exact };
            x.push(exact);
            if always_exact {
                continue;
            }
            // All sums ahead, relative to the new power.
            power = exact.exponent();
            sum = exact.relative_to(power);
            let end = envelope.end(e);
            sums[e + 1..end].fill(0.0);
            for i in low..e {
                let x_i = x[i].relative_to(power);
                for f in e + 1..envelope.end(i) {
                    sums[f] += x_i * w[envelope.at(i, f)].approximately();
                }
            }
        } else {
            x.push(Scaled::with_exponent(sum, power));
        }
        let (end, at) = (envelope.end(e), envelope.at(e, e));
        for (s, w) in sums[e + 1..end].iter_mut().zip(&w[at + 1..]) {
            *s += sum * w.approximately();
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use bt_formats::Coo;

    /// The same bits however many states are eliminated at a time, with exponents or without.
    #[test]
    fn panels_do_not_matter() {
        for (n, w) in [(70, 19), (33, 32), (50, 3)] {
            let mut coo = Coo::new(n, n).unwrap();
            for i in 0..n {
                for j in (i.saturating_sub(w)..(i + w + 1).min(n)).filter(|&j| i != j && (i + 2 * j) % 3 > 0) {
                    let rate = ((i * 31 + j * 17) % 23 + 1) as f64 / 7.0;
                    coo.push(i, j, rate).unwrap();
                    coo.push(i, i, -rate).unwrap();
                }
            }
            let q = Generator::new(coo.to_csr().unwrap()).unwrap();
            let low = Envelope::low(&q, None);
            let solve = |panel: usize| {
                let envelope = Envelope::with_panel(low.clone(), panel);
                let mut plain = filled::<f64>(&q, None, &envelope).unwrap();
                assert!(f64::eliminate(&envelope, &mut plain, None).is_ok());
                let mut scaled = filled::<Scaled>(&q, None, &envelope).unwrap();
                assert!(Scaled::eliminate(&envelope, &mut scaled, None).is_ok());
                (substitute(&envelope, &plain), substitute(&envelope, &scaled))
            };
            let one = solve(1);
            for panel in [2, 4, 5, 16] {
                assert_eq!(solve(panel), one, "{n}, {w}, {panel}");
            }
            // Exponents change no rounding either, but the order of sums in the substitution does.
            for (a, b) in one.0.iter().zip(&one.1) {
                assert!(((*a / *b).to_f64() - 1.0).abs() < 1e-14);
            }
        }
    }
}
