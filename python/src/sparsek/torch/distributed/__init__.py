# SPDX-License-Identifier: Apache-2.0
"""Block-sparse layers on several processes: tensor parallelism, patterns that agree under DDP and FSDP2, checkpoints.

All communication is torch.distributed's. Importing this package imports that.
"""

from __future__ import annotations

from .agree import broadcast_pattern_, growth_scores, patterns_agree, prune_, regrow_
from .checkpoint import load, save
from .clip import clip_grad_norm_
from .deal import Deal, deal_blocks
from .layers import ColwiseLinear, RowwiseLinear
from .styles import ColwiseBsr, RowwiseBsr

__all__ = [
    "ColwiseBsr",
    "ColwiseLinear",
    "Deal",
    "RowwiseBsr",
    "RowwiseLinear",
    "broadcast_pattern_",
    "clip_grad_norm_",
    "deal_blocks",
    "growth_scores",
    "load",
    "patterns_agree",
    "prune_",
    "regrow_",
    "save",
]
