# SPDX-License-Identifier: Apache-2.0
"""Random matrices, and their products in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Case:
    """A random block-sparse matrix: values (nnzb, bm, bk), crow, col, shape, block."""

    def __init__(self, seed: int, shape: tuple[int, int], block: tuple[int, int], density: float, dtype: Any, index: Any) -> None:
        rng = np.random.default_rng(seed)
        (rows, cols), (bm, bk) = shape, block
        mask = rng.random((-(-rows // bm), -(-cols // bk))) < density
        self.shape, self.block = shape, block
        self.crow = np.concatenate([[0], np.cumsum(mask.sum(1))]).astype(index)
        self.col = np.nonzero(mask)[1].astype(index)
        values = rng.standard_normal((self.col.size, bm, bk))
        for place, column in enumerate(self.col):
            values[place, :, max(0, cols - int(column) * bk) :] = 0  # beyond A's last column
        self.values = values.astype(dtype)

    def dense(self) -> Array:
        """A, (M, K), in float64."""
        (rows, cols), (bm, bk) = self.shape, self.block
        full = np.zeros((-(-rows // bm) * bm, -(-cols // bk) * bk))
        for row in range(self.crow.size - 1):
            for place in range(int(self.crow[row]), int(self.crow[row + 1])):
                at = int(self.col[place]) * bk
                full[row * bm : (row + 1) * bm, at : at + bk] = self.values[place].astype(np.float64)
        return full[:rows, :cols]


UNIT = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}


def assert_close(c: Any, exact: Array, scale: Array, terms: int, sums: str = "float32") -> None:
    """|c - exact| is within the error of sums of `terms` products, of the size `scale`, and of one rounding to c's type."""
    c = np.asarray(c)
    # float16 may be subnormal.
    bound = (terms + 4) * UNIT[sums] * scale + UNIT[c.dtype.name] * np.abs(exact) + (2.0**-25 if c.dtype == np.float16 else 1e-37)
    error = np.abs(c.astype(np.float64) - exact)
    assert c.shape == exact.shape
    assert np.all(error <= bound), f"off by {np.max(error / bound):.3g} bounds"


def activate(name: str | None, x: Array) -> Array:
    """The activation of that name, in float64."""
    if name == "relu":
        return np.maximum(x, 0)
    if name == "gelu":
        return np.asarray(x / 2 * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2))))
    if name == "silu":
        return np.asarray(x / (1 + np.exp(-x)))
    return x
