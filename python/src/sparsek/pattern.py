# SPDX-License-Identifier: Apache-2.0
"""Which blocks of a matrix are stored, as the library keeps it."""

from __future__ import annotations

import ctypes
from typing import Any

from . import _abi
from ._abi import BsrFlag, Dtype, Memory, Status
from ._arrays import View, current_stream, place, view
from ._extents import extents
from ._handles import Owner, Shared
from ._index import index_pair, index_type
from ._library import library
from .context import Context, context_of
from .dtypes import dtype_of
from .errors import ArgumentError
from .plan import Plan, values_of

__all__ = ["Pattern"]


class Pattern(Owner):
    """The index of a block-sparse matrix, checked and copied by the library, without values.

    crow: (ceil(M/bm) + 1), where each block row begins. col: (nnzb), the block column of each block. Both are of int16,
    int32 or int64, on the host or on a GPU. shape: (M, K). block: (bm, bk). dtype: of the values, "bf16", "fp16", "fp32"
    or "fp64". sort: block columns may come in any order within a block row; values keep theirs.
    context: where products are computed; None: where crow lies. stream: in which a GPU's arrays are read; None: the
    current one of their package. wait: whether to wait until an index on a GPU has been read and checked; if not,
    `require` raises what was found, and until then a wrong index is one without blocks. frozen: the values that
    `set_values` gives are not written to in place, so that a GPU's plans may keep them packed; not with wait=False.

    One pattern may be used by any number of threads. Raises IndexFault, ArgumentError, DtypeError, UnsupportedError and
    OutOfMemory.
    """

    def __init__(
        self,
        crow: Any,
        col: Any,
        shape: tuple[int, int],
        block: tuple[int, int],
        *,
        dtype: Any,
        sort: bool = False,
        context: Context | None = None,
        stream: int | None = None,
        wait: bool = True,
        frozen: bool = False,
    ) -> None:
        rows, cols = extents(shape, "shape", "M", "K")
        bm, bk = extents(block, "block", "rows", "columns")
        if bm < 1 or bk < 1 or rows < 0 or cols < 0:
            raise ArgumentError(f"a matrix of {rows}x{cols} in blocks of {bm}x{bk} does not exist")
        starts, columns = index_pair(crow, col)
        if starts.size != -(-rows // bm) + 1:
            raise ArgumentError(f"crow has {starts.size} elements, and not {-(-rows // bm) + 1}: one more than there are block rows")
        self.context = context_of(context, starts.memory, starts.device)
        if starts.memory == Memory.DEVICE and self.context.memory == Memory.HOST:
            raise ArgumentError(
                f"the index lies {place(starts)}, and the context is {self.context}: copy the index to the host, or give no context"
            )
        self.shape, self.block, self.nnzb = (rows, cols), (bm, bk), columns.size
        self.dtype: Dtype = dtype_of(dtype)
        lib = library()
        bsr = _abi.Bsr(
            rows=rows,
            cols=cols,
            block_m=bm,
            block_k=bk,
            nnzb=columns.size,
            dtype=int(self.dtype),
            index_type=index_type(starts.name, "crow"),
            memory=int(starts.memory),
            row_ptr=starts.address,
            col_idx=columns.address,
            stream=current_stream(starts) if stream is None else stream,
            flags=(int(BsrFlag.SORT) if sort else 0) | (0 if wait else int(BsrFlag.ASYNC)) | (int(BsrFlag.FROZEN) if frozen else 0),
        )
        pointer = ctypes.c_void_p()
        lib.require(lib.matrix_create(self.context.pointer, ctypes.byref(bsr), ctypes.addressof(pointer)))
        assert pointer.value is not None
        self._handle = Shared(pointer.value, lib.matrix_destroy, self.context._handle)
        self._values: View | None = None

    def set_values(self, values: Any, stream: int | None = None) -> None:
        """Gives a frozen pattern its values, (nnzb, bm, bk), where its context computes: plans pack them, in the order of `stream`.

        None: their package's current stream. The array must be contiguous. It is kept and not copied, and products that
        are given the same one do not pack it. After a write to it, call this again.
        """
        if not view(values).dense:
            raise ArgumentError("values are not contiguous: a pattern keeps them as they lie, and takes no copy")
        given = values_of(values, self.dtype, (self.nnzb, *self.block), stream)
        if given.memory != self.context.memory:
            raise ArgumentError(
                f"values lie {place(given)}, and products are computed by {self.context}: copy them to where they are computed"
            )
        order = current_stream(given) if stream is None else stream
        lib = library()
        lib.require(lib.matrix_set_values(self.pointer, given.address, int(given.memory), order))
        self._values = given  # the library refers to them

    def require(self, wait: bool = True) -> bool:
        """Raises IndexFault where the index is wrong, and returns whether it has been checked. wait: until it is."""
        lib = library()
        status = lib.matrix_status(self.pointer, int(wait))
        if status == Status.NOT_READY:
            return False
        lib.require(status)
        return True

    def plan(
        self,
        n: int,
        *,
        op: str = "dsd",
        out_dtype: Any = None,
        bias: str | None = None,
        activation: str | None = None,
        kernel: str | None = None,
        tune: float = 0.0,
        values: Any = None,
        ldb: int = 0,
        ldc: int = 0,
        alignment: int = 0,
        order_b: str = "row",
        order_c: str = "row",
        order_x: str = "row",
        allow_dense: bool = False,
        own_kernels: bool = False,
        batch_invariant: bool = False,
        tf32: bool = False,
        workers: int = 0,
    ) -> Plan:
        """How products with up to n columns are computed; to be kept and called, see Plan.

        op: the product, A being (M, K):
            "dsd"    C = A B      b (K, n)    C (M, n)
            "dsd_t"  C = A^T B    b (M, n)    C (K, n)
            "dds"    C = B A      b (n, M)    C (n, K)
            "dds_t"  C = B A^T    b (n, K)    C (n, M)
            "sdd"    blocks of X B at A's pattern, see Plan.sample
        order_b, order_c, order_x: how the operands lie, by "row" or "column"; others are copied.
        out_dtype: of C and the bias; None: that of the values. bias: None, "row" (M) or "column" (n). activation: None,
        "relu", "gelu" or "silu". kernel: by name, or None: the library chooses. tune: seconds to measure kernels for,
        with `values`, unless a similar product has been measured before; see docs/tuning.md. ldb, ldc: elements from row
        to row of B and C that the kernel is chosen for, 0: n. alignment: bytes that the addresses of B, C and X are
        multiples of, 0: of a GPU's 16, of the host's those of an element. A GPU's plan takes operands of that alignment
        alone, each matrix of a batch too. Rows of B with gaps between them, where n elements are a multiple of 16 bytes
        and their distance is not, need that distance as `ldb`, or an alignment below 16. allow_dense: absent blocks may be multiplied
        as zeros. own_kernels: none of another library. batch_invariant: the bits of a column of C do not depend on n.
        tf32: elements of fp32 may be rounded to TF32 before they are multiplied. workers: the most CTAs or threads to use, 0: all.
        """
        return Plan(
            self,
            n,
            op=op,
            out_dtype=out_dtype,
            bias=bias,
            activation=activation,
            kernel=kernel,
            tune=tune,
            values=values,
            ldb=ldb,
            ldc=ldc,
            alignment=alignment,
            order_b=order_b,
            order_c=order_c,
            order_x=order_x,
            allow_dense=allow_dense,
            own_kernels=own_kernels,
            batch_invariant=batch_invariant,
            tf32=tf32,
            workers=workers,
        )

    def __repr__(self) -> str:
        (rows, cols), (bm, bk) = self.shape, self.block
        return f"Pattern({rows}x{cols} in {bm}x{bk}, {self.nnzb} blocks, {self.dtype.name.lower()}, {self.context.backend})"
