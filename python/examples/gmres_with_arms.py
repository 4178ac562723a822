"""SciPy's GMRES with a preconditioner of this package, and this package's FGMRES beside it.

A convection–diffusion problem on a square, 10 000 unknowns, in which the wind turns. The script checks both answers.

    python gmres_with_arms.py [picture.svg]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from support import picture

import blocktri as bt

N = 100


def problem() -> Any:
    """Five points, the wind by upwind differences."""
    h = 1 / (N + 1)
    x = h * np.arange(1, N + 1)
    below, on, above = -np.ones(N - 1), np.ones(N), -np.ones(N - 1)
    three: Any = [below, 2 * on, above]
    two: Any = [below, on]
    second = sp.diags_array(three, offsets=(-1, 0, 1)) / h**2
    first = sp.diags_array(two, offsets=(-1, 0)) / h
    eye = sp.eye_array(N)
    wind = sp.diags_array(400 * np.repeat(x, N)) @ sp.kron(eye, first)
    return (sp.kron(second, eye) + sp.kron(eye, second) + wind).tocsr()


def main() -> None:
    a = problem()
    b = np.ones(N * N)
    curves = {}
    for name in ("ilu0", "arms"):
        history: list[float] = []
        m: Any = bt.preconditioner(a, name)
        x, status = spla.gmres(a, b, M=m, rtol=1e-8, restart=50, callback=history.append, callback_type="pr_norm")
        residual = np.linalg.norm(b - a @ x) / np.linalg.norm(b)
        print(f"scipy's gmres with {name}: {len(history)} steps, residual {residual:.1e}")
        assert status == 0 and residual < 1e-6
        curves[name] = (np.arange(1.0, len(history) + 1), np.array(history))
    told: list[float] = []
    x, report = bt.fgmres(a, b, M="arms", rtol=1e-8, restart=50, callback=lambda _, r: told.append(r))
    print(f"blocktri's fgmres with arms: {report.iterations} steps, residual {report.relative_residual:.1e}")
    assert report.converged
    curves["arms, fgmres of blocktri"] = (np.arange(1.0, len(told) + 1), np.array(told))
    picture("GMRES on a convection–diffusion problem", "step", "relative residual", curves, log=True)


if __name__ == "__main__":
    main()
