# SPDX-License-Identifier: Apache-2.0
"""The gradients of the three products, which are such products again, and what vmap and jvp make of them.

Each class serves twice: torch.func calls it, and the operators of graphs have its setup_context, backward and vmap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import Function, forward_ad

from . import _products
from ._forward_mode import Tangents, tangent_of
from ._known import PLAIN, modes, transforms

_compiling = torch.compiler.is_compiling
_records = torch.is_grad_enabled
_functorch: Any = getattr(torch._C, "_functorch", None)
_levels: Callable[[], Any] = getattr(_functorch, "get_interpreter_stack", lambda: None)
_JVP: Any = getattr(getattr(_functorch, "TransformType", None), "Jvp", None)


def goes_into_graph(crow: torch.Tensor, col: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether the product is to be traced, or its tensors hold no elements that the library could read."""
    if _compiling() or modes():
        return True
    return not (type(first) in PLAIN and type(second) in PLAIN and type(crow) in PLAIN and type(col) in PLAIN)


def is_transformed() -> bool:
    """Whether torch.func, or a derivative in forward mode, is at work."""
    return transforms() or forward_ad._current_level >= 0


def _is_forward_twice() -> bool:
    """Whether derivatives in forward mode are taken of such: a Function of torch loses part of these, and an operator does not."""
    return sum(level.key() == _JVP for level in _levels() or ()) > 1


def may_be_known() -> bool:
    """Whether products that are kept may be asked for: what else tells a graph or a transform from products, they see."""
    return not _compiling() and forward_ad._current_level < 0


def _folded(matrices: torch.Tensor) -> torch.Tensor:
    """(..., R, N) as one matrix (R, ... N)."""
    return matrices if matrices.dim() == 2 else matrices.movedim(-2, 0).reshape(matrices.shape[-2], -1)


def _rows(matrices: torch.Tensor) -> torch.Tensor:
    """(..., K) as one matrix."""
    return matrices if matrices.dim() == 2 else matrices.reshape(-1, matrices.shape[-1])


def each(function: Callable[..., torch.Tensor], info: Any, in_dims: Sequence[Any], args: Sequence[Any]) -> tuple[torch.Tensor, int]:
    """vmap by one product after the other."""
    dims = [dim if isinstance(dim, int) else None for dim in in_dims]
    results = []
    for at in range(info.batch_size):
        results.append(function(*(arg if dim is None else arg.select(dim, at) for arg, dim in zip(args, dims, strict=True))))
    return torch.stack(results), 0


def gradients_of_mm(ctx: Any, g: Any, needs_values: bool, needs_b: bool) -> tuple[Any, Any]:
    values, crow, col, b = ctx.saved_tensors
    size, stored, transpose = ctx.form
    of_values = of_b = None
    if needs_values:
        left, right = (_folded(b), _folded(g)) if transpose else (_folded(g), _folded(b))
        of_values = sdd(left, right.t(), crow, col, size, tuple(stored[1:]))
    if needs_b:
        of_b = mm(values, crow, col, size, g, not transpose)
    return of_values, of_b


def vmap_of_mm(
    product: Callable[..., torch.Tensor], info: Any, in_dims: Any, values: Any, crow: Any, col: Any, size: Any, b: Any, transpose: bool
) -> Any:
    if in_dims[0] is None and in_dims[1] is None and in_dims[2] is None:
        return product(values, crow, col, size, b.movedim(in_dims[4], 0), transpose), 0
    return each(product, info, in_dims, (values, crow, col, size, b, transpose))


def _given(tangents: Sequence[Any]) -> Tangents:
    return {at: tangent for at, tangent in enumerate(tangents) if tangent is not None}


class Mm(Function):
    """op(A) b."""

    @staticmethod
    def forward(values: Any, crow: Any, col: Any, size: Any, b: Any, transpose: bool) -> Any:
        traced = goes_into_graph(crow, col, values, b)
        return (torch.ops.sparsek.mm if traced else _products.mm)(values, crow, col, size, b, transpose)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        values, crow, col, size, b, transpose = inputs
        ctx.form = size, values.shape, transpose
        ctx.save_for_backward(values if ctx.needs_input_grad[4] else None, crow, col, b if ctx.needs_input_grad[0] else None)
        ctx.save_for_forward(values, crow, col, b)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        of_values, of_b = gradients_of_mm(ctx, g, ctx.needs_input_grad[0], ctx.needs_input_grad[4])
        return of_values, None, None, None, of_b, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        values, crow, col, b = ctx.saved_tensors
        size, _stored, transpose = ctx.form
        return tangent_of(mm, (values, crow, col, size, b, transpose), _given(tangents))

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return vmap_of_mm(mm, info, in_dims, *args)


def gradients_of_linear(ctx: Any, g: Any, needs_x: bool, needs_values: bool, needs_bias: bool) -> tuple[Any, Any, Any]:
    x, values, crow, col = ctx.saved_tensors
    size, stored, transpose = ctx.form
    of_x = of_values = of_bias = None
    if needs_x:
        of_x = linear(g, values, crow, col, size, None, not transpose, "none")
    if needs_values:
        left, right = (_rows(x), _rows(g)) if transpose else (_rows(g), _rows(x))
        of_values = sdd(left.t(), right, crow, col, size, tuple(stored[1:]))
    if needs_bias:
        of_bias = _rows(g).sum(0)
    return of_x, of_values, of_bias


def vmap_of_linear(product: Callable[..., torch.Tensor], info: Any, in_dims: Any, x: Any, *rest: Any) -> Any:
    if all(in_dims[at] is None for at in (1, 2, 3, 5)):
        return product(x.movedim(in_dims[0], 0), *rest), 0
    return each(product, info, in_dims, (x, *rest))


def tangent_of_linear(product: Callable[..., torch.Tensor], args: Sequence[Any], tangents: Tangents) -> torch.Tensor:
    """That of a product of the arguments' form, which bias adds to."""
    x, values, crow, col, size, _, transpose, activation = args
    if activation != "none":
        raise _no_gradients()
    of_bias = tangents.pop(5, None)
    added = None if of_bias is None else of_bias.expand(*x.shape[:-1], size[1] if transpose else size[0])
    if not tangents:
        return added
    found = tangent_of(product, (x, values, crow, col, size, None, transpose, activation), tangents)
    return found if added is None else found + added


def _no_gradients() -> RuntimeError:
    return RuntimeError("sparsek::linear has no gradients with an activation: sparsek.torch.linear applies it as a step of its own")


class Linear(Function):
    """x op(A) + bias."""

    @staticmethod
    def forward(x: Any, values: Any, crow: Any, col: Any, size: Any, bias: Any, transpose: bool, activation: str) -> Any:
        traced = goes_into_graph(crow, col, x, values)
        return (torch.ops.sparsek.linear if traced else _products.linear)(x, values, crow, col, size, bias, transpose, activation)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, values, crow, col, size, _, transpose, activation = inputs
        if activation != "none" and any(ctx.needs_input_grad):
            raise _no_gradients()
        ctx.form = size, values.shape, transpose
        ctx.save_for_backward(x if ctx.needs_input_grad[1] else None, values if ctx.needs_input_grad[0] else None, crow, col)
        ctx.save_for_forward(x, values, crow, col)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        of_x, of_values, of_bias = gradients_of_linear(ctx, g, *(ctx.needs_input_grad[at] for at in (0, 1, 5)))
        return of_x, of_values, None, None, None, of_bias, None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        x, values, crow, col = ctx.saved_tensors
        size, _stored, transpose = ctx.form
        return tangent_of_linear(linear, (x, values, crow, col, size, None, transpose, "none"), _given(tangents))

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return vmap_of_linear(linear, info, in_dims, *args)


def _gradients_of_sdd(ctx: Any, g: Any) -> tuple[Any, Any]:
    lhs, rhs, crow, col = ctx.saved_tensors
    of_lhs = of_rhs = None
    if ctx.needs_input_grad[0]:
        of_lhs = mm(g, crow, col, ctx.size, rhs.t(), False)
    if ctx.needs_input_grad[1]:
        of_rhs = mm(g, crow, col, ctx.size, lhs, True).t()
    return of_lhs, of_rhs


class Sdd(Function):
    """The blocks of lhs rhs."""

    @staticmethod
    def forward(lhs: Any, rhs: Any, crow: Any, col: Any, size: Any, block: Any) -> Any:
        traced = goes_into_graph(crow, col, lhs, rhs)
        return (torch.ops.sparsek.sdd if traced else _products.sdd)(lhs, rhs, crow, col, size, block)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        lhs, rhs, crow, col, size, block = inputs
        ctx.size, ctx.block = size, block
        ctx.save_for_backward(lhs if ctx.needs_input_grad[1] else None, rhs if ctx.needs_input_grad[0] else None, crow, col)
        ctx.save_for_forward(lhs, rhs, crow, col)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return *_gradients_of_sdd(ctx, g), None, None, None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        lhs, rhs, crow, col = ctx.saved_tensors
        return tangent_of(sdd, (lhs, rhs, crow, col, ctx.size, ctx.block), _given(tangents))

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return each(sdd, info, in_dims, args)


# The same where torch.func and graphs are not at work: without setup_context and what else takes torch tens of microseconds.
# Each argument takes torch a quarter of a microsecond: those without gradients are one. found: of _products.known_...


class _MmNow(Function):
    @staticmethod
    def forward(ctx: Any, values: Any, b: Any, rest: Any) -> Any:
        crow, col, size, transpose, found = rest
        ctx.form = size, values.shape, transpose
        needs_values, needs_b, _ = ctx.needs_input_grad
        ctx.save_for_backward(values if needs_b else None, crow, col, b if needs_values else None)
        return found[0].run(b, found[1]) if found is not None else _products.mm(values, crow, col, size, b, transpose)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        needs_values, needs_b, _ = ctx.needs_input_grad
        return *gradients_of_mm(ctx, g, needs_values, needs_b), None


class _LinearNow(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, values: Any, bias: Any, rest: Any) -> Any:
        crow, col, size, transpose, found = rest
        ctx.form = size, values.shape, transpose
        needs_x, needs_values, _, _ = ctx.needs_input_grad
        ctx.save_for_backward(x if needs_values else None, values if needs_x else None, crow, col)
        if found is not None:
            return found[0].run(x, found[1])
        return _products.linear(x, values, crow, col, size, bias, transpose, "none")

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        needs_x, needs_values, needs_bias, _ = ctx.needs_input_grad
        return *gradients_of_linear(ctx, g, needs_x, needs_values, needs_bias), None


class _SddNow(Function):
    @staticmethod
    def forward(ctx: Any, lhs: Any, rhs: Any, rest: Any) -> Any:
        crow, col, size, block, found = rest
        ctx.size, ctx.block = size, block
        needs_lhs, needs_rhs, _ = ctx.needs_input_grad
        ctx.save_for_backward(lhs if needs_rhs else None, rhs if needs_lhs else None, crow, col)
        return found[0].run(lhs, found[1]) if found is not None else _products.sdd(lhs, rhs, crow, col, size, block)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return *_gradients_of_sdd(ctx, g), None


# Function.apply of Python asks for default arguments and transforms first.
mm_now, linear_now, sdd_now = (super(Function, function).apply for function in (_MmNow, _LinearNow, _SddNow))


def mm(values: Any, crow: Any, col: Any, size: Any, b: Any, transpose: bool) -> torch.Tensor:
    """op(A) b, with gradients; see functional.mm."""
    found = _products.known_mm(values, crow, col, tuple(size), b, transpose) if may_be_known() else None
    if found is not None:
        if found[0].has_gradients and _records():
            return mm_now(values, b, (crow, col, size, transpose, found))
        return found[0].run(b, found[1])
    if goes_into_graph(crow, col, values, b):
        return torch.ops.sparsek.mm(values, crow, col, size, b, transpose)
    if is_transformed():
        return (torch.ops.sparsek.mm if _is_forward_twice() else Mm.apply)(values, crow, col, size, b, transpose)
    if _records() and (values.requires_grad or b.requires_grad):
        return mm_now(values, b, (crow, col, size, transpose, None))
    return _products.mm(values, crow, col, size, b, transpose)


FUNCTIONS = {"relu": torch.nn.functional.relu, "gelu": torch.nn.functional.gelu, "silu": torch.nn.functional.silu}


def linear(x: Any, values: Any, crow: Any, col: Any, size: Any, bias: Any, transpose: bool, activation: str) -> torch.Tensor:
    """act(x op(A) + bias), with gradients; see functional.linear."""
    found = _products.known_linear(x, values, crow, col, tuple(size), bias, transpose, activation) if may_be_known() else None
    if found is not None:
        if found[0].has_gradients and _records():
            return linear_now(x, values, bias, (crow, col, size, transpose, found))
        return found[0].run(x, found[1])
    traced = goes_into_graph(crow, col, x, values)
    transformed = not traced and is_transformed()
    records = _records() and (x.requires_grad or values.requires_grad or (bias is not None and bias.requires_grad))
    if activation != "none" and (records or transformed):
        # The gradient of the activation needs what it was applied to.
        return FUNCTIONS[activation](linear(x, values, crow, col, size, bias, transpose, "none"))
    if traced:
        return torch.ops.sparsek.linear(x, values, crow, col, size, bias, transpose, activation)
    if transformed:
        return (torch.ops.sparsek.linear if _is_forward_twice() else Linear.apply)(x, values, crow, col, size, bias, transpose, activation)
    if records:
        return linear_now(x, values, bias, (crow, col, size, transpose, None))
    return _products.linear(x, values, crow, col, size, bias, transpose, activation)


def sdd(lhs: Any, rhs: Any, crow: Any, col: Any, size: Any, block: Any) -> torch.Tensor:
    """The blocks of lhs rhs, with gradients; see functional.sdd."""
    found = _products.known_sdd(lhs, rhs, crow, col, tuple(size), tuple(block)) if may_be_known() else None
    if found is not None:
        if found[0].has_gradients and _records():
            return sdd_now(lhs, rhs, (crow, col, size, block, found))
        return found[0].run(lhs, found[1])
    if goes_into_graph(crow, col, lhs, rhs):
        return torch.ops.sparsek.sdd(lhs, rhs, crow, col, size, block)
    if is_transformed():
        return (torch.ops.sparsek.sdd if _is_forward_twice() else Sdd.apply)(lhs, rhs, crow, col, size, block)
    if _records() and (lhs.requires_grad or rhs.requires_grad):
        return sdd_now(lhs, rhs, (crow, col, size, block, None))
    return _products.sdd(lhs, rhs, crow, col, size, block)
