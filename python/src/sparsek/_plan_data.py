# SPDX-License-Identifier: Apache-2.0
"""Plans as plain data, in memory of the caller's: made and used in a stream, with nothing to be destroyed afterwards."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from . import _abi
from ._abi import BsrFlag, Dtype, Op
from ._index import index_type
from ._library import library
from ._operands import ORDERS
from .context import Context


@dataclass(frozen=True)
class Product:
    """All that a plan's memory depends on: a product's operation, types and sizes, with B, C and X without gaps."""

    op: str
    """ "dsd", "dsd_t", "dds", "dds_t" or "sdd", see Pattern.plan """
    dtype: Dtype
    index: str
    """int16, int32 or int64"""
    shape: tuple[int, int]
    block: tuple[int, int]
    nnzb: int
    """The most blocks that an index has."""
    n: int
    order_b: str
    """ "row" or "column" """
    alignment: int
    """Bytes that the addresses of B, C and X are multiples of; each of a batch."""


class Layout:
    """How a product is computed, and the memory that this takes: `bytes`, aligned to `alignment`, for the plan, and
    `workspace_bytes`, aligned to 256, for each product. Depends on sizes alone. Raises what Pattern.plan does."""

    def __init__(self, context: Context, product: Product) -> None:
        self._lib, self._context, self._product = library(), context, product
        options = _abi.PlanOptions(
            n=product.n,
            alignment=product.alignment,
            alignment_c=product.alignment,
            dtype_c=int(product.dtype),
            op=int(Op[product.op.upper()]),
            order_b=int(ORDERS[product.order_b]),
            order_c=int(ORDERS["row"]),
            order_x=int(ORDERS["row"]),
        )
        self._layout = _abi.PlanLayout()
        shape = self._index(0, 0, 0)
        self._lib.require(self._lib.plan_measure(context.pointer, ctypes.byref(shape), ctypes.byref(options), ctypes.byref(self._layout)))
        self.bytes: int = self._layout.bytes
        self.workspace_bytes: int = self._layout.workspace_bytes
        self.alignment: int = self._layout.alignment

    def _index(self, crow: int, col: int, stream: int, flags: int = 0) -> _abi.Bsr:
        product = self._product
        return _abi.Bsr(
            rows=product.shape[0],
            cols=product.shape[1],
            block_m=product.block[0],
            block_k=product.block[1],
            nnzb=product.nnzb,
            dtype=int(product.dtype),
            index_type=index_type(product.index, "crow"),
            memory=int(self._context.memory),
            row_ptr=crow,
            col_idx=col,
            stream=stream,
            flags=flags,
        )

    def write(self, crow: int, col: int, plan: int, stream: int, *, fewer: bool = False) -> None:
        """Enqueues a plan for the index at these addresses into `plan`. A wrong index gives a plan without blocks.

        fewer: the index may have fewer blocks than nnzb.
        """
        index = self._index(crow, col, stream, int(BsrFlag.BOUND) if fewer else 0)
        self._lib.require(self._lib.plan_write(self._context.pointer, ctypes.byref(index), ctypes.byref(self._layout), plan, None))

    def run(
        self,
        plan: int,
        *,
        values: int,
        b: int,
        c: int,
        x: int,
        batch: int,
        stride_b: int,
        stride_c: int,
        workspace: int,
        stream: int,
    ) -> None:
        """Enqueues a product, or a batch of them, by a plan that was written before in the order of the stream."""
        args = _abi.MultiplyArgs(
            alpha=1.0,
            values=values,
            b=b,
            c=c,
            x=x,
            batch=batch,
            stride_b=stride_b,
            stride_c=stride_c,
            workspace=workspace,
            workspace_bytes=self.workspace_bytes,
            stream=stream,
        )
        self._lib.require(self._lib.plan_run(self._context.pointer, ctypes.byref(self._layout), plan, ctypes.byref(args)))
