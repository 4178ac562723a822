"""Iterative methods and preconditioners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from . import _blocktri
from ._arrays import Array, as_scalar, check_finite, common, inexact, right_hand_side
from ._blocktri import Report
from ._factorization import Factorization
from ._linear import LinearOperatorLike, linear_operator
from ._matrices import _Structured, is_sparse, of_dtype, square
from ._threads import checked

__all__ = ["bicgstab", "cg", "fgmres", "gmres", "hbisa", "preconditioner"]

Callback = Callable[[int, float], object]


def preconditioner(A: object, name: str, *, threads: SupportsIndex | None = None, **options: Any) -> LinearOperatorLike:
    """A preconditioner of A as a `scipy.sparse.linalg.LinearOperator`.

    Parameters
    ----------
    A : matrix
        As of `solve`.
    name : str
        ``"jacobi"``, ``"ilu0"``, ``"ilut"``, ``"ic0"``, ``"arms"``, ``"spike"`` and others; `preconditioners` lists them.
    threads : int, optional
        Number of threads while it is made.
    **options
        Options of the preconditioner: ``levels``, ``fill``, ``drop_tol``, ``omega``, ``overlap``, ``local``, ``sweeps``, ``inner``,
        ``bandwidth``, ``partitions``, ``seed``, ``blocks``.

    Returns
    -------
    LinearOperator
        M⁻¹, an approximation of A⁻¹: what SciPy's ``M=`` takes, and ours.

    Examples
    --------
    >>> import numpy as np
    >>> import blocktri as bt
    >>> M = bt.preconditioner([[2.0, 0.0], [0.0, 4.0]], "jacobi")
    >>> M @ np.array([2.0, 2.0])
    array([1. , 0.5])
    """
    matrix = square(A)
    made = _blocktri.Preconditioner(matrix, name, options or None, checked(threads))
    dtype = np.dtype(made.dtype)

    def matvec(r: Any) -> Array:
        array = np.asarray(r)
        if array.dtype.kind == "c" and dtype.kind != "c":
            return np.asarray(made.apply(as_scalar(array.real, dtype)) + 1j * made.apply(as_scalar(array.imag, dtype)))
        return made.apply(as_scalar(array, dtype))

    return linear_operator(matrix.shape, dtype, matvec, None, made)


def _vector_function(f: Callable[[Array], Any], dtype: np.dtype[Any], n: int) -> Callable[[Array], Array]:
    """The function with results of the scalar and shape that the methods take."""

    def wrapped(x: Array) -> Array:
        y: Array = np.asarray(f(x))
        if y.dtype.kind == "c" and dtype.kind != "c":
            raise TypeError("an operator returned complex values for real ones: make b complex")
        y = y.astype(dtype, copy=False)
        return y.reshape(n) if y.size == n else y

    return wrapped


def _action(M: Any) -> Callable[[Array], Any]:
    """What a preconditioner that is not named does to a vector."""
    if is_sparse(M) or isinstance(M, (_Structured, np.ndarray)):
        product: Callable[[Array], Any] = M.__matmul__
        return product
    if isinstance(M, (list, tuple)):
        return inexact(M, "M").__matmul__
    action = getattr(M, "matvec", M)
    if not callable(action):
        raise TypeError(f"M is of type {type(M).__name__}; a name, a matrix, a linear operator or a function is needed")
    return action  # type: ignore[no-any-return]


def _iterate(
    method: str,
    A: Any,
    b: npt.ArrayLike,
    x0: npt.ArrayLike | None,
    M: Any,
    callback: Callback | None,
    threads: SupportsIndex | None,
    options: dict[str, Any],
) -> tuple[Array, Report]:
    explicit = not (hasattr(A, "matvec") or callable(A)) or is_sparse(A) or isinstance(A, (_Structured, np.ndarray))
    operator: Any
    if explicit:
        operator = square(A)
        n = operator.shape[0]
        rhs = right_hand_side(b, n)
        dtype = common(np.empty(0, operator.dtype), rhs)
    else:
        shape = getattr(A, "shape", None)
        rhs = inexact(b, "b")
        n = (shape or rhs.shape or (0,))[0]
        if shape is not None and tuple(shape) != (n, n):
            raise ValueError(f"A must be square, and is {' × '.join(map(str, shape))}")
        rhs = right_hand_side(rhs, n)
        given = getattr(A, "dtype", None)
        dtype = common(rhs) if given is None else common(np.empty(0, given), rhs)
    if x0 is not None:
        start = right_hand_side(x0, n)
        dtype = common(np.empty(0, dtype), start)
        check_finite(start)
    operator = of_dtype(operator, dtype) if explicit else _vector_function(getattr(A, "matvec", A), dtype, n)
    check_finite(rhs)
    if rhs.size == 0:
        raise ValueError("there is nothing to solve")
    inside: Any = None
    if isinstance(M, Factorization):
        M = M.aslinearoperator()
    if isinstance(M, str):
        if not explicit or x0 is not None:
            if not explicit:
                raise ValueError("a preconditioner by name needs a matrix with entries")
            inside = preconditioner(A, M, threads=threads, **_of_preconditioner(options))._blocktri  # type: ignore[attr-defined]
            options = _of_method(options)
        else:
            options["precond"] = M
    elif M is not None:
        inside = getattr(M, "_blocktri", None)
        if not isinstance(inside, _blocktri.Preconditioner) or inside.dtype != dtype.name:
            inside = _vector_function(_action(M), dtype, n)
    elif explicit and x0 is None:
        options.setdefault("precond", "none")
    return _blocktri.iterate(
        operator,
        as_scalar(rhs, dtype),
        method,
        options or None,
        inside,
        None if x0 is None else as_scalar(start, dtype),
        callback,
        checked(threads),
    )


_PRECONDITIONING = frozenset(
    ("fill", "drop_tol", "omega", "levels", "inner", "overlap", "local", "sweeps", "bandwidth", "partitions", "seed", "blocks")
)


def _of_preconditioner(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name in _PRECONDITIONING}


def _of_method(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in _PRECONDITIONING}


_COMMON = """{summary}

    Parameters
    ----------
    A : matrix, LinearOperator or callable
        As of `solve`, or a function that returns A @ x for a vector x.{needs}
    b : array_like, shape (n,) or (n, k)
        Right-hand sides.
    x0 : array_like, shape of b, optional
        Start; zeros by default.
    rtol, atol : float, optional
        Stop when ‖b − A x‖₂ ≤ max(atol, rtol·‖b‖₂), for the true residual. By default 1e-8 and 0.
    maxiter : int, optional
        Iterations at most; by default 10 000.{restart}
    M : str, LinearOperator, Factorization, matrix or callable, optional
        Preconditioner: the name of one, what `preconditioner` returns, a `Factorization`, or anything that maps r to an approximation of
        A⁻¹ r.{precond}
    callback : callable, optional
        Called as ``callback(iteration, residual)`` with the relative residual. An exception ends the solve and is raised;
        ``StopIteration`` ends it with the best x so far.
    threads : int, optional
        Number of threads; see `threadpool`.
    **options
        Of the preconditioner named, and ``time_limit``, ``reorder``, ``precision``, ``basis``.

    Returns
    -------
    x : ndarray, shape of b
        The best iterate.
    report : Report
        ``report.outcome`` tells how it ended: not converging is no exception.

    Examples
    --------
    >>> import numpy as np
    >>> import blocktri as bt
    >>> A = bt.Tridiagonal(-np.ones(9), np.full(10, 2.5), -np.ones(9))
    >>> x, report = bt.{name}(A, np.ones(10), rtol=1e-10, M="ilu0")
    >>> report.converged, bool(np.allclose(A @ x, 1.0))
    (True, True)
    """


def cg(
    A: Any,
    b: npt.ArrayLike,
    x0: npt.ArrayLike | None = None,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback | None = None,
    threads: SupportsIndex | None = None,
    **options: Any,
) -> tuple[Array, Report]:
    options |= {"rtol": rtol, "atol": atol, "maxiter": maxiter}
    return _iterate("cg", A, b, x0, M, callback, threads, options)


cg.__doc__ = _COMMON.format(
    name="cg",
    summary="Solve A @ x = b by conjugate gradients.",
    needs=" It must be Hermitian and positive definite.",
    restart="",
    precond=" It must be Hermitian and positive definite too.",
).replace('M="ilu0"', 'M="ic0"')


def bicgstab(
    A: Any,
    b: npt.ArrayLike,
    x0: npt.ArrayLike | None = None,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback | None = None,
    threads: SupportsIndex | None = None,
    **options: Any,
) -> tuple[Array, Report]:
    options |= {"rtol": rtol, "atol": atol, "maxiter": maxiter}
    return _iterate("bicgstab", A, b, x0, M, callback, threads, options)


bicgstab.__doc__ = _COMMON.format(
    name="bicgstab", summary="Solve A @ x = b by stabilized bi-conjugate gradients.", needs="", restart="", precond=""
)

_RESTART = """
    restart : int, optional
        Steps between two restarts; by default 30."""


def gmres(
    A: Any,
    b: npt.ArrayLike,
    x0: npt.ArrayLike | None = None,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    restart: int | None = None,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback | None = None,
    threads: SupportsIndex | None = None,
    **options: Any,
) -> tuple[Array, Report]:
    options |= {"rtol": rtol, "atol": atol, "maxiter": maxiter, "restart": restart}
    return _iterate("gmres", A, b, x0, M, callback, threads, options)


gmres.__doc__ = _COMMON.format(
    name="gmres", summary="Solve A @ x = b by restarted GMRES.", needs="", restart=_RESTART, precond=""
)


def fgmres(
    A: Any,
    b: npt.ArrayLike,
    x0: npt.ArrayLike | None = None,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    restart: int | None = None,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback | None = None,
    threads: SupportsIndex | None = None,
    **options: Any,
) -> tuple[Array, Report]:
    options |= {"rtol": rtol, "atol": atol, "maxiter": maxiter, "restart": restart}
    return _iterate("fgmres", A, b, x0, M, callback, threads, options)


fgmres.__doc__ = _COMMON.format(
    name="fgmres",
    summary="Solve A @ x = b by flexible GMRES.",
    needs="",
    restart=_RESTART,
    precond=" It may change from step to step, as an inner iteration does.",
)


def hbisa(
    A: object,
    b: npt.ArrayLike,
    *,
    sweep: str = "jacobi",
    rtol: float | None = None,
    atol: float | None = None,
    maxiter: int | None = None,
    callback: Callback | None = None,
    threads: SupportsIndex | None = None,
    **options: Any,
) -> tuple[Array, Report]:
    """Solve A @ x = b by the hybrid block iteration on the blocks of the pattern.

    Parameters
    ----------
    A : matrix
        As of `solve`.
    b : array_like, shape (n,) or (n, k)
        Right-hand sides.
    sweep : {"jacobi", "gs", "sgs", "redblack", "sor", "chebyshev"}, optional
        Which blocks a sweep takes from the current iterate, and how it is accelerated.
    rtol, atol : float, optional
        Stop when ‖b − A x‖₂ ≤ max(atol, rtol·‖b‖₂). By default 1e-8 and 0.
    maxiter : int, optional
        Iterations at most; by default 10 000.
    callback : callable, optional
        Called as ``callback(iteration, residual)``.
    threads : int, optional
        Number of threads; see `threadpool`.
    **options
        ``blocks``, a size or a list of them; ``omega`` of ``"sor"``; ``stop``, ``time_limit``, ``reorder``.

    Returns
    -------
    x : ndarray, shape of b
        The best iterate.
    report : Report
        ``report.outcome`` tells how it ended: not converging is no exception.

    Examples
    --------
    >>> import numpy as np
    >>> import blocktri as bt
    >>> D = np.array([[[4.0, 1.0], [1.0, 4.0]]] * 3)
    >>> L = U = np.array([[[1.0, 0.0], [0.0, 1.0]]] * 2)
    >>> x, report = bt.hbisa(bt.BlockTridiagonal(L, D, U), np.ones(6), sweep="redblack", blocks=2)
    >>> report.converged
    True
    """
    names = {"jacobi": "hbisa"} | {s: f"hbisa-{s}" for s in ("gs", "sgs", "redblack", "sor", "chebyshev")}
    if sweep not in names:
        raise ValueError(f"sweep must be one of {', '.join(names)}, not {sweep!r}")
    matrix = square(A)
    rhs = right_hand_side(b, matrix.shape[0])
    check_finite(rhs)
    if rhs.size == 0:
        raise ValueError("there is nothing to solve")
    dtype = common(np.empty(0, matrix.dtype), rhs)
    options |= {"rtol": rtol, "atol": atol, "maxiter": maxiter}
    matrix, rhs = of_dtype(matrix, dtype), as_scalar(rhs, dtype)
    return _blocktri.iterate(matrix, rhs, names[sweep], options, None, None, callback, checked(threads))
