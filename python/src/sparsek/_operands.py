# SPDX-License-Identifier: Apache-2.0
"""Dense operands as the library takes them: which extent is which, rows or columns without gaps, even steps in a batch."""

from __future__ import annotations

from math import prod
from typing import Any

from ._abi import Dtype, Order
from ._arrays import View, contiguous, empty, require_stream, view
from .errors import ArgumentError

ORDERS = {"row": Order.ROW_MAJOR, "column": Order.COLUMN_MAJOR}


class Dense:
    """An operand in the memory that it lies in: a batch of matrices with elements of a line one after the other.

    n: the extent that the sparse matrix does not have. ld: elements from line to line, a line being a row, or in
    column-major order a column. step: elements from matrix to matrix.
    """

    __slots__ = ("batch", "ld", "n", "step", "view")

    def __init__(self, found: View, batch: int, n: int, ld: int, step: int) -> None:
        self.view, self.batch, self.n, self.ld, self.step = found, batch, n, ld, step


def take(found: View, fixed: int, axis: int, order: Order, what: str) -> Dense | None:
    """The operand, or None where its strides do not go and it has to be copied.

    fixed: the extent that it has to have, along axis -2 (rows) or -1 (columns); the other one is n. One dimension alone
    is that of `fixed`. Raises ArgumentError.
    """
    shape, strides = found.shape, found.strides
    if len(shape) == 1:
        shape, strides = ((*shape, 1), (*strides, 1)) if axis == -2 else ((1, *shape), (0, *strides))
    if len(shape) < 2 or shape[axis] != fixed:
        raise ArgumentError(f"{what} of shape {found.shape} does not have {fixed} {'rows' if axis == -2 else 'columns'}")
    n = shape[-3 - axis]
    lines, length = shape[-2:] if order == Order.ROW_MAJOR else shape[:-3:-1]
    apart, inner = strides[-2:] if order == Order.ROW_MAJOR else strides[:-3:-1]
    outer = shape[:-2]
    batch = prod(outer)
    if found.size == 0:
        return Dense(found, batch, n, max(length, 1), 0)
    ld = apart if lines > 1 else length
    if (length > 1 and inner != 1) or ld < length:
        return None
    step = 0
    expected: int | None = None
    if batch > 1:
        # The outer indices must walk in even steps, the last of them the fastest.
        for extent, stride in zip(reversed(outer), reversed(strides[:-2]), strict=True):
            if extent == 1:
                continue
            if expected is None:
                step = expected = stride
            if stride != expected or stride < 0:
                return None
            expected *= extent
    return Dense(found, batch, n, ld, step)


def transposed(found: View) -> View:
    """The view with its last two dimensions swapped; of one dimension the same."""
    if found.ndim < 2:
        return found
    array: Any = found.array
    made = view(array.transpose(-1, -2) if found.kind == "torch" else array.swapaxes(-1, -2))
    made.dtype = found.dtype
    return made


def taken(found: View, fixed: int, axis: int, order: Order, what: str, stream: int | None) -> Dense:
    """The operand, or a copy of it. stream: of the product, None: the current one. Raises ArgumentError."""
    as_it_is = take(found, fixed, axis, order, what)
    if as_it_is is not None:
        return as_it_is
    require_stream(found, stream, what)
    copy = contiguous(found) if order == Order.ROW_MAJOR else transposed(contiguous(transposed(found)))
    copied = take(copy, fixed, axis, order, what)
    assert copied is not None
    return copied


def made(like: View, shape: tuple[int, ...], dtype: Dtype, order: Order) -> View:
    """A new operand of the kind of `like`."""
    if order == Order.ROW_MAJOR or len(shape) < 2:
        return empty(like, shape, dtype)
    return transposed(empty(like, (*shape[:-2], shape[-1], shape[-2]), dtype))
