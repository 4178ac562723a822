//! `gbsv`, `gtsv` and `pbsv` with LAPACK's arguments, for all four scalars: what LAPACK leaves in its arrays and in `info` these leave, too.
//!
//! Integers are of 32 bits and, like everything else, passed by address, as Fortran does. The length that Fortran compilers add for `uplo`
//! may be passed and is not looked at. A wrong argument is `info` = −its number, and a sentence for `blocktri_last_error`; LAPACK prints
//! and stops. A null pointer counts as a wrong argument; a bug in this library is `info` = −99.

#![allow(unsafe_code)] // functions for C

use std::ffi::c_char;

use blocktri::{Scalar, c32, c64};
use bt_direct::lapack::{Half, NoPivot, gbsv, gtsv, pbsv};

use crate::raw;
use crate::status::{Failure, Result, blocktri_status, guard};

/// Where there is a bug.
const BUG: i32 = -99;

/// An argument that is wrong, by its number from 1.
struct Wrong {
    number: i32,
    failure: Failure,
}

/// Adds the number of the argument to what is wrong with it.
trait Numbered<R> {
    fn of(self, number: i32) -> Result<R, Wrong>;
}

impl<R> Numbered<R> for Result<R> {
    fn of(self, number: i32) -> Result<R, Wrong> {
        self.map_err(|failure| Wrong { number, failure })
    }
}

/// An integer of Fortran that is at least `least`.
///
/// # Safety
/// It is there, or the pointer is null.
unsafe fn integer(what: &str, number: i32, at: *const i32, least: i64) -> Result<usize, Wrong> {
    // SAFETY: the caller's word.
    let value = i64::from(*unsafe { raw::reference(what, at) }.of(number)?);
    let failure = || Failure::argument(format!("{what} is {value} and must be at least {least}"));
    if value < least { Err(failure()).of(number) } else { Ok(value as usize) }
}

/// Does the work and says in `info` what came of it.
///
/// # Safety
/// `info` has room for an integer, or is null.
unsafe fn told(info: *mut i32, work: impl FnOnce() -> Result<Result<(), NoPivot>, Wrong>) {
    let mut found = 0;
    let status = guard(|| match work() {
        Ok(Ok(())) => Ok(()),
        Ok(Err(NoPivot { column })) => {
            found = column as i32 + 1;
            Ok(())
        }
        Err(Wrong { number, failure }) => {
            found = -number;
            Err(failure)
        }
    });
    if status == blocktri_status::BLOCKTRI_INTERNAL {
        found = BUG;
    }
    // SAFETY: the caller's word.
    unsafe { raw::write(info, found) };
}

/// Where the arguments of `gbsv` are, in their order.
struct Gbsv<T>(*const i32, *const i32, *const i32, *const i32, *mut T, *const i32, *mut i32, *mut T, *const i32);

/// Solves A·X = B of a band matrix.
///
/// # Safety
/// LAPACK's contract.
unsafe fn solve_band<T: Scalar>(arguments: &Gbsv<T>, info: *mut i32) {
    let &Gbsv(n, kl, ku, nrhs, ab, ldab, ipiv, b, ldb) = arguments;
    let work = || {
        // SAFETY: the caller's word on all of them.
        unsafe {
            let (n, kl, ku) = (integer("n", 1, n, 0)?, integer("kl", 2, kl, 0)?, integer("ku", 3, ku, 0)?);
            let nrhs = integer("nrhs", 4, nrhs, 0)?;
            let height = 2 * kl + ku + 1;
            let ldab = integer("ldab", 6, ldab, height as i64)?;
            let ldb = integer("ldb", 9, ldb, n.max(1) as i64)?;
            let ab = raw::columns_mut("ab", ab, (height, n), ldab).of(5)?;
            let ipiv = raw::slice_mut("ipiv", ipiv, n).of(7)?;
            let b = raw::columns_mut("b", b, (n, nrhs), ldb).of(8)?;
            Ok(gbsv((kl, ku), ab, ipiv, b))
        }
    };
    // SAFETY: the caller's word.
    unsafe { told(info, work) };
}

/// Where the arguments of `gtsv` are, in their order.
struct Gtsv<T>(*const i32, *const i32, *mut T, *mut T, *mut T, *mut T, *const i32);

/// Solves A·X = B of a tridiagonal matrix.
///
/// # Safety
/// LAPACK's contract.
unsafe fn solve_tridiagonal<T: Scalar>(arguments: &Gtsv<T>, info: *mut i32) {
    let &Gtsv(n, nrhs, dl, d, du, b, ldb) = arguments;
    let work = || {
        // SAFETY: the caller's word on all of them.
        unsafe {
            let (n, nrhs) = (integer("n", 1, n, 0)?, integer("nrhs", 2, nrhs, 0)?);
            let ldb = integer("ldb", 7, ldb, n.max(1) as i64)?;
            let beside = n.saturating_sub(1);
            let dl = raw::slice_mut("dl", dl, beside).of(3)?;
            let d = raw::slice_mut("d", d, n).of(4)?;
            let du = raw::slice_mut("du", du, beside).of(5)?;
            let b = raw::columns_mut("b", b, (n, nrhs), ldb).of(6)?;
            Ok(gtsv(dl, d, du, b))
        }
    };
    // SAFETY: the caller's word.
    unsafe { told(info, work) };
}

/// Where the arguments of `pbsv` are, in their order.
struct Pbsv<T>(*const c_char, *const i32, *const i32, *const i32, *mut T, *const i32, *mut T, *const i32);

/// Solves A·X = B of a Hermitian positive definite band matrix.
///
/// # Safety
/// LAPACK's contract.
unsafe fn solve_hermitian_band<T: Scalar>(arguments: &Pbsv<T>, info: *mut i32) {
    let &Pbsv(uplo, n, kd, nrhs, ab, ldab, b, ldb) = arguments;
    let work = || {
        // SAFETY: the caller's word on all of them.
        unsafe {
            let half = match *raw::reference("uplo", uplo).of(1)? as u8 {
                b'U' | b'u' => Half::Upper,
                b'L' | b'l' => Half::Lower,
                other => {
                    let found = other as char;
                    return Err(Failure::argument(format!("uplo is {found:?} and must be 'U' or 'L'"))).of(1);
                }
            };
            let (n, kd, nrhs) = (integer("n", 2, n, 0)?, integer("kd", 3, kd, 0)?, integer("nrhs", 4, nrhs, 0)?);
            let ldab = integer("ldab", 6, ldab, kd as i64 + 1)?;
            let ldb = integer("ldb", 8, ldb, n.max(1) as i64)?;
            let ab = raw::columns_mut("ab", ab, (kd + 1, n), ldab).of(5)?;
            let b = raw::columns_mut("b", b, (n, nrhs), ldb).of(7)?;
            Ok(pbsv(half, kd, ab, b))
        }
    };
    // SAFETY: the caller's word.
    unsafe { told(info, work) };
}

/// LAPACK's `dgbsv`: A·X = B of a band matrix by P·A = L·U, in place. `#define dgbsv_ blocktri_dgbsv` puts it in LAPACK's place.
///
/// `ab` is ldab × n, ldab ≥ 2·kl + ku + 1, with A(i, j) at `ab[kl + ku + i - j + j*ldab]`; its first kl rows are room for fill. L and U take the
/// place of A, and `ipiv`, n integers from 1, tells the exchanges, for `dgbtrs`, `dgbcon`, `dgbrfs` to go on from. `b`, n × nrhs with ldb ≥ n,
/// becomes X.
///
/// `info`: 0; −i where argument i is wrong; i where U(i, i) is exactly zero: then the factorization is complete and X is not computed.
/// Cost: at most 2n·kl(kl + ku + 1) flops on one thread, and memory for a copy of the band where it can be had.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_dgbsv(
    n: *const i32,
    kl: *const i32,
    ku: *const i32,
    nrhs: *const i32,
    ab: *mut f64,
    ldab: *const i32,
    ipiv: *mut i32,
    b: *mut f64,
    ldb: *const i32,
    info: *mut i32,
) {
    // SAFETY: LAPACK's contract, by the caller's word.
    unsafe { solve_band(&Gbsv(n, kl, ku, nrhs, ab, ldab, ipiv, b, ldb), info) }
}

/// As `blocktri_dgbsv`, of single precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_sgbsv(
    n: *const i32,
    kl: *const i32,
    ku: *const i32,
    nrhs: *const i32,
    ab: *mut f32,
    ldab: *const i32,
    ipiv: *mut i32,
    b: *mut f32,
    ldb: *const i32,
    info: *mut i32,
) {
    // SAFETY: LAPACK's contract, by the caller's word.
    unsafe { solve_band(&Gbsv(n, kl, ku, nrhs, ab, ldab, ipiv, b, ldb), info) }
}

/// As `blocktri_dgbsv`, of complex double precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_zgbsv(
    n: *const i32,
    kl: *const i32,
    ku: *const i32,
    nrhs: *const i32,
    ab: *mut c64,
    ldab: *const i32,
    ipiv: *mut i32,
    b: *mut c64,
    ldb: *const i32,
    info: *mut i32,
) {
    // SAFETY: LAPACK's contract, by the caller's word.
    unsafe { solve_band(&Gbsv(n, kl, ku, nrhs, ab, ldab, ipiv, b, ldb), info) }
}

/// As `blocktri_dgbsv`, of complex single precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_cgbsv(
    n: *const i32,
    kl: *const i32,
    ku: *const i32,
    nrhs: *const i32,
    ab: *mut c32,
    ldab: *const i32,
    ipiv: *mut i32,
    b: *mut c32,
    ldb: *const i32,
    info: *mut i32,
) {
    // SAFETY: LAPACK's contract, by the caller's word.
    unsafe { solve_band(&Gbsv(n, kl, ku, nrhs, ab, ldab, ipiv, b, ldb), info) }
}

/// LAPACK's `dgtsv`: A·X = B of a tridiagonal matrix by elimination with partial pivoting, in place.
///
/// `dl` and `du` have n − 1 entries, `d` has n. Afterwards `d`, `du` and the first n − 2 of `dl` are the diagonal and the two super-diagonals
/// of U; L is not kept. `b`, n × nrhs with ldb ≥ n, becomes X.
///
/// `info`: 0; −i where argument i is wrong; i where U(i, i) is exactly zero: then elimination ended there and X is not computed.
/// Cost: 5n flops and n divisions, 7n flops and n divisions a right-hand side; no memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_dgtsv(
    n: *const i32,
    nrhs: *const i32,
    dl: *mut f64,
    d: *mut f64,
    du: *mut f64,
    b: *mut f64,
    ldb: *const i32,
    info: *mut i32,
) {
    // SAFETY: LAPACK's contract, by the caller's word.
    unsafe { solve_tridiagonal(&Gtsv(n, nrhs, dl, d, du, b, ldb), info) }
}

/// As `blocktri_dgtsv`, of single precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_sgtsv(
    n: *const i32,
    nrhs: *const i32,
    dl: *mut f32,
    d: *mut f32,
    du: *mut f32,
    b: *mut f32,
    ldb: *const i32,
    info: *mut i32,
) {
    // SAFETY: LAPACK's contract, by the caller's word.
    unsafe { solve_tridiagonal(&Gtsv(n, nrhs, dl, d, du, b, ldb), info) }
}

/// As `blocktri_dgtsv`, of complex double precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_zgtsv(
    n: *const i32,
    nrhs: *const i32,
    dl: *mut c64,
    d: *mut c64,
    du: *mut c64,
    b: *mut c64,
    ldb: *const i32,
    info: *mut i32,
) {
    // SAFETY: LAPACK's contract, by the caller's word.
    unsafe { solve_tridiagonal(&Gtsv(n, nrhs, dl, d, du, b, ldb), info) }
}

/// As `blocktri_dgtsv`, of complex single precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_cgtsv(
    n: *const i32,
    nrhs: *const i32,
    dl: *mut c32,
    d: *mut c32,
    du: *mut c32,
    b: *mut c32,
    ldb: *const i32,
    info: *mut i32,
) {
    // SAFETY: LAPACK's contract, by the caller's word.
    unsafe { solve_tridiagonal(&Gtsv(n, nrhs, dl, d, du, b, ldb), info) }
}

/// LAPACK's `dpbsv`: A·X = B of a Hermitian positive definite band matrix by Cholesky's factorization, in place.
///
/// `ab` is ldab × n, ldab ≥ kd + 1: where `uplo` is `'U'` the upper half with A(i, j) at `ab[kd + i - j + j*ldab]`, where it is `'L'` the lower one
/// with A(i, j) at `ab[i - j + j*ldab]`. Imaginary parts on the diagonal are taken for zero. The factor U (A = Uᴴ·U) or L (A = L·Lᴴ) takes its
/// place, for `dpbtrs`, `dpbcon`, `dpbrfs` to go on from. `b`, n × nrhs with ldb ≥ n, becomes X.
///
/// `info`: 0; −i where argument i is wrong; i where the leading minor of order i is not positive definite: then X is not computed and `ab` is
/// spoilt. Cost: n·kd(kd + 2) flops on one thread, and memory for a copy of the band where it can be had.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_dpbsv(
    uplo: *const c_char,
    n: *const i32,
    kd: *const i32,
    nrhs: *const i32,
    ab: *mut f64,
    ldab: *const i32,
    b: *mut f64,
    ldb: *const i32,
    info: *mut i32,
) {
    // SAFETY: LAPACK's contract, by the caller's word.
    unsafe { solve_hermitian_band(&Pbsv(uplo, n, kd, nrhs, ab, ldab, b, ldb), info) }
}

/// As `blocktri_dpbsv`, of single precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_spbsv(
    uplo: *const c_char,
    n: *const i32,
    kd: *const i32,
    nrhs: *const i32,
    ab: *mut f32,
    ldab: *const i32,
    b: *mut f32,
    ldb: *const i32,
    info: *mut i32,
) {
    // SAFETY: LAPACK's contract, by the caller's word.
    unsafe { solve_hermitian_band(&Pbsv(uplo, n, kd, nrhs, ab, ldab, b, ldb), info) }
}

/// As `blocktri_dpbsv`, of complex double precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_zpbsv(
    uplo: *const c_char,
    n: *const i32,
    kd: *const i32,
    nrhs: *const i32,
    ab: *mut c64,
    ldab: *const i32,
    b: *mut c64,
    ldb: *const i32,
    info: *mut i32,
) {
    // SAFETY: LAPACK's contract, by the caller's word.
    unsafe { solve_hermitian_band(&Pbsv(uplo, n, kd, nrhs, ab, ldab, b, ldb), info) }
}

/// As `blocktri_dpbsv`, of complex single precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_cpbsv(
    uplo: *const c_char,
    n: *const i32,
    kd: *const i32,
    nrhs: *const i32,
    ab: *mut c32,
    ldab: *const i32,
    b: *mut c32,
    ldb: *const i32,
    info: *mut i32,
) {
    // SAFETY: LAPACK's contract, by the caller's word.
    unsafe { solve_hermitian_band(&Pbsv(uplo, n, kd, nrhs, ab, ldab, b, ldb), info) }
}
