# SPDX-License-Identifier: Apache-2.0
"""Block-sparse layers of which each rank has a part: some block rows, or some block columns.

Parts have different numbers of nonzero blocks, so that parameters are plain tensors. What goes in and out is a DTensor
where ranks have to exchange something. The state dict is that of the whole layer.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

from .. import functional
from ..blocks import index_from_mask, mask_from_index
from ..modules import BsrLinear
from .deal import Deal
from .exchange import Exchange, assign, whole

__all__ = ["ColwiseLinear", "RowwiseLinear"]

_LAST = Shard(-1)


class _Part(BsrLinear):
    """A rank's part of a layer. It is made of a BsrLinear in its place, by its parallel style."""

    mesh: DeviceMesh
    deal: Deal
    whole_size: tuple[int, int]
    input_layout: Any
    output_layout: Any
    use_local_output: bool
    dimension: int  # of the weight: which one is dealt

    @classmethod
    def take(cls, layer: BsrLinear, mesh: DeviceMesh, deal: Deal, input_layout: Any, output_layout: Any, use_local_output: bool) -> None:
        """Leaves a layer, which is the same on all ranks, only this rank's part, and makes it one of this class."""
        mask = layer.mask
        own = torch.tensor(deal.blocks[mesh.get_local_rank()], device=mask.device)
        kept = torch.zeros_like(mask).index_fill_(cls.dimension, own, True)
        with torch.no_grad():
            layer.values.data = layer.values.data[kept[mask]].clone()
        part: Any = layer
        part.whole_size = layer.size
        part.__class__ = cls
        part.mesh, part.deal, part.use_local_output = mesh, deal, use_local_output
        part.input_layout, part.output_layout = input_layout, output_layout
        part._take_features(deal.block * len(own))
        part.crow, part.col = index_from_mask(mask.index_select(cls.dimension, own), layer.col.dtype)

    def _take_features(self, count: int) -> None:
        raise NotImplementedError

    @property
    def rank(self) -> int:
        """Which part this is."""
        return self.mesh.get_local_rank()

    @property
    def whole_mask(self) -> torch.Tensor:
        """Which blocks the whole layer has, (ceil(out/bm), ceil(in/bk)), of bool. All ranks must ask for it together."""
        (rows, cols), (bm, bk) = self.whole_size, self.block
        mask = torch.zeros(-(-rows // bm), -(-cols // bk), dtype=torch.uint8, device=self.col.device)
        mask.index_copy_(self.dimension, self._own(), self.mask.to(torch.uint8))
        dist.all_reduce(mask, group=self.mesh.get_group())
        return mask.bool()

    def _own(self) -> torch.Tensor:
        return torch.tensor(self.deal.blocks[self.rank], device=self.col.device)

    def part_of(self, mask: torch.Tensor) -> torch.Tensor:
        """This rank's part of the mask of the whole layer."""
        return mask.to(self.col.device).index_select(self.dimension, self._own())

    def exchange(self, mask: torch.Tensor | None = None) -> Exchange:
        """Carries blocks between the parts and the whole layer, whose mask this is. All ranks must ask for it together."""
        mask = self.whole_mask if mask is None else mask
        return Exchange(mask, self.dimension, self.deal, self.mesh)

    def _whole_bias(self, bias: torch.Tensor) -> torch.Tensor:
        return bias

    def _part_of_bias(self, bias: torch.Tensor) -> torch.Tensor:
        return bias

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        mask = self.whole_mask
        destination[prefix + "values"] = self.exchange(mask).gathered(whole(self.values.detach()))
        if self.bias is not None:
            destination[prefix + "bias"] = self._whole_bias(whole(self.bias.detach()))
        crow, col = index_from_mask(mask, self.col.dtype)
        destination[prefix + "crow"], destination[prefix + "col"] = crow, col

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        missing, unexpected, messages = args[-3:]
        found: dict[str, Any] = {
            name: state_dict.get(prefix + name) for name in ("values", "crow", "col", *(["bias"] if self.bias is not None else []))
        }
        absent = [prefix + name for name, tensor in found.items() if tensor is None]
        missing += absent
        known = {prefix + name for name in found}
        unexpected += [key for key in state_dict if key.startswith(prefix) and key not in known]
        if absent:
            return
        values, crow, col = found["values"], found["crow"], found["col"]
        (rows, cols), (bm, bk) = self.whole_size, self.block
        fits = crow.numel() == -(-rows // bm) + 1 and tuple(values.shape) == (col.numel(), bm, bk)
        if not fits or (self.bias is not None and tuple(found["bias"].shape) != (rows,)):
            messages.append(
                f"size mismatch for {prefix[:-1]}: the state is not that of a layer of {self.whole_size} in blocks of {self.block}"
            )
            return
        mask = mask_from_index(whole(crow), whole(col), -(-cols // bk))
        self.set_pattern(self.part_of(mask))
        with torch.no_grad():
            if isinstance(values, DTensor):
                part = self.exchange(mask).dealt(values)
            else:
                own = torch.zeros_like(mask).index_fill_(self.dimension, self._own().to(mask.device), True)
                part = values[own[mask].to(values.device)]
            assign(self.values, part)
            if self.bias is not None:
                assign(self.bias, self._part_of_bias(whole(found["bias"])))

    def _leave(self, y: torch.Tensor, placement: Any) -> torch.Tensor:
        """y, which the ranks have as this placement says, as the caller asks for it."""
        if self.use_local_output and self.output_layout == placement:
            return y
        made = DTensor.from_local(y, self.mesh, (placement,), run_check=False)
        made = made.redistribute(placements=(self.output_layout,), async_op=True)
        return made.to_local() if self.use_local_output else made

    def extra_repr(self) -> str:
        """What repr says of it."""
        return f"{super().extra_repr()}, rank {self.rank} of {self.deal.ranks} of {self.whole_size}"


class ColwiseLinear(_Part):
    """Some block rows of a weight W: each rank computes some features of y = act(x W^T + bias)."""

    dimension = 0

    def _take_features(self, count: int) -> None:
        self.out_features = count
        if self.bias is not None:
            with torch.no_grad():
                self.bias.data = self._part_of_bias(self.bias.data).clone()

    def _part_of_bias(self, bias: torch.Tensor) -> torch.Tensor:
        return bias[self.deal.features(self.rank).to(bias.device)]

    def _whole_bias(self, bias: torch.Tensor) -> torch.Tensor:
        parts = [torch.empty_like(bias) for _ in range(self.deal.ranks)]
        dist.all_gather(parts, bias.contiguous(), group=self.mesh.get_group())
        order = torch.cat([self.deal.features(rank) for rank in range(self.deal.ranks)])
        return torch.cat(parts)[order.argsort().to(bias.device)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (..., in) as the style's input_layouts say, or a DTensor. Returns y (..., out) as its output_layouts say."""
        if not isinstance(x, DTensor):
            x = DTensor.from_local(x, self.mesh, (self.input_layout,), run_check=False)
        x = x.redistribute(placements=(Replicate(),))
        # Each rank has a part of the sum that is the gradient of x.
        return self._leave(super().forward(x.to_local(grad_placements=(Partial(),))), _LAST)


class RowwiseLinear(_Part):
    """Some block columns of a weight W: each rank has a part of the sum that is y = act(x W^T + bias)."""

    dimension = 1

    def _take_features(self, count: int) -> None:
        self.in_features = count

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (..., in) as the style's input_layouts say, or a DTensor. Returns y (..., out) as its output_layouts say."""
        if not isinstance(x, DTensor) and self.input_layout != _LAST:
            x = DTensor.from_local(x, self.mesh, (self.input_layout,), run_check=False)
        if isinstance(x, DTensor):
            x = x.redistribute(placements=(_LAST,)).to_local()
        bias = self.bias
        if bias is not None and self.rank:
            # The sum has the bias once. Its gradient, the sum of y's, is the same on each rank.
            bias = bias - bias.detach()
        y = functional.linear(x, self.values, self.crow, self.col, self.size, bias)
        y = self._leave(y, Partial())
        return y if self.activation in (None, "none") else getattr(torch.nn.functional, self.activation)(y)
