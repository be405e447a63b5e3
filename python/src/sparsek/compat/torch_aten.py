# SPDX-License-Identifier: Apache-2.0
"""torch's own products of BSR and BSC tensors, computed by sparsek: `S @ b`, `x @ S`, torch.addmm and F.linear(x, S, bias).

`install()` puts sparsek behind aten::mm and aten::addmm of sparse tensors on the CPU and on GPUs; `uninstall()` takes it away.
Gradients of dense operands are such products again. A BSR tensor that is itself to have a gradient has none in torch, here
either: sparsek.torch.BsrTensor has. Other layouts, types and batches go to torch's kernels.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from ..errors import UnsupportedError
from ..torch import _products
from ..torch._types import DTYPES

__all__ = ["install", "uninstall"]

_KEYS = ("SparseCsrCPU", "SparseCsrCUDA")
_installed: list[Any] = []


class _Stored(NamedTuple):
    """A BSR tensor, or the one that a BSC tensor is the transpose of."""

    values: torch.Tensor
    crow: torch.Tensor
    col: torch.Tensor
    size: tuple[int, int]
    transposed: bool


def install() -> None:
    """Has torch call sparsek. A second call does nothing. Raises UnsupportedError where torch is older than 2.9."""
    if _installed:
        return
    if not hasattr(torch.library, "get_kernel"):
        raise UnsupportedError(f"torch {torch.__version__} cannot tell which kernel it has: 2.9 and newer can")
    library = torch.library.Library("aten", "IMPL")
    for key in _KEYS:
        for name, ours in (("mm", _mm), ("addmm", _addmm)):
            try:
                before = torch.library.get_kernel(f"aten::{name}", key)
            except RuntimeError:  # of a torch without CUDA
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # torch warns of what is meant here
                library.impl(name, _either(ours, before), key, with_keyset=True, allow_override=True)
    _installed.append(library)


def uninstall() -> None:
    """Has torch call its own kernels again."""
    while _installed:
        _installed.pop()._destroy()


def _either(ours: Callable[..., torch.Tensor | None], before: Any) -> Callable[..., Any]:
    def kernel(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        product = ours(*args, **kwargs)
        return before.call_boxed(keyset, *args, **kwargs) if product is None else product

    return kernel


def _stored(tensor: torch.Tensor) -> _Stored | None:
    """What sparsek multiplies; None where it does not."""
    if tensor.layout not in (torch.sparse_bsr, torch.sparse_bsc) or tensor.dim() != 2 or tensor.dtype not in DTYPES:
        return None
    values, (rows, cols) = tensor.values(), tensor.shape
    if values.dim() != 3:
        return None
    if tensor.layout == torch.sparse_bsr:
        return _Stored(values, tensor.crow_indices(), tensor.col_indices(), (rows, cols), False)
    return _Stored(values.mT, tensor.ccol_indices(), tensor.row_indices(), (cols, rows), True)


def _product(left: torch.Tensor, right: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor | None:
    if left.dtype != right.dtype or left.dim() != 2 or right.dim() != 2:
        return None
    if right.layout == torch.strided:
        a = _stored(left)
        if a is None or bias is not None or left.shape[1] != right.shape[0]:
            return None
        return _products.mm(a.values, a.crow, a.col, a.size, right, a.transposed)
    b = _stored(right)
    if b is None or left.layout != torch.strided or left.shape[1] != right.shape[0]:
        return None
    return _products.linear(left, b.values, b.crow, b.col, b.size, bias, not b.transposed, "none")


def _mm(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor | None:
    return _product(left, right)


def _addmm(added: torch.Tensor, left: torch.Tensor, right: torch.Tensor, *, beta: float = 1, alpha: float = 1) -> torch.Tensor | None:
    if added.layout != torch.strided or added.dtype != left.dtype:
        return None
    if alpha == 1 and beta == 1 and added.dim() == 1 and added.shape[0] == right.shape[-1] and left.layout == torch.strided:
        return _product(left, right, added)  # F.linear's bias is part of the product
    product = _product(left, right)
    if product is None:
        return None
    if alpha != 1:
        product *= alpha
    return product if beta == 0 else product.add_(added, alpha=beta)
