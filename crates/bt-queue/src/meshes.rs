//! Stand-ins for three matrices of published experiments: same sizes and numbers of non-zeros, values and where need be structure
//! of our own.
//!
//! **edf**: the 7-point stencil on 16 × 32 × 32 points, n = 16 384 and 110 592 non-zeros, repeated along the diagonal.
//! **flame2p3d80**: 81³ nodes with their boundary. Boundary rows are rows of the identity and couplings to boundary nodes are
//! eliminated, so that 7·79³ − 6·79² + (81³ − 79³) = 3 452 229 non-zeros remain. The values are ours: diffusion around two spheres
//! by harmonic means of the coefficients, screened outside, rows scaled to a diagonal of 1, which makes it unsymmetric.
//! **epb3**: 299 × 283 points, n = 84 617; the 5-point stencil and 41 704 one-sided couplings in the rows ⌊q·n/41704⌋ to the column
//! 598 before, or after where there is none: 463 625 non-zeros. The structure is invented, the values are those of the Laplacian
//! with 1 for each coupling on either side of the diagonal.
//!
//! Cost and storage: O(nnz).

use bt_formats::{Csr, Error, Result};

/// One of the meshes. Its rows are made one by one, so that a rank of many makes its own only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mesh {
    /// [`laplacian`] on a box of points.
    Laplacian([usize; 3]),
    /// [`edf`], so many times along the diagonal.
    Edf(usize),
    /// [`flame`], so many times along the diagonal.
    Flame(usize),
    /// [`epb3`], so many times along the diagonal.
    Epb3(usize),
}

impl Mesh {
    /// Rows of the whole matrix.
    ///
    /// # Errors
    /// [`Error::InvalidStructure`] for no points and no copies, [`Error::TooLarge`] for more rows than indices of 32 bits.
    pub fn n(self) -> Result<usize> {
        let invalid = |why: &str| Err(Error::InvalidStructure { what: "mesh", why: why.into() });
        match self {
            Self::Laplacian(size) if size.contains(&0) => return invalid("a box without points"),
            Self::Edf(0) | Self::Flame(0) | Self::Epb3(0) => return invalid("at least one copy is needed"),
            _ => {}
        }
        let n = match self {
            Self::Laplacian(size) => size.iter().fold(1usize, |n, &s| n.saturating_mul(s)),
            Self::Edf(copies) => copies.saturating_mul(edf_rows::N),
            Self::Flame(copies) => copies.saturating_mul(flame_rows::N),
            Self::Epb3(copies) => copies.saturating_mul(epb3_rows::N),
        };
        if n > LIMIT { Err(too_large(n, 0, format!("the {LIMIT} of 32-bit indices"))) } else { Ok(n) }
    }

    /// The whole matrix.
    ///
    /// # Errors
    /// Those of [`Mesh::n`]; [`Error::TooLarge`].
    pub fn matrix(self) -> Result<Csr<f64>> {
        self.rows(0..self.n()?)
    }

    /// The rows of these numbers, in this order, with the columns of the whole matrix.
    ///
    /// ```
    /// use bt_queue::meshes::Mesh;
    /// let mesh = Mesh::Edf(2);
    /// let (part, whole) = (mesh.rows([20_000, 3])?, mesh.matrix()?);
    /// assert_eq!((part.row(0), part.row(1)), (whole.row(20_000), whole.row(3)));
    /// # Ok::<(), bt_formats::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Mesh::n`]; [`Error::TooLarge`]; [`Error::InvalidStructure`] for a number beyond the rows.
    pub fn rows(self, numbers: impl IntoIterator<Item = usize, IntoIter: ExactSizeIterator>) -> Result<Csr<f64>> {
        let (n, numbers) = (self.n()?, numbers.into_iter());
        // Of a row at most, and of all of them.
        let (of_row, of_all) = match self {
            Self::Laplacian(_) => (7, usize::MAX),
            Self::Edf(copies) => (7, copies.saturating_mul(edf_rows::NNZ)),
            Self::Flame(copies) => (7, copies.saturating_mul(flame_rows::NNZ)),
            Self::Epb3(copies) => (6, copies.saturating_mul(epb3_rows::NNZ)),
        };
        let entries = if numbers.len() == n { of_all } else { usize::MAX };
        let mut rows = Rows::new(n, numbers.len(), entries.min(numbers.len().saturating_mul(of_row)))?;
        for i in numbers {
            if i >= n {
                let why = format!("there is no row {i} of {n}");
                return Err(Error::InvalidStructure { what: "mesh", why });
            }
            match self {
                Self::Laplacian(size) => stencil_row(&mut rows, 0, i, &neighbours(i, size), 6.0),
                Self::Edf(_) => edf_rows::push(&mut rows, i),
                Self::Flame(_) => flame_rows::push(&mut rows, i),
                Self::Epb3(_) => epb3_rows::push(&mut rows, i),
            }
        }
        rows.finish()
    }
}

/// Of rows and of entries.
const LIMIT: usize = u32::MAX as usize - 1;

fn too_large(n: usize, entries: usize, limit: String) -> Error {
    Error::TooLarge { what: "a mesh", needed: format!("{n} rows and {entries} entries"), limit }
}

/// Rows made one by one, columns increasing.
struct Rows {
    ncols: usize,
    row_ptr: Vec<u32>,
    col_idx: Vec<u32>,
    values: Vec<f64>,
}

impl Rows {
    fn new(ncols: usize, nrows: usize, entries: usize) -> Result<Self> {
        if nrows > LIMIT || entries > LIMIT {
            return Err(too_large(nrows, entries, format!("the {LIMIT} of 32-bit indices")));
        }
        bt_formats::memory::ask((nrows as u64 + 1) * 4 + entries as u64 * 12, "the mesh")?;
        let mut rows = Self { ncols, row_ptr: Vec::new(), col_idx: Vec::new(), values: Vec::new() };
        let memory = |_| too_large(nrows, entries, "the memory there is".into());
        rows.row_ptr.try_reserve_exact(nrows + 1).map_err(memory)?;
        rows.col_idx.try_reserve_exact(entries).map_err(memory)?;
        rows.values.try_reserve_exact(entries).map_err(memory)?;
        rows.row_ptr.push(0);
        Ok(rows)
    }
    fn push(&mut self, column: usize, value: f64) {
        self.col_idx.push(column as u32);
        self.values.push(value);
    }
    fn end_row(&mut self) {
        self.row_ptr.push(self.col_idx.len() as u32);
    }
    fn finish(self) -> Result<Csr<f64>> {
        Csr::new(self.row_ptr.len() - 1, self.ncols, self.row_ptr, self.col_idx, self.values)
    }
}

/// Neighbours of a point of a box, x fastest, in increasing order: [−z, −y, −x, +x, +y, +z], `None` outside.
fn neighbours(p: usize, size: [usize; 3]) -> [Option<usize>; 6] {
    let strides = [1, size[0], size[0] * size[1]];
    let place = [p % size[0], p / size[0] % size[1], p / strides[2]];
    let before = |axis: usize| (place[axis] > 0).then(|| p - strides[axis]);
    let after = |axis: usize| (place[axis] + 1 < size[axis]).then(|| p + strides[axis]);
    [before(2), before(1), before(0), after(0), after(1), after(2)]
}

/// −1 for each neighbour and the diagonal in its place.
fn stencil_row(rows: &mut Rows, first: usize, p: usize, neighbours: &[Option<usize>], diagonal: f64) {
    let (before, after) = neighbours.split_at(neighbours.len() / 2);
    for q in before.iter().flatten() {
        rows.push(first + q, -1.0);
    }
    rows.push(first + p, diagonal);
    for q in after.iter().flatten() {
        rows.push(first + q, -1.0);
    }
    rows.end_row();
}

/// The 7-point stencil on a box of points, x fastest: 6 on the diagonal, −1 for each neighbour. Symmetric positive definite.
///
/// ```
/// use bt_formats::Matrix;
/// let (box_, copies) = (bt_queue::meshes::laplacian([16, 32, 64])?, bt_queue::meshes::edf(2)?);
/// // The halves of the box touch in 16 · 32 places.
/// assert_eq!(box_.nnz(), copies.nnz() + 2 * 16 * 32);
/// # Ok::<(), bt_formats::Error>(())
/// ```
///
/// # Errors
/// [`Error::TooLarge`]; [`Error::InvalidStructure`] for an empty box.
pub fn laplacian(size: [usize; 3]) -> Result<Csr<f64>> {
    Mesh::Laplacian(size).matrix()
}

/// edf, `copies` times along the diagonal: symmetric positive definite.
///
/// ```
/// use bt_formats::Matrix;
/// assert_eq!(bt_queue::meshes::edf(1)?.nnz(), 110_592);
/// # Ok::<(), bt_formats::Error>(())
/// ```
///
/// # Errors
/// [`Error::TooLarge`]; [`Error::InvalidStructure`] for no copies.
pub fn edf(copies: usize) -> Result<Csr<f64>> {
    Mesh::Edf(copies).matrix()
}

mod edf_rows {
    use super::{Rows, neighbours, stencil_row};

    const SIZE: [usize; 3] = [16, 32, 32];
    pub const N: usize = 16_384;
    pub const NNZ: usize = 110_592;

    pub fn push(rows: &mut Rows, i: usize) {
        let (first, p) = (i / N * N, i % N);
        stencil_row(rows, first, p, &neighbours(p, SIZE), 6.0);
    }
}

/// flame2p3d80, the pattern with values of our own, `copies` times along the diagonal.
///
/// With coefficients a = 2 in two spheres and 80 outside, there with a screening of 0.1 per point:
/// Σ_q h(a_p, a_q)(u_p − u_q) + s_p·u_p, h the harmonic mean, divided by the diagonal.
///
/// # Errors
/// [`Error::TooLarge`]; [`Error::InvalidStructure`] for no copies.
pub fn flame(copies: usize) -> Result<Csr<f64>> {
    Mesh::Flame(copies).matrix()
}

mod flame_rows {
    use super::{Rows, neighbours};

    const SIDE: usize = 81;
    pub const N: usize = SIDE * SIDE * SIDE;
    pub const NNZ: usize = 3_452_229;

    fn place(p: usize) -> [usize; 3] {
        [p % SIDE, p / SIDE % SIDE, p / (SIDE * SIDE)]
    }
    fn boundary(p: usize) -> bool {
        place(p).iter().any(|&c| c == 0 || c + 1 == SIDE)
    }
    fn inside(p: usize) -> bool {
        let spheres = [([30.0, 40.0, 40.0], 12.0), ([54.0, 42.0, 38.0], 9.0f64)];
        spheres.iter().any(|(centre, radius): &([f64; 3], f64)| {
            let squares = place(p).into_iter().zip(centre).map(|(x, c)| (x as f64 - c).powi(2));
            squares.sum::<f64>() < radius * radius
        })
    }
    fn coefficient(p: usize) -> f64 {
        if inside(p) { 2.0 } else { 80.0 }
    }

    pub fn push(rows: &mut Rows, i: usize) {
        let (first, p) = (i / N * N, i % N);
        if boundary(p) {
            rows.push(i, 1.0);
            rows.end_row();
            return;
        }
        let a = coefficient(p);
        // An inner point has all six neighbours; those on the boundary count in the diagonal alone.
        let around = neighbours(p, [SIDE; 3]).map(|q| {
            let q = q.unwrap_or(p);
            let b = coefficient(q);
            (q, 2.0 * a * b / (a + b))
        });
        let diagonal = around.iter().map(|e| e.1).sum::<f64>() + if inside(p) { 0.0 } else { 0.1 };
        for (k, (q, h)) in around.into_iter().enumerate() {
            if k == 3 {
                rows.push(i, 1.0);
            }
            if !boundary(q) {
                rows.push(first + q, -h / diagonal);
            }
        }
        rows.end_row();
    }
}

/// The surrogate of epb3, `copies` times along the diagonal: unsymmetric, weakly diagonally dominant.
///
/// # Errors
/// [`Error::TooLarge`]; [`Error::InvalidStructure`] for no copies.
pub fn epb3(copies: usize) -> Result<Csr<f64>> {
    Mesh::Epb3(copies).matrix()
}

mod epb3_rows {
    use super::{Rows, neighbours, stencil_row};

    const SIZE: [usize; 3] = [299, 283, 1];
    pub const N: usize = 84_617;
    pub const NNZ: usize = 463_625;
    const COUPLINGS: usize = 41_704;
    const FAR: usize = 598;

    /// Whether a row is one of the ⌊q·n/41704⌋, which are all different: the first q that reaches it decides.
    fn coupled(p: usize) -> bool {
        let q = (p * COUPLINGS).div_ceil(N);
        q < COUPLINGS && q * N / COUPLINGS == p
    }

    pub fn push(rows: &mut Rows, i: usize) {
        let (first, p) = (i / N * N, i % N);
        let [_, down, left, right, up, _] = neighbours(p, SIZE);
        let far = coupled(p).then(|| if p < FAR { p + FAR } else { p - FAR });
        let (far_before, far_after) = (far.filter(|&f| f < p), far.filter(|&f| f > p));
        let diagonal = 4.0 + f64::from(u8::from(far.is_some()));
        stencil_row(rows, first, p, &[far_before, down, left, right, up, far_after], diagonal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bt_formats::detect::{Symmetry, symmetry};
    use bt_formats::{LinearOperator, Matrix};

    #[test]
    fn sizes_are_the_published_ones() {
        let a = edf(2).unwrap();
        assert_eq!((a.nrows(), a.nnz()), (32_768, 221_184));
        assert!(matches!(symmetry(&a).unwrap().0, Symmetry::Symmetric));
        let a = epb3(1).unwrap();
        assert_eq!((a.nrows(), a.nnz()), (84_617, 463_625));
        assert!(!matches!(symmetry(&a).unwrap().0, Symmetry::Symmetric));
        let a = flame(1).unwrap();
        assert_eq!((a.nrows(), a.nnz()), (531_441, 3_452_229));
        // Row sums: 1 on the boundary, and not negative anywhere else.
        for i in (0..a.nrows()).step_by(97) {
            assert!(a.row(i).1.iter().sum::<f64>() > -1e-14, "row {i}");
        }
    }

    /// A part has the rows of the whole, whatever their order, and no more memory than it needs.
    #[test]
    fn parts_have_the_rows_of_the_whole() {
        for mesh in [Mesh::Laplacian([5, 4, 3]), Mesh::Edf(2), Mesh::Flame(1), Mesh::Epb3(2)] {
            let (whole, n) = (mesh.matrix().unwrap(), mesh.n().unwrap());
            assert_eq!((whole.nrows(), whole.ncols()), (n, n));
            let numbers: Vec<usize> = (0..n).rev().step_by(7).collect();
            let part = mesh.rows(numbers.iter().copied()).unwrap();
            assert_eq!((part.nrows(), part.ncols()), (numbers.len(), n));
            assert!((0..numbers.len()).all(|k| part.row(k) == whole.row(numbers[k])), "{mesh:?}");
            assert_eq!(mesh.rows([0; 0]).unwrap().nrows(), 0);
            assert!(mesh.rows([n]).is_err());
        }
        // Rows of a matrix that is too large as a whole.
        assert!(Mesh::Flame(5000).matrix().is_err() && Mesh::Flame(5000).rows(0..10).is_ok());
    }

    #[test]
    fn copies_are_checked() {
        assert!(laplacian([3, 0, 3]).is_err() && laplacian([usize::MAX; 3]).is_err());
        assert!(edf(0).is_err() && edf(usize::MAX).is_err() && flame(5000).is_err() && epb3(100_000).is_err());
    }
}
