"""Band, tridiagonal, periodic and block-tridiagonal systems against SciPy and dense solves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import blocktri as bt
from conftest import DTYPES, as_order, band, close, dense_of_band, random

WIDTHS = ((0, 0), (1, 1), (1, 0), (0, 2), (2, 1), (3, 5), (1, 2))
ORDERS = ("C", "F", "strided", "negative")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("n", (1, 2, 3, 7, 40))
def test_band_is_scipys(rng: np.random.Generator, dtype: str, widths: tuple[int, int], n: int) -> None:
    lower, upper = widths
    ab = band(rng, (), lower, upper, n, dtype)
    for shape in ((n,), (n, 1), (n, 3)):
        b = random(rng, shape, dtype)
        x = bt.solve_banded(widths, ab, b)
        assert x.dtype == np.dtype(dtype)
        close(x, scipy.linalg.solve_banded(widths, ab, b), dtype)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("widths", ((1, 1), (2, 3)))
def test_strides_do_not_matter(rng: np.random.Generator, order: str, dtype: str, widths: tuple[int, int]) -> None:
    ab, b = band(rng, (), *widths, 11, dtype), random(rng, (11, 2), dtype)
    expected = bt.solve_banded(widths, ab, b)
    moved_ab, moved_b = as_order(ab, order), as_order(b, order)
    moved_ab.flags.writeable = moved_b.flags.writeable = False
    assert np.array_equal(bt.solve_banded(widths, moved_ab, moved_b), expected)
    assert np.array_equal(bt.solve_banded(widths, moved_ab, moved_b[:, 0]), bt.solve_banded(widths, ab, b[:, 0]))


def test_nothing_is_overwritten(rng: np.random.Generator) -> None:
    for widths in ((1, 1), (2, 1)):
        ab, b = band(rng, (), *widths, 30, "float64"), random(rng, (30,), "float64")
        copies = ab.copy(), b.copy()
        bt.solve_banded(widths, ab, b, overwrite_ab=True, overwrite_b=True)
        assert np.array_equal(ab, copies[0]) and np.array_equal(b, copies[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("widths", ((1, 1), (2, 1)))
@pytest.mark.parametrize("batch", ((3,), (2, 2), (17,), (1,)))
def test_batches(rng: np.random.Generator, dtype: str, widths: tuple[int, int], batch: tuple[int, ...]) -> None:
    n = 9
    ab = band(rng, batch, *widths, n, dtype)
    for b in (random(rng, (n,), dtype), random(rng, (*batch, n, 2), dtype), random(rng, (n, 1), dtype)):
        x = bt.solve_banded(widths, ab, b)
        columns = b[..., None] if b.ndim == 1 else b
        expected = np.linalg.solve(dense_of_band(ab, *widths), np.broadcast_to(columns, (*batch, n, columns.shape[-1])))
        close(x, expected[..., 0] if b.ndim == 1 else expected, dtype)
    one = ab[(0,) * len(batch)]
    many = random(rng, (*batch, n, 2), dtype)
    x = bt.solve_banded(widths, one, many)
    close(x, np.linalg.solve(dense_of_band(one, *widths), many), dtype)


@pytest.mark.parametrize("widths", ((1, 1), (2, 1)))
def test_one_bad_system_does_not_spoil_the_others(rng: np.random.Generator, widths: tuple[int, int]) -> None:
    ab, b = band(rng, (20,), *widths, 6, "float64"), random(rng, (20, 6, 1), "float64")
    good = bt.solve_banded(widths, ab, b)
    ab[7] = 0
    x, report = bt.solve_banded(widths, ab, b, return_report=True)
    assert np.isnan(x[7]).all()
    rest = np.arange(20) != 7
    assert np.array_equal(x[rest], good[rest])
    assert [s == "solved" for s in report.status] == list(rest)
    assert "singular" in report.status[7] and report.outcome == "inaccurate"
    with pytest.raises(bt.SingularMatrixError) as raised:
        bt.solve_banded(widths, ab, b)
    assert raised.value.system == 7 and raised.value.row is not None


@pytest.mark.parametrize("widths", ((1, 1), (2, 1)))
def test_singular_band(widths: tuple[int, int]) -> None:
    ab = np.zeros((sum(widths) + 1, 4))
    ab[widths[1]] = [1.0, 2.0, 0.0, 3.0]
    with pytest.raises(np.linalg.LinAlgError, match="singular") as raised:
        bt.solve_banded(widths, ab, np.ones(4))
    assert getattr(raised.value, "row") == 2


@pytest.mark.parametrize("widths", ((1, 1), (2, 2)))
def test_the_report_of_a_band(rng: np.random.Generator, widths: tuple[int, int]) -> None:
    ab, b = band(rng, (), *widths, 50, "float64"), random(rng, (50,), "float64")
    x, report = bt.solve_banded(widths, ab, b, return_report=True)
    assert np.array_equal(x, bt.solve_banded(widths, ab, b))
    assert report.converged and report.backward_error is not None and report.backward_error < 1e-15
    residual = np.linalg.norm(b - dense_of_band(ab, *widths) @ x) / np.linalg.norm(b)
    assert report.relative_residual == pytest.approx(residual, rel=0.5, abs=1e-16)


def test_integers_and_bools_are_doubles() -> None:
    ab = np.array([[0, 1, 1], [4, 4, 4], [1, 1, 0]])
    for b in (np.array([5, 6, 5]), np.array([True, True, False]), [5, 6, 5]):
        x = bt.solve_banded((1, 1), ab, b)
        assert x.dtype == np.float64
        close(x, scipy.linalg.solve_banded((1, 1), ab, b), "float64")


@pytest.mark.parametrize("first", DTYPES)
@pytest.mark.parametrize("second", DTYPES)
def test_mixed_scalars(rng: np.random.Generator, first: str, second: str) -> None:
    ab, b = band(rng, (), 1, 2, 8, first), random(rng, (8,), second)
    x = bt.solve_banded((1, 2), ab, b)
    assert x.dtype == np.result_type(first, second)
    worst = min((first, second), key=lambda d: np.finfo(d).precision)
    close(x, np.linalg.solve(dense_of_band(ab, 1, 2), b), worst)


def test_shapes_that_do_not_fit() -> None:
    ab = np.ones((3, 4))
    for wrong in (((1, 1), ab, np.ones(5)), ((1, 2), ab, np.ones(4)), ((1, 1), np.ones(4), np.ones(4))):
        with pytest.raises(ValueError):
            bt.solve_banded(*wrong)
    with pytest.raises(ValueError):
        bt.solve_banded((-1, 3), ab, np.ones(4))
    with pytest.raises(TypeError):
        bt.solve_banded((1.0, 1), ab, np.ones(4))  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        bt.solve_banded((1, 1), np.ones((2, 3, 4)), np.ones((3, 4, 1)))


def test_nothing_to_solve() -> None:
    for widths, ab, b in (((1, 1), np.ones((3, 0)), np.ones(0)), ((2, 1), np.ones((4, 5)), np.ones((5, 0)))):
        x = bt.solve_banded(widths, ab, b)
        assert x.shape == b.shape and x.dtype == np.float64
    assert bt.solve_banded((1, 1), np.ones((0, 3, 4)), np.ones(4)).shape == (0, 4)


@pytest.mark.parametrize("bad", (np.nan, np.inf))
@pytest.mark.parametrize("widths", ((1, 1), (2, 1)))
def test_values_that_are_not_finite(bad: float, widths: tuple[int, int]) -> None:
    ab = np.ones((sum(widths) + 1, 5))
    ab[widths[1]] = 9.0
    for check in (True, False):
        spoiled = ab.copy()
        spoiled[widths[1], 2] = bad
        with pytest.raises((ValueError, np.linalg.LinAlgError)):
            bt.solve_banded(widths, spoiled, np.ones(5), check_finite=check)
    with pytest.raises(ValueError, match="infs or NaNs"):
        bt.solve_banded(widths, ab, np.full(5, bad))


@pytest.mark.parametrize("lower", (True, False))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", (1, 2, 5, 23))
@pytest.mark.parametrize("width", (0, 1, 3))
def test_hermitian_band_is_scipys(rng: np.random.Generator, lower: bool, dtype: str, n: int, width: int) -> None:
    ab = random(rng, (width + 1, n), dtype)
    ab[0 if lower else width] = np.abs(ab[0 if lower else width]) + 2 * width + 1
    b = random(rng, (n, 2), dtype)
    x = bt.solveh_banded(ab, b, lower=lower)
    clipped = min(width, n - 1)
    kept = ab[: clipped + 1] if lower else ab[width - clipped :]
    close(x, scipy.linalg.solveh_banded(kept, b, lower=lower), dtype)
    y, report = bt.solveh_banded(ab, b, lower=lower, return_report=True)
    close(y, x, dtype)
    assert report.converged


def test_hermitian_band_that_is_not_definite() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        bt.solveh_banded(np.array([[1.0, -1.0, 1.0], [0.0, 0.0, 0.0]]), np.ones(3), lower=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", (1, 2, 3, 100, 1001))
def test_tridiagonal(rng: np.random.Generator, dtype: str, n: int) -> None:
    dl, d, du = random(rng, (n - 1,), dtype), random(rng, (n,), dtype) + np.asarray(3, dtype), random(rng, (n - 1,), dtype)
    b = random(rng, (n,), dtype)
    dense = np.diag(d) + np.diag(dl, -1) + np.diag(du, 1)
    close(bt.solve_tridiagonal(dl, d, du, b), np.linalg.solve(dense, b), dtype)
    with pytest.raises(ValueError):
        bt.solve_tridiagonal(np.ones(n), d, du, b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", ((), (3,)))
@pytest.mark.parametrize("n", (3, 4, 50))
def test_periodic(rng: np.random.Generator, dtype: str, batch: tuple[int, ...], n: int) -> None:
    dl, d, du = (random(rng, (*batch, n), dtype) for _ in range(3))
    d += np.asarray(4, dtype)
    dense = np.zeros((*batch, n, n), dtype)
    for i in range(n):
        dense[..., i, i] += d[..., i]
        dense[..., i, (i - 1) % n] += dl[..., i]
        dense[..., i, (i + 1) % n] += du[..., i]
    b = random(rng, (*batch, n, 2), dtype)
    x, report = bt.solve_periodic(dl, d, du, b, return_report=True)
    close(x, np.linalg.solve(dense, b), dtype)
    assert report.converged
    for wrong in (n - 1, 2):
        with pytest.raises(ValueError):
            bt.solve_periodic(dl[..., :wrong], d[..., :wrong], du[..., :wrong], b)


def blocks(rng: np.random.Generator, m: int, k: int, dtype: Any) -> tuple[Any, Any, Any, Any]:
    """A dominant block-tridiagonal matrix and its dense form."""
    lower, diagonal, upper = random(rng, (m - 1, k, k), dtype), random(rng, (m, k, k), dtype), random(rng, (m - 1, k, k), dtype)
    diagonal = diagonal + 4 * k * np.eye(k, dtype=dtype)
    dense = np.zeros((m * k, m * k), dtype)
    for j in range(m):
        at = slice(j * k, (j + 1) * k)
        dense[at, at] = diagonal[j]
        if j > 0:
            before = slice((j - 1) * k, j * k)
            dense[at, before], dense[before, at] = lower[j - 1], upper[j - 1]
    return lower, diagonal, upper, dense


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m,k", ((1, 3), (2, 1), (5, 3), (4, 8)))
def test_block_tridiagonal(rng: np.random.Generator, dtype: str, m: int, k: int) -> None:
    lower, diagonal, upper, dense = blocks(rng, m, k, dtype)
    for b in (random(rng, (m * k,), dtype), random(rng, (m * k, 2), dtype)):
        x, report = bt.solve_block_tridiagonal(lower, diagonal, upper, b, return_report=True)
        close(x, np.linalg.solve(dense, b), dtype)
        close(bt.solve_block_tridiagonal(lower, diagonal, upper, b), x, dtype)
        close(bt.solve_block_tridiagonal(list(lower), list(diagonal), list(upper), b), x, dtype)
        assert report.converged and x.dtype == np.dtype(dtype)
    if k > 1 and m > 1:
        b = random(rng, (m, k), dtype)
        close(bt.solve_block_tridiagonal(lower, diagonal, upper, b), np.linalg.solve(dense, b.ravel()).reshape(m, k), dtype)


def test_stacks_of_block_tridiagonal_systems(rng: np.random.Generator) -> None:
    parts = [blocks(rng, 3, 2, "float64") for _ in range(4)]
    lower, diagonal, upper = (np.stack([p[i] for p in parts]) for i in range(3))
    b = random(rng, (4, 6, 1), "float64")
    x = bt.solve_block_tridiagonal(lower, diagonal, upper, b)
    close(x, np.linalg.solve(np.stack([p[3] for p in parts]), b), "float64")
    diagonal[2] = lower[2] = upper[2] = 0
    y, report = bt.solve_block_tridiagonal(lower, diagonal, upper, b, return_report=True)
    assert np.isnan(y[2]).all() and np.array_equal(y[[0, 1, 3]], x[[0, 1, 3]])
    assert [s == "solved" for s in report.status] == [True, True, False, True]
    vectors = bt.solve_block_tridiagonal(lower[:2], diagonal[:2], upper[:2], b[0, :, 0])
    close(vectors[1], np.linalg.solve(parts[1][3], b[0, :, 0]), "float64")
    with pytest.raises(bt.SingularMatrixError) as raised:
        bt.solve_block_tridiagonal(lower, diagonal, upper, b)
    assert raised.value.system == 2


def test_blocks_of_different_sizes(rng: np.random.Generator) -> None:
    sizes = (2, 1, 3)
    diagonal = [random(rng, (k, k), "float64") + 9 * np.eye(k) for k in sizes]
    lower = [random(rng, (a, b), "float64") for a, b in zip(sizes[1:], sizes)]
    upper = [random(rng, (a, b), "float64") for a, b in zip(sizes, sizes[1:])]
    matrix = bt.BlockTridiagonal(lower, diagonal, upper)
    assert matrix.block_sizes == [2, 1, 3]
    b = random(rng, (6,), "float64")
    close(bt.solve_block_tridiagonal(lower, diagonal, upper, b), np.linalg.solve(matrix.toarray(), b), "float64")
    with pytest.raises(ValueError):
        bt.BlockTridiagonal(upper, diagonal, lower)


def test_a_block_that_needs_pivots_from_others() -> None:
    # The first diagonal block is singular, the matrix is not: block LU breaks down, and a stronger method solves.
    one, zero = np.array([[1.0]]), np.array([[0.0]])
    stack = (np.stack([one, one]), np.stack([zero, zero, one]), np.stack([one, one]))
    dense = np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 1]])
    close(bt.solve_block_tridiagonal(*stack, np.arange(3.0)), np.linalg.solve(dense, np.arange(3.0)), "float64")


def test_nearly_singular_blocks_warn() -> None:
    diagonal = np.array([[[1.0, 1.0], [1.0, 1.0 + 1e-17]], [[1.0, 0.0], [0.0, 1.0]]])
    diagonal[0, 1, 1] = np.nextafter(1.0, 2.0)
    beside = np.zeros((1, 2, 2))
    with pytest.warns(bt.AccuracyWarning):
        bt.solve_block_tridiagonal(beside, diagonal, beside, np.array([1.0, 2.0, 3.0, 4.0]))


@pytest.mark.parametrize("threads", (None, 1, 2))
@pytest.mark.parametrize("dtype", DTYPES)
def test_batches_of_many_chunks(rng: np.random.Generator, threads: int | None, dtype: str) -> None:
    batch, n = 1500, 120
    ab, b = band(rng, (batch,), 1, 1, n, dtype), random(rng, (batch, n, 2), dtype)
    ab[[3, 700, 1499], :, :] = 0
    with pytest.raises(bt.SingularMatrixError) as raised:
        bt.solve_banded((1, 1), ab, b, threads=threads)
    assert raised.value.system == 3
    ab[[3, 700, 1499], 1, :] = 2
    x = bt.solve_banded((1, 1), ab, b, threads=threads)
    with_report, report = bt.solve_banded((1, 1), ab, b, threads=threads, return_report=True)
    assert report.converged
    close(x, with_report, dtype)
    b[800, 5, 1] = np.nan
    with pytest.raises(ValueError, match="infs or NaNs"):
        bt.solve_banded((1, 1), ab, b, threads=threads)
