//! The Kalman smoother as one block-tridiagonal least-squares problem, its covariances as a selected inverse.
//!
//! ```text
//! xₖ₊₁ = F·xₖ + noise of covariance Q      yₖ = H·xₖ + noise of variance R      x₀ of mean 0 and covariance P₀
//! Λ·x = Hᵀ·R⁻¹·y:  Dₖ = Hᵀ·R⁻¹·H + Fᵀ·Q⁻¹·F + Q⁻¹ (P₀⁻¹ at the start, no F at the end),  Lₖ = −Q⁻¹·F
//! ```
//!
//! x is the smoothed path and the diagonal blocks of Λ⁻¹ are its covariances. `cargo run -p blocktri --example
//! kalman_smoother [picture.svg]`. Checked against the recursions of Kalman and of Rauch, Tung and Striebel.

#[path = "support/svg.rs"]
mod svg;

use blocktri::faer::{Mat, mat};
use blocktri::{BlockTridiagonal, Coo, FactorError, Factorization, Partition};
use bt_direct::{BlockLu, SelectedInverse};
use bt_formats::HybridLayout;
use svg::{Curve, plot};

const STEPS: usize = 200;
const DT: f64 = 0.1;
const R: f64 = 0.25;

/// Position and velocity, and what moves them.
struct Model {
    f: Mat<f64>,
    h: Mat<f64>,
    q: Mat<f64>,
    p0: Mat<f64>,
}

/// States and their covariances.
type Path = (Vec<Mat<f64>>, Vec<Mat<f64>>);

fn inverse(m: &Mat<f64>) -> Mat<f64> {
    let det = m[(0, 0)] * m[(1, 1)] - m[(0, 1)] * m[(1, 0)];
    mat![[m[(1, 1)] / det, -m[(0, 1)] / det], [-m[(1, 0)] / det, m[(0, 0)] / det]]
}

/// Smoothed states and covariances from Λ.
fn by_blocks(model: &Model, y: &[f64]) -> Result<Path, FactorError> {
    let Model { f, h, q, p0 } = model;
    let q_inverse = inverse(q);
    let mut lambda = Coo::new(2 * STEPS, 2 * STEPS)?;
    let mut rhs = vec![0.0; 2 * STEPS];
    let observed = h.transpose() * h * (1.0 / R);
    for k in 0..STEPS {
        let mut d = &observed + if k == 0 { inverse(p0) } else { q_inverse.clone() };
        if k + 1 < STEPS {
            d += f.transpose() * &q_inverse * f;
        }
        let l = -(&q_inverse * f);
        for i in 0..2 {
            rhs[2 * k + i] = h[(0, i)] * y[k] / R;
            for j in 0..2 {
                lambda.push(2 * k + i, 2 * k + j, d[(i, j)])?;
                if k > 0 {
                    lambda.push(2 * k + i, 2 * k - 2 + j, l[(i, j)])?;
                    lambda.push(2 * k - 2 + j, 2 * k + i, l[(i, j)])?;
                }
            }
        }
    }
    let partition = Partition::uniform(2 * STEPS, 2)?;
    let lu = BlockLu::new(&BlockTridiagonal::from_csr(&lambda.to_csr()?, partition, HybridLayout::default())?)?;
    lu.solve_vec_in_place(&mut rhs);
    let covariances = SelectedInverse::new(&lu)?;
    let states = rhs.chunks_exact(2).map(|x| mat![[x[0]], [x[1]]]).collect();
    Ok((states, (0..STEPS).map(|k| covariances.diagonal(k).to_owned()).collect()))
}

/// The same by the classical recursions.
fn by_recursion(model: &Model, y: &[f64]) -> Path {
    let Model { f, h, q, p0 } = model;
    let (mut x, mut p) = (Mat::zeros(2, 1), p0.clone());
    let (mut filtered, mut predicted) = (Vec::new(), Vec::new());
    for &y in y {
        predicted.push((x.clone(), p.clone()));
        // Update: gain K = P·Hᵀ/(H·P·Hᵀ + R)
        let gain = &p * h.transpose() * (1.0 / ((h * &p * h.transpose())[(0, 0)] + R));
        let innovation = y - (h * &x)[(0, 0)];
        x += &gain * innovation;
        p = &p - &gain * h * &p;
        filtered.push((x.clone(), p.clone()));
        // Prediction
        x = f * &x;
        p = f * &p * f.transpose() + q;
    }
    let (mut states, mut covariances) = (vec![filtered[STEPS - 1].0.clone()], vec![filtered[STEPS - 1].1.clone()]);
    for k in (0..STEPS - 1).rev() {
        let (xf, pf) = &filtered[k];
        let (xp, pp) = &predicted[k + 1];
        // C = P·Fᵀ·P_pred⁻¹
        let c = pf * f.transpose() * inverse(pp);
        states.push(xf + &c * (&states[states.len() - 1] - xp));
        covariances.push(pf + &c * (&covariances[covariances.len() - 1] - pp) * c.transpose());
    }
    states.reverse();
    covariances.reverse();
    (states, covariances)
}

fn main() -> Result<(), FactorError> {
    let f = mat![[1.0, DT], [0.0, 1.0]];
    // White acceleration of intensity 1.
    let q = mat![[DT * DT * DT / 3.0, DT * DT / 2.0], [DT * DT / 2.0, DT]];
    let model = Model { f, h: mat![[1.0, 0.0]], q, p0: mat![[4.0, 0.0], [0.0, 4.0]] };
    let time = |k: usize| k as f64 * DT;
    let truth = |t: f64| 2.0 * (0.5 * t).sin() + 0.1 * t;
    // Twelve uniform numbers make a nearly normal one.
    let mut seed = 2026u64;
    let mut uniform = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 11) as f64 / (1u64 << 53) as f64
    };
    let y: Vec<f64> =
        (0..STEPS).map(|k| truth(time(k)) + R.sqrt() * ((0..12).map(|_| uniform()).sum::<f64>() - 6.0)).collect();

    let (states, covariances) = by_blocks(&model, &y)?;
    let (expected, expected_covariances) = by_recursion(&model, &y);
    let difference = |a: &[Mat<f64>], b: &[Mat<f64>]| {
        a.iter()
            .zip(b)
            .flat_map(|(a, b)| (0..a.ncols()).flat_map(move |j| (0..2).map(move |i| (a[(i, j)] - b[(i, j)]).abs())))
            .fold(0.0, f64::max)
    };
    let (dx, dp) = (difference(&states, &expected), difference(&covariances, &expected_covariances));
    println!("largest difference from the recursions: states {dx:.1e}, covariances {dp:.1e}");
    assert!(dx < 1e-10 && dp < 1e-10);
    let deviation = |k: usize| covariances[k][(0, 0)].sqrt();
    let within = (0..STEPS).filter(|&k| (states[k][(0, 0)] - truth(time(k))).abs() <= 2.0 * deviation(k)).count();
    println!("{within} of {STEPS} true positions lie within two standard deviations");

    let curve = |name, colour, of: &dyn Fn(usize) -> f64| Curve {
        name,
        colour,
        points: (0..STEPS).map(|k| (time(k), of(k))).collect(),
    };
    let curves = [
        curve("observed", "#cccccc", &|k| y[k]),
        curve("true", "#c03030", &|k| truth(time(k))),
        curve("smoothed", "#2050c0", &|k| states[k][(0, 0)]),
        curve("± 2 standard deviations", "#80a0e0", &|k| states[k][(0, 0)] + 2.0 * deviation(k)),
        curve("", "#80a0e0", &|k| states[k][(0, 0)] - 2.0 * deviation(k)),
    ];
    plot("kalman_smoother", "Kalman smoother by block LU and selected inverse", ["time", "position"], &curves);
    Ok(())
}
