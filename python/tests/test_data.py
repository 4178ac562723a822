"""The systems of the reference data, where they are beside the checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io

import blocktri as bt

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
LARGEST = 700


def systems() -> list[Path]:
    """Matrices with a right-hand side, small enough for dense checks."""
    found = [p for folder in ("banded", "block", "tridiag") for p in sorted((DATA / folder).glob("*_b.mtx"))]
    return [Path(str(p).replace("_b.mtx", ".mtx")) for p in found]


def test_the_data_is_there_or_is_not() -> None:
    if not DATA.exists():
        pytest.skip(f"no reference data in {DATA}")
    assert len(systems()) > 20


def backward_error(a: Any, x: Any, b: Any) -> float:
    return float(np.abs(b - a @ x).max() / (np.abs(a).sum(1).max() * np.abs(x).max() + np.abs(b).max()))


@pytest.mark.parametrize("path", systems(), ids=lambda p: p.stem)
@pytest.mark.filterwarnings("ignore::blocktri.AccuracyWarning")
def test_system(path: Path) -> None:
    a = bt.read(path)
    n = a.shape[0]
    if n > LARGEST:
        pytest.skip("large")
    b = np.asarray(scipy.io.mmread(str(path).replace(".mtx", "_b.mtx")))
    dense = a.toarray()
    if b.ndim == 2 and b.shape[1] == 1:
        b = b[:, 0]
    try:
        x, report = bt.solve(a, b, return_report=True)
    except bt.SingularMatrixError:
        assert np.linalg.matrix_rank(dense) < n
        return
    assert report.outcome in ("converged", "inaccurate")
    if report.converged:
        assert backward_error(dense, x, b) < 1e-14
    # The same by its diagonals.
    rows, cols = np.nonzero(dense)
    lower, upper = int(max(0, (rows - cols).max(initial=0))), int(max(0, (cols - rows).max(initial=0)))
    ab = np.zeros((lower + upper + 1, n), dense.dtype)
    ab[upper + rows - cols, cols] = dense[rows, cols]
    try:
        y = bt.solve_banded((lower, upper), ab, b)
    except np.linalg.LinAlgError:
        assert np.linalg.cond(dense, 1) > 1e15
        return
    if np.isfinite(y).all():
        assert backward_error(dense, y, b) < 1e-12
