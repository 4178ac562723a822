"""Systems given by their diagonals or blocks, one or a batch, with SciPy's names and arguments where SciPy has the function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from . import _blocktri
from ._arrays import SCALARS, Array, as_scalar, common, inexact
from ._arrays import check_finite as all_finite
from ._blocktri import Report
from ._errors import BreakdownError, SingularMatrixError, tell
from ._matrices import Blocks, BlockTridiagonal, check_rows, widths
from ._solve import solve
from ._threads import checked, inside

__all__ = ["solve_banded", "solve_block_tridiagonal", "solve_periodic", "solve_tridiagonal", "solveh_banded"]

Failed = tuple[int, str, int | None, str]


def _raise(failed: Sequence[Failed], batched: bool) -> None:
    """The exception for the first system that was not solved."""
    system, kind, row, text = failed[0]
    if kind in ("not-finite", "invalid"):
        raise ValueError(f"array must not contain infs or NaNs: {text}" if kind == "not-finite" else text)
    error = SingularMatrixError(text) if kind == "singular" else BreakdownError(text)
    error.row = row
    if batched:
        error.system = system
    raise error


class _Batch:
    """Right-hand sides and batch axes of a call, and the way back from the solutions."""

    def __init__(self, b: Array, *matrices: tuple[Array, int]) -> None:
        self.core = 1 if b.ndim == 1 else 2
        if b.ndim == 0:
            raise ValueError("b must have at least one dimension")
        shapes = [m.shape[: m.ndim - core] for m, core in matrices]
        batch = b.shape[: b.ndim - self.core]
        self.batched = bool(batch) or any(shapes)
        self.shape: tuple[int, ...] = np.broadcast_shapes(batch, *shapes) if self.batched else ()
        self.count = 1
        for length in self.shape:
            self.count *= length
        self.n = b.shape[-self.core]
        self.nrhs = 1 if self.core == 1 else b.shape[-1]

    def three(self, a: Array, core: int) -> Array:
        """The array with one batch axis and two of its own."""
        own = a.shape[a.ndim - core :]
        if self.batched:
            a = np.broadcast_to(a, self.shape + own).reshape((self.count, *own))
        else:
            a = a[None]
        return a[..., None] if core == 1 and a.ndim == 2 else a

    def back(self, x: Array) -> Array:
        """From batch × nrhs × n to the shape of b."""
        if not self.batched:
            one: Array = x[0, 0] if self.core == 1 else x[0].T
            return one
        if self.core == 1:
            return x.reshape((*self.shape, self.n))
        many: Array = x.reshape((*self.shape, self.nrhs, self.n)).swapaxes(-1, -2)
        return many

    def empty(self, dtype: np.dtype[Any]) -> Array:
        """A solution without entries."""
        return np.empty((*self.shape, self.n) if self.core == 1 else (*self.shape, self.n, self.nrhs), dtype)


def _finish(
    batch: _Batch, answer: tuple[Array, list[Failed], Report | None], return_report: bool
) -> Array | tuple[Array, Report]:
    x, failed, report = answer
    # A solution that overflows is an answer, of which the caller is told.
    refused = [one for one in failed if one[1] != "overflow"]
    if refused and not (return_report and batch.batched):
        _raise(refused, batch.batched)
    if not return_report:
        tell([text for *_, text in failed])
    if report is None:
        return batch.back(x)
    return batch.back(x), report


def _nothing(return_report: bool) -> None:
    if return_report:
        raise ValueError("there is nothing to solve, and so nothing to report")


@overload
def solve_banded(
    l_and_u: tuple[SupportsIndex, SupportsIndex],
    ab: npt.ArrayLike,
    b: npt.ArrayLike,
    overwrite_ab: bool = ...,
    overwrite_b: bool = ...,
    check_finite: bool = ...,
    *,
    return_report: Literal[False] = ...,
    threads: SupportsIndex | None = ...,
) -> Array: ...
@overload
def solve_banded(
    l_and_u: tuple[SupportsIndex, SupportsIndex],
    ab: npt.ArrayLike,
    b: npt.ArrayLike,
    overwrite_ab: bool = ...,
    overwrite_b: bool = ...,
    check_finite: bool = ...,
    *,
    return_report: Literal[True],
    threads: SupportsIndex | None = ...,
) -> tuple[Array, Report]: ...
def solve_banded(
    l_and_u: tuple[SupportsIndex, SupportsIndex],
    ab: npt.ArrayLike,
    b: npt.ArrayLike,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    *,
    return_report: bool = False,
    threads: SupportsIndex | None = None,
) -> Array | tuple[Array, Report]:
    """Solve a @ x = b for a band matrix, as `scipy.linalg.solve_banded`.

    Band LU with partial pivoting, one elimination for three diagonals; batches of tridiagonal systems side by side in vectors.

    Parameters
    ----------
    l_and_u : (int, int)
        Numbers of diagonals below and above the main one.
    ab : array_like, shape (..., l + u + 1, n)
        Diagonal ordered form: ``ab[..., u + i - j, j] == a[..., i, j]``. What lies outside the matrix is not used.
    b : array_like, shape (n,) or (..., n, k)
        Right-hand sides; leading axes broadcast with those of `ab`.
    overwrite_ab, overwrite_b : bool, optional
        For SciPy's sake. Nothing is overwritten.
    check_finite : bool, optional
        Refuse infinities and NaNs in `b`. Those in the matrix are refused either way; of a batch with a report they concern their system.
    return_report : bool, optional
        Recompute the residual and return a `Report` too. Of a batch, a system that fails then has NaN for a solution and its reason in
        ``report.status``, and does not concern the others; without a report it raises.
    threads : int, optional
        Number of threads; see `threadpool`.

    Returns
    -------
    x : ndarray
        Solution, of the broadcast shape.
    report : Report
        Only with `return_report`.

    Raises
    ------
    SingularMatrixError
        When a matrix is singular, with its row and system.

    Examples
    --------
    >>> import numpy as np
    >>> import blocktri as bt
    >>> ab = np.array([[0.0, 2.0, 2.0], [4.0, 4.0, 4.0], [1.0, 1.0, 0.0]])
    >>> bt.solve_banded((1, 1), ab, np.array([6.0, 7.0, 5.0]))
    array([1., 1., 1.])
    >>> stack = np.stack([ab, 2 * ab])
    >>> bt.solve_banded((1, 1), stack, np.array([[6.0], [7.0], [5.0]]))[:, :, 0]
    array([[1. , 1. , 1. ],
           [0.5, 0.5, 0.5]])
    """
    lower, upper = widths(l_and_u)
    if (
        type(ab) is np.ndarray
        and type(b) is np.ndarray
        and ab.dtype == b.dtype
        and ab.dtype in SCALARS
        and ab.ndim == 2
        and 1 <= b.ndim <= 2
        and lower < ab.shape[1] > upper
        and b.size
        and threads is None
        and not return_report
        and ab.flags.aligned
        and b.flags.aligned
    ):
        # What most calls are: nothing is to be converted or broadcast.
        check_rows(lower, upper, ab)
        answer, failed, _ = _blocktri.solve_band(lower, upper, ab, b, check_finite, False, inside())
        if failed:
            _raise(failed, False)
        return answer
    matrices, rhs = inexact(ab, "ab"), inexact(b, "b")
    if matrices.ndim < 2:
        raise ValueError("ab must have at least two dimensions")
    batch = _Batch(rhs, (matrices, 2))
    if matrices.shape[-1] != batch.n:
        raise ValueError("shapes of ab and b are not compatible.")
    check_rows(lower, upper, matrices)
    dtype = matrices.dtype if matrices.dtype == rhs.dtype else common(matrices, rhs)
    number = checked(threads)
    if batch.n == 0 or batch.nrhs == 0 or batch.count == 0:
        _nothing(return_report)
        return batch.empty(dtype)
    most = batch.n - 1
    if lower > most or upper > most:
        # Diagonals that lie outside the matrix.
        kept_lower, kept_upper = min(lower, most), min(upper, most)
        matrices = matrices[..., upper - kept_upper : upper + kept_lower + 1, :]
        lower, upper = kept_lower, kept_upper
    matrices, rhs = as_scalar(matrices, dtype), as_scalar(rhs, dtype)
    three = batch.three(matrices, 2), batch.three(rhs, batch.core)
    found = _blocktri.solve_band(lower, upper, *three, check_finite, return_report, number)
    return _finish(batch, found, return_report)


@overload
def solveh_banded(
    ab: npt.ArrayLike,
    b: npt.ArrayLike,
    overwrite_ab: bool = ...,
    overwrite_b: bool = ...,
    lower: bool = ...,
    check_finite: bool = ...,
    *,
    return_report: Literal[False] = ...,
    threads: SupportsIndex | None = ...,
) -> Array: ...
@overload
def solveh_banded(
    ab: npt.ArrayLike,
    b: npt.ArrayLike,
    overwrite_ab: bool = ...,
    overwrite_b: bool = ...,
    lower: bool = ...,
    check_finite: bool = ...,
    *,
    return_report: Literal[True],
    threads: SupportsIndex | None = ...,
) -> tuple[Array, Report]: ...
def solveh_banded(
    ab: npt.ArrayLike,
    b: npt.ArrayLike,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = True,
    *,
    return_report: bool = False,
    threads: SupportsIndex | None = None,
) -> Array | tuple[Array, Report]:
    """Solve a @ x = b for a Hermitian positive definite band matrix, as `scipy.linalg.solveh_banded`.

    Parameters
    ----------
    ab : array_like, shape (..., u + 1, n)
        Upper form ``ab[..., u + i - j, j] == a[..., i, j]`` for i ≤ j, or with `lower` ``ab[..., i - j, j] == a[..., i, j]`` for i ≥ j.
    b : array_like, shape (n,) or (..., n, k)
        Right-hand sides; leading axes broadcast with those of `ab`.
    overwrite_ab, overwrite_b : bool, optional
        For SciPy's sake. Nothing is overwritten.
    lower : bool, optional
        Whether `ab` is in lower form.
    check_finite : bool, optional
        As of `solve_banded`.
    return_report : bool, optional
        As of `solve_banded`.
    threads : int, optional
        Number of threads; see `threadpool`.

    Returns
    -------
    x : ndarray
        Solution, of the broadcast shape.
    report : Report
        Only with `return_report`.

    Raises
    ------
    numpy.linalg.LinAlgError
        When a matrix is not positive definite.

    Examples
    --------
    >>> import blocktri as bt
    >>> bt.solveh_banded([[4.0, 4.0, 4.0], [1.0, 1.0, 0.0]], [5.0, 6.0, 5.0], lower=True)
    array([1., 1., 1.])
    """
    matrices, rhs = inexact(ab, "ab"), inexact(b, "b")
    if matrices.ndim < 2 or matrices.shape[-2] == 0:
        raise ValueError("ab must have at least two dimensions, and a diagonal")
    if check_finite:
        all_finite(matrices)
        all_finite(rhs)
    batch = _Batch(rhs, (matrices, 2))
    if matrices.shape[-1] != batch.n:
        raise ValueError("shapes of ab and b are not compatible.")
    dtype = common(matrices, rhs)
    number = checked(threads)
    if batch.n == 0 or batch.nrhs == 0 or batch.count == 0:
        _nothing(return_report)
        return batch.empty(dtype)
    matrices, rhs = as_scalar(matrices, dtype), as_scalar(rhs, dtype)
    width = min(matrices.shape[-2] - 1, batch.n - 1)
    if lower:
        below = matrices[..., : width + 1, :]
    else:
        # a(j + r, j) = conj(a(j, j + r)), which stands in row u − r of column j + r.
        last = matrices.shape[-2] - 1
        below = np.zeros((*matrices.shape[:-2], width + 1, batch.n), dtype)
        for r in range(width + 1):
            below[..., r, : batch.n - r] = matrices[..., last - r, r:].conj()
    three = batch.three(below, 2), batch.three(rhs, batch.core)
    return _finish(batch, _blocktri.solve_hermitian_band(*three, return_report, number), return_report)


@overload
def solve_tridiagonal(
    dl: npt.ArrayLike,
    d: npt.ArrayLike,
    du: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    check_finite: bool = ...,
    return_report: Literal[False] = ...,
    threads: SupportsIndex | None = ...,
) -> Array: ...
@overload
def solve_tridiagonal(
    dl: npt.ArrayLike,
    d: npt.ArrayLike,
    du: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    check_finite: bool = ...,
    return_report: Literal[True],
    threads: SupportsIndex | None = ...,
) -> tuple[Array, Report]: ...
def solve_tridiagonal(
    dl: npt.ArrayLike,
    d: npt.ArrayLike,
    du: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    check_finite: bool = True,
    return_report: bool = False,
    threads: SupportsIndex | None = None,
) -> Array | tuple[Array, Report]:
    """Solve tridiagonal systems, with partial pivoting.

    Parameters
    ----------
    dl : array_like, shape (..., n - 1)
        Entries below the diagonal.
    d : array_like, shape (..., n)
        Diagonal.
    du : array_like, shape (..., n - 1)
        Entries above the diagonal.
    b : array_like, shape (n,) or (..., n, k)
        Right-hand sides; leading axes broadcast with those of the diagonals.
    check_finite : bool, optional
        As of `solve_banded`.
    return_report : bool, optional
        As of `solve_banded`.
    threads : int, optional
        Number of threads; see `threadpool`.

    Returns
    -------
    x : ndarray
        Solution, of the broadcast shape.
    report : Report
        Only with `return_report`.

    Examples
    --------
    >>> import blocktri as bt
    >>> bt.solve_tridiagonal([1.0, 1.0], [4.0, 4.0, 4.0], [1.0, 1.0], [5.0, 6.0, 5.0])
    array([1., 1., 1.])
    """
    below, diagonal, above, rhs = (inexact(a, name) for a, name in ((dl, "dl"), (d, "d"), (du, "du"), (b, "b")))
    for name, array in (("dl", below), ("d", diagonal), ("du", above)):
        if array.ndim == 0:
            raise ValueError(f"{name} must have at least one dimension")
    n = diagonal.shape[-1]
    if below.shape[-1] != max(n - 1, 0) or above.shape[-1] != max(n - 1, 0):
        raise ValueError(f"dl and du must have {max(n - 1, 0)} entries beside a diagonal of {n}")
    dtype = common(below, diagonal, above, rhs)
    shape = np.broadcast_shapes(below.shape[:-1], diagonal.shape[:-1], above.shape[:-1])
    ab = np.zeros((*shape, 3, n), dtype)
    if n > 0:
        ab[..., 0, 1:], ab[..., 1, :], ab[..., 2, :-1] = above, diagonal, below
    # The overloads of solve_banded want to know which report is meant.
    if return_report:
        return solve_banded((1, 1), ab, rhs, check_finite=check_finite, return_report=True, threads=threads)
    return solve_banded((1, 1), ab, rhs, check_finite=check_finite, threads=threads)


@overload
def solve_periodic(
    dl: npt.ArrayLike,
    d: npt.ArrayLike,
    du: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    check_finite: bool = ...,
    return_report: Literal[False] = ...,
    threads: SupportsIndex | None = ...,
) -> Array: ...
@overload
def solve_periodic(
    dl: npt.ArrayLike,
    d: npt.ArrayLike,
    du: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    check_finite: bool = ...,
    return_report: Literal[True],
    threads: SupportsIndex | None = ...,
) -> tuple[Array, Report]: ...
def solve_periodic(
    dl: npt.ArrayLike,
    d: npt.ArrayLike,
    du: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    check_finite: bool = True,
    return_report: bool = False,
    threads: SupportsIndex | None = None,
) -> Array | tuple[Array, Report]:
    """Solve periodic (cyclic) tridiagonal systems, with partial pivoting.

    Parameters
    ----------
    dl : array_like, shape (..., n)
        ``dl[..., i]`` stands at (i, i - 1), and ``dl[..., 0]`` in the corner (0, n - 1).
    d : array_like, shape (..., n)
        Diagonal; n is at least 3.
    du : array_like, shape (..., n)
        ``du[..., i]`` stands at (i, i + 1), and ``du[..., n - 1]`` in the corner (n - 1, 0).
    b : array_like, shape (n,) or (..., n, k)
        Right-hand sides; leading axes broadcast with those of the diagonals.
    check_finite : bool, optional
        As of `solve_banded`.
    return_report : bool, optional
        As of `solve_banded`.
    threads : int, optional
        Number of threads; see `threadpool`.

    Returns
    -------
    x : ndarray
        Solution, of the broadcast shape.
    report : Report
        Only with `return_report`.

    Examples
    --------
    >>> import numpy as np
    >>> import blocktri as bt
    >>> bt.solve_periodic(np.ones(4), np.full(4, 4.0), np.ones(4), np.full(4, 6.0))
    array([1., 1., 1., 1.])
    """
    below, diagonal, above, rhs = (inexact(a, name) for a, name in ((dl, "dl"), (d, "d"), (du, "du"), (b, "b")))
    for name, array in (("dl", below), ("d", diagonal), ("du", above)):
        if array.ndim == 0:
            raise ValueError(f"{name} must have at least one dimension")
    if check_finite:
        for array in (below, diagonal, above, rhs):
            all_finite(array)
    batch = _Batch(rhs, (below, 1), (diagonal, 1), (above, 1))
    n = diagonal.shape[-1]
    if not below.shape[-1] == above.shape[-1] == n == batch.n:
        raise ValueError("dl, d, du and b must be of one length")
    if n < 3:
        raise ValueError("a periodic system has at least three rows: below that its corners fall on other entries")
    dtype = common(below, diagonal, above, rhs)
    number = checked(threads)
    if batch.nrhs == 0 or batch.count == 0:
        _nothing(return_report)
        return batch.empty(dtype)
    dl3, d3, du3 = (batch.three(as_scalar(a, dtype)[..., None, :], 2) for a in (below, diagonal, above))
    b3 = batch.three(as_scalar(rhs, dtype), batch.core)
    return _finish(batch, _blocktri.solve_periodic(dl3, d3, du3, b3, return_report, number), return_report)


@overload
def solve_block_tridiagonal(
    L: Blocks,
    D: Blocks,
    U: Blocks,
    b: npt.ArrayLike,
    *,
    return_report: Literal[False] = ...,
    threads: SupportsIndex | None = ...,
    **options: Any,
) -> Array: ...
@overload
def solve_block_tridiagonal(
    L: Blocks,
    D: Blocks,
    U: Blocks,
    b: npt.ArrayLike,
    *,
    return_report: Literal[True],
    threads: SupportsIndex | None = ...,
    **options: Any,
) -> tuple[Array, Report]: ...
def solve_block_tridiagonal(
    L: Blocks,
    D: Blocks,
    U: Blocks,
    b: npt.ArrayLike,
    *,
    return_report: bool = False,
    threads: SupportsIndex | None = None,
    **options: Any,
) -> Array | tuple[Array, Report]:
    """Solve a block-tridiagonal system, and certify the answer.

    Parameters
    ----------
    L : array_like of shape (..., m - 1, k, k), or sequence of m - 1 matrices
        Blocks below the diagonal: ``L[j]`` stands in block row j + 1.
    D : array_like of shape (..., m, k, k), or sequence of m square matrices of any sizes
        Diagonal blocks.
    U : array_like of shape (..., m - 1, k, k), or sequence of m - 1 matrices
        Blocks above the diagonal: ``U[j]`` stands in block row j.
    b : array_like, shape (n,) or (..., n, p), or (m, k) for stacks
        Right-hand sides, n being the sum of the block sizes. For stacks without leading axes, an array of m × k with k > 1 is one vector by
        blocks, and the answer has that shape.
    return_report : bool, optional
        Return a `Report` too. Of stacks with leading axes a system that fails then has NaN for a solution and its reason in
        ``report.status``; without a report it raises.
    threads : int, optional
        Number of threads; see `threadpool`.
    **options
        Options of `solve`.

    Returns
    -------
    x : ndarray, shape of b
        Solution.
    report : Report
        Only with `return_report`.

    Examples
    --------
    >>> import numpy as np
    >>> import blocktri as bt
    >>> D = np.array([[[4.0, 1.0], [1.0, 4.0]]] * 3)
    >>> L = U = np.array([[[1.0, 0.0], [0.0, 1.0]]] * 2)
    >>> bt.solve_block_tridiagonal(L, D, U, np.array([6.0, 6.0, 7.0, 7.0, 6.0, 6.0]))
    array([1., 1., 1., 1., 1., 1.])
    """
    lower, diagonal, upper = (_stack(a, name) for a, name in ((L, "L"), (D, "D"), (U, "U")))
    if lower is None or diagonal is None or upper is None:
        return _one(BlockTridiagonal(L, D, U), b, return_report, threads, options)
    rhs = inexact(b, "b")
    if lower.ndim == diagonal.ndim == upper.ndim == 3 and (return_report or options):
        # The facade knows the condition number, and methods by name.
        return _one(BlockTridiagonal(lower, diagonal, upper), rhs, return_report, threads, options)
    if options:
        raise TypeError("of stacks with leading axes only return_report and threads are read")
    m, k = diagonal.shape[-3], diagonal.shape[-1]
    shape = rhs.shape
    if diagonal.ndim == 3 and rhs.ndim == 2 and shape[0] != m * k and shape == (m, k):
        rhs = rhs.reshape(m * k)
    batch = _Batch(rhs, (lower, 3), (diagonal, 3), (upper, 3))
    if batch.n != m * k:
        raise ValueError(f"b has {batch.n} rows, the matrix has {m * k}")
    dtype = common(lower, diagonal, upper, rhs)
    number = checked(threads)
    if batch.n == 0 or batch.nrhs == 0 or batch.count == 0:
        _nothing(return_report)
        return batch.empty(dtype)
    l4, d4, u4 = (batch.three(as_scalar(a, dtype), 3) for a in (lower, diagonal, upper))
    b3 = batch.three(as_scalar(rhs, dtype), batch.core)
    answer, messages = _blocktri.solve_blocks(l4, d4, u4, b3, return_report, number)
    tell(messages)
    if return_report or batch.batched:
        return _finish(batch, answer, return_report)
    found: Array = np.reshape(np.asarray(_finish(batch, answer, False)), shape)
    return found


def _stack(a: Blocks, name: str) -> Array | None:
    """A stack of matrices of one size, of three or more dimensions; None for a list of matrices of their own sizes."""
    if isinstance(a, np.ndarray) and a.dtype != object:
        array = inexact(a, name)
        if array.ndim < 3:
            raise ValueError(f"{name} must be a stack of matrices, of at least three dimensions, not {array.ndim}")
        return array
    return None


def _one(
    matrix: BlockTridiagonal, b: npt.ArrayLike, return_report: bool, threads: SupportsIndex | None, options: dict[str, Any]
) -> Array | tuple[Array, Report]:
    """One system by the facade."""
    rhs, n, sizes = inexact(b, "b"), matrix.shape[0], matrix.block_sizes
    shape = rhs.shape
    if rhs.ndim == 2 and shape[0] != n and len(set(sizes)) == 1 and shape == (len(sizes), sizes[0]):
        rhs = rhs.reshape(n)
    if return_report:
        x, report = solve(matrix, rhs, return_report=True, threads=threads, **options)
        return x.reshape(shape), report
    answer: Array = solve(matrix, rhs, threads=threads, **options).reshape(shape)
    return answer
