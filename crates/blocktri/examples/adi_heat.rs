//! The heat equation on a square by the alternating direction implicit method of Peaceman and Rachford.
//!
//! ```text
//! uₜ = uₓₓ + u_yy on (0, 1)², u = 0 on the boundary
//! (I − ½τ·Dₓ)·u' = (I + ½τ·D_y)·u        all rows at once: systems one after another in memory
//! (I − ½τ·D_y)·u = (I + ½τ·Dₓ)·u'        all columns at once: systems interleaved
//! ```
//!
//! D. W. Peaceman & H. H. Rachford, J. SIAM 3 (1955) 28–41, doi:10.1137/0103003. The field starts as a sum of two
//! eigenfunctions sin(pπx)·sin(qπy) of the discrete operators, each of which every step multiplies by a known factor: the
//! result is checked against the exact one, and drawn.
//!
//! `cargo run --release -p blocktri --example adi_heat [picture.svg]`

use std::error::Error;
use std::f64::consts::PI;
use std::fmt::Write as _;
use std::path::PathBuf;

use bt_direct::batch::{BatchLu, Layout, Pivoting, TridiagonalBatch};

/// Interior points in each direction.
const N: usize = 200;
const STEPS: usize = 50;
/// Half a time step over h²: ½τ/h².
const R: f64 = 2.0;

fn main() -> Result<(), Box<dyn Error>> {
    // I − ½τ·D is tridiag(−r, 1 + 2r, −r) for every line, dominant: no pivoting is needed.
    let line = |first: f64, inside: f64, last: f64| {
        (0..N * N)
            .map(|k| [first, inside, last][if k % N == 0 { 0 } else { 1 + usize::from(k % N == N - 1) }])
            .collect()
    };
    let a =
        TridiagonalBatch::new(Layout::Strided, N, line(0.0, -R, -R), vec![1.0 + 2.0 * R; N * N], line(-R, -R, 0.0))?;
    let lines = BatchLu::with_options(&a, Pivoting::None)?;
    assert!(lines.verdict().all_solved());

    let modes = [(1.0, 1.0, 1.0), (0.8, 3.0, 2.0)];
    let h = 1.0 / (N + 1) as f64;
    let field = |weight: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
        let at = |k: usize| (PI * (k + 1) as f64 * h, k);
        (0..N * N)
            .map(|k| {
                let ((x, _), (y, _)) = (at(k % N), at(k / N));
                modes.iter().map(|&(c, p, q)| c * weight(p, q) * (p * x).sin() * (q * y).sin()).sum()
            })
            .collect()
    };
    let start = field(&|_, _| 1.0);
    let (mut u, mut v) = (start.clone(), vec![0.0; N * N]);
    for _ in 0..STEPS {
        explicit(&u, &mut v, N, 1);
        lines.solve_in_place(&mut v, Layout::Strided)?;
        explicit(&v, &mut u, 1, N);
        lines.solve_in_place(&mut u, Layout::Interleaved)?;
    }

    // A step multiplies sin(pπx)·sin(qπy) by (1 − r·λ_p)(1 − r·λ_q) / ((1 + r·λ_p)(1 + r·λ_q)), λ_p = 4·sin²(pπh/2).
    let factor = |p: f64| {
        let lambda = 4.0 * (p * PI * h / 2.0).sin().powi(2);
        (1.0 - R * lambda) / (1.0 + R * lambda)
    };
    let exact = field(&|p, q| (factor(p) * factor(q)).powi(STEPS as i32));
    let error = u.iter().zip(&exact).map(|(u, e)| (u - e).abs()).fold(0.0, f64::max);
    let time = 2.0 * R * h * h * STEPS as f64;
    let peak = |u: &[f64]| u.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    println!("{N} × {N} points, {STEPS} steps to t = {time:.5}: peak {:.4} → {:.4}", peak(&start), peak(&u));

    let file = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("target/adi_heat.svg"), PathBuf::from);
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&file, picture(&[&start, &u])?)?;
    println!("picture: {}", file.display());
    println!("largest error against the exact decay: {error:.2e}");
    if error < 1e-12 { Ok(()) } else { Err("the decay is wrong".into()) }
}

/// to ← (I + ½τ·D)·from, D along the direction whose neighbours are `stride` apart; lines start `step` apart.
fn explicit(from: &[f64], to: &mut [f64], stride: usize, step: usize) {
    for line in 0..N {
        for i in 0..N {
            let at = line * step + i * stride;
            let before = if i > 0 { from[at - stride] } else { 0.0 };
            let after = if i + 1 < N { from[at + stride] } else { 0.0 };
            to[at] = from[at] + R * (before - 2.0 * from[at] + after);
        }
    }
}

/// Fields side by side, blue where negative and red where positive, a cell for every four points.
fn picture(fields: &[&[f64]]) -> Result<String, std::fmt::Error> {
    const EVERY: usize = 4;
    let side = N / EVERY;
    let mut svg = String::new();
    let width = fields.len() * (side + 2);
    write!(svg, r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {side}" width="{}">"#, 8 * width)?;
    for (k, field) in fields.iter().enumerate() {
        for cell in 0..side * side {
            let (x, y) = (cell % side, cell / side);
            let value = field[y * EVERY * N + x * EVERY].clamp(-1.5, 1.5) / 1.5;
            let pale = (255.0 * (1.0 - value.abs())) as u8;
            let (red, blue) = if value > 0.0 { (255, pale) } else { (pale, 255) };
            let left = k * (side + 2) + x;
            write!(svg, r#"<path d="M{left} {y}h1v1h-1z" fill="rgb({red},{pale},{blue})"/>"#)?;
        }
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}
