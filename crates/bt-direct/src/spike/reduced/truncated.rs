//! Truncated: V^(t) and W^(b) are dropped, and S̃ falls apart into one small system [I V_i^(b); W_{i+1}^(t) I] a cut.
//!
//! C. C. K. Mikkelsen and M. Manguoglu, SIAM J. Matrix Anal. Appl. 30 (2008) 1500–1519, doi:10.1137/080719571.
//! What was dropped is bounded: the solution is that of A − D·E with E the dropped tips, and
//!
//! ```text
//! ‖x̂ − x‖∞ ≤ maxᵢ ‖Kᵢ⁻¹‖∞ · max(1, ‖V‖∞ + ‖W‖∞) · max(‖V^(t)‖∞, ‖W^(b)‖∞) · ‖x‖∞
//! ```
//!
//! with ‖K⁻¹‖∞ ≤ (1 + max(ν, ω))/(1 − νω) for ν = ‖V^(b)‖∞, ω = ‖W^(t)‖∞, which are computed; the other norms are bounded
//! by a substitution with moduli in the factors. Rounding aside, nothing is estimated.

use bt_formats::{Op, RealScalar, Scalar};
use faer::MatMut;

use super::super::TRUNCATED;
use super::super::factor::Part;
use super::super::partition::Layout;
use super::{check_pivots, factor_pair, named, pair};
use crate::band_lu::BandLu;
use crate::error::{FactorError, Result};
use crate::factorization::Factorization;

pub(in super::super) struct Truncated<T: Scalar> {
    lu: Vec<BandLu<T>>,
    tolerance: f64,
    /// The bound above, relative to ‖x‖∞.
    pub(in super::super) dropped: f64,
}

impl<T: Scalar> Truncated<T> {
    pub(super) fn empty(layout: &Layout, tolerance: f64) -> Result<Self> {
        let lu = layout.interfaces.iter().map(pair).collect::<Result<_>>()?;
        Ok(Self { lu, tolerance, dropped: f64::NAN })
    }

    pub(super) fn factor(&mut self, layout: &Layout, parts: &[Part<T>]) -> Result<f64> {
        let (mut inverse, mut interior, mut far) = (1.0f64, 1.0f64, 0.0f64);
        for (i, (lu, cut)) in self.lu.iter_mut().zip(&layout.interfaces).enumerate() {
            factor_pair(lu, cut, parts[i].tips.vb.as_ref(), parts[i + 1].tips.wt.as_ref())
                .map_err(|e| named(e, i, cut))?;
            check_pivots::<T>(lu.stats(), layout.n(), Some(i))?;
            let (v, w) = (parts[i].measured.v_near, parts[i + 1].measured.w_near);
            let bound = if v * w < 1.0 { (1.0 + v.max(w)) / (1.0 - v * w) } else { f64::INFINITY };
            inverse = inverse.max_nan(bound);
        }
        for part in parts {
            interior = interior.max_nan(part.measured.interior);
            far = far.max_nan(part.measured.far);
        }
        self.dropped = if far == 0.0 { 0.0 } else { inverse * interior * far };
        if self.dropped <= self.tolerance {
            return Ok(0.0);
        }
        let reason = format!(
            "truncation may change solutions by {:.1e} of their size, more than the {:.1e} allowed; spike with a \
             recursive reduced system drops nothing, band-lu does not partition",
            self.dropped, self.tolerance
        );
        Err(FactorError::breakdown(TRUNCATED, None, reason))
    }

    pub(super) fn solve(&self, op: Op, layout: &Layout, mut x: MatMut<'_, T>) {
        for (lu, cut) in self.lu.iter().zip(&layout.interfaces) {
            let rows = cut.rows();
            lu.solve_op_in_place(op, x.as_mut().subrows_mut(rows.start, rows.len()));
        }
    }

    pub(super) fn factors(&self) -> impl Iterator<Item = &BandLu<T>> {
        self.lu.iter()
    }
}
