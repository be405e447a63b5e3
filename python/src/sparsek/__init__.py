# SPDX-License-Identifier: Apache-2.0
"""Block-sparse times dense matrix products: C = act(alpha A B + beta C + bias), with A in BSR.

On NVIDIA Hopper GPUs and on CPUs.
"""

from __future__ import annotations

from ._abi import Dtype, Memory, Status
from ._library import library_path
from .attention import Attention, AttentionInfo, AttentionLayout
from .bsr import BSR
from .cache import CacheInfo, cache_clear, cache_info, cache_limit
from .check import CheckReport, check, check_attention
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
from .gemm import bsr_gemm, sdd
from .info import BuildInfo, DeviceInfo, KernelInfo, TuningCacheInfo, build_info, devices, kernels, tuning_cache
from .pattern import Pattern
from .plan import Plan, PlanInfo

__version__ = "0.1.0"

__all__ = [
    "BSR",
    "ArgumentError",
    "Attention",
    "AttentionInfo",
    "AttentionLayout",
    "BuildInfo",
    "CacheInfo",
    "CheckFailed",
    "CheckReport",
    "Context",
    "CudaError",
    "DeviceInfo",
    "Dtype",
    "DtypeError",
    "FileError",
    "IndexFault",
    "KernelInfo",
    "LibraryError",
    "Memory",
    "OutOfMemory",
    "Pattern",
    "Plan",
    "PlanInfo",
    "SparsekError",
    "Status",
    "TuningCacheInfo",
    "UnsupportedError",
    "bsr_gemm",
    "build_info",
    "cache_clear",
    "cache_info",
    "cache_limit",
    "check",
    "check_attention",
    "default_context",
    "devices",
    "kernels",
    "library_path",
    "sdd",
    "tuning_cache",
]
