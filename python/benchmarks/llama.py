# SPDX-License-Identifier: Apache-2.0
"""A decoder of Llama's shape with random weights: RMSNorm, rotary positions, attention, and an MLP with a gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


@dataclass(frozen=True)
class Shape:
    width: int = 2048
    hidden: int = 5504
    layers: int = 24
    heads: int = 16
    vocabulary: int = 32000


class Mlp(nn.Module):
    """Its gate and what that is multiplied with are one layer, as in programs that serve models."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.both = nn.Linear(shape.width, 2 * shape.hidden, bias=False)
        self.down = nn.Linear(shape.hidden, shape.width, bias=False)

    def forward(self, x: Any) -> Any:
        gate, up = self.both(x).chunk(2, -1)
        return self.down(F.silu(gate) * up)


class Block(nn.Module):
    """One layer. cache: keys and values of all tokens, (2, batch, heads, tokens, width of a head); at: the new token's place there, (1)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.first, self.second = nn.RMSNorm(shape.width), nn.RMSNorm(shape.width)
        self.qkv = nn.Linear(shape.width, 3 * shape.width, bias=False)
        self.out = nn.Linear(shape.width, shape.width, bias=False)
        self.mlp: nn.Module = Mlp(shape)

    def forward(self, x: Any, cosine: Any, sine: Any, cache: Any = None, at: Any = None) -> Any:
        q, k, v = self.qkv(self.first(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        q, k = rotated(q, cosine, sine), rotated(k, cosine, sine)
        if cache is not None:
            cache.index_copy_(3, at, torch.stack([k, v]))
            k, v = cache[0], cache[1]
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.mlp(self.second(x))


def rotated(x: Any, cosine: Any, sine: Any) -> Any:
    left, right = x.chunk(2, -1)
    return torch.cat([left * cosine - right * sine, right * cosine + left * sine], -1)


class Model(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)

    def positions(self, start: int, count: int) -> tuple[Any, Any]:
        weight = self.embedding.weight
        half = self.shape.width // self.shape.heads // 2
        rates = 10000 ** (-torch.arange(half, device=weight.device) / half)
        angles = torch.arange(start, start + count, device=weight.device)[:, None] * rates
        return angles.cos().to(weight.dtype), angles.sin().to(weight.dtype)

    def forward(self, tokens: Any, positions: tuple[Any, Any], caches: Any = None, at: Any = None) -> Any:
        x = self.embedding(tokens)
        for layer, block in enumerate(self.blocks):
            x = block(x, *positions, None if caches is None else caches[layer], at)
        return self.head(self.norm(x))
