"""One call that solves."""

from __future__ import annotations

from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from . import _blocktri
from ._arrays import Array, as_scalar, check_finite, common, right_hand_side
from ._blocktri import Report
from ._errors import warn
from ._matrices import of_dtype, square
from ._threads import checked

__all__ = ["solve"]


@overload
def solve(
    A: object,
    b: npt.ArrayLike,
    *,
    method: str = ...,
    return_report: Literal[False] = ...,
    threads: SupportsIndex | None = ...,
    **options: Any,
) -> Array: ...
@overload
def solve(
    A: object,
    b: npt.ArrayLike,
    *,
    method: str = ...,
    return_report: Literal[True],
    threads: SupportsIndex | None = ...,
    **options: Any,
) -> tuple[Array, Report]: ...
def solve(
    A: object,
    b: npt.ArrayLike,
    *,
    method: str = "auto",
    return_report: bool = False,
    threads: SupportsIndex | None = None,
    **options: Any,
) -> Array | tuple[Array, Report]:
    """Solve A @ x = b, and certify x.

    Parameters
    ----------
    A : array_like, sparse array, Tridiagonal, Banded or BlockTridiagonal, shape (n, n)
        Matrix. Entries of a sparse array may be unsorted and repeated; repeated ones are added.
    b : array_like, shape (n,) or (n, k)
        Right-hand sides.
    method : str, optional
        ``"auto"`` takes the cheapest direct method for the structure that is found, and a stronger one where its answer is not at rounding
        level. `methods` lists the names.
    return_report : bool, optional
        Return a `Report` too, and leave the outcome to it. It has the condition number of a direct method's matrix, for the price of some
        five solves. Without it, that is estimated where the answer is in doubt, and an outcome other than convergence is an `AccuracyWarning`.
    threads : int, optional
        Number of threads; see `threadpool`.
    **options
        Options of the method: ``reorder``, ``blocks``, ``time_limit`` in seconds, ``device``; of direct methods ``fallback``,
        ``precision``, ``refine``; of ``"auto"`` these and ``rtol``; of iterative methods ``rtol``, ``atol``, ``maxiter``, ``restart``
        and ``precond`` with its options. One that the method does not read is a `TypeError`.

    Returns
    -------
    x : ndarray, shape of b
        Solution, of the scalar that holds A and b.
    report : Report
        Only with `return_report`.

    Raises
    ------
    SingularMatrixError
        When A is singular, with the place.
    BreakdownError
        When a method asked for by name cannot factor A.
    ValueError
        On shapes that do not fit, and on values that are not finite.

    See Also
    --------
    factorize : Factors for several right-hand sides.

    Examples
    --------
    >>> import blocktri as bt
    >>> bt.solve([[0.0, 2.0], [1.0, 0.0]], [2.0, 3.0])
    array([3., 1.])
    >>> x, report = bt.solve([[4.0, 1.0], [1.0, 3.0]], [5.0, 4.0], method="cg", return_report=True)
    >>> report.outcome
    'converged'
    """
    matrix = square(A)
    n = matrix.shape[0]
    rhs = right_hand_side(b, n)
    check_finite(rhs)
    dtype = common(np.empty(0, matrix.dtype), rhs)
    number = checked(threads)
    if n == 0 or rhs.size == 0:
        if return_report:
            raise ValueError("there is nothing to solve, and so nothing to report")
        return np.empty(rhs.shape, dtype)
    given = (of_dtype(matrix, dtype), as_scalar(rhs, dtype), method, options or None, number)
    x, report = _blocktri.solve(*given, return_report)
    warn(report, return_report)
    return (x, report) if return_report else x
