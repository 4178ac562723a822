"""Factors that are kept."""

from __future__ import annotations

from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from . import _blocktri
from ._arrays import Array, as_scalar, check_finite, right_hand_side
from ._blocktri import Report
from ._errors import warn
from ._linear import LinearOperatorLike, linear_operator
from ._matrices import of_dtype, square
from ._threads import checked

__all__ = ["Factorization", "SelectedInverse", "factorize"]

Trans = Literal["N", "T", "H", "C"]


class SelectedInverse:
    """The blocks of A⁻¹ on and beside the diagonal.

    Attributes
    ----------
    block_sizes : list of int
        Rows of the blocks, the natural ones of A.
    diagonal_blocks : list of ndarray
        Blocks on the diagonal.
    upper_blocks : list of ndarray
        Blocks above it: ``upper_blocks[j]`` stands in block row j.
    lower_blocks : list of ndarray
        Blocks below it: ``lower_blocks[j]`` stands in block row j + 1.
    """

    def __init__(self, sizes: list[int], diagonal: list[Array], upper: list[Array], lower: list[Array]) -> None:
        self.block_sizes = sizes
        self.diagonal_blocks = diagonal
        self.upper_blocks = upper
        self.lower_blocks = lower

    def diagonal(self) -> Array:
        """The diagonal of A⁻¹: variances, when A is a precision matrix."""
        return np.concatenate([np.diagonal(block) for block in self.diagonal_blocks])

    def trace(self) -> Any:
        """The trace of A⁻¹."""
        return self.diagonal().sum()

    def __repr__(self) -> str:
        return f"<SelectedInverse of {len(self.block_sizes)} blocks, {sum(self.block_sizes)} rows>"


class Factorization:
    """Factors of a matrix: solves as often as wanted, each answer refined and certified.

    Made by `factorize`. Several threads may solve with one factorization at the same time. It is pickled as its matrix and options, and
    factored again when it is loaded.
    """

    def __init__(self, A: object, method: str = "auto", threads: SupportsIndex | None = None, **options: Any) -> None:
        matrix = square(A)
        if matrix.shape[0] == 0:
            raise ValueError("the matrix is 0 × 0: there is nothing to factor")
        self._matrix = matrix
        self._method = method
        self._options = options
        self._threads = checked(threads)
        self._solver = _blocktri.Solver(matrix, method, options or None, self._threads)
        self._report: Report | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._matrix.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Scalar of the factors."""
        return np.dtype(self._matrix.dtype)

    @property
    def method(self) -> str:
        """The method that factored A."""
        return self._solver.method()

    @property
    def nnz(self) -> int:
        """Entries of the factors."""
        return self._solver.size()[0]

    @property
    def nbytes(self) -> int:
        """Bytes of the factors."""
        return self._solver.size()[1]

    @property
    def rcond(self) -> float | None:
        """Estimate of 1 / (‖A‖₁‖A⁻¹‖₁); None where factors in single precision, or with large growth,
        cannot tell."""
        return self._solver.rcond()

    @property
    def report(self) -> Report:
        """The report of the last solve of this object; before the first, that of a solve for ones."""
        report = self._report
        if report is None:
            report = self._solve(np.ones(self.shape[0], self.dtype), "N", True)[1]
        return report

    @overload
    def solve(
        self, b: npt.ArrayLike, trans: Trans = ..., *, return_report: Literal[False] = ..., check_finite: bool = ...
    ) -> Array: ...
    @overload
    def solve(
        self, b: npt.ArrayLike, trans: Trans = ..., *, return_report: Literal[True], check_finite: bool = ...
    ) -> tuple[Array, Report]: ...
    def solve(
        self, b: npt.ArrayLike, trans: Trans = "N", *, return_report: bool = False, check_finite: bool = True
    ) -> Array | tuple[Array, Report]:
        """Solve A @ x = b, or the transposed or adjoint system.

        Parameters
        ----------
        b : array_like, shape (n,) or (n, k)
            Right-hand sides. With complex ones a real matrix is solved for real and imaginary parts.
        trans : {"N", "T", "H"}, optional
            Solve with A, Aᵀ or Aᴴ.
        return_report : bool, optional
            Return a `Report` too, with the condition number, which is estimated once per factorization.
        check_finite : bool, optional
            As of SciPy. Values that are not finite are an error either way.

        Returns
        -------
        x : ndarray, shape of b
            Solution.
        report : Report
            Only with `return_report`.

        Examples
        --------
        >>> import blocktri as bt
        >>> F = bt.factorize([[2.0, 1.0], [0.0, 4.0]])
        >>> F.solve([4.0, 8.0]), F.solve([4.0, 8.0], trans="T")
        (array([1., 2.]), array([2. , 1.5]))
        """
        rhs = right_hand_side(b, self.shape[0])
        if check_finite:
            _check(rhs)
        if rhs.size == 0:
            if return_report:
                raise ValueError("there is nothing to solve, and so nothing to report")
            return np.empty(rhs.shape, np.result_type(rhs.dtype, self.dtype))
        if rhs.dtype.kind == "c" and self.dtype.kind != "c":
            width = 1 if rhs.ndim == 1 else rhs.shape[1]
            parts = np.concatenate([rhs.real.reshape(-1, width), rhs.imag.reshape(-1, width)], axis=1)
            both, report = self._solve(as_scalar(parts, self.dtype), trans, return_report)
            x: Array = (both[:, :width] + 1j * both[:, width:]).reshape(rhs.shape)
        else:
            x, report = self._solve(as_scalar(rhs, self.dtype), trans, return_report)
        self._report = report
        warn(report, return_report)
        return (x, report) if return_report else x

    def _solve(self, rhs: Array, trans: str, return_report: bool) -> tuple[Array, Report]:
        return self._solver.solve(rhs, trans, self._matrix.nnz, self._threads, return_report)

    def refactor(self, A: object) -> Factorization:
        """Factor new values in place, by the same method and in the same order where the pattern has not changed.

        Parameters
        ----------
        A : matrix
            As of `factorize`, of the same size.

        Returns
        -------
        Factorization
            This object. After an error it is what it was before.

        Examples
        --------
        >>> import blocktri as bt
        >>> F = bt.factorize([[2.0, 0.0], [0.0, 2.0]])
        >>> F.refactor([[4.0, 0.0], [0.0, 4.0]]).solve([4.0, 8.0])
        array([1., 2.])
        """
        matrix = square(A)
        if np.result_type(np.dtype(matrix.dtype), self.dtype) != self.dtype:
            raise TypeError(f"the factors are of {self.dtype}, the new matrix of {matrix.dtype}")
        matrix = of_dtype(matrix, self.dtype)
        self._solver.refactor(matrix, self._threads)
        self._matrix = matrix
        self._report = None
        return self

    def slogdet(self) -> tuple[Any, float]:
        """The sign (or phase) of det A and log|det A|, as `numpy.linalg.slogdet`.

        Returns
        -------
        sign : float or complex
            Of modulus 1.
        logabsdet : float
            Natural logarithm.

        Examples
        --------
        >>> import blocktri as bt
        >>> bt.factorize([[0.0, 1.0], [1.0, 0.0]]).slogdet()
        (-1.0, 0.0)
        """
        return self._solver.slogdet()

    def inertia(self) -> tuple[int, int, int]:
        """How many eigenvalues of a Hermitian A are negative, zero to rounding, and positive.

        Returns
        -------
        negative, zero, positive : int
            Counts that sum to n.

        Examples
        --------
        >>> import blocktri as bt
        >>> bt.factorize([[0.0, 2.0], [2.0, 0.0]]).inertia()
        (1, 0, 1)
        """
        return self._solver.inertia()

    def selected_inverse(self) -> SelectedInverse:
        """The blocks of A⁻¹ on and beside the diagonal, for the natural block-tridiagonal partition of A.

        Returns
        -------
        SelectedInverse
            Blocks, and the diagonal of A⁻¹.

        Examples
        --------
        >>> import blocktri as bt
        >>> F = bt.factorize(bt.Tridiagonal([-1.0, -1.0], [2.0, 2.0, 2.0], [-1.0, -1.0]))
        >>> F.selected_inverse().diagonal()
        array([0.75, 1.  , 0.75])
        """
        return SelectedInverse(*self._solver.selected_inverse())

    def aslinearoperator(self) -> LinearOperatorLike:
        """A⁻¹ as a `scipy.sparse.linalg.LinearOperator`: a preconditioner, or the inverse that `eigsh` takes.

        Returns
        -------
        LinearOperator
            With the adjoint too.
        """
        return linear_operator(self.shape, self.dtype, self.solve, lambda x: self.solve(x, "H"))

    def __reduce__(self) -> tuple[Any, ...]:
        indptr, indices, data = self._matrix.to_csr()
        return _restore, (self.shape, indptr, indices, data, self._method, self._threads, self._options)

    def __repr__(self) -> str:
        n = self.shape[0]
        return f"<Factorization {n} × {n} of {self.dtype} by {self.method}, {self.nbytes} bytes>"


def _check(rhs: Array) -> None:
    check_finite(rhs)


def _restore(
    shape: tuple[int, int],
    indptr: Array,
    indices: Array,
    data: Array,
    method: str,
    threads: int | None,
    options: dict[str, Any],
) -> Factorization:
    """A factorization from its pickle."""
    matrix = _blocktri.Matrix.from_csr(*shape, indptr, indices, data)
    return Factorization(matrix, method, threads, **options)


def factorize(A: object, method: str = "auto", *, threads: SupportsIndex | None = None, **options: Any) -> Factorization:
    """Factor a matrix, to solve with it later.

    Parameters
    ----------
    A : array_like, sparse array, Tridiagonal, Banded or BlockTridiagonal, shape (n, n)
        Matrix.
    method : str, optional
        ``"auto"``, or the name of a direct method.
    threads : int, optional
        Number of threads of the factorization and of its solves.
    **options
        As of `solve`.

    Returns
    -------
    Factorization
        Factors.

    Raises
    ------
    SingularMatrixError, BreakdownError, ValueError
        As of `solve`.

    Examples
    --------
    >>> import numpy as np
    >>> import blocktri as bt
    >>> F = bt.factorize(bt.Banded((1, 1), [[0, 1, 1], [4, 4, 4], [1, 1, 0]]))
    >>> F.method, F.solve(np.array([5.0, 6.0, 5.0]))
    ('thomas', array([1., 1., 1.]))
    """
    return Factorization(A, method, threads, **options)
