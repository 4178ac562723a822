//! Stationary distributions of chains whose states are spread over ranks in order: elimination without a subtraction.
//!
//! π·Q = 0, Σπ = 1 for the rates q_ij ≥ 0, i ≠ j, of an irreducible chain; diagonals are minus the sums of the rates and are not read. A rank
//! censors its states but for the last k, k being how far rates reach beyond a rank: the method of W. K. Grassmann, M. I. Taksar, D. P. Heyman, Oper.
//! Res. 33 (1985) 1107–1116, doi:10.1287/opre.33.5.1107, in the order of SPIKE's partitions. Rates among the k states before its first and
//! its own last k are what is left, and add up to a chain of k states a rank, whose rates all ranks gather and eliminate alike:
//!
//! ```text
//! sₑ = Σ_j q_ej     w_ie = q_ie/sₑ,   q_ij ← q_ij + w_ie·q_ej          i, j: states that are left
//! xₑ = Σ_i x_i·w_ie                   π = x/Σx
//! ```
//!
//! All operations are on positive numbers: in whatever order, entries are right to π_i·u·(4 + Σₑ 2wₑ(wₑ+3)), wₑ the states that are left
//! and coupled with e (see `bt_queue`). x has exponents of its own. Where a product of rates could underflow on some rank, all
//! eliminate again with an exponent at each rate.
//!
//! Storage of m states with rates to w states on either side: m·(2w + 2k + 1) numbers, 4k²·p for what is gathered. Flops of a rank: 2m(w + k)²
//! and 8p·k³. Counted: one message of 8k² bytes to the next rank, one gather of 64k² bytes, two messages of 16k bytes for the balance.

use std::ops::{Add, Div, Mul};

use bt_formats::Scaled;

use crate::comm::{Comm, Parts, Tag, Traffic};
use crate::csr::DistributedCsr;
use crate::error::{Fault, FaultKind, Result, agree};
use crate::spike::Shape;

/// Below it a product of rates could lose digits, and above its reciprocal a quotient overflow.
const SAFE: f64 = 1e-280;

const RATES: Tag = Tag(0x5a);
const FLOWS: Tag = Tag(0x5b);

/// The stationary distribution of a chain, the states of each rank on that rank.
///
/// ```
/// use bt_parallel::{DistributedCsr, Division, StationaryDistribution, thread_comm};
/// // A queue of at most 8 customers: arrivals at rate 1, departures at rate 2.
/// let q = bt_testkit::csr(9, |i: usize, j: usize| if j == i + 1 { 1.0 } else if i == j + 1 { 2.0 } else { 0.0 });
/// let found = thread_comm::run(3, |comm| {
///     let q = DistributedCsr::from_replicated(comm, &q, &Division::contiguous(9, 3))?;
///     let pi = StationaryDistribution::new(&q)?;
///     assert!(pi.balance() < 1e-14);
///     Ok(pi.own()[0].to_f64())
/// });
/// // πᵢ = 2⁻ⁱ / (2 − 2⁻⁸)
/// assert!((found[1].as_ref().unwrap() - 0.125 / (2.0 - 1.0 / 256.0)).abs() < 1e-15);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct StationaryDistribution {
    own: Vec<Scaled>,
    balance: f64,
    error_bound: f64,
    traffic: Traffic,
}

impl StationaryDistribution {
    /// Of the chain with the rates off the diagonal of `q`. A collective.
    ///
    /// # Errors
    /// [`crate::Error::OnRank`] for a negative rate, states that are not consecutive in the order of the ranks, a rank with fewer states than
    /// rates reach (see [`crate::Division::contiguous_of_at_least`]), states that are never left for the last one of the chain, naming one of them: the
    /// chain is reducible; those of the communicator.
    pub fn new<C: Comm>(q: &DistributedCsr<'_, f64, C>) -> Result<Self> {
        let comm = q.comm();
        agree(comm, check_rates(q))?;
        let shape = Shape::new(q)?;
        let ends = Ends { k: shape.k.max(1), active: comm.split(u32::from(shape.rows == 0), 0)?, first: shape.first };
        let (x, stages) = match eliminated::<f64, C>(q, &shape, &ends)? {
            Some(done) => done,
            None => eliminated::<Scaled, C>(q, &shape, &ends)?.unwrap_or_default(),
        };
        let own = normalized(comm, x)?;
        let balance = balance(q, &shape, &ends, &own)?;
        let mut bound = [stages];
        comm.all_sum(&mut bound)?;
        let error_bound = (4.0 + bound[0]) * f64::EPSILON / 2.0;
        Ok(Self { own, balance, error_bound, traffic: ends.active.traffic() })
    }

    /// Probabilities of the states of this rank.
    pub fn own(&self) -> &[Scaled] {
        &self.own
    }

    /// max |inflow − outflow| / outflow over the states of all ranks, with the probabilities as they are returned.
    pub fn balance(&self) -> f64 {
        self.balance
    }

    /// Bound of the relative error of every probability, to first order in u.
    pub fn error_bound(&self) -> f64 {
        self.error_bound
    }

    /// What this rank sent to others that have states, beside the few numbers by which all ranks agree.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }
}

/// The states between which ranks are eliminated.
struct Ends<C> {
    /// The last so many states of each rank are left.
    k: usize,
    /// Ranks that have states, in order; on the others those that have none.
    active: C,
    /// Number of the first own state.
    first: usize,
}

fn check_rates<C: Comm>(q: &DistributedCsr<'_, f64, C>) -> Result<(), Fault> {
    for (i, &g) in q.rows().own().iter().enumerate() {
        if let Some((j, v)) = q.row(i).find(|&(j, v)| j as usize != i && v < 0.0) {
            let to = q.global(j);
            return Err(Fault::input(format!(
                "the rate from state {g} to state {to} is {v}, and rates are not negative"
            )));
        }
    }
    Ok(())
}

/// A number to eliminate with: a double, or one with an exponent of its own.
trait Rate: Copy + Default + PartialOrd + Add<Output = Self> + Mul<Output = Self> + Div<Output = Self> {
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

/// Why an elimination ends early.
enum Halt {
    /// A state from which no state that is left is reached.
    NoExit(usize),
    /// Doubles would lose digits.
    Unsafe,
}

/// States in order with rates to at most w states on either side, and to and from k states before the first.
struct Part<R> {
    n: usize,
    w: usize,
    k: usize,
    /// Row i at i·(2w + 1), its columns from i − w.
    band: Vec<R>,
    /// Rates of state i to the k states, and from them, at i·k.
    to_left: Vec<R>,
    from_left: Vec<R>,
    /// Among the k states, by rows: what passes through states that are eliminated.
    among: Vec<R>,
}

impl<R: Rate> Part<R> {
    fn zeros(n: usize, w: usize, k: usize) -> Self {
        let zeros = |len: usize| vec![R::default(); len];
        Self {
            n,
            w,
            k,
            band: zeros(n * (2 * w + 1)),
            to_left: zeros(n * k),
            from_left: zeros(n * k),
            among: zeros(k * k),
        }
    }

    fn at(&self, i: usize, j: usize) -> usize {
        i * (2 * self.w + 1) + j + self.w - i
    }

    /// The states after e that it is coupled with.
    fn after(&self, e: usize) -> std::ops::Range<usize> {
        e + 1..(e + self.w + 1).min(self.n)
    }

    /// Censors the states before `end`, from the first on; rates into them are replaced by their w.
    fn eliminate(&mut self, end: usize) -> Result<(), Halt> {
        let k = self.k;
        let (mut row, mut left) = (vec![R::default(); self.w], vec![R::default(); k]);
        for e in 0..end {
            let after = self.after(e);
            let row = &mut row[..after.len()];
            row.copy_from_slice(&self.band[self.at(e, e + 1)..][..after.len()]);
            left.copy_from_slice(&self.to_left[e * k..(e + 1) * k]);
            let exit = row.iter().chain(&left).fold(R::default(), |sum, &q| sum + q);
            if exit == R::default() {
                return Err(Halt::NoExit(e));
            }
            let rates = row.iter().chain(&left).copied().filter(|q| *q > R::default());
            let least = rates.reduce(|a, b| if b < a { b } else { a }).unwrap_or_default();
            for i in after.clone() {
                let into = self.at(i, e);
                if self.band[into] == R::default() {
                    continue;
                }
                let w = self.band[into] / exit;
                if !R::is_safe(w, least) {
                    return Err(Halt::Unsafe);
                }
                self.band[into] = w;
                let first = self.at(i, e + 1);
                add_product(w, row, &mut self.band[first..]);
                add_product(w, &left, &mut self.to_left[i * k..]);
            }
            for s in 0..k {
                if self.from_left[e * k + s] == R::default() {
                    continue;
                }
                let w = self.from_left[e * k + s] / exit;
                if !R::is_safe(w, least) {
                    return Err(Halt::Unsafe);
                }
                self.from_left[e * k + s] = w;
                for (j, &q) in after.clone().zip(&*row) {
                    self.from_left[j * k + s] = self.from_left[j * k + s] + w * q;
                }
                add_product(w, &left, &mut self.among[s * k..]);
            }
        }
        Ok(())
    }

    /// x of the states before `end`, from the last on, of which those from `end` on are known, and of the k states `left`.
    fn substitute(&self, end: usize, left: &[Scaled], x: &mut [Scaled]) {
        for e in (0..end).rev() {
            let own = self.after(e).fold(Scaled::ZERO, |sum, i| sum + x[i] * self.band[self.at(i, e)].scaled());
            let from = self.from_left[e * self.k..(e + 1) * self.k].iter();
            x[e] = left.iter().zip(from).fold(own, |sum, (&x, &w)| sum + x * w.scaled());
        }
    }

    /// Σₑ 2wₑ(wₑ+3) of the states before `end`.
    fn stages(&self, end: usize) -> f64 {
        (0..end).map(|e| (self.after(e).len() + self.k) as f64).map(|w| 2.0 * w * (w + 3.0)).sum()
    }
}

/// y ← y + w·x
fn add_product<R: Rate>(w: R, x: &[R], y: &mut [R]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = *y + w * x;
    }
}

/// x of the own states, up to a factor that all ranks share, and the sum that its bound rests on, each stage counted once; `None` where doubles
/// will not do.
fn eliminated<R: Rate, C: Comm>(
    q: &DistributedCsr<'_, f64, C>,
    shape: &Shape,
    ends: &Ends<C>,
) -> Result<Option<(Vec<Scaled>, f64)>> {
    let (comm, k) = (q.comm(), ends.k);
    let inner = shape.rows.saturating_sub(k);
    let mut part = if shape.rows == 0 { Part::zeros(0, 0, 0) } else { loaded::<R, C>(q, shape, ends)? };
    let end = part.eliminate(inner);
    if !all_safe(comm, &end, |e| q.rows().own()[e])? {
        return Ok(None);
    }
    // Rates among [k states before, own last k], as mantissas and exponents.
    let mut reduced = Part::<R>::zeros(0, 0, 0);
    let mut end = Ok(());
    if shape.rows > 0 {
        let gathered = ends.active.all_gather(&packed(&remaining(&part, inner, k)))?;
        reduced = joined::<R>(&gathered, k);
        end = reduced.eliminate(reduced.n - 1);
    }
    // The k states of an active rank are its last.
    let counts: Vec<usize> = q.rows().counts().iter().copied().filter(|&rows| rows > 0).collect();
    let number = |e: usize| (counts[..=e / k].iter().sum::<usize>() - k + e % k) as u32;
    if !all_safe(comm, &end, number)? {
        return Ok(None);
    }
    if shape.rows == 0 {
        return Ok(Some(Default::default()));
    }
    let mut tips = vec![Scaled::ONE; reduced.n];
    reduced.substitute(reduced.n - 1, &[], &mut tips);
    let mut x = vec![Scaled::ZERO; shape.rows];
    let place = ends.active.rank() * k;
    x[inner..].copy_from_slice(&tips[place..place + k]);
    part.substitute(inner, &tips[place.saturating_sub(k)..place], &mut x);
    let common = if ends.active.rank() == 0 { reduced.stages(reduced.n - 1) } else { 0.0 };
    Ok(Some((x, part.stages(inner) + common)))
}

/// The rates of this rank, and those of the k states before it into its own. A collective of the ranks that have states.
fn loaded<R: Rate, C: Comm>(q: &DistributedCsr<'_, f64, C>, shape: &Shape, ends: &Ends<C>) -> Result<Part<R>> {
    let (m, k, rank) = (shape.rows, ends.k, ends.active.rank());
    let has_left = rank > 0;
    let reach = |i: usize| q.local().row(i).0.iter().map(move |&j| (j as usize).abs_diff(i)).max().unwrap_or(0);
    // The last k states couple with each other once those between them are gone.
    let w = (0..m).map(reach).max().unwrap_or(0).max(k - 1).min(m.saturating_sub(1));
    let mut part = Part::zeros(m, w, if has_left { k } else { 0 });
    // Row by row, the own last k states into the first k of the next rank.
    let mut onwards = vec![0.0; k * k];
    for i in 0..m {
        for (j, v) in q.row(i).filter(|&(j, _)| j as usize != i) {
            let to = q.global(j) as usize;
            if to < ends.first {
                part.to_left[i * k + to + k - ends.first] = R::new(v);
            } else if to < ends.first + m {
                let at = part.at(i, to - ends.first);
                part.band[at] = R::new(v);
            } else {
                onwards[(i + k - m) * k + to - ends.first - m] = v;
            }
        }
    }
    let has_right = rank + 1 < ends.active.size();
    let sends = [(rank + 1, &onwards[..])];
    let mut coming = vec![0.0; k * k];
    let mut receives = if has_left { vec![(rank - 1, &mut coming[..])] } else { Vec::new() };
    ends.active.exchange(RATES, if has_right { &sends } else { &[] }, &mut receives, || {})?;
    if has_left {
        for (s, rates) in coming.chunks_exact(k).enumerate() {
            // A rank has at least k states.
            for (j, &v) in rates.iter().enumerate().filter(|rate| *rate.1 > 0.0) {
                part.from_left[j * k + s] = R::new(v);
            }
        }
    }
    Ok(part)
}

/// The rates among [k states before, own last k], 2k × 2k by rows; zero where there are none before.
fn remaining<R: Rate>(part: &Part<R>, inner: usize, k: usize) -> Vec<R> {
    let mut rates = vec![R::default(); 4 * k * k];
    for s in 0..part.k {
        rates[s * 2 * k..][..k].copy_from_slice(&part.among[s * k..(s + 1) * k]);
        for j in 0..k {
            rates[s * 2 * k + k + j] = part.from_left[(inner + j) * k + s];
        }
    }
    for i in 0..k {
        let row = &mut rates[(k + i) * 2 * k..][..2 * k];
        if part.k > 0 {
            row[..k].copy_from_slice(&part.to_left[(inner + i) * k..][..k]);
        }
        for j in 0..k {
            row[k + j] = part.band[part.at(inner + i, inner + j)];
        }
    }
    rates
}

/// The chain of k states a rank that the gathered rates make.
fn joined<R: Rate>(gathered: &Parts<f64>, k: usize) -> Part<R> {
    let n = gathered.n_parts() * k;
    let mut chain = Part::zeros(n, (2 * k - 1).min(n - 1), 0);
    for (rank, rates) in gathered.iter().enumerate() {
        for (at, pair) in rates.chunks_exact(2).enumerate() {
            let (i, j) = (rank * k + at / (2 * k), rank * k + at % (2 * k));
            if pair[0] > 0.0 && i != j {
                // States of the rank before come first: those of rank 0 have none.
                let at = chain.at(i - k, j - k);
                chain.band[at] = chain.band[at] + R::from_scaled(Scaled::with_exponent(pair[0], pair[1] as i64));
            }
        }
    }
    chain
}

fn packed<R: Rate>(rates: &[R]) -> Vec<f64> {
    rates.iter().map(|r| r.scaled()).flat_map(|r| [r.mantissa(), r.exponent() as f64]).collect()
}

/// Whether no rank needs exponents; the same error on all where a state has no exit.
fn all_safe(comm: &impl Comm, end: &Result<(), Halt>, number: impl Fn(usize) -> u32) -> Result<bool> {
    let mut is_unsafe = [0.0];
    let fault = match end {
        Ok(()) => Ok(()),
        Err(Halt::Unsafe) => {
            is_unsafe[0] = 1.0;
            Ok(())
        }
        &Err(Halt::NoExit(e)) => Err(Fault {
            kind: FaultKind::Singular,
            message: format!(
                "state {} never leads to the last state of the chain, which is reducible: solve its closed classes apart",
                number(e)
            ),
        }),
    };
    agree(comm, fault)?;
    comm.all_max(&mut is_unsafe)?;
    Ok(is_unsafe[0] == 0.0)
}

/// x/Σx over all ranks. A collective.
fn normalized(comm: &impl Comm, mut x: Vec<Scaled>) -> Result<Vec<Scaled>> {
    let exponents = x.iter().filter(|x| !x.is_zero()).map(|x| x.exponent() as f64);
    let mut largest = [exponents.fold(f64::NEG_INFINITY, f64::max)];
    comm.all_max(&mut largest)?;
    // 2⁻⁴⁰ leaves room for as many states as there may be.
    let unit = largest[0] as i64 + 40;
    let mut sum = [x.iter().map(|x| x.relative_to(unit)).sum::<f64>()];
    comm.all_sum(&mut sum)?;
    let sum = Scaled::with_exponent(sum[0], unit);
    for x in &mut x {
        *x = *x / sum;
    }
    Ok(x)
}

/// max |Σᵢ πᵢ·q_ij − πⱼ·Σₗ q_jl| / πⱼ·Σₗ q_jl. A collective.
fn balance<C: Comm>(q: &DistributedCsr<'_, f64, C>, shape: &Shape, ends: &Ends<C>, pi: &[Scaled]) -> Result<f64> {
    let (m, k) = (shape.rows, ends.k);
    let mut worst = [0.0f64];
    if m > 0 {
        // Into the k states before, the own ones, and the k after.
        let mut inflow = vec![Scaled::ZERO; m + 2 * k];
        let mut outflow = vec![Scaled::ZERO; m];
        for i in 0..m {
            for (j, v) in q.row(i).filter(|&(j, v)| j as usize != i && v > 0.0) {
                let flow = pi[i] * Scaled::new(v);
                let to = &mut inflow[q.global(j) as usize + k - ends.first];
                *to = *to + flow;
                outflow[i] = outflow[i] + flow;
            }
        }
        let (rank, last) = (ends.active.rank(), ends.active.size() - 1);
        let (before, after) = (packed(&inflow[..k]), packed(&inflow[m + k..]));
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        let (mut from_before, mut from_after) = (vec![0.0; 2 * k], vec![0.0; 2 * k]);
        if rank > 0 {
            sends.push((rank - 1, &before[..]));
            receives.push((rank - 1, &mut from_before[..]));
        }
        if rank < last {
            sends.push((rank + 1, &after[..]));
            receives.push((rank + 1, &mut from_after[..]));
        }
        ends.active.exchange(FLOWS, &sends, &mut receives, || {})?;
        // The first k states hear from before, the last k from after.
        for (first, flows) in [(k, &from_before), (m, &from_after)] {
            for (to, pair) in inflow[first..].iter_mut().zip(flows.chunks_exact(2)) {
                *to = *to + Scaled::with_exponent(pair[0], pair[1] as i64);
            }
        }
        worst[0] = inflow[k..].iter().zip(&outflow).fold(0.0, |worst, (inflow, outflow)| {
            let off = match (inflow.is_zero(), outflow.is_zero()) {
                (true, true) => 0.0,
                (false, false) => (inflow.relative_to(outflow.exponent()) / outflow.mantissa() - 1.0).abs(),
                _ => f64::INFINITY,
            };
            worst.max(off)
        });
    }
    q.comm().all_max(&mut worst)?;
    Ok(worst[0])
}
