//! Self-tuning of the red–black iterations: the spectrum of the block Jacobi iteration from a few sweeps, and the relaxation
//! that suits it.
//!
//! The block graph of a block-tridiagonal matrix is 2-cyclic, so that every eigenvalue λ of block SOR belongs to one, μ, of
//! block Jacobi (D. M. Young, Trans. AMS 76 (1954), doi:10.1090/S0002-9947-1954-0059635-7):
//!
//! ```text
//! (λ + ω − 1)² = λ·ω²·μ²
//! ```
//!
//! The sign of μ² decides: real μ ask for ω > 1, imaginary ones for ω < 1. Successive updates dᵏ = xᵏ⁺¹ − xᵏ are powers of
//! the iteration applied to d⁰; the quadratic that annihilates three of them in the least-squares sense has the two
//! dominant λ as its roots (Prony). The updates are seen through 16 fixed signed sums, so that no vector is kept. Once an
//! iteration with the relaxation found is slower than predicted, its own λ give better μ² (the adaptive scheme of L. A.
//! Hageman, D. M. Young, Applied Iterative Methods, Academic Press 1981, ch. 9).

use bt_formats::{Scalar, c64};

/// Signed sums of an update.
const LANES: usize = 16;
/// Sweeps before the first fit, and between two.
const WAIT: usize = 8;
/// Updates that a fit looks at.
const FITTED: usize = 6;
/// Part of the updates that two eigenvalues leave unexplained, squared, up to which a fit is believed at once.
const MISFIT: f64 = 3e-3;
/// Sweeps after which it is believed as it is.
const PATIENT: usize = 24;
/// The plain decrease to this power has to be reached for a change.
const GAIN: f64 = 1.5;
/// Observed over predicted decrease, in logarithms, below which the spectrum is estimated again.
const SLOWER: f64 = 0.85;
/// Fits at most.
const FITS: usize = 12;

type Sketch = [c64; LANES];

/// The spectrum of the block Jacobi iteration, as far as it has shown itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spectrum {
    /// μ² that dominated, one or two a fit, `count` of them.
    squares: [c64; 2 * FITS],
    count: usize,
}

impl Spectrum {
    fn squares(&self) -> &[c64] {
        &self.squares[..self.count]
    }

    fn push(&mut self, square: c64) {
        if self.count < self.squares.len() {
            self.squares[self.count] = square;
            self.count += 1;
        }
    }

    /// What the sweeps saw, in words.
    pub fn kind(&self) -> &'static str {
        let scale = self.squares().iter().map(|m| m.norm()).fold(0.0, f64::max);
        let imaginary = self.squares().iter().any(|m| m.im.abs() > 0.05 * scale);
        let (positive, negative) =
            (self.squares().iter().any(|m| m.re > 0.05 * scale), self.squares().iter().any(|m| m.re < -0.05 * scale));
        match (imaginary, positive, negative) {
            (true, ..) => "complex",
            (false, true, false) => "real",
            (false, false, true) => "imaginary",
            _ => "real and imaginary",
        }
    }

    /// max |μ|
    pub fn radius(&self) -> f64 {
        self.squares().iter().map(|m| m.norm()).fold(0.0, f64::max).sqrt()
    }

    /// The interval of μ², 0 included, unless some are complex.
    pub fn interval(&self) -> Option<(f64, f64)> {
        (self.kind() != "complex").then(|| {
            let fold = |f: fn(f64, f64) -> f64| self.squares().iter().map(|m| m.re).fold(0.0, f);
            (fold(f64::min), fold(f64::max))
        })
    }

    /// Takes in μ² = (λ + ω − 1)²/(λω²).
    fn learn(&mut self, lambda: c64, omega: f64) {
        if lambda.norm() > 1e-3 {
            let shifted = lambda + (omega - 1.0);
            self.push(shifted * shifted / (lambda * (omega * omega)));
        }
    }

    /// The ω of the smallest spectral radius over the μ² known, and that radius: golden sections around the best of a
    /// grid.
    pub fn best_omega(&self) -> (f64, f64) {
        let radius = |omega: f64| self.squares().iter().map(|&m| sor_radius(omega, m)).fold(0.0, f64::max);
        let grid = (1..200).map(|k| f64::from(k) / 100.0);
        let coarse = grid.min_by(|a, b| radius(*a).total_cmp(&radius(*b))).expect("199 points");
        let (mut low, mut high) = (coarse - 0.01, coarse + 0.01);
        let ratio = (5f64.sqrt() - 1.0) / 2.0;
        for _ in 0..30 {
            let (left, right) = (high - ratio * (high - low), low + ratio * (high - low));
            if radius(left) < radius(right) { high = right } else { low = left }
        }
        let omega = f64::midpoint(low, high);
        (omega, radius(omega))
    }
}

/// The larger |λ| of (λ + ω − 1)² = λω²μ², from y² − ωμ·y + ω − 1 = 0 with λ = y².
pub(super) fn sor_radius(omega: f64, mu_squared: c64) -> f64 {
    let half = mu_squared.sqrt() * (omega / 2.0);
    let root = (half * half - (omega - 1.0)).sqrt();
    (half + root).norm_sqr().max((half - root).norm_sqr())
}

/// Watches the updates of a red–black iteration with one relaxation at a time.
#[derive(Default)]
pub(super) struct Tuner {
    sketches: [Sketch; FITTED],
    /// ‖dᵏ‖₂ of the last two updates.
    norms: [f64; 2],
    seen: usize,
    fits: usize,
    pub spectrum: Spectrum,
}

impl Tuner {
    /// Chebyshev steps before their decrease is judged.
    pub const PATIENCE: usize = 10;

    /// Takes in the update x − previous of a sweep.
    pub fn observe<T: Scalar>(&mut self, x: &[T], previous: &[T]) {
        let mut sketch = Sketch::default();
        for (k, (x, p)) in x.chunks(LANES).zip(previous.chunks(LANES)).enumerate() {
            // A sign a chunk, of no pattern: without it smooth updates would cancel or add up.
            let sign = if (k.wrapping_mul(0x9E37_79B9) >> 15) & 1 == 0 { 1.0 } else { -1.0 };
            for (s, (&x, &p)) in sketch.iter_mut().zip(x.iter().zip(p)) {
                *s += (x - p).cast::<c64>() * sign;
            }
        }
        self.sketches[self.seen % FITTED] = sketch;
        self.norms = [self.norms[1], super::distance2(x, previous)];
        self.seen += 1;
    }

    /// With relaxation ω, the decrease a sweep that was predicted for it, and the rate that a spectrum allows: whether the
    /// spectrum is known better now.
    pub fn learn(&mut self, omega: f64, predicted: Option<f64>, rate: impl Fn(&Spectrum) -> f64) -> bool {
        if self.seen < WAIT.max(FITTED) || self.fits == FITS {
            return false;
        }
        let Some(Fit { larger, smaller, misfit }) = self.fit() else { return false };
        // While more than two eigenvalues take part, later updates tell more.
        if misfit > MISFIT && self.seen < PATIENT {
            return false;
        }
        // The transient of a new relaxation grows; what grows for long diverges.
        if predicted.is_some() && larger.norm() >= 1.0 && self.seen < 2 * PATIENT {
            return false;
        }
        let before = self.spectrum;
        match predicted {
            None => {
                self.spectrum.learn(larger, omega);
                self.spectrum.learn(smaller, omega);
                // Too little to gain: look again later.
                if larger.norm() < 1.0 && rate(&self.spectrum) > larger.norm().powf(GAIN) {
                    self.spectrum = Spectrum::default();
                    (self.seen, self.fits) = (0, self.fits + 1);
                    return false;
                }
            }
            // ln|λ| of the sweeps against ln of the prediction, both negative.
            Some(predicted) if larger.norm().ln() > SLOWER * predicted.ln() => self.spectrum.learn(larger, omega),
            Some(_) => {
                self.seen = 0;
                return false;
            }
        }
        (self.seen, self.fits) = (0, self.fits + 1);
        if !(rate(&self.spectrum) < 1.0) {
            // Nothing converges there: rather the relaxation as it is.
            self.spectrum = before;
            return false;
        }
        !self.spectrum.squares().is_empty()
    }

    /// Whether the last two updates point the same way.
    pub fn same_direction(&self) -> bool {
        let last = |k: usize| &self.sketches[(self.seen + 2 * FITTED - k) % FITTED];
        last(1).iter().zip(last(2)).map(|(a, b)| (a.conj() * b).re).sum::<f64>() >= 0.0
    }

    /// Takes a real μ² into the spectrum.
    pub fn widen(&mut self, square: f64) {
        self.spectrum.push(c64::new(square, 0.0));
        (self.seen, self.fits) = (0, self.fits + 1);
    }

    /// Whether there may be a further fit.
    pub fn may_fit(&self) -> bool {
        self.fits < FITS
    }

    /// The dominant pair of roots of λ² = a·λ + b with min Σ‖dᵏ⁺² − a·dᵏ⁺¹ − b·dᵏ‖².
    fn fit(&self) -> Option<Fit> {
        let at = |k: usize| &self.sketches[(self.seen + k) % FITTED];
        let scale = (0..FITTED).flat_map(|k| at(k).iter().map(|v| v.norm())).fold(0.0, f64::max);
        if !(scale > 0.0 && scale.is_finite()) {
            return None;
        }
        let zero = c64::new(0.0, 0.0);
        let (mut pp, mut pq, mut qq, mut pr, mut qr, mut rr) = (zero, zero, zero, zero, zero, 0.0);
        for k in 0..FITTED - 2 {
            for l in 0..LANES {
                // Each triple on its own scale, so that early ones do not count for more.
                let size = at(k).iter().map(|v| v.norm()).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
                let (q, p, r) = (at(k)[l] / size, at(k + 1)[l] / size, at(k + 2)[l] / size);
                pp += p.conj() * p;
                pq += p.conj() * q;
                qq += q.conj() * q;
                pr += p.conj() * r;
                qr += q.conj() * r;
                rr += r.norm_sqr();
            }
        }
        if !(pp.re > 0.0) {
            return None;
        }
        // What is left of r by a·p + b·q: ‖r‖² − ā·(p, r) − b̄·(q, r)
        let misfit = |a: c64, b: c64| (rr - (a.conj() * pr + b.conj() * qr).re).max(0.0) / rr.max(f64::MIN_POSITIVE);
        let single = Fit { larger: pr / pp, smaller: zero, misfit: misfit(pr / pp, zero) };
        // [pp pq; p̄q̄ qq]·(a, b) = (pr, qr); singular when one eigenvalue is all there is.
        let determinant = pp * qq - pq * pq.conj();
        if !(determinant.norm() > 1e-8 * (pp * qq).norm()) {
            return Some(single);
        }
        let (a, b) = ((pr * qq - pq * qr) / determinant, (pp * qr - pq.conj() * pr) / determinant);
        let root = (a * a / 4.0 + b).sqrt();
        let (mut larger, mut smaller) = (a / 2.0 + root, a / 2.0 - root);
        if larger.norm() < smaller.norm() {
            std::mem::swap(&mut larger, &mut smaller);
        }
        // An eigenvalue above the decrease seen is made of rounding, or of eigenvalues that have not settled.
        let seen = self.norms[1] / self.norms[0];
        let transient = larger.norm() > 1.5 * seen || (larger.norm() >= 1.0 && seen < 1.0);
        Some(if !transient { Fit { larger, smaller, misfit: misfit(a, b) } } else { single })
    }
}

/// The dominant eigenvalues of an iteration, and the part of the updates that they leave unexplained, squared.
#[derive(Clone, Copy, Debug)]
struct Fit {
    larger: c64,
    smaller: c64,
    misfit: f64,
}

/// Coefficients of the Chebyshev iteration for 1 − μ² in [θ − δ, θ + δ] (Y. Saad, Iterative Methods for Sparse Linear
/// Systems, 2nd ed., Algorithm 12.1): d ← ρₖρₖ₋₁·d + (2ρₖ/δ)·r.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chebyshev {
    theta: f64,
    delta: f64,
    /// ρₖ₋₁; none before the first step.
    rho: Option<f64>,
    /// 1/T_k(θ/δ) so far: what residuals have been multiplied by at most.
    pub steps: usize,
}

impl Chebyshev {
    /// For μ² in [low, high], high < 1.
    pub fn new(low: f64, high: f64) -> Self {
        let (theta, delta) = (1.0 - f64::midpoint(low, high), (high - low) / 2.0);
        Self { theta, delta: delta.max(1e-3 * theta.abs()), rho: None, steps: 0 }
    }

    /// Coefficients of d and of r in the next step.
    pub fn next(&mut self) -> (f64, f64) {
        self.steps += 1;
        let sigma = self.theta / self.delta;
        match self.rho {
            None => {
                self.rho = Some(1.0 / sigma);
                (0.0, 1.0 / self.theta)
            }
            Some(before) => {
                let rho = 1.0 / (2.0 * sigma - before);
                self.rho = Some(rho);
                (rho * before, 2.0 * rho / self.delta)
            }
        }
    }

    /// The decrease of a step in the long run: σ − √(σ² − 1).
    pub fn rate(&self) -> f64 {
        let sigma = self.theta / self.delta;
        sigma - (sigma * sigma - 1.0).max(0.0).sqrt()
    }

    /// The μ² outside the interval that explains a decrease by `factor` since the first step where 1/T_p(σ) was
    /// expected: T_p(w) = factor·T_p(σ), μ² = 1 − θ ± δ·w. None when the decrease is as expected.
    pub fn explain(&self, factor: f64, upper: bool) -> Option<f64> {
        let p = self.steps as f64;
        let expected_ln = p * self.rate().ln() + 2f64.ln();
        if !(factor.ln() > SLOWER * expected_ln) {
            return None;
        }
        // y = e^{acosh(factor·T_p)/p}, acosh(v) ≈ ln 2v
        let log_y = ((factor.ln() - expected_ln + 2f64.ln()) / p).max(0.0);
        let w = log_y.cosh();
        let square = if upper { 1.0 - self.theta + self.delta * w } else { 1.0 - self.theta - self.delta * w };
        (!upper || square < 1.0).then_some(square)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuned(squares: &[f64]) -> Tuner {
        // Red–black Gauss–Seidel on a diagonal problem: d ← μ²·d.
        let n = 400;
        let mut x: Vec<f64> = vec![0.0; n];
        let mut tuner = Tuner::default();
        for k in 0..20 {
            let previous = x.clone();
            for i in 0..n {
                x[i] += squares[i % squares.len()].powi(k) * (1.0 + (i % 7) as f64);
            }
            tuner.observe(&x, &previous);
        }
        assert!(tuner.learn(1.0, None, |s| s.best_omega().1));
        tuner
    }

    #[test]
    fn the_type_of_the_spectrum_decides_the_relaxation() {
        let real = tuned(&[0.9, 0.5, 0.1]).spectrum;
        assert_eq!(real.kind(), "real");
        assert!((real.radius() - 0.9f64.sqrt()).abs() < 1e-4, "{}", real.radius());
        let (omega, radius) = real.best_omega();
        // ω = 2/(1 + √(1 − 0.9)), and ρ = ω − 1
        assert!((omega - 1.51949).abs() < 2e-3 && (radius - 0.51949).abs() < 1e-2, "{omega} {radius}");
        let imaginary = tuned(&[-0.92, -0.3]).spectrum;
        assert_eq!(imaginary.kind(), "imaginary");
        let (omega, radius) = imaginary.best_omega();
        assert!((omega - 0.838).abs() < 1e-3 && (radius - 0.162).abs() < 1e-3, "{omega} {radius}");
        // The 9 × 9 example: 0.838 gives 0.302.
        assert!((sor_radius(0.838, c64::new(0.0924, 0.0)) - 0.302).abs() < 1e-3);
        assert_eq!(tuned(&[-0.8, 0.7]).spectrum.kind(), "real and imaginary");
    }

    #[test]
    fn chebyshev_polynomials_are_what_they_are_said_to_be() {
        // r ← r − (1 − μ²)·d on one eigenvalue: the residual is T_k(w)/T_k(σ).
        let run = |square: f64, steps: usize| {
            let mut c = Chebyshev::new(-0.2, 0.9);
            let (mut d, mut r) = (0.0, 1.0);
            for _ in 0..steps {
                let (keep, add) = c.next();
                d = keep * d + add * r;
                r -= (1.0 - square) * d;
            }
            (r.abs(), c)
        };
        let (end, c) = run(0.9, 12);
        assert!((end / (2.0 * c.rate().powi(12)) - 1.0).abs() < 1e-3, "{end:e}");
        assert_eq!(c.explain(end, true), None);
        // 0.95 outside is found from its decrease.
        let (slow, c) = run(0.95, 12);
        let found = c.explain(slow, true).unwrap();
        assert!((found - 0.95).abs() < 5e-3, "{found}");
    }
}
