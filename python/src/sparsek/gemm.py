# SPDX-License-Identifier: Apache-2.0
"""One call that takes what people have: sparse matrices and dense arrays of any package."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from . import dtypes
from ._abi import Dtype, Memory, Status
from ._arrays import View, contiguous, is_torch, view
from .bsr import BSR, is_scipy, of_scipy
from .cache import cache
from .context import Context, default_context
from .dtypes import dtype_of, parse_dtype
from .errors import ArgumentError, DtypeError, IndexFault
from .pattern import Pattern
from .plan import Plan

__all__ = ["bsr_gemm"]


def _of_torch(matrix: Any) -> BSR:
    torch = sys.modules["torch"]
    if matrix.layout == torch.sparse_bsr:
        values = matrix.values()
    elif matrix.layout == torch.sparse_csr:
        values = matrix.values().reshape(-1, 1, 1)
    else:
        raise ArgumentError(f"a tensor of layout {matrix.layout} is no block-sparse matrix: call to_sparse_bsr or to_sparse_csr")
    if matrix.dim() != 2 or values.dim() != 3:
        raise ArgumentError("a matrix has two dimensions: batches of sparse ones are not served")
    return BSR(values, matrix.crow_indices(), matrix.col_indices(), tuple(matrix.shape))


def as_bsr(matrix: Any) -> tuple[BSR, bool]:
    """The matrix, and whether its columns may be unsorted. Raises ArgumentError."""
    if isinstance(matrix, BSR):
        return matrix, False
    if is_scipy(matrix):
        return of_scipy(matrix), True
    if is_torch(matrix):
        return _of_torch(matrix), False
    if isinstance(matrix, tuple) and len(matrix) == 4:
        return BSR(*matrix), False
    raise ArgumentError(
        f"{type(matrix).__name__} is no block-sparse matrix: give a sparsek.BSR, a tuple (values, crow, col, shape), "
        "a sparse matrix of SciPy, or a torch tensor of BSR or CSR"
    )


def _bias_axis(bias: Any, axis: str | None, rows: int, n: int) -> str | None:
    if bias is None:
        return None
    if axis is not None:
        return axis
    shape = tuple(bias.shape) if hasattr(bias, "shape") else np.shape(bias)
    if shape in ((n,), (1, n)):
        return "column"
    if shape == (rows, 1):
        return "row"
    raise ArgumentError(f"bias of shape {shape} is neither (N,) = ({n},) nor (M, 1) = ({rows}, 1): say bias_axis='row' for (M,)")


def bsr_gemm(
    a: Any,
    b: Any,
    *,
    out: Any = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    bias: Any = None,
    bias_axis: str | None = None,
    activation: str | None = None,
    dtype: Any = None,
    out_dtype: Any = None,
    kernel: str | None = None,
    tune: float = 0.0,
    allow_dense: bool = False,
    context: Context | None = None,
    stream: int | None = None,
) -> Any:
    """C = act(alpha A B + beta C + bias), with A block-sparse.

    a: (M, K): a sparsek.BSR, a tuple (values, crow, col, shape), a sparse matrix of SciPy (of bsr_array its blocks, of
    others single nonzeros), or a torch tensor of BSR or CSR.
    b: (K,), (K, N) or (..., K, N), of A's type, with any strides: an array of NumPy, torch, CuPy or JAX.
    out: C, of shape (M,), (M, N) or (..., M, N); None: a new array of b's kind, in b's memory.
    bias: (N,) or (1, N), added to each row as NumPy would; (M, 1) to each column. bias_axis "row" takes (M,).
    activation: None, "relu", "gelu" or "silu". dtype: "bf16" where arrays of uint16 hold it.
    out_dtype: of C and the bias; None: that of b. kernel, tune (seconds), allow_dense: see Pattern.plan.
    context: None: products are computed where the arrays lie. One of a GPU takes arrays of the host, and copies them.

    The pattern and its plan are kept from call to call, see sparsek.cache_info, where the index is in host memory. They
    are used again only for an index with the same bytes; values are never kept. For an index on a GPU, make a Pattern
    and a Plan once: here they are made in each call.

    Raises ArgumentError, DtypeError, IndexFault, UnsupportedError, OutOfMemory and LibraryError.
    """
    matrix, unsorted = as_bsr(a)
    values, dense = view(matrix.values), view(b)
    kind = _kind(values, dense, dtype)
    starts, columns = contiguous(view(matrix.crow)), contiguous(view(matrix.col))
    (rows, _), n = matrix.shape, dense.shape[-1] if dense.ndim > 1 else 1
    used = context if context is not None else default_context(dense.memory, dense.device)
    axis = _bias_axis(bias, bias_axis, rows, n)

    def plan_of(pattern: Pattern) -> Plan:
        return pattern.plan(
            n,
            out_dtype=parse_dtype(out_dtype),
            bias=axis,
            activation=activation,
            kernel=kernel,
            tune=tune,
            values=matrix.values if tune else None,
            alignment=_alignment(used, dense, out),
            allow_dense=allow_dense,
        )

    if starts.memory == columns.memory == Memory.HOST:
        shape = (int(rows), int(matrix.shape[1]))
        try:
            entry = cache.entry(starts, columns, shape, matrix.block, kind, unsorted, used)
        except IndexFault as fault:
            if not is_scipy(a) or fault.status != Status.COL_IDX_REPEATED:
                raise
            # SciPy means the sum of the blocks that are in one place.
            matrix = BSR.from_scipy(a)
            entry = cache.entry(view(matrix.crow), view(matrix.col), shape, matrix.block, kind, unsorted, used)
        key = (n, parse_dtype(out_dtype), axis, activation, kernel, tune, _alignment(used, dense, out), allow_dense)
        plan = entry.plan(key, lambda: plan_of(entry.pattern))
    else:
        plan = plan_of(Pattern(matrix.crow, matrix.col, matrix.shape, matrix.block, dtype=kind, sort=unsorted, context=used, stream=stream))
    c = plan(matrix.values, b, out, bias=bias, alpha=alpha, beta=beta, stream=stream)
    return c if out is not None else _like(b, c)


def _kind(values: View, dense: View, dtype: Any) -> Dtype:
    """The type of the product."""
    if dtype is not None:
        return dtype_of(dtype)
    if dtypes.BITS.name in (values.name, dense.name) and "bfloat16" in (values.name, dense.name):
        return Dtype.BF16
    found = dtype_of(values.name)
    if dense.name != values.name:
        raise DtypeError(f"A is of {found.name.lower()} and B of {dense.name}: convert one of them, so that both are of one type")
    return found


def _alignment(context: Context, dense: View, out: Any) -> int:
    """What a GPU's plan may expect of addresses; a CPU's expects nothing."""
    if context.memory == Memory.HOST or dense.memory == Memory.HOST:
        return 0
    places = dense.address | (0 if out is None else view(out).address) | 16
    return places & -places


def _like(b: Any, c: Any) -> Any:
    """C as an array of JAX where B is one."""
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(c, np.ndarray) and isinstance(b, jax.Array):
        return jax.numpy.asarray(c)
    return c
