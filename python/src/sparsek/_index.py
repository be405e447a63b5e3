# SPDX-License-Identifier: Apache-2.0
"""The two arrays of an index: of one type, one dimension and without gaps, as the library takes them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ._abi import IndexType, Memory
from ._arrays import View, contiguous, place, view
from .errors import ArgumentError, DtypeError

_TYPES = {"int32": IndexType.INT32, "int64": IndexType.INT64, "int16": IndexType.INT16}
_WIDTHS = ("int16", "int32", "int64")


def index_type(name: str, what: str) -> int:
    """The library's number for a type of index. Raises DtypeError."""
    found = _TYPES.get(name)
    if found is None:
        raise DtypeError(f"{what} is of {name}: an index is of int16, int32 or int64")
    return int(found)


def require_index(found: View, what: str) -> None:
    """Raises ArgumentError or DtypeError where it is no array of an index."""
    if len(found.shape) != 1:
        raise ArgumentError(f"{what} has {found.ndim} dimensions, and not one")
    index_type(found.name, what)


def index_view(array: Any) -> View:
    """The contiguous view of one array of an index, which is not looked at yet. Raises ArgumentError."""
    if type(array) is list and not array:
        array = np.empty(0, np.int32)  # else NumPy takes it for one of float64
    return contiguous(view(array))


def index_pair(crow: Any, col: Any) -> tuple[View, View]:
    """The views of both, of one type and in one memory: on the host, the narrower one is widened.

    Raises ArgumentError and DtypeError.
    """
    starts, columns = index_view(crow), index_view(col)
    require_index(starts, "crow")
    require_index(columns, "col")
    if starts.memory == columns.memory == Memory.HOST:
        wide = max(starts.name, columns.name, key=_WIDTHS.index)
        return _widened(starts, wide), _widened(columns, wide)
    if (starts.memory, starts.device) != (columns.memory, columns.device):
        raise ArgumentError(f"crow lies {place(starts)} and col {place(columns)}: copy one of them to where the other is")
    if starts.name != columns.name:
        raise DtypeError(f"crow is of {starts.name} and col of {columns.name}: in device memory both have to be of one type")
    return starts, columns


def _widened(found: View, name: str) -> View:
    if found.name == name:
        return found
    return view(found.array.to(getattr(sys.modules["torch"], name)) if found.kind == "torch" else found.array.astype(name))
