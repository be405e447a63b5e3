# SPDX-License-Identifier: Apache-2.0
"""What the package says about the library and the machine, and the library's own check of products."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import Case

import sparsek


def test_build_and_kernels() -> None:
    build = sparsek.build_info()
    assert build.version == sparsek.__version__
    assert build.cutlass
    found = {kernel.name: kernel for kernel in sparsek.kernels()}
    assert found["cpu_generic"].backend == "cpu"
    assert all(kernel.why for kernel in found.values())


def test_devices() -> None:
    for device in sparsek.devices():
        assert device.name
        assert device.sm_count > 0


def test_tuning_cache(tmp_path: Path) -> None:
    assert sparsek.tuning_cache().path == ""  # it is off here
    path = tmp_path / "tuning.txt"
    assert sparsek.tuning_cache(str(path)) == sparsek.TuningCacheInfo(str(path), "absent", "", 0)
    path.write_text("something else\n")
    assert sparsek.tuning_cache(str(path)).state == "foreign"
    assert sparsek.tuning_cache(str(path)).fault


@pytest.mark.parametrize(("dtype", "out"), [("fp32", "fp32"), ("fp16", "fp32"), ("fp32", "fp16"), ("fp64", "fp64")])
def test_check(dtype: str, out: str) -> None:
    kinds: dict[str, Any] = {"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}
    case = Case(1, (40, 56), (8, 8), 0.5, kinds[dtype], np.int32)
    a, rng = sparsek.BSR(case.values, case.crow, case.col, case.shape), np.random.default_rng(2)
    b, bias = rng.standard_normal((56, 9)).astype(kinds[dtype]), rng.standard_normal(40).astype(kinds[out])
    before = rng.standard_normal((40, 9)).astype(kinds[out])
    plan = sparsek.Pattern(a.crow, a.col, a.shape, a.block, dtype=dtype).plan(9, out_dtype=out, bias="row", activation="gelu")
    c = plan(a.values, b, before.copy(), bias=bias, alpha=0.5, beta=2.0)
    given: dict[str, Any] = {"before": before, "bias": bias, "alpha": 0.5, "beta": 2.0}
    report = sparsek.check(a, b, c, plan, **given)
    assert report.elements == 360
    assert 0 <= report.max_ratio <= 1
    c[3, 4] += 0.25
    with pytest.raises(sparsek.CheckFailed, match=r"3.*4"):
        sparsek.check(a, b, c, plan, **given)
    for wrong in ({"bias": None}, {"before": None}):
        with pytest.raises(sparsek.ArgumentError, match="bias and before"):
            sparsek.check(a, b, c, plan, **{**given, **wrong})
    with pytest.raises(sparsek.ArgumentError, match="do not fit"):
        sparsek.check(a, b[1:], c, plan, **given)
    with pytest.raises(sparsek.DtypeError, match="c is of"):
        sparsek.check(a, b, c.astype(np.float64 if out != "fp64" else np.float32), plan, **given)


def test_tf32() -> None:
    case = Case(3, (64, 64), (16, 16), 0.5, np.float32, np.int32)
    pattern = sparsek.Pattern(case.crow, case.col, case.shape, case.block, dtype="fp32")
    b = np.random.default_rng(4).standard_normal((64, 8)).astype(np.float32)
    plan = pattern.plan(8, tf32=True)
    sparsek.check(sparsek.BSR(case.values, case.crow, case.col, case.shape), b, plan(case.values, b), plan)
    with pytest.raises(sparsek.SparsekError):
        sparsek.Pattern(case.crow, case.col, case.shape, case.block, dtype="fp16").plan(8, tf32=True)


def test_infos_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        sparsek.build_info().version = "9"  # type: ignore[misc]
