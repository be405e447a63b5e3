# SPDX-License-Identifier: Apache-2.0
"""Handles of the library that are destroyed when their last user is gone, in whatever order users go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

_Same = TypeVar("_Same")


class Shared:
    """A native handle with a count of its users.

    The garbage collector finalises the objects of a cycle in any order, so that a matrix's object may go before its
    plans'. The count sees to it that the handle goes last. It is a list, which has its first element for the user that
    ends the handle: appending and popping are atomic, take no lock that a finaliser could find taken, and need no care
    after a fork.
    """

    __slots__ = ("_base", "_destroy", "_users", "pointer")

    def __init__(self, pointer: int, destroy: Callable[[int], None], base: Shared | None = None) -> None:
        self.pointer = pointer
        self._destroy = destroy
        self._users = [True]
        self._base = base.retain() if base is not None else None

    def retain(self) -> Shared:
        """Adds a user, who has to release it."""
        self._users.append(False)
        return self

    def release(self) -> None:
        """Takes a user away. The last one destroys the handle, then releases what it stands on."""
        if self._users.pop():
            self._destroy(self.pointer)
            if self._base is not None:
                self._base.release()


class Owner:
    """An object with a handle, of which it is one user: its copies are the object itself, and no other process has it."""

    _handle: Shared

    @property
    def pointer(self) -> int:
        """The library's handle, which lives as long as this object and what was made with it."""
        return self._handle.pointer

    def __copy__(self: _Same) -> _Same:
        return self

    def __deepcopy__(self: _Same, memo: dict[int, Any]) -> _Same:
        return self

    def __reduce__(self) -> NoReturn:
        name = type(self).__name__
        raise TypeError(f"a {name} belongs to this process and cannot be pickled: pickle what it is made of, and make a {name} there")

    def __del__(self) -> None:
        handle = self.__dict__.get("_handle")
        if handle is not None:
            handle.release()
