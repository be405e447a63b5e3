# SPDX-License-Identifier: Apache-2.0
"""A linear layer with a block-sparse weight."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from .._extents import extents
from ..errors import ArgumentError
from . import functional
from ._plans import keep_for_graphs
from ._products import ACTIVATIONS
from .blocks import Score, block_mask, block_scores, from_blocks, index_from_mask, mask_from_index, moving, to_blocks
from .functional import linear_in_graph
from .tensor import BsrTensor

__all__ = ["BsrLinear", "sparsify_"]

_compiling = torch.compiler.is_compiling


def _replace(parameter: nn.Parameter, data: torch.Tensor) -> None:
    """Gives a parameter data, of another shape perhaps, and drops its gradient."""
    if data.shape != parameter.shape:
        # A graph that is still alive has torch remember the old shape, unless the type changes too.
        parameter.data = data.new_empty(0, dtype=torch.float16 if data.dtype == torch.float32 else torch.float32)
    parameter.data = data
    parameter.grad = None


class BsrLinear(nn.Module):
    """y = act(x W^T + bias), x (..., in_features), y (..., out_features), with the weight in blocks.

    block: (bm, bk). The blocks that W has are those of `mask` (ceil(out/bm), ceil(in/bk)), or a share `density` of all,
    drawn at random. activation: None, "relu", "gelu" or "silu".

    Parameters: values (nnzb, bm, bk), bias (out_features). Buffers: crow, col of int32, as torch's BSR has them. Where the
    features are no multiples of the block, values beyond the weight are zero and stay so: their gradients are.
    A state dict may have another number of blocks: loading it takes its pattern.
    """

    crow: torch.Tensor
    col: torch.Tensor

    def __init__(
        self,
        in_features: int,
        out_features: int,
        block: tuple[int, int],
        *,
        density: float | None = None,
        mask: torch.Tensor | None = None,
        bias: bool = True,
        activation: str | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        bm, bk = extents(block, "block", "rows", "columns")
        self.block = (bm, bk)
        if activation is not None and activation not in ACTIVATIONS:
            raise ArgumentError(f"activation={activation!r} is none of None, relu, gelu and silu")
        self.activation = activation
        if bm < 1 or bk < 1:
            raise ArgumentError(f"a block of {bm}x{bk} does not exist")
        if (density is None) == (mask is None):
            raise ArgumentError("give either density or mask")
        grid = (-(-out_features // bm), -(-in_features // bk))
        if mask is None:
            assert density is not None
            mask = block_mask(torch.rand(grid, device="cpu"), density)
        elif tuple(mask.shape) != grid:
            raise ArgumentError(f"mask has the shape {tuple(mask.shape)}, and not {grid}")
        crow, col = index_from_mask(mask)
        self.register_buffer("crow", crow.to(device=device))
        self.register_buffer("col", col.to(device=device))
        self.values = nn.Parameter(torch.empty(col.numel(), bm, bk, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(out_features, device=device, dtype=dtype)) if bias else None
        self.reset_parameters()

    @property
    def size(self) -> tuple[int, int]:
        """(out_features, in_features): the shape of the weight."""
        return self.out_features, self.in_features

    @property
    def density(self) -> float:
        """Stored blocks as a share of all."""
        return self.col.numel() / max(1, self.mask_shape[0] * self.mask_shape[1])

    @property
    def mask_shape(self) -> tuple[int, int]:
        """Blocks down and across."""
        return -(-self.out_features // self.block[0]), -(-self.in_features // self.block[1])

    @property
    def mask(self) -> torch.Tensor:
        """Which blocks the weight has, (ceil(out/bm), ceil(in/bk)), of bool."""
        return mask_from_index(self.crow, self.col, self.mask_shape[1])

    @property
    def weight(self) -> torch.Tensor:
        """The weight as a dense tensor, (out_features, in_features), made anew each time. Gradients flow through it."""
        return from_blocks(self.values, self.crow, self.col, self.size)

    def reset_parameters(self) -> None:
        """Draws values and bias as nn.Linear does, for the number of inputs that an output has on average."""
        inputs = self.in_features * self.density
        bound = 1 / math.sqrt(inputs) if inputs > 0 else 0.0
        with torch.no_grad():
            self.values.uniform_(-bound, bound)
            self._clear_beyond()
            if self.bias is not None:
                self.bias.uniform_(-bound, bound)

    def _clear_beyond(self) -> None:
        """Zeros what values have beyond the weight."""
        (bm, bk), (down, across) = self.block, self.mask_shape
        if self.values.device.type == "meta" or not self.col.numel():
            return
        if self.in_features % bk:
            self.values[self.col == across - 1, :, self.in_features % bk :] = 0
        if self.out_features % bm:
            self.values[int(self.crow[down - 1]) :, self.out_features % bm :] = 0

    @classmethod
    def from_dense(
        cls,
        linear: nn.Linear | torch.Tensor,
        block: tuple[int, int],
        *,
        density: float | None = None,
        mask: torch.Tensor | None = None,
        score: Score = "l2",
        activation: str | None = None,
    ) -> BsrLinear:
        """The layer that has the blocks of this one's weight which `mask` says, or the share `density` with the highest scores.

        linear: an nn.Linear, whose bias is copied too, or a weight (out, in). score: see block_scores.
        """
        weight = linear.weight if isinstance(linear, nn.Linear) else linear
        bias = linear.bias if isinstance(linear, nn.Linear) else None
        if weight.dim() != 2:
            raise ArgumentError(f"a weight has two dimensions, and not {weight.dim()}")
        if density is not None and mask is None:
            mask, density = block_mask(block_scores(weight, block, score), density), None
        options: dict[str, Any] = {"activation": activation, "device": weight.device, "dtype": weight.dtype}
        made = cls(weight.shape[1], weight.shape[0], block, density=density, mask=mask, bias=bias is not None, **options)
        with torch.no_grad():
            made.values.copy_(to_blocks(weight.detach(), made.block)[made.mask])
            if bias is not None and made.bias is not None:
                made.bias.copy_(bias)
        made.values.requires_grad_(weight.requires_grad)
        return made.train(linear.training) if isinstance(linear, nn.Module) else made

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """act(x W^T + bias)."""
        size: tuple[int, int] = (self.out_features, self.in_features)
        if _compiling():
            return linear_in_graph(x, self.values, self.crow, self.col, size, self.bias, False, self.activation)
        parameters, buffers = self._parameters, self._buffers
        try:
            # As the attributes, which nn.Module takes half a microsecond to find, each.
            values, crow, col, bias = parameters["values"], buffers["crow"], buffers["col"], parameters["bias"]
        except KeyError:  # with parametrizations and the like
            values, crow, col, bias = self.values, self.crow, self.col, self.bias
        return functional.linear(x, values, crow, col, size, bias, activation=self.activation)

    def set_pattern(self, mask: torch.Tensor, optimizer: torch.optim.Optimizer | None = None) -> None:
        """Gives the weight the blocks of `mask` (ceil(out/bm), ceil(in/bk)): those that it had keep their values, new ones are zero.

        What the optimizer keeps for each value (momentum and the like) moves along, and is zero for new blocks. The
        parameter stays the same object; its gradient is dropped. Where FSDP2 has sharded it, the number of blocks must stay
        (else UnsupportedError), and all ranks must call this together.
        """
        if tuple(mask.shape) != self.mask_shape:
            raise ArgumentError(f"mask has the shape {tuple(mask.shape)}, and not {self.mask_shape}")
        mask = mask.to(self.col.device)
        moved, before = moving(mask, self.crow, self.col), self.values.shape
        if hasattr(self.values, "full_tensor"):
            from .distributed.exchange import rewriting

            moved = rewriting(moved)
        keep_for_graphs(self.crow, self.col, self.values.data)
        with torch.no_grad():
            _replace(self.values, moved(self.values.data))
        self.crow, self.col = index_from_mask(mask, self.col.dtype)
        if optimizer is not None and self.values in optimizer.state:
            state = optimizer.state[self.values]
            for name, kept in state.items():
                if isinstance(kept, torch.Tensor) and kept.shape == before:
                    state[name] = moved(kept)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        values: Any = state_dict.get(prefix + "values")
        col: Any = state_dict.get(prefix + "col")
        complete = values is not None and col is not None and values.shape[1:] == self.values.shape[1:] and len(values) == len(col)
        if complete and len(col) != len(self.col):
            keep_for_graphs(self.crow, self.col, self.values.data)
            _replace(self.values, self.values.data.new_empty(values.shape))
            self.col = self.col.new_empty(col.shape)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        """What repr says of it."""
        said = f"in_features={self.in_features}, out_features={self.out_features}, block={self.block}, density={self.density:.3g}"
        return f"{said}, bias={self.bias is not None}" + (f", activation={self.activation!r}" if self.activation else "")


def sparsify_(
    model: nn.Module,
    block: tuple[int, int] = (64, 64),
    density: float = 0.2,
    *,
    score: Score = "l2",
    filter: Callable[[str, nn.Linear], bool] | None = None,
    keep_modules: bool = False,
) -> list[str]:
    """Puts a BsrLinear in the place of each nn.Linear in the model, and returns the names of these.

    keep_modules: the layers stay as they are, for programs that look for nn.Linear, and their weights become BsrTensors.

    Each keeps the share `density` of its blocks, those with the highest scores; see BsrLinear.from_dense. filter: whether to
    replace the layer of this name; None: those that have a block or more both ways. Subclasses of nn.Linear are left as
    they are, and so is the model itself. A layer that is in the model twice stays one layer.
    """
    replaced: dict[nn.Module, BsrLinear] = {}
    bm, bk = extents(block, "block", "rows", "columns")
    if isinstance(model, nn.Linear):
        raise ArgumentError("the model itself is an nn.Linear, which cannot be replaced in place: BsrLinear.from_dense makes a layer of it")
    names = []
    for path, parent in list(model.named_modules()):
        for name, child in list(parent._modules.items()):  # named_children leaves a second name out
            full = f"{path}.{name}" if path else name
            if type(child) is not nn.Linear:
                continue
            large = child.out_features >= bm and child.in_features >= bk
            if not (large if filter is None else filter(full, child)):
                continue
            names.append(full)
            if keep_modules:
                if not isinstance(child.weight, BsrTensor):
                    weight = BsrTensor.from_dense(child.weight, block, density=density, score=score)
                    child.weight = nn.Parameter(weight, requires_grad=child.weight.requires_grad)
                continue
            if child not in replaced:
                replaced[child] = BsrLinear.from_dense(child, block, density=density, score=score)
            setattr(parent, name, replaced[child])
    return names
