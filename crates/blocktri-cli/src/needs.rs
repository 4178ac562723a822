//! Memory that a solve takes before its first step, by estimate, so that too little of it is an error and no abort.
//!
//! Counted are the copies of A, the vectors of the method, and the preconditioner where its size follows from its
//! definition. Factors of direct methods are counted by the library, which knows their fill.

use blocktri::formats::Matrix;
use blocktri::{Csr, Method, Precision, Precond, Scalar, SolveOptions};

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
    if !options.method.is_iterative() {
        return (columns + of_analysis(a), "the analysis of the matrix".into());
    }
    let basis = if options.basis == Precision::Single { number / 2 } else { number };
    let restart = (options.restart as u64).min(n).saturating_add(1);
    let (numbers, in_basis) = match options.method {
        Method::Cg => (5, 0),
        Method::Fcg => (6, 0),
        Method::BiCgStab => (8, 0),
        Method::Gmres => (3, restart),
        Method::Fgmres => (3 + restart, restart),
        _ => (3, 0),
    };
    let vectors = n.saturating_mul(numbers * number + in_basis * basis);
    let krylov = matches!(options.method, Method::Cg | Method::Fcg | Method::BiCgStab | Method::Gmres | Method::Fgmres);
    let entry = 4 + if options.precision == Precision::Single { number / 2 } else { number };
    let factors = n * (16 + number) + nnz * entry;
    let preconditioner = match options.precond {
        _ if !krylov => matrix,
        Precond::None => 0,
        Precond::Auto | Precond::Jacobi => n * number,
        Precond::Iluk => factors.saturating_mul(options.levels as u64 + 1),
        // A row of L and of U has so many entries at most, and cannot have more than there are columns.
        Precond::Ilut => n.saturating_mul(16 + (2 * options.ilut.fill as u64 + 1).min(n) * entry),
        Precond::Schwarz | Precond::Ras | Precond::Arms | Precond::ArmsRbt => 2 * factors,
        _ => factors,
    };
    // A in the order of the method, and by its diagonals or blocks.
    let bytes = [columns, 2 * matrix, vectors, preconditioner].into_iter().fold(0u64, u64::saturating_add);
    let precond = if krylov && options.precond != Precond::None {
        format!(" with --precond {}", options.precond.name())
    } else {
        String::new()
    };
    (bytes, format!("{}{precond}", options.method))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 rows, one entry each: 12 bytes an entry and 4 a row, and 4 for the end.
    fn bytes(options: &SolveOptions) -> u64 {
        let n = 1000;
        let a = Csr::new(n, n, (0..=n as u32).collect(), (0..n as u32).collect(), vec![1.0f64; n]).unwrap();
        before(&a, 1, options).0
    }

    #[test]
    fn the_basis_of_gmres_is_counted_to_the_number() {
        let options = |method| SolveOptions { method, precond: Precond::None, restart: 30, ..SolveOptions::default() };
        let cg = bytes(&options(Method::Cg));
        assert_eq!(cg, 8 * 8000 + 2 * 16_004 + 5 * 8000);
        assert_eq!(bytes(&options(Method::Gmres)), cg + (3 + 31 - 5) * 8000);
        assert_eq!(bytes(&options(Method::Fgmres)), cg + (3 + 62 - 5) * 8000);
        let single = SolveOptions { basis: Precision::Single, ..options(Method::Gmres) };
        assert_eq!(bytes(&single), cg - 2 * 8000 + 31 * 4000);
        // Restarts beyond n mean n.
        let long = SolveOptions { restart: usize::MAX, ..options(Method::Gmres) };
        assert_eq!(bytes(&long), cg + (3 + 1001 - 5) * 8000);
    }

    #[test]
    fn options_without_end_do_not_overflow() {
        let mut options = SolveOptions { method: Method::Gmres, precond: Precond::Iluk, ..SolveOptions::default() };
        options.levels = usize::MAX >> 1;
        assert_eq!(bytes(&options), u64::MAX);
    }
}
