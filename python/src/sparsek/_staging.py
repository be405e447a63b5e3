# SPDX-License-Identifier: Apache-2.0
"""Arrays of the host for products on a GPU: copies of them in the GPU's memory."""

from __future__ import annotations

import ctypes
from types import TracebackType

from ._abi import Memory
from ._arrays import View
from ._library import library
from .context import Context
from .dtypes import BYTES


def _extent(found: View) -> int:
    """Bytes from the first element of a view to behind its last."""
    assert found.dtype is not None
    return (sum((extent - 1) * stride for extent, stride in zip(found.shape, found.strides, strict=True)) + 1) * BYTES[found.dtype]


class Staging:
    """Copies operands to the memory that a context computes in, and C back when it ends.

    Where the operands are in that memory already, their own addresses are taken.
    """

    force = False
    """For tests: copies on the CPU too."""

    def __init__(self, context: Context, memory: Memory) -> None:
        self.active = memory != context.memory or self.force
        self.stream = 0  # the default one
        self._context, self._lib = context, library()
        self._buffers: list[int] = []
        self._result: tuple[int, int, int] | None = None

    def _copy(self, address: int, size: int, fill: bool) -> int:
        buffer = ctypes.c_void_p()
        self._lib.require(self._lib.buffer_create(self._context.pointer, size, ctypes.addressof(buffer)))
        assert buffer.value is not None
        self._buffers.append(buffer.value)
        if fill:
            self._lib.require(self._lib.buffer_write(self._context.pointer, buffer.value, address, size, self.stream))
        return buffer.value

    def read(self, found: View) -> int:
        """The address of an operand that is read."""
        if not self.active or found.size == 0:
            return found.address
        return self._copy(found.address, _extent(found), True)

    def write(self, found: View, reads: bool) -> int:
        """The address of C, which is read too where `reads` is set, or where there is something between its rows."""
        if not self.active:
            return found.address
        size = _extent(found)
        buffer = self._copy(found.address, size, reads or not found.dense)
        self._result = (found.address, buffer, size)
        return buffer

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if not self.active:
            return
        try:
            if kind is None and self._result is not None:
                address, buffer, size = self._result
                self._lib.require(self._lib.buffer_read(self._context.pointer, address, buffer, size, self.stream))
            self._lib.require(self._lib.stream_synchronize(self._context.pointer, self.stream))
        finally:
            for buffer in self._buffers:
                self._lib.buffer_destroy(self._context.pointer, buffer)
