# SPDX-License-Identifier: Apache-2.0
"""Handles of the library that are destroyed when their last user is gone, in whatever order users go."""

from __future__ import annotations

from collections.abc import Callable


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
