# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest for test_block_sparse_attention of FlashInfer's tests/attention/test_block_sparse.py: sparsek computes it.

FlashInfer is not needed: what the file imports of it is here, its dense reference in float32 by torch. Where a GPU has no kernel for
the blocks or heads, and where a mask says more than blocks do, which then is a layout of blocks of 1 x 1, the CPU computes it; at the
end it says how many cases had which.
"""

from __future__ import annotations

import sys
from collections import Counter
from types import ModuleType
from typing import Any

import pytest
import torch

import sparsek
import sparsek.torch as st

_computed: Counter[str] = Counter()


def single_prefill_with_kv_cache(q: Any, k: Any, v: Any, custom_mask: Any) -> Any:
    """Dense attention of (rows, heads, head size), with 0 for rows that see nothing."""
    group = q.shape[1] // k.shape[1]
    by_head, keys, values = (x.transpose(0, 1).float() for x in (q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)))
    scores = (by_head @ keys.transpose(1, 2) * q.shape[-1] ** -0.5).masked_fill(~custom_mask, -torch.inf)
    return (scores.softmax(-1).nan_to_num(0) @ values).transpose(0, 1).to(q.dtype)


class BlockSparseAttentionWrapper:
    """Plans and runs, with the arguments that the file gives."""

    def __init__(self, _workspace: Any, backend: str = "auto") -> None:
        if backend != "auto":
            pytest.skip(f"backend {backend} is FlashInfer's own")

    def plan(self, indptr: Any, indices: Any, m: int, n: int, r: int, c: int, *_: int, mask: Any = None) -> None:
        """The layout: of blocks, or of elements where there is a mask."""
        self.has_mask = mask is not None
        self.layout = st.layouts.from_bsr(indptr, indices, (r, c), (m, n))
        if self.has_mask:
            blocks = mask[:, :, :].cpu()
            seen = torch.zeros(m // r, n // c, r, c, dtype=torch.bool)
            rows = torch.repeat_interleave(torch.arange(m // r), indptr.cpu().long().diff())
            seen[rows, indices.cpu().long()] = blocks
            self.layout = st.BlockLayout.from_mask(seen.transpose(1, 2).reshape(m, n), 1, (m, n))

    def run(self, q: Any, k: Any, v: Any, out: Any = None) -> Any:
        """(rows, heads, head size), also in `out`."""
        q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
        on_gpu = not self.has_mask
        if on_gpu:
            try:
                o = st.attention(q, k, v, self.layout)
            except sparsek.UnsupportedError:
                on_gpu = False
        if not on_gpu:
            o = st.attention(q.cpu(), k.cpu(), v.cpu(), self.layout.to("cpu")).to(q.device)
        _computed["GPU" if on_gpu else "CPU, of a mask in blocks" if self.has_mask else "CPU, of what a GPU refuses"] += 1
        made = o[0].transpose(0, 1).contiguous()
        return made if out is None else out.copy_(made)


class VariableBlockSparseAttentionWrapper:
    """Blocks of various sizes are none of sparsek's."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pytest.skip("blocks have one size")


def _module(name: str, **members: Any) -> ModuleType:
    made = sys.modules[name] = ModuleType(name)
    for member, value in members.items():
        setattr(made, member, value)
    return made


_none: Any = lambda *_, **__: []  # noqa: E731
flashinfer = _module("flashinfer", __version__="sparsek")
flashinfer.jit = _module("flashinfer.jit", build_jit_specs=_none)  # type: ignore[attr-defined]
flashinfer.prefill = _module("flashinfer.prefill", single_prefill_with_kv_cache=single_prefill_with_kv_cache)  # type: ignore[attr-defined]
flashinfer.sparse = _module(  # type: ignore[attr-defined]
    "flashinfer.sparse",
    BlockSparseAttentionWrapper=BlockSparseAttentionWrapper,
    VariableBlockSparseAttentionWrapper=VariableBlockSparseAttentionWrapper,
)
flashinfer.utils = _module("flashinfer.utils", has_flashinfer_jit_cache=lambda: True)  # type: ignore[attr-defined]
_module("tests")
_module("tests.test_helpers")
_module("tests.test_helpers.jit_utils", gen_decode_attention_modules=_none, gen_prefill_attention_modules=_none)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Which of them computed."""
    for where, count in sorted(_computed.items()):
        terminalreporter.write_line(f"{count} calls: {where}")
