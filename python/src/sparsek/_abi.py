# SPDX-License-Identifier: Apache-2.0
# Generated from cutlass_ext/include/sparsek.h; changes here are lost.
"""The C interface of libsparsek: what each name means is in sparsek.h."""

from __future__ import annotations

import ctypes
import enum
from typing import Any

ABI_VERSION = 1


class Status(enum.IntEnum):
    OK = 0
    NULL_POINTER = 1
    BAD_ABI_SIZE = 2
    BAD_SIZE = 3
    BAD_ARGUMENT = 4
    BAD_LEADING_DIMENSION = 5
    MISALIGNED = 6
    WRONG_MEMORY = 7
    ROW_PTR_START = 10
    ROW_PTR_NOT_MONOTONE = 11
    ROW_PTR_END = 12
    COL_IDX_RANGE = 13
    COL_IDX_UNSORTED = 14
    COL_IDX_REPEATED = 15
    BLOCK_IDX_RANGE = 16
    OVER_CAPACITY = 17
    UNSUPPORTED_DTYPE = 20
    UNSUPPORTED_BLOCK = 21
    NO_SUCH_KERNEL = 22
    NO_DEVICE = 23
    NO_LIBRARY = 24
    OUT_OF_MEMORY = 30
    CUDA_ERROR = 31
    INTERNAL = 32
    IO_ERROR = 33
    CHECK_FAILED = 40
    NOT_READY = 50


class Dtype(enum.IntEnum):
    BF16 = 1
    FP16 = 2
    FP32 = 3
    FP64 = 4
    E4M3 = 5


class IndexType(enum.IntEnum):
    INT32 = 1
    INT64 = 2
    INT16 = 3


class Memory(enum.IntEnum):
    HOST = 1
    DEVICE = 2


class Backend(enum.IntEnum):
    AUTO = 0
    CPU = 1
    CUDA = 2


class Bias(enum.IntEnum):
    NONE = 0
    ROW = 1
    COLUMN = 2


class Activation(enum.IntEnum):
    NONE = 0
    RELU = 1
    GELU = 2
    SILU = 3


class Op(enum.IntEnum):
    DSD = 0
    DSD_T = 1
    SDD = 2
    DDS = 3
    DDS_T = 4


class Order(enum.IntEnum):
    ROW_MAJOR = 0
    COLUMN_MAJOR = 1


class Copies(enum.IntEnum):
    B = 1
    C = 2
    A = 4


class Compute(enum.IntEnum):
    EXACT = 0
    TF32 = 1


class BsrFlag(enum.IntEnum):
    SORT = 1
    ASYNC = 2
    BOUND = 4
    FROZEN = 8


class PlanFlag(enum.IntEnum):
    OWN_KERNELS = 1
    NO_USER_CACHE = 2
    BATCH_INVARIANT = 4


class MultiplyFlag(enum.IntEnum):
    TRUSTED = 1


class ChosenBy(enum.IntEnum):
    NAME = 1
    MODEL = 2
    CACHE = 3
    TABLE = 4
    TUNING = 5


class TuningSource(enum.IntEnum):
    FILE = 0
    SHIPPED = 1


class TuningState(enum.IntEnum):
    ABSENT = 0
    WHOLE = 1
    DAMAGED = 2
    FOREIGN = 3
    UNREADABLE = 4


class PatternFlag(enum.IntEnum):
    BITS = 1


class Norm(enum.IntEnum):
    MAX = 0
    L1 = 1
    L2 = 2


class AttentionFlag(enum.IntEnum):
    RIGHT = 1
    LEFT = 2
    ALIGN_ENDS = 4
    ANY_ORDER = 8


class AttentionOutput(enum.IntEnum):
    O = 0
    LSE = 1
    GRAD_Q = 2
    GRAD_K = 3
    GRAD_V = 4
    MASS = 5
    GRAD_BIAS = 6


_INTEGERS: dict[Any, tuple[int, int]] = {
    ctypes.c_uint8: (0, 2**8 - 1),
    ctypes.c_int32: (-(2**31), 2**31 - 1),
    ctypes.c_int64: (-(2**63), 2**63 - 1),
    ctypes.c_uint64: (0, 2**64 - 1),
    ctypes.c_size_t: (0, 2**64 - 1),
    ctypes.c_void_p: (0, 2**64 - 1),
}


class Versioned(ctypes.Structure):
    """A struct whose first member is its own size."""

    _ranges: dict[str, tuple[int, int]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._ranges = {name: _INTEGERS[kind] for name, kind in cls.__dict__["_fields_"] if kind in _INTEGERS}

    def __init__(self, **members: Any) -> None:
        super().__init__(abi_size=ctypes.sizeof(self), **members)
        ranges = self._ranges
        for name, given in members.items():
            if given and name in ranges:  # ctypes takes the low bits of what is too large
                low, high = ranges[name]
                if not low <= given <= high:
                    from .errors import ArgumentError

                    raise ArgumentError(f"{name}={given} is not between {low} and {high}")


class BuildInfo(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("version", ctypes.c_char_p),
        ("cutlass", ctypes.c_char_p),
        ("cuda", ctypes.c_char_p),
        ("compiler", ctypes.c_char_p),
        ("commit", ctypes.c_char_p),
    )


class KernelInfo(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("why", ctypes.c_char_p),
        ("backend", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
        ("tile_m", ctypes.c_int32),
        ("tile_n", ctypes.c_int32),
        ("tile_k", ctypes.c_int32),
        ("stages", ctypes.c_int32),
        ("block_m", ctypes.c_int32),
        ("block_m_multiple", ctypes.c_int32),
        ("block_k_multiple", ctypes.c_int32),
        ("baseline", ctypes.c_int32),
        ("library", ctypes.c_char_p),
        ("reads_absent", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("dtype_b", ctypes.c_int32),
        ("reserved2", ctypes.c_int32),
    )


class DeviceInfo(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("name", ctypes.c_char * 256),
        ("compute_major", ctypes.c_int32),
        ("compute_minor", ctypes.c_int32),
        ("sm_count", ctypes.c_int32),
        ("memory_bytes", ctypes.c_int64),
        ("l2_bytes", ctypes.c_int64),
        ("driver_version", ctypes.c_int32),
        ("usable", ctypes.c_int32),
        ("clock_hz", ctypes.c_int64),
    )


class ContextOptions(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("backend", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("threads", ctypes.c_int32),
        ("allocate", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("user", ctypes.c_void_p),
    )


class ContextInfo(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("backend", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("threads", ctypes.c_int32),
        ("gpu_fault", ctypes.c_int32),
        ("reason", ctypes.c_char_p),
        ("isa", ctypes.c_char_p),
    )


class Bsr(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("rows", ctypes.c_int64),
        ("cols", ctypes.c_int64),
        ("block_m", ctypes.c_int64),
        ("block_k", ctypes.c_int64),
        ("nnzb", ctypes.c_int64),
        ("dtype", ctypes.c_int32),
        ("index_type", ctypes.c_int32),
        ("memory", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("row_ptr", ctypes.c_void_p),
        ("col_idx", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("block_idx", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
        ("flags", ctypes.c_int32),
        ("reserved2", ctypes.c_int32),
    )


class PlanOptions(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("n", ctypes.c_int64),
        ("ldb", ctypes.c_int64),
        ("ldc", ctypes.c_int64),
        ("alignment", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("kernel", ctypes.c_char_p),
        ("dtype_c", ctypes.c_int32),
        ("bias", ctypes.c_int32),
        ("activation", ctypes.c_int32),
        ("reserved2", ctypes.c_int32),
        ("allow_dense", ctypes.c_int32),
        ("reserved3", ctypes.c_int32),
        ("tuning_seconds", ctypes.c_double),
        ("op", ctypes.c_int32),
        ("order_b", ctypes.c_int32),
        ("order_c", ctypes.c_int32),
        ("compute", ctypes.c_int32),
        ("flags", ctypes.c_int32),
        ("workers", ctypes.c_int32),
        ("values_static", ctypes.c_int32),
        ("alignment_c", ctypes.c_int32),
        ("ldx", ctypes.c_int64),
        ("order_x", ctypes.c_int32),
        ("reserved5", ctypes.c_int32),
        ("dtype_b", ctypes.c_int32),
        ("reserved4", ctypes.c_int32),
    )


class PlanInfo(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("kernel", ctypes.c_char_p),
        ("reason", ctypes.c_char_p),
        ("tile_m", ctypes.c_int32),
        ("tile_n", ctypes.c_int32),
        ("tile_k", ctypes.c_int32),
        ("stages", ctypes.c_int32),
        ("tiles", ctypes.c_int64),
        ("entries", ctypes.c_int64),
        ("workspace_bytes", ctypes.c_int64),
        ("unit_roundoff", ctypes.c_double),
        ("recomputed", ctypes.c_int64),
        ("chosen_by", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("predicted_seconds", ctypes.c_double),
        ("measured_seconds", ctypes.c_double),
        ("warning", ctypes.c_char_p),
        ("digest", ctypes.c_uint64),
        ("product_bytes", ctypes.c_int64),
        ("product_roundoff", ctypes.c_double),
        ("copies", ctypes.c_int32),
        ("reserved2", ctypes.c_int32),
        ("kept_bytes", ctypes.c_int64),
    )


class TunerOptions(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("seconds", ctypes.c_double),
        ("all", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    )


class CandidateInfo(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("kernel", ctypes.c_char_p),
        ("note", ctypes.c_char_p),
        ("serves", ctypes.c_int32),
        ("best", ctypes.c_int32),
        ("runs", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("predicted_seconds", ctypes.c_double),
        ("seconds", ctypes.c_double),
        ("spread", ctypes.c_double),
        ("setup_seconds", ctypes.c_double),
    )


class MultiplyArgs(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("alpha", ctypes.c_float),
        ("beta", ctypes.c_float),
        ("b", ctypes.c_void_p),
        ("ldb", ctypes.c_int64),
        ("c", ctypes.c_void_p),
        ("ldc", ctypes.c_int64),
        ("stream", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("n", ctypes.c_int64),
        ("c_in", ctypes.c_void_p),
        ("ldc_in", ctypes.c_int64),
        ("alpha_device", ctypes.c_void_p),
        ("beta_device", ctypes.c_void_p),
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_size_t),
        ("bytes_b", ctypes.c_int64),
        ("bytes_c", ctypes.c_int64),
        ("dtype_b", ctypes.c_int32),
        ("flags", ctypes.c_int32),
        ("batch", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("stride_b", ctypes.c_int64),
        ("stride_c", ctypes.c_int64),
        ("stride_values", ctypes.c_int64),
        ("stride_bias", ctypes.c_int64),
        ("x", ctypes.c_void_p),
        ("ldx", ctypes.c_int64),
        ("bytes_x", ctypes.c_int64),
        ("stride_x", ctypes.c_int64),
    )


class PlanLayout(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("bytes", ctypes.c_int64),
        ("workspace_bytes", ctypes.c_int64),
        ("alignment", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("header", ctypes.c_uint64 * 48),
    )


class PatternArgs(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("rows", ctypes.c_int64),
        ("cols", ctypes.c_int64),
        ("block_m", ctypes.c_int64),
        ("block_k", ctypes.c_int64),
        ("capacity", ctypes.c_int64),
        ("dtype", ctypes.c_int32),
        ("index_type", ctypes.c_int32),
        ("memory", ctypes.c_int32),
        ("flags", ctypes.c_int32),
        ("row_ptr", ctypes.c_void_p),
        ("col_idx", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("block_idx", ctypes.c_void_p),
        ("row_idx", ctypes.c_void_p),
        ("blocks", ctypes.c_void_p),
        ("fault", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
        ("source", ctypes.c_void_p),
        ("ld", ctypes.c_int64),
        ("source_dtype", ctypes.c_int32),
        ("source_index_type", ctypes.c_int32),
        ("order", ctypes.c_int32),
        ("norm", ctypes.c_int32),
        ("threshold", ctypes.c_double),
        ("count", ctypes.c_int64),
        ("norms", ctypes.c_void_p),
        ("bins", ctypes.c_void_p),
    )


class ValuesArgs(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("a", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("b", ctypes.c_void_p),
        ("ld", ctypes.c_int64),
        ("order", ctypes.c_int32),
        ("norm", ctypes.c_int32),
        ("transposed", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("row_factors", ctypes.c_void_p),
        ("column_factors", ctypes.c_void_p),
        ("alpha", ctypes.c_double),
        ("beta", ctypes.c_double),
    )


class AttentionOptions(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("batch", ctypes.c_int64),
        ("heads_q", ctypes.c_int64),
        ("heads_k", ctypes.c_int64),
        ("seq_q", ctypes.c_int64),
        ("seq_k", ctypes.c_int64),
        ("head_size", ctypes.c_int64),
        ("head_size_v", ctypes.c_int64),
        ("layout", ctypes.c_void_p),
        ("layout_batch", ctypes.c_int64),
        ("layout_heads", ctypes.c_int64),
        ("window_left", ctypes.c_int64),
        ("window_right", ctypes.c_int64),
        ("scale", ctypes.c_double),
        ("soft_cap", ctypes.c_double),
        ("dtype", ctypes.c_int32),
        ("flags", ctypes.c_int32),
        ("kernel", ctypes.c_char_p),
        ("workers", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("dtype_o", ctypes.c_int32),
        ("reserved2", ctypes.c_int32),
    )


class AttentionInfo(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("kernel", ctypes.c_char_p),
        ("backward", ctypes.c_char_p),
        ("blocks", ctypes.c_int64),
        ("partial", ctypes.c_int64),
        ("pairs", ctypes.c_int64),
        ("forward_bytes", ctypes.c_int64),
        ("backward_bytes", ctypes.c_int64),
        ("unit_roundoff", ctypes.c_double),
        ("product_roundoff", ctypes.c_double),
    )


class AttentionArgs(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("q", ctypes.c_void_p),
        ("k", ctypes.c_void_p),
        ("v", ctypes.c_void_p),
        ("o", ctypes.c_void_p),
        ("lse", ctypes.c_void_p),
        ("stride_q", ctypes.c_int64 * 3),
        ("stride_k", ctypes.c_int64 * 3),
        ("stride_v", ctypes.c_int64 * 3),
        ("stride_o", ctypes.c_int64 * 3),
        ("lengths_q", ctypes.c_void_p),
        ("lengths_k", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_size_t),
        ("grad_o", ctypes.c_void_p),
        ("grad_q", ctypes.c_void_p),
        ("grad_k", ctypes.c_void_p),
        ("grad_v", ctypes.c_void_p),
        ("stride_grad_o", ctypes.c_int64 * 3),
        ("stride_grad_q", ctypes.c_int64 * 3),
        ("stride_grad_k", ctypes.c_int64 * 3),
        ("stride_grad_v", ctypes.c_int64 * 3),
        ("mass", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("stride_bias", ctypes.c_int64 * 4),
        ("mask", ctypes.c_void_p),
        ("mask_index", ctypes.c_void_p),
        ("mask_blocks", ctypes.c_int64),
        ("bias_dtype", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("grad_bias", ctypes.c_void_p),
        ("page_table", ctypes.c_void_p),
        ("page_table_stride", ctypes.c_int64),
        ("pages", ctypes.c_int64),
        ("page_rows", ctypes.c_int64),
        ("scale_q", ctypes.c_void_p),
        ("scale_k", ctypes.c_void_p),
        ("scale_v", ctypes.c_void_p),
    )


class AttentionCheckArgs(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("options", ctypes.c_void_p),
        ("args", ctypes.c_void_p),
        ("unit_roundoff", ctypes.c_double),
        ("product_roundoff", ctypes.c_double),
        ("output", ctypes.c_int32),
        ("threads", ctypes.c_int32),
    )


class PoolArgs(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("batch", ctypes.c_int64),
        ("heads", ctypes.c_int64),
        ("seq", ctypes.c_int64),
        ("head_size", ctypes.c_int64),
        ("block", ctypes.c_int64),
        ("x", ctypes.c_void_p),
        ("stride_x", ctypes.c_int64 * 3),
        ("out", ctypes.c_void_p),
        ("dtype", ctypes.c_int32),
        ("memory", ctypes.c_int32),
        ("stream", ctypes.c_void_p),
    )


class DenseTimeArgs(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("m", ctypes.c_int64),
        ("n", ctypes.c_int64),
        ("k", ctypes.c_int64),
        ("dtype", ctypes.c_int32),
        ("set_count", ctypes.c_int32),
        ("a", ctypes.c_void_p),
        ("b", ctypes.c_void_p),
        ("c", ctypes.c_void_p),
        ("warmup", ctypes.c_int32),
        ("repeats", ctypes.c_int32),
        ("stream", ctypes.c_void_p),
    )


class CheckArgs(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("a", ctypes.c_void_p),
        ("n", ctypes.c_int64),
        ("b", ctypes.c_void_p),
        ("ldb", ctypes.c_int64),
        ("c0", ctypes.c_void_p),
        ("c", ctypes.c_void_p),
        ("ldc", ctypes.c_int64),
        ("alpha", ctypes.c_float),
        ("beta", ctypes.c_float),
        ("unit_roundoff", ctypes.c_double),
        ("threads", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("dtype_c", ctypes.c_int32),
        ("bias_kind", ctypes.c_int32),
        ("activation", ctypes.c_int32),
        ("reserved2", ctypes.c_int32),
        ("bias", ctypes.c_void_p),
        ("product_roundoff", ctypes.c_double),
        ("op", ctypes.c_int32),
        ("order_b", ctypes.c_int32),
        ("order_c", ctypes.c_int32),
        ("order_x", ctypes.c_int32),
        ("x", ctypes.c_void_p),
        ("ldx", ctypes.c_int64),
        ("dtype_b", ctypes.c_int32),
        ("reserved3", ctypes.c_int32),
    )


class CheckReport(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("elements", ctypes.c_int64),
        ("failures", ctypes.c_int64),
        ("max_abs_c", ctypes.c_double),
        ("max_error", ctypes.c_double),
        ("max_ratio", ctypes.c_double),
        ("worst_row", ctypes.c_int64),
        ("worst_col", ctypes.c_int64),
        ("worst_c", ctypes.c_double),
        ("worst_ref", ctypes.c_double),
        ("worst_bound", ctypes.c_double),
        ("first_row", ctypes.c_int64),
        ("first_col", ctypes.c_int64),
    )


class TuningCacheInfo(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("path", ctypes.c_char_p),
        ("fault", ctypes.c_char_p),
        ("build", ctypes.c_char_p),
        ("entries", ctypes.c_int64),
        ("state", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    )


class TuningEntry(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("id", ctypes.c_char_p),
        ("device", ctypes.c_char_p),
        ("build", ctypes.c_char_p),
        ("op", ctypes.c_char_p),
        ("m", ctypes.c_int64),
        ("n", ctypes.c_int64),
        ("k", ctypes.c_int64),
        ("block_m", ctypes.c_int64),
        ("block_k", ctypes.c_int64),
        ("measured", ctypes.c_int64),
        ("sm_count", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
        ("dtype_c", ctypes.c_int32),
        ("bias", ctypes.c_int32),
        ("activation", ctypes.c_int32),
        ("density_class", ctypes.c_int32),
        ("spread_class", ctypes.c_int32),
        ("union_class", ctypes.c_int32),
        ("candidates", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("dtype_b", ctypes.c_int32),
        ("kept_values", ctypes.c_int32),
    )


class TuningCandidate(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("kernel", ctypes.c_char_p),
        ("seconds", ctypes.c_double),
        ("spread", ctypes.c_double),
        ("setup_seconds", ctypes.c_double),
    )


class TuningChange(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("entries", ctypes.c_int64),
        ("warning", ctypes.c_char * 1024),
    )


class Api(ctypes.Structure):
    """The table of functions."""

    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("abi_version", ctypes.c_int32),
        ("status_name", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_int32)),
        ("last_error", ctypes.CFUNCTYPE(ctypes.c_char_p)),
        ("build_info", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(BuildInfo))),
        ("kernel_count", ctypes.CFUNCTYPE(ctypes.c_int32)),
        ("kernel_info", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(KernelInfo))),
        ("device_count", ctypes.CFUNCTYPE(ctypes.c_int32)),
        ("device_info", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(DeviceInfo))),
        ("context_create", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ContextOptions), ctypes.c_void_p)),
        ("context_info", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ContextInfo))),
        ("context_destroy", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("matrix_create", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(Bsr), ctypes.c_void_p)),
        (
            "matrix_set_values",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.c_void_p,
                ctypes.c_int32,
                ctypes.c_void_p,
            ),
        ),
        ("matrix_destroy", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        (
            "plan_create",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.POINTER(PlanOptions),
                ctypes.c_void_p,
            ),
        ),
        ("plan_info", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(PlanInfo))),
        ("plan_destroy", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("multiply", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(MultiplyArgs))),
        (
            "multiply_time",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.POINTER(MultiplyArgs),
                ctypes.c_int32,
                ctypes.c_int32,
                ctypes.c_int32,
                ctypes.c_void_p,
            ),
        ),
        ("buffer_create", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)),
        ("buffer_destroy", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)),
        (
            "buffer_write",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.c_void_p,
                ctypes.c_void_p,
                ctypes.c_size_t,
                ctypes.c_void_p,
            ),
        ),
        (
            "buffer_read",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.c_void_p,
                ctypes.c_void_p,
                ctypes.c_size_t,
                ctypes.c_void_p,
            ),
        ),
        (
            "buffer_fill",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.c_void_p,
                ctypes.c_int32,
                ctypes.c_size_t,
                ctypes.c_void_p,
            ),
        ),
        ("stream_create", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)),
        ("stream_destroy", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)),
        ("stream_synchronize", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)),
        ("stream_query", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)),
        ("check", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(CheckArgs), ctypes.POINTER(CheckReport))),
        (
            "dense_time",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.POINTER(DenseTimeArgs),
                ctypes.c_void_p,
            ),
        ),
        (
            "graph_time",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.POINTER(MultiplyArgs),
                ctypes.c_int32,
                ctypes.c_int32,
                ctypes.c_int32,
                ctypes.c_void_p,
            ),
        ),
        (
            "tuner_create",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.POINTER(PlanOptions),
                ctypes.POINTER(TunerOptions),
                ctypes.c_void_p,
            ),
        ),
        ("tuner_step", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)),
        ("tuner_candidate_count", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)),
        (
            "tuner_candidate",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.c_int32,
                ctypes.POINTER(CandidateInfo),
            ),
        ),
        ("tuner_finish", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)),
        ("tuner_destroy", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("tuning_cache_open", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_int32, ctypes.c_void_p)),
        ("tuning_cache_info", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(TuningCacheInfo))),
        (
            "tuning_cache_entry",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.c_int64,
                ctypes.POINTER(TuningEntry),
            ),
        ),
        (
            "tuning_cache_candidate",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.c_int64,
                ctypes.c_int32,
                ctypes.POINTER(TuningCandidate),
            ),
        ),
        ("tuning_cache_close", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        (
            "tuning_cache_merge",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_char_p,
                ctypes.c_void_p,
                ctypes.POINTER(TuningChange),
            ),
        ),
        ("tuning_cache_clear", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.POINTER(TuningChange))),
        (
            "sms_hold",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.c_int32,
                ctypes.c_double,
                ctypes.c_void_p,
            ),
        ),
        ("sms_release", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)),
        ("plan_describe", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(PlanInfo))),
        ("matrix_status", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32)),
        ("plan_release", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)),
        ("matrix_release", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)),
        ("plan_update", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(Bsr))),
        (
            "plan_measure",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.POINTER(Bsr),
                ctypes.POINTER(PlanOptions),
                ctypes.POINTER(PlanLayout),
            ),
        ),
        (
            "plan_write",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.POINTER(Bsr),
                ctypes.POINTER(PlanLayout),
                ctypes.c_void_p,
                ctypes.c_void_p,
            ),
        ),
        (
            "plan_run",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.POINTER(PlanLayout),
                ctypes.c_void_p,
                ctypes.POINTER(MultiplyArgs),
            ),
        ),
        ("pattern_from_mask", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(PatternArgs))),
        ("pattern_from_topk", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(PatternArgs))),
        ("pattern_from_dense", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(PatternArgs))),
        (
            "pattern_from_csr",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.POINTER(Bsr),
                ctypes.POINTER(PatternArgs),
            ),
        ),
        (
            "pattern_from_blocks",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.POINTER(Bsr),
                ctypes.POINTER(PatternArgs),
            ),
        ),
        ("pattern_from_counts", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(PatternArgs))),
        (
            "pattern_block_diagonal",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.c_void_p,
                ctypes.c_int32,
                ctypes.POINTER(PatternArgs),
            ),
        ),
        (
            "transpose_index",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.POINTER(Bsr),
                ctypes.POINTER(PatternArgs),
            ),
        ),
        ("to_csr", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(Bsr), ctypes.POINTER(PatternArgs))),
        ("pattern_check", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(Bsr), ctypes.c_void_p)),
        ("to_dense", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ValuesArgs))),
        ("gather_values", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ValuesArgs))),
        ("block_norms", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ValuesArgs))),
        ("sum", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ValuesArgs))),
        ("scale", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ValuesArgs))),
        ("multiply_values", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ValuesArgs))),
        ("add_values", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ValuesArgs))),
        (
            "attention_create",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.POINTER(AttentionOptions),
                ctypes.c_void_p,
            ),
        ),
        ("attention_info", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(AttentionInfo))),
        ("attention_forward", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(AttentionArgs))),
        ("attention_backward", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(AttentionArgs))),
        (
            "attention_time",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.POINTER(AttentionArgs),
                ctypes.c_int32,
                ctypes.c_int32,
                ctypes.c_int32,
                ctypes.c_int32,
                ctypes.c_void_p,
            ),
        ),
        ("attention_destroy", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("attention_release", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)),
        (
            "attention_check",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.POINTER(AttentionCheckArgs),
                ctypes.POINTER(CheckReport),
            ),
        ),
        ("attention_update", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(Bsr))),
        ("attention_status", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32)),
        ("attention_pool", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(PoolArgs))),
    )
