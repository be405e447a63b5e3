# SPDX-License-Identifier: Apache-2.0
"""Products by Pattern and Plan, against float64."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from reference import Case, activate, assert_close

import sparsek

try:
    import ml_dtypes

    BF16: Any = ml_dtypes.bfloat16
except ImportError:
    BF16 = None

DTYPES = [np.float16, np.float32, np.float64] + ([BF16] if BF16 is not None else [])


def pattern_of(case: Case, **options: Any) -> sparsek.Pattern:
    return sparsek.Pattern(case.crow, case.col, case.shape, case.block, dtype=options.pop("dtype", case.values.dtype), **options)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", [np.int16, np.int32, np.int64])
@pytest.mark.parametrize(
    ("shape", "block", "n"),
    [((64, 96), (16, 16), 40), ((70, 45), (16, 8), 7), ((33, 29), (1, 1), 1), ((128, 128), (64, 32), 130), ((5, 7), (3, 2), 3)],
)
def test_products(dtype: Any, index: Any, shape: tuple[int, int], block: tuple[int, int], n: int) -> None:
    case = Case(1, shape, block, 0.4, dtype, index)
    b = np.random.default_rng(2).standard_normal((shape[1], n)).astype(dtype)
    c = pattern_of(case).plan(n)(case.values, b)
    a, wide = case.dense(), b.astype(np.float64)
    assert c.dtype == b.dtype
    assert_close(c, a @ wide, np.abs(a) @ np.abs(wide), shape[1], "float64" if dtype is np.float64 else "float32")


def test_bits_of_bf16() -> None:
    """Where ml_dtypes is not in use, uint16 arrays hold bf16."""
    case = Case(1, (32, 48), (8, 8), 0.5, np.float32, np.int32)

    def bits(x: Any) -> Any:
        return (np.ascontiguousarray(x, np.float32).view(np.uint32) >> 16).astype(np.uint16)

    def number(x: Any) -> Any:
        return (x.astype(np.uint32) << 16).view(np.float32)

    b = np.random.default_rng(2).standard_normal((48, 5)).astype(np.float32)
    c = pattern_of(case, dtype="bf16").plan(5)(bits(case.values), bits(b))
    assert c.dtype == np.uint16
    case.values = number(bits(case.values))
    wide = number(bits(b)).astype(np.float64)
    exact = case.dense() @ wide
    assert np.all(np.abs(number(c) - exact) <= 2.0**-8 * np.abs(exact) + 1e-4)
    with pytest.raises(sparsek.DtypeError, match="dtype='bf16'"):
        pattern_of(case).plan(5)(case.values, bits(b))


@pytest.mark.parametrize("activation", [None, "relu", "gelu", "silu"])
@pytest.mark.parametrize("bias", [None, "row", "column"])
def test_epilogue(activation: str | None, bias: str | None) -> None:
    case = Case(3, (40, 24), (8, 8), 0.5, np.float16, np.int32)
    rng = np.random.default_rng(4)
    b, c = rng.standard_normal((24, 9)).astype(np.float16), rng.standard_normal((40, 9)).astype(np.float32)
    given = None if bias is None else rng.standard_normal(40 if bias == "row" else 9).astype(np.float32)
    added = 0.0 if given is None else given[:, None] if bias == "row" else given[None, :]
    plan = pattern_of(case).plan(9, out_dtype="fp32", bias=bias, activation=activation)
    before = c.copy()
    got = plan(case.values, b, c, bias=given, alpha=0.5, beta=2.0)
    assert got is c
    a, wide = case.dense(), b.astype(np.float64)
    exact = activate(activation, 0.5 * (a @ wide) + 2.0 * before.astype(np.float64) + added)
    scale = np.abs(a) @ np.abs(wide) + 2 * np.abs(before) + np.abs(added)
    assert_close(c, exact, scale, 24 + 8)


def strided(b: Any) -> dict[str, Any]:
    """The elements of b in memory of other shapes."""
    k, n = b.shape
    padded = np.full((k + 2, n + 5), np.nan, b.dtype)
    padded[1:-1, 3:-2] = b
    every_second = np.full((k, 2 * n), np.nan, b.dtype)
    every_second[:, ::2] = b
    odd = np.zeros(b.nbytes + 1, np.uint8)[1:].view(b.dtype).reshape(k, n)
    odd[...] = b
    read_only = b.copy()
    read_only.flags.writeable = False
    return {
        "padded": padded[1:-1, 3:-2],
        "column-major": np.asfortranarray(b),
        "reversed": b[::-1].copy()[::-1],
        "reversed columns": b[:, ::-1].copy()[:, ::-1],
        "every second": every_second[:, ::2],
        "misaligned": odd,
        "read-only": read_only,
    }


@pytest.mark.parametrize("which", list(strided(np.zeros((2, 2), np.float32))))
@pytest.mark.parametrize("n", [1, 6])
def test_any_strides(which: str, n: int) -> None:
    case = Case(5, (24, 40), (8, 8), 0.5, np.float32, np.int64)
    plain = np.random.default_rng(6).standard_normal((40, n)).astype(np.float32)
    plan = pattern_of(case).plan(n)
    expected = plan(case.values, plain)
    # A vector may be summed up in another order where its elements are apart.
    np.testing.assert_allclose(plan(case.values, strided(plain)[which]), expected, rtol=1e-5, atol=1e-5)
    if which == "read-only":
        with pytest.raises(sparsek.ArgumentError, match="written"):
            plan(case.values, plain, strided(np.zeros((24, n), np.float32))[which])
        return
    base = strided(np.zeros((24, n), np.float32))[which]
    assert plan(case.values, plain, base) is base
    np.testing.assert_allclose(base, expected, rtol=1e-5, atol=1e-5)
    plan(case.values, plain, base, beta=1.0)
    np.testing.assert_allclose(base, 2 * expected, rtol=1e-5, atol=1e-6)


def test_only_columns_of_c_are_written() -> None:
    case = Case(5, (24, 40), (8, 8), 0.5, np.float32, np.int64)
    b = np.random.default_rng(6).standard_normal((40, 6)).astype(np.float32)
    around = np.full((26, 9), 7, np.float32)
    plan = pattern_of(case).plan(6)
    plan(case.values, b, around[1:-1, 2:8])
    np.testing.assert_array_equal(around[1:-1, 2:8], plan(case.values, b))
    around[1:-1, 2:8] = 7
    assert np.all(around == 7)


def test_repeated_rows() -> None:
    case = Case(5, (24, 40), (8, 8), 0.5, np.float32, np.int32)
    row = np.random.default_rng(6).standard_normal((1, 4)).astype(np.float32)
    plan = pattern_of(case).plan(4)
    repeated = np.broadcast_to(row, (40, 4))
    np.testing.assert_array_equal(plan(case.values, repeated), plan(case.values, repeated.copy()))


def test_fewer_columns_vectors_and_batches() -> None:
    case = Case(7, (24, 40), (8, 4), 0.5, np.float32, np.int32)
    rng = np.random.default_rng(8)
    plan = pattern_of(case).plan(6)
    for shape in [(40,), (40, 1), (40, 5), (3, 40, 6), (2, 3, 40, 2), (0, 40, 2), (1, 40, 6)]:
        b = rng.standard_normal(shape).astype(np.float32)
        c = plan(case.values, b)
        exact = case.dense() @ b.astype(np.float64)
        assert c.shape == exact.shape
        np.testing.assert_allclose(c, exact, rtol=1e-5, atol=1e-5)
    wide = rng.standard_normal((4, 2, 40, 12)).astype(np.float32)
    for b in (wide[:, :, :, 3:9], wide[::2, 0, :, :6], wide.transpose(1, 0, 2, 3)[..., :4], wide[:, ::-1, :, :6]):
        out = np.zeros((*b.shape[:-2], 24, b.shape[-1]), np.float32)
        np.testing.assert_allclose(plan(case.values, b, out), case.dense() @ b.astype(np.float64), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(plan(case.values, b), out)


def test_batches_that_repeat() -> None:
    """A step of 0 between some of the matrices is one like others: none of these may be read beyond its end."""
    case = Case(7, (24, 40), (8, 4), 0.5, np.float32, np.int32)
    plan = pattern_of(case).plan(3)
    y = np.random.default_rng(9).standard_normal((4, 40, 3)).astype(np.float32)
    for b in [
        np.broadcast_to(y[:2, None], (2, 3, 40, 3)),  # the inner dimension
        np.broadcast_to(y[None, :3], (2, 3, 40, 3)),  # the outer one
        np.broadcast_to(y.reshape(2, 1, 2, 40, 3), (2, 3, 2, 40, 3)),  # one in the middle
        np.broadcast_to(y[0], (2, 3, 40, 3)),
    ]:
        np.testing.assert_array_equal(plan(case.values, b), plan(case.values, b.copy()))


def test_out_does_not_repeat() -> None:
    case = Case(7, (24, 40), (8, 4), 0.5, np.float32, np.int32)
    plan = pattern_of(case).plan(3)
    b, memory = np.ones((2, 3, 40, 3), np.float32), np.full((8, 24, 3), 7, np.float32)
    for strides in [(288, 0, 12, 4), (0, 288, 12, 4), (0, 0, 12, 4), (864, 288, 0, 4), (864, 288, 12, 0)]:
        out = np.lib.stride_tricks.as_strided(memory, (2, 3, 24, 3), strides)
        with pytest.raises(sparsek.ArgumentError, match="share their memory"):
            plan(case.values, b, out)
    assert np.all(memory == 7)


def test_absent_blocks_read_nothing() -> None:
    case = Case(9, (32, 64), (8, 8), 0.3, np.float32, np.int32)
    read = np.zeros(8, bool)
    read[case.col] = True
    assert not read.all()
    b = np.random.default_rng(10).standard_normal((64, 5)).astype(np.float32)
    b[np.repeat(~read, 8)] = np.nan
    assert np.isfinite(pattern_of(case).plan(5)(case.values, b)).all()


def test_empty() -> None:
    for shape, block in [((0, 8), (4, 4)), ((8, 0), (4, 4)), ((8, 8), (4, 4))]:
        case = Case(11, shape, block, 0.0, np.float32, np.int32)
        plan = pattern_of(case).plan(3, bias="row", activation="relu")
        bias = np.arange(-4, shape[0] - 4, dtype=np.float32)
        c = plan(case.values, np.ones((shape[1], 3), np.float32), bias=bias)
        np.testing.assert_array_equal(c, np.repeat(np.maximum(bias, 0)[:, None], 3, 1))


def test_copies_to_another_memory() -> None:
    """What products of host arrays on a GPU do, by way of the CPU's own buffers."""
    from sparsek._staging import Staging

    case = Case(12, (24, 40), (8, 8), 0.5, np.float32, np.int32)
    rng = np.random.default_rng(13)
    plan = pattern_of(case).plan(6, bias="column")
    bias = rng.standard_normal(6).astype(np.float32)
    for b, out in [
        (rng.standard_normal((40, 6)).astype(np.float32), None),
        (rng.standard_normal((40, 9)).astype(np.float32)[:, 2:8], np.full((24, 8), 3, np.float32)),
        (rng.standard_normal((2, 40, 6)).astype(np.float32), None),
    ]:
        target = None if out is None else out[:, 1:7]
        expected = plan(case.values, b, None if target is None else target.copy(), bias=bias, beta=0 if out is None else 1)
        Staging.force = True
        try:
            got = plan(case.values, b, target, bias=bias, beta=0 if out is None else 1)
        finally:
            Staging.force = False
        np.testing.assert_array_equal(got, expected)
        if out is not None:
            assert np.all(out[:, [0, 7]] == 3)


def test_copies_to_another_memory_of_what_is_copied_before() -> None:
    """Operands with strides that do not go are copied on the host, and those copies to the other memory."""
    from sparsek._staging import Staging

    case = Case(12, (24, 40), (8, 8), 0.5, np.float32, np.int32)
    rng = np.random.default_rng(13)
    plan = pattern_of(case).plan(6, bias="column")
    values, b = np.repeat(case.values, 2, 2)[:, :, ::2], np.asfortranarray(rng.standard_normal((40, 6)).astype(np.float32))
    bias = rng.standard_normal(12).astype(np.float32)[::2]
    expected = plan(case.values, b.copy("C"), bias=bias.copy())
    Staging.force = True
    try:
        for given in [
            (values, b.copy("C"), bias.copy()),
            (case.values, b, bias.copy()),
            (case.values, b.copy("C"), bias),
            (values, b, bias),
        ]:
            np.testing.assert_array_equal(plan(given[0], given[1], bias=given[2]), expected)
    finally:
        Staging.force = False


def test_copies_are_the_object_itself() -> None:
    """A second object of the same handle would end it while the first is in use."""
    case = Case(12, (24, 40), (8, 8), 0.5, np.float32, np.int32)
    context = sparsek.Context("cpu")
    pattern = sparsek.Pattern(case.crow, case.col, case.shape, case.block, dtype="fp32", context=context)
    for given in (context, pattern, pattern.plan(3)):
        assert copy.copy(given) is given
        assert copy.deepcopy([given])[0] is given
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pytest.raises(TypeError, match=f"a {type(given).__name__} belongs to this process"):
                pickle.dumps(given, protocol)


def test_plans_say_what_they_are() -> None:
    case = Case(14, (64, 64), (16, 16), 0.5, np.float32, np.int32)
    plan = pattern_of(case).plan(8)
    assert plan.info.kernel.startswith("cpu_")
    assert plan.info.chosen_by == "model"
    assert plan.info.reason
    assert plan.info.unit_roundoff == 2.0**-24
    named = pattern_of(case).plan(8, kernel="cpu_generic")
    assert named.info.kernel == "cpu_generic"
    assert named.info.chosen_by == "name"
    assert "cpu_generic" in repr(named)


def test_tuning() -> None:
    case = Case(15, (64, 64), (16, 16), 0.5, np.float32, np.int32)
    b = np.random.default_rng(16).standard_normal((64, 8)).astype(np.float32)
    pattern = pattern_of(case)
    with pytest.raises(sparsek.ArgumentError, match="values"):
        pattern.plan(8, tune=0.01)
    tuned = pattern.plan(8, tune=0.01, values=case.values)
    assert tuned.info.chosen_by == "tuning"
    assert tuned.info.measured_seconds > 0
    np.testing.assert_allclose(tuned(case.values, b), case.dense() @ b, rtol=1e-4, atol=1e-4)


def test_run_takes_addresses() -> None:
    case = Case(17, (24, 40), (8, 8), 0.5, np.float32, np.int32)
    b = np.random.default_rng(18).standard_normal((40, 6)).astype(np.float32)
    c = np.empty((24, 6), np.float32)
    plan = pattern_of(case).plan(6)
    plan.run(values=case.values.ctypes.data, b=b.ctypes.data, c=c.ctypes.data)
    np.testing.assert_array_equal(c, plan(case.values, b))
    with pytest.raises(sparsek.ArgumentError, match="values = 0"):
        plan.run(values=0, b=b.ctypes.data, c=c.ctypes.data)
