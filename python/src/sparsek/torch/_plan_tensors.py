# SPDX-License-Identifier: Apache-2.0
"""Plans as tensors: made by an operator in the current stream, and given to products like any other operand.

So a graph holds a plan as it holds its other tensors, and one of CUDA makes it anew from what the index holds by then.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import torch

from .._abi import Memory
from .._plan_data import Layout, Product
from ..context import Context, default_context
from ..dtypes import BYTES
from ..errors import ArgumentError, UnsupportedError
from . import _products
from ._forward_mode import ForwardModeLibrary
from ._gradients import gradients_of_linear, gradients_of_mm
from ._plans import cpu_context
from ._types import require_dtype

_OPS: Any = torch.ops.sparsek
_INDICES = {torch.int16: "int16", torch.int32: "int32", torch.int64: "int64"}
_NAMES = {("mm", False): "dsd", ("mm", True): "dsd_t", ("linear", False): "dds_t", ("linear", True): "dds"}

_MATRIX = "Tensor values, Tensor crow, Tensor col, SymInt[] size"
SCHEMAS = {
    "plan": "(Tensor crow, Tensor col, str op, SymInt[] size, SymInt[] block, SymInt n, ScalarType dtype, bool transpose) -> Tensor",
    "mm_by_plan": f"({_MATRIX}, Tensor b, bool transpose, Tensor plan) -> Tensor",
    "linear_by_plan": f"(Tensor x, {_MATRIX}, Tensor? bias, bool transpose, Tensor plan) -> Tensor",
}


class PlanTensor(NamedTuple):
    """A plan: its memory, and what it is for. It is no good after a change of the index, and knows nothing of one."""

    memory: torch.Tensor
    op: str
    size: tuple[int, int]
    block: tuple[int, int]
    blocks: int
    n: int
    dtype: torch.dtype
    transpose: bool


@functools.lru_cache(1024)
def _layout(context: Context, product: Product) -> Layout:
    return Layout(context, product)


def _layout_for(
    crow: torch.Tensor, col: torch.Tensor, op: str, size: Sequence[int], block: Sequence[int], n: int, dtype: torch.dtype, transpose: bool
) -> Layout:
    kind = require_dtype(dtype)
    is_gpu = crow.device.type == "cuda"
    context = default_context(Memory.DEVICE, crow.get_device()) if is_gpu else cpu_context()
    product = Product(
        op=_NAMES[op, transpose],
        dtype=kind,
        index=_INDICES[_index_type(crow, col)],
        shape=(int(size[0]), int(size[1])),
        block=(int(block[0]), int(block[1])),
        nnzb=int(col.shape[0]),
        n=int(n),
        order_b="row",
        alignment=16 if is_gpu else BYTES[kind],
    )
    return _layout(context, product)


def _index_type(crow: torch.Tensor, col: torch.Tensor) -> torch.dtype:
    wide = max(crow.dtype, col.dtype, key=lambda kind: kind.itemsize)
    if wide not in _INDICES:
        raise ArgumentError(f"an index is of int16, int32 or int64, and not of {wide}")
    return wide


def _stream(tensor: torch.Tensor) -> int:
    return torch.cuda.current_stream(tensor.device).cuda_stream if tensor.is_cuda else 0


def _plan(
    crow: torch.Tensor, col: torch.Tensor, op: str, size: Sequence[int], block: Sequence[int], n: int, dtype: torch.dtype, transpose: bool
) -> torch.Tensor:
    layout = _layout_for(crow, col, op, size, block, n, dtype, transpose)
    memory = crow.new_empty(layout.bytes, dtype=torch.uint8)
    kind = _index_type(crow, col)
    starts, columns = crow.to(kind).contiguous(), col.to(kind).contiguous()
    layout.write(starts.data_ptr(), columns.data_ptr(), _address(memory, layout), _stream(crow), fewer=True)
    return memory


def _address(plan: torch.Tensor, layout: Layout) -> int:
    address = plan.data_ptr()
    if plan.numel() != layout.bytes or address % layout.alignment or not plan.is_contiguous():
        raise ArgumentError(f"the plan is no contiguous tensor of {layout.bytes} bytes at a multiple of {layout.alignment}")
    return address


def _aligned(operand: torch.Tensor, alignment: int) -> torch.Tensor:
    """The operand without gaps, at a multiple of the alignment."""
    lying = operand.contiguous()
    return lying.clone() if lying.data_ptr() % alignment else lying


def _run(layout: Layout, plan: torch.Tensor, values: torch.Tensor, dense: torch.Tensor, out: torch.Tensor, batch: int) -> None:
    workspace = dense.new_empty(layout.workspace_bytes, dtype=torch.uint8)
    layout.run(
        _address(plan, layout),
        values=values.data_ptr(),
        b=dense.data_ptr(),
        c=out.data_ptr(),
        x=0,
        batch=batch,
        stride_b=dense.numel() // batch if batch else 0,
        stride_c=out.numel() // batch if batch else 0,
        workspace=workspace.data_ptr(),
        stream=_stream(dense),
    )


def _mm(
    values: torch.Tensor, crow: torch.Tensor, col: torch.Tensor, size: Sequence[int], b: torch.Tensor, transpose: bool, plan: torch.Tensor
) -> torch.Tensor:
    _products.require_mm(values, crow, col, size, b, transpose)
    layout = _layout_for(crow, col, "mm", size, values.shape[1:], b.shape[-1], values.dtype, transpose)
    out = b.new_empty(_products.shape_of_mm(size, b, transpose))
    if out.numel() == 0 or b.numel() == 0:
        return out.zero_()
    blocks, dense = _aligned(values, 16), _aligned(b, 16)
    if b.dim() == 2:
        _run(layout, plan, blocks, dense, out, 0)
        return out
    items, outs = dense.flatten(0, -3), out.flatten(0, -3)
    width = b.element_size()
    if b.is_cuda and (items[0].numel() * width % 16 or outs[0].numel() * width % 16):
        for item, one in zip(items, outs, strict=True):
            made = torch.empty_like(one)
            _run(layout, plan, blocks, item.clone(), made, 0)
            one.copy_(made)
    else:
        _run(layout, plan, blocks, items, outs, items.shape[0])
    return out


def _linear(
    x: torch.Tensor,
    values: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    size: Sequence[int],
    bias: torch.Tensor | None,
    transpose: bool,
    plan: torch.Tensor,
) -> torch.Tensor:
    _products.require_linear(x, values, crow, col, size, bias, transpose)
    layout = _layout_for(crow, col, "linear", size, values.shape[1:], x.shape[:-1].numel(), values.dtype, transpose)
    out = x.new_empty(_products.shape_of_linear(size, x, transpose))
    if out.numel() == 0 or x.numel() == 0:
        out.zero_()
    else:
        _run(layout, plan, _aligned(values, 16), _aligned(x, 16), out, 0)
    return out if bias is None else out.add_(bias)


for _name, _function in (("plan", _plan), ("mm_by_plan", _mm), ("linear_by_plan", _linear)):
    torch.library.define(f"sparsek::{_name}", SCHEMAS[_name], tags=(torch.Tag.pt2_compliant_tag,))
    torch.library.impl(f"sparsek::{_name}", ("CPU", "CUDA"))(_function)


@torch.library.register_fake("sparsek::plan")
def _(crow: Any, col: Any, *form: Any) -> Any:
    return crow.new_empty(_layout_for(crow, col, *form).bytes, dtype=torch.uint8)


@torch.library.register_fake("sparsek::mm_by_plan")
def _(values: Any, crow: Any, col: Any, size: Sequence[int], b: Any, transpose: bool, plan: Any) -> Any:
    _products.require_mm(values, crow, col, size, b, transpose)
    return b.new_empty(_products.shape_of_mm(size, b, transpose))


@torch.library.register_fake("sparsek::linear_by_plan")
def _(x: Any, values: Any, crow: Any, col: Any, size: Sequence[int], bias: Any, transpose: bool, plan: Any) -> Any:
    _products.require_linear(x, values, crow, col, size, bias, transpose)
    return x.new_empty(_products.shape_of_linear(size, x, transpose))


def _setup_mm(ctx: Any, inputs: Any, output: Any) -> None:
    values, crow, col, size, b, transpose, _ = inputs
    ctx.form = size, values.shape, transpose
    ctx.save_for_backward(values if ctx.needs_input_grad[4] else None, crow, col, b if ctx.needs_input_grad[0] else None)


def _of_mm(ctx: Any, g: Any) -> Any:
    of_values, of_b = gradients_of_mm(ctx, g, ctx.needs_input_grad[0], ctx.needs_input_grad[4])
    return of_values, None, None, None, of_b, None, None


def _setup_linear(ctx: Any, inputs: Any, output: Any) -> None:
    x, values, crow, col, size, _, transpose, _ = inputs
    ctx.form = size, values.shape, transpose
    ctx.save_for_backward(x if ctx.needs_input_grad[1] else None, values if ctx.needs_input_grad[0] else None, crow, col)


def _of_linear(ctx: Any, g: Any) -> Any:
    of_x, of_values, of_bias = gradients_of_linear(ctx, g, *(ctx.needs_input_grad[at] for at in (0, 1, 5)))
    return of_x, of_values, None, None, None, of_bias, None, None


def _refuse(*_: Any) -> NoReturn:
    raise UnsupportedError("products by a plan that is given have gradients, and no derivatives in forward mode nor vmap: give no plan")


_library = ForwardModeLibrary({"mm_by_plan": _refuse, "linear_by_plan": _refuse})
torch.library.register_autograd("sparsek::mm_by_plan", _of_mm, setup_context=_setup_mm, lib=_library)
torch.library.register_autograd("sparsek::linear_by_plan", _of_linear, setup_context=_setup_linear, lib=_library)
for _name in SCHEMAS:
    torch.library.register_vmap(f"sparsek::{_name}", _refuse)


def plan(
    op: str,
    crow: torch.Tensor,
    col: torch.Tensor,
    size: Sequence[int],
    block: Sequence[int],
    n: int,
    *,
    dtype: torch.dtype,
    transpose: bool = False,
) -> PlanTensor:
    """A plan of products with this index, for `plan=` of them.

    op: "mm" or "linear". n: how many columns b has, or rows x. dtype: of the values. The index may have any number of
    blocks up to that of col: what is beyond crow's last element is not read.

    It is made in the current stream, without a look at what the index holds and without a wait, also where the stream is
    captured into a CUDA graph, whose replays then plan for what it holds by then. A wrong index multiplies as if it had no
    blocks; in host memory it raises IndexFault. Raises ArgumentError, DtypeError and UnsupportedError.
    """
    if op not in ("mm", "linear"):
        raise ArgumentError(f"there are plans of mm and linear, and not of {op!r}")
    if crow.dim() != 1 or col.dim() != 1 or len(size) != 2 or len(block) != 2 or crow.device != col.device:
        raise ArgumentError("an index has crow and col of one dimension on one device, and a size and a block of two")
    form = (size[0], size[1]), (block[0], block[1])
    memory = _OPS.plan(crow, col, op, size, block, n, dtype, transpose)
    return PlanTensor(memory, op, *form, col.shape[0], n, dtype, transpose)


def _require(plan: PlanTensor, *asked: Any) -> None:
    if plan[1:] != asked:
        raise ArgumentError(f"the plan is of {plan[1:]}, and the product of {asked}: op, size, block, blocks, n, type, transpose")


def mm(values: torch.Tensor, crow: torch.Tensor, col: torch.Tensor, size: Any, b: torch.Tensor, transpose: bool, plan: PlanTensor) -> Any:
    """op(A) b by a plan."""
    _products.require_mm(values, crow, col, size, b, transpose)
    _require(plan, "mm", size, tuple(values.shape[1:]), col.shape[0], b.shape[-1], values.dtype, transpose)
    return _OPS.mm_by_plan(values, crow, col, size, b, transpose, plan.memory)


def linear(
    x: torch.Tensor, values: torch.Tensor, crow: torch.Tensor, col: torch.Tensor, size: Any, bias: Any, transpose: bool, plan: PlanTensor
) -> Any:
    """x op(A)^T + bias by a plan."""
    _products.require_linear(x, values, crow, col, size, bias, transpose)
    _require(plan, "linear", size, tuple(values.shape[1:]), col.shape[0], x.shape[:-1].numel(), values.dtype, transpose)
    return _OPS.linear_by_plan(x, values, crow, col, size, bias, transpose, plan.memory)
