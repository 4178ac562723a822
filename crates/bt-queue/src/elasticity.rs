//! Plane linear elasticity on the unit disk by linear finite elements, held on the circle: two unknowns at every node.
//!
//! The meshes are those of [`UnitDisk`](crate::UnitDisk); Young's modulus is 1, Poisson's ratio ν. With gradients gᵢ of the basis functions
//! on a triangle of area t the 2 × 2 block of nodes i, j, row p and column q for the directions, has
//!
//! ```text
//! t·(λ·gᵢ[p]·gⱼ[q] + μ·gᵢ[q]·gⱼ[p] + μ·(gᵢ·gⱼ)·δ(p, q)),   μ = 1/(2(1 + ν))
//! λ = ν/((1 + ν)(1 − 2ν)) for plane strain, ν/(1 − ν²) for plane stress
//! ```
//!
//! O. C. Zienkiewicz, R. L. Taylor, The Finite Element Method, vol. 1, 5th ed., 2000, chapter 4. Rows 2i and 2i + 1 are the directions x
//! and y of node i. The load is the lumped force (f(x, y), f(y, x)), f = eˣ(1 + sin 3y + xy).
//!
//! Storage: about 14n entries for n unknowns. Cost: O(n).

use bt_formats::{Coo, Csr, Error, Result};

use crate::disk::{Mesh, force};

/// What is plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plane {
    /// Nothing is strained across the plane: a long cylinder.
    Strain,
    /// Nothing is stressed across it: a thin plate.
    Stress,
}

/// The stiffness matrix and the load.
///
/// ```
/// use bt_formats::detect::block_size;
/// use bt_queue::{ElasticDisk, Plane};
/// let disk = ElasticDisk::new(2210, Plane::Strain, 0.3)?;
/// let a = disk.matrix();
/// assert_eq!((a.row_ptr().len() - 1, disk.load().len(), block_size(a, 0.25)), (2210, 2210, 2));
/// // A shift of everything strains nothing away from the boundary.
/// let (columns, values) = a.row(0);
/// let sum: f64 = columns.iter().zip(values).filter(|(j, _)| **j % 2 == 0).map(|(_, v)| v).sum();
/// assert!(sum.abs() < 1e-12);
/// # Ok::<(), bt_formats::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ElasticDisk {
    matrix: Csr<f64>,
    load: Vec<f64>,
}

impl ElasticDisk {
    /// With `n` unknowns, two a node, and Poisson's ratio `nu`.
    ///
    /// # Errors
    /// [`Error::InvalidStructure`] for an odd n, for n < 14, the centre and one ring of six, and for a ratio that is not between −1 and 1/2,
    /// where the matrix is definite; [`Error::TooLarge`] beyond 32-bit indices.
    ///
    /// # Cost
    /// O(n).
    pub fn new(n: usize, plane: Plane, nu: f64) -> Result<Self> {
        if !n.is_multiple_of(2) {
            let why = format!("{n} unknowns are not two a node: give an even number");
            return Err(Error::InvalidStructure { what: "mesh", why });
        }
        if !(nu > -1.0 && nu < 0.5) {
            return Err(Error::InvalidStructure {
                what: "Poisson's ratio",
                why: format!("{nu} is not between -1 and 0.5"),
            });
        }
        let mu = 0.5 / (1.0 + nu);
        let lambda = match plane {
            Plane::Strain => nu / ((1.0 + nu) * (1.0 - 2.0 * nu)),
            Plane::Stress => nu / (1.0 - nu * nu),
        };
        let mesh = Mesh::checked(n / 2, 2)?;
        let mut matrix = Coo::new(n, n)?;
        let mut load = vec![0.0; n];
        mesh.for_each_triangle(&mut |nodes| {
            let (twice, b, c) = mesh.differences(nodes);
            let inside = |i: &usize| nodes[*i] < n / 2;
            for i in (0..3).filter(inside) {
                let [x, y] = mesh.points[nodes[i]];
                load[2 * nodes[i]] += twice / 6.0 * force(x, y);
                load[2 * nodes[i] + 1] += twice / 6.0 * force(y, x);
                for j in (0..3).filter(inside) {
                    // Times twice the area.
                    let (gi, gj) = ([b[i], c[i]], [b[j], c[j]]);
                    let both = mu * (gi[0] * gj[0] + gi[1] * gj[1]);
                    for (p, q) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                        let shear = if p == q { both } else { 0.0 };
                        let sum = lambda * (gi[p] * gj[q]) + mu * (gi[q] * gj[p]) + shear;
                        matrix.push(2 * nodes[i] + p, 2 * nodes[j] + q, sum / (2.0 * twice))?;
                    }
                }
            }
            Ok(())
        })?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use bt_formats::{LinearOperator, Matrix};

    /// A·u at the rows of the nodes that touch no boundary, where a linear displacement is in equilibrium.
    #[test]
    fn linear_displacements_are_in_equilibrium_inside() {
        let (n, mesh) = (602, Mesh::checked(301, 2).unwrap());
        let mut touches = vec![false; 301];
        mesh.for_each_triangle(&mut |nodes| {
            if nodes.iter().any(|&k| k >= 301) {
                nodes.into_iter().filter(|&k| k < 301).for_each(|k| touches[k] = true);
            }
            Ok(())
        })
        .unwrap();
        assert!(touches.iter().any(|t| !t));
        for (plane, nu) in [(Plane::Strain, 0.3), (Plane::Stress, 0.3), (Plane::Strain, -0.5), (Plane::Stress, 0.45)] {
            let disk = ElasticDisk::new(n, plane, nu).unwrap();
            for gradient in [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, -1.0, 0.0], [0.3, -0.2, 0.7, 1.1]] {
                let [xx, xy, yx, yy] = gradient;
                let u = mesh.points[..301].iter().flat_map(|[x, y]| [xx * x + xy * y, yx * x + yy * y]);
                let mut y = vec![0.0; n];
                disk.matrix().apply(1.0, &u.collect::<Vec<_>>(), 0.0, &mut y);
                for (i, y) in y.iter().enumerate().filter(|(i, _)| !touches[i / 2]) {
                    assert!(y.abs() < 1e-12, "{plane:?} {nu}: row {i} has {y}");
                }
            }
        }
    }

    /// The block of the centre, whose neighbours are all inside, against ∫Bᵀ·C·B.
    #[test]
    fn blocks_are_those_of_the_law() {
        let mesh = Mesh::checked(19, 2).unwrap();
        let nu = 0.25;
        // For ν = 1/4: λ = μ = 2/5 in plane strain, λ = 4/15 in plane stress.
        for (plane, lambda) in [(Plane::Strain, 0.4), (Plane::Stress, 4.0 / 15.0)] {
            let disk = ElasticDisk::new(38, plane, nu).unwrap();
            let mut expected = [[0.0; 2]; 2];
            mesh.for_each_triangle(&mut |nodes| {
                let (twice, b, c) = mesh.differences(nodes);
                for i in (0..3).filter(|&i| nodes[i] == 0) {
                    let [x, y] = [b[i] / twice, c[i] / twice];
                    let area = twice / 2.0;
                    // εᵀ·C·ε with ε = (x, 0, y) and (0, y, x), C = [λ+2μ λ 0; λ λ+2μ 0; 0 0 μ]
                    let stiff = lambda + 0.8;
                    expected[0][0] += area * (stiff * x * x + 0.4 * y * y);
                    expected[1][1] += area * (stiff * y * y + 0.4 * x * x);
                    expected[0][1] += area * (lambda * x * y + 0.4 * y * x);
                }
                Ok(())
            })
            .unwrap();
            expected[1][0] = expected[0][1];
            for (p, q) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                assert!((disk.matrix().get(p, q) - expected[p][q]).abs() < 1e-14, "{plane:?} ({p}, {q})");
            }
        }
    }

    #[test]
    fn the_matrix_is_symmetric_to_the_bit_and_bad_sizes_are_refused() {
        let disk = ElasticDisk::new(1106, Plane::Stress, 0.3).unwrap();
        let a = disk.matrix();
        a.for_each_entry(&mut |i, j, v| assert_eq!(v, a.get(j, i)));
        for (n, nu, word) in [(15, 0.3, "even"), (12, 0.3, "7 at least"), (14, 0.5, "0.5"), (14, f64::NAN, "NaN")] {
            let error = ElasticDisk::new(n, Plane::Strain, nu).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        assert!(matches!(ElasticDisk::new(usize::MAX - 1, Plane::Strain, 0.3), Err(Error::TooLarge { .. })));
    }
}
