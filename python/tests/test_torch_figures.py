# SPDX-License-Identifier: Apache-2.0
"""The benchmark of sparsek.torch runs, in small."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
PROGRAM = Path(__file__).resolve().parents[1] / "benchmarks" / "torch_figures.py"


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # of torch's own modules
def test_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec = importlib.util.spec_from_file_location("torch_figures", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    file = tmp_path / "figures.json"
    monkeypatch.setattr(
        sys, "argv", ["torch_figures", "--device", "cpu", "--only", "linear,training,forward,step,decode,patterns", "--json", str(file)]
    )
    program.main()
    report = json.loads(file.read_text())
    assert report["device"] == "CPU"
    assert report["linear"]["y = x W^T over C = A B"] > 0
    assert report["forward"]["dense over sparse"] > 0
    assert report["step"]["dense over sparse"] > 0
    assert report["patterns"]["made, used twice and dropped, us"] > 0
