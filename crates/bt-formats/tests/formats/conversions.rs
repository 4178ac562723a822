//! Every format into every other, in every scalar, square and rectangular.

use bt_formats::detect::block_size;
use bt_formats::{
    Band, Bcsr, BlockTridiagonal, Coo, CouplingKind, Csr, Dia, DiagonalKind, Error, HybridLayout, LinearOperator,
    Matrix, Partition, Result, Scalar, Tridiagonal, c32, c64,
};
use proptest::prelude::*;

/// Ways through a format: there and back again.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Csr,
    Coo,
    /// By the largest blocks that divide rows and columns.
    Bcsr,
    Dia,
    Dense,
    Band,
    Hybrid(DiagonalKind, CouplingKind),
    Tridiagonal,
}

const FORMATS: [Format; 11] = [
    Format::Csr,
    Format::Coo,
    Format::Bcsr,
    Format::Dia,
    Format::Dense,
    Format::Band,
    Format::Hybrid(DiagonalKind::Band, CouplingKind::Coo),
    Format::Hybrid(DiagonalKind::Dense, CouplingKind::Csr),
    Format::Hybrid(DiagonalKind::Band, CouplingKind::Diagonals),
    Format::Hybrid(DiagonalKind::Band, CouplingKind::Dense),
    Format::Tridiagonal,
];

impl Format {
    /// The matrix stored in this format, and taken out of it. The entries a format visits are checked on the way.
    fn through<T: Scalar>(self, a: &Csr<T>, partition: &Partition) -> Result<Csr<T>> {
        match self {
            Self::Csr => Ok(a.clone()),
            Self::Coo => {
                let coo = Coo::from_csr(a);
                visits(&coo, a);
                coo.to_csr()
            }
            Self::Bcsr => {
                let bcsr = Bcsr::from_csr(a, block_size(a, 1.0))?;
                visits(&bcsr, a);
                let (ptr, cols) = (bcsr.row_ptr().to_vec(), bcsr.col_idx().to_vec());
                let parts = Bcsr::new(a.nrows(), a.ncols(), bcsr.block_size(), ptr, cols, bcsr.values().to_vec())?;
                assert_eq!(parts, bcsr);
                parts.to_csr()
            }
            Self::Dia => {
                let dia = Dia::from_csr(a)?;
                visits(&dia, a);
                // The arrays are such as the checking constructor takes.
                Dia::new(a.nrows(), a.ncols(), dia.offsets().to_vec(), dia.values().to_vec())?.to_csr()
            }
            Self::Dense => Csr::from_dense(a.to_dense().as_ref()),
            Self::Band => {
                let band = Band::from_csr(a)?;
                visits(&band, a);
                band.to_csr()
            }
            Self::Hybrid(diagonal, couplings) => {
                let layout = HybridLayout { diagonal: Some(diagonal), couplings: Some(couplings) };
                let hybrid = BlockTridiagonal::from_csr(a, partition.clone(), layout)?;
                visits(&hybrid, a);
                hybrid.to_csr()
            }
            Self::Tridiagonal => {
                let t = Tridiagonal::from_csr(a)?;
                visits(&t, a);
                t.to_csr()
            }
        }
    }
}

/// `b` visits as many places as it says, in order, and its non-zeros are those of `a`.
fn visits<T: Scalar>(b: &impl Matrix<T>, a: &Csr<T>) {
    let (mut count, mut last) = (0, None);
    b.for_each_entry(&mut |i, j, v| {
        assert!(last < Some((i, j)), "({i}, {j}) after {last:?}");
        (count, last) = (count + 1, Some((i, j)));
        assert_eq!(v, a.get(i, j), "at ({i}, {j})");
    });
    assert_eq!(count, b.nnz());
    assert!(b.bytes() >= b.nnz() * size_of::<T>());
    assert_eq!((b.nrows(), b.ncols()), (a.nrows(), a.ncols()));
    assert_eq!((b.norm_one(), b.norm_inf(), b.norm_max()), (a.norm_one(), a.norm_inf(), a.norm_max()));
}

fn matrix<T: Scalar>(nrows: usize, ncols: usize, entries: &[(usize, usize, i8, i8)]) -> Csr<T> {
    let mut coo = Coo::new(nrows, ncols).unwrap();
    for &(i, j, re, im) in entries {
        // Real types drop the imaginary part, which may leave an explicit zero.
        coo.push(i % nrows, j % ncols, T::rounded(f64::from(re), f64::from(im))).unwrap();
    }
    coo.to_csr().unwrap().without_zeros()
}

/// Through any two formats one after the other: either the matrix comes out as it was or the error says why not.
fn all_pairs<T: Scalar>(a: &Csr<T>, partition: &Partition) {
    let square = a.nrows() == a.ncols();
    let widest = Coo::from_csr(a).rows().iter().zip(a.col_idx()).map(|(&i, &j)| i.abs_diff(j)).max().unwrap_or(0);
    let block = |i: usize| partition.block_of(i);
    let mut block_tridiagonal = square;
    if square {
        a.for_each_entry(&mut |i, j, _| block_tridiagonal &= block(i).abs_diff(block(j)) <= 1);
    }
    for first in FORMATS {
        let fits = match first {
            Format::Csr | Format::Coo | Format::Bcsr | Format::Dia | Format::Dense => true,
            Format::Band => square,
            Format::Hybrid(..) => block_tridiagonal,
            Format::Tridiagonal => square && widest <= 1,
        };
        match first.through(a, partition) {
            Ok(b) => {
                assert!(fits, "{first:?} cannot hold this");
                assert_eq!(&b, a, "{first:?}");
                for second in FORMATS {
                    assert_eq!(second.through(&b, partition).ok(), second.through(a, partition).ok());
                }
            }
            Err(Error::NotSquare { .. }) => assert!(!square, "{first:?}"),
            Err(Error::OutsideStructure { row, col, .. }) => {
                assert!(square && !fits, "{first:?} refused what it can hold");
                assert!(a.get(row, col) != T::zero(), "the place named holds nothing");
            }
            Err(other) => panic!("{first:?}: {other}"),
        }
    }
}

fn entries() -> impl Strategy<Value = Vec<(usize, usize, i8, i8)>> {
    prop::collection::vec((0..64usize, 0..64usize, -9..9i8, -9..9i8), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn scattered_entries(nrows in 1..14usize, ncols in 1..14usize, entries in entries(), k in 1..6usize) {
        let partition = Partition::uniform(nrows, k).unwrap();
        all_pairs::<f32>(&matrix(nrows, ncols, &entries), &partition);
        all_pairs::<f64>(&matrix(nrows, ncols, &entries), &partition);
        all_pairs::<c32>(&matrix(nrows, ncols, &entries), &partition);
        all_pairs::<c64>(&matrix(nrows, ncols, &entries), &partition);
    }

    #[test]
    fn narrow_bands(
        n in 1..30usize,
        width in 0..4usize,
        entries in entries(),
        sizes in prop::collection::vec(1..5usize, 1..30),
    ) {
        // Entries drawn towards the diagonal, blocks of uneven sizes cut to n.
        let near: Vec<_> =
            entries.iter().map(|&(i, j, re, im)| (i % n, (i % n + j % (width + 1)).min(n - 1), re, im)).collect();
        let mut left = n;
        let sizes: Vec<usize> = sizes.into_iter().chain(std::iter::repeat(1)).map_while(|k| {
            let k = k.min(left);
            left -= k;
            (k > 0).then_some(k)
        }).collect();
        let partition = Partition::from_sizes(sizes).unwrap();
        all_pairs::<f64>(&matrix(n, n, &near), &partition);
        all_pairs::<f64>(&matrix::<f64>(n, n, &near).transpose(), &partition);
        all_pairs::<c32>(&matrix(n, n, &near), &partition);
    }
}

/// Columns so long that rows are written some at a time, full ones and ones with gaps, and a last group of fewer rows.
#[test]
fn wide_blocks_and_bands() {
    let sizes = [70, 64, 1, 83, 5];
    let partition = Partition::from_sizes(sizes).unwrap();
    let n = sizes.iter().sum();
    let neighbours = |i: usize, j: usize| partition.block_of(i).abs_diff(partition.block_of(j)) <= 1;
    for gap in [1, 2, 17] {
        let places = (0..n).flat_map(|i| (0..n).map(move |j| (i, j)));
        let kept = places.filter(|&(i, j)| neighbours(i, j) && (i * i + 3 * j) % gap == 0);
        let entries: Vec<_> = kept.map(|(i, j)| (i, j, (1 + (7 * i + j) % 9) as i8, 2)).collect();
        all_pairs::<f64>(&matrix(n, n, &entries), &partition);
        let a = matrix::<c32>(n, n, &entries);
        let dense = HybridLayout::DENSE;
        assert_eq!(BlockTridiagonal::from_csr(&a, partition.clone(), dense).unwrap().to_csr().unwrap(), a);
        assert_eq!(Band::from_csr(&a).unwrap().to_csr().unwrap(), a);
    }
}

/// The paper's 6 × 6 A.
#[test]
fn six_by_six() {
    let a: [[f64; 6]; 6] = [
        [6., 0., 2., 0., 0., 0.],
        [1., 9., 7., 0., 0., 0.],
        [0., 5., 4., 3., 0., 0.],
        [0., 1., 0., 8., 7., 3.],
        [0., 0., 6., 2., 11., 4.],
        [0., 0., 0., 0., 6., 21.],
    ];
    let csr = Csr::from_dense(faer::Mat::from_fn(6, 6, |i, j| a[i][j]).as_ref()).unwrap();
    assert_eq!(csr.row_ptr(), [0, 2, 5, 8, 12, 16, 18]);
    assert_eq!(csr.col_idx(), [0, 2, 0, 1, 2, 1, 2, 3, 1, 3, 4, 5, 2, 3, 4, 5, 4, 5]);
    assert_eq!(csr.values(), [6., 2., 1., 9., 7., 5., 4., 3., 1., 8., 7., 3., 6., 2., 11., 4., 6., 21.]);
    let coo = Coo::from_csr(&csr);
    assert_eq!(coo.rows(), [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5]);
    assert_eq!(coo.cols(), csr.col_idx());
    assert_eq!(coo.values(), csr.values());
    let dia = Dia::from_csr(&csr).unwrap();
    assert_eq!(dia.offsets(), [-2, -1, 0, 1, 2]);
    // Row i of the n × 5 table, one diagonal a column.
    let row = |i: usize| -> Vec<f64> { (0..5).map(|d| dia.values()[6 * d + i]).collect() };
    assert_eq!(row(0), [0., 0., 6., 0., 2.]);
    assert_eq!(row(1), [0., 1., 9., 7., 0.]);
    assert_eq!(row(2), [0., 5., 4., 3., 0.]);
    assert_eq!(row(3), [1., 0., 8., 7., 3.]);
    assert_eq!(row(4), [6., 2., 11., 4., 0.]);
    assert_eq!(row(5), [0., 6., 21., 0., 0.]);
    assert_eq!(dia.bytes(), 5 * 4 + 30 * 8);
}

#[test]
fn diagonals_are_validated() {
    let refused = |offsets: Vec<i32>, values: Vec<f64>, word: &str| {
        let text = Dia::new(2, 3, offsets, values).unwrap_err().to_string();
        assert!(text.contains(word), "{text}");
    };
    refused(vec![1, 0], vec![0.0; 4], "increase");
    refused(vec![-2], vec![0.0; 2], "diagonal -2");
    refused(vec![3], vec![0.0; 2], "diagonal 3");
    refused(vec![0], vec![0.0; 3], "expected 2, found 3");
    refused(vec![2], vec![1.0, 1.0], "row 1");
    assert!(Dia::new(2, 3, vec![-1, 2], vec![0.0, 1.0, 1.0, 0.0]).is_ok());
}

#[test]
fn duplicates_sum_and_explicit_zeros_stay() {
    let coo = Coo::from_triplets(2, 2, vec![1, 0, 1], vec![1, 0, 1], vec![2.0, 0.0, 3.0]).unwrap();
    let csr = coo.to_csr().unwrap();
    assert_eq!((csr.nnz(), csr.get(1, 1)), (2, 5.0));
    let mut seen = Vec::new();
    coo.for_each_entry(&mut |i, j, v| seen.push((i, j, v)));
    assert_eq!(seen, [(0, 0, 0.0), (1, 1, 5.0)]);
}

#[test]
fn sizes_are_checked_before_memory_is_taken() {
    // Two far corners: 4·10⁹ diagonals of band storage each.
    let n = 4_000_000_000 - 1;
    for (kl, ku) in [(n - 1, n - 1), (usize::MAX, 1)] {
        // Which of the two depends on whether the system says what is available.
        let refused = Band::<f64>::zeros(n, kl, ku);
        assert!(matches!(refused, Err(Error::TooLarge { .. } | Error::NotEnoughMemory { .. })));
    }
}

#[test]
fn diagonals_are_taken_where_they_are_full() {
    // A grid of k × k: diagonals 0 whole, ±1 but for one place in k, ±k.
    for (k, full) in [(4, false), (9, true)] {
        let a = bt_testkit::stencil::<f64>(k, 0.1);
        let diagonals = Dia::where_full(&a).unwrap();
        assert_eq!(diagonals.is_some(), full);
        assert!(diagonals.is_none_or(|d| d.to_csr().unwrap() == a));
    }
    let arrow = bt_testkit::csr(20, |i, j| if i == j || i == 0 || j == 0 { 1.0 } else { 0.0 });
    assert!(Dia::where_full(&arrow).unwrap().is_none());
    let empty = Csr::<f64>::new(3, 2, vec![0; 4], vec![], vec![]).unwrap();
    assert_eq!(Dia::where_full(&empty).unwrap().unwrap().offsets(), [0i32; 0]);
}

#[test]
fn bands_from_lapack_storage_in_any_strides() {
    // Sizes below, at and beyond a tile of columns; bandwidths beyond the matrix.
    for n in [0, 1, 2, 63, 64, 65, 130] {
        for (kl, ku) in [(0, 0), (1, 1), (0, 3), (4, 0), (3, 5), (70, 2), (2, 140)] {
            let entry = |i: usize, j: usize| (1 + i * n + j) as f64;
            let corner = f64::NAN;
            let ab = faer::Mat::from_fn(kl + ku + 1, n, |r, j| match (j + r).checked_sub(ku) {
                Some(i) if i < n => entry(i, j),
                _ => corner,
            });
            let by_rows = ab.transpose().to_owned();
            for ab in [ab.as_ref(), by_rows.as_ref().transpose()] {
                let a = Band::from_lapack(kl, ku, ab).unwrap();
                let mut expected = Band::zeros(n, kl, ku).unwrap();
                for j in 0..n {
                    for i in expected.column_range(j) {
                        *expected.get_mut(i, j) = entry(i, j);
                    }
                }
                assert_eq!(a, expected, "n = {n}, kl = {kl}, ku = {ku}");
            }
        }
    }
    assert!(Band::from_lapack(1, 1, faer::Mat::<f64>::zeros(2, 5).as_ref()).is_err());
}
