//! What the tests of bt-direct share: a small reader of coordinate Matrix Market files, random dense systems, a loop
//! over the four scalars.
#![allow(dead_code)]

use std::path::PathBuf;

use bt_direct::{Factorization, LogDet, Refinement, refine};
use bt_formats::{Csr, LinearOperator, Matrix, Op, RealScalar, Scalar, certify};
use faer::{Mat, MatRef};

/// A folder of ../shared/data, if it is there.
pub fn shared(folder: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(folder);
    // A worktree lies elsewhere than the checkout it belongs to.
    let path = std::env::var_os("BLOCKTRI_SHARED").map_or(path, |s| PathBuf::from(s).join("data").join(folder));
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: ../shared is absent");
    None
}

/// Reads a real coordinate file, general or symmetric; `None` for anything else.
pub fn read(path: &std::path::Path) -> Option<Csr<f64>> {
    let text = std::fs::read_to_string(path).ok()?;
    let mut lines = text.lines();
    let banner = lines.next()?.to_lowercase();
    if !banner.contains("coordinate") || banner.contains("complex") || banner.contains("pattern") {
        return None;
    }
    let symmetric = banner.contains("symmetric");
    let sign = if banner.contains("skew") { -1.0 } else { 1.0 };
    let mut lines = lines.filter(|l| !l.starts_with('%') && !l.trim().is_empty());
    let size: Vec<usize> = lines.next()?.split_whitespace().map(|t| t.parse().unwrap()).collect();
    let mut entries = std::collections::BTreeMap::new();
    for line in lines {
        let t: Vec<&str> = line.split_whitespace().collect();
        let (i, j, v) =
            (t[0].parse::<u32>().unwrap() - 1, t[1].parse::<u32>().unwrap() - 1, t[2].parse::<f64>().unwrap());
        *entries.entry((i, j)).or_insert(0.0) += v;
        if symmetric && i != j {
            *entries.entry((j, i)).or_insert(0.0) += sign * v;
        }
    }
    Some(from_entries(size[0], entries.into_iter().map(|((i, j), v)| (i, j, v))))
}

/// A square matrix from sorted entries.
pub fn from_entries<T: Scalar>(n: usize, entries: impl Iterator<Item = (u32, u32, T)>) -> Csr<T> {
    let (mut ptr, mut idx, mut val) = (vec![0u32; n + 1], vec![], vec![]);
    for (i, j, v) in entries {
        ptr[i as usize + 1] += 1;
        idx.push(j);
        val.push(v);
    }
    for i in 0..n {
        ptr[i + 1] += ptr[i];
    }
    Csr::new(n, n, ptr, idx, val).unwrap()
}

/// Every nonzero of a dense matrix.
pub fn from_dense<T: Scalar>(a: MatRef<'_, T>) -> Csr<T> {
    let n = a.nrows();
    let all = (0..n).flat_map(|i| (0..n).map(move |j| (i as u32, j as u32)));
    from_entries(n, all.map(|(i, j)| (i, j, a[(i as usize, j as usize)])).filter(|e| e.2 != bt_formats::zero()))
}

/// Uniform numbers in [−1, 1), from a seed.
pub struct Random(pub u64);

impl Random {
    pub fn unit(&mut self) -> f64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
    pub fn scalar<T: Scalar>(&mut self) -> T {
        T::from_parts(self.unit(), self.unit())
    }
    pub fn matrix<T: Scalar>(&mut self, nrows: usize, ncols: usize) -> Mat<T> {
        Mat::from_fn(nrows, ncols, |_, _| self.scalar())
    }
}

/// Solves with A, Aᵀ, Aᴴ for several right-hand sides and asserts backward errors of at most `tolerance` ulps.
pub fn assert_solves<T: Scalar, F: Factorization<T>>(a: &Csr<T>, factors: &F, nrhs: usize, tolerance: f64) {
    let x_true: Mat<T> = Random(77).matrix(a.nrows(), nrhs);
    let limit = tolerance * <T::Real as RealScalar>::EPSILON.to_f64();
    for op in [Op::Identity, Op::Transpose, Op::Adjoint] {
        let mut b = Mat::zeros(a.nrows(), nrhs);
        a.apply_many(op, bt_formats::one(), x_true.as_ref(), bt_formats::zero(), b.as_mut(), bt_formats::Par::Seq);
        let mut x = b.clone();
        factors.solve_op_in_place(op, x.as_mut());
        let error = certify(a, op, x.as_ref(), b.as_ref()).backward_error;
        assert!(error <= limit, "{op:?}: backward error {error:e} > {limit:e}");
    }
}

/// Backward error of A·x = b after refinement for the b of the data's index: x* = 1 + ((7·i) mod 11)/11.
pub fn refined_error<F: Factorization<f64>>(a: &Csr<f64>, factors: &F) -> f64 {
    let n = a.nrows();
    let x_true: Vec<f64> = (0..n).map(|i| 1.0 + ((7 * i) % 11) as f64 / 11.0).collect();
    let mut b = Mat::zeros(n, 1);
    a.apply(1.0, &x_true, 0.0, b.col_as_slice_mut(0));
    let mut x = b.clone();
    factors.solve_in_place(x.as_mut());
    refine(a, factors, Op::Identity, b.as_ref(), &mut x, Refinement::Auto).certificate.backward_error
}

/// Determinant by faer's dense LU.
pub fn dense_log_det<T: Scalar>(a: MatRef<'_, T>) -> LogDet<T> {
    let lu = a.partial_piv_lu();
    let mut det = LogDet::one();
    (0..a.nrows()).for_each(|i| det.multiply(lu.U()[(i, i)]));
    let p = lu.P().arrays().0.to_vec();
    let inversions = (0..p.len()).map(|i| (0..i).filter(|&j| p[j] > p[i]).count()).sum::<usize>();
    if inversions % 2 == 1 {
        det.negate();
    }
    det
}

/// Asserts two determinants equal up to `tolerance` ulps a row.
pub fn assert_same_det<T: Scalar>(found: LogDet<T>, expected: LogDet<T>, n: usize, tolerance: f64) {
    let limit = tolerance * n as f64 * <T::Real as RealScalar>::EPSILON.to_f64();
    assert!((found.log_abs - expected.log_abs).abs() <= limit, "{found:?} against {expected:?}");
    assert!((found.sign - expected.sign).abs().to_f64() <= limit, "{found:?} against {expected:?}");
}
