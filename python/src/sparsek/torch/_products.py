# SPDX-License-Identifier: Apache-2.0
"""Products of tensors, straight by the library: nothing here knows of gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from .._abi import Activation, Bias, Op, Order
from ..errors import ArgumentError, DtypeError
from ._known import keep, kept
from ._plans import Call, alignment_of, entry_of, entry_of_weight, made_call
from ._types import DTYPES

ACTIVATIONS = {"none": int(Activation.NONE), "relu": int(Activation.RELU), "gelu": int(Activation.GELU), "silu": int(Activation.SILU)}

_ROWS, _COLUMNS = int(Order.ROW_MAJOR), int(Order.COLUMN_MAJOR)
_DSD, _DSD_T, _SDD, _DDS, _DDS_T = (int(op) for op in (Op.DSD, Op.DSD_T, Op.SDD, Op.DDS, Op.DDS_T))
_NO_BIAS, _COLUMN_BIAS = int(Bias.NONE), int(Bias.COLUMN)

Found = tuple[Call, tuple[int, int, int, int]]
"""A call that is kept, and the addresses that its run takes."""


class _Layout(NamedTuple):
    """A matrix as the library takes it."""

    tensor: torch.Tensor
    order: int
    ld: int

    @property
    def planned_ld(self) -> int:
        """The leading dimension in a plan's options: 0 where there are no gaps between lines."""
        return 0 if self.ld == self.tensor.shape[1 if self.order == _ROWS else 0] else self.ld


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


def _planned(n: int, width: int, *lines: int) -> int:
    """How many columns a product of n is planned for: not many numbers, so that one plan serves products that differ a little.

    width: bytes of an element. lines: steps from line to line of the operands whose lines have n elements. Plans tell
    multiples of 16 bytes from others.
    """
    if any(ld != n or ld * width % 16 for ld in lines):
        return n
    step = 1 << max(0, n.bit_length() - 4)
    return -(-n // step) * step


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


def _require_device(first: torch.Tensor, **others: torch.Tensor | None) -> None:
    for name, other in others.items():
        if other is not None and other.device != first.device:
            raise ArgumentError(f"{name} lies on {other.device}, and other operands on {first.device}: copy it to where they are")


def _result(out: torch.Tensor | None, shape: tuple[int, ...], like: torch.Tensor, *types: torch.dtype) -> None:
    """Raises ArgumentError unless a product can write to out: of the type of `like`, or one of `types`."""
    if out is not None and (
        tuple(out.shape) != shape or out.dtype not in (like.dtype, *types) or out.device != like.device or not out.is_contiguous()
    ):
        raise ArgumentError(
            f"out of {out.dtype} and shape {tuple(out.shape)} on {out.device} is no contiguous tensor of {like.dtype} and shape "
            f"{shape} on {like.device}"
        )


def _zeros(out: torch.Tensor | None, shape: tuple[int, ...], like: torch.Tensor) -> torch.Tensor:
    return like.new_zeros(shape) if out is None else out.zero_()


def shape_of_mm(size: Sequence[int], b: torch.Tensor, transpose: bool) -> tuple[int, ...]:
    """That of op(A) b."""
    return (*b.shape[:-2], size[1] if transpose else size[0], b.shape[-1])


def shape_of_linear(size: Sequence[int], x: torch.Tensor, transpose: bool) -> tuple[int, ...]:
    """That of x op(A)^T."""
    return (*x.shape[:-1], size[1] if transpose else size[0])


def require_mm(values: torch.Tensor, crow: torch.Tensor, col: torch.Tensor, size: Sequence[int], b: torch.Tensor, transpose: bool) -> None:
    """Raises ArgumentError and DtypeError unless the operands of mm fit. Reads no elements."""
    _require_matrix(values, crow, col, size)
    _require_dtype(values, b=b)
    _require_device(values, crow=crow, col=col, b=b)
    inner = size[0] if transpose else size[1]
    if b.dim() < 2 or b.shape[-2] != inner:
        raise ArgumentError(f"b of shape {tuple(b.shape)} does not have {inner} rows")


def known_mm(values: torch.Tensor, crow: torch.Tensor, col: torch.Tensor, size: Any, b: torch.Tensor, transpose: bool) -> Found | None:
    """What is kept of such a product."""
    try:
        refs = kept[crow.data_ptr(), b.numel(), size, transpose]
    except (KeyError, RuntimeError):  # a tensor that is traced or transformed has no address
        return None
    for ref in refs:
        call = ref()
        if call is not None and call.looks_like(crow, col, values, b) and call.serves(crow, col, values):
            at, b_at = values.data_ptr(), b.data_ptr()
            return None if b_at & call.misaligned or at & 15 else (call, (at, b_at, 0, 0))
    return None


def mm(
    values: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    size: Sequence[int],
    b: torch.Tensor,
    transpose: bool,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """op(A) b: (..., M, N), or (..., K, N) where A is transposed. out may be of float32 where b is of 16 bits."""
    size = tuple(size)
    found = known_mm(values, crow, col, size, b, transpose) if out is None else None
    if found is not None:
        return found[0].run(b, found[1])
    require_mm(values, crow, col, size, b, transpose)
    if b.is_meta:
        return torch.ops.sparsek.mm(values, crow, col, size, b, transpose)
    shape, width = shape_of_mm(size, b, transpose), b.element_size()
    outer, n = shape[-2:]
    _result(out, shape, b, *([torch.float32] if width == 2 else []))
    entry = entry_of_weight(values, crow, col, size)
    if b.numel() == 0 or outer == 0:
        return _zeros(out, shape, b)
    folded = b if b.dim() == 2 else b.flatten(0, -3)
    lying = _layout(folded if folded.dim() == 2 else folded[0])
    if lying.tensor.data_ptr() != folded.data_ptr():
        folded = folded.contiguous()
        lying = _layout(folded if folded.dim() == 2 else folded[0])
    batch, step = (folded.shape[0], folded.stride(0)) if folded.dim() == 3 else (0, 0)
    step_c = outer * n if batch else 0
    options = {
        "op": _DSD_T if transpose else _DSD,
        "n": _planned(n, width, n, *([lying.ld] if lying.order == _ROWS else [])),
        "order_b": lying.order,
        "ldb": lying.planned_ld,
        "alignment": alignment_of(entry, folded.data_ptr(), step * width),
        "alignment_c": alignment_of(entry, _out_address(out), step_c * width),
    }
    if out is not None and out.dtype != b.dtype:
        options["dtype_c"] = int(DTYPES[out.dtype])
        options["alignment_c"] = max(options["alignment_c"], out.element_size())
    members = {"n": n, "ldb": lying.ld, "ldc": n, "batch": batch, "stride_b": step, "stride_c": step_c}
    call = made_call(entry, options, shape, members, lambda: _blocks(values))
    if folded.data_ptr() == b.data_ptr() and values.is_contiguous() and values.numel() and _is_plain(crow, col):
        keep((crow.data_ptr(), b.numel(), size, transpose), entry, call, crow, col, values, b)
    blocks = _blocks(values)
    return call.run(b, (_address(blocks, crow), folded.data_ptr(), 0, 0), out)


def _blocks(values: torch.Tensor) -> torch.Tensor:
    """The values, or a copy where they do not lie as they have to."""
    if not values.is_contiguous():
        return values.contiguous()
    return values.clone() if values.is_cuda and values.data_ptr() & 15 else values


def _out_address(out: torch.Tensor | None) -> int:
    return 0 if out is None else out.data_ptr()


def _is_plain(crow: torch.Tensor, col: torch.Tensor) -> bool:
    """Whether the elements of the index can be compared, or need not be."""
    return crow.is_cuda or (crow.is_contiguous() and col.is_contiguous())


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
    _require_device(values, crow=crow, col=col, x=x, bias=bias)
    inner, outer = (size[0], size[1]) if transpose else (size[1], size[0])
    if x.dim() < 1 or x.shape[-1] != inner:
        raise ArgumentError(f"x of shape {tuple(x.shape)} does not end with {inner}")
    if bias is not None and (bias.dim() != 1 or bias.shape[0] != outer):
        raise ArgumentError(f"bias has the shape {tuple(bias.shape)}, and not ({outer},)")


def known_linear(
    x: torch.Tensor, values: torch.Tensor, crow: torch.Tensor, col: torch.Tensor, size: Any, bias: Any, transpose: bool, activation: str
) -> Found | None:
    """What is kept of such a product."""
    try:
        refs = kept[crow.data_ptr(), x.numel(), size, transpose, activation, bias is None]
    except (KeyError, RuntimeError):
        return None
    for ref in refs:
        call = ref()
        if call is None:
            continue
        looks_like = call.looks_like(crow, col, x, values) if bias is None else call.looks_like(crow, col, x, values, bias)
        # The gradient of an activation needs what it was applied to.
        if looks_like and call.serves(crow, col, values) and (activation == "none" or not (call.has_gradients and torch.is_grad_enabled())):
            at, x_at = values.data_ptr(), x.data_ptr()
            return None if x_at & call.misaligned or at & 15 else (call, (at, x_at, 0 if bias is None else bias.data_ptr(), 0))
    return None


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
    found = known_linear(x, values, crow, col, size, bias, transpose, activation) if out is None else None
    if found is not None:
        return found[0].run(x, found[1])
    require_linear(x, values, crow, col, size, bias, transpose)
    if x.is_meta:
        return torch.ops.sparsek.linear(x, values, crow, col, size, bias, transpose, activation)
    if activation not in ACTIVATIONS:
        raise ArgumentError(f"activation {activation!r} is none of {', '.join(ACTIVATIONS)}")
    shape = shape_of_linear(size, x, transpose)
    outer = shape[-1]
    _result(out, shape, x)
    entry = entry_of_weight(values, crow, col, size)
    n = x.shape[:-1].numel()
    if n == 0 or outer == 0:
        return _zeros(out, shape, x)
    lying = _layout(x.reshape(n, x.shape[-1]))
    options = {
        "op": _DDS if transpose else _DDS_T,
        "n": _planned(n, x.element_size(), *([] if lying.order == _ROWS else [lying.ld])),
        "order_b": lying.order,
        "ldb": lying.planned_ld,
        "bias": _NO_BIAS if bias is None else _COLUMN_BIAS,
        "activation": ACTIVATIONS[activation],
        "alignment": alignment_of(entry, lying.tensor.data_ptr()),
        "alignment_c": alignment_of(entry, _out_address(out)),
    }
    call = made_call(entry, options, shape, {"n": n, "ldb": lying.ld, "ldc": outer}, lambda: _blocks(values))
    in_place = lying.tensor.data_ptr() == x.data_ptr() and values.is_contiguous() and (bias is None or bias.is_contiguous())
    if in_place and x.numel() and values.numel() and _is_plain(crow, col):
        key = (crow.data_ptr(), x.numel(), size, transpose, activation, bias is None)
        keep(key, entry, call, crow, col, x, values, *([] if bias is None else [bias]))
    blocks, added = _blocks(values), bias.contiguous() if bias is not None else None
    addresses = _address(blocks, crow), _address(lying.tensor, crow), added.data_ptr() if added is not None else 0, 0
    return call.run(x, addresses, out)


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
    _require_device(lhs, crow=crow, col=col, rhs=rhs)


def known_sdd(lhs: torch.Tensor, rhs: torch.Tensor, crow: torch.Tensor, col: torch.Tensor, size: Any, block: Any) -> Found | None:
    """What is kept of such a product."""
    try:
        refs = kept[crow.data_ptr(), lhs.numel(), size, block]
    except (KeyError, RuntimeError):
        return None
    for ref in refs:
        call = ref()
        if call is not None and call.looks_like(crow, col, lhs, rhs) and call.serves(crow, col):
            left_at, right_at = lhs.data_ptr(), rhs.data_ptr()
            return None if (left_at | right_at) & call.misaligned else (call, (0, right_at, 0, left_at))
    return None


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
    found = known_sdd(lhs, rhs, crow, col, size, block) if out is None else None
    if found is not None:
        return found[0].run(lhs, found[1])
    require_sdd(lhs, rhs, crow, col, size, block)
    if lhs.is_meta:
        return torch.ops.sparsek.sdd(lhs, rhs, crow, col, size, block)
    shape = (col.shape[0], block[0], block[1])
    _result(out, shape, lhs)
    entry = entry_of(crow, col, size, (block[0], block[1]), lhs.dtype)
    n = lhs.shape[1]
    if col.shape[0] == 0 or n == 0:
        return _zeros(out, shape, lhs)
    left, right = _layout(lhs), _layout(rhs)
    lines = [left.ld] * (left.order == _ROWS) + [right.ld] * (right.order == _COLUMNS)
    options = {
        "op": _SDD,
        "n": _planned(n, lhs.element_size(), *lines),
        "order_b": right.order,
        "order_x": left.order,
        "ldb": right.planned_ld,
        "ldx": left.planned_ld,
        "alignment": alignment_of(entry, left.tensor.data_ptr(), right.tensor.data_ptr()),
        "alignment_c": alignment_of(entry, _out_address(out)),
    }
    call = made_call(entry, options, shape, {"n": n, "ldb": right.ld, "ldx": left.ld}, lambda: lhs.new_zeros(shape))
    if left.tensor is lhs and right.tensor is rhs and _is_plain(crow, col):
        keep((crow.data_ptr(), lhs.numel(), size, block), entry, call, crow, col, lhs, rhs)
    return call.run(lhs, (0, right.tensor.data_ptr(), 0, left.tensor.data_ptr()), out)
