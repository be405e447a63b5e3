# SPDX-License-Identifier: Apache-2.0
"""`triton.ops.blocksparse.matmul`, which Triton no longer has, computed by sparsek, on the CPU and on Hopper GPUs, with gradients.

`install()` puts it where programs import it from. Blocks may have any size; tensors are of bfloat16, float16, float32 or
float64. The softmax of that module is not here.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

import torch

from ..errors import ArgumentError, UnsupportedError
from ..torch import functional
from ..torch.blocks import index_from_mask

__all__ = ["install", "matmul"]


def install() -> None:
    """Makes `import triton.ops.blocksparse` give this module, whether Triton is installed or not."""
    try:
        triton = importlib.import_module("triton")
    except ImportError:
        triton = sys.modules["triton"] = ModuleType("triton")
    ops: Any = sys.modules.get("triton.ops")
    if ops is None:
        ops = sys.modules["triton.ops"] = ModuleType("triton.ops")
    here = sys.modules[__name__]
    sys.modules["triton.ops.blocksparse"] = here
    ops.blocksparse = here
    triton.ops = ops  # type: ignore[attr-defined]


def _stacked(heads: torch.Tensor) -> torch.Tensor:
    """(H, R, C) as (H R, C)."""
    return heads.reshape(-1, heads.shape[-1])


class matmul:
    """C = op(A) op(B) for each of Z items and H heads, where one of the three is sparse.

    layout: (H, R, C), the blocks that each head of the sparse matrix has, nonzero where it has one. block: their size both ways.
    mode: which is sparse: "sdd" C, "dsd" A, "dds" B. trans_a, trans_b: op is the transpose. trans_c: C^T is returned, and is
    what the layout of "sdd" means.

    Called with a, b and maybe out. Dense ones are (Z, H, rows, columns), the sparse one is (Z, blocks, block, block), its
    blocks by head, row and column. Raises ArgumentError, DtypeError and UnsupportedError.
    """

    def __init__(
        self, layout: torch.Tensor, block: int, mode: str, device: Any, trans_a: bool = False, trans_b: bool = False, trans_c: bool = False
    ) -> None:
        if mode not in ("sdd", "dsd", "dds"):
            raise UnsupportedError(f"mode {mode!r} is none of sdd, dsd and dds")
        if layout.dim() != 3:
            raise ArgumentError(f"layout has {layout.dim()} dimensions, and not the three (heads, rows, columns)")
        self.layout, self.block, self.mode = layout, block, mode
        self.trans_a, self.trans_b, self.trans_c = trans_a, trans_b, trans_c
        heads, rows, cols = self.spdims = layout.shape
        # The heads are one matrix, each a block of its diagonal.
        mask = torch.zeros(heads, rows, heads, cols, dtype=torch.bool)
        for head in range(heads):
            mask[head, :, head] = layout[head].cpu() != 0
        crow, col = index_from_mask(mask.reshape(heads * rows, heads * cols))
        self._index = (crow.to(device), col.to(device), (heads * rows * block, heads * cols * block))

    def __call__(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        items = [getattr(self, "_" + self.mode)(one, other) for one, other in zip(a.unbind(0), b.unbind(0), strict=True)]
        c = torch.stack(items)
        return c if out is None else out.copy_(c)

    def _sdd(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        lhs, rhs = (a.mT if self.trans_a else a), (b if self.trans_b else b.mT)
        if self.trans_c:
            lhs, rhs = rhs, lhs
        crow, col, size = self._index
        return functional.sdd(_stacked(lhs), _stacked(rhs).t(), crow, col, size, (self.block, self.block))

    def _dsd(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        c = self._product(a, b.mT if self.trans_b else b, self.trans_a)
        return c.mT if self.trans_c else c

    def _dds(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        c = self._product(b, a if self.trans_a else a.mT, not self.trans_b)
        return c if self.trans_c else c.mT

    def _product(self, values: torch.Tensor, dense: torch.Tensor, transpose: bool) -> torch.Tensor:
        """(H, rows, n) from dense (H, inner, n)."""
        crow, col, size = self._index
        c = functional.mm(values, crow, col, size, _stacked(dense), transpose=transpose)
        return c.unflatten(0, (self.spdims[0], -1))
