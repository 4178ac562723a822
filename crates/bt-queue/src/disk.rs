//! Poisson's equation on the unit disk by linear finite elements, with exactly n unknowns for any n.
//!
//! The experiments of R. Helfenstein, J. Koko, J. Comput. Appl. Math. 236 (2012) 3584–3590,
//! doi:10.1016/j.cam.2011.04.025, are of this kind with n = 1105 … 2 105 137; their meshes are not published, and this one
//! is **ours**: rings of nodes around the centre, as many on ring i of R as make the sum n.
//!
//! ```text
//! R minimises |1 + 3R(R+1) − n|;  Cᵢ = 1 + ⌊((n−1)·i(i+1) + R(R+1)/2)/(R(R+1))⌋ nodes up to ring i, Nᵢ = Cᵢ − Cᵢ₋₁
//! node s of ring i: radius i/(R+1), angle 2πs/Nᵢ; one more ring of round(N_R(R+1)/R) nodes on the circle, eliminated
//! jitter: x, y of the nodes 1 … n−1 moved by up to 0.15·h, h = 1/(R+1)
//! ```
//!
//! The right-hand side is the lumped load times eˣ(1 + sin 3y + xy): a load of 1 is superconvergent for conjugate gradients.
//!
//! Storage: about 7n entries. Cost: O(n).

use std::f64::consts::TAU;

use bt_formats::{Coo, Csr, Error, Result};

use crate::cases::uniform;

/// Largest displacement of a node by the jitter, in units of h.
const JITTER: f64 = 0.15;
/// Seed and kinds of its random numbers.
const SEED: u64 = 1;
const KIND_X: u64 = 5;
const KIND_Y: u64 = 6;

/// The stiffness matrix and the load.
///
/// ```
/// use bt_queue::UnitDisk;
/// let disk = UnitDisk::new(1105)?;
/// let a = disk.matrix();
/// assert_eq!((a.row_ptr().len() - 1, disk.load().len()), (1105, 1105));
/// // −Δ of a constant vanishes away from the boundary.
/// let (_, values) = a.row(0);
/// assert!(values.iter().sum::<f64>().abs() < 1e-12);
/// # Ok::<(), bt_formats::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct UnitDisk {
    matrix: Csr<f64>,
    load: Vec<f64>,
}

/// Nodes by rings: how many lie inside each ring, and where all of them are.
pub(crate) struct Mesh {
    n: usize,
    /// First node of each ring, the centre being ring 0, the boundary the last; then the number of all nodes.
    starts: Vec<usize>,
    pub points: Vec<[f64; 2]>,
}

impl UnitDisk {
    /// With `n` unknowns.
    ///
    /// # Errors
    /// [`Error::InvalidStructure`] for n < 7, the centre and one ring of six; [`Error::TooLarge`] beyond 32-bit indices.
    ///
    /// # Cost
    /// O(n).
    pub fn new(n: usize) -> Result<Self> {
        let mesh = Mesh::checked(n, 1)?;
        let mut matrix = Coo::new(n, n)?;
        let mut load = vec![0.0; n];
        mesh.for_each_triangle(&mut |nodes| {
            let (twice, b, c) = mesh.differences(nodes);
            for i in (0..3).filter(|&i| nodes[i] < n) {
                load[nodes[i]] += twice / 6.0;
                for j in (0..3).filter(|&j| nodes[j] < n) {
                    matrix.push(nodes[i], nodes[j], (b[i] * b[j] + c[i] * c[j]) / (2.0 * twice))?;
                }
            }
            Ok(())
        })?;
        for (l, [x, y]) in load.iter_mut().zip(&mesh.points) {
            *l *= force(*x, *y);
        }
        Ok(Self { matrix: matrix.to_csr()?, load })
    }

    /// The stiffness matrix: symmetric positive definite.
    pub fn matrix(&self) -> &Csr<f64> {
        &self.matrix
    }

    /// The right-hand side.
    pub fn load(&self) -> &[f64] {
        &self.load
    }

    /// Both, without a copy.
    pub fn into_parts(self) -> (Csr<f64>, Vec<f64>) {
        (self.matrix, self.load)
    }
}

/// eˣ(1 + sin 3y + xy)
pub(crate) fn force(x: f64, y: f64) -> f64 {
    x.exp() * (1.0 + (3.0 * y).sin() + x * y)
}

impl Mesh {
    /// Of `n` nodes inside, for so many unknowns at each.
    ///
    /// # Errors
    /// As [`UnitDisk::new`].
    pub fn checked(n: usize, unknowns: usize) -> Result<Self> {
        if n < 7 {
            return Err(Error::InvalidStructure { what: "mesh", why: format!("{n} nodes make no ring: 7 at least") });
        }
        let square = unknowns * unknowns;
        if n > u32::MAX as usize / 16 / square {
            return Err(Error::TooLarge {
                what: "a mesh",
                needed: format!("{n} nodes"),
                limit: "32-bit indices of its entries".into(),
            });
        }
        // Some 18 contributions to a row in a list, and the seven sums of them.
        bt_formats::memory::ask((n * square) as u64 * (18 * 16 + 7 * 12 + 32), "the mesh")?;
        Ok(Self::new(n))
    }

    /// Twice the area of a triangle, and (b, c) over it the gradients of its basis functions, up to a sign that they share.
    pub fn differences(&self, nodes: [usize; 3]) -> (f64, [f64; 3], [f64; 3]) {
        let p = nodes.map(|k| self.points[k]);
        let twice = (p[1][0] - p[0][0]) * (p[2][1] - p[0][1]) - (p[2][0] - p[0][0]) * (p[1][1] - p[0][1]);
        let b = [p[1][1] - p[2][1], p[2][1] - p[0][1], p[0][1] - p[1][1]];
        let c = [p[2][0] - p[1][0], p[0][0] - p[2][0], p[1][0] - p[0][0]];
        (twice.abs(), b, c)
    }

    fn new(n: usize) -> Self {
        let missed = |r: usize| (1 + 3 * r * (r + 1)).abs_diff(n);
        let rings = (1..n).find(|&r| missed(r + 1) > missed(r)).unwrap_or(1);
        let mut starts = vec![0];
        // Cᵢ₋₁ is the first node of ring i.
        let total = |i: usize| {
            let (n, r, i) = (n as u128, rings as u128, i as u128);
            (1 + ((n - 1) * i * (i + 1) + r * (r + 1) / 2) / (r * (r + 1))) as usize
        };
        starts.extend((0..=rings).map(total));
        let last = n - starts[rings];
        let boundary = (last as f64 * (rings + 1) as f64 / rings as f64).round() as usize;
        starts.push(n + boundary);
        let h = 1.0 / (rings + 1) as f64;
        let mut points = vec![[0.0; 2]];
        for i in 1..=rings + 1 {
            let count = starts[i + 1] - starts[i];
            for s in 0..count {
                let (sin, cos) = (TAU * s as f64 / count as f64).sin_cos();
                let node = points.len() as u64;
                let moved =
                    |kind| if i <= rings { JITTER * h * (2.0 * uniform(SEED, kind, node, 0) - 1.0) } else { 0.0 };
                points.push([i as f64 * h * cos + moved(KIND_X), i as f64 * h * sin + moved(KIND_Y)]);
            }
        }
        Self { n, starts, points }
    }

    /// Triangles between ring i − 1 of a nodes and ring i of b: outer edge q goes to the inner node ⌈(q+1)a/b⌉ − 1, inner
    /// edge p to the outer node ⌊(p+1)b/a⌋.
    pub fn for_each_triangle(&self, visit: &mut dyn FnMut([usize; 3]) -> Result<()>) -> Result<()> {
        debug_assert!(self.points.len() > self.n);
        for i in 1..self.starts.len() - 1 {
            let (inner, outer) = (self.starts[i - 1], self.starts[i]);
            let (a, b) = (outer - inner, self.starts[i + 1] - outer);
            for q in 0..b {
                visit([outer + q, outer + (q + 1) % b, inner + (((q + 1) * a).div_ceil(b) - 1) % a])?;
            }
            // The centre has no edge.
            for p in (0..a).filter(|_| a > 1) {
                visit([inner + p, inner + (p + 1) % a, outer + (p + 1) * b / a % b])?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meshes_are_triangulations() {
        for n in [7, 8, 19, 100, 1105, 8047] {
            let mesh = Mesh::new(n);
            let mut triangles = 0;
            let mut edges = std::collections::HashSet::new();
            let mut area = 0.0;
            mesh.for_each_triangle(&mut |nodes| {
                let [p, q, r] = nodes.map(|k| mesh.points[k]);
                let twice = (q[0] - p[0]) * (r[1] - p[1]) - (r[0] - p[0]) * (q[1] - p[1]);
                assert!(twice.abs() > 1e-12, "n = {n}: {nodes:?}");
                area += twice.abs() / 2.0;
                triangles += 1;
                for (i, j) in [(0, 1), (1, 2), (2, 0)] {
                    edges.insert((nodes[i].min(nodes[j]), nodes[i].max(nodes[j])));
                }
                Ok(())
            })
            .unwrap();
            // Euler: V − E + T = 1
            assert_eq!(mesh.points.len() + triangles, edges.len() + 1, "n = {n}");
            // No overlap: the areas sum to that of the polygon on the circle.
            let b = (mesh.points.len() - n) as f64;
            let polygon = b / 2.0 * (TAU / b).sin();
            assert!((area - polygon).abs() < 1e-10, "n = {n}: {area} {polygon}");
        }
        assert!(UnitDisk::new(6).is_err() && UnitDisk::new(usize::MAX).is_err());
    }
}
