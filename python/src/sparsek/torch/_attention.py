# SPDX-License-Identifier: Apache-2.0
"""torch.ops.sparsek.attention and its backward pass: what they compute, their shapes and gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch

from ..attention import lies_in_rows, strides_of
from ..errors import ArgumentError, DtypeError, UnsupportedError
from ._attention_pages import KeyShape, pages_of, require_pages, shape_of_keys
from ._attention_plans import Rules, attention_of
from ._attention_scales import E4M3, output_dtype, refuse_gradients, require_scales, scales_of
from ._attention_terms import bias_gradient, require_terms, terms_of
from ._forward_mode import ForwardModeLibrary

# layout: queries and keys of a block, layout batches and layout heads; and, where there is a fifth number, 1 where the parts of
# the gradient of q may be added in any order.
_LAYOUT = "Tensor? crow, Tensor? col, SymInt[] layout"
_TERMS = "Tensor? bias=None, Tensor? mask_index=None, Tensor? mask=None"
_SCALES = "Tensor? scale_q=None, Tensor? scale_k=None, Tensor? scale_v=None, ScalarType? out_dtype=None"
_RULES = "SymInt? left, SymInt? right, bool align_ends, float scale, float soft_cap, Tensor? lengths_q, Tensor? lengths_k"
SCHEMAS = {
    "attention": (
        f"(Tensor q, Tensor k, Tensor v, {_LAYOUT}, {_RULES}, {_TERMS}, Tensor? page_table=None, SymInt? keys=None, {_SCALES}) "
        "-> (Tensor, Tensor)"
    ),
    "attention_backward": (
        f"(Tensor grad_o, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, {_LAYOUT}, {_RULES}, bool[] needed, "
        f"{_TERMS}) -> (Tensor, Tensor, Tensor, Tensor)"
    ),
}

_VECTOR = 16  # bytes that a GPU's operands begin at, and lie apart by, multiples of


def require_attention(
    q: Any, k: Any, v: Any, crow: Any, col: Any, layout: Sequence[int], lengths_q: Any, lengths_k: Any, in_pages: bool = False
) -> None:
    """Raises ArgumentError and DtypeError unless the operands fit. Reads no elements. in_pages: k and v are no sequences."""
    if q.dim() != 4 or k.dim() != 4 or v.dim() != 4:
        shapes = [tuple(operand.shape) for operand in (q, k, v)]
        raise ArgumentError(f"q, k and v of shapes {shapes[0]}, {shapes[1]} and {shapes[2]} are not (batch, heads, sequence, head size)")
    if (
        (q.shape[0] != k.shape[0] and not in_pages)
        or q.shape[3] != k.shape[3]
        or k.shape[:3] != v.shape[:3]
        or k.shape[1] < 1
        or q.shape[1] % k.shape[1]
    ):
        raise ArgumentError(
            f"q of shape {tuple(q.shape)}, k of {tuple(k.shape)} and v of {tuple(v.shape)} do not fit: batches and head sizes of q and k, "
            "and batches, heads and lengths of k and v are the same, and the heads of q are a multiple of theirs"
        )
    for name, operand in (("k", k), ("v", v)):
        if operand.dtype != q.dtype:
            raise DtypeError(f"q is of {q.dtype} and {name} of {operand.dtype}: convert one of them, so that all are of one type")
    for name, operand in (("k", k), ("v", v), ("crow", crow), ("col", col), ("lengths_q", lengths_q), ("lengths_k", lengths_k)):
        if operand is not None and operand.device != q.device:
            raise ArgumentError(f"{name} lies on {operand.device}, and q on {q.device}: copy it to where that is")
    for name, operand in (("lengths_q", lengths_q), ("lengths_k", lengths_k)):
        if operand is not None and (operand.dtype != torch.int32 or tuple(operand.shape) != (q.shape[0],)):
            raise ArgumentError(f"{name} of {operand.dtype} and shape {tuple(operand.shape)} is not of int32 and ({q.shape[0]},)")
    if (crow is None) != (col is None) or len(layout) not in (4, 5):
        raise ArgumentError("a layout has crow, col and four numbers: queries and keys of a block, layout batches and layout heads")


def _lse_dtype(q: torch.Tensor) -> torch.dtype:
    return torch.float64 if q.dtype == torch.float64 else torch.float32


def _lies(operand: torch.Tensor) -> bool:
    """Whether the library can read the operand as it lies."""
    strides = operand.stride()
    if not lies_in_rows(operand.shape, strides):
        return False
    if not operand.is_cuda:
        return True
    width = operand.element_size()
    apart = [stride * width for extent, stride in zip(operand.shape[:3], strides[:3], strict=True) if extent > 1]
    return operand.data_ptr() % _VECTOR == 0 and all(step != 0 and step % _VECTOR == 0 for step in apart)


def _lying(operand: torch.Tensor) -> torch.Tensor:
    """The operand, or a copy where the library cannot read it as it lies."""
    return operand if _lies(operand) else operand.clone(memory_format=torch.contiguous_format)


def _members(**operands: torch.Tensor | None) -> dict[str, Any]:
    """Those of sparsek_attention_args."""
    members: dict[str, Any] = {}
    for name, operand in operands.items():
        if operand is None:
            continue
        members[name] = operand.data_ptr()
        if operand.dim() == 4:
            members[f"stride_{name}"] = strides_of(tuple(operand.shape), operand.stride())
    return members


def _run(attention: Any, backward: bool, like: torch.Tensor, terms: dict[str, Any], **operands: torch.Tensor | None) -> None:
    members = {**_members(**operands), **terms}
    if like.is_cuda:
        members["stream"] = torch.cuda.current_stream(like.device).cuda_stream
        size = attention.info.backward_bytes if backward else attention.info.forward_bytes
        if size:
            workspace = like.new_empty(size, dtype=torch.uint8)
            members.update(workspace=workspace.data_ptr(), workspace_bytes=size)
    attention.run(backward, **members)


def _contiguous(lengths: torch.Tensor | None) -> torch.Tensor | None:
    return None if lengths is None else lengths.contiguous()


def _form(layout: Sequence[int]) -> tuple[tuple[int, int, int, int], bool]:
    """The four numbers, and whether any order will do."""
    high, wide, batch, heads, *rest = layout
    return (high, wide, batch, heads), rest == [1]


def _attention(
    q: Any,
    k: Any,
    v: Any,
    crow: Any,
    col: Any,
    layout: Sequence[int],
    left: int | None,
    right: int | None,
    align_ends: bool,
    scale: float,
    soft_cap: float,
    lengths_q: Any,
    lengths_k: Any,
    bias: Any = None,
    mask_index: Any = None,
    mask: Any = None,
    page_table: Any = None,
    keys: int | None = None,
    scale_q: Any = None,
    scale_k: Any = None,
    scale_v: Any = None,
    out_dtype: torch.dtype | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    of_keys = _require(q, k, v, crow, col, layout, lengths_q, lengths_k, bias, mask_index, mask, page_table, keys, out_dtype)
    scales = (scale_q, scale_k, scale_v)
    require_scales(q, k, scales)
    if page_table is not None and not (_lies(k) and _lies(v)):
        raise ArgumentError(
            "a cache of pages is read where it lies: its rows have no gaps in them, and on a GPU begin at multiples of 16 bytes and "
            "are not expanded"
        )
    form, any_order = _form(layout)
    rules = Rules(left, right, align_ends, scale, soft_cap, any_order)
    o, lse = _outputs(q, v, out_dtype)
    made = attention_of(q, k, v, crow, col, form, rules, of_keys=of_keys, out_dtype=o.dtype)
    lying = {name: _lying(operand) for name, operand in (("q", q), ("k", k), ("v", v))}
    lengths = {"lengths_q": _contiguous(lengths_q), "lengths_k": _contiguous(lengths_k)}
    terms, kept = terms_of(q, of_keys[2], bias, mask_index, mask)
    pages, table = pages_of(k, page_table)
    scaled, whole = scales_of(q, k, scales)
    _run(made, False, q, {**terms, **pages, **scaled}, **lying, o=o, lse=lse, **lengths)
    del kept, table, whole  # have been read, or are behind it in the stream
    return o, lse


def _require(
    q: Any,
    k: Any,
    v: Any,
    crow: Any,
    col: Any,
    layout: Sequence[int],
    lengths_q: Any,
    lengths_k: Any,
    bias: Any,
    mask_index: Any,
    mask: Any,
    page_table: Any,
    keys: int | None,
    out_dtype: torch.dtype | None,
) -> KeyShape:
    """Raises ArgumentError and DtypeError unless all of a forward pass fits. Returns the shape of what queries meet."""
    require_pages(q, k, v, page_table, keys)
    require_attention(q, k, v, crow, col, layout, lengths_q, lengths_k, page_table is not None)
    of_keys = shape_of_keys(q, k, page_table, keys)
    require_terms(q, of_keys[2], layout, bias, mask_index, mask, output_dtype(q.dtype, out_dtype))
    return of_keys


def _outputs(q: torch.Tensor, v: torch.Tensor, out_dtype: torch.dtype | None) -> tuple[torch.Tensor, torch.Tensor]:
    return q.new_empty((*q.shape[:3], v.shape[3]), dtype=output_dtype(q.dtype, out_dtype)), q.new_empty(q.shape[:3], dtype=_lse_dtype(q))


def _gradients(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, needed: Sequence[bool]) -> list[torch.Tensor]:
    return [operand.new_empty(operand.shape if need else 0) for operand, need in zip((q, k, v), needed[:3], strict=True)]


def _needs_bias(needed: Sequence[bool], bias: Any) -> bool:
    """needed: of q, k and v, and of the bias where it has four elements."""
    return bias is not None and len(needed) > 3 and needed[3]


def _backward(
    grad_o: Any,
    q: Any,
    k: Any,
    v: Any,
    o: Any,
    lse: Any,
    crow: Any,
    col: Any,
    layout: Sequence[int],
    left: int | None,
    right: int | None,
    align_ends: bool,
    scale: float,
    soft_cap: float,
    lengths_q: Any,
    lengths_k: Any,
    needed: Sequence[bool],
    bias: Any = None,
    mask_index: Any = None,
    mask: Any = None,
) -> tuple[torch.Tensor, ...]:
    if q.dtype == E4M3:
        refuse_gradients()
    require_attention(q, k, v, crow, col, layout, lengths_q, lengths_k)
    require_terms(q, k.shape[2], layout, bias, mask_index, mask, q.dtype)
    form, any_order = _form(layout)
    rules = Rules(left, right, align_ends, scale, soft_cap, any_order)
    made = attention_of(q, k, v, crow, col, form, rules, backward=True)
    gradients = _gradients(q, k, v, needed)
    lying = {name: _lying(operand) for name, operand in (("q", q), ("k", k), ("v", v), ("o", o), ("grad_o", grad_o))}
    lying["lse"] = lse.contiguous()
    written = {f"grad_{name}": gradient for name, gradient, need in zip("qkv", gradients, needed[:3], strict=True) if need}
    lengths = {"lengths_q": _contiguous(lengths_q), "lengths_k": _contiguous(lengths_k)}
    terms, kept = terms_of(q, k.shape[2], bias, mask_index, mask)
    of_pairs = q.new_empty((*q.shape[:3], k.shape[2]), dtype=_lse_dtype(q)) if _needs_bias(needed, bias) else None
    if of_pairs is not None:
        terms["grad_bias"] = of_pairs.data_ptr()
    _run(made, True, q, terms, **lying, **written, **lengths)
    del kept  # has been read, or is behind it in the stream
    return *gradients, q.new_empty(0) if of_pairs is None else bias_gradient(of_pairs, bias)


for _name, _function in (("attention", _attention), ("attention_backward", _backward)):
    torch.library.define(f"sparsek::{_name}", SCHEMAS[_name], tags=(torch.Tag.pt2_compliant_tag,))
    torch.library.impl(f"sparsek::{_name}", ("CPU", "CUDA"))(_function)


@torch.library.register_fake("sparsek::attention")
def _(q: Any, k: Any, v: Any, crow: Any, col: Any, layout: Sequence[int], *rest: Any) -> Any:
    # rest: five rules, and the lengths, the terms, the pages, the scales and O's type, of which what is left out is None.
    all_of: list[Any] = [*rest, *[None] * (16 - len(rest))]
    lengths_q, lengths_k, bias, mask_index, mask, page_table, keys, *scales, out_dtype = all_of[5:]
    _require(q, k, v, crow, col, layout, lengths_q, lengths_k, bias, mask_index, mask, page_table, keys, out_dtype)
    require_scales(q, k, (scales[0], scales[1], scales[2]))
    return _outputs(q, v, out_dtype)


@torch.library.register_fake("sparsek::attention_backward")
def _(grad_o: Any, q: Any, k: Any, v: Any, o: Any, lse: Any, crow: Any, col: Any, layout: Sequence[int], *rest: Any) -> Any:
    needed, bias = rest[7], rest[8] if len(rest) > 8 else None
    return *_gradients(q, k, v, needed), torch.empty_like(bias) if _needs_bias(needed, bias) else q.new_empty(0)


def _setup_context(ctx: Any, inputs: Any, output: Any) -> None:
    q, k, v, crow, col, *rules, lengths_q, lengths_k, bias, mask_index, mask, page_table, _, _, _, _, _ = inputs
    o, lse = output
    ctx.mark_non_differentiable(lse)
    ctx.rules = rules
    ctx.in_pages = page_table is not None
    ctx.save_for_backward(q, k, v, o, lse, crow, col, lengths_q, lengths_k, bias, mask_index, mask)


def _of_attention(ctx: Any, grad_o: Any, _: Any) -> Any:
    if ctx.in_pages:
        raise UnsupportedError("attention has no gradients where keys and values lie in pages: give them in one piece")
    q, k, v, o, lse, crow, col, lengths_q, lengths_k, *terms = ctx.saved_tensors
    if q.dtype == E4M3:
        refuse_gradients()
    rules = (*ctx.rules, lengths_q, lengths_k)
    needed = [*ctx.needs_input_grad[:3], terms[0] is not None and ctx.needs_input_grad[5 + len(rules)]]
    found = torch.ops.sparsek.attention_backward(grad_o, q, k, v, o, lse, crow, col, *rules, needed, *terms)
    *of_operands, of_bias = (gradient if need else None for gradient, need in zip(found, needed, strict=True))
    return *of_operands, *[None] * (2 + len(rules)), of_bias, *[None] * 8


def _refuse_twice(ctx: Any, *_: Any) -> NoReturn:
    raise UnsupportedError("the gradients of attention cannot be differentiated again: they have no gradients of their own")


def _refuse_vmap(*_: Any) -> NoReturn:
    raise UnsupportedError("attention does not go through vmap: give the mapped dimension as batch or heads")


def _refuse_tangents(*_: Any) -> NoReturn:
    raise UnsupportedError("attention has no derivatives in forward mode: gradients, of reverse mode, it has")


_library = ForwardModeLibrary(dict.fromkeys(SCHEMAS, _refuse_tangents))
torch.library.register_autograd("sparsek::attention", _of_attention, setup_context=_setup_context, lib=_library)
torch.library.register_autograd("sparsek::attention_backward", _refuse_twice, lib=_library)
for _name in SCHEMAS:
    torch.library.register_vmap(f"sparsek::{_name}", _refuse_vmap)

attention: Callable[..., tuple[torch.Tensor, torch.Tensor]] = torch.ops.sparsek.attention
"""O and LSE, with gradients of O, by the dispatcher: attention takes longer than that."""
