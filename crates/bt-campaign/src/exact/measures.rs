//! How good an x is, without rounding: the figures of a certificate as they are.

use super::dyadic::Exact;
use super::truth::{Truth, residual_bound};
use super::wide::Wide;
use crate::system::{System, is_single};

/// Figures of an answer.
#[derive(Clone, Debug)]
pub struct Measures {
    /// ‖b − Ax‖₂/‖b‖₂; 0 for b = Ax = 0.
    pub relative_residual: f64,
    /// ‖b − Ax‖∞/(‖A‖∞‖x‖∞ + ‖b‖∞)
    pub backward_error: f64,
    /// maxᵢ |b − Ax|ᵢ/(|A||x| + |b|)ᵢ
    pub componentwise: f64,
    /// What an x that is off by the smallest number of the type in every entry may be off by in the relative residual, and in the
    /// backward error: all that can be asked of an x near the bottom of the range.
    pub grain: [f64; 2],
    /// ‖|A||x| + |b|‖₂/‖b‖₂: what rounding in the residual, in units of n·u, is worth in the relative residual.
    pub resolution: f64,
}

/// Of a finite x.
pub fn measure(system: &System, truth: &Truth, x: &[[f64; 2]]) -> Measures {
    let n = system.n;
    let exact: Vec<Exact> = x.iter().map(|&v| Exact::new(v)).collect();
    let moduli: Vec<Wide> = exact.iter().map(Exact::wide).collect();
    let mut residual: Vec<Exact> = system.b.iter().map(|&v| Exact::new(v)).collect();
    for &(i, j, v) in &system.entries {
        residual[i] = residual[i].sub(&Exact::new(v).mul(&exact[j]));
    }
    let residual: Vec<Wide> = residual.iter().map(Exact::wide).collect();
    let bound = residual_bound(system, &truth.a, &moduli);
    let b: Vec<Wide> = system.b.iter().map(|&v| Exact::new(v).wide()).collect();
    let norm_a = (0..n).map(|i| truth.a[i * n..(i + 1) * n].iter().copied().sum()).fold(Wide::ZERO, Wide::max);
    let componentwise = residual.iter().zip(&bound).map(|(r, w)| *r / *w).fold(Wide::ZERO, Wide::max);
    let smallest = Wide::scaled(1.0, if is_single(system.kind) { -149 } else { -1074 });
    let grains: Vec<Wide> = (0..n).map(|i| truth.a[i * n..(i + 1) * n].iter().map(|a| *a * smallest).sum()).collect();
    let scale = norm_a * norm_max(&moduli) + norm_max(&b);
    Measures {
        grain: [(norm2(&grains) / norm2(&b)).to_f64(), (norm_max(&grains) / scale).to_f64()],
        relative_residual: (norm2(&residual) / norm2(&b)).to_f64(),
        backward_error: (norm_max(&residual) / scale).to_f64(),
        componentwise: componentwise.to_f64(),
        resolution: (norm2(&bound) / norm2(&b)).to_f64(),
    }
}

fn norm_max(v: &[Wide]) -> Wide {
    v.iter().copied().fold(Wide::ZERO, Wide::max)
}

fn norm2(v: &[Wide]) -> Wide {
    v.iter().map(|&x| x * x).sum::<Wide>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measures(n: usize, a: &[f64], b: &[f64], x: &[f64]) -> Measures {
        let system = System::dense(n, a, b);
        let x: Vec<_> = x.iter().map(|&v| [v, 0.0]).collect();
        measure(&system, &Truth::of(&system), &x)
    }

    #[test]
    fn figures_of_two_unknowns() {
        // b − Ax = (1, -2)
        let m = measures(2, &[2.0, 1.0, 0.0, 4.0], &[5.0, 6.0], &[1.0, 2.0]);
        assert!((m.relative_residual - (5f64 / 61.0).sqrt()).abs() < 1e-16);
        assert!((m.backward_error - 2.0 / (4.0 * 2.0 + 6.0)).abs() < 1e-16);
        assert!((m.componentwise - 2.0 / 14.0).abs() < 1e-16);
        let exact = measures(2, &[2.0, 1.0, 0.0, 4.0], &[4.0, 8.0], &[1.0, 2.0]);
        assert_eq!((exact.relative_residual, exact.backward_error, exact.componentwise), (0.0, 0.0, 0.0));
    }

    #[test]
    fn grains_of_tiny_solutions() {
        let smallest = (-1074f64).exp2();
        // x = b/3 lies between two numbers of the type.
        let m = measures(1, &[3.0], &[4.0 * smallest], &[smallest]);
        assert_eq!((m.relative_residual, m.grain), (0.25, [0.75, 3.0 / 7.0]));
        assert!(measures(1, &[3.0], &[1.0], &[1.0 / 3.0]).grain[0] < 1e-300);
    }

    #[test]
    fn norms_beyond_the_range() {
        let m = measures(2, &[1e308, 1e308, 0.0, 1e308], &[1e308, 0.0], &[0.0, 0.0]);
        assert_eq!((m.relative_residual, m.backward_error, m.componentwise), (1.0, 1.0, 1.0));
        let m = measures(1, &[f64::MAX], &[f64::MAX], &[1.0]);
        assert_eq!((m.relative_residual, m.backward_error, m.resolution), (0.0, 0.0, 2.0));
    }
}
