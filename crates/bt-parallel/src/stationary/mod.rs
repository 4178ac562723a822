//! Stationary distributions of chains whose states are spread over ranks in order: elimination without a subtraction.
//!
//! π·Q = 0, Σπ = 1 for the rates q_ij ≥ 0, i ≠ j, of a chain with one closed class; diagonals are minus the sums of the rates and
//! are not read. A rank censors its states but for the last k, k being how far rates reach beyond a rank: the method of W. K.
//! Grassmann, M. I. Taksar, D. P. Heyman, Oper. Res. 33 (1985) 1107–1116, doi:10.1287/opre.33.5.1107, in the order of SPIKE's
//! partitions. Rates among the k states before its first and its own last k are what is left, and add up to a chain of k states a
//! rank, whose rates all ranks gather and eliminate alike:
//!
//! ```text
//! sₑ = Σ_j q_ej     w_ie = q_ie/sₑ,   q_ij ← q_ij + w_ie·q_ej          i, j: states that are left
//! xₑ = Σ_i x_i·w_ie                   π = x/Σx
//! ```
//!
//! Where sₑ = 0 a closed class ends with e: xₑ = 1, and rates into e become rates into nothing that is left, a column of their own that
//! counts in s. So each closed class is found by its last state, whatever is transient gets x = 0, and a chain of several is refused.
//!
//! All operations are on positive numbers: in whatever order, entries are right to π_i·u·(4 + Σₑ 2wₑ(wₑ+3)), wₑ the states that are left
//! and coupled with e (see `bt_queue`). x has exponents of its own. Where a product of rates could underflow on some rank, all
//! eliminate again with an exponent at each rate.
//!
//! Storage of m states with rates to w states on either side: m·(2w + 2k + 2) numbers, 12k²·p for what is gathered. Flops of a rank: 2m(w + k)²
//! and 8p·k³. Counted: one message of 8k² bytes to the next rank, one gather of 32k(2k + 1) bytes, two messages of 16k bytes for the balance.

mod balance;
mod elimination;

use bt_formats::{Outcome, Scaled, memory};

use crate::comm::{Comm, Parts, Tag, Traffic};
use crate::csr::DistributedCsr;
use crate::error::{Fault, FaultKind, Result, agree};
use crate::spike::OwnRows;
use balance::Flows;
use elimination::{Digits, Part, Rate};

const RATES: Tag = Tag(0x5a);
/// Closed classes that an error names.
const NAMED: usize = 3;
/// Flows are sums of as many terms as a state has rates.
const ROUNDING: f64 = 1e-14;

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
    flows: Flows,
    error_bound: f64,
    recurrent: u64,
    mode: (u32, Scaled),
    least: Scaled,
    bytes: usize,
    traffic: Traffic,
}

impl StationaryDistribution {
    /// Of the chain with the rates off the diagonal of `q`. A collective.
    ///
    /// # Errors
    /// [`crate::Error::OnRank`] for a chain without states, a negative rate, states that are not consecutive in the order of the ranks, a rank with
    /// fewer states than rates reach (see [`crate::Division::contiguous_of_at_least`]), where memory is short; for a chain of several closed classes,
    /// as [`FaultKind::Singular`], with their number and a state of each of the first; those of the communicator.
    pub fn new<C: Comm>(q: &DistributedCsr<'_, f64, C>) -> Result<Self> {
        let comm = q.comm();
        agree(comm, check_rates(q))?;
        let shape = OwnRows::new(q)?;
        let ends = Ends { k: shape.k.max(1), active: comm.split(u32::from(shape.rows == 0), 0)?, first: shape.first };
        let solved = match eliminated::<f64, C>(q, &shape, &ends)? {
            Some(solved) => solved,
            None => eliminated::<Scaled, C>(q, &shape, &ends)?.unwrap_or_default(),
        };
        one_class(comm, &solved.roots)?;
        let own = normalized(comm, solved.x)?;
        let flows = Flows::new(q, &shape, &ends, &own)?;
        let positive = || own.iter().filter(|x| !x.is_zero());
        let mut sums = [solved.stages, positive().count() as f64];
        comm.all_sum(&mut sums)?;
        let (mode, least) = extremes(comm, q.rows().own(), &own)?;
        let error_bound = (4.0 + sums[0]) * f64::EPSILON / 2.0;
        let (recurrent, bytes) = (sums[1] as u64, solved.bytes);
        Ok(Self { own, flows, error_bound, recurrent, mode, least, bytes, traffic: ends.active.traffic() })
    }

    /// Probabilities of the states of this rank.
    pub fn own(&self) -> &[Scaled] {
        &self.own
    }

    /// [`Outcome::Converged`] where no state's flows differ by more than the bound of the error allows; [`Outcome::Inaccurate`] otherwise.
    pub fn outcome(&self) -> Outcome {
        if self.flows.balance <= self.error_bound + ROUNDING { Outcome::Converged } else { Outcome::Inaccurate }
    }

    /// max |inflow − outflow| / (inflow + outflow) over the states of all ranks, with the probabilities as they are returned.
    pub fn balance(&self) -> f64 {
        self.flows.balance
    }

    /// ‖πQ‖₁, in probability per unit of time.
    pub fn residual(&self) -> f64 {
        self.flows.residual
    }

    /// ‖πQ‖₁/Σπᵢ|q_ii|, relative to the flow through the chain.
    pub fn relative_residual(&self) -> f64 {
        if self.flows.flow > 0.0 { self.flows.residual / self.flows.flow } else { 0.0 }
    }

    /// Bound of the relative error of every probability, to first order in u.
    pub fn error_bound(&self) -> f64 {
        self.error_bound
    }

    /// States of the closed class; the others have probability zero.
    pub fn recurrent(&self) -> u64 {
        self.recurrent
    }

    /// The most probable state, the first of equals, and its probability.
    pub fn mode(&self) -> (u32, Scaled) {
        self.mode
    }

    /// The least probability of a recurrent state.
    pub fn least(&self) -> Scaled {
        self.least
    }

    /// Memory of what was eliminated on this rank.
    pub fn bytes(&self) -> usize {
        self.bytes
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
    if q.rows().n() == 0 {
        return Err(Fault::input("the chain has no states"));
    }
    for (i, &g) in q.rows().own().iter().enumerate() {
        if let Some((j, v)) = q.row(i).find(|&(j, v)| j as usize != i && v < 0.0) {
            let to = q.global(j);
            return Err(Fault::input(format!(
                "the rate from state {g} to state {to} (from 0) is {v}: rates are not negative"
            )));
        }
    }
    Ok(())
}

/// What an elimination leaves on a rank.
#[derive(Default)]
struct Solved {
    /// Of the own states, up to a factor that all ranks share.
    x: Vec<Scaled>,
    /// What the bound rests on, each stage counted once.
    stages: f64,
    /// The last states of closed classes, each told by one rank.
    roots: Vec<u32>,
    bytes: usize,
}

/// π up to a factor; `None` where doubles will not do. A collective.
fn eliminated<R: Rate, C: Comm>(
    q: &DistributedCsr<'_, f64, C>,
    shape: &OwnRows,
    ends: &Ends<C>,
) -> Result<Option<Solved>> {
    let (comm, k) = (q.comm(), ends.k);
    let inner = shape.rows.saturating_sub(k);
    let mut part = agree(comm, room::<R, C>(q, shape, ends))?;
    if shape.rows > 0 {
        load(&mut part, q, shape, ends)?;
    }
    if !all_kept(comm, part.eliminate(inner))? {
        return Ok(None);
    }
    // The k states of an active rank are its last.
    let counts: Vec<usize> = q.rows().counts().iter().copied().filter(|&rows| rows > 0).collect();
    let n = if shape.rows > 0 { counts.len() * k } else { 0 };
    let mut reduced = agree(comm, Part::<R>::zeros(n, (2 * k - 1).min(n.saturating_sub(1)), 0))?;
    if shape.rows > 0 {
        join(&mut reduced, &ends.active.all_gather(&packed(&remaining(&part, inner, k)))?, k);
    }
    if !all_kept(comm, reduced.eliminate(n))? {
        return Ok(None);
    }
    if shape.rows == 0 {
        return Ok(Some(Solved::default()));
    }
    let mut tips = vec![Scaled::ZERO; n];
    reduced.substitute(n, &[], &mut tips);
    let mut x = vec![Scaled::ZERO; shape.rows];
    let place = ends.active.rank() * k;
    x[inner..].copy_from_slice(&tips[place..place + k]);
    part.substitute(inner, &tips[place.saturating_sub(k)..place], &mut x);
    let mut solved = Solved {
        x,
        stages: part.stages(inner),
        roots: part.roots.iter().map(|&e| q.rows().own()[e]).collect(),
        bytes: part.bytes() + reduced.bytes(),
    };
    // All ranks have the same reduced chain.
    if ends.active.rank() == 0 {
        let number = |&e: &usize| (counts[..=e / k].iter().sum::<usize>() - k + e % k) as u32;
        solved.roots.extend(reduced.roots.iter().map(number));
        solved.stages += reduced.stages(n);
    }
    Ok(Some(solved))
}

/// Room for the rates of this rank, once there is some for what is sent and gathered too.
fn room<R: Rate, C: Comm>(q: &DistributedCsr<'_, f64, C>, shape: &OwnRows, ends: &Ends<C>) -> Result<Part<R>, Fault> {
    let (m, k) = (shape.rows, ends.k);
    if m == 0 {
        return Part::zeros(0, 0, 0);
    }
    // Each rank's 2k(2k + 1) rates as two numbers, those of this one twice.
    let rates = (4 * k as u64 + 2).saturating_mul(16 * k as u64);
    memory::ask(rates.saturating_mul(ends.active.size() as u64 + 2), "the rates among the last states of all ranks")?;
    let reach = |i: usize| q.local().row(i).0.iter().map(move |&j| (j as usize).abs_diff(i)).max().unwrap_or(0);
    // The last k states couple with each other once those between them are gone.
    let w = (0..m).map(reach).max().unwrap_or(0).max(k - 1).min(m - 1);
    Part::zeros(m, w, if ends.active.rank() > 0 { k } else { 0 })
}

/// The rates of this rank, and those of the k states before it into its own. A collective of the ranks that have states.
fn load<R: Rate, C: Comm>(
    part: &mut Part<R>,
    q: &DistributedCsr<'_, f64, C>,
    shape: &OwnRows,
    ends: &Ends<C>,
) -> Result<()> {
    let (m, k, rank) = (shape.rows, ends.k, ends.active.rank());
    let has_left = rank > 0;
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
    Ok(())
}

/// The rates among [k states before, own last k] by rows, and behind each row what leads into closed classes; zero where there are none before.
fn remaining<R: Rate>(part: &Part<R>, inner: usize, k: usize) -> Vec<R> {
    let mut rates = vec![R::default(); 2 * k * (2 * k + 1)];
    let (before, own) = rates.split_at_mut(k * (2 * k + 1));
    for (s, row) in before.chunks_exact_mut(2 * k + 1).enumerate().take(part.k) {
        row[..k].copy_from_slice(&part.among[s * k..(s + 1) * k]);
        for j in 0..k {
            row[k + j] = part.from_left[(inner + j) * k + s];
        }
        row[2 * k] = part.gone_left[s];
    }
    for (i, row) in own.chunks_exact_mut(2 * k + 1).enumerate() {
        if part.k > 0 {
            row[..k].copy_from_slice(&part.to_left[(inner + i) * k..][..k]);
        }
        for j in 0..k {
            row[k + j] = part.band[part.at(inner + i, inner + j)];
        }
        row[2 * k] = part.gone[inner + i];
    }
    rates
}

/// Adds up the chain of k states a rank that the gathered rates make.
fn join<R: Rate>(chain: &mut Part<R>, gathered: &Parts<f64>, k: usize) {
    for (rank, rates) in gathered.iter().enumerate() {
        for (at, pair) in rates.chunks_exact(2).enumerate() {
            let (i, column) = (rank * k + at / (2 * k + 1), at % (2 * k + 1));
            let j = rank * k + column;
            if pair[0] == 0.0 || (column < 2 * k && i == j) {
                continue;
            }
            let rate = R::from_scaled(Scaled::with_exponent(pair[0], pair[1] as i64));
            // States of the rank before come first: those of rank 0 have none.
            if column == 2 * k {
                chain.gone[i - k] = chain.gone[i - k] + rate;
            } else {
                let at = chain.at(i - k, j - k);
                chain.band[at] = chain.band[at] + rate;
            }
        }
    }
}

fn packed<R: Rate>(rates: &[R]) -> Vec<f64> {
    rates.iter().map(|r| r.scaled()).flat_map(|r| [r.mantissa(), r.exponent() as f64]).collect()
}

/// Whether no rank needs exponents. A collective.
fn all_kept(comm: &impl Comm, digits: Digits) -> Result<bool> {
    let mut lost = [f64::from(u8::from(digits == Digits::Lost))];
    comm.all_max(&mut lost)?;
    Ok(lost[0] == 0.0)
}

/// Refuses a chain of several closed classes, of which each rank knows some by their last states. A collective.
fn one_class(comm: &impl Comm, roots: &[u32]) -> Result<()> {
    let mut count = [roots.len() as f64];
    comm.all_sum(&mut count)?;
    let mut states = comm.all_gather(&roots[..roots.len().min(NAMED)])?.values().to_vec();
    states.sort_unstable();
    let more = if count[0] as usize > NAMED { ", …" } else { "" };
    let states: Vec<String> = states.iter().take(NAMED).map(|state| format!("that of state {state}")).collect();
    let several = || {
        let message = format!(
            "the chain has {} closed classes ({}{more}; states from 0): its stationary distribution is not unique",
            count[0],
            states.join(", ")
        );
        Fault::new(FaultKind::Singular, message)
    };
    agree(comm, if count[0] > 1.0 { Err(several()) } else { Ok(()) })
}

/// The most probable state of all ranks with its probability, and the least positive probability. A collective.
fn extremes(comm: &impl Comm, states: &[u32], pi: &[Scaled]) -> Result<((u32, Scaled), Scaled)> {
    let of = |a: (u32, Scaled), b: (u32, Scaled)| if b.1 > a.1 { b } else { a };
    let own = states.iter().copied().zip(pi.iter().copied()).reduce(of).unwrap_or((0, Scaled::ZERO));
    let least = |a: Scaled, b: Scaled| if a.is_zero() || (b < a && !b.is_zero()) { b } else { a };
    let own_least = pi.iter().copied().fold(Scaled::ZERO, least);
    let found = comm.all_gather(&packed(&[own.1, own_least]))?;
    let states = comm.all_gather(&[own.0])?;
    let mut extremes = ((0, Scaled::ZERO), Scaled::ZERO);
    for (&state, numbers) in states.values().iter().zip(found.values().chunks_exact(4)) {
        let [most, smallest] = [0, 2].map(|k| Scaled::with_exponent(numbers[k], numbers[k + 1] as i64));
        extremes = (of(extremes.0, (state, most)), least(extremes.1, smallest));
    }
    Ok(extremes)
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
