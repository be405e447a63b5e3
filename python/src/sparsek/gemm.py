# SPDX-License-Identifier: Apache-2.0
"""One call that takes what people have: sparse matrices and dense arrays of any package."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from . import dtypes
from ._abi import Dtype, Memory, Status
from ._arrays import View, dense_strides, is_torch, view
from ._index import index_view
from ._known import keep, known
from .bsr import BSR, is_scipy, of_scipy
from .cache import Entry, cache
from .context import Context, context_of
from .dtypes import BYTES, dtype_of, parse_dtype
from .errors import ArgumentError, DtypeError, IndexFault
from .pattern import Pattern
from .plan import Plan

__all__ = ["bsr_gemm", "sdd"]


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
    if axis in ("row", "column"):
        return axis
    if axis is not None:
        raise ArgumentError(f"bias_axis={axis!r} is none of row and column")
    shape = tuple(bias.shape) if hasattr(bias, "shape") else np.shape(bias)
    if shape in ((n,), (1, n)):
        return "column"
    if shape == (rows, 1):
        return "row"
    raise ArgumentError(f"bias of shape {shape} is neither ({n},), one for each column, nor ({rows}, 1): say bias_axis='row' for ({rows},)")


def bsr_gemm(
    a: Any,
    b: Any,
    *,
    transpose: bool = False,
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
    """C = act(alpha A B + beta C + bias), with A block-sparse and B dense, or the other way round.

    The sparse one, (M, K): a sparsek.BSR, a tuple (values, crow, col, shape), a sparse matrix of SciPy (of bsr_array its
    blocks, of others single nonzeros), or a torch tensor of BSR or CSR. transpose: its transpose takes part.
    The dense one, of the sparse one's type, with any strides: an array of NumPy, torch, CuPy or JAX. As b (K,), (K, N) or
    (..., K, N), as a (M,), (N, M) or (..., N, M), and with transpose M and K change places.
    out: C, of the product's shape; None: a new array of the dense one's kind, in its memory.
    bias: one number for each column of C, (N,) or (1, N), added to each row as NumPy would; or for each row, (rows, 1).
    bias_axis "row" takes (rows,). activation: None, "relu", "gelu" or "silu".
    dtype: "bf16" where arrays of uint16 hold it. out_dtype: of C and the bias; None: that of b.
    kernel, tune (seconds), allow_dense: see Pattern.plan.
    context: None: products are computed where the arrays lie. One of a GPU takes arrays of the host, and copies them.

    The pattern and its plan are kept from call to call, see sparsek.cache_info, where the index is in host memory. They
    are used again only for an index with the same bytes; values are never kept. For an index on a GPU, make a Pattern
    and a Plan once: here they are made in each call.

    Raises ArgumentError, DtypeError, IndexFault, UnsupportedError, OutOfMemory and LibraryError.
    """
    is_short = (
        type(a) is BSR
        and type(b) is np.ndarray
        and context is bias is activation is dtype is out_dtype is kernel is None
        and not allow_dense
    )
    if is_short:
        again = known(a, b, transpose, tune)
        if again is not None:
            if out is None and again.is_plain and alpha == 1.0 and beta == 0.0:
                return again.plan.plain(a.values, b)
            return again.plan(a.values, b, out, alpha=alpha, beta=beta, stream=stream)
    right = not _is_sparse(a) and _is_sparse(b)
    sparse, dense = (b, a) if right else (a, b)
    matrix, unsorted = as_bsr(sparse)
    values, found = view(matrix.values), view(dense)
    kind = _kind(values, found, dtype)
    used = context_of(context, found.memory, found.device)
    op = ("dds" if right else "dsd") + ("_t" if transpose else "")
    n = found.shape[-2 if right else -1] if found.ndim > 1 else 1
    extent = matrix.shape[1 if right != transpose else 0]
    options = {
        "op": op,
        "out_dtype": parse_dtype(out_dtype),
        "bias": _bias_axis(bias, bias_axis, *((n, extent) if right else (extent, n))),
        "activation": activation,
        "kernel": kernel,
        "tune": tune,
        "allow_dense": allow_dense,
        "order_b": _order(used, found),
        "alignment": 0,
    }
    if used.memory == Memory.DEVICE:
        places = [_places(found)]
        if out is not None:
            places.append(_places(view(out)))
        elif found.ndim > 2:
            places.append(extent * n * BYTES[parse_dtype(out_dtype) or kind])
        options["alignment"] = _alignment(*places)
    matrix, plan, entry = _plan(sparse, matrix, unsorted, kind, used, n, options, stream)
    if is_short and entry is not None:
        keep(entry, plan, a, b, transpose, tune)
    c = plan(matrix.values, dense, out, bias=bias, alpha=alpha, beta=beta, stream=stream)
    return c if out is not None else _like(dense, c)


def sdd(
    x: Any,
    b: Any,
    like: Any,
    *,
    out: Any = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    dtype: Any = None,
    out_dtype: Any = None,
    context: Context | None = None,
    stream: int | None = None,
) -> Any:
    """The blocks of alpha X B + beta C at the places of a block-sparse matrix: its values, (nnzb, bm, bk), in their order.

    x: (M, N). b: (N, K), of x's type. like: the matrix, (M, K), as bsr_gemm takes it; its values are not used. out: C;
    None: a new array of b's kind. What blocks have beyond row M or column K becomes 0. Else as bsr_gemm.
    """
    matrix, unsorted = as_bsr(like)
    left, right = view(x), view(b)
    kind = _kind(left, right, dtype)
    used = context_of(context, right.memory, right.device)
    n = right.shape[0] if right.ndim == 2 else 1
    options = {
        "op": "sdd",
        "out_dtype": parse_dtype(out_dtype),
        "order_b": _order(used, right),
        "order_x": _order(used, left),
        "alignment": 0,
    }
    if used.memory == Memory.DEVICE:
        options["alignment"] = _alignment(_places(left), _places(right), 0 if out is None else _address(view(out)))
    _, plan, _ = _plan(None, matrix, unsorted, kind, used, n, options, stream)
    c = plan.sample(x, b, out, alpha=alpha, beta=beta, stream=stream)
    return c if out is not None else _like(b, c)


def _plan(
    sparse: Any, matrix: BSR, unsorted: bool, kind: Dtype, context: Context, n: int, options: dict[str, Any], stream: int | None
) -> tuple[BSR, Plan, Entry | None]:
    """The plan, kept or made, the matrix whose values it is for, and where it is kept. sparse: what the user gave."""
    shape = (int(matrix.shape[0]), int(matrix.shape[1]))
    starts, columns = index_view(matrix.crow), index_view(matrix.col)
    values = matrix.values if options.get("tune") else None
    if starts.memory != Memory.HOST or columns.memory != Memory.HOST:
        made = Pattern(matrix.crow, matrix.col, shape, matrix.block, dtype=kind, sort=unsorted, context=context, stream=stream)
        return matrix, made.plan(n, values=values, **options), None
    try:
        entry = cache.entry(starts, columns, shape, matrix.block, kind, unsorted, context)
    except IndexFault as fault:
        if not is_scipy(sparse) or fault.status != Status.COL_IDX_REPEATED:
            raise
        # SciPy means the sum of the blocks that are in one place.
        matrix = BSR.from_scipy(sparse)
        values = matrix.values if options.get("tune") else None
        entry = cache.entry(view(matrix.crow), view(matrix.col), shape, matrix.block, kind, unsorted, context)
    return matrix, entry.plans.get((n, *options.values()), lambda: entry.pattern.plan(n, values=values, **options)), entry


def _order(context: Context, dense: View) -> str:
    """ "column" where a CPU's product can read an operand column by column, and would have to copy it else."""
    if context.memory != Memory.HOST or dense.ndim < 2 or dense.strides[-1] == 1 or dense.shape[-1] < 2:
        return "row"
    return "column" if dense.strides[-2] == 1 and dense.strides[-1] >= dense.shape[-2] else "row"


def _is_sparse(matrix: Any) -> bool:
    if is_torch(matrix):
        return matrix.layout in (sys.modules["torch"].sparse_bsr, sys.modules["torch"].sparse_csr)
    return isinstance(matrix, BSR) or is_scipy(matrix) or (isinstance(matrix, tuple) and len(matrix) == 4)


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


def _places(dense: View) -> int:
    """The addresses of an operand's matrices, and where there are gaps between its rows their distance, or'ed together: plans
    are made for rows without gaps. A power of two divides all of them if it divides this.
    """
    address, strides = _address(dense), dense.strides
    if dense.ndim < 2:
        return address
    size = BYTES[Dtype.BF16 if dense.name == dtypes.BITS.name else dtype_of(dense.name)]
    *outer, rows, cols = dense.shape
    if cols > 1 and strides[-1] != 1:  # it is copied
        address, strides = 0, dense_strides(dense.shape)
    found = address
    if rows > 1 and strides[-2] != cols:
        found |= strides[-2] * size
    for extent, stride in zip(outer, strides, strict=False):
        if extent > 1:
            found |= stride * size
    return found


def _address(found: View) -> int:
    return found.address if found.memory == Memory.DEVICE else 0  # arrays of the host are copied to aligned memory, with their strides


def _alignment(*places: int) -> int:
    """What a GPU's plan may expect of operands at these places."""
    found = 16
    for place in places:
        found |= place
    return found & -found


def _like(b: Any, c: Any) -> Any:
    """C as an array of JAX where B is one."""
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(c, np.ndarray) and isinstance(b, jax.Array):
        return jax.numpy.asarray(c)
    return c
