# SPDX-License-Identifier: Apache-2.0
"""Figures of a model of Llama's shape with 1.3 billion parameters: its MLPs dense, sparse, and left out."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch
from llama import Model, Shape
from timing import milliseconds
from torch import nn
from torch.nn import functional as F  # noqa: N812

import sparsek.torch as st


class ModelBench:
    """Where, how large, and how sparse. On the CPU all is small, and there is no decoding in a graph."""

    def __init__(self, device: str, block: tuple[int, int], density: float) -> None:
        self.device, self.is_gpu, self.block, self.density = device, device == "cuda", block, density
        self.dtype = torch.bfloat16 if self.is_gpu else torch.float32
        self.shape = Shape() if self.is_gpu else Shape(width=128, hidden=320, layers=2, heads=2, vocabulary=256)
        batch, length = (8, 2048) if self.is_gpu else (2, 16)
        self.tokens = torch.randint(self.shape.vocabulary, (batch, length), device=device)

    def _each_kind(self, measure: Callable[[Any], float]) -> dict[str, float]:
        found = {}
        for kind in ("dense", "sparse", "without MLPs"):
            found[kind] = taken = measure(self._made(kind))
            print(f"  {taken:12.3f}  {kind}, ms", flush=True)
        dense, rest = found["dense"], found["without MLPs"]
        figures = {f"{kind}, ms": taken for kind, taken in found.items()}
        figures["dense over sparse"] = dense / found["sparse"]
        figures["at most, MLPs taking a share as their density"] = dense / (rest + self.density * (dense - rest))
        return figures

    def _made(self, kind: str) -> Any:
        gc.collect()
        if self.is_gpu:
            torch.cuda.empty_cache()
        torch.manual_seed(0)
        torch._dynamo.reset()
        with torch.device(self.device):
            model = Model(self.shape).to(self.dtype)
        if kind == "sparse":
            st.sparsify_(model, self.block, self.density, filter=lambda name, _: ".mlp." in name)
        for block in model.blocks:
            if kind == "without MLPs":
                block.mlp = nn.Identity()
            if self.is_gpu:
                block.compile(fullgraph=True)  # one graph serves all layers
        return model

    def forward(self) -> dict[str, float]:
        """A batch of 8 x 2048 tokens, by torch.compile."""

        def measure(model: Any) -> float:
            positions = model.positions(0, self.tokens.shape[1])
            with torch.no_grad():
                return milliseconds({"forward": lambda: model(self.tokens, positions)}, self.device, 5)["forward"]

        return self._each_kind(measure)

    def step(self) -> dict[str, float]:
        """The same batch: forward, backward, and AdamW."""

        def measure(model: Any) -> float:
            positions = model.positions(0, self.tokens.shape[1])
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, foreach=True)

            def step() -> None:
                logits = model(self.tokens, positions)
                F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), self.tokens[:, 1:].flatten()).backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)

            return milliseconds({"step": step}, self.device, 3)["step"]

        return self._each_kind(measure)

    def decode(self) -> dict[str, float]:
        """One token behind 2048 others in a CUDA graph, of one sequence and of a batch. None on the CPU."""
        if not self.is_gpu:
            return {}
        batch, length = self.tokens.shape
        found = {}
        for sequences in (1, batch):
            print(f"  of {sequences}:", flush=True)
            figures = self._each_kind(lambda model: self._decoded(model, sequences, length))  # noqa: B023
            found.update({f"of {sequences}: {name}": value for name, value in figures.items()})
        return found

    def _decoded(self, model: Any, sequences: int, length: int) -> float:
        shape = self.shape
        token = torch.randint(shape.vocabulary, (sequences, 1), device=self.device)
        cached = shape.layers, 2, sequences, shape.heads, length + 1, shape.width // shape.heads
        caches = torch.randn(cached, device=self.device, dtype=self.dtype)
        at = torch.full((1,), length, device=self.device)
        positions = model.positions(length, 1)
        with torch.no_grad():
            model(token, positions, caches, at)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                model(token, positions, caches, at)
            taken = milliseconds({"decode": graph.replay}, self.device)["decode"]
        del graph
        st.cache_clear(captured=True)
        return taken
