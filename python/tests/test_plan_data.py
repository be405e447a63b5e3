# SPDX-License-Identifier: Apache-2.0
"""Plans in memory of the caller's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reference import Case

import sparsek
from sparsek._plan_data import Layout, Product
from sparsek.dtypes import dtype_of

CASE = Case(1, (64, 96), (8, 16), 0.4, np.float32, np.int32)


def layout(op: str, n: int, **others: Any) -> Layout:
    product = Product(
        op=op, dtype=dtype_of("fp32"), index="int32", shape=(64, 96), block=(8, 16), nnzb=CASE.col.size, n=n, order_b="row", alignment=4
    )
    return Layout(sparsek.Context("cpu"), Product(**{**vars(product), **others}))


def run(made: Layout, crow: np.ndarray[Any, Any], **operands: Any) -> None:
    memory = np.empty(made.bytes + made.alignment, np.uint8)
    plan = -(-memory.ctypes.data // made.alignment) * made.alignment
    made.write(crow.ctypes.data, CASE.col.ctypes.data, plan, 0)
    numbers = {"values": 0, "x": 0, "batch": 0, "stride_b": 0, "stride_c": 0, "workspace": 0, "stream": 0}
    for name, given in operands.items():
        numbers[name] = given.ctypes.data if isinstance(given, np.ndarray) else given
    made.run(plan, **numbers)


@pytest.mark.parametrize("op", ["dsd", "dsd_t"])
def test_products(op: str) -> None:
    a = CASE.dense() if op == "dsd" else CASE.dense().T
    b = np.random.default_rng(2).standard_normal((3, a.shape[1], 7)).astype(np.float32)
    c = np.full((3, a.shape[0], 7), np.nan, np.float32)
    run(layout(op, 7), CASE.crow, values=CASE.values, b=b, c=c, batch=3, stride_b=b[0].size, stride_c=c[0].size)
    np.testing.assert_allclose(c, a @ b.astype(np.float64), rtol=1e-4, atol=1e-4)


def test_sdd() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((64, 5)).astype(np.float32), rng.standard_normal((96, 5)).astype(np.float32)
    values = np.full(CASE.values.shape, np.nan, np.float32)
    run(layout("sdd", 5, order_b="column"), CASE.crow, x=x, b=y, c=values)
    rows = np.repeat(np.arange(8), np.diff(CASE.crow))
    np.testing.assert_allclose(values, (x @ y.T).reshape(8, 8, 6, 16).swapaxes(1, 2)[rows, CASE.col], rtol=1e-4, atol=1e-4)


def test_faults() -> None:
    wrong = CASE.crow.copy()
    wrong[1] = -1
    with pytest.raises(sparsek.IndexFault):
        run(layout("dsd", 7), wrong, values=CASE.values, b=np.empty((96, 7), np.float32), c=np.empty((64, 7), np.float32))
    with pytest.raises(sparsek.ArgumentError):
        layout("dsd", -1)
