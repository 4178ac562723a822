"""Matrices by their structure, and any matrix as the one of the extension."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from . import _blocktri
from ._arrays import Array, as_scalar, common, inexact

__all__ = ["Banded", "BlockTridiagonal", "Tridiagonal"]


class _Structured:
    """What the matrices of this module share."""

    _matrix: _blocktri.Matrix
    # NumPy leaves products with its arrays to this class.
    __array_ufunc__ = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._matrix.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Scalar."""
        return np.dtype(self._matrix.dtype)

    @property
    def ndim(self) -> int:
        """Always 2."""
        return 2

    @property
    def nnz(self) -> int:
        """Entries that are not zero."""
        return self._matrix.nnz

    def __matmul__(self, x: npt.ArrayLike) -> Array:
        """A @ x."""
        return apply(self._matrix, "N", x)

    def __rmatmul__(self, x: npt.ArrayLike) -> Array:
        """x @ A."""
        product: Array = apply(self._matrix, "T", np.asarray(x).T).T
        return product

    def toarray(self) -> Array:
        """The matrix as a dense array."""
        dense = np.zeros(self.shape, dtype=self.dtype)
        indptr, indices, data = self._matrix.to_csr()
        rows = np.repeat(np.arange(self.shape[0]), np.diff(indptr))
        dense[rows, indices] = data
        return dense

    def tocsr(self) -> Any:
        """The matrix as a `scipy.sparse.csr_array`."""
        return to_scipy(self._matrix)

    def __reduce__(self) -> tuple[Any, ...]:
        others = {name: value for name, value in vars(self).items() if name != "_matrix"}
        return _restore, (type(self), self.shape, *self._matrix.to_csr(), others)

    def __repr__(self) -> str:
        n, dtype = self.shape[0], self.dtype
        return f"<{type(self).__name__} {n} × {n} of {dtype}, {self.nnz} entries>"


def _restore(
    kind: type[_Structured], shape: tuple[int, int], indptr: Array, indices: Array, data: Array, others: dict[str, Any]
) -> _Structured:
    """A matrix from its pickle."""
    made = kind.__new__(kind)
    vars(made).update(others)
    made._matrix = _blocktri.Matrix.from_csr(*shape, indptr, indices, data)
    return made


class Tridiagonal(_Structured):
    """A tridiagonal matrix.

    Parameters
    ----------
    dl : array_like, shape (n - 1,)
        Entries below the diagonal.
    d : array_like, shape (n,)
        Diagonal.
    du : array_like, shape (n - 1,)
        Entries above the diagonal.

    Examples
    --------
    >>> import blocktri as bt
    >>> bt.Tridiagonal([1.0, 1.0], [2.0, 2.0, 2.0], [3.0, 3.0]).toarray()
    array([[2., 3., 0.],
           [1., 2., 3.],
           [0., 1., 2.]])
    """

    def __init__(self, dl: npt.ArrayLike, d: npt.ArrayLike, du: npt.ArrayLike) -> None:
        arrays = [inexact(a, name) for a, name in ((dl, "dl"), (d, "d"), (du, "du"))]
        dtype = common(*arrays)
        self._matrix = _blocktri.Matrix.from_diagonals(*(as_scalar(a, dtype) for a in arrays))


class Banded(_Structured):
    """A band matrix in the diagonal ordered form of SciPy and LAPACK.

    Parameters
    ----------
    l_and_u : (int, int)
        Numbers of diagonals below and above the main one.
    ab : array_like, shape (l + u + 1, n)
        ``ab[u + i - j, j] == a[i, j]``. What lies outside the matrix is not read.

    Examples
    --------
    >>> import blocktri as bt
    >>> bt.Banded((1, 0), [[1.0, 2.0, 3.0], [4.0, 5.0, 0.0]]).toarray()
    array([[1., 0., 0.],
           [4., 2., 0.],
           [0., 5., 3.]])
    """

    def __init__(self, l_and_u: tuple[SupportsIndex, SupportsIndex], ab: npt.ArrayLike) -> None:
        lower, upper = widths(l_and_u)
        array = inexact(ab, "ab")
        if array.ndim != 2:
            raise ValueError(f"ab must have two dimensions, not {array.ndim}")
        check_rows(lower, upper, array)
        self._matrix = _blocktri.Matrix.from_band(lower, upper, array)


class BlockTridiagonal(_Structured):
    """A block-tridiagonal matrix.

    Parameters
    ----------
    L : array_like of shape (m - 1, k, k), or sequence of m - 1 matrices
        Blocks below the diagonal: ``L[j]`` stands in block row j + 1.
    D : array_like of shape (m, k, k), or sequence of m square matrices
        Diagonal blocks.
    U : array_like of shape (m - 1, k, k), or sequence of m - 1 matrices
        Blocks above the diagonal: ``U[j]`` stands in block row j.

    Examples
    --------
    >>> import blocktri as bt
    >>> bt.BlockTridiagonal([[[5.0, 6.0]]], [[[1.0, 2.0], [3.0, 4.0]], [[9.0]]], [[[7.0], [8.0]]]).toarray()
    array([[1., 2., 7.],
           [3., 4., 8.],
           [5., 6., 9.]])
    """

    def __init__(self, L: Blocks, D: Blocks, U: Blocks) -> None:
        lower, diagonal, upper = blocks(L, "L"), blocks(D, "D"), blocks(U, "U")
        dtype = common(*diagonal, *lower, *upper) if diagonal else np.dtype(np.float64)
        scalars = [[as_scalar(b, dtype) for b in part] for part in (lower, diagonal, upper)]
        self._matrix = _blocktri.Matrix.from_blocks(*scalars)
        self._sizes = [b.shape[0] for b in diagonal]

    @property
    def block_sizes(self) -> list[int]:
        """Rows of the blocks."""
        return list(self._sizes)


Blocks = npt.ArrayLike | Sequence[npt.ArrayLike]


def blocks(given: Blocks, what: str) -> list[Array]:
    """A stack or a list of matrices as a list of arrays."""
    if isinstance(given, np.ndarray) and given.dtype != object:
        stack = inexact(given, what)
        if stack.ndim != 3:
            raise ValueError(f"{what} must be a stack of matrices, of three dimensions, not {stack.ndim}")
        return list(stack)
    if not isinstance(given, (list, tuple, np.ndarray)):
        raise TypeError(f"{what} must be a stack of matrices or a list of them")
    found = [inexact(block, f"{what}[{j}]") for j, block in enumerate(given)]
    for j, block in enumerate(found):
        if block.ndim != 2:
            raise ValueError(f"{what}[{j}] must have two dimensions, not {block.ndim}")
    return found


def widths(l_and_u: tuple[SupportsIndex, SupportsIndex]) -> tuple[int, int]:
    """The two numbers of diagonals."""
    lower, upper = (operator.index(width) for width in l_and_u)
    if lower < 0 or upper < 0:
        raise ValueError("the numbers of lower and upper diagonals must not be negative")
    return lower, upper


def check_rows(lower: int, upper: int, ab: Array) -> None:
    """As SciPy: l + u + 1 rows."""
    if lower + upper + 1 != ab.shape[-2]:
        raise ValueError(
            f"invalid values for the number of lower and upper diagonals: l+u+1 ({lower + upper + 1}) does not equal "
            f"ab.shape[-2] ({ab.shape[-2]})"
        )


def is_sparse(a: object) -> bool:
    """Whether it is a sparse array or matrix of SciPy, without importing SciPy."""
    if not (hasattr(a, "tocoo") and hasattr(a, "format")):
        return False
    return any(c.__module__.startswith("scipy.sparse") for c in type(a).__mro__)


def as_matrix(a: object) -> _blocktri.Matrix:
    """The matrix of the extension for anything that is a matrix."""
    if isinstance(a, _blocktri.Matrix):
        return a
    if isinstance(a, _Structured):
        return a._matrix
    if is_sparse(a):
        return from_scipy(a)
    array = inexact(a, "A")
    if array.ndim != 2:
        raise ValueError(f"A must have two dimensions, not {array.ndim}")
    return _blocktri.Matrix.from_dense(array)


def square(a: object) -> _blocktri.Matrix:
    """As `as_matrix`, of square matrices."""
    matrix = as_matrix(a)
    nrows, ncols = matrix.shape
    if nrows != ncols:
        raise ValueError(f"A must be square, and is {nrows} × {ncols}")
    return matrix


def from_scipy(a: Any) -> _blocktri.Matrix:
    """From a sparse array. Its index arrays are checked, and not trusted: a pointer that lies is an error."""
    if len(a.shape) != 2:
        raise ValueError(f"A must have two dimensions, not {len(a.shape)}")
    nrows, ncols = a.shape
    if a.format in ("csr", "csc"):
        data = _values(a.data)
        indptr, indices = _indices(a.indptr), _indices(a.indices)
        if a.format == "csr":
            return _blocktri.Matrix.from_csr(nrows, ncols, indptr, indices, data)
        return _blocktri.Matrix.from_csr(ncols, nrows, indptr, indices, data).transpose()
    coo = a.tocoo()
    return _blocktri.Matrix.from_triplets(nrows, ncols, _indices(coo.row), _indices(coo.col), _values(coo.data))


def _values(data: object) -> Array:
    array = inexact(data, "A.data")
    if array.ndim != 1:
        raise ValueError("A.data must have one dimension")
    return array


def _indices(indices: object) -> Array:
    array: Array = np.asarray(indices)
    if array.dtype.kind not in "ui":
        raise TypeError(f"indices must be integers, not {array.dtype}")
    if array.dtype in (np.dtype(np.int32), np.dtype(np.int64)) and array.dtype.isnative:
        return array
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError("an index is beyond 64 bits")
    return array.astype(np.int64)


def to_scipy(matrix: _blocktri.Matrix) -> Any:
    """A `scipy.sparse.csr_array`."""
    from scipy.sparse import csr_array

    indptr, indices, data = matrix.to_csr()
    return csr_array((data, indices, indptr), shape=matrix.shape)


def apply(matrix: _blocktri.Matrix, op: str, x: npt.ArrayLike) -> Array:
    """op(A) @ x, in the scalar that holds both; a complex x of a real matrix part by part."""
    array = inexact(x, "x")
    dtype = np.promote_types(array.dtype, matrix.dtype)
    if dtype.kind == "c" and np.dtype(matrix.dtype).kind != "c":
        part = np.empty(0, dtype).real.dtype
        matrix = of_dtype(matrix, part)
        real, imag = (as_scalar(np.asarray(a), part) for a in (array.real, array.imag))
        return np.asarray(matrix.apply(op, real) + 1j * matrix.apply(op, imag))
    return of_dtype(matrix, dtype).apply(op, as_scalar(array, dtype))


def of_dtype(matrix: _blocktri.Matrix, dtype: np.dtype[Any]) -> _blocktri.Matrix:
    """The matrix with its values as that scalar."""
    if np.dtype(matrix.dtype) == dtype:
        return matrix
    indptr, indices, data = matrix.to_csr()
    return _blocktri.Matrix.from_csr(*matrix.shape, indptr, indices, data.astype(dtype))
