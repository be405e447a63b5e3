# SPDX-License-Identifier: Apache-2.0
"""Products within JAX programs: inside jit, grad, vmap and shard_map, without copies.

The sparse matrix is data as all else: its index is an operand, and may differ from call to call, so that nothing of a
process is baked into a compiled program. On the CPU, plans are kept, and looked up by the bytes of the index, as
sparsek.bsr_gemm does. On a GPU each call plans anew, in XLA's stream and in memory that XLA lends it for that call, and
nothing waits. So a wrong index is an error of the program on the CPU, and on a GPU a matrix without blocks.

Tested with JAX 0.10. As everywhere in JAX, arrays of float64 and int64 become float32 and int32 on their way in, unless
jax_enable_x64 is on.
"""

from __future__ import annotations

import ctypes
import functools
import math
import threading
from typing import Any

import jax
import numpy as np

from . import _xla
from ._abi import Memory
from ._arrays import view
from ._plan_data import Layout, Product
from ._xla import Buffer, Call
from .cache import cache
from .context import default_context
from .dtypes import BYTES, dtype_of
from .errors import ArgumentError
from .plan import Plan

__all__ = ["bsr_matmul", "sdd"]


def _plan(op: str, values: Buffer, crow: Buffer, col: Buffer, shape: tuple[int, int], n: int) -> Plan:
    order = "column" if op == "sdd" else "row"
    block = values.shape[1], values.shape[2]
    entry = cache.entry(view(crow.array()), view(col.array()), shape, block, dtype_of(values.dtype), False, default_context())
    plan: Plan = entry.plans.get((n, op, order, "xla"), lambda: entry.pattern.plan(n, op=op, order_b=order))
    return plan


def _on_host(op: str, operands: list[Buffer], results: list[Buffer], _call: Call) -> None:
    if op == "sdd":
        (x, y, crow, col), (values,) = operands, results
        plan = _plan(op, values, crow, col, (x.shape[0], y.shape[0]), x.shape[1])
        plan.sample(x.array(), y.array().T, values.array())
    else:
        (values, crow, col, b), (c,) = operands, results
        _plan(op, values, crow, col, _shape(op, b, c), c.shape[-1])(values.array(), b.array(), c.array())


def _shape(op: str, b: Buffer, c: Buffer) -> tuple[int, int]:
    """(M, K) of A in C = A B or C = A^T B."""
    return (c.shape[-2], b.shape[-2]) if op == "dsd" else (b.shape[-2], c.shape[-2])


@functools.lru_cache(1024)
def _layout(device: int, product: Product) -> Layout:
    return Layout(default_context(Memory.DEVICE, device), product)


def _on_device(op: str, operands: list[Buffer], results: list[Buffer], call: Call) -> None:
    if op == "sdd":
        (x, b, crow, col), (values,) = operands, results
        c, shape, n, batch, x_address = values, (x.shape[0], b.shape[0]), x.shape[1], 1, x.address
    else:
        (values, crow, col, b), (c,) = operands, results
        shape, n, batch, x_address = _shape(op, b, c), c.shape[-1], math.prod(c.shape[:-2]), 0
    if math.prod(c.shape) == 0:
        return
    step_b, step_c = (math.prod(b.shape) // batch, math.prod(c.shape) // batch) if batch > 1 else (0, 0)
    product = Product(
        op=op,
        dtype=dtype_of(values.dtype),
        index=crow.dtype,
        shape=shape,
        block=(values.shape[1], values.shape[2]),
        nnzb=values.shape[0],
        n=n,
        order_b="column" if op == "sdd" else "row",
        # XLA's buffers are aligned to 256 bytes, the matrices of a batch to where they begin.
        alignment=math.gcd(16, BYTES[dtype_of(values.dtype)] * math.gcd(step_b, step_c)),
    )
    layout, stream = _layout(call.device, product), call.stream
    plan = call.memory(layout.bytes, layout.alignment)
    layout.write(crow.address, col.address, plan, stream)
    layout.run(
        plan,
        values=0 if op == "sdd" else values.address,
        b=b.address,
        c=c.address,
        x=x_address,
        batch=batch,
        stride_b=step_b,
        stride_c=step_c,
        workspace=call.memory(layout.workspace_bytes, 256),
        stream=stream,
    )


_PLATFORMS = {"cpu": _on_host, "CUDA": _on_device}
_handlers: list[Any] = []  # XLA calls them as long as the process lives
_registering = threading.Lock()


def _register() -> None:
    with _registering:
        if _handlers:
            return
        for platform, work in _PLATFORMS.items():
            for op in ("dsd", "dsd_t", "sdd"):
                made = _xla.handler(functools.partial(work, op))
                address = ctypes.cast(made, ctypes.c_void_p).value
                jax.ffi.register_ffi_target(f"sparsek_{op}", jax.ffi.pycapsule(address), platform=platform)
                _handlers.append(made)


def _call(target: str, shape: tuple[int, ...], dtype: Any, *operands: Any) -> Any:
    return jax.ffi.ffi_call(target, jax.ShapeDtypeStruct(shape, dtype), vmap_method="sequential")(*operands)


# Three products that are each other's derivatives. size: the extent of C that no operand has.


def _multiply(size: int, values: Any, crow: Any, col: Any, b: Any) -> Any:
    return _call("sparsek_dsd", (*b.shape[:-2], size, b.shape[-1]), b.dtype, values, crow, col, b)


def _multiply_transposed(size: int, values: Any, crow: Any, col: Any, b: Any) -> Any:
    return _call("sparsek_dsd_t", (*b.shape[:-2], size, b.shape[-1]), b.dtype, values, crow, col, b)


def _sample(block: tuple[int, int], x: Any, y: Any, crow: Any, col: Any) -> Any:
    return _call("sparsek_sdd", (col.shape[0], *block), x.dtype, x, y, crow, col)


multiply = jax.custom_vjp(_multiply, nondiff_argnums=(0,))
multiply_transposed = jax.custom_vjp(_multiply_transposed, nondiff_argnums=(0,))
sample = jax.custom_vjp(_sample, nondiff_argnums=(0,))


def _columns(given: Any) -> Any:
    """(..., R, N) as (R, all N)."""
    return given if given.ndim == 2 else jax.numpy.moveaxis(given, -2, 0).reshape(given.shape[-2], -1)


def _back_multiply(_size: int, kept: Any, g: Any) -> Any:
    values, crow, col, b = kept
    return sample(values.shape[1:], _columns(g), _columns(b), crow, col), None, None, multiply_transposed(b.shape[-2], values, crow, col, g)


def _back_transposed(_size: int, kept: Any, g: Any) -> Any:
    values, crow, col, b = kept
    return sample(values.shape[1:], _columns(b), _columns(g), crow, col), None, None, multiply(b.shape[-2], values, crow, col, g)


def _back_sample(_block: tuple[int, int], kept: Any, g: Any) -> Any:
    x, y, crow, col = kept
    return multiply(x.shape[0], g, crow, col, y), multiply_transposed(y.shape[0], g, crow, col, x), None, None


multiply.defvjp(lambda *given: (multiply(*given), given[1:]), _back_multiply)
multiply_transposed.defvjp(lambda *given: (multiply_transposed(*given), given[1:]), _back_transposed)
sample.defvjp(lambda *given: (sample(*given), given[1:]), _back_sample)


def _as_jax(index: Any, what: str) -> Any:
    made = jax.numpy.asarray(index)
    if isinstance(index, np.ndarray) and made.dtype != index.dtype and not np.array_equal(index.astype(made.dtype), index):
        raise ArgumentError(f"{what} of {index.dtype} does not fit into {made.dtype}, which JAX makes of it: turn jax_enable_x64 on")
    return made


def _index(crow: Any, col: Any, block_rows: int, bm: int, rows: int | None) -> tuple[Any, Any, int]:
    crow, col = _as_jax(crow, "crow"), _as_jax(col, "col")
    if crow.ndim != 1 or col.ndim != 1 or crow.dtype != col.dtype:
        raise ArgumentError(f"crow {crow.shape} and col {col.shape} are not (block rows + 1) and (nnzb), of one type")
    m = block_rows * bm if rows is None else rows
    if m > block_rows * bm or (m <= (block_rows - 1) * bm and m != block_rows * bm):
        raise ArgumentError(f"rows={m} is not in the last of {block_rows} block rows of {bm}")
    return crow, col, m


def bsr_matmul(values: Any, crow: Any, col: Any, b: Any, *, rows: int | None = None) -> Any:
    """C = A B, with A block-sparse: (M, N), or (..., M, N) where b has more dimensions.

    values: (nnzb, bm, bk), of bfloat16, float16, float32 or float64. crow: (block rows + 1). col: (nnzb), increasing
    within a block row. Both are of int32 or int64, and data: a wrong index is an error of the program when it runs.
    b: (..., K, N), of the values' type. rows: M, where it is no multiple of bm; values beyond it must be zero.
    Gradients flow to values and b, and again to theirs. Raises ArgumentError and DtypeError.
    """
    _register()
    values, b = jax.numpy.asarray(values), jax.numpy.asarray(b)
    if values.ndim != 3 or b.ndim < 2:
        raise ArgumentError(f"values {values.shape} and b {b.shape} are not (nnzb, bm, bk) and (..., K, N)")
    if values.dtype != b.dtype:
        raise ArgumentError(f"values are of {values.dtype} and b of {b.dtype}: convert one of them, so that both are of one type")
    dtype_of(np.dtype(values.dtype))
    crow, col, m = _index(crow, col, np.shape(crow)[0] - 1, values.shape[1], rows)
    if values.shape[0] != col.shape[0]:
        raise ArgumentError(f"there are {values.shape[0]} blocks of values, and {col.shape[0]} in col")
    return multiply(m, values, crow, col, b)


def sdd(x: Any, y: Any, crow: Any, col: Any, block: tuple[int, int]) -> Any:
    """The blocks of X Y^T at the places of a pattern: (nnzb, bm, bk), values for bsr_matmul.

    x: (M, N). y: (K, N), of x's type. crow, col: as for bsr_matmul. block: (bm, bk). Gradients flow to x and y.
    Raises ArgumentError and DtypeError.
    """
    _register()
    x, y = jax.numpy.asarray(x), jax.numpy.asarray(y)
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1] or x.dtype != y.dtype:
        raise ArgumentError(f"x {x.shape} of {x.dtype} and y {y.shape} of {y.dtype} are not (M, N) and (K, N) of one type")
    dtype_of(np.dtype(x.dtype))
    crow, col, _ = _index(crow, col, np.shape(crow)[0] - 1, block[0], x.shape[0])
    return sample(tuple(block), x, y, crow, col)
