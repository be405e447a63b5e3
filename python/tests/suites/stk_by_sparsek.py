# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest for the tests of package stanford-stk: sparsek computes the products. Without a GPU, "cuda" is the CPU."""

from __future__ import annotations

from typing import Any

import torch

import sparsek.compat.stk

sparsek.compat.stk.install()


class _Torch:
    """torch, but its only device is the CPU."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    @staticmethod
    def device(*_: Any) -> torch.device:
        return torch.device("cpu")


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Redirects the modules that have tests, where there is no GPU."""
    if torch.cuda.is_available():
        return
    for module in {item.module for item in items}:
        if hasattr(module, "torch"):
            module.torch = _Torch()
