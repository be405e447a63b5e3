# SPDX-License-Identifier: Apache-2.0
"""Arrays in a GPU's memory, as far as they are looked at before a product: their protocol stands for the GPU here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from reference import Case

import sparsek
from sparsek._abi import Memory
from sparsek._arrays import View
from sparsek.gemm import _alignment, _places

CASE = Case(1, (32, 32), (8, 8), 0.5, np.float32, np.int32)
NNZB = CASE.col.size


class OnGpu:
    """An array of the host that says that it lies on a GPU, and is used in stream 5."""

    def __init__(self, array: Any, **more: Any) -> None:
        self._array = array
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "strides": array.strides,
            "typestr": array.dtype.str,
            "data": (array.ctypes.data, False),
            "version": 3,
            "stream": 5,
            **more,
        }


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def test_copies_are_made_in_the_stream_of_the_product() -> None:
    pattern = sparsek.Pattern(CASE.crow, CASE.col, CASE.shape, CASE.block, dtype="fp32")
    plan, biased, samples = pattern.plan(4), pattern.plan(4, bias="row"), pattern.plan(4, op="sdd")
    values, b, out = OnGpu(zeros(NNZB, 8, 8)), OnGpu(zeros(32, 4)), OnGpu(zeros(32, 4))
    turned, apart = OnGpu(zeros(4, 32).T), OnGpu(zeros(NNZB, 8, 16)[:, :, ::2])
    calls: list[tuple[str, Callable[[int | None], Any]]] = [
        ("b", lambda stream: plan(values, turned, out, stream=stream)),
        ("values", lambda stream: plan(apart, b, out, stream=stream)),
        ("out", lambda stream: plan(values, b, turned, stream=stream)),
        ("bias", lambda stream: biased(values, b, out, bias=OnGpu(zeros(64)[::2]), stream=stream)),
        ("x", lambda stream: samples.sample(turned, OnGpu(zeros(4, 32)), values, stream=stream)),
        ("b", lambda stream: samples.sample(b, OnGpu(zeros(32, 4).T), values, stream=stream)),
        ("out", lambda stream: samples.sample(b, OnGpu(zeros(4, 32)), apart, stream=stream)),
    ]
    for name, call in calls:
        with pytest.raises(sparsek.ArgumentError, match=rf"{name}, of shape .* has to be copied.* stream \(5\) and not in stream=6"):
            call(6)
        for stream in (5, None):
            with pytest.raises(sparsek.ArgumentError, match=r"CuPy|no package is in use"):
                call(stream)
    # What needs no copy goes on to where it is seen that the plan is not for this GPU.
    with pytest.raises(sparsek.ArgumentError, match="arrays lie on GPU 0"):
        plan(values, b, out, stream=6)


def test_operands_in_two_memories() -> None:
    plan = sparsek.Pattern(CASE.crow, CASE.col, CASE.shape, CASE.block, dtype="fp32").plan(4)
    with pytest.raises(sparsek.ArgumentError, match="values on the host, b on GPU 0, out on GPU 0: copy them"):
        plan(CASE.values, OnGpu(zeros(32, 4)), OnGpu(zeros(32, 4)))


@pytest.mark.parametrize(
    ("product", "alignment"),
    [
        (lambda a, context: sparsek.bsr_gemm(a, zeros(32, 8), context=context), 16),
        (lambda a, context: sparsek.bsr_gemm(a, zeros(32, 10)[:, :8], context=context), 8),
        (lambda a, context: sparsek.bsr_gemm(a, OnGpu(zeros(32, 9)[:, :8]), context=context), 4),
        (lambda a, context: sparsek.bsr_gemm(a, zeros(32, 8), out=zeros(32, 9)[:, :8], context=context), 4),
        (lambda a, context: sparsek.bsr_gemm(zeros(2, 3, 32), a, context=context), 16),
        (lambda a, context: sparsek.sdd(zeros(32, 9)[:, :8], zeros(8, 32), a, context=context), 4),
        (lambda a, context: sparsek.sdd(zeros(32, 8), zeros(8, 34)[:, :32], a, context=context), 8),
        (lambda a, context: sparsek.sdd(zeros(32, 8), zeros(8, 32), a, out=zeros(NNZB, 8, 9)[:, :, :8], context=context), 16),
    ],
)
def test_plans_expect_what_operands_have(product: Any, alignment: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Planned(Exception):
        pass

    class Gpu(sparsek.Context):
        memory = Memory.DEVICE

        def __init__(self) -> None:
            """Nothing: there need be no GPU."""

    def plan(*given: Any) -> Any:
        raise Planned(given[6]["alignment"])

    monkeypatch.setattr("sparsek.gemm._plan", plan)
    with pytest.raises(Planned) as planned:
        product(sparsek.BSR(CASE.values, CASE.crow, CASE.col, CASE.shape), Gpu())
    assert planned.value.args == (alignment,)


def test_masked_elements() -> None:
    a = sparsek.BSR(CASE.values, CASE.crow, CASE.col, CASE.shape)
    b = np.ma.masked_array(zeros(32, 4), zeros(32, 4) == 0)
    for given in (b, OnGpu(zeros(32, 4), mask=OnGpu(zeros(32, 4)))):
        with pytest.raises(sparsek.ArgumentError, match=r"masked elements.*\.filled\(0\)"):
            sparsek.bsr_gemm(a, given)
    np.testing.assert_array_equal(sparsek.bsr_gemm(a, b.filled(1)), sparsek.bsr_gemm(a, zeros(32, 4) + 1))


@pytest.mark.parametrize(
    ("address", "shape", "strides", "alignment"),
    [
        (4096, (32, 8), (8, 1), 16),
        (4096 + 4, (32, 8), (8, 1), 4),
        (4096, (32, 7), (7, 1), 16),  # without gaps the plan knows the distance of rows
        (4096, (32, 8), (10, 1), 8),
        (4096, (32, 8), (9, 1), 4),
        (4096, (32, 8), (12, 1), 16),
        (4096, (1, 8), (9, 1), 16),
        (4096, (2, 31, 2), (62, 2, 1), 8),
        (4096, (2, 31, 2), (64, 2, 1), 16),
        (4096, (1, 31, 2), (62, 2, 1), 16),
        (4096, (3, 2, 32, 8), (259, 1024, 8, 1), 4),
        (4096, (3, 2, 32, 8), (1024, 258, 8, 1), 8),
        (4096 + 4, (32, 8), (1, 32), 16),  # copied
        (4096, (2, 31, 2), (62, 1, 31), 8),  # copied
        (4096 + 8, (32,), (1,), 8),
    ],
)
def test_what_a_gpus_plan_may_expect(address: int, shape: tuple[int, ...], strides: tuple[int, ...], alignment: int) -> None:
    """The alignment of each matrix and of rows with gaps, for plans that are made for rows without."""
    found = View(None, "torch", address, "float32", shape, strides, memory=Memory.DEVICE)
    assert _alignment(_places(found)) == alignment
    assert _alignment(4096, _places(found), 512) == alignment
    wide = View(None, "torch", address, "float64", shape, strides, memory=Memory.DEVICE)
    host = View(None, "numpy", address, "float32", shape, strides)
    assert _alignment(_places(host)) == _alignment(_places(found) & ~address)
    bits = View(None, "torch", address, "uint16", shape, strides, memory=Memory.DEVICE)
    assert _alignment(_places(bits)) <= alignment <= _alignment(_places(wide))
