//! What the tests of this crate share: random numbers, the contract of a factorization, a reader of small files.

use std::path::{Path, PathBuf};

use bt_direct::refine::unit_roundoff;
use bt_direct::{BandLu, FactorError, Factorization};
use bt_formats::{
    Band, BlockTridiagonal, Coo, Csr, HybridLayout, Matrix, Op, Partition, RealScalar, Scalar, c64, certify,
};
use faer::Mat;

/// A 64-bit linear congruential generator.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        let mut r = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03);
        r.real();
        r
    }
    /// Uniform in (−1, 1).
    pub fn real(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
    pub fn scalar<T: Scalar>(&mut self) -> T {
        let re = self.real();
        T::rounded(re, self.real())
    }
}

pub const OPS: [Op; 3] = [Op::Identity, Op::Transpose, Op::Adjoint];

/// A as a dense matrix.
pub fn dense<T: Scalar, A: Matrix<T> + ?Sized>(a: &A) -> Mat<T> {
    let mut d = Mat::zeros(a.nrows(), a.ncols());
    a.for_each_entry(&mut |i, j, v| d[(i, j)] = v);
    d
}

/// Backward error of one solve.
pub fn backward_error<T: Scalar, A: Matrix<T>, F: Factorization<T>>(a: &A, lu: &F, op: Op, b: &[T]) -> f64 {
    let b = Mat::from_fn(b.len(), 1, |i, _| b[i]);
    let mut x = b.clone();
    lu.solve_op_in_place(op, x.as_mut());
    certify(a, op, x.as_ref(), b.as_ref()).backward_error
}

/// What every factorization must satisfy, on a regular matrix small enough for dense oracles.
pub fn check_contract<T: Scalar, A: Matrix<T>, F: Factorization<T>>(a: &A, lu: &F, seed: u64) {
    let n = a.nrows();
    assert_eq!(lu.n(), n);
    let mut r = Random::new(seed);
    let u = unit_roundoff::<T>();
    let growth = lu.stats().growth.max(1.0);
    let rcond = lu.rcond().max(u);
    for nrhs in [0, 1, 3, 9] {
        let b = Mat::<T>::from_fn(n, nrhs, |_, _| r.scalar());
        for op in OPS {
            let mut x = b.clone();
            lu.solve_op_in_place(op, x.as_mut());
            let c = certify(a, op, x.as_ref(), b.as_ref());
            let allowed = (8.0 + n as f64) * growth * u;
            assert!(c.backward_error <= allowed, "{op:?}: backward error {:e} > {allowed:e}", c.backward_error);
            // Several right-hand sides are solved as each alone.
            for j in 0..nrhs {
                let mut alone = Mat::from_fn(n, 1, |i, _| b[(i, j)]);
                lu.solve_op_in_place(op, alone.as_mut());
                let scale = (0..n).map(|i| alone[(i, 0)].abs().to_f64()).fold(0.0, f64::max);
                let tolerance = allowed / rcond * scale;
                for i in 0..n {
                    let difference = (x[(i, j)] - alone[(i, 0)]).abs().to_f64();
                    assert!(difference <= tolerance, "column {j}, row {i}: {difference:e} > {tolerance:e}");
                }
            }
        }
    }
    let stats = lu.stats();
    let norm = a.norm_one().to_f64();
    assert!((stats.norm_one - norm).abs() <= 1e3 * u * norm, "norm_one {} instead of {norm}", stats.norm_one);
    if n == 0 {
        assert_eq!((lu.log_det().log_abs, lu.rcond()), (0.0, 1.0));
        return;
    }
    assert!(stats.min_pivot > 0.0 && stats.bytes >= stats.nnz * size_of::<T>());

    // The determinant and the condition against dense LU and the dense inverse, in double precision.
    let wide = dense_c64(a);
    let det = lu.log_det();
    let oracle = dense_log_det(&wide);
    let condition = dense_condition(&wide);
    let relative = (20.0 + n as f64) * growth * u * condition;
    assert!((det.log_abs - oracle.1).abs() <= relative.max(1e2 * u * n as f64), "{} {}", det.log_abs, oracle.1);
    if relative < 0.1 {
        let sign: c64 = det.sign.cast();
        assert!((sign - oracle.0).norm() <= relative + 1e2 * u * n as f64, "{sign} {}", oracle.0);
    }
    if condition * u < 1e-3 {
        let rcond = lu.rcond();
        assert!(rcond * condition <= 10.0 && rcond * condition >= 0.9, "rcond {rcond:e}, condition {condition:e}");
    }
}

/// The factors of a random matrix. A pivot may vanish only where the matrix is singular to working precision,
/// n·u·κ₁(A) ≥ 1/10, κ₁ from a dense inverse in double precision; `None` then.
pub fn unless_singular<T: Scalar, A: Matrix<T>, F>(found: Result<F, FactorError>, a: &A) -> Option<F> {
    match found {
        Ok(factors) => Some(factors),
        Err(FactorError::Singular(_)) => {
            let condition = dense_condition(&dense_c64(a));
            // A condition beyond double precision is not a number or anything above 10¹⁶.
            let regular = a.nrows() as f64 * unit_roundoff::<T>() * condition < 0.1;
            assert!(!regular, "singular, though the condition number is {condition:e}");
            None
        }
        Err(other) => panic!("{other}"),
    }
}

fn dense_c64<T: Scalar, A: Matrix<T>>(a: &A) -> Mat<c64> {
    let d = dense(a);
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| d[(i, j)].cast())
}

/// κ₁(A) = ‖A‖₁·‖A⁻¹‖₁ by a dense inverse.
fn dense_condition(a: &Mat<c64>) -> f64 {
    let n = a.nrows();
    let mut inverse = Mat::<c64>::identity(n, n);
    faer::linalg::solvers::Solve::solve_in_place(&a.partial_piv_lu(), inverse.as_mut());
    let column_sum = |m: &Mat<c64>| (0..n).map(|j| (0..n).map(|i| m[(i, j)].norm()).sum::<f64>()).fold(0.0, f64::max);
    column_sum(a) * column_sum(&inverse)
}

/// The solution is that of band LU, ‖x − x̂‖∞ ≤ c·κ·u·‖x̂‖∞ with c = 20n times the growth.
pub fn check_agreement<T: Scalar, A: Matrix<T>, F: Factorization<T>>(a: &A, f: &F, seed: u64) {
    let n = a.nrows();
    let mut csr = Coo::new(n, n).unwrap();
    a.for_each_entry(&mut |i, j, v| csr.push(i, j, v).unwrap());
    let band = BandLu::new(&Band::from_csr(&csr.to_csr().unwrap()).unwrap()).unwrap();
    let mut r = Random::new(seed);
    let b = Mat::<T>::from_fn(n, 1, |_, _| r.scalar());
    let (mut x, mut reference) = (b.clone(), b);
    f.solve_in_place(x.as_mut());
    band.solve_in_place(reference.as_mut());
    let size = |m: &Mat<T>| (0..n).map(|i| m[(i, 0)].abs().to_f64()).fold(0.0, f64::max);
    let growth = f.stats().growth.max(1.0);
    let allowed = 20.0 * n as f64 * growth * unit_roundoff::<T>() / band.rcond() * size(&reference);
    let difference = size(&(&x - &reference));
    assert!(difference <= allowed, "{}: {difference:e} from band LU, {allowed:e} allowed", f.method());
}

/// (sign, log|det|) by elimination with partial pivoting, independent of the code under test.
fn dense_log_det(a: &Mat<c64>) -> (c64, f64) {
    let lu = a.partial_piv_lu();
    let mut sign = c64::new(1.0, 0.0);
    let mut log = 0.0;
    for i in 0..a.nrows() {
        let d = lu.U()[(i, i)];
        sign *= d / d.norm();
        log += d.norm().ln();
    }
    let (forward, _) = lu.P().arrays();
    let mut seen = vec![false; forward.len()];
    for start in 0..forward.len() {
        let (mut at, mut length) = (start, 0);
        while !seen[at] {
            seen[at] = true;
            at = forward[at];
            length += 1;
        }
        if length > 0 && length % 2 == 0 {
            sign = -sign;
        }
    }
    (sign, log)
}

/// A folder of `../shared/data`, or a line saying that it is absent.
pub fn data(folder: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(folder);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: ../shared is absent");
    None
}

/// Lines without comments and the banner.
fn lines(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    text.lines().filter(|l| !l.starts_with('%') && !l.trim().is_empty()).map(str::to_owned).collect()
}

/// A coordinate real general or symmetric Matrix Market file, trusted.
pub fn read_matrix(file: &Path) -> Csr<f64> {
    let banner = std::fs::read_to_string(file).unwrap().lines().next().unwrap().to_owned();
    let lines = lines(file);
    let size: Vec<usize> = lines[0].split_whitespace().map(|t| t.parse().unwrap()).collect();
    let mut a = Coo::new(size[0], size[1]).unwrap();
    for line in &lines[1..] {
        let t: Vec<&str> = line.split_whitespace().collect();
        let (i, j, v) = (t[0].parse::<usize>().unwrap() - 1, t[1].parse::<usize>().unwrap() - 1, t[2].parse().unwrap());
        a.push(i, j, v).unwrap();
        if banner.contains("symmetric") && i != j {
            a.push(j, i, v).unwrap();
        }
    }
    a.to_csr().unwrap()
}

/// An array real Matrix Market file of one column, trusted.
pub fn read_vector(file: &Path) -> Vec<f64> {
    lines(file)[1..].iter().map(|l| l.trim().parse().unwrap()).collect()
}

/// Fields of a CSV line with quotes.
pub fn csv_fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().unwrap().push(c),
        }
    }
    fields
}

/// A system of ../shared/data/block.
pub struct BlockSystem {
    pub name: String,
    pub csr: Csr<f64>,
    pub blocks: BlockTridiagonal<f64>,
    pub b: Vec<f64>,
    folder: PathBuf,
}

impl BlockSystem {
    pub fn reference(&self) -> Vec<f64> {
        read_vector(&self.folder.join(format!("{}_xref.mtx", self.name)))
    }
}

/// All eight of them; none, with a line that says so, where the data is absent.
pub fn block_systems() -> Vec<BlockSystem> {
    let Some(folder) = data("block") else { return Vec::new() };
    let mut systems = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "blocks") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let sizes: Vec<usize> =
            std::fs::read_to_string(&path).unwrap().split_whitespace().map(|t| t.parse().unwrap()).collect();
        let csr = read_matrix(&path.with_extension("mtx"));
        let partition = Partition::from_sizes(sizes).unwrap();
        let blocks = BlockTridiagonal::from_csr(&csr, partition, HybridLayout::default()).unwrap();
        let b = read_vector(&folder.join(format!("{name}_b.mtx")));
        systems.push(BlockSystem { name, csr, blocks, b, folder: folder.clone() });
    }
    assert_eq!(systems.len(), 8);
    systems
}
