# SPDX-License-Identifier: Apache-2.0
"""A layout of no blocks in device memory, of the library's own memory: while a stream is captured, torch's takes part in that."""

from __future__ import annotations

import ctypes
from typing import Any

from .._library import library
from ..attention import AttentionLayout
from ..context import Context

_INDEX = 4  # bytes


class _Zeros:
    """So many zeros of int32 on a GPU."""

    def __init__(self, address: int, count: int, device: int) -> None:
        self.device = _Device(device)
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "<i4", "data": (address, False), "version": 3, "strides": None}


class _Device:
    def __init__(self, number: int) -> None:
        self.id = number


class Nothing:
    """Zeros of one GPU, which live as long as the process, and a stream of their own."""

    def __init__(self, context: Context) -> None:
        self._context, self._lib = context, library()
        self.stream = self._made("stream_create")
        self._address, self._count = 0, 0

    def _made(self, function: str, *arguments: int) -> int:
        pointer = ctypes.c_void_p()
        self._lib.require(getattr(self._lib, function)(self._context.pointer, *arguments, ctypes.addressof(pointer)))
        return pointer.value or 0

    def layout(self, rows: int, room: int, form: tuple[int, int, int, int]) -> AttentionLayout:
        """Of so many block rows, none of which has a block, with room for blocks that come by an update."""
        count = rows + 1
        if count > self._count:  # what there was may still be read
            self._address, self._count = self._made("buffer_create", count * _INDEX), count
            self._lib.require(self._lib.buffer_fill(self._context.pointer, self._address, 0, count * _INDEX, self.stream))
        device = self._context.device
        starts: Any = _Zeros(self._address, count, device)
        # Its columns are not read, since there are no blocks.
        return AttentionLayout(starts, _Zeros(self._address, room, device), form[:2], form[2], form[3], bounded=True)
