//! Memory that a solve takes before its first step, by estimate, so that too little of it is an error and no abort.
//!
//! Counted are the copies of A, the vectors of the method, and the preconditioner where its size follows from its
//! definition. Factors of direct methods are counted by the library, which knows their fill.

use blocktri::{
    ArmsOptions, BlockIteration, Csr, Krylov, KrylovMethod, Method, Precision, Precond, Scalar, SolveOptions,
};
use bt_formats::Matrix;

/// Bytes of a look at the structure: the pattern of Aᵀ, orders, A in another order.
pub fn of_analysis<T: Scalar>(a: &Csr<T>) -> u64 {
    Matrix::bytes(a) as u64 + 16 * (a.row_ptr().len() as u64) + 8 * (a.values().len() as u64)
}

/// Bytes of a solve, and what they are for.
pub fn before<T: Scalar>(a: &Csr<T>, nrhs: usize, options: &SolveOptions) -> (u64, String) {
    let n = a.row_ptr().len() as u64 - 1;
    let nnz = a.values().len() as u64;
    let number = size_of::<T>() as u64;
    let matrix = Matrix::bytes(a) as u64;
    // b, x, the columns in the order of the method, and what the certificate is computed with.
    let columns = (4 * nrhs as u64 + 4).saturating_mul(n).saturating_mul(number);
    let Some((vectors, preconditioner, what)) = of_iteration::<T>(n, nnz, matrix, &options.method) else {
        return (columns + of_analysis(a), "the analysis of the matrix".into());
    };
    // A in the order of the method, and by its diagonals or blocks.
    let bytes = [columns, 2 * matrix, vectors, preconditioner].into_iter().fold(0u64, u64::saturating_add);
    (bytes, what)
}

/// Bytes of the vectors and of the preconditioner of an iterative method, and its name.
fn of_iteration<T: Scalar>(n: u64, nnz: u64, matrix: u64, method: &Method) -> Option<(u64, u64, String)> {
    let number = size_of::<T>() as u64;
    let Krylov { method, precond, precision, .. } = match method {
        Method::Krylov(krylov) => krylov,
        Method::Blocks(BlockIteration { sweep, .. }) => {
            return Some((n.saturating_mul(3 * number), matrix, sweep.name().into()));
        }
        _ => return None,
    };
    let vector = |precision: Precision| if precision == Precision::Single { number / 2 } else { number };
    let basis = |restart: usize, basis| ((restart as u64).min(n).saturating_add(1), vector(basis));
    let (numbers, (in_basis, of_basis)) = match *method {
        KrylovMethod::Fcg => (6, (0, 0)),
        KrylovMethod::BiCgStab => (8, (0, 0)),
        KrylovMethod::Gmres { restart, basis: b } => (3, basis(restart, b)),
        KrylovMethod::Fgmres { restart, basis: b } => (3 + basis(restart, b).0, basis(restart, b)),
        _ => (5, (0, 0)),
    };
    let vectors = n.saturating_mul(numbers * number + in_basis * of_basis);
    let entry = 4 + vector(*precision);
    let factors = n * (16 + number) + nnz * entry;
    let preconditioner = match precond {
        Precond::None => 0,
        Precond::Auto | Precond::Jacobi => n * number,
        Precond::Iluk { levels, .. } => factors.saturating_mul(*levels as u64 + 1),
        // A row of L and of U has so many entries at most, and cannot have more than there are columns.
        Precond::Ilut { options, .. } => n.saturating_mul(16 + (2 * options.fill as u64 + 1).min(n) * entry),
        Precond::Schwarz { .. } | Precond::Arms(ArmsOptions { .. }) | Precond::BlockSsorAi { .. } => 2 * factors,
        _ => factors,
    };
    let with = if *precond == Precond::None { String::new() } else { format!(" with --precond {precond}") };
    Some((vectors, preconditioner, format!("{method}{with}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use blocktri::TriangularSolves;

    /// 1000 rows, one entry each: 12 bytes an entry and 4 a row, and 4 for the end.
    fn bytes(method: KrylovMethod, precond: Precond) -> u64 {
        let n = 1000;
        let a = Csr::new(n, n, (0..=n as u32).collect(), (0..n as u32).collect(), vec![1.0f64; n]).unwrap();
        before(&a, 1, &SolveOptions::by(Krylov::new(method, precond))).0
    }

    #[test]
    fn the_basis_of_gmres_is_counted_to_the_number() {
        let gmres = |restart, basis| bytes(KrylovMethod::Gmres { restart, basis }, Precond::None);
        let cg = bytes(KrylovMethod::Cg, Precond::None);
        assert_eq!(cg, 8 * 8000 + 2 * 16_004 + 5 * 8000);
        assert_eq!(gmres(30, Precision::Working), cg + (3 + 31 - 5) * 8000);
        let fgmres = KrylovMethod::Fgmres { restart: 30, basis: Precision::Working };
        assert_eq!(bytes(fgmres, Precond::None), cg + (3 + 62 - 5) * 8000);
        assert_eq!(gmres(30, Precision::Single), cg - 2 * 8000 + 31 * 4000);
        // Restarts beyond n mean n.
        assert_eq!(gmres(usize::MAX, Precision::Working), cg + (3 + 1001 - 5) * 8000);
    }

    #[test]
    fn options_without_end_do_not_overflow() {
        let iluk = Precond::Iluk { levels: usize::MAX >> 1, solves: TriangularSolves::Levels };
        assert_eq!(bytes(KrylovMethod::BiCgStab, iluk), u64::MAX);
    }
}
