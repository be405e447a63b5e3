# SPDX-License-Identifier: Apache-2.0
"""Patterns of indices in a GPU's memory, kept without a look at what that holds.

An index is known by the storages that it lies in and by the number of changes that torch has counted in them. The storages'
objects are held weakly: their memory is freed with the last tensor, but none of their addresses comes again. So neither an
index that was changed in place nor another one at its address is served a stale pattern.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .._abi import Dtype, Memory
from ..cache import CacheInfo, Kept
from ..context import default_context
from ..errors import ArgumentError
from ..pattern import Pattern

_PLANS = 128  # of one pattern
_CALLS = 512

is_capturing: Callable[[], bool] = getattr(torch._C, "_cuda_isCurrentStreamCapturing", lambda: False)  # none in a torch without CUDA

_waits = os.environ.get("CUDA_LAUNCH_BLOCKING") == "1"


class Checked(Protocol):
    """What is made of an index, and says whether that is good: a pattern, or what stands for it."""

    def require(self, wait: bool = True) -> bool:
        """As of Pattern."""


class Verdict:
    """Whether the index of a pattern is known to be good, and what CUDA graphs use of it."""

    def __init__(self, pattern: Checked) -> None:
        self._pattern = pattern
        self.is_known = pattern.require(_waits)
        self.captured: list[Any] = []

    def look(self) -> None:
        """Raises IndexFault where the index was found to be wrong by now."""
        self.is_known = self._pattern.require(wait=False)


class DeviceEntry:
    """A pattern, its plans, and the storages of its index."""

    def __init__(self, pattern: Any, known_by: Any, crow: torch.Tensor, col: torch.Tensor) -> None:
        self.pattern, self.identity = pattern, known_by
        self.plans: Kept[Any] = Kept(_PLANS)
        self.calls: Kept[Any] = Kept(_CALLS)
        self.bytes = crow.nbytes + col.nbytes
        self.verdict = Verdict(pattern)
        self.storages = StorageWeakRef(crow.untyped_storage()), StorageWeakRef(col.untyped_storage())

    def is_gone(self) -> bool:
        """Whether nobody has the index any more, nor a graph that uses it."""
        return not self.verdict.captured and (self.storages[0].expired() or self.storages[1].expired())


class DevicePatterns:
    """Entries by the identity of their index. One that a CUDA graph uses stays until it is cleared.

    make: makes the pattern of an index, with the arguments of `entry`, also in a capture; None: a Pattern, in none.
    """

    def __init__(self, limit: int, make: Callable[..., Checked] | None = None) -> None:
        self.limit, self._make = limit, make
        self._entries: OrderedDict[Any, DeviceEntry] = OrderedDict()
        self._lock = threading.RLock()
        self._hits = self._misses = self._bytes = 0

    def entry(self, crow: torch.Tensor, col: torch.Tensor, shape: tuple[int, int], block: tuple[int, int], dtype: Dtype) -> DeviceEntry:
        """The entry of the index. Raises what Pattern does, and ArgumentError in a capture."""
        known_by = identity(crow, col)
        kind = (crow.numel(), col.numel(), crow.stride(), col.stride(), crow.dtype, col.dtype)
        key = (known_by, kind, shape, block, dtype)
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._hits += 1
                self._entries.move_to_end(key)
                return found
            if self._make is None and is_capturing():
                raise ArgumentError(
                    "this index is not known yet, and its stream is being captured into a CUDA graph: make one product of the "
                    "same kind before the capture"
                )
            self._misses += 1
            for gone in [kept for kept, entry in self._entries.items() if entry.is_gone()]:
                self._drop(gone)
            pattern = (self._make or _made)(crow, col, shape, block, dtype)
            found = self._entries[key] = DeviceEntry(pattern, known_by, crow, col)
            self._bytes += found.bytes
            if self._bytes > self.limit:
                self._shrink(key)
            return found

    def _shrink(self, newest: Any) -> None:
        for key, entry in list(self._entries.items()):
            if self._bytes <= self.limit:
                return
            if key != newest and not entry.verdict.captured:
                self._drop(key)

    def keep_for_graphs(self, crow: torch.Tensor, col: torch.Tensor, values: torch.Tensor) -> None:
        """Keeps the values of a matrix that gets others, for as long as CUDA graphs that use them with this index."""
        if not crow.is_cuda or crow.is_inference() or col.is_inference():
            return
        known_by = identity(crow, col)
        with self._lock:
            for entry in self._entries.values():
                if entry.identity == known_by and entry.verdict.captured:
                    entry.verdict.captured.append(values)

    def _drop(self, key: Any) -> None:
        self._bytes -= self._entries.pop(key).bytes

    def clear(self, captured: bool) -> None:
        """Lets go of the entries, or of those that no graph uses."""
        with self._lock:
            for key, entry in list(self._entries.items()):
                if captured or not entry.verdict.captured:
                    self._drop(key)
                    entry.verdict.captured.clear()  # the calls in it refer to the list
            self._hits = self._misses = 0

    def info(self) -> CacheInfo:
        """What it did and holds."""
        with self._lock:
            return CacheInfo(self._hits, self._misses, len(self._entries), self._bytes)


def of_one_type(crow: torch.Tensor, col: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both as the library takes them: of the wider of their types, and without gaps."""
    if crow.dtype != col.dtype:
        wide = crow.dtype if crow.dtype.itemsize > col.dtype.itemsize else col.dtype
        crow, col = crow.to(wide), col.to(wide)
    return crow.contiguous(), col.contiguous()


def _made(crow: torch.Tensor, col: torch.Tensor, shape: tuple[int, int], block: tuple[int, int], dtype: Dtype) -> Pattern:
    context = default_context(Memory.DEVICE, crow.get_device())
    with torch.no_grad():
        starts, columns = of_one_type(crow, col)
        return Pattern(starts, columns, shape, block, dtype=dtype, sort=True, context=context, wait=False)


def identity(crow: torch.Tensor, col: torch.Tensor) -> tuple[int, ...]:
    """What tells one index on a GPU, of given extents and types, from all others, earlier and later ones too."""
    try:
        return (
            crow._version,
            col._version,
            crow.data_ptr(),
            col.data_ptr(),
            crow.untyped_storage()._cdata,
            col.untyped_storage()._cdata,
        )
    except RuntimeError:
        raise ArgumentError(
            "an index that was made in inference mode may change unseen: clone it outside of torch.inference_mode()"
        ) from None
