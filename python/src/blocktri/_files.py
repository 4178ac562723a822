"""Files of matrices."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _blocktri
from ._arrays import inexact
from ._matrices import _Structured, as_matrix, is_sparse, to_scipy

__all__ = ["read", "write"]


def read(path: str | os.PathLike[str]) -> Any:
    """Read a sparse matrix of Matrix Market, Harwell–Boeing or PETSc, plain or gzip.

    Parameters
    ----------
    path : path_like
        File.

    Returns
    -------
    scipy.sparse.csr_array
        Of float64, or of complex128 where the file is complex.

    Raises
    ------
    ValueError
        On a file that is not what its format demands, with the line.
    OSError
        When it cannot be read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import blocktri as bt
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "A.mtx"
    >>> bt.write(path, bt.Tridiagonal([1.0], [2.0, 2.0], [3.0]))
    >>> bt.read(path).toarray()
    array([[2., 3.],
           [1., 2.]])
    >>> folder.cleanup()
    """
    matrix, notes = _blocktri.read(os.fsdecode(path))
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    return to_scipy(matrix)


def write(path: str | os.PathLike[str], a: object, *, comments: Sequence[str] = ()) -> None:
    """Write a matrix or vector as a Matrix Market file, whole or not at all.

    Parameters
    ----------
    path : path_like
        File; one that ends in ``.gz`` is packed.
    a : sparse array, Tridiagonal, Banded, BlockTridiagonal, or array_like
        A matrix with entries is written by coordinates, an array as an array. The decimals read back to the same bits.
    comments : sequence of str, optional
        Lines of comments.

    Examples
    --------
    See `read`.
    """
    lines = [comments] if isinstance(comments, str) else list(comments)
    if is_sparse(a) or isinstance(a, (_Structured, _blocktri.Matrix)):
        _blocktri.write_matrix(os.fsdecode(path), as_matrix(a), lines)
        return
    array = inexact(a, "a")
    if array.ndim not in (1, 2):
        raise ValueError(f"a must have one or two dimensions, not {array.ndim}")
    _blocktri.write_columns(os.fsdecode(path), np.asarray(array), lines)
