# SPDX-License-Identifier: Apache-2.0
"""What this library, this machine and this user have: the build, the kernels, the GPUs, the tuning cache."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from . import _abi
from ._abi import Backend, Dtype, TuningSource, TuningState
from ._library import library

__all__ = ["BuildInfo", "DeviceInfo", "KernelInfo", "TuningCacheInfo", "build_info", "devices", "kernels", "tuning_cache"]


@dataclass(frozen=True)
class BuildInfo:
    """What the library is made of."""

    version: str
    commit: str
    """Of its sources; ends in -dirty where they were changed, "" where it is not known."""
    cuda: str
    cutlass: str
    compiler: str


@dataclass(frozen=True)
class KernelInfo:
    """A kernel, and what it serves."""

    name: str
    why: str
    backend: str
    dtype: Dtype | None
    """Of A and B; None: several."""
    tile: tuple[int, int, int]
    """(rows, columns, columns of A); zeros where another library chooses."""
    block_m: int
    """Block heights: this one, or with block_m_multiple its multiples; 0: every one."""
    block_m_multiple: bool
    block_k_multiple: int
    """Block widths: multiples of this."""
    library: str
    """cuBLAS or cuSPARSE; "": sparsek's own."""
    reads_absent: bool
    """Multiplies absent blocks as zeros: needs allow_dense."""
    baseline: bool
    """Only for comparisons."""


@dataclass(frozen=True)
class DeviceInfo:
    """A GPU as the driver shows it."""

    name: str
    compute_capability: tuple[int, int]
    sm_count: int
    memory_bytes: int
    usable: bool
    """Whether products run on it."""


@dataclass(frozen=True)
class TuningCacheInfo:
    """A file of measurements."""

    path: str
    """ "" where the user's cache is off."""
    state: str
    """ "absent", "whole", "damaged", "foreign" or "unreadable" """
    fault: str
    entries: int


def _text(given: bytes | None) -> str:
    return (given or b"").decode("utf-8", "replace")


def build_info() -> BuildInfo:
    """What the library in use is made of."""
    lib, found = library(), _abi.BuildInfo()
    lib.require(lib.build_info(ctypes.byref(found)))
    return BuildInfo(_text(found.version), _text(found.commit), _text(found.cuda), _text(found.cutlass), _text(found.compiler))


def kernels() -> list[KernelInfo]:
    """All kernels, in their order of priority."""
    lib, all_of_them = library(), []
    for index in range(lib.kernel_count()):
        found = _abi.KernelInfo()
        lib.require(lib.kernel_info(index, ctypes.byref(found)))
        all_of_them.append(
            KernelInfo(
                name=_text(found.name),
                why=_text(found.why),
                backend=Backend(found.backend).name.lower(),
                dtype=Dtype(found.dtype) if found.dtype else None,
                tile=(found.tile_m, found.tile_n, found.tile_k),
                block_m=found.block_m,
                block_m_multiple=bool(found.block_m_multiple),
                block_k_multiple=found.block_k_multiple,
                library=_text(found.library),
                reads_absent=bool(found.reads_absent),
                baseline=bool(found.baseline),
            )
        )
    return all_of_them


def devices() -> list[DeviceInfo]:
    """The GPUs; none where there is no driver. This initialises CUDA, which forks made afterwards cannot use."""
    lib, all_of_them = library(), []
    for device in range(lib.device_count()):
        found = _abi.DeviceInfo()
        lib.require(lib.device_info(device, ctypes.byref(found)))
        capability = (found.compute_major, found.compute_minor)
        all_of_them.append(DeviceInfo(_text(found.name), capability, found.sm_count, found.memory_bytes, bool(found.usable)))
    return all_of_them


def tuning_cache(path: str | None = None) -> TuningCacheInfo:
    """The file of measurements at that path, or the user's."""
    lib, opened, found = library(), ctypes.c_void_p(), _abi.TuningCacheInfo()
    name = path.encode() if path is not None else None
    lib.require(lib.tuning_cache_open(name, int(TuningSource.FILE), ctypes.addressof(opened)))
    try:
        lib.require(lib.tuning_cache_info(opened, ctypes.byref(found)))
        return TuningCacheInfo(_text(found.path), TuningState(found.state).name.lower(), _text(found.fault), found.entries)
    finally:
        lib.tuning_cache_close(opened)
