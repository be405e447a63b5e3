# SPDX-License-Identifier: Apache-2.0
"""Trains a small language model of characters on the CPU, twice: dense, and with MLPs that become block-sparse.

The sparse one is dense for a fifth of the steps. Then blocks of its MLPs are dropped until a quarter is left, and until four
fifths of the steps a tenth of the blocks moves now and then to where a gradient of the dense weight is large (RigL). The text is that
of this repository's licence.

    PYTHONPATH=python/src python python/examples/train_transformer.py --steps 200
"""

from __future__ import annotations

import argparse
import copy
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import sparsek.torch as st

BLOCK, LENGTH, BATCH = (16, 16), 64, 16
TEXT = Path(__file__).resolve().parents[2] / "LICENSE"


class Layer(nn.Module):
    """Attention to earlier tokens, and an MLP."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm_in, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, length, width), and so is the result."""
        q, k, v = self.qkv(self.norm_in(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm_mlp(x))


class Model(nn.Module):
    """Says for each place of a text which character comes next."""

    def __init__(self, characters: int, width: int, layers: int = 2) -> None:
        super().__init__()
        self.embedding, self.place = nn.Embedding(characters, width), nn.Embedding(LENGTH, width)
        self.layers = nn.Sequential(*(Layer(width) for _ in range(layers)))
        self.head = nn.Linear(width, characters)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        """text: (batch, length) of numbers of characters. Returns (batch, length, characters)."""
        return self.head(self.layers(self.embedding(text) + self.place.weight[: text.shape[1]]))


class Batches:
    """Pieces of a text for training, and its last tenth for judging."""

    def __init__(self, seed: int, text: str | None = None) -> None:
        text = TEXT.read_text() if text is None else text
        self.characters = sorted(set(text))
        numbers = torch.tensor([self.characters.index(character) for character in text])
        cut = len(numbers) * 9 // 10
        self.train, self.test = numbers[:cut], numbers[cut:]
        self.generator = torch.Generator().manual_seed(seed)

    def draw(self) -> torch.Tensor:
        """(BATCH, LENGTH + 1)."""
        starts = torch.randint(len(self.train) - LENGTH, (BATCH,), generator=self.generator)
        return torch.stack([self.train[start : start + LENGTH + 1] for start in starts])

    def judged(self) -> torch.Tensor:
        """The test text in rows of LENGTH + 1."""
        return self.test.unfold(0, LENGTH + 1, LENGTH)


def loss_of(model: nn.Module, text: torch.Tensor) -> torch.Tensor:
    """Nats a character."""
    return F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())


class Watch:
    """The growth scores of a layer's latest step."""

    def __init__(self, layer: st.BsrLinear) -> None:
        self.layer, self.scores = layer, torch.zeros(layer.mask_shape)
        layer.register_forward_hook(self._seen)

    def _seen(self, layer: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        if output.requires_grad:
            output.register_hook(lambda gradient: self._measure(inputs[0], gradient))

    def _measure(self, x: torch.Tensor, gradient: torch.Tensor) -> None:
        self.scores = st.growth_scores(x, gradient, self.layer.block)


def train(model: Model, batches: Batches, steps: int, density: float | None = None) -> float:
    """Trains the model and returns its loss on text that it has not seen. density: of the MLPs' blocks in the end; None: dense."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    start, end, watches = steps // 5, steps * 4 // 5, []
    for step in range(steps):
        if density is not None and step == start:
            st.sparsify_(model, BLOCK, 1.0, filter=lambda name, _: ".mlp." in name)
            optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
            watches = [Watch(module) for module in model.modules() if isinstance(module, st.BsrLinear)]
        optimizer.zero_grad()
        loss_of(model, batches.draw()).backward()
        optimizer.step()
        if density is not None and watches and step % 5 == 0 and step <= end:
            left = 1 - (1 - density) * min(1.0, 2 * (step - start) / (end - start))
            for watch in watches:
                if not st.prune_(watch.layer, left, optimizer=optimizer):
                    st.regrow_(watch.layer, 0.1, watch.scores, optimizer=optimizer)
    model.eval()
    with torch.no_grad():
        return float(loss_of(model, batches.judged()))


def main() -> None:
    """Trains both and prints their losses."""
    parser = argparse.ArgumentParser(description="a small language model, dense and block-sparse")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--width", type=int, default=64)
    options = parser.parse_args()
    torch.manual_seed(0)
    dense = Model(len(Batches(1).characters), options.width)
    sparse = copy.deepcopy(dense)
    for name, model, density in (("dense", dense, None), ("sparse", sparse, 0.25)):
        loss = train(model, Batches(seed=1), options.steps, density)
        count = sum(parameter.numel() for parameter in model.layers.parameters())
        print(f"{name:6}  {count:7} parameters in layers, {loss:.3f} nats a character on text that it has not seen")


if __name__ == "__main__":
    main()
