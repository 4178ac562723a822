"""Analysis, files, chains and plans."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import blocktri as bt
from conftest import DTYPES, close, random


def test_info_and_explanation() -> None:
    n = 50
    diagonals: Any = [np.full(n - 2, 0.1), np.full(n, 4.0), np.full(n - 1, 1.0)]
    a = sp.diags_array(diagonals, offsets=(-2, 0, 1))
    facts = bt.info(a)
    assert (facts.n, facts.bandwidth["kl"], facts.bandwidth["ku"]) == (n, 2, 1)
    assert facts.to_dict()["n"] == n and "bandwidth" in repr(facts) and "<table>" in facts._repr_html_()
    with pytest.raises(AttributeError, match="there is no fact 'kl'"):
        facts.kl
    explanation = bt.explain(a)
    flops = [c["flops"] for c in explanation.candidates]
    assert explanation.candidates[0]["method"] in bt.methods() and min(flops) > 0
    assert explanation.candidates[0]["method"] in explanation.choice and "<table>" in explanation._repr_html_()
    _, report = bt.solve(a, np.ones(n), return_report=True)
    assert report.method == explanation.candidates[0]["method"]
    assert {"jacobi", "arms", "ilut"} <= set(bt.preconditioners())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ("a.mtx", "a.mtx.gz"))
def test_files(tmp_path: Path, rng: np.random.Generator, dtype: str, name: str) -> None:
    a = sp.csr_array(random(rng, (7, 7), dtype) * (rng.uniform(size=(7, 7)) < 0.5))
    path = tmp_path / name
    bt.write(path, a, comments=["seven rows"])
    found = bt.read(path)
    assert np.array_equal(found.toarray().astype(dtype), a.toarray()) and isinstance(found, sp.csr_array)
    peer: Any = scipy.io.mmread(path)
    assert np.array_equal(peer.toarray().astype(dtype), a.toarray())
    text = gzip.open(path, "rt").read() if name.endswith("gz") else path.read_text()
    assert "% seven rows" in text
    x = random(rng, (7,), dtype)
    bt.write(path, x)
    assert np.array_equal(scipy.io.mmread(path)[:, 0].astype(dtype), x)


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        bt.read(tmp_path / "none.mtx")
    assert raised.value.filename.endswith("none.mtx")
    bad = tmp_path / "bad.mtx"
    bad.write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1.0\n")
    with pytest.raises(ValueError, match="bad.mtx:3"):
        bt.read(bad)
    with pytest.raises(OSError):
        bt.write(tmp_path / "no" / "folder.mtx", np.ones(3))


def chain(n: int, up: float, down: float) -> Any:
    """Birth and death."""
    q = np.diag(np.full(n - 1, up), 1) + np.diag(np.full(n - 1, down), -1)
    return q - np.diag(q.sum(1))


@pytest.mark.parametrize("n", (1, 2, 30))
def test_stationary(n: int) -> None:
    q = chain(n, 1.0, 3.0)
    expected = (1 / 3.0) ** np.arange(n)
    expected /= expected.sum()
    pi, report = bt.stationary(sp.csr_array(q), return_report=True)
    np.testing.assert_allclose(pi, expected, rtol=1e-14)
    assert report.error_bound is not None and report.error_bound < 1e-12 and report.method == "gth"
    np.testing.assert_allclose(bt.stationary(q - np.diag(np.diag(q)), kind="rates"), expected, rtol=1e-14)
    np.testing.assert_allclose(bt.stationary(np.eye(n) + q / 8, kind="stochastic"), expected, rtol=1e-12)


def test_matrices_that_are_no_chain() -> None:
    for wrong in (np.eye(3), -chain(3, 1.0, 1.0), np.full((2, 2), np.nan), np.ones((2, 3))):
        with pytest.raises(ValueError):
            bt.stationary(wrong)
    with pytest.raises(np.linalg.LinAlgError, match="closed classes"):
        bt.stationary(np.array([[0.0, 0, 0], [1, -2, 1], [0, 0, 0]]))
    with pytest.raises(TypeError):
        bt.stationary(1j * chain(3, 1.0, 1.0))
    with pytest.raises(ValueError):
        bt.stationary(chain(3, 1.0, 1.0), kind="guess")  # type: ignore[call-overload]


def test_a_plan() -> None:
    queue = bt.CloudQueue(resources=40, threshold=16, arrival=10.0)
    plan = queue.plan(resource_hour=1.0, switch=0.1, waiting_task_hour=0.5)
    assert plan.in_advance == 10 and plan.throughput == pytest.approx(10.0 * (1 - plan.loss), rel=1e-12)
    assert plan.utilisation * plan.resources["mean"] == pytest.approx(plan.throughput)
    assert plan.tasks["probabilities"].sum() == pytest.approx(1.0)
    mean = (plan.tasks["probabilities"] * plan.tasks["values"]).sum()
    close(mean, plan.tasks["mean"], "float64")
    assert plan.cost_per_hour > plan.resources["mean"] and plan.to_dict()["states"] == plan.states
    assert "in advance" in repr(plan)
    with pytest.raises(ValueError, match="arrival"):
        bt.CloudQueue(40, 16, -1.0).plan()
    with pytest.raises(AttributeError):
        plan.nothing
