# SPDX-License-Identifier: Apache-2.0
"""A gated MLP as Llama has it, made block-sparse by what its inputs look like, for prefill and decoding.

A block's score is the norm of its weights, each times the size of the input feature that it multiplies, as measured on a few inputs:
what a block with large weights adds to a feature that is always small does not matter. Weights and inputs are made, with scales that
differ from block to block and from feature to feature, as those of trained models do.

    PYTHONPATH=python/src python python/examples/sparse_llama_mlp.py
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import sparsek.torch as st


class Mlp(nn.Module):
    """down(silu(gate(x)) * up(x)), with the names of Llama's layers."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (..., width), and so is the result."""
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class SparseMlp(nn.Module):
    """The same of block-sparse layers. SiLU is part of gate's product where no gradients are recorded."""

    def __init__(self, gate: st.BsrLinear, up: st.BsrLinear, down: st.BsrLinear) -> None:
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = gate, up, down

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (..., width), and so is the result."""
        return self.down_proj(self.gate_proj(x) * self.up_proj(x))


def sparse(mlp: Mlp, block: tuple[int, int], density: float, seen: torch.Tensor | None = None) -> SparseMlp:
    """The MLP with a share of its blocks. seen: inputs (tokens, width) to judge by; None: by the weights alone."""
    inputs: dict[str, torch.Tensor] = {}
    if seen is not None:
        with torch.no_grad():
            inputs["gate_proj"] = inputs["up_proj"] = seen
            inputs["down_proj"] = F.silu(mlp.gate_proj(seen)) * mlp.up_proj(seen)
    layers = {}
    for name, layer in mlp.named_children():
        assert isinstance(layer, nn.Linear)
        sizes = inputs[name].norm(dim=0) if name in inputs else torch.ones(layer.in_features)
        mask = st.block_mask(st.block_scores(layer.weight * sizes, block), density)
        layers[name] = st.BsrLinear.from_dense(layer, block, mask=mask, activation="silu" if name == "gate_proj" else None)
    return SparseMlp(layers["gate_proj"], layers["up_proj"], layers["down_proj"])


def made_mlp(width: int, hidden: int, block: tuple[int, int]) -> Mlp:
    """One whose blocks differ in scale: their sizes are spread as a lognormal."""
    mlp = Mlp(width, hidden)
    with torch.no_grad():
        for layer in mlp.children():
            assert isinstance(layer, nn.Linear)
            scales = torch.randn(layer.out_features // block[0], layer.in_features // block[1]).exp()
            layer.weight.mul_(scales.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1))
    return mlp


def seconds(work: Callable[[], object]) -> float:
    """The median of some calls."""
    taken = []
    for _ in range(9):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[2:])


def main(width: int = 512, hidden: int = 1536, density: float = 0.25, block: tuple[int, int] = (32, 32)) -> dict[str, float]:
    """Prints and returns errors as shares of the output, and times."""
    torch.manual_seed(0)
    mlp = made_mlp(width, hidden, block)
    features = (1.5 * torch.randn(width // block[1])).exp().repeat_interleave(block[1])  # a few groups are much larger than others
    seen, x, token = (torch.randn(count, width) * features for count in (256, 512, 1))
    found: dict[str, float] = {}
    with torch.no_grad():
        exact = mlp(x)
        models = {"by weights": sparse(mlp, block, density), "by inputs too": sparse(mlp, block, density, seen)}
        print(
            f"MLP {width} -> {hidden} -> {width}, blocks of {block[0]}x{block[1]}, {density:.1%} of them, {torch.get_num_threads()} threads"
        )
        for name, model in models.items():
            found[name] = float((model(x) - exact).norm() / exact.norm())
            print(f"chosen {name:14} error {found[name]:.1%} of the output")
        for name, given in (("prefill, 512 tokens", x), ("decoding, one token", token)):
            dense, ours = (seconds(lambda m=m, g=given: m(g)) for m in (mlp, models["by inputs too"]))  # type: ignore[misc]
            found[name] = dense / ours
            print(f"{name}: dense {1e3 * dense:.3f} ms, sparse {1e3 * ours:.3f} ms")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="a sparse Llama MLP")
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--hidden", type=int, default=1536)
    parser.add_argument("--density", type=float, default=0.25)
    options = parser.parse_args()
    main(options.width, options.hidden, options.density)
