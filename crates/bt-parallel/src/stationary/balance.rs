//! The certificate: flows into each state and out of it, over all ranks.
//!
//! Communication: two messages of 16k bytes, to the rank before and to the one after.

use bt_formats::Scaled;

use super::{Ends, packed};
use crate::comm::{Comm, Tag};
use crate::csr::DistributedCsr;
use crate::error::Result;
use crate::spike::OwnRows;

const FLOWS: Tag = Tag(0x5b);

/// How well flows balance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Flows {
    /// max |Σᵢ πᵢ·q_ij − πⱼ·Σₗ q_jl| / (Σᵢ πᵢ·q_ij + πⱼ·Σₗ q_jl)
    pub balance: f64,
    /// ‖πQ‖₁
    pub residual: f64,
    /// Σⱼ πⱼ·Σₗ q_jl
    pub flow: f64,
}

impl Flows {
    /// Of all states. A collective.
    pub fn new<C: Comm>(
        q: &DistributedCsr<'_, f64, C>,
        shape: &OwnRows,
        ends: &Ends<C>,
        pi: &[Scaled],
    ) -> Result<Self> {
        let (m, k) = (shape.rows, ends.k);
        let mut found = Self { balance: 0.0, residual: 0.0, flow: 0.0 };
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
            for (&into, &out) in inflow[k..].iter().zip(&outflow) {
                found.add(into, out);
            }
        }
        let mut worst = [found.balance];
        q.comm().all_max(&mut worst)?;
        let mut sums = [found.residual, found.flow];
        q.comm().all_sum(&mut sums)?;
        Ok(Self { balance: worst[0], residual: sums[0], flow: sums[1] })
    }

    /// The flows of one state.
    fn add(&mut self, into: Scaled, out: Scaled) {
        let larger = into.max(out);
        if larger.is_zero() {
            return;
        }
        let unit = larger.exponent();
        let (into, out) = (into.relative_to(unit), out.relative_to(unit));
        self.balance = self.balance.max((into - out).abs() / (into + out));
        self.residual += Scaled::with_exponent(into - out, unit).to_f64();
        self.flow += Scaled::with_exponent(out, unit).to_f64();
    }
}
