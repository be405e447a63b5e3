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
from ._device_patterns import DeviceEntry, is_capturing
from ._plans import DTYPES, cpu_context, entry_of, require_dtype

_KEPT = 128


class Rules(NamedTuple):
    """What is planned besides sizes and blocks."""

    left: int | None
    right: int | None
    align_ends: bool
    scale: float  # 0: 1 / sqrt(head size)
    soft_cap: float


class _Whole:
    """Attention without a layout."""

    def __init__(self) -> None:
        self.plans: Kept[Any] = Kept(_KEPT)
        self.captured: list[Any] = []


_whole = _Whole()


def _clear(captured: bool) -> None:
    _whole.plans = Kept(_KEPT)
    if captured:
        _whole.captured.clear()


def _after_fork() -> None:
    _whole.plans = Kept(_KEPT)  # another thread of the parent may have held its lock


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
) -> Attention:
    """Attention for these operands, of which only sizes and types count, and this layout. Raises what Attention does.

    layout: queries and keys of a block, layout batches and layout heads.
    """
    require_dtype(q.dtype)
    if not (q.is_cpu or q.is_cuda):
        raise UnsupportedError(f"attention is computed on the CPU and on CUDA devices: the tensors lie on {q.device}")
    entry: Entry | DeviceEntry | _Whole = _whole
    if crow is not None and col is not None:
        high, wide, batch, heads = layout
        size = (batch * heads * -(-q.shape[2] // high) * high, k.shape[2])
        entry = entry_of(crow, col, size, (high, wide), q.dtype)
    context = default_context(Memory.DEVICE, q.get_device()) if q.is_cuda else cpu_context()
    # A context lives as long as the process, so that no other one has its number.
    key = ("attention", tuple(q.shape), tuple(k.shape), v.shape[3], q.dtype, layout, rules, id(context))

    def make() -> Attention:
        if q.is_cuda and is_capturing():
            raise ArgumentError(
                "this attention is not known yet, and its stream is being captured into a CUDA graph: make one call of the same "
                "kind before the capture"
            )
        return _made(q, k, v, _layout(entry, crow, col, layout), rules, context)

    made: Attention = entry.plans.get(key, make)
    if q.is_cuda and is_capturing():
        captured = entry.verdict.captured if isinstance(entry, DeviceEntry) else _whole.captured
        if made not in captured:
            captured.append(made)  # so it stays as long as the graph
    return made


def _layout(entry: Any, crow: torch.Tensor | None, col: torch.Tensor | None, layout: tuple[int, int, int, int]) -> AttentionLayout | None:
    if crow is None or col is None:
        return None
    high, wide, batch, heads = layout
    if isinstance(entry, Entry):  # what was compared
        kinds = [str(part.dtype).removeprefix("torch.") for part in (crow, col)]
        index = [np.frombuffer(part, kind) for part, kind in zip((entry.starts, entry.columns), kinds, strict=True)]
    else:
        index = [part.cpu().numpy() for part in (crow, col)]
    return AttentionLayout(index[0], index[1], (high, wide), batch, heads)


def _made(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layout: AttentionLayout | None, rules: Rules, context: Context) -> Attention:
    return Attention(
        tuple(q.shape),
        tuple(k.shape),
        dtype=DTYPES[q.dtype],
        head_size_v=v.shape[3],
        layout=layout,
        window=(rules.left, rules.right),
        align_ends=rules.align_ends,
        scale=rules.scale or None,
        soft_cap=rules.soft_cap,
        context=context,
    )
