# SPDX-License-Identifier: Apache-2.0
"""sparsek.torch.attention of keys and values in pages, on the CPU: as in one piece, holes, graphs, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_pages import Cache  # noqa: E402
from torch_reference import draw  # noqa: E402

import sparsek  # noqa: E402
import sparsek.torch as st  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")


@pytest.fixture(autouse=True)
def clear() -> None:
    st.cache_clear()


def operands(dtype: Any = torch.float64, keys: int = 50) -> tuple[Any, Any, Any]:
    q, k, v = (draw(at, *shape, dtype=dtype) for at, shape in enumerate(((2, 4, 37, 10), (2, 2, keys, 10), (2, 2, keys, 7))))
    return q, k, v


def layout_of(keys: int = 50) -> Any:
    return st.BlockLayout.from_mask(draw(9, 2, 2, -(-37 // 8), -(-keys // 6)) > 0, (8, 6), (37, keys))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize(("rows", "rows_first"), [(16, False), (16, True), (64, True), (7, False)])
@pytest.mark.parametrize("options", [{}, {"causal": True, "align_ends": True}, {"window": (9, 4), "soft_cap": 3.0}])
def test_as_in_one_piece(dtype: Any, rows: int, rows_first: bool, options: Any) -> None:
    q, k, v = operands(dtype)
    cache, lengths = Cache(k, v, rows, rows_first=rows_first), torch.tensor([50, 23], dtype=torch.int32)
    for layout in (None, layout_of()):
        expected = st.attention(q, k, v, layout, lengths_k=lengths, return_lse=True, **options)
        got = st.attention(q, cache.k, cache.v, layout, lengths_k=lengths, page_table=cache.table, return_lse=True, **options)
        assert torch.equal(got[1], expected[1])
        if layout is not None or 50 % rows == 0:
            assert torch.equal(got[0], expected[0])
        else:
            torch.testing.assert_close(got[0], expected[0])
        assert not got[0].isnan().any()


def test_pages_that_are_not_there_are_hidden() -> None:
    q, k, v = operands()
    cache = Cache(k, v, 7, holes=3)
    seen = ~cache.hidden[:, None, None]
    exact = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)
    got = st.attention(q, cache.k, cache.v, layout_of_all(), page_table=cache.table)
    torch.testing.assert_close(got, exact, rtol=1e-11, atol=1e-13)
    nothing = torch.full_like(cache.table, -1)
    o, lse = st.attention(q, cache.k, cache.v, layout_of_all(), page_table=nothing, return_lse=True)
    assert (o == 0).all()
    assert (lse == -torch.inf).all()


def layout_of_all() -> Any:
    return st.BlockLayout.from_mask(torch.ones(1, 1, 5, 9, dtype=torch.bool), (8, 6), (37, 50))


def test_a_bias_and_bits_on_the_cpu() -> None:
    q, k, v = operands()
    cache = Cache(k, v, 16)
    bias = draw(5, 1, 4, 37, 50)
    layout = st.BlockLayout.from_dense_mask(draw(6, 1, 1, 37, 50) > -1, (8, 6))
    expected = st.attention(q, k, v, layout, bias=bias)
    assert torch.equal(st.attention(q, cache.k, cache.v, layout, bias=bias, page_table=cache.table), expected)


def test_tables_of_a_larger_one() -> None:
    q, k, v = operands()
    cache = Cache(k, v, 16)
    wide = torch.full((2, 9), 12345, dtype=torch.int32)
    wide[:, :4] = cache.table
    layout = layout_of()
    expected = st.attention(q, k, v, layout)
    for table in (wide[:, :4], wide, cache.table.t().contiguous().t()):
        assert torch.equal(st.attention(q, cache.k, cache.v, layout, page_table=table), expected)
    one = cache.table[:1].expand(2, 4)  # both sequences are the first one
    twice = st.attention(q, cache.k, cache.v, layout, page_table=one)
    assert torch.equal(twice, st.attention(q, k[:1].expand_as(k), v[:1].expand_as(v), layout))


def test_without_sequences() -> None:
    q, k, v = operands()
    cache = Cache(k, v, 16)
    none = torch.empty(2, 0, dtype=torch.int32)
    assert (st.attention(q, cache.k, cache.v, page_table=none) == 0).all()
    assert st.attention(q[:0], cache.k, cache.v, page_table=cache.table[:0]).shape == (0, 4, 37, 7)


def test_graphs_and_the_operator() -> None:
    q, k, v = operands()
    cache, layout = Cache(k, v, 16), layout_of()
    expected = st.attention(q, k, v, layout)

    def function(q: Any, k: Any, v: Any, table: Any) -> Any:
        return st.attention(q, k, v, layout, page_table=table)

    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(q, cache.k, cache.v, cache.table), expected)
    rules = [layout.crow, layout.col, [*layout.block, layout.batch, layout.heads], None, None, False, 0.0, 0.0, None, None]
    given = [q, cache.k, cache.v, *rules, None, None, None, cache.table, 50]
    torch.library.opcheck(torch.ops.sparsek.attention, given, test_utils=("test_schema", "test_faketensor"))


def test_the_operator_is_told_how_many_keys() -> None:
    q, k, v = operands()
    cache = Cache(k, v, 16)
    rules = [None, None, [0, 0, 1, 1], None, None, False, 0.0, 0.0, None, torch.tensor([50, 50], dtype=torch.int32)]
    operator, table = torch.ops.sparsek.attention, cache.table
    expected = st.attention(q, k, v)
    for keys in (50, 64):
        o, _ = operator(q, cache.k, cache.v, *rules, page_table=table, keys=keys)
        torch.testing.assert_close(o, expected, rtol=1e-12, atol=1e-14)
    wrong = [
        ({"page_table": table}, r"keys is not given.*page_table\.shape\[1\] \* k\.shape\[2\] = 64"),
        ({"page_table": table, "keys": 65}, "65 keys do not fit into 4 pages of 16 rows"),
        ({"page_table": table, "keys": -1}, "-1 keys do not fit"),
        ({"keys": 50}, "keys=50 is of sequences in pages, and there is no page_table"),
    ]
    for given, message in wrong:
        with pytest.raises(sparsek.ArgumentError, match=message):
            operator(q, cache.k, cache.v, *rules, **given)
        with torch.device("meta"), pytest.raises(sparsek.ArgumentError, match=message):
            operator(*(torch.empty_like(x, device="meta") for x in (q, cache.k, cache.v)), *rules[:-2], None, None, **meta(given))


def meta(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value.to("meta") if isinstance(value, torch.Tensor) else value for name, value in given.items()}


def test_what_is_refused() -> None:
    q, k, v = operands()
    cache, layout = Cache(k, v, 16), layout_of()
    q.requires_grad_()
    with pytest.raises(sparsek.UnsupportedError, match="no gradients where keys and values lie in pages"):
        st.attention(q, cache.k, cache.v, layout, page_table=cache.table).sum().backward()
    q = q.detach()
    for table, message in [
        (cache.table.long(), "of torch.int64"),
        (cache.table[:1], "not of int32"),
        (cache.table[0], "not of int32"),
        (cache.table[:, :3], "50 keys do not fit into 3 pages of 16 rows"),
    ]:
        with pytest.raises(sparsek.ArgumentError, match=message):
            st.attention(q, cache.k, cache.v, layout, page_table=table)
    with pytest.raises(sparsek.ArgumentError, match="no cache of pages"):
        st.attention(q, cache.k, cache.v[:-1], layout, page_table=cache.table)
    with pytest.raises(sparsek.ArgumentError, match="72 keys do not fit into 4 pages of 16 rows"):
        st.attention(q, cache.k, cache.v, layout_of(72), page_table=cache.table)
    with pytest.raises(sparsek.ArgumentError, match="read where it lies"):
        st.attention(q, cache.k.transpose(2, 3).contiguous().transpose(2, 3), cache.v, layout, page_table=cache.table)
