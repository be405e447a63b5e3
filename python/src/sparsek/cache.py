# SPDX-License-Identifier: Apache-2.0
"""Patterns and plans of matrices in host memory, kept from one product to the next.

An entry has a copy of the index that it was made of, and is used only where the index now has the very same bytes: so
neither an array that was changed in place nor one that came to lie at the address of another is served what is stale.
The comparison reads the index once, at the speed of memory.
"""

from __future__ import annotations

import ctypes
import os
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from ._abi import Dtype
from ._arrays import View
from ._index import require_index
from .context import Context
from .errors import ArgumentError
from .pattern import Pattern

__all__ = ["CacheInfo", "cache_clear", "cache_info", "cache_limit"]

_PLANS, _CALLS = 128, 512  # of one pattern

Kind = tuple[Any, ...]
_Kept = TypeVar("_Kept")


class CacheInfo(NamedTuple):
    """What the cache did: patterns found and made, and what it holds now."""

    hits: int
    misses: int
    patterns: int
    bytes: int
    """Of the copies of indices; the library's own patterns and plans take about as much, or a few times that."""


class IndexBytes(bytearray):
    """A copy of an array of an index. It compares with memory as it lies, and in less time than a call of memcmp by ctypes takes."""

    def __init__(self, index: View) -> None:
        memory = ctypes.c_char * int(index.array.nbytes)
        super().__init__(memory.from_address(index.address))
        self.memory_at: Callable[[int], object] = memory.from_address

    def lie_at(self, address: int) -> bool:
        """Whether the memory there, which must be as long, holds the same."""
        return self == self.memory_at(address)


class Kept(Generic[_Kept]):
    """What was made of a pattern, by key: so many, of which the oldest goes where there would be more."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._made: OrderedDict[Kind, _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Kind, make: Callable[[], _Kept]) -> _Kept:
        """The one of that key, made by `make` where there is none."""
        found = self._made.get(key)
        if found is not None:
            return found
        with self._lock:
            found = self._made.get(key)
            if found is None:
                found = self._made[key] = make()
                if len(self._made) > self.most:
                    self._made.popitem(last=False)
        return found

    def put(self, key: Kind, made: _Kept) -> None:
        """Keeps this one, in the place of another one of that key."""
        with self._lock:
            self._made[key] = made
            if len(self._made) > self.most:
                self._made.popitem(last=False)


class Entry:
    """A pattern and its plans."""

    def __init__(self, kind: Kind, pattern: Pattern, starts: IndexBytes, columns: IndexBytes) -> None:
        self.kind, self.pattern, self.starts, self.columns = kind, pattern, starts, columns
        self.place: Kind = ()
        self.plans: Kept[Any] = Kept(_PLANS)
        self.calls: Kept[Any] = Kept(_CALLS)
        """What else a module makes of it, and keeps with it."""

    def serves(self, starts: View, columns: View) -> bool:
        """Whether it was made of an index with these bytes."""
        return bool(
            len(self.starts) == starts.array.nbytes
            and len(self.columns) == columns.array.nbytes
            and self.starts.lie_at(starts.address)
            and self.columns.lie_at(columns.address)
        )


class Cache:
    """Entries by what they were made of: first where that lies, then what it is."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.lock = threading.RLock()
        self._by_place: dict[Kind, Entry] = {}
        self._by_content: OrderedDict[Kind, Entry] = OrderedDict()
        self._hits = self._misses = self._bytes = 0

    def entry(
        self, starts: View, columns: View, shape: tuple[int, int], block: tuple[int, int], dtype: Dtype, sort: bool, context: Context
    ) -> Entry:
        """The entry of an index in host memory, whose arrays are contiguous. Raises what Pattern does."""
        kind = (shape, block, dtype, sort, starts.name, columns.name, context.pointer)
        place = (starts.address, columns.address, starts.shape, columns.shape, kind)
        found = self._by_place.get(place)
        if found is not None and found.serves(starts, columns):
            self._hits += 1
            return found
        require_index(starts, "crow")
        require_index(columns, "col")
        # The bytes are taken first: what is made, and what is compared later, is made of them alone.
        row_bytes, column_bytes = IndexBytes(starts), IndexBytes(columns)
        content = (zlib.crc32(column_bytes, zlib.crc32(row_bytes)), len(row_bytes), len(column_bytes), kind)
        with self.lock:
            found = self._by_content.get(content)
            if found is not None and (found.starts, found.columns) == (row_bytes, column_bytes):
                self._hits += 1
                self._by_content.move_to_end(content)
            else:
                self._misses += 1
                rows = np.frombuffer(row_bytes, starts.name)
                pattern = Pattern(rows, np.frombuffer(column_bytes, columns.name), shape, block, dtype=dtype, sort=sort, context=context)
                if found is not None:
                    self._drop(content)  # another index with the same checksum
                found = self._by_content[content] = Entry(kind, pattern, row_bytes, column_bytes)
                self._bytes += len(row_bytes) + len(column_bytes)
            self._by_place.pop(found.place, None)
            found.place = place
            self._by_place[place] = found
            while self._bytes > self.limit and len(self._by_content) > 1:
                self._drop(next(iter(self._by_content)))
            return found

    def hit(self) -> None:
        """Counts an entry that was found without asking for it here."""
        self._hits += 1

    def _drop(self, content: Kind) -> None:
        entry = self._by_content.pop(content)
        self._bytes -= len(entry.starts) + len(entry.columns)
        if self._by_place.get(entry.place) is entry:
            del self._by_place[entry.place]

    def clear(self) -> None:
        """Lets go of all entries."""
        with self.lock:
            self._by_place.clear()
            self._by_content.clear()
            self._hits = self._misses = self._bytes = 0

    def info(self) -> CacheInfo:
        """What it did and holds."""
        with self.lock:
            return CacheInfo(self._hits, self._misses, len(self._by_content), self._bytes)


cache = Cache(256 << 20)


def cache_info() -> CacheInfo:
    """What bsr_gemm's cache did since it was cleared, and what it holds."""
    return cache.info()


def cache_clear() -> None:
    """Lets bsr_gemm's cache drop its patterns and plans. Those in use end with their products."""
    cache.clear()


def cache_limit(bytes_of_indices: int) -> None:
    """The most that the copies of indices may take, in bytes: 256 MiB unless said. The last entry always stays.

    Raises ArgumentError where that is negative.
    """
    if bytes_of_indices < 0:
        raise ArgumentError(f"bytes_of_indices={bytes_of_indices} is negative: 0 keeps the last entry alone")
    cache.limit = bytes_of_indices


def _after_fork() -> None:
    # Another thread of the parent may have held a lock, and left what it changes half done.
    global cache
    cache.__init__(cache.limit)  # type: ignore[misc]


os.register_at_fork(after_in_child=_after_fork)
