# SPDX-License-Identifier: Apache-2.0
"""Blocks of values on their way between the parts of a layer and the whole one, without any rank holding all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from ...errors import UnsupportedError
from .deal import Deal


def whole(tensor: Any) -> torch.Tensor:
    """A tensor, or all of a DTensor. In the latter case all ranks of its mesh must ask together."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def assign(parameter: torch.Tensor, values: torch.Tensor) -> None:
    """Copies values to a parameter of this shape, or this rank's part of them to one that FSDP2 has sharded."""
    if isinstance(parameter, DTensor):
        values = distribute_tensor(values, parameter.device_mesh, parameter.placements, src_data_rank=None).to_local()
        parameter = parameter.to_local()
    parameter.detach().copy_(values)


def rewriting(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    """change for tensors that FSDP2 has sharded, in their place: it knows how large they are. All ranks must call it together."""

    def rewrite(tensor: torch.Tensor) -> torch.Tensor:
        changed = change(whole(tensor))
        if changed.shape != tensor.shape:
            raise UnsupportedError(
                f"under FSDP2 a layer keeps its number of blocks, {len(tensor)}, and {len(changed)} are given: save the model, load it "
                "into a plain one, prune that, and shard it"
            )
        assign(tensor, changed)
        return tensor

    return rewrite


class Exchange:
    """For a layer whose block rows (dimension 0) or block columns (1) are dealt.

    mask: of the whole layer, (R, C). In the whole layer, blocks lie in the order of rows, as BSR has them, and as a DTensor
    each rank has a range of them. In a part, blocks lie in the order of its rows.
    """

    def __init__(self, mask: torch.Tensor, dimension: int, deal: Deal, mesh: DeviceMesh) -> None:
        self.mesh, self.ranks = mesh, deal.ranks
        owner = deal.owner()[mask.nonzero()[:, dimension].cpu()]
        rank, count = mesh.get_local_rank(), owner.numel()
        self.count = count
        each = -(-count // self.ranks) if count else 1
        range_of = torch.arange(count) // each
        # A part's blocks come in the order of the whole, so that those for one range lie together.
        self.sent = torch.bincount(range_of[owner == rank], minlength=self.ranks).tolist()
        ranged = owner[range_of == rank]
        self.received = torch.bincount(ranged, minlength=self.ranks).tolist()
        self.place = ranged.argsort(stable=True)

    def gathered(self, part: torch.Tensor) -> DTensor:
        """The whole layer's blocks (nnzb, ...) as a DTensor of ranges, from each part's (nnzb of the part, ...)."""
        came = part.new_empty(len(self.place), *part.shape[1:])
        dist.all_to_all_single(came, part.contiguous(), self.received, self.sent, group=self.mesh.get_group())
        ordered = torch.empty_like(came)
        ordered[self.place.to(came.device)] = came
        shape = torch.Size((self.count, *part.shape[1:]))
        stride = torch.empty(shape, device="meta").stride()
        return DTensor.from_local(ordered, self.mesh, (Shard(0),), run_check=False, shape=shape, stride=stride)

    def dealt(self, blocks: DTensor) -> torch.Tensor:
        """Each part's blocks, from the whole layer's as gathered has them."""
        local = blocks.redistribute(self.mesh, (Shard(0),)).to_local()
        made = local.new_empty(sum(self.sent), *local.shape[1:])
        going = local[self.place.to(local.device)].contiguous()
        dist.all_to_all_single(made, going, self.sent, self.received, group=self.mesh.get_group())
        return made
