//! States in order, censored from the first on: nothing is subtracted.
//!
//! The states left have one more column beside the rates among them: what leads into a closed class that is already found. A state that is
//! eliminated and has no rate at all, neither to a state left nor into such a class, is the last of a closed class of its own: its root.

use std::ops::{Add, Div, Mul, Range};

use bt_formats::{Scaled, memory};

use crate::error::Fault;

/// Below it a product of rates could lose digits, and above its reciprocal a quotient overflow.
const SAFE: f64 = 1e-280;

/// A number to eliminate with: a double, or one with an exponent of its own.
pub(super) trait Rate:
    Copy + Default + PartialOrd + Add<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    fn new(x: f64) -> Self;
    fn scaled(self) -> Scaled;
    fn from_scaled(x: Scaled) -> Self;
    /// Whether w times a rate of at least `least` keeps its digits.
    fn is_safe(w: Self, least: Self) -> bool;
}

impl Rate for f64 {
    fn new(x: f64) -> Self {
        x
    }
    fn scaled(self) -> Scaled {
        Scaled::new(self)
    }
    fn from_scaled(x: Scaled) -> Self {
        x.to_f64()
    }
    fn is_safe(w: Self, least: Self) -> bool {
        w * least >= SAFE && w <= 1.0 / SAFE
    }
}

impl Rate for Scaled {
    fn new(x: f64) -> Self {
        Self::new(x)
    }
    fn scaled(self) -> Scaled {
        self
    }
    fn from_scaled(x: Scaled) -> Self {
        x
    }
    fn is_safe(_: Self, _: Self) -> bool {
        true
    }
}

/// Whether doubles were enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Digits {
    /// No product came near the ends of the range.
    Kept,
    /// Some product did: each rate needs an exponent.
    Lost,
}

/// States in order with rates to at most w states on either side, and to and from k states before the first.
pub(super) struct Part<R> {
    pub n: usize,
    w: usize,
    pub k: usize,
    /// Row i at i·(2w + 1), its columns from i − w.
    pub band: Vec<R>,
    /// Rates of state i to the k states, and from them, at i·k.
    pub to_left: Vec<R>,
    pub from_left: Vec<R>,
    /// Among the k states, by rows: what passes through states that are eliminated.
    pub among: Vec<R>,
    /// Of each state into closed classes that are found, and of each of the k states before.
    pub gone: Vec<R>,
    pub gone_left: Vec<R>,
    /// The last state of each closed class that is found, increasing.
    pub roots: Vec<usize>,
}

impl<R: Rate> Part<R> {
    /// Without a rate.
    pub fn zeros(n: usize, w: usize, k: usize) -> Result<Self, Fault> {
        let sizes = [n.saturating_mul(2 * w + 1), n.saturating_mul(k), n.saturating_mul(k), k.saturating_mul(k), n, k];
        let numbers = sizes.iter().fold(0u64, |sum, &size| sum.saturating_add(size as u64));
        let what = "the rates to eliminate with";
        let bytes = numbers.saturating_mul(size_of::<R>() as u64);
        memory::ask(bytes, what)?;
        let too_large = |_| bt_formats::Error::TooLarge {
            what,
            needed: memory::in_words(bytes),
            limit: "the memory there is".into(),
        };
        let [band, to_left, from_left, among, gone, gone_left] =
            sizes.map(|size| bt_formats::zeros::<R>(size).map_err(too_large));
        Ok(Self {
            n,
            w,
            k,
            band: band?,
            to_left: to_left?,
            from_left: from_left?,
            among: among?,
            gone: gone?,
            gone_left: gone_left?,
            roots: Vec::new(),
        })
    }

    pub fn bytes(&self) -> usize {
        let parts = [&self.band, &self.to_left, &self.from_left, &self.among, &self.gone, &self.gone_left];
        parts.iter().map(|part| size_of_val(&part[..])).sum()
    }

    pub fn at(&self, i: usize, j: usize) -> usize {
        i * (2 * self.w + 1) + j + self.w - i
    }

    /// The states after e that it is coupled with.
    fn after(&self, e: usize) -> Range<usize> {
        e + 1..(e + self.w + 1).min(self.n)
    }

    /// Censors the states before `end`, from the first on; rates into them are replaced by their w.
    pub fn eliminate(&mut self, end: usize) -> Digits {
        let k = self.k;
        let (mut row, mut left) = (vec![R::default(); self.w], vec![R::default(); k]);
        for e in 0..end {
            let after = self.after(e);
            let row = &mut row[..after.len()];
            row.copy_from_slice(&self.band[self.at(e, e + 1)..][..after.len()]);
            left.copy_from_slice(&self.to_left[e * k..(e + 1) * k]);
            let gone = self.gone[e];
            let rates = || row.iter().chain(&left).chain([&gone]).copied();
            let exit = rates().fold(R::default(), |sum, q| sum + q);
            if exit == R::default() {
                self.close(e);
                continue;
            }
            let least = rates().filter(|q| *q > R::default()).reduce(|a, b| if b < a { b } else { a });
            let least = least.unwrap_or_default();
            for i in after.clone() {
                let into = self.at(i, e);
                if self.band[into] == R::default() {
                    continue;
                }
                let w = self.band[into] / exit;
                if !R::is_safe(w, least) {
                    return Digits::Lost;
                }
                self.band[into] = w;
                let first = self.at(i, e + 1);
                add_product(w, row, &mut self.band[first..]);
                add_product(w, &left, &mut self.to_left[i * k..]);
                self.gone[i] = self.gone[i] + w * gone;
            }
            for s in 0..k {
                if self.from_left[e * k + s] == R::default() {
                    continue;
                }
                let w = self.from_left[e * k + s] / exit;
                if !R::is_safe(w, least) {
                    return Digits::Lost;
                }
                self.from_left[e * k + s] = w;
                for (j, &q) in after.clone().zip(&*row) {
                    self.from_left[j * k + s] = self.from_left[j * k + s] + w * q;
                }
                add_product(w, &left, &mut self.among[s * k..]);
                self.gone_left[s] = self.gone_left[s] + w * gone;
            }
        }
        Digits::Kept
    }

    /// State e is the last of a closed class: rates into it lead to nothing that is left.
    fn close(&mut self, e: usize) {
        self.roots.push(e);
        for i in self.after(e) {
            let into = self.at(i, e);
            self.gone[i] = self.gone[i] + std::mem::take(&mut self.band[into]);
        }
        for s in 0..self.k {
            let into = std::mem::take(&mut self.from_left[e * self.k + s]);
            self.gone_left[s] = self.gone_left[s] + into;
        }
    }

    /// x of the states before `end`, from the last on, of which those from `end` on are known, and of the k states `left`; 1 at a root.
    pub fn substitute(&self, end: usize, left: &[Scaled], x: &mut [Scaled]) {
        for e in (0..end).rev() {
            let own = self.after(e).fold(Scaled::ZERO, |sum, i| sum + x[i] * self.band[self.at(i, e)].scaled());
            let from = self.from_left[e * self.k..(e + 1) * self.k].iter();
            x[e] = left.iter().zip(from).fold(own, |sum, (&x, &w)| sum + x * w.scaled());
            if self.roots.binary_search(&e).is_ok() {
                x[e] = Scaled::ONE;
            }
        }
    }

    /// Σₑ 2wₑ(wₑ+3) of the states before `end`.
    pub fn stages(&self, end: usize) -> f64 {
        (0..end).map(|e| (self.after(e).len() + self.k) as f64).map(|w| 2.0 * w * (w + 3.0)).sum()
    }
}

/// y ← y + w·x
fn add_product<R: Rate>(w: R, x: &[R], y: &mut [R]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = *y + w * x;
    }
}
