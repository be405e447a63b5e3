# SPDX-License-Identifier: Apache-2.0
"""Layouts by rules, and of other packages.

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
from . import _bits, _chosen
from .block_layout import BlockLayout, pair

__all__ = [
    "bigbird",
    "causal",
    "documents",
    "from_block_mask",
    "from_block_tensors",
    "from_bsr",
    "from_cu_seqlens",
    "full",
    "sinks",
    "strided",
    "window",
]

Extent = int | tuple[int, int]
Device = Any  # what torch takes for one; None: the CPU, or torch's default


class Blocks:
    """The first and the last query and key of each block, as a column and a row."""

    def __init__(self, seq: Extent, block: Extent, device: Device, align_ends: bool = False) -> None:
        self.seq, self.block = pair(seq, "seq"), pair(block, "block")
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
    blocks = Blocks(seq, block, device)
    return blocks.of(blocks.window(None, None))


def causal(seq: Extent, block: Extent, *, align_ends: bool = False, device: Device = None) -> BlockLayout:
    """No key behind its query; see attention's `causal` and `align_ends`."""
    return window(seq, block, None, 0, align_ends=align_ends, device=device)


def window(
    seq: Extent, block: Extent, left: int | None, right: int | None, *, align_ends: bool = False, device: Device = None
) -> BlockLayout:
    """Keys from `left` before a query to `right` behind it; None: without a limit; see attention's `window`."""
    blocks = Blocks(seq, block, device, align_ends)
    return blocks.of(blocks.window(left, right))


def sinks(seq: Extent, block: Extent, count: int, *, device: Device = None) -> BlockLayout:
    """The blocks of the first `count` keys, for all queries."""
    blocks = Blocks(seq, block, device)
    return blocks.of(blocks.first_key < count)


def strided(seq: Extent, block: Extent, local: int, stride: int, *, device: Device = None) -> BlockLayout:
    """Keys up to `local` away, and the last of each `stride` blocks of keys, for all queries."""
    if stride < 1:
        raise ArgumentError(f"stride={stride}: every how many blocks of keys are seen is at least 1")
    blocks = Blocks(seq, block, device)
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
    blocks = Blocks(seq, block, device)
    every = blocks.window(local, local) | (blocks.first_key < ends) | (blocks.first_query < ends)
    if count < 1:
        return blocks.of(every)
    scores = torch.rand(heads, *every.shape, generator=generator, device=device if generator is None else generator.device)
    drawn = scores.to(blocks.rows.device).argsort(-1)[..., : min(count, every.shape[1])]
    return BlockLayout.from_mask(every.repeat(heads, 1, 1).scatter(-1, drawn, True), blocks.block, blocks.seq)


def documents(lengths: Sequence[int], block: Extent, *, device: Device = None) -> BlockLayout:
    """Each document's queries see its keys alone. lengths: of the documents, one after the other, multiples of the block."""
    high, wide = pair(block, "block")
    uneven = [length for length in lengths if length % high or length % wide]
    if uneven:
        raise ArgumentError(
            f"a document of {uneven[0]} does not end with a block of {high} x {wide}: pad documents to multiples of it, since what "
            "two of them have in a block is not told apart"
        )
    ids = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths, dtype=torch.long)).to(device)
    return BlockLayout.from_mask(ids[::high, None] == ids[None, ::wide], (high, wide), (ids.numel(), ids.numel()))


def from_cu_seqlens(
    cu_seqlens: torch.Tensor, block: Extent, *, cu_seqlens_k: torch.Tensor | None = None, seq: Extent | None = None, check: bool = True
) -> BlockLayout:
    """Documents that follow each other in one sequence, each of which sees itself alone.

    cu_seqlens: (documents + 1), where each begins, and the end, in queries and keys, or in queries where cu_seqlens_k has those of
    keys. They begin with blocks. seq: None: the end, for which a GPU is waited for. check: whether to look that documents begin with
    blocks, for which a GPU is waited for too.
    """
    of_keys = cu_seqlens if cu_seqlens_k is None else cu_seqlens_k
    (high, wide), device = pair(block, "block"), cu_seqlens.device
    if cu_seqlens.dim() != 1 or of_keys.shape != cu_seqlens.shape or cu_seqlens.numel() < 1:
        raise ArgumentError(f"cu_seqlens of shapes {tuple(cu_seqlens.shape)} and {tuple(of_keys.shape)} are not (documents + 1,) both")
    queries, keys = (int(cu_seqlens[-1]), int(of_keys[-1])) if seq is None else pair(seq, "seq")
    if check and bool((cu_seqlens[:-1] % high).any() | (of_keys[:-1] % wide).any()):
        raise ArgumentError(
            f"a document does not begin with a block of {high} x {wide}: pad documents to multiples of it, since what two of them have "
            "in a block is not told apart"
        )
    first_query, first_key = torch.arange(0, queries, high, device=device), torch.arange(0, keys, wide, device=device)
    row = torch.searchsorted(cu_seqlens.contiguous(), first_query.to(cu_seqlens.dtype), right=True)
    column = torch.searchsorted(of_keys.contiguous(), first_key.to(of_keys.dtype), right=True)
    mask = row[:, None] == column
    return BlockLayout.from_mask(mask, (high, wide), (queries, keys), most=mask.numel())


def from_bsr(indptr: torch.Tensor, indices: torch.Tensor, block: Extent, seq: Extent) -> BlockLayout:
    """The blocks of an index of block rows as FlashInfer's BlockSparseAttentionWrapper takes it, the same for all heads.

    indptr: (block rows + 1). indices: the block of keys of each block, in any order within a block row. block: its R and C. seq: its M
    and N. On a GPU nothing is waited for.
    """
    high, wide = pair(block, "block")
    queries, keys = pair(seq, "seq")
    rows, columns = -(-queries // high), -(-keys // wide)
    if indptr.numel() != rows + 1:
        raise ArgumentError(
            f"indptr has {indptr.numel()} elements, and not {rows + 1}: one more than {queries} queries have block rows of {high}"
        )
    counts = (indptr[1:] - indptr[:-1]).long()
    row = torch.repeat_interleave(torch.arange(rows, device=indptr.device), counts, output_size=indices.numel())
    places = (row * columns + indices.long()).sort().values
    return BlockLayout(indptr.int(), (places % max(columns, 1)).int(), (high, wide), (queries, keys))


def from_block_tensors(
    counts: torch.Tensor,
    indices: torch.Tensor,
    block: Extent,
    seq: Extent,
    *,
    full_counts: torch.Tensor | None = None,
    full_indices: torch.Tensor | None = None,
) -> BlockLayout:
    """Of lists of blocks, as FlashAttention and FlexAttention have them.

    counts: (batch, heads, rows), how many of the `indices`, (batch, heads, rows, places), of each block row are its blocks of keys, in
    any order. full_counts, full_indices: more blocks, which these call full. What the others hide within blocks is up to attention's
    own rules. On a GPU nothing is waited for: memory is taken for all places.
    """
    (high, wide), (queries, keys) = pair(block, "block"), pair(seq, "seq")
    rows, columns = -(-queries // high), -(-keys // wide)
    lists = [(counts, indices)]
    if full_counts is not None and full_indices is not None:
        lists.append((full_counts, full_indices))
    for count, index in lists:
        if index.dim() != 4 or index.shape[2] != rows or count.shape != index.shape[:3] or index.shape[:2] != indices.shape[:2]:
            raise ArgumentError(
                f"lists of blocks of shapes {tuple(count.shape)} and {tuple(index.shape)} are not (batch, heads, {rows}) and "
                f"(batch, heads, {rows}, places), for {queries} queries in blocks of {high}"
            )
    named = [torch.where(torch.arange(index.shape[3], device=index.device) < count[..., None], index, -1) for count, index in lists]
    every = torch.cat(named, -1).int()
    crow, col = _chosen.listed(every.reshape(-1, every.shape[-1]), columns)
    return BlockLayout(crow, col, (high, wide), (queries, keys), batch=every.shape[0], heads=every.shape[1])


def from_block_mask(
    block_mask: Any,
    *,
    causal: bool = False,
    window: tuple[int | None, int | None] = (None, None),
    align_ends: bool = False,
    check: bool = True,
    bits: bool = False,
) -> BlockLayout:
    """The blocks of a BlockMask of FlexAttention.

    Its function of queries and keys is not run by attention. What it hides within blocks has to be a rule that attention has:
    give that here, and to attention too. check: compares the layout and the rule with the function, for all queries and keys at
    once, and raises ArgumentError where they differ; without it, on a GPU nothing is waited for.
    bits: any function is served, without rules: it is run once, for the pairs of the blocks that the BlockMask has as partial
    ones, and bits say what it shows there. Nothing is compared then. On a GPU it waits for their number.
    """
    found = from_block_tensors(
        block_mask.kv_num_blocks,
        block_mask.kv_indices,
        tuple(block_mask.BLOCK_SIZE),
        tuple(block_mask.seq_lengths),
        full_counts=block_mask.full_kv_num_blocks,
        full_indices=block_mask.full_kv_indices,
    )
    if bits:
        if causal or window != (None, None):
            raise ArgumentError("bits=True has all that the BlockMask's function hides: causal and window are for a layout without bits")
        found.bits = _partial_bits(block_mask, found)
    elif check:
        left, right = rules_of(causal, window)
        queries, keys = found.seq
        _require_same(found, block_mask, left, right, keys - queries if align_ends else 0)
    return found


def _partial_bits(block_mask: Any, layout: BlockLayout) -> tuple[torch.Tensor, torch.Tensor] | None:
    """What the function shows in the blocks that the BlockMask does not have as full."""
    partial = from_block_tensors(block_mask.kv_num_blocks, block_mask.kv_indices, layout.block, layout.seq)
    (high, wide), (queries, keys), device = layout.block, layout.seq, layout.col.device

    def seen(places: _bits.Places) -> torch.Tensor:
        of_layout, row, column = places
        # Of pairs behind the ends, which nothing reads, those of the last query and key.
        query = (row[:, None] * high + torch.arange(high, device=device)).clamp(max=queries - 1)
        key = (column[:, None] * wide + torch.arange(wide, device=device)).clamp(max=keys - 1)
        shows = torch.vmap(block_mask.mask_mod, in_dims=(None, None, None, 0))
        shows = torch.vmap(torch.vmap(shows, in_dims=(None, None, 0, None)), in_dims=(0, 0, 0, 0))
        return torch.as_tensor(shows(of_layout // layout.heads, of_layout % layout.heads, query, key))

    return _bits.of_blocks(partial.mask().flatten(0, 1), seen)


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
