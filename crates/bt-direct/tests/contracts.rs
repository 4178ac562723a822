//! Every factorization passes the contract on the whole catalogue and on random matrices of its structure, and says
//! where a singular matrix is singular.

use bt_direct::{BandLu, BlockLu, FactorError, Factorization, SparseLu, Thomas, TridiagonalLu};
use bt_formats::{Band, BlockTridiagonal, Csr, HybridLayout, LinearOperator, Partition, Scalar, Tridiagonal, c32, c64};
use bt_testkit::alloc::CountingAllocator;
use bt_testkit::contract::{factorization_contract, refactor_contract};
use bt_testkit::strategies::{self, dominant, well_conditioned};
use bt_testkit::{Expect, System, catalogue};
use proptest::prelude::*;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

type Factored<T> = Result<Box<dyn Factorization<T>>, FactorError>;

/// How far a method pivots.
#[derive(Clone, Copy, PartialEq)]
enum Pivoting {
    /// It finds a pivot whenever the matrix is nonsingular.
    Full,
    /// It may break down on a nonsingular matrix, or grow.
    Limited,
}

fn thomas<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    let a = Tridiagonal::from_csr(&s.a).ok()?;
    Some(Thomas::new(&a).map(|f| Box::new(f) as _))
}
fn tridiagonal_lu<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    let a = Tridiagonal::from_csr(&s.a).ok()?;
    Some(TridiagonalLu::new(&a).map(|f| Box::new(f) as _))
}
fn band_lu<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    Some(BandLu::new(&Band::from_csr(&s.a).ok()?).map(|f| Box::new(f) as _))
}
fn block_lu<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    let a = hybrid(&s.a, s.blocks.as_ref()?);
    Some(BlockLu::new(&a).map(|f| Box::new(f) as _))
}
// An option as its siblings: every matrix has the format it needs.
#[allow(clippy::unnecessary_wraps)]
fn sparse_lu<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    Some(SparseLu::new(&s.a).map(|f| Box::new(f) as _))
}

fn hybrid<T: Scalar>(a: &Csr<T>, blocks: &Partition) -> BlockTridiagonal<T> {
    BlockTridiagonal::from_csr(a, blocks.clone(), HybridLayout::default()).unwrap()
}

fn check_catalogue<T: Scalar>(factor: impl Fn(&System<T>) -> Option<Factored<T>>, pivoting: Pivoting) {
    let mut solved = 0;
    let mut breaches = Vec::new();
    for s in catalogue::<T>() {
        let Some(outcome) = factor(&s) else { continue };
        let breach = match (s.expect, outcome) {
            (Expect::Solvable { .. }, Ok(f)) => {
                // Without full pivoting elements may grow: such factors are for refinement, which is tested elsewhere.
                if pivoting == Pivoting::Limited && f.stats().growth > 1e3 {
                    continue;
                }
                solved += 1;
                factorization_contract(&*f, &s.a)
            }
            (Expect::Solvable { .. } | Expect::Singular { .. }, Err(FactorError::Breakdown { .. }))
                if pivoting == Pivoting::Limited =>
            {
                Ok(())
            }
            (Expect::Singular { .. }, Err(FactorError::Singular(place))) if place.column < s.a.nrows() => Ok(()),
            (Expect::NotFinite { row, col }, Err(FactorError::Input(e))) => {
                let place = format!("row {row}, column {col}");
                if e.to_string().contains(&place) { Ok(()) } else { Err(format!("'{e}' does not name {place}")) }
            }
            (expected, Ok(_)) => Err(format!("expected {expected:?}, was factored")),
            (expected, Err(e)) => Err(format!("expected {expected:?}, found: {e}")),
        };
        breaches.extend(breach.err().map(|why| format!("{}, {}: {why}", T::KIND, s.name)));
    }
    assert!(breaches.is_empty(), "\n{}", breaches.join("\n"));
    assert!(solved >= 5, "only {solved} systems fit the method");
}

macro_rules! catalogue_tests {
    ($($name:ident: $pivoting:ident;)*) => {$(
        mod $name {
            use super::*;
            #[test]
            fn catalogue_f32() {
                check_catalogue::<f32>(super::$name, Pivoting::$pivoting);
            }
            #[test]
            fn catalogue_f64() {
                check_catalogue::<f64>(super::$name, Pivoting::$pivoting);
            }
            #[test]
            fn catalogue_c32() {
                check_catalogue::<c32>(super::$name, Pivoting::$pivoting);
            }
            #[test]
            fn catalogue_c64() {
                check_catalogue::<c64>(super::$name, Pivoting::$pivoting);
            }
        }
    )*};
}

catalogue_tests! {
    thomas: Limited;
    tridiagonal_lu: Full;
    band_lu: Full;
    block_lu: Limited;
    sparse_lu: Full;
}

/// The same pattern with other values, dominant ones, so that no method without pivoting objects; and with zeros only.
fn relatives<T: Scalar>(a: &Csr<T>) -> [Csr<T>; 3] {
    let first = dominant(a);
    let (mut second, mut zeros) = (first.clone(), first.clone());
    second.values_mut().iter_mut().for_each(|v| *v = *v * T::from_parts(0.5, 0.0) + *v * *v * T::from_parts(0.01, 0.0));
    zeros.values_mut().fill(T::default());
    [dominant(&first), dominant(&second), zeros]
}

/// Refactorisation of all methods that take the matrix.
fn check_refactor<T: Scalar>(a: &Csr<T>, blocks: &Partition) -> Result<(), String> {
    let [first, second, zeros] = &relatives(a);
    let named = |name: &str, verdict: Result<(), String>| verdict.map_err(|why| format!("{name}: {why}"));
    let [f, s, z] = [first, second, zeros].map(|m| Band::from_csr(m).unwrap());
    named("band-lu", refactor_contract(&f, &s, Some(&z), BandLu::new, BandLu::refactor))?;
    let [f, s, z] = [first, second, zeros].map(|m| hybrid(m, blocks));
    named("block-lu", refactor_contract(&f, &s, Some(&z), BlockLu::new, BlockLu::refactor))?;
    // Fill follows the pivots: only once it has met both matrices does sparse LU have the memory for either.
    let warm = |a: &Csr<T>| {
        let mut f = SparseLu::new(first)?;
        f.refactor(second)?;
        f.refactor(a)?;
        Ok(f)
    };
    named("sparse-lu", refactor_contract(first, second, Some(zeros), warm, SparseLu::refactor))?;
    if blocks.min_max_size().1 == 1 {
        let [f, s, z] = [first, second, zeros].map(|m| Tridiagonal::from_csr(m).unwrap());
        named("thomas", refactor_contract(&f, &s, Some(&z), Thomas::new, Thomas::refactor))?;
        named("tridiagonal-lu", refactor_contract(&f, &s, Some(&z), TridiagonalLu::new, TridiagonalLu::refactor))?;
    }
    Ok(())
}

fn contract<T: Scalar>(f: &dyn Factorization<T>, a: &Csr<T>) -> Result<(), TestCaseError> {
    factorization_contract(f, a).map_err(|why| TestCaseError::fail(format!("{}: {why}", f.method())))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn refactorisation_f64((a, p) in strategies::block_tridiagonal::<f64>(6, 4), t in strategies::tridiagonal::<f64>(1..=12)) {
        check_refactor(&a, &p).map_err(TestCaseError::fail)?;
        let n = t.nrows();
        check_refactor(&t, &Partition::uniform(n, 1).unwrap()).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn refactorisation_c32((a, p) in strategies::block_tridiagonal::<c32>(4, 3), t in strategies::tridiagonal::<c32>(1..=7)) {
        check_refactor(&a, &p).map_err(TestCaseError::fail)?;
        let n = t.nrows();
        check_refactor(&t, &Partition::uniform(n, 1).unwrap()).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn wild_tridiagonals(a in well_conditioned(strategies::tridiagonal::<f64>(1..=20), 1e6)) {
        let t = Tridiagonal::from_csr(&a).unwrap();
        contract(&TridiagonalLu::new(&t).unwrap(), &a)?;
        contract(&BandLu::new(&Band::from_csr(&a).unwrap()).unwrap(), &a)?;
        contract(&SparseLu::new(&a).unwrap(), &a)?;
    }

    #[test]
    fn wild_bands(a in well_conditioned(strategies::band::<c64>(1..=24, 5, 4), 1e6)) {
        contract(&BandLu::new(&Band::from_csr(&a).unwrap()).unwrap(), &a)?;
        contract(&SparseLu::new(&a).unwrap(), &a)?;
    }

    #[test]
    fn wild_sparse(a in well_conditioned(strategies::square::<f64>(1..=14, 0.5), 1e6)) {
        contract(&SparseLu::new(&a).unwrap(), &a)?;
        contract(&BandLu::new(&Band::from_csr(&a).unwrap()).unwrap(), &a)?;
    }

    #[test]
    fn dominant_blocks((a, p) in strategies::block_tridiagonal::<f64>(7, 6).prop_map(|(a, p)| (dominant(&a), p))) {
        contract(&BlockLu::new(&hybrid(&a, &p)).unwrap(), &a)?;
        contract(&SparseLu::new(&a).unwrap(), &a)?;
    }
}
