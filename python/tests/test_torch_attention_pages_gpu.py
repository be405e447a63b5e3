# SPDX-License-Identifier: Apache-2.0
"""sparsek.torch.attention of keys and values in pages, on a GPU: as in one piece, holes, CUDA graphs, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

from torch_pages import Cache  # noqa: E402

import sparsek  # noqa: E402
import sparsek.torch as st  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def clear() -> Iterator[None]:
    st.cache_clear(captured=True)
    yield
    st.cache_clear(captured=True)


def draw(seed: int, *shape: int) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to("cuda", torch.bfloat16)


def operands(queries: int = 200, keys: int = 1000, size: int = 128) -> tuple[Any, Any, Any]:
    q, k, v = (draw(at, *shape) for at, shape in enumerate(((3, 8, queries, size), (3, 2, keys, size), (3, 2, keys, size))))
    return q, k, v


LENGTHS = torch.tensor([1000, 777, 5], dtype=torch.int32)


@pytest.mark.parametrize("size", [64, 96, 128, 256])
@pytest.mark.parametrize(("rows", "rows_first"), [(16, True), (32, False), (48, True), (64, False), (128, True)])
@pytest.mark.parametrize("queries", [1, 200])
@pytest.mark.parametrize("options", [{}, {"causal": True, "align_ends": True}, {"window": (300, 40), "soft_cap": 20.0}])
def test_as_in_one_piece(size: int, rows: int, rows_first: bool, queries: int, options: Any) -> None:
    q, k, v = operands(queries, size=size)
    cache, lengths = Cache(k, v, rows, rows_first=rows_first), LENGTHS.cuda()
    # Lengths that move rules need lists of their own, which layouts on the GPU do not have.
    blocks = [None] if options.get("align_ends") else [None, (64, 128), (16, 32)]
    for block in blocks:
        layout = None
        if block is not None:
            mask = torch.rand(2, -(-queries // block[0]), -(-1000 // block[1]), generator=torch.Generator().manual_seed(3)) < 0.5
            layout = st.BlockLayout.from_mask(mask.cuda(), block, (queries, 1000))
        expected = st.attention(q, k, v, layout, lengths_k=lengths, return_lse=True, **options)
        got = st.attention(q, cache.k, cache.v, layout, lengths_k=lengths, page_table=cache.table, return_lse=True, **options)
        for one, other in zip(got, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=0.02, atol=0.02)


def test_pages_that_are_not_there_are_hidden() -> None:
    q, k, v = operands()
    cache = Cache(k, v, 16, holes=3)
    seen = ~cache.hidden[:, None, None]
    exact = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)
    layout = st.BlockLayout.from_mask(torch.ones(1, 4, 16, dtype=torch.bool, device="cuda"), (64, 64), (200, 1000))
    for blocks in (None, layout):
        lengths = LENGTHS.cuda().fill_(1000)
        got = st.attention(q, cache.k, cache.v, blocks, lengths_k=lengths, page_table=cache.table)
        torch.testing.assert_close(got, exact, rtol=0.02, atol=0.02)
    nothing = torch.full_like(cache.table, -1)
    o, lse = st.attention(q, cache.k, cache.v, page_table=nothing, return_lse=True)
    assert (o == 0).all()
    assert (lse == -torch.inf).all()


@pytest.mark.parametrize("queries", [1, 200])
def test_graphs(queries: int) -> None:
    q, k, v = operands(queries)
    cache, lengths = Cache(k, v, 16), LENGTHS.cuda()
    table = cache.table.clone()
    st.attention(q, cache.k, cache.v, page_table=table, lengths_k=lengths)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o = st.attention(q, cache.k, cache.v, page_table=table, lengths_k=lengths)
    for turn in range(3):
        table.copy_(cache.table.roll(turn, 0))
        lengths.copy_(LENGTHS.roll(turn, 0))
        graph.replay()
        expected = st.attention(q, k.roll(turn, 0), v.roll(turn, 0), lengths_k=lengths)
        torch.testing.assert_close(o, expected, rtol=0.02, atol=0.02)


def test_what_is_refused() -> None:
    q, k, v = operands()
    cache = Cache(k, v, 24)
    with pytest.raises(sparsek.UnsupportedError, match="pages of 24 rows"):
        st.attention(q, cache.k, cache.v, page_table=cache.table)
    cache = Cache(k, v, 16)
    with pytest.raises(sparsek.UnsupportedError, match="a bias or bits of blocks where keys and values lie in pages"):
        st.attention(q, cache.k, cache.v, bias=draw(4, 1, 1, 200, 1008), page_table=cache.table)
    with pytest.raises(sparsek.ArgumentError, match="copy it to where that is"):
        st.attention(q, cache.k, cache.v, page_table=cache.table.cpu())
    with pytest.raises(sparsek.ArgumentError, match="read where it lies"):
        st.attention(q, torch.cat([cache.k, cache.k[..., :1]], 3)[..., :128], cache.v, page_table=cache.table)
