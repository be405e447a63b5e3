# SPDX-License-Identifier: Apache-2.0
"""Between dense matrices, masks of blocks, and blocks with their index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .._extents import extents
from ..errors import ArgumentError

__all__ = ["block_mask", "block_scores", "from_blocks", "index_from_mask", "index_from_scores", "to_blocks"]

Score = str | Callable[[torch.Tensor], torch.Tensor]

_SCORES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "l2": lambda blocks: blocks.float().square().sum((-2, -1)).sqrt(),
    "l1": lambda blocks: blocks.float().abs().sum((-2, -1)),
    "max": lambda blocks: blocks.float().abs().amax((-2, -1)),
}


def index_from_mask(mask: torch.Tensor, dtype: torch.dtype = torch.int32) -> tuple[torch.Tensor, torch.Tensor]:
    """crow (R + 1) and col (nnzb) of the blocks that a mask (R, C) of bool has."""
    if mask.dim() != 2 or mask.dtype != torch.bool:
        raise ArgumentError(f"a mask of blocks has two dimensions and is of bool: not {tuple(mask.shape)} of {mask.dtype}")
    crow = torch.zeros(mask.shape[0] + 1, dtype=dtype, device=mask.device)
    crow[1:] = mask.sum(1).cumsum(0)
    return crow, mask.nonzero()[:, 1].to(dtype)


def index_from_scores(
    scores: torch.Tensor, count: int, *, each_row: bool = False, dtype: torch.dtype = torch.int32
) -> tuple[torch.Tensor, torch.Tensor]:
    """crow (R + 1) and col of the `count` blocks with the highest scores (R, C), of all or of each block row.

    Made where the scores lie: on a GPU nothing is waited for, so patterns may change with each step. Of equal scores the
    first are taken.
    """
    if scores.dim() != 2 or not 0 <= count <= (scores.shape[1] if each_row else scores.numel()):
        raise ArgumentError(f"{count} blocks cannot be chosen by scores of shape {tuple(scores.shape)}")
    rows, cols = scores.shape
    order = (scores if each_row else scores.flatten()).argsort(dim=-1, descending=True, stable=True)[..., :count].sort(-1).values
    if each_row:
        return torch.arange(rows + 1, dtype=dtype, device=scores.device) * count, order.flatten().to(dtype)
    starts = torch.arange(rows + 1, device=scores.device) * cols
    return torch.searchsorted(order, starts).to(dtype), (order % max(cols, 1)).to(dtype)


def mask_from_index(crow: torch.Tensor, col: torch.Tensor, columns: int) -> torch.Tensor:
    """The mask (R, columns) of an index. col may be longer than crow says."""
    mask = torch.zeros(crow.numel() - 1, columns, dtype=torch.bool, device=crow.device)
    rows = _rows_of(crow)
    mask[rows, col[: rows.numel()].long()] = True
    return mask


def _rows_of(crow: torch.Tensor) -> torch.Tensor:
    """The block row of each block: (nnzb)."""
    counts = (crow[1:] - crow[:-1]).long()
    return torch.repeat_interleave(torch.arange(counts.numel(), device=crow.device), counts)


def moving(mask: torch.Tensor, crow: torch.Tensor, col: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """What makes of blocks (nnzb, bm, bk) of this index those of a mask: blocks of both stay, others are zero."""
    had = mask_from_index(crow, col, mask.shape[1])
    number = torch.full(tuple(mask.shape), -1, dtype=torch.long, device=col.device)
    number[_rows_of(crow), col.long()] = torch.arange(col.numel(), device=col.device)
    old, kept = number[mask & had], had[mask]

    def moved(blocks: torch.Tensor) -> torch.Tensor:
        made = blocks.new_zeros(kept.numel(), *blocks.shape[1:])
        made[kept] = blocks[old]
        return made

    return moved


def to_blocks(dense: torch.Tensor, block: tuple[int, int]) -> torch.Tensor:
    """All blocks of a matrix (M, K): (ceil(M/bm), ceil(K/bk), bm, bk), with zeros beyond it."""
    if dense.dim() != 2:
        raise ArgumentError(f"a matrix of shape {tuple(dense.shape)} has no blocks: give one of two dimensions")
    (rows, cols), (bm, bk) = dense.shape, extents(block, "block", "rows", "columns")
    if bm < 1 or bk < 1:
        raise ArgumentError(f"a block of {bm}x{bk} does not exist")
    down, across = -(-rows // bm), -(-cols // bk)
    if rows % bm or cols % bk:
        dense = torch.nn.functional.pad(dense, (0, across * bk - cols, 0, down * bm - rows))
    return dense.reshape(down, bm, across, bk).transpose(1, 2)


def from_blocks(values: torch.Tensor, crow: torch.Tensor, col: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    """The dense matrix (M, K) of these blocks, zero elsewhere. Gradients flow through it."""
    rows, cols = size
    _, bm, bk = values.shape
    down, across = crow.numel() - 1, -(-cols // bk)
    full = values.new_zeros(down * across, bm, bk).index_copy(0, _rows_of(crow) * across + col.long(), values)
    return full.reshape(down, across, bm, bk).transpose(1, 2).reshape(down * bm, across * bk)[:rows, :cols]


def block_scores(dense: torch.Tensor, block: tuple[int, int], score: Score = "l2") -> torch.Tensor:
    """How much each block of a matrix (M, K) matters: (ceil(M/bm), ceil(K/bk)).

    score: "l2", "l1" or "max" of the elements, or a function of blocks (..., bm, bk) that returns (...).
    """
    return scores_of(to_blocks(dense.detach(), block), score)


def scores_of(blocks: torch.Tensor, score: Score) -> torch.Tensor:
    """The scores (...) of blocks (..., bm, bk)."""
    found: Any = score if callable(score) else _SCORES.get(score)
    if found is None:
        raise ArgumentError(f"score={score!r} is none of {', '.join(_SCORES)}, and no function")
    return found(blocks)


def block_mask(scores: torch.Tensor, density: float) -> torch.Tensor:
    """The mask of the blocks with the highest scores, (R, C): density of all, but at least one.

    Of blocks with equal scores the first ones are taken.
    """
    if not 0 < density <= 1:
        raise ArgumentError(f"density={density} is not above 0 and at most 1")
    return highest(scores, max(1, round(density * scores.numel()))) if scores.numel() else scores.bool()


def highest(scores: torch.Tensor, count: int) -> torch.Tensor:
    """The mask of so many highest scores."""
    mask = torch.zeros(scores.numel(), dtype=torch.bool, device=scores.device)
    mask[scores.flatten().argsort(descending=True, stable=True)[:count]] = True
    return mask.reshape(scores.shape)
