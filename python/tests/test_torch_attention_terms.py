# SPDX-License-Identifier: Apache-2.0
"""A bias of attention, and bits of partial blocks, on the CPU: against torch's own attention in float64."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_reference import draw  # noqa: E402

import sparsek  # noqa: E402
import sparsek.torch as st  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")

CLOSE = {"rtol": 1e-11, "atol": 1e-13}
QUERIES, KEYS = 37, 70


def operands(dtype: Any = None) -> tuple[Any, ...]:
    shapes = ((2, 4, QUERIES, 10), (2, 2, KEYS, 10), (2, 2, KEYS, 7))
    return tuple(draw(1 + at, *shape, dtype=dtype or torch.float64).requires_grad_() for at, shape in enumerate(shapes))


def bits_of(layout: st.BlockLayout) -> tuple[Any, Any]:
    """Those that a layout has."""
    assert layout.bits is not None
    return layout.bits


def compare(q: Any, k: Any, v: Any, seen: Any, bias: Any, **options: Any) -> None:
    """options: of attention. Compares results and the gradients of q, k, v and bias."""
    given = [q, k, v] if bias is None else [q, k, v, bias]
    shown = torch.zeros(seen.shape, dtype=torch.float64).masked_fill(~seen, -torch.inf)
    empty = ~seen.any(-1, keepdim=True)
    mask = shown.masked_fill(empty, 0.0) + (0.0 if bias is None else bias)
    exact = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True) * ~empty
    got = st.attention(q, k, v, bias=bias, **options)
    torch.testing.assert_close(got, exact, **CLOSE)
    grad_o = draw(9, *got.shape)
    of_exact = torch.autograd.grad(exact, given, grad_o)
    for found, expected in zip(torch.autograd.grad(got, given, grad_o), of_exact, strict=True):
        assert found.shape == expected.shape
        assert expected.abs().max() > 0.01
        torch.testing.assert_close(found, expected, **CLOSE)


@pytest.mark.parametrize(
    "shape",
    [(2, 4, QUERIES, KEYS), (1, 4, QUERIES, KEYS), (4, QUERIES, KEYS), (QUERIES, KEYS), (2, 1, 1, KEYS), (2, 1, QUERIES, 1), (1,), ()],
)
def test_a_bias_of_every_shape(shape: tuple[int, ...]) -> None:
    q, k, v = operands()
    bias = draw(5, *shape) if shape else draw(5, 1)[0]
    if shape and shape[-1] > 1:
        compare(q, k, v, torch.ones(2, 4, QUERIES, KEYS, dtype=torch.bool), bias.requires_grad_())
    else:  # moves all scores alike
        torch.testing.assert_close(st.attention(q, k, v, bias=bias), st.attention(q, k, v), **CLOSE)


def test_a_bias_of_other_strides() -> None:
    q, k, v = operands()
    bias = draw(5, KEYS, QUERIES).t().requires_grad_()
    compare(q, k, v, torch.ones(2, 4, QUERIES, KEYS, dtype=torch.bool), bias)
    expected = st.attention(q, k, v, bias=bias)
    assert torch.equal(st.attention(q, k, v, bias=bias.contiguous()), expected)
    assert torch.equal(st.attention(q, k, v, bias=torch.stack([bias, bias], 2)[..., 0]), expected)


@pytest.mark.parametrize("heads", [(), (2,), (2, 2)])
def test_bits_of_a_mask_of_keys(heads: tuple[int, ...]) -> None:
    q, k, v = operands()
    mask = draw(6, *heads, QUERIES, KEYS) > 0
    mask[..., 5, :] = False  # a query that sees nothing
    mask[..., 16:32, :40] = False  # blocks that there are not
    mask[..., :16, 40:] = True  # whole ones
    layout = st.BlockLayout.from_dense_mask(mask, (8, 40))
    assert torch.equal(layout.dense_mask()[0], mask[0] if len(heads) == 2 else mask.reshape(-1, QUERIES, KEYS))
    index, words = bits_of(layout)
    assert (words.shape[1:], words.dtype) == ((8, 2), torch.int32)
    assert words.shape[0] == int((index >= 0).sum()) < index.numel()
    assert layout.count < index.numel()
    seen = layout.dense_mask(4).expand(2, 4, QUERIES, KEYS)
    compare(q, k, v, seen, None, layout=layout)
    compare(q, k, v, seen & torch.ones(QUERIES, KEYS).tril().bool(), draw(7, 4, QUERIES, KEYS).requires_grad_(), layout=layout, causal=True)


def test_layouts_with_bits_are_joined() -> None:
    a, b = (draw(at, 2, QUERIES, KEYS) > 0.5 for at in (6, 7))
    of_a, of_b = (st.BlockLayout.from_dense_mask(mask, 16) for mask in (a, b))
    assert torch.equal((of_a | of_b).dense_mask()[0], a | b)
    assert torch.equal((of_a & of_b).dense_mask()[0], a & b)
    causal = st.layouts.causal((QUERIES, KEYS), 16)
    assert torch.equal((of_a & causal).dense_mask()[0], a & causal.dense_mask()[0])
    moved = of_a.to("cpu")
    assert torch.equal(moved.dense_mask(), of_a.dense_mask())
    whole = st.BlockLayout.from_dense_mask(torch.ones(16, 32, dtype=torch.bool), 16)
    assert whole.bits is None


def test_a_bias_of_float32_beside_16_bits() -> None:
    q, k, v = operands(torch.bfloat16)
    bias = draw(5, 4, QUERIES, KEYS, dtype=torch.float32).requires_grad_()
    exact = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), attn_mask=bias.double(), enable_gqa=True)
    got = st.attention(q, k, v, bias=bias)
    torch.testing.assert_close(got.double(), exact, rtol=2e-2, atol=2e-2)
    (found,) = torch.autograd.grad(got.sum(), bias)
    (expected,) = torch.autograd.grad(exact.sum(), bias)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=5e-2, atol=5e-2)
    with torch.autocast("cpu", torch.bfloat16):
        wide = st.attention(q.detach().float(), k.detach().float(), v.detach().float(), bias=bias.detach())
    assert torch.equal(wide, got)


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # opcheck reads it of whatever it made
def test_as_an_operator() -> None:
    q, k, v = operands()
    layout = st.BlockLayout.from_dense_mask(draw(6, QUERIES, KEYS) > 0, 16)
    bias = draw(5, 1, 4, 1, KEYS).requires_grad_()
    rules = [layout.crow, layout.col, list(layout.form()), None, 3, True, 0.0, 0.0, None, None]
    torch.library.opcheck(torch.ops.sparsek.attention, [q, k, v, *rules, bias, *bits_of(layout)])
    given = [operand.detach() for operand in (q, k, v, bias)]
    o, lse = torch.ops.sparsek.attention(*given[:3], *rules, given[3], *bits_of(layout))
    arguments = [draw(8, *o.shape), *given[:3], o, lse, *rules, [True, False, True, True], given[3], *bits_of(layout)]
    torch.library.opcheck(torch.ops.sparsek.attention_backward, arguments)


def test_what_does_not_fit() -> None:
    q, k, v = (operand.detach() for operand in operands())
    for bias, found, message in [
        (torch.zeros(QUERIES, KEYS - 1).double(), sparsek.ArgumentError, "is not \\(batch, query heads, queries, keys\\)"),
        (torch.zeros(QUERIES, KEYS), sparsek.DtypeError, "the bias of torch.float32"),
        (torch.zeros(QUERIES, KEYS).bool(), sparsek.DtypeError, "BlockLayout.from_dense_mask"),
    ]:
        with pytest.raises(found, match=message):
            st.attention(q, k, v, bias=bias)
    layout = st.BlockLayout.from_dense_mask(draw(6, QUERIES, KEYS) > 0, 16)
    index, words = bits_of(layout)
    for bits, message in [((index[1:], words), "mask_index"), ((index, words[:, 1:]), "mask of"), ((index.long(), words), "mask_index")]:
        layout.bits = bits
        with pytest.raises(sparsek.ArgumentError, match=message):
            st.attention(q, k, v, layout)
    with pytest.raises(sparsek.ArgumentError, match="a mask of keys"):
        st.BlockLayout.from_dense_mask(torch.zeros(4, 4), 16)
