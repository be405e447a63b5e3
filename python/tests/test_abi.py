# SPDX-License-Identifier: Apache-2.0
"""The structs of the bindings lie in memory as a C compiler lays them out."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from sparsek import _abi

HEADER = Path(__file__).resolve().parents[2] / "cutlass_ext" / "include"


def c_name(name: str) -> str:
    return "sparsek" + "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)


def structs() -> dict[str, type[ctypes.Structure]]:
    kinds = {name: kind for name, kind in vars(_abi).items() if isinstance(kind, type) and issubclass(kind, ctypes.Structure)}
    del kinds["Versioned"]
    return kinds


def test_layout(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not HEADER.exists():
        pytest.skip("skipped: no C compiler, or not run in the source tree")
    lines, expected = [], []
    for name, kind in structs().items():
        lines.append(f'printf("%zu\\n", sizeof({c_name(name)}));')
        expected.append(ctypes.sizeof(kind))
        for field in kind._fields_:
            lines.append(f'printf("%zu\\n", offsetof({c_name(name)}, {field[0]}));')
            expected.append(getattr(kind, field[0]).offset)
    source = tmp_path / "layout.c"
    source.write_text("#include <stddef.h>\n#include <stdio.h>\n#include <sparsek.h>\nint main(void) {\n" + "\n".join(lines) + "\n}\n")
    program = tmp_path / "layout"
    subprocess.run([compiler, f"-I{HEADER}", "-o", str(program), str(source)], check=True)
    said = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.split()
    assert [int(number) for number in said] == expected
    assert len(expected) > 300


def test_structs_know_their_size() -> None:
    for name, kind in structs().items():
        if name != "Api":
            assert kind().abi_size == ctypes.sizeof(kind)
