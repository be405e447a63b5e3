# SPDX-License-Identifier: Apache-2.0
"""Which blocks of queries by keys attention has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch

from ..errors import ArgumentError
from . import _bits, _chosen
from ._kept_masks import kept_mask
from .blocks import index_from_mask, mask_from_index

__all__ = ["BlockLayout"]


class BlockLayout:
    """The blocks that attention has, as an index on any device.

    crow: where each block row begins: ceil(queries / block[0]) of them for each of `batch` times `heads` layouts, one after the
    other. col: the block of keys of each block, increasing within a block row. block: queries and keys of a block. seq: queries and keys.
    batch: 1, one for all batches, or as many as these. heads: 1, one for all heads, or any divisor of the query heads, of which
    as many one after the other share a layout. On a GPU, col may be longer than crow says.
    bits: (index, words), which pairs of a block see each other, for blocks of which not all do; None: all do in all blocks. index,
    (batch * heads * block rows, block columns) of int32, has the number of each block's words, and -1 of a block without. words:
    (numbers, block[0], ceil(block[1] / 32)) of int32, key j of a block in bit j % 32 of word j // 32.
    """

    def __init__(
        self,
        crow: torch.Tensor,
        col: torch.Tensor,
        block: tuple[int, int],
        seq: tuple[int, int],
        *,
        batch: int = 1,
        heads: int = 1,
        bits: tuple[torch.Tensor, torch.Tensor] | None = None,
    ) -> None:
        self.crow, self.col, self.block, self.seq = crow, col, block, seq
        self.batch, self.heads, self.bits = batch, heads, bits
        rows = batch * heads * self.shape[0]
        if crow.dim() != 1 or col.dim() != 1 or crow.numel() != rows + 1:
            raise ArgumentError(
                f"crow and col of shapes {tuple(crow.shape)} and {tuple(col.shape)} are not ({rows + 1},), for {batch} x {heads} layouts "
                f"of {self.shape[0]} block rows, and one dimension"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Block rows and block columns of one layout."""
        return -(-self.seq[0] // self.block[0]), -(-self.seq[1] // self.block[1])

    @staticmethod
    def from_mask(
        mask: torch.Tensor, block: int | tuple[int, int], seq: int | tuple[int, int] | None = None, *, most: int | None = None
    ) -> BlockLayout:
        """Of a mask of blocks, (rows, columns), (heads, rows, columns) or (batch, heads, rows, columns), of bool.

        seq: queries and keys; None: as many as the blocks have. most: the most blocks that there are. On a GPU, None waits for their
        number; else nothing is waited for, memory is taken for so many, and where there are more, attention raises IndexFault.
        """
        high, wide = pair(block, "block")
        if not 2 <= mask.dim() <= 4 or mask.dtype != torch.bool:
            raise ArgumentError(f"a mask of blocks has two to four dimensions and is of bool: not {tuple(mask.shape)} of {mask.dtype}")
        rows, columns = mask.shape[-2:]
        queries, keys = (rows * high, columns * wide) if seq is None else pair(seq, "seq")
        if (-(-queries // high), -(-keys // wide)) != (rows, columns):
            raise ArgumentError(f"{queries} queries and {keys} keys do not have {rows} x {columns} blocks of {high} x {wide}")
        flat = mask.reshape(-1, columns)
        crow, col = index_from_mask(flat) if most is None else _chosen.masked(flat, min(most, flat.numel()))
        batch = mask.shape[0] if mask.dim() == 4 else 1
        heads = mask.shape[-3] if mask.dim() > 2 else 1
        return BlockLayout(crow, col, (high, wide), (queries, keys), batch=batch, heads=heads)

    @staticmethod
    def from_dense_mask(mask: torch.Tensor, block: int | tuple[int, int]) -> BlockLayout:
        """Of which keys queries see, (queries, keys), (heads, queries, keys) or (batch, heads, queries, keys) of bool.

        It has the blocks in which some query sees some key, and bits of those in which not all do. On a GPU it waits for their
        numbers.
        """
        high, wide = pair(block, "block")
        if not 2 <= mask.dim() <= 4 or mask.dtype != torch.bool:
            raise ArgumentError(f"a mask of keys has two to four dimensions and is of bool: not {tuple(mask.shape)} of {mask.dtype}")
        queries, keys = mask.shape[-2:]
        seen = _bits.in_blocks(mask, (high, wide), beyond=False)
        some, every = seen.any(-1).any(-1), _bits.in_blocks(mask, (high, wide), beyond=True).all(-1).all(-1)
        found = BlockLayout.from_mask(some.reshape(*mask.shape[:-2], *some.shape[1:]), (high, wide), (queries, keys))
        found.bits = _bits.of_blocks(some & ~every, lambda places: seen[places])
        return found

    @staticmethod
    def from_scores(
        scores: torch.Tensor,
        block: int | tuple[int, int],
        seq: int | tuple[int, int] | None = None,
        *,
        count: int,
        causal: bool = False,
        align_ends: bool = False,
        keep: torch.Tensor | None = None,
    ) -> BlockLayout:
        """Of the `count` blocks of each block row with the highest scores, (rows, columns), with heads or batch and heads before.

        causal: only blocks that have a key which is not behind some query of theirs; rows with fewer of these have them all.
        keep: a mask (rows, columns) of blocks that are taken before others. Of equal scores the first are taken, and a NaN is as inf.
        On a GPU nothing is waited for. No gradient flows through the choice.
        """
        if not 2 <= scores.dim() <= 4 or count < 1:
            raise ArgumentError(f"{count} blocks of each block row cannot be chosen by scores of shape {tuple(scores.shape)}")
        high, wide = pair(block, "block")
        rows, columns = scores.shape[-2:]
        queries, keys = (rows * high, columns * wide) if seq is None else pair(seq, "seq")
        shift = keys - queries if align_ends else 0
        # Scores become finite, so that blocks which are kept or hidden come before or behind all others.
        most = torch.finfo(torch.float32).max
        ranked = scores.detach().float().nan_to_num(nan=most, posinf=most, neginf=-most)
        if keep is not None:
            ranked.masked_fill_(keep, torch.inf)
        taken = rows * min(count, columns)
        if causal:
            sizes = (rows, columns, high, wide, queries, shift)
            ranked.masked_fill_(kept_mask(("behind", *sizes), scores.device, lambda: _behind(*sizes, scores.device)), -torch.inf)
            taken = _most_taken(*sizes, count)
        batch, heads = (scores.shape[0] if scores.dim() == 4 else 1), (scores.shape[-3] if scores.dim() > 2 else 1)
        crow, col = _chosen.highest(ranked.reshape(-1, columns), min(count, columns), batch * heads * taken)
        return BlockLayout(crow, col, (high, wide), (queries, keys), batch=batch, heads=heads)

    def _together(self, other: BlockLayout) -> None:
        if (self.block, self.seq) != (other.block, other.seq):
            raise ArgumentError(f"{self} and {other} do not have the same blocks and lengths")

    def __or__(self, other: BlockLayout) -> BlockLayout:
        """What either has."""
        self._together(other)
        if self.bits is not None or other.bits is not None:
            return BlockLayout.from_dense_mask(self.dense_mask() | other.dense_mask(), self.block)
        return BlockLayout.from_mask(self.mask() | other.mask(), self.block, self.seq)

    def __and__(self, other: BlockLayout) -> BlockLayout:
        """What both have."""
        self._together(other)
        if self.bits is not None or other.bits is not None:
            return BlockLayout.from_dense_mask(self.dense_mask() & other.dense_mask(), self.block)
        return BlockLayout.from_mask(self.mask() & other.mask(), self.block, self.seq)

    def mask(self) -> torch.Tensor:
        """The mask of its blocks, (batch, heads, rows, columns)."""
        return mask_from_index(self.crow, self.col, self.shape[1]).reshape(self.batch, self.heads, *self.shape)

    def dense_mask(self, heads: int | None = None) -> torch.Tensor:
        """Which keys queries see, (batch, heads, queries, keys), as torch's scaled_dot_product_attention has it.

        heads: of the queries; None: those of the layout.
        """
        if self.bits is not None:
            seen = self.mask()[..., None, None] & _bits.unpacked(*self.bits, self.block[1]).unflatten(0, (self.batch, self.heads, -1))
            whole = seen.transpose(3, 4).flatten(4, 5).flatten(2, 3)[..., : self.seq[0], : self.seq[1]]
            return whole if heads is None else whole.repeat_interleave(heads // self.heads, 1)
        whole = self.mask().repeat_interleave(self.block[0], 2).repeat_interleave(self.block[1], 3)[..., : self.seq[0], : self.seq[1]]
        return whole if heads is None else whole.repeat_interleave(heads // self.heads, 1)

    @property
    def density(self) -> float:
        """The share of blocks that there are. On a GPU it waits for them."""
        every = self.batch * self.heads * self.shape[0] * self.shape[1]
        return self.count / every if every else 0.0

    @property
    def count(self) -> int:
        """How many blocks there are. On a GPU it waits for them."""
        return int(self.crow[-1])

    def to(self, device: torch.device | str) -> BlockLayout:
        """The same on another device. Of a GPU's, on the CPU there are as many columns as blocks."""
        col = self.col[: self.count] if torch.device(device).type == "cpu" else self.col
        bits = None if self.bits is None else (self.bits[0].to(device), self.bits[1].to(device))
        return BlockLayout(self.crow.to(device), col.to(device), self.block, self.seq, batch=self.batch, heads=self.heads, bits=bits)

    def form(self) -> Sequence[int]:
        """The four numbers of torch.ops.sparsek.attention's `layout`."""
        return [*self.block, self.batch, self.heads]

    def __repr__(self) -> str:
        return (
            f"BlockLayout({self.seq[0]}x{self.seq[1]} in {self.block[0]}x{self.block[1]}, {self.count} blocks, "
            f"batch={self.batch}, heads={self.heads})"
        )


def _behind(rows: int, columns: int, high: int, wide: int, queries: int, shift: int, device: torch.device) -> torch.Tensor:
    """The blocks, (rows, columns), all of whose keys are behind the last query's own."""
    row = torch.arange(rows, device=device)[:, None]
    last = ((row + 1) * high).clamp(max=queries) - 1 + shift
    return torch.arange(columns, device=device) * wide > last


@lru_cache(64)
def _most_taken(rows: int, columns: int, high: int, wide: int, queries: int, shift: int, count: int) -> int:
    """`count` blocks of each block row, or as many as are not behind its queries."""
    ends = [min((at + 1) * high, queries) - 1 + shift for at in range(rows)]
    return sum(min(count, columns, max(0, end // wide + 1)) for end in ends)


def pair(given: int | tuple[int, int], what: str) -> tuple[int, int]:
    """Two numbers, for queries and keys, of one for both. what: the argument's name. Raises ArgumentError."""
    if isinstance(given, int):
        return given, given
    try:
        first, second = given
    except (TypeError, ValueError):
        raise ArgumentError(f"{what}={given!r} is neither (queries, keys) nor one number for both") from None
    return first, second
