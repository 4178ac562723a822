"""Markov chains and the cloud model."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from . import _blocktri
from ._matrices import of_dtype, square
from ._threads import checked

__all__ = ["CloudQueue", "Plan", "StationaryReport", "stationary"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class StationaryReport:
    """What is known about a stationary distribution.

    Attributes
    ----------
    method : str
        ``"gth"``: elimination without subtractions.
    residual : float
        ‖πQ‖₁, recomputed.
    error_bound : float or None
        Bound of the relative error of every probability.
    recurrent : int
        States of the closed class; the others have probability 0.
    least_log10 : float
        log₁₀ of the smallest positive probability, which may be below the smallest double.
    notes : list of str
        What happened on the way.
    """

    method: str
    residual: float
    error_bound: float | None
    recurrent: int
    least_log10: float
    notes: list[str]


@overload
def stationary(
    Q: object,
    *,
    kind: Literal["generator", "rates", "stochastic"] = ...,
    return_report: Literal[False] = ...,
    threads: SupportsIndex | None = ...,
) -> Floats: ...
@overload
def stationary(
    Q: object,
    *,
    kind: Literal["generator", "rates", "stochastic"] = ...,
    return_report: Literal[True],
    threads: SupportsIndex | None = ...,
) -> tuple[Floats, StationaryReport]: ...
def stationary(
    Q: object,
    *,
    kind: Literal["generator", "rates", "stochastic"] = "generator",
    return_report: bool = False,
    threads: SupportsIndex | None = None,
) -> Floats | tuple[Floats, StationaryReport]:
    """The stationary distribution of a Markov chain, every probability right to a few digits less than all.

    Elimination without subtractions (Grassmann, Taksar and Heyman): the relative error of every probability is bounded, also of those
    far below rounding.

    Parameters
    ----------
    Q : matrix
        As of `solve`: a generator, whose rows sum to zero.
    kind : {"generator", "rates", "stochastic"}, optional
        ``"rates"`` when the diagonal is not filled in, ``"stochastic"`` for transition probabilities, whose rows sum to one.
    return_report : bool, optional
        Return a `StationaryReport` too.
    threads : int, optional
        Number of threads; see `threadpool`.

    Returns
    -------
    pi : ndarray, shape (n,)
        Probabilities, of sum 1.
    report : StationaryReport
        Only with `return_report`.

    Raises
    ------
    ValueError
        When the rows are not those of a chain, with the row.
    BreakdownError
        When there is more than one closed class.

    Examples
    --------
    >>> import blocktri as bt
    >>> bt.stationary([[-1.0, 1.0], [3.0, -3.0]])
    array([0.75, 0.25])
    """
    matrix = square(Q)
    if np.dtype(matrix.dtype).kind == "c":
        raise TypeError("rates and probabilities are real")
    pi, facts = _blocktri.stationary(of_dtype(matrix, np.dtype(np.float64)), kind, checked(threads))
    return (pi, StationaryReport(**facts)) if return_report else pi


class Plan:
    """The capacity plan of a cloud model. The facts are attributes, and keys of `to_dict`.

    ``in_advance``, ``throughput``, ``utilisation``, ``loss``, ``log10_loss``, ``waiting``, ``waiting_tasks``, ``time``, ``states``; the
    distributions ``resources`` and ``tasks`` with their mean, variance, mode and quantiles; with costs ``cost_per_hour`` and
    ``cheapest_in_advance``.
    """

    def __init__(self, facts: dict[str, Any]) -> None:
        self._facts = facts

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._facts[name]
        except KeyError:
            raise AttributeError(f"there is no fact '{name}'; there are {', '.join(self._facts)}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._facts]

    def to_dict(self) -> dict[str, Any]:
        """The facts as a dictionary."""
        return dict(self._facts)

    def __repr__(self) -> str:
        f = self._facts
        return (
            f"<Plan: {f['in_advance']} resources in advance, {f['resources']['mean']:.3g} on in the mean, "
            f"utilisation {f['utilisation']:.3g}, loss {f['loss']:.3g}>"
        )


def _count(value: SupportsIndex, name: str) -> int:
    number = operator.index(value)
    if not 0 <= number < 2**32:
        raise ValueError(f"{name} is {number}: a count of at least 0 that fits into 32 bits is needed")
    return number


class CloudQueue:
    """The M/M/n+k cloud model: resources that are turned on and off with the tasks that wait.

    Parameters
    ----------
    resources : int
        Resources at most.
    threshold : int
        Tasks that a resource holds before another is turned on.
    arrival : float
        Rate at which tasks arrive.
    service : float, optional
        Rate at which one resource serves.
    turn_on, turn_off : float, optional
        Rates at which one resource is turned on and off.

    Examples
    --------
    >>> import blocktri as bt
    >>> plan = bt.CloudQueue(resources=40, threshold=16, arrival=10.0).plan()
    >>> plan.in_advance, plan.resources["quantile_0.95"]
    (10, 12)
    """

    def __init__(
        self,
        resources: int,
        threshold: int,
        arrival: float,
        service: float = 1.0,
        turn_on: float = 1.0,
        turn_off: float = 1.0,
    ) -> None:
        self.resources, self.threshold = _count(resources, "resources"), _count(threshold, "threshold")
        self.arrival, self.service, self.turn_on, self.turn_off = arrival, service, turn_on, turn_off

    def plan(
        self,
        *,
        resource_hour: float | None = None,
        switch: float = 0.0,
        waiting_task_hour: float = 0.0,
        threads: SupportsIndex | None = None,
    ) -> Plan:
        """How many resources, from the stationary distribution.

        Parameters
        ----------
        resource_hour : float, optional
            Price of a resource on for an hour; the rates are then taken as per hour.
        switch : float, optional
            Price of turning a resource on or off.
        waiting_task_hour : float, optional
            Price of a task that waits for an hour.
        threads : int, optional
            Number of threads; see `threadpool`.

        Returns
        -------
        Plan
            Facts as attributes.
        """
        for name, price in (("resource_hour", resource_hour), ("switch", switch), ("waiting_task_hour", waiting_task_hour)):
            if price is not None and not 0 <= price < np.inf:
                raise ValueError(f"{name} is {price}: a price is a finite number of at least 0")
        rates = (self.arrival, self.service, self.turn_on, self.turn_off)
        costs = None if resource_hour is None else (resource_hour, switch, waiting_task_hour)
        return Plan(_blocktri.plan(self.resources, self.threshold, rates, costs, checked(threads)))

    def __repr__(self) -> str:
        return f"CloudQueue(resources={self.resources}, threshold={self.threshold}, arrival={self.arrival})"
