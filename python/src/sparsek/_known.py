# SPDX-License-Identifier: Apache-2.0
"""Products of NumPy arrays that were made before, found again in the time that a few questions take.

The cache finds a pattern by views of all arrays. Here the arrays of an index are known as objects, and their structs are
compared with what they were: an array that is changed in any way, and another object at its address, has another struct. The
index is compared byte by byte here too.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ._arrays import HAS_FIELDS, address_in, fields_of
from .bsr import BSR
from .cache import Entry, cache
from .plan import Plan

_ndarray = np.ndarray


class Known:
    """A product that was made before, of arrays of NumPy without gaps and without options, and what its arrays were."""

    __slots__ = (
        "__weakref__",
        "col",
        "col_bytes",
        "col_was",
        "columns",
        "crow",
        "crow_bytes",
        "crow_was",
        "dtypes",
        "is_plain",
        "of",
        "plan",
        "rows",
    )

    def __init__(self, entry: Entry, plan: Plan, matrix: BSR, b: np.ndarray[Any, Any]) -> None:
        self.plan = plan
        self.is_plain = plan.is_for(b)
        self.of = b.dtype, entry.starts, entry.columns
        self.dtypes = matrix.crow.dtype, matrix.col.dtype  # while they are held, nothing else comes to lie at their addresses
        self.crow, self.crow_bytes = fields_of(matrix.crow), len(entry.starts)
        self.col, self.col_bytes = fields_of(matrix.col), len(entry.columns)
        self.crow_was, self.col_was = bytearray(self.crow), bytearray(self.col)
        self.rows = entry.starts.memory_at(address_in(self.crow_was))
        self.columns = entry.columns.memory_at(address_in(self.col_was))


_MOST = 4096
_kept: dict[Any, weakref.ref[Known]] = {}


def _key(matrix: BSR, b: Any, transpose: bool, tune: float) -> Any:
    return id(matrix.crow), id(matrix.col), matrix.shape, matrix.values.shape, b.shape, transpose, tune


def known(matrix: BSR, b: np.ndarray[Any, Any], transpose: bool, tune: float) -> Known | None:
    """The product that is known and whose index still has the same bytes."""
    crow, col, values = matrix.crow, matrix.col, matrix.values
    if not (type(crow) is _ndarray and type(col) is _ndarray and type(values) is _ndarray and type(matrix.shape) is tuple):
        return None
    ref = _kept.get((id(crow), id(col), matrix.shape, values.shape, b.shape, transpose, tune))
    found = ref() if ref is not None else None
    if found is None:
        return None
    dtype, starts, columns = found.of
    if (
        b.dtype is dtype
        and values.dtype is dtype
        and b.flags.carray
        and values.flags.carray
        and found.crow_was == found.crow
        and found.col_was == found.col
        and crow.nbytes == found.crow_bytes
        and col.nbytes == found.col_bytes
        # The memory is there: the arrays own it.
        and starts == found.rows
        and columns == found.columns
    ):
        cache.hit()
        return found
    return None


def keep(entry: Entry, plan: Plan, matrix: BSR, b: np.ndarray[Any, Any], transpose: bool, tune: float) -> None:
    """Keeps a product for `known`, as long as the cache has its pattern."""
    crow, col = matrix.crow, matrix.col
    if not (
        HAS_FIELDS
        and type(crow) is type(col) is type(matrix.values) is _ndarray
        and type(matrix.shape) is tuple
        and b.dtype is matrix.values.dtype
        and (crow.ndim, col.ndim) == (1, 1)
        and all(array.flags.carray for array in (crow, col, matrix.values, b))
        and (crow.nbytes, col.nbytes) == (len(entry.starts), len(entry.columns))
    ):
        return
    if len(_kept) >= _MOST:
        _kept.clear()
    key = _key(matrix, b, transpose, tune)
    found = Known(entry, plan, matrix, b)
    entry.calls.put(key, found)
    _kept[key] = weakref.ref(found)
