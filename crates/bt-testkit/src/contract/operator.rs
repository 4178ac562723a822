//! What every [`Matrix`] has to do.

use bt_formats::{Matrix, Op, Par, RealScalar, Scalar, c64, one, zero};
use faer::Mat;

use super::{OPS, ensure, in_pools, must_panic, same_bits, unit_roundoff};
use crate::random_vector;

/// Checks a matrix against its own entries:
///
/// 1. entries come row by row, columns increasing, in range, as many as `nnz` says;
/// 2. y ← α·op(A)·x + β·y for A, Aᵀ, Aᴴ agrees with the dense product to rounding, for α, β among 0, ±1 and others;
/// 3. β = 0 never reads y; `apply` is `apply_op` of A;
/// 4. ⟨A·x, y⟩ = ⟨x, Aᴴ·y⟩;
/// 5. several vectors are as good as one, and columns beyond them stay untouched;
/// 6. serial and parallel products have the same bits in pools of 1, 2 and 3 threads;
/// 7. norms and |A|·x agree with the entries;
/// 8. wrong lengths panic.
///
/// Kernels that go parallel only above a size need a matrix above it.
///
/// # Errors
/// The first breach.
pub fn operator_contract<T: Scalar>(a: &dyn Matrix<T>) -> Result<(), String> {
    entries(a)?;
    for op in OPS {
        products(a, op).map_err(|why| format!("{op:?}: {why}"))?;
        many_vectors(a, op).map_err(|why| format!("{op:?}, several vectors: {why}"))?;
        reproducible(a, op).map_err(|why| format!("{op:?}: {why}"))?;
        absolute_values(a, op).map_err(|why| format!("{op:?}: {why}"))?;
        lengths(a, op).map_err(|why| format!("{op:?}: {why}"))?;
    }
    adjoint_identity(a)?;
    norms(a)
}

fn entries<T: Scalar>(a: &dyn Matrix<T>) -> Result<(), String> {
    let (mut count, mut last, mut breach) = (0usize, None, None);
    a.for_each_entry(&mut |i, j, _| {
        if i >= a.nrows() || j >= a.ncols() {
            breach.get_or_insert_with(|| format!("entry ({i}, {j}) lies outside {} × {}", a.nrows(), a.ncols()));
        }
        if last.is_some_and(|l| l >= (i, j)) {
            breach.get_or_insert_with(|| format!("entry ({i}, {j}) comes after {last:?}"));
        }
        last = Some((i, j));
        count += 1;
    });
    breach.map_or(Ok(()), Err)?;
    ensure(count == a.nnz(), || format!("nnz says {}, for_each_entry visits {count}", a.nnz()))?;
    let values = count * size_of::<T>();
    // Padding and indices add to the values; no format stores a value in less than its size.
    ensure(a.bytes() >= values, || format!("bytes says {}, less than the {values} of the values", a.bytes()))
}

/// op(A)·x in double precision, |op(A)|·|x|, and the number of terms of each sum.
struct Reference {
    sum: Vec<c64>,
    abs: Vec<f64>,
    terms: Vec<usize>,
}

impl Reference {
    fn new<T: Scalar>(a: &dyn Matrix<T>, op: Op, x: &[T]) -> Self {
        let m = op.shape(a.nrows(), a.ncols()).0;
        let mut r = Self { sum: vec![c64::new(0.0, 0.0); m], abs: vec![0.0; m], terms: vec![0; m] };
        a.for_each_entry(&mut |i, j, v| {
            let (i, j) = if op == Op::Identity { (i, j) } else { (j, i) };
            let v = if op == Op::Adjoint { v.cast::<c64>().conj() } else { v.cast::<c64>() };
            let x = x[j].cast::<c64>();
            r.sum[i] += v * x;
            r.abs[i] += v.norm() * x.norm();
            r.terms[i] += 1;
        });
        r
    }

    /// Whether `y` is α·op(A)·x + β·y₀ but for rounding errors γ·(|α||A||x| + |β||y₀|) in each element.
    fn check<T: Scalar>(&self, alpha: T, beta: T, y0: &[T], y: &[T]) -> Result<(), String> {
        let (alpha, beta) = (alpha.cast::<c64>(), beta.cast::<c64>());
        for (i, y) in y.iter().enumerate() {
            let old = if beta == c64::new(0.0, 0.0) { beta } else { beta * y0[i].cast::<c64>() };
            let expected = alpha * self.sum[i] + old;
            // Complex products round at most √8 times as much as real ones.
            let gamma = 3.0 * (self.terms[i] + 4) as f64 * unit_roundoff::<T>();
            let tiny = <T::Real as RealScalar>::MIN_POSITIVE.to_f64();
            let bound = gamma * (alpha.norm() * self.abs[i] + old.norm()) + tiny;
            let error = (y.cast::<c64>() - expected).norm();
            ensure(error <= bound, || format!("y[{i}] = {y}, expected {expected} to within {bound:.1e}"))?;
        }
        Ok(())
    }
}

fn products<T: Scalar>(a: &dyn Matrix<T>, op: Op) -> Result<(), String> {
    let (m, n) = op.shape(a.nrows(), a.ncols());
    let x = random_vector::<T>(n, 1);
    let y0 = random_vector::<T>(m, 2);
    let reference = Reference::new(a, op, &x);
    let factors = [(1.0, 0.0), (0.0, 0.0), (-1.0, 0.0), (1.0, 1.0), (-1.0, 1.0), (0.0, 1.0), (2.5, -0.75)];
    for (alpha, beta) in factors {
        // A complex type has complex factors too, except for the special values 0 and ±1.
        let [alpha, beta] = [alpha, beta].map(|f: f64| T::rounded(f, if f.fract() == 0.0 { 0.0 } else { 0.5 }));
        let mut y = y0.clone();
        if beta == zero() {
            y.fill(T::rounded(f64::NAN, f64::NAN));
        }
        a.apply_op(op, alpha, &x, beta, &mut y, Par::Seq);
        reference.check(alpha, beta, &y0, &y).map_err(|why| format!("α = {alpha}, β = {beta}: {why}"))?;
        if op == Op::Identity {
            let mut z = y0.clone();
            a.apply(alpha, &x, beta, &mut z);
            ensure(same_bits(&y, &z), || format!("α = {alpha}, β = {beta}: apply differs from apply_op"))?;
        }
    }
    Ok(())
}

fn adjoint_identity<T: Scalar>(a: &dyn Matrix<T>) -> Result<(), String> {
    let x = random_vector::<T>(a.ncols(), 3);
    let y = random_vector::<T>(a.nrows(), 4);
    let mut ax = vec![zero::<T>(); a.nrows()];
    let mut ahy = vec![zero::<T>(); a.ncols()];
    a.apply_op(Op::Identity, one(), &x, zero(), &mut ax, Par::Seq);
    a.apply_op(Op::Adjoint, one(), &y, zero(), &mut ahy, Par::Seq);
    // ⟨u, v⟩ = Σ uᵢ·conj(vᵢ)
    let dot = |u: &[T], v: &[T]| u.iter().zip(v).map(|(u, v)| u.cast::<c64>() * v.cast::<c64>().conj()).sum::<c64>();
    let (left, right) = (dot(&ax, &y), dot(&x, &ahy));
    let mut size = 0.0;
    a.for_each_entry(&mut |i, j, v| size += (v.cast::<c64>() * x[j].cast::<c64>() * y[i].cast::<c64>()).norm());
    let bound = 6.0 * (a.nrows() + a.ncols() + 4) as f64 * unit_roundoff::<T>() * size;
    ensure((left - right).norm() <= bound, || format!("⟨Ax, y⟩ = {left}, ⟨x, Aᴴy⟩ = {right}"))
}

fn many_vectors<T: Scalar>(a: &dyn Matrix<T>, op: Op) -> Result<(), String> {
    let (m, n) = op.shape(a.nrows(), a.ncols());
    // A stride beyond the rows: views into larger matrices are allowed.
    let (pad, mark) = (3, T::rounded(7.0, -7.0));
    let sizes = [0, 1, 2, 3, 5, 8, 17];
    let (x_all, y_all) = (columns::<T>(n + pad, 17, 10), columns::<T>(m + pad, 18, 40));
    let references: Vec<_> = (0..17).map(|j| Reference::new(a, op, &column(&x_all, j)[..n])).collect();
    for s in sizes {
        let (alpha, beta) = (T::rounded(1.5, -0.5), T::rounded(-0.5, 0.25));
        for (beta, par) in [(zero(), Par::Seq), (beta, Par::Seq), (beta, Par::Rayon)] {
            let mut y = y_all.subcols(0, s + 1).to_owned();
            for j in 0..=s {
                for i in m..m + pad {
                    y[(i, j)] = mark;
                }
            }
            let x = x_all.as_ref().submatrix(0, 0, n, s);
            a.apply_many(op, alpha, x, beta, y.as_mut().submatrix_mut(0, 0, m, s), par);
            for j in 0..s {
                let verdict = references[j].check(alpha, beta, &column(&y_all, j)[..m], &column(&y, j)[..m]);
                verdict.map_err(|why| format!("column {j} of {s}, {par:?}: {why}"))?;
                ensure(column(&y, j)[m..].iter().all(|v| *v == mark), || {
                    format!("column {j} of {s} writes beyond its rows")
                })?;
            }
            let beyond = same_bits(&column(&y, s)[..m], &column(&y_all, s)[..m]);
            ensure(beyond, || format!("the column after the {s} of Y is written to"))?;
        }
    }
    Ok(())
}

fn reproducible<T: Scalar>(a: &dyn Matrix<T>, op: Op) -> Result<(), String> {
    let (m, n) = op.shape(a.nrows(), a.ncols());
    let s = 3;
    let x = columns::<T>(n, s, 70);
    let y0 = columns::<T>(m, s, 80);
    let (alpha, beta) = (T::rounded(1.25, 0.5), T::rounded(-0.75, 0.5));
    let run = |par: Par| {
        let mut one_vector = column(&y0, 0);
        a.apply_op(op, alpha, &column(&x, 0), beta, &mut one_vector, par);
        let mut several = y0.clone();
        a.apply_many(op, alpha, x.as_ref(), beta, several.as_mut(), par);
        (one_vector, (0..s).flat_map(|j| column(&several, j)).collect::<Vec<T>>())
    };
    let reference = run(Par::Seq);
    in_pools(|threads| {
        for par in [Par::Seq, Par::Rayon] {
            let (one_vector, several) = run(par);
            let place = || format!("{par:?} in a pool of {threads} has other bits than Seq");
            ensure(same_bits(&one_vector, &reference.0), place)?;
            ensure(same_bits(&several, &reference.1), || format!("several vectors: {}", place()))?;
        }
        Ok(())
    })
}

fn absolute_values<T: Scalar>(a: &dyn Matrix<T>, op: Op) -> Result<(), String> {
    let (m, n) = op.shape(a.nrows(), a.ncols());
    let real = |len, seed| random_vector::<T>(len, seed).into_iter().map(|v| v.re().abs()).collect::<Vec<T::Real>>();
    let (x, y0) = (real(n, 5), real(m, 6));
    let mut y = y0.clone();
    a.accumulate_abs(op, &x, &mut y);
    let mut expected: Vec<f64> = y0.iter().map(|v| v.to_f64()).collect();
    let mut terms = vec![1usize; m];
    a.for_each_entry(&mut |i, j, v| {
        let (row, col) = if op == Op::Identity { (i, j) } else { (j, i) };
        expected[row] += v.cast::<c64>().norm() * x[col].to_f64();
        terms[row] += 1;
    });
    for (i, (y, e)) in y.iter().zip(&expected).enumerate() {
        let bound = 2.0 * (terms[i] + 2) as f64 * unit_roundoff::<T>() * e;
        ensure((y.to_f64() - e).abs() <= bound, || format!("accumulate_abs gives {y} at {i}, expected {e}"))?;
    }
    Ok(())
}

fn norms<T: Scalar>(a: &dyn Matrix<T>) -> Result<(), String> {
    let (mut rows, mut cols, mut max) = (vec![0.0; a.nrows()], vec![0.0; a.ncols()], 0f64);
    a.for_each_entry(&mut |i, j, v| {
        let modulus = v.cast::<c64>().norm();
        rows[i] += modulus;
        cols[j] += modulus;
        max = max.max(modulus);
    });
    let largest = |sums: Vec<f64>| sums.into_iter().fold(0.0, f64::max);
    for (name, found, expected) in [
        ("norm_inf", a.norm_inf(), largest(rows)),
        ("norm_one", a.norm_one(), largest(cols)),
        ("norm_max", a.norm_max(), max),
    ] {
        let bound = 2.0 * (a.nrows() + a.ncols() + 2) as f64 * unit_roundoff::<T>() * expected;
        ensure((found.to_f64() - expected).abs() <= bound, || format!("{name} = {found}, expected {expected}"))?;
    }
    Ok(())
}

fn lengths<T: Scalar>(a: &dyn Matrix<T>, op: Op) -> Result<(), String> {
    let (m, n) = op.shape(a.nrows(), a.ncols());
    for (dx, dy) in [(1, 0), (0, 1)] {
        let (x, mut y) = (vec![one::<T>(); n + dx], vec![zero::<T>(); m + dy]);
        let what = format!("x of length {} and y of length {} for a {m} × {n} product", n + dx, m + dy);
        must_panic(&what, || a.apply_op(op, one(), &x, zero(), &mut y, Par::Seq))?;
    }
    let (x, mut y) = (Mat::<T>::zeros(n, 2), Mat::<T>::zeros(m, 3));
    must_panic("apply_many of 2 vectors into 3", || {
        a.apply_many(op, one(), x.as_ref(), zero(), y.as_mut(), Par::Seq);
    })
}

/// A random matrix of `s` columns.
fn columns<T: Scalar>(n: usize, s: usize, seed: u64) -> Mat<T> {
    let values: Vec<Vec<T>> = (0..s).map(|j| random_vector(n, seed + j as u64)).collect();
    Mat::from_fn(n, s, |i, j| values[j][i])
}

fn column<T: Scalar>(a: &Mat<T>, j: usize) -> Vec<T> {
    a.col_as_slice(j).to_vec()
}
