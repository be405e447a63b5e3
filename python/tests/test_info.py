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
    with pytest.raises(sparsek.CheckFailed, match=r"first C\[3, 4\]; worst C\[3, 4\]"):
        sparsek.check(a, b, c, plan, **given)
    for wrong in ({"bias": None}, {"before": None}):
        with pytest.raises(sparsek.ArgumentError, match="bias and before"):
            sparsek.check(a, b, c, plan, **{**given, **wrong})
    for change, says in [
        ({"b": b[1:]}, r"b has the shape \(55, 9\)"),
        ({"b": b[0]}, r"b of shape \(9,\) does not have two dimensions"),
        ({"c": c[1:]}, r"c has the shape \(39, 9\)"),
        ({"before": before[:, 1:]}, r"before has the shape \(40, 8\)"),
        ({"bias": bias[1:]}, r"bias has the shape \(39,\)"),
    ]:
        operands = {"b": b, "c": c, **given, **change}
        with pytest.raises(sparsek.ArgumentError, match=says):
            sparsek.check(a, operands.pop("b"), operands.pop("c"), plan, **operands)
    with pytest.raises(sparsek.DtypeError, match="c is of"):
        sparsek.check(a, b, c.astype(np.float64 if out != "fp64" else np.float32), plan, **given)


def test_what_is_checked_is_of_the_plans_pattern() -> None:
    case = Case(1, (40, 56), (8, 8), 0.5, np.float32, np.int32)
    pattern = sparsek.Pattern(case.crow, case.col, case.shape, case.block, dtype="fp32")
    plan, b = pattern.plan(9), np.random.default_rng(2).standard_normal((56, 9)).astype(np.float32)
    c = plan(case.values, b)
    # Of two types, the narrower one is widened.
    for crow, col in [
        (case.crow.astype(np.int64), case.col),
        (case.crow, case.col.astype(np.int64)),
        (case.crow.astype(np.int16), case.col),
    ]:
        sparsek.check(sparsek.BSR(case.values, crow, col, case.shape), b, c, plan)
    for changed, says in [
        (sparsek.BSR(case.values, case.crow[:-1], case.col, case.shape), r"crow has the shape \(5,\), and not \(6,\)"),
        (sparsek.BSR(case.values, case.crow, case.col[1:], case.shape), "col has the shape"),
        (sparsek.BSR(case.values[1:], case.crow, case.col, case.shape), "values has the shape"),
        (sparsek.BSR(case.values, case.crow, case.col, (48, 56)), "a is 48x56 in blocks of 8x8, and the plan's pattern 40x56"),
        (sparsek.BSR(case.values[:, :4], case.crow, case.col, case.shape), "a is 40x56 in blocks of 4x8"),
    ]:
        with pytest.raises(sparsek.ArgumentError, match=says):
            sparsek.check(changed, b, c, plan)
    with pytest.raises(sparsek.DtypeError, match="col is of float64"):
        sparsek.check(sparsek.BSR(case.values, case.crow, case.col.astype(float), case.shape), b, c, plan)
    turned = pattern.plan(9, op="dsd_t")
    with pytest.raises(sparsek.ArgumentError, match="'dsd_t' is not checked"):
        sparsek.check(sparsek.BSR(case.values, case.crow, case.col, case.shape), b, c, turned)


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
