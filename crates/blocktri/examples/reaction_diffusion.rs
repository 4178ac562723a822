//! Newton's method for the steady state of two reacting, diffusing species: one block LU, refactored in every step.
//!
//! ```text
//! D·u″ − r·u·v² + F·(1 − u) = 0      D·v″ + r·u·v² − F·v = 0      on [0, 1], u and v given at both ends
//! ```
//!
//! `cargo run -p blocktri --example reaction_diffusion [picture.svg]`. Checked: the steps shrink quadratically, and the sum
//! w = u + v, for which the reaction cancels, is the solution 1 + (w₀ − 1)·cosh((x − ½)/ℓ)/cosh(½/ℓ) of its linear equation,
//! ℓ = √(D/F).

#[path = "support/svg.rs"]
mod svg;

use blocktri::{BlockTridiagonal, Coo, Csr, FactorError, Factorization, Partition};
use bt_direct::BlockLu;
use bt_formats::{CouplingKind, DiagonalKind, HybridLayout};
use svg::{Curve, plot};

const N: usize = 999;
const H: f64 = 1.0 / (N as f64 + 1.0);
const D: f64 = 0.01;
const F: f64 = 1.0;
const R: f64 = 12.0;
const ENDS: [f64; 2] = [0.2, 0.5];

/// u and v of point `i`, the ends included as −1 and N.
fn at(x: &[f64], i: isize) -> [f64; 2] {
    if (0..N as isize).contains(&i) { [x[2 * i as usize], x[2 * i as usize + 1]] } else { ENDS }
}

/// The residual, and the Jacobian with blocks of two: one a point.
fn linearise(x: &[f64]) -> Result<(Vec<f64>, Csr<f64>), FactorError> {
    let d = D / (H * H);
    let mut residual = vec![0.0; 2 * N];
    let mut jacobian = Coo::new(2 * N, 2 * N)?;
    for i in 0..N {
        let [before, here, after] = [-1, 0, 1].map(|s| at(x, i as isize + s));
        let [u, v] = here;
        let reaction = R * u * v * v;
        let diffusion = |s: usize| d * (before[s] - 2.0 * here[s] + after[s]);
        residual[2 * i] = diffusion(0) - reaction + F * (1.0 - u);
        residual[2 * i + 1] = diffusion(1) + reaction - F * v;
        let (du, dv) = (R * v * v, 2.0 * R * u * v);
        let block = [[-2.0 * d - du - F, -dv], [du, -2.0 * d + dv - F]];
        for s in 0..2 {
            let row = 2 * i + s;
            for (t, &value) in block[s].iter().enumerate() {
                jacobian.push(row, 2 * i + t, value)?;
            }
            if i > 0 {
                jacobian.push(row, row - 2, d)?;
            }
            if i + 1 < N {
                jacobian.push(row, row + 2, d)?;
            }
        }
    }
    Ok((residual, jacobian.to_csr()?))
}

fn main() -> Result<(), FactorError> {
    let mut x: Vec<f64> = (0..N).flat_map(|_| ENDS).collect();
    let layout = HybridLayout { diagonal: Some(DiagonalKind::Dense), couplings: Some(CouplingKind::Dense) };
    let mut a = BlockTridiagonal::from_csr(&linearise(&x)?.1, Partition::uniform(2 * N, 2)?, layout)?;
    let mut lu = BlockLu::new(&a)?;
    let mut steps: Vec<f64> = Vec::new();
    while steps.last().is_none_or(|&s| s > 1e-11) {
        assert!(steps.len() < 20, "Newton's method does not converge: {steps:?}");
        // x ← x − J⁻¹·r
        let (mut r, jacobian) = linearise(&x)?;
        a.update_values(&jacobian)?;
        lu.refactor(&a)?;
        lu.solve_vec_in_place(&mut r);
        x.iter_mut().zip(&r).for_each(|(x, r)| *x -= r);
        steps.push(r.iter().fold(0.0, |m: f64, v| m.max(v.abs())));
        println!("step {}: {:.2e}", steps.len(), steps[steps.len() - 1]);
    }
    // ‖δₖ₊₁‖ ≤ C·‖δₖ‖² once near, until rounding takes over.
    let near = steps.windows(2).filter(|w| w[0] < 0.1 && w[1] > 1e-9);
    let constants: Vec<f64> = near.map(|w| w[1] / (w[0] * w[0])).collect();
    println!("‖δ'‖/‖δ‖²: {constants:.1?}");
    assert!(!constants.is_empty() && constants.iter().all(|&c| c < 10.0), "Newton's method converges quadratically");

    let length = (D / F).sqrt();
    let exact = |t: f64| 1.0 + (ENDS[0] + ENDS[1] - 1.0) * ((t - 0.5) / length).cosh() / (0.5 / length).cosh();
    let place = |i: usize| (i + 1) as f64 * H;
    let error = (0..N).map(|i| (x[2 * i] + x[2 * i + 1] - exact(place(i))).abs()).fold(0.0, f64::max);
    println!("error of u + v: {error:.2e}, h²/(12ℓ²) = {:.2e}", H * H / (12.0 * length * length));
    assert!(error < H * H / (12.0 * length * length), "differences are of second order");

    let curve = |name, colour, of: &dyn Fn(usize) -> f64| Curve {
        name,
        colour,
        points: (0..N).map(|i| (place(i), of(i))).collect(),
    };
    let curves = [
        curve("u", "#2050c0", &|i| x[2 * i]),
        curve("v", "#c03030", &|i| x[2 * i + 1]),
        curve("u + v, exact", "#209050", &|i| exact(place(i))),
    ];
    plot("reaction_diffusion", "Steady state of a cubic autocatalysis", ["place", "concentration"], &curves);
    Ok(())
}
