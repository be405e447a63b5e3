# SPDX-License-Identifier: Apache-2.0
"""Prunes the MLPs of a small vision transformer to a fifth of their blocks, at once and step by step.

The images are made: stripes in one of eight directions, with noise. The model tells the direction.

    PYTHONPATH=python/src python python/examples/prune_vit.py
"""

from __future__ import annotations

import argparse
import copy
import math

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import sparsek.torch as st

SIDE, PATCH, DIRECTIONS, BLOCK = 16, 4, 8, (16, 16)


class ViT(nn.Module):
    """Patches, two layers of torch's transformer, and a head."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.embed = nn.Linear(PATCH * PATCH, width)
        self.place = nn.Parameter(0.02 * torch.randn((SIDE // PATCH) ** 2, width))
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, DIRECTIONS)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """images: (batch, SIDE, SIDE). Returns (batch, DIRECTIONS)."""
        patches = images.unfold(1, PATCH, PATCH).unfold(2, PATCH, PATCH).flatten(3).flatten(1, 2)
        return self.head(self.layers(self.embed(patches) + self.place).mean(1))


def made_images(count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Images (count, SIDE, SIDE) and their directions (count)."""
    label = torch.randint(DIRECTIONS, (count,), generator=generator)
    angle = label * math.pi / DIRECTIONS
    phase, pitch = torch.rand(2, count, generator=generator)
    y, x = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    along = x * torch.cos(angle)[:, None, None] + y * torch.sin(angle)[:, None, None]
    stripes = torch.sin((0.7 + 0.6 * pitch)[:, None, None] * along + 2 * math.pi * phase[:, None, None])
    return stripes + torch.randn(count, SIDE, SIDE, generator=generator), label


def train(model: nn.Module, steps: int, seed: int, densities: dict[int, float] | None = None) -> None:
    """Trains for some steps. densities: before which steps the MLPs are pruned, and to which share of their blocks."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    for step in range(steps):
        for layer in model.modules():
            if isinstance(layer, st.BsrLinear) and densities and step in densities:
                st.prune_(layer, densities[step], optimizer=optimizer)
        images, label = made_images(64, generator)
        optimizer.zero_grad()
        F.cross_entropy(model(images), label).backward()
        optimizer.step()
        schedule.step()


def accuracy(model: nn.Module) -> float:
    """The share of images not trained on whose direction the model tells."""
    images, label = made_images(2000, torch.Generator().manual_seed(99))
    with torch.no_grad():
        return float((model(images).argmax(1) == label).float().mean())


def main(steps: int = 120, density: float = 0.2) -> dict[str, float]:
    """Trains, prunes, prints and returns the accuracies."""
    torch.manual_seed(0)
    dense = ViT()
    train(dense, steps, seed=1)
    at_once = copy.deepcopy(dense)
    names = st.sparsify_(at_once, BLOCK, density, filter=lambda name, _: "linear" in name)
    gradual = copy.deepcopy(dense)
    st.sparsify_(gradual, BLOCK, 1.0, filter=lambda name, _: "linear" in name)
    # The share falls in five steps during the first half of the training, by a cubic: fast at first.
    shares = {steps * turn // 10: density + (1 - density) * (1 - turn / 5) ** 3 for turn in range(1, 6)}
    found = {"dense": accuracy(dense), "pruned at once": accuracy(at_once)}
    train(at_once, steps, seed=2)
    train(gradual, steps, seed=2, densities=shares)
    train(dense, steps, seed=2)
    found |= {"dense, trained on": accuracy(dense)}
    found |= {"pruned at once, trained on": accuracy(at_once), "pruned step by step": accuracy(gradual)}
    print(f"{', '.join(names)}: {density:.0%} of their blocks")
    for name, share in found.items():
        print(f"{name:27} {share:.1%}")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="a small vision transformer with pruned MLPs")
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--density", type=float, default=0.2)
    options = parser.parse_args()
    main(options.steps, options.density)
