"""The Python that the pages show runs."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blocktri as bt

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("docs/src/python.md", "python/README.md")


def code(page: str) -> list[str]:
    """The fenced blocks of a page."""
    found: list[str] = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_page(page: str) -> None:
    if not (ROOT / page).exists():
        pytest.skip("the page is not beside the tests")
    blocks = code(page)
    assert blocks
    diagonal = np.array([[[4.0, 1.0], [1.0, 4.0]]] * 3)
    beside = np.array([[[1.0, 0.0], [0.0, 1.0]]] * 2)
    names: dict[str, Any] = {"L": beside, "D": diagonal, "U": beside, "b": np.ones(6)}
    names["A2"] = bt.BlockTridiagonal(beside, 2 * diagonal, beside)
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    report = names["report"]
    assert isinstance(report, bt.Report)


def test_what_the_page_says_of_a_batch() -> None:
    ab = np.array([[0.0, 1.0, 1.0], [4.0, 4.0, 4.0], [1.0, 1.0, 0.0]])
    _, report = bt.solve_banded((1, 1), np.stack([ab, 0 * ab]), np.ones((3, 1)), return_report=True)
    said = re.search(r"report.status +# (.*)", (ROOT / PAGES[0]).read_text(encoding="utf-8"))
    assert said is not None and said.group(1) == str(report.status)


FUNCTIONS = [getattr(bt, name) for name in bt.__all__ if callable(getattr(bt, name)) and not isinstance(getattr(bt, name), type)]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_functions_have_the_sections_of_numpydoc(function: Any) -> None:
    text = function.__doc__
    assert text
    sections = re.findall(r"^    (\w[\w ]*)\n    -+$", text, re.MULTILINE)
    order = ["Parameters", "Returns", "Yields", "Raises", "See Also", "Examples"]
    assert sections == sorted(sections, key=order.index), sections
    assert "Examples" in sections
    parameters = [p for p in inspect.signature(function).parameters if p not in ("args", "kwds")]
    assert ("Parameters" in sections) == bool(parameters)
    for name in parameters:
        assert re.search(rf"^    (\*\*)?([\w, ]*, )?{name}\b", text, re.MULTILINE), name


def test_the_report_is_the_commands_json() -> None:
    command = ROOT / "crates/blocktri-cli/src/report.rs"
    formats = ROOT / "crates/bt-formats/src/report.rs"
    if not command.exists():
        pytest.skip("the command's source is not beside the tests")
    text = command.read_text(encoding="utf-8")
    # Of the system, then what the report says of itself, then of the run.
    own = re.findall(r'^            "(\w+)": ', text[text.index("impl Facts") :], re.MULTILINE)
    text = formats.read_text(encoding="utf-8")
    text = text[text.index("Serialize for SolveReport") : text.index("Serialize for PhaseTimes")]
    of_report = re.findall(r'serialize_entry\("(\w+)"', text)
    run = own.index("forward_error")
    fields = list(dict.fromkeys(own[:run] + of_report + own[run:]))
    _, report = bt.solve([[2.0]], [4.0], return_report=True)
    assert len(fields) > 20 and fields == list(report.to_dict())
    seconds = report.to_dict()["seconds"]
    assert list(seconds) == ["read", "reorder", "setup", "solve", "total"] and seconds["total"] == report.seconds
