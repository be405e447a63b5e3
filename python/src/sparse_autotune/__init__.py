# SPDX-License-Identifier: Apache-2.0
"""Block-sparse products that find their own kernel: sparsek's bsr_gemm, which measures a product when it first sees it."""

from __future__ import annotations

from typing import Any

import sparsek

__all__ = ["bsr_gemm"]


def bsr_gemm(a: Any, b: Any, *, tune: float = 0.05, **options: Any) -> Any:
    """C = A B with A block-sparse: sparsek.bsr_gemm, which says what A, B and the options may be.

    tune: seconds to measure kernels for, where neither this nor a similar product has been measured, on this machine or
    before the library was shipped. The result is stored in the user's tuning cache, see docs/tuning.md.
    """
    # Options that are passed on take a quarter of a microsecond, also where there are none.
    return sparsek.bsr_gemm(a, b, tune=tune, **options) if options else sparsek.bsr_gemm(a, b, tune=tune)
