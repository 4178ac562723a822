"""The examples run, and check themselves."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted(p for p in (Path(__file__).parent.parent / "examples").glob("*.py") if p.name != "support.py")


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda p: p.stem)
def test_example(script: Path, tmp_path: Path) -> None:
    picture = tmp_path / "picture.svg"
    done = subprocess.run([sys.executable, str(script), str(picture)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert picture.exists() == (importlib.util.find_spec("matplotlib") is not None)


def test_there_are_four() -> None:
    assert len(EXAMPLES) == 4
