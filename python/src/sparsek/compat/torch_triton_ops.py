# SPDX-License-Identifier: Apache-2.0
"""The products of `torch.sparse._triton_ops`, computed by sparsek, on the CPU and on Hopper GPUs.

`install()` puts them there, where torch's own operators for BSR tensors on a GPU find them too. Blocks may have any size, and
so may the dense operands. What sparsek has no type for, int8 for instance, goes to what was there before.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.sparse import _triton_ops

from ..errors import ArgumentError, UnsupportedError
from ..torch import _products
from ..torch._types import DTYPES

__all__ = ["bsr_dense_addmm", "bsr_dense_mm", "bsr_scatter_mm", "install", "sampled_addmm", "uninstall"]

_NAMES = ("bsr_dense_mm", "bsr_dense_addmm", "bsr_scatter_mm", "sampled_addmm")
_before: dict[str, Any] = {}


def install() -> None:
    """Puts this module's functions in the place of those in torch.sparse._triton_ops. A second call does nothing."""
    for name in _NAMES:
        _before.setdefault(name, getattr(_triton_ops, name, None))
        setattr(_triton_ops, name, globals()[name])


def uninstall() -> None:
    """Puts back what was there before."""
    for name, function in _before.items():
        setattr(_triton_ops, name, function)
    _before.clear()


def _require(condition: bool, text: str) -> None:
    if not condition:
        raise ArgumentError(text)


def _require_bsr(bsr: torch.Tensor, name: str) -> None:
    _require(bsr.layout == torch.sparse_bsr, f"{name}: only BSR sparse format is supported for the sparse argument, not {bsr.layout}")


def _require_alike(name: str, bsr: torch.Tensor, *dense: torch.Tensor) -> None:
    for other in dense:
        _require(other.device == bsr.device, f"{name}: all inputs are expected to be on the same GPU device, or on the CPU")
        _require(other.dtype == dense[0].dtype, f"{name}: all inputs are expected to be of the same dtype")


def _require_shapes(name: str, left: torch.Tensor, right: torch.Tensor) -> None:
    _require(left.dim() >= 2 and right.dim() >= 2, f"{name}: all inputs of the product are expected to be at least 2D")
    sizes = tuple(left.shape), tuple(right.shape)
    _require(left.shape[-1] == right.shape[-2], f"{name}: {sizes} are not compatible for matrix multiplication")


def _items(batch: torch.Size, *tensors: tuple[torch.Tensor, int]) -> Iterator[list[torch.Tensor]]:
    """Each item of a batch: tensors (..., item), of whose dimensions so many last ones are the item's, broadcast to the batch.

    They are views, so that an index is known again.
    """
    whole = [tensor.expand(*batch, *tensor.shape[tensor.dim() - last :]) for tensor, last in tensors]
    for at in itertools.product(*map(range, batch)):
        yield [tensor[at] for tensor in whole]


def _batch_of(bsr: torch.Tensor, *dense: torch.Tensor) -> torch.Size:
    return torch.broadcast_shapes(bsr.shape[:-2], *(other.shape[:-2] for other in dense))


def _product(bsr: torch.Tensor, dense: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """bsr @ dense, into a contiguous `out` (batch, M, N)."""
    values, crow, col = bsr.values(), bsr.crow_indices(), bsr.col_indices()
    size = (int(bsr.shape[-2]), int(bsr.shape[-1]))
    if bsr.dim() == 2:
        broadcast = dense.expand(*out.shape[:-2], *dense.shape[-2:])
        return _products.mm(values, crow, col, size, broadcast, False, out)
    batch = out.shape[:-2]
    for v, starts, columns, b, c in _items(batch, (values, 3), (crow, 1), (col, 1), (dense, 2), (out, 2)):
        _products.mm(v, starts, columns, size, b, False, c)
    return out


def bsr_dense_mm(
    bsr: torch.Tensor,
    dense: torch.Tensor,
    *,
    out: torch.Tensor | None = None,
    skip_checks: bool = False,
    max_grid: Any = None,
    meta: Any = None,
) -> torch.Tensor:
    """bsr @ dense: (..., M, N). bsr: (..., M, K). dense: (..., K, N). max_grid and meta are not used."""
    _require_bsr(bsr, "bsr_dense_mm()")
    _require_alike("bsr_dense_mm()", bsr, bsr.values(), dense)
    _require_shapes("bsr_dense_mm()", bsr, dense)
    shape = (*_batch_of(bsr, dense), bsr.shape[-2], dense.shape[-1])
    _require(out is None or tuple(out.shape) == shape, f"bsr_dense_mm(): `out` argument has wrong shape, expected {shape}")
    return bsr_dense_addmm(dense.new_empty(shape) if out is None else out, bsr, dense, beta=0, out=out)


def bsr_dense_addmm(
    input: torch.Tensor,
    bsr: torch.Tensor,
    dense: torch.Tensor,
    *,
    beta: float = 1,
    alpha: float = 1,
    left_alpha: torch.Tensor | None = None,
    right_alpha: torch.Tensor | None = None,
    out: torch.Tensor | None = None,
    skip_checks: bool = False,
    max_grid: Any = None,
    meta: Any = None,
) -> torch.Tensor:
    """beta input + left_alpha (alpha bsr @ dense) right_alpha: (..., M, N), rounded once where it is not plain.

    left_alpha: (..., M), right_alpha: (..., N), factors of rows and columns; None: 1. With beta = 0, input is not read.
    """
    if bsr.dtype not in DTYPES:
        before = _original()
        return before(input, bsr, dense, beta=beta, alpha=alpha, left_alpha=left_alpha, right_alpha=right_alpha, out=out, meta=meta)
    _require_bsr(bsr, "bsr_dense_addmm()")
    _require_shapes("bsr_dense_addmm()", bsr, dense)
    shape = (*_batch_of(bsr, dense), bsr.shape[-2], dense.shape[-1])
    plain = alpha == 1 and beta == 0 and left_alpha is None and right_alpha is None
    if plain:
        direct = out is not None and out.is_contiguous() and out.dtype == dense.dtype
        made = _product(bsr, dense, out if direct and out is not None else dense.new_empty(shape))
        return made if out is None or direct else out.copy_(made)
    wide = torch.float32 if dense.element_size() == 2 else dense.dtype
    sums = _product(bsr, dense, dense.new_empty(shape, dtype=wide)) * alpha
    if left_alpha is not None:
        sums *= left_alpha.reshape(*shape[:-1], 1)
    if right_alpha is not None:
        sums *= right_alpha.reshape(*shape[:-2], 1, shape[-1])
    if beta != 0:
        sums += beta * input
    return sums.to(dense.dtype) if out is None else out.copy_(sums)


def bsr_scatter_mm(bsr: torch.Tensor, other: torch.Tensor, indices_data: Any = None, out: torch.Tensor | None = None) -> torch.Tensor:
    """bsr @ other: (..., M, N). indices_data, which torch's kernel plans with, is not used."""
    _require(bsr.dim() == 2, f"bsr_scatter_mm(): bsr has {bsr.dim()} dimensions, and not two")
    return bsr_dense_mm(bsr, other, out=out)


def sampled_addmm(
    input: torch.Tensor,
    mat1: torch.Tensor,
    mat2: torch.Tensor,
    *,
    beta: float = 1.0,
    alpha: float = 1.0,
    out: torch.Tensor | None = None,
    skip_checks: bool = False,
    max_grid: Any = None,
) -> torch.Tensor:
    """beta input + alpha mat1 @ mat2 where input, of BSR, has blocks, as a BSR tensor. input may be of bool where beta is 0."""
    name = "sampled_addmm()"
    _require_bsr(input, name)
    _require_alike(name, input, mat1, mat2)
    _require_shapes(name, mat1, mat2)
    _require(beta == 0 or input.dtype != torch.bool, f"{name}: having beta == {beta} not equal to 0.0 with boolean mask is not allowed")
    _require(input.dtype in (torch.bool, mat1.dtype), f"{name}: all inputs are expected to be of the same dtype")
    batch = _batch_of(input, mat1, mat2)
    size = (int(mat1.shape[-2]), int(mat2.shape[-1]))
    _require(size == tuple(input.shape[-2:]), f"{name}: a product of size {size} does not fit an input of {tuple(input.shape)}")
    values, crow, col = input.values(), input.crow_indices(), input.col_indices()
    block = (values.shape[-2], values.shape[-1])
    index = [part.expand(*batch, part.shape[-1]) for part in (crow, col)]
    if batch:
        operands = _items(batch, (crow, 1), (col, 1), (mat1, 2), (mat2, 2))
        found = [_products.sdd(left, right, starts, columns, size, block) for starts, columns, left, right in operands]
        blocks = torch.stack(found).unflatten(0, batch)
    else:
        blocks = _products.sdd(mat1, mat2, crow, col, size, block)
    made = blocks * alpha if alpha != 1 else blocks
    if beta != 0:
        made = torch.add(made, values, alpha=beta)
    if out is not None:
        _require_bsr(out, name)
        _require(
            out.values().shape == made.shape, f"{name}: `out` has values of shape {tuple(out.values().shape)}, not {tuple(made.shape)}"
        )
        out.values().copy_(made)
        return out
    parts = [part.contiguous() for part in index]
    return torch.sparse_bsr_tensor(*parts, made, (*batch, *size), check_invariants=False)


def _original() -> Callable[..., torch.Tensor]:
    """torch's own bsr_dense_addmm, which its _int_bsr_dense_addmm comes to as well."""
    found: Callable[..., torch.Tensor] | None = _before.get("bsr_dense_addmm") or getattr(_triton_ops, "bsr_dense_addmm", None)
    if found is None or found is bsr_dense_addmm:
        raise UnsupportedError("this type of elements is not served, and torch has no function of its own for it here")
    return found
