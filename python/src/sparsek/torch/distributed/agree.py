# SPDX-License-Identifier: Apache-2.0
"""Patterns that are the same on all ranks which train one layer together, by DDP or FSDP2.

All ranks of the group must make each of these calls together.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from ...errors import ArgumentError
from .. import prune
from ..blocks import Score, scores_of, to_blocks
from ..modules import BsrLinear
from .exchange import whole

__all__ = ["broadcast_pattern_", "growth_scores", "patterns_agree", "prune_", "regrow_"]


def _layers(module: nn.Module) -> list[BsrLinear]:
    return [layer for layer in module.modules() if isinstance(layer, BsrLinear)]


def broadcast_pattern_(module: nn.Module, group: Any = None, *, source: int = 0, optimizer: torch.optim.Optimizer | None = None) -> None:
    """Gives each BsrLinear in a module the pattern, the values and the bias that it has on one rank.

    group: the process group (None: all ranks). source: the rank within it. optimizer: see BsrLinear.set_pattern.
    """
    for layer in _layers(module):
        mask = layer.mask.to(torch.uint8)
        dist.broadcast(mask, group_src=source, group=group)
        if not torch.equal(mask.bool(), layer.mask):
            layer.set_pattern(mask.bool(), optimizer)
        with torch.no_grad():
            for parameter in layer.parameters(recurse=False):
                dist.broadcast(parameter.data, group_src=source, group=group)


def patterns_agree(module: nn.Module, group: Any = None) -> bool:
    """Whether each BsrLinear in a module has the same pattern on all ranks. The answer is the same on all."""
    agree = True
    for layer in _layers(module):
        mask = layer.mask
        count = mask.to(torch.int32)
        dist.all_reduce(count, group=group)
        # Each block is one of all ranks or of none.
        differs = ((count != 0) & (count != dist.get_world_size(group))).any()
        agree = agree and not bool(differs)
    return agree


def _reduced(score: Score, group: Any) -> Any:
    """The mean of all ranks' scores, bit by bit the same on each."""

    def mean(blocks: torch.Tensor) -> torch.Tensor:
        scores = whole(scores_of(blocks, score)).float().contiguous()
        dist.all_reduce(scores, group=group)
        return scores / dist.get_world_size(group)

    return mean


def _require_agreement(layer: BsrLinear, group: Any) -> None:
    if not patterns_agree(layer, group):
        raise ArgumentError("the ranks have other patterns of this layer: broadcast_pattern_ gives them one")


def prune_(
    layer: BsrLinear, density: float, *, group: Any = None, score: Score = "l2", optimizer: torch.optim.Optimizer | None = None
) -> int:
    """sparsek.torch.prune_ by the mean of the ranks' scores: all ranks of the group drop the same blocks.

    Raises ArgumentError where the patterns differ before.
    """
    _require_agreement(layer, group)
    return prune.prune_(layer, density, score=_reduced(score, group), optimizer=optimizer)


def growth_scores(x: torch.Tensor, grad_output: torch.Tensor, block: tuple[int, int], group: Any = None) -> torch.Tensor:
    """sparsek.torch.growth_scores of the batch of all ranks together, from the x and grad_output of each."""
    dense = grad_output.detach().flatten(0, -2).t() @ x.detach().flatten(0, -2)
    dist.all_reduce(dense, group=group)
    return scores_of(to_blocks(dense, block), "l2")


def regrow_(
    layer: BsrLinear,
    fraction: float,
    growth: torch.Tensor | None = None,
    *,
    group: Any = None,
    score: Score = "l2",
    optimizer: torch.optim.Optimizer | None = None,
) -> int:
    """sparsek.torch.regrow_ by the mean of the ranks' scores and growths: all ranks of the group move the same blocks.

    growth None: at random, as the group's first rank draws. The number of blocks stays, so that FSDP2 may have sharded them.
    Raises ArgumentError where the patterns differ before.
    """
    _require_agreement(layer, group)
    device = layer.col.device
    if growth is None:
        growth = torch.rand(layer.mask_shape, device=device)
        dist.broadcast(growth, group_src=0, group=group)
    else:
        growth = growth.detach().to(device, torch.float32, copy=True).contiguous()
        dist.all_reduce(growth, group=group)
    return prune.regrow_(layer, fraction, growth, score=_reduced(score, group), optimizer=optimizer)
