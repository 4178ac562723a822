"""Times beside SciPy's on the same arrays: each pair in turns, the median of several rounds, as text and JSON.

    python versus_scipy.py [--quick] [--json results.json] [--rounds 7] [--only NAME] [--threads 1 2]
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.io
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import blocktri as bt

Work = Callable[[], Any]


def rounds(ours: Work, theirs: Work, count: int) -> tuple[float, float]:
    """Median seconds of both, one after the other in every round."""
    times: tuple[list[float], list[float]] = ([], [])
    begun = time.perf_counter()
    for turn in range(count + 1):
        for work, taken in zip((ours, theirs), times):
            start = time.perf_counter()
            work()
            taken.append(time.perf_counter() - start)
        # The first round warms up; where it takes long it is the only one.
        if turn == 0:
            if time.perf_counter() - begun > 10:
                break
            times[0].clear()
            times[1].clear()
    return statistics.median(times[0]), statistics.median(times[1])


def bands(rng: np.random.Generator, quick: bool) -> list[tuple[str, Work, Work]]:
    n = 10_000 if quick else 100_000
    cases: list[tuple[str, Work, Work]] = []
    for width in (1, 8, 32):
        ab = rng.uniform(-1, 1, (2 * width + 1, n))
        ab[width] += 2 * width + 1
        b = rng.uniform(-1, 1, n)
        widths = (width, width)
        cases.append(
            (
                f"solve_banded, n = {n}, half-bandwidth {width}",
                partial(bt.solve_banded, widths, ab, b),
                partial(scipy.linalg.solve_banded, widths, ab, b),
            )
        )
    return cases


def stacks(rng: np.random.Generator, quick: bool) -> list[tuple[str, Work, Work]]:
    batch, n = (200, 128) if quick else (10_000, 512)
    ab = rng.uniform(-1, 1, (batch, 3, n))
    ab[:, 1] += 3
    b = rng.uniform(-1, 1, (batch, n, 1))

    def theirs() -> list[Any]:
        return [scipy.linalg.solve_banded((1, 1), a, x, check_finite=False) for a, x in zip(ab, b)]

    return [(f"{batch} tridiagonal systems of {n}", lambda: bt.solve_banded((1, 1), ab, b), theirs)]


def block_tridiagonal(rng: np.random.Generator, quick: bool) -> list[tuple[str, Work, Work]]:
    cases: list[tuple[str, Work, Work]] = []
    for k in (4, 16, 64):
        m = (2_000 if quick else 20_000) // k
        lower, diagonal, upper = (rng.uniform(-1, 1, (c, k, k)) for c in (m - 1, m, m - 1))
        diagonal += 4 * k * np.eye(k)
        b = rng.uniform(-1, 1, m * k)
        matrix = bt.BlockTridiagonal(lower, diagonal, upper).tocsr().tocsc()
        cases.append(
            (
                f"block-tridiagonal, {m} blocks of {k}",
                partial(bt.solve_block_tridiagonal, lower, diagonal, upper, b),
                partial(by_splu, matrix, b),
            )
        )
    return cases


def by_splu(a: Any, b: Any) -> Any:
    """As SciPy does it."""
    return spla.splu(a).solve(b)


def cloud(resources: int, places: int) -> Any:
    """A generator with the states of the cloud model: i tasks and j resources with places·(j − 1) ≤ i ≤ places·(j + 1)."""
    states = [
        (i, j)
        for i in range(places * (resources + 1) + 1)
        for j in range(max(1, -(-i // places) - 1), min(resources, i // places + 1) + 1)
    ]
    index = {state: at for at, state in enumerate(states)}
    rows, cols, rates = [], [], []
    for (i, j), at in index.items():
        moves = ((i + 1, j, resources / 2), (i - 1, j, float(min(j, -(-i // places)))), (i, j + 1, 1.0), (i, j - 1, 1.0))
        for tasks, on, rate in moves:
            to = index.get((tasks, on))
            if to is not None and rate > 0:
                rows.append(at)
                cols.append(to)
                rates.append(rate)
    q = sp.csr_array((rates, (rows, cols)), shape=(len(states), len(states)))
    return (q - sp.diags_array(np.asarray(q.sum(axis=1)).ravel())).tocsr()


def chains(quick: bool) -> list[tuple[str, Work, Work]]:
    q = cloud(100 if quick else 2000, 8)

    def normalised() -> Any:
        # πQ = 0 and Σπ = 1: the last equation gives way to the sum.
        a = q.T.tolil()
        a[-1, :] = 1.0
        right = np.zeros(q.shape[0])
        right[-1] = 1.0
        return spla.splu(a.tocsc()).solve(right)

    return [(f"stationary distribution of {q.shape[0]} states", lambda: bt.stationary(q), normalised)]


def files(rng: np.random.Generator, quick: bool) -> list[tuple[str, Work, Work]]:
    n = 10_000 if quick else 200_000
    path = Path(tempfile.mkdtemp()) / "a.mtx"
    bt.write(path, sp.random_array((n, n), density=5 / n, rng=rng).tocsr())
    return [(f"Matrix Market file of {5 * n} entries", lambda: bt.read(path), lambda: scipy.io.mmread(path))]


def tiny() -> list[tuple[str, Work, Work]]:
    ab, b = np.array([[0.0, 1, 1], [4, 4, 4], [1, 1, 0]]), np.ones(3)

    def repeated(solve: Work) -> Work:
        return lambda: [solve() for _ in range(1000)]

    ours, theirs = (lambda: bt.solve_banded((1, 1), ab, b)), (lambda: scipy.linalg.solve_banded((1, 1), ab, b))
    return [("1000 calls of solve_banded, n = 3", repeated(ours), repeated(theirs))]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--quick", action="store_true", help="small systems")
    options.add_argument("--json", type=Path, help="write the table here")
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--only", default="", help="cases whose name has this in it")
    options.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    chosen = options.parse_args()
    table: list[dict[str, Any]] = []
    print(f"{'case':<46} {'threads':>7} {'blocktri':>11} {'scipy':>11} {'ratio':>7}")
    for threads in chosen.threads:
        rng = np.random.default_rng(1)
        cases = bands(rng, chosen.quick) + stacks(rng, chosen.quick) + block_tridiagonal(rng, chosen.quick)
        cases += chains(chosen.quick) + files(rng, chosen.quick) + (tiny() if threads == 1 else [])
        for name, ours, theirs in cases:
            if chosen.only not in name:
                continue
            if name.startswith("1000 calls"):
                mine, peer = rounds(ours, theirs, chosen.rounds)
            else:
                with bt.threadpool(threads):
                    mine, peer = rounds(ours, theirs, chosen.rounds)
            table.append({"case": name, "threads": threads, "blocktri": mine, "scipy": peer, "ratio": peer / mine})
            print(f"{name:<46} {threads:>7} {mine * 1e3:>8.3f} ms {peer * 1e3:>8.3f} ms {peer / mine:>7.2f}", flush=True)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps({"about": about(), "rounds": chosen.rounds, "table": table}, indent=1) + "\n")


def about() -> dict[str, str]:
    """What was measured, where and when."""
    facts = {"numpy": np.__version__, "scipy": scipy.__version__, "python": platform.python_version()}
    facts |= {"blocktri": bt.__version__, "machine": platform.machine(), "processor": processor()}
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=Path(__file__).parent)
    facts |= {"commit": commit.stdout.strip(), "date": datetime.date.today().isoformat()}
    return facts | {"command": "python python/benchmarks/versus_scipy.py " + " ".join(sys.argv[1:])}


def processor() -> str:
    """Its name and whether it has AVX-512, where Linux tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    named = {key.strip(): value for key, value in facts.items()}
    vectors = "AVX-512" if "avx512f" in named.get("flags", "") else "no AVX-512"
    return f"{named.get('model name', platform.processor()).strip()}, {vectors}"


if __name__ == "__main__":
    main()
