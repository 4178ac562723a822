//! Norms of a block-tridiagonal matrix, in one pass over what it stores.

use bt_formats::{BlockTridiagonal, Couplings, DiagonalBlocks, Matrix, RealScalar, Scalar};

use super::non_finite;
use crate::dense::Norms;
use crate::error::Result;

/// ‖A‖₁ and the largest |re| + |im|; `sums` are to be the column sums of |A|.
///
/// # Errors
/// [`FactorError::Input`](crate::FactorError::Input) with the place of a NaN or infinity,
/// [`FactorError::Failed`](crate::FactorError::Failed) when ‖A‖₁ overflows.
pub(crate) fn measure<T: Scalar>(method: &'static str, a: &BlockTridiagonal<T>, sums: &mut [f64]) -> Result<Norms> {
    sums.fill(0.0);
    let mut max = 0.0f64;
    match (a.diagonal(), a.couplings()) {
        (DiagonalBlocks::Dense { starts, values }, Couplings::Dense { starts: coupling_starts, values: couplings }) => {
            let partition = a.partition();
            let mut add = |columns: &[T], rows: usize, sums: &mut [f64]| {
                for (column, sum) in columns.chunks_exact(rows).zip(sums) {
                    let (one, largest) = column_norms(column);
                    *sum += one;
                    max = max.max_nan(largest);
                }
            };
            for j in 0..a.n_blocks() {
                let own = partition.range(j);
                let k = own.len();
                add(&values[starts[j]..starts[j + 1]], k, &mut sums[own.clone()]);
                // [Lⱼ Uⱼ], without the columns of block j between them.
                let before = if j > 0 { partition.size(j - 1) } else { 0 };
                let row = &couplings[coupling_starts[j]..coupling_starts[j + 1]];
                let (lower, upper) = row.split_at(before * k);
                add(lower, k, &mut sums[own.start - before..own.start]);
                add(upper, k, &mut sums[own.end..]);
            }
        }
        _ => a.for_each_entry(&mut |_, col, v| {
            sums[col] += v.abs().to_f64();
            max = max.max_nan(v.abs1().to_f64());
        }),
    }
    let one = sums.iter().fold(0.0, |m: f64, &s| m.max_nan(s));
    if one.is_finite() && max.is_finite() { Ok(Norms { one, max }) } else { Err(non_finite(method, a)) }
}

/// Σ|v| in interleaved partial sums, and max(|re v| + |im v|), which a NaN may pass by: it shows in the sum.
fn column_norms<T: Scalar>(column: &[T]) -> (f64, f64) {
    const LANES: usize = 8;
    let (chunks, rest) = column.as_chunks::<LANES>();
    let (mut sums, mut largest) = ([T::Real::default(); LANES], [T::Real::default(); LANES]);
    let mut note = |k: usize, v: T| {
        sums[k] += v.abs();
        let size = v.abs1();
        largest[k] = if size > largest[k] { size } else { largest[k] };
    };
    for chunk in chunks {
        for (k, &v) in chunk.iter().enumerate() {
            note(k, v);
        }
    }
    for (k, &v) in rest.iter().enumerate() {
        note(k, v);
    }
    let sum = sums.iter().map(|s| s.to_f64()).sum();
    (sum, largest.iter().map(|m| m.to_f64()).fold(0.0, f64::max))
}
