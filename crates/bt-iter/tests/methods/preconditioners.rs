//! Every preconditioner passes the contract in all four scalars, and is the operator that its documentation says.

use bt_direct::spike::Partitions;
use bt_direct::{FactorError, SparseLu, SpikeOptions};
use bt_formats::{
    BlockTridiagonal, Csr, DiagonalKind, HybridLayout, LinearOperator, Outcome, Partition, RealScalar, Scalar,
    StopCriterion, c32, c64, norm2,
};
use bt_iter::{
    BandOrder, BandSpike, BandSpikeOptions, BiCgStab, BlockForm, BlockPreconditioner, Cg, Diagonal, DroppedFill,
    Factored, Gmres, Identity, IlutOptions, Jacobi, Overlap, Preconditioner, PreconditionerKind, Schwarz, Series,
    SsorAi, SsorAiMasked, Triangles, TriangularSolves, ic0, ilu0, iluk, ilut, ssor,
};
use bt_queue::{CloudCase, UnitDisk};
use bt_testkit::contract::{Claim, preconditioner_contract};
use bt_testkit::{csr, random_vector, stencil};
use faer::Mat;

type Made<'a, T> = Result<Box<dyn Preconditioner<T> + 'a>, FactorError>;

fn blocks<T: Scalar>(a: &Csr<T>, sizes: &[usize]) -> BlockTridiagonal<T> {
    let partition = Partition::from_sizes(sizes.iter().copied()).unwrap();
    BlockTridiagonal::from_csr(a, partition, HybridLayout::default()).unwrap()
}

type Local<'f, T> = &'f dyn Fn(&Csr<T>) -> Result<Box<dyn Preconditioner<T>>, FactorError>;

/// Three parts of two lines with an overlap of one line.
fn schwarz<T: Scalar>(a: &Csr<T>, overlap: Overlap, local: Local<'_, T>) -> Made<'static, T> {
    let parts = Partition::from_sizes([12; 3])?;
    Schwarz::new(a, &parts, 1, overlap, local).map(|m| Box::new(m) as _)
}

/// In the given order without matching.
fn band_spike<T: Scalar>(a: &Csr<T>, options: &BandSpikeOptions, partitions: Partitions) -> Made<'static, T> {
    let spike = SpikeOptions { partitions, ..options.spike.clone() };
    let options = BandSpikeOptions { diagonal: Diagonal::Given, order: BandOrder::Given, spike, width: options.width };
    BandSpike::with_options(a, &options).map(|m| Box::new(m) as _)
}

/// The preconditioners of a Hermitian positive definite grid matrix of 6 lines of 6.
fn all<T: Scalar>(a: &Csr<T>) -> Vec<Made<'_, T>> {
    let block = |form| BlockPreconditioner::new(blocks(a, &[6; 6]), form).map(|m| Box::new(m) as _);
    vec![
        Ok(Box::new(Identity::new(a.nrows()))),
        Jacobi::new(a).map(|m| Box::new(m) as _),
        ilu0(a, DroppedFill::Forgotten).map(|m| Box::new(m) as _),
        ilu0(a, DroppedFill::Forgotten).map(|m| Box::new(m.solved_by(TriangularSolves::Sweeps(2))) as _),
        ic0(a, DroppedFill::Forgotten).map(|m| Box::new(m.factors.solved_by(TriangularSolves::Sweeps(1))) as _),
        ssor(a, 1.3).map(|m| Box::new(m.solved_by(TriangularSolves::Sweeps(3))) as _),
        ilu0(a, DroppedFill::ToDiagonal).map(|m| Box::new(m) as _),
        ilut(a, IlutOptions { fill: 4, drop_tolerance: 1e-2 }).map(|m| Box::new(m) as _),
        block(BlockForm::Jacobi),
        block(BlockForm::GaussSeidel),
        block(BlockForm::Symmetric),
        block(BlockForm::RedBlack),
        iluk(a, 2, DroppedFill::Forgotten).map(|m| Box::new(m) as _),
        ic0(a, DroppedFill::Forgotten).map(|m| Box::new(m.factors) as _),
        ic0(a, DroppedFill::ToDiagonal).map(|m| Box::new(m.factors) as _),
        ssor(a, 1.3).map(|m| Box::new(m) as _),
        SsorAi::with_options(a, 1.1, Series::First, Triangles::Stored).map(|m| Box::new(m) as _),
        SsorAi::with_options(a, 1.1, Series::First, Triangles::OfMatrix).map(|m| Box::new(m) as _),
        SsorAi::with_options(a, 1.1, Series::Second, Triangles::Stored).map(|m| Box::new(m) as _),
        SsorAi::with_options(a, 1.1, Series::Second, Triangles::OfMatrix).map(|m| Box::new(m) as _),
        SsorAi::with_options(a, 1.1, Series::IncompletePoisson, Triangles::Stored).map(|m| Box::new(m) as _),
        SsorAiMasked::new(a).map(|m| Box::new(m) as _),
        schwarz(a, Overlap::Added, &|local| Ok(Box::new(ic0(local, DroppedFill::Forgotten)?.factors))),
        schwarz(a, Overlap::Restricted, &|local| Ok(Box::new(ilu0(local, DroppedFill::Forgotten)?))),
        BandSpike::new(a).map(|m| Box::new(m) as _),
        band_spike(a, &BandSpikeOptions::default(), Partitions::Even(3)),
        band_spike(a, &BandSpikeOptions::truncated(), Partitions::Even(3)),
        schwarz(a, Overlap::Restricted, &|local| Ok(Box::new(Factored::new(SparseLu::new(local)?)))),
    ]
}

/// A grid Laplacian with Hermitian imaginary parts in a complex type, its diagonal raised.
fn hermitian<T: Scalar>() -> Csr<T> {
    let real = stencil::<f64>(6, 0.0);
    csr(36, |i, j| {
        let v = real.get(i, j);
        let sign = f64::from(i32::from(j > i) - i32::from(j < i));
        if i == j { T::rounded(v + 0.5, 0.0) } else { T::rounded(v, 0.3 * v * sign) }
    })
}

fn contract<T: Scalar>() {
    let a = hermitian::<T>();
    for made in all(&a) {
        let mut m = made.unwrap();
        let name = m.name();
        assert!(m.n() == 36 && (name == "none" || (m.nnz() >= 36 && m.bytes() >= 36 * size_of::<T>())), "{name}");
        let claim = match m.kind() {
            PreconditionerKind::Spd | PreconditionerKind::Identity => Claim::Definite,
            _ => Claim::Linear,
        };
        let verdict = preconditioner_contract(36, claim, &mut |r, z| m.apply(r, z));
        assert_eq!(verdict, Ok(()), "{name} in {}", T::KIND);
    }
}

#[test]
fn all_keep_the_contract() {
    contract::<f32>();
    contract::<f64>();
    contract::<c32>();
    contract::<c64>();
}

/// M·z = r for the M given.
#[track_caller]
fn assert_is<T: Scalar>(m: &mut dyn Preconditioner<T>, dense: &Mat<T>) {
    let n = m.n();
    let r = random_vector::<T>(n, 5);
    let mut z = vec![T::default(); n];
    m.apply(&r, &mut z);
    let off: Vec<T> = (0..n).map(|i| (0..n).map(|j| dense[(i, j)] * z[j]).sum::<T>() - r[i]).collect();
    assert!(norm2(&off) <= 1e3 * T::Real::EPSILON.to_f64() * norm2(&r), "{}: {:e}", m.name(), norm2(&off));
}

/// The entries (i, j) of A that `keep` holds for.
fn part<T: Scalar>(a: &Csr<T>, keep: impl Fn(usize, usize) -> bool) -> Mat<T> {
    let d = a.to_dense();
    Mat::from_fn(d.nrows(), d.ncols(), |i, j| if keep(i, j) { d[(i, j)] } else { T::default() })
}

#[test]
fn block_forms_are_their_splittings() {
    // Dense blocks of sizes 1 to 4, unsymmetric, with a zero pivot in the second one.
    let sizes = [1usize, 3, 2, 4, 1];
    let p = Partition::from_sizes(sizes).unwrap();
    let a = csr::<c64>(11, |i, j| match p.block_of(i).abs_diff(p.block_of(j)) {
        0 if i == j => c64::new(if i == 1 { 0.0 } else { 6.0 }, 1.0),
        0 | 1 => c64::new(1.0 + ((3 * i + 5 * j) % 7) as f64 / 7.0, ((i + 2 * j) % 3) as f64 / 4.0),
        _ => c64::default(),
    });
    let form = |form| BlockPreconditioner::new(blocks(&a, &sizes), form).unwrap();
    let b = |i: usize| p.block_of(i);
    let d = part(&a, |i, j| b(i) == b(j));
    assert_is(&mut form(BlockForm::Jacobi), &d);
    let (dl, du) = (part(&a, |i, j| b(i) >= b(j)), part(&a, |i, j| b(i) <= b(j)));
    assert_is(&mut form(BlockForm::GaussSeidel), &dl);
    let inverse = faer::linalg::solvers::DenseSolveCore::inverse(&d.partial_piv_lu());
    assert_is(&mut form(BlockForm::Symmetric), &(&dl * &inverse * &du));
    // Odd blocks see the even ones, which come first, as below the diagonal.
    let below = part(&a, |i, j| b(i) == b(j) || b(i) % 2 == 1);
    let above = part(&a, |i, j| b(i) == b(j) || b(i) % 2 == 0);
    assert_is(&mut form(BlockForm::RedBlack), &(&below * &inverse * &above));
}

#[test]
fn block_solvers_follow_the_blocks() {
    // A tridiagonal block that starts with a zero pivot needs interchanges; a singular one is named.
    let zero_pivot = csr(4, |i, j| match i.abs_diff(j) {
        0 => [0.0, 1.0, 2.0, 3.0][i],
        1 => 1.0,
        _ => 0.0,
    });
    let layout = HybridLayout { diagonal: Some(DiagonalKind::Tridiagonal), ..HybridLayout::default() };
    let partition = Partition::uniform(4, 2).unwrap();
    let stored = BlockTridiagonal::from_csr(&zero_pivot, partition, layout).unwrap();
    let mut m = BlockPreconditioner::new(stored, BlockForm::Jacobi).unwrap();
    assert_eq!(m.pivoted_blocks(), 1);
    assert_is(&mut m, &part(&zero_pivot, |i, j| i / 2 == j / 2));
    for (row, col) in [(0, 0), (1, 2)] {
        let infinite = csr(4, |i, j| if (i, j) == (row, col) { f64::INFINITY } else { zero_pivot.get(i, j) });
        let error = BlockPreconditioner::new(blocks(&infinite, &[2, 2]), BlockForm::Jacobi).err().unwrap().to_string();
        assert!(error.contains(&format!("row {row}, column {col}")), "{error}");
    }
    let singular = csr(4, |i, j| if i / 2 == j / 2 { 1.0 } else { 0.0 });
    let error = BlockPreconditioner::new(blocks(&singular, &[2, 2]), BlockForm::Jacobi).err().unwrap().to_string();
    assert!(error.contains("block 0"), "{error}");
}

#[test]
fn counts_with_the_diagonal_blocks_of_the_cloud_matrices() {
    // The specification: at most 40 steps of BiCGSTAB and 60 of GMRES(30), to 1e-7 of b = (1, …, 1).
    for name in ["Cloud16-100", "Cloud32-100", "Cloud64-100"] {
        let case = CloudCase::by_name(name).unwrap();
        let a = case.matrix().unwrap();
        let n = a.nrows();
        let stop = StopCriterion { rtol: 1e-7, ..StopCriterion::default() };
        let mut counts = Vec::new();
        for form in [BlockForm::Jacobi, BlockForm::GaussSeidel, BlockForm::RedBlack] {
            let hybrid = BlockTridiagonal::from_csr(&a, case.partition().unwrap(), HybridLayout::default()).unwrap();
            let mut m = BlockPreconditioner::new(hybrid, form).unwrap();
            let (b, mut x, mut y) = (vec![1.0; n], vec![0.0; n], vec![0.0; n]);
            let bicgstab = BiCgStab::new(n).solve(&a, &mut m, &b, &mut x, &stop, &mut ()).unwrap();
            let gmres = Gmres::new(n, 30).solve(&a, &mut m, &b, &mut y, &stop, &mut ()).unwrap();
            assert_eq!((bicgstab.outcome, gmres.outcome), (Outcome::Converged, Outcome::Converged), "{name}");
            assert!(bicgstab.iterations <= 40 && gmres.iterations <= 60, "{name}: {form:?}");
            counts.push(gmres.iterations);
        }
        assert!(counts[1] < counts[0] && counts[2] < counts[0], "{name}: {counts:?}");
    }
}

/// z = P·r for the P = M⁻¹ given.
#[track_caller]
fn assert_inverse_is<T: Scalar>(m: &mut dyn Preconditioner<T>, dense: &Mat<T>) {
    let n = m.n();
    let r = random_vector::<T>(n, 6);
    let mut z = vec![T::default(); n];
    m.apply(&r, &mut z);
    let off: Vec<T> = (0..n).map(|i| (0..n).map(|j| dense[(i, j)] * r[j]).sum::<T>() - z[i]).collect();
    assert!(norm2(&off) <= 1e3 * T::Real::EPSILON.to_f64() * norm2(&z), "{}: {:e}", m.name(), norm2(&off));
}

#[test]
fn ssor_and_its_approximate_inverses_are_their_formulas() {
    let a = hermitian::<c64>();
    let omega = 1.2;
    let real = |v: f64| c64::new(v, 0.0);
    let (l, u) = (part(&a, |i, j| i > j), part(&a, |i, j| i < j));
    let diagonal = |f: &dyn Fn(f64) -> f64| {
        Mat::from_fn(36, 36, |i, j| if i == j { real(f(a.get(i, i).re / omega)) } else { c64::default() })
    };
    let (d, inverse) = (diagonal(&|d| d), diagonal(&|d| 1.0 / d));
    let m = (&d + &l) * &inverse * (&d + &u) * faer::Scale(real(1.0 / (2.0 - omega)));
    assert_is(&mut ssor(&a, omega).unwrap(), &m);
    // K̄ = √(2−ω)·D̄^(−1/2)·(I − L·D̄⁻¹ (+ (L·D̄⁻¹)²))
    let (identity, n) = (Mat::<c64>::identity(36, 36), &l * &inverse);
    let root = diagonal(&|d| ((2.0 - omega) / d).sqrt());
    let (first, second) = (&root * (&identity - &n), &root * (&identity - &n + &n * &n));
    let ip =
        (&identity - &n * faer::Scale(real(1.0 / omega))) * (&identity - n.adjoint() * faer::Scale(real(1.0 / omega)));
    let product = first.adjoint() * &first;
    for triangles in [Triangles::Stored, Triangles::OfMatrix] {
        let new = |series| SsorAi::with_options(&a, omega, series, triangles).unwrap();
        assert_inverse_is(&mut new(Series::First), &product);
        assert_inverse_is(&mut new(Series::Second), &(second.adjoint() * &second));
        assert_inverse_is(&mut new(Series::IncompletePoisson), &ip);
    }
    let on_pattern =
        Mat::from_fn(36, 36, |i, j| if a.get(i, j) == c64::default() { c64::default() } else { product[(i, j)] });
    assert_inverse_is(&mut SsorAiMasked::with_options(&a, omega).unwrap(), &on_pattern);
}

#[test]
fn half_of_a_matrix_that_is_not_hermitian_is_refused() {
    let wind = stencil::<f64>(4, 0.1);
    for error in [SsorAi::new(&wind).err(), SsorAiMasked::new(&wind).err(), ic0(&wind, DroppedFill::Forgotten).err()] {
        let error = error.unwrap().to_string();
        assert!(error.contains("Hermitian") && error.contains("a(0, 1)"), "{error}");
    }
    let negative = csr(3, |i, j| if i == j { [1.0, -1.0, 1.0][i] } else { 0.0 });
    let error = SsorAi::new(&negative).err().unwrap().to_string();
    assert!(error.contains("row 1"), "{error}");
    let grid = stencil::<f64>(4, 0.0);
    assert!(ssor(&grid, 2.0).is_err() && SsorAiMasked::with_options(&grid, f64::NAN).is_err());
}

#[test]
fn a_masked_inverse_that_is_not_definite_is_found_out() {
    // The specification: indefinite from ω = 1.3 on for the 20 × 20 Laplacian.
    let grid = stencil::<f64>(20, 0.0);
    assert!(SsorAiMasked::with_options(&grid, 1.1).is_ok());
    let error = SsorAiMasked::with_options(&grid, 1.3).unwrap_err().to_string();
    assert!(error.contains("not positive definite") && error.contains("1.3"), "{error}");
}

#[test]
fn incomplete_cholesky_meets_breakdowns_with_a_shift() {
    // Kershaw's matrix, J. Comput. Phys. 26 (1978): definite, but its incomplete factorization is not.
    let kershaw = csr(4, |i: usize, j| match i.abs_diff(j) {
        0 => 3.0,
        1 => -2.0,
        3 => 2.0,
        _ => 0.0,
    });
    let mut m = ic0(&kershaw, DroppedFill::Forgotten).unwrap();
    assert!(m.breakdowns >= 1 && m.shift > 0.0 && m.factors.kind() == PreconditionerKind::Spd);
    assert_eq!(preconditioner_contract(4, Claim::Definite, &mut |r, z| m.factors.apply(r, z)), Ok(()));
    let mut x = vec![0.0; 4];
    let stop = StopCriterion::default();
    let report = Cg::new(4).solve(&kershaw, &mut m.factors, &[1.0; 4], &mut x, &stop, &mut ()).unwrap();
    assert_eq!(report.outcome, Outcome::Converged);
    // An M-matrix has none, and the factors are those of ILU(0).
    let grid = stencil::<f64>(8, 0.0);
    let mut exact = ic0(&grid, DroppedFill::Forgotten).unwrap();
    assert_eq!((exact.breakdowns, exact.shift), (0, 0.0));
    let r = random_vector::<f64>(64, 1);
    let (mut y, mut z) = (vec![0.0; 64], vec![0.0; 64]);
    exact.factors.apply(&r, &mut y);
    ilu0(&grid, DroppedFill::Forgotten).unwrap().apply(&r, &mut z);
    assert_eq!(y, z);
}

#[test]
fn more_levels_of_fill_take_fewer_steps() {
    let a = stencil::<f64>(24, 0.3);
    let n = 576;
    let mut last = usize::MAX;
    for level in 0..4 {
        let mut m = iluk(&a, level, DroppedFill::Forgotten).unwrap();
        let mut x = vec![0.0; n];
        let report = Gmres::new(n, 60).solve(&a, &mut m, &vec![1.0; n], &mut x, &StopCriterion::default(), &mut ());
        let report = report.unwrap();
        assert!(report.outcome == Outcome::Converged && report.iterations < last, "level {level}");
        last = report.iterations;
    }
    // All fill: M = A.
    let small = stencil::<f64>(5, 0.3);
    assert_is(&mut iluk(&small, 25, DroppedFill::Forgotten).unwrap(), &small.to_dense());
}

#[test]
fn counts_on_the_disk() {
    // The specification: ‖r‖/‖r₀‖ < 1e-6, CG and PCG(SSOR-AI masked, ω = 1.1), ±3 %.
    for (n, plain, masked) in [(1105, 96, 50), (8047, 247, 136)] {
        let disk = UnitDisk::new(n).unwrap();
        let count = |m: &mut dyn Preconditioner<f64>| {
            let stop = StopCriterion { rtol: 1e-6, ..StopCriterion::default() };
            let mut x = vec![0.0; n];
            let report = Cg::new(n).solve(disk.matrix(), m, disk.load(), &mut x, &stop, &mut ()).unwrap();
            assert_eq!(report.outcome, Outcome::Converged, "{}", m.name());
            report.iterations as f64
        };
        let within = |found: f64, expected: i32| (found / f64::from(expected) - 1.0).abs() <= 0.03;
        let found = count(&mut Identity::new(n));
        assert!(within(found, plain), "n = {n}: CG {found}");
        let found = count(&mut SsorAiMasked::with_options(disk.matrix(), 1.1).unwrap());
        assert!(within(found, masked), "n = {n}: masked {found}");
        // The whole product does no worse than half of CG, order 2 better than order 1.
        let ai = |series| SsorAi::with_options(disk.matrix(), 1.1, series, Triangles::Stored).unwrap();
        let (first, second) = (count(&mut ai(Series::First)), count(&mut ai(Series::Second)));
        assert!(second < first && first < 0.6 * f64::from(plain), "n = {n}: {first} {second}");
    }
}

#[test]
fn schwarz_is_its_sum_over_subdomains() {
    let a = stencil::<f64>(6, 0.4);
    let exact: Local<'_, f64> = &|local| Ok(Box::new(Factored::new(SparseLu::new(local)?)));
    for overlap in [Overlap::Added, Overlap::Restricted] {
        let mut dense = Mat::<f64>::zeros(36, 36);
        // Two lines each, and one more on every inner side.
        for (part, rows) in [(0..12, 0..18), (12..24, 6..30), (24..36, 18..36)] {
            let local = Mat::from_fn(rows.len(), rows.len(), |i, j| a.get(rows.start + i, rows.start + j));
            let inverse = faer::linalg::solvers::DenseSolveCore::inverse(&local.partial_piv_lu());
            for i in rows.clone().filter(|i| overlap == Overlap::Added || part.contains(i)) {
                for j in rows.clone() {
                    dense[(i, j)] += inverse[(i - rows.start, j - rows.start)];
                }
            }
        }
        assert_inverse_is(&mut *schwarz(&a, overlap, exact).unwrap(), &dense);
    }
    // No overlap: block Jacobi. More overlap: fewer steps.
    let a = stencil::<f64>(20, 0.2);
    let parts = Partition::uniform(400, 100).unwrap();
    let count = |layers| {
        let mut m = Schwarz::new(&a, &parts, layers, Overlap::Restricted, exact).unwrap();
        let mut x = vec![0.0; 400];
        let report = Gmres::new(400, 60).solve(&a, &mut m, &[1.0; 400], &mut x, &StopCriterion::default(), &mut ());
        assert!(layers > 0 || m.min_max_rows() == (100, 100));
        report.unwrap().iterations
    };
    let counts = [0, 1, 3].map(count);
    assert!(counts[2] < counts[1] && counts[1] < counts[0], "{counts:?}");
    assert!(Schwarz::new(&a, &Partition::uniform(399, 3).unwrap(), 1, Overlap::Added, exact).is_err());
}
