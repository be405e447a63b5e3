# SPDX-License-Identifier: Apache-2.0
"""Where products are computed: the CPU, or one GPU."""

from __future__ import annotations

import ctypes
import os
import threading

from ._abi import Backend, ContextInfo, ContextOptions, Memory
from ._handles import Owner, Shared
from ._library import library
from .errors import ArgumentError

__all__ = ["Context", "default_context"]

_BACKENDS = {"auto": Backend.AUTO, "cpu": Backend.CPU, "cuda": Backend.CUDA}


class Context(Owner):
    """A back-end and its device.

    backend: "cpu", "cuda", or "auto": a Hopper GPU if there is one, else the CPU, with the reason in `reason`.
    device: which GPU. threads: of the CPU; 0: one for each core that the process may use.
    Raises UnsupportedError where "cuda" is asked for and there is no such GPU, LibraryError where there is no library.
    """

    def __init__(self, backend: str = "auto", device: int = 0, threads: int = 0) -> None:
        kind = _BACKENDS.get(backend)
        if kind is None:
            raise ArgumentError(f"backend {backend!r} is none of auto, cpu and cuda")
        lib = library()
        options = ContextOptions(backend=int(kind), device=device, threads=threads)
        pointer = ctypes.c_void_p()
        lib.require(lib.context_create(ctypes.byref(options), ctypes.addressof(pointer)))
        assert pointer.value is not None
        self._handle = Shared(pointer.value, lib.context_destroy)
        info = ContextInfo()
        lib.require(lib.context_info(self.pointer, ctypes.byref(info)))
        self.backend = "cuda" if info.backend == Backend.CUDA else "cpu"
        self.device: int = info.device
        self.threads: int = info.threads
        self.gpu_fault = bool(info.gpu_fault)
        self.reason: str = (info.reason or b"").decode()
        self.isa: str = (info.isa or b"").decode()

    @property
    def memory(self) -> Memory:
        """The memory that operands of its products lie in."""
        return Memory.DEVICE if self.backend == "cuda" else Memory.HOST

    def __repr__(self) -> str:
        return f"Context({self.backend!r}, device={self.device}, threads={self.threads})"


_contexts: dict[tuple[Memory, int], Context] = {}
_making = threading.Lock()


def default_context(memory: Memory = Memory.HOST, device: int = 0) -> Context:
    """The context of arrays in this memory, made by the first call: the CPU's, or that of a GPU.

    Nothing asks the driver for GPUs before an array lies on one.
    """
    key = (memory, device if memory == Memory.DEVICE else 0)
    found = _contexts.get(key)
    if found is None:
        with _making:
            found = _contexts.get(key)
            if found is None:
                found = Context("cuda", device) if memory == Memory.DEVICE else Context("cpu")
                _contexts[key] = found
    return found


def context_of(given: Context | None, memory: Memory = Memory.HOST, device: int = 0) -> Context:
    """The context that a caller gave, or for None that of arrays in this memory. Raises ArgumentError."""
    if given is None:
        return default_context(memory, device)
    if not isinstance(given, Context):
        raise ArgumentError(f"context={given!r} is no Context: sparsek.Context('cpu') and sparsek.Context('cuda') make one")
    return given


def _after_fork() -> None:
    global _making
    _making = threading.Lock()  # another thread of the parent may have held it


os.register_at_fork(after_in_child=_after_fork)
