# SPDX-License-Identifier: Apache-2.0
"""Finds libsparsek.so, loads it once for the process, and turns its statuses into exceptions."""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path
from typing import Any

from . import _abi
from .errors import LibraryError, from_status

NAME = "libsparsek.so"
ENVIRONMENT = "SPARSEK_LIBRARY"


class Library:
    """The functions of the library, each as an attribute: taking one from the table takes longer than calling it."""

    def __init__(self, path: str, handle: ctypes.CDLL, table: Any) -> None:
        self.path = path
        self._handle = handle  # the library stays loaded as long as this process lives
        for name, _ in _abi.Api._fields_[2:]:
            setattr(self, name, getattr(table, name))
        # Given numbers, ctypes takes half the time that it takes for pointers.
        by_numbers = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
        self.multiply_at = by_numbers(ctypes.cast(table.multiply, ctypes.c_void_p).value or 0)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{NAME} has no function {name}")

    def require(self, status: int) -> None:
        """Raises what the library reported to this thread, unless status is 0."""
        if status:
            raise from_status(status, self.last_error().decode("utf-8", "replace"))


def _load(path: str) -> Library:
    try:
        handle = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        get_api = handle.sparsek_get_api
    except (OSError, AttributeError) as error:
        raise LibraryError(f"{path} cannot be loaded: {error}") from error
    get_api.restype, get_api.argtypes = ctypes.POINTER(_abi.Api), [ctypes.c_int32]
    pointer = get_api(_abi.ABI_VERSION)
    if not pointer:
        raise LibraryError(f"{path} does not have version {_abi.ABI_VERSION} of the ABI: take the library of this package's version")
    if pointer.contents.abi_size < ctypes.sizeof(_abi.Api):
        raise LibraryError(f"{path} is older than this package: take the library of this package's version")
    return Library(path, handle, pointer.contents)


def _candidates() -> list[Path]:
    """The files that the library may be, the first that exists is taken."""
    package = Path(__file__).resolve().parent
    found = [package / "lib" / NAME]
    for folder in package.parents:
        if (folder / "go.mod").exists():  # a checkout, with its build
            found.append(folder / "build" / "lib" / NAME)
            break
    return found + [Path(folder) / NAME for folder in ("/usr/local/lib", "/usr/local/lib64", "/usr/lib64", "/usr/lib")]


def _find() -> Library:
    named = os.environ.get(ENVIRONMENT)
    if named:
        path = Path(named)
        path = (path / NAME if path.is_dir() else path).absolute()
        if not path.exists():
            raise LibraryError(f"{ENVIRONMENT}={named}: there is no {path}: name the file {NAME} or its folder")
        return _load(str(path))
    tried = []
    for path in _candidates():
        if path.exists():
            return _load(str(path))
        tried.append(str(path))
    try:
        return _load(NAME)
    except LibraryError as error:
        tried.append(f"{NAME} ({error})")
    raise LibraryError(
        f"{NAME} not found: install the wheel that has it, build it, or set {ENVIRONMENT} to the file or its folder; "
        "tried:\n\t" + "\n\t".join(tried)
    )


_loaded: Library | None = None
_loading = threading.Lock()


def library() -> Library:
    """The library, loaded by the first call. Raises LibraryError."""
    global _loaded
    if _loaded is None:
        with _loading:
            if _loaded is None:
                _loaded = _find()
    return _loaded


def library_path() -> str:
    """The file of the library in use. Loads it; raises LibraryError."""
    return library().path


def _after_fork() -> None:
    global _loading
    _loading = threading.Lock()  # another thread of the parent may have held it


os.register_at_fork(after_in_child=_after_fork)
