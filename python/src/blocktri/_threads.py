"""How many threads a solve has."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import SupportsIndex

from ._blocktri import forked

__all__ = ["threadpool"]

MOST = 1024

_threads: ContextVar[int | None] = ContextVar("blocktri_threads", default=None)

# The threads of a parent do not live on in a child.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forked)


@contextmanager
def threadpool(threads: SupportsIndex) -> Iterator[int]:
    """Give the solves inside a ``with`` block so many threads.

    The block concerns the thread (or the asynchronous task) that enters it. The bits of an answer do not depend on the number of threads.

    Parameters
    ----------
    threads : int
        Number of threads, at least 1.

    Yields
    ------
    int
        The number.

    Examples
    --------
    >>> import blocktri as bt
    >>> with bt.threadpool(1):
    ...     x = bt.solve([[2.0]], [4.0])
    >>> x
    array([2.])
    """
    number = _counted(threads)
    token = _threads.set(number)
    try:
        yield number
    finally:
        _threads.reset(token)


def inside() -> int | None:
    """The number of the ``with`` block around."""
    return _threads.get()


def checked(threads: SupportsIndex | None) -> int | None:
    """The number asked for, or that of the ``with`` block around."""
    return _threads.get() if threads is None else _counted(threads)


def _counted(threads: SupportsIndex) -> int:
    number = operator.index(threads)
    if not 1 <= number <= MOST:
        raise ValueError(f"threads must be at least 1 and at most {MOST}, not {number}")
    return number
