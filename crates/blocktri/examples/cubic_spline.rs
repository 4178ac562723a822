//! A clamped cubic spline: the second derivatives at the knots solve a diagonally dominant tridiagonal system.
//!
//! `cargo run -p blocktri --example cubic_spline [picture.svg]`. Checked: the error falls like h⁴.

#[path = "support/svg.rs"]
mod svg;

use blocktri::{FactorError, Factorization, Tridiagonal};
use bt_direct::Thomas;
use svg::{Curve, plot};

/// What is interpolated, and its derivative.
fn f(x: f64) -> f64 {
    (3.0 * x).sin() * (-0.5 * x).exp()
}
fn slope(x: f64) -> f64 {
    (3.0 * (3.0 * x).cos() - 0.5 * (3.0 * x).sin()) * (-0.5 * x).exp()
}

/// Knots, values, second derivatives.
struct Spline {
    x: Vec<f64>,
    y: Vec<f64>,
    m: Vec<f64>,
}

impl Spline {
    /// Through the values of `f` at the knots, with its slopes at both ends.
    fn new(x: Vec<f64>) -> Result<Self, FactorError> {
        let n = x.len();
        let y: Vec<f64> = x.iter().map(|&x| f(x)).collect();
        let h = |i: usize| x[i + 1] - x[i];
        let secant = |i: usize| (y[i + 1] - y[i]) / h(i);
        let (mut lower, mut diag, mut upper, mut m) = (vec![0.0; n], vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        for i in 0..n {
            // hᵢ₋₁·mᵢ₋₁ + 2(hᵢ₋₁ + hᵢ)·mᵢ + hᵢ·mᵢ₊₁ = 6·(sᵢ − sᵢ₋₁); at the ends the slope stands for the missing secant.
            let before = if i > 0 { h(i - 1) } else { 0.0 };
            let after = if i + 1 < n { h(i) } else { 0.0 };
            (lower[i], diag[i], upper[i]) = (before, 2.0 * (before + after), after);
            let left = if i > 0 { secant(i - 1) } else { slope(x[0]) };
            let right = if i + 1 < n { secant(i) } else { slope(x[n - 1]) };
            m[i] = 6.0 * (right - left);
        }
        Thomas::new(&Tridiagonal::new(lower, diag, upper)?)?.solve_vec_in_place(&mut m);
        Ok(Self { x, y, m })
    }

    fn value(&self, at: f64) -> f64 {
        let i = self.x.partition_point(|&x| x <= at).clamp(1, self.x.len() - 1) - 1;
        let h = self.x[i + 1] - self.x[i];
        let (a, b) = ((self.x[i + 1] - at) / h, (at - self.x[i]) / h);
        let bend = (a * a * a - a) * self.m[i] + (b * b * b - b) * self.m[i + 1];
        a * self.y[i] + b * self.y[i + 1] + bend * h * h / 6.0
    }
}

/// n + 1 knots on [0, 4], closer together on the left.
fn knots(n: usize) -> Vec<f64> {
    (0..=n).map(|i| i as f64 / n as f64).map(|t| 4.0 * (0.6 * t + 0.4 * t * t)).collect()
}

fn main() -> Result<(), FactorError> {
    let samples = || (0..=4000).map(|i| f64::from(i) / 1000.0);
    let error = |s: &Spline| samples().map(|x| (s.value(x) - f(x)).abs()).fold(0.0, f64::max);
    let errors = [80, 160].map(|n| Spline::new(knots(n)).map(|s| error(&s)));
    let [coarse, fine] = errors;
    let (coarse, fine) = (coarse?, fine?);
    println!("error {coarse:.2e} with 80 intervals, {fine:.2e} with 160: ratio {:.2}", coarse / fine);
    assert!((15.0..17.0).contains(&(coarse / fine)), "a cubic spline is of fourth order");

    let spline = Spline::new(knots(10))?;
    let curve =
        |name, colour, of: &dyn Fn(f64) -> f64| Curve { name, colour, points: samples().map(|x| (x, of(x))).collect() };
    let polygon = Curve {
        name: "knots",
        colour: "#999999",
        points: spline.x.iter().copied().zip(spline.y.iter().copied()).collect(),
    };
    let curves = [polygon, curve("function", "#c03030", &f), curve("spline", "#2050c0", &|x| spline.value(x))];
    plot("cubic_spline", "Clamped cubic spline through 11 knots", ["x", "y"], &curves);
    Ok(())
}
