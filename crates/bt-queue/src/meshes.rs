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

/// Rows made one by one, columns increasing.
struct Rows {
    row_ptr: Vec<u32>,
    col_idx: Vec<u32>,
    values: Vec<f64>,
}

impl Rows {
    fn new(n: usize, entries: usize) -> Result<Self> {
        let limit = u32::MAX as usize - 1;
        let too_large = |limit: String| Error::TooLarge {
            what: "a mesh",
            needed: format!("{n} rows and {entries} entries"),
            limit,
        };
        if n > limit || entries > limit {
            return Err(too_large(format!("the {limit} of 32-bit indices")));
        }
        bt_formats::memory::ask((n as u64 + 1) * 4 + entries as u64 * 12, "the mesh")?;
        let mut rows = Self { row_ptr: Vec::new(), col_idx: Vec::new(), values: Vec::new() };
        let memory = |_| too_large("the memory there is".into());
        rows.row_ptr.try_reserve_exact(n + 1).map_err(memory)?;
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
        let n = self.row_ptr.len() - 1;
        Csr::new(n, n, self.row_ptr, self.col_idx, self.values)
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
    if size.contains(&0) {
        return Err(Error::InvalidStructure { what: "mesh", why: "a box without points".into() });
    }
    let n = size.iter().fold(1usize, |n, &s| n.saturating_mul(s));
    let mut rows = Rows::new(n, n.saturating_mul(7))?;
    (0..n).for_each(|p| stencil_row(&mut rows, 0, p, &neighbours(p, size), 6.0));
    rows.finish()
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
    const SIZE: [usize; 3] = [16, 32, 32];
    const N: usize = 16_384;
    let n = checked(copies, N)?;
    let mut rows = Rows::new(n, copies.saturating_mul(110_592))?;
    for i in 0..n {
        let (first, p) = (i / N * N, i % N);
        stencil_row(&mut rows, first, p, &neighbours(p, SIZE), 6.0);
    }
    rows.finish()
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

fn checked(copies: usize, n: usize) -> Result<usize> {
    if copies == 0 {
        return Err(Error::InvalidStructure { what: "mesh", why: "at least one copy is needed".into() });
    }
    Ok(copies.saturating_mul(n))
}

/// flame2p3d80, the pattern with values of our own, `copies` times along the diagonal.
///
/// With coefficients a = 2 in two spheres and 80 outside, there with a screening of 0.1 per point:
/// Σ_q h(a_p, a_q)(u_p − u_q) + s_p·u_p, h the harmonic mean, divided by the diagonal.
///
/// # Errors
/// [`Error::TooLarge`]; [`Error::InvalidStructure`] for no copies.
pub fn flame(copies: usize) -> Result<Csr<f64>> {
    const SIDE: usize = 81;
    const N: usize = SIDE * SIDE * SIDE;
    const NNZ: usize = 3_452_229;
    let n = checked(copies, N)?;
    let mut rows = Rows::new(n, copies.saturating_mul(NNZ))?;
    let place = |p: usize| [p % SIDE, p / SIDE % SIDE, p / (SIDE * SIDE)];
    let boundary = |p: usize| place(p).iter().any(|&c| c == 0 || c + 1 == SIDE);
    let inside = |p: usize| {
        let spheres = [([30.0, 40.0, 40.0], 12.0), ([54.0, 42.0, 38.0], 9.0f64)];
        spheres.iter().any(|(centre, radius): &([f64; 3], f64)| {
            let squares = place(p).into_iter().zip(centre).map(|(x, c)| (x as f64 - c).powi(2));
            squares.sum::<f64>() < radius * radius
        })
    };
    let coefficient = |p: usize| if inside(p) { 2.0 } else { 80.0 };
    for i in 0..n {
        let (first, p) = (i / N * N, i % N);
        if boundary(p) {
            rows.push(i, 1.0);
            rows.end_row();
            continue;
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
    rows.finish()
}

/// The surrogate of epb3, `copies` times along the diagonal: unsymmetric, weakly diagonally dominant.
///
/// # Errors
/// [`Error::TooLarge`]; [`Error::InvalidStructure`] for no copies.
pub fn epb3(copies: usize) -> Result<Csr<f64>> {
    const SIZE: [usize; 3] = [299, 283, 1];
    const N: usize = 84_617;
    const COUPLINGS: usize = 41_704;
    const FAR: usize = 598;
    let n = checked(copies, N)?;
    let mut rows = Rows::new(n, copies.saturating_mul(463_625))?;
    // Rows with a further coupling: ⌊q·N/41704⌋, all different.
    let mut coupled = vec![false; N];
    for q in 0..COUPLINGS {
        coupled[q * N / COUPLINGS] = true;
    }
    for i in 0..n {
        let (first, p) = (i / N * N, i % N);
        let [_, down, left, right, up, _] = neighbours(p, SIZE);
        let far = coupled[p].then(|| if p < FAR { p + FAR } else { p - FAR });
        let (far_before, far_after) = (far.filter(|&f| f < p), far.filter(|&f| f > p));
        let diagonal = 4.0 + f64::from(u8::from(far.is_some()));
        stencil_row(&mut rows, first, p, &[far_before, down, left, right, up, far_after], diagonal);
    }
    rows.finish()
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

    #[test]
    fn copies_are_checked() {
        assert!(laplacian([3, 0, 3]).is_err() && laplacian([usize::MAX; 3]).is_err());
        assert!(edf(0).is_err() && edf(usize::MAX).is_err() && flame(5000).is_err() && epb3(100_000).is_err());
    }
}
