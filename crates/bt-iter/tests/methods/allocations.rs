//! An iteration of HBISA allocates nothing: a hundred cost as many allocations as ten.

use bt_formats::{BlockTridiagonal, HybridLayout, Outcome, StopCriterion};
use bt_iter::{Hbisa, Relaxation, Sweep};
use bt_queue::CloudCase;
use bt_testkit::alloc::count_allocations;

#[test]
fn iterations_allocate_nothing() {
    let case = CloudCase::by_name("Cloud16-100").unwrap();
    let a = BlockTridiagonal::from_csr(&case.matrix().unwrap(), case.partition().unwrap(), HybridLayout::default())
        .unwrap();
    let b = vec![1.0; 1600];
    for sweep in [
        Sweep::Jacobi,
        Sweep::GaussSeidel,
        Sweep::Symmetric,
        Sweep::RedBlack,
        Sweep::Sor(Relaxation::Tuned),
        Sweep::Chebyshev,
    ] {
        let mut solver = Hbisa::new(&a, sweep).unwrap();
        // One block, the rows of a colour, or these and two vectors of them.
        let besides = match sweep {
            Sweep::Jacobi => 0,
            Sweep::GaussSeidel | Sweep::Symmetric => 16,
            Sweep::RedBlack | Sweep::Sor(_) => 800,
            Sweep::Chebyshev => 3 * 800,
        };
        assert_eq!(solver.bytes(), 8 * (4 * 1600 + besides));
        let mut x = vec![0.0; 1600];
        let mut allocations = |max_iters| {
            let stop = StopCriterion { rtol: 0.0, max_iters, ..StopCriterion::default() };
            x.fill(0.0);
            let (report, count) = count_allocations(|| solver.solve(&b, &mut x, &stop, &mut ()));
            assert_eq!((report.outcome, report.iterations), (Outcome::IterationLimit, max_iters));
            count
        };
        assert_eq!(allocations(40), allocations(70), "{sweep:?}");
    }
}
