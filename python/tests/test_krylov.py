"""Iterative methods with preconditioners of ours, of SciPy, and plain functions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import blocktri as bt
from conftest import DTYPES, close, random


def laplacian(n: int, dtype: Any = "float64") -> Any:
    """Of a square, five points."""
    diagonals: Any = [-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)]
    line = sp.diags_array(diagonals, offsets=(-1, 0, 1))
    return (sp.kron(line, sp.eye_array(n)) + sp.kron(sp.eye_array(n), line)).tocsr().astype(dtype)


METHODS = (bt.cg, bt.bicgstab, bt.gmres, bt.fgmres)


def check(a: Any, x: Any, b: Any, rtol: float) -> None:
    assert np.linalg.norm(b - a @ x) <= 1.01 * rtol * np.linalg.norm(b)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_methods(rng: np.random.Generator, method: Any, dtype: str) -> None:
    a = laplacian(8, dtype)
    rtol = 1e-4 if np.finfo(dtype).bits == 32 else 1e-9
    for b in (random(rng, (64,), dtype), random(rng, (64, 2), dtype)):
        x, report = method(a, b, rtol=rtol)
        assert report.converged and x.dtype == np.dtype(dtype) and x.shape == b.shape
        check(a, x, b, rtol)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("form", ("name", "own", "scipy", "function", "matrix", "factors", "operator"))
def test_preconditioners_of_all_kinds(rng: np.random.Generator, method: Any, form: str) -> None:
    a, b = laplacian(10), random(rng, (100,), "float64")
    diagonal = a.diagonal()
    m = {
        "name": "ic0",
        "own": bt.preconditioner(a, "ic0"),
        "scipy": spla.LinearOperator(a.shape, matvec=lambda r: r / diagonal, dtype=np.float64),
        "function": lambda r: (r / diagonal).tolist(),
        "matrix": sp.diags_array(1 / diagonal),
        "factors": bt.factorize(a),
        "operator": bt.factorize(a).aslinearoperator(),
    }[form]
    x, report = method(a, b, M=m, rtol=1e-10)
    assert report.converged, report
    check(a, x, b, 1e-10)
    if form in ("factors", "operator"):
        assert report.iterations <= 3


@pytest.mark.parametrize("method", METHODS)
def test_operators_without_entries(rng: np.random.Generator, method: Any) -> None:
    a, b = laplacian(9), random(rng, (81,), "float64")
    for operator in (spla.aslinearoperator(a), lambda x: a @ x):
        x, report = method(operator, b, rtol=1e-9)
        assert report.converged and report.backward_error is None
        check(a, x, b, 1e-9)
    with pytest.raises(ValueError, match="entries"):
        method(spla.aslinearoperator(a), b, M="ilu0")


@pytest.mark.parametrize("name", ("arms", "ilut", "ilu0", "jacobi", "spike", "ras", "ssor-ai-free", "iluk"))
def test_ours_in_scipys_gmres(rng: np.random.Generator, name: str) -> None:
    a, b = laplacian(12), random(rng, (144,), "float64")
    m = bt.preconditioner(a, name)
    assert isinstance(m, spla.LinearOperator)
    x, status = spla.gmres(a, b, M=m, rtol=1e-9, restart=50, maxiter=20)
    assert status == 0
    check(a, x, b, 1e-8)


def test_a_preconditioner_takes_its_options(rng: np.random.Generator) -> None:
    a = laplacian(12)
    b = random(rng, (144,), "float64")
    steps = [bt.gmres(a, b, M=bt.preconditioner(a, "iluk", levels=k))[1].iterations for k in (0, 3)]
    assert steps[1] < steps[0]
    with pytest.raises(ValueError, match="unknown preconditioner"):
        bt.preconditioner(a, "magic")
    with pytest.raises(ValueError, match="no preconditioner"):
        bt.preconditioner(a, "block-reduced")


def test_a_start_near_the_end(rng: np.random.Generator) -> None:
    a, b = laplacian(10), random(rng, (100,), "float64")
    exact = spla.spsolve(a.tocsc(), b)
    x, report = bt.cg(a, b, x0=exact)
    assert report.iterations == 0
    close(x, exact, "float64")
    with pytest.raises(ValueError):
        bt.cg(a, b, x0=np.ones(99))


def test_callbacks(rng: np.random.Generator) -> None:
    a, b = laplacian(10), random(rng, (100,), "float64")
    told: list[tuple[int, float]] = []
    _, report = bt.cg(a, b, callback=lambda k, r: told.append((k, r)))
    assert [k for k, _ in told] == list(range(report.iterations + 1)) and told[-1][1] <= 1e-8

    class Refused(Exception):
        pass

    def refuse(k: int, _: float) -> None:
        if k == 3:
            raise Refused

    def enough(k: int, _: float) -> None:
        if k == 3:
            raise StopIteration

    for m in (None, lambda r: r):
        with pytest.raises(Refused):
            bt.gmres(a, b, M=m, callback=refuse)
        _, report = bt.gmres(a, b, M=m, callback=enough)
        assert report.outcome == "stopped" and report.iterations == 3


def test_what_operators_raise_is_raised(rng: np.random.Generator) -> None:
    a, b = laplacian(4), random(rng, (16,), "float64")

    def broken(x: Any) -> Any:
        raise ZeroDivisionError("no product today")

    with pytest.raises(ZeroDivisionError, match="today"):
        bt.bicgstab(broken, b)
    with pytest.raises(ZeroDivisionError, match="today"):
        bt.gmres(a, b, M=broken)
    with pytest.raises(ValueError, match="15 values"):
        bt.gmres(a, b, M=lambda r: r[1:])


def test_not_converging_is_an_outcome(rng: np.random.Generator) -> None:
    a, b = laplacian(20), random(rng, (400,), "float64")
    _, report = bt.cg(a, b, maxiter=3)
    assert report.outcome == "iteration-limit" and report.iterations == 3
    with pytest.warns(bt.AccuracyWarning, match="iteration-limit"):
        bt.solve(a, b, method="cg", maxiter=3)
    with pytest.raises(ValueError):
        bt.cg(sp.csr_array([[1.0, 2.0], [0.0, 1.0]]), np.ones(2))


@pytest.mark.parametrize("sweep", ("jacobi", "gs", "sgs", "redblack", "sor", "chebyshev"))
def test_hbisa(rng: np.random.Generator, sweep: str) -> None:
    a, b = laplacian(8) + sp.eye_array(64), random(rng, (64,), "float64")
    x, report = bt.hbisa(a, b, sweep=sweep, blocks=8)
    assert report.converged and report.method == ("hbisa" if sweep == "jacobi" else f"hbisa-{sweep}")
    check(a, x, b, 1e-8)
    with pytest.raises(ValueError):
        bt.hbisa(a, b, sweep="sideways")


def test_several_threads_share_a_preconditioner(rng: np.random.Generator) -> None:
    a = laplacian(40)
    m = bt.preconditioner(a, "ilut")
    rhs = [random(rng, (1600,), "float64") for _ in range(8)]
    expected = [bt.gmres(a, b, M=m)[0] for b in rhs]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda b: bt.gmres(a, b, M=m)[0], rhs))
    assert all(np.array_equal(x, y) for x, y in zip(found, expected))


def test_solves_inside_solves(rng: np.random.Generator) -> None:
    n = 2000
    a = bt.Tridiagonal(-np.ones(n - 1), np.full(n, 2.5), -np.ones(n - 1))
    factors = bt.factorize(a)
    b = random(rng, (n,), "float64")

    def outer(threads: int | None) -> bool:
        return bt.gmres(a, b, M=lambda r: factors.solve(r), threads=threads)[1].converged

    # On one thread, and on more solves at a time than a pool has threads.
    assert outer(1)
    with ThreadPoolExecutor(12) as pool:
        assert all(pool.map(outer, [None, 1, 2] * 8))


def test_a_preconditioner_in_use_by_the_solve_that_calls(rng: np.random.Generator) -> None:
    a, b = laplacian(40), random(rng, (1600,), "float64")
    m: Any = bt.preconditioner(a, "ilu0")

    def inside(k: int, r: float) -> None:
        m.matvec(b)

    with pytest.raises(RuntimeError, match="in use"):
        bt.gmres(a, b, M=m, callback=inside)
    assert np.isfinite(m.matvec(b)).all()
