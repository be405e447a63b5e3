# SPDX-License-Identifier: Apache-2.0
"""Attention of the library for tensors, kept from one call to the next, with the pattern of its layout."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import torch

from .._abi import Memory
from ..attention import Attention, AttentionLayout
from ..cache import Entry, Kept
from ..context import Context, default_context
from ..errors import ArgumentError, UnsupportedError
from . import _plans
from ._attention_pages import KeyShape
from ._attention_scales import E4M3, dtype_of_heads
from ._device_patterns import DeviceEntry, DevicePatterns, is_capturing, of_one_type
from ._nothing import Nothing
from ._plans import cpu_context, entry_of
from ._types import DTYPES, require_dtype

_KEPT = 128
# Queries and keys of which blocks consist where the library lists them on a GPU, and the largest head size there.
_UNIT, _LARGEST = 64, 128
_WAITS = os.environ.get("CUDA_LAUNCH_BLOCKING") == "1"  # for the check of layouts on a GPU


class Rules(NamedTuple):
    """What is planned besides sizes and blocks."""

    left: int | None
    right: int | None
    align_ends: bool
    scale: float  # 0: 1 / sqrt(head size)
    soft_cap: float
    any_order: bool = False  # of the parts of the gradient of q


class _Whole:
    """Attention without a layout."""

    def __init__(self) -> None:
        self.plans: Kept[Any] = Kept(_KEPT)
        self.captured: list[Any] = []


class _Layout:
    """A layout on a GPU, of which the attention that was made last tells whether it is good: each checks it."""

    def __init__(self, *_: Any) -> None:
        self.made: Attention | None = None

    def require(self, wait: bool = True) -> bool:
        return self.made is not None and self.made.require(wait)


_nothing: dict[int, Nothing] = {}  # of each context, for attention that is made while a stream is captured
_whole = _Whole()
_layouts = DevicePatterns(256 << 20, _Layout)


def _clear(captured: bool) -> None:
    _layouts.clear(captured)
    _whole.plans = Kept(_KEPT)
    if captured:
        _whole.captured.clear()


def _after_fork() -> None:
    _nothing.clear()
    _layouts.__init__(_layouts.limit, _Layout)  # type: ignore[misc]  # another thread of the parent may have held its lock
    _whole.plans = Kept(_KEPT)


_plans.on_clear.append(_clear)
os.register_at_fork(after_in_child=_after_fork)


def attention_of(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    crow: torch.Tensor | None,
    col: torch.Tensor | None,
    layout: tuple[int, int, int, int],
    rules: Rules,
    *,
    backward: bool = False,
    of_keys: KeyShape | None = None,
    out_dtype: torch.dtype | None = None,
) -> Attention:
    """Attention for these operands, of which only sizes and types count, and this layout. Raises what Attention does.

    layout: queries and keys of a block, layout batches and layout heads. backward: whether the backward pass is to follow, which
    has the layout of the forward pass before it. of_keys: (batch, key heads, keys, head size) where k and v lie in pages.
    out_dtype: of O; None: q's.
    """
    k_shape: KeyShape = tuple(k.shape) if of_keys is None else of_keys
    dtype_of_heads(q.dtype)
    of_index = torch.bfloat16 if q.dtype == E4M3 else q.dtype  # which has no values: any type of matrices
    out_dtype = out_dtype or q.dtype
    if not (q.is_cpu or q.is_cuda):
        raise UnsupportedError(f"attention is computed on the CPU and on CUDA devices: the tensors lie on {q.device}")
    entry: Entry | DeviceEntry | _Whole = _whole
    if crow is not None and col is not None:
        high, wide, batch, heads = layout
        size = (batch * heads * -(-q.shape[2] // high) * high, k_shape[2])
        if crow.is_cuda:
            entry = _layouts.entry(crow, col, size, (high, wide), require_dtype(of_index))
        else:
            entry = entry_of(crow, col, size, (high, wide), of_index)
    context = default_context(Memory.DEVICE, q.get_device()) if q.is_cuda else cpu_context()
    capturing = q.is_cuda and is_capturing()
    in_graph = capturing and isinstance(entry, DeviceEntry) and _stays(q, layout)
    # A context lives as long as the process, so that no other one has its number.
    key = ("attention", tuple(q.shape), k_shape, v.shape[3], q.dtype, out_dtype, layout, rules, id(context), in_graph)
    fresh = False

    def make() -> Attention:
        nonlocal fresh
        fresh = True
        if in_graph:
            return _made_in_capture(q, k_shape, v, crow, col, layout, rules, context, out_dtype)
        if capturing:
            raise ArgumentError(
                "this attention is not known yet, and its stream is being captured into a CUDA graph: make one call of the same "
                "kind before the capture"
            )
        made = _made(q, k_shape, v, _layout(q, entry, crow, col, layout), rules, context, out_dtype)
        if isinstance(entry, DeviceEntry):
            entry.pattern.made = made
        return made

    made: Attention = entry.plans.get(key, make)
    if capturing:
        captured = entry.verdict.captured if isinstance(entry, DeviceEntry) else _whole.captured
        if made not in captured:
            captured.append(made)  # so it stays as long as the graph
        if in_graph and (fresh or not backward):
            made.update(_on_device(crow, col, layout))  # each replay reads the layout
    elif isinstance(entry, DeviceEntry) and not entry.verdict.is_known:
        entry.verdict.look()
    return made


def _stays(q: torch.Tensor, layout: tuple[int, int, int, int]) -> bool:
    """Whether the library makes its lists of the layout on the GPU."""
    return layout[0] % _UNIT == 0 and layout[1] % _UNIT == 0 and q.shape[3] <= _LARGEST


def _on_device(crow: Any, col: Any, layout: tuple[int, int, int, int]) -> AttentionLayout:
    starts, columns = of_one_type(crow, col)
    return AttentionLayout(starts, columns, layout[:2], layout[2], layout[3], bounded=True)


def _made_in_capture(
    q: Any,
    k_shape: KeyShape,
    v: Any,
    crow: Any,
    col: Any,
    layout: tuple[int, int, int, int],
    rules: Rules,
    context: Context,
    out_dtype: torch.dtype,
) -> Attention:
    """Attention for a layout that comes with an update: of no blocks, with room for as many. Nothing of this is captured."""
    nothing = _nothing.get(id(context))
    if nothing is None:
        nothing = _nothing[id(context)] = Nothing(context)
    none = nothing.layout(crow.numel() - 1, col.numel(), layout)
    return _made(q, k_shape, v, none, rules, context, out_dtype, nothing.stream)


def _layout(
    q: torch.Tensor, entry: Any, crow: torch.Tensor | None, col: torch.Tensor | None, layout: tuple[int, int, int, int]
) -> AttentionLayout | None:
    if crow is None or col is None:
        return None
    high, wide, batch, heads = layout
    if isinstance(entry, DeviceEntry):
        if _stays(q, layout):
            return _on_device(crow, col, layout)
        columns = col[: int(crow[-1])]  # waits
        return AttentionLayout(crow.cpu().numpy(), columns.cpu().numpy(), (high, wide), batch, heads)
    kinds = [str(part.dtype).removeprefix("torch.") for part in (crow, col)]
    # What was compared.
    index = [np.frombuffer(part, kind) for part, kind in zip((entry.starts, entry.columns), kinds, strict=True)]
    return AttentionLayout(index[0], index[1], (high, wide), batch, heads)


def _made(
    q: torch.Tensor,
    k_shape: KeyShape,
    v: torch.Tensor,
    layout: AttentionLayout | None,
    rules: Rules,
    context: Context,
    out_dtype: torch.dtype,
    stream: int | None = None,
) -> Attention:
    return Attention(
        tuple(q.shape),
        k_shape,
        dtype=dtype_of_heads(q.dtype),
        out_dtype=DTYPES[out_dtype],
        head_size_v=v.shape[3],
        layout=layout,
        window=(rules.left, rules.right),
        align_ends=rules.align_ends,
        scale=rules.scale or None,
        soft_cap=rules.soft_cap,
        any_order=rules.any_order,
        context=context,
        stream=stream,
        wait=_WAITS and stream is None,
    )
