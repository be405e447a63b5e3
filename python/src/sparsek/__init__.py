# SPDX-License-Identifier: Apache-2.0
"""Block-sparse times dense matrix products: C = act(alpha A B + beta C + bias), with A in BSR.

On NVIDIA Hopper GPUs and on CPUs.
"""

from __future__ import annotations

from ._abi import Dtype, Memory, Status
from ._library import library_path
from .bsr import BSR
from .cache import CacheInfo, cache_clear, cache_info, cache_limit
from .context import Context, default_context
from .errors import (
    ArgumentError,
    CheckFailed,
    CudaError,
    DtypeError,
    FileError,
    IndexFault,
    LibraryError,
    OutOfMemory,
    SparsekError,
    UnsupportedError,
)
from .gemm import bsr_gemm
from .pattern import Pattern
from .plan import Plan, PlanInfo

__version__ = "0.1.0"

__all__ = [
    "BSR",
    "ArgumentError",
    "CacheInfo",
    "CheckFailed",
    "Context",
    "CudaError",
    "Dtype",
    "DtypeError",
    "FileError",
    "IndexFault",
    "LibraryError",
    "Memory",
    "OutOfMemory",
    "Pattern",
    "Plan",
    "PlanInfo",
    "SparsekError",
    "Status",
    "UnsupportedError",
    "bsr_gemm",
    "cache_clear",
    "cache_info",
    "cache_limit",
    "default_context",
    "library_path",
]
