"""What users give, as arrays of the four scalars."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

SCALARS = (np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.complex128), np.dtype(np.complex64))
_SINGLE = (np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.complex64))

Array = npt.NDArray[Any]


def inexact(a: object, what: str) -> Array:
    """An array of one of the four scalars, in native byte order.

    An array that is one already is returned as it is, whatever its order and strides. Integers and bools become float64, half precision
    becomes single.
    """
    if isinstance(a, np.ma.MaskedArray):
        raise ValueError("masked arrays are not supported")
    if hasattr(a, "tocoo") and hasattr(a, "toarray"):
        raise TypeError(f"{what} is sparse, and a dense array is needed: {what}.toarray() is one")
    array: Array = np.asarray(a)
    dtype = array.dtype
    if dtype in SCALARS:
        if not dtype.isnative or not array.flags.aligned:
            array = array.astype(dtype.newbyteorder("="))
        return array
    kind = dtype.kind
    if kind in "bui":
        return array.astype(np.float64)
    if kind in "fc" and dtype.itemsize <= 16 and not (kind == "f" and dtype.itemsize > 8):
        native = dtype.newbyteorder("=")
        if native in SCALARS:
            return array.astype(native)
        return array.astype(np.float32)
    if kind == "O" and array.ndim == 0:
        raise TypeError(f"{what} is of type {type(a).__name__}, which is no array of numbers")
    if kind == "O":
        raise TypeError(f"{what} is an array of objects; convert it to numbers first")
    raise TypeError(f"{what} is of {dtype}; float32, float64, complex64 and complex128 are solved, integers and bools as float64")


def common(*arrays: Array) -> np.dtype[Any]:
    """The scalar that holds all of them."""
    return np.result_type(*arrays)


def as_scalar(array: Array, dtype: np.dtype[Any]) -> Array:
    """The array of that scalar, copied where it is of another."""
    return array if array.dtype == dtype else array.astype(dtype)


def check_finite(array: Array) -> None:
    """As SciPy's `check_finite`."""
    if array.size and not np.isfinite(array).all():
        raise ValueError("array must not contain infs or NaNs")


def right_hand_side(b: object, n: int, dtype: np.dtype[Any] | None = None) -> Array:
    """A vector of n entries, or a matrix of n rows."""
    array = inexact(b, "b")
    if array.ndim not in (1, 2):
        raise ValueError(f"b must have one or two dimensions, not {array.ndim}")
    if array.shape[0] != n:
        raise ValueError(f"b has {array.shape[0]} rows, the matrix has {n}")
    return array if dtype is None else as_scalar(array, dtype)
