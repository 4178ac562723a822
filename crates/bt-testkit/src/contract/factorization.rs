//! What every [`Factorization`] has to do.

use std::fmt::Display;

use bt_direct::{Factorization, Given};
use bt_formats::{Matrix, Op, RealScalar, Scalar, c64, certify, zero};
use faer::{Mat, MatMut, MatRef};

use super::{OPS, ensure, in_pools, must_panic, same_bits, unit_roundoff};
use crate::alloc::{count_allocations, is_counting};
use crate::oracle::{self, Oracle};
use crate::{random_vector, x_star};

/// Checks the factors of a nonsingular matrix:
///
/// 1. solves with A, Aᵀ, Aᴴ for 0, 1 and several right-hand sides have a normwise backward error ≤ 30·n·u·growth (growth
///    as the factors state it, at most 1e6); b = 0 gives exactly 0; views with a stride keep what lies between columns;
/// 2. the determinant agrees with the oracle's, and |sign| = 1;
/// 3. `rcond` is within a factor 10 of 1/(‖A‖₁‖A⁻¹‖₁);
/// 4. a solve allocates nothing (the program must use [`crate::alloc::CountingAllocator`]);
/// 5. concurrent solves, and solves in rayon pools of 1, 2 and 3 threads, give the same bits;
/// 6. the statistics are possible, and a wrong number of rows panics.
///
/// # Errors
/// The first breach.
pub fn factorization_contract<T: Scalar>(f: &dyn Factorization<T>, a: &dyn Matrix<T>) -> Result<(), String> {
    statistics(f, a)?;
    for op in OPS {
        solves(f, a, op).map_err(|why| format!("{op:?}: {why}"))?;
        reproducible(f, a, op).map_err(|why| format!("{op:?}: {why}"))?;
        allocations(f, op).map_err(|why| format!("{op:?}: {why}"))?;
        must_panic(&format!("{op:?}: a right-hand side of n + 1 rows"), || {
            f.solve_op_in_place(op, Mat::zeros(a.nrows() + 1, 1).as_mut());
        })?;
    }
    names_agree(f)?;
    determinant_and_condition(f, a)
}

fn statistics<T: Scalar>(f: &dyn Factorization<T>, a: &dyn Matrix<T>) -> Result<(), String> {
    let n = a.nrows();
    let stats = f.stats();
    ensure(f.n() == n, || format!("n = {}, the matrix has {n} rows", f.n()))?;
    ensure(!f.method().is_empty(), || "the method has no name".into())?;
    let mut sums = vec![0.0; n];
    a.for_each_entry(&mut |_, j, v| sums[j] += v.cast::<c64>().norm());
    let norm = sums.into_iter().fold(0.0, f64::max);
    ensure((stats.norm_one - norm).abs() <= 4.0 * (n + 2) as f64 * unit_roundoff::<T>() * norm, || {
        format!("stats.norm_one = {:e}, ‖A‖₁ = {norm:e}", stats.norm_one)
    })?;
    let possible = stats.nnz >= n
        && stats.bytes >= stats.nnz.min(n) * size_of::<T>()
        && (n == 0 || (stats.min_pivot > 0.0 && stats.min_pivot.is_finite()))
        && stats.flops >= 0.0;
    ensure(possible, || format!("impossible statistics: {stats:?}"))?;
    ensure(stats.growth >= 0.0 && stats.growth <= 1e6, || {
        format!("growth {:e}: not for this contract, such factors need refinement", stats.growth)
    })
}

/// Normwise backward error that the solves may show.
fn tolerance<T: Scalar>(f: &dyn Factorization<T>) -> f64 {
    30.0 * (f.n() + 1) as f64 * unit_roundoff::<T>() * f.stats().growth.max(1.0)
}

fn solves<T: Scalar>(f: &dyn Factorization<T>, a: &dyn Matrix<T>, op: Op) -> Result<(), String> {
    let n = f.n();
    let (pad, mark) = (2, T::rounded(7.0, -7.0));
    for s in [0usize, 1, 2, 3, 4, 9, 16] {
        let mut b = Mat::<T>::zeros(n, s);
        for j in 0..s {
            let x = if j == 0 { x_star(n) } else { random_vector::<T>(n, 100 + j as u64) };
            fill(b.as_mut(), j, &oracle::product(a, op, &x));
        }
        // The solution in a view whose columns lie n + 2 apart.
        let mut whole = Mat::from_fn(n + pad, s, |i, j| if i < n { b[(i, j)] } else { mark });
        f.solve_op_in_place(op, whole.as_mut().subrows_mut(0, n));
        let x = whole.as_ref().subrows(0, n);
        for j in 0..s {
            let error = certify(a, op, x.subcols(j, 1), b.as_ref().subcols(j, 1)).backward_error;
            let bound = tolerance(f);
            ensure(error <= bound, || format!("column {j} of {s}: backward error {error:.1e} > {bound:.1e}"))?;
            ensure((n..n + pad).all(|i| whole[(i, j)] == mark), || {
                format!("the solve writes between the columns of a view with a stride ({s} columns)")
            })?;
        }
    }
    let mut x = vec![zero::<T>(); n];
    f.solve_op_in_place(op, MatMut::from_column_major_slice_mut(&mut x, n, 1));
    ensure(x.iter().all(|v| *v == zero()), || "b = 0 does not give x = 0".into())
}

/// The solves of the trait's other methods.
fn names_agree<T: Scalar>(f: &dyn Factorization<T>) -> Result<(), String> {
    let n = f.n();
    let b = random_vector::<T>(n, 7);
    let solve = |by: &dyn Fn(MatMut<'_, T>)| {
        let mut x = b.clone();
        by(MatMut::from_column_major_slice_mut(&mut x, n, 1));
        x
    };
    let pairs: [(&str, Op, Vec<T>); 4] = [
        ("solve_in_place", Op::Identity, solve(&|x| f.solve_in_place(x))),
        ("solve_transpose_in_place", Op::Transpose, solve(&|x| f.solve_transpose_in_place(x))),
        ("solve_adjoint_in_place", Op::Adjoint, solve(&|x| f.solve_adjoint_in_place(x))),
        ("solve_vec_in_place", Op::Identity, {
            let mut x = b.clone();
            f.solve_vec_in_place(&mut x);
            x
        }),
    ];
    for (name, op, x) in pairs {
        ensure(same_bits(&x, &solve(&|x| f.solve_op_in_place(op, x))), || {
            format!("{name} differs from solve_op_in_place")
        })?;
    }
    Ok(())
}

fn reproducible<T: Scalar>(f: &dyn Factorization<T>, a: &dyn Matrix<T>, op: Op) -> Result<(), String> {
    let (n, s) = (f.n(), 3);
    // Of the size of A, so that solutions neither overflow nor underflow.
    let size = T::from_real(a.norm_max());
    let b = Mat::from_fn(n, s, |i, j| size * oracle_value::<T>(i, j));
    let solve = || {
        let mut x = b.clone();
        f.solve_op_in_place(op, x.as_mut());
        flat(x.as_ref())
    };
    let reference = solve();
    let concurrent = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| (0..4).all(|_| same_bits(&solve(), &reference)))).collect();
        threads.into_iter().all(|t| t.join().unwrap_or(false))
    });
    ensure(concurrent, || "concurrent solves give other bits than a solve alone".into())?;
    in_pools(|threads| {
        ensure(same_bits(&solve(), &reference), || format!("a pool of {threads} threads gives other bits"))
    })
}

fn oracle_value<T: Scalar>(i: usize, j: usize) -> T {
    T::rounded(0.5 + ((5 * i + 3 * j) % 7) as f64 / 7.0, ((i + j) % 3) as f64 / 3.0)
}

fn allocations<T: Scalar>(f: &dyn Factorization<T>, op: Op) -> Result<(), String> {
    ensure(is_counting(), || "allocations are not counted: make CountingAllocator the #[global_allocator]".into())?;
    for s in [1, 5] {
        let mut x = Mat::<T>::zeros(f.n(), s);
        let ((), count) = count_allocations(|| f.solve_op_in_place(op, x.as_mut()));
        ensure(count == 0, || format!("a solve of {s} right-hand sides allocates {count} times"))?;
    }
    Ok(())
}

fn determinant_and_condition<T: Scalar>(f: &dyn Factorization<T>, a: &dyn Matrix<T>) -> Result<(), String> {
    let oracle = Oracle::new(a);
    let condition = oracle.condition();
    let det = f.log_det();
    let (phase, log_abs) = oracle.log_det();
    let sign = det.sign.cast::<c64>();
    let u = unit_roundoff::<T>();
    ensure((sign.norm() - 1.0).abs() <= 8.0 * (f.n() + 1) as f64 * u, || format!("|sign| of {sign} is not 1"))?;
    // det(A + E) / det A = 1 + O(κ‖E‖/‖A‖) for each of n columns.
    let bound = (f.n() + 1) as f64 * tolerance(f) * condition + 1e-12 * log_abs.abs();
    if bound < 0.1 {
        let found = det.log_abs;
        ensure((found - log_abs).abs() <= bound, || format!("log|det| = {found}, the oracle has {log_abs}"))?;
        ensure((sign - phase).norm() <= bound, || format!("sign = {sign}, the oracle has {phase}"))?;
    }
    if condition * u < 1e-2 {
        let ratio = f.rcond() * condition;
        ensure((0.1..=10.0).contains(&ratio), || {
            format!("rcond = {:.2e}, the oracle has {:.2e}", f.rcond(), condition.recip())
        })?;
    }
    Ok(())
}

/// Checks `refactor` between two nonsingular matrices of the same pattern and a singular one:
///
/// 1. refactorisation allocates nothing, keeps the contract and has the bits of a fresh factorization;
/// 2. going back to the first matrix gives the first bits again;
/// 3. after the failure on the singular matrix (an error, no panic) the factors can be made again.
///
/// # Errors
/// The first breach.
pub fn refactor_contract<T: Scalar, A: Matrix<T>, F: Factorization<T>, E: Display>(
    first: &A,
    second: &A,
    singular: Option<&A>,
    make: impl Fn(&A) -> Result<F, E>,
    refactor: impl Fn(&mut F, &A) -> Result<(), E>,
) -> Result<(), String> {
    let must = |what: &str, e: E| format!("{what}: {e}");
    let mut f = make(first).map_err(|e| must("the first factorization", e))?;
    let first_bits = solution(&f);
    ensure(is_counting(), || "allocations are not counted: make CountingAllocator the #[global_allocator]".into())?;
    let (done, count) = count_allocations(|| refactor(&mut f, second));
    done.map_err(|e| must("refactorisation", e))?;
    ensure(count == 0, || format!("refactorisation allocates {count} times"))?;
    factorization_contract(&f, second).map_err(|why| format!("after refactorisation: {why}"))?;
    let fresh = make(second).map_err(|e| must("the second factorization", e))?;
    ensure(same_bits(&solution(&f), &solution(&fresh)), || "refactored and fresh factors differ in bits".into())?;
    if let Some(singular) = singular {
        ensure(refactor(&mut f, singular).is_err(), || "a singular matrix was refactored without an error".into())?;
    }
    refactor(&mut f, first).map_err(|e| must("refactorisation back to the first matrix", e))?;
    ensure(same_bits(&solution(&f), &first_bits), || "back at the first matrix, the bits are not the first ones".into())
}

/// Checks [`Factorization::refactor`] of factors behind `dyn`:
///
/// 1. the second matrix, in each of the forms it is given in, makes `reference` of them, with the same bits;
/// 2. each of `refused` is an error, and leaves the bits there were or factors whose solves are NaN;
/// 3. after the singular matrix, an error too, solves are NaN;
/// 4. from there back to the first matrix, the bits are those of the beginning.
///
/// # Errors
/// The first breach.
pub fn dyn_refactor_contract<T: Scalar>(
    f: &mut dyn Factorization<T>,
    first: Given<'_, T>,
    second: &[Given<'_, T>],
    singular: Option<Given<'_, T>>,
    refused: &[Given<'_, T>],
    reference: &dyn Factorization<T>,
) -> Result<(), String> {
    let (first_bits, expected) = (solution(f), solution(reference));
    for (k, &form) in second.iter().enumerate() {
        f.refactor(form, &mut ()).map_err(|e| format!("form {k} of the second matrix: {e}"))?;
        ensure(same_bits(&solution(f), &expected), || format!("form {k} of the second matrix: other bits"))?;
    }
    for (k, &other) in refused.iter().enumerate() {
        let before = solution(f);
        ensure(f.refactor(other, &mut ()).is_err(), || format!("matrix {k} of those to be refused was taken"))?;
        let after = solution(f);
        ensure(same_bits(&before, &after) || is_void(&after), || format!("refused matrix {k} left other factors"))?;
    }
    if let Some(singular) = singular {
        ensure(f.refactor(singular, &mut ()).is_err(), || "a singular matrix was taken without an error".into())?;
        ensure(is_void(&solution(f)), || "after the singular matrix solves are not NaN".into())?;
    }
    f.refactor(first, &mut ()).map_err(|e| format!("back to the first matrix: {e}"))?;
    ensure(same_bits(&solution(f), &first_bits), || "back at the first matrix, the bits are not the first ones".into())
}

fn is_void<T: Scalar>(x: &[T]) -> bool {
    x.iter().any(|v| v.re().to_f64().is_nan())
}

fn solution<T: Scalar>(f: &(impl Factorization<T> + ?Sized)) -> Vec<T> {
    let mut x = x_star(f.n());
    f.solve_vec_in_place(&mut x);
    x
}

fn fill<T: Scalar>(mut b: MatMut<'_, T>, j: usize, values: &[T]) {
    for (i, &v) in values.iter().enumerate() {
        b[(i, j)] = v;
    }
}

fn flat<T: Scalar>(x: MatRef<'_, T>) -> Vec<T> {
    x.col_iter().flat_map(|c| c.iter().copied()).collect()
}
