# SPDX-License-Identifier: Apache-2.0
"""triton.ops.blocksparse.matmul by sparsek, against products of masked dense matrices."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import sparsek  # noqa: E402
from sparsek.compat.triton_blocksparse import install, matmul  # noqa: E402


def masked(x: Any, layout: Any, block: int) -> Any:
    return x * layout.repeat_interleave(block, 1).repeat_interleave(block, 2)


def gathered(x: Any, layout: Any, block: int) -> Any:
    """The blocks of x (Z, H, rows, columns): (Z, blocks, block, block)."""
    cut = x.unflatten(2, (-1, block)).unflatten(4, (-1, block)).transpose(3, 4)
    return cut[:, layout.bool()]


@pytest.mark.parametrize("mode", ["sdd", "dsd", "dds"])
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("trans_c", [False, True])
def test_matmul(mode: str, trans_a: bool, trans_b: bool, trans_c: bool) -> None:
    torch.manual_seed(0)
    items, heads, m, n, k, block = 3, 2, 32, 24, 40, 8
    a = torch.randn(items, heads, *((k, m) if trans_a else (m, k)), dtype=torch.float64)
    b = torch.randn(items, heads, *((n, k) if trans_b else (k, n)), dtype=torch.float64)
    shape = {"sdd": (n, m) if trans_c else (m, n), "dsd": a.shape[2:], "dds": b.shape[2:]}[mode]
    layout = torch.randint(2, (heads, shape[0] // block, shape[1] // block))
    layout[1, 2, :] = 0
    op = matmul(layout, block, mode, "cpu", trans_a, trans_b, trans_c)
    leaves = [x.clone().requires_grad_() for x in (a, b)]
    left, right = leaves
    if mode == "dsd":
        left = gathered(left, layout, block)
    if mode == "dds":
        right = gathered(right, layout, block)
    c = op(left, right)
    dense = [x.clone().requires_grad_() for x in (a, b)]
    lhs = masked(dense[0], layout, block) if mode == "dsd" else dense[0]
    rhs = masked(dense[1], layout, block) if mode == "dds" else dense[1]
    exact = (lhs.mT if trans_a else lhs) @ (rhs.mT if trans_b else rhs)
    exact = exact.mT if trans_c else exact
    exact = gathered(exact, layout, block) if mode == "sdd" else exact
    torch.testing.assert_close(c, exact)
    weights = torch.randn_like(exact)
    (c * weights).sum().backward()
    (exact * weights).sum().backward()
    for got, wanted in zip(leaves, dense, strict=True):
        torch.testing.assert_close(got.grad, wanted.grad)
    out = torch.empty_like(exact)
    assert op(left.detach(), right.detach(), out=out) is out
    torch.testing.assert_close(out, exact)


def test_installed() -> None:
    install()
    import triton.ops.blocksparse

    assert triton.ops.blocksparse.matmul is matmul
    with pytest.raises(sparsek.UnsupportedError, match="ddd"):
        matmul(torch.ones(1, 2, 2), 8, "ddd", "cpu")
    with pytest.raises(sparsek.ArgumentError, match="heads"):
        matmul(torch.ones(2, 2), 8, "sdd", "cpu")
