# SPDX-License-Identifier: Apache-2.0
"""Kernels that are measured for products of torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_reference import Matrix, Place, draw, on_device  # noqa: E402, F401

import sparsek  # noqa: E402
import sparsek.torch as st  # noqa: E402
from sparsek.torch import _known, _plans  # noqa: E402


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The plans that are made, in order: whether they are tuned."""
    plans: list[Any] = []
    make = _plans._Plan.__init__

    def counted(self: Any, *args: Any) -> None:
        make(self, *args)
        plans.append(self.is_tuned)

    st.cache_clear()
    monkeypatch.setattr(_plans._Plan, "__init__", counted)
    yield plans
    st.cache_clear()


def test_products(made: list[Any]) -> None:
    a, x = Matrix(1, (64, 96), (16, 16)), draw(1, 32, 96)
    where = (a.crow, a.col, a.size)
    values = a.values.clone().requires_grad_()
    for _ in range(2):
        st.linear(x, values, *where).sum().backward()
    assert made == [False, False]  # the product, and the values' gradient
    for _ in range(2):  # the second time with what the first one measured
        values.grad = None
        with st.tuning(0.02):
            y = st.linear(x, values, *where)
            y.sum().backward()
        torch.testing.assert_close(y, x @ a.dense().t())
        torch.testing.assert_close(values.grad, a.blocks(torch.ones(64, 32, dtype=x.dtype, device=x.device) @ x))
    assert made == [False, False, True, True]
    _known.forget()
    torch.testing.assert_close(st.linear(x, a.values, *where), x @ a.dense().t())
    with st.tuning(0.02):
        torch.testing.assert_close(st.mm(a.values, *where, x.t()), a.dense() @ x.t())
    assert made == [False, False, True, True, True]


def test_a_layer() -> None:
    layer = st.BsrLinear(64, 128, (16, 16), density=0.5, device=Place.device)
    x = torch.randn(8, 64, device=Place.device)
    with st.tuning(0.02):
        with st.tuning(0.0):
            before = layer(x)
        torch.testing.assert_close(layer(x), before)


def test_values_that_do_not_lie_in_rows_and_none() -> None:
    a, x = Matrix(1, (64, 96), (16, 16)), draw(1, 32, 96)
    with st.tuning(0.01):
        turned = a.values.mT.contiguous().mT
        torch.testing.assert_close(st.linear(x, turned, a.crow, a.col, a.size), x @ a.dense().t())
        empty = torch.zeros(5, dtype=torch.int32, device=x.device)
        assert not st.linear(x, a.values[:0], empty, empty[:0], a.size).any()


def test_refused() -> None:
    with pytest.raises(sparsek.ArgumentError, match="measured for -1"):
        st.tuning(-1)
