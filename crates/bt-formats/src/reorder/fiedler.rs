//! The Fiedler vector of a connected weighted graph: multilevel LOBPCG.
//!
//! L x = λ M x, L = D − W the Laplacian, M the masses (1 on the given graph), for the smallest λ > 0.
//!
//! - *Levels*, as in Barnard & Simon, Concurrency Pract. Exper. 6 (1994), doi:10.1002/cpe.4330060203: vertices are
//!   joined in pairs along their heaviest edges, what is left over joins a neighbour, weights and masses add up
//!   (Galerkin with piecewise constants). Every level has at most half the vertices of the one below.
//! - *Coarsest level* (at most [`DENSE`] vertices): dense symmetric eigensolver.
//! - *Each finer level*: the interpolated vector is improved by LOBPCG (Knyazev, SIAM J. Sci. Comput. 23 (2001),
//!   doi:10.1137/S1064827500366124) with one vector, constants projected out.
//! - *Preconditioner*: a V-cycle over the same levels with Gauss–Seidel smoothing, forward before and backward after;
//!   the coarse correction is scaled to minimise the energy of the error, as piecewise constants fall short of it.
//!
//! Stops at ‖L x − λ M x‖₂ ≤ 10⁻⁸ λ for ‖x‖_M = 1, at rounding level of L, or after the iterations allowed. Cost: an
//! iteration passes some ten times over the edges of its level, and all levels together have about twice as many edges
//! as the finest. Storage: 12 bytes an adjacency and 40n bytes a level.

use faer::{Mat, Side};

/// Largest graph treated as a dense matrix.
const DENSE: usize = 64;
/// Iterations on the finest graph and on each coarser one.
const ITERATIONS: [usize; 2] = [100, 10];
/// Relative residual at which an eigenvector counts as converged.
const TOLERANCE: f64 = 1e-8;
/// Smallest weight, relative to the largest.
const FAINTEST: f64 = 4.930380657631324e-32; // 2⁻¹⁰⁴

const NONE: u32 = u32::MAX;

/// A weighted graph with masses at its vertices.
pub(super) struct Laplacian {
    ptr: Vec<usize>,
    adjacent: Vec<u32>,
    weight: Vec<f64>,
    /// dᵢ = Σⱼ wᵢⱼ
    degree: Vec<f64>,
    mass: Vec<f64>,
}

impl Laplacian {
    /// From the edges (neighbour, weight ≥ 0) of each vertex; every edge is given at both ends. Weights are divided
    /// by the largest, unit masses.
    pub fn from_edges<I: Iterator<Item = (u32, f64)>>(n: usize, edges: impl Fn(usize) -> I) -> Self {
        let (mut ptr, mut adjacent, mut weight) = (vec![0], Vec::new(), Vec::new());
        for i in 0..n {
            for (j, w) in edges(i) {
                adjacent.push(j);
                weight.push(w);
            }
            ptr.push(adjacent.len());
        }
        let largest = weight.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        for w in &mut weight {
            *w = (*w / largest).max(FAINTEST);
        }
        Self::new(ptr, adjacent, weight, vec![1.0; n])
    }

    fn new(ptr: Vec<usize>, adjacent: Vec<u32>, weight: Vec<f64>, mass: Vec<f64>) -> Self {
        let degree = ptr.windows(2).map(|w| weight[w[0]..w[1]].iter().sum()).collect();
        Self { ptr, adjacent, weight, degree, mass }
    }

    fn n(&self) -> usize {
        self.mass.len()
    }

    fn edges(&self, i: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = self.ptr[i]..self.ptr[i + 1];
        self.adjacent[range.clone()].iter().map(|&j| j as usize).zip(self.weight[range].iter().copied())
    }

    /// y ← L x, yᵢ = Σⱼ wᵢⱼ (xᵢ − xⱼ): differences first, so that smooth vectors lose no digits.
    fn apply(&self, x: &[f64], y: &mut [f64]) {
        for (i, y) in y.iter_mut().enumerate() {
            *y = self.edges(i).map(|(j, w)| w * (x[i] - x[j])).sum();
        }
    }

    /// xᵀ M y
    fn dot(&self, x: &[f64], y: &[f64]) -> f64 {
        self.mass.iter().zip(x).zip(y).map(|((m, x), y)| m * x * y).sum()
    }

    /// x ← x − 1·(1ᵀ M x)/(1ᵀ M 1)
    fn project_out_constants(&self, x: &mut [f64]) {
        let total: f64 = self.mass.iter().sum();
        let mean = self.mass.iter().zip(&*x).map(|(m, x)| m * x).sum::<f64>() / total;
        for x in x.iter_mut() {
            *x -= mean;
        }
    }

    /// One Gauss–Seidel pass over `rows` for L z = r: zᵢ ← (rᵢ + Σⱼ wᵢⱼ zⱼ) / dᵢ.
    fn smooth(&self, rows: impl Iterator<Item = usize>, r: &[f64], z: &mut [f64]) {
        for i in rows {
            let sum: f64 = self.edges(i).map(|(j, w)| w * z[j]).sum();
            z[i] = (r[i] + sum) / self.degree[i];
        }
    }

    /// Pairs along heavy edges: the cluster of each vertex, and the graph of the clusters.
    fn coarsen(&self) -> (Vec<u32>, Self) {
        let n = self.n();
        let mut cluster = vec![NONE; n];
        let mut count = 0;
        // First maximum, so that ties go to the smallest index.
        let heaviest = |cluster: &[u32], i: usize, free: bool| {
            self.edges(i)
                .filter(|&(j, _)| (cluster[j] == NONE) == free)
                .fold(
                    None,
                    |best: Option<(usize, f64)>, e| if best.is_some_and(|b| b.1 >= e.1) { best } else { Some(e) },
                )
                .map(|e| e.0)
        };
        for i in 0..n {
            if cluster[i] == NONE
                && let Some(j) = heaviest(&cluster, i, true)
            {
                (cluster[i], cluster[j]) = (count, count);
                count += 1;
            }
        }
        // A vertex left over has only neighbours in pairs, and at least one, as the graph is connected.
        let pairs = cluster.clone();
        for i in 0..n {
            if pairs[i] == NONE
                && let Some(j) = heaviest(&pairs, i, false)
            {
                cluster[i] = pairs[j];
            }
        }

        // Members of each cluster by a counting sort, then sums of weights between clusters.
        let mut start = vec![0usize; count as usize + 1];
        for &c in &cluster {
            start[c as usize + 1] += 1;
        }
        for c in 0..count as usize {
            start[c + 1] += start[c];
        }
        let mut next = start.clone();
        let mut member = vec![0u32; n];
        for (i, &c) in cluster.iter().enumerate() {
            member[next[c as usize]] = i as u32;
            next[c as usize] += 1;
        }
        let mut mass = vec![0.0; count as usize];
        let (mut ptr, mut adjacent, mut weight) = (vec![0], Vec::new(), Vec::new());
        let mut place = vec![0usize; count as usize];
        for c in 0..count as usize {
            let first = adjacent.len();
            for &i in &member[start[c]..start[c + 1]] {
                mass[c] += self.mass[i as usize];
                for (j, w) in self.edges(i as usize) {
                    let d = cluster[j];
                    if d as usize == c {
                        continue;
                    }
                    // A place from an earlier cluster lies before `first`, or holds another cluster.
                    let k = place[d as usize];
                    if k >= first && adjacent.get(k) == Some(&d) {
                        weight[k] += w;
                    } else {
                        place[d as usize] = adjacent.len();
                        adjacent.push(d);
                        weight.push(w);
                    }
                }
            }
            ptr.push(adjacent.len());
        }
        (cluster, Self::new(ptr, adjacent, weight, mass))
    }

    /// Eigenvalues (increasing) and eigenvectors of S L S for the diagonal matrix S; `None` if the solver fails.
    fn dense_eigen(&self, s: &[f64]) -> Option<(Vec<f64>, Mat<f64>)> {
        let mut dense = Mat::<f64>::zeros(self.n(), self.n());
        for i in 0..self.n() {
            dense[(i, i)] = s[i] * self.degree[i] * s[i];
            for (j, w) in self.edges(i) {
                dense[(i, j)] -= s[i] * w * s[j];
            }
        }
        let eigen = dense.self_adjoint_eigen(Side::Lower).ok()?;
        Some((eigen.S().column_vector().iter().copied().collect(), eigen.U().to_owned()))
    }
}

/// An eigenvector of the smallest non-zero eigenvalue of a connected graph with at least two vertices.
pub(super) fn fiedler(graph: Laplacian) -> Vec<f64> {
    let hierarchy = Hierarchy::new(graph);
    let coarsest = hierarchy.levels.len() - 1;
    let mut x = hierarchy.coarse_eigenvector();
    for level in (0..coarsest).rev() {
        // Interpolate: each vertex takes the value of its cluster.
        x = hierarchy.clusters[level].iter().map(|&c| x[c as usize]).collect();
        x = hierarchy.lobpcg(level, x, ITERATIONS[usize::from(level > 0)]);
    }
    x
}

/// The levels, finest first, and what links them.
struct Hierarchy {
    levels: Vec<Laplacian>,
    /// `clusters[l][i]`: vertex of level l + 1 that vertex i of level l belongs to.
    clusters: Vec<Vec<u32>>,
    /// Eigenvalues and eigenvectors of the coarsest L.
    coarse: Option<(Vec<f64>, Mat<f64>)>,
}

impl Hierarchy {
    fn new(graph: Laplacian) -> Self {
        let (mut levels, mut clusters) = (vec![graph], Vec::new());
        while levels[levels.len() - 1].n() > DENSE {
            let (cluster, coarse) = levels[levels.len() - 1].coarsen();
            clusters.push(cluster);
            levels.push(coarse);
        }
        let last = &levels[levels.len() - 1];
        let coarse = last.dense_eigen(&vec![1.0; last.n()]);
        Self { levels, clusters, coarse }
    }

    /// L x = λ M x on the coarsest level, as (M^−½ L M^−½) y = λ y, x = M^−½ y.
    fn coarse_eigenvector(&self) -> Vec<f64> {
        let graph = &self.levels[self.levels.len() - 1];
        let s: Vec<f64> = graph.mass.iter().map(|m| 1.0 / m.sqrt()).collect();
        let mut x: Vec<f64> = match graph.dense_eigen(&s) {
            Some((_, u)) if graph.n() > 1 => (0..graph.n()).map(|i| s[i] * u[(i, 1)]).collect(),
            _ => (0..graph.n()).map(|i| i as f64).collect(),
        };
        graph.project_out_constants(&mut x);
        x
    }

    /// z ≈ L⁺ r on level `l`.
    fn v_cycle(&self, l: usize, r: &[f64]) -> Vec<f64> {
        let graph = &self.levels[l];
        let n = graph.n();
        let mut z = vec![0.0; n];
        let Some(cluster) = self.clusters.get(l) else {
            let Some((values, u)) = &self.coarse else { return r.to_vec() };
            let least = values[n - 1] * f64::EPSILON;
            // z ← Σ u (uᵀ r)/λ over all but the constant vector and what rounding cannot tell from it.
            for k in (1..n).filter(|&k| values[k] > least) {
                let factor = (0..n).map(|i| u[(i, k)] * r[i]).sum::<f64>() / values[k];
                for i in 0..n {
                    z[i] += factor * u[(i, k)];
                }
            }
            return z;
        };
        graph.smooth(0..n, r, &mut z);
        // Residual, summed over clusters.
        let mut residual = vec![0.0; n];
        graph.apply(&z, &mut residual);
        let coarse = &self.levels[l + 1];
        let mut coarse_r = vec![0.0; coarse.n()];
        for i in 0..n {
            coarse_r[cluster[i] as usize] += r[i] - residual[i];
        }
        let e = self.v_cycle(l + 1, &coarse_r);
        // α = (eᵀ r)/(eᵀ L e) minimises the energy of the error along e.
        let mut le = vec![0.0; coarse.n()];
        coarse.apply(&e, &mut le);
        let (work, energy) = (inner(&e, &coarse_r), inner(&e, &le));
        let alpha = if energy > 0.0 && work > 0.0 { work / energy } else { 1.0 };
        for i in 0..n {
            z[i] += alpha * e[cluster[i] as usize];
        }
        graph.smooth((0..n).rev(), r, &mut z);
        z
    }

    /// LOBPCG with one vector from the start `x`.
    fn lobpcg(&self, l: usize, mut x: Vec<f64>, iterations: usize) -> Vec<f64> {
        let graph = &self.levels[l];
        let n = graph.n();
        let rounding = 8.0 * f64::EPSILON * graph.degree.iter().copied().fold(0.0, f64::max);
        let mut p: Option<Vec<f64>> = None;
        let mut lx = vec![0.0; n];
        if !orthonormalize(graph, &mut x, &[]) {
            return x;
        }
        for _ in 0..iterations {
            graph.apply(&x, &mut lx);
            // λ ← xᵀ L x, r ← L x − λ M x
            let lambda = inner(&x, &lx);
            let r: Vec<f64> = (0..n).map(|i| lx[i] - lambda * graph.mass[i] * x[i]).collect();
            let norm = inner(&r, &r).sqrt();
            if norm.is_nan() || norm <= (TOLERANCE * lambda).max(rounding) {
                break;
            }
            let mut w = self.v_cycle(l, &r);
            if !orthonormalize(graph, &mut w, &[&x]) {
                break;
            }
            let direction = p.take().filter(|p| p.iter().all(|v| v.is_finite()));
            let third = direction.and_then(|mut p| orthonormalize(graph, &mut p, &[&x, &w]).then_some(p));

            // Rayleigh–Ritz on x, w, p: the least eigenvector c of Sᵀ L S.
            let basis: Vec<&[f64]> = [Some(&x), Some(&w), third.as_ref()].into_iter().flatten().map(|v| &**v).collect();
            let images: Vec<Vec<f64>> = basis
                .iter()
                .map(|s| {
                    let mut y = vec![0.0; n];
                    graph.apply(s, &mut y);
                    y
                })
                .collect();
            let gram = Mat::from_fn(basis.len(), basis.len(), |i, j| inner(basis[i], &images[j]));
            let Ok(ritz) = gram.self_adjoint_eigen(Side::Lower) else { break };
            let c: Vec<f64> = (0..basis.len()).map(|k| ritz.U()[(k, 0)]).collect();
            // p ← c₁ w + c₂ p, x ← c₀ x + p
            let new_p: Vec<f64> = (0..n).map(|i| (1..basis.len()).map(|k| c[k] * basis[k][i]).sum()).collect();
            let mut new_x: Vec<f64> = x.iter().zip(&new_p).map(|(x, p)| c[0] * x + p).collect();
            if !orthonormalize(graph, &mut new_x, &[]) {
                break;
            }
            (x, p) = (new_x, Some(new_p));
        }
        x
    }
}

fn inner(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// Makes `x` M-orthogonal to 1 and to `others` (which are M-orthonormal) by two passes of Gram–Schmidt, with M-norm 1;
/// false when nothing is left of it.
fn orthonormalize(graph: &Laplacian, x: &mut [f64], others: &[&[f64]]) -> bool {
    for _ in 0..2 {
        let before = graph.dot(x, x).sqrt();
        if !(before > 0.0 && before.is_finite()) {
            return false;
        }
        for x in x.iter_mut() {
            *x /= before;
        }
        graph.project_out_constants(x);
        for other in others {
            let c = graph.dot(x, other);
            for (x, o) in x.iter_mut().zip(*other) {
                *x -= c * o;
            }
        }
        let after = graph.dot(x, x).sqrt();
        if after.is_nan() || after <= 1e-13 {
            return false;
        }
        for x in x.iter_mut() {
            *x /= after;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(n: usize, weight: impl Fn(usize) -> f64) -> Laplacian {
        Laplacian::from_edges(n, |i| {
            let left = (i > 0).then(|| (i as u32 - 1, weight(i - 1)));
            let right = (i + 1 < n).then(|| (i as u32 + 1, weight(i)));
            left.into_iter().chain(right)
        })
    }

    /// The Fiedler vector of a path is cos(π(i + ½)/n): known in closed form, on a graph of many levels.
    #[test]
    fn paths_have_a_cosine() {
        for n in [2usize, 3, 64, 65, 1000, 20_000] {
            let x = fiedler(path(n, |_| 3.0));
            let exact: Vec<f64> = (0..n).map(|i| (std::f64::consts::PI * (i as f64 + 0.5) / n as f64).cos()).collect();
            let cosine = inner(&x, &exact) / (inner(&x, &x) * inner(&exact, &exact)).sqrt();
            assert!(1.0 - cosine.abs() < 1e-10, "n = {n}: {cosine}");
        }
    }

    #[test]
    fn coarsening_keeps_masses_and_weights() {
        // A star: one pair, and all other leaves join it.
        let star = Laplacian::from_edges(6, |i| {
            let rays = if i == 0 { 1..6 } else { 0..1 };
            rays.map(|j| (j, 1.0)).collect::<Vec<_>>().into_iter()
        });
        let (cluster, coarse) = star.coarsen();
        assert_eq!((cluster, coarse.mass, coarse.adjacent), (vec![0; 6], vec![6.0], vec![]));
        // A path of weights 1 2 4 8: pairs (0 1) and (2 3) by index, 4 joins 3.
        let (cluster, coarse) = path(5, |i| f64::from(1u32 << i)).coarsen();
        assert_eq!(cluster, [0, 0, 1, 1, 1]);
        assert_eq!((coarse.mass, coarse.weight), (vec![2.0, 3.0], vec![0.25, 0.25]));
    }
}
