# SPDX-License-Identifier: Apache-2.0
"""Attention through which a gate learns by the loss of a model."""

from __future__ import annotations

import torch

from ..errors import ArgumentError
from .block_layout import BlockLayout

__all__ = ["estimated_attention"]

_ESTIMATORS = ("none", "straight_through", "score_weighted")


def _per_pair(blocks: torch.Tensor, layout: BlockLayout) -> torch.Tensor:
    """(batch, heads, queries, keys) of (batch, heads, rows, columns)."""
    (high, wide), (queries, keys) = layout.block, layout.seq
    return blocks.repeat_interleave(high, -2).repeat_interleave(wide, -1)[..., :queries, :keys]


def estimated_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    scores: torch.Tensor,
    layout: BlockLayout,
    *,
    estimator: str,
    causal: bool = True,
    scale: float | None = None,
) -> torch.Tensor:
    """Attention over the blocks of a layout, with gradients for the scores (batch, query heads, rows, columns) that it was chosen by.

    Each weight exp(s) is multiplied by a factor of its block, then they are divided by their sum. With p the softmax of a block
    row's scores, factors are

    - "none": 1 for blocks of the layout, 0 for others: attention as it is. Scores get no gradient.
    - "straight_through": the same numbers, but with the gradient of p, also for blocks that were not chosen.
    - "score_weighted": p for blocks of the layout, 0 for others. Scores of blocks that were not chosen get a gradient by the softmax alone.

    It is for training gates: torch computes all scores of queries and keys, no kernel of the library takes part, and it takes
    the memory of dense attention. Double gradients flow. A query must see a key.
    """
    if estimator not in _ESTIMATORS:
        raise ArgumentError(f"estimator={estimator!r} is none of {', '.join(_ESTIMATORS)}")
    group = q.shape[1] // k.shape[1]
    by_key, values = (x.repeat_interleave(group, 1) for x in (k, v))
    exponents = (q @ by_key.transpose(-1, -2)).float() * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        places = torch.arange(max(layout.seq), device=q.device)
        exponents = exponents.masked_fill(places[: layout.seq[1]] > places[: layout.seq[0], None], -torch.inf)
    chosen = layout.mask().repeat_interleave(q.shape[1] // layout.heads, 1).float()
    p = scores.softmax(-1)
    factors = {"none": chosen, "straight_through": chosen + p - p.detach(), "score_weighted": chosen * p}[estimator]
    # Relative to the greatest of those that count, so that their sum is not too small. Others may be far above it.
    seen = exponents.masked_fill(_per_pair(chosen, layout) == 0, -torch.inf)
    weights = (exponents - seen.detach().amax(-1, keepdim=True)).clamp(max=30).exp() * _per_pair(factors, layout)
    return ((weights / weights.sum(-1, keepdim=True)) @ values.float()).to(q.dtype)
