# SPDX-License-Identifier: Apache-2.0
"""Derivatives in forward mode, of the products and of the operators that graphs hold."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.autograd import forward_ad  # noqa: E402
from torch_reference import Matrix, draw, on_device  # noqa: E402, F401

import sparsek  # noqa: E402
import sparsek.torch as st  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore::FutureWarning:torch"), pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")]


def close(got: Any, exact: Any) -> None:
    torch.testing.assert_close(got, exact, rtol=0, atol=1e-11)


def test_forward_mode() -> None:
    a = Matrix(8, (24, 32), (8, 8))
    index, (x, of_x), (bias, of_bias) = (a.crow, a.col, a.size), (draw(1, 5, 32), draw(2, 5, 32)), (draw(3, 24), draw(4, 24))
    values, of_values = a.values, draw(5, *a.values.shape)
    lhs, of_lhs = draw(6, 24, 5), draw(7, 24, 5)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual
        y = st.linear(dual(x, of_x), dual(values, of_values), *index, dual(bias, of_bias))
        close(forward_ad.unpack_dual(y).tangent, of_x @ a.dense().t() + x @ a.dense(of_values).t() + of_bias)
        y = st.linear(x, values, *index, dual(bias, of_bias))
        close(forward_ad.unpack_dual(y).tangent, of_bias.expand(5, 24))
        y = st.mm(dual(values, of_values), *index, x.t())
        close(forward_ad.unpack_dual(y).tangent, a.dense(of_values) @ x.t())
        y = st.sdd(dual(lhs, of_lhs), x, *index, a.block)
        close(forward_ad.unpack_dual(y).tangent, a.blocks(of_lhs @ x))


OPS: Any = torch.ops.sparsek


def operators() -> dict[str, tuple[Any, Any, list[Any]]]:
    """Each operator of what is differentiated, the same of dense matrices, and points."""
    a = Matrix(8, (24, 32), (8, 8))
    index = a.crow, a.col, list(a.size)
    x, bias = draw(1, 5, 32), draw(3, 24)
    return {
        "mm": (lambda v, b: OPS.mm(v, *index, b, False), lambda v, b: a.dense(v) @ b, [a.values, x.t()]),
        "mm transposed": (lambda v, b: OPS.mm(v, *index, b, True), lambda v, b: a.dense(v).t() @ b, [a.values, draw(2, 2, 24, 3)]),
        "linear": (
            lambda x, v, bias: OPS.linear(x, v, *index, bias, False, "none"),
            lambda x, v, bias: x @ a.dense(v).t() + bias,
            [x, a.values, bias],
        ),
        "sdd": (lambda left, right: OPS.sdd(left, right, *index, [8, 8]), lambda left, right: a.blocks(left @ right), [draw(6, 24, 5), x]),
    }


@pytest.mark.parametrize("name", ["mm", "mm transposed", "linear", "sdd"])
@pytest.mark.parametrize("records", [False, True])
def test_operators(name: str, records: bool) -> None:
    function, dense, points = operators()[name]
    tangents = [draw(20 + at, *point.shape) for at, point in enumerate(points)]
    exact = torch.func.jvp(dense, tuple(points), tuple(tangents))
    with torch.set_grad_enabled(records):
        for got, right in zip(torch.func.jvp(function, tuple(points), tuple(tangents)), exact, strict=True):
            close(got, right)
        for at, tangent in enumerate(tangents):
            others = points[:at], points[at + 1 :]
            with forward_ad.dual_level():
                one = forward_ad.make_dual(points[at].detach().requires_grad_(records), tangent)
                y, found = forward_ad.unpack_dual(function(*others[0], one, *others[1]))
                assert y.requires_grad == records
            _, right = torch.func.jvp(lambda one: dense(*others[0], one, *others[1]), (points[at],), (tangent,))  # noqa: B023
            close(found, right)
        places = tuple(range(len(points)))
        for got, right in zip(torch.func.jacfwd(function, places)(*points), torch.func.jacfwd(dense, places)(*points), strict=True):
            close(got, right)


@pytest.mark.parametrize("name", ["mm", "linear", "sdd"])
def test_twice(name: str) -> None:
    """Forward over reverse, reverse over forward, forward twice: the derivative for a first operand by the second."""
    a = Matrix(8, (24, 32), (8, 8))
    index = a.crow, a.col, a.size
    products: dict[str, Any] = {
        "mm": lambda v, b: st.mm(v, *index, b),
        "linear": lambda x, v, bias: st.linear(x, v, *index, bias),
        "sdd": lambda left, right: st.sdd(left, right, *index, (8, 8)),
    }
    function, dense, points = operators()[name]

    def mixed(of: Any, outer: str, inner: str) -> Any:
        def loss(*args: Any) -> Any:
            return of(*args).square().sum()

        return getattr(torch.func, outer)(getattr(torch.func, inner)(loss, 0), 1)(*points)

    for orders in (("jacfwd", "jacrev"), ("jacrev", "jacfwd"), ("jacfwd", "jacfwd")):
        close(mixed(products[name], *orders), mixed(dense, *orders))
    close(mixed(function, "jacfwd", "jacfwd"), mixed(dense, "jacfwd", "jacfwd"))


def test_compiled() -> None:
    function, dense, (values, b) = operators()["mm"]
    tangents = draw(1, *values.shape), draw(2, *b.shape)
    compiled = torch.compile(lambda *args: torch.func.jvp(function, args[:2], args[2:]), backend="aot_eager", fullgraph=True)
    for got, right in zip(compiled(values, b, *tangents), torch.func.jvp(dense, (values, b), tangents), strict=True):
        close(got, right)


def test_refused() -> None:
    a, x = Matrix(8, (24, 32), (8, 8)), draw(1, 5, 32)
    with pytest.raises(RuntimeError, match="no gradients with an activation"):
        torch.func.jvp(lambda x: OPS.linear(x, a.values, a.crow, a.col, a.size, None, False, "relu"), (x,), (x,))
    q = draw(1, 1, 2, 16, 8)
    with pytest.raises(sparsek.UnsupportedError, match="forward mode"):
        torch.func.jvp(lambda q: st.attention(q, q, q), (q,), (q,))
    with forward_ad.dual_level(), pytest.raises(sparsek.UnsupportedError, match="forward mode"):
        st.attention(forward_ad.make_dual(q, q), q, q)
