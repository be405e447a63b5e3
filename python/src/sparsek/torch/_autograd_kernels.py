# SPDX-License-Identifier: Apache-2.0
"""What autograd, vmap and derivatives in forward mode make of torch.ops.sparsek.mm, linear and sdd."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import _operators, _products
from ._forward_mode import ForwardModeLibrary, Tangents, dual, with_tangent
from ._gradients import Linear, Mm, Sdd, each, goes_into_graph, is_transformed, tangent_of_linear, vmap_of_linear, vmap_of_mm

_OPS: Any = torch.ops.sparsek
_records = torch.is_grad_enabled


class _AutogradLibrary(ForwardModeLibrary):
    """The operators' kernels of autograd, which make a product at once where no gradients are recorded.

    torch's own would send it through the dispatcher again, which takes longer than the product's own code.
    """

    def impl(self, op_name: str, fn: Any, *args: Any, **options: Any) -> None:
        product = getattr(_products, op_name)
        first, crow, col, second = {"mm": (0, 1, 2, 4), "linear": (0, 2, 3, 1), "sdd": (0, 2, 3, 1)}[op_name]

        def kernel(keyset: Any, *given: Any) -> Any:
            if (
                _records()
                or given[crow].is_meta
                or goes_into_graph(given[crow], given[col], given[first], given[second])
                or is_transformed()
            ):
                return fn(keyset, *given)
            return product(*given)

        super().impl(op_name, kernel, *args, **options)


def _linear_with_tangent(args: Sequence[Any], tangents: Tangents) -> torch.Tensor:
    return dual(_OPS.linear(*args), tangent_of_linear(_OPS.linear, args, tangents))


_library = _AutogradLibrary(
    {
        "mm": functools.partial(with_tangent, _OPS.mm),
        "linear": _linear_with_tangent,
        "sdd": functools.partial(with_tangent, _OPS.sdd),
    }
)
# What torch.func calls the rules for is an operator, not a Function, which its levels would refuse there.
_VMAPS: dict[str, Callable[..., Any]] = {
    "mm": functools.partial(vmap_of_mm, _OPS.mm),
    "linear": functools.partial(vmap_of_linear, _OPS.linear),
    "sdd": lambda info, in_dims, *args: each(_OPS.sdd, info, in_dims, args),
}
for _name, _function in (("mm", Mm), ("linear", Linear), ("sdd", Sdd)):
    assert _name in _operators.SCHEMAS
    torch.library.register_autograd(f"sparsek::{_name}", _function.backward, setup_context=_function.setup_context, lib=_library)
    torch.library.register_vmap(f"sparsek::{_name}", _VMAPS[_name])
