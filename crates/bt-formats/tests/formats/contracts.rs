//! Every format passes the operator contract: on the whole catalogue, on random patterns, and above the sizes at which
//! products go parallel.

use bt_formats::detect::block_size;
use bt_formats::{
    Band, Bcsr, BlockTridiagonal, Coo, CouplingKind, Csr, Dia, DiagonalKind, Error, HybridLayout, LinearOperator,
    Matrix, Partition, Scalar, Tridiagonal, c32, c64,
};
use bt_testkit::contract::operator_contract;
use bt_testkit::{Expect, catalogue, random_vector, strategies};
use proptest::prelude::*;

fn coo<T: Scalar>(a: &Csr<T>) -> Coo<T> {
    let mut coo = Coo::new(a.nrows(), a.ncols()).unwrap();
    a.for_each_entry(&mut |i, j, v| coo.push(i, j, v).unwrap());
    coo
}

/// All layouts that can hold the blocks: narrow formats refuse wider diagonal blocks.
fn hybrids<T: Scalar>(a: &Csr<T>, blocks: &Partition) -> Vec<BlockTridiagonal<T>> {
    let mut list = Vec::new();
    for diagonal in [None, Some(DiagonalKind::Tridiagonal), Some(DiagonalKind::Band), Some(DiagonalKind::Dense)] {
        for couplings in [
            None,
            Some(CouplingKind::Coo),
            Some(CouplingKind::Csr),
            Some(CouplingKind::Diagonals),
            Some(CouplingKind::Dense),
        ] {
            match BlockTridiagonal::from_csr(a, blocks.clone(), HybridLayout { diagonal, couplings }) {
                Ok(h) => list.push(h),
                Err(Error::OutsideStructure { .. }) if diagonal == Some(DiagonalKind::Tridiagonal) => {}
                Err(e) => panic!("{diagonal:?}, {couplings:?}: {e}"),
            }
        }
    }
    list
}

/// All formats that can hold a square matrix.
fn check_square<T: Scalar>(a: &Csr<T>, blocks: Option<&Partition>) -> Result<(), String> {
    let named = |format: &str, m: &dyn Matrix<T>| operator_contract(m).map_err(|why| format!("{format}: {why}"));
    named("csr", a)?;
    named("coo", &coo(a))?;
    named("dia", &Dia::from_csr(a).map_err(|e| e.to_string())?)?;
    named("bcsr", &Bcsr::from_csr(a, block_size(a, 1.0)).map_err(|e| e.to_string())?)?;
    named("band", &Band::from_csr(a).map_err(|e| e.to_string())?)?;
    match Tridiagonal::from_csr(a) {
        Ok(t) => named("tridiagonal", &t)?,
        Err(Error::OutsideStructure { .. }) => {}
        Err(e) => return Err(e.to_string()),
    }
    for h in blocks.map_or_else(Vec::new, |p| hybrids(a, p)) {
        named(&format!("hybrid {:?} {:?}", h.diagonal_kind(), h.coupling_kind()), &h)?;
    }
    Ok(())
}

fn check_catalogue<T: Scalar>() {
    for s in catalogue::<T>().iter().filter(|s| !matches!(s.expect, Expect::NotFinite { .. })) {
        check_square(&s.a, s.blocks.as_ref()).unwrap_or_else(|why| panic!("{}, {}: {why}", T::KIND, s.name));
    }
}

#[test]
fn catalogue_f32() {
    check_catalogue::<f32>();
}
#[test]
fn catalogue_f64() {
    check_catalogue::<f64>();
}
#[test]
fn catalogue_c32() {
    check_catalogue::<c32>();
}
#[test]
fn catalogue_c64() {
    check_catalogue::<c64>();
}

/// Blocks of uneven sizes with full tridiagonal diagonal blocks and one coupling entry a row: large enough that every
/// product is cut into several pieces, at places that are no multiples of anything.
fn large<T: Scalar>() -> (Csr<T>, Partition) {
    let blocks = Partition::from_sizes((0..60).map(|j| 20 + (7 * j) % 13)).unwrap();
    let n = blocks.n();
    let values = random_vector::<T>(5 * n, 31);
    let mut a = Coo::new(n, n).unwrap();
    for i in 0..n {
        let j = blocks.block_of(i);
        let own = blocks.range(j);
        for (k, col) in [i.wrapping_sub(1), i, i + 1].into_iter().enumerate() {
            if own.contains(&col) {
                a.push(i, col, values[5 * i + k]).unwrap();
            }
        }
        for (k, other) in [(3, j.wrapping_sub(1)), (4, j + 1)] {
            if other < blocks.n_blocks() {
                let range = blocks.range(other);
                a.push(i, range.start + (i - own.start) % range.len(), values[5 * i + k]).unwrap();
            }
        }
    }
    (a.to_csr().unwrap(), blocks)
}

fn check_large<T: Scalar>() {
    let (a, blocks) = large::<T>();
    check_square(&a, Some(&blocks)).unwrap();
    let (lower, diag, upper) = (random_vector::<T>(5000, 1), random_vector::<T>(5000, 2), random_vector::<T>(5000, 3));
    let pad = |mut v: Vec<T>, i: usize| {
        v[i] = T::default();
        v
    };
    operator_contract(&Tridiagonal::new(pad(lower, 0), diag, pad(upper, 4999)).unwrap()).unwrap();
}

#[test]
fn large_f64() {
    check_large::<f64>();
}
#[test]
fn large_c64() {
    check_large::<c64>();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rectangular(a in strategies::csr::<f64>(0..=12, 0..=12, 0.3), c in strategies::csr::<c32>(0..=7, 0..=7, 0.5)) {
        operator_contract(&a).map_err(TestCaseError::fail)?;
        operator_contract(&coo(&a)).map_err(TestCaseError::fail)?;
        operator_contract(&Dia::from_csr(&a).unwrap()).map_err(TestCaseError::fail)?;
        operator_contract(&c).map_err(TestCaseError::fail)?;
        operator_contract(&Dia::from_csr(&c).unwrap()).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn bands(a in strategies::band::<f64>(0..=14, 4, 4), c in strategies::band::<c64>(1..=9, 3, 2)) {
        check_square(&a, None).map_err(TestCaseError::fail)?;
        check_square(&c, None).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn block_tridiagonals((a, p) in strategies::block_tridiagonal::<f64>(6, 5), (c, q) in strategies::block_tridiagonal::<c64>(4, 3)) {
        check_square(&a, Some(&p)).map_err(TestCaseError::fail)?;
        check_square(&c, Some(&q)).map_err(TestCaseError::fail)?;
    }
}
