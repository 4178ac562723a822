//! Methods of one rank beside those of one process: the same bits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{distance, scattered, succeed, vector, wind};
use bt_direct::{BandLu, BlockLu, Factorization};
use bt_formats::{Band, BlockTridiagonal, Csr, LinearOperator, Partition, c64, one};
use bt_iter::{ArmsOptions, IlutOptions, Overlap, Preconditioner, PreconditionerKind};
use bt_parallel::{
    DistributedCsr, DistributedPreconditioner, Division, Lines, LocalSolver, Number, Schur, SchurOptions, Schwarz,
    SelfComm, Spike, SpikeOptions,
};
use faer::MatMut;

const LOCAL: [LocalSolver; 5] = [
    LocalSolver::Ilu0,
    LocalSolver::IluK { level: 1 },
    LocalSolver::Ilut(IlutOptions { fill: 10, drop_tolerance: 1e-3 }),
    LocalSolver::SparseLu,
    LocalSolver::SparseQr,
];

fn alone<T: Number>(a: &Csr<T>) -> DistributedCsr<'static, T, SelfComm> {
    DistributedCsr::from_replicated(&SelfComm, a, &Division::contiguous(a.nrows(), 1)).unwrap()
}

fn global_preconditioners<T: Number>(a: &Csr<T>) {
    let (r, d) = (vector::<T>(a.nrows(), 4), alone(a));
    let arms = ArmsOptions { last_size: 10, ..ArmsOptions::default() };
    for solver in LOCAL.into_iter().chain([LocalSolver::Arms(arms)]) {
        let mut expected = vec![T::default(); a.nrows()];
        solver.of(a).unwrap().apply(&r, &mut expected);
        let check = |m: &mut dyn DistributedPreconditioner<T>, what: &str| {
            let mut z = vec![T::default(); r.len()];
            m.apply(&r, &mut z).unwrap();
            assert!(z == expected, "{what}, {solver:?}");
        };
        for (layers, overlap) in [(0, Overlap::Added), (1, Overlap::Added), (2, Overlap::Restricted)] {
            check(&mut Schwarz::new(&d, layers, overlap, |local| solver.of(local)).unwrap(), "schwarz");
        }
        check(&mut Schur::new(&d, |local| solver.of(local)).unwrap(), "schur");
    }
}

#[test]
fn global_preconditioners_are_their_local_solver() {
    global_preconditioners(&wind::<f64>(7));
    global_preconditioners(&scattered::<c64>(26));
}

/// A local solver that counts its applications.
struct Counted<T: Number>(Box<dyn Preconditioner<T>>, Arc<AtomicUsize>);

impl<T: Number> Preconditioner<T> for Counted<T> {
    fn n(&self) -> usize {
        self.0.n()
    }
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn kind(&self) -> PreconditionerKind {
        self.0.kind()
    }
    fn apply(&mut self, r: &[T], z: &mut [T]) {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.apply(r, z);
    }
    fn nnz(&self) -> usize {
        self.0.nnz()
    }
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// Of as many as the header says: one where there is no interface; with k inner steps k + 4 with B and k + 1 with A₀.
#[test]
fn solves_of_the_schur_complement() {
    let a = wind::<f64>(8);
    for (p, expected) in [(1, 1), (3, 2 * 4 + 5)] {
        succeed(p, |comm| {
            let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(64, p))?;
            let count = Arc::new(AtomicUsize::new(0));
            let mut m = Schur::with_options(&d, SchurOptions { inner_steps: 4, inner_rtol: 0.0 }, |local| {
                Ok(Box::new(Counted(LocalSolver::Ilu0.of(local)?, Arc::clone(&count))))
            })?;
            let mut z = vec![0.0; d.rows().own().len()];
            m.apply(&d.own_entries(&vector(64, 1)), &mut z)?;
            assert_eq!(count.load(Ordering::Relaxed), expected, "{p} ranks");
            Ok(())
        });
    }
}

/// x and one step of refinement by the rows of A.
fn refined<T: Number>(a: &Csr<T>, factors: &dyn Factorization<T>, b: &[T]) -> Vec<T> {
    let mut x = b.to_vec();
    factors.solve_vec_in_place(&mut x);
    let mut r = b.to_vec();
    a.apply(-one::<T>(), &x, one(), &mut r);
    factors.solve_vec_in_place(&mut r);
    x.iter_mut().zip(r).for_each(|(x, r)| *x += r);
    x
}

fn spike<T: Number>(a: &Csr<T>, blocks: &Partition) {
    let (n, b, d) = (a.nrows(), vector::<T>(a.nrows(), 1), alone(a));
    let band = BandLu::from_band(Band::from_csr(a).unwrap()).unwrap();
    let parts = |a: &Csr<T>| BlockTridiagonal::from_csr(a, blocks.clone(), BlockLu::<T>::layout(blocks));
    let by_blocks = BlockLu::new(&parts(a).unwrap()).unwrap();
    let made = |a: &Csr<T>| -> bt_direct::Result<Box<dyn Factorization<T>>> { Ok(Box::new(BlockLu::new(&parts(a)?)?)) };
    for refinements in [0, 1] {
        let options = SpikeOptions { refinements, ..SpikeOptions::default() };
        let found = [Spike::with_options(&d, options).unwrap(), Spike::with_factors(&d, options, made).unwrap()];
        for (spike, factors) in found.iter().zip([&band as &dyn Factorization<T>, &by_blocks]) {
            let mut x = b.clone();
            spike.solve_in_place(MatMut::from_column_major_slice_mut(&mut x, n, 1)).unwrap();
            let mut expected = b.clone();
            factors.solve_vec_in_place(&mut expected);
            if refinements == 1 {
                expected = refined(a, factors, &b);
            }
            assert!(x == expected, "{}, {refinements} refinements", factors.method());
        }
    }
}

#[test]
fn spike_is_its_factors() {
    spike(&wind::<f64>(6), &Partition::uniform(36, 6).unwrap());
    spike(&bt_testkit::stencil::<c64>(5, 0.2), &Partition::uniform(25, 5).unwrap());
}

/// Not the bits of the Thomas algorithm: the rows between the first and the last are eliminated towards both, also by one rank. The same answer to
/// rounding.
#[test]
fn lines_are_those_of_thomas_to_rounding() {
    let n = 40;
    let diagonals = [1, 2, 3].map(|seed| vector::<f64>(n, seed));
    let own: Vec<f64> = diagonals[1].iter().map(|v| v + 4.0).collect();
    let lines = Lines::new(&SelfComm, 1, &diagonals[0], &own, &diagonals[2]).unwrap();
    let mut x = vector::<f64>(n, 4);
    let (mut c, mut y) = (vec![0.0; n], x.clone());
    for i in 0..n {
        let [a, before] = if i > 0 { [diagonals[0][i], c[i - 1]] } else { [0.0; 2] };
        let pivot = own[i] - a * before;
        c[i] = diagonals[2][i] / pivot;
        y[i] = (y[i] - if i > 0 { a * y[i - 1] } else { 0.0 }) / pivot;
    }
    for i in (0..n - 1).rev() {
        y[i] -= c[i] * y[i + 1];
    }
    lines.solve_in_place(&mut x).unwrap();
    assert!(distance(&x, &y) <= 4.0 * f64::EPSILON, "{:e}", distance(&x, &y));
}
