# SPDX-License-Identifier: Apache-2.0
"""sparsek.torch.attention on the CPU: against torch's own attention in float64, and within the library's bounds."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch_reference import draw  # noqa: E402

import sparsek  # noqa: E402
import sparsek.torch as st  # noqa: E402
from sparsek.torch import _attention, _attention_plans  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")


@pytest.fixture(autouse=True)
def clear() -> None:
    st.cache_clear()


class Case:
    """Operands whose gradients are recorded, and a layout."""

    def __init__(self, seed: int = 1, heads: tuple[int, int, int] = (4, 2, 2), block: tuple[int, int] = (8, 6), dtype: Any = None) -> None:
        dtype = dtype or torch.float64
        heads_q, heads_k, layouts = heads
        shapes = ((2, heads_q, 37, 10), (2, heads_k, 50, 10), (2, heads_k, 50, 7), (2, heads_q, 37, 7))
        self.q, self.k, self.v, self.grad_o = (draw(seed + at, *shape, dtype=dtype) for at, shape in enumerate(shapes))
        for operand in self.operands:
            operand.requires_grad_()
        mask = draw(seed, 2, layouts, -(-37 // block[0]), -(-50 // block[1])) > 0
        mask[0, 0, 1] = False  # queries that see nothing
        self.layout = st.BlockLayout.from_mask(mask, block, (37, 50))

    @property
    def operands(self) -> tuple[Any, Any, Any]:
        return self.q, self.k, self.v

    def seen(self, left: int | None = None, right: int | None = None, shift: int = 0) -> Any:
        away = torch.arange(50) - torch.arange(37)[:, None] - shift
        rule = torch.ones(37, 50, dtype=torch.bool)
        if left is not None:
            rule &= away >= -left
        if right is not None:
            rule &= away <= right
        return self.layout.dense_mask(self.q.shape[1]) & rule

    def exact(self, seen: Any, scale: float | None = None) -> Any:
        """By torch, whose queries that see nothing have no numbers."""
        empty = ~seen.any(-1, keepdim=True)
        q, k, v = (operand.double() for operand in self.operands)
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen | empty, scale=scale, enable_gqa=True) * ~empty


RULES: list[tuple[dict[str, Any], tuple[Any, Any, int]]] = [
    ({}, (None, None, 0)),
    ({"causal": True}, (None, 0, 0)),
    ({"causal": True, "align_ends": True}, (None, 0, 13)),
    ({"window": (5, 9)}, (5, 9, 0)),
    ({"window": (-2, None), "align_ends": True}, (-2, None, 13)),
    ({"scale": 0.7}, (None, None, 0)),
]


@pytest.mark.parametrize("heads", [(4, 2, 2), (4, 4, 4), (3, 1, 1), (6, 2, 3)])
@pytest.mark.parametrize(("options", "rules"), RULES)
def test_results_and_gradients(heads: tuple[int, int, int], options: dict[str, Any], rules: tuple[Any, Any, int]) -> None:
    case = Case(heads=heads)
    exact = case.exact(case.seen(*rules), options.get("scale"))
    got = st.attention(*case.operands, case.layout, **options)
    close = {"rtol": 1e-11, "atol": 1e-13}
    torch.testing.assert_close(got, exact, **close)
    of_exact = torch.autograd.grad(exact, case.operands, case.grad_o)
    for found, expected in zip(torch.autograd.grad(got, case.operands, case.grad_o), of_exact, strict=True):
        assert expected.abs().max() > 0.1
        torch.testing.assert_close(found, expected, **close)


def test_without_a_layout() -> None:
    case = Case()
    exact = torch.nn.functional.scaled_dot_product_attention(*case.operands, enable_gqa=True)
    torch.testing.assert_close(st.attention(*case.operands), exact, rtol=1e-11, atol=1e-13)


def test_gradients_are_differences() -> None:
    case = Case(heads=(2, 1, 1))

    def function(q: Any, k: Any, v: Any) -> Any:
        return st.attention(q, k, v, case.layout, window=(20, 9), soft_cap=2.0)

    assert torch.autograd.gradcheck(function, case.operands, fast_mode=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_each_element_is_within_its_bound(dtype: Any) -> None:
    case = Case(dtype=dtype)
    o, lse = st.attention(*case.operands, case.layout, causal=True, return_lse=True)
    assert (o.dtype, lse.dtype) == (dtype, torch.float32)
    gradients = torch.autograd.grad(o, case.operands, case.grad_o)
    layout = case.layout
    index = sparsek.AttentionLayout(layout.crow, layout.col, layout.block, layout.batch, layout.heads)
    rules = _attention_plans.Rules(None, 0, False, 0.0, 0.0)
    plan = _attention_plans.attention_of(*case.operands, layout.crow, layout.col, (*layout.block, layout.batch, layout.heads), rules)
    given = {"o": o, "lse": lse, "grad_o": case.grad_o, **dict(zip("qkv", case.operands, strict=True))}
    given = {name: array.detach() for name, array in given.items()}
    for name in ("o", "lse"):
        arrays = {key: given[key] for key in {"q", "k", "v", "o", name}}
        assert sparsek.check_attention(plan, name, layout=index, **arrays).max_ratio <= 1
    for name, gradient in zip(("grad_q", "grad_k", "grad_v"), gradients, strict=True):
        assert sparsek.check_attention(plan, name, layout=index, **given, **{name: gradient}).max_ratio <= 1


def test_strides() -> None:
    case = Case()
    expected = st.attention(*case.operands, case.layout)
    of_expected = torch.autograd.grad(expected, case.operands, case.grad_o)
    lying = (
        case.q.transpose(1, 2).contiguous().transpose(1, 2),  # (batch, seq, heads, size) in memory
        torch.cat([case.k, case.k], 3)[..., :10],  # gaps between rows
        case.v.transpose(2, 3).contiguous().transpose(2, 3),  # is copied
    )
    got = st.attention(*lying, case.layout)
    assert torch.equal(got, expected)
    assert got.is_contiguous()
    across = case.grad_o.transpose(0, 3).contiguous().transpose(0, 3)
    for found, exact in zip(torch.autograd.grad(got, case.operands, across), of_expected, strict=True):
        assert torch.equal(found, exact)
    one = case.k[:1, :1, :1].detach().expand_as(case.k)  # all strides are 0
    assert torch.equal(st.attention(case.q, one, case.v, case.layout), st.attention(case.q, one.contiguous(), case.v, case.layout))


def test_lengths() -> None:
    case = Case()
    lengths = {"lengths_q": torch.tensor([30, 37], dtype=torch.int32), "lengths_k": torch.tensor([50, 9], dtype=torch.int32)}
    seen = case.seen()
    seen[0, :, 30:] = seen[1, ..., 9:] = False
    got, exact = st.attention(*case.operands, case.layout, **lengths), case.exact(seen)
    torch.testing.assert_close(got, exact, rtol=1e-11, atol=1e-13)
    of_exact = torch.autograd.grad(exact, case.operands, case.grad_o)
    for found, expected in zip(torch.autograd.grad(got, case.operands, case.grad_o), of_exact, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-13)


def test_some_gradients_alone() -> None:
    case = Case()
    whole = torch.autograd.grad(st.attention(*case.operands, case.layout), case.operands, case.grad_o)
    for at in range(3):
        q, k, v = (operand if place == at else operand.detach() for place, operand in enumerate(case.operands))
        (one,) = torch.autograd.grad(st.attention(q, k, v, case.layout), case.operands[at], case.grad_o)
        assert torch.equal(one, whole[at])


def test_graphs() -> None:
    case = Case()

    def function(q: Any, k: Any, v: Any, layout: Any) -> Any:
        return st.attention(2 * q, k, v, layout, causal=True).square()

    expected = function(*case.operands, case.layout)
    of_expected = torch.autograd.grad(expected, case.operands, case.grad_o)
    for dynamic in (False, True):
        compiled = torch.compile(function, fullgraph=True, backend="aot_eager", dynamic=dynamic)
        got = compiled(*case.operands, case.layout)
        assert torch.equal(got, expected)
        for found, exact in zip(torch.autograd.grad(got, case.operands, case.grad_o), of_expected, strict=True):
            assert torch.equal(found, exact)

    class Module(nn.Module):
        def forward(self, q: Any, k: Any, v: Any) -> Any:
            return function(q, k, v, case.layout)

    exported = torch.export.export(Module(), tuple(operand.detach() for operand in case.operands))
    assert "sparsek.attention" in exported.graph_module.code
    assert torch.equal(exported.module()(*case.operands), expected)


@pytest.mark.filterwarnings("ignore:The .grad attribute")
@pytest.mark.parametrize("lengths", [False, True])
def test_the_operator_is_as_torch_wants_it(lengths: bool) -> None:
    case = Case()
    layout = case.layout
    sequences = [torch.tensor([30, 37], dtype=torch.int32), None] if lengths else [None, None]
    rules = [layout.crow, layout.col, [*layout.block, layout.batch, layout.heads], None, 3, False, 0.0, 0.0, *sequences]
    torch.library.opcheck(torch.ops.sparsek.attention, [*case.operands, *rules])
    given = [operand.detach() for operand in case.operands]
    o, lse = torch.ops.sparsek.attention(*given, *rules)
    torch.library.opcheck(torch.ops.sparsek.attention_backward, [case.grad_o, *given, o, lse, *rules, [True, False, True]])
    rules[2] = [*layout.form(), 1]  # any order
    torch.library.opcheck(torch.ops.sparsek.attention, [*case.operands, *rules])


@pytest.mark.parametrize("compiled", [False, True])
def test_any_order(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU it makes no difference."""
    asked = []

    def attention_of(*given: Any, **more: Any) -> Any:
        asked.append(given[6].any_order)
        return _attention_plans.attention_of(*given, **more)

    monkeypatch.setattr(_attention, "attention_of", attention_of)
    case = Case()

    def gradients(deterministic: bool) -> Any:
        def function(q: Any, k: Any, v: Any) -> Any:
            return st.attention(q, k, v, case.layout, causal=True, deterministic=deterministic)

        run = torch.compile(function, fullgraph=True, backend="aot_eager") if compiled else function
        return torch.autograd.grad(run(*case.operands), case.operands, case.grad_o)

    expected = gradients(True)
    got = gradients(False)
    assert asked == [False, False, True, True]
    assert all(torch.equal(*pair) for pair in zip(got, expected, strict=True))
    torch.use_deterministic_algorithms(True)
    try:
        gradients(False)
    finally:
        torch.use_deterministic_algorithms(False)
    assert asked[4:] == [False, False]


def test_what_is_refused() -> None:
    case = Case()
    with pytest.raises(sparsek.UnsupportedError, match="does not go through vmap"):
        torch.vmap(lambda q: st.attention(q, case.k, case.v, case.layout))(case.q[None])
    (of_q,) = torch.autograd.grad(st.attention(*case.operands, case.layout).sum(), case.q, create_graph=True)
    with pytest.raises(sparsek.UnsupportedError, match="cannot be differentiated again"):
        of_q.sum().backward()
    o, lse = st.attention(*case.operands, case.layout, return_lse=True)
    assert (o.requires_grad, lse.requires_grad) == (True, False)
    q, k, v = case.operands
    with pytest.raises(sparsek.ArgumentError, match="do not fit"):
        st.attention(q, k[:, :, :, :9], v, case.layout)
    with pytest.raises(sparsek.ArgumentError, match="for 37 queries and 50 keys, and not 36 and 50"):
        st.attention(q[:, :, :36], k, v, case.layout)
    with pytest.raises(sparsek.DtypeError, match=r"v of torch.float32"):
        st.attention(q, k, v.float(), case.layout)
    with pytest.raises(sparsek.DtypeError, match=r"torch.int32 are not served"):
        st.attention(*(operand.detach().int() for operand in case.operands))
    with pytest.raises(sparsek.ArgumentError, match="right side, 3"):
        st.attention(q, k, v, causal=True, window=(None, 3))
    with pytest.raises(sparsek.ArgumentError, match="all scores equal"):
        st.attention(q, k, v, scale=0.0)
    with pytest.raises(sparsek.ArgumentError, match=r"lengths_k of torch.int64"):
        st.attention(q, k, v, lengths_k=torch.tensor([1, 2]))
    with pytest.raises(sparsek.ArgumentError, match="layout_heads = 3"):
        st.attention(q, k, v, st.BlockLayout.from_mask(torch.ones(3, 5, 9, dtype=torch.bool), (8, 6), (37, 50)))


def test_a_layout_that_was_changed_in_place_is_seen() -> None:
    case = Case(heads=(2, 1, 1))
    crow, col, block = torch.tensor([0, 1], dtype=torch.int32), torch.tensor([1], dtype=torch.int32), (37, 25)
    layout = st.BlockLayout(crow, col, block, (37, 50))
    for column in (1, 0, 1):
        col[0] = column
        keys = slice(25 * column, 25 * (column + 1))
        exact = torch.nn.functional.scaled_dot_product_attention(case.q, case.k[:, :, keys], case.v[:, :, keys], enable_gqa=True)
        torch.testing.assert_close(st.attention(*case.operands, layout), exact, rtol=1e-11, atol=1e-13)
    assert st.cache_info().misses == 2
    col[0] = 2
    with pytest.raises(sparsek.IndexFault):
        st.attention(*case.operands, layout)


def test_each_rule_has_a_plan() -> None:
    case = Case()
    for _ in range(2):
        for options, rules in RULES:
            exact = case.exact(case.seen(*rules), options.get("scale"))
            torch.testing.assert_close(st.attention(*case.operands, case.layout, **options), exact, rtol=1e-11, atol=1e-13)
    assert st.cache_info().misses == 1
    wide = torch.cat([case.v, case.v], 3)
    expected = st.attention(*case.operands, case.layout)
    torch.testing.assert_close(st.attention(case.q, case.k, wide, case.layout), torch.cat([expected, expected], 3))


def test_autocast() -> None:
    case = Case(dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        assert st.attention(*case.operands, case.layout).dtype == torch.bfloat16


def test_nothing_to_compute() -> None:
    q, kv = draw(1, 0, 2, 8, 4), draw(2, 0, 2, 8, 4)
    assert st.attention(q, kv, kv).shape == (0, 2, 8, 4)
    q = draw(1, 2, 2, 0, 4)
    kv = draw(2, 2, 2, 8, 4).requires_grad_()
    o = st.attention(q, kv, kv)
    assert o.shape == (2, 2, 0, 4)
    assert not torch.autograd.grad(o.sum(), kv)[0].any()
    q, kv = draw(1, 2, 2, 8, 4).requires_grad_(), draw(2, 2, 2, 0, 4)
    o, lse = st.attention(q, kv, kv, return_lse=True)
    assert not o.any()
    assert torch.isneginf(lse).all()
    assert not torch.autograd.grad(o.sum(), q)[0].any()
