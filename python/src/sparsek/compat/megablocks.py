# SPDX-License-Identifier: Apache-2.0
"""MegaBlocks' sparse dMoE (mlp_impl="sparse") on Hopper GPUs: its products are STK's, which sparsek computes.

Call `install()` before megablocks or stk is first imported. Where MegaBlocks' compiled module megablocks_ops is missing, functions of
torch take its place. MegaBlocks refuses newer versions of Triton for its sparse MLP, since STK's kernels fail there; that check is
skipped, for these kernels are not used.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

import torch

from . import stk

__all__ = ["install"]

_NAME = "megablocks_ops"


def install() -> None:
    """Imports megablocks, with sparsek behind it. Raises what its import raises, and RuntimeError where stk was imported before."""
    stk.install()
    if _NAME not in sys.modules and importlib.util.find_spec(_NAME) is None:
        made: Any = ModuleType(_NAME)
        for function in (exclusive_cumsum, inclusive_cumsum, histogram, indices, sort, replicate_forward, replicate_backward):
            setattr(made, function.__name__, function)
        sys.modules[_NAME] = made
    arguments = importlib.import_module("megablocks.layers.arguments").Arguments
    if not hasattr(arguments, "_sparsek"):
        arguments._sparsek = arguments.__post_init__
        arguments.__post_init__ = _check
    importlib.import_module("megablocks.layers.dmoe").ParallelDroplessMLP.sparse_transpose = _sparse_transpose


def _check(arguments: Any) -> None:
    if arguments.mlp_impl != "sparse":
        arguments._sparsek()


def _sparse_transpose(
    mlp: Any, size: tuple[int, int], row_indices: torch.Tensor, column_indices: torch.Tensor, offsets: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """In place of the transposed index, which STK's kernels need and sparsek's do not read: tensors of its shapes, without the work."""
    return column_indices, offsets.new_empty(size[1] // mlp.blocking + 1), column_indices


# What megablocks_ops has.


def inclusive_cumsum(x: torch.Tensor, dim: int, out: torch.Tensor) -> None:
    """out = the sums of x up to each element."""
    out.copy_(x.cumsum(dim))


def exclusive_cumsum(x: torch.Tensor, dim: int, out: torch.Tensor) -> None:
    """out = the sums of x before each element."""
    out.copy_(x.cumsum(dim) - x)


def histogram(x: torch.Tensor, bins: int) -> torch.Tensor:
    """How often each number below `bins` occurs, in each row of x: of int32."""
    rows = x.unsqueeze(0) if x.dim() == 1 else x
    counts = torch.zeros(rows.shape[0], int(bins), dtype=torch.int32, device=x.device)
    counts.scatter_add_(1, rows.long(), torch.ones_like(rows, dtype=torch.int32))
    return counts[0] if x.dim() == 1 else counts


def sort(x: torch.Tensor, _end_bit: int, values: torch.Tensor, places: torch.Tensor) -> None:
    """values = x in order, places = where each was; equal ones stay in theirs."""
    order = torch.sort(x, stable=True)
    values.copy_(order.values)
    places.copy_(order.indices)


def indices(padded_bins: torch.Tensor, block: int, rows: int, columns: int, out: torch.Tensor) -> None:
    """out = the block columns of a matrix in which each block row has those of its expert: (rows columns)."""
    starts = torch.arange(rows, device=out.device) * block
    expert = torch.searchsorted(padded_bins.long(), starts, right=True)
    out.copy_((expert[:, None] * columns + torch.arange(columns, device=out.device)).flatten())


def replicate_forward(x: torch.Tensor, bins: torch.Tensor, out: torch.Tensor) -> None:
    """out = x (rows, experts), each element for all tokens of its expert: (rows, tokens)."""
    expert = torch.searchsorted(bins.long(), torch.arange(out.shape[1], device=x.device), right=True)
    out.copy_(x[:, expert])


def replicate_backward(grad: torch.Tensor, bins: torch.Tensor, out: torch.Tensor) -> None:
    """out = the sums of grad (rows, tokens) over each expert's tokens: (rows, experts)."""
    expert = torch.searchsorted(bins.long(), torch.arange(grad.shape[1], device=grad.device), right=True)
    sums = torch.zeros(out.shape, dtype=torch.float32, device=grad.device)
    out.copy_(sums.index_add_(1, expert, grad.float()))
