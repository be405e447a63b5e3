# SPDX-License-Identifier: Apache-2.0
"""Functions that XLA calls with its own buffers: its FFI, as much of it as products on the CPU and on a GPU need."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

_EXECUTE = 3  # XLA_FFI_ExecutionStage_EXECUTE
_METADATA = 1  # XLA_FFI_Extension_Metadata
_INVALID_ARGUMENT, _INTERNAL = 3, 13  # XLA_FFI_Error_Code

# XLA_FFI_DataType: how NumPy holds the elements, and what they are.
_TYPES = {
    3: (np.int16, "int16"),
    4: (np.int32, "int32"),
    5: (np.int64, "int64"),
    10: (np.float16, "float16"),
    11: (np.float32, "float32"),
    12: (np.float64, "float64"),
    16: (np.uint16, "bfloat16"),
}


class _Head(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p))


class _Version(ctypes.Structure):
    _fields_ = (*_Head._fields_, ("major", ctypes.c_int), ("minor", ctypes.c_int))


class _Api(ctypes.Structure):
    _fields_ = (
        *_Head._fields_,
        ("version", _Version),
        ("internal", ctypes.c_void_p),
        ("error_create", ctypes.c_void_p),
        ("error_get_message", ctypes.c_void_p),
        ("error_destroy", ctypes.c_void_p),
        ("handler_register", ctypes.c_void_p),
        ("stream_get", ctypes.c_void_p),
        ("type_register", ctypes.c_void_p),
        ("execution_context_get", ctypes.c_void_p),
        ("state_set", ctypes.c_void_p),
        ("state_get", ctypes.c_void_p),
        ("device_memory_allocate", ctypes.c_void_p),
        ("device_memory_free", ctypes.c_void_p),
        ("thread_pool_schedule", ctypes.c_void_p),
        ("thread_pool_num_threads", ctypes.c_void_p),
        ("future_create", ctypes.c_void_p),
        ("future_set_available", ctypes.c_void_p),
        ("future_set_error", ctypes.c_void_p),
        ("run_id_get", ctypes.c_void_p),
        ("device_ordinal_get", ctypes.c_void_p),
    )


class _Error(ctypes.Structure):
    _fields_ = (*_Head._fields_, ("message", ctypes.c_char_p), ("code", ctypes.c_int))


class _ErrorText(ctypes.Structure):
    _fields_ = (*_Head._fields_, ("error", ctypes.c_void_p), ("message", ctypes.c_char_p))


class _ErrorEnd(ctypes.Structure):
    _fields_ = (*_Head._fields_, ("error", ctypes.c_void_p))


class _StreamGet(ctypes.Structure):
    _fields_ = (*_Head._fields_, ("context", ctypes.c_void_p), ("stream", ctypes.c_void_p))


class _DeviceGet(ctypes.Structure):
    _fields_ = (*_Head._fields_, ("context", ctypes.c_void_p), ("device", ctypes.c_int32))


class _Allocate(ctypes.Structure):
    _fields_ = (
        *_Head._fields_,
        ("context", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("alignment", ctypes.c_size_t),
        ("data", ctypes.c_void_p),
    )


class _Free(ctypes.Structure):
    _fields_ = (*_Head._fields_, ("context", ctypes.c_void_p), ("size", ctypes.c_size_t), ("data", ctypes.c_void_p))


class _Extension(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("type", ctypes.c_int), ("next", ctypes.c_void_p), ("metadata", ctypes.c_void_p))


class _Metadata(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("version", _Version))


class _Buffer(ctypes.Structure):
    _fields_ = (
        *_Head._fields_,
        ("dtype", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
    )


class _Buffers(ctypes.Structure):
    _fields_ = (
        *_Head._fields_,
        ("size", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("buffers", ctypes.POINTER(ctypes.POINTER(_Buffer))),
    )


class _CallFrame(ctypes.Structure):
    _fields_ = (
        *_Head._fields_,
        ("api", ctypes.POINTER(_Api)),
        ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("args", _Buffers),
        ("rets", _Buffers),
    )


_Handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_CallFrame))
_ErrorCreate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Error))
_Function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)  # of the API: arguments to an error, or null
_ALIGNMENT = 16  # the most that XLA's allocator takes; it gives more


class Buffer(NamedTuple):
    """An operand or a result, in whichever memory it lies."""

    address: int
    shape: tuple[int, ...]
    dtype: str

    def array(self) -> np.ndarray[Any, Any]:
        """The elements, where they are, in the memory of the host. Those of bfloat16 are uint16."""
        kind = next(kind for kind, name in _TYPES.values() if name == self.dtype)
        count = prod(self.shape)
        if count == 0:
            return np.empty(self.shape, kind)
        memory: Any = (ctypes.c_char * (count * np.dtype(kind).itemsize)).from_address(self.address)
        return np.frombuffer(memory, kind).reshape(self.shape)


def _buffers(given: Any) -> list[Buffer]:
    found = []
    for index in range(given.size):
        buffer = given.buffers[index].contents
        if buffer.dtype not in _TYPES:
            raise TypeError(f"elements of XLA's type {buffer.dtype} are not served")
        found.append(Buffer(buffer.data or 0, tuple(buffer.dims[: buffer.rank]), _TYPES[buffer.dtype][1]))
    return found


class Call:
    """One call by XLA: what it gives to a function besides operands and results."""

    def __init__(self, frame: Any) -> None:
        self._api, self._context = frame.api.contents, frame.context
        self._taken: list[tuple[int, int]] = []

    def _ask(self, name: str, args: Any) -> Any:
        """Calls a function of XLA's API with these arguments, which are returned. Raises MemoryError, RuntimeError."""
        field = getattr(_Api, name)
        if field.offset + field.size > self._api.struct_size:
            raise RuntimeError(f"this XLA's FFI has no {name}: a newer JAX has it")
        error = ctypes.cast(getattr(self._api, name), _Function)(ctypes.addressof(args))
        if error:
            text = _ErrorText(ctypes.sizeof(_ErrorText), None, error, None)
            ctypes.cast(self._api.error_get_message, _Function)(ctypes.addressof(text))
            message = f"XLA's {name}: {(text.message or b'').decode(errors='replace')}"
            end = _ErrorEnd(ctypes.sizeof(_ErrorEnd), None, error)
            ctypes.cast(self._api.error_destroy, _Function)(ctypes.addressof(end))
            raise (MemoryError if name == "device_memory_allocate" else RuntimeError)(message)
        return args

    @property
    def stream(self) -> int:
        """The CUDA stream that the call's work is to be put into; 0 is the default one."""
        return self._ask("stream_get", _StreamGet(ctypes.sizeof(_StreamGet), None, self._context)).stream or 0

    @property
    def device(self) -> int:
        """The number of the GPU among those that the process sees."""
        return int(self._ask("device_ordinal_get", _DeviceGet(ctypes.sizeof(_DeviceGet), None, self._context)).device)

    def memory(self, size: int, alignment: int) -> int:
        """The address of device memory of `size` bytes, for what is put into the stream during this call; 0 for none."""
        if size == 0:
            return 0
        whole = size + max(alignment - _ALIGNMENT, 0)
        args = _Allocate(ctypes.sizeof(_Allocate), None, self._context, whole, min(alignment, _ALIGNMENT))
        address = self._ask("device_memory_allocate", args).data
        self._taken.append((address, whole))
        return int(-(-address // alignment) * alignment)

    def end(self) -> None:
        """Gives the memory back, in the order of the stream."""
        for address, size in self._taken:
            self._ask("device_memory_free", _Free(ctypes.sizeof(_Free), None, self._context, size, address))
        self._taken.clear()


def _describe(frame: Any) -> bool:
    """Answers XLA where it asks for the version that a handler was made for, instead of calling it."""
    if not frame.extension_start:
        return False
    extension = _Extension.from_address(frame.extension_start)
    if extension.type != _METADATA:
        return False
    version = _Metadata.from_address(extension.metadata).version
    # The structs above are those of all versions so far: what is there goes.
    version.major, version.minor = frame.api.contents.version.major, frame.api.contents.version.minor
    return True


def _message(error: BaseException) -> bytes:
    name = type(error).__name__
    try:
        return f"{name}: {error}".encode(errors="backslashreplace")
    except BaseException:  # its text is made by code of anyone
        return name.encode(errors="backslashreplace")


def handler(work: Callable[[list[Buffer], list[Buffer], Call], None]) -> Any:
    """A function for XLA that calls work(operands, results, call); to be kept alive."""

    def run(pointer: Any) -> int | None:
        frame = pointer.contents
        try:
            if _describe(frame) or frame.stage != _EXECUTE:
                return None
            call = Call(frame)
            try:
                work(_buffers(frame.args), _buffers(frame.rets), call)
            finally:
                call.end()
        except BaseException as error:  # what leaves this function is lost, and XLA would take it for success
            code = _INVALID_ARGUMENT if isinstance(error, (ValueError, TypeError)) else _INTERNAL
            said = _Error(ctypes.sizeof(_Error), None, _message(error), code)
            made: int | None = ctypes.cast(frame.api.contents.error_create, _ErrorCreate)(ctypes.byref(said))
            return made
        return None

    return _Handler(run)
