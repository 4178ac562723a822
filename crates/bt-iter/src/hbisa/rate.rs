//! How fast a stationary iteration converges: its spectral radius from the norms it shows, with an interval, and the
//! alarm for divergence.

/// Norms of the last 2·16 sweeps.
#[derive(Clone, Debug, Default)]
pub struct Rate {
    count: usize,
    smallest: f64,
    logs: [f64; 2 * Rate::WINDOW],
    /// Predicted sweeps in all, from the first full history.
    pub predicted: Option<usize>,
}

/// An estimated spectral radius ρ, `low` ≤ ρ ≤ `high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Radius {
    /// Lower end of the interval.
    pub low: f64,
    /// ρ.
    pub rho: f64,
    /// Upper end.
    pub high: f64,
}

impl Rate {
    const WINDOW: usize = 16;
    /// Growth over the smallest norm seen that no convergent iteration of practical interest shows.
    const HOPELESS: f64 = 1e8;
    /// Growth that is divergence once the whole history grows steadily.
    const STEADY: f64 = 1e3;

    /// Takes the next norm; true once the iteration diverges.
    pub fn diverges(&mut self, norm: f64) -> bool {
        if norm.is_infinite() {
            return false; // no update has been seen yet
        }
        self.smallest = if self.count == 0 { norm } else { self.smallest.min(norm) };
        self.logs[self.count % self.logs.len()] = norm.ln();
        self.count += 1;
        let growth = if self.smallest > 0.0 { norm / self.smallest } else { 0.0 };
        growth > Self::HOPELESS || (growth > Self::STEADY && self.radius().is_some_and(|r| r.low > 1.0))
    }

    /// After the norms have been taken: how many sweeps it will be until `norm` falls to `target`, remembered once.
    pub fn predict(&mut self, norm: f64, target: f64, done: usize) {
        if self.predicted.is_none()
            && let Some(radius) = self.radius()
            && let Some(left) = sweeps_left(norm, target, radius.rho)
        {
            self.predicted = Some(done + left);
        }
    }

    /// Forgets the history: the iteration has changed.
    pub fn restart(&mut self) {
        self.count = 0;
        self.predicted = None;
    }

    /// ln ‖·‖ of k sweeps ago.
    fn log(&self, k: usize) -> f64 {
        self.logs[(self.count - 1 - k) % self.logs.len()]
    }

    /// The geometric mean over the last window, and how far it may be off: what it changed from the window before, and what
    /// an oscillation of the size seen inside the window does to its ends.
    pub fn radius(&self) -> Option<Radius> {
        const W: usize = Rate::WINDOW;
        if self.count < 2 * W || !(0..2 * W).all(|k| self.log(k).is_finite()) {
            return None;
        }
        let steps = (W - 1) as f64;
        let slope = (self.log(0) - self.log(W - 1)) / steps;
        let before = (self.log(W) - self.log(2 * W - 1)) / steps;
        // Off the straight line through the ends of the window.
        let off = |k: usize| self.log(k) - (self.log(0) - slope * k as f64);
        let (most, least) = (0..W).map(off).fold((0.0f64, 0.0f64), |(m, l), v| (m.max(v), l.min(v)));
        let width = (slope - before).abs() + (most - least) / steps;
        Some(Radius { low: (slope - width).exp(), rho: slope.exp(), high: (slope + width).exp() })
    }
}

/// k with norm·ρᵏ ≤ target.
pub(super) fn sweeps_left(norm: f64, target: f64, rho: f64) -> Option<usize> {
    (rho < 1.0 && norm > target && target > 0.0).then(|| ((target / norm).ln() / rho.ln()).ceil() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_an_oscillating_radius() {
        let mut rate = Rate::default();
        for k in 0..40 {
            let norm = 0.9f64.powi(k) * (1.5 + (0.8 * f64::from(k)).cos());
            assert!(!rate.diverges(norm));
            rate.predict(norm, 1e-6, k as usize);
        }
        let radius = rate.radius().unwrap();
        assert!(radius.low < 0.9 && 0.9 < radius.high && radius.high - radius.low < 0.3, "{radius:?}");
        // ln 1e-6 / ln 0.9 = 131.1
        assert!(rate.predicted.unwrap().abs_diff(132) <= 40, "{:?}", rate.predicted);
    }

    #[test]
    fn steady_growth_is_divergence_before_it_is_hopeless() {
        let mut rate = Rate::default();
        let first = (0..200).find(|&k| rate.diverges(1.25f64.powi(k))).unwrap();
        assert_eq!(first, 31);
        // A transient that decays.
        let mut rate = Rate::default();
        assert!((0..100).all(|k| !rate.diverges((1.0 + f64::from(k).powi(3)) * 0.9f64.powi(k))));
    }
}
