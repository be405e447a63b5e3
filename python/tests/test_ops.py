# SPDX-License-Identifier: Apache-2.0
"""The products that training needs, with operands in both orders, against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reference import Case, assert_close

import sparsek

OPS = ["dsd", "dsd_t", "dds", "dds_t"]
SHAPES = [((64, 96), (16, 16)), ((70, 45), (16, 8)), ((33, 29), (1, 1)), ((5, 7), (3, 2))]


def make(shape: tuple[int, int], block: tuple[int, int], dtype: Any, seed: int = 1) -> tuple[Case, sparsek.Pattern]:
    case = Case(seed, shape, block, 0.4, dtype, np.int32)
    if case.col.size:
        # What is beyond the last row takes part in products of the transpose.
        case.values[case.crow[-2] :, shape[0] - (case.crow.size - 2) * block[0] :] = 0
    return case, sparsek.Pattern(case.crow, case.col, shape, block, dtype=dtype)


def parts(op: str, case: Case, n: int, rng: Any, dtype: Any) -> tuple[Any, Any, Any]:
    """B, and A B in float64 with the sum of the factors' sizes."""
    a = case.dense()
    left = a.T if op.endswith("_t") else a
    right = op.startswith("dds")
    b = rng.standard_normal((n, left.shape[0]) if right else (left.shape[1], n)).astype(dtype)
    wide = b.astype(np.float64)
    return b, wide @ left if right else left @ wide, np.abs(wide) @ np.abs(left) if right else np.abs(left) @ np.abs(wide)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("shape", "block"), SHAPES)
def test_ops(op: str, dtype: Any, shape: tuple[int, int], block: tuple[int, int]) -> None:
    case, pattern = make(shape, block, dtype)
    rng = np.random.default_rng(2)
    for n in (1, 7, 40):
        b, exact, scale = parts(op, case, n, rng, dtype)
        sums = "float64" if dtype is np.float64 else "float32"
        for order_b in ("row", "column"):
            for order_c in ("row", "column"):
                plan = pattern.plan(n, op=op, order_b=order_b, order_c=order_c)
                for given in (b, np.asfortranarray(b), np.repeat(b, 2, 1)[:, ::2]):
                    got = plan(case.values, given)
                    assert_close(got, exact, scale, max(shape), sums)
                    out = np.asfortranarray(np.ones(exact.shape, dtype)) if n % 2 else np.ones(exact.shape, dtype)
                    assert plan(case.values, given, out, beta=2.0) is out
                    assert_close(out, exact + 2, scale + 2, max(shape), sums)


@pytest.mark.parametrize("op", OPS)
def test_bias_vectors_and_batches(op: str) -> None:
    case, pattern = make((64, 96), (16, 16), np.float32)
    rng = np.random.default_rng(3)
    b, exact, _ = parts(op, case, 6, rng, np.float32)
    for axis in ("row", "column"):
        bias = rng.standard_normal(exact.shape[0] if axis == "row" else exact.shape[1]).astype(np.float32)
        plan = pattern.plan(6, op=op, bias=axis, activation="relu")
        added = bias[:, None] if axis == "row" else bias[None, :]
        np.testing.assert_allclose(plan(case.values, b, bias=bias), np.maximum(exact + added, 0), rtol=1e-4, atol=1e-4)
    plan = pattern.plan(6, op=op)
    vector = b[0] if op.startswith("dds") else b[:, 0].copy()
    np.testing.assert_allclose(plan(case.values, vector), exact[0] if op.startswith("dds") else exact[:, 0], rtol=1e-4, atol=1e-4)
    many = np.stack([b, 2 * b, 3 * b])
    np.testing.assert_allclose(plan(case.values, many), np.stack([exact, 2 * exact, 3 * exact]), rtol=1e-4, atol=1e-4)
    with pytest.raises(sparsek.ArgumentError, match="does not have"):
        plan(case.values, b[1:, 1:])
    with pytest.raises(sparsek.ArgumentError, match="up to 6"):
        plan(case.values, np.concatenate([b, b], 0 if op.startswith("dds") else 1))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("shape", "block"), SHAPES)
def test_sdd(dtype: Any, shape: tuple[int, int], block: tuple[int, int]) -> None:
    case, pattern = make(shape, block, dtype)
    rng, (bm, bk) = np.random.default_rng(4), block
    for n in (1, 9):
        x, b = rng.standard_normal((shape[0], n)).astype(dtype), rng.standard_normal((n, shape[1])).astype(dtype)

        def blocks(dense: Any) -> Any:
            padded = np.zeros((-(-shape[0] // bm) * bm, -(-shape[1] // bk) * bk))
            padded[: shape[0], : shape[1]] = dense
            grid = padded.reshape(padded.shape[0] // bm, bm, -1, bk).swapaxes(1, 2)
            return grid[np.repeat(np.arange(case.crow.size - 1), np.diff(case.crow)), case.col]

        exact, scale = blocks(x.astype(np.float64) @ b.astype(np.float64)), blocks(np.abs(x).astype(np.float64) @ np.abs(b))
        sums = "float64" if dtype is np.float64 else "float32"
        for order_x in ("row", "column"):
            for order_b in ("row", "column"):
                plan = pattern.plan(n, op="sdd", order_x=order_x, order_b=order_b)
                others = np.repeat(x, 2, 0)[::2], b[:, ::-1].copy()[:, ::-1]
                for left, right in [(x, b), (np.asfortranarray(x), np.asfortranarray(b)), others]:
                    got = plan.sample(left, right)
                    assert_close(got, exact, scale, n, sums)
                    out = got.copy()
                    assert plan.sample(left, right, out, alpha=2.0, beta=-2.0) is out
                    rounded = "float16" if dtype is np.float16 else sums
                    assert_close(out, np.zeros_like(exact), 4 * scale + 4 * np.abs(exact), n + 2, rounded)
        apart = np.full((case.col.size, bm, bk + 1), 7, dtype)
        if case.col.size:
            plan.sample(x, b, apart[:, :, :bk])
            assert_close(apart[:, :, :bk], exact, scale, n, sums)
            assert np.all(apart[:, :, bk] == 7)


def test_sdd_faults() -> None:
    case, pattern = make((64, 96), (16, 16), np.float32)
    x, b = np.ones((64, 4), np.float32), np.ones((4, 96), np.float32)
    plan = pattern.plan(4, op="sdd")
    faults: list[tuple[Any, str]] = [
        (lambda: plan(case.values, b), "method sample"),
        (lambda: pattern.plan(4).sample(x, b), "op='sdd'"),
        (lambda: plan.sample(x[1:], b), "64 rows"),
        (lambda: plan.sample(x, b[:, 1:]), "96 columns"),
        (lambda: plan.sample(x[:, 1:], b), "3 columns"),
        (lambda: plan.sample(x[None], b), "two dimensions"),
        (lambda: plan.sample(x, b, beta=1.0), "beta needs out"),
        (lambda: pattern.plan(4, op="sd"), "op='sd'"),
        (lambda: pattern.plan(4, order_b="rows"), "order_b='rows'"),
    ]
    for call, says in faults:
        with pytest.raises(sparsek.ArgumentError, match=says):
            call()


def test_gemm_from_both_sides() -> None:
    case, _ = make((64, 96), (16, 16), np.float32)
    a, rng = sparsek.BSR(case.values, case.crow, case.col, case.shape), np.random.default_rng(5)
    dense = case.dense()

    def random(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float32)

    products: list[tuple[Any, Any, bool, Any]] = [
        (a, random(96, 5), False, lambda x, y: dense @ y),
        (a, random(64, 5), True, lambda x, y: dense.T @ y),
        (random(5, 64), a, False, lambda x, y: x @ dense),
        (random(2, 5, 96), a, True, lambda x, y: x @ dense.T),
        (random(96), a, True, lambda x, y: x @ dense.T),
        (a, random(5, 96).T, False, lambda x, y: dense @ y),
        (random(64, 5).T, a, False, lambda x, y: x @ dense),
    ]
    for left, right, transpose, exact in products:
        got = sparsek.bsr_gemm(left, right, transpose=transpose)
        np.testing.assert_allclose(got, exact(left, right), rtol=1e-4, atol=1e-4)
    x, bias = random(5, 96), random(64)
    got = sparsek.bsr_gemm(x, a, transpose=True, bias=bias, activation="relu")
    np.testing.assert_allclose(got, np.maximum(x @ dense.T + bias, 0), rtol=1e-4, atol=1e-4)


def test_sdd_in_the_order_of_the_matrix() -> None:
    sparse = pytest.importorskip("scipy.sparse", reason="skipped: SciPy is not installed")
    rng = np.random.default_rng(6)
    a = sparse.bsr_array((np.ones((4, 8, 8), np.float32), np.array([3, 0, 2, 1]), np.array([0, 3, 4])), shape=(16, 32))
    x, b = rng.standard_normal((16, 5)).astype(np.float32), rng.standard_normal((5, 32)).astype(np.float32)
    got = sparsek.sdd(x, b, a)
    full = x @ b
    for place, (row, col) in enumerate([(0, 3), (0, 0), (0, 2), (1, 1)]):
        np.testing.assert_allclose(got[place], full[8 * row : 8 * row + 8, 8 * col : 8 * col + 8], rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(sparsek.sdd(np.asfortranarray(x), b, a), got)
