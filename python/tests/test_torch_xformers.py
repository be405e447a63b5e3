# SPDX-License-Identifier: Apache-2.0
"""xFormers' memory_efficient_attention with the library's operator, where xFormers is installed."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    xops = pytest.importorskip("xformers.ops", reason="skipped: xFormers is not installed")

from torch_reference import draw  # noqa: E402

import sparsek.torch as st  # noqa: E402
from sparsek.compat import xformers as compat  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
LAYOUT = st.BlockLayout.from_mask(draw(7, 4, 5, 6) > -0.5, (8, 10), (40, 60))
WITH_BITS = st.BlockLayout.from_dense_mask(draw(8, 4, 40, 60) > -0.5, (8, 10))


def biases() -> list[tuple[Any, dict[str, Any]]]:
    made = compat.install().bias
    masks = xops.fmha.attn_bias
    return [
        (None, {}),
        (masks.LowerTriangularMask(), {"causal": True}),
        (masks.LowerTriangularFromBottomRightMask(), {"causal": True, "align_ends": True}),
        (made(LAYOUT), {"layout": LAYOUT}),
        (made(LAYOUT, window=(9, 4), align_ends=True), {"layout": LAYOUT, "window": (9, 4), "align_ends": True}),
        (made(WITH_BITS, causal=True).to("cpu"), {"layout": WITH_BITS, "causal": True}),
        (masks.LowerTriangularFromBottomRightLocalAttentionMask(11), {"window": (10, 0), "align_ends": True}),
        (masks.LocalAttentionFromBottomRightMask(window_left=7, window_right=2), {"window": (7, 2), "align_ends": True}),
        (draw(9, 2, 4, 40, 60), {"bias": draw(9, 2, 4, 40, 60)}),
        (masks.LowerTriangularMaskWithTensorBias(draw(9, 2, 4, 40, 60)), {"bias": draw(9, 2, 4, 40, 60), "causal": True}),
    ]


@pytest.mark.parametrize("at", range(10))
def test_results_and_gradients(at: int) -> None:
    bias, options = biases()[at]
    found = compat.install()
    leaves = [draw(1, 2, 40, 4, 8), draw(2, 2, 60, 4, 8), draw(3, 2, 60, 4, 6)]
    for operand in leaves:
        operand.requires_grad_()
    got = xops.memory_efficient_attention(*leaves, attn_bias=bias, scale=0.4, op=(found.forward, found.backward))
    q, k, v = (x.transpose(1, 2) for x in leaves)
    exact = st.attention(q, k, v, scale=0.4, **options).transpose(1, 2)
    assert torch.equal(got, exact)
    grad = draw(4, *exact.shape)
    for one, other in zip(torch.autograd.grad(got, leaves, grad), torch.autograd.grad(exact, leaves, grad), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("at", range(10))
def test_groups_of_heads(at: int) -> None:
    bias, options = biases()[at]
    found = compat.install()
    q, k, v = draw(1, 2, 40, 4, 8), draw(2, 2, 60, 2, 8), draw(3, 2, 60, 2, 6)
    exact = st.attention(*(x.transpose(1, 2) for x in (q, k, v)), **options).transpose(1, 2)
    repeated = [x[:, :, :, None].expand(-1, -1, -1, 2, -1) for x in (k, v)]
    for given in (repeated, [x.contiguous() for x in repeated]):
        got = xops.memory_efficient_attention_forward(q.unflatten(2, (2, 2)), *given, attn_bias=bias, op=found.forward)
        assert got.shape == (2, 40, 2, 2, 6)
        assert torch.equal(got.flatten(2, 3), exact)


@pytest.mark.parametrize("at", [3, 4, 5])
def test_the_bias_says_which_keys_are_seen(at: int) -> None:
    bias, options = biases()[at]
    q, k = draw(1, 2, 4, 40, 8), draw(2, 2, 4, 60, 8)
    seen = bias.materialize((2, 4, 40, 60), torch.float64)
    assert torch.isinf(seen).any()
    _, lse = st.attention(q, k, k, return_lse=True, **options)
    torch.testing.assert_close((q @ k.transpose(-1, -2) * 8**-0.5 + seen).logsumexp(-1), lse)


def test_the_gradient_of_a_bias() -> None:
    found = compat.install()
    q, bias = draw(1, 2, 40, 4, 8).requires_grad_(), draw(9, 2, 4, 40, 40).requires_grad_()
    got = xops.memory_efficient_attention(q, q, q, attn_bias=bias, op=(found.forward, found.backward))
    exact = st.attention(*[q.transpose(1, 2)] * 3, bias=bias).transpose(1, 2)
    for one, other in zip(torch.autograd.grad(got.sum(), (q, bias)), torch.autograd.grad(exact.sum(), (q, bias)), strict=True):
        torch.testing.assert_close(one, other)
    mask = xops.fmha.attn_bias.LowerTriangularMaskWithTensorBias(bias)
    assert "takes no gradient" in found.backward.not_supported_reasons(xops.fmha.Inputs(q, q, q, mask))[-1]


def test_what_a_gpu_has_kernels_for() -> None:
    def reasons(dtype: Any, size: int, size_of_v: int, bias: Any = None) -> list[str]:
        query = SimpleNamespace(device=torch.device("cuda"), dtype=dtype, shape=(1, 1, 1, size))
        return compat._refused_on_gpu(SimpleNamespace(query=query, value=SimpleNamespace(shape=(1, 1, 1, size_of_v)), attn_bias=bias))

    assert reasons(torch.float16, 256, 256) == []
    assert "dtype=torch.float32" in reasons(torch.float32, 64, 64)[0]
    assert "(64 and 32)" in reasons(torch.bfloat16, 64, 32)[0]
    assert "(36)" in reasons(torch.bfloat16, 36, 36)[0]
    assert "8 x 10" in reasons(torch.bfloat16, 64, 64, compat.install().bias(LAYOUT))[0]


def test_the_registry() -> None:
    from xformers.ops.common import OPERATORS_REGISTRY

    found = compat.install()
    assert compat.install() is found
    assert [op.NAME for op in OPERATORS_REGISTRY].count("BlackwellSparseKOp") == 1
    assert found.forward.is_available()
    q = draw(1, 2, 40, 4, 8)
    with pytest.raises(ValueError, match="dropout"):
        xops.memory_efficient_attention(q, q, q, p=0.5, op=(found.forward, found.backward))
