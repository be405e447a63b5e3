# SPDX-License-Identifier: Apache-2.0
"""Functions that XLA calls with its own buffers: its FFI, as much of it as a product on the CPU needs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

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
    _fields_ = (*_Head._fields_, ("version", _Version), ("internal", ctypes.c_void_p), ("error_create", ctypes.c_void_p))


class _Error(ctypes.Structure):
    _fields_ = (*_Head._fields_, ("message", ctypes.c_char_p), ("code", ctypes.c_int))


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


def _array(buffer: Any) -> tuple[np.ndarray[Any, Any], str]:
    """A buffer's elements, where they are, and what they are."""
    if buffer.dtype not in _TYPES:
        raise TypeError(f"elements of XLA's type {buffer.dtype} are not served")
    kind, name = _TYPES[buffer.dtype]
    shape = tuple(buffer.dims[: buffer.rank])
    count = 1
    for extent in shape:
        count *= extent
    if count == 0:
        return np.empty(shape, kind), name
    memory: Any = (ctypes.c_char * (count * np.dtype(kind).itemsize)).from_address(buffer.data)
    return np.frombuffer(memory, kind).reshape(shape), name


def _arrays(buffers: Any) -> list[tuple[np.ndarray[Any, Any], str]]:
    return [_array(buffers.buffers[index].contents) for index in range(buffers.size)]


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


def handler(work: Callable[[list[Any], list[Any]], None]) -> Any:
    """A function for XLA that calls work(operands, results), pairs of an array and its type's name; to be kept alive."""

    def run(pointer: Any) -> int | None:
        frame = pointer.contents
        try:
            if _describe(frame) or frame.stage != _EXECUTE:
                return None
            work(_arrays(frame.args), _arrays(frame.rets))
        except BaseException as error:  # what leaves this function is lost, and XLA would take it for success
            code = _INVALID_ARGUMENT if isinstance(error, (ValueError, TypeError)) else _INTERNAL
            said = _Error(ctypes.sizeof(_Error), None, _message(error), code)
            made: int | None = ctypes.cast(frame.api.contents.error_create, _ErrorCreate)(ctypes.byref(said))
            return made
        return None

    return _Handler(run)
