//! The factorization suite accepts an honest LU and rejects one that breaks any single rule.

use std::sync::atomic::{AtomicUsize, Ordering};

use bt_direct::{FactorError, FactorStats, Factorization, Given, LogDet};
use bt_formats::{Csr, Monitor, Op, RealScalar, Scalar, c32, c64, one, zero};
use bt_testkit::alloc::CountingAllocator;
use bt_testkit::contract::{dyn_refactor_contract, factorization_contract, refactor_contract};
use bt_testkit::strategies::{square, well_conditioned};
use bt_testkit::{DenseLu, Expect, catalogue};
use faer::MatMut;
use proptest::prelude::*;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// One broken rule.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    TransposeIsIdentity,
    AdjointWithoutConjugate,
    LosesDigits,
    OnlyFirstColumn,
    ZeroIsNotKept,
    MixesColumns,
    Allocates,
    BitsByCalls,
    BitsByThreads,
    AcceptsWrongRows,
    WrongSign,
    WrongDeterminant,
    WrongRcond,
    WrongNorm,
    WrongName,
    KeepsValues,
    TakesAnySize,
    HidesErrors,
    StaysUsable,
    NeverRecovers,
}

const REFACTOR_FAULTS: [Fault; 5] =
    [Fault::KeepsValues, Fault::TakesAnySize, Fault::HidesErrors, Fault::StaysUsable, Fault::NeverRecovers];

const FAULTS: [Fault; 15] = [
    Fault::TransposeIsIdentity,
    Fault::AdjointWithoutConjugate,
    Fault::LosesDigits,
    Fault::OnlyFirstColumn,
    Fault::ZeroIsNotKept,
    Fault::MixesColumns,
    Fault::Allocates,
    Fault::BitsByCalls,
    Fault::BitsByThreads,
    Fault::AcceptsWrongRows,
    Fault::WrongSign,
    Fault::WrongDeterminant,
    Fault::WrongRcond,
    Fault::WrongNorm,
    Fault::WrongName,
];

struct Faulty<T: Scalar> {
    lu: DenseLu<T>,
    fault: Fault,
    calls: AtomicUsize,
    /// Whether a refactorisation has failed.
    failed: bool,
}

impl<T: Scalar> Faulty<T> {
    fn new(a: &Csr<T>, fault: Fault) -> Self {
        Self { lu: DenseLu::new(a).unwrap(), fault, calls: AtomicUsize::new(0), failed: false }
    }
}

impl<T: Scalar> Factorization<T> for Faulty<T> {
    fn n(&self) -> usize {
        self.lu.n()
    }
    fn method(&self) -> &'static str {
        "faulty"
    }
    fn solve_op_in_place(&self, op: Op, mut x: MatMut<'_, T>) {
        let (n, s) = (x.nrows(), x.ncols());
        let nudge = T::from_real(one::<T::Real>() + <T::Real as RealScalar>::EPSILON);
        let scale = |x: &mut MatMut<'_, T>, by: T| (0..s).for_each(|j| (0..n).for_each(|i| x[(i, j)] *= by));
        if self.fault == Fault::AcceptsWrongRows && n != self.n() {
            return;
        }
        let used = match (self.fault, op) {
            (Fault::TransposeIsIdentity, Op::Transpose) => Op::Identity,
            (Fault::AdjointWithoutConjugate, Op::Adjoint) => Op::Transpose,
            _ => op,
        };
        let columns = if self.fault == Fault::OnlyFirstColumn { s.min(1) } else { s };
        self.lu.solve_op_in_place(used, x.as_mut().subcols_mut(0, columns));
        match self.fault {
            Fault::LosesDigits => scale(&mut x, one::<T>() + T::rounded(1e-11, 0.0)),
            Fault::ZeroIsNotKept if s == 1 && x[(0, 0)] == zero() => x[(0, 0)] += T::rounded(1e-300, 0.0),
            Fault::MixesColumns if s > 1 => {
                let first = x[(0, 0)];
                x[(0, 1)] += first;
            }
            Fault::Allocates => drop(std::hint::black_box(vec![zero::<T>(); n])),
            Fault::BitsByCalls if self.calls.fetch_add(1, Ordering::Relaxed) % 2 == 1 => scale(&mut x, nudge),
            Fault::BitsByThreads if rayon::current_num_threads() == 3 => scale(&mut x, nudge),
            _ => {}
        }
    }
    fn solve_transpose_in_place(&self, x: MatMut<'_, T>) {
        let op = if self.fault == Fault::WrongName { Op::Identity } else { Op::Transpose };
        self.solve_op_in_place(op, x);
    }
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<(), FactorError> {
        match self.fault {
            Fault::KeepsValues => Ok(()),
            Fault::TakesAnySize if a.shape().0 != self.n() => Ok(()),
            Fault::HidesErrors => Factorization::refactor(&mut self.lu, a, monitor).or(Ok(())),
            // The factors of a matrix that was not asked for.
            Fault::StaysUsable => {
                let done = Factorization::refactor(&mut self.lu, a, monitor);
                if done.is_err() {
                    let other = catalogue::toeplitz::<T>(self.n(), -1.0, 4.0, -1.0);
                    self.lu = DenseLu::new(&other)?;
                }
                done
            }
            Fault::NeverRecovers if self.failed => Err(FactorError::Stopped),
            _ => {
                let done = Factorization::refactor(&mut self.lu, a, monitor);
                self.failed |= done.is_err();
                done
            }
        }
    }
    fn stats(&self) -> FactorStats {
        let stats = self.lu.stats();
        FactorStats { norm_one: if self.fault == Fault::WrongNorm { 1.01 } else { 1.0 } * stats.norm_one, ..stats }
    }
    fn log_det(&self) -> LogDet<T> {
        let mut det = self.lu.log_det();
        match self.fault {
            Fault::WrongSign => det.negate(),
            Fault::WrongDeterminant => det.log_abs += 1e-6,
            _ => {}
        }
        det
    }
    fn rcond(&self) -> f64 {
        self.lu.rcond() * if self.fault == Fault::WrongRcond { 0.01 } else { 1.0 }
    }
}

/// Nonsymmetric, moderately conditioned, with row exchanges.
fn sample<T: Scalar>() -> Csr<T> {
    let n = 17;
    let values = bt_testkit::random_vector::<T>(n * n, 21);
    Csr::from_dense(faer::Mat::from_fn(n, n, |i, j| values[i * n + j]).as_ref()).unwrap()
}

#[test]
fn an_honest_factorization_passes() {
    fn check<T: Scalar>() {
        factorization_contract(&Faulty::new(&sample::<T>(), Fault::None), &sample::<T>()).unwrap();
        for s in catalogue::<T>() {
            if matches!(s.expect, Expect::Solvable { .. }) {
                let f = DenseLu::new(&s.a).unwrap();
                factorization_contract(&f, &s.a).unwrap_or_else(|why| panic!("{}, {}: {why}", T::KIND, s.name));
            }
        }
    }
    check::<f32>();
    check::<f64>();
    check::<c32>();
    check::<c64>();
}

#[test]
fn every_fault_is_found() {
    let a = sample::<c64>();
    for fault in FAULTS {
        assert!(factorization_contract(&Faulty::new(&a, fault), &a).is_err(), "{fault:?} was not found");
    }
    let a = sample::<f64>();
    for fault in FAULTS.into_iter().filter(|f| *f != Fault::AdjointWithoutConjugate) {
        assert!(factorization_contract(&Faulty::new(&a, fault), &a).is_err(), "{fault:?} was not found in f64");
    }
    // Factors of another matrix.
    let other = catalogue::toeplitz::<f64>(17, -1.0, 2.0, -1.0);
    assert!(factorization_contract(&DenseLu::new(&other).unwrap(), &a).is_err());
}

/// A matrix of the sample's size with other values, and a singular one.
fn family() -> (Csr<f64>, Csr<f64>, Csr<f64>) {
    let first = sample::<f64>();
    let (mut second, mut singular) = (first.clone(), first.clone());
    second.values_mut().iter_mut().for_each(|v| *v = 0.5 - *v * *v);
    singular.values_mut().iter_mut().for_each(|v| *v = 1.0);
    (first, second, singular)
}

#[test]
fn refactorisation() {
    let (first, second, singular) = family();
    type Refactor<'a> = &'a dyn Fn(&mut DenseLu<f64>, &Csr<f64>) -> Result<(), FactorError>;
    let verdict = |refactor: Refactor<'_>| refactor_contract(&first, &second, Some(&singular), DenseLu::new, refactor);
    verdict(&|f, a| f.refactor(a)).unwrap();
    // Faults: keeps the old factors, allocates, hides the singular matrix, other bits than fresh factors.
    assert!(verdict(&|_, _| Ok(())).is_err());
    let allocates = verdict(&|f, a| {
        *f = DenseLu::new(a)?;
        Ok(())
    });
    assert!(allocates.unwrap_err().contains("allocates"));
    let hides = verdict(&|f, a| f.refactor(a).or(Ok(())));
    assert!(hides.unwrap_err().contains("singular"));
    let last = std::cell::Cell::new(0);
    let stale = verdict(&|f, a| {
        last.set(last.get() + 1);
        // The third call, back to the first matrix, does nothing.
        if last.get() == 3 { Ok(()) } else { f.refactor(a) }
    });
    assert!(stale.is_err());
}

#[test]
fn refactorisation_as_dyn() {
    let (first, second, singular) = family();
    let dense = second.to_dense();
    let large = catalogue::toeplitz::<f64>(18, -1.0, 4.0, -1.0);
    let reference = DenseLu::new(&second).unwrap();
    let verdict = |fault| {
        let mut f: Box<dyn Factorization<f64>> = Box::new(Faulty::new(&first, fault));
        let forms = [Given::Csr(&second), Given::Dense(dense.as_ref())];
        let (singular, refused) = (Some(Given::Csr(&singular)), [Given::Csr(&large)]);
        dyn_refactor_contract(&mut f, Given::Csr(&first), &forms, singular, &refused, &reference)
    };
    verdict(Fault::None).unwrap();
    for fault in REFACTOR_FAULTS {
        assert!(verdict(fault).is_err(), "{fault:?} was not found");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_matrices_pass(a in well_conditioned(square::<c64>(1..=10, 0.7), 1e5)) {
        let f = DenseLu::new(&a).map_err(|e| TestCaseError::fail(e.to_string()))?;
        factorization_contract(&f, &a).map_err(TestCaseError::fail)?;
        }
}
