//! What every preconditioner has to do, whatever its type: seen as a map z ← M⁻¹r.

use bt_formats::{RealScalar, Scalar, norm2, zero};

use super::{ensure, in_pools, must_panic, same_bits, unit_roundoff};
use crate::alloc::{count_allocations, is_counting};
use crate::random_vector;

/// What a preconditioner says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// M is linear and the same at every application.
    Linear,
    /// And Hermitian positive definite.
    Definite,
}

/// Checks z ← M⁻¹r for vectors of length n:
///
/// 1. z is written without being read; the same r gives the same bits, in rayon pools of 1, 2 and 3 threads too;
/// 2. M⁻¹0 = 0, and M⁻¹(2x − y/4) is the combination of M⁻¹x and M⁻¹y to 10⁴·(n + 1)·u;
/// 3. where claimed, (M⁻¹x)ᴴy = xᴴ(M⁻¹y) to the same accuracy, and xᴴM⁻¹x > 0;
/// 4. an application allocates nothing (the program must use [`crate::alloc::CountingAllocator`]);
/// 5. vectors of a wrong length panic.
///
/// # Errors
/// The first breach.
pub fn preconditioner_contract<T: Scalar>(
    n: usize,
    claim: Claim,
    apply: &mut (dyn FnMut(&[T], &mut [T]) + Send),
) -> Result<(), String> {
    preconditioner_contract_to(unit_roundoff::<T>(), n, claim, apply)
}

/// [`preconditioner_contract`] of a preconditioner that works to another unit roundoff than that of its vectors.
///
/// # Errors
/// The first breach.
pub fn preconditioner_contract_to<T: Scalar>(
    roundoff: f64,
    n: usize,
    claim: Claim,
    apply: &mut (dyn FnMut(&[T], &mut [T]) + Send),
) -> Result<(), String> {
    let (x, y) = (random_vector::<T>(n, 11), random_vector::<T>(n, 12));
    let nan = T::rounded(f64::NAN, f64::NAN);
    let mut solve = |r: &[T]| {
        let mut z = vec![nan; n];
        apply(r, &mut z);
        z
    };
    let mx = solve(&x);
    ensure(mx.iter().all(|v| v.is_finite()), || "z has entries that are not finite, or were not written".into())?;
    in_pools(|threads| ensure(same_bits(&mx, &solve(&x)), || format!("other bits with {threads} threads")))?;
    let my = solve(&y);

    ensure(solve(&vec![zero(); n]).iter().all(|v| *v == zero()), || "M⁻¹0 is not 0".into())?;
    let tolerance = 1e4 * (n + 1) as f64 * roundoff;
    let combine = |x: &[T], y: &[T]| -> Vec<T> {
        x.iter().zip(y).map(|(&x, &y)| T::rounded(2.0, 0.0) * x - T::rounded(0.25, 0.0) * y).collect()
    };
    let (sum, expected) = (solve(&combine(&x, &y)), combine(&mx, &my));
    let off: Vec<T> = sum.iter().zip(&expected).map(|(&a, &b)| a - b).collect();
    let scale = norm2(&mx) + norm2(&my);
    ensure(norm2(&off) <= tolerance * scale, || format!("not linear: {:.1e}", norm2(&off) / scale))?;

    if claim == Claim::Definite {
        let dot = |x: &[T], y: &[T]| -> T { x.iter().zip(y).map(|(&x, &y)| Scalar::conj(x) * y).sum() };
        let (left, right) = (dot(&mx, &y), dot(&x, &my));
        let size = norm2(&mx) * norm2(&y) + norm2(&x) * norm2(&my);
        ensure(Scalar::abs(left - right).to_f64() <= tolerance * size, || {
            format!("claimed Hermitian, but (M⁻¹x)ᴴy = {left}, xᴴM⁻¹y = {right}")
        })?;
        for (x, mx) in [(&x, &mx), (&y, &my)] {
            let energy = dot(x, mx).re().to_f64();
            ensure(n == 0 || energy > 0.0, || format!("claimed definite, but xᴴM⁻¹x = {energy:e}"))?;
        }
    }

    ensure(is_counting(), || "the program does not count allocations".into())?;
    let mut z = vec![nan; n];
    let count = count_allocations(|| apply(&x, &mut z)).1;
    ensure(count == 0, || format!("an application makes {count} allocations"))?;
    let long = vec![zero::<T>(); n + 1];
    must_panic("r and z of n + 1 entries", || apply(&long, &mut long.clone()))?;
    must_panic("r of n + 1 entries", || apply(&long, &mut vec![zero(); n]))
}
