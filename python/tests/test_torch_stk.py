# SPDX-License-Identifier: Apache-2.0
"""STK with the products of sparsek: operands of its own making, and its own tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("absl")

import sparsek.compat.stk as shim  # noqa: E402

try:
    shim.install()
    import stk
except ImportError:
    pytest.skip("stanford-stk is not installed", allow_module_level=True)

from torch_reference import Matrix  # noqa: E402

HERE = Path(__file__).resolve().parent


def of(a: Matrix) -> Any:
    """The matrix as one of STK, whose indices are of 16 bits and lie two apart."""
    counts = (a.crow[1:] - a.crow[:-1]).long()
    pairs = torch.stack([torch.repeat_interleave(torch.arange(counts.numel()), counts), a.col.long()], 1).short()
    return stk.Matrix(torch.Size(a.size), a.values, pairs[:, 0], pairs[:, 1], a.crow)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("transposed", [False, True])
def test_small_blocks(dtype: Any, transposed: bool) -> None:
    a = Matrix(1, (24, 40), (8, 8), dtype=dtype)
    a.values.requires_grad_()
    dense, leaf = a.dense().detach(), of(a)
    left, exact = (leaf.t(), dense.t()) if transposed else (leaf, dense)
    for flipped in (False, True):
        b = torch.randn(exact.shape[1], 6, dtype=dtype)
        b = b.t().contiguous().t() if flipped else b
        torch.testing.assert_close(stk.ops.dsd(left, b), exact @ b)
        x = torch.randn(6, exact.shape[0], dtype=dtype)
        x = x.t().contiguous().t() if flipped else x
        torch.testing.assert_close(stk.ops.dds(x, left), x @ exact)
        lhs, rhs = torch.randn(24, 6, dtype=dtype), torch.randn(6, 40, dtype=dtype)
        got = stk.ops.sdd(lhs.t().contiguous().t() if flipped else lhs, rhs, leaf)
        torch.testing.assert_close(got.data, a.blocks(lhs @ rhs))
    stk.ops.dsd(left, b).square().sum().backward()
    of_values, a.values.grad = a.values.grad, None
    whole = a.dense()
    ((whole.t() if transposed else whole) @ b).square().sum().backward()
    torch.testing.assert_close(of_values, a.values.grad)


def test_installed() -> None:
    assert stk.backend.triton_kernels is shim
    assert sys.modules["stk.backend.triton_kernels"] is shim


def test_row_indices() -> None:
    a = Matrix(2, (64, 40), (8, 8))
    leaf = of(a)
    assert stk.ops.row_indices(leaf.size(), leaf.data, leaf.offsets, leaf.column_indices).tolist() == leaf.row_indices.tolist()


def test_installed_too_late() -> None:
    code = "import sys; sys.modules['stk.backend.sputnik'] = sys\nimport sparsek.compat.stk as shim\nshim.install()"
    done = subprocess.run([sys.executable, "-c", code], env=_environment(), capture_output=True, text=True, check=False)
    assert "call sparsek.compat.stk.install() first" in done.stderr


def _environment() -> dict[str, str]:
    paths = [str(HERE.parent / "src"), str(HERE / "suites")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def test_the_suite_of_stk() -> None:
    folder = Path(stk.__file__).parent
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        os.devnull,
        "-p",
        "no:cacheprovider",
        "-p",
        "stk_by_sparsek",
        "-o",
        "python_files=*_test.py",
    ]
    done = subprocess.run([*command, str(folder)], env=_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:]
    assert "409 passed" in done.stdout
