# SPDX-License-Identifier: Apache-2.0
"""The benchmark of sparsek.torch runs, in small."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # of torch's own modules
def test_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = load("torch_figures", monkeypatch)
    file = tmp_path / "figures.json"
    sections = "linear,frozen,training,forward,step,decode,patterns"
    monkeypatch.setattr(sys, "argv", ["torch_figures", "--device", "cpu", "--only", sections, "--json", str(file)])
    program.main()
    report = json.loads(file.read_text())
    assert report["device"] == "CPU"
    assert report["linear"]["y = x W^T over C = A B"] > 0
    assert report["forward"]["dense over sparse"] > 0
    assert report["step"]["dense over sparse"] > 0
    assert report["patterns"]["made, used twice and dropped, us"] > 0


def test_figures_of_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    found = load("attention_figures", monkeypatch).figures("cpu", 128, 2, 16, rounds=1)
    assert len(found) == 15
    assert min(found.values()) > 0
