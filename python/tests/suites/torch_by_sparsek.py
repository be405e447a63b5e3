# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest for TestSparseCompressedTritonKernels of torch's test_sparse_csr.py: sparsek computes the products."""

from __future__ import annotations

import torch

import sparsek.compat.torch_triton_ops

sparsek.compat.torch_triton_ops.install()
if not hasattr(torch, "_running_with_deploy"):  # a file older than torch 2.8 asks for it
    torch._running_with_deploy = lambda: False
