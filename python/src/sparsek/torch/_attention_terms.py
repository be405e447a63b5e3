# SPDX-License-Identifier: Apache-2.0
"""What attention's scores have besides Q K^T: a bias, and bits of partial blocks, as the library takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..errors import ArgumentError, DtypeError
from ._types import require_dtype

_WORD = 32  # bits


def require_terms(q: Any, keys: int, layout: Sequence[int], bias: Any, mask_index: Any, mask: Any, of_outputs: torch.dtype) -> None:
    """Raises ArgumentError and DtypeError unless they fit to so many keys and to an O of that type. Reads no elements."""
    for name, operand in (("bias", bias), ("mask_index", mask_index), ("mask", mask)):
        if operand is not None and operand.device != q.device:
            raise ArgumentError(f"{name} lies on {operand.device}, and q on {q.device}: copy it to where that is")
    if bias is not None:
        full = (*q.shape[:3], keys)
        if bias.dim() != 4 or any(extent not in (1, whole) for extent, whole in zip(bias.shape, full, strict=True)):
            raise ArgumentError(
                f"a bias of shape {tuple(bias.shape)} is not (batch, query heads, queries, keys), {full}, or 1 in place of some"
            )
        if bias.dtype != of_outputs and (bias.dtype != torch.float32 or of_outputs.itemsize > 2):
            hint = ": hide keys by a layout of BlockLayout.from_dense_mask" if bias.dtype == torch.bool else ""
            raise DtypeError(
                f"q is of {q.dtype} and the bias of {bias.dtype}, which may be of {of_outputs}, or of float32 where that has 16 bits{hint}"
            )
    if (mask is None) != (mask_index is None):
        raise ArgumentError("bits of blocks are mask_index and mask together: one of them is missing")
    if mask is None:
        return
    high, wide, batch, heads = layout[:4] if layout[0] > 0 else (128, 128, 1, 1)
    rows, columns, words = batch * heads * -(-q.shape[2] // high), -(-keys // wide), -(-wide // _WORD)
    if mask_index.dtype != torch.int32 or tuple(mask_index.shape) != (rows, columns):
        raise ArgumentError(f"mask_index of {mask_index.dtype} and shape {tuple(mask_index.shape)} is not of int32 and {(rows, columns)}")
    if mask.dtype != torch.int32 or mask.dim() != 3 or tuple(mask.shape[1:]) != (high, words):
        raise ArgumentError(f"mask of {mask.dtype} and shape {tuple(mask.shape)} is not of int32 and (blocks with bits, {high}, {words})")


def terms_of(
    q: torch.Tensor, keys: int, bias: torch.Tensor | None, mask_index: torch.Tensor | None, mask: torch.Tensor | None
) -> tuple[dict[str, Any], list[torch.Tensor]]:
    """Members of sparsek_attention_args, and the tensors that they refer to."""
    members: dict[str, Any] = {}
    kept: list[torch.Tensor] = []
    if bias is not None:
        full = (*q.shape[:3], keys)
        strides = bias.expand(full).stride()
        if not any(strides):  # to the library, no strides are those of an array without gaps
            bias = bias.expand(1, 1, 1, full[3]).contiguous()
            strides = (0, 0, 0, 1)
        members.update(bias=bias.data_ptr(), stride_bias=tuple(strides), bias_dtype=int(require_dtype(bias.dtype)))
        kept.append(bias)
    if mask is not None and mask_index is not None and mask.numel() > 0:
        mask, mask_index = mask.contiguous(), mask_index.contiguous()
        members.update(mask=mask.data_ptr(), mask_index=mask_index.data_ptr(), mask_blocks=mask.shape[0])
        kept += [mask, mask_index]
    return members, kept


def bias_gradient(of_pairs: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """The gradient of the bias, of that of each pair of a query and a key."""
    found = of_pairs.sum_to_size(bias.shape).to(bias.dtype)
    return found.clone() if found is of_pairs else found
