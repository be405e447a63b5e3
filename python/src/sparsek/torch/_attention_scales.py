# SPDX-License-Identifier: Apache-2.0
"""What attention of float8_e4m3fn has besides: scales of its heads, as the library takes them, and an O of another type."""

from __future__ import annotations

from typing import Any

import torch

from .._abi import Dtype
from ..errors import ArgumentError, DtypeError, UnsupportedError
from ._types import DTYPES

E4M3 = torch.float8_e4m3fn
_OUTPUTS = (torch.bfloat16, torch.float16)


def dtype_of_heads(dtype: torch.dtype) -> Dtype:
    """The library's type of q, k and v. Raises DtypeError."""
    kind = Dtype.E4M3 if dtype == E4M3 else DTYPES.get(dtype)
    if kind is None:
        raise DtypeError(f"elements of {dtype} are not served: bfloat16, float16, float32, float64 and float8_e4m3fn are")
    return kind


def output_dtype(dtype: torch.dtype, out_dtype: torch.dtype | None) -> torch.dtype:
    """The type of O, where q is of dtype. Raises DtypeError."""
    if dtype == E4M3:
        if out_dtype is not None and out_dtype not in _OUTPUTS:
            raise DtypeError(f"out_dtype={out_dtype} with q of {dtype}: O is of torch.bfloat16 or torch.float16 then")
        return out_dtype or torch.bfloat16
    if out_dtype is not None and out_dtype != dtype:
        raise DtypeError(f"out_dtype={out_dtype} with q of {dtype}: O has another type than q where that is of {E4M3} alone")
    return dtype


def require_scales(q: Any, k: Any, scales: tuple[Any, Any, Any]) -> None:
    """Raises ArgumentError and DtypeError unless those of q, k and v fit. Reads no elements."""
    for name, scale, heads in zip(("scale_q", "scale_k", "scale_v"), scales, (q.shape[1], k.shape[1], k.shape[1]), strict=True):
        if scale is None:
            continue
        if q.dtype != E4M3:
            raise ArgumentError(f"{name} is given with q of {q.dtype}: scales are those of {E4M3}, multiply q, k and v by yours")
        if scale.dtype != torch.float32:
            raise DtypeError(f"{name} is of {scale.dtype} where torch.float32 is needed")
        if scale.device != q.device:
            raise ArgumentError(f"{name} lies on {scale.device}, and q on {q.device}: copy it to where that is")
        full = (q.shape[0], heads)
        shape = (*(1,) * (2 - scale.dim()), *scale.shape)
        if len(shape) != 2 or any(extent not in (1, whole) for extent, whole in zip(shape, full, strict=True)):
            raise ArgumentError(f"{name} of shape {tuple(scale.shape)} does not go over (batch, heads), {full}")


def scales_of(q: torch.Tensor, k: torch.Tensor, scales: tuple[Any, Any, Any]) -> tuple[dict[str, Any], list[torch.Tensor]]:
    """Members of sparsek_attention_args, and the tensors that they refer to."""
    members: dict[str, Any] = {}
    kept: list[torch.Tensor] = []
    for name, scale, heads in zip(("scale_q", "scale_k", "scale_v"), scales, (q.shape[1], k.shape[1], k.shape[1]), strict=True):
        if scale is None:
            continue
        whole = scale.expand(q.shape[0], heads).contiguous()
        members[name] = whole.data_ptr()
        kept.append(whole)
    return members, kept


def refuse_gradients() -> None:
    """Raises UnsupportedError."""
    raise UnsupportedError(
        f"attention of {E4M3} has no gradients: call it under torch.no_grad() or with operands that ask for none, and train in bfloat16"
    )
