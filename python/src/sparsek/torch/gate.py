# SPDX-License-Identifier: Apache-2.0
"""Gates: scores of blocks of queries by keys, of which attention has the highest."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from ..errors import ArgumentError
from . import layouts
from ._kept_masks import kept_mask
from ._pool import pool_rows
from .block_layout import BlockLayout, pair

__all__ = ["LearnableTopKGate", "block_mass", "choose_blocks", "local_scores", "mean_pool_scores", "random_scores"]

Extent = int | tuple[int, int]


def _pooled(x: torch.Tensor, block: int) -> torch.Tensor:
    """The mean, the maximum and the minimum of each block: (batch, heads, blocks, 3 D) of float32."""
    return pool_rows(x.detach(), block).float()


def _mean(x: torch.Tensor, block: int) -> torch.Tensor:
    return _pooled(x, block)[..., : x.shape[-1]]


def _hidden(q: torch.Tensor, k: torch.Tensor, block: Extent, causal: bool) -> torch.Tensor:
    """The blocks, (rows, columns), of which no query sees a key."""
    seq = (q.shape[-2], k.shape[-2])
    shape = (seq, pair(block, "block"), causal)
    return kept_mask(("hidden", *shape), q.device, lambda: ~layouts.Blocks(seq, block, q.device).window(None, 0 if causal else None))


def _always(seq: Extent, block: Extent, sinks: int, device: torch.device) -> torch.Tensor:
    """The blocks of the diagonal and of the first keys."""

    def make() -> torch.Tensor:
        blocks = layouts.Blocks(seq, block, device)
        return blocks.window(0, 0) | (blocks.first_key < sinks)

    return kept_mask(("always", pair(seq, "seq"), pair(block, "block"), sinks), device, make)


def _require_heads(q: torch.Tensor, k: torch.Tensor) -> int:
    if q.dim() != 4 or k.dim() != 4 or q.shape[1] % k.shape[1]:
        raise ArgumentError(
            f"q of shape {tuple(q.shape)} and k of {tuple(k.shape)} are not (batch, heads, sequence, head size) of attention"
        )
    return int(q.shape[1] // k.shape[1])


def choose_blocks(
    scores: torch.Tensor,
    block: Extent,
    seq: Extent,
    *,
    count: int | None = None,
    threshold: float | None = None,
    causal: bool = True,
    sinks: int = 1,
) -> BlockLayout:
    """The layout of the highest scores (batch, heads, rows, columns).

    `count` blocks of each block row, or all with a probability of `threshold` or more, that of the softmax of a row. Blocks of
    the first `sinks` keys and of the diagonal are always among them. On a GPU nothing is waited for; with a threshold, memory is
    taken for the index of all blocks.
    No gradient flows through the choice.
    """
    if (count is None) == (threshold is None):
        raise ArgumentError("blocks are chosen by a count or by a threshold: give one of them")
    kept = _always(seq, block, sinks, scores.device)
    if count is not None:
        return BlockLayout.from_scores(scores, block, seq, count=count, causal=causal, keep=kept)
    mask = (scores.detach().softmax(-1) >= threshold) | kept
    if causal:
        mask &= layouts.Blocks(seq, block, scores.device).window(None, 0)
    return BlockLayout.from_mask(mask, block, seq, most=mask.numel())


def block_mass(
    q: torch.Tensor, k: torch.Tensor, block: Extent, *, causal: bool = True, scale: float | None = None, reduce: str = "mean"
) -> torch.Tensor:
    """How much of dense attention's weights is in each block: (batch, query heads, rows, columns) of float32; a row sums to 1.

    reduce: over the queries of a block, their "mean", or the "max", which a single query reaches, divided by the row's sum. One
    block row is computed at a time: the weights of all queries never lie in memory.
    """
    if reduce not in ("mean", "max"):
        raise ArgumentError(f"reduce={reduce!r} is neither mean nor max")
    group, (high, wide) = _require_heads(q, k), pair(block, "block")
    queries, keys = q.shape[-2], k.shape[-2]
    by_key = k.detach().float().repeat_interleave(group, 1).transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    rows = []
    for start in range(0, queries, high):
        scores = q[:, :, start : start + high].detach().float() @ by_key
        if causal:
            places = torch.arange(start, start + scores.shape[-2], device=q.device)
            scores = scores.masked_fill(torch.arange(keys, device=q.device) > places[:, None], -torch.inf)
        weights = torch.nn.functional.pad(scores.softmax(-1), (0, -keys % wide)).unflatten(-1, (-1, wide)).sum(-1)
        mass = weights.mean(-2) if reduce == "mean" else weights.amax(-2)
        rows.append(mass / mass.sum(-1, keepdim=True))
    return torch.stack(rows, 2)


def mean_pool_scores(q: torch.Tensor, k: torch.Tensor, block: Extent, *, causal: bool = True) -> torch.Tensor:
    """The products of the means of blocks: a gate without parameters."""
    group, (high, wide) = _require_heads(q, k), pair(block, "block")
    scores = _mean(q, high) @ _mean(k, wide).repeat_interleave(group, 1).transpose(-1, -2) * q.shape[-1] ** -0.5
    return scores.masked_fill(_hidden(q, k, block, causal), -torch.inf)


def random_scores(
    q: torch.Tensor, k: torch.Tensor, block: Extent, *, causal: bool = True, generator: torch.Generator | None = None
) -> torch.Tensor:
    """By chance."""
    hidden = _hidden(q, k, block, causal)
    made = torch.rand(*q.shape[:2], *hidden.shape, generator=generator, device=q.device if generator is None else generator.device)
    return made.to(q.device).masked_fill(hidden, -torch.inf)


def local_scores(q: torch.Tensor, k: torch.Tensor, block: Extent, *, causal: bool = True) -> torch.Tensor:
    """The nearer the keys of a block are to its queries, the higher."""
    hidden, (high, wide) = _hidden(q, k, block, causal), pair(block, "block")
    rows, columns = (torch.arange(extent, device=q.device) for extent in hidden.shape)
    away = (columns * wide + wide / 2) - (rows[:, None] * high + high / 2)
    return (-away.abs()).masked_fill(hidden, -torch.inf).expand(*q.shape[:2], -1, -1)


class LearnableTopKGate(nn.Module):
    """Scores of blocks by maps of pooled queries and keys, and the layout of the highest.

    Each block of queries and of keys is pooled to the mean, the maximum and the minimum of its elements; a map of each head makes
    `width` numbers of these, and a score is the product of a query's and a key's. Maps are linear, or have `hidden` units with
    GELU, by which they can tell what is among the rows of a block from what is not. Scores are of float32.
    count, threshold, causal and sinks: see choose_blocks. Choosing passes no gradient: the gate learns by `loss`, beside a
    model that is trained or frozen, or by one of the estimators of `estimated_attention`.
    """

    def __init__(
        self,
        heads_q: int,
        heads_k: int,
        head_size: int,
        block: Extent,
        *,
        count: int | None = None,
        threshold: float | None = None,
        width: int | None = None,
        hidden: int | None = None,
        causal: bool = True,
        sinks: int = 1,
    ) -> None:
        super().__init__()
        if heads_q % heads_k:
            raise ArgumentError(f"{heads_q} heads of queries are no multiple of {heads_k} heads of keys")
        if (count is None) == (threshold is None):
            raise ArgumentError("blocks are chosen by a count or by a threshold: give one of them")
        if hidden is not None and hidden < 1:
            raise ArgumentError(f"hidden={hidden}: maps have at least one hidden unit, or None")
        self.block, self.count, self.threshold, self.causal, self.sinks = pair(block, "block"), count, threshold, causal, sinks
        self.head_size, self.width, self.hidden = head_size, width or head_size, hidden
        if hidden is not None:
            self.hidden_q = nn.Parameter(torch.empty(heads_q, 3 * head_size, hidden))
            self.hidden_k = nn.Parameter(torch.empty(heads_k, 3 * head_size, hidden))
            self.bias_q, self.bias_k = nn.Parameter(torch.empty(heads_q, 1, hidden)), nn.Parameter(torch.empty(heads_k, 1, hidden))
        self.of_q = nn.Parameter(torch.empty(heads_q, hidden or 3 * head_size, self.width))
        self.of_k = nn.Parameter(torch.empty(heads_k, hidden or 3 * head_size, self.width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets linear maps so that scores are near those of mean pooling: of means, queries and keys have the same random map.

        Maps with hidden units are random: they choose nothing of use before they have learnt.
        """
        size = self.head_size
        with torch.no_grad():
            if self.hidden is not None:
                for name in ("q", "k"):
                    getattr(self, f"hidden_{name}").normal_(std=(3 * size) ** -0.5)
                    getattr(self, f"bias_{name}").zero_()
                    getattr(self, f"of_{name}").normal_(std=self.hidden**-0.5)
                return
            for weight in (self.of_q, self.of_k):
                weight.normal_(std=0.1 * weight.shape[1] ** -0.5)
            same = torch.randn_like(self.of_k[:, :size]) * (2 * self.width**-0.5)
            self.of_k[:, :size] += same
            self.of_q[:, :size] += same.repeat_interleave(self.of_q.shape[0] // same.shape[0], 0)

    def _map(self, name: str, x: torch.Tensor, block: int) -> torch.Tensor:
        """(batch, heads, blocks, width) of queries or keys."""
        pooled = _pooled(x, block)
        if self.hidden is not None:
            pooled = functional.gelu(pooled @ getattr(self, f"hidden_{name}").float() + getattr(self, f"bias_{name}").float())
        return pooled @ getattr(self, f"of_{name}").float()

    def forward(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        """The scores of blocks, (batch, query heads, rows, columns): -inf where no query sees a key.

        q: (batch, query heads, queries, head size), k: (batch, key heads, keys, head size). Both are taken as they are: no gradient
        reaches them.
        """
        group, (high, wide) = _require_heads(q, k), self.block
        of_q, of_k = self._map("q", q, high), self._map("k", k, wide)
        # Query heads that share a key head are rows of one product, so that no key is copied.
        shared = (of_q * self.width**-0.5).unflatten(1, (-1, group)).flatten(2, 3)
        scores = (shared @ of_k.transpose(-1, -2)).unflatten(2, (group, -1)).flatten(1, 2)
        return scores.masked_fill(_hidden(q, k, self.block, True), -torch.inf) if self.causal else scores

    def layout(self, q: torch.Tensor, k: torch.Tensor, scores: torch.Tensor | None = None) -> BlockLayout:
        """The blocks that attention of these is to have. scores: those of `forward`, where they are known."""
        made = self(q, k) if scores is None else scores
        seq = (q.shape[-2], k.shape[-2])
        return choose_blocks(made, self.block, seq, count=self.count, threshold=self.threshold, causal=self.causal, sinks=self.sinks)

    def loss(self, q: torch.Tensor, k: torch.Tensor, mass: torch.Tensor | None = None, scores: torch.Tensor | None = None) -> torch.Tensor:
        """The mean over block rows of KL(mass, softmax of scores): what the gate is distilled by.

        mass: of block_mass; None: that of q and k.
        """
        made = self(q, k) if scores is None else scores
        teacher = block_mass(q, k, self.block, causal=self.causal) if mass is None else mass
        log = made.log_softmax(-1).masked_fill(made == -torch.inf, 0)
        return (torch.xlogy(teacher, teacher) - teacher * log).sum(-1).mean()

    def extra_repr(self) -> str:
        """How it chooses."""
        chosen: dict[str, Any] = {"count": self.count, "threshold": self.threshold}
        said = ", ".join(f"{name}={value}" for name, value in chosen.items() if value is not None)
        inner = "" if self.hidden is None else f", hidden={self.hidden}"
        return f"block={self.block}, {said}, width={self.width}{inner}, causal={self.causal}, sinks={self.sinks}"
