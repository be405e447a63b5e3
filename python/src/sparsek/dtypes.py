# SPDX-License-Identifier: Apache-2.0
"""The types of elements, by the names that people and other packages have for them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ._abi import Dtype
from .errors import DtypeError

BYTES = {Dtype.BF16: 2, Dtype.FP16: 2, Dtype.FP32: 4, Dtype.FP64: 8}

_BY_NAME = {
    "bf16": Dtype.BF16,
    "bfloat16": Dtype.BF16,
    "fp16": Dtype.FP16,
    "float16": Dtype.FP16,
    "half": Dtype.FP16,
    "fp32": Dtype.FP32,
    "float32": Dtype.FP32,
    "single": Dtype.FP32,
    "fp64": Dtype.FP64,
    "float64": Dtype.FP64,
    "double": Dtype.FP64,
}

NUMPY: dict[Dtype, np.dtype[Any]] = {
    Dtype.FP16: np.dtype(np.float16),
    Dtype.FP32: np.dtype(np.float32),
    Dtype.FP64: np.dtype(np.float64),
}

BITS = np.dtype(np.uint16)
"""How NumPy holds bf16 where ml_dtypes is not in use: the bits of each number."""


def dtype_of(given: Any) -> Dtype:
    """The type that a name ("bf16"), a Dtype, or a type of NumPy, ml_dtypes, torch or JAX stands for.

    Raises DtypeError where it is none of bf16, fp16, fp32 and fp64.
    """
    if isinstance(given, Dtype):
        return given
    name = given if isinstance(given, str) else str(given) if str(given).startswith("torch.") else ""
    if not name:
        try:
            kind = np.dtype(given)
            name = kind.name if kind.isnative else f"{kind} of the other byte order"
        except TypeError:
            name = str(given)
    found = _BY_NAME.get(name.removeprefix("torch."))
    if found is None:
        hint = ": name the type, dtype='bf16', where these are bits of bf16" if name == "uint16" else ""
        raise DtypeError(f"elements of type {name} are not served: bf16, fp16, fp32 and fp64 are{hint}")
    return found


def numpy_dtype(dtype: Dtype, like: Any = None) -> np.dtype[Any]:
    """NumPy's type for elements: for bf16 that of ml_dtypes if that is in use, unless `like`, a type, is the bits'."""
    known = NUMPY.get(dtype)
    if known is not None:
        return known
    ml_dtypes = sys.modules.get("ml_dtypes")
    if ml_dtypes is None or like == BITS:
        return BITS
    kind: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return kind


def parse_dtype(given: Any) -> Dtype | None:
    """dtype_of, or None for None."""
    return None if given is None else dtype_of(given)
