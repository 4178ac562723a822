//! Block compressed rows: blocks by hand and by brute force, the order of the sums, natural blocks, and what is refused.

use bt_formats::detect::block_size;
use bt_formats::{Bcsr, Coo, Csr, Error, LinearOperator, Matrix, Op, Par, Scalar, c32, c64};
use bt_testkit::contract::operator_contract;
use bt_testkit::{csr, random_vector, strategies};
use proptest::prelude::*;

/// Every block that holds a stored entry, and no other, with the entries of A at its places.
fn holds<T: Scalar>(a: &Csr<T>, k: usize) -> Result<(), String> {
    let b = Bcsr::from_csr(a, k).map_err(|e| e.to_string())?;
    let mut places = 0;
    for i in 0..a.nrows() / k {
        let mut met: Vec<u32> = (i * k..(i + 1) * k).flat_map(|i| a.row(i).0).map(|j| j / k as u32).collect();
        met.sort_unstable();
        met.dedup();
        let (cols, values) = b.block_row(i);
        if cols != met {
            return Err(format!("block row {i} has {cols:?} for {met:?}"));
        }
        for (&j, block) in cols.iter().zip(values.chunks_exact(k * k)) {
            for (p, &v) in block.iter().enumerate() {
                if v != a.get(i * k + p % k, j as usize * k + p / k) {
                    return Err(format!("place {p} of block ({i}, {j})"));
                }
            }
        }
        places += k * k * cols.len();
    }
    let nonzeros = a.values().iter().filter(|v| **v != T::zero()).count();
    if (b.nnz(), b.zeros()) != (places, places - nonzeros) {
        return Err(format!("{} places, {} zeros", b.nnz(), b.zeros()));
    }
    operator_contract(&b)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_rectangles(
        (k, a) in (1..=6usize, 0..=4usize, 0..=4usize)
            .prop_flat_map(|(k, m, n)| (Just(k), strategies::csr::<f64>(m * k..=m * k, n * k..=n * k, 0.2))),
        (q, c) in (1..=6usize, 0..=3usize, 0..=3usize)
            .prop_flat_map(|(k, m, n)| (Just(k), strategies::csr::<c32>(m * k..=m * k, n * k..=n * k, 0.5))),
    ) {
        holds(&a, k).map_err(TestCaseError::fail)?;
        holds(&c, q).map_err(TestCaseError::fail)?;
        prop_assert_eq!(Bcsr::from_csr(&a, k).unwrap().to_csr().unwrap(), a.without_zeros());
    }

    #[test]
    fn natural_blocks_are_the_largest_with_few_zeros(
        a in (1..=3usize).prop_flat_map(|m| strategies::square::<f64>(12 * m..=12 * m, 0.4)),
        share in 0.0..1.0f64,
    ) {
        let few = |k: &usize| {
            let b = Bcsr::from_csr(&a, *k).unwrap();
            b.zeros() as f64 <= share * b.nnz() as f64
        };
        prop_assert_eq!(block_size(&a, share), [6, 4, 3, 2].into_iter().find(few).unwrap_or(1));
    }
}

/// n nodes in a row with k unknowns each, all of which couple, without every fifth row.
fn chain<T: Scalar>(n: usize, k: usize) -> Csr<T> {
    let mut a = Coo::new(n * k, n * k).unwrap();
    let values = random_vector::<T>(3 * k * n * k, 3);
    for i in (0..n * k).filter(|i| i % 5 > 0) {
        let node = i / k;
        for j in node.saturating_sub(1) * k..(node + 2).min(n) * k {
            a.push(i, j, values[i * 3 * k + (j + k - node * k)]).unwrap();
        }
    }
    a.to_csr().unwrap()
}

fn every_block_size<T: Scalar>() {
    for k in 1..=6 {
        // Large enough to go parallel.
        holds(&chain::<T>(240 / k, k), k).unwrap_or_else(|why| panic!("{k} in {}: {why}", T::KIND));
    }
    let none = Csr::<T>::new(0, 0, vec![0], Vec::new(), Vec::new()).unwrap();
    let empty = Csr::<T>::new(12, 6, vec![0; 13], Vec::new(), Vec::new()).unwrap();
    for a in [none, empty] {
        for k in [1, 2, 3, 6] {
            holds(&a, k).unwrap();
        }
        assert_eq!(block_size(&a, 0.0), 6);
    }
}

#[test]
fn blocks_in_f32() {
    every_block_size::<f32>();
}
#[test]
fn blocks_in_f64() {
    every_block_size::<f64>();
}
#[test]
fn blocks_in_c32() {
    every_block_size::<c32>();
}
#[test]
fn blocks_in_c64() {
    every_block_size::<c64>();
}

#[test]
fn a_row_is_summed_by_increasing_columns() {
    let a = chain::<f64>(40, 3);
    let b = Bcsr::from_csr(&a, 3).unwrap();
    let x = random_vector::<f64>(120, 8);
    let mut y = vec![f64::NAN; 120];
    b.apply_op(Op::Identity, 0.7, &x, 0.0, &mut y, Par::Seq);
    for (i, y) in y.iter().enumerate() {
        let (cols, values) = a.row(i);
        let sum = cols.iter().zip(values).fold(0.0, |sum, (&j, v)| sum + v * x[j as usize]);
        assert_eq!(*y, 0.7 * sum, "row {i}");
    }
}

#[test]
fn natural_blocks_by_hand() {
    let by = |k: usize| csr(12, move |i: usize, j: usize| if (i / k).abs_diff(j / k) < 2 { 1.0 } else { 0.0 });
    // Twelve rows in a chain of nodes; of nodes of two, 26 of 90 places in blocks of three are zeros, 48 of 112 in blocks of four.
    assert_eq!([1, 2, 3, 4].map(|k| block_size(&by(k), 0.0)), [1, 2, 3, 4]);
    assert_eq!([0.2, 0.3, 0.45].map(|share| block_size(&by(2), share)), [2, 3, 4]);
    assert_eq!(block_size(&by(2), f64::NAN), 1);
    // What is stored as zero is none.
    let mut weak = by(2);
    weak.values_mut().iter_mut().step_by(2).for_each(|v| *v = 0.0);
    assert_eq!([0.49, 0.5].map(|share| block_size(&weak, share)), [1, 2]);
    // No k divides 7 rows.
    assert_eq!(block_size(&csr(7, |_, _| 1.0), 1.0), 1);
}

#[test]
fn what_is_no_block_matrix_is_refused_with_its_place() {
    let a = csr(8, |i, j| f64::from(u8::from(i.abs_diff(j) < 2)));
    for (k, word) in [(0, "0 is not between 1 and 6"), (7, "7 is not between"), (3, "do not divide a 8 × 8 matrix")] {
        let error = Bcsr::from_csr(&a, k).unwrap_err();
        assert!(matches!(error, Error::InvalidStructure { what: "block size", .. }));
        assert!(error.to_string().contains(word), "{error}");
    }
    let refused = |ptr: Vec<u32>, cols: Vec<u32>, values: usize, word: &str| {
        let error = Bcsr::new(4, 4, 2, ptr, cols, vec![1.0; values]).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    };
    refused(vec![0, 1], vec![0], 4, "3 pointers from 0 to 1");
    refused(vec![0, 2, 1], vec![0], 4, "block row 0");
    refused(vec![0, 0, 2], vec![1, 1], 8, "block column 1 of block row 1 is repeated");
    refused(vec![0, 1, 1], vec![2], 4, "block row 0 has a block column beyond 2");
    refused(vec![0, 1, 1], vec![0], 3, "expected 4, found 3");
    let mut b = Bcsr::new(4, 4, 2, vec![0, 1, 2], vec![1, 0], vec![1.0; 8]).unwrap();
    assert!(b.check_finite().is_ok());
    b.block_row_mut(1).1[2] = f64::NAN;
    assert!(matches!(b.check_finite(), Err(Error::NonFinite { row: 2, col: 1, .. })));
    b.values_mut()[1] = f64::INFINITY;
    assert!(matches!(b.check_finite(), Err(Error::NonFinite { row: 1, col: 2, .. })));
}
