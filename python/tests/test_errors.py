# SPDX-License-Identifier: Apache-2.0
"""Each fault is the exception that fits, and says what is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import Case

import sparsek
from sparsek import errors

SRC = str(Path(sparsek.__file__).parent.parent)


def make(**changes: Any) -> sparsek.Pattern:
    case = Case(1, (32, 32), (8, 8), 0.5, np.float32, np.int32)
    given: dict[str, Any] = {"crow": case.crow, "col": case.col, "shape": case.shape, "block": case.block, "dtype": "fp32"}
    given.update(changes)
    return sparsek.Pattern(**given)


@pytest.mark.parametrize(
    ("changes", "kind", "builtin", "says"),
    [
        ({"crow": np.array([1, 2, 3, 4, 5], np.int32)}, errors.IndexFault, ValueError, "row_ptr"),
        ({"crow": np.array([0, 2], np.int32)}, errors.ArgumentError, ValueError, "crow has 2"),
        ({"crow": np.zeros((2, 2), np.int32)}, errors.ArgumentError, ValueError, "dimensions"),
        ({"crow": np.zeros(5, np.float32)}, errors.DtypeError, TypeError, "crow is of float32"),
        ({"crow": np.array([0, 1, 1, 1, 1]), "col": np.array([1.9])}, errors.DtypeError, TypeError, "col is of float64"),
        # Narrowed to crow's type, these would be columns of A.
        ({"crow": np.array([0, 1, 1, 1, 1], np.int32), "col": np.array([2**32 + 1])}, errors.IndexFault, ValueError, str(2**32 + 1)),
        ({"crow": np.array([0, 1, 1, 1, 1], np.int16), "col": np.array([2**16], np.int32)}, errors.IndexFault, ValueError, "65536"),
        ({"crow": np.array([0, 1, 1, 1, 1], ">i4"), "col": np.array([1])}, errors.DtypeError, TypeError, "crow is of int32 of the other"),
        ({"crow": np.array([0, 1, 1, 1, 1]), "col": np.array([4])}, errors.IndexFault, ValueError, "col_idx"),
        ({"crow": np.array([0, 2, 2, 2, 2]), "col": np.array([2, 1])}, errors.IndexFault, ValueError, "col_idx"),
        ({"crow": np.array([0, 2, 2, 2, 2]), "col": np.array([1, 1])}, errors.IndexFault, ValueError, "col_idx"),
        ({"block": (0, 8)}, errors.ArgumentError, ValueError, "0x8"),
        ({"shape": (-1, 8)}, errors.ArgumentError, ValueError, "-1x8"),
        ({"dtype": np.int32}, errors.DtypeError, TypeError, "bf16, fp16, fp32 and fp64"),
        ({"dtype": np.dtype(">f4")}, errors.DtypeError, TypeError, "byte order"),
        ({"dtype": np.complex64}, errors.DtypeError, TypeError, "complex64"),
    ],
)
def test_patterns(changes: dict[str, Any], kind: type[Exception], builtin: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says) as caught:
        make(**changes)
    assert isinstance(caught.value, builtin)
    assert isinstance(caught.value, sparsek.SparsekError)


def test_arguments_of_the_wrong_form() -> None:
    a = sparsek.BSR.from_dense(np.ones((32, 32), np.float32), (8, 8))
    b, sizes = np.ones((32, 4), np.float32), ((1, 8, 128, 64), (1, 2, 128, 64))
    faults: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: make(block=8), errors.ArgumentError, r"block=8 is not \(rows, columns\): give 2 integers"),
        (lambda: make(shape=(32, 32, 1)), errors.ArgumentError, r"shape=\(32, 32, 1\) is not \(M, K\)"),
        (lambda: make(context="cpu"), errors.ArgumentError, "context='cpu' is no Context"),
        (lambda: sparsek.BSR.from_dense(np.ones((8, 8)), 8), errors.ArgumentError, "block=8 is not"),  # type: ignore[arg-type]
        (lambda: sparsek.BSR(a.values, a.crow, a.col, (32,)), errors.ArgumentError, r"shape=\(32,\) is not"),  # type: ignore[arg-type]
        (lambda: sparsek.bsr_gemm(a, b, context="cpu"), errors.ArgumentError, "context='cpu' is no Context"),  # type: ignore[arg-type]
        (lambda: sparsek.bsr_gemm(a, b, bias=b[0], bias_axis="col"), errors.ArgumentError, "bias_axis='col' is none of row and column"),
        (lambda: sparsek.bsr_gemm(a, a), errors.DtypeError, "BSR is no dense array of numbers"),
        (lambda: sparsek.bsr_gemm(a, None), errors.DtypeError, "NoneType is no dense array of numbers"),
        (lambda: b @ a, TypeError, "unsupported operand"),  # type: ignore[operator]
        (lambda: sparsek.cache_limit(-1), errors.ArgumentError, "bytes_of_indices=-1 is negative"),
        (lambda: sparsek.AttentionLayout([0, 1], [0], 64), errors.ArgumentError, r"block=64 is not \(queries, keys\)"),  # type: ignore[arg-type]
        (lambda: sparsek.Attention((8, 128, 64), sizes[1], dtype="fp32"), errors.ArgumentError, "q_shape="),  # type: ignore[arg-type]
        (lambda: sparsek.Attention(*sizes, dtype="fp32", window=3), errors.ArgumentError, r"window=3 is not \(left, right\)"),  # type: ignore[arg-type]
        (lambda: sparsek.Attention(*sizes, dtype="fp32", layout=(0, 1)), errors.ArgumentError, "layout is a tuple"),  # type: ignore[arg-type]
    ]
    for call, kind, says in faults:
        with pytest.raises(kind, match=says):
            call()
    assert repr(a) == "BSR(32x32 in 8x8, 16 blocks, float32)"


def test_plans() -> None:
    pattern = make()
    faults: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"n": -1}, errors.ArgumentError, r"\bn = -1 "),
        ({"n": 2**64 + 3}, errors.ArgumentError, "n=18446744073709551619 is not between"),
        ({"n": 4, "workers": 2**32 + 1}, errors.ArgumentError, "workers=4294967297 is not between"),
        ({"n": 4, "ldb": -(2**63) - 1}, errors.ArgumentError, "ldb=-9223372036854775809 is not between"),
        ({"n": 4, "bias": "rows"}, errors.ArgumentError, "bias='rows'"),
        ({"n": 4, "activation": "tanh"}, errors.ArgumentError, "gelu"),
        ({"n": 4, "kernel": "fastest"}, errors.UnsupportedError, "fastest"),
        ({"n": 4, "alignment": 24}, errors.ArgumentError, "alignment"),
    ]
    for options, kind, says in faults:
        with pytest.raises(kind, match=says):
            pattern.plan(**options)


def test_products() -> None:
    pattern = make()
    plan, biased = pattern.plan(4), pattern.plan(4, bias="row")
    values = np.ones((pattern.nnzb, 8, 8), np.float32)
    b = np.ones((32, 4), np.float32)
    faults: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: plan(values[1:], b), errors.ArgumentError, "values have the shape"),
        (lambda: plan(values.astype(np.float64), b), errors.DtypeError, "values is of fp64"),
        (lambda: plan(values, b.astype(np.float16)), errors.DtypeError, "b is of fp16"),
        (lambda: plan(values, b.astype(int)), errors.DtypeError, "int64"),
        (lambda: plan(values, b[1:]), errors.ArgumentError, "32 rows"),
        (lambda: plan(values, np.ones((32, 5), np.float32)), errors.ArgumentError, "up to 4"),
        (lambda: plan(values, b, np.ones((31, 4), np.float32)), errors.ArgumentError, "out has the shape"),
        (lambda: plan(values, b, np.ones((32, 4))), errors.DtypeError, "out is of fp64"),
        (lambda: plan(values, b, b), errors.ArgumentError, "overlap"),
        (lambda: plan(values, b, bias=np.ones(32, np.float32)), errors.ArgumentError, "without a bias"),
        (lambda: biased(values, b), errors.ArgumentError, "for a bias"),
        (lambda: biased(values, b, bias=np.ones(4, np.float32)), errors.ArgumentError, "bias has the shape"),
        (
            lambda: plan(values, b, np.broadcast_to(np.zeros((32, 4), np.float32), (32, 4))),
            errors.ArgumentError,
            "out, of type ndarray, can",
        ),
        (lambda: plan(values.tolist(), b), errors.DtypeError, "values is of fp64"),
        (lambda: plan(values, b, [[0.0] * 4] * 32), errors.DtypeError, "out is of fp64"),
        (
            lambda: make(dtype="fp64").plan(4)(np.ones((pattern.nnzb, 8, 8)), np.ones((32, 4)), [[0.0] * 4] * 32),
            ValueError,
            "out, of type list",
        ),
        (lambda: sparsek.BSR([[[1.0]]], [0, 1], [0], (1, 1)), errors.ArgumentError, "values are a list"),
        (lambda: plan.run(values=1, b=1, c=1, batch=2**32 + 1), errors.ArgumentError, "batch=4294967297 is not between"),
        (lambda: plan.run(values=1, b=2**64, c=1), errors.ArgumentError, "b=18446744073709551616 is not between 0"),
        (lambda: plan(values, b, beta=1.0), errors.ArgumentError, "beta needs out"),
        (lambda: plan(values, b, alpha=float("nan")), errors.ArgumentError, "alpha"),
    ]
    for call, kind, says in faults:
        with pytest.raises(kind, match=says):
            call()


def test_factors_of_fp64_are_not_rounded_silently() -> None:
    pattern = make(dtype="fp64")
    values, b = np.ones((pattern.nnzb, 8, 8)), np.ones((32, 4))
    with pytest.raises(errors.ArgumentError, match=r"alpha=0\.1"):
        pattern.plan(4)(values, b, alpha=0.1)
    pattern.plan(4)(values, b, alpha=0.125)


def test_contexts() -> None:
    with pytest.raises(errors.ArgumentError, match="backend 'gpu'"):
        sparsek.Context("gpu")
    for wrong, says in [({"threads": 2**32 + 1}, "threads=4294967297 is not"), ({"device": -(2**31) - 1}, "device=-2147483649 is not")]:
        with pytest.raises(errors.ArgumentError, match=says):
            sparsek.Context("cpu", **wrong)
    context = sparsek.Context("cpu", threads=2)
    assert (context.backend, context.threads) == ("cpu", 2)
    assert context.isa in ("avx512", "avx2", "generic")


def test_every_class_is_a_builtin_too() -> None:
    for kind, builtin in [
        (errors.OutOfMemory, MemoryError),
        (errors.LibraryError, OSError),
        (errors.FileError, OSError),
        (errors.UnsupportedError, NotImplementedError),
        (errors.CheckFailed, AssertionError),
        (errors.DtypeError, TypeError),
    ]:
        fault = kind("what happened")
        assert isinstance(fault, builtin)
        assert str(fault) == "what happened"
    for status in sparsek.Status:
        fault = errors.from_status(int(status), "text")
        assert fault.status == status
        assert str(fault) == "text"
    assert "status 999" in str(errors.from_status(999, "text"))


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": SRC, **environment}, capture_output=True, text=True, timeout=120
    )
    return (done.stdout + done.stderr).strip()


ASK = """
import sparsek
try:
    print(sparsek.library_path())
except sparsek.LibraryError as error:
    print("LibraryError", error)
"""


def test_library_is_looked_for(tmp_path: Path) -> None:
    real = sparsek.library_path()
    assert run(ASK, SPARSEK_LIBRARY=real) == os.path.abspath(real)
    assert run(ASK, SPARSEK_LIBRARY=str(Path(real).parent)) == os.path.abspath(real)
    said = run(ASK, SPARSEK_LIBRARY=str(tmp_path))
    assert "LibraryError" in said
    assert f"there is no {tmp_path}/libsparsek.so" in said
    broken = tmp_path / "libsparsek.so"
    broken.write_text("no library")
    assert "cannot be loaded" in run(ASK, SPARSEK_LIBRARY=str(broken))
    assert "cannot be loaded" in run(ASK, SPARSEK_LIBRARY="/proc/self/exe")


def test_import_loads_nothing() -> None:
    """Neither the library nor other packages are loaded before they are needed."""
    others = "[m for m in ('torch', 'scipy', 'ml_dtypes', 'jax') if m in sys.modules]"
    assert run(f"import sys, sparsek, sparsek._library as l; print(l._loaded, {others})") == "None []"
