# SPDX-License-Identifier: Apache-2.0
"""Cases of ranks that train one layer together, by DDP and FSDP2, and of checkpoints, on all ranks of a group."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from distributed_common import (
    BLOCK,
    DEVICE,
    FOLDER,
    RANK,
    RANKS,
    TOKENS,
    Mlp,
    close,
    drawn,
    inputs,
    part_of_tokens,
    sharded,
    steps,
    tensor_parallel,
)
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import parallelize_module
from torch.nn import functional as F  # noqa: N812
from torch.nn.parallel import DistributedDataParallel

import sparsek
import sparsek.torch as st
import sparsek.torch.distributed as sd


def opinion(blocks: Any, rank: int) -> Any:
    """Scores of blocks that differ much from rank to rank."""
    return blocks.square().sum((1, 2)) * (1 + 0.9 * torch.sin((3 + 4 * rank) * torch.arange(len(blocks), device=blocks.device)))


def case_ddp_prunes_alike() -> None:
    model, alone = Mlp(3), Mlp(3)
    x, target = inputs(), inputs(8)
    optimizer, exact = (torch.optim.AdamW(each.parameters(), lr=1e-2) for each in (model, alone))
    for turn in range(3):
        wrapped = DistributedDataParallel(model)  # the one before knows other shapes
        for _ in range(3):
            optimizer.zero_grad()
            F.mse_loss(wrapped(part_of_tokens(x)), part_of_tokens(target)).backward()
            optimizer.step()
            exact.zero_grad()
            F.mse_loss(alone(x), target).backward()
            exact.step()
        for name in ("gate", "up", "down"):
            layer, other = getattr(model, name), getattr(alone, name)
            left = layer.density * 0.8

            # Each rank would have dropped others.
            sd.prune_(layer, left, score=lambda blocks: opinion(blocks, RANK), optimizer=optimizer)
            assert sd.patterns_agree(layer)
            st.prune_(other, left, score=lambda blocks: sum(opinion(blocks, rank) for rank in range(RANKS)), optimizer=exact)
            assert torch.equal(layer.mask, other.mask)
            # Growth is that of the batch of all ranks.
            gradient, seen = drawn(20 + turn, 3, TOKENS, layer.out_features), drawn(30 + turn, 3, TOKENS, layer.in_features)
            growth = sd.growth_scores(part_of_tokens(seen), part_of_tokens(gradient), BLOCK)
            whole_growth = st.growth_scores(seen, gradient, BLOCK)
            torch.testing.assert_close(growth, whole_growth)
            assert sd.regrow_(layer, 0.2, growth, optimizer=optimizer) == st.regrow_(other, 0.2, whole_growth, optimizer=exact)
            assert torch.equal(layer.mask, other.mask)
    for (name, got), parameter in zip(model.named_parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(got, parameter, rtol=1e-7, atol=1e-9, msg=lambda text, name=name: f"{name}: {text}")
    sd.regrow_(model.up, 0.3, optimizer=optimizer)  # at random
    assert sd.patterns_agree(model)
    torch.manual_seed(RANK)
    st.regrow_(model.up, 0.5)
    assert not sd.patterns_agree(model)
    try:
        sd.prune_(model.up, 0.1)
    except sparsek.ArgumentError:
        sd.broadcast_pattern_(model)
        assert sd.patterns_agree(model)
        assert sd.prune_(model.up, 0.1) > 0
        return
    raise AssertionError("patterns that differ were pruned")


def case_fsdp_moves_blocks_alike() -> None:
    model, alone = sharded(4), Mlp(4)
    x, target = inputs(), inputs(9)
    optimizer, exact = (torch.optim.AdamW(each.parameters(), lr=1e-2) for each in (model, alone))
    for turn in range(3):
        for _ in range(3):
            optimizer.zero_grad()
            F.mse_loss(model(part_of_tokens(x)), part_of_tokens(target)).backward()
            optimizer.step()
            exact.zero_grad()
            F.mse_loss(alone(x), target).backward()
            exact.step()
        for name in ("gate", "up", "down"):
            layer, other = getattr(model, name), getattr(alone, name)
            growth = torch.rand(layer.mask_shape, generator=torch.Generator().manual_seed(turn))
            assert sd.regrow_(layer, 0.2, growth, optimizer=optimizer) == st.regrow_(other, 0.2, growth, optimizer=exact) > 0
            assert torch.equal(layer.mask, other.mask)
    assert sd.patterns_agree(model)
    for (name, got), parameter in zip(model.named_parameters(), alone.parameters(), strict=True):
        assert isinstance(got, DTensor)
        torch.testing.assert_close(
            got.full_tensor(), parameter.detach(), rtol=1e-7, atol=1e-9, msg=lambda text, name=name: f"{name}: {text}"
        )
    try:
        sd.prune_(model.up, 0.1)
    except sparsek.UnsupportedError:
        return
    raise AssertionError("nothing was raised")


def case_tensor_parallelism_under_fsdp() -> None:
    """On a mesh of two dimensions, of which one has a single rank, or neither where there are four."""
    for sizes in sorted({(1, RANKS), (RANKS, 1), (2, RANKS // 2)}):
        whole = Mlp(5)
        model, mesh = copy.deepcopy(whole), init_device_mesh(DEVICE, sizes, mesh_dim_names=("data", "tensor"))
        deal = sd.deal_blocks([model.gate, model.up], model.down, sizes[1])
        styles = {"gate": sd.ColwiseBsr(deal), "up": sd.ColwiseBsr(deal), "down": sd.RowwiseBsr(deal)}
        parallelize_module(model, mesh["tensor"], styles)
        fully_shard(model, mesh=mesh["data"])
        optimizers = [torch.optim.AdamW(each.parameters(), lr=1e-2) for each in (whole, model)]
        for each, optimizer in zip((whole, model), optimizers, strict=True):
            steps(each, optimizer)
        norms = (nn.utils.clip_grad_norm_(whole.parameters(), 1e-3), sd.clip_grad_norm_(model, 1e-3))
        torch.testing.assert_close(norms[0], norms[1], rtol=1e-10, atol=0)
        close(model(inputs()) + 0, whole(inputs()))
        folder = FOLDER / f"both{RANKS}-{sizes[0]}"
        sd.save(folder, model, optimizers[1])
        read = Mlp(50)
        again = torch.optim.AdamW(read.parameters(), lr=1e-2)
        sd.load(folder, read, again)
        steps(read, again)
        steps(whole, optimizers[0])
        torch.testing.assert_close(read(inputs()), whole(inputs()), rtol=1e-7, atol=1e-9)
        sd.load(folder, model, optimizers[1])
        steps(model, optimizers[1])
        torch.testing.assert_close(model(inputs()) + 0, whole(inputs()), rtol=1e-7, atol=1e-9)


def trained(model: Any) -> Any:
    """The model's optimizer after some steps."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    steps(model, optimizer)
    return optimizer


def parallel(seed: int) -> Mlp:
    """An MLP of which this rank has a part."""
    return tensor_parallel(Mlp(seed))


WAYS: dict[str, Callable[[int], Mlp]] = {"tensor": parallel, "sharded": sharded, "plain": Mlp}


def case_checkpoints() -> None:
    """Each way of training writes one, and each way reads it, with another pattern before."""
    for name, make in WAYS.items():
        model = make(6)
        optimizer = trained(model)
        if name != "sharded":
            st.regrow_(model.down, 0.2, torch.arange(model.down.mask.numel()).reshape(model.down.mask_shape).float(), optimizer=optimizer)
        sd.save(FOLDER / f"{name}{RANKS}", model, optimizer)
        for _ in range(2):
            steps(model, optimizer)
        y = model(inputs()) + 0
        torch.save(y.cpu(), FOLDER / f"{name}{RANKS}.pt") if RANK == 0 else None
    dist.barrier()
    case_checkpoints_are_read(str(RANKS))


def case_checkpoints_are_read(writers: str, folder: Path = FOLDER) -> None:
    """Each way of training goes on from what so many ranks have written: these may be more or fewer, or one without a group."""
    for name in WAYS:
        exact = torch.load(folder / f"{name}{writers}.pt").to(DEVICE)
        for way, make in WAYS.items() if dist.is_initialized() else [("plain", Mlp)]:
            if way == "sharded" and name != "sharded":
                continue  # patterns of other sizes are refused
            read = make(6 if way == "sharded" else 60)
            optimizer = torch.optim.AdamW(read.parameters(), lr=1e-2)
            sd.load(folder / f"{name}{writers}", read, optimizer)
            for _ in range(2):
                steps(read, optimizer)
            message = f"{name} of {writers} by {way} of {RANKS}"
            torch.testing.assert_close(
                read(inputs()) + 0, exact, rtol=1e-7, atol=1e-9, msg=lambda text, message=message: f"{message}: {text}"
            )
    if dist.is_initialized():
        dist.barrier()
