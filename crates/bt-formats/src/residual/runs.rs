//! The residual of a real matrix whose storage holds columns, or diagonals, in one piece: every run adds to consecutive rows at once.
//!
//! The sums of a row are those of `residual.rs`, in the order of the runs; the rows lie side by side in arrays, so that vectors take
//! several of them. Storage: five doubles and a count a row. Cost: one pass over A of about twenty flops an entry.

use super::{Done, Row, Sum, Totals, least_denominator, product, range};
use crate::operator::{Along, Matrix, Run};
use crate::scalar::{RealScalar, Scalar};

/// Runs that one look at the processor is for.
const RUNS: usize = 256;

/// r ← b − A·x, and the totals of its rows; nothing where A has no runs, a number is not finite, or a row may leave the range of
/// doubles.
pub(crate) fn totals<T: Scalar, A: Matrix<T> + ?Sized>(a: &A, x: &[T], b: &[T], r: Option<&mut [T]>) -> Option<Totals> {
    if !T::IS_REAL {
        return None;
    }
    let mut runs = a.runs()?;
    let (smallest_x, largest_x) = range(x);
    if x.iter().chain(b).any(|v| !Scalar::is_finite(*v)) || largest_x > super::largest_split() {
        return None;
    }
    let mut open = Open::new(b);
    let mut some = Vec::with_capacity(RUNS);
    loop {
        some.clear();
        some.extend(runs.by_ref().take(RUNS));
        if some.is_empty() {
            break;
        }
        bt_simd::dispatch(Add { runs: &some, x, open: &mut open });
    }
    let mut totals = Totals::default();
    let smallest = open.smallest.into_iter().fold(f64::INFINITY, f64::min);
    let low = least_denominator::<T>(smallest, smallest_x);
    let mut r = r.map(|r| r.iter_mut());
    for i in 0..b.len() {
        let row = open.row(i);
        if !row.is_in_range() || row.denominator < low {
            return None;
        }
        if let Some(r) = r.as_mut().and_then(Iterator::next) {
            *r = T::from_parts(row.re, row.im);
        }
        totals.add(&row);
    }
    Some(totals)
}

/// The sums of all rows, side by side.
struct Open {
    high: Vec<f64>,
    low: Vec<f64>,
    taken: Vec<f64>,
    sums: Vec<f64>,
    denominators: Vec<f64>,
    entries: Vec<u32>,
    /// The smallest nonzero moduli of A so far, lane by lane.
    smallest: [f64; 8],
}

impl Open {
    fn new<T: Scalar>(b: &[T]) -> Self {
        let high: Vec<f64> = b.iter().map(|v| v.re().to_f64()).collect();
        let (n, denominators) = (b.len(), high.iter().map(|v| v.abs()).collect());
        let zeros = || vec![0.0; n];
        let (low, taken, sums) = (zeros(), zeros(), zeros());
        Self { high, low, taken, sums, denominators, entries: vec![0; n], smallest: [f64::INFINITY; 8] }
    }

    fn row(&self, i: usize) -> Done {
        let re = Sum { high: self.high[i], low: self.low[i], taken: self.taken[i] };
        let (denominator, sum, entries) = (self.denominators[i], self.sums[i], self.entries[i]);
        Row { re, im: Sum::default(), denominator, sum, entries }.finish()
    }

    /// − v·x for consecutive rows: eight at a time, four, and one.
    #[inline(always)]
    fn subtract<T: Scalar>(&mut self, fused: bool, first: usize, values: &[T], x: impl Fn(usize) -> f64) {
        let rows = first..first + values.len();
        let mut rows = Rows {
            high: &mut self.high[rows.clone()],
            low: &mut self.low[rows.clone()],
            taken: &mut self.taken[rows.clone()],
            sums: &mut self.sums[rows.clone()],
            denominators: &mut self.denominators[rows.clone()],
            entries: &mut self.entries[rows],
        };
        let (eights, rest) = values.as_chunks::<8>();
        let (fours, ones) = rest.as_chunks::<4>();
        let mut at = 0;
        for values in eights {
            rows.subtract(fused, at, values, &x, &mut self.smallest);
            at += 8;
        }
        for values in fours {
            rows.subtract(fused, at, values, &x, &mut self.smallest);
            at += 4;
        }
        for value in ones {
            rows.subtract(fused, at, &[*value], &x, &mut self.smallest);
            at += 1;
        }
    }
}

/// The sums of the rows of a run.
struct Rows<'a> {
    high: &'a mut [f64],
    low: &'a mut [f64],
    taken: &'a mut [f64],
    sums: &'a mut [f64],
    denominators: &'a mut [f64],
    entries: &'a mut [u32],
}

/// N sums from `at` on.
#[inline(always)]
fn lanes<const N: usize>(sums: &[f64], at: usize) -> &[f64; N] {
    sums[at..].first_chunk().expect("the rows of a run")
}

impl Rows<'_> {
    #[inline(always)]
    fn subtract<T: Scalar, const N: usize>(
        &mut self,
        fused: bool,
        at: usize,
        values: &[T; N],
        x: &impl Fn(usize) -> f64,
        smallest: &mut [f64; 8],
    ) {
        let v: [f64; N] = std::array::from_fn(|l| values[l].re().to_f64());
        let x: [f64; N] = std::array::from_fn(|l| x(at + l));
        // Copies, which no store below can change: that keeps them in vectors.
        let [mut high, mut low, mut taken, mut sums, mut denominators] =
            [&self.high, &self.low, &self.taken, &self.sums, &self.denominators].map(|sums| *lanes::<N>(sums, at));
        let mut least = *smallest;
        for l in 0..N {
            let modulus = v[l].abs();
            let counts = modulus < least[l] && modulus > 0.0;
            least[l] = if counts { modulus } else { least[l] };
            sums[l] += modulus;
            denominators[l] += modulus * x[l].abs();
            let (p, e) = product(fused, -v[l], x[l]);
            let (s, t) = super::sum(high[l], p);
            high[l] = s;
            low[l] += e + t;
            taken[l] += e.abs() + t.abs();
        }
        let all = [&mut self.high, &mut self.low, &mut self.taken, &mut self.sums, &mut self.denominators];
        for (into, sums) in all.into_iter().zip([high, low, taken, sums, denominators]) {
            into[at..at + N].copy_from_slice(&sums);
        }
        *smallest = least;
        self.entries[at..at + N].iter_mut().for_each(|count| *count += 1);
    }
}

/// Some runs of A.
struct Add<'a, T: Scalar> {
    runs: &'a [Run<'a, T>],
    x: &'a [T],
    open: &'a mut Open,
}

impl<T: Scalar> pulp::WithSimd for Add<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let fused = size_of::<S::f64s>() > size_of::<f64>();
        let Self { runs, x, open } = self;
        for run in runs {
            match run.along {
                Along::Column(j) => {
                    let x = x[j].re().to_f64();
                    open.subtract(fused, run.row, run.values, |_| x);
                }
                Along::Diagonal(j) => {
                    let x = &x[j..][..run.values.len()];
                    open.subtract(fused, run.row, run.values, |l| x[l].re().to_f64());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Band, BlockTridiagonal, CouplingKind, Csr, DiagonalKind, HybridLayout, Matrix, Op, Partition, Tridiagonal,
        certify_with_residual,
    };
    use faer::Mat;

    /// Halves of odd integers on three diagonals.
    fn tridiagonal(n: usize) -> Csr<f64> {
        let of = |i: usize, j: usize| ((i * 7 + j * 3) % 11) as f64 - 5.5;
        let full = Mat::from_fn(n, n, |i, j| if i.abs_diff(j) <= 1 { of(i, j) } else { 0.0 });
        Csr::from_dense(full.as_ref()).unwrap()
    }

    fn same<A: Matrix<f64>>(a: &A, rows: &Csr<f64>, scale: f64) {
        let n = rows.row_ptr().len() - 1;
        assert!(a.runs().is_some());
        let x = Mat::from_fn(n, 1, |i, _| (1.0 + (i % 5) as f64 / 3.0) * scale);
        let b = Mat::from_fn(n, 1, |i, _| ((i % 3) as f64 - 0.3) * scale);
        let (mut r, mut by_rows) = (Mat::zeros(n, 1), Mat::zeros(n, 1));
        let c = certify_with_residual(a, Op::Identity, x.as_ref(), b.as_ref(), r.as_mut());
        let expected = certify_with_residual(rows, Op::Identity, x.as_ref(), b.as_ref(), by_rows.as_mut());
        for i in 0..n {
            assert!((r[(i, 0)] - by_rows[(i, 0)]).abs() <= 1e-15 * by_rows[(i, 0)].abs(), "row {i}");
        }
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs();
        assert!(near(c.backward_error, expected.backward_error), "{c:?} {expected:?}");
        assert!(near(c.componentwise_backward_error, expected.componentwise_backward_error), "{c:?} {expected:?}");
        assert!(near(c.relative_residual, expected.relative_residual), "{c:?} {expected:?}");
    }

    #[test]
    fn runs_give_the_certificate_of_rows() {
        for n in [1, 2, 9, 60, 700] {
            let a = tridiagonal(n);
            // 1e-200: products underflow, and the rows are summed again with exponents.
            for scale in [1.0, 1e-200] {
                same(&Tridiagonal::from_csr(&a).unwrap(), &a, scale);
                same(&Band::from_csr(&a).unwrap(), &a, scale);
                let sizes = (0..n).map(|i| 1 + i % 4).scan(0, |sum, k| {
                    let size = k.min(n - *sum);
                    *sum += size;
                    (size > 0).then_some(size)
                });
                let partition = Partition::from_sizes(sizes).unwrap();
                let dense = HybridLayout { diagonal: Some(DiagonalKind::Dense), couplings: Some(CouplingKind::Dense) };
                same(&BlockTridiagonal::from_csr(&a, partition, dense).unwrap(), &a, scale);
            }
        }
    }

    #[test]
    fn couplings_beside_three_diagonals_are_runs_too() {
        // Some rows have no coupling, some one, some two; beyond the rows that are added together.
        for (size, blocks) in [(1, 9), (3, 4), (5, 7), (16, 40)] {
            let n = size * blocks;
            let of = |i: usize, j: usize| ((i * 7 + j * 3) % 11) as f64 - 5.5;
            let full = Mat::from_fn(n, n, |i, j| match i.abs_diff(j) {
                0 => of(i, j),
                1 if i / size == j / size => of(i, j),
                d if d == size && i % 3 != 1 => of(i, j),
                d if size > 2 && d == size - 1 && i / size != j / size && i % 5 == 0 => of(i, j),
                _ => 0.0,
            });
            let a = Csr::from_dense(full.as_ref()).unwrap();
            for couplings in [CouplingKind::Coo, CouplingKind::Csr, CouplingKind::Diagonals] {
                let layout = HybridLayout { diagonal: Some(DiagonalKind::Tridiagonal), couplings: Some(couplings) };
                let partition = Partition::uniform(n, size).unwrap();
                let hybrid = BlockTridiagonal::from_csr(&a, partition, layout).unwrap();
                for scale in [1.0, 1e-200] {
                    same(&hybrid, &a, scale);
                }
            }
        }
    }

    #[test]
    fn what_is_not_finite_has_no_certificate() {
        let mut a = Band::from_csr(&tridiagonal(9)).unwrap();
        *a.get_mut(3, 4) = f64::NAN;
        let x = Mat::from_fn(9, 1, |_, _| 1.0);
        assert_eq!(crate::certify(&a, Op::Identity, x.as_ref(), x.as_ref()).backward_error, f64::INFINITY);
    }
}
