# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest for FlashInfer's tests/attention: test_block_sparse.py, test_vsa_block_sparse.py and test_vsa_block_sparse_sm120.py.

FlashInfer is not needed: what the files import of it is here, its dense reference in float32 by torch. Blocks that a GPU has kernels
for are a layout as they are given; others, of various sizes too, and masks within blocks, are one of 64 x 64 blocks with bits. Which
GPU the kernels of FlashInfer need is asked of FlashInfer, and here always the one that there is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import torch
from suite_counts import leave_out, note, pytest_runtest_call, pytest_runtest_makereport, pytest_runtest_setup, pytest_terminal_summary

import sparsek.torch as st

__all__ = ["pytest_runtest_call", "pytest_runtest_makereport", "pytest_runtest_setup", "pytest_terminal_summary"]

_UNIT = 64
_PAIRS = 1 << 26  # the most of which a dense mask is made at once
_OWN = {
    "test_vsa_vs_auto_80k": "it compares two of FlashInfer's kernels, which here are one",
    "test_vsa_blk64_rejects_empty_rows": "it expects rows without blocks to be refused, which sparsek computes",
}


def single_prefill_with_kv_cache(q: Any, k: Any, v: Any, custom_mask: Any) -> Any:
    """Dense attention of (rows, heads, head size), with 0 for rows that see nothing."""
    group, made = q.shape[1] // k.shape[1], []
    for head in range(q.shape[1]):
        one, key, value = q[:, head].float(), k[:, head // group].float(), v[:, head // group].float()
        scores = (one @ key.t() * q.shape[-1] ** -0.5).masked_fill(~custom_mask, -torch.inf)
        made.append(scores.softmax(-1).nan_to_num(0) @ value)
    return torch.stack(made, 1).to(q.dtype)


def _attention(q: Any, k: Any, v: Any, layout: st.BlockLayout, **options: Any) -> tuple[Any, Any]:
    """O and LSE of (heads, rows, head size)."""
    with torch.no_grad():
        o, lse = st.attention(q[None], k[None], v[None], layout, return_lse=True, **options)
    return o[0], lse[0]


class BlockSparseAttentionWrapper:
    """Plans and runs, with the arguments that the files give."""

    def __init__(self, _workspace: Any, backend: str = "auto") -> None:
        self.backend = backend

    def plan(
        self,
        indptr: Any,
        indices: Any,
        m: int,
        n: int,
        r: int,
        c: int,
        *_: int,
        mask: Any = None,
        block_mask: Any = None,
        sm_scale: float | None = None,
        q_data_type: Any = None,
    ) -> None:
        """The layout: of the blocks, with bits where they are not multiples of 16 x 16 or have a mask."""
        self.scale, seq = sm_scale, (m, n)
        if block_mask is not None:
            self.layout, self.how = st.BlockLayout.from_mask(block_mask, (r, c), seq), "a mask of blocks for each head"
            return
        self.layout, self.how = st.layouts.from_bsr(indptr, indices, (r, c), seq), "blocks as given"
        if mask is None and r % 16 == 0 and c % 16 == 0:
            return
        seen = torch.zeros(m // r, n // c, r, c, dtype=torch.bool, device=indptr.device)
        rows = torch.repeat_interleave(torch.arange(m // r, device=indptr.device), indptr.long().diff())
        seen[rows, indices.long()] = True if mask is None else mask.to(seen.device)
        block = (r, c) if r % 16 == 0 and c % 16 == 0 else (_UNIT, _UNIT)
        self.layout = st.BlockLayout.from_dense_mask(seen.transpose(1, 2).reshape(m, n), block)
        self.how = "blocks as given, with bits" if block == (r, c) else "64 x 64 blocks with bits"

    def run(self, q: Any, k: Any, v: Any, out: Any = None, return_lse: bool = False) -> Any:
        """(rows, heads, head size), also in `out`, and (rows, heads) of LSE."""
        o, lse = _attention(q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1), self.layout, scale=self.scale)
        note(f"{self.how}, on {q.device.type}")
        made = o.transpose(0, 1).contiguous()
        made = made if out is None else out.copy_(made)
        return (made, lse.transpose(0, 1)) if return_lse else made


class VariableBlockSparseAttentionWrapper:
    """Blocks of various sizes, for each head of keys its own: as bits of 64 x 64 blocks."""

    def __init__(self, _workspace: Any, backend: str = "auto") -> None:
        self.backend = backend

    def plan(
        self, block_mask_map: Any, block_row_sz: Any, block_col_sz: Any, num_qo_heads: int, num_kv_heads: int, head_dim: int, **_: Any
    ) -> None:
        """Keeps the sizes: the dense mask of many heads at once would take too much memory."""
        self.given, self.group = (block_mask_map, block_row_sz.long(), block_col_sz.long()), num_qo_heads // num_kv_heads

    def run(self, q: Any, k: Any, v: Any) -> Any:
        """(heads, rows, head size)."""
        at_once = max(1, _PAIRS // (q.shape[1] * k.shape[1]))
        made = []
        for first in range(0, k.shape[0], at_once):
            heads = slice(first, min(first + at_once, k.shape[0]))
            layout = st.BlockLayout.from_dense_mask(torch.stack(list(self._seen(heads))), _UNIT)
            queries = slice(heads.start * self.group, heads.stop * self.group)
            made.append(_attention(q[queries], k[heads], v[heads], layout)[0])
        note(f"blocks of various sizes as 64 x 64 blocks with bits, on {q.device.type}")
        return torch.cat(made)

    def _seen(self, heads: slice) -> Iterator[Any]:
        for shown, high, wide in zip(*(one[heads] for one in self.given), strict=True):
            yield shown.repeat_interleave(high.to(shown.device), 0).repeat_interleave(wide.to(shown.device), 1)


def _module(name: str, **members: Any) -> ModuleType:
    made = sys.modules[name] = ModuleType(name)
    made.__spec__ = ModuleSpec(name, None)
    for member, value in members.items():
        setattr(made, member, value)
    outer, _, inner = name.rpartition(".")
    if outer:
        setattr(sys.modules[outer], inner, made)
    return made


def _none(*_: Any, **__: Any) -> list[Any]:
    return []


def _yes(*_: Any, **__: Any) -> bool:
    return True


def _wanted(*_: Any) -> tuple[int, int]:
    return 10, 0


_wrappers: dict[str, Any] = {
    "BlockSparseAttentionWrapper": BlockSparseAttentionWrapper,
    "VariableBlockSparseAttentionWrapper": VariableBlockSparseAttentionWrapper,
}
_module("quack")
_module("flashinfer", __version__="sparsek", single_prefill_with_kv_cache=single_prefill_with_kv_cache, **_wrappers)
_module("flashinfer.jit", build_jit_specs=_none)
_module("flashinfer.prefill", single_prefill_with_kv_cache=single_prefill_with_kv_cache)
_module("flashinfer.sparse", **_wrappers)
_module("flashinfer.testing", bench_gpu_time=_none)
_module("flashinfer.cute_dsl")
_module("flashinfer.cute_dsl.utils", is_cute_dsl_arch_supported=_yes)
_module(
    "flashinfer.utils", has_flashinfer_jit_cache=_yes, get_compute_capability=_wanted, is_sm100a_supported=_yes, is_sm12x_supported=_yes
)
_module("tests")
_module("tests.test_helpers")
_module("tests.test_helpers.jit_utils", gen_decode_attention_modules=_none, gen_prefill_attention_modules=_none)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Leaves out what tests no attention of sparsek's."""
    leave_out(items, lambda item: _OWN.get(item.originalname))
