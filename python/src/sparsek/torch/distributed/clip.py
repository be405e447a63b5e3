# SPDX-License-Identifier: Apache-2.0
"""The norm of the gradients of a whole model, of whose layers each rank has a part."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor import DTensor

from .exchange import whole
from .layers import ColwiseLinear, _Part

__all__ = ["clip_grad_norm_"]


def clip_grad_norm_(model: nn.Module, max_norm: float) -> torch.Tensor:
    """Scales the gradients of a model so that their L2 norm is at most max_norm, and returns the norm from before.

    As torch.nn.utils.clip_grad_norm_, which would take each rank's part of a layer for the whole. All ranks must call it together.
    """
    sums: dict[Any, tuple[Any, Any]] = {}
    grads = []
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            if parameter.grad is None:
                continue
            dealt = isinstance(module, _Part) and (name == "values" or isinstance(module, ColwiseLinear))
            mesh = module.mesh if dealt else None
            grad = parameter.grad.detach()
            grads.append(grad)
            square = (grad if grad.dtype == torch.float64 else grad.float()).square().sum()
            key = (grad.device_mesh if isinstance(grad, DTensor) else None, mesh)
            sums[key] = (sums[key][0] + square if key in sums else square, mesh)
    total: Any = 0.0
    for square, mesh in sums.values():
        square = whole(square)
        if mesh is not None:
            dist.all_reduce(square, group=mesh.get_group())
        total = total + square
    norm = torch.as_tensor(total).sqrt()
    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    for grad in grads:
        local = grad.to_local() if isinstance(grad, DTensor) else grad
        local.mul_(scale.to(local.device))
    return norm
