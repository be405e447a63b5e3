# SPDX-License-Identifier: Apache-2.0
"""The programs in the documentation run."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"


def run_snippets(page: Path, without: str | None = None) -> dict[str, Any]:
    """Runs all of a page's, in their order, as one program, and returns its names. without: not those that have this word."""
    if not page.exists():
        pytest.skip("skipped: not run in the source tree")
    text = page.read_text()
    names: dict[str, Any] = {}
    snippets = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert len(snippets) > 4
    for snippet in snippets:
        if without is not None and without in snippet[1]:
            continue
        line = text[: snippet.start(1)].count("\n")
        exec(compile("\n" * line + snippet[1], str(page), "exec"), names)
    return names


def test_snippets() -> None:
    pytest.importorskip("scipy.sparse", reason="skipped: SciPy is not installed")
    names = run_snippets(PAGE)
    assert names["C"].shape == (512, 256)


def test_snippets_with_numpy_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    names = run_snippets(PAGE, without="scipy")
    assert names["C"].shape == (512, 256)
