"""What the tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

Array = npt.NDArray[Any]

DTYPES = ("float32", "float64", "complex64", "complex128")


def random(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    """Numbers in the unit square or interval."""
    real = rng.uniform(-1, 1, shape)
    if np.dtype(dtype).kind == "c":
        return (real + 1j * rng.uniform(-1, 1, shape)).astype(dtype)
    return real.astype(dtype)


def tolerance(dtype: Any) -> float:
    """What well-conditioned systems of this scalar are solved to."""
    return 2e-4 if np.dtype(dtype).itemsize // (2 if np.dtype(dtype).kind == "c" else 1) == 4 else 1e-11


def close(x: Any, y: Any, dtype: Any) -> None:
    """Same shape, and values as close as the scalar allows."""
    x, y = np.asarray(x), np.asarray(y)
    assert x.shape == y.shape
    np.testing.assert_allclose(x, y, rtol=tolerance(dtype), atol=tolerance(dtype))


def as_order(a: Array, order: str) -> Array:
    """The same numbers in another place: C, Fortran, strided, or with negative strides."""
    if order in ("C", "F"):
        return np.array(a, order="C" if order == "C" else "F")
    if order == "strided":
        wide = np.zeros(tuple(2 * n for n in a.shape), a.dtype)
        view = wide[tuple(slice(None, None, 2) for _ in a.shape)]
        view[...] = a
        return view
    flipped = np.ascontiguousarray(np.flip(a))
    return np.flip(flipped)


@pytest.fixture
def rng() -> np.random.Generator:
    """The same numbers every time."""
    return np.random.default_rng(20)


def band(rng: np.random.Generator, shape: tuple[int, ...], lower: int, upper: int, n: int, dtype: Any) -> Array:
    """Diagonally dominant bands in diagonal ordered form, with NaN-free rubbish outside the matrix."""
    ab = random(rng, (*shape, lower + upper + 1, n), dtype)
    ab[..., upper, :] += np.asarray(lower + upper + 2, dtype=dtype)
    return ab


def dense_of_band(ab: Array, lower: int, upper: int) -> Array:
    """The dense matrix of a band."""
    n = ab.shape[-1]
    a = np.zeros((*ab.shape[:-2], n, n), ab.dtype)
    for i in range(n):
        for j in range(max(0, i - lower), min(n, i + upper + 1)):
            a[..., i, j] = ab[..., upper + i - j, j]
    return a
