"""One call, factors, errors, threads and interrupts."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import blocktri as bt
from conftest import DTYPES, as_order, close, random


def matrix(rng: np.random.Generator, n: int, dtype: Any) -> Any:
    """A dominant sparse matrix without structure."""
    a = random(rng, (n, n), dtype) * (rng.uniform(size=(n, n)) < 0.3)
    return a + n * np.eye(n, dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ("C", "F", "strided", "negative"))
@pytest.mark.parametrize("n", (1, 2, 13))
def test_dense(rng: np.random.Generator, dtype: str, order: str, n: int) -> None:
    a = matrix(rng, n, dtype)
    for shape in ((n,), (n, 3)):
        b = random(rng, shape, dtype)
        x, report = bt.solve(as_order(a, order), as_order(b, order), return_report=True)
        close(x, np.linalg.solve(a, b), dtype)
        assert x.dtype == np.dtype(dtype) and report.converged and report.dtype == dtype


@pytest.mark.parametrize("form", ("csr", "csc", "coo", "dia", "bsr", "lil", "dok"))
@pytest.mark.parametrize("kind", (sp.csr_array, sp.csr_matrix))
@pytest.mark.parametrize("dtype", DTYPES)
def test_sparse(rng: np.random.Generator, form: str, kind: Any, dtype: str) -> None:
    a = matrix(rng, 12, dtype)
    b = random(rng, (12,), dtype)
    close(bt.solve(kind(a).asformat(form), b), np.linalg.solve(a, b), dtype)


@pytest.mark.parametrize("index", (np.int32, np.int64))
def test_unsorted_and_repeated_entries_are_added(index: Any) -> None:
    a = sp.csr_array(
        (np.array([1.0, 2.0, 3.0, 4.0, 1.0]), np.array([1, 0, 1, 1, 0], index), np.array([0, 3, 5], index)), shape=(2, 2)
    )
    dense = np.array([[2.0, 4.0], [1.0, 4.0]])
    close(bt.solve(a, np.ones(2)), np.linalg.solve(dense, np.ones(2)), "float64")
    close(bt.solve(a.tocoo(), np.ones(2)), np.linalg.solve(dense, np.ones(2)), "float64")


@pytest.mark.parametrize(
    "indptr,indices",
    (
        ([0, 2, 1], [0, 1]),
        ([0, 1, 99], [0, 1]),
        ([0, 1, 2], [0, 7]),
        ([0, 1, 2], [0, -1]),
        ([0, -5, 2], [0, 1]),
        ([1, 1, 2], [0, 1]),
        ([0, 2**40, 2], [0, 1]),
    ),
)
@pytest.mark.parametrize("kind", (sp.csr_array, sp.csc_array))
def test_pointers_that_lie(indptr: list[int], indices: list[int], kind: Any) -> None:
    a = kind(np.eye(2))
    a.indptr = np.array(indptr, dtype=np.int64)
    a.indices = np.array(indices, dtype=np.int64)
    with pytest.raises(ValueError):
        bt.solve(a, np.ones(2))
    a.indptr = np.array([0, 1], dtype=np.int32)
    with pytest.raises(ValueError):
        bt.info(a)


def test_hostile_arrays() -> None:
    eye = np.eye(3)
    for b in (np.array([1, None, 2], dtype=object), np.array(["a", "b", "c"]), np.ones(3, np.longdouble)):
        with pytest.raises(TypeError):
            bt.solve(eye, b)
    with pytest.raises(TypeError):
        bt.solve(eye.astype(object), np.ones(3))
    with pytest.raises(ValueError, match="masked"):
        bt.solve(eye, np.ma.masked_array(np.ones(3), mask=[False, True, False]))

    class Own(sp.csr_array):
        pass

    assert np.array_equal(bt.solve(Own(2 * eye), np.ones(3)), np.full(3, 0.5))
    swapped = (2 * eye).astype(">f8")
    assert np.array_equal(bt.solve(swapped, np.ones(3, ">f8")), np.full(3, 0.5))
    packed = np.zeros(3, dtype=[("pad", "i1"), ("value", "f8")])
    packed["value"] = 2.0
    assert np.array_equal(bt.solve(eye, packed["value"]), np.full(3, 2.0))
    for wrong in (np.ones(4), np.ones((3, 1, 1)), np.float64(1.0)):
        with pytest.raises(ValueError):
            bt.solve(eye, wrong)
    for a in (np.ones((2, 3)), np.ones(3), np.ones((3, 3, 3))):
        with pytest.raises(ValueError):
            bt.solve(a, np.ones(3))
    for bad in (np.nan, np.inf):
        spoiled = eye.copy()
        spoiled[1, 1] = bad
        with pytest.raises(ValueError):
            bt.solve(spoiled, np.ones(3))
        with pytest.raises(ValueError, match="infs or NaNs"):
            bt.solve(eye, np.array([1.0, bad, 1.0]))
    assert bt.solve(np.zeros((0, 0)), np.zeros(0)).shape == (0,)
    assert bt.solve(eye, np.zeros((3, 0))).shape == (3, 0)
    with pytest.raises(TypeError, match="unknown option"):
        bt.solve(eye, np.ones(3), rtoll=1.0)
    with pytest.raises(ValueError, match="unknown method 'magic'"):
        bt.solve(eye, np.ones(3), method="magic")
    with pytest.raises(ValueError):
        bt.solve(eye, np.ones(3), threads=0)


def test_errors_have_their_place() -> None:
    with pytest.raises(bt.SingularMatrixError) as raised:
        bt.solve(np.diag([1.0, 0.0, 2.0]), np.ones(3))
    assert isinstance(raised.value, np.linalg.LinAlgError) and raised.value.row == 1
    swapped = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    with pytest.raises(bt.BreakdownError) as broken:
        bt.solve(swapped, np.ones(3), method="thomas")
    assert isinstance(broken.value, np.linalg.LinAlgError)
    assert (broken.value.row, broken.value.block) == (1, None)


def test_an_ill_conditioned_matrix_warns() -> None:
    from scipy.linalg import LinAlgWarning, hilbert

    a, b = hilbert(14), np.arange(14.0)
    with pytest.warns(bt.AccuracyWarning) as warned:
        bt.solve(a, b, method="dense-lu")
    assert issubclass(bt.AccuracyWarning, LinAlgWarning)
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bt.solve(np.eye(3), np.ones(3))


def test_the_report(rng: np.random.Generator) -> None:
    a, b = matrix(rng, 10, "float64"), random(rng, (10, 2), "float64")
    x, report = bt.solve(a, b, return_report=True)
    facts = report.to_dict()
    assert facts["n"] == report.n == 10 and facts["nrhs"] == report.nrhs == 2 and facts["nnz"] == report.nnz
    assert facts["method"] == report.method in bt.methods()
    assert facts["outcome"] == "converged" and facts["schema"] == 1
    residual = np.abs(b - a @ x).max() / (np.abs(a).sum(1).max() * np.abs(x).max() + np.abs(b).max())
    assert report.backward_error is not None and residual < 10 * report.backward_error + 1e-16
    assert set(facts) >= {"scalar", "blocks", "precond", "reorder", "threads", "seconds", "bytes", "notes", "rcond"}
    assert facts["events"] == report.events and len(report.events) == len(report.notes)
    assert report.events[0]["kind"] == "chosen" and report.events[0]["method"] == report.method
    assert report.method in repr(report) and "<table>" in report._repr_html_()
    assert report.rcond == pytest.approx(1 / np.linalg.cond(a, 1), rel=0.5)


def test_reports_have_the_condition_number(rng: np.random.Generator) -> None:
    n = 600
    d, off = 4 + rng.random(n), rng.random(n - 1)
    a = bt.Tridiagonal(off, d, -off)
    expected = pytest.approx(1 / np.linalg.cond(a.toarray(), 1), rel=0.5)
    assert bt.solve(a, np.ones(n), return_report=True)[1].rcond == expected
    assert bt.solve(a, np.ones(n), return_report=True, refine=1)[1].rcond == expected
    factors = bt.factorize(a)
    factors.solve(np.ones(n))
    # Not asked for, nor in doubt.
    assert factors.report.rcond is None
    assert factors.solve(np.ones(n), return_report=True)[1].rcond == expected == factors.rcond


@pytest.mark.parametrize("dtype", DTYPES)
def test_factors(rng: np.random.Generator, dtype: str) -> None:
    a = matrix(rng, 15, dtype)
    factors = bt.factorize(sp.csr_array(a))
    b = random(rng, (15, 2), dtype)
    for trans, op in (("N", a), ("T", a.T), ("H", a.conj().T)):
        x, report = factors.solve(b, trans, return_report=True)  # type: ignore[call-overload]
        close(x, np.linalg.solve(op, b), dtype)
        assert report.converged
    sign, logdet = factors.slogdet()
    expected = np.linalg.slogdet(a)
    close(sign, expected[0], dtype)
    close(logdet, expected[1], dtype)
    assert factors.rcond == pytest.approx(1 / np.linalg.cond(a, 1), rel=0.5)
    other = a + np.eye(15, dtype=dtype)
    close(factors.refactor(sp.csr_array(other)).solve(b), np.linalg.solve(other, b), dtype)
    with pytest.raises(ValueError):
        factors.refactor(np.eye(3, dtype=dtype))
    close(factors.solve(b), np.linalg.solve(other, b), dtype)
    loaded = pickle.loads(pickle.dumps(factors))
    assert np.array_equal(loaded.solve(b), bt.factorize(other).solve(b))
    if np.dtype(dtype).kind == "f":
        complex_b = b + 1j * b[::-1]
        close(factors.solve(complex_b), np.linalg.solve(other, complex_b), dtype)


def test_inertia_and_selected_inverse(rng: np.random.Generator) -> None:
    d = np.array([3.0, -2.0, 4.0, 5.0, -6.0])
    off = np.full(4, 0.5)
    factors = bt.factorize(bt.Tridiagonal(off, d, off))
    dense = np.diag(d) + np.diag(off, 1) + np.diag(off, -1)
    assert factors.inertia() == (2, 0, 3)
    selected = factors.selected_inverse()
    inverse = np.linalg.inv(dense)
    close(selected.diagonal(), np.diag(inverse), "float64")
    close(selected.trace(), np.trace(inverse), "float64")
    at = np.cumsum([0, *selected.block_sizes])
    for j, (upper, lower) in enumerate(zip(selected.upper_blocks, selected.lower_blocks)):
        close(upper, inverse[at[j] : at[j + 1], at[j + 1] : at[j + 2]], "float64")
        close(lower, inverse[at[j + 1] : at[j + 2], at[j] : at[j + 1]], "float64")
    with pytest.raises((ValueError, np.linalg.LinAlgError)):
        bt.factorize(np.array([[1.0, 2.0], [0.0, 1.0]])).inertia()


def test_factors_as_a_linear_operator(rng: np.random.Generator) -> None:
    a = matrix(rng, 20, "float64")
    operator = bt.factorize(a).aslinearoperator()
    assert isinstance(operator, spla.LinearOperator) and operator.shape == (20, 20)
    x = random(rng, (20, 3), "float64")
    close(operator @ x, np.linalg.solve(a, x), "float64")
    close(operator.rmatvec(x[:, 0]), np.linalg.solve(a.T, x[:, 0]), "float64")
    _, status = spla.gmres(a, x[:, 0], M=operator, rtol=1e-10, maxiter=2)
    assert status == 0


def test_structured_matrices(rng: np.random.Generator) -> None:
    three = bt.Tridiagonal([1, 2], [3.0, 4.0, 5.0], [1j, 2j])
    dense = np.array([[3, 1j, 0], [1, 4, 2j], [0, 2, 5]])
    assert three.dtype == np.complex128 and np.array_equal(three.toarray(), dense)
    assert np.array_equal(three.tocsr().toarray(), dense) and three.shape == (3, 3) and three.nnz == 7
    x = random(rng, (3, 2), "float64")
    close(three @ x, dense @ x, "float64")
    real = bt.Tridiagonal([1.0, 1.0], [2.0, 2.0, 2.0], [1.0, 1.0])
    close(real @ (x[:, 0] + 1j), real.toarray() @ (x[:, 0] + 1j), "float64")
    assert "Tridiagonal" in repr(three)
    wrong: Any
    for wrong in (([1.0], [1.0], []), ([], [1.0], [[1.0]])):
        with pytest.raises(ValueError):
            bt.Tridiagonal(*wrong)


def test_several_threads_solve_with_one_factorization(rng: np.random.Generator) -> None:
    a = sp.random(800, 800, density=0.01, rng=rng) + 20 * sp.eye_array(800)
    factors = bt.factorize(a)
    rhs = [random(rng, (800,), "float64") for _ in range(16)]
    expected = [factors.solve(b) for b in rhs]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(factors.solve, rhs))
    assert all(np.array_equal(x, y) for x, y in zip(found, expected))


def test_the_number_of_threads_does_not_change_bits(rng: np.random.Generator) -> None:
    ab, b = random(rng, (5, 3000), "float64"), random(rng, (3000,), "float64")
    ab[2] += 6
    answers = []
    for threads in (1, 2, 3):
        with bt.threadpool(threads) as number:
            assert number == threads
            answers.append(bt.solve_banded((2, 2), ab, b))
        answers.append(bt.solve_banded((2, 2), ab, b, threads=threads))
    assert all(np.array_equal(x, answers[0]) for x in answers)


INTERRUPTED = """
    import os, signal, threading, time
    import numpy as np
    import blocktri as bt

    n = 200_000
    A = bt.Tridiagonal(-np.ones(n - 1), np.full(n, 2.0), -np.ones(n - 1))
    raised = []
    threading.Timer(1.0, lambda: (raised.append(time.monotonic()), os.kill(os.getpid(), signal.SIGINT))).start()
    try:
        bt.cg(A, np.ones(n), rtol=0.0, maxiter=10**9, M=CHOICE, callback=BACK)
    except KeyboardInterrupt:
        late = time.monotonic() - raised[0]
        print("interrupted", late)
        assert late < 10.0, late
    print("still here", bt.solve([[2.0]], [4.0])[0])
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("choice", ("'jacobi'", "lambda r: 2.0 * r"))
@pytest.mark.parametrize("back", ("None", "lambda k, r: None"))
def test_control_c_ends_a_solve(choice: str, back: str) -> None:
    program = textwrap.dedent(INTERRUPTED).replace("CHOICE", choice).replace("BACK", back)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "interrupted" in done.stdout and "still here 2.0" in done.stdout


def test_refactoring_waits_for_solves(rng: np.random.Generator) -> None:
    n = 3000
    off, on, b = np.ones(n - 1), np.full(n, 4.0), np.ones(n)
    matrices = [bt.Tridiagonal(off, s * on, off) for s in (1, 2)]
    factors = bt.factorize(matrices[0])
    expected = [bt.factorize(m).solve(b) for m in matrices]
    stop = threading.Event()

    def refactor() -> None:
        turn = 0
        while not stop.is_set():
            turn = 1 - turn
            factors.refactor(matrices[turn])

    thread = threading.Thread(target=refactor)
    thread.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(factors.solve, [b] * 40))
    finally:
        stop.set()
        thread.join()
    # Every answer is one of the two, whole.
    assert all(any(np.allclose(x, y, rtol=1e-12) for y in expected) for x in found)


def test_limits_of_auto() -> None:
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(24, 24))
    cube = sp.csr_array(sp.kronsum(sp.kronsum(line, line), line))
    b = np.ones(24**3)
    _, report = bt.solve(cube, b, time_limit=0.0, return_report=True)
    assert report.outcome == "time-limit" and report.events[-1]["kind"] == "time-limit"
    steps = [bt.solve(cube, b, rtol=rtol, return_report=True)[1].iterations for rtol in (None, 1e-3)]
    assert steps[0] > 2 * steps[1] > 0


def test_the_lock_is_released() -> None:
    n = 50_000
    a = bt.Tridiagonal(-np.ones(n - 1), np.full(n, 2.0), -np.ones(n - 1))
    started, done = threading.Event(), threading.Event()

    def solve() -> None:
        started.set()
        bt.cg(a, np.ones(n), rtol=0.0, maxiter=10**9, time_limit=3.0, threads=1)
        done.set()

    thread = threading.Thread(target=solve)
    thread.start()
    started.wait()
    # With the lock held these would not end before the solve.
    time.sleep(0.3)
    time.sleep(0.1)
    running = not done.is_set()
    thread.join()
    assert running


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks of POSIX")
def test_a_forked_process_solves() -> None:
    program = """
        import os, sys
        import numpy as np
        import blocktri as bt
        n = 20_000
        A, b = bt.Tridiagonal(np.ones(n - 1), np.full(n, 4.0), np.ones(n - 1)), np.ones(n)
        x = bt.solve(A, b)
        child = os.fork()
        y = bt.solve(A, b), bt.solve([[2.0]], [4.0])
        if child == 0:
            os._exit(0 if np.array_equal(x, y[0]) else 1)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], timeout=120)
    assert done.returncode == 0


def test_signals_do_not_hide_answers() -> None:
    if not hasattr(signal, "setitimer"):
        pytest.skip("timers of POSIX")
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        n = 50_000
        a = bt.Tridiagonal(np.ones(n - 1), np.full(n, 4.0), np.ones(n - 1))
        close(a @ bt.solve(a, np.ones(n)), np.ones(n), "float64")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


WITHOUT_SCIPY = """
    import sys, warnings
    sys.modules["scipy"] = None
    import numpy as np
    import blocktri as bt
    assert bt.AccuracyWarning.__mro__[1] is RuntimeWarning
    a = np.array([[4.0, 1.0], [1.0, 3.0]])
    assert np.allclose(bt.solve(a, [5.0, 4.0]), 1.0)
    m = bt.preconditioner(a, "jacobi")
    assert np.allclose(m @ np.array([4.0, 3.0]), 1.0) and m.shape == (2, 2)
    assert bt.gmres(a, [5.0, 4.0], M=m)[1].converged
    assert np.allclose(bt.factorize(a).aslinearoperator().rmatvec(np.array([5.0, 4.0])), 1.0)
    try:
        bt.Tridiagonal([1.0], [2.0, 2.0], [1.0]).tocsr()
    except ImportError:
        print("no scipy")
"""


def test_numpy_is_enough() -> None:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(WITHOUT_SCIPY)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "no scipy\n"
