# SPDX-License-Identifier: Apache-2.0
"""Arrays of other packages on the CPU, where these are installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reference import Case

import sparsek

CASE = Case(1, (64, 96), (8, 16), 0.4, np.float32, np.int64)
A = sparsek.BSR(CASE.values, CASE.crow, CASE.col, CASE.shape)
B = np.random.default_rng(2).standard_normal((96, 7)).astype(np.float32)


def test_what_has_only_dlpack() -> None:
    class Foreign:
        def __init__(self, array: Any) -> None:
            self._array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self._array.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self._array.__dlpack_device__()

    np.testing.assert_array_equal(sparsek.bsr_gemm(A, Foreign(B)), sparsek.bsr_gemm(A, B))
    elsewhere = Foreign(B)
    elsewhere.__class__.__dlpack_device__ = lambda _: (2, 0)  # type: ignore[assignment]
    with pytest.raises(sparsek.ArgumentError, match="cuda_array_interface"):
        sparsek.bsr_gemm(A, elsewhere)


def test_lists() -> None:
    a = ([[[1.0, 2.0]]], [0, 1], [1], (1, 4))
    got = sparsek.bsr_gemm(sparsek.BSR(np.array(a[0]), a[1], a[2], (1, 4)), [1.0, 1.0, 3.0, 4.0])
    np.testing.assert_array_equal(got, [11.0])


def test_jax() -> None:
    jax = pytest.importorskip("jax", reason="skipped: JAX is not installed")
    with jax.default_device(jax.devices("cpu")[0]):
        for kind in (jax.numpy.float32, jax.numpy.bfloat16):
            a = (jax.numpy.asarray(CASE.values, kind), CASE.crow, CASE.col, CASE.shape)
            got = sparsek.bsr_gemm(a, jax.numpy.asarray(B, kind))
            assert isinstance(got, jax.Array)
            assert got.dtype == kind
            np.testing.assert_allclose(np.asarray(got, np.float32), CASE.dense() @ B, rtol=0.05, atol=0.1)


@pytest.mark.filterwarnings("ignore:Sparse")
def test_torch() -> None:
    torch = pytest.importorskip("torch", reason="skipped: torch is not installed")
    values, b = torch.from_numpy(CASE.values), torch.from_numpy(B)
    parts = torch.from_numpy(CASE.crow), torch.from_numpy(CASE.col)
    a = torch.sparse_bsr_tensor(*parts, values, CASE.shape)
    expected = sparsek.bsr_gemm(A, B)
    got = sparsek.bsr_gemm(a, b)
    assert isinstance(got, torch.Tensor)
    np.testing.assert_array_equal(got.numpy(), expected)
    np.testing.assert_array_equal(sparsek.bsr_gemm(a, b.T.contiguous().T).numpy(), expected)
    half = sparsek.bsr_gemm(torch.sparse_bsr_tensor(*parts, values.bfloat16(), CASE.shape), b.bfloat16())
    assert half.dtype == torch.bfloat16
    np.testing.assert_allclose(half.float().numpy(), expected, rtol=0.05, atol=0.1)
    csr = torch.from_numpy(CASE.dense()).to_sparse_csr()
    np.testing.assert_allclose(sparsek.bsr_gemm(csr, b.double()).numpy(), expected, rtol=1e-4, atol=1e-4)
    for crow, col in [(CASE.crow.astype(np.int32), parts[1]), (parts[0], CASE.col.astype(np.int32)), (parts[0].short(), CASE.col)]:
        np.testing.assert_array_equal(sparsek.bsr_gemm((values, crow, col, CASE.shape), b).numpy(), expected)
    out = torch.empty(64, 7)
    assert sparsek.bsr_gemm(a, b, out=out) is out
    np.testing.assert_array_equal(out.numpy(), expected)
    repeated = b.expand(3, 2, 96, 7).clone()[:, :1].expand(3, 2, 96, 7)
    np.testing.assert_array_equal(sparsek.bsr_gemm(a, repeated).numpy(), np.broadcast_to(expected, (3, 2, 64, 7)))
    with pytest.raises(sparsek.ArgumentError, match="share their memory"):
        sparsek.bsr_gemm(a, repeated, out=torch.empty(3, 1, 64, 7).expand(3, 2, 64, 7))
    b.requires_grad_()
    with pytest.raises(sparsek.ArgumentError, match="gradients"):
        sparsek.bsr_gemm(a, b)
    with torch.no_grad():
        sparsek.bsr_gemm(a, b)
