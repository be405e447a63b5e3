# SPDX-License-Identifier: Apache-2.0
"""torch.ops.sparsek.mm, linear and sdd, for graphs: with shapes, gradients and vmap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from . import _direct, _products

# All arguments are always passed: the dispatcher would strip those that have their default.
SCHEMAS = {
    "mm": "(Tensor values, Tensor crow, Tensor col, SymInt[] size, Tensor b, bool transpose) -> Tensor",
    "linear": ("(Tensor x, Tensor values, Tensor crow, Tensor col, SymInt[] size, Tensor? bias, bool transpose, str activation) -> Tensor"),
    "sdd": "(Tensor lhs, Tensor rhs, Tensor crow, Tensor col, SymInt[] size, SymInt[] block) -> Tensor",
}


for _name, _schema in SCHEMAS.items():
    torch.library.define(f"sparsek::{_name}", _schema, tags=(torch.Tag.pt2_compliant_tag,))
    _direct.shorten(_name)
    torch.library.impl(f"sparsek::{_name}", ("CPU", "CUDA"))(getattr(_products, _name))


@torch.library.register_fake("sparsek::mm")
def _(values: Any, crow: Any, col: Any, size: Sequence[int], b: Any, transpose: bool) -> Any:
    _products.require_mm(values, crow, col, size, b, transpose)
    return b.new_empty(_products.shape_of_mm(size, b, transpose))


@torch.library.register_fake("sparsek::linear")
def _(x: Any, values: Any, crow: Any, col: Any, size: Sequence[int], bias: Any, transpose: bool, activation: str) -> Any:
    _products.require_linear(x, values, crow, col, size, bias, transpose)
    return x.new_empty(_products.shape_of_linear(size, x, transpose))


@torch.library.register_fake("sparsek::sdd")
def _(lhs: Any, rhs: Any, crow: Any, col: Any, size: Sequence[int], block: Sequence[int]) -> Any:
    _products.require_sdd(lhs, rhs, crow, col, size, block)
    return lhs.new_empty((col.shape[0], *block))
