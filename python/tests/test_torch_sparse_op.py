# SPDX-License-Identifier: Apache-2.0
"""Attention as an operator with torch's arguments and a layout."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from torch_reference import draw  # noqa: E402

import sparsek  # noqa: E402
import sparsek.torch as st  # noqa: E402
from sparsek.compat import xformers  # noqa: E402


def test_layouts_of_all_kinds() -> None:
    q, k, v = draw(1, 2, 4, 40, 8), draw(2, 2, 2, 40, 8), draw(3, 2, 2, 40, 8)
    layout = st.layouts.window(40, 8, 8, 8)
    gate = st.LearnableTopKGate(4, 2, 8, 8, count=2)
    op = st.BlackwellSparseKOp()
    for causal in (False, True):
        assert torch.equal(op(q, k, v, is_causal=causal), st.attention(q, k, v, causal=causal))
        assert torch.equal(op(q, k, v, layout, None, 0.0, causal), st.attention(q, k, v, layout, causal=causal))
        by_gate = st.attention(q, k, v, gate.layout(q, k), causal=causal)
        assert torch.equal(op(q, k, v, gate.layout, is_causal=causal), by_gate)
        assert torch.equal(st.BlackwellSparseKOp(gate)(q, k, v, is_causal=causal), by_gate)
        chooses = st.BlackwellSparseKOp(lambda q, k: layout)
        assert torch.equal(chooses(q, k, v, is_causal=causal), st.attention(q, k, v, layout, causal=causal))
        assert torch.equal(chooses(q, k, v, gate.layout, is_causal=causal), by_gate)  # of the call first
    assert len(list(st.BlackwellSparseKOp(gate).parameters())) == 2


def test_a_bias() -> None:
    q, k, v = draw(1, 2, 4, 40, 8), draw(2, 2, 2, 40, 8), draw(3, 2, 2, 40, 8)
    bias = draw(4, 40, 40).requires_grad_()
    exact = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias, enable_gqa=True)
    got = st.BlackwellSparseKOp()(q, k, v, None, bias)
    torch.testing.assert_close(got, exact, rtol=1e-11, atol=1e-13)
    (of_exact,), (of_got,) = (torch.autograd.grad(o.square().sum(), bias) for o in (exact, got))
    torch.testing.assert_close(of_got, of_exact, rtol=1e-11, atol=1e-13)


def test_what_is_refused() -> None:
    q = draw(1, 1, 1, 8, 8)
    with pytest.raises(sparsek.UnsupportedError, match=r"dropout_p=0\.1"):
        st.BlackwellSparseKOp()(q, q, q, dropout_p=0.1)


def test_what_a_gpu_refuses_is_told_of_every_kind_of_bias() -> None:
    """The operator for xFormers asks of its inputs alone, without xFormers."""
    layout = st.BlockLayout.from_mask(torch.ones(4, 5, 6, dtype=torch.bool), (8, 10), (40, 60))
    operand = SimpleNamespace(device=SimpleNamespace(type="cuda"), dtype=torch.bfloat16, shape=(2, 40, 4, 64))
    refused = {
        "a tensor, whose layout is torch's": (torch.zeros(2, 4, 40, 60), []),
        "blocks of 8 x 10": (SimpleNamespace(layout=layout), ["blocks of 8 x 10 are no multiples of 16 x 16 on a GPU"]),
        "none": (None, []),
    }
    for what, (bias, reasons) in refused.items():
        inputs = SimpleNamespace(query=operand, value=operand, attn_bias=bias)
        assert xformers._refused_on_gpu(inputs) == reasons, what
