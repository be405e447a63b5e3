# SPDX-License-Identifier: Apache-2.0
"""The examples run, in small."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_elasticity(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("scipy.sparse", reason="skipped: SciPy is not installed")
    example = load("elasticity")
    assert example.main(8) < 1e-6
    assert "sparsek" in capsys.readouterr().out
    # A cube that is moved or turned as a whole has no forces in it.
    stiffness = example.element_stiffness()
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    for motion in (np.ones((8, 1)) * [1.0, 2.0, 3.0], np.stack([-corners[:, 1], corners[:, 0], np.zeros(8)], 1)):
        np.testing.assert_allclose(stiffness @ motion.ravel(), 0, atol=1e-10)
    # One that is stretched by 1 along x, and not along the others, has Hooke's forces.
    stretched = np.stack([corners[:, 0], np.zeros(8), np.zeros(8)], 1)
    energy = stretched.ravel() @ stiffness @ stretched.ravel()
    young, poisson = example.YOUNG, example.POISSON
    np.testing.assert_allclose(energy, young * (1 - poisson) / ((1 + poisson) * (1 - 2 * poisson)))
