# SPDX-License-Identifier: Apache-2.0
"""The stand-in for torch.sparse._triton_ops, against products of dense matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_reference import Matrix, Place, draw, on_device  # noqa: E402, F401

import sparsek  # noqa: E402
from sparsek.compat import torch_triton_ops as shim  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore:Sparse")]
ops: Any = torch.sparse._triton_ops


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    shim.install()
    yield
    shim.uninstall()


def bsr(seed: int, batch: tuple[int, ...], dtype: Any = torch.float64) -> tuple[Any, Any]:
    """A BSR tensor (*batch, 32, 48), as many blocks in each, and the dense one."""
    matrices = []
    for item in range(max(1, torch.Size(batch).numel())):
        a = Matrix(seed + item, (32, 48), (8, 16), dtype=dtype)
        a.crow = torch.tensor([0, 1, 3, 3, 6], dtype=torch.int64, device=Place.device)
        a.col = torch.tensor([item % 3, 0, 2, 0, 1, 2], dtype=torch.int64, device=Place.device)
        a.values = draw(seed + item, 6, 8, 16, dtype=dtype)
        matrices.append(a)
    parts = [[getattr(a, name) for a in matrices] for name in ("crow", "col", "values")]
    crow, col, values = (torch.stack(part).unflatten(0, batch) if batch else part[0] for part in parts)
    sparse = torch.sparse_bsr_tensor(crow, col, values, (*batch, 32, 48))
    dense = torch.stack([a.dense() for a in matrices])
    return sparse, dense.unflatten(0, batch) if batch else dense[0]


BATCHES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((), ()), ((), (3,)), ((2,), ()), ((2,), (3, 1)), ((2, 2), (2, 2))]


@pytest.mark.parametrize(("of_bsr", "of_dense"), BATCHES)
def test_products(of_bsr: Any, of_dense: Any) -> None:
    sparse, dense = bsr(1, of_bsr)
    b = draw(2, *of_dense, 48, 5)
    exact = dense @ b
    torch.testing.assert_close(ops.bsr_dense_mm(sparse, b), exact)
    for out in (torch.empty_like(exact), torch.empty_like(exact.mT.contiguous()).mT):
        assert ops.bsr_dense_mm(sparse, b, out=out) is out
        torch.testing.assert_close(out, exact)
    if not of_bsr:
        torch.testing.assert_close(ops.bsr_scatter_mm(sparse, b), exact)
    added = draw(3, *exact.shape)
    torch.testing.assert_close(ops.bsr_dense_addmm(added, sparse, b, beta=0.5, alpha=2.0), 0.5 * added + 2 * exact)
    left, right = draw(4, *exact.shape[:-1]), draw(5, *exact.shape[:-2], 5)
    got = ops.bsr_dense_addmm(added, sparse, b, beta=0, alpha=3.0, left_alpha=left, right_alpha=right)
    torch.testing.assert_close(got, 3 * exact * left[..., None] * right[..., None, :])
    added.fill_(torch.nan)
    assert ops.bsr_dense_addmm(added, sparse, b, beta=0, alpha=2.0).isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sums_are_rounded_once(dtype: Any) -> None:
    sparse, dense = bsr(1, (), dtype)
    b, added = draw(2, 48, 16, dtype=dtype), draw(3, 32, 16, dtype=dtype)
    exact = (0.5 * added.double() + 2 * dense.double() @ b.double()).to(dtype)
    torch.testing.assert_close(ops.bsr_dense_addmm(added, sparse, b, beta=0.5, alpha=2.0), exact, rtol=8e-3, atol=1e-5)


@pytest.mark.parametrize(("of_bsr", "of_dense"), BATCHES)
def test_sampled(of_bsr: Any, of_dense: Any) -> None:
    sparse, dense = bsr(1, of_bsr)
    left, right = draw(2, *of_dense, 32, 7), draw(3, *of_dense, 7, 48)
    where = torch.sparse_bsr_tensor(sparse.crow_indices(), sparse.col_indices(), torch.ones_like(sparse.values()), sparse.shape)
    cells = where.to_dense() if not of_bsr else torch.stack([one.to_dense() for one in items(where)]).unflatten(0, of_bsr)
    exact = 0.5 * dense + 2 * (left @ right) * cells
    got = ops.sampled_addmm(sparse, left, right, beta=0.5, alpha=2.0)
    whole = got.to_dense() if got.dim() == 2 else torch.stack([one.to_dense() for one in items(got)]).unflatten(0, got.shape[:-2])
    torch.testing.assert_close(whole, exact)
    if got.dim() == 2:
        mask = torch.sparse_bsr_tensor(sparse.crow_indices(), sparse.col_indices(), sparse.values() != 0, sparse.shape)
        torch.testing.assert_close(ops.sampled_addmm(mask, left, right, beta=0.0).to_dense(), (left @ right) * cells)
        out = torch.sparse_bsr_tensor(sparse.crow_indices(), sparse.col_indices(), sparse.values().clone(), sparse.shape)
        assert ops.sampled_addmm(sparse, left, right, out=out) is out
        torch.testing.assert_close(out.to_dense(), dense + (left @ right) * cells)


def items(bsr: Any) -> Iterator[Any]:
    """The matrices of a batch."""
    last = bsr.shape[-2:]
    parts = (bsr.crow_indices().flatten(0, -2), bsr.col_indices().flatten(0, -2), bsr.values().flatten(0, -4))
    for crow, col, values in zip(*parts, strict=True):
        yield torch.sparse_bsr_tensor(crow, col, values, last)


def test_faults() -> None:
    sparse, dense = bsr(1, ())
    for work in (
        lambda: ops.bsr_dense_mm(dense, dense.t()),
        lambda: ops.bsr_dense_mm(sparse, dense),
        lambda: ops.bsr_dense_mm(sparse, dense.t().float()),
        lambda: ops.bsr_dense_mm(sparse, dense.t(), out=dense),
        lambda: ops.sampled_addmm(sparse, dense, dense),
        lambda: ops.bsr_scatter_mm(bsr(1, (2,))[0], dense.t()),
    ):
        with pytest.raises(sparsek.ArgumentError):
            work()


def test_install_and_uninstall() -> None:
    shim.install()
    assert ops.bsr_dense_addmm is shim.bsr_dense_addmm
    shim.uninstall()
    assert ops.bsr_dense_addmm is not shim.bsr_dense_addmm


def test_int8_is_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's products of int8 come to the function that sparsek's stands in for, and must not come back."""
    from torch.sparse import _triton_ops as ops

    asked: list[Any] = []
    shim.uninstall()
    monkeypatch.setattr(ops, "bsr_dense_addmm", lambda *args, **options: asked.append((args, options)))
    shim.install()
    try:
        bsr = torch.ones(32, 32, dtype=torch.int8).to_sparse_bsr((32, 32))
        dense, given = torch.ones(32, 32, dtype=torch.int8), torch.ones(32, 32, dtype=torch.int32)
        ops._int_bsr_dense_addmm(given, bsr, dense, alpha=2)
        ops.bsr_dense_addmm(given, bsr, dense, alpha=2)
    finally:
        shim.uninstall()
    assert len(asked) == 2
    assert all(args[1] is bsr and options["alpha"] == 2 for args, options in asked)
