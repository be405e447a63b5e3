# SPDX-License-Identifier: Apache-2.0
"""Layouts by rules, and of FlexAttention.

Each has the blocks in which some query sees some key by its rule: `|` and `&` join them. seq: queries and keys, or one number for
both. block: queries and keys of a block, or one number. device: where the index is made. Attention has arguments of its own for
what a rule says within a block. A rule for which it has none holds for whole blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..attention import rules_of
from ..errors import ArgumentError
from .block_layout import BlockLayout, pair

__all__ = ["bigbird", "causal", "documents", "from_block_mask", "full", "sinks", "strided", "window"]

Extent = int | tuple[int, int]
Device = Any  # what torch takes for one; None: the CPU, or torch's default


class _Blocks:
    """The first and the last query and key of each block, as a column and a row."""

    def __init__(self, seq: Extent, block: Extent, device: Device, align_ends: bool = False) -> None:
        self.seq, self.block = pair(seq), pair(block)
        (queries, keys), (high, wide) = self.seq, self.block
        self.rows = torch.arange(-(-queries // high), device=device)[:, None]
        self.columns = torch.arange(-(-keys // wide), device=device)
        shift = keys - queries if align_ends else 0
        self.first_query, self.last_query = self.rows * high + shift, ((self.rows + 1) * high).clamp(max=queries) - 1 + shift
        self.first_key, self.last_key = self.columns * wide, ((self.columns + 1) * wide).clamp(max=keys) - 1

    def of(self, mask: torch.Tensor) -> BlockLayout:
        shape = (self.rows.shape[0], self.columns.shape[0])
        return BlockLayout.from_mask(mask.expand(shape), self.block, self.seq)

    def window(self, left: int | None, right: int | None) -> torch.Tensor:
        mask = torch.ones(self.rows.shape[0], self.columns.shape[0], dtype=torch.bool, device=self.rows.device)
        if left is not None:
            mask &= self.last_key - self.first_query >= -left
        if right is not None:
            mask &= self.first_key - self.last_query <= right
        return mask


def full(seq: Extent, block: Extent, *, device: Device = None) -> BlockLayout:
    """All blocks."""
    blocks = _Blocks(seq, block, device)
    return blocks.of(blocks.window(None, None))


def causal(seq: Extent, block: Extent, *, align_ends: bool = False, device: Device = None) -> BlockLayout:
    """No key behind its query; see attention's `causal` and `align_ends`."""
    return window(seq, block, None, 0, align_ends=align_ends, device=device)


def window(
    seq: Extent, block: Extent, left: int | None, right: int | None, *, align_ends: bool = False, device: Device = None
) -> BlockLayout:
    """Keys from `left` before a query to `right` behind it; None: without a limit; see attention's `window`."""
    blocks = _Blocks(seq, block, device, align_ends)
    return blocks.of(blocks.window(left, right))


def sinks(seq: Extent, block: Extent, count: int, *, device: Device = None) -> BlockLayout:
    """The blocks of the first `count` keys, for all queries."""
    blocks = _Blocks(seq, block, device)
    return blocks.of(blocks.first_key < count)


def strided(seq: Extent, block: Extent, local: int, stride: int, *, device: Device = None) -> BlockLayout:
    """Keys up to `local` away, and the last of each `stride` blocks of keys, for all queries."""
    if stride < 1:
        raise ArgumentError(f"stride={stride}: every how many blocks of keys are seen is at least 1")
    blocks = _Blocks(seq, block, device)
    return blocks.of(blocks.window(local, local) | ((blocks.columns + 1) % stride == 0))


def bigbird(
    seq: Extent,
    block: Extent,
    local: int,
    ends: int,
    count: int,
    *,
    heads: int = 1,
    generator: torch.Generator | None = None,
    device: Device = None,
) -> BlockLayout:
    """Keys up to `local` away, all keys for the first `ends` queries and all queries for the first `ends` keys, and `count` blocks
    of each block row by chance, for each of `heads`.
    """
    blocks = _Blocks(seq, block, device)
    every = blocks.window(local, local) | (blocks.first_key < ends) | (blocks.first_query < ends)
    if count < 1:
        return blocks.of(every)
    scores = torch.rand(heads, *every.shape, generator=generator, device=device if generator is None else generator.device)
    drawn = scores.to(blocks.rows.device).argsort(-1)[..., : min(count, every.shape[1])]
    return BlockLayout.from_mask(every.repeat(heads, 1, 1).scatter(-1, drawn, True), blocks.block, blocks.seq)


def documents(lengths: Sequence[int], block: Extent, *, device: Device = None) -> BlockLayout:
    """Each document's queries see its keys alone. lengths: of the documents, one after the other, multiples of the block."""
    high, wide = pair(block)
    uneven = [length for length in lengths if length % high or length % wide]
    if uneven:
        raise ArgumentError(
            f"a document of {uneven[0]} does not end with a block of {high} x {wide}: pad documents to multiples of it, since what "
            "two of them have in a block is not told apart"
        )
    ids = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths, dtype=torch.long)).to(device)
    return BlockLayout.from_mask(ids[::high, None] == ids[None, ::wide], (high, wide), (ids.numel(), ids.numel()))


def from_block_mask(
    block_mask: Any,
    *,
    causal: bool = False,
    window: tuple[int | None, int | None] = (None, None),
    align_ends: bool = False,
    check: bool = True,
) -> BlockLayout:
    """The blocks of a BlockMask of FlexAttention.

    Its function of queries and keys is not run by attention. What it hides within blocks has to be a rule that attention has:
    give that here, and to attention too. check: compares the layout and the rule with the function, for all queries and keys at
    once, and raises ArgumentError where they differ.
    """
    (queries, keys), (high, wide) = block_mask.seq_lengths, block_mask.BLOCK_SIZE
    mask = _listed(block_mask.kv_num_blocks, block_mask.kv_indices, -(-keys // wide))
    if block_mask.full_kv_num_blocks is not None:
        mask |= _listed(block_mask.full_kv_num_blocks, block_mask.full_kv_indices, -(-keys // wide))
    found = BlockLayout.from_mask(mask, (high, wide), (queries, keys))
    if check:
        left, right = rules_of(causal, window)
        _require_same(found, block_mask, left, right, keys - queries if align_ends else 0)
    return found


def _listed(counts: torch.Tensor, indices: torch.Tensor, columns: int) -> torch.Tensor:
    """The mask of the first `counts` of each row's indices."""
    listed = torch.arange(indices.shape[-1], device=indices.device) < counts[..., None]
    found = torch.zeros(*indices.shape[:-1], columns, dtype=torch.int32, device=indices.device)
    return found.scatter_add(-1, indices.long().clamp(0, columns - 1), listed.int()) > 0


def _require_same(layout: BlockLayout, block_mask: Any, left: int | None, right: int | None, shift: int) -> None:
    from torch.nn.attention.flex_attention import create_mask

    (queries, keys), device = layout.seq, layout.col.device
    expected = create_mask(block_mask.mask_mod, layout.batch, layout.heads, queries, keys, device=device)
    away = torch.arange(keys, device=device) - torch.arange(queries, device=device)[:, None] - shift
    seen = layout.dense_mask()
    if left is not None:
        seen &= away >= -left
    if right is not None:
        seen &= away <= right
    different = (seen != expected).nonzero()
    if different.numel():
        batch, head, query, key = different[0].tolist()
        does, rule = ("sees", "hide") if bool(expected[batch, head, query, key]) else ("does not see", "show")
        raise ArgumentError(
            f"by the BlockMask's function, query {query} of batch {batch} and head {head} {does} key {key}, which these blocks and "
            f"rules {rule}: give the rule that it has within blocks, as causal, window and align_ends"
        )
