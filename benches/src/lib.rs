//! What the benchmarks and the harness share: matrices of the cloud type, made here.

use bt_formats::{Coo, Csr, Error, Partition};

/// A matrix of the cloud type on m blocks of k rows, with its partition: tridiagonal diagonal blocks; in each
/// off-diagonal block one shifted diagonal and, on 30 % of the rows, a second one; row dominant by 2 %.
///
/// # Errors
/// When the sizes exceed 32-bit indices.
pub fn cloud(k: usize, m: usize) -> Result<(Csr<f64>, Partition), Error> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let n = k * m;
    let mut a = Coo::new(n, n)?;
    for j in 0..m {
        // Shifts of the first and the second diagonal of Lⱼ and Uⱼ.
        let shifts = [(); 2].map(|()| {
            let first = (uniform() * 5.0) as isize - 2;
            [first, first + 1 + (uniform() * 2.0) as isize]
        });
        for r in 0..k {
            let i = j * k + r;
            let mut dominance = 0.01;
            let mut push = |a: &mut Coo<f64>, base: Option<usize>, shift: isize, value: f64| {
                let Some((base, col)) = base.zip(r.checked_add_signed(shift).filter(|&c| c < k)) else { return Ok(()) };
                dominance += 1.02 * value;
                a.push(i, base + col, -value)
            };
            for shift in [-1, 1] {
                push(&mut a, Some(j * k), shift, 0.1 + 0.9 * uniform())?;
            }
            let neighbours = [j.checked_sub(1), Some(j + 1).filter(|&b| b < m)];
            for (block, [first, second]) in neighbours.into_iter().zip(shifts) {
                let base = block.map(|b| b * k);
                push(&mut a, base, first, 0.1 + 0.9 * uniform())?;
                if uniform() < 0.3 {
                    push(&mut a, base, second, 0.1 + 0.9 * uniform())?;
                }
            }
            a.push(i, i, dominance)?;
        }
    }
    Ok((a.to_csr()?, Partition::uniform(n, k)?))
}
