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

    def work(operands: list[Any], results: list[Any]) -> None:
        raise raised

    make = _xla._ErrorCreate(create)
    api = _xla._Api(struct_size=ctypes.sizeof(_xla._Api), error_create=ctypes.cast(make, ctypes.c_void_p).value)
    frame = _xla._CallFrame(struct_size=ctypes.sizeof(_xla._CallFrame), api=ctypes.pointer(api), stage=_xla._EXECUTE)
    assert _xla.handler(work)(ctypes.byref(frame)) == 77
    assert told == [(message, code)]
