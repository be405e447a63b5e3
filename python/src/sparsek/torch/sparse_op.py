# SPDX-License-Identifier: Apache-2.0
"""Attention as one operator with the arguments of torch's, and a layout or what chooses one."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from ..errors import UnsupportedError
from .block_layout import BlockLayout
from .functional import attention
from .gate import LearnableTopKGate

__all__ = ["BlackwellSparseKOp"]

Selector = Callable[[torch.Tensor, torch.Tensor], BlockLayout]


class BlackwellSparseKOp(nn.Module):
    """softmax(Q K^T / sqrt(head size) + bias) V over the blocks of a layout.

    select: what makes the layout of q and k where a call gives none, such as a LearnableTopKGate. The device decides which
    kernels compute it. For xFormers, sparsek.compat.xformers registers it as a pair of operators.
    """

    def __init__(self, select: LearnableTopKGate | Selector | None = None) -> None:
        super().__init__()
        self.select = select

    def forward(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        layout: BlockLayout | Selector | None = None,
        bias: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
    ) -> torch.Tensor:
        """(batch, query heads, queries, head size of v); operands as `attention` takes them.

        layout: a layout, or what makes one of q and k; None: by `select`, and all blocks where there is none. bias: added to the
        scores, as `attention` has it, with a gradient. dropout_p is refused by UnsupportedError unless it is 0: no kernel has it.
        """
        if dropout_p != 0:
            raise UnsupportedError(f"dropout_p={dropout_p}: no kernel drops weights of attention: give 0, as in evaluation")
        found = layout
        if found is None and self.select is not None:
            found = self.select.layout if isinstance(self.select, LearnableTopKGate) else self.select
        if callable(found):
            found = found(q, k)
        return attention(q, k, v, found, causal=is_causal, bias=bias)
