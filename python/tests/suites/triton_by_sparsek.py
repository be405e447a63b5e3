# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest for test_matmul of Triton's test_blocksparse.py: sparsek computes the products. Without a GPU, "cuda" is the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import sparsek.compat.triton_blocksparse

sparsek.compat.triton_blocksparse.install()


@pytest.fixture
def device() -> str:
    """A GPU where there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Without a GPU, has the operands made on the CPU, and no GPU's driver asked."""
    if torch.cuda.is_available():
        return
    for module in {item.module for item in items}:
        defaults = module.make_pair.__defaults__
        module.make_pair.__defaults__ = tuple("cpu" if value == "cuda" else value for value in defaults)
        if hasattr(module, "is_hip_mi200"):
            module.is_hip_mi200 = lambda: False
