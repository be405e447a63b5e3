# SPDX-License-Identifier: Apache-2.0
"""Weights on GPUs that stay as they are: planned from a copy of the index on the host, their values kept packed by the plans.

A frozen weight is known by where its values lie and by the number of changes that torch has counted in them. One that torch
has changed since is multiplied as any other, and what was kept for it is dropped.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .._abi import Memory
from .._library import library
from ..context import default_context
from ..errors import ArgumentError, UnsupportedError
from ..pattern import Pattern
from . import _known
from ._device_patterns import DeviceEntry, identity, of_one_type
from ._types import require_dtype


class FrozenValues:
    """What tells the values of a frozen weight from all others, earlier and later ones too."""

    def __init__(self, values: torch.Tensor) -> None:
        self._address, self._version = values.data_ptr(), values._version
        self._storage = StorageWeakRef(values.untyped_storage())
        self.is_dropped = False

    def are(self, values: torch.Tensor) -> bool:
        """Whether these are the ones, and torch knows of no change."""
        same = values.data_ptr() == self._address and values._version == self._version
        return same and not self.is_dropped and not self.are_gone()

    def lie_at(self, address: int) -> bool:
        """Whether somebody has them, and they have this address."""
        return address == self._address and not self.are_gone()

    def are_gone(self) -> bool:
        """Whether nobody has them any more."""
        return self._storage.expired()


class FrozenEntry(DeviceEntry):
    """The pattern of a frozen weight, with its values, and its plans."""

    def __init__(self, pattern: Pattern, values: torch.Tensor, crow: torch.Tensor, col: torch.Tensor, size: tuple[int, int]) -> None:
        super().__init__(pattern, identity(crow, col), crow, col)
        self.values = FrozenValues(values)
        self._look = values.shape, values.stride(), values.dtype, size

    def is_of(self, values: torch.Tensor, crow: torch.Tensor, col: torch.Tensor, size: Sequence[int]) -> bool:
        """Whether the weight, which has the values that were frozen, is looked at as it was then."""
        look = values.shape, values.stride(), values.dtype, tuple(size)
        return look == self._look and identity(crow, col) == self.identity


class FrozenWeights:
    """Entries by the address of their values."""

    def __init__(self) -> None:
        self._entries: dict[int, FrozenEntry] = {}
        self._of_graphs: list[FrozenEntry] = []
        """Those that changed, or were let go of, while a CUDA graph uses their plans."""
        self._lock = threading.RLock()

    def freeze(self, values: torch.Tensor, crow: torch.Tensor, col: torch.Tensor, size: Sequence[int]) -> None:
        """Reads the index to the host, and so waits for it. Raises what Pattern does."""
        if type(values) not in _known.PLAIN:
            raise UnsupportedError(
                f"values are a {type(values).__name__}, and not a plain tensor: only a weight that lies whole on one GPU is frozen"
            )
        if values.is_inference():
            raise ArgumentError("values that were made in inference mode may change unseen: clone them outside of torch.inference_mode()")
        if not values.is_contiguous() or values.data_ptr() & 15:
            raise ArgumentError("values to be frozen are contiguous, and begin at a multiple of 16 bytes: clone them")
        context = default_context(Memory.DEVICE, values.get_device())
        extents = (int(size[0]), int(size[1]))
        block = (values.shape[1], values.shape[2])
        with torch.no_grad():
            starts, columns = (part.cpu() for part in of_one_type(crow, col))
        kind = require_dtype(values.dtype)
        pattern = Pattern(starts, columns, extents, block, dtype=kind, sort=True, context=context, frozen=True)
        entry = FrozenEntry(pattern, values, crow, col, extents)
        # Not by the pattern's own method, which would keep the tensor for as long as the pattern.
        lib = library()
        stream = torch.cuda.current_stream(values.device).cuda_stream
        lib.require(lib.matrix_set_values(entry.pattern.pointer, values.data_ptr(), int(Memory.DEVICE), stream))
        with self._lock:
            self.drop_gone()
            self.thaw(values)
            self._entries[values.data_ptr()] = entry
        weakref.finalize(values, self._drop, values.data_ptr(), entry.values).atexit = False
        _known.forget()  # calls that are kept pack the values

    def thaw(self, values: torch.Tensor) -> None:
        """Drops what is kept for them."""
        found = self._entries.get(values.data_ptr())
        if found is not None:
            self._drop(values.data_ptr(), found.values)

    def find(self, values: torch.Tensor, crow: torch.Tensor, col: torch.Tensor, size: Sequence[int]) -> FrozenEntry | None:
        """The entry of a weight that is frozen."""
        if not self._entries:
            return None
        if not values.is_cuda or values.is_inference():
            self.drop_gone()
            return None
        found = self._entries.get(values.data_ptr())
        if found is None:
            self.drop_gone()
            return None
        if not found.values.are(values):
            self._drop(values.data_ptr(), found.values)
            return None
        return found if found.is_of(values, crow, col, size) else None

    def keep_for_graphs(self, values: torch.Tensor) -> None:
        """Keeps values that are to be replaced, for as long as CUDA graphs that multiply by them as frozen ones."""
        if not values.is_cuda:
            return
        address = values.data_ptr()
        with self._lock:
            for entry in (*self._entries.values(), *self._of_graphs):
                if entry.verdict.captured and entry.values.lie_at(address):
                    entry.verdict.captured.append(values)

    def drop_gone(self) -> None:
        """What is kept for values that nobody has any more, as those of a layer that was given others."""
        with self._lock:
            for address, entry in list(self._entries.items()):
                if entry.values.are_gone():
                    self._drop(address, entry.values)

    def _drop(self, address: int, values: FrozenValues) -> None:
        """The entry at the address, if it still is that of these values."""
        with self._lock:
            entry = self._entries.get(address)
            if entry is None or entry.values is not values:
                return
            values.is_dropped = True  # for calls that a graph keeps
            self._entries.pop(address, None)
            if entry.verdict.captured:
                self._of_graphs.append(entry)

    def clear(self, captured: bool) -> None:
        """Forgets what is frozen; `captured`: also what CUDA graphs use, none of which may run any more."""
        with self._lock:
            for address, entry in list(self._entries.items()):
                self._drop(address, entry.values)
            if captured:
                for entry in self._of_graphs:
                    entry.verdict.captured.clear()  # the calls in it refer to the list
                self._of_graphs.clear()


frozen = FrozenWeights()
