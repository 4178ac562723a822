//! The operator suite accepts an honest matrix and rejects one that breaks any single rule.

use bt_formats::{Csr, LinearOperator, Matrix, Op, Par, Scalar, c32, c64, one, zero};
use bt_testkit::contract::operator_contract;
use bt_testkit::{catalogue, strategies};
use faer::{MatMut, MatRef};
use proptest::prelude::*;

/// One broken rule.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    TransposeIsIdentity,
    AdjointWithoutConjugate,
    ReadsYWithBetaZero,
    ForgetsAlpha,
    ForgetsBeta,
    LosesAnEntry,
    LosesDigits,
    OtherBitsInParallel,
    OtherBitsByThreads,
    OnlyFirstColumn,
    WritesNextColumn,
    ApplyDiffers,
    EntriesOutOfOrder,
    EntryOutOfRange,
    WrongNnz,
    NoBytes,
    WrongNorm,
    AbsForgetsY,
    AcceptsWrongLengths,
}

const FAULTS: [Fault; 19] = [
    Fault::TransposeIsIdentity,
    Fault::AdjointWithoutConjugate,
    Fault::ReadsYWithBetaZero,
    Fault::ForgetsAlpha,
    Fault::ForgetsBeta,
    Fault::LosesAnEntry,
    Fault::LosesDigits,
    Fault::OtherBitsInParallel,
    Fault::OtherBitsByThreads,
    Fault::OnlyFirstColumn,
    Fault::WritesNextColumn,
    Fault::ApplyDiffers,
    Fault::EntriesOutOfOrder,
    Fault::EntryOutOfRange,
    Fault::WrongNnz,
    Fault::NoBytes,
    Fault::WrongNorm,
    Fault::AbsForgetsY,
    Fault::AcceptsWrongLengths,
];

struct Faulty<T> {
    a: Csr<T>,
    fault: Fault,
}

impl<T: Scalar> LinearOperator<T> for Faulty<T> {
    fn nrows(&self) -> usize {
        self.a.nrows()
    }
    fn ncols(&self) -> usize {
        self.a.ncols()
    }
    fn apply(&self, alpha: T, x: &[T], beta: T, y: &mut [T]) {
        let alpha = if self.fault == Fault::ApplyDiffers { -alpha } else { alpha };
        self.apply_op(Op::Identity, alpha, x, beta, y, Par::Seq);
    }
}

impl<T: Scalar> Matrix<T> for Faulty<T> {
    fn nnz(&self) -> usize {
        self.a.nnz() + usize::from(self.fault == Fault::WrongNnz)
    }
    fn bytes(&self) -> usize {
        if self.fault == Fault::NoBytes { 0 } else { self.a.bytes() }
    }
    fn apply_op(&self, op: Op, alpha: T, x: &[T], beta: T, y: &mut [T], par: Par) {
        let fault = self.fault;
        if fault == Fault::AcceptsWrongLengths && x.len() != op.shape(self.nrows(), self.ncols()).1 {
            return;
        }
        let used = match (fault, op) {
            (Fault::TransposeIsIdentity, Op::Transpose) => Op::Identity,
            (Fault::AdjointWithoutConjugate, Op::Adjoint) => Op::Transpose,
            _ => op,
        };
        let alpha = if fault == Fault::ForgetsAlpha { one() } else { alpha };
        let beta = if fault == Fault::ForgetsBeta && beta != zero() { one() } else { beta };
        if fault == Fault::ReadsYWithBetaZero && beta == zero() {
            let old = y.to_vec();
            self.a.apply_op(used, alpha, x, beta, y, par);
            y.iter_mut().zip(old).for_each(|(y, old)| *y += beta * old);
            return;
        }
        self.a.apply_op(used, alpha, x, beta, y, par);
        let nudge = T::from_real(one::<T::Real>() + <T::Real as bt_formats::RealScalar>::EPSILON);
        match fault {
            Fault::LosesAnEntry if op == Op::Identity => y[0] -= alpha * self.a.row(0).1[0] * x[0],
            Fault::LosesDigits => {
                let big = T::rounded(3e5, 0.0) * T::from_real(self.a.norm_max());
                for v in y.iter_mut() {
                    *v = (*v + big) - big;
                }
            }
            Fault::OtherBitsInParallel if par == Par::Rayon => y.iter_mut().for_each(|v| *v *= nudge),
            Fault::OtherBitsByThreads if rayon::current_num_threads() == 3 => y.iter_mut().for_each(|v| *v *= nudge),
            _ => {}
        }
    }
    fn apply_many(&self, op: Op, alpha: T, x: MatRef<'_, T>, beta: T, mut y: MatMut<'_, T>, par: Par) {
        assert_eq!(x.ncols(), y.ncols());
        for j in 0..x.ncols() {
            let from = if self.fault == Fault::OnlyFirstColumn { 0 } else { j };
            let xj: Vec<T> = x.col(from).iter().copied().collect();
            let mut yj: Vec<T> = y.as_ref().col(j).iter().copied().collect();
            self.apply_op(op, alpha, &xj, beta, &mut yj, par);
            if self.fault == Fault::WritesNextColumn && j + 1 < x.ncols() {
                y[(0, j + 1)] += one::<T>();
            }
            for (i, v) in yj.into_iter().enumerate() {
                y[(i, j)] = v;
            }
        }
    }
    fn for_each_entry(&self, visit: &mut dyn FnMut(usize, usize, T)) {
        match self.fault {
            Fault::EntriesOutOfOrder => {
                let mut list = Vec::new();
                self.a.for_each_entry(&mut |i, j, v| list.push((i, j, v)));
                list.into_iter().rev().for_each(|(i, j, v)| visit(i, j, v));
            }
            Fault::EntryOutOfRange => self.a.for_each_entry(&mut |i, j, v| visit(i + 1, j, v)),
            _ => self.a.for_each_entry(visit),
        }
    }
    fn accumulate_abs(&self, op: Op, x: &[T::Real], y: &mut [T::Real]) {
        if self.fault == Fault::AbsForgetsY {
            y.fill(zero());
        }
        self.a.accumulate_abs(op, x, y);
    }
    fn norm_inf(&self) -> T::Real {
        if self.fault == Fault::WrongNorm { self.a.norm_one() } else { self.a.norm_inf() }
    }
}

/// Nonsymmetric, complex where it can be, large enough for chunks of rows to differ.
fn sample<T: Scalar>() -> Csr<T> {
    let n = 200;
    let values = bt_testkit::random_vector::<T>(4 * n, 9);
    let mut coo = bt_formats::Coo::new(n, n).unwrap();
    for i in 0..n {
        for (k, j) in [i, (i + 1) % n, (3 * i + 7) % n, 0].into_iter().enumerate() {
            coo.push(i, j, values[4 * i + k]).unwrap();
        }
    }
    coo.to_csr().unwrap()
}

#[test]
fn an_honest_matrix_passes() {
    fn check<T: Scalar>() {
        operator_contract(&sample::<T>()).unwrap();
        operator_contract(&Faulty { a: sample::<T>(), fault: Fault::None }).unwrap();
        for s in catalogue::<T>().iter().filter(|s| s.a.check_finite().is_ok()) {
            operator_contract(&s.a).unwrap_or_else(|why| panic!("{}: {why}", s.name));
        }
    }
    check::<f32>();
    check::<f64>();
    check::<c32>();
    check::<c64>();
}

#[test]
fn every_fault_is_found() {
    for fault in FAULTS {
        let verdict = operator_contract(&Faulty { a: sample::<c64>(), fault });
        assert!(verdict.is_err(), "{fault:?} was not found");
    }
    // A real matrix is its own conjugate; all other faults show in real arithmetic as well.
    for fault in FAULTS.into_iter().filter(|f| *f != Fault::AdjointWithoutConjugate) {
        assert!(operator_contract(&Faulty { a: sample::<f64>(), fault }).is_err(), "{fault:?} was not found in f64");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rectangular_and_empty_matrices_pass(a in strategies::csr::<c64>(0..=9, 0..=9, 0.4)) {
        operator_contract(&a).map_err(TestCaseError::fail)?;
    }
}
