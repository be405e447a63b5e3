# SPDX-License-Identifier: Apache-2.0
"""MegaBlocks' sparse dMoE with the products of sparsek, and what stands in for its compiled module."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_reference import Place, draw, on_device  # noqa: E402, F401

from sparsek.compat import megablocks as shim  # noqa: E402

HERE = Path(__file__).resolve().parent


def ints(*values: int) -> Any:
    return torch.tensor(values, dtype=torch.int32, device=Place.device)


def test_functions() -> None:
    x = ints(3, 0, 1, 3, 1)
    assert shim.histogram(x, 4).tolist() == [1, 2, 0, 2]
    assert shim.histogram(torch.stack([x, x * 0]), 4).tolist() == [[1, 2, 0, 2], [5, 0, 0, 0]]
    out, places = torch.empty_like(x), torch.empty_like(x)
    shim.sort(x, 2, out, places)
    assert (out.tolist(), places.tolist()) == ([0, 1, 1, 3, 3], [1, 2, 4, 0, 3])
    shim.inclusive_cumsum(x[None], 1, out[None])
    assert out.tolist() == [3, 3, 4, 7, 8]
    shim.exclusive_cumsum(x[None], 1, out[None])
    assert out.tolist() == [0, 3, 3, 4, 7]
    columns = torch.empty(8, dtype=torch.int16, device=x.device)
    shim.indices(ints(128, 128, 512), 128, 4, 2, columns)  # the second expert has no tokens
    assert columns.tolist() == [0, 1, 4, 5, 4, 5, 4, 5]
    weights, many = draw(1, 1, 3), draw(2, 1, 5)
    shim.replicate_forward(weights, ints(2, 2, 5), many)
    assert many.tolist() == [[weights[0, expert].item() for expert in (0, 0, 2, 2, 2)]]
    back = torch.empty_like(weights)
    shim.replicate_backward(many, ints(2, 2, 5), back)
    torch.testing.assert_close(back, torch.stack([2 * weights[0, 0], 0 * weights[0, 1], 3 * weights[0, 2]])[None], rtol=1e-6, atol=1e-6)


PROGRAM = """
import torch
import sparsek.compat.megablocks
sparsek.compat.megablocks.install()
from megablocks.layers.arguments import Arguments
from megablocks.layers.dmoe import dMoE

torch.manual_seed(0)
for memory_optimized in (False, True):
    arguments = Arguments(hidden_size=256, ffn_hidden_size=512, moe_num_experts=8, moe_top_k=2, mlp_impl="sparse", bias=False,
                          memory_optimized_mlp=memory_optimized, fp16=False, bf16=True, moe_loss_weight=0, return_bias=False)
    layer = dMoE(arguments)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.mul_(4)
    x = torch.randn(4, 100, 256, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    y = layer(x)
    g = torch.randn_like(y)
    y.backward(g)
    _, weights, experts = layer.router(x)
    w1 = layer.experts.mlp.w1.detach().float().unflatten(0, (8, 512)).requires_grad_()
    w2 = layer.experts.mlp.w2.detach().float().unflatten(0, (8, 512)).requires_grad_()
    tokens, exact = x.detach().float().flatten(0, 1), 0
    for k in range(2):
        each = torch.einsum("th,tfh->tf", tokens, w1[experts[:, k]])
        out = torch.einsum("tf,tfh->th", torch.nn.functional.gelu(each, approximate="tanh"), w2[experts[:, k]])
        exact = exact + weights[:, k, None].detach().float() * out
    exact.backward(g.float().flatten(0, 1))
    mlp = layer.experts.mlp
    for got, wanted in ((y.flatten(0, 1), exact), (mlp.w1.grad, w1.grad.flatten(0, 1)), (mlp.w2.grad, w2.grad.flatten(0, 1))):
        error = (got.float() - wanted).abs().max() / wanted.abs().max()
        assert error < 3e-2, error
print("equal")
"""


@pytest.mark.skipif(not torch.cuda.is_available() or importlib.util.find_spec("megablocks") is None, reason="needs a GPU and megablocks")
def test_dmoe(on_device: str) -> None:  # noqa: F811
    if on_device == "cpu":
        pytest.skip("megablocks needs a GPU")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent / "src"), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert "equal" in done.stdout, done.stderr[-3000:]
