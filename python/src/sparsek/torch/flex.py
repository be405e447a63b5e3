# SPDX-License-Identifier: Apache-2.0
"""Attention as torch's flex_attention is called, with a BlockMask."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import torch

from ..errors import ArgumentError, UnsupportedError
from . import functional, layouts
from .block_layout import BlockLayout

__all__ = ["flex_attention", "rule_of"]

Rule = tuple[int | None, int | None]
_known: WeakKeyDictionary[Any, tuple[BlockLayout, Rule]] = WeakKeyDictionary()


def flex_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score_mod: None = None,
    block_mask: Any = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
) -> Any:
    """torch.nn.attention.flex_attention.flex_attention, by the library's attention.

    block_mask: the first call with one looks at all queries and keys, and waits for a GPU; others do not. Where its function hides
    nothing within the blocks that it lists but what is too far to the left or to the right, attention has that as a window; else
    it has bits of the blocks (`layouts.from_block_mask`). kernel_options has no effect. Raises UnsupportedError for a score_mod.
    """
    if score_mod is not None:
        raise UnsupportedError("score_mod is a function of single scores, and attention runs none: soft_cap and scale are its own")
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise ArgumentError(f"{query.shape[1]} heads of queries and {key.shape[1]} of keys need enable_gqa=True")
    if block_mask is None:
        return functional.attention(query, key, value, scale=scale, return_lse=return_lse)
    known = _known.get(block_mask)
    if known is None or known[0].col.device != query.device:
        layout = layouts.from_block_mask(block_mask, check=False)
        rule = rule_of(block_mask, layout)
        if rule is None:
            layout, rule = layouts.from_block_mask(block_mask, bits=True), (None, None)
        known = _known[block_mask] = layout, rule
    return functional.attention(query, key, value, known[0], window=known[1], scale=scale, return_lse=return_lse)


def rule_of(block_mask: Any, layout: BlockLayout) -> Rule | None:
    """What the function of a BlockMask hides within the blocks of its layout, as attention's `window`; None: something else.

    Raises ArgumentError where the function shows keys in blocks that the BlockMask does not list.
    """
    from torch.nn.attention.flex_attention import create_mask

    (queries, keys), device = layout.seq, layout.col.device
    seen = create_mask(block_mask.mask_mod, layout.batch, layout.heads, queries, keys, device=device)
    listed = layout.dense_mask()
    if bool((seen & ~listed).any()):
        raise ArgumentError("the BlockMask's function shows keys in blocks that it does not list")
    away = torch.arange(keys, device=device) - torch.arange(queries, device=device)[:, None]
    hidden = (listed & ~seen).any(1).any(0)
    shown = seen.any(1).any(0)
    first, last = (int(away[shown].min()), int(away[shown].max())) if bool(shown.any()) else (0, 0)
    if bool((hidden & (away >= first) & (away <= last)).any()):
        return None
    return (-first if bool((hidden & (away < first)).any()) else None), (last if bool((hidden & (away > last)).any()) else None)
