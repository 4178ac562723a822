"""Exceptions and warnings of the package."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ._blocktri import Report

__all__ = ["AccuracyWarning", "BreakdownError", "DeviceError", "SingularMatrixError"]


class _Placed(np.linalg.LinAlgError):
    """An error of linear algebra with its place.

    Attributes
    ----------
    row : int or None
        Row or column concerned, from 0.
    block : int or None
        Block concerned, from 0, where the method works on blocks.
    system : int or None
        System of a batch concerned, from 0.
    """

    row: int | None = None
    block: int | None = None
    system: int | None = None


class SingularMatrixError(_Placed):
    """The matrix is singular.

    Attributes
    ----------
    row : int or None
        Column without a pivot, from 0.
    block : int or None
        Block of that column, from 0.
    system : int or None
        System of a batch, from 0.

    Examples
    --------
    >>> import blocktri as bt
    >>> try:
    ...     bt.solve([[1.0, 1.0], [1.0, 1.0]], [1.0, 2.0])
    ... except bt.SingularMatrixError as error:
    ...     print(error.row)
    1
    """


class BreakdownError(_Placed):
    """The method cannot go on although the matrix may be regular: another method is needed.

    Attributes
    ----------
    row : int or None
        Row or column whose pivot cannot be used, from 0, where it is one.
    block : int or None
        Block that cannot be used, from 0, where it is one.
    system : int or None
        System of a batch, from 0.
    """


class DeviceError(RuntimeError):
    """A GPU was asked for and is not there, or it failed."""


def _base() -> type[Warning]:
    """SciPy's warning where SciPy is there, by which its users filter."""
    try:
        from scipy.linalg import LinAlgWarning
    except ImportError:
        return RuntimeWarning
    return LinAlgWarning


if TYPE_CHECKING:

    class AccuracyWarning(RuntimeWarning):
        """The answer may be less accurate than its type allows."""

else:

    class AccuracyWarning(_base()):
        """The answer may be less accurate than its type allows.

        It derives from `scipy.linalg.LinAlgWarning` where SciPy is installed, else from `RuntimeWarning`.
        """


def warn(report: Report, told: bool) -> None:
    """Warns of what the caller would otherwise not see.

    Parameters
    ----------
    report : Report
        Of the solve.
    told : bool
        Whether the caller gets the report, and with it the outcome.
    """
    messages = list(report.warnings)
    if not told and report.outcome not in ("converged", "loose"):
        messages.append(f"{report.method}: {report.breakdown or report.outcome}; the relative residual is {report.relative_residual}")
    tell(messages)


def tell(messages: list[str]) -> None:
    """Warns the caller outside this package."""
    for message in messages:
        warnings.warn(message, AccuracyWarning, stacklevel=_outside())


def _outside() -> int:
    """The level of the caller outside this package."""
    level = 1
    frame = sys._getframe(1)
    package = __name__.rpartition(".")[0] + "."
    while frame.f_globals.get("__name__", "").startswith(package) and frame.f_back is not None:
        level += 1
        frame = frame.f_back
    return level
