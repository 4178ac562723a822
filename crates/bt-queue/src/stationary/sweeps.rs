//! Sweeps over the levels without subtraction: block Gauss–Seidel, and the weights of the levels made exact in between.
//!
//! With Q split by level into the blocks D_j on the diagonal and what leads from other levels into level j, a sweep sets, one
//! level after the other, upwards and downwards in turn,
//!
//! ```text
//! x_j ← r_j(−D_j)⁻¹,   r_j = Σ_{k≠j} x_k Q_kj
//! ```
//!
//! −D_j is an M-matrix, and its row sums, the rates out of the level, are known: it is eliminated as in [`gth`](super::gth), every
//! pivot the sum of what is left and of the exit. Before a sweep the levels are weighted: in equilibrium the flow up between two
//! levels is the flow down, c_j·u_j = c_{j+1}·d_{j+1} (aggregation and disaggregation: R. Koury, D. F. McAllister, W. J. Stewart,
//! SIAM J. Alg. Disc. Meth. 5 (1984) 164–186, doi:10.1137/0605019). All terms are positive, so that small probabilities have as
//! many digits as large ones, and levels that hardly lead to each other do not slow it down.
//!
//! Storage: Qᵀ, 8 bytes for each place of the envelopes of all D_j, 24n. Cost of a sweep: two flops a place and four an entry of Q.

use bt_formats::{Csr, Partition};

use super::gth::{Border, Envelope, Rate, filled_where};
use crate::error::{Error, Result};
use crate::generator::Generator;
use crate::scaled::Scaled;

pub(super) struct Sweeps<'a> {
    q: &'a Generator,
    /// Qᵀ.
    into: Csr<f64>,
    levels: &'a Partition,
    envelope: Envelope,
    /// The blocks D_j, eliminated.
    rates: Vec<f64>,
    pivots: Vec<f64>,
    next: Direction,
}

#[derive(Clone, Copy)]
enum Direction {
    Up,
    Down,
}

impl<'a> Sweeps<'a> {
    /// For an irreducible chain of at least two levels.
    pub(super) fn new(q: &'a Generator, levels: &'a Partition) -> Result<Self> {
        check(q, levels)?;
        let level: Vec<u32> = (0u32..).zip(levels.sizes()).flat_map(|(j, k)| std::iter::repeat_n(j, k)).collect();
        let inside = |i: usize, j: usize| level[i] == level[j];
        let mut low: Vec<u32> = (0..q.n() as u32).collect();
        let mut exit = vec![0.0; q.n()];
        for i in 0..q.n() {
            for (j, rate) in q.rates(i) {
                if inside(i, j) {
                    let low = &mut low[i.max(j)];
                    *low = (*low).min(i.min(j) as u32);
                } else {
                    exit[i] += rate;
                }
            }
        }
        for e in (1..low.len()).rev() {
            low[e - 1] = low[e - 1].min(low[e]);
        }
        let envelope = Envelope::new(low);
        let mut rates = filled_where::<f64>(q, None, &envelope, inside)?;
        let mut border = Border { exit, reward: vec![0.0; q.n()], pivots: vec![0.0; q.n()] };
        f64::eliminate(&envelope, &mut rates, Some(&mut border)).map_err(|_| Error::Failed {
            method: "sweeps over the levels",
            reason: "the rates span more than doubles can hold".into(),
        })?;
        let mut pivots = border.pivots;
        // The first state has nowhere to go but out, once all others are eliminated.
        pivots[0] = border.exit[0];
        Ok(Self { q, into: q.matrix().transpose(), levels, envelope, rates, pivots, next: Direction::Up })
    }

    pub(super) fn bytes(&self) -> usize {
        use bt_formats::Matrix;
        self.into.bytes() + 8 * (self.rates.len() + self.pivots.len())
    }

    /// Weights the levels and sweeps once; x is scaled as it comes.
    pub(super) fn step<T: Rate>(&mut self, x: &mut [T]) {
        self.weight(x);
        let n_levels = self.levels.n_blocks();
        match self.next {
            Direction::Up => (0..n_levels).for_each(|j| self.solve(j, x)),
            Direction::Down => (0..n_levels).rev().for_each(|j| self.solve(j, x)),
        }
        self.next = match self.next {
            Direction::Up => Direction::Down,
            Direction::Down => Direction::Up,
        };
    }

    /// x_j ← c_j x_j with c_{j+1} = c_j·u_j/d_{j+1}: the flows between neighbouring levels balance. The largest level has Σx_j
    /// between 1 and 2 then. Nothing happens where a level has no flow, which only underflow can leave.
    fn weight<T: Rate>(&self, x: &mut [T]) {
        let n_levels = self.levels.n_blocks();
        let (mut up, mut down) = (vec![T::ZERO; n_levels], vec![T::ZERO; n_levels]);
        for j in 0..n_levels {
            let range = self.levels.range(j);
            for i in range.clone() {
                for (to, rate) in self.q.rates(i) {
                    let flow = x[i].mul(T::new(rate));
                    if to < range.start {
                        down[j] = down[j].add(flow);
                    } else if to >= range.end {
                        up[j] = up[j].add(flow);
                    }
                }
            }
        }
        let mut weights = vec![Scaled::ONE; n_levels];
        for j in 1..n_levels {
            let (u, d) = (up[j - 1].scaled(), down[j].scaled());
            if u.is_zero() || d.is_zero() {
                return;
            }
            weights[j] = weights[j - 1] * u / d;
        }
        let mass = |j: usize| x[self.levels.range(j)].iter().fold(T::ZERO, |s, &x| s.add(x)).scaled();
        let largest = (0..n_levels).map(|j| weights[j] * mass(j)).fold(Scaled::ZERO, Scaled::max);
        let unit = Scaled::with_exponent(1.0, largest.exponent());
        for (j, &w) in weights.iter().enumerate() {
            for x in &mut x[self.levels.range(j)] {
                *x = T::from_scaled(x.scaled() * w / unit);
            }
        }
    }

    /// x_j ← r_j(−D_j)⁻¹.
    fn solve<T: Rate>(&self, j: usize, x: &mut [T]) {
        let (a, b) = (self.levels.range(j).start, self.levels.range(j).end);
        for to in a..b {
            let (from, rates) = self.into.row(to);
            let outside = from.iter().zip(rates).filter(|e| !(a..b).contains(&(*e.0 as usize)));
            x[to] = outside.fold(T::ZERO, |r, (&i, &rate)| r.add(x[i as usize].mul(T::new(rate))));
        }
        // r_j is passed on by the states that are eliminated, the last one first: ρₑ = rₑ/sₑ, r_i += ρₑ·q_ei
        for e in (a..b).rev() {
            let rho = x[e].div(T::new(self.pivots[e]));
            x[e] = rho;
            let low = self.envelope.first(e).max(a);
            let at = self.envelope.at(e, low);
            for (r, &q) in x[low..e].iter_mut().zip(&self.rates[at..]) {
                *r = r.add(rho.mul(T::new(q)));
            }
        }
        // xₑ = ρₑ + Σ_{i<e} x_i·w_ie
        for i in a..b {
            let (x_i, end) = (x[i], self.envelope.end(i).min(b));
            let at = self.envelope.at(i, i) + 1;
            for (x_e, &w) in x[i + 1..end].iter_mut().zip(&self.rates[at..]) {
                *x_e = x_e.add(x_i.mul(T::new(w)));
            }
        }
    }
}

/// Rates lead to the same level or a neighbouring one.
fn check(q: &Generator, levels: &Partition) -> Result<()> {
    for i in 0..q.n() {
        let level = levels.block_of(i);
        if let Some((col, _)) = q.rates(i).find(|&(to, _)| levels.block_of(to).abs_diff(level) > 1) {
            let why =
                format!("a rate leads from level {level} to level {}, which are no neighbours", levels.block_of(col));
            return Err(bt_formats::Error::OutsideStructure { row: i, col, why }.into());
        }
    }
    Ok(())
}
