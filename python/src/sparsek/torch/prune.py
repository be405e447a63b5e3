# SPDX-License-Identifier: Apache-2.0
"""Which blocks a layer has, changed while it is trained."""

from __future__ import annotations

import torch

from ..errors import ArgumentError
from .blocks import Score, highest, scores_of, to_blocks
from .modules import BsrLinear
from .tensor import BsrTensor

__all__ = ["growth_scores", "prune_", "regrow_"]


def _scores(layer: BsrLinear | BsrTensor, score: Score) -> torch.Tensor:
    """Scores of the stored blocks, -inf for the others: (ceil(out/bm), ceil(in/bk))."""
    found = torch.full(layer.mask_shape, -torch.inf, device=layer.values.device)
    found[layer.mask] = scores_of(layer.values.detach(), score).float()
    return found


def _require_blocks(layer: object) -> None:
    if not isinstance(layer, (BsrLinear, BsrTensor)):
        raise ArgumentError(f"a {type(layer).__name__} has no blocks: give a BsrLinear, such as sparsify_ makes, or a BsrTensor")


def prune_(layer: BsrLinear | BsrTensor, density: float, *, score: Score = "l2", optimizer: torch.optim.Optimizer | None = None) -> int:
    """Drops the blocks with the lowest scores until the share `density` of all is left, and returns how many it dropped.

    layer: a BsrLinear, or a weight that is a BsrTensor.

    Does nothing where the layer has as few already. score: see block_scores. optimizer: see BsrLinear.set_pattern.
    """
    _require_blocks(layer)
    if not 0 <= density <= 1:
        raise ArgumentError(f"density={density} is not from 0 to 1")
    stored = layer.col.numel()
    left = min(stored, round(density * layer.mask_shape[0] * layer.mask_shape[1]))
    if left < stored:
        layer.set_pattern(highest(_scores(layer, score), left), optimizer)
    return stored - left


def growth_scores(x: torch.Tensor, grad_output: torch.Tensor, block: tuple[int, int]) -> torch.Tensor:
    """The L2 norms of the blocks that the gradient of a dense weight would have: (ceil(out/bm), ceil(in/bk)).

    x: (..., in), the input of the layer. grad_output: (..., out), the gradient of its output. RigL grows where they are high.
    """
    dense = grad_output.detach().flatten(0, -2).t() @ x.detach().flatten(0, -2)
    return scores_of(to_blocks(dense, block), "l2")


def regrow_(
    layer: BsrLinear | BsrTensor,
    fraction: float,
    growth: torch.Tensor | None = None,
    *,
    score: Score = "l2",
    optimizer: torch.optim.Optimizer | None = None,
) -> int:
    """Moves the share `fraction` of the layer's blocks elsewhere: those with the lowest scores go, as many new ones come.

    growth: scores (ceil(out/bm), ceil(in/bk)) of where to grow, as growth_scores gives them (RigL); None: at random (SET).
    New blocks are zero, and none of them is one that went. Returns how many moved: no more than there are free places.
    optimizer: see BsrLinear.set_pattern.
    """
    _require_blocks(layer)
    if not 0 <= fraction <= 1:
        raise ArgumentError(f"fraction={fraction} is not from 0 to 1")
    if growth is None:
        growth = torch.rand(layer.mask_shape, device=layer.values.device)
    if tuple(growth.shape) != layer.mask_shape:
        raise ArgumentError(f"growth has the shape {tuple(growth.shape)}, and not {layer.mask_shape}")
    had = layer.mask
    stored = layer.col.numel()
    moving = min(round(fraction * stored), had.numel() - stored)
    if moving:
        kept = highest(_scores(layer, score), stored - moving)
        grown = highest(growth.to(had.device).float().masked_fill(had, -torch.inf), moving)
        layer.set_pattern(kept | grown, optimizer)
    return moving
