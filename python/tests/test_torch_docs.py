# SPDX-License-Identifier: Apache-2.0
"""The programs in the documentation of sparsek.torch, and its example, run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from test_docs import run_snippets
from test_examples import load

torch = pytest.importorskip("torch")

import sparsek.torch as st  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse"),
    pytest.mark.filterwarnings("ignore::FutureWarning:torch"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torch"),
]


def test_snippets() -> None:
    names = run_snippets(ROOT / "docs" / "torch.md")
    assert names["per_sample"].shape == (3, *names["values"].shape)


def test_the_transformer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    example = load("train_transformer")
    torch.manual_seed(0)
    model = example.Model(len(example.Batches(1).characters), 32)
    before = float(example.loss_of(model, example.Batches(1).judged()).detach())
    assert example.train(model, 40, sparse=True) < before - 0.5
    layers = [module for module in model.modules() if isinstance(module, st.BsrLinear)]
    assert [round(layer.density * 16) for layer in layers] == [4] * 4
    monkeypatch.setattr(sys, "argv", ["train_transformer", "--steps", "10", "--width", "16"])
    example.main()
    assert "sparse" in capsys.readouterr().out
