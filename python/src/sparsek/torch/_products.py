# SPDX-License-Identifier: Apache-2.0
"""Products of tensors on the CPU, straight by the library: nothing here knows of gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from .._abi import Activation, Bias, Op, Order
from ..errors import ArgumentError, DtypeError
from ._plans import Call, entry_of, keep, recent

ACTIVATIONS = {"none": int(Activation.NONE), "relu": int(Activation.RELU), "gelu": int(Activation.GELU), "silu": int(Activation.SILU)}

_ROWS, _COLUMNS = int(Order.ROW_MAJOR), int(Order.COLUMN_MAJOR)
_DSD, _DSD_T, _SDD, _DDS, _DDS_T = (int(op) for op in (Op.DSD, Op.DSD_T, Op.SDD, Op.DDS, Op.DDS_T))
_NO_BIAS, _COLUMN_BIAS = int(Bias.NONE), int(Bias.COLUMN)
_threads = torch.get_num_threads


class _Layout(NamedTuple):
    """A matrix as the library takes it."""

    tensor: torch.Tensor
    order: int
    ld: int


def _layout(tensor: torch.Tensor) -> _Layout:
    """A matrix where it lies, row- or column-major; one with other strides is copied."""
    rows, cols = tensor.shape
    down, across = tensor.stride()
    if (across == 1 or cols == 1) and (down >= cols or rows == 1):
        return _Layout(tensor, _ROWS, down if rows > 1 else cols)
    if (down == 1 or rows == 1) and (across >= rows or cols == 1):
        return _Layout(tensor, _COLUMNS, across if cols > 1 else rows)
    return _Layout(tensor.contiguous(), _ROWS, cols)


def _address(tensor: torch.Tensor, crow: torch.Tensor) -> int:
    # A tensor without elements has no address, and null would mean something else.
    return tensor.data_ptr() or crow.data_ptr()


def _index_key(crow: torch.Tensor, col: torch.Tensor) -> tuple[Any, ...]:
    return crow.data_ptr(), col.data_ptr(), crow.shape, col.shape, crow.stride(), col.stride(), crow.dtype, col.dtype


def _require_index(crow: torch.Tensor, col: torch.Tensor, size: Sequence[int], block: Sequence[int]) -> None:
    if crow.dim() != 1 or col.dim() != 1 or len(size) != 2 or len(block) != 2:
        given = [tuple(part) for part in (crow.shape, col.shape, size, block)]
        raise ArgumentError(f"a pattern has crow and col of one dimension, and a size and a block of two: {given} are not that")


def _require_matrix(values: torch.Tensor, crow: torch.Tensor, col: torch.Tensor, size: Sequence[int]) -> None:
    if values.dim() != 3:
        raise ArgumentError(f"values have the shape {tuple(values.shape)}, and not (nnzb, bm, bk)")
    _require_index(crow, col, size, values.shape[1:])
    if values.shape[0] != col.shape[0]:
        raise ArgumentError(f"there are {values.shape[0]} blocks of values, and {col.shape[0]} block columns")


def _require_dtype(values: torch.Tensor, **others: torch.Tensor | None) -> None:
    for name, other in others.items():
        if other is not None and other.dtype != values.dtype:
            raise DtypeError(f"values are of {values.dtype} and {name} of {other.dtype}: convert one of them, so that both are of one type")


def _result(out: torch.Tensor | None, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Raises ArgumentError unless a product can write to out."""
    if out is not None and (tuple(out.shape) != shape or out.dtype != dtype or not out.is_contiguous()):
        raise ArgumentError(f"out of {out.dtype} and shape {tuple(out.shape)} is no contiguous tensor of {dtype} and shape {shape}")


def _zeros(out: torch.Tensor | None, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype) if out is None else out.zero_()


def require_mm(values: torch.Tensor, crow: torch.Tensor, col: torch.Tensor, size: Sequence[int], b: torch.Tensor, transpose: bool) -> None:
    """Raises ArgumentError and DtypeError unless the operands of mm fit. Reads no elements."""
    _require_matrix(values, crow, col, size)
    _require_dtype(values, b=b)
    inner = size[0] if transpose else size[1]
    if b.dim() < 2 or b.shape[-2] != inner:
        raise ArgumentError(f"b of shape {tuple(b.shape)} does not have {inner} rows")


def mm(
    values: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    size: Sequence[int],
    b: torch.Tensor,
    transpose: bool,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """op(A) b: (..., M, N), or (..., K, N) where A is transposed."""
    size = tuple(size)
    key = (transpose, size, values.shape, values.dtype, b.shape, b.stride(), b.dtype, _threads(), _index_key(crow, col))
    call = recent(key, crow, col)
    if call is not None and out is None and values.is_contiguous():
        return call.run(values.data_ptr(), b.data_ptr())
    require_mm(values, crow, col, size, b, transpose)
    outer, n = (size[1] if transpose else size[0]), b.shape[-1]
    shape = (*b.shape[:-2], outer, n)
    _result(out, shape, b.dtype)
    entry = entry_of(crow, col, size, (values.shape[1], values.shape[2]), values.dtype)
    if b.numel() == 0 or outer == 0:
        return _zeros(out, shape, b.dtype)
    folded = b if b.dim() == 2 else b.flatten(0, -3)
    lying = _layout(folded if folded.dim() == 2 else folded[0])
    if lying.tensor.data_ptr() != folded.data_ptr():
        folded = folded.contiguous()
        lying = _layout(folded if folded.dim() == 2 else folded[0])
    batch, step = (folded.shape[0], folded.stride(0)) if folded.dim() == 3 else (0, 0)
    options = {"op": _DSD_T if transpose else _DSD, "n": n, "order_b": lying.order}
    members = {"ldb": lying.ld, "ldc": n, "batch": batch, "stride_b": step, "stride_c": outer * n if batch else 0}
    call = Call(entry, options, shape, b.dtype, members)
    blocks = values.contiguous()
    if folded.data_ptr() == b.data_ptr() and values.numel() and _is_plain(crow, col):
        keep(key, entry, call)
    return call.run(_address(blocks, crow), folded.data_ptr(), out=out)


def _is_plain(crow: torch.Tensor, col: torch.Tensor) -> bool:
    return crow.is_contiguous() and col.is_contiguous()


def require_linear(
    x: torch.Tensor,
    values: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    size: Sequence[int],
    bias: torch.Tensor | None,
    transpose: bool,
) -> None:
    """Raises ArgumentError and DtypeError unless the operands of linear fit. Reads no elements."""
    _require_matrix(values, crow, col, size)
    _require_dtype(values, x=x, bias=bias)
    inner, outer = (size[0], size[1]) if transpose else (size[1], size[0])
    if x.dim() < 1 or x.shape[-1] != inner:
        raise ArgumentError(f"x of shape {tuple(x.shape)} does not end with {inner}")
    if bias is not None and (bias.dim() != 1 or bias.shape[0] != outer):
        raise ArgumentError(f"bias has the shape {tuple(bias.shape)}, and not ({outer},)")


def linear(
    x: torch.Tensor,
    values: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    size: Sequence[int],
    bias: torch.Tensor | None,
    transpose: bool,
    activation: str,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """act(x A^T + bias): (..., M); or where A is transposed act(x A + bias): (..., K)."""
    size = tuple(size)
    of_bias = None if bias is None else (bias.shape, bias.stride(), bias.dtype)
    shapes = (size, values.shape, values.dtype, x.shape, x.stride(), x.dtype, of_bias)
    key = (transpose, activation, shapes, _threads(), _index_key(crow, col))
    call = recent(key, crow, col)
    if call is not None and out is None and values.is_contiguous():
        return call.run(values.data_ptr(), x.data_ptr(), bias.data_ptr() if bias is not None else 0)
    require_linear(x, values, crow, col, size, bias, transpose)
    if activation not in ACTIVATIONS:
        raise ArgumentError(f"activation {activation!r} is none of {', '.join(ACTIVATIONS)}")
    outer = size[1] if transpose else size[0]
    shape = (*x.shape[:-1], outer)
    _result(out, shape, x.dtype)
    entry = entry_of(crow, col, size, (values.shape[1], values.shape[2]), values.dtype)
    n = x.shape[:-1].numel()
    if n == 0 or outer == 0:
        return _zeros(out, shape, x.dtype)
    lying = _layout(x.reshape(n, x.shape[-1]))
    axis = _NO_BIAS if bias is None else _COLUMN_BIAS
    options = {
        "op": _DDS if transpose else _DDS_T,
        "n": n,
        "order_b": lying.order,
        "bias": axis,
        "activation": ACTIVATIONS[activation],
    }
    call = Call(entry, options, shape, x.dtype, {"ldb": lying.ld, "ldc": outer})
    blocks, added = values.contiguous(), bias.contiguous() if bias is not None else None
    in_place = lying.tensor.data_ptr() == x.data_ptr() and (bias is None or bias.is_contiguous())
    if in_place and x.numel() and values.numel() and _is_plain(crow, col):
        keep(key, entry, call)
    return call.run(_address(blocks, crow), _address(lying.tensor, crow), added.data_ptr() if added is not None else 0, out=out)


def require_sdd(
    lhs: torch.Tensor, rhs: torch.Tensor, crow: torch.Tensor, col: torch.Tensor, size: Sequence[int], block: Sequence[int]
) -> None:
    """Raises ArgumentError and DtypeError unless the operands of sdd fit. Reads no elements."""
    _require_index(crow, col, size, block)
    if lhs.dim() != 2 or rhs.dim() != 2 or lhs.shape[0] != size[0] or rhs.shape[1] != size[1] or lhs.shape[1] != rhs.shape[0]:
        raise ArgumentError(
            f"lhs of shape {tuple(lhs.shape)} and rhs of shape {tuple(rhs.shape)} are not ({size[0]}, n) and (n, {size[1]}) with one n"
        )
    if lhs.dtype != rhs.dtype:
        raise DtypeError(f"lhs is of {lhs.dtype} and rhs of {rhs.dtype}: convert one of them, so that both are of one type")


def sdd(
    lhs: torch.Tensor,
    rhs: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    size: Sequence[int],
    block: Sequence[int],
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """The blocks of lhs rhs that the pattern has: (nnzb, bm, bk)."""
    size, block = tuple(size), tuple(block)
    shapes = (size, block, lhs.shape, lhs.stride(), lhs.dtype, rhs.shape, rhs.stride(), rhs.dtype)
    key = (shapes, _threads(), _index_key(crow, col))
    call = recent(key, crow, col)
    if call is not None and out is None:
        return call.run(0, rhs.data_ptr(), x=lhs.data_ptr())
    require_sdd(lhs, rhs, crow, col, size, block)
    shape = (col.shape[0], block[0], block[1])
    _result(out, shape, lhs.dtype)
    entry = entry_of(crow, col, size, (block[0], block[1]), lhs.dtype)
    n = lhs.shape[1]
    if col.shape[0] == 0 or n == 0:
        return _zeros(out, shape, lhs.dtype)
    left, right = _layout(lhs), _layout(rhs)
    options = {"op": _SDD, "n": n, "order_b": right.order, "order_x": left.order}
    call = Call(entry, options, shape, lhs.dtype, {"ldb": right.ld, "ldx": left.ld})
    if left.tensor is lhs and right.tensor is rhs and _is_plain(crow, col):
        keep(key, entry, call)
    return call.run(0, right.tensor.data_ptr(), x=left.tensor.data_ptr(), out=out)
