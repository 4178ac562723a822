//! The retarded Green's function of a ribbon of atoms, its local density of states from a complex selected inverse.
//!
//! Slices of W atoms, hopping −1 inside and between them; what continues to infinity on both sides is folded into the
//! first and last slice by the self-energies of its transverse modes m, with z = E + iη and s² = (z − εₘ)² − 4:
//!
//! ```text
//! A = z·I − H − Σ      εₘ = −2·cos(πm/(W + 1))      gₘ = (z − εₘ − s)/2, |gₘ| < 1      Σ = Σₘ φₘ·gₘ·φₘᵀ
//! LDOS = −Im (A⁻¹)ᵢᵢ/π      infinite ribbon: (A⁻¹)ᵢᵢ = Σₘ φₘ(i)²/(z − εₘ − 2gₘ)
//! ```
//!
//! S. Datta, *Quantum Transport*, Cambridge 2005, ch. 8, doi:10.1017/CBO9781139164313. `cargo run -p blocktri --example
//! greens_function [picture.svg]`. Checked: every atom of every slice has the density of the infinite ribbon.

#[path = "support/svg.rs"]
mod svg;

use std::f64::consts::PI;

use blocktri::{BlockTridiagonal, Coo, Csr, FactorError, Partition, c64};
use bt_direct::{BlockLu, SelectedInverse};
use bt_formats::{CouplingKind, DiagonalKind, HybridLayout};
use svg::{Curve, plot};

const W: usize = 5;
const SLICES: usize = 40;
const ETA: f64 = 1e-3;

/// φₘ at atom i, both from 0.
fn mode(m: usize, i: usize) -> f64 {
    let w = (W + 1) as f64;
    (2.0 / w).sqrt() * (PI * (m + 1) as f64 * (i + 1) as f64 / w).sin()
}

/// z − εₘ, and the surface Green's function gₘ of half a chain.
fn surface(z: c64, m: usize) -> (c64, c64) {
    let e = z + 2.0 * (PI * (m + 1) as f64 / (W + 1) as f64).cos();
    let s = (e * e - 4.0).sqrt();
    let (g, other) = ((e - s) * 0.5, (e + s) * 0.5);
    (e, if g.norm() < other.norm() { g } else { other })
}

fn hamiltonian(z: c64) -> Result<Csr<c64>, FactorError> {
    let mut a = Coo::new(W * SLICES, W * SLICES)?;
    for slice in 0..SLICES {
        for i in 0..W {
            let row = slice * W + i;
            for j in 0..W {
                let mut v = if i == j { z } else { c64::new(f64::from(u8::from(i.abs_diff(j) == 1)), 0.0) };
                if slice == 0 || slice + 1 == SLICES {
                    v -= (0..W).map(|m| surface(z, m).1 * (mode(m, i) * mode(m, j))).sum::<c64>();
                }
                a.push(row, slice * W + j, v)?;
            }
            // −H between slices: +1.
            if slice > 0 {
                a.push(row, row - W, c64::new(1.0, 0.0))?;
            }
            if slice + 1 < SLICES {
                a.push(row, row + W, c64::new(1.0, 0.0))?;
            }
        }
    }
    Ok(a.to_csr()?)
}

fn main() -> Result<(), FactorError> {
    let energy = |i: u32| -4.2 + 8.4 * f64::from(i) / 600.0;
    let layout = HybridLayout { diagonal: Some(DiagonalKind::Dense), couplings: Some(CouplingKind::Dense) };
    let first = hamiltonian(c64::new(energy(0), ETA))?;
    let mut a = BlockTridiagonal::from_csr(&first, Partition::uniform(W * SLICES, W)?, layout)?;
    let mut lu = BlockLu::new(&a)?;
    let mut green = SelectedInverse::new(&lu)?;
    let (mut worst, mut edge, mut centre) = (0.0f64, Vec::new(), Vec::new());
    for i in 0..=600 {
        let z = c64::new(energy(i), ETA);
        a.update_values(&hamiltonian(z)?)?;
        lu.refactor(&a)?;
        green.recompute(&lu)?;
        let exact = |atom: usize| -> c64 {
            (0..W).map(|m| (surface(z, m), mode(m, atom))).map(|((e, g), phi)| phi * phi / (e - 2.0 * g)).sum()
        };
        for slice in 0..SLICES {
            for atom in 0..W {
                let g = green.diagonal(slice)[(atom, atom)];
                worst = worst.max((g - exact(atom)).norm() / exact(atom).norm());
            }
        }
        let density = |atom: usize| -green.diagonal(SLICES / 2)[(atom, atom)].im / PI;
        edge.push((z.re, density(0)));
        centre.push((z.re, density(W / 2)));
    }
    println!("601 energies, {} atoms: largest relative difference from the infinite ribbon {worst:.1e}", W * SLICES);
    assert!(worst < 1e-10);
    // All states of an atom: ∫ LDOS dE = 1, but for the tails of width η beyond the ends.
    let total: f64 = edge.windows(2).map(|w| 0.5 * (w[0].1 + w[1].1) * (w[1].0 - w[0].0)).sum();
    println!("states on an edge atom: {total:.3}");
    assert!((total - 1.0).abs() < 0.02);

    let curves = [
        Curve { name: "edge atom", colour: "#2050c0", points: edge },
        Curve { name: "centre atom", colour: "#c03030", points: centre },
    ];
    let labels = ["energy, in units of the hopping", "states per atom and unit of energy"];
    plot("greens_function", "Local density of states of a ribbon, five atoms wide", labels, &curves);
    Ok(())
}
