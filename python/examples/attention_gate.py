# SPDX-License-Identifier: Apache-2.0
"""A gate learns which blocks of attention matter, in associative recall.

Blocks of noise have a pair of a key and a value; later, keys come again, and a model of two layers has to name their values.
It is trained with dense attention, from weights that are near a solution, then frozen. A gate of each layer is distilled: it
learns how dense attention's weights are shared among blocks. Then each query block has four blocks alone, its own and the
first among them, chosen by the gate, by the dense weights themselves (oracle), by means of blocks, by distance or by chance.

    PYTHONPATH=python/src python python/examples/attention_gate.py --seeds 0 1 2
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import sparsek.torch as st
from sparsek.torch import gate as gates

NOISE, KEYS, VALUES = 4, 16, 16
BLOCK, COUNT, WIDTH, HEADS = 16, 4, 64, 2
TIMES = 4  # that a key comes again in a block


def batch_of(size: int, seq: int, generator: torch.Generator, each: int = 1) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Tokens, the places of the keys that come again, and their values.

    The second to the middle block have a pair each, and each block after them has `each` of their keys: each TIMES, and pairs at
    even places.
    """
    blocks = seq // BLOCK
    pairs = blocks // 2 - 1
    tokens = torch.randint(NOISE, (size, seq), generator=generator)
    keys = torch.rand(size, KEYS, generator=generator).argsort(1)[:, :pairs] + NOISE
    values = torch.randint(VALUES, (size, pairs), generator=generator) + NOISE + KEYS
    even = 2 * torch.rand(size, pairs, BLOCK // 2, generator=generator).argsort(-1)[..., :TIMES]
    places = (torch.arange(1, pairs + 1)[:, None] * BLOCK + even).flatten(1)
    tokens.scatter_(1, places, keys.repeat_interleave(TIMES, 1)).scatter_(1, places + 1, values.repeat_interleave(TIMES, 1))
    later = torch.arange(pairs + 1, blocks)
    offsets = torch.rand(size, later.numel(), BLOCK, generator=generator).argsort(-1)[..., : each * TIMES]
    again = (later[:, None] * BLOCK + offsets).flatten(1)
    asked = torch.randint(pairs, (size, later.numel() * each), generator=generator).repeat_interleave(TIMES, 1)
    tokens.scatter_(1, again, keys.gather(1, asked))
    return tokens, again, values.gather(1, asked)


def rotated(x: torch.Tensor) -> torch.Tensor:
    """With rotary positions in the first half of each head: the other half goes by what tokens are alone."""
    turned, still = x.chunk(2, -1)
    half = turned.shape[-1] // 2
    angle = 2 * torch.arange(x.shape[-2])[:, None] * 100.0 ** (-torch.arange(half) / half)
    left, right = turned.chunk(2, -1)
    return torch.cat([left * angle.cos() - right * angle.sin(), left * angle.sin() + right * angle.cos(), still], -1)


Choice = Callable[[int, torch.Tensor, torch.Tensor], st.BlockLayout]


class Layer(nn.Module):
    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor, choose: Choice | None, seen: list[Any] | None) -> torch.Tensor:
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        q, k = rotated(q), rotated(k)
        if seen is not None:
            seen.append((q.detach(), k.detach()))
        if choose is None:
            o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            o = st.attention(q, k, v, choose(self.at, q, k), causal=True)
        return x + self.out(o.transpose(1, 2).flatten(2))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(NOISE + KEYS + VALUES, WIDTH)
        self.layers = nn.ModuleList(Layer(at) for at in range(2))
        self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, NOISE + KEYS + VALUES))

    @torch.no_grad()
    def begin(self) -> None:
        """Starts near a solution, which takes a model of this size thousands of steps to find.

        Tokens lie in the first half of x. In the first layer, a head sees the place before and writes its token to the second
        half. In the second, queries look by their token for keys that have it in the second half, and get these keys' own token.
        """
        size, half = WIDTH // HEADS, WIDTH // 2
        self.embedding.weight[:, half:] *= 0.1
        first, second = self.layers
        for layer in (first, second):
            for weight in layer.parameters():
                if weight.dim() == 2:
                    weight *= 0.3
        before = rotated(torch.ones(2, size))[1, : size // 2]  # by one place
        bias = first.qkv.bias.unflatten(0, (3, HEADS, size))
        bias[:2, 0] = 0
        bias[0, 0, : size // 2], bias[1, 0, : size // 2] = 2.5, 2.5 * before
        first.qkv.weight[2 * WIDTH : 2 * WIDTH + size, :half] += torch.eye(size)
        first.out.weight[half:, :size] += torch.eye(size)
        for head in range(HEADS):
            look = 1.7 * torch.randn(size // 2, half) * half**-0.5
            row = size * head + size // 2  # of what is not rotated
            second.qkv.weight[row : row + size // 2, :half] += look
            second.qkv.weight[WIDTH + row : WIDTH + row + size // 2, half:] += look
            rows = slice(2 * WIDTH + size * head, 2 * WIDTH + size * (head + 1))
            second.qkv.weight[rows, :half] += torch.eye(size)
            second.out.weight[half:, size * head : size * (head + 1)] += torch.eye(size)

    def forward(
        self, tokens: torch.Tensor, places: torch.Tensor, choose: Choice | None = None, seen: list[Any] | None = None
    ) -> torch.Tensor:
        """The logits at these places."""
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, choose, seen)
        return self.head(x.gather(1, places[..., None].expand(-1, -1, WIDTH)))


def train(model: Model, generator: torch.Generator, stages: list[tuple[int, int, int, int]], rate: float = 3e-3) -> None:
    """stages: the length of sequences, how many keys come again in a block, sequences of a step, and steps."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    for seq, each, size, steps in stages:
        began, total = time.monotonic(), 0.0
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.1)
        for step in range(steps):
            tokens, places, values = batch_of(size, seq, generator, each)
            loss = F.cross_entropy(model(tokens, places).flatten(0, 1), values.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
            if (step + 1) % 200 == 0:
                print(f"  {seq} tokens, step {step + 1}: loss {total / 200:.3f} ({time.monotonic() - began:.0f} s)", flush=True)
                total = 0.0


def distil(model: Model, generator: torch.Generator, seq: int, size: int, steps: int) -> nn.ModuleList:
    """A gate of each layer of the model, which stays as it is."""
    made = nn.ModuleList(st.LearnableTopKGate(HEADS, HEADS, WIDTH // HEADS, BLOCK, count=COUNT, width=64, hidden=128) for _ in model.layers)
    optimizer = torch.optim.Adam(made.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=steps, pct_start=0.1)
    for _ in range(steps):
        tokens, places, _ = batch_of(size, seq, generator)
        seen: list[Any] = []
        with torch.no_grad():
            model(tokens, places, seen=seen)
        masses = [st.block_mass(q, k, BLOCK, reduce="max") for q, k in seen]
        loss = sum(gate.loss(q, k, mass) for gate, (q, k), mass in zip(made, seen, masses, strict=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return made


@torch.no_grad()
def accuracies(model: Model, made: nn.ModuleList, generator: torch.Generator, seq: int, size: int) -> dict[str, float]:
    """The share of values that are right, by how blocks are chosen."""

    def by(scores: Callable[..., torch.Tensor]) -> Choice:
        return lambda at, q, k: st.choose_blocks(scores(q, k, BLOCK), BLOCK, seq, count=COUNT)

    choices: dict[str, Choice | None] = {
        "dense": None,
        "oracle": by(lambda *operands: st.block_mass(*operands, reduce="max")),
        "gate": lambda at, q, k: made[at].layout(q, k),
        "mean pooling": by(gates.mean_pool_scores),
        "local": by(gates.local_scores),
        "random": by(gates.random_scores),
    }
    tokens, places, values = batch_of(size, seq, generator)
    return {name: float((model(tokens, places, choose).argmax(-1) == values).float().mean()) for name, choose in choices.items()}


def main(
    seeds: list[int], seq: int = 512, stages: list[tuple[int, int, int, int]] | None = None, steps: int = 2000, size: int = 128
) -> list[dict[str, float]]:
    """Prints a table, and returns the accuracies of each seed."""
    found = []
    for seed in seeds:
        torch.manual_seed(seed)
        generator = torch.Generator().manual_seed(seed)
        model = Model()
        model.begin()
        train(model, generator, stages or [(128, 2, 24, 200), (512, 1, 8, 100)])
        made = distil(model, generator, seq, 8, steps)
        found.append(accuracies(model, made, generator, seq, size))
        print(f"seed {seed}: " + ", ".join(f"{name} {share:.1%}" for name, share in found[-1].items()), flush=True)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    main(parser.parse_args().seeds)
