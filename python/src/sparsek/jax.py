# SPDX-License-Identifier: Apache-2.0
"""Products within JAX programs, on the CPU: inside jit, vmap and shard_map, without copies.

The sparse matrix is data as all else: its index is an operand, and may differ from call to call. What is kept for it is
looked up by its bytes, as sparsek.bsr_gemm does, so that nothing of a process is baked into a compiled program.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import jax
import numpy as np

from . import _xla
from ._arrays import view
from .cache import cache
from .context import default_context
from .dtypes import dtype_of
from .errors import ArgumentError

__all__ = ["bsr_matmul"]

_TARGET = "sparsek_bsr_matmul"


def _product(operands: list[Any], results: list[Any]) -> None:
    """C = A B, of arrays in XLA's memory."""
    (values, value_type), (crow, _), (col, _), (b, _) = operands
    ((c, _),) = results
    (_, bm, bk), (rows, n), cols = values.shape, c.shape[-2:], b.shape[-2]
    entry = cache.entry(view(crow), view(col), (rows, cols), (bm, bk), dtype_of(value_type), False, default_context())
    plan = entry.plan((n, "xla"), lambda: entry.pattern.plan(n))
    plan(values, b, c)


_handler: Any = None
_registering = threading.Lock()


def _register() -> None:
    global _handler
    with _registering:
        if _handler is None:
            made = _xla.handler(_product)
            address = ctypes.cast(made, ctypes.c_void_p).value
            jax.ffi.register_ffi_target(_TARGET, jax.ffi.pycapsule(address), platform="cpu")
            _handler = made  # called by XLA as long as the process lives


def bsr_matmul(values: Any, crow: Any, col: Any, b: Any, *, rows: int | None = None) -> Any:
    """C = A B, with A block-sparse: (M, N), or (..., M, N) where b has more dimensions.

    values: (nnzb, bm, bk), of bfloat16, float16, float32 or float64. crow: (block rows + 1). col: (nnzb), increasing
    within a block row. Both are of int32 or int64, and data: a wrong index is an error of the program when it runs.
    b: (..., K, N), of the values' type. rows: M, where it is no multiple of bm.
    """
    _register()
    values, crow, col, b = (jax.numpy.asarray(given) for given in (values, crow, col, b))
    if values.ndim != 3 or b.ndim < 2 or crow.ndim != 1 or col.ndim != 1 or crow.dtype != col.dtype:
        raise ArgumentError(
            f"values {values.shape}, crow {crow.shape}, col {col.shape} and b {b.shape} are not (nnzb, bm, bk), (block rows + 1), "
            "(nnzb) and (..., K, N), crow and col of one type"
        )
    if values.dtype != b.dtype:
        raise ArgumentError(f"values are of {values.dtype} and b of {b.dtype}")
    dtype_of(np.dtype(values.dtype))
    if values.shape[0] != col.shape[0]:
        raise ArgumentError(f"there are {values.shape[0]} blocks of values, and {col.shape[0]} in col")
    most = (crow.shape[0] - 1) * values.shape[1]
    m = most if rows is None else rows
    if not most - values.shape[1] < m <= most and m != most:
        raise ArgumentError(f"rows={rows} is not in the last of {crow.shape[0] - 1} block rows of {values.shape[1]}")
    result = jax.ShapeDtypeStruct((*b.shape[:-2], m, b.shape[-1]), b.dtype)
    return jax.ffi.ffi_call(_TARGET, result, vmap_method="sequential")(values, crow, col, b)
