# SPDX-License-Identifier: Apache-2.0
"""Which types of torch are which of the library."""

from __future__ import annotations

import torch

from .._abi import Dtype
from ..errors import DtypeError

DTYPES = {torch.bfloat16: Dtype.BF16, torch.float16: Dtype.FP16, torch.float32: Dtype.FP32, torch.float64: Dtype.FP64}
TORCH_TYPES = {kind: dtype for dtype, kind in DTYPES.items()}


def require_dtype(dtype: torch.dtype) -> Dtype:
    """The library's type. Raises DtypeError."""
    kind = DTYPES.get(dtype)
    if kind is None:
        raise DtypeError(f"elements of {dtype} are not served: bfloat16, float16, float32 and float64 are")
    return kind
