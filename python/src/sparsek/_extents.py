# SPDX-License-Identifier: Apache-2.0
"""Arguments that are some integers: shapes, blocks."""

from __future__ import annotations

from typing import Any

from .errors import ArgumentError


def extents(given: Any, what: str, *names: str) -> tuple[int, ...]:
    """As many integers as there are names. Raises ArgumentError.

    given: the argument called `what`. names: what its integers are, for the message.
    """
    try:
        found = tuple(int(extent) for extent in given)
    except (TypeError, ValueError):
        found = ()
    if len(found) != len(names):
        raise ArgumentError(f"{what}={given!r} is not ({', '.join(names)}): give {len(names)} integers")
    return found
