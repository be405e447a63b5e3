# SPDX-License-Identifier: Apache-2.0
"""Attention of NumPy arrays: against sums in float64, and each element within the library's own bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsek
from sparsek import Attention, AttentionLayout

Array = np.ndarray[Any, Any]


def layout_of(mask: Array, block: tuple[int, int]) -> AttentionLayout:
    """That of a mask (batch, heads, rows, columns)."""
    rows = mask.reshape(-1, mask.shape[-1])
    crow = np.concatenate([[0], np.cumsum(rows.sum(1))]).astype(np.int32)
    return AttentionLayout(crow, np.nonzero(rows)[1].astype(np.int32), block, mask.shape[0], mask.shape[1])


class Case:
    """Operands, a mask of blocks, and what float64 makes of them."""

    def __init__(
        self, seed: int, dtype: Any = np.float64, heads: tuple[int, int, int] = (4, 2, 2), block: tuple[int, int] = (8, 6)
    ) -> None:
        rng = np.random.default_rng(seed)
        self.block, (self.heads_q, heads_k, layout_heads) = block, heads
        self.q, self.k, self.v, self.grad_o = (
            rng.standard_normal(shape).astype(dtype)
            for shape in ((2, self.heads_q, 37, 10), (2, heads_k, 50, 10), (2, heads_k, 50, 7), (2, self.heads_q, 37, 7))
        )
        self.mask = rng.random((2, layout_heads, -(-37 // block[0]), -(-50 // block[1]))) < 0.5
        self.mask[0, 0, 1] = False  # queries that see nothing
        self.layout = layout_of(self.mask, block)

    def plan(self, **options: Any) -> Attention:
        return Attention(self.q.shape, self.k.shape, dtype=self.q.dtype, head_size_v=7, layout=self.layout, **options)

    def seen(self, left: int | None = None, right: int | None = None, shift: int = 0) -> Array:
        """(batch, heads, queries, keys): which keys queries see."""
        per_head = np.repeat(self.mask, self.heads_q // self.mask.shape[1], 1)
        seen = per_head.repeat(self.block[0], 2).repeat(self.block[1], 3)[:, :, :37, :50]
        away = np.arange(50) - np.arange(37)[:, None] - shift
        return seen & (away >= -left if left is not None else True) & (away <= right if right is not None else True)

    def exact(self, seen: Array, scale: float | None = None, cap: float = 0.0) -> tuple[Array, Array]:
        group = self.heads_q // self.k.shape[1]
        q, k, v = self.q.astype(float), self.k.astype(float).repeat(group, 1), self.v.astype(float).repeat(group, 1)
        scores = q @ k.swapaxes(-1, -2) * (10**-0.5 if scale is None else scale)
        scores = np.where(seen, cap * np.tanh(scores / cap) if cap else scores, -np.inf)
        weights = np.exp(scores)
        sums = weights.sum(-1, keepdims=True)
        with np.errstate(divide="ignore"):
            return weights @ v / np.where(sums > 0, sums, 1), np.log(sums[..., 0])


@pytest.mark.parametrize("heads", [(4, 2, 2), (4, 4, 4), (3, 1, 1), (6, 2, 3)])
@pytest.mark.parametrize(
    ("options", "rules"),
    [
        ({}, (None, None, 0)),
        ({"causal": True}, (None, 0, 0)),
        ({"causal": True, "align_ends": True}, (None, 0, 13)),
        ({"window": (5, 9)}, (5, 9, 0)),
        ({"window": (-2, None), "align_ends": True}, (-2, None, 13)),
        ({"scale": 0.7, "soft_cap": 2.0}, (None, None, 0)),
    ],
)
def test_forward(heads: tuple[int, int, int], options: dict[str, Any], rules: tuple[Any, Any, int]) -> None:
    case = Case(1, heads=heads)
    o, lse = case.plan(**options).forward(case.q, case.k, case.v)
    exact_o, exact_lse = case.exact(case.seen(*rules), options.get("scale"), options.get("soft_cap", 0.0))
    np.testing.assert_allclose(o, exact_o, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(lse, exact_lse, rtol=1e-12, atol=1e-13)
    assert np.isneginf(lse[0, 0, 8])
    assert not o[0, 0, 8].any()


def test_mass_of_blocks() -> None:
    case = Case(3, heads=(4, 2, 4))
    mass = np.full((2, 4, -(-37 // 8), -(-50 // 6)), np.nan)
    plan = case.plan(causal=True, align_ends=True)
    o, lse = plan.forward(case.q, case.k, case.v, mass=mass)
    scores = case.q @ case.k.repeat(2, 1).swapaxes(-1, -2) * 10**-0.5
    weights = np.where(case.seen(None, 0, 13), np.exp(scores - np.where(np.isneginf(lse), 0, lse)[..., None]), 0)
    blocks = np.pad(weights, ((0, 0), (0, 0), (0, 3), (0, 4))).reshape(2, 4, 5, 8, 9, 6).sum((3, 5))
    np.testing.assert_allclose(mass, blocks, rtol=1e-12, atol=1e-14)
    assert not mass[~case.mask].any()
    given = {"q": case.q, "k": case.k, "v": case.v, "o": o, "lse": lse, "mass": mass}
    assert 0 < sparsek.check_attention(plan, "mass", layout=case.layout, **given).max_ratio <= 1
    mass[1, 2, 3, 4] += 1e-9
    with pytest.raises(sparsek.CheckFailed, match="mass"):
        sparsek.check_attention(plan, "mass", layout=case.layout, **given)
    with pytest.raises(sparsek.ArgumentError, match="mass"):
        plan.forward(case.q, case.k, case.v, mass=mass[..., :8])


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_each_element_is_within_its_bound(dtype: str) -> None:
    case = Case(2, np.dtype(dtype))
    plan = case.plan(causal=True, align_ends=True)
    found: dict[str, Any] = {"q": case.q, "k": case.k, "v": case.v}
    found["o"], found["lse"] = plan.forward(**found)
    assert (found["o"].dtype.name, found["lse"].dtype.name) == (dtype, "float64" if dtype == "float64" else "float32")
    for output in ("o", "lse"):
        arrays = {name: found[name] for name in ("q", "k", "v", "o", output)}
        assert 0 < sparsek.check_attention(plan, output, layout=case.layout, **arrays).max_ratio <= 1
    gradients = plan.backward(case.grad_o, **found)
    for name, gradient in zip(("grad_q", "grad_k", "grad_v"), gradients, strict=True):
        given = {**found, "grad_o": case.grad_o, name: gradient}
        assert 0 < sparsek.check_attention(plan, name, layout=case.layout, **given).max_ratio <= 1
        gradient.flat[17] += 1
        with pytest.raises(sparsek.CheckFailed, match="bound"):
            sparsek.check_attention(plan, name, layout=case.layout, **given)


def test_bf16() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="skipped: ml_dtypes is not installed")
    case = Case(2, ml_dtypes.bfloat16)
    plan = case.plan()
    o, _ = plan.forward(case.q, case.k, case.v)
    assert o.dtype == ml_dtypes.bfloat16
    sparsek.check_attention(plan, "o", layout=case.layout, q=case.q, k=case.k, v=case.v, o=o)


def test_gradients_are_differences() -> None:
    case = Case(3)
    plan = case.plan(window=(11, 3), soft_cap=3.0)
    o, lse = plan.forward(case.q, case.k, case.v)
    gradients = plan.backward(case.grad_o, case.q, case.k, case.v, o, lse)
    rng = np.random.default_rng(4)
    for at, (name, gradient) in enumerate(zip("qkv", gradients, strict=True)):
        operands = [case.q, case.k, case.v]
        step = rng.standard_normal(gradient.shape)
        ends = []
        for sign in (1e-5, -1e-5):
            moved = [*operands[:at], operands[at] + sign * step, *operands[at + 1 :]]
            ends.append((plan.forward(*moved)[0] * case.grad_o).sum())
        np.testing.assert_allclose((ends[0] - ends[1]) / 2e-5, (gradient * step).sum(), rtol=1e-7, err_msg=name)


def test_strides_and_lengths() -> None:
    case = Case(5)
    plan = case.plan()
    o, lse = plan.forward(case.q, case.k, case.v)
    rows = np.ascontiguousarray(case.q.swapaxes(1, 2)).swapaxes(1, 2)  # (batch, seq, heads, size) in memory
    backwards = np.ascontiguousarray(case.k[..., ::-1])[..., ::-1]  # has to be copied
    columns = np.ascontiguousarray(case.v.swapaxes(2, 3)).swapaxes(2, 3)  # so does this
    out = np.empty_like(o)
    again, sums = plan.forward(rows, backwards, columns, out)
    assert again is out
    np.testing.assert_array_equal(again, o)
    np.testing.assert_array_equal(sums, lse)
    one = np.broadcast_to(case.k[:1, :1, :1], case.k.shape)  # all strides are 0
    np.testing.assert_array_equal(plan.forward(case.q, one, case.v)[1], plan.forward(case.q, one.copy(), case.v)[1])

    lengths: dict[str, Any] = {"lengths_q": np.array([30, 37], np.int32), "lengths_k": np.array([50, 9], np.int32)}
    o, lse = plan.forward(case.q, case.k, case.v, **lengths)
    seen = case.seen()
    seen[0, :, 30:] = seen[1, ..., 9:] = False
    np.testing.assert_allclose(o, case.exact(seen)[0], rtol=1e-12, atol=1e-13)
    sparsek.check_attention(plan, "lse", layout=case.layout, q=case.q, k=case.k, v=case.v, o=o, lse=lse, **lengths)


def test_what_does_not_go() -> None:
    case = Case(6)
    plan = case.plan()
    assert plan.info.kernel in repr(plan)
    assert plan.info.blocks == case.mask.sum() * 2  # of four heads for two layouts
    with pytest.raises(sparsek.ArgumentError, match=r"k has the shape .* and not \(2, 2, 50, 10\)"):
        plan.forward(case.q, case.k[:, :1], case.v)
    with pytest.raises(sparsek.DtypeError, match="v is of fp32"):
        plan.forward(case.q, case.k, case.v.astype(np.float32))
    with pytest.raises(sparsek.ArgumentError, match="o has to be a contiguous array"):
        plan.forward(case.q, case.k, case.v, np.empty((2, 4, 7, 37)).swapaxes(-1, -2))
    with pytest.raises(sparsek.ArgumentError, match="a length of int32"):
        plan.forward(case.q, case.k, case.v, lengths_k=[1, 2])
    with pytest.raises(sparsek.ArgumentError, match="right side, 3"):
        case.plan(causal=True, window=(None, 3))
    with pytest.raises(sparsek.ArgumentError, match="all scores equal"):
        case.plan(scale=0)
    with pytest.raises(sparsek.ArgumentError, match="no multiple"):
        Attention((1, 3, 8, 8), (1, 2, 8, 8), dtype="fp32")
    with pytest.raises(sparsek.ArgumentError, match="crow of the layout has 3"):
        Attention((1, 2, 8, 8), (1, 2, 8, 8), dtype="fp32", layout=AttentionLayout([0, 0, 0], [], (8, 8)))
    with pytest.raises(sparsek.IndexFault):
        Attention((1, 2, 8, 8), (1, 2, 8, 8), dtype="fp32", layout=AttentionLayout([0, 1], [1], (8, 8)))
    with pytest.raises(sparsek.UnsupportedError, match="kernel"):
        Attention((1, 2, 8, 8), (1, 2, 8, 8), dtype="fp32", kernel="none-such")
    with pytest.raises(sparsek.ArgumentError, match="needs k, o, q, v, and nothing else"):
        sparsek.check_attention(plan, "o", q=case.q, k=case.k, v=case.v)
    with pytest.raises(sparsek.ArgumentError, match="is none of"):
        sparsek.check_attention(plan, "p", q=case.q, k=case.k, v=case.v)


def test_another_layout() -> None:
    case, other = Case(3), Case(4)
    plan = case.plan()
    plan.update(other.layout)
    other.q, other.k, other.v, other.grad_o = case.q, case.k, case.v, case.grad_o
    fresh = other.plan()
    o, lse = plan.forward(case.q, case.k, case.v)
    expected = fresh.forward(case.q, case.k, case.v)
    assert np.array_equal(o, expected[0])
    assert np.array_equal(lse, expected[1])
    found = plan.backward(case.grad_o, case.q, case.k, case.v, o, lse)
    for got, wanted in zip(found, fresh.backward(case.grad_o, case.q, case.k, case.v, o, lse), strict=True):
        assert np.array_equal(got, wanted)
    assert not np.array_equal(o, case.plan().forward(case.q, case.k, case.v)[0])
    assert plan.require()
    with pytest.raises(sparsek.ArgumentError, match="blocks of 4 x 6"):
        plan.update(AttentionLayout(np.zeros(2 * 2 * 10 + 1, np.int32), np.zeros(0, np.int32), (4, 6), 2, 2))
    with pytest.raises(sparsek.ArgumentError, match="2 x 2 layouts"):
        plan.update(AttentionLayout(case.layout.crow, case.layout.col, case.layout.block, 1, 4))
