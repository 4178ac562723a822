//! Every preconditioner passes the contract in all four scalars, and is the operator that its documentation says.

use bt_direct::FactorError;
use bt_formats::{
    BlockTridiagonal, Csr, DiagonalKind, HybridLayout, LinearOperator, Outcome, Partition, RealScalar, Scalar,
    StopCriterion, c32, c64, norm2,
};
use bt_iter::{
    BiCgStab, BlockForm, BlockPreconditioner, DroppedFill, Gmres, Identity, IlutOptions, Jacobi, Preconditioner,
    PreconditionerKind, ilu0, ilut,
};
use bt_queue::CloudCase;
use bt_testkit::alloc::CountingAllocator;
use bt_testkit::contract::{Claim, preconditioner_contract};
use bt_testkit::{csr, random_vector, stencil};
use faer::Mat;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

type Made<T> = Result<Box<dyn Preconditioner<T>>, FactorError>;

fn blocks<T: Scalar>(a: &Csr<T>, sizes: &[usize]) -> BlockTridiagonal<T> {
    let partition = Partition::from_sizes(sizes.iter().copied()).unwrap();
    BlockTridiagonal::from_csr(a, partition, HybridLayout::default()).unwrap()
}

/// The preconditioners of a Hermitian positive definite grid matrix of 6 lines of 6.
fn all<T: Scalar>(a: &Csr<T>) -> Vec<Made<T>> {
    let block = |form| BlockPreconditioner::new(blocks(a, &[6; 6]), form).map(|m| Box::new(m) as _);
    vec![
        Ok(Box::new(Identity::new(a.nrows()))),
        Jacobi::new(a).map(|m| Box::new(m) as _),
        ilu0(a, DroppedFill::Forgotten).map(|m| Box::new(m) as _),
        ilu0(a, DroppedFill::ToDiagonal).map(|m| Box::new(m) as _),
        ilut(a, IlutOptions { fill: 4, drop_tolerance: 1e-2 }).map(|m| Box::new(m) as _),
        block(BlockForm::Jacobi),
        block(BlockForm::GaussSeidel),
        block(BlockForm::Symmetric),
        block(BlockForm::RedBlack),
    ]
}

/// A grid Laplacian with Hermitian imaginary parts in a complex type, its diagonal raised.
fn hermitian<T: Scalar>() -> Csr<T> {
    let real = stencil::<f64>(6, 0.0);
    csr(36, |i, j| {
        let v = real.get(i, j);
        let sign = f64::from(i32::from(j > i) - i32::from(j < i));
        if i == j { T::from_parts(v + 0.5, 0.0) } else { T::from_parts(v, 0.3 * v * sign) }
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
