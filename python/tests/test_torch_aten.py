# SPDX-License-Identifier: Apache-2.0
"""torch's own products of BSR tensors by sparsek."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402, N812
from torch_reference import Matrix, Place, draw, on_device  # noqa: E402, F401

from sparsek.compat import torch_aten  # noqa: E402
from sparsek.torch import _products  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore:Sparse")]
if not hasattr(torch.library, "get_kernel"):
    pytest.skip("this torch is too old", allow_module_level=True)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The products of sparsek that were made."""
    made: list[str] = []
    for name in ("mm", "linear"):
        original = getattr(_products, name)

        def counted(*args: Any, name: str = name, original: Any = original) -> Any:
            made.append(name)
            return original(*args)

        monkeypatch.setattr(_products, name, counted)
    torch_aten.install()
    torch_aten.install()
    yield made
    torch_aten.uninstall()
    made.clear()
    a = Matrix(1, (32, 48), (8, 8), dtype=torch.float32, index=torch.int64)
    sparse = torch.sparse_bsr_tensor(a.crow, a.col, a.values, a.size)
    if Place.device == "cpu":
        torch.testing.assert_close(sparse @ draw(1, 48, 16, dtype=torch.float32), a.dense() @ draw(1, 48, 16, dtype=torch.float32))
        assert made == []  # torch's own


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products(calls: list[str], dtype: Any) -> None:
    a = Matrix(1, (32, 48), (8, 16), dtype=dtype, index=torch.int64)
    sparse, dense = torch.sparse_bsr_tensor(a.crow, a.col, a.values, a.size), a.dense()
    b, x, y, bias = draw(1, 48, 5, dtype=dtype), draw(2, 5, 48, dtype=dtype), draw(3, 5, 32, dtype=dtype), draw(4, 32, dtype=dtype)
    results = [
        (sparse @ b, dense @ b),
        (torch.mm(sparse, b), dense @ b),
        (torch.addmm(draw(5, 32, 5, dtype=dtype), sparse, b, beta=0.5, alpha=2), 0.5 * draw(5, 32, 5, dtype=dtype) + 2 * dense @ b),
        (F.linear(x, sparse), x @ dense.t()),
        (F.linear(x, sparse, bias), F.linear(x, dense, bias)),
        (x @ sparse.t(), x @ dense.t()),
        (y @ sparse, y @ dense),
        (sparse.t() @ y.t(), dense.t() @ y.t()),
    ]
    for got, exact in results:
        torch.testing.assert_close(got, exact, rtol=1e-4, atol=1e-4)
    assert len(calls) == len(results)


def test_gradients_of_dense_operands(calls: list[str]) -> None:
    a = Matrix(2, (32, 48), (8, 16), index=torch.int64)
    sparse, dense = torch.sparse_bsr_tensor(a.crow, a.col, a.values, a.size), a.dense()
    b, c = draw(1, 48, 5).requires_grad_(), draw(1, 48, 5).requires_grad_()
    (sparse @ b).square().sum().backward()
    (dense @ c).square().sum().backward()
    torch.testing.assert_close(b.grad, c.grad)
    assert calls == ["mm", "mm"]


def test_what_is_left_to_torch(calls: list[str]) -> None:
    a = Matrix(3, (32, 48), (8, 16), dtype=torch.float32)
    csr, b = a.dense().to_sparse_csr(), draw(1, 48, 5, dtype=torch.float32)
    torch.testing.assert_close(csr @ b, a.dense() @ b)
    assert calls == []
