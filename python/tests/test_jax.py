# SPDX-License-Identifier: Apache-2.0
"""Products within JAX programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from reference import Case

import sparsek

jax = pytest.importorskip("jax", reason="skipped: JAX is not installed")
jnp = jax.numpy
bsr_matmul = pytest.importorskip("sparsek.jax").bsr_matmul
sdd = pytest.importorskip("sparsek.jax").sdd


@pytest.fixture(autouse=True, params=["cpu", "gpu"])
def platform(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where the products of a test are computed, in fp32 where JAX's own would take TF32."""
    try:
        device = jax.devices(request.param)[0]
    except RuntimeError:
        pytest.skip(f"skipped: JAX has no {request.param}")
    with jax.default_device(device), jax.default_matmul_precision("highest"):
        yield request.param


CASE = Case(1, (64, 96), (8, 16), 0.4, np.float32, np.int32)
B = np.random.default_rng(2).standard_normal((96, 7)).astype(np.float32)
EXACT = CASE.dense() @ B


def operands(case: Case = CASE, kind: Any = None) -> tuple[Any, Any, Any]:
    return jnp.asarray(case.values, kind), jnp.asarray(case.crow), jnp.asarray(case.col)


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
def test_products(kind: str) -> None:
    got = bsr_matmul(*operands(kind=kind), jnp.asarray(B, kind))
    assert got.dtype == kind
    np.testing.assert_allclose(np.asarray(got, np.float32), EXACT, rtol=0.02, atol=1e-4 if kind == "float32" else 0.1)


def test_types_of_64_bits(platform: str) -> None:
    """Without x64, JAX has no float64 and no int64: what does not fit is not made to."""
    case = Case(1, (64, 96), (8, 16), 0.4, np.float64, np.int64)
    b = np.random.default_rng(2).standard_normal((96, 7))
    given = case.values, case.crow, case.col
    exact = case.dense() @ b
    assert bsr_matmul(*given, b).dtype == "float32"
    far = case.col.copy()
    far[0] += 2**32
    with pytest.raises(sparsek.ArgumentError, match=r"col of int64 does not fit into int32.*jax_enable_x64"):
        bsr_matmul(case.values, case.crow, far, b)
    within = jax.jit(lambda values, b: bsr_matmul(values, case.crow, case.col, b))(case.values, b)
    np.testing.assert_allclose(within, exact, rtol=1e-4, atol=1e-4)
    with jax.enable_x64(True):
        got = bsr_matmul(*given, b)
        assert got.dtype == "float64"
        np.testing.assert_allclose(got, exact, rtol=1e-12, atol=1e-12)
        wrong_index(platform, case.values, case.crow, far, b, str(far[0]))


def test_within_jit() -> None:
    layer = jax.jit(lambda values, crow, col, b: jnp.tanh(bsr_matmul(values, crow, col, b * 2)).sum(0))
    for case in (CASE, Case(3, (64, 96), (8, 16), 0.4, np.float32, np.int32), CASE):
        np.testing.assert_allclose(layer(*operands(case), B), np.tanh(2 * case.dense() @ B).sum(0), rtol=1e-4, atol=1e-4)


def test_one_program_for_all_patterns_of_a_size() -> None:
    program = jax.jit(lambda *operands: bsr_matmul(*operands))  # with a cache of its own
    crow, values = np.array([0, 1, 2], np.int32), np.ones((2, 8, 8), np.float32)
    b = np.random.default_rng(7).standard_normal((24, 3)).astype(np.float32)
    for col in ([0, 1], [2, 0], [0, 1], [1, 1]):
        exact = np.repeat(b.reshape(3, 8, 3).sum(1)[col], 8, 0)
        np.testing.assert_allclose(program(values, crow, np.array(col, np.int32), b), exact, rtol=1e-4, atol=1e-4)
    assert program._cache_size() == 1


def test_batches_and_vmap() -> None:
    b = np.random.default_rng(4).standard_normal((3, 96, 5)).astype(np.float32)
    exact = CASE.dense() @ b.astype(np.float64)
    np.testing.assert_allclose(bsr_matmul(*operands(), b), exact, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(jax.vmap(lambda x: bsr_matmul(*operands(), x))(b), exact, rtol=1e-4, atol=1e-4)
    many = jnp.stack([operands()[0] * factor for factor in (1.0, 2.0, 3.0)])
    got = jax.vmap(lambda values: bsr_matmul(values, *operands()[1:], B))(many)
    np.testing.assert_allclose(got, np.stack([EXACT, 2 * EXACT, 3 * EXACT]), rtol=1e-4, atol=1e-4)


def test_last_rows() -> None:
    case = Case(5, (61, 40), (8, 8), 0.5, np.float32, np.int32)
    b = np.ones((40, 3), np.float32)
    np.testing.assert_allclose(bsr_matmul(*operands(case), b, rows=61), case.dense() @ b, rtol=1e-4, atol=1e-4)
    with pytest.raises(sparsek.ArgumentError, match="rows=70"):
        bsr_matmul(*operands(case), b, rows=70)


def wrong_index(platform: str, values: Any, crow: Any, col: Any, b: Any, message: str) -> None:
    """An error on the CPU; a GPU does not wait to see it, and multiplies a matrix without blocks."""
    if platform == "gpu":
        assert not np.asarray(bsr_matmul(values, crow, col, b)).any()
        return
    with pytest.raises(Exception, match=message):
        jax.block_until_ready(bsr_matmul(values, crow, col, b))


def test_faults(platform: str) -> None:
    values, crow, col = operands()
    with pytest.raises(sparsek.ArgumentError, match="float16"):
        bsr_matmul(values, crow, col, jnp.asarray(B, "float16"))
    with pytest.raises(sparsek.ArgumentError, match="blocks of values"):
        bsr_matmul(values[1:], crow, col, B)
    wrong_index(platform, values, crow, col + 6, B, r"IndexFault: .*col_idx")
    np.testing.assert_allclose(bsr_matmul(values, crow, col, B), EXACT, rtol=1e-4, atol=1e-4)


def test_shard_map(platform: str) -> None:
    """Columns of B on two devices."""
    devices = jax.devices(platform)
    if len(devices) < 2:
        pytest.skip(f"skipped: JAX has one {platform}")
    mesh = jax.sharding.Mesh(np.array(devices[:2]), ("n",))
    spec = jax.sharding.PartitionSpec
    b = np.random.default_rng(6).standard_normal((96, 8)).astype(np.float32)
    product = jax.shard_map(
        bsr_matmul, mesh=mesh, in_specs=(spec(), spec(), spec(), spec(None, "n")), out_specs=spec(None, "n"), check_vma=False
    )
    np.testing.assert_allclose(jax.jit(product)(*operands(), b), CASE.dense() @ b, rtol=1e-4, atol=1e-4)


def test_gradients() -> None:
    """Against those of the dense product, by JAX itself, and to the second order."""
    case = Case(8, (32, 40), (8, 8), 0.5, np.float32, np.int32)
    values, crow, col = operands(case)
    rows, cols = np.repeat(np.arange(4), np.diff(case.crow)), case.col
    b = jnp.asarray(np.random.default_rng(9).standard_normal((2, 40, 3)), "float32")

    def dense(values: Any) -> Any:
        return jnp.zeros((4, 5, 8, 8)).at[rows, cols].set(values).swapaxes(1, 2).reshape(32, 40)

    def ours(values: Any, b: Any) -> Any:
        return jnp.sin(bsr_matmul(values, crow, col, b)).sum()

    def theirs(values: Any, b: Any) -> Any:
        return jnp.sin(dense(values) @ b).sum()

    for got, expected in zip(jax.jit(jax.grad(ours, (0, 1)))(values, b), jax.grad(theirs, (0, 1))(values, b), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3)

    def twice(product: Any) -> Any:
        return jax.grad(lambda values, b: sum((g**2).sum() for g in jax.grad(product, (0, 1))(values, b)), (0, 1))(values, b)

    for got, expected in zip(twice(ours), twice(theirs), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-2, atol=1e-2)


def test_sdd() -> None:
    _, crow, col = operands()
    rng = np.random.default_rng(10)
    x, y = rng.standard_normal((64, 5)).astype(np.float32), rng.standard_normal((96, 5)).astype(np.float32)
    rows = np.repeat(np.arange(8), np.diff(CASE.crow))

    def theirs(x: Any, y: Any) -> Any:
        return (x @ y.T).reshape(8, 8, 6, 16).swapaxes(1, 2)[rows, CASE.col]

    def ours(x: Any, y: Any) -> Any:
        return sdd(x, y, crow, col, (8, 16))

    np.testing.assert_allclose(ours(x, y), theirs(x, y), rtol=1e-4, atol=1e-4)
    weights = rng.standard_normal(CASE.values.shape).astype(np.float32)
    for got, expected in zip(
        jax.grad(lambda x, y: (ours(x, y) * weights).sum(), (0, 1))(x, y),
        jax.grad(lambda x, y: (theirs(x, y) * weights).sum(), (0, 1))(jnp.asarray(x), jnp.asarray(y)),
        strict=True,
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(sparsek.ArgumentError, match="of one type"):
        sdd(x, y[:, 1:], crow, col, (8, 16))
