# SPDX-License-Identifier: Apache-2.0
"""Bits of the pairs of a block of queries by keys, of blocks in which not every query sees every key."""

from __future__ import annotations

from collections.abc import Callable

import torch

_WORD = 32

Places = tuple[torch.Tensor, ...]


def in_blocks(mask: torch.Tensor, block: tuple[int, int], *, beyond: bool) -> torch.Tensor:
    """A mask (..., queries, keys) as (layouts, block rows, block columns, *block). beyond: of pairs behind the ends."""
    high, wide = block
    queries, keys = mask.shape[-2:]
    flat = mask.reshape(-1, queries, keys)
    flat = torch.nn.functional.pad(flat, (0, -keys % wide, 0, -queries % high), value=beyond)
    return flat.unflatten(2, (-1, wide)).unflatten(1, (-1, high)).transpose(2, 3)


def of_blocks(partial: torch.Tensor, seen: Callable[[Places], torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor] | None:
    """BlockLayout's `bits` of the blocks of a mask, (layouts, block rows, block columns); None: there are none.

    seen: which pairs see each other, (blocks, *block) of bool, of blocks at these places. On a GPU it waits for their number.
    """
    places = partial.nonzero(as_tuple=True)
    if places[0].numel() == 0:
        return None
    flat = partial.flatten()
    index = torch.where(flat, flat.cumsum(0) - 1, -1).to(torch.int32).reshape(-1, partial.shape[2])
    return index, packed(seen(places))


def packed(seen: torch.Tensor) -> torch.Tensor:
    """(blocks, queries, keys) of bool as words of int32, (blocks, queries, ceil(keys / 32))."""
    whole = torch.nn.functional.pad(seen, (0, -seen.shape[2] % _WORD)).unflatten(2, (-1, _WORD))
    value = (whole.long() << torch.arange(_WORD, device=seen.device)).sum(-1)
    return torch.where(value < 1 << 31, value, value - (1 << 32)).to(torch.int32)


def unpacked(index: torch.Tensor, words: torch.Tensor, wide: int) -> torch.Tensor:
    """Which pairs of each block see each other, (block rows, block columns, queries, keys); all of blocks without bits."""
    seen = (words[..., None] >> torch.arange(_WORD, device=words.device, dtype=torch.int32) & 1).bool().flatten(2)[..., :wide]
    every = torch.ones_like(seen[:1])
    return torch.cat([seen, every])[torch.where((index >= 0) & (index < words.shape[0]), index, words.shape[0]).long()]
