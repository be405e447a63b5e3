# SPDX-License-Identifier: Apache-2.0
"""torch.ops.sparsek.pool_rows: the mean, the maximum and the minimum of blocks of rows, which gates score."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch

from .. import _abi
from .._abi import Memory
from .._library import library
from ..attention import lies_in_rows, strides_of
from ..context import default_context
from ._plans import cpu_context
from ._types import require_dtype

POOLED = 3  # numbers of each column


def _made(x: torch.Tensor, block: int) -> torch.Tensor:
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    return x.new_empty((*x.shape[:2], -(-x.shape[2] // block), POOLED * x.shape[3]), dtype=dtype)


def _pool_rows(x: torch.Tensor, block: int) -> torch.Tensor:
    out = _made(x, block)
    lying = x if lies_in_rows(x.shape, x.stride()) else x.contiguous()
    on_gpu = lying.is_cuda
    context = default_context(Memory.DEVICE, lying.get_device()) if on_gpu else cpu_context()
    args = _abi.PoolArgs(
        batch=lying.shape[0],
        heads=lying.shape[1],
        seq=lying.shape[2],
        head_size=lying.shape[3],
        block=block,
        x=lying.data_ptr(),
        stride_x=strides_of(tuple(lying.shape), lying.stride()),
        out=out.data_ptr(),
        dtype=int(require_dtype(lying.dtype)),
        memory=int(Memory.DEVICE if on_gpu else Memory.HOST),
        stream=torch.cuda.current_stream(lying.device).cuda_stream if on_gpu else 0,
    )
    lib = library()
    lib.require(lib.attention_pool(context.pointer, ctypes.byref(args)))
    return out


torch.library.define("sparsek::pool_rows", "(Tensor x, SymInt block) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
torch.library.impl("sparsek::pool_rows", ("CPU", "CUDA"))(_pool_rows)


@torch.library.register_fake("sparsek::pool_rows")
def _(x: Any, block: Any) -> Any:
    return _made(x, block)


pool_rows: Callable[[torch.Tensor, int], torch.Tensor] = torch.ops.sparsek.pool_rows
"""(batch, heads, blocks, 3 head size) of (batch, heads, rows, head size): of float32, or float64 of that. No gradients."""
