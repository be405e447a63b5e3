# SPDX-License-Identifier: Apache-2.0
"""Products of NumPy arrays that were made before, found again in the time that a few questions take.

The cache finds a pattern by views of all arrays. Where these are of NumPy and lie without gaps, their addresses, extents and
types say as much. The index is compared byte by byte here too.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np

from ._arrays import address_of
from .bsr import BSR
from .cache import Entry, cache
from .plan import Plan


class _Known(NamedTuple):
    """A product that was made before, of arrays of NumPy without gaps and without options, and what its arrays were."""

    entry: weakref.ref[Entry]
    plan: weakref.ref[Plan]
    extents: tuple[tuple[int, ...], tuple[int, ...]]
    dtypes: tuple[Any, Any, Any]


_MOST = 4096
_kept: dict[Any, _Known] = {}


def _key(matrix: BSR, b: Any, transpose: bool, tune: float) -> Any:
    return address_of(matrix.crow), address_of(matrix.col), matrix.shape, matrix.values.shape, b.shape, transpose, tune


def _is_plain(matrix: BSR, b: Any) -> bool:
    return (
        type(matrix.crow) is type(matrix.col) is type(matrix.values) is np.ndarray
        and b.flags.carray
        and matrix.crow.flags.carray
        and matrix.col.flags.carray
        and type(matrix.shape) is tuple
    )


def known(matrix: BSR, b: Any, transpose: bool, tune: float) -> Plan | None:
    """The plan of a product that is known and whose index still has the same bytes."""
    if not _is_plain(matrix, b):
        return None
    found = _kept.get(_key(matrix, b, transpose, tune))
    if found is None:
        return None
    crow, col, entry, plan = matrix.crow, matrix.col, found.entry(), found.plan()
    first, second, third = found.dtypes
    if (
        entry is None
        or plan is None
        or found.extents != (crow.shape, col.shape)
        or crow.dtype is not first
        or col.dtype is not second
        or not (matrix.values.dtype is b.dtype is third)
        or not (entry.starts.lie_at(address_of(crow)) and entry.columns.lie_at(address_of(col)))
    ):
        return None
    cache.hit()
    return plan


def keep(entry: Entry, plan: Plan, matrix: BSR, b: Any, transpose: bool, tune: float) -> None:
    """Keeps a product for `known`, as long as the cache has its pattern."""
    if not _is_plain(matrix, b):
        return
    if len(_kept) >= _MOST:
        _kept.clear()
    kept = _Known(
        weakref.ref(entry), weakref.ref(plan), (matrix.crow.shape, matrix.col.shape), (matrix.crow.dtype, matrix.col.dtype, b.dtype)
    )
    _kept[_key(matrix, b, transpose, tune)] = kept
