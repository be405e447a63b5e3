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


class _Rules(NamedTuple):
    """What a bias of xFormers says, as attention has it."""

    layout: BlockLayout | None = None
    left: int | None = None
    right: int | None = None
    align_ends: bool = False
    added: torch.Tensor | None = None


def _refused_on_gpu(inputs: Any) -> list[str]:
    """What the CUDA back-end has no kernel for, as xFormers asks for it."""
    if inputs.query.device.type != "cuda":
        return []
    size, size_of_v = inputs.query.shape[-1], inputs.value.shape[-1]
    reasons = []
    if inputs.query.dtype not in (torch.bfloat16, torch.float16):
        reasons.append(f"dtype={inputs.query.dtype} on a GPU (supported: torch.bfloat16, torch.float16)")
    if size != size_of_v:
        reasons.append(f"query.shape[-1] != value.shape[-1] on a GPU ({size} and {size_of_v})")
    elif size > 256 or size % 8:
        reasons.append(f"query.shape[-1] is no multiple of 8 up to 256 on a GPU ({size})")
    layout = getattr(inputs.attn_bias, "layout", None)  # of a tensor it is torch's
    if isinstance(layout, BlockLayout) and (layout.block[0] % 16 or layout.block[1] % 16):
        reasons.append(f"blocks of {layout.block[0]} x {layout.block[1]} are no multiples of 16 x 16 on a GPU")
    return reasons


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
    from xformers.ops.fmha.attn_bias import (
        AttentionBias,
        LocalAttentionFromBottomRightMask,
        LowerTriangularFromBottomRightLocalAttentionMask,
        LowerTriangularFromBottomRightMask,
        LowerTriangularMask,
        LowerTriangularMaskWithTensorBias,
    )
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

        def to(self, device: torch.device | str) -> BlockBias:
            """The same for operands on another device."""
            made = BlockBias(None if self.layout is None else self.layout.to(device), align_ends=self.align_ends)
            made.left, made.right = self.left, self.right
            return made

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

    def rules_of_bias(bias: Any) -> _Rules:
        if bias is None:
            return _Rules()
        if isinstance(bias, BlockBias):
            return _Rules(bias.layout, bias.left, bias.right, bias.align_ends)
        if isinstance(bias, torch.Tensor):
            return _Rules(added=bias)
        if isinstance(bias, LowerTriangularMaskWithTensorBias):
            return _Rules(right=0, added=bias._bias)
        if isinstance(bias, LocalAttentionFromBottomRightMask):
            return _Rules(left=bias.window_left, right=bias.window_right, align_ends=True)
        if isinstance(bias, LowerTriangularFromBottomRightLocalAttentionMask):
            return _Rules(left=bias._window_size - 1, right=0, align_ends=True)
        return _Rules(right=0, align_ends=isinstance(bias, LowerTriangularFromBottomRightMask))

    def arguments(inputs: Any) -> tuple[list[Any], list[Any]]:
        """Those of the operators behind q, k and v: the layout and the rules, and what scores have besides."""
        found = rules_of_bias(inputs.attn_bias)
        layout, added = found.layout, found.added
        index = [None, None, [0, 0, 1, 1]] if layout is None else [layout.crow, layout.col, list(layout.form())]
        bits = (None, None) if layout is None or layout.bits is None else layout.bits
        if added is not None and added.dim() == 5:
            added = added.flatten(1, 2)
        return [*index, found.left, found.right, found.align_ends, inputs.scale or 0.0, 0.0, None, None], [added, *bits]

    class Supported:
        SUPPORTED_DEVICES = frozenset({"cpu", "cuda"})
        CUDA_MINIMUM_COMPUTE_CAPABILITY = CUDA_MAXIMUM_COMPUTE_CAPABILITY = (9, 0)
        SUPPORTED_DTYPES = frozenset({torch.bfloat16, torch.float16, torch.float32, torch.float64})
        SUPPORTED_MAX_K = 4096
        SUPPORTED_ATTN_BIAS_TYPES = (
            type(None),
            torch.Tensor,
            BlockBias,
            LocalAttentionFromBottomRightMask,
            LowerTriangularMask,
            LowerTriangularMaskWithTensorBias,
            LowerTriangularFromBottomRightMask,
            LowerTriangularFromBottomRightLocalAttentionMask,
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
        def not_supported_reasons(cls, d: Any) -> list[str]:
            return [*super().not_supported_reasons(d), *_refused_on_gpu(d)]

        @classmethod
        def apply(cls, inputs: Any, needs_gradient: bool) -> Any:
            operands = (_folded(x) for x in (inputs.query, inputs.key, inputs.value))
            rules, terms = arguments(inputs)
            o, lse = torch.ops.sparsek.attention(*operands, *rules, *terms)
            out = o.transpose(1, 2)
            if inputs.query.dim() == 5:
                out, lse = out.unflatten(2, inputs.query.shape[2:4]), lse.unflatten(1, inputs.query.shape[2:4])
            return out, Context(lse=lse, out=out, op_bw=Backward) if needs_gradient else None

    @register_operator
    class Backward(Supported, AttentionBwOpBase):
        OPERATOR = torch.ops.sparsek.attention_backward
        SUPPORTS_ATTN_BIAS_GRAD = True
        NAME = "BlackwellSparseKOpBackward"

        @classmethod
        def not_supported_reasons(cls, d: Any) -> list[str]:
            reasons = [*super().not_supported_reasons(d), *_refused_on_gpu(d)]
            if isinstance(d.attn_bias, LowerTriangularMaskWithTensorBias) and d.attn_bias._bias.requires_grad:
                reasons.append("xFormers takes no gradient of the tensor in a LowerTriangularMaskWithTensorBias")
            return reasons

        @classmethod
        def apply(cls, context: Any, inputs: Any, grad: torch.Tensor) -> Any:
            operands = (x.transpose(1, 2) for x in (grad, inputs.query, inputs.key, inputs.value, context.out))
            rules, terms = arguments(inputs)
            of_bias = isinstance(inputs.attn_bias, torch.Tensor) and inputs.attn_bias.requires_grad
            found = torch.ops.sparsek.attention_backward(*operands, context.lse, *rules, [True, True, True, of_bias], *terms)
            return Gradients(*(gradient.transpose(1, 2) for gradient in found[:3]), db=found[3] if of_bias else None)

    return Operators(Forward, Backward, BlockBias)
