# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest for test_matmul of Triton's test_blocksparse.py: sparsek computes the products, and "cuda" is the CPU."""

from __future__ import annotations

from typing import Any

import pytest

import sparsek.compat.triton_blocksparse

sparsek.compat.triton_blocksparse.install()


@pytest.fixture
def device() -> str:
    """The only one."""
    return "cpu"


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Has the operands made on the CPU, and no GPU's driver asked."""
    for module in {item.module for item in items}:
        defaults = module.make_pair.__defaults__
        module.make_pair.__defaults__ = tuple("cpu" if value == "cuda" else value for value in defaults)
        if hasattr(module, "is_hip_mi200"):
            module.is_hip_mi200 = lambda: False
