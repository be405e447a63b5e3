# SPDX-License-Identifier: Apache-2.0
"""What the cases on several ranks share: the group's rank and device, and a model in each way of having it on several ranks.

The arguments of the program are RANK RANKS FOLDER DEVICE.
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import parallelize_module
from torch.nn import functional as F  # noqa: N812

import sparsek.torch as st
import sparsek.torch.distributed as sd

RANK, RANKS, FOLDER, DEVICE = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
BLOCK, WIDTH, HIDDEN = (8, 8), 32, 192
TOKENS = 8  # of a sequence, whatever number of ranks shares them


class Mlp(nn.Module):
    """A gated MLP with block-sparse layers, in float64: the rows of up and gate have very different numbers of blocks."""

    def __init__(self, seed: int, density: float = 0.5) -> None:
        super().__init__()
        torch.manual_seed(seed)
        rows = HIDDEN // BLOCK[0]
        skewed = torch.rand(rows, WIDTH // BLOCK[1]) < torch.linspace(0.95, 0.05, rows)[:, None]
        self.gate = st.BsrLinear(WIDTH, HIDDEN, BLOCK, mask=skewed, activation="silu", dtype=torch.float64)
        self.up = st.BsrLinear(WIDTH, HIDDEN, BLOCK, density=density, dtype=torch.float64)
        self.down = st.BsrLinear(HIDDEN, WIDTH, BLOCK, density=density, dtype=torch.float64)
        self.to(DEVICE)

    def forward(self, x: Any) -> Any:
        return self.down(self.gate(x) * self.up(x))


def close(got: Any, exact: Any) -> None:
    torch.testing.assert_close(got, exact, rtol=1e-10, atol=1e-12)


def tensor_parallel(whole: Mlp, dealt: bool = True, sequence: bool = False) -> Mlp:
    """A copy of the MLP of which this rank has a part."""
    model, mesh = copy.deepcopy(whole), init_device_mesh(DEVICE, (RANKS,))
    deal = sd.deal_blocks([model.gate, model.up], model.down, RANKS) if dealt else None
    outside = Shard(1) if sequence else Replicate()
    styles = {
        "gate": sd.ColwiseBsr(deal, input_layouts=outside),
        "up": sd.ColwiseBsr(deal, input_layouts=outside),
        "down": sd.RowwiseBsr(deal, output_layouts=outside),
    }
    parallelize_module(model, mesh, styles)
    return model


def inputs(seed: int = 5) -> Any:
    return drawn(seed, 3, TOKENS, WIDTH)


def drawn(seed: int, *shape: int) -> Any:
    """Normal numbers, the same on all ranks."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(DEVICE)


def whole_state(model: nn.Module, attribute: str) -> dict[str, Any]:
    """The parameters of the whole model, or their gradients."""
    made = {}
    for name, parameter in model.named_parameters():
        module = model.get_submodule(name.rpartition(".")[0])
        tensor = parameter.detach() if attribute == "data" else parameter.grad
        if isinstance(module, (sd.ColwiseLinear, sd.RowwiseLinear)):
            values = name.endswith("values")
            tensor = module.exchange().gathered(tensor).full_tensor() if values else module._whole_bias(tensor)
        made[name] = tensor
    return made


def part_of_tokens(x: Any) -> Any:
    return x.chunk(RANKS, 1)[RANK]


def sharded(seed: int) -> Mlp:
    """An MLP under FSDP2, with a unit of its own for one layer."""
    model = Mlp(seed)
    mesh = init_device_mesh(DEVICE, (RANKS,))
    fully_shard(model.up, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def steps(model: Any, optimizer: Any) -> None:
    for _ in range(2):
        optimizer.zero_grad()
        F.mse_loss(model(inputs()), inputs(7)).backward()
        optimizer.step()
