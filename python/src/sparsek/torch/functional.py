# SPDX-License-Identifier: Apache-2.0
"""The products and attention as functions of tensors, with gradients for values, dense operands and bias.

The products go into graphs of torch.compile and torch.export whole, and through vmap, jvp and the other transforms of torch.func.
Under autocast, operands of float32 and of the 16-bit types are converted to autocast's type first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from ..attention import rules_of
from ..errors import ArgumentError
from . import _attention, _autograd_kernels, _gradients, _plan_tensors  # noqa: F401  its operators are what graphs hold
from ._attention_scales import E4M3, refuse_gradients
from ._gradients import linear_now, mm_now, sdd_now
from ._plan_tensors import PlanTensor, plan
from ._products import ACTIVATIONS, known_linear, known_mm, known_sdd
from .block_layout import BlockLayout

__all__ = ["PlanTensor", "attention", "linear", "mm", "plan", "sdd"]

# Whether it is on for any kind of device; for one kind, torch takes longer to tell.
_any_autocast: Callable[[], bool] = getattr(torch._C, "_is_any_autocast_enabled", lambda: True)
_records = torch.is_grad_enabled
# Each object that tracing comes across is looked at before each call of what was compiled, and so is each step of the way to it.
_compiling = torch.compiler.is_compiling
_autocast = torch.is_autocast_enabled
_mm_op, _linear_op, _sdd_op = (getattr(torch.ops.sparsek, name).default for name in ("mm", "linear", "sdd"))


def _is_autocast() -> bool:
    return _compiling() or _any_autocast()


def _is_cast(tensor: torch.Tensor) -> bool:
    kind = tensor.device.type
    return kind != "meta" and _autocast(kind)


def _cast(*tensors: torch.Tensor | None) -> Any:
    """The tensors, in autocast's type where it is on."""
    first = tensors[0]
    assert first is not None
    if not _is_cast(first):
        return tensors
    dtype = torch.get_autocast_dtype(first.device.type)

    def cast(tensor: torch.Tensor | None) -> torch.Tensor | None:
        stays = tensor is None or tensor.dtype == torch.float64 or not tensor.is_floating_point()
        return tensor if stays or tensor is None else tensor.to(dtype)

    return [cast(tensor) for tensor in tensors]


def mm(
    values: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    size: Sequence[int],
    b: torch.Tensor,
    *,
    transpose: bool = False,
    plan: PlanTensor | None = None,
) -> torch.Tensor:
    """A b, or A^T b where transpose is set.

    A of size (M, K) has values (nnzb, bm, bk), crow (ceil(M/bm) + 1) and col (nnzb), as a torch BSR tensor has them; what
    values have beyond row M and column K must be zero. b: (..., K, N), transposed (..., M, N), of the type of the values,
    with any strides; row- and column-major matrices are not copied. Returns (..., M, N), transposed (..., K, N).
    plan: one of this product, made by sparsek.torch.plan; then b is copied unless it is contiguous. Gradients use none.

    Types are bfloat16, float16, float32 and float64, on the CPU and on Hopper GPUs. Raises ArgumentError, DtypeError, IndexFault and
    UnsupportedError.
    """
    size = tuple(size)
    if plan is not None:
        if _is_autocast():
            values, b = _cast(values, b)
        return _plan_tensors.mm(values, crow, col, size, b, transpose, plan)
    if _compiling():
        if _is_cast(values):
            values, b = _cast(values, b)
        made: torch.Tensor = _mm_op(values, crow, col, size, b, transpose)
        return made
    found = known_mm(values, crow, col, size, b, transpose) if forward_ad._current_level < 0 else None
    if found is not None:
        if found[0].has_gradients and _records():
            return mm_now(values, b, (crow, col, size, transpose, found))
        return found[0].run(b, found[1])
    if _is_autocast():
        values, b = _cast(values, b)
    return _gradients.mm(values, crow, col, size, b, transpose)


def linear(
    x: torch.Tensor,
    values: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    size: Sequence[int],
    bias: torch.Tensor | None = None,
    *,
    transpose: bool = False,
    activation: str | None = None,
    plan: PlanTensor | None = None,
) -> torch.Tensor:
    """act(x A^T + bias) as torch.nn.functional.linear with weight A has it, or act(x A + bias) where transpose is set.

    x: (..., K), transposed (..., M). bias: (M), transposed (K). A and the types are those of mm. activation: None, "relu",
    "gelu" (the exact one) or "silu", which is part of the product where no gradients are recorded. plan: as of mm, and with
    one, bias and activation are steps of their own.
    Returns (..., M), transposed (..., K). Raises as mm does.
    """
    if plan is None and _compiling():
        return linear_in_graph(x, values, crow, col, size, bias, transpose, activation)
    size, kind = tuple(size), activation or "none"
    if plan is not None:
        return _linear_by_plan(x, values, crow, col, size, bias, transpose, kind, plan)
    found = known_linear(x, values, crow, col, size, bias, transpose, kind) if forward_ad._current_level < 0 else None
    if found is not None:
        if found[0].has_gradients and _records():
            return linear_now(x, values, bias, (crow, col, size, transpose, found))
        return found[0].run(x, found[1])
    if kind not in ACTIVATIONS:
        raise ArgumentError(f"activation={activation!r} is none of None, relu, gelu and silu")
    if _is_autocast():
        x, values, bias = _cast(x, values, bias)
    return _gradients.linear(x, values, crow, col, size, bias, transpose, kind)


def linear_in_graph(
    x: torch.Tensor,
    values: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    size: Any,
    bias: Any,
    transpose: bool,
    activation: str | None,
) -> torch.Tensor:
    """linear where it is traced."""
    kind = activation or "none"
    if kind != "none" and kind not in ACTIVATIONS:
        raise ArgumentError(f"activation={activation!r} is none of None, relu, gelu and silu")
    if _is_cast(x):
        x, values, bias = _cast(x, values, bias)
    if kind != "none":
        return _gradients.linear(x, values, crow, col, size, bias, transpose, kind)
    y: torch.Tensor = _linear_op(x, values, crow, col, size, bias, transpose, kind)
    return y


def _linear_by_plan(
    x: torch.Tensor,
    values: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    size: Any,
    bias: Any,
    transpose: bool,
    kind: str,
    plan: Any,
) -> torch.Tensor:
    if kind not in ACTIVATIONS:
        raise ArgumentError(f"activation={kind!r} is none of None, relu, gelu and silu")
    if _is_autocast():
        x, values, bias = _cast(x, values, bias)
    y: torch.Tensor = _plan_tensors.linear(x, values, crow, col, size, bias, transpose, plan)
    return y if kind == "none" else _gradients.FUNCTIONS[kind](y)


def sdd(
    lhs: torch.Tensor, rhs: torch.Tensor, crow: torch.Tensor, col: torch.Tensor, size: Sequence[int], block: Sequence[int]
) -> torch.Tensor:
    """The blocks of lhs rhs at a pattern, as values (nnzb, bm, bk). What a block has beyond (M, K) is zero.

    lhs: (M, n). rhs: (n, K). The pattern has the size (M, K), blocks of (bm, bk), crow and col, see mm. Raises as mm does.
    """
    if isinstance(block, int):
        raise ArgumentError(f"block={block} is not (rows, columns): give 2 integers")
    size, block = tuple(size), tuple(block)
    if _compiling():
        if _is_cast(lhs):
            lhs, rhs = _cast(lhs, rhs)
        made: torch.Tensor = _sdd_op(lhs, rhs, crow, col, size, block)
        return made
    found = known_sdd(lhs, rhs, crow, col, size, block) if forward_ad._current_level < 0 else None
    if found is not None:
        if found[0].has_gradients and _records():
            return sdd_now(lhs, rhs, (crow, col, size, block, found))
        return found[0].run(lhs, found[1])
    if _is_autocast():
        lhs, rhs = _cast(lhs, rhs)
    return _gradients.sdd(lhs, rhs, crow, col, size, block)


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    layout: BlockLayout | None = None,
    *,
    causal: bool = False,
    window: tuple[int | None, int | None] = (None, None),
    align_ends: bool = False,
    scale: float | None = None,
    soft_cap: float = 0.0,
    bias: torch.Tensor | None = None,
    lengths_q: torch.Tensor | None = None,
    lengths_k: torch.Tensor | None = None,
    page_table: torch.Tensor | None = None,
    scale_q: torch.Tensor | None = None,
    scale_k: torch.Tensor | None = None,
    scale_v: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    return_lse: bool = False,
    deterministic: bool = True,
) -> Any:
    """softmax(scale Q K^T + bias) V over the blocks of a layout, and in them over the keys that rules let a query see.

    q: (batch, query heads, queries, head size). k, v: (batch, key heads, keys, head size), of which v may have another. Query
    head h has key head h // (query heads // key heads). Any strides are taken; what has gaps within rows is copied.
    layout: None: all blocks. causal: no key behind its query, as in torch. window: (left, right): no key before p - left or
    behind p + right for the query at p; None: no limit. align_ends: the last query is at the last key, else the first at the
    first. scale: None: 1 / sqrt(head size). soft_cap: above 0, scores are soft_cap tanh(score / soft_cap).
    bias: added to the scores, behind the soft cap; of up to four dimensions that go over (batch, query heads, queries, keys), of q's
    type, or of float32 where that has 16 bits. -inf hides a key from a query.
    lengths_q, lengths_k: (batch) of int32: how long the sequences are; what lies beyond is not read, and gets 0.
    page_table: (batch, pages of a sequence) of int32: k and v are then caches of pages, (pages, key heads, rows of a page, head size),
    which of (pages, rows, key heads, head size) is cache.transpose(1, 2). Page page_table[b, i] has the keys of batch b from i times the
    rows of a page on. There are as many keys as the layout has, or without one as the table has room for; lengths_k says how long each
    sequence is, and pages behind that are not looked up. Keys of a page that is none of the cache, as -1, are hidden. On a GPU pages
    have a multiple of 16 rows, and there is neither a bias nor bits of blocks. There are no gradients then: torch.compile
    refuses the call outside of torch.no_grad where q, k or v asks for one.
    scale_q, scale_k, scale_v: where q, k and v are of torch.float8_e4m3fn, what their elements are multiplied by: of float32 and finite
    numbers above 0, in up to two dimensions that go over (batch, query heads), of k and v over (batch, key heads); None: 1. There are no
    gradients then: a call that would need them raises UnsupportedError. Autocast leaves such operands as they are.
    out_dtype: of the result; None: that of q, or torch.bfloat16 where q is of torch.float8_e4m3fn, which may have torch.float16 too. A
    bias is of the result's type then, or of float32.

    Returns (batch, query heads, queries, head size of v), with gradients for q, k, v and bias, of which the last takes memory for a
    number of each query head, query and key; with return_lse also the logarithms
    of the sums of exp(score), (batch, query heads, queries), which have none. A query that sees no key gets 0, and -inf there.

    deterministic: if not, the backward pass on a GPU may add the parts of the gradient of q in any order, which is faster and takes
    more memory; its last bits then differ from call to call. torch.use_deterministic_algorithms(True) has precedence.

    It goes into graphs of torch.compile and torch.export, as torch.ops.sparsek.attention; not through vmap, and its gradients
    cannot be differentiated again. Under autocast, operands are converted to autocast's type. Raises ArgumentError,
    DtypeError, IndexFault and UnsupportedError, which says what a device has no kernel for.
    """
    left, right = rules_of(causal, window)
    if scale == 0:
        raise ArgumentError("scale=0 makes all scores equal: give another, or None for 1 / sqrt(head size)")
    if layout is not None and not isinstance(layout, BlockLayout):
        raise ArgumentError(f"layout is a {type(layout).__name__}: BlockLayout.from_mask makes a layout of a mask of blocks")
    keys = k.shape[-2] if page_table is None else page_table.shape[-1] * k.shape[-2] if layout is None else layout.seq[1]
    if layout is not None and layout.seq != (q.shape[-2], keys):
        raise ArgumentError(f"the layout is for {layout.seq[0]} queries and {layout.seq[1]} keys, and not {q.shape[-2]} and {keys}")
    is_fp8 = q.dtype == E4M3
    if is_fp8 and _records() and any(x is not None and x.requires_grad for x in (q, k, v, bias, scale_q, scale_k, scale_v)):
        refuse_gradients()
    if _is_autocast() and not is_fp8:
        q, k, v = _cast(q, k, v)
        if bias is not None and bias.dtype != torch.float32 and bias.is_floating_point():
            bias = bias.to(q.dtype)
    if bias is not None and bias.dim() < 4:
        bias = bias[(None,) * (4 - bias.dim())]
    crow, col, form = (None, None, [0, 0, 1, 1]) if layout is None else (layout.crow, layout.col, layout.form())
    if not deterministic and not torch.are_deterministic_algorithms_enabled():
        form = [*form, 1]
    bits = (None, None) if layout is None or layout.bits is None else layout.bits
    rules = (left, right, align_ends, scale or 0.0, soft_cap, lengths_q, lengths_k)
    pages = (None, None) if page_table is None else (page_table, keys)
    scales = (scale_q, scale_k, scale_v)
    o, lse = _attention.attention(q, k, v, crow, col, form, *rules, bias, *bits, *pages, *scales, out_dtype)
    return (o, lse) if return_lse else o
