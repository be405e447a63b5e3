# SPDX-License-Identifier: Apache-2.0
"""What goes wrong, as exceptions: each is a SparsekError and also the built-in exception that fits."""

from __future__ import annotations

from ._abi import Status

__all__ = [
    "ArgumentError",
    "CheckFailed",
    "CudaError",
    "DtypeError",
    "FileError",
    "IndexFault",
    "LibraryError",
    "OutOfMemory",
    "SparsekError",
    "UnsupportedError",
]


class SparsekError(RuntimeError):
    """Any fault that this package reports.

    status: the library's status, or the one that fits best where Python found the fault.
    """

    status: Status = Status.INTERNAL

    def __init__(self, message: str, status: Status | None = None) -> None:
        super().__init__(message)
        if status is not None:
            self.status = status


class ArgumentError(SparsekError, ValueError):
    """An argument has a value that does not go: an extent, a stride, an alignment, an option."""

    status = Status.BAD_ARGUMENT


class DtypeError(SparsekError, TypeError):
    """An operand has a type that is not served, or not that of the other operands."""

    status = Status.UNSUPPORTED_DTYPE


class IndexFault(SparsekError, ValueError):
    """The index of a matrix is wrong: row pointers or block columns."""

    status = Status.COL_IDX_RANGE


class UnsupportedError(SparsekError, NotImplementedError):
    """This build or this machine cannot do it."""

    status = Status.NO_DEVICE


class LibraryError(SparsekError, OSError):
    """libsparsek.so was not found, does not load, or does not fit to this package."""

    status = Status.NO_LIBRARY


class OutOfMemory(SparsekError, MemoryError):
    """Neither the host nor the device has the memory; the message says which."""

    status = Status.OUT_OF_MEMORY


class CudaError(SparsekError):
    """A CUDA call failed; the message names it."""

    status = Status.CUDA_ERROR


class FileError(SparsekError, OSError):
    """A file cannot be read or written; the message names it."""

    status = Status.IO_ERROR


class CheckFailed(SparsekError, AssertionError):
    """An element of a product is beyond its bound."""

    status = Status.CHECK_FAILED


_CLASSES: dict[Status, type[SparsekError]] = {
    Status.NULL_POINTER: ArgumentError,
    Status.BAD_ABI_SIZE: ArgumentError,
    Status.BAD_SIZE: ArgumentError,
    Status.BAD_ARGUMENT: ArgumentError,
    Status.BAD_LEADING_DIMENSION: ArgumentError,
    Status.MISALIGNED: ArgumentError,
    Status.WRONG_MEMORY: ArgumentError,
    Status.ROW_PTR_START: IndexFault,
    Status.ROW_PTR_NOT_MONOTONE: IndexFault,
    Status.ROW_PTR_END: IndexFault,
    Status.COL_IDX_RANGE: IndexFault,
    Status.COL_IDX_UNSORTED: IndexFault,
    Status.COL_IDX_REPEATED: IndexFault,
    Status.BLOCK_IDX_RANGE: IndexFault,
    Status.OVER_CAPACITY: IndexFault,
    Status.UNSUPPORTED_DTYPE: DtypeError,
    Status.UNSUPPORTED_BLOCK: UnsupportedError,
    Status.NO_SUCH_KERNEL: UnsupportedError,
    Status.NO_DEVICE: UnsupportedError,
    Status.NO_LIBRARY: UnsupportedError,
    Status.OUT_OF_MEMORY: OutOfMemory,
    Status.CUDA_ERROR: CudaError,
    Status.IO_ERROR: FileError,
    Status.CHECK_FAILED: CheckFailed,
}


def from_status(code: int, message: str) -> SparsekError:
    """The exception of a status of the library, with the library's text."""
    try:
        status = Status(code)
    except ValueError:  # of a newer library
        return SparsekError(f"{message} (status {code})")
    return _CLASSES.get(status, SparsekError)(message or f"SPARSEK_{status.name}", status)
