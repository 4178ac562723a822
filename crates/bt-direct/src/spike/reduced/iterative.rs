//! Iterative: BiCGSTAB on S̃·z = g with S̃ applied on the fly, by a solve in every partition; no spike is ever formed.
//!
//! H. A. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992) 631–644, doi:10.1137/0913035; on the fly: E. Polizzi and
//! A. Sameh, Parallel Comput. 32 (2006) 177–194, doi:10.1016/j.parco.2005.07.005, §3. Departures: the recurrence is
//! checked against the true residual, restarted from it when they part, and the best iterate counts. A solve that ends
//! with ‖g − S̃z‖₂ > √u·‖g‖₂ gives NaN: there is no other way to say no in the middle of a solve. A factorization tries
//! one system of its own first, and breaks down if that fails.
//!
//! Storage: nine vectors of the tips. Cost: two products an iteration, each a solve in every partition.

use std::sync::atomic::{AtomicU64, Ordering};

use bt_formats::{Op, RealScalar, Scalar, norm2, zero};
use faer::{MatMut, MatRef};

use super::super::METHOD;
use super::super::factor::{Part, piece};
use super::super::partition::{Interface, Layout};
use super::super::scratch::Scratch;
use crate::error::{FactorError, Result};
use crate::refine::unit_roundoff;

/// What the solves so far took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IterationCounts {
    /// Right-hand sides solved for.
    pub solves: u64,
    /// Iterations in all.
    pub iterations: u64,
    /// Right-hand sides for which the reduced system was not solved; their solutions are NaN.
    pub failures: u64,
    /// The largest true residual ‖g − S̃z‖₂/‖g‖₂ that was accepted.
    pub worst_residual: f64,
}

pub(in super::super) struct Iterative<T: Scalar> {
    rtol: f64,
    max_iters: usize,
    order: usize,
    scratch: Scratch<T>,
    solves: AtomicU64,
    iterations: AtomicU64,
    failures: AtomicU64,
    /// Bits of a non-negative f64, whose order is that of the numbers.
    worst: AtomicU64,
}

/// Vectors of one solve.
const VECTORS: usize = 9;

impl<T: Scalar> Iterative<T> {
    pub(super) fn empty(layout: &Layout, rtol: f64, max_iters: usize) -> Result<Self> {
        let order = layout.reduced_order();
        Ok(Self {
            rtol,
            max_iters,
            order,
            scratch: Scratch::new(order.saturating_mul(VECTORS))?,
            solves: AtomicU64::new(0),
            iterations: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            worst: AtomicU64::new(0),
        })
    }

    /// A solve with a right-hand side without structure, at the time of the factorization.
    pub(super) fn probe(&mut self, parts: &[Part<T>]) -> Result<f64> {
        let mut state = 1u64;
        let (relative, iterations) = self.scratch.with(|buffer| {
            let (g, work) = buffer.split_at_mut(self.order);
            for v in g.iter_mut() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *v = T::rounded((state >> 11) as f64 / (1u64 << 52) as f64 - 1.0, 0.0);
            }
            self.bicgstab(Op::Identity, parts, g, work)
        });
        for counter in [&self.solves, &self.iterations, &self.failures, &self.worst] {
            counter.store(0, Ordering::Relaxed);
        }
        if relative <= unit_roundoff::<T>().sqrt() {
            return Ok(0.0);
        }
        let reason = format!(
            "BiCGSTAB on the reduced system of order {} stops at a residual of {relative:.1e} after {iterations} \
             iterations; a recursive reduced system needs none, band-lu does not partition",
            self.order
        );
        Err(FactorError::breakdown(METHOD, None, reason))
    }

    pub(super) fn solve(&self, op: Op, layout: &Layout, parts: &[Part<T>], mut x: MatMut<'_, T>) {
        for c in 0..x.ncols() {
            self.scratch.with(|buffer| {
                let mut x = x.as_mut().col_mut(c);
                let (z, work) = buffer.split_at_mut(self.order);
                let rows = || layout.interfaces.iter().flat_map(Interface::rows);
                for (z, row) in z.iter_mut().zip(rows()) {
                    *z = x[row];
                }
                let (relative, iterations) = self.bicgstab(op, parts, z, work);
                self.solves.fetch_add(1, Ordering::Relaxed);
                self.iterations.fetch_add(iterations as u64, Ordering::Relaxed);
                if relative <= unit_roundoff::<T>().sqrt() {
                    self.worst.fetch_max(relative.to_bits(), Ordering::Relaxed);
                } else {
                    self.failures.fetch_add(1, Ordering::Relaxed);
                    z.fill(T::nan_impl());
                    // Interiors far from a tip must not look like an answer either.
                    x.fill(T::nan_impl());
                }
                for (z, row) in z.iter().zip(rows()) {
                    x[row] = *z;
                }
            });
        }
    }

    /// y ← op(S̃)·z.
    fn product(op: Op, parts: &[Part<T>], z: &[T], y: &mut [T]) {
        y.copy_from_slice(z);
        // First place of the tips at the cut before a partition.
        let mut base = 0;
        for part in parts {
            let (l, r) = (part.left, part.right);
            let (left, right) = (l.map_or(0, |i| i.order()), r.map_or(0, |i| i.order()));
            let split = l.map_or(0, |i| i.nb);
            let end = base + left;
            let split_right = end + r.map_or(0, |i| i.nb);
            part.scratch.with(|buffer| {
                let n = part.rows.len();
                let mut u = piece(buffer, n, 1);
                if op == Op::Identity {
                    // y ← y + tips of A_j⁻¹·[C·b; 0; B·t]
                    let b = l.map(|_| MatRef::from_column_major_slice(&z[base..base + split], split, 1));
                    let len = end + right - split_right;
                    let t = r.map(|_| MatRef::from_column_major_slice(&z[split_right..end + right], len, 1));
                    part.couple(b, u.as_mut(), t);
                    part.kernel.solve(op, u.as_mut());
                    for (k, y) in y[base + split..split_right].iter_mut().enumerate() {
                        let top = left - split;
                        *y -= if k < top { u[(k, 0)] } else { u[(n - (split_right - end) + k - top, 0)] };
                    }
                } else {
                    // The rows of the tips in, and out through Cᵀ and Bᵀ.
                    u.fill(zero());
                    let top = left - split;
                    for (k, &z) in z[base + split..split_right].iter().enumerate() {
                        let row = if k < top { k } else { n - (split_right - end) + k - top };
                        u[(row, 0)] = -z;
                    }
                    part.kernel.solve(op, u.as_mut());
                    let (before, after) = y.split_at_mut(end);
                    let b = l.map(|_| MatMut::from_column_major_slice_mut(&mut before[base..base + split], split, 1));
                    let len = right - (split_right - end);
                    let t = r.map(|_| {
                        let place = split_right - end..right;
                        MatMut::from_column_major_slice_mut(&mut after[place], len, 1)
                    });
                    part.uncouple(op, b, u.as_ref(), t);
                }
            });
            base = end;
        }
    }

    /// z ← op(S̃)⁻¹·z; the true relative residual reached and the iterations made.
    fn bicgstab(&self, op: Op, parts: &[Part<T>], g: &mut [T], work: &mut [T]) -> (f64, usize) {
        let n = self.order;
        let norm = norm2(g);
        if norm == 0.0 {
            return (0.0, 0);
        }
        if !norm.is_finite() {
            return (f64::NAN, 0);
        }
        // Work in units of ‖g‖ so that nothing over- or underflows.
        let scale = T::Real::from_f64(norm);
        for v in g.iter_mut() {
            *v = T::from_parts(v.re() / scale, v.im() / scale);
        }
        let mut vectors = work.chunks_exact_mut(n);
        let [z, r, shadow, p, v, s, t, best] = std::array::from_fn(|_| vectors.next().expect("eight vectors"));
        z.fill(zero());
        let (mut best_residual, mut iterations) = (f64::INFINITY, 0);
        // Each restart begins with the true residual.
        for _ in 0..4 {
            Self::product(op, parts, z, r);
            for (r, &g) in r.iter_mut().zip(&*g) {
                *r = g - *r;
            }
            let truth = norm2(r);
            if truth < best_residual {
                best_residual = truth;
                best.copy_from_slice(z);
            }
            if !(truth > self.rtol) || iterations >= self.max_iters || truth > best_residual {
                break;
            }
            shadow.copy_from_slice(r);
            p.copy_from_slice(r);
            let mut rho = dot(shadow, r);
            while iterations < self.max_iters {
                iterations += 1;
                // v ← S̃·p;  α ← ρ/(r̂, v);  s ← r − α·v
                Self::product(op, parts, p, v);
                let alpha = rho / dot(shadow, v);
                for k in 0..n {
                    s[k] = r[k] - alpha * v[k];
                }
                // t ← S̃·s;  ω ← (t, s)/(t, t)
                Self::product(op, parts, s, t);
                let tt = dot(t, t);
                let omega = if tt == zero() { zero() } else { dot(t, s) / tt };
                // z ← z + α·p + ω·s;  r ← s − ω·t
                for k in 0..n {
                    z[k] += alpha * p[k] + omega * s[k];
                    r[k] = s[k] - omega * t[k];
                }
                let residual = norm2(r);
                if !(residual > self.rtol) {
                    break;
                }
                let next = dot(shadow, r);
                let beta = next / rho * (alpha / omega);
                if !Scalar::is_finite(beta) || beta == zero() {
                    break;
                }
                rho = next;
                // p ← r + β·(p − ω·v)
                for k in 0..n {
                    p[k] = r[k] + beta * (p[k] - omega * v[k]);
                }
            }
            if !z.iter().all(|v| Scalar::is_finite(*v)) {
                z.copy_from_slice(best);
            }
        }
        for (g, &z) in g.iter_mut().zip(&*best) {
            *g = z * T::from_real(scale);
        }
        (best_residual, iterations)
    }

    pub(super) fn counts(&self) -> IterationCounts {
        IterationCounts {
            solves: self.solves.load(Ordering::Relaxed),
            iterations: self.iterations.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            worst_residual: f64::from_bits(self.worst.load(Ordering::Relaxed)),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.scratch.bytes()
    }
}

/// xᴴ·y.
fn dot<T: Scalar>(x: &[T], y: &[T]) -> T {
    x.iter().zip(y).map(|(&x, &y)| Scalar::conj(x) * y).sum()
}
