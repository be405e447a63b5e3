# SPDX-License-Identifier: Apache-2.0
"""sparsek.torch.attention of float8_e4m3fn on the CPU: against torch's attention in float32, graphs, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_pages import Cache  # noqa: E402
from torch_reference import draw  # noqa: E402

import sparsek  # noqa: E402
import sparsek.torch as st  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
E4M3 = torch.float8_e4m3fn


@pytest.fixture(autouse=True)
def clear() -> None:
    st.cache_clear()


class Case:
    """Operands of FP8 with scales of each head, and a layout."""

    def __init__(self, seed: int = 1, heads: tuple[int, int, int] = (4, 2, 2)) -> None:
        heads_q, heads_k, layouts = heads
        shapes = ((2, heads_q, 37, 16), (2, heads_k, 50, 16), (2, heads_k, 50, 7))
        self.q, self.k, self.v = (draw(seed + at, *shape, dtype=torch.float32).to(E4M3) for at, shape in enumerate(shapes))
        self.scales = {
            name: draw(seed + 10 + at, 2, count, dtype=torch.float32).exp()
            for at, (name, count) in enumerate((("scale_q", heads_q), ("scale_k", heads_k), ("scale_v", heads_k)))
        }
        mask = draw(seed, 2, layouts, -(-37 // 8), -(-50 // 6)) > 0
        mask[0, 0, 1] = False  # queries that see nothing
        self.layout = st.BlockLayout.from_mask(mask, (8, 6), (37, 50))

    @property
    def operands(self) -> tuple[Any, Any, Any]:
        return self.q, self.k, self.v

    def exact(self, seen: Any = None, bias: Any = None, **options: Any) -> Any:
        """By torch in float32; queries that see nothing get 0."""
        q, k, v = (
            operand.float() * self.scales[f"scale_{name}"][..., None, None] for name, operand in zip("qkv", self.operands, strict=True)
        )
        seen = self.layout.dense_mask(self.q.shape[1]) if seen is None else seen
        empty = ~seen.any(-1, keepdim=True)
        added = torch.zeros(seen.shape).masked_fill(~(seen | empty), -torch.inf) + (0 if bias is None else bias.float())
        found = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=added, enable_gqa=True, **options)
        return found * ~empty


@pytest.mark.parametrize("heads", [(4, 2, 2), (4, 4, 4), (3, 1, 1)])
@pytest.mark.parametrize("out_dtype", [None, torch.bfloat16, torch.float16])
def test_results(heads: tuple[int, int, int], out_dtype: Any) -> None:
    case = Case(heads=heads)
    got, lse = st.attention(*case.operands, case.layout, **case.scales, out_dtype=out_dtype, return_lse=True)
    assert (got.dtype, lse.dtype) == (out_dtype or torch.bfloat16, torch.float32)
    torch.testing.assert_close(got, case.exact().to(got.dtype))


def test_rules_bias_and_lengths() -> None:
    case = Case()
    away = torch.arange(50) - torch.arange(37)[:, None]
    bias = draw(8, 1, 4, 37, 50, dtype=torch.bfloat16)
    lengths = torch.tensor([50, 9], dtype=torch.int32)
    seen = case.layout.dense_mask(4) & (away <= 0) & (torch.arange(50) < lengths[:, None, None, None])
    got = st.attention(*case.operands, case.layout, causal=True, scale=0.3, bias=bias, lengths_k=lengths, **case.scales)
    torch.testing.assert_close(got, case.exact(seen, bias, scale=0.3).bfloat16())


def test_pages() -> None:
    case = Case()
    cache = Cache(case.k, case.v, 7)
    lengths = torch.tensor([50, 23], dtype=torch.int32)
    expected = st.attention(*case.operands, case.layout, lengths_k=lengths, **case.scales)
    got = st.attention(case.q, cache.k, cache.v, case.layout, lengths_k=lengths, page_table=cache.table, **case.scales)
    assert torch.equal(got, expected)


def test_scales_that_are_shared() -> None:
    case = Case()
    shared = {"scale_q": torch.tensor(0.5), "scale_k": torch.tensor([[2.0], [3.0]]), "scale_v": torch.tensor([1.5, 0.25])}
    whole = {name: scale.expand(2, count).contiguous() for (name, scale), count in zip(shared.items(), (4, 2, 2), strict=True)}
    got = st.attention(*case.operands, case.layout, **shared)
    assert torch.equal(got, st.attention(*case.operands, case.layout, **whole))
    assert not torch.equal(got, st.attention(*case.operands, case.layout))
    one = dict.fromkeys(("scale_q", "scale_k", "scale_v"), torch.ones(1))
    assert torch.equal(st.attention(*case.operands, case.layout), st.attention(*case.operands, case.layout, **one))


def test_types_of_the_result_have_plans_of_their_own() -> None:
    case = Case()
    for out_dtype in (torch.bfloat16, torch.float16, torch.bfloat16):
        assert st.attention(*case.operands, case.layout, out_dtype=out_dtype).dtype == out_dtype


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("out_dtype", [None, torch.float16])
def test_compiled(dynamic: bool, out_dtype: Any) -> None:
    case = Case()

    def function(q: Any, k: Any, v: Any, scale: Any) -> Any:
        return st.attention(q, k, v, case.layout, causal=True, scale_q=scale * 2, out_dtype=out_dtype) * 2

    torch._dynamo.reset()
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    got = compiled(*case.operands, case.scales["scale_q"])
    assert got.dtype == (out_dtype or torch.bfloat16)
    assert torch.equal(got, function(*case.operands, case.scales["scale_q"]))


def test_operator() -> None:
    case = Case()
    layout = case.layout
    rules = [layout.crow, layout.col, layout.form(), None, 0, False, 0.0, 0.0, None, None, None, None, None, None, 0]
    given = [*case.operands, *rules, *case.scales.values(), torch.float16]
    # The test of schemas multiplies operands, which torch cannot do with FP8.
    torch.library.opcheck(torch.ops.sparsek.attention, given, test_utils=("test_faketensor",))


def test_autocast_leaves_it() -> None:
    case = Case()
    expected = st.attention(*case.operands, case.layout, **case.scales)
    with torch.autocast("cpu", torch.float16):
        assert torch.equal(st.attention(*case.operands, case.layout, **case.scales), expected)


def test_gradients_are_refused() -> None:
    case = Case()
    bias = torch.zeros(1, 1, 1, 50, requires_grad=True)
    with pytest.raises(sparsek.UnsupportedError, match="has no gradients"):
        st.attention(*case.operands, case.layout, bias=bias)
    scale = torch.ones(1, requires_grad=True)
    with pytest.raises(sparsek.UnsupportedError, match="has no gradients"):
        st.attention(*case.operands, case.layout, scale_v=scale)
    with torch.no_grad():
        st.attention(*case.operands, case.layout, bias=bias, scale_v=scale)
    layout = case.layout
    rules = [layout.crow, layout.col, layout.form(), None, None, False, 0.0, 0.0, None, None]
    o, _ = torch.ops.sparsek.attention(*case.operands, *rules, bias)
    with pytest.raises(sparsek.UnsupportedError, match="has no gradients"):
        o.sum().backward()


def test_what_does_not_fit() -> None:
    case = Case()

    def call(**options: Any) -> Any:
        return st.attention(*case.operands, case.layout, **options)

    with pytest.raises(sparsek.DtypeError, match=r"out_dtype=torch\.float32"):
        call(out_dtype=torch.float32)
    with pytest.raises(sparsek.DtypeError, match=r"scale_q is of torch\.float64"):
        call(scale_q=torch.ones(2, 4, dtype=torch.float64))
    with pytest.raises(sparsek.ArgumentError, match=r"scale_k of shape \(2, 4\) does not go over \(batch, heads\), \(2, 2\)"):
        call(scale_k=torch.ones(2, 4))
    with pytest.raises(sparsek.ArgumentError, match="scale_v of shape"):
        call(scale_v=torch.ones(1, 2, 2))
    with pytest.raises(sparsek.DtypeError, match=r"the bias of torch\.float16, which may be of torch\.bfloat16"):
        call(bias=torch.zeros(50, dtype=torch.float16))
    with pytest.raises(sparsek.DtypeError, match="float8_e5m2 are not served"):
        st.attention(*(operand.to(torch.float8_e5m2) for operand in case.operands))
    with pytest.raises(sparsek.DtypeError, match="convert one of them"):
        st.attention(case.q, case.k.bfloat16(), case.v)
    wide = [operand.bfloat16() for operand in case.operands]
    with pytest.raises(sparsek.ArgumentError, match=r"scale_q is given with q of torch\.bfloat16"):
        st.attention(*wide, scale_q=torch.ones(1))
    with pytest.raises(sparsek.DtypeError, match=r"out_dtype=torch\.float16 with q of torch\.bfloat16"):
        st.attention(*wide, out_dtype=torch.float16)
    assert st.attention(*wide, out_dtype=torch.bfloat16).dtype == torch.bfloat16


def test_a_product_of_fp8_is_refused() -> None:
    crow, col = torch.tensor([0, 1]), torch.tensor([0])
    with pytest.raises(sparsek.DtypeError):
        st.mm(torch.ones(1, 4, 4).to(E4M3), crow, col, (4, 4), torch.ones(4, 2).to(E4M3))
