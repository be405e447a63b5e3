# SPDX-License-Identifier: Apache-2.0
"""Products that were made before, found again by few questions to torch.

Each question about a tensor takes a tenth of a microsecond, and a product has twenty: types, shapes, strides, devices,
gradients, and whether a mode or a transform is at work. torch's own guard asks them all at once, of tensors that look as
those did which it was made of. It keeps none of these.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from ..cache import Entry
    from ._device_patterns import DeviceEntry
    from ._plans import Call

# In a torch without it, each product is looked up in the cache of patterns.
_guards: Any = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
_guard: Callable[..., Any] | None = getattr(_guards, "TensorGuards", None)

PLAIN = (torch.Tensor, torch.nn.Parameter)
modes: Callable[[], int] = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 0)
transforms: Callable[[], bool] = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)

_MOST_KEYS, _MOST_CALLS = 4096, 4
kept: dict[Any, tuple[weakref.ref[Call], ...]] = {}
"""Calls by the address of the index, the number of elements of the dense operand, the size, and what the product is; newest first.

A call knows of what operands it serves: looks_like of their looks, serves of the index.
"""


def keep(key: Any, entry: Entry | DeviceEntry, call: Call, crow: torch.Tensor, col: torch.Tensor, *dense: torch.Tensor) -> None:
    """Keeps a call for such operands as long as the cache of patterns keeps the pattern.

    None is kept or found where a mode of dispatch or a transform of torch.func is at work, or a tensor is of a class of its own.
    """
    operands = (crow, col, *dense)
    if _guard is None or modes() or transforms() or not all(type(operand) in PLAIN for operand in operands):
        return
    call.looks_like = _guard(*operands, dynamic_dims_sizes=None, dynamic_dims_strides=None).check
    call.has_gradients = any(operand.requires_grad for operand in dense)
    call.stay_with(crow, col)
    if len(kept) >= _MOST_KEYS:
        kept.clear()
    others = [ref for ref in kept.get(key, ()) if ref() is not None]
    kept[key] = (weakref.ref(call), *others[: _MOST_CALLS - 1])
    entry.calls.get((id(call),), lambda: call)


def forget() -> None:
    """Drops all."""
    kept.clear()


def alive() -> list[Call]:
    """The calls that are kept, of each key the newest first."""
    return [call for refs in kept.values() for ref in refs if (call := ref()) is not None]
