"""Properties of random systems: nothing but answers with small residuals, and exceptions that say why not."""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import blocktri as bt

pytestmark = pytest.mark.filterwarnings("ignore::blocktri.AccuracyWarning")

FAILURES = (ValueError, TypeError, np.linalg.LinAlgError, MemoryError)
VALUES = st.one_of(
    st.integers(-4, 4).map(float),
    st.floats(-1e3, 1e3),
    st.sampled_from((np.nan, np.inf, -np.inf, 1e308, 1e-308, 5e-324, -0.0)),
)


def backward_error(a: Any, x: Any, b: Any) -> float:
    with np.errstate(all="ignore"):
        size = np.abs(a).sum(1).max() * np.abs(x).max() + np.abs(b).max()
        return float(np.abs(b - a @ x).max() / size) if size > 0 else 0.0


@given(
    st.integers(0, 8),
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from(("float32", "float64", "complex64", "complex128")),
    st.booleans(),
    st.data(),
)
@settings(max_examples=200, deadline=None)
def test_bands_of_small_integers(n: int, lower: int, upper: int, dtype: str, columns: bool, data: st.DataObject) -> None:
    small = st.integers(-3, 3).map(float)
    ab = data.draw(hnp.arrays(dtype, (lower + upper + 1, n), elements=small))
    b = data.draw(hnp.arrays(dtype, (n, 2) if columns else (n,), elements=small))
    dense = np.zeros((n, n), dtype)
    for i in range(n):
        for j in range(max(0, i - lower), min(n, i + upper + 1)):
            dense[i, j] = ab[upper + i - j, j]
    try:
        x = bt.solve_banded((lower, upper), ab, b)
    except np.linalg.LinAlgError:
        assert np.linalg.matrix_rank(dense.astype("complex128")) < n
        return
    assert x.shape == b.shape and x.dtype == np.dtype(dtype)
    if n > 0 and np.isfinite(x).all() and np.linalg.cond(dense.astype("complex128")) < 1e4:
        assert backward_error(dense, x, b) < 1e3 * np.finfo(dtype).eps


@given(
    st.integers(0, 6),
    st.lists(st.tuples(st.integers(-1, 6), st.integers(-1, 6), VALUES), max_size=30),
    st.data(),
)
@settings(max_examples=200, deadline=None)
def test_any_triplets_are_an_answer_or_an_exception(n: int, entries: list[Any], data: st.DataObject) -> None:
    b = data.draw(hnp.arrays("float64", n, elements=VALUES))
    rows, cols, values = (np.array(part) for part in zip(*entries)) if entries else (np.zeros(0, int),) * 3
    a = sp.csr_array((n, n), dtype=float)
    fake = sp.coo_array((n, n), dtype=float)
    fake.coords = (rows.astype(np.int64), cols.astype(np.int64))
    fake.data = values.astype(float)
    for matrix in (a, fake):
        try:
            x, report = bt.solve(matrix, b, return_report=True)
        except FAILURES:
            continue
        assert x.shape == b.shape
        if report.converged:
            assert report.backward_error is not None and report.backward_error < 1e-12


@given(st.integers(0, 5), st.integers(0, 12), st.data())
@settings(max_examples=200, deadline=None)
def test_index_arrays_that_lie(n: int, length: int, data: st.DataObject) -> None:
    index = st.integers(-3, 8)
    a = sp.csr_array((n, n), dtype=float)
    a.indptr = data.draw(hnp.arrays(data.draw(st.sampled_from((np.int32, np.int64))), length, elements=index))
    a.indices = data.draw(hnp.arrays(np.int32, data.draw(st.integers(0, 12)), elements=index))
    a.data = data.draw(hnp.arrays("float64", data.draw(st.integers(0, 12)), elements=VALUES))
    for call in (lambda: bt.solve(a, np.ones(n)), lambda: bt.info(a), lambda: bt.preconditioner(a, "ilu0")):
        try:
            call()
        except FAILURES:
            pass


@given(
    st.sampled_from(("float32", "float64", "complex64", "complex128", "int8", "bool", "float16", ">f8", "object", "S3")),
    st.integers(0, 4),
    st.integers(0, 4),
    st.data(),
)
@settings(max_examples=200, deadline=None)
def test_any_arrays_are_an_answer_or_an_exception(dtype: str, n: int, m: int, data: st.DataObject) -> None:
    shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
    a = np.resize(np.arange(1, 17), (n, m)).astype(dtype)
    b = np.resize(np.arange(3), data.draw(shapes)).astype(data.draw(st.sampled_from(("float64", dtype))))
    for call in (
        lambda: bt.solve(a, b),
        lambda: bt.solve_banded((1, 1), a, b),
        lambda: bt.solveh_banded(a, b),
        lambda: bt.factorize(a).solve(b, "T"),
        lambda: bt.solve_periodic(b, b, b, b),
        lambda: bt.solve_block_tridiagonal(a, b, a, b),
        lambda: bt.gmres(a, b),
    ):
        try:
            call()
        except FAILURES:
            pass
