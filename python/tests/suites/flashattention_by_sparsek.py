# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest for tests/cute of FlashAttention: test_mask_mod.py, test_mask_mod_varlen.py and test_block_sparsity.py.

FlashAttention and CuTe are not needed: what the files import of them is here. A mask_mod is called with tensors of all places in
place of CuTe's values. Its layout has the blocks of the BlockSparseTensorsTorch that a test gives, with bits of what the mask_mod
hides in those that are not full; without these, the blocks in which it shows something. compute_block_sparsity has the blocks of
BlockLayout.from_dense_mask. Packed sequences are computed one by one. Tests of FlashAttention's own functions are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import torch
from suite_counts import leave_out, note, pytest_runtest_call, pytest_runtest_makereport, pytest_runtest_setup, pytest_terminal_summary
from torch.nn.attention.flex_attention import BlockMask

import sparsek.torch as st
from sparsek.attention import rules_of

__all__ = ["pytest_runtest_call", "pytest_runtest_makereport", "pytest_runtest_setup", "pytest_terminal_summary"]

_OWN = {
    "test_sm100_block_sparse_bwd_kv_subtile": "FlashAttention's own choice of tiles",
    "test_block_sparse_bwd_normalize": "FlashAttention's own choice of tiles",
    "test_sm90_block_sparse_bwd_mismatched": "it expects a size of blocks to be refused that sparsek has kernels for",
    "test_dq_write_order": "the order in which FlashAttention's kernel adds gradients; sparsek adds nothing atomically",
}
_REFUSED = ("qv", "page_table", "learnable_sink", "score_mod", "gather_kv_indices", "q_descale", "k_descale", "v_descale")


class BlockSparseTensorsTorch(NamedTuple):
    """FlashAttention's lists of blocks."""

    mask_block_cnt: torch.Tensor
    mask_block_idx: torch.Tensor
    full_block_cnt: torch.Tensor | None = None
    full_block_idx: torch.Tensor | None = None
    cu_total_m_blocks: torch.Tensor | None = None
    cu_block_idx_offsets: torch.Tensor | None = None
    block_size: tuple[int, int] | None = None
    dq_write_order: torch.Tensor | None = None
    dq_write_order_full: torch.Tensor | None = None
    spt: bool | None = None


def _lists_of(four: list[Any], **others: Any) -> BlockSparseTensorsTorch:
    return BlockSparseTensorsTorch(four[0], four[1], four[2], four[3], **others)


class _Lengths(NamedTuple):
    """What a mask_mod asks of a sequence."""

    seqlen_q: int
    seqlen_k: int
    offset_q: int = 0
    offset_k: int = 0


class _Mask(NamedTuple):
    """A mask_mod with what it reads. It is called with tensors whose first dimension stands for CuTe's vector, of one element."""

    function: Callable[..., Any]
    lengths: _Lengths
    first: int  # batch
    tensors: Any
    scalars: Any

    def shows(self, batch: torch.Tensor, head: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        """For 0-dimensional places, as FlexAttention calls it."""
        return self._called([place.reshape(1) for place in (batch + self.first, head, query, key)]).reshape(())

    def dense(self, batches: int, heads: int, device: torch.device) -> torch.Tensor:
        """Which keys queries see: (batches or 1, heads or 1, queries, keys)."""
        extents = (batches, heads, self.lengths.seqlen_q, self.lengths.seqlen_k)
        places = [torch.arange(extent, device=device).reshape(-1, *[1] * (3 - at)) for at, extent in enumerate(extents)]
        places[0] = places[0] + self.first
        seen = self._called([place.reshape(1, *[1] * (4 - place.dim()), *place.shape) for place in places])
        seen = seen[0] if seen.dim() == 5 else seen
        return seen.expand(seen.shape[0], seen.shape[1], *extents[2:])

    def _called(self, places: list[torch.Tensor]) -> torch.Tensor:
        more = () if self.scalars is None else (self.scalars,)
        seen: torch.Tensor = self.function(*places, self.lengths, self.tensors, *more)
        return seen


def _padded(index: torch.Tensor, wide: int) -> torch.Tensor:
    return torch.nn.functional.pad(index, (0, wide - index.shape[-1]))


def _listed(shown: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Counts and indices of the blocks of each row of a mask of blocks."""
    return shown.sum(-1, dtype=torch.int32), shown.int().sort(dim=-1, descending=True, stable=True).indices.int()


def _by_queries(lists: list[torch.Tensor | None], block: tuple[int, int], seq: tuple[int, int]) -> list[torch.Tensor | None]:
    """Lists of the queries' blocks of each block of keys as lists of the keys' blocks of each block of queries."""
    found: list[torch.Tensor | None] = []
    for count, index in zip(lists[::2], lists[1::2], strict=True):
        if count is None or index is None:
            found += [None, None]
            continue
        of_keys = st.layouts.from_block_tensors(count, index, (block[1], block[0]), (seq[1], seq[0]))
        found += _listed(of_keys.mask().transpose(2, 3))
    return found


def _layout(
    given: BlockSparseTensorsTorch | None,
    mask: _Mask | None,
    tile: tuple[int, int],
    seq: tuple[int, int],
    batches: int,
    heads: int,
    device: torch.device,
    *,
    by_keys: bool = False,
) -> st.BlockLayout | None:
    """The layout of lists, of a mask_mod, or of both. by_keys: the lists are of blocks of keys, as the backward pass has them."""
    if given is None:
        if mask is None:
            return None
        note("a layout of a mask_mod alone")
        return st.BlockLayout.from_dense_mask(mask.dense(batches, heads, device), tile)
    block = given.block_size or tile
    lists = list(given[:4])
    if by_keys:
        lists = _by_queries(lists, block, seq)
    if mask is not None and mask.tensors is not None:  # it may say another thing for each batch and head
        lists = [one if one is None else one.expand(batches, heads, *one.shape[2:]) for one in lists]
    note("a layout of block tensors" + (", with bits of a mask_mod" if mask is not None else ""))
    if mask is None:
        return st.layouts.from_block_tensors(lists[0], lists[1], block, seq, full_counts=lists[2], full_indices=lists[3])
    wide = -(-seq[1] // block[1])
    lists = [one if one is None or one.dim() < 4 else _padded(one, wide) for one in lists]
    made = BlockMask.from_kv_blocks(*lists, BLOCK_SIZE=block, mask_mod=mask.shows, seq_lengths=seq)
    return st.layouts.from_block_mask(made, bits=True)


def _rules(mask: _Mask | None, causal: bool, left: int | None, right: int | None) -> dict[str, Any]:
    """As FlashAttention reads them: none beside a mask_mod, and aligned to the ends."""
    if mask is not None:
        return {}
    if left is not None and right is not None and left + right < 0:
        left = right = None
    return {"causal": causal, "window": (left, right), "align_ends": True}


class _Sequence(NamedTuple):
    """A sequence of the operands, or all of a batch that has no others."""

    queries: Any  # index of (..., heads, head size) for (batch, queries, heads, head size)
    keys: Any
    lengths: _Lengths
    first: int
    batches: int
    given: BlockSparseTensorsTorch | None


def _cut(
    given: BlockSparseTensorsTorch | None, at: int, seq: tuple[int, int], tile: tuple[int, int], packed: bool
) -> BlockSparseTensorsTorch | None:
    """The lists of one sequence."""
    if given is None:
        return None
    high, wide = given.block_size or tile
    rows, columns = -(-seq[0] // high), -(-seq[1] // wide)
    if not packed:
        whole = [one if one is None else (one if one.shape[0] == 1 else one[at : at + 1]) for one in given[:4]]
        return _lists_of(whole, block_size=(high, wide))
    assert given.cu_total_m_blocks is not None
    begin = int(given.cu_total_m_blocks[at])
    first = begin * columns if given.cu_block_idx_offsets is None else int(given.cu_block_idx_offsets[at])
    last = first + rows * columns
    cut: list[Any] = []
    for count, index in zip(given[:4:2], given[1:4:2], strict=True):
        cut.append(None if count is None else count[None, :, begin : begin + rows])
        cut.append(None if index is None else index[None, :, first:last].unflatten(2, (rows, columns)))
    return _lists_of(cut, block_size=(high, wide))


def _sequences(
    q: torch.Tensor, k: torch.Tensor, given: Any, tile: tuple[int, int], cu_q: Any, cu_k: Any, used_q: Any, used_k: Any
) -> Iterator[_Sequence]:
    if all(lengths is None for lengths in (cu_q, cu_k, used_q, used_k)):
        yield _Sequence(slice(None), slice(None), _Lengths(q.shape[1], k.shape[1]), 0, q.shape[0], given)
        return
    batches = q.shape[0] if cu_q is None else cu_q.numel() - 1
    for at in range(batches):
        places, extents, offsets = [], [], []
        for x, cu, used in ((q, cu_q, used_q), (k, cu_k, used_k)):
            begin = 0 if cu is None else int(cu[at])
            extent = x.shape[1] if cu is None else int(cu[at + 1]) - begin
            extent = extent if used is None else int(used[at])
            rows = slice(begin, begin + extent)
            places.append((None, rows) if cu is not None else (slice(at, at + 1), rows))
            extents.append(extent)
            offsets.append(begin)
        seq = (extents[0], extents[1])
        yield _Sequence(places[0], places[1], _Lengths(*seq, *offsets), at, 1, _cut(given, at, seq, tile, cu_q is not None))


def _refuse(options: dict[str, Any]) -> None:
    for name in _REFUSED:
        if options.get(name) is not None:
            pytest.skip(f"{name} is not served")


def _fwd(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    softmax_scale: float | None = None,
    causal: bool = False,
    softcap: float | None = None,
    window_size_left: int | None = None,
    window_size_right: int | None = None,
    tile_mn: tuple[int, int] | None = None,
    mask_mod: Any = None,
    aux_tensors: Any = None,
    aux_scalars: Any = None,
    block_sparse_tensors: BlockSparseTensorsTorch | None = None,
    out: torch.Tensor | None = None,
    lse: torch.Tensor | None = None,
    cu_seqlens_q: Any = None,
    cu_seqlens_k: Any = None,
    seqused_q: Any = None,
    seqused_k: Any = None,
    **others: Any,
) -> tuple[Any, Any, None, None]:
    """_flash_attn_fwd, of (batch, sequence, heads, head size) or of packed sequences."""
    _refuse(others)
    tile = tile_mn or (128, 128)
    made: list[tuple[torch.Tensor, torch.Tensor]] = []
    for one in _sequences(q, k, block_sparse_tensors, tile, cu_seqlens_q, cu_seqlens_k, seqused_q, seqused_k):
        mask = None if mask_mod is None else _Mask(mask_mod, one.lengths, one.first, aux_tensors, aux_scalars)
        seq = (one.lengths.seqlen_q, one.lengths.seqlen_k)
        layout = _layout(one.given, mask, tile, seq, one.batches, q.shape[-2], q.device)
        q1, k1, v1 = (x[place].transpose(1, 2) for x, place in ((q, one.queries), (k, one.keys), (v, one.keys)))
        rules = _rules(mask, causal, window_size_left, window_size_right)
        found, sums = st.attention(q1, k1, v1, layout, scale=softmax_scale, soft_cap=softcap or 0.0, return_lse=True, **rules)
        made.append((found.transpose(1, 2), sums))
    if cu_seqlens_q is None:
        o, sums = (torch.cat(parts) for parts in zip(*made, strict=True))
    else:
        o, sums = torch.cat([part[0] for part, _ in made]), torch.cat([part[0] for _, part in made], 1)
    return (o if out is None else out.copy_(o)), (sums if lse is None else lse.copy_(sums)), None, None


def _flash_attn_fwd(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: Any) -> tuple[Any, Any, None, None]:
    with torch.no_grad():
        return _fwd(q, k, v, **options)


def flash_attn_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    window_size: tuple[int | None, int | None] = (None, None),
    block_sparse_tensors_bwd: Any = None,
    **options: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """With gradients, which have the layout of the forward pass: block_sparse_tensors_bwd is not read."""
    return _fwd(q, k, v, window_size_left=window_size[0], window_size_right=window_size[1], **options)[:2]


def _flash_attn_bwd(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    dout: torch.Tensor,
    lse: torch.Tensor,
    *,
    softmax_scale: float | None = None,
    causal: bool = False,
    softcap: float = 0.0,
    window_size_left: int | None = None,
    window_size_right: int | None = None,
    m_block_size: int = 128,
    n_block_size: int = 128,
    mask_mod: Any = None,
    aux_tensors: Any = None,
    aux_scalars: Any = None,
    block_sparse_tensors: BlockSparseTensorsTorch | None = None,
    **others: Any,
) -> tuple[torch.Tensor, ...]:
    """The gradients of q, k and v, of what the forward pass has computed; the lists are of blocks of keys."""
    _refuse(others)
    seq = (q.shape[1], k.shape[1])
    mask = None if mask_mod is None else _Mask(mask_mod, _Lengths(*seq), 0, aux_tensors, aux_scalars)
    tile = (m_block_size, n_block_size)
    layout = _layout(block_sparse_tensors, mask, tile, seq, q.shape[0], q.shape[2], q.device, by_keys=True)
    rules = _rules(mask, causal, window_size_left, window_size_right)
    left, right = rules_of(rules.get("causal", False), rules.get("window", (None, None)))
    index = (None, None, [0, 0, 1, 1]) if layout is None else (layout.crow, layout.col, list(layout.form()))
    bits = (None, None) if layout is None or layout.bits is None else layout.bits
    operands = [x.transpose(1, 2) for x in (dout, q, k, v, out)]
    rest = (left, right, rules.get("align_ends", False), softmax_scale or 0.0, softcap, None, None, [True, True, True], None, *bits)
    found = torch.ops.sparsek.attention_backward(*operands, lse, *index, *rest)
    note("gradients of what the forward pass had")
    return tuple(gradient.transpose(1, 2) for gradient in found[:3])


def compute_block_sparsity(
    tile_m: int,
    tile_n: int,
    batch_size: int,
    num_heads: int,
    seqlen_q: int,
    seqlen_k: int,
    mask_mod: Any,
    aux_tensors: Any,
    device: Any,
    aux_scalars: Any = None,
    cu_seqlens_q: Any = None,
    cu_seqlens_k: Any = None,
    seqused_q: Any = None,
    seqused_k: Any = None,
    cu_total_m_blocks: Any = None,
    cu_block_idx_offsets: Any = None,
    **_: Any,
) -> BlockSparseTensorsTorch:
    """The lists of the blocks in which a mask_mod hides some pairs, and of those in which it hides none."""

    def of(lengths: _Lengths, first: int, batches: int) -> list[torch.Tensor]:
        mask = _Mask(mask_mod, lengths, first, aux_tensors, aux_scalars)
        layout = st.BlockLayout.from_dense_mask(mask.dense(batches, num_heads, torch.device(device)), (tile_m, tile_n))
        shown = layout.mask()
        partial = torch.zeros_like(shown) if layout.bits is None else (layout.bits[0] >= 0).reshape(shown.shape)
        lists = [*_listed(shown & partial), *_listed(shown & ~partial)]
        return [one.expand(batches, num_heads, *one.shape[2:]) for one in lists]

    lengths = [(cu_seqlens_q, seqused_q, seqlen_q), (cu_seqlens_k, seqused_k, seqlen_k)]
    if all(cu is None and used is None for cu, used, _ in lengths):
        return _lists_of(of(_Lengths(seqlen_q, seqlen_k), 0, batch_size), block_size=(tile_m, tile_n))
    parts = []
    for at in range(batch_size):
        offsets = [0 if cu is None else int(cu[at]) for cu, _, _ in lengths]
        extents = [
            int(used[at]) if used is not None else most if cu is None else int(cu[at + 1]) - begin
            for (cu, used, most), begin in zip(lengths, offsets, strict=True)
        ]
        parts.append(of(_Lengths(*extents, *offsets), at, 1))
    if cu_seqlens_q is not None:
        joined = [torch.cat([part[at][0].flatten(1) for part in parts], 1) for at in range(4)]
    else:
        wide = -(-seqlen_k // tile_n)
        joined = [torch.cat([part[at] if part[at].dim() == 3 else _padded(part[at], wide) for part in parts]) for at in range(4)]
    offsets_of = {"cu_total_m_blocks": cu_total_m_blocks, "cu_block_idx_offsets": cu_block_idx_offsets}
    return _lists_of(joined, block_size=(tile_m, tile_n), **offsets_of)


class _Fragment:
    """One value of each place, as CuTe has them in registers."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.value: Any = None

    def store(self, value: Any) -> None:
        self.value = value

    def load(self) -> Any:
        return self.value

    def __getitem__(self, at: int) -> Any:
        return self.value[at]

    def __setitem__(self, at: int, value: Any) -> None:
        self.value = value


def _module(name: str, **members: Any) -> ModuleType:
    made = sys.modules[name] = ModuleType(name)
    for member, value in members.items():
        setattr(made, member, value)
    outer, _, inner = name.rpartition(".")
    if outer:
        setattr(sys.modules[outer], inner, made)
    return made


def _unchanged(value: Any, *_: Any) -> Any:
    return value


def _own(*_: Any, **__: Any) -> Any:
    pytest.skip("FlashAttention's own function")


def _least(a: Any, b: Any) -> Any:
    return torch.clamp(a, max=b) if isinstance(a, torch.Tensor) else min(a, b)


_module("cutlass", Int32=int, Uint32=int, Boolean=bool, min=_least, range_constexpr=range)
_module("cutlass.cute", jit=_unchanged, TensorSSA=torch.Tensor, make_rmem_tensor=_Fragment)
_module("flash_attn")
_module("flash_attn.cute")
_module("flash_attn.cute.utils", scalar_to_ssa=_unchanged, shr_u32=_own, shl_u32=_own)
_module("flash_attn.cute.cache_utils", get_jit_cache=_own)
_module("flash_attn.cute.compute_block_sparsity", compute_block_sparsity=compute_block_sparsity)
_module("flash_attn.cute.interface", _flash_attn_fwd=_flash_attn_fwd, _flash_attn_bwd=_flash_attn_bwd, flash_attn_func=flash_attn_func)
_module(
    "flash_attn.cute.block_sparsity",
    BlockSparseTensorsTorch=BlockSparseTensorsTorch,
    fast_sampling=_unchanged,
    block_sparse_bwd_supports_2cta=_own,
    get_kv_subtile_factor=_own,
    normalize_block_sparse_config_bwd=_own,
    compute_dq_write_order=_own,
    compute_dq_write_order_from_block_mask=_own,
)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Leaves out what tests no attention."""
    leave_out(items, lambda item: next((why for name, why in _OWN.items() if item.originalname.startswith(name)), None))
