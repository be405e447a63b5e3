# SPDX-License-Identifier: Apache-2.0
"""Attention over a block-sparse layout, and its gradients."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from . import _abi
from ._abi import AttentionFlag, BsrFlag, Dtype, Memory, Status
from ._arrays import View, contiguous, current_stream, element, empty, place, require_stream, view
from ._extents import extents
from ._handles import Owner, Shared
from ._index import index_pair, index_type
from ._library import library
from .context import Context, context_of
from .dtypes import dtype_of
from .errors import ArgumentError

__all__ = ["Attention", "AttentionInfo", "AttentionLayout"]

Strides = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class AttentionLayout:
    """Which blocks of queries by keys there are: the index of a matrix without values.

    crow: where each block row begins. There are ceil(queries / block[0]) block rows for each layout batch and layout head,
    one after the other. col: the block of keys of each block, increasing within a block row. block: queries and keys of a block.
    batch: 1, one layout for all batches, or as many as these. heads: a divisor of the query heads, of which so many one
    after the other share a layout. The arrays lie on the host, or on the GPU of the attention.
    bounded: col may be longer than crow says.
    """

    crow: Any
    col: Any
    block: tuple[int, int]
    batch: int = 1
    heads: int = 1
    bounded: bool = False

    def __post_init__(self) -> None:
        extents(self.block, "block", "queries", "keys")


@dataclass(frozen=True)
class AttentionInfo:
    """How attention is computed."""

    kernel: str
    """Of the forward pass."""
    backward: str
    """Of the backward pass; "" where it is not served."""
    blocks: int
    """That are computed, with sequences of full length, over all batches and heads; this and the next two: -1 of a layout on a GPU."""
    partial: int
    """Of these, blocks that a rule or the end of a sequence cuts."""
    pairs: int
    """A query and a key that it sees."""
    forward_bytes: int
    backward_bytes: int
    unit_roundoff: float
    product_roundoff: float


_WHOLE = 128  # queries and keys of a block where there is no layout
_SUMS = ("lse", "mass")  # of the type of the sums


class Attention(Owner):
    """How O = softmax(scale Q K^T) V is computed over the keys that each query sees: made once, called any number of times.

    q_shape: (batch, query heads, queries, head size). k_shape: (batch, key heads, keys, head size), of which the number of
    heads divides that of the queries. head_size_v: of V and O; None: as of K. dtype: "bf16", "fp16", "fp32" or "fp64".
    out_dtype: of O, None: dtype, from which it differs where that is Dtype.E4M3 alone. Of this `run` takes operands, no arrays.
    layout: which blocks there are; None: all. causal: no key behind its query. window: (left, right): no key before p - left
    or behind p + right for the query at p; None: no limit. align_ends: the last query is at the last key, else the first at the first.
    scale: None: 1 / sqrt(head size). soft_cap: above 0, scores are soft_cap tanh(score / soft_cap). workers: the most CTAs or
    threads to use, 0: all. any_order: the backward pass may add the parts of the gradient of q in any order, which is faster on a GPU;
    its last bits then differ from call to call. context: None: the CPU. Of a layout on a GPU: stream: in which it is read, None: the
    current one of its package; wait: whether to wait until it has been read and checked; if not, `require` raises what was found, and
    until then a wrong layout is one without blocks.

    Several threads may call one at once. Raises ArgumentError, DtypeError, IndexFault, UnsupportedError and OutOfMemory.
    """

    def __init__(
        self,
        q_shape: tuple[int, int, int, int],
        k_shape: tuple[int, int, int, int],
        *,
        dtype: Any,
        out_dtype: Any = None,
        head_size_v: int | None = None,
        layout: AttentionLayout | None = None,
        causal: bool = False,
        window: tuple[int | None, int | None] = (None, None),
        align_ends: bool = False,
        scale: float | None = None,
        soft_cap: float = 0.0,
        any_order: bool = False,
        kernel: str | None = None,
        workers: int = 0,
        context: Context | None = None,
        stream: int | None = None,
        wait: bool = True,
    ) -> None:
        batch, heads_q, seq_q, size = extents(q_shape, "q_shape", "batch", "query heads", "queries", "head size")
        batch_k, heads_k, seq_k, size_k = extents(k_shape, "k_shape", "batch", "key heads", "keys", "head size")
        if (batch, size) != (batch_k, size_k):
            raise ArgumentError(f"q of shape {tuple(q_shape)} and k of shape {tuple(k_shape)} have no common batch and head size")
        size_v = size if head_size_v is None else head_size_v
        left, right = rules_of(causal, window)
        if layout is not None and not isinstance(layout, AttentionLayout):
            raise ArgumentError(f"layout is a {type(layout).__name__}: give AttentionLayout(crow, col, block)")
        if scale == 0:
            raise ArgumentError("scale=0 makes all scores equal: give another, or None for 1 / sqrt(head size)")
        self.dtype: Dtype = dtype_of(dtype)
        self.out_dtype: Dtype = dtype_of(dtype if out_dtype is None else out_dtype)
        self.context = context_of(context)
        self._shapes = {
            "q": (batch, heads_q, seq_q, size),
            "k": (batch, heads_k, seq_k, size),
            "v": (batch, heads_k, seq_k, size_v),
            "o": (batch, heads_q, seq_q, size_v),
            "lse": (batch, heads_q, seq_q),
        }
        high, wide = (_WHOLE, _WHOLE) if layout is None else (int(extent) for extent in layout.block)
        if min(high, wide) > 0:
            self._shapes["mass"] = (batch, heads_q, -(-seq_q // high), -(-seq_k // wide))
        self._sums = Dtype.FP64 if self.dtype == Dtype.FP64 else Dtype.FP32
        flags = (AttentionFlag.LEFT if left is not None else 0) | (AttentionFlag.RIGHT if right is not None else 0)
        flags |= (AttentionFlag.ALIGN_ENDS if align_ends else 0) | (AttentionFlag.ANY_ORDER if any_order else 0)
        self._options = _abi.AttentionOptions(
            batch=batch,
            heads_q=heads_q,
            heads_k=heads_k,
            seq_q=seq_q,
            seq_k=seq_k,
            head_size=size,
            head_size_v=size_v,
            layout_batch=1 if layout is None else layout.batch,
            layout_heads=1 if layout is None else layout.heads,
            window_left=left or 0,
            window_right=right or 0,
            scale=scale or 0.0,
            soft_cap=soft_cap,
            dtype=int(self.dtype),
            flags=int(flags),
            kernel=None if kernel is None else kernel.encode(),
            workers=workers,
            dtype_o=int(self.out_dtype),
        )
        bsr = None if layout is None else self.bsr(layout, stream)
        lib = self._lib = library()
        pointer = ctypes.c_void_p()
        lib.require(lib.attention_create(self.context.pointer, ctypes.byref(self.options(bsr)), ctypes.addressof(pointer)))
        assert pointer.value is not None
        self._handle = Shared(pointer.value, lib.attention_destroy, self.context._handle)
        if wait:
            self.require()
        found = _abi.AttentionInfo()
        lib.require(lib.attention_info(pointer.value, ctypes.byref(found)))
        self.info = AttentionInfo(
            found.kernel.decode(),
            found.backward.decode(),
            found.blocks,
            found.partial,
            found.pairs,
            found.forward_bytes,
            found.backward_bytes,
            found.unit_roundoff,
            found.product_roundoff,
        )

    def require(self, wait: bool = True) -> bool:
        """Raises IndexFault where the layout is wrong, and returns whether it has been checked. wait: until it is."""
        status = self._lib.attention_status(self.pointer, int(wait))
        if status == Status.NOT_READY:
            return False
        self._lib.require(status)
        return True

    def update(self, layout: AttentionLayout, *, stream: int | None = None) -> None:
        """Another layout of the same rows and blocks, with no more blocks: of a GPU's attention, as the first, on the GPU.

        There nothing is waited for, and the call may be captured into a CUDA graph, whose replays read what the arrays hold by then;
        `require` raises what is wrong with them. Calls that came before must be before it in the stream.
        """
        if (layout.batch, layout.heads) != (self._options.layout_batch, self._options.layout_heads):
            raise ArgumentError(
                f"the attention was made for {self._options.layout_batch} x {self._options.layout_heads} layouts, and not for "
                f"{layout.batch} x {layout.heads}"
            )
        bsr = self.bsr(layout, stream)
        self._lib.require(self._lib.attention_update(self.pointer, ctypes.byref(bsr[0])))

    def forward(
        self,
        q: Any,
        k: Any,
        v: Any,
        out: Any = None,
        *,
        mass: Any = None,
        lengths_q: Any = None,
        lengths_k: Any = None,
        stream: int | None = None,
    ) -> tuple[Any, Any]:
        """O, (batch, query heads, queries, head size of V), and LSE, the logarithm of each query's sum of exp(score).

        q, k, v: of the shapes and the type that were planned, with any strides; what does not lie in rows is copied. out: O;
        None: a new array of q's kind. mass: (batch, query heads, blocks of queries, blocks of keys) of LSE's type, where what share of
        the weights each block has is written: the sum of exp(score - LSE) over its queries and keys, 0 of blocks that the layout
        does not have; without a layout blocks are 128 x 128. lengths_q, lengths_k: (batch) of int32: how long each sequence is; None: of
        full length.
        LSE is of fp32, or fp64 where Q is of it. A query that sees no key has O = 0 and LSE = -inf. All lie in the memory of
        the context. stream: of a GPU's call, None: the current one of q's package.
        """
        found = {name: self._rows(array, name, stream) for name, array in (("q", q), ("k", k), ("v", v))}
        found["o"] = self._new(found["q"], "o") if out is None else self._written(out, "o")
        lse = self._new(found["q"], "lse")
        sums = {"lse": lse} if mass is None else {"lse": lse, "mass": self._written(mass, "mass")}
        self._run(self._lib.attention_forward, found, sums, lengths_q, lengths_k, stream)
        return found["o"].array if out is None else out, lse.array

    def backward(
        self,
        grad_o: Any,
        q: Any,
        k: Any,
        v: Any,
        o: Any,
        lse: Any,
        *,
        lengths_q: Any = None,
        lengths_k: Any = None,
        stream: int | None = None,
    ) -> tuple[Any, Any, Any]:
        """The gradients of Q, K and V, where that of O is grad_o; o and lse are those of the forward pass."""
        operands = (("q", q), ("k", k), ("v", v), ("o", o), ("grad_o", grad_o))
        found = {name: self._rows(array, name, stream) for name, array in operands}
        sums = self._rows(lse, "lse", stream)
        for name in ("q", "k", "v"):
            found[f"grad_{name}"] = self._new(found["q"], name)
        self._run(self._lib.attention_backward, found, {"lse": sums}, lengths_q, lengths_k, stream)
        return found["grad_q"].array, found["grad_k"].array, found["grad_v"].array

    def run(self, backward: bool, **members: Any) -> None:
        """A pass over operands by their addresses, with the members of sparsek_attention_args; what is left out is 0 there.

        Nothing is checked that the library cannot see: types, and whether the memory is as long as it has to be.
        """
        function = self._lib.attention_backward if backward else self._lib.attention_forward
        self._lib.require(function(self.pointer, ctypes.byref(_abi.AttentionArgs(**members))))

    def _run(
        self, function: Any, found: dict[str, View], sums: dict[str, View], lengths_q: Any, lengths_k: Any, stream: int | None
    ) -> None:
        sequences = {"lengths_q": self.lengths(lengths_q, "lengths_q"), "lengths_k": self.lengths(lengths_k, "lengths_k")}
        lying = {**found, **sums, **{name: lengths for name, lengths in sequences.items() if lengths is not None}}
        there = (self.context.memory, self.context.device if self.context.memory == Memory.DEVICE else 0)
        for name, operand in lying.items():
            if operand.size and (operand.memory, operand.device) != there:
                raise ArgumentError(f"{name} lies {place(operand)}, and the attention is for {self.context}: copy it there")
        args = _abi.AttentionArgs(stream=current_stream(found["q"]) if stream is None else stream)
        for name, operand in lying.items():
            setattr(args, name, operand.address)
            if name in found:
                setattr(args, f"stride_{name}", strides_of(operand.shape, operand.strides))
        self._lib.require(function(self.pointer, ctypes.byref(args)))

    def operand(self, array: Any, name: str) -> View:
        """The view of an operand of that name in sparsek_attention_args. Raises ArgumentError and DtypeError."""
        found = view(array)
        element(found, self._sums if name in _SUMS else self.dtype, name)
        expected = self._shapes[name.removeprefix("grad_")]
        if found.shape != expected:
            raise ArgumentError(f"{name} has the shape {found.shape}, and not {expected}")
        return found

    def _rows(self, array: Any, name: str, stream: int | None) -> View:
        """An operand that is read, or a copy where its rows do not lie as they have to."""
        found = self.operand(array, name)
        if found.dense if name == "lse" else lies_in_rows(found.shape, found.strides):
            return found
        require_stream(found, stream, name)
        return contiguous(found)

    def _written(self, array: Any, name: str) -> View:
        found = self.operand(array, name)
        if found.readonly or not found.dense or (found.kind == "numpy" and found.array is not array):
            raise ArgumentError(
                f"{name} has to be a contiguous array that can be written to: give one of its own, such as numpy.empty makes"
            )
        return found

    def _new(self, like: View, name: str) -> View:
        return empty(like, self._shapes[name], self._sums if name == "lse" else self.dtype)

    def lengths(self, array: Any, name: str) -> View | None:
        """The view of the lengths of sequences. Raises ArgumentError."""
        if array is None:
            return None
        found = view(array)
        if found.name != "int32" or found.shape != self._shapes["q"][:1] or not found.dense:
            raise ArgumentError(f"{name} is of {found.name} and shape {found.shape}: a length of int32 for each batch is needed")
        return found

    def options(self, bsr: tuple[_abi.Bsr, View, View] | None) -> _abi.AttentionOptions:
        """Those of the library, with a layout of `bsr`, which has to live as long."""
        made = _abi.AttentionOptions.from_buffer_copy(self._options)
        made.layout = None if bsr is None else ctypes.addressof(bsr[0])
        return made

    def bsr(self, layout: AttentionLayout, stream: int | None = None) -> tuple[_abi.Bsr, View, View]:
        """The layout as the library takes it, and the arrays that it refers to. Raises ArgumentError and DtypeError."""
        starts, columns = index_pair(layout.crow, layout.col)
        if starts.memory == Memory.DEVICE and (self.context.memory, self.context.device) != (starts.memory, starts.device):
            raise ArgumentError(f"the layout lies {place(starts)}, and the attention is for {self.context}: copy it to the host")
        high, wide = (int(extent) for extent in layout.block)
        if high < 1 or wide < 1:
            raise ArgumentError(f"a layout of blocks of {high}x{wide} does not exist")
        rows = layout.batch * layout.heads * -(-self._options.seq_q // high)
        if starts.size != rows + 1:
            raise ArgumentError(
                f"crow of the layout has {starts.size} elements, and not {rows + 1}: one more than its {layout.batch} x {layout.heads} "
                f"parts have block rows of {high} queries"
            )
        bsr = _abi.Bsr(
            rows=rows * high,
            cols=self._options.seq_k,
            block_m=high,
            block_k=wide,
            nnzb=columns.size,
            dtype=int(self.dtype),
            index_type=index_type(starts.name, "crow"),
            memory=int(starts.memory),
            row_ptr=starts.address,
            col_idx=columns.address,
            stream=current_stream(starts) if stream is None else stream,
            flags=int(BsrFlag.ASYNC) | (int(BsrFlag.BOUND) if layout.bounded else 0),
        )
        return bsr, starts, columns

    def __repr__(self) -> str:
        return f"Attention(q={self._shapes['q']}, k={self._shapes['k']}, {self.dtype.name.lower()}, kernel={self.info.kernel!r})"


def rules_of(causal: bool, window: tuple[int | None, int | None]) -> tuple[int | None, int | None]:
    """The limits on the left and on the right."""
    try:
        left, right = window
    except (TypeError, ValueError):
        raise ArgumentError(f"window={window!r} is not (left, right), each a number of keys or None for no limit") from None
    if not causal:
        return left, right
    if right is not None:
        raise ArgumentError(f"causal and a window with a right side, {right}, are both given: causal is a right side of 0")
    return left, 0


def lies_in_rows(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether the library can read an operand where it lies: elements of a row follow each other, and no stride is negative."""
    if (shape[-1] > 1 and strides[-1] != 1) or min(strides) < 0:
        return False
    return any(strides_of(shape, strides))  # three strides of 0 would mean that there are no gaps


def strides_of(shape: tuple[int, ...], strides: tuple[int, ...]) -> Strides:
    """Elements from one batch, head and row to the next; those of an extent of 1 are what they are without gaps."""
    batch, heads, rows, size = shape
    found = [strides[0] if batch > 1 else 0, strides[1] if heads > 1 else 0, strides[2] if rows > 1 else 0]
    if rows < 2:
        found[2] = size
    if heads < 2:
        found[1] = found[2] * rows
    if batch < 2:
        found[0] = found[1] * heads
    return found[0], found[1], found[2]
