# SPDX-License-Identifier: Apache-2.0
"""Derivatives in forward mode of operators: torch's own kernels of autograd for them drop tangents, and say nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from ._known import modes

Tangents = dict[int, torch.Tensor]
"""Those of an operator's arguments, by place."""
Rule = Callable[[Sequence[Any], Tangents], Any]
"""Computes an operator of arguments without their tangents, and its own tangent."""

_LEVEL = 0  # torch has no other
_is_enabled: Callable[[], bool] = getattr(torch._C, "_is_fwd_grad_enabled", lambda: True)


class ForwardModeLibrary(torch.library.Library):
    """Kernels of autograd that leave arguments with tangents to a rule of their operator."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        super().__init__("sparsek", "FRAGMENT")
        self._rules = rules

    def impl(self, op_name: str, fn: Any, *args: Any, **options: Any) -> None:
        rule = self._rules[op_name]

        def kernel(keyset: Any, *given: Any) -> Any:
            # Where a graph is traced, torch's Python does not know of the level that it enters.
            if (forward_ad._current_level >= 0 or modes()) and _is_enabled():
                primals, tangents = _unpacked(given)
                if tangents:
                    return rule(primals, tangents)
            return fn(keyset, *given)

        super().impl(op_name, kernel, *args, **options)


def _unpacked(given: Sequence[Any]) -> tuple[list[Any], Tangents]:
    primals, tangents = list(given), {}
    for at, value in enumerate(given):
        if isinstance(value, torch.Tensor):
            primals[at], tangent = forward_ad.unpack_dual(value, level=_LEVEL)
            if tangent is not None:
                tangents[at] = tangent
    return primals, tangents


def with_tangent(product: Callable[..., torch.Tensor], args: Sequence[Any], tangents: Tangents) -> torch.Tensor:
    """A product that is linear in each argument that has a tangent."""
    return dual(product(*args), tangent_of(product, args, tangents))


def dual(result: torch.Tensor, tangent: torch.Tensor) -> torch.Tensor:
    """The result, with its tangent."""
    made: torch.Tensor = forward_ad.make_dual(result, tangent, level=_LEVEL)
    return made


def tangent_of(product: Callable[..., torch.Tensor], args: Sequence[Any], tangents: Tangents) -> torch.Tensor:
    """The tangent of that product: in turn each of these arguments gives way to its own."""
    terms = [product(*args[:at], tangent, *args[at + 1 :]) for at, tangent in tangents.items()]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
