# SPDX-License-Identifier: Apache-2.0
"""The kernels of STK, package stanford-stk: what `stk.backend.triton_kernels` has, computed by sparsek, on the CPU and on Hopper GPUs.

Call `install()` before stk is first imported. All of stk is then used as it is, and what is built on it: blocks may have any
size, and tensors are of bfloat16, float16, float32 or float64. STK's index of the transposed matrix is not read.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import torch

from ..torch import _products

__all__ = ["dds", "dsd", "install", "row_indices", "sdd"]

_NAME = "stk.backend.triton_kernels"


def install() -> None:
    """Lets stk import this module as its kernels. Raises RuntimeError where it has imported its own already, ImportError without stk."""
    present = sys.modules.get(_NAME)
    if present is None and "stk.backend.sputnik" not in sys.modules:
        sys.modules[_NAME] = sys.modules[__name__]
        try:
            importlib.import_module("stk.backend").triton_kernels = sys.modules[__name__]  # type: ignore[attr-defined]
        except ImportError:  # without the package there is nothing to stand in
            del sys.modules[_NAME]
            raise
    elif present is not sys.modules[__name__]:
        raise RuntimeError("stk was imported before: call sparsek.compat.stk.install() first")


def _stored(shape: Sequence[int], transposed: bool) -> tuple[int, int]:
    """The size of the matrix that the index is of."""
    return (int(shape[1]), int(shape[0])) if transposed else (int(shape[0]), int(shape[1]))


def dsd(
    shape: Sequence[int],
    data: torch.Tensor,
    offsets: torch.Tensor,
    row_indices: torch.Tensor,
    column_indices: torch.Tensor,
    offsets_t: torch.Tensor,
    column_indices_t: torch.Tensor,
    block_offsets_t: torch.Tensor,
    transpose_a: bool,
    rhs: torch.Tensor,
    out: torch.Tensor,
) -> None:
    """out = A rhs. A has this shape; its blocks, or with transpose_a those of its transpose, are data (nnzb, b, b)."""
    _products.mm(data, offsets, column_indices, _stored(shape, transpose_a), rhs, transpose_a, out)


def dds(
    lhs: torch.Tensor,
    shape: Sequence[int],
    data: torch.Tensor,
    offsets: torch.Tensor,
    row_indices: torch.Tensor,
    column_indices: torch.Tensor,
    offsets_t: torch.Tensor,
    column_indices_t: torch.Tensor,
    block_offsets_t: torch.Tensor,
    transpose_b: bool,
    out: torch.Tensor,
) -> None:
    """out = lhs B. B has this shape; its blocks, or with transpose_b those of its transpose, are data (nnzb, b, b)."""
    _products.linear(lhs, data, offsets, column_indices, _stored(shape, transpose_b), None, not transpose_b, "none", out)


def sdd(
    lhs: torch.Tensor,
    rhs: torch.Tensor,
    shape: Sequence[int],
    out: torch.Tensor,
    offsets: torch.Tensor,
    row_indices: torch.Tensor,
    column_indices: torch.Tensor,
) -> None:
    """out = the blocks of lhs rhs at this index: (nnzb, b, b)."""
    _products.sdd(lhs, rhs, offsets, column_indices, _stored(shape, False), (out.shape[-2], out.shape[-1]), out)


def row_indices(shape: Sequence[int], data: torch.Tensor, offsets: torch.Tensor, column_indices: torch.Tensor, out: torch.Tensor) -> None:
    """out = the block row of each block: (nnzb)."""
    rows = torch.arange(offsets.numel() - 1, device=offsets.device)
    out.copy_(torch.repeat_interleave(rows, (offsets[1:] - offsets[:-1]).long(), output_size=out.numel()))  # known, so nothing waits
