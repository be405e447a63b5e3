# SPDX-License-Identifier: Apache-2.0
"""Plans of the library for tensors, kept from one product to the next.

Patterns of the host are kept by sparsek.cache, which compares an index with the bytes that its pattern was made of, and so do
the calls that are kept here. Those of GPUs are kept by _device_patterns, under a key that no other index ever has.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch

from .. import _abi
from .._abi import MultiplyFlag
from .._arrays import contiguous, view
from .._handles import Shared
from .._library import library
from .._measuring import measuring
from ..cache import Cache, CacheInfo, Entry
from ..context import Context
from ..dtypes import BYTES
from ..errors import ArgumentError, UnsupportedError
from ..pattern import Pattern
from . import _known
from ._device_patterns import DeviceEntry, DevicePatterns, identity, is_capturing
from ._frozen import FrozenEntry, frozen
from ._types import TORCH_TYPES, require_dtype

patterns = Cache(256 << 20)
device_patterns = DevicePatterns(256 << 20)
on_clear: list[Callable[[bool], None]] = []
"""What else is to be cleared with them, each given `captured` of cache_clear."""
_contexts: dict[int, Context] = {}

_num_threads = torch.get_num_threads
_is_gone: Callable[[int], bool] = torch.UntypedStorage._expired  # of a storage that is held weakly
_raw_stream: Any = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # none in a torch without CUDA
_current_device: Any = getattr(torch._C, "_cuda_getDevice", None)
# Past the dispatcher, in a third of the time.
_empty: Any = getattr(_known._guards, "_empty_strided_cpu", None)
_empty_on_gpu: Any = getattr(_known._guards, "_empty_strided_cuda", None)


def cache_info() -> CacheInfo:
    """What the cache of patterns did since it was cleared, and what it holds. Products that are repeated do not ask it."""
    return CacheInfo(*map(sum, zip(patterns.info(), device_patterns.info(), strict=True)))


def cache_clear(captured: bool = False) -> None:
    """Drops the patterns and plans that are kept between products.

    Those that CUDA graphs use stay, unless `captured` is set: then none of these graphs may run any more. Weights that were
    frozen no longer are.
    """
    _known.forget()
    patterns.clear()
    device_patterns.clear(captured)
    frozen.clear(captured)
    for clear in on_clear:
        clear(captured)


def _after_fork() -> None:
    patterns.__init__(patterns.limit)  # type: ignore[misc]  # another thread of the parent may have held its lock
    device_patterns.__init__(device_patterns.limit)  # type: ignore[misc]
    frozen.__init__()  # type: ignore[misc]
    _known.forget()


os.register_at_fork(after_in_child=_after_fork)


def cpu_context() -> Context:
    """That of as many threads as torch has, so that the two do not compete for cores."""
    threads = torch.get_num_threads()
    found = _contexts.get(threads)
    if found is None:
        found = _contexts.setdefault(threads, Context("cpu", threads=threads))
    return found


def entry_of_weight(values: torch.Tensor, crow: torch.Tensor, col: torch.Tensor, size: Sequence[int]) -> Entry | DeviceEntry:
    """The pattern of a matrix with these values, with its plans. Raises what Pattern does."""
    return frozen.find(values, crow, col, size) or entry_of(crow, col, size, (values.shape[1], values.shape[2]), values.dtype)


def entry_of(crow: torch.Tensor, col: torch.Tensor, size: Sequence[int], block: tuple[int, int], dtype: torch.dtype) -> Entry | DeviceEntry:
    """The pattern of this index, with its plans. Raises what Pattern does."""
    kind = require_dtype(dtype)
    shape = (int(size[0]), int(size[1]))
    if crow.is_cuda:
        return device_patterns.entry(crow, col, shape, block, kind)
    if not crow.is_cpu:
        raise UnsupportedError(f"products are computed on the CPU and on CUDA devices: the tensors lie on {crow.device}")
    return patterns.entry(contiguous(view(crow)), contiguous(view(col)), shape, block, kind, True, cpu_context())


def keep_for_graphs(crow: torch.Tensor, col: torch.Tensor, values: torch.Tensor) -> None:
    """Keeps the values of a matrix that gets others, for as long as CUDA graphs that use them."""
    device_patterns.keep_for_graphs(crow, col, values)
    frozen.keep_for_graphs(values)


class _Plan:
    """A plan, with options of sparsek_plan_options. seconds: to measure kernels for, with `values` or those of the pattern."""

    def __init__(self, pattern: Pattern, options: dict[str, int], seconds: float = 0.0, values: torch.Tensor | None = None) -> None:
        lib = library()
        given = _abi.PlanOptions(**{"dtype_c": int(pattern.dtype), "tuning_seconds": seconds, **options})
        pointer = ctypes.c_void_p()
        self.is_tuned = seconds > 0
        with measuring() if self.is_tuned else nullcontext():
            if values is not None:
                stream = _raw_stream(values.get_device()) if values.is_cuda else 0
                lib.require(lib.matrix_set_values(pattern.pointer, values.data_ptr(), int(pattern.context.memory), stream))
            lib.require(lib.plan_create(pattern.pointer, ctypes.byref(given), ctypes.addressof(pointer)))
        assert pointer.value is not None
        self.pointer: int = pointer.value
        self._handle = Shared(pointer.value, lib.plan_destroy, pattern._handle)
        found = _abi.PlanInfo()
        lib.require(lib.plan_describe(pointer.value, ctypes.byref(found)))
        self.product_bytes: int = found.product_bytes

    def __del__(self) -> None:
        handle = self.__dict__.get("_handle")
        if handle is not None:
            handle.release()


class Call:
    """A product on the CPU of operands whose shapes, strides and types are known. Any number of threads may make it at once."""

    __slots__ = (
        "__weakref__",
        "_col_address",
        "_col_memory",
        "_columns",
        "_crow_memory",
        "_dtype",
        "_lib",
        "_members",
        "_multiply",
        "_plan",
        "_shape",
        "_spare",
        "_starts",
        "_strides",
        "_threads",
        "has_gradients",
        "looks_like",
        "misaligned",
    )

    looks_like: Callable[..., bool]
    """Whether operands look like those that it was kept for, see _known."""
    has_gradients: bool
    """Whether one of these is to have a gradient."""

    def __init__(self, entry: Any, plan: _Plan, options: dict[str, int], shape: tuple[int, ...], members: dict[str, Any]) -> None:
        self._plan = plan
        self._lib = library()
        self._multiply = self._lib.multiply_at
        self._shape, self._strides, self._dtype = shape, _strides(shape), TORCH_TYPES[entry.pattern.dtype]
        self._members = members
        self._spare: list[tuple[Any, int]] = []
        self.misaligned = options["alignment"] - 1
        """The bits that no address of a dense operand may have."""
        self._bind(entry)

    def _bind(self, entry: Entry) -> None:
        self._starts, self._columns, self._threads = entry.starts, entry.columns, _num_threads()

    def stay_with(self, crow: torch.Tensor, col: torch.Tensor) -> None:
        """Keeps in mind where the index lies that it is for."""
        self._crow_memory, self._col_memory = self._starts.memory_at(crow.data_ptr()), self._columns.memory_at(col.data_ptr())
        self._col_address = col.data_ptr()

    def serves(self, crow: torch.Tensor, col: torch.Tensor, values: torch.Tensor | None = None) -> bool:
        """Whether the index still is the one that it is for. It has crow of the address and size, and col of the size, of that.

        values: of A, where the product has some.
        """
        # The memory is there: the operands own it.
        return (
            self._starts == self._crow_memory
            and col.data_ptr() == self._col_address
            and self._columns == self._col_memory
            and self._threads == _num_threads()
        )

    def run(self, like: torch.Tensor, addresses: tuple[int, int, int, int], out: torch.Tensor | None = None) -> torch.Tensor:
        """Multiplies operands at these addresses, into `out` or a new tensor of the type and device of `like`.

        addresses: of values, b, the bias and x; 0 where the product has none.
        """
        c = self._new(like) if out is None else out
        try:
            spare = self._spare.pop()
        except IndexError:
            spare = self._new_args()
        args = spare[0]
        args.values, args.b, args.bias, args.x = addresses
        args.c = c.data_ptr()
        self._multiply_with(spare, like)
        self._spare.append(spare)
        return c

    def _new(self, like: torch.Tensor) -> torch.Tensor:
        return _empty(self._shape, self._strides, self._dtype) if _empty is not None else like.new_empty(self._shape)

    def _new_args(self) -> tuple[Any, int]:
        args = _abi.MultiplyArgs(**{"alpha": 1.0, **self._members})
        return args, ctypes.addressof(args)

    def _multiply_with(self, spare: tuple[Any, int], like: torch.Tensor) -> None:
        status = self._multiply(self._plan.pointer, spare[1])
        if status:
            self._lib.require(status)


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Those of a contiguous tensor."""
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * max(1, extent))
    return tuple(reversed(strides))


class DeviceCall(Call):
    """The same on a GPU, in torch's current stream, with workspace of torch's allocator."""

    __slots__ = (
        "_col",
        "_crow",
        "_device",
        "_identity",
        "_is_captured",
        "_is_only_device",
        "_places",
        "_storages",
        "_verdict",
        "_versions",
    )

    def _bind(self, entry: Any) -> None:
        self._verdict, self._is_captured, self._identity = entry.verdict, False, entry.identity
        self._storages = entry.storages
        self._places: tuple[int, int] = (entry.storages[0].cdata, entry.storages[1].cdata)
        self._device: int = entry.pattern.context.device
        self._is_only_device = torch.cuda.device_count() == 1  # torch takes a while to tell the current one
        self._members["flags"] = int(MultiplyFlag.TRUSTED)

    def stay_with(self, crow: torch.Tensor, col: torch.Tensor) -> None:
        """Keeps the tensors in mind, weakly: the same objects are known in a third of the time that their identity takes."""
        self._crow: Callable[[], Any] = weakref.ref(crow)
        self._col: Callable[[], Any] = weakref.ref(col)
        self._versions, self._col_address = (crow._version, col._version), col.data_ptr()

    def serves(self, crow: torch.Tensor, col: torch.Tensor, values: torch.Tensor | None = None) -> bool:
        """Whether the index is the very one that it is for, and right as far as is known. crow has the address and size of that."""
        first, second = self._places
        # While the storages live, nothing else has their addresses.
        if self._crow() is crow and self._col() is col and not (_is_gone(first) or _is_gone(second)):
            if crow._version != self._versions[0] or col._version != self._versions[1] or col.data_ptr() != self._col_address:
                return False
        elif self._identity != identity(crow, col):
            return False
        if not self._verdict.is_known:
            self._verdict.look()
        return True

    def _new(self, like: torch.Tensor) -> torch.Tensor:
        return self._made(self._shape, self._strides, self._dtype, like)

    def _made(self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype, like: torch.Tensor) -> torch.Tensor:
        if _empty_on_gpu is None or not (self._is_only_device or _current_device() == self._device):
            return like.new_empty(shape, dtype=dtype)
        made: torch.Tensor = _empty_on_gpu(shape, strides, dtype)
        return made

    def _multiply_with(self, spare: tuple[Any, int], like: torch.Tensor) -> None:
        args = spare[0]
        args.stream = stream = _raw_stream(self._device)
        plan = self._plan
        if plan.product_bytes:
            # The allocator keeps it for this stream's later work, or for the graph that the stream is captured into.
            workspace = self._made((plan.product_bytes,), (1,), torch.uint8, like)
            args.workspace, args.workspace_bytes = workspace.data_ptr(), plan.product_bytes
        if stream and not self._is_captured and is_capturing():  # the default stream, 0, is never captured
            self._is_captured = True
            self._verdict.captured.append(self)  # so the graph's plan stays
        status = self._multiply(plan.pointer, spare[1])
        if status:
            self._lib.require(status)


class FrozenCall(DeviceCall):
    """The same with the values of a frozen weight."""

    __slots__ = ("_values",)

    def _bind(self, entry: Any) -> None:
        super()._bind(entry)
        self._values = entry.values

    def serves(self, crow: torch.Tensor, col: torch.Tensor, values: torch.Tensor | None = None) -> bool:
        """Whether index and values are those that it is for."""
        return values is not None and self._values.are(values) and super().serves(crow, col)


def made_call(
    entry: Entry | DeviceEntry,
    options: dict[str, int],
    shape: tuple[int, ...],
    members: dict[str, Any],
    make_values: Callable[[], torch.Tensor],
) -> Call:
    """A call of the pattern's plan with these options. make_values: of the pattern, to be multiplied where kernels are measured."""
    key = tuple(options.items())

    kind = FrozenCall if isinstance(entry, FrozenEntry) else DeviceCall if isinstance(entry, DeviceEntry) else Call

    def make() -> _Plan:
        measured = _measured(entry, make_values)
        if kind is not FrozenCall:
            return _Plan(entry.pattern, options, *measured)
        if is_capturing():
            raise ArgumentError(
                "this product of a frozen weight is not known yet, and its stream is being captured into a CUDA graph: make one "
                "of the same kind before the capture"
            )
        return _Plan(entry.pattern, options, *measured[:1])  # its pattern has the values

    plan = entry.plans.get(key, make)
    if tuning.seconds > 0 and not plan.is_tuned and _measured(entry, make_values):
        plan = make()
        entry.plans.put(key, plan)
    return kind(entry, plan, options, shape, members)


def _measured(entry: Entry | DeviceEntry, make_values: Callable[[], torch.Tensor]) -> tuple[()] | tuple[float, torch.Tensor]:
    """What a plan is given where kernels are to be measured for it, which a capture allows for none."""
    if tuning.seconds <= 0 or entry.pattern.nnzb == 0 or (isinstance(entry, DeviceEntry) and is_capturing()):
        return ()
    return tuning.seconds, make_values()


class tuning:  # it reads as a function
    """Within `with tuning(0.05):`, each product that has not been measured yet measures kernels for so many seconds.

    That holds for all threads of the process, and so for backward passes; CUDA graphs are captured with what is known. What
    was measured goes on to be used, here and, by the tuning cache of the user, in other processes.
    """

    seconds = 0.0

    def __init__(self, seconds: float) -> None:
        if seconds < 0:
            raise ArgumentError(f"kernels cannot be measured for {seconds} s")
        self._asked, self._before = seconds, 0.0

    def __enter__(self) -> None:
        self._before, tuning.seconds = tuning.seconds, self._asked
        _known.forget()  # each product is looked up once more

    def __exit__(self, *_: object) -> None:
        tuning.seconds = self._before


def alignment_of(entry: Entry | DeviceEntry, *addresses_and_steps: int) -> int:
    """Bytes that all these are multiples of, as far as plans tell them apart: on the CPU an element's."""
    least = BYTES[entry.pattern.dtype]
    if not isinstance(entry, DeviceEntry):
        return least
    every = 16
    for number in addresses_and_steps:
        every |= number
    return max(least, every & -every)
