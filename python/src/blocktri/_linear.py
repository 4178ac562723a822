"""Linear operators: SciPy's where SciPy is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ._arrays import Array

Action = Callable[[Any], Array]


class LinearOperatorLike(Protocol):
    """What a `scipy.sparse.linalg.LinearOperator` and its stand-in can do."""

    @property
    def shape(self) -> Any:
        """Rows and columns."""

    @property
    def dtype(self) -> Any:
        """Scalar."""

    def matvec(self, x: Any) -> Any:
        """The operator times a vector."""

    def rmatvec(self, x: Any) -> Any:
        """The adjoint times a vector."""

    def __matmul__(self, x: Any) -> Any:
        """The operator times a vector or matrix."""


class Operator:
    """A linear operator for those who have no SciPy."""

    def __init__(self, shape: tuple[int, int], dtype: np.dtype[Any], matvec: Action, rmatvec: Action | None) -> None:
        self.shape = shape
        self.dtype = dtype
        self._matvec, self._rmatvec = matvec, rmatvec

    def matvec(self, x: Any) -> Any:
        """The operator times a vector."""
        return self._matvec(x)

    def rmatvec(self, x: Any) -> Any:
        """The adjoint times a vector."""
        if self._rmatvec is None:
            raise NotImplementedError("the operator has no adjoint")
        return self._rmatvec(x)

    def __matmul__(self, x: Any) -> Any:
        return self._matvec(x)


def linear_operator(
    shape: tuple[int, int], dtype: np.dtype[Any], matvec: Action, rmatvec: Action | None, handle: object = None
) -> LinearOperatorLike:
    """A linear operator by its actions on vectors and on the columns of matrices."""
    made: Any
    try:
        from scipy.sparse.linalg import LinearOperator
    except ImportError:
        made = Operator(shape, dtype, matvec, rmatvec)
    else:
        made = LinearOperator(shape, dtype=dtype, matvec=matvec, rmatvec=rmatvec, matmat=matvec, rmatmat=rmatvec)
    made._blocktri = handle
    operator: LinearOperatorLike = made
    return operator
