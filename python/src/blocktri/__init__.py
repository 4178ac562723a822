"""Block-tridiagonal, banded, tridiagonal and sparse linear systems, with a certificate for every answer.

Functions that SciPy has carry SciPy's names and arguments. What SciPy does not have: factors to keep of every kind of matrix
(`factorize`), block-tridiagonal and periodic systems, condition estimates, log-determinants and parts of the inverse, preconditioners as
linear operators, stationary distributions of Markov chains.

>>> import numpy as np
>>> import blocktri as bt
>>> A = bt.Tridiagonal([1.0, 1.0], [4.0, 4.0, 4.0], [1.0, 1.0])
>>> x, report = bt.solve(A, np.array([5.0, 6.0, 5.0]), return_report=True)
>>> x
array([1., 1., 1.])
>>> report.method, report.backward_error < 1e-15
('thomas', True)
"""

from ._banded import (
    solve_banded,
    solve_block_tridiagonal,
    solve_periodic,
    solve_tridiagonal,
    solveh_banded,
)
from ._blocktri import Report, __version__
from ._errors import AccuracyWarning, BreakdownError, DeviceError, SingularMatrixError
from ._factorization import Factorization, SelectedInverse, factorize
from ._files import read, write
from ._info import Explanation, Info, explain, info, methods, preconditioners
from ._krylov import bicgstab, cg, fgmres, gmres, hbisa, preconditioner
from ._matrices import Banded, BlockTridiagonal, Tridiagonal
from ._queue import CloudQueue, Plan, StationaryReport, stationary
from ._solve import solve
from ._threads import threadpool

__all__ = [
    "AccuracyWarning",
    "Banded",
    "BlockTridiagonal",
    "BreakdownError",
    "CloudQueue",
    "DeviceError",
    "Explanation",
    "Factorization",
    "Info",
    "Plan",
    "Report",
    "SelectedInverse",
    "SingularMatrixError",
    "StationaryReport",
    "Tridiagonal",
    "__version__",
    "bicgstab",
    "cg",
    "explain",
    "factorize",
    "fgmres",
    "gmres",
    "hbisa",
    "info",
    "methods",
    "preconditioner",
    "preconditioners",
    "read",
    "solve",
    "solve_banded",
    "solve_block_tridiagonal",
    "solve_periodic",
    "solve_tridiagonal",
    "solveh_banded",
    "stationary",
    "threadpool",
    "write",
]
