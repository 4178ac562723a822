//! When an iteration has done enough.

use std::time::Duration;

/// What the relative tolerance is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// ‖b‖₂
    Rhs,
    /// ‖b − A·x₀‖₂
    InitialResidual,
}

/// Stop when ‖b − Ax‖₂ ≤ max(atol, rtol·baseline), and never later than the limits allow.
///
/// The norm is that of the true residual, never a preconditioned one.
///
/// ```
/// use bt_formats::StopCriterion;
/// let stop = StopCriterion { rtol: 1e-10, ..StopCriterion::default() };
/// assert_eq!(stop.threshold(2.0, 8.0), 2e-10);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StopCriterion {
    /// Relative tolerance; default 1e-8.
    pub rtol: f64,
    /// Absolute tolerance; default 0.
    pub atol: f64,
    /// What `rtol` multiplies; default ‖b‖₂.
    pub baseline: Baseline,
    /// Iterations at most; default 10 000.
    pub max_iters: usize,
    /// Wall time at most; default none.
    pub time_limit: Option<Duration>,
}

impl Default for StopCriterion {
    fn default() -> Self {
        Self { rtol: 1e-8, atol: 0.0, baseline: Baseline::Rhs, max_iters: 10_000, time_limit: None }
    }
}

impl StopCriterion {
    /// max(atol, rtol·baseline) for the given ‖b‖₂ and ‖b − A·x₀‖₂.
    pub fn threshold(&self, norm_rhs: f64, norm_initial_residual: f64) -> f64 {
        let baseline = match self.baseline {
            Baseline::Rhs => norm_rhs,
            Baseline::InitialResidual => norm_initial_residual,
        };
        self.atol.max(self.rtol * baseline)
    }
}
