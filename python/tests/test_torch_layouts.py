# SPDX-License-Identifier: Apache-2.0
"""Layouts of attention: each by its definition for single queries and keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_reference import Place, on_device  # noqa: E402

import sparsek  # noqa: E402
import sparsek.torch as st  # noqa: E402
from sparsek.torch import BlockLayout, layouts  # noqa: E402

assert on_device  # runs all of them on each kind of device

SIZES: list[tuple[Any, Any]] = [((37, 50), (8, 6)), ((50, 37), (6, 8)), (48, 16), ((5, 90), (16, 16))]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")


def blocks_of(seen: Callable[[int, int], bool], seq: Any, block: Any) -> Any:
    """The blocks with a query i and a key j for which seen(i, j)."""
    (queries, keys), (high, wide) = ((given, given) if isinstance(given, int) else given for given in (seq, block))
    mask = torch.zeros(-(-queries // high), -(-keys // wide), dtype=torch.bool, device=Place.device)
    for i in range(queries):
        for j in range(keys):
            if seen(i, j):
                mask[i // high, j // wide] = True
    return mask


def shift_of(seq: Any) -> int:
    return 0 if isinstance(seq, int) else seq[1] - seq[0]


def same(layout: BlockLayout, mask: Any) -> None:
    assert torch.equal(layout.mask()[0, 0], mask)
    assert (layout.crow.dtype, layout.col.dtype, layout.col.device) == (torch.int32, torch.int32, mask.device)


@pytest.mark.parametrize(("seq", "block"), SIZES)
def test_rules(seq: Any, block: Any) -> None:
    at: dict[str, Any] = {"device": Place.device}
    shift = shift_of(seq)
    same(layouts.full(seq, block, **at), blocks_of(lambda i, j: True, seq, block))
    same(layouts.causal(seq, block, **at), blocks_of(lambda i, j: j <= i, seq, block))
    same(layouts.causal(seq, block, align_ends=True, **at), blocks_of(lambda i, j: j <= i + shift, seq, block))
    same(layouts.window(seq, block, 7, 2, **at), blocks_of(lambda i, j: i - 7 <= j <= i + 2, seq, block))
    same(layouts.window(seq, block, -3, None, align_ends=True, **at), blocks_of(lambda i, j: j >= i + shift + 3, seq, block))
    same(layouts.sinks(seq, block, 9, **at), blocks_of(lambda i, j: j < 9, seq, block))
    wide = block if isinstance(block, int) else block[1]
    same(layouts.strided(seq, block, 4, 3, **at), blocks_of(lambda i, j: abs(i - j) <= 4 or (j // wide) % 3 == 2, seq, block))
    both = blocks_of(lambda i, j: abs(i - j) <= 4 or i < 9 or j < 9, seq, block)
    same(layouts.bigbird(seq, block, 4, 9, 0, **at), both)
    drawn = layouts.bigbird(seq, block, 4, 9, 2, heads=3, generator=torch.Generator().manual_seed(1), **at).mask()
    assert drawn.shape[:2] == (1, 3)
    added = (drawn & ~both).sum(-1)
    assert bool((drawn | ~both).all())
    assert bool((added <= 2).all())
    assert added.sum() > 0 or both.float().mean() > 0.7
    again = layouts.bigbird(seq, block, 4, 9, 2, heads=3, generator=torch.Generator().manual_seed(1), **at)
    assert torch.equal(again.mask(), drawn)


def test_layouts_are_joined() -> None:
    near, first = layouts.window(48, 8, 8, 8, device=Place.device), layouts.sinks(48, 8, 8, device=Place.device)
    same(near | first, blocks_of(lambda i, j: abs(i - j) <= 8 or j < 8, 48, 8))
    down = layouts.causal(48, 8, device=Place.device)
    same((near | first) & down, blocks_of(lambda i, j: abs(i - j) <= 8 or j < 8, 48, 8).tril())
    heads = BlockLayout.from_mask(torch.rand(2, 3, 6, 6).to(Place.device) < 0.3, 8)
    assert torch.equal((heads & down).mask(), heads.mask().tril())
    with pytest.raises(sparsek.ArgumentError, match="do not have the same blocks"):
        _ = near | layouts.sinks(48, 16, 8, device=Place.device)


def test_documents() -> None:
    ids = [0] * 16 + [1] * 48 + [2] * 32
    same(layouts.documents([16, 48, 32], (8, 16), device=Place.device), blocks_of(lambda i, j: ids[i] == ids[j], 96, (8, 16)))
    with pytest.raises(sparsek.ArgumentError, match="a document of 24 does not end with a block of 16 x 16"):
        layouts.documents([16, 24], 16)


@pytest.mark.parametrize(("causal", "align"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize(("seq", "block"), [((96, 96), (16, 16)), ((37, 50), (8, 6)), ((24, 90), (8, 16)), ((33, 64), (16, 8))])
def test_the_highest_scores(causal: bool, align: bool, seq: tuple[int, int], block: tuple[int, int]) -> None:
    rows, columns = -(-seq[0] // block[0]), -(-seq[1] // block[1])
    scores = torch.randn(2, 3, rows, columns, generator=torch.Generator().manual_seed(1)).to(Place.device)
    keep = torch.zeros(rows, columns, dtype=torch.bool, device=Place.device)
    keep[:, 0] = True
    found = BlockLayout.from_scores(scores, block, seq, count=3, causal=causal, align_ends=align, keep=keep)
    mask, shift = found.mask(), seq[1] - seq[0] if align else 0
    seen = blocks_of(lambda i, j: not causal or j <= i + shift, seq, block)
    assert bool((seen | ~mask).all())
    for batch in range(2):
        for head in range(3):
            for row in range(rows):
                order = scores[batch, head, row].argsort(descending=True).tolist()
                ranked = [column for column in [0, *(one for one in order if one)] if seen[row, column]]
                assert mask[batch, head, row].nonzero().flatten().tolist() == sorted(ranked[:3])


def test_scores_as_they_come() -> None:
    scores = torch.tensor([[-torch.inf, -torch.inf, 1.0], [torch.nan, 2.0, 3.0], [0.0, 0.0, 0.0]], device=Place.device)
    found = BlockLayout.from_scores(scores, 8, count=2, causal=True)
    assert found.mask()[0, 0].tolist() == [[True, False, False], [True, True, False], [True, True, False]]
    assert BlockLayout.from_scores(scores, 8, count=9).density == 1
    with pytest.raises(sparsek.ArgumentError, match="0 blocks of each block row"):
        BlockLayout.from_scores(scores, 8, count=0)


def test_a_layout_as_it_is() -> None:
    mask = torch.rand(2, 3, 5, 9).to(Place.device) < 0.4
    layout = BlockLayout.from_mask(mask, (8, 6), (37, 50))
    assert torch.equal(layout.mask(), mask)
    assert layout.density == pytest.approx(float(mask.float().mean()))
    whole = layout.dense_mask(6)
    assert whole.shape == (2, 6, 37, 50)
    assert bool(whole[1, 5, 36, 49]) == bool(mask[1, 2, 4, 8])
    assert torch.equal(layout.to("cpu").mask(), mask.cpu())
    assert repr(layout) == f"BlockLayout(37x50 in 8x6, {int(mask.sum())} blocks, batch=2, heads=3)"
    with pytest.raises(sparsek.ArgumentError, match="do not have 5 x 9 blocks"):
        BlockLayout.from_mask(mask[0], (8, 6), (41, 50))
    with pytest.raises(sparsek.ArgumentError, match="two to four dimensions"):
        BlockLayout.from_mask(mask.int(), 8)
    with pytest.raises(sparsek.ArgumentError, match=r"are not \(5,\)"):
        BlockLayout(layout.crow, layout.col, (8, 6), (32, 50))


@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_a_block_mask() -> None:
    flex = pytest.importorskip("torch.nn.attention.flex_attention")

    def near(batch: Any, head: Any, i: Any, j: Any) -> Any:
        return (j <= i) & (i - j <= 20 + 0 * batch)

    def made(function: Any, heads: int = 1) -> Any:
        return flex.create_block_mask(function, 1, heads, 96, 128, device=Place.device, BLOCK_SIZE=(16, 32))

    layout = layouts.from_block_mask(made(near), window=(20, 0))
    same(layout, blocks_of(lambda i, j: 0 <= i - j <= 20, (96, 128), (16, 32)))
    with pytest.raises(sparsek.ArgumentError, match=r"query 0 of batch 0 and head 0 does not see key 1, which these blocks and rules show"):
        layouts.from_block_mask(made(near))
    with pytest.raises(sparsek.ArgumentError, match=r"query 1 .* sees key 0, which these blocks and rules hide"):
        layouts.from_block_mask(made(near), window=(0, 0))
    same(layouts.from_block_mask(made(near), check=False), layout.mask()[0, 0])

    def whole(batch: Any, head: Any, i: Any, j: Any) -> Any:
        return (i // 16 + j // 32 + head) % 2 == 0

    of_heads = layouts.from_block_mask(made(whole, 2))
    assert of_heads.mask().shape == (1, 2, 6, 4)
    q, k, v = (torch.randn(1, 2, length, 16, dtype=torch.float64) for length in (96, 128, 128))
    exact = flex.flex_attention(q, k, v, block_mask=made(whole, 2).to("cpu"))
    torch.testing.assert_close(st.attention(q, k, v, of_heads.to("cpu")), exact, rtol=1e-11, atol=1e-13)


def test_a_mask_of_which_nobody_waits_for_the_number_of_blocks() -> None:
    mask = torch.rand(2, 3, 5, 9, generator=torch.Generator().manual_seed(3)).to(Place.device) < 0.4
    layout = BlockLayout.from_mask(mask, (8, 6), (37, 50), most=mask.numel())
    assert torch.equal(layout.mask(), mask)
    assert layout.count == int(mask.sum())
    there = layout.to("cpu")
    assert there.col.numel() == layout.count
    if Place.device == "cpu":
        with pytest.raises(sparsek.IndexFault, match="more blocks than 3"):
            BlockLayout.from_mask(mask, (8, 6), (37, 50), most=3)
    else:
        assert int(BlockLayout.from_mask(mask, (8, 6), (37, 50), most=3).crow[-1]) == -1


def test_documents_by_where_they_begin() -> None:
    def begins(*places: int) -> Any:
        return torch.tensor(places, dtype=torch.int32, device=Place.device)

    ids = [0] * 16 + [1] * 48 + [3] * 30  # the third is empty
    expected = blocks_of(lambda i, j: ids[i] == ids[j], 94, (8, 16))
    same(layouts.from_cu_seqlens(begins(0, 16, 64, 64, 94), (8, 16)), expected)
    same(layouts.from_cu_seqlens(begins(0, 16, 64, 64, 94), (8, 16), seq=94, check=False), expected)
    of_keys = [0] * 32 + [1] * 16
    crossed = blocks_of(lambda i, j: (0 if i < 8 else 1) == of_keys[j], (24, 48), (8, 16))
    same(layouts.from_cu_seqlens(begins(0, 8, 24), (8, 16), cu_seqlens_k=begins(0, 32, 48)), crossed)
    with pytest.raises(sparsek.ArgumentError, match="does not begin with a block of 8 x 16"):
        layouts.from_cu_seqlens(begins(0, 8, 94), (8, 16))
    with pytest.raises(sparsek.ArgumentError, match=r"are not \(documents \+ 1,\)"):
        layouts.from_cu_seqlens(begins(0, 8), (8, 16), cu_seqlens_k=begins(0, 8, 16))


def test_block_rows_as_flashinfer_has_them() -> None:
    indptr = torch.tensor([0, 3, 3, 5], dtype=torch.int32, device=Place.device)
    indices = torch.tensor([2, 0, 1, 3, 1], dtype=torch.int32, device=Place.device)
    layout = layouts.from_bsr(indptr, indices, (8, 6), (20, 24))
    assert layout.mask()[0, 0].int().tolist() == [[1, 1, 1, 0], [0, 0, 0, 0], [0, 1, 0, 1]]
    assert (layout.crow.dtype, layout.col.dtype) == (torch.int32, torch.int32)
    with pytest.raises(sparsek.ArgumentError, match="indptr has 4 elements, and not 3"):
        layouts.from_bsr(indptr, indices, (16, 6), (20, 24))


def test_lists_of_blocks() -> None:
    generator = torch.Generator().manual_seed(5)
    partial = torch.rand(2, 3, 5, 7, generator=generator) < 0.3
    full = ~partial & (torch.rand(2, 3, 5, 7, generator=generator) < 0.3)

    def lists(mask: Any) -> Any:
        # The blocks of each row first, in falling order, then what is not counted.
        order = (mask.int() * 100 + torch.arange(7)).argsort(-1, descending=True).int()
        return mask.sum(-1).int().to(Place.device), order.to(Place.device)

    counts, indices = lists(partial)
    same_heads = layouts.from_block_tensors(counts, indices, (8, 6), (37, 40))
    assert torch.equal(same_heads.mask().cpu(), partial)
    full_counts, full_indices = lists(full)
    both = layouts.from_block_tensors(counts, indices, (8, 6), (37, 40), full_counts=full_counts, full_indices=full_indices)
    assert torch.equal(both.mask().cpu(), partial | full)
    with pytest.raises(sparsek.ArgumentError, match=r"are not \(batch, heads, 3\)"):
        layouts.from_block_tensors(counts, indices, (16, 6), (37, 40))
    if Place.device == "cpu":
        with pytest.raises(sparsek.IndexFault, match="a fault at place"):
            layouts.from_block_tensors(counts, indices + 1, (8, 6), (37, 40))


@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_flex_attention() -> None:
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    q, k, v = (torch.randn(1, heads, length, 16, dtype=torch.float64) for heads, length in ((4, 96), (2, 128), (2, 128)))

    def made(function: Any, heads: int | None = None) -> Any:
        return flex.create_block_mask(function, None, heads, 96, 128, device="cpu", BLOCK_SIZE=(16, 32))

    functions: list[tuple[Any, int | None, Any]] = [
        (lambda b, h, i, j: j <= i, None, (None, 0)),
        (lambda b, h, i, j: (j <= i + 3) & (i - j <= 20), None, (20, 3)),
        (lambda b, h, i, j: i - j <= 20, None, (20, None)),
        (lambda b, h, i, j: (i // 16 + j // 32 + h) % 2 == 0, 4, (None, None)),
        (lambda b, h, i, j: ((i // 16 + j // 32 + h) % 2 == 0) & (j <= i), 4, (None, 0)),
    ]
    for function, heads, rule in functions:
        mask = made(function, heads)
        exact = flex.flex_attention(q, k, v, block_mask=mask, enable_gqa=True, scale=0.3)
        got, lse = st.flex_attention(q, k, v, block_mask=mask, enable_gqa=True, scale=0.3, return_lse=True)
        torch.testing.assert_close(got, exact, rtol=1e-11, atol=1e-13)
        assert lse.shape == (1, 4, 96)
        assert st.flex.rule_of(mask, layouts.from_block_mask(mask, check=False)) == rule
        assert torch.equal(st.flex_attention(q, k, v, block_mask=mask, enable_gqa=True, scale=0.3), got)
    dense = st.flex_attention(q, k, v, enable_gqa=True)
    torch.testing.assert_close(dense, flex.flex_attention(q, k, v, enable_gqa=True), rtol=1e-11, atol=1e-13)
    document = torch.arange(128) // 23
    for function, heads in (
        (lambda b, h, i, j: (i + j + h) % 3 != 0, 4),
        (lambda b, h, i, j: (document[i] == document[j]) & (j <= i), None),
    ):
        mask = made(function, heads)
        exact = flex.flex_attention(q, k, v, block_mask=mask, enable_gqa=True)
        torch.testing.assert_close(st.flex_attention(q, k, v, block_mask=mask, enable_gqa=True), exact, rtol=1e-11, atol=1e-13)
        with_bits = layouts.from_block_mask(mask, bits=True)
        assert with_bits.bits is not None
        assert torch.equal(with_bits.dense_mask(), flex.create_mask(function, 1, heads or 1, 96, 128, device="cpu"))
    with pytest.raises(sparsek.ArgumentError, match="causal and window are for a layout without bits"):
        layouts.from_block_mask(mask, bits=True, causal=True)
    with pytest.raises(sparsek.UnsupportedError, match="score_mod"):
        st.flex_attention(q, k, v, lambda score, *_: score)  # type: ignore[arg-type]
    with pytest.raises(sparsek.ArgumentError, match="enable_gqa"):
        st.flex_attention(q, k, v)
