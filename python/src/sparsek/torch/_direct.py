# SPDX-License-Identifier: Apache-2.0
"""Calls of torch.ops.sparsek.mm, linear and sdd by Python, past torch's dispatcher where it would have nothing to do.

What graphs are compiled to calls operators by Python's objects of them. The dispatcher takes longer than a product's own code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ._gradients import may_be_known
from ._known import modes
from ._products import known_linear, known_mm, known_sdd

_records = torch.is_grad_enabled
_function_modes: Callable[[], int] = getattr(torch._C, "_len_torch_function_stack", lambda: 1)


def _linear(dispatched: Any) -> Any:
    def linear(x: Any, values: Any, crow: Any, col: Any, size: Any, bias: Any, transpose: Any, activation: Any) -> Any:
        if not modes() and not _function_modes() and may_be_known():
            found = known_linear(x, values, crow, col, tuple(size), bias, transpose, activation)
            if found is not None and not (found[0].has_gradients and _records()):
                return found[0].run(x, found[1])
        return dispatched(x, values, crow, col, size, bias, transpose, activation)

    return linear


def _mm(dispatched: Any) -> Any:
    def mm(values: Any, crow: Any, col: Any, size: Any, b: Any, transpose: Any) -> Any:
        if not modes() and not _function_modes() and may_be_known():
            found = known_mm(values, crow, col, tuple(size), b, transpose)
            if found is not None and not (found[0].has_gradients and _records()):
                return found[0].run(b, found[1])
        return dispatched(values, crow, col, size, b, transpose)

    return mm


def _sdd(dispatched: Any) -> Any:
    def sdd(lhs: Any, rhs: Any, crow: Any, col: Any, size: Any, block: Any) -> Any:
        if not modes() and not _function_modes() and may_be_known():
            found = known_sdd(lhs, rhs, crow, col, tuple(size), tuple(block))
            if found is not None and not (found[0].has_gradients and _records()):
                return found[0].run(lhs, found[1])
        return dispatched(lhs, rhs, crow, col, size, block)

    return sdd


_SHORTENED: dict[str, Callable[[Any], Any]] = {"mm": _mm, "linear": _linear, "sdd": _sdd}


def shorten(name: str) -> None:
    """Has the object of this operator ask for products that are kept. It must be new: its hash is that of what it calls."""
    overload: Any = getattr(torch.ops.sparsek, name).default
    dispatched = getattr(overload, "_op", None)
    if callable(dispatched):  # else all calls are dispatched
        overload._op = _SHORTENED[name](dispatched)
