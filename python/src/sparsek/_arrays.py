# SPDX-License-Identifier: Apache-2.0
"""Arrays of any package, as the library takes them: an address, a type, a shape and strides."""

from __future__ import annotations

import ctypes
import sys
from math import prod
from typing import Any

import numpy as np

from ._abi import Dtype, Memory
from .dtypes import BITS, dtype_of, numpy_dtype
from .errors import ArgumentError, DtypeError

HEAD = object.__basicsize__
_Word = ctypes.c_size_t
_DEFAULT_STREAMS = {0, 1}  # two names of one
_DLPACK_CPU = 1  # kDLCPU
_NAMES = {Dtype.BF16: "bfloat16", Dtype.FP16: "float16", Dtype.FP32: "float32", Dtype.FP64: "float64"}


def _address_by_interface(array: np.ndarray[Any, Any]) -> int:
    return int(array.ctypes.data)


def _address_by_struct(array: np.ndarray[Any, Any], at: Any = _Word.from_address, identity: Any = id, head: int = HEAD) -> int:
    # The first member behind the head of NumPy's public struct PyArrayObject_fields. Much faster than the above.
    address: int = at(identity(array) + head).value
    return address


class _Fields(ctypes.Structure):
    """That struct, behind its head: all that an array is but its extents and strides, which have addresses in it."""

    _fields_ = (
        ("data", ctypes.c_size_t),
        ("nd", ctypes.c_int),
        ("dimensions", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("base", ctypes.c_size_t),
        ("descr", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


_FIELDS = ctypes.c_char * (_Fields.flags.offset + _Fields.flags.size)


def fields_of(array: np.ndarray[Any, Any]) -> Any:
    """What an array is, as bytes that change where it does, for as long as it lives: the first are its address."""
    return _FIELDS.from_address(id(array) + HEAD)


def address_in(fields: bytes | bytearray) -> int:
    """The address in the bytes that `fields_of` had."""
    return _Word.from_buffer_copy(fields).value


def _has_fields() -> bool:
    probe = np.zeros((3, 5), np.uint8)[1:, 2:]
    if _address_by_struct(probe) != probe.ctypes.data:
        return False
    found = _Fields.from_address(id(probe) + HEAD)
    return bool(
        (found.nd, found.descr, found.flags) == (2, id(probe.dtype), probe.flags.num)
        and (found.dimensions[0], found.strides[0]) == (probe.shape[0], probe.strides[0])
    )


HAS_FIELDS = _has_fields()
"""Whether arrays are as NumPy's headers say, so that they can be looked at by their memory."""

address_of = _address_by_struct if HAS_FIELDS else _address_by_interface
"""The address of a NumPy array's first element."""


def reader() -> tuple[Any, Any]:
    """A number to be set to id(array) + HEAD, and what then has the array's address as [0]. No other way takes as little time."""
    place = _Word()
    return place, ctypes.POINTER(_Word).from_buffer(place)


class View:
    """Where an array lies and what it is.

    shape and strides count elements; kind is what the array belongs to: "numpy", "torch", "cupy" or "dlpack". A view
    keeps its array alive.
    """

    __slots__ = ("_dense", "_strides", "address", "array", "device", "dtype", "kind", "memory", "name", "readonly", "shape", "stream")

    def __init__(
        self,
        array: Any,
        kind: str,
        address: int,
        name: str,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None,  # None: the elements lie one after the other
        memory: Memory = Memory.HOST,
        device: int = 0,
        readonly: bool = False,
        stream: int | None = None,
    ) -> None:
        self.array, self.kind, self.address, self.name = array, kind, address, name
        self.shape, self._strides, self.memory, self.device = shape, strides, memory, device
        self.readonly, self.stream = readonly, stream
        self._dense = True if strides is None else None
        self.dtype: Dtype | None = None  # of floating-point elements; see element

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        if self._strides is None:
            self._strides = dense_strides(self.shape)
        return self._strides

    @property
    def dense(self) -> bool:
        """Whether the elements lie one after the other, the last index the fastest."""
        if self._dense is None:
            steps = zip(self.shape, self.strides, dense_strides(self.shape), strict=True)
            self._dense = self.size == 0 or all(extent == 1 or stride == step for extent, stride, step in steps)
        return self._dense


def dense_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of elements that lie one after the other."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


_numpy_names: dict[np.dtype[Any], str] = {}  # NumPy works a type's name out each time


def _name(kind: np.dtype[Any]) -> str:
    name = _numpy_names.get(kind)
    if name is None:
        name = _numpy_names[kind] = kind.name if kind.isnative else f"{kind.name} of the other byte order"
    return name


def is_torch(array: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def _view_numpy(array: np.ndarray[Any, Any]) -> View:
    if type(array) is not np.ndarray:
        masked = sys.modules.get("numpy.ma")
        if masked is not None and isinstance(array, masked.MaskedArray):
            raise ArgumentError("masked elements have no numbers to multiply: call .filled(0), or take .data")
    flags = array.flags
    if flags.carray:
        return View(array, "numpy", address_of(array), _name(array.dtype), array.shape, None)
    size = array.itemsize
    if not flags.aligned or (array.size and any(stride % size for stride in array.strides)):
        array = array.copy()
    strides = tuple([stride // size for stride in array.strides])
    return View(array, "numpy", address_of(array), _name(array.dtype), array.shape, strides, Memory.HOST, 0, not flags.writeable)


def _view_torch(tensor: Any) -> View:
    torch = sys.modules["torch"]
    if tensor.requires_grad and torch.is_grad_enabled():
        raise ArgumentError("this call records no gradients: detach the tensor, or call it within torch.no_grad()")
    device = tensor.device
    if device.type not in ("cpu", "cuda") or tensor.layout != torch.strided:
        raise ArgumentError(f"a dense tensor on the CPU or a CUDA device is needed, not one of {tensor.layout} on {device}")
    memory = Memory.HOST if device.type == "cpu" else Memory.DEVICE
    name = str(tensor.dtype).removeprefix("torch.")
    return View(
        tensor, "torch", tensor.data_ptr(), name, tuple(tensor.shape), tuple(tensor.stride()), memory=memory, device=device.index or 0
    )


def _view_cuda(array: Any) -> View:
    interface = array.__cuda_array_interface__
    if interface.get("mask") is not None:
        raise ArgumentError(f"{type(array).__name__}: masked elements have no numbers to multiply: call .filled(0)")
    kind = np.dtype(interface["typestr"])
    shape = tuple(int(extent) for extent in interface["shape"])
    address, readonly = interface["data"]
    bytes_apart = interface.get("strides")
    strides = None if bytes_apart is None else tuple(stride // kind.itemsize for stride in bytes_apart)
    device = getattr(getattr(array, "device", None), "id", 0)
    stream = interface.get("stream")
    module = type(array).__module__.split(".")[0]
    return View(
        array,
        "cupy" if module == "cupy" else "dlpack",
        address or 0,
        _name(kind),
        shape,
        strides,
        memory=Memory.DEVICE,
        device=device if isinstance(device, int) else 0,
        readonly=readonly,
        stream=stream,
    )


def place(found: View) -> str:
    """Where an array lies, for messages."""
    return "on the host" if found.memory == Memory.HOST else f"on GPU {found.device}"


def view(array: Any) -> View:
    """The view of an array: of NumPy, torch, CuPy or JAX, or of whatever has one of their protocols.

    What is no array (a list) becomes one of NumPy's. Raises ArgumentError and DtypeError.
    """
    if isinstance(array, np.ndarray):
        return _view_numpy(array)
    if is_torch(array):
        return _view_torch(array)
    if hasattr(array, "__cuda_array_interface__"):
        return _view_cuda(array)
    if hasattr(array, "__dlpack_device__") and array.__dlpack_device__()[0] != _DLPACK_CPU:
        raise ArgumentError(f"{type(array).__name__}: memory of this device is reached by __cuda_array_interface__ only, which it lacks")
    if hasattr(array, "__dlpack__") and not hasattr(array, "__array__"):
        return _view_numpy(np.from_dlpack(array))
    made = np.asarray(array)
    if made.dtype.kind in "OSU":
        raise DtypeError(f"{type(array).__name__} is no dense array of numbers: give one of NumPy, torch, CuPy or JAX")
    return _view_numpy(made)


def contiguous(found: View) -> View:
    """The view itself where its elements lie one after the other, else one of a copy, of the same kind."""
    if found.dense:
        return found
    copy = _copy(found)
    copy.dtype = found.dtype
    return copy


def _copy(found: View) -> View:
    if found.kind == "torch":
        return _view_torch(found.array.contiguous())
    if found.kind == "numpy":
        return _view_numpy(np.ascontiguousarray(found.array))
    cupy = sys.modules.get("cupy")
    if cupy is None:
        raise ArgumentError(f"{type(found.array).__name__}: an array in device memory has to be contiguous where CuPy is not in use")
    return _view_cuda(cupy.ascontiguousarray(cupy.asarray(found.array)))


def require_stream(found: View, stream: int | None, what: str) -> None:
    """Raises ArgumentError where a copy of an array on a GPU would be made in another stream than it is used in."""
    if stream is None or found.memory == Memory.HOST:
        return
    current = current_stream(found)
    if current != stream and {current, stream} != _DEFAULT_STREAMS:
        raise ArgumentError(
            f"{what}, of shape {found.shape} and strides {found.strides}, has to be copied, which its package does in its current "
            f"stream ({current}) and not in stream={stream}: make that one current, or give an array that needs no copy"
        )


def empty(like: View, shape: tuple[int, ...], dtype: Dtype) -> View:
    """A view of a new array of the kind and on the device of `like`."""
    if like.kind == "numpy":
        made = _view_numpy(np.empty(shape, numpy_dtype(dtype, like.array.dtype)))
    elif like.kind == "torch":
        torch = sys.modules["torch"]
        made = _view_torch(torch.empty(shape, dtype=getattr(torch, _NAMES[dtype]), device=like.array.device))
    else:
        cupy = sys.modules.get("cupy")
        if cupy is None or dtype == Dtype.BF16:
            raise ArgumentError(
                f"{type(like.array).__name__}: out has to be given, since no package is in use that could make it; arrays of JAX "
                "are for sparsek.jax"
            )
        with cupy.cuda.Device(like.device):
            made = _view_cuda(cupy.empty(shape, _NAMES[dtype]))
    made.dtype = dtype
    return made


def assign(target: Any, source: View) -> None:
    """Copies the elements of a view into an array of the same kind and shape."""
    if source.kind == "torch":
        target.copy_(source.array)
    else:
        target[...] = source.array


def current_stream(found: View) -> int:
    """The stream in which the package of the array works now; 0 is the default stream."""
    if found.memory == Memory.HOST:
        return 0
    if found.stream is not None:
        return found.stream
    if found.kind == "torch":
        return int(sys.modules["torch"].cuda.current_stream(found.device).cuda_stream)
    cupy = sys.modules.get("cupy")
    return int(cupy.cuda.get_current_stream().ptr) if cupy is not None else 0


def element(found: View, expected: Dtype | None, what: str) -> Dtype:
    """The type of a view's elements; bits stand for bf16 where that is expected. Raises DtypeError."""
    dtype = Dtype.BF16 if found.name == BITS.name and expected == Dtype.BF16 else dtype_of(found.name)
    if expected is not None and dtype != expected:
        raise DtypeError(f"{what} is of {dtype.name.lower()}, and not of {expected.name.lower()} as it has to be: convert it")
    found.dtype = dtype
    return dtype
