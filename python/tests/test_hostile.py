"""Arrays, matrices and arguments that nobody means to give: an answer that is right, or an exception that says what is wrong."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import blocktri as bt
from conftest import DTYPES, close

N = 5
HUGE = 10**12
BAND = np.array([[0.0, 1, 1, 1, 1], [4.0, 4, 4, 4, 4], [1.0, 1, 1, 1, 0]])
DENSE = np.diag(np.full(N, 4.0)) + np.diag(np.ones(N - 1), 1) + np.diag(np.ones(N - 1), -1)
X = np.arange(1.0, N + 1)
B = DENSE @ X
TRIDIAGONAL = bt.Tridiagonal(np.ones(N - 1), np.full(N, 4.0), np.ones(N - 1))
BLOCKS = np.tile(4 * np.eye(2), (3, 1, 1))
BESIDE = np.tile(np.eye(2), (2, 1, 1))


def field(a: Any, dtype: str, other: str) -> Any:
    """The same numbers as one of two fields of records: their distance is no multiple of their size."""
    records = np.zeros(np.shape(a), dtype=[("other", other), ("of", dtype)])
    records["of"] = a
    return records["of"]


def unaligned(a: Any) -> Any:
    """The same numbers one byte beside their place."""
    a = np.ascontiguousarray(a)
    raw = np.zeros(a.nbytes + 1, np.uint8)
    view = np.frombuffer(raw.data, dtype=a.dtype, offset=1, count=a.size)
    view[...] = a.ravel()
    assert not view.flags.aligned
    return view.reshape(a.shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("other", ("i1", "f4", "f8"))
def test_fields_of_records(dtype: str, other: str) -> None:
    b, band, dense = field(B, dtype, other), field(BAND, dtype, other), field(DENSE, dtype, other)
    sparse = sp.csr_array(DENSE.astype(dtype))
    sparse.data = field(sparse.data, dtype, other)
    for x in (
        bt.solve_banded((1, 1), band, b),
        bt.solve_banded((1, 1), BAND.astype(dtype), b),
        bt.solve_banded((1, 1), np.stack([band, band]), b)[1],
        bt.solve(dense, b),
        bt.solve(sparse, b),
        bt.factorize(DENSE.astype(dtype)).solve(b),
        bt.gmres(DENSE.astype(dtype), b, rtol=1e-6 if np.finfo(dtype).bits == 32 else 1e-13)[0],
        bt.gmres(lambda v: field(DENSE @ v, dtype, other), b, rtol=1e-6 if np.finfo(dtype).bits == 32 else 1e-13)[0],
    ):
        close(x, X, dtype)
    close(TRIDIAGONAL @ field(X, dtype, other), B, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_beside_their_place(dtype: str) -> None:
    b = unaligned(B.astype(dtype))
    close(bt.solve_banded((1, 1), unaligned(BAND.astype(dtype)), b), X, dtype)
    close(bt.solve(unaligned(DENSE.astype(dtype)), b), X, dtype)
    for name in ("indptr", "indices", "data"):
        sparse = sp.csr_array(DENSE.astype(dtype))
        setattr(sparse, name, unaligned(getattr(sparse, name)))
        close(bt.solve(sparse, b), X, dtype)


@pytest.mark.parametrize("kind", (">i4", ">i8", "u8", "i8", "i2", "u1"))
def test_indices_of_any_integers(kind: str) -> None:
    sparse = sp.csr_array(DENSE)
    sparse.indptr, sparse.indices = sparse.indptr.astype(kind), sparse.indices.astype(kind)
    close(bt.solve(sparse, B), X, "float64")


@pytest.mark.parametrize("kind", ("?", "i1", "u8", "f2", ">f2", ">f4", ">f8", ">c8", ">c16"))
def test_numbers_of_other_types(kind: str) -> None:
    expected = {"f2": "f4", ">f2": "f4", ">f4": "f4", ">f8": "f8", ">c8": "c8", ">c16": "c16"}.get(kind, "f8")
    dense = (np.eye(3) * 3).astype(kind)
    assert bt.solve(dense, np.ones(3, kind)).dtype == np.dtype(expected)
    close(dense.astype(expected) @ bt.solve(dense, np.ones(3, kind)), np.ones(3), expected)


WRONG_TYPES: tuple[Any, ...] = (
    np.longdouble(B),
    B.astype(object),
    B.astype("S3"),
    B.astype("M8[s]"),
    None,
    "b.mtx",
    sp.csr_array(B.reshape(-1, 1)),
    len,
)


@pytest.mark.parametrize("b", WRONG_TYPES, ids=lambda b: type(b).__name__ + str(getattr(b, "dtype", "")))
def test_what_is_no_array_of_numbers(b: Any) -> None:
    factors = bt.factorize(DENSE)
    calls: tuple[Callable[[], Any], ...] = (
        lambda: bt.solve(DENSE, b),
        lambda: bt.solve_banded((1, 1), BAND, b),
        lambda: bt.solve_periodic(X, 9 * X, X, b),
        lambda: factors.solve(b),
        lambda: bt.cg(DENSE, b),
        lambda: bt.gmres(lambda v: v, b),
        lambda: TRIDIAGONAL @ b,
    )
    for call in calls:
        with pytest.raises(TypeError, match="[bx] is "):
            call()
    with pytest.raises(TypeError, match="b is sparse|is of|objects"):
        bt.solve_block_tridiagonal(BESIDE, BLOCKS, BESIDE, b)


def test_what_is_no_matrix() -> None:
    for wrong in (spla.aslinearoperator(DENSE), None, len):
        with pytest.raises(TypeError, match="A is of type"):
            bt.solve(wrong, B)
    for b in (np.ma.array(B), np.ma.array(B, mask=X > 2)):
        with pytest.raises(ValueError, match="masked"):
            bt.solve(DENSE, b)
    for shape in ((2, N, 1), (N,) + (1,) * 40, ()):
        with pytest.raises(ValueError, match="one or two dimensions"):
            bt.solve(DENSE, np.ones(shape))
    with pytest.raises(ValueError, match="dimensions"):
        TRIDIAGONAL @ np.ones((2, N, 1))
    with pytest.raises(ValueError, match="dimensions"):
        bt.Tridiagonal(np.ones((1,) * 40), [1.0, 1.0], [1.0])


VECTOR = np.broadcast_to(1.0, (HUGE,))
LINES = np.broadcast_to(np.ones((3, 1)), (3, HUGE))
COLUMNS = np.broadcast_to(1.0, (N, HUGE))
STACK = np.broadcast_to(BAND, (HUGE, 3, N))

# Arrays without memory of their own, whose copies no machine holds.
BEYOND_MEMORY: dict[str, Callable[[], Any]] = {
    "band": lambda: bt.solve_banded((1, 1), LINES, VECTOR, check_finite=False),
    "wide band": lambda: bt.solve_banded((2, 0), LINES, VECTOR, check_finite=False),
    "columns": lambda: bt.solve_banded((1, 1), BAND, COLUMNS, check_finite=False),
    "batch": lambda: bt.solve_banded((1, 1), STACK, np.broadcast_to(B[:, None], (HUGE, N, 1))),
    "batch of wide bands": lambda: bt.solve_banded((2, 0), STACK, B),
    "hermitian": lambda: bt.solveh_banded(LINES, VECTOR, lower=True, check_finite=False),
    "periodic": lambda: bt.solve_periodic(VECTOR, VECTOR, VECTOR, VECTOR, check_finite=False),
    "blocks": lambda: bt.solve_block_tridiagonal(
        np.broadcast_to(BESIDE[0], (HUGE // 2 - 1, 2, 2)),
        np.broadcast_to(BLOCKS[0], (HUGE // 2, 2, 2)),
        np.broadcast_to(BESIDE[0], (HUGE // 2 - 1, 2, 2)),
        VECTOR,
    ),
    "three diagonals": lambda: bt.Tridiagonal(VECTOR[1:], VECTOR, VECTOR[1:]),
    "banded": lambda: bt.Banded((1, 1), LINES),
    "one block": lambda: bt.BlockTridiagonal([], np.broadcast_to(1.0, (1, 10**6, 10**6)), []),
    "right-hand sides of factors": lambda: bt.factorize(DENSE).solve(COLUMNS, check_finite=False),
    "product": lambda: TRIDIAGONAL @ COLUMNS,
    "preconditioner": lambda: bt.preconditioner(DENSE, "jacobi") @ COLUMNS,
    "file": lambda: bt.write("never.mtx", VECTOR),
}


@pytest.mark.parametrize("call", BEYOND_MEMORY.values(), ids=BEYOND_MEMORY.keys())
def test_copies_that_no_memory_holds(call: Callable[[], Any]) -> None:
    with pytest.raises(MemoryError):
        call()


@pytest.mark.parametrize("shape", ((4, 5), (6, 6), (2**40, 2**40), (5,)))
def test_a_shape_that_lies(shape: tuple[int, ...]) -> None:
    sparse: Any = sp.csr_array(DENSE)
    sparse._shape = shape
    with pytest.raises(ValueError):
        bt.solve(sparse, B)


@pytest.mark.parametrize("index", (-1, 5, 2**31, 2**32, 2**32 + 1, 2**62, -(2**63)))
def test_an_index_outside(index: int) -> None:
    sparse = sp.csr_array(DENSE)
    sparse.indices = sparse.indices.astype(np.int64)
    sparse.indices[3] = index
    with pytest.raises(ValueError):
        bt.solve(sparse, B)


@pytest.mark.parametrize("threads", (0, -1, 1025, 2**70))
def test_numbers_of_threads(threads: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        bt.solve(DENSE, B, threads=threads)
    with pytest.raises(ValueError, match="at least 1"), bt.threadpool(threads):
        pass
    nothing: Any = None
    with pytest.raises(TypeError), bt.threadpool(nothing):
        pass


@pytest.mark.parametrize("make", (copy.copy, copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))))
def test_copies_of_matrices(make: Callable[[Any], Any]) -> None:
    blocks = bt.BlockTridiagonal(BESIDE, BLOCKS, BESIDE)
    for matrix in (TRIDIAGONAL, bt.Banded((1, 1), BAND), blocks, bt.Tridiagonal([1j], [2, 3], [1])):
        made = make(matrix)
        assert type(made) is type(matrix) and made.dtype == matrix.dtype
        assert np.array_equal(made.toarray(), matrix.toarray())
    assert make(blocks).block_sizes == [2, 2, 2]


def test_products_from_the_left(rng: np.random.Generator) -> None:
    three = bt.Tridiagonal(rng.uniform(size=4), rng.uniform(size=5), 1j * rng.uniform(size=4))
    for x in (rng.uniform(size=5), rng.uniform(size=(2, 5)), [1, 2, 3, 4, 5]):
        close(x @ three, np.asarray(x) @ three.toarray(), "float64")
    with pytest.raises(TypeError):
        X * three  # type: ignore[operator]


def test_products_have_the_scalar_that_holds_both() -> None:
    single = bt.Tridiagonal(*(np.asarray(a, np.float32) for a in ([1.0], [2.0, 2.0], [1.0])))
    for dtype in DTYPES:
        product = single @ np.full(2, 1 / 3, dtype)
        assert product.dtype == np.result_type(np.float32, dtype)
        close(product, np.full(2, 1.0), dtype)


@pytest.mark.parametrize("widths", ((1, 1), (2, 0)))
def test_a_solution_that_overflows_is_not_called_solved(widths: tuple[int, int]) -> None:
    ab = np.zeros((3, 4))
    ab[widths[1]] = 1e-300
    b = np.full(4, 1e10)
    x, report = bt.solve_banded(widths, ab, b, return_report=True)
    assert not np.isfinite(x).all() and report.outcome == "inaccurate"
    stack = np.stack([ab * 1e300, ab])
    x, report = bt.solve_banded(widths, stack, b[:, None], return_report=True)
    assert np.array_equal(x[0], b[:, None]) and report.outcome == "inaccurate"
    assert report.status == ["solved", "the solution is not finite in row 0 (from 0)"]


def test_blocks_whose_solution_overflows() -> None:
    tiny = np.stack([BLOCKS, BLOCKS * 1e-300])
    x, report = bt.solve_block_tridiagonal(0 * BESIDE, tiny, 0 * BESIDE, np.full((6, 1), 1e10), return_report=True)
    assert np.isfinite(x[0]).all() and not np.isfinite(x[1]).all()
    assert report.outcome == "inaccurate" and report.status[0] == "solved" and "not finite" in report.status[1]
    with pytest.warns(bt.AccuracyWarning, match="not finite"):
        bt.solve_block_tridiagonal(0 * BESIDE, tiny, 0 * BESIDE, np.full((6, 1), 1e10))


def test_operators_that_return_complex_values() -> None:
    with pytest.raises(TypeError, match="make b complex"):
        bt.gmres(lambda v: 1j * (DENSE @ v), B)
    with pytest.raises(TypeError, match="make b complex"):
        bt.gmres(DENSE, B, M=lambda r: 1j * r)
    x, report = bt.gmres(lambda v: 1j * (DENSE @ v), B + 0j, rtol=1e-12)
    assert report.converged
    close(x, -1j * X, "float64")
    x, report = bt.gmres(lambda v: DENSE @ v, B, x0=1j * X, rtol=1e-12)
    assert report.converged and x.dtype == np.complex128
    close(x, X, "float64")


def test_preconditioners_that_are_matrices() -> None:
    inverse = np.eye(N) / 4
    for m in (bt.Tridiagonal(np.zeros(N - 1), np.full(N, 0.25), np.zeros(N - 1)), inverse, inverse.tolist()):
        assert bt.gmres(DENSE, B, M=m)[1].converged
    with pytest.raises(TypeError, match="M is of type int"):
        bt.gmres(DENSE, B, M=3)
    with pytest.raises(ValueError, match="b must have"):
        bt.gmres(lambda v: v, 3.0)


@pytest.mark.parametrize(
    "options", ({"maxiter": -1}, {"rtol": -1.0}, {"rtol": np.nan}, {"time_limit": -1.0}, {"restart": 0}, {"refine": -1})
)
def test_options_out_of_range(options: dict[str, Any]) -> None:
    method = "band-lu" if "refine" in options else "gmres"
    with pytest.raises(ValueError, match=next(iter(options))):
        bt.solve(DENSE, B, method=method, **options)


def test_options_that_are_not_read_are_refused() -> None:
    for method, name in (("band-lu", "restart"), ("cg", "refine"), ("cg", "levels"), ("hbisa", "precond"), ("auto", "omega")):
        options: dict[str, Any] = {name: "jacobi" if name == "precond" else 1}
        with pytest.raises(TypeError, match=f"option '{name}' is not read by method '{method}'"):
            bt.solve(DENSE, B, method=method, **options)
    with pytest.raises(TypeError, match="'fill' is not read by method 'gmres' with preconditioner 'ilu0'"):
        bt.gmres(DENSE, B, M="ilu0", fill=3)
    for name in ("rtol", "time_limit"):
        options = {name: 0.5}
        with pytest.raises(TypeError, match=f"option '{name}' is not read"):
            bt.factorize(DENSE, **options)
    # What is None is not given.
    assert bt.solve(DENSE, B, method="band-lu", restart=None).shape == B.shape


def test_queues_out_of_range() -> None:
    for resources in (-1, 2**63, 2**70):
        with pytest.raises(ValueError, match="resources"):
            bt.CloudQueue(resources, 4, 1.0)
    queue = bt.CloudQueue(4, 4, 1.0)
    for price in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="price"):
            queue.plan(resource_hour=price)


def test_files_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        bt.read(tmp_path)
    with pytest.raises(ValueError):
        bt.read("a\0b.mtx")
    with pytest.raises(ValueError, match="NaN"):
        bt.write(tmp_path / "nan.mtx", np.array([np.nan]))
    assert not (tmp_path / "nan.mtx").exists()
    bt.write(tmp_path / "one.mtx", TRIDIAGONAL, comments="one line")
    assert "% one line\n" in (tmp_path / "one.mtx").read_text()
