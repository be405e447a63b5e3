# SPDX-License-Identifier: Apache-2.0
"""The programs in the documentation of sparsek.torch, and its example, run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def test_recipes() -> None:
    pytest.importorskip("scipy.sparse", reason="skipped: SciPy is not installed")
    names = run_snippets(ROOT / "docs" / "recipes.md")
    torch.testing.assert_close(names["image"], names["K"] @ names["loads"])
    assert names["gradual"][0].density == pytest.approx(0.2, abs=0.01)
    exact = torch.zeros_like(names["y"])
    ends = torch.tensor(names["tokens"]).cumsum(0).tolist()
    for expert, (end, count) in enumerate(zip(ends, names["tokens"], strict=True)):
        own, columns = slice(end - count, end), slice(64 * expert, 64 * (expert + 1))
        exact[own] = torch.nn.functional.gelu(names["x"][own] @ names["w1"][:, columns]) @ names["w2"][columns]
    torch.testing.assert_close(names["y"], exact, rtol=1e-4, atol=1e-4)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Small products, beside other tests."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("one_thread")
def test_a_pruned_vit(capsys: pytest.CaptureFixture[str]) -> None:
    found = load("prune_vit").main(steps=60)
    assert "20%" in capsys.readouterr().out
    assert found["dense"] > 0.5  # by chance it were an eighth
    assert found["pruned at once"] < found["dense"]
    for name in ("pruned at once, trained on", "pruned step by step"):
        assert found[name] > found["pruned at once"]


@pytest.mark.usefixtures("one_thread")
def test_a_sparse_llama_mlp() -> None:
    example = load("sparse_llama_mlp")
    found = example.main(width=128, hidden=256)
    assert found["by inputs too"] < found["by weights"] < 1
    mlp = example.made_mlp(64, 128, (32, 32))
    x = torch.randn(5, 64)
    torch.testing.assert_close(example.sparse(mlp, (32, 32), 1.0, x)(x), mlp(x), rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("top", [1, 3])
def test_a_mixture_of_experts(top: int) -> None:
    example = load("moe")
    torch.manual_seed(0)
    moe = example.Moe(32, 64, experts=5, top=top, block=16).double()
    with torch.no_grad():
        moe.router.weight[2] = -100 * moe.router.weight.abs().sum()  # an expert that hardly any token likes
    x = torch.randn(45, 32, dtype=torch.float64)
    got, exact = moe(x), moe.one_by_one(x)
    torch.testing.assert_close(got, exact)
    target = torch.randn_like(exact)
    for left, right in zip(
        torch.autograd.grad((got * target).sum(), list(moe.parameters())),
        torch.autograd.grad((exact * target).sum(), list(moe.parameters())),
        strict=True,
    ):
        torch.testing.assert_close(left, right)
    assert example.main(tokens=64, width=32, hidden=64, experts=4) < 1e-4


def test_tensor_parallelism_by_torchrun() -> None:
    if not torch.distributed.is_available():
        pytest.skip("skipped: this torch has no torch.distributed")
    small = ["--width", "64", "--hidden", "256", "--tokens", "32", "--block", "16", "--density", "0.5", "--dtype", "float32"]
    program = str(ROOT / "python" / "examples" / "tensor_parallel.py")
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", program]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "python" / "src")}
    quick = ["--rounds", "1", "--calls", "1", "--chunks", "2", "--device", "cpu", "--json"]
    done = subprocess.run([*run, *small, *quick], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert max(found["relative_errors"].values()) < 1e-5
    assert abs(sum(found["blocks"][0]) - sum(found["blocks"][1])) <= 1


def test_tensor_parallelism_names_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    if not torch.distributed.is_available():
        pytest.skip("skipped: this torch has no torch.distributed")
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setattr(sys, "argv", ["tensor_parallel.py", "--device", "cpu"])
    with pytest.raises(SystemExit, match=r"torchrun --nproc-per-node 2 tensor_parallel\.py"):
        load("tensor_parallel").main()


@pytest.mark.usefixtures("one_thread")
def test_the_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells run, in small."""
    matplotlib = pytest.importorskip("matplotlib", reason="skipped: matplotlib is not installed")
    matplotlib.use("agg")
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "path", [*sys.path])
    names: dict[str, Any] = {}
    for cell in json.loads((ROOT / "docs" / "notebooks" / "density.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] or "parameters" in cell["metadata"].get("tags", [])
            exec("".join(cell["source"]), names)
            if "parameters" in cell["metadata"].get("tags", []):
                names |= {"DENSITIES": [0.5], "STEPS": 15, "SEEDS": [0], "TURNS": 2, "TOKENS": 8}
    assert set(names["results"]) == {(0, 1.0), (0, 0.5), (0, 0.0)}
    assert len(names["speedups"]["forward", 0.5]) == 2


def test_the_transformer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    example = load("train_transformer")
    torch.manual_seed(0)
    model = example.Model(len(example.Batches(1).characters), 32)
    before = float(example.loss_of(model, example.Batches(1).judged()).detach())
    assert example.train(model, example.Batches(1), 40, density=0.25) < before - 0.5
    layers = [module for module in model.modules() if isinstance(module, st.BsrLinear)]
    assert [round(layer.density * 16) for layer in layers] == [4] * 4
    monkeypatch.setattr(sys, "argv", ["train_transformer", "--steps", "10", "--width", "16"])
    example.main()
    assert "sparse" in capsys.readouterr().out
