# SPDX-License-Identifier: Apache-2.0
"""A mixture of experts as block-sparse products: no expert has a capacity, and no token is dropped.

Tokens are sorted by expert. What an expert's tokens compute in its hidden layer is a range of rows and a range of columns of one
matrix H (tokens, experts x hidden), so that H is block-sparse, with as many tokens an expert as there are. Then

    H = act(X W1) at H's pattern       (sdd)        and        Y = H W2       (mm),

two products for all experts, whose gradients are such products again.

    PYTHONPATH=python/src python python/examples/moe.py
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import sparsek.torch as st


class Moe(nn.Module):
    """experts MLPs width -> hidden -> width, of which each token takes the `top` that the router likes best.

    hidden is a multiple of the block.
    """

    def __init__(self, width: int, hidden: int, experts: int, top: int = 2, block: int = 32) -> None:
        super().__init__()
        self.hidden, self.experts, self.top, self.block = hidden, experts, top, block
        self.router = nn.Linear(width, experts, bias=False)
        self.w1 = nn.Parameter(torch.randn(width, experts * hidden) / width**0.5)
        self.w2 = nn.Parameter(torch.randn(experts * hidden, width) / hidden**0.5)

    def pattern(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """crow and col of H, where each expert has so many block rows, (experts): all its block columns in each."""
        across = self.hidden // self.block
        expert = torch.repeat_interleave(torch.arange(self.experts, device=rows.device), rows)
        crow = torch.arange(len(expert) + 1, device=rows.device, dtype=torch.int32) * across
        col = (expert[:, None] * across + torch.arange(across, device=rows.device)).flatten().int()
        return crow, col

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (tokens, width), and so is the result."""
        share, chosen = self.router(x).softmax(-1).topk(self.top)
        expert = chosen.flatten()
        order = expert.argsort(stable=True)
        counts = torch.bincount(expert, minlength=self.experts)
        rows = -(-counts // self.block)
        # Where a sorted token lies: each expert starts at a block row, and rows that are left over are zero.
        starts = (rows.cumsum(0) - rows) * self.block - (counts.cumsum(0) - counts)
        place = torch.arange(len(order), device=x.device) + starts[expert[order]]
        total = int(rows.sum()) * self.block
        sorted_x = x.new_zeros(total, x.shape[1]).index_copy(0, place, x[order // self.top])
        crow, col = self.pattern(rows)
        size = (total, self.experts * self.hidden)
        h = F.gelu(st.sdd(sorted_x, self.w1, crow, col, size, (self.block, self.block)))
        y = st.mm(h, crow, col, size, self.w2)[place] * share.flatten()[order, None]
        return torch.zeros_like(x).index_add(0, order // self.top, y)

    def one_by_one(self, x: torch.Tensor) -> torch.Tensor:
        """The same, one expert after the other."""
        share, chosen = self.router(x).softmax(-1).topk(self.top)
        out = torch.zeros_like(x)
        for expert in range(self.experts):
            token, rank = (chosen == expert).nonzero(as_tuple=True)
            own = slice(expert * self.hidden, (expert + 1) * self.hidden)
            y = F.gelu(x[token] @ self.w1[:, own]) @ self.w2[own]
            out = out.index_add(0, token, y * share[token, rank, None])
        return out


def main(tokens: int = 512, width: int = 128, hidden: int = 256, experts: int = 8) -> float:
    """Compares both, with their gradients, prints times, and returns the largest difference as a share of the largest element."""
    torch.manual_seed(0)
    moe = Moe(width, hidden, experts)
    x = torch.randn(tokens, width, requires_grad=True)
    target = torch.randn(tokens, width)
    results: dict[str, list[torch.Tensor]] = {}
    for name, run in (("experts one by one", moe.one_by_one), ("block-sparse", moe)):
        for _ in range(3):
            moe.zero_grad()
            x.grad = None
            start = time.perf_counter()
            y = run(x)
            (y * target).sum().backward()
            taken = time.perf_counter() - start
        assert x.grad is not None
        results[name] = [y.detach(), x.grad, *(parameter.grad for parameter in moe.parameters() if parameter.grad is not None)]
        print(f"{name:19} forward and backward {1e3 * taken:.2f} ms")
    pairs = zip(*results.values(), strict=True)
    worst = max(float((left - right).abs().max() / left.abs().max()) for left, right in pairs)
    print(f"{experts} experts, {tokens} tokens, largest difference {worst:.1e}")
    return worst


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="a mixture of experts as block-sparse products")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--experts", type=int, default=8)
    options = parser.parse_args()
    main(options.tokens, experts=options.experts)
