# SPDX-License-Identifier: Apache-2.0
"""Which rank has which blocks of the features between two layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ...errors import ArgumentError
from ..modules import BsrLinear

__all__ = ["Deal", "deal_blocks"]


@dataclass(frozen=True)
class Deal:
    """Blocks of features, dealt to ranks.

    block: features a block. blocks: the numbers of each rank's blocks, in ascending order, as many for each rank.
    """

    block: int
    blocks: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        numbers = sorted(number for own in self.blocks for number in own)
        equal = len({len(own) for own in self.blocks}) == 1
        if self.block < 1 or not equal or numbers != list(range(len(numbers))) or any(list(own) != sorted(own) for own in self.blocks):
            raise ArgumentError("a deal gives each block to one rank, as many to each, in ascending order")

    @property
    def ranks(self) -> int:
        """How many ranks share the blocks."""
        return len(self.blocks)

    @property
    def count(self) -> int:
        """Blocks of all ranks."""
        return sum(map(len, self.blocks))

    def owner(self) -> torch.Tensor:
        """The rank that has each block: (count), of int64."""
        found = torch.empty(self.count, dtype=torch.long)
        for rank, own in enumerate(self.blocks):
            found[list(own)] = rank
        return found

    def features(self, rank: int) -> torch.Tensor:
        """The numbers of the features that a rank has, in the order in which it has them: (count / ranks * block), of int64."""
        own = torch.tensor(self.blocks[rank], dtype=torch.long)
        return (own[:, None] * self.block + torch.arange(self.block)).flatten()


def even(features: int, block: int, ranks: int) -> Deal:
    """The deal that gives each rank a range. Raises ArgumentError where the features are no multiple of blocks and ranks."""
    if features % (block * ranks):
        raise ArgumentError(
            f"{features} features in blocks of {block} cannot be dealt evenly to {ranks} ranks: give a multiple of {block * ranks}"
        )
    each = features // block // ranks
    return Deal(block, tuple(tuple(range(rank * each, (rank + 1) * each)) for rank in range(ranks)))


def deal_blocks(rows: BsrLinear | Sequence[BsrLinear], columns: BsrLinear | Sequence[BsrLinear], ranks: int) -> Deal:
    """Deals the features between layers so that all ranks have as many blocks of them and nearly as many nonzero blocks of weights.

    rows: the layers that compute these features, whose block rows are dealt (of an MLP the first, or the gate and the first).
    columns: the layers that read them, whose block columns are dealt. A layer in between must treat each feature alike, as
    activations do: the features' order on the ranks is not that of the whole layer.

    Raises ArgumentError where the layers do not agree about the features and their blocks, or the blocks cannot be shared evenly.
    """
    above = [rows] if isinstance(rows, BsrLinear) else list(rows)
    below = [columns] if isinstance(columns, BsrLinear) else list(columns)
    sides = {(layer.out_features, layer.block[0]) for layer in above} | {(layer.in_features, layer.block[1]) for layer in below}
    if len(sides) != 1:
        raise ArgumentError(f"the layers do not have the same features in the same blocks, but (features, block) of {sorted(sides)}")
    features, block = sides.pop()
    shares = even(features, block, ranks)
    weights = torch.zeros(shares.count, dtype=torch.long)
    for layer in above:
        weights += layer.mask.sum(1).cpu()
    for layer in below:
        weights += layer.mask.sum(0).cpu()
    owned = _balanced(weights.numpy(), ranks)
    return Deal(block, tuple(tuple(int(number) for number in np.flatnonzero(owned == rank)) for rank in range(ranks)))


def _balanced(weights: np.ndarray[Any, Any], ranks: int) -> np.ndarray[Any, Any]:
    """The rank of each weight: as many to each, sums nearly equal. The heaviest go first, then pairs change places."""
    each = len(weights) // ranks
    owner = np.empty(len(weights), np.int64)
    sums, left = np.zeros(ranks, np.int64), np.full(ranks, each)
    for number in np.argsort(-weights, kind="stable"):
        rank = int(np.argmin(np.where(left > 0, sums, np.iinfo(np.int64).max)))
        owner[number] = rank
        sums[rank] += weights[number]
        left[rank] -= 1
    for _ in range(10 * ranks):
        high, low = int(np.argmax(sums)), int(np.argmin(sums))
        gap = sums[high] - sums[low]
        first, second = np.flatnonzero(owner == high), np.flatnonzero(owner == low)
        moved = weights[first][:, None] - weights[second]
        off = np.abs(gap - 2 * moved)
        best = np.unravel_index(off.argmin(), off.shape) if off.size else None
        if best is None or off[best] >= gap:
            break
        owner[first[best[0]]], owner[second[best[1]]] = low, high
        sums[high] -= moved[best]
        sums[low] += moved[best]
    return owner
