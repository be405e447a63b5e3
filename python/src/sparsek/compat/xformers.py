# SPDX-License-Identifier: Apache-2.0
"""Attention of the library as an operator of xFormers' memory_efficient_attention."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch

from ..attention import rules_of
from ..torch import BlockLayout

__all__ = ["Operators", "install"]


class Operators(NamedTuple):
    """What xFormers is given: memory_efficient_attention(q, k, v, attn_bias=bias(layout), op=(forward, backward))."""

    forward: Any
    backward: Any
    bias: Any
    """Makes an AttentionBias of a BlockLayout, with `causal`, `window` and `align_ends` as sparsek.torch.attention has them."""


def _folded(x: torch.Tensor) -> torch.Tensor:
    """(batch, heads, sequence, head size) of xFormers' (batch, sequence, heads, size) or (batch, sequence, groups, heads, size).

    Heads of a group that are one repeated become that one.
    """
    if x.dim() == 5:
        x = x[:, :, :, 0] if x.stride(3) == 0 else x.flatten(2, 3)
    return x.transpose(1, 2)


@functools.cache
def install() -> Operators:
    """Registers BlackwellSparseKOp with xFormers, once, and returns what to call it by. Raises ImportError without xFormers."""
    from xformers.ops.common import register_operator
    from xformers.ops.fmha.attn_bias import AttentionBias, LowerTriangularFromBottomRightMask, LowerTriangularMask
    from xformers.ops.fmha.common import AttentionBwOpBase, AttentionFwOpBase, Context, Gradients

    class BlockBias(AttentionBias):
        """The blocks that queries see, and the rule within these."""

        def __init__(
            self,
            layout: BlockLayout | None,
            *,
            causal: bool = False,
            window: tuple[int | None, int | None] = (None, None),
            align_ends: bool = False,
        ) -> None:
            self.layout, self.align_ends = layout, align_ends
            self.left, self.right = rules_of(causal, window)

        def materialize(self, shape: tuple[int, ...], dtype: torch.dtype = torch.float32, device: Any = "cpu") -> torch.Tensor:
            """0 where a query sees a key, and -inf elsewhere."""
            queries, keys = shape[-2:]
            away = torch.arange(keys, device=device) - torch.arange(queries, device=device)[:, None]
            if self.align_ends:
                away = away - (keys - queries)
            seen = torch.ones(shape, dtype=torch.bool, device=device)
            if self.layout is not None:
                seen = seen & self.layout.dense_mask(shape[-3] if len(shape) > 2 else None).to(device)
            if self.left is not None:
                seen = seen & (away >= -self.left)
            if self.right is not None:
                seen = seen & (away <= self.right)
            return torch.zeros(shape, dtype=dtype, device=device).masked_fill(~seen, -torch.inf)

    def rules(inputs: Any) -> list[Any]:
        bias = inputs.attn_bias
        if bias is None:
            bias = BlockBias(None)
        elif not isinstance(bias, BlockBias):
            bias = BlockBias(None, causal=True, align_ends=isinstance(bias, LowerTriangularFromBottomRightMask))
        layout = bias.layout
        index = [None, None, [0, 0, 1, 1]] if layout is None else [layout.crow, layout.col, list(layout.form())]
        return [*index, bias.left, bias.right, bias.align_ends, inputs.scale or 0.0, 0.0, None, None]

    class Supported:
        SUPPORTED_DEVICES = frozenset({"cpu", "cuda"})
        CUDA_MINIMUM_COMPUTE_CAPABILITY = CUDA_MAXIMUM_COMPUTE_CAPABILITY = (9, 0)
        SUPPORTED_DTYPES = frozenset({torch.bfloat16, torch.float16, torch.float32, torch.float64})
        SUPPORTED_MAX_K = 4096
        SUPPORTED_ATTN_BIAS_TYPES = (
            type(None),
            BlockBias,
            LowerTriangularMask,
            LowerTriangularFromBottomRightMask,
        )
        SUPPORTS_DROPOUT = False
        SUPPORTS_CUSTOM_SCALE = True
        SUPPORTS_DIFFERENT_VALUE_EMBED = True

    @register_operator
    class Forward(Supported, AttentionFwOpBase):
        OPERATOR = torch.ops.sparsek.attention
        SUPPORTS_BMGHK = True  # xFormers has no gradients in that format
        NAME = "BlackwellSparseKOp"

        @classmethod
        def apply(cls, inputs: Any, needs_gradient: bool) -> Any:
            operands = (_folded(x) for x in (inputs.query, inputs.key, inputs.value))
            o, lse = torch.ops.sparsek.attention(*operands, *rules(inputs))
            out = o.transpose(1, 2)
            if inputs.query.dim() == 5:
                out, lse = out.unflatten(2, inputs.query.shape[2:4]), lse.unflatten(1, inputs.query.shape[2:4])
            return out, Context(lse=lse, out=out, op_bw=Backward) if needs_gradient else None

    @register_operator
    class Backward(Supported, AttentionBwOpBase):
        OPERATOR = torch.ops.sparsek.attention_backward
        NAME = "BlackwellSparseKOpBackward"

        @classmethod
        def apply(cls, context: Any, inputs: Any, grad: torch.Tensor) -> Any:
            operands = (x.transpose(1, 2) for x in (grad, inputs.query, inputs.key, inputs.value, context.out))
            found = torch.ops.sparsek.attention_backward(*operands, context.lse, *rules(inputs), [True, True, True])
            return Gradients(*(gradient.transpose(1, 2) for gradient in found[:3]))

    return Operators(Forward, Backward, BlockBias)
