"""Pictures of the examples, where matplotlib is installed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Curve = tuple[npt.NDArray[np.floating[Any]], npt.NDArray[np.floating[Any]]]


def picture(title: str, x_label: str, y_label: str, curves: Mapping[str, Curve], log: bool = False) -> None:
    """Draws curves into the file that the first argument of the program names, if it names one."""
    if len(sys.argv) < 2:
        return
    try:
        import matplotlib
    except ImportError:
        print("matplotlib is not installed: no picture is drawn")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure: Any
    axes: Any
    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for name, (x, y) in curves.items():
        axes.plot(x, y, label=name)
    axes.set(title=title, xlabel=x_label, ylabel=y_label, yscale="log" if log else "linear")
    axes.legend()
    figure.savefig(sys.argv[1])
    print(f"picture: {sys.argv[1]}")
