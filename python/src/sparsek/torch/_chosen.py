# SPDX-License-Identifier: Apache-2.0
"""Indices of chosen blocks, made by the library where masks, scores or lists of columns lie. On a GPU nothing is waited for."""

from __future__ import annotations

import ctypes
from typing import Any

import torch

from .. import _abi
from .._abi import Dtype, IndexType, Memory, Status
from .._library import library
from ..context import default_context
from ..errors import from_status
from ._plans import cpu_context

_REPORTED = 0xFF  # the bits of a fault that are its status


def highest(scores: torch.Tensor, count: int, most: int) -> tuple[torch.Tensor, torch.Tensor]:
    """crow and col of the `count` highest scores of each row (R, C) of float32, at most `most` in all.

    Of equal scores the first are taken; those of -inf never are.
    """
    given = scores.contiguous()
    source = {"source_dtype": int(Dtype.FP32), "count": count}
    return _made(given, tuple(given.shape), most, "pattern_from_topk", **source)


def listed(columns: torch.Tensor, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """crow and col of the columns (R, K) of int32 below `width`, in any order; negative ones are none."""
    given = columns.contiguous()
    source = {"source_index_type": int(IndexType.INT32), "count": given.shape[1]}
    return _made(given, (given.shape[0], width), given.numel(), "pattern_from_topk", **source)


def masked(mask: torch.Tensor, most: int) -> tuple[torch.Tensor, torch.Tensor]:
    """crow and col of a mask (R, C) of bool that has at most `most` blocks."""
    given = mask.contiguous()
    return _made(given, tuple(given.shape), most, "pattern_from_mask")


@torch.compiler.disable
def _made(given: torch.Tensor, shape: tuple[int, int], most: int, function: str, **source: int) -> tuple[torch.Tensor, torch.Tensor]:
    rows, columns = shape
    crow = torch.empty(rows + 1, dtype=torch.int32, device=given.device)
    col = torch.empty(most, dtype=torch.int32, device=given.device)
    fault = torch.empty((), dtype=torch.int64, device=given.device)
    on_gpu = given.is_cuda
    context = default_context(Memory.DEVICE, given.get_device()) if on_gpu else cpu_context()
    members: dict[str, Any] = {
        "stream": torch.cuda.current_stream(given.device).cuda_stream if on_gpu else 0,
        "memory": int(Memory.DEVICE if on_gpu else Memory.HOST),
    }
    args = _abi.PatternArgs(
        rows=rows,
        cols=columns,
        block_m=1,
        block_k=1,
        capacity=most,
        index_type=int(IndexType.INT32),
        row_ptr=crow.data_ptr(),
        col_idx=col.data_ptr(),
        fault=fault.data_ptr(),
        source=given.data_ptr(),
        ld=given.shape[1],
        **members,
        **source,
    )
    lib = library()
    lib.require(getattr(lib, function)(context.pointer, ctypes.byref(args)))
    if not on_gpu:
        _require_good(int(fault), most)
        return crow, col[: int(crow[-1])]
    # What is at fault, or beyond `most`, becomes a fault of the index, which attention finds: it has no blocks then.
    crow[-1:].masked_fill_(fault != 0, -1)
    return crow, col


def _require_good(fault: int, most: int) -> None:
    status = fault & _REPORTED
    if status == Status.OVER_CAPACITY:
        raise from_status(status, f"there are more blocks than {most}, which was said to be the most")
    if status:
        raise from_status(status, f"what names the blocks has a fault at place {fault >> 8}")
