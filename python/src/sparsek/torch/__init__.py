# SPDX-License-Identifier: Apache-2.0
"""Block-sparse products, attention and layers for torch, with gradients, on the CPU and on Hopper GPUs."""

from __future__ import annotations

from . import gate, layouts
from ._plans import cache_clear, cache_info, tuning
from .block_layout import BlockLayout
from .blocks import block_mask, block_scores, from_blocks, index_from_mask, index_from_scores, to_blocks
from .flex import flex_attention
from .freeze import freeze_, unfreeze_
from .functional import PlanTensor, attention, linear, mm, plan, sdd
from .gate import LearnableTopKGate, block_mass, choose_blocks
from .modules import BsrLinear, sparsify_
from .prune import growth_scores, prune_, regrow_
from .sparse_op import BlackwellSparseKOp
from .tensor import BsrTensor, from_plain, to_plain

__all__ = [
    "BlackwellSparseKOp",
    "BlockLayout",
    "BsrLinear",
    "BsrTensor",
    "LearnableTopKGate",
    "PlanTensor",
    "attention",
    "block_mask",
    "block_mass",
    "block_scores",
    "cache_clear",
    "cache_info",
    "choose_blocks",
    "flex_attention",
    "freeze_",
    "from_blocks",
    "from_plain",
    "gate",
    "growth_scores",
    "index_from_mask",
    "index_from_scores",
    "layouts",
    "linear",
    "mm",
    "plan",
    "prune_",
    "regrow_",
    "sdd",
    "sparsify_",
    "to_blocks",
    "to_plain",
    "tuning",
    "unfreeze_",
]
