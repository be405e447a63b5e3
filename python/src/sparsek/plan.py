# SPDX-License-Identifier: Apache-2.0
"""How a pattern is multiplied, and the products themselves."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _abi
from ._abi import Activation, Bias, ChosenBy, Compute, Dtype, Memory, Op, Order, PlanFlag, Status
from ._arrays import HAS_FIELDS, HEAD, View, assign, contiguous, current_stream, element, empty, place, reader, require_stream, view
from ._handles import Owner, Shared
from ._library import library
from ._measuring import measuring
from ._operands import ORDERS, Dense, made, take, taken
from ._staging import Staging
from .dtypes import BYTES, numpy_dtype, parse_dtype
from .errors import ArgumentError

if TYPE_CHECKING:
    from .pattern import Pattern

__all__ = ["Plan", "PlanInfo"]

_BIASES = {None: Bias.NONE, "row": Bias.ROW, "column": Bias.COLUMN}
_ACTIVATIONS = {None: Activation.NONE, "relu": Activation.RELU, "gelu": Activation.GELU, "silu": Activation.SILU}

_ndarray = np.ndarray
_empty = np.empty


@dataclass(frozen=True)
class PlanInfo:
    """What a plan is: its kernel, why it was chosen, and what it takes."""

    kernel: str
    reason: str
    chosen_by: str
    """ "name", "model", "cache", "table" or "tuning" """
    tiles: int
    entries: int
    """Loads of a block row of B; -1 where only the device knows."""
    workspace_bytes: int
    product_bytes: int
    kept_bytes: int
    """Of workspace_bytes: values that came from the host, as the kernel reads them; 0: none are kept."""
    unit_roundoff: float
    """Of one step of the sums: the u of the error bound in sparsek.h."""
    product_roundoff: float
    """How far a product of two elements may be off before it is summed up: the p of that bound; 0 without TF32."""
    predicted_seconds: float
    measured_seconds: float
    warning: str


def _choice(table: Mapping[Any, Any], given: str | None, what: str) -> Any:
    try:
        return table[given]
    except KeyError:
        names = ", ".join(str(name) for name in table)
        raise ArgumentError(f"{what}={given!r} is none of {names}") from None


def _contiguous(found: View, what: str, stream: int | None) -> View:
    if not found.dense:
        require_stream(found, stream, what)
    return contiguous(found)


def values_of(values: Any, dtype: Dtype, shape: tuple[int, int, int], stream: int | None) -> View:
    """Values of the shape (nnzb, bm, bk), contiguous: a copy where they are not. Raises ArgumentError and DtypeError."""
    found = view(values)
    element(found, dtype, "values")
    nnzb, bm, bk = shape
    if found.shape != shape and not (found.shape == (nnzb,) and bm == bk == 1):
        raise ArgumentError(f"values have the shape {found.shape}, and not {shape}: (nnzb, bm, bk), a block for each of col's elements")
    return _contiguous(found, "values", stream)


class _Sides(NamedTuple):
    """Where a product has A's extents: which of them B and C have, as rows (-2) or as columns (-1)."""

    b: int
    c: int
    axis: int


_OPS = {
    "dsd": (Op.DSD, _Sides(b=1, c=0, axis=-2)),
    "dsd_t": (Op.DSD_T, _Sides(b=0, c=1, axis=-2)),
    "dds": (Op.DDS, _Sides(b=0, c=1, axis=-1)),
    "dds_t": (Op.DDS_T, _Sides(b=1, c=0, axis=-1)),
    "sdd": (Op.SDD, _Sides(b=1, c=0, axis=-1)),
}


class Plan(Owner):
    """Products of one pattern, of up to n columns of B: made by Pattern.plan, called with values and B.

    One plan may be called by several threads at once, with values of their own.
    """

    def __init__(
        self,
        pattern: Pattern,
        n: int,
        *,
        op: str,
        out_dtype: Any,
        bias: str | None,
        activation: str | None,
        kernel: str | None,
        tune: float,
        values: Any,
        ldb: int,
        ldc: int,
        alignment: int,
        order_b: str,
        order_c: str,
        order_x: str,
        allow_dense: bool,
        own_kernels: bool,
        batch_invariant: bool,
        tf32: bool,
        workers: int,
    ) -> None:
        self.pattern, self.n = pattern, n
        self.dtype = pattern.dtype
        self.out_dtype: Dtype = parse_dtype(out_dtype) or pattern.dtype
        self.op: Op
        self.op, self._sides = _choice(_OPS, op, "op")
        self.order_b: Order = _choice(ORDERS, order_b, "order_b")
        self.order_c: Order = _choice(ORDERS, order_c, "order_c")
        self.order_x: Order = _choice(ORDERS, order_x, "order_x")
        self.bias: Bias = _choice(_BIASES, bias, "bias")
        self.activation: Activation = _choice(_ACTIVATIONS, activation, "activation")
        host = pattern.context.memory == Memory.HOST
        if alignment == 0:
            alignment = BYTES[self.dtype] if host else 16
        options = _abi.PlanOptions(
            n=n,
            ldb=ldb,
            ldc=ldc,
            alignment=max(alignment, BYTES[self.dtype]),
            alignment_c=max(alignment, BYTES[self.out_dtype]),
            kernel=kernel.encode() if kernel is not None else None,
            dtype_c=int(self.out_dtype),
            bias=int(self.bias),
            activation=int(self.activation),
            allow_dense=int(allow_dense),
            tuning_seconds=tune,
            flags=(int(PlanFlag.OWN_KERNELS) if own_kernels else 0) | (int(PlanFlag.BATCH_INVARIANT) if batch_invariant else 0),
            op=int(self.op),
            order_b=int(self.order_b),
            order_c=int(self.order_c),
            order_x=int(self.order_x),
            compute=int(Compute.TF32 if tf32 else Compute.EXACT),
            workers=workers,
        )
        lib = library()
        self._lib = lib
        (rows, cols), (bm, bk) = pattern.shape, pattern.block
        self._values_shape = (pattern.nnzb, bm, bk)
        pointer = ctypes.c_void_p()
        if tune > 0:
            if values is None:
                raise ArgumentError("tune needs values: they are what is multiplied while kernels are measured")
            measured = self._values(values, None)
            # The matrix refers to these values from here on. Nothing but this call reads them there: products have values
            # of their own. Meanwhile no other thread may set others, or disturb what is measured.
            with measuring():
                lib.require(lib.matrix_set_values(pattern.pointer, measured.address, int(measured.memory), current_stream(measured)))
                lib.require(lib.plan_create(pattern.pointer, ctypes.byref(options), ctypes.addressof(pointer)))
        else:
            lib.require(lib.plan_create(pattern.pointer, ctypes.byref(options), ctypes.addressof(pointer)))
        assert pointer.value is not None
        self._handle = Shared(pointer.value, lib.plan_destroy, pattern._handle)
        # What calls with plain NumPy arrays need, see __call__.
        self._multiply = lib.multiply_at
        self._pointer: int = pointer.value
        self._spare: list[tuple[Any, int, Any, Any]] = []
        orders = (self.order_b, self.order_c)
        self._plain = HAS_FIELDS and host and n > 0 and self.bias == Bias.NONE and self.op == Op.DSD and orders == (Order.ROW_MAJOR,) * 2
        self._b_shape, self._c_shape = (cols, n), (rows, n)
        self._numpy = numpy_dtype(self.dtype)
        self._numpy_c = numpy_dtype(self.out_dtype)

    @property
    def info(self) -> PlanInfo:
        """What the plan is. Waits for nothing."""
        found = _abi.PlanInfo()
        self._lib.require(self._lib.plan_describe(self.pointer, ctypes.byref(found)))
        return PlanInfo(
            kernel=found.kernel.decode(),
            reason=found.reason.decode(),
            chosen_by=ChosenBy(found.chosen_by).name.lower(),
            tiles=found.tiles,
            entries=found.entries,
            workspace_bytes=found.workspace_bytes,
            product_bytes=found.product_bytes,
            kept_bytes=found.kept_bytes,
            unit_roundoff=found.unit_roundoff,
            product_roundoff=found.product_roundoff,
            predicted_seconds=found.predicted_seconds,
            measured_seconds=found.measured_seconds,
            warning=(found.warning or b"").decode(),
        )

    def __call__(
        self,
        values: Any,
        b: Any,
        out: Any = None,
        *,
        bias: Any = None,
        alpha: float = 1.0,
        beta: float = 0.0,
        stream: int | None = None,
    ) -> Any:
        """C = act(alpha A B + beta C + bias), which is returned.

        values: (nnzb, bm, bk). b: (K,), (K, n) or (..., K, n), n as planned or less, of the type of the values.
        out: C, (M,), (M, n) or (..., M, n); None: a new array of b's kind. bias: (M) or (n) as planned, of C's type.
        Of other ops than "dsd", b and C have the shapes that Pattern.plan says.
        stream: of a GPU's product; None: the current one of b's package. With another one, no operand may need a copy.

        All strides are taken on the CPU. What the library does not multiply in place is copied first: values and a bias
        that are not contiguous, a B or C whose rows are not (transposed, reversed or repeated ones). On a GPU, B and C
        have to lie as was planned, see `ldb` and `alignment` of Pattern.plan: ArgumentError says where they do not, and
        a contiguous copy always does.
        The arrays lie where the context computes. A GPU's context takes arrays of the host too: it copies all of them to
        the GPU and C back, which then is waited for. On the CPU, C is written when the call returns; on a GPU it is in
        the stream, and b, values and out must not be freed out of the stream's order.
        """
        # NumPy arrays that need nothing done to them go the short way.
        if (
            type(b) is _ndarray
            and type(values) is _ndarray
            and self._plain
            and bias is None
            and alpha == 1.0
            and beta == 0.0
            and b.dtype is self._numpy
            and values.dtype is self._numpy
            and b.shape == self._b_shape
            and values.shape == self._values_shape
            and b.flags.carray
            and values.flags.carray
            and (out is None or (type(out) is _ndarray and out.dtype is self._numpy_c and out.shape == self._c_shape and out.flags.carray))
        ):
            return self.plain(values, b, out)
        return self._any(values, b, out, bias, alpha, beta, stream)

    def is_for(self, b: np.ndarray[Any, Any]) -> bool:
        """Whether `plain` multiplies an array like this one, if it lies without gaps."""
        return self._plain and b.dtype is self._numpy and b.shape == self._b_shape

    def plain(self, values: Any, b: Any, out: Any = None) -> Any:
        """A b, of NumPy arrays that lie without gaps and are what the plan was made for: nothing is asked."""
        if out is None:
            out = _empty(self._c_shape, self._numpy_c)
        try:
            spare = self._spare.pop()
        except IndexError:
            spare = self._new_args()
        args, at, where, address = spare
        where.value = id(b) + HEAD
        args.b = address[0]
        where.value = id(out) + HEAD
        args.c = address[0]
        where.value = id(values) + HEAD
        args.values = address[0]
        status = self._multiply(self._pointer, at)
        if status:
            self._lib.require(status)
        self._spare.append(spare)
        return out

    def _new_args(self) -> tuple[Any, int, Any, Any]:
        n = self.n
        args = _abi.MultiplyArgs(alpha=1.0, ldb=n, ldc=n)
        return args, ctypes.addressof(args), *reader()

    def run(
        self,
        *,
        values: int,
        b: int,
        c: int,
        n: int = 0,
        ldb: int = 0,
        ldc: int = 0,
        bias: int = 0,
        alpha: float = 1.0,
        beta: float = 0.0,
        c_in: int = 0,
        ldc_in: int = 0,
        x: int = 0,
        ldx: int = 0,
        stream: int = 0,
        workspace: int = 0,
        workspace_bytes: int = 0,
        batch: int = 0,
        stride_b: int = 0,
        stride_c: int = 0,
        stride_values: int = 0,
        stride_bias: int = 0,
    ) -> None:
        """A product of operands by their addresses, with the members of sparsek_multiply_args; 0 is what it means there.

        Nothing is checked that the library cannot see: types, and whether the memory is as long as it has to be. values must
        be given, unless there are no blocks or the plan is of SDD: those of the matrix are not kept.
        """
        if values == 0 and self.pattern.nnzb > 0 and self.op != Op.SDD:
            raise ArgumentError("values = 0: a product needs values, which the pattern does not have", Status.NULL_POINTER)
        args = _abi.MultiplyArgs(
            alpha=alpha,
            beta=beta,
            b=b,
            ldb=ldb,
            c=c,
            ldc=ldc,
            stream=stream,
            bias=bias,
            values=values,
            n=n,
            c_in=c_in,
            ldc_in=ldc_in,
            x=x,
            ldx=ldx,
            workspace=workspace,
            workspace_bytes=workspace_bytes,
            batch=batch,
            stride_b=stride_b,
            stride_c=stride_c,
            stride_values=stride_values,
            stride_bias=stride_bias,
        )
        self._lib.require(self._multiply(self._pointer, ctypes.addressof(args)))

    def _values(self, values: Any, stream: int | None) -> View:
        return values_of(values, self.dtype, self._values_shape, stream)

    def _bias(self, bias: Any, line: tuple[int, int], stream: int | None) -> View | None:
        if bias is None:
            if self.bias != Bias.NONE:
                raise ArgumentError("the plan was made for a bias: give one")
            return None
        if self.bias == Bias.NONE:
            raise ArgumentError("the plan was made without a bias: Pattern.plan(bias='row') or 'column' makes one with it")
        found = view(bias)
        element(found, self.out_dtype, "bias")
        count = line[0] if self.bias == Bias.ROW else line[1]
        if found.shape not in ((count,), (count, 1) if self.bias == Bias.ROW else (1, count)):
            raise ArgumentError(f"bias has the shape {found.shape}, and not ({count},)")
        return _contiguous(found, "bias", stream)

    def _any(self, values: Any, b: Any, out: Any, bias: Any, alpha: float, beta: float, stream: int | None) -> Any:
        """A product of whatever operands."""
        if self.op == Op.SDD:
            raise ArgumentError("the plan samples: call its method sample, with two dense operands")
        if self.dtype == Dtype.FP64:
            for name, factor in (("alpha", alpha), ("beta", beta)):
                if float(np.float32(factor)) != factor:
                    raise ArgumentError(f"{name}={factor} is no number of fp32, in which the library takes it: scale an operand instead")
        b_view = view(b)
        element(b_view, self.dtype, "b")
        fixed_b, fixed_c, axis = self.pattern.shape[self._sides.b], self.pattern.shape[self._sides.c], self._sides.axis
        b_dense = taken(b_view, fixed_b, axis, self.order_b, "b", stream)
        n = self._columns(b_dense.n, "b")
        line = (fixed_c, n) if axis == -2 else (n, fixed_c)
        found_values, found_bias = self._values(values, stream), self._bias(bias, line, stream)
        shape = (*b_view.shape[:-2], *line) if b_view.ndim > 1 else (fixed_c,)
        c_view = self._output(out, shape, beta, b_view)
        c_dense = take(c_view, fixed_c, axis, self.order_c, "out")
        if c_dense is None or (c_view.kind == "numpy" and out is not None and c_view.array is not out):
            # A C that the library cannot write to gets a copy of one that it can.
            require_stream(c_view, stream, "out")
            copy = made(c_view, shape, self.out_dtype, self.order_c)
            if beta:
                assign(copy.array, c_view)
            c_dense = take(copy, fixed_c, axis, self.order_c, "out")
            assert c_dense is not None
            self._finish(found_values, b_dense, c_dense, found_bias, alpha, beta, stream)
            assign(out, copy)
            return out
        self._finish(found_values, b_dense, c_dense, found_bias, alpha, beta, stream)
        return c_view.array if out is None else out

    def sample(self, x: Any, b: Any, out: Any = None, *, alpha: float = 1.0, beta: float = 0.0, stream: int | None = None) -> Any:
        """The blocks of act(alpha X B + beta C) where A has blocks, which are returned: C, (nnzb, bm, bk). For op="sdd".

        x: (M, n). b: (n, K), n as planned or less, both of the pattern's type, with any strides. out: C; None: a new array
        of b's kind. What blocks have beyond row M or column K becomes 0.
        """
        if self.op != Op.SDD:
            raise ArgumentError("the plan is of another product: Pattern.plan(op='sdd') makes one that samples")
        x_view, b_view = view(x), view(b)
        element(x_view, self.dtype, "x")
        element(b_view, self.dtype, "b")
        if x_view.ndim != 2 or b_view.ndim != 2:
            raise ArgumentError("x and b have two dimensions each: batches are not sampled")
        x_dense = taken(x_view, self.pattern.shape[0], -2, self.order_x, "x", stream)
        b_dense = taken(b_view, self.pattern.shape[1], -1, self.order_b, "b", stream)
        if self._columns(x_dense.n, "x") != b_dense.n:
            raise ArgumentError(f"x has {x_dense.n} columns, and b {b_dense.n} rows")
        c_view = self._output(out, self._values_shape, beta, b_view)
        copy = c_view
        if not c_view.dense or (c_view.kind == "numpy" and out is not None and c_view.array is not out):
            require_stream(c_view, stream, "out")
            copy = empty(c_view, self._values_shape, self.out_dtype)
            if beta:
                assign(copy.array, c_view)
        self._finish(None, b_dense, Dense(copy, 1, b_dense.n, 0, 0), None, alpha, beta, stream, x_dense)
        if copy is not c_view:
            assign(out, copy)
        return c_view.array if out is None else out

    def _columns(self, n: int, what: str) -> int:
        if n > self.n:
            raise ArgumentError(
                f"{what} has {n} {'columns' if self._sides.axis == -2 or what == 'x' else 'rows'}, the plan is for up to {self.n}"
            )
        return n

    def _output(self, out: Any, shape: tuple[int, ...], beta: float, like: View) -> View:
        if out is None:
            if beta:
                raise ArgumentError("beta needs out: the C that it is multiplied with")
            return made(like, shape, self.out_dtype, self.order_c)
        found = view(out)
        element(found, self.out_dtype, "out")
        if found.shape != shape:
            raise ArgumentError(f"out has the shape {found.shape}, and not {shape}")
        if found.readonly:
            raise ArgumentError(
                f"out, of type {type(out).__name__}, cannot be written to: give an array that can, or none, and take what is returned"
            )
        if found.kind == "numpy" and not isinstance(out, np.ndarray) and not hasattr(out, "__dlpack__"):
            raise ArgumentError(f"out, of type {type(out).__name__}, is no array: give one, such as numpy.empty({shape})")
        if not found.dense and any(extent > 1 and stride == 0 for extent, stride in zip(found.shape, found.strides, strict=True)):
            raise ArgumentError(f"out, of strides {found.strides}, has elements that share their memory: give an array of its own")
        return found

    def _finish(
        self,
        values: View | None,
        b: Dense,
        c: Dense,
        bias: View | None,
        alpha: float,
        beta: float,
        stream: int | None,
        x: Dense | None = None,
    ) -> None:
        """Multiplies operands whose shapes and types are right."""
        if c.view.size == 0:
            return
        context = self.pattern.context
        operands = (values, x.view if x is not None else None, b.view, bias, c.view)
        places = {(found.memory, found.device) for found in operands if found is not None and found.size}
        if len(places) > 1:
            names = zip(("values", "x", "b", "bias", "out"), operands, strict=True)
            lie = ", ".join(f"{name} {place(found)}" for name, found in names if found is not None and found.size)
            raise ArgumentError(f"operands do not lie in one memory: {lie}: copy them to where the others are")
        memory, device = places.pop()
        if memory == Memory.DEVICE and (context.memory, context.device) != (memory, device):
            raise ArgumentError(
                f"the arrays lie on GPU {device}, and the plan is for {context}: copy them, or give Pattern a Context of that GPU"
            )
        with Staging(context, memory) as staged:
            used = current_stream(b.view) if stream is None else stream
            self.run(
                values=staged.read(values) if values is not None else 0,
                b=staged.read(b.view),
                c=staged.write(c.view, beta != 0),
                x=staged.read(x.view) if x is not None else 0,
                n=b.n,
                ldb=b.ld,
                ldc=c.ld,
                ldx=x.ld if x is not None else 0,
                bias=staged.read(bias) if bias is not None else 0,
                alpha=alpha,
                beta=beta,
                stream=staged.stream if staged.active else used,
                batch=b.batch,
                stride_b=b.step,
                stride_c=c.step,
            )

    def __repr__(self) -> str:
        return f"Plan({self.pattern!r}, n={self.n}, kernel={self.info.kernel!r})"
