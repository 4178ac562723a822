//! Norms of a block-tridiagonal matrix, in one pass over what it stores.

use bt_formats::{BlockTridiagonal, Couplings, DiagonalBlocks, Matrix, RealScalar, Scalar, zero};

use super::non_finite;
use crate::band_lu::kernels::{LANES, reduce, sum_and_max};
use crate::dense::Norms;
use crate::error::Result;
use crate::lines;

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
                let mut maxima = [zero(); LANES];
                let (sums, maxima) = (&mut *sums, &mut maxima);
                lines::dispatch::<T, _>(bt_simd::Loops(
                    #[inline(always)]
                    || {
                        for (column, sum) in columns.chunks_exact(rows).zip(&mut *sums) {
                            *sum += sum_and_max(column, maxima).to_f64();
                        }
                    },
                ));
                max = max.max_nan(reduce(*maxima, RealScalar::max_nan).to_f64());
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
