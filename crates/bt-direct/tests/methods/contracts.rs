//! Every factorization passes the contract on the whole catalogue and on random matrices of its structure, and says
//! where a singular matrix is singular.

use bt_direct::spike::{Partitions, SpikeOptions, TridiagonalSolver};
use bt_direct::{
    BandCholesky, BandLu, BandLuNoPivot, BlockCholesky, BlockCyclicReduction, BlockLu, BlockLuAcross, BlockRbt,
    BorderedBlocks, Components, Cyclic, CyclicReduction, DenseMatrix, DiagonalPivoting, FactorError, Factorization,
    NoPivotLu, ParallelCyclicReduction, PartialPivotLu, PeriodicTridiagonal, Rbt, SparseCholesky, SparseLdl, SparseLu,
    SparseQr, Spike, Switch, Thomas, TridiagonalLu, TridiagonalSpike,
};
use bt_formats::{
    Band, BlockTridiagonal, Csr, HybridLayout, LinearOperator, Partition, RealScalar, Scalar, Tridiagonal, c32, c64,
};
use bt_testkit::contract::{factorization_contract, refactor_contract};
use bt_testkit::strategies::{self, dominant, well_conditioned};
use bt_testkit::{Expect, System, catalogue};
use proptest::prelude::*;

type Factored<T> = Result<Box<dyn Factorization<T>>, FactorError>;

/// How far a method pivots.
#[derive(Clone, Copy, PartialEq)]
enum Pivoting {
    /// It finds a pivot whenever the matrix is nonsingular.
    Full,
    /// It finds a pivot whenever the matrix is nonsingular, and breaks down on a singular one, of which it proves nothing.
    Unproved,
    /// It solves whenever the matrix is nonsingular, but rounding may hide that it is not.
    Orthogonal,
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
fn diagonal_pivoting<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    let a = Tridiagonal::from_csr(&s.a).ok()?;
    Some(DiagonalPivoting::new(&a).map(|f| Box::new(f) as _))
}
fn cyclic_reduction<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    let a = Tridiagonal::from_csr(&s.a).ok()?;
    Some(CyclicReduction::new(&a).map(|f| Box::new(f) as _))
}
fn cr_pcr<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    let a = Tridiagonal::from_csr(&s.a).ok()?;
    Some(CyclicReduction::with_options(&a, Switch::Parallel { at_most: 5 }, &mut ()).map(|f| Box::new(f) as _))
}
fn pcr<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    let a = Tridiagonal::from_csr(&s.a).ok()?;
    Some(ParallelCyclicReduction::new(&a).map(|f| Box::new(f) as _))
}
fn periodic<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    let a = Cyclic::from_csr(&s.a).ok()?;
    Some(PeriodicTridiagonal::new(&a).map(|f| Box::new(f) as _))
}
fn band_lu<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    Some(BandLu::new(&Band::from_csr(&s.a).ok()?).map(|f| Box::new(f) as _))
}
fn band_lu_nopivot<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    Some(BandLuNoPivot::new(&Band::from_csr(&s.a).ok()?).map(|f| Box::new(f) as _))
}
fn block_lu<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    let a = hybrid(&s.a, s.blocks.as_ref()?);
    Some(BlockLu::new(&a).map(|f| Box::new(f) as _))
}
fn block_lu_across<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    let a = hybrid(&s.a, s.blocks.as_ref()?);
    Some(BlockLuAcross::new(&a).map(|f| Box::new(f) as _))
}
fn block_rbt<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    let a = hybrid(&s.a, s.blocks.as_ref()?);
    Some(BlockRbt::new(&a).map(|f| Box::new(f) as _))
}
fn block_cyclic_reduction<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    let a = hybrid(&s.a, s.blocks.as_ref()?);
    Some(BlockCyclicReduction::new(&a).map(|f| Box::new(f) as _))
}
/// The last block as a border of the others.
fn bordered<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    Some(BorderedBlocks::new(&s.a, without_last(s.blocks.as_ref()?)?).map(|f| Box::new(f) as _))
}
/// Every part by sparse LU.
#[allow(clippy::unnecessary_wraps)]
fn components<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    Some(Components::new(&s.a, |part| Ok(Box::new(SparseLu::new(part)?))).map(|f| Box::new(f) as _))
}
/// As [`sparse_cholesky`].
fn sparse_ldl<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    match SparseLdl::new(&s.a) {
        Err(FactorError::Input(bt_formats::Error::InvalidStructure { .. })) => None,
        made => Some(made.map(|f| Box::new(f) as _)),
    }
}
/// Of matrices that are not Hermitian it says so.
fn sparse_cholesky<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    match SparseCholesky::new(&s.a) {
        Err(FactorError::Input(bt_formats::Error::InvalidStructure { .. })) => None,
        made => Some(made.map(|f| Box::new(f) as _)),
    }
}
// An option as its siblings: every matrix has the format it needs.
#[allow(clippy::unnecessary_wraps)]
fn sparse_lu<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    Some(SparseLu::new(&s.a).map(|f| Box::new(f) as _))
}
#[allow(clippy::unnecessary_wraps)]
fn sparse_qr<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    Some(SparseQr::new(&s.a).map(|f| Box::new(f) as _))
}
#[allow(clippy::unnecessary_wraps)]
fn dense_lu<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    Some(PartialPivotLu::new(s.a.to_dense().as_ref()).map(|f| Box::new(f) as _))
}
#[allow(clippy::unnecessary_wraps)]
fn genp<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    Some(NoPivotLu::new(s.a.to_dense().as_ref()).map(|f| Box::new(f) as _))
}
#[allow(clippy::unnecessary_wraps)]
fn rbt<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    Some(Rbt::new(s.a.to_dense().as_ref()).map(|f| Box::new(f) as _))
}

fn without_last(p: &Partition) -> Option<Partition> {
    let m = p.n_blocks();
    (m > 1).then(|| Partition::from_sizes(p.sizes().take(m - 1)).unwrap())
}

fn spike<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    let options = SpikeOptions { partitions: Partitions::Balanced(3), ..SpikeOptions::default() };
    Some(Spike::with_options(&Band::from_csr(&s.a).ok()?, &options, &mut ()).map(|f| Box::new(f) as _))
}
fn spike_blocks<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    let options = SpikeOptions { partitions: Partitions::Even(2), ..SpikeOptions::default() };
    Some(Spike::with_options(&hybrid(&s.a, s.blocks.as_ref()?), &options, &mut ()).map(|f| Box::new(f) as _))
}

fn in_partitions<T: Scalar>(
    a: &Tridiagonal<T>,
    p: usize,
    solver: TridiagonalSolver,
) -> Result<TridiagonalSpike<T>, FactorError> {
    TridiagonalSpike::with_options(a, &Partitions::Even(p), solver, &mut ())
}
fn g_spike<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    let a = Tridiagonal::from_csr(&s.a).ok()?;
    Some(in_partitions(&a, 3, TridiagonalSolver::Givens).map(|f| Box::new(f) as _))
}
fn spike_lu<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    let a = Tridiagonal::from_csr(&s.a).ok()?;
    Some(in_partitions(&a, 2, TridiagonalSolver::Lu).map(|f| Box::new(f) as _))
}
fn spike_diagonal_pivoting<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {
    let a = Tridiagonal::from_csr(&s.a).ok()?;
    Some(in_partitions(&a, 4, TridiagonalSolver::DiagonalPivoting).map(|f| Box::new(f) as _))
}

fn hybrid<T: Scalar>(a: &Csr<T>, blocks: &Partition) -> BlockTridiagonal<T> {
    BlockTridiagonal::from_csr(a, blocks.clone(), HybridLayout::default()).unwrap()
}

/// u of the scalar.
fn roundoff<T: Scalar>() -> f64 {
    T::Real::EPSILON.to_f64() / 2.0
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
            (Expect::Singular { .. }, Err(FactorError::Breakdown { .. })) if pivoting == Pivoting::Unproved => Ok(()),
            (Expect::Singular { .. }, Err(FactorError::Singular(place))) if place.column < s.a.nrows() => Ok(()),
            // Rounding may leave a tiny pivot where exact elimination ends with zero: then the condition estimate tells.
            (Expect::Singular { .. }, Ok(f))
                if pivoting != Pivoting::Full && f.rcond() <= 8.0 * s.a.nrows() as f64 * roundoff::<T>() =>
            {
                Ok(())
            }
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
    diagonal_pivoting: Unproved;
    cyclic_reduction: Limited;
    cr_pcr: Limited;
    pcr: Limited;
    periodic: Full;
    band_lu: Full;
    band_lu_nopivot: Limited;
    block_lu: Limited;
    block_lu_across: Full;
    block_rbt: Full;
    block_cyclic_reduction: Limited;
    bordered: Limited;
    components: Full;
    sparse_cholesky: Limited;
    sparse_ldl: Limited;
    sparse_lu: Full;
    sparse_qr: Orthogonal;
    dense_lu: Full;
    genp: Limited;
    rbt: Full;
    spike: Limited;
    spike_blocks: Limited;
    g_spike: Orthogonal;
    spike_lu: Limited;
    spike_diagonal_pivoting: Limited;
}

/// The same pattern with other values, dominant ones, so that no method without pivoting objects; and with zeros only.
fn relatives<T: Scalar>(a: &Csr<T>) -> [Csr<T>; 3] {
    let first = dominant(a);
    let (mut second, mut zeros) = (first.clone(), first.clone());
    second.values_mut().iter_mut().for_each(|v| *v = *v * T::rounded(0.5, 0.0) + *v * *v * T::rounded(0.01, 0.0));
    zeros.values_mut().fill(T::default());
    [dominant(&first), dominant(&second), zeros]
}

/// (A + Aᴴ)/2 with a dominant positive diagonal: positive definite. Zero stays zero.
fn hermitian<T: Scalar>(a: &Band<T>) -> Band<T> {
    let k = a.kl().max(a.ku());
    let mut h = Band::zeros(a.n(), k, k).unwrap();
    let half = T::rounded(0.5, 0.0);
    for j in 0..a.n() {
        for i in h.column_range(j) {
            *h.get_mut(i, j) = (a.get(i, j) + Scalar::conj(a.get(j, i))) * half;
        }
    }
    for j in 0..a.n() {
        let others: f64 = h.column_range(j).filter(|&i| i != j).map(|i| h.get(i, j).abs().to_f64()).sum();
        let modulus = a.get(j, j).abs().to_f64();
        *h.get_mut(j, j) = T::rounded(if modulus == 0.0 { 0.0 } else { modulus + others }, 0.0);
    }
    h
}

/// Every place within k of the diagonal, whatever it holds.
fn whole_band<T: Scalar>(h: &Band<T>, k: usize) -> Csr<T> {
    let n = h.n();
    let (mut ptr, mut idx, mut val) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        for j in i.saturating_sub(k)..(i + k + 1).min(n) {
            idx.push(j as u32);
            val.push(h.get(i, j));
        }
        ptr.push(idx.len() as u32);
    }
    Csr::new(n, n, ptr, idx, val).unwrap()
}

/// Refactorisation of all methods that take the matrix.
fn check_refactor<T: Scalar>(a: &Csr<T>, blocks: &Partition) -> Result<(), String> {
    let [first, second, zeros] = &relatives(a);
    let named = |name: &str, verdict: Result<(), String>| verdict.map_err(|why| format!("{name}: {why}"));
    let [f, s, z] = [first, second, zeros].map(|m| Band::from_csr(m).unwrap());
    named("band-lu", refactor_contract(&f, &s, Some(&z), BandLu::new, BandLu::refactor))?;
    named("band-lu-nopivot", refactor_contract(&f, &s, Some(&z), BandLuNoPivot::new, BandLuNoPivot::refactor))?;
    let [f, s, z] = [&f, &s, &z].map(hermitian);
    named("band-cholesky", refactor_contract(&f, &s, Some(&z), BandCholesky::new, BandCholesky::refactor))?;
    let [f, s, z] = [first, second, zeros].map(|m| hybrid(m, blocks));
    named("block-lu", refactor_contract(&f, &s, Some(&z), BlockLu::new, BlockLu::refactor))?;
    let (new, refactor) = (BlockLuAcross::new, BlockLuAcross::refactor);
    named("block-lu-across", refactor_contract(&f, &s, Some(&z), new, refactor))?;
    named("block-rbt", refactor_contract(&f, &s, Some(&z), BlockRbt::new, BlockRbt::refactor))?;
    let (new, refactor) = (BlockCyclicReduction::new, BlockCyclicReduction::refactor);
    named("block-cyclic-reduction", refactor_contract(&f, &s, Some(&z), new, refactor))?;
    let [f, s, z] =
        [first, second, zeros].map(|m| hybrid(&hermitian(&Band::from_csr(m).unwrap()).to_csr().unwrap(), blocks));
    named("block-cholesky", refactor_contract(&f, &s, Some(&z), BlockCholesky::new, BlockCholesky::refactor))?;
    let k = Band::from_csr(first).map(|b| b.kl().max(b.ku())).unwrap();
    let [f, s, z] = [first, second, zeros].map(|m| whole_band(&hermitian(&Band::from_csr(m).unwrap()), k));
    named("sparse-cholesky", refactor_contract(&f, &s, Some(&z), SparseCholesky::new, SparseCholesky::refactor))?;
    named("sparse-ldl", refactor_contract(&f, &s, Some(&z), SparseLdl::new, SparseLdl::refactor))?;
    let [f, s, z] = [first, second, zeros].map(Csr::to_dense);
    let [f, s, z] = [&f, &s, &z].map(|m| DenseMatrix::new(m.as_ref()));
    let (lu, genp, rbt) = (PartialPivotLu::refactor, NoPivotLu::refactor, Rbt::refactor);
    named(
        "dense-lu",
        refactor_contract(&f, &s, Some(&z), |a| PartialPivotLu::new(a.as_mat()), |f, a| lu(f, a.as_mat())),
    )?;
    named("genp", refactor_contract(&f, &s, Some(&z), |a| NoPivotLu::new(a.as_mat()), |f, a| genp(f, a.as_mat())))?;
    named("rbt", refactor_contract(&f, &s, Some(&z), |a| Rbt::new(a.as_mat()), |f, a| rbt(f, a.as_mat())))?;
    if let Some(inside) = without_last(blocks) {
        let new = |a: &Csr<T>| BorderedBlocks::new(a, inside.clone());
        named("bordered", refactor_contract(first, second, Some(zeros), new, BorderedBlocks::refactor))?;
    }
    named("sparse-qr", refactor_contract(first, second, Some(zeros), SparseQr::new, SparseQr::refactor))?;
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
        let (new, refactor) = (DiagonalPivoting::new, DiagonalPivoting::refactor);
        named("diagonal-pivoting", refactor_contract(&f, &s, Some(&z), new, refactor))?;
        named("cr", refactor_contract(&f, &s, Some(&z), CyclicReduction::new, CyclicReduction::refactor))?;
        let hybrid = |a: &_| CyclicReduction::with_options(a, Switch::Parallel { at_most: 3 }, &mut ());
        named("cr-pcr", refactor_contract(&f, &s, Some(&z), hybrid, CyclicReduction::refactor))?;
        let (make, remake) = (ParallelCyclicReduction::new, ParallelCyclicReduction::refactor);
        named("pcr", refactor_contract(&f, &s, Some(&z), make, remake))?;
        for solver in [TridiagonalSolver::Givens, TridiagonalSolver::Lu, TridiagonalSolver::DiagonalPivoting] {
            let new = |a: &_| in_partitions(a, 3, solver);
            named("tridiagonal spike", refactor_contract(&f, &s, Some(&z), new, TridiagonalSpike::refactor))?;
        }
        let [cf, cs, cz] = [first, second, zeros].map(|m| Cyclic::from_csr(m).unwrap());
        let (make, remake) = (PeriodicTridiagonal::new, PeriodicTridiagonal::refactor);
        named("periodic", refactor_contract(&cf, &cs, Some(&cz), make, remake))?;
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
        contract(&DiagonalPivoting::new(&t).unwrap(), &a)?;
        for p in 1..5 {
            contract(&in_partitions(&t, p, TridiagonalSolver::Givens).unwrap(), &a)?;
        }
        contract(&BandLu::new(&Band::from_csr(&a).unwrap()).unwrap(), &a)?;
        contract(&SparseLu::new(&a).unwrap(), &a)?;
    }

    #[test]
    fn wild_bands(a in well_conditioned(strategies::band::<c64>(1..=24, 5, 4), 1e6)) {
        contract(&BandLu::new(&Band::from_csr(&a).unwrap()).unwrap(), &a)?;
        contract(&SparseLu::new(&a).unwrap(), &a)?;
    }

    #[test]
    fn wild_blocks((a, p) in strategies::block_tridiagonal::<f64>(5, 4)) {
        prop_assume!(bt_testkit::oracle::Oracle::new(&a).condition() < 1e6);
        contract(&BlockLuAcross::new(&hybrid(&a, &p)).unwrap(), &a)?;
    }

    #[test]
    fn wild_sparse(a in well_conditioned(strategies::square::<f64>(1..=14, 0.5), 1e6)) {
        contract(&SparseLu::new(&a).unwrap(), &a)?;
        contract(&BandLu::new(&Band::from_csr(&a).unwrap()).unwrap(), &a)?;
    }

    #[test]
    fn dominant_blocks((a, p) in strategies::block_tridiagonal::<f64>(7, 6).prop_map(|(a, p)| (dominant(&a), p))) {
        contract(&BlockLu::new(&hybrid(&a, &p)).unwrap(), &a)?;
        let band = Band::from_csr(&a).unwrap();
        contract(&BandLuNoPivot::new(&band).unwrap(), &a)?;
        let h = hermitian(&band);
        let h_csr = h.to_csr().unwrap();
        contract(&BandCholesky::new(&h).unwrap(), &h_csr)?;
        contract(&BlockCholesky::new(&hybrid(&h_csr, &p)).unwrap(), &h_csr)?;
        contract(&SparseCholesky::new(&h_csr).unwrap(), &h_csr)?;
        contract(&SparseLdl::new(&h_csr).unwrap(), &h_csr)?;
        contract(&BlockCyclicReduction::new(&hybrid(&a, &p)).unwrap(), &a)?;
        contract(&SparseLu::new(&a).unwrap(), &a)?;
        if let Some(inside) = without_last(&p) {
            contract(&BorderedBlocks::new(&a, inside).unwrap(), &a)?;
        }
    }
}
