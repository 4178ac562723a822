//! Matrices from the arrays of C: compressed rows, band storage, three diagonals, stacks of blocks. Every one is copied.

#![allow(unsafe_code)] // functions for C

use std::ffi::c_char;
use std::fmt::Display;

use blocktri::faer::MatRef;
use blocktri::{AnyMatrix, AnyScalar, Coo, Csr, c32, c64};

use crate::raw;
use crate::status::{Failure, Result, blocktri_status, guard, guard_value};

/// A square sparse matrix of one of the four scalars. It never changes, and any number of threads may read it.
pub struct blocktri_matrix {
    pub(crate) of: AnyMatrix,
}

/// The size n of a matrix; −1 of a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_n(matrix: *const blocktri_matrix) -> i64 {
    // SAFETY: a handle, by the caller's word.
    guard_value(-1, || unsafe { raw::reference("matrix", matrix) }.map_or(-1, |a| a.of.nrows() as i64))
}

/// The entries of a matrix in compressed rows, and of others those that are not zero; −1 of a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_nnz(matrix: *const blocktri_matrix) -> i64 {
    // SAFETY: a handle, by the caller's word.
    guard_value(-1, || unsafe { raw::reference("matrix", matrix) }.map_or(-1, |a| a.of.nnz() as i64))
}

/// Frees a matrix; solvers made of it keep their own copy. Nothing happens to a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_free(matrix: *mut blocktri_matrix) {
    // SAFETY: made by this library and freed once, by the caller's word.
    guard_value((), || unsafe { raw::release(matrix) });
}

/// Makes a matrix and gives it away; the handle is null where that fails.
///
/// # Safety
/// `matrix` has room for a pointer, or is null.
unsafe fn make(matrix: *mut *mut blocktri_matrix, made: impl FnOnce() -> Result<AnyMatrix>) -> blocktri_status {
    guard(|| {
        raw::check_out("matrix", matrix)?;
        // SAFETY: the caller's word.
        unsafe { raw::write(matrix, std::ptr::null_mut()) };
        let made = blocktri_matrix { of: made()? };
        // SAFETY: the caller's word.
        unsafe { raw::give(matrix, made) };
        Ok(())
    })
}

/// Most rows that 32-bit indices count.
const MOST_ROWS: usize = u32::MAX as usize - 1;

fn out_of_memory(message: String) -> Failure {
    Failure { status: blocktri_status::BLOCKTRI_OUT_OF_MEMORY, message }
}

/// The size of a matrix.
fn rows(n: i64) -> Result<usize> {
    let n = raw::size("n", n)?;
    if n > MOST_ROWS {
        return Err(out_of_memory(format!("n is {n}: 32-bit indices count to {MOST_ROWS}")));
    }
    Ok(n)
}

/// Room for so many values.
fn room<T>(count: usize) -> Result<Vec<T>> {
    let mut made = Vec::new();
    let taken = made.try_reserve_exact(count);
    taken.map_err(|_| out_of_memory(format!("there is no memory for {count} values of a matrix")))?;
    Ok(made)
}

/// An integer type of C's indices.
trait Index: Copy + Display + TryInto<u32> {}
impl Index for i32 {}
impl Index for i64 {}

fn indices<I: Index>(what: &str, given: &[I]) -> Result<Vec<u32>> {
    let mut made = room(given.len())?;
    for (at, &value) in given.iter().enumerate() {
        let wrong = |_| Failure::argument(format!("{what}[{at}] is {value}: below 0 or beyond 32 bits"));
        made.push(value.try_into().map_err(wrong)?);
    }
    Ok(made)
}

/// Compressed rows, whose columns may be in any order and more than once.
///
/// # Safety
/// `row_ptr` has n + 1 numbers, the other two as many as its last one says.
unsafe fn from_rows<T: AnyScalar, I: Index>(
    n: i64,
    row_ptr: *const I,
    col_idx: *const I,
    values: *const T,
) -> Result<AnyMatrix> {
    let n = rows(n)?;
    // SAFETY: the caller's word.
    let row_ptr = indices("row_ptr", unsafe { raw::slice("row_ptr", row_ptr, n + 1) }?)?;
    if row_ptr[0] != 0 {
        return Err(Failure::argument(format!("row_ptr[0] is {} and must be 0: indices count from 0", row_ptr[0])));
    }
    if let Some(i) = (0..n).find(|&i| row_ptr[i] > row_ptr[i + 1]) {
        let (before, found) = (row_ptr[i], row_ptr[i + 1]);
        return Err(Failure::argument(format!("row_ptr[{}] is {found} and must be at least {before}", i + 1)));
    }
    let nnz = row_ptr[n] as usize;
    // SAFETY: the caller's word.
    let (col_idx, given) = unsafe { (raw::slice("col_idx", col_idx, nnz)?, raw::slice("values", values, nnz)?) };
    let col_idx = indices("col_idx", col_idx)?;
    let mut values = room(nnz)?;
    values.extend_from_slice(given);
    let in_order = |i: usize| col_idx[row_ptr[i] as usize..row_ptr[i + 1] as usize].windows(2).all(|w| w[0] < w[1]);
    if (0..n).all(in_order) {
        return Ok(Csr::new(n, n, row_ptr, col_idx, values)?.into());
    }
    let mut of_entries = room(nnz)?;
    (0..n).for_each(|i| of_entries.resize(row_ptr[i + 1] as usize, i as u32));
    Ok(Coo::from_triplets(n, n, of_entries, col_idx, values)?.to_csr()?.into())
}

/// From LAPACK's band storage.
///
/// # Safety
/// `ab` has n columns of kl + ku + 1 numbers, ldab apart.
unsafe fn from_band<T: AnyScalar>(n: i64, kl: i64, ku: i64, ab: *const T, ldab: i64) -> Result<AnyMatrix> {
    let (n, kl, ku, ldab) = (rows(n)?, raw::size("kl", kl)?, raw::size("ku", ku)?, raw::size("ldab", ldab)?);
    let height = kl.saturating_add(ku).saturating_add(1);
    if ldab < height {
        return Err(Failure::argument(format!("ldab is {ldab} and must be at least kl + ku + 1 = {height}")));
    }
    // SAFETY: the caller's word.
    let ab = unsafe { raw::columns("ab", ab, (height, n), ldab) }?;
    Ok(AnyMatrix::from_band(kl, ku, ab)?)
}

/// From three diagonals.
///
/// # Safety
/// `d` has n numbers, the other two n − 1.
unsafe fn from_diagonals<T: AnyScalar>(n: i64, dl: *const T, d: *const T, du: *const T) -> Result<AnyMatrix> {
    let n = rows(n)?;
    let beside = n.saturating_sub(1);
    // SAFETY: the caller's word.
    let (dl, d, du) = unsafe { (raw::slice("dl", dl, beside)?, raw::slice("d", d, n)?, raw::slice("du", du, beside)?) };
    Ok(AnyMatrix::from_diagonals(dl, d, du)?)
}

/// From stacks of blocks, all of one size.
///
/// # Safety
/// `diag` has m·k² numbers, the other two (m − 1)·k².
unsafe fn from_blocks<T: AnyScalar>((m, k): (i64, i64), layout: c_char, stacks: [*const T; 3]) -> Result<AnyMatrix> {
    let (m, k) = (raw::size("n_blocks", m)?, raw::size("block_size", k)?);
    if k == 0 {
        return Err(Failure::argument("block_size is 0 and must be at least 1"));
    }
    let by_columns = match layout as u8 {
        b'C' | b'c' => true,
        b'R' | b'r' => false,
        other => {
            let found = other as char;
            return Err(Failure::argument(format!("layout is {found:?} and must be 'C' for columns or 'R' for rows")));
        }
    };
    let n = m.checked_mul(k).filter(|&n| n <= MOST_ROWS);
    let n = n.ok_or_else(|| out_of_memory(format!("{m} blocks of {k} rows: 32-bit indices count to {MOST_ROWS}")))?;
    // n and k are below 2³².
    let (numbers, beside) = (n * k, n.saturating_sub(k) * k);
    let [lower, diag, upper] = stacks;
    // SAFETY: the caller's word.
    let (lower, diag, upper) = unsafe {
        (raw::slice("lower", lower, beside)?, raw::slice("diag", diag, numbers)?, raw::slice("upper", upper, beside)?)
    };
    let blocks = |stack: &'static str, numbers| views(stack, numbers, k, by_columns);
    Ok(AnyMatrix::from_blocks(&blocks("lower", lower)?, &blocks("diag", diag)?, &blocks("upper", upper)?)?)
}

/// The k × k blocks of a stack.
fn views<'a, T: AnyScalar>(what: &str, stack: &'a [T], k: usize, by_columns: bool) -> Result<Vec<MatRef<'a, T>>> {
    let mut made = room(stack.len() / (k * k))
        .map_err(|failure| Failure { message: format!("{what}: {}", failure.message), ..failure })?;
    let view = if by_columns { MatRef::from_column_major_slice } else { MatRef::from_row_major_slice };
    made.extend(stack.chunks_exact(k * k).map(|block| view(block, k, k)));
    Ok(made)
}

/// A matrix in compressed rows, of double precision: row i has the columns `col_idx[row_ptr[i]]` to
/// `col_idx[row_ptr[i + 1] - 1]`, and values beside them.
///
/// `row_ptr` has n + 1 entries from 0 on. Indices count from 0; the columns of a row may be in any order, entries of one place are added,
/// zeros may be stored. The arrays are copied. On failure `*matrix` is null.
///
/// Errors: `BLOCKTRI_INVALID_ARGUMENT` with the index that is wrong; `BLOCKTRI_OUT_OF_MEMORY`. Cost: one pass over the entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_from_csr_d(
    n: i64,
    row_ptr: *const i32,
    col_idx: *const i32,
    values: *const f64,
    matrix: *mut *mut blocktri_matrix,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { make(matrix, || from_rows(n, row_ptr, col_idx, values)) }
}

/// As `blocktri_matrix_from_csr_d`, of single precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_from_csr_s(
    n: i64,
    row_ptr: *const i32,
    col_idx: *const i32,
    values: *const f32,
    matrix: *mut *mut blocktri_matrix,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { make(matrix, || from_rows(n, row_ptr, col_idx, values)) }
}

/// As `blocktri_matrix_from_csr_d`, of complex double precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_from_csr_z(
    n: i64,
    row_ptr: *const i32,
    col_idx: *const i32,
    values: *const c64,
    matrix: *mut *mut blocktri_matrix,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { make(matrix, || from_rows(n, row_ptr, col_idx, values)) }
}

/// As `blocktri_matrix_from_csr_d`, of complex single precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_from_csr_c(
    n: i64,
    row_ptr: *const i32,
    col_idx: *const i32,
    values: *const c32,
    matrix: *mut *mut blocktri_matrix,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { make(matrix, || from_rows(n, row_ptr, col_idx, values)) }
}

/// As `blocktri_matrix_from_csr_d`, with indices of 64 bits, whose values fit 32.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_from_csr64_d(
    n: i64,
    row_ptr: *const i64,
    col_idx: *const i64,
    values: *const f64,
    matrix: *mut *mut blocktri_matrix,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { make(matrix, || from_rows(n, row_ptr, col_idx, values)) }
}

/// As `blocktri_matrix_from_csr_s`, with indices of 64 bits, whose values fit 32.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_from_csr64_s(
    n: i64,
    row_ptr: *const i64,
    col_idx: *const i64,
    values: *const f32,
    matrix: *mut *mut blocktri_matrix,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { make(matrix, || from_rows(n, row_ptr, col_idx, values)) }
}

/// As `blocktri_matrix_from_csr_z`, with indices of 64 bits, whose values fit 32.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_from_csr64_z(
    n: i64,
    row_ptr: *const i64,
    col_idx: *const i64,
    values: *const c64,
    matrix: *mut *mut blocktri_matrix,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { make(matrix, || from_rows(n, row_ptr, col_idx, values)) }
}

/// As `blocktri_matrix_from_csr_c`, with indices of 64 bits, whose values fit 32.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_from_csr64_c(
    n: i64,
    row_ptr: *const i64,
    col_idx: *const i64,
    values: *const c32,
    matrix: *mut *mut blocktri_matrix,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { make(matrix, || from_rows(n, row_ptr, col_idx, values)) }
}

/// A band matrix of double precision from LAPACK's storage: kl sub-diagonals, ku super-diagonals, A(i, j) at `ab[ku + i - j + j*ldab]`.
///
/// ldab ≥ kl + ku + 1. For an array with room for fill, as `dgbsv` takes, pass `ab + kl`. The corners outside the matrix are not used. The
/// array is copied. On failure `*matrix` is null.
///
/// Errors: `BLOCKTRI_INVALID_ARGUMENT`; `BLOCKTRI_OUT_OF_MEMORY`. Cost: one pass over the band.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_from_band_d(
    n: i64,
    kl: i64,
    ku: i64,
    ab: *const f64,
    ldab: i64,
    matrix: *mut *mut blocktri_matrix,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { make(matrix, || from_band(n, kl, ku, ab, ldab)) }
}

/// As `blocktri_matrix_from_band_d`, of single precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_from_band_s(
    n: i64,
    kl: i64,
    ku: i64,
    ab: *const f32,
    ldab: i64,
    matrix: *mut *mut blocktri_matrix,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { make(matrix, || from_band(n, kl, ku, ab, ldab)) }
}

/// As `blocktri_matrix_from_band_d`, of complex double precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_from_band_z(
    n: i64,
    kl: i64,
    ku: i64,
    ab: *const c64,
    ldab: i64,
    matrix: *mut *mut blocktri_matrix,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { make(matrix, || from_band(n, kl, ku, ab, ldab)) }
}

/// As `blocktri_matrix_from_band_d`, of complex single precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_from_band_c(
    n: i64,
    kl: i64,
    ku: i64,
    ab: *const c32,
    ldab: i64,
    matrix: *mut *mut blocktri_matrix,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { make(matrix, || from_band(n, kl, ku, ab, ldab)) }
}

/// A tridiagonal matrix of double precision: `dl[i]` = A(i + 1, i), `d[i]` = A(i, i), `du[i]` = A(i, i + 1).
///
/// `dl` and `du` have n − 1 entries, `d` has n. They are copied. On failure `*matrix` is null.
///
/// Errors: `BLOCKTRI_INVALID_ARGUMENT`; `BLOCKTRI_OUT_OF_MEMORY`. Cost: one pass over the diagonals.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_from_tridiagonal_d(
    n: i64,
    dl: *const f64,
    d: *const f64,
    du: *const f64,
    matrix: *mut *mut blocktri_matrix,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { make(matrix, || from_diagonals(n, dl, d, du)) }
}

/// As `blocktri_matrix_from_tridiagonal_d`, of single precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_from_tridiagonal_s(
    n: i64,
    dl: *const f32,
    d: *const f32,
    du: *const f32,
    matrix: *mut *mut blocktri_matrix,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { make(matrix, || from_diagonals(n, dl, d, du)) }
}

/// As `blocktri_matrix_from_tridiagonal_d`, of complex double precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_from_tridiagonal_z(
    n: i64,
    dl: *const c64,
    d: *const c64,
    du: *const c64,
    matrix: *mut *mut blocktri_matrix,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { make(matrix, || from_diagonals(n, dl, d, du)) }
}

/// As `blocktri_matrix_from_tridiagonal_d`, of complex single precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_from_tridiagonal_c(
    n: i64,
    dl: *const c32,
    d: *const c32,
    du: *const c32,
    matrix: *mut *mut blocktri_matrix,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { make(matrix, || from_diagonals(n, dl, d, du)) }
}

/// A block-tridiagonal matrix of double precision, of m = `n_blocks` block rows, each of k = `block_size` rows.
///
/// `diag` has m blocks, `lower` and `upper` have m − 1, one behind the other: block j of `lower` stands in block row j + 1 and block column j,
/// that of `upper` in block row j and block column j + 1. A block is k × k, by columns where `layout` is `'C'`, by rows where it is `'R'`.
/// The arrays are copied. On failure `*matrix` is null.
///
/// Errors: `BLOCKTRI_INVALID_ARGUMENT`; `BLOCKTRI_OUT_OF_MEMORY`. Cost: one pass over the blocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_from_blocks_d(
    n_blocks: i64,
    block_size: i64,
    layout: c_char,
    lower: *const f64,
    diag: *const f64,
    upper: *const f64,
    matrix: *mut *mut blocktri_matrix,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { make(matrix, || from_blocks((n_blocks, block_size), layout, [lower, diag, upper])) }
}

/// As `blocktri_matrix_from_blocks_d`, of single precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_from_blocks_s(
    n_blocks: i64,
    block_size: i64,
    layout: c_char,
    lower: *const f32,
    diag: *const f32,
    upper: *const f32,
    matrix: *mut *mut blocktri_matrix,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { make(matrix, || from_blocks((n_blocks, block_size), layout, [lower, diag, upper])) }
}

/// As `blocktri_matrix_from_blocks_d`, of complex double precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_from_blocks_z(
    n_blocks: i64,
    block_size: i64,
    layout: c_char,
    lower: *const c64,
    diag: *const c64,
    upper: *const c64,
    matrix: *mut *mut blocktri_matrix,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { make(matrix, || from_blocks((n_blocks, block_size), layout, [lower, diag, upper])) }
}

/// As `blocktri_matrix_from_blocks_d`, of complex single precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blocktri_matrix_from_blocks_c(
    n_blocks: i64,
    block_size: i64,
    layout: c_char,
    lower: *const c32,
    diag: *const c32,
    upper: *const c32,
    matrix: *mut *mut blocktri_matrix,
) -> blocktri_status {
    // SAFETY: the caller's word on all arrays.
    unsafe { make(matrix, || from_blocks((n_blocks, block_size), layout, [lower, diag, upper])) }
}
