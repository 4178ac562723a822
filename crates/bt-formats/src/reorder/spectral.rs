//! Weighted spectral ordering: sort by the Fiedler vector of |A| + |A|ᵀ, so that large entries come close to the
//! diagonal.
//!
//! The Fiedler vector (Fiedler, Czech. Math. J. 23 (1973), doi:10.21136/CMJ.1973.101168) minimises
//! Σ wᵢⱼ (xᵢ − xⱼ)² over unit vectors with Σ xᵢ = 0, wᵢⱼ = |aᵢⱼ| + |aⱼᵢ|: strongly coupled indices get close values.
//! As an ordering for banded preconditioners: Manguoglu, Koyutürk, Sameh & Grama, SIAM J. Sci. Comput. 32 (2010),
//! doi:10.1137/080713409. How the vector is computed stands in `fiedler.rs`.
//!
//! Components are ordered one by one, by their smallest index. Weights are divided by the largest of the component;
//! those below 2⁻¹⁰⁴ of it count as 2⁻¹⁰⁴. Entries of the vector that rounding cannot tell apart (parts of a component
//! joined only by weights near rounding level) are ordered among themselves by the same method, to a depth of
//! [`MAX_DEPTH`]; beyond it they keep their order. Each such group takes the direction that brings it closer to its
//! neighbours already placed.
//!
//! Cost: O(nnz·log d) for the weights, then O(nnz) an iteration of the eigensolver, at most 100 on the finest graph.
//! Memory: about 60·nnz + 150n bytes.

use super::Graph;
use super::fiedler::{Laplacian, fiedler};
use crate::csr::Csr;
use crate::error::Result;
use crate::operator::LinearOperator;
use crate::permutation::Permutation;
use crate::scalar::{RealScalar, Scalar};

/// Levels of the recursion on entries that cannot be told apart.
const MAX_DEPTH: usize = 16;
/// Neighbours in the sorted vector closer than this, relative to its range, are not told apart.
const RESOLUTION: f64 = 3e-8;

/// The weighted spectral order; take it as `a.permute(&p, &p)`.
///
/// Deterministic: no random start. Of the two directions of each component the one is taken that agrees better with
/// the given order. The vector is converged to a relative residual of 1e-8, or as far as 100 iterations lead: any
/// result is a permutation.
///
/// # Errors
/// [`crate::Error::NotSquare`]; [`crate::Error::NonFinite`].
///
/// # Cost
/// O(nnz·(log d + iterations)); see the head of this module's source.
///
/// ```
/// use bt_formats::{Coo, reorder};
/// // Strong couplings along the path 0 – 3 – 1 – 4 – 2, a weak one between 0 and 4.
/// let mut a = Coo::new(5, 5)?;
/// for (i, j, v) in [(0, 3, 5.0), (3, 1, 5.0), (1, 4, 5.0), (4, 2, 5.0), (0, 4, 1e-3)] {
///     a.push(i, j, v)?;
/// }
/// let p = reorder::spectral(&a.to_csr()?)?;
/// assert_eq!(p.order(), [0, 3, 1, 4, 2]);
/// # Ok::<(), bt_formats::Error>(())
/// ```
#[inline(never)]
pub fn spectral<T: Scalar>(a: &Csr<T>) -> Result<Permutation> {
    a.check_square()?;
    a.check_finite()?;
    let graph = Graph::of(a)?;
    // Powers of two scale the moduli so that sums neither overflow nor vanish; each part is scaled again by its
    // own largest weight.
    let weight = |i: u32, j: u32| {
        let halves = |v: T| (v.re().to_f64() / 4.0).hypot(v.im().to_f64() / 4.0);
        halves(a.get(i as usize, j as usize)) + halves(a.get(j as usize, i as usize))
    };
    let weights: Vec<f64> =
        (0..graph.n() as u32).flat_map(|i| graph.neighbours(i).iter().map(move |&j| weight(i, j))).collect();
    let weighted = Weighted { graph: &graph, weights: &weights };

    let all: Vec<u32> = (0..a.nrows() as u32).collect();
    let mut local = vec![NONE; a.nrows()];
    let mut placed = Placed { order: Vec::with_capacity(a.nrows()), position: vec![NONE; a.nrows()] };
    weighted.order_part(&all, 0, &mut local, &mut placed);
    Permutation::from_order(placed.order)
}

const NONE: u32 = u32::MAX;

/// The order so far, and where each vertex stands in it.
struct Placed {
    order: Vec<u32>,
    position: Vec<u32>,
}

impl Placed {
    fn extend(&mut self, vertices: &[u32]) {
        for &v in vertices {
            self.position[v as usize] = self.order.len() as u32;
            self.order.push(v);
        }
    }
}

struct Weighted<'a> {
    graph: &'a Graph,
    /// In the order of the adjacency lists.
    weights: &'a [f64],
}

impl Weighted<'_> {
    fn edges(&self, v: u32) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.graph.neighbours(v).iter().copied().zip(self.weights[self.graph.range(v)].iter().copied())
    }

    /// Appends the order of the subgraph induced by `part`, whose direction follows the order of `part`.
    ///
    /// `local` is `NONE` everywhere, before and after.
    fn order_part(&self, part: &[u32], depth: usize, local: &mut [u32], placed: &mut Placed) {
        const IN_PART: u32 = u32::MAX - 1;
        for &v in part {
            local[v as usize] = IN_PART;
        }
        let mut components: Vec<Vec<u32>> = Vec::new();
        for &v in part {
            if local[v as usize] != IN_PART {
                continue;
            }
            // The component of v; `local` becomes a mark that it was seen.
            let mut component = vec![v];
            local[v as usize] = NONE;
            let mut head = 0;
            while head < component.len() {
                for &w in self.graph.neighbours(component[head]) {
                    if local[w as usize] == IN_PART {
                        local[w as usize] = NONE;
                        component.push(w);
                    }
                }
                head += 1;
            }
            components.push(component);
        }
        // Vertices of a component in the order in which they stand in `part`.
        for (k, &v) in part.iter().enumerate() {
            local[v as usize] = k as u32;
        }
        for c in &mut components {
            c.sort_unstable_by_key(|&v| local[v as usize]);
        }
        for &v in part {
            local[v as usize] = NONE;
        }
        for component in components {
            self.order_component(&component, depth, local, placed);
        }
    }

    fn order_component(&self, component: &[u32], depth: usize, local: &mut [u32], placed: &mut Placed) {
        if component.len() <= 2 || depth == MAX_DEPTH {
            let mut vertices = component.to_vec();
            if self.prefers_reverse(component, &(0..component.len() as u32).collect::<Vec<_>>(), placed) {
                vertices.reverse();
            }
            placed.extend(&vertices);
            return;
        }
        for (k, &v) in component.iter().enumerate() {
            local[v as usize] = k as u32;
        }
        let laplacian = Laplacian::from_edges(component.len(), |k| {
            self.edges(component[k]).map(|(w, weight)| (local[w as usize], weight)).filter(|e| e.0 != NONE)
        });
        for &v in component {
            local[v as usize] = NONE;
        }
        let mut x = fiedler(laplacian);

        let mut sorted: Vec<u32> = (0..component.len() as u32).collect();
        sorted.sort_by(|&i, &j| x[i as usize].total_cmp(&x[j as usize]));
        if self.prefers_reverse(component, &sorted, placed) {
            sorted.reverse();
            for x in &mut x {
                *x = -*x;
            }
        }
        let value = |k: u32| x[k as usize];
        let range = value(sorted[sorted.len() - 1]) - value(sorted[0]);
        for group in sorted.chunk_by(|&i, &j| value(j) - value(i) <= RESOLUTION * range) {
            let vertices: Vec<u32> = group.iter().map(|&k| component[k as usize]).collect();
            if vertices.len() == component.len() {
                // So many that even neighbours are this close: a part would be no better off.
                placed.extend(&vertices);
            } else if vertices.len() == 1 {
                placed.extend(&vertices);
            } else {
                self.order_part(&vertices, depth + 1, local, placed);
            }
        }
    }

    /// Whether the vertices `component[sorted[0]]`, `component[sorted[1]]`, … should be taken backwards: closer to
    /// their neighbours already placed (Σ w·distance²), or else in better agreement with the order of `component`.
    fn prefers_reverse(&self, component: &[u32], sorted: &[u32], placed: &Placed) -> bool {
        let (base, last) = (placed.order.len() as f64, (sorted.len() - 1) as f64);
        let anchors = |rank: usize| {
            self.edges(component[sorted[rank] as usize])
                .map(|(w, weight)| (placed.position[w as usize], weight))
                .filter(|e| e.0 != NONE)
        };
        let heaviest = (0..sorted.len()).flat_map(anchors).fold(f64::MIN_POSITIVE, |m, e| m.max(e.1));
        let (mut forward, mut backward) = (0.0, 0.0);
        for rank in 0..sorted.len() {
            for (position, weight) in anchors(rank) {
                let to_here = base - f64::from(position);
                forward += weight / heaviest * (to_here + rank as f64).powi(2);
                backward += weight / heaviest * (to_here + last - rank as f64).powi(2);
            }
        }
        if forward != backward {
            return backward < forward;
        }
        sorted.iter().enumerate().map(|(rank, &k)| (rank as f64 - last / 2.0) * f64::from(k)).sum::<f64>() < 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coo::Coo;

    fn symmetric(n: usize, edges: &[(usize, usize, f64)]) -> Csr<f64> {
        let mut a = Coo::new(n, n).unwrap();
        for &(i, j, v) in edges {
            a.push(i, j, v).unwrap();
            a.push(j, i, -v).unwrap();
        }
        a.to_csr().unwrap()
    }

    #[test]
    fn tiny_sizes_and_components() {
        assert!(spectral(&symmetric(0, &[])).unwrap().is_empty());
        assert_eq!(spectral(&symmetric(1, &[(0, 0, 1.0)])).unwrap().order(), [0]);
        assert_eq!(spectral(&symmetric(2, &[(0, 1, 1.0)])).unwrap().order(), [0, 1]);
        // 0 – 4 – 2 and 1 – 6 – 3, and 5 alone.
        let a = symmetric(7, &[(0, 4, 1.0), (4, 2, 1.0), (1, 6, 2.0), (6, 3, 2.0)]);
        assert_eq!(spectral(&a).unwrap().order(), [0, 4, 2, 1, 6, 3, 5]);
    }

    #[test]
    fn weak_links_do_not_blur_what_they_join() {
        // Two paths 0 – 2 – 4 – 6 and 1 – 3 – 5 – 7 joined by a weight below all resolution.
        let strong = [(0, 2), (2, 4), (4, 6), (1, 3), (3, 5), (5, 7)].map(|(i, j)| (i, j, 1e200));
        let a = symmetric(8, &[&strong[..], &[(6, 1, 1e-200)]].concat());
        let order = spectral(&a).unwrap().order().to_vec();
        // Which path comes first is left to rounding; the second one starts at the link when the first ends there.
        let mut expected = [[0, 2, 4, 6, 1, 3, 5, 7], [1, 3, 5, 7, 6, 4, 2, 0], [7, 5, 3, 1, 6, 4, 2, 0]].iter();
        assert!(expected.any(|e| e[..] == order), "{order:?}");
    }

    #[test]
    fn complete_graphs_and_bad_values() {
        let edges: Vec<_> = (0..6).flat_map(|i| (i + 1..6).map(move |j| (i, j, 1.0))).collect();
        assert_eq!(spectral(&symmetric(6, &edges)).unwrap().len(), 6);
        let nan = symmetric(2, &[(0, 1, f64::NAN)]);
        assert!(matches!(spectral(&nan), Err(crate::Error::NonFinite { .. })));
    }
}
