"""What a matrix is, and how it would be solved."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any, SupportsIndex

from . import _blocktri
from ._matrices import square
from ._threads import checked

__all__ = ["Explanation", "Info", "explain", "info", "methods", "preconditioners"]


def _table(rows: Iterable[Iterable[object]]) -> str:
    lines = ("".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) for row in rows)
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


class Info:
    """What can be known about a matrix before it is solved. The facts are attributes, and keys of `to_dict`."""

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

    def _lines(self) -> list[tuple[str, str]]:
        f = self._facts
        return [
            ("matrix", f"{f['n']} × {f['n']}, {f['nnz']} entries, {f['scalar']}"),
            ("symmetry", f["symmetry"]),
            ("definiteness", f"{f['definiteness']['guess']}: {f['definiteness']['reason']}"),
            ("bandwidth", f"{f['bandwidth']['kl']} below, {f['bandwidth']['ku']} above"),
            ("after reordering", f"{f['bandwidth_rcm']['kl']} below, {f['bandwidth_rcm']['ku']} above"),
            ("blocks", f"{f['blocks']['count']} of {f['blocks']['min']} to {f['blocks']['max']} rows"),
            ("dominance", f"rows {f['dominance']['rows']['kind']}, columns {f['dominance']['columns']['kind']}"),
            ("choice", f["choice"]),
        ]

    def __repr__(self) -> str:
        return "\n".join(f"{name:>18}: {value}" for name, value in self._lines())

    def _repr_html_(self) -> str:
        return _table(self._lines())


class Explanation:
    """What ``method="auto"`` would try, cheapest first, and why.

    Attributes
    ----------
    choice : str
        The choice and its reason, as a sentence.
    candidates : list of dict
        ``method``, ``reorder``, ``flops`` and ``structure`` of each.
    """

    def __init__(self, choice: str, candidates: list[dict[str, Any]]) -> None:
        self.choice = choice
        self.candidates = candidates

    def __repr__(self) -> str:
        lines = [f"{c['method']:>18}  {c['reorder']:<12} {c['flops']:10.3e} flops  {c['structure']}" for c in self.candidates]
        return "\n".join([self.choice, *lines])

    def _repr_html_(self) -> str:
        rows: list[tuple[object, ...]] = [("method", "order", "flops", "structure")]
        rows += [(c["method"], c["reorder"], f"{c['flops']:.3e}", c["structure"]) for c in self.candidates]
        return f"<p>{html.escape(self.choice)}</p>{_table(rows)}"


def info(A: object, *, threads: SupportsIndex | None = None) -> Info:
    """Analyse a square matrix: structure, orders, sizes.

    Parameters
    ----------
    A : matrix
        As of `solve`.
    threads : int, optional
        Number of threads; see `threadpool`.

    Returns
    -------
    Info
        Facts as attributes, with a view for notebooks.

    Examples
    --------
    >>> import blocktri as bt
    >>> facts = bt.info(bt.Tridiagonal([1.0, 1.0], [4.0, 4.0, 4.0], [1.0, 1.0]))
    >>> facts.symmetry, facts.bandwidth["kl"]
    ('symmetric', 1)
    """
    return Info(square(A).analyze(checked(threads)))


def explain(A: object, *, threads: SupportsIndex | None = None) -> Explanation:
    """Tell what ``method="auto"`` would try, with the operations counted for each candidate.

    Parameters
    ----------
    A : matrix
        As of `solve`.
    threads : int, optional
        Number of threads; see `threadpool`.

    Returns
    -------
    Explanation
        Candidates and the reason of the choice, with a view for notebooks.

    Examples
    --------
    >>> import blocktri as bt
    >>> bt.explain(bt.Tridiagonal([1.0, 1.0], [4.0, 4.0, 4.0], [1.0, 1.0])).candidates[0]["method"]
    'thomas'
    """
    facts = square(A).analyze(checked(threads))
    return Explanation(facts["choice"], facts["candidates"])


def methods() -> dict[str, str]:
    """The names of all methods, with a line on each.

    Returns
    -------
    dict
        Of name to summary.

    Examples
    --------
    >>> import blocktri as bt
    >>> "band-lu" in bt.methods()
    True
    """
    return dict(_blocktri.method_names())


def preconditioners() -> list[str]:
    """The names of all preconditioners.

    Returns
    -------
    list of str
        Names.

    Examples
    --------
    >>> import blocktri as bt
    >>> "arms" in bt.preconditioners()
    True
    """
    return _blocktri.preconditioner_names()
