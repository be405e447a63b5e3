# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest for xFormers' tests/test_mem_eff_attention.py: its lists of operators have sparsek's alone.

xFormers' own compiled operators are not needed. Biases of layouts are among those that the tests draw: blocks of 64 x 64, of which
each query sees the first and others by chance. Tests of xFormers' own operators and masks are left out.
"""

from __future__ import annotations

from typing import Any

import torch
import xformers.attn_bias_utils as bias_utils
from suite_counts import leave_out, pytest_runtest_call, pytest_runtest_makereport, pytest_runtest_setup, pytest_terminal_summary
from xformers.ops import fmha

import sparsek.compat.xformers
import sparsek.torch as st

__all__ = ["pytest_runtest_call", "pytest_runtest_makereport", "pytest_runtest_setup", "pytest_terminal_summary"]

_RUN = {
    "test_forward",
    "test_logsumexp",
    "test_backward",
    "test_lowlevel_api_shapes",
    "test_cuda_streams",
    "test_custom_scale",
    "test_grad_checkpointing",
    "test_unsupported_stride_lastdim",
    "test_unsupported_stride_alignment",
    "test_forward_gqa",
    "test_forward_gqa_one_group",
    "test_empty_tensors_empty_query",
    "test_empty_tensors_empty_kv",
    "test_empty_tensors_empty_b",
}
_REASONS = {
    "test_unsupported_cpu": "it expects the CPU to be refused, which sparsek has",
    "test_dispatch_decoding_bmhk": "the choice among xFormers' own operators",
    "test_dispatch_decoding_bmghk": "the choice among xFormers' own operators",
}
_BLOCK = 64

operators = sparsek.compat.xformers.install()
_of_xformers = bias_utils.create_attn_bias


def _create_attn_bias(bias_type: Any, *given: Any, **named: Any) -> Any:
    if bias_type is not operators.bias:
        return _of_xformers(bias_type, *given, **named)
    names = ("batch_size", "num_heads", "num_heads_groups", "q_len", "kv_len", "device", "dtype")
    arguments = {**dict(zip(names, given, strict=False)), **named}
    seq = (arguments["q_len"], arguments["kv_len"])
    rows, columns = (-(-extent // _BLOCK) for extent in seq)
    seen = torch.rand(rows, columns, generator=torch.Generator().manual_seed(rows * columns)) < 0.5
    seen[:, 0] = True
    return operators.bias(st.BlockLayout.from_mask(seen.to(arguments["device"]), _BLOCK, seq), causal=bool(seq[0] % 2))


bias_utils.create_attn_bias = _create_attn_bias
fmha.ALL_FW_OPS[:] = [operators.forward]
fmha.ALL_BW_OPS[:] = [operators.backward]
fmha.common._built_with_cuda = True  # it is asked of operators that xFormers compiled
for _operator in (operators.forward, operators.backward):
    _operator.SUPPORTED_DTYPES = _operator.SUPPORTED_DTYPES - {torch.float64}  # the tests' references are in float32


def _why(item: Any) -> str | None:
    name = item.originalname
    return None if name in _RUN else _REASONS.get(name, "of xFormers' own operators, masks or caches")


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Leaves out what does not ask for sparsek's operator."""
    leave_out(items, _why)
