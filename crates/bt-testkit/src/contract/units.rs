//! What units and the order of the unknowns must not decide.

use bt_formats::{Csr, LinearOperator, Matrix, Op, Outcome, Par, Permutation, RealScalar, Scalar, norm2, one, zero};

use super::{ensure, same_bits};
use crate::random_vector;

/// What a method made of A·x = b.
#[derive(Clone, Debug)]
pub struct Answer<T> {
    /// x.
    pub x: Vec<T>,
    /// Steps of an iteration, or of refinement.
    pub iterations: usize,
    /// How it ended.
    pub outcome: Outcome,
}

/// A method: A and b to an answer, or why there is none.
pub type Solve<'a, T> = dyn FnMut(&Csr<T>, &[T]) -> Result<Answer<T>, String> + 'a;

/// z ← M⁻¹·r.
pub type Apply<T> = Box<dyn FnMut(&[T], &mut [T])>;

/// What makes M from a matrix, or why it cannot.
pub type Make<'a, T> = dyn FnMut(&Csr<T>) -> Result<Apply<T>, String> + 'a;

/// Powers of two that units are changed by; with f32 their squares have to stay in the range.
fn powers<T: Scalar>() -> [i32; 3] {
    if size_of::<T::Real>() == 4 { [0, 20, -20] } else { [0, 60, -60] }
}

/// v·2ᵉ
fn times<T: Scalar>(v: T, exponent: i32) -> T {
    v * T::rounded(2f64.powi(exponent), 0.0)
}

/// D₁·A·D₂, exponents of the powers of two.
fn scaled<T: Scalar>(a: &Csr<T>, rows: impl Fn(usize) -> i32, cols: impl Fn(usize) -> i32) -> Csr<T> {
    let mut out = a.clone();
    for i in 0..a.nrows() {
        let (columns, values) = out.row_mut(i);
        columns.iter().zip(values).for_each(|(&j, v)| *v = times(*v, rows(i) + cols(j as usize)));
    }
    out
}

/// Checks that the units of A and b change nothing but exponents: for α, β among 1, 2^±60 (2^±20 in single precision) the answer to
/// (αA)·x = βb has the outcome and the iterations of that to A·x = b, and its x, times α/β, has the same bits.
///
/// # Errors
/// The first breach, or why `solve` failed.
pub fn method_units_contract<T: Scalar>(a: &Csr<T>, b: &[T], solve: &mut Solve<'_, T>) -> Result<(), String> {
    let plain = solve(a, b)?;
    for alpha in powers::<T>() {
        for beta in powers::<T>() {
            let what = |why: String| format!("A·2^{alpha}, b·2^{beta}: {why}");
            let rhs: Vec<T> = b.iter().map(|&v| times(v, beta)).collect();
            let found = solve(&scaled(a, |_| alpha, |_| 0), &rhs).map_err(what)?;
            ensure(found.outcome == plain.outcome, || {
                what(format!("ends as {:?}, not {:?}", found.outcome, plain.outcome))
            })?;
            ensure(found.iterations == plain.iterations, || {
                what(format!("takes {} iterations, not {}", found.iterations, plain.iterations))
            })?;
            let x: Vec<T> = found.x.iter().map(|&v| times(v, alpha - beta)).collect();
            ensure(same_bits(&x, &plain.x), || what("x has other bits".into()))?;
        }
    }
    Ok(())
}

/// Checks that the twins of A·x = b are solved as well as it: (P·A·Pᵀ)·y = P·b with a random P, whose y is P·x, and Aᴴ·y = b. All
/// have to converge, with a relative residual of at most `tolerance`, and y may differ from P·x by ten times `spread`, relative to
/// ‖x‖₂: the condition number times the tolerance, say.
///
/// # Errors
/// The first breach, or why `solve` failed.
pub fn method_twins_contract<T: Scalar>(
    a: &Csr<T>,
    b: &[T],
    tolerance: f64,
    spread: f64,
    solve: &mut Solve<'_, T>,
) -> Result<(), String> {
    let n = a.nrows();
    let mut check = |what: &str, a: &Csr<T>, b: &[T]| {
        let answer = solve(a, b).map_err(|why| format!("{what}: {why}"))?;
        ensure(answer.outcome == Outcome::Converged, || format!("{what} ends as {:?}", answer.outcome))?;
        let mut r = b.to_vec();
        a.apply_op(Op::Identity, -one::<T>(), &answer.x, one(), &mut r, Par::Seq);
        let residual = norm2(&r) / norm2(b);
        // The evaluation rounds.
        ensure(residual <= 1.001 * tolerance, || format!("{what} has a residual of {residual:.2e}"))?;
        Ok::<_, String>(answer.x)
    };
    let x = check("the system itself", a, b)?;
    let order = shuffled(n);
    let permuted = a.permute(&order, &order);
    let b_permuted: Vec<T> = order.order().iter().map(|&i| b[i as usize]).collect();
    let y = check("the permuted twin", &permuted, &b_permuted)?;
    let off: Vec<T> = y.iter().zip(order.order()).map(|(&y, &i)| y - x[i as usize]).collect();
    let off = norm2(&off) / norm2(&x);
    ensure(off <= 10.0 * spread, || format!("the permuted twin has another answer, by {off:.2e}"))?;
    check("the transposed twin", &adjoint(a), b).map(drop)
}

fn adjoint<T: Scalar>(a: &Csr<T>) -> Csr<T> {
    let mut out = a.transpose();
    out.values_mut().iter_mut().for_each(|v| *v = Scalar::conj(*v));
    out
}

/// A permutation without a pattern.
fn shuffled(n: usize) -> Permutation {
    let keys: Vec<f64> = random_vector(n, 77);
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.sort_by(|&i, &j| keys[i as usize].total_cmp(&keys[j as usize]));
    Permutation::from_order(order).expect("each index once")
}

/// The units that a preconditioner follows: with D₁, D₂ diagonal, of powers of two, M(D₁AD₂)⁻¹ = D₂⁻¹·M(A)⁻¹·D₁⁻¹.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// That of A: D₁ = αI, D₂ = I.
    Whole,
    /// That of A, and of the equations: D₁ any, D₂ = I.
    Rows,
    /// That of A, and of the unknowns where equations follow: D₁ = D₂.
    Symmetric,
    /// Those of all equations and all unknowns.
    Both,
    /// M⁻¹ is the same for every multiple of A: it has no unit.
    None,
}

/// Checks that a preconditioner, made by `make`, follows the units it claims, to the bit, and that of r.
///
/// # Errors
/// The first breach, or why `make` failed.
pub fn preconditioner_units_contract<T: Scalar>(
    a: &Csr<T>,
    units: Units,
    make: &mut Make<'_, T>,
) -> Result<(), String> {
    let n = a.nrows();
    let r = random_vector::<T>(n, 31);
    let mut solve = |a: &Csr<T>, r: &[T]| {
        let mut z = vec![zero(); n];
        make(a)?(r, &mut z);
        Ok::<_, String>(z)
    };
    let plain = solve(a, &r)?;
    let mut check = |what: &str, rows: &dyn Fn(usize) -> i32, cols: &dyn Fn(usize) -> i32, beta: i32| {
        let rhs: Vec<T> = r.iter().enumerate().map(|(i, &v)| times(v, rows(i) + beta)).collect();
        let z = solve(&scaled(a, rows, cols), &rhs).map_err(|why| format!("{what}: {why}"))?;
        let lost = |i: usize| if units == Units::None { rows(i) } else { 0 };
        let back: Vec<T> = z.iter().enumerate().map(|(j, &v)| times(v, cols(j) - beta - lost(j))).collect();
        ensure(same_bits(&back, &plain), || format!("{what}: M⁻¹r has other bits"))
    };
    for alpha in powers::<T>() {
        for beta in powers::<T>() {
            check(&format!("A·2^{alpha}, r·2^{beta}"), &|_| alpha, &|_| 0, beta)?;
        }
    }
    // One unknown in five, one equation in three, in other units.
    let size = powers::<T>()[1] / 2;
    let unit = |every: usize| move |i: usize| if i.is_multiple_of(every) { size } else { 0 };
    if matches!(units, Units::Rows | Units::Both) {
        check("equations in other units", &unit(3), &|_| 0, 0)?;
        check("equations in smaller units", &|i| -unit(3)(i), &|_| 0, 0)?;
    }
    if matches!(units, Units::Symmetric | Units::Both) {
        check("D·A·D", &unit(5), &unit(5), 0)?;
        check("D⁻¹·A·D⁻¹", &|i| -unit(5)(i), &|i| -unit(5)(i), 0)?;
    }
    if units == Units::Both {
        check("unknowns in other units", &|_| 0, &unit(5), 0)?;
        check("unknowns in smaller units", &|_| 0, &|i| -unit(5)(i), 0)?;
    }
    Ok(())
}

/// Checks that a preconditioner of Aᴴ is the adjoint of that of A: (M(A)⁻¹x)ᴴy = xᴴ(M(Aᴴ)⁻¹y), to 10⁴·(n + 1)·u.
///
/// # Errors
/// The first breach, or why `make` failed.
pub fn preconditioner_adjoint_contract<T: Scalar>(a: &Csr<T>, make: &mut Make<'_, T>) -> Result<(), String> {
    let n = a.nrows();
    let (x, y) = (random_vector::<T>(n, 41), random_vector::<T>(n, 42));
    let mut solve = |a: &Csr<T>, r: &[T]| {
        let mut z = vec![zero(); n];
        make(a)?(r, &mut z);
        Ok::<_, String>(z)
    };
    let (mx, my) = (solve(a, &x)?, solve(&adjoint(a), &y)?);
    let dot = |x: &[T], y: &[T]| -> T { x.iter().zip(y).map(|(&x, &y)| Scalar::conj(x) * y).sum() };
    let (left, right) = (dot(&mx, &y), dot(&x, &my));
    let size = norm2(&mx) * norm2(&y) + norm2(&x) * norm2(&my);
    let tolerance = 1e4 * (n + 1) as f64 * super::unit_roundoff::<T>();
    ensure(Scalar::abs(left - right).to_f64() <= tolerance * size, || {
        format!("(M(A)⁻¹x)ᴴy = {left}, but xᴴM(Aᴴ)⁻¹y = {right}")
    })
}
