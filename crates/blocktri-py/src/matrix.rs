//! A sparse matrix of any scalar, made from arrays and read as arrays.

use std::sync::Arc;

use blocktri::faer::Mat;
use blocktri::{AnyMatrix, AnyScalar, Coo, Csr, Op, StoredMatrix};
use bt_formats::{Par, memory};
use numpy::ndarray::{ArrayView2, ArrayViewD};
use numpy::{PyArray1, PyArrayDyn, PyArrayMethods, PyUntypedArray};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::arrays::{
    Number, array_of, columns, copied, dtype_name, kind_of, line, matrix, plane, regular, room, typed, with_scalar,
    zeros,
};
use crate::errors::{exception, of_input};
use crate::report::python;
use crate::run::run;

/// A square or rectangular matrix.
#[pyclass(frozen, module = "blocktri._blocktri")]
pub struct Matrix {
    pub of: Arc<AnyMatrix>,
}

impl Matrix {
    pub fn new(of: AnyMatrix) -> Self {
        Self { of: Arc::new(of) }
    }
}

/// Indices of any integer type that SciPy has, as those of this library.
fn indices(array: &Bound<'_, PyUntypedArray>, what: &str) -> PyResult<Vec<u32>> {
    fn cast<T: Copy>(array: &ArrayViewD<'_, T>, what: &str, to: impl Fn(T) -> Option<u32>) -> PyResult<Vec<u32>> {
        let values = line(array, what)?;
        let mut cast = room(values.len(), what).map_err(|e| of_input(&e))?;
        for &value in values {
            let wrong = || PyValueError::new_err(format!("{what} has an index below 0 or beyond 32 bits"));
            cast.push(to(value).ok_or_else(wrong)?);
        }
        Ok(cast)
    }
    if let Ok(array) = array.cast::<PyArrayDyn<i32>>() {
        return cast(&regular(array)?.try_readonly()?.as_array(), what, |v| u32::try_from(v).ok());
    }
    if let Ok(array) = array.cast::<PyArrayDyn<i64>>() {
        return cast(&regular(array)?.try_readonly()?.as_array(), what, |v| u32::try_from(v).ok());
    }
    Err(PyTypeError::new_err(format!("{what} must be of int32 or int64")))
}

/// From compressed rows whose columns may be unsorted or repeated, and whose pointers may lie.
fn from_rows<T: AnyScalar>(
    (nrows, ncols): (usize, usize),
    row_ptr: Vec<u32>,
    col_idx: Vec<u32>,
    values: Vec<T>,
) -> Result<Csr<T>, bt_formats::Error> {
    let in_order = |r: &[u32]| r.windows(2).all(|w| w[0] <= w[1]);
    let honest = row_ptr.len() == nrows.saturating_add(1)
        && row_ptr[0] == 0
        && in_order(&row_ptr)
        && row_ptr[nrows] as usize == col_idx.len()
        && col_idx.len() == values.len();
    if !honest {
        // Let the constructor say what is wrong.
        return Csr::new(nrows, ncols, row_ptr, col_idx, values);
    }
    let rows = |i: usize| row_ptr[i] as usize..row_ptr[i + 1] as usize;
    if (0..nrows).all(|i| col_idx[rows(i)].windows(2).all(|w| w[0] < w[1])) {
        return Csr::new(nrows, ncols, row_ptr, col_idx, values);
    }
    let mut of_entries = room(col_idx.len(), "row indices")?;
    (0..nrows).for_each(|i| of_entries.resize(row_ptr[i + 1] as usize, i as u32));
    Coo::from_triplets(nrows, ncols, of_entries, col_idx, values)?.to_csr()
}

/// The entries that are not zero: counted, and then taken.
fn nonzeros<T: Number>(a: &ArrayView2<'_, T>) -> Result<Csr<T>, bt_formats::Error> {
    /// Entries between two questions whether there is memory for them.
    const STEP: usize = 1 << 24;
    let (nrows, ncols) = a.dim();
    let is_entry = |v: &T| *v != bt_formats::zero::<T>();
    let mut row_ptr = room(nrows.saturating_add(1), "row pointers")?;
    row_ptr.push(0);
    let (mut nnz, mut asked) = (0, 0);
    for row in a.rows() {
        nnz += row.iter().filter(|v| is_entry(v)).count();
        row_ptr.push(u32::try_from(nnz).map_err(|_| bt_formats::Error::TooLarge {
            what: "A",
            needed: format!("at least {nnz} entries"),
            limit: format!("the {} of 32-bit indices", u32::MAX),
        })?);
        if nnz - asked > STEP {
            asked = nnz;
            memory::ask((nnz * (size_of::<u32>() + size_of::<T>())) as u64, "the entries of A")?;
        }
    }
    let (mut col_idx, mut values) = (room(nnz, "the columns of A")?, room(nnz, "the entries of A")?);
    for row in a.rows() {
        for (j, &v) in row.iter().enumerate().filter(|(_, v)| is_entry(v)) {
            col_idx.push(j as u32);
            values.push(v);
        }
    }
    Csr::new(nrows, ncols, row_ptr, col_idx, values)
}

#[pymethods]
impl Matrix {
    /// From the three arrays of compressed rows.
    #[staticmethod]
    fn from_csr(
        nrows: usize,
        ncols: usize,
        indptr: &Bound<'_, PyUntypedArray>,
        column_indices: &Bound<'_, PyUntypedArray>,
        data: &Bound<'_, PyUntypedArray>,
    ) -> PyResult<Self> {
        let (row_ptr, col_idx) = (indices(indptr, "indptr")?, indices(column_indices, "indices")?);
        with_scalar!(kind_of(data)?, T => {
            let values = copied(&line(&typed::<T>(data)?.as_array(), "data")?, "data")?;
            // SciPy's arrays may be longer than what the pointers use.
            let used = row_ptr.last().map_or(0, |&end| end as usize);
            let (mut col_idx, mut values) = (col_idx, values);
            if used < col_idx.len() && used < values.len() {
                col_idx.truncate(used);
                values.truncate(used);
            }
            Ok(Self::new(from_rows((nrows, ncols), row_ptr, col_idx, values).map_err(|e| of_input(&e))?.into()))
        })
    }

    /// From triplets in any order; those of one place are added.
    #[staticmethod]
    fn from_triplets(
        nrows: usize,
        ncols: usize,
        rows: &Bound<'_, PyUntypedArray>,
        cols: &Bound<'_, PyUntypedArray>,
        data: &Bound<'_, PyUntypedArray>,
    ) -> PyResult<Self> {
        let (rows, cols) = (indices(rows, "row indices")?, indices(cols, "column indices")?);
        with_scalar!(kind_of(data)?, T => {
            let values = copied(&line(&typed::<T>(data)?.as_array(), "data")?, "data")?;
            let coo = Coo::from_triplets(nrows, ncols, rows, cols, values).map_err(|e| of_input(&e))?;
            Ok(Self::new(coo.to_csr().map_err(|e| of_input(&e))?.into()))
        })
    }

    /// A dense matrix, or of one that is mostly zero the other entries.
    #[staticmethod]
    fn from_dense(py: Python<'_>, a: &Bound<'_, PyUntypedArray>) -> PyResult<Self> {
        with_scalar!(kind_of(a)?, T => {
            let a = typed::<T>(a)?;
            let a = a.as_array();
            let a = plane(&a, "A")?;
            let is_full = py.detach(|| 2 * a.iter().filter(|v| **v != bt_formats::zero::<T>()).count() > a.len());
            if is_full {
                let made = StoredMatrix::try_from(matrix(&a, "A")?);
                return Ok(Self::new(T::matrix(made.map_err(|e| exception(py, &e))?)));
            }
            Ok(Self::new(py.detach(|| nonzeros(&a)).map_err(|e| of_input(&e))?.into()))
        })
    }

    /// From three diagonals.
    #[staticmethod]
    fn from_diagonals(
        py: Python<'_>,
        lower: &Bound<'_, PyUntypedArray>,
        diag: &Bound<'_, PyUntypedArray>,
        upper: &Bound<'_, PyUntypedArray>,
    ) -> PyResult<Self> {
        with_scalar!(kind_of(diag)?, T => {
            let of = |array, what: &str| copied(&line(&typed::<T>(array)?.as_array(), what)?, what);
            let (lower, diag, upper) = (of(lower, "dl")?, of(diag, "d")?, of(upper, "du")?);
            let made = AnyMatrix::from_diagonals(&lower, &diag, &upper);
            Ok(Self::new(made.map_err(|e| exception(py, &e))?))
        })
    }

    /// From LAPACK's band storage without room for fill.
    #[staticmethod]
    fn from_band(py: Python<'_>, kl: usize, ku: usize, ab: &Bound<'_, PyUntypedArray>) -> PyResult<Self> {
        with_scalar!(kind_of(ab)?, T => {
            let ab = typed::<T>(ab)?;
            let ab = matrix(&plane(&ab.as_array(), "ab")?, "ab")?;
            Ok(Self::new(AnyMatrix::from_band(kl, ku, ab.as_ref()).map_err(|e| exception(py, &e))?))
        })
    }

    /// From blocks below, on and above the diagonal, all of one scalar.
    #[staticmethod]
    #[allow(clippy::needless_pass_by_value)] // what lists of arrays are extracted as
    fn from_blocks(
        py: Python<'_>,
        lower: Vec<Bound<'_, PyUntypedArray>>,
        diag: Vec<Bound<'_, PyUntypedArray>>,
        upper: Vec<Bound<'_, PyUntypedArray>>,
    ) -> PyResult<Self> {
        let Some(first) = diag.first() else { return Err(PyValueError::new_err("there are no diagonal blocks")) };
        with_scalar!(kind_of(first)?, T => {
            let of = |arrays: &[Bound<'_, PyUntypedArray>], what: &str| {
                let blocks = arrays.iter().map(|array| matrix(&plane(&typed::<T>(array)?.as_array(), what)?, what));
                blocks.collect::<PyResult<Vec<Mat<T>>>>()
            };
            let (lower, diag, upper) = (of(&lower, "a lower block")?, of(&diag, "a diagonal block")?, of(&upper, "an upper block")?);
            Ok(Self::new(
                AnyMatrix::from_blocks(&views_of(&lower), &views_of(&diag), &views_of(&upper)).map_err(|e| exception(py, &e))?,
            ))
        })
    }

    /// Rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.of.nrows(), self.of.ncols())
    }

    /// Stored entries.
    #[getter]
    fn nnz(&self) -> usize {
        self.of.nnz()
    }

    /// NumPy's name of the scalar.
    #[getter]
    fn dtype(&self) -> &'static str {
        dtype_name(self.of.kind())
    }

    /// Pointers, columns and values of the compressed rows.
    #[allow(clippy::type_complexity)] // three arrays
    fn to_csr<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<i32>>, Bound<'py, PyAny>)> {
        let signed = |indices: &[u32]| {
            let signed = indices.iter().map(|&i| i32::try_from(i)).collect::<Result<Vec<_>, _>>();
            Ok::<_, PyErr>(PyArray1::from_vec(
                py,
                signed.map_err(|_| PyOverflowError::new_err("too many entries for int32"))?,
            ))
        };
        with_scalar!(self.of.kind(), T => {
            let a = self.rows::<T>(py)?;
            Ok((signed(a.row_ptr())?, signed(a.col_idx())?, PyArray1::from_slice(py, a.values()).into_any()))
        })
    }

    /// The transpose.
    fn transpose(&self, py: Python<'_>) -> PyResult<Self> {
        with_scalar!(self.of.kind(), T => Ok(Self::new(self.rows::<T>(py)?.transpose().into())))
    }

    /// op(A)·X for a vector or the columns of a matrix, op being "N", "T" or "C".
    fn apply<'py>(&self, py: Python<'py>, op: &str, x: &Bound<'py, PyUntypedArray>) -> PyResult<Bound<'py, PyAny>> {
        let op = operation(op)?;
        with_scalar!(self.of.kind(), T => {
            let a = self.typed::<T>()?.as_matrix();
            let x = typed::<T>(x)?;
            let ndim = x.as_array().ndim();
            let x = columns(&x.as_array(), "x")?;
            let (nrows, ncols) = op.shape(a.nrows(), a.ncols());
            if x.nrows() != ncols {
                return Err(PyValueError::new_err(format!("x has {} rows and must have {ncols}", x.nrows())));
            }
            let y = py.detach(|| {
                let mut y = zeros(nrows, x.ncols())?;
                a.apply_many(op, bt_formats::one(), x.as_ref(), bt_formats::zero(), y.as_mut(), Par::Seq);
                Ok::<_, bt_formats::Error>(y)
            });
            let y = y.map_err(|e| of_input(&e))?;
            array_of::<T>(py, y.as_ref(), ndim)
        })
    }

    /// What can be known before a solve, as a dictionary.
    #[pyo3(signature = (threads=None))]
    fn analyze<'py>(&self, py: Python<'py>, threads: Option<usize>) -> PyResult<Bound<'py, PyAny>> {
        let a = Arc::clone(&self.of);
        let analysis = run(py, threads, a.nrows(), move |_| a.analyze())?.map_err(|e| exception(py, &e))?;
        let (s, rcm) = (&analysis.structure, &analysis.rcm);
        let (min, max) = s.natural.min_max_size();
        let candidates: Vec<Value> = analysis
            .candidates
            .iter()
            .map(|c| {
                let (method, reorder) = (c.method.name(), c.reorder.name());
                json!({ "method": method, "reorder": reorder, "flops": c.work.flops, "seconds": c.seconds, "seconds_after_order": c.seconds_after_order(), "bytes": c.bytes, "structure": c.structure })
            })
            .collect();
        let formats: Map<String, Value> = analysis
            .bytes
            .iter()
            .map(|f| (f.format.to_owned(), f.bytes.map_or(Value::Null, |b| json!(b as f64))))
            .collect();
        let value = json!({
            "scalar": self.of.kind().to_string(),
            "n": s.n,
            "nnz": s.stored,
            "nonzeros": s.nnz,
            "symmetry": s.symmetry.to_string(),
            "pattern_symmetry": s.pattern_symmetry,
            "definiteness": { "guess": s.definiteness.to_string(), "reason": s.definiteness_reason },
            "bandwidth": { "kl": s.kl, "ku": s.ku, "profile": s.profile },
            "bandwidth_rcm": { "kl": rcm.kl, "ku": rcm.ku },
            "dominance": {
                "rows": { "kind": s.row_dominance.kind.to_string(), "min_ratio": s.row_dominance.min_ratio },
                "columns": { "kind": s.column_dominance.kind.to_string(), "min_ratio": s.column_dominance.min_ratio },
            },
            "zero_diagonal": s.zero_diagonal.count,
            "empty_rows": s.empty_rows.count,
            "empty_columns": s.empty_columns.count,
            "components": s.components,
            "corner": s.corner.to_string(),
            "blocks": { "count": s.natural.n_blocks(), "min": min, "max": max },
            "bytes": formats,
            "candidates": candidates,
            "choice": analysis.choice,
        });
        python(py, &value)
    }
}

impl Matrix {
    /// The matrix, of this scalar.
    pub fn typed<T: Number>(&self) -> PyResult<&StoredMatrix<T>> {
        T::of_matrix(&self.of).ok_or_else(|| PyTypeError::new_err("the matrix is of another scalar"))
    }

    /// By compressed rows.
    fn rows<T: Number>(&self, py: Python<'_>) -> PyResult<&Csr<T>> {
        let a = self.typed::<T>()?;
        py.detach(|| a.rows()).map_err(|e| exception(py, &e))
    }
}

fn views_of<T: Number>(blocks: &[Mat<T>]) -> Vec<blocktri::faer::MatRef<'_, T>> {
    blocks.iter().map(Mat::as_ref).collect()
}

/// SciPy's letters for A, Aᵀ and Aᴴ.
pub fn operation(name: &str) -> PyResult<Op> {
    match name {
        "N" => Ok(Op::Identity),
        "T" => Ok(Op::Transpose),
        "C" | "H" => Ok(Op::Adjoint),
        _ => Err(PyValueError::new_err(format!("trans must be 'N', 'T' or 'H', not '{name}'"))),
    }
}
