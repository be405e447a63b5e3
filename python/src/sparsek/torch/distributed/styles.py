# SPDX-License-Identifier: Apache-2.0
"""Tensor parallelism of block-sparse layers, for torch's parallelize_module."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import ParallelStyle

from ...errors import ArgumentError, UnsupportedError
from ..modules import BsrLinear
from .agree import broadcast_pattern_
from .deal import Deal, even
from .layers import ColwiseLinear, RowwiseLinear

__all__ = ["ColwiseBsr", "RowwiseBsr"]

_LAST = Shard(-1)


def _agreed(deal: Deal, mesh: DeviceMesh, source: int | None) -> Deal:
    """The deal of the source, on all ranks."""
    if source is None:
        return deal
    owner = deal.owner().to(mesh.device_type)
    dist.broadcast(owner, group_src=source, group=mesh.get_group())
    found = owner.cpu()
    return Deal(deal.block, tuple(tuple(map(int, (found == rank).nonzero()[:, 0])) for rank in range(deal.ranks)))


class _Style(ParallelStyle):  # type: ignore[misc, unused-ignore]
    def __init__(self, deal: Deal | None, input_layouts: Any, output_layouts: Any, use_local_output: bool) -> None:
        super().__init__()
        self.deal, self.input_layouts, self.output_layouts = deal, input_layouts, output_layouts
        self.use_local_output = use_local_output

    def _in_order(self, name: str) -> None:
        layout = getattr(self, name)
        if self.deal is not None and layout != _LAST:
            raise ArgumentError(f"{name}={layout} needs all features in order, and a deal has them out of order: Shard(-1) is served")

    def _shared(self, module: nn.Module, mesh: DeviceMesh, dimension: int) -> tuple[BsrLinear, Deal]:
        """The layer, the same on all ranks, and how it is dealt."""
        if not isinstance(module, BsrLinear) or isinstance(module, (ColwiseLinear, RowwiseLinear)):
            raise UnsupportedError(
                f"{type(self).__name__} is for a BsrLinear, and not for {type(module).__name__}: sparsify_ makes BsrLinears"
            )
        if mesh.ndim != 1:
            raise ArgumentError(
                f"a layer is dealt over a mesh of one dimension, and not of {mesh.ndim}: give one dimension of the mesh, by its name"
            )
        if module.values.device.type == "meta":
            raise UnsupportedError("a layer without values, on the device meta, has no pattern to be dealt: make it on the CPU or a GPU")
        features, block = module.size[dimension], module.block[dimension]
        deal = even(features, block, mesh.size()) if self.deal is None else self.deal
        if deal.ranks != mesh.size() or deal.block != block or deal.count * block != features:
            said = f"{deal.count} blocks of {deal.block} features to {deal.ranks} ranks"
            raise ArgumentError(f"a deal of {said} is not one of {features} in blocks of {block} to {mesh.size()}")
        if self.src_data_rank is not None:
            broadcast_pattern_(module, mesh.get_group(), source=self.src_data_rank)
        return module, _agreed(deal, mesh, self.src_data_rank)


class ColwiseBsr(_Style):
    """Deals the block rows of a BsrLinear: each rank computes some of its output features.

    deal: which ones, from deal_blocks; None: a range. input_layouts: how x is shared, unless it is a DTensor: Replicate() (None),
    or Shard(1) for sequence parallelism, where the ranks' tokens, as many of each, are gathered first. output_layouts:
    Shard(-1) (None), or without a deal any other. use_local_output: y is a tensor and not a DTensor.

    All ranks take the values and the pattern of the mesh's first rank, as with torch's styles (src_data_rank of
    parallelize_module). Applying it raises ArgumentError where the features cannot be dealt so, and UnsupportedError for other
    modules and layers on the device meta.
    """

    def __init__(
        self, deal: Deal | None = None, *, input_layouts: Any = None, output_layouts: Any = None, use_local_output: bool = True
    ) -> None:
        super().__init__(deal, input_layouts or Replicate(), output_layouts or _LAST, use_local_output)
        self._in_order("output_layouts")

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        layer, deal = self._shared(module, device_mesh, 0)
        ColwiseLinear.take(layer, device_mesh, deal, self.input_layouts, self.output_layouts, self.use_local_output)
        return module


class RowwiseBsr(_Style):
    """Deals the block columns of a BsrLinear: each rank reads some of its input features, and the ranks' results are summed.

    deal: that of the layer before; None: ranges. input_layouts: Shard(-1) (None), or without a deal any other.
    output_layouts: Replicate() (None), or Shard(1) for sequence parallelism, where each rank gets some tokens' sums.
    use_local_output: y is a tensor and not a DTensor. The sum goes on beside what follows until y is read.

    Where values come from, and errors, are those of ColwiseBsr.
    """

    def __init__(
        self, deal: Deal | None = None, *, input_layouts: Any = None, output_layouts: Any = None, use_local_output: bool = True
    ) -> None:
        super().__init__(deal, input_layouts or _LAST, output_layouts or Replicate(), use_local_output)
        self._in_order("input_layouts")

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        layer, deal = self._shared(module, device_mesh, 1)
        RowwiseLinear.take(layer, device_mesh, deal, self.input_layouts, self.output_layouts, self.use_local_output)
        return module
