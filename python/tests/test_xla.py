# SPDX-License-Identifier: Apache-2.0
"""What XLA is told when a function that it calls raises, without XLA."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from sparsek import _xla


class Silent(Exception):
    def __str__(self) -> str:
        raise KeyError("no text")


@pytest.mark.parametrize(
    ("raised", "message", "code"),
    [
        (ValueError("b is wrong"), b"ValueError: b is wrong", 3),
        (RuntimeError("broken"), b"RuntimeError: broken", 13),
        (KeyboardInterrupt(), b"KeyboardInterrupt: ", 13),
        (SystemExit(0), b"SystemExit: 0", 13),
        (OSError("no file \udcff"), b"OSError: no file \\udcff", 13),
        (Silent(), b"Silent", 13),
    ],
)
def test_whatever_is_raised_is_an_error(raised: BaseException, message: bytes, code: int) -> None:
    told: list[tuple[bytes, int]] = []

    def create(error: Any) -> int:
        told.append((error.contents.message, error.contents.code))
        return 77

    def work(operands: list[Any], results: list[Any], call: Any) -> None:
        raise raised

    make = _xla._ErrorCreate(create)
    api = _xla._Api(struct_size=ctypes.sizeof(_xla._Api), error_create=ctypes.cast(make, ctypes.c_void_p).value)
    frame = _xla._CallFrame(struct_size=ctypes.sizeof(_xla._CallFrame), api=ctypes.pointer(api), stage=_xla._EXECUTE)
    assert _xla.handler(work)(ctypes.byref(frame)) == 77
    assert told == [(message, code)]


class Driver:
    """The functions of XLA's API that a call on a GPU uses, over memory of this process."""

    def __init__(self, space: int) -> None:
        self.space, self.errors = space, 0
        self.used: list[Any] = []
        functions = {
            "stream_get": (_xla._StreamGet, self.stream_get),
            "device_ordinal_get": (_xla._DeviceGet, self.device_get),
            "device_memory_allocate": (_xla._Allocate, self.allocate),
            "device_memory_free": (_xla._Free, self.free),
            "error_get_message": (_xla._ErrorText, self.tell),
            "error_destroy": (_xla._ErrorEnd, self.end),
        }
        self.kept = {name: _xla._Function(self.typed(kind, work)) for name, (kind, work) in functions.items()}
        addresses = {name: ctypes.cast(kept, ctypes.c_void_p).value for name, kept in self.kept.items()}
        self.api = _xla._Api(struct_size=ctypes.sizeof(_xla._Api), **addresses)
        self.frame = _xla._CallFrame(struct_size=ctypes.sizeof(_xla._CallFrame), api=ctypes.pointer(self.api), context=11)

    @staticmethod
    def typed(kind: Any, work: Any) -> Any:
        def run(address: int) -> int | None:
            args = kind.from_address(address)
            assert args.struct_size == ctypes.sizeof(kind)
            error: int | None = work(args)
            return error

        return run

    def stream_get(self, args: Any) -> None:
        assert args.context == 11
        args.stream = 5

    def device_get(self, args: Any) -> None:
        args.device = 3

    def allocate(self, args: Any) -> int | None:
        assert args.alignment <= 16
        if args.size > self.space:
            return 99
        self.used.append(ctypes.create_string_buffer(args.size))
        args.data = ctypes.addressof(self.used[-1])
        return None

    def free(self, args: Any) -> None:
        assert [ctypes.addressof(used) for used in self.used if len(used) == args.size].count(args.data) == 1
        self.used = [used for used in self.used if ctypes.addressof(used) != args.data]

    def tell(self, args: Any) -> None:
        assert args.error == 99
        args.message = b"no space"

    def end(self, args: Any) -> None:
        self.errors += 1


def test_what_a_call_gives() -> None:
    driver = Driver(1 << 20)
    call = _xla.Call(driver.frame)
    assert (call.stream, call.device) == (5, 3)
    assert call.memory(0, 256) == 0
    first, second = call.memory(1000, 256), call.memory(77, 1)
    assert first % 256 == 0
    assert len(driver.used) == 2
    assert all(
        ctypes.addressof(used) <= at and at + size <= ctypes.addressof(used) + len(used)
        for used, at, size in zip(driver.used, (first, second), (1000, 77), strict=True)
    )
    with pytest.raises(MemoryError, match="no space"):
        call.memory(1 << 21, 16)
    assert driver.errors == 1
    call.end()
    assert driver.used == []


def test_an_older_api() -> None:
    driver = Driver(0)
    driver.api.struct_size = _xla._Api.device_ordinal_get.offset
    assert _xla.Call(driver.frame).stream == 5
    with pytest.raises(RuntimeError, match="newer JAX"):
        _ = _xla.Call(driver.frame).device
