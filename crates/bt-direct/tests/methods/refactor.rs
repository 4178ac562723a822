//! New values through `dyn Factorization`: every method takes them in its own format and in others, refuses another structure, recovers.

use bt_direct::spike::{Partitions, SpikeOptions, TridiagonalSolver};
use bt_direct::{
    BandCholesky, BandLu, BandLuNoPivot, BlockCholesky, BlockCyclicReduction, BlockLu, BlockLuAcross, BlockRbt,
    Bordered, BorderedBlocks, Components, Cyclic, CyclicReduction, Diagonal, DiagonalPivoting, DoubledLu, ExactLu,
    FactorError, Factorization, Given, Lowered, NoPivotLu, ParallelCyclicReduction, PartialPivotLu,
    PeriodicTridiagonal, PermutedTriangular, Rbt, SparseCholesky, SparseLdl, SparseLu, SparseQr, Spike, Switch, Thomas,
    TridiagonalLu, TridiagonalSpike,
};
use bt_formats::{
    Band, BlockTridiagonal, CancelToken, Coo, Csr, HybridLayout, LinearOperator, Matrix, Partition, Rounded, Scalar,
    ScalarKind, Tridiagonal, c32, zero,
};
use bt_testkit::contract::dyn_refactor_contract;
use bt_testkit::strategies::{self, dominant};
use bt_testkit::{catalogue, x_star};
use faer::Mat;
use proptest::prelude::*;

type Factored<T> = Result<Box<dyn Factorization<T>>, FactorError>;

/// Matrices of one structure: the one that is factored first, new values for it, and zeros only.
struct Family<T: Scalar> {
    first: Csr<T>,
    second: Csr<T>,
    zeros: Csr<T>,
    /// Another size, and an entry where the structure has none.
    refused: Vec<Csr<T>>,
}

impl<T: Scalar> Family<T> {
    fn new(first: Csr<T>) -> Self {
        let (mut second, mut zeros) = (first.clone(), first.clone());
        let half = T::rounded(0.5, 0.0);
        second.values_mut().iter_mut().for_each(|v| *v = *v * half + *v * *v * T::rounded(0.01, 0.0));
        second = dominant(&second);
        zeros.values_mut().fill(zero());
        let refused = vec![catalogue::toeplitz(first.nrows() + 1, -1.0, 4.0, -1.0)];
        Self { first, second, zeros, refused }
    }

    /// With values that make it Hermitian and positive definite.
    fn hermitian(&self) -> Self {
        let of = |a: &Csr<T>| {
            let (mut sums, mut entries) = (vec![0.0; a.nrows()], Vec::new());
            a.for_each_entry(&mut |i, j, v| {
                if i > j {
                    entries.extend([(i, j, v), (j, i, Scalar::conj(v))]);
                    sums[i] += v.cast::<bt_formats::c64>().norm();
                    sums[j] += v.cast::<bt_formats::c64>().norm();
                }
            });
            let is_zero = a.values().iter().all(|v| *v == zero());
            let mut out = Coo::new(a.nrows(), a.nrows()).unwrap();
            for (i, j, v) in entries {
                out.push(i, j, v).unwrap();
            }
            for (i, sum) in sums.into_iter().enumerate() {
                out.push(i, i, T::rounded(if is_zero { 0.0 } else { 1.0 + sum }, 0.0)).unwrap();
            }
            out.to_csr().unwrap()
        };
        Self { first: of(&self.first), second: of(&self.second), zeros: of(&self.zeros), refused: self.refused.clone() }
    }

    /// Also refuses an entry in the last column of the first row, where the structure of a method ends before.
    fn refusing_corner(mut self, is_outside: bool) -> Self {
        let n = self.first.nrows();
        if is_outside {
            let mut corner = Coo::new(n, n).unwrap();
            self.first.for_each_entry(&mut |i, j, v| corner.push(i, j, v).unwrap());
            corner.push(0, n - 1, T::rounded(1.0, 0.0)).unwrap();
            self.refused.push(corner.to_csr().unwrap());
        }
        self
    }

    /// The contract for factors that are made so, with new values in the formats that hold them without loss.
    fn check(&self, name: &str, forms: Forms, make: impl Fn(&Csr<T>) -> Factored<T>) -> Result<(), String> {
        self.check_against(name, forms, &make, |_, second| make(second))
    }

    /// The same bits as `reference` of the first and the second matrix.
    fn check_against(
        &self,
        name: &str,
        forms: Forms,
        make: impl Fn(&Csr<T>) -> Factored<T>,
        reference: impl Fn(&Csr<T>, &Csr<T>) -> Factored<T>,
    ) -> Result<(), String> {
        let told = |e: FactorError| format!("{name}: {e}");
        let mut f = make(&self.first).map_err(told)?;
        let reference = reference(&self.first, &self.second).map_err(told)?;
        let second = &self.second;
        let (band, dense) = (Band::from_csr(second).unwrap(), second.to_dense());
        let (tridiagonal, cyclic) = (Tridiagonal::from_csr(second), Cyclic::from_csr(second));
        let partition = Partition::uniform(second.nrows(), second.nrows().max(1)).unwrap();
        let blocks = BlockTridiagonal::from_csr(second, partition, HybridLayout::default()).unwrap();
        let mut given = vec![Given::Csr(second)];
        if forms == Forms::All {
            given.extend([Given::Band(&band), Given::Blocks(&blocks), Given::Dense(dense.as_ref())]);
            given.extend(tridiagonal.as_ref().map(Given::Tridiagonal).ok());
            given.extend(cyclic.as_ref().map(Given::Periodic).ok());
        }
        let refused: Vec<_> = self.refused.iter().map(Given::Csr).collect();
        let zeros = Some(Given::Csr(&self.zeros));
        dyn_refactor_contract(&mut f, Given::Csr(&self.first), &given, zeros, &refused, &reference)
            .map_err(|why| format!("{name}: {why}"))
    }
}

/// In which formats new values are given.
#[derive(Clone, Copy, PartialEq)]
enum Forms {
    All,
    /// By compressed rows, which alone keep the pattern whatever the values are.
    Rows,
}

fn boxed<T: Scalar, F: Factorization<T> + 'static>(f: F) -> Box<dyn Factorization<T>> {
    Box::new(f)
}

fn check_all<T: Scalar>(a: &Csr<T>, blocks: &Partition) -> Result<(), String> {
    use Forms::{All, Rows};
    let n = a.nrows();
    let first = dominant(a);
    let (kl, ku) = Band::from_csr(&first).map(|b| (b.kl(), b.ku())).unwrap();
    let family = |is_outside| Family::new(first.clone()).refusing_corner(n > 1 && is_outside);

    let band = family(n - 1 > ku);
    band.check("band-lu", All, |a| Ok(boxed(BandLu::new(&*Given::Csr(a).band(kl, ku)?)?)))?;
    band.check("band-lu-nopivot", All, |a| Ok(boxed(BandLuNoPivot::new(&*Given::Csr(a).band(kl, ku)?)?)))?;
    let options = SpikeOptions { partitions: Partitions::Balanced(3), ..SpikeOptions::default() };
    band.check("spike", All, |a| Ok(boxed(Spike::with_options(&*Given::Csr(a).band(kl, ku)?, &options, &mut ())?)))?;
    let h = band.hermitian().refusing_corner(n > 1 && n - 1 > kl);
    h.check("band-cholesky", All, |a| Ok(boxed(BandCholesky::new(&*Given::Csr(a).band(kl, kl)?)?)))?;

    let last = blocks.n_blocks() - 1;
    let cut = family(last > 1);
    let hybrid = |a: &Csr<T>| BlockTridiagonal::from_csr(a, blocks.clone(), HybridLayout::default());
    let fastest = |a: &Csr<T>| BlockTridiagonal::from_csr(a, blocks.clone(), BlockLu::<T>::layout(blocks));
    cut.check("block-lu", All, |a| Ok(boxed(BlockLu::new(&fastest(a)?)?)))?;
    cut.check("block-lu-across", All, |a| Ok(boxed(BlockLuAcross::new(&hybrid(a)?)?)))?;
    cut.check("block-rbt", All, |a| Ok(boxed(BlockRbt::new(&hybrid(a)?)?)))?;
    cut.check("block-cyclic-reduction", All, |a| Ok(boxed(BlockCyclicReduction::new(&hybrid(a)?)?)))?;
    if last > 2 {
        let options = SpikeOptions { partitions: Partitions::Even(2), ..SpikeOptions::default() };
        cut.check("spike of blocks", All, |a| Ok(boxed(Spike::with_options(&hybrid(a)?, &options, &mut ())?)))?;
    }
    let h = cut.hermitian();
    h.check("block-cholesky", All, |a| Ok(boxed(BlockCholesky::new(&hybrid(a)?)?)))?;

    // The corner is in no pattern with a band or blocks before it.
    let stored = n > 1 && first.row(0).0.contains(&(n as u32 - 1));
    let pattern = family(!stored);
    let h = pattern.hermitian();
    h.check("sparse-cholesky", Rows, |a| Ok(boxed(SparseCholesky::new(a)?)))?;
    h.check("sparse-ldl", Rows, |a| Ok(boxed(SparseLdl::new(a)?)))?;
    pattern.check("sparse-qr", Rows, |a| Ok(boxed(SparseQr::new(a)?)))?;
    pattern.check_against(
        "sparse-lu",
        Rows,
        |a| Ok(boxed(SparseLu::new(a)?)),
        |first, second| {
            let mut lu = SparseLu::new(first)?;
            lu.refactor(second)?;
            Ok(boxed(lu))
        },
    )?;
    if T::KIND == ScalarKind::F64 {
        let single = |a: &Csr<T>| {
            let f = Rounded::<f32>::new(a)?;
            let lu = BandLu::new(&*Given::Csr(f.matrix()).band(kl, ku)?)?;
            Ok(boxed(Lowered::new(Box::new(lu), f.exponent())))
        };
        band.check("lowered", All, single)?;
    }

    let dense = family(false);
    dense.check("dense-lu", All, |a| Ok(boxed(PartialPivotLu::new(a.to_dense().as_ref())?)))?;
    dense.check("dense-lu-doubled", All, |a| Ok(boxed(DoubledLu::new(a.to_dense().as_ref())?)))?;
    dense.check("exact-lu", All, |a| Ok(boxed(ExactLu::new(a.to_dense().as_ref())?)))?;
    dense.check("genp", All, |a| Ok(boxed(NoPivotLu::new(a.to_dense().as_ref())?)))?;
    dense.check("rbt", All, |a| Ok(boxed(Rbt::new(a.to_dense().as_ref())?)))?;

    if last > 0 {
        let inside = Partition::from_sizes(blocks.sizes().take(last)).unwrap();
        dense.check("bordered blocks", Rows, |a| Ok(boxed(BorderedBlocks::new(a, inside.clone())?)))?;
    }
    if n > 1 {
        dense.check("bordered", Rows, |a| {
            let part =
                |rows: usize, cols: usize, i0: usize, j0: usize| Mat::from_fn(rows, cols, |i, j| a.get(i0 + i, j0 + j));
            let t = Csr::from_dense(part(n - 1, n - 1, 0, 0).as_ref())?;
            let inner = BandLu::new(&*Given::Csr(&t).band(kl, ku)?)?;
            let (e, f, c) = (part(n - 1, 1, 0, n - 1), part(1, n - 1, n - 1, 0), part(1, 1, n - 1, n - 1));
            Ok(boxed(Bordered::new(&t, inner, e.as_ref(), f.as_ref(), c.as_ref())?))
        })?;
    }

    let only = |keep: &dyn Fn(usize, usize) -> bool| {
        let mut kept = Coo::new(n, n).unwrap();
        first.for_each_entry(&mut |i, j, v| {
            if keep(i, j) {
                kept.push(i, j, v).unwrap();
            }
        });
        Family::new(kept.to_csr().unwrap()).refusing_corner(n > 1)
    };
    only(&|i, j| i == j).check("diagonal", All, |a| Ok(boxed(Diagonal::new(a)?)))?;
    only(&|i, j| i >= j).check("triangular", All, |a| Ok(boxed(PermutedTriangular::new(a)?)))?;
    let halves = only(&|i, j| (i < n / 2) == (j < n / 2));
    halves.check_against(
        "components",
        Rows,
        |a| Ok(boxed(Components::new(a, |part| Ok(Box::new(SparseLu::new(part)?)))?)),
        |first, second| {
            let mut parts = Components::new(first, |part| Ok(Box::new(SparseLu::new(part)?)))?;
            parts.refactor(second)?;
            Ok(boxed(parts))
        },
    )?;
    if blocks.min_max_size().1 == 1 { tridiagonals(&family(n > 2), &family(false)) } else { Ok(()) }
}

fn tridiagonals<T: Scalar>(family: &Family<T>, periodic: &Family<T>) -> Result<(), String> {
    use Forms::All;
    let t = |a: &Csr<T>| Tridiagonal::from_csr(a);
    family.check("thomas", All, |a| Ok(boxed(Thomas::new(&t(a)?)?)))?;
    family.check("tridiagonal-lu", All, |a| Ok(boxed(TridiagonalLu::new(&t(a)?)?)))?;
    family.check("diagonal-pivoting", All, |a| Ok(boxed(DiagonalPivoting::new(&t(a)?)?)))?;
    family.check("cyclic-reduction", All, |a| Ok(boxed(CyclicReduction::new(&t(a)?)?)))?;
    let switch = Switch::Parallel { at_most: 3 };
    family.check("cr-pcr", All, |a| Ok(boxed(CyclicReduction::with_options(&t(a)?, switch, &mut ())?)))?;
    family.check("pcr", All, |a| Ok(boxed(ParallelCyclicReduction::new(&t(a)?)?)))?;
    for solver in [TridiagonalSolver::Givens, TridiagonalSolver::Lu, TridiagonalSolver::DiagonalPivoting] {
        let spike = |a: &Csr<T>| -> Factored<T> {
            Ok(boxed(TridiagonalSpike::with_options(&t(a)?, &Partitions::Even(3), solver, &mut ())?))
        };
        family.check("tridiagonal spike", All, spike)?;
    }
    periodic.check("periodic-lu", All, |a| Ok(boxed(PeriodicTridiagonal::new(&Cyclic::from_csr(a)?)?)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_method_f64((a, p) in strategies::block_tridiagonal::<f64>(6, 4), t in strategies::tridiagonal::<f64>(1..=12)) {
        check_all(&a, &p).map_err(TestCaseError::fail)?;
        check_all(&t, &Partition::uniform(t.nrows(), 1).unwrap()).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn every_method_c32((a, p) in strategies::block_tridiagonal::<c32>(4, 3), t in strategies::tridiagonal::<c32>(1..=7)) {
        check_all(&a, &p).map_err(TestCaseError::fail)?;
        check_all(&t, &Partition::uniform(t.nrows(), 1).unwrap()).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn a_monitor_stops_a_refactorisation_and_the_factors_recover() {
    let a = catalogue::toeplitz::<f64>(200, -1.0, 4.0, -1.0);
    let cancelled = CancelToken::new();
    cancelled.cancel();
    let mut monitor = cancelled;
    let methods: [Box<dyn Factorization<f64>>; 3] = [
        Box::new(BandLu::new(&Band::from_csr(&a).unwrap()).unwrap()),
        Box::new(SparseCholesky::new(&a).unwrap()),
        Box::new(Components::new(&a, |part| Ok(Box::new(SparseLu::new(part)?))).unwrap()),
    ];
    for mut f in methods {
        let solution = |f: &dyn Factorization<f64>| {
            let mut x = x_star(200);
            f.solve_vec_in_place(&mut x);
            x
        };
        let before = solution(&f);
        let stopped = f.refactor(Given::Csr(&a), &mut monitor);
        assert!(matches!(stopped, Err(FactorError::Stopped)), "{}", f.method());
        assert!(solution(&f).iter().all(|v| v.is_nan()), "{}", f.method());
        f.refactor(Given::Csr(&a), &mut ()).unwrap();
        assert_eq!(solution(&f), before, "{}", f.method());
    }
}
