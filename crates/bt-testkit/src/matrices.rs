//! Matrices from a function of the place, and the model problems of grids.

use bt_formats::{Csr, Scalar};

/// The n × n matrix of the non-zero `entry(i, j)`. Cost n² calls: for small n.
pub fn csr<T: Scalar>(n: usize, mut entry: impl FnMut(usize, usize) -> T) -> Csr<T> {
    let (mut ptr, mut idx, mut val) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        for j in 0..n {
            let v = entry(i, j);
            if v != T::default() {
                idx.push(j as u32);
                val.push(v);
            }
        }
        ptr.push(idx.len() as u32);
    }
    Csr::new(n, n, ptr, idx, val).expect("columns increase")
}

/// The n × n tridiagonal matrix of `own` on the diagonal and `beside` on either side.
pub fn chain<T: Scalar>(n: usize, own: T, beside: T) -> Csr<T> {
    csr(n, |i, j| match i.abs_diff(j) {
        0 => own,
        1 => beside,
        _ => T::default(),
    })
}

/// Five-point Laplacian on a k × k grid with a first-order term of size `wind` in x: 4 on the diagonal, −1 ± wind beside
/// it, −1 above and below. Positive definite for `wind` = 0.
pub fn stencil<T: Scalar>(k: usize, wind: f64) -> Csr<T> {
    csr(k * k, |i, j| {
        T::rounded(
            match (i.abs_diff(j), i / k == j / k) {
                (0, _) => 4.0,
                (1, true) => -1.0 + if j > i { wind } else { -wind },
                (d, false) if d == k => -1.0,
                _ => 0.0,
            },
            0.0,
        )
    })
}

/// Multiple shooting for y' = [−1/6 1; 1 −1/6]·y with y(0) + y(end) given, in blocks of two rows: the fundamental matrix over `step` couples
/// each with the one before. Its condition is that of an orthogonal matrix; elimination with partial pivoting makes elements grow by
/// exp(5·`step`/6) a block (S. J. Wright, SIAM J. Sci. Comput. 14 (1993) 231–238, doi:10.1137/0914013). Cost O(n).
pub fn shooting<T: Scalar>(blocks: usize, step: f64) -> Csr<T> {
    let decay = (-step / 6.0).exp();
    let couples = [decay * step.cosh(), decay * step.sinh()];
    let (mut ptr, mut idx, mut val) = (vec![0], Vec::new(), Vec::new());
    for i in 0..2 * blocks {
        let (block, own) = (i / 2, i % 2);
        let before = (2 * block).wrapping_sub(2);
        let entries = if block == 0 {
            vec![(i, 1.0), (2 * blocks - 2 + i, 1.0)]
        } else {
            vec![(before, -couples[own]), (before.wrapping_add(1), -couples[1 - own]), (i, 1.0)]
        };
        for (j, v) in entries {
            idx.push(j as u32);
            val.push(T::rounded(v, 0.0));
        }
        ptr.push(idx.len() as u32);
    }
    Csr::new(2 * blocks, 2 * blocks, ptr, idx, val).expect("columns increase")
}

/// The Laplacian on a box of p × q × r points with the value zero around it: 2 on the diagonal for each direction that has
/// more than one point, −1 for each neighbour. Positive definite. Cost O(n).
pub fn grid<T: Scalar>(sides: [usize; 3]) -> Csr<T> {
    let [p, q, r] = sides;
    let own = 2.0 * sides.iter().filter(|s| **s > 1).count().max(1) as f64;
    let (mut ptr, mut idx, mut val) = (vec![0], Vec::new(), Vec::new());
    for i in 0..p * q * r {
        let (x, y, z) = (i % p, i / p % q, i / (p * q));
        let near = [
            (z > 0, i.wrapping_sub(p * q), -1.0),
            (y > 0, i.wrapping_sub(p), -1.0),
            (x > 0, i.wrapping_sub(1), -1.0),
            (true, i, own),
            (x + 1 < p, i + 1, -1.0),
            (y + 1 < q, i + p, -1.0),
            (z + 1 < r, i + p * q, -1.0),
        ];
        for (_, j, v) in near.into_iter().filter(|e| e.0) {
            idx.push(j as u32);
            val.push(T::rounded(v, 0.0));
        }
        ptr.push(idx.len() as u32);
    }
    let n = p * q * r;
    Csr::new(n, n, ptr, idx, val).expect("columns increase")
}
