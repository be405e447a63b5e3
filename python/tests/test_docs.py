# SPDX-License-Identifier: Apache-2.0
"""The programs in the documentation run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"


def test_snippets() -> None:
    """All of the page's, in their order, as one program."""
    pytest.importorskip("scipy.sparse", reason="skipped: SciPy is not installed")
    if not PAGE.exists():
        pytest.skip("skipped: not run in the source tree")
    text = PAGE.read_text()
    names: dict[str, Any] = {}
    snippets = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert len(snippets) > 5
    for snippet in snippets:
        line = text[: snippet.start(1)].count("\n")
        exec(compile("\n" * line + snippet[1], str(PAGE), "exec"), names)
    assert names["C"].shape == (512, 256)
