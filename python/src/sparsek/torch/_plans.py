# SPDX-License-Identifier: Apache-2.0
"""Plans of the library for tensors on the CPU, kept from one product to the next.

Patterns are kept by sparsek.cache, which compares an index with the bytes that its pattern was made of, and so do the calls
that are kept here: neither an index that was changed in place nor another one at its address is served what is stale.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Sequence
from typing import Any, cast

import torch

from .. import _abi
from .._abi import Dtype
from .._arrays import contiguous, view
from .._handles import Shared
from .._library import library
from ..cache import Cache, CacheInfo, Entry
from ..context import Context
from ..dtypes import BYTES
from ..errors import DtypeError, UnsupportedError
from ..pattern import Pattern

DTYPES = {torch.bfloat16: Dtype.BF16, torch.float16: Dtype.FP16, torch.float32: Dtype.FP32, torch.float64: Dtype.FP64}

_RECENT = 1024

patterns = Cache(256 << 20)
_contexts: dict[int, Context] = {}
_recent: dict[Any, weakref.ref[Call]] = {}

_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes, _memcmp.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t], ctypes.c_int


def cache_info() -> CacheInfo:
    """What the cache of patterns did since it was cleared, and what it holds. Products that are repeated do not ask it."""
    return patterns.info()


def cache_clear() -> None:
    """Drops the patterns and plans that are kept between products."""
    _recent.clear()
    patterns.clear()


def _after_fork() -> None:
    patterns.__init__(patterns.limit)  # type: ignore[misc]  # another thread of the parent may have held its lock
    _recent.clear()


os.register_at_fork(after_in_child=_after_fork)


def _context() -> Context:
    """That of as many threads as torch has, so that the two do not compete for cores."""
    threads = torch.get_num_threads()
    found = _contexts.get(threads)
    if found is None:
        found = _contexts.setdefault(threads, Context("cpu", threads=threads))
    return found


def entry_of(crow: torch.Tensor, col: torch.Tensor, size: Sequence[int], block: tuple[int, int], dtype: torch.dtype) -> Entry:
    """The pattern of this index, with its plans. Raises what Pattern does."""
    kind = DTYPES.get(dtype)
    if kind is None:
        raise DtypeError(f"elements of {dtype} are not served: bfloat16, float16, float32 and float64 are")
    if not crow.is_cpu or not col.is_cpu:
        raise UnsupportedError("sparsek.torch is served on the CPU: the index lies elsewhere")
    shape = (int(size[0]), int(size[1]))
    return patterns.entry(contiguous(view(crow)), contiguous(view(col)), shape, block, kind, True, _context())


class _Plan:
    """A plan, with options of sparsek_plan_options."""

    def __init__(self, pattern: Pattern, options: dict[str, int]) -> None:
        lib = library()
        given = _abi.PlanOptions(alignment=BYTES[pattern.dtype], dtype_c=int(pattern.dtype), **options)
        pointer = ctypes.c_void_p()
        lib.require(lib.plan_create(pattern.pointer, ctypes.byref(given), ctypes.addressof(pointer)))
        assert pointer.value is not None
        self.pointer = ctypes.c_void_p(pointer.value)
        self._handle = Shared(pointer.value, lib.plan_destroy, pattern._handle)

    def __del__(self) -> None:
        handle = self.__dict__.get("_handle")
        if handle is not None:
            handle.release()


class Call:
    """A product of operands whose shapes, strides and types are known. Any number of threads may make it at once."""

    __slots__ = ("__weakref__", "_columns", "_dtype", "_lib", "_members", "_multiply", "_plan", "_shape", "_spare", "_starts")

    def __init__(self, entry: Entry, options: dict[str, int], shape: tuple[int, ...], dtype: torch.dtype, members: dict[str, Any]) -> None:
        plan = entry.plan(tuple(options.items()), lambda: cast(Any, _Plan(entry.pattern, options)))
        self._plan, self._lib = cast(_Plan, plan), library()
        self._multiply = self._lib.multiply
        self._starts, self._columns = entry.starts, entry.columns
        self._shape, self._dtype, self._members = shape, dtype, members
        self._spare: list[tuple[Any, Any]] = []

    def serves(self, starts: int, columns: int) -> bool:
        """Whether the index at these addresses, which has as many elements, is the one that this is for."""
        return not _memcmp(self._starts, starts, len(self._starts)) and not _memcmp(self._columns, columns, len(self._columns))

    def run(self, values: int, b: int, bias: int = 0, x: int = 0, out: torch.Tensor | None = None) -> torch.Tensor:
        """Multiplies operands at these addresses, into `out` or a new tensor."""
        c = torch.empty(self._shape, dtype=self._dtype) if out is None else out
        try:
            spare = self._spare.pop()
        except IndexError:
            args = _abi.MultiplyArgs(alpha=1.0, **self._members)
            spare = args, ctypes.pointer(args)
        args = spare[0]
        args.values, args.b, args.bias, args.x, args.c = values, b, bias, x, c.data_ptr()
        status = self._multiply(self._plan.pointer, spare[1])
        if status:
            self._lib.require(status)
        self._spare.append(spare)
        return c


def recent(key: Any, crow: torch.Tensor, col: torch.Tensor) -> Call | None:
    """The call that was kept for this key, if the index is still the same."""
    found = _recent.get(key)
    if found is None:
        return None
    call = found()
    return call if call is not None and call.serves(crow.data_ptr(), col.data_ptr()) else None


def keep(key: Any, entry: Entry, call: Call) -> None:
    """Keeps a call for operands of this key as long as the cache of patterns keeps the pattern."""
    if len(_recent) >= _RECENT:
        _recent.clear()
    _recent[key] = weakref.ref(call)
    entry.plan(("call", key), lambda: cast(Any, call))
